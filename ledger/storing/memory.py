"""Rows in the memory of this process: gone when it ends."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.storing import database
from forecast_ledger.ledger.storing.database import Fault, NewRow, StoredRows, TakenError


class Memory:
    """The rows of one ledger, or those of it that follow a log position."""

    def __init__(self, after: int = 0) -> None:
        self.location = "memory"
        self._after = after
        self._rows: list[NewRow] = []
        self._turn = Lock()

    def select(self, after: int, limit: int) -> StoredRows:
        """As `Rows` has it."""
        return [(position, row) for position, _, row in self._slice(after, limit)]

    def select_at(self, positions: Sequence[int]) -> StoredRows:
        """As `Rows` has it."""
        wanted = {*positions}
        return [(position, row) for position, _, row in self._rows if position in wanted]

    def select_typed(self, after: int, limit: int) -> Sequence[tuple[int, bytes, object]]:
        """As `Rows` has it."""
        return [(position, row, topic.encode()) for position, topic, row in self._slice(after, limit)]

    def newest(self) -> int:
        """As `Rows` has it; the position that the first row will follow, if there is none yet."""
        return self._after + len(self._rows)

    def has_unindexed(self, after: int) -> bool:  # noqa: ARG002 - as `Rows` has it
        """Never: there is no index."""
        return False

    def faults(self) -> Iterator[Fault]:
        """None: there is no file."""
        return iter(())

    @contextmanager
    def turn(self) -> Iterator["Memory"]:
        """As `Rows` has it."""
        if not self._turn.acquire(timeout=database.LOCK_TIMEOUT):
            raise Unavailable(f"{self.location}: another writer has kept it for {database.LOCK_TIMEOUT} s")
        try:
            yield self
        finally:
            self._turn.release()

    def insert(self, rows: Sequence[NewRow]) -> None:
        """As `Writing` has it."""
        if [position for position, *_ in rows] != [*range(self.newest() + 1, self.newest() + 1 + len(rows))]:
            raise TakenError(f"the next log position is {self.newest() + 1}")
        self._rows.extend(rows)

    def close(self) -> None:
        """Nothing is open."""

    def _slice(self, after: int, limit: int) -> Sequence[NewRow]:
        first = max(after - self._after, 0)
        return self._rows[first : first + limit]
