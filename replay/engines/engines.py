"""Engines: where the questions of a log are scored: in this process, in others, or on a cluster. All give the same."""

import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, get_context, parent_process
from multiprocessing.context import BaseContext
from threading import Thread
from typing import Literal

import numpy as np

from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.projections.catalogue.question_parts import QuestionPart
from forecast_ledger.replay.engines.sent_parts import pack, unpack
from forecast_ledger.replay.engines.spark import spark
from forecast_ledger.replay.engines.tasks import Shared, Task

_MOST_PROCESSES = 61  # more than Windows can wait for
_KEPT = 31 << 20  # bytes, which glibc, once they were freed together, keeps: else each large array is new memory
_ENDED = (
    "a process that scored questions ended before it was done, perhaps because memory was short: "
    "free memory, or use the engine local"
)


def local(shared: Shared, tasks: Iterable[Task]) -> Iterator[QuestionPart]:
    """Score one task after the other in this process. Raises Corrupt, Unavailable."""
    for task in tasks:
        with gc_pause.paused():
            yield shared.score(task)


def processes(
    shared: Shared, tasks: Iterable[Task], count: int = 0, context: BaseContext | None = None
) -> Generator[QuestionPart, None, None]:
    """Score tasks in processes of the standard library's pool, each of which gets what tasks share once.

    count: of processes; 0 for one for each processor that this process may use. context: how they are started; by
    default each is a new interpreter, which imports the main module again, as `multiprocessing` explains.

    Raises Corrupt, Unavailable (also if a process ends before it is done).
    """
    count = min(count or processors(), _MOST_PROCESSES)
    sent = pickle.dumps(shared, pickle.HIGHEST_PROTOCOL)
    pool = ProcessPoolExecutor(count, context or get_context("spawn"), _begin, (sent,))
    waiting = deque[Future[bytes]]()
    try:
        for task in tasks:
            waiting.append(pool.submit(_score, task))
            if len(waiting) > 2 * count:  # enough that none has to wait, and few forecasts are in memory
                yield unpack(waiting.popleft().result())
        while waiting:
            yield unpack(waiting.popleft().result())
    except BrokenProcessPool:
        raise Unavailable(_ENDED) from None
    finally:
        pool.shutdown(cancel_futures=True)


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


Engine = Literal["local", "processes", "spark"]
Choice = Engine | Literal["auto"]  # see `divided.engine_for`
ENGINES: dict[Engine, Callable[[Shared, Iterable[Task]], Iterator[QuestionPart]]] = {
    "local": local,
    "processes": processes,
    "spark": spark,
}

_shared: list[Shared] = []  # in a process of the pool, what its tasks share


def _begin(sent: bytes) -> None:
    """Prepare a process of the pool."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started it ends it
    Thread(target=_end_with_parent, daemon=True).start()
    np.empty(_KEPT, np.int8)
    _shared.append(pickle.loads(sent))  # noqa: S301 - from the process that started this one


def _end_with_parent() -> None:
    """End this process if the one that started it is gone; the pool alone would wait for its tasks for ever."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _score(task: Task) -> bytes:
    with gc_pause.paused():
        return pack(_shared[0].score(task))
