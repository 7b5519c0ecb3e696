"""The state of a writer as bytes, so that the next writer need not read the log from its beginning."""

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from typing import Any, get_type_hints

import msgspec
from msgspec import Struct, msgpack

from forecast_ledger.ledger.batching.writer_state import Attempt, RecordedCommand, StandingInFile, WriterState
from forecast_ledger.ledger.deciding.state import StandingOf, State
from forecast_ledger.ledger.model.log import Checkpoint

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
        question: stands.file.get(stands.begin, stands.size) if isinstance(stands, StandingInFile) else stands
        for question, stands in known.state.standing.items()
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
    known.state.standing = {
        question: known.standing_file.put(stands) if isinstance(stands, bytes) else stands
        for question, stands in kept.standing.items()
    }
    return known


@cache
def _tables() -> Mapping[str, "msgpack.Decoder[Any]"]:
    """Return the decoder of each table of the state but that of standing forecasts."""
    return {name: msgpack.Decoder(kind) for name, kind in get_type_hints(State).items() if name != "standing"}
