"""Rows that several processes read: the facts, the damage and its place are those of a log that one reads alone."""

import errno
import os
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.core.errors import Corrupt, LedgerError
from forecast_ledger.ledger.model import plain_rows
from forecast_ledger.ledger.model.commands import SubmitForecast
from forecast_ledger.ledger.model.events import ForecastMade
from forecast_ledger.ledger.model.log import encode_row
from forecast_ledger.ledger.model.plain_rows import CodedTexts, ReadPage
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.tables.catalogue import BUILT, Projections
from forecast_ledger.replay.engines import row_pages
from forecast_ledger.replay.explain.numbers import explain
from forecast_ledger.replay.reading.log import AsOf, Cut, Log
from forecast_ledger.replay.reading.replay import replay
from tests.ledger.model.test_plain_rows import forecasts_of
from tests.replay.checking.test_side_by_side import CHANGES, FORECASTS, Change, sound
from tests.support.forging import enveloped
from tests.support.forging import written as forged
from tests.support.given import day, forecast, opened
from tests.support.logs import VARIED, commands_of, written
from tests.support.processes import Command
from tests.support.seasons import Season
from tests.support.waiting import PATIENCE


class Alone:
    """In place of a pool: its tasks are done at once, in this process, until so many are done."""

    most = 1 << 20

    def __init__(self, _: int, begin: Callable[[Any], None], given: Any, **_how: bool) -> None:
        begin(given)

    def submit(self, task: Callable[..., Any], *given: Any) -> "Future[Any]":
        """Do a task."""
        done = Future[Any]()
        if given[1] > self.most:
            done.set_exception(BrokenExecutor())
        else:
            done.set_result(task(*given))
        return done

    def close(self) -> None:
        """Close what a process would have open."""
        while row_pages._store:
            row_pages._store.pop().close()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs of any length are read in parts of seven rows, as columns three at a time."""
    monkeypatch.setattr(row_pages, "MANY", 1)
    monkeypatch.setattr(row_pages, "PART", 7)
    monkeypatch.setattr(row_pages, "_GROUP", 3)
    monkeypatch.setattr(row_pages, "PAGE", 4)
    monkeypatch.setattr(row_pages, "processors", lambda: 2)
    monkeypatch.setattr(row_pages, "can_fork", lambda: True)
    monkeypatch.setattr(row_pages, "start", Alone)


def facts_of(log: Log, cut: Cut | None = None, *, side_by_side: bool) -> Facts:
    """The facts of a log up to a cut."""
    with log.parts(cut or Cut(None), side_by_side=side_by_side) as parts:
        return parts.facts()


def told(path: Path | str, as_of: AsOf = None, *, side_by_side: bool = True) -> tuple[object, ...]:
    """What the facts of a log say, and up to where it was read; or the error that reading it ends with."""
    cut = Cut(as_of)
    try:
        found = facts_of(Log(path), cut, side_by_side=side_by_side)
    except LedgerError as error:
        return type(error), *error.args
    return found.as_of, cut.last, cut.recorded_at, found.books.clock, sorted(forecasts_of(found))


def same(path: Path | str, as_of: AsOf = None) -> tuple[object, ...]:
    """What a log says that is read side by side, which is what it says alone."""
    found = told(path, as_of)
    assert found == told(path, as_of, side_by_side=False)
    return found


def parts_of(path: Path | str) -> list[int]:
    """The last log position of each part that was read by another process, or as one would."""
    with Log(path).opened() as store, closing(row_pages.read_columns(store, str(path))) as pages:
        return [
            page[-1].position
            for page in pages
            if isinstance(page, ReadPage) and page.forecasts.question.__class__ is CodedTexts
        ]


@pytest.mark.parametrize("story", VARIED)
def test_worked_examples_have_the_same_tables(story: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is in them, forecasts or not."""
    monkeypatch.setattr(row_pages, "_has_columns", lambda *_: True)
    path = written(tmp_path / "log.db", commands_of(story))
    same(path)
    beside, alone = (Projections(facts_of(Log(path), side_by_side=side_by_side)) for side_by_side in (True, False))
    assert [beside.table(name).digest() for name in BUILT] == [alone.table(name).digest() for name in BUILT]


def test_cuts_are_where_they_are_alone(tmp_path: Path) -> None:
    """At a position, also beyond the end, and at an instant: within a part, and at its end."""
    path = forged(tmp_path / "log.db", enveloped([row.event for row in sound()], step=10**6))
    assert parts_of(path) == [7, 14, 21, 26]
    for position in (0, 1, 6, 7, 8, 14, 20, 25, 26, 27):
        same(path, position)
        same(path, datetime.fromtimestamp(position, UTC))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_forecast_is_read_as_it_is_alone(change: Change, tmp_path: Path) -> None:
    """The last row of a part, the first one, and one within it; every digest of rows is right."""
    for place in (6, 7, 10, 13, 23):
        same(forged(tmp_path / f"{place}.db", change([*sound()], place)))


@pytest.mark.parametrize("kind", ["another byte", "no row", "another row"])
def test_damage_is_found_where_it_is(kind: str, tmp_path: Path) -> None:
    """Of the first rows of parts, the last ones, and others; without the last one, a log is only shorter."""
    rows = [encode_row(row) for row in sound()]
    for place in (1, 2, 7, 8, 13, 15, 26):
        path = written(tmp_path / f"{place}.db", FORECASTS)
        state = bytearray(rows[place - 1])
        state[Random(place).randrange(len(state))] ^= 1
        with closing(sqlite3.connect(path)) as connection, connection:
            if kind == "no row":
                connection.execute("DELETE FROM stored_events WHERE originator_version = ?", (place,))
            else:
                said = bytes(state) if kind == "another byte" else rows[place - 2]
                connection.execute("UPDATE stored_events SET state = ? WHERE originator_version = ?", (said, place))
        found = same(path)
        assert found[:2] == (Corrupt, place) or (kind == "no row" and found[0] == place - 1 == len(rows) - 1)


@pytest.mark.parametrize("position", ["x", 26.5, 1 << 62])
def test_a_last_row_out_of_place_is_found_there(position: object, tmp_path: Path) -> None:
    """Whatever the type of its position is, and however far it is."""
    path = written(tmp_path / "log.db", FORECASTS)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE stored_events SET originator_version = ? WHERE originator_version = 26", (position,))
    assert same(path)[:2] == (Corrupt, 26)


def test_which_fault_is_named_does_not_depend_on_parts(tmp_path: Path) -> None:
    """One process reads these rows as one page, of which the events that are no forecasts come first."""
    rows = [*sound()]
    early = structs.replace(rows[9], event=structs.replace(rows[9].event, question="late"))
    late = structs.replace(rows[0], event=structs.replace(rows[0].event, question="late"))
    found = same(forged(tmp_path / "log.db", [*rows[:9], early, *rows[10:19], late, *rows[20:]]))
    assert found == (Corrupt, 10, "expected a question opened earlier; found 'late', opened at log position 20")


def test_seasons_are_read_as_they_are_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all kinds of questions, in parts of several sizes; the other process ends before it is done."""
    monkeypatch.setattr(row_pages, "_has_columns", lambda *_: True)
    for seed in range(10):
        season = Season(Random(seed), "peer-2024-03", ending=0.2, restated=0.3, renamed=0.5)
        path = forged(tmp_path / f"{seed}.db", [*season.recorded()])
        monkeypatch.setattr(row_pages, "PART", 2 + seed)
        monkeypatch.setattr(Alone, "most", 70 - 7 * seed)
        same(path)


@pytest.mark.parametrize("side_by_side", [True, False])
def test_forecasts_on_one_question_are_read_alone(
    side_by_side: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever they are in the parts: every other event, and none on other questions where columns are read."""
    monkeypatch.setattr(plain_rows, "_ENOUGH", 1)
    on = [structs.replace(each, question="snow") for each in FORECASTS[2:] if isinstance(each, SubmitForecast)]
    mixed = [each for pair in zip(FORECASTS[2:], on, strict=True) for each in pair]
    path = written(tmp_path / "log.db", [*FORECASTS[:2], opened("snow"), *mixed[:20], opened("sun"), *mixed[20:]])
    with Log(path).opened() as store:
        every = [row for page in Cut(None).read(store.pages()) for row in page]
    for question in ("snow", "sun", "rain", ""):
        with Log(path).parts(Cut(None), side_by_side=side_by_side, question=question) as parts:
            pages = [*(parts.columns or ())]
        found = [row for page in pages for row in (page.on(question) if isinstance(page, ReadPage) else page)]
        on_it = [row for row in every if not isinstance(row.event, ForecastMade) or row.event.question == question]
        assert [row for row in found if row in on_it] == on_it
        assert len(found) == len(on_it)


@pytest.mark.parametrize("story", ["metaculus-2022", "autocast-2022", "changed-outcomes"])
def test_explanations_are_those_of_a_log_that_is_read_alone(
    story: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of scores, which need the forecasts on one question, and of prizes and ranks, which need none as events."""
    monkeypatch.setattr(row_pages, "_has_columns", lambda *_: True)
    path = written(tmp_path / "log.db", commands_of(story))
    season = replay(path)
    asked = [("score", *(row[name] for name in ("contest", "question", "participant"))) for row in season.scores][:4]
    asked += [(what, row["contest"], row["participant"]) for row in season.prizes for what in ("prize", "rank")][:4]
    beside = [explain(path, *each) for each in asked]
    monkeypatch.setattr(row_pages, "processors", lambda: 1)
    assert beside == [explain(path, *each) for each in asked]


def test_what_is_appended_meanwhile_is_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows after those that there were at first are read alone."""
    path = written(tmp_path / "log.db", FORECASTS)
    for newest in range(len(FORECASTS)):
        monkeypatch.setattr(StoredLog, "newest", lambda _, newest=newest: newest)
        assert same(path)[0] == len(FORECASTS)


def test_a_part_of_other_rows_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another log is in the place of this one when a process reads its part, which is right by itself."""
    other = written(tmp_path / "other.db", [*FORECASTS[:2], forecast(participant="zoe", at=day(10)), *FORECASTS[2:]])
    path, found = written(tmp_path / "log.db", FORECASTS), row_pages._found
    expected = told(path, side_by_side=False)
    for first in (7, 14, 21):
        with Log(other).opened() as another:
            monkeypatch.setattr(
                row_pages,
                "_found",
                lambda store, after, *rest, first=first, another=another: found(
                    another if after == first else store, after, *rest
                ),
            )
            assert told(path) == expected


@pytest.mark.parametrize("rows", [9, 10])
def test_rows_that_are_read_again_are_checked_again(rows: int, tmp_path: Path) -> None:
    """Where another log is in the place of this one by then: it differs within the part, or has less of it."""
    path = written(tmp_path / "log.db", FORECASTS)
    with Log(path).opened() as store, closing(row_pages.read_columns(store, path)) as pages:
        page = next(pages)
        assert [row.position for row in page] == [*range(1, 8)]
        changed = next(pages)
        other = [*FORECASTS[:rows], forecast(participant="zoe", at=day(14)), *FORECASTS[rows:]]
        written(tmp_path / "other.db", other[:rows] if rows == 9 else other)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DELETE FROM stored_events")
            connection.execute("ATTACH ? AS other", (str(tmp_path / "other.db"),))
            connection.execute("INSERT INTO stored_events SELECT * FROM other.stored_events")
        with pytest.raises(Corrupt, match="the rows up to here were changed while the log was read") as corrupt:
            changed[0]
        assert corrupt.value.position == 14
        assert changed[-1].position == 14


def test_rows_of_many_bytes_are_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are no forecasts of a probability, and more of them would take more memory."""
    path = written(tmp_path / "log.db", FORECASTS)
    sizes = [len(encode_row(row)) for row in sound()]
    pages = [sum(sizes[begin : begin + 4]) for begin in (0, 7, 14, 21)]  # the first page of each part
    assert max(pages) == pages[0] > pages[1]
    for most, parts in ((pages[0], [7, 14, 21, 26]), (pages[0] - 1, [14, 21, 26]), (min(pages) - 1, [])):
        monkeypatch.setattr(row_pages, "_BYTES", most)
        assert parts_of(path) == parts


@pytest.mark.parametrize("others", [14, 70])
def test_a_log_with_few_such_forecasts_is_read_alone(others: int, tmp_path: Path) -> None:
    """As some rows here and there tell; parts without any do not matter where half of the rows are forecasts."""
    more = [opened(f"q{number}") for number in range(others)]
    path = written(tmp_path / "log.db", [*FORECASTS[:16], *more, *FORECASTS[16:]])
    same(path)
    assert parts_of(path) == ([7, 14, 35, 40] if others == 14 else [])


@pytest.mark.parametrize("how", ["few rows", "one processor", "may not fork", "no more processes", "a bad log"])
def test_nothing_is_started_where_it_is_not_worth_it_or_cannot_be(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then a log is read alone, and nothing is left open."""
    path = written(tmp_path / "log.db", FORECASTS)

    def fails(*_: object, **__: object) -> None:
        if how != "no more processes":
            raise AssertionError(how)
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def damaged(_: StoredLog) -> int:
        raise Corrupt(1, how)

    monkeypatch.setattr(row_pages, "start", fails)
    if how == "few rows":
        monkeypatch.setattr(row_pages, "MANY", len(FORECASTS) + 1)
    elif how == "one processor":
        monkeypatch.setattr(row_pages, "processors", lambda: 1)
    elif how == "may not fork":
        monkeypatch.setattr(row_pages, "can_fork", lambda: False)
    elif how == "a bad log":
        monkeypatch.setattr(StoredLog, "newest", damaged)
    assert same(path)[0] == len(FORECASTS)


def test_a_reading_that_ends_early_ends_the_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a cut, and where an event does not fit."""
    closed, close = list[str](), Alone.close

    def noted(self: Alone) -> None:
        closed.append("closed")
        close(self)

    monkeypatch.setattr(Alone, "close", noted)
    told(written(tmp_path / "log.db", FORECASTS), "1960-01-01")
    told(forged(tmp_path / "other.db", CHANGES["another question"]([*sound()], 10)))
    assert closed == ["closed"] * 2


FORKED = """
import os, signal, sys
from threading import Event, Thread
from forecast_ledger.ledger.storing.forks import holds_nothing
from forecast_ledger.replay.engines import row_pages, shared_tasks
from forecast_ledger.replay.reading.replay import replay
waiting = Thread(target=Event().wait, daemon=True)
waiting.start()
holds_nothing(waiting)
row_pages.MANY, row_pages.PART, row_pages._GROUP = 1, 7, 3
row_pages.processors = lambda: 3
shared_tasks.Task.do = lambda *_: None  # this one leaves all parts to forks
start, page = row_pages.start, row_pages._Part.page
def started(*given, **how):
    pool = start(*given, **how)
    print(*(type(child).__name__ for child in pool.children), flush=True)
    if sys.argv[2] == "killed":
        for child in pool.children:
            os.kill(child.pid, signal.SIGKILL)
    return pool
def noted(part, store):
    print(part.end.position, flush=True)
    return page(part, store)
row_pages.start, row_pages._Part.page = started, noted
print(replay(sys.argv[1]).table("leaderboard").digest())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux is the command line forked")
@pytest.mark.parametrize("end", ["left", "killed"])
def test_the_command_line_forks_processes_that_read_parts(end: str, tmp_path: Path) -> None:
    """One that is killed leaves the log to this one."""
    path = written(tmp_path / "log.db", FORECASTS)
    said, errors = Command(path, end, program=FORKED).communicate(timeout=PATIENCE)
    parts = ["7", "14", "21", "26"] if end == "left" else []
    digest = replay(path).table("leaderboard").digest()
    assert (said.split("\n"), errors) == (["ForkProcess ForkProcess", *parts, digest, ""], "")
