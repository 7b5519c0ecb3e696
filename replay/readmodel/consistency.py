"""Compare a read model with its log: every row of every table, the tracking, the versions and the log index."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Corrupt, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.events import AccountEvent
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.projections.facts.from_log import facts as facts_of
from forecast_ledger.projections.tables.catalogue import PartKey, Projections
from forecast_ledger.replay.reading.log import Cut, Log
from forecast_ledger.replay.readmodel.part_store import (
    PARTS,
    PLACES,
    SYSTEM,
    TRACKING,
    VERSIONS,
    Group,
    StoredRow,
    StoredTables,
    layout,
    place_rows,
    rows_digest,
    stored_rows,
    table_versions,
)
from forecast_ledger.replay.readmodel.read_model import Places, ReadModel, Tracking

DRIFTS_SHOWN = 100  # differences that are reported, of all that are counted


class Drift(NamedTuple):
    """A difference between a read model and the tables made again from its log.

    column: the column whose value differs; empty if a row is missing or surplus, or a table does not exist. expected,
    found: as stored; None for a row that does not exist.
    """

    table: str
    key: PartKey
    column: str
    expected: Any
    found: Any


class ModelCheck(NamedTuple):
    """The checkpoint up to which the log was read, the first differences, and the number of all differences."""

    reached: Checkpoint
    drifts: list[Drift]
    total: int


class _Expected:
    """The first digest and the log index that a read model must have, collected while a log is read."""

    def __init__(self) -> None:
        self.first = log.GENESIS
        self.places: Places = {}

    def collect(self, pages: Iterator[Sequence[Recorded]]) -> Iterator[Sequence[Recorded]]:
        for page in pages:
            if page[0].position == 1:
                self.first = page[0].digest
            for recorded in page:
                self._add(recorded)
            yield page

    def _add(self, recorded: Recorded) -> None:
        """Add a row to the index; rows about an account only are left out."""
        if not isinstance(recorded.event, AccountEvent):
            key = getattr(recorded.event, "question", ""), getattr(recorded.event, "contest", "")
            if any(key):
                self.places.setdefault(key, []).append(recorded.position)

    def groups(self) -> Iterator[Group]:
        for key in sorted(self.places):
            yield key, place_rows(key, self.places[key])


def check_model(followed: Log, path: str) -> ModelCheck:
    """Compare a read model with the tables made again from the log, as of the checkpoint of the read model.

    A runner may keep the read model up to date meanwhile. Raises, first that applies: Refused (the name is not an id),
    Unavailable (either cannot be read; the read model is damaged, of another ledger, or of none yet), Corrupt (the log
    is damaged, or not the one that was followed).
    """
    with (
        followed.opened() as store,
        closing(ReadModel(path, read_only=True)) as model,
        model.reading() as stored,
    ):
        stored.check_file()
        tracking = model.tracking()
        if tracking is None:
            raise Unavailable(f"{path}: the read model follows no ledger yet")
        if tracking.ledger != followed.name:
            raise Unavailable(f"{path}: the read model follows another ledger, {tracking.ledger!r}")
        cut, past = Cut(tracking.reached.position, followed.on_progress), _Expected()
        facts = facts_of(past.collect(cut.pages(log.unseal_pages(store.pages()))))
        if cut.last.position < tracking.reached.position:
            raise Corrupt(
                cut.last.position + 1, f"the read model has followed the log up to {tracking.reached.position}"
            )
        if cut.last != tracking.reached:
            wrong = f"the read model has digest {tracking.reached.digest} for this row, but the log has another"
            raise Corrupt(tracking.reached.position, wrong)
        expected = Tracking(followed.name, past.first, cut.last, cut.recorded_at or 0)
        drifts = _drifts(stored, Projections(facts), expected, past, model.names())
        first = [*islice(drifts, DRIFTS_SHOWN)]
        return ModelCheck(cut.last, first, len(first) + sum(1 for _ in drifts))


def _drifts(
    stored: StoredTables, projections: Projections, tracking: Tracking, past: _Expected, names: list[str]
) -> Iterator[Drift]:
    missing = stored.missing((PARTS, *SYSTEM, *names))
    for name in missing:
        yield Drift(name, (), "", layout(name).create_statement(), "no such table, or without its indexes")
    own = {
        TRACKING: iter([((), [tracking.row()])]),
        VERSIONS: iter([((), table_versions(names))]),
        PLACES: past.groups(),
    }
    if PARTS not in missing:
        for name in (*SYSTEM, *names):
            if name not in missing:
                yield from _table_drifts(stored, name, own.get(name) or _groups(projections, name))


def _groups(projections: Projections, name: str) -> Iterator[Group]:
    for key, rows in layout(name).group_parts(stored_rows(projections.table(name))):
        yield key, sorted(rows)


def _table_drifts(stored: StoredTables, name: str, expected: Iterator[Group]) -> Iterator[Drift]:
    """Yield the differences in a table, part by part, and in the digests of its parts."""
    digests, surplus = stored.digests(name), stored.part_keys(name)
    for key, rows in expected:
        surplus.discard(key)
        yield from _row_drifts(stored, name, key, rows)
        if (digest := digests.pop(key, None)) != rows_digest(rows):
            yield Drift(PARTS, (name, *key), "digest", rows_digest(rows), digest)
    for key in surplus:
        yield from _row_drifts(stored, name, key, [])
    yield from (Drift(PARTS, (name, *key), "digest", None, digest) for key, digest in digests.items())


def _row_drifts(stored: StoredTables, name: str, part: PartKey, rows: list[StoredRow]) -> Iterator[Drift]:
    width = layout(name).key
    remaining = {row[:width]: row for row in stored.rows(name, part)}
    for row in rows:
        stored_row = remaining.pop(row[:width], None)
        if stored_row is None:
            yield Drift(name, row[:width], "", row, None)
        elif row != stored_row:
            values = zip(layout(name).columns, row, stored_row, strict=True)
            yield from (Drift(name, row[:width], column, *both) for (column, _), *both in values if both[0] != both[1])
    yield from (Drift(name, key, "", None, row) for key, row in remaining.items())
