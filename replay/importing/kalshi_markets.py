"""A market of Kalshi: what is asked, until when, and how it ended."""

from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.replay.importing.json_files import (
    Record,
    epoch_in,
    flag_in,
    instant_in,
    number_in,
    text_in,
)
from forecast_ledger.replay.importing.market_items import BINARY, Answer, Market, checked_market
from forecast_ledger.replay.importing.source_items import NotCarried
from forecast_ledger.replay.writing.command_lines import InputPlace

DISPUTED = "a market whose result is disputed"
NO_VALUE = "a market of the result `scalar` that does not say what it pays"
EXCLUSIVE = "mutually exclusive"  # the tag of a market of an event of which at most one market is yes
_CENT = PROBABILITY // 100


class Result(NamedTuple):
    """A result: yes, no, scalar or void, and, of scalar, what yes pays, 1e-9. at: µs, if it is said."""

    said: str
    value: int | None
    at: int | None


def read_market(place: InputPlace, record: Record, event: Record) -> Market:
    """Return what a record says, without its answer. event: the one that the market is part of, if the files have it.

    Refuses, first that applies: bad_source, bad_instant, bad_number, out_of_range (a field cannot be read), and what
    `checked_market` refuses.
    """
    ticker = text_in(record, "ticker")
    opens_at = instant_in(record, "open_time")
    opens_at = instant_in(record, "created_time") if opens_at is None else opens_at
    closes_at = instant_in(record, "close_time")
    for field, value in (("ticker", ticker or None), ("open_time", opens_at), ("close_time", closes_at)):
        if value is None:
            raise Refused("bad_source", field, None, "the market does not say it")
    if dollars_in(record, "notional_value") not in {None, PROBABILITY}:
        raise Refused("bad_source", "notional_value_dollars", None, "a contract that pays another amount than 1")
    asked = text_in(record, "title") or text_in(event, "title")
    part = text_in(record, "yes_sub_title") or text_in(record, "subtitle")
    exclusive = flag_in(event, "mutually_exclusive")
    return checked_market(
        Market(
            place=place,
            name=f"kalshi {ticker}",
            title=f"{asked}: {part}" if asked and part and part not in asked else asked or part,
            outcomes=BINARY,
            opens_at=opens_at or 0,
            closes_at=closes_at or 0,
            group=text_in(event, "title") or text_in(record, "event_ticker"),
            category=text_in(record, "category") or text_in(event, "category"),
            tags=(EXCLUSIVE,) if exclusive else (),
        )
    )


def result_in(record: Record) -> Result | None:
    """Return the result of a record of a market; None without one."""
    said = text_in(record, "result").lower()
    if not said:
        return None
    settled = record.get("settlement_ts")
    read_at = instant_in if isinstance(settled, str) and not settled.isdigit() else epoch_in
    return Result(said, dollars_in(record, "settlement_value"), read_at(record, "settlement_ts"))


def settlement_in(record: Record) -> Result:
    """Return the result that a settlement of an account says; its value is in cents."""
    value = number_in(record, "value", _CENT, 0, PROBABILITY)
    return Result(text_in(record, "market_result").lower(), value, instant_in(record, "settled_time"))


def answer_of(market: Market, result: Result, status: str) -> Answer | NotCarried:
    """Return how a market ended: known when it was settled, or, if that is not said, when it closed."""
    if status == "disputed":
        return NotCarried(DISPUTED)
    at = market.closes_at if result.at is None else result.at
    if result.said == "void":
        return Answer(at, (), "void")
    if result.said in BINARY:
        return Answer(at, (PROBABILITY, 0) if result.said == "yes" else (0, PROBABILITY))
    if result.said != "scalar":
        return NotCarried(f"a market of a result that is not known: {result.said[:40]!r}")
    return NotCarried(NO_VALUE) if result.value is None else Answer(at, (result.value, PROBABILITY - result.value))


def dollars_in(record: Record, field: str) -> int | None:
    """Return a price, 1e-9: of the field in dollars, or of the older one, in whole cents, or in dollars with a point.

    >>> dollars_in({"close_dollars": "0.47", "close": 47}, "close"), dollars_in({"close": 47}, "close")
    (470000000, 470000000)
    >>> dollars_in({"close": "0.4700"}, "close"), dollars_in({}, "close")
    (470000000, None)
    """
    old = record.get(field)
    if record.get(f"{field}_dollars") is not None:
        return number_in(record, f"{field}_dollars", PROBABILITY, 0, PROBABILITY)
    cents = isinstance(old, int) or (isinstance(old, str) and old.isdigit())
    return number_in(record, field, _CENT if cents else PROBABILITY, 0, PROBABILITY)
