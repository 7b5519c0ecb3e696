"""A read model: the tables of the catalogue in an SQLite file, as published, and the checkpoint that they are as of.

When its runner ends, the digest of the file is kept beside it, as `sha256sum` writes it, so that the next runner need
not compare every row. A file with another digest is not wrong: its rows are then compared with the digests of their
parts.
"""

import os
import sqlite3
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import file_digest
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import numpy as np

from forecast_ledger.ledger.core.errors import Conflict, Corrupt, Unavailable
from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.storing.stored_log import PAGE, StoredLog
from forecast_ledger.projections.core.arrays import run_starts
from forecast_ledger.projections.facts.columns import ForecastPage
from forecast_ledger.projections.tables.catalogue import TableUpdate
from forecast_ledger.replay.reading.log import Cut
from forecast_ledger.replay.readmodel.part_store import (
    OPTIONAL,
    PARTS,
    PLACES,
    REMEDY,
    SYSTEM,
    TRACKING,
    VERSIONS,
    StoredRow,
    StoredTables,
    kept_tables,
    place_rows,
    places_of,
    table_versions,
)

BESIDE = "-sha256"
_LARGEST = 4_096  # bytes that are read of the file beside


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


_LOCK_TIMEOUT = 30  # s to wait for another connection that writes to the file
Places = dict[tuple[str, str], list[int]]  # question and contest, "" for none -> log positions, rising


class Tracking(NamedTuple):
    """What a read model is made from: the ledger, the digest of its first row, and the checkpoint reached."""

    ledger: str
    first: str
    reached: Checkpoint
    recorded_at: int  # µs; when the last event was recorded

    def row(self) -> StoredRow:
        """Return the row that is stored."""
        return self.ledger, self.first, *self.reached, format_instant(self.recorded_at), self.recorded_at


class Update(NamedTuple):
    """An update of a read model.

    tables: the parts of tables to replace. places: the new entries of the log index. rebuilt: the tables to make again,
    all of whose parts are in `tables`.
    """

    tables: Iterable[TableUpdate]
    places: Places
    rebuilt: Sequence[str] = ()


class ReadModel:
    """The tables and their checkpoint, which change in one transaction.

    The file has a digest of each part of a table, which is compared when the part is replaced.
    """

    def __init__(self, path: str, *, read_only: bool = False, optional: Sequence[str] = ()) -> None:
        """Open or create a file, and lock it against other runners; read_only: neither create, lock nor check it.

        optional: tables to keep beside those that every read model has, and beside those that the file has already.
        Raises, first that applies: ValueError (no such table is optional), Unavailable (the file cannot be opened, is
        not a read model, is locked by another runner, is damaged, or was changed by another program).
        """
        if wrong := [optional] if isinstance(optional, str) else [name for name in optional if name not in OPTIONAL]:
            raise ValueError(f"not a list of optional tables: {wrong[0]!r}; they are {', '.join(OPTIONAL)}")
        self.path = path
        self._optional = {*optional}
        self._lock: sqlite3.Connection | None = None
        self._checked = -1  # SQLite's data_version at the last check of all parts
        self._is_unchanged = False  # whether the file has the digest that is written beside it
        with self._translated_errors():
            self._connection = self._connect("ro" if read_only else "rwc")
            self._stored = StoredTables(self._connection, path)
            try:
                statements = self._stored.statements().items()
                tables = {name for name, statement in statements if statement.startswith("CREATE TABLE")}
                if tables and not {TRACKING, VERSIONS} <= tables:
                    raise Unavailable(f"{path}: not a read model: the file has other tables")
                if not read_only:
                    self._lock_file()
                    self._connection.execute("PRAGMA journal_mode=WAL")  # readers never wait
                    self._connection.execute("PRAGMA synchronous=NORMAL")  # a power failure undoes whole refreshes only
                    self.check()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Close the file, and release its lock."""
        is_own = self._lock is not None and not self._is_unchanged and self._is_in_one_file()
        self._connection.close()
        if is_own:
            write(self.path)
        if self._lock is not None:
            self._lock.close()

    @contextmanager
    def reading(self) -> Iterator[StoredTables]:
        """Read the tables in one transaction."""
        with self._translated_errors(), self._transaction("DEFERRED"):
            yield self._stored

    def tracking(self) -> Tracking | None:
        """Return what the tables are made from; None if there are no tables yet. Raises Unavailable."""
        with self._translated_errors():
            if TRACKING not in self._stored.statements():
                return None
            if self._stored.has(PARTS, TRACKING):
                deque(self._stored.parts(TRACKING), maxlen=0)
            rows = self._stored.rows(TRACKING)
        if [[*map(type, row)] for row in rows] != [[str, str, int, str, str, int]]:
            raise Unavailable(f"{self.path}: the table {TRACKING} is damaged; {REMEDY}")
        [(ledger, first, position, digest, _, recorded_at)] = rows
        return Tracking(ledger, first, Checkpoint(position, digest), recorded_at)

    def names(self) -> list[str]:
        """Return the projections that the file has or gets, in the catalogue's order. Raises Unavailable."""
        with self._translated_errors():
            stored = self._stored.rows(VERSIONS) if VERSIONS in self._stored.statements() else []
        return kept_tables([*self._optional, *(row[0] for row in stored)])

    def outdated(self) -> list[str]:
        """Return the projections without a table, or with one of another version or shape. Raises Unavailable."""
        names = self.names()
        with self._translated_errors():
            if not self.is_indexed():
                return names
            stored = self._stored.rows(VERSIONS)
            changed = {row[0] for row in table_versions(names) if row not in stored}
            missing = self._stored.missing(names)
        return [name for name in names if name in changed or name in missing]

    def places(self, ledger: str, question: str, contest: str) -> tuple[Checkpoint, list[int]]:
        """Return the checkpoint reached, and the positions up to it of the rows about a question or a contest.

        Raises Unavailable: the file cannot be read, or follows another ledger, or none yet.
        """
        with self.reading() as stored:
            tracking = self.tracking()
            if tracking is None or tracking.ledger != ledger or not self.is_indexed():
                raise Unavailable(f"{self.path}: no read model of {ledger!r}; `forecast-ledger follow` makes one")
            keys = {("", ""), (question, ""), (question, contest), ("", contest)}
            rows = [row for key in keys for _, part in stored.parts(PLACES, key) for row in part]
            positions = [position for row in rows for position in places_of(row)]
        return tracking.reached, sorted(positions)

    def is_indexed(self) -> bool:
        """Return whether the file has a log index, and digests of its parts. Raises Unavailable."""
        with self._translated_errors():
            return self._stored.has(PARTS, *SYSTEM)

    def write(self, before: Tracking | None, now: Tracking, update: Update) -> int:
        """Replace parts of tables and the tracking in one transaction; returns how many rows changed.

        Raises, first that applies: Unavailable (also if a part differs from what was written), Conflict (another
        process has changed the tracking since `before`). If it raises, nothing has changed.
        """
        with self._translated_errors(), self._transaction("IMMEDIATE"):
            self._check()
            self._is_unchanged = False
            if self.tracking() != before:
                raise Conflict(f"{self.path}: another process has updated this read model; nothing was changed")
            self._make(update.rebuilt)
            changed = sum(self._stored.replace(table) for table in update.tables)
            for name in update.rebuilt:
                self._stored.index(name)
            for key in sorted(update.places):
                rows = [row for _, part in self._stored.parts(PLACES, key) for row in part]
                last = places_of(rows[-1]) if rows else []
                self._stored.put(PLACES, key, [*rows[:-1], *place_rows(key, [*last, *update.places[key]])])
            self._stored.put(TRACKING, (), [now.row()])
        return changed

    def check(self) -> None:
        """Compare every part with its digest, unless no other connection has written to the file since the last check.

        Raises Unavailable: the file is damaged, or a part does not match its digest.
        """
        with self.reading():
            self._check()

    def _check(self) -> None:
        [(now,)] = self._connection.execute("PRAGMA data_version")
        if self._checked == -1 and is_unchanged(self.path):
            self._checked, self._is_unchanged = now, True
        if now != self._checked:
            self._stored.check_file()
            if self.is_indexed():
                outdated = self.outdated()
                for name in (*SYSTEM, *(name for name in self.names() if name not in outdated)):
                    deque(self._stored.parts(name), maxlen=0)
            self._checked = now

    def _is_in_one_file(self) -> bool:
        """Return whether all that was written is in the file itself, and nobody else wrote since the last check."""
        try:
            [(now,)] = self._connection.execute("PRAGMA data_version")
            if now != self._checked:
                return False
            [(busy, *_)] = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error:
            return False
        return not busy

    def _make(self, rebuilt: Sequence[str]) -> None:
        """Create empty tables for these projections, and drop the tables of projections that no longer exist."""
        stored = self._stored
        names = [name for name, *_ in stored.rows(VERSIONS)] if VERSIONS in stored.statements() else []
        kept = self.names()
        if not self.is_indexed():
            for name in (PARTS, *SYSTEM):
                stored.make(name)
        for name in {*names} - {*kept}:
            stored.drop(name)
        for name in rebuilt:
            stored.make(name)
        stored.put(VERSIONS, (), table_versions(kept))

    # --- the file

    def _connect(self, mode: str, beside: str = "", timeout: float | None = None) -> sqlite3.Connection:
        location = f"file:{quote(os.path.abspath(self.path))}{beside}?mode={mode}"  # noqa: PTH100 - as the store's
        wait = _LOCK_TIMEOUT if timeout is None else timeout
        return sqlite3.connect(location, timeout=wait, isolation_level=None, uri=True)

    def _lock_file(self) -> None:
        """Lock a file beside this one until `close`; if the process is killed, the system releases the lock.

        Readers of the tables do not wait for the lock. Raises Unavailable: another runner has it.
        """
        self._lock = self._connect("rwc", "-lock", timeout=0)
        try:
            self._lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            wrong = "another runner keeps this read model up to date; end that runner, or follow into another file"
            raise Unavailable(f"{self.path}: {wrong}") from None

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[None]:
        self._connection.execute(f"BEGIN {kind}")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError:  # SQLite's message about a damaged schema quotes its bytes
            raise Unavailable(f"{self.path}: the file is damaged: its schema is not text; {REMEDY}") from None
        except sqlite3.Error as error:
            damaged = any(sign in str(error) for sign in ("malformed", "decode"))
            raise Unavailable(f"{self.path}: {error}{f'; {REMEDY}' if damaged else ''}") from None


# --- The log index: the positions of the rows about a question or a contest, so that only those rows are read.


_LEFT_OUT = (events.AccountEvent, events.ForecastMade, events.ForecastWithdrawn)


class IndexQuery(NamedTuple):
    """The path of a read model, and the question and the contest whose rows to read."""

    model: str
    question: str
    contest: str


class NewPlaces:
    """The log positions of rows that are not in the index yet, by question and contest.

    Rows about an account only are left out; those of other ids of participants have neither a question nor a contest.
    Those of forecasts are kept as columns until they are asked for.
    """

    def __init__(self) -> None:
        self._others: Places = {}
        self._forecasts: list[ForecastPage] = []

    def add(self, rows: Iterable[Recorded], forecasts: Iterable[ForecastPage]) -> None:
        """Add rows in log order; forecasts among them are taken from the columns. forecasts: the columns of all."""
        self._forecasts += forecasts
        for recorded in rows:
            event = recorded.event
            if not isinstance(event, _LEFT_OUT):
                key = getattr(event, "question", ""), getattr(event, "contest", "")
                if any(key) or isinstance(event, events.ParticipantRenamed):
                    self._others.setdefault(key, []).append(recorded.position)

    def by_key(self, questions: Sequence[str]) -> Places:
        """Return the log positions, rising. questions: ids by code, as in the columns."""
        places, columns = dict(self._others), [(each.question, each.position) for each in self._forecasts]
        if columns:
            codes, positions = map(np.concatenate, zip(*columns, strict=True))
            order = np.lexsort((positions, codes))
            starts = run_starts(codes[order])
            for code, own in zip(codes[order][starts], np.split(positions[order], starts[1:]), strict=True):
                key = questions[code], ""
                places[key] = sorted([*places.get(key, ()), *own.tolist()])
        return places


def indexed_pages(store: StoredLog, query: IndexQuery, cut: Cut) -> Iterator[Sequence[Recorded]]:
    """Yield the rows about a question or a contest up to a cut, as the index lists them, then the rows after the index.

    The digest of the last row that the read model has followed is compared, and that of each row that is read. The
    chain of the rows between them is not checked: the runner and `verify` do that. Raises, first that applies:
    Unavailable (no read model, or of another ledger), Corrupt.
    """
    with closing(ReadModel(query.model, read_only=True)) as model:
        reached, positions = model.places(store.name, query.question, query.contest)
    last = 0
    if reached.position:
        [newest] = _rows(store, [reached.position])
        if newest.digest != reached.digest:
            wrong = f"the read model has digest {reached.digest} for this row, but the log has another"
            raise Corrupt(reached.position, wrong)
        last = bisect_left(range(1, newest.position + 1), True, key=lambda position: _after(store, cut, position))
    if last:
        cut.last = Checkpoint(last, _rows(store, [last])[0].digest)
    selected = [position for position in positions if position <= last]
    for first in range(0, len(selected), PAGE):
        page = _rows(store, selected[first : first + PAGE])
        yield page
        cut.on_progress(page[-1].position)
    if last == reached.position:
        yield from cut.pages(log.unseal_pages(store.pages(last), reached))


def _after(store: StoredLog, cut: Cut, position: int) -> bool:
    """Return whether a row lies after a cut."""
    [row] = _rows(store, [position])
    return not cut.includes(position, row.recorded_at)


def _rows(store: StoredLog, positions: Sequence[int]) -> list[Recorded]:
    return [log.unseal_row(row, position) for row, position in zip(store.at(positions), positions, strict=True)]
