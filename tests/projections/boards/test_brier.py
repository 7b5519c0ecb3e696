"""Brier aggregates and calibration, compared with the published formulas in Fractions."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.boards.brier import (
    DECILES,
    INTERPRETATION,
    NORMAL_QUANTILE,
    Aggregate,
    Bin,
    Counts,
    Means,
    Sample,
    aggregate,
    brier_means,
    calibration_bins,
    counts_by_owner,
    interpretation,
    published,
    sums_of,
    wilson,
)
from forecast_ledger.projections.core.wide_int import LARGEST_COUNT
from tests.support.effort import LONG, times
from tests.support.oracle import EXACT, quotient

NONE = -1  # no consensus
Z = Fraction(NORMAL_QUANTILE)
PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494")


class Row(NamedTuple):
    """One owner's forecast on one question; probabilities in 1e-9."""

    owner: int
    probability: int
    consensus: int
    happened: bool


def sample(rows: Sequence[Row]) -> Sample:
    """Return rows as columns."""
    owner, probability, consensus = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    return Sample(owner, probability, consensus, np.array([row.happened for row in rows], np.bool_))


def nanos(probability: str) -> int:
    """Return a probability in 1e-9."""
    return int(Decimal(probability) * PROBABILITY)


def row(probability: str, happened: bool | int, consensus: str | None = None, owner: int = 0) -> Row:
    """Return a row, with or without a consensus."""
    return Row(owner, nanos(probability), NONE if consensus is None else nanos(consensus), bool(happened))


def counts_of(*rows: Row) -> Counts:
    """Return the counts of rows of owner 0."""
    return counts_by_owner(sums_of(sample(rows))).get(0, Counts())


def aggregates(rows: Sample) -> dict[int, Aggregate]:
    """Return the aggregate of each owner who has a row."""
    return {owner: aggregate(counts) for owner, counts in counts_by_owner(sums_of(rows)).items()}


def aggregate_of(*rows: Row) -> Aggregate:
    """Return the aggregate of rows of owner 0."""
    return aggregates(sample(rows))[0]


def bins_of(rows: Sequence[Row], edges: Sequence[int] = DECILES) -> list[Bin]:
    """Return the bins of rows."""
    return calibration_bins(sums_of(sample(rows)), edges)


# --- the formulas as they are written


def mean(values: Sequence[Fraction]) -> Fraction:
    """Return the mean of one or more numbers."""
    return sum(values, Fraction(0)) / len(values)


def squared(nano: int, happened: bool) -> Fraction:
    """Return (p - o)²."""
    return (Fraction(nano, PROBABILITY) - happened) ** 2


def skill(brier: Fraction, reference: Fraction) -> Fraction | None:
    """Return 1 - BS / BS_reference."""
    return 1 - brier / reference if reference else None


def slow(rows: Sequence[Row]) -> Aggregate:
    """Return the decomposition of Murphy (1973) over groups of equal forecasts, and skills as ratios of means."""
    n = len(rows)
    brier = mean([squared(row.probability, row.happened) for row in rows])
    base_rate = mean([Fraction(row.happened) for row in rows])
    reliability = resolution = Fraction(0)
    for value in {row.probability for row in rows}:
        outcomes = [Fraction(row.happened) for row in rows if row.probability == value]
        reliability += len(outcomes) * (Fraction(value, PROBABILITY) - mean(outcomes)) ** 2 / n
        resolution += len(outcomes) * (mean(outcomes) - base_rate) ** 2 / n
    everywhere = all(row.consensus != NONE for row in rows)
    consensus = mean([squared(row.consensus, row.happened) for row in rows]) if everywhere else None
    return Aggregate(
        n=n,
        brier=brier,
        base_rate=base_rate,
        reliability=reliability,
        resolution_term=resolution,
        uncertainty=base_rate * (1 - base_rate),
        consensus_brier=consensus,
        skill_against_even_odds=skill(brier, Fraction(1, 4)),
        skill_against_consensus=None if consensus is None else skill(brier, consensus),
        skill_against_base_rate=skill(brier, mean([(base_rate - row.happened) ** 2 for row in rows])),
    )


def root(number: Fraction) -> Fraction:
    """Return the square root to 60 digits."""
    return Fraction(EXACT.sqrt(quotient(number)))


def slow_wilson(happened: int, n: int) -> tuple[int, int]:
    """Return (p + z²/2n ± z √(p (1 - p) / n + z²/4n²)) / (1 + z²/n), to 60 digits, then rounded half-even."""
    p, square = Fraction(happened, n), Z * Z
    spread = Z * root(p * (1 - p) / n + square / (4 * n * n))
    low, high = ((p + square / (2 * n) + side) / (1 + square / n) for side in (-spread, spread))
    return round(low * PROBABILITY), round(high * PROBABILITY)


def slow_bins(rows: Sequence[Row], owners: int, edges: Sequence[int]) -> list[Bin]:
    """Return the bins by definition: each is [lower, upper), and the last has its upper edge, too."""
    bins = []
    for owner in range(owners):
        for lower, upper in pairwise(edges):
            inside = [
                row
                for row in rows
                if row.owner == owner and (lower <= row.probability < upper or row.probability == upper == PROBABILITY)
            ]
            if inside:
                n, happened = len(inside), sum(row.happened for row in inside)
                total_forecast = sum(row.probability for row in inside)
                bins.append(Bin(owner, lower, upper, n, happened, total_forecast, *slow_wilson(happened, n)))
    return bins


OWNERS = 3
VALUES = st.sampled_from([0, 1, 10**8 - 1, 10**8, 5 * 10**8, 10**9 - 1, 10**9]) | st.integers(0, 10**9)
ROWS = st.lists(st.builds(Row, st.integers(0, OWNERS - 1), VALUES, VALUES | st.just(NONE), st.booleans()), max_size=40)
COMPLETE = st.lists(st.builds(Row, st.integers(0, OWNERS - 1), VALUES, VALUES, st.booleans()), max_size=40)
EDGES = st.sets(VALUES, max_size=6).map(lambda inner: sorted(inner | {0, PROBABILITY}))
COUNTS = (st.integers(1, 200) | st.integers(1, LARGEST_COUNT)).flatmap(
    lambda n: st.tuples(st.integers(0, n) | st.sampled_from([0, 1, n - 1, n]), st.just(n))
)


# --- aggregates


@pytest.mark.parametrize(
    ("probability", "happened", "score"),
    [("0.8", 1, "0.04"), ("0.8", 0, "0.64"), ("0.2", 1, "0.64"), ("0.2", 0, "0.04"), ("1", 1, "0"), ("1", 0, "1")],
)
def test_one_forecast_scores_its_squared_distance(probability: str, happened: int, score: str) -> None:
    """Forecaster Arena, Scoring Methodology, 1.1 and the table of 1.3: 80% of rain scores 0.04 if it rains and 0.64 if
    not; 0 to 1.
    """
    assert aggregate_of(row(probability, happened)).brier == Fraction(score)


def test_an_aggregate_is_the_mean_over_questions() -> None:
    """Forecaster Arena, Scoring Methodology, 1.4: (0.04 + 0.64 + 0.64 + 0.04) / 4 = 0.34; two of the four happened."""
    actual = aggregate_of(row("0.8", 1), row("0.8", 0), row("0.2", 1), row("0.2", 0))
    assert (actual.n, actual.brier, actual.base_rate) == (4, Fraction(34, 100), Fraction(1, 2))


def test_ten_forecasts_decompose_as_worked_by_hand() -> None:
    """Forecaster Arena, Scoring Methodology, 1.5: 0.15 against 0.25 is a skill of 0.40. The parts of 0.15, group by
    group: reliability (2 · 0.1² + 3 · (0.4 - 1/3)² + 5 · (0.8 - 4/5)²) / 10 = 0.003333…, resolution
    (2 · 0.5² + 3 · (1/3 - 0.5)² + 5 · (4/5 - 0.5)²) / 10 = 0.103333…, uncertainty 0.5 · 0.5 = 0.25.
    """
    forecasts = ["0.1"] * 2 + ["0.4"] * 3 + ["0.8"] * 5
    actual = aggregate_of(*map(row, forecasts, [0, 0, 0, 1, 0, 1, 1, 0, 1, 1]))
    assert actual == Aggregate(
        n=10,
        brier=Fraction(15, 100),
        base_rate=Fraction(1, 2),
        reliability=Fraction(1, 300),
        resolution_term=Fraction(31, 300),
        uncertainty=Fraction(1, 4),
        consensus_brier=None,
        skill_against_even_odds=Fraction(40, 100),
        skill_against_consensus=None,
        skill_against_base_rate=Fraction(40, 100),
    )


def test_skill_against_the_consensus_is_a_ratio_of_means() -> None:
    """Own scores: 0.04 and 0.16, mean 0.10; consensus: 0.01 and 0.25, mean 0.13; 1 - 10/13, not 1 - (4 + 0.64) / 2."""
    actual = aggregate_of(row("0.8", 1, "0.9"), row("0.4", 0, "0.5"))
    assert (actual.consensus_brier, actual.skill_against_consensus) == (Fraction(13, 100), Fraction(3, 13))


def test_a_score_worse_than_a_reference_has_a_negative_skill() -> None:
    """0.64 against 0.25 and against 0.16: 1 - 2.56 and 1 - 4. An equal score has a skill of 0."""
    actual = aggregate_of(row("0.2", 1, "0.6"))
    assert (actual.skill_against_even_odds, actual.skill_against_consensus) == (Fraction(-156, 100), Fraction(-3))
    assert (
        aggregate_of(row("0.5", 1, "0.5")).skill_against_even_odds
        == aggregate_of(row("0.5", 1, "0.5")).skill_against_consensus
        == 0
    )


def test_without_a_consensus_on_every_question_there_is_no_skill_against_it() -> None:
    """The consensus fields are None only for an owner with a row without one; a consensus of 0% counts."""
    rows = [row("0.5", 1, "0.4"), row("0.5", 0), row("0.5", 1, "0", owner=1)]
    lacking, complete = aggregates(sample(rows)).values()
    assert (lacking.n, lacking.consensus_brier, lacking.skill_against_consensus) == (2, None, None)
    assert (complete.consensus_brier, complete.skill_against_consensus) == (Fraction(1), Fraction(3, 4))


def test_against_a_perfect_consensus_there_is_no_skill() -> None:
    """Its Brier score is 0 and cannot be a divisor, but it is shown."""
    actual = aggregate_of(row("0.5", 1, "1"), row("0.5", 0, "0"))
    assert (actual.consensus_brier, actual.skill_against_consensus) == (Fraction(0), None)


@pytest.mark.parametrize("happened", [1, 0])
def test_if_all_questions_end_alike_there_is_no_skill_against_the_base_rate(happened: int) -> None:
    """Uncertainty and resolution are 0, and the whole score, (0.04 + 0.64) / 2, is reliability."""
    actual = aggregate_of(row("0.8", happened), row("0.2", happened))
    assert actual.base_rate == happened
    assert actual.uncertainty == actual.resolution_term == 0
    assert actual.reliability == actual.brier == Fraction(34, 100)
    assert actual.skill_against_base_rate is None


@settings(deadline=None)
@given(ROWS | COMPLETE)
def test_aggregates_agree_with_the_definition(rows: list[Row]) -> None:
    """Every field agrees for every owner; the identity holds, and no part is below 0."""
    actual = aggregates(sample(rows))
    assert actual == {
        owner: slow([each for each in rows if each.owner == owner]) for owner in {each.owner for each in rows}
    }
    for each in actual.values():
        assert each.brier == each.reliability - each.resolution_term + each.uncertainty
        assert min(each.reliability, each.resolution_term, each.uncertainty) >= 0


@settings(deadline=None)
@given(st.lists(st.builds(Row, st.just(0), st.sampled_from([0, 1, 2]), st.just(NONE), st.booleans()), min_size=9))
def test_large_groups_of_different_sizes_decompose_as_defined(rows: list[Row]) -> None:
    """The forecasts have few values, so nearly every group is mixed."""
    assert aggregate_of(*rows) == slow(rows)


@settings(deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(rows: list[Row], choose: Random) -> None:
    """Neither the aggregates nor the bins change."""
    shuffled = choose.sample(rows, len(rows))
    assert aggregates(sample(shuffled)) == aggregates(sample(rows))
    assert bins_of(shuffled) == bins_of(rows)


def test_many_rows_sum_exactly() -> None:
    """Σ (p - o)² in 1e-18 passes 2^63 at ten rows. Half the rows say 100% and never happen, half say 50% and every
    other one does: brier (1 + 1/4) / 2, b = 1/4, reliability (1 + 0) / 2, resolution (1/16 + 1/16) / 2. A quarter of a
    million rows; in a long run, two million.
    """
    n = 1 << (17 if LONG == 1 else 20)
    probability = np.repeat([PROBABILITY, PROBABILITY // 2], n)
    happened = (np.arange(2 * n) >= n) & (np.arange(2 * n) % 2 == 0)
    rows = Sample(np.zeros(2 * n, np.int64), probability, PROBABILITY - probability, happened)
    actual = aggregates(rows)[0]
    assert (actual.n, actual.brier, actual.base_rate) == (2 * n, Fraction(5, 8), Fraction(1, 4))
    parts = (actual.reliability, actual.resolution_term, actual.uncertainty)
    assert parts == (Fraction(1, 2), Fraction(1, 16), Fraction(3, 16))
    assert (actual.consensus_brier, actual.skill_against_consensus) == (Fraction(1, 8), Fraction(-4))


def test_a_group_for_each_size_up_to_three_hundred_decomposes_exactly() -> None:
    """One of m forecasts of m · 1e-6 comes true, so no two groups have the same denominator."""
    rows = [Row(0, m * 1000, NONE, i == 0) for m in range(1, 301) for i in range(m)]
    n, happened = 300 * 301 // 2, 300
    base_rate = Fraction(happened, n)
    actual = aggregate_of(*rows)
    assert (actual.n, actual.base_rate) == (n, base_rate)
    assert actual.reliability == sum(m * (Fraction(m, 10**6) - Fraction(1, m)) ** 2 for m in range(1, 301)) / n
    assert actual.resolution_term == sum(m * (Fraction(1, m) - base_rate) ** 2 for m in range(1, 301)) / n


TIES = st.lists(
    st.builds(
        Row,
        st.integers(0, OWNERS - 1),
        st.sampled_from([0, 5, 2_850_000, 31_622_777, 44_250_000, 10**8, 123_450_000, 5 * 10**8, 999_999_995, 10**9])
        | VALUES,
        st.sampled_from([NONE, 0, 1, 250_000_000, 10**9 - 1, 10**9]),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=times(150), deadline=None)
@given(TIES)
def test_published_numbers_are_the_aggregates_rounded_half_even(rows: list[Row]) -> None:
    """Also at ties that floats miss, such as 0.00285² = 0.0000081225, and where a skill has more than 18 digits."""
    by_owner = counts_by_owner(sums_of(sample(rows)))
    expected = [slow([each for each in rows if each.owner == owner])[1:] for owner in by_owner]
    nines = [[None if number is None else round(number * 10**9) for number in numbers] for numbers in expected]
    assert published([*zip(*by_owner.values(), strict=True)]) == [list(column) for column in zip(*nines, strict=True)]


def test_published_numbers_of_many_rows_are_exact() -> None:
    """For 2^26 rows, of which one came true with 100% and none of the others, at 1e-9: sums of 80 bits."""
    n = LARGEST_COUNT
    counts = Counts(n=n, happened=1, squares=n - 1, consensus=1, mixed=Fraction(0))
    base_rate = Fraction(1, n)
    parts = [Fraction(n - 1, n * 10**18), base_rate, Fraction(n - 1, n * 10**18), base_rate * (1 - base_rate)]
    skills = [1 - 4 * parts[0], Fraction(2 - n), 1 - parts[0] / parts[3]]
    numbers = [*parts, parts[3], Fraction(1, n * 10**18), *skills]
    assert published([[field] for field in counts]) == [[round(number * 10**9)] for number in numbers]


def test_owners_with_large_codes_are_kept_apart() -> None:
    """The forecast 100% of one owner is next to the forecast 0% of the next owner."""
    last = 200_000
    rows = [Row(owner, value, NONE, True) for owner in (last - 1, last) for value in (0, PROBABILITY)]
    assert aggregates(sample(rows)) == {last - 1: slow(rows[:2]), last: slow(rows[2:])}


# --- means over contests


def means_of(contests: Iterable[Sequence[Row]]) -> Means:
    """Return the means of the contests with these rows of owner 0; those without rows do not count."""
    counts = [counts_of(*rows) for rows in contests if rows]
    return brier_means([(each.squares, each.n) for each in counts])


def test_pooled_and_mean_of_means_differ_where_contests_differ_in_size() -> None:
    """0.04, 0.04, 0.16 in one contest and 0.64 in another: 0.88 / 4 = 0.22 pooled; (0.08 + 0.64) / 2 = 0.36."""
    small, large = [row("0.2", 1)], [row("0.8", 1), row("0.2", 0), row("0.4", 0)]
    assert means_of([large, small]) == Means(pooled_brier=Fraction(22, 100), mean_of_contest_means=Fraction(36, 100))


def test_a_perfect_contest_counts() -> None:
    """Its mean is 0, not missing."""
    assert means_of([[row("1", 1)], [row("0.5", 1)]]) == Means(Fraction(1, 8), Fraction(1, 8))


@settings(deadline=None)
@given(st.lists(ROWS, max_size=4).filter(any))
def test_the_pooled_mean_is_that_of_all_rows_together(contests: list[list[Row]]) -> None:
    """The division into contests does not matter; the other mean is the mean of the contests' means."""
    mine = [[each._replace(owner=0) for each in rows] for rows in contests]
    actual = means_of(mine)
    assert actual.pooled_brier == slow([row for rows in mine for row in rows]).brier
    assert actual.mean_of_contest_means == mean([slow(rows).brier for rows in mine if rows])


# --- calibration


def test_a_forecast_on_an_edge_is_in_the_bin_that_begins_there() -> None:
    """0.099999999 is in the first tenth, 0.1 in the second; 0.9 and 1 are in the last, which is closed."""
    rows = [row(text, 0) for text in ("0", "0.099999999", "0.1", "0.899999999", "0.9", "1")]
    actual = [(bin_.lower, bin_.upper, bin_.n) for bin_ in bins_of(rows)]
    tenth = 10**8
    assert actual == [(0, tenth, 2), (tenth, 2 * tenth, 1), (8 * tenth, 9 * tenth, 1), (9 * tenth, 10 * tenth, 2)]


def test_a_bin_has_its_forecasts_and_how_many_came_true() -> None:
    """Two of 62%, 64% and 69% come true; by Wilson 2 of 3 is (4 + z² ± z √(z² + 8/3)) / (2 (3 + z²))."""
    rows = [row("0.62", 1, owner=1), row("0.64", 0, owner=1), row("0.69", 1, owner=1)]
    (actual,) = bins_of(rows)
    assert actual[:5] == (1, nanos("0.6"), nanos("0.7"), 3, 2)
    assert actual.total_forecast == 3 * nanos("0.65")
    spread = Z * root(Z * Z + Fraction(8, 3))
    limits = [(4 + Z * Z + side) / (2 * (3 + Z * Z)) for side in (-spread, spread)]
    assert [actual.wilson_low, actual.wilson_high] == [round(limit * PROBABILITY) for limit in limits]


def test_bins_come_in_order_of_owner_then_value() -> None:
    """Bins without a forecast are left out, and so are owners without a forecast."""
    rows = [row("0.95", 1, owner=2), row("0.05", 1, owner=2), row("0.5", 1, owner=0)]
    actual = [(bin_.owner, bin_.lower) for bin_ in bins_of(rows)]
    assert actual == [(0, nanos("0.5")), (2, 0), (2, nanos("0.9"))]
    assert bins_of([]) == []


def test_deciles_are_ten_equal_bins() -> None:
    """They are 0, 0.1, … 1."""
    assert list(DECILES) == [nanos(f"0.{tenth}") for tenth in range(10)] + [PROBABILITY]


@settings(deadline=None)
@given(ROWS, EDGES)
def test_bins_are_those_of_the_definition(rows: list[Row], edges: list[int]) -> None:
    """The edges are deciles or others; there may be a single bin."""
    assert bins_of(rows) == slow_bins(rows, OWNERS, DECILES)
    assert bins_of(rows, edges) == slow_bins(rows, OWNERS, edges)


# --- Wilson's interval


@pytest.mark.parametrize(
    ("happened", "n", "low", "high"),
    [(81, 263, "0.2553", "0.3662"), (15, 148, "0.0624", "0.1605"), (0, 20, "0", "0.1611"), (1, 29, "0.0061", "0.1718")],
)
def test_the_interval_is_the_published_one(happened: int, n: int, low: str, high: str) -> None:
    """Newcombe (1998), Statistics in Medicine 17:857-872, table I, method 3: four decimals."""
    published = [Decimal(low), Decimal(high)]
    assert [round(Decimal(limit).scaleb(-9), 4) for limit in wilson(happened, n)] == published


@pytest.mark.parametrize("n", [1, 2, 10, 20, 1000, LARGEST_COUNT])
def test_if_none_or_all_came_true_one_limit_is_certain(n: int) -> None:
    """The interval of 0 of n is 0 to z² / (n + z²), of n of n it is n / (n + z²) to 1. Both are rational."""
    assert wilson(0, n) == (0, round(PROBABILITY * Z * Z / (n + Z * Z)))
    assert wilson(n, n) == (round(PROBABILITY * n / (n + Z * Z)), PROBABILITY)


@pytest.mark.parametrize("n", [2, 10, 100, 12_346, LARGEST_COUNT])
def test_half_come_true_lies_in_the_middle(n: int) -> None:
    """It is 1/2 ± z / (2 √(n + z²)); for n = 100, 0.404 to 0.596."""
    half_width = Z / (2 * root(n + Z * Z))
    limits = [round((Fraction(1, 2) + side) * PROBABILITY) for side in (-half_width, half_width)]
    assert list(wilson(n // 2, n)) == limits
    if n == 100:
        assert [round(limit, -6) for limit in limits] == [nanos("0.404"), nanos("0.596")]


@settings(deadline=None)
@given(COUNTS)
def test_each_limit_is_the_nearest_billionth_to_a_root(counts: tuple[int, int]) -> None:
    """They are the roots of n (t - k/n)² - z² t (1 - t), which is below 0 only between them; both ties are rational."""
    happened, n = counts
    half = Fraction(1, 2 * PROBABILITY)

    def parabola(t: Fraction) -> Fraction:
        return n * (t - Fraction(happened, n)) ** 2 - Z * Z * t * (1 - t)

    low, high = (Fraction(limit, PROBABILITY) for limit in wilson(happened, n))
    assert parabola(low - half) > 0 > parabola(low + half)
    assert parabola(high + half) > 0 > parabola(high - half)


@settings(deadline=None)
@given(COUNTS)
def test_the_interval_is_that_of_the_textbook_formula(counts: tuple[int, int]) -> None:
    """It agrees with 60 digits, rounded once, and mirrors the interval of the forecasts that did not come true."""
    happened, n = counts
    low, high = wilson(happened, n)
    assert (low, high) == slow_wilson(happened, n)
    assert wilson(n - happened, n) == (PROBABILITY - high, PROBABILITY - low)


@pytest.mark.parametrize(("happened", "n"), [(-1, 5), (6, 5), (0, 0), (1, 0), (-1, -1)])
def test_more_than_all_or_less_than_none_is_an_error(happened: int, n: int) -> None:
    """There is no frequency of 0 forecasts either."""
    with pytest.raises(ValueError, match=f"{happened} of {n}"):
        wilson(happened, n)


def test_the_quantile_leaves_a_fortieth_above() -> None:
    """Φ(z) = 1/2 + 1/√(2π) Σ (-1)^i z^(2i+1) / (2^i i! (2i + 1)) passes 0.975 within half of the last decimal."""

    def normal(z: Fraction) -> Fraction:
        total, term = Fraction(0), z
        for i in range(60):
            total += term / (2 * i + 1)
            term *= -z * z / (2 * (i + 1))
        return Fraction(1, 2) + total / root(2 * PI)

    assert NORMAL_QUANTILE.as_tuple().exponent == -15
    half = Fraction(1, 2 * 10**15)
    assert normal(Z - half) < Fraction(975, 1000) < normal(Z + half)


# --- words


@pytest.mark.parametrize(
    ("brier", "words"),
    [
        ("0", "Perfect"),
        ("0.000000000000000001", "Excellent"),
        ("0.0999999999999999", "Excellent"),
        ("0.10", "Good"),
        ("0.1999999999999999", "Good"),
        ("0.20", "Fair (at or near random)"),
        ("0.2499999999999999", "Fair (at or near random)"),
        ("0.25", "Poor"),
        ("0.3999999999999999", "Poor"),
        ("0.40", "Very Poor"),
        ("1", "Very Poor"),
    ],
)
def test_a_score_has_the_words_of_the_row_it_begins(brier: str, words: str) -> None:
    """Forecaster Arena, Scoring Methodology, appendix B, whose rows share their ends: "0.40+" begins with 0.40, and so
    does each with its own.
    """
    assert interpretation(int(Fraction(brier) * 7 * PROBABILITY**2), 7) == words


def test_the_rows_of_the_table_leave_no_gap() -> None:
    """Each band begins where the one before it ends; the last has no end."""
    assert [row.upper for row in INTERPRETATION] == [*(row.lower for row in INTERPRETATION[1:]), None]
    assert INTERPRETATION[0].lower == 0


@pytest.mark.parametrize("brier", [Fraction(-1, 10**18), Fraction(10**18 + 1, 10**18), Fraction(2)])
def test_a_score_outside_zero_to_one_has_no_words(brier: Fraction) -> None:
    """An example is a score on the scale from 0 to 2."""
    with pytest.raises(ValueError, match="a Brier score must be from 0 to 1"):
        interpretation(int(brier * PROBABILITY**2), 1)
