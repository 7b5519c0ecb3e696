"""The policies of a score: kernels, references, and the least that a probability counts as."""

from fractions import Fraction
from typing import get_args, get_type_hints

import numpy as np
import pytest

from ledger.rules import PRESETS, RuleSet
from projections.consensus import Consensus
from projections.leaderboard import TAKES
from projections.limbs import Int64Array
from projections.scoring import KERNELS, REFERENCES, least_chance, median_terms
from tests.oracle import picos

BOTH = pytest.mark.parametrize("name", ["ln", "log2"])


def column(values: list[int]) -> Int64Array:
    """Values as a column."""
    return np.array(values, np.int64)


def standing(*rows: tuple[int, int, int]) -> Consensus:
    """How many stand, low and high, from instants 0, 1, 2 …"""
    stand, low, high = (column([row[i] for row in rows]) for i in range(3))
    none = column([])
    return Consensus(np.arange(len(rows)), stand, low, high, none, none)


def test_every_policy_a_rule_set_can_name_exists() -> None:
    """And no policy exists that none can name."""
    named = get_type_hints(RuleSet)
    tables: dict[str, dict[str, object]] = {"kernel": {**KERNELS}, "reference": {**REFERENCES}, "take": {**TAKES}}
    assert {field: set(get_args(named[field])) for field in tables} == {f: set(table) for f, table in tables.items()}


@pytest.mark.parametrize(
    ("name", "base", "picos_of_half_and_fifth"),
    [("ln", "e", [-693_147_180_560, -1_609_437_912_434]), ("log2", "2", [-1_000_000_000_000, -2_321_928_094_887])],
)
def test_a_kernel_and_its_take_have_one_base(name: str, base: str, picos_of_half_and_fifth: list[int]) -> None:
    """Ln 0.5 = -0.6931471805599…, ln 0.2 = -1.6094379124341…, log2 0.2 = -2.3219280948873…; in 1e-12."""
    kernel = KERNELS[name]
    assert kernel.terms(column([5, 2]), 10).tolist() == picos_of_half_and_fifth
    assert kernel.base == base


@BOTH
def test_the_reference_is_the_median(name: str) -> None:
    """Seed 000, question 1, day 1: the median of 10% and 20% is 15%; of an odd number it is the middle one."""
    found = median_terms(KERNELS[name], standing((2, 10**9, 2 * 10**9), (3, 25 * 10**8, 25 * 10**8), (2, 1, 2)))
    medians = [Fraction(15, 100), Fraction(25, 100), Fraction(3, 2 * 10**10)]
    assert found.tolist() == [picos(name, median) for median in medians]


@BOTH
def test_where_nothing_stands_there_is_no_reference(name: str) -> None:
    """It counts nothing, and no logarithm of nought is taken."""
    assert median_terms(KERNELS[name], standing((1, 10**10, 10**10), (0, 0, 0), (0, 0, 0))).tolist() == [0, 0, 0]
    assert median_terms(KERNELS[name], standing()).tolist() == []


@pytest.mark.parametrize("preset", sorted(PRESETS))
@pytest.mark.parametrize(
    ("outcome", "bins", "least"),
    [(0, 0, 10**7), (4, 0, 10**7), (0, 200, 10**7), (1, 200, 500_000), (200, 200, 500_000), (201, 200, 10**7)],
)
def test_a_preset_floors_probabilities_and_densities(preset: str, outcome: int, bins: int, least: int) -> None:
    """Seed 001: forecasts between 0.1% and 99.9%, and a uniform 0.01, which is 0.01 / 200 in one of 200 bins."""
    assert least_chance(PRESETS[preset], outcome, bins) == least


@pytest.mark.parametrize(
    ("ppm", "bins", "least"), [(1, 32, 312), (3, 32, 938), (1, 10_000, 1), (1, 3, 3_333), (2, 3, 6_667)]
)
def test_the_least_density_is_rounded_half_even(ppm: int, bins: int, least: int) -> None:
    """In 1e-10 it is ppm · 10^4 / bins: 312.5 and 937.5 go to the even neighbour; it is never nought."""
    rules = RuleSet(name="own", kernel="ln", least_density_ppm=ppm)
    assert least_chance(rules, 1, bins) == least


def test_the_least_probability_is_the_rule_sets_own() -> None:
    """In 1e-6, and apart from the least density."""
    rules = RuleSet(name="own", kernel="ln", least_probability_ppm=7, least_density_ppm=9)
    assert least_chance(rules, 1, 0) == least_chance(rules, 0, 3) == least_chance(rules, 4, 3) == 70_000
    assert least_chance(rules, 3, 3) == 30_000
