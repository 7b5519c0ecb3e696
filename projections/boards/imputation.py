"""Imputation: the score that counts for a participant on a question without a forecast.

Source: ForecastBench's leaderboard, which imputes what a model did not forecast.
"""

from fractions import Fraction

import numpy as np

from forecast_ledger.ledger.model.rules import KIND_TOTALS, REFERENCE_ROWS, RuleSet
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.scores import coverage
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.projections.scores.score_policies import kernel_of
from forecast_ledger.projections.scores.scored_questions import Questions
from forecast_ledger.projections.scores.time_weighted import Scores


def worst_score(kernel: str) -> int:
    """Return the worst score of a kernel, which a missing forecast gets in a total of kind means, or by imputation.

    Raises ValueError if the kernel has no worst score.

    >>> worst_score("brier_sum")
    2
    """
    score = KERNELS[kernel].worst
    if score is None:
        raise ValueError(f"the kernel {kernel} has no worst score")
    return score


def kernel_of_kind(rules: RuleSet, kind: str) -> str:
    """Return the name of the kernel for questions of a kind, of QUESTION_KINDS.

    >>> kernel_of_kind(RuleSet(name="x", kernel="brier", cdf_kernel="crps"), "numeric")
    'crps'
    """
    if kind != "numeric":
        return rules.kernel
    return rules.quantile_kernel if rules.cdf_kernel == "none" else rules.cdf_kernel


def missing_scores(rules: RuleSet, questions: Questions, rows: Scores, consensus: int) -> dict[int, Fraction]:
    """Return what counts for a participant without a forecast, in points, by the index of the question.

    rows: all scores, those of reference forecasters included. consensus: the participant code of the consensus. A
    question is left out where the rules put nothing in place of a forecast, or the reference forecaster has no score.
    """
    if rules.total in KIND_TOTALS or rules.imputation == "worst":
        kernels = (kernel_of(rules, answer.question) for answer in questions.answers)
        return {number: Fraction(worst_score(kernel)) for number, kernel in enumerate(kernels)}
    if rules.imputation not in REFERENCE_ROWS:
        return {}
    own = rows.of(consensus + REFERENCE_ROWS.index(rules.imputation))
    return dict(zip(own.question.tolist(), coverage.points(rules, questions, own).exact(), strict=True))


def imputable_rows(rules: RuleSet, rows: Scores, consensus: int) -> tuple[Int64Array, Int64Array]:
    """Return the reference forecaster's row on the question of each participant's row that has one, and that row."""
    if rules.imputation not in REFERENCE_ROWS:
        return (np.zeros(0, np.int64),) * 2
    own = np.flatnonzero(rows.participant == consensus + REFERENCE_ROWS.index(rules.imputation))
    at = np.full(int(rows.question.max(initial=-1)) + 1, -1)
    at[rows.question[own]] = own
    kept = np.flatnonzero((at[rows.question] >= 0) & (rows.participant < consensus))
    return at[rows.question[kept]], kept
