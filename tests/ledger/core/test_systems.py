"""What differs between operating systems: locks of folders, and writing to disk for good."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from forecast_ledger.ledger.core import systems
from forecast_ledger.ledger.core.systems import FolderLock, sync_path
from forecast_ledger.ledger.storing.stored_log import StoredLog

HOLDS = """
import sys, time
from pathlib import Path
from forecast_ledger.ledger.core.systems import FolderLock
lock = FolderLock(Path(sys.argv[1]))
print(lock.take(), flush=True)
time.sleep(600)
"""


def test_the_lock_of_a_process_that_is_killed_is_free(tmp_path: Path) -> None:
    """Nobody else gets it while the process lives, and anybody once it is gone."""
    lock = FolderLock(tmp_path)
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        assert not lock.take()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert lock.take(wait=True)
    lock.close()
    lock.close()


def test_a_lock_knows_that_its_folder_was_removed_or_replaced(tmp_path: Path) -> None:
    """So that nobody works in a folder that another process has locked under the same name."""
    folder = tmp_path / "folder"
    folder.mkdir()
    lock = FolderLock(folder)
    assert (lock.take(), lock.is_there()) == (True, True)
    folder.rmdir()
    assert not lock.is_there()
    folder.mkdir()
    assert not lock.is_there()
    lock.close()


@pytest.mark.parametrize("kind", ["link", "file", "nothing"])
def test_only_a_folder_itself_can_be_locked(tmp_path: Path, kind: str) -> None:
    """Not what a link leads to, and not a file."""
    there = tmp_path / "there"
    if kind == "link":
        there.symlink_to(tmp_path)
    elif kind == "file":
        there.write_bytes(b"")
    with pytest.raises(OSError, match="there"):
        FolderLock(there)


@pytest.mark.parametrize("is_known", [True, False])
def test_where_the_disk_has_memory_of_its_own_that_is_written_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    """MacOS has a call of its own for it; a file system that does not know the call gets the one of POSIX."""
    called: list[object] = []

    def full_sync(_: int, number: int) -> None:
        called.append(number)
        if not is_known:
            raise OSError("not supported")

    monkeypatch.setattr(systems, "_FULL_SYNC", 51)  # as in macOS's header fcntl.h
    monkeypatch.setattr(fcntl, "fcntl", full_sync)
    monkeypatch.setattr(os, "fsync", lambda _: called.append("fsync"))
    sync_path(tmp_path)
    assert called == ([51] if is_known else [51, "fsync"])


def test_the_store_asks_macos_for_the_same(tmp_path: Path) -> None:
    """In SQLite this is a setting of each connection, which has no effect on other systems."""
    store = StoredLog.open(tmp_path / "season.db", "main")
    rows: object = store._rows
    with rows._files.reading() as cursor:  # type: ignore[attr-defined]
        for name in ("fullfsync", "checkpoint_fullfsync"):
            cursor.execute(f"PRAGMA {name}")
            assert [*cursor.fetchone()] == [1]
    store.close()
