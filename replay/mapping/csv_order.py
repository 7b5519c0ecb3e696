"""The order of the commands of a CSV: sorted as the map says, or refused if forecasts mostly go back in time."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.ledger.model.commands import Quote, RecordDecision, SubmitForecast, WithdrawForecast
from forecast_ledger.replay.writing.command_lines import ReadCommand

RECEIVED = "recorded_at"  # what `sort` calls the time of receipt, which is no field of a command
LOOKED_AT = 10_000  # commands at the beginning of a file, from which its order is judged
# command -> its instant, and the fields of what it may not go back on; `out_of_order` refuses the command if it does
_IN_ORDER: dict[type, tuple[str, tuple[str, ...]]] = {
    SubmitForecast: ("at", ("question", "participant")),
    WithdrawForecast: ("at", ("question", "participant")),
    Quote: ("quoted_at", ("question",)),
    RecordDecision: ("at", ("contest", "participant")),
}


class RowCommands(NamedTuple):
    """The commands of a row, or of a group of rows, and its first line."""

    line: int
    commands: Sequence[ReadCommand]


def sort_commands(rows: Iterable[RowCommands], field: str) -> list[ReadCommand]:
    """Return the commands of all rows in the order of an instant of each; those that have none come first.

    A command comes after those before it in its row. Commands of one instant keep the order of their rows; in a file
    that falls more often than it rises, the rows are turned round, because its newest row is its first. All commands
    are in memory: about 1,500 bytes each, and the bytes that are kept of their rows.
    """
    with gc_pause.paused():
        known = dict[int, int | None]()  # the instants of objects that many rows have, by their id
        keyed = [[(_instant(each, field, known), each) for each in row.commands] for row in rows]
        return _placed(keyed)


def _placed(keyed: list[list[tuple[int | None, ReadCommand]]]) -> list[ReadCommand]:
    """Return commands in the order of their instants, which are beside them, row by row."""
    first = [next((at for at, _ in row if at is not None), None) for row in keyed]
    steps = [after - before for before, after in pairwise(first) if before is not None and after is not None]
    if sum(step < 0 for step in steps) > sum(step > 0 for step in steps):
        keyed.reverse()
    placed = list[tuple[bool, int, ReadCommand]]()
    for row in keyed:
        latest = None
        for at, each in row:
            latest = at if latest is None else max(latest, at or latest)
            placed.append((latest is not None, latest or 0, each))
    placed.sort(key=itemgetter(0, 1))
    return [each for *_, each in placed]


def first_of_each(commands: Iterable[ReadCommand]) -> Iterator[ReadCommand]:
    """Return the commands without those that are one and the same object as one before; forecasts are none of these."""
    told = dict[int, Any]()  # objects by their id, which no other object has while they are here
    for place, command in commands:
        if id(command) not in told:
            if type(command) is not SubmitForecast:
                told[id(command)] = command
            yield place, command


def refuse_falling(commands: Iterator[ReadCommand]) -> Iterator[ReadCommand]:
    """Return the commands, of which the first `LOOKED_AT` are read at once.

    Refuses: out_of_order (more of their steps fall than rise: most commands would be refused, and the newest stand).
    """
    first = list(islice(commands, LOOKED_AT))
    times = [place.recorded_at for place, _ in first if place.recorded_at is not None]
    received = [after - before for before, after in pairwise(times)]
    for field, (falls, rises) in {
        RECEIVED: (sum(step < 0 for step in received), sum(step > 0 for step in received)),
        "at": _steps(first),
    }.items():
        if falls > rises:
            detail = (
                f"the file is mostly in falling order: {falls:,} of its first {falls + rises:,} commands that follow "
                "another one are earlier than that; nothing was recorded"
            )
            raise Refused("out_of_order", field, None, detail, remedy=f'write sort = "{field}" at the top of the map')
    return chain(first, commands)


def _steps(commands: Iterable[ReadCommand]) -> tuple[int, int]:
    """Return how many commands are earlier, and how many later, than the last of their type on the same subject."""
    last: dict[tuple[Any, ...], int] = {}
    falls = rises = 0
    for _, command in commands:
        if type(command) not in _IN_ORDER:
            continue
        field, subject = _IN_ORDER[type(command)]
        key = (type(command), *(getattr(command, name) for name in subject))
        with suppress(Refused, TypeError):  # the ledger refuses the command with its place
            at = read_instant(getattr(command, field))
            before = last.get(key, at)
            falls, rises = falls + (at < before), rises + (at > before)
            last[key] = at
    return falls, rises


def _instant(each: ReadCommand, field: str, known: dict[int, int | None]) -> int | None:
    place, command = each
    if field == RECEIVED:
        return place.recorded_at
    if isinstance(command, SubmitForecast | Refused):
        return _read_instant(command, field)
    if id(command) not in known:
        known[id(command)] = _read_instant(command, field)
    return known[id(command)]


def _read_instant(command: Any, field: str) -> int | None:
    with suppress(Refused, AttributeError):
        if not isinstance(command, Refused):
            return read_instant(getattr(command, field), field)
    return None
