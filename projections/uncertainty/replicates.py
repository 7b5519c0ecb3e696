"""Replicates of a contest's totals: what they would be if other questions like these had been asked."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import WEIGHT
from forecast_ledger.ledger.model.rules import REFERENCE_ROWS, RuleSet
from forecast_ledger.projections.boards.contest_groups import ContestScores
from forecast_ledger.projections.boards.imputation import kernel_of_kind, missing_scores, worst_score
from forecast_ledger.projections.core.arrays import (
    BoolArray,
    Int64Array,
    int64_array,
    product_quotients,
    round_half_even,
)
from forecast_ledger.projections.core.column_values import POINTS, round_to_points
from forecast_ledger.projections.core.estimates import matrix_product
from forecast_ledger.projections.core.sorting import index_where
from forecast_ledger.projections.scores import coverage
from forecast_ledger.projections.scores.coverage import QUESTION_KINDS, mean_kind

MOST_NUMBERS = 100_000_000  # in an array: participants x replicates, for example; each number takes eight bytes
_LIMIT = 1 << 62  # of sums
_HALF = 31  # bits that are left out where only the size of a sum matters

Numbers = np.ndarray[Any, np.dtype[Any]]  # 64-bit or Python integers
Quotients = tuple[Numbers, Numbers]  # numerators, shape (p, b), and divisors, of a shape that fits


class Units(NamedTuple):
    """What is drawn: questions, or all questions of a group together.

    unit: of each question, shape (q,); -1 if it does not count. strata: the number of units of each stratum; the units
    of a stratum are adjacent.
    """

    unit: Int64Array
    strata: list[int]


class Rows(NamedTuple):
    """The scores that count, shape (n,).

    owner: row of the board. unit: what is drawn. kind: index in QUESTION_KINDS. score: weight x score, 1e-9. covered:
    weight x coverage, 1e-9. weight: of the question, 1e-6.
    """

    owner: Int64Array
    unit: Int64Array
    kind: Int64Array
    score: Int64Array
    covered: Int64Array
    weight: Int64Array

    def of_kind(self, kind: int) -> "Rows":
        """Return the scores on questions of one kind."""
        own = index_where(self.kind == kind)
        return Rows(*(column[own] for column in self))


class Draws(NamedTuple):
    """How often each unit is drawn, shape (b, u), and the questions that are drawn with it.

    weights: Σ weight of each unit's questions by kind, 1e-6, shape (kinds, u). people: rows of the board.
    """

    times: Int64Array
    weights: Int64Array
    people: int

    def sums(self, rows: Rows, values: Int64Array) -> Int64Array:
        """Return the sums of values of rows in each replicate, shape (p, b). Raises Refused(out_of_range)."""
        by_unit = np.zeros((self.people, self.times.shape[1]), np.int64)
        np.add.at(by_unit, (rows.owner, rows.unit), values)
        if int(np.abs(by_unit).max(initial=0)) * int(self.times[:1].sum()) >= _LIMIT:
            high = matrix_product(by_unit >> _HALF, self.times.T)
            check_range(int(np.abs(high).max(initial=0)) + 2 << _HALF)
        return matrix_product(by_unit, self.times.T)

    def every(self, kinds: slice = slice(None)) -> Int64Array:
        """Return Σ weight of all questions in each replicate, 1e-6, shape (b,)."""
        every: Int64Array = self.times @ self.weights[kinds].sum(axis=0)
        return every


class Totals(NamedTuple):
    """The totals of all replicates, shape (p, b), 1e-9, rounded half-even once.

    undefined: where there is no total, as the mean of no score; it is 0 there.
    """

    total: Int64Array
    undefined: BoolArray


def units_of(scored: ContestScores) -> Units:
    """Return what is drawn: the questions that count, those of one group together; strata are the kinds of a unit."""
    questions = scored.questions
    members: dict[tuple[bool, str], list[int]] = {}
    for number in np.flatnonzero(questions.weight > 0).tolist():
        opened = questions.answers[number].question
        members.setdefault((bool(opened.group), opened.group or opened.question), []).append(number)
    strata: dict[tuple[str, ...], list[list[int]]] = {}
    for _, own in sorted(members.items()):
        strata.setdefault(tuple(sorted({mean_kind(questions.answers[each].question) for each in own})), []).append(own)
    unit = np.full(len(questions.answers), -1)
    for number, own in enumerate(own for _, parts in sorted(strata.items()) for own in parts):
        unit[own] = number
    return Units(unit, [len(parts) for _, parts in sorted(strata.items())])


def rows_of(rules: RuleSet, scored: ContestScores, units: Units, place: Int64Array) -> Rows:
    """Return the scores that count. place: row of the board of each participant code, -1 without one, shape (c,).

    Raises Refused(out_of_range): a weighted score is too large.
    """
    questions, rows = scored.questions, scored.rows
    kept = index_where((units.unit[rows.question] >= 0) & (place[rows.participant] >= 0))
    rows = rows if isinstance(kept, slice) else rows.rows(kept)
    weight = questions.weight[rows.question]
    score, covered = (
        weighted(numbers.published(), weight)
        for numbers in (coverage.points(rules, questions, rows), coverage.coverages(questions, rows))
    )
    own = Rows(
        place[rows.participant], units.unit[rows.question], _kinds(scored)[rows.question], score, covered, weight
    )
    return own if rules.imputation == "none" else _with_imputed(rules, scored, units, place, own)


def _with_imputed(rules: RuleSet, scored: ContestScores, units: Units, place: Int64Array, own: Rows) -> Rows:
    """Return these scores, and those that are imputed to the participants of the board, without a coverage."""
    questions, rows, consensus = scored.questions, scored.rows, len(place) - len(REFERENCE_ROWS)
    scores = missing_scores(rules, questions, rows, consensus)
    missing = np.zeros((int(place.max()) + 1, len(questions.weight)), bool)
    missing[np.ix_(place[:consensus][place[:consensus] >= 0], int64_array([*scores]))] = True
    missing[:, units.unit < 0] = False
    shown = np.flatnonzero(place[rows.participant] >= 0)
    missing[place[rows.participant[shown]], rows.question[shown]] = False
    owner, question = np.nonzero(missing)
    published = np.zeros(len(questions.weight), object)
    published[[*scores]] = [*map(round_to_points, scores.values())]
    weight = questions.weight[question]
    score = weighted(published[question].tolist(), weight)
    more = Rows(owner, units.unit[question], _kinds(scored)[question], score, np.zeros_like(owner), weight)
    return Rows(*map(np.concatenate, zip(own, more, strict=True)))


def _kinds(scored: ContestScores) -> Int64Array:
    return int64_array([QUESTION_KINDS.index(mean_kind(answer.question)) for answer in scored.questions.answers])


def weighted(published: Int64Array | list[int], weight: Int64Array) -> Int64Array:
    """Return published numbers x weight in the same unit, rounded half-even. Raises Refused(out_of_range)."""
    numbers = np.array(published, object) if isinstance(published, list) else published
    shared = int(np.gcd.reduce(weight, initial=WEIGHT))  # WEIGHT if every question counts once
    check_range(int(abs(numbers).max(initial=0)) * max(int(weight.max(initial=0)), WEIGHT) // WEIGHT)
    return product_quotients(numbers.astype(np.int64), weight // shared, WEIGHT // shared)


def check_range(largest: int) -> None:
    """Raise Refused(out_of_range) if numbers may need more than 62 bits."""
    if largest >= _LIMIT:
        raise Refused("out_of_range", "intervals", None, "the scores are too large for sums in 64 bits")


def check_size(people: int, units: int, replicates: int) -> None:
    """Raise Refused(out_of_range) if a board has too many participants or questions for so many replicates."""
    if max(people * replicates, people * units, units * replicates) > MOST_NUMBERS:
        detail = f"{people:,} participants and {units:,} questions are too many for {replicates:,} replicates"
        raise Refused("out_of_range", "intervals", None, detail)


def draws_of(scored: ContestScores, units: Units, times: Int64Array, people: int) -> Draws:
    """Return the draws of units. times: how often each is drawn, shape (b, u). people: rows of the board."""
    weights = np.zeros((len(QUESTION_KINDS), times.shape[1]), np.int64)
    counted = units.unit >= 0
    np.add.at(weights, (_kinds(scored)[counted], units.unit[counted]), scored.questions.weight[counted])
    return Draws(times, weights, people)


def totals_of(rules: RuleSet, rows: Rows, draws: Draws) -> Totals:
    """Return the totals of all replicates. Raises Refused(out_of_range): the scores are too large."""
    numerators, divisors = TOTALS[rules.total](rules, rows, draws)
    undefined: BoolArray = np.broadcast_to(divisors == 0, numerators.shape)
    return Totals(np.where(undefined, 0, _quotients(numerators, np.where(undefined, 1, divisors))), undefined)


def coverages_of(rows: Rows, draws: Draws) -> Int64Array:
    """Return the weighted mean coverage over all questions drawn, 1e-9, shape (p, b)."""
    return _quotients(draws.sums(rows, rows.covered).astype(object) * WEIGHT, draws.every())


def _quotients(numerators: Numbers, divisors: Numbers) -> Int64Array:
    """Return quotients rounded half-even."""
    plain, over = numerators.astype(object), divisors.astype(object)
    rounded = round_half_even(plain // over, plain % over, over)
    check_range(int(abs(rounded).max(initial=0)))
    return rounded.astype(np.int64)


def _sum(_: RuleSet, rows: Rows, draws: Draws) -> Quotients:
    return draws.sums(rows, rows.score), np.ones(1, np.int64)


def _mean(_: RuleSet, rows: Rows, draws: Draws) -> Quotients:
    return draws.sums(rows, rows.score).astype(object) * WEIGHT, draws.sums(rows, rows.weight)


def _per_coverage(rules: RuleSet, rows: Rows, draws: Draws) -> Quotients:
    covered = np.maximum(draws.sums(rows, rows.covered), rules.least_coverage * POINTS)
    return draws.sums(rows, rows.score).astype(object) * POINTS, covered


def _per_question(rules: RuleSet, rows: Rows, draws: Draws) -> Quotients:
    questions = np.maximum(draws.sums(rows, np.ones_like(rows.weight)), rules.least_coverage)
    return draws.sums(rows, rows.score), questions


def _kind_means(rules: RuleSet, rows: Rows, draws: Draws) -> Quotients:
    """Return the sum of the means of each kind, in percent; a missing score is the worst one."""
    numerators, divisors = np.zeros((draws.people, len(draws.times)), object), np.ones(len(draws.times), object)
    for number, kind in enumerate(QUESTION_KINDS):
        every = draws.every(slice(number, number + 1)).astype(object)
        if every.any():
            own = rows.of_kind(number)
            missing = (every - draws.sums(own, own.weight)) * (worst_score(kernel_of_kind(rules, kind)) * POINTS)
            scores = draws.sums(own, own.score).astype(object) * WEIGHT + missing
            numerators, divisors = numerators * every + 100 * scores * divisors, divisors * every
    return numerators, divisors


def _kind_means_third(rules: RuleSet, rows: Rows, draws: Draws) -> Quotients:
    numerators, divisors = _kind_means(rules, rows, draws)
    return numerators, 3 * divisors


# The totals of `projections.boards.leaderboard.TOTALS`, as numerators / divisors in 1e-9.
TOTALS: dict[str, Callable[[RuleSet, Rows, Draws], Quotients]] = {
    "sum": _sum,
    "mean": _mean,
    "per_coverage": _per_coverage,
    "per_question": _per_question,
    "kind_means": _kind_means,
    "kind_means_third": _kind_means_third,
}
