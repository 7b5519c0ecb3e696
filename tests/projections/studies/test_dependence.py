"""Dependence of questions on days, compared with the analysis of variance of a textbook."""

from fractions import Fraction
from typing import Any

import pytest

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.studies.dependence import Alike, alike_by_day, ratio_of
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.given import asked, contest, day

RULES: dict[str, Any] = {"name": "own", "kernel": "brier", "period": "covered", "total": "mean"}
DAYS = range(11, 21)  # of March 2026, on which questions close
STORMS = {number: 2 if number % 2 else 8 for number in DAYS}  # tenths that Ada gives to yes, which is the answer
CALM = dict.fromkeys(DAYS, 5)
NOISE = (-1, 0, 1)  # tenths: by how much the questions of a day differ


def found(chances: dict[int, int], *, group: str = "", clusters: tuple[str, ...] = ("group",)) -> Alike | None:
    """What is found of a contest with three questions a day, by what Ada gives to yes on each day, in tenths."""
    told: list[AnyCommand] = [contest(rules=RuleSet(**RULES, clusters=clusters))]
    for number, tenths in chances.items():
        for noise in NOISE:
            name = f"q{number}{noise}"
            about: dict[str, Any] = {"closes_at": day(number), "group": f"{group}{number}" if group else None}
            told += asked(name, {"ada": f"0.{tenths + noise}", "bo": "0.5"}, **about)
    projections = Projections(oracle.facts_in(oracle.history(*told)))
    return alike_by_day(projections.facts.contests["cup"], projections.scored("cup"))


def mean_squares(chances: dict[int, int]) -> Fraction:
    """The mean squares between days over those within, from the mean score of each question."""
    days = [
        [(Fraction(10 - tenths - noise, 10) ** 2 + Fraction(1, 4)) / 2 for noise in NOISE]
        for tenths in chances.values()
    ]
    means = [sum(scores, Fraction(0)) / len(scores) for scores in days]
    middle = sum(means, Fraction(0)) / len(means)
    between = sum((len(NOISE) * (mean - middle) ** 2 for mean in means), Fraction(0)) / (len(days) - 1)
    within = [(score - mean) ** 2 for scores, mean in zip(days, means, strict=True) for score in scores]
    return between / (sum(within, Fraction(0)) / (len(within) - len(days)))


def test_questions_of_one_day_that_have_scores_alike_are_found() -> None:
    """An answer is known at the close, if it is recorded after it: ten days of three questions."""
    assert found(STORMS) == Alike(30, 10, mean_squares(STORMS))
    assert mean_squares(STORMS) > 3


def test_nothing_is_found_where_days_are_alike() -> None:
    """Every day has the same mean, so that nothing varies between them."""
    assert found(CALM) is None


def test_with_fewer_than_ten_days_nothing_is_said() -> None:
    """The means of a few days may vary as much by chance."""
    assert found({number: tenths for number, tenths in STORMS.items() if number != DAYS[0]}) is None


def test_nothing_is_said_where_rules_draw_questions_together() -> None:
    """Their groups are drawn together by default; by other rules each question is alone again."""
    assert found(STORMS, group="week ") is None
    assert found(STORMS, group="week ", clusters=("question",)) == found(STORMS)
    assert found(STORMS, group="week ", clusters=("tag:week",)) == found(STORMS)


@pytest.mark.parametrize("groups", [[], [[1], [2]], [[number] for number in range(20)], [[1, 1]] * 12])
def test_there_is_no_ratio_of_few_groups_or_without_variance_within(groups: list[list[int]]) -> None:
    """A day with one question says nothing of the variance within days."""
    assert ratio_of(groups) is None
