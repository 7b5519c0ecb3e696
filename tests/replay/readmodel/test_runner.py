"""The runner: its tables equal a rebuild after any history and interruption; it refuses what is not its own."""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.errors import Conflict, Corrupt, Refused, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import TAGS
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.storing.instrumentation import Metric
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.tables.catalogue import BUILT, CATALOGUE, Projections
from forecast_ledger.replay.cli.main import main
from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.readmodel import sqlite_tables
from forecast_ledger.replay.readmodel.part_store import OPTIONAL, VERSIONS
from forecast_ledger.replay.readmodel.runner import Lag, Runner, check_model
from forecast_ledger.replay.readmodel.stored_model import StoredModel
from tests.projections.incremental.test_refresh import trading
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import contest, entry, forecast, opened, resolution
from tests.support.logs import written
from tests.support.oracle import events_of
from tests.support.read_models import all_queried

SAID: list[Any] = [opened(), contest(pool=100), entry(), forecast(), forecast(participant="bob", probability="0.2")]
PER_FORECAST = ("consensus", "scores", "standing")
Stored = dict[str, list[tuple[Any, ...]]]


def record(path: str, recorded: Sequence[Recorded]) -> None:
    """Append these rows to a log as they are."""
    with closing(StoredLog.open(path, "main")) as store:
        store.append([(each.position, TAGS[type(each.event)], log.seal(each)[0]) for each in recorded])


def kept(path: str) -> list[str]:
    """The projections that a read model has: all that are built but some of those with a row for each forecast."""
    with closing(StoredModel(path, read_only=True)) as model:
        names = model.names()
    assert {*BUILT} - {*PER_FORECAST} <= {*names}
    return names


def stored(path: str, names: Sequence[str] | None = None) -> Stored:
    """The tables of a read model, in order of their keys; a board without the numbers of its rows."""
    names = kept(path) if names is None else names
    queries = []
    for name in names:
        keyless = CATALOGUE[name].as_built
        columns = ", ".join(f'"{column.name}"' for column in CATALOGUE[name].columns)
        within = ", ".join(CATALOGUE[name].part) or "contest"
        order = f' ORDER BY {within}, "row"' if keyless else ""
        queries.append(f'SELECT {columns} FROM "{name}"{order}')  # noqa: S608 - names of the catalogue
    return dict(zip(names, all_queried(path, queries), strict=True))


def rebuilt(recorded: Sequence[Recorded], names: Sequence[str] = BUILT) -> Stored:
    """The same tables, from the whole log, as they are printed."""
    every = Projections(facts([recorded] if recorded else []))
    return {name: [tuple(row.values()) for row in every.table(name).rows()] for name in names}


def assert_up_to_date(path: str, recorded: Sequence[Recorded], names: Sequence[str] | None = None) -> None:
    """A read model's rows are those of the log up to there, and so is the checkpoint that it says."""
    names = kept(path) if names is None else names
    expected, found = rebuilt(recorded, names), stored(path, names)
    for name in names:
        keyed = not CATALOGUE[name].as_built
        assert (sorted(found[name], key=str) if keyed else found[name]) == (
            sorted(expected[name], key=str) if keyed else expected[name]
        ), name
    with closing(StoredModel(path, read_only=True)) as model:
        tracking = model.tracking()
    assert tracking is not None
    assert tracking.reached == ((recorded[-1].position, recorded[-1].digest) if recorded else log.START)


def connection_of(model: StoredModel) -> sqlite3.Connection:
    """The connection to the file of a read model."""
    assert isinstance(model._database, sqlite_tables.SQLiteTables)
    return model._database._connection


def crashing(model: StoredModel, after: int) -> None:
    """Have a read model fail after so many changes of a table, in the middle of its transaction."""
    written, left = model._stored._write_batch, iter(range(after))

    def fail(*arguments: Any) -> None:
        if next(left, None) is None:
            raise RuntimeError("crashed")
        written(*arguments)

    vars(model._stored)["_write_batch"] = fail


def interrupted(folder: str, recorded: Sequence[Recorded], random: Random, model: str = "") -> None:
    """Record a log bit by bit, follow it with a runner that crashes and starts again, and compare now and then.

    The read model has the tables with a row for each forecast, some of them, or none.
    """
    path, tables = f"{folder}/log.db", model or f"{folder}/tables.db"
    with closing(StoredLog.open(path, "main")):
        pass
    chosen = random.sample(PER_FORECAST, random.choice([0, 1, 3, 3]))
    runner = Runner(path, tables, optional=chosen)
    end = 0
    while end < len(recorded):
        first, end = end, min(end + random.randint(1, max(2, len(recorded) // 5)), len(recorded))
        record(path, recorded[first:end])
        if random.random() < 0.4:
            crashing(runner._model, random.randint(0, 30))
            with suppress(RuntimeError):
                runner.refresh()
        if random.random() < 0.5:
            runner.close()
            runner = Runner(path, tables, optional=chosen)  # nothing may have been written yet
        else:
            vars(runner._model._stored).pop("_write_batch", None)  # the same runner goes on after a failure
        if random.random() < 0.7:
            runner.refresh()
            assert_up_to_date(tables, recorded[:end])
    runner.refresh()
    runner.close()
    assert_up_to_date(tables, recorded)
    assert [name for name in PER_FORECAST if name in kept(tables)] == sorted(chosen)


@given(oracle.logs(), st.integers(0, 2**32))
@settings(max_examples=times(12), deadline=None)
def test_tables_equal_a_rebuild_of_any_tournament_through_any_crashes(asked: list[AnyCommand], seed: int) -> None:
    """Random questions and contests, divided and interrupted at random."""
    recorded, _ = oracle.attempted(asked)
    with TemporaryDirectory() as folder:
        interrupted(folder, recorded, Random(seed))


@pytest.mark.parametrize("seed", range(times(16)))
def test_tables_equal_a_rebuild_of_any_season_of_trading_through_any_crashes(seed: int, tmp_path: Path) -> None:
    """Likewise, with quotes, decisions and corrections."""
    interrupted(str(tmp_path), trading(seed), Random(seed))


@pytest.mark.parametrize("seed", range(times(8)))
def test_optional_tables_equal_a_rebuild_after_every_refresh(seed: int, tmp_path: Path) -> None:
    """A runner that is not told about them goes on to keep them; a check finds a row of theirs that was changed."""
    path, tables, recorded = f"{tmp_path}/log.db", f"{tmp_path}/tables.db", trading(seed)[:90]
    record(path, recorded[:60])
    with Runner(path, tables, optional=OPTIONAL) as runner:
        runner.refresh()
        for end in range(60, 80, 4):
            record(path, recorded[end : end + 4])
            runner.refresh()
            assert_up_to_date(tables, recorded[: end + 4], OPTIONAL)
    record(path, recorded[80:])
    with Runner(path, tables) as runner:
        runner.refresh()
    assert_up_to_date(tables, recorded, (*BUILT, *OPTIONAL))
    assert stored(tables, ["portfolio_snapshots"])["portfolio_snapshots"]
    assert check_model(Log(path), tables).total == 0
    with closing(sqlite3.connect(tables)) as other, other:
        other.execute("UPDATE portfolio_snapshots SET cash = '1.00' WHERE row = 2")
    assert check_model(Log(path), tables).total > 0


@pytest.mark.parametrize("optional", [["score"], ["scores", "score_parts"], "scores"])
def test_a_table_that_is_not_optional_is_refused(followed: tuple[str, str], optional: list[str]) -> None:
    """The message lists those that are; the read model can be followed after it."""
    path, tables = followed
    with pytest.raises(ValueError, match=r"not a list of optional tables: 'scores?(_parts)?'; they are consensus, "):
        Runner(path, tables, optional=optional)
    with Runner(path, tables) as runner:
        assert runner.refresh().rows == 0


def test_a_table_is_added_to_a_read_model_that_has_no_new_events(followed: tuple[str, str]) -> None:
    """It is made whole; the tables that are there are not touched."""
    path, tables = followed
    with closing(sqlite3.connect(tables)) as other:
        before = other.execute("SELECT rowid, * FROM sqlite_master").fetchall()
    done = CliRunner().invoke(main, ["follow", path, tables, "--once", "--with", "quotes"])
    assert done.exit_code == 0, done.stderr
    with closing(sqlite3.connect(tables)) as other:
        now = other.execute("SELECT rowid, * FROM sqlite_master").fetchall()
    assert {row[2] for row in {*now} - {*before}} >= {"quotes"}
    assert {*before} <= {*now}
    wrong = CliRunner().invoke(main, ["follow", path, tables, "--once", "--with", "score_parts"])
    assert (wrong.exit_code, "consensus, portfolio_snapshots, quotes, scores, standing" in wrong.stderr) == (2, True)


@pytest.fixture
def followed(tmp_path: Path) -> tuple[str, str]:
    """A log and a read model of it."""
    path, tables = str(tmp_path / "log.db"), str(tmp_path / "tables.db")
    written(path, SAID)
    with Runner(path, tables, optional=PER_FORECAST) as runner:
        runner.refresh()
    return path, tables


def test_a_projection_of_another_version_is_made_again(
    followed: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only that table is rebuilt, even if there are no new events; a projection that was removed loses its table."""
    path, tables = followed
    with closing(sqlite3.connect(tables)) as other, other:
        other.execute("UPDATE standing SET log_position = 77")
        rest = other.execute("SELECT rowid, * FROM sqlite_master WHERE name <> 'standing'").fetchall()
    monkeypatch.setitem(CATALOGUE, "standing", CATALOGUE["standing"]._replace(version=99))
    with Runner(path, tables) as runner:
        assert runner.refresh().rows == 2
        assert runner.refresh().rows == 0
    assert_up_to_date(tables, events_of(path))
    with closing(sqlite3.connect(tables)) as other:
        assert {*rest} - {*other.execute("SELECT rowid, * FROM sqlite_master")} == set()


def test_the_table_of_a_projection_that_is_no_more_goes(followed: tuple[str, str]) -> None:
    """The next refresh that changes anything removes it."""
    path, tables = followed
    with closing(StoredModel(tables)) as model:
        connection_of(model).execute("CREATE TABLE gone (question TEXT)")
        model._stored.put(VERSIONS, (), [*model._stored.rows(VERSIONS), ("gone", 1, "v1")])
    with Runner(path, tables) as runner, Ledger.open(path) as ledger:
        ledger.handle(resolution(), "late")
        runner.refresh()
    with closing(sqlite3.connect(tables)) as other, pytest.raises(sqlite3.OperationalError, match="no such table"):
        other.execute("SELECT * FROM gone")
    assert_up_to_date(tables, events_of(path))


def test_a_read_model_of_another_ledger_is_refused(followed: tuple[str, str], tmp_path: Path) -> None:
    """The ledger has another name in the store, or the same name in another log; the file is not changed."""
    path, tables = followed
    before = stored(tables)
    written(path, SAID, "second")
    elsewhere = str(tmp_path / "elsewhere.db")
    with Ledger.open(elsewhere) as ledger:
        ledger.handle(opened("other"), "c1")
    for location, name, words in ((path, "second", "ledger"), (elsewhere, "main", "ledger of the same name")):
        with pytest.raises(Unavailable, match=f"the read model follows another {words}, 'main'"):
            Runner(location, tables, name)
    assert stored(tables) == before


def test_a_log_that_does_not_continue_what_was_followed_is_refused(followed: tuple[str, str], tmp_path: Path) -> None:
    """Cut short, or with another row where the read model ends: the log position is told."""
    path, tables = followed
    recorded, before = events_of(path), stored(tables)
    short, forked = str(tmp_path / "short.db"), str(tmp_path / "forked.db")
    record(short, recorded[:-1])
    record(forked, recorded[:-1])
    written(forked, [forecast(participant="eve", id="fork")])
    seen_further = "log position 5: the read model has followed the log up to 5"
    for location, message in ((short, seen_further), (forked, "position 5: the read model has digest")):
        with Runner(location, tables) as runner, pytest.raises(Corrupt, match=message):
            runner.refresh()
    assert stored(tables) == before


@pytest.mark.parametrize("content", [b"not a database" * 100, None])
def test_a_file_of_something_else_is_refused(followed: tuple[str, str], tmp_path: Path, content: bytes | None) -> None:
    """No database, or a database of something else, such as the log itself, which is left as it was."""
    path, _ = followed
    other = tmp_path / "other"
    if content is not None:
        other.write_bytes(content)
    with pytest.raises(Unavailable):
        Runner(path, str(other) if content else path)
    assert len(events_of(path)) == len(SAID)


def test_instants_that_are_in_another_order_as_text_are_what_they_were_written(tmp_path: Path) -> None:
    """Half a second after noon comes before noon: ".5Z" sorts before "Z"; a runner that starts finds nothing wrong."""
    path, tables = str(tmp_path / "log.db"), str(tmp_path / "tables.db")
    instants = ("2026-03-11T12:00:00Z", "2026-03-11T12:00:00.5Z", "2026-03-11T12:00:01Z")
    assert [*instants] != sorted(instants)
    with Ledger.open(path) as ledger:
        ledger.handle_many(oracle.with_ids([opened(), *(forecast(at=at) for at in instants)]))
        for late in (None, forecast(at="2026-03-11T12:00:01.5Z")):
            if late is not None:
                ledger.handle(late, "late")
            with Runner(path, tables, optional=["standing"]) as runner:
                runner.refresh()
            assert_up_to_date(tables, events_of(path))


def test_a_log_that_is_not_there_is_not_started(tmp_path: Path) -> None:
    """Neither is its read model; a name that is no id is refused."""
    with pytest.raises(Unavailable, match="no such ledger"):
        Runner(str(tmp_path / "log.db"), str(tmp_path / "tables.db"))
    with pytest.raises(Refused, match="id_empty"):
        Runner(str(tmp_path / "log.db"), str(tmp_path / "tables.db"), "")
    assert list(tmp_path.iterdir()) == []


def test_a_second_runner_on_one_read_model_is_refused_when_it_starts(followed: tuple[str, str]) -> None:
    """The first runner continues and readers are free; after it ends, another runner can start."""
    path, tables = followed
    with Runner(path, tables) as one, Ledger.open(path) as ledger:
        for _ in range(2):
            with pytest.raises(Unavailable, match="another runner keeps this read model up to date; end that runner"):
                Runner(path, tables)
        ledger.handle(forecast(participant="eve"), "eve")
        assert one.refresh().events == 1
        assert_up_to_date(tables, events_of(path))
    with Runner(path, tables) as two:
        assert two.refresh().events == 0


def test_two_runners_do_not_both_write_where_locks_do_not_work(
    followed: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On some network drives locks do not work: the second runner to write finds other tables than it left."""
    path, tables = followed
    monkeypatch.setattr(sqlite_tables.SQLiteTables, "hold", lambda _: True)
    with Runner(path, tables) as one, Runner(path, tables) as two, Ledger.open(path) as ledger:
        ledger.handle(forecast(participant="eve"), "eve")
        one.refresh()
        with pytest.raises(Conflict, match="another process"):
            two.refresh()
    assert_up_to_date(tables, events_of(path))


def test_what_is_no_read_model_is_left_without_a_lock_beside_it(followed: tuple[str, str], tmp_path: Path) -> None:
    """A log given twice: nothing is left beside it."""
    with pytest.raises(Unavailable, match="not a read model"):
        Runner(followed[0], followed[0])
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("log.db-lock")] == []


def test_a_locked_read_model_is_told_and_can_be_tried_again(
    followed: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure loses nothing, and nothing is done twice."""
    path, tables = followed
    monkeypatch.setattr(sqlite_tables, "_LOCK_TIMEOUT", 0.05)
    with Runner(path, tables) as runner, closing(sqlite3.connect(tables, isolation_level=None)) as other:
        with Ledger.open(path) as ledger:
            ledger.handle(forecast(participant="eve"), "eve")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="locked"):
            runner.refresh()
        assert runner.lag().positions == 1
        other.execute("ROLLBACK")
        assert runner.refresh().events == 1
    assert_up_to_date(tables, events_of(path))


def test_a_full_disk_is_told_and_leaves_the_tables_as_they_were(followed: tuple[str, str]) -> None:
    """The transaction is rolled back; the refresh succeeds once there is room."""
    path, tables = followed
    with Ledger.open(path) as ledger:
        ledger.handle_many([opened(f"q{n}", id=f"o{n}") for n in range(40)])
        ledger.handle_many([forecast(f"q{n}", id=f"f{n}", participant="x" * 200) for n in range(40)])
    before = stored(tables)
    with Runner(path, tables) as runner:
        [pages] = connection_of(runner._model).execute("PRAGMA page_count").fetchone()
        connection_of(runner._model).execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(Unavailable, match="full"):
            runner.refresh()
        assert stored(tables) == before
        connection_of(runner._model).execute("PRAGMA max_page_count = 1000000")
        runner.refresh()
    assert_up_to_date(tables, events_of(path))


def test_a_damaged_log_is_told_and_changes_nothing(followed: tuple[str, str]) -> None:
    """The log position is in the message."""
    path, tables = followed
    with Ledger.open(path) as ledger:
        ledger.handle(forecast(participant="eve"), "eve")
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE stored_events SET state = X'7B7D' WHERE originator_version = 6")
    before = stored(tables)
    with Runner(path, tables) as runner, pytest.raises(Corrupt, match="log position 6"):
        runner.refresh()
    assert stored(tables) == before


def test_the_lag_is_in_positions_and_in_seconds(tmp_path: Path) -> None:
    """Since the first event that the tables do not have yet was recorded."""
    path, recorded_at = str(tmp_path / "log.db"), time.time_ns() // 1_000 - 60 * 10**6
    with Ledger.open(path, clock=lambda: recorded_at) as ledger, Runner(path, str(tmp_path / "tables.db")) as runner:
        assert runner.lag() == Lag(0, 0.0)
        ledger.handle_many(oracle.with_ids(SAID))
        lag = runner.lag()
        assert (lag.positions, 60 <= lag.seconds <= time.time() - recorded_at / 10**6) == (len(SAID), True)
        runner.refresh()
        assert runner.lag() == Lag(0, 0.0)


def test_a_refresh_measures_the_lag_that_it_ends(tmp_path: Path) -> None:
    """Since the first new event was recorded; nothing, if there is none."""
    path, first, metrics = str(tmp_path / "log.db"), time.time_ns() // 1_000 - 60 * 10**6, list[Metric]()
    clock = [first]
    said = oracle.with_ids(SAID)
    with (
        Ledger.open(path, "north", clock=lambda: clock[0]) as ledger,
        Runner(path, str(tmp_path / "tables.db"), "north", on_metric=metrics.append) as runner,
    ):
        ledger.handle_many(said[:3])
        clock[0] += 30 * 10**6
        ledger.handle_many(said[3:])
        for _ in range(2):
            runner.refresh()
    assert [(each.name, each.ledger) for each in metrics] == [("lag_positions", "north"), ("lag_seconds", "north")] * 2
    assert (metrics[0].value, 60 <= metrics[1].value <= time.time() - first / 10**6) == (len(SAID), True)
    assert [each.value for each in metrics[2:]] == [0, 0.0]


def test_the_types_are_text_and_integers_and_nothing_else(followed: tuple[str, str]) -> None:
    """Exact decimals as text, counts as integers: SQLite has floats, the tables have none."""
    with closing(sqlite3.connect(followed[1])) as connection:
        types = {row[2] for name in kept(followed[1]) for row in connection.execute(f'PRAGMA table_info("{name}")')}
        board = connection.execute("SELECT contest, pool, typeof(pool) FROM contests").fetchall()
    assert types == {"TEXT", "INTEGER"}
    assert board == [("cup", "100.00", "text")]


def test_the_command_says_what_it_did_and_exits_with_what_is_wrong(followed: tuple[str, str], tmp_path: Path) -> None:
    """0 with lag, log position and digest; 3 for a read model of another ledger, 4 for a log that was rewritten."""
    path, tables = followed
    recorded, forked = events_of(path), str(tmp_path / "forked.db")
    done = CliRunner().invoke(main, ["follow", path, tables, "--once"])
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.splitlines() == [
        "0 events, 0 rows changed; lag 0 positions, 0.000 s",
        f"as of log position 5, digest {recorded[-1].digest}",
    ]
    record(forked, recorded[:-1])
    for arguments, code in (
        ([path, str(tmp_path / "no" / "tables.db")], 3),
        ([str(tmp_path / "no.db"), tables], 3),
        ([path, path], 3),
        ([path, tables, "--name", "second"], 3),
        ([forked, tables], 4),
        ([path, tables, "--name", ""], 2),
    ):
        wrong = CliRunner().invoke(main, ["follow", *arguments, "--once"])
        assert (wrong.exit_code, wrong.stdout, len(wrong.stderr.splitlines())) == (code, "", 1), arguments
