"""Every engine gives the same tables, from logs and segments, for any number of processes and any division."""

import os
import signal
from collections.abc import Generator, Iterable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest

from forecast_ledger.ledger.core.errors import Corrupt, Refused, Unavailable
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.boards import added_scores, score_sums
from forecast_ledger.projections.boards.added_scores import MOST_KEPT
from forecast_ledger.projections.tables.catalogue import BUILT
from forecast_ledger.projections.tables.question_parts import QuestionPart, needed
from forecast_ledger.replay.engines import engines
from forecast_ledger.replay.engines import engines as divided_module
from forecast_ledger.replay.engines.engines import (
    ENGINES,
    MANY,
    Task,
    divide,
    divided,
    engine_for,
    processes,
    shared_by_tasks,
    tasks,
)
from forecast_ledger.replay.engines.log_frame import LogFrame
from forecast_ledger.replay.files.export import seal
from forecast_ledger.replay.reading.log import Cut, Log, WithSegments
from forecast_ledger.replay.reading.replay import TableSummary, replay, summarize_tables
from forecast_ledger.replay.writing.append import append_lines
from tests.support import oracle
from tests.support.effort import times
from tests.support.paths import ROOT
from tests.support.processes import forking
from tests.support.seasons import Season, drawn_rules


@pytest.fixture(scope="module")
def season(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a tournament, of which all but the last events are in a folder of segments beside it."""
    path = tmp_path_factory.mktemp("engines") / "season.db"
    story = ROOT / "data/metaculus-2022"
    with Ledger.open(path) as ledger:
        for name in ("commands", "sealed"):
            with (story / f"{name}.jsonl").open("rb") as file:
                append_lines(ledger, file)
            if name == "commands":
                seal(path, path.with_name("season.db.segments"), rows=10)
    return path


def in_processes(count: int) -> "partial[Generator[QuestionPart, None, None]]":
    """An engine of so many processes, which are forked from one that has imported all."""
    return partial(processes, count=count, context=forking(__name__))


def found(frame: LogFrame, forecasts: int) -> dict[str, TableSummary]:
    """The digest of every table, by the engine `processes` as it is set."""
    projections = divided(frame, "processes", forecasts=forecasts)
    return summarize_tables(projections.facts, projections.cached)


def _unread(*_: object) -> None:
    raise AssertionError("no table of a replay needs the forecasts here")


@pytest.mark.parametrize(("count", "kept"), [(1, MOST_KEPT), (2, MOST_KEPT), (3, MOST_KEPT), (2, 0)])
def test_every_table_is_the_same_for_any_number_of_processes(
    season: Path, count: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And with one question in a task, or some, or all; from segments and a tail, and from the log alone.

    kept: how many sums of scores are kept without bounds; if there are more, all have bounds.
    """
    monkeypatch.setattr(added_scores, "MOST_KEPT", kept)
    monkeypatch.setattr(score_sums, "FEW", 0)
    monkeypatch.setitem(ENGINES, "processes", in_processes(count))
    monkeypatch.setattr(LogFrame, "forecasts_on", _unread)
    expected = summarize_tables(replay(season).projections.facts)
    for location, forecasts in ((WithSegments(season), 1), (season, 7)):
        assert found(Log(location).frame(Cut(None)), forecasts) == expected


@pytest.mark.parametrize("seed", range(times(48)))
def test_every_table_of_participants_who_were_renamed_is_the_same(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forecasts, restatements and changes of outcomes under several ids, in segments and beside them."""
    monkeypatch.setitem(ENGINES, "processes", in_processes(2))
    path, random = tmp_path / "log.db", Random(seed)
    season = Season(random, "peer-2025-06", drawn_rules(random), changing=0.5, restated=0.5, renamed=0.97)
    said = oracle.with_ids(season.commands)
    for begin in (0, len(said) // 2):
        with Ledger.open(path) as ledger:
            ledger.handle_many(said[begin : begin + len(said) // 2 + 1])
        if not begin:
            seal(path, tmp_path / "log.db.segments", rows=10)
    whole = replay(path).projections.facts
    assert whole.renames
    expected = summarize_tables(whole)
    for location, forecasts in ((WithSegments(path), 1), (path, 7)):
        assert found(Log(location).frame(Cut(None)), forecasts) == expected


@pytest.mark.parametrize(("beside", "as_of"), [*product([True, False], [None, 27, 20, 0])])
def test_every_table_is_the_same_here_as_of_any_cut(season: Path, beside: bool, as_of: int | None) -> None:
    """The engine local, as the public function runs it, from segments and a tail, and from an open ledger."""
    location = WithSegments(season)
    expected = replay(season, as_of=as_of)
    with Ledger.open(season) as ledger:
        here = replay(location if beside else ledger, as_of=as_of, engine="local")
    projections = here.projections
    assert here.checkpoint == expected.checkpoint
    assert summarize_tables(projections.facts, projections.cached) == summarize_tables(expected.projections.facts)


def test_processes_are_started_for_many_forecasts_only(season: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 2^22 on, and not on one processor."""
    frame = Log(season).frame(Cut(None))
    for forecasts, count, engine in ((MANY, 2, "processes"), (MANY - 1, 2, "local"), (MANY, 1, "local")):
        monkeypatch.setattr(divided_module, "processors", lambda count=count: count)
        counts = np.array([forecasts - 1, 1])
        assert engine_for(frame._replace(frame=frame.frame._replace(counts=counts))) == engine
    assert replay(season, engine="auto").table("scores").digest() == replay(season).table("scores").digest()


def test_a_table_that_no_part_has_reads_the_forecasts_when_it_is_asked_for(season: Path) -> None:
    """On request: what each forecast says, and the parts of scores."""
    whole, here = replay(season), replay(WithSegments(season), engine="local")
    for name in ("forecasts", "score_parts", "leaderboard_by_group"):
        assert len(whole.table(name)) or name == "leaderboard_by_group"
        assert here.table(name).digest() == whole.table(name).digest()


def test_an_engine_that_does_not_exist_and_a_cut_beyond_the_log_are_refused(season: Path) -> None:
    """The message lists those that there are; nothing is scored before the cut is checked."""
    with pytest.raises(ValueError, match="no engine named 'spork': give local, processes, spark or auto"):
        replay(season, engine="spork")  # type: ignore[arg-type]
    with pytest.raises(Refused, match="the log ends at position 35"):
        replay(season, as_of=36, engine="local")


def test_the_questions_of_a_task_are_neighbours_by_id_and_the_tasks_have_all(season: Path) -> None:
    """As in segments, so that a task reads few row groups; a question is in one task."""
    frame = Log(season).frame(Cut(None))
    labels = frame.frame.facts.question_codes.labels
    for size in (1, 12, 10**6):
        parts = [*tasks(frame, divide(frame, size))]
        ids = [labels[code] for part in parts for code in part.questions.tolist()]
        assert ids == sorted(labels)
        rows = [columns for part in parts for columns in part.rest]
        assert sum(len(columns[0]) for columns in rows) == frame.frame.counts.sum()
        for part in parts:
            assert all(columns[3].max() < len(part.questions) for columns in part.rest)
    assert [len(divide(frame, size)) for size in (1, 12, 10**6)] == [3, 2, 1]


def test_damage_that_another_process_finds_is_reported_here(season: Path, tmp_path: Path) -> None:
    """With its log position, as if it had been found here."""
    folder = tmp_path / "copy"
    seal(season, folder, rows=10)
    frame = Log(WithSegments(folder)).frame(Cut(None))
    for file in folder.glob("*.forecasts.parquet"):
        file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(Corrupt, match="restore the folder from a copy") as corrupt:
        [*in_processes(1)(shared_by_tasks(frame, needed(BUILT)), tasks(frame, divide(frame)))]
    assert corrupt.value.position


def _killed(_: Task) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def test_a_process_that_ends_early_is_an_error_with_a_remedy(season: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for it, and no table is made of what the others found."""
    frame = Log(season).frame(Cut(None))
    monkeypatch.setattr(engines, "_score", _killed)
    with pytest.raises(Unavailable, match=r"ended before it was done.*use the engine local"):
        [*in_processes(2)(shared_by_tasks(frame, needed(BUILT)), tasks(frame, divide(frame, 1)))]


def test_few_tasks_wait_so_that_few_forecasts_are_in_memory(season: Path) -> None:
    """The tasks of a log are made while others are scored, not all at first."""
    frame, made = Log(season).frame(Cut(None)), list[int]()

    def counted(every: Iterable[Task]) -> Iterator[Task]:
        for task in every:
            made.append(1)
            yield task

    shared = shared_by_tasks(frame, needed(BUILT))
    parts = in_processes(1)(shared, counted([*tasks(frame, divide(frame, 1))] * 3))
    next(parts)
    assert len(made) == 3
    parts.close()
