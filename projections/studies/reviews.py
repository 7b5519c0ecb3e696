"""Reviews: each participant's questions, the best first, with what a missed question cost.

A score alone does not tell a good forecast from an easy question. A review compares it with the median score of all who
forecast on the same question.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards.contest_groups import ContestScores
from forecast_ledger.projections.boards.leaderboard import TOTALS
from forecast_ledger.projections.boards.totals import missing_scores
from forecast_ledger.projections.core.column_values import round_to_points
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.score_policies import lower_is_better
from forecast_ledger.projections.scores.scored_questions import Questions


class Reviewed(NamedTuple):
    """One participant and one question; scores and shares in 1e-9, each rounded once.

    participant: code. question: index into the questions of the contest. place: of the question among the
    participant's, 1 for the one that gained most. score, rank: None if there is no forecast. forecasters: how many have
    one. counted: what the question counts for in the total, before weights: the score or, without a forecast, what the
    rules put in its place; None if they leave it out. median: of the scores. gained: by how much `counted` is better
    than the median, below 0 if it is worse.
    """

    participant: int
    question: int
    place: int
    score: int | None
    rank: int | None
    forecasters: int
    coverage: int
    attainable: int
    median: int
    counted: int | None
    gained: int | None


class _Asked(NamedTuple):
    """A question: its exact scores, and coverages, by participant code, its scores in order, and their median."""

    question: int
    own: dict[int, tuple[Fraction, int]]
    ordered: list[Fraction]
    median: Fraction


def reviews(
    rules: RuleSet, scored: ContestScores, participants: Sequence[int], consensus: int, floored: Collection[int] = ()
) -> Iterator[Reviewed]:
    """Yield the questions of each participant, given by code, in the order of what they gained.

    consensus: the participant code of the consensus. floored: those of them whose total is divided by the least
    coverage, so that a question without a forecast counts.

    They are the questions with a weight on which one of the participants has a forecast; medians and ranks are among
    these participants. Questions are in the order of what they gained times their weight, then of their ids; those that
    the rules leave out come last.
    """
    questions, sign = scored.questions, -1 if lower_is_better(rules) else 1
    attainable = [round_to_points(share) for share in time_weighted.attainable_shares(questions)]
    asked = [*_asked(rules, scored, {*participants})]
    imputed = missing_scores(rules, questions, scored.rows, consensus)
    for participant in participants:
        rows, counts = [], isinstance(TOTALS[rules.total].divisor, int) or participant in floored
        for one in asked:
            score, covered = one.own.get(participant, (None, 0))
            missing = imputed.get(one.question, Fraction(0) if counts else None)
            counted = missing if score is None else score
            gained = None if counted is None else sign * (counted - one.median)
            rank = None if score is None else _rank(one.ordered, score, sign)
            shown = [None if each is None else round_to_points(each) for each in (score, counted, gained)]
            row = Reviewed(
                participant, one.question, 0, shown[0], rank, len(one.own), covered, attainable[one.question],
                round_to_points(one.median), *shown[1:],
            )  # fmt: skip
            rows.append((_order(questions, one.question, gained), row))
        rows.sort()
        yield from (row._replace(place=place) for place, (_, row) in enumerate(rows, 1))


def _order(questions: Questions, question: int, gained: Fraction | None) -> tuple[bool, Fraction, str]:
    worth = Fraction(0) if gained is None else -gained * int(questions.weight[question])
    return gained is None, worth, questions.answers[question].question.question


def _asked(rules: RuleSet, scored: ContestScores, participants: set[int]) -> Iterator[_Asked]:
    """Yield the questions that count on which one of the participants has a forecast."""
    questions, rows = scored.questions, scored.rows
    own: defaultdict[int, dict[int, tuple[Fraction, int]]] = defaultdict(dict)
    columns = zip(
        rows.question.tolist(),
        rows.participant.tolist(),
        time_weighted.points(rules, questions, rows).exact(),
        list(time_weighted.coverages(questions, rows).published()),
        strict=True,
    )
    for question, participant, score, covered in columns:
        if participant in participants and questions.weight[question]:
            own[question][participant] = score, int(covered)
    for question, by_participant in sorted(own.items()):
        ordered = sorted(score for score, _ in by_participant.values())
        yield _Asked(question, by_participant, ordered, median(ordered))


def median(ordered: Sequence[Fraction]) -> Fraction:
    """Return the median of numbers in order: of an even number, the mean of the middle two.

    >>> median([Fraction(1), Fraction(2), Fraction(9)]), median([Fraction(1), Fraction(2)])
    (Fraction(2, 1), Fraction(3, 2))
    """
    middle = len(ordered) // 2
    return Fraction(ordered[middle] + ordered[~middle], 2)


def _rank(ordered: list[Fraction], score: Fraction, sign: int) -> int:
    """Return the rank of a score among scores in rising order. sign: 1 if the highest is the best, else -1."""
    return len(ordered) - bisect_right(ordered, score) + 1 if sign > 0 else bisect_left(ordered, score) + 1
