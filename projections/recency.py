"""The consensus when the newest forecasts count most, and as a mean: over time, and exact.

At every instant the standing forecasts of a question are ordered by when they were made. The i-th from the oldest of n
weighs e^(√i - √n); two or fewer weigh the same. Only ratios of weights matter, so they are counted as
e^(√i - ⌈√n⌉): the newest keeps at least e^-1, and every n with the same ⌈√n⌉ shares a table.
Source: Metaculus's published code (github.com/Metaculus/metaculus, commit 100c4088), recency-weighted aggregation.
"""

from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ledger.exact import WIDE
from projections.consensus import Consensus, Int32Array
from projections.limbs import Int64Array

BLOCK = 128  # instants of change looked at together; any number gives the same figures
WEIGHT = 10**9  # units in 1
_NEGLIGIBLE = 22  # e^-22 is 0.28 of 1e-9 and counts as 0
_HALF_BITS = 17  # of a value, which is below 2^34
_HALF_MASK = (1 << _HALF_BITS) - 1
_SQUARES = np.arange((1 << 13) + 1) ** 2  # up to LARGEST_COUNT


def medians(
    start: Int64Array,
    end: Int64Array,
    group: Int64Array,  # noqa: ARG001 - every average has one signature; on the axis groups are apart already
    value: Int64Array,
    order: Int64Array,
) -> Consensus:
    """The median by weight: low is the first value, ascending, up to which the weights come to half of their sum or
    more, high the first up to which they come to more than half.

    start, end, group, value: as for `consensus.medians`. order: which of two that start together is the older; no two
    of these have the same. Shape (n,), rows in any order.

    >>> found = medians(*(np.array(column) for column in ([0, 1, 2, 3], [9] * 4, [0] * 4, [1, 2, 8, 9], [0] * 4)))
    >>> found.low.tolist(), found.high.tolist()
    ([1, 1, 2, 8, 0], [1, 2, 2, 8, 0])
    """
    changes = _changes(start, end)
    low, high = np.zeros_like(changes.stand), np.zeros_like(changes.stand)
    for block in _blocks(changes, np.lexsort((order, start))):
        values = value[block.row]
        ascending = np.argsort(values)  # the order of equal values is free
        values = values[ascending]
        running = np.cumsum(block.weights.take(ascending, axis=1))  # one change after another
        upto = running[len(values) - 1 :: len(values)]
        before = np.append(0, upto[:-1])
        some = np.flatnonzero(upto > before)
        before, total = before[some], (upto - before)[some]
        low[block.first + some] = values[np.searchsorted(running, before + (total + 1) // 2) % len(values)]
        high[block.first + some] = values[np.searchsorted(running, before + total // 2, "right") % len(values)]
    return Consensus(changes.instant, changes.stand, low, high, changes.begins, changes.ends)


def means(
    start: Int64Array,
    end: Int64Array,
    group: Int64Array,  # noqa: ARG001 - as for medians
    value: Int64Array,
    order: Int64Array,
) -> Consensus:
    """The mean by weight (a linear pool), rounded half-even once to the unit of the values; both low and high.

    Takes what `medians` takes.

    >>> found = means(*(np.array(column) for column in ([0, 1, 2], [9] * 3, [0] * 3, [200, 400, 900], [0] * 3)))
    >>> found.low.tolist()  # the last of weights 0.48, 0.73 and 1
    [200, 300, 583, 0]
    """
    changes = _changes(start, end)
    mean = np.zeros_like(changes.stand)
    for block in _blocks(changes, np.lexsort((order, start))):
        values, total = value[block.row], block.weights.sum(axis=1)
        high, low = block.weights @ (values >> _HALF_BITS), block.weights @ (values & _HALF_MASK)
        some = np.flatnonzero(total)
        mean[block.first + some] = _quotients(high[some], low[some], total[some])
    return Consensus(changes.instant, changes.stand, mean, mean, changes.begins, changes.ends)


def plain_means(
    start: Int64Array,
    end: Int64Array,
    group: Int64Array,  # noqa: ARG001 - as for medians
    value: Int64Array,
    order: Int64Array,  # noqa: ARG001 - all weigh the same
) -> Consensus:
    """The mean, all weighing the same, rounded half-even once to the unit of the values; both low and high. O(n log n).

    Takes what `medians` takes.

    >>> found = plain_means(*(np.array(column) for column in ([0, 1, 2], [9] * 3, [0] * 3, [200, 400, 900], [0] * 3)))
    >>> found.low.tolist()
    [200, 300, 500, 0]
    """
    changes = _changes(start, end)
    steps = np.zeros_like(changes.stand)
    np.add.at(steps, changes.begins, value)
    np.subtract.at(steps, changes.ends, value)
    some = np.flatnonzero(changes.stand)
    total, mean = np.cumsum(steps)[some], np.zeros_like(steps)
    mean[some] = _quotients(np.zeros_like(total), total, changes.stand[some])
    return Consensus(changes.instant, changes.stand, mean, mean, changes.begins, changes.ends)


@lru_cache(maxsize=128)
def weights(root: int) -> Int64Array:
    """What n forecasts weigh where root = ⌈√n⌉: e^(√i - root), in 1e-9, rounded half-even once; read-only.

    Shape (root² + 1,): place i = 1 … root² from the oldest; place 0 holds 0. Root 0 is for n <= 2: all weigh the same.

    >>> weights(0).tolist(), weights(2).tolist()
    ([0, 1, 1], [0, 367879441, 556667905, 764946645, 1000000000])
    """
    if root:
        places = range(max(root - _NEGLIGIBLE, 0) ** 2 + 1, root**2 + 1)
        scale = WIDE.multiply(WIDE.exp(-root), WEIGHT)
        table = np.zeros(root**2 + 1, np.int64)
        table[places.start :] = [int(WIDE.to_integral_value(WIDE.multiply(_risen(place), scale))) for place in places]
    else:
        table = np.array([0, 1, 1])
    table.setflags(write=False)
    return table


@lru_cache(maxsize=1 << 16)
def _risen(place: int) -> Decimal:
    """e^√place."""
    return WIDE.exp(WIDE.sqrt(place))


class _Changes(NamedTuple):
    """Columns of `Consensus`."""

    instant: Int64Array
    stand: Int64Array
    begins: Int64Array
    ends: Int64Array


def _changes(start: Int64Array, end: Int64Array) -> _Changes:
    instant, place = np.unique(np.concatenate([start, end]), return_inverse=True)
    begins, ends = place[: len(start)], place[len(start) :]
    steps = np.bincount(begins, minlength=len(instant)) - np.bincount(ends, minlength=len(instant))
    return _Changes(instant, np.cumsum(steps), begins, ends)


class _Block(NamedTuple):
    """Consecutive changes from `first` on, and the rows of all intervals that weigh anything after one of them.

    weights: shape (changes, rows); 0 where an interval does not stand.
    """

    first: int
    row: Int64Array
    weights: Int64Array


def _blocks(changes: _Changes, by_age: Int64Array) -> Iterator[_Block]:
    """All changes, BLOCK at a time. by_age: rows, the oldest first; below, an interval's number is its place there."""
    begins, ends = changes.begins[by_age].astype(np.int32), changes.ends[by_age].astype(np.int32)
    roots = np.where(changes.stand > 2, np.searchsorted(_SQUARES, changes.stand), 0)
    edges = [*range(0, len(roots), BLOCK), len(roots)]
    began = np.searchsorted(begins, edges).tolist()
    standing = np.zeros(0, np.int64)  # when a block begins
    for (first, past), (since, upto) in zip(pairwise(edges), pairwise(began), strict=True):
        new = np.arange(since, upto)
        used, which = np.unique(roots[first:past], return_inverse=True)
        tables = [weights(root) for root in used.tolist()]
        matter = max(map(np.count_nonzero, tables)) + np.count_nonzero(ends[standing] < past)
        chosen = np.append(standing[-matter:], new)  # older ones have too many before them, even when some of these end
        if len(chosen):
            offset = np.cumsum([0, *map(len, tables[:-1])])[which] + changes.stand[first:past]
            index = _places(begins[chosen], ends[chosen], np.arange(first, past, dtype=np.int32), offset)
            yield _Block(first, by_age[chosen], np.concatenate(tables).take(index))
        standing = np.append(standing, new)
        standing = standing[ends[standing] > past]


def _places(begins: Int32Array, ends: Int32Array, change: Int32Array, newest: Int64Array) -> Int64Array:
    """Each interval's place from the oldest after each change, where the newest has the place `newest`; 0 where it does
    not stand; shape (changes, intervals).
    """
    stands = (begins <= change[:, None]) & (change[:, None] < ends)
    place = np.cumsum(stands, dtype=np.int64).reshape(stands.shape)  # one change after another
    place += (newest - place[:, -1])[:, None]
    place *= stands
    return place


def _quotients(high: Int64Array, low: Int64Array, divisor: Int64Array) -> Int64Array:
    """(high · 2^17 + low) / divisor, rounded half-even; none negative, high and low < 2^61, 0 < divisor < 2^45."""
    first, rest = np.divmod(high, divisor)
    second, rest = np.divmod((rest << _HALF_BITS) + low, divisor)
    down = (first << _HALF_BITS) + second
    nearest: Int64Array = down + ((2 * rest > divisor) | ((2 * rest == divisor) & (down & 1 == 1)))
    return nearest
