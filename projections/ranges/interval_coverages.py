"""Coverages of central intervals: how often answers fell within the intervals that numeric forecasts give."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.ranges.answer_spans import LEVEL, AnswerSpans, SharesSummed, is_by_quantiles, sampled
from forecast_ledger.projections.scores.forecast_numbers import Numbers

CDF_INTERVALS = (500_000_000, 800_000_000, 900_000_000, 950_000_000)  # 1e-9; a cdf has intervals of every probability


class Coverage(NamedTuple):
    """How often a participant's intervals of one probability hold the answer.

    contest: index. participant: code. probability: 1e-9. forecasts: how many have such an interval. covered: how many
    answers these hold: whole answers, and parts of others; exact.
    """

    contest: int
    participant: int
    probability: int
    forecasts: int
    covered: Fraction


def central_levels(levels: Sequence[int]) -> list[tuple[int, int]]:
    """Return the places of the two levels of each central interval, the widest first. levels: 1e-9, increasing.

    >>> central_levels((100_000_000, 250_000_000, 500_000_000, 750_000_000))
    [(1, 3)]
    """
    places = {level: place for place, level in enumerate(levels)}
    mirrored = ((place, places.get(PROBABILITY - level)) for level, place in places.items())
    return [(place, other) for place, other in mirrored if other is not None and place < other]


def interval_coverages(facts: Facts, contests: Sequence[Contest], chunk: int) -> list[Coverage]:
    """Count how often the central intervals of numeric forecasts hold the answer, for contests of one rule set.

    In order of contest, participant and probability. The interval of probability 1 - 2a reaches from the quantile of a
    to that of 1 - a, both included: it holds an answer y if a <= F(y) <= 1 - a. Where the forecast puts probability on
    y itself, it holds the part of y's probability, F(y-) to F(y), that lies between a and 1 - a; see `answer_spans`.
    Forecasts by quantiles have the intervals of their levels, cdfs those of `CDF_INTERVALS`. The same forecasts count
    as in `pit_counts`, also those by quantiles without the levels 0.1, 0.2 … 0.9.

    Source: scoringutils, interval_coverage, for answers that have no probability of their own; for the others, the
    interval of the probability integral transform of Czado, Gneiting and Held (2009),
    doi:10.1111/j.1541-0420.2009.01191.x.
    """
    found, forecasts = SharesSummed(), SharesSummed()
    for contest, participant, made, spans in sampled(facts, contests, chunk):
        for rows, low, high in _intervals(made):
            own = AnswerSpans(spans.low[rows], spans.high[rows])
            key = contest[rows], participant[rows], np.full_like(rows, high - low)
            found.add(key, own.within(low * (LEVEL // 2), high * (LEVEL // 2)), own.width)
            forecasts.add(key, np.ones_like(rows), np.ones_like(rows))
    (keys, sums), (_, counts) = found.sums(), forecasts.sums()
    return [
        Coverage(contest, participant, twice // 2, int(count), covered)
        for (contest, participant, twice), count, covered in zip(keys, counts, sums, strict=True)
    ]


def _intervals(made: Numbers) -> Iterator[tuple[Int64Array, int, int]]:
    """Yield the intervals of some forecasts: their rows, and twice the levels at both ends, 1e-9."""
    by_quantiles = is_by_quantiles(made)
    levels = [() if span is None else span.levels for span in made.spans]
    form = {each: number for number, each in enumerate(dict.fromkeys(levels))}
    of_row = np.array([form[each] for each in levels], np.int64)[made.question]
    for own, number in form.items():
        rows = np.flatnonzero(by_quantiles & (of_row == number))
        for low, high in central_levels(own) if len(rows) else []:
            yield rows, 2 * own[low], 2 * own[high]
    rows = np.flatnonzero(~by_quantiles)
    for share in CDF_INTERVALS if len(rows) else ():
        yield rows, PROBABILITY - share, PROBABILITY + share
