"""Order statistics of replicates: the ends of intervals, from whole numbers or from numbers that are known nearly."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.core.estimates import Floats
from forecast_ledger.projections.studies.estimates import Near, order_bounds

LIMIT = 1 << 62  # of sums and published numbers

Ends = tuple[int, int] | None


class Limits(NamedTuple):
    """The limits of an interval. least, greatest: the values; low, high: replicates that have them, counted from 0."""

    least: int
    greatest: int
    low: int
    high: int


class Drawn(NamedTuple):
    """Numbers in replicates, shape (p, b). exact: returns those of a row in some replicates; they must be defined."""

    near: Near
    defined: BoolArray
    exact: Callable[[int, Int64Array], Sequence[Fraction]]

    def take(self, rows: Int64Array) -> "Drawn":
        """Return some rows."""
        return Drawn(self.near.take(rows), self.defined[rows], lambda row, at: self.exact(int(rows[row]), at))

    def at(self, which: Int64Array) -> "Drawn":
        """Return the numbers in these replicates."""
        return Drawn(self.near.at(which), self.defined[:, which], lambda row, at: self.exact(row, which[at]))

    def defined_of(self, row: int) -> tuple["Drawn", Int64Array]:
        """Return the row, with those of its numbers that are defined, and their replicates."""
        cells = np.flatnonzero(self.defined[row])
        return self.take(np.array([row])).at(cells), cells


def limits(values: Int64Array, level_ppm: int) -> Limits:
    """Return the order statistics between which the share `level` of the replicates lies.

    values: of each replicate, shape (b,), b > 0. If replicates have the same value, they keep their order.

    >>> limits(np.arange(1_999)[::-1], 950_000)
    Limits(least=49, greatest=1949, low=1949, high=49)
    """
    order = np.argsort(values, kind="stable")
    low, high = (int(order[place]) for place in _places(len(order), level_ppm))
    return Limits(int(values[low]), int(values[high]), low, high)


def drawn_limits(drawn: Drawn, row: int, level_ppm: int) -> Limits | None:
    """Return the limits of a row among its replicates that are defined, rounded half-even; None if none is."""
    own, cells = drawn.defined_of(row)
    if not len(cells):
        return None
    places = _places(len(cells), level_ppm)
    bounds = zip(places, *(ends[0].tolist() for ends in order_bounds(own.near, places)), strict=True)
    (least, low), (greatest, high) = (_exactly(own, 0, *each) for each in bounds)
    return Limits(_rounded(least), _rounded(greatest), int(cells[low]), int(cells[high]))


def ends(values: Int64Array, level_ppm: int) -> list[tuple[int, int]]:
    """Return the least and greatest values of `limits` for each row; shape (n, b).

    >>> ends(np.arange(3_998).reshape(2, -1), 950_000)
    [(49, 1949), (2048, 3948)]
    """
    places = _places(values.shape[1], level_ppm)
    return [*map(tuple, np.partition(values, places, axis=1)[:, places].tolist())]


def drawn_ends(drawn: Drawn, level_ppm: int) -> list[Ends]:
    """Return the limits of each row, as `drawn_limits` gives them."""
    whole = np.asarray(drawn.defined.all(axis=1))
    rows = np.flatnonzero(whole)
    found: list[Ends] = [None] * len(whole)
    for row, own in zip(rows.tolist(), _ends(drawn.take(rows), level_ppm), strict=True):
        found[row] = own
    for row in np.flatnonzero(~whole & drawn.defined.any(axis=1)).tolist():
        [found[row]] = _ends(drawn.defined_of(row)[0], level_ppm)
    return found


def _ends(drawn: Drawn, level_ppm: int) -> list[tuple[int, int]]:
    low, high = order_statistics(drawn, _places(drawn.defined.shape[1], level_ppm)).T.tolist()
    return [*zip(low, high, strict=True)]


def order_statistics(drawn: Drawn, places: tuple[int, ...]) -> Int64Array:
    """Return the order statistics at places from 0, rounded half-even once, shape (p, places). All must be defined.

    Raises Refused(out_of_range).
    """
    low, high = order_bounds(drawn.near, places)
    found = np.rint(low).astype(object)
    for row, place in np.argwhere(np.rint(low) != np.rint(high)).tolist():
        exact, _ = _exactly(drawn, row, places[place], low[row, place], high[row, place])
        found[row, place] = _rounded(exact)
    check_range(int(abs(found).max(initial=0)))
    return found.astype(np.int64)


def _exactly(drawn: Drawn, row: int, place: int, low: Floats, high: Floats) -> tuple[Fraction, int]:
    """Return the order statistic of a row, which is known to be from low to high, and the replicate that has it."""
    own = drawn.near.take(np.array([row]))
    [lows], [highs] = own.low, own.high
    cells = np.flatnonzero((highs >= low) & (lows <= high))
    ordered = sorted(zip(drawn.exact(row, cells), cells.tolist(), strict=True))
    return ordered[place - int((highs < low).sum())]


def _rounded(number: Fraction) -> int:
    return half_even(number.numerator, number.denominator)


def _places(count: int, level_ppm: int) -> tuple[int, int]:
    """Return the places of the lower and the upper limit among so many replicates, from 0."""
    outside = max((10**6 - level_ppm) * (count + 1) // (2 * 10**6), 1)
    return outside - 1, count - outside


def check_range(largest: int) -> None:
    """Raise Refused(out_of_range) if numbers may need more than 62 bits."""
    if largest >= LIMIT:
        raise Refused("out_of_range", "intervals", None, "the scores are too large for sums in 64 bits")
