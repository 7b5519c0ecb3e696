"""Rows in an SQLite file, in the table that the recorder of eventsourcing creates; no other kind of file is opened."""

import json
import os
import re
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import islice
from typing import Any, cast

from eventsourcing.sqlite import SQLiteConnection

from forecast_ledger.ledger.core.errors import Unavailable, Uncertain
from forecast_ledger.ledger.model.log import NewRows, event_text, row_bytes
from forecast_ledger.ledger.storing import database
from forecast_ledger.ledger.storing.database import (
    CONNECTIONS,
    MEMORY,
    Fault,
    Rows,
    StoredRows,
    TakenError,
    TimeLimits,
)
from forecast_ledger.ledger.storing.sqlite_files import PRAGMAS, TABLE, Files, execute_when_free

_CHUNK = 8  # rows fetched at once
_PAGE_BYTES = 64 * 2**20  # a page of rows ends once it is larger
_LATEST = 500  # the last rows of the file, which are also read without the index
_MOST_FAULTS = 20
_NOW = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"  # µs since 1970
_ROWS = f"SELECT originator_version, state FROM {TABLE} WHERE originator_id = ? AND "  # noqa: S608 - a constant
_LABELLED = _ROWS.replace(", state", ", state, CAST(topic AS BLOB)")
_AT_ONCE = 128  # consecutive rows of one type that are inserted by one statement; fewer are inserted one by one
# Characters or bytes of rows that SQLite copies for one statement; up to Python 3.12.3 not any, because it warns of the
# numbers of its placeholders, which it takes for names.
_MOST_AT_ONCE = 0 if (3, 12) <= sys.version_info < (3, 12, 4) else 8 * 2**20
# A connection keeps 2,000 KiB of pages by default. So many rows or more fill more, which would be written in part
# before the commit, and in part again: from then on the connection keeps these KiB.
_MANY, _KEPT_OF_MANY = 1_000, 8_000
_INSERT = f"INSERT INTO {TABLE} VALUES (?, ?, ?, CAST(? AS BLOB))"  # noqa: S608 - a constant
# The values of _INSERT_MANY: ledger, first log position, event type, each row: a text, which is cast to its bytes in
# UTF-8 without a copy, or bytes.
_MANY_ROWS = ", ".join(f"(?1, ?2 + {number}, ?3, CAST(?{number + 4} AS BLOB))" for number in range(_AT_ONCE))
_INSERT_MANY = f"INSERT INTO {TABLE} VALUES {_MANY_ROWS}"  # noqa: S608 - a constant
_TAKEN = {sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE}
_NOT_COMMITTED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL}


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
        self._files = Files(path, self.limits.turn, connections, read_only=read_only)
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
        if any(type(row) is not bytes for _, row in rows):  # whoever reads these rows says so
            return None
        return [event_text(row.decode()) for _, row in rows]

    def newest(self) -> int:
        query = f"SELECT max(originator_version) FROM {TABLE} WHERE originator_id = ?"  # noqa: S608
        with self._files.reading() as cursor:
            cursor.execute(query, (self._name,))
            [newest] = cursor.fetchone()
        return newest if isinstance(newest, int) else 0  # a damaged file may have a text there

    def heads(self, most: int) -> Sequence[tuple[str, int]]:
        query = database.HEADS.format(table=TABLE) + "?"
        with self._files.reading() as cursor:
            return [tuple(row) for row in cursor.execute(query, (most,)).fetchall()]

    def named(self, name: str) -> "SQLite":
        other = copy(self)
        other._name, other._owns = name, False
        return other

    def has_unindexed(self, after: int) -> bool:
        """Return whether one of the last rows in the file is after a position.

        Rows are found by an index. If the last entries of the index are damaged, the log would look shorter than it is.
        """
        latest = f"SELECT * FROM {TABLE} NOT INDEXED ORDER BY rowid DESC LIMIT {_LATEST}"  # noqa: S608
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

    def _position(self, cursor: sqlite3.Cursor, rowid: int) -> int:
        """Return the log position of the row with this rowid; 0 if it belongs to another ledger."""
        query = f"SELECT originator_version FROM {TABLE} NOT INDEXED WHERE rowid = ? AND originator_id = ?"  # noqa: S608
        cursor.execute(query, (rowid, self._name))
        row = cursor.fetchone()
        return row[0] if row and type(row[0]) is int and row[0] > 0 else 0

    @contextmanager
    def turn(self) -> Iterator["_Turn"]:
        """Take the turn to write: an immediate transaction, which is rolled back unless `insert` has committed it."""
        with self._files.writing() as connection:
            turn = _Turn(connection, self)
            try:
                execute_when_free(turn.cursor, "BEGIN IMMEDIATE", self.limits.turn)
                self._files.check_there()
                yield turn
            finally:
                connection.rollback()  # does nothing after a commit

    def change_cursor(self, statement: str, values: tuple[object, ...]) -> list[tuple[int, str]]:
        """See `Rows`; in a file with a WAL, the commit does not wait for the disk."""
        with self._files.writing() as connection:
            cursor = connection.cursor().sqlite_cursor
            execute = cursor.execute
            execute_when_free(cursor, "PRAGMA journal_mode", self.limits.turn)
            if cursor.fetchone()[0] == "wal":
                execute("PRAGMA synchronous = 1")
            try:
                execute_when_free(cursor, "BEGIN IMMEDIATE", self.limits.turn)
                self._files.check_there()
                for each, given in ((database.CREATE_CURSORS, ()), (statement, values)):
                    execute(each.format(table=database.CURSORS, now=_NOW), given)
                rows = [tuple(row) for row in cursor.fetchall()]
                execute_when_free(cursor, "COMMIT", self.limits.turn)
            finally:
                connection.rollback()
                execute_when_free(cursor, f"PRAGMA synchronous = {PRAGMAS['synchronous']}", self.limits.turn)
        return rows

    def check_there(self) -> None:
        self._files.check_there()

    def close(self) -> None:
        if self._owns:
            self._files.close()


class _Turn:
    """A transaction that holds the write lock of the file."""

    def __init__(self, connection: SQLiteConnection, of: SQLite) -> None:
        self.cursor, self._of, self._name = connection.cursor().sqlite_cursor, of, of._name

    def select(self, after: int, limit: int) -> StoredRows:
        return _select(self.cursor, self._name, after, limit)

    def insert(self, rows: Sequence[NewRows]) -> None:
        """Insert the rows, many with each statement, and commit; see `Transaction`."""
        connection, new = self.cursor.connection, sum(group.size for group in rows)
        before = connection.total_changes
        if new >= _MANY:
            self.cursor.execute(f"PRAGMA cache_size = -{_KEPT_OF_MANY}")
        try:
            each: list[tuple[str, int, str, str | bytearray]] = []
            for group in rows:
                first, rest = group.first, iter(group.rows)
                while states := self._states([*islice(rest, _AT_ONCE)]):
                    if len(states) == _AT_ONCE and sum(map(len, states)) <= _MOST_AT_ONCE:
                        self.cursor.executemany(_INSERT, each)
                        self.cursor.execute(_INSERT_MANY, (self._name, first, group.type, *states))
                        each = []
                    else:
                        each += [(self._name, at, group.type, state) for at, state in enumerate(states, first)]
                    first += len(states)
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
        self.cursor.execute(f"SELECT count(*) FROM {TABLE} WHERE {where}", span)  # noqa: S608
        [count] = self.cursor.fetchone()
        if not count == connection.total_changes - before == new:
            reason = "the database changed or dropped the rows, so nothing was recorded"
            raise Unavailable(f"{self._of.location}: {reason}; check its table for triggers")
        self._commit()

    def _states(self, rows: Sequence[str | bytes]) -> Sequence[str | bytearray]:
        """Return rows as values: as bytearrays, unless a text has the same bytes in the database.

        `sqlite3` looks up an adapter for each bytes object.
        """
        if self._of._encoding == "UTF-8" and {*map(type, rows)} == {str}:
            return cast("Sequence[str]", rows)
        return [bytearray(row_bytes(row)) for row in rows]

    def _commit(self) -> None:
        try:
            execute_when_free(self.cursor, "COMMIT", self._of.limits.turn)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_COMMITTED:
                raise
            raise Uncertain(f"{self._of.location}: {error}") from None
        self._of._files.check_there(Uncertain)


def _select(cursor: sqlite3.Cursor, name: str, after: int, limit: int, query: str = _ROWS) -> list[Any]:
    """Select rows after a position; after=0 also returns rows with positions below 1."""
    which = "originator_version > ?" if after else "? = 0"  # SQLite 3.53 prepares a plain `LIMIT ?` for each value
    return _fetch(cursor, f"{query}{which} ORDER BY originator_version LIMIT +?", (name, after, limit))


def _fetch(cursor: sqlite3.Cursor, query: str, values: tuple[object, ...]) -> list[Any]:
    """Return a page of rows as tuples: the library's row objects would take four times as long as SQLite itself."""
    cursor.row_factory = None
    cursor.execute(query, values)
    rows: list[Any] = []
    size = 0
    while size < _PAGE_BYTES and (chunk := cursor.fetchmany(_CHUNK)):
        rows += chunk
        size += sum([len(row[1]) for row in chunk if type(row[1]) is bytes])
    return rows
