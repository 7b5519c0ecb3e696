"""Time-weighted scores and coverage, with the parts that sum to them exactly."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ledger.rules import RuleSet
from projections.axis import LONGEST, chunks, shifts
from projections.columns import CHANCE, Contest, Facts
from projections.consensus import Consensus, medians
from projections.limbs import Int64Array, Limbs
from projections.scoring import KERNELS, REFERENCES, least_chance
from projections.standing import Intervals, intervals
from projections.tables import status

CHUNK = 1 << 20  # forecasts scored at a time; any size gives the same numbers


class Questions(NamedTuple):
    """The questions a contest scores: added and resolved, not annulled, when its board was last open; shape (q,).

    code: the question. opens, closes: scheduled, µs. until: when scored time ends: the outcome known, or the close.
    reveals: end of the hidden period. weight: 1e-6. hidden_weight: 1e-6, -1 for plain coverage.
    """

    code: Int64Array
    opens: Int64Array
    closes: Int64Array
    until: Int64Array
    reveals: Int64Array
    outcome: Int64Array
    bins: Int64Array
    least: Int64Array
    weight: Int64Array
    hidden_weight: Int64Array

    def of(self, part: slice) -> "Questions":
        """Some of them."""
        return Questions(*(column[part] for column in self))


class Scores(NamedTuple):
    """One row for each question and participant who forecast on it, in order of both; shape (n,).

    question: index into the contest's questions. numerator: Σ term x µs, in 1e-12 x µs; over the question's scheduled
    period it is the score. covered, covered_hidden: µs of standing forecasts, in all and in the hidden period.
    """

    question: Int64Array
    participant: Int64Array
    numerator: Limbs
    covered: Int64Array
    covered_hidden: Int64Array


class Terms(NamedTuple):
    """What scores and their parts are made of, for some of a contest's questions.

    own: the kernel of each interval's chance, 1e-12. reference: that of the reference from each change of consensus.
    """

    questions: Questions
    standing: Intervals
    chance: Int64Array
    own: Int64Array
    consensus: Consensus
    reference: Int64Array


class Parts(NamedTuple):
    """One row for each interval on which both a forecast and its reference stay the same; shape (n,).

    doubled: twice the median, 1e-10. term: 1e-12. Σ term x (end - start) of a score's parts is its numerator.
    """

    question: Int64Array
    participant: Int64Array
    start: Int64Array
    end: Int64Array
    chance: Int64Array
    doubled: Int64Array
    term: Int64Array


def scored_questions(found: Facts, contest: Contest) -> Questions:
    """The questions that count, in order of code, as of the contest's last open log position."""
    as_of = found.as_of if contest.finalized is None else contest.finalized
    now = status(found, as_of)
    entries = sorted(
        (entry for entry in contest.entries.values() if entry.position <= as_of), key=lambda entry: entry.question
    )
    entries = [entry for entry in entries if now.outcome[entry.question] >= 0]
    opened = [found.questions[entry.question] for entry in entries]
    code = np.array([entry.question for entry in entries], np.int64)
    outcome, bins = now.outcome[code], now.bins[code]
    rules = contest.opened.rules
    least = [least_chance(rules, *answer) for answer in zip(outcome.tolist(), bins.tolist(), strict=True)]
    hidden = [-1 if entry.hidden_coverage_weight is None else entry.hidden_coverage_weight for entry in entries]
    return Questions(
        code=code,
        opens=now.opens_at[code],
        closes=now.closes_at[code],
        until=np.minimum(now.closed_at[code], now.known_at[code]),
        reveals=_column(
            [question.opens_at if question.reveals_at is None else question.reveals_at for question in opened]
        ),
        outcome=outcome,
        bins=bins,
        least=_column(least),
        weight=_column([entry.weight for entry in entries]),
        hidden_weight=_column(hidden),
    )


def terms(found: Facts, contest: Contest, questions: Questions, chunk: int = CHUNK) -> Iterator[tuple[int, Terms]]:
    """The terms of a contest's scores, some questions at a time, each with the index of its first question."""
    as_of = found.as_of if contest.finalized is None else contest.finalized
    sizes = found.forecasts.counts(questions.code)
    for part in chunks(sizes, questions.opens, questions.closes, chunk):
        some = questions.of(part)
        yield part.start, _terms(found, contest.opened.rules, some, as_of)


def scores(found: Facts, contest: Contest, questions: Questions, chunk: int = CHUNK) -> Scores:
    """Every score of a contest, exact.

    score = 1/(closes - opens) · Σ (kernel(chance) - kernel(reference)) · µs, 0 while no forecast of one's own stands.
    Source: seed 000_b8319c7b2812d652, "Relative Log Scores for Question 1" and "Question 3".
    """
    found_scores = [_scores(first, part) for first, part in terms(found, contest, questions, chunk)]
    if not found_scores:
        none = np.zeros(0, np.int64)
        return Scores(none, none, Limbs.of(none), none, none)
    question, participant, numerators, covered, hidden = zip(*found_scores, strict=True)
    numerator = Limbs(*(np.concatenate(limbs) for limbs in zip(*numerators, strict=True)))
    columns = (np.concatenate(column) for column in (question, participant, covered, hidden))
    question_column, participant_column, covered_column, hidden_column = columns
    return Scores(question_column, participant_column, numerator, covered_column, hidden_column)


def parts(first: int, made_of: Terms) -> Parts:
    """The parts of the scores that terms lead to; `first` is the index of their first question.

    As many rows as intervals between changes of the median, for each forecast that stands then.
    """
    standing, consensus = made_of.standing, made_of.consensus
    kept = _changes(consensus, made_of.reference)
    begins = np.searchsorted(kept, consensus.begins, "right") - 1
    ends = np.searchsorted(kept, consensus.ends)
    lengths = ends - begins
    owner = np.repeat(np.arange(len(lengths)), lengths)
    change = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + np.repeat(begins, lengths)
    shift = np.repeat(shifts(made_of.questions.opens, made_of.questions.closes)[standing.question], lengths)
    at = consensus.instant[kept]
    start = np.maximum(at[change] - shift, standing.start[owner])
    end = np.minimum(np.append(at, LONGEST)[change + 1] - shift, standing.end[owner])
    return Parts(
        question=standing.question[owner] + first,
        participant=standing.participant[owner],
        start=start,
        end=end,
        chance=made_of.chance[owner],
        doubled=(consensus.low + consensus.high)[kept][change],
        term=made_of.own[owner] - made_of.reference[kept][change],
    )


def _terms(found: Facts, rules: RuleSet, questions: Questions, as_of: int) -> Terms:
    forecasts = found.forecasts.on(questions.code, as_of)
    standing = intervals(forecasts, questions.opens, questions.until, early=rules.early_forecasts)
    question = standing.question
    chance = forecasts.chance(standing.row, questions.outcome[question], questions.bins[question])
    chance = np.maximum(chance, questions.least[question])
    shift = shifts(questions.opens, questions.closes)[question]
    consensus = medians(standing.start + shift, standing.end + shift, question, chance)
    kernel = KERNELS[rules.kernel]
    reference = REFERENCES[rules.reference](kernel, consensus)
    return Terms(questions, standing, chance, kernel.terms(chance, CHANCE), consensus, reference)


def _scores(first: int, made_of: Terms) -> Scores:
    standing, consensus = made_of.standing, made_of.consensus
    length = standing.end - standing.start
    lasts = np.diff(consensus.instant, append=consensus.instant[-1:])
    integral = Limbs.product(made_of.reference, np.where(consensus.stand > 0, lasts, 0)).running()
    imputed = integral.take(consensus.ends) - integral.take(consensus.begins)
    numerator = Limbs.product(made_of.own, length) - imputed
    question, participant = standing.question, standing.participant
    other = (question[1:] != question[:-1]) | (participant[1:] != participant[:-1])
    starts = np.flatnonzero(np.append(True, other)[: len(question)])
    hidden = np.minimum(standing.end, made_of.questions.reveals[question]) - standing.start
    return Scores(
        question=question[starts] + first,
        participant=participant[starts],
        numerator=numerator.summed(starts),
        covered=np.add.reduceat(length, starts) if len(starts) else length,
        covered_hidden=np.add.reduceat(np.maximum(hidden, 0), starts) if len(starts) else length,
    )


def _changes(consensus: Consensus, reference: Int64Array) -> Int64Array:
    """The instants of change at which the reference itself changes, or forecasts begin to stand or cease to."""
    none = consensus.stand == 0
    doubled = consensus.low + consensus.high
    same = (doubled[1:] == doubled[:-1]) & (reference[1:] == reference[:-1]) & ~none[1:] & ~none[:-1]
    return np.flatnonzero(np.append(True, ~same)[: len(none)])


def _column(values: list[int]) -> Int64Array:
    return np.array(values, np.int64)
