"""The interface of what keeps a store's rows: reading them, and writing in turns."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

LOCK_TIMEOUT = 30  # s, to wait for other writers
CONNECT_TIMEOUT = 10  # s, to wait for a server
MAX_ROW_BYTES = 64 * 2**20  # bytes of a row: no command that is not refused makes a longer one
NewRow = tuple[int, str, bytes]  # log position, type of event, bytes
StoredRows = Sequence[tuple[int, bytes]]  # log positions and bytes, as they are in the database, whatever their types


class TakenError(Exception):
    """Another writer, which takes no turns, has appended at this log position."""


class Fault(NamedTuple):
    """A fault that a database finds in its own file, and its log position; 0 if it names none."""

    position: int
    message: str


class Transaction(Protocol):
    """A writer's turn: until it ends, no other writer that takes turns appends to the ledger."""

    def select(self, after: int, limit: int) -> StoredRows:
        """The rows after a log position, in order, the newest ones that others have written included."""

    def insert(self, rows: Sequence[NewRow]) -> None:
        """Record rows, all or none; durable on return. Ends the transaction, so once a turn.

        Raises TakenError, Uncertain (it is not known whether they are recorded), Unavailable.
        """


class Rows(Protocol):
    """The rows of one ledger, wherever they are kept. Whatever fails raises an error of this project, or one of the
    database's own, which the store translates. shown: where they are, as it may be printed.
    """

    location: str

    def select(self, after: int, limit: int) -> StoredRows:
        """The rows after a log position, in order, from 0 on also those below the first; so many or fewer, not none."""

    def select_at(self, positions: Sequence[int]) -> StoredRows:
        """The rows at these log positions, in order."""

    def select_typed(self, after: int, limit: int) -> Sequence[tuple[int, bytes, object]]:
        """As `select`, with the event's type that is written beside each row: bytes, if it is a text."""

    def newest(self) -> int:
        """The last log position; 0 if there is none."""

    def has_unindexed(self, after: int) -> bool:
        """Whether there are rows after a log position that the database does not find by their position."""

    def faults(self) -> Iterator[Fault]:
        """The faults that the database finds in its own file."""

    def turn(self) -> AbstractContextManager[Transaction]:
        """Wait for one's turn to write; what is not inserted when it ends is not recorded."""

    def close(self) -> None:
        """Give the connections back."""
