"""Scores added up as integers, so that the sums over many questions can be sent, and added to others, exactly."""

from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.sorting import distinct, index_where, run_starts, stable_order
from forecast_ledger.projections.scores.coverage import group_questions
from forecast_ledger.projections.scores.scored_questions import Questions
from forecast_ledger.projections.scores.time_weighted import Scores

_BITS = 60  # of a sum in one word


class SummedScores(NamedTuple):
    """Sums of scores of one participant on questions of one contest with the same divisors, weight and kind.

    rows: the sums; `question` is one of those questions. over: how many questions each sum is over, shape (n,).
    """

    rows: Scores
    over: Int64Array


def counted(questions: Questions, rows: Scores) -> SummedScores:
    """Return each score as a sum over one question, without questions of weight 0.

    Their scores are shown, and no sum, mean, coverage or count has them.
    """
    weighted = index_where(questions.weight[rows.question] > 0)
    rows = rows if isinstance(weighted, slice) else rows.rows(weighted)
    return SummedScores(rows, np.ones(len(rows.question), np.int64))


def summed(rules: RuleSet, questions: Questions, rows: Scores) -> SummedScores:
    """Return the sums of scores, as few as there can be, without questions of weight 0; see `added`."""
    return added(rules, questions, counted(questions, rows))


def added(rules: RuleSet, questions: Questions, sums: SummedScores) -> SummedScores:
    """Return sums with those of one participant on questions of one contest that are alike added up.

    Nothing is added if each score is divided by its own time, if one may stand in for another, or if a sum might not
    fit in its words.
    """
    rows, over = sums
    if rules.period == "covered" or rules.imputation != "none" or not len(over):
        return sums
    groups = group_questions(questions).group_of
    _, place = distinct(questions.contest * (int(groups.max()) + 1) + groups)
    alike = np.unique(place, return_index=True)[1][place]  # the first question of the same contest and group
    people = int(rows.participant.max()) + 1
    key = alike[rows.question] * people + rows.participant
    order = stable_order(key)
    starts = run_starts(key[order])
    largest = max(int(np.abs(column).max()) for column in (rows.numerator.high, rows.covered))
    if largest * int(np.diff(starts, append=len(order)).max()) >> _BITS:
        return sums
    question, participant = np.divmod(key[order][starts], people)
    covered, hidden, count = (
        np.add.reduceat(column[order], starts) for column in (rows.covered, rows.covered_hidden, over)
    )
    return SummedScores(
        Scores(question, participant, rows.numerator.take(order).run_sums(starts), covered, hidden), count
    )
