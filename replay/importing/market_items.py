"""A market of a platform as commands: a question, its prices as forecasts and quotes, its answer, and its trades."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple, Protocol, TypeVar

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.core.values import (
    LARGEST_POOL,
    LONGEST_PERIOD,
    MONEY,
    MOST_TAGS,
    PROBABILITY,
    TEXT_LENGTH,
    Number,
    check_id,
    check_text,
    format_instant,
    read_instant,
)
from forecast_ledger.ledger.model.commands import (
    AddQuestion,
    AnnulQuestion,
    AnyCommand,
    CancelMarket,
    CloseQuestion,
    EnrolParticipant,
    OpenContest,
    OpenQuestion,
    Quote,
    RecordTrade,
    ResolveQuestion,
    SubmitForecast,
)
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.replay.importing.json_files import Record, read_number
from forecast_ledger.replay.importing.source_items import KNOWN, NotCarried, SourceItem, cut_off, fitting_id, label_of

TRADE_RULES = "market-trades"
_PERSON = re.compile(r"\S+ (?:forecast .* \S+Z|enrol \S+) by (\S+)(?: after .*)?|\S+ rename (\S+) after \S+")
TOO_SMALL = "a trade of less than 0.000001 shares"


class Trade(NamedTuple):
    """A trade. name: its id on the platform. outcome: its index in the market, of which `against` is every other.

    outcome None: complete sets. shares, amount: exact; shares below 0 are sold, the amount has no sign. fee: 1e-6.
    rounded: names the holding whose shares, and whose money, are rounded together.
    """

    at: int
    location: InputLocation
    name: str
    who: str
    outcome: int | None
    shares: Decimal
    amount: Decimal
    against: bool = False
    fee: int = 0
    rounded: str = ""


class _Sum:
    """A sum of exact numbers, and what of it has been taken so far in 1e-6: the sum is rounded, not its parts."""

    def __init__(self) -> None:
        self.exact, self.taken = Decimal(0), 0

    def take(self) -> int:
        """Return what has come in since the last time, 1e-6."""
        whole = int(WIDE.multiply(self.exact, Decimal(MONEY)).to_integral_value())
        self.taken, more = whole, whole - self.taken
        return more


def trade_items(
    kind: str, contest: str, name: str, outcomes: tuple[str, ...], trades: Iterable[Trade]
) -> Iterator[SourceItem]:
    """Return a command for each trade, in order of time. kind: the platform. name, outcomes: of the question.

    Shares that are sold out leave nothing, however they are rounded: what is recorded of a holding is its exact sum,
    rounded. So is the money that was paid and received for it.
    """
    held: dict[tuple[str, str], tuple[_Sum, _Sum]] = {}
    for trade in sorted(trades, key=lambda each: each.at):
        key = (trade.who, trade.rounded or f"{trade.outcome} {trade.against}")
        shares, money = held.setdefault(key, (_Sum(), _Sum()))
        shares.exact += trade.shares
        money.exact += trade.amount if trade.shares > 0 else -trade.amount
        if not (change := shares.take()):
            yield trade.location, NotCarried(TOO_SMALL)
            continue
        which = None if trade.outcome is None else outcomes[trade.outcome]
        yield (
            trade.location._replace(command="record_trade"),
            RecordTrade(
                id=fitting_id(f"{kind} trade {trade.name}"),
                at=format_instant(trade.at),
                contest=contest,
                participant=trade.who,
                question=name,
                outcome=None if trade.against else which,
                all_but=which if trade.against else None,
                action="buy" if change > 0 else "sell",
                shares=_decimal(abs(change)),
                amount=_decimal(abs(money.take())),
                fee=_decimal(trade.fee),
            ),
        )


def _decimal(micros: int) -> Decimal:
    return Decimal(micros).scaleb(-6, WIDE).normalize(WIDE)


def exact_in(record: Record, field: str) -> Decimal:
    """Return a number as it is written; 0 if it is empty. Refuses: bad_number, out_of_range."""
    value = record.get(field)
    if value in (None, ""):
        return Decimal(0)
    read_number(value, field, MONEY, -LARGEST_POOL, LARGEST_POOL)
    return Decimal(value)


def named_by_id(who: str, people: Mapping[str, str]) -> str:
    """Return how the id of a command names somebody: by the platform's id, or else by the name.

    >>> named_by_id("ada", {"ada": "u1"}), named_by_id("bo", {})
    ('by u1', 'bo')
    """
    return f"by {people[who]}" if who in people else who


def person_of(command_id: str) -> str:
    """Return the platform's id of a person in the id of a command; "" if it has none.

    >>> person_of("manifold forecast manifold rain 2026-03-01T00:00:00Z by u1 after 7 of ada")
    'u1'
    """
    match = _PERSON.fullmatch(command_id)
    return match[1] or match[2] if match else ""


def in_order_of_time(
    kind: str, contest: str, items: Iterable[SourceItem], people: Mapping[str, str]
) -> Iterator[SourceItem]:
    """Return the commands of all markets in order of their instants, after an enrolment of everybody who trades.

    people: the platform's ids of them, by their names; complete once all items are read. An account counts a movement
    from its own instant on, if those before it were recorded first.
    """
    timed: list[tuple[int, SourceItem]] = []
    traders: dict[str, InputLocation] = {}
    for location, item in items:
        if isinstance(item, NotCarried | Refused):
            yield location, item
            continue
        timed.append((read_instant(item.at), (location, item)))
        if isinstance(item, RecordTrade):
            traders.setdefault(item.participant, location)
    timed.sort(key=lambda each: each[0])
    begins = timed[0][0] if timed else 0
    for _, (location, item) in timed[:1]:
        yield location, item
    for who, location in sorted(traders.items()):
        name = fitting_id(f"{kind} enrol {contest} {named_by_id(who, people)}")
        command = EnrolParticipant(id=name, at=format_instant(begins), contest=contest, participant=who)
        yield location._replace(command="enrol_participant"), command
    for _, (location, item) in timed[1:]:
        yield location, item


RULES = "forecastbench"  # Brier scores, averaged over questions; answers by share count
BINARY = ("yes", "no")
OTHER_PRICE = "another price of the same instant: the last one counts"


class Platform(NamedTuple):
    """Where markets are. kind: the format, with which ids of commands begin. title: the participant and the contest.

    undoes: whether an annulment undoes all trades, and not only those of shares that are held.
    """

    kind: str
    title: str
    undoes: bool = False


class Answer(NamedTuple):
    """How a market ended, and when that was known, µs. shares: what each outcome pays, 1e-9; none: it is annulled."""

    at: int
    shares: tuple[int, ...]
    reason: str = ""


class Market(NamedTuple):
    """A market. outcomes: BINARY, or the names. closed_at: µs, if it ended before `closes_at`."""

    location: InputLocation
    name: str
    title: str
    outcomes: tuple[str, ...]
    opens_at: int
    closes_at: int
    closed_at: int | None = None
    answer: Answer | None = None
    group: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    url: str = ""

    @property
    def ends_at(self) -> int:
        """The instant from which on forecasts do not count, µs."""
        return self.closes_at if self.closed_at is None else min(self.closes_at, self.closed_at)


class Price(NamedTuple):
    """The prices of a market at an instant, µs: chances of all outcomes, 1e-9, and the bid and ask of the first.

    chances: () if there are only bid and ask. who: whose forecast it is; "" of nobody, if it is only a quote.
    is_quote: whether it is a quote.
    """

    at: int
    location: InputLocation
    chances: tuple[int, ...]
    bid: int | None = None
    ask: int | None = None
    who: str = ""
    is_quote: bool = True


def checked_market(market: Market) -> Market:
    """Return a market that opens a question without a refusal.

    Refuses, first that applies: id_too_long, id_not_plain, text_too_long, bad_source (fewer than two outcomes, or two
    of one name), wrong_order_of_instants.
    """
    for outcome in (market.name, *market.outcomes):
        check_id(outcome, "outcomes" if outcome != market.name else "id")
    check_text(market.title[:TEXT_LENGTH], "title")
    check_text(market.url[:TEXT_LENGTH], "url")
    if len({*market.outcomes}) < max(len(market.outcomes), 2):
        raise Refused("bad_source", "outcomes", list(market.outcomes), "not two or more different outcomes")
    if not market.opens_at < market.closes_at <= market.opens_at + LONGEST_PERIOD:
        opens, closes = format_instant(market.opens_at), format_instant(market.closes_at)
        raise Refused(
            "wrong_order_of_instants",
            "closes_at",
            closes,
            f"it opens at {opens}; it must be open until later, for a century at most",
        )
    return market


class _Timed(Protocol):
    """An item that has an instant, µs."""

    @property
    def at(self) -> int: ...


_Item = TypeVar("_Item", bound=_Timed)


def in_order(items: Sequence[_Item]) -> list[_Item]:
    """Return items in order of time; a list that has the newest first, as services give it, is turned around."""
    turned = len(items) > 1 and items[0].at > items[-1].at
    return sorted(reversed(items) if turned else items, key=lambda item: item.at)


def prices_alone(items: Iterable[SourceItem], platform: str) -> Iterator[SourceItem]:
    """Return the items without forecasts of anybody but the platform."""
    return (item for item in items if not isinstance(item[1], SubmitForecast) or item[1].participant == platform)


def contest_item(platform: Platform, first: Market | None, rules: str | None) -> SourceItem:
    """Return the command that opens the contest of a platform, or, without markets, why there is none (bad_source).

    first: the market that opens first. rules: the contest's preset; None: RULES.
    """
    location = InputLocation(0, "open_contest", file=platform.title)
    if first is None:
        remedy = f"give a file, a folder or a zip of saved answers of {platform.title}'s API"
        return location, Refused("bad_source", "path", None, "no market that can be read is there", remedy=remedy)
    name, at = f"{platform.kind} contest {platform.title}", format_instant(first.opens_at)
    return location, OpenContest(id=name, at=at, contest=platform.title, rules=rules or RULES)


class Contents(NamedTuple):
    """A market with its prices and its trades, in any order; of one instant and forecaster, the last price counts.

    trades: None if they are not asked for.
    """

    market: Market
    prices: Iterable[Price]
    trades: Sequence[Trade] | None = None


def market_items(platform: Platform, contents: Contents, people: Mapping[str, str]) -> Iterator[SourceItem]:
    """Return the commands of a market: its opening, then prices, trades, the close and the answer, each by time.

    people: the platform's ids of those who forecast, by their names.
    """
    market, trades = contents.market, contents.trades
    yield from _openings(platform, market)
    yield from _priced(platform, market, contents.prices, people)
    yield from trade_items(platform.kind, platform.title, market.name, market.outcomes, trades or ())
    location = market.location
    if market.closed_at is not None and market.opens_at < market.closed_at < market.closes_at:
        name = fitting_id(f"{platform.kind} close {market.name}")
        command = CloseQuestion(id=name, at=format_instant(market.closed_at), question=market.name)
        yield location._replace(command="close_question"), command
    if market.answer is not None:
        last = max((each.at for each in trades or ()), default=market.answer.at)
        answer = _answer(platform, market, market.answer, last, undone=trades is not None)
        yield location._replace(command=str(answer.__struct_config__.tag)), answer


def _openings(platform: Platform, market: Market) -> Iterator[SourceItem]:
    name, at = market.name, format_instant(market.opens_at)
    tags = tuple(dict.fromkeys(tag for each in market.tags if (tag := label_of(each)) is not None))
    location, url = market.location, market.url[:TEXT_LENGTH]
    yield from ((location, each) for each in cut_off(TEXT_LENGTH, title=market.title, url=market.url))
    if len(tags) > MOST_TAGS:
        yield location, NotCarried(f"tags after the first {MOST_TAGS}")
    binary = market.outcomes == BINARY
    commands: tuple[AnyCommand, ...] = (
        OpenQuestion(
            id=fitting_id(f"{platform.kind} open {name}"),
            at=at,
            question=name,
            kind="binary" if binary else "multiple_choice",
            title=market.title[:TEXT_LENGTH],
            outcomes=None if binary else market.outcomes,
            ordered=None if binary else False,
            opens_at=at,
            closes_at=format_instant(market.closes_at),
            group=label_of(market.group),
            category=label_of(market.category),
            tags=tags[:MOST_TAGS] or None,
            url=url or None,
            source=platform.title,
        ),
        AddQuestion(
            id=fitting_id(f"{platform.kind} add {name}"), at=at, contest=platform.title, question=name
        ),
    )  # fmt: skip
    for command in commands:
        yield location._replace(command=str(command.__struct_config__.tag)), command


def _priced(
    platform: Platform, market: Market, prices: Iterable[Price], people: Mapping[str, str]
) -> Iterator[SourceItem]:
    """Return a quote of each price, and a forecast of each change before the end."""
    standing: dict[str, tuple[int, ...]] = {}
    ordered = sorted(prices, key=lambda price: price.at)
    last = {(price.at, price.who, price.is_quote): price for price in ordered}
    for price in ordered:
        counts = last[price.at, price.who, price.is_quote]
        if counts is not price:
            same = (counts.chances, counts.bid, counts.ask) == (price.chances, price.bid, price.ask)
            yield price.location, KNOWN if same else NotCarried(OTHER_PRICE)
            continue
        if price.who and price.at < market.ends_at and standing.get(price.who) != price.chances:
            standing[price.who] = price.chances
            yield price.location._replace(command="submit_forecast"), _forecast(platform, market, price, people)
        if price.is_quote:
            yield price.location._replace(command="quote"), _quote(platform, market, price)


def _forecast(platform: Platform, market: Market, price: Price, people: Mapping[str, str]) -> SubmitForecast:
    who = named_by_id(price.who, people)
    at, chances = format_instant(price.at), _decimals(price.chances)
    binary = market.outcomes == BINARY
    return SubmitForecast(
        id=fitting_id(f"{platform.kind} forecast {market.name} {at} {who}"),
        at=at,
        question=market.name,
        participant=price.who,
        probability=chances[0] if binary else None,
        probabilities=None if binary else dict(zip(market.outcomes, chances, strict=True)),
    )


def _quote(platform: Platform, market: Market, price: Price) -> Quote:
    """Return a quote: of yes alone if the question is binary, else of all outcomes that have a price."""
    at, outcomes = format_instant(price.at), market.outcomes[:1] if market.outcomes == BINARY else market.outcomes
    bid, ask = price.bid, price.ask
    sides = {"prices": price.chances[: len(outcomes)], "bids": (bid,), "asks": (ask,)}
    if len(outcomes) == len(BINARY):  # of two outcomes, who buys one at its ask sells the other at its bid
        sides |= {"bids": (bid, _other(ask)), "asks": (ask, _other(bid))}
    given = {side: _by_outcome(outcomes, row) for side, row in sides.items()}
    digits = " ".join(
        f"{side}={','.join(f'{key}:{value}' for key, value in row.items())}" for side, row in given.items() if row
    )
    return Quote(
        id=fitting_id(f"{platform.kind} quote {market.name} {at} {digits}"),
        at=at,
        question=market.name,
        prices=given["prices"] or None,
        bids=given["bids"] or None,
        asks=given["asks"] or None,
        source=platform.title,
        quoted_at=at,
    )


def _other(price: int | None) -> int | None:
    return None if price is None else PROBABILITY - price


def _by_outcome(outcomes: Sequence[str], row: Sequence[int | None]) -> dict[str, Number]:
    return {name: _decimals([price])[0] for name, price in zip(outcomes, row, strict=False) if price is not None}


def _answer(platform: Platform, market: Market, answer: Answer, last: int, *, undone: bool) -> AnyCommand:
    """Return the answer, or the annulment. last: the instant of the last trade, µs; a market may trade after its
    answer is known, and settles after that. undone: whether an annulment undoes trades.
    """
    at, name, kind = format_instant(max(answer.at, last)), market.name, platform.kind
    known_at = format_instant(min(answer.at, market.closes_at)) if last > answer.at else None
    if undone and platform.undoes and not answer.shares:
        number = fitting_id(f"{kind} annul {name}")
        return CancelMarket(id=number, at=at, question=name, policy="void_trades", reason=answer.reason)
    if not answer.shares:
        return AnnulQuestion(id=fitting_id(f"{kind} annul {name}"), at=at, question=name, reason=answer.reason)
    if PROBABILITY in answer.shares:
        outcome = market.outcomes[answer.shares.index(PROBABILITY)]
        number = fitting_id(f"{kind} answer {name} {outcome}")
        return ResolveQuestion(id=number, at=at, question=name, outcome=outcome, known_at=known_at)
    payouts: dict[str, Number] = dict(zip(market.outcomes, _decimals(answer.shares), strict=True))
    digits = " ".join(map(str, payouts.values()))
    number = fitting_id(f"{kind} answer {name} {digits}")
    return ResolveQuestion(id=number, at=at, question=name, payouts=payouts, known_at=known_at)


def _decimals(numbers: Sequence[int]) -> list[Decimal]:
    """Return numbers in 1e-9 as decimals without zeros at their end."""
    return [Decimal(number).scaleb(-9).normalize() for number in numbers]
