"""Reviews: each participant's questions, the best first, with what a missed question cost.

A score alone does not tell a good forecast from an easy question. A review compares it with the median score of all who
forecast on the same question.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards.contest_groups import ContestScores
from forecast_ledger.projections.boards.imputation import missing_scores
from forecast_ledger.projections.core.column_values import round_to_points
from forecast_ledger.projections.scores import coverage
from forecast_ledger.projections.scores.score_policies import lower_is_better
from forecast_ledger.projections.scores.scored_questions import Questions

_FLOORED = ("per_coverage", "per_question")  # totals divided by least_coverage, if the forecasts come to less


class Reviewed(NamedTuple):
    """One participant and one question; scores and shares in 1e-9.

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
    """A question: its scores and coverages by participant code, its scores in order, and their median."""

    question: int
    own: dict[int, tuple[int, int]]
    ordered: list[int]
    median: int


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
    attainable = [round_to_points(share) for share in coverage.attainable_shares(questions)]
    asked = [*_asked(rules, scored, {*participants})]
    stand_ins = missing_scores(rules, questions, scored.rows, consensus)
    imputed = {question: round_to_points(score) for question, score in stand_ins.items()}
    for participant in participants:
        rows, counts = [], rules.total not in ("mean", *_FLOORED) or participant in floored
        for one in asked:
            score, covered = one.own.get(participant, (None, 0))
            missing = imputed.get(one.question, 0 if counts else None)
            counted = missing if score is None else score
            gained = None if counted is None else sign * (counted - one.median)
            rank = None if score is None else _rank(one.ordered, score, sign)
            rows.append(
                Reviewed(
                    participant, one.question, 0, score, rank, len(one.own), covered, attainable[one.question],
                    one.median, counted, gained,
                )
            )  # fmt: skip
        rows.sort(key=lambda row: _order(questions, row))
        yield from (row._replace(place=place) for place, row in enumerate(rows, 1))


def _order(questions: Questions, row: Reviewed) -> tuple[bool, int, str]:
    name = questions.answers[row.question].question.question
    return row.gained is None, -(row.gained or 0) * int(questions.weight[row.question]), name


def _asked(rules: RuleSet, scored: ContestScores, participants: set[int]) -> Iterator[_Asked]:
    """Yield the questions that count on which one of the participants has a forecast."""
    questions, rows = scored.questions, scored.rows
    own: defaultdict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
    columns = zip(
        rows.question.tolist(),
        rows.participant.tolist(),
        list(coverage.points(rules, questions, rows).published()),
        list(coverage.coverages(questions, rows).published()),
        strict=True,
    )
    for question, participant, score, covered in columns:
        if participant in participants and questions.weight[question]:
            own[question][participant] = int(score), int(covered)
    for question, by_participant in sorted(own.items()):
        ordered = sorted(score for score, _ in by_participant.values())
        yield _Asked(question, by_participant, ordered, median(ordered))


def median(ordered: Sequence[int]) -> int:
    """Return the median of numbers in order: of an even number, the mean of the middle two, rounded half-even.

    >>> median([1, 2, 9]), median([1, 2, 4, 9]), median([1, 2])
    (2, 3, 2)
    """
    middle = len(ordered) // 2
    return half_even(ordered[middle] + ordered[~middle], 2)


def _rank(ordered: list[int], score: int, sign: int) -> int:
    """Return the rank of a score among scores in rising order. sign: 1 if the highest is the best, else -1."""
    worse_or_equal = bisect_left(ordered, score + 1)
    return len(ordered) - worse_or_equal + 1 if sign > 0 else bisect_left(ordered, score) + 1
