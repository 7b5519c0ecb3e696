"""A blocking reader of a log, which wakes when events are appended."""

from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Protocol, Self

from forecast_ledger.ledger.core.errors import Corrupt, Refused, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.storing.stored_log import StoredLog

POLL = 0.2  # s, how often to look for events that other processes append


class Listener(Protocol):
    """An object that a ledger tells when it appends, and when it is closed."""

    def wake(self) -> None:
        """Look for new events now; any thread may call this."""

    def stop(self) -> None:
        """Wait for no more events; any thread may call this."""


class Subscription:
    """The recorded events after a log position, in order, each once: first the existing ones, then new ones.

    Iterating waits when there are no more events. `stop`, which any thread or signal handler may call, ends it, as does
    leaving a `with` block. Only one thread may iterate. Raises, first that applies: Unavailable, Corrupt. A reader that
    stores the checkpoint together with its results can continue there later, without a gap or a repetition.

    >>> from forecast_ledger import Subscription, commands, open_ledger
    >>> def first_position(subscription: Subscription) -> int:
    ...     with subscription as recorded_events:
    ...         return next(iter(recorded_events)).position
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with open_ledger(":memory:") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     first_position(ledger.subscribe())
    1
    """

    def __init__(
        self,
        store: StoredLog,
        after: int | Checkpoint = log.START,
        poll: float = POLL,
        ended: Callable[["Subscription"], object] = lambda _: None,
    ) -> None:
        """after: a log position, or a checkpoint, whose digest is compared with the log's. poll: s. ended: called once
        when the subscription stops.

        Raises, first that applies: Refused (the log ends before `after`), Unavailable, Corrupt.
        """
        self.reached = checkpoint_at(store, after)  # of the last event that was yielded
        self._store = store
        self._poll = poll
        self._ended = ended
        self.stopped = False
        self._woken: SimpleQueue[None] = SimpleQueue()  # its put is reentrant, so a signal handler may call it

    def pages(self) -> Iterator[list[Recorded]]:
        """Yield the events page by page, and wait for more."""
        while not self.stopped:
            yield from self.available_pages()
            self.wait()

    def available_pages(self) -> Iterator[list[Recorded]]:
        """Yield the existing events page by page, without waiting for more."""
        while not self.stopped and (rows := self._rows()):
            page = log.unseal(rows, self.reached)
            self.reached = Checkpoint(page[-1].position, page[-1].digest)
            yield page

    def wait(self) -> None:
        """Wait until `wake` or `stop` is called, or for `poll` seconds."""
        if self.stopped:
            return
        try:
            self._woken.get(timeout=self._poll)
            while not self._woken.empty():  # one read is enough for all of them
                self._woken.get_nowait()
        except Empty:
            pass

    def _rows(self) -> list[bytes]:
        try:
            return self._store.read(self.reached.position)
        except Unavailable:
            if self.stopped:  # the ledger was closed during the read
                return []
            raise

    def __iter__(self) -> Iterator[Recorded]:
        for page in self.pages():
            for recorded in page:
                if self.stopped:
                    return
                self.reached = Checkpoint(recorded.position, recorded.digest)
                yield recorded

    def wake(self) -> None:
        """Look for new events now."""
        if self._woken.empty():
            self._woken.put(None)

    def stop(self) -> None:
        """End the iteration, at the latest after the current page."""
        if not self.stopped:
            self.stopped = True
            self.wake()
            self._ended(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def checkpoint_at(store: StoredLog, after: int | Checkpoint) -> Checkpoint:
    """Return the checkpoint at a position; check its digest if one is given.

    Raises, first that applies: Refused (the log ends before `after`), Unavailable, Corrupt.
    """
    position, digest = after if isinstance(after, Checkpoint) else (after, None)
    if position <= 0:
        if position < 0 or digest not in {None, log.GENESIS}:
            wrong = "log positions start at 1, and 0 means from the start"
            raise Refused("out_of_range", "after", position, wrong, remedy=_remedy(store))
        return log.START
    rows = store.read(position - 1, limit=1)
    if not rows:
        wrong = f"the log ends at position {store.newest()}"
        raise Refused("out_of_range", "after", position, wrong, remedy=_remedy(store))
    checkpoint = Checkpoint(position, log.unseal_row(rows[0], position).digest)
    if digest not in {None, checkpoint.digest}:
        raise Corrupt(position, f"the row has digest {checkpoint.digest}, the checkpoint has {digest}")
    return checkpoint


def _remedy(store: StoredLog) -> str:
    """Return what to do about a log position that the log does not have."""
    return f"give a log position from 0 to {store.newest()}"
