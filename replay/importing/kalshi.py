"""Read Kalshi's markets, events, trades, candlesticks and settlements, saved as its API answers them.

The price of yes in the last trade is a forecast of a participant that is named for the platform; trades and
candlesticks are quotes. Trades of the API are anonymous, so nobody else forecasts.

Source: Kalshi, API documentation, "Get Markets", "Get Events", "Get Trades", "Get Market Candlesticks", "Get
Settlements".
"""

from collections.abc import Iterator, Sequence
from typing import Any

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.replay.importing.json_files import (
    Record,
    epoch_in,
    inside,
    instant_in,
    is_nested_too_deep,
    json_values,
    list_in,
    text_in,
)
from forecast_ledger.replay.importing.kalshi_fields import COLUMNS
from forecast_ledger.replay.importing.kalshi_markets import (
    Result,
    answer_of,
    dollars_in,
    read_market,
    result_in,
    settlement_in,
)
from forecast_ledger.replay.importing.kalshi_trades import (
    ACCOUNT,
    NOT_ASKED,
    SUBACCOUNTS,
    Fill,
    is_fill,
    published_in,
    read_fill,
    trades_of,
)
from forecast_ledger.replay.importing.market_items import Contents, Market, Platform, Price, in_order
from forecast_ledger.replay.importing.source_files import SourceFiles
from forecast_ledger.replay.importing.source_items import KNOWN, NotCarried, Published, SourceItem, Unread
from forecast_ledger.replay.writing.command_lines import InputPlace

PLATFORM = Platform("kalshi", "Kalshi")
NO_MARKET = "prices or a settlement of a market that the files do not have"
OTHER_JSON = "JSON that is no market, event, trade, candlestick, fill or settlement"
_PARTS = ("market", "event", "markets", "events", "trades", "settlements", "fills", "data")


class Copy:
    """What the files say: the last record of each market, events, and by ticker trades, candlesticks and settlements.

    priced: tickers of which trades or candlesticks are there.
    """

    def __init__(self, *, trades: bool) -> None:
        self.published: list[Published] = []
        self.people: dict[str, str] = {}
        self._fills: dict[str, dict[str, Fill]] | None = {} if trades else None  # by ticker and name
        self._subaccounts = False
        self._settled: list[tuple[InputPlace, Record]] = []
        self.markets: dict[str, tuple[InputPlace, Record]] = {}
        self.events: dict[str, Record] = {}
        self.trades: dict[str, list[Price]] = {}
        self.candlesticks: dict[str, list[Price]] = {}
        self.settlements: dict[str, tuple[InputPlace, Result]] = {}
        self.priced: set[str] = set()
        self._unread: dict[str, Unread] = {}
        self._partial: set[str] = set()

    def read(self, files: SourceFiles, name: str) -> Iterator[SourceItem]:
        """Take a file in; return what of it is not read."""
        self._partial = files.partial
        self._unread = {kind: Unread(columns, "field") for kind, columns in COLUMNS.items()}
        for place, value in json_values(files, name):
            yield from self._value(place, value)

    def has_prices(self, question: str) -> bool:
        """Return whether trades or candlesticks of a question are there."""
        return question.partition(" ")[2] in self.priced

    def contents(self) -> Iterator[Contents | SourceItem]:
        """Return the markets in order of their openings, and what is not carried over."""
        markets: list[tuple[str, Market]] = []
        for ticker, (place, record) in self.markets.items():
            try:
                event = self.events.get(text_in(record, "event_ticker"), {})
                markets.append((ticker, read_market(place, record, event)))
            except Refused as refused:
                yield place, refused.about(f"the market {ticker[:80]!r}")
        markets.sort(key=lambda each: (each[1].opens_at, each[0]))
        for ticker, market in markets:
            answered, notes = self.answered(ticker, market)
            yield from notes
            prices = in_order(self.trades.pop(ticker, [])) + self.candlesticks.pop(ticker, [])
            trades = None if self._fills is None else [*trades_of(self._fills.pop(ticker, {}).values())]
            yield Contents(answered, prices, trades)
        for prices in (*self.trades.values(), *self.candlesticks.values()):
            yield from ((price.place, NotCarried(NO_MARKET)) for price in prices)
        known = {ticker: market.name for ticker, market in markets}
        yield from (
            (place, NotCarried(NO_MARKET)) for name, (place, _) in self.settlements.items() if name not in self.markets
        )
        for fills in (self._fills or {}).values():
            yield from ((fill.place, NotCarried(NO_MARKET)) for fill in fills.values())
        for place, value in self._settled:
            if self._subaccounts:
                yield place, NotCarried(SUBACCOUNTS)
            elif (name := known.get(text_in(value, "ticker"))) is not None:
                self.published.append(published_in(place, value, name))

    def answered(self, ticker: str, market: Market) -> tuple[Market, list[SourceItem]]:
        """Return a market with its answer, which a settlement says if its record does not, and what is to be said."""
        place, record = self.markets[ticker]
        try:
            said = result_in(record)
        except Refused as refused:
            return market, [(place, refused.about(f"the market {ticker[:80]!r}"))]
        if ticker in self.settlements:
            where, settled = self.settlements[ticker]
            if said is not None and said.said != settled.said:
                detail = f"{place.where()} says {said.said!r} for the same market; neither counts"
                return market, [(where, Refused("bad_source", "market_result", settled.said, detail))]
            said = settled if said is None else said._replace(at=settled.at if said.at is None else said.at)
        if said is None:
            return market, []
        answer = answer_of(market, said, text_in(record, "status").lower())
        return (market, [(place, answer)]) if isinstance(answer, NotCarried) else (market._replace(answer=answer), [])

    def _value(self, place: InputPlace, value: Any) -> Iterator[SourceItem]:
        """Take in an answer of the API, or a part of one."""
        if isinstance(value, Refused):
            yield place, value
        elif is_nested_too_deep(place):
            yield place, NotCarried(OTHER_JSON)
        elif isinstance(value, list):
            yield from self._each(place, value, "item")
        elif not isinstance(value, dict):
            yield place, NotCarried(OTHER_JSON)
        else:
            try:
                yield from self._object(place, value)
            except Refused as refused:
                yield place, refused

    def _each(self, place: InputPlace, values: Sequence[Any], noun: str) -> Iterator[SourceItem]:
        for number, value in enumerate(values, 1):
            yield from self._value(inside(place, noun)._replace(line=number), value)

    def _object(self, place: InputPlace, value: Record) -> Iterator[SourceItem]:
        parts = [part for part in _PARTS if isinstance(value.get(part), list | dict)]
        if "candlesticks" in value:
            ticker = text_in(value, "ticker") or text_in(value, "market_ticker")
            yield from self._candlesticks(place, ticker, list_in(value, "candlesticks"))
        elif "market_candlesticks" in value:
            yield from self._candlesticks_of_event(place, value)
        elif "event_ticker" in value and "ticker" not in value:
            yield from self._unread["event"].of(place, value)
            self.events[text_in(value, "event_ticker")] = {
                name: value[name] for name in COLUMNS["event"].used if name in value and name != "markets"
            }
            yield from self._each(place, list_in(value, "markets"), "market")
        elif parts:
            for part in parts:
                nested = value[part]
                yield from self._each(place, nested if isinstance(nested, list) else [nested], part)
        elif "market_result" in value:
            yield from self._settlement(place, value)
        elif is_fill(value):
            yield from self._fill(place, value)
        elif "ticker" in value and ("yes_price" in value or "yes_price_dollars" in value):
            yield from self._trade(place, value)
        elif "ticker" in value:
            yield from self._unread["market"].of(place, value)
            if "result" not in value:
                self._partial.add(place.file)  # it does not say that it has no answer
            kept = {name: value[name] for name in COLUMNS["market"].used if name in value}
            self.markets[text_in(value, "ticker")] = (place, kept)
        else:
            yield place, NotCarried(OTHER_JSON)

    def _settlement(self, place: InputPlace, value: Record) -> Iterator[SourceItem]:
        yield from self._unread["settlement"].of(place, value)
        self.settlements[text_in(value, "ticker")] = (place, settlement_in(value))
        if self._fills is not None:
            published_in(place, value, "")  # it is refused here, if it cannot be read
            self._settled.append((place, {name: value.get(name) for name in COLUMNS["settlement"].used}))

    def _fill(self, place: InputPlace, value: Record) -> Iterator[SourceItem]:
        """Take in a fill of an account, once."""
        if self._fills is None:
            yield place, NotCarried(NOT_ASKED)
            return
        yield from self._unread["fill"].of(place, value)
        fill, ticker = read_fill(place, value), text_in(value, "ticker") or text_in(value, "market_ticker")
        self._subaccounts |= fill.who != ACCOUNT
        if self._fills.setdefault(ticker, {}).setdefault(fill.name, fill) is not fill:
            yield place, KNOWN

    def _trade(self, place: InputPlace, value: Record) -> Iterator[SourceItem]:
        yield from self._unread["trade"].of(place, value)
        at, price, ticker = instant_in(value, "created_time"), dollars_in(value, "yes_price"), text_in(value, "ticker")
        if at is None or price is None:
            raise Refused("bad_source", "created_time" if at is None else "yes_price_dollars", None, "it is missing")
        self.priced.add(ticker)
        chances = (price, PROBABILITY - price)
        self.trades.setdefault(ticker, []).append(Price(at, place, chances, who=PLATFORM.title))

    def _candlesticks_of_event(self, place: InputPlace, value: Record) -> Iterator[SourceItem]:
        tickers, rows = list_in(value, "market_tickers"), list_in(value, "market_candlesticks")
        if len(tickers) != len(rows):
            raise Refused("bad_source", "market_candlesticks", None, "not a list for each of market_tickers")
        for ticker, row in zip(tickers, rows, strict=True):
            yield from self._candlesticks(place, str(ticker), row if isinstance(row, list) else [row])

    def _candlesticks(self, place: InputPlace, ticker: str, values: Sequence[Any]) -> Iterator[SourceItem]:
        """Take in candlesticks. A price of 0 for a bid, and of 1 for an ask, is none."""
        if values:
            self.priced.add(ticker)
        found = self.candlesticks.setdefault(ticker, [])
        for number, value in enumerate(values, 1):
            own = inside(place, "candlestick")._replace(line=number)
            try:
                if not isinstance(value, dict):
                    raise Refused("bad_source", "candlesticks", None, "not an object")
                yield from self._unread["candlestick"].of(own, value)
                at = epoch_in(value, "end_period_ts")
                if at is None:
                    raise Refused("bad_source", "end_period_ts", None, "it is missing")
                sides = []
                for side in ("price", "yes_bid", "yes_ask"):
                    part = value.get(side) or {}
                    if not isinstance(part, dict):
                        raise Refused("bad_source", side, None, "not an object with a `close`")
                    yield from self._unread["sides"].of(own, part)
                    sides.append(dollars_in(part, "close"))
            except Refused as refused:
                yield own, refused
                continue
            price, bid, ask = sides
            chances = () if price is None else (price, PROBABILITY - price)
            bid, ask = bid or None, None if ask == PROBABILITY else ask
            if (price, bid, ask) != (None, None, None):
                found.append(Price(at, own, chances, bid, ask, who=PLATFORM.title if chances else ""))
