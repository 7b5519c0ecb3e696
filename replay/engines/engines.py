"""Engines: where the questions of a log are scored: in this process, in others, or on a cluster. All give the same."""

import pickle
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future
from multiprocessing.context import BaseContext
from typing import Literal

import numpy as np

from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.projections.tables.question_parts import QuestionPart
from forecast_ledger.replay.engines.pool import processors, start
from forecast_ledger.replay.engines.sent_parts import pack, unpack
from forecast_ledger.replay.engines.spark import spark
from forecast_ledger.replay.engines.tasks import Shared, Task

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
    """Score tasks in other processes, each of which gets what tasks share once.

    count: of processes; 0 for one for each processor that this process may use. context: see `start`.

    Raises RuntimeError (the main module has no guard), Corrupt, Unavailable (also if a process ends before it is done).
    """
    count = count or processors()
    pool = start(count, _begin, pickle.dumps(shared, pickle.HIGHEST_PROTOCOL), context)
    waiting = deque[Future[bytes]]()
    try:
        pool.begun.result()  # before any other is started: each would end for the same reason
        for task in tasks:
            waiting.append(pool.submit(_score, task))
            if len(waiting) > 2 * count:  # enough that none has to wait, and few forecasts are in memory
                yield unpack(waiting.popleft().result())
        while waiting:
            yield unpack(waiting.popleft().result())
    except BrokenExecutor:
        pool.check_guard()
        raise Unavailable(_ENDED) from None
    finally:
        pool.close()


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
    np.empty(_KEPT, np.int8)
    _shared.append(pickle.loads(sent))  # noqa: S301 - from the process that started this one


def _score(task: Task) -> bytes:
    with gc_pause.paused():
        return pack(_shared[0].score(task))
