"""A log that is read: where it is, up to which cut, and what of it comes from segments."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import date, datetime
from itertools import chain, tee
from os import PathLike, fspath
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar, get_args

from forecast_ledger.ledger.core import gc_pause, values
from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Absent, Corrupt, Refused, Unavailable
from forecast_ledger.ledger.core.files import folder_at
from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.ledger.core.redaction import redacted
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import START, Checkpoint, Recorded
from forecast_ledger.ledger.model.plain_rows import unseal_columns
from forecast_ledger.ledger.segments.arrow_arrays import give_back_memory, pyarrow
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns
from forecast_ledger.ledger.segments.segment_files import Ends, counted_ends
from forecast_ledger.ledger.segments.segment_manifest import Segment
from forecast_ledger.ledger.storing.sealed_log import UNREAD, SealedLog, SealedPart
from forecast_ledger.ledger.storing.stored_log import StoredLog, has_segments_beside, is_folder, segments_beside
from forecast_ledger.projections.facts.columns import Contest, Entry, Facts
from forecast_ledger.projections.facts.from_segments import FRAME_UNREAD, facts_of_segments, frame_of_segments
from forecast_ledger.replay.engines.log_frame import LogFrame, SealedForecasts
from forecast_ledger.replay.engines.row_checks import are_intact
from forecast_ledger.replay.engines.row_pages import read_columns

# A log position, an instant of the ledger's own clock (or a plain date: the end of that day), or the whole log.
AsOf = int | str | datetime | None
BEYOND_END = "use that log position or an earlier one"
OnProgress = Callable[[int], None]  # called with the number of events read so far
Trust = Literal["files", "rows"]
TRUSTS: tuple[Trust, ...] = get_args(Trust)
OnMessage = Callable[[str], None]
_T = TypeVar("_T")
_EVENT = 300  # bytes for each event that is not read as columns, about


def _no_progress(_: int) -> None:
    pass


class Log(NamedTuple):
    """A ledger in a store, which is read up to a cut and never written.

    location: of the store; a `WithSegments` if its beginning is read from segments. as_of: see `Cut`. Reading raises
    Unavailable (also if the segments are of another log, or end after it), Corrupt.
    """

    location: str | PathLike[str]
    name: str = "main"
    as_of: AsOf = None
    on_progress: OnProgress = _no_progress

    def cut(self) -> "Cut":
        """Return the end of a reading of this log, which has not begun. Raises Refused: see `Cut`."""
        return Cut(self.as_of, self.on_progress)

    @contextmanager
    def opened(self) -> Iterator[StoredLog]:
        """Open the store read-only, to read a whole log from it."""
        store = StoredLog.open(self.location, values.check_id(self.name, "name"), read_only=True)
        try:
            with gc_pause.paused():
                yield store
        finally:
            store.close()

    @property
    def is_sealed(self) -> bool:
        """Whether its beginning is read from segments."""
        return isinstance(self.location, WithSegments) or is_folder(self.location)

    @contextmanager
    def pages(self, cut: "Cut") -> Iterator[Iterator[Sequence[Recorded]]]:
        """Read the rows of the store up to a cut; each is checked."""
        with self.opened() as store:
            yield cut.read(store.pages())

    @contextmanager
    def parts(
        self,
        cut: "Cut",
        without: Collection[str] | None = UNREAD,
        *,
        side_by_side: bool = True,
        question: str | None = None,
    ) -> Iterator["LogParts"]:
        """Read the log up to a cut, with its segments if it has any.

        without: the columns of segments that are left out; None if each event needs its digest, so that rows are
        rebuilt. Without those that a frame does not need, forecasts may be given as their counts. side_by_side: other
        processes may read rows, or check them first. question: the only one whose forecasts are wanted, if they are no
        columns of segments; see `read_columns`.
        """
        with self.opened() as store:
            located = self.location if isinstance(self.location, WithSegments) else None
            if located is None and is_folder(self.location):
                located = WithSegments(self.location, trust="rows")
            sealed = located.sealed(store) if located is not None else None
            if located is None or sealed is None:
                most = cut.most if side_by_side else 0
                with closing(read_columns(store, fspath(self.location), most, question)) as columns:
                    yield LogParts(iter(()), cut.read(store.pages()), columns=cut.pages(columns))
                return
            unsealed = iter(()) if located.is_whole else sealed.rows_after(store)
            if without is None:
                yield LogParts(iter(()), cut.pages(chain(sealed.rows(), unsealed)))
            else:
                every_row = located.trust == "rows" and not (
                    side_by_side and are_intact(located.folder, sealed.manifest)
                )
                counted = located.trust == "files" and {*without} >= FRAME_UNREAD
                segments = cut.segments(sealed, without, every_row=every_row, counted=counted)
                yield LogParts(segments, cut.tail(sealed, unsealed), located.folder)

    def facts(self, cut: "Cut") -> Facts:
        """Return the facts of the log up to a cut."""
        with self.parts(cut) as parts:
            return parts.facts()

    def frame(self, cut: "Cut") -> LogFrame:
        """Return the log up to a cut without the forecasts in its segments; see `LogParts.frame`."""
        with self.parts(cut, UNREAD | FRAME_UNREAD) as parts:
            return parts.frame()


class LogParts(NamedTuple):
    """A log up to a cut: the columns of the part that is read from segments, and the pages of events after it.

    The columns are to be read before the pages. Both raise Unavailable, Corrupt. folder: of the segments. columns: the
    pages in another form, of which facts are made in less time; None if there is none.
    """

    segments: Iterator[SealedPart]
    pages: Iterator[Sequence[Recorded]]
    folder: Path = Path()
    columns: Iterator[Sequence[Recorded]] | None = None

    def facts(self) -> Facts:
        """Read all, and return the facts."""
        segments = ((part.columns, part.end) for part in self.segments)
        return self.made(lambda pages: facts_of_segments(segments, pages))

    def frame(self, memory: int | None = None) -> LogFrame:
        """Read all but the forecasts in segments, which can then be read for some questions.

        Forecasts that are not in segments are in memory. Raises Refused: they need more memory, in bytes.
        """
        read, counted = list[Segment](), dict[int, list[Ends]]()

        def columns() -> Iterator[tuple[SegmentColumns, Checkpoint]]:
            for part in self.segments:
                read.append(part.segment)
                if (ends := counted_ends(part.columns.forecasts)) is not None:
                    counted[part.segment.first] = ends
                yield part.columns, part.end

        frame = self.made(lambda pages: frame_of_segments(columns(), _within(memory, pages)))
        if read:
            give_back_memory()
        sealed = SealedForecasts(self.folder, tuple(read), frame.facts.as_of, counted=counted)
        return LogFrame(frame, sealed)

    def made(self, make: Callable[[Iterator[Sequence[Recorded]]], _T]) -> _T:
        """Return what is made of the columns, if there are any; if an event of them is wrong, of the pages."""
        if self.columns is not None:
            with suppress(Corrupt):  # which fault is found first depends on where pages end, and so on the processors
                return make(self.columns)
        return make(self.pages)


def _within(memory: int | None, pages: Iterator[Sequence[Recorded]]) -> Iterator[Sequence[Recorded]]:
    """Yield pages of events that fit in memory. Raises Refused(out_of_range)."""
    count = 0
    for page in pages:
        count += len(page)
        if memory is not None and count * _EVENT > memory:
            detail = f"events that are not in segments, {count:,} or more, need more than {memory >> 20} MiB"
            remedy = "seal the log, and read the segments"
            raise Refused("out_of_range", "memory", None, detail, remedy=remedy)
        yield page


class Cut:
    """The end of a replay: passes on the events up to the cut, and remembers the last one.

    as_of: a log position; an instant of the ledger's own clock; or a plain date, which is the last instant of that day.
    on_progress: called with each log position that a page or a segment ends at.

    Raises Refused: as_of is not an instant, or a negative position.
    """

    def __init__(self, as_of: AsOf, on_progress: OnProgress = _no_progress) -> None:
        if isinstance(as_of, int) and as_of < 0:
            raise Refused("out_of_range", "as_of", as_of, "log positions start at 1; 0 is before the first")
        self._position = as_of if isinstance(as_of, int) else None
        self._instant = None
        if as_of is not None and not isinstance(as_of, int):
            self._instant = cut_instant(as_of)
        self.last = START
        self.on_progress = on_progress
        self.recorded_at: int | None = None  # of the last event

    @property
    def most(self) -> int | None:
        """The log position that it is at; None if it is at an instant, or at the end of the log."""
        return self._position

    def reached(self) -> Checkpoint:
        """Return the last event that was read. Raises Refused: the log ends before the cut."""
        if self._position is not None and self._position > self.last.position:
            wrong = f"the log ends at position {self.last.position}"
            raise Refused("out_of_range", "as_of", self._position, wrong, remedy=BEYOND_END)
        return self.last

    def pages(self, pages: Iterator[Sequence[Recorded]]) -> Iterator[Sequence[Recorded]]:
        """Return the events up to the cut; a cut at an instant includes the events recorded at that instant."""
        for page in pages:
            before = page if self._includes(page[-1]) else [each for each in page if self._includes(each)]
            if before:
                self.last = Checkpoint(before[-1].position, before[-1].digest)
                self.recorded_at = before[-1].recorded_at
                self.on_progress(self.last.position)
                yield before
            if len(before) < len(page) or self.last.position == self._position:
                return

    def read(self, rows: Iterator[Sequence[bytes]], before: Checkpoint = START) -> Iterator[Sequence[Recorded]]:
        """Return the events of rows up to the cut, each checked as it is read. before: what the rows come after."""
        return self.pages(log.unseal_pages(rows, before))

    def rows(self, pages: Iterator[Sequence[bytes]]) -> Iterator[tuple[Sequence[bytes], Sequence[Recorded]]]:
        """Return rows up to the cut, page by page, with the events in them; each is checked as it is read."""
        pages, read = tee(pages)
        for events in self.pages(unseal_columns(pages)):
            yield next(read)[: len(events)], events

    def segments(
        self, sealed: SealedLog, without: Collection[str] = UNREAD, *, every_row: bool = False, counted: bool = False
    ) -> Iterator[SealedPart]:
        """Return the columns of the segments up to the cut, but for some; see `SealedLog.segments`."""
        for part in sealed.segments(self.includes, without, every_row=every_row, counted=counted):
            self.last, self.recorded_at = part.end, part.recorded_at
            self.on_progress(self.last.position)
            yield part

    def tail(self, sealed: SealedLog, unsealed: Iterator[Sequence[Recorded]]) -> Iterator[Sequence[Recorded]]:
        """Return the events after the segments, once these are read; none if the cut is before their end."""
        if self.last == sealed.manifest.end:
            yield from self.pages(unsealed)

    def includes(self, position: int, recorded_at: int) -> bool:
        """Return whether an event with this position and instant is part of the replay."""
        if self._position is not None:
            return position <= self._position
        return self._instant is None or recorded_at <= self._instant

    def _includes(self, recorded: Recorded) -> bool:
        return self.includes(recorded.position, recorded.recorded_at)


class ClaimedCut(NamedTuple):
    """The log position of a cut by the claimed clock; earlier: how many events after it claim no later instant."""

    position: int
    earlier: int


def cut_as_claimed(source: Log, instant: str) -> ClaimedCut:
    """Return the longest beginning of a log in which no event claims a later instant.

    The claimed instants of a log need not be in order, so that events that claim an earlier instant can come after the
    first that claims a later one. They are left out, because a replay is of a beginning of the log.

    Raises, first that applies: Refused (not an instant), Unavailable, Corrupt.
    """
    micros, position, earlier, later = cut_instant(instant, "as_of_claimed"), 0, 0, False
    with source.pages(Cut(None)) as pages:
        for page in pages:
            for recorded in page:
                later = later or recorded.event.at > micros
                if not later:
                    position = recorded.position
                elif recorded.event.at <= micros:
                    earlier += 1
    return ClaimedCut(position, earlier)


def cut_instant(as_of: values.Instant, field: str = "as_of") -> int:
    """Return the instant of a cut in µs; of a plain date, its last. Raises Refused: bad_instant, naive_instant.

    >>> cut_instant("1970-01-01")
    86399999999
    >>> cut_instant("yesterday")
    Traceback (most recent call last):
    forecast_ledger.ledger.core.errors.Refused: bad_instant: as_of = 'yesterday': neither a log position nor ...
    """
    try:
        return values.read_instant(end_of_date(as_of) if isinstance(as_of, str) else as_of, field)
    except Refused as refused:
        position = field == "as_of"
        other = f"neither {'a log position nor ' * position}an instant nor a day" * (refused.code == "bad_instant")
        forms = f"give {'a log position such as 33, ' * position}an instant such as 2026-03-01T09:30:00Z, or a day such"
        raise Refused(refused.code, field, refused.value, other, remedy=f"{forms} as 2026-03-01") from None


def first_event(source: Log) -> Recorded | None:
    """Return the first event of a log; None if there is none, or its row is damaged. Raises Unavailable."""
    with source.opened() as store, suppress(Corrupt):  # who reads the log says where it is damaged
        for row in store.read(0, 1):
            return log.decode_row(row, 1)
    return None


_DATE_LENGTH, _START_OF_DAY, _END_OF_DAY = len("2026-03-01"), "T00:00:00Z", "T23:59:59.999999Z"


def end_of_date(text: str) -> str:
    """Return a plain date as its last instant, UTC, and any other text as it is.

    >>> end_of_date("2026-03-01"), end_of_date("2026-03-01T00:00:00Z"), end_of_date("2026-13-01")
    ('2026-03-01T23:59:59.999999Z', '2026-03-01T00:00:00Z', '2026-13-01')
    """
    return text + _END_OF_DAY if _is_date(text) else text


def read_span(since: str | None, until: str | None) -> tuple[int | None, int | None]:
    """Return a span [since, until) in µs; of a plain date, the first counts from its beginning, the other to its end.

    Raises Refused: not an instant; the field is named as the option, `from` or `until`.

    >>> read_span("1970-01-01", "1970-01-01"), read_span(None, "1970-01-01T00:00:00Z")
    ((0, 86400000000), (None, 0))
    """
    begin = end = None
    if since is not None:
        begin = values.read_instant(since + _START_OF_DAY * _is_date(since), "from")
    if until is not None:
        end = values.read_instant(end_of_date(until), "until") + _is_date(until)
    return begin, end


def _is_date(text: str) -> bool:
    if len(text) == _DATE_LENGTH and text[4::3] == "--":
        with suppress(ValueError):  # no such day: whoever reads the instant refuses it as it is written
            return bool(date.fromisoformat(text))
    return False


class WithSegments(PathLike[str]):
    """A log whose beginning is read from a folder of segments: give it instead of the location of a log.

    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import WithSegments, commands, open_ledger, replay, seal
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/season.db") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     sealed = seal(f"{folder}/season.db")
    ...     replay(WithSegments(f"{folder}/season.db")).checkpoint == sealed.checkpoint
    True
    """

    @checked()
    def __init__(
        self,
        log: str | PathLike[str],
        segments: str | PathLike[str] | None = None,
        trust: Trust = "files",
        *,
        on_message: OnMessage | None = None,
    ) -> None:
        """log: its location, or a folder of segments, which is then the whole log. segments: their folder; by default
        the one beside the log, with its name and `.segments`. trust: what is checked, as in `replay`. on_message:
        called once with a line that says whether the segments are used; segments that do not fit, or are damaged, are
        then left out, and the log is read. Without it they are refused when the log is read.

        Raises ValueError: no such trust, or there is no folder.
        """
        self.log, self.trust, self._on_message = fspath(log), trust, on_message
        self.is_whole = is_folder(self.log)  # whether there are no other rows than those of the segments
        folder = folder_at(segments) if segments is not None else _folder_of(self.log)
        if trust not in TRUSTS:
            raise ValueError(f"trust {trust!r}: give {' or '.join(TRUSTS)}")
        if folder is None:
            raise ValueError(f"{redacted(self.log)}: no folder of segments, and none is beside it; `seal` makes one")
        self.folder = folder
        self._opened: dict[str, SealedLog | None] = {}  # by the name of the ledger

    def sealed(self, store: StoredLog) -> SealedLog | None:
        """Return the segments of a ledger; None if they are left out. Raises Absent, Unavailable, Corrupt."""
        if store.name not in self._opened:
            self._opened[store.name] = self._segments(store)
        return self._opened[store.name]

    def _segments(self, store: StoredLog) -> SealedLog | None:
        try:
            sealed = SealedLog(self.folder, store.name)
            if self._on_message is not None:
                pyarrow()
                sealed.check_same(store)
                sealed.check_files()
        except (Unavailable, Corrupt) as error:
            if self._on_message is None:
                raise
            if not isinstance(error, Absent):  # those of another ledger of the store
                self._on_message(f"segments are not used: {error.args[-1] if isinstance(error, Corrupt) else error}")
            return None
        if self._on_message is not None:
            checked = "the SHA-256 of its files was checked, not every row; --trust rows reads the log"
            self._on_message(
                f"up to log position {sealed.manifest.end.position}, read from {redacted(self.folder)}: {checked}"
            )
        return sealed

    def __fspath__(self) -> str:
        return self.log

    def __str__(self) -> str:
        return self.log


def _folder_of(log: str) -> Path | None:
    """Return the folder of a log: itself, or the one beside it. None if there is none."""
    if is_folder(log):
        return folder_at(log)
    return segments_beside(log) if has_segments_beside(log) else None


# --- Look up contests and questions by id; an unknown id is refused with the ids that exist.


def find_contest(facts: Facts, name: str) -> Contest:
    """Return the contest with this id.

    Raises Refused (unknown_contest); the message lists the contests of the log, the most similar first.
    """
    contest = facts.contests.get(name)
    if contest is None:
        detail = f"the log has no such contest; it has: {listed(name, facts.contests)}"
        raise Refused("unknown_contest", "contest", name, detail, remedy="use the id of a contest in the log")
    return contest


def only_contest(facts: Facts) -> str:
    """Return the id of the only contest of a log. Refuses: malformed (there are several, or none)."""
    known = sorted(facts.contests)
    if len(known) != 1:
        raise Refused("malformed", "contest", None, f"name one of the contests: {listed('', known)}")
    return known[0]


def find_entry(facts: Facts, contest: Contest, question: str) -> Entry:
    """Return the entry of a question in a contest. Raises Refused (unknown_question)."""
    code = facts.question_codes.codes.get(question, -1)
    if code not in contest.entries:
        detail = f"the question is not in the contest {contest.opened.contest!r}"
        remedy = "`table LOG scores` lists the questions that have a score"
        raise Refused("unknown_question", "question", question, detail, remedy=remedy)
    return contest.entries[code]


def outcome_names(facts: Facts, question: str) -> Sequence[str]:
    """Return the names of a question's outcomes, in their order; () if it has a range, or the facts do not have it."""
    code = facts.question_codes.codes.get(question)
    return () if code is None else facts.questions[code].outcomes
