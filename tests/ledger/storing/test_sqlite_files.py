"""Tests of an SQLite file that a ledger has open: others lock, delete, move or replace it."""

import os
import shutil
import sqlite3
import sys
import time
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from eventsourcing.sqlite import SQLiteDatastore

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Unavailable, Uncertain
from forecast_ledger.ledger.model.log import NewRows
from forecast_ledger.ledger.storing import database, sqlite, sqlite_files
from forecast_ledger.ledger.storing.sqlite_files import _Pool
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import opened

removable = pytest.mark.skipif(sys.platform == "win32", reason="Windows does not let a file be deleted that is open")
GONE = r"log\.db: the file that was opened is not there any more; put it back, or open the ledger again"


def replace(path: Path) -> None:
    """Replace a file by a copy of it, as `mv` does."""
    shutil.copyfile(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def point_elsewhere(path: Path) -> None:
    """Let the path be a link to another file, as a deployment may."""
    path.rename(path.with_name("first"))
    path.with_name("second").touch()
    path.symlink_to(path.with_name("second"))


LOST: list[Callable[[Path], object]] = [
    Path.unlink,
    replace,
    point_elsewhere,
    lambda path: path.parent.rename(f"{path.parent}-2"),
]


@removable
@pytest.mark.parametrize("lose", LOST, ids=["deleted", "replaced", "linked", "folder renamed"])
def test_nothing_is_acknowledged_once_the_file_is_not_there(tmp_path: Path, lose: Callable[[Path], object]) -> None:
    """A command, one sent again, a command that is refused, a read and a subscription all say so.

    Nobody who opens the path would find what is recorded in the file.
    """
    (tmp_path / "logs").mkdir()
    path = tmp_path / "logs" / "log.db"
    with Ledger.open(path) as ledger:
        ledger.handle(opened("q1"), "c1")
        events = ledger.subscribe()
        assert next(iter(events)).command_id == "c1"
        lose(path)
        for command_id in ("c2", "c1", "c2"):
            with pytest.raises(Unavailable, match=GONE):
                ledger.handle(opened("q1"), command_id)
        with pytest.raises(Unavailable, match=GONE):
            ledger.head()
        with pytest.raises(Unavailable, match=GONE):
            list(events)


@removable
@pytest.mark.parametrize("lose", LOST, ids=["deleted", "replaced", "linked", "folder renamed"])
def test_no_cursor_is_moved_once_the_file_is_not_there(tmp_path: Path, lose: Callable[[Path], object]) -> None:
    """Its consumer would begin again at an earlier event of the file that is there, or find no cursor."""
    path = tmp_path / "logs" / "log.db"
    path.parent.mkdir()
    with Ledger.open(path) as ledger:
        ledger.handle(opened("q1"), "c1")
    with closing(StoredLog.open(path, "main")) as store:
        taken = ("main", "reader", 1, "digest", "me", 1)
        assert store.change_cursor(database.TAKE_CURSOR, taken)
        lose(path)
        with pytest.raises(Unavailable, match=GONE):
            store.change_cursor(database.TAKE_CURSOR, taken)


@removable
def test_a_file_that_is_put_back_is_written_to_again(tmp_path: Path) -> None:
    """Two writers go on where they were, and nothing is lost."""
    path = tmp_path / "log.db"
    with Ledger.open(path) as one, Ledger.open(path) as two:
        assert one.handle(opened("q1"), "c1").first == two.handle(opened("q2"), "c2").first - 1 == 1
        path.rename(tmp_path / "away")
        for ledger in (one, two):
            with pytest.raises(Unavailable, match=GONE):
                ledger.handle(opened("q3"), "c3")
        (tmp_path / "away").rename(path)
        assert [one.handle(opened("q3"), "c3").first, two.handle(opened("q4"), "c4").first] == [3, 4]
    with Ledger.open(path) as again:
        assert again.head().position == 4


@removable
@pytest.mark.parametrize("put_back", [True, False])
def test_a_file_that_is_lost_during_a_commit_leaves_the_outcome_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, put_back: bool
) -> None:
    """The file is put back or not: sent again, the command is recorded once in either case."""
    path, commit = tmp_path / "log.db", sqlite._Turn._commit

    def losing(turn: sqlite._Turn) -> None:
        path.rename(tmp_path / "away")
        commit(turn)

    with Ledger.open(path) as ledger:
        ledger.handle(opened("q1"), "c1")
        monkeypatch.setattr(sqlite._Turn, "_commit", losing)
        with pytest.raises(Uncertain, match=GONE):
            ledger.handle(opened("q2"), "c2")
        monkeypatch.undo()
        if put_back:
            (tmp_path / "away").rename(path)
            assert ledger.handle(opened("q2"), "c2") == Receipt("c2", 2, 2, duplicate=True)
    with Ledger.open(path) as new:
        assert new.handle(opened("q2"), "c2") == (
            Receipt("c2", 2, 2, duplicate=True) if put_back else Receipt("c2", 1, 1)
        )


@removable
def test_a_file_that_is_replaced_while_it_is_opened_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is to the file that was there before."""
    path, open_datastore = tmp_path / "log.db", sqlite_files._open_datastore
    with Ledger.open(path) as ledger:
        ledger.handle(opened("q1"), "c1")

    def replacing(*given: Any, **named: Any) -> SQLiteDatastore:
        datastore = open_datastore(*given, **named)
        replace(path)
        return datastore

    monkeypatch.setattr(sqlite_files, "_open_datastore", replacing)
    with pytest.raises(Unavailable, match=GONE):
        Ledger.open(path)


@removable
def test_a_path_that_names_the_same_file_in_another_way_is_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path stays that of the folder in which it was opened; another link may take its place."""
    (tmp_path / "work").mkdir()
    (tmp_path / "log.db").symlink_to(tmp_path / "work" / "real.db")
    monkeypatch.chdir(tmp_path)
    with Ledger.open("log.db") as ledger:
        ledger.handle(opened("q1"), "c1")
        monkeypatch.chdir(tmp_path / "work")
        (tmp_path / "log.db").unlink()
        os.link(tmp_path / "work" / "real.db", tmp_path / "log.db")
        assert ledger.handle(opened("q2"), "c2").first == 2


@removable
def test_a_ledger_in_memory_has_no_file_to_lose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of that name means nothing to it."""
    monkeypatch.chdir(tmp_path)
    Path(":memory:").touch()
    with Ledger.open(":memory:") as ledger:
        Path(":memory:").unlink()
        assert ledger.handle(opened("q1"), "c1").first == 1


@pytest.fixture
def without_wal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, sqlite3.Connection]]:
    """Return a ledger of one event in a file that has no WAL, as on some file systems, and a connection to it."""
    path = tmp_path / "log.db"
    with Ledger.open(path) as ledger:
        ledger.handle(opened("q1"), "c1")
    monkeypatch.setattr(_Pool, "is_journal_mode_wal", property(lambda _: True, lambda *_: None), raising=False)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as holder:
        holder.execute("PRAGMA journal_mode = DELETE")
        yield path, holder
        assert holder.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def many(first: int) -> list[NewRows]:
    """Return 10 MB of rows, more than SQLite keeps in memory before it writes to the file."""
    return [NewRows(first, "seen.v1", [b"x" * 5_000] * 2_000)]


def record_many(path: Path) -> None:
    """Record them after the one event."""
    with closing(StoredLog.open(path, "main")) as store, store.turn() as turn:
        turn.append(many(2))


def move_cursor(path: Path) -> None:
    """Create a cursor at the first event."""
    with closing(StoredLog.open(path, "main")) as store:
        store.change_cursor(database.TAKE_CURSOR, ("main", "reader", 1, "digest", "me", 1))


# Which lock another program holds, and what waits for it.
WAITS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "open to write": ("EXCLUSIVE", lambda path: Ledger.open(path).close()),
    "open to read": ("EXCLUSIVE", lambda path: StoredLog.open(path, "main", read_only=True).close()),
    "begin a turn": ("IMMEDIATE", record_many),
    "commit": ("DEFERRED", record_many),
    "move a cursor": ("DEFERRED", move_cursor),
}


def hold(holder: sqlite3.Connection, kind: str) -> None:
    """Lock a file: against readers, against writers, or against commits."""
    holder.execute(f"BEGIN {kind}")
    assert holder.execute("SELECT count(*) FROM stored_events").fetchone()


@pytest.mark.parametrize("what", WAITS)
def test_a_file_without_a_wal_is_waited_for(
    without_wal: tuple[Path, sqlite3.Connection], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then readers wait for commits, and commits for readers."""
    (path, holder), (kind, wait) = without_wal, WAITS[what]
    hold(holder, kind)
    monkeypatch.setattr(time, "sleep", lambda _: holder.in_transaction and holder.execute("ROLLBACK"))
    wait(path)
    assert not holder.in_transaction


@pytest.mark.parametrize("what", WAITS)
def test_an_interrupt_ends_the_wait_for_a_file_without_a_wal(
    without_wal: tuple[Path, sqlite3.Connection], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite itself would wait for half a minute, and not sleep in Python, which looks for signals there."""
    (path, holder), (kind, wait) = without_wal, WAITS[what]
    hold(holder, kind)
    monkeypatch.setattr(time, "sleep", lambda _: interrupt_main())
    with pytest.raises(KeyboardInterrupt):
        wait(path)
    holder.execute("ROLLBACK")


@pytest.mark.parametrize("is_new", [False, True])
def test_an_interrupt_ends_a_read_that_waits_for_a_file_without_a_wal(
    without_wal: tuple[Path, sqlite3.Connection], monkeypatch: pytest.MonkeyPatch, *, is_new: bool
) -> None:
    """By a connection that is there, or by a new one: a writer keeps the first one."""
    path, holder = without_wal
    with closing(StoredLog.open(path, "main")) as store:
        if is_new:
            store.append([(2, "seen.v1", b"x")])
        hold(holder, "EXCLUSIVE")
        with monkeypatch.context() as patched:
            patched.setattr(time, "sleep", lambda _: interrupt_main())
            with pytest.raises(KeyboardInterrupt):
                store.newest()
        holder.execute("ROLLBACK")
        assert store.newest() == 1 + is_new


def test_an_interrupt_as_a_read_begins_leaves_no_transaction(tmp_path: Path) -> None:
    """It comes as BEGIN has returned: the connection went back to the others in a transaction, and no read began."""
    with Ledger.open(tmp_path / "a.db") as ledger:
        ledger.handle(opened("rain"), command_id="c1")

        def interrupt(frame: FrameType, event: str, called: Any) -> None:
            if event == "c_return" and frame.f_code.co_name == "reading" and called.__name__ == "execute":
                sys.setprofile(None)
                raise KeyboardInterrupt

        before = sys.getprofile()
        sys.setprofile(interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                [*ledger.read()]
        finally:
            sys.setprofile(before)
        assert [[recorded.command_id for recorded in page] for page in ledger.read()] == [["c1"]]
