"""Arrays of 64-bit integers, and their quotients rounded half-even."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def int64_array(numbers: Sequence[int]) -> Int64Array:
    """Return numbers as an array, shape (n,). Raises OverflowError if one needs more than 64 bits.

    >>> int64_array([1, 2]).dtype
    dtype('int64')
    """
    return np.array(numbers, np.int64)


def join_columns(pages: Iterable[Sequence[Int64Array]], width: int) -> list[Int64Array]:
    """Return the columns of several pages joined; `width` empty columns if there are no pages.

    >>> join_columns([(int64_array([1]), int64_array([2])), (int64_array([3]), int64_array([4]))], 2)
    [array([1, 3]), array([2, 4])]
    """
    return [np.concatenate(column) for column in zip(*pages, strict=True)] or [int64_array([])] * width


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
