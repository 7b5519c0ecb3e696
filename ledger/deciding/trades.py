"""Trades: the legs of a decision, each carried out or refused, and trades that happened elsewhere."""

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

from msgspec import structs

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.deciding.accounts import trading_account
from forecast_ledger.ledger.deciding.state import (
    AccountState,
    ContestState,
    Decide,
    Evolve,
    PositionState,
    QuestionState,
    State,
    Write,
)
from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.book import AGAINST, TradeEvent, change_of, counted, outcome_of, share_of, share_price
from forecast_ledger.ledger.model.mismatch import money_text
from forecast_ledger.ledger.model.replies import Reply
from forecast_ledger.ledger.model.trading_rules import WHOLE, FeeRounding, Trading, bet_cap, is_stale

_MILLION = 10**6  # a rate is in parts per million


def trade_fee(trading: Trading, shares: int, price: int, change: int) -> int:
    """Return the fee of a purchase or a sale: rate x shares x (price x (1 - price))^exponent, rounded by the rules.

    shares: bought or sold, 1e-6. price: of a share, 1e-9. change: of cash, without the fee, 1e-6; below 0 for a
    purchase. The fee is in 1e-6, at least 0, and 0 if the rules have no rate.

    Source: Kalshi, Fee Schedule, "General Trading Fees" (rate 0.07), and API documentation, "Fee Rounding";
    Polymarket, documentation, "Fees", "Fee Structure" and "Fee Precision".

    Kalshi's price for 100 contracts at 0.25, which is rounded up to a cent:

    >>> kalshi = Trading(fee_rate_ppm=70_000, fee_unit_micros=10_000, fee_rounding="cash")
    >>> trade_fee(kalshi, 100 * 10**6, PROBABILITY // 4, -25 * 10**6)
    1320000
    """
    if not trading.fee_rate_ppm:
        return 0
    curve = (price * (PROBABILITY - price)) ** trading.fee_exponent
    divisor = _MILLION * PROBABILITY ** (2 * trading.fee_exponent)
    rounded = ROUNDINGS[trading.fee_rounding]
    return rounded(trading.fee_rate_ppm * shares * curve, divisor, trading.fee_unit_micros, change)


def _up(numerator: int, divisor: int, unit: int, _: int) -> int:
    return -(-numerator // (divisor * unit)) * unit


def _half_even(numerator: int, divisor: int, unit: int, _: int) -> int:
    return half_even(numerator, divisor * unit) * unit


def _down(numerator: int, divisor: int, unit: int, _: int) -> int:
    return numerator // (divisor * unit) * unit


def _cash(numerator: int, divisor: int, unit: int, change: int) -> int:
    """Round up until the change of cash is a multiple of the unit.

    The first fill of Kalshi's example "Fractional contracts": 0.15 is paid, 0.0041 is due, and 0.16 leaves the account.

    >>> _cash(4_100, 1, 10_000, -150_000)
    10000
    """
    return change + _up(numerator - change * divisor, divisor, unit, 0)


# Each function takes the fee as a fraction, numerator and divisor, in 1e-6; the unit; and the change of cash.
ROUNDINGS: dict[FeeRounding, Callable[[int, int, int, int], int]] = {
    "up": _up,
    "half_even": _half_even,
    "down": _down,
    "cash": _cash,
}


_NUMBER = re.compile("[1-9][0-9]{0,17}", re.ASCII)
Leg = events.SharesBought | events.SharesSold | events.LegRefused


class _RefusedLegError(Exception):
    """A leg that cannot be carried out; its argument is the code."""


def carry_out_legs(
    reply: Reply, command: commands.RecordDecision, at: int, contest: ContestState, state: State
) -> list[Leg]:
    """Return one event for each leg of a reply, in order; a leg starts from the account that the one before it leaves.

    If bets are all or nothing, all are refused if one is.
    """
    run = _LegRun(command, at, contest, state)
    done: list[Leg] = [
        *(run.try_leg(leg, run.buy, bet) for leg, bet in enumerate(reply.bets, 1)),
        *(run.try_leg(leg, run.sell, sale) for leg, sale in enumerate(reply.sells, 1)),
    ]
    refused = any(type(leg) is events.LegRefused for leg in done)
    if reply.action != "BET" or run.trading.legs == "independent" or not refused:
        return done
    return [leg if type(leg) is events.LegRefused else run.refusal(leg.leg, "sibling_refused") for leg in done]


class _LegRun:
    """The legs of one attempt, with the account and positions that they change; the state itself does not change."""

    def __init__(self, command: commands.RecordDecision, at: int, contest: ContestState, state: State) -> None:
        self.command, self.at, self.state = command, at, state
        self.trading = contest.rules.trading or Trading()
        self.key = state.account_key(command.contest, command.participant)
        self.account: AccountState = state.accounts[self.key]
        self.positions: dict[int, PositionState] = {}  # those that a leg has changed
        self.taken: dict[tuple[str, int, bool], int] = {}  # shares that legs have taken from quotes, by their side
        self.held: dict[tuple[str, int], int] = {}  # question, share -> number of the newest position opened here

    def try_leg(self, leg: int, carry_out: Callable[[Any, dict[str, Any]], Leg], order: Any) -> Leg:
        """Carry out a leg, or refuse it."""
        try:
            return carry_out(order, self.leg_fields(leg))
        except _RefusedLegError as refused:
            return self.refusal(leg, *refused.args)

    def buy(self, bet: events.Bet, fields: dict[str, Any]) -> events.SharesBought:
        """Buy shares for an amount at the quoted price, rounded down; confidence is the amount / the largest bet.

        The price is the ask if the rules fill at bid and ask. The fee is paid on top of the amount, and limits of bets
        do not include it.
        Refuses, first that applies: unknown_market, unknown_side, market_closed, no_quote, quote_too_new, stale_quote,
        no_ask, no_price, above_cap, not_enough_depth, not_enough_cash, too_many_shares.

        Source: Forecaster Arena, Scoring Methodology, "Deriving Confidence from Bet Size" and "Position Mechanics".
        """
        share = self.share(bet)
        price, quote = self.quoted_price(bet.question, share, "no_ask")
        most = bet_cap(self.trading, self.account.cash)
        shares = bet.amount * values.PROBABILITY // max(price, 1)
        if not price:
            raise _RefusedLegError("no_price")
        if bet.amount > most:
            raise _RefusedLegError("above_cap")
        wanted, amount = shares, bet.amount
        side = (bet.question, *self.state.questions[bet.question].side(share, bought=True))
        shares = self.within_depth(shares, side)
        if shares < wanted:
            amount = -(-shares * price // values.PROBABILITY)
        fee = trade_fee(self.trading, shares, price, -amount)
        if amount + fee > self.account.cash:
            raise _RefusedLegError("not_enough_cash")
        if self.account.bought + shares > values.LARGEST_HOLDING:
            raise _RefusedLegError("too_many_shares")
        number, held = self.open_position(bet.question, share)
        event = events.SharesBought(
            **fields,
            question=bet.question,
            outcome=outcome_of(share),
            against=share < 0,
            position=number,
            price=price,
            quote=quote,
            cash=self.account.cash,
            amount=amount,
            shares=shares,
            confidence=half_even(bet.amount * values.PROBABILITY, most),
            fee=fee,
            requested=bet.amount * (shares < wanted),
        )
        self.account, self.positions[number] = after_trade(event, self.account, held)
        self.taken[side] = self.taken.get(side, 0) + shares
        self.held[bet.question, share] = number
        return event

    def sell(self, sale: events.Sale, fields: dict[str, Any]) -> events.SharesSold:
        """Sell a percentage of the shares held, at the quoted price; shares, cost and proceeds are rounded down.

        The price is the bid if the rules fill at bid and ask. 100 percent sells all.
        Refuses, first that applies: no_position, market_closed, no_quote, quote_too_new, stale_quote, no_bid,
        no_shares, not_enough_depth, not_enough_cash (a fee above the proceeds that the cash does not cover).
        """
        number = int(sale.position) if _NUMBER.fullmatch(sale.position) else 0
        held = self.position(number)
        if held is None or not held.is_open():
            raise _RefusedLegError("no_position")
        price, quote = self.quoted_price(held.question, held.share, "no_bid")
        shares = held.shares if sale.percentage == WHOLE else held.shares * sale.percentage // WHOLE
        if not shares:
            raise _RefusedLegError("no_shares")
        wanted = shares
        side = (held.question, *self.state.questions[held.question].side(held.share, bought=False))
        shares = self.within_depth(shares, side)
        cost = held.cost * shares // held.shares
        proceeds = shares * price // values.PROBABILITY
        fee = trade_fee(self.trading, shares, price, proceeds)
        if fee > max(proceeds, proceeds + self.account.cash):
            raise _RefusedLegError("not_enough_cash")
        event = events.SharesSold(
            **fields,
            question=held.question,
            outcome=outcome_of(held.share),
            against=held.share < 0,
            position=number,
            price=price,
            quote=quote,
            shares=shares,
            cost=cost,
            proceeds=proceeds,
            fee=fee,
            requested=wanted * (shares < wanted),
        )
        self.account, self.positions[number] = after_trade(event, self.account, held)
        self.taken[side] = self.taken.get(side, 0) + shares
        return event

    def share(self, bet: events.Bet) -> int:
        """Return the share that a bet buys; the side of a binary question may be in any case.

        With the rule `shares_against`, the side of a question with several outcomes may be `not` and an outcome; the
        name of an outcome comes first.
        """
        question = self.state.questions.get(bet.question)
        if question is None or (self.command.contest, bet.question) not in self.state.entries:
            raise _RefusedLegError("unknown_market")
        binary = question.kind == "binary"
        side = bet.side.lower() if binary else bet.side
        if side in question.current:
            return question.outcomes.index(side)
        other = side.removeprefix(AGAINST)
        if binary or not self.trading.shares_against or other == side or other not in question.current:
            raise _RefusedLegError("unknown_side")
        return ~question.outcomes.index(other)

    def quoted_price(self, name: str, share: int, missing: Literal["no_bid", "no_ask"]) -> tuple[int, int]:
        """Return the price at which a share is bought or sold, 1e-9, and the log position of the quote.

        missing: the code if the rules fill at bid and ask, and the quote has none. Who buys a share against an outcome
        sells one of it.
        """
        question, quoted, outcome = self.state.questions[name], self.state.quotes.get(name), outcome_of(share)
        if question.settled or not question.opens_at <= self.at < question.closed_at:
            raise _RefusedLegError("market_closed")
        at_side = self.trading.fills == "bid_ask"
        if quoted is None or (quoted.prices[outcome] is None and not at_side):
            raise _RefusedLegError("no_quote")
        if quoted.quoted_at > self.at:
            raise _RefusedLegError("quote_too_new")
        if is_stale(self.trading, quoted.quoted_at, self.at):
            raise _RefusedLegError("stale_quote")
        side = quoted.asks if (missing == "no_ask") == (share >= 0) else quoted.bids
        price = (side[outcome] if side else None) if at_side else quoted.prices[outcome]
        if price is None:
            raise _RefusedLegError(missing)
        return share_price(share, price), quoted.position

    def within_depth(self, shares: int, side: tuple[str, int, bool]) -> int:
        """Return how many of some shares the last quote still has for the account.

        side: the question, the outcome that is traded with, and whether with its asks. A quote that does not say how
        many shares it has is not limited. Other accounts take nothing from it.
        """
        question, outcome, asks = side
        quoted = self.state.quotes[question]
        sizes = quoted.ask_sizes if asks else quoted.bid_sizes
        size = sizes[outcome] if sizes else None
        if self.trading.depth == "unlimited" or size is None:
            return shares
        quote, before = self.state.taken_shares.get((*self.key, *side), (0, 0))
        left = size - before * (quote == quoted.position) - self.taken.get(side, 0)
        if left <= 0 or (shares > left and self.trading.depth == "refuse"):
            raise _RefusedLegError("not_enough_depth")
        return min(shares, left)

    def open_position(self, question: str, share: int) -> tuple[int, PositionState]:
        """Return the open position in a share with its number, or an empty one with the next free number."""
        newest = self.state.held.get((*self.key, question, share), 0)
        number = self.held.get((question, share), newest)
        held = self.position(number)
        if held is not None and held.is_open():
            return number, held
        return self.account.positions + 1, PositionState(question, share)

    def position(self, number: int) -> PositionState | None:
        """Return a position as the previous legs left it."""
        return self.positions.get(number) or self.state.positions.get((*self.key, number))

    def refusal(self, leg: int, code: str) -> events.LegRefused:
        """Return the event of a leg that is not carried out."""
        return events.LegRefused(**self.leg_fields(leg), code=code)

    def leg_fields(self, leg: int) -> dict[str, Any]:
        """Return the fields that name a leg."""
        command = self.command
        return {
            "at": self.at,
            "contest": command.contest,
            "participant": command.participant,
            "period": command.period,
            "attempt": command.attempt,
            "leg": leg,
        }


def after_trade(event: TradeEvent, account: AccountState, held: PositionState) -> tuple[AccountState, PositionState]:
    """Return an account and its position as a trade leaves them."""
    change, bought = change_of(event), account.bought + counted(event)
    paid_or_received = change.cash + change.fee
    return (
        structs.replace(
            account, cash=account.cash + change.cash, positions=max(account.positions, event.position), bought=bought
        ),
        structs.replace(
            held,
            shares=held.shares + change.shares,
            cost=held.cost + change.cost,
            paid=held.paid - min(paid_or_received, 0),
            received=held.received + max(paid_or_received, 0),
            fees=held.fees + change.fee,
        ),
    )


def traded(event: TradeEvent, state: State, _: int) -> tuple[Write, ...]:
    """Change the account and the position of a trade. Raises KeyError if its question is not in the contest."""
    key, contest = state.account_key(event.contest, event.participant), state.contests[event.contest]
    position_key = (*key, event.position)
    is_new = position_key not in state.positions and not isinstance(event, events.SharesSold)
    held = PositionState(event.question, share_of(event)) if is_new else state.positions[position_key]
    account, after = after_trade(event, state.accounts[key], held)
    opened = after.is_open() - held.is_open()
    writes: tuple[Write, ...] = ((state.accounts, key, account), (state.positions, position_key, after))
    if opened and state.completes(event.contest, event.participant):
        writes += ((state.contests, event.contest, structs.replace(contest, open=contest.open + opened)),)
    if is_new:
        writes += _new_position(event, position_key, state)
    if isinstance(event, events.TradeRecorded):
        return writes
    return writes + _update_traded_at(event, state) + _update_depth(event, state)


def _new_position(event: TradeEvent, key: tuple[str, str, int], state: State) -> tuple[Write, ...]:
    """Note who holds a position that is new. Raises KeyError if its question is not in the contest."""
    state.entries[event.contest, event.question]
    holders = state.holders.get(event.question, {})
    return (
        (state.holders, event.question, holders),
        (holders, key, True),
        (state.held, (*key[:2], event.question, share_of(event)), event.position),
    )


def _update_traded_at(event: events.SharesBought | events.SharesSold, state: State) -> tuple[Write, ...]:
    """Update the instant of the latest trade on the question."""
    question = state.questions[event.question]
    if event.at <= question.traded_at:
        return ()
    return ((state.questions, event.question, question._replace(traded_at=event.at)),)


def _update_depth(event: events.SharesBought | events.SharesSold, state: State) -> tuple[Write, ...]:
    """Count the shares that an account has taken from a quote, if the rules of the contest limit them."""
    trading = state.contests[event.contest].rules.trading
    if trading is None or trading.depth == "unlimited":
        return ()
    side = state.questions[event.question].side(share_of(event), bought=isinstance(event, events.SharesBought))
    key = (*state.account_key(event.contest, event.participant), event.question, *side)
    quote, taken = state.taken_shares.get(key, (0, 0))
    return ((state.taken_shares, key, (event.quote, taken * (quote == event.quote) + event.shares)),)


def record_trade(command: commands.RecordTrade, state: State) -> tuple[events.TradeRecorded, ...]:
    """Return an event for each share that is traded.

    Refuses, first that applies: malformed (outcome and all_but), out_of_range, unknown_contest, unknown_question,
    wrong_fields_for_kind (a question with a range), unknown_outcome, question_resolved, before_opening,
    contest_finalized, question_not_in_contest, not_trading, not_enrolled, no_recorded_trades, not_enough_shares,
    too_much_traded, not_enough_cash.
    """
    if command.outcome is not None and command.all_but is not None:
        raise Refused("malformed", "all_but", None, "give outcome or all_but, or neither for complete sets")
    at = values.read_instant(command.at)
    shares = values.read_fixed(command.shares, values.MONEY, "shares", 1, values.LARGEST_HOLDING)
    amount = values.read_fixed(command.amount, values.MONEY, "amount", 0, values.LARGEST_POOL)
    fee = values.read_fixed(command.fee, values.MONEY, "fee", 0, values.LARGEST_POOL)
    state.contest(command.contest)
    question = state.question(command.question)
    which = _outcomes(command, question)
    if question.settled:
        raise Refused("question_resolved", "question", command.question)
    if at < question.opens_at:
        raise Refused("before_opening", "at", command.at)
    state.open_contest(command.contest)
    if (command.contest, command.question) not in state.entries:
        raise Refused("question_not_in_contest", "question", command.question)
    contest, account = trading_account(command.contest, command.participant, state)
    trading = contest.rules.trading or Trading()
    if not trading.recorded_trades:
        raise Refused("no_recorded_trades", "contest", command.contest)
    signed = shares if command.action == "buy" else -shares
    if command.all_but is not None and trading.shares_against and question.kind != "binary":
        which = (~question.outcomes.index(command.all_but),)
    trades = tuple(_parts(command, state, which, (at, signed, amount, fee)))
    _check_limits(command, trades, state, trading, account)
    return trades


def _outcomes(command: commands.RecordTrade, question: QuestionState) -> tuple[int, ...]:
    """Return the indexes of the outcomes that are traded. Refuses: wrong_fields_for_kind, unknown_outcome."""
    if question.range is not None:
        raise Refused("wrong_fields_for_kind", "question", command.question, "shares are of named outcomes")
    for field, name in (("outcome", command.outcome), ("all_but", command.all_but)):
        if name is not None and name not in question.current:
            raise Refused("unknown_outcome", field, name)
    chosen = question.current if command.outcome is None else (command.outcome,)
    return tuple(question.outcomes.index(name) for name in chosen if name != command.all_but)


def _parts(
    command: commands.RecordTrade, state: State, which: tuple[int, ...], numbers: tuple[int, int, int, int]
) -> Iterator[events.TradeRecorded]:
    """Yield the part of each share: equal parts of the amount, of which the first ones take what is left over.

    which: the shares. numbers: the instant, µs, how many of each, below 0 if they are sold, the amount and the fee,
    1e-6. The fee is that of the first part.
    """
    at, count, amount, fee = numbers
    key, parts = state.account_key(command.contest, command.participant), len(which)
    free = state.accounts[key].positions
    for index, share in enumerate(which):
        number = state.held.get((*key, command.question, share), 0)
        held = state.positions.get((*key, number))
        if held is None or not held.is_open():
            free += 1
            number, held = free, PositionState(command.question, share)
        part = amount // parts + (index < amount % parts)
        yield events.TradeRecorded(
            at=at,
            contest=command.contest,
            participant=command.participant,
            question=command.question,
            outcome=outcome_of(share),
            against=share < 0,
            position=number,
            shares=count,
            amount=part,
            cost=cost_change(held, count, part),
            fee=0 if index else fee,
            parts=parts,
        )


def cost_change(held: PositionState, shares: int, amount: int) -> int:
    """Return what a trade adds to the cost of a position, at average cost, rounded down.

    shares: 1e-6, below 0 if they are sold. amount: paid or received, 1e-6.

    Half of 4 shares that cost 10 are sold; 6 are, so that 2 are owed, a third of the 12 that came in:

    >>> held = PositionState("rain", 0, shares=4, cost=10)
    >>> cost_change(held, -2, 7), cost_change(held, -6, 12), cost_change(held, 1, 3)
    (-5, -14, 3)
    """
    signed = amount if shares > 0 else -amount
    if held.shares * shares >= 0:
        return signed
    closed = min(abs(shares), abs(held.shares))
    opened = signed * (abs(shares) - closed) // abs(shares)
    return opened - held.cost * closed // abs(held.shares)


def _check_limits(
    command: commands.RecordTrade,
    trades: tuple[events.TradeRecorded, ...],
    state: State,
    trading: Trading,
    account: AccountState,
) -> None:
    """Refuse, first that applies: not_enough_shares, too_much_traded, not_enough_cash."""
    key = state.account_key(command.contest, command.participant)
    for trade in trades:
        held = state.positions.get((*key, trade.position), PositionState("", 0))
        if trade.shares < -held.shares and trade.shares < 0 and not trading.short_sales:
            side = "against" if trade.against else "of"
            detail = f"{money_text(max(held.shares, 0))} are held {side} outcome {trade.outcome}"
            raise Refused("not_enough_shares", "shares", str(command.shares), detail)
    if account.bought + sum(map(counted, trades)) > values.LARGEST_HOLDING:
        raise Refused("too_much_traded", "shares", str(command.shares))
    change = sum(change_of(trade).cash for trade in trades)
    if change < 0 and account.cash + change < 0 and not trading.overdrafts:
        detail = f"the cash is {money_text(account.cash)}"
        raise Refused("not_enough_cash", "amount", str(command.amount), detail)


DECIDE: dict[type, Decide] = {
    commands.RecordTrade: record_trade,
}
EVOLVE: dict[type, Evolve] = {
    events.TradeRecorded: traded,
}
