"""The tables of boards: leaderboards of contests, of groups and over time, means by kind, and prizes."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.ledger.model.rules import KIND_TOTALS
from forecast_ledger.projections.boards import leaderboard, totals
from forecast_ledger.projections.boards.contest_groups import answered_at, tallies_over_time
from forecast_ledger.projections.boards.prizes import eligible
from forecast_ledger.projections.core.arrays import int64_array, stable_order
from forecast_ledger.projections.core.columns import (
    POINTS,
    Column,
    Ids,
    Values,
    columns_of_rows,
    ids,
    join_values,
    round_to_points,
    take_rows,
    transpose,
)
from forecast_ledger.projections.facts.columns import Contest, Entry, Facts
from forecast_ledger.projections.studies.baselines import baseline_differences
from forecast_ledger.projections.studies.intervals import Interval, board_rows
from forecast_ledger.projections.studies.pairs import Pair, pairs
from forecast_ledger.projections.studies.rank_sets import board_marginal_sets
from forecast_ledger.projections.tables.analysis import Analysis, codes_of, contests_with
from forecast_ledger.projections.tables.schemas import DRAWN, SAMPLED, SCORED, Projection, schema

_LEADERBOARD = schema("""
    the leaderboard of each contest, best first

    contest*
    rank         count   1, 2, 2, 4; empty if the participant is excluded from the ranking
    participant*
    score        points  the total score: a sum or mean of the question scores, as the rule set says
    coverage     share   weighted mean coverage over all resolved questions with a weight above 0
    attainable   share   coverage of forecasts that stood from the opening to the end of scored time
    take         take    the number that prizes are proportional to; empty if the contest pays no prizes
    share        share   take / sum of the takes of all participants who can win a prize
    prize        money   the participant's part of the pool
    completion   text    questions forecast on / resolved questions with a weight above 0
    submissions  count   number of submissions of the same entrant
    excluded     text    why there is no rank or prize: no_prize, no_rank, too_few_questions, not_best, consensus or
                         reference
""")


def leaderboard_values(analysis: Analysis) -> list[Values]:
    """One row for each participant of each contest, best first."""
    analysis.score_all()
    parts = []
    for every in _all_boards(analysis):
        boards, (share, prize), who = every, analysis.shares(every.names[0]), analysis.cached.participant
        if who is not None:
            rows = np.flatnonzero(every.person == (every.labels.index(who) if who in every.labels else -1))
            boards, share, prize = every.rows(rows), *([part[row] for row in rows] for part in (share, prize))
        columns = _board_columns(boards)
        columns["contest"] = Ids(boards.contest, boards.names)
        columns["take"] = boards.published_takes()
        columns |= {"share": share, "prize": prize, "submissions": boards.submissions.tolist()}
        parts.append((boards, columns))
    return _in_order(analysis, parts, _LEADERBOARD.columns)


def _all_boards(analysis: Analysis) -> list[leaderboard.Boards]:
    """Return the boards of all contests, once each."""
    parts, seen = list[leaderboard.Boards](), set[str]()
    for name in analysis.contests:
        if name not in seen:
            parts.append(analysis.boards(name))
            seen.update(parts[-1].names)
    return parts


def _board_columns(boards: leaderboard.Boards) -> dict[str, Values]:
    """Return the columns of boards that do not depend on a pool."""
    attainable = int64_array(boards.attainable.rounded(POINTS))  # at most 1
    counts = zip(boards.forecast_on.tolist(), boards.questions[boards.contest].tolist(), strict=True)
    return {
        "rank": [rank or None for rank in boards.rank.tolist()],
        "participant": Ids(boards.person, boards.labels),
        "score": boards.total.rounded(POINTS),
        "coverage": boards.coverage.rounded(POINTS),
        "attainable": attainable[boards.contest].tolist(),
        "completion": [f"{forecast_on}/{questions}" for forecast_on, questions in counts],
        "excluded": [leaderboard.EXCLUDED[reason] for reason in boards.excluded.tolist()],
    }


def _in_order(
    analysis: Analysis, parts: list[tuple[leaderboard.Boards, dict[str, Values]]], columns: Sequence[Column]
) -> list[Values]:
    """Return the columns of several boards in the order of contests; each keeps the order of its rows."""
    if not parts:
        return columns_of_rows([], columns)
    joined = [join_values([part[each.name] for _, part in parts]) for each in columns]
    if len(parts) == 1:
        return joined
    order = stable_order(np.concatenate([codes_of(analysis, boards.names)[boards.contest] for boards, _ in parts]))
    return [take_rows(values, order) for values in joined]


_BOARDS_AT_ONCE = 64  # of one contest, which are made together
GROUPINGS = ("group", "category")  # the details of questions by which boards are made


_LEADERBOARD_BY_GROUP = schema("""
    the leaderboard of each contest for each group and each category of its questions, best first

    contest*
    by*         id      group or category
    name*       id      the group or category; only its questions count on this board
    rank        count   1, 2, 2, 4; empty if the participant is excluded from the ranking
    participant*
    score       points  the total score over these questions, by the contest's rules
    coverage    share   weighted mean coverage over these questions, if resolved
    attainable  share   coverage of forecasts that stood from the opening to the end of scored time
    completion  text    these questions forecast on / resolved, with a weight above 0
    excluded    text    why there is no rank, as in the leaderboard
""")


def leaderboard_by_group_values(analysis: Analysis) -> list[Values]:
    """One row for each participant of each board: of a contest, for each value of each grouping, best first."""
    facts = analysis.facts
    boards = {key: narrowed for contest in analysis.contests for key, narrowed in _narrowed(facts, contest)}
    keys = {"\n".join(key): key for key in boards}  # an id has no control characters, so that the order is that of keys
    grouped = Analysis(replace(facts, contests={name: boards[key] for name, key in keys.items()}), analysis.chunk)
    grouped.score_all()
    parts = []
    for each in _all_boards(grouped):
        names = transpose([keys[each.names[number]] for number in each.contest.tolist()], 3)
        parts.append((each, _board_columns(each) | dict(zip(("contest", "by", "name"), map(ids, names), strict=True))))
    return _in_order(grouped, parts, _LEADERBOARD_BY_GROUP.columns)


def _narrowed(facts: Facts, name: str) -> Iterator[tuple[tuple[str, str, str], Contest]]:
    """Yield a contest with the questions of one value of a grouping only, under its id, the grouping and the value."""
    for by in GROUPINGS:
        for value, contest in narrowed(facts, name, lambda question: filter(None, [getattr(question, by)])):  # noqa: B023
            yield (name, by, value), contest


def narrowed(
    facts: Facts, name: str, values: Callable[[QuestionOpened], Iterable[str]]
) -> Iterator[tuple[str, Contest]]:
    """Yield each value that questions of a contest have, and the contest with only the questions that have it."""
    parts: dict[str, dict[int, Entry]] = {}
    for code, entry in facts.contests[name].entries.items():
        for value in dict.fromkeys(values(facts.questions[code])):
            parts.setdefault(value, {})[code] = entry
    for value, entries in parts.items():
        yield value, replace(facts.contests[name], entries=entries)


_SCORE_OVER_TIME = schema("""
    the board of each contest after each answer, as it would be without later ones, best first

    contest*
    answered*     count   number of questions that are answered and count, this one included
    rank          count   1, 2, 2, 4; empty if there is none, as in the leaderboard
    participant*
    score         points  the total score over these questions, as they are scored now
    coverage      share   weighted mean coverage over these questions
    question
    log_position  count   log position of the answer
""")


def score_over_time_values(analysis: Analysis) -> list[Values]:
    """One row for each participant after each answer of each contest, best first."""
    rows, labels = [], analysis.facts.question_codes.labels
    for name in analysis.contests:
        contest, scored = analysis.facts.contests[name], analysis.scored(name)
        answered = answered_at(analysis.facts, contest, scored.questions)
        tallies, number = tallies_over_time(analysis.facts, contest, scored), 0
        while some := [*islice(tallies, _BOARDS_AT_ONCE)]:
            alike, every = [contest] * len(some), [tally for _, tally in some]
            standings = leaderboard.standings_of(analysis.facts, [name] * len(some), alike, every)
            boards = leaderboard.boards(analysis.facts, standings)
            for index, (question, _) in enumerate(some):
                answer = (labels[scored.questions.code[question]], int(answered[question]))
                number += 1
                for row in boards.rows_of(index):
                    shares = map(round_to_points, (row.score, row.coverage))
                    rows.append((name, number, row.rank, row.participant, *shares, *answer))
    return columns_of_rows(rows, _SCORE_OVER_TIME.columns)


_KIND_MEANS = schema("""
    the mean score for each kind of question, for contests whose total is the sum of these means

    contest*
    participant*
    kind*        id      the kind of question
    mean         points  100 x the weighted mean; a question without a forecast gets the worst score
    forecast_on  count   number of questions of this kind forecast on
    questions    count   number of resolved questions of this kind with a weight above 0
""")


def kind_means_values(analysis: Analysis) -> list[Values]:
    """One row for each participant and kind of question, for contests whose total is made of means by kind."""
    analysis.score_all()
    rows = []
    for name in contests_with(analysis, lambda rules: rules.total in KIND_TOTALS):
        contest = analysis.facts.contests[name]
        for sums in totals.participant_sums(analysis.facts, contest, analysis.tally(name)):
            if sums.reference or contest.level_of(sums.participant) != "hidden":
                rows += [
                    (name, sums.participant, kind.kind, round_to_points(kind.mean), kind.forecast_on, kind.questions)
                    for kind in sums.kinds
                ]
    return columns_of_rows(rows, _KIND_MEANS.columns)


_PRIZES = schema("""
    the prizes of each contest

    contest*
    participant*
    prize  money  the prize by the leaderboard, in the contest's currency
    paid   money  the amount paid so far
""")


def prizes_values(analysis: Analysis) -> list[Values]:
    """One row for each participant who can win a prize or was paid one."""
    analysis.score_all()
    contests = analysis.facts.contests
    paid = {(name, who): payment.amount for name in contests for who, payment in contests[name].paid.items()}
    worth: dict[tuple[str, str], int] = {}
    for boards in _all_boards(analysis):
        won, prize = eligible(boards), analysis.shares(boards.names[0]).prize
        columns = (each.tolist() for each in (won, boards.contest[won], boards.person[won]))
        for row, number, code in zip(*columns, strict=True):
            worth[boards.names[number], boards.labels[code]] = prize[row]
    rows = [(*key, worth.get(key, 0), paid.get(key, 0)) for key in worth | paid]
    return columns_of_rows(rows, _PRIZES.columns)


BOARDS: dict[str, Projection] = {
    "leaderboard": Projection(3, _LEADERBOARD, leaderboard_values, reads=SCORED, division="boards", as_built=True),
    "leaderboard_by_group": Projection(
        1, _LEADERBOARD_BY_GROUP, leaderboard_by_group_values, reads=SCORED, as_built=True, on_request=True
    ),
    "score_over_time": Projection(
        1, _SCORE_OVER_TIME, score_over_time_values, reads=SCORED, as_built=True, on_request=True
    ),
}


PRIZES: dict[str, Projection] = {
    "kind_means": Projection(1, _KIND_MEANS, kind_means_values, reads=SCORED, division="boards"),
    "prizes": Projection(3, _PRIZES, prizes_values, reads=SAMPLED, division="boards"),
}


# --- The tables that say how sure boards are: intervals, the least difference shown, and pairs.


_INTERVALS = schema("""
    how far scores and prizes move if the questions of a contest are resampled, best first

    contest*
    participant*
    clusters        count   number of clusters in which the participant has a score: questions, or groups of them
    withheld        text    why nothing is said of the participant's score, prize and first rank: few_clusters,
                            heavy_tails, rare_outcome or constant_score
    score           points  the total score on the leaderboard
    score_low       points  lower end of its interval, at the level_ppm of the rules
    score_high      points  upper end
    rank            count   the rank on the leaderboard; empty if there is none
    rank_set_low    count   the best rank that the data allow, for all participants at once
    rank_set_high   count   the worst rank that they allow; empty if it cannot be said: with scores in fewer than 20
                            clusters, or with ranks by takes that depend on coverage
    first           share   share of the replicates in which the rank is 1; no probability of being the best
    best_5_percent  share   share of the replicates in which the rank is among the best 5%
    prize           money   the prize on the leaderboard; empty if the participant cannot win one
    prize_low       money   lower end of its interval
    prize_high      money   upper end
    replicates      count   number of replicates
    seed            text    seed of the draws: SHA-256 of the digest of what is scored and `intervals`
""")


def intervals_values(analysis: Analysis, contest: str | None = None, *, with_sets: bool = True) -> list[Values]:
    """One row for each participant of each contest, best first.

    contest: only this one. with_sets: whether sets of ranks are computed; else they are empty.
    """
    if contest is None:
        analysis.score_all()
    rows = []
    for name in analysis.contests if contest is None else [contest]:
        rules = analysis.facts.contests[name].opened.rules
        seed = analysis.seed(name, "intervals")
        prizes = {prize.participant: prize.prize for prize in analysis.prizes(name)}
        sets = analysis.rank_sets(name).allowed if with_sets else {}
        for number, row in enumerate(analysis.intervals(name)):
            prize = None if row.prize is None else prizes.get(row.row.participant, 0)
            rows.append((name, *_columns(row, sets.get(number), prize), rules.replicates, seed.hex()))
    return columns_of_rows(rows, _INTERVALS.columns)


def _columns(interval: Interval, rank_set: tuple[int, int] | None, prize: int | None) -> tuple[object, ...]:
    row = interval.row
    return (
        row.participant,
        interval.clusters,
        interval.withheld,
        round_to_points(row.score),
        *(interval.score or (None, None)),
        row.rank,
        *(rank_set or (None, None)),
        interval.first,
        interval.best,
        prize,
        *(interval.prize or (None, None)),
    )


_MARGINAL_RANKS = schema("""
    the ranks that the data allow each participant by itself, best first

    contest*
    participant*
    clusters   count  number of clusters in which the participant has a score, as in the table `intervals`
    rank       count  the rank on the leaderboard
    rank_low   count  the best rank that the data allow this participant: in 95% of contests, if the level_ppm of the
                      rules says so, its rank by expected scores is within both
    rank_high  count  the worst rank; empty where `intervals` has no set of ranks
    seed       text   seed of the signs, that of the table `intervals`
""")


def marginal_ranks_values(analysis: Analysis) -> list[Values]:
    """One row for each participant with a rank of each contest, best first."""
    analysis.score_all()
    rows = []
    for name in analysis.contests:
        board, scored = analysis.board(name), analysis.scored(name)
        if not board or not (scored.questions.weight > 0).any():
            continue
        seed, board_row = analysis.seed(name, "intervals"), board_rows(analysis.facts, board)
        for ranked in board_marginal_sets(analysis.facts.contests[name], scored, board, board_row, seed):
            ranks = ranked.ranks or (None, None)
            rows.append((name, ranked.row.participant, ranked.clusters, ranked.row.rank, *ranks, seed.hex()))
    return columns_of_rows(rows, _MARGINAL_RANKS.columns)


_RESOLUTION = schema("""
    the least difference of total scores that the questions of a contest could have shown

    contest*
    ranked    count   number of participants with a rank
    pairs     count   number of pairs that are compared; participants with the same scores count once
    smallest  points  least difference that would be significant for some pair, all at once; of pairs whose differences
                      vary by more than rounding
    middle    points  the same for a pair in the middle, the lower of two
    largest   points  the same for the pair whose difference varies most
""")


def resolution_values(analysis: Analysis) -> list[Values]:
    """One row for each contest in which a difference of some size could be significant."""
    analysis.score_all()
    rows = []
    for name in analysis.contests:
        resolution = analysis.resolution(name)
        if resolution.needed:
            ranked = sum(row.rank is not None for row in analysis.board(name))
            rows.append((name, ranked, resolution.pairs, *resolution.needed))
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
    clusters         count   number of clusters of these questions, as in the table `intervals`
    withheld         text    why the difference has no interval, as there
    difference       points  weighted mean of the differences of scores, above 0 if the participant is better
    difference_low   points  lower end of its interval, as in the table `intervals`
    difference_high  points  upper end
    p                share   p-value of a permutation test that nobody of the two is better: of all ways to turn the
                             signs of at most nine clusters, or of 999 that are drawn
    p_adjusted       share   the p-value adjusted for all pairs of the contest, by the largest of their statistics
    hoeffding_low    points  lower end of a confidence sequence: valid however often one looks
    hoeffding_high   points  upper end; empty if scores have no bounds
    bernstein_low    points  lower end of an empirical Bernstein confidence sequence, the gamma-exponential mixture
    bernstein_high   points  upper end
    seed             text    seed of the draws: SHA-256 of the digest of what is scored and `pairwise`
""")


def pairwise_values(
    analysis: Analysis,
    contest: str | None = None,
    first: int | None = None,
    only: Collection[str] | None = None,
    *,
    tests_only: bool = False,
) -> list[Values]:
    """One row for each pair of participants of each contest with a common question, in the order of the leaderboard.

    contest: only this one. first: only so many of those who come first are compared; only: only these participants.
    p-values are adjusted for those who are compared. tests_only: no intervals and confidence sequences.
    """
    if contest is None:
        analysis.score_all()
    rows = []
    for name in analysis.contests if contest is None else [contest]:
        opened, scored = analysis.facts.contests[name], analysis.scored(name)
        board = [row for row in analysis.board(name)[:first] if only is None or row.participant in only]
        seed = analysis.seed(name, "pairwise")
        settled = answered_at(analysis.facts, opened, scored.questions)
        board_row = board_rows(analysis.facts, board)
        for pair in pairs(opened.opened.rules, scored, board_row, settled, seed, tests_only=tests_only):
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
        pair.clusters,
        pair.withheld,
        pair.difference,
        *(pair.interval or (None, None)),
        pair.p,
        pair.adjusted,
        *(pair.hoeffding or (None, None)),
        *(pair.bernstein or (None, None)),
    )


_BASELINE_DIFFERENCES = schema("""
    each participant compared with each other one as a baseline, on the questions that both have forecast on, in the
    order of the leaderboard

    contest*
    baseline*           id      whom the participant is compared with; choose one, such as a reference forecaster
    participant*
    questions           count   number of questions that both have a score on
    clusters            count   number of clusters of these questions, as in the table `intervals`
    withheld            text    why the difference has no interval and no test of Diebold and Mariano, as there
    difference          points  weighted mean of the differences of scores, above 0 if the participant is better
    difference_low      points  lower end of its interval, as in the table `pairwise`
    difference_high     points  upper end
    p                   share   p-value of the permutation test, as there
    p_adjusted          share   the p-value adjusted for all who are compared with this baseline
    horizon             count   how many steps ahead forecasts are: the horizon that all questions share, else 1
    periods             count   number of periods of the test of Diebold and Mariano: clusters, or days if the horizon
                                is above 1; with fewer than 20 the test is left out
    diebold_mariano     points  its statistic, as Harvey, Leybourne and Newbold correct it, above 0 if the participant
                                is better
    diebold_mariano_p   share   its p-value on both sides, by Student's t with a degree of freedom less than periods
    seed                text    seed of the draws, that of the table `pairwise`
""")


def baseline_differences_values(analysis: Analysis) -> list[Values]:
    """One row for each baseline and each other participant of each contest with a common question."""
    analysis.score_all()
    rows = []
    for name in analysis.contests:
        opened, scored, board = analysis.facts.contests[name], analysis.scored(name), analysis.board(name)
        seed, board_row = analysis.seed(name, "pairwise"), board_rows(analysis.facts, board)
        settled = answered_at(analysis.facts, opened, scored.questions)
        for compared in baseline_differences(opened.opened.rules, scored, board_row, settled, seed):
            names = (board[compared.baseline].participant, board[compared.participant].participant)
            pair, ends = compared.pair, compared.pair.interval or (None, None)
            numbers = (pair.questions, pair.clusters, pair.withheld, pair.difference, *ends, pair.p, pair.adjusted)
            rows.append((name, *names, *numbers, *(compared.test or (None,) * 4), seed.hex()))
    return columns_of_rows(rows, _BASELINE_DIFFERENCES.columns)


UNCERTAINTY: dict[str, Projection] = {
    "intervals": Projection(6, _INTERVALS, intervals_values, reads=SCORED, as_built=True, on_request=True),
    "marginal_ranks": Projection(
        1, _MARGINAL_RANKS, marginal_ranks_values, reads=DRAWN, as_built=True, on_request=True
    ),
    "resolution": Projection(5, _RESOLUTION, resolution_values, reads=DRAWN, on_request=True),
    "pairwise": Projection(7, _PAIRWISE, pairwise_values, reads=SCORED, as_built=True, on_request=True),
    "baseline_differences": Projection(
        2, _BASELINE_DIFFERENCES, baseline_differences_values, reads=SCORED, as_built=True, on_request=True
    ),
}
