"""Every engine gives the same tables, from logs and segments, for any number of processes and any division."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterable, Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from forecast_ledger.ledger.core.errors import Corrupt, Refused, Unavailable
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.boards import added_scores, score_sums
from forecast_ledger.projections.boards.added_scores import MOST_KEPT
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.tables.catalogue import BUILT, CATALOGUE, Projections
from forecast_ledger.projections.tables.question_parts import QuestionPart, needed
from forecast_ledger.replay.engines import engines
from forecast_ledger.replay.engines import engines as divided_module
from forecast_ledger.replay.engines.engines import (
    ENGINES,
    MANY,
    Engine,
    InParts,
    Task,
    Tasks,
    divide,
    divided,
    engine_for,
    forecasts_within,
    local,
    pack,
    processes,
    shared_by_tasks,
    threads,
    unpack,
)
from forecast_ledger.replay.engines.log_frame import LogFrame
from forecast_ledger.replay.files.export import export, seal
from forecast_ledger.replay.reading.log import Cut, Log, Trust, WithSegments
from forecast_ledger.replay.reading.replay import TableSummary, replay, summarize_parts, summarize_tables
from forecast_ledger.replay.writing.append import append_lines
from tests.replay.cli.test_main import run
from tests.support import oracle
from tests.support.effort import LONG, times
from tests.support.exports import contents
from tests.support.given import contest, day, entry, forecast, micros, opened, resolution
from tests.support.logs import VARIED, commands_of, light, written
from tests.support.paths import ROOT
from tests.support.processes import Command, forking
from tests.support.seasons import Season, drawn_rules
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("quickly_sealed")

# --- Every engine gives the same tables, from logs and segments, for any number of processes and any division.


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


def found(frame: LogFrame, forecasts: int, engine: Engine = "processes") -> dict[str, TableSummary]:
    """The digest of every table, by an engine as it is set."""
    projections = divided(frame, engine, forecasts=forecasts)
    return summarize_tables(projections.facts, projections.cached)


def _unread(*_: object) -> None:
    raise AssertionError("no table of a replay needs the forecasts here")


@pytest.mark.parametrize(
    ("engine", "count", "kept"),
    [
        ("processes", 1, MOST_KEPT),
        ("processes", 2, MOST_KEPT),
        ("processes", 3, MOST_KEPT),
        ("processes", 2, 0),
        ("threads", 3, MOST_KEPT),
        ("threads", 2, 0),
    ],
)
def test_every_table_is_the_same_for_any_number_of_processes_or_threads(
    season: Path, engine: Engine, count: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And with one question in a task, or some, or all; from segments and a tail, and from the log alone.

    kept: how many sums of scores are kept without bounds; if there are more, all have bounds.
    """
    monkeypatch.setattr(added_scores, "MOST_KEPT", kept)
    monkeypatch.setattr(score_sums, "FEW", 0)
    monkeypatch.setitem(
        ENGINES, engine, in_processes(count) if engine == "processes" else partial(threads, count=count)
    )
    monkeypatch.setattr(LogFrame, "forecasts_on", _unread)
    expected = summarize_tables(replay(season).projections.facts)
    for location, forecasts in ((WithSegments(season), 1), (season, 7)):
        assert found(Log(location).frame(Cut(None)), forecasts, engine) == expected


@pytest.mark.parametrize("seed", range(times(24)))
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


@pytest.mark.parametrize(
    ("engine", "given"),
    [
        ("local", (MANY - 1, 2, True)),
        ("local", (MANY, 1, True)),
        ("threads", (MANY, 2, True)),
        ("threads", ((1 << 22) - 1, 4, True)),
        ("threads", (1 << 22, 4, False)),
        ("processes", (1 << 22, 4, True)),
        ("processes", (1 << 23, 2, True)),
    ],
)
def test_the_engine_depends_on_the_forecasts_and_the_processors(
    engine: Engine, given: tuple[int, int, bool], season: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads from two tasks on, unless there is one processor; processes for far more, if they can be forked."""
    forecasts, count, can_fork = given
    monkeypatch.setattr(divided_module, "processors", lambda: count)
    monkeypatch.setattr(divided_module, "can_fork", lambda: can_fork)
    frame = Log(season).frame(Cut(None))
    counts = np.array([forecasts - 1, 1])
    assert engine_for(frame._replace(frame=frame.frame._replace(counts=counts))) == engine


def test_the_engine_that_is_chosen_gives_the_same(season: Path) -> None:
    """As no engine at all."""
    assert replay(season, engine="auto").table("scores").digest() == replay(season).table("scores").digest()


def test_a_table_that_no_part_has_reads_the_forecasts_when_it_is_asked_for(season: Path) -> None:
    """On request: what each forecast says, and the parts of scores."""
    whole, here = replay(season), replay(WithSegments(season), engine="local")
    for name in ("forecasts", "score_parts", "leaderboard_by_group"):
        assert len(whole.table(name)) or name == "leaderboard_by_group"
        assert here.table(name).digest() == whole.table(name).digest()


def test_a_board_from_segments_imports_no_pandas(season: Path) -> None:
    """Some ways of pyarrow between its arrays and those of NumPy import it, and each process would wait for it.

    Neither does a check of every row, which rebuilds them.
    """
    program = (
        "import sys, forecast_ledger\n"
        "for trust in ('files', 'rows'): forecast_ledger.replay(sys.argv[1], trust=trust, engine='threads', "
        "tables=['leaderboard']).table('leaderboard').digest()\n"
        "sys.exit('pandas' in sys.modules)"
    )
    folder = season.with_name("season.db.segments")
    assert Command(str(folder), program=program).ended(PATIENCE).returncode == 0


def test_an_engine_that_does_not_exist_and_a_cut_beyond_the_log_are_refused(season: Path) -> None:
    """The message lists those that there are; nothing is scored before the cut is checked."""
    with pytest.raises(ValueError, match="no engine named 'spork': give local, threads, processes, spark or auto"):
        replay(season, engine="spork")  # type: ignore[arg-type]
    with pytest.raises(Refused, match="the log ends at position 35"):
        replay(season, as_of=36, engine="local")


def test_the_questions_of_a_task_are_neighbours_by_id_and_the_tasks_have_all(season: Path) -> None:
    """As in segments, so that a task reads few row groups; a question is in one task."""
    frame = Log(season).frame(Cut(None))
    labels = frame.frame.facts.question_codes.labels
    for size in (1, 12, 10**6):
        parts = [*Tasks(frame, divide(frame, size))]
        ids = [labels[code] for part in parts for code in part.questions.tolist()]
        assert ids == sorted(labels)
        rows = [columns for part in parts for columns in part.unsealed]
        assert sum(len(columns[0]) for columns in rows) == frame.frame.counts.sum()
        for part in parts:
            assert all(columns[3].max() < len(part.questions) for columns in part.unsealed)
    assert [len(divide(frame, size)) for size in (1, 12, 10**6)] == [3, 2, 1]


@pytest.mark.parametrize("engine", [in_processes(1), partial(threads, count=2)], ids=["processes", "threads"])
def test_damage_that_another_process_or_thread_finds_is_reported_here(
    engine: "partial[Iterator[QuestionPart]]", season: Path, tmp_path: Path
) -> None:
    """With its log position, as if it had been found here."""
    folder = tmp_path / "copy"
    seal(season, folder, rows=10)
    frame = Log(WithSegments(folder)).frame(Cut(None))
    for file in folder.glob("*.forecasts.parquet"):
        file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(Corrupt, match="restore the folder from a copy") as corrupt:
        [*engine(shared_by_tasks(frame, needed(BUILT)), Tasks(frame, divide(frame)))]
    assert corrupt.value.position


@pytest.mark.parametrize("run", [1, 2, 5])
def test_a_process_does_some_tasks_together(run: int, season: Path) -> None:
    """Each task once, in their order, also those of the last run, which has fewer."""
    frame = Log(season).frame(Cut(None))
    shared, parts = shared_by_tasks(frame, needed(["scores"])), divide(frame, 1)
    expected = [pack(unpack(pack(part))) for part in local(shared, Tasks(frame, parts))]
    found = in_processes(2)(shared._replace(run=run), Tasks(frame, parts))
    assert len(expected) == 3
    assert [pack(part) for part in found] == expected


FORKED = """
from threading import current_thread
from forecast_ledger.ledger.storing.forks import holds_nothing
from forecast_ledger.projections.tables.catalogue import BUILT
from forecast_ledger.projections.tables.question_parts import needed
from forecast_ledger.replay.engines.engines import Task, Tasks, divide, local, pack, processes, shared_by_tasks, unpack
from forecast_ledger.replay.reading.log import Cut, Log
def refuse(*_):
    raise AssertionError("a task is sent")
Task.__reduce_ex__ = refuse
holds_nothing(current_thread())  # so that it may be forked
frame = Log("season.db").frame(Cut(None))
shared, tasks = shared_by_tasks(frame, needed(BUILT)), Tasks(frame, divide(frame, 1))
expected = [pack(unpack(pack(part))) for part in local(shared, tasks)]
for count, run in ((1, 1), (2, 1), (2, 2), (3, 5)):
    found = [pack(part) for part in processes(shared._replace(run=run), tasks, count)]
    print(len(found), found == expected)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux is the command line forked")
def test_a_process_that_is_forked_makes_its_tasks_itself(season: Path) -> None:
    """From what it has of the log, sealed and unsealed; it is sent their numbers alone."""
    command = [sys.executable, "-c", FORKED]
    ended = subprocess.run(command, cwd=season.parent, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (ended.stderr, ended.stdout) == ("", "3 True\n" * 4)


def _killed(_: list[Task]) -> list[bytes]:
    os.kill(os.getpid(), signal.SIGKILL)
    return []


def test_a_process_that_ends_early_is_an_error_with_a_remedy(season: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for it, and no table is made of what the others found."""
    frame = Log(season).frame(Cut(None))
    monkeypatch.setattr(engines, "_score", _killed)
    with pytest.raises(Unavailable, match=r"ended before it was done.*use the engine local"):
        [*in_processes(2)(shared_by_tasks(frame, needed(BUILT)), Tasks(frame, divide(frame, 1)))]


@pytest.mark.parametrize("engine", [in_processes(1), partial(threads, count=1)], ids=["processes", "threads"])
def test_few_tasks_wait_so_that_few_forecasts_are_in_memory(
    engine: "partial[Generator[QuestionPart, None, None]]", season: Path
) -> None:
    """The tasks of a log are made while others are scored, not all at first; what was not begun is not done."""
    frame, made = Log(season).frame(Cut(None)), list[int]()

    class Counted(Tasks):
        def __getitem__(self, number: int) -> Task:
            made.append(number)
            return super().__getitem__(number)

    parts = engine(shared_by_tasks(frame, needed(BUILT)), Counted(frame, divide(frame, 1) * 3))
    next(parts)
    assert made == [0, 1, 2]
    parts.close()


# --- Large tables in parts: the same rows and digests as whole ones, for every engine and any memory.


IN_PARTS = (
    "forecasts",
    "standing",
    "consensus",
    "score_parts",
    "scores",
    "wis_parts",
    "admissions",
    "portfolio_snapshots",
)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of few rows, so that a table of a small log has many."""
    monkeypatch.setattr("forecast_ledger.projections.core.table.PART_ROWS", 5)


def summaries(projections: Projections, names: Iterable[str] = CATALOGUE) -> dict[str, TableSummary]:
    """Those of tables that are computed at once."""
    tables = {name: projections.table(name) for name in names}
    return {name: TableSummary(table.version, len(table), table.digest()) for name, table in tables.items()}


def unread(*_: object) -> None:
    """Fail: all forecasts of the log are read at once."""
    raise AssertionError("a table in parts never has all forecasts in memory")


@pytest.mark.parametrize("story", VARIED)
def test_every_table_of_every_story_is_the_same_in_parts(story: str, tmp_path: Path) -> None:
    """From a log, one question at a time, or from segments and a tail, some at a time; in a long run, both."""
    log = written(tmp_path / "log.db", map(light, commands_of(story)))
    tables = [*IN_PARTS, "leaderboard", "prizes", "brier"]
    expected = summaries(replay(log).projections, tables)
    sealed, alone = VARIED.index(story) % 2 or LONG > 1, VARIED.index(story) % 2 == 0 or LONG > 1
    ways: list[tuple[str | WithSegments, int]] = [(log, 1)] * alone
    if sealed:
        seal(log, tmp_path / "log.db.segments", rows=16)
        ways.append((WithSegments(log), Random(story).randrange(2, 30)))
    for location, forecasts in ways:
        projections = InParts(Log(location).frame(Cut(None)), "local", tables, forecasts)
        assert summarize_parts(projections, tables) == expected


@pytest.mark.parametrize("engine", ["local", "threads", "processes"])
def test_a_table_in_parts_is_made_of_some_forecasts_at_a_time(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process and in others; those of BUILT never need all forecasts."""
    monkeypatch.setitem(ENGINES, "processes", in_processes(2))
    log = written(tmp_path / "log.db", commands_of("metaculus-2022"))
    tables = [*BUILT, *IN_PARTS]
    expected = summaries(replay(log).projections, tables)
    monkeypatch.setattr(LogFrame, "forecasts_on", unread)
    projections = InParts(Log(log).frame(Cut(None)), engine, BUILT, 3)
    assert summarize_parts(projections, tables) == expected


def test_the_tables_in_parts_are_those_with_a_row_for_a_question_or_an_account(tmp_path: Path) -> None:
    """The others are sums, boards and what is kept of contests."""
    log = written(tmp_path / "log.db", commands_of("metaculus-2022"))
    projections = InParts(Log(log).frame(Cut(None)), "local", BUILT, 3)
    asked: list[str] = []
    projections.table = lambda name: asked.append(name) or Projections.table(projections, name)  # type: ignore[method-assign, func-returns-value]
    summarize_parts(projections, CATALOGUE)
    assert {*CATALOGUE} - {*asked} == {*IN_PARTS}, "IN_PARTS names each table that a question or an account has rows of"


@pytest.mark.parametrize("form", ["csv", "parquet", "sqlite"])
def test_an_export_in_parts_has_the_same_bytes(tmp_path: Path, form: str) -> None:
    """The memory is no part of what is exported: of tables in parts; in a long run, of all."""
    log = written(tmp_path / "log.db", commands_of("metaculus-2022"))
    names = [*BUILT, "forecasts", "score_parts"] if LONG > 1 else [*IN_PARTS, "leaderboard"]
    for out, memory in (("whole", None), ("parts", 1 << 30)):
        (tmp_path / out).mkdir()
        export(log, tmp_path / out / "x", form, tables=names, memory=memory)
    assert contents(tmp_path / "whole") == contents(tmp_path / "parts")


def test_parts_of_scores_are_computed_for_so_many_questions_as_have_few_enough_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log with more parts of scores than one table may have is refused as a whole, and has them in parts.

    Three forecasters with two forecasts each on eight questions: on a question, each forecast has a part for each
    change of its peers while it stands.
    """
    log, said = tmp_path / "log.db", list[AnyCommand]([contest("cup", rules="peer-2024-03")])
    for question in [f"q{number}" for number in range(8)]:
        said += [opened(question), entry("cup", question)]
        said += [forecast(question, who, at=day(12 + part, hour)) for part in (0, 1) for hour, who in enumerate("abc")]
        said.append(resolution(question))
    written(log, said)
    whole = replay(log).table("score_parts")
    assert len(whole) > 8 * 6
    monkeypatch.setattr(time_weighted, "MOST_PARTS", 50)
    monkeypatch.setattr(engines, "MOST_PARTS", 50)
    with pytest.raises(Refused, match="the limit is 50"):
        replay(log).table("score_parts")
    parts = InParts(Log(log).frame(Cut(None)), "local", BUILT, 10**6).parts("score_parts")
    assert [row for part in parts for row in part.rows()] == [*whole.rows()]
    assert parts.digest == whole.digest()


def test_questions_are_divided_by_a_power_of_their_forecasts_and_others_left_out(tmp_path: Path) -> None:
    """A task of some questions has their forecasts alone."""
    log = written(tmp_path / "log.db", commands_of("metaculus-2022"))
    frame = Log(log).frame(Cut(None))
    labels, counts = frame.frame.facts.question_codes.labels, frame.frame.counts
    some = [code for code in range(len(labels)) if code != 1]
    [one] = divide(frame, 10**6, some)
    assert [labels[code] for code in one.tolist()] == sorted(labels[code] for code in some)
    [task] = Tasks(frame, [one])
    assert sum(len(columns[0]) for columns in task.unsealed) == counts[some].sum() < counts.sum()
    assert len(divide(frame, int((counts**2).sum()), power=2)) == 1
    assert len(divide(frame, int(counts.max()) ** 2, power=2)) == len(divide(frame, int(counts.max())))
    assert divide(frame, 1, []) == []


# --- how much memory


def test_the_memory_is_divided_between_processes_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process has 150 MiB for itself, a task 2,000 bytes a forecast; one of all has 4,000 bytes a question."""
    monkeypatch.setattr(engines, "processors", lambda: 3)
    each, questions = 150 * 2**20 + 2_000 * 5_000, 4_000 * 70
    assert forecasts_within(each + questions, "local", 70) == 5_000
    assert forecasts_within(4 * each + questions, "processes", 70) == 5_000
    assert forecasts_within(4 * each + questions - 1, "processes", 70) == 4_999
    assert forecasts_within(150 * 2**20 + 3 * 2_000 * 5_000 + questions, "threads", 70) == 5_000
    engine: Engine
    # 150 MiB, 0.04 MiB and 7.8 MiB for 4,096 forecasts
    for engine, least in (("local", 158), ("threads", 174), ("processes", 632)):
        with pytest.raises(Refused, match=f"and 10 questions; give {least} MiB or more") as refused:
            forecasts_within((least - 1) * 2**20, engine, 10)
        assert refused.value.code == "out_of_range"
        assert forecasts_within(least * 2**20, engine, 10) >= 4_096


def test_a_log_that_does_not_fit_is_refused_while_it_is_read(tmp_path: Path) -> None:
    """The remedy is to seal it: forecasts in segments are read in parts; an open ledger is refused too."""
    log = written(tmp_path / "log.db", commands_of("metaculus-2022"))
    with pytest.raises(Refused, match=r"events that are not in segments, 34 or more, need more than 0 MiB.*seal"):
        replay(log, memory=10_000)
    with Ledger.open(log) as ledger, pytest.raises(Refused, match="34 or more"):
        replay(ledger, memory=10_000)
    seal(log, tmp_path / "sealed")
    trusts: list[Trust] = ["rows", "files"]
    for trust in trusts:
        with pytest.raises(Refused, match="too little"):
            replay(tmp_path / "sealed", trust=trust, memory=10_000)
        assert replay(tmp_path / "sealed", trust=trust, memory=1 << 30).checkpoint == replay(log).checkpoint


def test_the_command_line_takes_a_size(tmp_path: Path) -> None:
    """The same digests and files are printed; a size needs a unit."""
    log = written(tmp_path / "log.db", commands_of("metaculus-2022"))
    assert run("replay", log, "--memory", "1GiB").stdout == run("replay", log).stdout
    plain, parts = (
        run("export", log, str(tmp_path / name), "--format", "csv", "--wide", *more)
        for name, more in (("plain", ()), ("parts", ("--memory", "1500mb")))
    )
    assert (parts.exit_code, parts.stdout) == (plain.exit_code, plain.stdout)
    for wrong in ("2", "GiB", "-1GiB", "1.5GiB", "1TiB", "1 GiB x"):
        refused = run("replay", log, "--memory", wrong)
        assert (refused.exit_code, f"{wrong!r} is not a size: write it like 2GiB or 500MB" in refused.stderr) == (
            2,
            True,
        )
    assert "give 158 MiB or more" in run("replay", log, "--memory", "10MiB").stderr
    assert "leave --engine, --only and --memory out" in run("replay", log, "--compare", log, "--memory", "1GiB").stderr
    for form in ("hub", "segments"):
        refused = run("export", log, str(tmp_path / form), "--format", form, "--memory", "1GiB")
        assert (refused.exit_code, "leave --memory out" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("fields", "covered"), [({}, "0.9"), ({"clock": "recorded"}, "0.8"), ({"late_minutes": 60}, "0.8")]
)
def test_a_board_counts_forecasts_from_their_recording_if_its_rules_say_so(
    fields: dict[str, Any], covered: str, tmp_path: Path
) -> None:
    """One that claims the day before, on a question of ten days: a board alone reads the instants that it needs."""
    rules = structs.replace(RuleSet(name="own", kernel="ln", reference="uniform"), **fields)
    said: list[AnyCommand] = [opened(), contest(rules=rules), entry(), forecast(at=day(11)), resolution()]
    path = written(tmp_path / "log.db", said, at=[*[micros(5)] * 3, micros(12), micros(25)])
    seal(path, tmp_path / "segments")
    board = replay(tmp_path / "segments", trust="files", engine="local", tables=["leaderboard"]).table("leaderboard")
    assert [Fraction(row["coverage"]) for row in board] == [Fraction(covered)]
