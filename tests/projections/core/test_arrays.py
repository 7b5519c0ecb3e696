"""Arrays rounded half-even, compared with single quotients and with fractions."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.core import arrays
from forecast_ledger.projections.core.arrays import (
    Totals,
    distinct,
    half_even_many,
    int64_array,
    round_half_even,
    stable_order,
)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**62 - 1)), min_size=1))
@example([(2**63 - 1, 1), (-(2**63), 1), (2**63 - 1, 2**62 - 1), (-(2**63), 2**62 - 1)])
def test_many_quotients_are_rounded_half_even_as_one_is(pairs: list[tuple[int, int]]) -> None:
    """Each quotient has its own denominator, or all have one."""
    numerators, denominators = (int64_array([pair[i] for pair in pairs]) for i in range(2))
    assert half_even_many(numerators, denominators).tolist() == [half_even(*pair) for pair in pairs]
    denominator = pairs[0][1]
    assert half_even_many(numerators, denominator).tolist() == [half_even(number, denominator) for number, _ in pairs]


@given(st.integers(-100, 100), st.integers(1, 50))
def test_a_tie_is_rounded_to_the_even_neighbour(whole: int, half: int) -> None:
    """The quotient whole + 1/2 becomes the even one of whole and whole + 1."""
    rounded = half_even_many(int64_array([(2 * whole + 1) * half]), int64_array([2 * half])).tolist()
    assert rounded == [whole + whole % 2]


@given(st.lists(st.tuples(st.integers(-(10**30), 10**30), st.integers(1, 10**20)), min_size=1))
@example([(1, 2), (3, 2), (-1, 2), (-3, 2)])
def test_integers_of_any_size_are_rounded_half_even(ratios: list[tuple[int, int]]) -> None:
    """Arrays of Python integers are rounded by quotient and remainder as `round` rounds fractions."""
    numerators, denominators = (np.array(column, object) for column in zip(*ratios, strict=True))
    rounded = round_half_even(numerators // denominators, numerators % denominators, denominators)
    assert rounded.tolist() == [round(Fraction(*column)) for column in ratios]


# --- Orders and distinct keys, against Python's own sort.


FAR = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3) | st.integers(2**40, 2**40 + 70_000)
KEYS = st.lists(FAR, max_size=40)


@given(KEYS, st.sampled_from([0, 9_000]))
@example([2**63 - 1, -(2**63), 0], 9_000)
@example([2**48, 0, 2**48 - 1, 2**32, 2**16 - 1, 2**16], 9_000)
@example([-5, 2**16 - 6, 2**15], 9_000)
@example([-5, 2**16 - 5, 2**15], 9_000)
@example([-5, 2**20 + 7, 2**20 - 9, 2**16], 9_000)
@example([-5, 2**32 - 6, 2**31, 2**16], 9_000)
@example([-5, 2**32 - 5, 2**31, 2**16], 9_000)
def test_keys_are_ordered_as_a_stable_sort_does(keys: list[int], more: int) -> None:
    """Few or many keys, of any range, sorted or not, have the order that `sorted` gives."""
    every = keys + [(i * 7_919) % 1_009 for i in range(more)]
    right = sorted(range(len(every)), key=every.__getitem__)
    assert stable_order(int64_array(every)).tolist() == right
    in_order = sorted(every)
    assert stable_order(int64_array(in_order)).tolist() == [*range(len(every))]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0, 1, 2, 4_000, 30_000, 70_000])), max_size=60),
    st.booleans(),
    st.sampled_from([1, 4_096]),
)
@example([(0, 30_000), (0, 1), (9, 0), (9, 0), (0, 0), (0, 0)], False, 1)
@example([(0, 30_000), (0, 1), (9, 0), (9, 0), (0, 0), (0, 0)], True, 1)
def test_rows_are_ordered_by_two_columns(rows: list[tuple[int, int]], rises: bool, many: int) -> None:
    """Equal rows keep their order, whether all are ordered together or some at a time."""
    both = np.array(sorted(rows, key=lambda row: row[0]) if rises else rows, np.int64).reshape(-1, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "_MANY", many)
        order, key = arrays.order_by_two(both[:, 0], both[:, 1])
    expected = sorted(range(len(both)), key=lambda row: tuple(both[row]))
    assert order.tolist() == expected
    pairs = [tuple(both[row]) for row in expected]
    assert (key[1:] == key[:-1]).tolist() == [one == other for one, other in pairwise(pairs)]


@given(KEYS)
@example([0, 40, 3])
@example([-(2**63), 2**63 - 1])
def test_distinct_keys_come_with_the_index_of_each_row(keys: list[int]) -> None:
    """The keys are ascending, and each row's index leads to its key."""
    values, which = distinct(int64_array(keys))
    assert values.tolist() == sorted(set(keys))
    assert [values[place] for place in which.tolist()] == keys


WORDS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3) | st.integers(2**52, 2**53)


@given(st.lists(st.tuples(st.integers(0, 5), WORDS), max_size=40))
@example([(0, 2**53), (0, 1), (0, 1)])
@example([(0, -(2**63)), (0, 2**32 - 1), (0, 2**32 - 1)])
def test_totals_are_the_sums_that_64_bits_hold(rows: list[tuple[int, int]]) -> None:
    """Whatever their size, of runs too, modulo 2^64, as two's complement has it."""
    index, which = distinct(int64_array([number for number, _ in rows]))
    column = int64_array([word for _, word in rows])
    sums = [sum(word for number, word in rows if number == each) for each in index.tolist()]
    wrapped = [(each + 2**63) % 2**64 - 2**63 for each in sums]
    assert Totals(which, np.bincount(which, minlength=len(index))).of(column).tolist() == wrapped
    order = stable_order(which)
    starts = np.searchsorted(which[order], np.arange(len(index)))
    assert Totals.of_runs(starts, len(rows)).of(column[order]).tolist() == wrapped


def test_totals_of_millions_of_rows_are_exact() -> None:
    """Halves of 32 bits of so many rows do not fit in a float."""
    index = np.zeros((1 << 21) + 1, np.int64)
    index[1] = 1
    column = np.full(len(index), 2**32 - 1)
    totals = Totals(index, np.bincount(index)).of(column).tolist()
    assert totals == [(2**32 - 1) << 21, 2**32 - 1]
