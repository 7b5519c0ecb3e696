"""The rows of segments, rebuilt and hashed side by side: each process checks some ranges of them, between two digests.

The processes are new interpreters that import nothing of the program that starts them, so that any program may read a
folder. They only answer whether all is right: if not, whoever reads the rows one after the other says where.
"""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from msgspec import json

from forecast_ledger.ledger.core.errors import LedgerError
from forecast_ledger.ledger.segments.segment_manifest import MARKED, SegmentManifest, read_manifest
from forecast_ledger.ledger.storing.segment_rows import check_rows
from forecast_ledger.replay.engines.pool import processors

MANY = 1 << 21  # rows, of several segments, from which on it is worth starting processes
_PROGRAM = "import sys; sys.path[:] = {path!r}; from {module} import answer; answer()"


class RowRange(NamedTuple):
    """Some rows of a segment, by its number: those after a log position up to another."""

    segment: int
    after: int
    end: int


class _Request(NamedTuple):
    """What a process is to check. chain: of the last segment; the manifest could be a longer one by now."""

    folder: str
    chain: str
    ranges: list[RowRange]


def row_ranges(manifest: SegmentManifest, count: int) -> list[RowRange]:
    """Return all rows in about so many ranges of one size, or in one for each segment if these are more.

    Each ends with a row whose digest is in the manifest.
    """
    size, ranges = -(-manifest.end.position // count), list[RowRange]()
    for number, segment in enumerate(manifest.segments):
        before, rows = segment.before.position, segment.last - segment.before.position
        parts = max((2 * rows + size) // (2 * size), 1)
        inner = {(before + rows * part // parts) // MARKED * MARKED for part in range(1, parts)}
        ends = [*sorted(end for end in inner if end > before), segment.last]
        ranges += [RowRange(number, *each) for each in zip([before, *ends], ends, strict=False)]
    return ranges


def are_intact(folder: Path, manifest: SegmentManifest) -> bool:
    """Return whether all rows of segments are found to have the digests that the manifest states.

    False also if there are too few rows for processes, or these cannot be started: then check them one after the other.
    """
    count, is_local = processors(), type(folder) is type(Path())  # a remote one is another kind of path
    can_start = is_local and bool(sys.executable) and not hasattr(sys, "frozen")
    if manifest.end.position < MANY or count == 1 or not can_start:
        return False
    ranges = row_ranges(manifest, count)
    started = list[subprocess.Popen[bytes]]()
    try:
        for number in range(min(count, len(ranges))):
            request = _Request(str(folder.absolute()), manifest.segments[-1].chain, ranges[number::count])
            started.append(_start(request))
        return all(process.wait() == 0 for process in started)
    except OSError:
        return False
    finally:
        for process in started:
            process.kill()
            process.wait()


def _start(request: _Request) -> "subprocess.Popen[bytes]":
    """Start a process that answers by its exit code: 0 if all rows are right."""
    program = [sys.executable, "-c", _PROGRAM.format(path=sys.path, module=__name__)]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet)  # noqa: S603 - this package
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    with process.stdin as pipe:
        pipe.write(json.encode(request))
    return process


def answer() -> None:
    """Answer what stdin asks, in a process of its own."""
    request = json.decode(sys.stdin.buffer.read(), type=_Request)
    sys.exit(not ranges_are_intact(Path(request.folder), request.chain, request.ranges))


def ranges_are_intact(folder: Path, chain: str, ranges: list[RowRange]) -> bool:
    """Return whether some rows have the digests that the manifest states, whose last segment has this chain."""
    try:
        manifest = read_manifest(folder)
        if manifest.segments[-1].chain != chain:
            return False
        for number, after, end in ranges:
            check_rows(folder, manifest.segments[number], after, end)
    except LedgerError:
        return False
    return True
