"""Integers in exact proportion to numbers, some of which are computed late."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm

from forecast_ledger.ledger.core.late import whole
from forecast_ledger.ledger.core.lazy_fractions import Bounded, Square, added_in_pairs

_ONE = Fraction(1)


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
