"""The manifest of an export: its log position and digest, and its tables; safe reading of exports."""

import errno
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO
from urllib.parse import quote
from uuid import uuid4

import msgspec
from msgspec import Struct

from forecast_ledger.ledger.core.errors import Refused, Unavailable
from forecast_ledger.ledger.core.files import open_regular
from forecast_ledger.ledger.core.systems import FolderLock, sync_path
from forecast_ledger.ledger.segments import segment_manifest
from forecast_ledger.ledger.storing.database import MAX_ROW_BYTES
from forecast_ledger.replay.writing.append import Outcome

# --- Files that get their name only when they are complete, and the refused part of an input as such a file.


_OLD = "old"  # the name, in this folder, of the file or folder that is being replaced
_SCRATCH: dict[Path, Path] = {}  # the scratch folders of this process, and the path that each is beside


@contextmanager
def scratch_folder(out: Path) -> Iterator[Path]:
    """Create a folder beside a path, and remove it at the end; its lock shows that its process is alive."""
    part, lock = _new_name(out), None
    _SCRATCH[part] = out
    try:
        lock = _make_locked(part)
        yield part
    finally:
        _discard(part, out, lock)
        del _SCRATCH[part]


def discard_scratch_folders() -> None:
    """Remove the scratch folders of this process, which ends at once, while another thread still works in them.

    A folder gets another name first: then that thread can move nothing into it or out of it.
    """
    for part, out in list(_SCRATCH.items()):
        with suppress(OSError):  # it is not there yet, or no longer
            _discard(part.rename(_new_name(out)), out)


def _new_name(out: Path) -> Path:
    return out.with_name(f".{out.name}.{uuid4().hex}.part")


def move_into_place(new: Path, out: Path) -> None:
    """Move a complete file or folder from a scratch folder to its destination.

    A file replaces a file atomically; otherwise the old file or folder is moved away first. The contents are
    synchronised to disk before the move, and the new name before the return.
    """
    for path in (*new.rglob("*"), new):
        _sync(path)
    if os.path.lexists(out) and (_is_folder(out) or _is_folder(new)):
        out.replace(new.with_name(_OLD))
    new.replace(out)
    _sync(out.parent)


def clear_leftovers(out: Path) -> None:
    """Remove the scratch folders beside a path whose processes have ended; restore a path that one had moved away."""
    name = re.compile(rf"\.{re.escape(out.name)}\.[0-9a-f]{{32}}\.part")
    for part in [path for path in out.parent.glob(".*.part") if name.fullmatch(path.name) and _is_folder(path)]:
        with suppress(OSError):  # it was removed meanwhile, or is not a scratch folder
            lock = FolderLock(part)
            try:
                if lock.take() and lock.is_there():
                    _discard(part, out, lock)
            finally:
                lock.close()


def _sync(path: Path) -> None:
    try:
        sync_path(path)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems do not synchronise folders
            raise


def _make_locked(part: Path) -> FolderLock:
    """Create, open and lock a folder; retry if another process removes it before it is locked."""
    while True:
        part.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):
            lock = FolderLock(part)
            with suppress(OSError):  # the file system has no locks: then no process removes the folder
                lock.take(wait=True)
            if lock.is_there():
                return lock
            lock.close()


def _discard(part: Path, out: Path, lock: FolderLock | None = None) -> None:
    """Remove a scratch folder; what was moved away is put back. Not every system removes what is locked."""
    if os.path.lexists(part / _OLD) and not os.path.lexists(out):
        (part / _OLD).replace(out)
    if lock is not None:
        lock.close()
    shutil.rmtree(part, ignore_errors=True)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


class RefusedFile:
    """Writes each record of the input, of which a command was refused, once.

    records: how many were written. too_long: the lines of those that are too long to be kept.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._lines: set[int] = set()
        self._ended = True  # the last record that was read was not refused
        self.too_long: list[int] = []

    @property
    def records(self) -> int:
        """How many records were written."""
        return len(self._lines) - len(self.too_long)

    def keep_refused(self, header: bytes, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """Pass outcomes on; write the header, then the records of each that is refused, once."""
        self._file.write(header)
        for item in outcomes:
            location, _, outcome = item
            self._ended = not isinstance(outcome, Refused)
            for line, record in () if self._ended else location.records:
                if line not in self._lines:
                    self._lines.add(line)
                    self._write(line, record)
            yield item

    def keep_rest(self, file: IO[bytes]) -> None:
        """Write what was not read of the input, because its last record is refused and has no end."""
        if not self._ended:
            shutil.copyfileobj(file, self._file)

    def _write(self, line: int, record: bytes) -> None:
        if record:
            self._file.write(record if record.endswith(b"\n") else record + b"\n")
        else:
            self.too_long.append(line)


@contextmanager
def refused_file(path: Path) -> Iterator[RefusedFile]:
    """Yield a file to write to; it is at the path, in place of what was there, once all is written.

    So the path may be that of the input. Raises OSError: the path is a folder or a device, or cannot be written.
    """
    if path.exists() and not path.is_file():
        raise OSError(f"{path}: not a regular file")
    clear_leftovers(path)
    with scratch_folder(path) as part:
        with (part / path.name).open("wb") as file:
            yield RefusedFile(file)
        move_into_place(part / path.name, path)


MANIFEST_FILE = "manifest.json"
MANIFEST_BYTES = 2**20  # largest manifest
EXPORT_VERSION = 1  # of the layout of an export
SQLITE, SEGMENTS = "sqlite", "segments"
_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_STEPS, _STEPS_PER_BYTE, _PAUSE = 10**7, 100, 10**5  # of SQLite's virtual machine; it takes about ten per cell


class ManifestEntry(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One table of an export; the digest of the events is that of the log.

    file, sha256: if each table has its own file.
    """

    rows: int
    digest: str
    version: int
    file: str = ""
    sha256: str = ""


class Manifest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The ledger, log position and digest of an export, and its tables by name.

    whole: whether the export has all events of its last command; a cut can separate them. notes: see `Replay.notes`.
    floats: whether decimals are written as floats; digests are of the exact numbers all the same.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import Manifest, append, export, open_ledger
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/season.db") as ledger:
    ...     with Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
    ...         counts = append(ledger, file)
    ...     manifest = export(f"{folder}/season.db", f"{folder}/season-csv")
    >>> isinstance(manifest, Manifest), manifest.log_position, manifest.ledger
    (True, 34, 'main')
    """

    export: int
    format: str
    ledger: str
    log_position: int
    log_digest: str
    whole: bool
    code: str
    tables: dict[str, ManifestEntry]
    notes: tuple[str, ...] = ()
    floats: bool = False

    def encoded(self) -> bytes:
        """Return indented JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


Complete = Callable[[dict[str, ManifestEntry]], Manifest]  # makes the manifest of an export from its tables


def read_manifest(export: Path) -> Manifest:
    """Read the manifest of a folder or an SQLite file.

    A folder of segments has no tables, and does not say whether it is whole. Raises Unavailable: not a complete export
    of this version; Corrupt: the manifest of segments was changed.
    """
    if is_segments(export):
        return _of_segments(export)
    try:
        text = _read_folder(export) if export.is_dir() else _read_database(export)
        manifest = msgspec.json.decode(text, type=Manifest)
    except (OSError, sqlite3.Error, msgspec.DecodeError, ValueError, TypeError, RecursionError) as error:
        raise Unavailable(f"{export}: not a complete export: {error}") from None
    if manifest.export != EXPORT_VERSION:
        raise Unavailable(
            f"{export}: the export has version {manifest.export}; only version {EXPORT_VERSION} can be read"
        )
    for name, part in manifest.tables.items():
        if not _NAME.fullmatch(name) or part.file != (f"{name}.{manifest.format}" if export.is_dir() else ""):
            raise Unavailable(f"{export}: not a complete export: its manifest names files outside of it")
        if part.rows < 0:
            raise Unavailable(f"{export}: not a complete export: its manifest says that {name} has {part.rows} rows")
    if "events" not in manifest.tables or manifest.log_position != manifest.tables["events"].rows:
        raise Unavailable(f"{export}: not a complete export: the number of events differs from the log position")
    return manifest


def is_segments(export: Path) -> bool:
    """Return whether an export is a folder of segments, as each remote one is."""
    return not isinstance(export, Path) or (export.is_dir() and os.path.lexists(export / segment_manifest.MANIFEST))


def _of_segments(folder: Path) -> Manifest:
    manifest = segment_manifest.read_manifest(folder)
    return Manifest(EXPORT_VERSION, SEGMENTS, manifest.ledger, *manifest.end, whole=False, code="", tables={})


def open_table(export: Path, part: ManifestEntry) -> BufferedReader:
    """Open the file of a table. Raises OSError: not a regular file, or larger than its number of rows allows."""
    return open_regular(export / part.file, (part.rows + 2) * MAX_ROW_BYTES)


def open_database(path: Path) -> sqlite3.Connection:
    """Open an existing SQLite file read-only; nothing in its schema is trusted.

    A value longer than a row may be is an error, and so is a query that takes too much work for the size of the file.
    Raises OSError.
    """
    path = path.resolve()
    with open_regular(path) as file:
        most = (_STEPS + _STEPS_PER_BYTE * os.fstat(file.fileno()).st_size) // _PAUSE
    database = sqlite3.connect(f"file:{quote(os.fsencode(path))}?mode=ro&immutable=1", uri=True)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)
    database.execute("PRAGMA trusted_schema = OFF")
    pauses = iter(range(most))
    database.set_progress_handler(lambda: next(pauses, None) is None, _PAUSE)
    return database


def check_ordinary(database: sqlite3.Connection, table: str) -> None:
    """Raise ValueError unless it is an ordinary table: not a view or virtual table, and without generated columns."""
    query = "SELECT type, sql FROM sqlite_schema WHERE lower(name) = ? LIMIT 2"
    [(kind, sql)] = database.execute(query, (table,)).fetchall() or [("", "")]
    hidden = database.execute("SELECT 1 FROM pragma_table_xinfo(?) WHERE hidden LIMIT 1", (table,)).fetchall()
    if kind != "table" or hidden or not str(sql).upper().startswith("CREATE TABLE"):
        raise ValueError(f"{table} is not an ordinary table")


def _read_folder(path: Path) -> bytes:
    with open_regular(path / MANIFEST_FILE, MANIFEST_BYTES) as file:
        return file.read()


def _read_database(path: Path) -> str:
    with closing(open_database(path)) as database:
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MANIFEST_BYTES)
        check_ordinary(database, "manifest")
        [text] = database.execute("SELECT manifest FROM manifest").fetchone()
    return str(text)
