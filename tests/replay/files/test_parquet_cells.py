"""Commands from a Parquet file by a map."""

import io
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.core import parquet_files
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.cli.main import FINDINGS, FINE, USAGE
from forecast_ledger.replay.files.sheet_cells import read_parquet
from tests.replay.cli.test_main import opened, run

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

MAP = b"""
[[command]]
type = "submit_forecast"
id = "{n}"
[command.fields]
at = "{made}"
question = "rain"
participant = "{who}"
probability = "{p}"
"""
MADE = datetime(2026, 3, 2, 12, tzinfo=UTC)


def table(**columns: object) -> bytes:
    """Return a Parquet file, in row groups of two rows."""
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), file, row_group_size=2)
    return file.getvalue()


def forecasts(made: object = None, p: object = None, count: int = 3) -> bytes:
    """Return a Parquet file of forecasts, one minute apart."""
    times = [MADE.replace(minute=number) for number in range(count)]
    utc = pyarrow.timestamp("us", "UTC")
    return table(
        n=list(range(count)),
        who=["ada"] * count,
        made=pyarrow.array(times, utc) if made is None else made,
        p=["0.5"] * count if p is None else p,
    )


def send(folder: Path, given: bytes, *options: str, name: str = "in.parquet"):  # type: ignore[no-untyped-def]
    """Append a file by the map to a ledger that has one question; return what is printed."""
    log, map_, file = folder / "log.db", folder / "map.toml", folder / name
    map_.write_bytes(MAP)
    file.write_bytes(given)
    if not log.exists():
        assert run("append", str(log), "-", given=opened("o", question="rain")).exit_code == FINE
    return run("append", str(log), str(file), "--map", str(map_), *options)


@pytest.mark.parametrize(
    "made",
    [
        lambda: pyarrow.array(["0.1", "0.25", "0.75"]),
        lambda: pyarrow.array([Decimal("0.10"), Decimal("0.25"), Decimal("0.75")], pyarrow.decimal128(5, 2)),
        lambda: pyarrow.array([0.1, 0.25, 0.75], pyarrow.float64()),
        lambda: pyarrow.array([0.1, 0.25, 0.75], pyarrow.float32()),
        lambda: pyarrow.array(["0.1", "0.25", "0.75"]).dictionary_encode(),
    ],
    ids=["string", "decimal", "float64", "float32", "dictionary"],
)
def test_a_parquet_file_gives_the_commands_of_its_csv(tmp_path: Path, made: Callable[[], Any]) -> None:
    """A value is what its shortest text says, in every type; sent again as a CSV, each command is a duplicate."""
    assert '"accepted":3' in send(tmp_path, forecasts(p=made()), "--format", "json").stdout
    rows = [f"{n},ada,2026-03-02T12:0{n}:00Z,{text}\n" for n, text in enumerate(("0.1", "0.25", "0.75"))]
    again = send(tmp_path, "".join(["n,who,made,p\n", *rows]).encode(), "--format", "json", name="in.csv")
    assert '"duplicate":3' in again.stdout


def test_integers_and_nulls_are_texts() -> None:
    """An integer is written in full, a null is an empty cell, and spaces around a text are dropped."""
    given = table(a=[2**62, None, -1], b=[" x ", None, ""])
    rows = list(read_parquet(io.BytesIO(given), {"a", "b"}.__contains__))
    assert rows == [(1, ["a", "b"], b""), (1, [str(2**62), "x"], b""), (2, ["", ""], b""), (3, ["-1", ""], b"")]


def test_rows_are_numbered_through_all_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of a row counts from the beginning of the file, not from that of its batch or row group."""
    monkeypatch.setattr(parquet_files, "BATCH_ROWS", 64)
    count = 2 * 64 + 1
    rows = list(read_parquet(io.BytesIO(table(a=list(range(count)))), "a".__eq__))[1:]
    assert rows == [(n + 1, [str(n)], b"") for n in range(count)]


def test_an_instant_in_another_zone_is_the_same_instant() -> None:
    """12:00 UTC is stored as one number whatever the zone is called, and is written in UTC."""
    given = table(a=pyarrow.array([MADE], pyarrow.timestamp("ms", "Asia/Tokyo")))
    assert list(read_parquet(io.BytesIO(given), "a".__eq__))[1][1] == ["2026-03-02 12:00:00.000Z"]


def test_an_instant_without_a_zone_is_refused(tmp_path: Path) -> None:
    """Its instant is not known; the refusal names the row."""
    naive = pyarrow.array([MADE.replace(tzinfo=None)] * 3, pyarrow.timestamp("us"))
    found = send(tmp_path, forecasts(made=naive))
    assert found.exit_code == FINDINGS
    assert "row 1, submit_forecast, column 'made': naive_instant" in found.stderr


def test_a_value_out_of_range_refuses_its_row_alone(tmp_path: Path) -> None:
    """NaN is no probability; the rows around it are recorded, and the refused row is written as a CSV."""
    kept = tmp_path / "refused.csv"
    given = forecasts(p=pyarrow.array([0.5, 0.5, float("nan")]))
    found = send(tmp_path, given, "--refused", str(kept), "--format", "json")
    assert '"accepted":2' in found.stdout
    assert found.stderr.startswith("row 3, submit_forecast, column 'p': ")
    assert kept.read_bytes() == b"n,who,made,p\n2,ada,2026-03-02 12:02:00.000000Z,nan\n"


def test_nothing_is_recorded_from_a_damaged_file(tmp_path: Path) -> None:
    """Damage is found before the first command is recorded, in the last row group as in the footer."""
    whole = forecasts(count=50)
    for given in (whole[:-9], whole[:4], whole[: len(whole) // 2], b"PAR1" + b"\0" * 60 + b"PAR1"):
        found = send(tmp_path, given)
        assert found.exit_code != FINE
        assert "bad_csv" in found.stderr
    assert '"log_position":51' in send(tmp_path, whole, "--format", "json").stdout


def test_a_damaged_page_in_a_late_row_group_is_found_first() -> None:
    """Every row group is decoded before the first row is returned."""
    file = io.BytesIO()
    texts = [f"text {n}" for n in range(100)]
    writing = {"row_group_size": 10, "compression": "zstd", "write_page_checksum": True}
    parquet.write_table(pyarrow.table({"a": texts}), file, **writing)
    place = parquet.read_metadata(file).row_group(9).column(0)
    begin = place.dictionary_page_offset or place.data_page_offset
    damaged = bytearray(file.getvalue())
    damaged[begin : begin + place.total_compressed_size] = b"\xff" * place.total_compressed_size
    with pytest.raises(Refused, match="not a Parquet file that can be read"):
        read_parquet(io.BytesIO(bytes(damaged)), "a".__eq__)


def test_a_column_of_lists_is_refused_only_if_it_is_used() -> None:
    """A list has no one way to be written as a cell; a column that the map does not use is not read."""
    given = io.BytesIO(table(a=[[1, 2]], b=["x"]))
    with pytest.raises(Refused, match="has the type list"):
        read_parquet(given, "a".__eq__)
    assert list(read_parquet(given, "b".__eq__))[1] == (1, ["", "x"], b"")


def test_a_column_that_is_missing_is_refused(tmp_path: Path) -> None:
    """The columns of the map must be there, as in a CSV."""
    found = send(tmp_path, table(n=[1], who=["ada"], p=["0.5"]))
    assert "bad_csv" in found.stderr
    assert "is missing; the columns are: n, who, p" in found.stderr


def test_parquet_without_a_map_is_a_usage_error(tmp_path: Path) -> None:
    """No column says what a command is; the message asks for the map."""
    file = tmp_path / "in.parquet"
    file.write_bytes(forecasts())
    found = run("append", str(tmp_path / "log.db"), str(file))
    assert found.exit_code == USAGE
    assert "--map" in found.stderr
    assert not (tmp_path / "log.db").exists()
