"""Arrays of 64-bit integers: their quotients rounded half-even, order, runs and distinct values; codes for ids."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, Self

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


def join_parts(parts: Sequence[Int64Array]) -> Int64Array:
    """Return columns joined; if each repeats the same value, so does what is returned, in the memory of one value.

    >>> sevens = np.broadcast_to(np.int64(7), 2)
    >>> join_parts([sevens, sevens]).strides, join_parts([sevens, int64_array([7])]).strides
    ((0,), (8,))
    """
    first = parts[0][:1]
    if all(part.strides == (0,) and part[0] == first[0] for part in parts if len(part)) and len(first):
        return np.broadcast_to(first[0], sum(map(len, parts)))
    return np.concatenate(parts)


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


# --- Integer codes for ids.


class Codes:
    """Ids numbered 0, 1, 2 … in order of first appearance."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self._labels: list[str] = []
        self._of_bytes: dict[bytes, int] = {}

    def add(self, text: str) -> int:
        """Return the code of an id; add the id if it is new."""
        return self.codes.setdefault(text, len(self.codes))

    def of_bytes(self, texts: Sequence[bytes], code_of: Callable[[str], int]) -> Int64Array:
        """Return the codes of ids in ASCII, shape (n,). code_of: returns that of an id; it is asked once for each.

        >>> names = Codes()
        >>> names.of_bytes([b"ada", b"bo", b"ada"], names.add).tolist()
        [0, 1, 0]
        """
        known = self._of_bytes
        try:
            return np.fromiter(map(known.__getitem__, texts), np.int64, len(texts))
        except KeyError:
            known |= {text: code_of(text.decode()) for text in dict.fromkeys(texts) if text not in known}
            return self.of_bytes(texts, code_of)

    @property
    def labels(self) -> list[str]:
        """The ids, by code."""
        if len(self._labels) != len(self.codes):
            self._labels = list(self.codes)
        return self._labels


# --- Integer keys of rows: their order, their runs, their distinct values.


_DIGIT = 16  # bits of a key that NumPy sorts by counting
_FEW, _MANY = 512, 4096  # fewer keys are sorted faster by comparison; as many are worth a part of their own
_SHORT = 32  # rows; Python compares as many faster than NumPy


def run_starts(*keys: Int64Array) -> Int64Array:
    """Return where each run of rows with equal keys begins, shape (m,), as `WideInt.run_sums` takes it.

    keys: shape (n,) each.

    >>> run_starts(np.array([7, 7, 7, 5]), np.array([1, 1, 2, 2])).tolist()
    [0, 2, 3]
    """
    begins = np.empty(len(keys[0]), bool)
    begins[:1] = True
    np.not_equal(keys[0][1:], keys[0][:-1], out=begins[1:])
    for key in keys[1:]:
        begins[1:] |= key[1:] != key[:-1]
    return begins.nonzero()[0]


def run_lengths(starts: Int64Array, rows: int) -> Int64Array:
    """Return how many of all rows each run has, shape (m,); starts, shape (m,), increasing: where each begins.

    >>> run_lengths(np.array([0, 2, 3]), 7).tolist()
    [2, 1, 4]
    """
    lengths = np.empty_like(starts)
    lengths[:-1] = starts[1:]
    lengths[-1:] = rows
    lengths -= starts
    return lengths


def largest(column: Int64Array) -> int:
    """Return the largest absolute value in a column; 0 if it is empty."""
    if len(column) < _SHORT:
        return max(map(abs, column.tolist()), default=0)
    return max(int(column.max()), -int(column.min()))


class Totals(NamedTuple):
    """Sums columns by the index of each row, 0, 1 … m - 1.

    which: the index, shape (n,). counts: how many rows have each index, one or more, shape (m,).
    """

    which: Int64Array
    counts: Int64Array

    @classmethod
    def of_runs(cls, starts: Int64Array, rows: int) -> Self:
        """Return the totals of runs of rows; starts, shape (m,), increasing from 0: where each begins."""
        counts = run_lengths(starts, rows)
        return cls(np.arange(len(starts)).repeat(counts), counts)

    def of(self, column: Int64Array) -> Int64Array:
        """Return the sum of each index, shape (m,), as 64 bits hold it.

        >>> totals = Totals(np.array([1, 0, 1]), np.array([1, 2]))
        >>> totals.of(np.array([2**62, -5, 3])).tolist() == [-5, 2**62 + 3]
        True
        """
        sums = np.zeros(len(self.counts), np.int64)
        np.add.at(sums, self.which, column)
        return sums


def spread(column: Int64Array, index: Int64Array) -> Int64Array:
    """Return column[index], shape (n,), or of equal values one, shape (1,), with which NumPy computes the same.

    >>> spread(np.array([7, 7]), np.array([0, 1, 1])), spread(np.array([7, 8]), np.array([0, 1, 1]))
    (array([7]), array([7, 8, 8]))
    """
    return column[:1] if (column[1:] == column[:-1]).all() else column[index]


def compact(column: Int64Array) -> Int64Array:
    """Return a column to keep: if all of its rows are equal, memory holds the first one alone. Shape (n,) or (n, k).

    >>> column = compact(np.array([7, 7, 7]))
    >>> column.tolist(), column.base.nbytes
    ([7, 7, 7], 8)
    """
    first = column[:1]
    return np.broadcast_to(first.copy(), column.shape) if (column == first).all() else column


def index_where(rows: BoolArray) -> Int64Array | slice:
    """Return an index of the true rows, shape (m,), or a slice of everything if all are true.

    >>> index_where(np.array([True, True])), index_where(np.array([True, False]))
    (slice(None, None, None), array([0]))
    """
    return slice(None) if rows.all() else np.flatnonzero(rows)


def stable_order(key: Int64Array) -> Int64Array:
    """Return the row numbers in ascending order of key, shape (n,); equal keys keep their order.

    Keys of few bits are sorted by counting. Others are sorted with the number of their row as one integer, of 32 bits
    if they fit, which processors sort quickly.

    >>> stable_order(np.array([70_000, -1, 70_000, 5])).tolist()
    [1, 3, 0, 2]
    """
    if len(key) < _FEW:
        return key.argsort(kind="stable")
    if (key[1:] >= key[:-1]).all():
        return np.arange(len(key))
    least, bits = int(key.min()), len(key).bit_length()
    width = (int(key.max()) - least).bit_length()
    size = width + bits
    if width <= _DIGIT or width <= 2 * _DIGIT < size:
        order = (key - least).astype(np.uint16).argsort(kind="stable")  # by the last digit
        if width > _DIGIT:
            order = order[(key - least >> _DIGIT).astype(np.uint16)[order].argsort(kind="stable")]
        return order
    if size > 63:
        return key.argsort(kind="stable")
    both = (key - least << bits) | np.arange(len(key))
    both = np.sort(both.astype(np.uint32)).astype(np.int64) if size <= 32 else np.sort(both)
    return both & ((1 << bits) - 1)


def order_by_two(first: Int64Array, second: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the stable order of rows by two columns, neither below 0, and a key of both for each row, in that order.

    Where the first one rises, parts of it are ordered one after the other, so that their keys have few bits.

    >>> [array.tolist() for array in order_by_two(np.array([0, 0, 1, 1]), np.array([2, 1, 1, 1]))]
    [[1, 0, 2, 3], [1, 2, 4, 4]]
    """
    width = int(second.max(initial=0)) + 1
    key, most = first * width + second, int(first.max(initial=0)) + 1
    size = (1 << _DIGIT) // width  # of the first column, in a part
    if size * len(key) < _MANY * most or (first[1:] < first[:-1]).any():
        order = stable_order(key)
    else:
        limits = [*np.searchsorted(first, np.arange(0, most, size)).tolist(), len(key)]
        order = np.concatenate([stable_order(key[begin:end]) + begin for begin, end in pairwise(limits)])
    return order, key[order]


def distinct(key: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the distinct keys, ascending, and for each row the index of its key among them, shape (n,).

    Takes O(n) if the keys lie close together.

    >>> [array.tolist() for array in distinct(np.array([7, -1, 7]))]
    [[-1, 7], [1, 0, 1]]
    """
    least, most = (int(key.min()), int(key.max())) if len(key) else (0, 0)
    if most - least > 4 * len(key) or not len(key):
        order = stable_order(key)
        starts, which = run_starts(key[order]), np.empty_like(order)
        which[order] = Totals.of_runs(starts, len(key)).which
        return key[order][starts], which
    offset = key - least
    present = np.zeros(most - least + 1, bool)
    present[offset] = True
    return present.nonzero()[0] + least, (present.cumsum() - 1)[offset]
