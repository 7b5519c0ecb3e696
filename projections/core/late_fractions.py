"""Fractions that are known by bounds, and computed in full only if these leave a doubt.

The common denominator of a sum may have a million digits, but a comparison or a rounding needs few of them, and is
certain unless the number is extremely near to a boundary. So each number has bounds: first those that were given with
its terms, if any, then closer ones from the terms themselves. Only if both leave a doubt is it computed in full. So a
late fraction answers every question; the integers of `proportions` have no terms, and some questions stay in doubt.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from math import gcd, lcm
from typing import Any, TypeGuard, TypeVar

from forecast_ledger.ledger.core.exact import half_even

BITS = 256  # bits after the point of the bounds of a number
Bounds = tuple[int, int]  # two integers in 2^-BITS: a number is at least the first and at most the second
Number = int | Fraction
_Result = TypeVar("_Result", int, Decimal)
FEW = 16  # a sum of at most so many terms is computed in full at once
_MOST_PARTS = 4  # a number with more parts gets all its terms in one
_ONE = Fraction(1)


class Summands:
    """Terms of a sum, as numerators by denominator, none 0; they may be computed late, if bounds are given."""

    __slots__ = ("_bounds", "_close", "_terms")
    _terms: Mapping[int, int] | Callable[[], Iterable[tuple[int, int]]]

    def __init__(
        self, terms: Mapping[int, int] | Callable[[], Iterable[tuple[int, int]]], bounds: Bounds | None = None
    ) -> None:
        """terms: or a function that returns pairs of numerator and denominator. bounds: of the sum, if known."""
        self._terms, self._bounds, self._close = terms, bounds, bounds is None

    @property
    def terms(self) -> Mapping[int, int]:
        """The numerators by denominator."""
        if callable(self._terms):
            self._terms = _fewest(self._terms())
        return self._terms

    def constant(self) -> Fraction | None:
        """Return the sum if it is one term; None if it has more, or may have."""
        if callable(self._terms) or len(self._terms) != 1:
            return None
        [(denominator, numerator)] = self._terms.items()
        return Fraction(numerator, denominator)

    def bounds(self, close: bool) -> Bounds:
        """Return bounds of the sum. close: as close as the terms allow, where floors err by one unit each."""
        if self._bounds is None or (close and not self._close):
            low = sum((numerator << BITS) // denominator for denominator, numerator in self.terms.items())
            self._bounds, self._close = (low, low + len(self.terms)), True
        return self._bounds


Parts = dict[Summands, Fraction]  # a sum of summands, each times a factor that is not 0


class LateFraction(Fraction):
    """A fraction with bounds: factor x (sum of parts / divisor)^exponent, computed in full late.

    Sums, multiples, quotients and squares are late fractions again; comparisons and floors need no more than bounds
    unless these leave a doubt. Methods that are not defined here are those of Fraction, and compute the number in full.
    """

    __slots__ = ("_bounds", "_whole", "divisor", "exponent", "factor", "parts")
    _bounds: list[Bounds | None]
    _whole: Fraction | None
    parts: Parts
    divisor: "LateFraction | None"
    exponent: int
    factor: Fraction

    def __new__(
        cls, parts: Parts, divisor: "LateFraction | None" = None, exponent: int = 1, factor: Fraction = _ONE
    ) -> "LateFraction":
        """Create a number. parts: at least one. divisor: above 0; None for 1.

        exponent, factor: 1 and 1, or 2 and above 0; what is squared is not below 0.
        """
        self = super(Fraction, cls).__new__(cls)
        self.parts, self.divisor, self.exponent, self.factor = parts, divisor, exponent, factor
        self._bounds, self._whole = [None, None], None
        return self

    @property
    def whole(self) -> Fraction:
        """The number in full."""
        if self._whole is None:
            root = Fraction(*_sum_of(self.parts))
            if self.divisor is not None:
                root = Fraction(root, self.divisor.whole)
            self._whole = self.factor * root**self.exponent
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

    def _around(self, close: bool) -> Bounds:
        low = high = 0
        for summands, factor in self.parts.items():
            ends = [bound * factor.numerator for bound in summands.bounds(close)]
            low += min(ends) // factor.denominator
            high -= -max(ends) // factor.denominator
        if self.divisor is not None:
            least, most = self.divisor.bounds(close)
            if least <= 0:
                return bounds_of(self.whole)
            low = (low << BITS) // (most if low > 0 else least)
            high = -(-(high << BITS) // (least if high > 0 else most))
        if self.exponent == 2:
            unit = self.factor.denominator << BITS
            low = max(low, 0) ** 2 * self.factor.numerator // unit
            high = -(-(high**2) * self.factor.numerator // unit)
        return low, high

    def certain(self, function: Callable[[int], _Result]) -> _Result | None:
        """Return what a function that never falls gives for the number, if it gives the same for both of its bounds."""
        for close in (False, True):
            low, high = map(function, self.bounds(close))
            if low == high:
                return low
        return None

    # --- comparisons

    def _compared(self, other: Number) -> int:
        """Return the sign of the difference; if all bounds overlap, from its numerator."""
        for close in (False, True):
            (low, high), (least, most) = self.bounds(close), bounds_of(other, close)
            if high < least or low > most:
                return -1 if high < least else 1
        if not isinstance(other, LateFraction):
            if self.exponent == 1:
                return _sign(_sum_of(_merged(self.parts, self._dividend_of(-other)))[0])
        elif (self.exponent, self.factor, self.divisor) == (other.exponent, other.factor, other.divisor):
            return _sign(_sum_of(_merged(self.parts, _scaled(other.parts, -_ONE)))[0])
        return _sign((self.whole - _whole(other)).numerator)

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
        floor = self.certain(lambda bound: bound >> BITS)
        return self.whole.numerator // self.whole.denominator if floor is None else floor

    # --- operations

    def __abs__(self) -> Fraction:
        return -self if self._compared(0) < 0 else self

    def __neg__(self) -> Any:
        return self * -1

    def __add__(self, other: Any) -> Any:
        if self.exponent == 1 and _is_plain(other):
            return _number(_merged(self.parts, self._dividend_of(other)), self.divisor)
        if _is_sum(self) and _is_sum(other):
            return _number(_merged(self.parts, other.parts))
        return super().__add__(other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if _is_plain(other):
            if not other:
                return Fraction(0)
            if self.exponent == 1:
                return LateFraction(_scaled(self.parts, Fraction(other)), self.divisor)
            if other > 0:
                return LateFraction(self.parts, self.divisor, 2, self.factor * other)
        return super().__mul__(other)

    __rmul__ = __mul__

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        if exponent != 2 or self.exponent == 2:
            return super().__pow__(exponent)
        return LateFraction(self.parts if self._compared(0) >= 0 else _scaled(self.parts, -_ONE), self.divisor, 2)

    def _dividend_of(self, number: Number) -> Parts:
        """Return a plain number times the divisor, as parts."""
        return _parts(number if self.divisor is None else number * self.divisor)


def _is_plain(number: object) -> bool:
    return isinstance(number, int | Fraction) and not isinstance(number, LateFraction)


def _is_sum(number: object) -> TypeGuard[LateFraction]:
    return isinstance(number, LateFraction) and number.exponent == 1 and number.divisor is None


def _number(parts: Parts, divisor: LateFraction | None = None) -> Fraction:
    return LateFraction(parts, divisor) if parts else Fraction(0)


def quotient(number: Fraction, divisor: Fraction) -> Fraction:
    """Return number / divisor, computed late if either is.

    >>> quotient(Fraction(1, 2), Fraction(3))
    Fraction(1, 6)
    """
    if not isinstance(divisor, LateFraction):
        return number * Fraction(1, divisor)
    if divisor < 0:
        return quotient(-number, -divisor)
    if not divisor or (isinstance(number, LateFraction) and not _is_sum(number)):
        return Fraction(_whole(number), divisor.whole)
    return _number(_parts(number), divisor)


def bounds_of(number: Number, close: bool = False) -> Bounds:
    """Return bounds of a number, in 2^-BITS; see `LateFraction.bounds`.

    >>> low, high = bounds_of(Fraction(1, 3))
    >>> high - low, 3 * low < 1 << BITS < 3 * high
    (1, True)
    """
    if isinstance(number, LateFraction):
        return number.bounds(close)
    numerator = number.numerator << BITS
    return numerator // number.denominator, -(-numerator // number.denominator)


def sum_of_terms(terms: Iterable[tuple[int, int]]) -> Fraction:
    """Return the sum of terms, each a numerator and a denominator (> 0).

    >>> sum_of_terms([(1, 2), (1, 3), (1, 6)])
    Fraction(1, 1)
    """
    fewest = _fewest(terms)
    if len(fewest) > FEW:
        return LateFraction({Summands(fewest): _ONE})
    return Fraction(*added_in_pairs(_pairs(fewest)))


def sum_within(bounds: Bounds, later: Callable[[], Iterable[tuple[int, int]]]) -> Fraction:
    """Return a sum of terms that are computed only if its bounds, in 2^-BITS, leave a doubt.

    >>> third = sum_within(((1 << BITS) // 3, (1 << BITS) // 3 + 1), lambda: [(1, 6), (1, 6)])
    >>> round_to_units(third, 100), third == Fraction(1, 3)
    (33, True)
    """
    return LateFraction({Summands(later, bounds): _ONE})


def _fewest(terms: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return the sums of numerators by denominator; if they are few in lowest terms, in lowest terms."""
    numerators = _collected(terms)
    lowest = _collected(_lowest(numerators.items()))
    # Many terms stay as given: their denominators differ little from one sum to another.
    return numerators if len(lowest) > FEW else lowest


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


def round_to_units(number: Fraction, units: int) -> int:
    """Return a number in 1/units, rounded half-even once.

    >>> round_to_units(Fraction(2, 3), 10)
    7
    """
    if isinstance(number, LateFraction):
        rounded = number.certain(lambda bound: half_even(bound * units, 1 << BITS))
        if rounded is not None:
            return rounded
    return half_even(number.numerator * units, number.denominator)


def to_decimal(number: Fraction, context: Context) -> Decimal:
    """Return a number as a decimal, rounded once as the context says.

    >>> to_decimal(Fraction(1, 3), Context(prec=2))
    Decimal('0.33')
    """
    if isinstance(number, LateFraction):
        rounded = number.certain(lambda bound: context.divide(Decimal(bound), Decimal(1 << BITS)))
        if rounded is not None:
            return rounded
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))


def added_in_pairs(terms: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the sum of fractions; it need not be in lowest terms.

    They are added in pairs, then the sums in pairs, which is far faster than one by one.

    >>> added_in_pairs([(1, 2), (1, 2), (1, 3)])
    (16, 12)
    """
    if not terms:
        return 0, 1
    shared = gcd(*(denominator for _, denominator in terms))
    terms = [(numerator, denominator // shared) for numerator, denominator in terms]
    while len(terms) > 1:
        paired = [(a * d + c * b, b * d) for (a, b), (c, d) in zip(terms[::2], terms[1::2], strict=False)]
        terms = [*paired, *terms[len(paired) * 2 :]]
    [(numerator, denominator)] = terms
    return numerator, denominator * shared


def _whole(number: Number) -> Fraction:
    return number.whole if isinstance(number, LateFraction) else Fraction(number)


def _parts(number: Number) -> Parts:
    """Return a number as parts of a sum; no part is 0."""
    if _is_sum(number):
        return number.parts
    return {Summands({number.denominator: number.numerator}): _ONE} if number else {}


def _scaled(parts: Parts, factor: Fraction) -> Parts:
    return {summands: factor * coefficient for summands, coefficient in parts.items()}


def _merged(first: Parts, second: Parts) -> Parts:
    """Return the parts of a sum of two numbers, without those that cancel out."""
    parts = dict(first)
    for summands, factor in second.items():
        parts[summands] = parts.get(summands, Fraction(0)) + factor
        if not parts[summands]:
            del parts[summands]
    if len(parts) > _MOST_PARTS:
        parts = _constants_in_one(parts)
    return _in_one(parts) if len(parts) > _MOST_PARTS else parts


def _constants_in_one(parts: Parts) -> Parts:
    """Return the parts with those of a single term added up; no terms are computed."""
    others, total = Parts(), Fraction(0)
    for summands, factor in parts.items():
        constant = summands.constant()
        if constant is None:
            others[summands] = factor
        else:
            total += factor * constant
    return others | _parts(total)


def _in_one(parts: Parts) -> Parts:
    """Return parts with all terms in one part, so that a number that changes often stays small."""
    terms, factor = _in_common(parts)
    low, high = LateFraction(parts).bounds()
    scale = factor.denominator  # the numerator is 1
    return {Summands(terms, (low * scale, high * scale)): factor} if terms else {}


def _in_common(parts: Parts) -> tuple[Mapping[int, int], Fraction]:
    """Return all terms, none 0, and the factor of their sum."""
    if len(parts) == 1:
        [(summands, factor)] = parts.items()
        return summands.terms, factor
    common = lcm(*(factor.denominator for factor in parts.values()))
    terms = (
        (numerator * int(factor * common), denominator)
        for summands, factor in parts.items()
        for denominator, numerator in summands.terms.items()
    )
    return _collected(terms), Fraction(1, common)


def _sum_of(parts: Parts) -> tuple[int, int]:
    """Return the numerator and denominator (> 0) of a sum of parts; they need not be in lowest terms."""
    terms, factor = _in_common(parts)
    numerator, denominator = added_in_pairs(_pairs(terms))
    return numerator * factor.numerator, denominator * factor.denominator


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _pairs(terms: Mapping[int, int]) -> list[tuple[int, int]]:
    return [(numerator, denominator) for denominator, numerator in terms.items()]


def comparable(numbers: Sequence[Fraction]) -> Sequence[Number]:
    """Return integers that compare as numbers do, which takes a tenth of the time, or the numbers if that takes longer.

    >>> comparable([Fraction(1, 2), Fraction(1, 3), Fraction(2, 3)])
    [3, 2, 4]
    """
    common = 1
    if any(isinstance(number, LateFraction) for number in numbers):
        return numbers
    for denominator in {number.denominator for number in numbers}:
        common = lcm(common, denominator)
        if common >> 2 * BITS:
            return numbers
    return [number.numerator * (common // number.denominator) for number in numbers]


def integers_in_proportion(numbers: Sequence[Fraction]) -> list[int]:
    """Return integers in exact proportion to numbers, the smallest ones unless a number is computed late.

    >>> integers_in_proportion([Fraction(1, 4), Fraction(1, 6)])
    [3, 2]
    """
    if sum(map(bool, numbers)) == 1:
        return [int(bool(number)) * (1 if number > 0 else -1) for number in numbers]
    if any(isinstance(number, LateFraction) and number.exponent == 2 for number in numbers):
        return _squares_in_proportion(numbers)
    if any(map(_is_sum, numbers)):
        return _sums_in_proportion(numbers)
    exact = [*map(_whole, numbers)]
    common = lcm(*(number.denominator for number in exact))
    scaled = [number.numerator * (common // number.denominator) for number in exact]
    divisor = gcd(*scaled) or 1
    return [number // divisor for number in scaled]


def _sums_in_proportion(numbers: Sequence[Fraction]) -> list[int]:
    """Bring every sum to one denominator that is not the least."""
    sums = [_in_common(_parts(number)) for number in numbers]
    every = dict.fromkeys(denominator for terms, _ in sums for denominator in terms)
    common = lcm(*(factor.denominator for _, factor in sums))
    return [
        added_in_pairs([(terms.get(denominator, 0), denominator) for denominator in every])[0] * int(factor * common)
        for terms, factor in sums
    ]


def _squares_in_proportion(numbers: Sequence[Fraction]) -> list[int]:
    """Square integers in proportion to the roots; a number that is no square has the root 1."""
    roots, factors = [], []
    for number in numbers:
        root, factor = _ONE, number
        if isinstance(number, LateFraction) and number.exponent == 2:
            root, factor = LateFraction(number.parts, number.divisor), number.factor
        roots.append(root)
        factors.append(factor)
    common = lcm(*(factor.denominator for factor in factors))
    return [
        root * root * int(factor * common) for root, factor in zip(integers_in_proportion(roots), factors, strict=True)
    ]
