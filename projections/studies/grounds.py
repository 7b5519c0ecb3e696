"""Grounds: how many clusters a row of a board or a pair rests on, and where they are too few for an interval."""

from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.ledger.model.rules import LOGARITHMS, RuleSet
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, int64_array
from forecast_ledger.projections.scores.scored_questions import kernel_of
from forecast_ledger.projections.scores.time_weighted import ContestScores
from forecast_ledger.projections.studies.expansion import expanded_level
from forecast_ledger.projections.studies.resampling import LEAST_CLUSTERS, Ends, Units

LEAST_OUTCOMES = 5  # clusters with the rarer answer: with fewer, replicates seldom have the scores that matter most
ERRORS = "errors of numbers"
LEAST_HEAVY = {  # clusters, for scores of which a few make much of the sum, chosen by simulation
    "logarithmic scores": 75,
    "logarithmic scores beside those of others": 50,
    ERRORS: 400,
    "errors of square roots": 100,
}
WITHHELD = {  # why there is no interval
    "few_clusters": f"scores in fewer than {LEAST_CLUSTERS} clusters (questions, or groups that are drawn together)",
    "heavy_tails": "too few clusters for scores of which a few may make most of the sum",
    "rare_outcome": f"fewer than {LEAST_OUTCOMES} of its yes-no questions, or groups of them, have the rarer answer",
    "constant_score": "every sample gives the same score",
    "apart": "more than one sample of twenty leaves scores that no common questions connect",
    "many_participants": "the effects of questions would take too long to fit in every sample",
}
# References that are forecasts or scores of the same question.
_COMPARED = ("peers", "consensus", "median_score", "mean_score")


class Grounds(NamedTuple):
    """What each row of a board, or each pair, rests on.

    clusters: in which it has a score, by the field with fewest, shape (p,). strata: of clusters, by the field with
    most. withheld: see `Standards`.
    """

    clusters: Int64Array
    strata: int
    withheld: list[str]

    def levels(self, level_ppm: int) -> Int64Array:
        """Return the share of the replicates between the ends of each row's intervals, 1e-6, shape (p,)."""
        clusters, row = np.unique(self.clusters, return_inverse=True)
        every = [expanded_level(level_ppm, count, self.strata) for count in clusters.tolist()]
        return int64_array(every)[row.reshape(-1)]

    def withheld_of(self, row: int, ends: Ends) -> str:
        """Return why nothing is said of a row, a key of WITHHELD; else "". ends: of its interval."""
        constant = ends is not None and ends[0] == ends[1]
        return self.withheld[row] or "constant_score" * constant


class Standards(NamedTuple):
    """What intervals of a contest need to hold.

    with_yes, with_no: which units have a yes-no question with this answer, shape (u,). least: clusters. In simulated
    contests with 20 clusters or more, intervals of 95% of bounded scores hold in 93% to 97%; with 10, in 89%. Those of
    LEAST_HEAVY need more. Where events of yes-no questions are rare, intervals hold in 36% to 90%, because the large
    scores have not been seen yet; of those with five clusters or more of either answer, in 94% to 99%. Numbers of the
    spread of scores do not tell: where a large score is missing, the spread is small.
    """

    units: Units
    with_yes: BoolArray
    with_no: BoolArray
    least: int

    def grounds(self, owner: Int64Array, unit: Int64Array, rows: int) -> Grounds:
        """Return the grounds of so many rows. owner, unit: a row and a unit in which it has a score, shape (n,)."""
        binary = self.with_yes | self.with_no
        kinds = (np.ones_like(binary), binary, self.with_yes, self.with_no)
        by_field = [
            [_clusters(owner, clusters[unit], counted[unit], rows) for counted in kinds]
            for clusters in self.units.clusters
        ]
        reached = np.min([every for every, *_ in by_field], axis=0)
        rare = np.any(
            [(2 * some > every) & (np.minimum(yes, no) < LEAST_OUTCOMES) for every, some, yes, no in by_field], axis=0
        )
        reasons = np.where(reached < self.least, "heavy_tails", np.where(rare, "rare_outcome", ""))
        reasons = np.where(reached < LEAST_CLUSTERS, "few_clusters", reasons)
        return Grounds(reached, max(_strata(self.units)), reasons.tolist())


def standards_of(rules: RuleSet, scored: ContestScores, units: Units) -> Standards:
    """Return what intervals of scores need, and of differences of scores of two participants."""
    questions = [answer.question for number, answer in enumerate(scored.questions.answers) if units.unit[number] >= 0]
    least = max((LEAST_HEAVY.get(_tail(rules, each), 0) for each in questions), default=0)
    return Standards(units, _answered(scored, units, 0), _answered(scored, units, 1), least)


def reasons_of(rules: RuleSet, scored: ContestScores) -> dict[str, str]:
    """Return `WITHHELD` with the number of clusters that the scores of a contest need."""
    kinds = {_tail(rules, answer.question) for answer in scored.questions.answers} & LEAST_HEAVY.keys()
    if not kinds:
        return WITHHELD
    kind = max(kinds, key=lambda each: LEAST_HEAVY[each])
    return WITHHELD | {"heavy_tails": f"{WITHHELD['heavy_tails']} (fewer than {LEAST_HEAVY[kind]} for {kind})"}


def _tail(rules: RuleSet, question: QuestionOpened) -> str:
    """Return which of LEAST_HEAVY the scores on a question are; "" if they have bounds, or logarithms of numbers."""
    kernel = kernel_of(rules, question)
    if kernel in LOGARITHMS:
        return f"logarithmic scores{' beside those of others' * (rules.reference in _COMPARED)}"
    if question.range is None or not question.range.measures or kernel == "absolute_clipped":
        return ""
    return {"none": ERRORS, "sqrt": "errors of square roots"}.get(rules.transform, "")


def _strata(units: Units) -> list[int]:
    """Return the number of strata of each field."""
    ends = np.searchsorted(np.cumsum(units.strata), np.cumsum(units.counts)) + 1
    counts: list[int] = np.diff(ends, prepend=0).tolist()
    return counts


def _answered(scored: ContestScores, units: Units, outcome: int) -> BoolArray:
    """Return which units have a yes-no question with this answer, shape (u,)."""
    answered = np.zeros(units.size, bool)
    for number, answer in enumerate(scored.questions.answers):
        if units.unit[number] >= 0 and answer.question.kind == "binary" and answer.outcome == outcome:
            answered[units.unit[number]] = True
    return answered


def _clusters(owner: Int64Array, cluster: Int64Array, counted: BoolArray, rows: int) -> Int64Array:
    """Return in how many clusters each row has a score that counts; shape (n,) each."""
    width = int(cluster.max(initial=0)) + 1
    pairs = np.unique((owner * width + cluster)[counted])
    return np.bincount(pairs // width, minlength=rows)
