"""Replicates of a contest's questions, and numbers in them with guard digits."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from math import lcm
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import WEIGHT
from forecast_ledger.ledger.model.rules import KIND_TOTALS, REFERENCE_ROWS, RuleSet
from forecast_ledger.projections.boards.leaderboard import TOTALS
from forecast_ledger.projections.boards.totals import kernel_of_kind, missing_scores, worst_score
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, index_where, int64_array
from forecast_ledger.projections.core.columns import POINTS
from forecast_ledger.projections.core.estimates import (
    Floats,
    estimate_products,
    matrix_product,
    wide_matrix_product,
)
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.question_groups import QUESTION_KINDS, mean_kind
from forecast_ledger.projections.scores.time_weighted import ContestScores
from forecast_ledger.projections.studies.estimates import Near, drawn_estimates, near_fixed
from forecast_ledger.projections.studies.resampling import LIMIT, Drawn, Units, check_range

FRACTION_BITS = 32

Integers = NDArray[np.object_]


class Fixed(NamedTuple):
    """Numbers from low to low + width, both in 2^-bits, shape (p, b); 0 is the width of what is exact."""

    low: Integers
    width: Int64Array
    bits: int

    def plus(self, other: "Fixed") -> "Fixed":
        """Return the sums."""
        return Fixed(self.low + other.low, self.width + other.width, self.bits)

    def times(self, factor: int) -> "Fixed":
        """Return the numbers times a factor."""
        low = self.low if factor > 0 else self.low + self.width
        return Fixed(low * factor, self.width * abs(factor), self.bits)

    def over(self, divisor: "Fixed") -> "Fixed":
        """Return the quotients; 0 where the divisor is 0, which else is above 0."""
        zero = divisor.low == 0
        over = np.where(zero, max(int(divisor.low.max(initial=0)), 1), divisor.low) if zero.any() else divisor.low
        low: Integers = (self.low << self.bits) // over
        exact = (self.width == 0) & (divisor.width == 0)
        if exact.any():
            exact = exact & (low * over == self.low << self.bits)
        if divisor.width.any():
            low = np.minimum(low, (self.low << self.bits) // (over + divisor.width))
        # A numerator may be higher by its width, and a quotient lower by the share of the width of its divisor.
        widest, wide = (int(each.width.max(initial=0)) for each in (self, divisor))
        further = (widest << self.bits) + wide * int(abs(low).max(initial=0))
        width = np.where(exact | zero, 0, 2 * (further // int(over.min(initial=over.max(initial=1))) + 2))
        return Fixed(np.where(zero, 0, low) if zero.any() else low, width, self.bits)

    def at_least(self, least: int) -> "Fixed":
        """Return the larger of each number and another one."""
        return self._replace(low=np.maximum(self.low, least << self.bits))

    def near(self) -> Near:
        """Return floats near the numbers."""
        return near_fixed(self.low, self.width, self.bits)


def fixed_integers(numbers: Int64Array, bits: int) -> Fixed:
    """Return integers, shape (p, b)."""
    low: Integers = numbers.astype(object)
    return Fixed(low * (1 << bits), np.zeros_like(numbers), bits)


def drawn_sums(
    owner: Int64Array, unit: Int64Array, values: Sequence[tuple[int, bool]], people: int, times: Int64Array
) -> tuple[Integers, Int64Array]:
    """Return the sums of the values of each owner, each as often as its unit is drawn, and their widths, shape (p, b).

    values: integers, rounded down, and whether they were. times: integers from 0 on, shape (u, b).
    """
    low, rounded = [*zip(*values, strict=True)] or [(), ()]
    by_unit, inexact = np.zeros((people, len(times)), object), np.zeros((people, len(times)), np.int64)
    np.add.at(by_unit, (owner, unit), np.array(low, object))
    np.add.at(inexact, (owner, unit), np.array(rounded, np.int64))
    return wide_matrix_product(by_unit, times), matrix_product(inexact, times)


MOST_NUMBERS = 100_000_000  # in an array: participants x replicates, for example; each number takes eight bytes
_HALF = 31  # bits that are left out where only the size of a sum matters


class Weighted(NamedTuple):
    """Numbers x weights, in 1e-15; shape (n,)."""

    numbers: time_weighted.Quotients
    weight: Int64Array

    def take(self, rows: Int64Array | slice) -> "Weighted":
        """Return some rows."""
        numerators, divisors, divisor_of = self.numbers
        numerators = WideInt(*(word[rows] for word in numerators))
        return Weighted(time_weighted.Quotients(numerators, divisors, divisor_of[rows]), self.weight[rows])

    def estimates(self) -> Floats:
        """Return floats near them; see `estimates`."""
        factors = [(POINTS * divisor.denominator, divisor.numerator) for divisor in self.numbers.divisors]
        near: Floats = estimate_products(self.numbers.numerators, factors, self.numbers.divisor_of) * self.weight
        return near

    def exact(self, rows: Int64Array | slice = slice(None)) -> list[Fraction]:
        """Return some of them as fractions."""
        return [Fraction(*each) for each in self.take(rows).quotients()]

    def fixed(self, bits: int) -> Iterator[tuple[int, bool]]:
        """Yield them in 2^-bits, rounded down, and whether they were."""
        for numerator, denominator in self.quotients():
            whole, remainder = divmod(numerator << bits, denominator)
            yield whole, remainder > 0

    def quotients(self) -> Iterator[tuple[int, int]]:
        """Yield their numerators and denominators."""
        for (numerator, denominator), weight in zip(self.numbers.terms(POINTS), self.weight.tolist(), strict=True):
            yield numerator * weight, denominator

    def joined(self, other: "Weighted") -> "Weighted":
        """Return these numbers, then others."""
        (numerators, divisors, divisor_of), more = self.numbers, other.numbers
        return Weighted(
            time_weighted.Quotients(
                WideInt(*map(np.concatenate, zip(numerators, more.numerators, strict=True))),
                [*divisors, *more.divisors],
                np.concatenate([divisor_of, len(divisors) + more.divisor_of]),
            ),
            np.concatenate([self.weight, other.weight]),
        )


class Rows(NamedTuple):
    """The scores that count, shape (n,).

    owner: row of the board. unit: what is drawn. kind: index in QUESTION_KINDS. score: weight x score. covered:
    weight x coverage. weight: of the question, 1e-6.
    """

    owner: Int64Array
    unit: Int64Array
    kind: Int64Array
    score: Weighted
    covered: Weighted
    weight: Int64Array

    def take(self, rows: Int64Array | slice) -> "Rows":
        """Return some of the scores."""
        score, covered = self.score.take(rows), self.covered.take(rows)
        return Rows(self.owner[rows], self.unit[rows], self.kind[rows], score, covered, self.weight[rows])

    def of_kind(self, kind: int) -> "Rows":
        """Return the scores on questions of one kind."""
        return self.take(index_where(self.kind == kind))


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
        if int(np.abs(by_unit).max(initial=0)) * int(self.times.sum(axis=1).max(initial=0)) >= LIMIT:
            high = matrix_product(by_unit >> _HALF, self.times.T)
            check_range(int(np.abs(high).max(initial=0)) + 2 << _HALF)
        return matrix_product(by_unit, self.times.T)

    def every(self, kind: int | None = None) -> Int64Array:
        """Return Σ weight of all questions in each replicate, or of those of a kind, 1e-6, shape (b,)."""
        weights = self.weights.sum(axis=0) if kind is None else self.weights[kind]
        every: Int64Array = self.times @ weights
        return every


def rows_of(rules: RuleSet, scored: ContestScores, units: Units, board_row: Int64Array) -> Rows:
    """Return the scores that count. board_row: row of the board of each participant code, -1 without one, shape (c,).

    Raises Refused(out_of_range): a weighted score is too large.
    """
    questions, rows = scored.questions, scored.rows
    kept = index_where((units.unit[rows.question] >= 0) & (board_row[rows.participant] >= 0))
    rows = rows if isinstance(kept, slice) else rows.rows(kept)
    weight = questions.weight[rows.question]
    score, covered = (
        Weighted(numbers, weight)
        for numbers in (time_weighted.points(rules, questions, rows), time_weighted.coverages(questions, rows))
    )
    kept_rows = Rows(
        board_row[rows.participant], units.unit[rows.question], _kinds(scored)[rows.question], score, covered, weight
    )
    return kept_rows if rules.imputation == "none" else _with_imputed(rules, scored, units, board_row, kept_rows)


def _with_imputed(rules: RuleSet, scored: ContestScores, units: Units, board_row: Int64Array, given: Rows) -> Rows:
    """Return these scores, and those that are imputed to the participants of the board, without a coverage."""
    questions, rows, consensus = scored.questions, scored.rows, len(board_row) - len(REFERENCE_ROWS)
    scores = missing_scores(rules, questions, rows, consensus)
    missing = np.zeros((int(board_row.max()) + 1, len(questions.weight)), bool)
    missing[np.ix_(board_row[:consensus][board_row[:consensus] >= 0], int64_array([*scores]))] = True
    missing[:, units.unit < 0] = False
    shown = np.flatnonzero(board_row[rows.participant] >= 0)
    missing[board_row[rows.participant[shown]], rows.question[shown]] = False
    owner, question = np.nonzero(missing)
    published = [scores.get(number, Fraction(0)) for number in range(len(questions.weight))]
    imputed = time_weighted.Quotients(
        WideInt.from_integers([score.numerator for score in published]).take(question),
        [Fraction(score.denominator) for score in published],
        question,
    )
    weight = questions.weight[question]
    score = given.score.joined(Weighted(imputed, weight))
    covered = given.covered.joined(Weighted(imputed, np.zeros_like(weight)))
    more = (owner, units.unit[question], _kinds(scored)[question])
    columns = [np.concatenate(each) for each in zip(given[:3], more, strict=True)]
    return Rows(columns[0], columns[1], columns[2], score, covered, np.concatenate([given.weight, weight]))


def _kinds(scored: ContestScores) -> Int64Array:
    return int64_array([QUESTION_KINDS.index(mean_kind(answer.question)) for answer in scored.questions.answers])


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


class Exact(NamedTuple):
    """Numbers as fractions, shape (p, b), with the methods of `Fixed`."""

    values: NDArray[np.object_]

    def plus(self, other: "Exact") -> "Exact":
        """Return the sums."""
        return Exact(self.values + other.values)

    def times(self, factor: int) -> "Exact":
        """Return the numbers times a factor."""
        return Exact(self.values * factor)

    def over(self, divisor: "Exact") -> "Exact":
        """Return the quotients; 0 where the divisor is 0."""
        return Exact(_fractions(self.values * (divisor.values != 0), divisor.values + (divisor.values == 0)))

    def at_least(self, least: int) -> "Exact":
        """Return the larger of each number and another one."""
        return Exact(np.maximum(self.values, least))


_fractions = np.frompyfunc(Fraction, 2, 1)
_N = TypeVar("_N", Fixed, Exact)
Of = Callable[..., _N]  # the sums in each replicate: of a column of `Rows`, of `every` weight; of all, or one kind


class Totals(NamedTuple):
    """Numbers in replicates, 1e-9, shape (p, b); see `Drawn`."""

    fixed: Fixed
    defined: BoolArray
    exact: Callable[[int, Int64Array], list[Fraction]]

    def drawn(self) -> Drawn:
        """Return the numbers for comparisons."""
        return Drawn(self.fixed.near(), self.defined, self.exact)


def totals_of(rules: RuleSet, rows: Rows, draws: Draws) -> Totals:
    """Return the totals of all replicates. Raises Refused(out_of_range): they, or the weights, are too large."""
    totals = _drawn(partial(_total, rules, draws), rows, draws)
    check_range(int(abs(totals.fixed.low).max(initial=0)) >> FRACTION_BITS)
    return totals


def drawn_totals(rules: RuleSet, rows: Rows, draws: Draws) -> Drawn:
    """Return the totals of all replicates for comparisons. Raises as `totals_of` does.

    If their divisors are integers, floats say them nearly; else they are computed as `totals_of` does.
    """
    _, _, divisor, floored = TOTALS[rules.total]
    if rules.total in KIND_TOTALS or divisor == "covered":
        return totals_of(rules, rows, draws).drawn()
    number = np.full((1, len(draws.times)), WEIGHT)
    if isinstance(divisor, int):
        number *= divisor
    else:
        number = _INTEGERS[divisor](rows, draws, None) * (WEIGHT // _UNITS[divisor])
        if floored:
            number = np.maximum(number, rules.least_coverage * WEIGHT)
    totals = _estimated(partial(_total, rules, draws), rows, draws, rows.score, number)
    check_range(int(np.abs(totals.near.value).max(initial=0)))
    return totals


def coverages_of(rows: Rows, draws: Draws) -> Totals:
    """Return the weighted mean coverage over all questions drawn."""
    return _drawn(_coverage, rows, draws)


def drawn_coverages(rows: Rows, draws: Draws) -> Drawn:
    """Return what `coverages_of` returns for comparisons: floats say it nearly."""
    return _estimated(_coverage, rows, draws, rows.covered, draws.every()[None])


def _coverage(of: Of[_N]) -> tuple[_N, _N]:
    return of("covered"), of("every")


def _estimated(
    quotient: Callable[[Of[Any]], tuple[Any, Any]], rows: Rows, draws: Draws, summed: Weighted, divisor: Int64Array
) -> Drawn:
    """Return a quotient of sums in every replicate. summed: what is added up. divisor: shape (p, b) or (1, b)."""
    sums = drawn_estimates(rows.owner, rows.unit, summed.estimates(), draws.people, draws.times.T)
    near = sums.over(divisor)

    def closer(row: int, at: Int64Array) -> Near:
        fixed = partial(_fixed, _of(rows, row), draws._replace(times=draws.times[at], people=1), FRACTION_BITS)
        numerator, number = quotient(fixed)
        found: Fixed = numerator.over(number)
        return found.near()

    return Drawn(near, np.broadcast_to(divisor != 0, near.value.shape), _exactly(quotient, rows, draws), closer)


def _drawn(quotient: Callable[[Of[Any]], tuple[Any, Any]], rows: Rows, draws: Draws) -> Totals:
    """Return what a quotient of sums is in every replicate."""
    numerators, divisors = quotient(partial(_fixed, rows, draws, FRACTION_BITS))
    defined = np.broadcast_to(divisors.low != 0, numerators.low.shape)
    return Totals(numerators.over(divisors), defined, _exactly(quotient, rows, draws))


def _exactly(
    quotient: Callable[[Of[Any]], tuple[Any, Any]], rows: Rows, draws: Draws
) -> Callable[[int, Int64Array], list[Fraction]]:
    """Return what gives a quotient of sums of a row of the board in some replicates, as fractions."""

    def exact(row: int, at: Int64Array) -> list[Fraction]:
        numerator, divisor = quotient(partial(_exact, _of(rows, row), draws._replace(times=draws.times[at], people=1)))
        quotients: list[Fraction] = np.broadcast_to(numerator.over(divisor).values, (1, len(at)))[0].tolist()
        return quotients

    return exact


def _of(rows: Rows, row: int) -> Rows:
    """Return the scores of one row of the board, as row 0."""
    selected = rows.take(np.flatnonzero(rows.owner == row))
    return selected._replace(owner=np.zeros_like(selected.owner))


def _fixed(rows: Rows, draws: Draws, bits: int, name: str, kind: int | None = None) -> Fixed:
    selected = rows if kind is None else rows.of_kind(kind)
    if name in _WEIGHTED:
        values = [*getattr(selected, name).fixed(bits)]
        return Fixed(*drawn_sums(selected.owner, selected.unit, values, draws.people, draws.times.T), bits)
    return fixed_integers(_INTEGERS[name](selected, draws, kind), bits)


def _exact(rows: Rows, draws: Draws, name: str, kind: int | None = None) -> Exact:
    selected = rows if kind is None else rows.of_kind(kind)
    if name not in _WEIGHTED:
        return Exact(_fractions(_INTEGERS[name](selected, draws, kind).astype(object), 1))
    numbers = getattr(selected, name).exact()
    common, by_unit = lcm(*(each.denominator for each in numbers)), np.zeros(draws.times.shape[1], object)
    for unit, number in zip(selected.unit.tolist(), numbers, strict=True):
        by_unit[unit] += number.numerator * (common // number.denominator)
    counted = np.flatnonzero(by_unit)
    return Exact(_fractions(draws.times[:, counted].astype(object) @ by_unit[counted], common)[None])


_WEIGHTED = ("score", "covered")  # columns of `Rows`
_INTEGERS: dict[str, Callable[[Rows, Draws, int | None], Int64Array]] = {
    "weight": lambda rows, draws, _: draws.sums(rows, rows.weight),
    "questions": lambda rows, draws, _: draws.sums(rows, np.ones_like(rows.weight)),
    "every": lambda _, draws, kind: draws.every(kind)[None],
    "one": lambda _, draws, __: np.ones((1, len(draws.times)), np.int64),
}


_UNITS = {"weight": WEIGHT, "covered": POINTS * WEIGHT, "questions": 1}  # units in 1 of the sums that are divisors


def _total(rules: RuleSet, draws: Draws, of: Of[_N]) -> tuple[_N, _N]:
    """Return the numerator and the divisor of the total that the rules name; their quotient is in 1e-9."""
    _, _, divisor, floored = TOTALS[rules.total]
    if rules.total in KIND_TOTALS:
        return _kind_means(rules, draws, of), of("one").times(int(divisor))
    if isinstance(divisor, int):
        return of("score"), of("one").times(divisor * WEIGHT)
    unit, number = _UNITS[divisor], of(divisor)
    if floored:
        number = number.at_least(rules.least_coverage * unit)
    return of("score").times(max(unit // WEIGHT, 1)), number.times(max(WEIGHT // unit, 1))


def _kind_means(rules: RuleSet, draws: Draws, of: Of[_N]) -> _N:
    """Return the sum of the means of each kind, in percent; a missing score is the worst one."""
    total = of("one").times(0)
    for number, kind in enumerate(QUESTION_KINDS):
        if draws.weights[number].any():
            every, worst = of("every", number), worst_score(kernel_of_kind(rules, kind)) * POINTS
            missing = every.plus(of("weight", number).times(-1)).times(worst)
            total = total.plus(of("score", number).plus(missing).over(every))
    return total.times(100)
