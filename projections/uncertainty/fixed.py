"""Numbers in replicates with guard digits: integers in 2^-PLACES that are too low by at most some units."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.estimates import floats, matrix_product, wide_matrix_product
from forecast_ledger.projections.uncertainty.estimates import Near, near_fixed

PLACES = 32
_PART, _PART_BITS = 1 << 9, 21  # so many products of two limbs are added exactly in floats

Integers = NDArray[np.object_]


class Fixed(NamedTuple):
    """Numbers from low to low + width, both in 2^-PLACES, shape (p, b); 0 is the width of what is exact."""

    low: Integers
    width: Int64Array

    def plus(self, other: "Fixed") -> "Fixed":
        """Return the sums."""
        return Fixed(self.low + other.low, self.width + other.width)

    def times(self, factor: int) -> "Fixed":
        """Return the numbers times a factor."""
        return Fixed((self.low if factor > 0 else self.low + self.width) * factor, self.width * abs(factor))

    def over(self, divisor: "Fixed") -> "Fixed":
        """Return the quotients; 0 where the divisor is 0, which else is above 0."""
        zero = divisor.low == 0
        over = np.where(zero, max(int(divisor.low.max(initial=0)), 1), divisor.low) if zero.any() else divisor.low
        low: Integers = (self.low << PLACES) // over
        exact = (self.width == 0) & (divisor.width == 0)
        if exact.any():
            exact = exact & (low * over == self.low << PLACES)
        if divisor.width.any():
            low = np.minimum(low, (self.low << PLACES) // (over + divisor.width))
        # A numerator may be higher by its width, and a quotient lower by the share of the width of its divisor.
        widest, wide = (int(each.width.max(initial=0)) for each in (self, divisor))
        further = (widest << PLACES) + wide * int(abs(low).max(initial=0))
        width = np.where(exact | zero, 0, 2 * (further // int(over.min(initial=over.max(initial=1))) + 2))
        return Fixed(np.where(zero, 0, low) if zero.any() else low, width)

    def at_least(self, least: int) -> "Fixed":
        """Return the larger of each number and another one."""
        return Fixed(np.maximum(self.low, least << PLACES), self.width)

    def take(self, rows: Int64Array) -> "Fixed":
        """Return some rows."""
        return Fixed(self.low[rows], self.width[rows])

    def at(self, columns: Int64Array) -> "Fixed":
        """Return some columns."""
        return Fixed(self.low[:, columns], self.width[:, columns])

    def near(self) -> Near:
        """Return floats near the numbers."""
        return near_fixed(self.low, self.width, PLACES)


def fixed_integers(numbers: Int64Array) -> Fixed:
    """Return integers, shape (p, b)."""
    low: Integers = numbers.astype(object)
    return Fixed(low * (1 << PLACES), np.zeros_like(numbers))


def drawn_sums(
    owner: Int64Array, unit: Int64Array, values: Sequence[tuple[int, bool]], people: int, times: Int64Array
) -> Fixed:
    """Return the sums of the values of each owner, each as often as its unit is drawn, shape (p, b).

    values: numbers in 2^-PLACES, rounded down, and whether they were. times: integers from 0 on, shape (u, b).
    """
    low, rounded = [*zip(*values, strict=True)] or [(), ()]
    by_unit, inexact = np.zeros((people, len(times)), object), np.zeros((people, len(times)), np.int64)
    np.add.at(by_unit, (owner, unit), np.array(low, object))
    np.add.at(inexact, (owner, unit), np.array(rounded, np.int64))
    return Fixed(wide_matrix_product(by_unit, times), matrix_product(inexact, times))


def products_of_rows(rows: Int64Array) -> Integers:
    """Return Σ row x row of each two rows, exact; shape (p, b) gives (p, p). All numbers must be below 2^62.

    >>> products_of_rows(np.array([[1 << 60, -1], [2, 5]])).tolist() == [[2**120 + 1, 2**61 - 5], [2**61 - 5, 29]]
    True
    """
    low, high = rows & ((1 << 2 * _PART_BITS) - 1), rows >> 2 * _PART_BITS
    limbs = np.concatenate([floats(each) for each in (low & ((1 << _PART_BITS) - 1), low >> _PART_BITS, high)])
    total = np.zeros((len(rows), len(rows)), object)
    for begin in range(0, rows.shape[1], _PART):
        part = limbs[:, begin : begin + _PART]
        products = (part @ part.T).astype(np.int64).reshape(3, len(rows), 3, len(rows))
        for one, other in np.ndindex(3, 3):
            total += products[one, :, other].astype(object) << _PART_BITS * (one + other)
    return total
