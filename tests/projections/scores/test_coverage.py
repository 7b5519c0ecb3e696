"""Coverages and the divisors of scores, by the fields of a rule set."""

from fractions import Fraction
from math import lcm

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.question_groups import QuestionGroup

MICRO = 10**6


def group(**fields: int) -> QuestionGroup:
    """Return a group of questions with ten units, four of them hidden, unless other fields are given."""
    columns: dict[str, int] = {"period": 10, "hidden": 4, "reached": 10, "weight": MICRO, "hidden_weight": -1}
    columns |= fields
    return QuestionGroup(**({"per_point": 0, "kind": 0, "whole": columns["period"]} | columns))


@given(st.integers(1, 50), st.data())
def test_a_coverage_is_the_covered_share_or_that_of_the_hidden_part_and_of_the_rest(
    period: int, data: st.DataObject
) -> None:
    """Metaculus, Scores FAQ, "What are the Hidden Period and Hidden Coverage Weights?"; over any common
    denominator.
    """
    hidden = data.draw(st.integers(1, period))
    in_hidden, after = data.draw(st.integers(0, hidden)), data.draw(st.integers(0, period - hidden))
    weight = data.draw(st.integers(0, MICRO)) if hidden < period else MICRO
    plain, divided_by = group(period=period, hidden=hidden), group(period=period, hidden=hidden, hidden_weight=weight)
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
    """A whole column agrees with single shares, also for a century of microseconds in two parts."""
    divided = group(period=hidden + rest, hidden=hidden, hidden_weight=weight)
    rows = [(min(first, hidden) + min(after, rest), min(first, hidden)) for first, after in stood]
    covered, in_hidden = (np.array(column) for column in zip(*rows, strict=True))
    quotients = time_weighted.covered_shares([divided], np.zeros(len(rows), np.int64), covered, in_hidden)
    assert quotients.exact() == [divided.share(*row) for row in rows]


def test_a_rest_of_one_unit_is_covered_whole_or_not_at_all() -> None:
    """Four hidden days and one other have equal weights; without a rest nothing of it is covered."""
    five = group(period=5, hidden=4, hidden_weight=MICRO // 2)
    assert [five.share(*covered) for covered in ((5, 4), (4, 4), (1, 0))] == [1, Fraction(1, 2), Fraction(1, 2)]
    assert group(period=4, hidden=4, hidden_weight=MICRO).share(3, 3) == Fraction(3, 4)


@pytest.mark.parametrize(("period", "over"), [("scheduled", 10), ("actual", 7), ("covered", 3)])
def test_a_score_is_divided_by_the_period_its_rules_name(period: str, over: int) -> None:
    """The divisor is multiplied by the units per point and by 2^fine."""
    rules = RuleSet(name="own", kernel="ln", period=period)  # type: ignore[arg-type]
    assert time_weighted.divisor(rules, Fraction(5, 2), group(reached=7), 3, 4) == Fraction(5, 2) * over * 16
