"""Connections of this process to an SQLite file, in which there is nothing but ledgers; no other file is opened."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache, partial
from pathlib import Path
from random import random
from threading import Condition, Lock, RLock
from typing import NamedTuple, TypeVar
from urllib.parse import quote

from eventsourcing.persistence import ConnectionPoolClosedError, InterfaceError, OperationalError
from eventsourcing.sqlite import (
    SQLiteApplicationRecorder,
    SQLiteConnection,
    SQLiteConnectionPool,
    SQLiteDatastore,
)

from forecast_ledger.ledger.core.errors import Absent, LedgerError, Unavailable
from forecast_ledger.ledger.storing import database, forks
from forecast_ledger.ledger.storing.database import MAX_ROW_BYTES, MEMORY

TABLE = "stored_events"  # the library's name for it
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
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master"
_PATIENCE = 0.5  # s that a fork waits for threads that use the file
_POLL = 0.001  # s, the mean time between two attempts to take a lock
_WAITS = ("locked", "already exists")  # in SQLite's messages while another process creates the same tables

_T = TypeVar("_T")


class _Entry(NamedTuple):
    """A row of SQLite's schema table: a table, an index, a view or a trigger."""

    type: str
    name: str
    table: str
    sql: str


class Files:
    """The connections of this process to a file, which are closed before a fork and opened again after it.

    SQLite can have no connection on both sides of a fork: the child would take the locks of its parent for its own, and
    neither of them would keep the other from deleting what it has not yet read.
    """

    def __init__(self, path: str, turn: float, connections: int, *, read_only: bool) -> None:
        self._path, self._turn, self._most, self._read_only = path, turn, connections, read_only
        self._at = path if path == MEMORY else os.path.abspath(path)  # noqa: PTH100 - also when the process has moved
        self._begin_anew()
        self._closed = self._inherited = False
        self._file = file_at(self._at)
        self._datastore: SQLiteDatastore | None = self._opened(path)
        self._writer: SQLiteConnection | None = None
        self._file = self._file or file_at(self._at)
        forks.tell(self)

    def _opened(self, path: str) -> SQLiteDatastore:
        deadline = time.monotonic() + self._turn
        while True:
            try:
                return _open_datastore(path, self._turn, self._most, read_only=self._read_only)
            except (sqlite3.DatabaseError, OperationalError) as error:
                if not any(phrase in str(error) for phrase in _WAITS) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _begin_use(self) -> SQLiteDatastore:
        """Return the connections, which stay open until `_end_use`."""
        with self._lock:
            while self._is_forking:
                self._changed.wait()
            if self._inherited:
                raise Unavailable(f"{self._path}: {_INHERITED}")
            if self._closed:
                raise ConnectionPoolClosedError
            if self._datastore is None:
                self.check_there()
                self._datastore = self._opened(self._at)
            self._used += 1
            return self._datastore

    def check_there(self, error: type[LedgerError] = Unavailable) -> None:
        """Raise an error if the file has been deleted, moved or replaced: nobody else would find what it records."""
        if self._path != MEMORY and ((found := file_at(self._at)) is None or found != self._file):
            raise error(f"{self._path}: the file that was opened is not there any more; {_OPEN_AGAIN}")

    def _end_use(self) -> None:
        with self._lock:
            self._used -= 1
            if self._is_forking:
                self._changed.notify_all()
            self._close_unused()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Cursor]:
        """Use a connection to read, in a transaction. Raises Unavailable, and the errors of the library or SQLite."""
        datastore = self._begin_use()
        try:
            self.check_there()
            connection = self._connection(datastore)
            try:
                cursor = connection.cursor().sqlite_cursor
                try:
                    cursor.execute("BEGIN")
                    execute_when_free(cursor, "PRAGMA schema_version", self._turn)  # takes the lock to read
                    yield cursor
                finally:
                    connection.rollback()
                    cursor.close()
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
            [is_held] = map(writing.acquire, (True,), (self._turn,))  # no interrupt comes between this and `try`
            if not is_held:
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
        """Return a connection to write by: one to a file is kept, because its turns then begin in half of the time."""
        connection = self._connection(datastore)
        if self._path != MEMORY:
            self._writer = connection
        return connection

    def _connection(self, datastore: SQLiteDatastore) -> SQLiteConnection:
        """Return a connection that nobody uses; a new one has to read the file, which may be locked."""
        return _when_free(datastore.pool.get_connection, self._turn)

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
        """Close the connections, once no thread uses them; after _PATIENCE, leave those open that a thread still uses.

        A child has the locks within SQLite as they are, for ever if they are those of a thread of its parent.
        """
        self._lock.acquire()
        self._is_forking = True  # so that no other use begins
        self._changed.wait_for(lambda: not self._used, _PATIENCE)
        if self._path != MEMORY and not self._used and self._datastore is not None:
            self._datastore.close()
            self._datastore = self._writer = None

    def after_fork(self, *, is_child: bool) -> None:
        """Let threads go on; in a child, leave alone what a thread of its parent was using."""
        if not is_child:
            self._is_forking = False
            self._changed.notify_all()
            self._lock.release()
            return
        self._inherited = self._used > 0
        if self._inherited:
            _LEFT_ALONE.append(self._datastore)
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Let no thread use the file, or wait for it."""
        self._lock, self._writing, self._used = RLock(), Lock(), 0
        self._changed, self._is_forking = Condition(self._lock), False


_LEFT_ALONE: list[object] = []  # of the parent of this process: to close them would change its files
_OPEN_AGAIN = "put it back, or open the ledger again"
_INHERITED = (
    "another thread was using the file when this process was forked; fork while no thread does, or start processes "
    "with the method spawn"
)


def file_at(path: str) -> tuple[int, int] | None:
    """Return the device and the inode of the file at a path, which name the file; None if none is found there."""
    try:
        found = os.stat(path)  # noqa: PTH116 - in half of the time
    except OSError:
        return None
    return found.st_dev, found.st_ino


def execute_when_free(cursor: sqlite3.Cursor, statement: str, limit: float) -> None:
    """Execute a statement that takes a lock of the file as soon as nobody holds it, within `limit` s."""
    _when_free(partial(cursor.execute, statement), limit)


def _when_free(take: Callable[[], _T], limit: float) -> _T:
    """Take a lock of the file by trying at random intervals of about _POLL, so that every writer gets it soon.

    SQLite's own busy handler slows down to ten attempts a second, so a writer that waits is overtaken by new ones; and
    no interrupt ends its wait.
    """
    deadline = time.monotonic() + limit
    while True:
        try:
            return take()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(_POLL * (0.5 + random()))  # noqa: S311 - the log does not depend on it


class _Pool(SQLiteConnectionPool):
    """Connections with PRAGMAS, if to a file: they protect from hostile ones, and make commits durable.

    They keep statements prepared, where those of the library keep one, so that each of ours would be prepared again.
    """

    def _create_connection(self) -> SQLiteConnection:
        try:
            connection = sqlite3.connect(
                self.db_name, timeout=0, isolation_level=None, check_same_thread=False, uri=True
            )
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
    datastore.pool = _Pool(db_name=uri, pool_size=connections, max_overflow=0, pool_timeout=wait)
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
    if tables and all(entry.name != TABLE for entry in entries):
        names = ", ".join(tables[:3]) + ", …" * (len(tables) > 3)
        raise Unavailable(f"{path}: not a ledger: the database has no table stored_events; its tables are: {names}")
    if foreign := [entry for entry in entries if entry not in _schema()]:
        raise Unavailable(f"{path}: not only a ledger: {_refusal_message(foreign)}")
    return bool(entries)


def _refusal_message(foreign: Sequence[_Entry]) -> str:
    """Return the message that names the entries that a ledger's file must not have, and the remedy."""
    names = ", ".join(f"{entry.type} {entry.name!r:.60}" for entry in foreign[:3]) + ", …" * (len(foreign) > 3)
    if any((entry.type, entry.name) == ("table", TABLE) for entry in foreign):
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
    with closing(sqlite3.connect(uri, timeout=0, uri=True)) as connection:
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
