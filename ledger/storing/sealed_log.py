"""A log whose beginning is in a folder of segments: their columns up to a cut, and the rows after them."""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from importlib import import_module
from itertools import islice, takewhile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec import UNSET

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.values import LAST_INSTANT
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.segments.arrow_arrays import integers
from forecast_ledger.ledger.segments.row_ranges import between
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns, all_but
from forecast_ledger.ledger.segments.segment_files import read_columns, read_counted
from forecast_ledger.ledger.segments.segment_manifest import Segment, check_file, check_same_log
from forecast_ledger.ledger.storing.segment_rows import SegmentRows, checked_rows
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.ledger.storing.threads import Threads

# Columns of a segment that no table needs.
UNREAD = frozenset({"command_id", "command", "imported", "normal", "provenance"})
UNTOLD = UNREAD - {"provenance"}  # those that are not needed either to tell who asked for an event, and why
_AHEAD = 2  # segments that are read while one is used, each in a thread: more would take the memory of more
_FEW, _FEW_AHEAD = 1 << 16, 8  # the same if none has more forecasts, but for those that are counted
Includes = Callable[[int, int], bool]  # whether a row with this log position and recorded_at, µs, is before a cut


class SealedPart(NamedTuple):
    """The columns of a segment up to a cut, the checkpoint of their last row, and its recorded_at, µs.

    Instead of its forecasts, `columns` may have their counts, of which the schema is `counts_schema`.
    """

    segment: Segment
    columns: SegmentColumns
    end: Checkpoint
    recorded_at: int


class SealedLog:
    """A log whose beginning is in a folder of segments, which are read as columns after a check of their SHA-256."""

    def __init__(self, folder: Path, name: str) -> None:
        """Open a folder. Raises Absent (it has no segments, or those of another ledger), Unavailable, Corrupt."""
        self._rows, self._folder, self._name = SegmentRows(folder, name), folder, name
        self._checked: set[str] = set()  # the files that were compared with the manifest
        self.manifest = self._rows.manifest

    def check_same(self, store: StoredLog) -> None:
        """Raise Unavailable if the segments are of another log, or end after it."""
        check_same_log(store.pages, self.manifest, self._folder)

    def check_files(self) -> None:
        """Compare the SHA-256 of every file with the manifest. Raises Corrupt, Unavailable."""
        for segment in self.manifest.segments:
            self._check(segment)

    def rows_after(self, store: StoredLog) -> Iterator[Sequence[Recorded]]:
        """Return the events of the whole log that come after the segments. Raises Unavailable: see `check_same`."""
        self.check_same(store)
        return log.unseal_pages(store.pages(self.manifest.end.position), self.manifest.end)

    def rows(self) -> Iterator[Sequence[Recorded]]:
        """Return the events of the segments, each rebuilt and its digest checked. Raises Corrupt."""
        return log.unseal_pages(StoredLog(self._rows, self._name).pages())

    def segments(
        self, includes: Includes, without: Collection[str] = UNREAD, *, every_row: bool = False, counted: bool = False
    ) -> Iterator[SealedPart]:
        """Yield the columns of each segment up to a cut, but for some. Raises Corrupt: a file is not as it was sealed.

        A file is compared with its SHA-256 before it is read, once. every_row: rebuild the rows from all columns, and
        check their digests, before the columns are given. Raises Corrupt at a row that was changed. counted: instead of
        forecasts, give their counts if a segment keeps them, and all of it is before the cut.
        """

        def has_counts(segment: Segment) -> bool:
            return counted and segment.counts is not UNSET

        def read(segment: Segment) -> SegmentColumns:
            if has_counts(segment):
                return self._columns(segment, without, read_counted)
            return self._columns(segment, without)

        uncounted = (segment.forecasts.rows for segment in self.manifest.segments if not has_counts(segment))
        ahead = _AHEAD if max(uncounted, default=0) > _FEW else _FEW_AHEAD
        for segment, found in self._one_by_one() if every_row else self._read_ahead(read, ahead):
            columns, at = found, _latest(found)
            if has_counts(segment) and not includes(segment.last, LAST_INSTANT):
                at = _latest(self._columns(segment, all_but("recorded_at")))  # counts may state another instant
                columns = found if includes(segment.last, at) else self._columns(segment, without)
            part, is_last = SealedPart(segment, columns, segment.end, at), not includes(segment.last, at)
            if is_last:
                included = [*takewhile(lambda row: includes(*row), _in_log_order(columns))]
                if not included:
                    return
                position, at = included[-1]
                [(_, row)] = self._rows.select(position - 1, 1)
                part = SealedPart(
                    segment, between(columns, None, position), Checkpoint(position, log.stated_digest(row)), at
                )
            if every_row:
                _check_rows(columns, segment, part.end.position)
                part = part._replace(columns=_without(part.columns, without))
            yield part
            if is_last:
                return

    def _one_by_one(self) -> Iterator[tuple[Segment, SegmentColumns]]:
        """Yield each segment and all its columns, of which memory then holds no others."""
        for segment in self.manifest.segments:
            yield segment, self._columns(segment, ())

    def _read_ahead(
        self, read: Callable[[Segment], SegmentColumns], ahead: int
    ) -> Iterator[tuple[Segment, SegmentColumns]]:
        """Yield each segment and what is read of it; threads read the next ones while this one is used."""
        segments, aside = iter(self.manifest.segments), Threads(_AHEAD + 1)

        def begin(count: int) -> Iterator[tuple[Segment, Future[SegmentColumns]]]:
            return ((each, aside.submit(read, each)) for each in islice(segments, count))

        try:
            pending = deque(begin(_AHEAD))
            aside.submit(import_module, "pyarrow.parquet")  # takes as long as comparing a file, which lets it run
            pending.extend(begin(ahead - _AHEAD))
            while pending:
                segment, columns = pending.popleft()
                found = columns.result()
                pending.extend(begin(1))
                yield segment, found
        finally:
            aside.shutdown(cancel_futures=True)

    def _columns(
        self, segment: Segment, without: Collection[str], read: Callable[..., SegmentColumns] = read_columns
    ) -> SegmentColumns:
        """Return the columns of a segment, after a check of the files. Raises Corrupt, Unavailable."""
        self._check(segment)
        try:
            return read(self._folder, segment, without=without)
        except Corrupt:
            self._rows.check_current()
            raise

    def _check(self, segment: Segment) -> None:
        for file in segment.files:
            if file.name not in self._checked:
                try:
                    check_file(self._folder, file, segment.first)
                except Corrupt:
                    self._rows.check_current()
                    raise
                self._checked.add(file.name)


def _latest(columns: SegmentColumns) -> int:
    """Return the latest recorded_at of a segment, µs."""
    return max(int(integers(table["recorded_at"]).max()) for table in columns.rows if len(table))


def _check_rows(columns: SegmentColumns, segment: Segment, position: int) -> None:
    """Rebuild the rows of a segment up to a log position, or a little further. Raises Corrupt: one was changed."""
    at = segment.first - 1
    for digests in checked_rows(columns, segment, segment.before, chain=log.chain_digests):
        at += len(digests)
        if at >= position:
            return


def _without(columns: SegmentColumns, names: Collection[str]) -> SegmentColumns:
    present = ([name for name in names if name in table.schema.names] for table in columns)
    return SegmentColumns(*(table.drop_columns(each) for table, each in zip(columns, present, strict=True)))


def _in_log_order(columns: SegmentColumns) -> Iterator[tuple[int, int]]:
    """Return log position and recorded_at, µs, of each row of a segment."""
    frame = ("position", "recorded_at")
    position, at = (np.concatenate([integers(table[name]) for table in columns.rows]) for name in frame)
    order = np.argsort(position)
    return zip(position[order].tolist(), at[order].tolist(), strict=True)
