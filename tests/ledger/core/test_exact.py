"""Tests of exact arithmetic, against slow and independent arithmetic."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from forecast_ledger.ledger.core.exact import half_even


@given(st.integers(), st.integers(min_value=1))
def test_half_even_is_the_nearest_integer(numerator: int, denominator: int) -> None:
    """Python's `round` of the same fraction is half-even by definition."""
    assert half_even(numerator, denominator) == round(Fraction(numerator, denominator))


@given(st.integers(), st.integers(1, 10**30))
def test_a_tie_goes_to_the_even_integer(whole: int, half: int) -> None:
    """The number (whole + 1/2) is equally near to both integers, so the even one is chosen."""
    rounded = half_even((2 * whole + 1) * half, 2 * half)
    assert rounded % 2 == 0
    assert rounded in {whole, whole + 1}
