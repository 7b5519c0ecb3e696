"""Checking a read model: what differs from its log is told, damage is found, and nothing is built on either."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Corrupt, Refused, Unavailable
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.tables.catalogue import BUILT
from forecast_ledger.replay.cli.main import DAMAGED, FINDINGS, UNREADABLE, USAGE
from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.readmodel.part_store import SYSTEM, rows_digest
from forecast_ledger.replay.readmodel.runner import DRIFTS_SHOWN, Drift, Runner, check_model
from forecast_ledger.replay.readmodel.stored_model import StoredModel
from tests.replay.cli.test_main import run
from tests.replay.readmodel.test_runner import PER_FORECAST, assert_up_to_date, record
from tests.support.effort import LONG, times
from tests.support.given import forecast, opened
from tests.support.logs import commands_of, log_fixture, written
from tests.support.oracle import events_of

FLIPS = times(60)  # bits
LATE: list[Any] = [opened("late"), forecast("late"), forecast("late", "eve", probability="0.2")]


def with_tables(log: str) -> tuple[str, str]:
    """A log, and a read model of it."""
    tables = str(Path(log).with_name("tables.db"))
    with Runner(log, tables, optional=PER_FORECAST) as runner:
        runner.refresh()
    return log, tables


# of forecasts and of trading
season = log_fixture(lambda: [*commands_of("metaculus-2022"), *commands_of("arena-week")], "module", with_tables)


@pytest.fixture
def copied(season: tuple[str, str], tmp_path: Path) -> tuple[str, str]:
    """The same, to be changed."""
    for path in season:
        shutil.copy(path, tmp_path)
    return str(tmp_path / "log.db"), str(tmp_path / "tables.db")


def changed(tables: str, *statements: str) -> None:
    """Change a read model by hand."""
    with closing(sqlite3.connect(tables)) as connection, connection:
        for each in statements:
            connection.execute(each)


def test_a_read_model_is_what_its_log_makes_it(copied: tuple[str, str]) -> None:
    """A check is as of the checkpoint of the read model, while a runner keeps it and after the log has grown."""
    log, tables = copied
    end = events_of(log)[-1]
    with Runner(log, tables) as runner:
        assert check_model(Log(log), tables) == ((end.position, end.digest), [], 0)
        written(log, LATE)
        assert check_model(Log(log), tables).reached.position == end.position
        runner.refresh()
        assert check_model(Log(log), tables) == ((end.position + 3, events_of(log)[-1].digest), [], 0)


def test_a_value_that_was_changed_is_told_with_what_it_should_be(copied: tuple[str, str]) -> None:
    """Table, key and column, the value that the log gives and the one found, and the digest of its part."""
    log, tables = copied
    changed(tables, "UPDATE leaderboard SET prize = '1000000.00' WHERE contest = 'plain' AND participant = 'A'")
    found = check_model(Log(log), tables)
    assert found.drifts == [Drift("leaderboard", ("plain", 2), "prize", "108.00", "1000000.00")]
    done = run("follow", log, tables, "--check")
    assert (done.exit_code, done.stdout.splitlines()) == (
        FINDINGS,
        ["leaderboard ('plain', 2) prize: expected '108.00', found '1000000.00'"],
    )


def test_a_change_with_a_digest_that_fits_it_is_told_all_the_same(copied: tuple[str, str]) -> None:
    """A writer of the file can write matching digests, so a comparison with the log finds it, not the runner."""
    log, tables = copied
    changed(tables, "UPDATE prizes SET prize = '1.00' WHERE contest = 'plain'")
    with closing(sqlite3.connect(tables)) as connection, connection:
        rows = connection.execute("SELECT * FROM prizes WHERE contest = 'plain' ORDER BY participant").fetchall()
        forged = rows_digest(rows)
        connection.execute("UPDATE _parts SET digest = ? WHERE name = 'prizes' AND first = 'plain'", [forged])
    Runner(log, tables).close()
    found = check_model(Log(log), tables)
    assert {(each.table, each.column) for each in found.drifts} == {("prizes", "prize"), ("_parts", "digest")}


@pytest.mark.parametrize("name", [*SYSTEM, *[*BUILT][:: 5 if LONG == 1 else 1]])
def test_a_row_too_many_or_too_few_is_told(copied: tuple[str, str], name: str) -> None:
    """A part loses its digest, or a row belongs to no part; the runner does not start. A long run tries every table."""
    log, tables = copied
    with closing(sqlite3.connect(tables)) as connection, connection:
        names = [each[1] for each in connection.execute(f'PRAGMA table_info("{name}")')]
        if not connection.execute(f'DELETE FROM "{name}"').rowcount:  # noqa: S608 - a name of the catalogue
            values = ", ".join(["'x'"] * len(names))
            connection.execute(f'INSERT INTO "{name}" VALUES ({values})')  # noqa: S608 - likewise
    with pytest.raises(Unavailable, match=r"differ from those that were written"):
        Runner(log, tables)
    if name == "_tracking":
        with pytest.raises(Unavailable, match="differ from those that were written"):
            check_model(Log(log), tables)
    else:
        assert check_model(Log(log), tables).total


def test_a_table_that_is_gone_or_other_is_told_and_made_again(copied: tuple[str, str]) -> None:
    """It is rebuilt as if its projection had another version; so is an index."""
    log, tables = copied
    changed(tables, "DROP TABLE scores", 'DROP INDEX "idx_positions_question"', "ALTER TABLE cash RENAME amount TO x")
    found = check_model(Log(log), tables)
    assert {each.table for each in found.drifts} == {"scores", "positions", "cash"}
    with Runner(log, tables) as runner:
        assert runner.refresh().rows > 0
    assert check_model(Log(log), tables).total == 0


def test_a_read_model_without_digests_is_made_again(copied: tuple[str, str]) -> None:
    """An older version wrote it: only the ledger that it follows and the checkpoint are used."""
    log, tables = copied
    changed(tables, "DROP TABLE _parts", "UPDATE prizes SET prize = '1.00'", "DELETE FROM _places")
    assert {each.table for each in check_model(Log(log), tables).drifts} == {"_parts"}
    with Runner(log, tables) as runner:
        assert runner.refresh().events == 0
    assert check_model(Log(log), tables).total == 0


def test_no_more_differences_than_one_can_read_are_listed(copied: tuple[str, str]) -> None:
    """All are counted."""
    log, tables = copied
    changed(tables, "UPDATE standing SET made_at = 'x'", "UPDATE consensus SET median = '2'")
    changed(tables, "UPDATE journal SET amount = 'x'", "UPDATE cash SET balance = 'x'")
    found = check_model(Log(log), tables)
    assert len(found.drifts) == DRIFTS_SHOWN < found.total
    done = run("follow", log, tables, "--check")
    assert done.stdout.splitlines()[-1] == f"and {found.total - DRIFTS_SHOWN} more"


def test_a_read_model_of_something_else_is_refused(copied: tuple[str, str], tmp_path: Path) -> None:
    """Another ledger's, none, a log that was cut short or rewritten, no log; with the documented exit codes."""
    log, tables = copied
    recorded, short, forked = events_of(log), str(tmp_path / "short.db"), str(tmp_path / "forked.db")
    record(short, recorded[:-1])
    record(forked, recorded[:-1])
    with Ledger.open(forked) as ledger:
        ledger.handle(opened("late"), "fork")
    for location, path, code in (
        (short, tables, DAMAGED),
        (forked, tables, DAMAGED),
        (log, log, UNREADABLE),
        (log, str(tmp_path / "none.db"), UNREADABLE),
        (str(tmp_path / "none.db"), tables, UNREADABLE),
    ):
        done = run("follow", location, path, "--check")
        assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (code, "", 1)
    assert run("follow", log, tables, "--check", "--name", "second").exit_code == UNREADABLE
    assert run("follow", log, tables, "--check", "--wait").exit_code == USAGE
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(Corrupt, match="the read model has followed the log up to"):
        check_model(Log(short), tables)
    with pytest.raises(Refused):
        check_model(Log(log, ""), tables)


def test_what_others_write_while_a_runner_lives_is_found_at_its_next_refresh(copied: tuple[str, str]) -> None:
    """Though that touches another table, or nothing at all; nothing is written then."""
    log, tables = copied
    with Runner(log, tables) as runner:
        runner.refresh()
        changed(tables, "UPDATE leaderboard SET prize = '0.01'")
        with pytest.raises(
            Unavailable, match=r"the rows of '[\w-]+' in leaderboard differ from those that were written"
        ):
            runner.refresh()
        written(log, LATE)
        with pytest.raises(Unavailable, match="delete the file"):
            runner.refresh()
    assert check_model(Log(log), tables).reached.position == len(events_of(log)) - len(LATE)


# --- damage


def flipped(path: str, random: Random) -> None:
    """Turn one bit of a file round."""
    with Path(path).open("r+b") as file:
        place = random.randrange(Path(path).stat().st_size)
        file.seek(place)
        [byte] = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ 1 << random.randrange(8)]))


def readable(tables: str, log: str) -> bool:
    """Return whether every table can be read and agrees with the log."""
    try:
        assert_up_to_date(tables, events_of(log))
    except (AssertionError, Unavailable, sqlite3.Error):
        return False
    return True


def told(act: Callable[[], Any]) -> bool:
    """Return whether a call is refused as no read model or a damaged one; other errors pass."""
    try:
        act()
    except Unavailable:
        return True
    return False


@pytest.mark.parametrize("seed", range(FLIPS))
def test_a_flipped_bit_is_found_or_harms_nobody(copied: tuple[str, str], seed: int) -> None:
    """A start that succeeds leaves every table right and readable; so does a check that finds nothing."""
    log, tables = copied
    flipped(tables, Random(seed))
    sound: list[bool] = []
    if not told(lambda: sound.append(not check_model(Log(log), tables).total)) and sound[0]:
        assert readable(tables, log)
    written(log, LATE)

    def refreshed() -> None:
        with Runner(log, tables) as runner:
            runner.refresh()

    if not told(refreshed):
        assert readable(tables, log)
        assert check_model(Log(log), tables).total == 0


def test_a_schema_that_is_no_text_is_told(copied: tuple[str, str]) -> None:
    """SQLite repeats it in what it says, which then cannot be read either."""
    log, tables = copied
    bad = "UPDATE sqlite_master SET sql = CAST(X'43524541544520E34141' AS TEXT), name = CAST(X'E341' AS TEXT)"
    changed(tables, "PRAGMA writable_schema = 1", f"{bad} WHERE name = 'prizes'")
    for act in (lambda: check_model(Log(log), tables), lambda: Runner(log, tables)):
        with pytest.raises(Unavailable, match=r"damaged|malformed"):
            act()


def overwritten(data: bytes, random: Random) -> bytes:
    """A file with a stretch of chance in it."""
    place = random.randrange(4_096)
    return data[:place] + random.randbytes(random.randint(1, 3_000)) + data[place + 3_000 :]


def swapped(data: bytes, random: Random) -> bytes:
    """A file in which two pages that differ have changed places."""
    pages = [data[begin : begin + 4_096] for begin in range(0, len(data), 4_096)]
    first, second = random.sample(range(len(pages)), 2)
    while pages[first] == pages[second]:
        first, second = random.sample(range(len(pages)), 2)
    pages[first], pages[second] = pages[second], pages[first]
    return b"".join(pages)


def cut(data: bytes, random: Random) -> bytes:
    """The beginning of a file, which is not its header alone."""
    return data[: random.randrange(100, len(data))]


@pytest.mark.parametrize("damage", [overwritten, swapped, cut])
def test_larger_damage_is_told_too(copied: tuple[str, str], damage: Callable[[bytes, Random], bytes]) -> None:
    """Chance in the schema, pages in one another's place, an end that is missing: a line each, and no traceback."""
    log, tables = copied
    whole = Path(tables).read_bytes()
    for seed in range(max(FLIPS // 6, 10)):
        Path(tables).write_bytes(damage(whole, Random(seed)))
        found: list[int] = []
        assert told(lambda: found.append(check_model(Log(log), tables).total)) or found[0]  # noqa: B023 - called at once
        assert told(lambda: Runner(log, tables).refresh())
        with suppress(Unavailable), closing(StoredModel(tables, read_only=True)) as model:
            model.positions("main", "derby", "week-1")
        for beside in ("-wal", "-shm"):
            Path(f"{tables}{beside}").unlink(missing_ok=True)


@pytest.mark.parametrize("seed", range(FLIPS // 4))
def test_a_bit_that_flips_under_a_runner_is_found_by_a_check(copied: tuple[str, str], seed: int) -> None:
    """If the refresh neither stops nor repairs it, the next check finds it."""
    log, tables = copied
    with Runner(log, tables) as runner:
        runner.refresh()
        flipped(tables, Random(seed))
        written(log, LATE)
        with suppress(Unavailable):
            runner.refresh()
    found: list[int] = []
    if not told(lambda: found.append(check_model(Log(log), tables).total)) and not found[0]:
        at = check_model(Log(log), tables).reached.position
        short = f"{log}.short"
        record(short, events_of(log)[:at])
        assert readable(tables, short)
