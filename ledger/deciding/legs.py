"""The legs of a decision: buying and selling shares, one leg after another, each carried out or refused."""

import re
from collections.abc import Callable
from typing import Any

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.deciding.state import Account, Contest, Position, State
from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.replies import Reply
from forecast_ledger.ledger.model.trading_rules import WHOLE, Trading, bet_cap, is_stale

_NUMBER = re.compile("[1-9][0-9]{0,17}", re.ASCII)
Leg = events.SharesBought | events.SharesSold | events.LegRefused


class _RefusedLegError(Exception):
    """A leg that cannot be carried out; its argument is the code."""


def legs(reply: Reply, command: commands.RecordDecision, at: int, contest: Contest, state: State) -> list[Leg]:
    """What becomes of each leg of a reply, in order, each on what the legs before left.

    Of bets that are all or nothing none is carried out if one is refused.
    """
    desk = _Desk(command, at, contest, state)
    done: list[Leg] = [
        *(desk.carried_out(leg, desk.buy, bet) for leg, bet in enumerate(reply.bets, 1)),
        *(desk.carried_out(leg, desk.sell, sale) for leg, sale in enumerate(reply.sells, 1)),
    ]
    refused = any(type(leg) is events.LegRefused for leg in done)
    if reply.action != "BET" or desk.trading.legs == "independent" or not refused:
        return done
    return [leg if type(leg) is events.LegRefused else desk.refused(leg.leg, "sibling_refused") for leg in done]


class _Desk:
    """Where the legs of one attempt are carried out; what they change is kept here alone."""

    def __init__(self, command: commands.RecordDecision, at: int, contest: Contest, state: State) -> None:
        self.command, self.at, self.state = command, at, state
        self.trading = contest.rules.trading or Trading()
        self.account: Account = state.accounts[command.contest, command.participant]
        self.positions: dict[int, Position] = {}  # those touched
        self.held: dict[tuple[str, int], int] = {}  # question, outcome -> the newest of those opened

    def carried_out(self, leg: int, carry_out: Callable[[Any, dict[str, Any]], Leg], asked: Any) -> Leg:
        """A leg carried out, or refused."""
        try:
            return carry_out(asked, self.of(leg))
        except _RefusedLegError as refused:
            return self.refused(leg, *refused.args)

    def buy(self, bet: events.Bet, of: dict[str, Any]) -> events.SharesBought:
        """Shares for an amount, at the quoted price, rounded down; confidence is the amount over the largest bet.

        Source: Forecaster Arena, Scoring Methodology, "Deriving Confidence from Bet Size" and "Position Mechanics".
        """
        outcome = self.outcome(bet)
        price, quote = self.priced(bet.question, outcome)
        most = bet_cap(self.trading, self.account.cash)
        shares = bet.amount * values.PROBABILITY // max(price, 1)
        if not price:
            raise _RefusedLegError("no_price")
        if bet.amount > most:
            raise _RefusedLegError("above_cap")
        if self.account.bought + shares > values.LARGEST_HOLDING:
            raise _RefusedLegError("too_many_shares")
        number = self.open_position(bet.question, outcome)
        held = self.position(number) or Position(bet.question, outcome)
        event = events.SharesBought(
            **of,
            question=bet.question,
            outcome=outcome,
            position=number,
            price=price,
            quote=quote,
            cash=self.account.cash,
            amount=bet.amount,
            shares=shares,
            confidence=half_even(bet.amount * values.PROBABILITY, most),
        )
        self.account = self.account._replace(
            cash=self.account.cash - bet.amount,
            positions=max(self.account.positions, number),
            bought=self.account.bought + shares,
        )
        self.held[bet.question, outcome] = number
        self.positions[number] = held._replace(shares=held.shares + shares, cost=held.cost + bet.amount)
        return event

    def sell(self, sale: events.Sale, of: dict[str, Any]) -> events.SharesSold:
        """A percentage of the shares now held and of their cost, at the quoted price, each rounded down; 100 is all."""
        number = int(sale.position) if _NUMBER.fullmatch(sale.position) else 0
        held = self.position(number)
        if held is None or not held.is_open():
            raise _RefusedLegError("no_position")
        price, quote = self.priced(held.question, held.outcome)
        shares = held.shares if sale.percentage == WHOLE else held.shares * sale.percentage // WHOLE
        if not shares:
            raise _RefusedLegError("no_shares")
        cost = held.cost * shares // held.shares
        proceeds = shares * price // values.PROBABILITY
        self.account = self.account._replace(cash=self.account.cash + proceeds)
        self.positions[number] = held._replace(shares=held.shares - shares, cost=held.cost - cost)
        return events.SharesSold(
            **of,
            question=held.question,
            outcome=held.outcome,
            position=number,
            price=price,
            quote=quote,
            shares=shares,
            cost=cost,
            proceeds=proceeds,
        )

    def outcome(self, bet: events.Bet) -> int:
        """The outcome that a bet is on; the sides of a binary question are written in any case."""
        question = self.state.questions.get(bet.question)
        if question is None or (self.command.contest, bet.question) not in self.state.entries:
            raise _RefusedLegError("unknown_market")
        side = bet.side.lower() if question.kind == "binary" else bet.side
        if side not in question.outcomes:
            raise _RefusedLegError("unknown_side")
        return question.outcomes.index(side)

    def priced(self, name: str, outcome: int) -> tuple[int, int]:
        """The price of an outcome, and the log position that has it."""
        question, quoted = self.state.questions[name], self.state.quotes.get(name)
        if question.settled or not question.opens_at <= self.at < question.closed_at:
            raise _RefusedLegError("market_closed")
        price = quoted and quoted.prices[outcome]
        if quoted is None or price is None:
            raise _RefusedLegError("no_quote")
        if quoted.quoted_at > self.at:
            raise _RefusedLegError("quote_too_new")
        if is_stale(self.trading, quoted.quoted_at, self.at):
            raise _RefusedLegError("stale_quote")
        return price, quoted.position

    def open_position(self, question: str, outcome: int) -> int:
        """The number of the open position on an outcome, or of the next to be opened."""
        of = self.command
        newest = self.state.held.get((of.contest, of.participant, question, outcome), 0)
        number = self.held.get((question, outcome), newest)
        held = self.position(number)
        return number if held is not None and held.is_open() else self.account.positions + 1

    def position(self, number: int) -> Position | None:
        """A position as the legs before left it."""
        of = self.command
        return self.positions.get(number) or self.state.positions.get((of.contest, of.participant, number))

    def refused(self, leg: int, code: str) -> events.LegRefused:
        """Nothing is done."""
        return events.LegRefused(**self.of(leg), code=code)

    def of(self, leg: int) -> dict[str, Any]:
        """Which leg it is."""
        said = self.command
        return {
            "at": self.at,
            "contest": said.contest,
            "participant": said.participant,
            "period": said.period,
            "attempt": said.attempt,
            "leg": leg,
        }
