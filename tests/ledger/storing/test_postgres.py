"""Tests of a ledger on a PostgreSQL server: it has the same events, digests and guarantees as in a file."""

import json
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner
from psycopg import sql

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Unavailable, Uncertain
from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.storing import database, stored_log
from forecast_ledger.ledger.storing.database import Rows, grouped
from forecast_ledger.ledger.storing.stored_log import StoredLog, TakenError, rows_at
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.audit.verify import verify
from forecast_ledger.replay.cli.main import FINE, UNREADABLE, main
from forecast_ledger.replay.reading.replay import replay
from forecast_ledger.replay.writing.store import prizes_from_log
from tests.ledger.storing import test_consumer, test_rows
from tests.support.crowds import QUESTION, crowd
from tests.support.crowds import forecast as line
from tests.support.given import NOW, contest, day, enrolment, entry, forecast, payment, quartiles, won
from tests.support.paths import ROOT
from tests.support.processes import forking
from tests.support.servers import PG_CTL, stopped
from tests.system.test_crowds import MOST, TRIES, longest_beside

STORY = ROOT / "data" / "metaculus-2022" / "commands.jsonl"
pytestmark = pytest.mark.skipif(not PG_CTL, reason="needs a PostgreSQL server's pg_ctl, which is not installed here")


@pytest.mark.parametrize("rule", test_rows.RULES, ids=lambda rule: rule.__name__)
def test_a_server_keeps_rows_as_a_file_does(server: str, rule: Callable[[Rows], None]) -> None:
    """Every rule that holds for rows in files and in memory holds on a server."""
    with closing(rows_at(server, f"rows of {rule.__name__}")) as rows:
        rule(test_rows.recorded(rows))


def _story() -> list[commands.AnyCommand]:
    return [commands.read(line) for line in STORY.read_bytes().splitlines()]


def test_the_story_has_the_same_digests_on_postgres_as_on_sqlite(server: str, tmp_path: Path) -> None:
    """The same commands give the same tables in every store."""
    for location in (server, str(tmp_path / "story.db")):
        with Ledger.open(location, "story", clock=lambda: NOW) as ledger:
            assert all(isinstance(outcome, Receipt) for outcome in ledger.handle_many(_story()))
    one, other = replay(server, "story").projections, replay(str(tmp_path / "story.db"), "story").projections
    assert [one.table(name).digest() for name in CATALOGUE] == [other.table(name).digest() for name in CATALOGUE]
    assert verify(server, "story").position == len(_story())


def test_commands_are_recorded_once_across_restarts(server: str) -> None:
    """A retry after a restart returns the first receipt."""
    with Ledger.open(server, "retried") as ledger:
        first = ledger.handle_many(_story())
    with Ledger.open(server, "retried") as ledger:
        again = ledger.handle_many(_story())
        assert ledger.head().position == len(_story())
    assert [(r.first, r.duplicate) for r in again if isinstance(r, Receipt)] == [
        (r.first, True) for r in first if isinstance(r, Receipt)
    ]


def test_every_kind_of_row_is_read_back_as_it_was_written(server: str) -> None:
    """Quantiles, attestations, enrolments, whole rule sets and prizes come back; prizes are paid once."""
    declared = events.Attestation(newest_source="2026-03", restricted_sources=False, note="by hand; caf\u00e9")
    rules = RuleSet(name="own", quantile_kernel="pinball", reference="peers", scored_only_levels=("hidden",))
    commands_sent: list[commands.AnyCommand] = [
        quartiles(open_upper=True, decimals=12),
        contest(rules=rules),
        entry(question="flow", spot_at=day(12)),
        enrolment(entrant="team", bot=True),
        forecast("flow", quantiles=("0.000000000001", 2, 10), attestation=declared),
        *won("league", {"ada": "0.8", "bob": "0.5", "eve": "0.2"}),
        payment("league"),
    ]
    with (
        Ledger.open(server, "every", clock=lambda: NOW, prizes=prizes_from_log) as ledger,
        Ledger.open(":memory:", clock=lambda: NOW, prizes=prizes_from_log) as other,
    ):
        first = [ledger.handle(command, f"c{number}") for number, command in enumerate(commands_sent)]
        assert [other.handle(command, f"c{number}") for number, command in enumerate(commands_sent)] == first
        assert (first[-1].first, first[-1].last) == (14, 16)
        assert ledger.head() == other.head()
        assert list(ledger.read()) == list(other.read())
    with Ledger.open(server, "every") as ledger:
        assert ledger.handle(commands_sent[-1], "c13") == Receipt("c13", 14, 16, duplicate=True)
        assert ledger.head().position == 16
    assert verify(server, "every").position == 16


def _opened(server: str, writer: int) -> int:
    """Send 30 commands of this process's own and 10 that every process sends; return how many are recorded."""
    day = {"at": "2026-03-01T00:00:00Z", "opens_at": "2026-03-01T00:00:00Z", "closes_at": "2026-03-02T00:00:00Z"}
    ids = [f"w{writer}-{i}" for i in range(30)] + [f"shared-{i}" for i in range(10)]
    lines = [json.dumps({"id": i, "type": "open_question", "question": i, "kind": "binary", **day}) for i in ids]
    with Ledger.open(server, "raced") as ledger:
        return sum(not ledger.handle(commands.read(line)).duplicate for line in lines)


def _started(server: str) -> int:
    """Open a ledger that may not have tables yet."""
    with Ledger.open(server) as ledger:
        return ledger.head().position


def test_several_processes_may_start_the_same_store_at_once(server: str) -> None:
    """PostgreSQL does not let two connections create the same table; the later one waits instead of failing."""
    with (
        ProcessPoolExecutor(4, mp_context=forking(__name__)) as pool,
        psycopg.connect(server, autocommit=True) as connection,
    ):
        for name in ("first", "second"):
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            assert list(pool.map(_started, [server.replace("/postgres", f"/{name}")] * 8)) == [0] * 8


def test_several_processes_lose_and_double_nothing(server: str) -> None:
    """Three processes send 90 commands of their own and 10 that all of them send; each is recorded once."""
    with ProcessPoolExecutor(3, mp_context=forking(__name__)) as pool:
        assert sum(pool.map(_opened, [server] * 3, range(3))) == 100
    assert verify(server, "raced").position == 100


def test_eight_writers_take_turns_on_a_server(server: str) -> None:
    """Writers get their turn in order of request: none is refused or waits long, and each command is recorded once."""

    def longest(name: str) -> float:
        eight = crowd(server, f"eight {name}", 8, 25)
        assert (eight.errors, verify(server, f"eight {name}").position) == ([], 1 + 8 * 25)
        return eight.percentile(99)

    assert any(longest(name) < MOST for name in TRIES)


def test_a_large_append_and_a_trickle_leave_each_other_room_on_a_server(server: str) -> None:
    """A large append and many small ones alternate, as on SQLite."""
    assert any(longest_beside(server, f"beside {name}") < MOST for name in TRIES)


def test_a_lock_on_the_table_is_not_waited_for_without_end(server: str) -> None:
    """Writers, and readers if the lock keeps them out, fail within the time-out; nothing is recorded."""
    with Ledger.open(server, "locked", turn=1) as ledger, psycopg.connect(server) as holder:
        ledger.handle(QUESTION)
        holder.execute("LOCK TABLE stored_events IN EXCLUSIVE MODE")
        with pytest.raises(Unavailable, match="lock timeout: another process has held the lock for 1 s"):
            ledger.handle(line("one", 0))
        assert ledger.head().position == 1
        holder.execute("LOCK TABLE stored_events IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(Unavailable, match="lock timeout"):
            ledger.head()
        with pytest.raises(Unavailable, match="lock timeout"):
            Ledger.open(server, "locked", turn=1).head()
        holder.rollback()
        assert ledger.handle(line("one", 0)).first == 2


def test_a_turn_is_a_ledgers_own(server: str) -> None:
    """While the writer of one ledger decides, writers of other ledgers in the same database write; one of its own
    waits.
    """
    with (
        closing(StoredLog.open(server, "busy")) as busy,
        closing(StoredLog.open(server, "other")) as other,
        busy.turn() as turn,
    ):
        other.append([(1, "t", b"one")])
        turn.append(grouped([(1, "t", b"one")]))
    with closing(StoredLog.open(server, "busy", read_only=True)) as busy:
        assert busy.read(0) == [b"one"]


DYING = """
CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER die AFTER INSERT ON stored_events DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.originator_id = 'dying') EXECUTE FUNCTION die()
"""


def test_a_server_that_is_lost_at_a_commit_leaves_the_outcome_unknown(server: str) -> None:
    """The server ends the connection during the commit; the ledger checks again, and commands sent again are recorded
    once.
    """
    with Ledger.open(server, "dying") as ledger, psycopg.connect(server, autocommit=True) as owner:
        ledger.handle(QUESTION)
        owner.execute(DYING)
        try:
            with pytest.raises(Uncertain, match="it is not known whether this was recorded; send it again"):
                ledger.handle(line("one", 0))
        finally:
            owner.execute("DROP TRIGGER die ON stored_events; DROP FUNCTION die")
        assert ledger.handle(line("one", 0)) == Receipt("one.0", 2, 2)


def test_an_answer_that_does_not_come_leaves_the_outcome_unknown(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are recorded, although the connection was lost before the server answered."""
    sync = psycopg.Pipeline.sync

    def lost(self: psycopg.Pipeline) -> None:
        sync(self)
        self._conn.close()
        raise psycopg.OperationalError("the connection is lost")

    with Ledger.open(server, "lost") as ledger:
        ledger.handle(QUESTION)
        with monkeypatch.context() as patched:
            patched.setattr(psycopg.Pipeline, "sync", lost)
            with pytest.raises(Uncertain):
                ledger.handle(line("one", 0))
        assert ledger.head().position == 2
        assert ledger.handle(line("one", 0)) == Receipt("one.0", 2, 2, duplicate=True)


def test_rows_that_a_server_does_not_store_are_not_acknowledged(server: str) -> None:
    """If a trigger discards rows, the append fails and none of its rows is recorded."""
    swallow = "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;"
    trigger = "CREATE TRIGGER swallow BEFORE INSERT ON stored_events FOR EACH ROW EXECUTE FUNCTION swallow()"
    with Ledger.open(server, "swallowed") as ledger, psycopg.connect(server, autocommit=True) as owner:
        owner.execute(f"{swallow} {trigger}")
        try:
            with pytest.raises(Unavailable, match="the database changed or dropped the rows"):
                ledger.handle(QUESTION)
        finally:
            owner.execute("DROP TRIGGER swallow ON stored_events; DROP FUNCTION swallow")
        assert ledger.handle(QUESTION).first == 1


def test_a_writer_of_an_older_version_loses_and_doubles_nothing(server: str) -> None:
    """A writer that takes no turns is still detected by the log position of its rows."""
    with closing(StoredLog.open(server, "older")) as store, store.turn() as turn, psycopg.connect(server) as older:
        older.execute("INSERT INTO stored_events VALUES ('older', 1, 't', 'x')")
        older.commit()
        with pytest.raises(TakenError):
            turn.append(grouped([(1, "t", b"one"), (2, "t", b"two")]))
    with closing(StoredLog.open(server, "older", read_only=True)) as store:
        assert store.read(0) == [b"x"]


def test_a_server_that_was_restarted_is_gone_on_with(server: str) -> None:
    """Connections that the server has ended are opened again."""
    with Ledger.open(server, "restarted") as ledger:
        ledger.handle(QUESTION)
        with psycopg.connect(server, autocommit=True) as owner:
            owner.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        assert ledger.handle(line("one", 0)).first == 2


def test_after_an_outage_the_next_command_is_recorded_at_once(server: str) -> None:
    """While the server is down, commands fail at once in PostgreSQL's own words; when it is back, they are recorded."""
    threads = threading.active_count()

    def longest(number: int) -> float:
        with stopped(server):
            begun = [time.monotonic()]
            for _ in range(3):
                with pytest.raises(Unavailable, match="Connection refused; Is the server running"):
                    ledger.handle(line("one", number))
                begun.append(time.monotonic())
        begun.append(time.monotonic())
        assert ledger.handle(line("one", number)).first == 2 + number
        took = [after - before for before, after in pairwise([*begun, time.monotonic()])]
        return max(*took[:3], took[-1])  # without the start of the server

    with Ledger.open(server, "outage") as ledger:
        ledger.handle(QUESTION)
        assert any(longest(number) < 1 for number in range(len(TRIES)))
        assert threading.active_count() == threads


def test_a_server_says_itself_what_is_missing(server: str) -> None:
    """The database or the user."""
    with pytest.raises(Unavailable, match='database "nowhere" does not exist'):
        StoredLog.open(server.removesuffix("postgres") + "nowhere", "main")
    with pytest.raises(Unavailable, match='role "nobody" does not exist'):
        StoredLog.open(server.replace("ledger@", "nobody@"), "main")


def test_forty_ledgers_that_are_written_by_one_thread_have_a_connection_each(server: str) -> None:
    """One of a process's five is used again and again; no thread looks after it."""
    count = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'postgres' AND pid <> pg_backend_pid()"
    with ExitStack() as stack, psycopg.connect(server, autocommit=True) as owner:
        [(before,)], threads = owner.execute(count).fetchall(), threading.active_count()
        for number in range(40):
            stack.enter_context(Ledger.open(server, f"many {number}")).handle(QUESTION)
        assert owner.execute(count).fetchall() == [(before + 40,)]
        assert threading.active_count() == threads


def test_a_forked_process_opens_connections_of_its_own(server: str) -> None:
    """It records, and leaves those of its parent alone, also when it closes the ledger."""
    with Ledger.open(server, "forked") as ledger:
        ledger.handle(QUESTION)
        child = os.fork()
        if not child:
            ledger.handle(line("one", 0))
            ledger.close()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (ledger.handle(line("one", 1)).first, ledger.head().position) == (3, 3)


def test_a_view_in_place_of_the_table_is_refused(server: str) -> None:
    """A view in place of the table is refused, even if it is endless."""
    with psycopg.connect(server, autocommit=True) as owner:
        owner.execute("CREATE DATABASE viewed")
    viewed = server.removesuffix("postgres") + "viewed"
    with psycopg.connect(viewed, autocommit=True) as owner:
        owner.execute(
            "CREATE VIEW stored_events AS SELECT 'main' AS originator_id, generate_series(1, 9e9::bigint) AS x"
        )
    for read_only in (True, False):
        with pytest.raises(Unavailable, match="is not a table"):
            StoredLog.open(viewed, "main", read_only=read_only)


def test_a_server_that_is_not_there_is_reported(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing server or database gives exit code 3, without a traceback or a password."""
    monkeypatch.setattr(database, "CONNECT_TIMEOUT", 1)
    nowhere = server.rpartition("/")[0] + "/nowhere"
    for location in ("postgresql://ada:secret@127.0.0.1:1/postgres", nowhere):
        result = CliRunner().invoke(main, ["replay", location])
        assert (result.exit_code, stored_log.redacted(location) in result.stderr) == (UNREADABLE, True), result.stderr
        assert "secret" not in result.output


@pytest.mark.parametrize(
    "rest", ["127.0.0.1:port/d", "h/d?user", "h/d?colour=red", "h", "h/d/e", "h/d#e", "h/d?schema=a&schema=b"]
)
def test_a_url_that_says_more_or_less_than_it_may_is_refused(rest: str) -> None:
    """Every part of a URL must be understood."""
    result = CliRunner().invoke(main, ["replay", f"postgresql://ada:secret@{rest}"])
    assert (result.exit_code, "secret" in result.output) == (UNREADABLE, False), result.stderr


def test_the_command_line_takes_a_url(server: str) -> None:
    """LOG is a file path or a database URL."""
    appended = CliRunner().invoke(main, ["append", server, str(STORY), "--name", "typed"])
    board = CliRunner().invoke(main, ["leaderboard", server, "plain", "--name", "typed", "--format", "json"])
    assert (appended.exit_code, board.exit_code) == (FINE, FINE)
    assert [row["prize"] for row in json.loads(board.stdout)] == ["779.30", "108.00", "67.90", "44.80"]


def test_what_would_be_is_not_written_to_a_server_either(server: str) -> None:
    """A dry run on a database without a ledger creates no table; one on a ledger leaves its rows unchanged."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE untouched")
    fresh = server.removesuffix("postgres") + "untouched"
    tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"
    dry = CliRunner().invoke(main, ["append", fresh, str(STORY), "--dry-run", "--format", "json"])
    assert (dry.exit_code, {row["outcome"] for row in json.loads(dry.stdout)}) == (FINE, {"accepted"}), dry.stderr
    with psycopg.connect(fresh) as connection:
        assert connection.execute(tables).fetchall() == [(0,)]
    assert CliRunner().invoke(main, ["append", fresh, str(STORY)]).exit_code == FINE
    before = replay(fresh).checkpoint
    arguments = [str(STORY.with_name("what-if.jsonl")), "--show", "leaderboard", "--format", "json"]
    shown = CliRunner().invoke(main, ["what-if", fresh, *arguments])
    assert (shown.exit_code, json.loads(shown.stdout) != []) == (FINE, True), shown.stderr
    assert replay(fresh).checkpoint == before


@pytest.mark.parametrize("rule", [test_consumer.each_event_at_least_once, test_consumer.one_at_a_time,
                                  test_consumer.losing], ids=lambda rule: rule.__name__)  # fmt: skip
def test_a_server_keeps_cursors_as_a_file_does(
    server: str, rule: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rule of named readers holds, and other ledgers of the store have cursors of their own."""
    name = f"read with {rule.__name__}"
    test_consumer.filled(server, name)
    rule(server, name=name, **{"monkeypatch": monkeypatch} if "monkeypatch" in rule.__annotations__ else {})


def test_several_readers_may_make_the_table_of_cursors_at_once(server: str) -> None:
    """All find it, and each has a cursor of its own."""
    test_consumer.filled(server, "first cursors")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS ledger_cursors")
    with ThreadPoolExecutor(4) as threads, Ledger.open(server, "first cursors") as ledger:
        read = threads.map(lambda name: test_consumer.heard(ledger, 2, name), ["a", "b", "c", "d"])
        assert [*read] == [[1, 2]] * 4
