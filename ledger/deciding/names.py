"""Decide rename_participant: another id of a participant, or one id for two that are one person."""

from collections.abc import Iterator
from typing import Any

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Corrupt, Refused
from forecast_ledger.ledger.deciding.contests import count_again
from forecast_ledger.ledger.deciding.state import NOT_EXCLUDED, Decide, Evolve, State, Write
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
    else), unknown_participant, same_participant, account_keeps_id (both ids have an account in a contest).
    """
    former = state.former.get(command.participant, ())
    if command.to not in former:
        _check_present("to", command.to, state)
    if not former and not state.takes_part(command.participant):
        raise Refused("unknown_participant", "participant", command.participant)
    if command.to == command.participant:
        raise Refused("same_participant", "to", command.to)
    if contest := _with_two_accounts(command.participant, command.to, state):
        detail = f"{command.participant!r} and {command.to!r} each have an account in {contest!r}"
        raise Refused("account_keeps_id", "participant", command.participant, detail)
    return events.ParticipantRenamed(
        at=values.read_instant(command.at),
        participant=command.participant,
        to=command.to,
        reason=command.reason,
    )


def _with_two_accounts(participant: str, to: str, state: State) -> str:
    """Return the first contest that is not finalized, and in which both ids have an account; "" if there is none."""
    keys = ({state.account_key(name, who) for who in (participant, to)} for name in _trading(state))
    both = (pair for pair in keys if len(pair) == 2 and pair <= state.accounts.keys())
    return min((name for pair in both for name, _ in pair), default="")


def _trading(state: State) -> Iterator[str]:
    """Yield the trading contests that are not finalized."""
    return (name for name, each in state.contests.items() if each.rules.trading is not None and not each.finalized)


def participant_renamed(event: events.ParticipantRenamed, state: State, position: int) -> tuple[Write, ...]:
    """Note which id each former one stands for. Raises Corrupt: both have an account in a contest."""
    if contest := _with_two_accounts(event.participant, event.to, state):
        raise Corrupt(position, f"{event.participant!r} and {event.to!r} each have an account in {contest!r}")
    everyone = (*state.former.get(event.to, ()), *state.former.get(event.participant, ()), event.participant)
    former = tuple(name for name in dict.fromkeys(everyone) if name != event.to)
    return (
        *((state.renamed, name, event.to) for name in former),
        (state.renamed, event.to, ""),
        (state.former, event.participant, ()),
        (state.former, event.to, former),
        *(write for contest in _trading(state) for write in _moved(event, contest, state)),
    )


def _moved(event: events.ParticipantRenamed, contest: str, state: State) -> Iterator[Write]:
    """Yield the changes of a trading contest: whose the account is, and which exclusion counts, the later of two."""
    old, new = (contest, event.participant), (contest, event.to)
    key, holder = state.account_key(*old), old
    if key in state.accounts:
        yield state.opened_as, new, key[1]
    else:
        key, holder = state.account_key(*new), new
    last = max(state.hidden.get(who, NOT_EXCLUDED) for who in (old, new))
    if last != NOT_EXCLUDED:
        yield state.hidden, new, last
    yield from count_again(contest, key, state.is_hidden(*holder) - last[1], state)


DECIDE: dict[type, Decide] = {
    commands.RenameParticipant: rename_participant,
}
EVOLVE: dict[type, Evolve] = {
    events.ParticipantRenamed: participant_renamed,
}
