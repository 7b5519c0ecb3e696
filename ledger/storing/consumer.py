"""A named reader of a log, whose cursor is kept in the store: each event at least once, by one process at a time."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from uuid import uuid4

from forecast_ledger.ledger.core.errors import LedgerError, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.storing import database
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.ledger.storing.subscription import Subscription, checkpoint_at

HELD = 30_000_000  # µs for which a reader holds a cursor after its last sign
SIGN = 10.0  # s between two signs of a reader that waits for events
TRY = 1.0  # s between two attempts to take a cursor that another reader holds


class Consumer(Subscription):
    """The recorded events after a cursor, which moves behind an event when the next one is asked for.

    If the loop ends in the middle of an event, or the process is killed there, the next loop begins with that event.
    While another loop under this name runs, in any process, iterating waits; it goes on when that one ends, or has
    given no sign for HELD. `pages` and `available_pages` do not move the cursor. Raises what a `Subscription` does, and
    Unavailable: another loop has taken over.

    >>> from forecast_ledger import commands, open_ledger
    >>> def open_contests(*names: str) -> None:
    ...     for name in names:
    ...         ledger.handle(commands.OpenContest(contest=name, rules="baseline"), command_id=f"open-{name}")
    >>> def mail(name: str) -> None:
    ...     for event in ledger.subscribe(name="mailer"):
    ...         print("mail about", event.event.contest)
    ...         if event.event.contest == name:
    ...             break
    >>> with open_ledger(":memory:") as ledger:
    ...     open_contests("spring", "summer")
    ...     mail("summer")
    ...     mail("summer")
    mail about spring
    mail about summer
    mail about summer
    """

    def __init__(
        self,
        store: StoredLog,
        name: str,
        after: int | Checkpoint = log.START,
        ended: Callable[["Subscription"], object] = lambda _: None,
    ) -> None:
        """name: of the cursor. after: where a new cursor begins. Raises what `Subscription` does."""
        super().__init__(store, after, ended=ended)
        self.name = name
        self._start, self._holder, self._signed = self.reached, uuid4().hex, 0.0

    def __iter__(self) -> Iterator[Recorded]:
        if not self._taken():
            return
        try:
            for recorded in super().__iter__():
                yield recorded
                self.move(recorded)
        finally:
            with suppress(LedgerError):
                self.end()

    def wait(self) -> None:
        """Wait as a `Subscription` does, and give a sign from time to time."""
        super().wait()
        if not self.stopped:
            self.keep()

    def move(self, recorded: Recorded) -> None:
        """Move the cursor behind an event. Raises Unavailable."""
        self._change(database.MOVE_CURSOR, recorded.position, recorded.digest, HELD)

    def keep(self) -> None:
        """Give a sign, if the last one is some time ago. Raises Unavailable."""
        if time.monotonic() - self._signed > SIGN:
            self._change(database.KEEP_CURSOR, HELD)

    def end(self) -> None:
        """Let another reader have the cursor. Raises Unavailable."""
        self._change(database.END_CURSOR)

    def take(self) -> bool:
        """Take the cursor, and begin there; return False if another reader holds it. Raises Unavailable, Corrupt."""
        tried = time.monotonic()
        start = (self._store.name, self.name, *self._start, self._holder, HELD)
        rows = self._store.change_cursor(database.TAKE_CURSOR, start)
        if rows:
            self._signed = tried
            self.reached = checkpoint_at(self._store, Checkpoint(*rows[0]))
        return bool(rows)

    def _taken(self) -> bool:
        """Wait for the cursor, and begin there. Return False if the subscription was stopped."""
        while not self.stopped:
            tried = time.monotonic()
            if self.take():
                return True
            while not self.stopped and time.monotonic() - tried < TRY:
                super().wait()
        return False

    def _change(self, statement: str, *values: object) -> None:
        self._signed = time.monotonic()
        if not self._store.change_cursor(statement, (*values, self._store.name, self.name, self._holder)):
            taken = f"another process has taken over {self.name!r}, because this one gave no sign for {HELD // 10**6} s"
            raise Unavailable(f"{taken}; it returns the events after the last move of the cursor again")
