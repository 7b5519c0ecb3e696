"""Difficulty: scores compared though participants forecast on different questions.

The relative skill is the geometric mean of the ratios of mean scores, each on the questions that two participants have
in common.

Source: Cramer et al. (2022), doi:10.1073/pnas.2113561119, "Evaluation methodology"; as scoringutils computes it, Bosse
et al. (2022), arXiv:2205.07090.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import lcm
from operator import mul
from typing import NamedTuple, TypeVar

import numpy as np

from forecast_ledger.ledger.core.exact import WIDE, half_even
from forecast_ledger.projections.boards import leaderboard, totals
from forecast_ledger.projections.boards.contest_groups import ScoredGroup
from forecast_ledger.projections.core.arrays import (
    BoolArray,
    Int64Array,
    distinct,
    int64_array,
    run_lengths,
    run_starts,
    stable_order,
)
from forecast_ledger.projections.core.columns import POINTS
from forecast_ledger.projections.core.estimates import matrix_product, wide_matrix_product
from forecast_ledger.projections.core.powers import root_half_even
from forecast_ledger.projections.core.proportions import InDoubt
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.scored_questions import NAMED, lower_is_better
from forecast_ledger.projections.studies import two_way
from forecast_ledger.projections.studies.two_way import Cells, Part, Peeled

_T = TypeVar("_T")
CONTEST, CATEGORY = "contest", "category"  # what the scores of one design have in common
_HIDDEN, _FITTED = "hidden", ""  # a reason why scores are left out; no reason why they are not fitted
UNIT = POINTS << 192  # of numbers with guard digits, in a point
_INDEX_UNITS = 100 * POINTS


class QuestionEffect(NamedTuple):
    """The effect of a question on scores. mean, effect: 1e-9, rounded. participants: how many scores are fitted."""

    contest: str
    question: int
    participants: int
    mean: int
    effect: int


class AdjustedScore(NamedTuple):
    """A participant's mean score, as it is and less the effects of the questions.

    rank, excluded: as on a board; there is no rank if the scores are not fitted. mean, adjusted: 1e-9, rounded.
    brier_index: 1e-9; None if the scores are not Brier scores from 0 to 1, or the adjusted one is below 0.
    """

    rank: int | None
    participant: str
    questions: int
    mean: int
    adjusted: int
    brier_index: int | None
    excluded: str


class DesignPart(NamedTuple):
    """A connected part of a design. by: CONTEST or CATEGORY. name: of which. number: from 1, most scores first."""

    by: str
    name: str
    number: int
    questions: list[QuestionEffect]
    participants: list[AdjustedScore]


class Scored(NamedTuple):
    """The scores of contests with one rule set, on questions with a weight.

    cells: their questions are indices into those of the group, their scores in 1 / UNIT points. exact: the scores in
    points. rounded: which scores are rounded down in `cells`. excluded: why each is not fitted; empty if it is.
    """

    group: ScoredGroup
    names: list[str]
    cells: Cells
    exact: time_weighted.Quotients
    rounded: list[bool]
    excluded: list[str]

    def fractions(self, rows: Sequence[int]) -> list[Fraction]:
        """Return some exact scores."""
        numerators, divisors, divisor_of = self.exact
        at = int64_array(rows)
        return time_weighted.Quotients(numerators.take(at), divisors, divisor_of[at]).exact()


class _Fitted(NamedTuple):
    """A part of a design, and the scores that belong to it but are not fitted.

    rows, other_rows: of the scores that are fitted and of the others. unit: of their numbers, in a point. rounding: by
    how many units means may be off; 0 if none of the scores is rounded.
    """

    scored: Scored
    part: Part
    others: Cells
    rows: list[int]
    other_rows: list[int]
    unit: int
    rounding: int

    @property
    def order(self) -> tuple[int, str, str]:
        """The key of the part's order in its design: most scores first, then the first participant and contest."""
        cells, group = self.part.cells, self.scored.group
        contests = {group.names[code] for code in group.questions.contest[cells.question].tolist()}
        return -len(cells.score), min(self.scored.names[code] for code in cells.participant.tolist()), min(contests)

    def exactly(self) -> "_Fitted":
        """Return the same part with exact numbers, over one denominator."""
        scores = self.scored.fractions([*self.rows, *self.other_rows])
        common = lcm(*(score.denominator for score in scores))
        numbers = [score.numerator * (common // score.denominator) for score in scores]
        part = two_way.fit_exactly(self.part.cells._replace(score=numbers[: len(self.rows)]))
        others = self.others._replace(score=numbers[len(self.rows) :])
        return self._replace(part=part, others=others, unit=common, rounding=0)

    def scores_of(self, participant: int) -> dict[int, Fraction]:
        """Return the exact scores of a participant in the part, by question."""
        cells = self.scored.cells
        all_rows = int64_array([*self.rows, *self.other_rows])
        rows = all_rows[cells.participant[all_rows] == participant]
        return dict(zip(cells.question[rows].tolist(), self.scored.fractions(rows.tolist()), strict=True))

    def decided(self, number: Fraction, off: int, rounded: Callable[[Fraction], _T]) -> _T:
        """Return a number of units that may be off by `off`, rounded. Raises InDoubt."""
        low, high = (rounded(Fraction(number + end, self.unit)) for end in (-off, off))
        if low != high:
            raise InDoubt
        return low

    def points(self, numerator: int, denominator: int, off: int) -> int:
        """Return what `decided` returns of a quotient, in 1e-9, rounded half-even once. Raises InDoubt."""
        divisor = denominator * self.unit
        low, high = (half_even((numerator + end * denominator) * POINTS, divisor) for end in (-off, off))
        if low != high:
            raise InDoubt
        return low


def design_parts(facts: Facts, groups: Sequence[ScoredGroup]) -> list[DesignPart]:
    """Return the parts of every design, by what its scores have in common, name and number.

    A design has the scores of a contest, or those of a category whose questions are in several contests with the same
    rule set. Fitted are the scores of participants who may have a rank. Raises Refused (out_of_range): a fit would take
    too long.

    Numbers have guard digits first; if these leave a doubt about a number or a rank, the part is fitted exactly.
    """
    designs: dict[tuple[str, str], list[_Fitted]] = {}
    for group in groups:
        scored = scored_cells(facts, group)
        for by, name, chosen in _choices(facts, scored):
            designs.setdefault((by, name), []).extend(_parts(scored, np.flatnonzero(chosen)))
    return [
        DesignPart(by, name, number, *_decided(each))
        for by, name in sorted(designs)
        for number, each in enumerate(sorted(designs[by, name], key=lambda each: each.order), 1)
    ]


def scored_cells(facts: Facts, group: ScoredGroup) -> Scored:
    """Return the scores of contests with one rule set."""
    rows, questions = group.rows, group.questions
    weight = questions.weight[rows.question]
    names = totals.score_labels(facts)
    keys, pair = distinct(questions.contest[rows.question] * len(names) + rows.participant)
    reasons = [_reason(facts, group, *divmod(key, len(names))) for key in keys.tolist()]
    shown = np.array([reason != _HIDDEN for reason in reasons], bool)[pair] & (weight > 0)
    index = np.flatnonzero(shown)
    exact = time_weighted.points(group.rules, questions, rows.rows(index))
    divided = [divmod(numerator, denominator) for numerator, denominator in exact.terms(UNIT)]
    cells = Cells(rows.participant[index], rows.question[index], [whole for whole, _ in divided], weight[index])
    excluded = [reasons[number] for number in pair[index].tolist()]
    return Scored(group, names, cells, exact, [remainder > 0 for _, remainder in divided], excluded)


def _reason(facts: Facts, group: ScoredGroup, contest: int, participant: int) -> str:
    """Return why the scores of a participant in a contest are not fitted; empty if they are."""
    reference = participant - len(facts.participant_codes.labels)
    if reference >= 0:
        return leaderboard.REFERENCE if reference else leaderboard.CONSENSUS
    level = group.contests[contest].level_of(facts.participant_codes.labels[participant])
    return level if level in {_HIDDEN, "no_rank"} else _FITTED


def _choices(facts: Facts, scored: Scored) -> Iterator[tuple[str, str, BoolArray]]:
    """Yield what the scores of each design have in common, its name, and which scores they are."""
    questions = scored.group.questions
    contest = questions.contest[scored.cells.question]
    for number in np.unique(contest).tolist():
        yield CONTEST, scored.group.names[number], contest == number
    categories = np.array([facts.questions[code].category for code in questions.code.tolist()], object)
    for name in sorted({*categories.tolist()} - {""}):
        if len(np.unique(questions.contest[categories == name])) > 1:
            yield CATEGORY, name, (categories == name)[scored.cells.question]


def _parts(scored: Scored, chosen: Int64Array) -> Iterator[_Fitted]:
    """Yield the parts of a design; chosen: the rows of its scores."""
    fitted = int64_array([row for row in chosen.tolist() if scored.excluded[row] == _FITTED])
    questions = scored.cells.question[chosen].tolist()
    rounding = int(any(scored.rounded[row] for row in chosen.tolist()))
    parts = two_way.fit(scored.cells.take(fitted), rounding) if len(fitted) else []
    part_of = {question: number for number, part in enumerate(parts) for question in part.effects}
    rows: list[tuple[list[int], list[int]]] = [([], []) for _ in parts]
    for row, question in zip(chosen.tolist(), questions, strict=True):
        if question in part_of:
            rows[part_of[question]][scored.excluded[row] != _FITTED].append(row)
    for part, (fitted_rows, others) in zip(parts, rows, strict=True):
        yield _Fitted(scored, part, scored.cells.take(int64_array(others)), fitted_rows, others, UNIT, rounding)


def _decided(fitted: _Fitted) -> tuple[list[QuestionEffect], list[AdjustedScore]]:
    with suppress(InDoubt):
        return [*_effects(fitted)], _adjusted(fitted)
    exact = fitted.exactly()
    return [*_effects(exact)], _adjusted(exact)


def _effects(fitted: _Fitted) -> Iterator[QuestionEffect]:
    scored, part = fitted[:2]
    questions, names = scored.group.questions, scored.group.names
    order = stable_order(part.cells.question)
    starts = run_starts(part.cells.question[order])
    sums = np.add.reduceat(np.array(part.cells.score, object)[order], starts).tolist()
    counts = run_lengths(starts, len(order)).tolist()
    for code, total, count in zip(part.cells.question[order][starts].tolist(), sums, counts, strict=True):
        effect = fitted.points(part.effects[code], part.denominator, part.off)
        mean = fitted.points(total, count, fitted.rounding)
        yield QuestionEffect(names[questions.contest[code]], int(questions.code[code]), count, mean, effect)


def _by_code(codes: Int64Array, cells: Cells) -> Iterator[tuple[int, Cells]]:
    """Yield the cells of each code, in order of code."""
    order = stable_order(codes)
    starts = run_starts(codes[order]).tolist()
    for first, end in pairwise([*starts, len(order)]):
        yield int(codes[order[first]]), cells.take(order[first:end])


class _Entry(NamedTuple):
    """The scores of a participant in a part. worth: the adjusted score in units, the better the smaller."""

    excluded: str
    worth: Fraction
    name: str
    code: int
    cells: Cells


def _adjusted(fitted: _Fitted) -> list[AdjustedScore]:
    """Return the adjusted scores of those who are fitted, then of others by reason; the best first. Raises InDoubt."""
    scored, part, others = fitted[:3]
    sign, is_brier = 1 if lower_is_better(scored.group.rules) else -1, _is_brier(scored, part)
    why = dict(zip(others.participant.tolist(), map(scored.excluded.__getitem__, fitted.other_rows), strict=True))
    why |= dict.fromkeys(part.cells.participant.tolist(), _FITTED)
    apart = others.take(np.flatnonzero(~np.isin(others.participant, part.cells.participant)))
    rows = [
        _Entry(why[code], sign * part.adjusted(chosen), scored.names[code], code, chosen)
        for cells in (part.cells, apart)
        for code, chosen in _by_code(cells.participant, cells)
    ]
    rows.sort(key=lambda entry: entry[:3])
    ranked = list[AdjustedScore]()
    for tied in _ties(fitted, rows):
        rank = len(ranked) + 1
        for entry in sorted(tied, key=lambda entry: entry.name):
            adjusted, weights = sign * entry.worth, entry.cells.weight.tolist()
            total = sum(map(mul, entry.cells.score, weights))
            row = AdjustedScore(
                None if entry.excluded else rank,
                entry.name,
                len(weights),
                fitted.points(total, sum(weights), fitted.rounding),
                fitted.points(adjusted.numerator, adjusted.denominator, part.off),
                fitted.decided(adjusted, part.off, brier_index) if is_brier else None,
                entry.excluded,
            )
            ranked.append(row)
    return ranked


def _ties(fitted: _Fitted, rows: list[_Entry]) -> Iterator[list[_Entry]]:
    """Yield those who share a rank, best first; rows: in order of worth. Raises InDoubt: some may share one."""
    off, peeled, run = fitted.part.off, None, rows[:1]
    for one, other in pairwise(rows):
        tied = one.excluded == other.excluded and abs(one.worth - other.worth) <= 2 * off
        if tied and off:
            peeled = two_way.peeled(fitted.part.cells) if peeled is None else peeled
            if _shape(fitted, peeled, one) != _shape(fitted, peeled, other):
                raise InDoubt
        if not tied:
            yield run
            run = []
        run.append(other)
    yield run


def _shape(fitted: _Fitted, peeled: Peeled, entry: _Entry) -> tuple[set[int], Fraction]:
    """Return what an adjusted score depends on: two of one shape are equal.

    It is a mean of scores less that of the effects of the same questions. Who has none of these is the same as a
    participant of this code, who has a negative one here.
    """
    code, scores, apart = entry.code, fitted.scores_of(entry.code), Fraction(0)
    if entry.excluded:
        questions = {*scores}
    else:
        while code in peeled.same:
            question, other = peeled.same[code]
            theirs = fitted.scores_of(other)
            apart += scores[question] - theirs[question]
            code, scores = other, theirs
        questions = peeled.questions[code]
    weight = {each: int(fitted.scored.group.questions.weight[each]) for each in questions}
    total = sum((weight[each] * scores[each] for each in questions), Fraction(0))
    mean = Fraction(total, sum(weight.values()) or 1)
    return questions or {-1 - code}, apart + mean


def _is_brier(scored: Scored, part: Part) -> bool:
    """Return whether the scores are Brier scores from 0 to 1: of forecasts themselves, on questions with outcomes."""
    rules = scored.group.rules
    plain = (rules.kernel, rules.reference, rules.scale) == ("brier", "none", "plain")
    return plain and bool((scored.group.questions.form[int64_array([*part.effects])] == NAMED).all())


def brier_index(score: Fraction) -> int | None:
    """Return 100 (1 - √score) in 1e-9, rounded half-even once; None if the score is below 0.

    0 has 100, always ½ (Brier score 0.25) has 50, and the worst score, 1, has 0.

    Source: ForecastBench's leaderboard, "Brier Index".

    >>> brier_index(Fraction(1, 4)), brier_index(Fraction(-1, 4))
    (50000000000, None)
    """
    if score < 0:
        return None
    return _INDEX_UNITS - root_half_even(score * _INDEX_UNITS**2)


_ZERO = Decimal(0)


class RelativeSkill(NamedTuple):
    """A participant's relative skill, by the code of the participant.

    compared: with how many participants, themselves included. logarithm: of the geometric mean; None if it is not
    defined, because a mean is 0.
    """

    participant: int
    compared: int
    logarithm: Decimal | None


def relative_skills(cells: Cells, fitted: set[int]) -> list[RelativeSkill]:
    """Return the relative skill of every participant, by code; lower is better.

    cells: scores that are not below 0, of which lower ones are better. fitted: whom others are compared with; who is
    not is compared with these, and with themselves, and changes nobody's number. Two participants without a common
    question are not compared.

    >>> codes = [np.array(each) for each in ([0, 1, 2], [0, 0, 0], [1, 1, 1])]
    >>> skills = relative_skills(Cells(codes[0], codes[1], [4, 2, 1], codes[2]), {0, 1, 2})
    >>> [scaled(each, skills[1]) for each in skills]
    [2000000000, 1000000000, 500000000]
    """
    participants, sums, common = _sums(cells)
    against = [number for number, code in enumerate(participants.tolist()) if code in fitted]
    return [
        RelativeSkill(code, *_geometric_mean(_ratios(sums, common[number], number, against)))
        for number, code in enumerate(participants.tolist())
    ]


def scaled(relative: RelativeSkill, baseline: RelativeSkill | None = None) -> int | None:
    """Return the relative skill in 1e-9, divided by that of a baseline, rounded half-even; None if not defined."""
    below = _ZERO if baseline is None else baseline.logarithm
    if relative.logarithm is None or below is None:
        return None
    skill = WIDE.exp(WIDE.subtract(relative.logarithm, below))
    return int(WIDE.to_integral_value(WIDE.multiply(skill, Decimal(POINTS))))


def _sums(cells: Cells) -> tuple[Int64Array, list[list[int]], BoolArray]:
    """Return the codes of participants; Σ weight x score of each on the questions of each; and who shares questions."""
    participants, who = distinct(cells.participant)
    questions, which = distinct(cells.question)
    present = np.zeros((len(participants), len(questions)), np.int64)
    present[who, which] = 1
    weighted = np.zeros(present.shape, object)
    weighted[who, which] = [score * weight for score, weight in zip(cells.score, cells.weight.tolist(), strict=True)]
    sums = wide_matrix_product(weighted, present.T).tolist()
    return participants, sums, matrix_product(present, present.T) > 0


def _ratios(sums: list[list[int]], common: BoolArray, index: int, against: list[int]) -> list[Decimal | None]:
    """Return the ratio of a participant's mean to that of each other one; to itself it is 1."""
    pairs = [(sums[index][other], sums[other][index]) for other in against if other != index and common[other]]
    ratios = (WIDE.divide(Decimal(mean), Decimal(their)) if mean and their else None for mean, their in pairs)
    return [Decimal(1), *ratios]


def _geometric_mean(ratios: list[Decimal | None]) -> tuple[int, Decimal | None]:
    """Return how many ratios there are, and the logarithm of their geometric mean."""
    product = Decimal(1)
    for ratio in ratios:
        if ratio is None:
            return len(ratios), None
        product = WIDE.multiply(product, ratio)
    return len(ratios), WIDE.divide(WIDE.ln(product), Decimal(len(ratios)))
