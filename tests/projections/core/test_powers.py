"""Tests of roots, logarithms and powers, against slow and independent arithmetic."""

from decimal import Context, FloatOperation, Inexact, localcontext
from fractions import Fraction
from math import factorial

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forecast_ledger.projections.core import powers
from forecast_ledger.projections.core.proportions import magnitudes_to_integers

GUARD = 10**45  # units in 1 of the slow computation: 33 digits finer than the quantum
BILLION = 10**9
NATURAL = st.integers(1, BILLION)
FACTORS = st.fractions(0, 1, max_denominator=10**12)


def twice_atanh(numerator: int, denominator: int) -> int:
    """Return 2 · atanh(n/d) = 2 Σ (n/d)^(2j+1) / (2j+1) in 1/GUARD, for |n/d| <= 1/3."""
    power, total, odd = GUARD * numerator // denominator, 0, 1
    while power:
        total += power // odd
        power = power * numerator * numerator // (denominator * denominator)
        power += power < 0  # towards zero, so that the series ends
        odd += 2
    return 2 * total


def slow_ln(number: Fraction) -> int:
    """Return the logarithm in 1/GUARD: halve or double into [2/3, 4/3], then ln m = 2 · atanh((m - 1) / (m + 1))."""
    halvings = 0
    while number > Fraction(4, 3):
        number, halvings = number / 2, halvings + 1
    while number < Fraction(2, 3):
        number, halvings = number * 2, halvings - 1
    ratio = (number - 1) / (number + 1)
    return twice_atanh(ratio.numerator, ratio.denominator) + halvings * twice_atanh(1, 3)


def slow_exp(exponent: Fraction) -> Fraction:
    """Return Σ x^j / j! up to the hundredth term: for |x| <= 4 the rest is below 1e-97."""
    return sum((exponent**j / factorial(j) for j in range(100)), Fraction(0))


@given(NATURAL)
def test_the_logarithm_of_a_probability_is_rounded_half_even_once(k: int) -> None:
    """On random points k / 10^9, the result agrees with a series in integers that has 33 more digits."""
    assert powers.ln_fixed(k, BILLION) == round(Fraction(slow_ln(Fraction(k, BILLION)), GUARD // 10**12))


@given(NATURAL, NATURAL, st.sampled_from([1, 10**6, 10**15]))
def test_the_logarithm_holds_for_any_unit_and_quantum(k: int, unit: int, quantum: int) -> None:
    """ln(k / unit) depends only on the quotient, above 1 and below 1."""
    assert powers.ln_fixed(k, unit, quantum) == round(Fraction(slow_ln(Fraction(k, unit)) * quantum, GUARD))
    assert powers.ln_fixed(7 * k, 7 * unit, quantum) == powers.ln_fixed(k, unit, quantum)


@given(st.integers(0, 200).flatmap(lambda bits: st.integers(1, 2 ** (bits + 1))), st.integers(1, 2**200))
def test_the_logarithm_holds_for_numbers_of_any_size(k: int, unit: int) -> None:
    """The result also holds for numbers with more bits than the computation has."""
    assert powers.ln_fixed(k, unit) == round(Fraction(slow_ln(Fraction(k, unit)), GUARD // 10**12))


def test_a_logarithm_is_known_to_forty_decimals_and_more() -> None:
    """It agrees with a series that scales numbers in another way; each bit of the number adds an error of 2^-138 at
    most.
    """
    for k in (1, 2, 3, 255, 256, 257, 2**143, 2**144 - 1, 2**144, 2**144 + 1, *range(1_000, 4_000, 7)):
        off = Fraction(powers.ln_fixed(k, 1, 10**40), 10**40) - Fraction(slow_ln(Fraction(k)), GUARD)
        assert abs(off) < Fraction(k.bit_length(), 2**138) + Fraction(1, 10**40), k


@pytest.mark.parametrize(
    ("k", "unit", "picos"),
    [
        (1, 1, 0),
        (BILLION, BILLION, 0),
        (1, 2, -693_147_180_560),  # ln 2 = 0.6931471805599453…
        (1, 10, -2_302_585_092_994),  # ln 10 = 2.302585092994045684…
        (1, BILLION, -20_723_265_836_946),  # 9 · ln 10 = 20.7232658369464111…
        (BILLION - 1, BILLION, -1_000),  # ln(1 - x) = -x - x²/2 …, and x = 1e-9 is 1000 units
    ],
)
def test_known_logarithms(k: int, unit: int, picos: int) -> None:
    """The digits of ln 2 and ln 10 are those of published tables."""
    assert powers.ln_fixed(k, unit) == picos


@pytest.mark.parametrize("exponent", range(31))
def test_the_binary_logarithm_of_a_power_of_two_is_exact(exponent: int) -> None:
    """log2(2^-n) is exactly -n."""
    assert powers.log2_fixed(1, 2**exponent) == -exponent * 10**12
    assert powers.log2_fixed(3 * 2**exponent, 3) == exponent * 10**12


@given(NATURAL)
def test_the_binary_logarithm_is_the_natural_one_over_ln_2(k: int) -> None:
    """log2 x is ln x / ln 2, rounded once."""
    quotient = Fraction(slow_ln(Fraction(k, BILLION)), twice_atanh(1, 3))
    assert powers.log2_fixed(k, BILLION) == round(quotient * 10**12)


def number(magnitude: powers.Magnitude) -> Fraction:
    """Return the number that a magnitude represents."""
    return magnitude.mantissa * Fraction(10) ** magnitude.exponent


@given(FACTORS, st.fractions(-4, 4, max_denominator=10**12))
def test_e_to_a_power_is_right_to_thirty_digits(factor: Fraction, exponent: Fraction) -> None:
    """The result agrees with the power series of e, summed without rounding; the factor is powers."""
    assume(factor)
    difference = number(powers.power(factor, "e", exponent)) / (factor * slow_exp(exponent)) - 1
    assert abs(difference) <= Fraction(1, 2 * 10**29) + Fraction(1, 10**36)


@given(st.integers(-200, 200), st.integers(1, 8))
def test_two_to_a_power_is_the_root_of_a_power_of_two(numerator: int, denominator: int) -> None:
    """(2^(n/d))^d is 2^n, to thirty digits of the root."""
    root = number(powers.power(Fraction(1), "2", Fraction(numerator, denominator)))
    assert abs(root**denominator / Fraction(2) ** numerator - 1) < Fraction(denominator, 10**29)


def test_a_power_of_two_that_has_thirty_digits_is_exact() -> None:
    """2^99 and 2^-42 have thirty digits, so nothing is rounded."""
    for exponent in range(-42, 100):
        assert number(powers.power(Fraction(1), "2", Fraction(exponent))) == Fraction(2) ** exponent, exponent


@given(FACTORS, st.sampled_from(["e", "2"]))
def test_anything_to_the_power_zero_is_exactly_one(factor: Fraction, base: str) -> None:
    """A participant whose score is 0 takes coverage x 1, exactly."""
    assert number(powers.power(factor, base, Fraction(0))) == factor


@given(FACTORS, FACTORS)
def test_magnitudes_compare_as_the_numbers_do(first_number: Fraction, second_number: Fraction) -> None:
    """Equal magnitudes share a rank, so equality matters as much as order; each number has one form."""
    first, second = [powers.power(factor, "e", Fraction(0)) for factor in (first_number, second_number)]
    assert (first < second, first == second) == (first_number < second_number, first_number == second_number)
    assert 1 <= first.mantissa < 10 or (first.mantissa == 0 and first_number == 0)
    assert first.positive == (first_number > 0)


@pytest.mark.parametrize(
    ("smaller", "larger"), [(-(10**6), -(10**6) + 1), (-(10**6), 0), (0, 10**6), (10**6, 10**6 + 1)]
)
@pytest.mark.parametrize("base", ["e", "2"])
def test_scores_of_any_size_have_a_take_and_a_rank(smaller: int, larger: int, base: str) -> None:
    """E to the millionth is not infinite, and its inverse is not 0."""
    low, high = [powers.power(Fraction(1, 2), base, Fraction(score)) for score in (smaller, larger)]
    assert low < high
    assert powers.power(Fraction(0), base, Fraction(larger)) < low


def test_a_number_just_below_a_power_of_ten_has_its_place_below_it() -> None:
    """Sixty nines are less than ten, although thirty or forty of their digits round to ten."""
    nines = Fraction(10**60 - 1, 10**60)
    low, unit = [powers.power(factor, "e", Fraction(0)) for factor in (nines, Fraction(1))]
    assert low < unit
    assert number(low) == nines
    assert 1 <= low.mantissa < 10


def test_a_callers_decimal_context_changes_nothing() -> None:
    """A context with three digits and a trap for every rounding, set by the calling program, does not change the
    integers.
    """

    def reckoned() -> list[object]:
        third = powers.power(Fraction(1, 3), "2", Fraction(1, 7))
        return [
            powers.ln_fixed(123_456_789, BILLION),
            powers.log2_fixed(3, 7),
            third,
            magnitudes_to_integers([third, powers.ZERO]),
        ]

    plainly = reckoned()
    with localcontext(Context(prec=3, traps=[Inexact, FloatOperation])):
        assert reckoned() == plainly
