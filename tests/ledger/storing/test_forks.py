"""Tests of processes that are forked while ledgers are open: each has files and locks of its own."""

import os
import signal
import sys
import time
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from threading import Event, Thread, current_thread
from weakref import WeakSet

import pytest

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.segments import segment_files
from forecast_ledger.ledger.storing import forks, sqlite_files
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.audit.verify import verify
from forecast_ledger.replay.files.export import seal
from tests.support.crowds import QUESTION, forecast
from tests.support.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")


def in_child(work: Callable[[], bool]) -> bool:
    """Return whether a forked process does some work, and what it checks is true."""
    child = os.fork()
    if not child:
        done = False
        try:
            done = work()
        finally:
            os._exit(0 if done else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_both_sides_of_a_fork_record_in_a_file(tmp_path: Path) -> None:
    """Neither keeps the file open over the fork: the child records on when its parent has closed the file, and nothing
    is lost.
    """
    path, closed, parent = tmp_path / "a.db", *os.pipe()
    ledger = Ledger.open(path)
    ledger.handle(QUESTION)

    def child() -> bool:
        first = ledger.handle(forecast("child", 0)).first
        os.read(closed, 1)  # the parent has closed the file
        return (first, ledger.handle(forecast("child", 1)).first) == (2, 4)

    pid = os.fork()
    if not pid:
        done = False
        try:
            done = child()
        finally:
            os._exit(0 if done else 1)
    while ledger.head().position < 2:
        pass
    assert ledger.handle(forecast("parent", 0)).first == 3
    ledger.close()
    os.write(parent, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert verify(path).position == 4


def test_a_fork_waits_for_threads_that_use_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the child could have a lock within SQLite that nobody gives back; others begin after the fork."""
    monkeypatch.setattr(sqlite_files, "_PATIENCE", PATIENCE)
    with Ledger.open(tmp_path / "a.db") as ledger, Ledger.open(tmp_path / "b.db") as other:
        ledger.handle(QUESTION)
        files, using = ledger._store._rows._files, Event()  # type: ignore[attr-defined]
        second = Thread(target=ledger._store.newest)

        def use() -> None:
            with ledger._store.turn():
                using.set()
                wait_until(lambda: files._is_forking)
                second.start()
                wait_until(lambda: len(files._changed._waiters) == 2)  # the fork, and the other thread

        first = Thread(target=use)
        first.start()
        using.wait(PATIENCE)
        assert in_child(lambda: (ledger.handle(forecast("child", 0)).first, other.head().position) == (2, 0))
        first.join(PATIENCE)
        second.join(PATIENCE)
        assert [first.is_alive(), second.is_alive()] == [False, False]
        assert ledger.handle(forecast("parent", 0)).first == 3


def test_a_fork_while_a_thread_goes_on_using_a_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child cannot use the file, which SQLite does not allow, and is told why; the parent goes on."""
    monkeypatch.setattr(sqlite_files, "_PATIENCE", 0.05)
    path = tmp_path / "a.db"
    with Ledger.open(path) as ledger:
        ledger.handle(QUESTION)
        reading, forked = Event(), Event()

        def read() -> None:
            with ledger._store.turn():
                reading.set()
                forked.wait(PATIENCE)

        thread = Thread(target=read)
        thread.start()
        reading.wait(PATIENCE)

        def child() -> bool:
            with pytest.raises(Unavailable, match="another thread was using the file when this process was forked"):
                ledger.handle(forecast("child", 0))
            ledger.close()
            return True

        assert in_child(child)
        forked.set()
        thread.join()
        assert ledger.handle(forecast("parent", 0)).first == 2


def test_an_interrupt_while_a_fork_waits_comes_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python would drop it, and some files would not be closed: here it comes between the first and the second."""
    monkeypatch.setattr(sqlite_files, "_PATIENCE", PATIENCE)
    called, before = list[int](), signal.getsignal(signal.SIGINT)

    def interrupted(number: int, _: object) -> None:
        called.append(number)
        if len(called) == 1:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)
    with Ledger.open(tmp_path / "a.db") as ledger, Ledger.open(tmp_path / "b.db") as other:
        every, using = [each._store._rows._files for each in (ledger, other)], Event()  # type: ignore[attr-defined]

        def use() -> None:
            with ledger._store.turn(), other._store.turn():
                using.set()
                wait_until(lambda: any(files._is_forking for files in every))
                interrupt_main()
                time.sleep(0.05)

        thread = Thread(target=use)
        thread.start()
        assert using.wait(PATIENCE)
        try:
            assert in_child(lambda: all(files._datastore is None for files in every))
            wait_until(lambda: called == [signal.SIGINT] * 2)  # the second time, outside of the fork
        finally:
            thread.join(PATIENCE)
            signal.signal(signal.SIGINT, before)
        assert [ledger.handle(QUESTION).first, other.handle(QUESTION).first] == [1, 1]


def test_a_handler_that_raises_nothing_is_called_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For each signal that came, however often; and it is there again after the fork, on both sides."""
    called, wait, numbers = list[int](), forks._wait_for_imports, (signal.SIGINT, signal.SIGTERM)

    def handle(number: int, _: object) -> None:
        called.append(number)

    def interrupted() -> None:
        for number in (*numbers, *numbers):
            interrupt_main(number)
        wait()

    before = [signal.signal(number, handle) for number in numbers]
    try:
        monkeypatch.setattr(forks, "_wait_for_imports", interrupted)
        assert in_child(lambda: {*map(signal.getsignal, numbers)} == {handle} and not called)
        assert (sorted(called), {*map(signal.getsignal, numbers)}) == ([*numbers], {handle})
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


begun, going_on = Event(), Event()  # the import of the module below
HALF_IMPORTED = """
from tests.ledger.storing import test_forks
test_forks.begun.set()
assert test_forks.going_on.wait(test_forks.PATIENCE)
"""


def test_a_fork_waits_for_a_thread_that_imports_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that imports the module, too, would wait for that thread, which it does not have."""
    monkeypatch.setattr(forks, "_PATIENCE", PATIENCE)
    (tmp_path / "half_imported.py").write_text(HALF_IMPORTED, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    sleep, thread = time.sleep, Thread(target=import_module, args=("half_imported",))
    monkeypatch.setattr(time, "sleep", lambda seconds: going_on.set() or sleep(seconds))  # type: ignore[func-returns-value]
    thread.start()
    assert begun.wait(PATIENCE)
    try:
        assert in_child(lambda: not signal.alarm(int(PATIENCE)) and bool(import_module("half_imported")))
    finally:
        going_on.set()
        thread.join(PATIENCE)
        monkeypatch.delitem(sys.modules, "half_imported")


def test_a_fork_does_not_wait_for_ever_for_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may run in a module that is imported."""
    monkeypatch.setattr(forks, "_PATIENCE", 0.05)
    monkeypatch.setattr(forks, "_is_imported_elsewhere", lambda _: True)
    monkeypatch.setattr(forks, "_MODULE_LOCKS", {"served": None})
    assert in_child(lambda: True)


def test_who_is_told_of_a_fork_may_change_meanwhile() -> None:
    """Another thread may open a file, and Python then ends the loop over the files."""

    class Changing(WeakSet[Thread]):
        times = 0

        def __iter__(self) -> Iterator[Thread]:
            self.times += 1
            if self.times == 1:
                raise RuntimeError("Set changed size during iteration")
            return super().__iter__()

    assert forks._members(Changing([current_thread()])) == [current_thread()]


def test_a_child_does_not_wait_for_a_thread_of_its_parent(tmp_path: Path) -> None:
    """A thread of the parent holds the ledger when it forks; the child has no such thread, and begins anew."""
    path = tmp_path / "a.db"
    with Ledger.open(path) as ledger, Ledger.open(path) as other:
        ledger.handle(QUESTION)
        assert ledger._alone(lambda: in_child(lambda: ledger.handle(forecast("child", 0)).first == 2))
        assert (other.head().position, ledger.handle(forecast("parent", 0)).first) == (2, 3)


def test_a_ledger_in_memory_is_each_processs_own(tmp_path: Path) -> None:
    """The child has a copy as of the fork."""
    with Ledger.open(":memory:") as ledger:
        ledger.handle(QUESTION)
        assert in_child(lambda: ledger.handle(forecast("child", 0)).first == 2)
        assert ledger.head().position == 1


def test_a_child_reads_segments_that_a_thread_of_its_parent_was_opening(tmp_path: Path) -> None:
    """The child has no such thread, which would let others open the file."""
    pytest.importorskip("pyarrow")
    with Ledger.open(tmp_path / "a.db") as ledger:
        ledger.handle(QUESTION)
        ledger.handle(forecast("one", 0))
    seal(tmp_path / "a.db", tmp_path / "segments")
    for file in (tmp_path / "segments").iterdir():
        segment_files._lock(file).acquire()
    try:
        assert in_child(lambda: not signal.alarm(int(PATIENCE)) and verify(tmp_path / "segments").position == 2)
    finally:
        segment_files._lock.cache_clear()


def test_a_file_is_opened_again_where_it_was_unless_another_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process has gone to another folder since; and none creates a file in place of one that was deleted."""
    monkeypatch.chdir(tmp_path)
    with Ledger.open("a.db") as ledger:
        ledger.handle(QUESTION)
        (tmp_path / "other").mkdir()
        monkeypatch.chdir("other")
        assert in_child(lambda: ledger.handle(forecast("child", 0)).first == 2)
        assert ledger.handle(forecast("parent", 0)).first == 3
        assert in_child(lambda: True)
        (tmp_path / "a.db").unlink()
        with pytest.raises(Unavailable, match="the file that was opened is not there any more"):
            ledger.handle(forecast("parent", 1))
        assert not [*tmp_path.glob("**/a.db")]
