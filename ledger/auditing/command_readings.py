"""The content of a command, as far as its events keep it: its possible readings, with their numbers and instants."""

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.core.values import FIRST_INSTANT, LAST_INSTANT, PROBABILITY, format_instant
from forecast_ledger.ledger.deciding.state import State
from forecast_ledger.ledger.model.commands import AnyCommand

TextLookup = Callable[[str], str | None]  # a kept text by its digest, None if there is none


class CommandReading(NamedTuple):
    """One reading of what a command said.

    command: what is decided again. spellings: the ways to say it; its digest is that of one of them, unless something
    is lost.
    """

    command: AnyCommand
    spellings: Sequence[AnyCommand]
    lossy: bool


Rebuilder = Callable[[Any, State, TextLookup], Iterator[CommandReading]]


def instant_text(micros: int) -> str:
    """RFC 3339; what no calendar has stays a number, which the decider refuses."""
    return format_instant(micros) if FIRST_INSTANT <= micros <= LAST_INSTANT else str(micros)


def optional_instant(micros: int | None) -> str | None:
    """Likewise, if there is an instant."""
    return None if micros is None else instant_text(micros)


def in_units(value: int, unit: int) -> Decimal:
    """The number that so many 1/unit are.

    >>> in_units(250_000, 10**6)
    Decimal('0.250000')
    """
    return Decimal(value).scaleb(1 - len(str(unit)), WIDE)


def decimal_or_text(text: str) -> Decimal | str:
    """The number a decimal text stands for; what is none stays a text, which the decider refuses."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


def exact_reading(command: AnyCommand) -> Iterator[CommandReading]:
    """The only reading, with nothing lost."""
    yield CommandReading(command, (command,), lossy=False)


def lossy_reading(command: AnyCommand) -> Iterator[CommandReading]:
    """The only reading, if its numbers had no more decimals than their units have."""
    yield CommandReading(command, (command,), lossy=True)


def by_outcome(numbers: Sequence[int | None], outcomes: Sequence[str]) -> dict[str, Any]:
    """Numbers by outcome, without those that are missing; by their place where the outcomes are not as many."""
    names = outcomes if len(outcomes) == len(numbers) else [*map(str, range(len(numbers)))]
    return {
        name: in_units(number, PROBABILITY) for name, number in zip(names, numbers, strict=True) if number is not None
    }


def outcomes_of(question: str, state: State) -> tuple[str, ...]:
    """The outcomes of a question; none if it is numeric, or unknown."""
    found = state.questions.get(question)
    return () if found is None else found.outcomes
