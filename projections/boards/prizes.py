"""From takes to payouts."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from forecast_ledger.ledger.core.exact import apportion, half_even, magnitudes_to_integers
from forecast_ledger.projections.boards.leaderboard import Place
from forecast_ledger.projections.facts.columns import Contest

SHARE = 10**9  # units in 1


class Prize(NamedTuple):
    """What one participant is paid out of the pool: the share of all takes, 1e-9, and the money, 1e-6."""

    participant: str
    share: int
    prize: int


def prizes(contest: Contest, places: list[Place]) -> list[Prize]:
    """The pool divided in proportion to takes, in payable units, by largest remainder; equal remainders by id.

    Everyone on the board who is not excluded, by id. They sum to the pool, unless nobody has a take, the pool is less
    than the least prize, or in one pass everybody's share is.
    Source: Metaculus, Tournament Scoring, "Tournament Scoring": the take over the sum of all.
    """
    paid = sorted((place for place in places if place.take and not place.excluded), key=lambda place: place.participant)
    unit, pool = contest.opened.payable_unit, contest.opened.pool
    rules = contest.opened.rules
    worth_paying = PASSES[rules.least_prize_passes]
    takes = worth_paying(magnitudes_to_integers([place.take for place in paid if place.take]), pool, rules.least_prize)
    units = apportion(pool // unit, takes)
    total = sum(takes) or 1
    return [
        Prize(place.participant, half_even(take * SHARE, total), count * unit)
        for place, take, count in zip(paid, takes, units, strict=True)
    ]


def in_many_passes(takes: list[int], pool: int, least: int) -> list[int]:
    """The takes without those whose share of the pool is less than the least prize, both 1e-6.

    From the smallest up, equal ones together; what one is not paid raises the shares of the others. Those that are
    largest are kept, however many they are, unless the pool itself is less: somebody is paid.

    >>> in_many_passes([3, 2, 6], 100, 28), in_many_passes([3, 3, 6], 100, 26), in_many_passes([3, 3], 100, 60)
    ([3, 0, 6], [0, 0, 6], [3, 3])
    """
    total, largest = sum(takes), max(takes, default=0)
    for take, count in sorted(Counter(takes).items()):
        worth_it = pool >= least if take == largest else take * pool >= least * total
        if worth_it:
            return [each if each >= take else 0 for each in takes]
        total -= take * count
    return [0] * len(takes)


def one_by_one(takes: list[int], pool: int, least: int) -> list[int]:
    """Likewise, but of equal takes the last goes first, which may be enough for the others.

    Source: Metaculus's published code, since October 2025; which of equal ones goes first is not defined there.

    >>> one_by_one([3, 3, 6], 100, 26), one_by_one([3, 3], 100, 60)
    ([3, 0, 6], [3, 0])
    """
    kept, total = list(takes), sum(takes)
    for i in sorted(range(len(takes)), key=lambda i: (takes[i], -i)):
        if kept[i] * pool >= least * total:
            break
        total -= kept[i]
        kept[i] = 0
    return kept


def in_one_pass(takes: list[int], pool: int, least: int) -> list[int]:
    """Likewise, but all at once, by their shares among everybody.

    Source: Metaculus's published code, June to October 2025.

    >>> in_one_pass([3, 2, 6], 100, 28)
    [0, 0, 6]
    """
    total = sum(takes)
    return [take if take * pool >= least * total else 0 for take in takes]


# Who is left when those worth less than the least prize are not paid.
PASSES: dict[str, Callable[[list[int], int, int], list[int]]] = {
    "many": in_many_passes,
    "one": in_one_pass,
    "one_by_one": one_by_one,
}
