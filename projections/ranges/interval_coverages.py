"""Coverages of central intervals: how often answers fell within the intervals that forecasts by quantiles give."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.ranges.pit_histograms import sampled_numbers
from forecast_ledger.projections.scores.forecast_numbers import Numbers
from forecast_ledger.projections.scores.range_kernels import units_around


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
    """Count how often the central intervals of forecasts by quantiles hold the answer, for contests of one rule set.

    The interval of probability 1 - 2a reaches from the quantile of a to that of 1 - a, both included. The same
    forecasts count as in `pit_counts`.

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
    levels: dict[tuple[int, ...], int] = {}
    form = np.full(len(made.spans), -1)
    below, above = np.zeros((2, len(made.spans)), np.int64)  # the units next to each answer
    for number, span in made.numeric_questions():
        if span.levels:
            form[number] = levels.setdefault(span.levels, len(levels))
            below[number], above[number] = units_around(made.values[number], span)
    by_form, found = [*levels], []
    counted = np.flatnonzero(form[made.question] >= 0)
    made = made.rows(counted)
    for rows, quantiles in made.tables(form[made.question]):
        question, own = made.question[rows], by_form[form[made.question[rows[0]]]]
        for low, high in central_levels(own):
            covered = (quantiles[:, low] <= below[question]) & (above[question] <= quantiles[:, high])
            found.append((counted[rows], own[high] - own[low], covered))
    return found
