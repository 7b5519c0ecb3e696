"""Prizes: the pool of a contest divided in proportion to takes."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.boards.leaderboard import BoardRow, Boards
from forecast_ledger.projections.core.arrays import Int64Array, int64_array, run_starts
from forecast_ledger.projections.core.late_fractions import LateFraction, bounds_of, integers_in_proportion
from forecast_ledger.projections.core.proportions import Between, InDoubt, Number, apportion, magnitudes_in_proportion
from forecast_ledger.projections.facts.columns import Contest

SHARE_UNITS = 10**9  # units in 1
_MOST_UNITS = 1 << 52  # of a pool that is divided by estimates


class Prize(NamedTuple):
    """The prize of one participant. share: of the sum of takes, 1e-9. prize: money, 1e-6."""

    participant: str
    share: int
    prize: int


class Shares(NamedTuple):
    """What each row of boards gets: its share of the sum of takes, 1e-9, and its prize, 1e-6."""

    share: list[int]
    prize: list[int]

    def prizes(self, boards: Boards, number: int) -> list[Prize]:
        """Return the prizes of a contest, by its index, as `divide_pool` does."""
        span = [] if boards.take is None else boards.span(number).tolist()
        paid = sorted((row for row in span if not boards.excluded[row]), key=boards.by_id.__getitem__)
        return [Prize(boards.labels[boards.person[row]], self.share[row], self.prize[row]) for row in paid]


def eligible(boards: Boards) -> Int64Array:
    """Return the rows that can win a prize, in order of contest and id."""
    rows = np.flatnonzero((boards.excluded == 0) & (boards.take is not None))
    return rows[np.lexsort((boards.by_id[rows], boards.contest[rows]))]


def divide_pools(boards: Boards) -> Shares:
    """Divide the pools of contests by estimates of takes, and those in doubt by takes; see `divide_pool`."""
    shares = Shares([0] * len(boards.person), [0] * len(boards.person))
    paid = eligible(boards)
    if boards.take is None or not len(paid):
        return shares
    starts = run_starts(boards.contest[paid])
    contests = boards.contest[paid][starts].tolist()
    opened, rules = [boards.contests[number].opened for number in contests], boards.contests[0].opened.rules
    counts = int64_array([min(each.pool // each.payable_unit, _MOST_UNITS) for each in opened])
    estimated = boards.take.rows(paid).shares(starts)
    near, doubtful = estimated.nearest(SHARE_UNITS)
    parts, certain = estimated.apportioned(starts, counts)
    certain &= (counts < _MOST_UNITS) & (not rules.least_prize_micros)
    certain[np.searchsorted(starts, doubtful, "right") - 1] = False
    units = [boards.contests[number].opened.payable_unit for number in boards.contest[paid].tolist()]
    for row, share, part, unit in zip(paid.tolist(), near.tolist(), parts.tolist(), units, strict=True):
        shares.share[row], shares.prize[row] = share, part * unit
    ends = np.append(starts[1:], len(paid))
    for index in np.flatnonzero(~certain).tolist():
        every = divide_pool(boards.contests[contests[index]], boards.rows_of(contests[index]))
        for row, prize in zip(paid[starts[index] : ends[index]].tolist(), every, strict=True):
            shares.share[row], shares.prize[row] = prize.share, prize.prize
    return shares


def divide_pool(contest: Contest, rows: list[BoardRow]) -> list[Prize]:
    """Divide the pool in proportion to takes, in payable units, by largest remainder; equal remainders by id.

    Returns a row for everyone with a take who is not excluded, by id. The prizes add up to the whole payable units of
    the pool, unless nobody has a take above 0, the pool is less than the least prize or, with one pass, everybody's
    share is.
    Source: Metaculus, Tournament Scoring, "Tournament Scoring": a participant's take over the sum of all takes.
    """
    paid = sorted((row for row in rows if row.take and not row.excluded), key=lambda row: row.participant)
    takes = magnitudes_in_proportion([row.take for row in paid if row.take])
    if any(isinstance(take, LateFraction) for take in takes):
        for close in (False, True):
            with suppress(InDoubt):
                return _divided(contest, paid, _between(takes, close))
    return _divided(contest, paid, integers_in_proportion(takes))


def _divided(contest: Contest, paid: list[BoardRow], takes: list[Number]) -> list[Prize]:
    """Divide the pool by integers in proportion to takes, or by bounds of takes, which may raise InDoubt."""
    takes, amounts = divide(contest, takes)
    total = sum(takes) or 1
    return [
        Prize(row.participant, half_even(take * SHARE_UNITS, total), amount)
        for row, take, amount in zip(paid, takes, amounts, strict=True)
    ]


def divide(contest: Contest, takes: list[Number]) -> tuple[list[Number], list[int]]:
    """Return takes, 0 for those too small for the least prize, and the amounts of the pool that they are worth, 1e-6.

    takes: in order of id. May raise InDoubt if they are bounds.
    """
    unit, pool, rules = contest.opened.payable_unit, contest.opened.pool, contest.opened.rules
    takes = _plain_if_equal(PASSES[rules.least_prize_passes](takes, pool, rules.least_prize_micros))
    return takes, [count * unit for count in apportion(pool // unit, takes)]


def _between(takes: list[Fraction], close: bool) -> list[Number]:
    """Return the bounds of takes >= 0, in which equal takes have the same name."""
    bounded: list[Number] = [0] * len(takes)
    before: int | None = None
    for number in sorted(range(len(takes)), key=takes.__getitem__):
        if before is not None and takes[number] == takes[before]:
            bounded[number] = bounded[before]
        elif takes[number]:
            low, high = bounds_of(takes[number], close)
            bounded[number] = Between(max(low, 0), high, number)
        before = number
    return bounded


def _plain_if_equal(takes: list[Number]) -> list[Number]:
    """Return 1 instead of every take that is not 0, if these are all equal: bounds cannot show an exact share."""
    return [int(bool(take)) for take in takes] if len({take for take in takes if take}) == 1 else takes


def in_many_passes(takes: list[Number], pool: int, least: int) -> list[Number]:
    """Return the takes, with 0 for those whose share of the pool is less than the least prize (pool and least in 1e-6).

    The smallest takes are removed first, equal ones together, and the shares of the others grow each time. The largest
    takes are never removed unless the pool itself is less than the least prize, so that somebody is paid.

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


def one_by_one(takes: list[Number], pool: int, least: int) -> list[Number]:
    """Like `in_many_passes`, but remove one take at a time; of equal takes the last one first.

    Source: Metaculus's published code, since October 2025, which does not define which of equal takes is removed first.

    >>> one_by_one([3, 3, 6], 100, 26), one_by_one([3, 3], 100, 60)
    ([3, 0, 6], [3, 0])
    """
    remaining, total = list(takes), sum(takes)
    for i in sorted(range(len(takes)), key=lambda i: (takes[i], -i)):
        if remaining[i] * pool >= least * total:
            break
        total -= remaining[i]
        remaining[i] = 0
    return remaining


def in_one_pass(takes: list[Number], pool: int, least: int) -> list[Number]:
    """Like `in_many_passes`, but remove takes once only, by their shares among all participants.

    Source: Metaculus's published code, June to October 2025.

    >>> in_one_pass([3, 2, 6], 100, 28)
    [0, 0, 6]
    """
    total = sum(takes)
    return [take if take * pool >= least * total else 0 for take in takes]


# The ways to remove participants whose share is less than the least prize.
PASSES: dict[str, Callable[[list[Number], int, int], list[Number]]] = {
    "many": in_many_passes,
    "one": in_one_pass,
    "one_by_one": one_by_one,
}
