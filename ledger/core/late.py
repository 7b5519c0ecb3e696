"""Fractions that are computed late: they have bounds, and are computed in full only if the bounds leave a doubt."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Self, TypeVar

BITS = 256  # binary places of the bounds of a number
Bounds = tuple[int, int]  # two integers in 2^-BITS: a number is at least the first and at most the second
_Found = TypeVar("_Found", int, Decimal)


class Late(Fraction):
    """A Fraction that computes its numerator and denominator late, and has bounds before.

    Methods that are not defined here or in a subclass are those of Fraction, and compute the number in full.
    """

    __slots__ = ("_bounds", "_whole")
    _bounds: list[Bounds | None]
    _whole: Fraction | None

    def __new__(cls) -> Self:
        """Create a number; a subclass stores what it is made of."""
        self = super(Fraction, cls).__new__(cls)
        self._bounds, self._whole = [None, None], None
        return self

    def _in_full(self) -> Fraction:
        """Return the number, computed in full."""
        raise NotImplementedError

    def _around(self, close: bool) -> Bounds:
        """Return the bounds; see `bounds`."""
        raise NotImplementedError

    def _sign_less(self, other: "int | Fraction") -> int:
        """Return the exact sign of the difference."""
        return sign((self.whole - (other.whole if isinstance(other, Late) else other)).numerator)

    @property
    def whole(self) -> Fraction:
        """The number in full."""
        if self._whole is None:
            self._whole = self._in_full()
        return self._whole

    @property
    def _numerator(self) -> int:
        return self.whole.numerator

    @property
    def _denominator(self) -> int:
        return self.whole.denominator

    def bounds(self, close: bool = False) -> Bounds:
        """Return bounds of the number. close: as close as its terms allow, which takes longer the first time."""
        bounds = self._bounds[close]
        if bounds is None:
            bounds = self._bounds[close] = self._around(close)
        return bounds

    def certain(self, function: Callable[[int], _Found]) -> _Found | None:
        """Return what a function that never falls gives for the number, if it gives the same for both of its bounds."""
        for close in (False, True):
            low, high = map(function, self.bounds(close))
            if low == high:
                return low
        return None

    def __eq__(self, other: object) -> bool:
        return self._compared(other) == 0 if isinstance(other, int | Fraction) else NotImplemented

    def __lt__(self, other: Any) -> bool:
        return self._compared(other) < 0 if isinstance(other, int | Fraction) else NotImplemented

    def __le__(self, other: Any) -> bool:
        return self._compared(other) <= 0 if isinstance(other, int | Fraction) else NotImplemented

    def __gt__(self, other: Any) -> bool:
        return self._compared(other) > 0 if isinstance(other, int | Fraction) else NotImplemented

    def __ge__(self, other: Any) -> bool:
        return self._compared(other) >= 0 if isinstance(other, int | Fraction) else NotImplemented

    __hash__ = Fraction.__hash__

    def __bool__(self) -> bool:
        return self._compared(0) != 0

    def __abs__(self) -> Fraction:
        return -self if self._compared(0) < 0 else self

    def __floor__(self) -> int:
        floor = self.certain(lambda bound: bound >> BITS)
        return self.whole.numerator // self.whole.denominator if floor is None else floor

    def _compared(self, other: "int | Fraction") -> int:
        """Return the sign of the difference; if all bounds overlap, from its numerator."""
        for close in (False, True):
            (low, high), (least, most) = self.bounds(close), bounds_of(other, close)
            if high < least or low > most:
                return -1 if high < least else 1
        return self._sign_less(other)


def bounds_of(number: "int | Fraction", close: bool = False) -> Bounds:
    """Return bounds of a number, in 2^-BITS; see `Late.bounds`.

    >>> low, high = bounds_of(Fraction(1, 3))
    >>> high - low, 3 * low < 1 << BITS < 3 * high
    (1, True)
    """
    if isinstance(number, Late):
        return number.bounds(close)
    numerator = number.numerator << BITS
    return numerator // number.denominator, -(-numerator // number.denominator)


def whole(number: Fraction) -> Fraction:
    """Return a number in full."""
    return number.whole if isinstance(number, Late) else number


def sign(number: int) -> int:
    """Return 1, 0 or -1.

    >>> sign(-5)
    -1
    """
    return (number > 0) - (number < 0)
