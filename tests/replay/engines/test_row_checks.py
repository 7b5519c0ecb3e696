"""Rows of segments that are checked side by side: intact where the reading of one after the other finds nothing."""

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.segments import arrow_arrays, segment_columns, segment_manifest
from forecast_ledger.ledger.segments.sealing import seal
from forecast_ledger.ledger.segments.segment_files import read_columns, write_table
from forecast_ledger.ledger.segments.segment_manifest import MANIFEST, SegmentManifest, describe_file, read_manifest
from forecast_ledger.ledger.storing import segment_rows
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.replay.engines import row_checks
from forecast_ledger.replay.engines.row_checks import are_intact, ranges_are_intact, row_ranges
from forecast_ledger.replay.reading import log as reading_log
from forecast_ledger.replay.reading.replay import replay, summarize_tables
from tests.support.effort import LONG
from tests.support.logs import commands_of, light, written

pytestmark = pytest.mark.usefixtures("quickly_sealed")

ROWS, MARK = 37, 8  # of a segment; of a digest in the manifest


@pytest.fixture
def small_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A digest in the manifest for each of eight rows, and five rows rebuilt at once."""
    for module in (segment_manifest, segment_rows, row_checks):
        monkeypatch.setattr(module, "MARKED", MARK)
    monkeypatch.setattr("forecast_ledger.ledger.segments.sealing.MARKED", MARK)
    monkeypatch.setattr(segment_columns, "AT_ONCE", 5)


def sealed(folder: Path) -> tuple[Path, SegmentManifest]:
    """The segments of a story."""
    store = StoredLog.open(written(folder / "log.db", map(light, commands_of("autocast-2022"))), "main", read_only=True)
    seal(store.pages, "main", folder / "s", ROWS)
    store.close()
    return folder / "s", read_manifest(folder / "s")


def forge(folder: Path, position: int) -> SegmentManifest:
    """Record a row a microsecond later, and make the manifest state the file as it is; digests stay as they were."""
    manifest = SegmentManifest("main")
    for segment in read_manifest(folder).segments:
        entries = {}
        for kind in ("forecasts", "others"):
            table, entry = getattr(read_columns(folder, segment), kind), getattr(segment, kind)
            if position in (positions := table["position"].to_pylist()):
                at = arrow_arrays.integers(table["recorded_at"]).copy()
                at[positions.index(position)] += 1
                place = table.schema.names.index("recorded_at")
                column = arrow_arrays.pyarrow().array(at).cast(table.schema.field(place).type)
                (folder / entry.name).unlink()
                write_table(folder / entry.name, table.set_column(place, table.schema.field(place), column))
                entries[kind] = describe_file(folder / entry.name, entry.rows)
        manifest = manifest.with_segment(structs.replace(segment, **entries))
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return manifest


@pytest.mark.usefixtures("small_marks")
def test_ranges_have_each_row_once_and_end_with_a_digest_of_the_manifest(tmp_path: Path) -> None:
    """One for each segment at least; with many processors, one for each mark."""
    _, manifest = sealed(tmp_path)
    lasts = [segment.last for segment in manifest.segments]
    for count in (1, 2, 3, 7, 1_000):
        ranges = row_ranges(manifest, count)
        assert (ranges[0].after, ranges[-1].end) == (0, manifest.end.position)
        assert all(one.end == other.after for one, other in pairwise(ranges))
        for number, after, end in ranges:
            segment = manifest.segments[number]
            assert segment.first <= after + 1 <= end <= segment.last
            assert end % MARK == 0 or end in lasts
    assert len(row_ranges(manifest, 1)) == len(lasts)
    assert len(ranges) == len({*lasts, *range(MARK, manifest.end.position, MARK)})


@pytest.mark.usefixtures("small_marks")
def test_a_changed_row_is_found_in_its_range_alone(tmp_path: Path) -> None:
    """At either end of a range and within it; the ranges after it begin with digests of the manifest.

    The range and those beside it are checked; in a long run, all.
    """
    folder, whole = sealed(tmp_path)
    for position in (1, MARK, MARK + 1, ROWS, ROWS + 1, whole.end.position):
        own = tmp_path / str(position)
        own.mkdir()
        for file in folder.iterdir():
            (own / file.name).write_bytes(file.read_bytes())
        manifest = forge(own, position)
        ranges = row_ranges(manifest, 1_000)
        own_range = next(each for each in ranges if each.after < position <= each.end)
        place = ranges.index(own_range)
        near = ranges if LONG > 1 else ranges[max(place - 1, 0) : place + 2]
        wrong = [each for each in near if not ranges_are_intact(own, manifest.segments[-1].chain, [each])]
        assert wrong == [own_range]
    assert ranges_are_intact(folder, whole.segments[-1].chain, ranges)
    assert not ranges_are_intact(folder, manifest.segments[-1].chain, ranges)  # of another manifest


def test_processes_find_what_one_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tables of intact rows, and the same error at a changed one, which the digests of files do not show."""
    folder, manifest = sealed(tmp_path)
    alone = summarize_tables(replay(folder).projections.facts)
    asked: list[bool] = []

    def noted(*given: object) -> bool:
        asked.append(are_intact(*given))  # type: ignore[arg-type]
        return asked[-1]

    monkeypatch.setattr(row_checks, "MANY", 0)
    monkeypatch.setattr(row_checks, "processors", lambda: 2)
    monkeypatch.setattr(reading_log, "are_intact", noted)
    assert summarize_tables(replay(folder).projections.facts) == alone
    replay(folder, engine="local")
    replay(folder, memory=1 << 30, engine="local")
    assert asked == [True]
    forge(folder, manifest.end.position - 1)
    found = []
    for many in (0, 1 << 30):
        monkeypatch.setattr(row_checks, "MANY", many)
        with pytest.raises(Corrupt) as damage:
            replay(folder)
        found.append(damage.value.args)
    assert found[0] == found[1]
    assert asked == [True, False, False]
