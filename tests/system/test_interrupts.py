"""One interrupt ends every long command within two seconds, in whatever state its helper processes are."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.audit.verify import verify
from forecast_ledger.replay.cli.main import FINE
from tests.replay.cli.test_main import run as invoked
from tests.support.effort import LONG
from tests.support.paths import ROOT
from tests.support.processes import Command
from tests.support.waiting import PATIENCE, is_so_within, wait_until_asleep, wait_until_signalled

Process = subprocess.Popen[str] | Command
COMMAND = [sys.executable, "-m", "forecast_ledger"]
SECONDS = 2.0  # in which a command ends
SLOWER = 2.0  # s more for a machine that has many other tests to run
INTERRUPTED = {
    128 + signal.SIGINT,
    -signal.SIGINT,
}  # Python may send itself the signal in the end; for a shell both are 130
STARTING = ("Fatal Python error: init_", "Could not import runpy module")  # no line of ours has run yet
LATEST = 1.0 if LONG == 1 else 2.5  # s after its start at which a command is interrupted; most take less than one
MOMENTS = 12 if LONG == 1 else 20 * min(LONG, 25)  # one for every second command; 500 in a long run
QUESTIONS, FORECASTS = 20, 30_000
MADE = "2026-03-02T00:00:00Z"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of commands and its log; for commands of a long run, the same log in segments, and exported."""
    path = tmp_path_factory.mktemp("interrupted")
    span = f'"at": "{MADE}", "kind": "binary", "opens_at": "{MADE}", "closes_at": "2026-03-09T00:00:00Z"'
    lines = [f'{{"id": "cup", "type": "open_contest", "at": "{MADE}", "contest": "cup", "rules": "peer-2024-03"}}']
    for number in range(QUESTIONS):
        name = f'"at": "{MADE}", "question": "q{number}"'
        lines.append(f'{{"id": "o{number}", "type": "open_question", "question": "q{number}", {span}}}')
        lines.append(f'{{"id": "a{number}", "type": "add_question", {name}, "contest": "cup"}}')
    lines += [
        f'{{"id": "f{number}", "type": "submit_forecast", "at": "{MADE}", "question": "q{number % QUESTIONS}", '
        f'"participant": "p{number % 211}", "probability": 0.{number % 899 + 100}}}'
        for number in range(FORECASTS)
    ]
    (path / "lines.jsonl").write_text("\n".join(lines))
    made: list[tuple[str | Path, ...]] = [("append", path / "log.db", path / "lines.jsonl")]
    if LONG > 1:
        made += [
            ("seal", path / "log.db", path / "segments"),
            ("export", path / "log.db", path / "exported", "--format", "csv"),
        ]
    for arguments in made:
        assert invoked(*map(str, arguments)).exit_code == FINE
    return path


@pytest.fixture
def started() -> Iterator[list["subprocess.Popen[str]"]]:
    """Processes that a test starts, each in a group of its own; none outlives the test."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        for number in (signal.SIGKILL, signal.SIGCONT):
            if is_there(process.pid):
                os.killpg(process.pid, number)
        process.communicate()


def start(command: list[str], processes: list["subprocess.Popen[str]"], folder: Path = ROOT) -> "subprocess.Popen[str]":
    """Start a program in a folder and in a group of processes of its own, as a terminal does."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=folder
    )
    processes.append(process)
    return process


def is_there(group: int) -> bool:
    """Whether a process of a group lives."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def in_time(is_so: Callable[[Process], bool], process: Process) -> bool:
    """Whether something comes true of a process as soon as a command has to end."""
    return is_so_within(SECONDS + SLOWER, lambda: is_so(process))


# Each reads and writes in the folder FOLDER of this test; LOG is new.
LINES = {
    "append": "append LOG lines.jsonl",
    "append to segments": "append LOG/ lines.jsonl",
    "verify": "verify log.db",
    "verify segments": "verify segments",
    "replay": "replay log.db",
    "replay in processes": "replay segments --engine processes",
    "leaderboard": "leaderboard log.db cup",
    "export": "export log.db LOG --format csv",
    "seal": "seal log.db LOG",
    "import": "import exported LOG",
    "follow": "follow log.db LOG",
    "what-if": "what-if log.db --rules baseline --contest cup --show leaderboard",
}


@pytest.mark.parametrize("name", LINES if LONG > 1 else [*LINES][::2])
def test_one_interrupt_ends_a_command_within_two_seconds(
    name: str, folder: Path, tmp_path: Path, started: list["subprocess.Popen[str]"]
) -> None:
    """At random moments, sent to the process alone or to its group, as Ctrl-C in a terminal does."""
    random = Random(f"{name} {LONG}")
    for number in range((MOMENTS + len(LINES) - 1) // len(LINES)):
        log = tmp_path / f"{number}"
        given = [
            str(folder / word) if (folder / word).exists() else word.replace("LOG", str(log))
            for word in LINES[name].split()
        ]
        if given[1].endswith("/"):
            log.mkdir()
        process = start([*COMMAND, *given], started)
        time.sleep(random.uniform(0.05, LATEST))
        is_group = random.random() < 0.5
        if process.poll() is None:
            (os.killpg if is_group else os.kill)(process.pid, signal.SIGINT)
        is_in_time = in_time(lambda process: process.poll() is not None, process)
        _, stderr = process.communicate(timeout=PATIENCE)
        assert is_in_time, (number, stderr)
        assert process.returncode in {FINE, *INTERRUPTED} or stderr.startswith(STARTING), (number, stderr)
        assert "in run\n" not in stderr, (number, stderr)  # a traceback only while Python starts
        # A helper process ends as soon as it sees that its parent is gone.
        assert in_time(lambda process: not is_there(process.pid), process), number
        if name == "append" and log.exists():
            verify(str(log))
        shutil.rmtree(log, ignore_errors=True)


STUCK = """
import os, signal, sqlite3, sys
from pathlib import Path
from forecast_ledger.replay.cli import signals
from forecast_ledger.replay.cli.signals import end_in_time
from forecast_ledger.replay.files.manifest import scratch_folder
if __name__ == "__main__":
    os.chdir(sys.argv[1])
    signals._GRACE *= int(sys.argv[2])
    end_in_time()
    scratch = scratch_folder(Path("out"))
    folder = scratch.__enter__()
    (folder / "half.csv").touch()
    one, other = (sqlite3.connect(folder / "locked.db", timeout=6_000) for _ in range(2))
    one.execute("BEGIN EXCLUSIVE")
    print("begun", flush=True)
    other.execute("BEGIN EXCLUSIVE")  # SQLite waits for the lock
"""


@pytest.mark.parametrize("signals", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_that_is_inside_a_library_ends_too(number: signal.Signals, signals: int, tmp_path: Path) -> None:
    """Python calls no handler there: the process is ended after 1.5 s, or at the second signal, and nothing half done
    is left.
    """
    program = STUCK if number is signal.SIGINT else STUCK.replace("end_in_time()\n", HANDLED)
    process = Command(
        str(tmp_path), "1" if signals == 1 else "400", program=program
    )  # ten minutes, so as to tell them apart
    assert process.stdout.readline() == "begun\n"
    assert len(list(tmp_path.glob(".out.*.part/half.csv"))) == 1
    wait_until_asleep(process.pid)
    begun = time.monotonic()
    for _ in range(signals):
        wait_until_signalled(process.pid)  # of two that wait, the system would make one
        process.send_signal(number)
    is_in_time = in_time(lambda process: process.poll() is not None, process)
    took = time.monotonic() - begun
    _, stderr = process.communicate(timeout=PATIENCE)
    assert (process.returncode, stderr) == (128 + number, f"forecast-ledger: stopped by {number.name}\n")
    assert is_in_time
    assert signals == 2 or took >= 1.5
    assert list(tmp_path.iterdir()) == []


HANDLED = "end_in_time()\n    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"  # as a command handles it


def test_a_process_that_ignores_interrupts_goes_on(folder: Path, started: list["subprocess.Popen[str]"]) -> None:
    """A script's background job is started so; it does its work to the end."""
    shell = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *COMMAND, "verify", str(folder / "log.db"), "--quiet"]
    process = start(shell, started)
    for _ in range(20):
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
    assert process.wait(timeout=PATIENCE) == FINE


def test_a_log_whose_append_was_interrupted_is_completed_by_another(folder: Path, tmp_path: Path) -> None:
    """What was recorded counts as duplicate, and the rows are those of an append that nobody interrupted."""
    process = subprocess.Popen(
        [*COMMAND, "append", str(tmp_path / "log.db"), str(folder / "lines.jsonl")], stdout=subprocess.DEVNULL
    )
    while not (tmp_path / "log.db-wal").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=PATIENCE) in {FINE, *INTERRUPTED}
    assert invoked("append", str(tmp_path / "log.db"), str(folder / "lines.jsonl")).exit_code == FINE
    with Ledger.open(tmp_path / "log.db") as one, Ledger.open(folder / "log.db") as other:
        events = [[row.event for rows in ledger.read() for row in rows] for ledger in (one, other)]
    assert events[0] == events[1]
