"""The community forecast: averages of the members' forecasts, weighted by recency or not, over time and exact."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import lru_cache, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import WIDE, half_even
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model.events import QuestionKind
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import Int64Array, half_even_many, round_half_even
from forecast_ledger.projections.facts.columns import CHANCE
from forecast_ledger.projections.scores.consensus import Changes, Consensus, Int32Array, medians
from forecast_ledger.projections.scores.reference_kinds import Steps, refined

# --- The consensus weighted by recency, and the consensus as a mean: over time, and exact.
#
# At every instant the standing forecasts of a question are ordered by age. The i-th of n, counted from the oldest, has
# the weight e^(√i - √n); one or two forecasts have equal weights. Only ratios of weights matter, so they are computed
# as e^(√i - ⌈√n⌉): the newest forecast weighs at least e^-1, and all n with the same ⌈√n⌉ share a table. Weights are
# counted in 1e-9 for a median, which is one of the values, and in 1e-18 for a mean, whose digits depend on them.
# Source: Metaculus's published code (github.com/Metaculus/metaculus, commit 100c4088), recency-weighted aggregation.


BLOCK = 128  # instants of change processed at once; any size gives the same numbers
WEIGHT, FINE_WEIGHT = 10**9, 10**18  # units in 1
_NEGLIGIBLE = {WEIGHT: 22, FINE_WEIGHT: 43}  # e^-22 is 0.28e-9 and e^-43 0.21e-18; both are rounded to 0
_WEIGHT_BITS = 30  # half of a fine weight, which is below 2^60
_WEIGHT_MASK = (1 << _WEIGHT_BITS) - 1
_HALF_BITS = 17  # half of a value, which is below 2^34
_HALF_MASK = (1 << _HALF_BITS) - 1
_SQUARES = np.arange((1 << 13) + 1) ** 2  # up to LARGEST_COUNT


class Aged(NamedTuple):
    """Intervals [start, end) on a timeline on which groups do not overlap; shape (n,), rows in any order.

    order: of two intervals that start together, the one with the lower number is the older; no two are equal.
    """

    start: Int64Array
    end: Int64Array
    group: Int64Array
    order: Int64Array


def recent_medians(rows: Aged, value: Int64Array) -> Consensus:
    """Return the weighted median: its low is the lower weighted median, its high the upper one.

    With the values in ascending order, low is the first at which the running sum of weights is at least half of all,
    and high the first at which it is more than half. value: as for `consensus.medians`.

    >>> aged = lambda start, end: Aged(*map(np.array, (start, end, [0] * len(start), [0] * len(start))))
    >>> consensus = recent_medians(aged([0, 1, 2, 3], [9] * 4), np.array([1, 2, 8, 9]))
    >>> consensus.low.tolist(), consensus.high.tolist()
    ([1, 1, 2, 8, 0], [1, 2, 2, 8, 0])
    """
    changes = _changes(rows.start, rows.end)
    low, high = np.zeros_like(changes.stand), np.zeros_like(changes.stand)
    for block in _blocks(changes, np.lexsort((rows.order, rows.start)), WEIGHT):
        values = value[block.row]
        ascending = np.argsort(values)  # equal values may come in any order
        values = values[ascending]
        running = np.cumsum(block.weights.take(ascending, axis=1))  # one change after another
        upto = running[len(values) - 1 :: len(values)]
        before = np.append(0, upto[:-1])
        busy = np.flatnonzero(upto > before)
        before, total = before[busy], (upto - before)[busy]
        low[block.first + busy] = values[np.searchsorted(running, before + (total + 1) // 2) % len(values)]
        high[block.first + busy] = values[np.searchsorted(running, before + total // 2, "right") % len(values)]
    return Consensus(changes.instant, changes.stand, low, high, changes.begins, changes.ends)


def means(rows: Aged, value: Int64Array, finer: int = 1) -> Consensus:
    """Return the weighted mean (a linear pool), rounded half-even once, as both low and high.

    finer: how many units of the result make one unit of the values, up to 1e8.

    >>> aged = lambda start, end: Aged(*map(np.array, (start, end, [0] * len(start), [0] * len(start))))
    >>> consensus = means(aged([0, 1, 2], [9] * 3), np.array([200, 400, 900]))
    >>> consensus.low.tolist()  # the last mean has the weights 0.48, 0.73 and 1
    [200, 300, 583, 0]
    """
    changes = _changes(rows.start, rows.end)
    mean = np.zeros_like(changes.stand)
    for block in _blocks(changes, np.lexsort((rows.order, rows.start)), FINE_WEIGHT):
        busy, ratios = _ratios(block.weights, value[block.row])
        mean[block.first + busy] = [half_even(total * finer, weight) for total, weight in ratios]
    return Consensus(changes.instant, changes.stand, mean, mean, changes.begins, changes.ends)


def _ratios(weights: Int64Array, values: Int64Array) -> tuple[Int64Array, list[tuple[int, int]]]:
    """Return the changes after which a forecast stands, and Σ weight x value with Σ weight for each, exact.

    Weights and values are split in halves, so that sums of 2^26 products of halves fit in 64 bits.
    """
    above, below = weights >> _WEIGHT_BITS, weights & _WEIGHT_MASK
    busy = np.flatnonzero(weights.any(axis=1))
    halves = (values >> _HALF_BITS, values & _HALF_MASK)
    columns = [part @ half for part in (above, below) for half in halves] + [above.sum(axis=1), below.sum(axis=1)]
    ratios = []
    for a, b, c, d, high, low in zip(*(column[busy].tolist() for column in columns), strict=True):
        total = (((a << _HALF_BITS) + b) << _WEIGHT_BITS) + (c << _HALF_BITS) + d
        ratios.append((total, (high << _WEIGHT_BITS) + low))
    return busy, ratios


def plain_means(rows: Aged, value: Int64Array, finer: int = 1) -> Consensus:
    """Return the unweighted mean, rounded half-even once, as both low and high; takes what `means` takes. O(n log n).

    >>> aged = lambda start, end: Aged(*map(np.array, (start, end, [0] * len(start), [0] * len(start))))
    >>> consensus = plain_means(aged([0, 1, 2], [9] * 3), np.array([200, 400, 900]))
    >>> consensus.low.tolist()
    [200, 300, 500, 0]
    """
    changes = _changes(rows.start, rows.end)
    steps = np.zeros_like(changes.stand)
    np.add.at(steps, changes.begins, value)
    np.subtract.at(steps, changes.ends, value)
    busy = np.flatnonzero(changes.stand)
    whole, remainder = np.divmod(np.cumsum(steps)[busy], changes.stand[busy])
    mean = np.zeros_like(steps)
    more, remainder = np.divmod(remainder * finer, changes.stand[busy])
    mean[busy] = round_half_even(whole * finer + more, remainder, changes.stand[busy])
    return Consensus(changes.instant, changes.stand, mean, mean, changes.begins, changes.ends)


@lru_cache(maxsize=128)
def weights(root: int, unit: int) -> Int64Array:
    """Return the weights of n forecasts, root = ⌈√n⌉: e^(√i - root), in 1 / unit, rounded half-even once; read-only.

    Shape (root² + 1,): index i = 1 … root² counts from the oldest, index 0 holds 0. Root 0 stands for n <= 2, where all
    weights are equal. unit: WEIGHT or FINE_WEIGHT.

    >>> weights(0, WEIGHT).tolist(), weights(2, WEIGHT).tolist()
    ([0, 1, 1], [0, 367879441, 556667905, 764946645, 1000000000])
    """
    if root:
        indices = range(max(root - _NEGLIGIBLE[unit], 0) ** 2 + 1, root**2 + 1)
        scale = WIDE.multiply(WIDE.exp(-root), unit)
        table = np.zeros(root**2 + 1, np.int64)
        exact = (WIDE.multiply(_exp_root(index), scale) for index in indices)
        table[indices.start :] = [int(WIDE.to_integral_value(weight)) for weight in exact]
    else:
        table = np.array([0, 1, 1])
    table.setflags(write=False)
    return table


@lru_cache(maxsize=1 << 16)
def _exp_root(index: int) -> Decimal:
    """Return e^√index."""
    return WIDE.exp(WIDE.sqrt(index))


class _Changes(NamedTuple):
    """The columns of `Consensus` that do not depend on the values."""

    instant: Int64Array
    stand: Int64Array
    begins: Int64Array
    ends: Int64Array


def _changes(start: Int64Array, end: Int64Array) -> _Changes:
    instant, index = np.unique(np.concatenate([start, end]), return_inverse=True)
    begins, ends = index[: len(start)], index[len(start) :]
    steps = np.bincount(begins, minlength=len(instant)) - np.bincount(ends, minlength=len(instant))
    return _Changes(instant, np.cumsum(steps), begins, ends)


class _Block(NamedTuple):
    """Consecutive changes from `first` on, and the rows of all intervals that have a weight after one of them.

    weights: shape (changes, rows); 0 where an interval does not stand.
    """

    first: int
    row: Int64Array
    weights: Int64Array


def _blocks(changes: _Changes, by_age: Int64Array, unit: int) -> Iterator[_Block]:
    """Yield all changes, BLOCK at a time.

    by_age: rows, the oldest first; inside, an interval's number is its index in this order. unit: of the weights.
    """
    begins, ends = changes.begins[by_age].astype(np.int32), changes.ends[by_age].astype(np.int32)
    roots = np.where(changes.stand > 2, np.searchsorted(_SQUARES, changes.stand), 0)
    edges = [*range(0, len(roots), BLOCK), len(roots)]
    began = np.searchsorted(begins, edges).tolist()
    standing = np.zeros(0, np.int64)  # at the begin of a block
    for (first, past), (since, upto) in zip(pairwise(edges), pairwise(began), strict=True):
        new = np.arange(since, upto)
        used, table = np.unique(roots[first:past], return_inverse=True)
        tables = [weights(root, unit) for root in used.tolist()]
        matter = max(map(np.count_nonzero, tables)) + np.count_nonzero(ends[standing] < past)
        chosen = np.append(standing[-matter:], new)  # the others have weight 0, even after newer ones end
        if len(chosen):
            offset = np.cumsum([0, *map(len, tables[:-1])])[table] + changes.stand[first:past]
            index = _numbers(begins[chosen], ends[chosen], np.arange(first, past, dtype=np.int32), offset)
            yield _Block(first, by_age[chosen], np.concatenate(tables).take(index))
        standing = np.append(standing, new)
        standing = standing[ends[standing] > past]


def _numbers(begins: Int32Array, ends: Int32Array, change: Int32Array, newest: Int64Array) -> Int64Array:
    """Return each interval's number from the oldest after each change; shape (changes, intervals).

    The newest has the number `newest`; an interval that does not stand has the number 0.
    """
    is_standing = (begins <= change[:, None]) & (change[:, None] < ends)
    number = np.cumsum(is_standing, dtype=np.int64).reshape(is_standing.shape)  # one change after another
    number += (newest - number[:, -1])[:, None]
    number *= is_standing
    return number


# --- The community forecast: averages of the members' forecasts on every kind of question.


FINER = 10**8  # units of 1e-18, to which a mean or share is rounded before its logarithm is taken, in 1e-10
_DIGITS = 18
# The consensus "squeezed" of K named outcomes: subtract 1 / SQUEEZED from each median, but not below 0; divide by the
# sum (if it is 0, all are equal); multiply by 1 - K / SQUEEZED and add 1 / SQUEEZED. So no probability is below 0.001.
SQUEEZED = 1_000


class Aggregation(NamedTuple):
    """The definition of one kind of consensus.

    words: its name in explanations. of_named, of_ranges: the average of forecasts on named outcomes and on numeric
    ranges, "median" or "mean". normalized: the kinds of question on which all outcomes are averaged and the averages
    divided by their sum; on others, only the outcome that happened is averaged. squeezed: whether the normalized
    averages are also kept away from 0; see SQUEEZED.
    """

    words: str
    of_named: str
    of_ranges: str
    normalized: tuple[QuestionKind, ...]
    squeezed: bool
    source: str


_CODE = "Metaculus's published code, utils/the_math/aggregations.py"
AGGREGATIONS: dict[str, Aggregation] = {
    "median": Aggregation(
        words="median",
        of_named="median",
        of_ranges="median",
        normalized=(),
        squeezed=False,
        source='Metaculus, Scores FAQ, "What is the Relative score?"',
    ),
    "community": Aggregation(
        words="community",
        of_named="median",
        of_ranges="mean",
        normalized=("binary", "multiple_choice"),
        squeezed=False,
        source=_CODE,
    ),
    "mean": Aggregation(
        words="mean",
        of_named="mean",
        of_ranges="mean",
        normalized=(),
        squeezed=False,
        source="Stone (1961), The Opinion Pool, doi:10.1214/aoms/1177704873",
    ),
    "squeezed": Aggregation(
        words="squeezed community",
        of_named="median",
        of_ranges="mean",
        normalized=("multiple_choice",),
        squeezed=True,
        source=f"{_CODE}, MedianAggregator.calculate_forecast_values, multiple choice, since October 2024",
    ),
}


def _medians(rows: Aged, value: Int64Array, **ordered: Changes) -> Consensus:
    return medians(rows.start, rows.end, rows.group, value, **ordered)


Average = Callable[..., Consensus]  # takes intervals and the value of each
AVERAGES: dict[tuple[str, str], Average] = {
    ("median", "equal"): _medians,
    ("median", "recency"): recent_medians,
    ("mean", "equal"): plain_means,
    ("mean", "recency"): means,
}


class Averaged(NamedTuple):
    """An average, and how many units of its results make one unit of the values.

    mirrors: whether that of values taken from a number is exactly the number less that of the values.
    """

    average: Average
    finer: int
    mirrors: bool = False


def average(rules: RuleSet, *, named: bool, fine: bool = False, ordered: Changes | None = None) -> Averaged:
    """Return the average by which a rule set combines the probabilities of one outcome.

    named: for named outcomes, not for a range. fine: for an average of which a logarithm is taken: a mean is rounded to
    1e-18 then; a median is exact in any case. ordered: the changes of the intervals, if they have been computed.

    >>> average(RuleSet(name="x", consensus="mean"), named=True).average is AVERAGES["mean", "equal"]
    True
    """
    aggregation = AGGREGATIONS[rules.consensus]
    kind = aggregation.of_named if named else aggregation.of_ranges
    function = AVERAGES[kind, rules.consensus_weights]
    if kind == "mean" and fine:
        return Averaged(partial(function, finer=FINER), FINER)
    if function is _medians and ordered is not None:
        return Averaged(partial(function, ordered=ordered), 1, mirrors=True)
    return Averaged(function, 1, mirrors=kind == "median")


def average_columns(
    averaged: Averaged, members: Aged, timeline: Steps, columns: list[Int64Array], at: Int64Array
) -> list[Int64Array]:
    """Return twice the average of each column in some steps, 0 where no member stands; shape (m,) each.

    members: their intervals on the timeline. columns: one number of each interval, 0..1e10, shape (n,). at: the indices
    of the steps, shape (m,); only their averages are stored, since there may be many columns. Of two that are each
    other's complement, as the probabilities of two outcomes are, the second one's follow from those of the first.
    """
    doubled, whole = list[Int64Array](), _whole(columns) if averaged.mirrors else None
    for column in columns:
        consensus = refined(averaged.average(members, column), timeline, at)
        doubled.append(consensus.low + consensus.high)
        if whole is not None:
            return [*doubled, np.where(consensus.stand > 0, 2 * whole - doubled[0], 0)]
    return doubled


def _whole(columns: list[Int64Array]) -> int | None:
    """Return the number that two columns add up to in every row; None if there is none, or other columns."""
    if len(columns) != 2 or not len(columns[0]):
        return None
    sums = columns[0] + columns[1]
    return int(sums[0]) if (sums == sums[0]).all() else None


def share(doubled: list[Int64Array], outcome: Int64Array, *, squeezed: bool = False) -> Int64Array:
    """Return twice the share of an outcome's average in the sum of all averages, the share rounded half-even to 1e-18.

    doubled: twice the average of each outcome, 1e-10, shape (m,). outcome: its index in each step. squeezed: see
    SQUEEZED.

    >>> share([np.array([2]), np.array([6])], np.array([1])).tolist()
    [1500000000000000000]
    """
    if squeezed:
        doubled = [np.maximum(column - 2 * CHANCE // SQUEEZED, 0) for column in doubled]
    chosen = np.choose(outcome, doubled) if len(doubled) <= 32 else np.stack(doubled)[outcome, np.arange(len(outcome))]
    total: Int64Array = sum(doubled[1:], doubled[0])
    if squeezed:
        chosen, total = chosen + (total == 0), np.where(total == 0, len(doubled), total)
        chosen, total = chosen * (SQUEEZED - len(doubled)) + total, total * SQUEEZED
    total = np.maximum(total, 1)
    above, remainder = np.divmod(chosen, total)
    for _ in range(_DIGITS // 2 - 1):  # two digits at a time: with very many outcomes the total leaves no room for more
        digits, remainder = np.divmod(remainder * 100, total)
        above = above * 100 + digits
    shares: Int64Array = 2 * (above * 100 + half_even_many(remainder * 100, total))
    return shares


def distributions(doubled: list[Int64Array], *, named: bool, squeezed: bool = False) -> Int64Array:
    """Return averages as forecasts; shape (m, width).

    The averages of named outcomes are divided by their sum, and the largest takes the rounding error, so that they sum
    to 1; if all of them are 0, the outcomes are equally probable. squeezed: see SQUEEZED.

    >>> distributions([np.array([1]), np.array([1]), np.array([1])], named=True).tolist()
    [[333333334, 333333333, 333333333]]
    """
    table = np.stack(doubled, axis=1) if doubled else np.zeros((0, 0), np.int64)
    if not named:
        return half_even_many(table, 2)
    if squeezed:
        table = np.maximum(table - 2 * PROBABILITY // SQUEEZED, 0)
    table = table + (table.sum(axis=1, keepdims=True) == 0)
    total, unit = table.sum(axis=1, keepdims=True), PROBABILITY
    if squeezed:  # `total` is at most 2: a median is at most twice the mean
        table, unit = table * (SQUEEZED - table.shape[1]) + total, PROBABILITY // SQUEEZED
    shares = half_even_many(table * unit, np.broadcast_to(total, table.shape))
    shares[np.arange(len(shares)), shares.argmax(axis=1)] += PROBABILITY - shares.sum(axis=1)
    return shares
