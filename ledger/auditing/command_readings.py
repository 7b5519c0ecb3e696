"""Readings of a command: its possible contents, as far as its events record them."""

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec.structs import fields

from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.core.values import (
    FIRST_INSTANT,
    LAST_INSTANT,
    PROBABILITY,
    format_instant,
    is_instant,
)
from forecast_ledger.ledger.deciding.state import State
from forecast_ledger.ledger.model.commands import AnyCommand, Command
from forecast_ledger.ledger.model.events import Event

TextLookup = Callable[[str], str | None]  # digest -> text; None if the log does not have it


class CommandReading(NamedTuple):
    """One possible content of a command.

    command: the command to decide again. variants: commands that are equal to it, except for fields with defaults; the
    recorded digest is that of one of them, unless lossy. lossy: whether the events may not record the whole content.
    """

    command: AnyCommand
    variants: Sequence[AnyCommand]
    lossy: bool


Rebuilder = Callable[[Any, State, TextLookup], Iterator[CommandReading]]


def instant_text(micros: int) -> str:
    """Return an instant in RFC 3339; one outside the calendar stays a number, which the decider refuses."""
    return format_instant(micros) if FIRST_INSTANT <= micros <= LAST_INSTANT else str(micros)


def optional_instant(micros: int | None) -> str | None:
    """Return an instant in RFC 3339; None if there is none."""
    return None if micros is None else instant_text(micros)


def in_units(value: int, unit: int) -> Decimal:
    """Return value / unit as a decimal.

    >>> in_units(250_000, 10**6)
    Decimal('0.250000')
    """
    return Decimal(value).scaleb(1 - len(str(unit)), WIDE)


_fields_of = lru_cache(maxsize=None)(fields)


def copied(event: Event, kind: type[Command], **units: int) -> dict[str, Any]:
    """Return the fields of a command that an event has too, without those that the event leaves out.

    Instants are in RFC 3339. units: those of the fields that are decimals in the command.

    >>> from forecast_ledger.ledger.model import commands, events
    >>> copied(events.ContestFinalized(at=0, contest="spring"), commands.FinalizeContest)
    {'at': '1970-01-01T00:00:00Z', 'contest': 'spring'}
    """
    found: dict[str, Any] = {}
    for field in _fields_of(type(event)):
        name, value = field.name, getattr(event, field.name)
        if value != field.default and name in kind.__struct_fields__:
            given = in_units(value, units[name]) if name in units else value
            found[name] = instant_text(value) if is_instant(name) else given
    return found


def copies(kind: type[Command], *, lossy: bool = False, **units: int) -> "Rebuilder":
    """Return the rebuilder of a command of which every field is one of its event. lossy: as in `CommandReading`."""

    def rebuild(event: Event, _: State, __: TextLookup) -> Iterator[CommandReading]:
        command: Any = kind(**copied(event, kind, **units))
        yield CommandReading(command, (command,), lossy=lossy)

    return rebuild


def decimal_or_text(text: str) -> Decimal | str:
    """Return the number of a text; a text that is not a number stays one, which the decider refuses."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


def lossy_reading(command: AnyCommand) -> Iterator[CommandReading]:
    """Yield the only reading of a command whose numbers may have had more decimals than their units."""
    yield CommandReading(command, (command,), lossy=True)


def by_outcome(numbers: Sequence[int | None], outcomes: Sequence[str], unit: int = PROBABILITY) -> dict[str, Any]:
    """Return numbers by outcome, without missing ones; by index if there are not as many outcomes."""
    names = outcomes if len(outcomes) == len(numbers) else [*map(str, range(len(numbers)))]
    return {name: in_units(number, unit) for name, number in zip(names, numbers, strict=True) if number is not None}


def current_outcomes_of(question: str, state: State) -> tuple[str, ...]:
    """Return the outcomes that a question has now; none if it is numeric or unknown."""
    question_state = state.questions.get(question)
    return () if question_state is None else question_state.current


def outcomes_of(question: str, state: State) -> tuple[str, ...]:
    """Return the outcomes that a question has or had; none if it is numeric or unknown."""
    question_state = state.questions.get(question)
    return () if question_state is None else question_state.outcomes
