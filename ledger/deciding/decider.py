"""The rules of the ledger: decide answers a command with events or a refusal, evolve records what an event changes.

Both are pure. State is a handful of flat tables whose values never change in place, so that a batch can be undone.
"""

from collections.abc import Callable, Iterator
from typing import Any

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.deciding import accounts, contests, decisions, questions
from forecast_ledger.ledger.deciding.state import Decide, Evolve, State, Write
from forecast_ledger.ledger.model import commands, events

_ROOMS = (questions, contests, accounts, decisions)  # each has what it decides, and how its events change the state
_DECIDE: dict[type, Decide] = {kind: decide for room in _ROOMS for kind, decide in room.DECIDE.items()}
# What an event does to everybody's positions, in the same transaction.
_FOLLOWS: dict[type, Callable[[Any, State], Iterator[events.AnyEvent]]] = {
    events.QuestionResolved: accounts.settlements,
    events.QuestionAnnulled: accounts.cancellations,
    events.ResolutionRevoked: accounts.revocations,
}
_EVOLVE: dict[type, Evolve] = {kind: evolve for room in _ROOMS for kind, evolve in room.EVOLVE.items()}
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
