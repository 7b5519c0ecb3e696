"""The engine `spark`: tasks are scored by Apache Spark, or what speaks Spark Connect, as one job without a shuffle."""

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.errors import LedgerError, Unavailable, installing
from forecast_ledger.ledger.segments.segment_columns import pyarrow
from forecast_ledger.projections.tables.question_parts import QuestionPart
from forecast_ledger.replay.engines.sent_parts import pack, unpack
from forecast_ledger.replay.engines.tasks import Shared, Task

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
