"""The rules of the ledger: decide answers a command with events or a refusal, evolve records what an event changes.

Both are pure. State is a handful of flat tables whose values never change in place, so that a batch can be undone.
"""

from collections.abc import Callable
from typing import Any

from ledger import commands, contests, events, questions
from ledger.errors import Corrupt
from ledger.state import State, Write

_DECIDE: dict[type, Callable[[Any, State], events.AnyEvent | tuple[events.AnyEvent, ...]]] = {
    commands.SubmitForecast: questions.submit_forecast,
    commands.WithdrawForecast: questions.withdraw_forecast,
    commands.OpenQuestion: questions.open_question,
    commands.CloseQuestion: questions.close_question,
    commands.ResolveQuestion: questions.resolve_question,
    commands.AnnulQuestion: questions.annul_question,
    commands.RevokeResolution: questions.revoke_resolution,
    commands.OpenContest: contests.open_contest,
    commands.AddQuestion: contests.add_question,
    commands.EnrolParticipant: contests.enrol_participant,
    commands.ExcludeParticipant: contests.exclude_participant,
    commands.FinalizeContest: contests.finalize_contest,
    commands.PayPrizes: contests.pay_prizes,
}
_EVOLVE: dict[type, Callable[[Any, State], Write]] = {
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
}


_NEW = {events.QuestionOpened, events.ContestOpened, events.QuestionAdded}  # what can happen once only


def decide(command: commands.AnyCommand, state: State) -> tuple[events.AnyEvent, ...]:
    """The events that follow from a command, one or more; raises Refused."""
    decided = _DECIDE[type(command)](command, state)
    return decided if isinstance(decided, tuple) else (decided,)


def evolve(event: events.AnyEvent, state: State, position: int) -> Write:
    """What an event changes: (table, key, new value). Raises Corrupt if the event cannot follow what came before."""
    try:
        table, key, value = _EVOLVE[type(event)](event, state)
    except KeyError as missing:
        raise Corrupt(position, f"{events.TAGS[type(event)]} speaks of {missing}, which was never opened") from None
    if type(event) in _NEW and key in table:
        raise Corrupt(position, f"{events.TAGS[type(event)]} opens {key!r} again")
    return table, key, value
