"""Where rows are kept: an SQLite file or a PostgreSQL database, chosen by a location.

Import it late: what it imports of eventsourcing changes `dataclasses` process-wide.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from threading import Condition
from typing import Protocol, Self
from urllib.parse import unquote, urlsplit

from eventsourcing.persistence import ConnectionPoolClosedError, IntegrityError, PersistenceError

from forecast_ledger.ledger.core.errors import Absent, Corrupt, Unavailable
from forecast_ledger.ledger.storing import database
from forecast_ledger.ledger.storing.database import (
    MAX_ROW_BYTES,
    Fault,
    NewRow,
    Rows,
    StoredRows,
    TakenError,
    Transaction,
)
from forecast_ledger.ledger.storing.sqlite import MEMORY, SQLite

__all__ = ["MAX_ROW_BYTES", "PAGE", "Store", "TakenError", "Turn", "is_started", "redacted", "rows_at"]

PAGE = 500  # rows: what is made of them still fits in the processor's cache
_POSTGRES_SCHEMES = {"postgresql", "postgres"}
_COPY = "keep a copy of the file; what a backup or an export still has can be imported into a new one"


class Turn(Protocol):
    """A writer's turn: until it ends, nobody else who takes turns appends to the ledger."""

    def read(self, after: int, limit: int = PAGE) -> list[bytes]:
        """As `Store.read`, of what there is now."""

    def pages(self, after: int = 0, limit: int = PAGE) -> Iterator[list[bytes]]:
        """As `Store.pages`, of what there is now."""

    def append(self, rows: Sequence[NewRow]) -> None:
        """As `Store.append`; once a turn."""


class Store:
    """One ledger's rows, by log position: append and read, nothing else."""

    def __init__(self, rows: Rows, name: str) -> None:
        self.name = name
        self._rows = rows
        self._using, self._used = Condition(), 0  # how many threads are reading or appending

    @classmethod
    def open(cls, location: str | PathLike[str], name: str, *, read_only: bool = False) -> Self:
        """Open a store; a file is created unless read_only.

        An SQLite file is a ledger's alone: one that has anything but a ledger's table is left as it is. A PostgreSQL
        database may have other tables of its owner beside it. Raises Unavailable, Corrupt.
        """
        return cls(rows_at(fspath(location), name, read_only=read_only), name)

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Wait for one's turn to write, for as long as others may keep it. Raises Unavailable."""
        with self._in_use(), _translated(self._rows.location), self._rows.turn() as transaction:
            yield _Turn(transaction, self._rows.location)

    def append(self, rows: Sequence[NewRow]) -> None:
        """Record (log position, event type, bytes) rows in one transaction, durable on return.

        Raises TakenError if a position is taken, Uncertain if it is not known whether the rows are recorded,
        Unavailable if the store cannot write.
        """
        if rows:
            with self.turn() as turn:
                turn.append(rows)

    def read(self, after: int, limit: int = PAGE) -> list[bytes]:
        """The rows at after + 1, after + 2, … up to limit, or to the last before a gap. Raises Corrupt at a gap, and at
        a row with a position below the first or between two, Unavailable.
        """
        with self._in_use(), _translated(self._rows.location, after):
            return _states(after, self._rows.select(after, limit) or self._missed(after, limit))

    def at(self, positions: Sequence[int]) -> list[bytes]:
        """The rows at these log positions, which rise. Raises Corrupt at the first that is missing, Unavailable."""
        rows: list[tuple[int, bytes]] = []
        with self._in_use(), _translated(self._rows.location):
            while len(rows) < len(positions) and (found := self._rows.select_at(positions[len(rows) :])):
                rows += found
        for missing in sorted({*positions} - {position for position, _ in rows}):
            raise Corrupt(missing, "the row is missing", "positions")
        return [_checked(position, state) for position, state in rows]

    def pages_with_types(self, limit: int = PAGE) -> Iterator[tuple[list[bytes], list[object]]]:
        """Every row, page by page, and the event's type that is written beside each: bytes, if it is a text.

        Raises what `read` raises.
        """
        after = 0
        while True:
            with self._in_use(), _translated(self._rows.location, after):
                found = self._rows.select_typed(after, limit)
                rows = _states(after, [row[:2] for row in found] or self._missed(after, limit))
            if not rows:
                return
            yield rows, [row[2] for row in found[: len(rows)]]
            after += len(rows)

    def faults(self) -> list[Fault]:
        """What the database finds wrong with its own file. Raises Unavailable, Corrupt."""
        with self._in_use(), _translated(self._rows.location):
            return [*self._rows.faults()]

    def _missed(self, after: int, limit: int) -> StoredRows:
        """What is there beyond the end after all: what others have just appended.

        Raises Corrupt: the database has rows there that it does not find.
        """
        missing = self._rows.has_unindexed(after)
        rows = self._rows.select(after, limit) if missing else []
        if missing and not rows:
            raise Corrupt(after + 1, f"the database file has the row, but not its index; {_COPY}", "positions")
        return rows

    def pages(self, after: int = 0, limit: int = PAGE) -> Iterator[list[bytes]]:
        """Every row after a position, page by page. Raises what `read` raises."""
        return _pages(self.read, after, limit)

    def newest(self) -> int:
        """The last log position; 0 if there is none. Raises Unavailable."""
        with self._in_use(), _translated(self._rows.location):
            return self._rows.newest()

    def close(self) -> None:
        """Give the connections back, once no other thread uses one: SQLite does not survive it while one does."""
        with self._using:
            self._using.wait_for(lambda: not self._used, timeout=database.LOCK_TIMEOUT)
            self._rows.close()

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        """While a connection is used it is not closed."""
        with self._using:
            self._used += 1
        try:
            yield
        finally:
            with self._using:
                self._used -= 1
                self._using.notify_all()


class _Turn:
    """What a database lets its writer do, in this project's terms."""

    def __init__(self, transaction: Transaction, location: str) -> None:
        self._transaction, self._location = transaction, location

    def read(self, after: int, limit: int = PAGE) -> list[bytes]:
        with _translated(self._location, after):
            return _states(after, self._transaction.select(after, limit))

    def pages(self, after: int = 0, limit: int = PAGE) -> Iterator[list[bytes]]:
        return _pages(self.read, after, limit)

    def append(self, rows: Sequence[NewRow]) -> None:
        with _translated(self._location):
            self._transaction.insert(rows)


def _pages(read: Callable[[int, int], list[bytes]], after: int, limit: int) -> Iterator[list[bytes]]:
    while rows := read(after, limit):
        yield rows
        after += len(rows)


def _states(after: int, rows: StoredRows) -> list[bytes]:
    """The bytes of the rows at after + 1, after + 2, … as far as they go. Raises Corrupt: the first is not there."""
    if [position for position, _ in rows] != [*range(after + 1, after + 1 + len(rows))]:
        for place, (position, _) in enumerate(rows):
            if position != after + 1 + place:
                if not place:
                    raise Corrupt(after + 1, _misplaced(after + 1, position), "positions")
                rows = rows[:place]
                break
    return [_checked(position, state) for position, state in rows]


def _misplaced(expected: int, found: object) -> str:
    """What is wrong about the next row; SQLite keeps a position of any type, where no other writer would put one."""
    if type(found) is int and found > expected:
        return f"the row is missing; the next one is {found}"
    return f"expected log position {expected}; found a row at {repr(found)[:40]}"


def _checked(position: int, state: object) -> bytes:
    """The bytes of a row. Raises Corrupt: it is of another type."""
    if type(state) is not bytes:
        raise Corrupt(position, f"the row is of type {type(state).__name__}, not bytes", "schemas")
    return state


def rows_at(location: str, name: str, *, read_only: bool = False) -> Rows:
    """The rows of a ledger at a location; a file is created unless read_only. Raises Unavailable, Corrupt."""
    with _translated(redacted(location)):
        return _rows(location, name, read_only=read_only)


def _rows(location: str, name: str, *, read_only: bool) -> Rows:
    path = _path(location)
    if path is not None:
        if path != MEMORY:
            _check_path(path, read_only=read_only)
        return SQLite(path, name, read_only=read_only)
    try:
        from forecast_ledger.ledger.storing.postgres import Address, Postgres  # noqa: PLC0415 - an extra
    except ImportError:
        raise Unavailable(f"{redacted(location)}: needs psycopg; pip install 'forecast-ledger[postgres]'") from None
    return Postgres(Address(*_address(location)), redacted(location), name, read_only=read_only)


def is_started(location: str) -> bool:
    """Whether opening a store would make no file: one is there, or a server is asked, or nothing can be opened."""
    try:
        path = _path(location)
        if path not in {None, MEMORY}:
            _check_path(str(path), read_only=True)
    except Unavailable as error:
        return not isinstance(error, Absent)
    return True


def redacted(location: str) -> str:
    """A location as it may be printed: without a password, whatever characters it has.

    >>> redacted("postgresql://ada:s@c/ret@db.example/forecasts")
    'postgresql://ada:…@db.example/forecasts'
    """
    return re.sub(r"^(\w+://[^/@:]*):.*@", r"\1:…@", location, flags=re.DOTALL)


def _path(location: str) -> str | None:
    """The path of an SQLite file; None if the location is that of a PostgreSQL database. Raises Unavailable."""
    scheme, separator, rest = location.partition("://")
    if not separator:
        return location
    if scheme == "sqlite":
        return unquote(rest.removeprefix("/"))  # sqlite:///relative, sqlite:////absolute
    if scheme not in _POSTGRES_SCHEMES:
        raise Unavailable(f"{redacted(location)}: a log is a file path or a postgresql:// URL, not {scheme}://")
    return None


def _address(location: str) -> tuple[str, str, int, str, str]:
    """Database, host, port, user and password of a URL. Raises Unavailable: it makes no sense."""
    try:
        url = urlsplit(location)
        port = url.port or 5432
    except ValueError:  # its text may have a part of the password
        said = "no such URL; in a user or password, write %40 for @, %2F for /, %3A for :"
        raise Unavailable(f"{redacted(location)}: {said}") from None
    if url.query or url.fragment or url.path.count("/") != 1:
        raise Unavailable(f"{redacted(location)}: write postgresql://USER:PASSWORD@HOST:PORT/DATABASE and no more")
    user, password = unquote(url.username or ""), unquote(url.password or "")
    return unquote(url.path.lstrip("/")), url.hostname or "localhost", port, user, password


def _check_path(path: str, *, read_only: bool) -> None:
    """Raise Unavailable if no ledger can be there, Absent if none is there that could be read."""
    try:
        file = Path(path)
        exists, is_file, has_folder = file.exists(), file.is_file(), file.parent.is_dir()  # in this order
    except (OSError, ValueError) as error:
        raise Unavailable(f"{path!r}: no file can have this path: {error}") from None
    if not path or "\0" in path:
        raise Unavailable(f"{path!r}: no file can have this path")
    if not has_folder:
        raise Unavailable(f"{path}: the folder {file.parent} does not exist")
    if exists and not is_file:
        raise Unavailable(f"{path}: not a ledger: it is {'a folder' if file.is_dir() else 'no file'}")
    if read_only and not is_file:
        raise Absent(f"{path}: no such ledger; `forecast-ledger append {path} FILE` starts one")


@contextmanager
def _translated(location: str, after: int = 0) -> Iterator[None]:
    """Name what the library and the database raise in this project's terms."""
    try:
        yield
    except ConnectionPoolClosedError:
        raise Unavailable(f"{location}: the ledger is closed") from None
    except IntegrityError as error:
        raise TakenError(str(error)) from None
    except (PersistenceError, sqlite3.Error, UnicodeError) as error:
        said = error.object.decode(errors="replace") if isinstance(error, UnicodeDecodeError) else str(error)
        if "malformed" in said or "too big" in said:  # what SQLite says of it may itself be malformed
            said = f"the database file is damaged at or after this position: {said}; {_COPY}"
            raise Corrupt(after + 1, said, "positions") from None
        raise Unavailable(f"{location}: {_reason(said)}") from None


def _reason(said: str) -> str:
    said = " ".join(said.partition("\nLINE ")[0].split())  # PostgreSQL goes on with a part of the statement
    if "not a database" in said:
        return "not a ledger: the file is not an SQLite database"
    if "locked" in said or "lock timeout" in said:
        return f"{said}: somebody else keeps it, and at most {database.LOCK_TIMEOUT} s are waited"
    if "get a connection" in said:
        return f"{said}: no answer, or no such user or database there"
    return said
