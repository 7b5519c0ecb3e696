"""Checkpoints: small texts to keep elsewhere, against which a log can be checked later."""

import tomllib
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.projections.core.table import PART_ROWS
from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.reading.replay import TableSummary, summarize_tables
from forecast_ledger.replay.reading.version import code_version

LARGEST_CHECKPOINT = 2**20  # bytes of a checkpoint
_HEAD = "# `forecast-ledger verify LOG --checkpoint FILE` checks a log against this\n"
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


class SavedTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The version of a projection, and the rows and digest of its table.

    part_rows: if the digest is made of those of parts, the rows of each part; else 0.
    """

    version: int
    rows: int
    digest: Digest
    part_rows: int = 0


class SavedCheckpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A ledger as of a log position. recorded_at: by its clock, None if it is empty; code: the package's version."""

    ledger: str
    log_position: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    digest: Digest
    recorded_at: str | None = None
    code: str
    projections: dict[str, SavedTable]


class CheckpointDifferences(NamedTuple):
    """The differences between a log and a checkpoint, and the projections that this version cannot compare."""

    apart: list[str]
    skipped: list[str]


def take_checkpoint(log: Log) -> SavedCheckpoint:
    """Return the checkpoint of a log as of its cut, with every projection that is built by default.

    Raises, first that applies: Refused (as_of is not an instant, or beyond the log), Unavailable, Corrupt.
    """
    cut = log.cut()
    facts = log.facts(cut)
    position, digest = cut.reached()
    return SavedCheckpoint(
        ledger=log.name,
        log_position=position,
        digest=digest,
        recorded_at=None if cut.recorded_at is None else values.format_instant(cut.recorded_at),
        code=code_version(),
        projections={name: _saved(summary) for name, summary in summarize_tables(facts).items()},
    )


def _saved(table: TableSummary) -> SavedTable:
    return SavedTable(**table._asdict(), part_rows=PART_ROWS if table.rows > PART_ROWS else 0)


def checkpoint_text(checkpoint: SavedCheckpoint) -> str:
    """Return the checkpoint as TOML; the same log and code give the same text."""
    plain = msgspec.to_builtins(checkpoint)
    tables = plain.pop("projections")
    lines = [f"{field} = {_toml_value(value)}" for field, value in plain.items()]
    lines += ["", "[projections]"]
    for name, table in tables.items():
        lines.append(f"{name} = {{ {', '.join(f'{field} = {_toml_value(value)}' for field, value in table.items())} }}")
    return _HEAD + "\n".join(lines) + "\n"


def read_checkpoint(text: bytes) -> SavedCheckpoint:
    """Read a checkpoint. Raises ValueError: not a checkpoint."""
    if len(text) > LARGEST_CHECKPOINT:
        raise ValueError(f"longer than {LARGEST_CHECKPOINT} bytes")
    try:
        return msgspec.convert(tomllib.loads(text.decode("utf-8-sig")), SavedCheckpoint)
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, or wrong fields
        raise ValueError(str(error) or type(error).__name__) from None


def compare_with_checkpoint(checkpoint: SavedCheckpoint, log: Log) -> CheckpointDifferences:
    """Compare a log as of the checkpoint's position with the checkpoint. Raises Unavailable, Corrupt."""
    try:
        now = take_checkpoint(log._replace(as_of=checkpoint.log_position))
    except Refused as refused:
        return CheckpointDifferences(
            [f"the checkpoint was made at log position {checkpoint.log_position}; {refused.detail}"], []
        )
    apart = [
        f"{field}: the checkpoint has {was}, the log has {here}"
        for field, was, here in (
            ("ledger", checkpoint.ledger, now.ledger),
            ("digest", checkpoint.digest, now.digest),
            ("recorded_at", checkpoint.recorded_at, now.recorded_at),
        )
        if was != here
    ]
    skipped = []
    for projection, was in checkpoint.projections.items():
        here = now.projections.get(projection)
        if here is None or (here.version, here.part_rows) != (was.version, was.part_rows):
            what = "none" if here is None else f"version {here.version}"
            if here is not None and here.version == was.version:
                what = "another digest of tables with as many rows"
            skipped.append(
                f"{projection}: the checkpoint has version {was.version}, this code has {what}; "
                f"code {checkpoint.code} can compare"
            )
        elif here != was:
            rows = "" if here.rows == was.rows else f" ({was.rows} rows in the checkpoint, {here.rows} in the log)"
            apart.append(
                f"projection {projection}: the checkpoint has digest {was.digest}, the log has {here.digest}{rows}"
            )
    return CheckpointDifferences(apart, skipped)


def _toml_value(value: str | int) -> str:
    """Return a number, or a text quoted as in both TOML and JSON."""
    return msgspec.json.encode(value).decode()
