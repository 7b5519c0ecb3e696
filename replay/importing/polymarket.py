"""Read Polymarket's markets, events, prices and trades, saved as the Gamma, CLOB and Data APIs answer them.

A market is a question. Its price histories are forecasts of a participant that is named for the platform, and quotes.
The price in the record of an open market is a quote alone, since a record does not have the prices before it.

Trades are those of wallets. Profit is at average cost: a complete set that is split from money, or merged into it,
costs or brings each of its outcomes an equal part, and a redemption is what the resolution pays.

Source: Polymarket, documentation, "Gamma Structure", "Get prices history", "Negative Risk Markets", "Resolution", "Get
trades for a user or markets", "Get user activity", "Get current positions for a user", "Get closed positions for a
user"; the fields of answers from 2020 to 2026.
"""

import re
from array import array
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.core.values import LARGEST_POOL, MONEY, PROBABILITY
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.replay.importing.json_files import (
    Record,
    epoch_in,
    inside,
    is_nested_too_deep,
    json_values,
    number_in,
    text_in,
)
from forecast_ledger.replay.importing.market_items import Contents, Market, Platform, Price, Trade, exact_in
from forecast_ledger.replay.importing.polymarket_markets import COLUMNS, MarketRecord, read_market
from forecast_ledger.replay.importing.source_files import SourceFiles
from forecast_ledger.replay.importing.source_items import KNOWN, NotCarried, Published, SourceItem, Unread

TITLE = "Polymarket"
NOT_ASKED = "trades and positions of accounts, which --trades records and compares"
NO_MARKET_OF_TRADE = "a trade or a position in a market that the files do not have"
REDEEMED = "a redemption of shares, which the resolution pays"
_SIGNS = {"BUY": 1, "SELL": -1, "SPLIT": 1, "MERGE": -1}
_ROUNDED = 100  # 1e-6: numbers of positions have four decimals, rounded twice
_FINEST = 10**6  # average prices are rounded to 1e-6


class _Row(NamedTuple):
    """A trade of which the outcome is still named by its token, or by its label. sets: it is one of complete sets."""

    trade: Trade
    token: str
    label: str
    sets: bool


def is_of_account(value: Record) -> bool:
    """Return whether an object is a trade, another activity or a position of a wallet.

    >>> is_of_account({"proxyWallet": "0x1", "size": 2}), is_of_account({"conditionId": "0x2"})
    (True, False)
    """
    return "proxyWallet" in value and ("size" in value or "realizedPnl" in value)


class Accounts:
    """Trades and positions of wallets, by the condition of their market."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, _Row]] = {}  # by condition and name
        self._positions: list[tuple[InputLocation, Record]] = []

    def take(self, location: InputLocation, value: Record) -> Iterator[SourceItem]:
        """Take in a trade or a position; return what is not carried over, or known from another file.

        Refuses: bad_source, bad_number, out_of_range.
        """
        if "realizedPnl" in value:
            self._positions.append((location, value))
            return
        row = _row(location, value)
        if isinstance(row, NotCarried):
            yield location, row
            return
        rows = self._rows.setdefault(text_in(value, "conditionId"), {})
        before = rows.get(row.trade.name)
        if before is not None:
            yield location, KNOWN
        if before is None or value.get("usdcSize") is not None:  # the money itself, not a product of rounded numbers
            rows[row.trade.name] = row

    def trades_of(self, record: MarketRecord) -> Iterator[Trade | SourceItem]:
        """Return the trades of a market, once, and what of them is not carried over."""
        for condition in record.names:
            for row in self._rows.pop(condition, {}).values():
                outcome = None if row.sets else _outcome(record, row.token, row.label)
                if outcome is None and not row.sets:
                    yield row.trade.location, NotCarried(NO_MARKET_OF_TRADE)
                else:
                    yield row.trade._replace(outcome=outcome)

    def published(self, records: dict[str, MarketRecord]) -> Iterator[Published | SourceItem]:
        """Return the published results of positions, and what is of no market. records: by condition.

        Refuses: bad_source, bad_number, out_of_range.
        """
        for rows in self._rows.values():
            yield from ((row.trade.location, NotCarried(NO_MARKET_OF_TRADE)) for row in rows.values())
        for location, value in self._positions:
            record = records.get(text_in(value, "conditionId"))
            outcome = None if record is None else _outcome(record, text_in(value, "asset"), text_in(value, "outcome"))
            if record is None or outcome is None:
                yield location, NotCarried(NO_MARKET_OF_TRADE)
                continue
            bought = _money(value, "totalBought") or 0
            names = ("realizedPnl", "cashPnl", "size") if "cashPnl" in value else ("realizedPnl",)
            results = {name: amount for name in names if (amount := _money(value, name)) is not None}
            if "cashPnl" not in value and "realizedPnl" in results:
                results = {"closed realizedPnl": results["realizedPnl"]}
            yield Published(
                location,
                TITLE,
                text_in(value, "proxyWallet"),
                (record.market.name,),
                results,
                outcome=record.market.outcomes[outcome],
                mark=number_in(value, "curPrice", PROBABILITY, 0, PROBABILITY),
                near=_ROUNDED + bought // _FINEST,
            )


def _money(value: Record, field: str) -> int | None:
    return number_in(value, field, MONEY, -LARGEST_POOL, LARGEST_POOL)


def _row(location: InputLocation, value: Record) -> _Row | NotCarried:
    """Return a trade, or what else it is."""
    kind, side = text_in(value, "type").upper() or "TRADE", text_in(value, "side").upper()
    if kind == "REDEEM":
        return NotCarried(REDEEMED)
    if kind not in {"TRADE", "SPLIT", "MERGE"}:
        return NotCarried(f"an activity of the type {kind[:40]}, which is no trade")
    word = side if kind == "TRADE" else kind
    fields: dict[str, Any] = {
        "side": _SIGNS.get(word),
        "timestamp": epoch_in(value, "timestamp"),
        "conditionId": text_in(value, "conditionId"),
        "proxyWallet": text_in(value, "proxyWallet"),
        "transactionHash": text_in(value, "transactionHash"),
    }
    missing = next((name for name, content in fields.items() if not content), None)
    if missing:
        raise Refused("bad_source", missing, None, "it is missing")
    size, token = exact_in(value, "size"), text_in(value, "asset") if kind == "TRADE" else ""
    amount = exact_in(value, "usdcSize") if value.get("usdcSize") is not None else size
    if value.get("usdcSize") is None and kind == "TRADE":
        amount = WIDE.multiply(size, exact_in(value, "price"))
    if size <= 0 or amount < 0:
        raise Refused("bad_source", "size", None, "not above 0, or its money is below 0")
    wallet, label = fields["proxyWallet"], text_in(value, "outcome")
    number = " ".join((fields["transactionHash"], wallet, word, token or label, str(size.normalize(WIDE))))
    trade = Trade(
        at=fields["timestamp"],
        location=location,
        name=number,
        who=wallet,
        outcome=None,
        shares=size * Decimal(fields["side"]),
        amount=amount,
        rounded=token or label,
    )
    return _Row(trade, token, label, sets=kind != "TRADE")


def _outcome(record: MarketRecord, token: str, label: str) -> int | None:
    """Return which outcome of a market a token is, or one of that name; None if it has none."""
    if token in record.tokens:
        return record.tokens.index(token)
    names = [name.lower() for name in record.market.outcomes]
    return names.index(label.lower()) if label.lower() in names else None


PLATFORM = Platform("polymarket", "Polymarket")
NO_MARKET = "prices of a market that the files do not have"
SECOND = "prices of the second outcome, which are the rest of those of the first"
SEVERAL = "prices of one of more than two outcomes, which are no forecast of all"
OTHER_JSON = "JSON that is no market, event, price history, trade or position"
_NAMED = ("market", "token_id", "tokenId", "asset_id")  # where an object with a history may name its token
_BETWEEN = re.compile(r"[ _.=]")  # parts of the name of a file, one of which may be the token of its history


class _History(NamedTuple):
    """Prices of a token, 1e-9, at instants, µs. numbers: which item of the file each is."""

    location: InputLocation
    times: "array[int]"
    prices: "array[int]"
    numbers: "array[int]"


def _left_out(market: Market, histories: Sequence[tuple[int, _History]]) -> Iterator[SourceItem]:
    """Return which histories of a market are not read."""
    outcomes = {outcome for outcome, _ in histories}
    for outcome, history in histories:
        if len(market.outcomes) > 2:
            yield history.location, NotCarried(SEVERAL)
        elif outcome and 0 in outcomes:
            yield history.location, NotCarried(SECOND)


def _history_prices(market: Market, histories: Sequence[tuple[int, _History]]) -> Iterator[Price]:
    """Return the prices of the first outcome, or of the second if there are no others, as forecasts and quotes."""
    read = min((outcome for outcome, _ in histories), default=0)
    for outcome, history in histories:
        if outcome != read or len(market.outcomes) > 2:
            continue
        for at, price, number in zip(history.times, history.prices, history.numbers, strict=True):
            first = PROBABILITY - price if outcome else price
            location = history.location._replace(line=number)
            yield Price(at, location, (first, PROBABILITY - first), who=PLATFORM.title)


class Copy:
    """What the files say.

    newest: of each question the record that was made last, of several the last one. prices: those of all records.
    histories: by what their file or object names them. matched: question -> its histories, each with the outcome.
    priced: questions that have a history.
    """

    def __init__(self, *, trades: bool) -> None:
        self.published: list[Published] = []
        self.people: dict[str, str] = {}
        self._accounts = Accounts() if trades else None
        self.newest: dict[str, MarketRecord] = {}
        self.prices: dict[str, list[Price]] = {}
        self.histories: dict[str, list[_History]] = {}
        self.matched: dict[str, list[tuple[int, _History]]] = {}
        self.priced: set[str] = set()
        self._unread: dict[str, Unread] = {}
        self._partial: set[str] = set()

    def read(self, files: SourceFiles, name: str) -> Iterator[SourceItem]:
        """Take a file in; return what of it is not read."""
        self._partial = files.partial
        self._unread = {kind: Unread(columns, "field") for kind, columns in COLUMNS.items()}
        bare: _History | None = None  # of a file that is a list of prices
        for location, value in json_values(files, name):
            if isinstance(value, dict) and {"t", "p"} <= value.keys():
                bare = bare or self._history(location, _stem(name))
                yield from self._point(bare, value, location)
            else:
                yield from self._value(location, value, {})

    def contents(self) -> Iterator[Contents | SourceItem]:
        """Return the markets in order of their openings, and what is not carried over."""
        yield from self.match()
        for record in sorted(self.newest.values(), key=lambda each: (each.market.opens_at, each.market.name)):
            histories = self.matched.pop(record.market.name, [])
            yield from _left_out(record.market, histories)
            prices = [*self.prices.pop(record.market.name, ()), *_history_prices(record.market, histories)]
            trades = None
            if self._accounts is not None:
                items = [*self._accounts.trades_of(record)]
                trades = [each for each in items if isinstance(each, Trade)]
                yield from (each for each in items if not isinstance(each, Trade))
            yield Contents(record.market, prices, trades)
        yield from self._publish()

    def _publish(self) -> Iterator[SourceItem]:
        """Note the published results; return what is of no market."""
        conditions = {name: record for record in self.newest.values() for name in record.names}
        for published in self._accounts.published(conditions) if self._accounts is not None else ():
            if isinstance(published, Published):
                self.published.append(published)
            else:
                yield published

    def _of_account(self, location: InputLocation, value: Record) -> Iterator[SourceItem]:
        """Take in a trade or a position of a wallet."""
        if self._accounts is None:
            yield location, NotCarried(NOT_ASKED)
            return
        kind = "position" if "realizedPnl" in value else "activity"
        yield from self._unread[kind].of(location, value)
        try:
            yield from self._accounts.take(location, value)
        except Refused as refused:
            yield location, refused.about(f"the {kind} of {str(value.get('proxyWallet'))[:80]!r}")

    def match(self) -> Iterator[SourceItem]:
        """Give each market its histories; return those of no market.

        A history is named by the token of an outcome, or, if it is of the first, by the market's condition, id or slug.
        """
        known: dict[str, tuple[str, int]] = {}
        for record in self.newest.values():
            known |= dict.fromkeys(record.names, (record.market.name, 0))
            known |= {token: (record.market.name, outcome) for outcome, token in enumerate(record.tokens)}
        for name, histories in self.histories.items():
            target = next((known[part] for part in (name, *_BETWEEN.split(name)) if part in known), None)
            if target is None:
                yield from ((each.location, NotCarried(NO_MARKET)) for each in histories)
            else:
                question, outcome = target
                if any(each.times for each in histories):  # one without prices is no answer about them
                    self.priced.add(question)
                self.matched.setdefault(question, []).extend((outcome, each) for each in histories)
        self.histories.clear()

    def _value(self, location: InputLocation, value: Any, event: Record) -> Iterator[SourceItem]:
        """Take in an answer of the API, or a part of one. event: the one that it is part of."""
        if isinstance(value, Refused):
            yield location, value
        elif is_nested_too_deep(location):
            yield location, NotCarried(OTHER_JSON)
        elif isinstance(value, list):
            yield from self._each(location, value, "item", event)
        elif not isinstance(value, dict):
            yield location, NotCarried(OTHER_JSON)
        elif "history" in value:
            yield from self._histories_in(location, value)
        elif isinstance(value.get("markets"), list):
            if value.get("title") or value.get("slug"):
                yield from self._unread["event"].of(location, value)
                event = value
            yield from self._each(location, value["markets"], "market", event)
        elif is_of_account(value):
            yield from self._of_account(location, value)
        elif "question" in value or "conditionId" in value:
            yield from self._market(location, value, event)
        elif isinstance(value.get("events"), list):
            yield from self._each(location, value["events"], "event", event)
        elif isinstance(value.get("data"), list):
            yield from self._each(location, value["data"], "item", event)
        else:
            yield location, NotCarried(OTHER_JSON)

    def _each(self, location: InputLocation, values: Sequence[Any], noun: str, event: Record) -> Iterator[SourceItem]:
        for number, value in enumerate(values, 1):
            yield from self._value(inside(location, noun)._replace(line=number), value, event)

    def _market(self, location: InputLocation, value: Record, event: Record) -> Iterator[SourceItem]:
        yield from self._unread["market"].of(location, value)
        if not {"closed", "outcomePrices"} <= value.keys():
            self._partial.add(location.file)  # it does not say that it has no answer
        try:
            record = read_market(location, value, event)
        except Refused as refused:
            yield location, refused.about(f"the market {str(value.get('question') or value.get('id'))[:80]!r}")
            return
        yield from ((location, note) for note in record.notes)
        name = record.market.name
        if name not in self.newest or record.made_at >= self.newest[name].made_at:
            self.newest[name] = record
        if record.price is not None:
            self.prices.setdefault(name, []).append(record.price)

    # --- price histories

    def _histories_in(self, location: InputLocation, value: Record) -> Iterator[SourceItem]:
        """Take in the history of a token, or those of several by their tokens."""
        yield from self._unread["prices"].of(location, value)
        given = value["history"]
        name = next((str(value[key]) for key in _NAMED if value.get(key)), _stem(location.file))
        for token, points in given.items() if isinstance(given, dict) else [(name, given)]:
            price_location = inside(location, "price")
            if not isinstance(points, list):
                yield location, Refused("bad_source", "history", None, "not a list of prices")
                continue
            history = self._history(price_location, token)
            for number, point in enumerate(points, 1):
                yield from self._point(history, point, price_location._replace(line=number))

    def _history(self, location: InputLocation, name: str) -> _History:
        history = _History(location._replace(line=0), array("q"), array("q"), array("q"))
        self.histories.setdefault(name, []).append(history)
        return history

    def _point(self, history: _History, point: Any, location: InputLocation) -> Iterator[SourceItem]:
        try:
            if not isinstance(point, dict):
                raise Refused("bad_source", "history", None, "not an object with `t` and `p`")
            yield from self._unread["prices"].of(location, point)
            at, price = epoch_in(point, "t"), number_in(point, "p", PROBABILITY, 0, PROBABILITY)
            if at is None or price is None:
                raise Refused("bad_source", "t" if at is None else "p", None, "it is missing")
        except Refused as refused:
            yield location, refused
        else:
            history.times.append(at)
            history.prices.append(price)
            history.numbers.append(location.line)


def _stem(name: str) -> str:
    return name.rpartition("/")[2].rpartition(".")[0]
