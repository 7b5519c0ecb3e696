"""Dependence: whether questions that count up to one day have scores alike, though each is drawn alone."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import DAY
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.facts.columns import Contest
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.time_weighted import ContestScores
from forecast_ledger.projections.studies.clusters import units_of

LEAST_DAYS = 10  # with fewer, the means of days may vary as much by chance
LEAST_RATIO = 3  # intervals are then too narrow by about √3


class Alike(NamedTuple):
    """Questions of a day that have scores alike. ratio: of the mean squares between and within days."""

    questions: int
    days: int
    ratio: Fraction


def alike_by_day(contest: Contest, scored: ContestScores) -> Alike | None:
    """Return how much the scores of questions depend on the day (UTC) of the last instant that counts.

    None if the rules draw some questions together, or if it is not much: fewer than LEAST_DAYS days, or a ratio below
    LEAST_RATIO. The numbers are the mean scores of questions, over all who have one, 1e-9. By chance, the ratio has
    the F distribution, which is above 3 in 5 % of cases with 10 days and 20 questions, and in 1 % with 20 and 40.

    The ratio is about the design effect, by which the variance of a mean is larger than that of single draws.
    Source: Kish (1965), Survey Sampling, ISBN 0-471-10949-5, chapters 5 and 8.
    """
    counted = np.flatnonzero(scored.questions.weight > 0)
    if units_of(contest.opened.rules, scored).size < len(counted):
        return None
    days = days_of(contest.opened.rules, scored)
    by_day: dict[int, list[int]] = {}
    for number, mean in _means(contest, scored).items():
        if scored.questions.weight[number] > 0:
            by_day.setdefault(days[number], []).append(mean)
    ratio = ratio_of([*by_day.values()])
    return None if ratio is None or ratio < LEAST_RATIO else Alike(sum(map(len, by_day.values())), len(by_day), ratio)


def days_of(rules: RuleSet, scored: ContestScores) -> list[int]:
    """Return the day (UTC) of the last instant that counts of each question, in days since the epoch."""
    last = scored.questions.spot.max(axis=1) if rules.sampling == "spot" else scored.questions.until
    days: list[int] = (last // DAY).tolist()
    return days


def ratio_of(groups: list[list[int]]) -> Fraction | None:
    """Return the ratio of the mean squares between and within groups; None with few groups, or if none vary within.

    >>> ratio_of([[number, number + 2] for number in range(10)])
    Fraction(55, 6)
    """
    count, within = sum(map(len, groups)) - len(groups), Fraction(0)
    if len(groups) < LEAST_DAYS or not count:
        return None
    within = sum((_squares(group) for group in groups), Fraction(0))
    between = _squares([number for group in groups for number in group]) - within
    return Fraction(between * count, within * (len(groups) - 1)) if within else None


def _squares(numbers: list[int]) -> Fraction:
    """Return the sum of the squares of numbers less their mean."""
    return sum(number * number for number in numbers) - Fraction(sum(numbers) ** 2, len(numbers))


def _means(contest: Contest, scored: ContestScores) -> dict[int, int]:
    """Return the mean score of each question that has one, 1e-9, rounded down, by index."""
    published = time_weighted.points(contest.opened.rules, scored.questions, scored.rows).published()
    sums = np.zeros(len(scored.questions.weight), object)
    np.add.at(sums, scored.rows.question, np.array(published, object))
    counts = np.bincount(scored.rows.question, minlength=len(sums)).tolist()
    return {number: total // counts[number] for number, total in enumerate(sums.tolist()) if counts[number]}
