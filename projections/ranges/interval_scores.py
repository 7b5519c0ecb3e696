"""The parts of the weighted interval score: the width of forecasts by quantiles, and answers beyond their intervals."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import structs

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import BoolArray
from forecast_ledger.projections.core.sorting import run_starts
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.facts.standing import Intervals
from forecast_ledger.projections.scores import range_kernels
from forecast_ledger.projections.scores.forecast_numbers import Numbers
from forecast_ledger.projections.scores.score_terms import standing_in_chunks
from forecast_ledger.projections.scores.scored_questions import Questions
from forecast_ledger.projections.scores.terms import quantile_numbers
from forecast_ledger.projections.scores.time_weighted import Scores


class IntervalScores(NamedTuple):
    """The parts of the weighted interval score of each question and participant, in order of both; shape (n,).

    whole: the score as it is without a reference. dispersion, overprediction and underprediction: its numerators,
    which add up to the numerator of the whole. median_error: the numerator of the median's absolute error. has_median:
    whether 0.5 is a level of the question; if not, there is no such error.
    """

    whole: Scores
    dispersion: WideInt
    overprediction: WideInt
    underprediction: WideInt
    median_error: WideInt
    has_median: BoolArray


def is_symmetric(levels: Sequence[int]) -> bool:
    """Return whether levels, 1e-9, are those of central intervals: symmetric about 0.5, which may be one of them.

    >>> is_symmetric((250_000_000, 500_000_000, 750_000_000)), is_symmetric((250_000_000, 500_000_000))
    (True, False)
    """
    return all(low + high == PROBABILITY for low, high in zip(levels, reversed(levels), strict=True))


def own_rules(rules: RuleSet) -> RuleSet:
    """Return the rules by which the weighted interval score stands alone: a mean over time, without a reference.

    >>> own_rules(RuleSet(name="x", quantile_kernel="pinball", reference="peers")).period
    'covered'
    """
    return structs.replace(rules, reference="none", period="covered")


def interval_scores(
    facts: Facts, contests: Sequence[Contest], questions: Questions, chunk: int
) -> Iterator[IntervalScores]:
    """Yield the parts of the weighted interval scores of contests of one rule set, some questions at a time.

    WIS = 1 / (K + 1/2) x (1/2 |y - m| + Σ (a (u - l) + (l - y)⁺ + (y - u)⁺)), y the answer, m the median, and Σ over
    the K central intervals [l, u] of the levels a and 1 - a. Σ a (u - l) is the dispersion. Overprediction is what
    (l - y)⁺ adds, with what the median adds if the answer is below it; the rest is underprediction. At most one of the
    two is above 0, since no answer is below one central interval and above another.

    Each forecast's score is rounded once, as the kernel `pinball` rounds it, and so is its dispersion; the penalty is
    what is left. So the parts add up exactly. Questions whose levels are not symmetric about 0.5 are left out.

    Source: Bracher, Ray, Gneiting and Reich (2021), doi:10.1371/journal.pcbi.1008618.
    """
    rules = contests[0].opened.rules
    for first, own, forecasts, standing in standing_in_chunks(facts, contests, questions, chunk):
        central = np.array([_is_central(answer.question.range) for answer in own.answers], bool)
        rows = np.flatnonzero(central[standing.question])
        if len(rows):
            stood = standing.of(rows)
            made = quantile_numbers(rules, own, forecasts.chances, forecasts.start[stood.row], stood.question)
            yield _summed(first, own, made, stood)


def _is_central(span: NumericRange | None) -> bool:
    return span is not None and bool(span.levels) and is_symmetric(span.levels)


def _summed(first: int, questions: Questions, made: Numbers, standing: Intervals) -> IntervalScores:
    """Return the parts of forecasts, summed over time for each question and participant."""
    whole, width, above = range_kernels.pinball(made), range_kernels.dispersion(made), range_kernels.overpredicts(made)
    has_median = questions.width % 2 == 1
    middle = np.flatnonzero(has_median[standing.question])
    error = np.zeros_like(whole)
    error[middle] = range_kernels.median_error(made.rows(middle))
    question, participant = standing.question, standing.participant
    starts, length = run_starts(question, participant), standing.end - standing.start
    total, dispersion, over, under, median = (
        WideInt.product(part, length).run_sums(starts)
        for part in (whole, width, np.where(above, whole - width, 0), np.where(above, 0, whole - width), error)
    )
    covered = np.add.reduceat(length, starts)
    scores = Scores(question[starts] + first, participant[starts], total, covered, np.zeros_like(covered))
    return IntervalScores(scores, dispersion, over, under, median, has_median[question[starts]])
