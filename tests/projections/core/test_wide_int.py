"""Exact integers in NumPy, against Python's own."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from hashlib import sha256
from itertools import accumulate, pairwise
from operator import mul
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from forecast_ledger.ledger.core.exact import QUANTUM, half_even, ln_fixed, log2_fixed
from forecast_ledger.projections.core import wide_int
from forecast_ledger.projections.core.wide_int import Int64Array, Limbs, nearest, to_even
from tests.support.oracle import EXACT

PPM = 10**6
BITS = 128  # binary places of the recurrence
TERM = 3 * 10**13  # the largest term a product is promised for
WEIGHT = 2**54 - 1  # the largest weight, µs
EXTREMES = (0, 1, 2**18 - 1, 2**18, 2**36 - 1, 2**36, 2**53, WEIGHT)

TERMS = st.integers(-TERM, TERM) | st.sampled_from([0, 1, -1, TERM, -TERM, 2**36, -(2**36), 2**18, -(2**18)])
WEIGHTS = st.integers(0, WEIGHT) | st.sampled_from(EXTREMES)
PAIRS = st.lists(st.tuples(TERMS, WEIGHTS), min_size=1, max_size=30)
Log = Callable[[Int64Array, int], Int64Array]
Exactly = Callable[[int, int], int]
BOTH = pytest.mark.parametrize(("many", "one"), [(wide_int.ln_many, ln_fixed), (wide_int.log2_many, log2_fixed)])


def column(values: list[int]) -> Int64Array:
    """Values as a column."""
    return np.array(values, np.int64)


def product(pairs: list[tuple[int, int]]) -> Limbs:
    """Term x weight of each pair."""
    return Limbs.product(column([term for term, _ in pairs]), column([weight for _, weight in pairs]))


@cache
def table() -> tuple[int, ...]:
    """ln(k / 10^6) for k = 1 … 999,999 in 2^-128, by ln(k + 1) = ln k + 2 · atanh(1 / (2k + 1))."""
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
    return column([half_even(value * quantum, 1 << BITS) for value in table()])


def digest(values: Int64Array) -> str:
    """The first twelve digits of the SHA-256 of the little-endian table."""
    return sha256(values.astype("<i8").tobytes()).hexdigest()[:12]


def points(unit: int, count: int, seed: int) -> Int64Array:
    """Random k below the unit, of every size."""
    choose = Random(seed)
    top = unit.bit_length() - 1
    return column([1, unit, *(min(choose.getrandbits(choose.randint(1, top)) or 1, unit) for _ in range(count))])


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
    """All ln(k / 10^6), k = 1 … 999,999, in 1e-12: the table of reference/ecosystem.md C.2, and an integer series."""
    logarithms = wide_int.ln_many(np.arange(1, PPM), PPM)
    assert digest(logarithms) == "210df61b8d5c"
    assert np.array_equal(logarithms, rounded(QUANTUM))


def test_the_table_in_billionths_is_the_published_one() -> None:
    """The same in 1e-9, where the scalar is compared on every 400th point and on both ends."""
    billionths = rounded(10**9)
    assert digest(billionths) == "b9c80c440b4b"
    sample = [1, 2, 3, *range(400, PPM, 400), PPM - 2, PPM - 1]
    assert [ln_fixed(k, PPM, 10**9) for k in sample] == billionths[np.array(sample) - 1].tolist()


@BOTH
@pytest.mark.parametrize("unit", [10**9, 10**10, 2 * 10**10])
def test_many_logarithms_are_those_of_one(many: Log, one: Exactly, unit: int) -> None:
    """On random points of every size, the smallest and the largest."""
    k = points(unit, 3_000, seed=unit)
    assert many(k, unit).tolist() == [one(each, unit) for each in k.tolist()]


@BOTH
@pytest.mark.parametrize("unit", [10**9, 10**10])
def test_logarithms_near_a_rounding_tie_are_rounded_the_right_way(many: Log, one: Exactly, unit: int) -> None:
    """A float cannot tell which way; 60 digits can."""
    k = nearest_to_ties(unit, 300, np.log if one is ln_fixed else np.log2).tolist()
    scale = Decimal(QUANTUM) if one is ln_fixed else EXACT.divide(QUANTUM, EXACT.ln(Decimal(2)))
    logarithms = [EXACT.multiply(EXACT.ln(EXACT.divide(each, unit)), scale) for each in k]
    slow = [int(EXACT.quantize(each, Decimal(1))) for each in logarithms]
    assert many(column(k), unit).tolist() == slow == [one(each, unit) for each in k]


@BOTH
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_less_exact_float_logarithm_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, many: Log, one: Exactly, seed: int
) -> None:
    """Four units in the last place are the most that any vendor documents; ours may come from any of them."""
    k = np.append(points(10**10, 20_000, seed), nearest_to_ties(10**10, 100, np.log))
    right = many(k, 10**10)
    name = "log" if one is ln_fixed else "log2"
    monkeypatch.setattr(np, name, noisy(getattr(np, name), seed))
    assert np.array_equal(many(k, 10**10), right)


def test_no_logarithms_of_no_numbers() -> None:
    """An empty column stays one."""
    assert wide_int.ln_many(column([]), PPM).tolist() == wide_int.log2_many(column([]), PPM).tolist() == []


@given(PAIRS)
def test_a_product_is_that_of_integers(pairs: list[tuple[int, int]]) -> None:
    """Up to the largest term, either sign, and the largest weight."""
    assert product(pairs).integers() == [term * weight for term, weight in pairs]


LARGER = TERMS | st.integers(-(2**62), 2**62) | st.sampled_from([2**62, -(2**62), TERM + 1, -TERM - 1, 2**45])


@given(st.lists(st.tuples(LARGER, WEIGHTS), min_size=1, max_size=30))
def test_a_product_of_larger_terms_is_that_of_integers_too(pairs: list[tuple[int, int]]) -> None:
    """They are taken in two halves; also among smaller ones, and with room left in every limb."""
    found = product(pairs)
    assert found.integers() == [term * weight for term, weight in pairs]
    assert all(0 <= int(limb.min()) <= int(limb.max()) < 2**36 for limb in (found.low, found.middle))


@given(st.lists(st.tuples(st.integers(0, 2**76 - 1), st.integers(-(2**58), 2**58)), min_size=1, max_size=30))
@example([(2**76 - 1, 2**58), (2**76 - 1, -(2**58)), (0, 5), (2**72, -1), (2**36 - 1, -1)])
@example([(2**36 - 1, -(2**58)), (1, 2**58)])
@example([(2**72, 3), (5, -1)])
@example([(2 * 36_525 * 86_400 * 10**6 << 24, 4 * 10**17 - 4 * 10**8)])
def test_wide_numbers_by_terms_are_products_of_integers(pairs: list[tuple[int, int]]) -> None:
    """Up to 2^76 by 2^58; and what a century between two peers is worth by the largest score of a quantile."""
    low, middle, high = ([number >> shift & 2**36 - 1 for number, _ in pairs] for shift in (0, 36, 72))
    wide = Limbs(column(low), column(middle), column(high))
    found = wide.times(column([term for _, term in pairs]))
    assert found.integers() == [number * term for number, term in pairs]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
@example([-(2**63), -1, 0, 2**36, 2**63 - 1])
def test_plain_numbers_as_wide_ones_are_the_same_and_have_room_in_every_limb(values: list[int]) -> None:
    """Either sign, up to all of 64 bits."""
    wide = Limbs.of(column(values))
    assert wide.integers() == values
    assert all(0 <= int(limb.min()) <= int(limb.max()) < 2**36 for limb in (wide.low, wide.middle))


@given(st.lists(st.tuples(st.integers(-(2**108), 2**108), st.integers(1, 2**26 - 1)), min_size=1, max_size=30))
@example([(2**108, 2**26 - 1), (-(2**108), 2**26 - 1), (-1, 1)])
@example([(2**133, 1), (-(2**134), 1)])
def test_scaling_multiplies_each_by_its_factor(pairs: list[tuple[int, int]]) -> None:
    """Up to 2^108 by 2^26, and anything by 1."""
    found = Limbs.wide([number for number, _ in pairs]).scaled(column([factor for _, factor in pairs]))
    assert found.integers() == [number * factor for number, factor in pairs]
    assert all(0 <= int(limb.min()) <= int(limb.max()) < 2**36 for limb in (found.low, found.middle))


@pytest.mark.parametrize(("number", "factor"), [(1, 2**26), (2**133, 2), (-(2**134), 2), (2**120, 2**20)])
def test_what_might_not_fit_when_scaled_is_refused(number: int, factor: int) -> None:
    """Nothing wraps in silence."""
    with pytest.raises(OverflowError):
        Limbs.wide([number]).scaled(column([factor]))
    assert Limbs.wide([]).scaled(column([])).integers() == []


FAR = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3) | st.integers(2**40, 2**40 + 70_000)
KEYS = st.lists(FAR, max_size=40)


@given(KEYS, st.sampled_from([0, 9_000]))
@example([2**63 - 1, -(2**63), 0], 9_000)
@example([2**48, 0, 2**48 - 1, 2**32, 2**16 - 1, 2**16], 9_000)
def test_keys_are_ordered_as_a_stable_sort_does(keys: list[int], more: int) -> None:
    """A few or many, in any range, in order or not."""
    every = keys + [(i * 7_919) % 1_009 for i in range(more)]
    right = sorted(range(len(every)), key=every.__getitem__)
    assert wide_int.ordered(column(every)).tolist() == right
    in_order = sorted(every)
    assert wide_int.ordered(column(in_order)).tolist() == [*range(len(every))]


@given(KEYS)
@example([0, 40, 3])
@example([-(2**63), 2**63 - 1])
def test_distinct_keys_are_told_with_which_each_row_has(keys: list[int]) -> None:
    """Near each other or far apart."""
    found, which = wide_int.distinct(column(keys))
    assert found.tolist() == sorted(set(keys))
    assert [found[place] for place in which.tolist()] == keys


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1), st.integers(0, 60))
def test_shifting_multiplies_by_a_power_of_two(values: list[int], bits: int) -> None:
    """Either sign, by no bits or by many."""
    assert Limbs.of(column(values)).shifted(bits).integers() == [value << bits for value in values]


@given(st.lists(st.tuples(TERMS, WEIGHTS, TERMS, WEIGHTS), min_size=1, max_size=30))
def test_a_sum_of_two_is_that_of_integers(rows: list[tuple[int, int, int, int]]) -> None:
    """Limb by limb, carried or not."""
    both = product([row[:2] for row in rows]) + product([row[2:] for row in rows])
    right = [one * weight + other * lasts for one, weight, other, lasts in rows]
    assert both.integers() == both.carried().integers() == right


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**62 - 1)), min_size=1))
@example([(2**63 - 1, 1), (-(2**63), 1), (2**63 - 1, 2**62 - 1), (-(2**63), 2**62 - 1)])
def test_many_quotients_are_rounded_half_even_as_one_is(pairs: list[tuple[int, int]]) -> None:
    """Each by its own denominator, or all by one."""
    numerators, denominators = (column([pair[i] for pair in pairs]) for i in range(2))
    assert wide_int.half_even_many(numerators, denominators).tolist() == [half_even(*pair) for pair in pairs]
    one = pairs[0][1]
    assert wide_int.half_even_many(numerators, one).tolist() == [half_even(number, one) for number, _ in pairs]


@given(st.integers(-100, 100), st.integers(1, 50))
def test_of_two_equally_near_the_even_one_is_taken(whole: int, half: int) -> None:
    """Of whole + 1/2."""
    found = wide_int.half_even_many(column([(2 * whole + 1) * half]), column([2 * half])).tolist()
    assert found == [whole + whole % 2]


def test_a_sum_that_might_wrap_is_an_error_and_no_other_number() -> None:
    """Numbers of 2^132 fit; a hundred of 2^133 would not."""
    fitting = Limbs(column([0] * 2), column([0] * 2), column([1 << 60] * 2))
    assert fitting.summed(column([0])).integers() == [1 << 133]
    for high in (1 << 61, -(1 << 61)):
        wide = Limbs(column([0] * 100), column([0] * 100), column([high] * 100))
        assert wide.summed(column(list(range(100)))).integers() == [high << 72] * 100
        with pytest.raises(OverflowError, match="more than 134 bits"):
            wide.summed(column([0]))


def test_the_largest_product_would_wrap_in_64_bits() -> None:
    """3e13 · (2^54 - 1) is 5.4e29; NumPy's own product is another number and says nothing."""
    wrapped = column([TERM]) * column([WEIGHT])
    assert wrapped.tolist() != [TERM * WEIGHT]
    assert product([(TERM, WEIGHT), (-TERM, WEIGHT)]).integers() == [TERM * WEIGHT, -TERM * WEIGHT]


@given(PAIRS)
def test_a_running_sum_is_that_of_integers(pairs: list[tuple[int, int]]) -> None:
    """Sums of the first 0, 1, … n products."""
    sums = accumulate((term * weight for term, weight in pairs), initial=0)
    assert product(pairs).running().integers() == list(sums)


@given(PAIRS, st.data())
def test_sums_over_runs_are_those_of_integers(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    """Each run reaches to where the next begins, the last to the end."""
    inner = data.draw(st.sets(st.integers(1, len(pairs)), max_size=5)) - {len(pairs)}
    starts = [0, *sorted(inner)]
    products = [term * weight for term, weight in pairs]
    sums = [sum(products[first:last]) for first, last in pairwise([*starts, len(pairs)])]
    assert product(pairs).summed(column(starts)).integers() == sums


@given(st.lists(st.tuples(TERMS, WEIGHTS, TERMS, WEIGHTS), min_size=1, max_size=30))
def test_a_difference_is_that_of_integers(rows: list[tuple[int, int, int, int]]) -> None:
    """Also summed afterwards, when its limbs are still below nought."""
    difference = product([row[:2] for row in rows]) - product([row[2:] for row in rows])
    right = [one * weight - other * lasts for one, weight, other, lasts in rows]
    assert difference.integers() == right
    assert difference.carried().integers() == right
    assert difference.summed(column([0])).integers() == [sum(right)]


def test_a_million_of_the_largest_numbers_sum_exactly() -> None:
    """No carry is lost: 2^20 products of the largest term and weight, of either sign, run and summed."""
    count = 1 << 20
    largest = Limbs.product(np.full(count, TERM), np.full(count, WEIGHT))
    for numbers, one in ((largest, TERM * WEIGHT), (Limbs.of(column([0])) - largest, -TERM * WEIGHT)):
        assert numbers.summed(column([0])).integers() == [count * one]
        assert numbers.carried().running().take(column([count])).integers() == [count * one]


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_a_number_made_wide_is_the_same(values: list[int]) -> None:
    """Over the whole range of 64 bits."""
    assert Limbs.of(column(values)).integers() == values


@given(PAIRS)
def test_carried_limbs_leave_room_to_add_2_to_the_26_of_them(pairs: list[tuple[int, int]]) -> None:
    """Low and middle in [0, 2^36), so that 2^26 of them stay below 2^62."""
    for numbers in (product(pairs), product(pairs).running(), product(pairs).summed(column([0]))):
        for limb in (numbers.low, numbers.middle):
            assert 0 <= int(limb.min()) <= int(limb.max()) < 2**36
    assert wide_int.LARGEST_COUNT * (2**36 - 1) < 2**63


def test_taking_picks_numbers_by_place() -> None:
    """In the order asked for, and more than once."""
    numbers = product([(TERM, 5), (-7, WEIGHT), (1, 1)])
    assert numbers.take(column([2, 0, 0])).integers() == [1, *map(mul, [TERM, TERM], [5, 5])]


def test_no_runs_have_no_sums() -> None:
    """An empty column has none."""
    assert Limbs.of(column([])).summed(column([])).integers() == []


WIDE = st.integers(-(2**130), 2**130) | st.integers(-(2**70), 2**70) | st.integers(-9, 9)
FACTORS = st.fractions() | st.builds(Fraction, st.integers(-9, 9), st.integers(1, 10**30)) | st.just(Fraction(1, 2))


@given(st.lists(st.tuples(WIDE, FACTORS), min_size=1, max_size=20))
@example([(1, Fraction(1, 2)), (3, Fraction(1, 2)), (-1, Fraction(1, 2)), (-3, Fraction(1, 2))])
@example([(2**72 - 1, Fraction(1, 2**25)), (-(2**71), Fraction(1, 2**72)), (-(2**72) + 1, Fraction(10**9, 2**73))])
@example([(2**62 - 1, Fraction(1)), (-(2**62) + 1, Fraction(1))])
@example([(2**62, Fraction(1)), (1, Fraction(7)), (-(2**62), Fraction(1))])
def test_products_are_rounded_once_and_half_to_even(pairs: list[tuple[int, Fraction]]) -> None:
    """What Python's own rounding of exact fractions says, whatever the size; in 64 bits where 62 are enough."""
    numbers, factors = Limbs.wide([number for number, _ in pairs]), [factor for _, factor in pairs]
    found = wide_int.multiplied(numbers, factors, np.arange(len(pairs)))
    expected = [round(number * factor) for number, factor in pairs]
    assert list(found) == expected
    assert isinstance(found, list) == any(abs(number) >= 2**62 for number in expected)


def test_factors_are_those_of_the_places_they_are_asked_for() -> None:
    """Two of three rows are of the second factor; none at all are no rows."""
    halves = [Fraction(1, 2), Fraction(5)]
    assert list(wide_int.multiplied(Limbs.wide([3, 3, 10]), halves, column([0, 1, 1]))) == [2, 15, 50]
    assert list(wide_int.multiplied(Limbs.wide([]), [], column([]))) == []


@given(st.lists(st.tuples(st.integers(-(10**30), 10**30), st.integers(1, 10**20)), min_size=1))
@example([(1, 2), (3, 2), (-1, 2), (-3, 2)])
def test_integers_of_any_size_are_rounded_half_even_alike(ratios: list[tuple[int, int]]) -> None:
    """Python's own integers in an array, by what is left of a division; as a fraction is rounded."""
    numerators, denominators = (np.array(each, object) for each in zip(*ratios, strict=True))
    found = to_even(numerators // denominators, numerators % denominators, denominators)
    assert found.tolist() == [round(Fraction(*each)) for each in ratios]


def test_an_estimate_decides_where_no_tie_is_within_its_guard() -> None:
    """The others are named, and hold 0, whatever their size; a guard of a half or more decides nothing."""
    values, guards = np.array([1.4, 1.499, -2.6, 1e300, 7.0]), np.array([0.01, 0.01, 0.01, 1e290, 0.6])
    found, doubtful = nearest(values, guards)
    assert (found.tolist(), doubtful.tolist()) == ([1, 0, -3, 0, 0], [1, 3, 4])
