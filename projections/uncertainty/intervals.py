"""Intervals of boards: how far scores, ranks and prizes move when the questions are drawn again."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.boards.contest_groups import ContestScores
from forecast_ledger.projections.boards.leaderboard import BoardRow
from forecast_ledger.projections.boards.totals import score_labels
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, int64_array
from forecast_ledger.projections.core.column_values import POINTS, round_to_points
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.score_policies import lower_is_better
from forecast_ledger.projections.uncertainty.draws import seed_for
from forecast_ledger.projections.uncertainty.rank_sets import LARGEST, RankSets, rank_sets
from forecast_ledger.projections.uncertainty.resampled_board import ResampledBoard, resample

_BEST = 20  # the best 5%: one in so many


class Limits(NamedTuple):
    """The limits of an interval. least, greatest: the values; low, high: replicates that have them, counted from 0."""

    least: int
    greatest: int
    low: int
    high: int


class Interval(NamedTuple):
    """How sure one row of a board is; scores in 1e-9, prizes in 1e-6, shares of replicates in 1e-9.

    score, rank, prize: low and high, the order statistics that the level asks for. score: None if no replicate has a
    total. rank, rank_set, first, best: None if the row has no rank. prize: None if it cannot win one. rank_set: the
    ranks that the data allow, for all rows at once; None as well if ranks follow takes that depend on coverage, if a
    total is undefined in some replicate, or if totals are beyond 2^48 x 1e-9.
    """

    row: BoardRow
    score: tuple[int, int] | None
    rank: tuple[int, int] | None
    rank_set: tuple[int, int] | None
    first: int | None
    best: int | None
    prize: tuple[int, int] | None


class BoardIntervals(NamedTuple):
    """The intervals of a board. needed: as of `RankSets`; empty if a total is undefined in some replicate."""

    rows: list[Interval]
    needed: list[int]


def contest_seed(facts: Facts, name: str, table: str = "intervals") -> tuple[str, bytes]:
    """Return the digest that a contest's draws for a table come from, and their seed.

    The digest is that of the contest's seal, or of the log's last event if the contest is open.
    """
    sealed = facts.contests[name].sealed
    digest = facts.digest if sealed is None else sealed.digest
    return digest, seed_for(digest, table, name)


def board_places(facts: Facts, board: Sequence[BoardRow]) -> Int64Array:
    """Return the row of a board of each participant code, -1 without one, shape (c,)."""
    rows = {row.participant: number for number, row in enumerate(board)}
    return int64_array([rows.get(label, -1) for label in score_labels(facts)])


def intervals(
    contest: Contest, scored: ContestScores, board: Sequence[BoardRow], place: Int64Array, seed: bytes
) -> BoardIntervals:
    """Return the intervals of a board, in its order; none if no question counts.

    place: the row of the board of each participant code, -1 without one, shape (c,). Raises Refused(out_of_range): too
    many participants or questions, or scores too large.

    Percentile intervals of a bootstrap over questions, one draw for all participants.
    Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, ISBN 0-412-04231-2, chapter 13; the code of
    ForecastBench's leaderboard draws questions 1,999 times, too, within rounds and sources, and takes percentiles.
    """
    rules = contest.opened.rules
    if not board or not (scored.questions.weight > 0).any():
        return BoardIntervals([], [])
    drawn = resample(contest, scored, board, place, seed)
    rows, sets = _rank_sets(contest, board, drawn)
    allowed = dict(zip(rows, zip(sets.best, sets.worst, strict=True), strict=False))
    ranked = sum(row.rank is not None for row in board)
    every, replicates = [], np.arange(rules.replicates)
    for number, row in enumerate(board):
        rank = drawn.rank[number] if row.rank is not None else None
        defined = np.flatnonzero(~drawn.undefined[number])
        every.append(
            Interval(
                row=row,
                score=_ends(limits(drawn.total[number], defined, rules.level_ppm)),
                rank=None if rank is None else _ends(limits(rank, replicates, rules.level_ppm)),
                rank_set=allowed.get(number),
                first=None if rank is None else _share(rank == 1),
                best=None if rank is None else _share(rank <= best_places(ranked)),
                prize=_ends(limits(drawn.prize[number], replicates, rules.level_ppm)) if drawn.paid[number] else None,
            )
        )
    return BoardIntervals(every, sets.needed)


def best_places(ranked: int) -> int:
    """Return how many places are the best 5% of those that are ranked, at least one.

    >>> [best_places(ranked) for ranked in (1, 20, 21, 40, 41)]
    [1, 1, 2, 2, 3]
    """
    return -(-ranked // _BEST)


def limits(values: Int64Array, replicates: Int64Array, level_ppm: int) -> Limits | None:
    """Return the order statistics between which the share `level` of the replicates lies.

    values: of each replicate, shape (b,). replicates: those that count, rising; None is returned if there are none. If
    replicates have the same value, they keep their order.

    >>> limits(np.arange(1_999)[::-1], np.arange(1_999), 950_000)
    Limits(least=49, greatest=1949, low=1949, high=49)
    """
    if not len(replicates):
        return None
    order = replicates[np.argsort(values[replicates], kind="stable")]
    outside = _outside(len(order), level_ppm)
    low, high = int(order[outside - 1]), int(order[-outside])
    return Limits(int(values[low]), int(values[high]), low, high)


def ends(values: Int64Array, defined: BoolArray, level_ppm: int) -> list[tuple[int, int] | None]:
    """Return the least and greatest values of `limits` for each row; shape (n, b).

    >>> ends(np.arange(3_998).reshape(2, -1), np.ones((2, 1_999), bool), 950_000)
    [(49, 1949), (2048, 3948)]
    """
    outside = _outside(values.shape[1], level_ppm)
    ordered = np.partition(values, (outside - 1, values.shape[1] - outside), axis=1)
    found: list[tuple[int, int] | None] = [*map(tuple, ordered[:, (outside - 1, -outside)].tolist())]
    for row in np.flatnonzero(~defined.all(axis=1)).tolist():
        found[row] = _ends(limits(values[row], np.flatnonzero(defined[row]), level_ppm))
    return found


def _outside(count: int, level_ppm: int) -> int:
    """Return the place of the lower limit among so many replicates, from 1."""
    return max((10**6 - level_ppm) * (count + 1) // (2 * 10**6), 1)


def _ends(found: Limits | None) -> tuple[int, int] | None:
    return None if found is None else (found.least, found.greatest)


def _share(replicates: BoolArray) -> int:
    return half_even(int(replicates.sum()) * POINTS, len(replicates))


def _rank_sets(contest: Contest, board: Sequence[BoardRow], drawn: ResampledBoard) -> tuple[list[int], RankSets]:
    """Return the rows whose ranks follow totals, and the sets of ranks by totals, if every total is defined."""
    rules = contest.opened.rules
    rows = np.flatnonzero([row.rank is not None for row in board])
    totals = drawn.total[rows]
    if len(rows) < 2 or drawn.undefined[rows].any() or np.abs(totals).max() >= LARGEST:
        return [], RankSets([], [], [])
    sign = -1 if lower_is_better(rules) else 1
    worth = int64_array([sign * round_to_points(board[row].score) for row in rows.tolist()])
    place = -(-rules.level_ppm * (rules.replicates + 1) // 10**6)
    by_total = rules.rank_by == "total" or rules.take == "positive_square"
    return rows.tolist() if by_total else [], rank_sets(worth, sign * totals, place)
