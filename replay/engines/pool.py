"""Processes that do a part of the work of this one, and can be ended at any moment."""

import errno
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from threading import Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Any

from forecast_ledger.ledger.core.errors import LedgerError
from forecast_ledger.ledger.storing.forks import can_fork

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

_MOST_PROCESSES = 61  # more than Windows can wait for
_ENDING = 60.0  # s in which a process that has closed its pipe ends, on a slow machine
_UNGUARDED = 78  # the exit code of a process that would start processes while it imports the main module
_NEEDS_GUARD = (
    "each process that is started imports the main module of the program, which would start processes again: "
    'put the statements that the program runs under `if __name__ == "__main__":`'
)
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Pool:
    """Processes that do tasks. Each has a pipe of its own, which a thread of this process serves.

    The pools of the standard library share locks and pipes among their processes: if one is killed while it writes or
    waits, they wait for it for ever. Here nothing is shared, so that every process can be killed whatever it does.

    begun: done as soon as the first process works: its number. children: the processes started so far.
    """

    def __init__(self, count: int, context: "BaseContext", begin: Callable[[Any], None], given: Any) -> None:
        self._count, self._context = count, context
        self._first = pickle.dumps((_begin, (begin, given)), pickle.HIGHEST_PROTOCOL)  # what each process does first
        self._tasks: SimpleQueue[tuple[bytes, Future[Any]] | None] = SimpleQueue()  # None ends a thread
        self._is_broken, self._submitted = False, 0
        self.begun: Future[int] = Future()
        self.children: list[BaseProcess] = []
        self._threads: list[Thread] = []
        at_once = count if context.get_start_method() == "fork" else 1  # no fork comes after a thread that serves one
        for pipe in [self._start() for _ in range(at_once)]:
            self._serve_aside(pipe)

    def submit(self, task: Callable[..., Any], /, *given: Any) -> "Future[Any]":
        """Let a process do a task; one more is started if all have had one. Raises BrokenExecutor."""
        sent, done = pickle.dumps((task, given), pickle.HIGHEST_PROTOCOL), Future[Any]()
        if len(self.children) <= self._submitted and len(self.children) < self._count:
            self._serve_aside(self._start())
        self._submitted += 1
        self._tasks.put((sent, done))
        if self._is_broken:
            self._refuse_tasks()
            raise BrokenExecutor("a process has ended")
        return done

    def check_guard(self) -> None:
        """Raise RuntimeError if the first process ended because the main module has no guard; see `check_guard`."""
        if not (self.begun.done() and self.begun.exception() is None):  # else it has a guard
            self.children[0].join(_ENDING)
        if self.children[0].exitcode == _UNGUARDED:
            raise RuntimeError(_NEEDS_GUARD) from None

    def close(self) -> None:
        """End the processes at once, whatever they do."""
        with without_interrupts():
            for child in self.children:
                child.kill()
                self._tasks.put(None)
        for child in self.children:
            child.join()
        for thread in self._threads:  # while one lives, this process is not forked again
            if thread is not current_thread():  # in which the garbage collector may end who uses the pool
                thread.join()

    def _start(self) -> "Connection":
        """Start one more process; return the pipe to it."""
        ours, theirs = self._context.Pipe()
        try:
            with without_interrupts(), theirs:
                child = self._context.Process(target=_work, args=(theirs,), daemon=True)  # type: ignore[attr-defined]
                child.start()
                self.children.append(child)
        except BaseException:  # an interrupt among them
            self.close()
            raise
        return ours

    def _serve_aside(self, pipe: "Connection") -> None:
        """Serve a process in a thread. Raises OSError: the system has no more threads, or no memory for one."""
        self._threads.append(Thread(target=self._serve, args=(pipe,), daemon=True))
        try:
            self._threads[-1].start()
        except RuntimeError:
            del self._threads[-1]
            self.close()
            raise OSError(errno.EAGAIN, "no thread can be started") from None

    def _serve(self, pipe: "Connection") -> None:
        """Send a process one task after the other, and take what each gives; if the process ends, nobody does any."""
        done: Future[Any] = Future()
        try:
            with pipe:
                self._exchange(pipe, self._first, done)
                if not self.begun.done():
                    self.begun.set_result(done.result())
                while (item := self._tasks.get()) is not None:
                    sent, done = item
                    if done.set_running_or_notify_cancel():
                        self._exchange(pipe, sent, done)
        except (EOFError, OSError):  # the process has ended
            pass
        finally:
            self._is_broken = True
            for waiting in (done, self.begun):
                if not waiting.done():
                    waiting.set_exception(BrokenExecutor("a process has ended"))
            self._refuse_tasks()

    @staticmethod
    def _exchange(pipe: "Connection", sent: bytes, done: "Future[Any]") -> None:
        pipe.send_bytes(sent)
        given, error = pickle.loads(pipe.recv_bytes())  # noqa: S301 - from a process that this one started
        if error is None:
            done.set_result(given)
        else:
            done.set_exception(error)

    def _refuse_tasks(self) -> None:
        """End the tasks that no process has begun."""
        while not self._tasks.empty():
            if (item := self._tasks.get()) is None:
                self._tasks.put(None)  # for another thread
                return
            if item[1].set_running_or_notify_cancel():
                item[1].set_exception(BrokenExecutor("a process has ended"))


def check_guard() -> None:
    """End this process if it was started by another one and still imports the main module, which has no guard.

    Call it before work for which processes are started: if the main module does that work when it is imported, each
    process would do it again. The process that started this one finds the reason by `Pool.check_guard`.
    """
    imported = sys.modules.get("__mp_main__")  # the name under which `multiprocessing` imports the main module
    if imported is not None and imported is not sys.modules.get("__main__"):
        sys.stderr.write(f"{_NEEDS_GUARD}\n")
        raise SystemExit(_UNGUARDED)


def start(
    count: int,
    begin: Callable[[Any], None],
    given: Any,
    context: "BaseContext | None" = None,
    *,
    may_fork: bool = False,
) -> Pool:
    """Return a pool of so many processes, each of which calls `begin` with what is given; the first one is started.

    context: how they are started; by default each is a new interpreter, which imports the main module again, as
    `multiprocessing` explains. may_fork: by default they are all forked at once instead, if `can_fork` allows it. An
    interrupt is for this process alone, and if it is gone, they end.
    """
    from multiprocessing import get_context  # noqa: PLC0415 - late: it takes a tenth of a start

    check_guard()
    method = "fork" if may_fork and can_fork() else "spawn"
    return Pool(min(count, _MOST_PROCESSES), context or get_context(method), begin, given)


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Hold interrupts back until the end; a process that is started meanwhile never gets one.

    The system may give a signal to any thread, whatever this one blocks, and Python then calls its handler in the main
    thread: so the handlers are held back too.
    """
    held: list[int] = []
    handlers = {
        each: signal.signal(each, lambda number, _: held.append(number))
        for each in _SIGNALS
        if current_thread() is main_thread() and callable(signal.getsignal(each))
    }
    if sys.platform != "win32":
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if sys.platform != "win32":
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for signal_number, handler in handlers.items():
            signal.signal(signal_number, handler)
        for number in held[:1]:
            signal.raise_signal(number)


def _work(pipe: "Connection") -> None:
    """Do what comes through a pipe, in a process of the pool, until the pipe ends."""
    signal.set_wakeup_fd(-1)  # a fork has that of the process that started it, and its handlers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started it ends it
    for name, number in (("stdout", 1), ("stderr", 2)):  # a thread that a fork does not have may hold their locks
        with suppress(OSError):  # it is closed
            setattr(sys, name, os.fdopen(number, "w", errors="backslashreplace", closefd=False))
    try:
        Thread(target=_end_with_parent, daemon=True).start()
    except RuntimeError:  # the system has no more threads
        os._exit(1)
    try:
        while True:
            task, given = pickle.loads(pipe.recv_bytes())  # noqa: S301 - from the process that started this one
            pipe.send_bytes(pickle.dumps(_done(task, given), pickle.HIGHEST_PROTOCOL))
    except (EOFError, OSError):  # the process that started it has closed the pipe
        os._exit(0)  # what a fork would clean up is not its own


def _done(task: Callable[..., Any], given: tuple[Any, ...]) -> tuple[Any, LedgerError | MemoryError | None]:
    """Return what a task returns, and None; or None, and what it raises."""
    try:
        return task(*given), None
    except (LedgerError, MemoryError) as error:
        return None, error


def _begin(begin: Callable[[Any], None], given: Any) -> int:
    """Prepare this process. Returns its number."""
    begin(given)
    return os.getpid()


def _end_with_parent() -> None:
    """End this process if the one that started it is gone; a task of which nobody takes the result may be long."""
    from multiprocessing import connection, parent_process  # noqa: PLC0415 - see `start`

    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
