"""The legs of a decision: purchases and sales of shares, each carried out or refused, one after another."""

import re
from collections.abc import Callable
from typing import Any, Literal

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.deciding.fees import trade_fee
from forecast_ledger.ledger.deciding.state import AccountState, ContestState, PositionState, State, Write
from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.book import TradeEvent, change_of, counted
from forecast_ledger.ledger.model.replies import Reply
from forecast_ledger.ledger.model.trading_rules import WHOLE, Trading, bet_cap, is_stale

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
        self.held: dict[tuple[str, int], int] = {}  # question, outcome -> number of the newest position opened here

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
        outcome = self.outcome(bet)
        price, quote = self.quoted_price(bet.question, outcome, "no_ask")
        most = bet_cap(self.trading, self.account.cash)
        shares = bet.amount * values.PROBABILITY // max(price, 1)
        if not price:
            raise _RefusedLegError("no_price")
        if bet.amount > most:
            raise _RefusedLegError("above_cap")
        wanted, amount = shares, bet.amount
        side = (bet.question, *self.state.questions[bet.question].side(outcome, bought=True))
        shares = self.within_depth(outcome, shares, side, bought=True)
        if shares < wanted:
            amount = -(-shares * price // values.PROBABILITY)
        fee = trade_fee(self.trading, shares, price, -amount)
        if amount + fee > self.account.cash:
            raise _RefusedLegError("not_enough_cash")
        if self.account.bought + shares > values.LARGEST_HOLDING:
            raise _RefusedLegError("too_many_shares")
        number = self.open_position(bet.question, outcome)
        held = self.position(number) or PositionState(bet.question, outcome)
        event = events.SharesBought(
            **fields,
            question=bet.question,
            outcome=outcome,
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
        self.held[bet.question, outcome] = number
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
        price, quote = self.quoted_price(held.question, held.outcome, "no_bid")
        shares = held.shares if sale.percentage == WHOLE else held.shares * sale.percentage // WHOLE
        if not shares:
            raise _RefusedLegError("no_shares")
        wanted = shares
        side = (held.question, *self.state.questions[held.question].side(held.outcome, bought=False))
        shares = self.within_depth(held.outcome, shares, side, bought=False)
        cost = held.cost * shares // held.shares
        proceeds = shares * price // values.PROBABILITY
        fee = trade_fee(self.trading, shares, price, proceeds)
        if fee > max(proceeds, proceeds + self.account.cash):
            raise _RefusedLegError("not_enough_cash")
        event = events.SharesSold(
            **fields,
            question=held.question,
            outcome=held.outcome,
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

    def outcome(self, bet: events.Bet) -> int:
        """Return the index of the outcome that a bet is on; the side of a binary question may be in any case."""
        question = self.state.questions.get(bet.question)
        if question is None or (self.command.contest, bet.question) not in self.state.entries:
            raise _RefusedLegError("unknown_market")
        side = bet.side.lower() if question.kind == "binary" else bet.side
        if side not in question.current:
            raise _RefusedLegError("unknown_side")
        return question.outcomes.index(side)

    def quoted_price(self, name: str, outcome: int, missing: Literal["no_bid", "no_ask"]) -> tuple[int, int]:
        """Return the price at which an outcome is bought or sold, 1e-9, and the log position of the quote.

        missing: the code if the rules fill at bid and ask, and the quote has none.
        """
        question, quoted = self.state.questions[name], self.state.quotes.get(name)
        if question.settled or not question.opens_at <= self.at < question.closed_at:
            raise _RefusedLegError("market_closed")
        at_side = self.trading.fills == "bid_ask"
        if quoted is None or (quoted.prices[outcome] is None and not at_side):
            raise _RefusedLegError("no_quote")
        if quoted.quoted_at > self.at:
            raise _RefusedLegError("quote_too_new")
        if is_stale(self.trading, quoted.quoted_at, self.at):
            raise _RefusedLegError("stale_quote")
        side = quoted.asks if missing == "no_ask" else quoted.bids
        price = (side[outcome] if side else None) if at_side else quoted.prices[outcome]
        if price is None:
            raise _RefusedLegError(missing)
        return price, quoted.position

    def within_depth(self, outcome: int, shares: int, side: tuple[str, int, bool], *, bought: bool) -> int:
        """Return how many of some shares the last quote still has for the account.

        side: the question, and the outcome and side of the quote that are traded with. A quote that does not say how
        many shares it has is not limited. Other accounts take nothing from it.
        """
        quoted = self.state.quotes[side[0]]
        sizes = quoted.ask_sizes if bought else quoted.bid_sizes
        size = sizes[outcome] if sizes else None
        if self.trading.depth == "unlimited" or size is None:
            return shares
        quote, before = self.state.taken_shares.get((*self.key, *side), (0, 0))
        left = size - before * (quote == quoted.position) - self.taken.get(side, 0)
        if left <= 0 or (shares > left and self.trading.depth == "refuse"):
            raise _RefusedLegError("not_enough_depth")
        return min(shares, left)

    def open_position(self, question: str, outcome: int) -> int:
        """Return the number of the open position on an outcome, or the next free number."""
        newest = self.state.held.get((*self.key, question, outcome), 0)
        number = self.held.get((question, outcome), newest)
        held = self.position(number)
        return number if held is not None and held.is_open() else self.account.positions + 1

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
        account._replace(
            cash=account.cash + change.cash, positions=max(account.positions, event.position), bought=bought
        ),
        held._replace(
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
    place = (*key, event.position)
    is_new = place not in state.positions and not isinstance(event, events.SharesSold)
    held = PositionState(event.question, event.outcome) if is_new else state.positions[place]
    account, after = after_trade(event, state.accounts[key], held)
    opened = (after.is_open() - held.is_open()) * state.completes(event.contest, event.participant)
    writes: tuple[Write, ...] = (
        (state.accounts, key, account),
        (state.positions, place, after),
        (state.contests, event.contest, contest._replace(open=contest.open + opened)),
    )
    if is_new:
        writes += _new_position(event, state)
    if isinstance(event, events.TradeRecorded):
        return writes
    return writes + _update_traded_at(event, state) + _update_depth(event, state)


def _new_position(event: TradeEvent, state: State) -> tuple[Write, ...]:
    """Note who holds a position that is new. Raises KeyError if its question is not in the contest."""
    state.entries[event.contest, event.question]
    holders, key = state.holders.get(event.question, {}), state.account_key(event.contest, event.participant)
    return (
        (state.holders, event.question, holders),
        (holders, (*key, event.position), True),
        (state.held, (*key, event.question, event.outcome), event.position),
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
    side = state.questions[event.question].side(event.outcome, bought=isinstance(event, events.SharesBought))
    key = (*state.account_key(event.contest, event.participant), event.question, *side)
    quote, taken = state.taken_shares.get(key, (0, 0))
    return ((state.taken_shares, key, (event.quote, taken * (quote == event.quote) + event.shares)),)
