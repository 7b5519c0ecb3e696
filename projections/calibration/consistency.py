"""Bands of recalibrated probabilities: where they would be if forecasts were calibrated."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.core.column_values import POINTS
from forecast_ledger.projections.core.sorting import run_starts
from forecast_ledger.projections.uncertainty.draws import chances
from forecast_ledger.projections.uncertainty.order_statistics import ends

MOST_DRAWS = (
    40_000_000  # forecasts x replicates of a contest with more replicates than the fewest: about twenty seconds
)
FEWEST_REPLICATES = 199  # ends at 95% are the 5th and the 195th of them
MOST_FORECASTS = 2_000_000  # of a contest in a table: some minutes, and as many rows
_AT_ONCE = 1 << 20  # draws held at once


class Place(NamedTuple):
    """n forecasts of one owner with the same probability, 1e-9.

    recalibrated: by isotonic regression, 1e-9. low, high: ends of the band, 1e-9.
    """

    probability: int
    n: int
    recalibrated: int
    low: int
    high: int


def affordable(forecasts: int, replicates: int) -> int:
    """Return the replicates for the bands of a contest: fewer than its rules say if there are very many forecasts.

    They are the most for which there are at most `MOST_DRAWS` draws, but at least `FEWEST_REPLICATES`; never more than
    the rules say. forecasts: of all participants together.

    >>> affordable(20_000, 1_999), affordable(50_000, 1_999), affordable(200_000, 1_999), affordable(200_000, 99)
    (1999, 800, 200, 99)
    """
    return min(replicates, max(MOST_DRAWS // max(forecasts, 1), FEWEST_REPLICATES))


def consistency_band(
    probability: Int64Array, happened: BoolArray, seed: bytes, replicates: int, level_ppm: int
) -> list[Place]:
    """Return the recalibrated probability at each forecast of one owner, and the band it would be in if calibrated.

    In each replicate, every forecast p comes true with probability p, independently, and the forecasts are recalibrated
    anew. The ends are order statistics of the replicates, as in `intervals`. If forecasts are calibrated, a place is
    outside its band in a share of 1 - level of all cases.

    probability: 1e-9, ascending. Draws are given to forecasts in this order.

    Source: Dimitriadis, Gneiting and Jordan (2021), doi:10.1073/pnas.2016191118: consistency bands by resampling.

    >>> made, came_true = np.array([100_000_000, 900_000_000]), np.array([True, False])
    >>> [(each.recalibrated, each.low, each.high) for each in consistency_band(made, came_true, b"s", 1_999, 950_000)]
    [(500000000, 0, 1000000000), (500000000, 0, 1000000000)]
    """
    starts = run_starts(probability)
    counts = np.diff(starts, append=len(probability)).tolist()
    pages: list[list[int]] = []
    known: dict[tuple[int, ...], list[int]] = {}  # few forecasts often come true in the same way
    step = max(_AT_ONCE // max(len(probability), 1), 1)
    for first in range(0, replicates, step):
        drawn = chances(seed, range(first, min(first + step, replicates)), probability)
        came_true = np.add.reduceat(drawn.astype(np.int64), starts, axis=1)
        for row in map(tuple, came_true.tolist()):
            if row not in known:
                known[row] = _isotonic(counts, row)
            pages.append(known[row])
    values = np.array(pages, np.int64).T
    band = ends(values, level_ppm)
    found = _isotonic(counts, np.add.reduceat(happened.astype(np.int64), starts).tolist())
    rows = zip(probability[starts].tolist(), counts, found, band, strict=True)
    return [Place(place, n, share, *limits) for place, n, share, limits in rows]


def _isotonic(counts: Sequence[int], happened: Sequence[int]) -> list[int]:
    """Return the isotonic regression of happened / counts at each place, 1e-9, by pooling adjacent violators.

    >>> _isotonic([1, 1, 2], [1, 0, 2])
    [500000000, 500000000, 1000000000]
    """
    blocks: list[tuple[int, int, int]] = []  # forecasts, how many came true, places
    for count, yes in zip(counts, happened, strict=True):
        n, came_true, places = count, yes, 1
        while blocks and blocks[-1][1] * n >= came_true * blocks[-1][0]:
            before = blocks.pop()
            n, came_true, places = n + before[0], came_true + before[1], places + before[2]
        blocks.append((n, came_true, places))
    return [share for n, yes, places in blocks for share in [half_even(yes * POINTS, n)] * places]
