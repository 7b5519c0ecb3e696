"""The rules of the ledger: decide answers a command with events or a refusal, evolve records what an event changes.

Both are pure. State is a handful of flat tables whose values never change in place, so that a batch can be undone.
"""

from collections.abc import Callable, Iterator
from typing import Any

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.deciding import accounts, contests, decisions, questions
from forecast_ledger.ledger.deciding.state import State, Write
from forecast_ledger.ledger.model import commands, events

_DECIDE: dict[type, Callable[[Any, State], events.AnyEvent | tuple[events.AnyEvent, ...]]] = {
    commands.SubmitForecast: questions.submit_forecast,
    commands.WithdrawForecast: questions.withdraw_forecast,
    commands.OpenQuestion: questions.open_question,
    commands.CloseQuestion: questions.close_question,
    commands.ResolveQuestion: questions.resolve_question,
    commands.AnnulQuestion: questions.annul_question,
    commands.CancelMarket: questions.annul_question,
    commands.RevokeResolution: questions.revoke_resolution,
    commands.OpenContest: contests.open_contest,
    commands.AddQuestion: contests.add_question,
    commands.EnrolParticipant: contests.enrol_participant,
    commands.ExcludeParticipant: contests.exclude_participant,
    commands.FinalizeContest: contests.finalize_contest,
    commands.PayPrizes: contests.pay_prizes,
    commands.QuotePrices: accounts.quote,
    commands.RecordDecision: decisions.record_decision,
    commands.DepositCash: accounts.deposit_cash,
    commands.WithdrawCash: accounts.withdraw_cash,
}
# What an event does to everybody's positions, in the same transaction.
_FOLLOWS: dict[type, Callable[[Any, State], Iterator[events.AnyEvent]]] = {
    events.QuestionResolved: accounts.settlements,
    events.QuestionAnnulled: accounts.cancellations,
    events.ResolutionRevoked: accounts.revocations,
}
_EVOLVE: dict[type, Callable[[Any, State, int], tuple[Write, ...]]] = {
    events.ForecastMade: questions.forecast_made,
    events.ForecastWithdrawn: questions.forecast_withdrawn,
    events.QuestionOpened: questions.question_opened,
    events.QuestionClosed: questions.question_closed,
    events.QuestionResolved: questions.question_settled,
    events.QuestionAnnulled: questions.question_settled,
    events.ResolutionRevoked: questions.resolution_revoked,
    events.ContestOpened: contests.contest_opened,
    events.QuestionAdded: contests.question_added,
    events.ParticipantEnrolled: contests.participant_named,
    events.ParticipantExcluded: contests.participant_named,
    events.ContestFinalized: contests.contest_finalized,
    events.PrizePaid: contests.prize_paid,
    events.PricesQuoted: accounts.prices_quoted,
    events.CashGranted: accounts.cash_granted,
    events.CashDeposited: accounts.cash_moved,
    events.CashWithdrawn: accounts.cash_moved,
    events.TextKept: decisions.text_kept,
    events.DecisionRecorded: accounts.decided,
    events.DecisionMalformed: accounts.malformed,
    events.DecisionDefaulted: accounts.defaulted,
    events.SharesBought: accounts.bought,
    events.SharesSold: accounts.sold,
    events.LegRefused: decisions.leg_refused,
    events.PositionSettled: accounts.ended,
    events.PositionRefunded: accounts.ended,
    events.TradesVoided: accounts.ended,
    events.SettlementReversed: accounts.reversed_,
}
# What can happen once only.
_NEW = {events.QuestionOpened, events.ContestOpened, events.QuestionAdded, events.CashGranted}


def decide(command: commands.AnyCommand, state: State) -> tuple[events.AnyEvent, ...]:
    """The events that follow from a command, one or more; raises Refused."""
    decided = _DECIDE[type(command)](command, state)
    if isinstance(decided, tuple):
        return decided
    follows = _FOLLOWS.get(type(decided))
    return (decided,) if follows is None else (decided, *follows(decided, state))


def evolve(event: events.AnyEvent, state: State, position: int) -> tuple[Write, ...]:
    """What an event changes: (table, key, new value) each. Raises Corrupt if it cannot follow what came before it."""
    try:
        writes = _EVOLVE[type(event)](event, state, position)
    except KeyError as missing:
        raise Corrupt(position, f"{events.TAGS[type(event)]} speaks of {missing}, which was never opened") from None
    if type(event) in _NEW and writes[0][1] in writes[0][0]:
        raise Corrupt(position, f"{events.TAGS[type(event)]} opens {writes[0][1]!r} again")
    return writes
