"""Running projections over a log as of a cut."""

import gc
import sqlite3
from contextlib import closing, nullcontext
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from hashlib import sha256
from itertools import count
from pathlib import Path
from threading import active_count, current_thread, get_ident, main_thread
from time import sleep
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Absent, Corrupt, Refused, Unavailable
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import START
from forecast_ledger.ledger.storing.stored_log import PAGE
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.tables.catalogue import BUILT, CATALOGUE, Projections
from forecast_ledger.replay.engines import engines
from forecast_ledger.replay.reading import replay as replaying
from forecast_ledger.replay.reading.log import AsOf, LogParts
from forecast_ledger.replay.reading.replay import Replay, replay, summarize_tables
from tests.support import oracle
from tests.support.effort import LONG
from tests.support.given import contest, entry, forecast, opened, resolution, revocation
from tests.support.logs import commands_of, log_fixture, written

SECOND = 10**6  # µs
TICKS = range(10 * SECOND, 10**4 * SECOND, 10 * SECOND)  # of 1970
SAID: list[AnyCommand] = [
    opened(),
    contest(pool=100),
    entry(),
    forecast(probability="0.8"),
    forecast(participant="bob", probability="0.2"),
    resolution(),
    revocation(),
    resolution(outcome="no"),
]
RESOLVED, REVOKED, AGAIN = 6, 7, 8  # log positions


log = log_fixture(SAID, at=TICKS)


def best(log: str, as_of: AsOf = None) -> list[str]:
    """The board, best first, as of a cut."""
    return [row["participant"] for row in replay(log, as_of=as_of).projections.table("leaderboard").rows()]


def positions(log: str, as_of: AsOf) -> int:
    """The log position that a cut leads to, which checkpoint and facts agree on."""
    found = replay(log, as_of=as_of)
    assert found.checkpoint.position == found.projections.facts.as_of
    return found.checkpoint.position


def digests(log: str, as_of: AsOf = None) -> list[str]:
    """Return the digest of every projection as of a cut."""
    projections = replay(log, as_of=as_of).projections
    return [projections.table(name).digest() for name in CATALOGUE]


def test_a_replay_of_the_whole_log_ends_at_its_head(log: str) -> None:
    """Log position and digest are those the ledger itself holds."""
    with Ledger.open(log) as ledger:
        assert replay(log).checkpoint == ledger.head()
    assert positions(log, None) == len(SAID)


def test_before_a_revocation_the_first_resolution_still_shows(log: str) -> None:
    """Before the revocation Ada leads; after it nobody does; then Bob."""
    assert best(log, RESOLVED) == ["ada", "bob"]
    assert best(log, REVOKED) == []
    assert best(log, AGAIN) == best(log) == ["bob", "ada"]
    assert best(log, RESOLVED - 1) == []


@pytest.mark.parametrize("as_of", range(0, len(SAID) + 1, 2 if LONG == 1 else 1))
def test_a_replay_as_of_a_position_is_that_of_the_log_when_it_ended_there(log: str, tmp_path: Path, as_of: int) -> None:
    """Digests of every projection, whatever was recorded later; at every second position, in a long run at each."""
    path = written(tmp_path / "shorter.db", SAID[:as_of], at=TICKS)
    assert digests(log, as_of) == digests(path)
    assert positions(log, as_of) == as_of


def test_a_replay_as_of_0_is_before_everything(log: str) -> None:
    """An empty log."""
    assert replay(log, as_of=0).checkpoint == START
    empty = replay(log, as_of=0).projections
    assert all(len(empty.table(name)) == 0 for name in CATALOGUE)


@pytest.mark.parametrize("as_of", [-1, len(SAID) + 1, 10**30])
def test_a_position_the_log_does_not_have_is_refused(log: str, as_of: int) -> None:
    """A position before the first or beyond the last is out of range."""
    with pytest.raises(Refused) as refused:
        replay(log, as_of=as_of)
    assert (refused.value.code, refused.value.field) == ("out_of_range", "as_of")


@pytest.mark.parametrize(
    ("instant", "position"),
    [
        ("1970-01-01T00:00:09.999999Z", 0),
        ("1970-01-01T00:00:10Z", 1),
        ("1970-01-01T00:00:10.000001Z", 1),
        ("1970-01-01T00:01:05Z", 6),
        ("1970-01-01T02:01:05+02:00", 6),
        ("1970-01-01T00:01:20Z", 8),
        ("2970-01-01T00:00:00Z", 8),
        ("1969-12-31", 0),
        ("1970-01-01", 8),
    ],
)
def test_an_instant_means_the_last_event_recorded_then_or_before(log: str, instant: str, position: int) -> None:
    """The ledger's own clock counts; an instant between two events means the earlier one, and a plain date its end."""
    assert positions(log, instant) == position
    assert replay(log, as_of=instant).checkpoint == replay(log, as_of=position).checkpoint
    assert best(log, instant) == best(log, position)


def test_all_events_of_one_instant_belong_to_it(tmp_path: Path) -> None:
    """They were recorded in one batch."""
    path = written(tmp_path / "log.db", SAID, at=5)
    assert positions(path, "1970-01-01T00:00:00.000005Z") == len(SAID)
    assert positions(path, "1970-01-01T00:00:00.000004Z") == 0


@pytest.mark.parametrize(
    ("as_of", "code"),
    [
        ("1970-01-01T00:00:10", "naive_instant"),
        ("yesterday", "bad_instant"),
        ("6", "bad_instant"),
        ("1970-02-30", "bad_instant"),
    ],
)
def test_what_is_no_instant_is_refused(log: str, as_of: str, code: str) -> None:
    """It is refused even before the log is opened."""
    for path in (log, f"{log}-missing"):
        with pytest.raises(Refused) as refused:
            replay(path, as_of=as_of)
        assert (refused.value.code, refused.value.field) == (code, "as_of")


def test_a_cut_may_be_a_datetime_and_nothing_else(log: str) -> None:
    """An aware one; what is neither that nor a position nor a text is refused, not passed over."""
    assert positions(log, datetime(1970, 1, 1, 2, 1, 5, tzinfo=timezone(timedelta(hours=2)))) == 6
    for wrong, code in ((datetime(1970, 1, 1), "naive_instant"), (6.0, "bad_instant"), (b"6", "bad_instant")):
        with pytest.raises(Refused) as refused:
            replay(log, as_of=wrong)  # type: ignore[arg-type]
        assert (refused.value.code, refused.value.field) == (code, "as_of")


def test_an_open_ledger_can_be_replayed_and_stays_open(log: str) -> None:
    """A ledger in memory, which has no path, can be replayed too."""
    with Ledger.open(log) as ledger:
        found = replay(ledger, as_of=RESOLVED)
        assert found.checkpoint == replay(Path(log), as_of=RESOLVED).checkpoint
        assert found.table("scores").digest() == replay(log, as_of=RESOLVED).table("scores").digest()
        assert replay(ledger).checkpoint == ledger.head()
        assert ledger.name == "main"
    with Ledger.open(":memory:") as ledger:
        ledger.handle_many(oracle.with_ids(SAID))
        assert replay(ledger).checkpoint == ledger.head() != START


def test_reading_never_changes_a_byte(log: str) -> None:
    """The log is not changed, and need not be writable."""
    before = sha256(Path(log).read_bytes()).hexdigest()
    for as_of in (None, 0, RESOLVED, "1970-01-01T00:00:10Z"):
        digests(log, as_of)
    assert sha256(Path(log).read_bytes()).hexdigest() == before


def test_a_log_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """The log is unavailable, and the folder stays empty."""
    with pytest.raises(Unavailable, match="no such ledger"):
        replay(str(tmp_path / "none.db"))
    assert not list(tmp_path.iterdir())


def test_each_ledger_of_a_store_is_replayed_by_its_name(log: str) -> None:
    """One that has no events is empty."""
    written(log, SAID[:5], name="other")
    assert replay(log, "other").checkpoint.position == 5
    assert replay(log).checkpoint.position == len(SAID)
    with pytest.raises(Absent, match="there is no ledger named 'third'; there is 'main', 'other'"):
        replay(log, "third")


def test_a_watcher_hears_how_far_the_reading_is(log: str) -> None:
    """Log positions, the last of them the cut."""
    heard: list[int] = []
    replay(log, as_of=RESOLVED, on_progress=heard.append)
    assert heard == [RESOLVED]


def test_a_cut_before_the_damage_sees_none_of_it(log: str) -> None:
    """The damage is on the same page of rows."""
    sound, cut = [replay(log, as_of=position).checkpoint for position in (1, 2)], replay(log)
    assert cut.checkpoint.position > 4
    with closing(sqlite3.connect(log)) as connection, connection:
        changed = "UPDATE stored_events SET state = CAST(replace(state, '\"at\":', '\"at\":1') AS BLOB)"
        assert connection.execute(f"{changed} WHERE originator_version = 4").rowcount == 1
    assert [replay(log, as_of=position).checkpoint for position in (1, 2)] == sound
    assert replay(log, as_of=3).checkpoint.position == 3
    for beyond in (4, None):
        with pytest.raises(Corrupt) as corrupt:
            replay(log, as_of=beyond)
        assert corrupt.value.position == 4


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE stored_events SET state = CAST(replace(state, '800000000', '900000000') AS BLOB) WHERE {}",
        "UPDATE stored_events SET state = replace(state, '800000000', '900000000') WHERE {}",
        "UPDATE stored_events SET state = substr(state, 2) WHERE {}",
        "UPDATE stored_events SET state = zeroblob(0) WHERE {}",
        "DELETE FROM stored_events WHERE {}",
    ],
    ids=["another number", "another number, as a text", "shorter", "empty", "gone"],
)
def test_damage_stops_a_replay_at_its_log_position(log: str, damage: str) -> None:
    """A database client changed the fourth row; the message names its log position."""
    with closing(sqlite3.connect(log)) as connection, connection:
        assert connection.execute(damage.format("originator_version = 4")).rowcount == 1
    with pytest.raises(Corrupt) as stopped:
        replay(log)
    assert stopped.value.position == 4


def test_a_cut_may_lie_anywhere_in_a_log_of_many_pages(tmp_path: Path) -> None:
    """Rows are read 500 at a time."""
    path, ticks = str(tmp_path / "log.db"), count(1)
    asked = oracle.with_ids([opened(f"q{number:04}") for number in range(1_025)])
    with Ledger.open(path, clock=lambda: next(ticks)) as ledger:
        for first in range(0, len(asked), 41):
            ledger.handle_many(asked[first : first + 41])
    for as_of in (PAGE - 1, PAGE, PAGE + 1, 1_025):
        assert positions(path, as_of) == as_of
        assert len(replay(path, as_of=as_of).projections.facts.questions) == as_of
        batch = (as_of - 1) // 41 + 1  # recorded at this µs
        assert positions(path, f"1970-01-01T00:00:00.{batch:06}Z") == batch * 41


@pytest.mark.parametrize(("many", "threads"), [(AGAIN, 2), (AGAIN + 1, 1)])
def test_projections_are_built_side_by_side_as_one_after_another(
    log: str, monkeypatch: pytest.MonkeyPatch, many: int, threads: int
) -> None:
    """All projections that are built by default are there, in the catalogue's order; for few events by one thread."""
    facts, used, table = replay(log).projections.facts, set[int](), Projections.table
    tables = [Projections(facts).table(name) for name in BUILT]
    right = [(table.name, (table.version, len(table), table.digest())) for table in tables]

    def noted(of: Projections, name: str) -> Table:
        used.add(get_ident())
        return table(of, name)

    monkeypatch.setattr(Projections, "table", noted)
    monkeypatch.setattr(replaying, "MANY", many)
    assert list(summarize_tables(facts).items()) == right
    assert len(used) == threads


@pytest.mark.parametrize("broken", ["contests", "scores"])
def test_what_a_projection_raises_is_raised_and_ends_the_others(
    log: str, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """Whichever thread it is in; none is left, and the garbage collector, which was off, is on again.

    What follows from scores takes far longer here than the first table of all, and is not waited for.
    """
    facts, threads, asked, collected = replay(log).projections.facts, active_count(), list[str](), list[bool]()
    table = Projections.table

    def slow(of: Projections, name: str) -> Table:
        asked.append(name)
        collected.append(gc.isenabled())
        sleep(0.3 * (current_thread() is not main_thread()))
        if name == broken:
            raise OverflowError("as told")
        return table(of, name)

    monkeypatch.setattr(Projections, "table", slow)
    monkeypatch.setattr(replaying, "MANY", 0)
    with pytest.raises(OverflowError, match="as told"):
        summarize_tables(facts)
    assert (active_count(), gc.isenabled(), any(collected)) == (threads, True, False)
    assert "prizes" not in asked or broken == "scores"


@pytest.mark.parametrize("stops", [False, True])
@pytest.mark.parametrize("engine", [None, "local"])
def test_the_garbage_collector_is_off_while_events_are_read_and_scored(
    log: str, monkeypatch: pytest.MonkeyPatch, engine: Any, stops: bool
) -> None:
    """From the first event to the board, and it is on when `replay` and `table` return or raise."""
    collected = list[bool]()

    def watched(name: str, where: object) -> None:
        then = getattr(where, name)

        def now(*args: Any, **named: Any) -> Any:
            collected.append(gc.isenabled())
            if stops:
                raise OverflowError("as told")
            return then(*args, **named)

        monkeypatch.setattr(where, name, now)

    found = replay(log, engine=engine)
    watched("table", Projections)
    with pytest.raises(OverflowError) if stops else nullcontext():
        found.table("leaderboard")
    watched("facts", LogParts) if engine is None else watched("finish", engines)
    with pytest.raises(OverflowError) if stops else nullcontext():
        replay(log, engine=engine)
    assert (collected, gc.isenabled()) == ([False, False], True)


def test_every_table_can_be_built_at_every_position_of_a_trading_log(tmp_path: Path) -> None:
    """A cut may lie between the events of one command, such as an enrolment and its starting cash: there everywhere,
    elsewhere at every fifth position, in a long run at every one.
    """
    log = written(tmp_path / "log.db", commands_of("arena-week"))
    commands = [each.command_id for each in oracle.events_of(log)]
    within = {number for number in range(1, len(commands)) if commands[number - 1] == commands[number]}
    for position in sorted(within | {*range(0, len(commands), 5 if LONG == 1 else 1), len(commands)}):
        found = replay(log, as_of=position)
        board = list(found.table("arena_leaderboard").rows())
        assert len(board) == len(found.table("accounts"))
        assert all(Decimal(row["drawdown"]) == 0 for row in board if row["total"] == "0.00")  # no cash yet, no fall
        for name, projection in CATALOGUE.items():
            assert projection.on_request or found.table(name).digest()


def test_tables_are_attributes_that_are_completed(log: str) -> None:
    """`dir` has every table of the catalogue, and each is what `table` returns; nothing else is hidden."""
    season = replay(log)
    assert {*CATALOGUE} < {*dir(season)}
    assert not {*CATALOGUE} & {*vars(Replay)}
    assert season.leaderboard.digest() == season.table("leaderboard").digest()
    with pytest.raises(AttributeError, match="no table 'leaderbord'; the nearest is 'leaderboard'"):
        season.leaderbord  # noqa: B018 - it is asked for
    assert "log position 8: 1 contests, 1 questions" in repr(season)


def test_rows_are_chosen_by_ids_and_an_unknown_one_is_named(log: str) -> None:
    """An id that the log has may have no row; one that it has not is a mistake, and the nearest is named first."""
    season = replay(log)
    assert (
        season.table("scores", participant="bob")["score"] == season.table("scores").only("participant", "bob")["score"]
    )
    assert len(season.table("scores", participant="bob", question="rain")) == 1
    assert len(replay(log, as_of=5).table("scores", participant="bob")) == 0
    for column, name, told in (
        ("participant", "bobb", "no participant 'bobb'; it has bob, "),
        ("question", "rian", "no question 'rian'; it has rain"),
        ("contst", "rian", "no column 'contst'; it has contest, "),
    ):
        with pytest.raises(KeyError, match=told):
            season.table("scores", **{column: name})
