"""Intervals of scores and prizes: the board of a contest in each replicate of its questions."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import WIDE, half_even
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards.leaderboard import TAKES, BoardRow, Pair
from forecast_ledger.projections.boards.prizes import divide
from forecast_ledger.projections.boards.totals import score_labels
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, int64_array, stable_order
from forecast_ledger.projections.core.columns import POINTS
from forecast_ledger.projections.core.estimates import Estimated
from forecast_ledger.projections.core.powers import ZERO, Magnitude
from forecast_ledger.projections.core.proportions import Between, InDoubt, Number, magnitudes_to_integers
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.scored_questions import lower_is_better
from forecast_ledger.projections.scores.time_weighted import ContestScores
from forecast_ledger.projections.studies.clusters import units_of
from forecast_ledger.projections.studies.estimates import Near, above_least, divided, near_numbers
from forecast_ledger.projections.studies.grounds import Grounds, standards_of
from forecast_ledger.projections.studies.replicates import (
    FRACTION_BITS,
    Draws,
    Rows,
    Totals,
    check_size,
    coverages_of,
    drawn_coverages,
    drawn_totals,
    draws_of,
    rows_of,
    totals_of,
)
from forecast_ledger.projections.studies.resampling import Drawn, Units, drawn_ends, ends

_CELLS = 1 << 19  # in an array: rows of the board x some replicates
_DIGITS = 40  # of the smallest take
_FEW = 12  # units, of which draws are often alike
_CUT = 90  # bits: by less than 2^-90 of itself, the bound of a take with 30 digits is off


class ResampledBoard(NamedTuple):
    """The boards of all replicates, shape (p, b), in the order of the board's rows.

    total: 1e-9. first, best: whether a row has the rank 1, and one of the best 5%; certain for rows of which something
    is said. prize: 1e-6. paid: which rows can win a prize, shape (p,). grounds: what the rows rest on.
    """

    total: Drawn
    first: BoolArray
    best: BoolArray
    prize: Int64Array
    paid: BoolArray
    grounds: Grounds


class _Counted(NamedTuple):
    """The scores of a contest that count, what is drawn, and what the rows of the board rest on."""

    units: Units
    rows: Rows
    grounds: Grounds


def _counted(rules: RuleSet, scored: ContestScores, board: Sequence[BoardRow], board_row: Int64Array) -> _Counted:
    units = units_of(rules, scored)
    rows = rows_of(rules, scored, units, board_row)
    return _Counted(units, rows, standards_of(rules, scored, units).grounds(rows.owner, rows.unit, len(board)))


def resample(
    contest: Contest, scored: ContestScores, board: Sequence[BoardRow], board_row: Int64Array, seed: bytes
) -> ResampledBoard:
    """Draw the questions of a contest again, and return the boards of all replicates.

    Who is ranked and who can win a prize is as on the board. board_row: the row of the board of each participant code,
    -1 without one, shape (c,). Raises Refused(out_of_range): too many participants or questions, or scores too large.
    """
    return _resampled(contest, scored, board, _counted(contest.opened.rules, scored, board, board_row), seed)


def _resampled(
    contest: Contest, scored: ContestScores, board: Sequence[BoardRow], counted: _Counted, seed: bytes
) -> ResampledBoard:
    rules, (units, every, grounds) = contest.opened.rules, counted
    check_size(len(board), units.size, rules.replicates)
    times, which = _distinct(units.times(seed, rules.replicates))
    rows, alike = _without_copies(every, len(board))
    draws = draws_of(scored, units, times, int(alike.max()) + 1)
    total = drawn_totals(rules, rows, draws)
    ranked, paid, pool = np.flatnonzero([row.rank is not None for row in board]), _by_id(board), contest.opened.pool
    told, places = np.array([not each for each in grounds.withheld], bool), (1, best_ranks(len(ranked)))
    leads, prize = np.zeros((2, len(board), len(times)), bool), np.zeros((len(board), len(times)), np.int64)
    by_take, has_takes = rules.rank_by == "take", TAKES[rules.take].between is not None
    doubtful, able = list[int](), np.zeros(len(board), bool)
    able[paid] = has_takes and pool > 0
    for at in _blocks(len(times), len(board)):
        worth, takes = total.at(at).times(-1 if lower_is_better(rules) else 1), None
        if has_takes and (by_take or pool):
            takes = _takes(rules, total.at(at), drawn_coverages(rows, draws._replace(times=times[at])))
        if (ranking := takes if by_take else worth) is not None:
            leads[:, ranked[:, None], at] = leading(ranking, alike[ranked], told[ranked], places)
        if takes is not None and pool:
            amounts, certain = _near_prizes(contest, takes.near.take(alike[paid]))
            prize[paid[:, None], at] = amounts
            doubtful += at[~certain].tolist()
    for at in _blocks(len(doubtful), len(board)):
        replicates = int64_array(doubtful)[at]
        prize[paid[:, None], replicates] = _prizes(contest, rows, draws._replace(times=times[replicates]), alike[paid])
    (first, best), prize = leads[:, :, which], prize if prize.shape[1] == len(which) else prize[:, which]
    return ResampledBoard(_each(total, alike, which), first, best, prize, able, grounds)


def _blocks(columns: int, rows: int) -> Iterator[Int64Array]:
    """Yield the indices of columns, so many at a time that arrays are not large."""
    size = max(_CELLS // max(rows, 1), 1)
    return (np.arange(begin, min(begin + size, columns)) for begin in range(0, columns, size))


def _each(total: Drawn, alike: Int64Array, which: Int64Array) -> Drawn:
    """Return the totals of all rows in all replicates; what is kept as it is needs no copy."""
    rows = total if len(total.defined) == len(alike) else total.take(alike)
    return rows if rows.defined.shape[1] == len(which) else rows.at(which)


def _without_copies(rows: Rows, people: int) -> tuple[Rows, Int64Array]:
    """Return the scores of one of those who have the same scores, and for each row of the board, whose they are."""
    columns = np.stack(
        [
            *(rows.unit, rows.kind, rows.weight),
            *(
                word
                for column in (rows.score.numbers, rows.covered.numbers)
                for word in (*column.numerators, column.divisor_of)
            ),
        ],
        axis=1,
    )
    order = stable_order(rows.owner)
    ends = np.searchsorted(rows.owner[order], np.arange(people + 1)).tolist()
    codes: dict[bytes, int] = {}
    kept = list[Int64Array]()
    alike = np.empty(people, np.int64)
    for number in range(people):
        owner_rows = order[ends[number] : ends[number + 1]]
        alike[number] = codes.setdefault(columns[owner_rows].tobytes(), len(codes))
        if alike[number] == len(kept):
            kept.append(owner_rows)
    fewer = rows.take(np.concatenate(kept))
    return fewer._replace(owner=alike[fewer.owner]), alike


def _distinct(drawn: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the draws that differ, shape (d, units), and for each replicate its index among them.

    Many units are hardly ever drawn twice alike, so that all draws are kept as they are.
    """
    if drawn.shape[1] > _FEW:
        return drawn, np.arange(len(drawn))
    draws, replicate = np.unique(drawn, axis=0, return_inverse=True)
    return draws, replicate.reshape(-1)


def _by_id(board: Sequence[BoardRow]) -> Int64Array:
    """Return the rows that can win a prize, in order of id."""
    able = [number for number, row in enumerate(board) if row.take is not None and not row.excluded]
    return int64_array(sorted(able, key=lambda number: board[number].participant))


def leading(worth: Drawn, alike: Int64Array, told: BoolArray, places: Sequence[int]) -> BoolArray:
    """Return whether a row is among the first in each replicate, the largest number first, shape (places, p, b).

    A row is among the first n if fewer than n numbers are larger; undefined ones are last. alike: the rows of `worth`
    that are compared, shape (p,). places: each at most p. Where floats leave open who is among the first, all of those
    are said to be, unless one of them is `told`, shape (p,).
    """
    result = np.zeros((len(places), len(alike), worth.defined.shape[1]), bool)
    if not len(alike):
        return result
    defined = worth.defined.T[:, alike]
    value = np.where(defined, worth.near.value.T[:, alike], -np.inf)
    guard = np.where(defined, worth.near.guard.T[:, alike], 0)
    low, high = value - guard, value + guard
    name = np.where(defined, alike, -1)
    for number, place in enumerate(places):
        least, most = (np.partition(ends, -place, axis=1)[:, -place, None] for ends in (low, high))
        sure, near = low > most, (high >= least) & (low <= most)
        result[number] = (sure | near).T
        known = np.where(near, name, len(worth.defined)).min(axis=1) == np.where(near, name, -2).max(axis=1)
        known |= (least == most)[:, 0] & ~(near & (guard > 0)).any(axis=1)
        doubtful = np.flatnonzero(near[:, told].any(axis=1) & ~known)
        for column, rows, numbers in _exactly(worth, name, near, doubtful):
            edge = sorted(numbers, reverse=True)[place - 1 - int(sure[column].sum())]
            result[number, rows, column] = [each >= edge for each in numbers]
    return result


def _exactly(
    worth: Drawn, name: Int64Array, near: BoolArray, columns: Int64Array
) -> Iterator[tuple[int, Int64Array, list[Any]]]:
    """Yield replicates, the rows that are near in each, and their numbers to compare; undefined ones are the least."""
    columns_of: defaultdict[int, list[int]] = defaultdict(list)
    for column in columns.tolist():
        for row in {*name[column, near[column]].tolist()} - {-1}:
            columns_of[row].append(column)
    exact = {row: dict(zip(at, worth.exact(row, int64_array(at)), strict=True)) for row, at in columns_of.items()}
    for column in columns.tolist():
        rows = np.flatnonzero(near[column])
        yield column, rows, [(row >= 0, row >= 0 and exact[row][column]) for row in name[column, rows].tolist()]


def _takes(rules: RuleSet, total: Drawn, coverage: Drawn) -> Drawn:
    """Return numbers in proportion to the takes of each replicate; exact ones are the takes.

    Powers are of totals less the largest of a replicate, so that none is too large for a float.
    """
    take, plus = TAKES[rules.take], np.zeros(total.near.value.shape[1])
    if rules.take != "positive_square":
        plus = total.near.value.max(axis=0, initial=0)
    columns = (near_numbers(near, POINTS, less) for near, less in ((total.near, plus), (coverage.near, 0 * plus)))
    of_each = (Estimated(*numbers, _raise_doubt) for numbers in columns)

    def exact(row: int, at: Int64Array) -> list[Magnitude]:
        pairs = zip(total.exact(row, at), coverage.exact(row, at), strict=True)
        return [exact_take(rules, *pair) for pair in pairs]

    takes = take.of(*of_each)
    value, guard = (takes or Estimated(0 * total.near.value, 0 * total.near.value, _raise_doubt))[:2]
    return Drawn(Near(value, guard), np.ones_like(total.defined), exact)


def exact_take(rules: RuleSet, total: Fraction, coverage: Fraction) -> Magnitude:
    """Return a take. total, coverage: 1e-9."""
    worth = TAKES[rules.take].worth
    return worth(Fraction(total, POINTS), Fraction(coverage, POINTS)) if worth else ZERO


def _raise_doubt(rows: Int64Array) -> list[Fraction]:
    raise InDoubt(rows)


def _near_prizes(contest: Contest, takes: Near) -> tuple[Int64Array, BoolArray]:
    """Return the prizes of takes in order of id, 1e-6, shape (p, b), and in which replicates they are certain."""
    rules, unit, pool = contest.opened.rules, contest.opened.payable_unit, contest.opened.pool
    value, guard = (np.ascontiguousarray(ends.T) for ends in takes)
    sure = np.ones(len(value), bool)
    if rules.least_prize_micros and len(takes.value):
        kept, sure = above_least(
            Near(value, guard), pool, rules.least_prize_micros, at_once=rules.least_prize_passes == "one"
        )
        value, guard = np.where(kept, value, 0), np.where(kept, guard, 0)
    counts, certain = divided(Near(value, guard), pool // unit)
    return counts.T * unit, certain & sure


def _prizes(contest: Contest, rows: Rows, draws: Draws, paid: Int64Array) -> Int64Array:
    """Return the prizes of some rows, 1e-6, by bounds, and where these leave a doubt, by takes."""
    rules = contest.opened.rules
    totals, coverages = totals_of(rules, rows, draws), coverages_of(rows, draws)
    takes = _takes(rules, totals.drawn(), coverages.drawn())  # nearer than those of floats alone
    prizes, certain = _near_prizes(contest, takes.near.take(paid))
    for number, bounded in _bounded_takes(rules, totals, coverages):
        for candidate in () if certain[number] else bounded:
            with suppress(InDoubt):
                prizes[:, number] = divide(contest, candidate(paid.tolist()))[1]
                break
    return prizes


_Paying = Callable[[list[int]], list[Number]]  # numbers in proportion to takes, 0 below 1e-60 of their largest


def _bounded_takes(rules: RuleSet, totals: Totals, coverages: Totals) -> Iterator[tuple[int, Iterator[_Paying]]]:
    """Yield, for each replicate, its number, and what returns bounds of the takes of some, and then exact takes."""
    columns = zip(*(each.T.tolist() for each in (*totals.fixed[:2], *coverages.fixed[:2])), strict=True)
    for number, column in enumerate(columns):
        pairs = [
            ((total, total + width), (part, part + wide)) for total, width, part, wide in zip(*column, strict=True)
        ]
        yield number, _in_turn(rules, pairs, partial(_exact_takes, rules, totals, coverages, number))


def _in_turn(rules: RuleSet, pairs: list[tuple[Pair, Pair]], exact: _Paying) -> Iterator[_Paying]:
    between = TAKES[rules.take].between
    if between is not None:
        takes = [between(*pair, POINTS << FRACTION_BITS) for pair in pairs]
        bounds = [high and Between(low, high, name) for name, (low, high) in enumerate(_integers(takes))]
        yield lambda names: _without(_small(takes, names), bounds, names)
    yield exact


def _integers(pairs: Sequence[Any]) -> list[Pair]:
    """Return bounds as integers in proportion to them."""
    lows = [low.adjusted() for low, _ in pairs if isinstance(low, Decimal) and low]
    if not lows:
        return [(int(low), int(high)) for low, high in pairs]
    scale, bounds = _DIGITS - min(lows), []
    for low, high in ((int(each.scaleb(scale, WIDE)) for each in pair) for pair in pairs):
        bounds.append((max(low - (low >> _CUT) - 1, 0), high and high + (high >> _CUT) + 1))
    return bounds


def _without(small: set[int], takes: list[Number], names: list[int]) -> list[Number]:
    return [0 if name in small else takes[name] for name in names]


def _small(pairs: Sequence[Any], names: list[int]) -> set[int]:
    """Return which takes of some are below 1e-60 of their largest."""
    if not any(isinstance(pairs[name][0], Decimal) for name in names):
        return set()
    largest = max(pairs[name][0].adjusted() for name in names)
    return {name for name in names if pairs[name][1].adjusted() <= largest - 60}


def _exact_takes(rules: RuleSet, totals: Totals, coverages: Totals, number: int, names: list[int]) -> list[Number]:
    at = int64_array([number])
    takes = {
        name: exact_take(rules, *totals.exact(name, at), *coverages.exact(name, at)) for name in dict.fromkeys(names)
    }
    return [*magnitudes_to_integers([takes[name] for name in names])]


_BEST = 20  # the best 5%: one in so many


class Interval(NamedTuple):
    """How sure one row of a board is; scores in 1e-9, prizes in 1e-6, shares of replicates in 1e-9.

    clusters: in which the row has a score. withheld: why there is no interval of the row, a key of WITHHELD; else "".
    score, prize: low and high, the order statistics that the level asks for. score: None if no replicate has a total.
    first, best: None if the row has no rank. prize: None if it cannot win one.
    """

    row: BoardRow
    clusters: int
    withheld: str
    score: tuple[int, int] | None
    first: int | None
    best: int | None
    prize: tuple[int, int] | None


def board_rows(facts: Facts, board: Sequence[BoardRow]) -> Int64Array:
    """Return the row of a board of each participant code, -1 without one, shape (c,)."""
    rows = {row.participant: number for number, row in enumerate(board)}
    return int64_array([rows.get(label, -1) for label in score_labels(facts)])


def intervals(
    contest: Contest, scored: ContestScores, board: Sequence[BoardRow], board_row: Int64Array, seed: bytes
) -> list[Interval]:
    """Return the intervals of a board, in its order; none if no question counts.

    board_row: the row of the board of each participant code, -1 without one, shape (c,). Raises
    Refused(out_of_range): too many participants or questions, or scores too large.

    Percentile intervals of a bootstrap over clusters of questions, one draw for all participants, expanded by
    `expanded_level`. A row that has too few clusters or answers has no interval; see `Standards`.
    Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, ISBN 0-412-04231-2, chapter 13; the code of
    ForecastBench's leaderboard draws questions 1,999 times, too, within rounds and sources, and takes percentiles.
    """
    rules = contest.opened.rules
    if not board or not (scored.questions.weight > 0).any():
        return []
    counted = _counted(rules, scored, board, board_row)
    grounds = counted.grounds
    every = [
        Interval(row, clusters, withheld, None, None, None, None)
        for row, clusters, withheld in zip(board, grounds.clusters.tolist(), grounds.withheld, strict=True)
    ]
    told = np.flatnonzero([not withheld for withheld in grounds.withheld])
    if not len(told):
        return every
    drawn = _resampled(contest, scored, board, counted, seed)
    levels = grounds.levels(rules.level_ppm)[told]
    scores, prizes = drawn_ends(drawn.total.take(told), levels), _prize_ends(drawn.prize, told, levels)
    for number, score, prize in zip(told.tolist(), scores, prizes, strict=True):
        if withheld := grounds.withheld_of(number, score):
            every[number] = every[number]._replace(withheld=withheld)
            continue
        is_ranked = board[number].rank is not None
        every[number] = every[number]._replace(
            score=score,
            first=_share(drawn.first[number]) if is_ranked else None,
            best=_share(drawn.best[number]) if is_ranked else None,
            prize=prize if drawn.paid[number] else None,
        )
    return every


def _prize_ends(prize: Int64Array, rows: Int64Array, levels: Int64Array) -> list[tuple[int, int]]:
    """Return the ends of the prizes of some rows, at the level of each."""
    found = dict[int, tuple[int, int]]()
    for level in np.unique(levels).tolist():
        own = rows[levels == level]
        found |= zip(own.tolist(), ends(prize[own], level), strict=True)
    return [found[row] for row in rows.tolist()]


def best_ranks(ranked: int) -> int:
    """Return how many ranks are the best 5% of those that are ranked, at least one.

    >>> [best_ranks(ranked) for ranked in (1, 20, 21, 40, 41)]
    [1, 1, 2, 2, 3]
    """
    return -(-ranked // _BEST)


def _share(replicates: BoolArray) -> int:
    return half_even(int(replicates.sum()) * POINTS, len(replicates))
