"""Engines: where the questions of a log are scored: in this process, in others, or on a cluster. All give the same."""

import gc
import itertools
import pickle
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np

from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.errors import LedgerError, Refused, Unavailable, installing
from forecast_ledger.ledger.segments.arrow_arrays import pyarrow
from forecast_ledger.ledger.storing.forks import can_fork
from forecast_ledger.ledger.storing.threads import Threads
from forecast_ledger.projections.boards.added_scores import has_many_sums, questions_by_rules
from forecast_ledger.projections.core.arrays import Int64Array, stable_order
from forecast_ledger.projections.core.table import Table, TableParts
from forecast_ledger.projections.facts.columns import Facts, ForecastPage
from forecast_ledger.projections.facts.question_facts import (
    FactsByQuestion,
    QuestionFacts,
    with_questions,
    without_questions,
)
from forecast_ledger.projections.scores.time_weighted import MOST_PARTS
from forecast_ledger.projections.tables.catalogue import BUILT, CATALOGUE, Projections
from forecast_ledger.projections.tables.question_parts import (
    ACCOUNTS,
    BOUNDS,
    SUMS,
    QuestionPart,
    finish,
    is_by_question,
    needed,
    needs_recorded_at,
    score,
)
from forecast_ledger.projections.trading.account_histories import Selection
from forecast_ledger.replay.engines.log_frame import LogFrame, SealedForecasts, read_forecasts_on
from forecast_ledger.replay.engines.pool import processors, start

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

# --- Tasks: questions whose forecasts are read and scored together, by any process that has the frame of the log.


FORECASTS = 1 << 17  # of a task, about; any number gives the same results
_TASKS, _MANY_PROCESSORS = 4, 1 << 10  # tasks of a processor, at least; the processors of a cluster, at most
_OF_EACH = 1 << 12  # forecasts of a task in each segment: fewer are a small part of what is read for them


class Task(NamedTuple):
    """Some questions, by code, the facts about them, and the forecasts on them that are not in segments.

    The questions of `facts` and `unsealed` are numbered from 0. sealed: how many forecasts are in segments.
    """

    questions: Int64Array
    facts: QuestionFacts
    unsealed: list[ForecastPage]
    sealed: int


class Shared(NamedTuple):
    """What all tasks need; it can be pickled.

    facts: without questions. sealed: where the forecasts in segments are. wanted: see `question_parts.needed`. run: how
    many tasks that follow each other one process does together; they share the row groups at which they meet.
    """

    facts: Facts
    sealed: SealedForecasts
    wanted: frozenset[str]
    run: int = 1

    def score(self, task: Task) -> QuestionPart:
        """Return the part of a task's questions. Raises Corrupt, Unavailable."""
        facts = with_questions(self.facts, task.facts)
        every = np.arange(len(facts.questions))
        forecasts = read_forecasts_on(facts, self.sealed, every, task.unsealed, task.sealed)
        return score(replace(facts, held=forecasts), self.wanted).numbered(task.questions)


def shared_by_tasks(frame: LogFrame, wanted: frozenset[str]) -> Shared:
    """Return what all tasks of a log need."""
    facts = without_questions(frame.frame.facts)
    is_read = needs_recorded_at(frame.frame.facts, wanted)
    return Shared(facts, frame.sealed.for_tasks(is_read=is_read), wanted)


def task_size(frame: LogFrame, engine: "Engine") -> int:
    """Return about how many forecasts are scored together: more if they are in many segments, or processors are few.

    Larger tasks read fewer row groups twice; each processor has several.
    """
    of_processor = int(frame.frame.counts.sum()) // {"local": 1, "spark": _MANY_PROCESSORS}.get(engine, processors())
    size = max(FORECASTS, of_processor // _TASKS, _OF_EACH * len(frame.sealed.segments))
    return min(size, 4 * FORECASTS)


def divide(
    frame: LogFrame, size: int = FORECASTS, of: Collection[int] | None = None, power: int = 1
) -> list[Int64Array]:
    """Return the questions of a log, by code, in parts of about one size, or of one question that is larger.

    The questions of a part are neighbours in the order of ids, as in segments. size: the sum over its questions of the
    number of their forecasts to this power. of: some questions, if not all.
    """
    labels = frame.frame.facts.question_codes.labels
    order = np.array(sorted(range(len(labels)) if of is None else of, key=labels.__getitem__), np.int64)
    sizes = frame.frame.counts[order] ** power
    before = np.cumsum(sizes) - sizes
    return np.split(order, np.flatnonzero(np.diff(before // size)) + 1) if len(order) else []


class Tasks:
    """The tasks of a log, one for each part of its questions; a task is made when it is asked for."""

    def __init__(
        self,
        frame: LogFrame,
        parts: list[Int64Array],
        contest: str | None = None,
        facts: FactsByQuestion | None = None,
    ) -> None:
        """contest: the only one in which the questions are scored. facts: those of the log, if they are at hand."""
        self._parts, self._contest, self._counts = parts, contest, frame.frame.counts
        self._facts = FactsByQuestion(frame.frame.facts) if facts is None else facts
        self._unsealed = _unsealed_forecasts(frame, parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, number: int) -> Task:
        part, unsealed = self._parts[number], self._unsealed(number)
        sealed = int(self._counts[part].sum()) - sum(len(page.position) for page in unsealed)
        return Task(part, self._facts.on(part.tolist(), self._contest), unsealed, sealed)

    def __iter__(self) -> Iterator[Task]:
        return map(self.__getitem__, range(len(self)))


def _unsealed_forecasts(frame: LogFrame, parts: list[Int64Array]) -> Callable[[int], list[ForecastPage]]:
    """Return what gives the forecasts that are not in segments on a part of the questions, numbered from 0."""
    unsealed = frame.frame.rest
    if not unsealed:
        return lambda _: []
    whole = ForecastPage(*map(np.concatenate, zip(*unsealed, strict=True)))
    task_of, index_in_part = np.full((2, len(frame.frame.counts)), -1)  # a question of no part
    for number, part in enumerate(parts):
        task_of[part], index_in_part[part] = number, np.arange(len(part))
    tasks_of_rows, whole = task_of[whole.question], whole._replace(question=index_in_part[whole.question])
    order = stable_order(tasks_of_rows)
    limits = np.searchsorted(tasks_of_rows[order], np.arange(len(parts) + 1)).tolist()
    start = np.cumsum(whole.lengths) - whole.lengths

    def of_part(number: int) -> list[ForecastPage]:
        rows = order[limits[number] : limits[number + 1]]
        size = whole.lengths[rows]
        inside = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        *each, numbers = whole
        row_numbers = numbers[np.repeat(start[rows], size) + inside]
        return [ForecastPage._make([*(column[rows] for column in each), row_numbers])] if len(rows) else []

    return of_part


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


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_KEPT = 31 << 20  # bytes, which glibc, once they were freed together, keeps: else each large array is new memory
_ENDED = (
    "a process that scored questions ended before it was done, perhaps because memory was short: "
    "free memory, or use the engine local"
)


def local(shared: Shared, tasks: Iterable[Task]) -> Iterator[QuestionPart]:
    """Score one task after the other in this process. Raises Corrupt, Unavailable."""
    np.empty(_KEPT, np.int8)
    for task in tasks:
        with gc_pause.paused():
            yield shared.score(task)


def threads(shared: Shared, tasks: Iterable[Task], count: int = 0) -> Generator[QuestionPart, None, None]:
    """Score tasks in threads of this process: nothing is started or sent, and NumPy and pyarrow let others compute.

    count: of threads; 0 for one for each processor that this process may use. Raises Corrupt, Unavailable.
    """
    count = count or processors()
    np.empty(_KEPT, np.int8)
    with gc_pause.paused(), Threads(count) as pool, Threads(1) as aside:
        aside.submit(shared.sealed.look_ahead)  # what is wrong with a file is found again by the first task
        try:
            yield from _in_order(tasks, lambda task: pool.submit(shared.score, task), count)
        finally:
            pool.shutdown(cancel_futures=True)


def _in_order(
    tasks: Iterable[_Item], submit: Callable[[_Item], Future[_Result]], count: int
) -> Generator[_Result, None, None]:
    """Yield what so many workers make of tasks, in their order, while few of these wait."""
    waiting = deque[Future[_Result]]()
    for task in tasks:
        waiting.append(submit(task))
        if len(waiting) > 2 * count:  # enough that none has to wait, and few forecasts are in memory
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def processes(
    shared: Shared, tasks: Tasks, count: int = 0, context: "BaseContext | None" = None
) -> Generator[QuestionPart, None, None]:
    """Score tasks in other processes. Those that are forked, where that is safe, make the tasks; others are sent them.

    count: of processes; 0 for one for each processor that this process may use. context: see `start`.

    Raises RuntimeError (the main module has no guard), Corrupt, Unavailable (also if a process ends before it is done).
    """
    count, are_forked = count or processors(), context is None and can_fork()
    sent = None if are_forked else pickle.dumps(shared, pickle.HIGHEST_PROTOCOL)
    try:
        with _inherited(shared, tasks):
            pool = start(count, _begin, sent, context, may_fork=are_forked)
    except OSError:  # the system has no more processes
        yield from local(shared, tasks)
        return
    try:
        pool.begun.result()  # before any other is started: each would end for the same reason
        rest: Iterator[Any] = iter(range(len(tasks)) if are_forked else tasks)
        runs = iter(lambda: [*itertools.islice(rest, shared.run)], [])
        for packed in _in_order(runs, partial(pool.submit, _score_numbered if are_forked else _score), count):
            yield from map(unpack, packed)
    except BrokenExecutor:
        pool.check_guard()
        raise Unavailable(_ENDED) from None
    finally:
        pool.close()


Engine = Literal["local", "threads", "processes", "spark"]
Choice = Engine | Literal["auto"]  # see `divided.engine_for`
ENGINES: dict[Engine, Callable[[Shared, Tasks], Iterator[QuestionPart]]] = {
    "local": local,
    "threads": threads,
    "processes": processes,
    "spark": spark,
}

_given = list[tuple[Shared, Tasks | None]]()  # in a process of the pool: what tasks share; if it was forked, the tasks


@contextmanager
def _inherited(shared: Shared, tasks: Tasks) -> Iterator[None]:
    """Let each process that is forked meanwhile have these."""
    _given[:] = [(shared, tasks)]
    try:
        yield
    finally:
        _given.clear()


def _begin(sent: bytes | None) -> None:
    """Prepare a process of the pool. sent: what tasks share; None if it has that from the process that forked it."""
    np.empty(_KEPT, np.int8)
    if sent is None:
        gc.freeze()  # a search for garbage would copy all memory that it has from there
    else:
        _given[:] = [(pickle.loads(sent), None)]  # noqa: S301 - from the process that started this one


def _score(run: Iterable[Task]) -> list[bytes]:
    with gc_pause.paused():
        return [pack(_given[0][0].score(task)) for task in run]


def _score_numbered(run: Sequence[int]) -> list[bytes]:
    [(_, tasks)] = _given
    return _score(tasks[number] for number in run) if tasks else []


# --- All tables of a log whose questions are scored in parts, by one of the engines.


MANY = 2 * FORECASTS  # from which on there is more than one task
_WORTH_FORKS = 1 << 24  # forecasts times processors, from which on forks take less time than threads


def engine_for(frame: LogFrame) -> Engine:
    """Return the engine for a log: threads, if there are many forecasts, and processors for more than one.

    Threads wait for Python's lock, the more the more there are. Processes do not, and begin at once if they are forked,
    but take more memory, and each finds out what is in the files.
    """
    count, several = frame.frame.counts.sum(), processors()
    if several == 1 or count < MANY:
        return "local"
    return "processes" if count * several >= _WORTH_FORKS and can_fork() else "threads"


def scored(frame: LogFrame, engine: Choice, tables: Collection[str], memory: int | None = None) -> Projections:
    """Return the projections of a log, as `replay` describes it. Raises Refused, Corrupt, Unavailable."""
    chosen = engine_for(frame) if engine == "auto" else engine
    if memory is None:
        return divided(frame, chosen, tables)
    forecasts = forecasts_within(memory, chosen, len(frame.frame.facts.questions))
    return InParts(frame, chosen, tables, min(forecasts, task_size(frame, chosen)))


def divided(frame: LogFrame, engine: Engine, tables: Collection[str] = BUILT, forecasts: int = 0) -> Projections:
    """Return the projections of a log, with the results that these tables need, computed question by question.

    A table that needs more has all forecasts read when it is asked for. forecasts: of the questions that are scored
    together, about; 0 for as many as `task_size` says. Raises Corrupt, Unavailable.
    """
    wanted = needed(tables)
    every = np.arange(len(frame.frame.facts.questions))
    facts = replace(frame.frame.facts, held=cache(partial(frame.forecasts_on, every)))
    questions = questions_by_rules(facts) if SUMS in wanted else []
    if has_many_sums(facts, questions, frame.frame.counts):
        wanted |= {BOUNDS}
    size = forecasts or task_size(frame, engine)
    undivided = engine == "local" and not forecasts and len(every) > 0 and frame.frame.counts.sum() <= size
    division = divide(frame, size) if wanted and not undivided else []

    def parts_of(wanted: frozenset[str]) -> Iterable[QuestionPart]:
        if undivided and wanted:
            return [score(replace(facts, held=frame.forecasts_on(every)), wanted, questions)]
        if not wanted:
            return ()
        shared = shared_by_tasks(frame, wanted)._replace(run=max(1, len(division) // (_TASKS * processors())))
        return ENGINES[engine](shared, Tasks(frame, division))

    results = finish(facts, parts_of(wanted), wanted, lambda: parts_of(frozenset({SUMS})), questions)
    return Projections(facts, cached=results)


class InParts(Projections):
    """The projections of a log whose large tables are never whole in memory: each is computed again in parts.

    Tables with a row for a question or an account are large. The others rest on sums that an engine computes once.
    """

    def __init__(self, frame: LogFrame, engine: Engine, tables: Collection[str], forecasts: int) -> None:
        """forecasts: of the questions that are scored together, about. Raises Corrupt, Unavailable."""
        small = [name for name in tables if not is_by_question(name)]
        whole = divided(frame, engine, small, forecasts)
        super().__init__(whole.facts, cached=whole.cached)
        self._frame, self._engine, self._forecasts = frame, engine, forecasts

    def parts(self, name: str) -> TableParts:
        """Return the table of a projection in parts, which raise Corrupt, Unavailable, Refused."""
        if is_by_question(name):
            return TableParts(self._by_question(name))
        if CATALOGUE[name].division == ACCOUNTS:
            return TableParts(self._by_account())
        return super().parts(name)

    def _by_question(self, name: str) -> Iterator[Table]:
        """Yield a table some questions at a time; if its key begins with the contest, contest after contest."""
        facts, shared = self._frame.frame.facts, shared_by_tasks(self._frame, frozenset({name}))
        # That counts are true is known from the number of all forecasts, and a contest may have some of the questions.
        shared = shared._replace(sealed=shared.sealed._replace(counted=None))
        by_question = FactsByQuestion(facts)
        yield self.as_table(name, score(shared.facts, shared.wanted).tables[name])
        # The parts of a score on a question are fewer than its forecasts squared.
        size, power = self._forecasts, 1
        if name == "score_parts":
            size, power = min(size * _FORECAST // _SCORE_PART, MOST_PARTS), 2
        for contest in sorted(facts.contests) if CATALOGUE[name].key[0] == "contest" else [None]:
            entries = None if contest is None else facts.contests[contest].entries
            parts = divide(self._frame, size, entries, power)
            for part in ENGINES[self._engine](shared, Tasks(self._frame, parts, contest, by_question)):
                yield self.as_table(name, part.tables[name])

    def _by_account(self) -> Iterator[Table]:
        yield self.selected_portfolios(Selection(""))
        for contest, participant in sorted(self.facts.books.accounts):
            yield self.selected_portfolios(Selection(contest, participant))


def forecasts_within(memory: int, engine: Engine, questions: int) -> int:
    """Return how many forecasts are scored together in about this much memory, in bytes, of all processes and threads.

    questions: of the log; this process has what is known of them. Raises Refused(out_of_range): it is too little.
    """
    started = processors() if engine == "processes" else 0
    tasks = started + 1 if started else processors() if engine == "threads" else 1  # this process has the results
    base = _PROCESS * (started + 1) + _QUESTION * questions
    share = (memory - base) // tasks
    if share < _LEAST * _FORECAST:
        least = -(-(base + _LEAST * _FORECAST * tasks) >> 20)
        detail = f"{memory >> 20} MiB is too little for the engine {engine} and {questions:,} questions"
        raise Refused("out_of_range", "memory", None, detail, remedy=f"give {least} MiB or more")
    return share // _FORECAST


_PROCESS = 150 << 20  # bytes that a process needs for itself, about
_QUESTION = 4_000  # bytes for each question
_FORECAST = 2_000  # bytes for each forecast that is scored
_SCORE_PART = 250  # bytes for each row of score_parts
_LEAST = 1 << 12  # forecasts
