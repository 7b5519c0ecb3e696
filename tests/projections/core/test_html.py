"""A table in a notebook: its rows as HTML, in which nothing that a log says is taken for HTML."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from msgspec import json

from forecast_ledger.projections.core.column_values import Column, ids
from forecast_ledger.projections.core.html import SHOWN_ROWS
from forecast_ledger.projections.core.table import Table

COLUMNS = (Column("who", "id", 'a "name" & more'), Column("score", "points", "the score"))
HOSTILE = [
    "<script>alert(1)</script>",
    "</td></table><img src=x onerror=alert(1)>",
    "\"' onmouseover='alert(1)",
    "&lt;b&gt;",
    "\u202egnp.exe",
    "a\x1b[2J\x00",
    "$\\def\\x{}$",
]


class Reader(HTMLParser):
    """The tags of a page with their attributes, and its texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, Any]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """Note a tag."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.texts += [data.strip()] * bool(data.strip())


def table(*names: str) -> Table:
    """A table with a row for each name, all with a score of 0.25."""
    return Table("board", 1, COLUMNS, (ids([*names]), [250_000_000] * len(names)))


def test_a_table_shows_its_columns_and_rows() -> None:
    """Numbers are to the right; a column's meaning is the title of its name; the last line counts the rows."""
    page = Reader(table("ada", "bo")._repr_html_())
    assert page.texts == ["who", "score", "ada", "0.250000000", "bo", "0.250000000", "2 rows"]
    assert [found["title"] for tag, found in page.tags if tag == "th"] == ['a "name" & more', "the score"]
    assert [found["style"] for tag, found in page.tags if tag == "td"] == ["text-align:left", "text-align:right"] * 2


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_text(name: str) -> None:
    """There are as many tags as for any other name; what cannot be seen is escaped, and no mathematics is typeset."""
    page = Reader(table(name)._repr_html_())
    assert [tag for tag, _ in page.tags] == ["table", "tr", "th", "th", "tr", "td", "td", "p"]
    assert all({*found} <= {"class", "title", "style"} for _, found in page.tags)
    assert "mathjax_ignore" in page.tags[0][1]["class"]
    shown = page.texts[2]
    assert shown == (name if name.isprintable() else name.encode("unicode_escape").decode())
    assert shown.isprintable()


def test_only_the_first_rows_are_shown() -> None:
    """A table may have millions of rows; the last line says how many."""
    page = Reader(table(*map(str, range(1_234)))._repr_html_())
    assert (page.texts[-1], page.texts[-3]) == (f"{SHOWN_ROWS} of 1,234 rows", str(SHOWN_ROWS - 1))
    assert [tag for tag, _ in page.tags].count("tr") == SHOWN_ROWS + 1


def test_a_table_without_rows_shows_its_columns() -> None:
    """And one row is not called rows; a missing value is empty."""
    assert Reader(table()._repr_html_()).texts == ["who", "score", "0 rows"]
    missing = Table("board", 1, COLUMNS, (ids(["ada"]), [None]))
    assert Reader(missing._repr_html_()).texts == ["who", "score", "ada", "1 row"]


def drawn(chart: Any) -> str:
    """What Vega draws of a specification, as SVG."""
    vega = pytest.importorskip("vl_convert", reason="Vega is not installed")
    return str(vega.vegalite_to_svg(json.encode(chart).decode(), vl_version="5.21"))


def test_a_chart_has_a_bar_for_each_row_in_their_order() -> None:
    """Vega reads the decimal text as numbers: the bar of 0.5 is twice as long as that of 0.25."""
    board = Table("board", 1, COLUMNS, (ids(["cy", "ada"]), [500_000_000, 250_000_000]))
    chart = board.chart()
    assert chart["data"]["values"] == [{"who": "cy", "score": "0.500000000"}, {"who": "ada", "score": "0.250000000"}]
    svg = drawn(chart)
    lengths = [float(each) for each in re.findall(r'aria-roledescription="bar" d="M0,[\d.]+h([\d.]+)v', svg)]
    assert len(lengths) == 2
    assert lengths[0] == pytest.approx(2 * lengths[1])
    assert svg.index(">cy<") < svg.index(">ada<")
    assert chart._repr_mimebundle_()["application/vnd.vegalite.v5+json"] == chart


def test_a_chart_over_time_has_a_line_for_each_id() -> None:
    """The instants are those of the table."""
    columns = (Column("who", "id", "who"), Column("at", "instant", "when"), Column("cash", "money", "how much"))
    table = Table("cash", 1, columns, (ids(["a", "b", "a"]), [0, 86_400 * 10**6, 2 * 86_400 * 10**6], [10**6] * 3))
    chart = table.chart(by="at")
    assert chart["mark"]["type"] == "line"
    assert chart["encoding"]["color"]["field"] == "who"
    assert chart["data"]["values"][1] == {"at": "1970-01-02T00:00:00Z", "cash": "1.00", "who": "b"}
    assert drawn(chart).count('aria-roledescription="line mark"') == 2


def test_names_in_a_chart_are_data() -> None:
    """Nothing that a log says is taken for an expression or for markup."""
    svg = drawn(table(*HOSTILE[:4], "datum.score", "]; alert(1)").chart())
    assert "<script" not in svg
    assert "<img" not in svg
    assert "datum.score" in svg


def test_a_chart_that_cannot_be_made_is_refused() -> None:
    """An unknown column, no numbers, too many rows."""
    with pytest.raises(KeyError, match="the columns of board are who, score"):
        table("ada").chart(value="scores")
    with pytest.raises(ValueError, match="no column with numbers"):
        Table("names", 1, COLUMNS[:1], (ids(["ada"]),)).chart()
    with pytest.raises(ValueError, match="5,000"):
        table(*map(str, range(5_001))).chart()
    assert len(table(*map(str, range(5_000))).chart()["data"]["values"]) == 5_000
