"""Pairs of participants, compared on the questions that both have a score on, at the end and at every moment before."""

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache, cached_property, partial
from math import gcd, lcm
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.core.values import WEIGHT
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, stable_order
from forecast_ledger.projections.core.columns import POINTS
from forecast_ledger.projections.core.estimates import Floats, matrix_product
from forecast_ledger.projections.core.late_fractions import to_decimal
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.projections.scores.scored_questions import kernel_of, lower_is_better
from forecast_ledger.projections.scores.time_weighted import ContestScores
from forecast_ledger.projections.studies.clusters import units_of
from forecast_ledger.projections.studies.estimates import Near, norms, signs_of, surprises, turned_sums
from forecast_ledger.projections.studies.flips import FLIPS, statistic, statistics, step_down
from forecast_ledger.projections.studies.grounds import Standards, standards_of
from forecast_ledger.projections.studies.replicates import Weighted, check_size
from forecast_ledger.projections.studies.resampling import (
    Drawn,
    Ends,
    drawn_ends,
    order_statistics,
)
from forecast_ledger.projections.studies.sequences import Bounded, sequences

MOST_PRODUCTS = 10**12  # pairs x units x replicates: some minutes
_NUMBERS = 1 << 22  # in an array: pairs at a time x replicates or questions


class Pair(NamedTuple):
    """Two participants compared; differences in 1e-9 points, above 0 if the first is better.

    first, second: rows of the board. questions: on which both have a score; won, lost: on which the first has the
    better, or the worse. clusters: that have a common question. withheld: why there is no interval, a key of
    `grounds.WITHHELD`; else "". difference: the weighted mean of the differences. interval: as in `intervals`; None as
    well if no replicate has a common question. statistic: see `flips`. p: of the permutation test, and adjusted for all
    pairs, in 1e-9. hoeffding, bernstein: bounds of the mean expected difference that hold at every moment at once; None
    if scores have no bounds.
    """

    first: int
    second: int
    questions: int
    won: int
    lost: int
    clusters: int
    withheld: str
    difference: int
    interval: tuple[int, int] | None
    statistic: int
    p: int
    adjusted: int
    hoeffding: tuple[int, int] | None
    bernstein: tuple[int, int] | None

    def turned(self) -> "Pair":
        """Return the same numbers with the second first."""
        first, second, won, lost = self.second, self.first, self.lost, self.won
        interval, hoeffding, bernstein = (
            ends and (-ends[1], -ends[0]) for ends in (self.interval, self.hoeffding, self.bernstein)
        )
        return self._replace(
            first=first,
            second=second,
            won=won,
            lost=lost,
            difference=-self.difference,
            interval=interval,
            hoeffding=hoeffding,
            bernstein=bernstein,
        )


class Season(NamedTuple):
    """The scores of a contest as matrices; its questions in the order in which they were settled.

    score: weight x score, 1e-15, the better the larger, shape (p, q); floats near it, 0 without one. exact: returns the
    scores of one participant as numerators, by question, over one denominator. answered: shape (p, q). weight: shape
    (q,), in `unit` x 1e-6. units: the questions in the order of their units; begins: of each unit among them. times,
    flips: shape (u, b). standards: what intervals need. span: of the difference of two scores x weight on each
    question, 1e-15; None without bounds.
    """

    rules: RuleSet
    score: Floats
    exact: Callable[[int], tuple[NDArray[np.object_], int]]
    answered: BoolArray
    weight: Int64Array
    unit: int
    units: Int64Array
    begins: Int64Array
    times: Int64Array
    flips: Int64Array
    standards: Standards
    span: list[Fraction] | None

    @property
    def size(self) -> int:
        """How many pairs are compared at a time."""
        return max(_NUMBERS // max(self.rules.replicates, len(self.weight)), 1)


class _Common(NamedTuple):
    """The differences of two participants by unit that are not 0, exact, over one denominator."""

    units: Int64Array
    numerators: NDArray[np.object_]
    denominator: int

    def sums(self, times: Int64Array) -> NDArray[np.object_]:
        """Return the numerators of the sums, each unit as often as it is in a column of `times`, shape (b,)."""
        sums: NDArray[np.object_] = self.numerators @ times[self.units].astype(object)
        return sums

    def statistics(self, times: Int64Array) -> Iterator[int]:
        """Yield the statistic with the signs in each column of `times`."""
        squares = sum([each * each for each in self.numerators.tolist()])
        return (statistic(total, squares) for total in self.sums(times).tolist())


class _Apart:
    """The exact differences of the weighted scores of two participants, where bounds leave a doubt."""

    def __init__(self, season: Season, first: int, second: int, both: BoolArray) -> None:
        """both: on which questions both have a score."""
        self._season, self._first, self._second, self._both = season, first, second, both

    @cached_property
    def _differences(self) -> tuple[NDArray[np.object_], int]:
        """The differences by question, 0 where one has no score, as numerators, and their denominator."""
        (one, under), (other, below) = self._season.exact(self._first), self._season.exact(self._second)
        met, common, apart = np.flatnonzero(self._both), lcm(under, below), np.zeros(len(one), object)
        if under == below:  # as they nearly always are
            apart[met] = one[met] - other[met]
        else:
            apart[met] = one[met] * (common // under) - other[met] * (common // below)
        return apart, common

    def signs(self, questions: Int64Array) -> Int64Array:
        """Return the signs of the differences on some questions."""
        differences = self._differences[0][questions]
        return (differences > 0).astype(np.int64) - (differences < 0)

    @cached_property
    def by_unit(self) -> _Common:
        """The differences by unit."""
        differences, common = self._differences
        sums = np.add.reduceat(differences[self._season.units], self._season.begins)
        apart = np.flatnonzero(sums)
        return _Common(apart, sums[apart], common)

    @property
    def total(self) -> Decimal:
        """The sum of the differences, rounded to 40 digits."""
        return to_decimal(Fraction(sum(self.by_unit.numerators), self.by_unit.denominator), WIDE)

    def surprises(self) -> Fraction:
        """Return what `estimates.surprises` returns."""
        differences, common = self._differences
        total, squares = 0, Fraction(0)
        for known, each in enumerate(differences[self._both].tolist()):
            squares += Fraction(each * max(known, 1) - total, max(known, 1)) ** 2
            total += each
        return Fraction(squares, common**2)


def pairs(  # noqa: PLR0913 - the argument with a default is a keyword
    rules: RuleSet,
    scored: ContestScores,
    board_row: Int64Array,
    settled: Int64Array,
    seed: bytes,
    *,
    tests_only: bool = False,
) -> list[Pair]:
    """Return the pairs of a board's rows with a common question, in order.

    board_row: the row of the board of each participant code, -1 for those who are not compared, shape (c,). settled:
    the log position at which each question was settled, shape (q,). tests_only: without intervals and confidence
    sequences, which take most of the time; they are None. Raises Refused(out_of_range): too many participants or
    questions, or scores too large.

    The interval is that of `intervals`, with the mean difference as the statistic, at a level expanded for the clusters
    that have a common question, and withheld in the same cases. The test turns the signs of the
    differences of a unit at random, for all pairs at once; see `Units.turns` and `step_down`.
    Source: Fisher (1935), The Design of Experiments, section 21; Phipson and Smyth (2010), Statistical Applications in
    Genetics and Molecular Biology 9(1):39, doi:10.2202/1544-6115.1585.
    """
    people = int(board_row.max(initial=-1)) + 1
    if people < 2 or not (scored.questions.weight > 0).any():
        return []
    season = season_of(rules, scored, board_row, settled, seed, replicates=0 if tests_only else rules.replicates)
    return with_p_values(season, pairs_of(season._replace(span=None) if tests_only else season))


def pairs_of(season: Season) -> list[Pair]:
    """Return the pairs with a common question, in order, without p-values."""
    chunks = _chunks(len(season.score), season.size)
    return [pair for rows in chunks for pair in _compared(Differences(season, *rows))]


def with_p_values(season: Season, tested: Sequence[Pair]) -> list[Pair]:
    """Return pairs with their p-values, adjusted for all of these pairs."""
    one, other = (np.array([pair[side] for pair in tested], np.int64) for side in (0, 1))

    def turned(at: Int64Array) -> Int64Array:
        return Differences(season, one[at], other[at]).statistics(season.flips)

    alone, together = step_down(np.array([pair.statistic for pair in tested], np.int64), turned, season.size)
    unit = POINTS // (season.flips.shape[1] + 1)  # exact: of a thousand, or of a power of two up to 512
    p_values = zip(tested, (alone * unit).tolist(), (together * unit).tolist(), strict=True)
    return [pair._replace(p=p, adjusted=adjusted) for pair, p, adjusted in p_values]


def season_of(  # noqa: PLR0913 - those of `pairs`
    rules: RuleSet,
    scored: ContestScores,
    board_row: Int64Array,
    settled: Int64Array,
    seed: bytes,
    *,
    replicates: int,
) -> Season:
    """Return the season that pairs are compared in; arguments as of `pairs`, and so is what is raised.

    replicates: of the intervals; 0 if there are to be none.
    """
    questions, rows, units = scored.questions, scored.rows, units_of(rules, scored)
    people, count = int(board_row.max()) + 1, units.size
    products = people * (people - 1) // 2 * count * (rules.replicates + FLIPS)
    check_size(people, max(count, len(units.unit)), rules.replicates)
    if products > MOST_PRODUCTS:
        detail = f"{people:,} participants and {count:,} questions are too many to compare in pairs"
        raise Refused("out_of_range", "pairwise", None, detail)
    counted = np.flatnonzero(units.unit >= 0)
    counted = counted[stable_order(settled[counted])]
    column = np.full(len(units.unit), -1)
    column[counted] = np.arange(len(counted))
    compared = rows.rows(np.flatnonzero((column[rows.question] >= 0) & (board_row[rows.participant] >= 0)))
    at = (board_row[compared.participant], column[compared.question])
    sign = -1 if lower_is_better(rules) else 1
    points = Weighted(time_weighted.points(rules, questions, compared), sign * questions.weight[compared.question])
    score, row = np.zeros((people, len(counted))), np.full((people, len(counted)), -1)
    score[at], row[at] = points.estimates(), np.arange(len(compared.question))
    weight = questions.weight[counted]
    unit = gcd(WEIGHT, *weight.tolist())
    order = stable_order(units.unit[counted])
    return Season(
        rules,
        score,
        cache(partial(_exact_scores, points, row)),
        row >= 0,
        weight // unit,
        unit,
        order,
        np.searchsorted(units.unit[counted][order], np.arange(count)),
        units.times(seed, replicates).T if replicates else np.zeros((count, 0), np.int64),
        units.turns(seed, FLIPS, every=True).T,
        standards_of(rules, scored, units),
        _spans(rules, scored, counted),
    )


def _exact_scores(points: Weighted, row: Int64Array, participant: int) -> tuple[NDArray[np.object_], int]:
    columns = np.flatnonzero(row[participant] >= 0)
    exact, scores = [*points.take(row[participant, columns]).quotients()], np.zeros(row.shape[1], object)
    common = lcm(*{denominator for _, denominator in exact})
    factors = {denominator: common // denominator for _, denominator in exact}
    scores[columns] = [numerator * factors[denominator] for numerator, denominator in exact]
    return scores, common


def _spans(rules: RuleSet, scored: ContestScores, counted: Int64Array) -> list[Fraction] | None:
    """Return weight x the range of the scores on each question, 1e-15; None if one has no bounds."""
    spans = []
    for number in counted.tolist():
        questions, kernel = scored.questions, KERNELS[kernel_of(rules, scored.questions.answers[number].question)]
        if rules.reference != "none" or kernel.worst is None or not kernel.lower_is_better:
            return None
        points = Fraction(kernel.worst * int(questions.unit[number]), questions.per_point[number])
        spans.append(points * POINTS * int(questions.weight[number]))
    return spans


def _chunks(people: int, size: int) -> Iterator[tuple[Int64Array, Int64Array]]:
    """Yield the pairs of rows, in order, so many at a time."""
    first, second = np.triu_indices(people, 1)
    for begin in range(0, len(first), size):
        yield first[begin : begin + size], second[begin : begin + size]


class Differences:
    """The differences of the weighted scores of pairs on their common questions; pairs without one are left out.

    value: shape (m, q), 0 where one has no score. size: |score| + |other score|. largest: of these, shape (m, 1). both:
    where both have a score.
    """

    def __init__(self, season: Season, first: Int64Array, second: Int64Array) -> None:
        """first, second: rows, shape (m,)."""
        both = season.answered[first] & season.answered[second]
        met = both.any(axis=1)
        self.season, self.first, self.second, self.both = season, first[met], second[met], both[met]
        one, other = season.score[self.first], season.score[self.second]
        self.value = np.where(self.both, one - other, 0)
        self.size = np.where(self.both, np.abs(one) + np.abs(other), 0)
        self.largest = self.size.max(axis=1, keepdims=True, initial=0)
        self.apart = [*map(partial(_Apart, season), self.first.tolist(), self.second.tolist(), self.both)]

    def sums(self, times: Int64Array) -> Near:
        """Return the sums, each unit as often as it is in a column of `times`, shape (m, b)."""
        return turned_sums(self.value[:, self.season.units], self.largest, self.season.begins, times)

    def statistics(self, times: Int64Array) -> Int64Array:
        """Return the statistics with the signs in each column of `times`, shape (m, b)."""
        norm = norms(self.value[:, self.season.units], self.largest, self.season.begins)
        return statistics(self.sums(times), norm, lambda row, at: self.apart[row].by_unit.statistics(times[:, at]))


def _compared(pairs: Differences) -> Iterator[Pair]:
    season, both, apart = pairs.season, pairs.both, pairs.apart
    if not len(both):
        return
    weights = np.add.reduceat((both * season.weight)[:, season.units], season.begins, axis=1)
    plain = np.ones((len(season.times), 1), np.int64)
    means = _means(season, pairs.sums, weights, apart, plain)
    won, lost = _won_and_lost(apart, pairs.value, pairs.size, both)
    owner, unit = np.nonzero(np.logical_or.reduceat(both[:, season.units], season.begins, axis=1))
    grounds = season.standards.grounds(owner, unit, len(both))
    intervals: list[Ends] = [None] * len(both)
    if season.times.size:
        drawn = _means(season, pairs.sums, weights, apart, season.times)
        intervals = drawn_ends(drawn, grounds.levels(season.rules.level_ppm))
    withheld = [*map(grounds.withheld_of, range(len(both)), intervals)]
    yield from map(
        Pair,
        pairs.first.tolist(),
        pairs.second.tolist(),
        both.sum(axis=1).tolist(),
        won,
        lost,
        grounds.clusters.tolist(),
        withheld,
        order_statistics(means, (0,))[:, 0].tolist(),
        [None if reason else interval for reason, interval in zip(withheld, intervals, strict=True)],
        pairs.statistics(plain)[:, 0].tolist(),
        *([0] * len(both),) * 2,
        *_sequences(pairs, plain),
    )


def _means(
    season: Season, sums_of: Callable[[Int64Array], Near], weights: Int64Array, apart: list[_Apart], times: Int64Array
) -> Drawn:
    """Return the weighted means of differences if units are drawn so many times, 1e-9. weights: shape (m, u)."""
    over = matrix_product(weights, times) * season.unit

    def exact(row: int, at: Int64Array) -> list[Fraction]:
        common = apart[row].by_unit
        pairs = zip(common.sums(times[:, at]).tolist(), over[row, at].tolist(), strict=True)
        return [Fraction(numerator, common.denominator * weight) for numerator, weight in pairs]

    return Drawn(sums_of(times).over(over), over > 0, exact)


def _won_and_lost(
    apart: list[_Apart], difference: Floats, size: Floats, both: BoolArray
) -> tuple[list[int], list[int]]:
    """Return on how many questions the first and the second has the better score."""
    sign, doubtful = signs_of(difference, size)
    doubtful &= both
    for row in np.flatnonzero(doubtful.any(axis=1)).tolist():
        sign[row, doubtful[row]] = apart[row].signs(np.flatnonzero(doubtful[row]))
    return (sign > 0).sum(axis=1).tolist(), (sign < 0).sum(axis=1).tolist()


def _sequences(pairs: Differences, plain: Int64Array) -> tuple[list[Ends], list[Ends]]:
    """Return the bounds of each pair's mean that hold at every moment; None if scores have no bounds.

    plain: each unit once, shape (u, 1).
    """
    season, both = pairs.season, pairs.both
    if season.span is None:
        return [None] * len(both), [None] * len(both)
    questions = Bounded(season.span, season.weight * season.unit, season.rules.level_ppm)
    squares = surprises(pairs.value, pairs.largest, both)
    return sequences(questions, both, pairs.sums(plain), squares, pairs.apart)
