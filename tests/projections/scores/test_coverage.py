"""What scores and coverages are divided by: the covered share of a period, and what a score's rules divide by."""

from fractions import Fraction
from math import lcm

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.scores import coverage
from forecast_ledger.projections.scores.coverage import QuestionGroup

MICRO = 10**6


def alike(**fields: int) -> QuestionGroup:
    """A kind of question: ten units, four of them hidden."""
    given: dict[str, int] = {"period": 10, "hidden": 4, "reached": 10, "weight": MICRO, "hidden_weight": -1}
    given |= fields
    return QuestionGroup(**({"per_point": 0, "kind": 0, "whole": given["period"]} | given))


@given(st.integers(1, 50), st.data())
def test_a_coverage_is_the_covered_share_or_that_of_the_hidden_part_and_of_the_rest(
    period: int, data: st.DataObject
) -> None:
    """Metaculus, Scores FAQ, "What are the Hidden Period and Hidden Coverage Weights?"; over whatever common
    denominator.
    """
    hidden = data.draw(st.integers(1, period))
    in_hidden, after = data.draw(st.integers(0, hidden)), data.draw(st.integers(0, period - hidden))
    weight = data.draw(st.integers(0, MICRO)) if hidden < period else MICRO
    plain, divided_by = alike(period=period, hidden=hidden), alike(period=period, hidden=hidden, hidden_weight=weight)
    assert plain.share(in_hidden + after, in_hidden) == Fraction(in_hidden + after, period)
    share = Fraction(weight, MICRO)
    rest = (1 - share) * Fraction(after, period - hidden) if period > hidden else 0
    assert divided_by.share(in_hidden + after, in_hidden) == share * Fraction(in_hidden, hidden) + rest
    common = lcm(divided_by.common, 7)
    numerator = divided_by.coverage(in_hidden + after, in_hidden, common)
    assert Fraction(numerator, common * MICRO) == divided_by.share(in_hidden + after, in_hidden)


SPANS = st.integers(1, 10**14)


@given(SPANS, SPANS, st.integers(-1, MICRO), st.lists(st.tuples(SPANS, SPANS), min_size=1, max_size=5))
def test_a_column_of_coverages_is_that_of_each(
    hidden: int, rest: int, weight: int, stood: list[tuple[int, int]]
) -> None:
    """The same of a whole column, also where a century of microseconds is divided in two."""
    of = alike(period=hidden + rest, hidden=hidden, hidden_weight=weight)
    rows = [(min(first, hidden) + min(after, rest), min(first, hidden)) for first, after in stood]
    covered, in_hidden = (np.array(each) for each in zip(*rows, strict=True))
    found = coverage.covered_shares([of], np.zeros(len(rows), np.int64), covered, in_hidden)
    assert found.exact() == [of.share(*row) for row in rows]


def test_a_rest_of_one_unit_is_covered_whole_or_not_at_all() -> None:
    """Four days hidden and one not, of equal weight; where nothing is left, nothing of it is covered."""
    five = alike(period=5, hidden=4, hidden_weight=MICRO // 2)
    assert [five.share(*covered) for covered in ((5, 4), (4, 4), (1, 0))] == [1, Fraction(1, 2), Fraction(1, 2)]
    assert alike(period=4, hidden=4, hidden_weight=MICRO).share(3, 3) == Fraction(3, 4)


@pytest.mark.parametrize(("period", "over"), [("scheduled", 10), ("actual", 7), ("covered", 3)])
def test_a_score_is_divided_by_the_period_its_rules_name(period: str, over: int) -> None:
    """Times what a point is, and the fineness of its numerator."""
    rules = RuleSet(name="own", kernel="ln", period=period)  # type: ignore[arg-type]
    assert coverage.divisor(rules, Fraction(5, 2), alike(reached=7), 3, 4) == Fraction(5, 2) * over * 16
