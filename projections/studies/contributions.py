"""What each unit contributes to the totals of a board; their sums are the totals, less what all have in common.

A total is a sum of contributions if its divisor is a number. If it is a quotient N / D, such as the mean over the
questions that a participant has forecast on, N / D = t + Σ (n - t d) / D over the units for every number t, where n and
d are what a unit adds to N and D. With t the quotient of all participants together, nothing is added where a
participant has no forecast. Contributions are whole numbers, in 1e-18 points.
"""

import numpy as np

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import WEIGHT
from forecast_ledger.ledger.model.rules import KIND_TOTALS, RuleSet
from forecast_ledger.projections.boards.leaderboard import TOTALS
from forecast_ledger.projections.boards.totals import kernel_of_kind, worst_score
from forecast_ledger.projections.scores.time_weighted import QUESTION_KINDS
from forecast_ledger.projections.studies.replicates import Draws, Integers, Rows

GRAIN = 10**18  # contributions in a point
_FINE = 10**9  # of what a weighted score is rounded to in 1e-15: 1e-24
_SCALE = 10**6  # of the two
_ONE = {"weight": WEIGHT, "covered": GRAIN * _SCALE, "questions": 1}  # of the sums that are divisors


def contributions(rules: RuleSet, rows: Rows, draws: Draws) -> Integers:
    """Return what each unit contributes to the total of each row of a board, 1e-18 points, shape (p, u).

    Each weighted score, and each weighted coverage, is rounded half-even to 1e-24; contributions, and the number that
    totals have in common, are rounded down. A total whose divisor is the least that the rules allow is a sum; what is
    common is then shared out by the weights of the units.
    """
    _, _, divisor, floored = TOTALS[rules.total]
    if rules.total in KIND_TOTALS:
        return _of_kinds(rules, rows, draws)
    scores = _by_unit(rows, "score", draws)
    if isinstance(divisor, int):
        plain: Integers = scores // (divisor * _SCALE)
        return plain
    one, parts = _ONE[divisor], _by_unit(rows, divisor, draws)
    whole = parts.sum(axis=1)
    if floored:
        least, weights = rules.least_coverage * one, draws.weights.sum(axis=0).astype(object)
        small = np.flatnonzero(whole < least)
        parts[small], whole[small] = weights * least // weights.sum(), least
    common = int(scores.sum()) * one // (int(whole.sum()) * _SCALE)
    found: Integers = (scores * one - parts * (common * _SCALE)) // (whole * _SCALE)[:, None]
    return found


def _by_unit(rows: Rows, name: str, draws: Draws) -> Integers:
    """Return the sums of a column of rows by unit: of scores and coverages, 1e-24; of weights, 1e-6; or questions."""
    sums: Integers = np.zeros((draws.people, draws.times.shape[1]), object)
    values: list[int] = [1] * len(rows.owner)
    if name == "weight":
        values = rows.weight.tolist()
    elif name != "questions":
        values = [half_even(top * _FINE, below) for top, below in getattr(rows, name).quotients()]
    np.add.at(sums, (rows.owner, rows.unit), np.array(values, object))
    return sums


def _of_kinds(rules: RuleSet, rows: Rows, draws: Draws) -> Integers:
    """Return contributions to the sum of the means of each kind, in percent; a missing score is the worst one."""
    total: Integers = np.zeros((draws.people, draws.times.shape[1]), object)
    for number, kind in enumerate(QUESTION_KINDS):
        weights = draws.weights[number].astype(object)
        if weights.any():
            own, worst = rows.of_kind(number), worst_score(kernel_of_kind(rules, kind)) * GRAIN
            missing = weights - _by_unit(own, "weight", draws)
            over = int(weights.sum()) * int(TOTALS[rules.total].divisor)
            total += 100 * (_by_unit(own, "score", draws) + missing * worst) // over
    return total
