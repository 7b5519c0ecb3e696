"""Probability integral transforms: in which tenth of their forecast distribution numeric answers fell."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from msgspec import structs

from forecast_ledger.ledger.core.values import CUMULATIVE, PROBABILITY
from forecast_ledger.projections.boards.brier_sample import at_one_instant
from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.forecast_numbers import Numbers
from forecast_ledger.projections.scores.range_kernels import place_of, units_around
from forecast_ledger.projections.scores.score_terms import standing_in_chunks
from forecast_ledger.projections.scores.scored_questions import scored_questions
from forecast_ledger.projections.scores.terms import numbers

BINS = 10
_INNER = tuple(PROBABILITY // BINS * place for place in range(1, BINS))  # the levels between bins, 1e-9


class PitCounts(NamedTuple):
    """One row for each contest and participant with a forecast that is counted, in order of both.

    contest: index. participant: code. counts: the number of answers in each tenth, shape (n, 10).
    """

    contest: Int64Array
    participant: Int64Array
    counts: Int64Array


def pit_counts(facts: Facts, contests: Sequence[Contest], chunk: int) -> PitCounts:
    """Count in which tenth of each participant's forecasts the answers fell, for contests of one rule set.

    One forecast counts for a question: as in Brier aggregates, the one that stood at the spot or, if the rule set does
    not sample at a spot, when scored time ended. A forecast by quantiles counts if it has the levels 0.1, 0.2 … 0.9.

    Source: Dawid (1984), doi:10.2307/2981683; without random numbers, as scoringutils, get_pit_histogram.
    """
    keys, codes = [np.zeros(0, np.int64)], len(facts.participant_codes.codes)
    for contest, participant, made in sampled_numbers(facts, contests, chunk):
        tenth = tenths(made)
        counted = tenth >= 0
        keys.append(((contest * codes + participant) * BINS + tenth)[counted])
    key, count = np.unique(np.concatenate(keys), return_counts=True)
    owners, row = np.unique(key // BINS, return_inverse=True)
    counts = np.zeros((len(owners), BINS), np.int64)
    counts[row, key % BINS] = count
    return PitCounts(owners // max(codes, 1), owners % max(codes, 1), counts)


def sampled_numbers(
    facts: Facts, contests: Sequence[Contest], chunk: int
) -> Iterator[tuple[Int64Array, Int64Array, Numbers]]:
    """Yield the numeric forecasts that count, one for each question and participant, of contests of one rule set.

    Some questions at a time: the contest of each forecast, by index, the code of its participant, and the forecasts.
    """
    sampled = [_numeric(facts, contest) for contest in contests]
    questions = scored_questions(facts, *sampled)
    for _, own, forecasts, standing in standing_in_chunks(facts, sampled, questions, chunk):
        made = numbers(own, forecasts.chances, forecasts.start[standing.row], standing.question)
        yield own.contest[standing.question], standing.participant, made


def _numeric(facts: Facts, contest: Contest) -> Contest:
    """Return the contest with its numeric questions that count, at one instant; their kernels only select them."""
    sampled = at_one_instant(facts, contest, lambda question: question.range is not None)
    rules = structs.replace(
        sampled.opened.rules, kernel="none", cdf_kernel="crps", quantile_kernel="pinball", score_consensus=False
    )
    return replace(sampled, opened=structs.replace(sampled.opened, rules=rules))


def tenths(made: Numbers) -> Int64Array:
    """Return the tenth, 0 to 9, of each forecast distribution in which the answer fell; -1 without the inner levels.

    A tenth has its upper end: an answer y falls in tenth k if the quantile of k / 10 is below y and that of
    (k + 1) / 10 is not. So of equal quantiles the lowest counts. For a cdf F it is the tenth with
    k / 10 < F(y) <= (k + 1) / 10, the first with F(y) = 0 too; an answer beyond the range counts as the nearer end.

    >>> from forecast_ledger.ledger.model.events import NumericRange
    >>> span = NumericRange(lower="0", upper="4", bins=2)
    >>> cdf = np.array([0, 3 * 10**9, 10**10])
    >>> [
    ...     tenths(Numbers(cdf, *(np.array([each]) for each in (0, 3, 1, 0)), [span], [answer])).tolist()
    ...     for answer in ("0", "1", "2", "2.1", "4")
    ... ]
    [[0], [1], [2], [3], [9]]
    """
    found = np.full(len(made.width), -1)
    by_quantiles = np.array([span is not None and bool(span.levels) for span in made.spans], bool)[made.question]
    for rows, tenth in ((np.flatnonzero(by_quantiles), _of_quantiles), (np.flatnonzero(~by_quantiles), _of_cdf)):
        found[rows] = tenth(made.rows(rows))
    return found


def _of_quantiles(made: Numbers) -> Int64Array:
    """Return the number of quantiles of 0.1 … 0.9 below each answer; -1 if the question lacks one of these levels."""
    found, form = np.full(len(made.width), -1), np.full(len(made.spans), -1)
    levels: dict[tuple[int, ...], int] = {}
    upto = np.zeros(len(made.spans), np.int64)  # the least unit that is not below the answer
    for number, span in made.numeric_questions():
        if {*_INNER} <= {*span.levels}:
            form[number] = levels.setdefault(span.levels, len(levels))
            _, upto[number] = units_around(made.values[number], span)
    counted = np.flatnonzero(form[made.question] >= 0)
    made, places = made.rows(counted), [[own.index(level) for level in _INNER] for own in levels]
    for rows, quantiles in made.tables(form[made.question]):
        question = made.question[rows]
        below = quantiles[:, places[form[question[0]]]] < upto[question][:, None]
        found[counted[rows]] = below.sum(axis=1)
    return found


def _of_cdf(made: Numbers) -> Int64Array:
    """Return the tenth that has F at each answer, F being linear in each bin."""
    return int64_array([max(-(-BINS * height // one) - 1, 0) for height, one in heights_at_answers(made)])


def heights_at_answers(made: Numbers) -> list[tuple[int, int]]:
    """Return F at the answer of each forecast by cdf, exactly, as numerator and denominator; F is linear in each bin.

    An answer beyond the range counts as the nearer end.

    >>> from fractions import Fraction
    >>> from forecast_ledger.ledger.model.events import NumericRange
    >>> span, cdf = NumericRange(lower="0", upper="4", bins=2), np.array([0, 3 * 10**9, 10**10])
    >>> made = Numbers(cdf, *(np.array([each]) for each in (0, 3, 1, 0)), [span], ["3"])
    >>> [Fraction(*height) for height in heights_at_answers(made)]
    [Fraction(13, 20)]
    """
    at: dict[int, tuple[int, int, int]] = {}
    for number, span in made.numeric_questions():
        if not span.levels:
            place = place_of(made.values[number], span) * span.bins
            within = min(int(place // 1), span.bins - 1)
            at[number] = within, *(place - within).as_integer_ratio()
    found = []
    for start, question in zip(made.start.tolist(), made.question.tolist(), strict=True):
        within, share, over = at[question]
        low, high = (int(height) for height in made.flat[start + within : start + within + 2])
        found.append((low * over + (high - low) * share, CUMULATIVE * over))
    return found
