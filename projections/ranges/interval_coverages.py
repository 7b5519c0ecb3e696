"""Coverages of central intervals: how often answers fell within the intervals that numeric forecasts give."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.ranges.pit_histograms import heights_at_answers, sampled_numbers
from forecast_ledger.projections.scores.forecast_numbers import Numbers
from forecast_ledger.projections.scores.range_kernels import units_around

CDF_INTERVALS = (500_000_000, 800_000_000, 900_000_000, 950_000_000)  # 1e-9; a cdf has intervals of every probability


class Coverages(NamedTuple):
    """One row for each contest, participant and probability of a central interval, in order of these; shape (n,).

    contest: index. participant: code. probability: 1e-9. forecasts: how many have such an interval. covered: in how
    many of these it holds the answer.
    """

    contest: Int64Array
    participant: Int64Array
    probability: Int64Array
    forecasts: Int64Array
    covered: Int64Array


def central_levels(levels: Sequence[int]) -> list[tuple[int, int]]:
    """Return the places of the two levels of each central interval, the widest first. levels: 1e-9, increasing.

    >>> central_levels((100_000_000, 250_000_000, 500_000_000, 750_000_000))
    [(1, 3)]
    """
    places = {level: place for place, level in enumerate(levels)}
    mirrored = ((place, places.get(PROBABILITY - level)) for level, place in places.items())
    return [(place, other) for place, other in mirrored if other is not None and place < other]


def interval_coverages(facts: Facts, contests: Sequence[Contest], chunk: int) -> Coverages:
    """Count how often the central intervals of numeric forecasts hold the answer, for contests of one rule set.

    The interval of probability 1 - 2a reaches from the quantile of a to that of 1 - a, both included. That of a cdf F
    holds the answer y if a <= F(y) <= 1 - a, F being linear in each bin; an answer beyond the range counts as the
    nearer end. Forecasts by quantiles have the intervals of their levels, cdfs those of `CDF_INTERVALS`. The same
    forecasts count as in `pit_counts`, also those by quantiles without the levels 0.1, 0.2 … 0.9.

    Source: scoringutils, interval_coverage.
    """
    none = np.zeros(0, np.int64)
    pages = [(none, none, none, np.zeros(0, bool))]
    for contest, participant, made in sampled_numbers(facts, contests, chunk):
        for rows, share, covered in _intervals(made):
            pages.append((contest[rows], participant[rows], np.full(len(rows), share), covered))
    contests_of, owners, probability, holds = (np.concatenate(column) for column in zip(*pages, strict=True))
    keys, row = np.unique(np.stack([contests_of, owners, probability]), axis=1, return_inverse=True)
    row, count = row.reshape(-1), keys.shape[1]
    forecasts, held = (np.bincount(part, minlength=count).astype(np.int64) for part in (row, row[holds]))
    return Coverages(keys[0], keys[1], keys[2], forecasts, held)


def _intervals(made: Numbers) -> list[tuple[Int64Array, int, BoolArray]]:
    """Return each interval of some forecasts: their rows, its probability, 1e-9, and whether it holds the answer."""
    by_quantiles = np.array([span is not None and bool(span.levels) for span in made.spans], bool)[made.question]
    found = []
    for rows, intervals in ((np.flatnonzero(by_quantiles), _of_quantiles), (np.flatnonzero(~by_quantiles), _of_cdfs)):
        own = intervals(made.rows(rows))
        found += [(rows[counted], probability, covered) for counted, probability, covered in own]
    return found


def _of_quantiles(made: Numbers) -> list[tuple[Int64Array, int, BoolArray]]:
    """Return the intervals that the levels of forecasts by quantiles make."""
    levels: dict[tuple[int, ...], int] = {}
    form = np.full(len(made.spans), -1)
    below, above = np.zeros((2, len(made.spans)), np.int64)  # the units next to each answer
    for number, span in made.numeric_questions():
        if span.levels:
            form[number] = levels.setdefault(span.levels, len(levels))
            below[number], above[number] = units_around(made.values[number], span)
    by_form, found = [*levels], []
    for rows, quantiles in made.tables(form[made.question]):
        question, own = made.question[rows], by_form[form[made.question[rows[0]]]]
        for low, high in central_levels(own):
            covered = (quantiles[:, low] <= below[question]) & (above[question] <= quantiles[:, high])
            found.append((rows, own[high] - own[low], covered))
    return found


def _of_cdfs(made: Numbers) -> list[tuple[Int64Array, int, BoolArray]]:
    """Return the intervals of forecasts by cdf. Twice F(y) is compared, because 1 - a may be half a unit."""
    heights, rows = heights_at_answers(made), np.arange(len(made.width))
    found = []
    for share in CDF_INTERVALS:
        low, high = PROBABILITY - share, PROBABILITY + share
        covered = [low * one <= 2 * PROBABILITY * height <= high * one for height, one in heights]
        found.append((rows, share, np.array(covered, bool)))
    return found
