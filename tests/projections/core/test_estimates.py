"""Integers decided by float estimates, compared with Python's exact ones."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from hashlib import sha256
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.core.estimates import (
    divide_wrapped,
    floats,
    ln_many,
    log2_many,
    log10_many,
    matrix_product,
    multiply_and_round,
    root_shares,
    round_estimates,
    subtract_and_round,
    wide_matrix_product,
)
from forecast_ledger.projections.core.powers import QUANTUM, ln_fixed, log2_fixed, log10_fixed
from forecast_ledger.projections.core.wide_int import WideInt
from tests.support.effort import times
from tests.support.oracle import EXACT


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


# --- Logarithms in fixed point, against a series of integers and 60 digits.


PPM = 10**6
BITS = 96  # binary places of the recurrence
Log = Callable[[Int64Array, int], Int64Array]
Exactly = Callable[[int, int], int]
EACH = pytest.mark.parametrize(
    ("many", "one"), [(ln_many, ln_fixed), (log2_many, log2_fixed), (log10_many, log10_fixed)]
)
ESTIMATES: dict[Exactly, Callable[..., NDArray[Any]]] = {ln_fixed: np.log, log2_fixed: np.log2, log10_fixed: np.log10}
NAMES: dict[Exactly, str] = {ln_fixed: "log", log2_fixed: "log2", log10_fixed: "log10"}
BASES: dict[Exactly, int] = {log2_fixed: 2, log10_fixed: 10}


@cache
def table() -> tuple[int, ...]:
    """ln(k / 10^6) for k = 1 … 999,999 in 2^-96, by ln(k + 1) = ln k + 2 · atanh(1 / (2k + 1))."""
    steps, running = [0], 0
    for k in range(1, PPM):
        odd = 2 * k + 1
        power, square, divisor = (2 << BITS) // odd, odd * odd, 1
        while power:
            running += power // divisor
            power //= square
            divisor += 2
        steps.append(running)
    return tuple(step - steps[-1] for step in steps[:-1])


def rounded(quantum: int) -> Int64Array:
    """The table in 1 / quantum; no value lies nearer to a tie than the recurrence errs."""
    half = 1 << BITS - 1
    return int64_array([value * quantum + half >> BITS for value in table()])


def digest(values: Int64Array) -> str:
    """The first twelve digits of the SHA-256 of the little-endian table."""
    return sha256(values.astype("<i8").tobytes()).hexdigest()[:12]


def points(unit: int, count: int, seed: int) -> Int64Array:
    """Random k below the unit, of every size."""
    choose = Random(seed)
    top = unit.bit_length() - 1
    return int64_array([1, unit, *(min(choose.getrandbits(choose.randint(1, top)) or 1, unit) for _ in range(count))])


def nearest_to_ties(unit: int, count: int, logarithm: Callable[..., NDArray[Any]]) -> Int64Array:
    """Of 200,000 random k, those whose logarithm, to 64 bits where the machine has them, is nearest to a rounding tie.

    Also k = unit - odd · unit / 10^6: ln(1 - odd · 10^-6) is half a quantum, less some 3e-7 · odd^3 quanta.
    """
    near_one = unit - np.arange(1, 100, 2) * (unit // PPM)
    k = np.random.default_rng(5).integers(1, unit, 200_000)
    along = logarithm(k.astype(np.longdouble) / np.longdouble(unit)) * np.longdouble(QUANTUM)
    return np.append(near_one, k[np.argsort(np.abs(along - np.floor(along) - 0.5))[:count]])


def noisy(logarithm: Callable[..., NDArray[np.float64]], seed: int) -> Callable[..., NDArray[np.float64]]:
    """A float logarithm that errs by up to four units in the last place."""
    noise = np.random.default_rng(seed)

    def perturbed(values: NDArray[np.float64]) -> NDArray[np.float64]:
        right = logarithm(values)
        return right + noise.integers(-4, 5, len(right)) * np.spacing(right)

    return perturbed


def test_every_logarithm_of_a_millionth_is_the_published_one() -> None:
    """All ln(k / 10^6), k = 1 … 999,999, in 1e-12: by a digest of the table, and by an integer series."""
    logarithms = ln_many(np.arange(1, PPM), PPM)
    assert digest(logarithms) == "210df61b8d5c"
    assert np.array_equal(logarithms, rounded(QUANTUM))


def test_the_table_in_billionths_is_the_published_one() -> None:
    """The same in 1e-9, where the scalar is compared on every 400th point and on both ends."""
    billionths = rounded(10**9)
    assert digest(billionths) == "b9c80c440b4b"
    sample = [1, 2, 3, *range(400, PPM, 400), PPM - 2, PPM - 1]
    assert [ln_fixed(k, PPM, 10**9) for k in sample] == billionths[np.array(sample) - 1].tolist()


@EACH
@pytest.mark.parametrize("unit", [10**9, 10**10, 2 * 10**10])
def test_many_logarithms_are_those_of_one(many: Log, one: Exactly, unit: int) -> None:
    """The array function equals the scalar one on random points of every size, the smallest and the largest."""
    k = points(unit, 3_000, seed=unit)
    assert many(k, unit).tolist() == [one(number, unit) for number in k.tolist()]


@EACH
@pytest.mark.parametrize("unit", [10**9, 10**10])
def test_logarithms_near_a_rounding_tie_are_rounded_the_right_way(many: Log, one: Exactly, unit: int) -> None:
    """A float cannot decide these roundings; 60 digits can."""
    k = nearest_to_ties(unit, 300, ESTIMATES[one]).tolist()
    scale = EXACT.divide(QUANTUM, EXACT.ln(Decimal(BASES[one])) if one in BASES else 1)
    logarithms = [EXACT.multiply(EXACT.ln(EXACT.divide(number, unit)), scale) for number in k]
    slow = [int(EXACT.quantize(number, Decimal(1))) for number in logarithms]
    assert many(int64_array(k), unit).tolist() == slow == [one(number, unit) for number in k]


@EACH
@pytest.mark.parametrize("seed", range(times(8)))
def test_a_less_exact_float_logarithm_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, many: Log, one: Exactly, seed: int
) -> None:
    """A platform's logarithm may err by four units in the last place, the most that any vendor documents."""
    k = np.append(points(10**10, 20_000, seed), nearest_to_ties(10**10, 100, np.log))
    right = many(k, 10**10)
    name = NAMES[one]
    monkeypatch.setattr(np, name, noisy(getattr(np, name), seed))
    assert np.array_equal(many(k, 10**10), right)


def test_no_logarithms_of_no_numbers() -> None:
    """An empty array gives an empty array."""
    assert ln_many(int64_array([]), PPM).tolist() == log2_many(int64_array([]), PPM).tolist() == []
