"""The states of writers as bytes, kept in a folder that only the user of the process can read or write.

A kept state is no part of the log, and is never believed against it: it counts only if the log has its digest at its
position, and if the same code wrote it; else the log is read. The state of a folder of segments counts only if the
folder has the same manifest, and files with the SHA-256 that it states. A user who could write to the folder of states
could make a writer believe anything, so a folder that others can write to is not used.
"""

import os
import time
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from logging import DEBUG, getLogger
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec
from msgspec import Struct, msgpack

from forecast_ledger.ledger.batching.writer_state import Attempt, RecordedCommand, StandingInFile, WriterState
from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.extras import pyarrow
from forecast_ledger.ledger.deciding.state import StandingOf, State
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import Checkpoint
from forecast_ledger.ledger.storing import instrumentation
from forecast_ledger.ledger.storing.stored_log import StoredLog

if TYPE_CHECKING:
    from forecast_ledger.ledger.segments.segment_manifest import SegmentManifest
    from forecast_ledger.ledger.storing.sealed_log import SealedLog

_MARK = b"forecast-ledger writer state\n"
_DIGEST = 32  # bytes


class _Kept(Struct, array_like=True, frozen=True):
    """What is kept. version: of the code; ledger: its name; head: log position and digest; tables: of the state.

    runs: of the command index, each as the bytes of its hashes and positions, and the type of the positions.
    """

    version: str
    ledger: str
    head: Checkpoint
    recorded_at: int
    is_imported: bool
    attempts: dict[Attempt, str]
    seed: bytes
    recent: dict[str, RecordedCommand]
    runs: list[tuple[bytes, bytes, str]]
    standing: dict[str, StandingOf | bytes]  # as bytes what is not in memory
    tables: dict[str, bytes]


_kept = msgpack.Decoder(_Kept)


def kept_bytes(known: WriterState, ledger: str, version: str) -> bytes:
    """Return what a writer holds; `kept_state` reads it. Raises Unavailable: its temporary file cannot be read."""
    standing: dict[str, Any] = {
        question: standing.file.get(standing.begin, standing.size) if isinstance(standing, StandingInFile) else standing
        for question, standing in known.state.standing.items()
    }
    kept = _Kept(
        version=version,
        ledger=ledger,
        head=known.head,
        recorded_at=known.recorded_at,
        is_imported=known.is_imported,
        attempts=known.attempts,
        seed=known.commands.seed,
        recent=known.commands.recent,
        runs=[(hashes.tobytes(), at.tobytes(), at.dtype.name) for hashes, at in known.commands.runs],
        standing=standing,
        tables={name: msgpack.encode(getattr(known.state, name)) for name in _tables()},
    )
    body = msgpack.encode(kept)
    return _MARK + sha256(body).digest() + body


def kept_state(data: bytes, ledger: str, version: str) -> WriterState | None:
    """Return what a writer held; None if the bytes are damaged, of another ledger, or of other code."""
    body = memoryview(data)[len(_MARK) + _DIGEST :]
    if data[: len(_MARK) + _DIGEST] != _MARK + sha256(body).digest():
        return None
    try:
        kept = _kept.decode(body)
        tables = {name: decoder.decode(kept.tables[name]) for name, decoder in _tables().items()}
    except (msgspec.DecodeError, KeyError):  # other code has written it
        return None
    if (kept.version, kept.ledger) != (version, ledger):
        return None
    known = WriterState(kept.seed)
    known.head, known.recorded_at, known.is_imported = kept.head, kept.recorded_at, kept.is_imported
    known.attempts, known.commands.recent = kept.attempts, kept.recent
    if kept.runs:
        import numpy as np  # noqa: PLC0415 - short logs do without

        known.commands.runs = [
            (np.frombuffer(hashes, np.uint64), np.frombuffer(at, kind)) for hashes, at, kind in kept.runs
        ]
    for name, table in tables.items():
        setattr(known.state, name, table)
    known.state.applied = {
        question: known.standing_file.put(standing) if isinstance(standing, bytes) else standing
        for question, standing in kept.standing.items()
    }
    return known


@cache
def _tables() -> Mapping[str, "msgpack.Decoder[Any]"]:
    """Return the decoder of each table of the state but that of standing forecasts."""
    return {name: msgpack.Decoder(kind) for name, kind in get_type_hints(State).items() if name != "applied"}


LEAST = 10_000  # rows that are read faster than it is worth to keep a state
_PART = 50  # a state is kept again when the log is longer by one part in so many
_UNUSED = 30 * 24 * 3600  # s after which a state that nobody has used is deleted
_OTHERS = 0o077  # the permissions of other users
_logger = getLogger(__name__)


def load(store: StoredLog, sealed: "SealedLog | None" = None) -> WriterState | None:
    """Return what a writer of the log held; None if nothing is kept, or if it does not fit the log or this code.

    sealed: the folder of segments that the log is in; the state is then that of its end, and every file is compared
    with its SHA-256. Raises Unavailable (the store cannot be read).
    """
    path = _path(store)
    if path is None:
        return None
    try:
        data = path.read_bytes()
    except OSError:  # mostly, there is none
        return None
    known = kept_state(data, store.name, _version(None if sealed is None else sealed.manifest))
    if known is None or not (_fits(known, store) if sealed is None else _is_end(known, sealed)):
        return None
    _touch(path)
    return known


def keep(known: WriterState, store: StoredLog, manifest: "SegmentManifest | None" = None) -> None:
    """Keep what a writer holds, in place of what was kept before. If that fails, nothing is kept.

    manifest: of the folder of segments that has the log up to there; the rows of the last one were checked.
    """
    path = _path(store)
    if path is None:
        return
    data = kept_bytes(known, store.name, _version(manifest))
    try:
        with NamedTemporaryFile(dir=path.parent, delete=False) as file:
            part = Path(file.name)
            try:
                file.write(data)
                file.close()
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)  # there is one if the disk is full
        _delete_unused(path.parent)
    except OSError as error:
        why = str(error)
        instrumentation.log_event(_logger, DEBUG, "state not kept", lambda: {"ledger": store.name, "reason": why})


def is_due(position: int, kept: int) -> bool:
    """Return whether a state at a log position is worth keeping, after one that was kept before.

    >>> is_due(9_999, 0), is_due(10_000, 0), is_due(1_015_000, 1_000_000), is_due(1_025_000, 1_000_000)
    (False, True, False, True)
    """
    return position - kept >= max(LEAST, position // _PART)


def _fits(known: WriterState, store: StoredLog) -> bool:
    """Return whether the log has the digest of a state at its position, in a row that is as it was sealed."""
    position = known.head.position
    try:
        rows = store.read(position - 1, 1)
        row = log.unseal_row(rows[0], position) if rows else None
    except Corrupt:  # who reads the log says where
        return False
    return row is not None and (row.digest, row.recorded_at) == (known.head.digest, known.recorded_at)


def _is_end(known: WriterState, sealed: "SealedLog") -> bool:
    """Return whether a state is that of a folder's end, and the files are those that the manifest lists."""
    if known.head != sealed.manifest.end:
        return False
    try:
        sealed.check_files()
    except Corrupt:  # as above
        return False
    return True


def _version(manifest: "SegmentManifest | None") -> str:
    """Return the version of this code and, of a folder of segments, that of pyarrow and what the manifest lists."""
    if manifest is None:
        return code_digest()
    return " ".join((code_digest(), pyarrow().__version__, manifest.segments[-1].chain))


def _path(store: StoredLog) -> Path | None:
    """Return where the state of a ledger is kept; None if the store is in memory, or there is no private folder."""
    if not store.identity or (folder := _folder()) is None:
        return None
    name = sha256("\0".join((store.identity, store.name)).encode()).hexdigest()
    return folder / f"{name[:40]}.state"


def _folder() -> Path | None:
    """Return the folder of this user, made now if it is missing; None if it cannot be, or others can use it."""
    try:
        base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        folder = Path(base) / "forecast-ledger"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except (OSError, RuntimeError):  # there is no home
        return None
    if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or status.st_mode & _OTHERS):
        return None
    return folder


def _touch(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:  # another process has replaced it
        return


def _delete_unused(folder: Path) -> None:
    oldest = time.time() - _UNUSED
    for file in folder.iterdir():
        if file.stat().st_mtime < oldest:
            file.unlink(missing_ok=True)


@cache
def code_digest() -> str:
    """Return a digest of the code that decides what a state is, and checks files: another version reads the log."""
    room, digest = Path(__file__).parent.parent, sha256()
    for file in sorted(room.glob("*/*.py")):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()
