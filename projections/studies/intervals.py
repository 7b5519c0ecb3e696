"""Intervals of scores and prizes: the board of a contest in each replicate of its questions."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecast_ledger.ledger.core.exact import WIDE, half_even
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards.leaderboard import TAKES, BoardRow, Pair
from forecast_ledger.projections.boards.prizes import divide
from forecast_ledger.projections.boards.totals import score_labels
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, int64_array, stable_order
from forecast_ledger.projections.core.columns import POINTS
from forecast_ledger.projections.core.estimates import Estimated
from forecast_ledger.projections.core.powers import ZERO
from forecast_ledger.projections.core.proportions import Between, InDoubt, Number, magnitudes_to_integers
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.scored_questions import lower_is_better
from forecast_ledger.projections.scores.time_weighted import ContestScores
from forecast_ledger.projections.studies.clusters import units_of
from forecast_ledger.projections.studies.estimates import near_column, square_shares
from forecast_ledger.projections.studies.grounds import Grounds, standards_of
from forecast_ledger.projections.studies.rank_sets import NO_SETS, RankSets, board_rank_sets
from forecast_ledger.projections.studies.replicates import (
    FRACTION_BITS,
    Rows,
    Totals,
    check_size,
    coverages_of,
    drawn_totals,
    draws_of,
    rows_of,
    totals_of,
)
from forecast_ledger.projections.studies.resampling import Drawn, Ends, drawn_ends, limits

_DIGITS = 40  # of the smallest take
_FEW = 12  # units, of which draws are often alike
_CUT = 90  # bits: by less than 2^-90 of itself, the bound of a take with 30 digits is off


class ResampledBoard(NamedTuple):
    """The boards of all replicates, shape (p, b), in the order of the board's rows.

    total: 1e-9. alike: a number for each row; rows with the same number have the same scores. rank: 0 for rows without
    a rank; certain where it is 1 or at the end of the best 5%, of rows of which something is said. prize: 1e-6. paid:
    which rows can win a prize, shape (p,). grounds: what the rows rest on.
    """

    total: Drawn
    alike: Int64Array
    rank: Int64Array
    prize: Int64Array
    paid: BoolArray
    grounds: Grounds


def resample(
    contest: Contest, scored: ContestScores, board: Sequence[BoardRow], board_row: Int64Array, seed: bytes
) -> ResampledBoard:
    """Draw the questions of a contest again, and return the boards of all replicates.

    Who is ranked and who can win a prize is as on the board. board_row: the row of the board of each participant code,
    -1 without one, shape (c,). Raises Refused(out_of_range): too many participants or questions, or scores too large.
    """
    rules, units = contest.opened.rules, units_of(contest.opened.rules, scored)
    check_size(len(board), units.size, rules.replicates)
    drawn, which = _distinct(units.times(seed, rules.replicates))
    every = rows_of(rules, scored, units, board_row)
    grounds = standards_of(rules, scored, units).grounds(every.owner, every.unit, len(board))
    rows, alike = _without_copies(every, len(board))
    draws = draws_of(scored, units, drawn, int(alike.max()) + 1)
    by_take = rules.rank_by == "take"
    for_takes = TAKES[rules.take].between is not None and (by_take or contest.opened.pool > 0)
    totals = totals_of(rules, rows, draws) if for_takes else None
    total = drawn_totals(rules, rows, draws) if totals is None else totals.drawn()
    ranked, paid = np.flatnonzero([row.rank is not None for row in board]), _by_id(board)
    rank, prize = np.zeros((2, len(board), len(drawn)), np.int64)
    if not by_take:
        worth = total.times(-1 if lower_is_better(rules) else 1)
        told = np.array([not grounds.withheld[row] for row in ranked.tolist()], bool)
        rank[ranked] = ranks(worth, alike[ranked], told, best_ranks(len(ranked)))
    able = np.zeros(len(board), bool)
    if totals is not None:
        able[paid] = contest.opened.pool > 0
        prize[paid], certain = _certain_prizes(contest, totals.take(alike[paid]))
        coverages = coverages_of(rows, draws)
        for number, near in _near_takes(rules, totals, coverages, np.flatnonzero(~certain)):
            with suppress(InDoubt):
                if by_take:
                    rank[ranked, number] = _near_ranks(near, alike[ranked])
                if contest.opened.pool:
                    prize[paid, number] = _near_prizes(contest, near.rows(alike[paid]))
                certain[number] = True
        for number, takes in _takes(rules, totals, coverages, np.flatnonzero(~certain)):
            for candidate in takes:
                with suppress(InDoubt):
                    if by_take:
                        rank[ranked, number] = _ranked([candidate.ranking[name] for name in alike[ranked].tolist()])
                    if contest.opened.pool:
                        prize[paid, number] = divide(contest, candidate.paying(alike[paid].tolist()))[1]
                    break
    return ResampledBoard(total.take(alike).at(which), alike, rank[:, which], prize[:, which], able, grounds)


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


def ranks(worth: Drawn, alike: Int64Array, told: BoolArray, best: int) -> Int64Array:
    """Return the ranks 1, 2, 2, 4 in each replicate, the largest number first, shape (p, b); undefined ones are last.

    alike: the rows of `worth` that are compared, shape (p,). Those whose order floats leave open share the first of
    their ranks, unless one of them is `told`, shape (p,), and that rank is 1 or some are within `best` and not all.
    """
    near, name = worth.near.take(alike), np.where(worth.defined[alike], alike[:, None], -1).astype(np.int32)
    lowest = near.value.min(initial=0) - 8 * near.guard.max(initial=0) - 1
    value = np.where(name < 0, lowest, near.value)
    order = np.argsort(-value, axis=0, kind="stable")
    ordered, close = np.take_along_axis(value, order, axis=0), np.zeros_like(order, bool)
    close[1:] = ordered[:-1] - ordered[1:] <= 2 * near.guard.max(axis=0, initial=0)
    in_order = np.maximum.accumulate(np.where(close, 0, np.arange(1, len(value) + 1)[:, None]), axis=0)
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, in_order, axis=0)
    edges = in_order[sorted({0, best - 1} & {*range(len(value))})]
    del near, value, order, ordered, close, in_order  # large
    for first in edges:
        _decide(worth, rank, name, first, told)
    return rank


def _decide(worth: Drawn, rank: Int64Array, name: NDArray[np.int32], first: Int64Array, told: BoolArray) -> None:
    """Put those apart who share a rank only because their numbers are near each other, if one of them is told.

    first: the rank that they share in each replicate, shape (b,).
    """
    shared = rank == first
    alike = np.where(shared, name, len(worth.defined)).min(axis=0) == np.where(shared, name, -1).max(axis=0)
    tied = list[tuple[int, Int64Array]]()
    columns_of: defaultdict[int, list[int]] = defaultdict(list)
    for column in np.flatnonzero(shared[told].any(axis=0) & ~alike).tolist():
        rows = np.flatnonzero(shared[:, column])
        tied.append((column, rows))
        for row in {*name[rows, column].tolist()}:
            columns_of[row].append(column)
    exact = {row: dict(zip(at, worth.exact(row, int64_array(at)), strict=True)) for row, at in columns_of.items()}
    for column, rows in tied:
        numbers = [exact[row][column] for row in name[rows, column].tolist()]
        rank[rows, column] += int64_array(_ranked(numbers)) - 1


def _ranked(numbers: Sequence[Number]) -> list[int]:
    """Return the ranks 1, 2, 2, 4 of numbers of any size, the largest first. Raises InDoubt if bounds leave a doubt."""
    result, rank = [0] * len(numbers), 0
    order = sorted(range(len(numbers)), key=numbers.__getitem__, reverse=True)
    for position, number in enumerate(order):
        if not position or numbers[number] != numbers[order[position - 1]]:
            rank = position + 1
        result[number] = rank
    return result


def _certain_prizes(contest: Contest, totals: Totals) -> tuple[Int64Array, BoolArray]:
    """Return prizes, 1e-6, and in which replicates they are certain: of squares, if there is no least prize."""
    rules, unit = contest.opened.rules, contest.opened.payable_unit
    if rules.take != "positive_square" or rules.rank_by == "take" or rules.least_prize_micros:
        return np.zeros(totals.defined.shape, np.int64), np.zeros(totals.defined.shape[1], bool)
    counts, certain = square_shares(totals.fixed.near(), contest.opened.pool // unit)
    return counts * unit, certain


def _near_takes(
    rules: RuleSet, totals: Totals, coverages: Totals, replicates: Int64Array
) -> Iterator[tuple[int, Estimated]]:
    """Yield, for each of some replicates, its number, and estimates of the takes, whose numbers raise InDoubt."""
    both = [each.fixed.near() for each in (totals, coverages)]
    for number in replicates.tolist():
        of_each = (near_column(near, number, POINTS, _raise_doubt) for near in both)
        takes = TAKES[rules.take].of(*of_each)
        if takes is not None:
            yield number, takes


def _raise_doubt(rows: Int64Array) -> list[Fraction]:
    raise InDoubt(rows)


def _near_ranks(takes: Estimated, alike: Int64Array) -> Int64Array:
    """Return the ranks 1, 2, 2, 4 of those with these numbers. Raises InDoubt if estimates leave a doubt."""
    names, which, counts = np.unique(alike, return_inverse=True, return_counts=True)
    order, first = takes.rows(names).in_order(np.zeros_like(names), names, falling=True)
    above = np.cumsum(counts[order]) - counts[order]
    ranks = np.empty_like(names)
    ranks[order] = np.maximum.accumulate(np.where(first, above, 0)) + 1
    in_order: Int64Array = ranks[which]
    return in_order


def _near_prizes(contest: Contest, takes: Estimated) -> Int64Array:
    """Return the prizes of takes in order of id, 1e-6. Raises InDoubt if estimates leave a doubt."""
    unit, start = contest.opened.payable_unit, np.zeros(min(len(takes.values), 1), np.int64)
    count = contest.opened.pool // unit
    if contest.opened.rules.least_prize_micros or count >> 52:
        raise InDoubt(count)
    parts, certain = takes.shares(start).apportioned(start, np.full(len(start), count))
    if not certain.all():
        raise InDoubt(count)
    return parts * unit


class _Takes(NamedTuple):
    """The takes of one replicate, of those whose scores differ: bounds, or exact.

    ranking: to be compared. paying: returns numbers in proportion to those of some, 0 below 1e-60 of their largest.
    """

    ranking: list[Number]
    paying: Callable[[list[int]], list[Number]]


def _takes(
    rules: RuleSet, totals: Totals, coverages: Totals, replicates: Int64Array
) -> Iterator[tuple[int, Iterator[_Takes]]]:
    """Yield, for each of some replicates, its number, and bounds of the takes, and then the exact takes."""
    columns = zip(*(each[:, replicates].T.tolist() for each in (*totals.fixed[:2], *coverages.fixed[:2])), strict=True)
    for number, column in zip(replicates.tolist(), columns, strict=True):
        pairs = [
            ((total, total + width), (part, part + wide)) for total, width, part, wide in zip(*column, strict=True)
        ]
        yield number, _in_turn(rules, pairs, partial(_exact_takes, rules, totals, coverages, number))


def _in_turn(rules: RuleSet, pairs: list[tuple[Pair, Pair]], exact: Callable[[], _Takes]) -> Iterator[_Takes]:
    between = TAKES[rules.take].between
    if between is not None:
        takes = [between(*pair, POINTS << FRACTION_BITS) for pair in pairs]
        ranking = [high and Between(low, high, name) for name, (low, high) in enumerate(_integers(takes))]
        yield _Takes(ranking, lambda names: _without(_small(takes, names), ranking, names))
    yield exact()


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


def _exact_takes(rules: RuleSet, totals: Totals, coverages: Totals, number: int) -> _Takes:
    worth, at = TAKES[rules.take].worth, int64_array([number])
    takes = []
    for name in range(len(totals.defined)):
        [total], [covered] = totals.exact(name, at), coverages.exact(name, at)
        takes.append(worth(Fraction(total, POINTS), Fraction(covered, POINTS)) if worth else ZERO)
    return _Takes(takes, lambda names: [*magnitudes_to_integers([takes[name] for name in names])])


_BEST = 20  # the best 5%: one in so many


class Interval(NamedTuple):
    """How sure one row of a board is; scores in 1e-9, prizes in 1e-6, shares of replicates in 1e-9.

    clusters: in which the row has a score. withheld: why there is no interval of the row, a key of WITHHELD; else "".
    score, prize: low and high, the order statistics that the level asks for. score: None if no replicate has a total.
    rank_set, first, best: None if the row has no rank. prize: None if it cannot win one. rank_set: the ranks that the
    data allow, for all rows at once; None as well if the row has scores in fewer than LEAST_CLUSTERS clusters, or if
    ranks follow takes that depend on coverage.
    """

    row: BoardRow
    clusters: int
    withheld: str
    score: tuple[int, int] | None
    rank_set: tuple[int, int] | None
    first: int | None
    best: int | None
    prize: tuple[int, int] | None


class BoardIntervals(NamedTuple):
    """The intervals of a board, and its sets of ranks, in which the differences are that would be significant."""

    rows: list[Interval]
    sets: RankSets


def board_rows(facts: Facts, board: Sequence[BoardRow]) -> Int64Array:
    """Return the row of a board of each participant code, -1 without one, shape (c,)."""
    rows = {row.participant: number for number, row in enumerate(board)}
    return int64_array([rows.get(label, -1) for label in score_labels(facts)])


def intervals(
    contest: Contest, scored: ContestScores, board: Sequence[BoardRow], board_row: Int64Array, seed: bytes
) -> BoardIntervals:
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
        return BoardIntervals([], NO_SETS)
    units, sets = units_of(rules, scored), board_rank_sets(contest, scored, board, board_row, seed)
    rows = rows_of(rules, scored, units, board_row)
    grounds = standards_of(rules, scored, units).grounds(rows.owner, rows.unit, len(board))
    every = [
        Interval(row, clusters, withheld, None, sets.allowed.get(number), None, None, None)
        for number, (row, clusters, withheld) in enumerate(
            zip(board, grounds.clusters.tolist(), grounds.withheld, strict=True)
        )
    ]
    told = np.flatnonzero([not withheld for withheld in grounds.withheld])
    if not len(told):
        return BoardIntervals(every, sets)
    drawn = resample(contest, scored, board, board_row, seed)
    levels, last = grounds.levels(rules.level_ppm)[told], best_ranks(sum(row.rank is not None for row in board))
    scores = drawn_ends(drawn.total.take(told), levels)
    for number, level, score in zip(told.tolist(), levels.tolist(), scores, strict=True):
        if withheld := grounds.withheld_of(number, score):
            every[number] = every[number]._replace(withheld=withheld)
            continue
        rank = None if board[number].rank is None else drawn.rank[number]
        every[number] = every[number]._replace(
            score=score,
            first=None if rank is None else _share(rank == 1),
            best=None if rank is None else _share(rank <= last),
            prize=_ends(drawn.prize[number], level) if drawn.paid[number] else None,
        )
    return BoardIntervals(every, sets)


def best_ranks(ranked: int) -> int:
    """Return how many ranks are the best 5% of those that are ranked, at least one.

    >>> [best_ranks(ranked) for ranked in (1, 20, 21, 40, 41)]
    [1, 1, 2, 2, 3]
    """
    return -(-ranked // _BEST)


def _ends(values: Int64Array, level_ppm: int) -> Ends:
    bounds = limits(values, level_ppm)
    return bounds.least, bounds.greatest


def _share(replicates: BoolArray) -> int:
    return half_even(int(replicates.sum()) * POINTS, len(replicates))
