"""The consensus when the newest forecasts count most, and as a mean: over time, and exact.

At every instant the standing forecasts of a question are ordered by when they were made. The i-th from the oldest of n
weighs e^(√i - √n); two or fewer weigh the same. Only ratios of weights matter, so they are counted as
e^(√i - ⌈√n⌉): the newest keeps at least e^-1, and every n with the same ⌈√n⌉ shares a table. For a median, which is one
of the values, weights are counted in 1e-9; for a mean, every digit of which depends on them, in 1e-18.
Source: Metaculus's published code (github.com/Metaculus/metaculus, commit 100c4088), recency-weighted aggregation.
"""

from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import WIDE, half_even
from forecast_ledger.projections.core.arrays import Int64Array, round_half_even
from forecast_ledger.projections.references.consensus import Consensus, Int32Array

BLOCK = 128  # instants of change looked at together; any number gives the same figures
WEIGHT, FINE_WEIGHT = 10**9, 10**18  # units in 1
_NEGLIGIBLE = {WEIGHT: 22, FINE_WEIGHT: 43}  # e^-22 is 0.28 of 1e-9, e^-43 0.21 of 1e-18: less than that counts as 0
_WEIGHT_BITS = 30  # of a fine weight, which is below 2^60, at a time
_WEIGHT_MASK = (1 << _WEIGHT_BITS) - 1
_HALF_BITS = 17  # of a value, which is below 2^34
_HALF_MASK = (1 << _HALF_BITS) - 1
_SQUARES = np.arange((1 << 13) + 1) ** 2  # up to LARGEST_COUNT


class Aged(NamedTuple):
    """Intervals [start, end) of groups, on an axis on which groups are apart; shape (n,), rows in any order.

    order: which of two that start together is the older; no two of these have the same.
    """

    start: Int64Array
    end: Int64Array
    group: Int64Array
    order: Int64Array


def medians(of: Aged, value: Int64Array) -> Consensus:
    """The median by weight: low is the first value, ascending, up to which the weights come to half of their sum or
    more, high the first up to which they come to more than half.

    value: of each interval, as for `consensus.medians`.

    >>> aged = lambda start, end: Aged(*map(np.array, (start, end, [0] * len(start), [0] * len(start))))
    >>> found = medians(aged([0, 1, 2, 3], [9] * 4), np.array([1, 2, 8, 9]))
    >>> found.low.tolist(), found.high.tolist()
    ([1, 1, 2, 8, 0], [1, 2, 2, 8, 0])
    """
    changes = _changes(of.start, of.end)
    low, high = np.zeros_like(changes.stand), np.zeros_like(changes.stand)
    for block in _blocks(changes, np.lexsort((of.order, of.start)), WEIGHT):
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


def means(of: Aged, value: Int64Array, finer: int = 1) -> Consensus:
    """The mean by weight (a linear pool), rounded half-even once to a unit of the result; both low and high.

    Takes what `medians` takes. finer: how many units of the result one unit of the values is, up to 1e8.

    >>> aged = lambda start, end: Aged(*map(np.array, (start, end, [0] * len(start), [0] * len(start))))
    >>> found = means(aged([0, 1, 2], [9] * 3), np.array([200, 400, 900]))
    >>> found.low.tolist()  # the last of weights 0.48, 0.73 and 1
    [200, 300, 583, 0]
    """
    changes = _changes(of.start, of.end)
    mean = np.zeros_like(changes.stand)
    for block in _blocks(changes, np.lexsort((of.order, of.start)), FINE_WEIGHT):
        some, ratios = _ratios(block.weights, value[block.row])
        mean[block.first + some] = [half_even(total * finer, weight) for total, weight in ratios]
    return Consensus(changes.instant, changes.stand, mean, mean, changes.begins, changes.ends)


def _ratios(weights: Int64Array, values: Int64Array) -> tuple[Int64Array, list[tuple[int, int]]]:
    """Of each change after which something stands: its place, and Σ weight x value with Σ weight, exact.

    Weights and values are cut in halves, so that sums of 2^26 products of halves fit in 64 bits.
    """
    above, below = weights >> _WEIGHT_BITS, weights & _WEIGHT_MASK
    some = np.flatnonzero(weights.any(axis=1))
    halves = (values >> _HALF_BITS, values & _HALF_MASK)
    columns = [part @ half for part in (above, below) for half in halves] + [above.sum(axis=1), below.sum(axis=1)]
    found = []
    for a, b, c, d, high, low in zip(*(column[some].tolist() for column in columns), strict=True):
        total = (((a << _HALF_BITS) + b) << _WEIGHT_BITS) + (c << _HALF_BITS) + d
        found.append((total, (high << _WEIGHT_BITS) + low))
    return some, found


def plain_means(of: Aged, value: Int64Array, finer: int = 1) -> Consensus:
    """The mean, all weighing the same, rounded half-even once to a unit of the result; both low and high. O(n log n).

    Takes what `means` takes.

    >>> aged = lambda start, end: Aged(*map(np.array, (start, end, [0] * len(start), [0] * len(start))))
    >>> found = plain_means(aged([0, 1, 2], [9] * 3), np.array([200, 400, 900]))
    >>> found.low.tolist()
    [200, 300, 500, 0]
    """
    changes = _changes(of.start, of.end)
    steps = np.zeros_like(changes.stand)
    np.add.at(steps, changes.begins, value)
    np.subtract.at(steps, changes.ends, value)
    some = np.flatnonzero(changes.stand)
    whole, rest = np.divmod(np.cumsum(steps)[some], changes.stand[some])
    mean = np.zeros_like(steps)
    more, rest = np.divmod(rest * finer, changes.stand[some])
    mean[some] = round_half_even(whole * finer + more, rest, changes.stand[some])
    return Consensus(changes.instant, changes.stand, mean, mean, changes.begins, changes.ends)


@lru_cache(maxsize=128)
def weights(root: int, unit: int) -> Int64Array:
    """What n forecasts weigh where root = ⌈√n⌉: e^(√i - root), in 1 / unit, rounded half-even once; read-only.

    Shape (root² + 1,): place i = 1 … root² from the oldest; place 0 holds 0. Root 0 is for n <= 2: all weigh the same.
    unit: WEIGHT or FINE_WEIGHT.

    >>> weights(0, WEIGHT).tolist(), weights(2, WEIGHT).tolist()
    ([0, 1, 1], [0, 367879441, 556667905, 764946645, 1000000000])
    """
    if root:
        places = range(max(root - _NEGLIGIBLE[unit], 0) ** 2 + 1, root**2 + 1)
        scale = WIDE.multiply(WIDE.exp(-root), unit)
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


def _blocks(changes: _Changes, by_age: Int64Array, unit: int) -> Iterator[_Block]:
    """All changes, BLOCK at a time. by_age: rows, the oldest first; below, an interval's number is its place there.

    unit: of the weights.
    """
    begins, ends = changes.begins[by_age].astype(np.int32), changes.ends[by_age].astype(np.int32)
    roots = np.where(changes.stand > 2, np.searchsorted(_SQUARES, changes.stand), 0)
    edges = [*range(0, len(roots), BLOCK), len(roots)]
    began = np.searchsorted(begins, edges).tolist()
    standing = np.zeros(0, np.int64)  # when a block begins
    for (first, past), (since, upto) in zip(pairwise(edges), pairwise(began), strict=True):
        new = np.arange(since, upto)
        used, which = np.unique(roots[first:past], return_inverse=True)
        tables = [weights(root, unit) for root in used.tolist()]
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
