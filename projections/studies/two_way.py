"""Effects of participants and questions on scores: score = participant's effect + question's effect + residual.

The effects are those with the least sum of squared residuals, each weighted by its question. Floats choose candidates
step by step; the residual of the equations is computed in integers, and what it leaves open is a bound on every effect.

Source: two-way analysis of variance with unequal numbers, Yates (1934), doi:10.1080/01621459.1934.10502686; as
ForecastBench adjusts Brier scores for difficulty, Karger et al. (2025), arXiv:2409.19839. For exact solutions from
approximate ones, Wan (2006), doi:10.1016/j.jsc.2005.11.001; for the bound, Rayleigh's monotonicity law as in Doyle and
Snell (1984), arXiv:math/0001057, section 1.4.
"""

from collections import defaultdict
from fractions import Fraction
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.projections.core.arrays import Int64Array, distinct
from forecast_ledger.projections.core.estimates import two_sided_estimate

MOST_WORK = 4 * 10**9  # bits of exact numbers times scores; some minutes
_FIRST_BITS, _GUARD = 256, 32
_ROUGH = 60  # bits of the residual that an estimate sees
_STEP, _FITS = 50, 62  # bits of a step, and of its sums that fit in 64-bit integers


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
    adds to a score, in the unit of the scores. off: by how much effects, and scores less effects, may be off, in that
    unit; 0 if they are exact.
    """

    cells: Cells
    effects: dict[int, int]
    denominator: int
    off: int

    def adjusted(self, cells: Cells) -> Fraction:
        """Return the weighted mean of scores less the effects of their questions; for a participant in the part.

        If the part is fitted to them, this is the participant's effect plus the mean effect of all questions.
        """
        total = sum(
            weight * (score * self.denominator - self.effects[question])
            for question, score, weight in zip(cells.question.tolist(), cells.score, cells.weight.tolist(), strict=True)
        )
        return Fraction(total, self.denominator * int(cells.weight.sum()))


def fit(cells: Cells, rounding: int = 0) -> list[Part]:
    """Return the effects of questions, apart for each part of the design: scores compare only within a part.

    rounding: by how much a score may be larger than it is here. Two scores are in one part if they have the participant
    or the question in common, and if a third score is in one part with both. Raises Refused (out_of_range): weights
    that differ too much.

    >>> codes = [np.array(each) for each in ([0, 0, 1], [0, 1, 1], [1, 1, 1])]
    >>> [part] = fit(Cells(codes[0], codes[1], [10, 30, 50], codes[2]))  # question 1 adds 20 more than question 0
    >>> {question: Fraction(effect, part.denominator) for question, effect in part.effects.items()}
    {0: Fraction(-10, 1), 1: Fraction(10, 1)}
    """
    part_of = _part_of(cells)
    order = np.argsort(part_of, kind="stable")
    starts = np.flatnonzero(np.diff(part_of[order])) + 1
    return [_approximated(cells.take(rows), rounding) for rows in np.split(order, starts)]


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


def _approximated(cells: Cells, rounding: int) -> Part:
    equations = _Equations(cells)
    solution = equations.solution(0)
    off = equations.spread(solution.residual, rounding)
    return equations.part(solution.numbers, 1, off + rounding)


def fit_exactly(cells: Cells) -> Part:
    """Return the effects of questions in a connected part of a design, as fractions.

    More and more bits of the numbers are computed, until the simplest fractions that have them solve the equations.
    Raises Refused (out_of_range): the fractions are too long, or weights differ too much.

    >>> codes = [np.array(each) for each in ([0, 0, 1], [0, 1, 1], [1, 1, 3])]
    >>> fit_exactly(Cells(codes[0], codes[1], [10, 30, 50], np.array([1, 3, 3]))).effects
    {0: -60, 1: 20}
    """
    equations, bits = _Equations(cells), _FIRST_BITS
    while bits * len(cells.score) <= MOST_WORK:
        numbers = equations.solution(bits).numbers
        fractions = _fractions(equations.from_first(numbers), bits)
        if fractions is not None and not equations.residual(*fractions).any():
            return equations.part(*fractions, 0)
        bits *= 2
    raise _too_large(f"numbers of {bits:,} bits for {len(cells.score):,} scores")


def _fractions(numbers: list[int], bits: int) -> tuple[Any, int] | None:
    """Return numbers over a common denominator that differ from numbers / 2^bits by little; None if it is too large."""
    common, most = 1, 1 << (bits // 2 - _GUARD)
    for number in numbers:
        common *= Fraction(number * common, 1 << bits).limit_denominator(most // common).denominator
        if common > most:
            return None
    half = 1 << (bits - 1)
    return np.array([(number * common + half) >> bits for number in numbers], object), common


def _too_large(detail: str) -> Refused:
    remedy = "fewer participants or questions, or weights that are more alike"
    return Refused("out_of_range", "difficulty", None, f"the fit would take too long: {detail}", remedy=remedy)


class _Solution(NamedTuple):
    """Numbers by participant, then by question, and what they leave of the equations; Python integers, shape (n,)."""

    numbers: Any
    residual: Any


class _Equations:
    """Σ weight (x + y - score) = 0, over the scores of each participant, x, and over those of each question, y.

    They determine x and y up to a number that is added to every x and taken from every y.
    """

    def __init__(self, cells: Cells) -> None:
        self.cells, self.weight = cells, cells.weight // gcd(*cells.weight.tolist())
        people, self.row = distinct(cells.participant)
        self.questions, self.column = distinct(cells.question)
        self.rows, self.size = len(people), len(people) + len(self.questions)
        self.degree = self._summed(self.weight, self.weight)

    def _summed(self, by_row: Any, by_column: Any) -> Any:
        """Return sums over the scores of each participant, then of each question; shape (n,)."""
        sums = np.zeros(self.size, by_row.dtype)
        np.add.at(sums, self.row, by_row)
        np.add.at(sums, self.rows + self.column, by_column)
        return sums

    def _left(self, numbers: Any) -> Any:
        """Return the left sides of the equations without their scores."""
        x, y = numbers[: self.rows], numbers[self.rows :]
        return self.degree * numbers + self._summed(self.weight * y[self.column], self.weight * x[self.row])

    def residual(self, numbers: Any, unit: int) -> Any:
        """Return what numbers over `unit` leave of the equations: the sums of scores less the left sides."""
        scores = np.array([score * unit for score in self.cells.score], object) * self.weight
        return self._summed(scores, scores) - self._left(numbers)

    def solution(self, bits: int) -> _Solution:
        """Return the nearest numbers and their residual, in 2^-bits. Raises Refused (out_of_range).

        An estimate of what is missing is rounded to a step of _STEP bits.
        """
        numbers = np.zeros(self.size, object)
        residual = self.residual(numbers, 1 << bits)
        kind = np.int64 if int(2 * self.degree.max()) < 1 << (_FITS - _STEP) else object
        before, size = None, int(np.abs(residual).max())
        while before is None or 2 * size < before:
            high = max(size.bit_length() - _ROUGH, 0)
            step, finer = two_sided_estimate(self.row, self.column, self.weight, residual >> high, _STEP)
            finer = min(finer, high)
            whole = np.rint(np.ldexp(step, finer)).astype(np.int64).astype(kind)
            numbers += whole.astype(object) << (high - finer)
            residual -= self._left(whole).astype(object) << (high - finer)
            if high == finer:
                return _Solution(numbers, residual)
            before, size = size, int(np.abs(residual).max())
        raise _too_large("the weights of its questions differ too much")

    def spread(self, residual: Any, rounding: int) -> int:
        """Return what the effects may be off by, if numbers leave this residual and scores may be larger by `rounding`.

        x and -y are potentials in a network in which the weight of a score is the conductance between its participant
        and its question, and what is left are currents into the nodes. A current of 1 from one node to another makes
        potentials that differ by at most the resistance of any path between them: 2 x the shorter side / the least
        weight. The currents into the nodes are half the sum of all sizes: so many currents of 1 add up to the residual.
        """
        currents = int(np.abs(residual).sum()) + 2 * rounding * int(self.weight.sum())
        shorter = min(self.rows, self.size - self.rows)
        return -(-currents * shorter // int(self.weight.min()))

    def from_first(self, numbers: Any) -> list[int]:
        """Return the same numbers moved so that the first participant's is 0."""
        first = numbers[0]
        return [*(numbers[: self.rows] - first).tolist(), *(numbers[self.rows :] + first).tolist()]

    def part(self, numbers: Any, unit: int, off: int) -> Part:
        """Return the part, with numbers over `unit` as effects whose mean is 0."""
        weight = self.degree[self.rows :] // np.bincount(self.column)
        y, whole = numbers[self.rows :], int(weight.sum())
        centred = y * whole - int((y * weight).sum())
        return Part(self.cells, dict(zip(self.questions.tolist(), centred.tolist(), strict=True)), unit * whole, off)


class Peeled(NamedTuple):
    """What the effects of participants depend on.

    questions: on which ones, by participant; nothing is told by a question that nobody else is left on, nor by a
    participant who is left with one question. same: who is left with one question that one other participant is left
    on, with the question and the other: their effects differ as their scores on it do.
    """

    questions: dict[int, set[int]]
    same: dict[int, tuple[int, int]]


def peeled(cells: Cells) -> Peeled:
    """Return what the effects of participants depend on, after what tells nothing is taken away in turn.

    >>> codes = [np.array(each) for each in ([0, 0, 1, 1, 2], [0, 1, 1, 2, 2], [1] * 5)]  # a chain of three people
    >>> peeled(Cells(codes[0], codes[1], [0] * 5, codes[2]))
    Peeled(questions={0: {0}, 1: {1}, 2: {2}}, same={2: (2, 1), 1: (1, 0)})
    """
    questions_of, participants_of = defaultdict[int, set[int]](set), defaultdict[int, set[int]](set)
    for who, which in zip(cells.participant.tolist(), cells.question.tolist(), strict=True):
        questions_of[who].add(which)
        participants_of[which].add(who)
    left = {which: set(people) for which, people in participants_of.items()}
    same: dict[int, tuple[int, int]] = {}
    apart = {who for who, each in questions_of.items() if len(each) == 1}
    for who in apart:
        left[next(iter(questions_of[who]))].discard(who)
    waiting = sorted(which for which, people in left.items() if len(people) == 1)
    while waiting:
        which = waiting.pop()
        if len(left[which]) != 1:
            continue
        [last] = left[which]
        same |= {who: (which, last) for who in participants_of[which] & apart if questions_of[who] == {which}}
        questions_of[last].discard(which)
        left[which].clear()
        if len(questions_of[last]) == 1:
            [other] = questions_of[last]
            apart.add(last)
            left[other].discard(last)
            waiting += [other] if len(left[other]) == 1 else []
    return Peeled(dict(questions_of), same)
