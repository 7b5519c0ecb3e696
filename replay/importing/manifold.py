"""Read Manifold's markets and bets, as its API answers them or its data dump has them; bets as trades, if asked for.

The probability after a bet is a forecast of who made it, and of a participant that is named for the platform. As a
trade, a bet says how many shares a market maker gave, and for how much, with its fees. In a market of several answers
of which one is right, no of an answer is a share of every other. The profit that Manifold publishes is what the shares
are paid, or worth, and what was received for others, less what was paid.

Source: Manifold, API documentation, "GET /v0/market", "GET /v0/bets", "GET /v0/market/[marketId]/positions";
Manifold's published code, `common/src/bet.ts`, `contract.ts`, `answer.ts`, `api/market-types.ts`, `redeem.ts`,
`calculate.ts` ("getProfitMetrics", "calculateTotalSpentAndShares"), `contract-metric.ts`.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import LARGEST_CASH, LARGEST_POOL, MONEY, NEVER, PROBABILITY
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.replay.importing.json_files import (
    Record,
    epoch_in,
    flag_in,
    list_in,
    number_in,
    records,
    text_in,
)
from forecast_ledger.replay.importing.manifold_markets import COLUMNS, TITLE, MarketRecord, read_market, whole_chances
from forecast_ledger.replay.importing.market_items import Contents, Platform, Price, Trade, exact_in, in_order
from forecast_ledger.replay.importing.source_files import SourceFiles
from forecast_ledger.replay.importing.source_items import NotCarried, Published, SourceItem, Unread, label_of

NO_TRADE = "a bet that is no trade of shares for money: it names no user, id or side, or has no shares"
ONE_ANSWER = "published results of one answer of a market of which one answer is right"
_NEAR = Decimal("0.000001")
_RESULTS = ("profit", "payout", "invested")
_Part = tuple[str, int, Decimal, Decimal]


class BetTrade(NamedTuple):
    """What a bet traded. answer: "" of a market of yes and no. side: YES or NO.

    parts: the id of each, when, how many shares, and for how much; both below 0 if they were sold.
    """

    location: InputLocation
    owner: str
    answer: str
    side: str
    is_redemption: bool
    parts: tuple[_Part, ...]


def trade_in(location: InputLocation, value: Record) -> BetTrade | NotCarried | None:
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
    return BetTrade(location, owner, text_in(value, "answerId"), side, redeems, parts)


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
                    location=bet.location,
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


def published_in(location: InputLocation, value: Record, record: MarketRecord) -> Published | NotCarried:
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
    chosen = markets if not answer else (markets[record.answers.index(answer)],)
    if len(chosen) > 1 or record.is_whole:
        results.pop("invested", None)
    return Published(location, TITLE, text_in(value, "userId"), tuple(each.name for each in chosen), results)


PLATFORM = Platform("manifold", TITLE, undoes=True)
PAGES = ("positions", "bets", "markets", "contracts", "data", "users")
NO_MARKET = "a bet on a market that is not there, or is not carried over"
NOT_WHOLE = "bets after which the chances of all answers are not known, or do not sum to 1"
NO_RESULTS = "published results of bets, which --trades compares"
LONE_ANSWER = "an answer apart from its market: put it into the list `answers` of that, as /v0/market/ID has it"
OTHER_JSON = "JSON that is no market, bet or user"
_AT_ONCE = 2 * 10**6  # µs: an order that is filled later than that rested, and says nothing of its maker


class _Bet(NamedTuple):
    """A bet. user: the id of who made it, "" of nobody whose forecast it is. group: of bets that are made together.

    trade: what was bought or sold, if trades are asked for.
    """

    at: int
    location: InputLocation
    answer: str
    before: int
    after: int
    user: str
    group: str
    trade: BetTrade | None


def _bet_prices(bets: Sequence[_Bet], answers: Sequence[str], opens_at: int) -> Iterator[Price | SourceItem]:
    """Return the chances before the first of some bets, as of the opening, and those after each.

    answers: of the outcomes; of a question of yes and no, one. Bets of a group are made together.
    """
    state: dict[str, int | None] = dict.fromkeys(answers)
    for bet in reversed(bets):
        state[bet.answer] = bet.before
    if bets and (chances := whole_chances([*state.values()])):
        yield Price(opens_at, bets[0].location, chances, who=TITLE)
    for _, group in groupby(enumerate(bets), key=lambda each: each[1].group or each[0]):
        bets_of_group = [bet for _, bet in group]
        state |= {bet.answer: bet.after for bet in bets_of_group}
        last, chances = bets_of_group[-1], whole_chances([*state.values()])
        if not chances:
            yield last.location, NotCarried(NOT_WHOLE)
            continue
        yield Price(last.at, last.location, chances, who=TITLE)
        for user in dict.fromkeys(bet.user for bet in bets_of_group if bet.user):
            yield Price(last.at, last.location, chances, who=user, is_quote=False)


class Copy:
    """What the files say: the newest record of each market, the prices of all, bets by market, names of users.

    has_bets: markets of which bets are there, also if none moved the price. priced: their questions.
    """

    def __init__(self, *, trades: bool) -> None:
        self.published: list[Published] = []
        self.people: dict[str, str] = {}
        self._with_trades = trades
        self._positions: list[tuple[InputLocation, Record]] = []
        self.newest: dict[str, MarketRecord] = {}
        self.prices: dict[str, list[Price]] = {}
        self.bets: dict[str, list[_Bet]] = {}
        self.has_bets: set[str] = set()
        self.priced: set[str] = set()
        self._names: dict[str, tuple[int, str]] = {}  # of a user, and when it was said, µs

    def read(self, files: SourceFiles, name: str) -> Iterator[SourceItem]:
        """Take a file in; return what of it is not read."""
        unread = {kind: Unread(columns, "field") for kind, columns in COLUMNS.items()}
        for location, value in records(files, name, PAGES):
            if isinstance(value, Refused):
                yield location, value
                continue
            kind = _kind(value)
            try:
                if kind == "bet":
                    yield from unread["bet"].of(location, value)
                    yield from self._bet(location, value)
                elif kind == "market":
                    yield from unread["market"].of(location, value)
                    if "isResolved" not in value or (value["isResolved"] and "resolution" not in value):
                        files.partial.add(name)  # it does not say that it has no answer
                    for answer in list_in(value, "answers"):
                        yield from unread["answer"].of(location, answer) if isinstance(answer, dict) else ()
                    yield from self._market(location, value)
                elif kind == "position":
                    yield from unread["position"].of(location, value)
                    if self._with_trades:
                        self._positions.append((location, position_in(value)))
                        self._names.setdefault(text_in(value, "userId"), (0, text_in(value, "userUsername")))
                    else:
                        yield location, NotCarried(NO_RESULTS)
                elif kind == "user":
                    self._names[text_in(value, "id")] = (NEVER, text_in(value, "username"))
                else:
                    yield location, NotCarried(kind)
            except Refused as refused:
                named = value.get("question") or value.get("id")
                yield location, refused.about(f"the {kind} {str(named)[:80]!r}")

    def contents(self) -> Iterator[Contents | SourceItem]:
        """Return the markets in order of their openings, and what is not carried over."""
        for number, record in sorted(self.newest.items(), key=lambda each: (each[1].markets[0].opens_at, each[0])):
            self.priced |= {each.name for each in record.markets} if number in self.has_bets else set()
            by_answer: dict[str, list[_Bet]] = {}
            for bet in in_order(self.bets.pop(number, [])):
                key = "" if record.is_whole and bet.answer in record.answers else bet.answer
                by_answer.setdefault(key, []).append(bet._replace(user=self.name_of(bet.user)))
            for index, market in enumerate(record.markets):
                answers = record.answers if record.is_whole else record.answers[index : index + 1]
                prices = self.prices.pop(market.name, [])
                bets = by_answer.pop("" if record.is_whole else answers[0], [])
                for item in _bet_prices(bets, answers, market.opens_at):
                    if isinstance(item, Price):
                        prices.append(item)
                    else:
                        yield item
                trades = None
                if self._with_trades:
                    traded = [bet.trade._replace(owner=self.name_of(bet.trade.owner)) for bet in bets if bet.trade]
                    trades = trades_of(traded, answers)
                yield Contents(market, prices, trades)
            yield from ((bet.location, NotCarried(NO_MARKET)) for bets in by_answer.values() for bet in bets)
        for bets in self.bets.values():
            yield from ((each.location, NotCarried(NO_MARKET)) for each in bets)
        yield from self._publish()

    def _publish(self) -> Iterator[SourceItem]:
        """Note the published results; return those that are of no market, or of a part of a question."""
        for location, value in self._positions:
            record = self.newest.get(text_in(value, "contractId"))
            published = NotCarried(NO_MARKET) if record is None else published_in(location, value, record)
            if isinstance(published, NotCarried):
                yield location, published
            else:
                self.published.append(published._replace(who=self.name_of(published.who)))

    def name_of(self, user: str) -> str:
        """Return the participant that a user is: its name, or its id if that is all; "" if there is no user."""
        name = label_of(self._names.get(user, (0, ""))[1]) or label_of(user) or ""
        name = f"user {user}" if name == TITLE else name
        if name != user:
            self.people[name] = user
        return name

    def _market(self, location: InputLocation, value: Record) -> Iterator[SourceItem]:
        record = read_market(location, value)
        if isinstance(record, NotCarried):
            yield location, record
            return
        yield from ((location, note) for note in record.notes)
        number = text_in(value, "id")
        if number not in self.newest or record.made_at >= self.newest[number].made_at:
            self.newest[number] = record
        for market, price in zip(record.markets, record.prices, strict=True):
            if price is not None:
                self.prices.setdefault(market.name, []).append(price)

    def _bet(self, location: InputLocation, value: Record) -> Iterator[SourceItem]:
        """Take in a bet; return why it is no trade, if trades are asked for."""
        at = epoch_in(value, "createdTime", milliseconds=True)
        before, after = (number_in(value, field, PROBABILITY, 0, PROBABILITY) for field in ("probBefore", "probAfter"))
        amount = number_in(value, "amount", MONEY, -LARGEST_CASH, LARGEST_CASH)
        for field, number in (("createdTime", at), ("probBefore", before), ("probAfter", after), ("amount", amount)):
            if number is None:
                raise Refused("bad_source", field, None, "it is missing")
        self.has_bets.add(text_in(value, "contractId"))
        if flag_in(value, "isAnte"):
            return  # it opens the market, and moves no price
        user, name = text_in(value, "userId"), text_in(value, "userUsername")
        trade = trade_in(location, value) if self._with_trades else None
        if isinstance(trade, NotCarried):
            yield location, trade
            trade = None
        if name and (at or 0) >= self._names.get(user, (0, ""))[0]:
            self._names[user] = (at or 0, name)
        if not amount or flag_in(value, "isRedemption") or not _filled_at_once(value, at or 0):
            user = ""
        group = text_in(value, "betGroupId")
        bet = _Bet(at or 0, location, text_in(value, "answerId"), before or 0, after or 0, user, group, trade)
        self.bets.setdefault(text_in(value, "contractId"), []).append(bet)


def _filled_at_once(bet: Record, at: int) -> bool:
    """Return whether an order was filled when it was made, at least in part; of one without a limit it is taken so."""
    if bet.get("limitProb") is None:
        return True
    times = [epoch_in(each, "timestamp", milliseconds=True) for each in list_in(bet, "fills") if isinstance(each, dict)]
    return any(each is not None and each <= at + _AT_ONCE for each in times)


def _kind(value: Any) -> str:
    """Return what an object is; if it is nothing that is read, why not."""
    if not isinstance(value, dict):
        return OTHER_JSON
    if "contractId" in value and "profit" in value and "payout" in value:
        return "position"
    if "contractId" in value and "createdTime" in value and ("probAfter" in value or "amount" in value):
        return "bet"
    if "outcomeType" in value:
        return "market"
    if "contractId" not in value:
        return "user" if "username" in value and "id" in value else OTHER_JSON
    return LONE_ANSWER if {"text", "index"} <= value.keys() else "a comment"
