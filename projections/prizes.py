"""From takes to payouts."""

from typing import NamedTuple

from ledger.exact import apportion, half_even, integers
from projections.columns import Contest
from projections.leaderboard import Place

SHARE = 10**9  # units in 1


class Prize(NamedTuple):
    """What one participant is paid out of the pool: the share of all takes, 1e-9, and the money, 1e-6."""

    participant: str
    share: int
    prize: int


def prizes(contest: Contest, places: list[Place]) -> list[Prize]:
    """The pool divided in proportion to takes, in payable units, by largest remainder; equal remainders by id.

    Everyone on the board who is not excluded, by id. They sum to the pool, unless nobody has a take.
    Source: seed 000_b8319c7b2812d652, "Tournament Scoring": the take over the sum of all takes.
    """
    paid = sorted((place for place in places if place.level is None), key=lambda place: place.participant)
    unit = contest.opened.payable_unit
    takes = integers([place.take for place in paid])
    units = apportion(contest.opened.pool // unit, takes)
    total = sum(takes) or 1
    return [
        Prize(place.participant, half_even(take * SHARE, total), count * unit)
        for place, take, count in zip(paid, takes, units, strict=True)
    ]
