"""Terms of scores, and the timeline on which their references are computed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, Totals, int64_array, spread, stable_order
from forecast_ledger.projections.core.estimates import sum_products
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Intervals
from forecast_ledger.projections.scores.consensus import Changes, changes
from forecast_ledger.projections.scores.range_kernels import Numbers, transformed
from forecast_ledger.projections.scores.reference_kinds import Compared, Scored, Steps, steps
from forecast_ledger.projections.scores.scored_questions import (
    CDF,
    NAMED,
    QUANTILES,
    UNORDERED,
    Answer,
    Questions,
    per_point,
    uniform_term,
    unordered_kernel,
)


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of scores and of their parts, for some questions.

    standing: intervals in units from the opening, in order of question, participant and start, cut at each of several
    single instants; the consensus is the last participant. member: whether each counts among the peers and in the
    consensus. doubled: twice the probability of the outcome as scored, 1e-10; below 0 for quantiles, and with payouts.
    kernel_scores: of each. compared: the reference; None if it does not change over time.
    """

    questions: Questions
    standing: Intervals
    member: BoolArray
    doubled: Int64Array
    kernel_scores: Int64Array
    compared: Compared | None = None

    def earned(self) -> WideInt:
        """Return what each interval adds to the numerator of its score."""
        if self.compared is None:
            return WideInt.product(*self._products)
        return self.compared.earned(self.scored, self.compared.steps.begins, self.compared.steps.ends)

    def sums(self, totals: Totals) -> WideInt:
        """Return the sums of what intervals add to the numerators of scores."""
        return sum_products(*self._products, totals) if self.compared is None else self.earned().totals(totals)

    @property
    def _products(self) -> tuple[Int64Array, Int64Array]:
        """What each interval earns in a unit of time, without a reference that changes, and its units."""
        standing = self.standing
        uniform = spread(self.questions.uniform, standing.question)
        return self.kernel_scores - uniform, standing.end - standing.start

    def of(self, rows: Int64Array) -> "Terms":
        """Return the terms of some intervals, with the reference that all of them make."""
        compared = self.compared
        if compared is not None:
            begins, ends = compared.steps.begins[rows], compared.steps.ends[rows]
            compared = compared._replace(steps=compared.steps._replace(begins=begins, ends=ends))
        standing, member = self.standing.of(rows), self.member[rows]
        return Terms(self.questions, standing, member, self.doubled[rows], self.kernel_scores[rows], compared)

    @property
    def scored(self) -> Scored:
        """The kernel scores of the forecasts."""
        return Scored(self.kernel_scores, self.doubled, self.member)


def time_slices(terms: Terms, size: int) -> Iterator[tuple[Terms, Int64Array]]:
    """Yield the terms of one question in slices of time, which do not overlap, with the rows that each is made of.

    A slice has the forecasts that stand at its beginning, and `size` more, or four times as many as stand there, if
    these are more. Slices begin where a forecast begins to stand, so that no step of the timeline is cut.
    """
    start, end = terms.standing.start, terms.standing.end
    order = stable_order(start)
    begins, first, standing = start[order], 0, order[:0]
    while first < len(order):
        past = int(np.searchsorted(begins, begins[min(first + max(size, 4 * len(standing)), len(begins)) - 1], "right"))
        from_, until = begins[first], begins[past] if past < len(begins) else int(end.max())
        rows = np.sort(np.concatenate([standing, order[first:past]]))
        part = terms.of(rows)
        clipped = part.standing._replace(
            start=np.maximum(part.standing.start, from_), end=np.minimum(part.standing.end, until)
        )
        yield replace(part, standing=clipped), rows
        first, standing = past, rows[end[rows] > until]


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
    """Return forecasts as kernels read them. flat: all numbers. start: where each forecast begins. question: index.

    Where outcomes of a question changed, each forecast has the numbers of the outcomes that it gives.
    """
    whole = _numbers(questions, flat, start, question)
    changed = [*layouts(questions, flat, start, question)]
    if not changed:
        return whole
    whole = whole._replace(start=start.copy(), question=question.copy())
    payouts, numbers, size = [*whole.payouts], [flat], len(flat)
    for layout in changed:
        rows, width = layout.rows, len(layout.given)
        numbers.append(flat[start[rows][:, None] + layout.given].reshape(-1))
        whole.start[rows] = size + np.arange(len(rows)) * width
        whole.width[rows], whole.outcome[rows], whole.question[rows] = width, layout.answer.outcome, len(payouts)
        payouts.append(layout.answer.payouts)
        size += len(rows) * width
    more = len(payouts) - len(whole.spans)
    spans, values = [*whole.spans, *[None] * more], [*whole.values, *[""] * more]
    return whole._replace(flat=np.concatenate(numbers), spans=spans, values=values, payouts=payouts)


def quantile_numbers(
    rules: RuleSet, questions: Questions, flat: Int64Array, start: Int64Array, question: Int64Array
) -> Numbers:
    """Return forecasts by quantiles or samples as kernels read them, after the rule set's transform; see `numbers`."""
    return transformed(rules.transform, numbers(questions, flat, start, question))


class Layout(NamedTuple):
    """Forecasts that give the same outcomes of a question whose outcomes changed.

    rows: of the forecasts. number: index of the question. given: the outcomes, by index. answer: among those.
    """

    rows: Int64Array
    number: int
    given: Int64Array
    answer: Answer


def layouts(questions: Questions, flat: Int64Array, start: Int64Array, question: Int64Array) -> Iterator[Layout]:
    """Yield the forecasts on questions whose outcomes changed, by the outcomes that they give; see `numbers`."""
    if (questions.catch_all < 0).all():
        return
    for number in np.unique(question[questions.catch_all[question] >= 0]).tolist():
        rows, catch_all = np.flatnonzero(question == number), int(questions.catch_all[number])
        table = flat[start[rows][:, None] + np.arange(questions.width[number])] >= 0
        kinds, kind = np.unique(table, axis=0, return_inverse=True)
        for each, gives in enumerate(kinds):
            given = np.flatnonzero(gives)
            answer = questions.answers[number].among(given.tolist(), catch_all)
            yield Layout(rows[kind.reshape(-1) == each], number, given, answer)


def rebased(rules: RuleSet, questions: Questions, layout: Layout, scores: Int64Array) -> Int64Array:
    """Return kernel scores so that the question's uniform score and points apply to them; shape of `scores`.

    A forecast is compared with the uniform distribution on the outcomes that it gives, and the scale is that of their
    number; the question has these of the outcomes that it was opened with. The result is rounded half-even once.
    Source: Metaculus's published code, scoring/score_math.py, evaluate_forecasts_baseline_accuracy.
    """
    if rules.reference != "uniform":
        return scores
    compared, first = uniform_term(rules, layout.answer), int(questions.uniform[layout.number])
    old, new = per_point(rules, layout.answer.question), questions.per_point[layout.number]
    over, under = new.numerator * old.denominator, new.denominator * old.numerator
    return int64_array([first + half_even((each - compared) * over, under) for each in scores.tolist()])


def _numbers(questions: Questions, flat: Int64Array, start: Int64Array, question: Int64Array) -> Numbers:
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
    names: list[tuple[int, str]] = [(NAMED, rules.kernel), (CDF, rules.cdf_kernel), (QUANTILES, rules.quantile_kernel)]
    if (unordered := unordered_kernel(rules)) != rules.kernel:
        names.append((UNORDERED, unordered))
    return [(form, name) for form, name in names if name != "none"]
