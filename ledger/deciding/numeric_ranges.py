"""Part of the decider: the range of a numeric question, and the unit of its quantiles."""

import itertools
from decimal import Decimal

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import commands, events


def countable(value: Decimal, decimals: int) -> bool:
    """Whether a value is within what the unit of quantiles can count."""
    numerator, denominator = value.as_integer_ratio()
    units: int = abs(numerator) * 10**decimals
    return units <= values.LARGEST_MEASURE * denominator


def numeric_range(span: commands.Range) -> events.NumericRange:
    """A range as it is recorded. Refuses: out_of_range."""
    lower, upper = values.read_measure(span.lower, "range.lower"), values.read_measure(span.upper, "range.upper")
    zero = None if span.zero_point is None else values.read_measure(span.zero_point, "range.zero_point")
    if not lower < upper:
        raise Refused("out_of_range", "range.upper", str(upper), "must lie above range.lower")
    bins = commands.DEFAULT_BINS if span.bins is None else span.bins
    if span.bins is not None and span.levels is not None:
        raise Refused("out_of_range", "range.bins", bins, "bins and levels exclude one another")
    if not 1 <= bins <= values.MOST_BINS:
        raise Refused("out_of_range", "range.bins", bins, f"must lie between 1 and {values.MOST_BINS}")
    if zero is not None and lower <= zero <= upper:
        raise Refused("out_of_range", "range.zero_point", str(zero), "must lie outside lower..upper")
    levels, decimals = _levels(span, lower, upper)
    return events.NumericRange(
        lower=values.exact_text(lower),
        upper=values.exact_text(upper),
        bins=0 if levels else bins,
        open_lower=span.open_lower,
        open_upper=span.open_upper,
        zero_point=None if zero is None else values.exact_text(zero),
        levels=levels,
        decimals=decimals,
    )


def _levels(span: commands.Range, lower: Decimal, upper: Decimal) -> tuple[tuple[int, ...], int]:
    """The levels of a range asked by quantiles, and the decimals of its unit; nothing of one cut in bins."""
    if span.levels is None:
        if span.decimals is not None:
            raise Refused("out_of_range", "range.decimals", span.decimals, "decimals go with levels")
        return (), 0
    one, most = values.PROBABILITY, values.MOST_BINS
    if not 1 <= len(span.levels) <= most:
        raise Refused("out_of_range", "range.levels", len(span.levels), f"must be 1 to {most} levels")
    levels = tuple(values.read_fixed(level, one, "range.levels", 1, one - 1) for level in span.levels)
    if any(after <= before for before, after in itertools.pairwise(levels)):
        raise Refused("out_of_range", "range.levels", len(levels), "must increase by at least 0.000000001")
    decimals = commands.DEFAULT_DECIMALS if span.decimals is None else span.decimals
    if not 0 <= decimals <= values.MOST_DECIMALS:
        raise Refused("out_of_range", "range.decimals", decimals, f"must lie between 0 and {values.MOST_DECIMALS}")
    if not (countable(lower, decimals) and countable(upper, decimals)):
        bounds = f"the bounds must lie within {values.LARGEST_MEASURE:,} units of the last decimal"
        raise Refused("out_of_range", "range.decimals", decimals, bounds)
    return levels, decimals
