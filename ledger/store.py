"""Where rows are kept: an SQLite file or a PostgreSQL database, through eventsourcing's recorders.

The only module that knows that library; import it late, for importing it changes `dataclasses` process-wide.
"""

import os
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Condition
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from eventsourcing.persistence import (
    ApplicationRecorder,
    ConnectionPoolClosedError,
    InfrastructureFactory,
    InfrastructureFactoryError,
    IntegrityError,
    PersistenceError,
    StoredEvent,
)
from eventsourcing.sqlite import SQLiteApplicationRecorder
from eventsourcing.utils import Environment

from ledger.errors import Absent, Corrupt, Unavailable

PAGE = 500  # rows: what is made of them still fits in the processor's cache
_LOCK_TIMEOUT = "30"  # s, to wait for another writer of an SQLite file
_CONNECT_TIMEOUT = "10"  # s, to wait for a PostgreSQL server
# What SQLite and PostgreSQL say where two processes create the same tables; neither waits for the other by itself.
_BEING_STARTED = ("locked", "concurrently updated", "already exists", "deadlock")
_NOT_STARTED = ("no such table", '_events" does not exist')  # what they say of a database without the tables
_TABLE = "stored_events"  # the store's, as the library calls it
_AMONG = "originator_version IN (SELECT value FROM json_each(?))"
_POSTGRES_SCHEMES = {"postgresql", "postgres"}


class TakenError(Exception):
    """Another writer has appended at this log position."""


class Store:
    """One ledger's rows, by log position: append and read, nothing else."""

    def __init__(self, location: str, name: str, *, read_only: bool = False) -> None:
        """Open a store; a file is created unless read_only.

        An SQLite file is a ledger's alone: one that has tables, but not the store's, is left as it is. A PostgreSQL
        database may have other tables of its owner beside them. Raises Unavailable.
        """
        self.name = name
        settings = _settings(location, read_only=read_only)
        self._shown = shown(location)
        self._factory, self._recorder = _constructed(settings, self._shown)
        self._using, self._used = Condition(), 0  # how many threads are reading or appending
        if read_only and isinstance(self._recorder, SQLiteApplicationRecorder):
            self._recorder.datastore.pool.is_journal_mode_wal = True  # or it would try to change the file

    def append(self, rows: Sequence[tuple[int, str, bytes]]) -> None:
        """Record (log position, event type, bytes) rows in one transaction, durable on return.

        Raises TakenError if a position is taken, Unavailable if the store cannot write.
        """
        name = self.name
        stored = [StoredEvent(name, position, topic, state) for position, topic, state in rows]
        with self._in_use(), _translated(self._shown):
            self._recorder.insert_events(stored)

    def read(self, after: int, limit: int = PAGE) -> list[bytes]:
        """The rows at after + 1, after + 2, … up to limit. Raises Corrupt at a gap, and at a row with a position below
        the first or between two, Unavailable.
        """
        with self._in_use(), _translated(self._shown, after):
            rows = self._select(after, limit) or self._missed(after, limit)
        if [position for position, _ in rows] != [*range(after + 1, after + 1 + len(rows))]:
            for expected, (position, _) in enumerate(rows, after + 1):
                if position != expected:
                    raise Corrupt(expected, _misplaced(expected, position), "positions")
        return _states(rows)

    def at(self, positions: Sequence[int]) -> list[bytes]:
        """The rows at these log positions, which rise. Raises Corrupt at the first that is missing, Unavailable."""
        if isinstance(self._recorder, SQLiteApplicationRecorder):
            with self._in_use(), _translated(self._shown):
                rows = _selected(self._recorder, self.name, _AMONG, (str([*positions]), len(positions)))
        else:
            rows = [(position, row) for position in positions for row in self.read(position - 1, 1)]
        for missing in sorted({*positions} - {position for position, _ in rows}):
            raise Corrupt(missing, "the row is missing", "positions")
        return _states(rows)

    def _select(self, after: int, limit: int) -> Sequence[tuple[int, bytes]]:
        """Log position and bytes; from the start on also what lies before the first position."""
        if isinstance(self._recorder, SQLiteApplicationRecorder):
            return _selected(self._recorder, self.name, "originator_version>?" if after else "?=0", (after, limit))
        stored = self._recorder.select_events(self.name, gt=after or None, limit=limit)
        return [(event.originator_version, event.state) for event in stored]

    def _missed(self, after: int, limit: int) -> Sequence[tuple[int, bytes]]:
        """What is there beyond the end after all: what others have just appended.

        SQLite finds rows by an index; one whose last entries are damaged would pass for that of a shorter log. So the
        rows last written to the file are looked at, too. Raises Corrupt: the index does not have them.
        """
        if not isinstance(self._recorder, SQLiteApplicationRecorder):
            return []
        latest = f"{self._recorder.events_table_name} NOT INDEXED ORDER BY rowid DESC LIMIT {PAGE}"
        query = f"SELECT count(*) FROM (SELECT * FROM {latest}) WHERE originator_id=? AND originator_version>?"  # noqa: S608 - likewise
        with self._recorder.datastore.transaction(commit=False) as cursor:
            cursor.execute(query, (self.name, after))
            [count] = cursor.fetchone()
        rows = self._select(after, limit) if count else []
        if count and not rows:
            said = "the database file has the row, but not its index; SQLite's REINDEX makes that anew"
            raise Corrupt(after + 1, said, "positions")
        return rows

    def pages(self, after: int = 0, limit: int = PAGE) -> Iterator[list[bytes]]:
        """Every row after a position, page by page. Raises what `read` raises."""
        while rows := self.read(after, limit):
            yield rows
            after += len(rows)

    def newest(self) -> int:
        """The last log position; 0 if there is none. Raises Unavailable."""
        with self._in_use(), _translated(self._shown):
            last = self._recorder.select_events(self.name, desc=True, limit=1)
        return last[0].originator_version if last else 0

    def close(self) -> None:
        """Give the connections back, once no other thread uses one: SQLite does not survive it while one does."""
        with self._using:
            self._using.wait_for(lambda: not self._used, timeout=int(_LOCK_TIMEOUT))
            self._factory.close()

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


def _selected(
    recorder: SQLiteApplicationRecorder, name: str, which: str, values: tuple[int | str, int]
) -> list[tuple[int, bytes]]:
    """Log position and bytes from SQLite, without an object a row, which costs four times what SQLite does."""
    query = f"SELECT originator_version, state FROM {recorder.events_table_name} "  # noqa: S608 - the library's own name
    with recorder.datastore.transaction(commit=False) as cursor:
        cursor.sqlite_cursor.row_factory = None  # plain tuples are faster to take apart
        cursor.execute(f"{query}WHERE originator_id=? AND {which} ORDER BY originator_version LIMIT ?", (name, *values))
        rows: list[tuple[int, bytes]] = cursor.fetchall()
    return rows


def _misplaced(expected: int, found: object) -> str:
    """What is wrong about the next row; SQLite keeps a position of any type, where no other writer would put one."""
    if type(found) is int and found > expected:
        return f"the row is missing; the next one is {found}"
    return f"expected log position {expected}; found a row at {repr(found)[:40]}"


def _states(rows: Sequence[tuple[int, bytes]]) -> list[bytes]:
    """The bytes of rows. Raises Corrupt at a row of another type."""
    for position, state in rows:
        if type(state) is not bytes:
            raise Corrupt(position, f"the row is of type {type(state).__name__}, not bytes", "schemas")
    return [state for _, state in rows]


def _constructed(settings: dict[str, str], shown: str) -> tuple[InfrastructureFactory[Any], ApplicationRecorder]:
    """The library's factory and recorder; while another process is starting the same store, wait for it."""
    deadline = time.monotonic() + int(_LOCK_TIMEOUT)
    while True:
        with _translated(shown):
            factory = InfrastructureFactory.construct(Environment("LEDGER", settings))
        try:
            with _translated(shown):
                foreign = _others(settings.get("SQLITE_DBNAME", ""))
                if not foreign:
                    return factory, factory.application_recorder()
        except (Corrupt, TakenError, Unavailable) as error:
            factory.close()
            others = isinstance(error, TakenError) or any(sign in str(error) for sign in _BEING_STARTED)
            if not others or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            factory.close()
            said = f"not a ledger: the database has no table of stored events, but others: {foreign}"
            raise Unavailable(f"{shown}: {said}")


def _others(uri: str) -> str:
    """Some tables of an SQLite file that has not the store's, none if there is no file.

    Nothing is written, but where a crash has left half a transaction, which SQLite takes back.
    """
    if not uri.startswith("file:") or not Path(unquote(urlsplit(uri).path)).exists():
        return ""
    try:
        tables = _tables(uri.replace("?mode=rwc", "?mode=ro"))
    except sqlite3.OperationalError as error:
        if "readonly" not in str(error) or "?mode=rwc" not in uri:
            raise
        tables = _tables(uri)
    return "" if _TABLE in tables else ", ".join(tables[:3]) + ", …" * (len(tables) > 3)


def _tables(uri: str) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    with closing(sqlite3.connect(uri, int(_LOCK_TIMEOUT), uri=True)) as found:
        return [name for (name,) in found.execute(query)]


def is_there(location: str) -> bool:
    """Whether opening a store would make no file: one is there, or a server is asked, or nothing can be opened."""
    try:
        _settings(location, read_only=True)
    except Unavailable as error:
        return not isinstance(error, Absent)
    return True


def shown(location: str) -> str:
    """A location as it may be printed: without a password, whatever characters it has.

    >>> shown("postgresql://ada:s@c/ret@db.example/forecasts")
    'postgresql://ada:…@db.example/forecasts'
    """
    return re.sub(r"^(\w+://[^/@:]*):.*@", r"\1:…@", location, flags=re.DOTALL)


def _settings(location: str, *, read_only: bool) -> dict[str, str]:
    """What eventsourcing wants to know about a file path, or a URL with scheme postgresql or sqlite."""
    scheme, separator, rest = location.partition("://")
    if not separator:
        return _sqlite(location, read_only=read_only)
    if scheme == "sqlite":
        return _sqlite(unquote(rest.removeprefix("/")), read_only=read_only)  # sqlite:///relative, sqlite:////absolute
    if scheme not in _POSTGRES_SCHEMES:
        raise Unavailable(f"{shown(location)}: a log is a file path or a postgresql:// URL, not {scheme}://")
    try:
        url = urlsplit(location)
        port = url.port or 5432
    except ValueError:  # its text may have a part of the password
        said = "no such URL; in a user or password, write %40 for @, %2F for /, %3A for :"
        raise Unavailable(f"{shown(location)}: {said}") from None
    if url.query or url.fragment or url.path.count("/") != 1:
        raise Unavailable(f"{shown(location)}: write postgresql://USER:PASSWORD@HOST:PORT/DATABASE and no more")
    return {
        "PERSISTENCE_MODULE": "eventsourcing.postgres",
        "POSTGRES_DBNAME": unquote(url.path.lstrip("/")),
        "POSTGRES_HOST": url.hostname or "localhost",
        "POSTGRES_PORT": str(port),
        "POSTGRES_USER": unquote(url.username or ""),
        "POSTGRES_PASSWORD": unquote(url.password or ""),
        "POSTGRES_CONNECT_TIMEOUT": _CONNECT_TIMEOUT,
        "CREATE_TABLE": "no" if read_only else "yes",
        "ORIGINATOR_ID_TYPE": "text",
    }


def _sqlite(path: str, *, read_only: bool) -> dict[str, str]:
    settings = {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "ORIGINATOR_ID_TYPE": "text"}
    settings["SQLITE_LOCK_TIMEOUT"] = _LOCK_TIMEOUT
    if path == ":memory:":
        return settings | {"SQLITE_DBNAME": path}
    try:
        file, name = Path(path), quote(os.path.abspath(path))  # noqa: PTH100 - no link is followed, no file looked at
        is_file, has_folder = file.is_file(), file.parent.is_dir()
    except (OSError, ValueError) as error:
        raise Unavailable(f"{path!r}: no file can have this path: {error}") from None
    if not path or "\0" in path:
        raise Unavailable(f"{path!r}: no file can have this path")
    if not has_folder:
        raise Unavailable(f"{path}: the folder {file.parent} does not exist")
    if read_only and not is_file:
        if file.exists():
            raise Unavailable(f"{path}: not a ledger: it is {'a folder' if file.is_dir() else 'no file'}")
        raise Absent(f"{path}: no such ledger; `forecast-ledger append {path} FILE` starts one")
    mode = "ro" if read_only else "rwc"
    if read_only and not os.access(file.parent, os.W_OK) and not Path(f"{path}-wal").exists():
        mode = "ro&immutable=1"  # nobody is writing, and SQLite cannot make its lock files here
    create = "no" if read_only else "yes"
    return settings | {"SQLITE_DBNAME": f"file:{name}?mode={mode}", "CREATE_TABLE": create}


@contextmanager
def _translated(location: str, after: int = 0) -> Iterator[None]:
    """Name what the library and the database raise in this project's terms."""
    try:
        yield
    except ConnectionPoolClosedError:
        raise Unavailable(f"{location}: the ledger is closed") from None
    except IntegrityError as error:
        raise TakenError(str(error)) from None
    except InfrastructureFactoryError:  # its module cannot be imported
        raise Unavailable(f"{location}: needs psycopg; pip install 'forecast-ledger[postgres]'") from None
    except (PersistenceError, sqlite3.Error, UnicodeDecodeError) as error:
        said = error.object.decode(errors="replace") if isinstance(error, UnicodeDecodeError) else str(error)
        if "malformed" in said:  # what SQLite says of it may itself be malformed
            said = f"the database file is damaged at or after this position: {said}"
            raise Corrupt(after + 1, said, "positions") from None
        kind = Absent if any(sign in said for sign in _NOT_STARTED) else Unavailable
        raise kind(f"{location}: {_reason(said)}") from None


def _reason(said: str) -> str:
    if "not a database" in said:
        return "not a ledger: the file is not an SQLite database"
    if "no such table" in said:
        return "not a ledger: the database has no table of stored events"
    if "locked" in said:
        return f"{said}: another process keeps it, and at most {_LOCK_TIMEOUT} s are waited"
    if "get a connection" in said:
        return f"{said}: no answer, or no such user or database there"
    return said
