"""What an export says of itself: what it is of, and all that it consists of."""

import sqlite3
from contextlib import closing
from os import fsencode
from pathlib import Path
from urllib.parse import quote

import msgspec
from msgspec import Struct

from ledger.errors import Unavailable

FILE = "manifest.json"
VERSION = 1  # of the form of an export
SQLITE = "sqlite"


class Part(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One table of an export: of the log's rows, the digest is that of the log.

    file, sha256: where each table has a file of its own.
    """

    rows: int
    digest: str
    version: int
    file: str = ""
    sha256: str = ""


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """The ledger, log position and digest that an export is of, and its tables by name.

    whole: whether the last command is there with all its events, which a cut may have parted.
    """

    export: int
    format: str
    ledger: str
    log_position: int
    log_digest: str
    whole: bool
    code: str
    tables: dict[str, Part]

    def encoded(self) -> bytes:
        """As JSON to be read."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def read_manifest(export: Path) -> Manifest:
    """That of a folder or of an SQLite file. Raises Unavailable: it is no whole export, or not of this version."""
    try:
        text = (export / FILE).read_bytes() if export.is_dir() else _of_database(export)
        manifest = msgspec.json.decode(text, type=Manifest)
    except (OSError, sqlite3.Error, msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
        raise Unavailable(f"{export}: no whole export: {error}") from None
    if manifest.export != VERSION:
        raise Unavailable(f"{export}: an export of version {manifest.export}; this version reads {VERSION}")
    if any(part.file != Path(part.file).name for part in manifest.tables.values()):
        raise Unavailable(f"{export}: no whole export: its manifest names files elsewhere")
    return manifest


def database(path: Path) -> sqlite3.Connection:
    """A database to be read; it must be there."""
    return sqlite3.connect(f"file:{quote(fsencode(path.absolute()))}?mode=ro", uri=True)


def _of_database(path: Path) -> str:
    with closing(database(path)) as found:
        [text] = found.execute("SELECT manifest FROM manifest").fetchone()
    return str(text)
