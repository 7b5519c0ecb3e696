"""Decide rename_participant: another id of a participant, or one id for two that are one person."""

from typing import Any

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.deciding.state import Decide, Evolve, State, Write
from forecast_ledger.ledger.model import commands, events


def check_present(command: Any, state: State) -> None:
    """Refuse a command under an id that a participant no longer has: participant_renamed."""
    if state.renamed:
        for field in ("participant", "entrant"):
            _check_present(field, getattr(command, field, None), state)


def _check_present(field: str, name: str | None, state: State) -> None:
    if name is not None and (present := state.renamed.get(name)):
        raise Refused("participant_renamed", field, name, f"{name!r} is {present!r} now")


def rename_participant(command: commands.RenameParticipant, state: State) -> events.ParticipantRenamed:
    """Refuses, first that applies: participant_renamed (it has another id now, or `to` is a former id of somebody
    else), unknown_participant, same_participant, account_keeps_id.
    """
    former = state.former.get(command.participant, ())
    if command.to not in former:
        _check_present("to", command.to, state)
    if not former and not state.takes_part(command.participant):
        raise Refused("unknown_participant", "participant", command.participant)
    if command.to == command.participant:
        raise Refused("same_participant", "to", command.to)
    for contest, who in (*state.accounts, *state.hidden):
        if who == command.participant and _is_trading(contest, state):
            detail = f"{who!r} has an account, or is excluded, in {contest!r}, which is not finalized"
            raise Refused("account_keeps_id", "participant", who, detail)
    return events.ParticipantRenamed(
        at=values.read_instant(command.at),
        participant=command.participant,
        to=command.to,
        reason=command.reason,
    )


def _is_trading(contest: str, state: State) -> bool:
    """Return whether a contest has trading, and is not finalized."""
    return state.contests[contest].rules.trading is not None and not state.contests[contest].finalized


def participant_renamed(event: events.ParticipantRenamed, state: State, _: int) -> tuple[Write, ...]:
    """Note which id each former one stands for."""
    everyone = (*state.former.get(event.to, ()), *state.former.get(event.participant, ()), event.participant)
    former = tuple(name for name in dict.fromkeys(everyone) if name != event.to)
    return (
        *((state.renamed, name, event.to) for name in former),
        (state.renamed, event.to, ""),
        (state.former, event.participant, ()),
        (state.former, event.to, former),
    )


DECIDE: dict[type, Decide] = {
    commands.RenameParticipant: rename_participant,
}
EVOLVE: dict[type, Evolve] = {
    events.ParticipantRenamed: participant_renamed,
}
