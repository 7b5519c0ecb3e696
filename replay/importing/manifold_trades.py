"""Bets of Manifold as trades, and the results that it publishes of them.

A market maker gives shares for money; a bet says how many, and for how much, with its fees. In a market of several
answers of which one is right, no of an answer is a share of every other. The profit that Manifold publishes is what the
shares are paid, or worth, and what was received for others, less what was paid.

Source: Manifold, API documentation, "GET /v0/market/[marketId]/positions"; Manifold's published code,
`common/src/bet.ts`, `redeem.ts`, `calculate.ts` ("getProfitMetrics", "calculateTotalSpentAndShares"),
`contract-metric.ts`.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import LARGEST_POOL, MONEY
from forecast_ledger.replay.importing.json_files import Record, epoch_in, flag_in, list_in, number_in, text_in
from forecast_ledger.replay.importing.manifold_markets import PLATFORM, MarketRecord
from forecast_ledger.replay.importing.market_trades import Trade, exact_in
from forecast_ledger.replay.importing.source_items import NotCarried, Published
from forecast_ledger.replay.writing.command_lines import InputPlace

NO_TRADE = "a bet that is no trade of shares for money: it names no user, id or side, or has no shares"
ONE_ANSWER = "published results of one answer of a market of which one answer is right"
_NEAR = Decimal("0.000001")
_RESULTS = ("profit", "payout", "invested")


_Part = tuple[str, int, Decimal, Decimal]


class BetTrade(NamedTuple):
    """What a bet traded. answer: "" of a market of yes and no. side: YES or NO.

    parts: the id of each, when, how many shares, and for how much; both below 0 if they were sold.
    """

    place: InputPlace
    owner: str
    answer: str
    side: str
    is_redemption: bool
    parts: tuple[_Part, ...]


def trade_in(place: InputPlace, value: Record) -> BetTrade | NotCarried | None:
    """Return what a bet traded; None of one that traded nothing. Refuses: bad_source, bad_number, out_of_range."""
    shares, amount = exact_in(value, "shares"), exact_in(value, "amount")
    if not shares and not amount:
        return None
    name, owner, side = (text_in(value, field) for field in ("id", "userId", "outcome"))
    if not (name and owner and side in {"YES", "NO"}) or shares * amount < 0 or not shares:
        return NotCarried(NO_TRADE)
    at = epoch_in(value, "createdTime", milliseconds=True) or 0
    parts = tuple(_fills(value, name, at)) if value.get("limitProb") is not None else ()
    off = (sum((part[2] for part in parts), -shares), sum((part[3] for part in parts), -amount))
    if not parts or max(map(abs, off)) > _NEAR or any(part[2] * shares <= 0 for part in parts):
        parts = ((name, at, shares, amount),)
    redeems = flag_in(value, "isRedemption") is True
    return BetTrade(place, owner, text_in(value, "answerId"), side, redeems, parts)


def _fills(order: Record, name: str, at: int) -> Iterable[_Part]:
    """Return the parts in which a limit order was filled, none before it was made. A newer copy can have more."""
    for number, fill in enumerate(list_in(order, "fills"), 1):
        if not isinstance(fill, dict):
            raise Refused("bad_source", "fills", None, "not a list of objects")
        filled_at = epoch_in(fill, "timestamp", milliseconds=True)
        yield f"{name} {number}", max(at, filled_at or at), exact_in(fill, "shares"), exact_in(fill, "amount")


def trades_of(bets: Iterable[BetTrade], answers: Sequence[str]) -> list[Trade]:
    """Return the trades of a question. answers: of its outcomes; of a question of yes and no, one.

    Redemptions come after the bets of their instant, which gave the shares.
    """
    trades = []
    for bet in sorted(bets, key=lambda each: each.is_redemption):
        is_no, several = bet.side == "NO", len(answers) > 1
        outcome = answers.index(bet.answer) if several else int(is_no)
        for name, at, shares, amount in bet.parts:
            trades.append(
                Trade(
                    at=at,
                    place=bet.place,
                    name=name,
                    who=bet.owner,
                    outcome=outcome,
                    shares=shares,
                    amount=abs(amount),
                    against=several and is_no,
                )
            )
    return trades


def position_in(value: Record) -> Record:
    """Return the fields of a published position that are compared."""
    return {name: value.get(name) for name in ("contractId", "answerId", "userId", "userUsername", *_RESULTS)}


def published_in(place: InputPlace, value: Record, record: MarketRecord) -> Published | NotCarried:
    """Return the published results of a position in a market, of which somebody is still named by the user's id.

    The money invested is that of one question, at average cost; of several answers it is another number.
    Refuses: bad_source, bad_number, out_of_range.
    """
    answer, markets = text_in(value, "answerId"), record.markets
    results = {
        name: number
        for name in _RESULTS
        if (number := number_in(value, name, MONEY, -LARGEST_POOL, LARGEST_POOL)) is not None
    }
    if answer and record.is_whole:
        return NotCarried(ONE_ANSWER)
    if answer and answer not in record.answers:
        return NotCarried(f"published results of an answer that the market does not have: {answer[:40]!r}")
    asked = markets if not answer else (markets[record.answers.index(answer)],)
    if len(asked) > 1 or record.is_whole:
        results.pop("invested", None)
    return Published(place, PLATFORM, text_in(value, "userId"), tuple(each.name for each in asked), results)
