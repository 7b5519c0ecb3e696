"""Sums of fractions whose common denominator may have a million digits: exact, but rarely computed in full.

A comparison or a rounding needs few digits, and is certain unless the number is extremely near to a boundary.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from math import gcd, lcm
from typing import Any, Self

_BITS = 256  # binary places of the bounds of a sum
_FEW = 16  # a sum of at most so many terms is computed in full at once
_ONE = Fraction(1)


def half_even(numerator: int, denominator: int) -> int:
    """Return the integer nearest to numerator / denominator (> 0); of two equally near, the even one.

    >>> [half_even(n, 2) for n in (-3, -1, 1, 3, 5)]
    [-2, 0, 0, 2, 2]
    """
    quotient, rest = divmod(numerator, denominator)
    doubled = 2 * rest
    return quotient + (doubled > denominator or (doubled == denominator and quotient & 1))


def sum_of_terms(terms: Iterable[tuple[int, int]]) -> Fraction:
    """Return the sum of terms, each a numerator and a denominator (> 0).

    >>> sum_of_terms([(1, 2), (1, 3), (1, 6)])
    Fraction(1, 1)
    """
    numerators = _collected(terms)
    lowest = _collected(_lowest(numerators.items()))
    # Many terms stay as given: their denominators differ little from one sum to another.
    return _fraction(lowest if len(lowest) <= _FEW else numerators)


def _collected(terms: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return the sums of numerators by denominator, without those that are 0."""
    sums: dict[int, int] = {}
    for numerator, denominator in terms:
        sums[denominator] = sums.get(denominator, 0) + numerator
    return {denominator: numerator for denominator, numerator in sums.items() if numerator}


def _lowest(terms: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield (numerator, denominator) in lowest terms for every (denominator, numerator)."""
    for denominator, numerator in terms:
        common = gcd(numerator, denominator)
        yield numerator // common, denominator // common


class _Late(Fraction):
    """A Fraction that computes its numerator and denominator late, and has bounds before.

    Methods that are not defined here are those of Fraction, and compute the number in full.
    """

    __slots__ = ("_bounds", "_factor", "_whole")
    _factor: Fraction
    _bounds: tuple[int, int] | None
    _whole: Fraction | None

    def __new__(cls, factor: Fraction) -> Self:
        """Create a number that is `factor` times another, which a subclass stores."""
        self = super(Fraction, cls).__new__(cls)
        self._factor, self._bounds, self._whole = factor, None, None
        return self

    def _multiplied(self) -> Fraction:
        """Return the number that the factor multiplies, in full."""
        raise NotImplementedError

    def _around(self) -> tuple[int, int, int]:
        """Return two integers between which that number lies, and how many binary places they have."""
        raise NotImplementedError

    def _sign_less(self, other: "int | Fraction") -> int:
        """Return the exact sign of the difference."""
        return _sign((self.whole - (other.whole if isinstance(other, _Late) else other)).numerator)

    @property
    def whole(self) -> Fraction:
        """The number in full."""
        if self._whole is None:
            self._whole = self._factor * self._multiplied()
        return self._whole

    @property
    def _numerator(self) -> int:
        return self.whole.numerator

    @property
    def _denominator(self) -> int:
        return self.whole.denominator

    @property
    def bounds(self) -> tuple[int, int]:
        """Two integers in 2^-256: the number is at least the first and at most the second."""
        if self._bounds is None:
            low, high, places = self._around()
            ends, divisor = (low * self._factor.numerator, high * self._factor.numerator), self._factor.denominator
            divisor <<= places - _BITS
            self._bounds = min(ends) // divisor, -(-max(ends) // divisor)
        return self._bounds

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

    def __floor__(self) -> int:
        low, high = (bound >> _BITS for bound in self.bounds)
        return low if low == high else self.whole.numerator // self.whole.denominator

    def _compared(self, other: "int | Fraction") -> int:
        """Return the sign of the difference; if the bounds overlap, from its numerator."""
        low, high = self.bounds
        least, most = other.bounds if isinstance(other, _Late) else (other * (1 << _BITS),) * 2
        if high < least or low > most:
            return -1 if high < least else 1
        return self._sign_less(other)


class Bounded(_Late):
    """A factor times a sum of fractions, stored as numerators by denominator."""

    __slots__ = ("_terms",)
    _terms: Mapping[int, int]

    def __new__(cls, terms: Mapping[int, int], factor: Fraction = _ONE) -> "Bounded":
        """Create a sum. terms: numerators by denominator, none 0; more than _FEW."""
        self = super().__new__(cls, factor)
        self._terms = terms
        return self

    def _multiplied(self) -> Fraction:
        return Fraction(*_together(_pairs(self._terms)))

    def _around(self) -> tuple[int, int, int]:
        low = sum((numerator << _BITS) // denominator for denominator, numerator in self._terms.items())
        return low, low + len(self._terms), _BITS

    def __add__(self, other: Any) -> Any:
        return _merged(self, other) if isinstance(other, int | Fraction) else NotImplemented

    __radd__ = __add__

    def __neg__(self) -> "Bounded":
        return Bounded(self._terms, -self._factor)

    def __sub__(self, other: Any) -> Any:
        return _merged(self, -other) if isinstance(other, int | Fraction) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, _Late) or not isinstance(other, int | Fraction):
            return super().__mul__(other)
        return Bounded(self._terms, self._factor * other) if other else Fraction(0)

    __rmul__ = __mul__

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        return Square(abs(self), _ONE) if exponent == 2 else super().__pow__(exponent)

    def __abs__(self) -> "Bounded":
        return -self if self._compared(0) < 0 else self

    def _sign_less(self, other: "int | Fraction") -> int:
        difference = _merged(self, -other)
        if not isinstance(difference, Bounded):
            return _sign(difference.numerator)
        return _sign(_together(_pairs(difference._terms))[0]) * _sign(difference._factor.numerator)


class Square(_Late):
    """A factor times the square of a Bounded sum."""

    __slots__ = ("root",)
    root: Bounded

    def __new__(cls, root: Bounded, factor: Fraction) -> "Square":
        """Create a square. root: not below 0. factor: above 0."""
        self = super().__new__(cls, factor)
        self.root = root
        return self

    @property
    def factor(self) -> Fraction:
        """The factor of the square of the root."""
        return self._factor

    def _multiplied(self) -> Fraction:
        return self.root.whole**2

    def _around(self) -> tuple[int, int, int]:
        low, high = self.root.bounds
        return max(low, 0) ** 2, high**2, 2 * _BITS

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, _Late) or not isinstance(other, int | Fraction) or other <= 0:
            return super().__mul__(other)
        return Square(self.root, self._factor * other)

    __rmul__ = __mul__

    def _sign_less(self, other: "int | Fraction") -> int:
        if isinstance(other, Square) and self._factor == other.factor:
            return self.root._compared(other.root)
        return super()._sign_less(other)


def quotient(number: Fraction, divisor: Fraction) -> Fraction:
    """Return number / divisor, which is a Bounded sum if only the first is one.

    >>> quotient(Fraction(1, 2), Fraction(3))
    Fraction(1, 6)
    """
    in_full = isinstance(divisor, _Late) or not isinstance(number, Bounded)
    return Fraction(number, divisor) if in_full else number * Fraction(1, divisor)


def round_to_units(number: Fraction, units: int) -> int:
    """Return a number in 1/units, rounded half-even once.

    >>> round_to_units(Fraction(2, 3), 10)
    7
    """
    if isinstance(number, _Late):
        low, high = (half_even(bound * units, 1 << _BITS) for bound in number.bounds)
        if low == high:
            return low
    return half_even(number.numerator * units, number.denominator)


def to_decimal(number: Fraction, context: Context) -> Decimal:
    """Return a number as a decimal, rounded once as the context says.

    >>> to_decimal(Fraction(1, 3), Context(prec=2))
    Decimal('0.33')
    """
    if isinstance(number, _Late):
        low, high = (context.divide(Decimal(bound), Decimal(1 << _BITS)) for bound in number.bounds)
        if low == high:
            return low
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))


def integers_in_proportion(numbers: Sequence[Fraction]) -> list[int]:
    """Return integers in exact proportion to numbers, the smallest ones unless a number is a Bounded sum or a Square.

    >>> integers_in_proportion([Fraction(1, 4), Fraction(1, 6)])
    [3, 2]
    """
    if sum(map(bool, numbers)) == 1:
        return [int(bool(number)) * (1 if number > 0 else -1) for number in numbers]
    if any(isinstance(number, Square) for number in numbers):
        return _squares_in_proportion(numbers)
    if any(isinstance(number, Bounded) for number in numbers):
        parts = [_parts(number) for number in numbers]
        every = dict.fromkeys(denominator for terms, _ in parts for denominator in terms)
        common = lcm(*(factor.denominator for _, factor in parts))
        return [
            _together([(terms.get(denominator, 0), denominator) for denominator in every])[0] * int(factor * common)
            for terms, factor in parts
        ]
    common = lcm(*(number.denominator for number in numbers))
    scaled = [number.numerator * (common // number.denominator) for number in numbers]
    divisor = gcd(*scaled) or 1
    return [number // divisor for number in scaled]


def _squares_in_proportion(numbers: Sequence[Fraction]) -> list[int]:
    roots = integers_in_proportion([number.root if isinstance(number, Square) else _ONE for number in numbers])
    factors = [number.factor if isinstance(number, Square) else number for number in numbers]
    common = lcm(*(factor.denominator for factor in factors))
    return [root * root * int(factor * common) for root, factor in zip(roots, factors, strict=True)]


def _fraction(terms: Mapping[int, int]) -> Fraction:
    return Bounded(terms) if len(terms) > _FEW else Fraction(*_together(_pairs(terms)))


def _together(terms: list[tuple[int, int]]) -> tuple[int, int]:
    """Add fractions in pairs, then the sums in pairs, which is far faster; the result is not in lowest terms."""
    if not terms:
        return 0, 1
    shared = gcd(*(denominator for _, denominator in terms))
    terms = [(numerator, denominator // shared) for numerator, denominator in terms]
    while len(terms) > 1:
        paired = [(a * d + c * b, b * d) for (a, b), (c, d) in zip(terms[::2], terms[1::2], strict=False)]
        terms = [*paired, *terms[len(paired) * 2 :]]
    [(numerator, denominator)] = terms
    return numerator, denominator * shared


def _parts(number: "int | Fraction") -> tuple[Mapping[int, int], Fraction]:
    """Return a number as terms and a factor."""
    if isinstance(number, Bounded):
        return number._terms, number._factor
    return ({number.denominator: number.numerator} if number else {}), _ONE


def _merged(first: "int | Fraction", second: "int | Fraction") -> Fraction:
    """Return the sum of two numbers, without terms that cancel out."""
    (terms, factor), (more_terms, second_factor) = _parts(first), _parts(second)
    if abs(factor) != abs(second_factor):
        terms, more_terms = _scaled(terms, factor), _scaled(more_terms, second_factor)
        factor = second_factor = _ONE
    sums, sign = dict(terms), 1 if factor == second_factor else -1
    for denominator, numerator in more_terms.items():
        sums[denominator] = sums.get(denominator, 0) + sign * numerator
        if not sums[denominator]:
            del sums[denominator]
    return _fraction(sums) * factor


def _pairs(terms: Mapping[int, int]) -> list[tuple[int, int]]:
    return [(numerator, denominator) for denominator, numerator in terms.items()]


def _scaled(terms: Mapping[int, int], factor: Fraction) -> dict[int, int]:
    return {d * factor.denominator: n * factor.numerator for d, n in terms.items()}


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)
