"""Tables as Arrow, pandas and polars: the same values, exact."""

import sys
from decimal import Decimal
from fractions import Fraction
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pyarrow
import pytest

from forecast_ledger.ledger.core.errors import Refused, Unavailable
from forecast_ledger.projections.core.arrow import DECIMALS, type_of
from forecast_ledger.projections.core.column_values import KINDS, Column, Ids
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.reading.replay import Replay, replay
from tests.support.exports import export_log


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Replay:
    """The stories, replayed."""
    return replay(export_log(tmp_path_factory.mktemp("arrow") / "log.db"))


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


@pytest.mark.parametrize(
    ("kind", "value"),
    [("points", 10**38), ("fine_money", -(10**38)), ("count", 2**63)],
)
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
