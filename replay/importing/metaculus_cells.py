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
DAY = 86_400  # s
_MOST_DAYS = 100_000  # that are tried as zero point
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
    if not lower < middle < upper:
        raise Refused("bad_source", "Continuous Range", str(middle), "its middle is not between the bounds")
    zero = _zero_of(middle, lower, upper)
    for found in (Decimal(0), _NICE.plus(zero), zero):
        if not lower <= found <= upper and _gives(found, places, lower, upper):
            return found.normalize() + 0
    raise Refused("bad_source", "Continuous Range", str(middle), "the places are on no logarithmic scale")


def _zero_of(middle: Decimal, lower: Decimal, upper: Decimal) -> Decimal:
    """Return the zero point of a logarithmic scale whose middle this is; see `zero_point`."""
    exact = _DIGITS
    root = exact.subtract(exact.divide(upper - lower, middle - lower), Decimal(1))
    ratio = exact.multiply(root, root)
    return exact.divide(exact.subtract(exact.multiply(ratio, lower), upper), exact.subtract(ratio, Decimal(1)))


def _gives(zero: Decimal, places: list[Decimal], lower: Decimal, upper: Decimal) -> bool:
    """Return whether a zero point gives the places of a quarter, the middle and three quarters of the scale."""
    last = len(places) - 1
    some = (last // 4, last // 2, 3 * last // 4)
    return all(abs(_place(at, last, (zero, lower, upper)) - places[at]) <= _CLOSE * (upper - lower) for at in some)


def _place(at: int, last: int, scale: tuple[Decimal, Decimal, Decimal]) -> Decimal:
    """Return the place number `at` of `last` on a logarithmic scale: zero point, lower and upper end."""
    exact, (zero, lower, upper) = _DIGITS, scale
    ratio = exact.divide(upper - zero, lower - zero)
    power = exact.power(ratio, exact.divide(Decimal(at), Decimal(last)))
    return lower + (upper - lower) * exact.divide(power - 1, ratio - 1)


def _gives_days(zero: Decimal, places: list[Decimal], lower: Decimal, upper: Decimal) -> bool:
    """Return whether a zero point gives every place, each of which is known to a day."""
    last = len(places) - 1
    some = (last // 4, last // 2, 3 * last // 4, *range(last + 1))  # those that most zero points miss first
    return not lower <= zero <= upper and all(
        places[at] - 1 <= _place(at, last, (zero, lower, upper)) < places[at] + DAY + 1 for at in some
    )


def date_zero_point(locations: str, lower: Decimal, upper: Decimal) -> Decimal | None:
    """Return the zero point of a range of dates with a logarithmic scale, or None if it is linear. Refuses: bad_source.

    A download prints the places as dates, so that each is known to a day. The zero point is the beginning of a day,
    UTC, that gives every place again; of several, the one in the middle. See `zero_point`.

    >>> date_zero_point("['2026-01-01', '2026-01-06', '2026-01-11']", Decimal(1767225600), Decimal(1768089600))
    """
    places = [read_bound(item.strip("'\""), "Continuous Range", "date") for item in split_numbers(locations)]
    if len(places) < 3 or len(places) % 2 == 0:
        return None
    width, middle = upper - lower, places[len(places) // 2]
    if middle - lower <= width / 2 < middle - lower + DAY:
        return None
    if not lower < middle < upper - DAY:
        raise Refused("bad_source", "Continuous Range", str(middle), "its middle is not between the bounds")
    ends = [_zero_of(place, lower, upper) for place in (middle, middle + DAY)]
    days = range(int(min(ends) // DAY), int(max(ends) // DAY) + 2)
    if len(days) > _MOST_DAYS:
        raise Refused("bad_source", "Continuous Range", str(middle), "its middle gives no zero point")
    found = [zero for day in days if _gives_days(zero := Decimal(day * DAY), places, lower, upper)]
    if not found:
        raise Refused("bad_source", "Continuous Range", locations[:80], "the dates are on no logarithmic scale")
    return found[len(found) // 2]
