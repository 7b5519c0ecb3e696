"""Tests of subscriptions: every event comes once, in order and soon, until a stop; none after damage."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest

from forecast_ledger.ledger.core.errors import Corrupt, Refused, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import GENESIS, Checkpoint, Recorded
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.ledger.storing.subscription import Subscription
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import opened
from tests.support.processes import Command
from tests.support.waiting import PATIENCE

SOON = 0.1  # s: half of the time between two polls
CHANGE = """
UPDATE stored_events SET state = CAST(replace(CAST(state AS TEXT), 'q4', 'q9') AS BLOB) WHERE originator_version = 5
"""
ANOTHER = """
import sys
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import opened
with Ledger.open(sys.argv[1]) as ledger:
    for number in range(int(sys.argv[2]), int(sys.argv[3])):
        ledger.handle(opened(f"q{number}"), f"c{number}")
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Return a ledger of six events in a file."""
    with Ledger.open(tmp_path / "log.db") as opened_ledger:
        open_questions(opened_ledger, 0, 6)
        yield opened_ledger


def open_questions(ledger: Ledger, first: int, end: int) -> None:
    """Open questions, one event each."""
    for number in range(first, end):
        ledger.handle(opened(f"q{number}"), f"c{number}")


def listening(subscription: Subscription, until: int) -> tuple[Thread, list[Recorded]]:
    """Start a thread that iterates until it has received a log position; return it and the events that it receives."""
    heard: list[Recorded] = []

    def listen() -> None:
        for recorded in subscription:
            heard.append(recorded)
            if recorded.position == until:
                subscription.stop()

    thread = Thread(target=listen, daemon=True)
    thread.start()
    return thread, heard


@pytest.mark.parametrize("after", range(7))
def test_it_returns_the_events_after_a_position_and_then_new_ones(ledger: Ledger, after: int) -> None:
    """Each event comes once, in order, from any starting position."""
    thread, heard = listening(ledger.subscribe(after), 9)
    open_questions(ledger, 6, 9)
    thread.join(PATIENCE)
    assert [recorded.position for recorded in heard] == list(range(after + 1, 10))
    assert heard == [recorded for page in ledger.read(after) for recorded in page]


def test_an_append_of_the_same_process_wakes_it_at_once(ledger: Ledger) -> None:
    """The poll interval is an hour here, so only a wake-up can make it this fast."""
    subscription = Subscription(ledger._store, 6, poll=3_600)
    ledger._subscriptions.add(subscription)
    thread, heard = listening(subscription, 7)
    time.sleep(SOON)
    open_questions(ledger, 6, 7)
    thread.join(PATIENCE)
    assert [recorded.position for recorded in heard] == [7]


def test_events_of_other_processes_are_found(ledger: Ledger, tmp_path: Path) -> None:
    """Another process cannot wake it, so it polls."""
    thread, heard = listening(ledger.subscribe(6), 9)
    assert Command(str(tmp_path / "log.db"), "6", "9", program=ANOTHER).ended(PATIENCE).returncode == 0
    thread.join(PATIENCE)
    assert [recorded.position for recorded in heard] == [7, 8, 9]


def test_stopping_ends_a_wait_and_so_do_leaving_and_closing(tmp_path: Path) -> None:
    """It stops from another thread, at the end of a `with` block, and when the ledger closes; stopping twice does
    nothing.
    """
    with Ledger.open(tmp_path / "log.db") as ledger:
        first, second = ledger.subscribe(), ledger.subscribe()
        threads = [listening(subscription, 1)[0] for subscription in (first, second)]
        first.stop()
        first.stop()
        threads[0].join(PATIENCE)
        with ledger.subscribe() as third:
            threads.append(listening(third, 1)[0])
        assert threads[1].is_alive()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert list(first) == list(second) == []


CLOSING = """
import sys
from threading import Thread
from forecast_ledger.ledger.storing.writer import Ledger
for _ in range(60):
    ledger = Ledger.open(sys.argv[1])
    threads = [Thread(target=list, args=(ledger.subscribe(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    ledger.close()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
"""


def test_closing_waits_for_a_thread_that_reads(tmp_path: Path) -> None:
    """Closing a connection while a thread reads would crash the process, so the test uses another process."""
    done = Command(str(tmp_path / "log.db"), program=CLOSING).ended(PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")


def test_one_can_stop_in_the_middle_of_a_page_and_go_on_from_its_checkpoint(ledger: Ledger) -> None:
    """`reached` is the checkpoint of the last event returned, not of the last event read."""
    with ledger.subscribe() as subscription:
        heard = next(iter(subscription))
        assert subscription.reached == Checkpoint(1, heard.digest)
    with ledger.subscribe(subscription.reached) as again:
        assert next(iter(again)).position == 2


@pytest.mark.parametrize("after", [-1, 7, Checkpoint(7, GENESIS), Checkpoint(0, "f" * 64)])
def test_a_position_that_the_log_does_not_have_is_refused(ledger: Ledger, after: int | Checkpoint) -> None:
    """It is refused when it is created, not when iteration starts."""
    with pytest.raises(Refused, match=r"out_of_range: after .*; give a log position from 0 to 6"):
        ledger.subscribe(after)
    assert not ledger._subscriptions


def test_a_checkpoint_of_another_log_is_refused(ledger: Ledger) -> None:
    """The digest of the checkpoint differs from that of the row."""
    with pytest.raises(Corrupt, match="log position 3: the row has digest"):
        ledger.subscribe(Checkpoint(3, GENESIS))


@pytest.mark.parametrize(
    ("damage", "position"), [(CHANGE, 5), ("DELETE FROM stored_events WHERE originator_version = 4", 4)]
)
def test_it_never_returns_a_damaged_event(ledger: Ledger, tmp_path: Path, damage: str, position: int) -> None:
    """A changed row or a gap ends the iteration with the log position."""
    with closing(sqlite3.connect(tmp_path / "log.db")) as other, other:
        other.execute(damage)
    for after in range(position):
        with pytest.raises(Corrupt, match=f"log position {position}:"):
            list(ledger.subscribe(after))


def test_a_row_replaced_behind_it_does_not_follow_its_checkpoint(ledger: Ledger, tmp_path: Path) -> None:
    """Rows after the reached checkpoint must continue its digest, even if each continues the one before."""
    subscription = ledger.subscribe(6)
    forged = tmp_path / "forged.db"
    with Ledger.open(forged) as other:
        open_questions(other, 10, 18)
    with closing(StoredLog.open(str(forged), "main", read_only=True)) as others:
        rows = others.read(6)
        [seventh, eighth] = [log.unseal_row(row, position) for position, row in enumerate(rows, 7)]
    assert seventh.digest == eighth.previous
    ledger._store.append([(7, "question_opened.v1", rows[0]), (8, "question_opened.v1", rows[1])])
    with pytest.raises(Corrupt, match="log position 7: the row before has digest"):
        list(subscription)


def test_a_store_that_disappears_raises_unavailable(ledger: Ledger) -> None:
    """The iteration ends with Unavailable and the reason; it does not wait forever."""
    subscription = ledger.subscribe(6)
    ledger._store.close()
    with pytest.raises(Unavailable, match="closed"):
        list(subscription)
