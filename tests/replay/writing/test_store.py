"""Tests of a store: thousands of ledgers over a few connections, the same in a file and on a server."""

import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Refused, Unavailable
from forecast_ledger.ledger.storing import writer
from forecast_ledger.ledger.storing.database import TimeLimits
from forecast_ledger.replay.audit.verify import verify
from forecast_ledger.replay.writing.store import Ledger, Store, open_ledger
from tests.support.crowds import QUESTION, forecast
from tests.support.effort import LONG
from tests.support.given import won
from tests.support.processes import forking
from tests.support.servers import PG_CTL, frozen
from tests.support.waiting import PATIENCE

needs_server = pytest.mark.skipif(not PG_CTL, reason="needs a PostgreSQL server's pg_ctl, which is not installed here")
MANY, SERVED = (2_000, 300) if LONG > 1 else (160, 90)
CONNECTED = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'forecast-ledger'"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=needs_server)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the location of an empty store: a file, and a database of its own."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    url: str = request.getfixturevalue("server")
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("DROP DATABASE IF EXISTS store")
        owner.execute("CREATE DATABASE store")
    return url.removesuffix("postgres") + "store"


def execute(place: str, statement: str) -> None:
    """Execute a statement, in the SQL that both databases have."""
    if "://" in place:
        with psycopg.connect(place, autocommit=True) as owner:
            owner.execute(statement)
    else:
        with closing(sqlite3.connect(place)) as file, file:
            file.execute(statement)


def copies(place: str, count: int) -> list[str]:
    """Make copies of the ledger `main`, whose rows do not name it, and return their names."""
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) "  # noqa: S608
    columns = "originator_id, originator_version, topic, state"
    rows = "SELECT 'copy ' || substr(CAST(10000 + i AS TEXT), 2), originator_version, topic, state"
    execute(place, f"{numbers}INSERT INTO stored_events ({columns}) {rows} FROM n, stored_events")
    return [f"copy {number:04}" for number in range(1, count + 1)]


def test_many_ledgers_share_three_connections(place: str) -> None:
    """Each is read and written to by four threads; no thread is started, and no more than fifty hold their state.

    There are four hundred, in a long run two thousand.
    """
    with open_ledger(place) as ledger:
        ledger.handle(QUESTION)
    names = copies(place, MANY)
    threads = threading.active_count()
    with Store.open(place, connections=3, held=50) as store, ThreadPoolExecutor(4) as pool:
        heads = [*pool.map(lambda name: store.ledger(name).head(), names)]
        assert (len(heads), {head.position for head in heads}, len({head.digest for head in heads})) == (MANY, {1}, 1)
        written = [*pool.map(lambda name: store.ledger(name).handle(forecast("ada", 0)), names[::20])]
        assert written == [Receipt("ada.0", 2, 2)] * (MANY // 20)
        assert store.names() == [*names, "main"]
        assert len(store._held) == 50
        if "://" in place:
            with psycopg.connect(place) as owner:
                assert owner.execute(CONNECTED).fetchall()[0][0] <= 3
        assert threading.active_count() <= threads + 4
    assert verify(place, names[20]).position == 2


def _served(place: str, first: int) -> tuple[int, int]:
    """Use all ledgers and write to a third of them; return the number of events, and of connections."""
    with Store.open(place, connections=20) as store, ThreadPoolExecutor(16) as pool:
        own = range(first, SERVED + 1, 3)
        written = pool.map(lambda n: store.ledger(f"copy {n:04}").handle(forecast("ada", 0)).last, own)
        read = pool.map(lambda n: store.ledger(f"copy {n:04}").head().position, range(1, SERVED + 1))
        events = sum(written) + len([*read])
        with psycopg.connect(place) as owner:
            return events, owner.execute(CONNECTED).fetchall()[0][0]


@needs_server
def test_three_processes_serve_many_ledgers_over_sixty_connections(server: str) -> None:
    """Each process writes to its third of them, and reads all, which are more than it has connections."""
    with open_ledger(server) as ledger:
        ledger.handle(QUESTION)
    copies(server, SERVED)
    with ProcessPoolExecutor(3, mp_context=forking(__name__)) as pool:
        served = [*pool.map(_served, [server] * 3, [1, 2, 3])]
    assert [events for events, _ in served] == [2 * SERVED // 3 + SERVED] * 3
    assert 0 < max(connections for _, connections in served) <= 60


def test_a_ledger_is_one_object_until_it_is_closed(place: str) -> None:
    """A closed one is not used any more, and the store returns another; the others go on."""
    with Store.open(place) as store:
        north, south = store.ledger("north"), store.ledger("south")
        assert (store.ledger("north") is north, isinstance(north, Ledger), north.name) == (True, True, "north")
        north.handle(QUESTION)
        north.close()
        with pytest.raises(Unavailable, match="the ledger is closed"):
            north.handle(forecast("ada", 0))
        again = store.ledger("north")
        assert (again is north, again.handle(forecast("ada", 0)).first, south.handle(QUESTION).first) == (False, 2, 1)
        assert store.names() == ["north", "south"]
    for call in (lambda: store.ledger("north"), store.names, south.head):
        with pytest.raises(Unavailable, match="is closed"):
            call()


def test_one_statement_names_all_ledgers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With their last log positions, in the order of their names; the first ones if so many are asked for."""
    path, said = tmp_path / "a.db", list[str]()
    with Store.open(path) as store:
        for name in "cab":
            store.ledger(name).handle(QUESTION)
        store.ledger("b").handle(forecast("ada", 0))
        connect = sqlite3.connect

        def traced(*args: Any, **named: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = connect(*args, **named)
            connection.set_trace_callback(said.append)
            return connection

        monkeypatch.setattr(sqlite3, "connect", traced)
        with Store.open(path) as again:
            said.clear()
            assert again._root.heads() == [("a", 1), ("b", 2), ("c", 1)]
            assert ["SELECT" in line for line in said] == [False, False, True, False]  # the lock, and then it
            assert (again.names(), again._root.names(2)) == (["a", "b", "c"], ["a", "b"])


def test_a_ledger_that_others_displace_reads_its_log_again(place: str) -> None:
    """What it knows is forgotten, not what it has recorded: a retry is a duplicate, and the object stays usable."""
    with Store.open(place, held=2) as store:
        ledgers = [store.ledger(name) for name in "abcd"]
        for ledger in ledgers:
            ledger.handle(QUESTION)
        assert [ledger._known.head.position for ledger in ledgers] == [0, 0, 1, 1]
        ledgers[2].head()  # used again, so that the next one to be displaced is d
        assert ledgers[0].handle(QUESTION).duplicate
        assert [ledger._known.head.position for ledger in ledgers] == [1, 0, 1, 0]
        assert [ledger.handle(forecast("ada", 0)).first for ledger in ledgers] == [2] * 4


def test_a_ledger_in_use_is_not_made_to_forget(tmp_path: Path) -> None:
    """A thread that uses another ledger does not wait for it."""
    with Store.open(tmp_path / "a.db", held=1) as store:
        used = store.ledger("used")
        used.handle(QUESTION)
        used._alone(lambda: store.ledger("other").handle(QUESTION))
        assert used._known.head.position == 1


def test_one_connection_is_enough_for_threads_that_write_and_read(place: str) -> None:
    """No call needs a second connection while it has one, and none is kept from its turn."""
    with Store.open(place, connections=1, turn=PATIENCE) as store, ThreadPoolExecutor(6) as pool:
        for name in "abc":
            store.ledger(name).handle(QUESTION)
        calls: list[Callable[[int], object]] = [
            lambda n: store.ledger("abc"[n % 3]).handle(forecast(f"p{n}", 0)),
            lambda n: [*store.ledger("abc"[n % 3]).read()],
            lambda _: store.names(),
        ]
        for done in [pool.submit(calls[n % 3], n) for n in range(60)]:
            done.result()
        assert sum(store.ledger(name).head().position for name in "abc") == 3 + 20


def test_a_store_pays_prizes_and_has_limits_of_its_own(tmp_path: Path) -> None:
    """Its ledgers are those of `open_ledger`; a writer that keeps its turn is waited for as long as the store says."""
    path = tmp_path / "a.db"
    with Store.open(path, turn=0.2, clock=lambda: 1_767_225_600_000_000) as store:
        ledger = store.ledger("paid")
        for number, command in enumerate(won("league", {"ada": "0.8", "bob": "0.5"})):
            ledger.handle(command, f"c{number}")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            begun = time.monotonic()
            with pytest.raises(Unavailable, match=r"held the lock for 0\.2 s"):
                store.ledger("slow").handle(QUESTION)
            assert time.monotonic() - begun >= 0.2


@pytest.mark.parametrize("wrong", [{"connections": 0}, {"held": 0}, {"turn": 0}, {"connect": -1}, {"statement": 0}])
def test_a_store_without_room_or_time_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """A number is above 0; nothing is created."""
    with pytest.raises(ValueError, match="must be above 0"):
        Store.open(tmp_path / "a.db", **wrong)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("opening", [open_ledger, Ledger.open, writer.Ledger.open])
def test_a_ledger_of_its_own_takes_the_time_limits_of_a_store(tmp_path: Path, opening: Callable[..., Any]) -> None:
    """A call waits for other writers as long as the program says; a limit of 0 is refused, and nothing is created."""
    path = tmp_path / "a.db"
    for name in ("connect", "turn", "statement"):
        with pytest.raises(ValueError, match=f"{name} is 0; it must be above 0"):
            opening(path, **{name: 0})
    assert not path.exists()
    with opening(path, connect=4, turn=0.2, statement=5) as ledger:
        assert ledger._store.limits == TimeLimits(connect=4, turn=0.2, statement=5)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable, match=r"held the lock for 0\.2 s"):
                ledger.handle(QUESTION)


def test_a_name_that_is_no_id_is_refused() -> None:
    """As `open_ledger` refuses it."""
    with Store.open(":memory:") as store, pytest.raises(Refused):
        store.ledger("")


def test_a_store_that_answers_is_well(place: str) -> None:
    """Also while a writer has its turn, and if there is no event yet; not when it is closed."""
    with Store.open(place) as store:
        store.ping()
        with store.ledger("north")._store.turn():
            store.ping(PATIENCE)
    with pytest.raises(Unavailable, match="is closed"):
        store.ping()


@needs_server
def test_a_store_says_in_time_that_it_cannot_answer(server: str) -> None:
    """A server that hangs, connections that are all in use, and a table that is gone; then all is well again."""
    with Store.open(server, connections=1) as store:
        for trouble, message in (
            (lambda: frozen(server), r"no answer from the server for 0\.3 s"),
            (store.ledger("busy")._store.turn, r"the 1 connections .* in use for 0\.3 s"),
        ):
            store.ping()
            with trouble():
                begun = time.monotonic()
                with pytest.raises(Unavailable, match=message):
                    store.ping(0.3)
                assert time.monotonic() - begun >= 0.3
        execute(server, "ALTER TABLE stored_events RENAME TO moved")
        with pytest.raises(Unavailable, match="does not exist"):
            store.ping()
        execute(server, "ALTER TABLE moved RENAME TO stored_events")
        store.ping()


def test_a_ledger_whose_head_was_asked_for_is_ready(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its log says is read then, and not when the first command comes."""
    with open_ledger(place, "north") as ledger:
        ledger.handle(QUESTION)
    with Store.open(place) as store:
        ledger = store.ledger("north")
        assert ledger.head().position == 1
        monkeypatch.setattr(type(ledger), "_catch_up", None)
        assert ledger.handle(forecast("ada", 0)).first == 2
