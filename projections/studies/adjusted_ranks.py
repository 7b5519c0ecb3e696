"""Sets of ranks of adjusted scores: which ranks replicates allow participants who forecast on different questions."""

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.core.estimates import Floats
from forecast_ledger.projections.core.powers import root_half_even
from forecast_ledger.projections.studies.estimates import Near, finely, normal_bounds, ratios, root_mean_squares

FINE = 10**15  # of 1e-9 points: adjusted scores are rounded to 1e-24
UNIT = 1_000  # of a statistic
_LEAST = 1  # of a standard error, 1e-9 points
_MOST = 2**60  # of a bound


class Refits(NamedTuple):
    """Adjusted scores in points of 1e-9, the larger the better, of the questions as they are and of replicates.

    near: shape (p, 1 + b). exact: returns those of some columns in 1 / FINE, rounded half-even. alike: a number for
    each; those with the same number have the same scores. clusters: in which each has a score, shape (p,). strata: of
    clusters.
    """

    near: Near
    exact: Callable[[Int64Array], NDArray[np.object_]]
    alike: Int64Array
    clusters: Int64Array
    strata: int


Ranks = list[tuple[int, int]]


def rank_sets_of_refits(refits: Refits, level_ppm: int, ranked: int) -> tuple[Ranks, Ranks]:
    """Return the best and the worst rank that each may have: for all at once, and for each alone.

    ranked: how many have a rank, p or more. The best rank is 1 + the number who are better for certain, the worst is
    `ranked` - the number who are worse for certain.

    For a pair, d is the difference of the adjusted scores, and x that of replicates less d. The standard error is the
    root of the mean of x², at least 1e-9 points. The statistic of a replicate is |x| / standard error, and that of the
    pair is z = (4 v - 1) T / √(8 v (2 n + T²)) with T = |d| / standard error: T has about Student's distribution, n the
    clusters of whoever of the two has fewer, v = n - strata; it is √(n / v) too large, as few clusters vary less in
    replicates than in truth; and z is normal. Statistics are rounded half-even to three decimals.

    The critical value is the order statistic at level x (b + 1), rounded up, of the largest statistic of all pairs in
    each replicate; without so many replicates nothing is certain. Pairs with a larger z are certain; then it is that of
    the other pairs, until no further pair is certain. For each alone, the pairs are those of one participant.

    Source: Mogstad et al. (2023), Review of Economic Studies 91(1):476-518, doi:10.1093/restud/rdad006, with steps of
    Romano and Wolf (2005), doi:10.1198/016214504000000539; z is formula 26.7.8 of Abramowitz and Stegun (1964),
    Handbook of Mathematical Functions.
    """
    pairs = _Pairs(refits, -(-level_ppm * refits.near.value.shape[1] // 10**6))
    every = refits.alike[:, None] != refits.alike  # the others are never certain
    alone, low, high = np.zeros_like(every), *pairs.none()
    for row in range(pairs.people):
        only = np.zeros_like(every)
        only[row] = every[row]
        bounds = pairs.bounds(only)
        alone[row] = pairs.certain(only, bounds)[row]
        low, high = np.maximum(low, bounds[0]), np.maximum(high, bounds[1])
    together = pairs.certain(np.triu(every), (low, high))  # the pairs of all rows are all pairs
    return pairs.ranks(together | together.T, ranked), pairs.ranks(alone, ranked)


class _Pairs:
    """The pairs of participants; a bound is in 1 / UNIT. position: of the critical order statistic, from 1."""

    def __init__(self, refits: Refits, position: int) -> None:
        self.people, self._position, self._refits = len(refits.clusters), position, refits
        near = finely(refits.near, refits.exact, FINE)
        plain, drawn = near.at(slice(0, 1)), near.at(slice(1, None))
        self._plain, self._drawn = plain, drawn.less(plain)
        # The last bounds of each row, and of which pairs.
        self._known: dict[int, tuple[Int64Array, Floats, Floats]] = {}
        self._beside = lru_cache(1)(self._ratios)  # the steps of one participant's pairs follow each other
        self._low, self._high = np.zeros((2, self.people, self.people))  # of the pairs of rows that were looked at

    def _apart(self, numbers: Near, row: int) -> Near:
        """Return by how much the numbers of a row are larger than those of all rows."""
        return numbers.take(np.array([row])).less(numbers)

    @cached_property
    def _exact(self) -> tuple[Any, Any]:
        """The adjusted scores, shape (p,), and by how much replicates are larger, shape (p, b), in 1 / FINE."""
        numbers = self._refits.exact(np.arange(self._refits.near.value.shape[1]))
        return numbers[:, 0], numbers[:, 1:] - numbers[:, :1]

    def _squares(self, row: int, other: int) -> tuple[Any, int]:
        """Return the deviations of a pair, exact, and the sum of their squares."""
        apart = self._exact[1][row] - self._exact[1][other]
        return apart, max(int(apart @ apart), len(apart) * (_LEAST * FINE) ** 2)

    def _statistic(self, row: int, other: int, replicate: int) -> int:
        apart, squares = self._squares(row, other)
        return root_half_even(Fraction((UNIT * int(apart[replicate])) ** 2 * len(apart), squares))

    def _z(self, row: int, other: int) -> int:
        """Return z of a pair."""
        apart, squares = self._squares(row, other)
        clusters = int(min(self._refits.clusters[[row, other]]))
        degrees = max(clusters - self._refits.strata, 1)
        square = len(apart) * int(self._exact[0][row] - self._exact[0][other]) ** 2  # T² x squares
        over = 8 * degrees * (2 * clusters * squares + square)
        return root_half_even(Fraction((UNIT * (4 * degrees - 1)) ** 2 * square, over))

    def certain(self, pairs: BoolArray, bounds: tuple[Floats, Floats]) -> BoolArray:
        """Return which pairs are significant, step by step.

        pairs: those beside each other, shape (p, p). bounds: as of `bounds`, of these pairs.
        """
        significant = np.zeros_like(pairs)
        while self._position < self._refits.near.value.shape[1] and (left := pairs & ~significant).any():
            more = self._above(left, *(bounds if not significant.any() else self.bounds(left)))
            if not more.any():
                break
            significant |= more
        return significant

    def _above(self, pairs: BoolArray, low: Floats, high: Floats) -> BoolArray:
        """Return which of some pairs are above the critical value of these pairs. low, high: their bounds."""
        least, most = (
            np.partition(ends, self._position - 1)[self._position - 1] for ends in (low, np.minimum(high, _MOST))
        )
        above: BoolArray = pairs & (self._low > np.rint(most))
        doubtful = np.argwhere(pairs & ~above & (self._high > np.rint(least))).tolist()
        if doubtful:
            critical = self._critical(pairs, low, least, most)
            for row, other in doubtful:
                above[row, other] = self._z(row, other) > critical
        return above

    def _ratios(self, row: int) -> tuple[Floats, Floats]:
        """Return bounds of the statistics of replicates, of a row and every row, shape (p, b); keep those of z."""
        apart, clusters = self._apart(self._drawn, row), self._refits.clusters
        norm, least = root_mean_squares(apart, _LEAST), np.minimum(clusters, clusters[row])
        z = normal_bounds(self._apart(self._plain, row), norm, least, self._refits.strata, UNIT)
        self._low[row], self._high[row] = (np.rint(ends[:, 0]) for ends in z)
        return ratios(apart, norm, UNIT)

    def none(self) -> tuple[Floats, Floats]:
        """Return the bounds of no pairs."""
        low, high = np.zeros((2, self._drawn.value.shape[1]))
        return low, high

    def bounds(self, pairs: BoolArray) -> tuple[Floats, Floats]:
        """Return what the largest statistic of each replicate is not below, and not above, shape (b,) each."""
        low, high = self.none()
        for row in np.flatnonzero(pairs.any(axis=1)).tolist():
            others, known = np.flatnonzero(pairs[row]), self._known.get(row)
            if known is None or not np.array_equal(known[0], others):
                known = self._known[row] = (others, *(ends[others].max(axis=0) for ends in self._beside(row)))
            low, high = np.maximum(low, known[1]), np.maximum(high, known[2])
        return low, high

    def _critical(self, pairs: BoolArray, low: Floats, least: Floats, most: Floats) -> int:
        """Return the critical value; low, least, most: what it is not below, and not above."""
        if np.rint(least) == np.rint(most):
            return int(np.rint(least))
        exact = np.where(low > most, int(np.rint(most)) + 1, 0)  # above it, or below
        for row in np.flatnonzero(pairs.any(axis=1)).tolist():
            lows, highs = self._beside(row)
            for other, replicate in np.argwhere(pairs[row][:, None] & (highs >= least) & (lows <= most)).tolist():
                statistic = self._statistic(row, other, replicate)
                exact[replicate] = max(int(exact[replicate]), statistic)
        return int(np.sort(exact)[self._position - 1])

    def ranks(self, certain: BoolArray, ranked: int) -> Ranks:
        """Return the best and the worst rank of each. certain: which pairs are significant, shape (p, p)."""
        ranks = []
        for row in range(self.people):
            apart = self._apart(self._plain, row)
            better = apart.value[:, 0] < 0
            for other in np.flatnonzero(certain[row] & (np.abs(apart.value) <= apart.guard)[:, 0]).tolist():
                better[other] = self._exact[0][row] < self._exact[0][other]
            ahead, behind = int((certain[row] & better).sum()), int((certain[row] & ~better).sum())
            ranks.append((1 + ahead, ranked - behind))
        return ranks
