"""The designs that difficulty is fitted to: which scores of which contests count in a fit, and what follows from it."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import root_half_even
from forecast_ledger.ledger.core.lazy_fractions import half_even
from forecast_ledger.projections.boards import leaderboard, totals
from forecast_ledger.projections.boards.contest_groups import ScoredGroup
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, int64_array
from forecast_ledger.projections.core.column_values import POINTS, plain_values
from forecast_ledger.projections.core.sorting import distinct, run_starts, stable_order
from forecast_ledger.projections.difficulty import two_way
from forecast_ledger.projections.difficulty.two_way import Cells, Part
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.scores import coverage
from forecast_ledger.projections.scores.score_policies import lower_is_better
from forecast_ledger.projections.scores.scored_questions import NAMED

CONTEST, CATEGORY = "contest", "category"  # what the scores of one design have in common
_HIDDEN, _FITTED = "hidden", ""  # a reason why scores are left out; no reason why they are not fitted
_INDEX_UNITS, _POINT = 100 * POINTS, Fraction(1, POINTS)


class QuestionEffect(NamedTuple):
    """The effect of a question on scores. mean, effect: 1e-9, rounded. participants: how many scores are fitted."""

    contest: str
    question: int
    participants: int
    mean: int
    effect: int


class AdjustedScore(NamedTuple):
    """A participant's mean score, as it is and less the effects of the questions.

    rank, excluded: as on a board; there is no rank if the scores are not fitted. mean: 1e-9, rounded. adjusted: exact.
    brier_index: 1e-9; None if the scores are not Brier scores from 0 to 1, or the adjusted one is below 0.
    """

    rank: int | None
    participant: str
    questions: int
    mean: int
    adjusted: Fraction
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

    cells: their questions are indices into those of the group. excluded: why each is not fitted; empty if it is.
    """

    group: ScoredGroup
    names: list[str]
    cells: Cells
    excluded: list[str]


class _Fitted(NamedTuple):
    """A part of a design, the scores that belong to it but are not fitted, and why they are not."""

    scored: Scored
    part: Part
    others: Cells
    reasons: list[str]

    @property
    def order(self) -> tuple[int, str, str]:
        """The place of the part in its design: by its number of scores, then the first participant and contest."""
        cells, group = self.part.cells, self.scored.group
        contests = {group.names[code] for code in group.questions.contest[cells.question].tolist()}
        return -len(cells.score), min(self.scored.names[code] for code in cells.participant.tolist()), min(contests)


def design_parts(facts: Facts, groups: Sequence[ScoredGroup]) -> list[DesignPart]:
    """Return the parts of every design, by what its scores have in common, name and number.

    A design has the scores of a contest, or those of a category whose questions are in several contests with the same
    rule set. Fitted are the scores, as the table `scores` prints them, of participants who may have a rank. Raises
    Refused (out_of_range): a fit would take too long.
    """
    found: dict[tuple[str, str], list[_Fitted]] = {}
    for group in groups:
        scored = scored_cells(facts, group)
        for by, name, chosen in _choices(facts, scored):
            found.setdefault((by, name), []).extend(_parts(scored, np.flatnonzero(chosen)))
    return [
        DesignPart(by, name, number, [*_effects(each.scored, each.part)], _adjusted(each))
        for by, name in sorted(found)
        for number, each in enumerate(sorted(found[by, name], key=lambda each: each.order), 1)
    ]


def scored_cells(facts: Facts, group: ScoredGroup) -> Scored:
    """Return the scores of contests with one rule set, as the table `scores` prints them."""
    rows, questions = group.rows, group.questions
    published = plain_values(coverage.points(group.rules, questions, rows).published())
    weight = questions.weight[rows.question]
    names = totals.score_labels(facts)
    keys, pair = distinct(questions.contest[rows.question] * len(names) + rows.participant)
    reasons = [_reason(facts, group, *divmod(key, len(names))) for key in keys.tolist()]
    shown = np.array([reason != _HIDDEN for reason in reasons], bool)[pair] & (weight > 0)
    index = np.flatnonzero(shown)
    cells = Cells(rows.participant, rows.question, published, weight).take(index)
    return Scored(group, names, cells, [reasons[place] for place in pair[index].tolist()])


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
    others = [row for row in chosen.tolist() if scored.excluded[row] != _FITTED]
    for part in two_way.fit(scored.cells.take(fitted)) if len(fitted) else []:
        questions = scored.cells.question
        own = [row for row in others if int(questions[row]) in part.effects]
        yield _Fitted(scored, part, scored.cells.take(int64_array(own)), [scored.excluded[row] for row in own])


def _effects(scored: Scored, part: Part) -> Iterator[QuestionEffect]:
    questions, names = scored.group.questions, scored.group.names
    for code, own in _by_code(part.cells.question, part.cells):
        effect = half_even(part.effects[code], part.denominator)
        mean = half_even(sum(own.score), len(own.score))
        yield QuestionEffect(names[questions.contest[code]], int(questions.code[code]), len(own.score), mean, effect)


def _by_code(codes: Int64Array, cells: Cells) -> Iterator[tuple[int, Cells]]:
    """Yield the cells of each code, in order of code."""
    order = stable_order(codes)
    starts = run_starts(codes[order]).tolist()
    for first, end in pairwise([*starts, len(order)]):
        yield int(codes[order[first]]), cells.take(order[first:end])


def _adjusted(fitted: _Fitted) -> list[AdjustedScore]:
    """Return the adjusted scores of those who are fitted, then of others by reason; the best first."""
    scored, part, others, reasons = fitted
    lower, is_brier = lower_is_better(scored.group.rules), _is_brier(scored, part)
    why = dict(zip(others.participant.tolist(), reasons, strict=True)) | dict.fromkeys(
        part.cells.participant.tolist(), ""
    )
    rows = [
        _adjusted_score(scored.names[code], part, own, why[code])
        for cells in (part.cells, others.take(np.flatnonzero(~np.isin(others.participant, part.cells.participant))))
        for code, own in _by_code(cells.participant, cells)
    ]
    rows.sort(key=lambda own: (own.excluded, own.adjusted if lower else -own.adjusted, own.participant))
    rank, ranked = 0, list[AdjustedScore]()
    for number, own in enumerate(rows, 1):
        rank = rank if ranked and ranked[-1].adjusted == own.adjusted else number
        index = brier_index(own.adjusted) if is_brier else None
        ranked.append(own._replace(rank=None if own.excluded else rank, brier_index=index))
    return ranked


def _adjusted_score(participant: str, part: Part, own: Cells, excluded: str) -> AdjustedScore:
    weights = own.weight.tolist()
    mean = half_even(sum(score * weight for score, weight in zip(own.score, weights, strict=True)), sum(weights))
    return AdjustedScore(None, participant, len(weights), mean, part.adjusted(own) * _POINT, None, excluded)


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
