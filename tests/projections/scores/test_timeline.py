"""Timelines: questions laid one after another, in slices that fit."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.scores.sampling import LONGEST_TIMELINE, chunks, shifts

# --- Timelines: questions laid one after another, in slices that fit.


CENTURY = 36_525 * 86_400 * 10**6  # µs, the longest a question may last
FIRST_YEAR = -62_135_596_800 * 10**6  # 0001-01-01, the first instant there is
COUNTS = st.lists(st.integers(0, 9), max_size=12)
PERIODS = st.lists(st.tuples(st.integers(FIRST_YEAR, 2**57), st.integers(1, CENTURY)), min_size=1, max_size=12)


def column(values: list[int]) -> Int64Array:
    """Values as a column."""
    return np.array(values, np.int64)


def runs(sizes: list[int], most: int, period: int = 1) -> list[tuple[int, int]]:
    """The first and last question of each slice, if every question lasts this period."""
    nought = np.zeros(len(sizes), np.int64)
    return [(part.start, part.stop) for part in chunks(column(sizes), nought, nought + period, most)]


@given(PERIODS)
def test_no_two_questions_share_an_instant(periods: list[tuple[int, int]]) -> None:
    """Each question lies wholly after the closing instant of the one before it."""
    opens, closes = column([at for at, _ in periods]), column([at + lasts for at, lasts in periods])
    shift = shifts(opens, closes).tolist()
    moved = [(int(opens[i]) + shift[i], int(closes[i]) + shift[i]) for i in range(len(periods))]
    assert moved[0][0] >= 0
    assert all(close < next_opening for (_, close), (next_opening, _) in pairwise(moved))


def test_a_timeline_begins_at_0_and_has_no_gaps() -> None:
    """Questions of 4 and 2 µs take 5 and 3 instants."""
    assert shifts(column([100, -50, 7]), column([104, -48, 8])).tolist() == [-100, 55, 1]


@given(COUNTS, st.integers(1, 20))
def test_runs_hold_every_question_once_in_order(sizes: list[int], most: int) -> None:
    """No question is left out and none occurs twice."""
    slices = runs(sizes, most)
    assert [i for begin, end in slices for i in range(begin, end)] == list(range(len(sizes)))
    assert all(begin < end for begin, end in slices)


@given(COUNTS, st.integers(1, 20))
def test_a_run_is_as_long_as_it_may_be(sizes: list[int], most: int) -> None:
    """A slice has at most `most` forecasts or one question; with the next question it would have more."""
    for begin, end in runs(sizes, most):
        assert sum(sizes[begin:end]) <= most or end - begin == 1
        assert end == len(sizes) or sum(sizes[begin : end + 1]) > most


def test_a_slice_fits_on_the_timeline() -> None:
    """2^61 µs are 730 centuries and a bit."""
    assert LONGEST_TIMELINE // (CENTURY + 1) == 730
    assert runs([1] * 1_500, 10**6, CENTURY) == [(0, 730), (730, 1_460), (1_460, 1_500)]


def test_the_last_question_of_a_run_ends_within_64_bits() -> None:
    """Instants on the timeline are added and subtracted, so they stay well below 2^63."""
    opens = np.full(730, FIRST_YEAR)
    assert int((shifts(opens, opens + CENTURY) + opens + CENTURY)[-1]) == 730 * (CENTURY + 1) - 1 < 2**61


def test_a_question_with_too_many_forecasts_is_not_scored_wrongly() -> None:
    """Sums of 2^26 numbers could lose a carry; one fewer cannot."""
    with pytest.raises(OverflowError, match="67108864 forecasts on one question"):
        runs([1, 1 << 26], most=10)
    assert runs([(1 << 26) - 1], most=10) == [(0, 1)]


def test_no_questions_make_no_runs() -> None:
    """Without questions there are no slices."""
    assert runs([], most=1) == []
