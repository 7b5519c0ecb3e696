"""Sums of quotients: their bounds hold and are as narrow as promised."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forecast_ledger.projections.core import quotient_sums
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.quotient_sums import PLACES, bounded_quotient_sums
from forecast_ledger.projections.core.wide_int import WideInt
from tests.support.effort import times

WIDTHS = (0, 1, 18, 36, 54, 72, 90, 98, 99, 126, 133)
NUMBERS = st.integers(-(2**133), 2**133 - 1) | st.sampled_from(
    [sign * (2**width - less) for width in WIDTHS for sign in (1, -1) for less in (0, 1)]
)
RATES = st.tuples(st.integers(0, 2**60), st.integers(1, 2**110)) | st.sampled_from([(0, 1), (1, 1), (1, 3), (2, 3)])
ROWS = st.lists(st.tuples(NUMBERS, RATES, st.booleans()), min_size=1, max_size=40)
TOP = 1 << PLACES + 72  # a reciprocal's unit, where numbers have at most 72 bits
NEARLY = Fraction((1 << 200) + (1 << 72) // 10 + 1, TOP) - Fraction(1, TOP << 68)  # nearly one unit above its floor


def check(rows: list[tuple[int, tuple[int, int], bool]]) -> None:
    """Compare bounds with sums of fractions; a row with True begins a run, as the first row does."""
    numbers, rates, begins = (list(column) for column in zip(*rows, strict=True))
    starts = [0, *(i for i, begin in enumerate(begins) if begin and i)]
    every = int64_array(list(range(len(rows))))
    found = bounded_quotient_sums(WideInt.from_integers(numbers), rates, every, every, int64_array(starts))
    for (low, high), (first, end) in zip(found, pairwise([*starts, len(rows)]), strict=True):
        exact = sum((Fraction(number * rate[0], rate[1]) for number, rate, _ in rows[first:end]), Fraction(0))
        assert low <= exact * (1 << PLACES) <= high
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


def test_sums_of_many_large_products_do_not_wrap() -> None:
    """20,000 of the largest products of either sign, in one run each."""
    count = 20_000
    for number in (2**133 - 1, -(2**133)):
        wide = WideInt(*(np.repeat(word, count) for word in WideInt.from_integers([number])))
        zeros = np.zeros(count, np.int64)
        [(low, high)] = bounded_quotient_sums(wide, [(2**60 - 1, 3)], zeros, np.arange(count), zeros[:1])
        assert low <= Fraction(count * number * (2**60 - 1), 3) * (1 << PLACES) <= high
