"""Time-weighted scores and coverages, and the parts that add up to them exactly."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.sorting import run_starts, stable_order
from forecast_ledger.projections.core.timeline import shifts
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.references.kinds import Compared
from forecast_ledger.projections.scores.sampling import SAMPLINGS
from forecast_ledger.projections.scores.score_terms import CHUNK, terms_in_chunks
from forecast_ledger.projections.scores.scored_questions import Questions, question_ruler
from forecast_ledger.projections.scores.terms import Terms

SLICE = 1 << 17  # intervals of a question that are compared at once; any size gives the same numbers
MOST_PARTS = 3_000_000  # rows of `score_parts` that are computed at once; they take about a gigabyte


class Scores(NamedTuple):
    """One row for each question and each participant who forecast on it, in order of both; shape (n,).

    question: index into the questions. participant: code; the consensus has the last code + 1. numerator: Σ term x
    time x 2^fine, in the kernel's unit x units of time. covered, covered_hidden: units of time in which a forecast
    stood, in all and in the hidden period.
    """

    question: Int64Array
    participant: Int64Array
    numerator: WideInt
    covered: Int64Array
    covered_hidden: Int64Array

    def of(self, participant: int) -> "Scores":
        """Return the rows of one participant."""
        return self.rows(np.flatnonzero(self.participant == participant))

    def on(self, part: slice) -> "Scores":
        """Return the rows of a range of questions, renumbered from 0."""
        first, end = np.searchsorted(self.question, [part.start, part.stop]).tolist()
        rows = self.rows(np.arange(first, end))
        return rows._replace(question=rows.question - part.start)

    def rows(self, index: Int64Array) -> "Scores":
        """Return the rows at these indices."""
        plain = (self.covered[index], self.covered_hidden[index])
        return Scores(self.question[index], self.participant[index], self.numerator.take(index), *plain)


class ScoreParts(NamedTuple):
    """One row for each interval on which a forecast and its reference do not change; shape (n,).

    start, end: µs. units: units of time between them. doubled: twice the probability of the outcome, 1e-10; below 0 for
    quantiles. consensus: twice the consensus's probability, -1 without one. peers: number of members who have a
    standing forecast, -1 if the reference is not `peers`. earned: the parts of a score add up to its numerator.
    """

    question: Int64Array
    participant: Int64Array
    start: Int64Array
    end: Int64Array
    units: Int64Array
    doubled: Int64Array
    consensus: Int64Array
    peers: Int64Array
    earned: WideInt


def scores(
    facts: Facts, contests: Sequence[Contest], questions: Questions, chunk: int = CHUNK, slice_size: int = SLICE
) -> Scores:
    """Return every score of contests of one rule set, exact.

    score = 1 / period · Σ (kernel(forecast) - kernel(reference)) · time; a term is 0 while the participant has no
    standing forecast.

    Source: Metaculus, Tournament Scoring, "Relative Log Scores for Question 1" and "Question 3";
    Metaculus, Scores FAQ, "Do all my predictions on a question count toward my score?".
    """
    chunks = [_scores(first, part) for first, part in terms_in_chunks(facts, contests, questions, chunk, slice_size)]
    if not chunks:
        none = np.zeros(0, np.int64)
        return Scores(none, none, WideInt.from_int64(none), none, none)
    question, participant, numerators, covered, hidden = zip(*chunks, strict=True)
    numerator = WideInt(*(np.concatenate(part) for part in zip(*numerators, strict=True)))
    columns = (np.concatenate(column) for column in (question, participant, covered, hidden))
    question_column, participant_column, covered_column, hidden_column = columns
    every = Scores(question_column, participant_column, numerator, covered_column, hidden_column)
    key = every.question * (int(every.participant.max(initial=0)) + 1) + every.participant
    # They are in order unless reference forecasters have rows, which come apart, or a question came in slices.
    return every if (np.diff(key) > 0).all() else _added(every.rows(stable_order(key)))


def _added(rows: Scores) -> Scores:
    """Return a row for each question and participant, of several."""
    starts = run_starts(rows.question, rows.participant)
    covered, hidden = (np.add.reduceat(column, starts) for column in (rows.covered, rows.covered_hidden))
    return Scores(rows.question[starts], rows.participant[starts], rows.numerator.run_sums(starts), covered, hidden)


def count_score_parts(terms: Terms) -> int:
    """Return how many rows `score_parts` returns, without computing them."""
    if terms.compared is None:
        return len(terms.standing.row)
    _, begins, ends = _stretches(terms.compared)
    return int((ends - begins).sum())


def _stretches(compared: Compared) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the steps at which the reference changes, and the range of them that each interval meets.

    The range begins with the last change at or before the interval's start; its end is exclusive.
    """
    steps, changed = compared.steps, compared.changes()
    return changed, np.searchsorted(changed, steps.begins, "right") - 1, np.searchsorted(changed, steps.ends)


def score_parts(first: int, terms: Terms, contest: Contest) -> ScoreParts:
    """Return the parts of the scores of these terms; `first` is the index of their first question.

    There is one row for each standing forecast and each interval between changes of its reference.
    """
    rules, questions, standing = contest.opened.rules, terms.questions, terms.standing
    compared = terms.compared
    if compared is None:
        owner = np.arange(len(standing.row))
        start, end, earned = standing.start, standing.end, terms.earned()
        consensus = peers = np.full(len(owner), -1)
    else:
        steps, (changed, begins, ends) = compared.steps, _stretches(compared)
        lengths = ends - begins
        owner = np.repeat(np.arange(len(lengths)), lengths)
        change = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + np.repeat(begins, lengths)
        lower = np.maximum(changed[change], steps.begins[owner])
        upper = np.minimum(np.append(changed, len(steps.instant))[change + 1], steps.ends[owner])
        shift = shifts(np.zeros_like(questions.length), questions.length)[standing.question[owner]]
        start, end = steps.instant[lower] - shift, steps.instant[upper] - shift
        rows = terms.scored.of(owner)
        earned = compared.earned_between_changes(rows, lower, upper)
        consensus = compared.reference(rows, lower)
        peers = steps.stand[lower] if rules.reference in {"peers", "median_score"} else np.full(len(owner), -1)
    question = standing.question[owner]
    days, sampling = question_ruler(contest, questions), SAMPLINGS[rules.sampling]
    return ScoreParts(
        question=question + first,
        participant=standing.participant[owner],
        start=sampling.instants(days, start, question),
        end=(sampling.ends or sampling.instants)(days, end, question),
        units=end - start,
        doubled=terms.doubled[owner],
        consensus=consensus,
        peers=peers,
        earned=earned,
    )


def _scores(first: int, terms: Terms) -> Scores:
    standing, earned = terms.standing, terms.earned()
    length = standing.end - standing.start
    question, participant = standing.question, standing.participant
    starts = run_starts(question, participant)
    hidden = np.minimum(standing.end, terms.questions.hidden[question]) - standing.start
    return Scores(
        question=question[starts] + first,
        participant=participant[starts],
        numerator=earned.run_sums(starts),
        covered=np.add.reduceat(length, starts) if len(starts) else length,
        covered_hidden=np.add.reduceat(np.maximum(hidden, 0), starts) if len(starts) else length,
    )
