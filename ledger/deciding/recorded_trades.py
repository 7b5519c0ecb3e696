"""Decide record_trade: a trade that happened on a market elsewhere, with the shares and the money that it had."""

from collections.abc import Iterator

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.deciding.accounts import trading_account
from forecast_ledger.ledger.deciding.legs import traded
from forecast_ledger.ledger.deciding.state import (
    AccountState,
    Decide,
    Evolve,
    PositionState,
    QuestionState,
    State,
)
from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.book import change_of, counted
from forecast_ledger.ledger.model.mismatch import money_text
from forecast_ledger.ledger.model.trading_rules import Trading


def record_trade(command: commands.RecordTrade, state: State) -> tuple[events.TradeRecorded, ...]:
    """Return an event for each outcome that is traded.

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
    outcomes = _outcomes(command, question)
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
    trades = tuple(_parts(command, state, outcomes, (at, signed, amount, fee)))
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
    command: commands.RecordTrade, state: State, outcomes: tuple[int, ...], numbers: tuple[int, int, int, int]
) -> Iterator[events.TradeRecorded]:
    """Yield the part of each outcome: equal parts of the amount, of which the first ones take what is left over.

    numbers: the instant, µs, the shares of each outcome, below 0 if they are sold, the amount and the fee, 1e-6. The
    fee is that of the first part.
    """
    at, shares, amount, fee = numbers
    key, count = state.account_key(command.contest, command.participant), len(outcomes)
    free = state.accounts[key].positions
    for place, outcome in enumerate(outcomes):
        number = state.held.get((*key, command.question, outcome), 0)
        held = state.positions.get((*key, number))
        if held is None or not held.is_open():
            free += 1
            number, held = free, PositionState(command.question, outcome)
        part = amount // count + (place < amount % count)
        yield events.TradeRecorded(
            at=at,
            contest=command.contest,
            participant=command.participant,
            question=command.question,
            outcome=outcome,
            position=number,
            shares=shares,
            amount=part,
            cost=cost_change(held, shares, part),
            fee=0 if place else fee,
            parts=count,
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
            detail = f"{money_text(max(held.shares, 0))} are held of outcome {trade.outcome}"
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
