"""Integers decided by float estimates, compared with Python's exact ones."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.estimates import (
    divide_wrapped,
    floats,
    matrix_product,
    multiply_and_round,
    root_shares,
    round_estimates,
    subtract_and_round,
    wide_matrix_product,
)
from forecast_ledger.projections.core.powers import QUANTUM
from forecast_ledger.projections.core.wide_int import WideInt


@given(st.lists(st.tuples(st.integers(-(2**52), 2**52), st.integers(1, 2**60 - 1), st.floats(-0.99, 0.99)), min_size=1))
def test_a_wide_number_is_divided_by_its_last_64_bits_and_an_estimate(rows: list[tuple[int, int, float]]) -> None:
    """An estimate may be less than 2^60 off."""
    numbers = [quotient * over + over // 3 for quotient, over, _ in rows]
    wrapped = np.array([number % 2**64 for number in numbers], np.uint64).astype(np.int64)
    divisors = np.array([over for _, over, _ in rows], np.int64)
    estimates = np.array([quotient * over + missed * (2**60 - 2**53) for quotient, over, missed in rows], np.float64)
    quotients, rests = divide_wrapped(wrapped, divisors, estimates)
    expected = [divmod(number, over) for number, (_, over, _) in zip(numbers, rows, strict=True)]
    assert list(zip(quotients.tolist(), rests.tolist(), strict=True)) == expected


SHARES = st.lists(st.fractions(0, 1), min_size=3, max_size=3)
AMOUNTS = st.lists(st.integers(0, 10**10), min_size=3, max_size=3)
LESS = st.tuples(st.integers(-(10**12), 10**12), st.integers(0, 10**8), SHARES, AMOUNTS)


@given(st.lists(LESS, min_size=1), st.integers(10**8 + 1, 10**12), st.sampled_from([1, 3 * 10**10]))
def test_a_certain_row_has_the_nearest_quotient(
    rows: list[tuple[int, int, list[Fraction], list[int]]], denominator: int, factor: int
) -> None:
    """It is the exact difference rounded; rows that are too near to a tie are returned as uncertain."""
    quotients, rests = (np.array([row[place] for row in rows]) for place in (0, 1))
    shares, amounts = floats(np.array([row[2] for row in rows], object)), np.array([row[3] for row in rows])
    rounded, uncertain = subtract_and_round(quotients, rests, denominator, shares * amounts * factor)
    for row, (quotient, rest, exact, amount) in enumerate(rows):
        subtracted = factor * sum(share * number for share, number in zip(exact, amount, strict=True))
        value = quotient + (rest - subtracted) / Fraction(denominator)
        if row not in uncertain:
            assert abs(value - int(rounded[row])) < Fraction(1, 2)


@given(st.integers(1, 10**9), st.integers(0, 10**18))
def test_a_certain_share_of_a_root_is_the_nearest(part: int, rest: int) -> None:
    """The result n satisfies n - 1/2 < p / √s · 10^12 < n + 1/2."""
    square = part * part + rest
    [share], uncertain = root_shares(np.array([part]), np.array([square]))
    if not len(uncertain):
        assert (2 * int(share) - 1) ** 2 * square < (2 * part * QUANTUM) ** 2 < (2 * int(share) + 1) ** 2 * square


def test_a_tie_is_uncertain() -> None:
    """7 3/5 less half of 1/5 is 7.5, a tie."""
    _, uncertain = subtract_and_round(np.array([7]), np.array([3]), 5, np.array([[0.5]]))
    assert uncertain.tolist() == [0]
    _, uncertain = root_shares(np.array([1]), np.array([2**26]))  # 10^12 / 2^13 = 122,070,312.5
    assert uncertain.tolist() == [0]


WIDE = st.integers(-(2**130), 2**130) | st.integers(-(2**70), 2**70) | st.integers(-9, 9)
FACTORS = st.fractions() | st.builds(Fraction, st.integers(-9, 9), st.integers(1, 10**30)) | st.just(Fraction(1, 2))


@given(st.lists(st.tuples(WIDE, FACTORS), min_size=1, max_size=20))
@example([(1, Fraction(1, 2)), (3, Fraction(1, 2)), (-1, Fraction(1, 2)), (-3, Fraction(1, 2))])
@example([(2**72 - 1, Fraction(1, 2**25)), (-(2**71), Fraction(1, 2**72)), (-(2**72) + 1, Fraction(10**9, 2**73))])
@example([(2**62 - 1, Fraction(1)), (-(2**62) + 1, Fraction(1))])
@example([(2**62, Fraction(1)), (1, Fraction(7)), (-(2**62), Fraction(1))])
def test_products_are_rounded_once_and_half_to_even(pairs: list[tuple[int, Fraction]]) -> None:
    """The result equals `round` of exact fractions; it is an array if 62 bits are enough, else a list."""
    numbers, factors = WideInt.from_integers([number for number, _ in pairs]), [factor for _, factor in pairs]
    rounded = multiply_and_round(numbers, factors, np.arange(len(pairs)))
    expected = [round(number * factor) for number, factor in pairs]
    assert list(rounded) == expected
    assert isinstance(rounded, list) == any(abs(number) >= 2**62 for number in expected)


def test_each_row_is_multiplied_by_the_factor_at_its_index() -> None:
    """Two of three rows have the second factor; no numbers give no rows."""
    halves = [Fraction(1, 2), Fraction(5)]
    assert list(multiply_and_round(WideInt.from_integers([3, 3, 10]), halves, int64_array([0, 1, 1]))) == [2, 15, 50]
    assert list(multiply_and_round(WideInt.from_integers([]), [], int64_array([]))) == []


def test_an_estimate_decides_where_no_tie_is_within_its_guard() -> None:
    """The other rows are returned as uncertain and hold 0; a guard of a half or more decides nothing."""
    values, guards = np.array([1.4, 1.499, -2.6, 1e300, 7.0]), np.array([0.01, 0.01, 0.01, 1e290, 0.6])
    rounded, doubtful = round_estimates(values, guards)
    assert (rounded.tolist(), doubtful.tolist()) == ([1, 0, -3, 0, 0], [1, 3, 4])


@pytest.mark.parametrize("bits", [1, 20, *range(42, 56)])
def test_products_are_exact(bits: int) -> None:
    """Around the size at which numbers are cut into limbs, and where every number has the same sign."""
    random = Random(bits)
    for low in (-(2**bits) + 1, 2 ** (bits - 1)):
        rows = [[random.randrange(low, 2**bits) for _ in range(60)] for _ in range(3)]
        times = [[random.randrange(4) for _ in range(5)] for _ in range(60)]
        expected = [
            [sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*times, strict=True)]
            for row in rows
        ]
        assert matrix_product(np.array(rows), np.array(times)).tolist() == expected
        signs = [[random.choice((-1, 1)) for _ in range(5)] for _ in range(60)]
        expected = [
            [sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*signs, strict=True)]
            for row in rows
        ]
        assert matrix_product(np.array(rows), np.array(signs)).tolist() == expected


def test_nothing_adds_up_to_nothing() -> None:
    """No rows, or only zeros."""
    assert matrix_product(np.zeros((0, 2), np.int64), np.ones((2, 3), np.int64)).shape == (0, 3)
    assert matrix_product(np.zeros((2, 2), np.int64), np.zeros((2, 1), np.int64)).tolist() == [[0], [0]]


def test_wide_products_are_exact() -> None:
    """Of numbers of either sign and any size, with times of either sign."""
    random = Random(3)
    for bits in (0, 40, 61, 62, 300):
        rows = [[random.randrange(-(1 << bits), (1 << bits) + 1) for _ in range(7)] for _ in range(3)]
        times = [[random.randrange(-3, 4) for _ in range(5)] for _ in range(7)]
        expected = [
            [sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*times, strict=True)]
            for row in rows
        ]
        assert wide_matrix_product(np.array(rows, object), np.array(times)).tolist() == expected
