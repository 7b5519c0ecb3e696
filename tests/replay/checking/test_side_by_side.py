"""A log verified side by side has the verdict that it has alone, whatever is wrong with it."""

import errno
import os
import sqlite3
import sys
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from shutil import copyfile
from threading import Thread
from typing import Any

import pytest
from msgspec import UNSET, json, structs

from forecast_ledger.ledger.auditing.audit import Audit
from forecast_ledger.ledger.core.errors import Corrupt, LedgerError
from forecast_ledger.ledger.core.parquet_files import BYTES
from forecast_ledger.ledger.core.values import ID_LENGTH
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.canonical import forecast_contents
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.segments.sealing import seal
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns
from forecast_ledger.ledger.segments.segment_manifest import Segment
from forecast_ledger.ledger.storing.segment_rows import SegmentRows
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.projections.facts.columns import join_pages
from forecast_ledger.replay.audit import verify
from forecast_ledger.replay.audit.verify import run_checks
from forecast_ledger.replay.checking import side_by_side
from forecast_ledger.replay.checking.checked_parts import CheckedPart, Reader
from forecast_ledger.replay.checking.side_by_side import Beginning, check_part, check_parts
from forecast_ledger.replay.engines import pool, shared_tasks
from forecast_ledger.replay.files import restore as restoring
from forecast_ledger.replay.files.manifest import Manifest
from forecast_ledger.replay.files.restore import restore
from forecast_ledger.replay.reading.log import Log
from tests.ledger.segments.test_footer_check import changed as changed_footer
from tests.ledger.segments.test_footer_check import of_statistics
from tests.replay.audit.test_verify import BROKEN_LOGS, PAID, Broken
from tests.replay.checking.conftest import Alone
from tests.support.effort import LONG
from tests.support.forging import in_first_form
from tests.support.forging import written as forged
from tests.support.given import (
    COLOURS,
    choices,
    contest,
    day,
    enrolment,
    ensemble,
    forecast,
    micros,
    numeric,
    opened,
    quartiles,
    renaming,
    resolution,
    restatement,
    withdrawal,
)
from tests.support.logs import commands_of, log_fixture, recorded, written
from tests.support.logs import rows as rows_of
from tests.support.processes import Command, forking
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("quickly_sealed")

Change = Callable[[list[Recorded], int], list[Recorded]]


def same(location: Path | str) -> bool:
    """Check that a log has the verdict that it has alone, to every word; return whether nothing is damaged."""
    alone, beside = run_checks(Log(location)), run_checks(Log(location), side_by_side=True)
    assert (beside.head, beside.results) == (alone.head, alone.results)
    for found, expected in ((beside.damage, alone.damage), (beside.differences, alone.differences)):
        assert [(wrong.position, str(wrong), wrong.check) for wrong in found] == [
            (wrong.position, str(wrong), wrong.check) for wrong in expected
        ]
    return not alone.damage


@pytest.mark.parametrize("broken", [pytest.param(case.values[1], id=case.id) for case in BROKEN_LOGS])
def test_broken_logs_have_the_same_verdict(tmp_path: Path, broken: Broken, begun: list[Beginning | None]) -> None:
    """Each check, wherever it stops, with every word that it says."""
    same(broken(tmp_path / "log.db"))
    assert len(begun) == 1


@pytest.mark.usefixtures("begun")
def test_a_last_position_that_is_a_text_is_found(tmp_path: Path) -> None:
    """SQLite holds it to be greater than every number."""
    path = written(tmp_path / "log.db", FORECASTS)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE stored_events SET originator_version = 'last' WHERE originator_version = 26")
    assert not same(path)


@pytest.mark.parametrize("story", ["metaculus-2022", "autocast-2022", "changed-outcomes"])
def test_sound_logs_are_verified_side_by_side(tmp_path: Path, story: str, begun: list[Beginning | None]) -> None:
    """As a file and as segments; forecasts have the columns that they have alone, in the order of the log."""
    path = written(tmp_path / "log.db", commands_of(story))
    with Log(path).opened() as store:
        seal(store.pages, "main", tmp_path / "s", 37)
        newest = store.newest()
    for location in (path, tmp_path / "s"):
        assert same(location)
        found = begun.pop()
        assert found is not None
        assert found.rows.last.position == newest


def test_what_is_appended_meanwhile_is_verified_too(
    tmp_path: Path, begun: list[Beginning | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows after the beginning are read alone, and the last command of the beginning may go on in them."""
    path = written(tmp_path / "log.db", PAID)
    whole = run_checks(Log(path))
    for end in range(1, whole.head.position):
        monkeypatch.setattr(StoredLog, "newest", lambda _, end=end: end)
        assert run_checks(Log(path), side_by_side=True) == whole
    assert None not in begun


@pytest.mark.parametrize(("least", "expected"), [(26, [0, 7, 14, 21]), (27, [])])
def test_logs_are_checked_by_their_columns_in_python_too(
    least: int, expected: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, and unless there are few rows; an SQLite file and segments."""
    path, checked = written(tmp_path / "log.db", FORECASTS), list[int]()

    def noted(reader: Reader, after: int, end: int) -> CheckedPart | None:
        checked.append(after)
        return check_part(reader, after, end)

    monkeypatch.setattr(side_by_side, "LEAST", least)
    monkeypatch.setattr(side_by_side, "PART", 7)
    monkeypatch.setattr(side_by_side, "check_part", noted)
    heads = [verify.verify(location) for location in (path, in_segments(path, tmp_path / "s", 100))]
    assert heads[0] == heads[1] == run_checks(Log(path, as_of=26)).head
    assert checked == 2 * expected


def test_a_cut_and_a_short_log_are_verified_alone(
    tmp_path: Path, begun: list[Beginning | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes are not worth their start, or would read more than was asked for."""
    path = written(tmp_path / "log.db", PAID)
    run_checks(Log(path, as_of=3), side_by_side=True)
    monkeypatch.setattr(side_by_side, "LEAST", 100)
    run_checks(Log(path), side_by_side=True)
    assert begun == [None] * 2


# --- Forecasts of which each by itself is right.

FORECASTS: list[AnyCommand] = [
    opened(),
    contest(),
    *(
        forecast(participant=who, probability=f"0.{number + 11}", at=day(10 + number // 3))
        for number, who in enumerate(["ada", "bob", "cyd"] * 8)
    ),
]


@cache
def sound() -> tuple[Recorded, ...]:
    """The rows of these, of which each test changes some."""
    return (*recorded(FORECASTS),)


def changed(**fields: Any) -> Change:
    """The change of a row that gives it other fields; `event` has those of the event."""

    def change(rows: list[Recorded], place: int) -> list[Recorded]:
        row = rows[place]
        event = structs.replace(row.event, **fields.get("event", {}))
        return [*rows[:place], structs.replace(row, **(fields | {"event": event})), *rows[place + 1 :]]

    return change


def swapped(rows: list[Recorded], place: int) -> list[Recorded]:
    """A row and the third before it, which is of the same participant, in each other's place."""
    rows[place], rows[place - 3] = rows[place - 3], rows[place]
    return rows


def answered(rows: list[Recorded], place: int) -> list[Recorded]:
    """An answer before a row."""
    *_, answer = recorded([*FORECASTS, resolution(at=day(10))])
    return [*rows[:place], answer, *rows[place:]]


_NAMED = ("question", "participant")


def _json(name: str) -> str:
    """An id as JSON."""
    return json.encode(name).decode()


def told(*, unnamed: str = "", **fields: Any) -> Change:
    """A forecast that says something else, and whose command is known to have said it.

    unnamed: the field whose id the digest of the command leaves out.
    """

    def change(rows: list[Recorded], place: int) -> list[Recorded]:
        event: Any = structs.replace(rows[place].event, **fields)
        question, participant = (["" if name == unnamed else _json(getattr(event, name))] for name in _NAMED)
        [digest] = log.fingerprints(forecast_contents(question, participant, [event.at], [event.probabilities[0]]))
        return changed(command=digest, event=fields)(rows, place)

    return change


CHANGES: dict[str, Change] = {
    "another digest of its command": changed(command="0" * 32),
    "another id": changed(command_id="new"),
    "an id that is used": changed(command_id="c2"),
    "an id of another command": changed(command_id="c1"),
    "an id that is too long": changed(command_id="x" * (ID_LENGTH + 1)),
    "the id of the row before": lambda rows, place: changed(command_id=rows[place - 1].command_id)(rows, place),
    "an id that is none": changed(command_id=" "),
    "another number": changed(event={"probabilities": (10**8, 9 * 10**8)}),
    "numbers that are none": changed(event={"probabilities": (10**8, 10**8)}),
    "numbers that do not sum to one": lambda rows, place: changed(
        event={"probabilities": (rows[place].event.probabilities[0], 0)}  # type: ignore[union-attr]
    )(rows, place),
    "a number above one": told(probabilities=(10**9 + 1, -1)),
    "another number, as told": told(probabilities=(10**8, 9 * 10**8)),
    "before the calendar, as told": told(at=-(2**62), participant="dan"),
    "a participant that is none, as told": told(participant=""),
    "a participant that is none, left out": told(participant="", unnamed="participant"),
    "a question that is none, left out": told(question="snow", unnamed="question"),
    "another question": changed(event={"question": "snow"}),
    "another participant": changed(event={"participant": "dan"}),
    "a participant that is none": changed(event={"participant": ""}),
    "after the close": changed(event={"at": micros(500)}),
    "at the close, as told": told(at=micros(20)),
    "back in time, as told": lambda rows, place: told(at=rows[place - 3].event.at - 1)(rows, place),
    "after an answer": answered,
    "before the calendar": changed(event={"at": -(2**62)}),
    "the first form": changed(normal=UNSET),
    "imported": changed(imported=True),
    "recorded before": changed(recorded_at=-1),
    "out of order": swapped,
}


SEGMENTED = [
    pytest.param(change, (place, processors), id=f"{name}, {processors}")
    for name, change in CHANGES.items()
    for place, processors in ((16, 1), (14, 1), (13, 1), (7, 2))
    if LONG > 1 or place == 16 or name == "the id of the row before"
]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_forecast_is_found_wherever_parts_end(
    tmp_path: Path, change: Change, begun: list[Beginning | None]
) -> None:
    """The last row of a part, the first one, and one within it; every digest of rows is right."""
    rows = [*sound()]
    for place in (6, 7, 10, 13, 23):
        same(forged(tmp_path / f"{place}.db", change([*rows], place)))
    assert len(begun) == 5


def in_segments(path: Path | str, folder: Path, rows: int) -> Path:
    """The rows of a log in segments of so many."""
    with Log(path).opened() as store:
        seal(store.pages, "main", folder, rows)
    return folder


@pytest.mark.parametrize(("change", "at"), SEGMENTED)
def test_a_changed_forecast_is_found_in_segments(
    change: Change,
    at: tuple[int, int],
    tmp_path: Path,
    begun: list[Beginning | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Within a part, and where one and a segment of thirteen rows begin; by one process, and in a long run by two.

    Every digest of rows and files is right, and columns say what the rows say. No import takes such segments, and it
    says the same as one that reads every row.
    """
    place, processors = at
    monkeypatch.setattr(side_by_side, "processors", lambda: processors)
    path = forged(tmp_path / "log.db", change([*sound()], place))
    same(folder := in_segments(path, tmp_path / "s", 13))
    assert len(begun) == 1
    found = imported(folder, tmp_path / "copy.db")
    monkeypatch.setattr(side_by_side, "LEAST", 1 << 18)
    assert imported(folder, tmp_path / "other.db") == found
    assert len(begun) == 1


@pytest.mark.parametrize("told", ["an id that is used", "out of order", "after the close", "nothing"])
def test_the_tail_is_decided_against_what_was_taken_before(
    told: str, tmp_path: Path, begun: list[Beginning | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands on a question, and the ids of commands, are those of the forecasts taken as columns."""
    rows, place = [*sound()], 22
    change = changed(command_id=rows[9].command_id) if told == "an id that is used" else CHANGES.get(told)
    path = forged(tmp_path / "log.db", change(rows, place) if change else rows)
    monkeypatch.setattr(StoredLog, "newest", lambda _: 21)
    assert same(path) == (change is None)
    assert begun != [None]


def test_two_checks_in_one_process_read_their_own_logs(tmp_path: Path) -> None:
    """Begun one after the other, each part has the digests of the log that it was asked for."""
    paths = [written(tmp_path / f"{first}.db", [*FORECASTS[:2], *FORECASTS[first:9]]) for first in (2, 3)]
    folders = [in_segments(path, tmp_path / str(number), 4) for number, path in enumerate(paths)]
    heads = [run_checks(Log(folder)).head for folder in folders]
    here = [
        side_by_side._shared(Log(folder), StoredLog.open(folder, "main", read_only=True), head.position, 0)
        for folder, head in zip(folders, heads, strict=True)
    ]
    for head, shared in zip(heads, here, strict=True):
        assert shared is not None
        reader, tasks = shared
        [part] = tasks.results([tasks.submit(check_part, 0, head.position)])
        assert part.end == head
        reader.store.close()


OF_ALL_FORMS: list[Any] = [
    *(opened(), choices(), numeric(), quartiles(), ensemble(), contest(), enrolment(participant="fay")),
    *FORECASTS[2:9],
    *(forecast(participant=who, at=None) for who in ("dan", 'a "b" \\')),
    forecast(participant="ada", probability="0.3", at=day(17), until=day(18)),
    forecast(participant="ada", probability="0.3", at=day(18), by="her desk"),
    forecast(
        "colour", probability=None, probabilities=dict(zip(COLOURS, ("0.2", "0.3", "0.5"), strict=True)), at=day(11)
    ),
    forecast("depth", probability=None, cdf=["0", "0.25", "0.5", "0.75", "1"], at=day(11)),
    forecast("flow", probability=None, quantiles=["1", "2", "3"], at=day(11)),
    forecast("depths", probability=None, samples=["1", "2", "3"], at=day(11)),
    restatement(forecast(participant="bob", probability="0.4", at=day(11)), participant="bob"),
    withdrawal(participant="cyd", at=day(18)),
    *(forecast(participant=who, at=day(18)) for who in ("eve", "cyd", "fay")),
]


def test_forecasts_of_every_form_are_taken_from_segments_as_from_rows(
    tmp_path: Path, begun: list[Beginning | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is told from columns is what rows tell: all numbers of every forecast, but for the codes of participants."""
    monkeypatch.setattr(CheckedPart, "without_facts", lambda part: part)  # as if a prize were paid
    path = written(tmp_path / "log.db", OF_ALL_FORMS, at=micros(19))
    for location in (path, in_segments(path, tmp_path / "s", 100)):
        assert same(location)
    found = []
    for beginning in begun:
        assert beginning is not None
        page, lengths = join_pages(beginning.columns)
        labels, ends = beginning.facts.participant_codes.labels, page.start + lengths
        numbers = [page.chances[begin:end].tolist() for begin, end in zip(page.start, ends, strict=True)]
        columns = (page.position, page.at, page.recorded_at, page.question, page.made, page.until)
        who = [labels[code] for code in page.participant.tolist()]
        found.append(sorted(zip(*(column.tolist() for column in columns), who, numbers, strict=True)))
    assert found[0] == found[1]
    assert len(found[0]) == 19


def test_columns_of_forecasts_are_kept_for_boards_that_payments_are_compared_with(
    tmp_path: Path, begun: list[Beginning | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of segments alone; if they pay a prize after all, the log is read alone."""
    paths = [written(tmp_path / f"{number}.db", commands) for number, commands in enumerate((FORECASTS, PAID))]
    folders = [in_segments(path, tmp_path / str(number), 100) for number, path in enumerate(paths)]
    locations: list[Path | str] = [*paths, *folders]
    for location in locations:
        assert same(location)
    assert [each and bool(each.columns) for each in begun] == [True, True, False, True]
    monkeypatch.setattr(side_by_side, "SURROUNDINGS", side_by_side.SURROUNDINGS[:-1])
    assert same(folders[1])
    assert begun[-1] is None


@pytest.mark.parametrize(
    ("commands", "plain"),
    [
        (FORECASTS, 20),
        ([*FORECASTS, withdrawal(participant="cyd", at=day(18)), forecast(participant="cyd", at=day(18))], 21),
        (
            [*FORECASTS[:2], forecast(participant="eve", at=day(10)), renaming("eve", "ada", day(10)), *FORECASTS[2:]],
            13,
        ),
    ],
    ids=["forecasts alone", "a withdrawal", "other ids"],
)
def test_forecasts_are_taken_as_they_are(
    tmp_path: Path,
    commands: list[Any],
    plain: int,
    begun: list[Beginning | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All but those at the ends of parts, whose command may go on, and those of participants with several ids."""
    taken: list[Any] = []
    take = Audit.take

    def noted(audit: Audit, forecasts: Any) -> Any:
        taken.extend(forecasts.ids)
        return take(audit, forecasts)

    monkeypatch.setattr(Audit, "take", noted)
    assert same(written(tmp_path / "log.db", commands))
    assert None not in begun
    assert len(taken) == plain


def test_digests_of_the_first_form_are_counted(tmp_path: Path, begun: list[Beginning | None]) -> None:
    """Such forecasts are decided one after the other."""
    commands: list[AnyCommand] = [structs.replace(command, id=f"c{number}") for number, command in enumerate(FORECASTS)]
    rows = in_first_form(recorded(commands), commands)
    assert same(forged(tmp_path / "log.db", rows))
    found = run_checks(Log(tmp_path / "log.db"), only=["decided"], side_by_side=True).results
    assert "are known by digests from before the normal form" in found[0].says
    assert None not in begun


def test_processes_verify_what_one_verifies(
    tmp_path: Path, begun: list[Beginning | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In processes of their own; one that cannot begin leaves the log to this one."""
    context = forking("forecast_ledger.replay.checking.side_by_side")
    monkeypatch.setattr(shared_tasks.Task, "do", lambda *_: None)  # this one leaves all parts to them
    monkeypatch.setattr(side_by_side, "start", partial(pool.start, context=context))
    path = written(tmp_path / "log.db", FORECASTS)
    assert same(path)
    monkeypatch.setattr(side_by_side, "fspath", lambda _: str(tmp_path / "missing.db"))
    assert same(path)
    assert [each is None for each in begun] == [False, True]


FORKED = """
import sys
from threading import Event, Thread
from forecast_ledger.ledger.storing.forks import holds_nothing
from forecast_ledger.ledger.storing.segment_rows import SegmentRows
from forecast_ledger.replay.audit.verify import run_checks
from forecast_ledger.replay.checking import side_by_side
from forecast_ledger.replay.engines import shared_tasks
from forecast_ledger.replay.reading.log import Log
waiting = Thread(target=Event().wait, daemon=True)
waiting.start()
holds_nothing(waiting)
side_by_side.MANY = side_by_side.LEAST = 1
side_by_side.processors, side_by_side.PART = lambda: 3, 7
shared_tasks.Task.do = lambda *_: None  # this one leaves all parts to forks
read, found = SegmentRows._read_columns, side_by_side.verified_beginning
def noted(self, segment, without=()):
    print("columns", flush=True)
    return read(self, segment, without)
SegmentRows._read_columns = noted
start = side_by_side.start
def started(*given, **how):
    pool = start(*given, **how)
    print(*(type(child).__name__ for child in pool.children), flush=True)
    return pool
side_by_side.start = started
def begun(*log, **how):
    beginning = found(*log, **how)
    print("in doubt" if beginning is None else "begun", flush=True)
    return beginning
sys.modules[run_checks.__module__].verified_beginning = begun
print(run_checks(Log(sys.argv[1]), side_by_side=True).head.digest)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux is the command line forked")
def test_forks_have_the_columns_that_were_read_before(tmp_path: Path) -> None:
    """They check a log of one segment, which is read once."""
    path = written(tmp_path / "log.db", FORECASTS)
    segments = in_segments(path, tmp_path / "s", 100)
    told, errors = Command(str(segments), program=FORKED).communicate(timeout=PATIENCE)
    assert (told.split("\n"), errors) == (
        ["columns", "ForkProcess ForkProcess", "begun", run_checks(Log(path)).head.digest, ""],
        "",
    )


def test_a_log_for_which_no_process_can_be_started_is_closed(
    tmp_path: Path, begun: list[Beginning | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system has no more processes, this one verifies the log alone, and leaves nothing open."""
    stores, opened_store = list[StoredLog](), StoredLog.open

    def noted(*given: Any, **named: Any) -> StoredLog:
        stores.append(opened_store(*given, **named))
        return stores[-1]

    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    path = written(tmp_path / "log.db", FORECASTS)
    monkeypatch.setattr(StoredLog, "open", noted)
    monkeypatch.setattr(side_by_side, "start", fails)
    assert same(path)
    assert begun == [None]
    assert len(stores) > 1
    assert all(store.is_closed for store in stores)


def test_where_the_system_has_no_more_threads_this_process_verifies_the_log_alone(
    tmp_path: Path, begun: list[Beginning | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One would read the columns of the first segment."""

    def fails(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    folder = in_segments(written(tmp_path / "log.db", FORECASTS), tmp_path / "s", 100)
    monkeypatch.setattr(side_by_side, "can_fork", lambda: True)
    monkeypatch.setattr(Thread, "start", fails)
    assert same(folder)
    assert begun == [None]


def test_a_process_that_is_killed_leaves_the_log_to_this_one(
    tmp_path: Path, begun: list[Beginning | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that it did not check counts as checked: a damaged log is found damaged."""
    context = forking("forecast_ledger.replay.checking.side_by_side")
    monkeypatch.setattr(shared_tasks.Task, "do", lambda *_: None)  # this one leaves all parts to them
    monkeypatch.setattr(side_by_side, "start", partial(pool.start, context=context))
    monkeypatch.setattr(side_by_side, "check_parts", killed_at_the_third_part)
    path = written(tmp_path / "log.db", FORECASTS)
    assert same(path)
    edit(path, said_otherwise, 20)
    assert not same(path)
    assert begun == [None, None]


def killed_at_the_third_part(reader: Reader, after: int, end: int, files: Sequence[int]) -> list[CheckedPart | None]:
    """Check a part, in a process that something ends at once."""
    if after >= 14:  # parts of seven rows
        os._exit(9)
    return check_parts(reader, after, end, files)


class Lazy(Alone):
    """Begins only some of its tasks, by number."""

    begins: set[int]

    def submit(self, task: Callable[..., Any], *given: Any) -> "Future[Any]":
        """Do a task, or leave it to others."""
        self.count = getattr(self, "count", -1) + 1
        return super().submit(task, *given) if self.count in self.begins else Future()


@pytest.mark.parametrize("others", [{0, 1, 4}, {2, 3}, set()], ids=str)
def test_this_process_does_what_no_other_has_begun(
    others: set[int], tmp_path: Path, begun: list[Beginning | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever that is: the files, or parts of seven rows, each once."""
    checked = list[int]()

    def check(reader: Reader, after: int, end: int) -> CheckedPart | None:
        checked.append(after)
        return check_part(reader, after, end)

    monkeypatch.setattr(side_by_side, "start", Lazy)
    monkeypatch.setattr(Lazy, "begins", others, raising=False)
    monkeypatch.setattr(side_by_side, "check_part", check)
    assert same(written(tmp_path / "log.db", FORECASTS))
    assert sorted(checked) == [0, 7, 14, 21]
    assert None not in begun


@pytest.mark.parametrize(
    ("of", "order"),
    [
        ((2, 0), [0, 7, 14, -1, 21]),
        ((3, 0), [0, 7, -1, 14, 21]),
        ((9, 0), [0, -1, 7, 14, 21]),
        ((2, 9), [0, 7, -1, 14, -2, 21, -3]),
    ],
)
def test_files_are_checked_while_this_process_decides_the_last_commands(
    of: tuple[int, int],
    order: list[int],
    tmp_path: Path,
    begun: list[Beginning | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The more processes check the last parts meanwhile, the earlier; those of other segments after their last part.

    of: how many processors, and rows of a segment; 0 for a database. Negative numbers, from -1 on, are checks of files.
    """
    processors, rows = of
    checked, has_no_faults = list[int](), side_by_side.has_no_faults

    def check(reader: Reader, after: int, end: int = 0) -> CheckedPart | bool | None:
        checked.append(after if end else -1 - after)
        return check_part(reader, after, end) if end else has_no_faults(reader, after)

    monkeypatch.setattr(side_by_side, "processors", lambda: processors)
    monkeypatch.setattr(side_by_side, "_LATE", 4)
    monkeypatch.setattr(side_by_side, "check_part", check)
    monkeypatch.setattr(side_by_side, "has_no_faults", check)
    path = written(tmp_path / "log.db", FORECASTS)
    assert same(in_segments(path, tmp_path / "s", rows) if rows else path)
    assert checked == order
    assert None not in begun


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        ((2, 0), [(end, list[int]()) for end in (6, 11, 14, 17, 19, *range(20, 27))]),
        ((3, 0), [(end, list[int]()) for end in (4, 7, 10, 12, 14, 16, *range(17, 27))]),
        ((2, 13), [(end, [0] * (end == 13)) for end in (4, 8, 12, 13, 16, 18, 20, *range(21, 27))]),
        ((1, 13), [(end, [0] * (end == 13)) for end in range(1, 27)]),
    ],
)
def test_a_process_checks_many_parts_at_first(
    of: tuple[int, int],
    expected: list[tuple[int, list[int]]],
    tmp_path: Path,
    begun: list[Beginning | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half of its share of the rest, of rows that are a part each, and no more than four, of a segment.

    of: how many processors, and rows of a segment; 0 for a database. expected: where each task ends, and the segments
    whose files are checked then.
    """
    (processors, rows), found = of, list[tuple[int, list[int]]]()

    def noted(reader: Reader, after: int, end: int, files: Sequence[int]) -> list[CheckedPart | None]:
        found.append((end, [*files]))
        return check_parts(reader, after, end, files)

    monkeypatch.setattr(side_by_side, "processors", lambda: processors)
    monkeypatch.setattr(side_by_side, "PART", 1)
    monkeypatch.setattr(side_by_side, "_MOST", 4 if rows else 32)
    monkeypatch.setattr(side_by_side, "check_parts", noted)
    path = written(tmp_path / "log.db", FORECASTS)
    assert same(in_segments(path, tmp_path / "s", rows) if rows else path)
    assert found == expected
    assert None not in begun


def test_the_columns_of_each_segment_are_read_once(
    tmp_path: Path, begun: list[Beginning | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a process that checks all parts, of which each is in one segment, and all files."""
    folder = in_segments(written(tmp_path / "log.db", FORECASTS), tmp_path / "s", 14)
    read, of_segment = list[int](), SegmentRows._read_columns

    def noted(self: SegmentRows, segment: Segment, without: Collection[str] = ()) -> SegmentColumns:
        read.extend([] if without else [segment.first])
        return of_segment(self, segment, without)

    monkeypatch.setattr(SegmentRows, "_read_columns", noted)
    run_checks(Log(folder), side_by_side=True)
    assert read == [1, 15]
    assert None not in begun


# --- Rows that were changed in the file, without their digests.

Edit = Callable[[sqlite3.Connection, int], None]


def said_otherwise(file: sqlite3.Connection, place: int) -> None:
    """Other bytes in a row."""
    file.execute("UPDATE stored_events SET state = CAST(state || ' ' AS BLOB) WHERE originator_version = ?", [place])


def missing(file: sqlite3.Connection, place: int) -> None:
    """A row less."""
    file.execute("DELETE FROM stored_events WHERE originator_version = ?", [place])


def said_twice(file: sqlite3.Connection, place: int) -> None:
    """The row before, again."""
    [row] = file.execute("SELECT state FROM stored_events WHERE originator_version = ?", [place - 1]).fetchone()
    file.execute("UPDATE stored_events SET state = ? WHERE originator_version = ?", [row, place])


def exchanged(file: sqlite3.Connection, place: int) -> None:
    """A row and the next one in each other's place."""
    for position, to in ((place, -1), (place + 1, place), (-1, place + 1)):
        file.execute("UPDATE stored_events SET originator_version = ? WHERE originator_version = ?", [to, position])


def of_another_type(file: sqlite3.Connection, place: int) -> None:
    """Another type beside a row."""
    file.execute("UPDATE stored_events SET topic = 'quote.v1' WHERE originator_version = ?", [place])


def nested(file: sqlite3.Connection, place: int) -> None:
    """An event deeper than Python's recursion limit."""
    [row] = file.execute("SELECT state FROM stored_events WHERE originator_version = ?", [place]).fetchone()
    deep = row.replace(b'"event":{', b'"event":{"x":' + b"[" * 10_000 + b"]" * 10_000 + b",")
    file.execute("UPDATE stored_events SET state = ? WHERE originator_version = ?", [deep, place])


EDITS: list[Edit] = [said_otherwise, missing, said_twice, exchanged, of_another_type, nested]


def edit(path: Path | str, change: Edit, place: int) -> None:
    """Change a row of a file."""
    with closing(sqlite3.connect(path)) as file, file:
        change(file, place)


def test_a_question_whose_row_is_a_text_is_found(tmp_path: Path, begun: list[Beginning | None]) -> None:
    """The questions are read before the rows are, from which the verdict comes."""
    path = written(tmp_path / "log.db", FORECASTS)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE stored_events SET state = 'text' WHERE originator_version = 1")
    assert not same(path)
    assert begun == [None]


forecasts = log_fixture(FORECASTS, "module")


@pytest.mark.parametrize("change", EDITS, ids=lambda change: change.__name__)
def test_an_edited_row_is_found_wherever_parts_end(
    forecasts: str, tmp_path: Path, change: Edit, begun: list[Beginning | None]
) -> None:
    """The last row of a part, the first one, one within it, and the last of the log; the words are those of one."""
    for place in (6, 7, 8, 14, 15, 25):
        path = copyfile(forecasts, tmp_path / f"{place}.db")
        edit(path, change, place)
        assert not same(path)
    assert begun == [None] * 6


def test_an_edited_file_of_a_segment_is_found(tmp_path: Path, begun: list[Beginning | None]) -> None:
    """In the first segment, in one within, and in the last; each segment ends within a part."""
    path, folder = written(tmp_path / "log.db", FORECASTS), tmp_path / "s"
    with Log(path).opened() as store:
        seal(store.pages, "main", folder, 9)
    for file in sorted(folder.glob("*.forecasts.parquet")):
        content = file.read_bytes()
        file.write_bytes(content[:200] + bytes([content[200] ^ 1]) + content[201:])
        assert not same(folder)
        file.write_bytes(content)
    assert begun == [None] * 3


# --- Imports of segments, which are checked so too.


def imported(folder: Path, copy: Path, *, several: bool = True) -> Any:
    """The rows of an imported folder; or how it is refused, after which there is no ledger."""
    try:
        restore(folder, copy, side_by_side=several)
    except LedgerError as error:
        assert not copy.exists()
        return type(error), str(error)
    return rows_of(str(copy))


def test_segments_are_imported_without_reading_every_row(
    tmp_path: Path, begun: list[Beginning | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row after row is read only if something is wrong, such as a byte of a file that no row is made of."""
    path = written(tmp_path / "log.db", OF_ALL_FORMS, at=micros(19))
    folder, read, check_rows = in_segments(path, tmp_path / "s", 20), list[Path](), restoring._check_rows

    def noted(export: Path, manifest: Manifest) -> Any:
        read.append(export)
        return check_rows(export, manifest)

    monkeypatch.setattr(restoring, "_check_rows", noted)
    written(tmp_path / "False.db", OF_ALL_FORMS[:18], at=micros(19))  # the import goes on where this ends
    monkeypatch.setattr(restoring, "ROWS_PER_TRANSACTION", 2)
    for several in (True, False):
        copy = tmp_path / f"{several}.db"
        assert imported(folder, copy, several=several) == rows_of(str(path))
        assert not run_checks(Log(copy)).damage  # nor is there in the column of types
    assert not read
    for file in sorted(folder.glob("*.parquet")):
        content = file.read_bytes()
        file.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
        kind, said = imported(folder, tmp_path / "copy.db")
        assert kind is Corrupt
        assert file.name in said
        file.write_bytes(content)
    assert read


@pytest.mark.parametrize("rows", [100, 13])
def test_a_footer_that_misleads_readers_is_found(rows: int, tmp_path: Path, begun: list[Beginning | None]) -> None:
    """In the last segment. Every row and every digest is right, that of the file too: a statistic is not."""
    folder = in_segments(written(tmp_path / "log.db", FORECASTS), tmp_path / "s", rows)
    changed_footer(folder, of_statistics("claimed_at", f6=(BYTES, bytes(8))))
    assert not same(folder)
    kind, said = imported(folder, tmp_path / "copy.db")
    assert (kind, begun) == (Corrupt, [None])
    assert "claimed_at" in said
