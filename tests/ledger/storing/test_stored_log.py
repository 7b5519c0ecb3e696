"""Tests of stores: which locations open, which do not, and damage made by other programs."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.batching.forecasts import ForecastColumns
from forecast_ledger.ledger.core.errors import Absent, Corrupt, LedgerError, Refused, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.storing import database, sqlite
from forecast_ledger.ledger.storing.sqlite import SQLite
from forecast_ledger.ledger.storing.sqlite_files import PAGE_SIZE, PRAGMAS
from forecast_ledger.ledger.storing.stored_log import StoredLog, TakenError
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.audit.verify import run_checks
from forecast_ledger.replay.cli.main import UNREADABLE, main
from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.reading.replay import replay
from tests.support.given import NOW, day, opened
from tests.support.logs import written
from tests.support.processes import Command
from tests.support.waiting import PATIENCE, wait_until

Row = tuple[int, str, bytes]


def rows(first: int, last: int) -> list[Row]:
    """Return rows at these positions; the store does not read their content."""
    return [(position, "t", f"row {position}".encode()) for position in range(first, last + 1)]


def filled(path: Path, count: int = 5) -> Path:
    """Create a ledger with so many questions; return its path."""
    return Path(written(path, [opened(f"q{number}") for number in range(count)]))


def changed(path: Path, *statements: str) -> Path:
    """Change a file with SQL; return its path."""
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)
    return path


def positions(path: Path | str, *, read_only: bool = True) -> list[int]:
    """Return the positions that a reader gets, with every digest checked."""
    with closing(StoredLog.open(str(path), "main", read_only=read_only)) as store:
        return [recorded.position for page in log.unseal_pages(store.pages()) for recorded in page]


def stops_at(path: Path) -> list[int]:
    """Return where a reader of the store, and a writer, find the damage."""
    damage_positions = []
    with pytest.raises(Corrupt) as caught:
        positions(path)
    damage_positions.append(caught.value.position)
    with Ledger.open(path) as ledger, pytest.raises(Corrupt) as caught:
        ledger.handle(opened("new"), "new")
    return [*damage_positions, caught.value.position]


def test_rows_come_back_in_order_of_position(tmp_path: Path) -> None:
    """Reading returns at most `limit` rows after a position, also from another connection."""
    with closing(StoredLog.open(str(tmp_path / "a.db"), "main")) as one:
        assert one.read(0) == []
        one.append(rows(1, 3))
        one.append(rows(4, 5))
        assert one.read(0) == [b"row 1", b"row 2", b"row 3", b"row 4", b"row 5"]
        assert one.read(2, limit=2) == [b"row 3", b"row 4"]
        assert one.read(5) == []
        with closing(StoredLog.open(str(tmp_path / "a.db"), "main", read_only=True)) as other:
            assert other.read(3) == [b"row 4", b"row 5"]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6])
def test_pages_cover_every_row_once(limit: int) -> None:
    """The size of a page does not matter, nor whether the last page is full."""
    with closing(StoredLog.open(":memory:", "main")) as memory:
        memory.append(rows(1, 5))
        pages = list(memory.pages(limit=limit))
        assert [row for page in pages for row in page] == [state for *_, state in rows(1, 5)]
        assert all(1 <= len(page) <= limit for page in pages)
        assert [row for page in memory.pages(3, limit) for row in page] == [b"row 4", b"row 5"]


def test_a_position_is_taken_once(tmp_path: Path) -> None:
    """Of two writers, one wins; no row of the other is recorded, not even at free positions."""
    with (
        closing(StoredLog.open(str(tmp_path / "a.db"), "main")) as one,
        closing(StoredLog.open(str(tmp_path / "a.db"), "main")) as other,
    ):
        one.append(rows(1, 2))
        with pytest.raises(TakenError):
            other.append(rows(2, 4))
        with pytest.raises(TakenError):
            other.append([*reversed(rows(2, 4))])
        assert other.read(0) == one.read(0) == [b"row 1", b"row 2"]


def test_ledgers_of_two_names_in_one_file_are_two_ledgers(tmp_path: Path) -> None:
    """Each ledger has its own positions, ids and damage."""
    path = tmp_path / "a.db"
    with Ledger.open(path, "one") as one, Ledger.open(path, "two") as two:
        assert one.handle(opened(), "c1").first == 1
        assert two.handle(opened("snow"), "c1").first == 1
        assert one.handle(opened("snow"), "c2").first == 2
        assert (one.head().position, two.head().position) == (2, 1)
    changed(path, "DELETE FROM stored_events WHERE originator_id = 'one' AND originator_version = 1")
    with Ledger.open(path, "one") as one, Ledger.open(path, "two") as two:
        assert two.head().position == 1
        with pytest.raises(Corrupt):
            one.head()


@pytest.mark.parametrize("name", ["o'brien", "'", "''); DROP TABLE stored_events; --", "?", ":name", '"', "😀"])
def test_a_ledgers_name_is_not_read_as_sql(tmp_path: Path, name: str) -> None:
    """Any id is the name of a ledger, beside another one in the same file."""
    with Ledger.open(tmp_path / "a.db", name) as ledger, Ledger.open(tmp_path / "a.db") as other:
        assert ledger.handle(opened(), "c1").first == other.handle(opened(), "c1").first == 1
        assert ledger.handle(opened("snow"), "c2").first == 2
        assert (ledger.head().position, other.head().position) == (2, 1)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        names = connection.execute("SELECT originator_id FROM stored_events ORDER BY rowid").fetchall()
        assert names == [(name,), ("main",), (name,)]


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
def test_the_encoding_of_a_database_does_not_change_its_rows(tmp_path: Path, encoding: str) -> None:
    """A program may have created an empty database whose texts are UTF-16; rows are the same bytes in it."""
    path = changed(tmp_path / "a.db", f"PRAGMA encoding = '{encoding}'", "CREATE TABLE t (a)", "DROP TABLE t")
    count = 2 * sqlite._AT_ONCE + 3
    forecasts = ForecastColumns(
        id=[f"f{number}" for number in range(count)],
        at=[day(11)] * count,
        question=["rain", *["regen é雪"] * (count - 1)],
        participant=["ada", *["bob é雪"] * (count - 1)],
        probability=["0.7"] * count,
    )
    kept = list[list[bytes]]()
    for place in (path, ":memory:"):
        with Ledger.open(place, clock=lambda: NOW) as ledger:
            ledger.handle(opened(), "c1")
            ledger.handle(opened("regen é雪"), "c2")
            outcomes = ledger.handle_many(forecasts)
            assert [outcome.last for outcome in outcomes if isinstance(outcome, Receipt)] == [*range(3, 3 + count)]
            kept.append(ledger._store.read(0, 2 * count))
    assert kept[0] == kept[1]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA encoding").fetchone() == (encoding,)
    assert run_checks(Log(str(path))).damage == []


@pytest.mark.parametrize("most", [sqlite._MOST_AT_ONCE, 500])
def test_rows_stand_in_the_file_in_the_order_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Rows of many types, few or many of one type, and rows too long for one statement, are inserted in their order."""
    monkeypatch.setattr(sqlite, "_MOST_AT_ONCE", most)
    counts = [1, sqlite._AT_ONCE, 2, 3 * sqlite._AT_ONCE + 1, sqlite._AT_ONCE - 1, sqlite._AT_ONCE, 1]
    types = [f"t{number}" for number, count in enumerate(counts) for _ in range(count)]
    new = [(position, topic, f"row {position}".encode()) for position, topic in enumerate(types, 1)]
    with closing(StoredLog.open(tmp_path / "a.db", "main")) as store:
        store.append(new)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        query = "SELECT originator_version, topic, state FROM stored_events ORDER BY rowid"
        assert connection.execute(query).fetchall() == new


def test_rows_are_inserted_without_numbered_placeholders_where_they_warn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.12.0 to 3.12.3 take the numbers for names, and warn of them in each statement."""
    monkeypatch.setattr(sqlite, "_MOST_AT_ONCE", 0)
    monkeypatch.setattr(sqlite, "_INSERT_MANY", "not to be executed")
    assert not re.search(r"\?\d", sqlite._INSERT)
    new = [(position, "t", f"row {position}".encode()) for position in range(1, 3 * sqlite._AT_ONCE)]
    with closing(StoredLog.open(tmp_path / "a.db", "main")) as store:
        store.append(new)
        assert store.read(0) == [row for *_, row in new]


@pytest.mark.parametrize("name", ["", "x" * 201, "a\n", " a"])
def test_a_ledgers_name_is_an_id(tmp_path: Path, name: str) -> None:
    """A name that is not an id is refused, and no file is created."""
    with pytest.raises(Refused):
        Ledger.open(tmp_path / "a.db", name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("where", "position"), [("= 1", 1), ("= 2", 2), ("= 4", 4), ("IN (2, 4)", 2), ("< 3", 1), ("IN (1, 2, 3, 4)", 1)]
)
def test_a_missing_row_is_found_by_the_gap(tmp_path: Path, where: str, position: int) -> None:
    """Positions are 1, 2, 3 … without gaps; the first missing one is named."""
    path = changed(filled(tmp_path / "a.db"), f"DELETE FROM stored_events WHERE originator_version {where}")  # noqa: S608
    assert stops_at(path) == [position, position]


def test_a_missing_row_is_found_across_pages() -> None:
    """A gap is found at the edge of a page as well as within one."""
    for missing in range(1, 7):
        with closing(StoredLog.open(":memory:", "main")) as memory:
            memory.append([row for row in rows(1, 7) if row[0] != missing])
            with pytest.raises(Corrupt) as caught:
                list(memory.pages(limit=2))
            assert caught.value.position == missing


CHANGES = {
    "value": "SET state = CAST(replace(CAST(state AS TEXT), '\"q2\"', '\"qX\"') AS BLOB)",
    "text in place of bytes": "SET state = CAST(state AS TEXT)",
    "value, as text": "SET state = replace(CAST(state AS TEXT), '\"q2\"', '\"qX\"')",
    "nothing": "SET state = NULL",
    "number": "SET state = 7",
    "no bytes": "SET state = x''",
    "row before": "SET state = (SELECT state FROM stored_events WHERE originator_version = 2)",
    "row after": "SET state = (SELECT state FROM stored_events WHERE originator_version = 4)",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_row_changed_with_sql_is_found(tmp_path: Path, change: str) -> None:
    """A changed row is found, whatever its new value and type."""
    path = changed(filled(tmp_path / "a.db"), f"UPDATE stored_events {change} WHERE originator_version = 3")
    assert stops_at(path) == [3, 3]


def test_rows_that_swapped_places_are_found(tmp_path: Path) -> None:
    """The bytes of rows 2 and 3 are right, but their positions are exchanged."""
    swap = [
        "UPDATE stored_events SET originator_version = -1 WHERE originator_version = 2",
        "UPDATE stored_events SET originator_version = 2 WHERE originator_version = 3",
        "UPDATE stored_events SET originator_version = 3 WHERE originator_version = -1",
    ]
    assert stops_at(changed(filled(tmp_path / "a.db"), *swap)) == [2, 2]


def test_a_row_added_with_sql_is_found(tmp_path: Path) -> None:
    """A copy of the last row at the next position is found, and a row at a position that is not a number."""
    copy = "INSERT INTO stored_events SELECT originator_id, {}, topic, state FROM stored_events"
    copy += " WHERE originator_version = 5"
    assert stops_at(changed(filled(tmp_path / "a.db"), copy.format("6"))) == [6, 6]
    assert stops_at(changed(filled(tmp_path / "b.db"), copy.format("'six'"))) == [6, 6]
    assert stops_at(changed(filled(tmp_path / "c.db"), copy.format("5.5"))) == [6, 6]


@pytest.mark.parametrize(
    ("becomes", "position", "says"),
    [
        ("3.5 WHERE originator_version = 3", 3, "expected log position 3; found a row at 3.5"),
        ("4.5 WHERE originator_version = 5", 5, "expected log position 5; found a row at 4.5"),
        ("0.5 WHERE originator_version = 1", 1, "expected log position 1; found a row at 0.5"),
        ("0 WHERE originator_version = 5", 1, "expected log position 1; found a row at 0"),
        ("-7 WHERE originator_version = 1", 1, "expected log position 1; found a row at -7"),
        ("-1e300 WHERE originator_version = 5", 1, "expected log position 1; found a row at -1e+300"),
        ("'last' WHERE originator_version = 5", 5, "expected log position 5; found a row at 'last'"),
        ("x'05' WHERE originator_version = 5", 5, "expected log position 5; found a row at b'\\x05'"),
    ],
)
def test_a_row_without_a_valid_log_position_is_found(tmp_path: Path, becomes: str, position: int, says: str) -> None:
    """Positions are integers from 1 on, although SQLite also stores a fraction or a text in their column."""
    path = changed(filled(tmp_path / "a.db"), f"UPDATE stored_events SET originator_version = {becomes}")  # noqa: S608
    assert stops_at(path) == [position, position]
    with pytest.raises(Corrupt, match=f"^log position {position}: {re.escape(says)}$"):
        positions(path)


@pytest.mark.parametrize("place", range(1, 8))
def test_a_position_that_is_a_fraction_is_found_on_every_page(tmp_path: Path, place: int) -> None:
    """The fraction is found even if a page has as many rows as it should have."""
    fraction = f"UPDATE stored_events SET originator_version = {place - 0.5} WHERE originator_version = {place}"  # noqa: S608
    path = changed(filled(tmp_path / "a.db", 7), fraction)
    with closing(StoredLog.open(path, "main", read_only=True)) as store, pytest.raises(Corrupt) as caught:
        list(store.pages(limit=3))
    assert caught.value.position == place


@pytest.mark.parametrize(
    "name", ["a b.db", "a%20b.db", "a?b.db", "a?mode=memory.db", "a#b.db", "a&b=c.db", ":memory:.db"]
)
@pytest.mark.parametrize("suffix", ["", ";x", "\u00e9", "'\""])
def test_a_path_is_taken_as_it_is(tmp_path: Path, name: str, suffix: str) -> None:
    """No part of a file name is read as a URL: that file is created, and no other."""
    path = tmp_path / (name + suffix)
    filled(path, 1)
    assert [file.name for file in tmp_path.iterdir() if not file.name.endswith(("-wal", "-shm"))] == [path.name]
    assert positions(path) == [1]
    assert positions(str(path)) == [1]


def test_a_relative_path_is_relative_to_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path stays the same file when the process changes its folder."""
    monkeypatch.chdir(tmp_path)
    with Ledger.open("a.db") as ledger:
        monkeypatch.chdir("/")
        ledger.handle(opened(), "c1")
    assert positions(tmp_path / "a.db") == [1]


def test_a_file_in_memory_is_gone_when_closed() -> None:
    """A database in memory belongs to one ledger only."""
    with Ledger.open(":memory:") as one, Ledger.open(":memory:") as other:
        one.handle(opened(), "c1")
        assert other.head().position == 0
    assert not Path(":memory:").exists()


def test_a_url_with_scheme_sqlite_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in other libraries' URLs, three slashes start a relative path and four an absolute one."""
    filled(tmp_path / "a b.db")
    assert positions(f"sqlite:///{tmp_path}/a%20b.db") == [1, 2, 3, 4, 5]
    monkeypatch.chdir(tmp_path)
    assert positions("sqlite:///a%20b.db") == [1, 2, 3, 4, 5]


def unavailable(path: Path | str, *, read_only: bool = False) -> str:
    """Return why a store does not open, or cannot be read or written."""
    with pytest.raises(Unavailable) as caught:
        positions(path, read_only=read_only)
    return str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "host=127.0.0.1 dbname=x",
        "dbname = x",
        "user=ada password=secret",
        "service=ledgers",
        "postgres:/x",
        "postgresql:x",
        "sqlite:/x.db",
        "sqlite3:x.db",
        "file:x.db",
        "http:/example.org/x.db",
        "mysql:x",
        "HOST=h",
        "127.0.0.1:5432",
        "app@127.0.0.1:54817",
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_an_address_that_is_mistyped_is_no_file(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, read_only: bool
) -> None:
    """The remedy names the forms that there are, and no file is made. A file of such a name begins with ./"""
    monkeypatch.chdir(tmp_path)
    said = unavailable(address, read_only=read_only)
    assert "write postgresql://USER@HOST:PORT/DATABASE, sqlite:///PATH, or a path" in said
    assert "secret" not in said
    assert [*tmp_path.iterdir()] == []
    if "/" not in address:
        Ledger.open(f"./{address}").close()
        assert (tmp_path / address).is_file()


@pytest.mark.parametrize(
    "path", ["a=b.db", "2026-03-01T10:30.db", "hosts.db", "x:y.db", "spring: cup.db", "mail@home.db"]
)
def test_a_path_with_such_characters_is_a_file(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is an address of a known kind is refused."""
    monkeypatch.chdir(tmp_path)
    Ledger.open(path).close()
    assert (tmp_path / path).is_file()


@pytest.mark.parametrize("url", ["mysql://host/db", "mongodb+srv://x", "://"])
@pytest.mark.parametrize("read_only", [False, True])
def test_an_unknown_scheme_is_refused(url: str, read_only: bool) -> None:
    """The message says what a location can be."""
    assert ":// is not supported; give a file path or a postgresql:// URL" in unavailable(url, read_only=read_only)


@pytest.mark.parametrize("password", ["s@cr3t", "s/cr3t", "s:cr3t", "s@c/r3t", "cr3t\n@r3t"])
def test_no_part_of_a_password_is_shown(password: str) -> None:
    """The password is hidden whatever characters it has, and even if the URL is malformed."""
    for read_only in (True, False):
        message = unavailable(f"postgresql://ada:{password}@127.0.0.1:1/none?x", read_only=read_only)
        assert "r3t" not in message


@pytest.mark.parametrize("url", ["postgresql://127.0.0.1:1/none", "postgres://127.0.0.1:1/none"])
def test_a_database_server_that_is_not_there_is_unavailable(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says that no server listens on port 1, or that the driver is missing, without a traceback."""
    monkeypatch.setattr(database, "CONNECT_TIMEOUT", 1)
    assert url in unavailable(url)


@pytest.mark.parametrize(
    "url", ["postgresql://127.0.0.1:x/none", "postgresql://127.0.0.1:99999/none", "postgresql://[::1/none"]
)
def test_a_database_url_that_makes_no_sense_is_unavailable(url: str) -> None:
    """A port is a number up to 65535."""
    assert url in unavailable(url)


def test_reading_a_file_that_is_not_there_creates_nothing(tmp_path: Path) -> None:
    """A reader creates nothing; the message says how to start a ledger."""
    path = tmp_path / "none.db"
    assert "no such ledger" in unavailable(path, read_only=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("read_only", [False, True])
def test_a_missing_folder_is_not_created(tmp_path: Path, read_only: bool) -> None:
    """A missing folder is not created, and a file is not used as a folder."""
    (tmp_path / "file").write_bytes(b"")
    for path in [tmp_path / "none" / "a.db", tmp_path / "file" / "a.db"]:
        assert str(path) in unavailable(path, read_only=read_only)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("read_only", [False, True])
def test_a_folder_is_not_a_ledger(tmp_path: Path, read_only: bool) -> None:
    """A folder or the empty path is refused."""
    assert str(tmp_path) in unavailable(tmp_path, read_only=read_only)
    assert unavailable("", read_only=read_only)


@pytest.mark.parametrize("path", ["a\0b.db", "a" * 5_000 + ".db", "\udcff\ud800.db"], ids=["nul", "long", "surrogate"])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_path_that_no_file_can_have_is_unavailable(tmp_path: Path, path: str, read_only: bool) -> None:
    """No other file is created instead."""
    unavailable(f"{tmp_path}/{path}", read_only=read_only)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    "content", [b"hello\n", b"{}" * 5_000, b"SQLite format 2\0" + b"\0" * 5_000], ids=["a", "b", "c"]
)
def test_a_file_that_is_not_a_database_is_unavailable_and_unchanged(
    tmp_path: Path, content: bytes, read_only: bool
) -> None:
    """The message says so, and the file is not changed: it may belong to another program."""
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    assert "not a ledger" in unavailable(path, read_only=read_only)
    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_ledger_when_written_and_is_none_when_read(tmp_path: Path) -> None:
    """An empty file is an empty database; a reader leaves it empty."""
    path = tmp_path / "a.db"
    path.write_bytes(b"")
    assert "not a ledger" in unavailable(path, read_only=True)
    assert path.read_bytes() == b""
    assert positions(filled(path)) == [1, 2, 3, 4, 5]


def test_another_programs_database_is_not_a_ledger(tmp_path: Path) -> None:
    """A reader reports it and changes nothing."""
    path = changed(tmp_path / "other.db", "CREATE TABLE people (name TEXT)")
    before = path.read_bytes()
    assert "not a ledger" in unavailable(path, read_only=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_another_programs_database_is_not_written_into(tmp_path: Path, journal: str) -> None:
    """A file that has only other tables stays the same, byte for byte; a file whose tables are deleted can be used."""
    path = changed(tmp_path / "other.db", "CREATE TABLE people (name TEXT)", f"PRAGMA journal_mode = {journal}")
    before = path.read_bytes()
    with pytest.raises(Unavailable, match="no table stored_events; its tables are: people"):
        Ledger.open(path)
    assert path.read_bytes() == before
    changed(path, "DROP TABLE people")
    assert positions(filled(path)) == [1, 2, 3, 4, 5]


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 'main', i, 't', zeroblob(9) FROM n"
STRANGE = {
    "the trigger 'swallow'": ["CREATE TRIGGER swallow BEFORE INSERT ON stored_events BEGIN SELECT RAISE(IGNORE); END"],
    "the view 'everything'": [f"CREATE VIEW everything AS {ENDLESS}"],
    "the index 'states'": ["CREATE INDEX states ON stored_events (upper(state))"],
    "the table 'people'": ["CREATE TABLE people (name TEXT)"],
    "the table 'found'": ["CREATE VIRTUAL TABLE found USING fts5 (text)"],
    "table 'stored_events' has another definition": [
        "ALTER TABLE stored_events ADD COLUMN more AS (zeroblob(900000000))"
    ],
    "TABLE 'stored_events' has another definition": ["ALTER TABLE stored_events ADD COLUMN more TEXT DEFAULT 'x'"],
    "the view 'stored_events'": ["ALTER TABLE stored_events RENAME TO kept", f"CREATE VIEW stored_events AS {ENDLESS}"],
}


@pytest.mark.parametrize("says", STRANGE)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_with_anything_but_a_ledgers_table_is_not_opened(tmp_path: Path, says: str, read_only: bool) -> None:
    """The message names the entry, no SQL of the file is run, and the file does not change."""
    path = changed(filled(tmp_path / "a.db"), *STRANGE[says])
    before = path.read_bytes()
    message = unavailable(path, read_only=read_only)
    assert (says.lower() if "another definition" in says else says.removeprefix("the ")) in message
    assert path.read_bytes() == before


def test_an_endless_view_is_refused_at_once_by_every_command(tmp_path: Path) -> None:
    """A view in place of the table gives exit code 3 before any row is read."""
    path = changed(tmp_path / "a.db", f"CREATE VIEW stored_events AS {ENDLESS}")
    (tmp_path / "file.jsonl").write_bytes(b"")
    command_lines = [
        *(["verify"], ["replay"], ["leaderboard", "k"], ["log"], ["show", "1"], ["checkpoint"], ["pay", "k"]),
        *(["append", str(tmp_path / "file.jsonl")], ["append", str(tmp_path / "file.jsonl"), "--dry-run"]),
        *(["follow", str(tmp_path / "model.db"), "--once"], ["export", str(tmp_path / "out"), "--format", "csv"]),
    ]
    for command, *rest in command_lines:
        result = CliRunner().invoke(main, [command, str(path), *rest])
        assert (result.exit_code, "the view 'stored_events'" in result.stderr) == (UNREADABLE, True), result.output


def test_what_sqlite_itself_does_to_a_file_changes_nothing(tmp_path: Path) -> None:
    """Statistics for the planner, another page size, incremental vacuuming and a user version change nothing."""
    path = filled(tmp_path / "a.db")
    statements = ["ANALYZE", "PRAGMA journal_mode = DELETE", "PRAGMA page_size = 4096", "PRAGMA user_version = 7"]
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in [*statements, "PRAGMA auto_vacuum = INCREMENTAL", "VACUUM"]:
            database.execute(statement)
    assert positions(path) == positions(path, read_only=False) == [1, 2, 3, 4, 5]


SWALLOWING = {
    "keeps nothing": "BEFORE INSERT ON stored_events BEGIN SELECT RAISE(IGNORE); END",
    "keeps the row elsewhere": """BEFORE INSERT ON stored_events WHEN NEW.originator_id = 'main'
        BEGIN INSERT INTO stored_events VALUES ('x', NEW.originator_version, 't', x''); SELECT RAISE(IGNORE); END""",
    "takes it away again": """AFTER INSERT ON stored_events
        BEGIN DELETE FROM stored_events WHERE originator_version = NEW.originator_version; END""",
    "writes something else": """AFTER INSERT ON stored_events
        BEGIN UPDATE stored_events SET state = x'00' WHERE originator_version = NEW.originator_version; END""",
}


@pytest.mark.parametrize("count", [1, 20])
@pytest.mark.parametrize("trigger", SWALLOWING.values(), ids=SWALLOWING.keys())
def test_rows_that_are_not_stored_are_not_acknowledged(tmp_path: Path, trigger: str, count: int) -> None:
    """If a trigger that was created later discards rows, the append fails; without the trigger, it succeeds."""
    new = [opened(f"new {number}", id=f"new {number}") for number in range(count)]
    path = filled(tmp_path / "a.db")
    with Ledger.open(path) as ledger:
        changed(path, f"CREATE TRIGGER swallow {trigger}")
        with pytest.raises(Unavailable, match="the database changed or dropped the rows"):
            ledger.handle_many(new)
        changed(path, "DROP TRIGGER swallow")
        assert [receipt.first for receipt in ledger.handle_many(new) if isinstance(receipt, Receipt)][-1] == 5 + count
    assert positions(path) == [*range(1, 6 + count)]


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("others", [False, True])
def test_each_connection_has_the_safe_pragmas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_only: bool, others: bool
) -> None:
    """A commit is on disk (FULL), no definition in a file is trusted, and the length of a row is limited.

    Some settings are defaults of the SQLite build in use, so the test checks that other values take effect, too.
    """
    if others:
        for name, value in {"synchronous": 1, "cell_size_check": 0, "trusted_schema": 1}.items():
            monkeypatch.setitem(PRAGMAS, name, value)
    pragmas = {**PRAGMAS} if others else {"synchronous": 2, "trusted_schema": 0, "cell_size_check": 1, "mmap_size": 0}
    sqlite = SQLite(str(filled(tmp_path / "a.db")), "main", read_only=read_only)
    with closing(sqlite), sqlite._files.reading() as cursor:
        connected = cursor.connection
        assert {name: connected.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas} == pragmas
        assert connected.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert connected.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) == database.MAX_ROW_BYTES


def test_a_turn_that_is_interrupted_as_it_begins_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection has the lock of the file by then; it is kept, and would have the lock for ever."""

    def interrupted(cursor: Any, statement: str, _limit: float) -> None:
        cursor.execute(statement)
        raise KeyboardInterrupt

    path = filled(tmp_path / "a.db")
    with Ledger.open(path) as ledger:
        with monkeypatch.context() as patch:
            patch.setattr(sqlite, "execute_when_free", interrupted)
            with pytest.raises(KeyboardInterrupt):
                ledger.handle(opened("lost"), "c")
        with Ledger.open(path) as other:
            assert other.handle(opened("other"), "d").first == 6
        assert ledger.handle(opened("new"), "e").first == 7


def test_a_row_too_long_for_any_command_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row longer than the limit of the store is not read into memory."""
    monkeypatch.setattr("forecast_ledger.ledger.storing.sqlite_files.MAX_ROW_BYTES", 5_000)
    path = changed(filled(tmp_path / "a.db"), "UPDATE stored_events SET state = zeroblob(4000) || state")
    with pytest.raises(Corrupt):
        positions(path)
    path = changed(path, "UPDATE stored_events SET state = zeroblob(1000000) WHERE originator_version = 3")
    with pytest.raises(Corrupt, match="too big"):
        positions(path)


def test_pages_of_long_rows_are_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page has at most so many bytes, but at least a few rows; every row comes once."""
    monkeypatch.setattr("forecast_ledger.ledger.storing.sqlite._PAGE_BYTES", 1_000)
    long_rows = [(position, "t", bytes([position]) * 200) for position in range(1, 31)]
    with closing(StoredLog.open(":memory:", "main")) as memory:
        memory.append(long_rows)
        pages = [*memory.pages()]
        assert [row for page in pages for row in page] == [row for *_, row in long_rows]
        assert max(map(len, pages)) == 8
        assert memory.at([*range(1, 31)]) == [row for *_, row in long_rows]
        assert [row for page, _ in memory.pages_with_types() for row in page] == [row for *_, row in long_rows]


def test_what_lies_before_a_gap_is_read(tmp_path: Path) -> None:
    """A page ends at the gap, so a log can be exported up to its damage."""
    path = changed(filled(tmp_path / "a.db"), "DELETE FROM stored_events WHERE originator_version = 4")
    with closing(StoredLog.open(str(path), "main", read_only=True)) as store:
        assert len(store.read(0)) == 3
        with pytest.raises(Corrupt, match="log position 4: the row is missing; the next one is 5"):
            store.read(3)
    assert replay(str(path), as_of=3).checkpoint.position == 3


@pytest.mark.parametrize("topic", ["CAST(x'ff00fe' AS TEXT)", "NULL", "7", "x'00'", "'question_closed.v1'", "''"])
def test_the_type_beside_a_row_is_compared_and_never_stops_a_reader(tmp_path: Path, topic: str) -> None:
    """The digest does not cover the type, so no result depends on it, even if it is not UTF-8; `verify` reports it."""
    path = changed(filled(tmp_path / "a.db"), f"UPDATE stored_events SET topic = {topic} WHERE originator_version = 3")  # noqa: S608
    assert positions(path) == [1, 2, 3, 4, 5]
    with closing(StoredLog.open(str(path), "main")) as store:
        assert (store.newest(), len(store.at([3, 4]))) == (5, 2)
    report = run_checks(Log(str(path)))
    assert [(result.check, result.found, result.position) for result in report.results if result.found != "ok"] == [
        ("store", "damaged", 3)
    ]
    assert "the event has type question_opened.v1, but the store's column has" in str(report.damage[0])
    with Ledger.open(path) as ledger:
        assert ledger.handle(opened("new"), "new").first == 6


def test_a_table_that_its_index_does_not_agree_with_is_found(tmp_path: Path) -> None:
    """Read through the index, every row is right, but the table itself has another position in the third row."""
    path = filled(tmp_path / "a.db")
    before = path.read_bytes()
    assert before.count(b"main\x03question_opened.v1") == 1
    path.write_bytes(before.replace(b"main\x03question_opened.v1", b"main\x02question_opened.v1"))
    assert positions(path) == [1, 2, 3, 4, 5]
    report = run_checks(Log(str(path)))
    [wrong] = report.damage
    assert (wrong.check, "integrity_check: row 3 missing from index" in str(wrong)) == ("store", True)
    assert run_checks(Log(str(path)), only=["digests"]).damage == []


STATES = [
    (size, wal, shm) for size in (0, 1, 100, 512, None) for wal in (-1, 0, 10, 32, 4_152, None) for shm in (-1, 0, None)
]


def test_a_ledger_left_half_made_by_a_power_cut_says_what_to_do(tmp_path: Path) -> None:
    """Each of its files may be missing or cut: a reader gets a reason that is not about writing; a writer starts the
    ledger or gets a reason.
    """
    script = "import os, sys; from forecast_ledger.ledger.storing.stored_log import StoredLog; "
    script += "kept = StoredLog.open(sys.argv[1], 'main'); os._exit(0)"
    assert Command(str(tmp_path / "made.db"), program=script).ended(PATIENCE).returncode == 0
    whole = {suffix: (tmp_path / f"made.db{suffix}").read_bytes() for suffix in ("", "-wal", "-shm")}
    for number, sizes in enumerate(STATES):
        path = tmp_path / str(number) / "a.db"
        path.parent.mkdir()
        for (suffix, content), size in zip(whole.items(), sizes, strict=True):
            if size != -1:
                path.with_name(f"a.db{suffix}").write_bytes(content[:size])
        assert whether(path, read_only=True) in {"[]", "how to start one", "no database", *half_written(sizes[0])}, (
            sizes
        )
        assert whether(path, read_only=False) in {"[]", *half_written(sizes[0])}, sizes


def half_written(size: int | None) -> set[str]:
    """Return the messages that are allowed for a file whose first page is incomplete."""
    return {"damaged", "no database"} if size in {1, 100, 512} else set()


def whether(path: Path, *, read_only: bool) -> str:
    """Return the result of opening and reading a file."""
    try:
        return str(positions(path, read_only=read_only))
    except Corrupt:
        return "damaged"
    except Unavailable as error:
        message = str(error)
    if "the file is not an SQLite database" in message:
        return "no database"
    return "how to start one" if f"`forecast-ledger append {path} FILE`" in message else message


def test_half_a_transaction_is_reported_to_a_reader(tmp_path: Path) -> None:
    """A reader cannot roll it back, and SQLite's own message would be about writing."""
    path = tmp_path / "a.db"
    script = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.executescript("PRAGMA user_version = 1; PRAGMA cache_size = 1; BEGIN; CREATE TABLE half (t)")
database.executemany("INSERT INTO half VALUES (?)", [("x" * 1000,)] * 5000)
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    assert re.search(
        "a crash has left half a transaction in the file; run `.* append .*`, .* to roll it back",
        unavailable(path, read_only=True),
    )
    assert positions(filled(path)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("schema", ["", "CREATE TABLE people (name TEXT);"], ids=["ours", "another's"])
def test_half_a_transaction_that_a_crash_has_left_is_taken_back_first(tmp_path: Path, schema: str) -> None:
    """SQLite rolls it back for every writer, and only then can the store see which program the file belongs to."""
    path = tmp_path / "a.db"
    script = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.executescript("PRAGMA user_version = 1;" + sys.argv[2] + "PRAGMA cache_size = 1; BEGIN; CREATE TABLE half (t)")
database.executemany("INSERT INTO half VALUES (?)", [("x" * 1000,)] * 5000)
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", script, str(path), schema], check=True)
    assert path.with_name("a.db-journal").stat().st_size
    if schema:
        assert "no table stored_events; its tables are: people" in unavailable(path, read_only=False)
    else:
        assert positions(filled(path)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("read_only", [False, True])
def test_the_empty_text_is_not_a_path(read_only: bool) -> None:
    """The empty text does not stand for the current folder."""
    assert "no file can have this path" in unavailable("", read_only=read_only)


def test_a_copy_made_by_the_database_itself_is_the_same_ledger(tmp_path: Path) -> None:
    """A backup can be read in place, whichever way SQLite wrote it."""
    path = filled(tmp_path / "a.db")
    changed(path, f"VACUUM INTO '{tmp_path / 'vacuumed.db'}'")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(tmp_path / "backup.db")) as target:
        source.backup(target)
    assert positions(tmp_path / "backup.db") == [1, 2, 3, 4, 5]
    assert positions(tmp_path / "vacuumed.db") == [1, 2, 3, 4, 5]


def test_a_truncated_file_never_reads_as_a_shorter_log(tmp_path: Path) -> None:
    """A file cut at any page is damaged or not a database: it is never a sound log with fewer rows, nor another
    exception.
    """
    path = filled(tmp_path / "a.db", 60)
    whole = path.read_bytes()
    assert len(whole) > 20_000
    for length in range(2, len(whole), 3_777):
        cut = tmp_path / f"cut-{length}.db"
        for read_only in [False, True]:
            cut.write_bytes(whole[:length])
            with pytest.raises(LedgerError) as caught:
                positions(cut, read_only=read_only)
            assert isinstance(caught.value, Corrupt | Unavailable)


def test_overwritten_pages_never_pass_for_a_log(tmp_path: Path) -> None:
    """Zeros or noise over any page of rows are found as damage."""
    path = filled(tmp_path / "a.db", 60)
    whole = path.read_bytes()
    for start in range(PAGE_SIZE, len(whole), PAGE_SIZE):
        for filling in [b"\0" * PAGE_SIZE, b"\xa5" * PAGE_SIZE]:
            path.write_bytes(whole[:start] + filling + whole[start + PAGE_SIZE :])
            with pytest.raises(LedgerError) as caught:
                positions(path)
            assert isinstance(caught.value, Corrupt | Unavailable)


def test_a_locked_file_cannot_be_written_and_still_be_read(tmp_path: Path) -> None:
    """If another program holds the file longer than the time-out, writers find it unavailable; afterwards nothing is
    missing.
    """
    path = filled(tmp_path / "a.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as holder, Ledger.open(path, turn=1) as ledger:
        holder.execute("BEGIN EXCLUSIVE")
        assert ledger.head().position == 5
        assert positions(path) == [1, 2, 3, 4, 5]
        with pytest.raises(Unavailable, match="locked"):
            ledger.handle(opened("new"), "new")
        holder.execute("ROLLBACK")
        assert ledger.handle(opened("new"), "new").first == 6


@pytest.mark.parametrize("kind", ["DEFERRED", "IMMEDIATE", "EXCLUSIVE"])
def test_a_file_that_another_is_just_starting_is_waited_for(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that opens a new file waits for the lock, like every writer."""
    path = changed(tmp_path / "a.db", "CREATE TABLE notes (text TEXT)", "DROP TABLE notes")
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute(f"BEGIN {kind}")
        holder.execute("SELECT * FROM sqlite_master").fetchall()
        monkeypatch.setattr(time, "sleep", lambda _: holder.in_transaction and holder.execute("ROLLBACK"))
        with Ledger.open(path) as ledger:
            assert ledger.handle(opened(), "c1").first == 1


@contextmanager
def bound_by_permissions(folder: Path) -> Iterator[None]:
    """Run as a user whom permissions restrict and who owns the folder: root is not restricted."""
    if os.geteuid():
        yield
        return
    for path in [folder, *folder.iterdir()]:
        os.chown(path, 65_534, -1)
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def own_folder() -> Iterator[Path]:
    """Return a folder that every user can reach."""
    folder = Path(tempfile.mkdtemp())
    yield folder
    folder.chmod(0o700)
    shutil.rmtree(folder)


def test_a_file_that_may_only_be_read_is_read_and_not_written(own_folder: Path) -> None:
    """An append fails with a message and changes nothing."""
    path = filled(own_folder / "a.db")
    with bound_by_permissions(own_folder):
        path.chmod(0o400)
        before = path.read_bytes()
        assert positions(path) == [1, 2, 3, 4, 5]
        with Ledger.open(path) as ledger, pytest.raises(Unavailable, match=r"a\.db"):
            ledger.handle(opened("new"), "new")
        assert path.read_bytes() == before


def test_a_file_or_folder_that_may_not_be_used_is_unavailable(own_folder: Path) -> None:
    """The message says that the file cannot be read, or that none can be created."""
    path = filled(own_folder / "a.db")
    with bound_by_permissions(own_folder):
        path.chmod(0o000)
        assert str(path) in unavailable(path)
        assert str(path) in unavailable(path, read_only=True)
        own_folder.chmod(0o500)
        assert str(own_folder / "new.db") in unavailable(own_folder / "new.db")


def test_a_closed_ledger_is_unavailable() -> None:
    """Closing twice is harmless; using a closed ledger raises Unavailable."""
    ledger = Ledger.open(":memory:")
    ledger.handle(opened(), "c1")
    ledger.close()
    ledger.close()
    with pytest.raises(Unavailable):
        ledger.handle(opened("snow"), "c2")
    with pytest.raises(Unavailable):
        list(ledger.read())


def test_no_read_begins_while_a_ledger_is_being_closed(tmp_path: Path) -> None:
    """It waits for those that have begun, and for no others: threads that read without a pause would keep it open."""
    store = StoredLog.open(str(filled(tmp_path / "a.db")), "main")
    closing_thread = threading.Thread(target=store.close)
    with store.turn() as turn:
        closing_thread.start()
        wait_until(lambda: store._is_closing)
        with pytest.raises(Unavailable, match="the ledger is closed"):
            store.newest()
        assert len(turn.read(0)) == 5
        assert closing_thread.is_alive()
    closing_thread.join(PATIENCE)
    assert store.is_closed


def test_without_its_driver_a_postgres_url_says_what_to_install() -> None:
    """The driver is an extra, and nothing else in the project needs it."""
    program = "import sys; sys.modules['psycopg'] = None; from forecast_ledger.ledger.storing.writer import Ledger; Ledger.open('postgresql://h/d')"
    done = Command(program=program).ended(PATIENCE)
    assert (
        "Unavailable: postgresql://h/d: psycopg[pool] is not installed; run pip install 'forecast-ledger[postgres]', "
        "in a clone of the repository pip install '.[postgres]'" in done.stderr
    )


def test_only_a_new_file_gets_pages_of_our_size(tmp_path: Path) -> None:
    """A file of an earlier version keeps its pages, and is written as before."""
    path = filled(tmp_path / "new.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        assert database.execute("PRAGMA page_size").fetchall() == [(PAGE_SIZE,)]
        for statement in ("PRAGMA journal_mode = DELETE", "PRAGMA page_size = 4096", "VACUUM"):
            database.execute(statement)
    with Ledger.open(path) as ledger:
        assert ledger.handle(opened("again"), command_id="again").first == 6
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA page_size").fetchall() == [(4_096,)]


def test_a_path_that_ends_in_a_slash_is_no_file(tmp_path: Path) -> None:
    """Whether there is such a file or not; nothing is made."""
    path = filled(tmp_path / "a.db")
    for location, read_only in ((f"{path}/", True), (f"{path}/", False), (f"{tmp_path}/b.db/", False)):
        with pytest.raises(Unavailable, match="leave the slash out"):
            StoredLog.open(location, "main", read_only=read_only)
    with pytest.raises(Absent, match="leave the slash out"):
        StoredLog.open(f"{tmp_path}/b.db/", "main", read_only=True)
    assert not (tmp_path / "b.db").exists()
