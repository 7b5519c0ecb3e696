"""Integer keys of rows: their order, their runs, their distinct values."""

import numpy as np

from forecast_ledger.projections.core.arrays import BoolArray, Int64Array

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
    for place in range(1, (int(offsets.max()).bit_length() + 15) // 16):
        order = order[np.argsort(digits[:, place][order], kind="stable")]
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
    place = key - key.min()
    present = np.zeros(int(place.max()) + 1, bool)
    present[place] = True
    return np.flatnonzero(present) + key.min(), (np.cumsum(present) - 1)[place]
