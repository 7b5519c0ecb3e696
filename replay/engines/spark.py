"""The engine `spark`: tasks are scored on an Apache Spark cluster, as one job without a shuffle."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.errors import LedgerError, Unavailable
from forecast_ledger.ledger.segments.segment_columns import pyarrow
from forecast_ledger.projections.catalogue.question_parts import QuestionPart
from forecast_ledger.replay.engines.sent_parts import pack, unpack
from forecast_ledger.replay.engines.tasks import Shared, Task

_NEEDED = "the engine spark needs PySpark: install the extra `spark`"


def spark(shared: Shared, tasks: Iterable[Task]) -> Iterator[QuestionPart]:
    """Score tasks in the Spark session of this program, or in a new one, which has the settings that Spark finds.

    Each process of Spark has this package, and reads the folder of segments at the same path. Raises Corrupt,
    Refused, Unavailable (also if there is no PySpark).
    """
    try:
        sql = import_module("pyspark.sql")
    except ImportError:
        raise Unavailable(_NEEDED) from None
    session = sql.SparkSession.builder.appName("forecast-ledger").getOrCreate()
    every = [pickle.dumps(task, pickle.HIGHEST_PROTOCOL) for task in tasks]
    numbers = session.range(0, len(every), 1, max(len(every), 1))  # a partition for each task
    sent = pickle.dumps(shared, pickle.HIGHEST_PROTOCOL)
    for row in numbers.mapInArrow(_scored(sent, every), "part binary, damage binary").collect():
        if row.damage is not None:
            raise pickle.loads(bytes(row.damage))  # noqa: S301 - from a process that we started
        yield unpack(bytes(row.part))


def _scored(sent: bytes, tasks: list[bytes]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function that scores the tasks of these numbers, of a partition, where Spark runs it."""

    def scored(batches: Iterator[Any]) -> Iterator[Any]:
        shared: Shared = pickle.loads(sent)  # noqa: S301 - as above
        for batch in batches:
            for number in batch.column(0).to_pylist():
                part, damage = _outcome(shared, pickle.loads(tasks[number]))  # noqa: S301 - as above
                columns = [pyarrow().array([each], pyarrow().binary()) for each in (part, damage)]
                yield pyarrow().RecordBatch.from_arrays(columns, ["part", "damage"])

    return scored


def _outcome(shared: Shared, task: Task) -> tuple[bytes | None, bytes | None]:
    """Return the part of a task, or the error that scoring it raised."""
    try:
        with gc_pause.paused():
            return pack(shared.score(task)), None
    except LedgerError as error:
        return None, pickle.dumps(error)
