"""Arithmetic whose results are the same integers on every machine: roots, logarithms and powers.

It uses Python integers and `decimal` only, no binary floating point.
"""

from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import floor, isqrt
from typing import NamedTuple

from forecast_ledger.ledger.core.exact import WIDE, half_even
from forecast_ledger.projections.core.late_fractions import to_decimal

QUANTUM = 10**12  # units in 1: logarithms
_KEPT = 1 << 16  # logarithms: forecasts repeat numbers
_POWER = Context(prec=30, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN)
LN_2 = WIDE.ln(Decimal(2))
_LN_BITS = 144  # bits after the point of a logarithm before it is rounded
_TOP_BITS = 7  # the highest bits of a number, which choose a factor that brings it near 1
_FACTOR_BITS = 8


def root_half_even(square: Fraction) -> int:
    """Return the root of a number that is not negative, rounded half-even once.

    >>> [root_half_even(Fraction(square)) for square in (0, 2, 9, "0.25", "2.25", "6.25")]
    [0, 1, 3, 0, 2, 2]
    """
    doubled = isqrt(4 * square.numerator // square.denominator)  # the floor of twice the root
    exact = doubled**2 * square.denominator == 4 * square.numerator
    return half_even(doubled, 2) if exact else (doubled + 1) // 2


@lru_cache(_KEPT)
def ln_fixed(k: int, unit: int, quantum: int = QUANTUM) -> int:
    """Return ln(k / unit) in 1/quantum nat, rounded half-even once; k and unit are positive integers.

    It is evaluated to 1e-40. No value on the grid k / 10^6 is nearer to a rounding tie than 6e-21 nat, so every
    evaluation that is more precise than that gives the same integer.

    >>> ln_fixed(1, 2), ln_fixed(500_000_000, 1_000_000_000)
    (-693147180560, -693147180560)
    """
    return half_even((_ln(k) - _ln_of_unit(unit)) * quantum, 1 << _LN_BITS)


@lru_cache(_KEPT)
def log2_fixed(k: int, unit: int, quantum: int = QUANTUM) -> int:
    """Return log2(k / unit) in 1/quantum, rounded half-even once; k and unit are positive integers.

    >>> log2_fixed(1, 8)
    -3000000000000
    """
    return half_even((_ln(k) - _ln_of_unit(unit)) * quantum, _LN_2_SCALED)


@lru_cache(_KEPT)
def log10_fixed(k: int, unit: int, quantum: int = QUANTUM) -> int:
    """Return log10(k / unit) in 1/quantum, rounded half-even once; k and unit are positive integers.

    >>> log10_fixed(1, 1000)
    -3000000000000
    """
    return half_even((_ln(k) - _ln_of_unit(unit)) * quantum, _ln(10))


class Magnitude(NamedTuple):
    """A number >= 0 of any size: mantissa x 10^exponent, 1 <= mantissa < 10. Magnitudes compare as numbers do."""

    positive: bool
    exponent: int
    mantissa: Fraction


ZERO = Magnitude(False, 0, Fraction(0))


def power(factor: Fraction, base: str, exponent: Fraction) -> Magnitude:
    """Return factor x base^exponent, for the base "e" or "2" and factor >= 0.

    The power is rounded half-even once to 30 significant digits; with exponent 0 it is exactly 1. If the base is 2 and
    the exponent is from -1,000 to 1,000, only the power of its fractional part is rounded. The rest is exact.

    >>> power(Fraction(1, 2), "2", Fraction(11)), power(Fraction(0), "e", Fraction(1)) == ZERO
    (Magnitude(positive=True, exponent=3, mantissa=Fraction(128, 125)), True)
    """
    if not factor:
        return ZERO
    if base == "2" and abs(exponent) <= 1_000:
        factor, exponent = factor * Fraction(2) ** floor(exponent), exponent - floor(exponent)
    wide = to_decimal(exponent, WIDE)
    rounded = raised(base, wide)
    lowest = int(rounded.as_tuple().exponent)
    mantissa = factor * int(rounded.scaleb(-lowest, WIDE))
    shift = to_decimal(mantissa, WIDE).adjusted()
    mantissa *= Fraction(10) ** -shift
    if mantissa < 1:  # the division was rounded up to a power of ten
        mantissa, shift = mantissa * 10, shift - 1
    return Magnitude(True, lowest + shift, mantissa)


def raised(base: str, exponent: Decimal) -> Decimal:
    """Return base^exponent, for the base "e" or "2", rounded half-even once to 30 significant digits.

    >>> raised("2", Decimal(3)), raised("e", Decimal(0))
    (Decimal('8.00000000000000000000000000000'), Decimal('1'))
    """
    return _POWER.plus(WIDE.exp(exponent if base == "e" else WIDE.multiply(exponent, LN_2)))


def _twice_atanh(numerator: int, denominator: int) -> int:
    """Return 2 atanh(z) in 2^-144, z = numerator / denominator, abs(z) <= 1/3: twice the sum of z + z³/3 + z⁵/5 …"""
    power = (abs(numerator) << _LN_BITS) // denominator
    square, total, odd = power * power >> _LN_BITS, 0, 1
    while power:
        total += power // odd
        power, odd = power * square >> _LN_BITS, odd + 2
    return 2 * total if numerator > 0 else -2 * total


def _factor(top: int) -> tuple[int, int]:
    """Return the factor, in 2^-8, that brings numbers with these highest bits near 1, and its logarithm."""
    factor = half_even(1 << _TOP_BITS + _FACTOR_BITS + 1, 2 * top + 1)
    return factor, _twice_atanh(factor - (1 << _FACTOR_BITS), factor + (1 << _FACTOR_BITS))


_LN_2_SCALED = _twice_atanh(1, 3)
_FACTORS = [_factor(top) for top in range(1 << _TOP_BITS - 1, 1 << _TOP_BITS)]


def _ln(number: int) -> int:
    """Return the logarithm of a positive integer in 2^-144, with an error below 2^-138 for each of its bits.

    number = 2^e · m, 1/2 <= m < 1, and x = m · factor is within 0.01 of 1: ln x = 2 atanh((x - 1) / (x + 1)).
    """
    exponent = number.bit_length()
    mantissa = number << _LN_BITS - exponent if exponent <= _LN_BITS else number >> exponent - _LN_BITS
    factor, ln_factor = _FACTORS[(mantissa >> _LN_BITS - _TOP_BITS) - len(_FACTORS)]
    scaled, unit = mantissa * factor, 1 << _LN_BITS + _FACTOR_BITS
    return exponent * _LN_2_SCALED + _twice_atanh(scaled - unit, scaled + unit) - ln_factor


_ln_of_unit = lru_cache(8)(_ln)  # few units have many logarithms
