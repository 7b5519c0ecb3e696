"""Calibration of forecasts on several outcomes: each outcome is an event that happens or does not."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from msgspec import structs

from forecast_ledger.projections.boards import brier, brier_sums
from forecast_ledger.projections.boards.brier_sample import at_one_instant
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.core.sorting import distinct
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.forecast_numbers import Numbers
from forecast_ledger.projections.scores.score_terms import standing_in_chunks
from forecast_ledger.projections.scores.scored_questions import scored_questions
from forecast_ledger.projections.scores.terms import numbers


def option_bins(facts: Facts, contests: Sequence[Contest], chunk: int) -> Iterator[tuple[int, brier.Bin]]:
    """Yield the calibration bins of each participant's multiple-choice forecasts, for contests of one rule set.

    By index of the contest, participant code and bin. One forecast counts for a question, as in Brier aggregates: the
    one that stood at the spot or, if the rule set does not sample at a spot, when scored time ended. Each outcome that
    it gives a probability to is a row of the sample. If an outcome was added later and happened, what happened is the
    catch-all, in which its probability was.
    """
    codes = max(len(facts.participant_codes.codes), 1)
    parts = [
        _events(contest * codes + participant, made) for contest, participant, made in _sampled(facts, contests, chunk)
    ]
    nothing = np.zeros(0, np.int64)
    owner, probability, happened = map(np.concatenate, zip(*parts, (nothing, nothing, np.zeros(0, bool)), strict=True))
    keys, place = distinct(owner)
    sample = brier_sums.Sample(place, probability, np.full(len(place), -1), happened)
    for row in brier.calibration_bins(brier_sums.bin_sums(brier_sums.sums_of(sample))):
        contest, participant = divmod(int(keys[row.owner]), codes)
        yield contest, row._replace(owner=participant)


def _sampled(facts: Facts, contests: Sequence[Contest], chunk: int) -> Iterator[tuple[Int64Array, Int64Array, Numbers]]:
    sampled = [_multiple_choice(facts, contest) for contest in contests]
    questions = scored_questions(facts, *sampled)
    for _, own, forecasts, standing in standing_in_chunks(facts, sampled, questions, chunk):
        made = numbers(own, forecasts.chances, forecasts.start[standing.row], standing.question)
        yield own.contest[standing.question], standing.participant, made


def _multiple_choice(facts: Facts, contest: Contest) -> Contest:
    """Return the contest with its multiple-choice questions that count; the kernel only selects them."""
    sampled = at_one_instant(facts, contest, lambda question: question.kind == "multiple_choice")
    rules = structs.replace(
        sampled.opened.rules, kernel="brier", cdf_kernel="none", quantile_kernel="none", score_consensus=False
    )
    return replace(sampled, opened=structs.replace(sampled.opened, rules=rules))


def _events(owner: Int64Array, made: Numbers) -> tuple[Int64Array, Int64Array, BoolArray]:
    """Return owner, probability, 1e-9, and whether it happened, for each outcome of each forecast."""
    probability, _, place = made.columns()
    return np.repeat(owner, made.width), probability, place == np.repeat(made.outcome, made.width)
