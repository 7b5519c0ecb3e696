"""Feeding a file of commands to a ledger."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import IO

from ledger import Ledger, Receipt, Refused
from ledger.commands import AnyCommand, read

BATCH = 10_000  # commands a transaction
LONGEST = 4 * 2**20  # bytes of a line
_MARK = b"\xef\xbb\xbf"

Tell = Callable[[int, Refused], None]  # line number, refusal


def appended(
    ledger: Ledger, file: IO[bytes], tell: Tell, watch: Callable[[int], None], *, atomic: bool = False
) -> dict[str, int]:
    """Append every line's command, in batches of one transaction each, or all in one if atomic.

    tell: hears of each refused line. watch: hears how many lines are done.
    Returns counts of accepted, duplicate and refused. Raises what `Ledger.handle_many` raises; the batches before
    are recorded then, and sending the file again is harmless.
    """
    counts = {"accepted": 0, "duplicate": 0, "refused": 0}
    lines = _lines(file)
    while batch := list(islice(lines, None if atomic else BATCH)):
        outcomes = _outcomes(ledger, [line for _, line in batch], atomic=atomic)
        for (number, _), outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, Receipt):
                counts["duplicate" if outcome.duplicate else "accepted"] += 1
                continue
            counts["refused"] += 1
            if outcome.code != "batch_refused":
                tell(number, outcome)
        watch(batch[-1][0])
    return counts


def _outcomes(ledger: Ledger, lines: list[AnyCommand | Refused], *, atomic: bool) -> list[Receipt | Refused]:
    """What became of each line: one that cannot be read is refused, and if atomic, so are the others."""
    commands = [line for line in lines if not isinstance(line, Refused)]
    if atomic and len(commands) < len(lines):
        return [line if isinstance(line, Refused) else Refused("batch_refused", "id", line.id) for line in lines]
    handled = iter(ledger.handle_many(commands, atomic=atomic))
    return [line if isinstance(line, Refused) else next(handled) for line in lines]


def _lines(file: IO[bytes]) -> Iterator[tuple[int, AnyCommand | Refused]]:
    """Each line's number and its command or refusal; blank lines are passed over."""
    number = 0
    while line := file.readline(LONGEST + 1):
        number += 1
        if len(line) > LONGEST:
            while line and not line.endswith(b"\n"):
                line = file.readline(LONGEST)
            yield number, Refused("malformed", "line", None, f"longer than {LONGEST} bytes")
            continue
        line = line.removeprefix(_MARK) if number == 1 else line
        if line.strip():
            yield number, _read(line)


def _read(line: bytes) -> AnyCommand | Refused:
    try:
        return read(line)
    except Refused as refused:
        return refused
