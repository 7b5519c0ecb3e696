"""Sums of quotients: their bounds hold and are as narrow as promised."""

from contextlib import suppress
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forecast_ledger.projections.core import quotient_sums
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.quotient_sums import (
    PLACES,
    BoundedSums,
    bounded_quotient_sums,
    wide_quotient_sums,
)
from forecast_ledger.projections.core.wide_int import WideInt
from tests.support.effort import times

WIDTHS = (0, 1, 18, 36, 54, 72, 90, 98, 99, 126, 133)
NUMBERS = st.integers(-(2**133), 2**133 - 1) | st.sampled_from(
    [sign * (2**width - less) for width in WIDTHS for sign in (1, -1) for less in (0, 1)]
)
RATES = st.tuples(st.integers(0, 2**60), st.integers(1, 2**110)) | st.sampled_from([(0, 1), (1, 1), (1, 3), (2, 3)])
ROWS = st.lists(st.tuples(NUMBERS, RATES, st.booleans()), min_size=1, max_size=40)
TOP = 1 << PLACES + 72  # a reciprocal's unit, where numbers have at most 72 bits
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
        assert low <= value * (1 << PLACES) <= high
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
    monkeypatch.setattr(quotient_sums, "_AT_ONCE", at_once)
    check([(10**30 * (-1) ** i + i, (i + 1, 3 * i + 7), i in {1, 2, 7}) for i in range(12)])


def test_only_the_rows_that_are_asked_for_are_added() -> None:
    """5/7 is the second row alone; no runs give no sums."""
    numbers = WideInt.from_integers([3, 5, 9])
    which = int64_array([0, 1, 0])
    [(low, high)] = bounded_quotient_sums(numbers, [(1, 3), (1, 7)], which, int64_array([1]), int64_array([0]))
    assert 7 * low < 5 << PLACES < 7 * high
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
        assert Fraction(*found.middle(place)) * (1 << PLACES) == low + Fraction(width, 2)


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
    assert low <= Fraction(number * rate[0], rate[1]) * (1 << PLACES) <= high
