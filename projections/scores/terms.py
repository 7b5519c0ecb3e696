"""Terms of scores, and the timeline on which their references are computed."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.standing import Intervals
from forecast_ledger.projections.references.consensus import Changes, changes
from forecast_ledger.projections.references.kinds import Compared, Scored, Steps, steps
from forecast_ledger.projections.scores.forecast_numbers import Numbers
from forecast_ledger.projections.scores.scored_questions import CDF, NAMED, QUANTILES, Questions


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of scores and of their parts, for some questions.

    standing: intervals in units from the opening, in order of question, participant and start, cut at each of several
    single instants; the consensus is the last participant. member: whether each counts among the peers and in the
    consensus. doubled: twice the probability of the outcome as scored, 1e-10; below 0 for quantiles, and with payouts.
    own: the kernel score of each. compared: the reference; None if it does not change over time.
    """

    questions: Questions
    standing: Intervals
    member: BoolArray
    doubled: Int64Array
    own: Int64Array
    compared: Compared | None = None

    def earned(self) -> WideInt:
        """Return what each interval adds to the numerator of its score."""
        if self.compared is None:
            length = self.standing.end - self.standing.start
            return WideInt.product(self.own - self.questions.uniform[self.standing.question], length)
        return self.compared.earned(self.scored, self.compared.steps.begins, self.compared.steps.ends)

    def of(self, rows: Int64Array) -> "Terms":
        """Return the terms of some intervals, with the reference that all of them make."""
        compared = self.compared
        if compared is not None:
            begins, ends = compared.steps.begins[rows], compared.steps.ends[rows]
            compared = compared._replace(steps=compared.steps._replace(begins=begins, ends=ends))
        standing, member = self.standing.of(rows), self.member[rows]
        return Terms(self.questions, standing, member, self.doubled[rows], self.own[rows], compared)

    @property
    def scored(self) -> Scored:
        """The kernel scores of the forecasts."""
        return Scored(self.own, self.doubled, self.member)


class Timeline(NamedTuple):
    """All questions on one timeline: the intervals on which forecasts stand, the steps, the question of each step.

    age: of two forecasts that begin to stand together, the older has the lower number; no two are equal.
    """

    standing: Intervals
    age: Int64Array
    changes: Changes
    steps: Steps
    question: Int64Array


def timeline(terms: Terms, shift: Int64Array, age: Int64Array) -> Timeline:
    """Put all questions on one timeline. shift: what is added to the instants of each question. age: see `Timeline`."""
    standing, along = terms.standing, shift[terms.standing.question]
    standing = standing._replace(start=standing.start + along, end=standing.end + along)
    ordered = changes(standing.start, standing.end)
    all_steps = steps(standing.start, standing.end, terms.member, ordered)
    question = np.zeros(len(all_steps.instant), np.int64)
    question[all_steps.begins] = standing.question
    return Timeline(standing, age, ordered, all_steps, np.maximum.accumulate(question))


def numbers(questions: Questions, flat: Int64Array, start: Int64Array, question: Int64Array) -> Numbers:
    """Return forecasts as kernels read them. flat: all numbers. start: where each forecast begins. question: index."""
    return Numbers(
        flat=flat,
        start=start,
        width=questions.width[question],
        outcome=questions.outcome[question],
        question=question,
        spans=[answer.question.range for answer in questions.answers],
        values=[answer.value for answer in questions.answers],
        payouts=[answer.payouts for answer in questions.answers],
    )


def forms(rules: RuleSet) -> list[tuple[int, str]]:
    """Return the forms of forecast that a rule set scores, each with its kernel."""
    names = ((NAMED, rules.kernel), (CDF, rules.cdf_kernel), (QUANTILES, rules.quantile_kernel))
    return [(form, name) for form, name in names if name != "none"]
