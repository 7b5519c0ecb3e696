"""Forecasts that are given as a few points: the quantiles and their levels, checked, and brought to a cdf."""

from datetime import datetime
from decimal import Decimal
from itertools import pairwise

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.deciding.interpolation import cdf_through, is_on_scale
from forecast_ledger.ledger.deciding.state import QuestionState
from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.events import NumericRange, StatedPoints

_LEVELS, _QUANTILES = "points.levels", "points.quantiles"


def read_points(points: commands.Points, question: QuestionState | None) -> StatedPoints:
    """Return points as the event records them: quantiles as decimal text, of a date question as instants.

    Refuses, first that applies: out_of_range (also levels that do not increase, or too many of them).
    """
    unit = values.PROBABILITY
    levels = values.read_each_fixed(points.levels, unit, _LEVELS, 1, unit - 1)
    if not 1 <= len(levels) <= values.MOST_POINTS:
        raise Refused("out_of_range", _LEVELS, len(levels), f"give 1 to {values.MOST_POINTS:,} levels")
    if any(after <= before for before, after in pairwise(levels)):
        detail = "levels must increase, by at least 0.000000001"
        raise Refused("out_of_range", _LEVELS, len(levels), detail, remedy="give each level once, in increasing order")
    is_date = question is not None and question.kind == "date"
    return StatedPoints(
        levels=tuple(levels),
        quantiles=tuple(_instant(each) if is_date else _number(each) for each in points.quantiles),
        method=points.method,
    )


def cdf_of_points(points: StatedPoints, question: QuestionState) -> tuple[int, ...]:
    """Return the cdf of points, 1e-10, at the edges of the bins of their question.

    Refuses, first that applies: wrong_length, decreasing, open_end_needed (also a value off a log scale).
    """
    span = question.range or NumericRange(lower="0", upper="1")
    quantiles = [_value(text, question) for text in points.quantiles]
    if len(quantiles) != len(points.levels):
        detail = f"for {len(points.levels)} of `levels`"
        raise Refused("wrong_length", _QUANTILES, len(quantiles), detail, remedy="give one quantile for each level")
    for place, (before, after) in enumerate(pairwise(quantiles)):
        if after < before:
            first, second = points.quantiles[place : place + 2]
            remedy = "give quantiles that do not decrease from level to level"
            raise Refused("decreasing", _QUANTILES, second, f"it follows {first}", remedy=remedy)
    for text, value in zip(points.quantiles, quantiles, strict=True):
        _check_place(text, value, span)
    scale = values.CUMULATIVE // values.PROBABILITY
    heights = [level * scale for level in points.levels]
    return tuple(cdf_through([*zip(quantiles, heights, strict=True)], span, points.method))


def _check_place(text: str, value: Decimal, span: NumericRange) -> None:
    """Refuses: open_end_needed."""
    remedy = "give a value in the range, or leave this level out"
    below, above = value < Decimal(span.lower), value > Decimal(span.upper)
    if (below and not span.open_lower) or (above and not span.open_upper):
        raise Refused("open_end_needed", _QUANTILES, text, remedy=remedy)
    if not is_on_scale(value, span):
        detail = f"the question's log scale does not reach its zero point, {span.zero_point}"
        raise Refused("open_end_needed", _QUANTILES, text, detail, remedy=remedy)


def _number(given: values.Number | values.Instant) -> str:
    """Return a quantile as exact text. Refuses: bad_number, out_of_range."""
    if isinstance(given, datetime):
        raise Refused("bad_number", _QUANTILES, str(given))
    return values.exact_text(values.read_measure(given, _QUANTILES))


def _instant(given: values.Number | values.Instant) -> str:
    seconds = values.read_seconds(given, _QUANTILES)
    return values.format_instant(int(seconds.scaleb(6, WIDE)))


def _value(text: str, question: QuestionState) -> Decimal:
    return values.read_seconds(text, _QUANTILES) if question.kind == "date" else Decimal(text)
