"""Processes of the standard library's pool, which do a part of the work of this one."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

_MOST_PROCESSES = 61  # more than Windows can wait for
_UNGUARDED = 78  # the exit code of a process that would start processes while it imports the main module
_NEEDS_GUARD = (
    "each process that is started imports the main module of the program, which would start processes again: "
    'put the statements that the program runs under `if __name__ == "__main__":`'
)


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Pool(NamedTuple):
    """A pool of processes. begun: done as soon as the first one works: its number. children: those started so far."""

    executor: "ProcessPoolExecutor"
    begun: "Future[int]"
    children: "Sequence[BaseProcess]"

    def check_guard(self) -> None:
        """Raise RuntimeError if the pool is broken because the main module has no guard; see `check_guard`."""
        self.executor.shutdown(cancel_futures=True)  # its thread asks for exit codes, too, and must be done with it
        if any(child.exitcode == _UNGUARDED for child in self.children):
            raise RuntimeError(_NEEDS_GUARD) from None


def check_guard() -> None:
    """End this process if it was started by another one and still imports the main module, which has no guard.

    Call it before work for which processes are started: if the main module does that work when it is imported, each
    process would do it again. The process that started this one finds the reason by `Pool.check_guard`.
    """
    imported = sys.modules.get("__mp_main__")  # the name under which `multiprocessing` imports the main module
    if imported is not None and imported is not sys.modules.get("__main__"):
        sys.stderr.write(f"{_NEEDS_GUARD}\n")
        raise SystemExit(_UNGUARDED)


def start(count: int, begin: Callable[[Any], None], given: Any, context: "BaseContext | None" = None) -> Pool:
    """Return a pool of so many processes, each of which calls `begin` with what is given; the first one is started.

    context: how they are started; by default each is a new interpreter, which imports the main module again, as
    `multiprocessing` explains. An interrupt is for this process alone, and if it is gone, they end.
    """
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - late: it takes a fifth of a start
    from multiprocessing import active_children, get_context  # noqa: PLC0415 - likewise

    check_guard()
    count, context = min(count, _MOST_PROCESSES), context or get_context("spawn")
    executor = ProcessPoolExecutor(count, context, _begin, (begin, given))
    with without_interrupts():
        begun = executor.submit(os.getpid)
    return Pool(executor, begun, active_children())


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Hold interrupts back; a process that is started meanwhile never gets one."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(begin: Callable[[Any], None], given: Any) -> None:
    """Prepare a process of the pool."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started it ends it
    Thread(target=_end_with_parent, daemon=True).start()
    begin(given)


def _end_with_parent() -> None:
    """End this process if the one that started it is gone; the pool alone would wait for its tasks for ever."""
    from multiprocessing import connection, parent_process  # noqa: PLC0415 - see `start`

    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
