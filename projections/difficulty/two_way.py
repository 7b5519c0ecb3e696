"""Effects of participants and questions on scores: score = effect of the participant + effect of the question + rest.

The effects are those with the least sum of squares of the rest, each weighted by its question. Questions that the same
participants have a score on share an equation, and so do participants with scores on the same questions.

Source: two-way analysis of variance with unequal numbers, Yates (1934), doi:10.1080/01621459.1934.10502686; as
ForecastBench adjusts Brier scores for difficulty, Karger et al. (2025), arXiv:2409.19839.
"""

from fractions import Fraction
from itertools import pairwise
from math import gcd, isqrt, lcm
from typing import NamedTuple

import numpy as np

from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.core.sorting import distinct, run_starts
from forecast_ledger.projections.difficulty.two_sided_systems import TwoSidedSystem, solve


class Cells(NamedTuple):
    """Scores, at most one for each participant and question; shape (n,).

    participant, question: codes. score: integers, of any size. weight: of the question, > 0.
    """

    participant: Int64Array
    question: Int64Array
    score: list[int]
    weight: Int64Array

    def take(self, index: Int64Array) -> "Cells":
        """Return the cells at these indices."""
        score = [self.score[i] for i in index.tolist()]
        return Cells(self.participant[index], self.question[index], score, self.weight[index])


class Part(NamedTuple):
    """Effects of the questions of one part of a design, whose weighted mean is 0.

    cells: the scores that they are fitted to. effects: numerators over `denominator`, by question; what the question
    adds to a score, in the unit of the scores.
    """

    cells: Cells
    effects: dict[int, int]
    denominator: int

    @property
    def sensitivity(self) -> int:
        """The most by which an effect can move if no score moves by more than 1.

        The fit is a projection: the weighted sum of squares by which fitted scores move is at most that of the scores,
        so that none moves by more than the root of the sum of weights over the least one. Effects of two questions of
        one participant move apart by at most twice that, and a chain of such pairs connects every two questions.
        """
        weights = self.cells.weight.tolist()
        return 2 * len(self.effects) * (isqrt(sum(weights) // min(weights)) + 1)

    def adjusted(self, cells: Cells) -> Fraction:
        """Return the weighted mean of scores less the effects of their questions; for a participant in the part.

        If the part is fitted to them, this is the participant's own effect plus the mean effect of all questions.
        """
        total = sum(
            weight * (score * self.denominator - self.effects[question])
            for question, score, weight in zip(cells.question.tolist(), cells.score, cells.weight.tolist(), strict=True)
        )
        return Fraction(total, self.denominator * int(cells.weight.sum()))


def fit(cells: Cells) -> list[Part]:
    """Return the effects of questions, apart for each part of the design: scores compare only within a part.

    Two scores are in one part if they have the participant or the question in common, and if a third score is in one
    part with both. Raises Refused (out_of_range): the fit would take too long.

    >>> codes = [np.array(each) for each in ([0, 0, 1], [0, 1, 1], [1, 1, 1])]
    >>> [part] = fit(Cells(codes[0], codes[1], [10, 30, 50], codes[2]))  # question 1 adds 20 more than question 0
    >>> {question: Fraction(effect, part.denominator) for question, effect in part.effects.items()}
    {0: Fraction(-10, 1), 1: Fraction(10, 1)}
    """
    place = _part_of(cells)
    return [_fit_part(cells.take(np.flatnonzero(place == number))) for number in np.unique(place).tolist()]


def _part_of(cells: Cells) -> Int64Array:
    """Return the part of each cell: the least participant code that a chain of scores connects it with."""
    participants, who = distinct(cells.participant)
    questions, which = distinct(cells.question)
    part = np.arange(len(participants))
    while True:
        of_question = np.full(len(questions), len(participants))
        np.minimum.at(of_question, which, part[who])
        least = part.copy()
        np.minimum.at(least, who, of_question[which])
        least = least[least]
        if (least == part).all():
            return part[who]
        part = least


class _Groups(NamedTuple):
    """Owners in groups whose members have the same items. group: of each cell. sizes: members of each group."""

    group: Int64Array
    sizes: list[int]


def _groups(owner: Int64Array, item: Int64Array) -> _Groups:
    """Group owners by their items; owner, item: shape (n,)."""
    order = np.lexsort((item, owner))
    starts = [*run_starts(owner[order]).tolist(), len(owner)]
    codes: dict[bytes, int] = {}
    sizes: list[int] = []
    group = np.empty(len(owner), np.int64)
    for first, end in pairwise(starts):
        rows = order[first:end]
        code = codes.setdefault(item[rows].tobytes(), len(sizes))
        if code == len(sizes):
            sizes.append(0)
        sizes[code] += 1
        group[rows] = code
    return _Groups(group, sizes)


def _fit_part(cells: Cells) -> Part:
    """Return the effects of a part that is connected."""
    weight = cells.weight // gcd(*cells.weight.tolist())
    rows, columns = _groups(cells.participant, cells.question), _groups(cells.question, cells.participant)
    sums = _Sums.of(cells.question, columns.group, cells.score, weight)
    by_row = [0] * len(rows.sizes)
    for row, score, times in zip(rows.group.tolist(), cells.score, weight.tolist(), strict=True):
        by_row[row] += score * times
    present = np.zeros((len(rows.sizes), len(columns.sizes)), np.int64)
    present[rows.group, columns.group] = 1
    scale = lcm(*rows.sizes, *sums.group_weight)
    solution = solve(
        TwoSidedSystem(
            present,
            int64_array(rows.sizes),
            int64_array(sums.group_weight),
            [total * (scale // size) for total, size in zip(by_row, rows.sizes, strict=True)],
            [total * (scale // size) for total, size in zip(sums.group_total, sums.group_weight, strict=True)],
        )
    )
    return Part(cells, *_centred(sums, solution.y, solution.denominator * scale))


class _Sums(NamedTuple):
    """Sums over questions and over groups of them.

    group, total, counts: of each question its group, the sum of its scores, and their number. group_weight,
    group_total: Σ weight and Σ weight x total over the questions of each group.
    """

    group: dict[int, int]
    total: dict[int, int]
    counts: dict[int, int]
    group_weight: list[int]
    group_total: list[int]

    @classmethod
    def of(cls, question: Int64Array, group: Int64Array, score: list[int], weight: Int64Array) -> "_Sums":
        """Return the sums; question, group, score, weight: of each cell."""
        groups = dict(zip(question.tolist(), group.tolist(), strict=True))
        weights = dict(zip(question.tolist(), weight.tolist(), strict=True))
        total, count = dict.fromkeys(sorted(groups), 0), dict.fromkeys(sorted(groups), 0)
        for number, one in zip(question.tolist(), score, strict=True):
            total[number] += one
            count[number] += 1
        group_weight, group_total = ([0] * (max(groups.values()) + 1) for _ in range(2))
        for number, place in groups.items():
            group_weight[place] += weights[number]
            group_total[place] += weights[number] * total[number]
        return cls(groups, total, count, group_weight, group_total)


def _centred(sums: _Sums, means: list[int], denominator: int) -> tuple[dict[int, int], int]:
    """Return the effects of questions less their weighted mean, as numerators, and their denominator.

    means: numerators of the mean effect of each group, over `denominator`. A question's effect differs from it by what
    its mean score differs from the mean of its group: they have the same participants.
    """
    whole = sum(sums.group_weight)
    mean = sum(each * weight for each, weight in zip(means, sums.group_weight, strict=True))
    divisors = {number: count * sums.group_weight[sums.group[number]] for number, count in sums.counts.items()}
    common = lcm(*divisors.values())
    base = [(each * whole - mean) * common for each in means]
    factor = denominator * whole
    effects = {}
    for number, group in sums.group.items():
        apart = sums.total[number] * sums.group_weight[group] - sums.group_total[group]
        effects[number] = base[group] + apart * (common // divisors[number]) * factor
    return effects, factor * common
