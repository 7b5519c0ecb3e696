"""The questions of contests that count, with all that scoring them needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.model.answers import number_of_answer
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.ledger.model.rules import RuleSet, kernels_of
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, compact, int64_array, spread
from forecast_ledger.projections.core.powers import QUANTUM
from forecast_ledger.projections.facts.columns import (
    CHANCE,
    ChangedOutcomes,
    Contest,
    Entry,
    Facts,
    Status,
    named_tuples,
    width,
)
from forecast_ledger.projections.facts.from_log import status_of
from forecast_ledger.projections.scores.kernels import KERNELS, Uniform
from forecast_ledger.projections.scores.question_groups import QUESTION_KINDS, QuestionGroups, mean_kind
from forecast_ledger.projections.scores.sampling import SAMPLINGS, Ruler, ruler

# --- Score policies: how a rule set selects, limits and scales its kernels.
#
# They say which kernel scores a question, to which limits probabilities are clipped, what the uniform distribution
# scores, and how many points a difference of 1 is. To add a scale, add its function and its row in SCALES.


_PPM = CHANCE // 10**6
_MILLION = 10**6


class Answer(NamedTuple):
    """A question and its answer.

    outcome: its index, -1 with payouts. value: the exact text of a numeric answer. payouts: what a share of each
    outcome is paid, if no single outcome happened.
    """

    question: QuestionOpened
    outcome: int
    value: str
    payouts: tuple[Fraction, ...] = ()

    def among(self, given: Sequence[int], catch_all: int) -> "Answer":
        """Return the question and its answer among some outcomes, by index: any other counts as the catch-all.

        >>> names = ("a", "b", "other", "c")
        >>> question = QuestionOpened(
        ...     at=0, question="q", kind="multiple_choice", outcomes=names, opens_at=0, closes_at=1
        ... )
        >>> among = Answer(question, 3, "").among([0, 2], 2)
        >>> among.question.outcomes, among.outcome
        (('a', 'other'), 1)
        """
        given = [*given]
        fields = {name: getattr(self.question, name) for name in self.question.__struct_fields__}
        question = QuestionOpened(**(fields | {"outcomes": tuple(self.question.outcomes[index] for index in given)}))
        catch_all_index = given.index(catch_all)
        if not self.payouts:
            return Answer(question, given.index(self.outcome) if self.outcome in given else catch_all_index, self.value)
        paid = [self.payouts[index] for index in given]
        paid[catch_all_index] += sum(self.payouts, Fraction(0)) - sum(paid, Fraction(0))
        return Answer(question, self.outcome, self.value, tuple(paid))


def kernel_of(rules: RuleSet, question: QuestionOpened) -> str:
    """Return the name of the kernel that scores a question.

    >>> question = QuestionOpened(at=0, question="q", kind="binary", outcomes=("yes", "no"), opens_at=0, closes_at=1)
    >>> kernel_of(RuleSet(name="x", kernel="ln", cdf_kernel="crps"), question)
    'ln'
    """
    if question.range is None:
        return unordered_kernel(rules) if question.ordered is False else rules.kernel
    return rules.quantile_kernel if question.range.measures else rules.cdf_kernel


def unordered_kernel(rules: RuleSet) -> str:
    """Return the name of the kernel that scores named outcomes of a question that says that they have no order.

    The Brier score replaces the Brier score of ordered outcomes. Both run from 0 to 2, and they are equal
    for two outcomes.

    Source: Jose, Nau and Winkler (2009), doi:10.1287/mnsc.1080.0955, on sensitivity to distance.

    >>> unordered_kernel(RuleSet(name="x", kernel="ordered_brier")), unordered_kernel(RuleSet(name="x", kernel="brier"))
    ('brier_sum', 'brier')
    """
    return "brier_sum" if rules.kernel == "ordered_brier" else rules.kernel


def lower_is_better(rules: RuleSet) -> bool:
    """Return whether lower scores are better; all kernels of a rule set agree on that.

    >>> lower_is_better(RuleSet(name="x", kernel="brier"))
    True
    """
    return any(KERNELS[name].lower_is_better for name in kernels_of(rules))


def least_chance(rules: RuleSet, outcome: int, bins: int) -> int:
    """Return the least probability of the outcome, 1e-10: a rule set counts a smaller one as this.

    bins: the bins of a numeric question, else 0. Outcomes 0 and bins + 1 of a numeric question are its open ends.

    >>> least_chance(RuleSet(name="x"), 0, 0), least_chance(RuleSet(name="x"), 1, 200)
    (10000000, 500000)
    """
    if bins and 1 <= outcome <= bins:
        return max(half_even(rules.least_density_ppm * _PPM, bins), int(rules.least_density_ppm > 0))
    return rules.least_probability_ppm * _PPM


def added_chance(rules: RuleSet, outcome: int, bins: int) -> int:
    """Return what is added to every probability of the outcome, 1e-10.

    It is the least probability if the rule set adds the least density to every bin, else 0.

    Source: Metaculus, Scores FAQ, "What is the log score for continuous questions?".

    >>> added = RuleSet(name="x", density_floor="added")
    >>> added_chance(added, 1, 200), added_chance(added, 0, 200), added_chance(RuleSet(name="x"), 1, 200)
    (500000, 0, 0)
    """
    inside = bins and 1 <= outcome <= bins
    return least_chance(rules, outcome, bins) if inside and rules.density_floor == "added" else 0


def greatest_chance(rules: RuleSet, outcome: int, bins: int) -> int:
    """Return the greatest probability of the outcome, 1e-10: a greater one counts as this. For a bin it may exceed 1.

    Source: Metaculus, Scores FAQ, "What is the Baseline score?": up to 99.9%, and densities up to about 35.

    >>> greatest_chance(RuleSet(name="x", greatest_density_ppm=35_000_000), 1, 200)
    1750000000
    """
    if bins and 1 <= outcome <= bins:
        return half_even(rules.greatest_density_ppm * _PPM, bins)
    return rules.greatest_probability_ppm * _PPM


_LIMITS = added_chance, least_chance, greatest_chance


def uniform_term(rules: RuleSet, answer: Answer) -> int:
    """Return the score of the uniform distribution, in the kernel's unit.

    It gives named outcomes equal probabilities. For a numeric question it gives every open end open_end_ppm and shares
    what remains equally among the bins.

    Raises:  ValueError if there is no uniform distribution for the kernel to score: quantiles have none.
    Source:  Metaculus, Scores FAQ, "What is the Baseline score?".

    >>> question = QuestionOpened(at=0, question="q", kind="binary", outcomes=("yes", "no"), opens_at=0, closes_at=1)
    >>> uniform_term(RuleSet(name="x", kernel="brier"), Answer(question, 0, ""))
    250000000000
    """
    span, outcomes = answer.question.range, len(answer.question.outcomes)
    name = kernel_of(rules, answer.question)
    if span is None:
        return _uniform(name, Uniform(outcomes, answer.outcome, (1, outcomes), payouts=answer.payouts))
    chance = rules.open_end_ppm, _MILLION
    if 1 <= answer.outcome <= span.bins:
        ends = span.open_lower + span.open_upper
        chance = _MILLION - rules.open_end_ppm * ends, _MILLION * span.bins
    return _uniform(name, Uniform(span.bins, answer.outcome, chance, span, answer.value))


def uniform_score(rules: RuleSet, answer: Answer) -> int | None:
    """Return `uniform_term`; None if the kernel has no score for the uniform distribution.

    >>> question = QuestionOpened(at=0, question="q", kind="binary", outcomes=("yes", "no"), opens_at=0, closes_at=1)
    >>> uniform_score(RuleSet(name="x", kernel="brier"), Answer(question, 0, ""))
    250000000000
    """
    scored = KERNELS[kernel_of(rules, answer.question)].uniform
    return None if scored is None else uniform_term(rules, answer)


def _uniform(name: str, uniform: Uniform) -> int:
    scored = KERNELS[name].uniform
    if scored is None:
        raise ValueError(f"the kernel {name} cannot score a uniform distribution")
    return scored(uniform)


class Scale(NamedTuple):
    """The number of points that a score of 1 is. words: as `explain` prints them; empty for one point."""

    words: str
    points: Callable[[RuleSet, QuestionOpened], Fraction]
    source: str


def _plain(_: RuleSet, __: QuestionOpened) -> Fraction:
    return Fraction(1)


def _peer(_: RuleSet, question: QuestionOpened) -> Fraction:
    return Fraction(100 if question.range is None else 50)


def _peer_whole(_: RuleSet, __: QuestionOpened) -> Fraction:
    return Fraction(100)


def _baseline(rules: RuleSet, question: QuestionOpened) -> Fraction:
    """A certain forecast of the outcome, whose logarithmic score is 0, gets 100 points."""
    if question.range is not None:
        return Fraction(50)
    outcomes = len(question.outcomes)
    return Fraction(100 * QUANTUM, -_uniform(rules.kernel, Uniform(outcomes, 0, (1, outcomes))))


SCALES: dict[str, Scale] = {
    "plain": Scale("", _plain, "the kernel itself"),
    "peer": Scale(
        "times 100 (50 for numeric questions)",
        _peer,
        'Metaculus, Scores FAQ, "What is the Peer score?", halved for numeric questions as in its figures',
    ),
    "peer_whole": Scale(
        "times 100",
        _peer_whole,
        'Metaculus, Scores FAQ, "What is the Peer score?", the formula, which does not halve numeric questions',
    ),
    "baseline": Scale(
        "times 100 / log K for K outcomes in the base of the kernel (50 for numeric questions)",
        _baseline,
        'Metaculus, Scores FAQ, "What is the Baseline score?"',
    ),
}


def kernel_unit(rules: RuleSet, question: QuestionOpened) -> int:
    """Return how many units of the kernel that scores a question make 1."""
    if question.range is not None and question.range.measures and rules.transform != "none":
        return QUANTUM
    return KERNELS[kernel_of(rules, question)].unit.in_one(question.range)


def per_point(rules: RuleSet, question: QuestionOpened) -> Fraction:
    """Return how many units of the kernel one point is.

    >>> question = QuestionOpened(at=0, question="q", kind="binary", outcomes=("yes", "no"), opens_at=0, closes_at=1)
    >>> per_point(RuleSet(name="x", kernel="ln", scale="peer"), question)
    Fraction(10000000000, 1)
    """
    return Fraction(kernel_unit(rules, question), SCALES[rules.scale].points(rules, question))


NAMED, CDF, QUANTILES, UNORDERED = range(4)  # the forms of a forecast; UNORDERED: named, by `unordered_kernel`


@dataclass(frozen=True)
class Questions:
    """The questions that contests score; shape (q,).

    A question is scored if it was added to the contest and resolved, and not annulled, when the contest's boards were
    last open. One that is resolved to payouts is scored if the rule set says so.

    contest: index of the contest; the questions of a contest are adjacent. as_of: log position up to which forecasts
    count. code: of the question. opens, until, spot: µs; `until` is when scored time ends; spot and spot_weight have
    shape (q, most), as in `Ruler`. length, reached: units of
    time of the period and of scored time. whole, hidden: units of the time that a coverage is a share of (one of those
    two), and of its hidden part. form: NAMED, CDF, QUANTILES or UNORDERED. outcome: index, -1 with payouts. bins: 0
    for named outcomes. width: numbers in a forecast. catch_all: the index of the catch-all if the question's outcomes
    changed, else -1. added, least, greatest: 1e-10: what is added to a probability, and its
    limits, for kernels that score the probability of the outcome. weight: 1e-6. hidden_weight: 1e-6, -1 for plain
    coverage. uniform: score of the uniform distribution on the outcomes that the question
    was opened with, 0 without that reference. unit: units of the kernel in 1.
    per_point: units of the kernel in one point.
    """

    contest: Int64Array
    as_of: Int64Array
    code: Int64Array
    opens: Int64Array
    until: Int64Array
    spot: Int64Array
    spot_weight: Int64Array
    length: Int64Array
    reached: Int64Array
    whole: Int64Array
    hidden: Int64Array
    form: Int64Array
    outcome: Int64Array
    bins: Int64Array
    width: Int64Array
    catch_all: Int64Array
    added: Int64Array
    least: Int64Array
    greatest: Int64Array
    weight: Int64Array
    hidden_weight: Int64Array
    uniform: Int64Array
    unit: Int64Array
    answers: list[Answer]
    per_point: list[Fraction]

    @cached_property
    def groups(self) -> QuestionGroups:
        """The questions in groups that have the same divisors, weights and kind."""
        columns = [self.length, self.reached, self.whole, self.hidden, self.weight, self.hidden_weight]
        kinds = [QUESTION_KINDS.index(mean_kind(answer.question)) for answer in self.answers]
        return QuestionGroups.of(columns, kinds, self.per_point)

    def of(self, part: slice) -> Self:
        """Return some of the questions."""
        return type(self)(*(getattr(self, field.name)[part] for field in fields(self)))

    def take(self, index: Int64Array) -> Self:
        """Return the questions at these indices."""
        return type(self)(*(_taken(getattr(self, field.name), index) for field in fields(self)))

    def compact(self) -> Self:
        """Return the same questions in less memory, to keep them."""
        columns: list[Any] = [getattr(self, field.name) for field in fields(self)]
        columns = [compact(column) if isinstance(column, np.ndarray) else column for column in columns]
        return type(self)(*columns)

    def as_scored(self, chance: Int64Array, question: Int64Array) -> Int64Array:
        """Return probabilities of the outcome as they are scored, 1e-10. question: the question of each, shape (n,)."""
        added, least, greatest = (spread(each, question) for each in (self.added, self.least, self.greatest))
        within: Int64Array = np.minimum(np.maximum(chance + added, least), greatest)
        return within


def _taken(column: Any, index: Int64Array) -> Any:
    return column[index] if isinstance(column, np.ndarray) else [column[number] for number in index.tolist()]


def scored_questions(facts: Facts, *contests: Contest) -> Questions:
    """Return the questions that count, by contest and question code, as of the last log position with open boards.

    contests: of one rule set. Questions without a kernel, which trading contests may have, are left out.
    """
    rules = contests[0].opened.rules
    number, every = _with_kernel(facts, contests)
    as_of = int64_array([contest.as_of(facts) for contest in contests])[number]
    now = status_of(facts, int64_array([entry.question for entry in every]), as_of)
    resolved = _resolved(rules, now)
    entries, now = [every[index] for index in resolved.tolist()], now.of(resolved)
    codes = [entry.question for entry in entries]
    opened = facts.questions_as_of(codes, as_of[resolved])
    values = [_number(question, value) if value else "" for question, value in zip(opened, now.values, strict=True)]
    answers = [*named_tuples(Answer, opened, now.outcome.tolist(), values, now.payouts)]
    first_kinds, first = kinds, kind = _kinds(answers)
    changed = [facts.changed.get(code) for code in codes]
    if facts.changed:
        first_kinds, first = _kinds([_at_opening(*row) for row in zip(answers, changed, strict=True)])
    limits = [int64_array([_limit(rules, answer, each) for answer in kinds])[kind] for each in _LIMITS]
    uniform = [uniform_term(rules, answer) if rules.reference == "uniform" else 0 for answer in first_kinds]
    points = [per_point(rules, answer.question) for answer in first_kinds]
    opens, closes = now.opens_at, now.closes_at
    until = np.minimum(now.closed_at, now.known_at)
    reveals = int64_array([each.opens_at if each.reveals_at is None else each.reveals_at for each in opened])
    spot, spot_weight = _spots(entries, opened)
    scheduled, reached = (ruler(opens, ends, spot, rules, spot_weight) for ends in (closes, until))
    periods = _periods(rules, scheduled, reached, reveals)
    return Questions(
        contest=number[resolved],
        as_of=as_of[resolved],
        code=int64_array(codes),
        opens=opens,
        until=until,
        spot=spot,
        spot_weight=spot_weight,
        length=periods.length,
        reached=periods.reached,
        whole=periods.whole,
        hidden=periods.hidden,
        form=int64_array([_form(rules, answer) for answer in kinds])[kind],
        outcome=now.outcome,
        bins=now.bins,
        width=int64_array([width(answer.question) for answer in kinds])[kind],
        catch_all=int64_array([-1 if each is None else each.catch_all for each in changed]),
        added=limits[0],
        least=limits[1],
        greatest=limits[2],
        weight=int64_array([entry.weight for entry in entries]),
        hidden_weight=np.where(periods.split, _hidden_weights(entries), -1),
        uniform=int64_array(uniform)[first],
        unit=int64_array([kernel_unit(rules, answer.question) for answer in kinds])[kind],
        answers=answers,
        per_point=[points[number] for number in first.tolist()],
    )


def _with_kernel(facts: Facts, contests: Sequence[Contest]) -> tuple[Int64Array, list[Entry]]:
    """Return the entries whose questions have a kernel, by contest and code, and the index of the contest of each."""
    rules, questions = contests[0].opened.rules, facts.questions
    named = rules.kernel != "none"
    every = [
        (number, entry)
        for number, contest in enumerate(contests)
        for code, entry in sorted(contest.entries.items())
        if (named and questions[code].range is None) or kernel_of(rules, questions[code]) != "none"
    ]
    return int64_array([number for number, _ in every]), [entry for _, entry in every]


def _hidden_weights(entries: list[Entry]) -> Int64Array:
    weights = [entry.hidden_coverage_weight for entry in entries]
    return int64_array([-1 if weight is None else weight for weight in weights])


def _kinds(answers: list[Answer]) -> tuple[list[Answer], Int64Array]:
    """Return an answer of each kind, and the index of the kind of every answer, shape (n,).

    Those of one kind differ only in what no rule set looks at, such as the id, the title and the times of the question.
    """
    numbers: dict[tuple[object, ...], int] = {}
    kind = [
        numbers.setdefault((asked.ordered, asked.range, asked.outcomes, outcome, value, payouts), len(numbers))
        for asked, outcome, value, payouts in answers
    ]
    kinds = dict(zip(kind, answers, strict=True))
    return [kinds[number] for number in range(len(kinds))], int64_array(kind)


def _at_opening(answer: Answer, changed: ChangedOutcomes | None) -> Answer:
    """Return an answer among the outcomes that its question was opened with."""
    return answer if changed is None else answer.among(range(changed.first), changed.catch_all)


def _resolved(rules: RuleSet, now: Status) -> Int64Array:
    """Return the questions, by index, whose answers are scored."""
    answered = now.outcome >= 0
    if rules.payouts == "scored":
        answered |= np.array([bool(paid) for paid in now.payouts], bool)
    scored: Int64Array = np.flatnonzero(answered)
    return scored


def _spots(entries: list[Entry], opened: list[QuestionOpened]) -> tuple[Int64Array, Int64Array]:
    """Return the instants that count of each question, and their weights; shape (q, most).

    Where a question has fewer, its last instant is repeated with the weight 0.
    """
    one = [question.closes_at if question.reveals_at is None else question.reveals_at for question in opened]
    if not any(entry.spots for entry in entries):
        at = [each if entry.spot_at is None else entry.spot_at for entry, each in zip(entries, one, strict=True)]
        return int64_array(at).reshape(-1, 1), np.ones((len(at), 1), np.int64)
    spots = [
        entry.spots or ((at if entry.spot_at is None else entry.spot_at, 1),)
        for entry, at in zip(entries, one, strict=True)
    ]
    most = max(map(len, spots))
    filled = [row + ((row[-1][0], 0),) * (most - len(row)) for row in spots]
    both = int64_array([number for row in filled for pair in row for number in pair]).reshape(len(spots), most, 2)
    return both[:, :, 0], both[:, :, 1]


class _Periods(NamedTuple):
    """Columns of `Questions`. split: whether both a hidden part and another part exist, so that the weight applies."""

    length: Int64Array
    reached: Int64Array
    whole: Int64Array
    hidden: Int64Array
    split: BoolArray


def _periods(rules: RuleSet, scheduled: Ruler, scored: Ruler, reveals: Int64Array) -> _Periods:
    """Count units of time. With sampling `time`, a scheduled period may be hidden to its end."""
    units, every = SAMPLINGS[rules.sampling].units, np.arange(len(reveals))
    length = units(scheduled, scheduled.until, every)
    reached = np.where(scored.until > scored.opens, units(scored, scored.until, every), 0)
    whole = reached if rules.coverage_period == "actual" else length
    hidden = np.minimum(units(scheduled, reveals, every), whole)
    to_the_end = rules.sampling == "time" and rules.coverage_period == "scheduled"
    return _Periods(length, reached, whole, hidden, (hidden > 0) & ((hidden < whole) | to_the_end))


def members(facts: Facts, contest: Contest) -> BoolArray:
    """Return whether each participant, by code, counts among the peers and in the consensus."""
    codes = facts.participant_codes.codes
    member = np.ones(len(codes), bool)
    member[[codes[who] for who in non_members(contest) if who in codes]] = False
    return member


def are_members(facts: Facts, contests: Sequence[Contest], contest: Int64Array, participant: Int64Array) -> BoolArray:
    """Return whether each participant, by code, is a member of the contest in the same row, by number; shape (n,).

    Reference forecasters, whose codes follow those of participants, are none.
    """
    codes = facts.participant_codes.codes
    known: BoolArray = participant < len(codes)
    outside = [
        number * len(codes) + codes[who]
        for number, each in enumerate(contests)
        if each.levels or each.enrolments
        for who in non_members(each)
        if who in codes
    ]
    return known & ~np.isin(contest * len(codes) + participant, outside) if outside else known


def non_members(contest: Contest) -> set[str]:
    """Return the participants who do not count among the peers or in the consensus."""
    rules = contest.opened.rules
    bots = {who for who, enrolled in contest.enrolments.items() if enrolled.bot and rules.bots == "scored_only"}
    people = contest.levels.keys() | contest.enrolments.keys() if rules.scored_only_levels else ()
    return bots | {who for who in people if contest.level_of(who) in rules.scored_only_levels}


def question_ruler(contest: Contest, questions: Questions) -> Ruler:
    """Return the ruler that turns instants into the units of time of the rule set."""
    return ruler(questions.opens, questions.until, questions.spot, contest.opened.rules, questions.spot_weight)


def _number(question: QuestionOpened, value: str) -> str:
    return number_of_answer(question.kind, question.range, value)


def _form(rules: RuleSet, answer: Answer) -> int:
    span = answer.question.range
    if span is None:
        return NAMED if kernel_of(rules, answer.question) == rules.kernel else UNORDERED
    return QUANTILES if span.measures else CDF


def _limit(rules: RuleSet, answer: Answer, limit: Callable[[RuleSet, int, int], int]) -> int:
    """Return a limit of the probability; 0 if the kernel reads whole forecasts, which are never limited."""
    span = answer.question.range
    bins = 0 if span is None else span.bins
    by_chance = KERNELS[kernel_of(rules, answer.question)].of_chance is not None
    return limit(rules, answer.outcome, bins) if by_chance else 0
