"""Events as JSON for other programs: numbers are decimals and instants texts, as commands have them."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, Struct, structs

from forecast_ledger.ledger.core.values import (
    CUMULATIVE,
    MONEY,
    PROBABILITY,
    WEIGHT,
    format_fixed,
    format_instant,
    is_instant,
)
from forecast_ledger.ledger.model.mismatch import share_text
from forecast_ledger.ledger.model.rules import RuleSet, written_fields
from forecast_ledger.ledger.model.trading_rules import PERCENT

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
_OWN: dict[str, int] = {"StatedShares.shares": PROBABILITY, "Spot.weight": 0}


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
        unit = _OWN.get(f"{kind}.{field.name}", UNITS.get(field.name, 0))
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
