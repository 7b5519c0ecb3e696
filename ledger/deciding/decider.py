"""The decider: `decide` answers a command with events or a refusal; `evolve` returns the changes that an event makes.

Both are pure. The state is a set of flat tables whose values are replaced and never mutated, so a batch can be undone.
"""

from collections.abc import Callable, Iterator
from typing import Any

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.deciding import (
    accounts,
    contests,
    decisions,
    outcomes,
    questions,
    requirements,
    trades,
)
from forecast_ledger.ledger.deciding.stamps import stamped
from forecast_ledger.ledger.deciding.state import Decide, Evolve, State, Write
from forecast_ledger.ledger.model import commands, events

_ROOMS = (  # each has a table DECIDE and a table EVOLVE
    questions, outcomes, contests, accounts, decisions, trades, requirements,
)  # fmt: skip
_DECIDE: dict[type, Decide] = {kind: decide for room in _ROOMS for kind, decide in room.DECIDE.items()}
# The events that follow from an event for the positions on its question, in the same transaction.
_FOLLOWS: dict[type, Callable[[Any, State], Iterator[events.AnyEvent]]] = {
    events.QuestionResolved: accounts.settlements,
    events.QuestionAnnulled: accounts.cancellations,
    events.ResolutionRevoked: accounts.revocations,
}
_EVOLVE: dict[type, Evolve] = {kind: evolve for room in _ROOMS for kind, evolve in room.EVOLVE.items()}
# Events that create a row: the same one twice is an error.
_NEW = {events.QuestionOpened, events.ContestOpened, events.QuestionAdded, events.CashGranted}


def decide(command: commands.AnyCommand, state: State, recorded_at: int) -> tuple[events.AnyEvent, ...]:
    """Return the events of a command, one or more. Raises Refused: participant_renamed, or what its decider refuses.

    recorded_at: of its rows, µs; see `stamped`.
    """
    contests.check_present(command, state)
    command = stamped(command, state, recorded_at)
    decided = _DECIDE[type(command)](command, state)
    if isinstance(decided, tuple):
        return decided
    follows = _FOLLOWS.get(type(decided))
    return (decided,) if follows is None else (decided, *follows(decided, state))


def evolve(event: events.AnyEvent, state: State, position: int) -> tuple[Write, ...]:
    """Return the changes that an event makes, as (table, key, new value).

    Raises Corrupt if the event names something that does not exist, or creates something that does.
    """
    try:
        writes = _EVOLVE[type(event)](event, state, position)
    except KeyError as missing:
        raise Corrupt(position, f"{events.TAGS[type(event)]} names {missing}, which was never opened") from None
    if type(event) in _NEW and writes[0][1] in writes[0][0]:
        raise Corrupt(position, f"{events.TAGS[type(event)]} opens {writes[0][1]!r} again")
    return writes
