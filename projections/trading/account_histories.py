"""The movements of the accounts of a contest, and the ticks at which their portfolios are valued."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, int64_array
from forecast_ledger.projections.facts.accounts import EXTERNAL_KINDS, AccountKey, Movement
from forecast_ledger.projections.facts.columns import Facts

MOST_TICK_ROWS = 50_000_000  # in one table, all contests and participants together
_LARGEST = 1 << 61  # largest sum of money, 1e-6: a few of them can be added in 64 bits


class Selection(NamedTuple):
    """The selected portfolios: of a contest, of a participant, and at instants in [since, until), µs.

    What is None is not limited.
    """

    contest: str | None = None
    participant: str | None = None
    since: int | None = None
    until: int | None = None

    def has(self, key: AccountKey) -> bool:
        """Return whether an account is selected."""
        return self.contest in {None, key[0]} and self.participant in {None, key[1]}

    def contests(self, names: Iterable[str]) -> list[str]:
        """Return those of these contests that are selected."""
        return [name for name in names if self.contest in {None, name}]

    def instants(self, at: Int64Array) -> BoolArray:
        """Return which of these instants are selected."""
        selected = np.ones(len(at), bool)
        if self.since is not None:
            selected &= at >= self.since
        if self.until is not None:
            selected &= at < self.until
        return selected


ALL = Selection()


class AccountHistories(NamedTuple):
    """The movements of a contest's accounts, account after account, each in log order, with the balances after each.

    movements: of each account. first: the row of each account's first movement, and the number of all
    movements; shape (accounts + 1,). account, at, position, cash, net_deposits, realised, cost: shape (m,).
    """

    participants: list[str]
    movements: list[list[Movement]]
    first: Int64Array
    account: Int64Array
    at: Int64Array
    position: Int64Array
    cash: Int64Array
    net_deposits: Int64Array
    realised: Int64Array
    cost: Int64Array


class TickAxis(NamedTuple):
    """The ticks of a contest, and where they lie among the movements of its accounts.

    ticks: µs, shape (t,). tick: the number of the first tick at or after each movement; shape (m,). number: the same
    counted over the ticks of all accounts, one account after another, each from its first movement on; then the number
    of all these ticks; shape (m + 1,). moved: True for the row of a movement, False for the row of a tick; shape (n,),
    in order of account, instant and log position, a tick after the movements of its instant.
    """

    ticks: Int64Array
    tick: Int64Array
    number: Int64Array
    moved: BoolArray


def account_histories(facts: Facts, contest: str, selection: Selection = ALL) -> AccountHistories:
    """Return the selected accounts of a contest by participant, with their whole history.

    Raises OverflowError if one holds more than a log allows.
    """
    by_participant: dict[str, list[Movement]] = {}
    for move in facts.books.movements:
        if move.key[0] == contest and selection.has(move.key):
            by_participant.setdefault(move.key[1], []).append(move)
    participants = sorted(by_participant)
    movements = [by_participant[participant] for participant in participants]
    sizes = int64_array(list(map(len, movements)))

    def running(change: Callable[[Movement], int]) -> Int64Array:
        sums = int64_array(list(chain.from_iterable(accumulate(map(change, moves)) for moves in movements)))
        if len(sums) and max(int(sums.max()), -int(sums.min())) > _LARGEST:
            raise OverflowError(f"contest {contest!r}: an account of more than 2^61")
        return sums

    return AccountHistories(
        participants,
        movements,
        first=np.concatenate(([0], np.cumsum(sizes))),
        account=np.repeat(np.arange(len(movements)), sizes),
        at=int64_array([move.at for moves in movements for move in moves]),
        position=int64_array([move.position for moves in movements for move in moves]),
        cash=running(lambda move: move.cash),
        net_deposits=running(lambda move: move.cash * (move.kind in EXTERNAL_KINDS)),
        realised=running(lambda move: move.realised),
        cost=running(lambda move: move.cost),
    )


def tick_axis(
    facts: Facts, contest: str, histories: AccountHistories, selection: Selection = ALL, *, changes: bool = False
) -> TickAxis:
    """Return the selected ticks from the start of a contest to its completion or the latest instant in the log.

    changes: leave out ticks at which no account has another value than at the tick before.
    Raises Refused(out_of_range): too many rows, because an event claims an instant far in the future.
    """
    starts_at, step, count = _all_ticks(facts, contest)
    every = _selected_ticks(facts, contest, selection)
    numbers = _changed(facts, histories, starts_at, step, count) if changes else every
    if len(numbers) * len(histories.movements) > MOST_TICK_ROWS:
        detail = (
            f"contest {contest!r} would have {len(numbers):,} ticks for each of {len(histories.movements):,} accounts"
        )
        raise _too_many(facts, contest, detail)
    ticks = (
        starts_at + step * int64_array(list(numbers))
        if changes
        else np.arange(every.start, every.stop) * step + starts_at
    )
    tick = np.searchsorted(ticks, histories.at)
    begins = tick[histories.first[:-1]]
    offsets = np.concatenate(([0], np.cumsum(len(ticks) - begins)))
    number = np.append(offsets[histories.account] + tick - begins[histories.account], offsets[-1])
    moved = np.zeros(len(tick) + int(offsets[-1]), bool)
    moved[np.arange(len(tick)) + number[:-1]] = True
    return TickAxis(ticks, tick, number, moved)


def check_tick_rows(facts: Facts, contests: Sequence[str], selection: Selection = ALL) -> None:
    """Check that the rows at the selected ticks of these contests fit in one table. Raises Refused(out_of_range)."""
    accounts = Counter(key[0] for key in {move.key for move in facts.books.movements} if selection.has(key))
    tick_rows = {name: len(_selected_ticks(facts, name, selection)) * accounts[name] for name in contests}
    total = sum(tick_rows.values())
    if total > MOST_TICK_ROWS:
        most = max(tick_rows, key=lambda name: tick_rows[name])
        detail = f"the table would have {total:,} rows at ticks, {tick_rows[most]:,} of them for contest {most!r}"
        raise _too_many(facts, most, detail)


def _too_many(facts: Facts, contest: str, detail: str) -> Refused:
    seconds = facts.trading(contest).snapshot_seconds
    remedy = (
        "read the log as of an instant before the event that claims an instant far in the future, or ask for the "
        "portfolios of one contest or participant, or of a span of time"
    )
    return Refused("out_of_range", "snapshot_seconds", seconds, detail, remedy=remedy)


def _all_ticks(facts: Facts, contest: str) -> tuple[int, int, int]:
    """Return the first tick of a contest and the step between ticks, both µs, and the number of ticks."""
    starts_at, completed_at = facts.contests[contest].opened.starts_at or 0, facts.books.progress(contest).completed_at
    last = facts.books.clock if completed_at is None else completed_at
    step = facts.trading(contest).snapshot_seconds * 10**6
    return starts_at, step, max(last - starts_at, -step) // step + 1


def _selected_ticks(facts: Facts, contest: str, selection: Selection) -> range:
    """Return the numbers of the selected ticks of a contest."""
    starts_at, step, count = _all_ticks(facts, contest)

    def first_from(instant: int) -> int:
        return min(max(-((starts_at - instant) // step), 0), count)

    begin = 0 if selection.since is None else first_from(selection.since)
    return range(begin, max(count if selection.until is None else first_from(selection.until), begin))


def _changed(facts: Facts, histories: AccountHistories, starts_at: int, step: int, count: int) -> Int64Array:
    """Return the numbers of the first ticks after each movement and after each quote of a question ever held."""
    held = {move.question for moves in histories.movements for move in moves if move.number}
    known = [facts.books.quotes.of(question).known_from for question in sorted(held)]
    numbers = np.unique(np.maximum(-((starts_at - np.concatenate([histories.at, *known])) // step), 0))
    return numbers[numbers < count]


def instants(axis: TickAxis, histories: AccountHistories) -> Int64Array:
    """Return the instants of the ticks of all accounts, one account after another."""
    ticks = (axis.ticks[begin:] for begin in axis.tick[histories.first[:-1]].tolist())
    return np.concatenate([np.zeros(0, np.int64), *ticks])
