"""Sets of ranks: which ranks the data allow each participant, all at once."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache, cached_property
from math import ceil, floor, isqrt
from typing import NamedTuple, TypeVar

import numpy as np

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.core.enclosures import BITS, bounds_of
from forecast_ledger.projections.core.estimates import Floats
from forecast_ledger.projections.core.powers import root_half_even
from forecast_ledger.projections.studies.estimates import scaled, studentised
from forecast_ledger.projections.studies.replicates import PLACES, Fixed, Integers, Totals, products_of_rows
from forecast_ledger.projections.studies.resampling import check_range

CLOSE = 160  # places of the numbers of a pair that PLACES leave in doubt
Bounds = tuple[int, int]
_BITS = 61  # of the numbers of which products are added up
_T = TypeVar("_T", int, tuple[Fraction, Fraction, int, int])


class RankSets(NamedTuple):
    """The best and the worst rank that each participant may have.

    needed: the difference of totals, 1e-9, from which on one would be significant for each pair, rising.
    """

    best: list[int]
    worst: list[int]
    needed: list[int]


def rank_sets(worth: Sequence[Fraction], replicates: Totals, alike: Int64Array, place: int) -> RankSets:
    """Return the best and the worst rank that each participant may have, at the confidence of an order statistic.

    worth: totals on the board, 1e-9, the larger the better, shape (p,). replicates: of them, shape (p, b), b > 1.
    alike: rows with the same number have the same scores, shape (p,). place: the order statistic, 1 … b, of the
    largest studentised difference |(d* - d) / s| of all pairs, d the difference of two participants on the board, d* in
    a replicate, and s the standard deviation of d* (at least 1e-9). Who has a larger d / s than that is significantly
    better. The best rank is 1 + the number who are significantly better, the worst is p - the number who are
    significantly worse.

    Source: Mogstad et al. (2023), Review of Economic Studies 91(1):476-518,
    doi:10.1093/restud/rdad006, "Simultaneous confidence sets", with symmetric intervals and without steps.
    """
    critical = _Critical(_Pairs(worth, replicates, alike), place)
    people, needed = len(worth), list[int]()
    better, worse = np.zeros(people, np.int64), np.zeros(people, np.int64)
    for first in range(people - 1):
        up, down = critical.significant(first)
        worse[first] += up.sum()
        better[first] += down.sum()
        better[first + 1 :] += up
        worse[first + 1 :] += down
        needed += critical.needed(first)
    check_range(max(needed, default=0))
    return RankSets((1 + better).tolist(), (people - worse).tolist(), sorted(needed))


class _Pairs:
    """The differences of all pairs of participants in replicates and on the board; bounds are in 2^-PLACES."""

    def __init__(self, worth: Sequence[Fraction], replicates: Totals, alike: Int64Array) -> None:
        """See `rank_sets`."""
        self.alike, self.places = alike, PLACES
        bounds = [(low >> BITS - PLACES, (high >> BITS - PLACES) + 1) for low, high in map(bounds_of, worth)]
        low, high = np.array(bounds, object).reshape(-1, 2).T
        self._board = Fixed(low[:, None], (high - low)[:, None].astype(np.int64), PLACES)
        self.closely = _Closely(worth, replicates)
        self._moved = replicates.fixed.plus(self._board.times(-1))
        self._near_board, self._near_moved = self._board.near(), self._moved.near()
        self.deviations = _deviations(replicates.fixed)
        every = np.arange(replicates.defined.shape[1])
        self._exact = cache(lambda row: replicates.exact(row, every))
        self._apart = cache(lambda first, second: worth[first] - worth[second])
        self.variance = cache(self._variance)

    def moved(self, first: int, columns: Int64Array | slice = slice(None)) -> tuple[Floats, Floats]:
        """Return bounds of the studentised differences of a row and each later one in some replicates."""
        return studentised(self._near_moved.at(columns), first, self._later(first))

    def apart(self, first: int) -> tuple[Floats, Floats]:
        """Return bounds of the studentised differences of a row and each later one on the board."""
        low, high = studentised(self._near_board, first, self._later(first))
        return low[:, 0], high[:, 0]

    def ahead(self, first: int) -> BoolArray:
        """Return which later rows have less than a row on the board, as far as the bounds tell."""
        ahead: BoolArray = (self._board.low[first] > self._board.low[first + 1 :])[:, 0].astype(bool)
        return ahead

    def _later(self, first: int) -> list[Floats]:
        return [scaled(ends[first, first + 1 :, None], PLACES) for ends in self.deviations]

    def deviation(self, first: int, second: int) -> Bounds:
        """Return bounds of a standard deviation, in 2^-places."""
        low, high = self.deviations
        return low[first, second], high[first, second]

    def studentised(self, first: int, second: int, replicate: int) -> Bounds:
        """Return bounds of a studentised difference in a replicate, in 2^-(3 places)."""
        lows, widths = ([int(of[row, replicate]) for row in (first, second)] for of in self._moved[:2])
        return _studentised(lows, widths, self.places, self.deviation(first, second))

    def difference(self, first: int, second: int, replicate: int | None = None) -> Fraction:
        """Return the exact difference on the board, or how far it moves in a replicate."""
        apart = self._apart(first, second)
        if replicate is None:
            return apart
        return self._exact(first)[replicate] - self._exact(second)[replicate] - apart

    def _variance(self, first: int, second: int) -> Fraction:
        """Return the exact square of the standard deviation, at least 1."""
        apart = [one - other for one, other in zip(self._exact(first), self._exact(second), strict=True)]
        total, squares = sum(apart, Fraction(0)), sum([each**2 for each in apart], Fraction(0))
        return max(Fraction(len(apart) * squares - total**2, len(apart) * (len(apart) - 1)), Fraction(1))


def _deviations(totals: Fixed) -> tuple[Integers, Integers]:
    """Return bounds of the standard deviations of the differences of each two rows, at least 1, in 2^-PLACES."""
    count = totals.low.shape[1]
    centred = totals.low - (totals.low.sum(axis=1) // count)[:, None]
    shift = max(int(abs(centred).max()).bit_length() - _BITS, 0)
    width = (int(totals.width.max()) >> shift) + 2 * (shift > 0)
    narrow = (centred >> shift).astype(np.int64)
    sums, products = np.array([sum(own) for own in narrow.tolist()], object), products_of_rows(narrow)
    squares = np.diag(products)[:, None] + np.diag(products)[None] - 2 * products
    over = count * (count - 1)
    roots = np.frompyfunc(isqrt, 1, 1)((count * squares - (sums[:, None] - sums[None]) ** 2) // over)
    # Each difference errs by at most the width, and less the mean of these errors, the root of their squares is less
    # than twice that, with count - 1 in place of count.
    ends = (roots - 2 * width << shift, roots + 1 + 2 * width << shift)
    low, high = (np.maximum(end, 1 << PLACES) for end in ends)
    return low, high


class _Closely:
    """The differences of one pair of participants at a time, with bounds in 2^-CLOSE."""

    def __init__(self, worth: Sequence[Fraction], replicates: Totals) -> None:
        """See `rank_sets`."""
        self.places = CLOSE
        self._board = cache(lambda row: floor(worth[row] * (1 << CLOSE)))
        self._row = cache(lambda row: replicates.closely(row, CLOSE))
        self.deviation = cache(self._deviation)

    def _deviation(self, first: int, second: int) -> Bounds:
        """Return bounds of a standard deviation, at least 1, in 2^-places."""
        one, other = self._row(first), self._row(second)
        apart, width = (one.low - other.low)[0].tolist(), int(one.width.max()) + int(other.width.max())
        count, squares = len(apart), sum([each * each for each in apart])
        root = isqrt((count * squares - sum(apart) ** 2) // (count * (count - 1)))
        return max(root - 2 * width, 1 << CLOSE), max(root + 1 + 2 * width, 1 << CLOSE)  # as in `_deviations`

    def studentised(self, first: int, second: int, replicate: int | None = None) -> Bounds:
        """Return bounds of a studentised difference on the board, or in a replicate, in 2^-(3 places)."""
        lows, widths = [self._board(row) for row in (first, second)], [1, 1]
        if replicate is not None:
            for place, row in enumerate((first, second)):
                low, width, _ = self._row(row)
                lows[place] = low[0, replicate] - lows[place] - 1
                widths[place] += int(width[0, replicate])
        return _studentised(lows, widths, CLOSE, self.deviation(first, second))


def _studentised(lows: list[int], widths: list[int], places: int, deviation: Bounds) -> Bounds:
    """Return bounds of the size of the difference of two numbers, over a deviation; each is from low to low + width."""
    (low, other), (width, wide) = lows, widths
    least, most = low - other - wide, low + width - other
    size = max(least, -most, 0), max(-least, most)
    return (size[0] << 3 * places) // deviation[1], -(-(size[1] << 3 * places) // deviation[0])


class _Critical:
    """The critical value: the order statistic of the largest studentised difference of all pairs."""

    def __init__(self, pairs: _Pairs, place: int) -> None:
        """place: from 1."""
        self._pairs, self._place = pairs, place
        bounds = [[ends.max(axis=0) for ends in pairs.moved(first)] for first in range(len(pairs.alike) - 1)]
        self._lows, self._highs = (np.maximum(np.max(ends, axis=0), 0) for ends in zip(*bounds, strict=True))
        self._low, self._high = (np.partition(ends, place - 1)[place - 1] for ends in (self._lows, self._highs))

    @cached_property
    def _largest(self) -> list[list[tuple[int, int, int]]]:
        """Where the largest studentised difference of a replicate may be that may be critical: pair and replicate."""
        columns = np.flatnonzero((self._highs >= self._low) & (self._lows <= self._high))
        found: list[list[tuple[int, int, int]]] = [[] for _ in columns]
        for first in range(len(self._pairs.alike) - 1):
            _, high = self._pairs.moved(first, columns)
            for later, place in np.argwhere(high >= self._lows[columns]).tolist():
                found[place].append((first, first + 1 + later, int(columns[place])))
        return found

    def _in_order(self, largest: list[_T]) -> _T:
        """Return the critical one of the largest values in those replicates."""
        return sorted(largest)[self._place - 1 - int((self._highs < self._low).sum())]

    @cached_property
    def _rough(self) -> list[int]:
        """Bounds of the critical value, in 2^-(3 PLACES)."""
        low, high = (Fraction(end) * (1 << 3 * PLACES) for end in (self._low, self._high))
        return [floor(low), ceil(high)]

    def _closer(self, pairs: "_Pairs | _Closely") -> list[int]:
        """Return closer bounds of the critical value, in 2^-(3 places)."""
        bounds = [[pairs.studentised(*each) for each in own] or [(0, 0)] for own in self._largest]
        return [self._in_order([max(each[end] for each in own) for own in bounds]) for end in (0, 1)]

    @cached_property
    def _bounds(self) -> list[int]:
        return self._closer(self._pairs)

    @cached_property
    def _closest(self) -> list[int]:
        return self._closer(self._pairs.closely)

    @cached_property
    def _exact(self) -> tuple[Fraction, Fraction, int, int]:
        """The exact square of the critical value, and the difference and the pair that it is of."""
        return self._in_order([max([self._squared(*each) for each in own] or [_NOTHING]) for own in self._largest])

    def _squared(self, first: int, second: int, replicate: int | None = None) -> tuple[Fraction, Fraction, int, int]:
        """Return the exact square of a studentised difference, with the size of the difference and the pair."""
        apart = self._pairs.difference(first, second, replicate)
        alike = self._pairs.alike[first] == self._pairs.alike[second]
        square = Fraction(0) if alike else Fraction(apart**2, self._pairs.variance(first, second))
        return square, abs(apart), first, second

    def significant(self, first: int) -> tuple[BoolArray, BoolArray]:
        """Return which later rows are significantly worse than a row, and which are better."""
        low, high = self._pairs.apart(first)
        certain, ahead = low > self._high, self._pairs.ahead(first)
        same = self._pairs.alike[first + 1 :] == self._pairs.alike[first]
        for later in np.flatnonzero(~certain & (high > self._low) & ~same).tolist():
            certain[later] = self._is_larger(first, first + 1 + later)
            ahead[later] = self._pairs.difference(first, first + 1 + later) > 0
        return certain & ahead, certain & ~ahead

    def _is_larger(self, first: int, second: int) -> bool:
        """Return whether a studentised difference on the board is above the critical value."""
        low, high = self._pairs.closely.studentised(first, second)
        if low > self._closest[1] or high <= self._closest[0]:
            return low > self._closest[1]
        return self._squared(first, second)[0] > self._exact[0]

    def needed(self, first: int) -> list[int]:
        """Return the critical value times the standard deviation of each later row, rounded half-even once."""
        return [self._needed(first, second) for second in range(first + 1, len(self._pairs.alike))]

    def _needed(self, first: int, second: int) -> int:
        for pairs, critical in self._closer_and_closer():
            ends = zip(critical, pairs.deviation(first, second), strict=True)
            low, high = (half_even(end * deviation, 1 << 4 * pairs.places) for end, deviation in ends)
            if low == high:
                return low
        return self._exactly(first, second)

    def _closer_and_closer(self) -> Iterator[tuple["_Pairs | _Closely", list[int]]]:
        """Yield bounds of the critical value, in 2^-(3 places), with the pairs whose deviations have as many places."""
        yield self._pairs, self._rough
        yield self._pairs, self._bounds
        yield self._pairs.closely, self._closest

    def _exactly(self, first: int, second: int) -> int:
        square, apart, *pair = self._exact
        if pair == [first, second]:
            return half_even(apart.numerator, apart.denominator)
        return root_half_even(square * self._pairs.variance(first, second))


_NOTHING = (Fraction(0), Fraction(0), 0, 0)
