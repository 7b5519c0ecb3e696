"""The manifest of an export: its log position and digest, and its tables; safe reading of exports."""

import os
import re
import sqlite3
from contextlib import closing
from io import BufferedReader
from pathlib import Path
from urllib.parse import quote

import msgspec
from msgspec import Struct

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.core.regular_files import open_regular
from forecast_ledger.ledger.segments import segment_manifest
from forecast_ledger.ledger.storing.database import MAX_ROW_BYTES

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

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import Manifest, append, export, open
    >>> with TemporaryDirectory() as folder, open(f"{folder}/season.db") as ledger:
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

    def encoded(self) -> bytes:
        """Return indented JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


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
    found = segment_manifest.read_manifest(folder)
    return Manifest(EXPORT_VERSION, SEGMENTS, found.ledger, *found.end, whole=False, code="", tables={})


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
