"""The consensus over time: at every instant the median of the standing forecasts."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.sorting import index_where, run_starts, stable_order
from forecast_ledger.projections.core.timeline import chunks, shifts
from forecast_ledger.projections.facts.columns import CHANCE, Facts, Status
from forecast_ledger.projections.facts.standing import Intervals

Int32Array = NDArray[np.int32]
_LOW_HALF = (1 << 32) - 1
VALUE_BITS = 34  # 1e10 < 2^34, and so is half as much again
_HALVES = 5  # 1e-11 in half of 1e-10


class Consensus(NamedTuple):
    """The two middle values of what stands, from each instant of change until the next; shape (m,).

    instant: increasing. stand: how many forecasts do; 0 where none does, and then low and high are 0.
    The median is (low + high) / 2, in the unit of the values. `begins` and `ends`, shape (n,), say at which
    instant each interval begins and ends.
    """

    instant: Int64Array
    stand: Int64Array
    low: Int64Array
    high: Int64Array
    begins: Int64Array
    ends: Int64Array


class Changes(NamedTuple):
    """All begins and ends of n intervals in order of time.

    order: shape (2n,), i < n for the begin of interval i, else the end of interval i - n. instant: shape (m,),
    increasing. last: the last change of each. begins and ends, shape (n,): at which instant each interval does.
    """

    order: Int64Array
    instant: Int64Array
    last: Int64Array
    begins: Int64Array
    ends: Int64Array


def changes(start: Int64Array, end: Int64Array) -> Changes:
    """The changes of intervals [start, end), one or more.

    >>> found = changes(np.array([0, 1]), np.array([3, 3]))
    >>> found.instant.tolist(), found.begins.tolist(), found.ends.tolist()
    ([0, 1, 3], [0, 1], [2, 2])
    """
    n = len(start)
    times = np.concatenate([start, end])
    order = np.argsort(times, kind="stable")  # which is fast where they are nearly in order, as in a log
    times = times[order]
    final = np.append(times[1:] != times[:-1], True)  # the last change of an instant
    instant_of = np.empty(2 * n, np.int64)
    instant_of[order] = np.cumsum(final) - final
    last = np.flatnonzero(final)
    return Changes(order, times[last], last, instant_of[:n], instant_of[n:])


def medians(
    start: Int64Array, end: Int64Array, group: Int64Array, value: Int64Array, known: Changes | None = None
) -> Consensus:
    """The running median of intervals [start, end) with these values, 0 <= value < 2^34; shape (n,).

    Intervals of different groups never stand at one instant. known: their changes, if they are. O(n log n).

    >>> found = medians(*(np.array(column) for column in ([0, 1], [3, 2], [0, 0], [10, 40])))
    >>> [column.tolist() for column in found[:4]]
    [[0, 1, 2, 3], [1, 2, 1, 0], [10, 10, 10, 0], [10, 40, 10, 0]]
    """
    found, [low, high] = _statistics(_Values(start, end, group, value), lambda n: [(n - 1) // 2, n // 2], known)
    return Consensus(found.instant, found.stand, low, high, found.begins, found.ends)


class Neighbours(NamedTuple):
    """What stands about the middle, from each instant of change until the next; shape (m,), 0 where nothing stands.

    Of n values, ascending from 0, middle: the one at (n - 1) // 2. before, after: the ones beside it; where there is
    none, the middle itself.
    """

    instant: Int64Array
    before: Int64Array
    middle: Int64Array
    after: Int64Array

    def at(self, index: Int64Array) -> "Neighbours":
        """What stands from these instants."""
        return Neighbours(*(column[index] for column in self))


def neighbours(
    start: Int64Array, end: Int64Array, group: Int64Array, value: Int64Array, known: Changes | None = None
) -> Neighbours:
    """The middle value of what stands and those beside it; takes what `medians` takes. O(n log n).

    >>> found = neighbours(*(np.array(column) for column in ([0, 0, 1], [3, 3, 2], [0, 0, 0], [10, 40, 20])))
    >>> found.before.tolist(), found.middle.tolist(), found.after.tolist()
    ([10, 10, 10, 0], [10, 20, 10, 0], [40, 40, 40, 0])
    """
    found, [middle, before, after] = _statistics(_Values(start, end, group, value), _beside, known)
    return Neighbours(found.instant, before, middle, after)


def _beside(count: Int64Array) -> list[Int64Array]:
    middle = (count - 1) // 2
    return [middle, np.maximum(middle - 1, 0), np.minimum(middle + 1, count - 1)]


class _Values(NamedTuple):
    """Intervals [start, end) of groups, with their values; shape (n,)."""

    start: Int64Array
    end: Int64Array
    group: Int64Array
    value: Int64Array


class _Counted(NamedTuple):
    """How many intervals stand from each instant of change until the next; at which each begins and ends."""

    instant: Int64Array
    stand: Int64Array
    begins: Int64Array
    ends: Int64Array


def _statistics(
    of: _Values, places: Callable[[Int64Array], list[Int64Array]], known: Changes | None
) -> tuple[_Counted, list[Int64Array]]:
    """The values at some places, ascending from 0, of what stands; 0 where nothing does.

    places: given how many stand, one column for each value asked for; only where it differs from the first is another
    looked for.
    """
    n = len(of.start)
    if not n:
        return _Counted(*[of.start] * 4), [of.start] * len(places(of.start))
    known = known or changes(of.start, of.end)
    if _stand_at_once(of.group, known):
        return _at_once(of, places, known)
    ranks, levels = _ranks(of.group, of.value)
    order, instant, last, begins, ends = known
    sign = np.where(order < n, 1, -1)
    count = np.cumsum(sign)[last]
    some = np.flatnonzero(count)
    changed = np.where(order < n, order, order - n)
    asked = places(count[some])
    rest = [np.flatnonzero(k != asked[0]) for k in asked[1:]]
    upto = np.concatenate([last[some], *(last[some][other] for other in rest)]) + 1
    k = np.concatenate([asked[0], *(each[other] for each, other in zip(asked[1:], rest, strict=True))])
    first, *others = np.split(_kth(ranks[changed], sign, upto, k), np.cumsum([len(some), *map(len, rest[:-1])]))
    owner = levels.first[of.group[changed[last[some]]]]
    columns = [np.zeros_like(count) for _ in asked]
    for column in columns:
        column[some] = levels.value[owner + first]
    for column, other, found in zip(columns[1:], rest, others, strict=True):
        column[some[other]] = levels.value[owner[other] + found]
    return _Counted(instant, count, begins, ends), columns


def _stand_at_once(group: Int64Array, known: Changes) -> bool:
    """Whether all intervals of each group begin together and end together; False, too, if groups are mixed up."""
    first = run_starts(group)
    return len(run_starts(group, known.begins, known.ends)) == len(first) == len(np.unique(group[first]))


def _at_once(
    of: _Values, places: Callable[[Int64Array], list[Int64Array]], known: Changes
) -> tuple[_Counted, list[Int64Array]]:
    """The same where groups stand at once, as at a spot: then sorting is enough."""
    order = stable_order((of.group << VALUE_BITS) | of.value)
    value, starts = of.value[order], run_starts(of.group[order])
    begins = known.begins[order[starts]]
    count, columns = np.zeros_like(known.instant), []
    count[begins] = np.diff(starts, append=len(order))
    for place in places(count[begins]):
        columns.append(np.zeros_like(count))
        columns[-1][begins] = value[starts + place]
    return _Counted(known.instant, count, known.begins, known.ends), columns


class _Levels(NamedTuple):
    """The distinct values of each group, ascending, group after group; first: where each group begins."""

    value: Int64Array
    first: Int64Array


def _ranks(group: Int64Array, value: Int64Array) -> tuple[Int64Array, _Levels]:
    """Each value's place among the distinct values of its group; values lie in [0, 2^34)."""
    key = (group << VALUE_BITS) | value
    order = stable_order(key)
    key = key[order]
    sorted_group = key >> VALUE_BITS
    other_group = np.append(True, sorted_group[1:] != sorted_group[:-1])
    distinct = np.append(True, key[1:] != key[:-1])
    place = np.cumsum(distinct) - 1
    first = np.zeros(int(sorted_group[-1]) + 1, np.int64)
    first[sorted_group[other_group]] = place[other_group]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = place - first[sorted_group]
    return ranks, _Levels(key[distinct] & ((1 << VALUE_BITS) - 1), first)


def _kth(ranks: Int64Array, sign: Int64Array, upto: Int64Array, k: Int64Array) -> Int64Array:
    """The k-th smallest rank (from 0) standing after the first `upto` changes, for every query at once.

    ranks, sign: shape (changes,), +1 where a forecast begins to stand, -1 where the same rank ends. upto, k: shape
    (queries,). One bit of the rank a round, highest first: changes are parted by that bit, each half in order of time,
    and a query goes to the half that holds its k-th. What stood in a half before the query's group cancels out.
    """
    few = int(ranks.max()) < 1 << 15
    return _descend(ranks.astype(np.int16 if few else np.int32), sign, *(each.astype(np.int32) for each in (upto, k)))


def _descend(ranks: NDArray[Any], sign: Int64Array, upto: Int32Array, k: Int32Array) -> Int64Array:
    """One running sum holds, before each change, what stands below (high half) and how many changes lie there (low)."""
    found, before = np.zeros(len(upto), np.int64), np.zeros(len(ranks) + 1, np.int64)
    weights = (sign << 32) + 1
    for bit in reversed(range(int(ranks.max()).bit_length())):
        larger = (ranks >> bit & 1).astype(bool)
        smaller = ~larger
        np.cumsum(weights * smaller, out=before[1:])
        there = before.take(upto)
        standing, place = (there >> 32).astype(np.int32), (there & _LOW_HALF).astype(np.int32)
        up = k >= standing
        upto = np.where(up, np.int32(before[-1] & _LOW_HALF) + upto - place, place)
        k = k - standing * up
        found += found + up
        if bit:
            parted = np.concatenate([np.flatnonzero(smaller), np.flatnonzero(larger)])
            ranks, weights = ranks.take(parted), weights.take(parted)
    return found


class Medians(NamedTuple):
    """One row for each outcome of a question and each interval between changes of what stands on it; shape (n,).

    start, end: µs. median: 1e-11, exact.
    """

    question: Int64Array
    outcome: Int64Array
    start: Int64Array
    end: Int64Array
    stand: Int64Array
    median: Int64Array

    def of(self, index: Int64Array | slice) -> "Medians":
        """These rows."""
        return Medians(*(column[index] for column in self))

    def apart(self) -> Iterator[tuple[int, int, "Medians"]]:
        """Each run of rows of one question and outcome: these two, and the rows."""
        starts = run_starts(self.question, self.outcome).tolist()
        for begin, end in pairwise([*starts, len(self.question)]):
            yield int(self.question[begin]), int(self.outcome[begin]), self.of(slice(begin, end))


def medians_over_time(facts: Facts, standing: Intervals, now: Status, chunk: int) -> Iterator[Medians]:
    """The median of every outcome; of a numeric question, of the bin that its answer fell into, once there is one."""
    widest = max((len(question.outcomes) for question in facts.questions), default=0)
    outcomes = np.array([len(question.outcomes) for question in facts.questions], np.int64)
    inside = np.where(now.bins > 0, now.outcome, -1)
    codes = np.arange(len(outcomes))
    for part in chunks(facts.forecasts.counts(codes), now.opens_at, now.closes_at, chunk):
        begin, end = np.searchsorted(standing.question, [part.start, part.stop])
        some = standing.of(np.arange(begin, end))
        shift = np.zeros(len(outcomes), np.int64)
        shift[part] = shifts(now.opens_at[part], now.closes_at[part])
        yield _medians(facts, some.of(np.flatnonzero(inside[some.question] >= 0)), now.bins, inside, shift)
        for outcome in range(widest):
            some = some.of(np.flatnonzero(outcomes[some.question] > outcome))  # ever fewer questions have so many
            if not len(some.row):
                break
            medians = _medians(facts, some, now.bins, np.broadcast_to(np.int64(outcome), len(outcomes)), shift)
            yield medians
            if outcome == 0:
                yield _mirrored(medians.of(index_where(outcomes[medians.question] == 2)))
                some = some.of(np.flatnonzero(outcomes[some.question] != 2))


def _mirrored(yes: Medians) -> Medians:
    """The medians of the other of two outcomes: each forecast of it is what the first has not."""
    return yes._replace(outcome=np.ones_like(yes.outcome), median=2 * CHANCE * _HALVES - yes.median)


def _medians(facts: Facts, standing: Intervals, bins: Int64Array, outcome: Int64Array, shift: Int64Array) -> Medians:
    question = standing.question
    chance = facts.forecasts.chance(standing.row, outcome[question], bins[question])
    consensus = medians(standing.start + shift[question], standing.end + shift[question], question, chance)
    owner = np.zeros(len(consensus.instant), np.int64)
    owner[consensus.begins] = question
    stands = np.flatnonzero(consensus.stand)
    owner = np.maximum.accumulate(owner)[stands]
    return Medians(
        question=owner,
        outcome=outcome[owner],
        start=consensus.instant[stands] - shift[owner],
        end=consensus.instant[stands + 1] - shift[owner],
        stand=consensus.stand[stands],
        median=(consensus.low[stands] + consensus.high[stands]) * _HALVES,
    )
