"""Builders of the tables that say how sure boards are: the values of each table, column by column."""

from collections.abc import Sequence

from forecast_ledger.projections.boards.leaderboard import BoardRow
from forecast_ledger.projections.boards.totals import score_labels
from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.core.column_values import Ids, Values, ids, round_to_points, transpose
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.uncertainty.draws import seed_for
from forecast_ledger.projections.uncertainty.intervals import Interval, intervals


def intervals_values(analysis: Analysis) -> list[Values]:
    """One row for each participant of each contest, best first."""
    analysis.tally_all()
    codes, rows = [], []
    for code, name in enumerate(analysis.contests):
        contest = analysis.facts.contests[name]
        _, seed = contest_seed(analysis.facts, name)
        prizes = {prize.participant: prize.prize for prize in analysis.prizes(name)}
        for row in contest_intervals(analysis, name, seed):
            codes.append(code)
            prize = None if row.prize is None else prizes.get(row.row.participant, 0)
            rows.append((*_columns(row, prize), contest.opened.rules.replicates, seed.hex()))
    participants, *others = transpose(rows, 16)
    return [Ids(int64_array(codes), analysis.contests), ids(participants), *others]


def contest_intervals(analysis: Analysis, name: str, seed: bytes) -> list[Interval]:
    """Return the intervals of one contest's board, in its order."""
    board = analysis.board(name)
    return intervals(
        analysis.facts.contests[name], analysis.scored(name), board, board_places(analysis.facts, board), seed
    )


def contest_seed(facts: Facts, name: str) -> tuple[str, bytes]:
    """Return the digest that a contest's draws come from, and their seed.

    The digest is that of the contest's seal, or of the log's last event if the contest is open.
    """
    sealed = facts.contests[name].sealed
    digest = facts.digest if sealed is None else sealed.digest
    return digest, seed_for(digest, "intervals", name)


def board_places(facts: Facts, board: Sequence[BoardRow]) -> Int64Array:
    """Return the row of a board of each participant code, -1 without one, shape (c,)."""
    rows = {row.participant: number for number, row in enumerate(board)}
    return int64_array([rows.get(label, -1) for label in score_labels(facts)])


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
