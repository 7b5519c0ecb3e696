"""The cells of Metaculus's data download: lists as Python writes them, dates, and the scale of a range."""

import ast
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.replay.importing.source_items import instant_of

LONGEST_LIST = 100_000  # characters of a list of options
_DIGITS = Context(prec=40)
_CLOSE = Decimal("1e-9")  # of the range: how well the scale that is found must give the locations that are said
_NICE = Context(prec=9)  # digits of a zero point


def read_list(text: str, field: str) -> list[Any]:
    r"""Return a list as Python writes it; nothing in it is run. Refuses: bad_source.

    >>> read_list("['red, dark', \"blue's\"]", "MC Options (All)")
    ['red, dark', "blue's"]
    """
    try:
        if len(text) > LONGEST_LIST:
            raise ValueError
        found = ast.literal_eval(text)
        if not isinstance(found, list | tuple):
            raise TypeError
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise Refused("bad_source", field, text, "not a list as Python writes it") from None
    return list(found)


def read_options(text: str, field: str) -> tuple[str, ...]:
    """Return the names of options. Refuses: bad_source."""
    found = read_list(text, field)
    if not all(isinstance(option, str) for option in found):
        raise Refused("bad_source", field, text, "not a list of names")
    return tuple(found)


def split_numbers(text: str) -> list[str]:
    """Return the items of a list of numbers as texts; None is kept.

    >>> split_numbers("[0.25, None, 0.75]")
    ['0.25', 'None', '0.75']
    """
    inner = text.strip("[]() ")
    return [item.strip() for item in inner.split(",")] if inner else []


def read_bound(text: str, field: str, kind: str) -> Decimal:
    """Return a bound or an answer: of a date, the seconds since 1970. Refuses: bad_number, bad_instant, naive_instant.

    >>> read_bound("2026-03-01", "Lower Bound", "date"), read_bound("1.5", "Lower Bound", "numeric")
    (Decimal('1772323200'), Decimal('1.5'))
    """
    if kind == "date":
        return Decimal(read_instant(instant_of(text, field), field)).scaleb(-6).normalize() + 0
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise Refused("bad_number", field, text)
    return number


def zero_point(locations: str, lower: Decimal, upper: Decimal) -> Decimal | None:
    """Return the zero point of a range with a logarithmic scale, or None if the scale is linear. Refuses: bad_source.

    locations: the places at which the cdf is given, equally far apart on the scale. On a logarithmic scale the middle m
    satisfies (m - lower) / (upper - lower) = 1 / (1 + sqrt(r)), with r = (upper - zero) / (lower - zero). A download
    prints these places as binary fractions; the zero point is rounded to nine digits, and must give every place again.
    Source: Metaculus's published code, `utils/the_math/formulas.py`, scaled and unscaled locations.

    >>> zero_point("[1.0, 10.0, 100.0]", Decimal(1), Decimal(100)), zero_point("[0, 5, 10]", Decimal(0), Decimal(10))
    (Decimal('0'), None)
    """
    try:
        places = [Decimal(item) for item in split_numbers(locations)]
    except InvalidOperation:
        raise Refused("bad_source", "Continuous Range", locations[:80], "not a list of numbers") from None
    if len(places) < 3 or len(places) % 2 == 0:
        return None
    width, middle = upper - lower, places[len(places) // 2]
    if abs(middle - lower - width / 2) <= _CLOSE * width:
        return None
    exact = _DIGITS
    if not lower < middle < upper:
        raise Refused("bad_source", "Continuous Range", str(middle), "its middle is not between the bounds")
    root = exact.subtract(exact.divide(width, middle - lower), Decimal(1))
    ratio = exact.multiply(root, root)
    zero = exact.divide(exact.subtract(exact.multiply(ratio, lower), upper), exact.subtract(ratio, Decimal(1)))
    for found in (Decimal(0), _NICE.plus(zero), zero):
        if not lower <= found <= upper and _gives(found, places, lower, upper):
            return found.normalize() + 0
    raise Refused("bad_source", "Continuous Range", str(middle), "the places are on no logarithmic scale")


def _gives(zero: Decimal, places: list[Decimal], lower: Decimal, upper: Decimal) -> bool:
    """Return whether a zero point gives the places of a quarter, the middle and three quarters of the scale."""
    exact, last = _DIGITS, len(places) - 1
    ratio = exact.divide(upper - zero, lower - zero)
    for at in {last // 4, last // 2, 3 * last // 4}:
        power = exact.power(ratio, exact.divide(Decimal(at), Decimal(last)))
        place = lower + (upper - lower) * exact.divide(power - 1, ratio - 1)
        if abs(place - places[at]) > _CLOSE * (upper - lower):
            return False
    return True
