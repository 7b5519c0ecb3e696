"""Sets of ranks of adjusted scores: which ranks replicates allow participants who forecast on different questions."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
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
    alone = np.zeros_like(every)
    for row in range(pairs.people):
        only = np.zeros_like(every)
        only[row] = every[row]
        alone[row] = pairs.certain(only)[row]
    together = pairs.certain(np.triu(every))
    return pairs.ranks(together | together.T, ranked), pairs.ranks(alone, ranked)


class _Pairs:
    """The pairs of participants; a bound is in 1 / UNIT. position: of the critical order statistic, from 1."""

    def __init__(self, refits: Refits, position: int) -> None:
        self.people, self._position, self._refits = len(refits.clusters), position, refits
        near = finely(refits.near, refits.exact, FINE)
        plain, drawn = near.at(slice(0, 1)), near.at(slice(1, None))
        self._plain, self._drawn = plain, drawn.less(plain)
        every = [self._observed(row) for row in range(self.people)]
        self._low, self._high = (np.array([np.rint(each[end][:, 0]) for each in every]) for end in (0, 1))

    def _apart(self, numbers: Near, row: int) -> Near:
        """Return by how much the numbers of a row are larger than those of all rows."""
        return numbers.take(np.array([row])).less(numbers)

    def _observed(self, row: int) -> tuple[Floats, Floats]:
        norm = root_mean_squares(self._apart(self._drawn, row), _LEAST)
        clusters = np.minimum(self._refits.clusters, self._refits.clusters[row])
        return normal_bounds(self._apart(self._plain, row), norm, clusters, self._refits.strata, UNIT)

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

    def certain(self, pairs: BoolArray) -> BoolArray:
        """Return which pairs are significant, step by step. pairs: those beside each other, shape (p, p)."""
        significant = np.zeros_like(pairs)
        while self._position < self._refits.near.value.shape[1] and (left := pairs & ~significant).any():
            more = self._above(left)
            if not more.any():
                break
            significant |= more
        return significant

    def _above(self, pairs: BoolArray) -> BoolArray:
        """Return which of some pairs are above the critical value of these pairs."""
        low, least, most = self._bounds(pairs)
        above = pairs & (self._low > np.rint(most))
        doubtful = np.argwhere(pairs & ~above & (self._high > np.rint(least))).tolist()
        if doubtful:
            critical = self._critical(pairs, low, least, most)
            for row, other in doubtful:
                above[row, other] = self._z(row, other) > critical
        return above

    def _statistics(self, pairs: BoolArray) -> Iterator[tuple[int, Int64Array, Floats, Floats]]:
        """Yield bounds of the statistics of replicates: a row, the others of its pairs, and the bounds, (m, b)."""
        for row in np.flatnonzero(pairs.any(axis=1)).tolist():
            others = np.flatnonzero(pairs[row])
            apart = self._drawn.take(np.array([row])).less(self._drawn.take(others))
            yield row, others, *ratios(apart, root_mean_squares(apart, _LEAST), UNIT)

    def _bounds(self, pairs: BoolArray) -> tuple[Floats, Floats, Floats]:
        """Return what the largest statistic of each replicate is not below, shape (b,), and critical value's bounds."""
        low, high = np.zeros((2, self._drawn.value.shape[1]))
        for _, _, lows, highs in self._statistics(pairs):
            low, high = np.maximum(low, lows.max(axis=0)), np.maximum(high, highs.max(axis=0))
        least, most = (
            np.partition(ends, self._position - 1)[self._position - 1] for ends in (low, np.minimum(high, _MOST))
        )
        return low, least, most

    def _critical(self, pairs: BoolArray, low: Floats, least: Floats, most: Floats) -> int:
        """Return the critical value; low, least, most: as of `_bounds`."""
        if np.rint(least) == np.rint(most):
            return int(np.rint(least))
        exact = np.where(low > most, int(np.rint(most)) + 1, 0)  # above it, or below
        for row, others, lows, highs in self._statistics(pairs):
            for other, replicate in np.argwhere((highs >= least) & (lows <= most)).tolist():
                statistic = self._statistic(row, int(others[other]), replicate)
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
