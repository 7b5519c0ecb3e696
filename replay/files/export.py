"""Export a log and its tables to files: for spreadsheets, data frames and SQL, and for import into another ledger."""

import os
from collections import deque
from collections.abc import Iterable
from hashlib import file_digest
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Absent, Corrupt, Unavailable
from forecast_ledger.ledger.core.files import folder_at, is_remote, open_regular
from forecast_ledger.ledger.core.redaction import redacted
from forecast_ledger.ledger.core.version import code_version
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import Checkpoint
from forecast_ledger.ledger.segments import sealing, segment_manifest
from forecast_ledger.ledger.segments.sealing import SEGMENT_ROWS
from forecast_ledger.ledger.segments.segment_manifest import MOST_ROWS
from forecast_ledger.ledger.storing.stored_log import StoredLog, segments_beside
from forecast_ledger.projections.tables.catalogue import EXPORTED
from forecast_ledger.replay.files.formats import (
    ARROW,
    FILE_FORMATS,
    Events,
    ExportTable,
    ReplayedEvents,
    StoredEvents,
    describe_columns,
    export_tables,
)
from forecast_ledger.replay.files.manifest import (
    EXPORT_VERSION,
    MANIFEST_BYTES,
    MANIFEST_FILE,
    SEGMENTS,
    SQLITE,
    Complete,
    Manifest,
    ManifestEntry,
    clear_leftovers,
    move_into_place,
    read_manifest,
    scratch_folder,
)
from forecast_ledger.replay.reading.log import AsOf, Cut, Log, OnProgress
from forecast_ledger.replay.reading.replay import Replay, replay

METADATA = ".metadata.json"  # suffix of the file beside an SQLite file that datasette reads


def default_tables() -> list[str]:
    """Return the projections that an export has by default.

    >>> "scores" in default_tables(), "score_parts" in default_tables()
    (True, False)
    """
    return [*EXPORTED]


@checked("name", "as_of")
def export(  # noqa: PLR0913 - what has a default is named
    log: str | PathLike[str],
    out: str | PathLike[str],
    form: str = "csv",
    name: str = "main",
    as_of: AsOf = None,
    *,
    tables: Iterable[str] | None = None,
    force: bool = False,
    floats: bool = False,
    memory: int | None = None,
    on_progress: OnProgress = lambda _: None,
) -> Manifest:
    """Export a log to a folder, or to one SQLite file with its metadata beside it; the same log gives the same bytes.

    log, name, as_of: as in `replay`. form: csv, jsonl, parquet, arrow, sqlite, or segments, which has the log alone, as
    `seal` writes it. tables: projections by name; if None, the default ones. force: replace an existing export. floats:
    write decimals as the nearest floats: double in Parquet and Arrow, REAL in SQLite, numbers in JSON lines. memory: as
    in `replay`; the files are the same.

    The output gets its name only when it is complete; what interrupted exports to the same path left is removed.
    Raises, first that applies: ValueError (segments have no tables and no decimals), KeyError (no such format or
    projection), FileExistsError (the path exists and may not be replaced), Refused (as_of; a number too large for the
    format), Unavailable, Corrupt, OSError.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import export, open_ledger
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/season.db"):
    ...     manifest = export(f"{folder}/season.db", f"{folder}/season-csv")
    ...     sorted(path.name for path in Path(folder, "season-csv").iterdir())[:3]
    ['accounts.csv', 'admissions.csv', 'arena_leaderboard.csv']
    """
    names = default_tables() if tables is None else list(dict.fromkeys(tables))
    out = Path(os.path.abspath(out))  # noqa: PTH100 - links are not followed: a link at OUT is replaced itself
    clear_leftovers(out)
    _check_free(out, form, force=force)
    if form == SEGMENTS:
        _check_segments([] if tables is None else names, floats=floats)
        with scratch_folder(out) as part, Log(log, name).opened() as store:
            manifest = _write_segments(part / form, store, as_of, on_progress)
            _check_free(out, form, force=force)
            move_into_place(part / form, out)
            return manifest
    source, cut, season = Log(log, name), Cut(as_of, on_progress), None
    if source.is_sealed or memory is not None:
        season = replay(log, name, as_of, on_progress, tables=names, memory=memory)
    with source.opened() as store, scratch_folder(out) as part:
        events: Events = StoredEvents(store, season) if season else ReplayedEvents(store, cut, encoded=form in ARROW)
        contents = export_tables(events, names, floats=floats)

        def complete(parts: dict[str, ManifestEntry]) -> Manifest:
            return structs.replace(manifest_of(events.season, store, form, floats=floats), tables=parts)

        manifest = _write(part, out, form, contents, complete)
        _check_free(out, form, force=force)
        move_into_place(part / form, out)
        if form == SQLITE:
            move_into_place(part / MANIFEST_FILE, out.with_suffix(METADATA))
    return manifest


def _check_segments(tables: list[str], *, floats: bool) -> None:
    """Raise ValueError if segments, which are the log, are asked for what only tables have."""
    if tables:
        raise ValueError(f"segments have no tables, such as {tables[0]}: leave tables out")
    if floats:
        raise ValueError("segments have no tables, and so no decimals: leave floats out")


def _write_segments(folder: Path, store: StoredLog, as_of: AsOf, on_progress: OnProgress) -> Manifest:
    """Write the log up to a cut as segments. Raises Absent: it has no events."""
    cut, position = Cut(as_of, on_progress), store.newest()
    if as_of is not None:
        deque(cut.read(store.pages()), maxlen=0)
        position = cut.reached().position
    if not position:
        raise Absent(f"there are no events in the ledger {store.name!r} up to there; nothing was written")
    sealing.seal(
        lambda after: log.pages_up_to(store.pages(after), position - after), store.name, folder, on_progress=on_progress
    )
    return structs.replace(read_manifest(folder), whole=_is_whole(store, position), code=code_version())


def _check_free(out: Path, form: str, *, force: bool) -> None:
    """Raise FileExistsError unless the path is free, or has an export to be replaced; OSError if it cannot exist."""
    try:
        str(out).encode()
    except UnicodeEncodeError as error:
        raise OSError(f"{str(out)!r}: the path cannot be encoded: {error}") from None
    if not out.parent.is_dir():
        raise FileNotFoundError(f"{out}: the folder {out.parent} does not exist")
    if not out.name:
        raise FileExistsError(f"{out}: exists and is not an export; it is not replaced")
    beside = out.with_suffix(METADATA)
    for path in (out, beside) if form == SQLITE else (out,):
        if os.path.lexists(path) and not force:
            raise FileExistsError(f"{path}: exists already; --force replaces an export")
        if os.path.lexists(path) and not (_is_metadata(path) if path == beside else _is_export(path)):
            raise FileExistsError(f"{path}: exists and is not an export; it is not replaced")


def _is_export(path: Path) -> bool:
    """Return whether a path is an export. Raises FileExistsError: the folder has other files too."""
    try:
        manifest = read_manifest(path)
    except (Unavailable, Corrupt):
        return False
    written = {MANIFEST_FILE, *(part.file for part in manifest.tables.values())}
    if manifest.format == SEGMENTS:
        written = segment_manifest.read_manifest(path).names()
    others = sorted({file.name for file in path.iterdir()} - written) if path.is_dir() else []
    if others:
        raise FileExistsError(f"{path / others[0]}: is not part of the export there; nothing is replaced")
    return True


def _is_metadata(path: Path) -> bool:
    try:
        with open_regular(path, MANIFEST_BYTES) as file:
            return b'"databases": {' in file.read()
    except OSError:
        return False


def manifest_of(season: Replay, store: StoredLog, form: str, *, floats: bool = False) -> Manifest:
    """Return the manifest of an export that has no tables yet."""
    whole = _is_whole(store, season.checkpoint.position)
    notes = (*season.notes(),)
    return Manifest(EXPORT_VERSION, form, store.name, *season.checkpoint, whole, code_version(), {}, notes, floats)


def _is_whole(store: StoredLog, position: int) -> bool:
    """Return whether the event at a log position is the last one of its command."""
    commands = [log.command_id_of(row) for row in store.read(max(position - 1, 0), limit=2)]
    return position == 0 or len(set(commands)) == len(commands)


def _write(folder: Path, out: Path, form: str, tables: Iterable[ExportTable], complete: Complete) -> Manifest:
    """Write what is to be moved to a path, and of an SQLite file the metadata for datasette, to a folder."""
    if form != SQLITE:
        return write_folder(folder / form, tables, form, complete)
    from forecast_ledger.replay.files.sqlite_export import datasette_metadata, write_database  # noqa: PLC0415 - late: for one format

    manifest, described = write_database(folder / SQLITE, tables, complete)
    (folder / MANIFEST_FILE).write_bytes(datasette_metadata(manifest, out.stem, described))
    return manifest


def write_folder(folder: Path, tables: Iterable[ExportTable], form: str, complete: Complete) -> Manifest:
    """Write a new folder with one file per table, the data dictionary, and finally the manifest, and return this.

    One table is in memory at a time. complete: called when all tables are written.
    """
    folder.mkdir()
    done, parts = [], dict[str, ManifestEntry]()
    for sheet in tables:
        parts[sheet.name] = _write_part(folder, sheet, form)
        done.append(sheet.without_rows())
        del sheet
    last = describe_columns(done)
    parts[last.name] = _write_part(folder, last, form)
    manifest = complete(parts)
    (folder / MANIFEST_FILE).write_bytes(manifest.encoded())
    return manifest


def _write_part(folder: Path, sheet: ExportTable, form: str) -> ManifestEntry:
    path = folder / f"{sheet.name}.{form}"
    FILE_FORMATS[form].write(path, sheet)
    with path.open("rb") as file:
        return ManifestEntry(
            sheet.chunks.rows, sheet.chunks.digest, sheet.version, path.name, file_digest(file, "sha256").hexdigest()
        )


# --- Seal a log: its rows as Parquet files, from which the log can be read, checked and imported.


class Sealed(NamedTuple):
    """What a folder of segments holds: the checkpoint of its last row, the number of segments, the bytes of files.

    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import Sealed, commands, open_ledger, seal
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/season.db") as ledger:
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
    >>> from forecast_ledger import commands, open_ledger, replay, seal
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/season.db") as ledger:
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
