"""Readers of a read model: what they ask for, what they see while tables are made again, and who takes over."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.reading.replay import replay
from forecast_ledger.replay.readmodel.read_model import ReadModel
from forecast_ledger.replay.readmodel.runner import Runner, check_model
from tests.replay.readmodel.test_runner import SAID
from tests.support.given import contest, forecast
from tests.support.logs import written
from tests.support.processes import Command
from tests.support.read_models import queried
from tests.support.servers import PG_CTL
from tests.support.waiting import PATIENCE

_SERVER = pytest.mark.skipif(not PG_CTL, reason="needs a PostgreSQL server's pg_ctl, which is not installed here")


@pytest.fixture(params=["file", pytest.param("schema", marks=_SERVER)])
def followed(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """A log, and a read model of it of each kind, with the optional table of standing forecasts."""
    path, tables = str(tmp_path / "log.db"), str(tmp_path / "tables.db")
    if request.param == "schema":
        tables = f"{request.getfixturevalue('server')}?schema={tmp_path.name}"
    written(path, SAID)
    with Runner(path, tables, optional=["standing"]) as runner:
        runner.refresh()
    return path, tables


def test_rows_are_those_of_a_replay(followed: tuple[str, str]) -> None:
    """The columns as published, the rows that have the given values, a board in its own order."""
    path, tables = followed
    projections = replay(path).projections
    with ReadModel.open(tables) as model:
        for name in ("contests", "questions", "leaderboard", "standing", "journal"):
            assert model.rows(name) == [*projections.table(name).rows()], name
        [bob] = [row for row in projections.table("standing").rows() if row["participant"] == "bob"]
        assert model.rows("standing", participant="bob", question="rain") == [bob]
        assert model.rows("standing", log_position=bob["log_position"]) == [bob]
        assert model.rows("standing", participant=None) == []
        assert model.reached() == replay(path).checkpoint


def test_what_is_wrong_with_a_question_is_said(followed: tuple[str, str], tmp_path: Path) -> None:
    """A table or column that is not there, a value of another type, a table that is not kept, no read model at all."""
    _, tables = followed
    with ReadModel.open(tables) as model:
        for name, equal, said in (
            ("leaderbord", {}, "there is no table 'leaderbord'; there is leaderboard, "),
            ("contests", {"contst": "cup"}, "contests has no column 'contst'; it has contest, "),
            ("standing", {"log_position": "4"}, "standing.log_position is compared with int, not with '4'"),
            ("scores", {}, "scores is not in this read model"),
        ):
            with pytest.raises(ValueError, match=said):
                model.rows(name, **equal)  # type: ignore[arg-type]
        assert model.rows("contests", contest="cup")[0]["pool"] == "100.00"
    with pytest.raises(Unavailable, match="closed"):
        model.rows("contests")
    with pytest.raises(Unavailable):
        ReadModel.open(str(tmp_path / "none.db"))


def test_a_reader_waits_for_what_was_just_written(followed: tuple[str, str]) -> None:
    """It returns with the effect of the command once the runner has caught up, and gives up after its time."""
    path, tables = followed
    with ReadModel.open(tables) as model, Runner(path, tables) as runner, Ledger.open(path) as ledger:
        receipt = ledger.handle(forecast(participant="eve"), "eve")
        with pytest.raises(Unavailable, match=f"has not reached log position {receipt.last} in 0.05 s") as late:
            model.rows("standing", participant="eve", at_least=receipt.last, timeout=0.05)
        assert "the tables are behind the log" in late.value.meaning  # nothing is wrong with the store
        with ThreadPoolExecutor(4) as threads:
            asked = [
                threads.submit(model.rows, "standing", participant="eve", at_least=receipt.last, timeout=PATIENCE)
                for _ in range(4)
            ]
            time.sleep(0.05)
            done = runner.refresh()
            assert [len(each.result()) for each in asked] == [1, 1, 1, 1]
        assert (done.tables, done.contests) == (("standing",), ())


def test_a_refresh_says_which_tables_and_contests_it_changed(followed: tuple[str, str]) -> None:
    """A new contest changes the table of contests, and names the contest."""
    path, tables = followed
    with Runner(path, tables) as runner, Ledger.open(path) as ledger:
        ledger.handle(contest("league"), "late")
        done = runner.refresh()
        assert (done.tables, done.contests) == (("contests",), ("league",))
        assert runner.refresh()[3:] == ((), ())


@pytest.mark.parametrize("cause", ["version", "columns", "damage"])
def test_readers_never_see_a_moment_without_tables(
    followed: tuple[str, str], cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While tables are made again, every look finds the contest: of another version, other columns, or damaged."""
    path, tables = followed
    if cause == "version":
        monkeypatch.setitem(CATALOGUE, "contests", CATALOGUE["contests"]._replace(version=99))
    elif cause == "columns":
        queried(tables, "ALTER TABLE contests ADD more text")
    else:
        queried(tables, "UPDATE contests SET pool = '7.00'")
    ended, looked, counted, seen = Event(), Event(), Event(), list[str]()

    def look() -> None:
        with ReadModel.open(tables) as model:
            while not ended.is_set() or not seen:
                seen.extend(row["pool"] for row in model.rows("contests", contest="cup", timeout=0))
                looked.set()

    def count() -> None:
        while not ended.is_set():
            assert queried(tables, "SELECT count(*) FROM contests") == [(1,)]
            counted.set()

    with ThreadPoolExecutor(2) as threads:
        readers = [threads.submit(look), threads.submit(count)]
        try:
            assert looked.wait(PATIENCE)
            assert counted.wait(PATIENCE)
            with Runner(path, tables, rebuild=cause == "damage") as runner:
                runner.refresh()
            time.sleep(0.02)
        finally:
            ended.set()
        for reader in readers:
            reader.result()
    assert {*seen} <= {"100.00", "7.00"}
    assert seen[-1] == "100.00"
    assert check_model(Log(path), tables).total == 0


def test_a_rebuild_keeps_the_optional_tables_and_refuses_another_ledger(
    followed: tuple[str, str], tmp_path: Path
) -> None:
    """A wrong path does not replace somebody else's tables; nothing is left beside a file."""
    path, tables = followed
    other = str(tmp_path / "other.db")
    written(other, SAID[1:2])
    with pytest.raises(Unavailable, match="the read model follows another ledger of the same name"):
        Runner(other, tables, rebuild=True)
    queried(tables, "DELETE FROM standing")
    with Runner(path, tables, rebuild=True) as runner:
        assert runner.refresh().events == len(SAID)
        assert runner.refresh().events == 0
    assert check_model(Log(path), tables).total == 0
    with ReadModel.open(tables) as model:
        assert len(model.rows("standing")) == 2
    assert not [each.name for each in tmp_path.iterdir() if "-new" in each.name]


def test_a_second_runner_takes_over_from_one_that_is_killed(followed: tuple[str, str]) -> None:
    """It says that it waits, and goes on where the first one was killed; one that is stopped while it waits ends."""
    path, tables = followed
    first = Command("follow", path, tables)
    second = None
    try:
        with Ledger.open(path) as ledger, ReadModel.open(tables) as model:
            model.rows("standing", at_least=ledger.handle(forecast(participant="eve"), "eve").last, timeout=PATIENCE)
            second = Command("follow", path, tables)
            assert "waiting to take over" in second.stderr.readline()
            first.kill()
            first.wait(PATIENCE)
            last = ledger.handle(forecast(participant="zoe"), "zoe").last
            assert len(model.rows("standing", participant="zoe", at_least=last, timeout=PATIENCE)) == 1
            assert "taking over" in second.stderr.readline()
            third = Runner(path, tables, standby=True)
            third.stop()
            third.follow(print)
            third.close()
    finally:
        for each in (first, second):
            if each is not None:
                each.kill()
                each.communicate(PATIENCE)
    assert check_model(Log(path), tables).total == 0


def test_a_runner_may_be_moved_between_threads(followed: tuple[str, str]) -> None:
    """Opened in one thread, refreshed in two others at the same time, and closed here: each event is applied once."""
    path, tables = followed
    with ThreadPoolExecutor(1) as opener:
        runner = opener.submit(Runner, path, tables).result()
    with Ledger.open(path) as ledger:
        ledger.handle(forecast(participant="eve"), "eve")
    with ThreadPoolExecutor(2) as threads:
        done = [threads.submit(runner.refresh) for _ in range(2)]
        assert sorted(each.result().events for each in done) == [0, 1]
    runner.close()
    assert check_model(Log(path), tables).total == 0
