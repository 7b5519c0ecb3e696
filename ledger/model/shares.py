"""Shares: of an outcome, which pay 1 if it comes true, or against one of several, which pay 1 if it does not.

A share is an integer: the index of its outcome, or ~index, below 0, if it is against it. Its event has the outcome, and
`against`.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

from forecast_ledger.ledger.core.values import PROBABILITY

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
    return max(share, ~share)


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
