"""Append a file of commands to a ledger, and sum up what is refused."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import IO, Any

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import (
    AnnulQuestion,
    AnyCommand,
    CancelMarket,
    FinalizeContest,
    RenameParticipant,
    ResolveQuestion,
    RestateForecasts,
    RevokeResolution,
)
from forecast_ledger.ledger.model.input_locations import InputLocation, ReadCommand
from forecast_ledger.ledger.storing.instrumentation import outcome_name
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.writing.command_lines import (
    Block,
    CommandBlocks,
    LineBlocks,
    Lines,
    ReadAhead,
    read_lines,
    reading_ahead,
    size_of,
)

LARGEST_BATCH = 10_000  # most commands per transaction; other writers wait for each
FIRST_BATCH = 1_000  # commands of the first transaction
BATCH_SECONDS = 0.05  # s of work that a transaction should take: other writers may wait for several

# Commands whose events boards that were sealed before do not count, and the one that seals a board.
_NOTED = {
    AnnulQuestion,
    CancelMarket,
    FinalizeContest,
    RenameParticipant,
    ResolveQuestion,
    RestateForecasts,
    RevokeResolution,
}

Outcome = tuple[InputLocation, AnyCommand | None, Receipt | Refused]
OnRefusal = Callable[[InputLocation, Refused], None]
OnProgress = Callable[[int], None]


@checked()
def append_lines(  # noqa: PLR0913 - a ledger, a file, two reports and two choices that have defaults
    ledger: Ledger,
    file: IO[bytes],
    on_refusal: OnRefusal = lambda *_: None,
    on_progress: OnProgress = lambda _: None,
    *,
    atomic: bool = False,
    read_ahead: bool = False,
) -> dict[str, int]:
    """Append the command of every line, in batches of one transaction each, or all in one if atomic.

    on_refusal: called for each refused line. on_progress: called with the number of lines done. read_ahead: let another
    process read the lines of a long file while those before them are recorded, if this one may use several processors;
    it imports the main module again, so that the program must guard its start with `if __name__ == "__main__":`.
    Returns the numbers of commands accepted, duplicate and refused, and, if quotes with skip_bad were skipped, their
    number as refused_quotes. Raises what `Ledger.handle_many` raises, and RuntimeError (read_ahead without that guard);
    earlier batches are then recorded already, and sending the file again is harmless.

    >>> from io import BytesIO
    >>> from forecast_ledger import append, open_ledger
    >>> file = BytesIO(b'{"id": "c1", "type": "close_question", "at": "2026-03-08T00:00:00Z", "question": "rain"}')
    >>> with open_ledger(":memory:") as ledger:
    ...     append(ledger, file, lambda location, refused: print(f"line {location.line}: {refused.code}"))
    line 1: unknown_question
    {'accepted': 0, 'duplicate': 0, 'refused': 1}
    """
    counts = {"accepted": 0, "duplicate": 0, "refused": 0}
    lines = LineBlocks(file)
    ahead: AbstractContextManager[CommandBlocks[Lines]] = (
        reading_ahead(lines, size_of(file)) if read_ahead else nullcontext(lines)
    )
    with ahead as blocks:
        handled = (
            append_batches(ledger, read_lines(file), on_progress, atomic=True)
            if atomic
            else append_blocks(ledger, blocks, on_progress, counts)
        )
        for _ in tally(handled, on_refusal, counts):
            pass
    return counts


def tally(outcomes: Iterable[Outcome], on_refusal: OnRefusal, counts: dict[str, int]) -> Iterator[Outcome]:
    """Pass the outcomes on; count each by its name, and report each refusal, also of a quote that was skipped."""
    for item in outcomes:
        location, _, outcome = item
        counts[outcome_name(outcome)] += 1
        if isinstance(outcome, Refused):
            if outcome.code != "batch_refused":
                on_refusal(location, outcome)
        elif outcome.refused:
            counts["refused_quotes"] = counts.get("refused_quotes", 0) + len(outcome.refused)
            for quote in outcome.refused:
                on_refusal(location, Refused(quote.code, quote.field).about(f"the quote of {quote.question!r}"))
        yield item


def outcome_row(item: Outcome) -> dict[str, Any]:
    """Return an outcome as a row to be printed."""
    location, command, outcome = item
    row = {"line": location.line, "id": "", "type": location.command} | dict.fromkeys(("outcome", "code", "field"), "")
    if command is not None:
        row |= {"id": command.id, "type": command.__struct_config__.tag}
    if isinstance(outcome, Refused):
        row |= {"code": outcome.code, "field": str(outcome.field)}
    return row | {"outcome": outcome_name(outcome)}


def append_batches(
    ledger: Ledger, source: Iterable[ReadCommand], on_progress: OnProgress, *, atomic: bool = False
) -> Iterator[Outcome]:
    """Append commands batch by batch; return their outcomes in order. Raises what `Ledger.handle_many` raises."""
    reading, size = iter(source), FIRST_BATCH
    while batch := list(islice(reading, None if atomic else size)):
        begun = time.thread_time()  # the time that this thread works, without the time that it waits
        handled = _append_batch(ledger, batch, atomic=atomic)
        size = _next_size(len(batch), time.thread_time() - begun)
        for (location, command), outcome in zip(batch, handled, strict=True):
            yield location, None if isinstance(command, Refused) else command, outcome
        on_progress(batch[-1][0].line)


def _next_size(done: int, seconds: float) -> int:
    """Return how many commands the next transaction should have, given the size and duration of the last one.

    >>> _next_size(1_000, 0.05), _next_size(1_000, 2.0), _next_size(1_000, 0.0)
    (1000, 25, 10000)
    """
    return max(1, min(LARGEST_BATCH, int(done * BATCH_SECONDS / max(seconds, 1e-6))))


def _append_batch(ledger: Ledger, batch: list[ReadCommand], *, atomic: bool) -> list[Receipt | Refused]:
    """Return the outcome of each line; if one cannot be read and the batch is atomic, all are refused."""
    lines = [line for _, line in batch]
    commands = [line for line in lines if not isinstance(line, Refused)]
    times = [location.recorded_at for location, line in batch if not isinstance(line, Refused)]
    received = [time for time in times if time is not None]
    if atomic and len(commands) < len(lines):
        return [line if isinstance(line, Refused) else Refused("batch_refused", "id", line.id) for line in lines]
    handled = iter(ledger.handle_many(commands, atomic=atomic, recorded_at=received or None))
    return [line if isinstance(line, Refused) else next(handled) for line in lines]


def append_blocks(
    ledger: Ledger, reading: CommandBlocks[Block], on_progress: OnProgress, counts: dict[str, int]
) -> Iterator[Outcome]:
    """Append the commands of every block; count those accepted or duplicate, and return the outcomes of those refused,
    or of which a quote was skipped; also those of commands that sealed boards may not count.

    It does what `append_batches` does, but the commands of a transaction are read, decided and counted together; if a
    line or row may not be a command, those of its block are read again one by one.
    """
    size = FIRST_BATCH
    while lines := reading.take(size):
        sent, batch = reading.sent() if isinstance(reading, ReadAhead) else None, list[ReadCommand]()
        begun = time.thread_time()  # as in `append_batches`
        if sent is not None and ledger.record_sent(sent):
            counts["accepted"] += sent.size
            commands, handled = None, list[Receipt | Refused]()
        else:
            commands = reading.read(lines)
            batch = [*reading.again(lines)] if commands is None else []
            begun = time.thread_time()
            handled = _append_batch(ledger, batch, atomic=False) if commands is None else ledger.handle_many(commands)
        size = _next_size(len(lines), time.thread_time() - begun)
        noted = range(len(handled)) if commands is None else _noted(commands)
        others = [outcome for number, outcome in enumerate(handled) if number not in noted] if noted else handled
        if _count_recorded(others, counts) < len(handled):
            batch = reading.with_locations(lines, commands) if commands is not None else batch
            for number, ((location, command), outcome) in enumerate(zip(batch, handled, strict=True)):
                if number in noted or isinstance(outcome, Refused) or outcome.refused:
                    yield location, None if isinstance(command, Refused) else command, outcome
        reading.finish(lines, batch)
        on_progress(reading.number)


def _noted(commands: Sequence[AnyCommand]) -> Collection[int]:
    """Return which of some commands boards may not count, by their numbers from 0; none if all are forecasts."""
    if type(commands) is not list or _NOTED.isdisjoint(map(type, commands)):
        return ()
    return {number for number, command in enumerate(commands) if type(command) in _NOTED}


def _count_recorded(outcomes: Sequence[Receipt | Refused], counts: dict[str, int]) -> int:
    """Count the commands accepted and duplicate as a whole; return how many these are."""
    duplicate = [outcome.duplicate for outcome in outcomes if type(outcome) is Receipt and not outcome.refused]
    counts["accepted"] += duplicate.count(False)
    counts["duplicate"] += duplicate.count(True)
    return len(duplicate)


class Uncounted:
    """Notes which boards that were sealed before do not count what is recorded. ledger: that records it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._questions, self._participants, self._seals = dict[str, int](), dict[str, int](), dict[str, int]()

    def noted(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """Pass the outcomes on; note what is recorded, and at which log position last."""
        for item in outcomes:
            _, command, outcome = item
            if type(command) in _NOTED and isinstance(outcome, Receipt) and not outcome.duplicate:
                if isinstance(command, FinalizeContest):
                    self._seals[command.contest] = outcome.last
                elif isinstance(command, RenameParticipant):
                    self._participants[command.participant] = outcome.last
                else:
                    self._questions[getattr(command, "question", "")] = outcome.last
            yield item

    def boards(self) -> list[str]:
        """Return the contests of these boards, in order; those that the same file seals, if it goes on after that."""
        if not self._questions and not self._participants:
            return []
        return self._ledger._sealed_with(self._questions, self._participants, self._seals)


FIRST = 3  # refusals of each code that are passed on


class RefusalSummary:
    """Passes the first refusals of each code on, and counts all. An instance is an `OnRefusal`.

    counts: code -> how many, in the order in which the codes came.

    >>> summary = RefusalSummary(lambda location, refused: print(location.describe(refused)), first=1)
    >>> for line in (4, 7):
    ...     summary(InputLocation(line), Refused("id_empty", "id"))
    line 4: id_empty: id: the id is empty; give an id of at least one character
    >>> summary.lines()
    ['refused: 2 x id_empty; the first 1 are above, and --errors json prints all']
    """

    def __init__(self, on_refusal: OnRefusal, first: int = FIRST) -> None:
        self._on_refusal, self._first = on_refusal, first
        self.counts: dict[str, int] = {}

    def __call__(self, location: InputLocation, refused: Refused) -> None:
        """Count a refusal."""
        count = self.counts[refused.code] = self.counts.get(refused.code, 0) + 1
        if count <= self._first:
            self._on_refusal(location, refused)

    def lines(self) -> list[str]:
        """Return a line for each code, if some refusals were not passed on; else none."""
        if all(count <= self._first for count in self.counts.values()):
            return []
        above = f"; the first {self._first} are above, and --errors json prints all"
        return [f"refused: {count:,} x {code}{above * (count > self._first)}" for code, count in self.counts.items()]
