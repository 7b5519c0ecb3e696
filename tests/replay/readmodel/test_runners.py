"""Runners: many ledgers' read models by one thread, each a rebuild, and none hindered by the faults of another."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Absent, Corrupt, Refused, Unavailable
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.replay.cli.main import FINE, UNREADABLE, USAGE
from forecast_ledger.replay.readmodel import runners as module
from forecast_ledger.replay.readmodel.runner import Refreshed, Runner
from forecast_ledger.replay.readmodel.runners import Runners
from forecast_ledger.replay.writing.store import Store
from tests.replay.cli.test_main import run
from tests.replay.readmodel.test_runner import assert_up_to_date
from tests.support.effort import LONG, times
from tests.support.given import forecast, opened
from tests.support.processes import Command
from tests.support.read_models import queried
from tests.support.servers import PG_CTL, folder_of, postgres, stopped
from tests.support.waiting import PATIENCE, wait_until
from tests.system.test_readmodel_histories import tournament

needs_server = pytest.mark.skipif(not PG_CTL, reason="needs a PostgreSQL server's pg_ctl, which is not installed here")


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Where a store is, and where its read models are, both of them files."""
    return str(tmp_path / "logs.db"), str(tmp_path / "{name}.db")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=needs_server)])
def places(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """Where a store is, and where its read models are."""
    if request.param == "sqlite":
        yield request.getfixturevalue("files")
        return
    url, schema = request.getfixturevalue("server"), f"logs{time.monotonic_ns()}"
    queried(f"{url}?schema=public", f"CREATE SCHEMA {schema}")
    yield f"{url}?schema={schema}", f"{url}?schema={schema} {{name}}"


def model_of(models: str, name: str) -> str:
    """The read model of a ledger whose name needs no quotes."""
    return models.replace("{name}", name)


def begin(store: Store, *names: str) -> None:
    """Record a question in each of these ledgers."""
    for name in names:
        store.ledger(name).handle(opened("rain"), command_id="c1")


class Following:
    """What runners that follow have reported, by ledger."""

    def __init__(self, runners: Runners) -> None:
        self.runners = runners
        self.done: list[tuple[str, Refreshed]] = []
        self.errors: list[tuple[str, str]] = []

    def events(self, name: str) -> int:
        """How many events of a ledger were read."""
        return sum(done.events for each, done in self.done if each == name)


@contextmanager
def following(location: str, models: str, **how: Any) -> Iterator[Following]:
    """Follow in a thread, which ends soon after it is told to."""
    with Runners(location, models, **how) as runners:
        seen = Following(runners)
        thread = Thread(
            target=runners.follow,
            args=(lambda *done: seen.done.append(done), lambda name, error: seen.errors.append((name, str(error)))),
        )
        thread.start()
        try:
            yield seen
        finally:
            runners.stop()
            thread.join(PATIENCE)
            assert not thread.is_alive()


@pytest.mark.parametrize("seed", range(times(8)))
def test_each_is_a_rebuild_after_every_step_of_random_histories(places: tuple[str, str], seed: int) -> None:
    """Commands of three tournaments, interleaved; two read models are held, so that others take turns."""
    location, models = places
    random, names = Random(seed), "abc"
    said = {name: iter(tournament(4 * seed + place)[:40]) for place, name in enumerate(names)}
    recorded: dict[str, list[Recorded]] = {name: [] for name in names}
    with Store.open(location, clock=lambda: 0) as store:
        store.ledger("a")
        with Runners(location, models, held=2) as runners:
            for _ in range(times(20 if "://" in location else 80)):
                for name in random.sample(names, random.choice([1, 2, 3])):
                    outcomes = store.ledger(name).handle_many([*islice(said[name], random.randint(1, 8))])
                    if any(isinstance(outcome, Receipt) for outcome in outcomes):
                        recorded[name] += [
                            each for page in store.ledger(name).read(len(recorded[name])) for each in page
                        ]
                done = runners.refresh()
                assert not done.failed
                for name in done.refreshed:
                    assert_up_to_date(model_of(models, name), recorded[name])
    assert min(map(len, recorded.values())) > 2
    for name in names:
        assert_up_to_date(model_of(models, name), recorded[name])


def test_an_error_of_one_ledger_is_told_once_and_the_others_go_on(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read model that was changed by hand, until it is as it was; then it is followed again."""
    location, models = files
    monkeypatch.setattr(module, "_FIRST_WAIT", 0.05)
    with Store.open(location) as store:
        begin(store, "bad", "good")
        with following(location, models) as seen:
            wait_until(lambda: seen.events("bad") == seen.events("good") == 1)
            queried(model_of(models, "bad"), "UPDATE questions SET kind = 'numeric'")
            for name in ("bad", "good"):
                store.ledger(name).handle(forecast(), command_id="c2")
            wait_until(lambda: seen.events("good") == 2 and seen.errors)
            store.ledger("good").handle(forecast(participant="bob"), command_id="c3")
            wait_until(lambda: seen.events("good") == 3 and seen.runners._followed["bad"].wait > 0.1)
            assert [(name, "questions differ" in text) for name, text in seen.errors] == [("bad", True)]
            queried(model_of(models, "bad"), "UPDATE questions SET kind = 'binary'")
            wait_until(lambda: seen.events("bad") == 2)
            assert len(seen.errors) == 1


def test_ledgers_that_come_and_go_are_noticed(files: tuple[str, str]) -> None:
    """A new one is followed; the rows of one that somebody deletes from the store are missed; the rest goes on."""
    location, models = files
    with Store.open(location) as store:
        begin(store, "north", "south")
        with Runners(location, models) as runners:
            assert [*runners.refresh().refreshed] == ["north", "south"]
            begin(store, "west")
            assert [*runners.refresh().refreshed] == ["west"]
            queried(location, "DELETE FROM stored_events WHERE originator_id = 'north'")
            store.ledger("south").handle(forecast(), command_id="c2")
            done = runners.refresh()
        assert [*done.refreshed] == ["south"]
        assert "the read model follows another ledger of the same name" in str(done.failed["north"])


def test_a_damaged_log_stops_its_own_ledger_alone(files: tuple[str, str]) -> None:
    """A row with other bytes is found when it is read, and again when all is begun anew."""
    location, models = files
    with Store.open(location) as store:
        begin(store, "bad", "good")
    queried(location, "UPDATE stored_events SET state = replace(state, 'rain', 'hail') WHERE originator_id = 'bad'")
    for _ in range(2):
        with Runners(location, models) as runners:
            done = runners.refresh()
            assert isinstance(done.failed["bad"], Corrupt)
            assert {*done.failed} | {*done.refreshed} <= {"bad", "good"}
    assert queried(model_of(models, "good"), "SELECT position FROM _tracking") == [(1,)]


def test_a_second_process_goes_on_with_what_a_killed_one_kept(
    places: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While both run, each event is applied once; the one that is left applies the rest."""
    location, models = places
    monkeypatch.setattr(module, "_KEPT_WAIT", 0.3)
    names = ["north", "south"][: 1 if "://" in location else 2]
    with Store.open(location) as store:
        begin(store, *names)
        other = Command("follow", location, models, "--all")
        try:
            assert all("1 events" in other.stderr.readline() for _ in names)
            with following(location, models) as seen:
                for name in names:
                    store.ledger(name).handle(forecast(), command_id="c2")
                assert all("1 events" in other.stderr.readline() for _ in names)
                other.send_signal(signal.SIGSTOP)  # holds what it kept
                for name in names:
                    store.ledger(name).handle(forecast(participant="bob"), command_id="c3")
                time.sleep(0.5)
                assert (seen.done, seen.errors) == ([], [])
                other.kill()
                wait_until(
                    lambda: sorted((name, done.events) for name, done in seen.done) == [(name, 1) for name in names]
                )
                assert seen.errors == []
        finally:
            other.kill()
            other.ended(PATIENCE)
        for name in names:
            assert_up_to_date(model_of(models, name), [each for page in store.ledger(name).read() for each in page])


@needs_server
def test_a_server_that_goes_away_and_comes_back_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both the logs and the read models are on it."""
    monkeypatch.setattr(module, "_FIRST_WAIT", 0.2)
    with postgres() as url, Store.open(url) as store:
        begin(store, "north")
        with following(url, f"{url}?schema={{name}}") as seen:
            wait_until(lambda: len(seen.done) == 1)
            with stopped(url):
                wait_until(lambda: seen.errors)
                time.sleep(0.5)
            store.ledger("north").handle(forecast(), command_id="c2")
            wait_until(lambda: seen.events("north") == 2)
            assert seen.errors[0][0] == ""
            assert len({*seen.errors}) == len(seen.errors)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="measures memory as Linux has it")
def test_many_idle_ledgers_need_little_memory_and_few_queries(places: tuple[str, str]) -> None:
    """300 of them in a long run: 200 MB, and ten queries a second, as the server counts them; 20 connections are held.

    Beside these, there are the connection to the logs and that of the question how many there are.
    """
    location, models = places
    is_server = "://" in location
    many = 300 if LONG > 1 else 2 if is_server else 25
    logged = "&options=-c%20log_statement%3Dall" * is_server
    with Store.open(location) as store:
        begin(store, *(f"l{number}" for number in range(many)))
        command = [sys.executable, "-m", "forecast_ledger", "follow", location + logged, models + logged, "--all"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert all("1 events" in process.stderr.readline() for _ in range(many))
            bytes_used = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            if is_server:
                [(used,)] = queried(location, "SELECT count(*) FROM pg_stat_activity WHERE datname <> ''")
                server_log = folder_of(location.partition("?")[0]) / "server.log"
                begun, before = time.monotonic(), server_log.read_text().count("LOG:")
                wait_until(lambda: time.monotonic() > begun + 1 and server_log.read_text().count("LOG:") > before + 1)
                queries = server_log.read_text().count("LOG:") - before
                assert queries <= 10 * (time.monotonic() - begun)
                assert used <= module.HELD + 2 + 5  # the store of this process has at most five
            process.terminate()
            assert process.wait(PATIENCE) == FINE
            assert process.stderr.read() == "stopped\n"
    assert bytes_used < 200_000_000


def test_it_stops_in_the_middle_of_a_long_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not read is left to the next start."""
    monkeypatch.setattr("forecast_ledger.ledger.storing.stored_log.PAGE", 1)
    location, models = str(tmp_path / "logs.db"), str(tmp_path / "{name}.db")
    with Store.open(location) as store:
        begin(store, "long")
        store.ledger("long").handle_many([forecast(id=f"f{n}", participant=f"p{n}") for n in range(500)])
        with Runners(location, models) as runners:
            add = Runner._add

            def stop(runner: Runner, page: Any) -> None:
                runners.stop()
                add(runner, page)

            monkeypatch.setattr(Runner, "_add", stop)
            assert runners.refresh() == ({}, {})
        monkeypatch.setattr(Runner, "_add", add)
        with Runners(location, models) as runners:
            assert runners.refresh().refreshed["long"].events == 501


def test_names_are_followed_wherever_they_can_be(tmp_path: Path) -> None:
    """Characters that a path cannot have are written as in a URL; names can be chosen, also of later ledgers."""
    location = str(tmp_path / "logs.db")
    names = ["a b", "a/b", "ü%", ".."]
    with Store.open(location) as store:
        begin(store, *names, "other")
        with Runners(location, str(tmp_path / "m-{name}.db"), names=[*names, "later"]) as runners:
            assert {*runners.refresh().refreshed} == {*names}
        assert {path.name for path in tmp_path.glob("m-*.db")} == {
            "m-a%20b.db",
            "m-a%2Fb.db",
            "m-%C3%BC%25.db",
            "m-...db",
        }
    for wrong, error in (
        ({"models": "a.db"}, ValueError),
        ({"models": "{name}", "held": 0}, ValueError),
        ({"models": "{name}", "names": "north"}, ValueError),
        ({"models": "{name}", "names": [""]}, Refused),
    ):
        with pytest.raises(error):
            Runners(location, **wrong)
    with pytest.raises(Absent):
        Runners(str(tmp_path / "none.db"), "{name}")


@needs_server
def test_an_empty_database_is_waited_for(server: str, tmp_path: Path) -> None:
    """It is said once, and its ledgers are followed as soon as there are any. A file that is not there is an error."""
    queried(f"{server}?schema=public", "CREATE SCHEMA fresh")
    said: list[tuple[str, Exception]] = []
    done: list[str] = []
    with Runners(f"{server}?schema=fresh", str(tmp_path / "{name}.db")) as runners:
        with pytest.raises(Absent):
            runners.refresh()
        following = Thread(
            target=runners.follow, args=(lambda name, _: done.append(name), lambda *told: said.append(told))
        )
        following.start()
        wait_until(lambda: said)
        with Store.open(f"{server}?schema=fresh") as store:
            begin(store, "north")
            wait_until(lambda: done)
        runners.stop()
        following.join()
    assert done == ["north"]
    assert [(name, type(error)) for name, error in said] == [("", Absent)]
    queried(f"{server}?schema=public", "CREATE SCHEMA later")
    command = Command("follow", f"{server}?schema=later", str(tmp_path / "{name}.db"), "--all")
    told = command.stderr.readline()
    command.send_signal(signal.SIGTERM)
    assert command.ended(5).returncode == FINE
    assert told.startswith("waiting for the store, which is tried again each second: postgres")


def test_a_store_that_is_open_is_shared(places: tuple[str, str]) -> None:
    """Its connections are used, and stay open when the runners are closed."""
    location, models = places
    with Store.open(location) as store:
        with Runners(store, models) as runners:
            begin(store, "north")
            assert [*runners.refresh().refreshed] == ["north"]
        begin(store, "south")
        assert store.names() == ["north", "south"]


@needs_server
def test_a_name_that_no_schema_can_have_is_told(server: str, tmp_path: Path) -> None:
    """A dollar sign, or more than 63 bytes; the others go on."""
    location = str(tmp_path / "logs.db")
    with Store.open(location) as store:
        begin(store, "$", "é" * 40, "fine")
        with Runners(location, f"{server}?schema={{name}}") as runners:
            done = runners.refresh()
    assert ([*done.refreshed], {*done.failed}) == (["fine"], {"$", "é" * 40})
    assert all(isinstance(error, Unavailable) and "name the schema" in str(error) for error in done.failed.values())


def test_the_command_follows_all(tmp_path: Path) -> None:
    """`--all` prints each ledger, what fails, and exits with 3 if anything does."""
    location, models = str(tmp_path / "logs.db"), str(tmp_path / "{name}.db")
    with Store.open(location) as store:
        begin(store, "north", "south")
    done = run("follow", location, models, "--all", "--once")
    assert (done.exit_code, [line.partition(" events")[0] for line in done.stderr.splitlines()]) == (
        FINE,
        ["north: 1", "south: 1"],
    )
    with closing(sqlite3.connect(tmp_path / "other.db")) as other, other:
        other.execute("CREATE TABLE t (a)")
    with Store.open(location) as store:
        begin(store, "other")
    done = run("follow", location, models, "--all", "--once")
    assert (done.exit_code, done.stderr.count("not a read model"), done.stderr.count("could not be followed")) == (
        UNREADABLE,
        1,
        1,
    )
    for more in (["--name", "north"], ["--check"], ["--rebuild"]):
        assert run("follow", location, models, "--all", *more).exit_code == USAGE
    assert run("follow", location, "tables.db", "--all").exit_code == USAGE
