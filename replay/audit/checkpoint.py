"""A small text to keep, against which a log can be checked again years later, by whomever."""

import tomllib
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import log
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.replay.reading.replay import AsOf, Cut, Watch, built, opened
from forecast_ledger.replay.reading.version import code_version

LONGEST = 2**20  # bytes of a text
_HEAD = "# `forecast-ledger verify LOG --checkpoint FILE` checks a log against this\n"
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


class KeptTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A projection as it was: the digest is of its version's table."""

    version: int
    rows: int
    digest: Digest


class Kept(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A ledger as of a log position; recorded_at by its clock, None if it is empty; code: this package's version."""

    ledger: str
    log_position: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    digest: Digest
    recorded_at: str | None = None
    code: str
    projections: dict[str, KeptTable]


class Comparison(NamedTuple):
    """What of a log is other than was kept, in words, and which projections this version of the code cannot compare."""

    apart: list[str]
    skipped: list[str]


def keep(location: str, name: str = "main", as_of: AsOf = None, watch: Watch = lambda _: None) -> Kept:
    """A log as of a cut, with every projection that is not only built when asked for.

    Raises, first that applies: Refused (as_of is no instant, or beyond the log), Unavailable, Corrupt.
    """
    cut = Cut(as_of)
    with opened(location, name) as store:
        found = facts(cut.pages(log.unseal_pages(store.pages()), watch))
    position, digest = cut.reached()
    return Kept(
        ledger=name,
        log_position=position,
        digest=digest,
        recorded_at=None if cut.recorded_at is None else values.format_instant(cut.recorded_at),
        code=code_version(),
        projections={name: KeptTable(**each._asdict()) for name, each in built(found).items()},
    )


def written(kept: Kept) -> str:
    """The text: TOML, the same for the same log and code."""
    plain = msgspec.to_builtins(kept)
    tables = plain.pop("projections")
    lines = [f"{field} = {_quoted(value)}" for field, value in plain.items()]
    lines += ["", "[projections]"]
    for name, table in tables.items():
        lines.append(f"{name} = {{ {', '.join(f'{field} = {_quoted(value)}' for field, value in table.items())} }}")
    return _HEAD + "\n".join(lines) + "\n"


def read(text: bytes) -> Kept:
    """What a text says. Raises ValueError if it is no checkpoint."""
    if len(text) > LONGEST:
        raise ValueError(f"longer than {LONGEST} bytes")
    try:
        return msgspec.convert(tomllib.loads(text.decode("utf-8-sig")), Kept)
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8, of fields
        raise ValueError(str(error) or type(error).__name__) from None


def compared(kept: Kept, location: str, name: str = "main", watch: Watch = lambda _: None) -> Comparison:
    """A log as of the checkpoint's position beside the checkpoint. Raises Unavailable, Corrupt."""
    try:
        now = keep(location, name, kept.log_position, watch)
    except Refused as refused:
        return Comparison([f"the checkpoint is of log position {kept.log_position}, {refused.detail}"], [])
    apart = [
        f"{field}: {was} was kept, {here} is here"
        for field, was, here in (
            ("ledger", kept.ledger, now.ledger),
            ("digest", kept.digest, now.digest),
            ("recorded_at", kept.recorded_at, now.recorded_at),
        )
        if was != here
    ]
    skipped = []
    for projection, was in kept.projections.items():
        here = now.projections.get(projection)
        if here is None or here.version != was.version:
            what = "none" if here is None else f"version {here.version}"
            skipped.append(
                f"{projection}: version {was.version} was kept, here is {what}; code {kept.code} can compare"
            )
        elif here != was:
            rows = "" if here.rows == was.rows else f" ({was.rows} rows were kept, {here.rows} are here)"
            apart.append(f"projection {projection}: digest {was.digest} was kept, {here.digest} is here{rows}")
    return Comparison(apart, skipped)


def _quoted(value: str | int) -> str:
    """A text as TOML and JSON both write it, or a number."""
    return msgspec.json.encode(value).decode()
