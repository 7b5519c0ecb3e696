"""Files of segments: each column comes back as it was written, whatever its numbers and in however many parts."""

import sys
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pyarrow import parquet

from forecast_ledger.ledger.core import parquet_files
from forecast_ledger.ledger.core.errors import Corrupt, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import START, Checkpoint
from forecast_ledger.ledger.segments import segment_files
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns, to_columns
from forecast_ledger.ledger.segments.segment_files import (
    RowGroup,
    read_checked,
    read_columns,
    read_forecasts,
    write_table,
)
from forecast_ledger.ledger.segments.segment_manifest import VERSION, Segment, check_file, describe_file
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import forecast, numeric, opened, withdrawal


def columns_of(commands: list[Any]) -> SegmentColumns:
    """The columns of the log of some commands."""
    records = oracle.attempted(commands)[0]
    rows = [log.seal(each)[0] for each in records]
    return to_columns(rows, log.unseal(rows, START))


def segment_of(folder: Path, columns: SegmentColumns) -> Segment:
    """Columns written as the files of a segment."""
    files: dict[str, Any] = {}
    for name, table in zip(columns._fields, columns, strict=True):
        path = folder / f"000000000001-000000000009.{name}.parquet"
        write_table(path, table)
        files[name] = describe_file(path, len(table))
    last = Checkpoint(sum(map(len, columns.rows)), "0" * 64)
    return Segment(
        first=1, last=last.position, previous="", digest=last.digest, marks=(), version=VERSION, **files
    )  # fmt: skip


@pytest.fixture(autouse=True)
def two_rows_in_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file has several row groups."""
    monkeypatch.setattr(segment_files, "_GROUP", 2)


@given(oracle.logs(), st.booleans())
@settings(max_examples=times(10), deadline=None)
def test_every_column_comes_back(commands: list[AnyCommand], differ: bool) -> None:
    """Also those that have one value or none in all rows."""
    columns = columns_of(commands)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(segment_files, "_differ", lambda _: differ)
        segment = segment_of(Path(folder), columns)
        for name, found, written in zip(columns._fields, read_columns(Path(folder), segment), columns, strict=True):
            assert found.schema == written.schema
            assert found.to_pylist() == written.to_pylist()
            plain = parquet.read_table(next(Path(folder).glob(f"*.{name}.parquet")))
            assert [{"provenance": None} | row for row in plain.to_pylist()] == [
                row if name != "quotes" else {"provenance": None} | row for row in found.to_pylist()
            ]


DEPTH = [opened(), numeric()]
MADE = [forecast(participant=f"p{n}") for n in range(5)]
CDF = forecast("depth", cdf=[0, "0.1", "0.4", "0.9", 1])


@pytest.mark.parametrize(
    ("said", "made", "form"),
    [
        (MADE, {True}, {"probabilities"}),
        ([*MADE, withdrawal(participant="p0")], {True, False}, {"probabilities", None}),
        ([*MADE, CDF], {True}, {"probabilities", "cdf"}),
        ([CDF], {True}, {"cdf"}),
    ],
)
def test_columns_of_one_value_and_of_several(said: list[Any], made: set[Any], form: set[Any], tmp_path: Path) -> None:
    """One value more, in the last row group, is not lost."""
    columns = columns_of([*DEPTH, *said])
    found = read_columns(tmp_path, segment_of(tmp_path, columns)).forecasts
    assert {*found["made"].to_pylist()} == made
    assert {*found["form"].to_pylist()} == form
    assert {*found["attestation"].to_pylist()} == {None}
    assert found.to_pylist() == columns.forecasts.to_pylist()


def test_statistics_that_lie_change_nothing_that_is_read(tmp_path: Path) -> None:
    """Forecasts on some questions are found by the ids in the file, not by those that its footer states."""
    columns = columns_of(
        [opened("qa"), opened("qb"), *(forecast(q, participant=p) for q in ("qa", "qb") for p in "ab")]
    )
    segment = segment_of(tmp_path, columns)
    path = tmp_path / segment.forecasts.name
    data = bytearray(path.read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for question in (b"qa", b"qb"):  # the greatest and the least id of each row group
        for _ in range(2):
            at = data.index(b"\x02" + question, footer)
            data[at + 1 : at + 3] = b"zz"
    path.write_bytes(data)
    footer_now = parquet.read_metadata(path)
    place = footer_now.schema.names.index("question")
    assert [footer_now.row_group(n).column(place).statistics.min for n in range(2)] == ["zz", "zz"]
    assert read_columns(tmp_path, segment).forecasts.to_pylist() == columns.forecasts.to_pylist()
    for asked in ("qa", "qb"):
        found = read_forecasts(tmp_path, segment, [asked])
        assert found["question"].to_pylist() == [asked, asked]
        assert found["participant"].to_pylist() == ["a", "b"]
    assert not len(read_forecasts(tmp_path, segment, ["zz"]))


@pytest.mark.parametrize("group", [2, 1 << 14])
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [2, 3, 0, 1], [0, 2, 1, 3], [3, 0, 2, 1]])
def test_rows_in_any_order_are_found_by_their_questions(
    order: list[int], group: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seal writes them in order of ids, by which they are found quickly; another program need not."""
    monkeypatch.setattr(segment_files, "_GROUP", group)
    said = [forecast(q, participant=p) for q in ("qa", "qb") for p in "ab"]
    columns = columns_of([opened("qa"), opened("qb"), *said])
    forecasts = columns.forecasts.take(pa.array(order))
    segment = segment_of(tmp_path, columns._replace(forecasts=forecasts))
    rows = forecasts.to_pylist()
    for asked in (["qa"], ["qb"], ["qa", "qb"], ["q", "qa"], ["qa", "qb", "z"], ["qaa"]):
        assert read_forecasts(tmp_path, segment, asked).to_pylist() == [row for row in rows if row["question"] in asked]


def test_a_part_of_a_row_group_that_is_not_kept_is_a_copy(tmp_path: Path) -> None:
    """Memory then holds no other rows of this group. All of a group is no copy."""
    people = {"q": "a", "qa": "ab", "qb": "ab"}
    said = [forecast(q, participant=p) for q in people for p in people[q]]
    segment, kept = segment_of(tmp_path, columns_of([*map(opened, people), *said])), dict[int, RowGroup]()
    found = read_forecasts(tmp_path, segment, ["qa", "qb"], kept=kept)
    assert (found["question"].to_pylist(), [*kept]) == (["qa", "qa", "qb", "qb"], [2])
    part, whole, _ = found["position"].chunks
    assert part.get_total_buffer_size() == 8
    assert whole.get_total_buffer_size() == len(said) * 8


@pytest.mark.parametrize("asked", [[], ["qa"], ["zz"]])
def test_a_file_that_lacks_rows_is_found_whichever_questions_are_read(asked: list[str], tmp_path: Path) -> None:
    """Also if it has no forecasts on them: those that are missing may be just these."""
    segment = segment_of(tmp_path, columns_of([opened("qb"), *(forecast("qb", participant=p) for p in "ab")]))
    forged = replace(segment, forecasts=replace(segment.forecasts, rows=3))
    assert not len(read_forecasts(tmp_path, segment, asked))
    with pytest.raises(Corrupt, match="it has 2 rows, not 3"):
        read_forecasts(tmp_path, forged, asked)


def encodings(folder: Path, said: list[Any]) -> set[str]:
    """The encodings of the numbers of forecasts."""
    folder.mkdir()
    segment = segment_of(folder, columns_of([*DEPTH, *said]))
    file = parquet.ParquetFile(folder / segment.forecasts.name)
    return {*file.metadata.row_group(0).column(file.schema_arrow.names.index("numbers")).encodings}


@pytest.mark.parametrize("is_named", [sys.platform != "win32", False])
def test_threads_read_a_file_without_pythons_lock(
    is_named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the name that the system has for an open file; where it has none, they read Python's file."""
    path = tmp_path / "file"
    path.write_bytes(b"PAR1")
    if not is_named:
        monkeypatch.setattr(segment_files, "_OPEN_FILES", f"{tmp_path}/none")
    with path.open("rb") as file, segment_files._for_threads(file) as source:
        assert source.read() == b"PAR1"
        assert isinstance(source, pa.NativeFile) == is_named


def test_numbers_that_differ_are_written_as_differences(tmp_path: Path) -> None:
    """Those that repeat are not: compressed as they are, they are smaller."""
    assert "DELTA_BINARY_PACKED" not in encodings(tmp_path / "same", MADE)
    unlike = [forecast(participant=f"p{n}", probability=f"0.{n}1234567") for n in range(1, 9)]
    assert "DELTA_BINARY_PACKED" in encodings(tmp_path / "unlike", unlike)


def test_a_column_that_lacks_values_is_refused(tmp_path: Path) -> None:
    """A file that somebody else wrote may lack a value that every row has."""
    columns = columns_of([*DEPTH, *MADE])
    place = columns.forecasts.schema.names.index("claimed_at")
    field = columns.forecasts.schema.field(place).with_nullable(True)
    lacking = columns.forecasts.set_column(place, field, pa.nulls(len(columns.forecasts), field.type))
    with pytest.raises(Corrupt, match="claimed_at is missing in 5 rows"):
        read_columns(tmp_path, segment_of(tmp_path, columns._replace(forecasts=lacking)))


@pytest.mark.parametrize("kind", ["forecasts", "others"])
@pytest.mark.parametrize("recorded_at", [-62_135_596_800_000_001, 253_402_300_800_000_000])
def test_a_row_that_was_recorded_outside_the_calendar_is_refused(kind: str, recorded_at: int, tmp_path: Path) -> None:
    """The log position of the row is named, though its digest is not computed."""
    columns = columns_of([*DEPTH, *MADE])
    table = getattr(columns, kind)
    place = table.schema.names.index("recorded_at")
    instants = [*table["recorded_at"].cast(pa.int64()).to_pylist()[:-1], recorded_at]
    changed = table.set_column(place, table.schema.field(place), pa.array(instants).cast(pa.timestamp("us", "UTC")))
    with pytest.raises(Corrupt, match="recorded_at is not within the years 1 to 9999") as refused:
        read_columns(tmp_path, segment_of(tmp_path, columns._replace(**{kind: changed})))
    assert refused.value.position == {"forecasts": 7, "others": 2}[kind]


def test_a_number_that_a_list_lacks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A probability that a file does not have is not taken for one, though the list of a forecast is there."""
    columns = columns_of([*DEPTH, *MADE])
    lists = columns.forecasts["numbers"].combine_chunks()
    numbers = pa.array([None, *lists.flatten().to_pylist()[1:]], pa.int64())
    lacking = pa.ListArray.from_arrays(pa.array(lists.offsets), numbers, mask=lists.is_null())
    place = columns.forecasts.schema.names.index("numbers")
    forecasts = columns.forecasts.set_column(place, pa.field("numbers", lacking.type), lacking)
    monkeypatch.setattr(segment_files, "_differ", lambda _: False)
    segment = segment_of(tmp_path, columns._replace(forecasts=forecasts))
    for read in (read_columns, lambda folder, segment: read_forecasts(folder, segment, ["depth", "rain"])):
        with pytest.raises(Corrupt, match="1 of numbers are missing"):
            read(tmp_path, segment)


def test_files_that_the_process_may_not_open_now_are_not_damaged(tmp_path: Path) -> None:
    """Too many are open. With one more, they are read: pyarrow needs no second one."""
    resource = pytest.importorskip("resource")  # not on Windows
    segment = segment_of(tmp_path, columns_of([opened(), forecast()]))
    limits, columns = resource.getrlimit(resource.RLIMIT_NOFILE), read_columns(tmp_path, segment)
    with (tmp_path / "next").open("w") as file:
        lowest = file.fileno()
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 1, limits[1]))
        assert read_columns(tmp_path, segment) == columns
        check_file(tmp_path, segment.forecasts, 1)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
        for read in (lambda: read_columns(tmp_path, segment), lambda: check_file(tmp_path, segment.forecasts, 1)):
            with pytest.raises(Unavailable, match="Too many open files"):
                read()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_rows_that_are_nearly_the_same_can_be_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that a reader would refuse as too large for its size is written without compression."""
    said: list[Any] = [opened(), *(forecast(participant=f"p{n}", probability="0.5") for n in range(2_000))]
    columns = columns_of(said)
    monkeypatch.setattr(segment_files, "_GROUP", 1 << 14)
    monkeypatch.setattr(parquet_files, "FREE_BYTES", 0)
    for ratio, codec in ((200, "ZSTD"), (2, "UNCOMPRESSED")):
        monkeypatch.setattr(parquet_files, "MOST_RATIO", ratio)
        (folder := tmp_path / codec).mkdir()
        segment = segment_of(folder, columns)
        assert parquet.read_metadata(folder / segment.forecasts.name).row_group(0).column(0).compression == codec
        assert read_columns(folder, segment).forecasts.to_pylist() == columns.forecasts.to_pylist()


def test_row_groups_are_too_large_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of all row groups count, not those of each: verification would take time out of proportion."""
    said: list[Any] = [opened(), *(forecast(participant=f"p{n}", probability="0.5") for n in range(8))]
    segment = segment_of(tmp_path, columns_of(said))
    monkeypatch.setattr(parquet_files, "MOST_RATIO", 0)
    monkeypatch.setattr(parquet_files, "FREE_BYTES", 100_000)
    read_checked(tmp_path, segment)
    file = parquet.ParquetFile(tmp_path / segment.forecasts.name)
    assert file.num_row_groups == 4
    monkeypatch.setattr(parquet_files, "FREE_BYTES", 2 * max(file.read_row_group(n).nbytes for n in range(4)))
    with pytest.raises(Corrupt, match="rows take more than"):
        read_checked(tmp_path, segment)


@pytest.mark.parametrize(("long", "too_large"), [(20, True), (2, False)])
def test_labels_count_as_the_texts_that_they_stand_for(
    long: int, too_large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of twenty rows some have an id of 10,000 letters, which is in the file once; 100,000 bytes are allowed."""
    columns = columns_of([opened(), *(forecast(participant=f"p{n}") for n in range(20))])
    ids = pa.DictionaryArray.from_arrays(pa.array([0] * long + [1] * (20 - long), pa.int32()), ["x" * 10_000, "y"])
    place = columns.forecasts.schema.names.index("participant")
    forecasts = columns.forecasts.set_column(place, columns.forecasts.schema.field(place), ids)
    monkeypatch.setattr(segment_files, "_GROUP", 1 << 14)
    segment = segment_of(tmp_path, columns._replace(forecasts=forecasts))
    monkeypatch.setattr(parquet_files, "MOST_RATIO", 0)
    monkeypatch.setattr(parquet_files, "FREE_BYTES", 100_000)
    for without in ((), ("command_id", "provenance", "attestation")):  # texts, whose rows are counted one by one
        with pytest.raises(Corrupt, match="rows take more than") if too_large else nullcontext():
            read_forecasts(tmp_path, segment, ["rain"], without=without)
