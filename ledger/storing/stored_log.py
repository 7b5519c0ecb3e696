"""The stored log of a ledger, in an SQLite file or a PostgreSQL database, by a location; and the ledgers of a store.

A database is opened with eventsourcing, which is imported late: it takes long, and changes `dataclasses` for the whole
process. So are the modules that read segments: they import NumPy, which takes a fifth of a short command.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from os import PathLike, fspath
from pathlib import Path
from threading import Condition, Lock
from typing import Any, NamedTuple, Protocol, Self
from urllib.parse import unquote

from forecast_ledger.ledger.core.errors import Absent, Corrupt, LedgerError, Unavailable, installing
from forecast_ledger.ledger.core.files import folder_at, is_remote, path_in
from forecast_ledger.ledger.core.integer_digits import allow_digits
from forecast_ledger.ledger.core.redaction import one_line, redacted
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.events import TAGS, Event
from forecast_ledger.ledger.model.log import NewRows
from forecast_ledger.ledger.storing import database, forks
from forecast_ledger.ledger.storing.database import (
    CONNECTIONS,
    MAX_ROW_BYTES,
    MEMORY,
    Fault,
    NewRow,
    Rows,
    StoredRows,
    TakenError,
    TimeLimits,
    Transaction,
    grouped,
)
from forecast_ledger.ledger.storing.instrumentation import Metric, OnMetric, now_ns, seconds_since

__all__ = [
    "MAX_ROW_BYTES",
    "PAGE",
    "StoredLog",
    "TakenError",
    "Turn",
    "has_segments_beside",
    "is_started",
    "redacted",
    "rows_at",
    "segments_beside",
]

LARGEST = 2**63 - 1  # log position
PAGE = 500  # rows; their events still fit into the processor's cache
_POSTGRES_SCHEMES = {"postgresql", "postgres"}
_SHOWN = 10  # names of ledgers in a message, at most
# A path that was meant as an address: without it, a typing error would create a file of that name.
_MISTYPED = re.compile(
    r"\s*(?:host|hostaddr|port|dbname|user|password|passfile|service|sslmode|connect_timeout)\s*=.*"
    r"|(?:postgres(?:ql)?|sqlite3?|mysql|mariadb|file|memory|https?|s3|gs):(?!//).*|[a-z][a-z0-9+.-]+:/(?!/).*"
    r"|[\w.-]+:\d+|[^/]*@[^/]*:\d+",
    re.IGNORECASE | re.DOTALL,
)
_ADDRESS = "postgresql://USER@HOST:PORT/DATABASE"
_COPY = "keep a copy of the file, and import a backup or an export into a new one"


class Turn(Protocol):
    """A writer's turn: until it ends, no other writer that takes turns appends to the ledger."""

    def read(self, after: int, limit: int = PAGE) -> list[bytes]:
        """See `StoredLog.read`; the newest rows are included."""

    def pages(self, after: int = 0, limit: int = PAGE) -> Iterator[list[bytes]]:
        """See `StoredLog.pages`; the newest rows are included."""

    def append(self, rows: Sequence[NewRows]) -> None:
        """Record rows in one transaction, as `StoredLog.append` does; call it at most once."""


class StoredLog:
    """The rows of one ledger in a store, by log position: append and read."""

    def __init__(self, rows: Rows, name: str, on_metric: OnMetric | None = None) -> None:
        allow_digits()  # the program may have set another limit since
        self.name, self.on_metric = name, on_metric
        self._rows = rows
        self.is_closed = False
        self._renew()
        forks.renew(self)

    @classmethod
    def open(
        cls, location: str | PathLike[str], name: str, *, read_only: bool = False, limits: TimeLimits | None = None
    ) -> Self:
        """Open a store; a file is created unless read_only. A folder of segments can only be read.

        An SQLite file must have no other tables than a ledger's; any other file is left unchanged. A PostgreSQL
        database may have other tables. Raises Absent (read_only, and the store has other ledgers, but none of this
        name), Unavailable, Corrupt.
        """
        store = cls(rows_at(fspath(location), name, read_only=read_only, limits=limits), name)
        if read_only:
            store._check_named()
        return store

    def _check_named(self) -> None:
        """Raise Absent if the store has ledgers, but none of this name; an empty store is that of any ledger."""
        try:
            with suppress(Corrupt):  # who reads the log says where it is damaged
                is_empty = not self.newest() and not self.read(0, 1)
                if is_empty and (others := self.names(_SHOWN + 1)) and self.name not in others:
                    names = ", ".join(map(repr, others[:_SHOWN])) + ", …" * (len(others) > _SHOWN)
                    raise Absent(f"{self._rows.location}: there is no ledger named {self.name!r}; there is {names}")
        except BaseException:
            self.close()
            raise

    def names(self, most: int | None = None) -> list[str]:
        """Return the names of the ledgers of the store, or of the first ones. Raises Unavailable, Corrupt."""
        return [name for name, _ in self.heads(database.ALL if most is None else most)]

    def heads(self, most: int = database.ALL) -> Sequence[tuple[str, int]]:
        """Return the names and last log positions of the ledgers of the store, or of the first ones, by one query.

        Raises Unavailable, Corrupt.
        """
        with self._in_use():
            return self._rows.heads(most)

    @property
    def identity(self) -> str:
        """Where the database is, the same for every process of this machine; empty if it is in memory, or only read."""
        return self._rows.identity

    @property
    def limits(self) -> TimeLimits:
        """How long a call may wait."""
        return self._rows.limits

    def named(self, name: str) -> Self:
        """Return another ledger of the store, which uses the connections of this one; closing it leaves them open."""
        return type(self)(self._rows.named(name), name, self.on_metric)

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Wait for the turn to write, for as long as it may take. Raises Unavailable."""
        begun = now_ns()
        with self._in_use(), self._rows.turn() as transaction:
            if self.on_metric is not None:
                self.on_metric(Metric("turn_seconds", seconds_since(begun), self.name))
            yield _Turn(transaction, self._rows.location)

    def append(self, rows: Sequence[NewRow]) -> None:
        """Record (log position, event type, bytes) rows in one transaction, durable on return.

        Raises TakenError (a position is taken), Uncertain (the rows may or may not be recorded), Unavailable.
        """
        if rows:
            with self.turn() as turn:
                turn.append(grouped(rows))

    def read(self, after: int, limit: int = PAGE) -> list[bytes]:
        """Return up to `limit` rows, from position after + 1 on; fewer if a position is missing.

        Raises Corrupt (position after + 1 is missing, or the next row has another position), Unavailable.
        """
        with self._in_use(after):
            return _states(after, self._rows.select(after, limit) or self._missed(after, limit))

    def at(self, positions: Sequence[int]) -> list[bytes]:
        """Return the rows at these positions, in increasing order. Raises Corrupt (a row is missing), Unavailable."""
        rows: list[tuple[int, bytes]] = []
        with self._in_use():
            while len(rows) < len(positions) and (page := self._rows.select_at(positions[len(rows) :])):
                rows += page
        for missing in sorted({*positions} - {position for position, _ in rows}):
            raise Corrupt(missing, "the row is missing", "positions")
        return [_checked(position, state) for position, state in rows]

    def pages_with_types(
        self, limit: int = PAGE, after: int = 0, end: int = LARGEST
    ) -> Iterator[tuple[list[bytes], list[object]]]:
        """Return the rows after a position up to another, page by page, with the event type stored beside each.

        It is bytes, unless it is no text; UNTYPED if the store has no types. Raises Corrupt, Unavailable.
        """
        if end < LARGEST:
            self._rows.bound(end)
        while after < end:
            with self._in_use(after):
                typed = self._rows.select_typed(after, min(limit, end - after))
                rows = _states(after, typed or self._missed(after, limit))
            if not rows:
                return
            yield rows, [row[2] for row in typed[: len(rows)]]
            after += len(rows)

    def events_of(self, kinds: Sequence[type[Event]], end: int) -> list[str] | None:
        """See `Rows.events_of`. Raises Unavailable, Corrupt."""
        with self._in_use():
            return self._rows.events_of([TAGS[kind] for kind in kinds], end)

    def faults(self) -> list[Fault]:
        """Check the database file, and return its faults. Raises Unavailable, Corrupt."""
        with self._in_use():
            return [*self._rows.faults()]

    def _missed(self, after: int, limit: int) -> StoredRows:
        """Return rows that another writer appended after the last query found none.

        Raises Corrupt: the table has rows that its index does not find.
        """
        missing = self._rows.has_unindexed(after)
        rows = self._rows.select(after, limit) if missing else []
        if missing and not rows:
            raise Corrupt(
                after + 1, f"the row is in the database file, but missing from its index; {_COPY}", "positions"
            )
        return rows

    def pages(self, after: int = 0, limit: int = PAGE) -> Iterator[list[bytes]]:
        """Return every row after a position, page by page. Raises Corrupt, Unavailable."""
        return _pages(self.read, after, limit)

    def change_cursor(self, statement: str, values: tuple[object, ...]) -> list[tuple[int, str]]:
        """See `Rows.change_cursor`. Raises Unavailable."""
        with self._in_use():
            return self._rows.change_cursor(statement, values)

    def ping(self, limit: float) -> None:
        """See `Rows.ping`. Raises Unavailable."""
        with self._in_use():
            self._rows.ping(limit)

    def check_there(self) -> None:
        """See `Rows.check_there`. Raises Unavailable."""
        with self._in_use():
            self._rows.check_there()

    def newest(self) -> int:
        """Return the last log position; 0 if there are no rows. Raises Unavailable."""
        with self._in_use():
            return self._rows.newest()

    def close(self) -> None:
        """Close the connections once no thread uses them, and let none begin to meanwhile.

        SQLite crashes if one is closed while it is used.
        """
        with self._lock:
            self._is_closing = True
            self._unused.wait_for(lambda: not self._used, timeout=self.limits.turn)
            self._rows.close()
            self.is_closed = True

    def _renew(self) -> None:
        """In a child, forget the threads of its parent."""
        self._lock, self._used = Lock(), 0  # the number of threads that are reading or appending
        self._unused, self._is_closing = Condition(self._lock), self.is_closed

    def _in_use(self, after: int = 0) -> "_Use":
        """Keep the connections open while one is used, and translate errors. after: a log position that was read."""
        return _Use(self, after)


class _Use:
    """A use of a stored log. It is a class because that takes a third of the time of a generator."""

    def __init__(self, of: StoredLog, after: int) -> None:
        self._of, self._after = of, after

    def __enter__(self) -> None:
        of = self._of
        with of._lock:
            if of._is_closing:
                raise Unavailable(f"{of._rows.location}: the ledger is closed")
            of._used += 1

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        of = self._of
        with of._lock:
            of._used -= 1
            if of._is_closing:
                of._unused.notify_all()
        if error is not None:
            _translate(error, of._rows.location, self._after, of.limits.turn)


class _Turn:
    """A writer's turn, with the errors of the database translated."""

    def __init__(self, transaction: Transaction, location: str) -> None:
        self._transaction, self._location = transaction, location

    def read(self, after: int, limit: int = PAGE) -> list[bytes]:
        try:
            return _states(after, self._transaction.select(after, limit))
        except Exception as error:
            _translate(error, self._location, after)
            raise

    def pages(self, after: int = 0, limit: int = PAGE) -> Iterator[list[bytes]]:
        return _pages(self.read, after, limit)

    def append(self, rows: Sequence[NewRows]) -> None:
        try:
            self._transaction.insert(rows)
        except Exception as error:
            _translate(error, self._location)
            raise


def _pages(read: Callable[[int, int], list[bytes]], after: int, limit: int) -> Iterator[list[bytes]]:
    while rows := read(after, limit):
        yield rows
        after += len(rows)


def _states(after: int, rows: Sequence[tuple[Any, ...]]) -> list[bytes]:
    """Return the bytes of the rows, up to the first gap. Raises Corrupt: position after + 1 is missing.

    rows: the log position of each, its bytes, and perhaps more.
    """
    positions, states, *_ = zip(*rows, strict=True) if rows else ((), ())
    if positions == (*range(after + 1, after + 1 + len(rows)),) and {*map(type, states)} <= {bytes}:
        return [*states]
    for index, (position, *_) in enumerate(rows):
        if position != after + 1 + index:
            if not index:
                raise Corrupt(after + 1, _misplaced(after + 1, position), "positions")
            rows = rows[:index]
            break
    return [_checked(position, state) for position, state, *_ in rows]


def _misplaced(expected: int, actual: object) -> str:
    """Return what is wrong with the position of a row; in a damaged SQLite file it can have any type."""
    if type(actual) is int and actual > expected:
        return f"the row is missing; the next one is {actual}"
    return f"expected log position {expected}; found a row at {repr(actual)[:40]}"


def _checked(position: int, state: object) -> bytes:
    """Return a row. Raises Corrupt: it is not of type bytes."""
    if type(state) is not bytes:
        raise Corrupt(position, f"the row is of type {type(state).__name__}, not bytes", "schemas")
    return state


def rows_at(
    location: str,
    name: str,
    *,
    read_only: bool = False,
    limits: TimeLimits | None = None,
    connections: int = CONNECTIONS,
) -> Rows:
    """Open the rows of a ledger at a location; create a file unless read_only. Raises Unavailable, Corrupt.

    connections: to a file or a server, at most so many.
    """
    try:
        return _rows(location, name, connections, limits, read_only=read_only)
    except Exception as error:
        _translate(error, redacted(location), turn=limits and limits.turn)
        raise


def any_ledger(location: str | PathLike[str]) -> StoredLog:
    """Open a store to read its ledgers, whatever their names. Raises Absent, Unavailable, Corrupt."""
    path = fspath(location)
    name = "main"
    if is_folder(path):
        from forecast_ledger.ledger.segments.segment_manifest import read_manifest  # noqa: PLC0415 - late: see above

        name = read_manifest(folder_at(path)).ledger
    return StoredLog(rows_at(path, name, read_only=True), name)


def _rows(location: str, name: str, connections: int, limits: TimeLimits | None, *, read_only: bool) -> Rows:
    if is_folder(location):
        from forecast_ledger.ledger.storing.segment_rows import READ_ONLY, SegmentRows  # noqa: PLC0415 - late: see above

        folder = folder_at(location)
        if not read_only:
            reason = "a remote folder is only read; copy it to this machine" if is_remote(location) else READ_ONLY
            raise Unavailable(f"{redacted(location)}: {reason}")
        return SegmentRows(folder, name)
    path = _path(location)
    if path is not None:
        if path != MEMORY:
            _check_path(path, read_only=read_only)
        from forecast_ledger.ledger.storing.sqlite import SQLite  # noqa: PLC0415 - late: see above

        return SQLite(path, name, read_only=read_only, limits=limits, connections=connections)
    try:
        from forecast_ledger.ledger.storing.postgres import Postgres  # noqa: PLC0415 - an extra
    except ImportError:
        raise Unavailable(f"{redacted(location)}: psycopg[pool] is not installed; {installing('postgres')}") from None
    return Postgres(location, name, read_only=read_only, limits=limits, connections=connections)


def is_started(location: str) -> bool:
    """Return whether opening the store for writing would create no file.

    True if the file exists, if the location is that of a server, or if no file can be there.
    """
    try:
        path = _path(location)
        if path not in {None, MEMORY}:
            _check_path(str(path), read_only=True)
    except Unavailable as error:
        return not isinstance(error, Absent)
    return True


def is_server(location: str | PathLike[str]) -> bool:
    """Return whether a location is that of a database of a server. Raises Unavailable.

    >>> is_server("postgresql://host/ledgers"), is_server("ledgers.db")
    (True, False)
    """
    return not is_folder(location) and _path(fspath(location)) is None


def segments_beside(location: str | PathLike[str]) -> Path | None:
    """Return where the segments of a store are looked for: in a folder with its name and `.segments`.

    None for a server, a database in memory, or a path that no file can have.

    >>> segments_beside("sqlite:///seasons/spring.db")
    PosixPath('seasons/spring.db.segments')
    """
    try:
        path = _path(fspath(location))
    except Unavailable:
        return None
    return None if path in {None, "", MEMORY} or "\0" in str(path) else Path(f"{path}.segments")


def has_segments_beside(location: str | PathLike[str]) -> bool:
    """Return whether there is a folder of segments beside a store."""
    beside = segments_beside(location)
    try:
        if beside is None or not beside.is_dir():
            return False
        from forecast_ledger.ledger.segments.segment_manifest import MANIFEST  # noqa: PLC0415 - late: see above

        return (beside / MANIFEST).is_file()
    except OSError:
        return False


def _path(location: str) -> str | None:
    """Return the path of an SQLite file; None for a PostgreSQL database. Raises Unavailable."""
    path = path_in(location)
    scheme, separator, address = location.partition("://")
    if not separator or path != location:
        if path == location and _MISTYPED.fullmatch(location):
            remedy = f"write {_ADDRESS}, sqlite:///PATH, or a path; that of a file of this name begins with ./"
            raise Unavailable(f"{redacted(location)}: an address has another form; {remedy}")
        return path
    if scheme == "sqlite":
        return unquote(address.removeprefix("/"))  # sqlite:///relative, sqlite:////absolute
    if scheme not in _POSTGRES_SCHEMES:
        raise Unavailable(
            f"{redacted(location)}: {scheme}:// is not supported; give a file path or a postgresql:// URL"
        )
    return None


def is_folder(location: str | PathLike[str]) -> bool:
    """Return whether a location is that of a folder, on this machine or in an object store, whether it exists or not.

    A path that no file can have is not.

    >>> is_folder("s3://bucket/season-segments"), is_folder("."), is_folder("postgresql://host/ledgers")
    (True, True, False)
    """
    if is_remote(location):
        return True
    try:
        path = _path(fspath(location))
        return bool(path) and path != MEMORY and Path(str(path)).is_dir()
    except (OSError, ValueError, Unavailable):
        return False


def _check_path(path: str, *, read_only: bool) -> None:
    """Raise Unavailable if no ledger can be at a path; Absent if read_only and there is none."""
    try:
        file = Path(path)
        exists, is_file, has_folder = file.exists(), file.is_file(), file.parent.is_dir()  # in this order
    except (OSError, ValueError) as error:
        raise Unavailable(f"{path!r}: no file can have this path: {error}") from None
    if not path or "\0" in path:
        raise Unavailable(f"{path!r}: no file can have this path")
    if path.endswith("/"):
        kind = Absent if read_only and not exists else Unavailable
        raise kind(f"{path}: a ledger is a file, and this is the path of a folder; leave the slash out")
    if not has_folder:
        raise Unavailable(f"{path}: the folder {file.parent} does not exist")
    if exists and not is_file:
        raise Unavailable(f"{path}: not a ledger: it is {'a folder' if file.is_dir() else 'not a regular file'}")
    if read_only and not is_file:
        if has_segments_beside(path):
            beside = f"{path}.segments"
            remedy = f"read {beside}, which has its segments, or make it: `forecast-ledger import {beside} {path}`"
            raise Absent(f"{path}: no such ledger; {remedy}")
        raise Absent(f"{path}: no such ledger; `forecast-ledger append {path} FILE` creates one")


def _translate(error: BaseException, location: str, after: int = 0, turn: float | None = None) -> None:
    """Raise the error of this project for one of the library or the database; do nothing about any other.

    turn: how long it may take.
    """
    if isinstance(error, Exception) and not isinstance(error, LedgerError):
        translated = _translation(error, location, after, turn)
        if translated is not None:
            raise translated from None


def _translation(error: Exception, location: str, after: int, turn: float | None) -> Exception | None:
    """Return the error of this project for one of the library or the database; None for any other."""
    import sqlite3  # noqa: PLC0415 - late: see above

    from eventsourcing import persistence  # noqa: PLC0415

    if isinstance(error, persistence.ConnectionPoolClosedError):
        return Unavailable(f"{location}: the ledger is closed")
    if isinstance(error, persistence.IntegrityError):
        return TakenError(str(error))
    if not isinstance(error, persistence.PersistenceError | sqlite3.Error | UnicodeError):
        return None
    # of a damaged file, SQLite's message may itself not be UTF-8
    text = error.object.decode(errors="replace") if isinstance(error, UnicodeDecodeError) else str(error)
    if "malformed" in text or "too big" in text:
        return Corrupt(
            after + 1, f"the database file is damaged at or after this position: {text}; {_COPY}", "positions"
        )
    return Unavailable(f"{location}: {_reason(text, turn or database.LOCK_TIMEOUT)}")


def _reason(text: str, turn: float) -> str:
    """Return the message of an error on one line, with its cause where it is known."""
    text = one_line(text)
    if "not a database" in text:
        return "not a ledger: the file is not an SQLite database"
    if "locked" in text or "lock timeout" in text:
        return f"{text}: another process has held the lock for {turn:g} s; try again"
    return text


class LedgerSize(NamedTuple):
    """A ledger of a store. recorded_at: of its last row, µs; None if that row cannot be read."""

    name: str
    events: int
    digest: str
    recorded_at: int | None


def ledger_sizes(location: str | PathLike[str]) -> Iterator[LedgerSize]:
    """Yield the ledgers of a store by name; digests are those that the last rows state. Raises Unavailable, Corrupt.

    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import commands, open_ledger
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("north", "south"):
    ...         with open_ledger(f"{folder}/regions.db", name) as ledger:
    ...             receipt = ledger.handle(contest, command_id="open-spring")
    ...     [(each.name, each.events) for each in ledger_sizes(f"{folder}/regions.db")]
    [('north', 1), ('south', 1)]
    """
    with closing(any_ledger(location)) as store:
        for name, events in store.heads():
            [row] = store.named(name).read(events - 1, 1)
            envelope = log.decode_envelope(row)
            recorded_at = None if envelope is None else envelope.recorded_at
            yield LedgerSize(name, events, log.stated_digest(row), recorded_at)
