"""Fills of an account of Kalshi as trades, and its settlements, to compare.

An account holds contracts of yes or of no of a market, never both: who buys no with contracts of yes gives these up,
at the rest of the price of no. The API does not name the account; it is the participant `account`, a subaccount has
its number. A fill says which outcome was acquired, also if an order sold the other one: a sale of yes is a fill of
no. Older fills say it as `side`, whatever `action` says; newer ones as `outcome_side` and `book_side`. The costs of a
settlement are those of all fills, before yes and no are taken off each other.

Source: Kalshi, API documentation, "Get Fills", "Get Settlements", "Order direction (outcome_side and book_side)"; that
`side` of a fill is the outcome acquired, and what costs are, follows from fills and settlements of accounts that were
published with what they add up to.
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.core.values import LARGEST_POOL, MONEY, PROBABILITY
from forecast_ledger.replay.importing.json_files import Record, epoch_in, instant_in, number_in, text_in
from forecast_ledger.replay.importing.kalshi_markets import dollars_in
from forecast_ledger.replay.importing.market_items import in_order
from forecast_ledger.replay.importing.market_trades import Trade, exact_in
from forecast_ledger.replay.importing.source_items import Published
from forecast_ledger.replay.writing.command_lines import InputPlace

TITLE = "Kalshi"
NOT_ASKED = "a fill of an account, which --trades records as a trade"
SUBACCOUNTS = "a settlement of an account that has subaccounts, over which it is not divided"
ACCOUNT = "account"
_OF_FILLS = {"is_taker", "fill_id"}  # what no trade of the exchange has
_SIDES = ("outcome_side", "book_side", "side")
_OUTCOMES = {"yes": "yes", "bid": "yes", "no": "no", "ask": "no"}
_CENT = MONEY // 100


class Fill(NamedTuple):
    """A fill. prices: of yes and no.

    adds: contracts, exact, above 0 if the account has more of yes afterwards, or less of no.
    """

    at: int
    place: InputPlace
    name: str
    who: str
    adds: Decimal
    prices: tuple[Decimal, Decimal]
    fee: int


def is_fill(value: Record) -> bool:
    """Return whether an object is a fill of an account.

    >>> is_fill({"outcome_side": "no", "is_taker": True}), is_fill({"ticker": "KX", "yes_price": 4})
    (True, False)
    """
    return not (value.keys().isdisjoint(_OF_FILLS) or value.keys().isdisjoint(_SIDES))


def read_fill(place: InputPlace, value: Record) -> Fill:
    """Return a fill. Refuses: bad_source, bad_instant, bad_number, out_of_range."""
    at = instant_in(value, "created_time")
    at = epoch_in(value, "ts") if at is None else at
    name = text_in(value, "fill_id") or text_in(value, "trade_id")
    count = exact_in(value, "count_fp") or exact_in(value, "count")
    yes, no = (dollars_in(value, field) for field in ("yes_price", "no_price"))
    yes = PROBABILITY - no if yes is None and no is not None else yes
    fields = {"created_time": at, "fill_id": name, "yes_price_dollars": yes, "count_fp": count}
    for field, found in fields.items():
        if found is None or not found:
            raise Refused("bad_source", field, None, "it is missing, or 0")
    said = {field: text for field in _SIDES if (text := text_in(value, field).lower())}
    acquired = {_OUTCOMES.get(text) for text in said.values()}
    if acquired not in ({"yes"}, {"no"}) or count < 0:
        raise Refused(
            "bad_source", "outcome_side", said.get("outcome_side"), "it does not say which outcome was acquired"
        )
    price = Decimal(yes or 0).scaleb(-9, WIDE)
    number = text_in(value, "subaccount_number") or "0"
    return Fill(
        at=at or 0,
        place=place,
        name=name,
        who=ACCOUNT if number == "0" else f"{ACCOUNT} {number}",
        adds=count if acquired == {"yes"} else -count,
        prices=(price, 1 - price),
        fee=number_in(value, "fee_cost", MONEY, 0, LARGEST_POOL) or 0,
    )


def trades_of(fills: Iterable[Fill]) -> Iterator[Trade]:
    """Return the trades of a market: what a fill takes off the other side is sold, and the rest is bought."""
    held: dict[str, Decimal] = {}  # contracts of yes, or below 0 of no
    for fill in in_order([*fills]):
        before = held.get(fill.who, Decimal(0))
        held[fill.who] = before + fill.adds
        bought = int(fill.adds < 0)  # the outcome that there is more of: 0 for yes, 1 for no
        size = abs(fill.adds)
        closed = min(size, abs(before)) if before * fill.adds < 0 else Decimal(0)
        parts = [(1 - bought, -closed), (bought, size - closed)]
        for number, (outcome, shares) in enumerate([part for part in parts if part[1]], 1):
            yield Trade(
                at=fill.at,
                place=fill.place,
                name=fill.name if number == 1 else f"{fill.name} {number}",
                who=fill.who,
                outcome=outcome,
                shares=shares,
                amount=WIDE.multiply(abs(shares), fill.prices[outcome]),
                fee=fill.fee if number == 1 else 0,
            )


def published_in(place: InputPlace, value: Mapping[str, object], question: str) -> Published:
    """Return the results of a settlement: what was paid, the cost of all fills, and the fees of the market.

    Refuses: bad_number, out_of_range.
    """
    record = dict(value)
    costs = [_dollars(record, f"{side}_total_cost") for side in ("yes", "no")]
    results = {
        "revenue": number_in(record, "revenue", _CENT, 0, LARGEST_POOL),
        "total_cost": None if None in costs else sum(cost or 0 for cost in costs),
        "fee_cost": number_in(record, "fee_cost", MONEY, 0, LARGEST_POOL),
    }
    known = {name: number for name, number in results.items() if number is not None}
    return Published(place, TITLE, ACCOUNT, (question,), known, near=_CENT // 2)


def _dollars(record: Record, field: str) -> int | None:
    """Return an amount of the field in dollars, or of the older one in cents."""
    if record.get(f"{field}_dollars") is not None:
        return number_in(record, f"{field}_dollars", MONEY, 0, LARGEST_POOL)
    return number_in(record, field, _CENT, 0, LARGEST_POOL)
