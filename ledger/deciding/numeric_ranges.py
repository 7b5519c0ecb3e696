"""The range of a numeric question, and the unit of its quantiles or samples."""

import itertools
from decimal import Decimal
from fractions import Fraction

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.model import commands, events


def is_countable(value: Decimal, decimals: int) -> bool:
    """Return whether a value is at most LARGEST_MEASURE units of 10^-decimals, above or below 0."""
    numerator, denominator = value.as_integer_ratio()
    units: int = abs(numerator) * 10**decimals
    return units <= values.LARGEST_MEASURE * denominator


def numeric_range(span: commands.Range, kind: events.QuestionKind) -> events.NumericRange:
    """Return a range as the event records it, of a date question in seconds since the epoch. Refuses: out_of_range."""
    read = values.read_seconds if kind == "date" else values.read_measure
    lower, upper = read(span.lower, "range.lower"), read(span.upper, "range.upper")
    zero = None if span.zero_point is None else read(span.zero_point, "range.zero_point")
    if not lower < upper:
        raise Refused("out_of_range", "range.upper", str(upper), "must be greater than range.lower")
    bins = commands.DEFAULT_BINS if span.bins is None else span.bins
    if sum(part is not None for part in (span.bins, span.levels, span.samples)) > 1:
        field = "range.bins" if span.bins is not None else "range.samples"
        raise Refused("out_of_range", field, span.bins or span.samples, "give only one of bins, levels and samples")
    if not 1 <= bins <= values.MOST_BINS:
        raise Refused("out_of_range", "range.bins", bins, f"must be between 1 and {values.MOST_BINS}")
    if zero is not None and lower <= zero <= upper:
        raise Refused("out_of_range", "range.zero_point", str(zero), "must be outside lower..upper")
    if kind == "discrete" and not has_decimal_values(lower, upper, bins):
        raise Refused(
            "out_of_range", "range.bins", bins, "half of (upper - lower) / bins must have finitely many decimals"
        )
    levels, samples = _levels(span), _samples(span)
    decimals = _decimals(span, lower, upper)
    return events.NumericRange(
        lower=values.exact_text(lower),
        upper=values.exact_text(upper),
        bins=0 if levels or samples else bins,
        open_lower=span.open_lower,
        open_upper=span.open_upper,
        zero_point=None if zero is None else values.exact_text(zero),
        levels=levels,
        decimals=decimals,
        samples=samples,
    )


def has_decimal_values(lower: Decimal, upper: Decimal, bins: int) -> bool:
    """Return whether the values of a discrete question, the middles of its bins, are finite decimals.

    >>> has_decimal_values(Decimal("-0.5"), Decimal("2.5"), 3), has_decimal_values(Decimal(0), Decimal(1), 3)
    (True, False)
    """
    divisor = Fraction(Fraction(upper) - Fraction(lower), 2 * bins).denominator
    for prime in (2, 5):
        while divisor % prime == 0:
            divisor //= prime
    return divisor == 1


def is_possible(value: Decimal, span: events.NumericRange) -> bool:
    """Return whether a value within the range of a discrete question is the middle of one of its bins.

    >>> span = events.NumericRange(lower="-0.5", upper="2.5", bins=3)
    >>> [is_possible(Decimal(value), span) for value in ("0", "2", "0.5", "2.5")]
    [True, True, False, False]
    """
    lower, upper = Fraction(span.lower), Fraction(span.upper)
    halves = Fraction((Fraction(value) - lower) * 2 * span.bins, upper - lower)
    return halves.denominator == 1 and halves.numerator % 2 == 1


def possible_values(span: events.NumericRange) -> tuple[Decimal, Decimal, Decimal]:
    """Return the smallest and the largest value of a discrete question, and the step between values.

    >>> possible_values(events.NumericRange(lower="-0.5", upper="2.5", bins=3))
    (Decimal('0.0'), Decimal('2.0'), Decimal('1.0'))
    """
    lower, upper = Decimal(span.lower), Decimal(span.upper)
    step = WIDE.divide(WIDE.subtract(upper, lower), Decimal(span.bins))
    half = WIDE.divide(step, Decimal(2))
    return WIDE.add(lower, half), WIDE.subtract(upper, half), step


def _levels(span: commands.Range) -> tuple[int, ...]:
    """Return the levels of a range that takes quantiles, 1e-9; none of any other."""
    if span.levels is None:
        return ()
    unit, most = values.PROBABILITY, values.MOST_BINS
    if not 1 <= len(span.levels) <= most:
        raise Refused("out_of_range", "range.levels", len(span.levels), f"give 1 to {most} levels")
    levels = tuple(values.read_fixed(level, unit, "range.levels", 1, unit - 1) for level in span.levels)
    if any(after <= before for before, after in itertools.pairwise(levels)):
        raise Refused("out_of_range", "range.levels", len(levels), "levels must increase, by at least 0.000000001")
    return levels


def _samples(span: commands.Range) -> int:
    """Return the number of samples of a range that takes them; 0 of any other."""
    if span.samples is None:
        return 0
    if not 1 <= span.samples <= values.MOST_BINS:
        raise Refused("out_of_range", "range.samples", span.samples, f"must be between 1 and {values.MOST_BINS}")
    return span.samples


def _decimals(span: commands.Range, lower: Decimal, upper: Decimal) -> int:
    """Return the decimals of a range that takes quantiles or samples; 0 if it has bins."""
    if span.levels is None and span.samples is None:
        if span.decimals is not None:
            raise Refused("out_of_range", "range.decimals", span.decimals, "decimals need levels or samples")
        return 0
    decimals = commands.DEFAULT_DECIMALS if span.decimals is None else span.decimals
    if not 0 <= decimals <= values.MOST_DECIMALS:
        raise Refused("out_of_range", "range.decimals", decimals, f"must be between 0 and {values.MOST_DECIMALS}")
    if not (is_countable(lower, decimals) and is_countable(upper, decimals)):
        bounds = f"the bounds must be within {values.LARGEST_MEASURE:,} units of the last decimal"
        raise Refused("out_of_range", "range.decimals", decimals, bounds)
    return decimals
