"""The log index: the positions of the rows about a question or a contest, so that only those rows are read."""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns
from forecast_ledger.ledger.storing.store import PAGE, Store
from forecast_ledger.projections.facts.from_segments import forecast_positions, segment_events
from forecast_ledger.replay.reading.replay import Cut, Watch
from forecast_ledger.replay.readmodel.read_model import Places, ReadModel


class IndexQuery(NamedTuple):
    """The path of a read model, and the question and the contest whose rows to read."""

    model: str
    question: str
    contest: str


def add_page(places: Places, page: Sequence[Recorded]) -> None:
    """Add the rows of a page to the index, by question and contest; rows about an account only are left out."""
    for recorded in page:
        event = recorded.event
        if not isinstance(event, events.AccountEvent):
            key = getattr(event, "question", ""), getattr(event, "contest", "")
            if any(key):
                places.setdefault(key, array("q")).append(recorded.position)


def add_segment(places: Places, columns: SegmentColumns) -> None:
    """Add the rows of a segment to the index."""
    others = segment_events(columns)
    add_page(places, others)
    last = others[-1].position if others else 0
    if len(columns.forecasts):
        for question, positions in forecast_positions(columns).items():
            old = places.setdefault((question, ""), array("q"))
            old.extend(positions)
            if last > positions[0]:
                places[question, ""] = array("q", sorted(old))


def indexed_pages(store: Store, query: IndexQuery, cut: Cut, watch: Watch) -> Iterator[Sequence[Recorded]]:
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
        watch(page[-1].position)
    if last == reached.position:
        yield from cut.pages(log.unseal_pages(store.pages(last), reached), watch)


def _after(store: Store, cut: Cut, position: int) -> bool:
    """Return whether a row lies after a cut."""
    [row] = _rows(store, [position])
    return not cut.includes(position, row.recorded_at)


def _rows(store: Store, positions: Sequence[int]) -> list[Recorded]:
    return [log.unseal_row(row, position) for row, position in zip(store.at(positions), positions, strict=True)]
