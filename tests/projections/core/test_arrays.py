"""Quotients rounded half-even, against those of one and of fractions."""

from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.core.arrays import half_even_many, int64_array, round_half_even


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**62 - 1)), min_size=1))
@example([(2**63 - 1, 1), (-(2**63), 1), (2**63 - 1, 2**62 - 1), (-(2**63), 2**62 - 1)])
def test_many_quotients_are_rounded_half_even_as_one_is(pairs: list[tuple[int, int]]) -> None:
    """Each by its own denominator, or all by one."""
    numerators, denominators = (int64_array([pair[i] for pair in pairs]) for i in range(2))
    assert half_even_many(numerators, denominators).tolist() == [half_even(*pair) for pair in pairs]
    one = pairs[0][1]
    assert half_even_many(numerators, one).tolist() == [half_even(number, one) for number, _ in pairs]


@given(st.integers(-100, 100), st.integers(1, 50))
def test_of_two_equally_near_the_even_one_is_taken(whole: int, half: int) -> None:
    """Of whole + 1/2."""
    found = half_even_many(int64_array([(2 * whole + 1) * half]), int64_array([2 * half])).tolist()
    assert found == [whole + whole % 2]


@given(st.lists(st.tuples(st.integers(-(10**30), 10**30), st.integers(1, 10**20)), min_size=1))
@example([(1, 2), (3, 2), (-1, 2), (-3, 2)])
def test_integers_of_any_size_are_rounded_half_even_alike(ratios: list[tuple[int, int]]) -> None:
    """Python's own integers in an array, by what is left of a division; as a fraction is rounded."""
    numerators, denominators = (np.array(each, object) for each in zip(*ratios, strict=True))
    found = round_half_even(numerators // denominators, numerators % denominators, denominators)
    assert found.tolist() == [round(Fraction(*each)) for each in ratios]
