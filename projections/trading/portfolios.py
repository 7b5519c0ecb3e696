"""Portfolios over time: the contents and value of every account of a contest at each tick and after each movement.

Source: Forecaster Arena, Methodology v1, "Snapshot Methodology".
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model.book import share_payout
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.projections.core.arrays import Int64Array, int64_array, round_half_even
from forecast_ledger.projections.core.columns import POINTS, round_to_points
from forecast_ledger.projections.facts.accounts import ENDING_KINDS, FINE_PER_MICRO, AccountKey, Movement
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.trading.account_histories import (
    ALL,
    AccountHistories,
    Selection,
    TickAxis,
    account_histories,
    instants,
    tick_axis,
)
from forecast_ledger.projections.trading.mark_prices import Marks

# --- Scores of an account's stakes over time: each counts from the resolution of its question until that is revoked.
#
# A purchase scores (c - w)²: c is amount / largest bet at that time, w the payout of a share. Source:
# Forecaster Arena, Scoring Methodology, "Deriving Confidence from Bet Size" and "Brier Score".


NO_SCORE = -1
_LIMB_BITS = 128  # bits after the point of the scores that are summed

Ratio = tuple[int, int]  # numerator, denominator


class Ruling(NamedTuple):
    """A ruling on a question: the payout of a share of each outcome; () if it is annulled or revoked."""

    position: int
    at: int
    question: int
    payouts: tuple[Fraction, ...]


class Verdict(NamedTuple):
    """A change of the scores of a position's purchases: from this instant on they have these scores, or none.

    position: in the log. at: when it takes effect in the account, µs. scores: (c - w)², exact, by log position of the
    purchase; empty if the purchases no longer count.
    """

    position: int
    at: int
    scores: dict[int, Ratio]


class ScoredSpan(NamedTuple):
    """Scores that count on [begin, end) of a sequence of ticks or of movements."""

    begin: int
    end: int
    scores: dict[int, Ratio]


def verdicts(
    movements: list[Movement], rulings: dict[int, list[Ruling]], caps: dict[int, int]
) -> Iterator[list[Verdict]]:
    """Yield the changes of the scores of an account's purchases: one list for each position, in log order.

    movements: the account's movements. rulings: by question. caps: the largest bet, 1e-6, by log position of each bet;
    trades of elsewhere have none, and no score.
    An open position is scored when it is settled. A position that was sold earlier is scored at the resolution: from
    its instant, or from the instant of the account's previous movement in the log if that is later.
    """
    positions = [move.position for move in movements]
    by_number: dict[int, list[Movement]] = {}
    for move in movements:
        if move.question in rulings:
            by_number.setdefault(move.number, []).append(move)
    for moves in by_number.values():
        yield list(_verdicts(moves, rulings[moves[0].question], movements, positions, caps))


def _verdicts(
    moves: list[Movement], rulings: list[Ruling], movements: list[Movement], positions: list[int], caps: dict[int, int]
) -> Iterator[Verdict]:
    """Yield the changes of one position; if it is open or settled, one of its movements follows each ruling."""
    share, shares, ended = moves[0].share, 0, False
    bought: list[tuple[int, int, int]] = []
    entries: list[Movement | Ruling] = [*moves, *rulings]
    for entry in sorted(entries, key=lambda entry: entry.position):
        if isinstance(entry, Ruling):
            if bought and not shares and not ended:
                before = movements[bisect_left(positions, entry.position) - 1].at
                payout = share_payout(share, entry.payouts) if entry.payouts else None
                yield Verdict(entry.position, max(entry.at, before), _scores(bought, payout))
            continue
        shares += entry.shares
        if entry.kind == "bought" and entry.position in caps:
            bought.append((entry.position, -entry.cash, caps[entry.position]))
        elif entry.kind not in {"bought", "sold"}:
            ended = entry.kind in ENDING_KINDS
            settled = entry.price is not None and entry.kind == "settled"
            payout = Fraction(entry.price or 0, PROBABILITY) if settled else None
            yield Verdict(entry.position, entry.at, _scores(bought, payout))


def _scores(bought: list[tuple[int, int, int]], payout: Fraction | None) -> dict[int, Ratio]:
    """Return (amount / cap - payout)² of each purchase (log position, amount, cap); {} without a payout."""
    if payout is None:
        return {}
    paid, unit = payout.as_integer_ratio()
    return {position: ((amount * unit - paid * cap) ** 2, (cap * unit) ** 2) for position, amount, cap in bought}


def scored_spans(verdicts: list[Verdict], begins: list[int], end: int) -> Iterator[ScoredSpan]:
    """Yield the range in which each verdict on one position counts: at each index, the last in the log that has begun.

    begins: the index at which each verdict begins. end: the end of the sequence.

    >>> won, lost = {7: (0, 1)}, {7: (1, 1)}
    >>> list(scored_spans([Verdict(8, 0, won), Verdict(9, 0, lost)], [3, 5], 9))
    [ScoredSpan(begin=5, end=9, scores={7: (1, 1)}), ScoredSpan(begin=3, end=5, scores={7: (0, 1)})]
    """
    for verdict, begin in zip(reversed(verdicts), reversed(begins), strict=True):
        if begin < end:
            if verdict.scores:
                yield ScoredSpan(begin, end, verdict.scores)
            end = begin


def mean_changes(spans: list[ScoredSpan]) -> Iterator[tuple[int, int, int]]:
    """Yield each change of the mean of the scores that count: index, mean (1e-9, half-even) and number of scores.

    >>> list(mean_changes([ScoredSpan(2, 5, {7: (1, 4)}), ScoredSpan(3, 9, {8: (0, 1)})]))
    [(2, 250000000, 1), (3, 125000000, 2), (5, 0, 1), (9, -1, 0)]
    """
    changes = [(span.begin, True, span.scores) for span in spans]
    changes += [(span.end, False, span.scores) for span in spans]
    standing: dict[int, Ratio] = {}
    low = 0
    for index, group in groupby(sorted(changes, key=itemgetter(0, 1)), key=itemgetter(0)):
        for _, begins, scores in group:
            for purchase, score in scores.items():
                low += _low(score) if begins else -_low(score)
                if begins:
                    standing[purchase] = score
                else:
                    del standing[purchase]
        yield index, _mean(standing.values(), low), len(standing)


def _low(score: Ratio) -> int:
    """Return a score in 2^-128, rounded down."""
    return (score[0] << _LIMB_BITS) // score[1]


def _mean(scores: Collection[Ratio], low: int) -> int:
    """Return the mean of scores, 1e-9, half-even.

    low: a lower bound of their sum, 2^-128; the error is less than one unit for each score. If the rounding depends on
    this error, the fractions themselves are summed, which is slower.
    """
    count = len(scores)
    if not count:
        return NO_SCORE
    least, most = (half_even(total * POINTS, count << _LIMB_BITS) for total in (low, low + count))
    if least == most:
        return least
    return round_to_points(Fraction(sum((Fraction(*score) for score in scores), Fraction(0)), count))


MISSING = -1  # no log position, score or age
_LAST = (1 << 63) - 1  # later than every instant
_LOW_BITS = 27  # an account has at most 1e18 shares: their part above 2^27, times a price of 1e9, is below 2^63
_LOW_MASK = (1 << _LOW_BITS) - 1
_BITS = 128  # bits after the point of a peak that is scaled at a deposit or a withdrawal
_CARRY_AFTER = 64  # products below 2^27 x 1e9 are added before a carry; 68 of them reach 2^63


class Snapshots(NamedTuple):
    """One row for each tick and each movement of every account of a contest; shape (n,).

    Rows are in order of participant, instant and log position; a tick comes after the movements of its instant.
    participant: index into `participants`, in order of id. at: µs. log_position: MISSING at a tick. cash, net_deposits,
    realised, cost (of open positions): 1e-6. worth, remainder: value of open positions at their marks, in whole 1e-6
    and what is left in 1e-15. brier: mean over resolved_bets, 1e-9; MISSING without any. stale_marks: number of open
    positions with a stale mark or none. stale_age: age of the oldest mark, µs; MISSING without a mark.
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
    remainder: Int64Array
    brier: Int64Array
    resolved_bets: Int64Array
    stale_marks: Int64Array
    stale_age: Int64Array

    @property
    def positions_value(self) -> Int64Array:
        """The value of open positions, 1e-6, rounded once."""
        return round_half_even(self.worth, self.remainder, FINE_PER_MICRO)

    @property
    def total(self) -> Int64Array:
        """Cash + value of open positions, 1e-6, rounded once after the sum."""
        return round_half_even(self.cash + self.worth, self.remainder, FINE_PER_MICRO)

    @property
    def profit(self) -> Int64Array:
        """The total - net deposits, 1e-6, rounded once."""
        return round_half_even(self.cash + self.worth - self.net_deposits, self.remainder, FINE_PER_MICRO)

    @property
    def unrealised(self) -> Int64Array:
        """The value - cost of open positions, 1e-6, rounded once."""
        return round_half_even(self.worth - self.cost, self.remainder, FINE_PER_MICRO)

    @property
    def profit_percent(self) -> Int64Array | list[int]:
        """100 x profit / net deposits, 1e-9, rounded once; 0 if the net deposits are 0."""
        return _percent(self.cash + self.worth - self.net_deposits, self.remainder, self.net_deposits)


class _Piece(NamedTuple):
    """Shares of one kind held from one movement of an account until another, or until the end."""

    begin: int
    end: int
    shares: int


def snapshots(
    facts: Facts, marks: Marks, contest: str, selection: Selection = ALL, *, changes: bool = False
) -> Snapshots:
    """Return the selected portfolios of a trading contest at every tick and movement.

    A row shows what is known at its instant: the movements in effect by then, and the last quote of each question known
    by then. Ticks come every `snapshot_seconds` from the start of the contest to its completion or the latest instant
    in the log. The row of a movement shows what was recorded up to its log position; later events do not change it.
    changes: leave out ticks at which no account has another value than at the tick before; then no instant is selected.
    Raises KeyError if it is not a trading contest, OverflowError if an account holds more than a log allows.
    """
    trading, histories = facts.trading(contest), account_histories(facts, contest, selection)
    axis = tick_axis(facts, contest, histories, selection, changes=changes)
    latest = np.cumsum(axis.moved) - 1
    at, tick_at = np.empty(len(axis.moved), np.int64), instants(axis, histories)
    at[axis.moved], at[~axis.moved] = histories.at, tick_at
    log_position = np.where(axis.moved, histories.position[latest], MISSING)
    tick_worth, move_worth = _worths(facts, marks, trading, contest, (histories, axis))
    tick_scores, move_scores = _scored(facts, contest, histories, axis)

    def in_row_order(ticks: Int64Array, moves: Int64Array) -> Int64Array:
        rows = np.empty(len(axis.moved), np.int64)
        rows[axis.moved], rows[~axis.moved] = moves, ticks
        return rows

    oldest = in_row_order(tick_worth.oldest, move_worth.oldest)
    whole = Snapshots(
        contest,
        histories.participants,
        participant=histories.account[latest],
        at=at,
        log_position=log_position,
        cash=histories.cash[latest],
        net_deposits=histories.net_deposits[latest],
        realised=histories.realised[latest],
        cost=histories.cost[latest],
        worth=in_row_order(tick_worth.high, move_worth.high),
        remainder=in_row_order(tick_worth.low, move_worth.low),
        brier=in_row_order(tick_scores[0], move_scores[0]),
        resolved_bets=in_row_order(tick_scores[1], move_scores[1]),
        stale_marks=in_row_order(tick_worth.stale, move_worth.stale),
        stale_age=np.where(oldest == _LAST, MISSING, at - oldest),
    )
    rows = selection.instants(at)
    return whole if rows.all() else Snapshots(contest, histories.participants, *(column[rows] for column in whole[2:]))


def drawdowns(portfolios: Snapshots) -> dict[AccountKey, int]:
    """Return the maximum drawdown of each account: the largest fall from a peak / the peak, 1e-9, rounded once.

    Deposits and withdrawals do not count: they do not change the index I = f V. V is the total of the account; at
    each cash flow F (negative for a withdrawal) the factor f is multiplied by (V - F) / V, with V right after the flow.
    If V or V - F is not positive, index and peak start again. The drawdown is the largest (P - I) / P, where P is the
    greatest I so far.
    Source: CFA Institute, Global Investment Performance Standards (GIPS) for Firms 2020, "time-weighted return";
    Magdon-Ismail and Atiya (2004), "Maximum drawdown", Risk 17(10):99-102.
    """
    whole, participants = portfolios.cash + portfolios.worth, portfolios.participants
    first = np.searchsorted(portfolios.participant, np.arange(len(participants) + 1)).tolist()
    by_account: dict[AccountKey, int] = {}
    for participant, begin, end in zip(participants, first, first[1:], strict=False):
        net = portfolios.net_deposits[begin:end]
        flows = np.diff(net, prepend=0)
        begins = np.union1d([0], np.flatnonzero(flows)).tolist()
        remainder = portfolios.remainder[begin:end]
        legs = [
            (int(flows[since]) * FINE_PER_MICRO, _totals(whole[begin:end], remainder, slice(since, until)))
            for since, until in pairwise([*begins, end - begin])
        ]
        by_account[portfolios.contest, participant] = round_to_points(_drawdown(legs))
    return by_account


def _totals(whole: Int64Array, remainder: Int64Array, rows: slice) -> list[int]:
    """Return the totals of some rows at their turning points, 1e-15."""
    turns = _turns(whole[rows], remainder[rows])
    return [*_exact(whole[rows][turns], remainder[rows][turns])]


def _turns(whole: Int64Array, remainder: Int64Array) -> Int64Array:
    """Return the first row, the last row, and the rows where totals turn between rising and falling.

    >>> _turns(int64_array([1, 2, 2, 3, 1, 1, 1, 0]), int64_array([0, 0, 0, 0, 5, 5, 4, 9])).tolist()
    [0, 3, 7]
    """
    step = np.sign(np.diff(whole))
    step = np.where(step == 0, np.sign(np.diff(remainder)), step)
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
    for amount in totals:
        total = amount << _BITS
        if total > peak:
            peak = lowest = total
        elif peak and total < lowest:
            lowest = total
            if (peak - total) * deepest.denominator > deepest.numerator * peak:
                deepest = Fraction(peak - total, peak)
    return peak, deepest


# --- values of positions


class _Worth:
    """The values of n rows.

    low, high: the sum of shares x price is high·2^27 + low. stale: the number of stale marks. oldest: the instant of
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
        high, remainder = np.divmod(self.high, FINE_PER_MICRO)
        whole, self.low = np.divmod((remainder << _LOW_BITS) + self.low, FINE_PER_MICRO)
        self.high = (high << _LOW_BITS) + whole


def _worths(
    facts: Facts, marks: Marks, trading: Trading, contest: str, history: tuple[AccountHistories, TickAxis]
) -> tuple[_Worth, _Worth]:
    """Return the values at the ticks of all accounts, and at all movements; each price is looked up once."""
    histories, axis = history
    tick_worth, move_worth = _Worth(int(axis.number[-1])), _Worth(len(histories.at))
    as_of = np.full(len(axis.ticks), facts.contests[contest].as_of(facts))
    numbers, ticks = axis.number.tolist(), axis.tick.tolist()
    for count, ((question, share), pieces) in enumerate(_pieces(histories).items(), 1):
        price, quoted_at, stale = _marked(marks, trading, (question, share), axis.ticks, as_of)
        for begin, end, shares in pieces:
            first, last, tick = numbers[begin], numbers[end], ticks[begin]
            at_ticks = slice(tick, tick + last - first)
            tick_worth.add(slice(first, last), shares, (price[at_ticks], quoted_at[at_ticks], stale[at_ticks]))
        begins, ends, held = map(int64_array, zip(*pieces, strict=True))
        lengths = ends - begins
        rows = np.arange(int(lengths.sum())) + np.repeat(begins - np.cumsum(lengths) + lengths, lengths)
        marked = _marked(marks, trading, (question, share), histories.at[rows], histories.position[rows])
        move_worth.add(rows, np.repeat(held, lengths), marked)
        if count % _CARRY_AFTER == 0:
            tick_worth.carry()
            move_worth.carry()
    tick_worth.divide()
    move_worth.divide()
    return tick_worth, move_worth


def _pieces(histories: AccountHistories) -> dict[tuple[int, int], list[_Piece]]:
    """Return the pieces held by question and share; the pieces of one account do not overlap."""
    pieces: dict[tuple[int, int], list[_Piece]] = {}
    for moves, first, end in zip(
        histories.movements, histories.first.tolist(), histories.first[1:].tolist(), strict=False
    ):
        held: dict[int, tuple[int, int]] = {}  # position -> row of the movement that changed it last, shares
        for row, move in enumerate(moves, first):
            if move.shares:
                since, shares = held.get(move.number, (row, 0))
                if shares:
                    pieces.setdefault((move.question, move.share), []).append(_Piece(since, row, shares))
                held[move.number] = row, shares + move.shares
        for since, shares in held.values():
            if shares:
                move = moves[since - first]
                pieces.setdefault((move.question, move.share), []).append(_Piece(since, end, shares))
    return pieces


def _marked(
    marks: Marks, trading: Trading, share: tuple[int, int], instants: Int64Array, upto: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the price, when it was quoted, and 1 if it is stale; 0, _LAST and 1 if there is no mark."""
    price, quoted_at = marks.at(trading, *share, instants, upto)
    stale, none = marks.stale(trading, share[0], quoted_at, instants, upto), price < 0
    return np.where(none, 0, price), np.where(none, _LAST, quoted_at), (stale | none).astype(np.int64)


# --- Brier scores


def _scored(
    facts: Facts, contest: str, histories: AccountHistories, axis: TickAxis
) -> tuple[tuple[Int64Array, Int64Array], tuple[Int64Array, Int64Array]]:
    """Return the mean score and number of resolved bets, at the ticks of all accounts and at all movements."""
    as_of, entries = facts.contests[contest].as_of(facts), facts.contests[contest].entries
    rulings: dict[int, list[Ruling]] = {}
    for row in facts.settlements:
        if row.position <= as_of and row.question in entries:
            payouts = row.paid(len(facts.questions[row.question].outcomes))
            rulings.setdefault(row.question, []).append(Ruling(row.position, row.at, row.question, payouts))
    caps = {trade.position: trade.cap for trade in facts.books.trades if trade.cap and trade.event.contest == contest}
    ticks = axis.ticks.tolist()
    tick_steps: list[tuple[int, int, int]] = []
    move_steps: list[tuple[int, int, int]] = []
    for movements, first, number, tick in zip(
        histories.movements,
        histories.first.tolist(),
        axis.number[histories.first].tolist(),
        axis.tick[histories.first[:-1]],
        strict=False,
    ):
        positions = [move.position for move in movements]
        by_tick: list[ScoredSpan] = []
        by_move: list[ScoredSpan] = []
        for changes in verdicts(movements, rulings, caps):
            by_tick += scored_spans(changes, [bisect_left(ticks, verdict.at) for verdict in changes], len(ticks))
            by_move += scored_spans(
                changes, [bisect_left(positions, verdict.position) for verdict in changes], len(movements)
            )
        tick_steps += _steps(by_tick, number - int(tick), number)
        move_steps += _steps(by_move, first, first)
    return _filled(tick_steps, int(axis.number[-1])), _filled(move_steps, len(histories.at))


def _steps(spans: list[ScoredSpan], shift: int, first: int) -> Iterator[tuple[int, int, int]]:
    """Yield the changes of one account, numbered among those of all accounts; its first row has no score."""
    yield first, MISSING, 0
    for index, brier, count in mean_changes(spans):
        yield index + shift, brier, count


def _filled(steps: list[tuple[int, int, int]], rows: int) -> tuple[Int64Array, Int64Array]:
    """Repeat the mean and number of each step on every row until the next step."""
    begins = int64_array([begin for begin, _, _ in steps])
    lengths = np.diff(np.append(begins, rows))
    brier, count = int64_array([brier for _, brier, _ in steps]), int64_array([count for _, _, count in steps])
    return np.repeat(brier, lengths), np.repeat(count, lengths)


# --- arithmetic


def _exact(whole: Int64Array, remainder: Int64Array) -> Iterator[int]:
    """Yield the numbers in 1e-15, not rounded."""
    return (high * FINE_PER_MICRO + low for high, low in zip(whole.tolist(), remainder.tolist(), strict=True))


def _percent(whole: Int64Array, fine: Int64Array, base: Int64Array) -> Int64Array | list[int]:
    """Return 100 x (whole + fine / 1e9) / base in 1e-9, half-even, 0 if the base is 0; a list if a number may be wide.

    The division takes three digits at a time: bases below 2^53 and quotients below 2^26 leave room in 64 bits.
    """
    divisor = np.where(base == 0, 1, base)
    whole, fine = whole * (base != 0), fine * (base != 0)
    quotient, remainder = np.divmod(whole, divisor)
    wide = (base < 0) | (base >= 1 << 53) | (np.abs(quotient) >= 1 << 26)
    quotient, remainder = quotient * ~wide, remainder * ~wide
    for factor, digits in ((1_000, fine // 10**6), (1_000, fine // 1_000 % 1_000), (1_000, fine % 1_000), (100, 0)):
        more, remainder = np.divmod(remainder * factor + digits, divisor)
        quotient = quotient * factor + more
    percent = round_half_even(quotient, remainder, divisor)
    if not wide.any():
        return percent
    numbers: list[int] = percent.tolist()
    for row in np.flatnonzero(wide).tolist():
        part = Fraction(int(whole[row]) * FINE_PER_MICRO + int(fine[row]), int(base[row]) * FINE_PER_MICRO)
        numbers[row] = round_to_points(100 * part)
    return numbers
