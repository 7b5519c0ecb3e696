"""Score terms: the kernel score of every standing forecast and of its reference, which scores add up over time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, half_even_many
from forecast_ledger.projections.core.sorting import index_where, stable_order
from forecast_ledger.projections.core.timeline import chunks, shifts
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import CHANCE, DOUBLED, Contest, Facts, Forecasts
from forecast_ledger.projections.facts.standing import Intervals, intervals
from forecast_ledger.projections.references import community
from forecast_ledger.projections.references.consensus import Changes, changes, neighbours
from forecast_ledger.projections.references.kinds import (
    Compared,
    Scored,
    Steps,
    against_consensus,
    against_peers,
    fine_bits,
    latest,
    steps,
)
from forecast_ledger.projections.references.leave_one_out import LeaveOneOut, leave_one_out
from forecast_ledger.projections.references.recency import Aged
from forecast_ledger.projections.scores.forecast_numbers import Numbers
from forecast_ledger.projections.scores.kernels import KERNELS, Kernel
from forecast_ledger.projections.scores.sampling import in_units
from forecast_ledger.projections.scores.scored_questions import (
    CDF,
    NAMED,
    QUANTILES,
    Questions,
    are_members,
    question_ruler,
)

CHUNK = 1 << 16  # forecasts scored at once, so that they fit in a processor's cache; any size gives the same numbers


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of scores and of their parts, for some questions.

    standing: intervals in units from the opening, in order of question, participant and start, cut at each of several
    single instants; the consensus is the last participant. member: whether each counts among the peers and in the
    consensus. doubled: twice the probability of the outcome as scored, 1e-10; -1 for quantiles. own: the kernel score
    of each. compared: the reference; None if it does not change over time.
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


def terms_in_chunks(
    facts: Facts, contests: Sequence[Contest], questions: Questions, chunk: int = CHUNK
) -> Iterator[tuple[int, Terms]]:
    """Yield the terms of scores, some questions at a time, with the index of the first question of each.

    contests: of one rule set, in the order in which the questions number them.
    """
    sizes = facts.forecasts.counts(questions.code)
    nothing = np.zeros_like(questions.length)
    for part in chunks(sizes, nothing, questions.length, chunk):
        yield part.start, _terms(facts, contests, questions.of(part))


def _terms(facts: Facts, contests: Sequence[Contest], questions: Questions) -> Terms:
    rules = contests[0].opened.rules
    forecasts = facts.forecasts.on(questions.code, questions.as_of)
    if rules.clock == "recorded":
        forecasts = replace(forecasts, at=forecasts.recorded_at)
    standing = _in_units(contests[0], questions, forecasts)
    member = are_members(facts, contests, questions.contest[standing.question], standing.participant)
    chance, own = _kernels(rules, questions, forecasts, standing)
    terms = Terms(questions, standing, member, 2 * chance, own)
    if not len(own) or (REFERENCES[rules.reference].compared is None and not rules.score_consensus):
        return terms
    age = standing.row
    if rules.consensus_weights == "recency":
        age = _ages(forecasts, standing, facts.participant_codes.labels)
    return _compared(rules, forecasts, terms, age, len(facts.participant_codes.codes))


def _ages(forecasts: Forecasts, standing: Intervals, labels: list[str]) -> Int64Array:
    """Return the rank of each interval by the instant of its forecast, oldest first.

    Forecasts of the same instant are ordered by participant id, so that it does not matter which was recorded first.
    """
    codes, whose = np.unique(standing.participant, return_inverse=True)
    names = [labels[code] for code in codes.tolist()]
    by_id = sorted(range(len(names)), key=names.__getitem__)
    order = np.lexsort((_places(by_id)[whose], forecasts.at[standing.row]))
    return _places(order)


def _places(order: Int64Array | list[int]) -> Int64Array:
    """Return the place of each number in an order."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place


def _in_units(contest: Contest, questions: Questions, forecasts: Forecasts) -> Intervals:
    """Return the intervals on which forecasts stand, in the units of time of the rule set."""
    rules, days = contest.opened.rules, question_ruler(contest, questions)
    standing = intervals(forecasts, questions.opens, questions.until, early=rules.early_forecasts)
    return in_units(rules.sampling, days, standing)


def _kernels(
    rules: RuleSet, questions: Questions, forecasts: Forecasts, standing: Intervals
) -> tuple[Int64Array, Int64Array]:
    """Return the outcome's probability as scored, 1e-10, and the kernel score, for the forecast of every interval."""
    question = standing.question
    chance, own = np.full(len(question), -1), np.zeros(len(question), np.int64)
    for form, name in _forms(rules):
        rows = index_where(questions.form[question] == form)
        if form != QUANTILES:
            outcome, bins = (column[question[rows]] for column in (questions.outcome, questions.bins))
            chance[rows] = forecasts.chance(standing.row[rows], outcome, bins)
        kernel = KERNELS[name]
        if kernel.of_chance is not None:
            chance[rows] = questions.as_scored(chance[rows], question[rows])
            own[rows] = kernel.of_chance(chance[rows], CHANCE)
        elif kernel.of_numbers is not None:
            start = forecasts.start[standing.row[rows]]
            own[rows] = kernel.of_numbers(_numbers(questions, forecasts.chances, start, question[rows]))
    return chance, own


def _compared(rules: RuleSet, forecasts: Forecasts, terms: Terms, age: Int64Array, consensus_code: int) -> Terms:
    """Return the terms with their reference, and with the terms of the consensus if it is scored."""
    questions = terms.questions
    shift = shifts(np.zeros_like(questions.length), questions.length)
    timeline = _timeline(terms, shift, age)
    all_steps = timeline.steps
    doubled = kernel = np.zeros(0, np.int64)
    if rules.reference == "consensus" or rules.score_consensus:
        doubled, kernel = _consensus(rules, forecasts, terms, timeline)
    compared = REFERENCES[rules.reference].compared
    if compared is not None:
        terms = replace(terms, compared=compared(rules, terms, timeline, (doubled, kernel)))
    if not rules.score_consensus:
        return terms
    stands = np.flatnonzero(all_steps.stand)
    question = timeline.question[stands]
    rows = Intervals(
        row=np.full(len(stands), -1),
        question=question,
        participant=np.full(len(stands), consensus_code),
        start=all_steps.instant[stands] - shift[question],
        end=all_steps.instant[stands + 1] - shift[question],
    )
    consensus_terms = Terms(questions, rows, np.zeros(len(stands), bool), doubled[stands], kernel[stands])
    return _joined(terms, all_steps, stands, consensus_terms)


def _with_consensus(
    rules: RuleSet, terms: Terms, timeline: "_Timeline", consensus: tuple[Int64Array, Int64Array]
) -> Compared:
    """Compare with the consensus, given as twice its probability and its kernel score in each step."""
    doubled, kernel = consensus
    against = against_consensus(timeline.steps, kernel)
    leaves_one_out = rules.consensus_of == "others" and timeline.steps.stand.any()
    of_members = _leave_one_out(rules, terms, timeline) if leaves_one_out else None
    return Compared(timeline.steps, against, against, doubled, kernel, of_members)


def _with_peers(rules: RuleSet, terms: Terms, timeline: "_Timeline", _: tuple[Int64Array, Int64Array]) -> Compared:
    """Compare with the mean kernel score of the other members."""
    steps, member, fine = timeline.steps, terms.member, fine_bits(rules)
    members = outsiders = against_peers(steps, terms.own, member, fine, leave_out_own=True)
    if rules.scored_only_factor == "one" and (rules.score_consensus or not member.all()):
        outsiders = against_peers(steps, terms.own, member, fine, leave_out_own=False)
    return Compared(steps, members, outsiders)


class Reference(NamedTuple):
    """One kind of reference, with which forecasts are compared.

    words: as `explain` prints them, with the fields {average} and {others}. compared: computes the reference; None if
    it does not change over time: then it is each question's `uniform`, which is 0 without a reference.
    """

    words: str
    compared: Callable[[RuleSet, Terms, "_Timeline", tuple[Int64Array, Int64Array]], Compared] | None
    source: str


REFERENCES: dict[str, Reference] = {
    "none": Reference("", None, "the kernel itself"),
    "uniform": Reference(
        "minus the score of the uniform distribution", None, 'Metaculus, Scores FAQ, "What is the Baseline score?"'
    ),
    "peers": Reference(
        "minus the mean score of the other members", _with_peers, 'Metaculus, Scores FAQ, "What is the Peer score?"'
    ),
    "consensus": Reference(
        "minus the score of the {average} of the standing forecasts{others}",
        _with_consensus,
        'Metaculus, Scores FAQ, "What is the Relative score?"',
    ),
}


def _joined(terms: Terms, all_steps: Steps, stands: Int64Array, consensus: Terms) -> Terms:
    """Merge terms with those of the consensus, which come last on each question."""
    standing = Intervals(*map(np.concatenate, zip(terms.standing, consensus.standing, strict=True)))
    order = stable_order(standing.question)
    begins = np.concatenate([all_steps.begins, stands])[order]
    ends = np.concatenate([all_steps.ends, stands + 1])[order]
    compared = terms.compared and terms.compared._replace(steps=all_steps._replace(begins=begins, ends=ends))
    return replace(
        terms,
        standing=standing.of(order),
        member=np.concatenate([terms.member, consensus.member])[order],
        doubled=np.concatenate([terms.doubled, consensus.doubled])[order],
        own=np.concatenate([terms.own, consensus.own])[order],
        compared=compared,
    )


class _Timeline(NamedTuple):
    """All questions on one timeline: the intervals on which forecasts stand, the steps, the question of each step.

    age: of two forecasts that begin to stand together, the older has the lower number; no two are equal.
    """

    standing: Intervals
    age: Int64Array
    changes: Changes
    steps: Steps
    question: Int64Array


def _timeline(terms: Terms, shift: Int64Array, age: Int64Array) -> _Timeline:
    standing, along = terms.standing, shift[terms.standing.question]
    standing = standing._replace(start=standing.start + along, end=standing.end + along)
    ordered = changes(standing.start, standing.end)
    all_steps = steps(standing.start, standing.end, terms.member, ordered)
    question = np.zeros(len(all_steps.instant), np.int64)
    question[all_steps.begins] = standing.question
    return _Timeline(standing, age, ordered, all_steps, np.maximum.accumulate(question))


class _ConsensusGroup(NamedTuple):
    """Questions whose consensus is computed together: their form and kernel, and a mask, shape (q,).

    width: numbers of a forecast that are averaged; 0 for the probability of the outcome alone. squeezed: see
    `community.SQUEEZED`.
    """

    form: int
    kernel: Kernel
    questions: BoolArray
    width: int
    squeezed: bool


def _consensus_groups(rules: RuleSet, questions: Questions) -> Iterator[_ConsensusGroup]:
    """Yield the groups of all questions that the rule set scores."""
    aggregation = community.AGGREGATIONS[rules.consensus]
    for form, name in _forms(rules):
        kernel, of_form = KERNELS[name], questions.form == form
        parts = [(of_form, False)]
        if form == NAMED and aggregation.normalized:
            whole = np.array([answer.question.kind in aggregation.normalized for answer in questions.answers], bool)
            parts = [(of_form & ~whole, False), (of_form & whole, True)]
        for mask, normalized in parts:
            squeezed = normalized and aggregation.squeezed
            if kernel.of_numbers is None and not normalized:
                yield _ConsensusGroup(form, kernel, mask, 0, squeezed)
                continue
            for width in np.unique(questions.width[mask]).tolist():
                yield _ConsensusGroup(form, kernel, mask & (questions.width == width), width, squeezed)


def _consensus(
    rules: RuleSet, forecasts: Forecasts, terms: Terms, timeline: _Timeline
) -> tuple[Int64Array, Int64Array]:
    """Return twice the consensus's probability of the outcome, 1e-10, and its kernel score, in each step.

    They are -1 and 0 where no member has a standing forecast. Logarithms are taken of the average to 1e-18, not of the
    rounded probability that is shown.
    """
    questions, owner = terms.questions, timeline.question
    doubled, kernels = np.full(len(owner), -1), np.zeros(len(owner), np.int64)
    for group in _consensus_groups(rules, questions):
        at_steps = np.flatnonzero(group.questions[owner] & (timeline.steps.stand > 0))
        if not len(at_steps):
            continue
        averages, finer = _averages(rules, forecasts, terms, timeline, (group, at_steps))
        outcome, kernel, width = questions.outcome[owner[at_steps]], group.kernel, group.width
        if kernel.of_chance is not None:
            fine = averages[0]
            if width:
                fine, finer = community.share(averages, outcome, squeezed=group.squeezed), community.FINER
            doubled[at_steps] = half_even_many(fine, finer)
            kernels[at_steps] = kernel.of_chance(fine, 2 * CHANCE * finer)
        elif kernel.of_numbers is not None:
            named = group.form == NAMED
            table = community.distributions(averages, named=named, squeezed=group.squeezed)
            start = np.arange(len(at_steps)) * width
            doubled[at_steps] = table[np.arange(len(at_steps)), outcome] * DOUBLED if named else -1
            kernels[at_steps] = kernel.of_numbers(_numbers(questions, table.reshape(-1), start, owner[at_steps]))
    return doubled, kernels


def _averages(
    rules: RuleSet, forecasts: Forecasts, terms: Terms, timeline: _Timeline, at: tuple[_ConsensusGroup, Int64Array]
) -> tuple[list[Int64Array], int]:
    """Return twice the average of each number, for some questions in some steps, and how fine its unit is.

    The second value is how many of the units make 1e-10 (for probabilities of the outcome) or one unit of the numbers.
    """
    (group, at_steps), questions = at, terms.questions
    rows = np.flatnonzero(terms.member & group.questions[terms.standing.question])
    standing, by_chance = timeline.standing.of(rows), group.kernel.of_chance is not None
    columns = [terms.doubled[rows] // 2]
    if group.width:
        columns = _columns(forecasts, standing, group.width, questions if by_chance else None)
    ordered = timeline.changes if len(rows) == len(timeline.standing.row) else None
    average, finer = community.average(rules, named=group.form == NAMED, fine=by_chance, ordered=ordered)
    aged = Aged(standing.start, standing.end, standing.question, timeline.age[rows])
    return community.average_columns(average, aged, timeline.steps, columns, at_steps), finer


def _leave_one_out(rules: RuleSet, terms: Terms, timeline: _Timeline) -> LeaveOneOut:
    """Return the reference of each member: the median of the other members."""
    rows = np.flatnonzero(terms.member)
    standing = timeline.standing.of(rows)
    ordered = timeline.changes if len(rows) == len(timeline.standing.row) else None
    chance = terms.doubled[rows] // 2
    near = neighbours(standing.start, standing.end, standing.question, chance, ordered)
    near = near.at(latest(near.instant, timeline.steps))
    [logarithm] = {of_chance for _, name in _forms(rules) if (of_chance := KERNELS[name].of_chance) is not None}
    return leave_one_out(timeline.steps.stand, timeline.steps.lasts, timeline.question, near, logarithm)


def _columns(forecasts: Forecasts, standing: Intervals, width: int, questions: Questions | None) -> list[Int64Array]:
    """Return each number of the forecasts; where a kernel scores probabilities, in 1e-10 and limited as scored."""
    start, unit = forecasts.start[standing.row], CHANCE // PROBABILITY
    columns = (forecasts.chances[start + place] for place in range(width))
    if questions is None:
        return list(columns)
    return [questions.as_scored(column * unit, standing.question) for column in columns]


def _numbers(questions: Questions, flat: Int64Array, start: Int64Array, question: Int64Array) -> Numbers:
    return Numbers(
        flat=flat,
        start=start,
        width=questions.width[question],
        outcome=questions.outcome[question],
        question=question,
        spans=[answer.question.range for answer in questions.answers],
        values=[answer.value for answer in questions.answers],
    )


def _forms(rules: RuleSet) -> list[tuple[int, str]]:
    """Return the forms of forecast that a rule set scores, each with its kernel."""
    names = ((NAMED, rules.kernel), (CDF, rules.cdf_kernel), (QUANTILES, rules.quantile_kernel))
    return [(form, name) for form, name in names if name != "none"]
