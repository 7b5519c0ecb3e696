"""The half-open intervals on which forecasts stand."""

from typing import NamedTuple

import numpy as np

from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.sorting import stable_order
from forecast_ledger.projections.facts.columns import Forecasts


class Intervals(NamedTuple):
    """Intervals [start, end), µs, on which the forecast in row `row` stands, by question, participant, start.

    Shape (n,) each. No two intervals of one participant on one question overlap, and none is empty.
    """

    row: Int64Array
    question: Int64Array
    participant: Int64Array
    start: Int64Array
    end: Int64Array

    def of(self, index: Int64Array) -> "Intervals":
        """Return the intervals at these indices."""
        return Intervals(*(column[index] for column in self))


def intervals(forecasts: Forecasts, opens: Int64Array, ends: Int64Array, *, early: bool = True) -> Intervals:
    """Return when each forecast stands, until it is replaced or withdrawn, it ends by itself, or the question ends.

    A forecast stands from when it was made; one made before the opening stands from the opening if `early`, else never.

    opens, ends: µs, shape (questions,).
    """
    question, participant, at = forecasts.question, forecasts.participant, forecasts.at
    people = int(participant.max()) + 1 if len(participant) else 1
    key = question * people + participant
    order = stable_order(key)  # log order within question and participant
    key, question, at = key[order], question[order], at[order]
    end = np.minimum(ends[question], forecasts.until[order])
    replaced = np.flatnonzero(key[1:] == key[:-1])
    later = _earliest_after(key, at) if (at[replaced + 1] < at[replaced]).any() else at
    end[replaced] = np.minimum(end[replaced], later[replaced + 1])
    opening = opens[question]
    start = np.maximum(at, opening)
    stands = forecasts.made[order] & (start < end) & (early | (at >= opening))
    row = order[stands]
    return Intervals(row, question[stands], participant[row], start[stands], end[stands])


def _earliest_after(key: Int64Array, at: Int64Array) -> Int64Array:
    """Return the least instant from each row on, within its key; rows follow from changes of outcomes out of order."""
    _, number = np.unique(key, return_inverse=True)
    order = np.lexsort((at, number))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))  # a lower key has lower ranks, so that none of the next key is the least
    found: Int64Array = at[order[np.minimum.accumulate(rank[::-1])[::-1]]]
    return found
