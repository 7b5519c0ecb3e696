"""Integers that are known to lie between two others; a question that the bounds do not answer raises InDoubt.

They stand for exact integers in the division of a pool, so that the same functions divide by either. After InDoubt, the
pool is divided again with closer bounds, or with the integers: unlike a number of `late_fractions`, a Between cannot
compute its own.
"""

from collections.abc import Hashable
from typing import Any, Self

Number = Any  # an integer or a Between


class InDoubt(Exception):
    """The bounds of a number do not decide a comparison or a quotient."""


class Between:
    """A number from `low` to `high`, both integers in one unit.

    name: numbers with the same name are equal, and have the same bounds; None if the number is not known to equal
    another.

    >>> third, half = Between(333, 334), Between(500, 500)
    >>> third < half, divmod(third * 10, half)[0]
    (True, 6)
    >>> third > Between(330, 340)
    Traceback (most recent call last):
    ...
    forecast_ledger.projections.core.between.InDoubt
    """

    __slots__ = ("high", "low", "name")

    def __init__(self, low: int, high: int, name: Hashable = None) -> None:
        self.low, self.high, self.name = low, high, object() if name is None else name

    def __add__(self, other: "Number") -> "Between":
        other = _between(other)
        return Between(self.low + other.low, self.high + other.high)

    __radd__ = __add__

    def __neg__(self) -> "Between":
        return Between(-self.high, -self.low, ("-", self.name))

    def __sub__(self, other: "Number") -> "Between":
        return self + -_between(other)

    def __mul__(self, factor: int) -> "Between":
        """Multiply by a factor >= 0."""
        return Between(self.low * factor, self.high * factor, (factor, self.name))

    __rmul__ = __mul__

    def __divmod__(self, divisor: Self) -> "tuple[int, Between]":
        """Return quotient and remainder. Neither number may be below 0."""
        if divisor.low <= 0 or self.low // divisor.high != self.high // divisor.low:
            raise InDoubt
        quotient = self.low // divisor.high
        rest = (self.low - quotient * divisor.high, self.high - quotient * divisor.low)
        return quotient, Between(*rest, ("rest", self.name, divisor.name))

    def __rdivmod__(self, number: int) -> "tuple[int, Between]":
        return divmod(_between(number), self)

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        return self.low

    def __eq__(self, other: Number) -> bool:
        return self._compared(other) == 0

    def __lt__(self, other: "Number") -> bool:
        return self._compared(other) < 0

    def __le__(self, other: "Number") -> bool:
        return self._compared(other) <= 0

    def __gt__(self, other: "Number") -> bool:
        return self._compared(other) > 0

    def __ge__(self, other: "Number") -> bool:
        return self._compared(other) >= 0

    def _compared(self, other: "Number") -> int:
        """Return the sign of the difference."""
        other = _between(other)
        if self.name == other.name or self.low == self.high == other.low == other.high:
            return 0
        if self.high < other.low or self.low > other.high:
            return -1 if self.high < other.low else 1
        raise InDoubt


def _between(number: Number) -> Between:
    return number if isinstance(number, Between) else Between(number, number)
