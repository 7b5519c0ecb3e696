"""The record: one row an event, each sealed with the digest of its own bytes and of everything before it.

A row is one line of JSON: position, recorded_at, command_id, command, previous, event, digest. `command` is the digest
of what the command said, `previous` the digest of the row before, and `digest` the SHA-256 of the row's own bytes up to
the comma before it. No floats, fields in one order: the bytes are canonical.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

import msgspec
from msgspec import Struct

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model.events import AnyEvent, ContestOpened
from forecast_ledger.ledger.model.rules import recorded_fields

GENESIS = "0" * 64  # the digest of an empty log
_BEFORE_DIGEST, _AFTER_DIGEST = b',"digest":"', b'"}'
_FRAME = len(_BEFORE_DIGEST + _AFTER_DIGEST)
_SEAL = _FRAME + 64
_BEFORE_EVENT = b'","event":'


class Recorded(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A row of the log: one event, and what it is sealed with.

    >>> from forecast_ledger import Recorded, commands, open
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with open(":memory:") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     recorded: Recorded
    ...     for recorded in ledger.subscribe():
    ...         print(recorded.position, recorded.command_id, recorded.event.contest)
    ...         break  # the next would wait until more is recorded
    1 open-spring spring
    """

    position: int
    recorded_at: int
    command_id: str
    command: str
    previous: str
    event: AnyEvent
    digest: str = ""


class Envelope(Struct, frozen=True, gc=False):
    """What can be read of a row around an event that cannot be read."""

    position: int
    recorded_at: int
    previous: str


class _Command(Struct, frozen=True, gc=False):
    """The part of a row that names its command."""

    command_id: str


class Checkpoint(NamedTuple):
    """All that is needed to check a log against: a log position, and the digest of the log up to there.

    >>> from forecast_ledger import Checkpoint, commands, open, replay
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with open(":memory:") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     seen: Checkpoint = replay(ledger).checkpoint
    ...     news = ledger.subscribe(after=seen)  # refused if the log has another digest there
    >>> seen.position, len(seen.digest)
    (1, 64)
    """

    position: int
    digest: str


START = Checkpoint(0, GENESIS)
_one = msgspec.json.Decoder(Recorded)
_envelope = msgspec.json.Decoder(Envelope)
_command = msgspec.json.Decoder(_Command)
_encode = msgspec.json.Encoder().encode
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def fingerprint(content: bytes) -> str:
    """A digest of what a command says, 128 bits, by which a retry is told from another command of the same id."""
    return sha256(content).hexdigest()[:32]


def seal(recorded: Recorded) -> tuple[bytes, str]:
    """A row's canonical bytes and its digest, whatever digest it claims."""
    body = encode_row(recorded)[: -_FRAME - len(recorded.digest)]
    digest = sha256(body).hexdigest()
    return body + _BEFORE_DIGEST + digest.encode() + _AFTER_DIGEST, digest


def encode_row(recorded: Recorded) -> bytes:
    """The whole row, with the digest it claims; a contest's rule set is spelt as `rules` says."""
    if type(recorded.event) is not ContestOpened:
        return _encode(recorded)
    plain = msgspec.to_builtins(recorded)
    plain["event"]["rules"] = recorded_fields(recorded.event.rules)
    return _encode(plain)


def decode_rows(rows: Sequence[bytes]) -> list[Recorded]:
    """The events in rows, whose digests are not checked. Raises one of UNREADABLE."""
    return [*map(_one.decode, rows)]


def decode_row(row: bytes, position: int) -> Recorded:
    """The event in the row at a log position, whose digest is not checked. Raises Corrupt if it cannot be read."""
    try:
        return _one.decode(row)
    except UNREADABLE as error:
        raise Corrupt(position, f"not a record that this version can read: {error}", "schemas") from None


def decode_envelope(row: bytes) -> Envelope | None:
    """What a row says around its event; None if that cannot be read either."""
    try:
        return _envelope.decode(row)
    except UNREADABLE:
        return None


def digested_bytes(row: bytes) -> bytes:
    """The bytes of a row that its digest is of."""
    return row[:-_SEAL]


def compute_digest(row: bytes) -> str:
    """The digest of a row's bytes, whatever the row says it is."""
    return sha256(row[:-_SEAL]).hexdigest()


def stated_digest(row: bytes) -> str:
    """The digest that a row says it has; "none" if its last bytes are not those of a digest.

    >>> stated_digest(b'{"position":1,"digest":"' + b"f" * 64 + b'"}') == "f" * 64, stated_digest(b"{}")
    (True, 'none')
    """
    end = row[-_SEAL:]
    if not (end.startswith(_BEFORE_DIGEST) and end.endswith(_AFTER_DIGEST)):
        return "none"
    return end[len(_BEFORE_DIGEST) : -len(_AFTER_DIGEST)].decode("ascii", "replace")


def command_id_of(row: bytes) -> str:
    """The id of the command that a row belongs to. Raises one of UNREADABLE."""
    return _command.decode(row).command_id


def event_text(row: str) -> str:
    """The JSON of the event in a row; in the texts before it, a quotation mark has a backslash before it."""
    begin, end = _BEFORE_EVENT.decode(), _BEFORE_DIGEST.decode()
    return row[row.index(begin) + len(begin) : row.rindex(end)]


def unseal(rows: Sequence[bytes], before: Checkpoint) -> list[Recorded]:
    """The events in consecutive rows that follow a checkpoint.

    Raises Corrupt, with the position of the first row that fails: not of this schema, an event of unknown type or with
    unknown fields, bytes that do not match their digest, a position out of turn, a digest that does not follow.
    """
    try:
        records = decode_rows(rows)
    except UNREADABLE:
        for row in rows:  # that row, or one before it with another fault, is found
            before = _check([row], [decode_row(row, before.position + 1)], before)
        raise
    _check(rows, records, before)
    return records


def unseal_pages(pages: Iterator[Sequence[bytes]], before: Checkpoint = START) -> Iterator[list[Recorded]]:
    """Unseal page after page."""
    for rows in pages:
        events = unseal(rows, before)
        before = Checkpoint(events[-1].position, events[-1].digest)
        yield events


def pages_up_to(pages: Iterator[list[bytes]], position: int) -> Iterator[list[bytes]]:
    """Pages of rows from the first on, up to a log position; no page beyond it is asked for."""
    while position > 0 and (rows := next(pages, [])):
        yield rows[:position]
        position -= len(rows)


def unseal_row(row: bytes, position: int) -> Recorded:
    """The event in one row, checked like others, but for the row that it follows. Raises Corrupt."""
    [recorded] = unseal([row], Checkpoint(position - 1, decode_row(row, position).previous))
    return recorded


def _check(rows: Sequence[bytes], records: Sequence[Recorded], before: Checkpoint) -> Checkpoint:
    """The last row's position and digest, if all follow what is before. Raises Corrupt at the first that does not."""
    position, previous = before
    for row, recorded in zip(rows, records, strict=True):
        position += 1
        digest = compute_digest(row)
        if digest != recorded.digest:
            said = f"the row's bytes have digest {digest}, the row says {recorded.digest or 'none'}"
            raise Corrupt(position, said, "digests")
        if recorded.position != position:
            raise Corrupt(position, f"the row says that its log position is {recorded.position}", "positions")
        if recorded.previous != previous:
            said = f"the row before has digest {previous}, this row follows {recorded.previous}"
            raise Corrupt(position, said, "digests")
        previous = digest
    return Checkpoint(position, previous)
