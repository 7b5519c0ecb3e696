"""The consensus weighted by recency, and as a mean, against its definition at every instant."""

import tracemalloc
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import accumulate
from math import isqrt
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.scores import community, consensus
from forecast_ledger.projections.scores.community import FINE_WEIGHT, WEIGHT, Aged
from forecast_ledger.projections.scores.consensus import Consensus
from tests.support.effort import times
from tests.support.oracle import EXACT

LARGEST = 10**10
APART = 10**6  # distance between the instants of two groups

Average = Callable[[Aged, Int64Array], Consensus]
Row = tuple[int, int, int, int]  # instant, number of standing forecasts, low, high


class Interval(NamedTuple):
    """A forecast that stands on [start, end)."""

    start: int
    end: int
    group: int
    value: int
    order: int


VALUES = st.sampled_from([0, 1, 2, 5, LARGEST - 1, LARGEST]) | st.integers(0, LARGEST)
BLOCKS = st.sampled_from([1, 2, 3, 7, community.BLOCK])
AVERAGES = pytest.mark.parametrize("average", [community.recent_medians, community.means, community.plain_means])
MEANS = pytest.mark.parametrize("average", [community.means, community.plain_means])


def columns(rows: Sequence[Interval]) -> list[Int64Array]:
    """Return intervals as columns."""
    return [np.array([row[i] for row in rows], np.int64) for i in range(5)]


def aged(rows: Sequence[Interval]) -> tuple[Aged, Int64Array]:
    """Return intervals, and the value of each."""
    start, end, group, value, order = columns(rows)
    return Aged(start, end, group, order), value


def fast(average: Average, rows: Sequence[Interval], block: int = community.BLOCK) -> list[Row]:
    """Return the rows that the module computes with this size of block."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(community, "BLOCK", block)
        averages = average(*aged(rows))
    return list(zip(*(part.tolist() for part in averages[:4]), strict=True))


# --- the slow definition


@cache
def power(square: int) -> Decimal:
    """Return e^√square, to 60 digits."""
    return EXACT.exp(EXACT.sqrt(square))


@cache
def slow_weight(place: int, root: int, unit: int) -> int:
    """Return e^√place / e^root in 1 / unit, from 60 digits."""
    weight = EXACT.divide(power(place), power(root**2))
    return int(EXACT.quantize(EXACT.multiply(weight, unit), Decimal(1)))


def slow_weights(count: int, unit: int) -> list[int]:
    """Return the weights of `count` forecasts, the oldest first."""
    if count <= 2:
        return [1] * count
    root = isqrt(count - 1) + 1
    return [slow_weight(place, root, unit) for place in range(1, count + 1)]


def middle(weighed: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the first values, ascending, at which the running weight is at least half, and more than half."""
    ascending = sorted(weighed)
    half = Fraction(sum(weight for _, weight in ascending), 2)
    upto = list(accumulate(weight for _, weight in ascending))
    low = next(value for (value, _), weight in zip(ascending, upto, strict=True) if weight >= half)
    high = next(value for (value, _), weight in zip(ascending, upto, strict=True) if weight > half)
    return low, high


def balance(weighed: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the mean, rounded half-even, twice."""
    total = sum(weight for _, weight in weighed)
    mean = round(Fraction(sum(value * weight for value, weight in weighed), total))
    return mean, mean


def slow(average: Average, rows: Sequence[Interval]) -> list[Row]:
    """Return the rows by definition: at each instant of change, order the standing forecasts by age."""
    table: list[Row] = []
    for instant in sorted({row.start for row in rows} | {row.end for row in rows}):
        stands = sorted((row for row in rows if row.start <= instant < row.end), key=lambda row: (row.start, row.order))
        values = [row.value for row in stands]
        unit = FINE_WEIGHT if average is community.means else WEIGHT
        heavy = [1] * len(values) if average is community.plain_means else slow_weights(len(values), unit)
        centre = middle if average is community.recent_medians else balance
        low, high = centre(list(zip(values, heavy, strict=True))) if values else (0, 0)
        table.append((instant, len(values), low, high))
    return table


# --- random intervals


@st.composite
def intervals(draw: st.DrawFn) -> list[Interval]:
    """Draw intervals of a few groups on few instants, so that many begin and end together, in any order."""
    rows = []
    for group in range(draw(st.integers(1, 3))):
        ages = draw(st.permutations(range(draw(st.integers(0, 12)))))
        last = draw(st.sampled_from([3, 30]))
        for age in ages:
            start, end = sorted(draw(st.lists(st.integers(0, last), min_size=2, max_size=2, unique=True)))
            rows.append(Interval(start + group * APART, end + group * APART, group, draw(VALUES), age))
    return draw(st.permutations(rows))


def crowd(seed: int, count: int, last: int) -> list[Interval]:
    """Return random intervals of two groups on instants up to the last, with repeated values."""
    choose = Random(seed)
    rows = []
    for order in choose.sample(range(count), count):
        group = choose.randrange(2)
        start, end = sorted(choose.sample(range(last), 2))
        value = choose.choice([choose.randrange(LARGEST + 1), choose.randrange(4), LARGEST])
        rows.append(Interval(start + group * APART, end + group * APART, group, value, order))
    return rows


def standing(*values: int) -> list[Interval]:
    """Return forecasts that begin at 0, 1, 2 … and stand until 99."""
    return [Interval(start, 99, 0, value, 0) for start, value in enumerate(values)]


# --- weights


@pytest.mark.parametrize("unit", [WEIGHT, FINE_WEIGHT])
@pytest.mark.parametrize("root", [1, 2, 3, 4, 7, 12, 20, 33, 64])
def test_weights_agree_with_sixty_digits(root: int, unit: int) -> None:
    """Every place counts from the oldest; place 0 is for a forecast that does not stand."""
    assert community.weights(root, unit).tolist() == [
        0,
        *(slow_weight(place, root, unit) for place in range(1, root**2 + 1)),
    ]


def test_the_newest_weighs_at_least_a_third_and_the_very_old_nothing() -> None:
    """e^-1 or more, for √n - ⌈√n⌉ > -1; and e^(√i - 40) is less than half of 1e-9 where √i < 40 - ln(2e9) = 18.58."""
    for count in range(3, 1_601):
        assert community.weights(isqrt(count - 1) + 1, WEIGHT)[count] >= 367_879_441
    assert np.flatnonzero(community.weights(40, WEIGHT))[0] == 346  # 18.58² = 345.3


def test_one_or_two_forecasts_have_equal_weights() -> None:
    """The rule applies from three forecasts on."""
    assert community.weights(0, WEIGHT).tolist() == community.weights(0, FINE_WEIGHT).tolist() == [0, 1, 1]


def test_weights_cannot_be_changed() -> None:
    """They are cached and shared."""
    for root in (0, 3):
        with pytest.raises(ValueError, match="read-only"):
            community.weights(root, FINE_WEIGHT)[1] = 5


# --- by hand


def test_three_forecasts_have_the_weights_048_073_and_1() -> None:
    """e^(1 - √3) = 0.480922, e^(√2 - √3) = 0.727721, 1; half of 2.208643 is 1.104321.

    The weights of 0.2 and 0.4 sum to 1.208643, so the median of 0.2, 0.4 and 0.9 is 0.4; the mean is
    (0.2 · 0.480922 + 0.4 · 0.727721 + 0.9) / 2.208643 = 1.287273 / 2.208643 = 0.582834.
    """
    rows = standing(2 * 10**9, 4 * 10**9, 9 * 10**9)
    assert fast(community.recent_medians, rows)[2] == (2, 3, 4 * 10**9, 4 * 10**9)
    [_, count, low, high] = fast(community.means, rows)[2]
    assert (count, half_even(low, 10**4)) == (3, 582_834)
    assert low == high


def test_the_newer_two_of_four_outweigh_the_older_two() -> None:
    """e^-1, e^(√2 - 2), e^(√3 - 2), 1 = 0.368, 0.557, 0.765, 1: half is 1.345; the unweighted median is 2 to 8.

    The weights of 1, 2, 8 sum to 0.368, 0.925, 1.689; in reverse order, those of 1, 2 sum to 1, 1.765.
    """
    assert fast(community.recent_medians, standing(1, 2, 8, 9))[3] == (3, 4, 8, 8)
    assert fast(community.recent_medians, standing(9, 8, 2, 1))[3] == (3, 4, 2, 2)


@pytest.mark.parametrize(
    ("average", "low", "high"),
    [(community.recent_medians, 10, 40), (community.means, 25, 25), (community.plain_means, 25, 25)],
)
def test_two_forecasts_are_averaged_with_equal_weights(average: Average, low: int, high: int) -> None:
    """The median of two is halfway between them, and so is the mean."""
    assert fast(average, standing(10, 40)) == [(0, 1, 10, 10), (1, 2, low, high), (99, 0, 0, 0)]


@MEANS
@pytest.mark.parametrize(("values", "mean"), [((0, 1), 0), ((1, 2), 2), ((2, 3), 2), ((LARGEST, LARGEST - 1), LARGEST)])
def test_a_mean_halfway_goes_to_the_even_neighbour(average: Average, values: tuple[int, int], mean: int) -> None:
    """The means are 0.5, 1.5, 2.5 and 9,999,999,999.5."""
    assert fast(average, standing(*values))[1] == (1, 2, mean, mean)


def test_forecasts_that_start_together_are_ordered_by_order() -> None:
    """The order of the rows changes nothing."""
    together = [Interval(0, 9, 0, value, order) for value, order in [(9, 7), (1, 2), (8, 5), (2, 3)]]
    assert fast(community.recent_medians, together)[0] == (0, 4, 8, 8)
    reversed_ages = [row._replace(order=-row.order) for row in together]
    assert fast(community.recent_medians, reversed_ages)[0] == (0, 4, 2, 2)


def test_a_repeated_forecast_is_newer() -> None:
    """The weight of 9 is 0.368 at first, and 1 once it is repeated.

    The weights of 1, 2 sum to 0.765, 1.765, and then those of 1, 2, 8 to 0.557, 1.322, 1.690.

    The mean is (9 · 0.368 + 8 · 0.557 + 1 · 0.765 + 2) / 2.689 = 10.529 / 2.689 = 3.91, then
    (8 · 0.368 + 1 · 0.557 + 2 · 0.765 + 9) / 2.689 = 14.030 / 2.689 = 5.22; the unweighted mean stays 5.
    """
    later = [Interval(1, 8, 0, value, order) for order, value in enumerate([8, 1, 2])]
    rows = [Interval(0, 4, 0, 9, 0), *later, Interval(4, 8, 0, 9, 0)]
    averages = (community.recent_medians, community.means, community.plain_means)
    lows = [[row[2] for row in fast(average, rows)] for average in averages]
    assert lows == [[9, 2, 8, 0], [9, 4, 5, 0], [9, 5, 5, 0]]


@AVERAGES
def test_a_gap_has_no_average(average: Average) -> None:
    """From the last withdrawal to the next forecast nothing stands."""
    rows = [Interval(0, 2, 0, 10, 0), Interval(6, 9, 0, 20, 0)]
    for block in (1, 2, community.BLOCK):
        assert fast(average, rows, block) == [(0, 1, 10, 10), (2, 0, 0, 0), (6, 1, 20, 20), (9, 0, 0, 0)]


@AVERAGES
def test_without_intervals_there_is_no_average(average: Average) -> None:
    """There is no instant of change."""
    assert fast(average, []) == []


# --- against the definition


@AVERAGES
@settings(max_examples=times(100), deadline=None)
@given(rows=intervals(), block=BLOCKS)
def test_an_average_agrees_with_its_definition(average: Average, rows: list[Interval], block: int) -> None:
    """There are groups, gaps, and ties of start, end and value; blocks have any size."""
    assert fast(average, rows, block) == slow(average, rows)


@AVERAGES
@settings(max_examples=times(30), deadline=None)
@given(rows=intervals())
def test_instants_counts_and_places_equal_those_of_the_plain_median(average: Average, rows: list[Interval]) -> None:
    """Only low and high differ, so averages are interchangeable."""
    start, end, group, value, order = columns(rows)
    plain = consensus.medians(start, end, group, value)
    weighted = average(Aged(start, end, group, order), value)
    for name in ("instant", "stand", "begins", "ends"):
        assert getattr(weighted, name).tolist() == getattr(plain, name).tolist()
        assert getattr(weighted, name).dtype == np.int64


@AVERAGES
@pytest.mark.parametrize(("seed", "block"), [(1, 1), (2, 50), (3, community.BLOCK)])
def test_an_average_of_hundreds_agrees_with_its_definition(average: Average, seed: int, block: int) -> None:
    """The number of standing forecasts goes up and down across squares."""
    rows = crowd(seed, count=600, last=200)
    assert fast(average, rows, block) == slow(average, rows)


@AVERAGES
@pytest.mark.parametrize(("block", "within"), [(1, 6), (2, 1), (4, 6), (community.BLOCK, 1)])
def test_the_oldest_of_many_regain_weight_once_newer_ones_withdraw(average: Average, block: int, within: int) -> None:
    """About 200 of 1,300 forecasts weigh nothing; then the 900 newest withdraw, at one or several instants."""
    rows, expected = withdrawing(average, within)
    assert fast(average, rows, block) == expected


@cache
def withdrawing(average: Average, within: int) -> tuple[list[Interval], Any]:
    """The forecasts, and their averages by the slow definition."""
    choose = Random(7)
    rows = [Interval(place // 100, 99, 0, choose.randrange(LARGEST), place % 100) for place in range(1_300)]
    rows[400:] = [row._replace(end=choose.randrange(20, 20 + within), value=row.value // 9) for row in rows[400:]]
    rows[:3] = [row._replace(end=22) for row in rows[:3]]
    return rows, slow(average, rows)


@settings(max_examples=times(50), deadline=None)
@given(rows=intervals(), block=BLOCKS)
def test_with_equal_weights_the_averages_are_the_plain_ones(rows: list[Interval], block: int) -> None:
    """Then the running weight is often exactly half, and low differs from high."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(community, "weights", lambda root, _: np.array([0] + [3] * max(root**2, 2)))
        middle_values, mean = fast(community.recent_medians, rows, block), fast(community.means, rows, block)
    start, end, group, value, _ = columns(rows)
    plain = consensus.medians(start, end, group, value)
    assert middle_values == list(zip(*(part.tolist() for part in plain[:4]), strict=True))
    assert mean == fast(community.plain_means, rows)


@settings(max_examples=times(50), deadline=None)
@given(values=st.lists(VALUES, min_size=3, max_size=30))
def test_rounding_the_weights_hardly_moves_the_mean(values: list[int]) -> None:
    """The oracle has e^(√i - √n) to 60 digits; each of n weights is off by 5e-19 at most, in a sum above e^-1."""
    exact = [EXACT.exp(EXACT.subtract(EXACT.sqrt(place + 1), EXACT.sqrt(len(values)))) for place in range(len(values))]
    heavy = [Fraction(weight) for weight in exact]
    mean = sum((weight * value for weight, value in zip(heavy, values, strict=True)), Fraction(0)) / sum(heavy)
    finer = community.means(*aged(standing(*values)), finer=10**8).low[len(values) - 1]
    assert abs(int(finer) - mean * 10**8) < Fraction(1, 2) + Fraction(len(values) * LARGEST * 10**8, 10**18) * 3


@MEANS
@settings(max_examples=times(50), deadline=None)
@given(rows=intervals(), block=BLOCKS)
def test_a_finer_mean_is_rounded_once(average: Average, rows: list[Interval], block: int) -> None:
    """Its unit is 1e-8 of the unit of the values: it equals the mean of values 1e8 times as large."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(community, "BLOCK", block)
        finer = average(*aged(rows), finer=10**8)  # type: ignore[call-arg]
    larger = [row._replace(value=row.value * 10**8) for row in rows]
    assert finer.low.tolist() == finer.high.tolist() == [low for _, _, low, _ in slow(average, larger)]


@AVERAGES
def test_five_thousand_of_the_largest_do_not_wrap(average: Average) -> None:
    """A weight times a value is 1e19, which 64 bits do not hold."""
    rows = [Interval(0, 1, 0, LARGEST, order) for order in range(5_000)]
    assert fast(average, rows) == [(0, 5_000, LARGEST, LARGEST), (1, 0, 0, 0)]
    mixed = [row._replace(value=row.order * 7_919 % 5_000 * 2_000_000 + 1) for row in rows]
    assert fast(average, mixed) == slow(average, mixed)


def peak(count: int) -> int:
    """Return the peak of memory for the medians of `count` forecasts of which 100 stand at a time."""
    start = np.arange(count)
    rows, value = Aged(start, start + 100, np.zeros(count, np.int64), start), start * 7_919 % LARGEST
    community.recent_medians(rows, value)  # computes the weights
    tracemalloc.start()
    community.recent_medians(rows, value)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_memory_grows_with_the_forecasts_and_not_with_their_square() -> None:
    """Only one block has a cell for each instant and interval."""
    assert peak(40_000) < 5 * peak(10_000)
