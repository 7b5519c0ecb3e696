"""The tables that say how sure boards are: intervals, the least difference shown, and pairs."""

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.boards.contest_groups import answered_at
from forecast_ledger.projections.core.column_values import POINTS, Values, columns_of_rows, round_to_points
from forecast_ledger.projections.studies.intervals import Interval, board_places, contest_seed
from forecast_ledger.projections.studies.pairs import Pair, pairs
from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.tables.inputs import SCORED
from forecast_ledger.projections.tables.schemas import Projection, schema

_INTERVALS = schema("""
    how far scores, ranks and prizes move if the questions of a contest are drawn again, best first

    contest*
    participant*
    score           points  the total score on the leaderboard
    score_low       points  lower end of its interval, at the level_ppm of the rules
    score_high      points  upper end
    rank            count   the rank on the leaderboard; empty if there is none
    rank_low        count   lower end of its interval, the better rank
    rank_high       count   upper end
    rank_set_low    count   the best rank that the data allow, for all participants at once
    rank_set_high   count   the worst rank that they allow; empty if it cannot be said
    first           share   share of the replicates in which the rank is 1
    best_5_percent  share   share of the replicates in which the rank is among the best 5%
    prize           money   the prize on the leaderboard; empty if the participant cannot win one
    prize_low       money   lower end of its interval
    prize_high      money   upper end
    replicates      count   number of replicates
    seed            text    seed of the draws: SHA-256 of the digest of the log, `intervals` and the contest
""")


def intervals_values(analysis: Analysis) -> list[Values]:
    """One row for each participant of each contest, best first."""
    analysis.tally_all()
    rows = []
    for name in analysis.contests:
        contest = analysis.facts.contests[name]
        _, seed = contest_seed(analysis.facts, name)
        prizes = {prize.participant: prize.prize for prize in analysis.prizes(name)}
        for row in analysis.intervals(name).rows:
            prize = None if row.prize is None else prizes.get(row.row.participant, 0)
            rows.append((name, *_columns(row, prize), contest.opened.rules.replicates, seed.hex()))
    return columns_of_rows(rows, _INTERVALS.columns)


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


_RESOLUTION = schema("""
    the least difference of total scores that the questions of a contest could have shown

    contest*
    ranked    count   number of participants with a rank
    pairs     count   number of pairs of them
    smallest  points  least difference that would be significant for some pair, all at once
    middle    points  the same for a pair in the middle, the lower of two
    largest   points  the same for the pair whose difference varies most
""")


def resolution_values(analysis: Analysis) -> list[Values]:
    """One row for each contest whose totals are defined in every replicate."""
    analysis.tally_all()
    rows = []
    for name in analysis.contests:
        found = analysis.intervals(name)
        if found.needed:
            ranked = sum(row.rank is not None for row in found.rows)
            middle = found.needed[(len(found.needed) - 1) // 2]
            rows.append((name, ranked, len(found.needed), found.needed[0], middle, found.needed[-1]))
    return columns_of_rows(rows, _RESOLUTION.columns)


_PAIRWISE = schema("""
    pairs of participants compared on the questions that both have forecast on, in the order of the leaderboard

    contest*
    participant*
    other*           id      a participant who is lower on the leaderboard
    questions        count   number of questions that both have a score on
    won              count   on how many of them the participant has the better score
    lost             count   on how many the other has the better score
    won_share        share   share of the questions that the participant won; a tie counts half
    difference       points  weighted mean of the differences of scores, above 0 if the participant is better
    difference_low   points  lower end of its interval, as in the table `intervals`
    difference_high  points  upper end
    p                share   p-value of a permutation test with 999 permutations: that nobody of the two is better
    p_adjusted       share   the p-value adjusted for the number of pairs by Holm's method
    hoeffding_low    points  lower end of a confidence sequence: valid however often one looks
    hoeffding_high   points  upper end; empty if scores have no bounds
    bernstein_low    points  lower end of an empirical Bernstein confidence sequence
    bernstein_high   points  upper end
    seed             text    seed of the draws: SHA-256 of the digest of the log, `pairwise` and the contest
""")


def pairwise_values(analysis: Analysis) -> list[Values]:
    """One row for each pair of participants of each contest with a common question, in the order of the leaderboard."""
    analysis.tally_all()
    rows = []
    for name in analysis.contests:
        contest, board, scored = analysis.facts.contests[name], analysis.board(name), analysis.scored(name)
        _, seed = contest_seed(analysis.facts, name, "pairwise")
        settled = answered_at(analysis.facts, contest, scored.questions)
        for pair in pairs(contest.opened.rules, scored, board_places(analysis.facts, board), settled, seed):
            both = (board[pair.first].participant, board[pair.second].participant)
            rows.append((name, *both, *_pair_columns(pair), seed.hex()))
    return columns_of_rows(rows, _PAIRWISE.columns)


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


UNCERTAINTY: dict[str, Projection] = {
    "intervals": Projection(2, _INTERVALS, intervals_values, reads=(*SCORED, "digest"), as_built=True, on_request=True),
    "resolution": Projection(
        2,
        _RESOLUTION,
        resolution_values,
        reads=("resolutions", "scored_forecasts", "scored_questions", "contests", "digest"),
        on_request=True,
    ),
    "pairwise": Projection(2, _PAIRWISE, pairwise_values, reads=(*SCORED, "digest"), as_built=True, on_request=True),
}
