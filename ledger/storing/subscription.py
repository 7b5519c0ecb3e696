"""What has been recorded and what will be: a blocking reader of a log, which wakes where something is appended."""

from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Self

from forecast_ledger.ledger.core.errors import Corrupt, Refused, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.storing.store import Store

POLL = 0.2  # s, after which what other processes have appended is looked for


class Subscription:
    """The recorded events after a log position, in order, each once: those there are, then those to come.

    Waits for more when there are none; `stop`, from any thread or signal handler, ends it, and so does leaving a
    `with` block. For one reader; raises, first that applies: Unavailable, Corrupt. A reader that stores the checkpoint
    with what it makes of an event can go on there later, without a gap or a repetition.
    """

    def __init__(
        self,
        store: Store,
        after: int | Checkpoint = log.START,
        poll: float = POLL,
        ended: Callable[["Subscription"], object] = lambda _: None,
    ) -> None:
        """after: a log position, or a checkpoint, whose digest is then compared. poll: s. ended: told when stopped.

        Raises, first that applies: Refused (the log does not reach so far), Unavailable, Corrupt.
        """
        self.reached = _checkpoint(store, after)  # of the last event handed out
        self._store = store
        self._poll = poll
        self._ended = ended
        self.stopped = False
        self._woken: SimpleQueue[None] = SimpleQueue()  # its put may interrupt itself, as in a signal handler

    def pages(self) -> Iterator[list[Recorded]]:
        """The events page by page."""
        while not self.stopped:
            yield from self.available_pages()
            self.wait()

    def available_pages(self) -> Iterator[list[Recorded]]:
        """The events that there are, page by page, without waiting for more."""
        while not self.stopped and (rows := self._rows()):
            page = log.unseal(rows, self.reached)
            self.reached = Checkpoint(page[-1].position, page[-1].digest)
            yield page

    def wait(self) -> None:
        """Until it is woken or stopped, or it is time to look what others have appended."""
        if self.stopped:
            return
        try:
            self._woken.get(timeout=self._poll)
            while not self._woken.empty():  # one look is enough for all of them
                self._woken.get_nowait()
        except Empty:
            pass

    def _rows(self) -> list[bytes]:
        try:
            return self._store.read(self.reached.position)
        except Unavailable:
            if self.stopped:  # the ledger was closed while it was read
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
        """Look for more now."""
        if self._woken.empty():
            self._woken.put(None)

    def stop(self) -> None:
        """End the iteration, at the latest after the page that is being read."""
        if not self.stopped:
            self.stopped = True
            self.wake()
            self._ended(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _checkpoint(store: Store, after: int | Checkpoint) -> Checkpoint:
    """A position with the digest that its row has."""
    position, digest = after if isinstance(after, Checkpoint) else (after, None)
    if position <= 0:
        if position < 0 or digest not in {None, log.GENESIS}:
            raise Refused("out_of_range", "after", position, "log positions start at 1; 0 is before the first")
        return log.START
    rows = store.read(position - 1, limit=1)
    if not rows:
        raise Refused("out_of_range", "after", position, f"the log ends at position {store.newest()}")
    found = Checkpoint(position, log.unseal_row(rows[0], position).digest)
    if digest not in {None, found.digest}:
        raise Corrupt(position, f"the row has digest {found.digest}, the checkpoint says {digest}")
    return found
