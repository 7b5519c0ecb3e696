"""Division in proportion: integers in proportion to numbers, and parts of an amount by weights or bounds of weights.

A Between is an integer that is known to lie between two others; what the bounds do not answer raises InDoubt. They
stand for exact integers in the division of a pool, so that the same functions divide by either. After InDoubt, the pool
is divided again with closer bounds, or with the integers: unlike a number of `late_fractions`, a Between cannot compute
its own.
"""

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any, Self

from forecast_ledger.projections.core.late_fractions import integers_in_proportion
from forecast_ledger.projections.core.powers import Magnitude

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
    forecast_ledger.projections.core.proportions.InDoubt
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
        remainder = (self.low - quotient * divisor.high, self.high - quotient * divisor.low)
        return quotient, Between(*remainder, ("remainder", self.name, divisor.name))

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


def magnitudes_to_integers(values: Sequence[Magnitude]) -> list[int]:
    """Return integers in exact proportion to values; a value below 1e-60 of the largest counts as 0.

    >>> from forecast_ledger.projections.core.powers import power
    >>> magnitudes_to_integers([power(Fraction(1, factor), "e", Fraction(0)) for factor in (4, 6, 10**70)])
    [3, 2, 0]
    """
    return integers_in_proportion(magnitudes_in_proportion(values))


def magnitudes_in_proportion(values: Sequence[Magnitude]) -> list[Fraction]:
    """Return numbers below 10 in exact proportion to values; a value below 1e-60 of the largest counts as 0."""
    top = max((value.exponent for value in values if value.positive), default=0)
    return [
        value.mantissa * Fraction(10) ** (value.exponent - top)
        if value.positive and value.exponent > top - 60
        else Fraction(0)
        for value in values
    ]


def apportion(amount: int, weights: Sequence[Number]) -> list[int]:
    """Divide amount (>= 0) in proportion to weights (>= 0) by the largest remainder method.

    If remainders are equal, the first in order gets the unit; pass weights in order of id. The parts sum to amount; if
    every weight is 0, every part is 0. Raises InDoubt if bounds of weights do not decide a part.

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
