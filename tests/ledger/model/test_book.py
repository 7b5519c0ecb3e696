"""Tests of the account book: what each event adds to an account and to a position, worked out by hand."""

from typing import Any, get_args

import pytest

from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.book import CashEvent, Change, EndingEvent, TradeEvent, change_of, counted

OF: dict[str, Any] = {"at": 0, "contest": "week", "participant": "ada"}
HELD: dict[str, Any] = OF | {"question": "rain", "outcome": 0, "position": 1}
LEG: dict[str, Any] = HELD | {"period": 1, "attempt": 1, "leg": 1, "price": 500_000_000, "quote": 3}
BOUGHT = events.SharesBought(**LEG, cash=900, amount=50, shares=100, confidence=1, fee=2)
SOLD = events.SharesSold(**LEG, shares=40, cost=20, proceeds=24, fee=1)
# Each event, and the kind, cash, shares, cost and fee of its change: a fee is paid out of the cash, on top of an amount
# that is paid, or out of proceeds.
CHANGES: list[tuple[Any, Change]] = [
    (events.CashGranted(**OF, amount=900), Change("granted", 900)),
    (events.CashDeposited(**OF, amount=7, reason="gift"), Change("deposited", 7)),
    (events.CashWithdrawn(**OF, amount=7, reason="rent"), Change("withdrawn", -7)),
    (BOUGHT, Change("bought", -52, 100, 50, 2)),
    (SOLD, Change("sold", 23, -40, -20, 1)),
    (events.TradeRecorded(**HELD, shares=10, amount=6, cost=6, fee=1), Change("bought", -7, 10, 6, 1)),
    (events.TradeRecorded(**HELD, shares=-10, amount=6, cost=-5, fee=1), Change("sold", 5, -10, -5, 1)),
    (events.PositionSettled(**HELD, shares=60, cost=30, payout=0, proceeds=45), Change("settled", 45, -60, -30)),
    (events.PositionRefunded(**HELD, shares=60, cost=30), Change("refunded", 30, -60, -30)),
    (events.TradesVoided(**HELD, shares=60, cost=30, amount=29, fee=3), Change("voided", 29, -60, -30, -3)),
    (events.SettlementReversed(**HELD, reverses=9, amount=45), Change("reversed", -45)),
]


@pytest.mark.parametrize(("event", "change"), CHANGES, ids=lambda part: getattr(part, "kind", type(part).__name__))
def test_an_event_changes_cash_shares_and_cost(event: Any, change: Change) -> None:
    """What is paid is below 0, what comes in above 0; the fee of voided trades is given back."""
    assert change_of(event) == change


def test_every_event_that_moves_cash_or_shares_is_in_the_table_above() -> None:
    """The table has one row or more for each type."""
    moving = {*get_args(TradeEvent), *get_args(EndingEvent), *get_args(CashEvent), events.SettlementReversed}
    assert {type(event) for event, _ in CHANGES} == moving


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (BOUGHT, 100),
        (SOLD, 0),
        (events.TradeRecorded(**HELD, shares=-10, amount=6, cost=-5, fee=1), 10),
        (events.TradeRecorded(**HELD, shares=3, amount=6, cost=6, fee=1), 7),
    ],
)
def test_a_trade_counts_of_what_may_be_traded(event: TradeEvent, expected: int) -> None:
    """Shares bought by a bet; of a trade of elsewhere its shares, or its money with the fee if that is more."""
    assert counted(event) == expected
