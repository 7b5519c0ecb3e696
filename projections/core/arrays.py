"""Arrays of 64-bit integers, and their quotients rounded half-even."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_HALF = 25  # bits of a limb of a number that is squared: 2^12 products of two limbs can be added in 64 bits
_PART = 1 << 12  # numbers of a row that are squared at a time


def int64_array(numbers: Sequence[int]) -> Int64Array:
    """Return numbers as an array, shape (n,). Raises OverflowError if one needs more than 64 bits.

    >>> int64_array([1, 2]).dtype
    dtype('int64')
    """
    return np.array(numbers, np.int64)


def half_even_many(numerators: Int64Array, denominators: Int64Array | int) -> Int64Array:
    """Return `half_even` of every pair; 0 < denominator < 2^62, shape (n,).

    >>> half_even_many(np.array([-3, -1, 1, 3, 5]), 2).tolist()
    [-2, 0, 0, 2, 2]
    """
    return round_half_even(*np.divmod(numerators, denominators), denominators)


def round_half_even(quotients: Int64Array, remainders: Int64Array, denominators: Int64Array | int) -> Int64Array:
    """Round quotients half-even by their remainders, 0 <= remainder < denominator < 2^62, shape (n,).

    The only place where arrays are rounded half-even. They may hold 64-bit integers or Python integers.

    >>> round_half_even(int64_array([1, 2, 2]), int64_array([1, 1, 2]), int64_array([2, 2, 3])).tolist()
    [2, 2, 3]
    """
    doubled = 2 * remainders
    up: Int64Array = (doubled > denominators) | ((doubled == denominators) & (quotients & 1 == 1))
    rounded: Int64Array = quotients + up
    return rounded


def product_quotients(numbers: Int64Array, factors: Int64Array | int, over: Int64Array | int) -> Int64Array:
    """Return numbers x factors / over, rounded half-even; only the results and factors x over must be below 2^62.

    >>> product_quotients(np.array([3 * 10**18, -5]), 10**6, 2 * 10**6).tolist()
    [1500000000000000000, -2]
    """
    further, left = np.divmod(numbers % over * factors, over)
    quotients: Int64Array = numbers // over * factors + further
    return round_half_even(quotients, left, over)


def sums_of_squares(rows: Int64Array) -> list[int]:
    """Return the sum of the squares of each row, shape (p, n); numbers are below 2^49.

    >>> sums_of_squares(np.array([[2**48, 1], [-3, 4]])) == [2**96 + 1, 25]
    True
    """
    sums = [0] * len(rows)
    for begin in range(0, rows.shape[1], _PART):
        part = rows[:, begin : begin + _PART]
        high, low = part >> _HALF, part & ((1 << _HALF) - 1)
        squares = zip(*(_products(*pair) for pair in ((high, high), (high, low), (low, low))), strict=True)
        for row, (a, b, c) in enumerate(squares):
            sums[row] += (a << 2 * _HALF) + (b << _HALF + 1) + c
    return sums


def _products(one: Int64Array, other: Int64Array) -> list[int]:
    products: list[int] = np.einsum("ij,ij->i", one, other).tolist()
    return products
