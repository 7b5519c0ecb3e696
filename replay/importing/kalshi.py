"""Kalshi: its markets, events, trades, candlesticks, fills and settlements, saved as its API answers them.

The price of yes in the last trade is a forecast of a participant that is named for the platform; trades and
candlesticks are quotes. Trades of the API are anonymous, so nobody else forecasts.

Fills of an account are trades, if they are asked for. An account holds contracts of yes or of no of a market, never
both: who buys no with contracts of yes gives these up, at 1 less the price of no. The API does not name the
account; it is the participant `account`, a subaccount has its number. A fill says which outcome was acquired, also if
an order sold the other one: a sale of yes is a fill of no. Older fills say it as `side`, whatever `action` says; newer
ones as `outcome_side` and `book_side`. The costs of a settlement are those of all fills, before yes and no are taken
off each other.

Source: Kalshi, API documentation, "Get Markets", "Get Events", "Get Trades", "Get Market Candlesticks", "Get
Settlements", "Get Fills", "Order direction (outcome_side and book_side)"; that `side` of a fill is the outcome
acquired, and what costs are, follows from fills and settlements of accounts that were published with what they add up
to.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.core.values import LARGEST_POOL, MONEY, PROBABILITY
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.replay.importing.json_files import (
    Record,
    epoch_in,
    flag_in,
    inside,
    instant_in,
    is_nested_too_deep,
    json_values,
    list_in,
    number_in,
    text_in,
)
from forecast_ledger.replay.importing.market_items import (
    BINARY,
    Answer,
    Contents,
    Market,
    Platform,
    Price,
    Trade,
    checked_market,
    exact_in,
    in_order,
)
from forecast_ledger.replay.importing.source_files import SourceFiles
from forecast_ledger.replay.importing.source_items import (
    KNOWN,
    Columns,
    NotCarried,
    Published,
    SourceItem,
    Unread,
    ignored_fields,
)

_WORDS = "words about the market"
_VOLUME = "how much was traded, or is offered"
_NOW = "prices of the moment at which the record was made, which it does not say"
_ORDERS = "how orders are taken"
_TIMES = "a time that decides nothing: the close and the settlement are read"
_STRIKE = "what the market asks, in numbers; its title says it"
_ON_SITE = "how markets are grouped and shown"
_ACCOUNT = "contracts of an account, which follow from its fills"
_BEFORE = "another price of the period, which is not its last"

COLUMNS = {
    "market": Columns(
        used=(
            *("ticker", "event_ticker", "title", "subtitle", "yes_sub_title", "category", "open_time", "created_time"),
            *("close_time", "status", "result", "settlement_ts", "settlement_value", "settlement_value_dollars"),
            *("notional_value", "notional_value_dollars"),
        ),
        ignored=ignored_fields(
            {
                _WORDS: """no_sub_title rules_primary rules_secondary early_close_condition expiration_value
                    primary_participant_key""",
                _VOLUME: """volume volume_fp volume_24h volume_24h_fp open_interest open_interest_fp liquidity
                    liquidity_dollars dollar_volume dollar_open_interest yes_bid_size_fp yes_ask_size_fp""",
                _NOW: """yes_bid yes_ask no_bid no_ask last_price previous_price previous_yes_bid previous_yes_ask
                    yes_bid_dollars yes_ask_dollars no_bid_dollars no_ask_dollars last_price_dollars
                    previous_price_dollars previous_yes_bid_dollars previous_yes_ask_dollars""",
                _ORDERS: """can_close_early risk_limit_cents tick_size price_level_structure price_ranges
                    response_price_units fee_waiver_expiration_time settlement_timer_seconds exchange_index
                    fractional_trading_enabled""",
                _TIMES: """expiration_time expected_expiration_time latest_expiration_time updated_time
                    occurrence_datetime""",
                _STRIKE: "market_type strike_type floor_strike cap_strike functional_strike custom_strike",
                _ON_SITE: "mve_collection_ticker mve_selected_legs is_provisional series_ticker",
            }
        ),
    ),
    "event": Columns(
        used=("event_ticker", "title", "category", "mutually_exclusive", "markets"),
        ignored=ignored_fields(
            {
                _WORDS: "sub_title settlement_sources product_metadata",
                _TIMES: "strike_date strike_period last_updated_ts",
                _ORDERS: "collateral_return_type available_on_brokers exchange_index",
                _ON_SITE: "series_ticker",
            }
        ),
    ),
    "trade": Columns(
        used=("ticker", "created_time", "yes_price", "yes_price_dollars"),
        ignored=ignored_fields(
            {
                "a trade may be there twice: of one instant the last price counts": "trade_id",
                "it is the rest of the price of yes": "no_price no_price_dollars price",
                _VOLUME: "count count_fp",
                "who took the order; each trade has one price": "taker_side taker_outcome_side taker_book_side",
            }
        ),
        only={"is_block_trade": [False]},
    ),
    "candlestick": Columns(
        used=("end_period_ts", "price", "yes_bid", "yes_ask"),
        ignored=ignored_fields({_VOLUME: "volume volume_fp open_interest open_interest_fp"}),
    ),
    "sides": Columns(
        used=("close", "close_dollars"),
        ignored=ignored_fields(
            {
                _BEFORE: """open open_dollars high high_dollars low low_dollars mean mean_dollars previous
                    previous_dollars min min_dollars max max_dollars"""
            }
        ),
    ),
    "fill": Columns(
        used=(
            *("fill_id", "trade_id", "ticker", "market_ticker", "outcome_side", "book_side", "side", "count"),
            *("count_fp", "created_time", "ts", "yes_price", "yes_price_dollars", "no_price", "no_price_dollars"),
            *("fee_cost", "subaccount_number"),
        ),
        ignored=ignored_fields(
            {
                _ORDERS: "order_id client_order_id is_taker exchange_index",
                "whether the order bought or sold: `side` says which outcome was acquired": "action",
                "other forms of it": "price yes_price_fixed no_price_fixed ts_ms purchased_side",
            }
        ),
    ),
    "settlement": Columns(
        used=(
            *("ticker", "market_result", "settled_time", "value", "revenue", "fee_cost"),
            *("yes_total_cost", "yes_total_cost_dollars", "no_total_cost", "no_total_cost_dollars"),
        ),
        ignored=ignored_fields(
            {
                _ACCOUNT: "yes_count yes_count_fp no_count no_count_fp",
                _ON_SITE: "event_ticker",
            }
        ),
    ),
}


DISPUTED = "a market whose result is disputed"
NO_VALUE = "a market of the result `scalar` that does not say what it pays"
EXCLUSIVE = "mutually exclusive"  # the tag of a market of an event of which at most one market is yes
_PRICE_CENT = PROBABILITY // 100


class Result(NamedTuple):
    """A result: yes, no, scalar or void, and, of scalar, what yes pays, 1e-9. at: µs, if it is said."""

    said: str
    value: int | None
    at: int | None


def read_market(location: InputLocation, record: Record, event: Record) -> Market:
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
    question = text_in(record, "title") or text_in(event, "title")
    part = text_in(record, "yes_sub_title") or text_in(record, "subtitle")
    exclusive = flag_in(event, "mutually_exclusive")
    return checked_market(
        Market(
            location=location,
            name=f"kalshi {ticker}",
            title=f"{question}: {part}" if question and part and part not in question else question or part,
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
    value = number_in(record, "value", _PRICE_CENT, 0, PROBABILITY)
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
    return number_in(record, field, _PRICE_CENT if cents else PROBABILITY, 0, PROBABILITY)


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
    location: InputLocation
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


def read_fill(location: InputLocation, value: Record) -> Fill:
    """Return a fill. Refuses: bad_source, bad_instant, bad_number, out_of_range."""
    at = instant_in(value, "created_time")
    at = epoch_in(value, "ts") if at is None else at
    name = text_in(value, "fill_id") or text_in(value, "trade_id")
    count = exact_in(value, "count_fp") or exact_in(value, "count")
    yes, no = (dollars_in(value, field) for field in ("yes_price", "no_price"))
    yes = PROBABILITY - no if yes is None and no is not None else yes
    fields = {"created_time": at, "fill_id": name, "yes_price_dollars": yes, "count_fp": count}
    for field, content in fields.items():
        if content is None or not content:
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
        location=location,
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
                location=fill.location,
                name=fill.name if number == 1 else f"{fill.name} {number}",
                who=fill.who,
                outcome=outcome,
                shares=shares,
                amount=WIDE.multiply(abs(shares), fill.prices[outcome]),
                fee=fill.fee if number == 1 else 0,
            )


def published_in(location: InputLocation, value: Mapping[str, object], question: str) -> Published:
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
    return Published(location, TITLE, ACCOUNT, (question,), known, near=_CENT // 2)


def _dollars(record: Record, field: str) -> int | None:
    """Return an amount of the field in dollars, or of the older one in cents."""
    if record.get(f"{field}_dollars") is not None:
        return number_in(record, f"{field}_dollars", MONEY, 0, LARGEST_POOL)
    return number_in(record, field, _CENT, 0, LARGEST_POOL)


PLATFORM = Platform("kalshi", "Kalshi")
NO_MARKET = "prices or a settlement of a market that the files do not have"
OTHER_JSON = "JSON that is no market, event, trade, candlestick, fill or settlement"
_PARTS = ("market", "event", "markets", "events", "trades", "settlements", "fills", "data")


class Copy:
    """What the files say: the last record of each market, events, and by ticker trades, candlesticks and settlements.

    priced: questions of which trades or candlesticks are there.
    """

    def __init__(self, *, trades: bool) -> None:
        self.published: list[Published] = []
        self.people: dict[str, str] = {}
        self._fills: dict[str, dict[str, Fill]] | None = {} if trades else None  # by ticker and name
        self._subaccounts = False
        self._settled: list[tuple[InputLocation, Record]] = []
        self.markets: dict[str, tuple[InputLocation, Record]] = {}
        self.events: dict[str, Record] = {}
        self.trades: dict[str, list[Price]] = {}
        self.candlesticks: dict[str, list[Price]] = {}
        self.settlements: dict[str, tuple[InputLocation, Result]] = {}
        self.priced: set[str] = set()
        self._unread: dict[str, Unread] = {}
        self._partial: set[str] = set()

    def read(self, files: SourceFiles, name: str) -> Iterator[SourceItem]:
        """Take a file in; return what of it is not read."""
        self._partial = files.partial
        self._unread = {kind: Unread(columns, "field") for kind, columns in COLUMNS.items()}
        for location, value in json_values(files, name):
            yield from self._value(location, value)

    def contents(self) -> Iterator[Contents | SourceItem]:
        """Return the markets in order of their openings, and what is not carried over."""
        markets: list[tuple[str, Market]] = []
        for ticker, (location, record) in self.markets.items():
            try:
                event = self.events.get(text_in(record, "event_ticker"), {})
                markets.append((ticker, read_market(location, record, event)))
            except Refused as refused:
                yield location, refused.about(f"the market {ticker[:80]!r}")
        markets.sort(key=lambda each: (each[1].opens_at, each[0]))
        for ticker, market in markets:
            answered, notes = self.answered(ticker, market)
            yield from notes
            prices = in_order(self.trades.pop(ticker, [])) + self.candlesticks.pop(ticker, [])
            trades = None if self._fills is None else [*trades_of(self._fills.pop(ticker, {}).values())]
            yield Contents(answered, prices, trades)
        for prices in (*self.trades.values(), *self.candlesticks.values()):
            yield from ((price.location, NotCarried(NO_MARKET)) for price in prices)
        known = {ticker: market.name for ticker, market in markets}
        yield from (
            (location, NotCarried(NO_MARKET))
            for name, (location, _) in self.settlements.items()
            if name not in self.markets
        )
        for fills in (self._fills or {}).values():
            yield from ((fill.location, NotCarried(NO_MARKET)) for fill in fills.values())
        for location, value in self._settled:
            if self._subaccounts:
                yield location, NotCarried(SUBACCOUNTS)
            elif (name := known.get(text_in(value, "ticker"))) is not None:
                self.published.append(published_in(location, value, name))

    def answered(self, ticker: str, market: Market) -> tuple[Market, list[SourceItem]]:
        """Return a market with its answer, which a settlement says if its record does not, and what is to be said."""
        location, record = self.markets[ticker]
        try:
            said = result_in(record)
        except Refused as refused:
            return market, [(location, refused.about(f"the market {ticker[:80]!r}"))]
        if ticker in self.settlements:
            where, settled = self.settlements[ticker]
            if said is not None and said.said != settled.said:
                detail = f"{location.where()} says {said.said!r} for the same market; neither counts"
                return market, [(where, Refused("bad_source", "market_result", settled.said, detail))]
            said = settled if said is None else said._replace(at=settled.at if said.at is None else said.at)
        if said is None:
            return market, []
        answer = answer_of(market, said, text_in(record, "status").lower())
        return (
            (market, [(location, answer)]) if isinstance(answer, NotCarried) else (market._replace(answer=answer), [])
        )

    def _value(self, location: InputLocation, value: Any) -> Iterator[SourceItem]:
        """Take in an answer of the API, or a part of one."""
        if isinstance(value, Refused):
            yield location, value
        elif is_nested_too_deep(location):
            yield location, NotCarried(OTHER_JSON)
        elif isinstance(value, list):
            yield from self._each(location, value, "item")
        elif not isinstance(value, dict):
            yield location, NotCarried(OTHER_JSON)
        else:
            try:
                yield from self._object(location, value)
            except Refused as refused:
                yield location, refused

    def _each(self, location: InputLocation, values: Sequence[Any], noun: str) -> Iterator[SourceItem]:
        for number, value in enumerate(values, 1):
            yield from self._value(inside(location, noun)._replace(line=number), value)

    def _object(self, location: InputLocation, value: Record) -> Iterator[SourceItem]:
        parts = [part for part in _PARTS if isinstance(value.get(part), list | dict)]
        if "candlesticks" in value:
            ticker = text_in(value, "ticker") or text_in(value, "market_ticker")
            yield from self._candlesticks(location, ticker, list_in(value, "candlesticks"))
        elif "market_candlesticks" in value:
            yield from self._candlesticks_of_event(location, value)
        elif "event_ticker" in value and "ticker" not in value:
            yield from self._unread["event"].of(location, value)
            self.events[text_in(value, "event_ticker")] = {
                name: value[name] for name in COLUMNS["event"].used if name in value and name != "markets"
            }
            yield from self._each(location, list_in(value, "markets"), "market")
        elif parts:
            for part in parts:
                nested = value[part]
                yield from self._each(location, nested if isinstance(nested, list) else [nested], part)
        elif "market_result" in value:
            yield from self._settlement(location, value)
        elif is_fill(value):
            yield from self._fill(location, value)
        elif "ticker" in value and ("yes_price" in value or "yes_price_dollars" in value):
            yield from self._trade(location, value)
        elif "ticker" in value:
            yield from self._unread["market"].of(location, value)
            if "result" not in value:
                self._partial.add(location.file)  # it does not say that it has no answer
            kept = {name: value[name] for name in COLUMNS["market"].used if name in value}
            self.markets[text_in(value, "ticker")] = (location, kept)
        else:
            yield location, NotCarried(OTHER_JSON)

    def _settlement(self, location: InputLocation, value: Record) -> Iterator[SourceItem]:
        yield from self._unread["settlement"].of(location, value)
        self.settlements[text_in(value, "ticker")] = (location, settlement_in(value))
        if self._fills is not None:
            published_in(location, value, "")  # it is refused here, if it cannot be read
            self._settled.append((location, {name: value.get(name) for name in COLUMNS["settlement"].used}))

    def _fill(self, location: InputLocation, value: Record) -> Iterator[SourceItem]:
        """Take in a fill of an account, once."""
        if self._fills is None:
            yield location, NotCarried(NOT_ASKED)
            return
        yield from self._unread["fill"].of(location, value)
        fill, ticker = read_fill(location, value), text_in(value, "ticker") or text_in(value, "market_ticker")
        self._subaccounts |= fill.who != ACCOUNT
        if self._fills.setdefault(ticker, {}).setdefault(fill.name, fill) is not fill:
            yield location, KNOWN

    def _trade(self, location: InputLocation, value: Record) -> Iterator[SourceItem]:
        yield from self._unread["trade"].of(location, value)
        at, price, ticker = instant_in(value, "created_time"), dollars_in(value, "yes_price"), text_in(value, "ticker")
        if at is None or price is None:
            raise Refused("bad_source", "created_time" if at is None else "yes_price_dollars", None, "it is missing")
        self.priced.add(f"kalshi {ticker}")
        chances = (price, PROBABILITY - price)
        self.trades.setdefault(ticker, []).append(Price(at, location, chances, who=PLATFORM.title))

    def _candlesticks_of_event(self, location: InputLocation, value: Record) -> Iterator[SourceItem]:
        tickers, rows = list_in(value, "market_tickers"), list_in(value, "market_candlesticks")
        if len(tickers) != len(rows):
            raise Refused("bad_source", "market_candlesticks", None, "not a list for each of market_tickers")
        for ticker, row in zip(tickers, rows, strict=True):
            yield from self._candlesticks(location, str(ticker), row if isinstance(row, list) else [row])

    def _candlesticks(self, location: InputLocation, ticker: str, values: Sequence[Any]) -> Iterator[SourceItem]:
        """Take in candlesticks. A price of 0 for a bid, and of 1 for an ask, is none."""
        if values:
            self.priced.add(f"kalshi {ticker}")
        prices = self.candlesticks.setdefault(ticker, [])
        for number, value in enumerate(values, 1):
            candlestick_location = inside(location, "candlestick")._replace(line=number)
            try:
                if not isinstance(value, dict):
                    raise Refused("bad_source", "candlesticks", None, "not an object")
                yield from self._unread["candlestick"].of(candlestick_location, value)
                at = epoch_in(value, "end_period_ts")
                if at is None:
                    raise Refused("bad_source", "end_period_ts", None, "it is missing")
                sides = []
                for side in ("price", "yes_bid", "yes_ask"):
                    part = value.get(side) or {}
                    if not isinstance(part, dict):
                        raise Refused("bad_source", side, None, "not an object with a `close`")
                    yield from self._unread["sides"].of(candlestick_location, part)
                    sides.append(dollars_in(part, "close"))
            except Refused as refused:
                yield candlestick_location, refused
                continue
            price, bid, ask = sides
            chances = () if price is None else (price, PROBABILITY - price)
            bid, ask = bid or None, None if ask == PROBABILITY else ask
            if (price, bid, ask) != (None, None, None):
                prices.append(Price(at, candlestick_location, chances, bid, ask, who=PLATFORM.title if chances else ""))
