"""The guide to operating a service: its files run as they are."""

import os
import re
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from runpy import run_path
from threading import Event
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace

from forecast_ledger.ledger.core.errors import Refused, Unavailable
from forecast_ledger.ledger.storing.instrumentation import Metric
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.replay.audit.verify import verify
from forecast_ledger.replay.reading.replay import replay
from forecast_ledger.replay.readmodel.runner import Runner
from forecast_ledger.replay.writing.store import Store
from tests.support.given import forecast, opened, won
from tests.support.page_runner import blocks
from tests.support.paths import ROOT
from tests.support.servers import BASE_BACKUP, PG_CTL, postgres, standby
from tests.support.waiting import wait_until

PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
needs_server = pytest.mark.skipif(not PG_CTL, reason="needs a PostgreSQL server's pg_ctl, which is not installed here")


def saved(folder: Path, name: str) -> dict[str, Any]:
    """What a file of the page defines."""
    [text] = [block.text for block in blocks(PAGE) if block.name == name]
    (folder / name).write_text(text, encoding="utf-8")
    return run_path(str(folder / name))


def measured(on_metric: Callable[[Metric], None]) -> None:
    """Report a command that is accepted, one that is refused, a batch of three, and a lag."""
    with Store.open(":memory:", on_metric=on_metric) as store:
        ledger = store.ledger("north")
        ledger.handle(opened(), "c1")
        with pytest.raises(Refused):
            ledger.handle(forecast("snow"), "c2")
        ledger.handle_many([opened(f"q{number}", id=f"q{number}") for number in range(3)])
    on_metric(Metric("lag_positions", 7, "north"))
    on_metric(Metric("lag_seconds", 1.5, "north"))


def test_the_hook_for_prometheus_counts_what_happens(tmp_path: Path) -> None:
    """As a scrape shows it."""
    library = pytest.importorskip("prometheus_client")
    measured(saved(tmp_path, "prometheus_hook.py")["on_metric"])
    lines = library.generate_latest().decode().splitlines()
    assert {line for line in lines if line.startswith("ledger_") and "_count" in line} == {
        'ledger_command_seconds_count{outcome="accepted",type="open_question"} 1.0',
        'ledger_command_seconds_count{outcome="unknown_question",type="submit_forecast"} 1.0',
        "ledger_batch_seconds_count 1.0",
        "ledger_turn_seconds_count 3.0",
    }
    for line in (
        'ledger_batch_commands_total{outcome="accepted"} 3.0',
        'ledger_lag_positions{ledger="north"} 7.0',
        'ledger_lag_seconds{ledger="north"} 1.5',
    ):
        assert line in lines


def test_the_hook_for_opentelemetry_counts_what_happens(tmp_path: Path) -> None:
    """As a reader of its SDK collects it."""
    api, sdk = pytest.importorskip("opentelemetry.metrics"), pytest.importorskip("opentelemetry.sdk.metrics")
    reader = pytest.importorskip("opentelemetry.sdk.metrics.export").InMemoryMetricReader()
    api.set_meter_provider(sdk.MeterProvider([reader]))
    measured(saved(tmp_path, "opentelemetry_hook.py")["on_metric"])
    [resource] = reader.get_metrics_data().resource_metrics
    points = {
        (metric.name, point.attributes.get("type"), point.attributes.get("outcome")): point
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    }
    assert {key: point.count for key, point in points.items() if hasattr(point, "count")} == {
        ("ledger.command_seconds", "open_question", "accepted"): 1,
        ("ledger.command_seconds", "submit_forecast", "unknown_question"): 1,
        ("ledger.batch_seconds", None, None): 1,
        ("ledger.turn_seconds", None, None): 3,
        ("ledger.lag_positions", None, None): 1,
        ("ledger.lag_seconds", None, None): 1,
    }
    assert points["ledger.batch_commands", None, "accepted"].value == 3
    assert points["ledger.lag_positions", None, None].sum == 7


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server with a ledger and the roles of the page."""
    [roles] = [block.text for block in blocks(PAGE) if block.name == "roles.sql"]
    with postgres() as url:
        with Store.open(url) as store:
            store.ledger("north").handle(opened(), "c1")
        execute(url, roles)
        yield url


def execute(url: str, statement: str) -> None:
    """Execute SQL, and commit."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def as_role(url: str, role: str) -> str:
    """The URL for another role."""
    return url.replace("//ledger@", f"//{role}@")


@needs_server
def test_roles_can_do_their_work(server: str, tmp_path: Path) -> None:
    """Workers record, readers verify and keep boards in files, and those of boards keep them in their schema."""
    with Store.open(as_role(server, "ledger_writer")) as store:
        ledger = store.ledger("north")
        assert [ledger.handle(forecast(), "c2").last, ledger.handle(opened(), "c1").last] == [2, 1]
        assert store.ledger("south").handle(opened(), "c1").last == 1
    reader, boards = as_role(server, "ledger_reader"), as_role(server, "ledger_boards")
    assert verify(reader, "north").position == 2
    for url, model in ((reader, str(tmp_path / "tables.db")), (boards, f"{boards}?schema=boards")):
        with Runner(url, model, "north") as runner:
            assert runner.refresh().events == 2


@needs_server
@pytest.mark.parametrize("role", ["ledger_writer", "ledger_reader", "ledger_boards"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE stored_events SET topic = ''",
        "DELETE FROM stored_events",
        "TRUNCATE stored_events",
        "DROP TABLE stored_events",
        "ALTER TABLE stored_events DISABLE TRIGGER ALL",
        "CREATE TABLE public.other (i int)",
    ],
)
def test_no_role_can_change_what_is_recorded(server: str, role: str, statement: str) -> None:
    """Nor the table, and none makes another one beside it."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        execute(as_role(server, role), statement)


@needs_server
@pytest.mark.parametrize("role", ["ledger_reader", "ledger_boards"])
def test_who_only_reads_records_nothing(server: str, role: str) -> None:
    """A command is refused by the database."""
    with Store.open(as_role(server, role)) as store, pytest.raises(Unavailable, match="permission denied"):
        store.ledger("north").handle(opened("snow"), "c9")


@needs_server
def test_a_dump_is_restored_to_the_same_log(server: str, tmp_path: Path) -> None:
    """By the commands of the page: the head is the same, a retry is one, and the next command follows."""
    commands = re.findall(r"(?m)^    (pg_\w+ .*)$", PAGE)
    assert len(commands) == 2
    execute(server, "CREATE DATABASE restored")
    restored = server.removesuffix("postgres") + "restored"
    environment = os.environ | {"LEDGERS": server, "RESTORED": restored}
    for command in commands:
        subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, check=True)
    assert verify(restored, "north") == verify(server, "north")
    with Store.open(restored) as store:
        ledger = store.ledger("north")
        head = ledger.head().position
        assert ledger.handle(opened(), "c1").duplicate
        assert ledger.handle(opened("restored"), "c8").first == head + 1


@pytest.mark.skipif(not (PG_CTL and BASE_BACKUP), reason="needs PostgreSQL's pg_ctl and pg_basebackup")
def test_a_standby_is_read_and_decides_nothing(server: str, tmp_path: Path) -> None:
    """It verifies, and a runner follows it; a command that its log, which may lag behind, refuses is not refused."""
    with Store.open(server) as store, ExitStack() as stack:
        copied = store.ledger("copied")
        copied.handle_many([replace(each, id=f"c{number}") for number, each in enumerate(won())])
        replica = stack.enter_context(standby(server))
        with Runner(replica, str(tmp_path / "tables.db"), "copied") as runner:
            runner.refresh()
            copied.handle(opened("later"), "c9")
            wait_until(lambda: runner.refresh().reached == copied.head())
        assert verify(replica, "copied").digest == copied.head().digest
        boards = [[*replay(url, "copied").table("leaderboard").rows()] for url in (server, replica)]
        assert boards[0] == boards[1] != []
        with Store.open(replica) as other:
            ledger = other.ledger("copied")
            for call in (
                lambda: ledger.handle(forecast("snow"), "c99"),
                lambda: next(iter(ledger.subscribe(name="reader"))),
                lambda: Store.open(replica.removesuffix("postgres") + "template1"),
            ):
                with pytest.raises(Unavailable, match="the server is read-only, as a standby is"):
                    call()


def test_a_backup_of_a_file_that_is_written_is_whole(tmp_path: Path) -> None:
    """It has what was acknowledged before, and verifies; a plain copy of the file lacks the newest commands."""
    path, copy, plain = (str(tmp_path / name) for name in ("log.db", "copy.db", "plain.db"))
    stop = Event()

    def write() -> None:
        for number in count():
            ledger.handle(forecast(participant=f"p{number}"), f"c{number}")
            if stop.is_set():
                return

    with Store.open(path) as store, ThreadPoolExecutor(1) as pool:
        ledger = store.ledger("north")
        ledger.handle(opened(), "open")
        writing = pool.submit(write)
        for _ in range(5):
            time.sleep(0.05)
            acknowledged = ledger.head().position
            with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
                source.backup(target)
            assert acknowledged <= verify(copy, "north").position
        stop.set()
        writing.result()
        behind = list[int]()
        for number in range(2):  # after one of the two, SQLite may have copied all of its WAL into the file
            ledger.handle(forecast(participant=f"last {number}"), f"last {number}")
            shutil.copy(path, plain)
            with closing(StoredLog.open(plain, "north")) as stored:
                behind.append(ledger.head().position - stored.newest())
        head = ledger.head().position
    assert verify(path, "north").position == head
    assert max(behind) > 0
