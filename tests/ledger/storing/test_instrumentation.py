"""Tests of the library's log records, and that it does not interfere with the program that embeds it."""

import asyncio
import json
import logging
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from threading import Barrier, Event
from typing import Any

import pytest
import structlog
from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.storing.async_ledger import AsyncLedger
from forecast_ledger.ledger.storing.instrumentation import Metric
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.cli.main import FINE
from forecast_ledger.replay.reading.replay import replay
from forecast_ledger.replay.writing.store import Store
from tests.replay.cli.test_main import COMMANDS, run
from tests.support.given import NOW, forecast, opened
from tests.support.paths import ROOT
from tests.support.processes import Command
from tests.support.waiting import PATIENCE
from tests.system.test_architecture import NAMES


@pytest.fixture
def lines() -> Iterator[list[dict[str, Any]]]:
    """Return the records logged from now on, each as its fields."""
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.DEBUG)
    records: list[dict[str, Any]] = []
    plain = {*vars(logging.makeLogRecord({})), "message"}

    class Collector(logging.Handler):
        """A log handler that keeps the fields of each record."""

        def emit(self, record: logging.LogRecord) -> None:
            fields = {name: value for name, value in vars(record).items() if name not in plain}
            records.append({"event": record.getMessage(), "level": record.levelname, "logger": record.name, **fields})

    handler = Collector()
    logging.getLogger().addHandler(handler)
    yield records
    logging.getLogger().removeHandler(handler)
    logging.getLogger().setLevel(level)
    structlog.contextvars.clear_contextvars()


def test_a_command_is_logged_with_its_log_position_and_duration(lines: list[dict[str, Any]]) -> None:
    """An accepted, duplicate or refused command is logged with its outcome; a refused one also with its code."""
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle(opened(), "c1")
        ledger.handle(opened(), "c1")
        with pytest.raises(Refused):
            ledger.handle(forecast("snow"), "c2")
    durations = [line.pop("duration_us") for line in lines]
    assert all(type(duration) is int and duration > 0 for duration in durations)
    common = {
        "event": "command handled",
        "level": "DEBUG",
        "logger": "forecast_ledger.ledger.storing.writer",
        "ledger": "main",
        "position": 1,
    }
    recorded = common | {"type": "open_question", "command_id": "c1", "first": 1, "last": 1}
    assert lines == [
        recorded | {"outcome": "accepted"},
        recorded | {"outcome": "duplicate"},
        common | {"type": "submit_forecast", "outcome": "refused", "code": "unknown_question"},
    ]


def test_a_batch_is_one_line(lines: list[dict[str, Any]]) -> None:
    """A batch is logged in one record, however many commands and events it has."""
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        commands: list[AnyCommand] = [opened(), opened("snow"), forecast(), forecast("hail")]
        ledger.handle_many([structs.replace(command, id=f"c{number}") for number, command in enumerate(commands)])
    [line] = lines
    assert line.pop("duration_us") > 0
    assert line == {
        "event": "batch handled",
        "level": "INFO",
        "logger": "forecast_ledger.ledger.storing.writer",
        "ledger": "main",
        "position": 3,
        "accepted": 3,
        "duplicate": 0,
        "refused": 1,
    }


def test_a_replay_is_logged_with_its_checkpoint(lines: list[dict[str, Any]], tmp_path: Path) -> None:
    """A replay is logged with the log position and digest of the checkpoint that its numbers are for."""
    log = str(tmp_path / "log.db")
    assert run("append", log, str(COMMANDS)).exit_code == FINE
    del lines[:]
    head = replay(log).checkpoint
    [line] = lines
    assert (line["event"], line["position"], line["digest"]) == ("replayed", 34, head.digest)
    assert line["duration_us"] > 0


def test_fields_bound_to_the_context_are_in_the_records(lines: list[dict[str, Any]]) -> None:
    """Bound fields such as a request id are added; the record's own fields stay, and names that logging reserves do no
    harm.
    """
    bound = {"request": "r1", "name": "n", "message": "m", "args": (1,), "position": "elsewhere", "exc_info": "e"}
    with structlog.contextvars.bound_contextvars(**bound), Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle(opened(), "c1")
    [line] = lines
    assert (line["request"], line["position"]) == ("r1", 1)
    assert [line[f"context_{name}"] for name in ("name", "message", "args", "exc_info")] == ["n", "m", (1,), "e"]


def test_commands_decided_together_are_logged_each_with_the_context_of_its_caller(lines: list[dict[str, Any]]) -> None:
    """Threads and tasks: one of them decides and commits for all, and each has the line of its own request."""

    def in_thread(number: int) -> None:
        barrier.wait()
        with structlog.contextvars.bound_contextvars(request=f"thread {number}"):
            ledger.handle(forecast(participant=f"p{number}"), f"thread {number}")

    async def in_task(shared: AsyncLedger, number: int) -> None:
        with structlog.contextvars.bound_contextvars(request=f"task {number}"):
            await shared.handle(forecast(participant=f"q{number}"), f"task {number}")

    async def in_tasks() -> None:
        shared = AsyncLedger(ledger)
        await asyncio.gather(*(in_task(shared, number) for number in range(8)))

    barrier = Barrier(8)
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger, ThreadPoolExecutor(8) as pool:
        ledger.handle(opened(), "c1")
        del lines[:]
        list(pool.map(in_thread, range(8)))
        asyncio.run(in_tasks())
    lines = [line for line in lines if line["event"] == "command handled"]  # asyncio logs, too
    expected = [f"{kind} {number}" for kind in ("task", "thread") for number in range(8)]
    assert sorted(line["request"] for line in lines) == expected
    assert all(line["request"] == line["command_id"] for line in lines)


def test_a_program_gets_numbers_of_every_command_batch_and_turn() -> None:
    """A latency for each outcome, refusals by their code, and the wait for a turn while another writer has it."""
    metrics: list[Metric] = []
    with Store.open(":memory:", clock=lambda: NOW, on_metric=metrics.append) as store:
        ledger = store.ledger("north")
        ledger.handle(opened(), "c1")
        ledger.handle(opened(), "c1")
        with pytest.raises(Refused):
            ledger.handle(forecast("snow"), "c2")
        assert all(0 < each.value < 60 and each.ledger == "north" for each in metrics)
        assert [(each.name, each.type, each.outcome) for each in metrics] == [
            ("turn_seconds", "", ""),
            ("command_seconds", "open_question", "accepted"),
            ("command_seconds", "open_question", "duplicate"),  # which waits for no turn
            ("turn_seconds", "", ""),
            ("command_seconds", "submit_forecast", "unknown_question"),
        ]
        del metrics[:]
        batch: list[AnyCommand] = [opened("snow"), forecast(), forecast("hail")]
        ledger.handle_many([structs.replace(command, id=f"d{number}") for number, command in enumerate(batch)])
        assert [(each.name, each.outcome) for each in metrics] == [
            ("turn_seconds", ""), ("batch_seconds", ""), ("batch_commands", "accepted"),
            ("batch_commands", "unknown_question"),
        ]  # fmt: skip
        assert [each.value for each in metrics[2:]] == [2, 1]


def test_the_wait_for_a_turn_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process has it for a while."""
    metrics, waits, sleep = list[Metric](), Event(), time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: waits.set() or sleep(seconds))  # type: ignore[func-returns-value]
    with Store.open(tmp_path / "log.db", on_metric=metrics.append) as store, ThreadPoolExecutor(1) as pool:
        ledger = store.ledger()
        ledger.handle(opened(), "c1")
        with closing(sqlite3.connect(tmp_path / "log.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            sent = time.monotonic()
            waiting = pool.submit(ledger.handle, forecast(), "c2")
            assert waits.wait(PATIENCE)
            begun = time.monotonic()
            sleep(0.2)
            least = time.monotonic() - begun
            other.execute("ROLLBACK")
        waiting.result()
        most = time.monotonic() - sent
    turn, command = metrics[-2:]
    assert (turn.name, command.name) == ("turn_seconds", "command_seconds")
    assert least < turn.value <= command.value < most


def test_nothing_is_logged_unless_logging_is_configured(capfd: pytest.CaptureFixture[str]) -> None:
    """In a program that does not configure logging, no command is logged."""
    script = "from forecast_ledger.ledger.storing.writer import Ledger; from tests.support.given import opened\n"
    script += "with Ledger.open(':memory:') as ledger: ledger.handle(opened(), 'c1')"
    done = Command(program=script).ended(PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert capfd.readouterr() == ("", "")


def test_the_command_line_shows_the_lines_with_their_fields(tmp_path: Path) -> None:
    """With --verbose, the command line prints the records with their fields on stderr."""
    done = Command("append", "-v", str(tmp_path / "log.db"), str(COMMANDS)).ended(PATIENCE)
    assert done.returncode == 0
    assert "event='batch handled'" in done.stderr
    assert "position=34" in done.stderr
    assert "batch handled" not in done.stdout


GUARDED = """
import importlib, json, logging, sys, threading, warnings
import structlog, numpy, msgspec, click, rich, sqlite_utils, eventsourcing.sqlite, eventsourcing.postgres
found = []
def hook(event, arguments):
    if event == "open":
        path, mode, flags = (*arguments, None, None)[:3]
        if not str(path).endswith((".py", ".pyc", ".so", ".pyd")) or flags & 3:
            found.append(f"opens {path}")
    elif event.startswith(("socket.", "subprocess.", "sqlite3.", "os.system", "os.exec", "os.fork", "os.mkdir")):
        found.append(event)
start = threading.Thread.start
def started(thread):
    found.append(f"starts {thread}")
    start(thread)
threading.Thread.start = started
def configuration():
    root, config = logging.getLogger(), structlog.get_config()
    handlers = {name: list(getattr(each, "handlers", [])) for name, each in logging.root.manager.loggerDict.items()}
    own = {name for name, each in handlers.items() if each and name.split(".")[0] == "forecast_ledger"}
    return list(root.handlers), root.level, structlog.is_configured(), repr(config["processors"]), sorted(own)
sys.dont_write_bytecode = True
sys.addaudithook(hook)
for names in sys.argv[1:]:
    before, filters, threads = configuration(), list(warnings.filters), threading.active_count()
    for name in names.split():
        importlib.import_module(name)
    after = configuration()
    if before != after:
        found.append("configures logging")
    if threads != threading.active_count():
        found.append("leaves a thread")
    if filters != warnings.filters:
        found.append("changes the filters of warnings")
    print(json.dumps(found))
    found.clear()
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """What the guards found while a process imported all modules, and then one that does all that they forbid."""
    folder = tmp_path_factory.mktemp("culprit")
    (folder / "culprit.py").write_text(
        "import logging, sqlite3, threading, warnings, structlog\n"
        f"open({str(folder / 'culprit.txt')!r}, 'w').close()\n"
        "sqlite3.connect(':memory:').close()\n"
        "logging.basicConfig()\n"
        "warnings.simplefilter('ignore')\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n",
        encoding="utf-8",
    )
    names = " ".join(["forecast_ledger", *(f"forecast_ledger.{name}" for name in sorted(NAMES))])
    call = [sys.executable, "-c", f"import sys; sys.path.append({str(folder)!r})" + GUARDED, names, "culprit"]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, check=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_no_module_does_anything_when_it_is_imported(found: list[list[str]]) -> None:
    """An import opens no file or connection, starts no thread or process, and changes no logging or warnings."""
    assert found[0] == []


def test_the_guards_see_what_they_guard_against(found: list[list[str]]) -> None:
    """The guards detect a module that does all that they forbid."""
    for what in ("opens ", "culprit.txt", "sqlite3.", "configures logging", "starts", "leaves a thread", "filters"):
        assert what in " ".join(found[1])


@pytest.mark.parametrize("statement", ["import forecast_ledger", "from forecast_ledger import Ledger"])
def test_the_front_door_opens_quickly(statement: str) -> None:
    """The import takes at most 150 ms of processor time, which others do not affect, in the best of several runs."""

    def took(code: str) -> float:
        begun = getrusage(RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
        ended = getrusage(RUSAGE_CHILDREN)
        return ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime

    empty = min(took("pass") for _ in range(2))
    assert any(took(statement) - empty < 0.150 * 4 for _ in range(5))  # some machines are slow


def test_the_front_door_imports_nothing_heavy() -> None:
    """Modules that read stores, compute tables or format lines are imported when they are first used."""
    heavy = "{'numpy', 'eventsourcing', 'sqlite_utils', 'structlog', 'rich', 'click', 'asyncio'}"
    script = f"import sys, ledger; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "set()"
