"""Builders of the tables that say how sure boards are: the values of each table, column by column."""

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.boards.boards_over_time import answered_at
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.column_values import POINTS, Ids, Values, ids, round_to_points, transpose
from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.uncertainty.intervals import Interval, board_places, contest_seed
from forecast_ledger.projections.uncertainty.pairs import Pair, pairs


def intervals_values(analysis: Analysis) -> list[Values]:
    """One row for each participant of each contest, best first."""
    analysis.tally_all()
    codes, rows = [], []
    for code, name in enumerate(analysis.contests):
        contest = analysis.facts.contests[name]
        _, seed = contest_seed(analysis.facts, name)
        prizes = {prize.participant: prize.prize for prize in analysis.prizes(name)}
        for row in analysis.intervals(name).rows:
            codes.append(code)
            prize = None if row.prize is None else prizes.get(row.row.participant, 0)
            rows.append((*_columns(row, prize), contest.opened.rules.replicates, seed.hex()))
    participants, *others = transpose(rows, 16)
    return [Ids(int64_array(codes), analysis.contests), ids(participants), *others]


def _columns(interval: Interval, prize: int | None) -> tuple[object, ...]:
    row = interval.row
    return (
        row.participant,
        round_to_points(row.score),
        *(interval.score or (None, None)),
        row.rank,
        *(interval.rank or (None, None)),
        *(interval.rank_set or (None, None)),
        interval.first,
        interval.best,
        prize,
        *(interval.prize or (None, None)),
    )


def resolution_values(analysis: Analysis) -> list[Values]:
    """One row for each contest whose totals are defined in every replicate."""
    analysis.tally_all()
    codes, rows = [], []
    for code, name in enumerate(analysis.contests):
        found = analysis.intervals(name)
        if found.needed:
            ranked = sum(row.rank is not None for row in found.rows)
            middle = found.needed[(len(found.needed) - 1) // 2]
            codes.append(code)
            rows.append((ranked, len(found.needed), found.needed[0], middle, found.needed[-1]))
    return [Ids(int64_array(codes), analysis.contests), *transpose(rows, 5)]


def pairwise_values(analysis: Analysis) -> list[Values]:
    """One row for each pair of participants of each contest with a common question, in the order of the leaderboard."""
    analysis.tally_all()
    codes, rows = [], []
    for code, name in enumerate(analysis.contests):
        contest, board, scored = analysis.facts.contests[name], analysis.board(name), analysis.scored(name)
        _, seed = contest_seed(analysis.facts, name, "pairwise")
        settled = answered_at(analysis.facts, contest, scored.questions)
        for pair in pairs(contest.opened.rules, scored, board_places(analysis.facts, board), settled, seed):
            codes.append(code)
            rows.append(
                (board[pair.first].participant, board[pair.second].participant, *_pair_columns(pair), seed.hex())
            )
    first, second, *others = transpose(rows, 16)
    return [Ids(int64_array(codes), analysis.contests), ids(first), ids(second), *others]


def _pair_columns(pair: Pair) -> tuple[object, ...]:
    share = half_even((2 * pair.won + pair.questions - pair.won - pair.lost) * POINTS, 2 * pair.questions)
    return (
        pair.questions,
        pair.won,
        pair.lost,
        share,
        pair.difference,
        *(pair.interval or (None, None)),
        pair.p * (POINTS // 1000),
        pair.adjusted * (POINTS // 1000),
        *(pair.hoeffding or (None, None)),
        *(pair.bernstein or (None, None)),
    )
