"""A process on the command line is killed or stopped, has no room, finds a damaged or locked store, or meets others.

Each ends with the documented exit code and one line on stderr; nothing acknowledged is lost, nothing half done is
left. Moments are seeded, and chosen within the time that the same work takes undisturbed.
"""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from click.testing import Result

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.storing import database
from forecast_ledger.ledger.storing.sqlite_files import PAGE_SIZE
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.audit.verify import verify
from forecast_ledger.replay.cli.main import DAMAGED, FINDINGS, FINE, UNREADABLE, USAGE
from tests.projections.incremental.test_refresh import trading
from tests.replay.cli.test_main import run as invoked
from tests.replay.readmodel.test_runner import assert_up_to_date, record
from tests.support.effort import LONG, times
from tests.support.exports import FORMS, contents, exported, resealed
from tests.support.given import DAY, MARCH, contest, entry, forecast, opened
from tests.support.logs import commands_of, rows, written
from tests.support.menu import loaded
from tests.support.oracle import events_of
from tests.support.paths import DATA, ROOT
from tests.support.processes import Command, started
from tests.support.waiting import PATIENCE

Process = subprocess.Popen[str] | Command
Done = subprocess.CompletedProcess[str]
COMMAND = [sys.executable, "-c", "from forecast_ledger.__main__ import main; main()"]
HERE = os.environ | {"PYTHONPATH": str(ROOT)}
KILLED = -signal.SIGKILL
QUESTIONS = 20
FORECASTS = 3_000  # which take several transactions
NEW = b'{"id": "new", "type": "close_question", "at": "2022-01-01T00:00:00Z", "question": "nowhere"}\n'


STARTED: list[Process] = []


def start(*arguments: str | Path, command: Sequence[str] = COMMAND) -> Process:
    """Start the command line in a process of its own."""
    given = [*map(str, arguments)]
    process: Process
    if command is COMMAND:
        process = Command(*given)
    else:
        process = subprocess.Popen(
            [*command, *given], env=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    STARTED.append(process)
    return process


@pytest.fixture(autouse=True)
def none_outlives_its_test() -> Iterator[None]:
    """End all processes that the test started, whether it passed or failed."""
    yield
    for process in STARTED:
        if process.poll() is None:
            process.kill()
            process.communicate()
    STARTED.clear()


def ended(process: Process) -> Done:
    """Wait until a process has ended; return its exit code and output."""
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in stderr, stderr
    return subprocess.CompletedProcess([], process.returncode, stdout, stderr)


def run(*arguments: str | Path, command: Sequence[str] = COMMAND) -> Done:
    """Run a process from beginning to end."""
    return ended(start(*arguments, command=command))


def invoke(*arguments: str | Path, given: bytes = b"") -> Result:
    """Run the command line in this process, where there are many runs; a traceback would be its exception."""
    return invoked(*map(str, arguments), given=given)


def assert_ended_with(done: Done | Result, code: int, says: str) -> None:
    """Check the exit code, and that the reason is one line on stderr, the last."""
    ended_with = done.exit_code if isinstance(done, Result) else done.returncode
    assert ended_with == code, done.stderr
    lines = done.stderr.splitlines()
    assert re.search(says, lines[-1]), done.stderr
    assert sum(line.startswith("forecast-ledger: ") for line in lines) == 1, done.stderr


def until(there: Callable[[], object], process: Process) -> None:
    """Wait for a condition as long as a process lives."""
    deadline = time.monotonic() + PATIENCE
    while not there() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)


# --- a long file, which takes several transactions


class Work(NamedTuple):
    """Arguments of an append, the events of the log after it, and its duration in s."""

    arguments: list[str]
    events: list[tuple[Any, ...]]
    duration: float


def events(path: Path | str) -> list[tuple[Any, ...]]:
    """The events of a log without the instants of recording and the digests, which differ from run to run."""
    return [(each.position, each.command_id, each.command, each.event) for each in events_of(str(path))]


def founded() -> list[dict[str, Any]]:
    """Commands that open questions and a contest, as JSON objects."""
    at = "2026-03-01T00:00:00Z"
    span = {"kind": "binary", "opens_at": at, "closes_at": "2026-03-09T00:00:00Z"}
    names = [f"q{number}" for number in range(QUESTIONS)]
    return [
        *({"id": f"open {name}", "type": "open_question", "at": at, "question": name, **span} for name in names),
        {"id": "cup", "type": "open_contest", "at": at, "contest": "cup", "rules": "relative-2022-04", "pool": 100},
        *({"id": f"add {n}", "type": "add_question", "at": at, "contest": "cup", "question": n} for n in names),
    ]


def forecasts(first: int, end: int) -> list[dict[str, Any]]:
    """Forecasts of forty participants, as JSON objects."""
    return [
        {
            "id": f"forecast {number}",
            "type": "submit_forecast",
            "at": "2026-03-02T00:00:00Z",
            "question": f"q{number % QUESTIONS}",
            "participant": f"p{number // QUESTIONS % 40}",
            "probability": (number * 37 % 97 + 1) / 100,
        }
        for number in range(first, end)
    ]


def lines(path: Path, said: Sequence[dict[str, Any]]) -> Path:
    """Write a file of commands."""
    path.write_text("".join(json.dumps(each) + "\n" for each in said), encoding="utf-8")
    return path


MAP = """[[command]]
type = "submit_forecast"
id = "{id}"
[command.fields]
at = "{at}"
question = "{question}"
participant = "{participant}"
probability = "{probability}"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that several tests read: files of commands, and logs that were written undisturbed."""
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def founding(folder: Path) -> Path:
    """A file with the commands that open the questions."""
    return lines(folder / "founding.jsonl", founded())


def measured(folder: Path, *given: str) -> Work:
    """Append a file to a log with questions, undisturbed."""
    path = folder / f"undisturbed-{len(given)}.db"
    assert invoke("append", path, folder / "founding.jsonl").exit_code == FINE
    begun = time.monotonic()
    done = run("append", path, *given)
    duration = time.monotonic() - begun
    assert done.returncode == FINE, done.stderr
    return Work(list(given), events(path), duration)


@pytest.fixture(scope="module")
def lined(folder: Path, founding: Path) -> Work:
    """Forecasts as JSON lines."""
    return measured(folder, str(lines(folder / "forecasts.jsonl", forecasts(0, FORECASTS))))


@pytest.fixture(scope="module")
def mapped(folder: Path, founding: Path) -> Work:
    """The same forecasts as a CSV, with its map."""
    names = [name for name in forecasts(0, 1)[0] if name != "type"]
    cells = [",".join(str(each[name]) for name in names) for each in forecasts(0, FORECASTS)]
    (folder / "forecasts.csv").write_text("\n".join([",".join(names), *cells, ""]), encoding="utf-8")
    (folder / "map.toml").write_text(MAP, encoding="utf-8")
    return measured(folder, "--map", str(folder / "map.toml"), str(folder / "forecasts.csv"))


def acknowledged(stderr: str) -> int:
    """The last log position that `append -v` reported."""
    return max((int(each) for each in re.findall(r"event='batch handled'.* position=(\d+)", stderr)), default=0)


def assert_sound(path: Path, work: Work, at_least: int) -> None:
    """Check that a log verifies and is the beginning of the undisturbed one, at least up to a position."""
    verify(str(path))
    there = events(path)
    assert len(there) >= at_least
    assert there == work.events[: len(there)]


# --- killed


@pytest.mark.parametrize("form", ["lined", "mapped"])
def test_an_append_killed_at_any_moment_loses_nothing_and_doubles_nothing(
    tmp_path: Path, founding: Path, form: str, request: pytest.FixtureRequest
) -> None:
    """An append that is killed has recorded what it reported; sent again, the file leads to the undisturbed log."""
    work, random, log = request.getfixturevalue(form), Random(form), tmp_path / "log.db"
    assert invoke("append", log, founding).exit_code == FINE
    codes, duration = list[int](), work.duration
    while len(codes) < (3 if form == "lined" else 2) or KILLED not in codes:
        process = start("append", "-v", log, *work.arguments)
        time.sleep(duration * random.uniform(0.3, 1.0))
        process.kill()
        done = ended(process)
        codes.append(done.returncode)
        assert_sound(log, work, acknowledged(done.stderr))
        if done.returncode != KILLED:  # it was faster than when it was measured
            duration /= 2
    assert run("append", log, *work.arguments).returncode == FINE
    assert events(log) == work.events


def test_a_follower_killed_at_any_moment_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    """Followers are killed while another process writes the log; the last one makes the tables up to date."""
    recorded, random = trading(5), Random(5)
    log, tables = tmp_path / "log.db", tmp_path / "tables.db"
    cuts = sorted(random.sample(range(1, len(recorded)), 3))
    record(str(log), recorded[: cuts[0]])
    for first, end in zip(cuts, [*cuts[1:], len(recorded)], strict=True):
        follower = start("follow", log, tables)
        time.sleep(random.uniform(0.4, 0.9))
        record(str(log), recorded[first:end])
        time.sleep(random.uniform(0.0, 0.3))
        follower.kill()
        assert ended(follower).returncode == KILLED
    assert run("follow", log, tables, "--once").returncode == FINE
    assert_up_to_date(str(tables), recorded)


def test_a_second_follower_is_refused_as_long_as_the_first_lives(tmp_path: Path) -> None:
    """With --once, at once; readers do not wait, and a killed follower leaves no lock."""
    log, tables = tmp_path / "log.db", tmp_path / "tables.db"
    record(str(log), trading(5))
    follower = start("follow", log, tables)
    assert follower.stderr is not None
    assert "events" in follower.stderr.readline()  # of its first refresh
    assert_ended_with(
        run("follow", log, tables, "--once"), UNREADABLE, "another runner keeps this read model up to date"
    )
    assert run("follow", log, tables, "--check").returncode == FINE
    follower.kill()
    assert ended(follower).returncode == KILLED
    assert run("follow", log, tables, "--once").returncode == FINE


def test_a_ledger_that_is_waited_for_is_followed_from_its_first_event(tmp_path: Path) -> None:
    """Without --wait, a missing file or ledger is an error and nothing is made; with it, the follower waits."""
    log, tables = str(tmp_path / "log.db"), str(tmp_path / "tables.db")
    assert_ended_with(run("follow", log, tables, "--once"), UNREADABLE, "no such ledger")
    follower = start("follow", log, tables, "--name", "second", "--wait")
    with Ledger.open(log) as ledger:
        ledger.handle(opened(), "c1")
    assert_ended_with(run("follow", log, tables, "--name", "secnd"), UNREADABLE, "no ledger named 'secnd'; .*--wait")
    assert not Path(tables).exists()
    with Ledger.open(log, "second") as ledger:
        ledger.handle(opened(), "c1")
    assert follower.stderr is not None
    assert follower.stderr.readline().startswith("1 events, ")
    follower.send_signal(signal.SIGTERM)
    assert ended(follower).returncode == FINE


def test_a_follower_that_waits_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    """It ends with exit code 0 and leaves no file."""
    for seconds in (1, 2, 4, 8, 16):  # until it looks for the log, which takes longer on a busy machine
        follower = start("follow", tmp_path / "log.db", tmp_path / "tables.db", "--wait")
        time.sleep(seconds)
        follower.send_signal(signal.SIGINT)
        done = ended(follower)
        if done.returncode != 128 + signal.SIGINT:
            break
    assert (done.returncode, done.stderr, list(tmp_path.iterdir())) == (FINE, "stopped\n", [])


@pytest.fixture(scope="module")
def logs(folder: Path) -> tuple[str, str]:
    """A log, and the same log with later events."""
    said = [*commands_of("metaculus-2022"), *commands_of("arena-week")]
    more: list[AnyCommand] = [opened("late", id="late"), *(forecast("late", f"p{n}", id=f"f{n}") for n in range(500))]
    return written(folder / "earlier.db", said), written(folder / "later.db", [*said, *more])


def hidden(folder: Path) -> list[Path]:
    """The unfinished parts of an export."""
    return list(folder.glob(".*"))


def exporting(log: str, out: Path, form: str, *options: str) -> Process:
    """Start an export, and wait until it writes."""
    process = start("export", log, out, "--format", form, *options)
    until(lambda: hidden(out.parent), process)
    return process


@pytest.mark.parametrize("form", FORMS)
def test_an_export_killed_at_any_moment_leaves_the_old_one_or_a_whole_one(
    logs: tuple[str, str], tmp_path: Path, form: str
) -> None:
    """A new export is whole or absent, a replacement whole or the old one; the next export removes the remains."""
    earlier, later = logs
    out, random = tmp_path / "out" / "x", Random(form)
    for name, log in (("earlier", earlier), ("later", later)):
        (tmp_path / name).mkdir()
        exported(log, tmp_path / name / "x", form)
    out.parent.mkdir()
    states = [{}, *(contents(tmp_path / name) for name in ("earlier", "later"))]
    for log, options in ((earlier, ()), (later, ("--force",))):
        process = exporting(log, out, form, *options)
        time.sleep(random.uniform(0, 0.3))
        process.kill()
        ended(process)
        there = {name: content for name, content in contents(out.parent).items() if not name.startswith(".")}
        assert there in states
        assert invoke("export", log, out, "--format", form, "--force").exit_code == FINE
        assert hidden(out.parent) == []
        assert contents(out.parent) == states[1 + (log == later)]


def test_what_an_export_put_aside_as_it_was_killed_comes_back(logs: tuple[str, str], tmp_path: Path) -> None:
    """The kill comes after the old folder was renamed and before the new folder has its name."""
    out, part = tmp_path / "out", tmp_path / f".out.{'0' * 32}.part"
    exported(logs[0], out, "csv")
    before = contents(tmp_path)
    (part / "csv").mkdir(parents=True)
    out.rename(part / "old")
    assert_ended_with(
        run("export", logs[1], out, "--format", "csv"), USAGE, "exists already; --force replaces an export"
    )
    assert contents(tmp_path) == before


def test_an_export_that_is_running_keeps_what_it_writes(logs: tuple[str, str], tmp_path: Path) -> None:
    """A second export to the same path ends first and leaves the first one's parts alone; the first is then refused."""
    out = tmp_path / "out"
    process = exporting(logs[1], out, "csv")
    [part] = hidden(tmp_path)
    until(lambda: list(part.iterdir()), process)
    process.send_signal(signal.SIGSTOP)
    exported(logs[0], out, "csv")
    assert hidden(tmp_path) == [part]
    before = contents(out)
    process.send_signal(signal.SIGCONT)
    assert_ended_with(ended(process), USAGE, "exists already")
    assert (contents(out), hidden(tmp_path)) == (before, [])


def test_an_export_removes_nothing_but_what_exports_to_the_same_path_left(
    logs: tuple[str, str], tmp_path: Path
) -> None:
    """Files with similar names, and parts of exports to other paths, stay."""
    others = [".out.part", f".out.{'g' * 32}.part", f".xout.{'0' * 32}.part", f".out.x.{'0' * 32}.part", ".out"]
    for name in others:
        (tmp_path / name).mkdir()
    (tmp_path / f".out.{'1' * 32}.part").write_bytes(b"a file")
    (tmp_path / f".out.{'2' * 32}.part").symlink_to(tmp_path / ".out")
    before = sorted(hidden(tmp_path))
    (tmp_path / f".out.{'3' * 32}.part").mkdir()
    exported(logs[0], tmp_path / "out", "csv")
    assert sorted(hidden(tmp_path)) == before


# --- stopped by a signal

STOPS = [signal.SIGINT, signal.SIGTERM]


def stopped(begin: Callable[[], Process], number: signal.Signals) -> None:
    """Begin some work and send a signal; check that the process ends with 128 + its number and names it.

    Work that has been done before the signal is begun again: this process may have been held up.
    """
    for _ in range(5):
        process = begin()
        process.send_signal(number)
        done = ended(process)
        if done.returncode != FINE:
            break
    assert_ended_with(done, 128 + number, f"^forecast-ledger: stopped by {number.name}$")


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_ends_an_append_between_two_transactions(
    tmp_path: Path, founding: Path, lined: Work, number: signal.Signals
) -> None:
    """The transaction that the signal interrupts is recorded as a whole or not at all."""
    log = tmp_path / "log.db"

    def begin() -> Process:
        log.unlink(missing_ok=True)
        assert invoke("append", log, founding).exit_code == FINE
        process = start("append", log, *lined.arguments)
        until((tmp_path / "log.db-wal").exists, process)
        return process

    stopped(begin, number)
    assert_sound(log, lined, 1)
    assert len(events(log)) < len(lined.events)
    assert run("append", log, *lined.arguments).returncode == FINE
    assert events(log) == lined.events


@pytest.mark.parametrize("number", STOPS)
@pytest.mark.parametrize("form", ["csv", "sqlite"])
def test_a_signal_ends_an_export_without_a_trace(
    logs: tuple[str, str], tmp_path: Path, form: str, number: signal.Signals
) -> None:
    """Neither a part nor a complete export is left."""

    def begin() -> Process:
        for done in tmp_path.iterdir():
            done.unlink() if done.is_file() else shutil.rmtree(done)
        return exporting(logs[1], tmp_path / "out", form)

    stopped(begin, number)
    assert list(tmp_path.iterdir()) == []


def test_a_signal_ends_a_single_refresh_without_a_trace(tmp_path: Path, folder: Path, lined: Work) -> None:
    """The tables stay as they were: here there are none yet."""
    log, tables = folder / "undisturbed-1.db", tmp_path / "tables.db"

    def begin() -> Process:
        tables.unlink(missing_ok=True)
        process = start("follow", log, tables, "--once")
        until(tables.exists, process)
        return process

    stopped(begin, signal.SIGTERM)
    with closing(sqlite3.connect(tables)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_is_how_a_follower_is_meant_to_end(tmp_path: Path, number: signal.Signals) -> None:
    """A follower refreshes the tables after an append, and ends with exit code 0 on a signal."""
    log, tables = str(tmp_path / "log.db"), str(tmp_path / "tables.db")
    written(log, [opened(), contest(pool=100), entry(), forecast()])
    assert invoke("follow", log, tables, "--once").exit_code == FINE
    follower = start("follow", log, tables)
    with Ledger.open(log) as ledger:
        ledger.handle(forecast(participant="eve"), "eve")
    assert follower.stderr is not None
    first = follower.stderr.readline()
    follower.send_signal(number)
    done = ended(follower)
    assert (done.returncode, first.split(", ")[0], done.stderr.splitlines()[-1]) == (FINE, "1 events", "stopped")
    assert_up_to_date(tables, events_of(log))


# --- no room


class Disk(NamedTuple):
    """A folder with little room. command: the command line there; grow: makes enough room."""

    folder: Path
    command: list[str]
    says: str
    grow: Callable[[], object]


SMALL = 2**19  # bytes
LIMITED = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({SMALL}, {SMALL})); {COMMAND[-1]}"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A file system of half a megabyte, where one may be mounted; else no file may grow beyond that.

    They differ in what the system says, "no space" or "file too large", and SQLite knows only the first for what it is.
    """
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False, capture_output=True).returncode:
        limited = [*COMMAND[:-1], LIMITED]
        yield Disk(folder, limited, "disk I/O error|[Ff]ile too large", lambda: limited.__setitem__(-1, COMMAND[-1]))
        return
    grow = ["mount", "-o", "remount,size=1g", str(folder)]
    try:
        yield Disk(
            folder, COMMAND, "disk is full|No space left", lambda: subprocess.run(grow, check=True, timeout=PATIENCE)
        )
    finally:
        subprocess.run(["umount", str(folder)], check=True, timeout=PATIENCE)


def test_an_append_to_a_full_disk_can_be_sent_again(disk: Disk, founding: Path, lined: Work) -> None:
    """The events before the fault stay and can be read; with room again, the same file makes the log complete."""
    log = disk.folder / "log.db"
    assert run("append", log, founding, command=disk.command).returncode == FINE
    assert_ended_with(
        run("append", log, *lined.arguments, command=disk.command), UNREADABLE, f"log.db: .*({disk.says})"
    )
    assert_sound(log, lined, len(founded()))
    assert len(events(log)) < len(lined.events)
    disk.grow()
    assert run("append", log, *lined.arguments, command=disk.command).returncode == FINE
    assert events(log) == lined.events


def test_a_follower_on_a_full_disk_can_be_started_again(disk: Disk, folder: Path, lined: Work) -> None:
    """The full disk leaves no tables; with room again, the tables are those of the log."""
    log, tables = folder / "many.db", disk.folder / "tables.db"
    written(
        log, [opened(id="o"), *(forecast(participant=f"{number:0200}", id=f"f{number}") for number in range(4_000))]
    )
    follow = ("follow", log, tables, "--once", "--with", "standing")
    assert_ended_with(run(*follow, command=disk.command), UNREADABLE, f"tables.db: .*({disk.says})")
    disk.grow()
    assert run(*follow, command=disk.command).returncode == FINE
    assert_up_to_date(str(tables), events_of(str(log)))


@pytest.mark.parametrize("form", FORMS)
def test_an_export_to_a_full_disk_leaves_nothing(disk: Disk, folder: Path, lined: Work, form: str) -> None:
    """Neither a part of the export nor a file beside it is left."""
    out = disk.folder / "out"
    log = folder / "undisturbed-1.db"
    assert_ended_with(
        run("export", log, out, "--format", form, command=disk.command), UNREADABLE, f"/out: .*({disk.says})"
    )
    assert list(disk.folder.iterdir()) == []


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", [["table", "LOG", "scores"], ["log", "LOG"], ["show", "LOG", "1", "--raw"]])
def test_what_cannot_be_printed_is_said(logs: tuple[str, str], command: list[str]) -> None:
    """Output to a full disk is an error; if only messages go to a full disk, the command succeeds."""
    arguments = [logs[0] if each == "LOG" else each for each in command]
    done = with_full_disk(arguments, 1)
    assert_ended_with(done, UNREADABLE, "writing the output failed: No space left on device")
    done = with_full_disk(arguments, 2)
    assert (done.returncode, done.stdout != "") == (FINE, True)


def with_full_disk(arguments: list[str], stream: int) -> Done:
    """Run a command with stdout (1) or stderr (2) on a full disk; what it writes to the other."""
    reading, writing = os.pipe()
    full = os.open(FULL, os.O_WRONLY)
    process = started(arguments, [full, writing] if stream == 1 else [writing, full])
    with os.fdopen(reading, encoding="utf-8") as other:
        text = other.read()
    process.join(PATIENCE)
    assert process.exitcode is not None
    return Done(arguments, process.exitcode, *(("", text) if stream == 1 else (text, "")))


# --- nobody listens

CLOSED = """
import json, os, sys
import eventsourcing, jinja2, pyarrow.compute, pyarrow.parquet, rich.cells
from forecast_ledger.ledger.segments import sealing
from forecast_ledger.ledger.storing import kept_states, sqlite
from forecast_ledger.replay.audit import browse, compare, sampling, trails, verify
from forecast_ledger.replay.cli import append, demo, score
from forecast_ledger.replay.explain import blame, explain_boards, explain_intervals, numbers, what_if
from forecast_ledger.replay.files import export, restore, sqlite_export, table_rows
from forecast_ledger.replay.mapping import csv_mapping
from forecast_ledger.replay.pages import pack, report, working_paper
from forecast_ledger.replay.readmodel import runner
from forecast_ledger.replay.scoring import plan
from tests.support.menu import loaded
loaded()
from forecast_ledger.__main__ import main
nowhere = os.pipe()
os.close(nowhere[0])
for how, arguments in json.loads(sys.argv[1]):
    if not os.fork():
        if how == "pipe":
            os.dup2(nowhere[1], 1)
        else:
            os.closerange(0, 3)
            sys.stdin = sys.stdout = sys.stderr = None
        try:
            main(arguments)
        except SystemExit as end:
            sys.stdout.flush()  # as Python does when it ends, which takes longer than all the rest
            os._exit(end.code or 0)
    print(arguments[0], how, os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


FEW = ["--as-of", "1"] if LONG == 1 else []  # in a short run, a report without pictures, which take time to draw


def printing(log: str, folder: Path) -> list[list[str]]:
    """Each command once, with arguments that make it print."""
    commands = folder / "commands.jsonl"
    commands.write_bytes((DATA / "metaculus-2022" / "sealed.jsonl").read_bytes())
    claim = folder / "claim.csv"
    claim.write_text("contest,participant,rank\n", encoding="utf-8")
    forecasts = folder / "forecasts.csv"
    forecasts.write_text("question,user,p,outcome\nrain,ada,0.8,yes\n", encoding="utf-8")
    named = [
        ["append", log, str(commands), "--dry-run"],
        ["append", log, str(commands)],
        ["import-from", "hubverse", str(folder / "hub.db"), str(DATA / "hub-import")],
        ["pay", log, "plain"],
        ["leaderboard", log, "plain"],
        ["table", log, "standing"],
        ["columns"],
        ["replay", log],
        ["demo"],
        ["score", str(forecasts)],
        ["verify", log],
        ["checkpoint", log],
        ["audit", log, str(folder / "paper.md")],
        ["balance", log],
        ["ledgers", log],
        ["tie-out", log, "plain"],
        ["sample", log],
        ["pack", log, str(folder / "pack.zip")],
        ["log", log],
        ["compare", log, str(claim), "--table", "leaderboard", "--partial"],
        ["show", log, "1"],
        ["show", log, "1", "--raw"],
        ["explain", log, "prize", "plain", "A"],
        ["diff", log, "@33", "@34"],
        ["blame", log, "leaderboard", "plain", "A"],
        ["export", log, str(folder / "out"), "--format", "jsonl"],
        ["import", str(folder / "out"), str(folder / "copy.db")],
        ["seal", log, str(folder / "segments")],
        ["follow", log, str(folder / "tables.db"), "--once"],
        ["report", log, str(folder / "report.html"), *FEW],
        ["plot", log, "board", str(folder / "board.json"), "--contest", "plain"],
        ["what-if", log, str(commands), "--show", "standing"],
        ["help"],
        ["rules"],
        ["schema", "commands"],
        ["completion", "bash"],
    ]
    assert {name for name, *_ in named} == set(loaded())
    return named


def test_output_that_nobody_reads_is_no_fault(tmp_path: Path) -> None:
    """Every command succeeds silently in `forecast-ledger … | head -1` and with `>&- 2>&-`.

    In a short run, every third with the latter: the same code prints for all of them.
    """
    given = list[tuple[str, list[str]]]()
    for how in ("pipe", "closed"):
        (tmp_path / how).mkdir()
        log = written(tmp_path / how / "log.db", commands_of("metaculus-2022"))
        every = printing(log, tmp_path / how)
        given += [(how, arguments) for arguments in (every[1::3] if how == "closed" and LONG == 1 else every)]
    done = Command(json.dumps(given), program=CLOSED).ended(PATIENCE)
    wanted = [[name, how, "0"] for how, (name, *_) in given]
    assert [line.split() for line in done.stdout.splitlines()] == wanted, done.stderr
    assert "Exception" not in done.stderr
    assert "forecast-ledger: " not in done.stderr


def test_refusals_that_nobody_reads_do_not_end_an_append(tmp_path: Path) -> None:
    """In `forecast-ledger append … 2>&1 | head -1`, the commands after the refusals are recorded."""
    log, good = tmp_path / "log.db", (DATA / "metaculus-2022" / "commands.jsonl").read_bytes()
    (tmp_path / "file.jsonl").write_bytes(NEW * 11_000 + good)
    read_end, write_end = os.pipe()
    os.close(read_end)
    arguments = ["append", str(log), str(tmp_path / "file.jsonl")]
    process = started(arguments, [os.open(os.devnull, os.O_WRONLY), write_end])
    process.join(PATIENCE)
    assert (process.exitcode, len(events_of(str(log)))) == (FINDINGS, 34)


# --- damaged

READING = [
    ["verify", "LOG"],
    ["leaderboard", "LOG", "plain", "--format", "csv"],
    ["explain", "LOG", "prize", "plain", "A"],
    ["export", "LOG", "DIR/out", "--format", "jsonl", "--tables", "scores"],
    ["follow", "LOG", "DIR/tables.db", "--once"],
    ["append", "LOG", "DIR/again.jsonl"],
]


def answers(content: bytes, folder: Path) -> Iterator[tuple[str, Result]]:
    """The answer of each command to a store of this content; each gets a new copy in a folder with nothing else."""
    for command in READING:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "log.db").write_bytes(content)
        shutil.copy(DATA / "metaculus-2022" / "commands.jsonl", folder / "again.jsonl")
        arguments = [each.replace("LOG", str(folder / "log.db")).replace("DIR", str(folder)) for each in command]
        yield command[0], invoke(*arguments)
        if command[0] != "append":
            assert (folder / "log.db").read_bytes() == content


def said_of(result: Result) -> tuple[str, str]:
    """The output of a result without the lag of a follower."""
    return result.stdout, re.sub(r"lag .*", "", result.stderr)


def assert_told(content: bytes, folder: Path, sound: dict[str, tuple[str, str]]) -> Counter[int]:
    """Check that each command answers as for the sound store, locates the damage, or reports an unreadable store."""
    codes: Counter[int] = Counter()
    for name, result in answers(content, folder):
        codes[result.exit_code] += 1
        if result.exit_code == FINE:
            assert said_of(result) == sound[name]
        else:
            assert result.exit_code in {UNREADABLE, DAMAGED}, result.output
            place = "log position [0-9]+: " if result.exit_code == DAMAGED else r"log\.db: "
            assert re.match(f"forecast-ledger: .*{place}", result.stderr), result.stderr
            assert name == "verify" or len(result.stderr.splitlines()) == 1
            assert name == "verify" or result.stdout == ""
    return codes


@pytest.fixture(scope="module")
def stored(folder: Path) -> bytes:
    """An SQLite file with a story's log."""
    log = folder / "stored.db"
    written(log, [*commands_of("metaculus-2022"), *commands_of("arena-week")])
    assert not (folder / "stored.db-wal").exists()
    return log.read_bytes()


@pytest.fixture
def sound(stored: bytes, tmp_path: Path) -> dict[str, tuple[str, str]]:
    """The answer of each command to the undamaged store."""
    results = dict(answers(stored, tmp_path / "store"))
    assert {result.exit_code for result in results.values()} == {FINE}
    return {name: said_of(result) for name, result in results.items()}


def places(stored: bytes, random: Random) -> list[int]:
    """Bytes of the file's header, of its schema, of the heads of its pages, of its index, and of anything."""
    page = PAGE_SIZE
    structure = [*range(100), *range(page - 400, page), *range(2 * page, 3 * page)]
    structure += [start + place for start in range(0, len(stored), page) for place in range(12)]
    return [*random.sample(structure, times(96)), *random.sample(range(len(stored)), times(64))]


def test_a_bit_that_flips_in_a_store_never_changes_an_answer(
    stored: bytes, sound: dict[str, tuple[str, str]], tmp_path: Path
) -> None:
    """The answer stays the same, or the error names the log position or the file."""
    random, codes = Random(6), Counter[int]()
    for place in places(stored, random):
        flipped = bytearray(stored)
        flipped[place] ^= 1 << random.randrange(8)
        codes += assert_told(bytes(flipped), tmp_path / "store", sound)
    assert codes.keys() == {FINE, UNREADABLE, DAMAGED}


def test_a_store_cut_short_is_told_as_such(stored: bytes, sound: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    """A store cut at any byte is an error; it is never read as a shorter log."""
    random = Random(7)
    for length in random.sample(range(1, len(stored)), 8):
        assert assert_told(stored[:length], tmp_path / "store", sound)[FINE] == 0


@pytest.mark.parametrize("row", [1, 20, 100, 146])
def test_a_bit_that_flips_in_a_row_is_located(
    stored: bytes, sound: dict[str, tuple[str, str]], tmp_path: Path, row: int
) -> None:
    """A changed first, last or other row gives exit code 4 and its log position."""
    (tmp_path / "log.db").write_bytes(stored)
    state = rows(str(tmp_path / "log.db"))[row - 1]
    [start] = [match.start() for match in re.finditer(re.escape(state[:60]), stored)]
    flipped = bytearray(stored)
    flipped[start + Random(row).randrange(60)] ^= 1 << Random(row).randrange(7)
    for _, result in answers(bytes(flipped), tmp_path / "store"):
        assert (result.exit_code, f"log position {row}: " in result.stderr) == (DAMAGED, True), result.stderr


def test_an_index_that_has_lost_its_end_is_no_shorter_log(
    stored: bytes, sound: dict[str, tuple[str, str]], tmp_path: Path
) -> None:
    """SQLite does not detect an index with one entry less, which hides the last row; every command does."""
    (tmp_path / "log.db").write_bytes(stored)
    with closing(sqlite3.connect(tmp_path / "log.db")) as database:
        [page] = database.execute("SELECT rootpage FROM sqlite_master WHERE type = 'index'").fetchone()
    place = (page - 1) * PAGE_SIZE + 3  # two bytes: how many entries the page has
    count = int.from_bytes(stored[place : place + 2])
    assert count == 146
    short = stored[:place] + (count - 1).to_bytes(2) + stored[place + 2 :]
    for _, result in answers(short, tmp_path / "store"):
        assert (result.exit_code, "log position 146: " in result.stderr) == (DAMAGED, True), result.output


# --- written by a newer version

EVERY_READING = [
    ["verify", "LOG"],
    ["replay", "LOG"],
    ["replay", "LOG", "--compare", "LOG"],
    ["leaderboard", "LOG", "plain"],
    ["table", "LOG", "scores"],
    ["log", "LOG"],
    ["checkpoint", "LOG"],
    ["compare", "LOG", "DIR/claim.csv", "--table", "leaderboard"],
    ["explain", "LOG", "prize", "plain", "A"],
    ["diff", "LOG", "@1", "@34"],
    ["blame", "LOG", "leaderboard", "plain", "A"],
    ["export", "LOG", "DIR/out", "--format", "csv"],
    ["follow", "LOG", "DIR/tables.db", "--once"],
    ["what-if", "LOG", "DIR/again.jsonl", "--show", "scores"],
    ["pay", "LOG", "plain"],
    ["append", "LOG", "DIR/again.jsonl", "--dry-run"],
    ["append", "LOG", "DIR/again.jsonl"],
]
NEWER = {
    "an unknown type": b'"event":{"type":"forecast_imagined.v1",',
    "an unknown version of a type": b'"event":{"type":"contest_opened.v2",',
    "an unknown field of an event": b'"event":{"mood":"good","type":"contest_opened.v1",',
    "an unknown field of the envelope": b'"signature":"x","event":{"type":"contest_opened.v1",',
}


def every_reading(path: Path) -> Iterator[Result]:
    """The answer of each command that reads a log."""
    shutil.copy(DATA / "metaculus-2022" / "commands.jsonl", path.parent / "again.jsonl")
    (path.parent / "claim.csv").write_text("contest,participant,rank\n", encoding="utf-8")
    for command in EVERY_READING:
        given = [each.replace("LOG", str(path)).replace("DIR", str(path.parent)) for each in command]
        yield invoke(*given)


@pytest.mark.parametrize("newer", [*NEWER, "an unknown field of a rule set"])
def test_what_a_newer_version_wrote_is_not_read_as_something_else(tmp_path: Path, newer: str) -> None:
    """Although the digests are right: exit code 4, the log position, and a message that this version cannot read it."""
    path = tmp_path / "log.db"
    before = rows(written(path, commands_of("metaculus-2022")))
    old, new = b'"event":{"type":"contest_opened.v1",', NEWER.get(newer, b"")
    if not new:
        old, new = b'"rules":{', b'"rules":{"novelty":1,'
    position = next(number for number, row in enumerate(before, 1) if old in row)
    changed = resealed([row.replace(old, new) if number == position else row for number, row in enumerate(before, 1)])
    with closing(sqlite3.connect(path)) as database, database:
        for number, row in enumerate(changed, 1):
            database.execute("UPDATE stored_events SET state = ? WHERE originator_version = ?", [row, number])
    for result in every_reading(path):
        assert result.exit_code == DAMAGED, result.output
        assert re.search(f"log position {position}: .*this version cannot read the row", result.stderr)
    assert rows(str(path)) == changed
    assert {entry_path.name for entry_path in tmp_path.iterdir() if entry_path.is_dir()} == set()


def test_a_store_of_a_newer_form_is_not_read(tmp_path: Path) -> None:
    """If the table has other columns, the exit code is 3, the message names the table, and nothing is added."""
    path = tmp_path / "log.db"
    written(path, commands_of("metaculus-2022"))
    with closing(sqlite3.connect(path)) as database:
        database.execute("ALTER TABLE stored_events RENAME COLUMN state TO payload")
    for result in every_reading(path):
        assert_ended_with(result, UNREADABLE, "its table 'stored_events' has another definition than in this version")
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*) FROM stored_events").fetchone() == (34,)


# --- others at work


def test_a_locked_store_is_waited_for(logs: tuple[str, str], tmp_path: Path) -> None:
    """The holder releases the lock, and the command is recorded."""
    log = shutil.copy(logs[0], tmp_path / "log.db")
    with closing(sqlite3.connect(log, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        process = start("append", log, DATA / "metaculus-2022" / "sealed.jsonl")
        time.sleep(0.8)
        assert process.poll() is None
        holder.execute("ROLLBACK")
        assert ended(process).returncode == FINE


@pytest.mark.parametrize("readers", [False, True])
def test_a_store_that_stays_locked_is_told(
    logs: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readers: bool
) -> None:
    """A writer gets exit code 3 after the timeout and records nothing; readers are not locked out as a rule."""
    monkeypatch.setattr(database, "LOCK_TIMEOUT", 0.3)
    monkeypatch.setattr(Ledger, "open", partial(Ledger.open, turn=0.3))
    path = tmp_path / "log.db"
    shutil.copy(logs[0], path)
    before = rows(str(path))
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        if readers:
            holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        if readers:
            assert_ended_with(invoke("leaderboard", path, "plain"), UNREADABLE, r"log\.db: .*locked")
        else:
            assert invoke("leaderboard", path, "plain").exit_code == FINE
        assert_ended_with(
            invoke("append", path, DATA / "metaculus-2022" / "sealed.jsonl"), UNREADABLE, r"log\.db: .*locked"
        )
    assert rows(str(path)) == before


def test_two_may_append_the_same_file_at_once(tmp_path: Path, founding: Path, lined: Work) -> None:
    """Each command is accepted from one process and a duplicate for the other."""
    log = tmp_path / "log.db"
    assert invoke("append", log, founding).exit_code == FINE
    both = [start("append", log, *lined.arguments, "--format", "json") for _ in range(2)]
    done = [ended(process) for process in both]
    assert [each.returncode for each in done] == [FINE, FINE]
    counts = [json.loads(each.stdout)[0] for each in done]
    assert sum(each["accepted"] for each in counts) == sum(each["duplicate"] for each in counts) == FORECASTS
    assert {each["log_position"] for each in counts} == {len(lined.events)}
    assert events(log) == lined.events
    verify(str(log))


def test_two_may_append_different_files_at_once(tmp_path: Path, founding: Path) -> None:
    """Every command is recorded once, in the order of its file."""
    log = tmp_path / "log.db"
    assert invoke("append", log, founding).exit_code == FINE
    said = [forecasts(0, 2_000), forecasts(2_000, 4_000)]
    files = [lines(tmp_path / f"{number}.jsonl", each) for number, each in enumerate(said)]
    done = [ended(process) for process in [start("append", log, file) for file in files]]
    assert [each.returncode for each in done] == [FINE, FINE]
    verify(str(log))
    order = [command_id for _, command_id, *_ in events(log)]
    assert len(order) == len(founded()) + 4_000
    for each in said:
        ids = [line["id"] for line in each]
        assert [one for one in order if one in set(ids)] == ids


# --- a clock that jumps back


def test_a_clock_that_jumps_back_does_not_take_the_log_back(tmp_path: Path) -> None:
    """Appended events have the instant of the row before until the clock has caught up, also after a restart."""
    log, ahead = tmp_path / "log.db", MARCH + 100 * 365 * DAY
    with Ledger.open(log, clock=lambda: ahead) as ledger:
        ledger.handle(opened(), "from the future")
    for number in range(2):
        file = lines(tmp_path / "one.jsonl", [{**founded()[0], "id": f"c{number}", "question": f"q{number}"}])
        assert run("append", log, file).returncode == FINE
    assert [each.recorded_at for each in events_of(str(log))] == [ahead] * 3
    assert run("verify", log).returncode == FINE
