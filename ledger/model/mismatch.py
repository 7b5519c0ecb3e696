"""Messages of what was expected and what was found, with numbers, instants and ids as they are printed."""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from forecast_ledger.ledger.core.values import (
    CUMULATIVE,
    FIRST_INSTANT,
    LAST_INSTANT,
    MONEY,
    PROBABILITY,
    WEIGHT,
    format_fixed,
    format_instant,
    is_instant,
)
from forecast_ledger.ledger.model.trading_rules import PERCENT

_LONGEST = 40  # characters of an id, a text or a list: a log that anything wrote holds any
_DIGEST = 66  # characters of one, in quotes
_LARGEST = 10**30


def mismatch(expected: str, found: str) -> str:
    """The message of a finding, in the one form that all findings have.

    >>> mismatch("an amount of 500.00, the bet that was asked for", money_text(500_000_001))
    'expected an amount of 500.00, the bet that was asked for; found 500.000001'
    """
    return f"expected {expected}; found {found}"


def short_repr(text: object, most: int = _LONGEST) -> str:
    """An id, a text or a whole number as it stands in a message: escaped, and shortened.

    >>> short_repr("cup"), short_repr(7), short_repr("an id of a contest that is as long as an id may be")
    ("'cup'", '7', "'an id of a contest that is as long as a…")
    """
    if isinstance(text, int) and abs(text) > _LARGEST:
        return "a number of more than 30 digits"
    return shorten(repr(text), most)


def short_reprs(values: Iterable[object]) -> str:
    """Ids and whole numbers.

    >>> short_reprs(["week", "ada", 1])
    "'week', 'ada', 1"
    """
    return ", ".join(map(short_repr, values))


def shorten(text: str, most: int = _LONGEST) -> str:
    """The beginning of a text."""
    return text if len(text) <= most else f"{text[:most]}…"


def decimal_text(value: int, unit: int, least: int = 0) -> str:
    """An integer in 1/unit as a decimal.

    >>> decimal_text(-1, 10**9)
    '-0.000000001'
    """
    return format_fixed(value, unit, least) if abs(value) <= _LARGEST else short_repr(value)


def money_text(value: int) -> str:
    """An amount or shares, 1e-6."""
    return decimal_text(value, MONEY, least=2)


def probability_text(value: int | None) -> str:
    """A probability, a price or a payout, 1e-9; none where there is none."""
    return "none" if value is None else decimal_text(value, PROBABILITY)


def instant_text(micros: int) -> str:
    """RFC 3339, or what no calendar has.

    >>> instant_text(0), instant_text(2**62)
    ('1970-01-01T00:00:00Z', '4611686018427387904 µs since 1970')
    """
    inside = FIRST_INSTANT <= micros <= LAST_INSTANT
    return format_instant(micros) if inside else f"{short_repr(micros)} µs since 1970"


def first_difference(expected: Struct, found: Struct, quantum: int = 1) -> str:
    """The first field in which two things of one type differ, and what it is in both, in printed units.

    quantum: units in 1 of quantiles.

    >>> from forecast_ledger.ledger.model.events import ForecastMade
    >>> one, other = (ForecastMade(at=0, question="q", participant="a", probabilities=(p, 1)) for p in (5 * 10**8, 2))
    >>> first_difference(one, other)
    'expected probabilities[0] 0.5; found 0.000000002'
    """
    path, one, other = _first_unlike("", expected, found)
    name = path.rpartition(".")[2].partition("[")[0]
    return mismatch(f"{path} {field_text(name, one, quantum)}", field_text(name, other, quantum))


def _first_unlike(path: str, one: Any, other: Any) -> tuple[str, Any, Any]:
    """Where the difference is, and what is there."""
    if isinstance(one, Struct) and type(one) is type(other):
        for name in one.__struct_fields__:
            if getattr(one, name) != getattr(other, name):
                return _first_unlike(f"{path}.{name}" if path else name, getattr(one, name), getattr(other, name))
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        place = next(place for place in range(len(one)) if one[place] != other[place])
        return _first_unlike(f"{path}[{place}]", one[place], other[place])
    return path, one, other


def field_text(name: str, value: Any, quantum: int = 1) -> str:
    """The value of a field of an event, in the unit that fields of this name have.

    quantum: units in 1 of quantiles.

    >>> field_text("amount", 2_500_000), field_text("closes_at", 0), field_text("bot", True)
    ('2.50', '1970-01-01T00:00:00Z', 'true')
    """
    if isinstance(value, tuple):
        return f"of {len(value)} items"
    if value is None or isinstance(value, bool | Struct):
        return "none" if value is None else shorten(str(value).lower() if isinstance(value, bool) else "some")
    if isinstance(value, int) and name == "quantiles":
        return decimal_text(value, quantum)
    if not isinstance(value, int):
        return short_repr(value, _DIGEST)
    return instant_text(value) if is_instant(name) else _PRINTED.get(name, short_repr)(value)


def _unit(unit: int) -> Callable[[int], str]:
    return lambda value: decimal_text(value, unit)


_PRINTED: dict[str, Callable[[int], str]] = {
    **dict.fromkeys(["amount", "cash", "shares", "cost", "proceeds", "pool", "payable_unit"], money_text),
    **dict.fromkeys(["starting_cash", "least_bet", "least_prize"], money_text),
    **dict.fromkeys(
        ["price", "prices", "payout", "payouts", "confidence", "probabilities", "levels"], probability_text
    ),
    **dict.fromkeys(["percentage", "least_percentage"], _unit(PERCENT)),
    **dict.fromkeys(["weight", "hidden_coverage_weight"], _unit(WEIGHT)),
    "cdf": _unit(CUMULATIVE),
}
