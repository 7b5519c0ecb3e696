"""A ledger that decides as a writer would, over a log that it cannot write to: what is appended stays in memory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Absent
from forecast_ledger.ledger.model.log import Checkpoint
from forecast_ledger.ledger.storing.store import PAGE, Store, Turn
from forecast_ledger.ledger.storing.writer import Ledger, Prizes, system_clock


class Branch(Store):
    """The rows of a store up to a log position, then those appended here, which are nowhere else."""

    def __init__(self, location: str, name: str) -> None:
        """Raises Unavailable; Absent, if there is no such ledger."""
        super().__init__(location, values.identifier(name, "name"), read_only=True)
        self._fork: int | None = None
        self._kept: list[bytes] = []

    def fork(self, position: int) -> None:
        """Part from the store here: what others append to it from now on is not read."""
        self._fork = position

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """At once, for nobody else appends here."""
        yield self

    def append(self, rows: Sequence[tuple[int, str, bytes]]) -> None:
        """Keep rows for as long as the branch is there."""
        self._kept.extend(row for _, _, row in rows)

    def read(self, after: int, limit: int = PAGE) -> list[bytes]:
        """The rows at after + 1, after + 2, … up to limit. Raises Corrupt at a gap, Unavailable."""
        if self._fork is None:
            return super().read(after, limit)
        rows = super().read(after, min(limit, self._fork - after)) if after < self._fork else []
        own = after + len(rows) - self._fork
        return rows + self._kept[own : own + limit - len(rows)] if own >= 0 else rows


@contextmanager
def branched(
    location: str, name: str, prizes: Prizes, upto: Checkpoint | None = None
) -> Iterator[tuple[Ledger, Checkpoint]]:
    """A ledger on a branch of a log, and where it parts from it: at its end, unless a checkpoint is given.

    Of a log that is not there yet it is the branch that starts it. Raises Unavailable, Corrupt.
    """
    try:
        store, ledger, head = _parted(location, name, prizes, upto)
    except Absent:
        store, ledger, head = _parted(":memory:", name, prizes, upto)
    try:
        yield ledger, head
    finally:
        store.close()


def _parted(location: str, name: str, prizes: Prizes, upto: Checkpoint | None) -> tuple[Branch, Ledger, Checkpoint]:
    store = Branch(location, name)
    try:
        if upto is not None:
            store.fork(upto.position)
        ledger = Ledger(store, system_clock, prizes)
        head = ledger.head()
        store.fork(head.position)
    except BaseException:
        store.close()
        raise
    return store, ledger, head
