"""Portfolios over time: the contents and value of every account of a contest at each tick and after each movement.

Source: Forecaster Arena, Methodology v1, "Snapshot Methodology".
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.projections.core.arrays import Int64Array, int64_array, round_half_even
from forecast_ledger.projections.core.column_values import published
from forecast_ledger.projections.facts.accounts import FINE, Key, Ruling
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.trading.account_histories import (
    AccountHistories,
    TickAxis,
    account_histories,
    instants,
    tick_axis,
)
from forecast_ledger.projections.trading.bet_scores import NONE, ScoredSpan, means, spans, verdicts
from forecast_ledger.projections.trading.mark_prices import Marks

_LAST = (1 << 63) - 1
_LOW_BITS = 27  # an account has at most 1e18 shares: their part above 2^27, times a price of 1e9, is below 2^63
_LOW_MASK = (1 << _LOW_BITS) - 1
_BITS = 128  # binary places of a peak that is scaled at a deposit or a withdrawal
_CARRY_AFTER = 64  # products below 2^27 x 1e9 are added before a carry; 68 of them reach 2^63


class Snapshots(NamedTuple):
    """One row for each tick and each movement of every account of a contest; shape (n,).

    Rows are in order of participant, instant and log position; a tick comes after the movements of its instant.
    participant: place in `participants`, in order of id. at: µs. log_position: NONE at a tick. cash, net_deposits,
    realised, cost (of open positions): 1e-6. worth, rest: value of open positions at their marks, in whole 1e-6 and the
    remainder in 1e-15. brier: mean over resolved_bets, 1e-9; NONE without any. stale_marks: number of open positions
    with a stale mark or none. stale_age: age of the oldest mark, µs; NONE without a mark.
    """

    contest: str
    participants: list[str]
    participant: Int64Array
    at: Int64Array
    log_position: Int64Array
    cash: Int64Array
    net_deposits: Int64Array
    realised: Int64Array
    cost: Int64Array
    worth: Int64Array
    rest: Int64Array
    brier: Int64Array
    resolved_bets: Int64Array
    stale_marks: Int64Array
    stale_age: Int64Array

    @property
    def positions_value(self) -> Int64Array:
        """The value of open positions, 1e-6, rounded once."""
        return round_half_even(self.worth, self.rest, FINE)

    @property
    def total(self) -> Int64Array:
        """Cash + value of open positions, 1e-6, rounded once after the sum."""
        return round_half_even(self.cash + self.worth, self.rest, FINE)

    @property
    def profit(self) -> Int64Array:
        """The total - net deposits, 1e-6, rounded once."""
        return round_half_even(self.cash + self.worth - self.net_deposits, self.rest, FINE)

    @property
    def unrealised(self) -> Int64Array:
        """The value - cost of open positions, 1e-6, rounded once."""
        return round_half_even(self.worth - self.cost, self.rest, FINE)

    @property
    def profit_percent(self) -> Int64Array | list[int]:
        """100 x profit / net deposits, 1e-9, rounded once; 0 if the net deposits are 0."""
        return _percent(self.cash + self.worth - self.net_deposits, self.rest, self.net_deposits)


class _Piece(NamedTuple):
    """Shares of one outcome held from one movement of an account until another, or until the end."""

    begin: int
    end: int
    shares: int


def snapshots(facts: Facts, marks: Marks, contest: str, *, changes: bool = False) -> Snapshots:
    """Return the portfolios of a trading contest at every tick and movement.

    A row shows what is known at its instant: the movements in effect by then, and the last quote of each question known
    by then. Ticks come every `snapshot_seconds` from the start of the contest to its completion or the latest instant
    in the log. The row of a movement shows what was recorded up to its log position; later events do not change it.
    changes: of the ticks, only those that come first after a change.
    Raises KeyError if it is no trading contest, OverflowError if an account holds more than a log allows.
    """
    trading, paths = facts.trading(contest), account_histories(facts, contest)
    axis = tick_axis(facts, contest, paths, changes=changes)
    latest = np.cumsum(axis.moved) - 1
    at, tick_at = np.empty(len(axis.moved), np.int64), instants(axis, paths)
    at[axis.moved], at[~axis.moved] = paths.at, tick_at
    log_position = np.where(axis.moved, paths.position[latest], NONE)
    of_ticks, of_moves = _worths(facts, marks, trading, contest, (paths, axis))
    scored_ticks, scored_moves = _scored(facts, contest, paths, axis)

    def laid(ticks: Int64Array, moves: Int64Array) -> Int64Array:
        rows = np.empty(len(axis.moved), np.int64)
        rows[axis.moved], rows[~axis.moved] = moves, ticks
        return rows

    oldest = laid(of_ticks.oldest, of_moves.oldest)
    return Snapshots(
        contest,
        paths.participants,
        participant=paths.account[latest],
        at=at,
        log_position=log_position,
        cash=paths.cash[latest],
        net_deposits=paths.net_deposits[latest],
        realised=paths.realised[latest],
        cost=paths.cost[latest],
        worth=laid(of_ticks.high, of_moves.high),
        rest=laid(of_ticks.low, of_moves.low),
        brier=laid(scored_ticks[0], scored_moves[0]),
        resolved_bets=laid(scored_ticks[1], scored_moves[1]),
        stale_marks=laid(of_ticks.stale, of_moves.stale),
        stale_age=np.where(oldest == _LAST, NONE, at - oldest),
    )


def drawdowns(of: Snapshots) -> dict[Key, int]:
    """Return the maximum drawdown of each account: the largest fall from a peak / the peak, 1e-9, rounded once.

    Deposits and withdrawals do not count: the index I = f V is not moved by them. V is the total of the account; at
    each cash flow F (negative for a withdrawal) the factor f is multiplied by (V - F) / V, with V right after the flow.
    If V or V - F is not positive, index and peak start anew. The drawdown is the largest (P - I) / P, where P is the
    greatest I so far.
    Source: CFA Institute, Global Investment Performance Standards (GIPS) for Firms 2020, "time-weighted return";
    Magdon-Ismail and Atiya (2004), "Maximum drawdown", Risk 17(10):99-102.
    """
    whole, first = of.cash + of.worth, np.searchsorted(of.participant, np.arange(len(of.participants) + 1)).tolist()
    found: dict[Key, int] = {}
    for participant, begin, end in zip(of.participants, first, first[1:], strict=False):
        net = of.net_deposits[begin:end]
        flows = np.diff(net, prepend=0)
        begins = np.union1d([0], np.flatnonzero(flows)).tolist()
        legs = [
            (int(flows[since]) * FINE, _totals(whole[begin:end], of.rest[begin:end], slice(since, until)))
            for since, until in pairwise([*begins, end - begin])
        ]
        found[of.contest, participant] = published(_drawdown(legs))
    return found


def _totals(whole: Int64Array, rest: Int64Array, rows: slice) -> list[int]:
    """Return the totals of some rows at their turning points, 1e-15."""
    turns = _turns(whole[rows], rest[rows])
    return [*_exact(whole[rows][turns], rest[rows][turns])]


def _turns(whole: Int64Array, rest: Int64Array) -> Int64Array:
    """Return the first row, the last row, and the rows where totals turn between rising and falling.

    >>> _turns(int64_array([1, 2, 2, 3, 1, 1, 1, 0]), int64_array([0, 0, 0, 0, 5, 5, 4, 9])).tolist()
    [0, 3, 7]
    """
    step = np.sign(np.diff(whole))
    step = np.where(step == 0, np.sign(np.diff(rest)), step)
    moves = np.flatnonzero(step)
    turned = step[moves[1:]] != step[moves[:-1]]
    return np.concatenate(([0], moves[1:][turned], [len(whole) - 1]))


def _drawdown(legs: Iterable[tuple[int, list[int]]]) -> Fraction:
    """Return the maximum drawdown of one account; 0 before there is a positive peak.

    legs: for each cash flow, the amount that came in with the first total of the leg, and the totals of the leg.
    After a withdrawal of half of 90, half of a peak of 100 remains: from 45 to 40 is a fall from 50.

    >>> _drawdown([(100, [100, 90, 200, 185])]), _drawdown([(100, [100, 90]), (-45, [45, 40]), (60, [100])])
    (Fraction(1, 10), Fraction(1, 5))
    """
    peak, deepest = 0, Fraction(0)  # the peak in 2^-128 of a total
    for inflow, totals in legs:
        if inflow:
            after, before = totals[0], totals[0] - inflow
            peak, deepest = _fallen(peak, deepest, [before])
            peak = half_even(peak * after, before) if before > 0 and after > 0 else 0
        peak, deepest = _fallen(peak, deepest, totals)
    return deepest


def _fallen(peak: int, deepest: Fraction, totals: list[int]) -> tuple[int, Fraction]:
    """Return the peak and the deepest fall after some more totals."""
    lowest = peak
    for each in totals:
        total = each << _BITS
        if total > peak:
            peak = lowest = total
        elif peak and total < lowest:
            lowest = total
            if (peak - total) * deepest.denominator > deepest.numerator * peak:
                deepest = Fraction(peak - total, peak)
    return peak, deepest


# --- values of positions


class _Worth:
    """For each of n rows: the sum of shares x price, as high·2^27 + low; the number of stale marks; and the instant of
    the oldest mark, _LAST if there is none.
    """

    def __init__(self, rows: int) -> None:
        self.low, self.high, self.stale = (np.zeros(rows, np.int64) for _ in range(3))
        self.oldest = np.full(rows, _LAST)

    def add(self, rows: slice | Int64Array, shares: int | Int64Array, marked: tuple[Int64Array, ...]) -> None:
        """Add shares on distinct rows, at their prices."""
        price, quoted_at, stale = marked
        self.low[rows] += price * (shares & _LOW_MASK)
        self.high[rows] += price * (shares >> _LOW_BITS)
        self.stale[rows] += stale
        oldest = self.oldest[rows]
        self.oldest[rows] = np.minimum(oldest, quoted_at, out=oldest)

    def carry(self) -> None:
        """Carry from low to high, so that more products can be added."""
        self.high += self.low >> _LOW_BITS
        self.low &= _LOW_MASK

    def divide(self) -> None:
        """Convert the sums, 1e-15, to whole 1e-6 in high and the remainder in low."""
        self.carry()
        high, rest = np.divmod(self.high, FINE)
        whole, self.low = np.divmod((rest << _LOW_BITS) + self.low, FINE)
        self.high = (high << _LOW_BITS) + whole


def _worths(
    facts: Facts, marks: Marks, trading: Trading, contest: str, where: tuple[AccountHistories, TickAxis]
) -> tuple[_Worth, _Worth]:
    """Return the values at the ticks of all accounts, and at all movements; each price is looked up once."""
    paths, axis = where
    of_ticks, of_moves = _Worth(int(axis.number[-1])), _Worth(len(paths.at))
    as_of = np.full(len(axis.ticks), facts.contests[contest].as_of(facts))
    numbers, ticks = axis.number.tolist(), axis.tick.tolist()
    for count, ((question, outcome), pieces) in enumerate(_pieces(paths).items(), 1):
        price, quoted_at, stale = _marked(marks, trading, (question, outcome), axis.ticks, as_of)
        for begin, end, shares in pieces:
            first, last, tick = numbers[begin], numbers[end], ticks[begin]
            seen = slice(tick, tick + last - first)
            of_ticks.add(slice(first, last), shares, (price[seen], quoted_at[seen], stale[seen]))
        begins, ends, held = map(int64_array, zip(*pieces, strict=True))
        lengths = ends - begins
        rows = np.arange(int(lengths.sum())) + np.repeat(begins - np.cumsum(lengths) + lengths, lengths)
        marked = _marked(marks, trading, (question, outcome), paths.at[rows], paths.position[rows])
        of_moves.add(rows, np.repeat(held, lengths), marked)
        if count % _CARRY_AFTER == 0:
            of_ticks.carry()
            of_moves.carry()
    of_ticks.divide()
    of_moves.divide()
    return of_ticks, of_moves


def _pieces(paths: AccountHistories) -> dict[tuple[int, int], list[_Piece]]:
    """Return the pieces held by question and outcome; the pieces of one account do not overlap."""
    pieces: dict[tuple[int, int], list[_Piece]] = {}
    for moves, first, end in zip(paths.own, paths.first.tolist(), paths.first[1:].tolist(), strict=False):
        held: dict[int, tuple[int, int]] = {}  # position -> since which movement, how many shares
        for here, move in enumerate(moves, first):
            if move.shares:
                since, shares = held.get(move.number, (here, 0))
                if shares:
                    pieces.setdefault((move.question, move.outcome), []).append(_Piece(since, here, shares))
                held[move.number] = here, shares + move.shares
        for since, shares in held.values():
            if shares:
                move = moves[since - first]
                pieces.setdefault((move.question, move.outcome), []).append(_Piece(since, end, shares))
    return pieces


def _marked(
    marks: Marks, trading: Trading, what: tuple[int, int], instants: Int64Array, upto: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the price, when it was quoted, and 1 if it is stale; without a mark 0, _LAST and 1."""
    price, quoted_at = marks.at(trading, *what, instants, upto)
    stale, none = marks.stale(trading, what[0], quoted_at, instants, upto), price < 0
    return np.where(none, 0, price), np.where(none, _LAST, quoted_at), (stale | none).astype(np.int64)


# --- Brier scores


def _scored(
    facts: Facts, contest: str, paths: AccountHistories, axis: TickAxis
) -> tuple[tuple[Int64Array, Int64Array], tuple[Int64Array, Int64Array]]:
    """Return the mean score and number of resolved bets, at the ticks of all accounts and at all movements."""
    as_of = facts.contests[contest].as_of(facts)
    rulings: dict[int, list[Ruling]] = {}
    for ruling in facts.books.rulings:
        if ruling.position <= as_of:
            rulings.setdefault(ruling.question, []).append(ruling)
    caps = {trade.position: trade.cap for trade in facts.books.trades if trade.event.contest == contest}
    ticks = axis.ticks.tolist()
    of_ticks: list[tuple[int, int, int]] = []
    of_moves: list[tuple[int, int, int]] = []
    for own, first, number, tick in zip(
        paths.own, paths.first.tolist(), axis.number[paths.first].tolist(), axis.tick[paths.first[:-1]], strict=False
    ):
        positions = [move.position for move in own]
        by_tick: list[ScoredSpan] = []
        by_move: list[ScoredSpan] = []
        for told in verdicts(own, rulings, caps):
            by_tick += spans(told, [bisect_left(ticks, verdict.at) for verdict in told], len(ticks))
            by_move += spans(told, [bisect_left(positions, verdict.position) for verdict in told], len(own))
        of_ticks += _steps(by_tick, number - int(tick), number)
        of_moves += _steps(by_move, first, first)
    return _filled(of_ticks, int(axis.number[-1])), _filled(of_moves, len(paths.at))


def _steps(counting: list[ScoredSpan], shift: int, first: int) -> Iterator[tuple[int, int, int]]:
    """Yield the changes of one account, numbered among those of all; nothing is scored at its first row."""
    yield first, NONE, 0
    for place, brier, count in means(counting):
        yield place + shift, brier, count


def _filled(steps: list[tuple[int, int, int]], rows: int) -> tuple[Int64Array, Int64Array]:
    """Repeat the mean and number of each step on every row until the next step."""
    begins = int64_array([begin for begin, _, _ in steps])
    lengths = np.diff(np.append(begins, rows))
    brier, count = int64_array([brier for _, brier, _ in steps]), int64_array([count for _, _, count in steps])
    return np.repeat(brier, lengths), np.repeat(count, lengths)


# --- arithmetic


def _exact(whole: Int64Array, rest: Int64Array) -> Iterator[int]:
    """Yield the numbers in 1e-15, not rounded."""
    return (each * FINE + more for each, more in zip(whole.tolist(), rest.tolist(), strict=True))


def _percent(whole: Int64Array, rest: Int64Array, base: Int64Array) -> Int64Array | list[int]:
    """Return 100 x (whole + rest / 1e9) / base in 1e-9, half-even, 0 if the base is 0; a list if a number may be wide.

    The division takes three digits at a time: bases below 2^53 and quotients below 2^26 leave room in 64 bits.
    """
    divisor = np.where(base == 0, 1, base)
    whole, rest = whole * (base != 0), rest * (base != 0)
    quotient, remainder = np.divmod(whole, divisor)
    wide = (base < 0) | (base >= 1 << 53) | (np.abs(quotient) >= 1 << 26)
    quotient, remainder = quotient * ~wide, remainder * ~wide
    for factor, digits in ((1_000, rest // 10**6), (1_000, rest // 1_000 % 1_000), (1_000, rest % 1_000), (100, 0)):
        more, remainder = np.divmod(remainder * factor + digits, divisor)
        quotient = quotient * factor + more
    percent = round_half_even(quotient, remainder, divisor)
    if not wide.any():
        return percent
    numbers: list[int] = percent.tolist()
    for row in np.flatnonzero(wide).tolist():
        part = Fraction(int(whole[row]) * FINE + int(rest[row]), int(base[row]) * FINE)
        numbers[row] = published(100 * part)
    return numbers
