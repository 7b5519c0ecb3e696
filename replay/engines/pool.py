"""Processes of the standard library's pool, which do a part of the work of this one."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.context import BaseContext

_MOST_PROCESSES = 61  # more than Windows can wait for


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start(
    count: int, begin: Callable[[Any], None], given: Any, context: "BaseContext | None" = None
) -> "ProcessPoolExecutor":
    """Return a pool of so many processes, each of which calls `begin` with what is given.

    context: how they are started; by default each is a new interpreter, which imports the main module again, as
    `multiprocessing` explains. An interrupt is for this process alone, and if it is gone, they end.
    """
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - late: it takes a fifth of a start
    from multiprocessing import get_context  # noqa: PLC0415 - likewise

    return ProcessPoolExecutor(min(count, _MOST_PROCESSES), context or get_context("spawn"), _begin, (begin, given))


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
