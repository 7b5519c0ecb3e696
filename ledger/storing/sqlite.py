"""Rows in an SQLite file, in the table that the recorder of eventsourcing creates; no other kind of file is opened."""

import json
import os
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy
from functools import cache
from math import ceil
from pathlib import Path
from random import random
from threading import Lock, RLock
from typing import Any, NamedTuple, cast
from urllib.parse import quote

from eventsourcing.persistence import ConnectionPoolClosedError, InterfaceError
from eventsourcing.sqlite import (
    SQLITE3_DEFAULT_LOCK_TIMEOUT,
    SQLiteApplicationRecorder,
    SQLiteConnection,
    SQLiteConnectionPool,
    SQLiteCursor,
    SQLiteDatastore,
)

from forecast_ledger.ledger.core.errors import Absent, Unavailable, Uncertain
from forecast_ledger.ledger.model.log import NewRows, event_text, row_bytes
from forecast_ledger.ledger.storing import database, forks
from forecast_ledger.ledger.storing.database import (
    CONNECTIONS,
    MAX_ROW_BYTES,
    MEMORY,
    Fault,
    Rows,
    StoredRows,
    TakenError,
    TimeLimits,
)

_TABLE = "stored_events"  # the library's name for it
_POLL = 0.001  # s, the mean time between two attempts to take the write lock
_CHUNK = 8  # rows fetched at once
_PAGE_BYTES = 64 * 2**20  # a page of rows ends once it is larger
_LATEST = 500  # the last rows of the file, which are also read without the index
_MOST_FAULTS = 20
PAGE_SIZE = 8_192  # bytes of a page of a new file; rows are written faster than with SQLite's default, 4,096
# trusted_schema: the schema of a file cannot call functions. cell_size_check: a damaged page is detected when it is
# read. mmap_size: a disk error raises an exception, not a signal. synchronous: a commit is on disk when it returns; for
# macOS, fullfsync says that its own memory is no disk.
PRAGMAS = {
    "trusted_schema": 0,
    "cell_size_check": 1,
    "mmap_size": 0,
    "synchronous": 2,
    "fullfsync": 1,
    "checkpoint_fullfsync": 1,
}
_NOW = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"  # µs since 1970
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master"
_ROWS = f"SELECT originator_version, state FROM {_TABLE} WHERE originator_id = ? AND "  # noqa: S608 - a constant
_LABELLED = _ROWS.replace(", state", ", state, CAST(topic AS BLOB)")
_AT_ONCE = 128  # consecutive rows of one type that are inserted by one statement; fewer are inserted one by one
_MOST_AT_ONCE = 8 * 2**20  # characters or bytes of rows that SQLite copies for one statement
# A connection keeps 2,000 KiB of pages by default. So many rows or more fill more, which would be written in part
# before the commit, and in part again: from then on the connection keeps these KiB.
_MANY, _KEPT_OF_MANY = 1_000, 8_000


def _insertion(count: int) -> str:
    """Return the statement that inserts so many rows. Values: ledger, first log position, event type, each row.

    A row is a text, which is cast to its bytes in UTF-8 without a copy, or bytes.
    """
    rows = [f"(?1, ?2 + {number}, ?3, CAST(?{number + 4} AS BLOB))" for number in range(count)]
    return f"INSERT INTO {_TABLE} VALUES {', '.join(rows)}"  # noqa: S608 - a constant


_INSERT, _INSERT_MANY = _insertion(1), _insertion(_AT_ONCE)
_TAKEN = {sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE}
_NOT_COMMITTED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL}
_WAITS = ("locked", "already exists")  # in SQLite's messages while another process creates the same tables


class _Entry(NamedTuple):
    """A row of SQLite's schema table: a table, an index, a view or a trigger."""

    type: str
    name: str
    table: str
    sql: str


class SQLite(Rows):
    """The rows of one ledger in an SQLite file, or in memory."""

    def __init__(
        self, path: str, name: str, *, read_only: bool, limits: TimeLimits | None = None, connections: int = CONNECTIONS
    ) -> None:
        """Open a file, and create it unless read_only. Raises Unavailable, and the errors of SQLite.

        connections: at most so many, but two or more: one of a file is kept to write.
        """
        self.location, self._name, self._owns = path, name, True
        self.limits = limits or TimeLimits.usual()
        self.identity = "" if path == MEMORY else os.path.realpath(path)
        self._files = _Files(path, self.limits.turn, connections, read_only=read_only)
        self._encoding = "UTF-8"  # of texts, unless another program has created the database
        if path != MEMORY:
            with self._files.reading() as cursor:
                cursor.execute("PRAGMA encoding")
                [self._encoding] = cursor.fetchone()

    def select(self, after: int, limit: int) -> StoredRows:
        with self._files.reading() as cursor:
            return _select(cursor, self._name, after, limit)

    def select_at(self, positions: Sequence[int]) -> StoredRows:
        which = "originator_version IN (SELECT value FROM json_each(?)) ORDER BY originator_version LIMIT +?"
        with self._files.reading() as cursor:
            return _fetch(cursor, _ROWS + which, (self._name, str([*positions]), len(positions)))

    def select_typed(self, after: int, limit: int) -> Sequence[tuple[int, bytes, object]]:
        """See `Rows`; a type that is not UTF-8 is returned as its bytes."""
        with self._files.reading() as cursor:
            rows = _select(cursor, self._name, after, limit, query=_LABELLED)
        if self._encoding == "UTF-8":
            return rows
        return [
            (*row, topic.decode(self._encoding, "replace").encode() if isinstance(topic, bytes) else topic)
            for *row, topic in rows
        ]

    def events_of(self, tags: Sequence[str], end: int) -> list[str] | None:
        if self.identity == "":
            return None
        which = "topic IN (SELECT value FROM json_each(?)) AND originator_version <= ? ORDER BY originator_version"
        with self._files.reading() as cursor:
            rows = _fetch(cursor, _ROWS + which, (self._name, json.dumps([*tags]), end))
        return [event_text(row.decode()) for _, row in rows]

    def newest(self) -> int:
        query = f"SELECT max(originator_version) FROM {_TABLE} WHERE originator_id = ?"  # noqa: S608
        with self._files.reading() as cursor:
            cursor.execute(query, (self._name,))
            [newest] = cursor.fetchone()
        return newest or 0

    def heads(self, most: int) -> Sequence[tuple[str, int]]:
        query = database.HEADS.format(table=_TABLE) + "?"
        with self._files.reading() as cursor:
            return [tuple(row) for row in cursor.sqlite_cursor.execute(query, (most,)).fetchall()]

    def named(self, name: str) -> "SQLite":
        other = copy(self)
        other._name, other._owns = name, False
        return other

    def has_unindexed(self, after: int) -> bool:
        """Return whether one of the last rows in the file is after a position.

        Rows are found by an index. If the last entries of the index are damaged, the log would look shorter than it is.
        """
        latest = f"SELECT * FROM {_TABLE} NOT INDEXED ORDER BY rowid DESC LIMIT {_LATEST}"  # noqa: S608
        query = f"SELECT count(*) FROM ({latest}) WHERE originator_id = ? AND originator_version > ?"  # noqa: S608
        with self._files.reading() as cursor:
            cursor.execute(query, (self._name, after))
            [count] = cursor.fetchone()
        return bool(count)

    def faults(self) -> Iterator[Fault]:
        """Return the findings of `PRAGMA integrity_check`: damaged pages, and rows missing from the index."""
        with self._files.reading() as cursor:
            cursor.execute(f"PRAGMA integrity_check({_MOST_FAULTS})")
            lines = [str(line) for (line,) in cursor.fetchall()]
            for line in lines if lines != ["ok"] else []:
                row = re.match(r"row (\d+) missing from index", line)
                yield Fault(self._position(cursor, int(row[1])) if row else 0, f"SQLite's integrity_check: {line}")

    def _position(self, cursor: SQLiteCursor, rowid: int) -> int:
        """Return the log position of the row with this rowid; 0 if it belongs to another ledger."""
        query = f"SELECT originator_version FROM {_TABLE} NOT INDEXED WHERE rowid = ? AND originator_id = ?"  # noqa: S608
        cursor.execute(query, (rowid, self._name))
        row = cursor.fetchone()
        return row[0] if row and type(row[0]) is int and row[0] > 0 else 0

    @contextmanager
    def turn(self) -> Iterator["_Turn"]:
        """Take the turn to write: an immediate transaction, which is rolled back unless `insert` has committed it."""
        with self._files.writing() as connection:
            turn = _Turn(connection, self)
            try:
                _begin(turn.cursor, self.limits.turn)
                yield turn
            finally:
                connection.rollback()  # does nothing after a commit

    def change_cursor(self, statement: str, values: tuple[object, ...]) -> list[tuple[int, str]]:
        """See `Rows`; in a file with a WAL, the commit does not wait for the disk."""
        with self._files.writing() as connection:
            cursor = connection.cursor()
            execute = cursor.sqlite_cursor.execute
            if execute("PRAGMA journal_mode").fetchone()[0] == "wal":
                execute("PRAGMA synchronous = 1")
            try:
                _begin(cursor, self.limits.turn)
                for each, given in ((database.CREATE_CURSORS, ()), (statement, values)):
                    execute(each.format(table=database.CURSORS, now=_NOW), given)
                rows = [tuple(row) for row in cursor.sqlite_cursor.fetchall()]
                connection.commit()
            finally:
                connection.rollback()
                execute(f"PRAGMA synchronous = {PRAGMAS['synchronous']}")
        return rows

    def close(self) -> None:
        if self._owns:
            self._files.close()


class _Files:
    """The connections of this process to a file, which are closed before a fork and opened again after it.

    SQLite can have no connection on both sides of a fork: the child would take the locks of its parent for its own, and
    neither of them would keep the other from deleting what it has not yet read.
    """

    def __init__(self, path: str, turn: float, connections: int, *, read_only: bool) -> None:
        self._path, self._turn, self._most, self._read_only = path, turn, connections, read_only
        self._lock, self._writing, self._used = RLock(), Lock(), 0
        self._closed = self._inherited = False
        self._datastore: SQLiteDatastore | None = self._opened()
        self._writer: SQLiteConnection | None = None
        forks.tell(self)

    def _opened(self) -> SQLiteDatastore:
        deadline = time.monotonic() + self._turn
        while True:
            try:
                return _open_datastore(self._path, self._turn, self._most, read_only=self._read_only)
            except (sqlite3.OperationalError, sqlite3.DatabaseError) as error:
                if not any(phrase in str(error) for phrase in _WAITS) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _begin_use(self) -> SQLiteDatastore:
        """Return the connections, which stay open until `_end_use`."""
        with self._lock:
            if self._inherited:
                raise Unavailable(f"{self._path}: {_INHERITED}")
            if self._closed:
                raise ConnectionPoolClosedError
            if self._datastore is None:
                if not os.path.exists(self._path):  # noqa: PTH110 - as the caller checked it
                    raise Unavailable(f"{self._path}: the file is not there any more")
                self._datastore = self._opened()
            self._used += 1
            return self._datastore

    def _end_use(self) -> None:
        with self._lock:
            self._used -= 1
            self._close_unused()

    @contextmanager
    def reading(self) -> Iterator[SQLiteCursor]:
        """Use a connection to read, in a transaction. Raises Unavailable, and the errors of the library or SQLite."""
        datastore = self._begin_use()
        try:
            connection = datastore.pool.get_connection()
            try:
                cursor = connection.cursor()
                cursor.execute("BEGIN")
                try:
                    yield cursor
                finally:
                    connection.rollback()
                    cursor.sqlite_cursor.close()
            finally:
                datastore.pool.put_connection(connection)
        finally:
            self._end_use()

    @contextmanager
    def writing(self) -> Iterator[SQLiteConnection]:
        """Use a connection to write, one thread at a time: those that wait leave the connections to readers.

        Raises Unavailable, and the errors of the library.
        """
        datastore, writing = self._begin_use(), self._writing
        try:
            if not writing.acquire(timeout=self._turn):
                raise Unavailable(f"{self._path}: another thread has held the lock for {self._turn:g} s; try again")
            try:
                connection = self._writer or self._new_writer(datastore)
                try:
                    yield connection
                finally:
                    if self._writer is None:
                        datastore.pool.put_connection(connection)
            finally:
                writing.release()
        finally:
            self._end_use()

    def _new_writer(self, datastore: SQLiteDatastore) -> SQLiteConnection:
        """Return a connection to write by: one to a file is kept, because its turns then begin in half of the time.

        It waits for nothing in SQLite if the file has a WAL: then `_begin` does, and nothing else has to.
        """
        connection = datastore.pool.get_connection()
        if self._path != MEMORY:
            self._writer = connection
            execute = connection.cursor().sqlite_cursor.execute
            if execute("PRAGMA journal_mode").fetchone()[0] == "wal":
                execute("PRAGMA busy_timeout = 0")
        return connection

    def close(self) -> None:
        """Let nobody begin to use a connection, and close all; if some are in use, once the last use has ended.

        To close one while another thread reads by it can end the process.
        """
        with self._lock:
            self._closed = True
            self._close_unused()

    def _close_unused(self) -> None:
        if self._closed and not self._used and self._datastore is not None and not self._inherited:
            self._datastore.close()

    def before_fork(self) -> None:
        """Close the connections, unless they are in use."""
        self._lock.acquire()
        if self._path != MEMORY and not self._used and self._datastore is not None:
            self._datastore.close()
            self._datastore = self._writer = None

    def after_fork(self, *, is_child: bool) -> None:
        """Let threads go on; in a child, leave alone what a thread of its parent was using."""
        if not is_child:
            self._lock.release()
            return
        self._inherited = self._used > 0
        if self._inherited:
            _LEFT_ALONE.append(self._datastore)
        self._lock, self._writing, self._used = RLock(), Lock(), 0


_LEFT_ALONE: list[object] = []  # of the parent of this process: to close them would change its files
_INHERITED = (
    "another thread was using the file when this process was forked; fork while no thread does, or start processes "
    "with the method spawn"
)


class _Turn:
    """A transaction that holds the write lock of the file."""

    def __init__(self, connection: SQLiteConnection, of: SQLite) -> None:
        self._connection, self.cursor = connection, connection.cursor()
        self._name, self._location, self._is_utf_8 = of._name, of.location, of._encoding == "UTF-8"

    def select(self, after: int, limit: int) -> StoredRows:
        return _select(self.cursor, self._name, after, limit)

    def insert(self, rows: Sequence[NewRows]) -> None:
        """Insert the rows, many with each statement, and commit; see `Transaction`."""
        connection, new = self.cursor.sqlite_cursor.connection, sum(len(group.rows) for group in rows)
        before = connection.total_changes
        if new >= _MANY:
            self.cursor.execute(f"PRAGMA cache_size = -{_KEPT_OF_MANY}")
        try:
            each: list[tuple[str, int, str, str | bytearray]] = []
            for group in rows:
                for begin in range(0, len(group.rows), _AT_ONCE):
                    first, states = group.first + begin, self._states(group.rows[begin : begin + _AT_ONCE])
                    if len(states) == _AT_ONCE and sum(map(len, states)) <= _MOST_AT_ONCE:
                        self.cursor.executemany(_INSERT, each)
                        self.cursor.execute(_INSERT_MANY, (self._name, first, group.type, *states))
                        each = []
                    else:
                        each += [(self._name, at, group.type, state) for at, state in enumerate(states, first)]
                    if len(each) >= _AT_ONCE:  # each may be long
                        self.cursor.executemany(_INSERT, each)
                        each = []
            self.cursor.executemany(_INSERT, each)
        except sqlite3.IntegrityError as error:
            if error.sqlite_errorcode in _TAKEN:
                raise TakenError(str(error)) from None
            raise
        where = "originator_id = ? AND originator_version BETWEEN ? AND ?"
        span = (self._name, rows[0].first, rows[-1].last)
        self.cursor.execute(f"SELECT count(*) FROM {_TABLE} WHERE {where}", span)  # noqa: S608
        [count] = self.cursor.fetchone()
        if not count == connection.total_changes - before == new:
            reason = "the database changed or dropped the rows, so nothing was recorded"
            raise Unavailable(f"{self._location}: {reason}; check its table for triggers")
        self._commit()

    def _states(self, rows: Sequence[str | bytes]) -> Sequence[str | bytearray]:
        """Return rows as values: as bytearrays, unless a text has the same bytes in the database.

        `sqlite3` looks up an adapter for each bytes object.
        """
        if self._is_utf_8 and {*map(type, rows)} == {str}:
            return cast("Sequence[str]", rows)
        return [bytearray(row_bytes(row)) for row in rows]

    def _commit(self) -> None:
        try:
            self._connection.commit()
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_COMMITTED:
                raise
            raise Uncertain(f"{self._location}: {error}") from None


class _Pool(SQLiteConnectionPool):
    """Connections with PRAGMAS, if to a file: they protect from hostile ones, and make commits durable.

    They keep statements prepared, where those of the library keep one, so that each of ours would be prepared again.
    """

    def _create_connection(self) -> SQLiteConnection:
        try:
            name, wait = self.db_name, self.lock_timeout or SQLITE3_DEFAULT_LOCK_TIMEOUT
            connection = sqlite3.connect(name, timeout=wait, isolation_level=None, check_same_thread=False, uri=True)
        except sqlite3.Error as error:
            raise InterfaceError(error) from error
        try:
            if not self.is_sqlite_memory_mode and not self.is_journal_mode_wal:
                connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")  # of a new file; another keeps its own
                connection.execute("PRAGMA journal_mode = WAL")
                self.is_journal_mode_wal = True
            connection.row_factory = sqlite3.Row
            _prepare(connection, {} if self.is_sqlite_memory_mode else PRAGMAS)
        except BaseException:
            connection.close()
            raise
        return SQLiteConnection(connection, self.max_age)


def _prepare(connection: sqlite3.Connection, pragmas: Mapping[str, int]) -> None:
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)
    for name, value in pragmas.items():
        connection.execute(f"PRAGMA {name} = {value}")


def _begin(cursor: SQLiteCursor, limit: float) -> None:
    """Wait for the write lock, by trying at random intervals of about _POLL, so that every writer gets it soon.

    SQLite's own busy handler slows down to ten attempts a second, so a writer that waits is overtaken by new ones.
    """
    deadline = time.monotonic() + limit
    while True:
        try:
            return cursor.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(_POLL * (0.5 + random()))  # noqa: S311 - the log does not depend on it


def _select(cursor: SQLiteCursor, name: str, after: int, limit: int, query: str = _ROWS) -> list[Any]:
    """Select rows after a position; after=0 also returns rows with positions below 1."""
    which = "originator_version > ?" if after else "? = 0"  # SQLite 3.53 prepares a plain `LIMIT ?` for each value
    return _fetch(cursor, f"{query}{which} ORDER BY originator_version LIMIT +?", (name, after, limit))


def _fetch(cursor: SQLiteCursor, query: str, values: tuple[object, ...]) -> list[Any]:
    """Return a page of rows as tuples: the library's row objects would take four times as long as SQLite itself."""
    cursor.sqlite_cursor.row_factory = None
    cursor.execute(query, values)
    rows: list[Any] = []
    size = 0
    while size < _PAGE_BYTES and (chunk := cursor.sqlite_cursor.fetchmany(_CHUNK)):
        rows += chunk
        size += sum([len(row[1]) for row in chunk if type(row[1]) is bytes])
    return rows


def _open_datastore(path: str, wait: float, connections: int, *, read_only: bool) -> SQLiteDatastore:
    """Open a datastore with its table. Raises Unavailable: it cannot be opened, or has other tables than a ledger's."""
    if path == MEMORY:
        datastore = _datastore(MEMORY, wait, 1)  # each connection would have its own database
        SQLiteApplicationRecorder(datastore).create_table()
        return datastore
    uri, exists = file_uri(path, read_only=read_only), os.path.exists(path)  # noqa: PTH110 - as the caller checked it
    has_table = exists and not read_only and _is_ledger(path, _entries_before_writing(uri))
    datastore = _datastore(uri, wait, max(connections, 2))
    datastore.pool.is_journal_mode_wal = read_only  # else the pool would change the journal mode of the file
    try:
        if read_only:
            if not exists or not _is_ledger(path, _entries_to_read(path, datastore)):
                raise Absent(f"{path}: not a ledger: the database has no table stored_events{_STARTS.format(path)}")
        elif has_table:
            datastore.pool.put_connection(datastore.pool.get_connection())
        else:
            SQLiteApplicationRecorder(datastore).create_table()
    except BaseException:
        datastore.close()
        raise
    return datastore


_STARTS = "; `forecast-ledger append {} FILE` creates one"


def _datastore(uri: str, wait: float, connections: int) -> SQLiteDatastore:
    datastore = SQLiteDatastore(uri, originator_id_type="text")
    datastore.pool = _Pool(
        db_name=uri, lock_timeout=ceil(wait), pool_size=connections, max_overflow=0, pool_timeout=wait
    )
    return datastore


def file_uri(path: str, *, read_only: bool) -> str:
    """Return the URI of a file; any character in its path is quoted."""
    mode = "ro" if read_only else "rwc"
    if read_only and not os.access(Path(path).parent, os.W_OK) and not Path(f"{path}-wal").exists():
        mode = "ro&immutable=1"  # no process is writing, and SQLite cannot create its lock files here
    return f"file:{quote(os.path.abspath(path))}?mode={mode}"  # noqa: PTH100 - no link is followed


def _is_ledger(path: str, entries: Sequence[_Entry]) -> bool:
    """Return whether a file has the store's table; False if it is empty. Raises Unavailable if it has anything else."""
    tables = [entry.name for entry in entries if entry.type == "table"]
    if tables and all(entry.name != _TABLE for entry in entries):
        names = ", ".join(tables[:3]) + ", …" * (len(tables) > 3)
        raise Unavailable(f"{path}: not a ledger: the database has no table stored_events; its tables are: {names}")
    if foreign := [entry for entry in entries if entry not in _schema()]:
        raise Unavailable(f"{path}: not only a ledger: {_refusal_message(foreign)}")
    return bool(entries)


def _refusal_message(foreign: Sequence[_Entry]) -> str:
    """Return the message that names the entries that a ledger's file must not have, and the remedy."""
    names = ", ".join(f"{entry.type} {entry.name!r:.60}" for entry in foreign[:3]) + ", …" * (len(foreign) > 3)
    if any((entry.type, entry.name) == ("table", _TABLE) for entry in foreign):
        return f"its {names} has another definition than in this version; import an export of it into a new file"
    drop = f'DROP {foreign[0].type.upper()} "{foreign[0].name:.60}"'
    return f"the database also has the {names}; remove it from a copy of the file, in SQL: {drop}"


def _entries_before_writing(uri: str) -> list[_Entry]:
    """Return the entries of a file that may be no ledger.

    Nothing is written, unless a crash has left half a transaction, which SQLite rolls back for a writer.
    """
    try:
        return _entries(uri.replace("?mode=rwc", "?mode=ro"))
    except sqlite3.OperationalError as error:
        if "readonly" not in str(error):
            raise
        return _entries(uri)


def _entries(uri: str) -> list[_Entry]:
    with closing(sqlite3.connect(uri, timeout=database.LOCK_TIMEOUT, uri=True)) as connection:
        _prepare(connection, PRAGMAS)
        return _parse_entries(connection.execute(_SCHEMA).fetchall())


def _entries_to_read(path: str, datastore: SQLiteDatastore) -> list[_Entry]:
    """Return the entries that a connection sees with which the log is then read. Raises Unavailable."""
    try:
        with datastore.get_connection(commit=False) as connection:
            cursor = connection.cursor()
            cursor.execute(_SCHEMA)
            return _parse_entries(cursor.fetchall())
    except sqlite3.OperationalError as error:
        if "readonly" not in str(error):
            raise
        reason = "a crash has left half a transaction in the file"
        remedy = f"run `forecast-ledger append {path} FILE`, with any FILE, even an empty one, to roll it back"
        raise Unavailable(f"{path}: {reason}; {remedy}") from None


def _parse_entries(rows: Sequence[tuple[str, str, str, str | None]]) -> list[_Entry]:
    """Return entries with their SQL on one line: white space in it has no meaning."""
    return [_Entry(kind, name, table, " ".join((sql or "").split())) for kind, name, table, sql in rows]


@cache
def _schema() -> frozenset[_Entry]:
    """Return the schema that the library creates in a new file, with the tables of cursors and of SQLite's ANALYZE."""
    datastore = SQLiteDatastore(MEMORY, originator_id_type="text")
    SQLiteApplicationRecorder(datastore).create_table()
    with datastore.transaction(commit=True) as cursor:
        cursor.execute(database.CREATE_CURSORS.format(table=database.CURSORS))
        cursor.execute("ANALYZE")
    with datastore.transaction(commit=False) as cursor:
        cursor.execute(_SCHEMA)
        entries = _parse_entries([tuple(row) for row in cursor.fetchall()])
    datastore.close()
    return frozenset(entries)
