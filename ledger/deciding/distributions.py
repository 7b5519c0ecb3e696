"""Distributions: convert the numbers of a forecast to integers, and check them against the question and its range.

A forecast that is given as a few points is brought to a cdf by a method that interpolates between them, in fractions.
An offset is how far a value lies above the lower bound, in 1e-30 of a bin, so that every edge of a bin is a
whole number of bins; on a log scale it follows the logarithm, as bins do. Heights, of the cdf, are in 1e-10. They are
rounded half-even once, at the end.
"""

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeVar

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WIDE, WRITTEN, half_even
from forecast_ledger.ledger.core.hints import no_such_outcome
from forecast_ledger.ledger.core.values import CUMULATIVE
from forecast_ledger.ledger.deciding.shares import NORMALIZING
from forecast_ledger.ledger.deciding.state import QuestionState
from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.ledger.model.forms import Method, Normalizing, StatedPoints, StatedShares


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


BIN = 10**30  # units of an offset in a bin


class Point(NamedTuple):
    """An offset, and the height of the cdf there. Points with one offset are a point mass: the last has the height at
    it, the first that below it.
    """

    offset: int
    height: int


class MethodRow(NamedTuple):
    """A method: its function, what it does in words, and its source.

    interpolate: points of which the heights increase, the range -> the heights at the edges of its bins.
    """

    interpolate: Callable[[Sequence[Point], NumericRange], list[Fraction]]
    words: str
    source: str


def cdf_through(points: Sequence[tuple[Decimal, int]], span: NumericRange, method: Method) -> list[int]:
    """Return the cdf at the edges of the bins, 1e-10, that a method gives.

    points: one or more values, each with its height, 1e-10; heights increase and values do not decrease. Each value is
    on the scale (`is_on_scale`), and none is beyond a closed end.

    >>> span = NumericRange(lower="0", upper="4", bins=4)
    >>> cdf_through([(Decimal(1), 2 * 10**9), (Decimal(3), 6 * 10**9)], span, "linear")
    [0, 2000000000, 4000000000, 6000000000, 10000000000]
    """
    moved = [Point(offset_of(value, span), height) for value, height in points]
    return [half_even(height.numerator, height.denominator) for height in METHODS[method].interpolate(moved, span)]


def is_on_scale(value: Decimal, span: NumericRange) -> bool:
    """Return whether a value lies on the scale of a range, or beyond its ends: a log scale goes up to its zero point.

    >>> span = NumericRange(lower="1", upper="100", bins=2, zero_point="0", open_lower=True)
    >>> is_on_scale(Decimal("0.5"), span), is_on_scale(Decimal(0), span)
    (True, False)
    """
    if span.zero_point is None:
        return True
    zero = Decimal(span.zero_point)
    return value != zero and (value > zero) == (Decimal(span.lower) > zero)


def offset_of(value: Decimal, span: NumericRange) -> int:
    """Return the offset of a value on the scale, rounded half-even; of a log scale to 1e-30 or better.

    >>> offset_of(Decimal(10), NumericRange(lower="1", upper="100", bins=4, zero_point="0")) == 2 * BIN
    True
    """
    lower, upper = Decimal(span.lower), Decimal(span.upper)
    if span.zero_point is None:
        along = Fraction(Fraction(value) - Fraction(lower), Fraction(upper) - Fraction(lower))
        return half_even(along.numerator * span.bins * BIN, along.denominator)
    start, here, end = (WRITTEN.subtract(each, Decimal(span.zero_point)) for each in (lower, value, upper))
    narrow = min(0, WRITTEN.subtract(upper, lower).adjusted() - max(start.adjusted(), end.adjusted()))
    exact = Context(prec=80 - 2 * narrow, Emax=MAX_EMAX, Emin=MIN_EMIN)
    part, whole = (exact.ln(exact.divide(each, start)) for each in (here, end))
    return round(exact.multiply(exact.divide(part, whole), Decimal(span.bins * BIN)))


def linear(points: Sequence[Point], span: NumericRange) -> list[Fraction]:
    """Join the points by straight lines, so that the quantile function is piecewise linear."""
    ends = _with_ends(points, span)

    def between(number: int, offset: int) -> Fraction:
        """Return the height at an offset between the ends `number` and `number + 1`, on the line through them."""
        start, end = ends[number], ends[number + 1]
        return start.height + Fraction((end.height - start.height) * (offset - start.offset), end.offset - start.offset)

    return _at_edges(ends, between, span.bins)


def monotone_cubic(points: Sequence[Point], span: NumericRange) -> list[Fraction]:
    """Join the points by cubic polynomials without a break in slope, and without a fall.

    The slope at a point is the weighted harmonic mean of the slopes of the two lines to its neighbours; at the first
    and the last point that of the parabola through three points, or 0 if it would fall. Two points are joined by a
    line. A point mass ends one curve and begins another.
    Source: Fritsch and Carlson (1980), doi:10.1137/0717021; Fritsch and Butland (1984), doi:10.1137/0905021, for the
    inner slopes.
    """
    ends = _with_ends(points, span)
    breaks = [number for number in range(1, len(ends)) if ends[number].offset == ends[number - 1].offset]
    runs = [ends[start:end] for start, end in pairwise([0, *breaks, len(ends)])]
    slopes = [slope for run in runs for slope in _slopes(run)]

    def between(number: int, offset: int) -> Fraction:
        """Return the height at an offset between the ends `number` and `number + 1`, on the cubic with their slopes."""
        start, end = ends[number], ends[number + 1]
        past, left, width = offset - start.offset, end.offset - offset, end.offset - start.offset
        leaving, arriving = slopes[number], slopes[number + 1]
        unit = leaving.denominator * arriving.denominator
        bend = leaving.numerator * arriving.denominator * left - arriving.numerator * leaving.denominator * past
        joined = start.height * left**2 * (width + 2 * past) + end.height * past**2 * (width + 2 * left)
        return Fraction(unit * joined + width * past * left * bend, unit * width**3)

    return _at_edges(ends, between, span.bins)


def metaculus(points: Sequence[Point], span: NumericRange) -> list[Fraction]:
    """Join the points by straight lines, then keep the steps of the cdf within bounds.

    Before, points nearer to a closed end than 1, or than 1% of a range up to 100, are moved to that distance from it.
    After, 1% of the probability is spread evenly over the range, and 0.1% more is put beyond each open end. Where a
    bin has more than 38 / bins, it has that, and the others have more, in proportion.
    Source: Metaculus, forecasting-tools, source code, data_models/numeric_report.py, commit f262cffc of 2 April 2026;
    its search for the factor of the others ends at 2e-5, this one is exact.
    """
    lower, upper = Decimal(span.lower), Decimal(span.upper)
    width = WRITTEN.subtract(upper, lower)
    margin = Decimal(1) if width > 100 else width.scaleb(-2, WRITTEN)
    least = points[0].offset if span.open_lower else offset_of(WRITTEN.add(lower, margin), span)
    most = points[-1].offset if span.open_upper else offset_of(WRITTEN.subtract(upper, margin), span)
    moved = [point._replace(offset=min(max(point.offset, least), most)) for point in points]
    beyond = Fraction(CUMULATIVE, 1_000)
    kept = Fraction(99, 100) - Fraction(span.open_lower + span.open_upper, 1_000)
    spread = [
        kept * height + Fraction(CUMULATIVE * edge, 100 * span.bins) + beyond * span.open_lower
        for edge, height in enumerate(linear(moved, span))
    ]
    steps = [after - before for before, after in pairwise(spread)]
    return [*accumulate(_bounded(steps, Fraction(38 * CUMULATIVE, span.bins)), initial=spread[0])]


METHODS: dict[Method, MethodRow] = {
    "linear": MethodRow(
        linear,
        "straight lines between the points; the quantiles between them are linear too",
        "Hyndman and Fan (1996), definition 4",
    ),
    "monotone_cubic": MethodRow(
        monotone_cubic,
        "cubic polynomials through the points, without a break in slope and without a fall; two points are joined by a "
        "line",
        "Fritsch and Carlson (1980); the inner slopes of Fritsch and Butland (1984)",
    ),
    "metaculus-2026-04": MethodRow(
        metaculus,
        "straight lines between the points, of which those within 1 (of a range up to 100, 1%) of a closed end are "
        "moved there; then 1% of the probability is spread evenly over the range, 0.1% more is put beyond each open "
        "end, and a bin has at most 38 / bins",
        "Metaculus, forecasting-tools",
    ),
}


def _with_ends(points: Sequence[Point], span: NumericRange) -> list[Point]:
    """Return the points and those at the ends of the range that they lack.

    A closed end has 0 or 1. An open end has half of what is left beyond the outermost point, if that is inside.
    """
    ends, last = [*points], span.bins * BIN
    if not span.open_lower or points[0].offset > 0:
        ends.insert(0, Point(0, points[0].height // 2 if span.open_lower else 0))
    if not span.open_upper or points[-1].offset < last:
        ends.append(Point(last, (CUMULATIVE + points[-1].height) // 2 if span.open_upper else CUMULATIVE))
    return ends


def _at_edges(points: Sequence[Point], between: Callable[[int, int], Fraction], bins: int) -> list[Fraction]:
    """Return the heights at all edges; the points begin at the first or before it, and end at the last or after it.

    between: the number of a point, and an offset between it and the next one -> the height. A point mass on an edge
    belongs to the bin below it, that on the lower bound to the first bin, as answers do.
    """
    offsets = [point.offset for point in points]
    first = bisect_left(offsets, 0)
    heights = [Fraction(points[first].height) if offsets[first] == 0 else between(first - 1, 0)]
    for edge in range(1, bins + 1):
        after = bisect_right(offsets, edge * BIN)
        heights.append(between(after - 1, edge * BIN) if after < len(points) else Fraction(points[-1].height))
    return heights


def _slopes(points: Sequence[Point]) -> list[Fraction]:
    """Return the slope at each point of a curve; offsets and heights increase."""
    if len(points) == 1:
        return [Fraction(0)]
    widths = [after.offset - before.offset for before, after in pairwise(points)]
    secants = [
        Fraction(after.height - before.height, width)
        for (before, after), width in zip(pairwise(points), widths, strict=True)
    ]
    if len(points) == 2:
        return secants * 2
    inner = []
    for (before, after), (left, right) in zip(pairwise(widths), pairwise(secants), strict=True):
        of_left, of_right = before + 2 * after, 2 * before + after
        inner.append(Fraction(of_left + of_right, Fraction(of_left, left) + Fraction(of_right, right)))
    return [_end_slope(widths[:2], secants[:2]), *inner, _end_slope(widths[:-3:-1], secants[:-3:-1])]


def _end_slope(widths: Sequence[int], secants: Sequence[Fraction]) -> Fraction:
    """Return the slope at an end, from the two lines that are next to it, the nearer one first."""
    (near, far), (near_secant, next_one) = widths, secants
    return max(Fraction(0), Fraction((2 * near + far) * near_secant - near * next_one, near + far))


def _bounded(steps: Sequence[Fraction], most: Fraction) -> list[Fraction]:
    """Return steps with the same sum, none above a bound: the greatest are the bound, the others in proportion."""
    capped, remaining = 0, sum(steps, Fraction(0))
    scale, total = Fraction(1), remaining
    for step in sorted(steps, reverse=True):
        if step * scale <= most:
            break
        capped, remaining = capped + 1, remaining - step
        scale = Fraction(total - capped * most, remaining) if remaining else Fraction(0)
    return [min(step * scale, most) for step in steps]


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
    for index, (before, after) in enumerate(pairwise(quantiles)):
        if after < before:
            first, second = points.quantiles[index : index + 2]
            remedy = "give quantiles that do not decrease from level to level"
            raise Refused("decreasing", _QUANTILES, second, f"it follows {first}", remedy=remedy)
    for text, value in zip(points.quantiles, quantiles, strict=True):
        _check_in_range(text, value, span)
    scale = values.CUMULATIVE // values.PROBABILITY
    heights = [level * scale for level in points.levels]
    return tuple(cdf_through([*zip(quantiles, heights, strict=True)], span, points.method))


def _check_in_range(text: str, value: Decimal, span: NumericRange) -> None:
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


_Chance = TypeVar("_Chance")
_Numbers = int | dict[str, int] | list[int] | StatedPoints
TOLERANCE = values.PROBABILITY // 10**6  # the largest difference between a sum of probabilities and 1


FORMS = ("probability", "probabilities", "cdf", "points", "quantiles", "samples")  # fields of a forecast


def distribution_forms(question: QuestionState) -> tuple[str, ...]:
    """Return the forms of distribution that a question takes: names of the command's fields."""
    if question.range is None:
        return ("probability",) if question.kind == "binary" else ("probabilities",)
    if question.range.samples:
        return ("samples",)
    return ("quantiles",) if question.range.levels else ("cdf", "points")


def read_distribution(command: commands.SubmitForecast, question: QuestionState | None) -> tuple[str, _Numbers]:
    """Return the name of the field that has the distribution, and its numbers.

    The name is empty unless exactly one field is given. Units: 1e-9, a cdf 1e-10, quantiles and samples 10^-decimals
    of the question, or 1 if there is no such question; points are as the event records them.
    """
    probability, probabilities, cdf, quantiles, samples, points = (
        command.probability, command.probabilities, command.cdf, command.quantiles, command.samples, command.points
    )  # fmt: skip
    given = (probability is not None) + (probabilities is not None) + (cdf is not None)
    if given + (quantiles is not None) + (samples is not None) + (points is not None) != 1:
        return "", []
    if probability is not None:
        return "probability", values.read_probability(probability, "probability")
    if probabilities is not None:
        return "probabilities", outcome_probabilities(probabilities)
    if cdf is not None:
        return "cdf", values.read_each_fixed(cdf, values.CUMULATIVE, "cdf", 0, values.CUMULATIVE)
    if points is not None:
        return "points", read_points(points, question)
    decimals = 0 if question is None or question.range is None else question.range.decimals
    field, measures = ("quantiles", quantiles) if samples is None else ("samples", samples)
    return field, values.read_measures(measures or (), 10**decimals, field)


def outcome_probabilities(given: dict[str, Any]) -> dict[str, int]:
    """Return probabilities by outcome, 1e-9. Refuses: out_of_range."""
    unit = values.PROBABILITY
    try:
        return dict(zip(given, values.read_each_fixed(given.values(), unit, "probabilities", 0, unit), strict=True))
    except Refused:  # name the outcome
        return {name: values.read_probability(chance, f"probabilities.{name}") for name, chance in given.items()}


def check_outcomes(chances: Mapping[str, _Chance], outcomes: Sequence[str], field: str) -> list[_Chance]:
    """Return probabilities or payouts in the question's order of outcomes.

    Refuses, first that applies: unknown_outcome, wrong_length.
    """
    names = frozenset(outcomes)
    for outcome in chances:
        if outcome not in names:
            raise Refused("unknown_outcome", field, outcome, no_such_outcome(outcomes))
    if len(chances) != len(outcomes):
        raise Refused("wrong_length", field, None, f"{field} must have every outcome")
    return [chances[outcome] for outcome in outcomes]


def normalized(chances: dict[str, int], outcomes: tuple[str, ...]) -> tuple[int, ...]:
    """Return probabilities, 1e-9, in the question's order of outcomes, so that they sum to exactly 1.

    The difference between their sum and 1, at most 1e-6, is added to the largest; to the first of several that are
    equal. Refuses, first that applies: unknown_outcome, wrong_length, not_summing_to_one.
    """
    row = check_outcomes(chances, outcomes, "probabilities")
    missing = values.PROBABILITY - sum(row)
    if abs(missing) > TOLERANCE:
        total = values.format_fixed(sum(row), values.PROBABILITY)
        raise Refused("not_summing_to_one", "probabilities", total)
    row[row.index(max(row))] += missing
    return tuple(row)


def _of_outcomes(rule: Normalizing | None, chances: dict[str, int], question: QuestionState) -> dict[str, Any]:
    """Return the fields of the event; those of shares that sum to 1 are as without a rule."""
    if rule is None or sum(chances.values()) == values.PROBABILITY:
        return {"probabilities": normalized(chances, question.current)}
    shares = check_outcomes(chances, question.current, "probabilities")
    return {"probabilities": NORMALIZING[rule](shares), "normalized": StatedShares(shares=tuple(shares), rule=rule)}


def check_distribution(command: commands.SubmitForecast, numbers: _Numbers, question: QuestionState) -> dict[str, Any]:
    """Return the fields of the event that record the distribution; samples in increasing order.

    numbers: the command's, from `read_distribution`.

    Refuses, first that applies: unknown_outcome, wrong_length, not_summing_to_one, decreasing, open_end_needed.
    """
    if isinstance(numbers, int):
        return {"probabilities": (numbers, values.PROBABILITY - numbers)}
    if isinstance(numbers, dict):
        return _of_outcomes(command.normalized, numbers, question)
    if isinstance(numbers, StatedPoints):
        return {"cdf": cdf_of_points(numbers, question), "points": numbers}
    if question.range is None or not question.range.measures:
        return {"cdf": _check_cdf(numbers, question.range)}
    if question.range.samples:
        return {"samples": _check_measures("samples", command.samples or (), numbers, question.range)}
    return {"quantiles": _check_measures("quantiles", command.quantiles or (), numbers, question.range)}


def _check_cdf(heights: list[int], span: events.NumericRange | None) -> tuple[int, ...]:
    if span is None or len(heights) != span.bins + 1:
        raise Refused("wrong_length", "cdf", len(heights))
    if heights != sorted(heights):
        raise Refused("decreasing", "cdf", None)
    if (heights[0] and not span.open_lower) or (heights[-1] != values.CUMULATIVE and not span.open_upper):
        raise Refused("open_end_needed", "cdf", None)
    return tuple(heights)


def _check_measures(field: str, given: Sequence[Any], units: list[int], span: events.NumericRange) -> tuple[int, ...]:
    """Return quantiles or samples in 10^-decimals. Beyond an open end, they may be as large as the unit can count."""
    if len(units) != span.measures:
        raise Refused("wrong_length", field, len(units))
    ordered = sorted(units)
    if span.levels and units != ordered:
        raise Refused("decreasing", field, None)
    least, most = limits(span)
    if least < ordered[0] and ordered[-1] < most:  # by at least one unit; rounding moves a number by less
        return tuple(ordered)
    lower, upper = Decimal(span.lower), Decimal(span.upper)
    for number, rounded in zip(given, units, strict=True):
        if least < rounded < most:
            continue
        value = values.read_measure(number, field)
        if (value < lower and not span.open_lower) or (value > upper and not span.open_upper):
            raise Refused("open_end_needed", field, str(value))
        if not is_countable(value, span.decimals):
            raise not_countable(field, value)
    return tuple(ordered)


def limits(span: NumericRange) -> tuple[int, int]:
    """Return the bounds between which quantiles or samples are not refused, in 10^-decimals, rounded."""
    furthest = values.LARGEST_MEASURE
    least, most = _bounds(span.lower, span.upper, span.decimals)
    return -furthest if span.open_lower else least, furthest if span.open_upper else most


def not_countable(field: str, value: Decimal) -> Refused:
    """Return the refusal of a number that is too large for the decimals of a question.

    >>> not_countable("value", Decimal("1e14")).remedy
    'give a number nearer to 0, or open the question with fewer `decimals` in its range'
    """
    detail = f"it is more than {values.LARGEST_MEASURE:,} units of the question's last decimal"
    remedy = "give a number nearer to 0, or open the question with fewer `decimals` in its range"
    return Refused("open_end_needed", field, str(value), detail, remedy=remedy)


@lru_cache(maxsize=4_096)
def _bounds(lower: str, upper: str, decimals: int) -> tuple[int, int]:
    """Return the bounds of a range in 10^-decimals, rounded."""
    least, most = values.read_measures((Decimal(lower), Decimal(upper)), 10**decimals, "range")
    return least, most
