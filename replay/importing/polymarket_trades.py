"""Trades of Polymarket's Data API as trades of its wallets, and the profits that it publishes of positions.

Profit is at average cost. A complete set that is split from money, or merged into it, costs or brings each of its
outcomes an equal part. A redemption is what the resolution pays.

Source: Polymarket, documentation, "Get trades for a user or markets", "Get user activity", "Get current positions for a
user", "Get closed positions for a user"; fields of answers of 2026.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.core.values import LARGEST_POOL, MONEY, PROBABILITY
from forecast_ledger.replay.importing.json_files import Record, epoch_in, number_in, text_in
from forecast_ledger.replay.importing.market_trades import Trade, exact_in
from forecast_ledger.replay.importing.polymarket_markets import MarketRecord
from forecast_ledger.replay.importing.source_items import KNOWN, NotCarried, Published, SourceItem
from forecast_ledger.replay.writing.command_lines import InputPlace

TITLE = "Polymarket"
NOT_ASKED = "trades and positions of accounts, which --trades records and compares"
NO_MARKET = "a trade or a position in a market that the files do not have"
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
        self._positions: list[tuple[InputPlace, Record]] = []

    def take(self, place: InputPlace, value: Record) -> Iterator[SourceItem]:
        """Take in a trade or a position; return what is not carried over, or known from another file.

        Refuses: bad_source, bad_number, out_of_range.
        """
        if "realizedPnl" in value:
            self._positions.append((place, value))
            return
        row = _row(place, value)
        if isinstance(row, NotCarried):
            yield place, row
            return
        rows = self._rows.setdefault(text_in(value, "conditionId"), {})
        before = rows.get(row.trade.name)
        if before is not None:
            yield place, KNOWN
        if before is None or value.get("usdcSize") is not None:  # the money itself, not a product of rounded numbers
            rows[row.trade.name] = row

    def trades_of(self, record: MarketRecord) -> Iterator[Trade | SourceItem]:
        """Return the trades of a market, once, and what of them is not carried over."""
        for condition in record.names:
            for row in self._rows.pop(condition, {}).values():
                outcome = None if row.sets else _outcome(record, row.token, row.label)
                if outcome is None and not row.sets:
                    yield row.trade.place, NotCarried(NO_MARKET)
                else:
                    yield row.trade._replace(outcome=outcome)

    def published(self, records: dict[str, MarketRecord]) -> Iterator[Published | SourceItem]:
        """Return the published results of positions, and what is of no market. records: by condition.

        Refuses: bad_source, bad_number, out_of_range.
        """
        for rows in self._rows.values():
            yield from ((row.trade.place, NotCarried(NO_MARKET)) for row in rows.values())
        for place, value in self._positions:
            record = records.get(text_in(value, "conditionId"))
            outcome = None if record is None else _outcome(record, text_in(value, "asset"), text_in(value, "outcome"))
            if record is None or outcome is None:
                yield place, NotCarried(NO_MARKET)
                continue
            bought = _money(value, "totalBought") or 0
            names = ("realizedPnl", "cashPnl", "size") if "cashPnl" in value else ("realizedPnl",)
            results = {name: found for name in names if (found := _money(value, name)) is not None}
            if "cashPnl" not in value and "realizedPnl" in results:
                results = {"closed realizedPnl": results["realizedPnl"]}
            yield Published(
                place,
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


def _row(place: InputPlace, value: Record) -> _Row | NotCarried:
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
    missing = next((name for name, found in fields.items() if not found), None)
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
        place=place,
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
