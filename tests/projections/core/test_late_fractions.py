"""Tests of fractions that are computed late; every result must be that of a Fraction."""

from decimal import Context, Decimal
from fractions import Fraction
from math import floor

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.boards.leaderboard import positive_square, published_take
from forecast_ledger.projections.core import late_fractions
from forecast_ledger.projections.core.late_fractions import (
    BITS,
    LateFraction,
    bounds_of,
    comparable,
    integers_in_proportion,
    quotient,
    round_to_units,
    sum_of_terms,
    sum_within,
    to_decimal,
)
from forecast_ledger.projections.core.powers import power
from tests.support.effort import times

PRIMES = [p for p in range(1_000, 2_000) if all(p % q for q in range(2, 50))]
CONTEXT = Context(prec=40)
CLOSE = Fraction(1, 10**100)  # nearer to a boundary than the bounds can show


def slow(terms: list[tuple[int, int]]) -> Fraction:
    """Return the sum, added term by term."""
    return sum((Fraction(*term) for term in terms), Fraction(0))


def just(number: Fraction) -> Fraction:
    """Return a number as a sum that has many terms of other denominators and a last term that makes it exact."""
    terms = [(1, p) for p in PRIMES[:40]]
    made = sum_of_terms([*terms, *((-1, p * 7) for p in PRIMES[:40])])
    rest = number - slow([*terms, *((-1, p * 7) for p in PRIMES[:40])])
    return made + rest


terms = st.lists(
    st.tuples(st.integers(-(10**20), 10**20), st.sampled_from(PRIMES).map(lambda p: p * 10**6)), min_size=0, max_size=60
)


@settings(max_examples=times(75), deadline=None)
@given(terms, terms, st.fractions(max_denominator=10**6), st.integers(1, 10**12))
def test_every_operation_on_a_sum_gives_the_result_of_a_fraction(
    first_terms: list[tuple[int, int]], second_terms: list[tuple[int, int]], factor: Fraction, units: int
) -> None:
    """Sums, differences, multiples, quotients, comparisons and roundings agree, for few terms, many, and those that
    cancel.
    """
    a, b, x, y = sum_of_terms(first_terms), sum_of_terms(second_terms), slow(first_terms), slow(second_terms)
    assert (a, b) == (x, y)
    for left, right, exact in (
        (a + b, b + a, x + y),
        (a - b, -(b - a), x - y),
        (a * factor, factor * a, x * factor),
        (a + factor, factor + a, x + factor),
        (a - factor, -(factor - a), x - factor),
        (a * 3 - b * 3, 3 * (a - b), 3 * (x - y)),
        (a * factor + b * factor, factor * (b + a), factor * (x + y)),
        (a + a * 2, 3 * a, 3 * x),
        (a - a, a * 0, Fraction(0)),
        ((a + b) - b, a, x),
    ):
        assert left == exact
        assert right == exact
        assert Fraction(left.numerator, left.denominator) == exact
        assert round_to_units(left, units) == half_even(exact.numerator * units, exact.denominator)
        assert (floor(left), bool(left), abs(left)) == (floor(exact), bool(exact), abs(exact))
        context = Context(prec=40)
        assert to_decimal(left, context) == context.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    assert ((a < b), (a <= b), (a > b), (a >= b), (a == b)) == ((x < y), (x <= y), (x > y), (x >= y), (x == y))
    assert (a < factor, a >= factor, factor < a, factor == a) == (x < factor, x >= factor, factor < x, factor == x)
    assert max(a, factor) == max(x, factor)
    if y:
        assert a / b == quotient(a, b) == x / y
    if factor:
        assert a / factor == quotient(a, factor) == x / factor
    assert hash(a) == hash(x)


@settings(max_examples=times(36), deadline=None)
@given(st.integers(-(10**12), 10**12), st.integers(1, 10**9), st.sampled_from([-1, 0, 1]))
@example(1, 1, 0)
@example(0, 10**9, 0)
def test_at_a_boundary_the_exact_number_decides(twice: int, units: int, side: int) -> None:
    """A tie rounds to even; a number nearer to a tie than its bounds can show is rounded to its own side."""
    exact = Fraction(twice, 2 * units) + side * CLOSE
    number = just(exact)
    assert isinstance(number, LateFraction)
    low, high = number.bounds()
    assert low < high
    assert round_to_units(number, units) == half_even(exact.numerator * units, exact.denominator)
    assert floor(number) == floor(exact)
    assert [number < exact, number <= exact, number == exact, number > exact] == [False, True, True, False]
    tie = Fraction(twice, 2 * units)
    assert [number < tie, number == tie, number > tie] == [side < 0, side == 0, side > 0]


def test_equal_sums_of_unlike_terms_are_equal() -> None:
    """Sums of different terms are equal exactly if their values are, so participants share a rank only then."""
    one, other = just(Fraction(1, 3)), just(Fraction(1, 3) + CLOSE)
    assert isinstance(one, LateFraction)
    assert isinstance(other, LateFraction)
    assert one == just(Fraction(1, 3)) == Fraction(1, 3)
    assert (one < other, one == other, other > Fraction(1, 3)) == (True, False, True)
    assert sorted([other, Fraction(1, 3), one], key=lambda number: number)[2] is other


def test_a_certain_comparison_does_not_compute_the_number_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison, a rounding or a take that the bounds decide does not compute the number in full."""
    made = [sum_of_terms([(number * p, p + 1) for p in PRIMES]) for number in (3, 5)]
    monkeypatch.setattr(late_fractions, "added_in_pairs", None)
    small = Fraction(1, 1_000)
    assert made[0] < made[1]
    assert round_to_units(made[0] * Fraction(2, 7), 10**9) > 0
    assert power(made[0] * small, "e", made[1] * small).positive
    assert power(made[0] * small, "2", made[1] * small).positive
    with pytest.raises(TypeError):
        assert made[0].numerator


@settings(max_examples=times(50), deadline=None)
@given(terms, terms, st.fractions(min_value=0, max_value=10**6, max_denominator=10**6), st.integers(1, 10**12))
def test_squares_are_those_of_fractions(
    one: list[tuple[int, int]], other: list[tuple[int, int]], factor: Fraction, units: int
) -> None:
    """Multiples, comparisons and roundings agree, for equal squares, different ones, and plain fractions."""
    a, b, x, y = (sum_of_terms(one) ** 2, sum_of_terms(other) ** 2, slow(one) ** 2, slow(other) ** 2)
    for left, right, exact, beside in (
        (a, b, x, y),
        (a * factor, b, x * factor, y),
        (a, -a, x, -x),
        (a, factor, x, factor),
    ):
        assert (left, right) == (exact, beside)
        assert (left < right, left == right, left >= right) == (exact < beside, exact == beside, exact >= beside)
        assert round_to_units(left, units) == half_even(exact.numerator * units, exact.denominator)
        assert floor(left) == floor(exact)
        assert to_decimal(left, CONTEXT) == CONTEXT.divide(Decimal(exact.numerator), Decimal(exact.denominator))
        assert left - right == exact - beside
    assert (2 * sum_of_terms(one)) ** 2 * Fraction(1, 4) == a
    numbers, exacts = [a, b * factor, factor, a * 2], [x, y * factor, factor, x * 2]
    integers = integers_in_proportion(numbers)
    for i, p in zip(integers, exacts, strict=True):
        assert bool(i) == bool(p)
        assert all(i * q == j * p for j, q in zip(integers, exacts, strict=True))


def test_a_certain_take_of_a_square_is_not_computed_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison of two squares does not compute them in full, even if they are equal."""
    made = [sum_of_terms([(number * p, p + 1) for p in PRIMES]) for number in (3, 5, 3)]
    real = late_fractions.added_in_pairs

    def few(terms: list[tuple[int, int]]) -> tuple[int, int]:
        assert len(terms) < len(PRIMES), "spelled out"
        return real(terms)

    monkeypatch.setattr(late_fractions, "added_in_pairs", few)
    takes = [positive_square(number, Fraction(1)) for number in made]
    assert takes[0] < takes[1]
    assert takes[0] == takes[2]
    assert takes[0] <= takes[2]
    assert published_take(takes[0]) < published_take(takes[1])
    with pytest.raises(AssertionError, match="spelled out"):
        assert takes[0].mantissa.numerator


def test_equal_squares_of_unlike_roots_are_equal() -> None:
    """A quarter of the square of twice a number is its square, and a hair more or less than a quarter is not."""
    root = sum_of_terms([(1, p) for p in PRIMES])
    square, doubled = root**2, (2 * root) ** 2
    assert doubled * Fraction(1, 4) == square
    assert [doubled * (Fraction(1, 4) + hair) > square for hair in (-CLOSE, CLOSE)] == [False, True]
    assert quotient(2 * root, 2 * root + 1) ** 2 == quotient(root, root + Fraction(1, 2)) ** 2


def test_terms_that_are_whole_are_added_as_such() -> None:
    """Terms that are integers add up to a plain fraction, which is computed at once."""
    assert type(sum_of_terms([(3 * p, p) for p in PRIMES])) is Fraction
    assert sum_of_terms([(3 * p, p) for p in PRIMES]) == 3 * len(PRIMES)


def test_numbers_of_a_small_common_denominator_are_compared_as_integers() -> None:
    """These are in the same order, and as equal; numbers of unlike denominators, or computed late, stay as they are."""
    numbers = [Fraction(n, d) for n in (-3, 0, 2, 4) for d in (1, 2, 6, 7)]
    integers = comparable(numbers)
    assert {*map(type, integers)} == {int}
    for i, p in zip(integers, numbers, strict=True):
        assert [(i < j, i == j) for j in integers] == [(p < q, p == q) for q in numbers]
    for late in ([sum_of_terms([(1, p) for p in PRIMES])], [Fraction(1, p) for p in PRIMES]):
        assert comparable(late) is late


@settings(max_examples=times(36), deadline=None)
@given(st.lists(st.tuples(terms, st.fractions(min_value=0, max_value=9, max_denominator=50)), min_size=1, max_size=5))
def test_integers_in_proportion_are_that(numbers: list[tuple[list[tuple[int, int]], Fraction]]) -> None:
    """Every ratio is exact, for sums, for plain fractions and for a mix of both."""
    exact = [abs(slow(summands)) * factor for summands, factor in numbers]
    integers = integers_in_proportion([abs(sum_of_terms(summands)) * factor for summands, factor in numbers])
    for i, p in zip(integers, exact, strict=True):
        for j, q in zip(integers, exact, strict=True):
            assert i * q == j * p
    assert [bool(number) for number in integers] == [bool(number) for number in exact]


@settings(max_examples=times(36), deadline=None)
@given(terms, terms, st.sampled_from(["e", "2"]))
def test_a_power_of_sums_is_that_of_fractions(
    factor: list[tuple[int, int]], exponent: list[tuple[int, int]], base: str
) -> None:
    """The powers are equal to the last digit of the mantissa."""
    scale = Fraction(1, 10**13)
    a, b = abs(sum_of_terms(factor)) * scale, sum_of_terms(exponent) * scale
    assert power(a, base, b) == power(abs(slow(factor)) * scale, base, slow(exponent) * scale)


def holds(number: Fraction, exact: Fraction) -> bool:
    """Return whether both bounds of a number contain what it is, and the close ones lie within a few units."""
    ends = [bounds_of(number, close) for close in (False, True)]
    return all(low <= exact * (1 << BITS) <= high for low, high in ends)


def tight(units: int) -> Fraction:
    """Return units of 2^-BITS as a sum whose bounds leave no room."""
    return sum_within((units, units), lambda: [(units, 1 << BITS)])


UNITS = st.integers(-(1 << 2 * BITS), 1 << 2 * BITS) | st.integers(-3, 3)
FACTORS = st.fractions(max_denominator=10**6).filter(bool)


@settings(max_examples=times(60), deadline=None)
@given(st.lists(st.tuples(UNITS, FACTORS), min_size=1, max_size=7), UNITS, FACTORS)
@example([(1, Fraction(1, 3)), (-1, Fraction(1, 3))], 5, Fraction(-1, 7))
def test_bounds_contain_the_number_after_any_operation(
    parts: list[tuple[int, Fraction]], units: int, factor: Fraction
) -> None:
    """Bounds without any room are widened as much as each operation's rounding needs, in sums of many parts too."""
    number, exact = Fraction(0), Fraction(0)
    divisor, by = tight(units), Fraction(units, 1 << BITS)
    for own, times_it in parts:
        number, exact = number + tight(own) * times_it, exact + Fraction(own, 1 << BITS) * times_it
        assert holds(number, exact)
    assert holds(abs(number) * factor, abs(exact) * factor)
    assert holds((number * factor) ** 2, (exact * factor) ** 2)
    if units:
        ratio = quotient(number, divisor)
        assert holds(ratio, exact / by)
        assert holds(-ratio * factor, -exact / by * factor)
        assert holds(ratio + factor, exact / by + factor)
        assert holds(ratio - factor, exact / by - factor)
        assert holds(quotient(factor, divisor) ** 2, (factor / by) ** 2)


def test_the_square_of_a_number_whose_bounds_lie_on_both_sides_of_0_is_at_least_0() -> None:
    """-1 squared is no lower bound of the square of 1/8, which lies between -1 and 1/4."""
    number = sum_within((-(1 << BITS), 1 << BITS - 2), lambda: [(1, 8)])
    assert number.bounds() == (-(1 << BITS), 1 << BITS - 2)  # type: ignore[attr-defined]
    assert holds(number**2, Fraction(1, 64))


def test_the_floors_of_a_sum_of_terms_are_all_counted() -> None:
    """Each of 40 terms just below 0 is floored by nearly a whole unit."""
    small = [(-1, (1 << 2 * BITS) + i) for i in range(40)]
    assert holds(sum_of_terms(small), slow(small))


@settings(max_examples=times(40), deadline=None)
@given(terms, terms, st.fractions(max_denominator=10**6), st.integers(1, 10**12))
def test_quotients_of_sums_are_those_of_fractions(
    dividend: list[tuple[int, int]], divisor: list[tuple[int, int]], factor: Fraction, units: int
) -> None:
    """Multiples, shifts, squares, comparisons, roundings and proportions of sum / sum, of either sign, agree."""
    x, y = slow(dividend), slow(divisor)
    if not y:
        with pytest.raises(ZeroDivisionError):
            quotient(sum_of_terms(dividend), sum_of_terms(divisor))
        return
    ratio, exact = quotient(sum_of_terms(dividend), sum_of_terms(divisor)), x / y
    again = quotient(sum_of_terms([*dividend]), sum_of_terms(divisor))
    for left, right in ((ratio, exact), (ratio * factor, exact * factor), (ratio + factor, factor + exact)):
        assert left == right
        assert round_to_units(left, units) == half_even(right.numerator * units, right.denominator)
        assert (floor(left), bool(left), abs(left), -left) == (floor(right), bool(right), abs(right), -right)
        assert to_decimal(left, CONTEXT) == CONTEXT.divide(Decimal(right.numerator), Decimal(right.denominator))
        assert (left < factor, left > factor, left == factor) == (right < factor, right > factor, right == factor)
    assert (ratio - factor, factor - ratio, ratio**2) == (exact - factor, factor - exact, exact**2)
    assert (ratio == again, ratio < again, ratio > again) == (True, False, False)
    more = quotient(sum_of_terms(dividend) + 1, sum_of_terms(divisor))
    elsewhere = quotient(sum_of_terms(dividend), sum_of_terms(divisor) * 3)
    for other, also in ((more, (x + 1) / y), (elsewhere, exact / 3)):
        assert (ratio < other, ratio == other, ratio > other) == (exact < also, exact == also, exact > also)
    assert (ratio + again, ratio - again, ratio * again) == (2 * exact, Fraction(0), exact * exact)
    first, second = integers_in_proportion([abs(ratio), abs(factor) + 1])
    assert first * (abs(factor) + 1) == second * abs(exact)


@pytest.mark.parametrize("sign", [1, -1])
def test_quotients_that_differ_by_a_hair_are_in_order(sign: int) -> None:
    """A hair more of the dividend makes a quotient larger, if it is positive; of the divisor, smaller."""
    one, more = just(Fraction(1, 3)), just(Fraction(1, 3) + CLOSE)
    divisor, longer = just(Fraction(sign, 7)), just(Fraction(sign, 7) + sign * CLOSE)
    middle = quotient(one, divisor)
    for other, side in ((quotient(more, divisor), sign), (quotient(one, longer), -sign), (quotient(one, divisor), 0)):
        assert (other > middle, other == middle, other < middle) == (side > 0, side == 0, side < 0)


def test_a_certain_quotient_of_sums_is_not_computed_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mean over summed coverage is rounded, compared and ranked by bounds; equal quotients of equal sums too."""
    sums = [sum_of_terms([(number * p, p + 1) for p in PRIMES]) for number in (3, 5, 3)]
    covered = sum_of_terms([(1, p) for p in PRIMES])
    means = [quotient(number, covered) for number in sums]
    real = late_fractions.added_in_pairs

    def few(terms: list[tuple[int, int]]) -> tuple[int, int]:
        assert len(terms) < len(PRIMES), "spelled out"
        return real(terms)

    monkeypatch.setattr(late_fractions, "added_in_pairs", few)
    assert means[0] < means[1]
    assert means[0] == means[2]
    assert round_to_units(means[1], 10**9) > round_to_units(means[0] * Fraction(5, 7), 10**9)
    with pytest.raises(AssertionError, match="spelled out"):
        assert means[0].numerator


def test_a_number_that_changes_often_stays_small() -> None:
    """After many additions and subtractions, a sum has few parts, and no more terms than are needed."""
    number = start = sum_of_terms([(1, p) for p in PRIMES])
    changes = [sum_of_terms([(i, p * q) for p in PRIMES[:20]]) for i, q in enumerate(PRIMES[:12], 1)]
    for sign in (1, -1):
        for change in changes:
            number += sign * change
    assert isinstance(number, LateFraction)
    assert len(number.parts) <= 5
    assert sum(len(summands.terms) for summands in number.parts) == len(PRIMES)
    assert number == start
