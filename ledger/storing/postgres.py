"""Rows in a PostgreSQL database, in the table that the recorder of eventsourcing creates."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

import psycopg
from eventsourcing.persistence import ConnectionPoolClosedError, IntegrityError, PersistenceError
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore
from psycopg import Connection
from psycopg.rows import DictRow, dict_row, tuple_row

from forecast_ledger.ledger.core.errors import Absent, Unavailable, Uncertain
from forecast_ledger.ledger.model.log import NewRows, row_bytes
from forecast_ledger.ledger.storing import database
from forecast_ledger.ledger.storing.connections import Connections
from forecast_ledger.ledger.storing.database import Rows, StoredRows, TakenError

_TABLE = "public.stored_events"
_CONNECTIONS = 5  # of a process, at most
_KIND = f"SELECT relkind::text FROM pg_class WHERE oid = to_regclass('{_TABLE}')"  # noqa: S608 - a constant
_ROWS = f"SELECT originator_version, state FROM {_TABLE} WHERE originator_id = %s AND "  # noqa: S608
_AFTER = _ROWS + "originator_version > %s ORDER BY originator_version LIMIT %s"
_FROM_FIRST = _ROWS + "%s = 0 ORDER BY originator_version LIMIT %s"
_AMONG = _ROWS + "originator_version = ANY(%s) ORDER BY originator_version"
_LABELLED, _LABELLED_FROM_FIRST = (
    query.replace(", state", ", state, convert_to(topic, 'UTF8')") for query in (_AFTER, _FROM_FIRST)
)
_NEWEST = f"SELECT max(originator_version) FROM {_TABLE} WHERE originator_id = %s"  # noqa: S608
# Divides by zero unless all inserted rows are there, so that the statements after it, COMMIT too, are not executed.
_CHECK = (
    f"SELECT 1 / (count(*) = %s)::int FROM {_TABLE} "  # noqa: S608
    "WHERE originator_id = %s AND originator_version BETWEEN %s AND %s"
)
_INSERT = (
    f"INSERT INTO {_TABLE} (originator_id, originator_version, topic, state) "  # noqa: S608
    "SELECT %s, * FROM unnest(%b::bigint[], %b::text[], %b::bytea[])"
)
# The lock has a statement of its own, so that the next statement sees what others wrote while this one waited.
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock({})"


class Address(NamedTuple):
    """The address of a database, with user and password."""

    dbname: str
    host: str
    port: int
    user: str
    password: str


class Postgres(Rows):
    """The rows of one ledger in a PostgreSQL database."""

    def __init__(self, address: Address, location: str, name: str, *, read_only: bool) -> None:
        """Connect, and create the table unless read_only. Raises Unavailable, and the errors of the library."""
        self.location, self._name, self._owns = location, name, True
        self.place = f"{address.host}:{address.port}/{address.dbname}"
        self._datastore = _Datastore(address)
        try:
            self._open(read_only=read_only)
        except BaseException:
            self._datastore.close()
            raise

    def _open(self, *, read_only: bool) -> None:
        kinds = self._fetch(_KIND, ())
        if kinds and kinds[0][0] not in {"r", "p"}:
            raise Unavailable(f"{self.location}: not a ledger: {_TABLE} is not a table")
        if not kinds and read_only:
            raise Absent(f"{self.location}: not a ledger: the database has no table stored_events")
        if not kinds:
            with self._datastore.get_connection() as connection:
                connection.execute(
                    _BEGIN.format(_lock_key(""))
                )  # PostgreSQL does not let two make the same table at once
                if not _fetch(connection, _KIND, ()):
                    PostgresApplicationRecorder(self._datastore).create_table()
                connection.rollback()

    def select(self, after: int, limit: int) -> StoredRows:
        return self._fetch(_AFTER if after else _FROM_FIRST, (self._name, after, limit))

    def select_at(self, positions: Sequence[int]) -> StoredRows:
        return self._fetch(_AMONG, (self._name, [*positions]))

    def select_typed(self, after: int, limit: int) -> Sequence[tuple[int, bytes, object]]:
        return self._fetch(_LABELLED if after else _LABELLED_FROM_FIRST, (self._name, after, limit))

    def newest(self) -> int:
        [(newest,)] = self._fetch(_NEWEST, (self._name,))
        return newest or 0

    def names(self) -> Iterator[str]:
        return database.each_name(self._fetch, f"SELECT min(originator_id) FROM {_TABLE} WHERE originator_id > %s")  # noqa: S608

    def named(self, name: str) -> "Postgres":
        other = copy(self)
        other._name, other._owns = name, False
        return other

    def _fetch(self, query: str, values: tuple[object, ...]) -> list[Any]:
        with self._datastore.get_connection() as connection:
            return _fetch(connection, query, values)

    @contextmanager
    def turn(self) -> Iterator["_Turn"]:
        """See `Rows`; PostgreSQL grants the lock in the order of the requests."""
        with self._datastore.get_connection() as connection:
            connection.execute(_BEGIN.format(_lock_key(self._name)))
            yield _Turn(connection, self._name, self.location)
            connection.rollback()  # does nothing after a commit; after an error, the pool rolls back

    def close(self) -> None:
        if self._owns:
            self._datastore.close()


class _Turn:
    """A transaction that holds the advisory lock of the ledger."""

    def __init__(self, connection: Connection[Any], name: str, location: str) -> None:
        self._connection, self._name, self._location = connection, name, location

    def select(self, after: int, limit: int) -> StoredRows:
        return _fetch(self._connection, _AFTER if after else _FROM_FIRST, (self._name, after, limit))

    def insert(self, rows: Sequence[NewRows]) -> None:
        positions = [position for group in rows for position in range(group.first, group.last + 1)]
        topics = [group.type for group in rows for _ in group.rows]
        states = [row_bytes(row) for group in rows for row in group.rows]
        connection = self._connection
        try:
            with connection.pipeline() as pipeline:  # one round trip, since other writers wait
                connection.execute(_INSERT, (self._name, positions, topics, states))
                connection.execute(_CHECK, (len(states), self._name, min(positions), max(positions)))
                connection.execute("COMMIT")
                pipeline.sync()
        except psycopg.errors.UniqueViolation as error:
            raise TakenError(str(error)) from None
        except psycopg.errors.DivisionByZero:
            reason = "the database changed or dropped the rows, so nothing was recorded"
            raise Unavailable(f"{self._location}: {reason}; check its table for triggers and rules") from None
        except psycopg.Error as error:
            if not connection.closed:  # the server has replied that it did not commit
                raise
            raise Uncertain(f"{self._location}: {' '.join(str(error).split())}") from None


class _Datastore(PostgresDatastore):
    """Connections of our own, which wait for a lock for at most LOCK_TIMEOUT; the library's pool is never opened.

    That pool has threads of its own, and waits ever longer to try again while a server is down.
    """

    def __init__(self, address: Address) -> None:
        super().__init__(**address._asdict(), originator_id_type="text")
        self._connections = Connections(partial(_connect, address), _CONNECTIONS)

    @contextmanager
    def get_connection(self) -> Iterator[Connection[DictRow]]:
        """Use a connection. Raises Unavailable, and the errors of the library in place of psycopg's."""
        if self._connections.is_closed:
            raise ConnectionPoolClosedError
        try:
            with self._connections.one() as connection:
                yield connection
        except psycopg.IntegrityError as error:
            raise IntegrityError(str(error)) from error
        except psycopg.Error as error:
            raise PersistenceError(str(error)) from error

    def close(self) -> None:
        """Close the connections; the library calls this for an object that is half made, too."""
        if hasattr(self, "_connections"):
            self._connections.close()


def _connect(address: Address) -> Connection[Any]:
    """Open a connection in autocommit mode."""
    connection = Connection.connect(
        **address._asdict(), connect_timeout=database.CONNECT_TIMEOUT, autocommit=True, row_factory=dict_row
    )
    connection.execute(f"SET lock_timeout = '{database.LOCK_TIMEOUT}s'")
    return connection


def _fetch(connection: Connection[Any], query: str, values: tuple[object, ...]) -> list[Any]:
    with connection.cursor(binary=True, row_factory=tuple_row) as cursor:
        return cursor.execute(query, values).fetchall()


def _lock_key(name: str) -> int:
    """Return the key of a ledger's advisory lock: 64 bits of a digest of its name."""
    return int.from_bytes(sha256(f"forecast-ledger {name}".encode()).digest()[:8], signed=True)
