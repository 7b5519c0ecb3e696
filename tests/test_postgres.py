"""The same ledger on a PostgreSQL server: same events, same digests, same promises."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner
from psycopg import sql

from ledger import Ledger, Receipt, commands, events, store
from ledger.rules import RuleSet
from projections.projection import CATALOGUE
from replay.cli import FINE, UNREADABLE, main
from replay.pay import prizes
from replay.replay import replay
from replay.verify import verify
from tests.given import NOW, contest, day, enrolment, entry, forecast, payment, quartiles, won

STORY = Path(__file__).parent.parent / "data" / "metaculus-2022" / "commands.jsonl"
_PLACES = [shutil.which("pg_ctl"), *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")))]
PG_CTL = next((place for place in _PLACES if place), "")

pytestmark = pytest.mark.skipif(not PG_CTL, reason="needs a PostgreSQL server's pg_ctl, which is not installed here")


def _as_server(*arguments: str) -> None:
    """Run one of the server's programs, which refuse to run as root, as the user that its package made."""
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    subprocess.run([*user, *arguments], check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server of our own, on loopback, in a folder of its own; stopped in the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="ledger-postgres-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    data = folder / "data"
    _as_server(PG_CTL, "init", "-D", str(data), "-o", "--auth=trust --username=ledger --encoding=UTF8")
    options = f"-c listen_addresses=127.0.0.1 -p {port} -k {folder}"
    _as_server(PG_CTL, "start", "-w", "-D", str(data), "-o", options, "-l", str(folder / "server.log"))
    yield f"postgresql://ledger@127.0.0.1:{port}/postgres"
    _as_server(PG_CTL, "stop", "-m", "immediate", "-D", str(data))
    shutil.rmtree(folder)


def _story() -> list[commands.AnyCommand]:
    return [commands.read(line) for line in STORY.read_bytes().splitlines()]


def test_the_story_has_the_same_digests_on_postgres_as_on_sqlite(server: str, tmp_path: Path) -> None:
    """Same commands, same tables, whatever keeps the rows."""
    for location in (server, str(tmp_path / "story.db")):
        with Ledger.open(location, "story") as ledger:
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
    """Quantiles, attestations, enrolments, whole rule sets and prizes; the prizes of one command together and once."""
    declared = events.Attestation(newest_source="2026-03", restricted_sources=False, note="by hand; caf\u00e9")
    rules = RuleSet(name="own", quantile_kernel="pinball", reference="peers", scored_only_levels=("hidden",))
    asked: list[commands.AnyCommand] = [
        quartiles(open_upper=True, decimals=12),
        contest(rules=rules),
        entry(question="flow", spot_at=day(12)),
        enrolment(entrant="team", bot=True),
        forecast("flow", quantiles=("0.000000000001", 2, 10), attestation=declared),
        *won("league", {"ada": "0.8", "bob": "0.5", "eve": "0.2"}),
        payment("league"),
    ]
    with (
        Ledger.open(server, "every", clock=lambda: NOW, prizes=prizes) as ledger,
        Ledger.open(":memory:", clock=lambda: NOW, prizes=prizes) as other,
    ):
        first = [ledger.handle(command, f"c{number}") for number, command in enumerate(asked)]
        assert [other.handle(command, f"c{number}") for number, command in enumerate(asked)] == first
        assert (first[-1].first, first[-1].last) == (14, 16)
        assert ledger.head() == other.head()
        assert list(ledger.read()) == list(other.read())
    with Ledger.open(server, "every") as ledger:
        assert ledger.handle(asked[-1], "c13") == Receipt("c13", 14, 16, duplicate=True)
        assert ledger.head().position == 16
    assert verify(server, "every").position == 16


def _opened(server: str, writer: int) -> int:
    """One process: 30 commands of its own and 10 that every process sends."""
    day = {"at": "2026-03-01T00:00:00Z", "opens_at": "2026-03-01T00:00:00Z", "closes_at": "2026-03-02T00:00:00Z"}
    ids = [f"w{writer}-{i}" for i in range(30)] + [f"shared-{i}" for i in range(10)]
    lines = [json.dumps({"id": i, "type": "open_question", "question": i, "kind": "binary", **day}) for i in ids]
    with Ledger.open(server, "raced") as ledger:
        return sum(not ledger.handle(commands.read(line)).duplicate for line in lines)


def _started(server: str) -> int:
    """One process: open a ledger where there may be no tables yet."""
    with Ledger.open(server) as ledger:
        return ledger.head().position


def test_several_processes_may_start_the_same_store_at_once(server: str) -> None:
    """PostgreSQL does not let two connections create one table; the later one waits instead of failing."""
    with (
        ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool,
        psycopg.connect(server, autocommit=True) as connection,
    ):
        for name in ("first", "second", "third"):
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            assert list(pool.map(_started, [server.replace("/postgres", f"/{name}")] * 8)) == [0] * 8


def test_several_processes_lose_and_double_nothing(server: str) -> None:
    """3 processes: 90 commands of their own, and 10 that all of them send, each recorded once."""
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        assert sum(pool.map(_opened, [server] * 3, range(3))) == 100
    assert verify(server, "raced").position == 100


def test_a_server_that_is_not_there_is_reported(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 3, no traceback, no password; so does a database that is not there."""
    monkeypatch.setattr(store, "_CONNECT_TIMEOUT", "1")
    nowhere = server.rpartition("/")[0] + "/nowhere"
    for location in ("postgresql://ada:secret@127.0.0.1:1/postgres", nowhere):
        result = CliRunner().invoke(main, ["replay", location])
        assert (result.exit_code, store.shown(location) in result.stderr) == (UNREADABLE, True), result.stderr
        assert "secret" not in result.output


@pytest.mark.parametrize("rest", ["h:port/d", "h/d?sslmode=require", "h", "h/d/e"])
def test_a_url_that_says_more_or_less_than_it_may_is_refused(rest: str) -> None:
    """Nothing in a URL is passed over in silence."""
    result = CliRunner().invoke(main, ["replay", f"postgresql://ada:secret@{rest}"])
    assert (result.exit_code, "secret" in result.output) == (UNREADABLE, False), result.stderr


def test_the_command_line_takes_a_url(server: str) -> None:
    """LOG is a file path or a database URL."""
    appended = CliRunner().invoke(main, ["append", server, str(STORY), "--name", "typed"])
    board = CliRunner().invoke(main, ["leaderboard", server, "plain", "--name", "typed", "--format", "json"])
    assert (appended.exit_code, board.exit_code) == (FINE, FINE)
    assert [row["prize"] for row in json.loads(board.stdout)] == ["779.30", "108.00", "67.90", "44.80"]


def test_what_would_be_is_not_written_to_a_server_either(server: str) -> None:
    """A dry run on a database without a ledger makes no table there; a branch of one leaves its rows as they are."""
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
    asked = [str(STORY.with_name("what-if.jsonl")), "--show", "leaderboard", "--format", "json"]
    shown = CliRunner().invoke(main, ["what-if", fresh, *asked])
    assert (shown.exit_code, json.loads(shown.stdout) != []) == (FINE, True), shown.stderr
    assert replay(fresh).checkpoint == before
