"""A read model in a PostgreSQL schema is what one in an SQLite file is, after every step and through every fault."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.cli.main import FINDINGS, FINE, UNREADABLE
from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.readmodel import postgres_tables
from forecast_ledger.replay.readmodel.part_store import SYSTEM
from forecast_ledger.replay.readmodel.runner import Refreshed, Runner, check_model
from forecast_ledger.replay.readmodel.stored_model import StoredModel
from tests.projections.incremental.test_refresh import trading as traded
from tests.replay.cli.test_main import run
from tests.replay.readmodel.test_runner import PER_FORECAST, SAID, assert_up_to_date, interrupted
from tests.support.effort import times
from tests.support.given import forecast, opened
from tests.support.logs import written
from tests.support.oracle import events_of
from tests.support.read_models import queried
from tests.support.servers import PG_CTL, frozen
from tests.support.waiting import wait_until
from tests.system.test_readmodel_histories import Followed, compared, tournament, trading

pytestmark = pytest.mark.skipif(not PG_CTL, reason="needs a PostgreSQL server's pg_ctl, which is not installed here")


@pytest.fixture
def followed(server: str, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A log and a read model of it, in a schema whose name needs quotes."""
    path, tables = str(tmp_path / "log.db"), f'{server}?schema=Boards "1"'
    written(path, SAID)
    with Runner(path, tables, optional=PER_FORECAST) as runner:
        runner.refresh()
    yield path, tables
    queried(server + "?schema=public", 'DROP SCHEMA "Boards ""1""" CASCADE')


@pytest.mark.parametrize(("season", "commands"), [(tournament(2), 30), (trading(4), times(160))])
def test_it_is_a_rebuild_after_every_command_of_a_random_season(
    season: Any, commands: int, server: str, tmp_path: Path
) -> None:
    """What holds for a file holds for a schema: tables, log index and checkpoint equal a rebuild."""
    tables = f"{server}?schema={len(season)}"
    assert Followed(str(tmp_path), Random(0), 0.6, tables).through(season[:commands], compared) > 5
    assert check_model(Log(f"{tmp_path}/log.db"), tables).total == 0


def test_it_equals_a_rebuild_through_crashes(server: str, tmp_path: Path) -> None:
    """A runner that fails in the middle of its transaction, or is started again, goes on from the last checkpoint."""
    interrupted(str(tmp_path), traded(1)[: times(60)], Random(1), f"{server}?schema=crashes")


def test_rows_and_digests_are_those_of_a_file(followed: tuple[str, str], tmp_path: Path) -> None:
    """The same values of the same types: decimals as text, counts as integers."""
    path, tables = followed
    with Runner(path, str(tmp_path / "t.db"), optional=PER_FORECAST) as runner:
        runner.refresh()
    with (
        closing(StoredModel(tables, read_only=True)) as one,
        closing(StoredModel(str(tmp_path / "t.db"), read_only=True)) as other,
        one.reading() as here,
        other.reading() as there,
    ):
        for name in (*SYSTEM, *one.names()):
            assert (here.rows(name), here.digests(name)) == (there.rows(name), there.digests(name)), name
    assert queried(tables, "SELECT contest, pool FROM contests") == [("cup", "100.00")]
    query = "SELECT DISTINCT data_type, collation_name FROM information_schema.columns WHERE table_name = '{}'"
    assert {*queried(tables, query.format("questions"))} == {("text", "C"), ("bigint", None)}


def test_what_others_write_is_found_at_the_next_refresh(followed: tuple[str, str]) -> None:
    """A statement of anybody else has every part compared; one that changes nothing is no fault."""
    path, tables = followed
    with Runner(path, tables) as runner:
        queried(tables, "UPDATE contests SET pool = pool")
        assert runner.refresh().rows == 0
        queried(tables, "UPDATE contests SET pool = '1000000.00'")
        with pytest.raises(Unavailable, match="the rows of 'cup' in contests differ from those that were written"):
            runner.refresh()
    done = run("follow", path, tables, "--check")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (
        FINDINGS,
        "contests ('cup',) pool: expected '100.00', found '1000000.00'",
    )
    assert run("follow", path, tables, "--once").exit_code == UNREADABLE
    assert run("follow", path, tables, "--once", "--rebuild").exit_code == FINE
    assert_up_to_date(tables, events_of(path))
    assert check_model(Log(path), tables).total == 0


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE contests RENAME pool TO money",
        'ALTER TABLE contests ALTER pool TYPE text COLLATE "en_US" USING pool',
        "DROP TABLE questions",
        "DROP TRIGGER _writes ON questions",
        "ALTER TABLE questions DROP CONSTRAINT questions_pkey",
    ],
)
def test_a_table_of_another_form_is_made_again(followed: tuple[str, str], change: str) -> None:
    """A column, its collation, a key, a table, and what notes the writes of others."""
    path, tables = followed
    if "pkey" in change:
        [(name,)] = queried(tables, "SELECT conname FROM pg_constraint WHERE conrelid = 'questions'::regclass")
        change = change.replace("questions_pkey", f'"{name}"')
    queried(tables, change.replace("en_US", "POSIX"))
    assert check_model(Log(path), tables).total > 0
    with Runner(path, tables) as runner:
        runner.refresh()
    assert check_model(Log(path), tables).total == 0


def test_a_table_that_is_replaced_while_it_is_read_keeps_its_rows(followed: tuple[str, str]) -> None:
    """A reader that has begun sees the old rows, and not the new table as it was when the reader began: empty."""
    path, tables = followed
    queried(tables, "ALTER TABLE contests ADD more text")

    def refresh() -> None:
        with Runner(path, tables) as runner:
            runner.refresh()

    with ThreadPoolExecutor(1) as threads, closing(StoredModel(tables, read_only=True)) as model:
        with model.reading(["contests"]) as stored:
            assert model.position() > 0
            refreshed = threads.submit(refresh)
            with suppress(TimeoutError):
                refreshed.result(1)
            assert [row["pool"] for row in stored.selected("contests", {})] == ["100.00"]
        refreshed.result(30)
    assert queried(tables, "SELECT pool FROM contests") == [("100.00",)]


def test_views_and_grants_stay_when_a_table_gets_other_numbers(
    followed: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version of a projection rises and its columns stay: rows are replaced, and not the table."""
    path, tables = followed
    queried(tables, "CREATE VIEW pools AS SELECT pool FROM contests")
    monkeypatch.setitem(CATALOGUE, "contests", CATALOGUE["contests"]._replace(version=99))
    with Runner(path, tables) as runner:
        assert runner.refresh().rows == 1
    assert queried(tables, "SELECT * FROM pools") == [("100.00",)]


def test_a_schema_of_something_else_and_a_url_without_one_are_refused(server: str, tmp_path: Path) -> None:
    """A log, another program's table, no schema in the URL, a database that is not there: one line each."""
    path = str(tmp_path / "log.db")
    written(path, SAID)
    queried(f"{server}?schema=public", "CREATE SCHEMA other CREATE TABLE t (a int)")
    for tables, said in (
        (f"{server}?schema=other", "not a read model: it has other tables"),
        (server, "name the schema that has the tables"),
        (f"{server}?schema=", "name the schema"),
        (f"{server}?schema={'x' * 64}", "at most 63 bytes"),
        (f"{server}?schema=a$$b", "without % and $"),
        (f"{server}?schema=a%25b", "without % and $"),
        (f"{server}x?schema=s", "does not exist"),
        (f"{server}?schema=s&nosuch=1", "nosuch"),
    ):
        done = run("follow", path, tables, "--once")
        assert (done.exit_code, len(done.stderr.splitlines()), said in done.stderr) == (3, 1, True), done.stderr


def test_a_runner_goes_on_after_its_connection_was_lost(followed: tuple[str, str]) -> None:
    """The next refresh opens another one, compares every part, and goes on; a second runner is refused meanwhile."""
    path, tables = followed
    with Runner(path, tables) as runner:
        with pytest.raises(Unavailable, match="another runner keeps this read model"):
            Runner(path, tables)
        others = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname <> ''"
        )
        queried(tables, others)
        with Ledger.open(path) as ledger:
            ledger.handle_many([opened("late", id="l1"), forecast("late", id="l2")])
        with pytest.raises(Unavailable):
            runner.refresh()
        assert runner.refresh().events == 2
        with pytest.raises(Unavailable, match="another runner keeps this read model"):
            Runner(path, tables)
    assert_up_to_date(tables, events_of(path))


def test_a_server_that_hangs_is_not_waited_for_without_end(
    followed: tuple[str, str], server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives no sign for as long as a statement may take; when it goes on, so does the runner."""
    path, tables = followed
    monkeypatch.setattr(postgres_tables, "SILENT", 0.5)
    with Runner(path, tables) as runner:
        with frozen(server), pytest.raises(Unavailable, match=r"no answer from the server for 0\.5 s"):
            runner.refresh()
        with Ledger.open(path) as ledger:
            ledger.handle(opened("later"), "l3")
        done = list[Refreshed]()

        def is_refreshed() -> bool:  # once the server has noticed that the old connection is closed
            with suppress(Unavailable):
                done.append(runner.refresh())
            return bool(done)

        wait_until(is_refreshed)
        assert done[0].events == 1


def test_an_explanation_reads_the_log_index(followed: tuple[str, str]) -> None:
    """`--model` takes the URL of a read model, and gives the same answer as without."""
    path, tables = followed
    plain, fast = (run("explain", path, "score", "cup", "rain", "ada", *more) for more in ((), ("--model", tables)))
    assert (fast.exit_code, fast.stdout) == (plain.exit_code, plain.stdout)


def test_the_log_may_be_in_the_same_database(server: str) -> None:
    """A log on PostgreSQL is followed into a schema of its own."""
    with Ledger.open(server, "both") as ledger:
        ledger.handle_many([opened(id="c1"), forecast(id="c2")])
        with Runner(server, f"{server}?schema=both", "both") as runner:
            assert runner.refresh().events == 2
