"""The tables of a read model in a schema of a PostgreSQL database."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from itertools import count
from typing import Any

import psycopg
from msgspec import json
from psycopg import Connection
from psycopg.pq import TransactionStatus

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.core.redaction import one_line, redacted, redacted_text
from forecast_ledger.ledger.storing.connections import LimitedConnection, ServerAddress, read_address
from forecast_ledger.replay.readmodel.part_store import Layout, StoredRow

LOCK_TIMEOUT = 30  # s to wait for readers before a table with another layout takes the place of one
_CONNECT_TIMEOUT = 10  # s
SILENT = (
    300.0  # s to wait for any sign of a server that has a statement, which may be to make an index of a large table
)
_REMEDY = (
    "make it again with `forecast-ledger follow --rebuild`; if that is refused too, drop the schema, follow the log "
    "again, and name its optional tables with --with"
)
_LONGEST = 63  # bytes of a name in PostgreSQL
_SIGNS = {"%", "$", "\0"}  # that a name of ours may not have: the first two have a meaning where it is written
_FEW = 64  # rows that are quicker to insert than to copy
_TYPES = {"TEXT": 'text COLLATE "C"', "INTEGER": "bigint", "BLOB": 'text COLLATE "C"'}
_DESCRIBED = {"TEXT": "text C", "INTEGER": "bigint", "BLOB": "text C"}  # the same with their collation
_WRITES = "_writes"  # a row for each statement that anybody but the runner has run to change a table
_NEW = " (new)"  # ends the name of a table that is being made
# By what depends on the schema, which has an index: pg_class has none by schema, and all tables of all schemas.
_TABLES = """
SELECT c.relname,
    ARRAY(
        SELECT concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), l.collname)
        FROM pg_attribute a LEFT JOIN pg_collation l ON l.oid = a.attcollation
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
    ),
    ARRAY(
        SELECT concat_ws(' ', CASE WHEN i.indisprimary THEN 'key' ELSE 'index' END, i.indkey) AS index
        FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid ORDER BY index
    ),
    ARRAY(
        SELECT t.tgname::text FROM pg_trigger t
        WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled = 'O' ORDER BY t.tgname
    )
FROM pg_namespace n
JOIN pg_depend d ON d.refclassid = 'pg_namespace'::regclass AND d.refobjid = n.oid AND d.classid = 'pg_class'::regclass
JOIN pg_class c ON c.oid = d.objid
WHERE n.nspname = %s AND c.relkind IN ('r', 'p') AND c.relname <> %s
"""
# What another program writes is noted, so that the runner compares every part before it builds on it.
_NOTE = """
CREATE TABLE IF NOT EXISTS {schema}.{writes} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
CREATE OR REPLACE FUNCTION {schema}.{writes}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog AS $$ BEGIN INSERT INTO {schema}.{writes} DEFAULT VALUES; RETURN NULL; END $$
"""
_TRIGGER = """
CREATE TRIGGER {writes} AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table} FOR EACH STATEMENT
WHEN (current_setting('forecast_ledger.runner', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION {schema}.{writes}()
"""


class PostgresTables:
    """A schema of a PostgreSQL database; see `Database`. Readers do not wait for its runner.

    Its runner holds an advisory lock of the session, and nobody else writes through the same connection.
    """

    remedy = _REMEDY

    def __init__(self, url: str) -> None:
        """Connect; the schema is made when it is held. Raises Unavailable."""
        self.location = redacted(url)
        self._parameters, self._name = _address(url)
        self._schema = _quoted(self._name)
        self._is_held, self._starts_over = False, False
        self._checked: tuple[int, int] | None = None  # what was noted at the last check
        self._made, self._beside = list[Layout](), set[str]()
        self._empty: set[str] = set()  # tables into which the transaction has written no row
        self._seen: dict[str, str] | None = None  # the tables that there are, once a transaction has looked
        self._numbers = count(1)
        with self.errors():
            self._connection = self._connect()

    def _connect(self) -> Connection[Any]:
        self._process = os.getpid()
        parameters = {"connect_timeout": _CONNECT_TIMEOUT, **self._parameters}
        connection = LimitedConnection.connect(autocommit=True, **parameters)
        connection.limit = SILENT
        connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}s'")
        return connection

    def _live(self) -> Connection[Any]:
        """Return the connection; after an outage, a new one, if no other runner has taken over.

        Raises Unavailable, psycopg.Error.
        """
        if self._process != os.getpid():
            raise Unavailable(f"{self.location}: another process has opened this read model; open it in this one")
        if self._connection.closed:
            self._connection, self._checked = self._connect(), None
            if self._is_held:
                self._is_held = False
                if not self.hold():
                    raise Unavailable(f"{self.location}: another runner has taken over after the connection was lost")
        return self._connection

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise Unavailable(f"{self.location}: {redacted_text(one_line(str(error)))}") from None

    @contextmanager
    def transaction(self, *, writing: bool, tables: Sequence[str] = ()) -> Iterator[None]:
        connection = self._live()
        locked = [name for name in tables if self.exists(name)]
        if writing:
            connection.execute("BEGIN; SET LOCAL forecast_ledger.runner = 'on'")
        else:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            if locked:  # or a table that takes the place of one would seem empty in a transaction from before
                connection.execute(f"LOCK TABLE {', '.join(map(self._at, locked))} IN ACCESS SHARE MODE")
            yield
            connection.execute("COMMIT")
            self._starts_over = self._starts_over and not writing
        except BaseException:
            with suppress(psycopg.Error):
                if connection.info.transaction_status != TransactionStatus.IDLE:
                    connection.execute("ROLLBACK")
            raise
        finally:
            self._made.clear()
            self._beside.clear()
            self._empty.clear()
            self._seen = None

    def hold(self) -> bool:
        connection = self._live()
        if not self._is_held:
            key = int.from_bytes(sha256(f"forecast-ledger read model {self._name}".encode()).digest()[:8], signed=True)
            [self._is_held] = connection.execute("SELECT pg_try_advisory_lock(%s)", [key]).fetchone() or [False]
            if self._is_held:
                [there] = connection.execute("SELECT to_regnamespace(%s)", [self._schema]).fetchone() or [None]
                if there is None:
                    connection.execute(f"CREATE SCHEMA {self._schema}")
                connection.execute(_NOTE.format(schema=self._schema, writes=_WRITES))
        return self._is_held

    def close(self) -> None:
        if self._process == os.getpid():
            self._connection.close()

    def structure(self) -> dict[str, str]:
        return {} if self._starts_over else self._present()

    def _present(self) -> dict[str, str]:
        if self._seen is not None:
            return self._seen
        rows = self._live().execute(_TABLES, (self._name, _WRITES), prepare=True)
        seen = {name: _description(*described) for name, *described in rows}
        if self._connection.info.transaction_status == TransactionStatus.INTRANS:
            self._seen = seen
        return seen

    def exists(self, name: str) -> bool:
        if self._starts_over:
            return False
        return bool(self._live().execute("SELECT 1 WHERE to_regclass(%s) IS NOT NULL", [self._at(name)]).fetchall())

    def expected(self, table: Layout) -> dict[str, str]:
        return {table.name: _expected(table)}

    def make(self, table: Layout) -> None:
        """See `Database`: where only rows differ, only rows are replaced, so that views and grants stay."""
        self._empty.add(table.name)
        if self.expected(table).items() <= self._present().items():
            self._live().execute(f"DELETE FROM {self._at(table.name)}")  # noqa: S608 - a name of a layout
            return
        self._beside.add(table.name)
        self._made.append(table)
        columns = ", ".join(f"{_quoted(name)} {_TYPES[kind]}" for name, kind in table.columns)
        keys = ", ".join(map(_quoted, table.key_names()))
        self._live().execute(f"CREATE TABLE {self._at(table.name)} ({columns}, PRIMARY KEY ({keys}))")

    def drop(self, name: str) -> None:
        self._live().execute(f"DROP TABLE IF EXISTS {self._at(name)}")
        self._present().pop(name, None)

    def finish(self) -> None:
        """See `Database`: the tables that were made take the places of the old ones."""
        for table in self._made:
            made = self._at(table.name)
            indexes = (f"CREATE INDEX ON {made} ({_quoted(column)})" for column in table.indexed())
            trigger = _TRIGGER.format(schema=self._schema, writes=_WRITES, table=made)
            self._live().execute(";\n".join([*indexes, trigger]))
        renames = [
            f"DROP TABLE IF EXISTS {self._schema}.{_quoted(table.name)};\n"
            f"ALTER TABLE {self._at(table.name)} RENAME TO {_quoted(table.name)}"
            for table in self._made
        ]
        if renames:  # from here on, readers wait
            self._live().execute(";\n".join(renames))
        self._beside.clear()
        self._seen = None

    def start_over(self) -> None:
        self._starts_over = True

    def select(self, table: Layout, key: Sequence[Any]) -> Iterator[StoredRow]:
        if table.name in self._empty:
            return iter(())
        query = self._query(table, _equals(table.key_names()[: len(key)]))
        return _decoded(table, self._rows(query, _encoded(table, [key])[0], whole=len(key) >= table.part))

    def where(self, table: Layout, equal: Mapping[str, Any]) -> Iterable[StoredRow]:
        tests = (f"{_quoted(name)} " + ("IS NULL" if value is None else "= %s") for name, value in equal.items())
        return self._rows(
            self._query(table, " AND ".join(tests)),
            [value for value in equal.values() if value is not None],
            whole=True,
        )

    def _query(self, table: Layout, condition: str) -> str:
        """Return the query for the rows of a table that meet a condition, in order of their keys."""
        columns, order = (", ".join(map(_quoted, names)) for names in (dict(table.columns), table.key_names()))
        return f"SELECT {columns} FROM {self._at(table.name)} WHERE {condition or 'true'} ORDER BY {order}"  # noqa: S608

    def _rows(self, query: str, values: Sequence[Any], *, whole: bool) -> Iterator[StoredRow]:
        """Yield rows: all at once, or, in a transaction, some after others. whole: whether they fit into memory."""
        connection = self._live()
        if whole or connection.info.transaction_status == TransactionStatus.IDLE:
            with connection.cursor(binary=True) as cursor:
                yield from cursor.execute(query, values).fetchall()
        else:
            with connection.cursor(f"rows {next(self._numbers)}", withhold=False) as cursor:
                cursor.itersize = 5_000
                yield from cursor.execute(query, values, binary=True)

    def keys(self, table: Layout) -> Iterable[StoredRow]:
        columns = ", ".join(map(_quoted, table.key_names()[: table.part])) or "NULL"
        rows = self._live().execute(f"SELECT DISTINCT {columns} FROM {self._at(table.name)}")  # noqa: S608
        return [row[: table.part] for row in rows]

    def insert(self, table: Layout, rows: list[StoredRow]) -> None:
        self._empty.discard(table.name)
        with self._live().cursor() as cursor:
            if len(rows) > _FEW:
                with cursor.copy(f"COPY {self._at(table.name)} FROM STDIN") as copy:
                    for row in _encoded(table, rows):
                        copy.write_row(row)
            elif rows:
                values = ", ".join(["%s"] * len(table.columns))
                cursor.executemany(f"INSERT INTO {self._at(table.name)} VALUES ({values})", _encoded(table, rows))  # noqa: S608

    def delete(self, table: Layout, keys: list[StoredRow]) -> None:
        if keys and table.name not in self._empty:
            where = _equals(table.key_names()[: len(keys[0])])
            with self._live().cursor() as cursor:
                cursor.executemany(f"DELETE FROM {self._at(table.name)} WHERE {where}", _encoded(table, keys))  # noqa: S608

    def is_checked(self) -> bool:
        return self._checked is not None and self._checked == self._noted()

    def note_checked(self) -> None:
        self._checked = self._noted()

    def _noted(self) -> tuple[int, int]:
        query = f"SELECT count(*), coalesce(max(id), 0) FROM {self._at(_WRITES)}"  # noqa: S608 - constants
        [(number, last)] = self._live().execute(query).fetchall()
        return number, last

    def check_file(self) -> None:
        """See `Database`: PostgreSQL has none; the digests of the parts are compared."""

    def _at(self, name: str) -> str:
        """Return the name of a table in its schema; of one that is being made, the name that it has until then."""
        return f"{self._schema}.{_quoted(name + _NEW if name in self._beside else name)}"


def _address(url: str) -> ServerAddress:
    """Return the address of a database and a schema. Raises Unavailable."""
    address = read_address(url)
    if not address.schema or _SIGNS & {*address.schema} or len(address.schema.encode()) > _LONGEST:
        wrong = f"name the schema that has the tables, with at most {_LONGEST} bytes and without % and $, as in "
        wrong += "…/DATABASE?schema=boards"
        raise Unavailable(f"{redacted(url)}: {wrong}")
    return address


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@cache
def _expected(table: Layout) -> str:
    """Return the description of a table of this layout."""
    numbers = {name: number for number, (name, _) in enumerate(table.columns, 1)}
    key = " ".join(str(numbers[name]) for name in table.key_names())
    indexes = sorted([*(f"index {numbers[name]}" for name in table.indexed()), f"key {key}"])
    return _description([f"{name} {_DESCRIBED[kind]}" for name, kind in table.columns], indexes, [_WRITES])


def _description(columns: Sequence[str], indexes: Sequence[str], triggers: Sequence[str]) -> str:
    return "; ".join([*columns, *indexes, *triggers])


def _equals(names: Iterable[str]) -> str:
    """Return the condition that columns have given values."""
    return " AND ".join(f"{_quoted(name)} = %s" for name in names)


def _encoded(table: Layout, rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Return rows, or the first values of each, as PostgreSQL has them: what may have any type is JSON.

    Texts of PostgreSQL cannot have the character U+0000; psycopg refuses it.
    """
    blobs = [index for index, (_, kind) in enumerate(table.columns) if kind == "BLOB"]
    if not blobs:
        return [tuple(row) for row in rows]
    return [
        tuple(json.encode(value).decode() if index in blobs else value for index, value in enumerate(row))
        for row in rows
    ]


def _decoded(table: Layout, rows: Iterator[StoredRow]) -> Iterator[StoredRow]:
    blobs = [index for index, (_, kind) in enumerate(table.columns) if kind == "BLOB"]
    if not blobs:
        return rows
    return (tuple(json.decode(value) if index in blobs else value for index, value in enumerate(row)) for row in rows)
