"""Pairs of participants compared on the questions that both have forecast on."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from math import ceil, floor, gcd
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.core.values import WEIGHT
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards.contest_groups import ContestScores
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, product_quotients, sums_of_squares
from forecast_ledger.projections.core.column_values import POINTS
from forecast_ledger.projections.core.estimates import matrix_product
from forecast_ledger.projections.core.sorting import stable_order
from forecast_ledger.projections.scores import coverage
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.projections.scores.score_policies import kernel_of, lower_is_better
from forecast_ledger.projections.uncertainty.confidence_sequences import empirical_bernstein, normal_mixture
from forecast_ledger.projections.uncertainty.draws import multiplicities, signs
from forecast_ledger.projections.uncertainty.intervals import ends
from forecast_ledger.projections.uncertainty.replicates import check_range, check_size, units_of, weighted

PERMUTATIONS = 999
MOST_PRODUCTS = 10**12  # pairs x units x replicates: some minutes
_NUMBERS = 1 << 22  # in an array: pairs at a time x replicates or questions
_SQUARED = 1 << 48  # numbers below it can be squared


class Pair(NamedTuple):
    """Two participants compared; differences in 1e-9 points, above 0 if the first is better.

    first, second: rows of the board. questions: on which both have a score; won, lost: on which the first has the
    better, or the worse. difference: the weighted mean of the differences. interval: its percentile interval; None if
    no replicate has a common question. p: of the permutation test, and adjusted for the number of pairs, in 1e-3.
    hoeffding, bernstein: bounds of the mean expected difference that hold at every moment at once; None if scores have
    no bounds.
    """

    first: int
    second: int
    questions: int
    won: int
    lost: int
    difference: int
    interval: tuple[int, int] | None
    p: int
    adjusted: int
    hoeffding: tuple[int, int] | None
    bernstein: tuple[int, int] | None


class _Season(NamedTuple):
    """The scores of a contest as matrices; its questions in the order in which they were settled.

    score: weight x score, 1e-9, the better the larger, shape (p, q). answered: shape (p, q). weight: shape (q,), in
    `unit` x 1e-6. units: the questions in the order of their units; begins: of each unit among them. times, flips:
    shape (u, b). span: of the difference of two scores x weight on each question, 1e-9; None without bounds.
    """

    rules: RuleSet
    score: Int64Array
    answered: BoolArray
    weight: Int64Array
    unit: int
    units: Int64Array
    begins: Int64Array
    times: Int64Array
    flips: Int64Array
    span: list[int] | None


def pairs(rules: RuleSet, scored: ContestScores, place: Int64Array, settled: Int64Array, seed: bytes) -> list[Pair]:
    """Return the pairs of a board's rows with a common question, in order.

    place: the row of the board of each participant code, -1 without one, shape (c,). settled: the log position at which
    each question was settled, shape (q,). Raises Refused(out_of_range): too many participants or questions, or scores
    too large.

    The interval is that of `intervals`, with the mean difference as the statistic. The test turns the signs of the
    differences of a unit, a question or a group of questions, at random; p is (1 + replicates in which the sum is as
    far from 0) / (1 + replicates), adjusted by Holm's method.
    Source: Fisher (1935), The Design of Experiments, section 21; Phipson and Smyth (2010), Statistical Applications in
    Genetics and Molecular Biology 9(1):39, doi:10.2202/1544-6115.1585; Holm (1979), Scandinavian Journal of Statistics
    6(2):65-70.
    """
    people = int(place.max(initial=-1)) + 1
    if people < 2 or not (scored.questions.weight > 0).any():
        return []
    season = _season(rules, scored, place, settled, seed)
    found = [pair for first, second in _chunks(season, people) for pair in _compared(season, first, second)]
    adjusted = holm([pair.p for pair in found])
    return [pair._replace(adjusted=p) for pair, p in zip(found, adjusted, strict=True)]


def holm(p_values: Sequence[int], whole: int = PERMUTATIONS + 1) -> list[int]:
    """Return p-values adjusted by Holm's method; p-values and results are in 1 / whole.

    >>> holm([10, 40, 30, 5], 1_000)
    [30, 60, 60, 20]
    """
    adjusted, greatest = [0] * len(p_values), 0
    for number, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        greatest = max(greatest, min((len(p_values) - number) * p_values[index], whole))
        adjusted[index] = greatest
    return adjusted


def _season(rules: RuleSet, scored: ContestScores, place: Int64Array, settled: Int64Array, seed: bytes) -> _Season:
    questions, rows, units = scored.questions, scored.rows, units_of(scored)
    people, count = int(place.max()) + 1, sum(units.strata)
    products = people * (people - 1) // 2 * count * (rules.replicates + PERMUTATIONS)
    check_size(people, max(count, len(units.unit)), rules.replicates)
    if products > MOST_PRODUCTS:
        detail = f"{people:,} participants and {count:,} questions are too many to compare in pairs"
        raise Refused("out_of_range", "pairwise", None, detail)
    counted = np.flatnonzero(units.unit >= 0)
    counted = counted[stable_order(settled[counted])]
    column = np.full(len(units.unit), -1)
    column[counted] = np.arange(len(counted))
    kept = np.flatnonzero((column[rows.question] >= 0) & (place[rows.participant] >= 0))
    own = rows.rows(kept)
    at = (place[own.participant], column[own.question])
    score, answered = np.zeros((people, len(counted)), np.int64), np.zeros((people, len(counted)), bool)
    points = weighted(coverage.points(rules, questions, own).published(), questions.weight[own.question])
    check_range(2 * int(np.abs(points).max(initial=0)) * len(counted))
    score[at], answered[at] = -points if lower_is_better(rules) else points, True
    weight = questions.weight[counted]
    unit = gcd(WEIGHT, *weight.tolist())
    order = stable_order(units.unit[counted])
    return _Season(
        rules,
        score,
        answered,
        weight // unit,
        unit,
        order,
        np.searchsorted(units.unit[counted][order], np.arange(count)),
        multiplicities(seed, rules.replicates, units.strata).T,
        signs(seed, PERMUTATIONS, count).T,
        _spans(rules, scored, counted),
    )


def _spans(rules: RuleSet, scored: ContestScores, counted: Int64Array) -> list[int] | None:
    """Return weight x the range of the scores on each question, 1e-9, rounded up; None if one has no bounds."""
    spans = []
    for number in counted.tolist():
        questions, kernel = scored.questions, KERNELS[kernel_of(rules, scored.questions.answers[number].question)]
        if rules.reference != "none" or kernel.worst is None or not kernel.lower_is_better:
            return None
        points = Fraction(kernel.worst * int(questions.unit[number]), questions.per_point[number])
        spans.append(ceil(points * POINTS * Fraction(int(questions.weight[number]), WEIGHT)))
    return spans


def _chunks(season: _Season, people: int) -> Iterator[tuple[Int64Array, Int64Array]]:
    """Yield the pairs of rows, in order, as many at a time as fit in memory."""
    first, second = np.triu_indices(people, 1)
    size = max(_NUMBERS // max(season.rules.replicates, season.score.shape[1]), 1)
    for begin in range(0, len(first), size):
        yield first[begin : begin + size], second[begin : begin + size]


def _compared(season: _Season, first: Int64Array, second: Int64Array) -> Iterator[Pair]:
    both = season.answered[first] & season.answered[second]
    met = both.any(axis=1)
    first, second, both = first[met], second[met], both[met]
    difference = np.where(both, season.score[first] - season.score[second], 0)
    by_unit = np.add.reduceat(difference[:, season.units], season.begins, axis=1)
    weights = both * season.weight
    sums, over = difference.sum(axis=1), weights.sum(axis=1)
    means = _means(season, sums, over)
    intervals = _intervals(season, by_unit, np.add.reduceat(weights[:, season.units], season.begins, axis=1))
    turned = np.abs(matrix_product(by_unit, season.flips)) >= np.abs(sums)[:, None]
    p_values = 1 + turned.sum(axis=1)
    hoeffding, bernstein = _sequences(season, both, difference, over)
    yield from map(
        Pair,
        first.tolist(),
        second.tolist(),
        both.sum(axis=1).tolist(),
        (difference > 0).sum(axis=1).tolist(),
        (difference < 0).sum(axis=1).tolist(),
        means.tolist(),
        intervals,
        p_values.tolist(),
        [0] * len(p_values),
        hoeffding,
        bernstein,
    )


def _means(season: _Season, sums: Int64Array, over: Int64Array) -> Int64Array:
    """Return sums of weight x score / sums of weights, rounded half-even. over: above 0, in the unit of weights."""
    factor = WEIGHT // season.unit
    check_range(int(over.max(initial=0)) * factor)
    return product_quotients(sums, factor, over)


def _intervals(season: _Season, by_unit: Int64Array, weights: Int64Array) -> list[tuple[int, int] | None]:
    over = matrix_product(weights, season.times)
    means = _means(season, matrix_product(by_unit, season.times), np.maximum(over, 1))
    return ends(means, over > 0, season.rules.level_ppm)


def _sequences(
    season: _Season, both: BoolArray, difference: Int64Array, over: Int64Array
) -> tuple[list[Any], list[Any]]:
    """Return the bounds of each pair's mean that hold at every moment: normal mixture, empirical Bernstein."""
    if season.span is None or max(season.span) >= _SQUARED:
        return [None] * len(both), [None] * len(both)
    largest, alpha = max(season.span), Fraction(10**6 - season.rules.level_ppm, 10**6)
    counts = {span: both[:, [each == span for each in season.span]].sum(axis=1).tolist() for span in {*season.span}}
    before: Int64Array = np.cumsum(difference, axis=1) - difference
    known: Int64Array = np.cumsum(both, axis=1) - both
    varied = sums_of_squares(np.where(both, difference - before // np.maximum(known, 1), 0))
    mixture = cache(partial(normal_mixture, alpha=alpha))
    weights = season.weight.tolist()
    possible = max(-(-span * WEIGHT // (each * season.unit)) for span, each in zip(season.span, weights, strict=True))
    hoeffding, bernstein = [], []
    for number, (total, weight) in enumerate(zip(difference.sum(axis=1).tolist(), over.tolist(), strict=True)):
        around = partial(_around, largest, possible, total, weight * season.unit)
        time = sum(span**2 * pairs[number] for span, pairs in counts.items())
        hoeffding.append(around(mixture(Fraction(time, largest**2))))
        bernstein.append(around(empirical_bernstein(Fraction(varied[number], largest**2), alpha)))
    return hoeffding, bernstein


def _around(largest: int, possible: int, total: int, weight: int, radius: Decimal) -> tuple[int, int]:
    """Return (total -+ radius x the largest span) / weight, 1e-9, rounded outwards, within what is possible."""
    wide = WIDE.multiply(radius, Decimal(largest))
    low, high = (
        WIDE.divide(WIDE.multiply(step(Decimal(total), wide), Decimal(WEIGHT)), Decimal(weight))
        for step in (WIDE.subtract, WIDE.add)
    )
    return max(floor(low), -possible), min(ceil(high), possible)
