"""Wide integers in NumPy: exact sums of products that do not fit in 64 bits.

Sums of term x µs need about 100 bits, and 64-bit sums wrap without an error. A `WideInt` is low + middle·2^36 +
high·2^72 with low and middle in [0, 2^36), so that 2^26 of them can be added word by word before a carry is lost.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from forecast_ledger.projections.core.arrays import Int64Array

WORD_BITS = 36
_MASK = (1 << WORD_BITS) - 1
_HALF_BITS = 18
_HALF_MASK = (1 << _HALF_BITS) - 1
LARGEST_TERM = 3 * 10**13  # of one product; |ln 1e-10| is 2.4e13 of 1e-12, and that times 2^18 fits in 64 bits
LARGEST_WEIGHT = 1 << 3 * _HALF_BITS  # µs; 570 years
LARGEST_COUNT = 1 << 26


class WideInt(NamedTuple):
    """Exact integers of up to 134 bits; three words of shape (n,) each."""

    low: Int64Array
    middle: Int64Array
    high: Int64Array

    @classmethod
    def product(cls, terms: Int64Array, weights: Int64Array) -> Self:
        """Return terms x weights, 0 <= weight < LARGEST_WEIGHT.

        >>> WideInt.product(np.array([-(10**13)]), np.array([10**16])).integers()
        [-100000000000000000000000000000]
        """
        if len(terms) and max(int(terms.max()), -int(terms.min())) > LARGEST_TERM:
            rest, above = cls.product(terms & _MASK, weights), cls.product(terms >> WORD_BITS, weights)
            middle, high = rest.middle + above.low, rest.high + above.middle + (above.high << WORD_BITS)
            return cls(rest.low, middle, high).carried()
        first = terms * (weights & _HALF_MASK)
        second = terms * ((weights >> _HALF_BITS) & _HALF_MASK)
        third = terms * (weights >> 2 * _HALF_BITS)
        low = (first & _MASK) + ((second & _HALF_MASK) << _HALF_BITS)
        middle = (first >> WORD_BITS) + (second >> _HALF_BITS) + (third & _MASK)
        return cls(low, middle, third >> WORD_BITS).carried()

    @classmethod
    def from_int64(cls, values: Int64Array) -> Self:
        """Return 64-bit numbers as wide ones."""
        above = values >> WORD_BITS
        return cls(values & _MASK, above & _MASK, above >> WORD_BITS)

    @classmethod
    def from_integers(cls, numbers: Sequence[int]) -> Self:
        """Return Python integers of at most 134 bits as wide numbers.

        >>> WideInt.from_integers([-1, 1 << 100]).integers() == [-1, 1 << 100]
        True
        """
        parts = [(number & _MASK, number >> WORD_BITS & _MASK, number >> 2 * WORD_BITS) for number in numbers]
        return cls(*np.array(parts, np.int64).reshape(-1, 3).T)

    def carried(self) -> Self:
        """Return the same numbers with carries propagated: low and middle in [0, 2^36)."""
        middle = self.middle + (self.low >> WORD_BITS)
        return type(self)(self.low & _MASK, middle & _MASK, self.high + (middle >> WORD_BITS))

    def times(self, terms: Int64Array) -> Self:
        """Multiply numbers, not negative and less than 2^76, by terms of less than 2^58.

        >>> WideInt.from_int64(np.array([3])).shifted(50).times(np.array([-5])).integers() == [-15 << 50]
        True
        """
        wide = self.carried()
        if not (wide.middle.any() or wide.high.any()):
            return type(self).product(terms, wide.low)
        rest, above = type(self).product(terms, wide.low), type(self).product(terms, wide.middle)
        high = rest.high + above.middle + (above.high << WORD_BITS) + terms * wide.high
        return type(self)(rest.low, rest.middle + above.low, high).carried()

    def scaled(self, factors: Int64Array) -> Self:
        """Multiply by factors > 0. Raises OverflowError if a product might not fit in 134 bits.

        >>> WideInt.from_integers([1 << 90]).scaled(np.array([3])).integers() == [3 << 90]
        True
        """
        wide, most = self.carried(), int(factors.max(initial=1))
        if most == 1:
            return wide
        highest = max(int(wide.high.max()), -int(wide.high.min()))
        if most >> 62 - WORD_BITS or highest * most >> 62:
            raise OverflowError("a product of more than 134 bits")
        return type(self)(*(word * factors for word in wide)).carried()

    def shifted(self, bits: int) -> Self:
        """Multiply by 2^bits."""
        wide = self
        for step in [WORD_BITS // 2] * (bits // (WORD_BITS // 2)) + [bits % (WORD_BITS // 2)]:
            wide = wide.carried()
            wide = type(self)(*(word << step for word in wide)).carried()
        return wide

    def __add__(self, other: "WideInt") -> Self:  # type: ignore[override]
        return type(self)(self.low + other.low, self.middle + other.middle, self.high + other.high)

    def __sub__(self, other: "WideInt") -> Self:
        return type(self)(self.low - other.low, self.middle - other.middle, self.high - other.high)

    def take(self, index: Int64Array) -> Self:
        """Return the numbers at these indices."""
        return type(self)(*(word[index] for word in self))

    def prefix_sums(self) -> Self:
        """Return the sums of the first 0, 1, … n numbers, shape (n + 1,)."""
        return type(self)(*(np.concatenate(([0], np.cumsum(word))) for word in self)).carried()

    def run_sums(self, starts: Int64Array) -> Self:
        """Return the sum of each run; starts, shape (m,), increasing: where each run of one or more numbers begins.

        Raises OverflowError if a sum might not fit in 134 bits.
        """
        if not len(starts):
            return self.take(starts)
        sizes = (np.abs(self.high) >> WORD_BITS // 2) + 1  # in 2^18, rounded up
        if int(np.add.reduceat(sizes, starts).max()) > 1 << 62 - WORD_BITS // 2:
            raise OverflowError("a sum of more than 134 bits")
        return type(self)(*(np.add.reduceat(word, starts) for word in self.carried())).carried()

    def unbounded_run_sums(self, starts: Int64Array) -> list[int]:
        """Return what `run_sums` returns, as Python integers of any size.

        >>> WideInt.from_int64(np.array([1 << 62] * 4)).shifted(70).unbounded_run_sums(np.array([0])) == [1 << 134]
        True
        """
        wide = self.carried()
        lower = WideInt(wide.low, wide.middle, wide.high & _MASK).run_sums(starts).integers()
        above = WideInt.from_int64(wide.high >> WORD_BITS).run_sums(starts).integers()
        return [(high << 3 * WORD_BITS) + low for high, low in zip(above, lower, strict=True)]

    def integers(self) -> list[int]:
        """Return the numbers as Python integers."""
        parts = zip(self.high.tolist(), self.middle.tolist(), self.low.tolist(), strict=True)
        return [(high << 2 * WORD_BITS) + (middle << WORD_BITS) + low for high, middle, low in parts]
