"""The rows of a folder of segments, for all that reads a log: rebuilt from the columns, a page at a time."""

from binascii import hexlify
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Never

import numpy as np

from forecast_ledger.ledger.core.errors import Absent, Corrupt, Unavailable
from forecast_ledger.ledger.core.redaction import redacted
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.events import TAGS, ForecastMade, ForecastWithdrawn
from forecast_ledger.ledger.model.log import Checkpoint
from forecast_ledger.ledger.segments.arrow_arrays import (
    array_of_texts,
    compute_functions,
    integers,
    labelled,
    log_order,
    numpy_array,
    pyarrow,
    row_numbers,
    whole,
)
from forecast_ledger.ledger.segments.row_ranges import InLogOrder, between
from forecast_ledger.ledger.segments.segment_columns import (
    Chain,
    SegmentColumns,
    all_but,
    rebuild,
    says_another,
    sealed_digests,
)
from forecast_ledger.ledger.segments.segment_files import check_statements, read_columns, read_table
from forecast_ledger.ledger.segments.segment_manifest import MARKED, Segment, check_file, read_manifest
from forecast_ledger.ledger.storing.database import Fault, Rows

READ_ONLY = (
    "segments take files, not single commands: `forecast-ledger append FOLDER FILE` appends one, and "
    "`forecast-ledger import FOLDER LOG` copies the segments into a ledger"
)
Page = Sequence[tuple[int, bytes]]


class SegmentPart(NamedTuple):
    """Consecutive rows of a segment: the columns of which they are made, their digests, and what they follow.

    heads, ends: the bytes of each row before the digest of the row before it, and after that up to its own digest.
    beside: the ids of the commands of the rows before and after them in the segment; None if there is none.
    """

    before: Checkpoint
    columns: SegmentColumns
    heads: list[bytes]
    ends: list[bytes]
    digests: list[bytes]
    beside: tuple[str | None, str | None]

    @property
    def end(self) -> Checkpoint:
        """The checkpoint of the last row."""
        return Checkpoint(self.before.position + len(self.digests), self.digests[-1].hex())

    def rows(self, places: Iterable[int]) -> list[bytes]:
        """Return the rows at some places, which count from 0."""
        before = self.before.digest.encode()
        return [
            log.built_row(
                self.heads[at], hexlify(self.digests[at - 1]) if at else before, self.ends[at], self.digests[at]
            )
            for at in places
        ]

    def order(self) -> Any:
        """Return which row of the columns, those of forecasts first, is next in the log; shape (n,)."""
        return log_order(np.concatenate([integers(table["position"]) for table in self.columns.rows]))

    def command_ids(self) -> Any:
        """Return the ids of the commands of the rows, a pyarrow.Array."""
        ids = pyarrow().concat_arrays([whole(table["command_id"]) for table in self.columns.rows])
        return ids.take(row_numbers(self.order()))

    def types(self) -> list[str]:
        """Return the types of the events of the rows."""
        made, (labels, label) = (
            numpy_array(whole(self.columns.forecasts["made"])),
            labelled(self.columns.others["type"]),
        )
        tags = [TAGS[ForecastWithdrawn], TAGS[ForecastMade], *labels]
        return [tags[number] for number in np.concatenate([made, label + 2])[self.order()].tolist()]


class _Texts:
    """The bytes of which rows are made; see `SegmentPart`. They are chained without being joined."""

    def __init__(self) -> None:
        self.heads, self.ends = list[bytes](), list[bytes]()

    def chain(self, previous: str, heads: Sequence[bytes], ends: Sequence[bytes]) -> tuple[list[bytes], str]:
        """Return the digests of rows as `chain_digests` does, and keep their bytes."""
        self.heads += heads
        self.ends += ends
        return log.chain_digests(previous, heads, ends)


class SegmentRows(Rows):
    """The rows of the log that a folder of segments holds; they cannot be appended to."""

    def __init__(self, folder: Path, name: str) -> None:
        """Open a folder. Raises Absent (it has no segments, or those of another ledger), Unavailable, Corrupt."""
        self.location, self._folder = redacted(folder), folder
        manifest = read_manifest(folder)
        if manifest.ledger != name:
            raise Absent(f"{self.location}: its segments are of the ledger {manifest.ledger!r}; name it with --name")
        self.manifest, self._segments = manifest, manifest.segments
        self._ends = [segment.last for segment in self._segments]
        self._kept: tuple[Segment, SegmentColumns] | None = None
        self._in_order = lru_cache(maxsize=1)(
            lambda segment: InLogOrder.of(self.columns(segment), segment.first, segment.last)
        )
        self._page: tuple[int, list[bytes]] = 1, []  # the log position of its first row, and rows rebuilt last
        self._following = iter(list[list[bytes]]())  # the pages after it
        self._bound = self.newest()

    def select(self, after: int, limit: int) -> Page:
        """See `Rows`. Raises Corrupt: a file of a segment is damaged, and no row is before it."""
        rows: list[bytes] = []
        first = max(after, 0) + 1
        while len(rows) < limit and first + len(rows) <= self.newest():
            try:
                rows += self._rows_from(first + len(rows), limit - len(rows))
            except Corrupt:
                self._forget_page()  # what follows it ends with the error
                if not rows:
                    raise
                break
        return [*enumerate(rows, first)]

    def _rows_from(self, position: int, limit: int) -> list[bytes]:
        """Return rows from a position on, at least one; they come from one page."""
        first, rows = self._page
        if not rows or not first <= position <= first + len(rows):
            self._following, first, rows = self._rebuilt_from(position), self._start_of(position), []
        while position >= first + len(rows):
            first, rows = first + len(rows), next(self._following)
            self._page = first, rows
        return rows[position - first : position - first + limit]

    def newest(self) -> int:
        """Return the last log position; 0 if there are no rows."""
        return self._ends[-1] if self._ends else 0

    def heads(self, most: int) -> Sequence[tuple[str, int]]:
        return [(self.manifest.ledger, self.newest())][:most]

    def faults(self) -> Iterator[Fault]:
        """Return the segments with a file that is not the manifest's, or that misleads a reader of Parquet."""
        for segment in self._segments:
            try:
                kept, columns = self._kept, self.columns(segment)
                if kept is not None and kept[0] is segment:  # its files were checked when they were read
                    self._check_files(segment)
                check_statements(self._folder, segment, columns)
            except Corrupt as damage:
                self.check_current()
                if damage.check == "store":  # else a row is wrong, which its reader says
                    yield Fault(damage.position, str(damage.args[1]))

    def check_statements(self, number: int) -> None:
        """Check what the files of a segment say about its rows, once they are as they were sealed. Raises Corrupt."""
        segment = self._segments[number]
        check_statements(self._folder, segment, self.columns(segment))

    def events_of(self, tags: Sequence[str], end: int) -> list[str] | None:
        """See `Rows`. Raises Corrupt: a file of a segment is damaged."""
        if type(self._folder) is not type(Path()):  # a remote one is another kind of path
            return None
        texts = list[str]()
        for segment in self._segments:
            others = self._read_others(segment)
            others = others.filter(compute_functions().is_in(others["type"].cast("string"), array_of_texts(tags)))
            at = integers(others["position"]).tolist()
            texts += [text for place, text in zip(at, others["event"].to_pylist(), strict=True) if place <= end]
        return texts

    def parts(self, after: int, end: int) -> Iterator[SegmentPart]:
        """Yield the rows after a log position up to another, of one segment after the other. Raises Corrupt."""
        for segment in self._segments[bisect_left(self._ends, after + 1) : bisect_left(self._ends, end) + 1]:
            begin, last, texts = max(after, segment.before.position), min(end, segment.last), _Texts()
            before = segment.before
            if begin > before.position and begin // MARKED > before.position // MARKED:
                before = _mark(segment, begin // MARKED * MARKED)
            columns = self._between(segment, before.position, last)
            pages = checked_rows(columns, segment, before, last, texts.chain)
            digests = [digest for page in pages for digest in page]
            if skipped := begin - before.position:
                columns, before = self._between(segment, begin, last), Checkpoint(begin, digests[skipped - 1].hex())
            beside = self._command_at(segment, begin), self._command_at(segment, last + 1)
            made = texts.heads[skipped:], texts.ends[skipped:], digests[skipped:]
            yield SegmentPart(before, columns, *made, beside)

    def _between(self, segment: Segment, after: int, end: int) -> SegmentColumns:
        """Return the rows of a segment after a log position up to another, as `_part` does."""
        ordered = self._in_order(segment)
        return _part(self.columns(segment), segment, after, end) if ordered is None else ordered.between(after, end)

    def _command_at(self, segment: Segment, position: int) -> str | None:
        """Return the id of the command of a row of a segment; None if it has none there."""
        ordered = self._in_order(segment)
        if ordered is None or not segment.first <= position <= segment.last:
            return None
        return str(ordered.row(position)["command_id"][0])

    def clock_of(self, position: int) -> tuple[int, bool]:
        """Return when a row was recorded, µs, and whether it was imported. Raises Corrupt: there is no such row."""
        segment, following = (self._segments[bisect_left(self._ends, at)] for at in (position, position + 1))
        if segment is following and (ordered := self._in_order(segment)) is not None:
            rows: Sequence[Any] = [ordered.row(position)]
        else:
            columns = self._read_columns(segment, all_but("position", "recorded_at", "imported"))
            rows = between(columns, position - 1, position).rows
        for table in rows:
            if len(table):
                return int(integers(table["recorded_at"])[0]), bool(numpy_array(whole(table["imported"]))[0])
        raise Corrupt(position, f"the segment up to {segment.last} has no such row", "store")

    def bound(self, end: int) -> None:
        """See `Rows`."""
        self._forget_page()
        self._bound = end

    def turn(self) -> AbstractContextManager[Never]:
        """Raise Unavailable."""
        raise Unavailable(f"{self.location}: {READ_ONLY}")

    def close(self) -> None:
        """Forget the columns."""
        self._kept = None
        self._in_order.cache_clear()
        self._forget_page()

    def _forget_page(self) -> None:
        self._page, self._following = (1, []), iter(())

    def columns(self, segment: Segment) -> SegmentColumns:
        """Return the columns of a segment, which are kept until another is read. Raises Corrupt, Unavailable."""
        kept = self._kept
        if kept is None or kept[0] is not segment:
            kept = self._kept = segment, self._read_columns(segment)
        return kept[1]

    def _read_columns(self, segment: Segment, without: Collection[str] = ()) -> SegmentColumns:
        """Return the columns of a segment, but for some, after a check of its files. Raises Corrupt, Unavailable."""
        try:
            self._check_files(segment)  # first: pyarrow ends the process at some damage
            return read_columns(self._folder, segment, without=without)
        except Corrupt:
            self.check_current()
            raise

    def _read_others(self, segment: Segment) -> Any:
        """Return position, type and JSON of the other events of a segment, after a check of their file, as above."""
        try:
            check_file(self._folder, segment.others, segment.first)
            return read_table(self._folder, segment, "others", without=all_but("position", "type", "event"))
        except Corrupt:
            self.check_current()
            raise

    def _check_files(self, segment: Segment) -> None:
        for file in segment.files:
            check_file(self._folder, file, segment.first)

    def check_current(self) -> None:
        """Raise Unavailable if more was sealed since the folder was opened: its last segment may be replaced."""
        if read_manifest(self._folder) != self.manifest:
            raise Unavailable(f"{self.location}: more rows were sealed while it was read; try again")

    def _start_of(self, position: int) -> int:
        """Return the first position after the last mark before a position; marks do not go across segments."""
        segment = self._segments[bisect_left(self._ends, position)]
        return max(segment.first, (position - 1) // MARKED * MARKED + 1)

    def _rebuilt_from(self, position: int) -> Iterator[list[bytes]]:
        """Yield pages of rows, the first from `_start_of(position)` on. Raises Corrupt."""
        number, start = bisect_left(self._ends, position), self._start_of(position)
        for segment in self._segments[number:]:
            columns, before = self.columns(segment), segment.before
            if start > segment.first:
                before = _mark(segment, start - 1)
            for end in (self._bound, segment.last) if start <= self._bound < segment.last else (segment.last,):
                for rows in checked_rows(_part(columns, segment, before.position, end), segment, before, end):
                    yield rows
                    before = Checkpoint(before.position + len(rows), log.stated_digest(rows[-1]))
            start = segment.last + 1


def _mark(segment: Segment, position: int) -> Checkpoint:
    """Return the checkpoint at a multiple of MARKED within a segment."""
    first = -(-segment.first // MARKED) * MARKED
    return Checkpoint(position, segment.marks[(position - first) // MARKED])


def _part(columns: SegmentColumns, segment: Segment, after: int, end: int) -> SegmentColumns:
    """Return the rows of a segment after a log position up to another; also those of no row, at an end of it."""
    return between(columns, None if after < segment.first else after, None if end == segment.last else end)


def check_rows(folder: Path, segment: Segment, after: int, end: int) -> None:
    """Rebuild the rows of a segment after a log position up to another, and check their digests.

    Each position is a multiple of MARKED, or an end of the segment. A row too many, which is not found here, leaves one
    too few elsewhere in the segment. Raises Corrupt (a file or a row was changed), Unavailable (no pyarrow).
    """
    for file in segment.files:  # first: pyarrow ends the process at some damage
        check_file(folder, file, segment.first)
    columns, at = _part(read_columns(folder, segment), segment, after, end), after
    before = _mark(segment, after) if after >= segment.first else segment.before
    for digests in checked_rows(columns, segment, before, chain=log.chain_digests):
        at += len(digests)
        if at >= end:
            return


def checked_rows(
    columns: SegmentColumns,
    segment: Segment,
    before: Checkpoint,
    end: int | None = None,
    chain: Chain = log.chain_rows,
) -> Iterator[list[bytes]]:
    """Yield the rows in pages. Those at marks, and the last one, have the digests that the manifest states.

    end: the log position of the last row, if that is not the last one of the segment. chain: one that returns the
    digests of the rows instead, 32 bytes each, takes less time.
    Raises Corrupt, also at a row that finalizes a contest, if the columns state another digest of it.
    """
    position = trusted = before.position
    sealed, digest_of = sealed_digests(columns), log.stated_digest if chain is log.chain_rows else bytes.hex
    for rows in rebuild(columns, before, chain):
        first, position = position + 1, position + len(rows)
        marked = range(-(-first // MARKED) * MARKED, position + 1, MARKED)
        for at in [*marked, *([segment.last] if first <= segment.last <= position else [])]:
            stated = segment.digest if at == segment.last else _mark(segment, at).digest
            if digest_of(rows[at - first]) != stated:
                fault = f"the columns of the segment up to {segment.last} were changed here or soon after"
                raise Corrupt(trusted + 1, fault, "store")
            trusted = at
        for at, digest in sealed.items():
            if first <= at <= position and digest_of(rows[at - first]) != digest:
                raise says_another(at, "digest")
        yield rows
    if position != (segment.last if end is None else end):
        raise Corrupt(position + 1, f"the segment up to {segment.last} has no such row", "store")
