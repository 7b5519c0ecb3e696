"""Boards as the answers came: after each answer, what the board would be without later ones."""

from collections.abc import Iterator

import numpy as np

from forecast_ledger.projections.boards import totals
from forecast_ledger.projections.boards.contest_groups import ContestScores
from forecast_ledger.projections.boards.totals import NO_SCORES, Tally
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.scored_questions import Questions


def tallies_over_time(facts: Facts, contest: Contest, scored: ContestScores) -> Iterator[tuple[int, Tally]]:
    """Yield each question that counts, as an index, and the tally of the questions answered up to it.

    Questions are added in the order of the answers that count. Their scores are as they are now; `leaderboard.board`
    makes a board of a tally.
    """
    order = np.argsort(answered_at(facts, contest, scored.questions), kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    consensus = len(facts.participant_codes.labels)
    whole = Tally({}, NO_SCORES, {})
    each = totals.tallies(contest.opened.rules, scored.questions, scored.rows, consensus, place)
    for question, more in zip(order.tolist(), each, strict=True):
        if scored.questions.weight[question] > 0:
            whole = whole.plus(more)
            yield question, whole


def answered_at(facts: Facts, contest: Contest, questions: Questions) -> Int64Array:
    """Return the log position of the answer that counts for each scored question of a contest, shape (q,)."""
    last, settled = contest.as_of(facts), np.zeros(len(facts.questions), np.int64)
    for row in facts.settlements:
        if row.position <= last:
            settled[row.question] = row.position
    answered: Int64Array = settled[questions.code]
    return answered
