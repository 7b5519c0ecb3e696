"""Seal a log: its rows as Parquet files, from which the log can be read, checked and imported."""

from os import PathLike, fspath
from typing import NamedTuple

from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Absent, Unavailable
from forecast_ledger.ledger.core.redaction import redacted
from forecast_ledger.ledger.core.remote_files import folder_at, is_remote
from forecast_ledger.ledger.model.log import Checkpoint
from forecast_ledger.ledger.segments import sealing
from forecast_ledger.ledger.segments.sealing import SEGMENT_ROWS
from forecast_ledger.ledger.segments.segment_manifest import MOST_ROWS
from forecast_ledger.ledger.storing.store import segments_beside
from forecast_ledger.replay.reading.log import Log, OnProgress


class Sealed(NamedTuple):
    """What a folder of segments holds: the checkpoint of its last row, the number of segments, the bytes of files.

    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import Sealed, commands, open, seal
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with TemporaryDirectory() as folder, open(f"{folder}/season.db") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     sealed = seal(f"{folder}/season.db")
    >>> isinstance(sealed, Sealed), sealed.checkpoint.position, sealed.segments
    (True, 1, 1)
    """

    checkpoint: Checkpoint
    segments: int
    bytes: int


@checked("name")
def seal(
    log: str | PathLike[str],
    segments: str | PathLike[str] | None = None,
    name: str = "main",
    rows: int = SEGMENT_ROWS,
    on_progress: OnProgress = lambda _: None,
) -> Sealed:
    """Seal the rows of a log that a folder does not have yet; the folder is created if there is none.

    log, name: as in `replay`. segments: their folder, by default the one beside the log, with its name and `.segments`.
    rows: of a segment, 1 to 16,777,216; the last segment may have fewer, and is replaced when there are more. Every
    segment is read back and compared with the log before the folder lists it, so that an interrupted sealing leaves
    what was sealed before. The log is not changed.
    Raises, first that applies: ValueError (rows is out of range, or nothing can be beside the log), Refused (the name
    is not an id), Absent (the log has no rows), Unavailable (no pyarrow; the folder is another log's, has other files,
    or cannot be written), Corrupt, OSError.

    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import commands, open, replay, seal
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with TemporaryDirectory() as folder, open(f"{folder}/season.db") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     sealed = seal(f"{folder}/season.db", f"{folder}/segments")
    ...     replay(f"{folder}/segments").checkpoint == sealed.checkpoint
    True
    """
    if not 1 <= rows <= MOST_ROWS:
        raise ValueError(f"rows = {rows}: a segment has 1 to {MOST_ROWS:,} rows")
    folder = segments if segments is not None else segments_beside(log)
    if folder is None:
        raise ValueError(f"{redacted(fspath(log))}: there is no place beside it; give a folder")
    if is_remote(folder):
        raise Unavailable(f"{redacted(fspath(folder))}: seal into a folder on this machine, and copy that")
    with Log(log, name).opened() as store:
        if not store.newest():
            shown = redacted(fspath(log))
            raise Absent(f"{shown} has no ledger named {name!r}, or it has no events yet; nothing was sealed")
        manifest = sealing.seal(store.pages, name, folder_at(folder), rows, on_progress)
    files = [file.bytes for segment in manifest.segments for file in segment.files]
    return Sealed(manifest.end, len(manifest.segments), sum(files))
