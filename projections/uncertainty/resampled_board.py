"""Boards drawn again: totals, ranks and prizes in every replicate."""

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.projections.boards.contest_groups import ContestScores
from forecast_ledger.projections.boards.leaderboard import TAKES, BoardRow
from forecast_ledger.projections.boards.prizes import divide
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, int64_array
from forecast_ledger.projections.facts.columns import Contest
from forecast_ledger.projections.scores.score_policies import lower_is_better
from forecast_ledger.projections.uncertainty.draws import multiplicities
from forecast_ledger.projections.uncertainty.replicates import (
    check_size,
    coverages_of,
    draws_of,
    rows_of,
    totals_of,
    units_of,
)

_DIGITS = 60  # of the largest take; smaller parts are cut off
_FEW = 12  # units, of which draws are often alike
_LAST = -(1 << 62)  # stands for a total that is undefined: after all others


class ResampledBoard(NamedTuple):
    """The boards of all replicates, shape (p, b), in the order of the board's rows.

    total: 1e-9. undefined: where there is no total, as in `Totals`. rank: 0 for rows without a rank. prize: 1e-6. paid:
    which rows can win a prize, shape (p,).
    """

    total: Int64Array
    undefined: BoolArray
    rank: Int64Array
    prize: Int64Array
    paid: BoolArray


def resample(
    contest: Contest, scored: ContestScores, board: Sequence[BoardRow], place: Int64Array, seed: bytes
) -> ResampledBoard:
    """Draw the questions of a contest again, and return the boards of all replicates.

    Who is ranked and who can win a prize is as on the board. place: the row of the board of each participant code, -1
    without one, shape (c,). Raises Refused(out_of_range): too many participants or questions, or scores too large.
    """
    rules, units = contest.opened.rules, units_of(scored)
    check_size(len(board), sum(units.strata), rules.replicates)
    drawn, which = _distinct(multiplicities(seed, rules.replicates, units.strata))
    draws = draws_of(scored, units, drawn, len(board))
    rows = rows_of(rules, scored, units, place)
    totals = totals_of(rules, rows, draws)
    worth = np.where(totals.undefined, _LAST, -totals.total if lower_is_better(rules) else totals.total)
    ranked, paid = np.flatnonzero([row.rank is not None for row in board]), _by_id(board)
    rank, prize = _at(ranked, ranks(worth[ranked]), worth.shape), np.zeros_like(worth)
    able = np.zeros(len(board), bool)
    of_nanos = TAKES[rules.take].of_nanos
    if of_nanos is not None and (rules.rank_by == "take" or contest.opened.pool):
        able[paid] = contest.opened.pool > 0
        pairs = zip(totals.total.T.tolist(), coverages_of(rows, draws).T.tolist(), strict=True)
        for number, pair in enumerate(pairs):
            takes = [*map(of_nanos, *pair)]
            if rules.rank_by == "take":
                rank[ranked, number] = _ranked([takes[row] for row in ranked.tolist()])
            if contest.opened.pool:
                prize[paid, number] = divide(contest, [*in_proportion([takes[row] for row in paid.tolist()])])[1]
    return ResampledBoard(totals.total[:, which], totals.undefined[:, which], rank[:, which], prize[:, which], able)


def _distinct(drawn: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the draws that differ, shape (d, units), and for each replicate its place among them.

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


def _at(rows: Int64Array, values: Int64Array, shape: tuple[int, ...]) -> Int64Array:
    """Return an array with values at some rows and 0 at the others."""
    whole = np.zeros(shape, np.int64)
    whole[rows] = values
    return whole


def ranks(worth: Int64Array) -> Int64Array:
    """Return the ranks 1, 2, 2, 4 in each column, the largest number first; shape (p, b).

    >>> ranks(np.array([[5], [9], [5], [1]]))[:, 0].tolist()
    [2, 1, 2, 4]
    """
    order = np.argsort(-worth, axis=0, kind="stable")
    ordered = np.take_along_axis(worth, order, axis=0)
    first = np.ones_like(ordered, bool)
    first[1:] = ordered[1:] != ordered[:-1]
    number = np.arange(1, len(worth) + 1)[:, None]
    in_order = np.maximum.accumulate(np.where(first, number, 0), axis=0)
    placed = np.empty_like(worth)
    np.put_along_axis(placed, order, in_order, axis=0)
    return placed


def _ranked(takes: Sequence[int | Decimal]) -> list[int]:
    """Return the ranks 1, 2, 2, 4 of numbers of any size, the largest first."""
    first: dict[int | Decimal, int] = {}
    for number, take in enumerate(sorted(takes, reverse=True), start=1):
        first.setdefault(take, number)
    return [first[take] for take in takes]


def in_proportion(takes: Sequence[int | Decimal]) -> list[int]:
    """Return integers in proportion to takes, within 1e-60 of the largest.

    >>> in_proportion([4, 9]), [number // 5 // 10**59 for number in in_proportion([Decimal(5), Decimal("2.5")])]
    ([4, 9], [10, 5])
    """
    top = max((take.adjusted() for take in takes if isinstance(take, Decimal)), default=0)
    return [int(take.scaleb(_DIGITS - top, WIDE)) if isinstance(take, Decimal) else take for take in takes]
