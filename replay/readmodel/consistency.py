"""Whether a read model is what its log makes it: every row of every table, and what goes with them."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Corrupt, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.projections.catalogue.catalogue import BUILT
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.incremental.deltas import Key
from forecast_ledger.replay.reading.replay import Cut, Watch, opened
from forecast_ledger.replay.readmodel import log_index
from forecast_ledger.replay.readmodel.layouts import (
    PARTS,
    PLACES,
    SYSTEM,
    TRACKING,
    VERSIONS,
    Group,
    Row,
    digest,
    layout,
    printed,
    versions,
)
from forecast_ledger.replay.readmodel.part_store import Stored
from forecast_ledger.replay.readmodel.read_model import Places, ReadModel, Tracking

SHOWN = 100  # differences that are kept


class Drift(NamedTuple):
    """A value that differs from what the log makes it; if column is empty, a row that is missing or one too many, or a
    table that does not exist. expected, found: as stored, None for a row that is not there.
    """

    table: str
    key: Key
    column: str
    expected: Any
    found: Any


class Checked(NamedTuple):
    """Up to where the log was read, the first differences found, and how many there are."""

    reached: Checkpoint
    drifts: list[Drift]
    found: int


class _Past:
    """The tracking and the places that a read model must have, collected while a log is read."""

    def __init__(self) -> None:
        self.first = log.GENESIS
        self.places: Places = {}

    def noted(self, pages: Iterator[Sequence[Recorded]]) -> Iterator[Sequence[Recorded]]:
        for page in pages:
            if page[0].position == 1:
                self.first = page[0].digest
            log_index.note(self.places, page)
            yield page

    def groups(self) -> Iterator[Group]:
        for about in sorted(self.places):
            yield about, [(*about, position) for position in self.places[about]]


def check(location: str, path: str, name: str = "main", watch: Watch = lambda _: None) -> Checked:
    """Compare a read model with what is made again from the log, as of the log position that it speaks of.

    It can be kept up to date meanwhile. Raises, first that applies: Refused (the name is no id), Unavailable (either
    cannot be read; the read model is damaged, of another ledger, or of none yet), Corrupt (the log is damaged, or not
    the one that was followed).
    """
    with opened(location, name) as store, closing(ReadModel(path, read_only=True)) as model, model.reading() as stored:
        stored.check_file()
        said = model.tracking()
        if said is None or said.ledger != name:
            of = "no ledger yet" if said is None else f"another ledger, {said.ledger!r}"
            raise Unavailable(f"{path}: the read model of {of}")
        cut, past = Cut(said.reached.position), _Past()
        found = facts(past.noted(cut.pages(log.unseal_pages(store.pages()), watch)))
        if cut.last.position < said.reached.position:
            raise Corrupt(cut.last.position + 1, f"the read model has seen the log up to {said.reached.position}")
        if cut.last != said.reached:
            seen = f"the read model has seen digest {said.reached.digest} here, not this row's"
            raise Corrupt(said.reached.position, seen)
        now = Tracking(name, past.first, cut.last, cut.recorded_at or 0)
        drifts = _drifts(stored, Projections(found), now, past)
        first = [*islice(drifts, SHOWN)]
        return Checked(cut.last, first, len(first) + sum(1 for _ in drifts))


def _drifts(stored: Stored, every: Projections, now: Tracking, past: _Past) -> Iterator[Drift]:
    lacking = stored.lacking((PARTS, *SYSTEM, *BUILT))
    for name in lacking:
        yield Drift(name, (), "", layout(name).made_by(), "no such table, or not with its indexes")
    own = {TRACKING: iter([((), [now.row()])]), VERSIONS: iter([((), versions())]), PLACES: past.groups()}
    if PARTS not in lacking:
        for name in (*SYSTEM, *BUILT):
            if name not in lacking:
                yield from _of_table(stored, name, own.get(name) or _groups(every, name))


def _groups(every: Projections, name: str) -> Iterator[Group]:
    for key, rows in layout(name).grouped(printed(every.table(name))):
        yield key, sorted(rows)


def _of_table(stored: Stored, name: str, expected: Iterator[Group]) -> Iterator[Drift]:
    """The differences in a table, part by part, and in the digests of its parts."""
    digests, there = stored.digests(name), stored.divided(name)
    for key, rows in expected:
        there.discard(key)
        yield from _of_rows(stored, name, key, rows)
        if (kept := digests.pop(key, None)) != digest(rows):
            yield Drift(PARTS, (name, *key), "digest", digest(rows), kept)
    for key in there:
        yield from _of_rows(stored, name, key, [])
    yield from (Drift(PARTS, (name, *key), "digest", None, kept) for key, kept in digests.items())


def _of_rows(stored: Stored, name: str, part: Key, rows: list[Row]) -> Iterator[Drift]:
    of = layout(name)
    found = {row[: of.key]: row for row in stored.rows(name, part)}
    for row in rows:
        other = found.pop(row[: of.key], None)
        if other is None:
            yield Drift(name, row[: of.key], "", row, None)
        elif row != other:
            each = zip(of.columns, row, other, strict=True)
            yield from (Drift(name, row[: of.key], column, *both) for (column, _), *both in each if both[0] != both[1])
    yield from (Drift(name, key, "", None, row) for key, row in found.items())
