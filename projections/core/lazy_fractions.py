"""Sums of fractions whose common denominator may have a million digits: exact, but rarely computed in full.

A comparison or a rounding needs few digits, and is certain unless the number is extremely near to a boundary. So each
number has bounds: first those that were given with its terms, if any, then closer ones from the terms themselves. Only
if both leave a doubt is the number computed in full.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from math import gcd, lcm
from typing import Any, Self, TypeVar

from forecast_ledger.ledger.core.exact import half_even

BITS = 256  # binary places of the bounds of a number
Bounds = tuple[int, int]  # two integers in 2^-BITS: a number is at least the first and at most the second
_Found = TypeVar("_Found", int, Decimal)
FEW = 16  # a sum of at most so many terms is computed in full at once
_MOST_PARTS = 4  # a number with more parts gets all its terms in one
_ONE = Fraction(1)


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


def sum_of_terms(terms: Iterable[tuple[int, int]]) -> Fraction:
    """Return the sum of terms, each a numerator and a denominator (> 0).

    >>> sum_of_terms([(1, 2), (1, 3), (1, 6)])
    Fraction(1, 1)
    """
    fewest = _fewest(terms)
    if len(fewest) > FEW:
        return Bounded({Summands(fewest): _ONE})
    return Fraction(*added_in_pairs(_pairs(fewest)))


def sum_within(bounds: Bounds, later: Callable[[], Iterable[tuple[int, int]]]) -> Fraction:
    """Return a sum of terms that are computed only if its bounds, in 2^-BITS, leave a doubt.

    >>> third = sum_within(((1 << BITS) // 3, (1 << BITS) // 3 + 1), lambda: [(1, 6), (1, 6)])
    >>> round_to_units(third, 100), third == Fraction(1, 3)
    (33, True)
    """
    return Bounded({Summands(later, bounds): _ONE})


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


class Bounded(Late):
    """A sum of summands, each times a factor."""

    __slots__ = ("parts",)
    parts: dict[Summands, Fraction]

    def __new__(cls, parts: dict[Summands, Fraction]) -> "Bounded":
        """Create a sum. parts: the factors, none 0; at least one."""
        self = super().__new__(cls)
        self.parts = parts
        return self

    def in_common(self) -> tuple[Mapping[int, int], Fraction]:
        """Return all terms, none 0, and the factor of their sum."""
        if len(self.parts) == 1:
            [(summands, factor)] = self.parts.items()
            return summands.terms, factor
        common = lcm(*(factor.denominator for factor in self.parts.values()))
        terms = (
            (numerator * int(factor * common), denominator)
            for summands, factor in self.parts.items()
            for denominator, numerator in summands.terms.items()
        )
        return _collected(terms), Fraction(1, common)

    def _in_full(self) -> Fraction:
        terms, factor = self.in_common()
        return factor * Fraction(*added_in_pairs(_pairs(terms)))

    def _around(self, close: bool) -> Bounds:
        least = most = 0
        for summands, factor in self.parts.items():
            ends = [bound * factor.numerator for bound in summands.bounds(close)]
            least += min(ends) // factor.denominator
            most -= -max(ends) // factor.denominator
        return least, most

    def __add__(self, other: Any) -> Any:
        return _merged(self, other) if isinstance(other, int | Fraction) else NotImplemented

    __radd__ = __add__

    def __neg__(self) -> "Bounded":
        return self._times(-_ONE)

    def __sub__(self, other: Any) -> Any:
        return _merged(self, -other) if isinstance(other, int | Fraction) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Late) or not isinstance(other, int | Fraction):
            return super().__mul__(other)
        return self._times(Fraction(other)) if other else Fraction(0)

    __rmul__ = __mul__

    def _times(self, factor: Fraction) -> "Bounded":
        return Bounded({summands: factor * own for summands, own in self.parts.items()})

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        return Square(abs(self), _ONE) if exponent == 2 else super().__pow__(exponent)

    def _sign_less(self, other: "int | Fraction") -> int:
        difference = _merged(self, -other)
        if not isinstance(difference, Bounded):
            return sign(difference.numerator)
        terms, factor = difference.in_common()
        return sign(added_in_pairs(_pairs(terms))[0]) * sign(factor.numerator)


class Square(Late):
    """A factor times the square of a number."""

    __slots__ = ("factor", "root")
    factor: Fraction
    root: Fraction

    def __new__(cls, root: Fraction, factor: Fraction) -> "Square":
        """Create a square. root: not below 0. factor: above 0."""
        self = super().__new__(cls)
        self.root, self.factor = root, factor
        return self

    def _in_full(self) -> Fraction:
        return self.factor * whole(self.root) ** 2

    def _around(self, close: bool) -> Bounds:
        low, high = bounds_of(self.root, close)
        divisor = self.factor.denominator << BITS
        low, high = max(low, 0) ** 2 * self.factor.numerator, high**2 * self.factor.numerator
        return low // divisor, -(-high // divisor)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Late) or not isinstance(other, int | Fraction) or other <= 0:
            return super().__mul__(other)
        return Square(self.root, self.factor * other)

    __rmul__ = __mul__

    def _sign_less(self, other: "int | Fraction") -> int:
        if isinstance(other, Square) and self.factor == other.factor:
            return (self.root > other.root) - (self.root < other.root)
        return super()._sign_less(other)


class Ratio(Late):
    """A number divided by another."""

    __slots__ = ("dividend", "divisor")
    dividend: Fraction
    divisor: Fraction

    def __new__(cls, dividend: Fraction, divisor: Fraction) -> "Ratio":
        """Create a quotient. divisor: above 0."""
        self = super().__new__(cls)
        self.dividend, self.divisor = dividend, divisor
        return self

    def _in_full(self) -> Fraction:
        return Fraction(whole(self.dividend), whole(self.divisor))

    def _around(self, close: bool) -> Bounds:
        (low, high), (least, most) = bounds_of(self.dividend, close), bounds_of(self.divisor, close)
        if least <= 0:
            return bounds_of(self.whole)
        return (low << BITS) // (most if low > 0 else least), -(-(high << BITS) // (least if high > 0 else most))

    def __neg__(self) -> "Ratio":
        return Ratio(-self.dividend, self.divisor)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Late) or not isinstance(other, int | Fraction):
            return super().__add__(other)
        return Ratio(self.dividend + other * self.divisor, self.divisor)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return super().__sub__(other) if isinstance(other, Late) else self + -other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Late) or not isinstance(other, int | Fraction):
            return super().__mul__(other)
        return Ratio(self.dividend * other, self.divisor) if other else Fraction(0)

    __rmul__ = __mul__

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        return Square(abs(self), _ONE) if exponent == 2 else super().__pow__(exponent)

    def _sign_less(self, other: "int | Fraction") -> int:
        if isinstance(other, Ratio) and self.divisor == other.divisor:
            return (self.dividend > other.dividend) - (self.dividend < other.dividend)
        return super()._sign_less(other)


def quotient(number: Fraction, divisor: Fraction) -> Fraction:
    """Return number / divisor, computed late if either is.

    >>> quotient(Fraction(1, 2), Fraction(3))
    Fraction(1, 6)
    """
    if not isinstance(divisor, Late):
        return number * Fraction(1, divisor) if isinstance(number, Late) else Fraction(number, divisor)
    if divisor < 0:
        return quotient(-number, -divisor)
    return Ratio(number, divisor) if divisor else Fraction(number, divisor)


def round_to_units(number: Fraction, units: int) -> int:
    """Return a number in 1/units, rounded half-even once.

    >>> round_to_units(Fraction(2, 3), 10)
    7
    """
    if isinstance(number, Late):
        rounded = number.certain(lambda bound: half_even(bound * units, 1 << BITS))
        if rounded is not None:
            return rounded
    return half_even(number.numerator * units, number.denominator)


def to_decimal(number: Fraction, context: Context) -> Decimal:
    """Return a number as a decimal, rounded once as the context says.

    >>> to_decimal(Fraction(1, 3), Context(prec=2))
    Decimal('0.33')
    """
    if isinstance(number, Late):
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


def _merged(first: "int | Fraction", second: "int | Fraction") -> Fraction:
    """Return the sum of two numbers, without parts that cancel out."""
    parts = _parts(first)
    for summands, factor in _parts(second).items():
        parts[summands] = parts.get(summands, Fraction(0)) + factor
        if not parts[summands]:
            del parts[summands]
    if len(parts) > _MOST_PARTS:
        parts = _constants_in_one(parts)
    if len(parts) > _MOST_PARTS:
        parts = _in_one(Bounded(parts))
    return Bounded(parts) if parts else Fraction(0)


def _constants_in_one(parts: dict[Summands, Fraction]) -> dict[Summands, Fraction]:
    """Return the parts with those of a single term added up; no terms are computed."""
    others, total = dict[Summands, Fraction](), Fraction(0)
    for summands, factor in parts.items():
        constant = summands.constant()
        if constant is None:
            others[summands] = factor
        else:
            total += factor * constant
    return others | _parts(total)


def _in_one(number: Bounded) -> dict[Summands, Fraction]:
    """Return the parts of a number with all terms in one part, so that a number that changes often stays small."""
    terms, factor = number.in_common()
    low, high = number.bounds()
    scale = factor.denominator  # the numerator is 1
    return {Summands(terms, (low * scale, high * scale)): factor} if terms else {}


def _parts(number: "int | Fraction") -> dict[Summands, Fraction]:
    """Return a number as parts of a sum."""
    if isinstance(number, Bounded):
        return dict(number.parts)
    return {Summands({number.denominator: number.numerator}): _ONE} if number else {}


def _pairs(terms: Mapping[int, int]) -> list[tuple[int, int]]:
    return [(numerator, denominator) for denominator, numerator in terms.items()]


def integers_in_proportion(numbers: Sequence[Fraction]) -> list[int]:
    """Return integers in exact proportion to numbers, the smallest ones unless a number is computed late.

    >>> integers_in_proportion([Fraction(1, 4), Fraction(1, 6)])
    [3, 2]
    """
    if sum(map(bool, numbers)) == 1:
        return [int(bool(number)) * (1 if number > 0 else -1) for number in numbers]
    if any(isinstance(number, Square) for number in numbers):
        return _squares_in_proportion(numbers)
    if any(isinstance(number, Bounded) for number in numbers):
        return _sums_in_proportion(numbers)
    exact = [whole(number) for number in numbers]
    common = lcm(*(number.denominator for number in exact))
    scaled = [number.numerator * (common // number.denominator) for number in exact]
    divisor = gcd(*scaled) or 1
    return [number // divisor for number in scaled]


def _sums_in_proportion(numbers: Sequence[Fraction]) -> list[int]:
    """Bring every sum to one denominator that is not the least."""
    parts = [_terms_and_factor(number) for number in numbers]
    every = dict.fromkeys(denominator for terms, _ in parts for denominator in terms)
    common = lcm(*(factor.denominator for _, factor in parts))
    return [
        added_in_pairs([(terms.get(denominator, 0), denominator) for denominator in every])[0] * int(factor * common)
        for terms, factor in parts
    ]


def _terms_and_factor(number: Fraction) -> tuple[Mapping[int, int], Fraction]:
    if isinstance(number, Bounded):
        return number.in_common()
    return ({number.denominator: number.numerator} if number else {}), _ONE


def _squares_in_proportion(numbers: Sequence[Fraction]) -> list[int]:
    roots = integers_in_proportion([number.root if isinstance(number, Square) else _ONE for number in numbers])
    factors = [number.factor if isinstance(number, Square) else number for number in numbers]
    common = lcm(*(factor.denominator for factor in factors))
    return [root * root * int(factor * common) for root, factor in zip(roots, factors, strict=True)]
