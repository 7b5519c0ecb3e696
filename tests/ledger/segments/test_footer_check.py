"""What a segment's Parquet file says about its rows is true, or full verification refuses it."""

import re
import shutil
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pyarrow import parquet

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.parquet_files import BYTES, LIST, LONG, STRUCT, Struct, write_struct
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.segments import segment_files
from forecast_ledger.ledger.segments.sealing import seal
from forecast_ledger.ledger.segments.segment_files import read_checked
from forecast_ledger.ledger.segments.segment_manifest import MANIFEST, SegmentManifest, describe_file, read_manifest
from forecast_ledger.replay.audit.verify import run_checks
from forecast_ledger.replay.reading.log import TRUSTS, Log
from forecast_ledger.replay.reading.replay import replay, summarize_parts
from tests.ledger.segments.test_segment_files import columns_of, segment_of
from tests.support import oracle
from tests.support.effort import LONG as EFFORT
from tests.support.effort import times
from tests.support.exports import export_log
from tests.support.footer_forging import parts, whole
from tests.support.given import forecast, numeric, opened
from tests.support.logs import rows
from tests.support.processes import Command

EVERY = max(1, 3600 // EFFORT)  # of about 37,000 changes, which take most of an hour; LONG=3600 tries all


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of the stories as one segment, with several row groups."""
    folder = tmp_path_factory.mktemp("sealed")
    every = rows(export_log(folder / "log.db"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(segment_files, "_GROUP", 100)
        seal(lambda after: iter([every[after:]]), "main", folder / "segments")
    return folder / "segments"


@pytest.fixture
def folder(sealed: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(sealed, tmp_path / "segments"))


def changed(folder: Path, change: Callable[[Struct], Any], kind: str = "forecasts") -> None:
    """Change the footer of a file, and list the file with the digest that it has then."""
    relisted(folder, kind, lambda data: with_footer(data, change))


def with_footer(data: bytes, change: Callable[[Struct], Any]) -> bytes:
    """A Parquet file with its footer changed."""
    body, footer = parts(data)
    change(footer)
    return whole(body, write_struct(footer))


def relisted(folder: Path, kind: str, change: Callable[[bytes], bytes]) -> None:
    """Change a file of the last segment, and list it with the digest that it has then."""
    manifest = read_manifest(folder)
    *earlier, segment = manifest.segments
    entry = getattr(segment, kind)
    path = folder / entry.name
    path.write_bytes(change(path.read_bytes()))
    now = replace(segment, **{kind: describe_file(path, entry.rows)})
    listed = reduce(SegmentManifest.with_segment, [*earlier, now], SegmentManifest(manifest.ledger))
    (folder / MANIFEST).write_bytes(msgspec.json.encode(listed))


def metadata(footer: Struct, column: str) -> Struct:
    """The metadata of a column in the first row group."""
    chunks = [chunk[3][1] for chunk in footer[4][1][1][0][1][1][1]]
    found: Struct = next(chunk for chunk in chunks if chunk[3][1][1][0] == column.encode())
    return found


@given(oracle.logs(), st.booleans())
@settings(max_examples=times(10), deadline=None)
def test_what_we_write_is_true(commands: list[AnyCommand], differ: bool) -> None:
    """With any values, in any number of row groups, in either encoding of the numbers, and in an empty file."""
    with TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patched:
        patched.setattr(segment_files, "_differ", lambda _: differ)
        patched.setattr(segment_files, "_GROUP", 3)
        read_checked(Path(place), segment_of(Path(place), columns_of(commands)))


def test_many_pages_and_long_values_are_checked(tmp_path: Path) -> None:
    """A column of several pages, and an event longer than the statistics of pyarrow may be."""
    depths = [f"0.{n:03}" for n in range(1, 999)]
    long = forecast("depth", cdf=[0, *depths, 1])
    said = [opened(title="x" * 5_000), numeric(bins=999), *(replace(long, participant=f"p{n}") for n in range(200))]
    segment = segment_of(tmp_path, columns_of(said))
    path = tmp_path / segment.forecasts.name
    chunk = metadata(parts(path.read_bytes())[1], "numbers")
    assert sum(each[3][1] for each in chunk[13][1][1] if each[1][1] == 0) > 1  # pages of data
    read_checked(tmp_path, segment)


def of_statistics(column: str, **values: tuple[int, Any] | None) -> Callable[[Struct], None]:
    """A change of the statistics of a column: fields by `f` and their number, None for one that is taken out."""

    def change(footer: Struct) -> None:
        found = metadata(footer, column)[12][1]
        for name, value in values.items():
            if value is None:
                del found[int(name[1:])]
            else:
                found[int(name[1:])] = value

    return change


def of_column(column: str, number: int, value: tuple[int, Any]) -> Callable[[Struct], None]:
    """A change of a field in the metadata of a column."""
    return lambda footer: metadata(footer, column).__setitem__(number, value)


def of_chunk(number: int, value: tuple[int, Any]) -> Callable[[Struct], None]:
    """A change of a field of the first column of the first row group."""
    return lambda footer: footer[4][1][1][0][1][1][1][0].__setitem__(number, value)


def of_footer(number: int, value: Callable[[Any], tuple[int, Any]]) -> Callable[[Struct], None]:
    """A change of a field of the footer."""
    return lambda footer: footer.__setitem__(number, value(footer[number]))


ZERO, NOTE = (8).to_bytes(8, "little"), {1: (BYTES, b"pandas"), 2: (BYTES, b"{}")}
LIES: dict[str, tuple[Callable[[Struct], Any], str]] = {
    "the least and the greatest id": (of_statistics("question", f5=(BYTES, b"zz"), f6=(BYTES, b"zz")), "field 12"),
    "withdrawals": (of_statistics("made", f5=(BYTES, b"\0"), f6=(BYTES, b"\0")), "field 12"),
    "the least number": (of_statistics("numbers", f6=(BYTES, ZERO)), "field 12, field 6"),
    "the least number, as before": (of_statistics("numbers", f2=(BYTES, ZERO)), "field 12, field 2"),
    "nulls": (of_statistics("until", f3=(LONG, 0)), "field 12, field 3"),
    "different values": (of_statistics("question", f4=(LONG, 1)), "field 12, field 4"),
    "values": (of_column("position", 5, (LONG, 99)), "values, not 99"),
    "a histogram of another size": (
        of_column("numbers", 16, (STRUCT, {3: (LIST, (LONG, [1]))})),
        "histogram size mismatch",
    ),
    "a filter": (of_column("position", 14, (LONG, 4)), "field 14"),
    "another file": (of_chunk(1, (BYTES, b"other.parquet")), "in another file"),
    "an index of pages": (of_chunk(6, (LONG, 4)), "field 6"),
    "a note to readers": (of_footer(5, lambda kept: (LIST, (STRUCT, [*kept[1][1], NOTE]))), "field 5"),
    "another Arrow schema": (
        of_footer(5, lambda _: (LIST, (STRUCT, [{1: (BYTES, b"A"), 2: (BYTES, b"")}]))),
        "field 5",
    ),
    "another writer": (of_footer(6, lambda _: (BYTES, b"parquet-mr version 1.8.0")), "another writer"),
    "another order of values": (of_footer(7, lambda kept: (LIST, (STRUCT, kept[1][1][1:]))), "ColumnOrder"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_footer_that_lies_is_refused(folder: Path, lie: str) -> None:
    """Full verification reports the file at the first log position of the segment, and the place in its metadata."""
    change, says = LIES[lie]
    changed(folder, change)
    [damage] = run_checks(Log(folder)).damage
    assert (damage.check, damage.position) == ("store", 1)
    assert re.search(rf"forecasts\.parquet: .*{says}", str(damage))


def test_what_older_versions_do_not_write_may_be_missing(folder: Path) -> None:
    """Statistics, in part or as a whole; and the number of a row group may be there."""
    exact = of_statistics("question", f7=None, f8=None)
    for change in (exact, lambda footer: metadata(footer, "made").pop(12)):
        changed(folder, change)
        read_checked(folder, read_manifest(folder).segments[0])


def test_a_footer_that_can_be_read_in_two_ways_is_refused(folder: Path) -> None:
    """A number in more bytes than it needs: another reader may take it differently."""

    def longer(data: bytes) -> bytes:
        body, footer = parts(data)
        written = write_struct(footer)
        assert written[:2] == b"\x15\x04"  # the first field, a number: 2
        return whole(body, b"\x15\x84\x00" + written[2:])

    relisted(folder, "forecasts", longer)
    assert parquet.read_metadata(next(folder.glob("*.forecasts.parquet"))).num_rows > 0
    with pytest.raises(Corrupt, match="can be read in two ways"):
        read_checked(folder, read_manifest(folder).segments[0])


@pytest.mark.parametrize("engine", ["local", "auto"])
def test_no_statistics_change_a_table(folder: Path, engine: Any) -> None:
    """Whatever is trusted: nothing is read by what the footer says of the values."""

    def tables(trust: Any) -> Any:
        found = replay(folder, trust=trust, engine=engine).projections
        return summarize_parts(found, ["scores", "leaderboard", "prizes", "forecasts"])

    right = tables("rows")
    assert right["prizes"].rows > 0
    for lie in ("the least and the greatest id", "withdrawals", "nulls", "different values"):
        changed(folder, LIES[lie][0])
    assert [tables("rows"), tables("files")] == [right, right]


FORGING = "from tests.support import footer_forging; footer_forging.run()"


def test_no_change_of_a_footer_misleads_a_reader_or_ends_the_process(sealed: Path) -> None:
    """Each field is changed in several ways, and each byte: refused, or without effect for pyarrow, DuckDB, polars."""
    ended = Command(str(sealed), str(EVERY), program=FORGING).ended(6_000)
    assert ended.returncode == 0, (ended.stdout[-500:], ended.stderr)
    *lines, last = ended.stdout.splitlines()
    assert [line for line in lines if not line.startswith("trying")] == []
    found = re.fullmatch(r"tried (\d+), accepted (\d+)", last)
    assert found is not None
    tried, accepted = map(int, found.groups())
    assert tried == sum(line.startswith("trying") for line in lines) > 37_000 // EVERY * 2 // 3
    assert accepted < tried // 5


def test_other_events_in_another_order_than_the_log_are_refused(folder: Path) -> None:
    """The rows built of them are right, and so is every digest; but events are filed as they come."""
    [segment] = read_manifest(folder).segments
    path = folder / segment.others.name
    table = segment_files.read_table(folder, segment, "others")

    def reversed_rows(_: bytes) -> bytes:
        path.unlink()
        segment_files.write_table(path, table.take([*range(len(table))][::-1]))
        return path.read_bytes()

    relisted(folder, "others", reversed_rows)
    for trust in TRUSTS:
        with pytest.raises(Corrupt, match="not in the order of the log"):
            replay(folder, trust=trust)
    assert [damage.check for damage in run_checks(Log(folder)).damage] == ["store"]
