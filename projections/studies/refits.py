"""Adjusted scores in replicates of a contest's questions: the effects of questions are fitted anew in each.

The effects x of participants and y of questions solve Σ weight (x + y - score) = 0, for each of them. The equations of
questions are solved first: y is the mean of score - x. As many equations remain as there are participants.
"""

from fractions import Fraction
from functools import cache, partial
from itertools import chain, pairwise
from math import gcd
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, distinct, int64_array
from forecast_ledger.projections.core.columns import POINTS
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.scored_questions import lower_is_better
from forecast_ledger.projections.scores.time_weighted import ContestScores
from forecast_ledger.projections.studies.adjusted_ranks import FINE, Refits, rank_sets_of_refits
from forecast_ledger.projections.studies.clusters import units_of
from forecast_ledger.projections.studies.estimates import Design, Quotient, refitted
from forecast_ledger.projections.studies.grounds import Grounds, standards_of
from forecast_ledger.projections.studies.replicates import check_size
from forecast_ledger.projections.studies.resampling import Drawn, Ends, drawn_ends
from forecast_ledger.projections.studies.two_way import Cells, fit

MOST_PEOPLE = 200  # with more, the equations of all replicates take minutes
MOST_PRODUCTS = 10_000_000  # participants x participants x units
_FINER = FINE << 192  # units of numbers with guard digits
_SELDOM = 20  # an adjusted score that more than one replicate of so many does not have has no interval


class AdjustedInterval(NamedTuple):
    """How sure an adjusted score is. clusters, withheld: as in `grounds`; if nothing is said, the others are None.

    ends: 1e-9. rank_set, ranks: the best and the worst rank that replicates allow: for all at once, and for it alone.
    """

    clusters: int
    withheld: str
    ends: Ends
    rank_set: Ends
    ranks: Ends


def _adjusted(design: Design, scores: list[Quotient], times: tuple[int, ...]) -> dict[int, Fraction]:
    """Return the adjusted scores of the rows that are drawn, which common questions connect. times: by unit."""
    by_question: dict[int, dict[int, Fraction]] = {}
    for row, question, quotient in zip(design.owner.tolist(), design.question.tolist(), scores, strict=True):
        if times[design.unit[question]]:
            by_question.setdefault(question, {})[row] = Fraction(*quotient)
    index = {row: number for number, row in enumerate(sorted({*chain.from_iterable(by_question.values())}))}
    matrix = [[Fraction(0)] * (len(index) + 1) for _ in index]
    means, whole = Fraction(0), 0
    shares = dict.fromkeys(index, Fraction(0))
    for question, by_row in by_question.items():
        weight = int(design.weight[question] * times[design.unit[question]])
        mean, each = Fraction(sum(by_row.values()), len(by_row)), Fraction(weight, len(by_row))
        means, whole = means + weight * mean, whole + weight
        for row, score in by_row.items():
            line = matrix[index[row]]
            line[index[row]] += weight
            line[-1] += weight * (score - mean)
            shares[row] += each
            for other in by_row:
                line[index[other]] -= each
    solved = _solved([line[1:] for line in matrix[1:]])  # the first is 0
    effects = dict(zip(index, (Fraction(0), *solved), strict=True))
    common = Fraction(means - sum(share * effects[row] for row, share in shares.items()), whole)
    return {row: effect + common for row, effect in effects.items()}


def _solved(lines: list[list[Fraction]]) -> list[Fraction]:
    """Return the solution of equations, of which the last number of a line is the right side; none of them is spare."""
    for step, line in enumerate(lines):
        line[step:] = [Fraction(number, line[step]) for number in line[step:]]
        for other in lines[:step] + lines[step + 1 :]:
            if factor := other[step]:
                other[step:] = [term - factor * number for term, number in zip(other[step:], line[step:], strict=True)]
    return [line[-1] for line in lines]


def adjusted_intervals(
    rules: RuleSet, scored: ContestScores, row_of: Int64Array, in_part: BoolArray, seed: bytes
) -> list[AdjustedInterval]:
    """Return the intervals of the adjusted scores of those who are fitted in a part of a design, by row.

    row_of: the row of each participant code, -1 for the others, shape (c,). in_part: which questions are in the part,
    shape (q,). Raises Refused(out_of_range): too many questions.

    A replicate has no adjusted scores if its questions do not connect all who have a score in it. Intervals are those
    of `intervals`: expanded percentiles, withheld for the same reasons. Sets of ranks are of those who have one.
    Source: the code of ForecastBench's leaderboard, which fits a two-way model in each replicate.
    """
    units, people = units_of(rules, scored), int(row_of.max(initial=-1)) + 1
    in_part = in_part & (units.unit >= 0)
    rows = scored.rows.rows(np.flatnonzero(in_part[scored.rows.question] & (row_of[scored.rows.participant] >= 0)))
    owner = row_of[rows.participant]
    grounds = standards_of(rules, scored, units).grounds(owner, units.unit[rows.question], people)
    many = people > MOST_PEOPLE or people**2 * units.size > MOST_PRODUCTS
    intervals = [
        AdjustedInterval(clusters, withheld or "many_participants" * many, None, None, None)
        for clusters, withheld in zip(grounds.clusters.tolist(), grounds.withheld, strict=True)
    ]
    told = np.flatnonzero([not interval.withheld for interval in intervals])
    if not len(told):
        return intervals
    check_size(people, units.size, rules.replicates)
    codes, question = distinct(rows.question)
    scores = [*time_weighted.points(rules, scored.questions, rows).terms(POINTS)]
    weight = scored.questions.weight[codes]
    design = Design(owner, question, units.unit[codes], weight // gcd(*weight.tolist()), people)
    refits = _Refits(design, scores, units.times(seed, rules.replicates))
    drawn = refits.drawn.take(told)
    seldom = drawn.defined.sum(axis=1) * _SELDOM < (_SELDOM - 1) * rules.replicates
    ends = drawn_ends(drawn, grounds.levels(rules.level_ppm)[told])
    for row, ends_of_row, apart in zip(told.tolist(), ends, seldom.tolist(), strict=True):
        withheld = "apart" * apart or grounds.withheld_of(row, ends_of_row)
        intervals[row] = intervals[row]._replace(withheld=withheld, ends=None if withheld else ends_of_row)
    told = np.flatnonzero([not interval.withheld for interval in intervals])
    sign = -1 if lower_is_better(rules) else 1
    sets = rank_sets_of_refits(refits.of(told, grounds, sign), rules.level_ppm, people)
    for row, together, alone in zip(told.tolist(), *sets, strict=True):
        intervals[row] = intervals[row]._replace(rank_set=together, ranks=alone)
    return intervals


class _Refits:
    """Adjusted scores of the questions as they are, and then of replicates, 1e-9."""

    def __init__(self, design: Design, scores: list[Quotient], times: Int64Array) -> None:
        """times: how often each unit is drawn in each replicate, shape (b, u)."""
        self._times = np.concatenate([np.ones_like(times[:1]), times])
        self._near, self._defined = refitted(design, scores, self._times)
        self._design, self._scores, self._alike = design, scores, _alike(design, scores)
        self._count, self._sums = np.bincount(design.owner, minlength=design.people), cache(self._sums_by_unit)
        # Of few units, many replicates draw the same as often.
        self._finely = cache(partial(_rounded, design, scores, _finer(scores)))

    @property
    def drawn(self) -> Drawn:
        """Those of replicates."""
        every = Drawn(self._near, self._defined, self._exact)
        return every.at(np.arange(1, len(self._times)))

    def _exact(self, row: int, at: Int64Array) -> list[Fraction]:
        """Return those of a row, rounded to 1 / FINE; it is the mean of scores if there is one on every question."""
        times = self._times[at]
        if self._count[row] < len(self._design.unit):
            return [Fraction(self._finely(tuple(each))[row], FINE) for each in times.tolist()]
        sums, weights = self._sums(row)
        means = zip((times @ sums).tolist(), (times @ weights).tolist(), strict=True)
        return [Fraction(round(Fraction(total * FINE, weight)), FINE) for total, weight in means]

    def _sums_by_unit(self, row: int) -> tuple[NDArray[np.object_], Int64Array]:
        """Return Σ weight x score of a row by unit, and the weights of units, shape (u,) each."""
        design, sums = self._design, np.zeros(self._times.shape[1], object)
        weights = np.zeros(len(sums), np.int64)
        np.add.at(weights, design.unit, design.weight)
        for index in np.flatnonzero(design.owner == row).tolist():
            question = design.question[index]
            sums[design.unit[question]] += int(design.weight[question]) * Fraction(*self._scores[index])
        return sums, weights

    def of(self, rows: Int64Array, grounds: Grounds, sign: int) -> Refits:
        """Return those of some rows, times 1 or -1, where they all have one."""
        at = np.flatnonzero(self._defined[rows].all(axis=0))

        def exact(columns: Int64Array) -> NDArray[np.object_]:
            every = [self._finely(tuple(each)) for each in self._times[at[columns]].tolist()]
            return np.array([[sign * by_row[row] for by_row in every] for row in rows.tolist()], object)

        near = self._near.take(rows).at(at).times(sign)
        return Refits(near, exact, self._alike[rows], grounds.clusters[rows], grounds.strata)


def _alike(design: Design, scores: list[Quotient]) -> Int64Array:
    """Return a number for each row; rows with the same number have the same scores.

    Scores that are equal as fractions may be told apart, as they are if time is divided in other ways.
    """
    order = np.lexsort((design.question, design.owner))
    ends = np.searchsorted(design.owner[order], np.arange(design.people + 1)).tolist()
    codes: dict[tuple[bytes, tuple[Quotient, ...]], int] = {}
    rows = (order[begin:end] for begin, end in pairwise(ends))
    keys = ((design.question[own].tobytes(), tuple(map(scores.__getitem__, own.tolist()))) for own in rows)
    return int64_array([codes.setdefault(key, len(codes)) for key in keys])


def _finer(scores: list[Quotient]) -> NDArray[np.object_]:
    """Return scores with guard digits: the units of 1 / FINER that they have, rounded down."""
    return np.array([number * _FINER // divisor for number, divisor in scores], object)


def _rounded(
    design: Design, scores: list[Quotient], finer: NDArray[np.object_], times: tuple[int, ...]
) -> dict[int, int]:
    """Return what `_adjusted` returns, rounded half-even to 1 / FINE; numbers with guard digits decide, if they can."""
    drawn = np.flatnonzero(np.array(times)[design.unit[design.question]])
    drawn = drawn[np.argsort(design.owner[drawn], kind="stable")]
    question, (rows, starts) = design.question[drawn], np.unique(design.owner[drawn], return_index=True)
    weight = design.weight[question] * np.array(times)[design.unit[question]]
    [part] = fit(Cells(design.owner[drawn], question, finer[drawn].tolist(), weight), 1)
    effects = np.array([part.effects[each] for each in question.tolist()], object)
    totals = np.add.reduceat(weight.astype(object) * (finer[drawn] * part.denominator - effects), starts).tolist()
    weights = np.add.reduceat(weight, starts).tolist()
    by_row = dict[int, int]()
    for row, total, over in zip(rows.tolist(), totals, weights, strict=True):
        number = Fraction(total, part.denominator * over)
        low, high = (round(Fraction((number + off) * FINE, _FINER)) for off in (-part.off, part.off))
        if low != high:
            return {row: round(number * FINE) for row, number in _adjusted(design, scores, times).items()}
        by_row[row] = low
    return by_row
