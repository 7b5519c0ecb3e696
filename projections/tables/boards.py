"""The tables of boards: leaderboards of contests, of groups and over time, means by kind, and prizes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from forecast_ledger.ledger.model.rules import KIND_TOTALS
from forecast_ledger.projections.boards import leaderboard, prizes, totals
from forecast_ledger.projections.boards.contest_groups import answered_at, tallies_over_time
from forecast_ledger.projections.core.column_values import (
    Values,
    columns_of_rows,
    round_to_points,
)
from forecast_ledger.projections.facts.columns import Contest, Entry, Facts
from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.tables.inputs import SAMPLED, SCORED
from forecast_ledger.projections.tables.schemas import Projection, schema

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
    analysis.tally_all()
    rows: list[list[Any]] = []
    for contest in analysis.contests:
        paid = {prize.participant: prize for prize in analysis.prizes(contest)}
        for place in analysis.board(contest):
            prize = paid.get(place.participant, prizes.Prize(place.participant, 0, 0))
            rows.append([
                contest,
                place.rank,
                place.participant,
                round_to_points(place.score),
                round_to_points(place.coverage),
                round_to_points(place.attainable),
                None if place.take is None else leaderboard.published_take(place.take),
                prize.share,
                prize.prize,
                f"{place.forecast_on}/{place.questions}",
                place.submissions,
                place.excluded,
            ])  # fmt: skip
    return columns_of_rows(rows, _LEADERBOARD.columns)


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
    grouped.tally_all()
    rows = [
        [
            *keys[name],
            place.rank,
            place.participant,
            round_to_points(place.score),
            round_to_points(place.coverage),
            round_to_points(place.attainable),
            f"{place.forecast_on}/{place.questions}",
            place.excluded,
        ]
        for name in grouped.contests
        for place in grouped.board(name)
    ]
    return columns_of_rows(rows, _LEADERBOARD_BY_GROUP.columns)


def _narrowed(facts: Facts, name: str) -> Iterator[tuple[tuple[str, str, str], Contest]]:
    """Yield a contest with the questions of one value of a grouping only, under its id, the grouping and the value."""
    contest = facts.contests[name]
    for by in GROUPINGS:
        parts: dict[str, dict[int, Entry]] = {}
        for code, entry in contest.entries.items():
            if value := getattr(facts.questions[code], by):
                parts.setdefault(value, {})[code] = entry
        for value, entries in parts.items():
            yield (name, by, value), replace(contest, entries=entries)


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
    rows, asked = [], analysis.facts.question_codes.labels
    for name in analysis.contests:
        contest, scored = analysis.facts.contests[name], analysis.scored(name)
        answered = answered_at(analysis.facts, contest, scored.questions)
        tallies = tallies_over_time(analysis.facts, contest, scored)
        for number, (question, tally) in enumerate(tallies, start=1):
            answer = (asked[scored.questions.code[question]], int(answered[question]))
            for place in leaderboard.board(analysis.facts, contest, tally):
                shares = map(round_to_points, (place.score, place.coverage))
                rows.append((name, number, place.rank, place.participant, *shares, *answer))
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
    analysis.tally_all()
    rows = []
    for name in analysis.contests:
        contest = analysis.facts.contests[name]
        if contest.opened.rules.total not in KIND_TOTALS:
            continue
        for own in totals.participant_sums(analysis.facts, contest, analysis.tally(name)):
            if own.reference or contest.level_of(own.participant) != "hidden":
                rows += [
                    (name, own.participant, kind.kind, round_to_points(kind.mean), kind.forecast_on, kind.questions)
                    for kind in own.kinds
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
    analysis.tally_all()
    rows = []
    for name in analysis.contests:
        paid = {winner: payment.amount for winner, payment in analysis.facts.contests[name].paid.items()}
        worth = {prize.participant: prize.prize for prize in analysis.prizes(name)}
        rows += [(name, who, worth.get(who, 0), paid.get(who, 0)) for who in worth | paid]
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
