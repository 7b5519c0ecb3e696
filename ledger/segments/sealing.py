"""Seal a log: write its rows as segments, and list each segment only after all of it was read back and checked."""

import fcntl
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import UNSET

from forecast_ledger.ledger.core.errors import Corrupt, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import Checkpoint
from forecast_ledger.ledger.segments.rebuilt_rows import rebuild
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns, join, to_columns
from forecast_ledger.ledger.segments.segment_files import read_columns, write_table
from forecast_ledger.ledger.segments.segment_manifest import (
    MANIFEST,
    MARKED,
    OTHER,
    VERSION,
    Pages,
    Segment,
    SegmentManifest,
    check_same_log,
    describe_file,
    read_manifest,
)

SEGMENT_ROWS = 1 << 20
_PART = 1 << 14  # rows that are made into columns together
_PART_BYTES = 1 << 26  # fewer rows, if they are this long
_OURS = re.compile(r"[0-9]{12,}-[0-9]{12,}\.(forecasts|others|quotes)\.parquet|segments\.json\.part", re.ASCII)


def seal(
    pages: Pages, ledger: str, folder: Path, size: int = SEGMENT_ROWS, watch: Callable[[int], None] = lambda _: None
) -> SegmentManifest:
    """Seal the rows of a log that a folder does not have yet; return the manifest of the folder.

    Every segment has `size` rows, the last one may have fewer; it is replaced when there are more rows. `watch` is
    called with the log position that is read. A folder is changed only by the rename of its manifest, so an
    interrupted sealing leaves what was sealed before, and can be run again. Memory holds the columns of one segment.
    Raises, first that applies: Unavailable (no pyarrow, the folder cannot be written or has other files, or another
    process seals into it), Corrupt (the log, or the folder's segments), OSError.
    """
    with _locked(folder):
        listed = _listed(folder, ledger)
        check_same_log(pages, listed, folder)
        _remove_unlisted(folder, listed)
        started = listed
        if listed.segments and listed.end.position - listed.segments[-1].first + 1 < size:
            started = listed.up_to(listed.segments[-1].first - 1)
        writing, next_one = listed, _Unwritten(started.end)
        for rows in _parts(pages(started.end.position), size):
            next_one.add(rows)
            watch(next_one.end.position)
            if next_one.rows == size:
                writing = started = _add(folder, started, next_one)
                next_one = _Unwritten(started.end)
        if next_one.rows and next_one.end.position > listed.end.position:
            writing = _add(folder, started, next_one)
        _remove_unlisted(folder, writing)
        return writing


class _Unwritten:
    """The next segment, as far as its rows were read."""

    def __init__(self, before: Checkpoint) -> None:
        self.before = self.end = before
        self.rows = 0
        self.parts: list[SegmentColumns] = []
        self.digests = bytearray()  # of each row, 32 bytes

    def add(self, rows: list[bytes]) -> None:
        """Add the next rows. Raises Corrupt: they do not follow."""
        records = log.unseal(rows, self.end)
        self.parts.append(to_columns(rows, records))
        self.digests += b"".join(bytes.fromhex(recorded.digest) for recorded in records)
        self.end = Checkpoint(records[-1].position, records[-1].digest)
        self.rows += len(rows)

    def digest(self, position: int) -> str:
        """Return the digest of the row at a log position."""
        place = position - self.before.position - 1
        return self.digests[32 * place : 32 * place + 32].hex()


def _parts(pages: Iterator[list[bytes]], size: int) -> Iterator[list[bytes]]:
    """Yield rows in longer pages, of which none goes across the end of a segment."""
    part: list[bytes] = []
    space = size
    for page in pages:
        part += page
        while len(part) >= min(_PART, space) or sum(map(len, part)) > _PART_BYTES:
            most = min(_PART, space, len(part))
            yield part[:most]
            part, space = part[most:], space - most or size
    if part:
        yield part


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Create the folder if there is none, and lock it until the end. Raises Unavailable."""
    try:
        folder.mkdir(exist_ok=True)
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileExistsError:
        raise Unavailable(f"{folder}: it is a file, and segments need a folder; {OTHER}") from None
    except OSError as error:
        raise Unavailable(f"{folder}: {error.strerror}") from None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise Unavailable(f"{folder}: another process seals into it; wait until it ends") from None
    finally:
        os.close(held)


def _listed(folder: Path, ledger: str) -> SegmentManifest:
    """Return the manifest of a folder, an empty one for a new folder. Raises Unavailable, Corrupt."""
    if not (folder / MANIFEST).exists():
        others = sorted(path.name for path in folder.iterdir() if not _OURS.fullmatch(path.name))
        if others:
            raise Unavailable(f"{folder}: it has other files, such as {others[0]!r}; {OTHER}")
        return SegmentManifest(ledger)
    manifest = read_manifest(folder)
    if manifest.ledger != ledger:
        raise Unavailable(f"{folder}: its segments are of the ledger {manifest.ledger!r}; {OTHER}")
    return manifest


def _remove_unlisted(folder: Path, manifest: SegmentManifest) -> None:
    """Remove what an interrupted sealing left, and segments that a longer one replaced; other files stay."""
    listed = manifest.names()
    for path in folder.iterdir():
        if _OURS.fullmatch(path.name) and path.name not in listed:
            path.unlink()


def _add(folder: Path, manifest: SegmentManifest, unwritten: _Unwritten) -> SegmentManifest:
    """Write, read back and list the next segment; return the new manifest. Raises Corrupt, Unavailable, OSError."""
    first, last = unwritten.before.position + 1, unwritten.end.position
    columns, files = join(unwritten.parts), {}
    for kind, table in zip(columns._fields, columns, strict=True):
        if kind != "quotes" or len(table):
            path = folder / f"{first:012}-{last:012}.{kind}.parquet"
            write_table(path, table)
            files[kind] = describe_file(path, len(table))
    del columns, table
    segment = Segment(
        first=first,
        last=last,
        previous=unwritten.before.digest,
        digest=unwritten.end.digest,
        forecasts=files["forecasts"],
        others=files["others"],
        quotes=files.get("quotes", UNSET),
        marks=tuple(unwritten.digest(at) for at in range(-(-first // MARKED) * MARKED, last + 1, MARKED)),
        version=VERSION if "quotes" in files else 1,
    )
    _check_written(folder, segment, unwritten)
    listed = manifest.with_segment(segment)
    _write_manifest(folder, listed)
    return listed


def _check_written(folder: Path, segment: Segment, unwritten: _Unwritten) -> None:
    """Check that a segment's files give the rows back: equal digests mean equal bytes. Raises Corrupt."""
    position = unwritten.before.position
    for page in rebuild(read_columns(folder, segment), unwritten.before):
        for row in page:
            position += 1
            if log.stated_digest(row) != unwritten.digest(position):
                fault = "the row does not have the form in which this version writes it, and cannot be sealed"
                raise Corrupt(position, fault, "store")


def _write_manifest(folder: Path, manifest: SegmentManifest) -> None:
    """Replace the manifest, durably."""
    part = folder / f"{MANIFEST}.part"
    with part.open("wb") as file:
        file.write(msgspec.json.encode(manifest))
        file.flush()
        os.fsync(file.fileno())
    sync_folder(folder)  # the files that it lists
    part.replace(folder / MANIFEST)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Synchronise the names in a folder to disk."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
