"""Quantiles: which percentiles cover what is asked for, since few clusters vary less in replicates than in truth; and
which difference a test can tell.
"""

from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import cache

from forecast_ledger.ledger.core.exact import WIDE

MOST_DEGREES = 1_000  # of freedom: with more, an interval is as with so many, and hardly wider
_PI = Decimal("3.141592653589793238462643383279502884197")
_CLOSE = Decimal("1e-35")
_FAR = Decimal(10)  # deviations, beyond which a normal distribution has less than 1e-22
_PPM = 10**6
POWER = Decimal("0.8")  # of a test: how often it finds a difference that is there


@cache
def expanded_level(level_ppm: int, clusters: int, strata: int = 1) -> int:
    """Return the share of the replicates, 1e-6, between whose ends the truth lies in the share `level` of cases.

    clusters: that are drawn. strata: in which they are drawn apart. The degrees of freedom are n = clusters - strata,
    from 1 to 1,000. The ends are as far apart as those of Student's t with n degrees, where replicates, which are
    nearly normal, have the variance of the sample without the correction (n + strata) / n: with t the quantile of
    (1 + level) / 2, the share is the normal one within t √((n + strata) / n) deviations, rounded up.

    Source: Hesterberg (2015), The American Statistician 69(4):371-386, doi:10.1080/00031305.2015.1089789, section
    4.1, "expanded percentile"; strata are our own.

    >>> [expanded_level(950_000, clusters) for clusters in (20, 50, 1_001)]
    [968239, 957642, 950391]
    """
    degrees = min(max(clusters - strata, 1), MOST_DEGREES)
    with localcontext(WIDE):
        edge = student_edge(_ratio(level_ppm, _PPM), degrees) * _ratio(degrees + strata, degrees).sqrt()
        return int((normal_share(min(edge, _FAR)) * _PPM).to_integral_value(ROUND_CEILING))


def student_edge(level: Decimal, degrees: int) -> Decimal:
    """Return t, so that Student's t with these degrees of freedom is within -t and t in the share `level` of cases.

    Newton's steps from 0 stay below it, as the share is concave. level: above 0 and below 1.

    >>> [round(student_edge(Decimal("0.95"), degrees), 3) for degrees in (1, 2, 19)]
    [Decimal('12.706'), Decimal('4.303'), Decimal('2.093')]
    """
    with localcontext(WIDE):
        top, edge, step = _top(degrees), Decimal(0), Decimal(1)
        while step > _CLOSE * edge:
            density = _ratio(2 * top, _spread(edge, degrees))
            step = _ratio(level - _student_share(edge, degrees, top), density)
            edge += step
        return edge


def student_share(edge: Decimal, degrees: int) -> Decimal:
    """Return the share of Student's t with these degrees of freedom within -edge and edge, edge from 0 on.

    >>> round(student_share(Decimal("12.706204736"), 1), 9)
    Decimal('0.950000000')
    """
    with localcontext(WIDE):
        return _student_share(edge, degrees, _top(degrees))


def normal_share(edge: Decimal) -> Decimal:
    """Return the share of a normal distribution within -edge and edge standard deviations, edge above 0.

    It is 2 φ(x) (x + x³/3 + x⁵/(3 5) + …), φ the density.
    Source: Abramowitz and Stegun (1964), Handbook of Mathematical Functions, formula 26.2.11.

    >>> round(normal_share(Decimal("1.96")), 6)
    Decimal('0.950004')
    """
    with localcontext(WIDE):
        term, total, odd = edge, edge, 1
        while term > _CLOSE * total:
            odd += 2
            term *= _ratio(edge * edge, odd)
            total += term
        return total * _ratio(2, _PI).sqrt() * _ratio(-edge * edge, 2).exp()


def normal_edge(share: Decimal) -> Decimal:
    """Return how many deviations a normal distribution is within in this share of cases, above 0 and below 1.

    Newton's steps from 0 stay below it, as the share is concave.

    >>> round(normal_edge(Decimal("0.95")), 9)
    Decimal('1.959963985')
    """
    with localcontext(WIDE):
        edge, step = Decimal(0), Decimal(1)
        while step > _CLOSE * edge:
            density = _ratio(2, _PI).sqrt() * _ratio(-edge * edge, 2).exp()
            step = _ratio(share - (normal_share(edge) if edge else 0), density)
            edge += step
        return edge


def detectable_difference(variance: Fraction, level_ppm: int) -> Fraction:
    """Return the difference that a two-sided test at a level finds in POWER of cases, rounded half-even to 1e-9.

    variance: of the mean difference. The difference is (z of the level + z of the power) x the root of the variance, so
    that the number of clusters that another difference needs is in proportion to 1 / its square.

    Source: Cohen (1988), Statistical Power Analysis for the Behavioral Sciences, 2nd ed., ISBN 0-8058-0283-5, section
    2.4, with normal quantiles.

    >>> detectable_difference(Fraction(1, 100), 950_000) * 10**9  # (1.959963985 + 0.841621234) / 10
    Fraction(280158522, 1)
    """
    with localcontext(WIDE):
        edges = normal_edge(_ratio(level_ppm, _PPM)) + normal_edge(2 * POWER - 1)
        return Fraction(round(edges * _ratio(variance.numerator, variance.denominator).sqrt() * 10**9), 10**9)


def _ratio(numerator: Decimal | int, denominator: Decimal | int) -> Decimal:
    return WIDE.divide(Decimal(numerator), Decimal(denominator))


def _spread(edge: Decimal, degrees: int) -> Decimal:
    """Return the density at 0 over that at t: (1 + t² / n) to the power of (n + 1) / 2."""
    squared = 1 + _ratio(edge * edge, degrees)
    return (squared**degrees * squared).sqrt()


@cache
def _top(degrees: int) -> Decimal:
    """Return the density of Student's t at 0: Γ((n + 1) / 2) / (√(n π) Γ(n / 2)), two degrees at a time."""
    first = 2 - degrees % 2
    top = _ratio(1, _PI if first == 1 else 2)
    for lower in range(first, degrees, 2):
        top = _ratio(top * (lower + 1), lower)
    return _ratio(top, Decimal(degrees).sqrt())


def _student_share(edge: Decimal, degrees: int, top: Decimal) -> Decimal:
    """Return the share within -t and t: an incomplete beta function, as a series in t² / (n + t²) or its complement.

    The smaller of the two is at most 1/2, so that a series has few terms, however large t is.
    Source: Abramowitz and Stegun (1964), Handbook of Mathematical Functions, formulas 26.5.2 and 26.5.4.
    """
    scale = _ratio(2 * top * edge, _spread(edge, degrees))
    inside, outside = (_ratio(part, degrees + edge * edge) for part in (edge * edge, degrees))
    if inside <= outside:
        return scale * _series(inside, degrees + 1, 3)
    return 1 - _ratio(scale * _series(outside, degrees + 1, degrees + 2), degrees)


def _series(part: Decimal, above: int, below: int) -> Decimal:
    """Return 1 + a/b part + a/b (a + 2)/(b + 2) part² + …, with a = above and b = below; part is at most 1/2."""
    term, total = Decimal(1), Decimal(1)
    while term > _CLOSE * total:
        term *= _ratio(part * above, below)
        total, above, below = total + term, above + 2, below + 2
    return total
