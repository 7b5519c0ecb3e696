"""Tests of named readers: each event at least once, by one reader at a time, in any process, on each database."""

import sqlite3
import time
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread

import pytest

from forecast_ledger.ledger.core.errors import Corrupt, Refused, Unavailable
from forecast_ledger.ledger.storing import consumer
from forecast_ledger.ledger.storing.database import Memory
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import opened
from tests.support.logs import written
from tests.support.processes import Command
from tests.support.waiting import PATIENCE, wait_until

HOUR = 3_600 * 10**6  # µs


@pytest.fixture
def location(tmp_path: Path) -> str:
    """The location of a ledger of four events."""
    return filled(str(tmp_path / "log.db"))


def filled(location: str, name: str = "main") -> str:
    """Open four questions, one event each."""
    return written(location, [opened(f"q{number}") for number in range(4)], name)


def cursor(location: str) -> tuple[int, int]:
    """The log position of the only cursor in a file, and until when it is held, µs; both are 0 if there is none."""
    with closing(sqlite3.connect(location)) as connection, suppress(sqlite3.OperationalError):
        for position, held_until in connection.execute("SELECT position, held_until FROM ledger_cursors"):
            return position, held_until
    return 0, 0


def heard(ledger: Ledger, count: int, name: str = "mailer", after: int = 0) -> list[int]:
    """The positions of the next events; the loop ends while the last of them is being handled."""
    positions: list[int] = []
    for recorded in ledger.subscribe(after, name=name):
        positions.append(recorded.position)
        if len(positions) == count:
            break
    return positions


def test_an_event_is_handled_when_the_next_is_asked_for(location: str) -> None:
    """A loop that ends in the middle of an event returns it again, in another process, too."""
    each_event_at_least_once(location)


def each_event_at_least_once(location: str, name: str = "main") -> None:
    """Read with several ledgers under one name, and under another, which has a cursor of its own."""
    with Ledger.open(location, name) as ledger:
        assert heard(ledger, 2) == [1, 2]
        assert heard(ledger, 1) == [2]
        assert heard(ledger, 2, "archive", after=2) == [3, 4]
    with Ledger.open(location, name) as ledger:
        assert heard(ledger, 3, after=4) == [2, 3, 4], "a cursor that is kept counts, not where a new one begins"
        assert heard(ledger, 1, "archive") == [4]


def test_a_loop_that_stops_after_an_event_has_handled_it(location: str) -> None:
    """`stop` lets the event be handled to its end, and the cursor is behind it."""
    with Ledger.open(location) as ledger:
        for recorded in (subscription := ledger.subscribe(name="mailer")):
            if recorded.position == 2:
                subscription.stop()
        assert heard(ledger, 1) == [3]


def test_one_loop_at_a_time_has_the_events(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second loop waits, and goes on where the first has ended; new events arrive."""
    one_at_a_time(location, monkeypatch)


def one_at_a_time(location: str, monkeypatch: pytest.MonkeyPatch, name: str = "main") -> None:
    """Read in a loop while another loop stands by."""
    monkeypatch.setattr(consumer, "TRY", 0.05)
    monkeypatch.setattr(consumer, "HELD", HOUR)
    later: list[int] = []
    with Ledger.open(location, name) as one, Ledger.open(location, name) as two:
        first = iter(one.subscribe(name="mailer"))
        assert [next(first).position for _ in range(3)] == [1, 2, 3]
        thread = Thread(target=lambda: later.extend(heard(two, 3)))
        thread.start()
        time.sleep(0.3)
        assert later == []
        one.handle(opened("q4"), "c4")
        with suppress(AttributeError):
            first.close()  # type: ignore[attr-defined]
        thread.join(PATIENCE)
        assert later == [3, 4, 5]


def test_a_loop_that_gives_no_sign_loses_its_cursor(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another goes on; the first is told when it asks for its next event, and moves nothing."""
    losing(location, monkeypatch)


def losing(location: str, monkeypatch: pytest.MonkeyPatch, name: str = "main") -> None:
    """Handle an event for longer than a cursor is held."""
    monkeypatch.setattr(consumer, "HELD", 200_000)
    with Ledger.open(location, name) as one, Ledger.open(location, name) as two:
        first, second = iter(one.subscribe(name="mailer")), iter(two.subscribe(name="mailer"))
        assert (next(first).position, next(first).position) == (1, 2)
        time.sleep(0.3)
        assert next(second).position == 2
        with pytest.raises(Unavailable, match="another process has taken over 'mailer', because this one gave no sign"):
            next(first)
        assert next(second).position == 3


def test_a_loop_that_waits_for_events_keeps_its_cursor(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives signs, each of which holds the cursor for longer, and another that tries to take it does not get it."""
    monkeypatch.setattr(consumer, "SIGN", 0.05)
    monkeypatch.setattr(consumer, "TRY", 0.05)
    monkeypatch.setattr(consumer, "HELD", HOUR)

    def is_held_longer(than: int) -> bool:
        return cursor(location)[1] > than

    with Ledger.open(location) as one, Ledger.open(location) as two:
        got: list[int] = []
        threads = [Thread(target=lambda each=each: got.extend(heard(each, 5))) for each in (one, two)]
        threads[0].start()
        wait_until(lambda: cursor(location)[0] == 4)
        threads[1].start()
        for _ in range(3):
            wait_until(partial(is_held_longer, cursor(location)[1]))
        one.handle(opened("q4"), "c4")
        threads[0].join(PATIENCE)
        assert got == [1, 2, 3, 4, 5]
        two.close()
        threads[1].join(PATIENCE)


KILLED = """
import sys, time
from forecast_ledger.ledger.storing.writer import Ledger
with Ledger.open(sys.argv[1]) as ledger:
    for recorded in ledger.subscribe(name="mailer"):
        print(recorded.position, flush=True)
        if recorded.position == 3:
            time.sleep(600)
"""


@pytest.mark.parametrize("busy", [True, False])
def test_a_ledger_that_another_thread_closes_lets_its_cursor_go(
    location: str, busy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether its loop handles an event or waits for one: it ends, and another reader has the cursor at once."""
    monkeypatch.setattr(consumer, "TRY", 2 * PATIENCE)
    heard_of, closed, raised = SimpleQueue[int](), Event(), list[Exception]()
    ledger = Ledger.open(location)

    def loop() -> None:
        try:
            for recorded in ledger.subscribe(name="mailer"):
                heard_of.put(recorded.position)
                if busy and recorded.position == 2:
                    closed.wait(PATIENCE)
        except Unavailable as error:
            raised.append(error)

    looping = Thread(target=loop)
    looping.start()
    while heard_of.get(timeout=PATIENCE) < (2 if busy else 4):
        pass
    if not busy:
        wait_until(lambda: cursor(location)[0] == 4)
    ledger.close()
    closed.set()
    looping.join(PATIENCE)
    assert not looping.is_alive()
    assert ["the ledger is closed" in str(error) for error in raised] == [True] * busy
    with Ledger.open(location) as other:
        other.handle(opened("q4"), "c4")
        begun = time.monotonic()
        assert heard(other, 1) == [2 if busy else 5]
        assert time.monotonic() - begun < PATIENCE


def test_a_process_that_is_killed_loses_no_event(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another begins with the event that was being handled, once the cursor is held no longer."""
    monkeypatch.setattr(consumer, "TRY", 0.05)
    process = Command(location, program=KILLED)
    assert [process.stdout.readline() for _ in range(3)] == ["1\n", "2\n", "3\n"]
    process.kill()
    process.ended(PATIENCE)
    with closing(sqlite3.connect(location)) as connection, connection:  # as if half a minute had passed
        connection.execute("UPDATE ledger_cursors SET held_until = held_until - 30000000")
    with Ledger.open(location) as ledger:
        assert heard(ledger, 2) == [3, 4]


def test_a_log_that_was_rewritten_is_damage(location: str) -> None:
    """A cursor has the digest of its event; another digest there is not read over."""
    with Ledger.open(location) as ledger:
        heard(ledger, 3)
    with closing(sqlite3.connect(location)) as connection, connection:
        connection.execute("UPDATE ledger_cursors SET digest = ?", ("f" * 64,))
    with Ledger.open(location) as ledger, pytest.raises(Corrupt, match=r"log position 2: .* the checkpoint has ffff"):
        heard(ledger, 1)


@pytest.mark.parametrize(("name", "code"), [("", "id_empty"), ("a\n", "id_not_plain"), ("x" * 201, "id_too_long")])
def test_a_name_is_an_id(location: str, name: str, code: str) -> None:
    """It is refused before anything is read."""
    with Ledger.open(location) as ledger, pytest.raises(Refused, match=code):
        ledger.subscribe(name=name)


def test_the_log_has_nothing_of_a_cursor_and_can_be_opened(location: str) -> None:
    """The rows are the same, and the file is still that of a ledger and nothing else."""
    with Ledger.open(location) as ledger:
        before = [*ledger.read()]
        heard(ledger, 3)
        assert [*ledger.read()] == before
    with Ledger.open(location) as ledger:
        assert ledger.head().position == 4


def test_a_commit_of_a_cursor_does_not_wait_for_the_disk_and_one_of_the_log_does(location: str) -> None:
    """The setting of the connection is as before afterwards."""
    with Ledger.open(location) as ledger:
        heard(ledger, 2)
        with ledger._store._rows._files.writing() as connection:  # type: ignore[attr-defined]
            cursor = connection.cursor().sqlite_cursor
            assert cursor.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_what_is_no_database_keeps_no_cursor() -> None:
    """Segments are only read, and rows in memory have no table."""
    with pytest.raises(Unavailable, match="memory: only a database keeps cursors of named readers"):
        Memory().change_cursor("", ())
