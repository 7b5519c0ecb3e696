"""Bounds of a mean difference that hold at every moment at once, however often somebody looks.

A confidence sequence bounds a sum of differences: a sum S of differences that lie between -1 and 1, less the sum of
their expected values, given all that was before them, stays within these bounds for ever, except with the probability
`alpha`.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cache, partial
from math import ceil, floor, isqrt
from typing import NamedTuple, Protocol

import numpy as np

from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.core.late_fractions import to_decimal
from forecast_ledger.projections.studies.estimates import Near
from forecast_ledger.projections.studies.resampling import Ends

OPTIMAL = 10  # the intrinsic time at which the bounds are tightest, as in Choe and Ramdas's own code
SPAN = 2  # of differences from -1 to 1
_TWO = Decimal(2)
_GRID = 10  # bits of a time: it is rounded up to so many below its highest one, which adds less than 0.05% to a bound
_UNIT = 10**12  # of a gamma-exponential bound, and of rho in it
_BITS = 96  # of the terms of a series
_SECANTS = 12  # more than are needed for a guess within 1e-12
_LESS = Context(prec=24)  # for guesses


def normal_mixture(time: Fraction, alpha: Fraction, optimal: int = OPTIMAL) -> Decimal:
    """Return the bound of |S| for differences of bounded size: the two-sided normal mixture, rounded to 40 digits.

    time: Σ of the squares of half of the spans of the differences; their number, if each spans 2. optimal: the time at
    which the bound is tightest.

    Source: Howard et al. (2021), Annals of Statistics 49(2):1055-1080, doi:10.1214/20-AOS1991,
    equation 14; Choe and Ramdas (2023), Operations Research, doi:10.1287/opre.2021.0792, theorem 1.

    >>> round(normal_mixture(Fraction(100), Fraction(1, 20), optimal=100), 5)
    Decimal('30.35209')
    """
    rho = _rho(alpha, optimal)
    inside = WIDE.add(to_decimal(time, WIDE), rho)
    logarithms = WIDE.add(WIDE.ln(WIDE.divide(inside, rho)), WIDE.multiply(_TWO, _log_of_inverse(alpha)))
    return WIDE.sqrt(WIDE.multiply(inside, logarithms))


def on_grid(time: Fraction) -> int:
    """Return a time rounded up, in 2^-10: to ten bits below its highest bit, or to a whole number.

    >>> [on_grid(time) for time in (Fraction(1, 2048), Fraction(100), Fraction(10**4 + 1, 100))]
    [1, 102400, 102464]
    """
    whole = -(-(time.numerator << _GRID) // time.denominator)
    coarse = max(whole.bit_length() - 1 - _GRID, 0)
    return -(-whole >> coarse) << coarse


@cache
def gamma_exponential(grid: int, alpha: Fraction, optimal: int = OPTIMAL, span: int = SPAN) -> Fraction:
    """Return the bound of |S| for differences that vary little: the gamma-exponential mixture, rounded up to 1e-12.

    grid: as of `on_grid`, of Σ of the squares of the differences less their predictions, each made of the differences
    before it. span: of the differences. optimal: the time at which the bound is about tightest. Each side gets half of
    alpha.

    With c = span, a = rho / c², A = (time + rho) / c², and M(A, X) = Σ X^k / (A (A + 1) … (A + k)) over k = 0, 1, 2 …,
    the mixture of a sum s at a time is M(A, A + s / c) / M(a, a): gamma functions and powers cancel if the incomplete
    gamma function is its power series. It rises with s, and the bound is the least s at which it is 2 / alpha. The
    series has positive terms only, which are summed as integers, rounded down and up; what these leave open is decided
    with more digits. rho is that of the normal mixture, rounded half-even to 1e-12: the bound holds with any rho.

    Source: Howard et al. (2021), doi:10.1214/20-AOS1991, proposition 9 and theorem 4; Choe and Ramdas (2023),
    doi:10.1287/opre.2021.0792, theorem 2 and its appendix.

    >>> float(round(gamma_exponential(on_grid(Fraction(100)), Fraction(1, 10), optimal=100), 5))  # as in confseq
    33.02017
    """
    rho = int(WIDE.multiply(_rho(alpha, optimal), _UNIT).to_integral_value(ROUND_HALF_EVEN)) << _GRID
    mixture = _Mixture(rho, rho + grid * _UNIT, span, 2 * alpha.denominator, alpha.numerator)
    return Fraction(mixture.least_sum(), _UNIT)


class _Mixture(NamedTuple):
    """A gamma-exponential mixture at a time. rho, late: rho and rho + time, in 1e-12 x 2^-10.

    span: c. least, over: numerator and denominator of what the mixture must reach.
    """

    rho: int
    late: int
    span: int
    least: int
    over: int

    def reaches(self, s: int) -> bool:
        """Return whether the mixture of a sum s, 1e-12, is at or above what it must reach."""
        bits = _BITS
        while True:
            (low, high), (first, last) = self._sums(s, bits), _series(self.rho, self.rho, self._step, bits)
            if low * self._factor >= last * self._whole:
                return True
            if high * self._factor < first * self._whole:
                return False
            bits *= 2

    def least_sum(self) -> int:
        """Return the least sum that reaches it, 1e-12: near a guess, by steps that double, and then by halves."""
        low = high = self._guess()
        step = 1
        while low and self.reaches(low):
            low, high, step = max(low - step, 0), low, 2 * step
        while not self.reaches(high):
            low, high, step = high, high + step, 2 * step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.reaches(middle) else (middle, high)
        return high

    def _guess(self) -> int:
        """Return the sum at which the mixture is about what it must reach: by secants of its logarithm.

        For small sums, the logarithm rises about as their square, and later less.
        """
        whole = _about(self.rho, self.rho, self._step) * self._whole
        before, level = 0, self._above(0, whole)
        missing = max(int(_LESS.multiply(level, -_UNIT)), 0)
        s = isqrt(2 * (self.late >> _GRID) * missing) + self.span * missing // 3
        now, curve = self._above(s, whole), 2
        for _ in range(_SECANTS):
            if now == level:
                break
            step = _LESS.divide(_LESS.multiply(now, s - before), _LESS.multiply(_LESS.subtract(now, level), curve))
            before, level, s, curve = s, now, max(s - int(step), 0), 1
            if s == before:
                break
            now = self._above(s, whole)
        return s

    def _above(self, s: int, whole: int) -> Decimal:
        """Return about the logarithm of the mixture over what it must reach."""
        about = _about(self.late, self.late + (self.span * s << _GRID), self._step)
        return _LESS.ln(_LESS.divide(about * self._factor, whole))

    def _sums(self, s: int, bits: int) -> tuple[int, int]:
        return _series(self.late, self.late + (self.span * s << _GRID), self._step, bits)

    @property
    def _step(self) -> int:
        return self.span**2 * _UNIT << _GRID

    @property
    def _factor(self) -> int:
        return self.rho * self.over

    @property
    def _whole(self) -> int:
        return self.late * self.least


def _series(first: int, times: int, step: int, bits: int) -> tuple[int, int]:
    """Return bounds of Σ of products times^k / ((first + step) … (first + k step)), 2^-bits, over k = 0, 1, 2 …

    Terms are rounded down, and up. The last one is at most 1 and twice the next, and the next of the following.
    """
    low = high = lows = highs = 1 << bits
    divisor = first
    while high > 1 or 2 * times > divisor + step:
        divisor += step
        low, high = low * times // divisor, -(-high * times // divisor)
        lows, highs = lows + low, highs + high
    return lows, highs + 1


def _about(first: int, times: int, step: int) -> int:
    """Return about the sum of `_series`, in 2^-64."""
    term = found = 1 << 64
    divisor = first
    while term > 1 or 2 * times > divisor + step:
        divisor += step
        term = term * times // divisor
        found += term
    return found


@cache
def _log_of_inverse(alpha: Fraction) -> Decimal:
    return WIDE.ln(to_decimal(Fraction(alpha.denominator, alpha.numerator), WIDE))


@cache
def _rho(alpha: Fraction, optimal: int) -> Decimal:
    doubled = WIDE.multiply(_TWO, _log_of_inverse(alpha))
    return WIDE.divide(Decimal(optimal), WIDE.add(doubled, WIDE.ln(WIDE.add(Decimal(1), doubled))))


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
    """Return the bounds of each pair's mean that hold at every moment: normal mixture, gamma-exponential.

    both: on which questions both of a pair have a score, shape (m, q). sums: of the differences, shape (m, 1). squares:
    of their surprises, shape (m,). apart: the differences of each pair, for what bounds leave open. Returns 1e-9
    points, rounded outwards, within what is possible.
    """
    spans, weight = questions.span, questions.weight
    largest, alpha = max(spans), Fraction(10**6 - questions.level_ppm, 10**6)
    counts = {span: both[:, [each == span for each in spans]].sum(axis=1).tolist() for span in {*spans}}
    mixture = cache(partial(normal_mixture, alpha=alpha))

    def radius(time: Fraction) -> Decimal:
        return to_decimal(gamma_exponential(on_grid(time), alpha), WIDE)

    possible = max(ceil(Fraction(span, each)) for span, each in zip(spans, weight.tolist(), strict=True))
    totals = [[*map(Decimal, ends)] for ends in np.hstack([sums.low, sums.high]).tolist()]
    times = [[*map(Fraction, ends)] for ends in np.stack([np.maximum(squares.low, 0), squares.high], axis=1).tolist()]
    hoeffding, bernstein = list[Ends](), list[Ends]()
    for number, over in enumerate((both * weight).sum(axis=1).tolist()):
        around, differences = partial(_around, to_decimal(largest, WIDE), possible, over), apart[number]
        time = sum((span**2 * pairs[number] for span, pairs in counts.items()), Fraction(0))
        radii = [mixture(Fraction(time, largest**2))] * 2
        hoeffding.append(around(totals[number], radii) or around([differences.total] * 2, radii))
        radii = [radius(Fraction(end, largest**2)) for end in times[number]]
        ends = around(totals[number], radii)
        if ends is None:
            radii = [radius(Fraction(differences.surprises(), largest**2))] * 2
            ends = around([differences.total] * 2, radii)
        bernstein.append(ends)
    return hoeffding, bernstein


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
