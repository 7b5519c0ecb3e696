"""Murphy curves: mean elementary scores, which say at which thresholds of action a forecaster decides badly."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.boards.brier_sums import Sample
from forecast_ledger.projections.core.sorting import run_starts

PARTS = 100  # thresholds are 1 / PARTS, 2 / PARTS … below 1


class Thresholds(NamedTuple):
    """One owner's n forecasts. false_alarms, misses: at each threshold, the numbers that `murphy_curves` counts."""

    owner: int
    n: int
    false_alarms: list[int]
    misses: list[int]


def murphy_curves(sample: Sample) -> Iterator[Thresholds]:
    """Yield the false alarms and the misses of each owner at each threshold t, by owner.

    A decision maker acts if the forecast p is above t, and is right to act if the event happens. There is a false alarm
    if p > t and it does not happen, and a miss if p <= t and it happens. The elementary score is t for a false alarm,
    1 - t for a miss and 0 otherwise; its mean is (t x false alarms + (1 - t) x misses) / n. The integral of this mean
    over t from 0 to 1 is half the Brier score, and every proper score is such an integral with some weight of
    thresholds.

    Source: Ehm, Gneiting, Jordan and Krueger (2016), doi:10.1111/rssb.12154.

    >>> columns = [np.zeros(2, int), np.array([200_000_000, 900_000_000]), np.full(2, -1), np.array([True, False])]
    >>> [own] = murphy_curves(Sample(*columns))
    >>> [(own.false_alarms[percent - 1], own.misses[percent - 1]) for percent in (19, 20, 89, 90)]
    [(1, 0), (1, 1), (1, 1), (0, 1)]
    """
    order = np.lexsort((sample.probability, sample.owner))
    owner, probability, happened = sample.owner[order], sample.probability[order], sample.happened[order]
    edges = np.arange(1, PARTS) * (PROBABILITY // PARTS)
    for first, end in pairwise([*run_starts(owner).tolist(), len(owner)]):
        mine, yes = probability[first:end], happened[first:end]
        misses = np.searchsorted(mine[yes], edges, "right")
        false_alarms = int((~yes).sum()) - np.searchsorted(mine[~yes], edges, "right")
        yield Thresholds(int(owner[first]), end - first, false_alarms.tolist(), misses.tolist())
