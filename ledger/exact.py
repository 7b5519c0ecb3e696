"""Arithmetic whose result is one integer on every machine: rounding, logarithms, exponentials, shares.

Python integers and `decimal` only; no binary floating point enters.
"""

from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

QUANTUM = 10**12  # logarithms are counted in 1e-12
WIDE = Context(prec=40, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN)
_TAKE = Context(prec=30, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN)
LN_2 = WIDE.ln(Decimal(2))


def half_even(numerator: int, denominator: int) -> int:
    """The integer nearest to numerator / denominator (> 0); of two equally near, the even one.

    >>> [half_even(n, 2) for n in (-3, -1, 1, 3, 5)]
    [-2, 0, 0, 2, 2]
    """
    quotient, rest = divmod(numerator, denominator)
    doubled = 2 * rest
    return quotient + (doubled > denominator or (doubled == denominator and quotient & 1))


def ln_fixed(k: int, unit: int, quantum: int = QUANTUM) -> int:
    """ln(k / unit) in 1/quantum nat, rounded half-even once; k and unit positive integers.

    Evaluated to 40 digits. On the grid k / 10^6 no value comes nearer to a rounding tie than 6e-21 nat, so that
    any evaluation better than that gives the same integer.

    >>> ln_fixed(1, 2), ln_fixed(500_000_000, 1_000_000_000)
    (-693147180560, -693147180560)
    """
    return _quantised(WIDE.ln(WIDE.divide(k, unit)), quantum)


def log2_fixed(k: int, unit: int, quantum: int = QUANTUM) -> int:
    """log2(k / unit) in 1/quantum, rounded half-even once; k and unit positive integers.

    >>> log2_fixed(1, 8)
    -3000000000000
    """
    return _quantised(WIDE.divide(WIDE.ln(WIDE.divide(k, unit)), LN_2), quantum)


def power(base: str, exponent: Fraction) -> Decimal:
    """E or 2 ("e", "2") to a rational power, to 40 digits.

    >>> power("2", Fraction(10)).quantize(Decimal(1))
    Decimal('1024')
    """
    decimal = _decimal(exponent)
    return WIDE.exp(decimal if base == "e" else WIDE.multiply(decimal, LN_2))


def scaled(value: Decimal, factor: Fraction) -> Decimal:
    """Value x factor, rounded half-even to 30 significant digits: the precision in which takes are compared.

    >>> scaled(Decimal(2), Fraction(1, 4))
    Decimal('0.50')
    """
    return _TAKE.plus(WIDE.multiply(value, _decimal(factor)))


def integers(values: Sequence[Decimal]) -> list[int]:
    """The values times one common power of ten that makes them all integers.

    >>> integers([Decimal("0.25"), Decimal(3)])
    [25, 300]
    """
    exponents = [value.as_tuple().exponent for value in values if value]
    lowest = min((exponent for exponent in exponents if isinstance(exponent, int)), default=0)
    return [int(value.scaleb(-lowest, WIDE)) if value else 0 for value in values]


def apportion(amount: int, weights: Sequence[int]) -> list[int]:
    """Divide amount (>= 0) in proportion to weights (>= 0) by largest remainder; equal remainders: the first in order.

    The parts sum to amount, unless every weight is 0: then nobody gets anything. Pass weights in order of id.

    >>> apportion(100, [1, 1, 1])
    [34, 33, 33]
    """
    total = sum(weights)
    if not total:
        return [0] * len(weights)
    divided = [divmod(amount * weight, total) for weight in weights]
    parts = [quotient for quotient, _ in divided]
    by_remainder = sorted(range(len(parts)), key=lambda i: (-divided[i][1], i))
    for i in by_remainder[: amount - sum(parts)]:
        parts[i] += 1
    return parts


def _decimal(fraction: Fraction) -> Decimal:
    return WIDE.divide(Decimal(fraction.numerator), Decimal(fraction.denominator))


def _quantised(value: Decimal, quantum: int) -> int:
    return int(WIDE.multiply(value, quantum).to_integral_value(ROUND_HALF_EVEN))
