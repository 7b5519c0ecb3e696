"""Where a log speaks of a question or a contest: kept in a read model, so that those rows can be read alone."""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.storing.store import PAGE, Store
from forecast_ledger.replay.reading.replay import Cut, Watch
from forecast_ledger.replay.readmodel.read_model import Places, ReadModel


class Known(NamedTuple):
    """A read model, and what is asked of the log that it is of."""

    model: str
    question: str
    contest: str


def note(places: Places, page: Sequence[Recorded]) -> None:
    """File where a page speaks of a question, a contest or both; what is of an account alone is left out."""
    for recorded in page:
        event = recorded.event
        if not isinstance(event, events.AccountEvent):
            key = getattr(event, "question", ""), getattr(event, "contest", "")
            if any(key):
                places.setdefault(key, array("q")).append(recorded.position)


def pages(store: Store, known: Known, cut: Cut, watch: Watch) -> Iterator[Sequence[Recorded]]:
    """What a log says as of a cut: the rows that a read model knows to speak of a question or contest, then the rest.

    The row that the read model speaks of last must have the digest it says, and each row that is read its own; that
    they all follow one another is for who made the read model, and `verify`. Raises, first that applies: Unavailable
    (no read model, or of another ledger), Corrupt.
    """
    with closing(ReadModel(known.model, read_only=True)) as model:
        reached, positions = model.places(store.name, known.question, known.contest)
    last = 0
    if reached.position:
        [seen] = _rows(store, [reached.position])
        if seen.digest != reached.digest:
            raise Corrupt(reached.position, f"the read model has seen digest {reached.digest} here, not this row's")
        last = bisect_left(range(1, seen.position + 1), True, key=lambda position: _after(store, cut, position))
    if last:
        cut.last = Checkpoint(last, _rows(store, [last])[0].digest)
    asked = [position for position in positions if position <= last]
    for first in range(0, len(asked), PAGE):
        page = _rows(store, asked[first : first + PAGE])
        yield page
        watch(page[-1].position)
    if last == reached.position:
        yield from cut.pages(log.unseal_pages(store.pages(last), reached), watch)


def _after(store: Store, cut: Cut, position: int) -> bool:
    """Whether a row lies after a cut."""
    [row] = _rows(store, [position])
    return not cut.includes(position, row.recorded_at)


def _rows(store: Store, positions: Sequence[int]) -> list[Recorded]:
    return [log.unseal_row(row, position) for row, position in zip(store.at(positions), positions, strict=True)]
