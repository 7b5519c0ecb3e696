"""Blocks of commands that another process reads while those before them are recorded."""

import logging
import os
import stat
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Generic, Protocol, cast

from forecast_ledger.ledger.batching.forecast_columns import ForecastColumns
from forecast_ledger.ledger.batching.quick_forecasts import pack, unpack
from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.replay.engines.pool import Pool, check_guard, processors, start
from forecast_ledger.replay.writing.command_lines import Block, CommandBlocks, ReadCommand

if TYPE_CHECKING:
    from concurrent.futures import Future

# The start and the end of the other process take 0.1 s. It is started at once for a file of so many bytes, and for any
# other file after so many commands.
LONG, WORTH = 8 * 2**20, 40_000
AHEAD = 2  # blocks that are sent before they are needed: one that is read, and one that waits for it
Reader = Callable[[bytes], ForecastColumns | None]
_logger = logging.getLogger(__name__)


class SentBlocks(CommandBlocks[Block], Protocol[Block]):
    """Blocks that can be sent to another process. reader: reads a block that was sent; it can be pickled."""

    reader: Reader

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
        self._names: dict[str, str] = {}  # of questions and participants
        self._pool: Pool | None = None
        self._newest: Future[bytes | None] | None = None  # of the newest block that `take` has returned
        self._ahead: deque[tuple[Block, Future[bytes | None] | None]] = deque()  # the blocks after that

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

    def _sent(self, pool: Pool, block: Block) -> "Future[bytes | None] | None":
        """Send a block; None if there is nobody to read it."""
        try:
            return pool.submit(_read, self._blocks.send(block))
        except BrokenExecutor:
            self._give_up()
            return None

    def read(self, block: Block) -> Sequence[AnyCommand] | None:
        """Return the command of every line or row; None if one may not be a command."""
        try:
            sent = self._newest.result() if self._newest is not None else None
        except BrokenExecutor:
            self._give_up()
            sent = None
        if sent is None:
            return self._blocks.read(block)
        return unpack(sent, self._names, lambda: cast("ForecastColumns", self._blocks.read(block)))

    def again(self, block: Block) -> Iterator[ReadCommand]:
        """Return the command or the refusal of each; what it reads beyond the block is of the next one."""
        while self._ahead:
            following, reading = self._ahead.pop()
            self._blocks.give_back(following)
            if reading is not None:
                reading.cancel()
        return self._blocks.again(block)

    def placed(self, block: Block, commands: Sequence[AnyCommand]) -> list[ReadCommand]:
        """Return commands that `read` has returned with their places."""
        return self._blocks.placed(block, commands)

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
    _readers.append(reader)


def _read(sent: bytes) -> bytes | None:
    """Return the forecasts of a block; None if one of its lines or rows is anything else, or may have a fault."""
    with gc_pause.paused():
        commands = _readers[0](sent)
        return None if commands is None else pack(commands)
