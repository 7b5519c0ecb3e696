"""Processes do tasks and can be ended at any moment; a program that has no guard is told so."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Future
from contextlib import suppress
from pathlib import Path

import pytest

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.replay.engines import pool
from tests.support.given import contest, entry, forecast, opened, resolution
from tests.support.logs import written
from tests.support.processes import Command
from tests.support.tasks import damaged, much, nothing, twice
from tests.support.waiting import PATIENCE, quick, wait_until_signalled

REPLAYED = """
import forecast_ledger
with open("runs", "a") as runs:
    runs.write("run ")
{guard}
    print(len(forecast_ledger.replay("season.db", engine="processes").table("leaderboard")), "rows")
"""
APPENDED = """
import forecast_ledger
from forecast_ledger.replay.writing import append
from forecast_ledger.replay.writing import command_lines as read_ahead
with open("runs", "a") as runs:
    runs.write("run ")
append.FIRST_BATCH, read_ahead.LONG, read_ahead.processors = 1, 1, lambda: 2
{guard}
    with forecast_ledger.open("season.db") as ledger, open("lines.jsonl", "rb") as file:
        class Waiting(read_ahead.ReadAhead):
            def take(self, count):
                self._pool.begun.exception()
                return super().take(count)
        read_ahead.ReadAhead = Waiting
        print(forecast_ledger.append(ledger, file, read_ahead=True)["accepted"], "accepted")
"""
AGAIN = """
import forecast_ledger
with open("runs", "a") as runs:
    runs.write("run ")
while True:
    try:
        forecast_ledger.replay("season.db", engine="processes")
    except forecast_ledger.LedgerError:
        pass
"""
GUARD = 'if __name__ == "__main__":'
FORKED = """
import sys
from forecast_ledger.__main__ import run
from forecast_ledger.replay.engines import pool
with open("runs", "a") as runs:
    runs.write("run ")
start, children = pool.Pool.close, []
def closed(self):
    children.extend(self.children)
    start(self)
pool.Pool.close = closed
sys.stderr.isatty = lambda: {terminal}
sys.argv = ["forecast-ledger", "replay", "season.db", "--engine", "processes", "--only", "leaderboard"]
try:
    run()
finally:
    print(len(children), "processes")
"""
ALONE = """
from threading import Event, Thread
from forecast_ledger.ledger.storing.forks import can_fork, holds_nothing
done, found = Event(), [can_fork()]
waiting = Thread(target=done.wait)
waiting.start()
holds_nothing(waiting)
found.append(can_fork())
other = Thread(target=done.wait)
other.start()
found.append(can_fork())
done.set()
other.join()
found.append(can_fork())
waiting.join()
print(*found)
"""

PAINTING = """
import sys
from threading import Event, Lock, Thread
from forecast_ledger.ledger.storing.forks import holds_nothing
from forecast_ledger.replay.engines import pool
painter = Thread(target=Event().wait, daemon=True)
painter.start()
holds_nothing(painter)
class Painted:
    lock = Lock()
    def write(self, text):
        with self.lock:
            return sys.__stderr__.write(text)
    def flush(self):
        with self.lock:
            sys.__stderr__.flush()
def hold():
    Painted.lock.acquire()
    sys.stdout = sys.stderr = Painted()
import os
os.register_at_fork(before=hold, after_in_parent=Painted.lock.release)
def wrong(_):
    return 1 / 0
work = pool.start(1, wrong, None, may_fork=True)
try:
    work.begun.result(timeout=120)
except Exception as error:
    print(type(work.children[0]).__name__, type(error).__name__, file=sys.__stdout__, flush=True)
work.close()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a log, and a file of commands."""
    story: list[AnyCommand] = [contest(), opened(), entry(), forecast(), resolution()]
    written(tmp_path / "season.db", story)
    (tmp_path / "lines.jsonl").write_text(
        '{"id": "c0", "type": "finalize_contest", "at": "2026-04-01T00:00:00Z"}\n' * 9
    )
    return tmp_path


def run(folder: Path, program: str) -> "subprocess.CompletedProcess[str]":
    """Run a program that is a file in a folder; it ends by itself."""
    (folder / "program.py").write_text(program)
    command = [sys.executable, "-W", "ignore", "program.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.mark.parametrize("program", [AGAIN, APPENDED], ids=["replay", "append"])
def test_a_program_without_a_guard_is_told_to_have_one(folder: Path, program: str) -> None:
    """The first process that is started ends where it would start processes itself, and no other is started.

    A program that tries again after every error of a ledger ends too: no other try could mend its mistake.
    """
    ended = run(folder, program.format(guard="if True:"))
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("RuntimeError: each process that is started imports the main")
    assert ended.stderr.splitlines()[-1].endswith('under `if __name__ == "__main__":`')
    assert (folder / "runs").read_text() == "run run "


def test_a_process_that_works_is_not_waited_for_when_another_has_ended(two: pool.Pool) -> None:
    """It has a guard, or it would have ended before it worked."""
    two.begun.result(PATIENCE)
    quick(10, time.monotonic)(two.check_guard)()
    assert two.children[0].is_alive()


@pytest.mark.parametrize(
    ("program", "done"), [(REPLAYED, "1 rows\n"), (APPENDED, "0 accepted\n")], ids=["replay", "append"]
)
def test_a_program_with_a_guard_starts_processes(folder: Path, program: str, done: str) -> None:
    """Each imports the main module, and does not do what is guarded."""
    ended = run(folder, program.format(guard=GUARD))
    assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", done)
    assert len((folder / "runs").read_text().split()) > 1


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux is the command line forked")
@pytest.mark.parametrize("terminal", [False, True], ids=["alone", "beside a bar"])
def test_the_command_line_is_forked(folder: Path, terminal: bool) -> None:
    """All its processes are, before any is served; none imports the main module again."""
    ended = run(folder, FORKED.format(terminal=terminal))
    assert (ended.returncode, (folder / "runs").read_text()) == (0, "run "), ended.stderr
    assert ended.stdout.splitlines()[-1] == f"{pool.processors()} processes"


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux is the command line forked")
def test_a_process_is_forked_beside_threads_that_hold_nothing() -> None:
    """And not where no thread is known to hold nothing, as in programs other than the command line."""
    assert Command(program=ALONE).communicate(timeout=PATIENCE) == ("False True False True\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux is the command line forked")
def test_a_fork_that_ends_with_a_traceback_ends_while_its_parent_paints(tmp_path: Path) -> None:
    """A thread of the parent holds the locks of stdout and stderr as it forks; the child has no such thread."""
    ended = run(tmp_path, PAINTING)
    assert ended.stdout == "ForkProcess BrokenExecutor\n"
    assert ended.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"


@pytest.fixture
def two() -> Iterator[pool.Pool]:
    """Two processes at most."""
    started = pool.start(2, nothing, None)
    yield started
    started.close()


def test_tasks_are_done_by_as_many_processes_as_were_asked_for(two: pool.Pool) -> None:
    """Results and errors are those of each task; a process is started when there is a task for it."""
    assert two.submit(twice, 0).result() == 0
    assert len(two.children) == 1
    results = [two.submit(twice, number) for number in range(1, 9)]
    assert [result.result() for result in results] == [*range(2, 18, 2)]
    assert len(two.children) == 2
    with pytest.raises(Corrupt, match="found"):
        two.submit(damaged, 0).result()
    assert two.submit(twice, 4).result() == 8


def in_the_middle(two: pool.Pool) -> "Future[bytes]":
    """A task whose process is writing its result, or will in a moment."""
    large: Future[bytes] = two.submit(much, 0)
    two.begun.result()
    while not (large.running() or large.done()):
        time.sleep(0.001)
    return large


def test_a_process_that_is_killed_in_the_middle_of_a_result_ends_all_tasks(two: pool.Pool) -> None:
    """Nobody waits for the rest of it, nor for a task that no process is left to do."""
    large = in_the_middle(two)
    os.kill(two.begun.result(), signal.SIGKILL)
    with pytest.raises(BrokenExecutor):
        large.result(timeout=PATIENCE)
    with pytest.raises(BrokenExecutor):
        two.submit(twice, 1).result(timeout=PATIENCE)


def test_where_the_system_has_no_more_threads_no_process_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who wanted help does the work alone, as where there are no more processes."""

    def fails(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fails)
    with pytest.raises(OSError, match="no thread can be started"):
        pool.start(1, nothing, None)
    assert multiprocessing.active_children() == []


def test_a_pool_may_be_closed_in_a_thread_that_serves_a_process(two: pool.Pool) -> None:
    """The garbage collector may end there what uses the pool; it cannot wait for itself."""
    errors = list[object]()

    def close(_: object) -> None:
        try:
            two.close()
        except RuntimeError as error:
            errors.append(error)

    two.begun.result(PATIENCE)
    two.submit(much, 0).add_done_callback(close)
    for thread in two._threads:
        thread.join(PATIENCE)
    assert (errors, [child.is_alive() for child in two.children]) == ([], [False])


def test_processes_that_are_stopped_are_ended_too(two: pool.Pool) -> None:
    """Their tasks end with an error, and no process is left."""
    large = in_the_middle(two)
    os.kill(two.begun.result(), signal.SIGSTOP)
    two.close()
    with suppress(BrokenExecutor):  # it may have been complete
        large.result(timeout=PATIENCE)
    assert not any(child.is_alive() for child in two.children)


def test_interrupts_are_held_back_whichever_thread_the_system_gives_them_to() -> None:
    """If this thread blocks them, another takes them: the handler is called at the end."""
    handled: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: handled.append(number))
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()
    try:
        with pool.without_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            wait_until_signalled(os.getpid())
            time.sleep(0.05)
            assert handled == []
        assert handled == [signal.SIGINT]
    finally:
        stop.set()
        other.join()
        signal.signal(signal.SIGINT, before)
