"""The counts that a segment keeps of its forecasts: what they say, what is read from them, and what is not believed."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from msgspec import UNSET
from msgspec.structs import replace
from pyarrow import parquet

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model.events import Attestation
from forecast_ledger.ledger.segments import sealing, segment_files
from forecast_ledger.ledger.segments.forecast_counts import count_forecasts, counts_schema
from forecast_ledger.ledger.segments.sealing import seal
from forecast_ledger.ledger.segments.segment_files import (
    counted_ends,
    group_ends,
    read_columns,
    read_forecasts,
    write_table,
)
from forecast_ledger.ledger.segments.segment_manifest import (
    MANIFEST,
    Segment,
    SegmentManifest,
    describe_file,
    read_manifest,
)
from forecast_ledger.projections.facts import from_segments
from forecast_ledger.replay.audit.verify import run_checks
from forecast_ledger.replay.engines import log_frame
from forecast_ledger.replay.engines.engines import Engine, InParts, divided
from forecast_ledger.replay.reading import log as reading
from forecast_ledger.replay.reading.log import Cut, Log, Trust, WithSegments
from forecast_ledger.replay.reading.replay import TableSummary, replay, summarize_parts
from tests.ledger.segments.test_segment_files import columns_of, segment_of
from tests.support.given import contest, day, forecast, micros, opened, withdrawal
from tests.support.logs import commands_of, log_fixture, rows, written

path = log_fixture(
    lambda: commands_of("metaculus-2022"), "module", at=range(micros(20), micros(21), 10**6)
)  # 34 events, a second after each other
TABLES = ["leaderboard", "standing", "scores"]
Change = Callable[[list[dict[str, Any]]], Any]


@pytest.fixture(scope="module")
def sealed(path: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its segments of 10 events; those with forecasts keep their counts."""
    every, folder = rows(path), tmp_path_factory.mktemp("counted") / "segments"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sealing, "_MANY_FORECASTS", 1)
        seal(lambda after: iter([every[after:]]), "main", folder, 10)
    return folder


@pytest.fixture
def folder(sealed: Path, tmp_path: Path) -> Path:
    """A copy of them."""
    return Path(shutil.copytree(sealed, tmp_path / "segments"))


@pytest.fixture(scope="module")
def right(path: str) -> dict[str, TableSummary]:
    """The tables of the log."""
    return summarize_parts(replay(path).projections, TABLES)


def counts_in(folder: Path, segment: Segment) -> list[dict[str, Any]]:
    """The rows of the file of counts of a segment."""
    assert segment.counts is not UNSET
    found: list[dict[str, Any]] = parquet.read_table(folder / segment.counts.name).to_pylist()
    return found


def listed(folder: Path, number: int, counts: list[dict[str, Any]] | None) -> int:
    """List other counts of a segment, or none; return its first log position."""
    entry = None if counts is None else pa.Table.from_pylist(counts, schema=counts_schema())
    return listed_file(folder, number, "counts", entry)


def listed_file(folder: Path, number: int, kind: str, table: Any) -> int:
    """List another file of a segment, or none; return its first log position."""
    manifest = read_manifest(folder)
    segments = [*manifest.segments]
    segment = segments[number]
    entry: Any = UNSET
    if table is not None:
        name = segment.forecasts.name.replace("forecasts", kind)
        (folder / name).unlink(missing_ok=True)
        write_table(folder / name, table)
        entry = describe_file(folder / name, len(table))
    segments[number] = replace(segment, **{kind: entry})
    forged = SegmentManifest(manifest.ledger)
    for each in segments:
        forged = forged.with_segment(each)
    (folder / MANIFEST).write_bytes(msgspec.json.encode(forged))
    return segment.first


def test_counts_are_of_each_question_and_then_of_each_participant() -> None:
    """With their latest instants, in order of ids; a withdrawal is a row too."""
    said = [
        forecast("qb", "bo", at=day(10)),
        forecast("qb", "ada", at=day(11)),
        forecast("qa", "bo", at=day(12)),
        withdrawal("qb", "bo", at=day(13)),
    ]
    forecasts = columns_of([opened("qb"), opened("qa"), opened("qc"), *said]).forecasts
    recorded = {row["position"]: row["recorded_at"] for row in forecasts.to_pylist()}
    counts = count_forecasts(forecasts)
    ids_and_rows = [(row["question"], row["participant"], row["rows"]) for row in counts.to_pylist()]
    assert ids_and_rows == [("qa", None, 1), ("qb", None, 3), (None, "ada", 1), (None, "bo", 3)]
    assert counts["claimed_at"].cast(pa.int64()).to_pylist() == [micros(each) for each in (12, 13, 11, 13)]
    assert counts["recorded_at"].to_pylist() == [recorded[position] for position in (6, 7, 5, 7)]


def test_forecasts_with_an_attestation_are_not_counted() -> None:
    """Readers need all of these."""
    said = [opened(), forecast(), forecast(participant="bo", attestation=Attestation(note="by hand"))]
    assert count_forecasts(columns_of(said).forecasts) is None


@pytest.mark.parametrize("as_of", [27, 20, day(20).replace("00Z", "17Z")])
def test_every_table_is_the_same_from_counts(path: str, sealed: Path, as_of: Any) -> None:
    """Up to any cut, also one within a segment."""
    assert [segment.counts is UNSET for segment in read_manifest(sealed).segments] == [True, False, False, True]
    found = replay(sealed, trust="files", engine="local", as_of=as_of).projections
    assert summarize_parts(found, TABLES) == summarize_parts(replay(path, as_of=as_of).projections, TABLES)


def moved(counts: list[dict[str, Any]]) -> Any:
    """A forecast counted on the next question."""
    counts[0]["rows"], counts[1]["rows"] = counts[0]["rows"] - 1, counts[1]["rows"] + 1


def later(counts: list[dict[str, Any]]) -> Any:
    """A later instant of the ledger's clock."""
    counts[-1]["recorded_at"] = counts[-1]["recorded_at"].replace(year=2100)


FORGED: dict[str, Change] = {
    "a forecast on the next question": moved,
    "a later instant": later,
    "one more": lambda counts: counts.append(counts[-1] | {"participant": "zoe"}),
}


@pytest.mark.parametrize("forged", FORGED)
def test_counts_that_the_forecasts_do_not_have_are_found(
    folder: Path, right: dict[str, TableSummary], forged: str
) -> None:
    """Verification reports the segment, and where rows are checked, counts are not used."""
    counts = counts_in(folder, read_manifest(folder).segments[1])
    FORGED[forged](counts)
    first = listed(folder, 1, counts)
    [damage] = run_checks(Log(folder)).damage
    assert (damage.check, damage.position) == ("store", first)
    assert "counts of the segment are not those of its forecasts" in str(damage)
    assert summarize_parts(replay(folder, engine="local").projections, TABLES) == right


@pytest.mark.parametrize("engine", ["local", "threads"])
@pytest.mark.parametrize(("number", "year"), [(1, 2100), (2, 1999)])
def test_another_instant_in_counts_does_not_move_the_end_of_a_replay(
    folder: Path, engine: Engine, number: int, year: int
) -> None:
    """Where files are trusted; a cut at an instant is where the rows of the log have it."""
    counts = counts_in(folder, read_manifest(folder).segments[number])
    for each in counts:
        each["recorded_at"] = each["recorded_at"].replace(year=year)
    listed(folder, number, counts)
    found = replay(folder, trust="files", engine=engine, as_of="2026-03-20T00:00:26Z")
    assert found.checkpoint.position == 27  # the first event is recorded at 00:00:00, and one in each second after it


def test_counts_of_another_segment_are_found(folder: Path) -> None:
    """By verification, and by a reader that trusts files if they are of other numbers of forecasts."""
    segments = read_manifest(folder).segments
    first = listed(folder, 1, counts_in(folder, segments[2]))
    [damage] = run_checks(Log(folder)).damage
    assert (damage.check, damage.position) == ("store", first)
    assert segments[1].forecasts.rows != segments[2].forecasts.rows
    with pytest.raises(Corrupt, match="counts of the segment are not those of its forecasts") as corrupt:
        replay(folder, trust="files", engine="local")
    assert corrupt.value.position == first


def test_a_file_of_counts_that_is_gone_is_missed_but_need_not_be_listed(
    folder: Path, right: dict[str, TableSummary]
) -> None:
    """A segment without one is as those of earlier versions."""
    segment = read_manifest(folder).segments[1]
    assert segment.counts is not UNSET
    (folder / segment.counts.name).unlink()
    assert [each.position for each in run_checks(Log(folder)).damage] == [segment.first]
    for number in range(len(read_manifest(folder).segments)):
        listed(folder, number, None)
    assert run_checks(Log(folder)).damage == []
    found = replay(folder, trust="files", engine="local").projections
    assert summarize_parts(found, TABLES) == right


@pytest.mark.parametrize(("side_by_side", "many"), [(True, 1 << 20), (False, 0)])
def test_counts_are_read_in_place_of_forecasts_where_files_are_trusted(
    sealed: Path, folder: Path, side_by_side: bool, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There a forecast that is counted on another question is believed to be on it; not where rows are checked."""
    monkeypatch.setattr(from_segments, "_MANY", many)
    monkeypatch.setattr(reading, "are_intact", lambda *_: side_by_side)
    counts = counts_in(folder, read_manifest(folder).segments[1])
    moved(counts)
    listed(folder, 1, counts)
    right = Log(sealed).frame(Cut(None)).frame
    cases: tuple[tuple[Trust, list[int]], ...] = (("rows", [0]), ("files", [-1, 0, 1]))
    for trust, difference in cases:
        frame = Log(WithSegments(folder, trust=trust)).frame(Cut(None)).frame
        assert sorted({*(frame.counts - right.counts).tolist()}) == difference


@pytest.mark.parametrize("many", [0, 1 << 20])
def test_a_question_that_was_not_opened_is_found_in_counts(
    many: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of the segment, because counts have no log positions; one by one or by columns."""
    monkeypatch.setattr(from_segments, "_MANY", many)
    segment = read_manifest(folder).segments[1]
    counts = counts_in(folder, segment)
    listed(folder, 1, [counts[0] | {"question": "rain"}, *counts[1:]])
    with pytest.raises(Corrupt, match="a question opened earlier; found 'rain', which was not") as corrupt:
        replay(folder, trust="files", engine="local")
    assert corrupt.value.position == segment.last


@pytest.mark.parametrize("together", [1, 2, 8])
@pytest.mark.parametrize("many", [0, 1 << 20])
@pytest.mark.parametrize("fault", [(1, False), (2, False), (2, True)])
def test_the_first_fault_of_counts_that_are_filed_together_is_found(
    fault: tuple[int, bool], many: int, together: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of segments of two forecasts each: also if a file of the next one is gone, or its question is opened there."""
    number, gone = fault
    monkeypatch.setattr(sealing, "_MANY_FORECASTS", 1)
    monkeypatch.setattr(from_segments, "_TOGETHER", together)
    monkeypatch.setattr(from_segments, "_MANY", many)
    said = [forecast("qa", participant=each) for each in "abcdef"]
    made, folder = (
        rows(written(tmp_path / "log.db", [contest(), opened("qa"), *said, opened("qb")])),
        tmp_path / "segments",
    )
    seal(lambda after: iter([made[after:]] if made[after:] else []), "main", folder, 2)
    assert Log(WithSegments(folder, trust="files")).frame(Cut(None)).frame.counts.tolist() == [6, 0]
    segments = read_manifest(folder).segments
    counts = counts_in(folder, segments[number])
    listed(folder, number, [counts[0] | {"question": "qb"}, *counts[1:]])
    if gone:
        (folder / segments[number + 1].others.name).unlink()
    with pytest.raises(Corrupt, match="a question opened earlier; found 'qb', which was not") as corrupt:
        Log(WithSegments(folder, trust="files")).frame(Cut(None))
    assert corrupt.value.position == segments[number].last


def test_counts_without_questions_of_a_log_without_questions_are_none(tmp_path: Path) -> None:
    """Of participants alone, which a seal does not write."""
    made = rows(written(tmp_path / "log.db", [contest()]))
    seal(lambda after: iter([made[after:]] if made[after:] else []), "main", tmp_path / "segments")
    instant = datetime(2026, 3, 1, tzinfo=UTC)
    row = {"question": None, "participant": "zoe", "rows": 0, "claimed_at": instant, "recorded_at": instant}
    listed(tmp_path / "segments", 0, [row])
    assert Log(WithSegments(tmp_path / "segments", trust="files")).frame(Cut(None)).frame.counts.tolist() == []


@pytest.mark.parametrize("group", [1, 2, 3, 7, 1 << 14])
def test_the_row_groups_of_questions_follow_from_their_counts(
    group: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the file has them: of questions with 3, 1, 2, 7 and 2 forecasts, in groups of so many rows."""
    monkeypatch.setattr(segment_files, "_GROUP", group)
    made = {"qa": "abc", "qb": "a", "qc": "ab", "qd": "abcdefg", "qe": "ac"}
    said = [forecast(question, participant=who) for question, people in made.items() for who in people]
    columns = columns_of([*map(opened, made), *said])
    counts = count_forecasts(columns.forecasts)
    ids = [question for question, people in made.items() for _ in people]
    groups = [ids[begin : begin + group] for begin in range(0, len(ids), group)]
    assert counted_ends(counts) == [(each[0], each[-1]) for each in groups]
    assert counted_ends(counts) == group_ends(tmp_path, segment_of(tmp_path, columns))
    assert counted_ends(columns.forecasts) is None
    assert counted_ends(counts.take([*range(1, len(counts)), 0])) is None
    assert counted_ends(counts.slice(5)) is None
    none = counts.set_column(2, "rows", pa.array([0, *counts["rows"].to_pylist()[1:]]))
    assert counted_ends(none) is None


@pytest.mark.parametrize("forged", [moved, lambda counts: counts.reverse()])
def test_counts_that_lie_are_found_by_the_forecasts_that_are_read(folder: Path, forged: Change) -> None:
    """Where files are trusted, row groups are chosen by counts; tables of which a part is read do not use them."""
    counts = counts_in(folder, read_manifest(folder).segments[1])
    expected = replay(folder, trust="files").projections.table("scores").digest()
    frame = Log(WithSegments(folder, trust="files")).frame(Cut(None))
    assert divided(frame, "local", ["scores"], 1).table("scores").digest() == expected
    forged(counts)
    first = listed(folder, 1, counts)
    frame = Log(WithSegments(folder, trust="files")).frame(Cut(None))
    found = InParts(frame, "local", ["scores"], 1).parts("scores")
    assert (sum(map(len, found)), found.digest) == (found.rows, expected)
    if forged is moved:
        with pytest.raises(Corrupt, match="counts of the segment are not those of its forecasts") as corrupt:
            divided(frame, "local", ["scores"], 1)
        assert corrupt.value.position == first


@pytest.fixture
def reversed_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Segments whose counts are true, and whose forecasts are in row groups of one, the last question first."""
    monkeypatch.setattr(segment_files, "_GROUP", 1)
    for number in (1, 2):
        forecasts = read_columns(folder, read_manifest(folder).segments[number]).forecasts
        listed_file(folder, number, "forecasts", forecasts.take([*reversed(range(len(forecasts)))]))
    return folder


def test_forecasts_in_another_order_than_their_counts_are_found(
    reversed_rows: Path, right: dict[str, TableSummary], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another program may write them: the counts are found to be true, once, and the file is read for the ids."""
    checked = list[int]()
    monkeypatch.setattr(log_frame, "check_counts", lambda _, segment: checked.append(segment.first))
    projections = divided(Log(WithSegments(reversed_rows, trust="files")).frame(Cut(None)), "local", TABLES, 1)
    assert summarize_parts(projections, TABLES) == right
    assert checked == [segment.first for segment in read_manifest(reversed_rows).segments]


def test_a_task_that_another_one_overtakes_finds_all_forecasts(
    reversed_rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads share what they know of counts: one finds it to be wrong while another has read by it."""
    sealed = Log(WithSegments(reversed_rows, trust="files")).frame(Cut(None)).sealed
    every = pa.concat_tables(sealed.on(None)).to_pylist()
    first, *others = sorted({row["question"] for row in every})
    expected = {name: [row for row in every if row["question"] == name] for name in (first, *others)}

    def overtaken(folder: Path, segment: Segment, *given: Any, **named: Any) -> Any:
        found = read_forecasts(folder, segment, *given, **named)
        if segment == sealed.segments[-1]:  # all is read
            monkeypatch.setattr(log_frame, "read_forecasts", read_forecasts)
            for name in others:
                sealed.on([name], len(expected[name]))
            assert sealed.counted == {}
        return found

    monkeypatch.setattr(log_frame, "read_forecasts", overtaken)
    assert pa.concat_tables(sealed.on([first], len(expected[first]))).to_pylist() == expected[first]


def test_counts_in_another_order_are_compared_with_what_is_read(folder: Path) -> None:
    """They do not say where forecasts are, but how many: as if those of a question were on one that was not opened."""
    for number in (1, 2):
        counts = counts_in(folder, read_manifest(folder).segments[number])
        listed(folder, number, counts[::-1])
    segment = read_manifest(folder).segments[1]
    forecasts = read_columns(folder, segment).forecasts
    names = forecasts["question"].to_pylist()
    moved = forecasts.set_column(
        forecasts.schema.get_field_index("question"),
        forecasts.schema.field("question"),
        pa.array(["rain", *names[1:]]).dictionary_encode(),
    )
    listed_file(folder, 1, "forecasts", moved)
    frame = Log(WithSegments(folder, trust="files")).frame(Cut(None))
    with pytest.raises(Corrupt, match="counts of the segment are not those of its forecasts") as corrupt:
        divided(frame, "local", ["scores"], 1)
    assert corrupt.value.position == segment.first
