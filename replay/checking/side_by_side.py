"""The beginning of a log, verified side by side: processes check parts of its rows, and this one what is between them.

This process checks parts too while it waits for the others, and all of them if there are no others. A process checks
what needs only a row and the rows beside it: the bytes of the row, its digest, and, if it is a forecast alone in its
command, that it is what its question asks for and what the command's digest says. In this process commands follow one
another: each id is new, a question takes a forecast, no participant's forecasts go back in time, and everything that is
no such forecast is decided as it is in a log read alone. Whatever is in doubt is not judged here: then the log is read
alone from its first row, which says where the damage is.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, islice, pairwise
from os import fspath
from typing import Any, NamedTuple

import numpy as np
from msgspec import json

from forecast_ledger.ledger.auditing.audit import Audit
from forecast_ledger.ledger.auditing.quick_check import ForecastForms
from forecast_ledger.ledger.auditing.taken_forecasts import PlainForecasts
from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.files import folder_at
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.events import (
    AnyEvent,
    OutcomesChanged,
    ParticipantRenamed,
    PrizePaid,
    QuestionOpened,
)
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.storing.forks import can_fork
from forecast_ledger.ledger.storing.segment_rows import SegmentRows
from forecast_ledger.ledger.storing.stored_log import StoredLog, is_folder
from forecast_ledger.projections.core.arrays import int64_array, run_lengths, run_starts
from forecast_ledger.projections.facts.columns import Facts, ForecastPage
from forecast_ledger.projections.facts.from_log import file_columns, file_page
from forecast_ledger.replay.checking.checked_parts import CheckedPage, CheckedPart, Reader
from forecast_ledger.replay.checking.row_checker import RowChecker
from forecast_ledger.replay.checking.row_parts import checked_rows
from forecast_ledger.replay.checking.segment_parts import checked_columns
from forecast_ledger.replay.engines.pool import processors, start
from forecast_ledger.replay.engines.row_pages import UNFIT
from forecast_ledger.replay.engines.shared_tasks import SharedTasks, Task
from forecast_ledger.replay.reading.log import Cut, Log

MANY = 1 << 18  # rows from which on it is worth starting processes
LEAST = 1 << 12  # rows from which on it is worth checking columns before each row is read by itself
PART = 1 << 15  # rows that are checked together; a multiple of the rows between two digests of a manifest
_MOST = 32  # parts that a process checks at once, at most: this one has what is found of them
_TOGETHER = 4  # parts whose commands are decided together: a question then takes its forecasts in fewer pieces
_LATE = 16  # of so many rows, files are checked before one for each other process: this one still decides then
SURROUNDINGS = QuestionOpened, OutcomesChanged, ParticipantRenamed, PrizePaid


class Beginning(NamedTuple):
    """The beginning of a log, verified up to the last row of `rows`.

    columns: of its forecasts, which are not among the facts yet; none if the `Reader` does not keep them.
    """

    rows: RowChecker
    audit: Audit
    facts: Facts
    columns: list[ForecastPage]


class Given(NamedTuple):
    """What every process is given: the log, and the JSON of the events of which `_Surroundings` are made."""

    location: str
    name: str
    events: list[str]


class _Surroundings(NamedTuple):
    """What is true of forecasts wherever they are in the log.

    questions: as each was first opened; the code by which processes name a question is its index. changed: those whose
    outcomes change. several: participants with several ids. Forecasts on these, or of these, are never plain. paid:
    contests that pay prizes.
    """

    questions: dict[str, QuestionOpened]
    changed: set[str]
    several: set[str]
    paid: set[str]

    @classmethod
    def of(cls, events: Iterable[str]) -> "_Surroundings":
        """Read them from the events of a log."""
        surroundings = cls({}, set(), set(), set())
        for event in map(json.Decoder(AnyEvent).decode, events):
            match event:
                case QuestionOpened():
                    surroundings.questions.setdefault(event.question, event)
                case OutcomesChanged():
                    surroundings.changed.add(event.question)
                case ParticipantRenamed():
                    surroundings.several.update((event.participant, event.to))
                case PrizePaid():
                    surroundings.paid.add(event.contest)
        return surroundings


_reader: list[Reader] = []  # in a process of the pool
_inherited: list[Reader] = []  # of segments, by a fork


def verified_beginning(
    source: Log, store: StoredLog, audit: Audit, *, files: bool, side_by_side: bool = True
) -> Beginning | None:
    """Verify a log up to its present end by a process for each processor; by this one alone, unless side_by_side.

    None if anything is in doubt, if the log is short or read up to a cut, or if others cannot read it.
    files: check the store's own files.
    """
    end = store.newest() if source.as_of is None else 0
    processes = processors() if side_by_side and end >= MANY else 1
    if end < LEAST:
        return None
    try:
        shared = _shared(source, store, end, processes - 1)
    except (*UNFIT, OSError, RuntimeError):  # also if the system has no more processes or threads
        return None
    if shared is None:
        return None
    reader, tasks = shared
    try:
        every, last = _submitted(tasks, reader, end, processes, files=files)
        beginning = _joined(source, audit, reader, chain.from_iterable(tasks.results(every)))
        return beginning if beginning is not None and all(tasks.results(last)) else None
    except (*UNFIT, BrokenExecutor, MemoryError):
        return None
    finally:
        tasks.close()
        reader.store.close()


def _submitted(
    tasks: SharedTasks, reader: Reader, end: int, processes: int, *, files: bool
) -> tuple[list[Task], list[Task]]:
    """Let the parts of a log be checked, and its files; return the tasks for parts, and the one that comes last.

    A process does half of its share of the rest at once, but of one segment: so few read the columns of each. It checks
    the files of a segment after its last part. Those of the last one, or of a database, are checked before some parts
    for each other process: this one still decides commands then.
    """
    segments = reader.segments.manifest.segments[:-1] if reader.segments else ()
    ends, every, last = [segment.last for segment in segments], list[Task](), list[Task]()
    late = end - (end - max(ends, default=0)) // _LATE * (processes - 1)
    at = number = 0
    while at < end:
        left, inside = (-(-(to - at) // PART) for to in (end, [*ends, end][number]))
        some = min(max(left // (2 * processes), 1), _MOST, inside) if processes > 1 else 1
        after, at = at, min(at + some * PART, end)
        before, number = number, bisect_right(ends, at)
        every.append(tasks.submit(check_parts, after, at, range(before, number) if files else ()))
        if files and not last and late <= at:
            last.append(tasks.submit(has_no_faults, len(ends)))
    return every, last


def _shared(source: Log, store: StoredLog, end: int, others: int) -> tuple[Reader, SharedTasks] | None:
    """Return what this process has, and the tasks that it shares with so many others; None if they cannot read it.

    A thread reads the columns of the first segment, which forks then have, while this one reads events.
    """
    location = fspath(source.location)
    segments = _segments(location, source.name)
    with ThreadPoolExecutor(1) as aside:
        first = aside.submit(segments.clock_of, 1) if others and segments is not None and can_fork() else None
        events = store.events_of(SURROUNDINGS, end)
    if events is None:
        return None
    given = Given(location, source.name, events)
    reader = _open(given, segments)
    try:
        if first is not None:
            first.result()
            _inherited.append(reader)
        return reader, SharedTasks(reader, with_reader, start(others, begin, given, may_fork=True) if others else None)
    except BaseException:
        reader.store.close()
        raise
    finally:
        _inherited.clear()


def _joined(source: Log, audit: Audit, reader: Reader, parts: Iterator[CheckedPart | None]) -> Beginning | None:
    """Return the beginning of a log that consists of parts; None if anything is in doubt. Raises Corrupt for some.

    The facts have the codes of questions that processes have: both count questions as they open.
    """
    whole, names = Beginning(RowChecker(Cut(None)), audit, Facts(), []), [*reader.codes]
    rows = whole.rows
    while some := [*islice(parts, _TOGETHER)]:
        pages = list[CheckedPage]()
        for part in some:
            if part is None or part.before != rows.last.digest:
                return None
            codes = int64_array([whole.facts.participant_codes.add(name) for name in part.participants])
            pages += (page.with_participants(codes) for page in part.pages)
            rows.last, rows.recorded_at, rows.imported = part.end, part.recorded_at, max(rows.imported, part.imported)
        page = CheckedPage.joined(pages)
        others = log.decode_rows(page.others)
        if not reader.keeps_columns and any(type(recorded.event) is PrizePaid for recorded in others):
            return None
        if not _enter(whole, page, others, names):
            return None
        source.on_progress(rows.last.position)
    audit.check_taken()
    labels = whole.facts.question_codes.labels
    return whole if labels == names[: len(labels)] else None


def _enter(whole: Beginning, page: CheckedPage, others: list[Recorded], names: list[str]) -> bool:
    """Decide the commands of a page, and file their events; False if any of them is in doubt. Raises Corrupt.

    others: its rows that are not plain. names: of questions, by the codes of the processes. Participants have the codes
    of the facts.
    """
    forecasts, decided = page.forecasts, list[Recorded]()
    plain = PlainForecasts(
        names,
        whole.facts.participant_codes.labels,
        *(forecasts.question, forecasts.participant, forecasts.at, page.ids, forecasts.position),
    )
    left, is_plain, taken = iter(others), np.frombuffer(page.plain, np.int8).astype(np.int64), 0
    starts = run_starts(is_plain)
    for first, count in zip(starts.tolist(), run_lengths(starts, len(is_plain)).tolist(), strict=True):
        if is_plain[first]:
            before = whole.audit.take(plain.between(taken, taken := taken + count))
        else:
            before = whole.audit.decide([*islice(left, count)])
        if before is None:
            return False
        decided += before
    if decided and (filed := file_page(whole.facts, decided)) is not None:
        whole.columns.append(filed)
    if len(page.ids):
        filed = file_columns(whole.facts, forecasts)
        whole.columns.extend([filed] if len(filed.made) else [])
    return True


# --- The tasks. Processes do them, and this one does if it is alone.


def begin(given: Given) -> None:
    """Prepare a process of the pool; it does no task if it cannot read the log."""
    with suppress(*UNFIT):
        _reader[:] = _inherited or [_open(given, _segments(given.location, given.name))]


def with_reader(task: Callable[..., Any], *given: Any) -> Any:
    """Do a task in a process of the pool. Raises IndexError: it cannot read the log."""
    return task(_reader[0], *given)


def _segments(location: str, name: str) -> SegmentRows | None:
    """Return the rows of a folder of segments; None if it is none."""
    return SegmentRows(folder_at(location), name) if is_folder(location) else None


def _open(given: Given, segments: SegmentRows | None) -> Reader:
    questions, changed, several, paid = _Surroundings.of(given.events)
    checks, codes = ForecastForms(), {name: code for code, name in enumerate(questions)}
    forms = {name: checks.of(name, question) for name, question in questions.items() if name not in changed}
    if segments is None:
        store = StoredLog.open(given.location, given.name, read_only=True)
    else:
        store = StoredLog(segments, given.name)
    return Reader(store, segments, checks, forms, codes, several, segments is None or bool(paid))


def has_no_faults(reader: Reader, number: int) -> bool:
    """Return whether the files of a segment are as they were written, or those of a database."""
    try:
        with gc_pause.paused():
            if reader.segments is None:
                return not reader.store.faults()
            reader.segments.check_statements(number)
            return True
    except UNFIT:
        return False


def check_parts(reader: Reader, after: int, end: int, files: Iterable[int]) -> list[CheckedPart | None]:
    """Return some parts, as `check_part` does; [None] if the files of these segments have faults."""
    parts = [check_part(reader, *part) for part in pairwise([*range(after, end, PART), end])]
    return parts if all(has_no_faults(reader, number) for number in files) else [None]


def check_part(reader: Reader, after: int, end: int) -> CheckedPart | None:
    """Return the rows after a log position up to another; None if anything is wrong with them, or in doubt."""
    try:
        with gc_pause.paused():
            check = checked_rows if reader.segments is None else checked_columns
            part = check(reader, after, end)
            return part if part is None or reader.keeps_columns else part.without_facts()
    except UNFIT:
        return None
