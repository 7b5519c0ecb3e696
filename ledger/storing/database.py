"""The interface of a database that keeps the rows of a ledger: read them, and write in turns; and rows in memory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import NamedTuple, Protocol

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.model.log import NewRows, row_bytes

LOCK_TIMEOUT = 30  # s, how long to wait for other writers
CONNECT_TIMEOUT = 10  # s, how long to wait for a server
STATEMENT_TIMEOUT = 60  # s, how long to wait for a sign of a server that has a statement
CONNECTIONS = 5  # of a process to a database, at most
MAX_ROW_BYTES = 64 * 2**20  # a command whose row would be longer is refused
ALL = 2**62  # ledgers
MEMORY = ":memory:"  # the location of a store that no file has
_LARGEST = 1_000_000  # of the numbers that a program sets
# The name and the last log position of each ledger of a table, by two looks into its index for each. To be added: how
# many ledgers at most.
HEADS = """
WITH RECURSIVE ledgers (name) AS (
    SELECT min(originator_id) FROM {table} WHERE originator_id > ''
    UNION ALL
    SELECT (SELECT min(originator_id) FROM {table} WHERE originator_id > name) FROM ledgers WHERE name IS NOT NULL
)
SELECT name, (SELECT max(originator_version) FROM {table} WHERE originator_id = name)
FROM ledgers WHERE name IS NOT NULL LIMIT """
# Cursors: how far each named reader of a ledger has come, in a table beside the logs of a store. A cursor is held by
# one reader at a time, until the reader ends or gives no sign for some time, by the database's clock.
CURSORS = "ledger_cursors"
# The statements of the table, for every database: `now` is its time, µs since 1970, and a value is written "?".
CREATE_CURSORS = (
    "CREATE TABLE IF NOT EXISTS {table} (ledger TEXT NOT NULL, name TEXT NOT NULL, position BIGINT NOT NULL, "
    "digest TEXT NOT NULL, holder TEXT NOT NULL, held_until BIGINT NOT NULL, PRIMARY KEY (ledger, name))"
)
# Values: ledger, name, position, digest, holder, µs. Returns no row if another reader holds the cursor.
TAKE_CURSOR = (
    "INSERT INTO {table} AS kept (ledger, name, position, digest, holder, held_until) "
    "VALUES (?, ?, ?, ?, ?, {now} + ?) "
    "ON CONFLICT (ledger, name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until "
    "WHERE kept.holder = excluded.holder OR kept.held_until < {now} RETURNING position, digest"
)
_HELD = "WHERE ledger = ? AND name = ? AND holder = ? RETURNING position, digest"
# Values: position, digest, µs, then those of _HELD. None of these returns a row if another reader has taken the cursor.
MOVE_CURSOR = f"UPDATE {{table}} SET position = ?, digest = ?, held_until = {{now}} + ? {_HELD}"  # noqa: S608 - a constant
KEEP_CURSOR = f"UPDATE {{table}} SET held_until = {{now}} + ? {_HELD}"  # noqa: S608
END_CURSOR = f"UPDATE {{table}} SET held_until = 0 {_HELD}"  # noqa: S608
NewRow = tuple[int, str, str | bytes]  # log position, event type, the text of the row or its bytes in UTF-8
StoredRows = Sequence[tuple[int, bytes]]  # log position, bytes; a damaged database may hold other types


class TimeLimits(NamedTuple):
    """How long a call may wait, s: to connect to a server, for its turn to write, and for a sign of the server."""

    connect: float
    turn: float
    statement: float

    @classmethod
    def usual(cls) -> "TimeLimits":
        return cls(CONNECT_TIMEOUT, LOCK_TIMEOUT, STATEMENT_TIMEOUT)


def check_numbers(numbers: Mapping[str, float]) -> None:
    """Raise ValueError unless each of these arguments is above 0, and at most a million."""
    for name, number in numbers.items():
        if not 0 < number <= _LARGEST:
            raise ValueError(f"{name} is {number}; it must be above 0, and at most {_LARGEST:,}")


def grouped(rows: Iterable[NewRow]) -> list[NewRows]:
    """Return rows in the same order, with consecutive rows of one event type together.

    >>> [(group.first, group.last) for group in grouped([(1, "a", "x"), (2, "a", "y"), (3, "b", "z"), (5, "b", "z")])]
    [(1, 2), (3, 3), (5, 5)]
    """
    groups: list[tuple[int, str, list[str | bytes]]] = []
    for position, topic, row in rows:
        first, last_topic, texts = groups[-1] if groups else (0, "", [])
        if texts and (position, topic) == (first + len(texts), last_topic):
            texts.append(row)
        else:
            groups.append((position, topic, [row]))
    return [NewRows(*group) for group in groups]


class TakenError(Exception):
    """Another writer has appended at this log position; it did not take a turn."""


UNTYPED = object()  # in place of a type, for rows that are kept without one


class Fault(NamedTuple):
    """A fault that a database finds in its file; position: the log position, 0 if unknown."""

    position: int
    message: str


class Transaction(Protocol):
    """The database transaction of a writer's turn: until it ends, no other writer that takes turns appends."""

    def select(self, after: int, limit: int) -> StoredRows:
        """Return the rows after a log position, in order, including those that other writers have committed."""

    def insert(self, rows: Sequence[NewRows]) -> None:
        """Insert rows, all or none, and commit; durable on return. Call it at most once.

        Raises TakenError, Uncertain (the rows may or may not be recorded), Unavailable.
        """


class Rows(Protocol):
    """The rows of one ledger in a database; a class that has them inherits what it does not define itself.

    Methods raise the errors of this project, or those of the database, which the store translates. location: where the
    rows are, for messages, without a password.
    """

    location: str
    identity: str = ""  # see `StoredLog`
    limits: TimeLimits = TimeLimits.usual()

    def select(self, after: int, limit: int) -> StoredRows:
        """Return up to `limit` rows after a log position, in order; none only at the end.

        after=0 also returns rows with positions below 1, which only a damaged log has.
        """

    def select_at(self, positions: Sequence[int]) -> StoredRows:
        """Return the rows at these log positions, in order; those of an initial part if they are many."""
        return [row for at in sorted({*positions}) for row in self.select(at - 1, 1) if row[0] == at]

    def select_typed(self, after: int, limit: int) -> Sequence[tuple[int, bytes, object]]:
        """Return what `select` returns, with the event type of each row: bytes, unless the column holds no text.

        Rows without such a column have UNTYPED.
        """
        return [(at, row, UNTYPED) for at, row in self.select(after, limit)]

    def events_of(self, tags: Sequence[str], end: int) -> list[str] | None:  # noqa: ARG002 - others need it
        """Return the JSON of the events of some types up to a log position, in order; nothing is checked.

        None if they cannot be found without reading all rows, or if other processes cannot read the rows.
        """
        return None

    def bound(self, end: int) -> None:  # noqa: ARG002 - others need it
        """Let nothing after a log position be prepared: it is not going to be read."""
        return

    def newest(self) -> int:
        """Return the last log position; 0 if there are no rows."""

    def ping(self, limit: float) -> None:  # noqa: ARG002 - others need it
        """Read something short. limit: how long to wait for a connection, and then for a server's answer, s."""
        self.newest()

    def heads(self, most: int) -> Sequence[tuple[str, int]]:  # noqa: ARG002 - others need it
        """Return the names and last log positions of the ledgers of the store, or of the first ones, by one query.

        They are in the order of the store; rows without a store have none.
        """
        return ()

    def named(self, name: str) -> "Rows":  # noqa: ARG002 - others need it
        """Return the rows of another ledger in the same database, which closing them leaves open."""
        return self

    def has_unindexed(self, after: int) -> bool:  # noqa: ARG002 - others need it
        """Return whether rows after a log position are in the table but missing from its index, if it has one."""
        return False

    def faults(self) -> Iterator[Fault]:
        """Check the database file, and return its faults; none if there is no file, or only a server can check it."""
        return iter(())

    def change_cursor(self, statement: str, values: tuple[object, ...]) -> list[tuple[int, str]]:  # noqa: ARG002
        """Execute a statement for a cursor and commit; return its rows: position, digest. Raises Unavailable.

        After a power failure, though not after a crash of the process, the cursor may be where it was shortly before.
        """
        raise Unavailable(f"{self.location}: only a database keeps cursors of named readers")

    def check_there(self) -> None:
        """Raise Unavailable if the file is not at its path any more: others would not find what is recorded in it."""
        return

    def turn(self) -> AbstractContextManager[Transaction]:
        """Wait for the turn to write; the transaction is rolled back unless rows are inserted."""

    def close(self) -> None:
        """Close the connections, if there are any."""
        return


class Memory(Rows):
    """The rows of one ledger, or only those after a log position."""

    def __init__(self, after: int = 0) -> None:
        self.location = "memory"
        self._after = after
        self._rows: list[tuple[int, str, bytes]] = []
        self._turn = Lock()

    def select(self, after: int, limit: int) -> StoredRows:
        return [(position, row) for position, _, row in self._slice(after, limit)]

    def select_typed(self, after: int, limit: int) -> Sequence[tuple[int, bytes, object]]:
        return [(position, row, topic.encode()) for position, topic, row in self._slice(after, limit)]

    def newest(self) -> int:
        """Return the last log position; `after` if there are no rows."""
        return self._after + len(self._rows)

    @contextmanager
    def turn(self) -> Iterator["Memory"]:
        """Take the turn to write; see `Rows`. Raises Unavailable: another writer has held the lock too long."""
        if not self._turn.acquire(timeout=LOCK_TIMEOUT):
            raise Unavailable(f"{self.location}: another writer has held the lock for {LOCK_TIMEOUT} s")
        try:
            yield self
        finally:
            self._turn.release()

    def insert(self, rows: Sequence[NewRows]) -> None:
        new = [(at, group.type, row_bytes(row)) for group in rows for at, row in enumerate(group.rows, group.first)]
        if [position for position, *_ in new] != [*range(self.newest() + 1, self.newest() + 1 + len(new))]:
            raise TakenError(f"the next log position is {self.newest() + 1}")
        self._rows += new

    def _slice(self, after: int, limit: int) -> Sequence[tuple[int, str, bytes]]:
        first = max(after - self._after, 0)
        return self._rows[first : first + limit]
