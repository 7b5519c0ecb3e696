"""Replay a log up to a cut and compute its projections."""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from forecast_ledger.ledger.core import gc_pause, values
from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.log import START, Checkpoint, Recorded, unseal_pages
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns, give_back_memory
from forecast_ledger.ledger.segments.segment_manifest import Segment
from forecast_ledger.ledger.storing import instrumentation
from forecast_ledger.ledger.storing.sealed_log import UNREAD, SealedLog, SealedPart
from forecast_ledger.ledger.storing.store import Store
from forecast_ledger.projections.catalogue.catalogue import BUILT, CATALOGUE
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.catalogue.schemas import DIVISIONS
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.facts import from_log
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.from_segments import FRAME_UNREAD, facts_of_segments, frame_of_segments
from forecast_ledger.projections.tables.analysis import CachedResults
from forecast_ledger.replay.engines.divided import scored
from forecast_ledger.replay.engines.engines import ENGINES, Choice
from forecast_ledger.replay.engines.log_frame import LogFrame, SealedForecasts
from forecast_ledger.replay.engines.pool import check_guard
from forecast_ledger.replay.reading.changed_answers import every_seal_note
from forecast_ledger.replay.reading.plain_dates import end_of_date
from forecast_ledger.replay.reading.with_segments import Trust, WithSegments

# A log position, an instant of the ledger's own clock (or a plain date: the end of that day), or the whole log.
AsOf = int | str | datetime | None
BEYOND_END = "use that log position or an earlier one"
_logger = logging.getLogger(__name__)
Watch = Callable[[int], None]  # called with the number of events read so far


@runtime_checkable
class Readable(Protocol):
    """An object that returns its events page by page, with digests checked: an open Ledger."""

    @property
    def name(self) -> str:
        """The name of the ledger in its store."""

    def read(self) -> Iterator[Sequence[Recorded]]:
        """Return all events in log order."""


@checked()
@dataclass(frozen=True, slots=True)
class Replay:
    """The projections of a log, with the log position and digest up to which they were computed.

    >>> from forecast_ledger import Replay, open, replay
    >>> with open(":memory:") as ledger:
    ...     season: Replay = replay(ledger)
    >>> season.checkpoint.position, len(season.table("leaderboard"))
    (0, 0)
    """

    checkpoint: Checkpoint
    projections: Projections

    def table(self, name: str) -> Table:
        """Return the table of a projection. Raises KeyError: the catalogue has no such projection."""
        return self.projections.table(name)

    def notes(self) -> list[str]:
        """Return what a reader of its boards should know, as commands say it on stderr: which answers changed after
        a board was sealed that rests on them, and what that board would be now. No table says so.

        >>> from forecast_ledger import open, replay
        >>> with open(":memory:") as ledger:
        ...     replay(ledger).notes()
        []
        """
        return every_seal_note(self.projections)


@checked("name", "as_of")
def replay(  # noqa: PLR0913 - what has a default is named
    log: str | PathLike[str] | Readable,
    name: str = "main",
    as_of: AsOf = None,
    watch: Watch = lambda _: None,
    *,
    segments: str | PathLike[str] | None = None,
    trust: Trust = "rows",
    engine: Choice | None = None,
    tables: Collection[str] = BUILT,
    memory: int | None = None,
) -> Replay:
    """Read a log up to a cut, check its digests, and prepare its projections.

    log: the location of a store, of which `name` selects a ledger; it can be `WithSegments`; or an open ledger, which
    stays open. as_of: see `Cut`.
    segments: a folder that has the beginning of the log of a store; only the rest is read from the store.
    trust: of segments. With `rows`, each row is rebuilt and its digest checked, as those of a log are. With `files`,
    the SHA-256 of each file is the one that the folder states, which is enough for a folder that you sealed yourself;
    its columns are then used as they are, and an event that does not fit those before it is still an error.
    engine: reads and scores some questions at a time, before this returns: in this process (`local`), in one for each
    processor (`processes`), in one of these as the number of forecasts suggests (`auto`), or in those of Apache Spark
    (`spark`). By default all forecasts are read at once, and scored when a table needs it. A program that asks for
    `processes` or `auto` guards its start with `if __name__ == "__main__":`, because each process imports it.
    tables: for which an engine computes what they need; the fewer, the less is scored and sent. Others can be asked for
    too, and then have all forecasts read.
    memory: bytes for forecasts and large tables, about. An engine, by default `auto`, scores as many questions together
    as fit, and `Projections.parts` computes large tables in parts. Forecasts that are not read from segments with the
    trust `files` have to fit.
    Raises, first that applies: ValueError (no such trust, or nothing that it could be of; no such engine), Refused
    (as_of is not an instant, or beyond the log; too little memory), RuntimeError (processes without that guard),
    Unavailable (also if the segments are of another log, or end after it), Corrupt.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import append, open, replay
    >>> with TemporaryDirectory() as folder, open(f"{folder}/season.db") as ledger:
    ...     with Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
    ...         counts = append(ledger, file)
    ...     season = replay(f"{folder}/season.db")
    >>> for row in season.table("leaderboard").only("contest", "plain").rows():
    ...     print(row["rank"], row["participant"], row["prize"])
    1 B 779.30
    2 A 108.00
    3 bot 67.90
    4 C 44.80
    """
    begun, cut = instrumentation.now_ns(), Cut(as_of)
    if segments is not None or trust != "rows":
        log = _with_segments(log, segments, trust)
    _check_engine(engine)
    if engine is None and memory is None:
        projections, head = Projections(_facts_of(log, name, cut, watch)), cut.reached()
    else:
        frame, head = _frame_of(log, name, cut, watch, memory), cut.reached()
        projections = scored(frame, engine or "auto", tables, memory)
    name = name if isinstance(log, str | PathLike) else log.name
    instrumentation.log_event(_logger, logging.INFO, "replayed", lambda: {"ledger": name, **head._asdict()}, begun)
    return Replay(head, projections)


def _check_engine(engine: Choice | None) -> None:
    """Raise ValueError if there is no such engine; end a process that would start processes without end."""
    if engine not in {None, "auto", *ENGINES}:
        raise ValueError(f"no engine named {engine!r}: give {', '.join(ENGINES)} or auto")
    if engine in {"auto", "processes"}:
        check_guard()  # before the log is read again


def _with_segments(
    log: str | PathLike[str] | Readable, segments: str | PathLike[str] | None, trust: Trust
) -> WithSegments:
    if not isinstance(log, str | PathLike):
        raise ValueError(f"trust {trust!r}: an open ledger has no segments; give the location of its store")
    return WithSegments(log, segments, trust)


def _facts_of(log: str | PathLike[str] | Readable, name: str, cut: "Cut", watch: Watch) -> Facts:
    if isinstance(log, str | PathLike):
        return read_facts(log, name, cut, watch)
    with gc_pause.paused():
        return from_log.facts(cut.pages(log.read(), watch))


def _frame_of(log: str | PathLike[str] | Readable, name: str, cut: "Cut", watch: Watch, memory: int | None) -> LogFrame:
    if isinstance(log, str | PathLike):
        return read_frame(log, name, cut, watch, memory)
    with gc_pause.paused():
        frame = frame_of_segments((), _within(memory, cut.pages(log.read(), watch)))
    return LogFrame(frame, SealedForecasts(Path(), (), frame.facts.as_of))


class TableSummary(NamedTuple):
    """The version of a projection, the number of rows of its table, and the table's digest."""

    version: int
    rows: int
    digest: str


def summarize_tables(
    facts: Facts, cached: CachedResults | None = None, names: Collection[str] = BUILT
) -> dict[str, TableSummary]:
    """Build every projection except those that are built only by name, in the catalogue's order.

    cached: results that need not be computed again. names: of the projections, if not of all those.

    A second thread builds the tables that depend on scores: the two groups are independent, and NumPy releases the
    interpreter lock. The thread ends with the call.
    """
    with gc_pause.paused(), ThreadPoolExecutor(1) as aside:
        scores, rest = (Projections(facts, cached=cached and cached.copy()) for _ in range(2))
        beside = {name: aside.submit(_summarize, scores, name) for name in names if _follows_scores(name)}
        try:
            here = {name: _summarize(rest, name) for name in names if name not in beside}
            return {name: beside[name].result() if name in beside else here[name] for name in names}
        finally:
            aside.shutdown(wait=False, cancel_futures=True)


def summarize_parts(projections: Projections, names: Collection[str]) -> dict[str, TableSummary]:
    """Compute projections one after the other, of which only a part has to be in memory at a time."""
    return {name: _summarize_parts(projections, name) for name in names}


def _summarize_parts(projections: Projections, name: str) -> TableSummary:
    with gc_pause.paused():
        parts = projections.parts(name)
        deque(parts, maxlen=0)
        return TableSummary(CATALOGUE[name].version, parts.rows, parts.digest)


def _follows_scores(name: str) -> bool:
    return DIVISIONS[CATALOGUE[name].division].second_thread


def _summarize(projections: Projections, name: str) -> TableSummary:
    table = projections.table(name)
    return TableSummary(table.version, len(table), table.digest())


class LogParts(NamedTuple):
    """A log up to a cut: the columns of the part that is read from segments, and the pages of events after it.

    The columns are to be read before the pages. Both raise Unavailable, Corrupt.
    """

    segments: Iterator[SealedPart]
    pages: Iterator[Sequence[Recorded]]


@contextmanager
def open_parts(
    location: str | PathLike[str],
    name: str,
    cut: "Cut",
    watch: Watch = lambda _: None,
    without: Collection[str] | None = UNREAD,
) -> Iterator[LogParts]:
    """Open a log to read it up to a cut, with its segments if it has any and their files are trusted.

    without: the columns of segments that are left out; None if each event needs its digest, so that rows are rebuilt.

    Raises Unavailable (also if the segments are of another log, or end after it), Corrupt.
    """
    with open_store(location, name) as store:
        sealed = location.segments(store) if isinstance(location, WithSegments) else None
        if sealed is None or not isinstance(location, WithSegments):
            yield LogParts(iter(()), cut.pages(unseal_pages(store.pages()), watch))
            return
        rest = iter(()) if location.is_whole else sealed.rows_after(store)
        if without is None or location.trust == "rows":
            yield LogParts(iter(()), cut.pages(chain(sealed.rows(), rest), watch))
        else:
            yield LogParts(cut.segments(sealed, watch, without), cut.tail(sealed, rest, watch))


def read_facts(location: str | PathLike[str], name: str, cut: "Cut", watch: Watch = lambda _: None) -> Facts:
    """Return the facts of a log up to a cut. Raises Unavailable, Corrupt; see `open_parts`."""
    with open_parts(location, name, cut, watch) as parts:
        return facts_of_segments(((part.columns, part.end) for part in parts.segments), parts.pages)


def read_frame(
    location: str | PathLike[str],
    name: str,
    cut: "Cut",
    watch: Watch = lambda _: None,
    memory: int | None = None,
) -> LogFrame:
    """Read a log up to a cut without the forecasts in its segments, which can then be read for some questions.

    Forecasts that are not in segments, or whose every row is to be checked, are in memory. Raises Refused (they need
    more memory, in bytes), Unavailable, Corrupt; see `open_parts`.
    """
    folder, read = location.folder if isinstance(location, WithSegments) else Path(), list[Segment]()

    def columns(parts: Iterator[SealedPart]) -> Iterator[tuple[SegmentColumns, Checkpoint]]:
        for part in parts:
            read.append(part.segment)
            yield part.columns, part.end

    with open_parts(location, name, cut, watch, UNREAD | FRAME_UNREAD) as parts:
        frame = frame_of_segments(columns(parts.segments), _within(memory, parts.pages))
    if read:
        give_back_memory()
    return LogFrame(frame, SealedForecasts(folder, tuple(read), frame.facts.as_of))


_EVENT = 300  # bytes for each event that is not read as columns, about


def _within(memory: int | None, pages: Iterator[Sequence[Recorded]]) -> Iterator[Sequence[Recorded]]:
    """Yield pages of events that fit in memory. Raises Refused(out_of_range)."""
    count = 0
    for page in pages:
        count += len(page)
        if memory is not None and count * _EVENT > memory:
            detail = f"events that are not in segments, {count:,} or more, need more than {memory >> 20} MiB"
            remedy = "seal the log, and read the segments with the trust `files`"
            raise Refused("out_of_range", "memory", None, detail, remedy=remedy)
        yield page


@contextmanager
def open_store(location: str | PathLike[str], name: str) -> Iterator[Store]:
    """Open a store read-only, to read a whole log from it."""
    store = Store.open(location, values.check_id(name, "name"), read_only=True)
    try:
        with gc_pause.paused():
            yield store
    finally:
        store.close()


class Cut:
    """The end of a replay: passes on the events up to the cut, and remembers the last one.

    as_of: a log position; an instant of the ledger's own clock; or a plain date, which is the last instant of that day.

    Raises Refused: as_of is not an instant, or a negative position.
    """

    def __init__(self, as_of: AsOf) -> None:
        if isinstance(as_of, int) and as_of < 0:
            raise Refused("out_of_range", "as_of", as_of, "log positions start at 1; 0 is before the first")
        self._position = as_of if isinstance(as_of, int) else None
        self._instant = None
        if as_of is not None and not isinstance(as_of, int):
            self._instant = values.read_instant(end_of_date(as_of) if isinstance(as_of, str) else as_of, "as_of")
        self.last = START
        self.recorded_at: int | None = None  # of the last event

    def reached(self) -> Checkpoint:
        """Return the last event that was read. Raises Refused: the log ends before the cut."""
        if self._position is not None and self._position > self.last.position:
            wrong = f"the log ends at position {self.last.position}"
            raise Refused("out_of_range", "as_of", self._position, wrong, remedy=BEYOND_END)
        return self.last

    def pages(self, pages: Iterator[Sequence[Recorded]], watch: Watch) -> Iterator[Sequence[Recorded]]:
        """Return the events up to the cut; a cut at an instant includes the events recorded at that instant."""
        for page in pages:
            before = [recorded for recorded in page if self._includes(recorded)] if self._ends_within(page) else page
            if before:
                self.last = Checkpoint(before[-1].position, before[-1].digest)
                self.recorded_at = before[-1].recorded_at
                watch(self.last.position)
                yield before
            if len(before) < len(page) or self.last.position == self._position:
                return

    def segments(self, sealed: SealedLog, watch: Watch, without: Collection[str] = UNREAD) -> Iterator[SealedPart]:
        """Return the columns of the segments up to the cut, but for some."""
        for part in sealed.segments(self.includes, without):
            self.last, self.recorded_at = part.end, part.recorded_at
            watch(self.last.position)
            yield part

    def tail(self, sealed: SealedLog, rest: Iterator[Sequence[Recorded]], watch: Watch) -> Iterator[Sequence[Recorded]]:
        """Return the events after the segments, once these are read; none if the cut is before their end."""
        if self.last == sealed.manifest.end:
            yield from self.pages(rest, watch)

    def includes(self, position: int, recorded_at: int) -> bool:
        """Return whether an event with this position and instant is part of the replay."""
        if self._position is not None:
            return position <= self._position
        return self._instant is None or recorded_at <= self._instant

    def _ends_within(self, page: Sequence[Recorded]) -> bool:
        return not self._includes(page[-1])

    def _includes(self, recorded: Recorded) -> bool:
        return self.includes(recorded.position, recorded.recorded_at)
