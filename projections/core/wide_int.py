"""Exact integers in NumPy: logarithms rounded once, and sums of products that do not fit in 64 bits.

Sums of term x µs need about 100 bits, and 64-bit sums wrap in silence. A `Limbs` value is low + middle·2^36 + high·2^72
with low and middle in [0, 2^36), so that any 2^26 of them can be added without a carry being lost. And the order, the
runs and the distinct ones of integers that are keys.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from forecast_ledger.ledger.core.exact import QUANTUM, half_even, ln_fixed, log2_fixed

Int64Array = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_BITS = 36
_MASK = (1 << _BITS) - 1
_HALF_BITS = 18
_HALF_MASK = (1 << _HALF_BITS) - 1
_FEW = 4_096  # keys that are sorted faster by comparing them
LARGEST_TERM = 3 * 10**13  # in one product; |ln| of 1e-10 is 2.4e13 of 1e-12, times 2^18 it still fits
LARGEST_WEIGHT = 1 << 3 * _HALF_BITS  # µs; 570 years
LARGEST_COUNT = 1 << 26


class Limbs(NamedTuple):
    """Exact wide integers, shape (n,) each."""

    low: Int64Array
    middle: Int64Array
    high: Int64Array

    @classmethod
    def product(cls, terms: Int64Array, weights: Int64Array) -> Self:
        """Terms x weights, 0 <= weight < LARGEST_WEIGHT.

        >>> Limbs.product(np.array([-(10**13)]), np.array([10**16])).integers()
        [-100000000000000000000000000000]
        """
        if len(terms) and max(int(terms.max()), -int(terms.min())) > LARGEST_TERM:
            rest, above = cls.product(terms & _MASK, weights), cls.product(terms >> _BITS, weights)
            middle, high = rest.middle + above.low, rest.high + above.middle + (above.high << _BITS)
            return cls(rest.low, middle, high).carried()
        first = terms * (weights & _HALF_MASK)
        second = terms * ((weights >> _HALF_BITS) & _HALF_MASK)
        third = terms * (weights >> 2 * _HALF_BITS)
        low = (first & _MASK) + ((second & _HALF_MASK) << _HALF_BITS)
        middle = (first >> _BITS) + (second >> _HALF_BITS) + (third & _MASK)
        return cls(low, middle, third >> _BITS).carried()

    @classmethod
    def of(cls, values: Int64Array) -> Self:
        """The same numbers, wide."""
        above = values >> _BITS
        return cls(values & _MASK, above & _MASK, above >> _BITS)

    @classmethod
    def wide(cls, numbers: Sequence[int]) -> Self:
        """These numbers, of at most 134 bits.

        >>> Limbs.wide([-1, 1 << 100]).integers() == [-1, 1 << 100]
        True
        """
        parts = [(number & _MASK, number >> _BITS & _MASK, number >> 2 * _BITS) for number in numbers]
        return cls(*np.array(parts, np.int64).reshape(-1, 3).T)

    def carried(self) -> Self:
        """The same numbers with low and middle brought into [0, 2^36)."""
        middle = self.middle + (self.low >> _BITS)
        return type(self)(self.low & _MASK, middle & _MASK, self.high + (middle >> _BITS))

    def times(self, terms: Int64Array) -> Self:
        """These numbers, not negative and less than 2^76, by terms of less than 2^58.

        >>> Limbs.of(np.array([3])).shifted(50).times(np.array([-5])).integers() == [-15 << 50]
        True
        """
        wide = self.carried()
        if not (wide.middle.any() or wide.high.any()):
            return type(self).product(terms, wide.low)
        rest, above = type(self).product(terms, wide.low), type(self).product(terms, wide.middle)
        high = rest.high + above.middle + (above.high << _BITS) + terms * wide.high
        return type(self)(rest.low, rest.middle + above.low, high).carried()

    def scaled(self, factors: Int64Array) -> Self:
        """These numbers by factors > 0. Raises OverflowError: one might not fit in 134 bits.

        >>> Limbs.wide([1 << 90]).scaled(np.array([3])).integers() == [3 << 90]
        True
        """
        wide, most = self.carried(), int(factors.max(initial=1))
        if most == 1:
            return wide
        highest = max(int(wide.high.max()), -int(wide.high.min()))
        if most >> 62 - _BITS or highest * most >> 62:
            raise OverflowError("a product of more than 134 bits")
        return type(self)(*(limb * factors for limb in wide)).carried()

    def shifted(self, bits: int) -> Self:
        """These numbers by 2^bits."""
        wide = self
        for step in [_BITS // 2] * (bits // (_BITS // 2)) + [bits % (_BITS // 2)]:
            wide = wide.carried()
            wide = type(self)(*(limb << step for limb in wide)).carried()
        return wide

    def __add__(self, other: "Limbs") -> Self:  # type: ignore[override]
        return type(self)(self.low + other.low, self.middle + other.middle, self.high + other.high)

    def __sub__(self, other: "Limbs") -> Self:
        return type(self)(self.low - other.low, self.middle - other.middle, self.high - other.high)

    def take(self, index: Int64Array) -> Self:
        """The numbers at these places."""
        return type(self)(*(limb[index] for limb in self))

    def running(self) -> Self:
        """Sums of the first 0, 1, … n numbers, shape (n + 1,)."""
        return type(self)(*(np.concatenate(([0], np.cumsum(limb))) for limb in self)).carried()

    def summed(self, starts: Int64Array) -> Self:
        """Sums over runs; starts, shape (m,), is where each run of one or more begins, increasing."""
        if not len(starts):
            return self.take(starts)
        sizes = (np.abs(self.high) >> _BITS // 2) + 1  # in 2^18, rounded up
        if int(np.add.reduceat(sizes, starts).max()) > 1 << 62 - _BITS // 2:
            raise OverflowError("a sum of more than 134 bits")
        return type(self)(*(np.add.reduceat(limb, starts) for limb in self.carried())).carried()

    def totals(self, starts: Int64Array) -> list[int]:
        """What `summed` gives, as Python integers and of any size.

        >>> Limbs.of(np.array([1 << 62] * 4)).shifted(70).totals(np.array([0])) == [1 << 134]
        True
        """
        wide = self.carried()
        lower = Limbs(wide.low, wide.middle, wide.high & _MASK).summed(starts).integers()
        above = Limbs.of(wide.high >> _BITS).summed(starts).integers()
        return [(high << 3 * _BITS) + low for high, low in zip(above, lower, strict=True)]

    def integers(self) -> list[int]:
        """Python integers."""
        parts = zip(self.high.tolist(), self.middle.tolist(), self.low.tolist(), strict=True)
        return [(high << 2 * _BITS) + (middle << _BITS) + low for high, middle, low in parts]


def column(numbers: Sequence[int]) -> Int64Array:
    """Numbers as an array, shape (n,). Raises OverflowError if one needs more than 64 bits.

    >>> column([1, 2]).dtype
    dtype('int64')
    """
    return np.array(numbers, np.int64)


def runs(*keys: Int64Array) -> Int64Array:
    """Where each run of rows with equal keys begins, shape (m,), as `Limbs.summed` takes it; keys: shape (n,) each.

    >>> runs(column([7, 7, 7, 5]), column([1, 1, 2, 2])).tolist()
    [0, 2, 3]
    """
    other = np.zeros(max(len(keys[0]) - 1, 0), bool)
    for key in keys:
        other |= key[1:] != key[:-1]
    return np.flatnonzero(np.append(True, other)[: len(keys[0])])


def chosen(rows: BoolArray) -> Int64Array | slice:
    """An index of what is true, shape (m,); a plain slice if all is.

    >>> chosen(column([1, 1]) > 0), chosen(column([1, 0]) > 0)
    (slice(None, None, None), array([0]))
    """
    return slice(None) if rows.all() else np.flatnonzero(rows)


def ordered(key: Int64Array) -> Int64Array:
    """The order of rows by their key, shape (n,); equal ones stay in order. O(n) for every 16 bits of their range.

    >>> ordered(column([70_000, -1, 70_000, 5])).tolist()
    [1, 3, 0, 2]
    """
    if (key[1:] >= key[:-1]).all():
        return np.arange(len(key))
    if len(key) < _FEW:
        return np.argsort(key, kind="stable")
    rest = (key - key.min()).astype("<u8")  # keys may lie more than 2^63 apart: a difference is right without a sign
    digits = rest.view("<u2").reshape(-1, 4)
    order = np.argsort(digits[:, 0], kind="stable")  # NumPy sorts 16 bits by counting
    for place in range(1, (int(rest.max()).bit_length() + 15) // 16):
        order = order[np.argsort(digits[:, place][order], kind="stable")]
    return order


def distinct(key: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The different keys, ascending, and which of them each row has, shape (n,). O(n) where they lie close together.

    >>> [found.tolist() for found in distinct(column([7, -1, 7]))]
    [[-1, 7], [1, 0, 1]]
    """
    if not len(key) or int(key.max()) - int(key.min()) > 4 * len(key):
        found, which = np.unique(key, return_inverse=True)
        return found, which
    place = key - key.min()
    there = np.zeros(int(place.max()) + 1, bool)
    there[place] = True
    return np.flatnonzero(there) + key.min(), (np.cumsum(there) - 1)[place]


def half_even_many(numerators: Int64Array, denominators: Int64Array | int) -> Int64Array:
    """half_even of every pair; 0 < denominator < 2^62, shape (n,).

    >>> half_even_many(np.array([-3, -1, 1, 3, 5]), 2).tolist()
    [-2, 0, 0, 2, 2]
    """
    return to_even(*np.divmod(numerators, denominators), denominators)


def to_even(quotients: Int64Array, rests: Int64Array, denominators: Int64Array | int) -> Int64Array:
    """Quotients rounded half-even by what is left over, 0 <= rest < denominator < 2^62, shape (n,).

    The only place where arrays are rounded half-even. They may hold integers of 64 bits or Python's own.

    >>> to_even(column([1, 2, 2]), column([1, 1, 2]), column([2, 2, 3])).tolist()
    [2, 2, 3]
    """
    doubled = 2 * rests
    up: Int64Array = (doubled > denominators) | ((doubled == denominators) & (quotients & 1 == 1))
    rounded: Int64Array = quotients + up
    return rounded


def multiplied(numbers: Limbs, factors: Sequence[Fraction], which: Int64Array) -> Int64Array | list[int]:
    """Numbers x factors[which], each rounded half-even once; a list if one needs more than 62 bits. Shape (n,).

    An estimate decides where it is certain.

    >>> multiplied(Limbs.of(np.array([1, 3, -5])), [Fraction(5, 2), Fraction(10, 3)], np.array([0, 0, 1])).tolist()
    [2, 8, -17]
    """
    wide = numbers.carried()
    scale = np.array([factor.numerator / factor.denominator for factor in factors], np.float64)[which]
    above, rest = wide.high * 2.0 ** (2 * _BITS), wide.middle * 2.0**_BITS + wide.low
    value = (above + rest) * scale
    guard = (np.abs(above) + rest) * np.abs(scale) * 2.0**-49  # there are six roundings, each of 2^-53 at most
    rounded, doubtful = nearest(value, guard)
    exact = [
        half_even(number * factors[place].numerator, factors[place].denominator)
        for number, place in zip(wide.take(doubtful).integers(), which[doubtful].tolist(), strict=True)
    ]
    if max(map(abs, exact), default=0) < 1 << 62:
        rounded[doubtful] = exact
        return rounded
    every: list[int] = rounded.tolist()
    for row, number in zip(doubtful.tolist(), exact, strict=True):
        every[row] = number
    return every


def ln_many(k: Int64Array, unit: int) -> Int64Array:
    """ln_fixed of every k, 0 < k < 2^62, shape (n,), 1e-12 nat; 20 to 50 ns each.

    >>> ln_many(np.array([1, 2]), 2).tolist()
    [-693147180560, 0]
    """
    return _guarded(k, unit, np.log, ln_fixed)


def log2_many(k: Int64Array, unit: int) -> Int64Array:
    """log2_fixed of every k, likewise.

    >>> log2_many(np.array([1, 2]), 8).tolist()
    [-3000000000000, -2000000000000]
    """
    return _guarded(k, unit, np.log2, log2_fixed)


def _guarded(
    k: Int64Array, unit: int, estimate: Callable[..., NDArray[np.float64]], exactly: Callable[[int, int], int]
) -> Int64Array:
    """Round a float estimate where it is certain, and evaluate exactly where a rounding boundary is too near.

    Only one thing is assumed of the platform: its logarithm errs by less than 8 units in the last place (1 is the most
    ever measured, 4 the most any vendor documents). k / unit errs by half a unit, which moves the logarithm by less
    than 2^-52, and by as much for either of them that has more than 53 bits; the product with QUANTUM errs by half a
    unit.
    """
    value = estimate(k / unit) * QUANTUM
    argument = 2.0**-52 if unit < 1 << 53 else 2.0**-50
    rounded, doubtful = nearest(value, QUANTUM * argument + np.abs(value) * 9 * 2.0**-52)
    for row in doubtful.tolist():
        rounded[row] = exactly(int(k[row]), unit)
    return rounded


def nearest(values: NDArray[np.float64], guards: NDArray[np.float64]) -> tuple[Int64Array, Int64Array]:
    """The integers nearest to estimates that err by less than their guards, and the rows, holding 0, where a tie is so
    near that an estimate does not decide; shape (n,).

    >>> [each.tolist() for each in nearest(np.array([1.25, 2.4999]), np.array([0.001, 0.001]))]
    [[1, 0], [1]]
    """
    near = np.rint(values)
    doubtful = np.flatnonzero(np.abs(values - near) > 0.5 - guards)
    near[doubtful] = 0  # an estimate of any size is cast
    return near.astype(np.int64), doubtful
