"""Tables as Arrow, pandas and polars: the same values, exact."""

import re
import sys
import tracemalloc
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from msgspec import json

from forecast_ledger.ledger.core.errors import Refused, Unavailable
from forecast_ledger.ledger.segments import arrow_arrays
from forecast_ledger.projections.core import columns
from forecast_ledger.projections.core.columns import DECIMALS, KINDS, SHOWN_ROWS, Column, Ids, ids, type_of
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.reading.replay import Replay, replay
from tests.support.exports import export_commands, export_log
from tests.support.late import polars
from tests.support.logs import log_fixture

# --- Tables as Arrow, pandas and polars: the same values, exact.


stories = log_fixture(export_commands, "module", replay, refused=True)


def one_column(kind: str, *values: Any) -> Table:
    """A table of one column."""
    return Table("t", 1, (Column("c", kind, "what it means"),), (list(values),))


@pytest.mark.parametrize("kind", DECIMALS)
def test_a_decimal_has_as_many_decimals_as_its_kind_prints(kind: str) -> None:
    """One internal unit is one unit of the last decimal."""
    [exact] = one_column(kind, 1).to_arrow()["c"].to_pylist()
    assert Decimal(KINDS[kind].printed(1)) == exact == Decimal(1).scaleb(-DECIMALS[kind])
    assert one_column(kind, 1).to_arrow().schema.field("c").type == type_of(kind)


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_value_is_the_printed_one(stories: Replay, name: str) -> None:
    """In every table, decimals are equal to the last digit, instants to the microsecond, and counts are integers."""
    table = stories.table(name)
    arrow = table.to_arrow()
    arrow.validate(full=True)
    kinds = {column.name: column.kind for column in table.columns}
    for ours, theirs in zip(table.rows(), arrow.to_pylist(), strict=True):
        for column, value in ours.items():
            expected = value
            if value is not None and kinds[column] in DECIMALS:
                expected = Decimal(value)
            if value is not None and kinds[column] == "instant":
                assert theirs[column].utcoffset().total_seconds() == 0
                assert theirs[column].isoformat().replace("+00:00", "Z") == value
                continue
            assert theirs[column] == expected
    assert [field.metadata[b"meaning"].decode() for field in arrow.schema] == [
        column.meaning for column in table.columns
    ]


@pytest.mark.parametrize("values", [[-(2**63), 2**63 - 1, 0], [10**38 - 1, 1 - 10**38, None]])
def test_a_decimal_may_have_38_digits(values: list[int | None]) -> None:
    """Neither the array conversion of 64 bits nor the conversion of single integers rounds."""
    fast = [] if None in values else [Table("t", 1, (Column("c", "points", ""),), (np.array(values, np.int64),))]
    for table in (one_column("points", *values), *fast):
        exact = table.to_arrow()["c"].to_pylist()
        assert [None if value is None else Fraction(value) * 10**9 for value in exact] == values


@pytest.mark.parametrize(("kind", "value"), [("points", 10**38), ("fine_money", -(10**38)), ("count", 2**63)])
def test_a_value_that_does_not_fit_is_refused(kind: str, value: Any) -> None:
    """A decimal of more than 38 digits or a count of more than 64 bits is refused with the name of its column."""
    with pytest.raises(Refused) as refused:
        one_column(kind, value).to_arrow()
    assert (refused.value.code, refused.value.field) == ("out_of_range", "t.c")


def test_an_integer_and_a_take_have_no_bound() -> None:
    """Both kinds become text."""
    assert one_column("take", "1.5E+400", None).to_arrow()["c"].to_pylist() == ["1.5E+400", None]
    assert one_column("integer", 10**60, -1, None).to_arrow()["c"].to_pylist() == ["1" + "0" * 60, "-1", None]


def test_a_table_without_rows_has_its_types() -> None:
    """An empty column of ids, which has no labels, is a column of strings."""
    empty = Table("t", 1, (Column("i", "id", ""), Column("p", "points", "")), (Ids(np.zeros(0, np.int64), []), []))
    assert empty.to_arrow().schema.types == [pyarrow.string(), pyarrow.decimal128(38, 9)]


def id_column(count: int, *labels: str) -> Table:
    """A table of one column of ids, in which the labels take turns, except the first one, which no row has."""
    codes = np.arange(count) % (len(labels) - 1) + 1
    return Table("t", 1, (Column("c", "id", ""),), (Ids(codes, labels),))


@pytest.mark.parametrize("longest", ["cy", "雨" * 90, "x" * 150, "a\nb"], ids=range(4))
@pytest.mark.parametrize("most", [2**26, 1_000])
def test_ids_are_as_they_were(monkeypatch: pytest.MonkeyPatch, longest: str, most: int) -> None:
    """Of few bytes or many, put together as rows of characters or taken one by one."""
    monkeypatch.setattr(columns, "MOST_CHARACTERS", most)
    column = id_column(1_000, "nobody", "ada", "", longest).to_arrow()["c"]
    column.validate(full=True)
    assert column.num_chunks == 1
    assert column.to_pylist() == (["ada", "", longest] * 334)[:1_000]


@pytest.mark.parametrize("longest", ["cy", "雨" * 90], ids=range(2))
def test_ids_beyond_the_offsets_of_an_array_are_in_several(monkeypatch: pytest.MonkeyPatch, longest: str) -> None:
    """No array has more bytes than it may have; the values are the same."""
    for module in (columns, arrow_arrays):
        monkeypatch.setattr(module, "MOST_BYTES", 999)
    column = id_column(1_000, "nobody", "ada", "", longest).to_arrow()["c"]
    column.validate(full=True)
    assert all(sum(len(text.encode()) for text in chunk.to_pylist()) <= 999 for chunk in column.chunks)
    assert column.to_pylist() == (["ada", "", longest] * 334)[:1_000]


@pytest.mark.parametrize("longest", ["x" * 96, "x" * 150], ids=[96, 150])
def test_one_long_id_does_not_make_all_rows_long(longest: str) -> None:
    """Of a million rows, all as long as the longest id, the characters alone would take 96 MB or more."""
    table = id_column(10**6, "nobody", *map(str, range(1_000)), longest)
    tracemalloc.start()
    column = table.to_arrow()["c"]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert column[1_000].as_py() == longest
    assert most < 32_000_000  # bytes; two columns of numbers take 16 million


@pytest.mark.parametrize("name", ["scores", "leaderboard", "journal", "portfolio_snapshots"])
def test_data_frames_are_exact(stories: Replay, name: str) -> None:
    """Pandas over Arrow and polars hold the decimals themselves; no column of either is a float."""
    table = stories.table(name)
    expected = table.to_arrow().to_pylist()
    pandas = table.to_pandas()
    assert all(str(kind).endswith("[pyarrow]") and "double" not in str(kind) for kind in pandas.dtypes)
    for column in table.columns:
        if column.kind in DECIMALS:
            decimals = [None if value is pandas[column.name].dtype.na_value else value for value in pandas[column.name]]
            assert decimals == [row[column.name] for row in expected]
    frame = table.to_polars()
    assert not set(frame.dtypes) & {polars.Float32, polars.Float64}
    assert frame.to_dicts() == expected


def test_floats_are_the_nearest_ones(stories: Replay) -> None:
    """Each decimal becomes the float that Python reads from its text; other columns are NumPy's, for plots."""
    table = stories.table("leaderboard")
    frame = table.to_pandas(floats=True)
    for column in table.columns:
        expected = [row[column.name] for row in table.rows()]
        if column.kind in {*DECIMALS, "take"}:
            assert str(frame[column.name].dtype) == "float64"
            floats = [None if isnan(value) else value for value in frame[column.name]]
            assert floats == [None if text is None else float(text) for text in expected]
    wide = one_column("points", 2**53 + 1, None, -(10**37)).to_pandas(floats=True)
    assert [*wide["c"][[0, 2]]] == [9007199.254740993, -1e28]
    assert isnan(wide["c"][1])


def test_a_table_hands_itself_over_to_whatever_reads_arrow(stories: Replay) -> None:
    """By the Arrow PyCapsule interface: polars and pyarrow take a table as it is."""
    table = stories.table("scores")
    assert pyarrow.table(table).equals(table.to_arrow())
    assert polars.DataFrame(table).equals(table.to_polars())


def test_without_pyarrow_a_table_is_not_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the extra to install; a notebook still shows the table."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Unavailable, match="columnar"):
        one_column("count", 1).__arrow_c_stream__()
    with pytest.raises(Unavailable, match="columnar"):
        one_column("count", 1).to_pandas(floats=True)
    assert "<table" in one_column("count", 1)._repr_html_()


def test_without_pyarrow_the_error_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dependency pyarrow is optional."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Unavailable, match="columnar"):
        one_column("count", 1).to_arrow()


def test_a_replay_gives_tables_by_name(tmp_path: Path) -> None:
    """A table can be read as of a log position; an unknown name raises KeyError."""
    location = export_log(tmp_path / "log.db")
    assert len(replay(location, as_of=30).table("leaderboard")) == 0
    with pytest.raises(KeyError):
        replay(location).table("nothing")


# --- A table in a notebook: its rows as HTML, in which nothing that a log says is taken for HTML.


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
    with pytest.raises(KeyError, match="board has no column 'scores'; it has score, who"):
        table("ada").chart(value="scores")
    with pytest.raises(ValueError, match="no column with numbers"):
        Table("names", 1, COLUMNS[:1], (ids(["ada"]),)).chart()
    with pytest.raises(ValueError, match="5,000"):
        table(*map(str, range(5_001))).chart()
    assert len(table(*map(str, range(5_000))).chart()["data"]["values"]) == 5_000


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_says_which_library_it_needs(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And how to install it, as a missing extra does."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=f"a frame of {library} needs that library; run pip install {library}"):
        getattr(one_column("count", 1), f"to_{library}")()
