"""Division in proportion; numbers between bounds, which answer only what is true of every number between them."""

from collections import Counter
from fractions import Fraction
from math import gcd

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.core.powers import ZERO, power
from forecast_ledger.projections.core.proportions import Between, InDoubt, Number, apportion, magnitudes_to_integers
from tests.support.effort import times

UNIT = 8  # bounds are in eighths of the exact numbers
EXACT = st.fractions(0, 50, max_denominator=12)
WEIGHTS = st.lists(st.integers(0, 10**20), min_size=1, max_size=12)


@given(st.lists(st.fractions(0, 1, max_denominator=10**12), max_size=8))
def test_magnitudes_become_integers_in_exact_proportion(factors: list[Fraction]) -> None:
    """The integers are the smallest in that proportion."""
    whole = magnitudes_to_integers([power(factor, "e", Fraction(0)) for factor in factors])
    shares = {Fraction(part) / factor for part, factor in zip(whole, factors, strict=True) if factor}
    assert len(shares) <= 1
    assert [part == 0 for part in whole] == [factor == 0 for factor in factors]
    assert gcd(*whole) in {0, 1}


def test_a_magnitude_far_below_the_largest_counts_as_0() -> None:
    """A part of less than 1e-60 of the largest counts as 0; no prize has ever been paid in such a small unit."""
    takes = [power(Fraction(1, 10**places), "e", Fraction(0)) for places in (0, 59, 61, 10_000)]
    assert magnitudes_to_integers(takes) == [10**59, 1, 0, 0]
    assert magnitudes_to_integers([takes[3]]) == [1]
    assert magnitudes_to_integers([ZERO, ZERO]) == [0, 0]
    assert magnitudes_to_integers([]) == []


@pytest.mark.parametrize(
    ("amount", "weights", "parts"),
    [
        (100, [1, 1, 1], [34, 33, 33]),
        (200, [1, 1, 1], [67, 67, 66]),
        (1, [1, 1], [1, 0]),
        (3, [2, 2], [2, 1]),
        (10, [0, 3, 0], [0, 10, 0]),
        (0, [5, 5], [0, 0]),
        (10, [0, 0], [0, 0]),
        (10, [], []),
        (5, [1, 3], [1, 4]),  # 1.25 and 3.75: the larger remainder, although later
        (7, [10**30, 10**30 + 1], [3, 4]),  # equal in a double
        # Metaculus, Tournament Scoring: takes 0.663, 4.782, 0.275, 0.417 of a pool of 1000 whole dollars
        (1000, [663, 4782, 275, 417], [108, 779, 45, 68]),
    ],
)
def test_an_amount_is_divided_by_largest_remainder(amount: int, weights: list[int], parts: list[int]) -> None:
    """Every part gets its whole units; the rest goes one unit each in order of remainder, of equal remainders to the
    first.
    """
    assert apportion(amount, weights) == parts


@given(st.integers(0, 10**15), WEIGHTS)
def test_the_parts_sum_to_the_amount(amount: int, weights: list[int]) -> None:
    """The sum is exact to the last unit, unless all weights are 0."""
    assert sum(apportion(amount, weights)) == (amount if any(weights) else 0)


@given(st.integers(0, 10**15), WEIGHTS)
def test_every_part_is_within_one_unit_of_its_share(amount: int, weights: list[int]) -> None:
    """A participant without weight gets nothing."""
    assume(any(weights))
    for part, weight in zip(apportion(amount, weights), weights, strict=True):
        assert abs(part - Fraction(amount * weight, sum(weights))) < 1
        assert weight or not part


@given(st.integers(0, 10**6), st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_larger_remainders_go_first_and_equal_ones_in_order(amount: int, weights: list[int]) -> None:
    """A participant who gets one more unit has a larger remainder than one who does not, or an equal one and comes
    earlier.
    """
    assume(any(weights))
    shares = [Fraction(amount * weight, sum(weights)) for weight in weights]
    parts = apportion(amount, weights)
    order = [(-(share % 1), index) for index, share in enumerate(shares)]
    favoured = [key for key, part, share in zip(order, parts, shares, strict=True) if part > share // 1]
    others = [key for key, part, share in zip(order, parts, shares, strict=True) if part == share // 1]
    assert not favoured or not others or max(favoured) < min(others)


@given(st.integers(0, 10**15), WEIGHTS, st.integers(1, 10**20))
def test_the_unit_of_the_weights_does_not_matter(amount: int, weights: list[int], factor: int) -> None:
    """Points, thousandths of points and other multiples divide a pool in the same way."""
    assert apportion(amount, [weight * factor for weight in weights]) == apportion(amount, weights)


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
