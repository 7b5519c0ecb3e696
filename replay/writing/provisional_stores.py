"""Ledgers whose events may never be stored: until the first accepted command, or at all."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Absent
from forecast_ledger.ledger.model.log import Checkpoint, NewRows
from forecast_ledger.ledger.storing.database import Fault, Memory, Rows, StoredRows, Transaction
from forecast_ledger.ledger.storing.stored_log import (
    StoredLog,
    has_segments_beside,
    is_started,
    redacted,
    rows_at,
    segments_beside,
)
from forecast_ledger.ledger.storing.writer import Ledger, Prizes, system_clock


class LazyRows(Rows):
    """The rows of a store that may not exist yet: the first insert creates it, unless another process has."""

    def __init__(self, location: str, name: str) -> None:
        self.location = redacted(location)
        self._location, self._name = location, name
        self._none, self._started = Memory(), Lock()
        self._rows: Rows = self._none

    def select(self, after: int, limit: int) -> StoredRows:
        return self._now().select(after, limit)

    def select_at(self, positions: Sequence[int]) -> StoredRows:
        return self._now().select_at(positions)

    def select_typed(self, after: int, limit: int) -> Sequence[tuple[int, bytes, object]]:
        return self._now().select_typed(after, limit)

    def newest(self) -> int:
        return self._now().newest()

    def heads(self, most: int) -> Sequence[tuple[str, int]]:
        return self._now().heads(most)

    def has_unindexed(self, after: int) -> bool:
        return self._now().has_unindexed(after)

    def faults(self) -> Iterator[Fault]:
        return self._now().faults()

    @contextmanager
    def turn(self) -> Iterator[Transaction]:
        """As `Rows` has it; while no store exists, there is no other writer."""
        rows = self._now()
        if rows is self._none:
            yield self
        else:
            with rows.turn() as writing:
                yield writing

    def insert(self, rows: Sequence[NewRows]) -> None:
        """As `Transaction` has it. If it fails, the file is not deleted, since other processes may have it open."""
        with self._start().turn() as writing:
            writing.insert(rows)

    def close(self) -> None:
        self._rows.close()

    def _now(self) -> Rows:
        """Return the rows of the store if it exists, else none."""
        return self._start() if self._rows is self._none and is_started(self._location) else self._rows

    def _start(self) -> Rows:
        with self._started:
            if self._rows is self._none:
                self._rows = rows_at(self._location, self._name)
            return self._rows


def check_not_sealed(location: str, segments: str | None = None) -> None:
    """Raise Absent if a log does not exist, but segments of it do: so that nobody begins it again by accident.

    segments: their folder; by default the one beside the log.
    """
    if is_started(location):
        return
    folder = segments_beside(location) if segments is None and has_segments_beside(location) else segments
    if folder is not None:
        shown = redacted(location)
        remedy = f"make it again: `forecast-ledger import {folder} {shown}`; or begin another log under another name"
        raise Absent(f"{shown}: no such ledger, and {folder} has segments of one; {remedy}")


def open_lazily(location: str, name: str, prizes: Prizes, segments: str | None = None) -> Ledger:
    """Open a ledger that its first accepted command creates. Raises what `Ledger.open` raises.

    segments: a folder that has the beginning of the log, which must exist then.
    """
    values.check_id(name, "name")
    if segments is not None or is_started(location):
        return Ledger.open(location, name, prizes=prizes, segments=segments)
    return Ledger(StoredLog(LazyRows(location, name), name), system_clock, prizes)


class OverlayRows(Rows):
    """The rows of a log up to a position, then the rows appended here, which exist only in memory."""

    def __init__(self, base: Rows) -> None:
        self.location = base.location
        self._base = base
        self._fork: int | None = None
        self._added = Memory()

    def fork(self, position: int) -> None:
        """Branch off at a log position: later rows of the base are not read."""
        self._fork, self._added = position, Memory(position)

    def select(self, after: int, limit: int) -> StoredRows:
        if self._fork is None:
            return self._base.select(after, limit)
        below = self._base.select(after, min(limit, self._fork - after)) if after < self._fork else []
        reached = after + len(below)
        return [*below, *self._added.select(reached, limit - len(below))] if reached >= self._fork else below

    def select_at(self, positions: Sequence[int]) -> StoredRows:
        below = [position for position in positions if self._fork is None or position <= self._fork]
        return (self._base.select_at(below) if below else []) or self._added.select_at(positions)

    def select_typed(self, after: int, limit: int) -> Sequence[tuple[int, bytes, object]]:
        if self._fork is None:
            return self._base.select_typed(after, limit)
        if after < self._fork:
            return self._base.select_typed(after, min(limit, self._fork - after))
        return self._added.select_typed(after, limit)

    def newest(self) -> int:
        return self._base.newest() if self._fork is None else self._added.newest()

    def heads(self, most: int) -> Sequence[tuple[str, int]]:
        return self._base.heads(most)

    def has_unindexed(self, after: int) -> bool:
        return (self._fork is None or after < self._fork) and self._base.has_unindexed(after)

    def faults(self) -> Iterator[Fault]:
        """Return the faults of the base."""
        return self._base.faults()

    @contextmanager
    def turn(self) -> Iterator["OverlayRows"]:
        """As `Rows` has it; no other process appends here."""
        with self._added.turn():
            yield self

    def insert(self, rows: Sequence[NewRows]) -> None:
        """As `Transaction` has it; the rows are lost when the branch is closed."""
        self._added.insert(rows)

    def close(self) -> None:
        self._base.close()


@contextmanager
def open_overlay(
    location: str, name: str, prizes: Prizes, upto: Checkpoint | None = None
) -> Iterator[tuple[Ledger, Checkpoint]]:
    """Open a ledger on a branch of a log, and return it with the checkpoint at which it branches off.

    upto: the checkpoint; if None, the end of the log. A log that does not exist counts as empty.
    Raises Unavailable, Corrupt.
    """
    values.check_id(name, "name")
    try:
        base: Rows = rows_at(location, name, read_only=True)
    except Absent:
        base = Memory()
    branch = OverlayRows(base)
    store = StoredLog(branch, name)
    try:
        if upto is not None:
            branch.fork(upto.position)
        ledger = Ledger(store, system_clock, prizes)
        head = ledger.head()
        branch.fork(head.position)
        yield ledger, head
    finally:
        store.close()
