"""Consistency: what would have come true of the same forecasts if they were calibrated, drawn again and again.

The questions of a cluster come true by one random number, so that a less likely one does only if a likelier one does:
no other dependence with the same probabilities gives sums that vary more.

Source: Dimitriadis, Gneiting and Jordan (2021), doi:10.1073/pnas.2016191118: consistency bands by resampling; Kaas,
Dhaene and Goovaerts (2000), Insurance: Mathematics and Economics 27(2):151-168, doi:10.1016/S0167-6687(00)00060-3: sums
whose terms rise together.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, run_lengths, run_starts
from forecast_ledger.projections.studies.resampling import chances, ends

MOST_DRAWS = (
    40_000_000  # forecasts x replicates of a contest with more replicates than the fewest: about twenty seconds
)
FEWEST_REPLICATES = 199  # ends at 95% are the 5th and the 195th of them
MOST_FORECASTS = 2_000_000  # of a contest in a table: some minutes, and as many rows
AT_ONCE = 1 << 20  # draws held at once
TEST_REPLICATES = 999  # of which p-values are in thousandths
_T = TypeVar("_T")


class Forecasts(NamedTuple):
    """The forecasts of one owner. probability: 1e-9, ascending. cluster: from 0 on. All of shape (n,)."""

    probability: Int64Array
    happened: BoolArray
    cluster: Int64Array


class BandPoint(NamedTuple):
    """n forecasts of one owner with the same probability, 1e-9.

    recalibrated: by isotonic regression, 1e-9. low, high: ends of the band, 1e-9.
    """

    probability: int
    n: int
    recalibrated: int
    low: int
    high: int


def affordable(forecasts: int, replicates: int) -> int:
    """Return the replicates for a contest: fewer than its rules say if there are very many forecasts.

    They are the most for which there are at most `MOST_DRAWS` draws, but at least `FEWEST_REPLICATES`; never more than
    the rules say. forecasts: of all participants together.

    >>> affordable(20_000, 1_999), affordable(50_000, 1_999), affordable(200_000, 1_999), affordable(200_000, 99)
    (1999, 800, 200, 99)
    """
    return min(replicates, max(MOST_DRAWS // max(forecasts, 1), FEWEST_REPLICATES))


def consistency_band(forecasts: Forecasts, seed: bytes, replicates: int, level_ppm: int) -> list[BandPoint]:
    """Return the recalibrated probability at each forecast of one owner, and the band it would be in if calibrated.

    In each replicate, every forecast p comes true with probability p, and the forecasts are recalibrated again. The
    ends are order statistics of the replicates, as in `intervals`. If forecasts are calibrated, a probability is
    outside its band in a share of at most 1 - level of all cases.

    >>> made = Forecasts(np.array([100_000_000, 900_000_000]), np.array([True, False]), np.arange(2))
    >>> [(each.recalibrated, each.low, each.high) for each in consistency_band(made, b"s", 1_999, 950_000)]
    [(500000000, 0, 1000000000), (500000000, 0, 1000000000)]
    """
    distinct = _Distinct.of(forecasts)
    band = ends(np.array([*distinct.drawn(seed, replicates, distinct.recalibrated)], np.int64).T, level_ppm)
    rows = zip(distinct.probability, distinct.n, distinct.recalibrated(distinct.happened), band, strict=True)
    return [BandPoint(probability, n, share, *limits) for probability, n, share, limits in rows]


def as_miscalibrated(forecasts: Forecasts, seed: bytes, replicates: int) -> int:
    """Return in how many replicates calibrated forecasts are at least as miscalibrated as those of the owner.

    The measure is the amount by which recalibration lowers the sum of squared errors, with recalibrated probabilities
    that are rounded to 1e-9. (1 + this number) / (1 + replicates) is a p-value: if the forecasts are calibrated and
    clusters independent, it is at most p with a probability of at most p.

    Source: Dimitriadis, Gneiting and Jordan (2021): the measure MCB; Bröcker and Smith (2007), Weather and Forecasting
    22(3):651-661, doi:10.1175/WAF993.1: its resampling; Phipson and Smyth (2010), doi:10.2202/1544-6115.1585.

    >>> wrong = Forecasts(np.array([100_000_000] * 9), np.array([True] * 9), np.arange(9))
    >>> as_miscalibrated(wrong, b"s", 999)
    0
    """
    distinct = _Distinct.of(forecasts)
    observed = distinct.saved(distinct.happened)
    return sum(saved >= observed for saved in distinct.drawn(seed, replicates, distinct.saved))


class _Distinct(NamedTuple):
    """The distinct probabilities of one owner, ascending, 1e-9. starts: of each among the forecasts."""

    forecasts: Forecasts
    starts: Int64Array
    probability: list[int]
    n: list[int]
    happened: tuple[int, ...]

    @classmethod
    def of(cls, forecasts: Forecasts) -> "_Distinct":
        starts = run_starts(forecasts.probability)
        counts = run_lengths(starts, len(forecasts.probability)).tolist()
        happened = np.add.reduceat(forecasts.happened.astype(np.int64), starts).tolist()
        return cls(forecasts, starts, forecasts.probability[starts].tolist(), counts, (*happened,))

    def drawn(self, seed: bytes, replicates: int, function: Callable[[tuple[int, ...]], _T]) -> Iterator[_T]:
        """Yield a function of how many forecasts of each probability come true, for each replicate."""
        known: dict[tuple[int, ...], _T] = {}  # few forecasts often come true in the same way
        for came_true in redrawn(seed, replicates, self.forecasts.probability, self.forecasts.cluster):
            for row in map(tuple, np.add.reduceat(came_true.astype(np.int64), self.starts, axis=1).tolist()):
                if row not in known:
                    known[row] = function(row)
                yield known[row]

    def recalibrated(self, happened: Sequence[int]) -> list[int]:
        """Return the isotonic regression at each probability, 1e-9."""
        return _isotonic(self.n, happened)

    def saved(self, happened: Sequence[int]) -> int:
        """Return by how much recalibration lowers the sum of squared errors, 1e-18."""
        rows = zip(self.probability, self.recalibrated(happened), self.n, happened, strict=True)
        return sum([(p - share) * (n * (p + share) - 2 * yes * PROBABILITY) for p, share, n, yes in rows])


def redrawn(seed: bytes, replicates: int, probability: Int64Array, cluster: Int64Array) -> Iterator[BoolArray]:
    """Yield what comes true in some replicates at a time, shape (some, n)."""
    step = max(AT_ONCE // max(len(probability), 1), 1)
    for first in range(0, replicates, step):
        yield chances(seed, range(first, min(first + step, replicates)), probability, cluster)


def _isotonic(counts: Sequence[int], happened: Sequence[int]) -> list[int]:
    """Return the isotonic regression of happened / counts at each probability, 1e-9, by pooling adjacent violators.

    >>> _isotonic([1, 1, 2], [1, 0, 2])
    [500000000, 500000000, 1000000000]
    """
    blocks: list[tuple[int, int, int]] = []  # forecasts, how many came true, probabilities
    for count, yes in zip(counts, happened, strict=True):
        n, came_true, width = count, yes, 1
        while blocks and blocks[-1][1] * n >= came_true * blocks[-1][0]:
            before = blocks.pop()
            n, came_true, width = n + before[0], came_true + before[1], width + before[2]
        blocks.append((n, came_true, width))
    return [share for n, yes, width in blocks for share in [half_even(yes * PROBABILITY, n)] * width]
