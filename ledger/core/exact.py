"""Exact arithmetic: rounding half-even, and the contexts in which decimals are read and divided."""

from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal

WRITTEN = Context(prec=2_000, Emax=MAX_EMAX, Emin=MIN_EMIN)  # of any number that a person writes
WIDE = Context(prec=40, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN)


def half_even(numerator: int, denominator: int) -> int:
    """Return the integer nearest to numerator / denominator (> 0); of two equally near, the even one.

    >>> [half_even(n, 2) for n in (-3, -1, 1, 3, 5)]
    [-2, 0, 0, 2, 2]
    """
    quotient, remainder = divmod(numerator, denominator)
    doubled = 2 * remainder
    return quotient + (doubled > denominator or (doubled == denominator and quotient & 1))


def shortest_text(value: Decimal) -> str:
    """Return the canonical form of a number: its shortest decimal text.

    >>> shortest_text(Decimal("0.50")), shortest_text(Decimal("-0.0")), shortest_text(Decimal(100))
    ('0.5', '0', '1E+2')
    """
    return str(value.normalize(WRITTEN)) if value else "0"
