"""The cdf of a forecast that is given as a few quantiles: methods that interpolate between points, in fractions.

A place is where a value lies in the range, in 1e-30 of a bin above the lower bound, so that every edge of a bin is a
whole number of bins; on a log scale it follows the logarithm, as bins do. Heights, of the cdf, are in 1e-10. They are
rounded half-even once, at the end.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import NamedTuple

from forecast_ledger.ledger.core.exact import WRITTEN, half_even
from forecast_ledger.ledger.core.values import CUMULATIVE
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.ledger.model.forms import Method

BIN = 10**30  # places in a bin


class Point(NamedTuple):
    """A place, and the height of the cdf there. Points with one place are a point mass: the last has the height at it,
    the first that below it.
    """

    place: int
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
    placed = [Point(place_of(value, span), height) for value, height in points]
    return [half_even(height.numerator, height.denominator) for height in METHODS[method].interpolate(placed, span)]


def is_on_scale(value: Decimal, span: NumericRange) -> bool:
    """Return whether a value has a place in a range, or beyond its ends: a log scale goes up to its zero point.

    >>> span = NumericRange(lower="1", upper="100", bins=2, zero_point="0", open_lower=True)
    >>> is_on_scale(Decimal("0.5"), span), is_on_scale(Decimal(0), span)
    (True, False)
    """
    if span.zero_point is None:
        return True
    zero = Decimal(span.zero_point)
    return value != zero and (value > zero) == (Decimal(span.lower) > zero)


def place_of(value: Decimal, span: NumericRange) -> int:
    """Return the place of a value on the scale, rounded half-even; of a log scale to 1e-30 or better.

    >>> place_of(Decimal(10), NumericRange(lower="1", upper="100", bins=4, zero_point="0")) == 2 * BIN
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

    def between(number: int, place: int) -> Fraction:
        start, end = ends[number], ends[number + 1]
        return start.height + Fraction((end.height - start.height) * (place - start.place), end.place - start.place)

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
    breaks = [number for number in range(1, len(ends)) if ends[number].place == ends[number - 1].place]
    runs = [ends[start:end] for start, end in pairwise([0, *breaks, len(ends)])]
    slopes = [slope for run in runs for slope in _slopes(run)]

    def between(number: int, place: int) -> Fraction:
        start, end = ends[number], ends[number + 1]
        past, left, width = place - start.place, end.place - place, end.place - start.place
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
    least = points[0].place if span.open_lower else place_of(WRITTEN.add(lower, margin), span)
    most = points[-1].place if span.open_upper else place_of(WRITTEN.subtract(upper, margin), span)
    moved = [point._replace(place=min(max(point.place, least), most)) for point in points]
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
    if not span.open_lower or points[0].place > 0:
        ends.insert(0, Point(0, points[0].height // 2 if span.open_lower else 0))
    if not span.open_upper or points[-1].place < last:
        ends.append(Point(last, (CUMULATIVE + points[-1].height) // 2 if span.open_upper else CUMULATIVE))
    return ends


def _at_edges(points: Sequence[Point], between: Callable[[int, int], Fraction], bins: int) -> list[Fraction]:
    """Return the heights at all edges; the points begin at the first or before it, and end at the last or after it.

    between: the number of a point, and a place between it and the next one -> the height. A point mass on an edge
    belongs to the bin below it, that on the lower bound to the first bin, as answers do.
    """
    places = [point.place for point in points]
    first = bisect_left(places, 0)
    heights = [Fraction(points[first].height) if places[first] == 0 else between(first - 1, 0)]
    for edge in range(1, bins + 1):
        after = bisect_right(places, edge * BIN)
        heights.append(between(after - 1, edge * BIN) if after < len(points) else Fraction(points[-1].height))
    return heights


def _slopes(points: Sequence[Point]) -> list[Fraction]:
    """Return the slope at each point of a curve; places and heights increase."""
    if len(points) == 1:
        return [Fraction(0)]
    widths = [after.place - before.place for before, after in pairwise(points)]
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
    (near, far), (own, next_one) = widths, secants
    return max(Fraction(0), Fraction((2 * near + far) * own - near * next_one, near + far))


def _bounded(steps: Sequence[Fraction], most: Fraction) -> list[Fraction]:
    """Return steps with the same sum, none above a bound: the greatest are the bound, the others in proportion."""
    capped, rest = 0, sum(steps, Fraction(0))
    scale, total = Fraction(1), rest
    for step in sorted(steps, reverse=True):
        if step * scale <= most:
            break
        capped, rest = capped + 1, rest - step
        scale = Fraction(total - capped * most, rest) if rest else Fraction(0)
    return [min(step * scale, most) for step in steps]
