"""A table in a notebook: its rows as HTML, in which nothing that a log says is taken for HTML."""

from html.parser import HTMLParser
from typing import Any

import pytest

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
