"""The manifest of a folder of segments: the rows of each, its files and their SHA-256; the entries are chained.

A folder holds what its manifest lists; the rename of a new manifest is the one moment at which it changes.
"""

import errno
import re
from collections.abc import Callable, Iterator
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from forecast_ledger.ledger.core.errors import Absent, Corrupt, Unavailable
from forecast_ledger.ledger.core.files import open_regular
from forecast_ledger.ledger.core.redaction import redacted
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import GENESIS, START, Checkpoint

MANIFEST = "segments.json"
# Of the layout of segments: 4 is without a file of counts, 3 also without `provenance`, 2 without `normal`, 1 without a
# file of quotes.
VERSION = 5
LARGEST_MANIFEST = 1 << 28  # bytes that are read of a manifest
MOST_ROWS = 1 << 24  # rows of a segment, whose columns are read into memory together
MARKED = 1 << 12  # the manifest has the digest of each of so many rows of the log, so that one row is checked quickly
RESTORE = "restore the folder from a copy, or seal the log into a new folder"
OTHER = "name another folder"
_LACKING = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}  # a system that lacks memory, or lets no more files be opened
Pages = Callable[[int], Iterator[list[bytes]]]  # of the rows of a log after a log position
_FILE_NAME = re.compile(r"[0-9]{12,}-[0-9]{12,}\.(forecasts|others|quotes|counts)\.parquet", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


class SegmentFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A file of a segment: its name, the number of its rows, its bytes, and their SHA-256."""

    name: str
    rows: int
    bytes: int
    sha256: str


class Segment(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rows of the log from `first` to `last`, in two files, or three if any of them has quotes.

    counts: a file beside these, of segments with many forecasts; it says nothing that the forecasts do not say.
    previous, digest: of the row before the first, and of the last. marks: the digest of each row whose log position is
    a multiple of MARKED. version: of the layout. chain: the SHA-256 of the entry before and of this one.
    """

    first: int
    last: int
    previous: str
    digest: str
    forecasts: SegmentFile
    others: SegmentFile
    quotes: SegmentFile | UnsetType = UNSET
    counts: SegmentFile | UnsetType = UNSET
    marks: tuple[str, ...]
    version: int
    chain: str = ""

    @property
    def before(self) -> Checkpoint:
        """The checkpoint that the segment follows."""
        return Checkpoint(self.first - 1, self.previous)

    @property
    def files(self) -> tuple[SegmentFile, ...]:
        """All files."""
        optional = [file for file in (self.quotes, self.counts) if file is not UNSET]
        return self.forecasts, self.others, *optional

    @property
    def end(self) -> Checkpoint:
        """The checkpoint of its last row."""
        return Checkpoint(self.last, self.digest)


class SegmentManifest(Struct, frozen=True, forbid_unknown_fields=True):
    """The segments of a log from its first row on, without gaps."""

    ledger: str
    format: Literal["forecast-ledger segments"] = "forecast-ledger segments"
    segments: tuple[Segment, ...] = ()

    @property
    def end(self) -> Checkpoint:
        """The checkpoint of the last sealed row."""
        return self.segments[-1].end if self.segments else START

    def with_segment(self, segment: Segment) -> "SegmentManifest":
        """Return the manifest with one more entry, chained to the last."""
        before = self.segments[-1].chain if self.segments else GENESIS
        return replace(self, segments=(*self.segments, _chained(segment, before)))

    def up_to(self, position: int) -> "SegmentManifest":
        """Return the manifest without the segments that end after a log position."""
        return replace(self, segments=tuple(segment for segment in self.segments if segment.last <= position))

    def names(self) -> set[str]:
        """Return the names of all files of the folder."""
        return {MANIFEST, *(file.name for segment in self.segments for file in segment.files)}


def _chained(segment: Segment, before: str) -> Segment:
    """Return an entry with its link to the chain of the entry before."""
    entry = msgspec.json.encode(replace(segment, chain=""))
    return replace(segment, chain=sha256(before.encode() + entry).hexdigest())


def read_manifest(folder: Path) -> SegmentManifest:
    """Return the manifest of a folder after a check of its chain; no file that it lists is opened.

    Raises, first that applies: Absent (there is none), Unavailable (it cannot be read, is not a manifest, or has
    segments of a later version), Corrupt (its entries do not follow each other).
    """
    path = folder / MANIFEST
    try:
        with open_regular(path, LARGEST_MANIFEST) as file:
            content = file.read()
    except FileNotFoundError:
        if not isinstance(folder, Path):
            raise Absent(f"{redacted(folder)}: not a folder of segments: there is no {MANIFEST} in it") from None
        if not folder.exists():
            raise Absent(f"{folder}: no such folder; `forecast-ledger seal LOG {folder}` makes one") from None
        what = f"it is a folder, and there is no {MANIFEST} in it; `forecast-ledger seal LOG FOLDER` makes one"
        raise Absent(f"{redacted(folder)}: not a ledger: {what}") from None
    except OSError as error:
        raise Unavailable(f"{redacted(path)}: {error.strerror or error}") from None
    try:
        manifest = msgspec.json.decode(content, type=SegmentManifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unavailable(f"{redacted(path)}: this version cannot read it: {error}; {RESTORE}") from None
    _check_chain(manifest, path)
    return manifest


def _check_chain(manifest: SegmentManifest, path: Path) -> None:
    end, chain = START, GENESIS
    for segment in manifest.segments:
        if segment.version > VERSION:
            raise Unavailable(f"{redacted(path)}: segments of version {segment.version} need a newer program")
        fault = _fault(segment, end, chain)
        if fault:
            raise Corrupt(end.position + 1, f"{redacted(path)}: {fault}; {RESTORE}", "store")
        end, chain = segment.end, segment.chain


def _fault(segment: Segment, end: Checkpoint, chain: str) -> str:
    """Return what is wrong with an entry that should follow a checkpoint; empty if nothing is."""
    if _chained(segment, chain).chain != segment.chain:
        return "an entry was changed after it was written"
    if segment.before != end:
        return f"a segment follows log position {segment.first - 1}, the one before it ends at {end.position}"
    rows, counts = segment.last - segment.first + 1, (segment.forecasts.rows, segment.others.rows)
    if not 1 <= rows <= MOST_ROWS or min(counts) < 0 or sum(counts) != rows:
        sizes = f"a segment of {rows:,} rows has files of {counts[0]:,} and {counts[1]:,}"
        return f"{sizes}; it may have 1 to {MOST_ROWS:,}"
    if segment.quotes is not UNSET and segment.quotes.rows < 1:
        return "a file of quotes has none"
    return _bad_names(segment) or _bad_digests(segment)


def _bad_names(segment: Segment) -> str:
    named = all(_FILE_NAME.fullmatch(file.name) for file in segment.files)
    return "" if named else "a file does not have the name of a segment's file"


def _bad_digests(segment: Segment) -> str:
    marks = segment.last // MARKED - (segment.first - 1) // MARKED
    digests = (segment.digest, *segment.marks)
    if len(segment.marks) != marks or not all(map(_DIGEST.fullmatch, digests)):
        return f"a segment should have {marks:,} digests of rows, each of 64 hexadecimal digits"
    return ""


def describe_file(path: Path, rows: int) -> SegmentFile:
    """Return the entry of a file. Raises OSError: it is missing, or not a regular file."""
    with open_regular(path) as file:
        digest = file_digest(file, "sha256").hexdigest()
        return SegmentFile(path.name, rows, file.tell(), digest)


def check_file(folder: Path, entry: SegmentFile, position: int) -> None:
    """Check that a file has the bytes that the manifest states. Raises Corrupt at a log position.

    Found: a file that is missing, cut or changed. Raises Unavailable: see `unreadable`.
    """
    path = folder / entry.name
    try:
        actual = describe_file(path, entry.rows)
    except OSError as error:
        raise unreadable(path, error, position) from None
    if actual != entry:
        raise Corrupt(position, f"{redacted(path)}: the file was changed after it was sealed; {RESTORE}", "store")


def unreadable(path: Path, error: Exception, position: int) -> Corrupt | Unavailable:
    """Return what it means that a file cannot be read: it is damaged, unless the system lacks what opens it."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    if isinstance(error, OSError) and error.errno in _LACKING:
        return Unavailable(f"{redacted(path)}: {reason}")
    return Corrupt(position, f"{redacted(path)}: {reason}; {RESTORE}", "store")


def check_same_log(pages: Pages, manifest: SegmentManifest, folder: Path) -> None:
    """Check that a log has the last row of a folder of segments. Raises Unavailable: it is another, or ends before."""
    position, digest = manifest.end
    if manifest.end == START:
        return
    for page in pages(position - 1):
        if log.stated_digest(page[0]) != digest:
            raise Unavailable(f"{redacted(folder)}: its segments are of another log; {OTHER}")
        return
    fault = f"its segments end at log position {position}, after the last row of the log; the log is an older copy"
    raise Unavailable(f"{redacted(folder)}: {fault}")
