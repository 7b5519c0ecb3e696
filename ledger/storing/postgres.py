"""Rows in a PostgreSQL database, in the table that the recorder of eventsourcing creates."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cache, partial
from hashlib import sha256
from math import ceil
from typing import Any

import psycopg
from eventsourcing.persistence import ConnectionPoolClosedError, IntegrityError, PersistenceError
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore
from psycopg import Connection, sql
from psycopg.rows import DictRow, dict_row, tuple_row

from forecast_ledger.ledger.core.errors import Absent, Unavailable, Uncertain
from forecast_ledger.ledger.core.redaction import one_line, redacted
from forecast_ledger.ledger.model.log import NewRows, row_bytes
from forecast_ledger.ledger.storing import database
from forecast_ledger.ledger.storing.connections import Answer, Connections, LimitedConnection, read_address
from forecast_ledger.ledger.storing.database import CONNECTIONS, Rows, StoredRows, TakenError, TimeLimits

_NAME = "stored_events"  # the library's name for the table
# What the table is, in a schema that is given, or else in the first one that the URL's options say is searched.
_DESCRIBE_TABLE = """
SELECT named.schema, space.oid IS NOT NULL, relkind::text, (
    SELECT array_agg(attname || ' ' || format_type(atttypid, NULL) ORDER BY attnum)
    FROM pg_attribute WHERE attrelid = kind.oid AND attnum > 0 AND NOT attisdropped
), EXISTS (
    SELECT FROM pg_index WHERE indrelid = kind.oid AND indisunique AND indisvalid AND indpred IS NULL AND (
        SELECT array_agg(attname::text ORDER BY attname) FROM pg_attribute
        WHERE attrelid = kind.oid AND attnum = ANY(indkey)
    ) = ARRAY['originator_id', 'originator_version']
)
FROM (
    SELECT CASE WHEN %s <> '' THEN %s WHEN source = 'client' THEN current_schema()::text ELSE 'public' END AS schema
    FROM pg_settings WHERE name = 'search_path'
) AS named
LEFT JOIN pg_namespace AS space ON nspname = named.schema
LEFT JOIN pg_class AS kind ON relnamespace = space.oid AND relname = %s
"""
_COLUMNS = ["originator_id text", "originator_version bigint", "topic text", "state bytea", "notification_id bigint"]
_ROWS = "SELECT originator_version, state FROM {table} WHERE originator_id = %s AND "
_AFTER = _ROWS + "originator_version > %s ORDER BY originator_version LIMIT %s"
_FROM_FIRST = _ROWS + "%s = 0 ORDER BY originator_version LIMIT %s"
_AMONG = _ROWS + "originator_version = ANY(%s) ORDER BY originator_version"
_LABELLED, _LABELLED_FROM_FIRST = (
    query.replace(", state", ", state, convert_to(topic, 'UTF8')") for query in (_AFTER, _FROM_FIRST)
)
_NEWEST = "SELECT max(originator_version) FROM {table} WHERE originator_id = %s"
_HEADS = database.HEADS + "%s"
# Divides by zero unless all inserted rows are there, so that the statements after it, COMMIT too, are not executed.
_CHECK = (
    "SELECT 1 / (count(*) = %s)::int FROM {table} WHERE originator_id = %s AND originator_version BETWEEN %s AND %s"
)
_INSERT = (
    "INSERT INTO {table} (originator_id, originator_version, topic, state) "
    "SELECT %s, * FROM unnest(%b::bigint[], %b::text[], %b::bytea[])"
)
# The lock has a statement of its own, so that the next statement sees what others wrote while this one waited.
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock({})"
_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"  # µs since 1970
_LOCK, _UNLOCK = "SELECT pg_advisory_lock({})", "SELECT pg_advisory_unlock({})"
_READ_ONLY = ("in_hot_standby", "default_transaction_read_only")  # what a server says of itself, from version 14 on
_LATER = 1.0  # s after its limit in which a server has to say that a turn did not come


class Postgres(Rows):
    """The rows of one ledger in a PostgreSQL database."""

    def __init__(
        self, url: str, name: str, *, read_only: bool, limits: TimeLimits | None = None, connections: int = CONNECTIONS
    ) -> None:
        """Connect, and create the table unless read_only. Raises Unavailable, and the errors of the library.

        url: as `read_address` has it. connections: at most so many.
        """
        address = read_address(url)
        self.location, self._name, self._owns = redacted(url), name, True
        self.limits, self.identity = limits or TimeLimits.usual(), address.identity
        self._pool = _Pool(partial(_connect, address.parameters, self.limits), connections, self.limits.turn)
        try:
            self._open(address.schema, read_only=read_only)
        except BaseException:
            self._pool.close()
            raise

    def _open(self, schema: str, *, read_only: bool) -> None:
        look = partial(_fetch, query=_DESCRIBE_TABLE, values=(schema, schema, _NAME))
        [described] = self._pool.answer(look)
        if not described[1]:
            named = described[0] or "that the URL's options name"
            raise Unavailable(f"{self.location}: the database has no schema {named}; CREATE SCHEMA makes one, in SQL")
        self._schema = described[0]
        table = sql.Identifier(self._schema, _NAME).as_string()
        self._query = cache(partial(_on, table.replace("%", "%%")))
        if described[2] is None and read_only:
            raise Absent(f"{self.location}: not a ledger: the database has no table {self._schema}.{_NAME}")
        if described[2] is None:
            described = self._create(look)
        if described[2] is not None:
            self._check(*described[2:])

    def _create(self, look: Callable[[Connection[Any]], list[Any]]) -> Any:
        """Create the table, unless another process does: PostgreSQL does not let two create one table at once."""
        lock = partial(_within, query=_LOCK.format(_lock_key("")), limit=self.limits.turn + _LATER)
        with self._pool.after(lock) as (connection, _):
            self._check_writable(connection)
            try:
                [described] = look(connection)
                if described[2] is None:
                    PostgresApplicationRecorder(_Lent(connection, self._schema)).create_table()
                connection.execute(_UNLOCK.format(_lock_key("")))
            except BaseException:
                connection.close()  # which ends the lock
                raise
        return described

    def _check(self, kind: str, columns: Sequence[str], has_key: bool) -> None:
        """Raise Unavailable: what has the name of the table is not a table of ledgers."""
        table = f"{self._schema}.{_NAME}"
        if kind not in {"r", "p"}:
            wrong = f"{table} is not a table"
        elif missing := [column for column in _COLUMNS if column not in columns]:
            wrong = f"the table {table} has no column {missing[0]}"
        elif not has_key:
            wrong = f"the table {table} has no unique key of originator_id and originator_version"
        else:
            return
        remedy = "keep ledgers in another database, or in a schema of their own: add ?schema=NAME to the URL"
        raise Unavailable(f"{self.location}: not a ledger: {wrong}; {remedy}")

    def _check_writable(self, connection: Connection[Any]) -> None:
        """Raise Unavailable: the server only reads. A command is not decided there, since its log may lag behind."""
        if any(connection.info.parameter_status(name) == "on" for name in _READ_ONLY):
            remedy = "write to the primary, which target_session_attrs=read-write finds among several hosts"
            raise Unavailable(f"{self.location}: the server is read-only, as a standby is; {remedy}")

    def select(self, after: int, limit: int) -> StoredRows:
        return self._fetch(_AFTER if after else _FROM_FIRST, (self._name, after, limit))

    def select_at(self, positions: Sequence[int]) -> StoredRows:
        return self._fetch(_AMONG, (self._name, [*positions]))

    def select_typed(self, after: int, limit: int) -> Sequence[tuple[int, bytes, object]]:
        return self._fetch(_LABELLED if after else _LABELLED_FROM_FIRST, (self._name, after, limit))

    def newest(self) -> int:
        [(newest,)] = self._fetch(_NEWEST, (self._name,))
        return newest or 0

    def ping(self, limit: float) -> None:
        look = partial(_within, query=self._query("SELECT FROM {table} LIMIT 1"), limit=limit)
        with self._pool.after(look, limit):
            pass

    def heads(self, most: int) -> Sequence[tuple[str, int]]:
        return self._fetch(_HEADS, (most,))

    def named(self, name: str) -> "Postgres":
        other = copy(self)
        other._name, other._owns = name, False
        return other

    def _fetch(self, query: str, values: tuple[object, ...]) -> list[Any]:
        return self._pool.answer(partial(_fetch, query=self._query(query), values=values))

    @contextmanager
    def turn(self) -> Iterator["_Turn"]:
        """See `Rows`; PostgreSQL grants the lock in the order of the requests."""
        ledger = self._name if self._schema == "public" else f"{self._schema} {self._name}"
        begin = partial(_within, query=_BEGIN.format(_lock_key(ledger)), limit=self.limits.turn + _LATER)
        with self._pool.after(begin) as (connection, _):
            self._check_writable(connection)
            yield _Turn(connection, self._name, self.location, self._query)
            connection.rollback()  # does nothing after a commit; after an error, the pool rolls back

    def change_cursor(self, statement: str, values: tuple[object, ...]) -> list[tuple[int, str]]:
        """See `Rows`; the commit does not wait for the disk."""
        table = sql.Identifier(self._schema, database.CURSORS).as_string()
        query = statement.format(table=table.replace("%", "%%"), now=_NOW).replace("?", "%s")
        look = partial(_fetch, query="SELECT to_regclass(%s)::text", values=(table,))
        with self._pool.after(look) as (connection, [(exists,)]):
            self._check_writable(connection)
            if not exists:
                connection.execute(_BEGIN.format(_lock_key("")))  # PostgreSQL does not let two make one table at once
                connection.execute(
                    sql.SQL(database.CREATE_CURSORS).format(table=sql.Identifier(self._schema, database.CURSORS))
                )
                connection.commit()
            connection.execute("BEGIN; SET LOCAL synchronous_commit = off")
            rows = _fetch(connection, query, values)
            connection.commit()
        return rows

    def close(self) -> None:
        if self._owns:
            self._pool.close()


class _Turn:
    """A transaction that holds the advisory lock of the ledger."""

    def __init__(self, connection: Connection[Any], name: str, location: str, query: Callable[[str], str]) -> None:
        self._connection, self._name, self._location, self._query = connection, name, location, query

    def select(self, after: int, limit: int) -> StoredRows:
        query = self._query(_AFTER if after else _FROM_FIRST)
        return _fetch(self._connection, query, (self._name, after, limit))

    def insert(self, rows: Sequence[NewRows]) -> None:
        """Insert the rows and commit, in one round trip; see `Transaction`."""
        positions = [position for group in rows for position in range(group.first, group.last + 1)]
        topics = [group.type for group in rows for _ in range(group.size)]
        states = [row_bytes(row) for group in rows for row in group.rows]
        connection = self._connection
        try:
            with connection.pipeline() as pipeline:  # one round trip, since other writers wait
                connection.execute(self._query(_INSERT), (self._name, positions, topics, states))
                connection.execute(self._query(_CHECK), (len(states), self._name, min(positions), max(positions)))
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
            raise Uncertain(f"{self._location}: {one_line(str(error))}") from None


class _Lent(PostgresDatastore):
    """A connection that is lent to the library, whose pool, which has threads of its own, is never opened."""

    def __init__(self, connection: Connection[Any], schema: str) -> None:
        super().__init__("", "", "", "", "", schema=schema, originator_id_type="text")
        self._connection = connection

    @contextmanager
    def get_connection(self) -> Iterator[Connection[DictRow]]:
        yield self._connection

    def register_type_adapters(self) -> None:
        """Do nothing: rows are inserted without the library's types."""


class _Pool:
    """Connections, with the errors of the library in place of psycopg's."""

    def __init__(self, connect: Callable[[], Connection[Any]], most: int, wait: float) -> None:
        self._connections = Connections(connect, most, wait)

    @contextmanager
    def after(
        self, first: Callable[[Connection[Any]], Answer], wait: float | None = None
    ) -> Iterator[tuple[Connection[DictRow], Answer]]:
        """See `Connections.after`. Raises Unavailable, and the errors of the library."""
        if self._connections.is_closed:
            raise ConnectionPoolClosedError
        try:
            with self._connections.after(first, wait) as used:
                yield used
        except psycopg.IntegrityError as error:
            raise IntegrityError(str(error)) from error
        except psycopg.Error as error:
            raise PersistenceError(str(error)) from error

    def answer(self, ask: Callable[[Connection[Any]], Answer]) -> Answer:
        """Return the answer to a statement that records nothing."""
        with self.after(ask) as (_, answer):
            return answer

    def close(self) -> None:
        self._connections.close()


def _connect(parameters: Mapping[str, Any], limits: TimeLimits) -> Connection[Any]:
    """Open a connection in autocommit mode. What the URL says counts before the limits of the program."""
    usual = {"connect_timeout": ceil(limits.connect), "fallback_application_name": "forecast-ledger"}
    try:
        connection = LimitedConnection.connect(autocommit=True, row_factory=dict_row, **{**usual, **parameters})
    except UnicodeError:  # a label of the name is empty or has more than 63 characters
        raise psycopg.OperationalError("the URL or PGHOST has a host that is not a name of the internet") from None
    connection.limit = limits.statement
    connection.execute(f"SET lock_timeout = {max(round(limits.turn * 1_000), 1)}")  # ms
    return connection


def _within(connection: LimitedConnection, query: str, limit: float) -> None:
    """Execute a statement that may take another time than most, s."""
    usual, connection.limit = connection.limit, limit
    try:
        connection.execute(query)
    finally:
        connection.limit = usual


def _on(table: str, query: str) -> str:
    return query.format(table=table)


def _fetch(connection: Connection[Any], query: str, values: tuple[object, ...]) -> list[Any]:
    with connection.cursor(binary=True, row_factory=tuple_row) as cursor:
        return cursor.execute(query, values).fetchall()


def _lock_key(name: str) -> int:
    """Return the key of a ledger's advisory lock: 64 bits of a digest of its name."""
    return int.from_bytes(sha256(f"forecast-ledger {name}".encode()).digest()[:8], signed=True)
