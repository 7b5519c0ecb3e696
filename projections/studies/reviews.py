"""Reviews: each participant's questions, the best first, with what a missed question cost.

A score alone does not tell a good forecast from an easy question. A review compares it with the median score of all who
forecast on the same question.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards.leaderboard import TOTALS
from forecast_ledger.projections.boards.totals import missing_scores
from forecast_ledger.projections.core.arrays import (
    Int64Array,
    distinct,
    int64_array,
    run_lengths,
    run_starts,
    stable_order,
)
from forecast_ledger.projections.core.columns import round_to_points
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.scored_questions import Questions, lower_is_better
from forecast_ledger.projections.scores.time_weighted import ContestScores, Scores


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
    """A question: of some participants, by code, the exact score, the same in 1e-9, the coverage and the rank.

    forecasters: how many have a score. median: of the scores. rounded: the median, 1e-9.
    """

    question: int
    by_participant: dict[int, tuple[Fraction, int, int, int]]
    forecasters: int
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
    attainable = time_weighted.attainable_shares(questions).tolist()
    among = {*(participants if compared is None else compared)}
    chosen = None if only is None else {*chain.from_iterable(only.values())}
    scored_questions = [*_question_scores(rules, _among(scored, among, chosen), participants, only)]
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
            row = score, rank, one.forecasters, covered, attainable[one.question], one.rounded, rounded
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
    sign, rows = -1 if lower_is_better(rules) else 1, _among(scored, compared, None).rows
    rows = rows.rows(stable_order(rows.participant))
    published = [*map(int, time_weighted.points(rules, scored.questions, rows).published())]
    codes, column = distinct(rows.question)
    each: list[list[int]] = [[] for _ in codes]
    for number, score in zip(column.tolist(), published, strict=True):
        each[number].append(score)
    imputed = missing_scores(rules, scored.questions, scored.rows, consensus)
    missed = [None if score is None else round_to_points(score) for score in map(imputed.get, codes.tolist())]
    weights = scored.questions.weight[codes].tolist()
    largest = max(map(abs, [*published, *filter(None, missed)]), default=0)
    kind: type = np.int64 if 5 * largest * max(weights, default=0) < 1 << 62 else object
    twice: NDArray[Any] = np.array(
        [ordered[len(ordered) // 2] + ordered[~(len(ordered) // 2)] for ordered in map(sorted, each)], kind
    )
    weight: NDArray[Any] = np.array(weights, kind)
    scores: NDArray[Any] = np.array(published, kind)
    missing: NDArray[Any] = np.array([score or 0 for score in missed], kind)
    left_out, off = np.array([score is None for score in missed], bool), 2 * weight  # a gain may be off by so much
    candidates, counted = dict[int, set[int]](), dict[int, int]()
    for participant in participants:
        mine = slice(*np.searchsorted(rows.participant, [participant, participant + 1]).tolist())
        values, counts = missing.copy(), ~left_out | (_counts_all(rules) or participant in floored)
        values[column[mine]], counts[column[mine]] = scores[mine], True
        gains, reach = (sign * (2 * values - twice) * weight)[counts], off[counts]
        counted[participant], candidates[participant] = len(gains), set()
        for side in (1, -1) if len(gains) else ():
            first = min(most, len(gains))
            limit = np.partition(side * gains - reach, -first)[-first]
            candidates[participant].update(codes[counts][side * gains + reach >= limit].tolist())
    return ReviewEnds(candidates, counted)


def _among(scored: ContestScores, people: Collection[int], only: Collection[int] | None) -> ContestScores:
    """Return the scores of some participants on questions that count. only: indices of questions; None is all."""
    rows = scored.rows
    kept = (scored.questions.weight[rows.question] > 0) & np.isin(rows.participant, int64_array([*people]))
    if only is not None:
        kept &= np.isin(rows.question, int64_array([*only]))
    return scored._replace(rows=rows.rows(np.flatnonzero(kept)))


def _question_scores(
    rules: RuleSet, scored: ContestScores, shown: Sequence[int], only: Mapping[int, Collection[int]] | None
) -> Iterator[_QuestionScores]:
    """Yield the questions with scores, and the scores of the participants who are shown; only: as of `reviews`."""
    questions, (order, alike) = scored.questions, _in_order(rules, scored)
    rows = scored.rows.rows(order)
    starts = run_starts(rows.question)
    counts = run_lengths(starts, len(order))
    middles = (_exact(rules, questions, rows.rows(starts + at)) for at in (counts // 2, (counts - 1) // 2))
    kept = np.flatnonzero(np.isin(rows.participant, int64_array(shown)))
    if only is not None:
        count = len(questions.code)
        pairs = int64_array([who * count + index for who in shown for index in only.get(who, ())])
        kept = kept[np.isin(rows.participant[kept] * count + rows.question[kept], pairs)]
    number, run = (np.searchsorted(each, kept, "right") - 1 for each in (starts, alike))
    before, after = alike[run] - starts[number], (starts + counts)[number] - np.append(alike, len(order))[run + 1]
    some, by_question = rows.rows(kept), [dict[int, tuple[Fraction, int, int, int]]() for _ in starts]
    columns = zip(
        number.tolist(),
        some.participant.tolist(),
        _exact(rules, questions, some),
        time_weighted.points(rules, questions, some).published(),
        time_weighted.coverages(questions, some).published(),
        (1 + (before if lower_is_better(rules) else after)).tolist(),
        strict=True,
    )
    for at, participant, score, rounded, covered, rank in columns:
        by_question[at][participant] = score, int(rounded), int(covered), rank
    every = zip(rows.question[starts].tolist(), by_question, counts.tolist(), *middles, strict=True)
    for question, by_participant, count, one, other in every:
        middle = Fraction(one + other, 2)
        yield _QuestionScores(question, by_participant, count, middle, round_to_points(middle))


def _exact(rules: RuleSet, questions: Questions, rows: Scores) -> list[Fraction]:
    return time_weighted.points(rules, questions, rows).exact()


def _in_order(rules: RuleSet, scored: ContestScores) -> tuple[Int64Array, Int64Array]:
    """Return the order of the rows by question and score, and where in it each run of equal scores begins."""
    rows = scored.rows
    if rules.period != "covered":  # then the scores on a question have one divisor
        words = rows.numerator.carried()
        order = np.lexsort((*words, rows.question))
        return order, run_starts(*(column[order] for column in (rows.question, *words)))
    exact = _exact(rules, scored.questions, rows)
    keys = [*zip(rows.question.tolist(), map(_near, exact), exact, strict=True)]
    in_order = sorted(range(len(keys)), key=keys.__getitem__)
    starts = [at for at, row in enumerate(in_order) if not at or keys[row] != keys[in_order[at - 1]]]
    return int64_array(in_order), int64_array(starts)


def _near(number: Fraction) -> int:
    """Return the whole number below a number, in 2^-80: two of these are compared in no time, unless they are equal."""
    return (number.numerator << 80) // number.denominator
