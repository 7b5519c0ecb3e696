"""Reviews: each participant's questions, the best first, with what a missed question cost.

A score alone does not tell a good forecast from an easy question. A review compares it with the median score of all who
forecast on the same question.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from heapq import nlargest
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards.leaderboard import TOTALS
from forecast_ledger.projections.boards.totals import missing_scores
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.columns import round_to_points
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.scored_questions import lower_is_better
from forecast_ledger.projections.scores.time_weighted import ContestScores


class Reviewed(NamedTuple):
    """One participant and one question; scores and shares in 1e-9, each rounded once.

    participant: code. question: index into the questions of the contest. place: of the question among the
    participant's, 1 for the one that gained most. score, rank: None if there is no forecast. forecasters: how many have
    one. counted: what the question counts for in the total, before weights: the score or, without a forecast, what the
    rules put instead; None if they leave it out. median: of the scores. gained: by how much `counted` is better
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


class _QuestionScores(NamedTuple):
    """A question: of each participant, by code, the exact score, the same in 1e-9, the coverage and the rank.

    median: of the scores. rounded: the median, 1e-9.
    """

    question: int
    by_participant: dict[int, tuple[Fraction, int, int, int]]
    median: Fraction
    rounded: int


def reviews(  # noqa: PLR0913 - the arguments with a default are keywords
    rules: RuleSet,
    scored: ContestScores,
    participants: Sequence[int],
    consensus: int,
    *,
    floored: Collection[int] = (),
    compared: Collection[int] | None = None,
    only: Mapping[int, Collection[int]] | None = None,
) -> Iterator[Reviewed]:
    """Yield the questions of each participant, given by code, in the order of what they gained.

    consensus: the participant code of the consensus. floored: those of them whose total is divided by the least
    coverage, so that a question without a forecast counts. compared: whose scores medians and ranks are among; the
    participants, if it is not given. only: by participant, the indices of some questions, without the others; None is
    all.

    They are the questions with a weight on which one of those who are compared has a forecast. Questions are in the
    order of what they gained times their weight, then of their ids; those that the rules leave out come last.
    """
    questions, sign = scored.questions, -1 if lower_is_better(rules) else 1
    attainable = [round_to_points(share) for share in time_weighted.attainable_shares(questions)]
    among = {*(participants if compared is None else compared)}
    chosen = None if only is None else {*chain.from_iterable(only.values())}
    scored_questions = [*_question_scores(rules, scored, among, sign, chosen)]
    scored_questions.sort(key=lambda one: questions.answers[one.question].question.question)
    imputed = missing_scores(rules, questions, scored.rows, consensus)
    numbered = [*enumerate(scored_questions)]
    by_question = {one.question: (by_id, one) for by_id, one in numbered}
    for participant in participants:
        of_participant = numbered if only is None else [by_question[index] for index in only.get(participant, ())]
        ordered, left_out = list[tuple[int, Fraction, int, tuple[Any, ...]]](), list[tuple[Any, ...]]()
        counts = _counts_all(rules) or participant in floored
        for by_id, one in of_participant:
            counted, score, covered, rank = one.by_participant.get(participant, (None, None, 0, None))
            rounded = score
            if counted is None:
                counted = imputed.get(one.question, Fraction(0) if counts else None)
                rounded = None if counted is None else round_to_points(counted)
            row = score, rank, len(one.by_participant), covered, attainable[one.question], one.rounded, rounded
            if counted is None:
                left_out.append((one.question, *row, None))
                continue
            gained = counted - one.median if sign > 0 else one.median - counted
            loss = -gained * int(questions.weight[one.question])
            ordered.append((_near(loss), loss, by_id, (one.question, *row, round_to_points(gained))))
        rows = [*(row for *_, row in sorted(ordered)), *left_out]
        for place, (question, *numbers) in enumerate(rows, 1):
            yield Reviewed(participant, question, place, *numbers)


def _counts_all(rules: RuleSet) -> bool:
    """Return whether totals are divided by a number, so that each question without a forecast counts."""
    return isinstance(TOTALS[rules.total].divisor, int)


class ReviewEnds(NamedTuple):
    """Where the ends of reviews are, by participant code.

    questions: indices of some questions, among them all of the ends. counted: the number of questions that count.
    """

    questions: dict[int, set[int]]
    counted: dict[int, int]


def review_ends(  # noqa: PLR0913 - the arguments with a default are keywords
    rules: RuleSet,
    scored: ContestScores,
    participants: Sequence[int],
    consensus: int,
    most: int,
    *,
    floored: Collection[int] = (),
    compared: Collection[int],
) -> ReviewEnds:
    """Return among which questions the first and the last `most` of each participant are that count.

    Arguments are as of `reviews`. Rounded scores, each off by at most half of 1e-9, leave only these in doubt.
    """
    questions, sign, people = scored.questions, -1 if lower_is_better(rules) else 1, {*compared}
    by_question: defaultdict[int, dict[int, int]] = defaultdict(dict)
    points = time_weighted.points(rules, questions, scored.rows).published()
    columns = zip(scored.rows.question.tolist(), scored.rows.participant.tolist(), points, strict=True)
    for question, participant, score in columns:
        if participant in people and questions.weight[question]:
            by_question[question][participant] = int(score)
    imputed = missing_scores(rules, questions, scored.rows, consensus)
    doubled = {}  # in half units: twice the median, what counts without a forecast, and the weight
    for question, by_participant in by_question.items():
        ordered, missed = sorted(by_participant.values()), imputed.get(question)
        twice = ordered[len(ordered) // 2] + ordered[~(len(ordered) // 2)]
        doubled[question] = (twice, missed and round_to_points(missed), int(questions.weight[question]))
    candidates, counted = defaultdict[int, set[int]](set), dict[int, int]()
    for participant in participants:
        counts = 0 if _counts_all(rules) or participant in floored else None
        gains = [
            (sign * (2 * score - twice) * weight, 2 * weight, question)
            for question, (twice, missed, weight) in doubled.items()
            if (score := by_question[question].get(participant, counts if missed is None else missed)) is not None
        ]
        counted[participant] = len(gains)
        for side in (1, -1) if gains else ():
            *_, limit = nlargest(most, (side * gain - off for gain, off, _ in gains))
            candidates[participant].update(question for gain, off, question in gains if side * gain + off >= limit)
    return ReviewEnds(candidates, counted)


def _question_scores(
    rules: RuleSet, scored: ContestScores, participants: set[int], sign: int, only: Collection[int] | None
) -> Iterator[_QuestionScores]:
    """Yield the questions that count on which one of the participants has a forecast.

    sign: 1 if the highest score is the best, else -1. only: indices of questions; None is all.
    """
    questions, rows = scored.questions, scored.rows
    if only is not None:
        rows = rows.rows(np.flatnonzero(np.isin(rows.question, int64_array([*only]))))
    by_question: defaultdict[int, list[tuple[Fraction, int, int, int]]] = defaultdict(list)
    points = time_weighted.points(rules, questions, rows)
    columns = zip(
        rows.question.tolist(),
        rows.participant.tolist(),
        points.exact(),
        points.published(),
        time_weighted.coverages(questions, rows).published(),
        strict=True,
    )
    for question, participant, score, rounded, covered in columns:
        if participant in participants and questions.weight[question]:
            by_question[question].append((score, int(rounded), int(covered), participant))
    for question, of_people in sorted(by_question.items()):
        of_people.sort(key=lambda each: (_near(each[0]), each[0]))
        middle = median([score for score, *_ in of_people])
        ranked, rank, last = dict[int, tuple[Fraction, int, int, int]](), 0, None
        best_first = of_people if sign < 0 else of_people[::-1]
        for number, (score, rounded, covered, participant) in enumerate(best_first, 1):
            rank, last = (rank, last) if score == last else (number, score)
            ranked[participant] = score, rounded, covered, rank
        yield _QuestionScores(question, ranked, middle, round_to_points(middle))


def _near(number: Fraction) -> int:
    """Return the whole number below a number, in 2^-80: two of these are compared in no time, unless they are equal."""
    return (number.numerator << 80) // number.denominator


def median(ordered: Sequence[Fraction]) -> Fraction:
    """Return the median of numbers in order: of an even number, the mean of the middle two.

    >>> median([Fraction(1), Fraction(2), Fraction(9)]), median([Fraction(1), Fraction(2)])
    (Fraction(2, 1), Fraction(3, 2))
    """
    middle = len(ordered) // 2
    return Fraction(ordered[middle] + ordered[~middle], 2)
