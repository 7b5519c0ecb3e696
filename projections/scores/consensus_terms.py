"""The consensus as a reference: its probability and its kernel score in every step of a timeline."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, half_even_many
from forecast_ledger.projections.facts.columns import CHANCE, DOUBLED, Forecasts
from forecast_ledger.projections.facts.outcomes import missing
from forecast_ledger.projections.facts.standing import Intervals
from forecast_ledger.projections.references import community
from forecast_ledger.projections.references.consensus import neighbours
from forecast_ledger.projections.references.kinds import latest
from forecast_ledger.projections.references.leave_one_out import LeaveOneOut, leave_one_out
from forecast_ledger.projections.references.recency import Aged
from forecast_ledger.projections.scores.kernels import KERNELS, Kernel
from forecast_ledger.projections.scores.scored_questions import NAMED, UNORDERED, Questions
from forecast_ledger.projections.scores.terms import Layout, Terms, Timeline, forms, layouts, numbers, rebased

_NAMED = (NAMED, UNORDERED)


class _ConsensusGroup(NamedTuple):
    """Questions whose consensus is computed together: their form and kernel, and a mask, shape (q,).

    width: numbers of a forecast that are averaged; 0 for the probability of the outcome alone. squeezed: see
    `community.SQUEEZED`. layout: if outcomes of the one question changed, the forecasts that give the same outcomes.
    """

    form: int
    kernel: Kernel
    questions: BoolArray
    width: int
    squeezed: bool
    layout: Layout | None = None


def _consensus_groups(rules: RuleSet, forecasts: Forecasts, terms: Terms) -> Iterator[_ConsensusGroup]:
    """Yield the groups of all questions that the rule set scores."""
    questions, every = terms.questions, np.arange(len(terms.questions.code))
    for group in _groups_without_changes(rules, questions):
        yield group._replace(questions=group.questions & (questions.catch_all < 0))
        start = forecasts.start[terms.standing.row]
        for layout in layouts(questions, forecasts.chances, start, terms.standing.question):
            if group.questions[layout.number]:
                width = len(layout.given) if group.width else 0
                yield group._replace(questions=every == layout.number, width=width, layout=layout)


def _groups_without_changes(rules: RuleSet, questions: Questions) -> Iterator[_ConsensusGroup]:
    """Yield the groups as they are if no outcomes change."""
    aggregation = community.AGGREGATIONS[rules.consensus]
    for form, name in forms(rules):
        kernel, of_form = KERNELS[name], questions.form == form
        parts = [(of_form, False)]
        if form in _NAMED and aggregation.normalized:
            whole = np.array([answer.question.kind in aggregation.normalized for answer in questions.answers], bool)
            parts = [(of_form & ~whole, False), (of_form & whole, True)]
        for mask, normalized in parts:
            squeezed = normalized and aggregation.squeezed
            if kernel.of_numbers is None and not normalized:
                yield _ConsensusGroup(form, kernel, mask, 0, squeezed)
                continue
            for width in np.unique(questions.width[mask]).tolist():
                yield _ConsensusGroup(form, kernel, mask & (questions.width == width), width, squeezed)


def consensus(rules: RuleSet, forecasts: Forecasts, terms: Terms, timeline: Timeline) -> tuple[Int64Array, Int64Array]:
    """Return twice the consensus's probability of the outcome, 1e-10, and its kernel score, in each step.

    They are -1 and 0 where no member has a standing forecast. Logarithms are taken of the average to 1e-18, not of the
    rounded probability that is shown.
    """
    questions, owner = terms.questions, timeline.question
    doubled, kernels = np.full(len(owner), -1), np.zeros(len(owner), np.int64)
    for group in _consensus_groups(rules, forecasts, terms):
        rows, at_steps = _where(group, terms, timeline)
        if not len(at_steps):
            continue
        averages, finer = _averages(rules, forecasts, terms, timeline, (group, rows, at_steps))
        outcome, kernel, width = questions.outcome[owner[at_steps]], group.kernel, group.width
        if group.layout is not None:
            outcome = np.full(len(at_steps), group.layout.answer.outcome)
        if kernel.of_chance is not None:
            fine = averages[0]
            if width:
                fine, finer = community.share(averages, outcome, squeezed=group.squeezed), community.FINER
            doubled[at_steps] = half_even_many(fine, finer)
            kernels[at_steps] = kernel.of_chance(fine, 2 * CHANCE * finer)
        elif kernel.of_numbers is not None:
            named = group.form in _NAMED
            table = community.distributions(averages, named=named, squeezed=group.squeezed)
            shown = table[np.arange(len(at_steps)), np.maximum(outcome, 0)] * DOUBLED if named else -1
            doubled[at_steps] = np.where(outcome < 0, -1, shown)
            if group.layout is not None:
                table = _spread(table, group.layout, questions)
            start = np.arange(len(at_steps)) * table.shape[1]
            kernels[at_steps] = kernel.of_numbers(numbers(questions, table.reshape(-1), start, owner[at_steps]))
        if group.layout is not None:
            kernels[at_steps] = rebased(rules, questions, group.layout, kernels[at_steps])
    return doubled, kernels


def _where(group: _ConsensusGroup, terms: Terms, timeline: Timeline) -> tuple[Int64Array, Int64Array]:
    """Return the intervals of members on the questions of a group, and the steps in which one of them stands."""
    steps, owned = timeline.steps, group.questions[timeline.question]
    if group.layout is None:
        rows = np.flatnonzero(terms.member & group.questions[terms.standing.question])
        return rows, np.flatnonzero(owned & (steps.stand > 0))
    rows = group.layout.rows[terms.member[group.layout.rows]]
    stand = np.zeros(len(timeline.question), np.int64)
    np.add.at(stand, steps.begins[rows], 1)
    np.subtract.at(stand, steps.ends[rows], 1)
    return rows, np.flatnonzero(owned & (np.cumsum(stand) > 0))


def _spread(table: Int64Array, layout: Layout, questions: Questions) -> Int64Array:
    """Return distributions over the outcomes that are given as `Forecasts` has them, over all of the question."""
    absent = missing(int(questions.catch_all[layout.number]))
    spread = np.full((len(table), int(questions.width[layout.number])), absent)
    spread[:, layout.given] = table
    return spread


def _averages(
    rules: RuleSet,
    forecasts: Forecasts,
    terms: Terms,
    timeline: Timeline,
    at: tuple[_ConsensusGroup, Int64Array, Int64Array],
) -> tuple[list[Int64Array], int]:
    """Return twice the average of each number, of some intervals in some steps, and how fine its unit is.

    The second value is how many of the units make 1e-10 (for probabilities of the outcome) or one unit of the numbers.
    """
    (group, rows, at_steps), questions = at, terms.questions
    standing, by_chance = timeline.standing.of(rows), group.kernel.of_chance is not None
    columns = [terms.doubled[rows] // 2]
    if group.width:
        places = range(group.width) if group.layout is None else group.layout.given.tolist()
        columns = _columns(forecasts, standing, places, questions if by_chance else None)
    ordered = timeline.changes if len(rows) == len(timeline.standing.row) else None
    average, finer = community.average(rules, named=group.form in _NAMED, fine=by_chance, ordered=ordered)
    aged = Aged(standing.start, standing.end, standing.question, timeline.age[rows])
    return community.average_columns(average, aged, timeline.steps, columns, at_steps), finer


def against_others(rules: RuleSet, terms: Terms, timeline: Timeline) -> LeaveOneOut:
    """Return the reference of each member: the median of the other members."""
    rows = np.flatnonzero(terms.member)
    standing = timeline.standing.of(rows)
    ordered = timeline.changes if len(rows) == len(timeline.standing.row) else None
    chance = terms.doubled[rows] // 2
    near = neighbours(standing.start, standing.end, standing.question, chance, ordered)
    near = near.at(latest(near.instant, timeline.steps))
    [logarithm] = {of_chance for _, name in forms(rules) if (of_chance := KERNELS[name].of_chance) is not None}
    return leave_one_out(timeline.steps.stand, timeline.steps.lasts, timeline.question, near, logarithm)


def _columns(
    forecasts: Forecasts, standing: Intervals, places: Iterable[int], questions: Questions | None
) -> list[Int64Array]:
    """Return each number of the forecasts; where a kernel scores probabilities, in 1e-10 and limited as scored."""
    start, unit = forecasts.start[standing.row], CHANCE // PROBABILITY
    columns = (forecasts.chances[start + place] for place in places)
    if questions is None:
        return list(columns)
    return [questions.as_scored(column * unit, standing.question) for column in columns]
