"""The forecasts from which Brier aggregates are computed: the last or, with spot sampling, the one at the spot."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from msgspec import structs

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.projections.boards.brier_sums import Sample
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.facts.columns import DOUBLED, Contest, Entry, Facts
from forecast_ledger.projections.scores.score_terms import terms_in_chunks
from forecast_ledger.projections.scores.scored_questions import scored_questions


class ContestSample(NamedTuple):
    """The sample of one contest. owners: the number of participant codes, and one more for the consensus."""

    sample: Sample
    owners: int


def sample_contests(facts: Facts, contests: Sequence[Contest], chunk: int) -> tuple[Int64Array, Sample, int]:
    """Return the forecasts on binary questions that stood at the spot, with the consensus of that instant.

    If the rule set does not sample at a spot, the forecasts are those that stood when scored time ended.
    Returns the index of the contest of each row, the sample, and the number of owners.
    """
    spot = [_binary(facts, contest) for contest in contests]
    consensus = len(facts.participant_codes.codes)
    questions = scored_questions(facts, *spot)
    parts = [
        _answered(rows.standing.question + first, rows.standing.participant, rows.doubled, questions.outcome)
        for first, rows in terms_in_chunks(facts, spot, questions, chunk)
    ]
    question, owner, probability, happened = _columns(parts)
    consensus_probability = np.full(len(questions.code), -1)
    is_consensus = owner == consensus
    consensus_probability[question[is_consensus]] = probability[is_consensus]
    return (
        questions.contest[question],
        Sample(owner, probability, consensus_probability[question], happened),
        consensus + 1,
    )


def at_one_instant(facts: Facts, contest: Contest, counts: Callable[[QuestionOpened], bool]) -> Contest:
    """Return the contest with some of its questions that count, under rules that sample them at one instant.

    There is no reference, and no row of a reference forecaster. counts: says which questions these are.
    """
    rules = structs.replace(
        contest.opened.rules, reference="none", sampling="spot", scale="plain", reference_rows=(), payouts="unscored"
    )
    last = contest.as_of(facts)
    entries = {
        code: entry._replace(spot_at=_one_instant(contest, entry, facts.question_as_of(code, last).closes_at), spots=())
        for code, entry in contest.entries.items()
        if counts(facts.questions[code]) and entry.weight
    }
    return replace(contest, opened=structs.replace(contest.opened, rules=rules), entries=entries)


def _binary(facts: Facts, contest: Contest) -> Contest:
    """Return the contest with its binary questions that count, at one instant; they are scored by Brier score.

    So is the consensus.
    """
    sampled = at_one_instant(facts, contest, lambda question: question.kind == "binary")
    rules = structs.replace(
        sampled.opened.rules,
        kernel="brier",
        cdf_kernel="none",
        quantile_kernel="none",
        score_consensus=True,
        least_probability_ppm=0,
    )
    return replace(sampled, opened=structs.replace(sampled.opened, rules=rules))


def _one_instant(contest: Contest, entry: Entry, closes_at: int) -> int | None:
    """Return the spot of a question, the last one of several; None for the reveal, else the close."""
    if contest.opened.rules.sampling != "spot":
        return closes_at
    return entry.spots[-1][0] if entry.spots else entry.spot_at


def _answered(
    question: Int64Array, owner: Int64Array, doubled: Int64Array, outcome: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array, BoolArray]:
    """Return question, owner, probability of yes in 1e-9, and whether the answer was yes; the first outcome is yes."""
    happened = outcome[question] == 0
    chance = doubled // DOUBLED
    return question, owner, np.where(happened, chance, PROBABILITY - chance), happened


def _columns(
    parts: list[tuple[Int64Array, Int64Array, Int64Array, BoolArray]],
) -> tuple[Int64Array, Int64Array, Int64Array, BoolArray]:
    none = np.zeros(0, np.int64)
    question, owner, probability, happened = zip(*[*parts, (none, none, none, np.zeros(0, bool))], strict=True)
    return np.concatenate(question), np.concatenate(owner), np.concatenate(probability), np.concatenate(happened)
