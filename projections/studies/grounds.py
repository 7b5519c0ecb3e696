"""Grounds: how many clusters a row of a board rests on, and where they are too few for an interval."""

from typing import NamedTuple

import numpy as np

from forecast_ledger.projections.boards.contest_groups import ContestScores
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.studies.replicates import Rows
from forecast_ledger.projections.studies.resampling import LEAST_CLUSTERS, Units

LEAST_OUTCOMES = 5  # clusters with the rarer answer: with fewer, replicates seldom have the scores that matter most
WITHHELD = {  # why a row has no intervals
    "few_clusters": f"scores in fewer than {LEAST_CLUSTERS} clusters (questions, or groups that are drawn together)",
    "rare_outcome": f"fewer than {LEAST_OUTCOMES} of its yes-no questions, or groups of them, have the rarer answer",
    "constant_score": "the same score in all samples",
}


class Grounds(NamedTuple):
    """What each row of a board rests on.

    clusters: in which it has a score, by the field with fewest, shape (p,). strata: of clusters, by the field with
    most. withheld: see `grounds_of`.
    """

    clusters: Int64Array
    strata: int
    withheld: list[str]


def grounds_of(scored: ContestScores, units: Units, rows: Rows, people: int) -> Grounds:
    """Return the clusters of each row, and why its intervals would not hold, a key of WITHHELD; else "".

    rows: the scores that count, imputed ones as well. In simulated contests with 20 clusters or more, intervals of 95%
    hold in 92% to 97%; with 10, in 89%. Where events of yes-no questions are rare, they hold in 36% to 90%, because the
    large scores have not been seen yet; of those with five clusters or more of either answer, in 94% to 99%. Numbers
    of the spread of scores do not tell: where a large score is missing, the spread is small.
    """
    with_yes, with_no = (_answered(scored, units, outcome) for outcome in (0, 1))
    kinds = (np.ones_like(with_yes), with_yes | with_no, with_yes, with_no)
    by_field = [[_clusters(rows, own, counted, people) for counted in kinds] for own in units.clusters]
    reached = np.min([every for every, *_ in by_field], axis=0)
    rare = np.any(
        [(2 * binary > every) & (np.minimum(yes, no) < LEAST_OUTCOMES) for every, binary, yes, no in by_field], axis=0
    )
    reasons = np.where(reached < LEAST_CLUSTERS, "few_clusters", np.where(rare, "rare_outcome", ""))
    return Grounds(reached, max(_strata(units)), reasons.tolist())


def _strata(units: Units) -> list[int]:
    """Return the number of strata of each field."""
    ends = np.searchsorted(np.cumsum(units.strata), np.cumsum(units.counts)) + 1
    found: list[int] = np.diff(ends, prepend=0).tolist()
    return found


def _answered(scored: ContestScores, units: Units, outcome: int) -> BoolArray:
    """Return which units have a yes-no question with this answer, shape (u,)."""
    found = np.zeros(units.size, bool)
    for number, answer in enumerate(scored.questions.answers):
        if units.unit[number] >= 0 and answer.question.kind == "binary" and answer.outcome == outcome:
            found[units.unit[number]] = True
    return found


def _clusters(rows: Rows, cluster: Int64Array, counted: BoolArray, people: int) -> Int64Array:
    """Return in how many clusters each row of the board has a score on a unit that counts. cluster: of each unit."""
    width = int(cluster.max(initial=0)) + 1
    pairs = np.unique((rows.owner * width + cluster[rows.unit])[counted[rows.unit]])
    return np.bincount(pairs // width, minlength=people)
