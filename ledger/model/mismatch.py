"""Recorded values in printed units: events as JSON for other programs, and the messages of `verify`."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, Struct, structs

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
from forecast_ledger.ledger.model.rules import RuleSet, written_fields
from forecast_ledger.ledger.model.trading_rules import PERCENT

_LONGEST = 40  # characters of an id, a text or a list; a log that another program wrote can hold any
_DIGEST = 66  # characters of a digest in quotes
_LARGEST = 10**30  # of a number that is printed


def mismatch(expected: str, actual: str) -> str:
    """Return the message of a mismatch; every one has this form.

    >>> mismatch("an amount of 500.00, as in the decision", money_text(500_000_001))
    'expected an amount of 500.00, as in the decision; found 500.000001'
    """
    return f"expected {expected}; found {actual}"


def short_repr(text: object, most: int = _LONGEST) -> str:
    """Return an id, a text or an integer as a message shows it: escaped and shortened.

    >>> short_repr("cup"), short_repr(7), short_repr("an id of a contest that is as long as an id may be")
    ("'cup'", '7', "'an id of a contest that is as long as a…")
    """
    if isinstance(text, int) and abs(text) > _LARGEST:
        return "a number of more than 30 digits"
    return shorten(repr(text), most)


def short_reprs(values: Iterable[object]) -> str:
    """Return a list of ids and integers as a message shows it.

    >>> short_reprs(["week", "ada", 1])
    "'week', 'ada', 1"
    """
    return ", ".join(map(short_repr, values))


def shorten(text: str, most: int = _LONGEST) -> str:
    """Return the beginning of a text, with an ellipsis if it is cut."""
    return text if len(text) <= most else f"{text[:most]}…"


def decimal_text(value: int, unit: int, least: int = 0) -> str:
    """Return an integer in 1/unit as decimal text.

    >>> decimal_text(-1, 10**9)
    '-0.000000001'
    """
    return format_fixed(value, unit, least) if abs(value) <= _LARGEST else short_repr(value)


def money_text(value: int) -> str:
    """Return an amount or shares, 1e-6, as decimal text."""
    return decimal_text(value, MONEY, least=2)


def probability_text(value: int | None) -> str:
    """Return a probability or price, 1e-9, as decimal text; "none" for None."""
    return "none" if value is None else decimal_text(value, PROBABILITY)


def share_text(share: Fraction) -> str:
    """Return a payout as a command takes it: a decimal if nine places are exact, else a fraction.

    >>> share_text(Fraction(1, 4)), share_text(Fraction(2, 6))
    ('0.25', '1/3')
    """
    units, over = (share * PROBABILITY).as_integer_ratio()
    return probability_text(units) if over == 1 else str(share)


def instant_text(micros: int) -> str:
    """Return an instant as RFC 3339 text; outside the calendar, as µs since 1970.

    >>> instant_text(0), instant_text(2**62)
    ('1970-01-01T00:00:00Z', '4611686018427387904 µs since 1970')
    """
    inside = FIRST_INSTANT <= micros <= LAST_INSTANT
    return format_instant(micros) if inside else f"{short_repr(micros)} µs since 1970"


def first_difference(expected: Struct, actual: Struct, quantum: int = 1) -> str:
    """Return the message about the first field in which two structs of one type differ, in printed units.

    quantum: units in 1, for quantiles and samples.

    >>> from forecast_ledger.ledger.model.events import ForecastMade
    >>> left, right = (ForecastMade(at=0, question="q", participant="a", probabilities=(p, 1)) for p in (5 * 10**8, 2))
    >>> first_difference(left, right)
    'expected probabilities[0] 0.5; found 0.000000002'
    """
    path, left, right = _differing_part("", expected, actual)
    name = path.rpartition(".")[2].partition("[")[0]
    if name in {"payout", "payouts"} and type(left) is type(right) is int:
        unit = getattr(expected, "payout_unit", 0) or PROBABILITY
        return mismatch(f"{path} {share_text(Fraction(left, unit))}", share_text(Fraction(right, unit)))
    return mismatch(f"{path} {field_text(name, left, quantum)}", field_text(name, right, quantum))


def _differing_part(path: str, left: Any, right: Any) -> tuple[str, Any, Any]:
    """Return the path of the first difference, and the values there."""
    if isinstance(left, Struct) and type(left) is type(right):
        for field, name in zip(left.__struct_fields__, left.__struct_encode_fields__, strict=True):
            if getattr(left, field) != getattr(right, field):
                return _differing_part(f"{path}.{name}" if path else name, getattr(left, field), getattr(right, field))
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        index = next(index for index in range(len(left)) if left[index] != right[index])
        return _differing_part(f"{path}[{index}]", left[index], right[index])
    return path, left, right


def field_text(name: str, value: Any, quantum: int = 1) -> str:
    """Return the value of an event's field as text, in the unit of fields of this name.

    quantum: units in 1, for quantiles and samples.

    >>> field_text("amount", 2_500_000), field_text("closes_at", 0), field_text("bot", True)
    ('2.50', '1970-01-01T00:00:00Z', 'true')
    """
    if isinstance(value, tuple):
        return f"of {len(value)} items"
    if value is None or isinstance(value, bool | Struct):
        return "none" if value is None else shorten(str(value).lower() if isinstance(value, bool) else "some")
    if isinstance(value, int) and name in {"quantiles", "samples"}:
        return decimal_text(value, quantum)
    if not isinstance(value, int):
        return short_repr(value, _DIGEST)
    return instant_text(value) if is_instant(name) else _FIELD_TEXTS.get(name, short_repr)(value)


def _text_in(unit: int) -> Callable[[int], str]:
    return lambda value: decimal_text(value, unit)


_FIELD_TEXTS: dict[str, Callable[[int], str]] = {
    **dict.fromkeys(
        ["amount", "cash", "shares", "cost", "proceeds", "fee", "requested", "pool", "payable_unit"], money_text
    ),
    **dict.fromkeys(["starting_cash", "least_bet", "least_prize", "fee_unit"], money_text),
    **dict.fromkeys(
        ["price", "prices", "payout", "payouts", "confidence", "probabilities", "levels"], probability_text
    ),
    **dict.fromkeys(["percentage", "least_percentage"], _text_in(PERCENT)),
    **dict.fromkeys(["weight", "hidden_coverage_weight"], _text_in(WEIGHT)),
    "cdf": _text_in(CUMULATIVE),
}


# field -> units in 1. Other integers are counts, numbers of outcomes, or log positions.
UNITS: dict[str, int] = {
    **dict.fromkeys(["amount", "cash", "shares", "cost", "proceeds", "fee", "requested", "payable_unit"], MONEY),
    **dict.fromkeys(["pool", "bid_sizes", "ask_sizes"], MONEY),
    **dict.fromkeys(["price", "prices", "bids", "asks", "confidence", "probabilities", "levels"], PROBABILITY),
    **dict.fromkeys(["weight", "hidden_coverage_weight"], WEIGHT),
    "percentage": PERCENT,
    "cdf": CUMULATIVE,
}
# struct.field -> units in 1, if they are not those of other fields of this name; 0: it is a count.
_FIELD_UNITS: dict[str, int] = {"StatedShares.shares": PROBABILITY, "Spot.weight": 0}


def event_json(part: Struct) -> str:
    """Return an event, or a row of the log, on one line of JSON; a field that has its default is left out.

    Instants are in RFC 3339, and numbers with a unit decimal texts: probabilities, prices, money, shares. A payout is a
    decimal, or a fraction if no decimal of nine places is exact. Outcomes are numbers, and quantiles and samples
    integers in the last decimal of their question, as in the event: both need the question.
    """
    return msgspec.json.encode(_plain(part)).decode()


def _plain(part: Struct) -> dict[str, Any]:
    if isinstance(part, RuleSet):
        return written_fields(part)
    kind, tag = type(part).__name__, part.__struct_config__.tag
    said: dict[str, Any] = {} if tag is None else {"type": tag}
    parts = getattr(part, "payout_unit", 0) or PROBABILITY
    for field in structs.fields(part):
        value = getattr(part, field.name)
        if value is UNSET or value == field.default or field.name == "payout_unit":
            continue
        unit = _FIELD_UNITS.get(f"{kind}.{field.name}", UNITS.get(field.name, 0))
        write = (
            partial(_share, parts=parts) if field.name in {"payout", "payouts"} else partial(_number, field.name, unit)
        )
        said[field.encode_name] = _written(value, write)
    return said


def _written(value: Any, write: Callable[[int], Any]) -> Any:
    if isinstance(value, Struct):
        return _plain(value)
    if isinstance(value, tuple):
        return [_written(item, write) for item in value]
    return write(value) if type(value) is int else value


def _number(name: str, unit: int, value: int) -> int | str:
    if is_instant(name):
        return format_instant(value)
    return format_fixed(value, unit) if unit else value


def _share(payout: int, parts: int) -> str:
    return share_text(Fraction(payout, parts))
