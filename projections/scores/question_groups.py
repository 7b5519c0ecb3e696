"""Questions of contests in groups that share what their scores and coverages are divided by."""

from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from typing import NamedTuple, Self

import numpy as np

from forecast_ledger.ledger.core.values import WEIGHT
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.projections.core.arrays import Int64Array, distinct, int64_array

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
    def after_hidden(self) -> int:
        """The units after the hidden part; 1 if there are none (nobody can cover them)."""
        return max(self.whole - self.hidden, 1)

    @property
    def common(self) -> int:
        """A common denominator of the coverages of these questions."""
        return max(self.whole, 1) if self.hidden_weight < 0 else lcm(self.hidden, self.after_hidden)

    @property
    def rates(self) -> tuple[int, int]:
        """The numerators, over common x WEIGHT, of one covered unit in the hidden period and of one after it."""
        if self.hidden_weight < 0:
            return WEIGHT, WEIGHT
        after_hidden = (WEIGHT - self.hidden_weight) * (self.common // self.after_hidden)
        return self.hidden_weight * (self.common // self.hidden), after_hidden

    def coverage(self, covered: int, in_hidden: int, common: int) -> int:
        """Return the numerator, over common x WEIGHT, of a coverage or of the sum of several questions' coverages."""
        hidden, after_hidden = self.rates
        return (in_hidden * hidden + (covered - in_hidden) * after_hidden) * (common // self.common)

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

    @classmethod
    def of(cls, columns: Sequence[Int64Array], kinds: Sequence[int], per_point: Sequence[Fraction]) -> Self:
        """Group the questions that have the same numbers.

        columns: those of a group up to hidden_weight, shape (q,) each. kinds, per_point: of each question.
        """
        ratios = [amount.as_integer_ratio() for amount in per_point]  # their hashes take less time
        amounts = sorted(Fraction(*ratio) for ratio in {*ratios})
        amount_index = {amount.as_integer_ratio(): number for number, amount in enumerate(amounts)}
        columns = [*columns, int64_array([amount_index[ratio] for ratio in ratios]), int64_array(kinds)]
        group_of = np.zeros(len(ratios), np.int64)
        for column in columns:  # groups by the first columns rise, and each is divided by the next one
            if (column[1:] != column[:-1]).any():
                values, value_of = distinct(column)
                _, group_of = distinct(group_of * len(values) + value_of)
        some = np.empty(int(group_of.max(initial=-1)) + 1, np.int64)
        some[group_of] = np.arange(len(group_of))
        rows = zip(*(column[some].tolist() for column in columns), strict=True)
        return cls([QuestionGroup(*row) for row in rows], group_of, amounts)


def mean_kind(question: QuestionOpened) -> str:
    """Return the kind, of QUESTION_KINDS, in whose mean the scores on a question count."""
    return question.kind if question.range is None else "numeric"
