"""A read model: the tables of the catalogue in an SQLite file, as published, with the checkpoint that they speak of."""

import os
import sqlite3
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import quote

from forecast_ledger.ledger.core.errors import Conflict, Unavailable
from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.log import Checkpoint
from forecast_ledger.projections.catalogue.catalogue import BUILT
from forecast_ledger.projections.incremental.deltas import Parts
from forecast_ledger.replay.readmodel.layouts import PARTS, PLACES, SYSTEM, TRACKING, VERSIONS, Row, versions
from forecast_ledger.replay.readmodel.part_store import REMEDY, Stored

_LOCK_TIMEOUT = 30  # s, to wait for whoever else writes to the file
Places = dict[tuple[str, str], "array[int]"]  # question and contest, "" for none -> log positions, rising


class Tracking(NamedTuple):
    """What a read model speaks of: which ledger, the digest of its first row, and how far it has been followed."""

    ledger: str
    first: str
    reached: Checkpoint
    recorded_at: int  # µs, of the last event

    def row(self) -> Row:
        """As it is stored."""
        return self.ledger, self.first, *self.reached, format_instant(self.recorded_at), self.recorded_at


class Change(NamedTuple):
    """What a read model is to hold from now on: parts of tables; places, where new rows of the log speak of what; and
    which tables are to be made again, from the parts that are here.
    """

    parts: Iterable[Parts]
    places: Places
    anew: Sequence[str] = ()


class ReadModel:
    """The tables, which change together with the checkpoint they speak of, or not at all.

    The file holds a digest of each part of a table, which is compared when the part is replaced.
    """

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        """Open a file, or start one, and keep others from writing to it as a runner does; or only read it.

        Raises Unavailable: the file cannot be opened, holds something else, is kept up to date by another runner, is
        damaged, or was changed by something else. A file that is only read is not checked here.
        """
        self.path = path
        self._lock: sqlite3.Connection | None = None
        self._checked = -1  # SQLite's number for what others had written when everything was last compared
        with self._told():
            self._connection = self._connected("ro" if read_only else "rwc")
            self._stored = Stored(self._connection, path)
            try:
                others = {name for name, said in self._stored.made().items() if said.startswith("CREATE TABLE")}
                if others and not {TRACKING, VERSIONS} <= others:
                    raise Unavailable(f"{path}: not a read model: it has tables of something else")
                if not read_only:
                    self._keep()
                    self._connection.execute("PRAGMA journal_mode=WAL")  # who reads never waits
                    self._connection.execute("PRAGMA synchronous=NORMAL")  # what power takes is whole refreshes
                    self.check()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Close the file, and let others keep it up to date."""
        self._connection.close()
        if self._lock is not None:
            self._lock.close()

    @contextmanager
    def reading(self) -> Iterator[Stored]:
        """The tables as of one moment."""
        with self._told(), self._transaction("DEFERRED"):
            yield self._stored

    def tracking(self) -> Tracking | None:
        """What the tables speak of; None if there are none yet. Raises Unavailable."""
        with self._told():
            if TRACKING not in self._stored.made():
                return None
            if self._stored.has(PARTS, TRACKING):
                deque(self._stored.parts(TRACKING), maxlen=0)
            rows = self._stored.rows(TRACKING)
        if [[*map(type, row)] for row in rows] != [[str, str, int, str, str, int]]:
            raise Unavailable(f"{self.path}: {TRACKING} does not say what the tables speak of; {REMEDY}")
        [(ledger, first, position, digest, _, recorded_at)] = rows
        return Tracking(ledger, first, Checkpoint(position, digest), recorded_at)

    def outdated(self) -> list[str]:
        """The projections that have no table here, or one of another version or shape. Raises Unavailable."""
        with self._told():
            if not self.placed():
                return [*BUILT]
            found = self._stored.rows(VERSIONS)
            other = {row[0] for row in versions() if row not in found}
            lacking = self._stored.lacking(BUILT)
        return [name for name in BUILT if name in other or name in lacking]

    def places(self, ledger: str, question: str, contest: str) -> tuple[Checkpoint, list[int]]:
        """How far the tables have followed a log, and where up to there it speaks of a question in a contest.

        Raises Unavailable: it cannot be read, or follows another ledger, or none yet.
        """
        with self.reading() as stored:
            tracking = self.tracking()
            if tracking is None or tracking.ledger != ledger or not self.placed():
                raise Unavailable(f"{self.path}: no read model of {ledger!r}: `forecast-ledger follow` makes one")
            about = {(question, ""), (question, contest), ("", contest)}
            found = [row[-1] for key in about for _, rows in stored.parts(PLACES, key) for row in rows]
        return tracking.reached, sorted(found)

    def placed(self) -> bool:
        """Whether it knows where the log speaks of what, and has digests of its parts. Raises Unavailable."""
        with self._told():
            return self._stored.has(PARTS, *SYSTEM)

    def write(self, before: Tracking | None, now: Tracking, change: Change) -> int:
        """Replace parts of tables and say what they speak of now, in one transaction; returns how many rows changed.

        Raises, first that applies: Unavailable (also where a part is not what was written there), Conflict (somebody
        else says what the tables speak of since `before`). Then nothing has changed.
        """
        with self._told(), self._transaction("IMMEDIATE"):
            self._check()
            if self.tracking() != before:
                raise Conflict(f"{self.path}: somebody else keeps this read model up to date; nothing was changed")
            self._make(change.anew)
            changed = sum(self._stored.replace(parts) for parts in change.parts)
            for name in change.anew:
                self._stored.index(name)
            for about in sorted(change.places):
                known = [row for _, rows in self._stored.parts(PLACES, about) for row in rows]
                self._stored.put(PLACES, about, known + [(*about, position) for position in change.places[about]])
            self._stored.put(TRACKING, (), [now.row()])
        return changed

    def check(self) -> None:
        """Compare every part with its digest, unless nobody else has written to the file since that was last done.

        Raises Unavailable: the file is damaged, or a part does not match its digest.
        """
        with self.reading():
            self._check()

    def _check(self) -> None:
        [(now,)] = self._connection.execute("PRAGMA data_version")
        if now != self._checked:
            self._stored.check_file()
            if self.placed():
                outdated = self.outdated()
                for name in (*SYSTEM, *(name for name in BUILT if name not in outdated)):
                    deque(self._stored.parts(name), maxlen=0)
            self._checked = now

    def _make(self, anew: Sequence[str]) -> None:
        """Tables without rows for these projections, and what goes with them; none for projections that are no more."""
        stored = self._stored
        known = [name for name, *_ in stored.rows(VERSIONS)] if VERSIONS in stored.made() else []
        if not self.placed():
            for name in (PARTS, *SYSTEM):
                stored.make(name)
        for name in {*known} - {*BUILT}:
            stored.drop(name)
        for name in anew:
            stored.make(name)
        stored.put(VERSIONS, (), versions())

    # --- the file

    def _connected(self, mode: str, beside: str = "", timeout: float | None = None) -> sqlite3.Connection:
        location = f"file:{quote(os.path.abspath(self.path))}{beside}?mode={mode}"  # noqa: PTH100 - as the store's
        wait = _LOCK_TIMEOUT if timeout is None else timeout
        return sqlite3.connect(location, timeout=wait, isolation_level=None, uri=True)

    def _keep(self) -> None:
        """Lock a file beside this one until `close`; if the process is killed, the system releases the lock.

        Readers of the tables do not wait for it. Raises Unavailable: another runner has the lock.
        """
        self._lock = self._connected("rwc", "-lock", timeout=0)
        try:
            self._lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            said = "another runner keeps this read model up to date; end that one, or follow into another file"
            raise Unavailable(f"{self.path}: {said}") from None

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
    def _told(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError:  # what SQLite says of a damaged schema has parts of it
            raise Unavailable(f"{self.path}: the file is damaged: its schema is no text; {REMEDY}") from None
        except sqlite3.Error as error:
            damaged = any(sign in str(error) for sign in ("malformed", "decode"))
            raise Unavailable(f"{self.path}: {error}{f'; {REMEDY}' if damaged else ''}") from None
