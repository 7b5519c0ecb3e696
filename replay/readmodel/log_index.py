"""The log index: the positions of the rows about a question or a contest, so that only those rows are read."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.storing.stored_log import PAGE, StoredLog
from forecast_ledger.projections.core.arrays import run_starts
from forecast_ledger.projections.facts.columns import ForecastPage
from forecast_ledger.replay.reading.log import Cut
from forecast_ledger.replay.readmodel.stored_model import Positions, StoredModel

_FORECASTS = (events.ForecastMade, events.ForecastWithdrawn)


class IndexQuery(NamedTuple):
    """The location of a read model, and the question and the contest whose rows to read."""

    model: str
    question: str
    contest: str


def index_key(event: events.Event) -> tuple[str, str] | None:
    """Return the question and the contest under which the index has an event, both "" if it gives another id.

    None: it is left out, because it is about an account only, or about no question and no contest.
    """
    key = getattr(event, "question", ""), getattr(event, "contest", "")
    has_key = any(key) or isinstance(event, events.ParticipantRenamed)
    return key if has_key and not isinstance(event, events.AccountEvent) else None


def other_digest(reached: Checkpoint) -> Corrupt:
    """Return the damage that a log has another row where a read model has followed it to."""
    wrong = f"the read model has digest {reached.digest} for this row, but the log has another"
    return Corrupt(reached.position, wrong)


class NewPositions:
    """The log positions of rows that are not in the index yet, by question and contest.

    Those of forecasts are kept as columns until they are asked for.
    """

    def __init__(self) -> None:
        self._others: Positions = {}
        self._forecasts: list[ForecastPage] = []

    def add(self, rows: Iterable[Recorded], forecasts: Iterable[ForecastPage]) -> None:
        """Add rows in log order; forecasts among them are taken from the columns. forecasts: the columns of all."""
        self._forecasts += forecasts
        for recorded in rows:
            if not isinstance(recorded.event, _FORECASTS) and (key := index_key(recorded.event)) is not None:
                self._others.setdefault(key, []).append(recorded.position)

    def by_key(self, questions: Sequence[str]) -> Positions:
        """Return the log positions, rising. questions: ids by code, as in the columns."""
        listed, columns = dict(self._others), [(each.question, each.position) for each in self._forecasts]
        if columns:
            codes, positions = map(np.concatenate, zip(*columns, strict=True))
            order = np.lexsort((positions, codes))
            starts = run_starts(codes[order])
            for code, positions_of_key in zip(
                codes[order][starts], np.split(positions[order], starts[1:]), strict=True
            ):
                key = questions[code], ""
                listed[key] = sorted([*listed.get(key, ()), *positions_of_key.tolist()])
        return listed


def indexed_pages(store: StoredLog, query: IndexQuery, cut: Cut) -> Iterator[Sequence[Recorded]]:
    """Yield the rows about a question or a contest up to a cut, as the index lists them, then the rows after the index.

    The digest of the last row that the read model has followed is compared, and that of each row that is read. The
    chain of the rows between them is not checked: the runner and `verify` do that. Raises, first that applies:
    Unavailable (no read model, or of another ledger), Corrupt.
    """
    with closing(StoredModel(query.model, read_only=True)) as model:
        reached, positions = model.positions(store.name, query.question, query.contest)
    last = 0
    if reached.position:
        [newest] = _rows(store, [reached.position])
        if newest.digest != reached.digest:
            raise other_digest(reached)
        last = bisect_left(range(1, newest.position + 1), True, key=lambda position: _after(store, cut, position))
    if last:
        cut.last = Checkpoint(last, _rows(store, [last])[0].digest)
    selected = [position for position in positions if position <= last]
    for first in range(0, len(selected), PAGE):
        page = _rows(store, selected[first : first + PAGE])
        yield page
        cut.on_progress(page[-1].position)
    if last == reached.position:
        yield from cut.read(store.pages(last), reached)


def _after(store: StoredLog, cut: Cut, position: int) -> bool:
    """Return whether a row lies after a cut."""
    [row] = _rows(store, [position])
    return not cut.includes(position, row.recorded_at)


def _rows(store: StoredLog, positions: Sequence[int]) -> list[Recorded]:
    return [log.unseal_row(row, position) for row, position in zip(store.at(positions), positions, strict=True)]
