"""Rows in the memory of this process."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.model.log import NewRows, row_bytes
from forecast_ledger.ledger.storing import database
from forecast_ledger.ledger.storing.database import Fault, StoredRows, TakenError


class Memory:
    """The rows of one ledger, or only those after a log position."""

    def __init__(self, after: int = 0) -> None:
        self.location = "memory"
        self._after = after
        self._rows: list[tuple[int, str, bytes]] = []
        self._turn = Lock()

    def select(self, after: int, limit: int) -> StoredRows:
        """See `Rows`."""
        return [(position, row) for position, _, row in self._slice(after, limit)]

    def select_at(self, positions: Sequence[int]) -> StoredRows:
        """See `Rows`."""
        wanted = {*positions}
        return [(position, row) for position, _, row in self._rows if position in wanted]

    def select_typed(self, after: int, limit: int) -> Sequence[tuple[int, bytes, object]]:
        """See `Rows`."""
        return [(position, row, topic.encode()) for position, topic, row in self._slice(after, limit)]

    def newest(self) -> int:
        """Return the last log position; `after` if there are no rows."""
        return self._after + len(self._rows)

    def names(self) -> Iterator[str]:
        """Return none: they are the rows of one ledger, without a store."""
        return iter(())

    def has_unindexed(self, after: int) -> bool:  # noqa: ARG002 - the signature of `Rows`
        """Return False: there is no index."""
        return False

    def faults(self) -> Iterator[Fault]:
        """Return no faults: there is no file."""
        return iter(())

    @contextmanager
    def turn(self) -> Iterator["Memory"]:
        """See `Rows`."""
        if not self._turn.acquire(timeout=database.LOCK_TIMEOUT):
            raise Unavailable(f"{self.location}: another writer has held the lock for {database.LOCK_TIMEOUT} s")
        try:
            yield self
        finally:
            self._turn.release()

    def insert(self, rows: Sequence[NewRows]) -> None:
        """See `Transaction`."""
        new = [(at, group.type, row_bytes(row)) for group in rows for at, row in enumerate(group.rows, group.first)]
        if [position for position, *_ in new] != [*range(self.newest() + 1, self.newest() + 1 + len(new))]:
            raise TakenError(f"the next log position is {self.newest() + 1}")
        self._rows += new

    def close(self) -> None:
        """Do nothing: there are no connections."""

    def _slice(self, after: int, limit: int) -> Sequence[tuple[int, str, bytes]]:
        first = max(after - self._after, 0)
        return self._rows[first : first + limit]
