"""Trades of a market as commands, and the results that a platform publishes of them, to compare."""

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.core.values import LARGEST_POOL, MONEY, format_instant, read_instant
from forecast_ledger.ledger.model.commands import EnrolParticipant, RecordTrade
from forecast_ledger.replay.importing.json_files import Record, read_number
from forecast_ledger.replay.importing.source_items import NotCarried, SourceItem, fitting_id
from forecast_ledger.replay.writing.command_lines import InputPlace

RULES = "market-trades"
_PERSON = re.compile(r"\S+ (?:forecast .* \S+Z|enrol \S+) by (\S+)(?: after .*)?|\S+ rename (\S+) after \S+")
TOO_SMALL = "a trade of less than 0.000001 shares"


class Trade(NamedTuple):
    """A trade. name: its id on the platform. outcome: its index in the market, of which `against` is every other.

    outcome None: complete sets. shares, amount: exact; shares below 0 are sold, the amount has no sign. fee: 1e-6.
    rounded: names the holding whose shares, and whose money, are rounded together.
    """

    at: int
    place: InputPlace
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
            yield trade.place, NotCarried(TOO_SMALL)
            continue
        which = None if trade.outcome is None else outcomes[trade.outcome]
        yield (
            trade.place._replace(command="record_trade"),
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
    found = _PERSON.fullmatch(command_id)
    return found[1] or found[2] if found else ""


def in_order_of_time(
    kind: str, contest: str, items: Iterable[SourceItem], people: Mapping[str, str]
) -> Iterator[SourceItem]:
    """Return the commands of all markets in order of their instants, after an enrolment of everybody who trades.

    people: the platform's ids of them, by their names; complete once all items are read. An account counts a movement
    from its own instant on, if those before it were recorded first.
    """
    timed: list[tuple[int, SourceItem]] = []
    traders: dict[str, InputPlace] = {}
    for place, item in items:
        if isinstance(item, NotCarried | Refused):
            yield place, item
            continue
        timed.append((read_instant(item.at), (place, item)))
        if isinstance(item, RecordTrade):
            traders.setdefault(item.participant, place)
    timed.sort(key=lambda each: each[0])
    begins = timed[0][0] if timed else 0
    for _, (place, item) in timed[:1]:
        yield place, item
    for who, place in sorted(traders.items()):
        name = fitting_id(f"{kind} enrol {contest} {named_by_id(who, people)}")
        command = EnrolParticipant(id=name, at=format_instant(begins), contest=contest, participant=who)
        yield place._replace(command="enrol_participant"), command
    for _, (place, item) in timed[1:]:
        yield place, item
