"""The account book: what an event adds to the cash of an account, and to the shares and the cost of a position.

The decider changes accounts by it, and so does whoever reads a log.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from forecast_ledger.ledger.model import events

TradeEvent = events.SharesBought | events.SharesSold | events.TradeRecorded
EndingEvent = events.PositionSettled | events.PositionRefunded | events.TradesVoided
CashEvent = events.CashGranted | events.CashDeposited | events.CashWithdrawn


class Change(NamedTuple):
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
