"""Rows in an SQLite file, through eventsourcing's recorder: what is opened is a ledger's file and nothing else."""

import os
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from random import random
from typing import Any, NamedTuple
from urllib.parse import quote

from eventsourcing.sqlite import (
    SQLiteApplicationRecorder,
    SQLiteConnection,
    SQLiteConnectionPool,
    SQLiteCursor,
    SQLiteDatastore,
)

from forecast_ledger.ledger.core.errors import Absent, Unavailable, Uncertain
from forecast_ledger.ledger.storing import database
from forecast_ledger.ledger.storing.database import MAX_ROW_BYTES, Fault, NewRow, StoredRows, TakenError

MEMORY = ":memory:"
_TABLE = "stored_events"  # as the library calls it
_POLL = 0.001  # s, about so often a writer looks whether it is its turn
_CHUNK = 8  # rows that are read at once
_PAGE_BYTES = 64 * 2**20  # past which a page of rows ends early
_LATEST = 500  # rows, the last ones in the file, which are looked for without the index
_MOST_FAULTS = 20
# trusted_schema: no function is called from what a file defines. cell_size_check: a damaged page is noticed as it is
# read. mmap_size: an error of the disk is an error, not a signal. synchronous: what is acknowledged is on the disk.
PRAGMAS = {"trusted_schema": 0, "cell_size_check": 1, "mmap_size": 0, "synchronous": 2}
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master"
_ROWS = f"SELECT originator_version, state FROM {_TABLE} WHERE originator_id = ? AND "  # noqa: S608 - a constant
_LABELLED = _ROWS.replace(", state", ", state, CAST(topic AS BLOB)")
_TAKEN = {sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE}
_NOT_COMMITTED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL}
_WAITS = ("locked", "already exists")  # what SQLite says where another process is making the same tables


class _Entry(NamedTuple):
    """A row of SQLite's schema table: a table, an index, a view or a trigger."""

    type: str
    name: str
    table: str
    sql: str


class SQLite:
    """The rows of one ledger in an SQLite file, or in memory."""

    def __init__(self, path: str, name: str, *, read_only: bool) -> None:
        """Open a file, which is made unless read_only. Raises Unavailable, and what SQLite raises."""
        self.location, self._name = path, name
        deadline = time.monotonic() + database.LOCK_TIMEOUT
        while True:
            try:
                self._datastore = _open_datastore(path, read_only=read_only)
            except (sqlite3.OperationalError, sqlite3.DatabaseError) as error:
                if not any(sign in str(error) for sign in _WAITS) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return

    def select(self, after: int, limit: int) -> StoredRows:
        """As `Rows` has it."""
        with self._datastore.transaction(commit=False) as cursor:
            return _select(cursor, self._name, after, limit)

    def select_at(self, positions: Sequence[int]) -> StoredRows:
        """As `Rows` has it."""
        which = "originator_version IN (SELECT value FROM json_each(?)) ORDER BY originator_version LIMIT ?"
        with self._datastore.transaction(commit=False) as cursor:
            return _fetch(cursor, _ROWS + which, (self._name, str([*positions]), len(positions)))

    def select_typed(self, after: int, limit: int) -> Sequence[tuple[int, bytes, object]]:
        """As `Rows` has it; bytes that are no text in UTF-8 come as they are."""
        with self._datastore.transaction(commit=False) as cursor:
            return _select(cursor, self._name, after, limit, query=_LABELLED)

    def newest(self) -> int:
        """As `Rows` has it."""
        query = f"SELECT max(originator_version) FROM {_TABLE} WHERE originator_id = ?"  # noqa: S608
        with self._datastore.transaction(commit=False) as cursor:
            cursor.execute(query, (self._name,))
            [newest] = cursor.fetchone()
        return newest or 0

    def has_unindexed(self, after: int) -> bool:
        """Whether a row after a position is among those last written to the file: rows are found by an index, and one
        whose last entries are damaged would pass for that of a shorter log.
        """
        latest = f"SELECT * FROM {_TABLE} NOT INDEXED ORDER BY rowid DESC LIMIT {_LATEST}"  # noqa: S608
        query = f"SELECT count(*) FROM ({latest}) WHERE originator_id = ? AND originator_version > ?"  # noqa: S608
        with self._datastore.transaction(commit=False) as cursor:
            cursor.execute(query, (self._name, after))
            [count] = cursor.fetchone()
        return bool(count)

    def faults(self) -> Iterator[Fault]:
        """The findings of `PRAGMA integrity_check`: damaged pages, and rows that the index lacks."""
        with self._datastore.transaction(commit=False) as cursor:
            cursor.execute(f"PRAGMA integrity_check({_MOST_FAULTS})")
            said = [str(line) for (line,) in cursor.fetchall()]
            for line in said if said != ["ok"] else []:
                row = re.match(r"row (\d+) missing from index", line)
                yield Fault(self._position(cursor, int(row[1])) if row else 0, f"SQLite's integrity_check: {line}")

    def _position(self, cursor: SQLiteCursor, rowid: int) -> int:
        """The log position of the ledger's row that the file has there; 0 if it is another ledger's."""
        query = f"SELECT originator_version FROM {_TABLE} NOT INDEXED WHERE rowid = ? AND originator_id = ?"  # noqa: S608
        cursor.execute(query, (rowid, self._name))
        found = cursor.fetchone()
        return found[0] if found and type(found[0]) is int and found[0] > 0 else 0

    @contextmanager
    def turn(self) -> Iterator["_Turn"]:
        """As `Rows` has it."""
        with self._datastore.get_connection(commit=True) as connection:
            cursor = connection.cursor()
            _begin(cursor)
            try:
                yield _Turn(connection, cursor, self._name, self.location)
            finally:
                connection.rollback()  # of nothing, once rows are recorded

    def close(self) -> None:
        """As `Rows` has it."""
        self._datastore.close()


class _Turn:
    """A transaction that has the file's only write lock."""

    def __init__(self, connection: SQLiteConnection, cursor: SQLiteCursor, name: str, shown: str) -> None:
        self._connection, self._cursor, self._name, self._shown = connection, cursor, name, shown

    def select(self, after: int, limit: int) -> StoredRows:
        """As `Writing` has it."""
        return _select(self._cursor, self._name, after, limit)

    def insert(self, rows: Sequence[NewRow]) -> None:
        """As `Writing` has it."""
        connection = self._cursor.sqlite_cursor.connection
        before, name = connection.total_changes, self._name
        try:
            self._cursor.executemany(f"INSERT INTO {_TABLE} VALUES (?, ?, ?, ?)", [(name, *row) for row in rows])  # noqa: S608
        except sqlite3.IntegrityError as error:
            if error.sqlite_errorcode in _TAKEN:
                raise TakenError(str(error)) from None
            raise
        span = (name, min(position for position, *_ in rows), max(position for position, *_ in rows))
        where = "originator_id = ? AND originator_version BETWEEN ? AND ?"
        self._cursor.execute(f"SELECT count(*) FROM {_TABLE} WHERE {where}", span)  # noqa: S608
        [count] = self._cursor.fetchone()
        if not count == connection.total_changes - before == len(rows):
            said = "the database did not keep the rows as they were given to it; nothing was recorded"
            raise Unavailable(f"{self._shown}: {said}; see whether its table has triggers")
        self._commit()

    def _commit(self) -> None:
        try:
            self._connection.commit()
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_COMMITTED:
                raise
            raise Uncertain(f"{self._shown}: {error}") from None


class _Pool(SQLiteConnectionPool):
    """Connections that trust a file as little as SQLite lets them, and keep what they acknowledge."""

    def _create_connection(self) -> SQLiteConnection:
        made = super()._create_connection()
        _prepare(made.cursor().sqlite_cursor.connection)
        return made


def _prepare(connection: sqlite3.Connection) -> None:
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)
    for name, value in PRAGMAS.items():
        connection.execute(f"PRAGMA {name} = {value}")


def _begin(cursor: SQLiteCursor) -> None:
    """Wait for the write lock. SQLite's own waiting looks ten times a second at last, and is overtaken by all others.

    Here everybody looks at the same rate, at random instants, so that nobody waits long.
    """
    deadline = time.monotonic() + database.LOCK_TIMEOUT
    cursor.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                return cursor.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(_POLL * (0.5 + random()))  # noqa: S311 - nothing recorded depends on it
    finally:
        cursor.execute(f"PRAGMA busy_timeout = {database.LOCK_TIMEOUT * 1_000}")


def _select(cursor: SQLiteCursor, name: str, after: int, limit: int, query: str = _ROWS) -> list[Any]:
    """From the start on also what lies before the first position."""
    which = "originator_version > ?" if after else "? = 0"
    return _fetch(cursor, f"{query}{which} ORDER BY originator_version LIMIT ?", (name, after, limit))


def _fetch(cursor: SQLiteCursor, query: str, values: tuple[object, ...]) -> list[Any]:
    """Plain tuples, without an object a row, which costs four times what SQLite does; of huge rows a few."""
    cursor.sqlite_cursor.row_factory = None
    cursor.execute(query, values)
    rows: list[Any] = []
    size = 0
    while size < _PAGE_BYTES and (chunk := cursor.sqlite_cursor.fetchmany(_CHUNK)):
        rows += chunk
        size += sum([len(row[1]) for row in chunk if type(row[1]) is bytes])
    return rows


def _open_datastore(path: str, *, read_only: bool) -> SQLiteDatastore:
    """A datastore with its table. Raises Unavailable: it cannot be opened, or is not a ledger's alone."""
    if path == MEMORY:
        datastore = _datastore(MEMORY, pool_size=1, max_overflow=0)  # each connection would have a memory of its own
        SQLiteApplicationRecorder(datastore).create_table()
        return datastore
    uri = file_uri(path, read_only=read_only)
    there = os.path.exists(path) and _is_ledger(path, uri)  # noqa: PTH110 - as its caller has looked at it
    if read_only and not there:
        raise Absent(f"{path}: not a ledger: the database has no table of stored events{_STARTS.format(path)}")
    datastore = _datastore(uri)
    datastore.pool.is_journal_mode_wal = read_only  # or it would try to change the file
    try:
        if not there:
            SQLiteApplicationRecorder(datastore).create_table()
        else:
            datastore.pool.put_connection(datastore.pool.get_connection())
    except BaseException:
        datastore.close()
        raise
    return datastore


_STARTS = "; `forecast-ledger append {} FILE` starts one"


def _datastore(uri: str, pool_size: int = 5, max_overflow: int = 10) -> SQLiteDatastore:
    timeout = database.LOCK_TIMEOUT
    datastore = SQLiteDatastore(uri, lock_timeout=timeout, originator_id_type="text")
    datastore.pool = _Pool(
        db_name=uri, lock_timeout=timeout, pool_size=pool_size, max_overflow=max_overflow, pool_timeout=float(timeout)
    )
    return datastore


def file_uri(path: str, *, read_only: bool) -> str:
    """The file, and nothing else, whatever characters its path has."""
    mode = "ro" if read_only else "rwc"
    if read_only and not os.access(Path(path).parent, os.W_OK) and not Path(f"{path}-wal").exists():
        mode = "ro&immutable=1"  # nobody is writing, and SQLite cannot make its lock files here
    return f"file:{quote(os.path.abspath(path))}?mode={mode}"  # noqa: PTH100 - no link is followed


def _is_ledger(path: str, uri: str) -> bool:
    """Whether a file has the store's table; False if it is empty. Raises Unavailable if it has anything else.

    Nothing is written, but where a crash has left half a transaction, which SQLite takes back for a writer.
    """
    try:
        found = _entries(uri.replace("?mode=rwc", "?mode=ro"))
    except sqlite3.OperationalError as error:
        if "readonly" not in str(error):
            raise
        if "?mode=rwc" not in uri:
            said = f"a crash has left half a transaction there; `forecast-ledger append {path} FILE` takes it back"
            raise Unavailable(f"{path}: {said}, even if FILE is empty") from None
        found = _entries(uri)
    tables = [entry.name for entry in found if entry.type == "table"]
    if tables and all(entry.name != _TABLE for entry in found):
        others = ", ".join(tables[:3]) + ", …" * (len(tables) > 3)
        raise Unavailable(f"{path}: not a ledger: the database has no table of stored events, but others: {others}")
    if strange := [entry for entry in found if entry not in _schema()]:
        raise Unavailable(f"{path}: not only a ledger: {_refusal_message(strange)}")
    return bool(found)


def _refusal_message(strange: Sequence[_Entry]) -> str:
    """The message that names what a ledger's file must not have, with the remedy."""
    named = ", ".join(f"{entry.type} {entry.name!r:.60}" for entry in strange[:3]) + ", …" * (len(strange) > 3)
    if any((entry.type, entry.name) == ("table", _TABLE) for entry in strange):
        return f"its {named} is not as this version makes it; import an export of it into a new file"
    drop = f'DROP {strange[0].type.upper()} "{strange[0].name:.60}"'
    return f"the database also has the {named}; remove what is not a ledger's from a copy of the file, with SQL: {drop}"


def _entries(uri: str) -> list[_Entry]:
    with closing(sqlite3.connect(uri, timeout=database.LOCK_TIMEOUT, uri=True)) as found:
        _prepare(found)
        return _parse_entries(found.execute(_SCHEMA).fetchall())


def _parse_entries(rows: Sequence[tuple[str, str, str, str | None]]) -> list[_Entry]:
    """Entries with their SQL on one line: what else SQLite keeps of how it was written means nothing."""
    return [_Entry(kind, name, table, " ".join((sql or "").split())) for kind, name, table, sql in rows]


@cache
def _schema() -> frozenset[_Entry]:
    """The schema that the library makes in a new file, with what SQLite's ANALYZE adds to it."""
    datastore = SQLiteDatastore(MEMORY, originator_id_type="text")
    SQLiteApplicationRecorder(datastore).create_table()
    with datastore.transaction(commit=True) as cursor:
        cursor.execute("ANALYZE")
    with datastore.transaction(commit=False) as cursor:
        cursor.execute(_SCHEMA)
        entries = _parse_entries([tuple(row) for row in cursor.fetchall()])
    datastore.close()
    return frozenset(entries)
