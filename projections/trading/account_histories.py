"""The way of every account through a contest, movement by movement, and the ticks at which one looks at all of them."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, int64_array
from forecast_ledger.projections.facts.accounts import EXTERNAL, Movement
from forecast_ledger.projections.facts.columns import Facts

MOST_LOOKS = 50_000_000  # at portfolios in one table, all contests and participants together
_LARGEST = 1 << 61  # of any sum of money, 1e-6, so that a few can be added


class Paths(NamedTuple):
    """The movements of a contest's accounts, account after account, each in log order, with what each leaves.

    first: of each account, and the number of all; shape (accounts + 1,). account, at, position, cash, net_deposits,
    realised, cost: shape (m,).
    """

    participants: list[str]
    own: list[list[Movement]]
    first: Int64Array
    account: Int64Array
    at: Int64Array
    position: Int64Array
    cash: Int64Array
    net_deposits: Int64Array
    realised: Int64Array
    cost: Int64Array


class Axis(NamedTuple):
    """The ticks of a contest, and where they are among the movements of its accounts.

    ticks: µs, shape (t,). tick: the first at or after each movement; shape (m,). number: the same among the ticks of
    all accounts, one account after another, each from its first movement on; and how many those are; shape (m + 1,).
    moved: whether a row is a movement's, else it is a tick's; shape (n,), in order of account, instant and log
    position, the tick of an instant last.
    """

    ticks: Int64Array
    tick: Int64Array
    number: Int64Array
    moved: BoolArray


def paths_of(found: Facts, contest: str) -> Paths:
    """The accounts of a contest in order of participant. Raises OverflowError if one holds more than a log allows."""
    by_participant: dict[str, list[Movement]] = {}
    for move in found.books.movements:
        if move.key[0] == contest:
            by_participant.setdefault(move.key[1], []).append(move)
    participants = sorted(by_participant)
    own = [by_participant[participant] for participant in participants]
    sizes = int64_array(list(map(len, own)))

    def running(change: Callable[[Movement], int]) -> Int64Array:
        sums = int64_array(list(chain.from_iterable(accumulate(map(change, moves)) for moves in own)))
        if len(sums) and max(int(sums.max()), -int(sums.min())) > _LARGEST:
            raise OverflowError(f"contest {contest!r}: an account of more than 2^61")
        return sums

    return Paths(
        participants,
        own,
        first=np.concatenate(([0], np.cumsum(sizes))),
        account=np.repeat(np.arange(len(own)), sizes),
        at=int64_array([move.at for moves in own for move in moves]),
        position=int64_array([move.position for moves in own for move in moves]),
        cash=running(lambda move: move.cash),
        net_deposits=running(lambda move: move.cash * (move.kind in EXTERNAL)),
        realised=running(lambda move: move.realised),
        cost=running(lambda move: move.cost),
    )


def axis_of(found: Facts, contest: str, paths: Paths, *, changes: bool = False) -> Axis:
    """Ticks from the contest's start to the clock of the books, or until it is complete.

    changes: leave out those at which everything is worth what it was at the tick before.
    Raises Refused: more looks than can be held, because something in the log claims an instant far away.
    """
    starts_at, step, count = _every(found, contest)
    numbers = _changed(found, paths, starts_at, step, count) if changes else range(count)
    if len(numbers) * len(paths.own) > MOST_LOOKS:
        said = f"contest {contest!r} would have {len(numbers):,} looks at {len(paths.own):,} portfolios"
        raise _too_many(found, contest, said)
    ticks = starts_at + step * int64_array(list(numbers)) if changes else np.arange(count) * step + starts_at
    tick = np.searchsorted(ticks, paths.at)
    begins = tick[paths.first[:-1]]
    offsets = np.concatenate(([0], np.cumsum(len(ticks) - begins)))
    number = np.append(offsets[paths.account] + tick - begins[paths.account], offsets[-1])
    moved = np.zeros(len(tick) + int(offsets[-1]), bool)
    moved[np.arange(len(tick)) + number[:-1]] = True
    return Axis(ticks, tick, number, moved)


def check_looks(found: Facts, contests: Sequence[str]) -> None:
    """Raises Refused: contests have more looks at portfolios in all than one table can hold."""
    accounts = Counter(contest for contest, _ in {move.key for move in found.books.movements})
    looks = {name: _every(found, name)[-1] * accounts[name] for name in contests}
    total = sum(looks.values())
    if total > MOST_LOOKS:
        most = max(looks, key=lambda name: looks[name])
        said = f"its contests would have {total:,} looks at portfolios in all, {most!r} {looks[most]:,} of them"
        raise _too_many(found, most, said)


def _too_many(found: Facts, contest: str, said: str) -> Refused:
    seconds = found.trading(contest).snapshot_seconds
    remedy = "read the log as of an instant before it claims one that is far away"
    return Refused("out_of_range", "snapshot_seconds", seconds, said, remedy=remedy)


def _every(found: Facts, contest: str) -> tuple[int, int, int]:
    """The ticks of a contest: the first and the step between them, µs, and how many there are."""
    starts_at, completed_at = found.contests[contest].opened.starts_at or 0, found.books.progress(contest).completed_at
    last = found.books.clock if completed_at is None else completed_at
    step = found.trading(contest).snapshot_seconds * 10**6
    return starts_at, step, max(last - starts_at, -step) // step + 1


def _changed(found: Facts, paths: Paths, starts_at: int, step: int, count: int) -> list[int]:
    """The numbers of the ticks that are the first to know a movement, or a quote of something that was ever held."""
    held = {move.question for moves in paths.own for move in moves if move.number}
    told = {quoted.told_at for question in held for quoted in found.books.quotes[question]}
    seen = {max(-((starts_at - at) // step), 0) for at in told.union(paths.at.tolist())}
    return sorted(number for number in seen if number < count)


def instants(axis: Axis, paths: Paths) -> Int64Array:
    """The instants of the ticks of all accounts, one account after another."""
    every = (axis.ticks[begin:] for begin in axis.tick[paths.first[:-1]].tolist())
    return np.concatenate([np.zeros(0, np.int64), *every])
