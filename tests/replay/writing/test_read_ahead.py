"""A file that another process reads ahead leaves the rows, and gives the refusals, of one that is read here."""

import logging
import os
import pickle
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.batching import writer_state
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.engines import pool
from forecast_ledger.replay.mapping.csv_mapping import parse_map
from forecast_ledger.replay.mapping.csv_reader import read_sources
from forecast_ledger.replay.mapping.row_blocks import RowBlocks
from forecast_ledger.replay.writing import append, command_lines
from forecast_ledger.replay.writing.command_lines import LineBlocks, ReadAhead, reading_ahead
from tests.replay.mapping.test_row_blocks import MAPS, random_rows
from tests.replay.writing.test_append import FIRST_LINES, LONG, SMALL, forecast_line, random_file, sent
from tests.support.effort import times
from tests.support.given import DAY, NOW, opened


class Here:
    """A pool whose process is this one: what is sent is pickled; a task is done when its result is wanted."""

    def __init__(self, _: int, begin: Callable[[Any], None], given: Any) -> None:
        self._given = begin, pickle.dumps(given)
        self.results: list[bytes | None] = []
        self.begun = self.submit(os.getpid)

    def check_guard(self) -> None:
        """The main module has one."""

    def close(self) -> None:
        """Nothing is to be ended."""

    def submit(self, task: Callable[..., Any], /, *sent: Any, **_: Any) -> Future[Any]:
        """Do a task."""
        command_lines._readers.clear()
        self._given[0](pickle.loads(self._given[1]))  # noqa: S301 - it was pickled here
        done: Future[Any] = Future()
        done.set_result(task(*sent))
        self.results += [done.result()] * len(sent)
        return done


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[Here]:
    """Blocks of few lines, all but the first of which are read ahead; and the pools that were started."""
    monkeypatch.setattr(append, "FIRST_BATCH", SMALL)
    monkeypatch.setattr(append, "_next_size", lambda *_: SMALL)
    monkeypatch.setattr(command_lines, "LONGEST_LINE", LONG)
    monkeypatch.setattr(command_lines, "READ_BYTES", 61)
    monkeypatch.setattr(command_lines, "WORTH", 1)
    monkeypatch.setattr(writer_state, "RECENT", 2)  # so that a block is of many commands
    monkeypatch.setattr(writer_state, "FEW", 1)
    started: list[Here] = []

    def start(*given: Any) -> Here:
        started.append(Here(*given))
        return started[-1]

    monkeypatch.setattr(command_lines, "start", start)
    return started


def lines_ahead(source: BytesIO) -> ReadAhead[Any]:
    """Lines that are read ahead."""
    return ReadAhead(LineBlocks(source))


def good_lines(count: int) -> list[bytes]:
    """Two questions and so many forecasts."""
    return [*FIRST_LINES[1:], *(forecast_line(f"f{number}", participant=f"p{number % 9}") for number in range(count))]


@pytest.mark.parametrize("seed", range(times(24)))
def test_lines_read_ahead_leave_the_rows_and_refusals_of_single_lines(
    seed: int, two_ledgers: tuple[Ledger, Ledger], tmp_path: Path, pools: list[Here]
) -> None:
    """Counts, refusals with their lines, refused lines and bytes are equal; and when the file is sent again."""
    file = random_file(random.Random(seed)) + b"\n" + b"\n".join(good_lines(3 * SMALL)[2:])
    for _ in range(2):
        ahead, single = (
            sent(ledger, file, tmp_path, blocks)
            for ledger, blocks in zip(two_ledgers, (lines_ahead, None), strict=True)
        )
        assert ahead == single
    assert len(pools) == 2
    assert any(pools[0].results)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("seed", range(times(4)))
def test_rows_read_ahead_leave_the_log_of_rows_read_here(
    name: str, seed: int, two_ledgers: tuple[Ledger, Ledger], tmp_path: Path, pools: list[Here]
) -> None:
    """Numbers of rows are those of the file, also after a block that is read again."""
    file = random_rows(random.Random(f"{name} {seed}"))

    def rows() -> RowBlocks:
        return RowBlocks(parse_map(MAPS[name]), read_sources(BytesIO(file)), keep=True)

    for ledger in two_ledgers:
        ledger.handle_many([opened("q", id="q"), opened("r", id="r")])
    one, two = two_ledgers
    with suppress(Refused):  # of the whole file, whose rows fall
        here = sent(one, b"", tmp_path, lambda _: rows())
        assert sent(two, b"", tmp_path, lambda _: ReadAhead(rows())) == here
        assert len(pools) == bool(sum(here[0].values()))


def test_another_process_reads_most_of_a_long_file(
    two_ledgers: tuple[Ledger, Ledger], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pools: list[Here]
) -> None:
    """A process of its own, which ends with the file."""
    monkeypatch.setattr(command_lines, "start", pool.start)
    others: list[int] = []

    class Watched(ReadAhead[Any]):
        def take(self, count: int) -> Any:
            if self._pool is not None:
                self._pool.begun.result()  # else all of a short file would be read before the process works
                others[:] = [child.pid or 0 for child in self._pool.children]
            return super().take(count)

        def sent(self) -> Any:
            found = super().sent()
            there.append(found is not None)
            return found

    there: list[bool] = []
    file, (one, two) = b"\n".join(good_lines(20 * SMALL)), two_ledgers
    ahead = Watched(LineBlocks(BytesIO(file)))
    assert sent(one, file, tmp_path, lambda _: ahead) == sent(two, file, tmp_path)
    assert there == [False] * 4 + [True] * 19  # twice of a block that is read here
    ahead.close()
    assert not Path(f"/proc/{others[0]}").exists() or sys.platform != "linux"


@pytest.mark.skipif(sys.platform != "linux", reason="the number of the other process is looked up in /proc")
@pytest.mark.usefixtures("pools")
def test_an_interrupt_ends_another_process_that_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it: what it reads is of no use any more."""
    monkeypatch.setattr(command_lines, "start", pool.start)
    monkeypatch.setattr(command_lines, "processors", lambda: 2)
    blocks, other = LineBlocks(BytesIO(b"\n".join(good_lines(9 * SMALL)))), 0

    def interrupted() -> None:
        nonlocal other
        with reading_ahead(blocks, None) as ahead:
            assert isinstance(ahead, ReadAhead)
            ahead.finish(ahead.take(SMALL), [])
            assert ahead._pool is not None
            other = ahead._pool.begun.result()
            os.kill(other, signal.SIGSTOP)
            ahead.take(SMALL)  # and the block after it is sent
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not Path(f"/proc/{other}").exists()


def nothing(_: object) -> None:
    """How a process begins that needs nothing."""


def is_held_back() -> bool:
    """Whether an interrupt would wait in this process."""
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_process_that_is_starting_gets_no_interrupt() -> None:
    """It would print where it was; this process gets one again as soon as the other is started."""
    started = pool.start(1, nothing, None)
    try:
        with pool.without_interrupts():
            assert is_held_back()
        assert (started.submit(is_held_back).result(), is_held_back()) == (True, False)
    finally:
        started.close()


def killed(_: bytes) -> None:
    """End the process of a pool."""
    os.kill(os.getpid(), signal.SIGKILL)


def no_pool(*_: Any) -> None:
    """A system that has no room for another process."""
    raise BlockingIOError("resource temporarily unavailable")


class Daemon(Here):
    """The pool of a process that may have none."""

    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        """As multiprocessing does."""
        raise AssertionError("daemonic processes are not allowed to have children")


@pytest.mark.usefixtures("pools")
@pytest.mark.parametrize("how", ["killed", "broken", "no room", "a daemon"])
def test_without_the_other_process_the_rest_is_read_here(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while it reads, or between two blocks, or never started: nothing is lost, and a warning is logged."""
    logged: list[str] = []
    monkeypatch.setattr(logging.Logger, "handle", lambda _, record: logged.append(record.getMessage()[:29]))
    if how == "killed":
        monkeypatch.setattr(command_lines, "start", pool.start)
        monkeypatch.setattr(command_lines, "_read", killed)
    elif how == "broken":
        submit = Here.submit

        def broken(self: Here, task: Any, *given: Any) -> Any:
            if len(self.results) == 3:
                raise BrokenExecutor
            return submit(self, task, *given)

        monkeypatch.setattr(Here, "submit", broken)
    else:
        monkeypatch.setattr(command_lines, "start", no_pool if how == "no room" else Daemon)

    class Waiting(ReadAhead[Any]):
        def take(self, count: int) -> Any:
            if self._pool is not None:
                self._pool.begun.result()
            return super().take(count)

    file, at = b"\n".join(good_lines(20 * SMALL)), partial(Ledger.open, ":memory:", clock=lambda: NOW + 99 * DAY)
    with at() as one, at() as two:
        assert sent(one, file, tmp_path, lambda source: Waiting(LineBlocks(source))) == sent(two, file, tmp_path)
    assert logged == ["there is no process to read a"]


def test_one_processor_reads_and_records(monkeypatch: pytest.MonkeyPatch, pools: list[Here]) -> None:
    """Two processes would take turns on it."""
    file = b"\n".join(good_lines(9 * SMALL))
    for count in (1, 2):
        monkeypatch.setattr(command_lines, "processors", lambda count=count: count)
        with Ledger.open(":memory:", clock=lambda: NOW + 99 * DAY) as ledger:
            assert append.append_lines(ledger, BytesIO(file), read_ahead=True)["accepted"] == 2 + 9 * SMALL
            assert append.append_lines(ledger, BytesIO(file))["duplicate"] == 2 + 9 * SMALL
    assert len(pools) == 1


@pytest.mark.parametrize("is_long", [True, False])
def test_the_other_process_of_a_long_file_is_started_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pools: list[Here], is_long: bool
) -> None:
    """Before its first block is read; for a shorter file, after many commands."""
    path, taken = tmp_path / "lines.jsonl", list[int]()
    path.write_bytes(b"\n".join(good_lines(9 * SMALL)))
    monkeypatch.setattr(command_lines, "processors", lambda: 2)
    monkeypatch.setattr(command_lines, "LONG", path.stat().st_size + (not is_long))
    take = LineBlocks.take

    def watched(self: LineBlocks, count: int) -> command_lines.Lines:
        taken.append(len(pools))
        return take(self, count)

    monkeypatch.setattr(LineBlocks, "take", watched)
    with Ledger.open(":memory:", clock=lambda: NOW + 99 * DAY) as ledger, path.open("rb") as file:
        assert append.append_lines(ledger, file, read_ahead=True)["accepted"] == 2 + 9 * SMALL
    assert (taken[0], taken[-1], len(pools)) == (is_long, 1, 1)


SCRIPT = """
import sys
from forecast_ledger.replay.cli.main import main
from forecast_ledger.replay.writing import command_lines
start, command_lines.WORTH = command_lines.start, 1
def started(*given):
    print("started", file=sys.stderr)
    return start(*given)
command_lines.start = started
if __name__ == "__main__":
    main()
"""


def test_the_command_line_reads_a_file_ahead_and_not_a_pipe(tmp_path: Path) -> None:
    """The printed counts are the same, and stderr is empty. What comes through a pipe is recorded as it comes."""
    script, file, lines = tmp_path / "script.py", tmp_path / "lines.jsonl", b"\n".join(good_lines(6_000))
    script.write_text(SCRIPT)
    file.write_bytes(lines)
    for place, processes in ((str(file), 1), ("-", 0)):
        said = subprocess.run(
            [sys.executable, str(script), "append", str(tmp_path / f"{processes}.db"), place, "--format", "json"],
            input=lines if place == "-" else None,
            capture_output=True,
            check=True,
        )
        assert said.stderr == b"started\n" * processes
        assert b'"accepted":6002' in said.stdout.replace(b" ", b"")
