"""The questions of a contest that count, with everything that scoring them needs to know."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np

from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, int64_array
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.facts.from_log import status_of, width
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.projections.scores.sampling import SAMPLINGS, Ruler, ruler
from forecast_ledger.projections.scores.score_policies import (
    Answer,
    added_chance,
    greatest_chance,
    kernel_of,
    kernel_unit,
    least_chance,
    per_point,
    uniform_term,
)

NAMED, CDF, QUANTILES = range(3)  # the forms of a distribution


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions that contests score: added and resolved, not annulled, when the boards were last open; shape (q,).

    contest: which, of those scored together; they lie one after another. as_of: log position up to which it counts what
    was said. code: the question. opens, until, spot: µs; `until` is when scored time ends. length, reached: of the
    period and of scored time, in the rule set's units of time; whole, hidden: of which of the two a coverage is a
    share, and of the hidden part of that. width: numbers of a forecast.
    added, least, greatest: 1e-10, to a logarithm. weight: 1e-6. hidden_weight: 1e-6, -1 for plain coverage.
    uniform: the uniform distribution's kernel. per_point: how much of a kernel's unit one point is; unit: of that
    kernel, in 1.
    """

    contest: Int64Array
    as_of: Int64Array
    code: Int64Array
    opens: Int64Array
    until: Int64Array
    spot: Int64Array
    length: Int64Array
    reached: Int64Array
    whole: Int64Array
    hidden: Int64Array
    form: Int64Array
    outcome: Int64Array
    bins: Int64Array
    width: Int64Array
    added: Int64Array
    least: Int64Array
    greatest: Int64Array
    weight: Int64Array
    hidden_weight: Int64Array
    uniform: Int64Array
    unit: Int64Array
    answers: list[Answer]
    per_point: list[Fraction]

    def of(self, part: slice) -> Self:
        """Some of them."""
        return type(self)(*(getattr(self, each.name)[part] for each in fields(self)))

    def counted(self, chance: Int64Array, question: Int64Array) -> Int64Array:
        """What probabilities of the outcome count as to a logarithm, 1e-10; question: of each, shape (n,)."""
        least = np.maximum(chance + self.added[question], self.least[question])
        within: Int64Array = np.minimum(least, self.greatest[question])
        return within


def scored_questions(facts: Facts, *contests: Contest) -> Questions:
    """The questions that count, contest by contest and in order of code, as of each contest's last open log position.

    contests: of one rule set. Where one trades, questions need no kernel; then they have no scores.
    """
    rules = contests[0].opened.rules
    asked = [
        (number, contest.as_of(facts), contest.entries[code])
        for number, contest in enumerate(contests)
        for code in sorted(contest.entries)
        if kernel_of(rules, facts.questions[code]) != "none"
    ]
    every = [entry for *_, entry in asked]
    number, as_of = int64_array([number for number, *_ in asked]), int64_array([last for _, last, _ in asked])
    now = status_of(facts, int64_array([entry.question for entry in every]), as_of)
    resolved: Int64Array = np.flatnonzero(now.outcome >= 0)
    entries, now = [every[place] for place in resolved.tolist()], now.of(resolved)
    opened = [facts.questions[entry.question] for entry in entries]
    answers = [Answer(*each) for each in zip(opened, now.outcome.tolist(), now.values, strict=True)]
    limits = [
        [_limit(rules, each, limit) for each in answers] for limit in (added_chance, least_chance, greatest_chance)
    ]
    opens, closes = now.opens_at, now.closes_at
    until = np.minimum(now.closed_at, now.known_at)
    reveals = int64_array([each.opens_at if each.reveals_at is None else each.reveals_at for each in opened])
    last = [each.closes_at if each.reveals_at is None else each.reveals_at for each in opened]
    spot = int64_array(
        [at if entry.spot_at is None else entry.spot_at for entry, at in zip(entries, last, strict=True)]
    )
    hidden_weight = int64_array(
        [-1 if entry.hidden_coverage_weight is None else entry.hidden_coverage_weight for entry in entries]
    )
    periods = _periods(rules, ruler(opens, closes, spot, rules), ruler(opens, until, spot, rules), reveals)
    return Questions(
        contest=number[resolved],
        as_of=as_of[resolved],
        code=int64_array([entry.question for entry in entries]),
        opens=opens,
        until=until,
        spot=spot,
        length=periods.length,
        reached=periods.reached,
        whole=periods.whole,
        hidden=periods.hidden,
        form=int64_array([_form(each) for each in answers]),
        outcome=now.outcome,
        bins=now.bins,
        width=int64_array([width(each) for each in opened]),
        added=int64_array(limits[0]),
        least=int64_array(limits[1]),
        greatest=int64_array(limits[2]),
        weight=int64_array([entry.weight for entry in entries]),
        hidden_weight=np.where(periods.split, hidden_weight, -1),
        uniform=int64_array([uniform_term(rules, each) if rules.reference == "uniform" else 0 for each in answers]),
        unit=int64_array([kernel_unit(rules, each.question) for each in answers]),
        answers=answers,
        per_point=[per_point(rules, each.question) for each in answers],
    )


class _Periods(NamedTuple):
    """Columns of `Questions`, and whether there are both a hidden part and another, so that its weight counts."""

    length: Int64Array
    reached: Int64Array
    whole: Int64Array
    hidden: Int64Array
    split: BoolArray


def _periods(rules: RuleSet, scheduled: Ruler, scored: Ruler, reveals: Int64Array) -> _Periods:
    """How many units of time there are. A scheduled period by the clock may be hidden to its end."""
    units, every = SAMPLINGS[rules.sampling].units, np.arange(len(reveals))
    length = units(scheduled, scheduled.until, every)
    reached = np.where(scored.until > scored.opens, units(scored, scored.until, every), 0)
    whole = reached if rules.coverage_period == "actual" else length
    hidden = np.minimum(units(scheduled, reveals, every), whole)
    to_the_end = rules.sampling == "time" and rules.coverage_period == "scheduled"
    return _Periods(length, reached, whole, hidden, (hidden > 0) & ((hidden < whole) | to_the_end))


def members(facts: Facts, contest: Contest) -> BoolArray:
    """Who counts among the peers and in the consensus, by participant code."""
    codes = facts.participant_codes.codes
    member = np.ones(len(codes), bool)
    member[[codes[who] for who in outsiders(contest) if who in codes]] = False
    return member


def who_count(facts: Facts, contests: Sequence[Contest], contest: Int64Array, participant: Int64Array) -> BoolArray:
    """Whether each of these, by code, counts among the members of each of these of the contests, by number; (n,)."""
    codes = facts.participant_codes.codes
    outside = [
        number * len(codes) + codes[who]
        for number in np.unique(contest).tolist()
        for who in outsiders(contests[number])
        if who in codes
    ]
    if not outside:
        return np.ones(len(contest), bool)
    counts: BoolArray = ~np.isin(contest * len(codes) + participant, outside)
    return counts


def outsiders(contest: Contest) -> set[str]:
    """Who does not count among the peers and in the consensus."""
    rules = contest.opened.rules
    bots = {who for who, enrolled in contest.enrolments.items() if enrolled.bot and rules.bots == "scored_only"}
    return bots | {who for who, level in contest.levels.items() if level in rules.scored_only_levels}


def measure(contest: Contest, questions: Questions) -> Ruler:
    """What turns instants into the rule set's units of time."""
    return ruler(questions.opens, questions.until, questions.spot, contest.opened.rules)


def _form(answer: Answer) -> int:
    span = answer.question.range
    if span is None:
        return NAMED
    return QUANTILES if span.levels else CDF


def _limit(rules: RuleSet, answer: Answer, limit: Callable[[RuleSet, int, int], int]) -> int:
    """A limit is for kernels of a chance, the logarithms; other kernels take a forecast as it is."""
    span = answer.question.range
    bins = 0 if span is None else span.bins
    by_chance = KERNELS[kernel_of(rules, answer.question)].of_chance is not None
    return limit(rules, answer.outcome, bins) if by_chance else 0
