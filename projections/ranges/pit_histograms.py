"""Probability integral transforms: in which tenth of their forecast distribution numeric answers fell."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.ranges.answer_spans import PLACES, AnswerSpans, SharesSummed, sampled
from forecast_ledger.projections.scores.forecast_numbers import Numbers

BINS = 10
_INNER = frozenset(PROBABILITY // BINS * place for place in range(1, BINS))  # the levels between bins, 1e-9
_EDGES = PLACES // BINS * np.arange(BINS + 1)


class PitCount(NamedTuple):
    """How many answers fell in a tenth of a participant's forecasts: whole answers, and parts of others.

    contest: index. participant: code. tenth: 0 to 9. answers: exact.
    """

    contest: int
    participant: int
    tenth: int
    answers: Fraction


def pit_counts(facts: Facts, contests: Sequence[Contest], chunk: int) -> list[PitCount]:
    """Count in which tenth of each participant's forecasts the answers fell, for contests of one rule set.

    In order of contest, participant and tenth; all ten for everyone with a forecast that counts. A forecast by
    quantiles counts if it has the levels 0.1, 0.2 … 0.9.

    Source: Dawid (1984), doi:10.2307/2981683; Czado, Gneiting and Held (2009), doi:10.1111/j.1541-0420.2009.01191.x,
    "Nonrandomized PIT histogram".
    """
    found = SharesSummed()
    for contest, participant, made, spans in sampled(facts, contests, chunk):
        rows = np.flatnonzero(_has_tenths(made))
        own = AnswerSpans(spans.low[rows], spans.high[rows])
        for tenth, parts in enumerate(tenths(own).T):
            found.add((contest[rows], participant[rows], np.full_like(rows, tenth)), parts, own.width)
    keys, sums = found.sums()
    return [PitCount(contest, who, tenth, own) for (contest, who, tenth), own in zip(keys, sums, strict=True)]


def tenths(spans: AnswerSpans) -> Int64Array:
    """Return the part of each answer that fell in each tenth, as a numerator over the width of its span; shape (n, 10).

    A tenth has its upper end, and the first has 0 too. A span is divided in proportion to what lies in each tenth.

    >>> tenths(AnswerSpans(np.array([0, PLACES // 10, PLACES // 4]), np.array([0, PLACES // 10, PLACES // 2])))[:2, :2]
    array([[1, 0],
           [1, 0]])
    """
    low, high = _EDGES[:-1], _EDGES[1:]
    point = (low < spans.low[:, None]) & (spans.low[:, None] <= high)
    point[:, 0] |= spans.low == 0
    part = np.minimum(spans.high[:, None], high) - np.maximum(spans.low[:, None], low)
    is_point = (spans.low == spans.high)[:, None]
    parts: Int64Array = np.where(is_point, point, np.maximum(part, 0))
    return parts


def _has_tenths(made: Numbers) -> BoolArray:
    """Return whether each forecast says in which tenth the answer fell."""
    says = [span is not None and (not span.levels or {*span.levels} >= _INNER) for span in made.spans]
    return np.array(says, bool)[made.question]
