"""Arrays of 64-bit integers: their quotients rounded half-even, order, runs and distinct values; codes for ids."""

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


# --- Integer codes for ids.


class Codes:
    """Ids numbered 0, 1, 2 … in order of first appearance."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self._labels: list[str] = []

    def add(self, text: str) -> int:
        """Return the code of an id; add the id if it is new."""
        return self.codes.setdefault(text, len(self.codes))

    @property
    def labels(self) -> list[str]:
        """The ids, by code."""
        if len(self._labels) != len(self.codes):
            self._labels = list(self.codes)
        return self._labels


# --- Integer keys of rows: their order, their runs, their distinct values.


_FEW = 4_096  # fewer keys than this are sorted faster by comparison


def run_starts(*keys: Int64Array) -> Int64Array:
    """Return where each run of rows with equal keys begins, shape (m,), as `WideInt.run_sums` takes it.

    keys: shape (n,) each.

    >>> run_starts(np.array([7, 7, 7, 5]), np.array([1, 1, 2, 2])).tolist()
    [0, 2, 3]
    """
    changed = np.zeros(max(len(keys[0]) - 1, 0), bool)
    for key in keys:
        changed |= key[1:] != key[:-1]
    return np.flatnonzero(np.append(True, changed)[: len(keys[0])])


def index_where(rows: BoolArray) -> Int64Array | slice:
    """Return an index of the true rows, shape (m,), or a slice of everything if all are true.

    >>> index_where(np.array([True, True])), index_where(np.array([True, False]))
    (slice(None, None, None), array([0]))
    """
    return slice(None) if rows.all() else np.flatnonzero(rows)


def stable_order(key: Int64Array) -> Int64Array:
    """Return the row numbers in ascending order of key, shape (n,); equal keys keep their order.

    Takes O(n) for every 16 bits of the range of the keys.

    >>> stable_order(np.array([70_000, -1, 70_000, 5])).tolist()
    [1, 3, 0, 2]
    """
    if (key[1:] >= key[:-1]).all():
        return np.arange(len(key))
    if len(key) < _FEW:
        return np.argsort(key, kind="stable")
    offsets = (key - key.min()).astype("<u8")  # keys may differ by more than 2^63; as unsigned, the difference is right
    digits = offsets.view("<u2").reshape(-1, 4)
    order = np.argsort(digits[:, 0], kind="stable")  # NumPy sorts 16 bits by counting
    for digit in range(1, (int(offsets.max()).bit_length() + 15) // 16):
        order = order[np.argsort(digits[:, digit][order], kind="stable")]
    return order


def distinct(key: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the distinct keys, ascending, and for each row the index of its key among them, shape (n,).

    Takes O(n) if the keys lie close together.

    >>> [array.tolist() for array in distinct(np.array([7, -1, 7]))]
    [[-1, 7], [1, 0, 1]]
    """
    if not len(key) or int(key.max()) - int(key.min()) > 4 * len(key):
        values, which = np.unique(key, return_inverse=True)
        return values, which
    offset = key - key.min()
    present = np.zeros(int(offset.max()) + 1, bool)
    present[offset] = True
    return np.flatnonzero(present) + key.min(), (np.cumsum(present) - 1)[offset]
