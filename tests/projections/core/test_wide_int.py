"""Wide integers in NumPy, compared with Python's."""

from contextlib import suppress
from fractions import Fraction
from itertools import accumulate, pairwise
from operator import mul

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forecast_ledger.projections.core import wide_int
from forecast_ledger.projections.core.arrays import Totals, int64_array
from forecast_ledger.projections.core.estimates import sum_products
from forecast_ledger.projections.core.wide_int import (
    LARGEST_COUNT,
    QUOTIENT_BITS,
    BoundedSums,
    WideInt,
    bounded_quotient_sums,
    wide_quotient_sums,
)
from tests.support.effort import times

TERM = 3 * 10**13  # the largest term a product is promised for
WEIGHT = 2**54 - 1  # the largest weight, µs
EXTREMES = (0, 1, 2**18 - 1, 2**18, 2**36 - 1, 2**36, 2**53, WEIGHT)
TERMS = st.integers(-TERM, TERM) | st.sampled_from([0, 1, -1, TERM, -TERM, 2**36, -(2**36), 2**18, -(2**18)])
WEIGHTS = st.integers(0, WEIGHT) | st.sampled_from(EXTREMES)
PAIRS = st.lists(st.tuples(TERMS, WEIGHTS), min_size=1, max_size=30)


def product(pairs: list[tuple[int, int]]) -> WideInt:
    """Term x weight of each pair."""
    return WideInt.product(int64_array([term for term, _ in pairs]), int64_array([weight for _, weight in pairs]))


@given(PAIRS)
def test_a_product_is_that_of_integers(pairs: list[tuple[int, int]]) -> None:
    """Terms of either sign up to the largest, weights up to the largest."""
    assert product(pairs).integers() == [term * weight for term, weight in pairs]


LARGER = TERMS | st.integers(-(2**62), 2**62) | st.sampled_from([2**62, -(2**62), TERM + 1, -TERM - 1, 2**45])


@given(st.lists(st.tuples(LARGER, WEIGHTS), min_size=1, max_size=30))
def test_a_product_of_larger_terms_is_that_of_integers_too(pairs: list[tuple[int, int]]) -> None:
    """Larger terms are multiplied in two halves, also beside smaller ones, and leave room in every word."""
    result = product(pairs)
    assert result.integers() == [term * weight for term, weight in pairs]
    assert all(0 <= int(word.min()) <= int(word.max()) < 2**36 for word in (result.low, result.middle))


@given(st.lists(st.tuples(st.integers(0, 3), LARGER, WEIGHTS), max_size=30))
@example([(0, TERM, WEIGHT)] * 9)
@example([(0, -(2**62), WEIGHT)] * 9)
@example([(0, 2**31, 2**32), (0, 2**31, 2**32), (1, -(2**31), 2**32)])
def test_sums_of_products_are_those_of_integers(rows: list[tuple[int, int, int]]) -> None:
    """By the index of each row, in any order; the last 64 bits alone would not tell them apart."""
    indices = sorted({index for index, *_ in rows})
    terms, weights = (int64_array([row[column] for row in rows]) for column in (1, 2))
    which = int64_array([indices.index(index) for index, *_ in rows])
    sums = sum_products(terms, weights, Totals(which, np.bincount(which, minlength=len(indices))))
    assert sums.integers() == [sum(term * weight for index, term, weight in rows if index == each) for each in indices]


@given(st.lists(st.tuples(st.integers(0, 2**76 - 1), st.integers(-(2**58), 2**58)), min_size=1, max_size=30))
@example([(2**76 - 1, 2**58), (2**76 - 1, -(2**58)), (0, 5), (2**72, -1), (2**36 - 1, -1)])
@example([(2**36 - 1, -(2**58)), (1, 2**58)])
@example([(2**72, 3), (5, -1)])
@example([(2 * 36_525 * 86_400 * 10**6 << 24, 4 * 10**17 - 4 * 10**8)])
def test_wide_numbers_by_terms_are_products_of_integers(pairs: list[tuple[int, int]]) -> None:
    """Numbers up to 2^76 by terms up to 2^58, and a century between two peers by the largest score of a quantile."""
    low, middle, high = ([number >> shift & 2**36 - 1 for number, _ in pairs] for shift in (0, 36, 72))
    wide = WideInt(int64_array(low), int64_array(middle), int64_array(high))
    result = wide.times(int64_array([term for _, term in pairs]))
    assert result.integers() == [number * term for number, term in pairs]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
@example([-(2**63), -1, 0, 2**36, 2**63 - 1])
def test_64_bit_numbers_as_wide_ones_are_the_same_and_have_room_in_every_word(values: list[int]) -> None:
    """Numbers of either sign that use all 64 bits."""
    wide = WideInt.from_int64(int64_array(values))
    assert wide.integers() == values
    assert all(0 <= int(word.min()) <= int(word.max()) < 2**36 for word in (wide.low, wide.middle))


@given(st.lists(st.tuples(st.integers(-(2**108), 2**108), st.integers(1, 2**26 - 1)), min_size=1, max_size=30))
@example([(2**108, 2**26 - 1), (-(2**108), 2**26 - 1), (-1, 1)])
@example([(2**133, 1), (-(2**134), 1)])
def test_scaling_multiplies_each_by_its_factor(pairs: list[tuple[int, int]]) -> None:
    """Numbers up to 2^108 by factors up to 2^26, and any number by 1."""
    result = WideInt.from_integers([number for number, _ in pairs]).scaled(int64_array([factor for _, factor in pairs]))
    assert result.integers() == [number * factor for number, factor in pairs]
    assert all(0 <= int(word.min()) <= int(word.max()) < 2**36 for word in (result.low, result.middle))


@pytest.mark.parametrize(("number", "factor"), [(1, 2**26), (2**133, 2), (-(2**134), 2), (2**120, 2**20)])
def test_a_scaled_number_that_might_not_fit_is_refused(number: int, factor: int) -> None:
    """It raises OverflowError and never wraps."""
    with pytest.raises(OverflowError):
        WideInt.from_integers([number]).scaled(int64_array([factor]))
    assert WideInt.from_integers([]).scaled(int64_array([])).integers() == []


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1), st.integers(0, 60))
def test_shifting_multiplies_by_a_power_of_two(values: list[int], bits: int) -> None:
    """Numbers of either sign, by 0 to 60 bits."""
    assert WideInt.from_int64(int64_array(values)).shifted(bits).integers() == [value << bits for value in values]


@given(st.lists(st.tuples(TERMS, WEIGHTS, TERMS, WEIGHTS), min_size=1, max_size=30))
def test_a_sum_of_two_is_that_of_integers(rows: list[tuple[int, int, int, int]]) -> None:
    """Words are added one by one; the sum is right before and after carrying."""
    both = product([row[:2] for row in rows]) + product([row[2:] for row in rows])
    right = [first * weight + second * lasts for first, weight, second, lasts in rows]
    assert both.integers() == both.carried().integers() == right


def test_a_sum_that_might_wrap_is_an_error() -> None:
    """Numbers of 2^132 fit; a hundred of 2^133 would not."""
    fitting = WideInt(int64_array([0] * 2), int64_array([0] * 2), int64_array([1 << 60] * 2))
    assert fitting.run_sums(int64_array([0])).integers() == [1 << 133]
    for high in (1 << 61, -(1 << 61)):
        wide = WideInt(int64_array([0] * 100), int64_array([0] * 100), int64_array([high] * 100))
        assert wide.run_sums(int64_array(list(range(100)))).integers() == [high << 72] * 100
        with pytest.raises(OverflowError, match="more than 134 bits"):
            wide.run_sums(int64_array([0]))


def test_the_largest_product_would_wrap_in_64_bits() -> None:
    """3e13 · (2^54 - 1) is 5.4e29; NumPy's own product is wrong, without an error."""
    wrapped = int64_array([TERM]) * int64_array([WEIGHT])
    assert wrapped.tolist() != [TERM * WEIGHT]
    assert product([(TERM, WEIGHT), (-TERM, WEIGHT)]).integers() == [TERM * WEIGHT, -TERM * WEIGHT]


@given(PAIRS)
def test_a_running_sum_is_that_of_integers(pairs: list[tuple[int, int]]) -> None:
    """Sums of the first 0, 1, … n products."""
    sums = accumulate((term * weight for term, weight in pairs), initial=0)
    assert product(pairs).prefix_sums().integers() == list(sums)


@given(PAIRS, st.data())
def test_sums_over_runs_are_those_of_integers(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    """Each run ends where the next begins, the last one at the end."""
    inner = data.draw(st.sets(st.integers(1, len(pairs)), max_size=5)) - {len(pairs)}
    starts = [0, *sorted(inner)]
    products = [term * weight for term, weight in pairs]
    sums = [sum(products[first:last]) for first, last in pairwise([*starts, len(pairs)])]
    assert product(pairs).run_sums(int64_array(starts)).integers() == sums


@given(st.lists(st.tuples(TERMS, WEIGHTS, TERMS, WEIGHTS), min_size=1, max_size=30))
def test_a_difference_is_that_of_integers(rows: list[tuple[int, int, int, int]]) -> None:
    """A difference can be summed while some of its words are still negative."""
    difference = product([row[:2] for row in rows]) - product([row[2:] for row in rows])
    right = [first * weight - second * lasts for first, weight, second, lasts in rows]
    assert difference.integers() == right
    assert difference.carried().integers() == right
    assert difference.run_sums(int64_array([0])).integers() == [sum(right)]


def test_a_million_of_the_largest_numbers_sum_exactly() -> None:
    """No carry is lost: 2^20 products of the largest term and weight, of either sign, run and summed."""
    count = 1 << 20
    largest = WideInt.product(np.full(count, TERM), np.full(count, WEIGHT))
    for numbers, number in ((largest, TERM * WEIGHT), (WideInt.from_int64(int64_array([0])) - largest, -TERM * WEIGHT)):
        assert numbers.run_sums(int64_array([0])).integers() == [count * number]
        assert numbers.carried().prefix_sums().take(int64_array([count])).integers() == [count * number]


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_a_number_made_wide_is_the_same(values: list[int]) -> None:
    """Every 64-bit integer survives the conversion."""
    assert WideInt.from_int64(int64_array(values)).integers() == values


@given(PAIRS)
def test_carried_words_leave_room_to_add_2_to_the_26_of_them(pairs: list[tuple[int, int]]) -> None:
    """Low and middle are in [0, 2^36), so that 2^26 of them stay below 2^62."""
    for numbers in (product(pairs), product(pairs).prefix_sums(), product(pairs).run_sums(int64_array([0]))):
        for word in (numbers.low, numbers.middle):
            assert 0 <= int(word.min()) <= int(word.max()) < 2**36
    assert LARGEST_COUNT * (2**36 - 1) < 2**63


def test_take_returns_the_numbers_at_the_indices() -> None:
    """They are in the order of the indices, which may repeat."""
    numbers = product([(TERM, 5), (-7, WEIGHT), (1, 1)])
    assert numbers.take(int64_array([2, 0, 0])).integers() == [1, *map(mul, [TERM, TERM], [5, 5])]


def test_no_runs_have_no_sums() -> None:
    """An empty column gives no sums."""
    assert WideInt.from_int64(int64_array([])).run_sums(int64_array([])).integers() == []


# --- Sums of quotients: their bounds hold and are as narrow as promised.


WIDTHS = (0, 1, 18, 36, 54, 72, 90, 98, 99, 126, 133)
NUMBERS = st.integers(-(2**133), 2**133 - 1) | st.sampled_from(
    [sign * (2**width - less) for width in WIDTHS for sign in (1, -1) for less in (0, 1)]
)
RATES = st.tuples(st.integers(0, 2**60), st.integers(1, 2**110)) | st.sampled_from([(0, 1), (1, 1), (1, 3), (2, 3)])
ROWS = st.lists(st.tuples(NUMBERS, RATES, st.booleans()), min_size=1, max_size=40)
TOP = 1 << QUOTIENT_BITS + 72  # a reciprocal's unit, where numbers have at most 72 bits
LARGEST = 1 << 71  # sums up to there have bounds in words
NEARLY = Fraction((1 << 200) + (1 << 72) // 10 + 1, TOP) - Fraction(1, TOP << 68)  # nearly one unit above its floor


def check(rows: list[tuple[int, tuple[int, int], bool]]) -> None:
    """Compare bounds with sums of fractions; a row with True begins a run, as the first row does."""
    numbers, rates, begins = (list(column) for column in zip(*rows, strict=True))
    starts = [0, *(i for i, begin in enumerate(begins) if begin and i)]
    every = int64_array(list(range(len(rows))))
    given_rows = WideInt.from_integers(numbers), rates, every, every, int64_array(starts)
    exact = [
        sum((Fraction(number * rate[0], rate[1]) for number, rate, _ in rows[first:end]), Fraction(0))
        for first, end in pairwise([*starts, len(rows)])
    ]
    check_bounds(bounded_quotient_sums(*given_rows), exact, [*starts, len(rows)])
    if max(map(abs, exact)) < LARGEST:
        found = wide_quotient_sums(*given_rows)
        assert (found.low[:, :-1] >= 0).all()
        assert (found.low[:, :-1] < 1 << 36).all()
        check_bounds(found.bounds(), exact, [*starts, len(rows)])
    else:
        with suppress(OverflowError):  # nearly there, one may fit and another not
            check_bounds(wide_quotient_sums(*given_rows).bounds(), exact, [*starts, len(rows)])


def check_bounds(found: list[tuple[int, int]], exact: list[Fraction], starts: list[int]) -> None:
    """The sum of each run lies between its bounds, which are as far apart as promised."""
    for (low, high), value, (first, end) in zip(found, exact, pairwise(starts), strict=True):
        assert low <= value * (1 << QUOTIENT_BITS) <= high
        assert high - low == 2 * (end - first) + 1


@settings(max_examples=times(75), deadline=None)
@given(ROWS)
@example([(-(2**72), (1, 3), False)])  # with one error less counted, the sum would be below its bounds
@example([(2**72 - 1, NEARLY.as_integer_ratio(), False)])  # above them
@example([(number, (1, 3), False) for number in (2**72 - 1, -(2**72), 0)])
def test_the_bounds_contain_the_sum(rows: list[tuple[int, tuple[int, int], bool]]) -> None:
    """Numbers of either sign up to 134 bits, rates of any size, runs of any length."""
    check(rows)


@pytest.mark.parametrize("at_once", [1, 2, 3, 5])
def test_runs_may_be_longer_than_the_rows_that_are_multiplied_together(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Runs that begin within a part, at its end, and go on over several parts."""
    monkeypatch.setattr(wide_int, "_AT_ONCE", at_once)
    check([(10**30 * (-1) ** i + i, (i + 1, 3 * i + 7), i in {1, 2, 7}) for i in range(12)])


def test_only_the_rows_that_are_asked_for_are_added() -> None:
    """5/7 is the second row alone; no runs give no sums."""
    numbers = WideInt.from_integers([3, 5, 9])
    which = int64_array([0, 1, 0])
    [(low, high)] = bounded_quotient_sums(numbers, [(1, 3), (1, 7)], which, int64_array([1]), int64_array([0]))
    assert 7 * low < 5 << QUOTIENT_BITS < 7 * high
    assert bounded_quotient_sums(numbers, [(1, 3)], which, which[:0], which[:0]) == []


@pytest.mark.parametrize(
    ("count", "number", "rate"),
    [
        (20_000, 2**133 - 1, (2**60 - 1, 3)),
        (20_000, -(2**133), (2**60 - 1, 3)),
        (700_000, 2**98 - 1, (2**40 - 1, 2**38)),  # more than thirty times as many as are multiplied together
        (700_000, -(2**98), (2**40 - 1, 2**92)),
    ],
)
def test_sums_of_many_large_products_do_not_wrap(count: int, number: int, rate: tuple[int, int]) -> None:
    """Of either sign, in one run each."""
    wide = WideInt(*(np.repeat(word, count) for word in WideInt.from_integers([number])))
    zeros = np.zeros(count, np.int64)
    exact = Fraction(count * number * rate[0], rate[1])
    rows = wide, [rate], zeros, np.arange(count), zeros[:1]
    check_bounds(bounded_quotient_sums(*rows), [exact], [0, count])
    if abs(exact) < LARGEST:
        check_bounds(wide_quotient_sums(*rows).bounds(), [exact], [0, count])


SUMS = st.lists(st.tuples(st.integers(-(2**230), 2**230), st.integers(0, 2**40)), min_size=1, max_size=12)


def in_words(numbers: list[int], widths: list[int]) -> BoundedSums:
    """Sums with these bounds."""
    words = [[number >> 36 * place & (1 << 36) - 1 for place in range(5)] + [number >> 180] for number in numbers]
    return BoundedSums(np.array(words, np.int64), int64_array(widths))


@settings(max_examples=times(75), deadline=None)
@given(SUMS)
@example([(-1, 0), (1, 0)])
def test_sums_with_bounds_are_added_up(sums: list[tuple[int, int]]) -> None:
    """As integers of any size are: in runs, and one by one."""
    numbers, widths = (list(column) for column in zip(*sums, strict=True))
    found = in_words(numbers, widths)
    assert found.bounds() == [(low, low + width) for low, width in sums]
    assert found.plus(found).bounds() == [(2 * low, 2 * low + 2 * width) for low, width in sums]
    backwards, starts = np.arange(len(sums))[::-1], np.arange(0, len(sums), 2)
    runs = [[*reversed(sums)][begin : begin + 2] for begin in starts.tolist()]
    expected = [tuple(sum(low + more * width for low, width in run) for more in (0, 1)) for run in runs]
    assert found.run_sums(backwards, starts).bounds() == expected
    for place, (low, width) in enumerate(zip(numbers, widths, strict=True)):
        assert Fraction(*found.middle(place)) * (1 << QUOTIENT_BITS) == low + Fraction(width, 2)


def test_a_sum_that_does_not_fit_in_its_words_is_refused() -> None:
    """One of quotients, and one of sums."""
    with pytest.raises(OverflowError):
        check_one(2**133 - 1, (2**60, 1))
    check_one(2**133 - 1, (1, 2**62))
    large = in_words([2**231] * 3, [0] * 3)
    with pytest.raises(OverflowError):
        in_words([2**231] * 2000, [0] * 2000).run_sums(np.arange(2000), int64_array([0]))
    assert large.run_sums(np.arange(3), int64_array([0])).bounds() == [(3 * 2**231, 3 * 2**231)]
    assert large.run_sums(np.arange(3), int64_array([])).bounds() == []


def check_one(number: int, rate: tuple[int, int]) -> None:
    """The bounds of one quotient in words."""
    zero = int64_array([0])
    [(low, high)] = wide_quotient_sums(WideInt.from_integers([number]), [rate], zero, zero, zero).bounds()
    assert low <= Fraction(number * rate[0], rate[1]) * (1 << QUOTIENT_BITS) <= high
