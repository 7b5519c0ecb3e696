"""Feeding a file of commands to a ledger."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import IO, Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand, read
from forecast_ledger.ledger.storing.receipt import Receipt
from forecast_ledger.ledger.storing.writer import Ledger

BATCH = 10_000  # commands a transaction at most; others wait for each
FIRST = 1_000  # commands of the first one
TURN = 0.05  # s of work that a transaction is to take: others may wait for several
LONGEST = 4 * 2**20  # bytes of a line
MARK = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # the marks that such a text begins with; UTF-32's begins so or with a NUL
_NONE: Mapping[str, Sequence[str]] = MappingProxyType({})


class Place(NamedTuple):
    """Where a command is read: its line; of a CSV also its type, and of each field the columns that it is made of."""

    line: int
    command: str = ""
    columns: Mapping[str, Sequence[str]] = _NONE

    def columns_of(self, refused: Refused) -> Sequence[str]:
        """The columns that a refused field is made of, if any."""
        field = str(refused.field)
        return self.columns.get(field.partition(".")[0].partition("[")[0], ())

    def said(self, refused: Refused) -> str:
        """A refusal, with its place before it.

        >>> Place(3, "submit_forecast", {"id": ["User"]}).said(Refused("id_empty", "id"))[:46]
        "line 3, submit_forecast, column 'User': id_emp"
        """
        columns = ", ".join(map(repr, self.columns_of(refused)))
        parts = (f"line {self.line}", self.command, columns and f"column {columns}")
        return f"{', '.join(filter(None, parts))}: {refused}"

    def to_dict(self, refused: Refused) -> dict[str, Any]:
        """The same as plain values: what `Refused.to_dict` has, and before it the line, the command, its columns."""
        place = {"command": self.command, "columns": list(self.columns_of(refused))}
        return {"line": self.line} | {key: part for key, part in place.items() if part} | refused.to_dict()


Read = tuple[Place, AnyCommand | Refused]
Outcome = tuple[Place, AnyCommand | None, Receipt | Refused]
Tell = Callable[[Place, Refused], None]
Watch = Callable[[int], None]


def appended(
    ledger: Ledger,
    file: IO[bytes],
    tell: Tell = lambda *_: None,
    watch: Watch = lambda _: None,
    *,
    atomic: bool = False,
) -> dict[str, int]:
    """Append every line's command, in batches of one transaction each, or all in one if atomic.

    tell: hears of each refused line. watch: hears how many lines are done.
    Returns counts of accepted, duplicate and refused. Raises what `Ledger.handle_many` raises; the batches before
    are recorded then, and sending the file again is harmless.

    >>> from io import BytesIO
    >>> from forecast_ledger import append, open
    >>> file = BytesIO(b'{"id": "c1", "type": "close_question", "at": "2026-03-08T00:00:00Z", "question": "rain"}')
    >>> with open(":memory:") as ledger:
    ...     append(ledger, file, lambda place, refused: print(f"line {place.line}: {refused.code}"))
    line 1: unknown_question
    {'accepted': 0, 'duplicate': 0, 'refused': 1}
    """
    return counted(outcomes(ledger, lines(file), watch, atomic=atomic), tell)


def counted(outcomes: Iterable[Outcome], tell: Tell) -> dict[str, int]:
    """How many commands were accepted, duplicate and refused."""
    counts = {"accepted": 0, "duplicate": 0, "refused": 0}
    for _ in told(outcomes, tell, counts):
        pass
    return counts


def told(outcomes: Iterable[Outcome], tell: Tell, counts: dict[str, int]) -> Iterator[Outcome]:
    """The same outcomes, each counted by its name, and each refusal told, as they pass."""
    for each in outcomes:
        place, _, outcome = each
        counts[named(outcome)] += 1
        if isinstance(outcome, Refused) and outcome.code != "batch_refused":
            tell(place, outcome)
        yield each


def row_of(each: Outcome) -> dict[str, Any]:
    """An outcome as a row to be printed."""
    place, command, outcome = each
    said = {"line": place.line, "id": "", "type": place.command} | dict.fromkeys(("outcome", "code", "field"), "")
    if command is not None:
        said |= {"id": command.id, "type": command.__struct_config__.tag}
    if isinstance(outcome, Refused):
        said |= {"code": outcome.code, "field": str(outcome.field)}
    return said | {"outcome": named(outcome)}


def named(outcome: Receipt | Refused) -> str:
    """What became of a command, in a word.

    >>> named(Receipt("c1", 1, 1)), named(Receipt("c1", 1, 1, duplicate=True))
    ('accepted', 'duplicate')
    """
    if isinstance(outcome, Refused):
        return "refused"
    return "duplicate" if outcome.duplicate else "accepted"


def outcomes(ledger: Ledger, source: Iterable[Read], watch: Watch, *, atomic: bool = False) -> Iterator[Outcome]:
    """What becomes of each command, batch by batch, in order. Raises what `Ledger.handle_many` raises."""
    reading, size = iter(source), FIRST
    while batch := list(islice(reading, None if atomic else size)):
        begun = time.thread_time()  # this thread's own work, without its waiting for others
        handled = _outcomes(ledger, [said for _, said in batch], atomic=atomic)
        size = _size(len(batch), time.thread_time() - begun)
        for (place, said), outcome in zip(batch, handled, strict=True):
            yield place, None if isinstance(said, Refused) else said, outcome
        watch(batch[-1][0].line)


def _size(done: int, seconds: float) -> int:
    """How many commands the next transaction is to have, when one of so many has taken so long.

    >>> _size(1_000, 0.05), _size(1_000, 2.0), _size(1_000, 0.0)
    (1000, 25, 10000)
    """
    return max(1, min(BATCH, int(done * TURN / max(seconds, 1e-6))))


def _outcomes(ledger: Ledger, lines: list[AnyCommand | Refused], *, atomic: bool) -> list[Receipt | Refused]:
    """What became of each line: one that cannot be read is refused, and if atomic, so are the others."""
    commands = [line for line in lines if not isinstance(line, Refused)]
    if atomic and len(commands) < len(lines):
        return [line if isinstance(line, Refused) else Refused("batch_refused", "id", line.id) for line in lines]
    handled = iter(ledger.handle_many(commands, atomic=atomic))
    return [line if isinstance(line, Refused) else next(handled) for line in lines]


def lines(file: IO[bytes]) -> Iterator[Read]:
    """Each line's number and its command or refusal; blank lines are passed over.

    Raises Refused, malformed, before anything else is read: the file begins as no text in UTF-8 does.
    """
    number = 0
    while line := file.readline(LONGEST + 1):
        number += 1
        if number == 1 and (line.startswith(_UTF_16) or b"\0" in line[:4]):
            said = "not JSON lines in UTF-8; the file looks like UTF-16 or UTF-32"
            raise Refused("malformed", "file", None, said, remedy="save it as UTF-8")
        if len(line) > LONGEST:
            while line and not line.endswith(b"\n"):
                line = file.readline(LONGEST)
            yield Place(number), Refused("malformed", "line", None, f"longer than {LONGEST} bytes", remedy="shorten it")
            continue
        line = line.removeprefix(MARK) if number == 1 else line
        if line.strip():
            yield Place(number), _read(line)


def _read(line: bytes) -> AnyCommand | Refused:
    try:
        return read(line)
    except Refused as refused:
        return refused
