"""Checking a log that somebody else may have written: read-only eyes on every row."""

from collections.abc import Callable, Iterator

from ledger import collector, log, values
from ledger.errors import Corrupt
from ledger.log import Checkpoint, Recorded
from ledger.store import Store
from projections.tables import facts

CHECKS = {
    "positions": "1, 2, 3 … without a gap, each row in its place",
    "digests": "each row matches its digest and follows the row before",
    "schemas": "each row is an event of a known type, in its canonical bytes",
    "clock": "recorded_at never decreases",
    "contents": "each event fits what came before it: nothing unknown, twice, out of order or out of range",
}


def verify(location: str, name: str = "main", watch: Callable[[int], None] = lambda _: None) -> Checkpoint:
    """Run every check over a whole log; returns its head. Raises, first that applies: Unavailable, Corrupt."""
    store = Store(location, values.identifier(name, "name"), read_only=True)
    eyes = _Eyes(watch)
    try:
        with collector.paused():
            facts(eyes.pages(store))
    finally:
        store.close()
    return eyes.last


class _Eyes:
    """Looks at each row as it passes, and remembers the last."""

    def __init__(self, watch: Callable[[int], None]) -> None:
        self._watch = watch
        self.last = log.START

    def pages(self, store: Store) -> Iterator[list[Recorded]]:
        recorded_at = -(2**63)
        for rows in store.pages():
            page = log.unseal(rows, self.last)
            for row, recorded in zip(rows, page, strict=True):
                if log.seal(recorded)[0] != row:
                    raise Corrupt(recorded.position, "the row is not in canonical bytes")
                if recorded.recorded_at < recorded_at:
                    raise Corrupt(recorded.position, "recorded_at is earlier than in the row before")
                recorded_at = recorded.recorded_at
            self.last = Checkpoint(page[-1].position, page[-1].digest)
            self._watch(self.last.position)
            yield page
