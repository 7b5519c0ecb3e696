"""Entering the events of trading into the accounts: decisions, cash and shares.

Amounts are entered as recorded; `verify` checks that they follow from the rules. An event that names something that
does not exist raises KeyError.
"""

from collections.abc import Callable
from typing import Any

from msgspec import structs

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.answers import exact_share
from forecast_ledger.ledger.model.book import CashEvent, EndingEvent, TradeEvent, change_of, share_of
from forecast_ledger.ledger.model.trading_rules import bet_cap
from forecast_ledger.projections.facts.accounts import (
    BEFORE_ALL,
    Account,
    AccountKey,
    Attempt,
    Holding,
    MovedShares,
    Trade,
)
from forecast_ledger.projections.facts.columns import Facts, moved


def enter_event(facts: Facts, position: int, event: Any) -> None:
    """Enter an event into the accounts.

    Raises KeyError if the event names something that does not exist, Corrupt if a sum becomes too large.
    """
    kind = type(event)
    if kind in _ENTER:
        _ENTER[kind](facts, position, event)


def _enrolled(facts: Facts, _: int, event: events.ParticipantEnrolled) -> None:
    if facts.contests[event.contest].opened.rules.trading is not None:
        facts.books.accounts[event.contest, event.participant] = Account(event)


def _completes(facts: Facts, event: events.AccountEvent) -> bool:
    """Return whether the contest waits for the event's participant before it is complete."""
    hidden = facts.contests[event.contest].levels.get(event.participant) == "hidden"
    return facts.trading(event.contest).completed_by == "all" or not hidden


def _excluded(facts: Facts, _: int, event: events.ParticipantExcluded) -> None:
    """Count a participant that is no longer hidden, or do not count one that now is. The level is still the former."""
    was = facts.contests[event.contest].levels.get(event.participant) == "hidden"
    _count_again(facts, (event.contest, event.participant), was - (event.level == "hidden"), event.at)


def _count_again(facts: Facts, key: AccountKey, change: int, at: int) -> None:
    """Let a trading contest no longer wait for an account (change: -1), or wait for it again (1)."""
    account, trading = facts.books.accounts.get(key), facts.contests[key[0]].opened.rules.trading
    if account is None or trading is None or trading.completed_by == "all" or not change:
        return
    progress = facts.books.progress(key[0])
    progress.enrolled += change
    progress.decided += change * (account.decided > 0)
    progress.count_positions(change * sum(holding.is_open() for holding in account.holdings.values()), at)


def _renamed(facts: Facts, _: int, event: events.ParticipantRenamed) -> None:
    """Move accounts to another id, and count them again. The levels of exclusion are still those of both ids."""
    for name, contest in facts.contests.items():
        if contest.opened.rules.trading is None or contest.sealed is not None:
            continue
        old, new = (name, event.participant), (name, event.to)
        moves = old in facts.books.accounts
        was = contest.levels.get(event.participant if moves else event.to)
        if moves:
            facts.books.move(old, new)
        now = moved(contest.levels, event.participant, event.to).get(event.to)
        _count_again(facts, new, (was == "hidden") - (now == "hidden"), event.at)


def _granted(facts: Facts, position: int, event: events.CashGranted) -> None:
    facts.books.progress(event.contest).enrolled += _completes(facts, event)
    _moved(facts, position, event)


def _attempted(facts: Facts, position: int, event: events.DecisionRecorded | events.DecisionMalformed) -> None:
    books = facts.books
    account = books.accounts[event.contest, event.participant]
    books.attempts.append(Attempt(position, event))
    if isinstance(event, events.DecisionRecorded) and (event.action == "HOLD" or event.executed):
        _count_decision(facts, account, event)


def _defaulted(facts: Facts, _: int, event: events.DecisionDefaulted) -> None:
    account = facts.books.accounts[event.contest, event.participant]
    if not facts.books.attempts:
        raise KeyError("an attempt at the decision")
    facts.books.attempts[-1] = facts.books.attempts[-1]._replace(defaulted=True)
    _count_decision(facts, account, event)


def _count_decision(facts: Facts, account: Account, event: events.DecisionRecorded | events.DecisionDefaulted) -> None:
    account.decided += 1
    if account.decided == 1 and _completes(facts, event):
        progress = facts.books.progress(event.contest)
        progress.decided += 1
        progress.count_positions(0, event.at)


def _refused(facts: Facts, position: int, event: events.LegRefused) -> None:
    facts.books.accounts[event.contest, event.participant]
    facts.books.refusals.append((position, event))


def _failed(facts: Facts, position: int, event: events.CallFailed) -> None:
    facts.books.accounts[event.contest, event.participant]
    facts.books.failures.append((position, event))


def _traded(facts: Facts, position: int, event: TradeEvent) -> None:
    """Enter a trade: its question and quote, and its change of a position that may be new or end."""
    code, number, change = facts.question_codes.codes[event.question], event.position, change_of(event)
    books = facts.books
    account = books.accounts[event.contest, event.participant]
    quote = None if isinstance(event, events.TradeRecorded) else books.quotes.last(code, position)
    cap = bet_cap(facts.trading(event.contest), event.cash) if isinstance(event, events.SharesBought) else 0
    books.trades.append(Trade(position, event, code, quote, cap))
    is_sale = isinstance(event, events.SharesSold)
    if not is_sale and number not in account.holdings:
        account.holdings[number] = Holding(code, share_of(event), event.at, status="closed")
        books.holders.setdefault(code, set()).add((event.contest, event.participant, number))
    holding = account.holdings[number]
    was_open = holding.is_open()
    holding.shares, holding.cost = holding.shares + change.shares, holding.cost + change.cost
    holding.paid, holding.received = holding.paid - min(change.cash, 0), holding.received + max(change.cash, 0)
    holding.status = "open" if holding.shares else "closed"
    opened = (holding.is_open() - was_open) * _completes(facts, event)
    books.progress(event.contest).count_positions(opened, event.at)
    price = event.price if isinstance(event, events.SharesSold) else None
    known_from = BEFORE_ALL if quote is None else quote.known_from
    books.enter(position, event, change, MovedShares(code, holding.share, number, price), known_from)


def _finalized(facts: Facts, _: int, event: events.ContestFinalized) -> None:
    books, contest = facts.books, facts.contests[event.contest]
    if contest.opened.rules.trading is not None:
        books.sealed[event.contest] = {code: facts.payouts(code) for code in contest.entries}


def _closed(facts: Facts, _: int, event: events.QuestionClosed) -> None:
    facts.books.closed[facts.question_codes.codes[event.question]] = event.at


def _rescheduled(facts: Facts, _: int, event: events.QuestionRescheduled) -> None:
    if event.closes_at is not None:
        facts.books.closed[facts.question_codes.codes[event.question]] = event.closes_at


def _ended(facts: Facts, position: int, event: EndingEvent) -> None:
    holding, change = _holding(facts, event), change_of(event)
    price = None
    if isinstance(event, events.PositionSettled):
        price = PROBABILITY * exact_share(event.payout, event.payout_unit)
    facts.books.progress(event.contest).count_positions(-holding.is_open() * _completes(facts, event), event.at)
    holding.status = change.kind
    facts.books.enter(position, event, change, MovedShares(holding.question, holding.share, event.position, price))


def _reversed(facts: Facts, position: int, event: events.SettlementReversed) -> None:
    holding, end = _holding(facts, event), facts.books.ends[event.reverses]
    holding.status = "open" if holding.shares else "closed"
    facts.books.progress(event.contest).count_positions(holding.is_open() * _completes(facts, event), event.at)
    change = structs.replace(change_of(event), shares=-end.shares, cost=-end.cost, fee=-end.fee)
    facts.books.enter(position, event, change, MovedShares(holding.question, holding.share, event.position, end.price))


def _holding(facts: Facts, event: events.PositionEvent) -> Holding:
    return facts.books.accounts[event.contest, event.participant].holdings[event.position]


def _moved(facts: Facts, position: int, event: CashEvent) -> None:
    change = change_of(event)
    facts.books.accounts[event.contest, event.participant].deposits += change.cash
    facts.books.enter(position, event, change)


_ENTER: dict[type, Callable[[Facts, int, Any], None]] = {
    events.ParticipantEnrolled: _enrolled,
    events.ParticipantExcluded: _excluded,
    events.ParticipantRenamed: _renamed,
    events.CashGranted: _granted,
    events.CashDeposited: _moved,
    events.CashWithdrawn: _moved,
    events.DecisionRecorded: _attempted,
    events.DecisionMalformed: _attempted,
    events.DecisionDefaulted: _defaulted,
    events.SharesBought: _traded,
    events.SharesSold: _traded,
    events.TradeRecorded: _traded,
    events.LegRefused: _refused,
    events.CallFailed: _failed,
    events.ContestFinalized: _finalized,
    events.QuestionClosed: _closed,
    events.QuestionRescheduled: _rescheduled,
    events.PositionSettled: _ended,
    events.PositionRefunded: _ended,
    events.TradesVoided: _ended,
    events.SettlementReversed: _reversed,
}
