"""Bounds of a mean difference that hold at every moment at once, however often somebody looks.

A confidence sequence bounds a sum of differences: a sum S of differences that lie between -1 and 1, less the sum of
their expected values, given all that was before them, stays within these bounds for ever, except with the probability
`alpha`. They are rounded to 40 digits.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from math import ceil, floor
from typing import NamedTuple, Protocol

import numpy as np

from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.core.enclosures import to_decimal
from forecast_ledger.projections.studies.estimates import Near
from forecast_ledger.projections.studies.resampling import Ends

OPTIMAL = 10  # the intrinsic time at which the bounds are tightest, as in Choe and Ramdas's own code
SPAN = 2  # of differences from -1 to 1
_EXPONENT = Decimal("1.4")
_ZETA = Decimal("3.105547277977580399782927215688923792402")  # Riemann's zeta function of _EXPONENT
_TWO = Decimal(2)


def normal_mixture(time: Fraction, alpha: Fraction, optimal: int = OPTIMAL) -> Decimal:
    """Return the bound of |S| for differences of bounded size: the two-sided normal mixture.

    time: Σ of the squares of half of the spans of the differences; their number, if each spans 2. optimal: the time at
    which the bound is tightest.

    Source: Howard et al. (2021), Annals of Statistics 49(2):1055-1080, doi:10.1214/20-AOS1991,
    equation 14; Choe and Ramdas (2023), Operations Research, doi:10.1287/opre.2021.0792, theorem 1.

    >>> round(normal_mixture(Fraction(100), Fraction(1, 20), optimal=100), 5)
    Decimal('30.35209')
    """
    rho = _rho(alpha, optimal)
    inside = _plus(to_decimal(time, WIDE), rho)
    logarithms = _plus(WIDE.ln(WIDE.divide(inside, rho)), WIDE.multiply(_TWO, _log_of_inverse(alpha)))
    return WIDE.sqrt(WIDE.multiply(inside, logarithms))


def empirical_bernstein(time: Fraction, alpha: Fraction, span: int = SPAN) -> Decimal:
    """Return the bound of |S| for differences that vary little: polynomial stitching.

    time: Σ of the squares of the differences less their predictions, each made of the differences before it. span: of
    the differences.

    Source: Howard et al. (2021), equation 10 and theorem 4, with s = 1.4 and eta = 2; Choe and Ramdas (2023),
    theorem 2. Each side gets half of alpha.

    >>> round(empirical_bernstein(Fraction(100), Fraction(1, 10), span=3), 5)
    Decimal('64.48755')
    """
    reached = max(to_decimal(time, WIDE), Decimal(OPTIMAL))
    epochs = WIDE.ln(WIDE.ln(WIDE.divide(WIDE.multiply(_TWO, reached), Decimal(OPTIMAL))))
    level = _plus(_plus(WIDE.multiply(_EXPONENT, epochs), _shared_out()), _log_of_inverse(Fraction(1, 2) * alpha))
    root = WIDE.sqrt(_TWO)
    first = WIDE.divide(_plus(_plus(root, _TWO), WIDE.divide(Decimal(1), root)), _TWO)  # the square of k1
    linear = WIDE.multiply(WIDE.multiply(_plus(root, Decimal(1)), level), WIDE.divide(Decimal(span), _TWO))
    spread = WIDE.multiply(WIDE.multiply(first, reached), level)
    return _plus(linear, WIDE.sqrt(_plus(spread, WIDE.multiply(linear, linear))))


@cache
def _shared_out() -> Decimal:
    """Return ln(zeta(s) / ln(eta)^s)."""
    return WIDE.subtract(WIDE.ln(_ZETA), WIDE.multiply(_EXPONENT, WIDE.ln(WIDE.ln(_TWO))))


@cache
def _log_of_inverse(alpha: Fraction) -> Decimal:
    return WIDE.ln(to_decimal(Fraction(alpha.denominator, alpha.numerator), WIDE))


@cache
def _rho(alpha: Fraction, optimal: int) -> Decimal:
    doubled = WIDE.multiply(_TWO, _log_of_inverse(alpha))
    return WIDE.divide(Decimal(optimal), _plus(doubled, WIDE.ln(_plus(Decimal(1), doubled))))


def _plus(one: Decimal, other: Decimal) -> Decimal:
    return WIDE.add(one, other)


class Bounded(NamedTuple):
    """The questions of a contest whose scores have bounds.

    span: weight x the range of the scores on each question, 1e-15. weight: 1e-6, shape (q,). level_ppm: of its rules.
    """

    span: Sequence[Fraction]
    weight: Int64Array
    level_ppm: int


class Differences(Protocol):
    """The differences of the weighted scores of two participants, exact, 1e-15."""

    @property
    def total(self) -> Decimal:
        """Their sum, rounded to 40 digits."""

    def surprises(self) -> Fraction:
        """Return Σ (difference - mean of those before it)², 0 before the first."""


def sequences(
    questions: Bounded, both: BoolArray, sums: Near, squares: Near, apart: Sequence[Differences]
) -> tuple[list[Ends], list[Ends]]:
    """Return the bounds of each pair's mean that hold at every moment: normal mixture, empirical Bernstein.

    both: on which questions both of a pair have a score, shape (m, q). sums: of the differences, shape (m, 1). squares:
    of their surprises, shape (m,). apart: the differences of each pair, for what bounds leave open. Returns 1e-9
    points, rounded outwards, within what is possible.
    """
    spans, weight = questions.span, questions.weight
    largest, alpha = max(spans), Fraction(10**6 - questions.level_ppm, 10**6)
    counts = {span: both[:, [each == span for each in spans]].sum(axis=1).tolist() for span in {*spans}}
    mixture = cache(partial(normal_mixture, alpha=alpha))
    possible = max(ceil(Fraction(span, each)) for span, each in zip(spans, weight.tolist(), strict=True))
    totals = [[*map(Decimal, ends)] for ends in np.hstack([sums.low, sums.high]).tolist()]
    times = [[*map(Fraction, ends)] for ends in np.stack([np.maximum(squares.low, 0), squares.high], axis=1).tolist()]
    hoeffding, bernstein = list[Ends](), list[Ends]()
    for number, over in enumerate((both * weight).sum(axis=1).tolist()):
        around, own = partial(_around, to_decimal(largest, WIDE), possible, over), apart[number]
        time = sum((span**2 * pairs[number] for span, pairs in counts.items()), Fraction(0))
        radii = [mixture(Fraction(time, largest**2))] * 2
        hoeffding.append(around(totals[number], radii) or around([own.total] * 2, radii))
        radii = _radii([Fraction(end, largest**2) for end in times[number]], alpha)
        bernstein.append(
            around(totals[number], radii)
            or around([own.total] * 2, _radii([Fraction(own.surprises(), largest**2)] * 2, alpha))
        )
    return hoeffding, bernstein


def _radii(times: Sequence[Fraction], alpha: Fraction) -> list[Decimal]:
    """Return bounds of the empirical Bernstein radius at a time of which bounds are given.

    The radius grows more slowly than the time, from OPTIMAL on, if alpha is below 0.8: it divided by the time falls.
    """
    least, most = (max(time, Fraction(OPTIMAL)) for time in times)
    radius = empirical_bernstein(most, alpha)
    return [WIDE.multiply(radius, to_decimal(Fraction(least, most), WIDE)), radius]


def _around(largest: Decimal, possible: int, over: int, totals: Sequence[Decimal], radii: Sequence[Decimal]) -> Ends:
    """Return (total -+ radius x largest) / over, 1e-9, rounded outwards, within what is possible.

    totals, radii: the least and the greatest that they may be. Returns None if these differ in what they give.
    """
    wide = [WIDE.multiply(radius, largest) for radius in radii]
    lows = [WIDE.subtract(*each) for each in zip(totals, wide[::-1], strict=True)]
    highs = [WIDE.add(*each) for each in zip(totals, wide, strict=True)]
    least, low = (max(floor(WIDE.divide(each, Decimal(over))), -possible) for each in lows)
    high, greatest = (min(ceil(WIDE.divide(each, Decimal(over))), possible) for each in highs)
    return (low, high) if (least, greatest) == (low, high) else None
