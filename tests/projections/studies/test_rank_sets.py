"""Sets of ranks, compared with the definition in whole numbers."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import isqrt
from operator import mul
from random import Random

import numpy as np
import pytest

from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.studies import estimates
from forecast_ledger.projections.studies import rank_sets as rank_set_module
from forecast_ledger.projections.studies.estimates import Near, least_sums, ratios, rough
from forecast_ledger.projections.studies.flips import UNIT
from forecast_ledger.projections.studies.rank_sets import RankSets, Resolution, marginal_sets, rank_sets, resolution
from tests.support.effort import times

LEVEL = 900_000


def nearest_root(square: Fraction) -> int:
    """Return the root, rounded half-even."""
    low = isqrt(square.numerator // square.denominator)
    half = Fraction(2 * low + 1, 2) ** 2
    return low + (square > half or (square == half and low % 2))


Pair = tuple[int, int]
Numbers = Sequence[Sequence[int]]


def certain(parts: Numbers, flips: Numbers, pairs: Sequence[Pair]) -> tuple[list[Pair], list[int]]:
    """Return the pairs that are significant at 90% beside each other, the better first, and the critical values."""
    place = -(-9 * (len(flips) + 1) // 10)
    apart = {(i, j): [a - b for a, b in zip(parts[i], parts[j], strict=True)] for i, j in pairs}
    squares = {pair: max(sum(each * each for each in own), 10**18) for pair, own in apart.items()}

    @cache  # of few units, few signs in turn give each sum
    def root(total: int, squares: int) -> int:
        return nearest_root(Fraction(10**12 * total**2, squares))

    def statistic(pair: Pair, signs: Sequence[int]) -> int:
        return root(abs(sum(map(mul, signs, apart[pair]))), squares[pair])

    own = {pair: statistic(pair, [1] * len(parts[0])) for pair in pairs}
    turns = {pair: [statistic(pair, signs) for signs in flips] for pair in pairs}
    left, criticals = pairs, list[int]()
    while True:
        largest = [max((turns[pair][b] for pair in left), default=0) for b in range(len(flips))]
        criticals.append(sorted(largest)[place - 1])
        still = [pair for pair in left if own[pair] <= criticals[-1]]
        if still == left:
            break
        left = still
    found = [pair for pair in pairs if pair not in left]
    return [(i, j) if sum(apart[i, j]) > 0 else (j, i) for i, j in found], criticals


def marginal_by_definition(parts: Numbers, flips: Numbers, ranked: int) -> list[tuple[int, int]]:
    """Return the sets at 90% of each participant alone: only its own pairs are beside each other."""
    sets = []
    for own in range(len(parts)):
        pairs = [(own, other) for other in range(len(parts)) if [*parts[own]] != [*parts[other]]]
        better, _ = certain(parts, flips, pairs)
        sets.append((1 + sum(worse == own for _, worse in better), ranked - sum(best == own for best, _ in better)))
    return sets


def by_definition(parts: Numbers, flips: Numbers, ranked: int) -> tuple[RankSets, Resolution]:
    """Return the sets at 90%, and what a pair needs. flips: of each replicate."""
    pairs = [(i, j) for i, j in combinations(range(len(parts)), 2) if [*parts[i]] != [*parts[j]]]
    better, criticals = certain(parts, flips, pairs)
    apart = {(i, j): [a - b for a, b in zip(parts[i], parts[j], strict=True)] for i, j in pairs}
    allowed = {
        row: (1 + sum(worse == row for _, worse in better), ranked - sum(best == row for best, _ in better))
        for row in range(len(parts))
    }
    kept = {tuple(each): row for row, each in reversed([*enumerate(parts)])}  # those with the same parts count once
    count, over = len(parts[0]), len(parts[0]) * 10**12 - criticals[0] ** 2
    once = [pair for pair in pairs if over > 0 and {*pair} <= {*kept.values()}]
    varied = [count * sum(x * x for x in apart[pair]) - sum(apart[pair]) ** 2 for pair in once]
    needed = sorted(
        nearest_root(Fraction(criticals[0] ** 2 * each, over) / 10**18) for each in varied if each > count * 10**18
    )
    middle = (len(needed) - 1) // 2
    needs = Resolution(len(kept) * (len(kept) - 1) // 2, [needed[at] for at in (0, middle, -1)] if needed else [])
    return RankSets(allowed, criticals[0]), needs


def random_places(random: Random, people: int, units: int, scale: int) -> list[list[int]]:
    """Return contributions with some skill, those of the last alike those of the first."""
    parts = [[random.randrange(-9, 9) * scale + person * scale for _ in range(units)] for person in range(people)]
    return [*parts[:-1], list(parts[0])]


def turned(random: Random, replicates: int, units: int, turns: Sequence[int] = (-1, 1)) -> list[list[int]]:
    """Return what units are multiplied by in replicates."""
    return [[random.choice(turns) for _ in range(units)] for _ in range(replicates)]


def found(parts: Numbers, flips: Numbers, ranked: int) -> tuple[RankSets, Resolution]:
    """Return what is computed."""
    times: Int64Array = np.array(flips, np.int64).T
    numbers = np.array(parts, object)
    needs = resolution(numbers, times, LEVEL)
    sets = rank_sets(numbers, times, LEVEL, ranked)
    assert resolution(numbers, times, LEVEL, sets.critical) == needs
    return sets, needs


def alone(parts: Numbers, flips: Numbers, ranked: int) -> list[tuple[int, int]]:
    """Return what is computed of each participant alone."""
    times: Int64Array = np.array(flips, np.int64).T
    return marginal_sets(np.array(parts, object), times, LEVEL, ranked)


@pytest.mark.parametrize("scale", [1, 10**6, 10**9 + 7, 10**18, 3**50])
@pytest.mark.parametrize("turns", [(-1, 1), (-2, 0, 2)])
def test_rank_sets_are_those_of_the_definition(scale: int, turns: tuple[int, ...]) -> None:
    """Small and large numbers, with ties in most replicates; with signs of one field and of two."""
    random = Random(scale)
    for people, units in ((2, 3), (3, 25), (6, 12), (9, 30)):
        parts, flips = random_places(random, people, units, scale), turned(random, 39, units, turns)
        assert found(parts, flips, people + 2) == by_definition(parts, flips, people + 2)
        assert alone(parts, flips, people + 2) == marginal_by_definition(parts, flips, people + 2)


@pytest.mark.parametrize(("close", "extremes"), [(True, 4), (True, 0), (False, 0)])
def test_pairs_that_are_near_each_other_are_not_missed(
    close: bool, extremes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three, each with five who differ from it by a billionth, in one direction, or by less than it from others."""
    monkeypatch.setattr(rank_set_module, "_EXTREMES", extremes)
    random, scale = Random(7), 10**18
    least, step = (1, 3 * 10**9) if close else (-2, scale)
    parts = [[random.randrange(-9, 9) * scale for _ in range(25)] for _ in range(3)]
    parts += [[each + random.randrange(least, 4) * step for each in own] for own in parts for _ in range(5)]
    flips = turned(random, 59, 25)
    assert found(parts, flips, 18) == by_definition(parts, flips, 18)


def test_what_bounds_leave_open_is_computed_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """With floats that err by a thousandth of themselves, the same."""
    random = Random(5)
    for share in ("_ROUNDING", "_SLACK"):
        monkeypatch.setattr(estimates, share, 2.0**-10)
    for people, units in ((3, 12), (7, 25)):
        parts, flips = random_places(random, people, units, 10**15), turned(random, 39, units)
        assert found(parts, flips, people) == by_definition(parts, flips, people)
        assert alone(parts, flips, people) == marginal_by_definition(parts, flips, people)


def test_certain_and_uncertain_ranks() -> None:
    """One who is always far ahead has the rank 1 alone; two who change places share the ranks 2 and 3."""
    random = Random(1)
    parts = [[900 * 10**18] * 24, [(10 + (-1) ** unit) * 10**18 for unit in range(24)], [10 * 10**18] * 24]
    assert found(parts, turned(random, 99, 24), 3)[0].allowed == {0: (1, 1), 1: (2, 3), 2: (2, 3)}


def test_steps_tell_more_apart_than_the_first_critical_value() -> None:
    """Once the clear pairs are set aside, the largest statistic of the others is smaller."""
    random, more = Random(2), 0
    for _ in range(20):
        parts = random_places(random, 6, 24, 10**18)
        parts[0] = [each + 40 * 10**18 for each in parts[0]]
        flips = turned(random, 99, 24)
        exact = by_definition(parts, flips, 6)
        assert found(parts, flips, 6) == exact
        more += sum(worst - best for best, worst in exact[0].allowed.values()) < 5 * 6
    assert more


def test_a_set_of_one_alone_is_within_the_set_of_all_at_once_and_is_often_smaller() -> None:
    """Fewer pairs are beside each other. Of ten who are a little apart, some can be told from others only alone."""
    random = Random(4)
    parts = random_places(random, 10, 24, 10**18)
    flips = turned(random, 99, 24)
    sets, own = found(parts, flips, 10)[0].allowed, alone(parts, flips, 10)
    assert all(sets[row][0] <= best <= worst <= sets[row][1] for row, (best, worst) in enumerate(own))
    assert own != [*sets.values()]
    assert own == marginal_by_definition(parts, flips, 10)


def test_equals_by_rounding_are_not_told_apart() -> None:
    """Contributions that differ by a rounding on every question are no difference: the root is at least 1e-9."""
    assert found([[0] * 30, [1] * 30], turned(Random(3), 99, 30), 2)[0].allowed == {0: (1, 2), 1: (1, 2)}


def test_with_few_units_nobody_can_be_told_apart() -> None:
    """Of two units, two of four signs have the largest statistic that there is, however large a difference is."""
    flips = [[1, 1], [1, -1], [-1, 1], [-1, -1]] * 10
    sets, needs = found([[10**24, 10**24], [0, 0], [5, 10**20]], flips, 3)
    assert ({*sets.allowed.values()}, needs.needed) == ({(1, 3)}, [])


@pytest.mark.parametrize("scale", [2.0**-40, 1.0, 2.0**100])
def test_a_quick_look_misses_no_large_statistic(scale: float) -> None:
    """Seven digits leave out few statistics that reach a limit by no more than their last digits, and none that do."""
    rng, looked, reached = np.random.default_rng(5), 0, 0
    for step in range(times(160)):
        value = rng.normal(size=(30, 50)) * scale * 10.0 ** rng.integers(-3, 1, (30, 1))
        value[2] = value[0] * (1 + rng.normal(size=50) * 1e-6)
        near = Near(value, np.full((30, 1), scale * 2.0**-45))
        later = np.arange(1, 30)
        apart = Near(value[1:] - value[0], np.full((29, 1), scale * 2.0**-44))
        norm = Near(np.abs(value[1:]).max(axis=1, keepdims=True), np.full((29, 1), scale * 2.0**-44))
        norm.value[step % 29] = 0
        _, high = ratios(apart, norm, UNIT)
        limit = high[rng.integers(29), rng.integers(50)]
        if step % 2:  # a row that differs from the first by little
            limit = high[1, rng.integers(50)]
        if np.isfinite(limit):
            may = rough(near).may_reach(0, later, np.arange(50), least_sums(norm, UNIT, limit))
            assert may[high >= limit].all()
            if not step % 2:
                looked, reached = looked + int(may.sum()), reached + int((high >= limit).sum())
    assert reached <= looked <= reached * 1.01 + 5
