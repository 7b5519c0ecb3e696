"""The account book: what an event adds to the cash of an account, and to the shares and the cost of a position.

The decider changes accounts by it, and so does whoever reads a log. A share pays 1 if its outcome comes true, or, if it
is against one of several outcomes, 1 if that does not. It is an integer: the index of its outcome, or ~index, below 0,
if it is against it. Its event has the outcome, and `against`.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Protocol

from msgspec import Struct

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model import events

AGAINST = "not "  # how the side of a bet, and the outcome in a table, name a share against an outcome


class _OfShare(Protocol):
    """An event about shares."""

    @property
    def outcome(self) -> int: ...

    @property
    def against(self) -> bool: ...


def share_of(event: _OfShare) -> int:
    """Return the share that an event is about."""
    return ~event.outcome if event.against else event.outcome


def outcome_of(share: int) -> int:
    """Return the index of the outcome that a share is of or against.

    >>> outcome_of(2), outcome_of(~2)
    (2, 2)
    """
    return ~share if share < 0 else share


def share_price(share: int, price: int) -> int:
    """Return the price of a share, 1e-9. price: of its outcome. A payout in 1e-9 is converted likewise.

    >>> share_price(0, 300_000_000), share_price(~0, 300_000_000)
    (300000000, 700000000)
    """
    return PROBABILITY - price if share < 0 else price


def share_payout(share: int, payouts: Sequence[Fraction]) -> Fraction:
    """Return what a share is paid. payouts: of each outcome.

    >>> share_payout(~1, (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)))
    Fraction(2, 3)
    """
    return 1 - payouts[~share] if share < 0 else payouts[share]


def share_name(share: int, outcomes: Sequence[str]) -> str:
    """Return the name of a share: its outcome, or `not` and the outcome.

    >>> share_name(1, ("red", "blue")), share_name(~1, ("red", "blue"))
    ('blue', 'not blue')
    """
    return f"{AGAINST * (share < 0)}{outcomes[outcome_of(share)]}"


TradeEvent = events.SharesBought | events.SharesSold | events.TradeRecorded
EndingEvent = events.PositionSettled | events.PositionRefunded | events.TradesVoided
CashEvent = events.CashGranted | events.CashDeposited | events.CashWithdrawn


class Change(Struct, frozen=True, gc=False):
    """The amounts that one event adds to an account and to a position, 1e-6; below 0 if it takes away.

    shares, cost: of the position; 0 for one that is reversed, which gets back what it had. fee: the part of the cash
    that is a fee, above 0 if it was paid, and below 0 if it was given back.
    """

    kind: str
    cash: int
    shares: int = 0
    cost: int = 0
    fee: int = 0


def change_of(event: TradeEvent | EndingEvent | CashEvent | events.SettlementReversed) -> Change:
    """Return what an event changes.

    >>> position = {"at": 0, "contest": "c", "participant": "ada", "question": "q", "outcome": 0, "position": 1}
    >>> change_of(events.TradeRecorded(**position, shares=-4, amount=3, cost=-2, fee=1))
    Change(kind='sold', cash=2, shares=-4, cost=-2, fee=1)
    """
    return _CHANGES[type(event)](event)


def counted(event: TradeEvent) -> int:
    """Return what a trade counts of all that an account may trade, 1e-6.

    Of a bet its shares; of a sale nothing; of a trade of elsewhere its shares, or its money if that is more.
    """
    if isinstance(event, events.TradeRecorded):
        return max(abs(event.shares), event.amount + event.fee)
    return event.shares if isinstance(event, events.SharesBought) else 0


def _recorded_trade(event: events.TradeRecorded) -> Change:
    kind, gross = ("bought", -event.amount) if event.shares > 0 else ("sold", event.amount)
    return Change(kind, gross - event.fee, event.shares, event.cost, event.fee)


_CHANGES: dict[type, Callable[[Any], Change]] = {
    events.CashGranted: lambda event: Change("granted", event.amount),
    events.CashDeposited: lambda event: Change("deposited", event.amount),
    events.CashWithdrawn: lambda event: Change("withdrawn", -event.amount),
    events.SharesBought: lambda event: Change(
        "bought", -event.amount - event.fee, event.shares, event.amount, event.fee
    ),
    events.SharesSold: lambda event: Change("sold", event.proceeds - event.fee, -event.shares, -event.cost, event.fee),
    events.TradeRecorded: _recorded_trade,
    events.PositionSettled: lambda event: Change("settled", event.proceeds, -event.shares, -event.cost),
    events.PositionRefunded: lambda event: Change("refunded", event.cost, -event.shares, -event.cost),
    events.TradesVoided: lambda event: Change("voided", event.amount, -event.shares, -event.cost, -event.fee),
    events.SettlementReversed: lambda event: Change("reversed", -event.amount),
}
