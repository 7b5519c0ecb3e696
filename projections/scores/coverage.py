"""Exact scores and coverages: the sums over units of time, divided by the divisors of their questions."""

from collections.abc import Iterator
from fractions import Fraction
from math import lcm
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import WEIGHT
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.core.column_values import POINTS
from forecast_ledger.projections.core.estimates import multiply_and_round
from forecast_ledger.projections.core.sorting import distinct
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.references.kinds import fine_bits
from forecast_ledger.projections.scores.scored_questions import Questions
from forecast_ledger.projections.scores.time_weighted import Scores

QUESTION_KINDS = ("binary", "multiple_choice", "numeric")  # of which means are taken; every range is numeric


class QuestionGroup(NamedTuple):
    """The numbers that scores and coverages are divided by, which all questions of one group share.

    period, reached: units of time of the period and of scored time. whole, hidden: units of the time that a coverage
    is a share of, and of its hidden part. weight, hidden_weight: 1e-6; hidden_weight is -1 for plain coverage.
    per_point: index into the distinct values of units per point. kind: index into QUESTION_KINDS.
    """

    period: int
    reached: int
    whole: int
    hidden: int
    weight: int
    hidden_weight: int
    per_point: int
    kind: int

    @property
    def rest(self) -> int:
        """The units after the hidden part; 1 if there are none (nobody can cover them)."""
        return max(self.whole - self.hidden, 1)

    @property
    def common(self) -> int:
        """A common denominator of the coverages of these questions."""
        return max(self.whole, 1) if self.hidden_weight < 0 else lcm(self.hidden, self.rest)

    @property
    def rates(self) -> tuple[int, int]:
        """The numerators, over common x WEIGHT, of one covered unit in the hidden period and of one after it."""
        if self.hidden_weight < 0:
            return WEIGHT, WEIGHT
        rest = (WEIGHT - self.hidden_weight) * (self.common // self.rest)
        return self.hidden_weight * (self.common // self.hidden), rest

    def coverage(self, covered: int, in_hidden: int, common: int) -> int:
        """Return the numerator, over common x WEIGHT, of a coverage or of the sum of several questions' coverages."""
        hidden, rest = self.rates
        return (in_hidden * hidden + (covered - in_hidden) * rest) * (common // self.common)

    def share(self, covered: int, in_hidden: int) -> Fraction:
        """Return the coverage of one question."""
        return Fraction(self.coverage(covered, in_hidden, self.common), self.common * WEIGHT)

    @property
    def attainable(self) -> Fraction:
        """The coverage of a forecast that stands from the opening until scored time ends."""
        return self.share(self.reached, min(self.hidden, self.reached))


class QuestionGroups(NamedTuple):
    """Questions in groups.

    groups: the distinct groups. group_of: the index of the group of each question, shape (q,). per_point: the distinct
    numbers of kernel units in one point.
    """

    groups: list[QuestionGroup]
    group_of: Int64Array
    per_point: list[Fraction]


def mean_kind(question: QuestionOpened) -> str:
    """Return the kind, of QUESTION_KINDS, in whose mean the scores on a question count."""
    return question.kind if question.range is None else "numeric"


def group_questions(questions: Questions) -> QuestionGroups:
    """Group the questions that have the same divisors, weights and kind."""
    amounts = sorted(set(questions.per_point))
    place = {amount: number for number, amount in enumerate(amounts)}
    columns = [
        questions.length,
        questions.reached,
        questions.whole,
        questions.hidden,
        questions.weight,
        questions.hidden_weight,
        int64_array([place[amount] for amount in questions.per_point]),
        int64_array([QUESTION_KINDS.index(mean_kind(answer.question)) for answer in questions.answers]),
    ]
    groups, group_of = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return QuestionGroups([QuestionGroup(*common) for common in groups.tolist()], group_of.reshape(-1), amounts)


class Quotients(NamedTuple):
    """Exact quotients: numerators / divisors[place]; shape (n,)."""

    numerators: WideInt
    divisors: list[Fraction]
    place: Int64Array

    def published(self) -> Int64Array | list[int]:
        """Return the quotients in 1e-9, rounded half-even once."""
        return multiply_and_round(self.numerators, [Fraction(POINTS, divisor) for divisor in self.divisors], self.place)

    def exact(self) -> list[Fraction]:
        """Return the quotients as fractions."""
        return [Fraction(*each) for each in self.terms()]

    def terms(self, factor: int = 1) -> Iterator[tuple[int, int]]:
        """Yield the quotients times a factor, as numerator and denominator."""
        rates = [(factor * divisor.denominator, divisor.numerator) for divisor in self.divisors]
        for number, which in zip(self.numerators.integers(), self.place.tolist(), strict=True):
            yield number * rates[which][0], rates[which][1]


def points(rules: RuleSet, questions: Questions, rows: Scores) -> Quotients:
    """Return the exact scores, in points."""
    groups, group_of, per_point = group_questions(questions)
    over = rows.covered if rules.period == "covered" else np.zeros_like(rows.covered)
    overs, place = distinct(over)
    keys, divisor_of = distinct(group_of[rows.question] * len(overs) + place)
    divisors = []
    for number, own in (divmod(key, len(overs)) for key in keys.tolist()):
        group = groups[number]
        divisors.append(divisor(rules, per_point[group.per_point], group, int(overs[own]), fine_bits(rules)))
    return Quotients(rows.numerator, divisors, divisor_of)


def coverages(questions: Questions, rows: Scores) -> Quotients:
    """Return the coverage of each score: the covered share of the scheduled period or of scored time, by the rule set.

    With a hidden weight w it is w x (covered share of the hidden part) + (1 - w) x (covered share of the rest).

    Source: Metaculus, Scores FAQ, "What are the Hidden Period and Hidden Coverage Weights?".
    """
    groups, group_of, _ = group_questions(questions)
    return covered_shares(groups, group_of[rows.question], rows.covered, rows.covered_hidden)


def covered_shares(
    groups: list[QuestionGroup], group_of: Int64Array, covered: Int64Array, in_hidden: Int64Array
) -> Quotients:
    """Return the `share` of each row, shape (n,). group_of: the index of its group in `groups`."""
    hidden, rest = (WideInt.from_integers([group.rates[place] for group in groups]).take(group_of) for place in (0, 1))
    numerators = hidden.times(in_hidden) + rest.times(covered - in_hidden)
    return Quotients(numerators.carried(), [Fraction(group.common * WEIGHT) for group in groups], group_of)


def attainable_shares(questions: Questions) -> list[Fraction]:
    """Return, for each question, the coverage of a forecast that stands from the opening until scored time ends."""
    groups, group_of, _ = group_questions(questions)
    shares = [group.attainable for group in groups]
    return [shares[place] for place in group_of.tolist()]


def divisor(rules: RuleSet, per_point: Fraction, group: QuestionGroup, covered: int, fine: int) -> Fraction:
    """Return the divisor of a score's numerator: kernel units per point x units of time x 2^fine."""
    return per_point * (divided_by(rules, group, covered) << fine)


def divided_by(rules: RuleSet, group: QuestionGroup, covered: int) -> int:
    """Return the units of time that a score is divided by."""
    return {"scheduled": group.period, "actual": group.reached, "covered": covered}[rules.period]
