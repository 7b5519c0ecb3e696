"""Sums by owner: equal to sums of fractions, however loose the bounds are that they have at first."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.projections.boards import score_sums
from forecast_ledger.projections.boards.score_sums import Rated, sums_by_owner
from forecast_ledger.projections.core import wide_int
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.late_fractions import FEW, LateFraction, round_to_units
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.effort import times

POINTS = 10**9


def few(monkeypatch: pytest.MonkeyPatch, count: int, places: int = wide_int.QUOTIENT_BITS) -> None:
    """Give bounds of so many binary places to every sum of more rates than `count`."""
    monkeypatch.setattr(score_sums, "FEW", count)
    for module in (score_sums, wide_int):
        monkeypatch.setattr(module, "QUOTIENT_BITS", places)


def added(rows: list[tuple[int, int, int, int]], rates: list[tuple[int, int]]) -> list[Fraction]:
    """Return the sums of rows of owner, place and two numbers, of which the second counts twice."""
    owner, place, *numbers = (list(column) for column in zip(*rows, strict=True))
    doubled = [(2 * numerator, denominator) for numerator, denominator in rates]
    columns = [Rated(WideInt.from_integers(own), by) for own, by in zip(numbers, (rates, doubled), strict=True)]
    return sums_by_owner(max(owner) + 2, int64_array(owner), int64_array(place), columns)


NUMBERS = st.integers(-(2**120), 2**120) | st.integers(-3, 3)
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 39), NUMBERS, NUMBERS), min_size=1, max_size=90)
RATES = st.lists(st.tuples(st.integers(0, 2**20), st.integers(1, 2**80)), min_size=40, max_size=40)


@settings(max_examples=times(40), deadline=None)
@given(ROWS, RATES, st.sampled_from([0, 3, FEW]), st.sampled_from([0, 8, wide_int.QUOTIENT_BITS]))
def test_sums_are_those_of_fractions(
    rows: list[tuple[int, int, int, int]], rates: list[tuple[int, int]], count: int, places: int
) -> None:
    """Every owner's sum, its sign, and its rounding are exact with few rates and with many; nobody's sum is 0."""
    exact = [Fraction(0)] * (max(owner for owner, *_ in rows) + 2)
    for owner, place, first, second in rows:
        exact[owner] += Fraction((first + 2 * second) * rates[place][0], rates[place][1])
    with pytest.MonkeyPatch.context() as monkeypatch:
        few(monkeypatch, count, places)
        sums = added(rows, rates)
        assert [round_to_units(own, POINTS) for own in sums] == [
            half_even(own.numerator * POINTS, own.denominator) for own in exact
        ]
        assert [(own > 0, own < 0) for own in sums] == [(own > 0, own < 0) for own in exact]
        assert sums == exact


PRIMES = [p for p in range(1_000, 2_000) if all(p % q for q in range(2, 50))][:40]


def apart(hair: Fraction, numerator: int, denominator: int) -> list[tuple[int, int]]:
    """Return rates that add up to a fraction and a hair, all with unlike denominators."""
    rates = [(1, p) for p in PRIMES]
    rest = Fraction(numerator, denominator) + hair - sum((Fraction(*rate) for rate in rates), Fraction(0))
    assert rest > 0
    return [*rates, rest.as_integer_ratio()]


@pytest.mark.parametrize("places", [0, wide_int.QUOTIENT_BITS])
@pytest.mark.parametrize("hair", [Fraction(0), Fraction(1, 10**60), Fraction(-1, 10**60), Fraction(1, 10**100)])
def test_a_sum_on_a_border_of_rounding_is_rounded_by_its_exact_value(
    monkeypatch: pytest.MonkeyPatch, hair: Fraction, places: int
) -> None:
    """5.0000000005 is a tie, and goes to the even 5; a hair above or below goes to its own side."""
    few(monkeypatch, FEW, places)
    rates = apart(hair, 10**10 + 1, 2 * POINTS)
    rows = [(0, place, 1, 0) for place in range(len(rates))]
    [own, _] = added(rows, rates)
    assert isinstance(own, LateFraction)
    assert round_to_units(own, POINTS) == 5 * POINTS + (hair > 0)


@pytest.mark.parametrize("places", [0, wide_int.QUOTIENT_BITS])
@pytest.mark.parametrize("hair", [Fraction(0), Fraction(1, 10**60), Fraction(-1, 10**60), Fraction(1, 10**100)])
def test_sums_of_unlike_terms_tie_exactly_if_they_are_equal(
    monkeypatch: pytest.MonkeyPatch, hair: Fraction, places: int
) -> None:
    """Two owners without a common denominator: equal, or a hair apart in either direction."""
    few(monkeypatch, FEW, places)
    first, second = apart(Fraction(0), 7, 3), [(n, 3 * d) for n, d in apart(hair * 3, 21, 3)]
    rows = [(0, place, 1, 0) for place in range(len(first))]
    rows += [(1, len(first) + place, 1, 0) for place in range(len(second))]
    one, other, _ = added(rows, first + second)
    assert [one < other, one == other, one > other] == [hair > 0, hair == 0, hair < 0]
    assert sorted([other, one], key=lambda own: own)[0] is (one if hair > 0 else other)


def test_numbers_that_are_all_zero_add_up_to_nothing() -> None:
    """The sum is a plain 0, however many rates there are."""
    [own, _] = added([(0, place, 0, 0) for place in range(40)], [(1, p) for p in PRIMES])
    assert type(own) is Fraction
    assert own == 0


def test_a_certain_sum_is_not_computed_in_full() -> None:
    """A rounding and a comparison that the bounds decide read no term."""
    [own, other, _] = added(
        [(owner, place, owner + 1, 0) for owner in (0, 1) for place in range(40)], [(1, p) for p in PRIMES]
    )
    score_sums.Rated.terms, kept = None, score_sums.Rated.terms  # type: ignore[assignment, method-assign]
    try:
        assert own < other
        assert round_to_units(own, POINTS) > 0
        with pytest.raises(TypeError):
            assert own.numerator
    finally:
        score_sums.Rated.terms = kept  # type: ignore[method-assign]


NAMES = ("relative-2022-04", "peer-average", "peer-average-2023", "peer-2025-06", "autocast-2022", "brier-daily")
TABLES = ("leaderboard", "prizes", "kind_means")


def tables(facts: Facts) -> list[list[dict[str, Any]]]:
    """Return the rows of the tables that sums make."""
    projections = Projections(facts)
    return [list(projections.table(name).rows()) for name in TABLES]


@settings(max_examples=times(12), deadline=None)
@given(oracle.logs(), st.sampled_from(NAMES), st.sampled_from([0, 12, 90]))
def test_boards_and_prizes_are_the_same_however_loose_the_bounds_are(
    commands: list[AnyCommand], name: str, places: int
) -> None:
    """Ranks, totals, coverages, takes and prizes, for presets of all totals and takes."""
    facts = oracle.facts_in(oracle.attempted(commands)[0])
    rules: RuleSet = PRESETS[name]
    for contest in facts.contests.values():
        contest.opened = structs.replace(contest.opened, rules=rules)
    with pytest.MonkeyPatch.context() as monkeypatch:
        few(monkeypatch, 10**9)
        exact = tables(facts)
        few(monkeypatch, 0, places)
        assert tables(facts) == exact


def test_an_owner_without_rows_has_the_sum_0() -> None:
    """No rows at all give zeros, too."""
    empty = np.zeros(0, np.int64)
    assert sums_by_owner(2, empty, empty, [Rated(WideInt.from_integers([]), [])]) == [0, 0]
