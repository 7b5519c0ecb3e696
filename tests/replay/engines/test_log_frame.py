"""Forecasts of some questions only, read from segments and a tail: in all, those that a reading of the log has."""

import gc
import pickle
import subprocess
import sys
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from functools import reduce
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Event
from time import sleep
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.segments import sealing, segment_files
from forecast_ledger.ledger.segments.sealing import seal as seal_pages
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns, to_columns
from forecast_ledger.ledger.segments.segment_files import KeptGroups
from forecast_ledger.ledger.segments.segment_manifest import Segment
from forecast_ledger.ledger.storing.sealed_log import SealedLog
from forecast_ledger.projections.core.arrays import stable_order
from forecast_ledger.projections.facts.columns import Facts, joined, width
from forecast_ledger.projections.facts.from_segments import facts_of_segments, forecasts_on, frame_of_segments
from forecast_ledger.replay.engines.log_frame import LogFrame, SealedForecasts
from forecast_ledger.replay.files.export import seal
from forecast_ledger.replay.reading.log import Cut, Log, WithSegments
from forecast_ledger.replay.reading.replay import replay
from tests.support import oracle
from tests.support.effort import times
from tests.support.logs import VARIED
from tests.support.waiting import PATIENCE
from tests.system.test_stories import recorded

pytestmark = pytest.mark.usefixtures("quickly_sealed")


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups of three rows, so that most are left out."""
    monkeypatch.setattr(segment_files, "_GROUP", 3)


def sealed_frame(records: list[Recorded], size: int, sealed: int, folder: Path) -> LogFrame:
    """A frame of events of which the first `sealed` are in segments of this size, and the rest in a tail."""
    rows = [log.seal(each)[0] for each in records[:sealed]]
    manifest = seal_pages(lambda after: iter([rows[after:]] if rows[after:] else []), "main", folder, size)
    parts = SealedLog(folder, "main").segments(lambda *_: True) if rows else iter(())
    tail = [records[begin : begin + 5] for begin in range(sealed, len(records), 5)]
    frame = frame_of_segments(((part.columns, part.end) for part in parts), tail)
    return LogFrame(frame, SealedForecasts(folder, manifest.segments, frame.facts.as_of))


def contents(facts: Facts) -> list[object]:
    """All facts with ids in place of the codes of participants, and the numbers of each forecast."""
    made, people = facts.forecasts, facts.participant_codes.labels
    wide = [facts.changed[code].width if code in facts.changed else width(q) for code, q in enumerate(facts.questions)]
    columns = (made.position, made.at, made.recorded_at, made.question, made.until, made.made, made.start)
    numbers = [
        (*row, tuple(made.chances[start : start + wide[code]].tolist()) if stands else ())
        for *row, code, _, stands, start in zip(*(column.tolist() for column in columns), strict=True)
    ]
    who = [people[code] for code in made.participant.tolist()]
    others = ("opened", "questions", "former", "settlements", "contests", "changed")
    quotes, rest = facts.books.quotes, sorted(facts.attestations.items())
    quoted = [(code, [None if c is None else c.tolist() for c in quotes.of(code)]) for code in quotes]
    books = [repr(getattr(facts.books, each.name)) for each in fields(facts.books) if each.name != "quotes"]
    seen = [facts.as_of, sorted(people), who, numbers, rest, quoted, quotes.sources.labels, books]
    return [*seen, *(repr(getattr(facts, o)) for o in others)]


def in_parts(frame: LogFrame, random: Random) -> Facts:
    """The facts with the forecasts of all questions, read in random parts, by a reader that was pickled."""
    facts, again = frame.frame.facts, pickle.loads(pickle.dumps(frame))  # noqa: S301 - our own
    part = np.array([random.randrange(3) for _ in facts.questions], np.int64)
    read = [again.forecasts_on(np.flatnonzero(part == number)) for number in range(3)]
    whole = reduce(joined, read)
    assert frame.frame.counts.tolist() == np.bincount(whole.question, minlength=len(part)).tolist()
    for number, forecasts in enumerate(read):
        assert {number}.issuperset(part[forecasts.question])
    return replace(facts, held=whole.rows(stable_order(whole.question)), statuses={})


@given(oracle.logs(), st.data())
@settings(max_examples=times(5), deadline=None)
def test_the_parts_of_any_log_are_all_of_it(commands: list[AnyCommand], data: st.DataObject) -> None:
    """Wherever it is cut into segments and a tail, and however the questions are divided."""
    records = oracle.attempted(commands)[0]
    size, sealed = (
        data.draw(st.integers(len(records) // 4 + 1, len(records) + 3)),
        data.draw(st.integers(0, len(records))),
    )
    with TemporaryDirectory() as folder:
        facts = in_parts(sealed_frame(records, size, sealed, Path(folder)), Random(size))
    assert contents(facts) == contents(oracle.facts_in(records))


@pytest.mark.parametrize("story", VARIED)
def test_the_parts_of_every_story_are_all_of_it(story: str, tmp_path: Path) -> None:
    """Changed outcomes, other times, attestations, trades."""
    records = recorded(story)
    facts = in_parts(sealed_frame(records, 30, len(records) * 2 // 3, tmp_path), Random(story))
    assert contents(facts) == contents(oracle.facts_in(records))


@pytest.mark.parametrize("as_of", [None, 27, 20, 0])
def test_a_cut_within_a_segment_cuts_the_forecasts(season: Path, as_of: int | None) -> None:
    """Those after it are not read, although they are in the same file."""
    for location in (WithSegments(season), season):
        frame = Log(location).frame(Cut(as_of))
        expected = replay(season, as_of=as_of).projections.facts
        assert contents(in_parts(frame, Random(1))) == contents(expected)


def test_a_file_that_is_gone_or_was_changed_is_found_by_the_reader_of_a_part(season: Path) -> None:
    """Although the files were checked when the frame was read: another process may read them later."""
    frame = Log(WithSegments(season)).frame(Cut(None))
    every = np.arange(len(frame.frame.facts.questions))
    files = sorted(season.with_name("season.db.segments").glob("*.forecasts.parquet"))
    files[-2].write_bytes(files[-2].read_bytes()[:-20])
    with pytest.raises(Corrupt, match="restore the folder from a copy"):
        frame.forecasts_on(every)
    files[-2].unlink()
    with pytest.raises(Corrupt, match="No such file"):
        frame.forecasts_on(every)


def test_a_look_ahead_keeps_what_tasks_need_to_know_of_each_segment(season: Path) -> None:
    """Nobody takes the result of this look, so that no other test finds out if it fails."""
    sealed = Log(WithSegments(season)).frame(Cut(None)).sealed
    segment_files._questions.cache_clear()
    sealed.look_ahead()
    looked = segment_files._questions.cache_info().misses
    assert looked == len(sealed.segments) > 1
    question = replay(season).table("questions")["question"][0]
    assert [*sealed.on([question])]
    assert segment_files._questions.cache_info().misses == looked


def test_questions_that_follow_each_other_read_each_row_group_once(
    season: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any other order they read more, and get the same forecasts; so does a reader that keeps nothing."""
    seal(season, season.with_name("again"), rows=30)
    sealed = Log(WithSegments(season.with_name("again"))).frame(Cut(None)).sealed
    names = sorted(replay(season).table("questions")["question"])
    expected = {name: sealed.on([name]) for name in names}
    assert sum(len(table) for name in names for table in expected[name]) == sum(map(len, sealed.on(None)))
    decoded, read = list[int](), segment_files._read

    def counted(file: Any, schema: Any, without: Collection[str], groups: Sequence[int]) -> Any:
        decoded.extend(groups)
        return read(file, schema, without, groups)

    monkeypatch.setattr(segment_files, "_read", counted)
    kept = sealed.for_tasks(is_read=True)
    assert kept.kept is not None
    for name in names:
        assert kept.on([name]) == expected[name]
        assert max(len(groups) for _, groups in kept.kept.in_turn(sealed.segments)) == 1
    groups = sum(-(-segment.forecasts.rows // 3) for segment in sealed.segments)
    assert len(decoded) == groups > len(sealed.segments) > 1
    for name in names:
        sealed.on([name])
    assert len(decoded) > 2 * groups
    for name in (*reversed(names), *Random(1).choices(names, k=20)):
        assert kept.on([name]) == expected[name]


def test_threads_do_not_overtake_each_other_from_segment_to_segment(season: Path) -> None:
    """What the first keeps for the second would be another's by then; and one that fails lets the others go on."""
    kept, segments = KeptGroups(), Log(WithSegments(season)).frame(Cut(None)).sealed.segments
    passed, entered = list[tuple[str, int]](), Event()

    def second() -> None:
        for segment, _ in kept.in_turn(segments):
            passed.append(("second", segment.first))
            entered.set()

    first = kept.in_turn(segments)
    next(first), next(first)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(second)
        assert entered.wait(PATIENCE)
        sleep(0.02)
        assert passed == [("second", segments[0].first)]
        passed.append(("first", segments[2].first))
        next(first)
        first.close()
        done.result(PATIENCE)
    assert passed[-1] == ("second", segments[-1].first)


def test_segments_come_in_log_order_up_to_the_first_that_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although some are read while those before them are used: the first one is read more slowly than the others."""
    records = recorded("metaculus-2022")
    folder, rows = tmp_path / "segments", [log.seal(each)[0] for each in records]
    manifest = seal_pages(lambda after: iter([rows[after:]] if rows[after:] else []), "main", folder, 5)
    damaged = folder / manifest.segments[3].others.name
    damaged.write_bytes(b"")
    sealed, seen = SealedLog(folder, "main"), list[int]()
    read = sealed._columns

    def slowly(segment: Segment, without: Collection[str]) -> SegmentColumns:
        sleep(0.05 * (segment.first == 1))
        return read(segment, without)

    monkeypatch.setattr(sealed, "_columns", slowly)
    parts = map(seen.append, (part.end.position for part in sealed.segments(lambda *_: True)))
    with pytest.raises(Corrupt, match=damaged.name) as caught:
        any(parts)
    assert (seen, caught.value.position) == ([5, 10, 15], 16)


def test_a_reading_that_is_collected_in_one_of_its_threads_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the traceback of a fault can keep a reading until a thread that reads ahead collects garbage."""
    records = recorded("metaculus-2022")
    folder, rows = tmp_path / "segments", [log.seal(each)[0] for each in records]
    seal_pages(lambda after: iter([rows[after:]] if rows[after:] else []), "main", folder, 5)
    sealed, begun, dropped, collected = SealedLog(folder, "main"), Event(), Event(), Event()
    read = sealed._columns

    def collecting(segment: Segment, without: Collection[str]) -> SegmentColumns:
        if segment.first > 1:
            begun.set()
            assert dropped.wait(PATIENCE)
            gc.collect()
            collected.set()
        return read(segment, without)

    monkeypatch.setattr(sealed, "_columns", collecting)
    parts = sealed.segments(lambda *_: True)
    assert next(parts).end.position == 5
    cycle: list[Any] = [parts]
    cycle.append(cycle)
    assert begun.wait(PATIENCE)
    del parts, cycle
    dropped.set()
    assert collected.wait(PATIENCE)  # if it is not closed without an error, this test fails with a warning


def test_a_participant_who_comes_from_nowhere_is_refused() -> None:
    """All participants have codes before any part is read: another one would take the code of the consensus."""
    records = recorded("metaculus-2022")
    columns = to_columns([log.seal(each)[0] for each in records], records)
    frame = frame_of_segments([(columns, Checkpoint(len(records), records[-1].digest))])
    del frame.facts.participant_codes.codes["C"]
    part = LogFrame(frame, SealedForecasts(Path(), (), 0))
    assert not len(part.forecasts_on(np.arange(2)).at)
    with pytest.raises(Corrupt, match="'C', whom they did not have"):
        forecasts_on(frame.facts, [columns.forecasts], [])


def test_forecasts_that_a_segment_keeps_as_json_are_in_log_order() -> None:
    """They come before the others of the same segment when it is read, and may stand before or after them."""
    records = recorded("metaculus-2022")
    rows = [log.seal(each)[0] for each in records]
    made = [place for place, each in enumerate(records) if type(each.event).__name__ == "ForecastMade"]
    rows[made[-1]] = rows[made[-1]].replace(b'"at":', b'"at": ')
    columns = to_columns(rows, records)
    assert "forecast_made.v1" in columns.others["type"].to_pylist()
    facts = facts_of_segments([(columns, Checkpoint(len(records), records[-1].digest))])
    assert contents(facts) == contents(oracle.facts_in(records))


@pytest.mark.parametrize("counted", [1, 1 << 16])
def test_a_board_from_segments_imports_nothing_that_it_does_without(
    counted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Databases, pandas and pyarrow's functions of columns would take more time than a small board."""
    monkeypatch.setattr(sealing, "_MANY_FORECASTS", counted)
    records = recorded("metaculus-2022")
    sealed_frame(records, 12, len(records), tmp_path / "segments")
    script = (
        "import sys; from forecast_ledger import replay; "
        "season = replay('segments', trust='files', engine='local', tables=['leaderboard']); "
        "print(season.table('leaderboard', contest='plain')['participant'], "
        "{'pandas', 'pyarrow.compute', 'eventsourcing', 'sqlite3'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "['B', 'A', 'bot', 'C'] set()"
