"""Bounds of sums of differences that hold at every moment at once, however often somebody looks.

A sum S of differences that lie between -1 and 1, less the sum of their expected values, given all that was before them,
stays within these bounds for ever, except with the probability `alpha`. They are rounded to 40 digits.
"""

from decimal import Decimal
from fractions import Fraction
from functools import cache

from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.projections.core.lazy_fractions import to_decimal

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
