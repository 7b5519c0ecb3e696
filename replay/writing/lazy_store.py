"""A ledger whose store is created by its first accepted command: refused commands leave no file behind."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Absent
from forecast_ledger.ledger.model.log import NewRows
from forecast_ledger.ledger.storing.database import Fault, Rows, StoredRows, Transaction
from forecast_ledger.ledger.storing.memory import Memory
from forecast_ledger.ledger.storing.store import (
    Store,
    has_segments_beside,
    is_started,
    redacted,
    rows_at,
    segments_beside,
)
from forecast_ledger.ledger.storing.writer import Ledger, Prizes, system_clock


class LazyRows:
    """The rows of a store that may not exist yet: the first insert creates it, unless another process has."""

    def __init__(self, location: str, name: str) -> None:
        self.location = redacted(location)
        self._location, self._name = location, name
        self._none, self._started = Memory(), Lock()
        self._rows: Rows = self._none

    def select(self, after: int, limit: int) -> StoredRows:
        """As `Rows` has it."""
        return self._now().select(after, limit)

    def select_at(self, positions: Sequence[int]) -> StoredRows:
        """As `Rows` has it."""
        return self._now().select_at(positions)

    def select_typed(self, after: int, limit: int) -> Sequence[tuple[int, bytes, object]]:
        """As `Rows` has it."""
        return self._now().select_typed(after, limit)

    def newest(self) -> int:
        """As `Rows` has it."""
        return self._now().newest()

    def names(self) -> Iterator[str]:
        """As `Rows` has it."""
        return self._now().names()

    def has_unindexed(self, after: int) -> bool:
        """As `Rows` has it."""
        return self._now().has_unindexed(after)

    def faults(self) -> Iterator[Fault]:
        """As `Rows` has it."""
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
        """As `Rows` has it."""
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
    """Raise Absent if a log does not exist, but segments of it do: it is not begun anew by accident.

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
    return Ledger(Store(LazyRows(location, name), name), system_clock, prizes)
