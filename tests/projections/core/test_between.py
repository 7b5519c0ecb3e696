"""Numbers between bounds: what is answered is true of every number between them; what is not is refused as in doubt."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.core.between import Between, InDoubt, Number
from forecast_ledger.projections.core.powers import apportion
from tests.support.effort import times

UNIT = 8  # bounds are in eighths of the exact numbers
EXACT = st.fractions(0, 50, max_denominator=12)


def around(number: Fraction, below: int = 0, above: int = 0, name: object = None) -> Between:
    """Return bounds, in 1/UNIT, that are so much looser than they must be."""
    return Between(max(number * UNIT // 1 - below, 0), -(-number * UNIT // 1) + above, name)


@settings(max_examples=times(120), deadline=None)
@given(EXACT, EXACT, st.integers(0, 3), st.integers(0, 3), st.integers(0, 9))
@example(Fraction(3), Fraction(3), 0, 0, 1)
@example(Fraction(6), Fraction(3), 0, 0, 1)
@example(Fraction(1, 3), Fraction(1, 3), 0, 0, 1)
def test_what_is_answered_is_true_of_the_exact_numbers(
    one: Fraction, other: Fraction, below: int, above: int, factor: int
) -> None:
    """Comparisons, sums, differences, multiples, negatives and quotients of two numbers."""
    a, b = around(one, below, above), around(other, above, below)
    pairs = [(a, one), (a * factor, one * factor), (a + b, one + other), (a - b, one - other), (-a, -one), (b, other)]
    for bounds, exact in pairs:
        assert bounds.low <= exact * UNIT <= bounds.high
    for left, x in pairs:
        for right, y in pairs:
            for ask in ("__lt__", "__le__", "__gt__", "__ge__"):
                try:
                    assert getattr(left, ask)(right) == getattr(x, ask)(y)
                except InDoubt:
                    assert left.low <= right.high
                    assert right.low <= left.high
    if other:
        try:
            quotient, rest = divmod(a, b)
        except InDoubt:
            return
        assert quotient == one // other
        assert rest.low <= one % other * UNIT <= rest.high


def test_numbers_of_one_name_are_equal_after_the_same_operations_only() -> None:
    """The same name is the same number; twice the number is another, which the bounds do not tell apart."""
    a, also, total = Between(3, 9, "a"), Between(3, 9, "a"), Between(20, 22)
    assert a == also
    assert a * 2 == 2 * also
    assert -a == -also
    assert divmod(a, total)[1] == divmod(also, total)[1]
    assert Counter([a, also]) == {a: 2}
    for different in (a * 2, a + 0, Between(3, 9), Between(9, 10), divmod(a, Between(20, 22))[1], divmod(a, total)[1]):
        with pytest.raises(InDoubt):
            _ = a == different


def test_a_number_that_may_be_nothing_is_neither_true_nor_a_divisor() -> None:
    """Between 0 and 1 is in doubt; exactly 0 is not."""
    assert not Between(0, 0)
    assert Between(1, 2)
    with pytest.raises(InDoubt):
        bool(Between(0, 1))
    with pytest.raises(InDoubt):
        divmod(Between(1, 1), Between(0, 1))
    assert divmod(0, Between(2, 3))[0] == 0


@settings(max_examples=times(60), deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=6), st.integers(0, 40), st.integers(0, 2))
def test_a_division_in_bounds_is_the_exact_one_or_in_doubt(weights: list[int], amount: int, room: int) -> None:
    """Parts by largest remainder, and shares, from bounds of integers whose equals have one name."""
    bounded: list[Number] = [Between(w * 100 - room * (w > 0), w * 100 + room * (w > 0), w) for w in weights]
    total = sum(weights)
    try:
        parts = apportion(amount, bounded)
        shares = [half_even(take * 10**3, sum(bounded)) for take in bounded] if total else []
    except InDoubt:
        return
    assert parts == apportion(amount, weights)
    assert shares == [half_even(weight * 10**3, total) for weight in weights if total]
