"""The instant that the ledger stamps on a command without `at`: that of its recording, or a later one that order asks.

A command that claims an instant may claim one that is still to come. A stamped command on the same subject then takes
that instant, so that it is neither refused nor moved before a fact that it follows.
"""

from collections.abc import Callable
from typing import Any

from msgspec import structs

from forecast_ledger.ledger.core.values import FIRST_INSTANT, LAST_INSTANT, format_instant
from forecast_ledger.ledger.deciding.state import AccountState, State, instants
from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.commands import AnyCommand


def stamped(command: AnyCommand, state: State, recorded_at: int) -> AnyCommand:
    """Return a command that has an instant. recorded_at: of its rows, µs, which a command without `at` is stamped with.

    >>> stamped(commands.CloseQuestion(question="rain"), State(), 0).at
    '1970-01-01T00:00:00Z'
    """
    if command.at is not None:
        return command
    earliest = _EARLIEST.get(type(command))
    at = recorded_at if earliest is None else max(recorded_at, earliest(command, state))
    return structs.replace(command, at=format_instant(min(at, LAST_INSTANT)))


def after_forecasts(question: str, participant: str, state: State) -> int:
    """Return the earliest instant of a participant's next forecast or withdrawal; FIRST_INSTANT if it may be any."""
    opened = state.questions.get(question)
    if opened is None:
        return FIRST_INSTANT
    last = state.last_of(question, participant)
    return max(FIRST_INSTANT, opened.changed_at, FIRST_INSTANT if last is None else instants(last)[0])


def _forecast(command: commands.SubmitForecast | commands.WithdrawForecast, state: State) -> int:
    return after_forecasts(command.question, command.participant, state)


def _close(command: commands.CloseQuestion, state: State) -> int:
    question = state.questions.get(command.question)
    return FIRST_INSTANT if question is None else max(FIRST_INSTANT, question.traded_at + 1)


def _change(command: commands.ChangeOutcomes, state: State) -> int:
    question = state.questions.get(command.question)
    if question is None:
        return FIRST_INSTANT
    made = [instants(last)[0] for last in state.peek_standing(command.question).values()]
    return max([FIRST_INSTANT, question.changed_at, question.grace_ends_at, *made])


def _revoke(command: commands.RevokeResolution, state: State) -> int:
    question = state.questions.get(command.question)
    earlier = question.resolution if question is not None and question.annulled else None
    return FIRST_INSTANT if earlier is None else earlier.known_at


def _quote(command: commands.Quote, state: State) -> int:
    names = [command.question, *(row.question for row in command.quotes or ())]
    quoted = [state.questions[name] for name in names if name in state.questions]
    return max([FIRST_INSTANT, *(question.changed_at for question in quoted)])


def _decision(command: commands.RecordDecision, state: State) -> int:
    account = state.accounts.get(state.account_key(command.contest, command.participant), AccountState(0))
    return max(FIRST_INSTANT, account.decided_at)


# The commands that `out_of_order` can refuse for their instant, each with the earliest one that the state allows, µs.
_EARLIEST: dict[type, Callable[[Any, State], int]] = {
    commands.SubmitForecast: _forecast,
    commands.WithdrawForecast: _forecast,
    commands.CloseQuestion: _close,
    commands.ChangeOutcomes: _change,
    commands.RevokeResolution: _revoke,
    commands.Quote: _quote,
    commands.RecordDecision: _decision,
}
