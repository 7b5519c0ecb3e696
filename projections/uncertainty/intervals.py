"""Intervals of boards: how far scores, ranks and prizes move when the questions are drawn again."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.boards.contest_groups import ContestScores
from forecast_ledger.projections.boards.leaderboard import BoardRow
from forecast_ledger.projections.boards.totals import score_labels
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, int64_array
from forecast_ledger.projections.core.column_values import POINTS
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.score_policies import lower_is_better
from forecast_ledger.projections.uncertainty.draws import seed_for
from forecast_ledger.projections.uncertainty.order_statistics import Ends, drawn_ends, limits
from forecast_ledger.projections.uncertainty.rank_sets import RankSets, rank_sets
from forecast_ledger.projections.uncertainty.resampled_board import ResampledBoard, resample

_BEST = 20  # the best 5%: one in so many


class Interval(NamedTuple):
    """How sure one row of a board is; scores in 1e-9, prizes in 1e-6, shares of replicates in 1e-9.

    score, rank, prize: low and high, the order statistics that the level asks for. score: None if no replicate has a
    total. rank, rank_set, first, best: None if the row has no rank. prize: None if it cannot win one. rank_set: the
    ranks that the data allow, for all rows at once; None as well if ranks follow takes that depend on coverage, or if a
    total is undefined in some replicate.
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
    every = []
    for number, (row, score) in enumerate(zip(board, drawn_ends(drawn.total.drawn(), rules.level_ppm), strict=True)):
        rank = drawn.rank[number] if row.rank is not None else None
        every.append(
            Interval(
                row=row,
                score=score,
                rank=None if rank is None else _ends(rank, rules.level_ppm),
                rank_set=allowed.get(number),
                first=None if rank is None else _share(rank == 1),
                best=None if rank is None else _share(rank <= best_places(ranked)),
                prize=_ends(drawn.prize[number], rules.level_ppm) if drawn.paid[number] else None,
            )
        )
    return BoardIntervals(every, sets.needed)


def best_places(ranked: int) -> int:
    """Return how many places are the best 5% of those that are ranked, at least one.

    >>> [best_places(ranked) for ranked in (1, 20, 21, 40, 41)]
    [1, 1, 2, 2, 3]
    """
    return -(-ranked // _BEST)


def _ends(values: Int64Array, level_ppm: int) -> Ends:
    found = limits(values, level_ppm)
    return found.least, found.greatest


def _share(replicates: BoolArray) -> int:
    return half_even(int(replicates.sum()) * POINTS, len(replicates))


def _rank_sets(contest: Contest, board: Sequence[BoardRow], drawn: ResampledBoard) -> tuple[list[int], RankSets]:
    """Return the rows whose ranks follow totals, and the sets of ranks by totals, if every total is defined."""
    rules = contest.opened.rules
    rows = np.flatnonzero([row.rank is not None for row in board])
    totals = drawn.total.take(rows)
    if len(rows) < 2 or not totals.defined.all():
        return [], RankSets([], [], [])
    sign = -1 if lower_is_better(rules) else 1
    worth = [sign * POINTS * board[row].score for row in rows.tolist()]
    place = -(-rules.level_ppm * (rules.replicates + 1) // 10**6)
    by_total = rules.rank_by == "total" or rules.take == "positive_square"
    return rows.tolist() if by_total else [], rank_sets(worth, totals.times(sign), drawn.alike[rows], place)
