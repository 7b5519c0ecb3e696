"""Adjusted scores in replicates of a contest's questions: the effects of questions are fitted anew in each.

The effects x of participants and y of questions solve Σ weight (x + y - score) = 0, for each of them. The equations of
questions are solved first: y is the mean of score - x. As many equations remain as there are participants.
"""

from fractions import Fraction
from functools import cache
from itertools import chain
from math import gcd
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards.contest_groups import ContestScores
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, distinct
from forecast_ledger.projections.core.columns import POINTS
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.studies.clusters import units_of
from forecast_ledger.projections.studies.estimates import Design, refitted
from forecast_ledger.projections.studies.grounds import standards_of
from forecast_ledger.projections.studies.replicates import check_size
from forecast_ledger.projections.studies.resampling import Drawn, Ends, drawn_ends

MOST_PEOPLE = 200  # with more, the equations of all replicates take minutes
MOST_PRODUCTS = 10_000_000  # participants x participants x units
_SELDOM = 20  # an adjusted score that more than one replicate of so many does not have has no interval


class AdjustedInterval(NamedTuple):
    """How sure an adjusted score is. clusters, withheld: as in `grounds`. ends: 1e-9; None if nothing is said."""

    clusters: int
    withheld: str
    ends: Ends


def _adjusted(design: Design, scores: list[Fraction], times: tuple[int, ...]) -> dict[int, Fraction]:
    """Return the adjusted scores of the rows that are drawn, which common questions connect. times: by unit."""
    by_question: dict[int, dict[int, Fraction]] = {}
    for row, question, score in zip(design.owner.tolist(), design.question.tolist(), scores, strict=True):
        if times[design.unit[question]]:
            by_question.setdefault(question, {})[row] = score
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
    of `intervals`: expanded percentiles, withheld for the same reasons.
    Source: the code of ForecastBench's leaderboard, which fits a two-way model in each replicate.
    """
    units, people = units_of(rules, scored), int(row_of.max(initial=-1)) + 1
    in_part = in_part & (units.unit >= 0)
    rows = scored.rows.rows(np.flatnonzero(in_part[scored.rows.question] & (row_of[scored.rows.participant] >= 0)))
    owner = row_of[rows.participant]
    grounds = standards_of(rules, scored, units).grounds(owner, units.unit[rows.question], people)
    ends: list[Ends]
    ends, reasons = [None] * people, ["many_participants"] * people
    if people <= MOST_PEOPLE and people**2 * units.size <= MOST_PRODUCTS:
        check_size(people, units.size, rules.replicates)
        codes, question = distinct(rows.question)
        scores = [score * POINTS for score in time_weighted.points(rules, scored.questions, rows).exact()]
        weight = scored.questions.weight[codes]
        design = Design(owner, question, units.unit[codes], weight // gcd(*weight.tolist()), people)
        drawn = _drawn(design, scores, units.times(seed, rules.replicates))
        ends = drawn_ends(drawn, grounds.levels(rules.level_ppm))
        seldom = drawn.defined.sum(axis=1) * _SELDOM < (_SELDOM - 1) * rules.replicates
        reasons = ["apart" * rare or grounds.withheld_of(row, ends[row]) for row, rare in enumerate(seldom.tolist())]
    said = [reason or other for reason, other in zip(grounds.withheld, reasons, strict=True)]
    return [
        AdjustedInterval(clusters, withheld, None if withheld else interval)
        for clusters, withheld, interval in zip(grounds.clusters.tolist(), said, ends, strict=True)
    ]


def _drawn(design: Design, scores: list[Fraction], times: Int64Array) -> Drawn:
    """Return the adjusted scores in all replicates. times: how often each unit is drawn, shape (b, u)."""
    near, defined = refitted(design, scores, times)

    @cache  # of few units, many replicates draw the same ones as often
    def adjusted(times: tuple[int, ...]) -> dict[int, Fraction]:
        return _adjusted(design, scores, times)

    return Drawn(near, defined, lambda row, at: [adjusted(tuple(each))[row] for each in times[at].tolist()])
