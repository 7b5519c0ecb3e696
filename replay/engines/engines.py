"""Engines: where the questions of a log are scored: in this process, in others, or on a cluster. All give the same."""

import pickle
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future
from importlib import import_module
from io import BytesIO
from multiprocessing.context import BaseContext
from typing import Any, Literal

import numpy as np

from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.errors import LedgerError, Unavailable, installing
from forecast_ledger.ledger.segments.segment_columns import pyarrow
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.tables.question_parts import QuestionPart
from forecast_ledger.replay.engines.pool import processors, start
from forecast_ledger.replay.engines.tasks import Shared, Task

_SIGNED = tuple(np.iinfo(kind) for kind in (np.int8, np.int16, np.int32))


def pack(part: QuestionPart) -> bytes:
    """Return a part as bytes.

    >>> column = np.arange(10**15, 10**15 + 100)
    >>> sent = pack(QuestionPart([], [], {"standing": [column]}))
    >>> len(sent) < column.nbytes, (unpack(sent).tables["standing"][0] == column).all()
    (True, np.True_)
    """
    file = BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(part)
    return file.getvalue()


def unpack(sent: bytes) -> QuestionPart:
    """Return the part that `pack` was given, in a process that trusts the one that packed it."""
    part: QuestionPart = pickle.loads(sent)  # noqa: S301 - see above
    return part


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        """Reduce arrays of 64-bit numbers to the least one and the narrow distances from it."""
        if type(obj) is not np.ndarray or obj.dtype != np.int64 or obj.ndim != 1 or not len(obj):
            return NotImplemented
        least, most = int(obj.min()), int(obj.max())
        for info in _SIGNED:
            middle = least - info.min
            if most - middle <= info.max:
                return _widened, (middle, (obj - middle).astype(info.dtype))
        return NotImplemented


def _widened(middle: int, narrow: "np.ndarray[Any, Any]") -> Int64Array:
    wide: Int64Array = narrow.astype(np.int64)
    wide += middle
    return wide


_NEEDED = f"the engine spark needs PySpark: {installing('spark')}"
_ROW = "task long, piece int, damaged boolean, sent binary"
_PIECE = 1 << 20  # bytes of a row, at most: machines of Sail refuse messages of more than 4 MiB from each other


def spark(shared: Shared, tasks: Iterable[Task]) -> Iterator[QuestionPart]:
    """Score tasks in the Spark session of this program, or in a new one, which has the settings that Spark finds.

    Each process of Spark has this package, and reads the folder of segments at the same path. Raises Corrupt,
    Refused, Unavailable (also if there is no PySpark, or Spark cannot do it).
    """
    try:
        sql, errors = import_module("pyspark.sql"), import_module("pyspark.errors")
    except ImportError:
        raise Unavailable(_NEEDED) from None
    try:
        rows = _collected(sql, shared, [pickle.dumps(task, pickle.HIGHEST_PROTOCOL) for task in tasks])
    except errors.PySparkException as error:
        raise Unavailable(f"Spark did not score the questions: {str(error).strip()}") from error
    pieces = defaultdict[int, list[Any]](list)
    for row in rows:
        pieces[row.task].append(row)
    for task in sorted(pieces):
        of_task = sorted(pieces.pop(task), key=lambda row: row.piece)
        sent = b"".join(row.sent for row in of_task)
        if of_task[0].damaged:
            raise pickle.loads(sent)  # noqa: S301 - from a process that we started
        yield unpack(sent)


def _collected(sql: Any, shared: Shared, tasks: list[bytes]) -> list[Any]:
    """Return what all tasks made, in rows."""
    # A session of Spark Connect is not found by the builder, unless the environment has its address.
    session = sql.SparkSession.getActiveSession() or sql.SparkSession.builder.appName("forecast-ledger").getOrCreate()
    numbers = session.range(0, len(tasks), 1, max(len(tasks), 1))  # a partition for each task
    rows: list[Any] = numbers.mapInArrow(_scored(pickle.dumps(shared, pickle.HIGHEST_PROTOCOL), tasks), _ROW).collect()
    return rows


def _scored(sent: bytes, tasks: list[bytes]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function that scores the tasks of these numbers, of a partition, where Spark runs it."""

    def scored(batches: Iterator[Any]) -> Iterator[Any]:
        shared: Shared = pickle.loads(sent)  # noqa: S301 - as above
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _rows(number, *_outcome(shared, pickle.loads(tasks[number])))  # noqa: S301 - as above

    return scored


def _outcome(shared: Shared, task: Task) -> tuple[bool, bytes]:
    """Return whether scoring a task raised an error, and the error or the part."""
    try:
        with gc_pause.paused():
            return False, pack(shared.score(task))
    except LedgerError as error:
        return True, pickle.dumps(error)


def _rows(task: int, damaged: bool, sent: bytes) -> Iterator[Any]:
    """Yield what a task made in pieces, each in a batch of its own, which Spark need not copy."""
    pa = pyarrow()
    schema = pa.schema([("task", pa.int64()), ("piece", pa.int32()), ("damaged", pa.bool_()), ("sent", pa.binary())])
    for piece, begin in enumerate(range(0, len(sent), _PIECE)):
        row = {"task": task, "piece": piece, "damaged": damaged, "sent": sent[begin : begin + _PIECE]}
        yield pa.RecordBatch.from_pylist([row], schema)


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
