"""The commands on the lines of a file, one by one or by blocks, each with its location in the file."""

import logging
import os
import stat
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Sized
from concurrent.futures import BrokenExecutor, Future
from contextlib import contextmanager
from io import BytesIO
from typing import IO, TYPE_CHECKING, Generic, Protocol, TypeVar, cast, get_args

import msgspec
from msgspec import structs

from forecast_ledger.ledger.batching.forecasts import ForecastColumns
from forecast_ledger.ledger.batching.forecasts import read_lines as read_forecast_lines
from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.ledger.model.commands import AnyCommand, read_line
from forecast_ledger.ledger.model.input_locations import InputLocation, ReadCommand
from forecast_ledger.replay.engines.pool import Pool, check_guard, processors, start

if TYPE_CHECKING:
    from forecast_ledger.ledger.batching.plain_lines import PlainLines
    from forecast_ledger.ledger.batching.sent_forecasts import SentForecasts

LONGEST_LINE = 4 * 2**20  # longest line, in bytes
BLOCK_BYTES = 16 * 2**20  # a block of lines has at most this size
MOST_BLANK = 1_000_000  # blank lines that may follow each other
READ_BYTES = 2**16  # bytes that are read at once
UTF_8_MARK = b"\xef\xbb\xbf"
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")  # byte order marks; UTF-32 begins with one of them or with a NUL
_PARTS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_COMMAND_FIELDS = {field.name for kind in get_args(AnyCommand) for field in structs.fields(kind)} | {"type"}
Block = TypeVar("Block", bound=Sized)


class Readable(Protocol):
    """A file from which lines are read."""

    def readline(self, limit: int, /) -> bytes:
        """Return the rest of the current line, at most this many bytes; none at the end."""


class CommandBlocks(Protocol[Block]):
    """Reads a file by blocks of lines or rows."""

    @property
    def number(self) -> int:
        """The number of the last line of the blocks that are done."""

    def take(self, count: int, /) -> Block:
        """Return the next block, of up to this many lines or rows; none at the end."""

    def read(self, block: Block, /) -> Sequence[AnyCommand] | None:
        """Return the command of every line or row; None if one may not be a command."""

    def again(self, block: Block, /) -> Iterator[ReadCommand]:
        """Return the command or the refusal of each, with its location."""

    def with_locations(self, block: Block, commands: Sequence[AnyCommand], /) -> list[ReadCommand]:
        """Return commands that `read` has returned with their locations."""

    def finish(self, block: Block, commands: Sequence[ReadCommand], /) -> None:
        """End a block. commands: what `again` or `placed` has returned, if it was called."""


class Lines:
    """Consecutive lines of a file. data: their bytes."""

    def __init__(self, data: bytes, count: int) -> None:
        self.data, self._count = data, count

    def __len__(self) -> int:
        return self._count

    def split(self) -> list[bytes]:
        """Return each line."""
        return BytesIO(self.data).readlines()


class LineBlocks:
    """Reads a file by blocks of lines. number: of the last line of the blocks that are done."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._kept = file, list[bytes]()
        self._unread = BytesIO()  # what was read of the file and is not taken yet
        self._read: Callable[[int], bytes] = getattr(file, "read1", file.read)  # read1: does not wait for more
        self.number = 0
        self.reader: Reader = read_sent_lines

    def take(self, count: int) -> Lines:
        """Return up to this many lines; of a line that is longer than a block, its beginning."""
        parts, missing, size = list[bytes](), count, 0
        while missing and (part := self._next_part(BLOCK_BYTES - size)):
            newlines = part.count(b"\n")
            if newlines >= missing:
                part, newlines = self._cut(part, _end_of_line(part, missing)), missing
            parts.append(part)
            missing, size = missing - newlines, size + len(part)
        data = b"".join(parts)
        if size == BLOCK_BYTES and (end := data.rfind(b"\n") + 1):
            data = self._cut(data, end)
        return Lines(data, count - missing + (data[-1:] not in {b"\n", b""}))

    def _next_part(self, most: int) -> bytes:
        """Return the next bytes, at most so many; none at the end."""
        most = min(most, READ_BYTES)
        return self._unread.read(most) or (self._read(most) if most else b"")

    def _cut(self, data: bytes, end: int) -> bytes:
        """Return the first bytes, up to an index, and keep the rest for the next block."""
        self._keep(data[end:])
        return data[:end]

    def _keep(self, data: bytes) -> None:
        """Take back the newest bytes."""
        self._unread = BytesIO(data + self._unread.read())

    def read(self, lines: Lines) -> Sequence[AnyCommand] | None:
        """Return the command of every line; None if one is no command, or is too long."""
        if _has_too_long(lines.data):
            return None
        try:
            return read_forecast_lines(lines.data) or [*map(read_line, lines.split())]
        except Refused:
            return None

    def send(self, lines: Lines) -> bytes:
        """Return lines as bytes."""
        return lines.data

    def give_back(self, lines: Lines) -> None:
        """Take back the newest lines."""
        self._keep(lines.data)

    def again(self, lines: Lines) -> Iterator[ReadCommand]:
        """Return what `read_lines` returns for these lines, which are a block.

        If the last of them is blank, or is a part of a line, it reads on to the end of the next line.
        """
        self._kept = lines.split()[::-1]
        reading = read_lines(self, after=self.number)
        while self._kept and (command := next(reading, None)) is not None:
            yield command

    def with_locations(self, lines: Lines, commands: Sequence[AnyCommand]) -> list[ReadCommand]:
        """Return the commands of a block with their locations."""
        numbered = enumerate(zip(lines.split(), commands, strict=True), self.number + 1)
        return [(InputLocation(number, records=((number, line),)), command) for number, (line, command) in numbered]

    def finish(self, lines: Lines, commands: Sequence[ReadCommand]) -> None:
        """Count the lines of a block that is done."""
        self.number = commands[-1][0].line if commands else self.number + len(lines)

    def readline(self, limit: int) -> bytes:
        """Return the next line of those that are read again, or of the file."""
        if self._kept:
            return self._kept.pop()
        line = self._unread.readline(limit)
        return line if line.endswith(b"\n") else line + self._file.readline(limit - len(line))


def _end_of_line(data: bytes, number: int) -> int:
    """Return the index after the end of a line; the first line has number 1."""
    end = 0
    for _ in range(number):
        end = data.index(b"\n", end) + 1
    return end


def read_sent_lines(sent: bytes) -> "ForecastColumns | PlainLines | None":
    """Return the forecasts on lines that were sent; None if one of them is not a forecast, or has a fault."""
    from forecast_ledger.ledger.batching.plain_lines import read_alike  # noqa: PLC0415 - late: it imports NumPy

    return None if _has_too_long(sent) else read_alike(sent) or read_forecast_lines(sent)


def _has_too_long(data: bytes) -> bool:
    """Return whether one of some lines is too long."""
    return len(data) > LONGEST_LINE and max(map(len, BytesIO(data))) > LONGEST_LINE


def read_lines(file: Readable, recorded_at: str = "", after: int = 0) -> Iterator[ReadCommand]:
    """Return each line's number with its command or refusal; blank lines are skipped.

    recorded_at: the field that says when a line was received. It is no part of the command, unless commands have it.
    after: the number of the line before the first one.
    Raises Refused (malformed): the file begins like UTF-16 or UTF-32, before anything else is read; or more than
    `MOST_BLANK` blank lines follow each other.
    """
    number = last = after
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if number == 1 and (line.startswith(_UTF_16_MARKS) or b"\0" in line[:4]):
            detail = "the file looks like UTF-16 or UTF-32, not UTF-8"
            raise Refused("malformed", "file", None, detail, remedy="save it as UTF-8")
        if len(line) > LONGEST_LINE:
            while line and not line.endswith(b"\n"):
                line = file.readline(LONGEST_LINE)
            yield (
                InputLocation(number, records=((number, b""),)),
                Refused("malformed", "line", None, f"longer than {LONGEST_LINE} bytes", remedy="shorten the line"),
            )
            last = number
            continue
        text = line.removeprefix(UTF_8_MARK) if number == 1 else line
        if not text.strip():
            if number - last > MOST_BLANK:
                detail = (
                    f"more than {MOST_BLANK:,} blank lines follow each other; the lines after {number} are not read"
                )
                raise Refused("malformed", "file", None, detail, remedy="remove the blank lines")
        else:
            last = number
            location = InputLocation(number, records=((number, line),))
            yield _parse_received(location, text, recorded_at) if recorded_at else (location, _parse(text))


def _parse(line: bytes) -> AnyCommand | Refused:
    try:
        return read_line(line)
    except Refused as refused:
        return refused


def _parse_received(location: InputLocation, line: bytes, field: str) -> ReadCommand:
    """Return a command and the instant in a field beside it. Refuses: malformed, bad_instant, naive_instant."""
    try:
        parts = _PARTS.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return location, _parse(line)  # which refuses it in its own words
    try:
        if field not in parts:
            raise Refused("malformed", field, None, "the line has no such field, which says when it was received")
        time = read_instant(msgspec.json.decode(parts[field]), field)
    except (Refused, msgspec.DecodeError, RecursionError) as fault:
        return location, fault if isinstance(fault, Refused) else Refused("bad_instant", field)
    if field not in _COMMAND_FIELDS:
        del parts[field]
    return location._replace(recorded_at=time), _parse(msgspec.json.encode(parts))


# --- Blocks of commands that another process reads while those before them are recorded.


# The start and the end of the other process take 0.1 s. It is started at once for a file of so many bytes, and for any
# other file after so many commands.
LONG, WORTH = 8 * 2**20, 40_000
AHEAD = 2  # blocks that are sent before they are needed: one that is read, and one that waits for it
Reader = Callable[[bytes], "ForecastColumns | PlainLines | None"]
_logger = logging.getLogger(__name__)


class SentBlocks(CommandBlocks[Block], Protocol[Block]):
    """Blocks that can be sent to another process."""

    @property
    def reader(self) -> Reader:
        """Reads a block that was sent; it can be pickled."""

    def send(self, block: Block, /) -> bytes:
        """Return a block as bytes."""

    def give_back(self, block: Block, /) -> None:
        """Take back the newest block, which nobody has read yet."""


class ReadAhead(Generic[Block]):
    """Reads a file by blocks; those of forecasts of a probability are read ahead, in another process.

    That process makes the texts of their rows too. If it cannot be started, or ends, blocks are read in this process.
    """

    def __init__(self, blocks: SentBlocks[Block]) -> None:
        self._blocks, self._done, self._is_alone = blocks, 0, False
        self._pool: Pool | None = None
        self._newest: Future[SentForecasts | None] | None = None  # of the newest block that `take` has returned
        self._ahead: deque[tuple[Block, Future[SentForecasts | None] | None]] = deque()  # the blocks after that

    @property
    def number(self) -> int:
        """The number of the last line of the blocks that are done."""
        return self._blocks.number

    def take(self, count: int) -> Block:
        """Return the next block, and send those after it."""
        block, self._newest = self._ahead.popleft() if self._ahead else (self._blocks.take(count), None)
        if block and self._pool is not None and self._pool.begun.done():
            while self._pool is not None and len(self._ahead) < AHEAD and (following := self._blocks.take(count)):
                self._ahead.append((following, self._sent(self._pool, following)))
        return block

    def _sent(self, pool: Pool, block: Block) -> "Future[SentForecasts | None] | None":
        """Send a block; None if there is nobody to read it."""
        try:
            return pool.submit(_read, self._blocks.send(block))
        except BrokenExecutor:
            self._give_up()
            return None

    def read(self, block: Block) -> Sequence[AnyCommand] | None:
        """Return the command of every line or row; None if one may not be a command."""
        sent = self.sent()
        if sent is None:
            return self._blocks.read(block)
        return sent.forecasts(lambda: cast("ForecastColumns", self._blocks.read(block)))

    def sent(self) -> "SentForecasts | None":
        """Return the forecasts of the newest block, if the other process has read it."""
        try:
            return None if self._newest is None else self._newest.result()
        except BrokenExecutor:
            self._give_up()
            return None

    def again(self, block: Block) -> Iterator[ReadCommand]:
        """Return the command or the refusal of each; what it reads beyond the block is of the next one."""
        while self._ahead:
            following, reading = self._ahead.pop()
            self._blocks.give_back(following)
            if reading is not None:
                reading.cancel()
        return self._blocks.again(block)

    def with_locations(self, block: Block, commands: Sequence[AnyCommand]) -> list[ReadCommand]:
        """Return commands that `read` has returned with their locations."""
        return self._blocks.with_locations(block, commands)

    def finish(self, block: Block, commands: Sequence[ReadCommand]) -> None:
        """End a block; after many commands, start the other process."""
        self._blocks.finish(block, commands)
        if self._done < WORTH <= self._done + len(block):
            self.start()
        self._done += len(block)

    def start(self) -> None:
        """Start the other process, if it was not."""
        if self._pool is not None or self._is_alone:
            return
        try:
            self._pool = start(1, _begin, self._blocks.reader)
        # a system with no room for more processes; a process that may not have others
        except (OSError, RuntimeError, AssertionError):
            self._give_up()

    def close(self) -> None:
        """End the other process, whatever it does: all that is still wanted has been taken."""
        if self._pool is not None:
            self._pool.close()
        self._pool = None

    def _give_up(self) -> None:
        """Go on without another process. Raises RuntimeError: it ended because the main module has no guard."""
        if self._pool is not None:
            self._pool.check_guard()
        if not self._is_alone:
            _logger.warning("there is no process to read ahead: the file is read in the process that records it")
        self._is_alone = True
        self.close()


@contextmanager
def reading_ahead(blocks: SentBlocks[Block], size: int | None) -> Iterator[CommandBlocks[Block]]:
    """Read blocks ahead, if this process may use more than one processor. size: of the file in bytes, if known."""
    check_guard()
    if processors() < 2:
        yield blocks
        return
    ahead = ReadAhead(blocks)
    try:
        if size is not None and size >= LONG:
            ahead.start()
        yield ahead
    finally:
        ahead.close()


def size_of(file: IO[bytes]) -> int | None:
    """Return the bytes of a regular file; None for a pipe, whose end is not known, and for a stream in memory."""
    try:
        status = os.fstat(file.fileno())
    except (AttributeError, OSError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


_readers: list[Reader] = []  # of the other process


def _begin(reader: Reader) -> None:
    """Prepare the other process."""
    import forecast_ledger.ledger.batching.sent_forecasts  # noqa: F401, PLC0415 - it imports NumPy, so short files do without

    _readers.append(reader)


def _read(sent: bytes) -> "SentForecasts | None":
    """Return the forecasts of a block; None if one of its lines or rows is anything else, or may have a fault."""
    from forecast_ledger.ledger.batching.sent_forecasts import pack  # noqa: PLC0415 - as above

    with gc_pause.paused():
        commands = _readers[0](sent)
        return None if commands is None else pack(commands)
