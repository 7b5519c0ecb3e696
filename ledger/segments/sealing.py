"""Seal a log: write its rows as segments, and list each segment only after all of it was read back and checked."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from forecast_ledger.ledger.core.errors import Corrupt, Unavailable
from forecast_ledger.ledger.core.systems import LOCK_FILE, FolderLock, sync_descriptor, sync_path
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import Checkpoint, ForecastFields
from forecast_ledger.ledger.segments.arrow_arrays import integers, pyarrow, row_numbers
from forecast_ledger.ledger.segments.forecast_counts import count_forecasts
from forecast_ledger.ledger.segments.row_ranges import between
from forecast_ledger.ledger.segments.segment_columns import (
    SegmentColumns,
    join,
    made_columns,
    rebuild,
    to_columns,
)
from forecast_ledger.ledger.segments.segment_files import read_checked, read_table, says, write_table
from forecast_ledger.ledger.segments.segment_manifest import (
    MANIFEST,
    MARKED,
    OTHER,
    VERSION,
    Pages,
    Segment,
    SegmentManifest,
    check_file,
    check_same_log,
    describe_file,
    read_manifest,
)

SEGMENT_ROWS = 1 << 20
_PART = 1 << 14  # rows that are made into columns together
_MANY = 500  # forecasts that are made into columns as they come
_PART_BYTES = 1 << 26  # fewer rows, if they are this long
_MANY_FORECASTS = 1 << 16  # of a segment, whose counts are kept: fewer are counted as soon as another file is read
_OURS = re.compile(r"[0-9]{12,}-[0-9]{12,}\.(forecasts|others|quotes|counts)\.parquet|segments\.json\.part", re.ASCII)


def seal(
    pages: Pages,
    ledger: str,
    folder: Path,
    size: int = SEGMENT_ROWS,
    on_progress: Callable[[int], None] = lambda _: None,
) -> SegmentManifest:
    """Seal the rows of a log that a folder does not have yet; return the manifest of the folder.

    Every segment has `size` rows, the last one may have fewer; it is replaced when there are more rows. `on_progress`
    is called with the log position that is read. A folder is changed only by the rename of its manifest, so an
    interrupted sealing leaves what was sealed before, and can be run again. Memory holds the columns of one segment.
    Raises, first that applies: Unavailable (no pyarrow, the folder cannot be written or has other files, or another
    process writes to it), Corrupt (the log, or the folder's segments), OSError.
    """
    with sealing(folder, ledger, size) as target:
        check_same_log(pages, target.manifest, folder)
        target.remove_unlisted()
        for rows in pages(target.end.position):
            if target.add(rows):
                target.list_written()
            on_progress(target.end.position)
        return target.finish()


class Sealing:
    """A folder to which segments are written. manifest: of the segments that are listed.

    If the last of them has fewer than `size` rows, it is replaced: the first rows to add are then those after the
    segment before it.
    """

    def __init__(self, folder: Path, listed: SegmentManifest, size: int) -> None:
        self.manifest, self._folder, self._size = listed, folder, size
        self._written = listed  # all full segments
        if listed.segments and listed.end.position - listed.segments[-1].first + 1 < size:
            self._written = listed.up_to(listed.segments[-1].first - 1)
        self._next, self._pending, self._bytes = _Unwritten(self._written.end), list[bytes](), 0

    @property
    def end(self) -> Checkpoint:
        """The row that the next one to add must follow."""
        if not self._pending:
            return self._next.end
        return Checkpoint(self._next.end.position + len(self._pending), log.stated_digest(self._pending[-1]))

    def resume(self, columns: SegmentColumns) -> None:
        """Take the columns of the last listed segment, which is not full, instead of its rows, which are checked."""
        self._next.take(columns, self.manifest.segments[-1])

    def add(self, rows: Sequence[bytes]) -> bool:
        """Add the next rows, and write every segment that is full; return whether one is written and not listed.

        Raises Corrupt (rows do not follow, or cannot be rebuilt), Unavailable (no pyarrow), OSError.
        """
        self._pending += rows
        self._bytes += sum(map(len, rows))
        done = 0
        while len(self._pending) - done >= (most := self._most()) or self._bytes > _PART_BYTES:
            self._make_columns(self._pending[done : done + most])
            done += most
        del self._pending[:done]
        return self._written.end.position > self.manifest.end.position

    def add_new(self, groups: Sequence[tuple[int, Sequence[str | bytes], ForecastFields | None]]) -> bool:
        """Add rows as `add` does. Many forecasts that were made together go into columns as they were made.

        groups: of each, `first`, all of `rows` and `fields` of `NewRows`.
        """
        for first, rows, fields in groups:
            if fields is None or len(rows) < _MANY:
                self.add([*map(log.row_bytes, rows)])
                continue
            self._make_pending()
            end = 0
            while (begin := end) < len(rows):
                end = min(begin + self._most(), len(rows))
                self._next.add_made(first + begin, fields.part(begin, end), rows[begin:end])
                self._write_if_full()
        return self._written.end.position > self.manifest.end.position

    def list_written(self) -> None:
        """List the segments that are written. The folder has their rows from then on. Raises OSError."""
        _write_manifest(self._folder, self._written)
        self.manifest = self._written

    def rows_from(self, position: int) -> list[bytes]:
        """Return rows that were added and are in no full segment, from a position on: at least one."""
        if position > self._next.end.position:
            return self._pending[position - self._next.end.position - 1 :]
        return self._next.rows_from(position)

    def finish(self, *, more: bool = False) -> SegmentManifest:
        """Write and list all rows that were added, and return the manifest.

        more: whether rows will be added after it; the columns of the last segment are then in memory twice meanwhile.
        Raises what `add` raises.
        """
        self._make_pending()
        if self.end.position > self.manifest.end.position:
            listed = self._written
            if self._next.rows:
                parts = [*self._next.parts] if more else self._next.parts
                listed = _write(self._folder, listed, self._next, parts)
            _write_manifest(self._folder, listed)
            self.manifest = listed
            if self._next.rows:
                self._next.listed = listed.segments[-1]
        self.remove_unlisted()
        return self.manifest

    def remove_unlisted(self) -> None:
        """Remove what an interrupted sealing left, and segments that a longer one replaced; other files stay."""
        listed = self.manifest.names()
        for path in self._folder.iterdir():
            if _OURS.fullmatch(path.name) and path.name not in listed:
                with suppress(PermissionError):  # not every system removes what a reader has open; the next time does
                    path.unlink()

    def _most(self) -> int:
        """Return how many rows are made into columns together: no more than the segment still needs."""
        return min(_PART, self._size - self._next.rows)

    def _make_pending(self) -> None:
        if self._pending:
            self._make_columns(self._pending)
            self._pending = []

    def _make_columns(self, rows: list[bytes]) -> None:
        self._next.add(rows)
        self._bytes -= sum(map(len, rows))
        self._write_if_full()

    def _write_if_full(self) -> None:
        if self._next.rows == self._size:
            self._written = _write(self._folder, self._written, self._next, self._next.parts)
            self._next = _Unwritten(self._written.end)


@contextmanager
def sealing(folder: Path, ledger: str, size: int = SEGMENT_ROWS) -> Iterator[Sealing]:
    """Open a folder, which is created if there is none, to write segments; no other process can until the end.

    Raises, first that applies: Unavailable (the folder cannot be written, has other files or those of another ledger,
    or another process writes to it), Corrupt (its manifest).
    """
    is_new = not folder.exists()
    try:
        with _locked(folder):
            yield Sealing(folder, _listed(folder, ledger), size)
    finally:
        if is_new:
            with suppress(OSError):  # it is not empty any more
                folder.rmdir()


@contextmanager
def appending(folder: Path, ledger: str, size: int = SEGMENT_ROWS) -> Iterator[Sealing]:
    """Open a folder of segments that is not made from a log: what it has is nowhere else.

    While it has no segment, it has an empty manifest, so that one that is lost is missed. Raises what `sealing` raises,
    and Unavailable: there are files of segments, and no manifest.
    """
    with sealing(folder, ledger, size) as target:
        check_listed(folder)
        is_listed = (folder / MANIFEST).exists()
        if not is_listed:
            _write_manifest(folder, target.manifest)
        try:
            target.remove_unlisted()
            yield target
        finally:
            with suppress(OSError):  # what could not be listed is not recorded
                target.remove_unlisted()
            if not is_listed and not target.manifest.segments:
                (folder / MANIFEST).unlink(missing_ok=True)


class _Unwritten:
    """The next segment, as far as its rows were read. listed: the segment that it replaces, with its first rows."""

    def __init__(self, before: Checkpoint) -> None:
        self.before = self.end = before
        self.rows = 0
        self.listed: Segment | None = None
        self.parts: list[SegmentColumns] = []
        self.starts: list[Checkpoint] = []  # the row before the first one of each part
        self.marks: tuple[str, ...] = ()  # of the rows that were taken as columns
        self.digests = bytearray()  # of each row after these, 32 bytes
        self._rebuilt: tuple[int, list[bytes]] = 0, []  # the first position of the part rebuilt last, and its rows

    def add(self, rows: list[bytes]) -> None:
        """Add the next rows. Raises Corrupt: they do not follow."""
        records = log.unseal(rows, self.end)
        self.parts.append(to_columns(rows, records))
        self.starts.append(self.end)
        self.digests += bytes.fromhex("".join([recorded.digest for recorded in records]))
        self.end = Checkpoint(records[-1].position, records[-1].digest)
        self.rows += len(rows)

    def add_made(self, first: int, fields: ForecastFields, rows: Sequence[str | bytes]) -> None:
        """Add the next rows, which follow, from the fields that they were made of. first: their first log position."""
        self.parts.append(made_columns(first, fields))
        self.starts.append(self.end)
        self.digests += log.made_digests(rows)
        self.rows += len(rows)
        self.end = Checkpoint(first + len(rows) - 1, self.digests[-32:].hex())

    def take(self, columns: SegmentColumns, listed: Segment) -> None:
        """Take the first rows as the columns of a segment that is listed."""
        self.parts.append(columns)
        self.starts.append(self.before)
        self.marks, self.listed = listed.marks, listed
        self.end, self.rows = listed.end, listed.last - self.before.position

    def rows_from(self, position: int) -> list[bytes]:
        """Return the rows of a part from a position on."""
        number = bisect_left(self.starts, position, key=lambda start: start.position) - 1
        first, rows = self._rebuilt
        if first != self.starts[number].position + 1:
            first = self.starts[number].position + 1
            rows = [row for page in rebuild(self.parts[number], self.starts[number]) for row in page]
            self._rebuilt = first, rows
        return rows[position - first :]

    @property
    def taken(self) -> int:
        """The log position of the last row that was taken as columns."""
        return self.end.position - len(self.digests) // 32

    def digest(self, position: int) -> str:
        """Return the digest of the row at a log position after those that were taken as columns."""
        index = position - self.taken - 1
        return self.digests[32 * index : 32 * index + 32].hex()

    def all_marks(self) -> tuple[str, ...]:
        """Return the digest of each row whose log position is a multiple of MARKED."""
        first = -(-(self.taken + 1) // MARKED) * MARKED
        return (*self.marks, *map(self.digest, range(first, self.end.position + 1, MARKED)))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Create the folder if there is none, and lock it until the end. Raises Unavailable."""
    try:
        folder.mkdir(exist_ok=True)
        lock = FolderLock(folder.resolve())
    except FileExistsError:
        raise Unavailable(f"{folder}: it is not a folder, and segments need one; {OTHER}") from None
    except OSError as error:
        raise Unavailable(f"{folder}: {error.strerror}") from None
    try:
        if not (lock.take() and lock.is_there()):
            raise Unavailable(f"{folder}: another process writes to it; wait until it ends")
        yield
    finally:
        lock.close()


def check_listed(folder: Path) -> None:
    """Raise Unavailable if a folder has files, and no manifest."""
    if (folder / MANIFEST).exists():
        return
    _check_ours(folder)
    if any(path.name != LOCK_FILE for path in folder.iterdir()):
        what = f"there are files of segments, and no {MANIFEST}, which lists them"
        raise Unavailable(f"{folder}: {what}; restore it from a copy, or {OTHER}")


def _check_ours(folder: Path) -> None:
    others = sorted(
        path.name for path in folder.iterdir() if not (_OURS.fullmatch(path.name) or path.name == LOCK_FILE)
    )
    if others:
        raise Unavailable(f"{folder}: it has other files, such as {others[0]!r}; {OTHER}")


def _listed(folder: Path, ledger: str) -> SegmentManifest:
    """Return the manifest of a folder, an empty one for a new folder. Raises Unavailable, Corrupt."""
    if not (folder / MANIFEST).exists():
        _check_ours(folder)
        return SegmentManifest(ledger)
    manifest = read_manifest(folder)
    if manifest.ledger != ledger:
        raise Unavailable(f"{folder}: its segments are of the ledger {manifest.ledger!r}; {OTHER}")
    return manifest


def _write(
    folder: Path, manifest: SegmentManifest, unwritten: _Unwritten, parts: list[SegmentColumns]
) -> SegmentManifest:
    """Write the next segment and read it back; return the manifest that lists it, which is not written.

    parts: of its columns; the list is emptied. Raises Corrupt, Unavailable, OSError.
    """
    first, last = unwritten.before.position + 1, unwritten.end.position
    columns, files = join(parts), {}
    counts = count_forecasts(columns.forecasts) if len(columns.forecasts) >= _MANY_FORECASTS else None
    for kind, table in (*zip(columns._fields, columns, strict=True), ("counts", counts)):
        if kind in {"forecasts", "others"} or table:
            path = folder / f"{first:012}-{last:012}.{kind}.parquet"
            write_table(path, table)
            files[kind] = describe_file(path, len(table))
    is_said, is_normal = (any(says(table, name) for table in columns.rows) for name in ("provenance", "normal"))
    del columns, counts, table
    segment = Segment(
        first=first,
        last=last,
        previous=unwritten.before.digest,
        digest=unwritten.end.digest,
        forecasts=files["forecasts"],
        others=files["others"],
        quotes=files.get("quotes", UNSET),
        counts=files.get("counts", UNSET),
        marks=unwritten.all_marks(),
        version=VERSION if "counts" in files else 4 if is_said else 3 if is_normal else 2 if "quotes" in files else 1,
    )
    _check_written(folder, segment, unwritten)
    return manifest.with_segment(segment)


def _check_written(folder: Path, segment: Segment, unwritten: _Unwritten) -> None:
    """Check that a segment's files give the rows back, and state nothing else. Raises Corrupt.

    Equal digests mean equal bytes. Rows of a listed segment, which were checked, have the same columns as there.
    """
    columns, listed, before = read_checked(folder, segment), unwritten.listed, unwritten.before
    if listed is not None:
        if not _has_rows_of(columns, folder, segment, listed):
            raise Corrupt(segment.first, f"the rows up to {listed.last} are not as they were sealed", "store")
        before = listed.end
        columns = between(columns, before.position, None)
    position = before.position
    for page in rebuild(columns, before, log.chain_digests):
        begin = 32 * (position - unwritten.taken)
        if b"".join(page) != unwritten.digests[begin : begin + 32 * len(page)]:
            fault = "the row does not have the form in which this version writes it, and cannot be sealed"
            equal = (digest.hex() == unwritten.digest(at) for at, digest in enumerate(page, position + 1))
            raise Corrupt(position + 1 + [*equal].index(False), fault, "store")
        position += len(page)


def _has_rows_of(columns: SegmentColumns, folder: Path, segment: Segment, listed: Segment) -> bool:
    """Return whether a segment has the rows of a listed one, up to its last row. columns: of the segment, as read.

    Raises Corrupt: a file of the listed one was changed.
    """
    for file in listed.files:  # first: pyarrow ends the process at some damage
        check_file(folder, file, listed.first)
    sealed = {file.sha256 for file in listed.files}
    for kind, table in zip(columns._fields, columns, strict=True):
        entry = getattr(segment, kind)
        if entry is not UNSET and entry.sha256 in sealed:  # it is the same file
            check_file(folder, entry, segment.first)
        elif not _has_rows(table, listed.last, partial(read_table, folder, listed, kind)):
            return False
    return True


def _has_rows(table: Any, last: int, read: Callable[..., Any]) -> bool:
    """Return whether a table has the rows of another one up to a log position. One column is read at a time."""
    names = {*table.schema.names}
    rows, others = _same_order(table, read(without=names - {"position", "place"}), last)
    return all(
        _are_equal(_taken(table[name], rows), _taken(read(without=names - {name})[name], others))
        for name in sorted(names)
    )


def _same_order(table: Any, other: Any, last: int) -> tuple[Any, Any]:
    """Return the numbers of the rows up to a log position in two tables, in one order. None: of all rows.

    Mostly the other table has no later rows, and the same order: then that is not the order of the log.
    """
    rows = np.flatnonzero(integers(table["position"]) <= last)
    keys = [name for name in ("position", "place") if name in other.schema.names]
    if all(np.array_equal(integers(table[name])[rows], integers(other[name])) for name in keys):
        return None if len(rows) == len(table) else row_numbers(rows), None
    return _log_order(table, last), _log_order(other, last)


def _log_order(table: Any, last: int) -> Any:
    """Return the numbers of the rows up to a log position, in log order."""
    position = integers(table["position"])
    order = np.lexsort([integers(table[name]) for name in ("place", "position") if name in table.schema.names])
    return row_numbers(order[: np.searchsorted(position[order], last, "right")])


def _taken(column: Any, rows: Any) -> Any:
    return column if rows is None else column.take(rows)


def _are_equal(column: Any, other: Any) -> bool:
    """Return whether two columns have the same values, with any dictionaries."""
    return bool(column.equals(other) or _plain(column).equals(_plain(other)))


def _plain(column: Any) -> Any:
    """Return a column without a dictionary."""
    kind = column.type
    return column.cast(kind.value_type) if pyarrow().types.is_dictionary(kind) else column


def _write_manifest(folder: Path, manifest: SegmentManifest) -> None:
    """Replace the manifest, durably."""
    part = folder / f"{MANIFEST}.part"
    with part.open("wb") as file:
        file.write(msgspec.json.encode(manifest))
        file.flush()
        sync_descriptor(file.fileno())
    sync_path(folder)  # the files that it lists
    part.replace(folder / MANIFEST)
    sync_path(folder)
