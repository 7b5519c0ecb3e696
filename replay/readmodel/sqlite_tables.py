"""The tables of a read model in an SQLite file.

When its runner ends, the digest of the file is kept beside it, as `sha256sum` writes it, so that the next runner need
not compare every row. A file with another digest is not wrong: its rows are then compared with the digests of their
parts.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from hashlib import file_digest
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.storing.sqlite_files import file_at
from forecast_ledger.replay.readmodel.part_store import Layout, StoredRow
from forecast_ledger.replay.readmodel.sqlite_statements import NULL, create_indexes, create_table, insert_values

BESIDE = "-sha256"
_LARGEST = 4_096  # bytes that are read of the file beside
_NEW = "-new"  # the file beside in which all tables are made again
_LOCK_TIMEOUT = 30  # s to wait for another connection that writes to the file
_REMEDY = (
    "make it again with `forecast-ledger follow --rebuild`; if that is refused too, delete the file with its -wal and "
    "-shm files, follow the log again, and name its optional tables with --with"
)
_FOLLOW_AGAIN = "put it back, or follow the log again"


def is_unchanged(path: str) -> bool:
    """Return whether a file is as it was when its digest was written; call it while a transaction is open.

    Pages that are still in the write-ahead log count as a change.
    """
    try:
        if os.path.getsize(f"{path}-wal"):  # noqa: PTH202 - as SQLite names it
            return False
    except FileNotFoundError:
        pass
    except OSError:
        return False
    try:
        with Path(path + BESIDE).open("rb") as file:
            stated = file.read(_LARGEST)
        return stated == _line(path)
    except OSError:
        return False


def write(path: str) -> None:
    """Write the digest of a file that no connection is writing. A folder that is full, or read-only, gets none."""
    with suppress(OSError):
        Path(path + BESIDE).write_bytes(_line(path))


def _line(path: str) -> bytes:
    with Path(path).open("rb") as file:
        return f"{file_digest(file, 'sha256').hexdigest()}  {Path(path).name}\n".encode()


class SQLiteTables:
    """An SQLite file; see `Database`. Readers never wait for its runner, which holds a lock on a file beside it."""

    remedy = _REMEDY

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        """Open a file; create it unless read_only. Raises Unavailable."""
        self.location = path
        self._at = os.path.abspath(path)  # noqa: PTH100 - as the store's, also when the process has moved
        self._lock: sqlite3.Connection | None = None
        self._checked = -1  # SQLite's data_version at the last check of all parts
        self._is_unchanged = False  # whether the file has the digest that is written beside it
        self._beside = ""  # what the name of the file that is written has after the path
        self._made = list[Layout]()
        with self.errors():
            self._connection = self._connect("ro" if read_only else "rwc")
        self._file = file_at(self._at)

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError:  # SQLite's message about a damaged schema quotes its bytes
            raise Unavailable(f"{self.location}: the file is damaged: its schema is not text; {self.remedy}") from None
        except sqlite3.Error as error:
            damaged = any(sign in str(error) for sign in ("malformed", "decode"))
            raise Unavailable(f"{self.location}: {error}{f'; {self.remedy}' if damaged else ''}") from None

    @contextmanager
    def transaction(self, *, writing: bool, tables: Sequence[str] = ()) -> Iterator[None]:
        del tables  # one transaction sees one state of all of them
        self._connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN DEFERRED")
        self._is_unchanged = self._is_unchanged and not writing
        try:
            self._check_there()
            yield
            self._check_there()
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        finally:
            self._made.clear()
        if writing and self._beside:
            self._take_over()

    def _check_there(self) -> None:
        """Raise Unavailable if the file has been deleted, moved or replaced: nobody else would find what it records."""
        if not self._beside and (self._file is None or file_at(self._at) != self._file):
            raise Unavailable(f"{self.location}: the file that was opened is not there any more; {_FOLLOW_AGAIN}")

    def hold(self) -> bool:
        """See `Database`: a lock on a file beside this one, which readers do not wait for."""
        if self._lock is None:
            lock = self._connect("rwc", "-lock", timeout=0)
            try:
                lock.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                lock.close()
                if "locked" not in str(error):
                    raise
                return False
            self._lock = lock
            self._set_up()
        return True

    def _set_up(self) -> None:
        self._connection.execute("PRAGMA journal_mode=WAL")  # readers never wait
        self._connection.execute("PRAGMA synchronous=NORMAL")  # a power failure undoes whole refreshes only

    def close(self) -> None:
        is_written_back = (
            self._lock is not None
            and not self._is_unchanged
            and not self._beside
            and self._is_in_one_file()
            and file_at(self._at) == self._file
        )
        self._connection.close()
        if is_written_back:
            write(self.location)
        self._remove_beside()
        if self._lock is not None:
            self._lock.close()

    def _is_in_one_file(self) -> bool:
        """Return whether all that was written is in the file itself, and nobody else wrote since the last check."""
        try:
            if self._version() != self._checked:
                return False
            [(busy, *_)] = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error:
            return False
        return not busy

    def structure(self) -> dict[str, str]:
        return dict(self._connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))

    def exists(self, name: str) -> bool:
        return bool(self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [name]).fetchall())

    def expected(self, table: Layout) -> dict[str, str]:
        return _structure(table)

    def make(self, table: Layout) -> None:
        self.drop(table.name)
        self._connection.execute(_structure(table)[table.name])
        self._made.append(table)

    def drop(self, name: str) -> None:
        self._connection.execute(f'DROP TABLE IF EXISTS "{name}"')

    def finish(self) -> None:
        """See `Database`: indexes are made faster after the rows are written."""
        for statement in [each for table in self._made for each in [*_structure(table).values()][1:]]:
            self._connection.execute(statement)

    def start_over(self) -> None:
        """See `Database`: the tables are made in a file beside this one, of which the next transaction makes a copy."""
        self._connection.close()
        self._beside = _NEW
        self._remove_beside()
        self._connection = self._connect("rwc", _NEW)
        self._connection.execute("PRAGMA synchronous=OFF")  # nobody reads it after a power failure

    def _take_over(self) -> None:
        """Copy the file beside over this one, in one transaction, even if this one is damaged, and go on with it."""
        with closing(self._connection) as beside:
            self._connection = self._connect("rwc")
            beside.backup(self._connection)
        self._file = file_at(self._at)
        self._remove_beside()
        self._beside = ""
        self._set_up()
        self._checked = self._version()

    def _remove_beside(self) -> None:
        if self._beside:
            for end in ("", "-journal"):
                Path(f"{self.location}{_NEW}{end}").unlink(missing_ok=True)

    def select(self, table: Layout, key: Sequence[Any]) -> Iterator[StoredRow]:
        return iter(self._connection.execute(_query(table, _equals(table.key_names()[: len(key)])), key))

    def where(self, table: Layout, equal: Mapping[str, Any]) -> Iterable[StoredRow]:
        condition = " AND ".join(f'"{name}" IS ?' for name in equal)
        return self._connection.execute(_query(table, condition), [*equal.values()]).fetchall()

    def keys(self, table: Layout) -> Iterable[StoredRow]:
        columns = ", ".join(f'"{column}"' for column in table.key_names()[: table.part]) or "NULL"
        query = f'SELECT DISTINCT {columns} FROM "{table.name}"'  # noqa: S608 - names of layouts
        return [row[: table.part] for row in self._connection.execute(query)]

    def insert(self, table: Layout, rows: list[StoredRow]) -> None:
        values = [*chain.from_iterable(rows)]
        if values.count(None):  # in few tables
            values = [NULL if value is None else value for value in values]
        insert_values(self._connection, table.name, len(table.columns), [values])

    def delete(self, table: Layout, keys: list[StoredRow]) -> None:
        if keys:
            where = _equals(table.key_names()[: len(keys[0])])
            self._connection.executemany(f'DELETE FROM "{table.name}" WHERE {where}', keys)  # noqa: S608 - names of layouts

    def is_checked(self) -> bool:
        if self._checked == -1 and is_unchanged(self.location):
            self._checked, self._is_unchanged = self._version(), True
        return self._version() == self._checked

    def note_checked(self) -> None:
        self._checked = self._version()

    def _version(self) -> int:
        [(version,)] = self._connection.execute("PRAGMA data_version")
        return int(version)

    def check_file(self) -> None:
        [(result, *_)] = self._connection.execute("PRAGMA integrity_check(1)")
        if result != "ok":
            raise Unavailable(f"{self.location}: the file is damaged: SQLite reports {result}; {self.remedy}")

    def _connect(self, mode: str, beside: str = "", timeout: float | None = None) -> sqlite3.Connection:
        location = f"file:{quote(self._at)}{beside}?mode={mode}"
        wait = _LOCK_TIMEOUT if timeout is None else timeout
        return sqlite3.connect(location, timeout=wait, isolation_level=None, uri=True, check_same_thread=False)


@cache
def _structure(table: Layout) -> dict[str, str]:
    """Return the statements that create a table and its indexes, by name."""
    statement = create_table(table.name, table.columns, table.key_names(), rowid=False)
    return {table.name: statement, **create_indexes(table.name, table.indexed())}


def _query(table: Layout, condition: str) -> str:
    """Return the query for the rows of a table that meet a condition, in order of their keys."""
    columns = ", ".join(f'"{name}"' for name, _ in table.columns)
    order = ", ".join(f'"{name}"' for name in table.key_names())
    return f'SELECT {columns} FROM "{table.name}" WHERE {condition or 1} ORDER BY {order}'  # noqa: S608 - names of layouts


def _equals(names: Iterable[str]) -> str:
    """Return the condition that columns have given values."""
    return " AND ".join(f'"{name}" = ?' for name in names)
