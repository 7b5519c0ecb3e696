"""Exact scores and coverages: sums over units of time, divided by the divisors of their questions.

The parts of a score, one for each interval in which nothing changes, add up to it exactly.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import WEIGHT
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import Int64Array, Totals, distinct, int64_array, run_starts, stable_order
from forecast_ledger.projections.core.columns import POINTS, round_to_points
from forecast_ledger.projections.core.estimates import multiply_and_round
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.question_groups import QuestionGroup
from forecast_ledger.projections.scores.reference_kinds import Compared, fine_bits
from forecast_ledger.projections.scores.sampling import SAMPLINGS, shifts
from forecast_ledger.projections.scores.score_terms import CHUNK, terms_in_chunks
from forecast_ledger.projections.scores.scored_questions import Questions, question_ruler
from forecast_ledger.projections.scores.terms import Terms

SLICE = 1 << 17  # intervals of a question that are compared at once; any size gives the same numbers
MOST_PARTS = 3_000_000  # rows of `score_parts` that are computed at once; they take about a gigabyte
_COUNTED = {"peers", "median_score", "mean_score"}  # references of which the members who stand are counted


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


class ContestScores(NamedTuple):
    """The scores of one contest and the questions that they are for."""

    questions: Questions
    rows: Scores


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
    # They are in order unless reference forecasters have rows, which come apart, or a question came in slices.
    ends = [(int(part[0]), int(part[-1])) for part in question if len(part)]
    if all(one[1] < other[0] for one, other in pairwise(ends)):
        return every
    key = every.question * (int(every.participant.max(initial=0)) + 1) + every.participant
    return _added(every.rows(stable_order(key)))


def _added(rows: Scores) -> Scores:
    """Return a row for each question and participant, of several."""
    starts = run_starts(rows.question, rows.participant)
    totals = Totals.of_runs(starts, len(rows.question))
    sums = rows.numerator.totals(totals), totals.of(rows.covered), totals.of(rows.covered_hidden)
    return Scores(rows.question[starts], rows.participant[starts], *sums)


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
        peers = steps.stand[lower] if rules.reference in _COUNTED else np.full(len(owner), -1)
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
    question, participant = terms.standing.question, terms.standing.participant
    starts = run_starts(question, participant)
    totals, (covered, hidden) = Totals.of_runs(starts, len(question)), covered_units(terms)
    sums = terms.sums(totals), totals.of(covered), totals.of(hidden)
    return Scores(question[starts] + first, participant[starts], *sums)


def covered_units(terms: Terms) -> tuple[Int64Array, Int64Array]:
    """Return the units of time that each interval covers, in all and in the hidden period."""
    standing, hidden = terms.standing, terms.questions.hidden
    covered = standing.end - standing.start
    if not hidden.any():
        return covered, np.zeros_like(covered)
    return covered, np.maximum(np.minimum(standing.end, hidden[standing.question]) - standing.start, 0)


class Quotients(NamedTuple):
    """Exact quotients: numerators / divisors[divisor_of]; shape (n,)."""

    numerators: WideInt
    divisors: list[Fraction]
    divisor_of: Int64Array

    def published(self) -> Int64Array | list[int]:
        """Return the quotients in 1e-9, rounded half-even once."""
        return multiply_and_round(
            self.numerators, [Fraction(POINTS, divisor) for divisor in self.divisors], self.divisor_of
        )

    def exact(self) -> list[Fraction]:
        """Return the quotients as fractions."""
        return [Fraction(*each) for each in self.terms()]

    def terms(self, factor: int = 1) -> Iterator[tuple[int, int]]:
        """Yield the quotients times a factor, as numerator and denominator."""
        divisor_of = self.divisor_of.tolist()
        used = ((which, self.divisors[which]) for which in {*divisor_of})
        rates = {which: (factor * divisor.denominator, divisor.numerator) for which, divisor in used}
        for number, which in zip(self.numerators.integers(), divisor_of, strict=True):
            yield number * rates[which][0], rates[which][1]


def points(rules: RuleSet, questions: Questions, rows: Scores) -> Quotients:
    """Return the exact scores, in points."""
    groups, group_of, per_point = questions.groups
    over = rows.covered if rules.period == "covered" else np.zeros_like(rows.covered)
    overs, over_index = distinct(over)
    keys, divisor_of = distinct(group_of[rows.question] * len(overs) + over_index)
    divisors = []
    for number, index in (divmod(key, len(overs)) for key in keys.tolist()):
        group = groups[number]
        divisors.append(divisor(rules, per_point[group.per_point], group, int(overs[index]), fine_bits(rules)))
    return Quotients(rows.numerator, divisors, divisor_of)


def coverages(questions: Questions, rows: Scores) -> Quotients:
    """Return the coverage of each score: the covered share of the scheduled period or of scored time, by the rule set.

    With a hidden weight w it is w x (covered share of the hidden part) + (1 - w) x (covered share of what follows).

    Source: Metaculus, Scores FAQ, "What are the Hidden Period and Hidden Coverage Weights?".
    """
    groups, group_of, _ = questions.groups
    return covered_shares(groups, group_of[rows.question], rows.covered, rows.covered_hidden)


def covered_shares(
    groups: list[QuestionGroup], group_of: Int64Array, covered: Int64Array, in_hidden: Int64Array
) -> Quotients:
    """Return the `share` of each row, shape (n,). group_of: the index of its group in `groups`."""
    hidden, after_hidden = (
        WideInt.from_integers([group.rates[side] for group in groups]).take(group_of) for side in (0, 1)
    )
    numerators = hidden.times(in_hidden) + after_hidden.times(covered - in_hidden)
    return Quotients(numerators.carried(), [Fraction(group.common * WEIGHT) for group in groups], group_of)


def attainable_shares(questions: Questions) -> Int64Array:
    """Return the coverage of a forecast that stands from the opening until scored time ends, of each question, in 1e-9.

    It is rounded half-even.
    """
    groups, group_of, _ = questions.groups
    shares: Int64Array = int64_array([round_to_points(group.attainable) for group in groups])[group_of]
    return shares


def divisor(rules: RuleSet, per_point: Fraction, group: QuestionGroup, covered: int, fine: int) -> Fraction:
    """Return the divisor of a score's numerator: kernel units per point x units of time x 2^fine."""
    return per_point * (divided_by(rules, group, covered) << fine)


def divided_by(rules: RuleSet, group: QuestionGroup, covered: int) -> int:
    """Return the units of time that a score is divided by."""
    return {"scheduled": group.period, "actual": group.reached, "covered": covered}[rules.period]
