"""The half-open intervals on which forecasts stand, and what ends them."""

from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import NEVER
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
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
    order, key = _in_log_order(forecasts)
    question, at = forecasts.question[order], forecasts.at[order]
    end = np.minimum(ends[question], forecasts.until[order])
    replaced = np.flatnonzero(key[1:] == key[:-1])
    later = _earliest_after(key, at) if (at[replaced + 1] < at[replaced]).any() else at
    end[replaced] = np.minimum(end[replaced], later[replaced + 1])
    opening = opens[question]
    start = np.maximum(at, opening)
    stands = forecasts.made[order] & (start < end) & (early | (at >= opening))
    row = order[stands]
    return Intervals(row, question[stands], forecasts.participant[row], start[stands], end[stands])


# None: the close of the question. The last one is of rows that count as never made, which `spans` is not given.
ENDINGS = (None, "expired", "outcomes_added", "withdrawn", "replaced", "closed", "retracted")


class Spans(NamedTuple):
    """Whether and when each forecast stood, µs, and what ended it, by its place in ENDINGS; shape (n,) each."""

    stood: BoolArray
    start: Int64Array
    end: Int64Array
    ending: Int64Array


def spans(forecasts: Forecasts, grace: Int64Array, opens: Int64Array, ends: Int64Array) -> Spans:
    """Return, for each row, from when to when its forecast stood, also if a removal of outcomes changed it meanwhile.

    It is "closed" if its question had ended before it began. forecasts: as made; those of one participant on one
    question claim no instant before that of the one before. grace: the end of the grace period that ends each, µs,
    NEVER if none does, shape (n,). opens, ends: as for `intervals`.
    """
    order, key = _in_log_order(forecasts)
    question, at, made = forecasts.question[order], forecasts.at[order], forecasts.made[order]
    following, replaces = np.full(len(order), NEVER), np.zeros(len(order), bool)
    following[:-1] = np.where(key[1:] == key[:-1], at[1:], NEVER)
    replaces[:-1] = made[1:]
    start = np.maximum(at, opens[question])
    others = (np.where(replaces, NEVER, following), np.where(replaces, following, NEVER))
    limits = np.stack((ends[question], forecasts.until[order], grace[order], *others))
    end, ending = limits.min(0), limits.argmin(0)  # the first of those that are equal
    ending[(ending == 0) & (start >= end)] = ENDINGS.index("closed")
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return Spans((made & (start < end))[back], start[back], end[back], ending[back])


def _in_log_order(forecasts: Forecasts) -> tuple[Int64Array, Int64Array]:
    """Return the rows by question and participant, in log order within these, and a key of the two for each."""
    people = int(forecasts.participant.max()) + 1 if len(forecasts.participant) else 1
    key = forecasts.question * people + forecasts.participant
    order = stable_order(key)
    return order, key[order]


def _earliest_after(key: Int64Array, at: Int64Array) -> Int64Array:
    """Return the least instant from each row on, within its key; rows follow from changes of outcomes out of order."""
    _, number = np.unique(key, return_inverse=True)
    order = np.lexsort((at, number))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))  # a lower key has lower ranks, so that none of the next key is the least
    found: Int64Array = at[order[np.minimum.accumulate(rank[::-1])[::-1]]]
    return found
