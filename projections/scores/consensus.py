"""The consensus over time: the median of the standing forecasts at every instant."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecast_ledger.projections.core.arrays import Int64Array, index_where, run_lengths, run_starts, stable_order
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import CHANCE, Facts, Forecasts, Intervals, Status
from forecast_ledger.projections.scores.sampling import chunks, shifts

Int32Array = NDArray[np.int32]
_LOW_HALF = (1 << 32) - 1
VALUE_BITS = 34  # 1e10 < 2^34, and so is half as much again
_VALUE = (1 << VALUE_BITS) - 1
_HALVES = 5  # 1e-11 in half of 1e-10


class Consensus(NamedTuple):
    """The two middle values of the standing forecasts, from each instant of change until the next; shape (m,).

    instant: increasing. stand: the number of standing forecasts; if it is 0, low and high are 0. The median is
    (low + high) / 2, in the unit of the values. begins and ends, shape (n,): the index of the instant at which each
    interval begins and ends.
    """

    instant: Int64Array
    stand: Int64Array
    low: Int64Array
    high: Int64Array
    begins: Int64Array
    ends: Int64Array


class Changes(NamedTuple):
    """All begins and ends of n intervals in order of time.

    order: shape (2n,); i < n is the begin of interval i, otherwise the end of interval i - n. instant:
    shape (m,), increasing. last: the index of the last change at each instant. begins and ends, shape (n,): the index
    of the instant at which each interval begins and ends.
    """

    order: Int64Array
    instant: Int64Array
    last: Int64Array
    begins: Int64Array
    ends: Int64Array


def changes(start: Int64Array, end: Int64Array) -> Changes:
    """Return the changes of intervals [start, end), one or more.

    >>> ordered = changes(np.array([0, 1]), np.array([3, 3]))
    >>> ordered.instant.tolist(), ordered.begins.tolist(), ordered.ends.tolist()
    ([0, 1, 3], [0, 1], [2, 2])
    """
    n = len(start)
    times = np.concatenate([start, end])
    order = np.argsort(times, kind="stable")  # fast, since the times of a log are nearly in order
    times = times[order]
    final = np.append(times[1:] != times[:-1], True)  # the last change of an instant
    instant_of = np.empty(2 * n, np.int64)
    instant_of[order] = np.cumsum(final) - final
    last = np.flatnonzero(final)
    return Changes(order, times[last], last, instant_of[:n], instant_of[n:])


def medians(
    start: Int64Array, end: Int64Array, group: Int64Array, value: Int64Array, ordered: Changes | None = None
) -> Consensus:
    """Return the running median of intervals [start, end) with these values, 0 <= value < 2^34; shape (n,).

    Intervals of different groups must not overlap. ordered: the changes of the intervals, if they have been computed.
    O(n log n).

    >>> consensus = medians(*(np.array(column) for column in ([0, 1], [3, 2], [0, 0], [10, 40])))
    >>> [column.tolist() for column in consensus[:4]]
    [[0, 1, 2, 3], [1, 2, 1, 0], [10, 10, 10, 0], [10, 40, 10, 0]]
    """
    counts, [low, high] = _statistics(_Values(start, end, group, value), lambda n: [(n - 1) // 2, n // 2], ordered)
    return Consensus(counts.instant, counts.stand, low, high, counts.begins, counts.ends)


class Neighbours(NamedTuple):
    """The middle of the standing values, from each instant of change until the next; shape (m,), 0 if there is none.

    middle: the value at index (n - 1) // 2 of n values in ascending order, counted from 0. before, after: the values
    next to it; the middle itself, if there is no such value.
    """

    instant: Int64Array
    before: Int64Array
    middle: Int64Array
    after: Int64Array

    def at(self, index: Int64Array) -> "Neighbours":
        """Return the values from these instants on."""
        return Neighbours(*(column[index] for column in self))


def neighbours(
    start: Int64Array, end: Int64Array, group: Int64Array, value: Int64Array, ordered: Changes | None = None
) -> Neighbours:
    """Return the middle value and its neighbours over time; takes the same arguments as `medians`. O(n log n).

    >>> near = neighbours(*(np.array(column) for column in ([0, 0, 1], [3, 3, 2], [0, 0, 0], [10, 40, 20])))
    >>> near.before.tolist(), near.middle.tolist(), near.after.tolist()
    ([10, 10, 10, 0], [10, 20, 10, 0], [40, 40, 40, 0])
    """
    counts, [middle, before, after] = _statistics(_Values(start, end, group, value), _beside, ordered)
    return Neighbours(counts.instant, before, middle, after)


def _beside(count: Int64Array) -> list[Int64Array]:
    middle = (count - 1) // 2
    return [middle, np.maximum(middle - 1, 0), np.minimum(middle + 1, count - 1)]


class _Values(NamedTuple):
    """Intervals [start, end) of groups, with their values; shape (n,)."""

    start: Int64Array
    end: Int64Array
    group: Int64Array
    value: Int64Array


class _Counts(NamedTuple):
    """The number of standing intervals from each instant of change on, and the instants of each interval."""

    instant: Int64Array
    stand: Int64Array
    begins: Int64Array
    ends: Int64Array


def _statistics(
    rows: _Values, indices_of: Callable[[Int64Array], list[Int64Array]], ordered: Changes | None
) -> tuple[_Counts, list[Int64Array]]:
    """Return the standing values at some indices of their ascending order, over time; 0 where no value stands.

    indices_of: takes the numbers of standing values and returns one column of indices, from 0, for each wanted value.
    The second and later values are searched only where their index differs from the first.
    """
    n = len(rows.start)
    if not n:
        return _Counts(*[rows.start] * 4), [rows.start] * len(indices_of(rows.start))
    ordered = ordered or changes(rows.start, rows.end)
    if _stand_at_once(rows.group, ordered):
        return _at_once(rows, indices_of, ordered)
    ranks, levels = _ranks(rows.group, rows.value)
    order, instant, last, begins, ends = ordered
    sign = np.where(order < n, 1, -1)
    count = np.cumsum(sign)[last]
    busy = np.flatnonzero(count)
    changed = np.where(order < n, order, order - n)
    wanted = indices_of(count[busy])
    differing = [np.flatnonzero(k != wanted[0]) for k in wanted[1:]]
    upto = np.concatenate([last[busy], *(last[busy][differs] for differs in differing)]) + 1
    k = np.concatenate([wanted[0], *(index[differs] for index, differs in zip(wanted[1:], differing, strict=True))])
    first, *further = np.split(_kth(ranks[changed], sign, upto, k), np.cumsum([len(busy), *map(len, differing[:-1])]))
    owner = levels.first[rows.group[changed[last[busy]]]]
    columns = [np.zeros_like(count) for _ in wanted]
    for column in columns:
        column[busy] = levels.value[owner + first]
    for column, differs, rank in zip(columns[1:], differing, further, strict=True):
        column[busy[differs]] = levels.value[owner[differs] + rank]
    return _Counts(instant, count, begins, ends), columns


def _stand_at_once(group: Int64Array, ordered: Changes) -> bool:
    """Return whether the intervals of each group begin together and end together; False if groups are scattered."""
    first = run_starts(group)
    return len(run_starts(group, ordered.begins, ordered.ends)) == len(first) == len(np.unique(group[first]))


def _at_once(
    rows: _Values, indices_of: Callable[[Int64Array], list[Int64Array]], ordered: Changes
) -> tuple[_Counts, list[Int64Array]]:
    """Return what `_statistics` does where groups stand at once, as at a spot: sorting is enough."""
    key, first = np.sort((rows.group << VALUE_BITS) | rows.value), run_starts(rows.group)
    value, starts = key & _VALUE, run_starts(key >> VALUE_BITS)
    begins = ordered.begins[first[stable_order(rows.group[first])]]
    count, columns = np.zeros_like(ordered.instant), []
    count[begins] = run_lengths(starts, len(key))
    for index in indices_of(count[begins]):
        columns.append(np.zeros_like(count))
        columns[-1][begins] = value[starts + index]
    return _Counts(ordered.instant, count, ordered.begins, ordered.ends), columns


class _Levels(NamedTuple):
    """The distinct values of each group, ascending, group after group; first: where each group begins."""

    value: Int64Array
    first: Int64Array


def _ranks(group: Int64Array, value: Int64Array) -> tuple[Int64Array, _Levels]:
    """Return each value's rank, from 0, among the distinct values of its group; values lie in [0, 2^34)."""
    key = (group << VALUE_BITS) | value
    order = stable_order(key)
    key = key[order]
    sorted_group = key >> VALUE_BITS
    other_group = np.append(True, sorted_group[1:] != sorted_group[:-1])
    distinct = np.append(True, key[1:] != key[:-1])
    level = np.cumsum(distinct) - 1
    first = np.zeros(int(sorted_group[-1]) + 1, np.int64)
    first[sorted_group[other_group]] = level[other_group]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = level - first[sorted_group]
    return ranks, _Levels(key[distinct] & _VALUE, first)


def _kth(ranks: Int64Array, sign: Int64Array, upto: Int64Array, k: Int64Array) -> Int64Array:
    """Return the k-th smallest rank (from 0) that stands after the first `upto` changes, for every query at once.

    ranks, sign: shape (changes,), +1 where a forecast begins to stand, -1 where the same rank ends. upto, k: shape
    (queries,). Each round takes one bit of the rank, highest first: changes are partitioned by that bit, in order of
    time within each half, and a query goes to the half that holds its k-th rank. Begins and ends before the query's
    group cancel out.
    """
    few = int(ranks.max()) < 1 << 15
    return _descend(ranks.astype(np.int16 if few else np.int32), sign, upto.astype(np.int32), k.astype(np.int32))


def _descend(ranks: NDArray[Any], sign: Int64Array, upto: Int32Array, k: Int32Array) -> Int64Array:
    """Do the rounds of `_kth`.

    One running sum holds, before each change, the number of smaller ranks that stand (high half) and the number of
    changes with smaller ranks (low half).
    """
    rank, before = np.zeros(len(upto), np.int64), np.zeros(len(ranks) + 1, np.int64)
    weights = (sign << 32) + 1
    for bit in reversed(range(int(ranks.max()).bit_length())):
        larger = (ranks >> bit & 1).astype(bool)
        smaller = ~larger
        np.cumsum(weights * smaller, out=before[1:])
        sums = before.take(upto)
        standing, below = (sums >> 32).astype(np.int32), (sums & _LOW_HALF).astype(np.int32)
        up = k >= standing
        upto = np.where(up, np.int32(before[-1] & _LOW_HALF) + upto - below, below)
        k = k - standing * up
        rank += rank + up
        if bit:
            partition = np.concatenate([np.flatnonzero(smaller), np.flatnonzero(larger)])
            ranks, weights = ranks.take(partition), weights.take(partition)
    return rank


class Medians(NamedTuple):
    """One row for each outcome of a question and each step between changes of its standing forecasts; shape (n,).

    start, end: µs. median: 1e-11, exact.
    """

    question: Int64Array
    outcome: Int64Array
    start: Int64Array
    end: Int64Array
    stand: Int64Array
    median: Int64Array

    def of(self, index: Int64Array | slice) -> "Medians":
        """Return the rows at these indices."""
        return Medians(*(column[index] for column in self))

    def apart(self) -> Iterator[tuple[int, int, "Medians"]]:
        """Yield each run of rows of one question and outcome, as (question, outcome, rows)."""
        starts = run_starts(self.question, self.outcome).tolist()
        for begin, end in pairwise([*starts, len(self.question)]):
            yield int(self.question[begin]), int(self.outcome[begin]), self.of(slice(begin, end))


def medians_over_time(
    facts: Facts, forecasts: Forecasts, standing: Intervals, now: Status, chunk: int
) -> Iterator[Medians]:
    """Yield the medians of every outcome; on a resolved numeric question, of the bin that the answer fell into.

    forecasts: as they count; standing: when each of them stands. An outcome has no row while forecasts do not give it.
    """
    widest = max((len(question.outcomes) for question in facts.questions), default=0)
    outcomes = np.array([len(question.outcomes) for question in facts.questions], np.int64)
    inside = np.where(now.bins > 0, now.outcome, -1)
    codes = np.arange(len(outcomes))
    for part in chunks(facts.forecasts.counts(codes), now.opens_at, now.closes_at, chunk):
        begin, end = np.searchsorted(standing.question, [part.start, part.stop])
        rows = standing.of(np.arange(begin, end))
        shift = np.zeros(len(outcomes), np.int64)
        shift[part] = shifts(now.opens_at[part], now.closes_at[part])
        yield _medians(forecasts, rows.of(np.flatnonzero(inside[rows.question] >= 0)), now.bins, inside, shift)
        for outcome in range(widest):
            rows = rows.of(np.flatnonzero(outcomes[rows.question] > outcome))  # fewer questions each time
            if not len(rows.row):
                break
            given = _giving(facts, forecasts, rows, outcome)
            medians = _medians(forecasts, given, now.bins, np.broadcast_to(np.int64(outcome), len(outcomes)), shift)
            yield medians
            if outcome == 0:
                yield _mirrored(medians.of(index_where(outcomes[medians.question] == 2)))
                rows = rows.of(np.flatnonzero(outcomes[rows.question] != 2))


def _mirrored(yes: Medians) -> Medians:
    """Return the medians of the second of two outcomes, given those of the first."""
    return yes._replace(outcome=np.ones_like(yes.outcome), median=2 * CHANCE * _HALVES - yes.median)


def _giving(facts: Facts, forecasts: Forecasts, standing: Intervals, outcome: int) -> Intervals:
    """Return the intervals of the forecasts that give an outcome: all, unless outcomes of the question changed."""
    if not facts.changed:
        return standing
    changed = np.isin(standing.question, [*facts.changed])
    start = forecasts.start[standing.row[changed]]
    gives = ~changed
    gives[changed] = forecasts.chances[start + outcome] >= 0
    return standing.of(np.flatnonzero(gives))


def _medians(
    forecasts: Forecasts, standing: Intervals, bins: Int64Array, outcome: Int64Array, shift: Int64Array
) -> Medians:
    question = standing.question
    chance = forecasts.chance(standing.row, outcome[question], bins[question])
    consensus = medians(standing.start + shift[question], standing.end + shift[question], question, chance)
    owner = np.zeros(len(consensus.instant), np.int64)
    owner[consensus.begins] = question
    busy = np.flatnonzero(consensus.stand)
    owner = np.maximum.accumulate(owner)[busy]
    return Medians(
        question=owner,
        outcome=outcome[owner],
        start=consensus.instant[busy] - shift[owner],
        end=consensus.instant[busy + 1] - shift[owner],
        stand=consensus.stand[busy],
        median=(consensus.low[busy] + consensus.high[busy]) * _HALVES,
    )


# --- The leave-one-out reference: each member is compared with the median of the other members.
#
# A rule set asks for it with consensus_of "others". Let v_0 <= … <= v_(n-1) be the probabilities of the n standing
# members, and v_((n - 1) // 2) the pivot. The median of the others depends only on the side of the pivot on which a
# member's own probability lies. So sums over the steps whose pivot lies below, at and above a probability serve all
# forecasts at once.


_Range = tuple[Int64Array, Int64Array]


class LeaveOneOut(NamedTuple):
    """The reference of members in each of m steps, by side: 0 below the pivot, 1 at it, 2 above it.

    question, pivot, lasts: shape (m,); the question of each step, the pivot, 1e-10, and the units until the next step.
    While fewer than two members stand, lasts is 0, so that nothing is earned. doubled, kernel: shape (3, m); twice the
    median of the other members, 1e-10, -1 if there are none, and its kernel score.
    """

    question: Int64Array
    pivot: Int64Array
    lasts: Int64Array
    doubled: Int64Array
    kernel: Int64Array

    def side(self, chance: Int64Array, step: Int64Array) -> Int64Array:
        """Return the side of each probability in each step; shape (n,)."""
        pivot = self.pivot[step]
        side: Int64Array = (chance >= pivot).astype(np.int64) + (chance > pivot)
        return side

    def reference(self, chance: Int64Array, step: Int64Array) -> Int64Array:
        """Return twice the median of the others, for members with these probabilities in these steps; shape (n,)."""
        return self.doubled[self.side(chance, step), step]

    def earned_in(self, kernel_scores: Int64Array, chance: Int64Array, step: Int64Array) -> WideInt:
        """Return what forecasts with these scores and probabilities earn, each in a single step; shape (n,)."""
        return WideInt.product(kernel_scores - self.kernel[self.side(chance, step), step], self.lasts[step])

    def earned(self, kernel_scores: Int64Array, chance: Int64Array, begins: Int64Array, ends: Int64Array) -> WideInt:
        """Return what they earn from each begin to each end, all steps of one question; shape (n,)."""
        below, at, above = self.kernel
        weight = np.append(0, np.cumsum(self.lasts))
        imputed = WideInt.product(below, self.lasts).prefix_sums()
        earned = WideInt.product(kernel_scores, weight[ends] - weight[begins]) - (
            imputed.take(ends) - imputed.take(begins)
        )
        rank, k, exists = self._ranks(chance, begins)
        passed, order, first, past = _descend_others(
            rank, WideInt.product(above - below, self.lasts), k, (begins, ends)
        )
        same = WideInt.product(at - below, self.lasts).take(order).prefix_sums()
        equal = WideInt(*(np.where(exists, part, 0) for part in same.take(past) - same.take(first)))
        return (earned - passed - equal).carried()

    def _ranks(self, chance: Int64Array, begins: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Rank pivots and probabilities among the distinct pivots of their question.

        Returns the rank of each step's pivot, shape (m,); the number of pivots below each probability, and whether a
        pivot equals it, shape (n,).
        """
        levels, level = np.unique((self.question << VALUE_BITS) | self.pivot, return_inverse=True)
        first = np.searchsorted(levels, np.arange(int(self.question.max()) + 1) << VALUE_BITS)
        question = self.question[begins]
        key = (question << VALUE_BITS) | chance
        level_of_chance = np.searchsorted(levels, key)
        exists = levels[np.minimum(level_of_chance, len(levels) - 1)] == key
        return level - first[self.question], level_of_chance - first[question], exists


def leave_one_out(
    stand: Int64Array,
    lasts: Int64Array,
    question: Int64Array,
    near: Neighbours,
    kernel_of_chance: Callable[[Int64Array, int], Int64Array],
) -> LeaveOneOut:
    """Return the reference in steps in which `stand` members stand; near: the middle values in each of these steps."""
    odd, enough = stand % 2 == 1, np.flatnonzero(stand >= 2)
    doubled = np.stack(
        [
            np.where(odd, near.middle, near.after) + near.after,
            np.where(odd, near.before, near.after) + near.after,
            np.where(odd, near.before, near.middle) + near.middle,
        ]
    )
    doubled = np.where(stand >= 2, doubled, -1)
    kernel = np.zeros_like(doubled)
    for side in range(3):
        kernel[side, enough] = kernel_of_chance(doubled[side, enough], 2 * CHANCE)
    alone = stand < 2
    return LeaveOneOut(question, np.where(alone, 0, near.middle), np.where(alone, 0, lasts), doubled, kernel)


def _descend_others(
    rank: Int64Array, weights: WideInt, k: Int64Array, steps: _Range
) -> tuple[WideInt, Int64Array, Int64Array, Int64Array]:
    """Return the sums of the weights of steps whose rank is below k, and where the steps of rank k are.

    rank, weights: shape (m,). k: shape (n,). steps: the begin and end of each query, shape (n,) each. Also returns an
    order of the steps, and the begin and end, in that order, of the steps of each query that have rank k. Each round
    takes one bit of the rank, highest first: steps are partitioned by that bit, in order of time within each half, and
    a query goes to the half that k is in.
    """
    first, past = steps
    order, total = np.arange(len(rank)), WideInt(*np.zeros((3, len(k)), np.int64))
    for bit in reversed(range(max(int(rank.max()), int(k.max(initial=0))).bit_length())):
        smaller = rank & (1 << bit) == 0
        before = np.append(0, np.cumsum(smaller))
        lower = before[first], before[past]
        up = np.flatnonzero(k & (1 << bit))
        partition = np.concatenate([np.flatnonzero(smaller), np.flatnonzero(~smaller)])
        rank, order, weights = rank[partition], order[partition], weights.take(partition)
        for sums, part in zip(total, weights, strict=True):  # up to 2^26 of them can be added without losing a carry
            passed = np.append(0, np.cumsum(part[: int(before[-1])]))
            sums[up] += passed[lower[1][up]] - passed[lower[0][up]]
        shift = int(before[-1])
        first, lower_first = lower[0], first - lower[0] + shift
        past, lower_past = lower[1], past - lower[1] + shift
        first[up], past[up] = lower_first[up], lower_past[up]
    return total, order, first, past
