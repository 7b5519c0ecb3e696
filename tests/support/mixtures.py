"""The gamma-exponential mixture from the definition of the incomplete gamma function, in decimals of 150 digits."""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

DIGITS = 150


@cache
def integral(exponent: Decimal, times: Decimal) -> Decimal:
    """Return the integral of y^(exponent - 1) e^(-times y) from 0 to 1, term by term of the exponential series."""
    number, power, total = 0, Decimal(1), 1 / exponent
    while number < 2 * times or abs(power) > Decimal(10) ** (10 - DIGITS):
        number += 1
        power *= -times / number
        total += power / (exponent + number)
    return total


def best_rho(optimal: int, alpha: Fraction) -> Decimal:
    """Return the parameter with which the two-sided normal mixture is tightest at a time."""
    doubled = -2 * (Decimal(alpha.numerator) / alpha.denominator).ln()
    return optimal / (doubled + (1 + doubled).ln())


def log_mixture(s: Decimal, time: Decimal, rho: Decimal, c: int) -> Decimal:
    """Return the logarithm of E exp(l s - psi(l) time), where 1 - c l is a gamma variable, cut at 1."""
    with localcontext() as context:
        context.prec = DIGITS
        alone, late = rho / c**2, (time + rho) / c**2
        inside = late + s / c
        return inside - alone + integral(late, inside).ln() - integral(alone, alone).ln()


@cache
def bound(time: Fraction, alpha: Fraction, optimal: int = 10, c: int = 2) -> Decimal:
    """Return the sum at which the mixture is 2 / alpha, to 1e-15: where two ends meet, by the rule of Illinois.

    Source: Dowell and Jarratt (1971), "A modified regula falsi method", doi:10.1007/BF01934364.
    """
    with localcontext() as context:
        context.prec = DIGITS
        rho, late = best_rho(optimal, alpha), Decimal(time.numerator) / time.denominator
        level = (2 * Decimal(alpha.denominator) / alpha.numerator).ln()

        def above(s: Decimal) -> Decimal:
            return log_mixture(s, late, rho, c) - level

        low, high = Decimal(0), Decimal(8)
        while above(high) < 0:
            high *= 2
        below, over = above(low), above(high)
        middle, last = high, over
        while high - low > Decimal("1e-15") and abs(last) > Decimal("1e-20"):
            middle = high - over * (high - low) / (over - below)
            found = above(middle)
            if found >= 0:
                below /= 2 if last >= 0 else 1
                high, over = middle, found
            else:
                over /= 2 if last < 0 else 1
                low, below = middle, found
            last = found
        return middle
