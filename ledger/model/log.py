"""The rows of the log: one event each, sealed with a digest of its own bytes and of all rows before it.

A row is one line of JSON: position, recorded_at, command_id, command, previous, event, digest. A row that was imported
with the time at which it was received has `imported` after that. `command` is the digest of the command's content;
`normal` says that it is of its normal form, which the events give back, as in every row since it was introduced.
`provenance`, after these two, has who asked for the command, why, and its evidence, in each of its rows, if it said so.
`previous` the digest of the row before, and `digest` the SHA-256 of the row's own bytes up to the comma before it. The
bytes are canonical: there are no floats, and the fields have a fixed order.
"""

from binascii import hexlify
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Sized
from hashlib import sha256
from typing import Annotated, Any, AnyStr, NamedTuple, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

from forecast_ledger.ledger.core.errors import Corrupt, NewerVersion, Unavailable
from forecast_ledger.ledger.core.values import FIRST_INSTANT, LAST_INSTANT, PROBABILITY
from forecast_ledger.ledger.model.events import TAGS, AnyEvent, ContestOpened, ForecastMade
from forecast_ledger.ledger.model.mismatch import event_json
from forecast_ledger.ledger.model.provenance import Provenance
from forecast_ledger.ledger.model.rules import recorded_fields

GENESIS = "0" * 64  # the digest of an empty log
# The texts of a row around its values, as the encoder writes them: for the ways that write many rows at once.
_POSITION, _RECORDED_AT, IMPORTED, NORMAL = '{"position":', ',"recorded_at":', ',"imported":true', ',"normal":true'
_COMMAND_ID, _COMMAND, _PREVIOUS, EVENT = ',"command_id":', ',"command":"', '","previous":"', '","event":'
PROVENANCE = ',"provenance":'
_DIGEST, _END = ',"digest":"', '"}'
_BEFORE_EVENT, _BEFORE_DIGEST, _AFTER_DIGEST = EVENT.encode(), _DIGEST.encode(), _END.encode()
_FRAME = len(_BEFORE_DIGEST + _AFTER_DIGEST)
_SEAL = _FRAME + 64
_LAST = -len(_AFTER_DIGEST)
_DIGITS = 64 - _LAST
_TYPE, _AT, _QUESTION, _PARTICIPANT = '{"type":"', '","at":', ',"question":', ',"participant":'
_MADE_AT, _PROBABILITIES = f"{_TYPE}{TAGS[ForecastMade]}{_AT}", ',"probabilities":['
_NO_QUOTES = "]}"  # the end of an event of quotes: after its last one, or if it has none


class Recorded(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A row of the log: one event with its log position, its command and its digests.

    >>> from forecast_ledger import Recorded, commands, open_ledger
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with open_ledger(":memory:") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     recorded: Recorded
    ...     for recorded in ledger.subscribe():
    ...         print(recorded.position, recorded.command_id, recorded.event.contest)
    ...         break  # another step would wait for the next event
    1 open-spring spring
    """

    position: int
    recorded_at: Annotated[int, msgspec.Meta(ge=FIRST_INSTANT, le=LAST_INSTANT)]
    imported: bool | UnsetType = UNSET  # left out of the row unless it is true
    normal: bool | UnsetType = UNSET  # so is this
    provenance: Provenance | UnsetType = UNSET  # left out if the command did not say
    command_id: str
    command: str
    previous: str
    event: AnyEvent
    digest: str = ""

    def to_json(self) -> str:
        """Return the row with its event on one line of JSON, with decimals and instants as commands have them."""
        return event_json(self)


class Envelope(Struct, frozen=True, gc=False):
    """The fields of a row that can be read if its event cannot."""

    position: int
    recorded_at: int
    previous: str
    imported: bool | UnsetType = UNSET


class _Command(Struct, frozen=True, gc=False):
    """The part of a row that names its command."""

    command_id: str


class Checkpoint(NamedTuple):
    """A log position and the digest of the log up to it: all that is needed to check a copy of the log.

    >>> from forecast_ledger import Checkpoint, commands, open_ledger, replay
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with open_ledger(":memory:") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     seen: Checkpoint = replay(ledger).checkpoint
    ...     news = ledger.subscribe(after=seen)  # refused if the log has another digest there
    >>> seen.position, len(seen.digest)
    (1, 64)
    """

    position: int
    digest: str


class ForecastFields(NamedTuple):
    """The fields that rows of forecasts were made of, each of all rows; the rows have no others.

    recorded_at: µs, of all rows. commands: the fingerprints of their contents. at: µs. units: 1e-9, for yes; of other
    numbers than a probability, `measured` has the field and the numbers, by the index of the row.
    """

    recorded_at: int
    command_ids: Sequence[str]
    commands: Sequence[str]
    at: Sequence[int]
    question: Sequence[str]
    participant: Sequence[str]
    units: Sequence[int]
    measured: Mapping[int, tuple[str, Sequence[int]]]

    def part(self, begin: int, end: int) -> "ForecastFields":
        """Return those of some of the rows."""
        if begin == 0 and end == len(self.at):
            return self
        some = {name: getattr(self, name)[begin:end] for name in self._fields[1:-1]}
        measured = {at - begin: numbers for at, numbers in self.measured.items() if begin <= at < end}
        return self._replace(**some, measured=measured)


class NewRows(NamedTuple):
    """Consecutive rows to append, whose events are of one type.

    first: the log position of the first one. rows: their texts, or their bytes in UTF-8. fields: returns what the rows
    were made of, if they are forecasts that were made together; so many rows may be made while they are read, once, to
    the end.
    """

    first: int
    type: str
    rows: Iterable[str | bytes]
    fields: Callable[[], ForecastFields] | None = None
    made: int = 0

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(cast("Sized", self.rows)) if self.fields is None else self.made

    @property
    def last(self) -> int:
        """The log position of the last row."""
        return self.first + self.size - 1


START = Checkpoint(0, GENESIS)
_row = msgspec.json.Decoder(Recorded)
_envelope = msgspec.json.Decoder(Envelope)
_command = msgspec.json.Decoder(_Command)
_encode = msgspec.json.Encoder().encode
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
# How msgspec's messages begin about a field, a type of event, or a word that this version does not know.
_UNKNOWN = ("Object contains unknown field", "Invalid value", "Invalid enum value")


def fingerprint(content: bytes) -> str:
    """Return the digest of a command's content, 128 bits; a retry has the same one as the recorded command."""
    return sha256(content).hexdigest()[:32]


def fingerprints(contents: Iterable[bytes]) -> list[str]:
    """Return the digest of the content of each command, as `fingerprint` does."""
    return [sha256(content).hexdigest()[:32] for content in contents]


def fingerprint_bytes(contents: Iterable[bytes]) -> bytes:
    """Return the digests that `fingerprints` returns, 16 bytes each, one after the other."""
    return b"".join([sha256(content).digest()[:16] for content in contents])


def seal(recorded: Recorded) -> tuple[bytes, str]:
    """Return a row's canonical bytes and its computed digest; the digest that it states is ignored."""
    body = encode_row(recorded)[: -_FRAME - len(recorded.digest)]
    return with_digest(body)


def row_bytes(row: str | bytes) -> bytes:
    """Return the bytes of a row, which may be given as a text."""
    return row.encode() if isinstance(row, str) else row


def with_digest(body: bytes) -> tuple[bytes, str]:
    """Return a row, and its digest, from its bytes up to the comma before the digest."""
    digest = sha256(body).hexdigest()
    return body + digest_bytes(digest), digest


def digest_bytes(digest: str) -> bytes:
    """Return the last bytes of a row, which state its digest."""
    return _BEFORE_DIGEST + digest.encode() + _AFTER_DIGEST


def forecast_texts(
    instants: Iterable[object], questions: Iterable[str], participants: Iterable[str], units: Iterable[int]
) -> list[str]:
    """Return the JSON of forecasts of a probability. questions, participants: ids as JSON.

    instants: µs, or "null" for one that is stamped later. units: 1e-9, for yes.
    """
    return [
        f"{_MADE_AT}{at}{_QUESTION}{question}{_PARTICIPANT}{participant}{_PROBABILITIES}{yes},{PROBABILITY - yes}]}}"
        for at, question, participant, yes in zip(instants, questions, participants, units, strict=True)
    ]


def forecast_heads(instants: Iterable[object], questions: Iterable[str], participants: Iterable[str]) -> list[str]:
    """Return the beginnings of forecasts of other numbers, as `forecast_texts` those of a probability."""
    return [
        f"{_MADE_AT}{at}{_QUESTION}{question}{_PARTICIPANT}{participant}"
        for at, question, participant in zip(instants, questions, participants, strict=True)
    ]


def with_numbers(events: Iterable[str], numbers: Mapping[int, tuple[str, Sequence[int]]]) -> list[str]:
    """Return the JSON of forecasts, of which some have only a beginning.

    numbers: by index, the field and the numbers that are all that is left of these.

    >>> with_numbers(['{"at":7}', '{"participant":"ada"'], {1: ("quantiles", [5, 20])})
    ['{"at":7}', '{"participant":"ada","quantiles":[5,20]}']
    """
    of = numbers.get
    return [
        event if (given := of(index)) is None else f'{event},"{given[0]}":{_encode([*given[1]]).decode()}}}'
        for index, event in enumerate(events)
    ]


def stamped(event: str, recorded_at: int) -> str:
    """Return the JSON, or its beginning, of a forecast whose instant was "null" with that of its recording, µs."""
    return event.replace(f"{_AT}null", f"{_AT}{recorded_at}", 1)


def command_texts(ids: Iterable[str], fingerprints: Iterable[str]) -> list[str]:
    """Return the texts of commands in rows. ids: as JSON without quotation marks; `id_and_fingerprint` takes one apart.

    >>> command_texts(["f1"], ["89ab"])
    ['f1","command":"89ab']
    """
    return [f'{ident}"{_COMMAND}{command}' for ident, command in zip(ids, fingerprints, strict=True)]


def id_and_fingerprint(command: str) -> tuple[str, str]:
    """Return the id, as JSON without quotation marks, and the fingerprint of a text of `command_texts`."""
    ident, _, command = command.rpartition(f'"{_COMMAND}')
    return ident, command


def seal_texts(after: Checkpoint, recorded_at: int, texts: Iterable[tuple[str, str]]) -> Generator[str, None, str]:
    """Yield the rows that `seal` returns, and return the last digest.

    after: the checkpoint before the first row. texts: of each row, that of its command, as `command_texts` returns it,
    and that of its event.
    """
    digest, at = after.digest, f'{_RECORDED_AT}{recorded_at}{NORMAL}{_COMMAND_ID}"'
    for position, (command, event) in enumerate(texts, after.position + 1):
        body = f"{_POSITION}{position}{at}{command}{_PREVIOUS}{digest}{EVENT}{event}"
        digest = sha256(body.encode()).hexdigest()  # as in `with_digest`, without its calls
        yield f"{body}{_DIGEST}{digest}{_END}"
    return digest


def chain_rows(previous: str, heads: Iterable[bytes], ends: Iterable[bytes]) -> tuple[list[bytes], str]:
    """Return rows with their digests, and the last digest. previous: the digest before the first row.

    heads, ends: the bytes of each row before the digest of the row before it, and after that up to its own digest.
    """
    rows, digest = list[bytes](), previous.encode()
    for head, end in zip(heads, ends, strict=True):
        body = head + digest + end
        digest = hexlify(sha256(body).digest())  # as in `with_digest`, without its calls
        rows.append(body + _BEFORE_DIGEST + digest + _AFTER_DIGEST)
    return rows, digest.decode()


def chain_digests(previous: str, heads: Iterable[bytes], ends: Iterable[bytes]) -> tuple[list[bytes], str]:
    """Return the digests of the rows that `chain_rows` returns, 32 bytes each, and the last one as it does."""
    digests, digest = list[bytes](), previous.encode()
    for head, end in zip(heads, ends, strict=True):
        row = sha256(head)  # in parts: the bytes of the row are needed nowhere else
        row.update(digest)
        row.update(end)
        computed = row.digest()
        digest = hexlify(computed)
        digests.append(computed)
    return digests, digest.decode()


def built_row(head: bytes, previous: bytes, end: bytes, digest: bytes) -> bytes:
    """Return one of the rows that `chain_rows` returns. previous: the digest before, as text. digest: 32 bytes."""
    return head + previous + end + _BEFORE_DIGEST + hexlify(digest) + _AFTER_DIGEST


def head_parts(of: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the parts of rows up to the digest of the row before, for whoever joins columns of texts.

    of: the fields of rows by name, each a text or a column of texts; command_id and provenance as JSON, imported and
    normal as IMPORTED and NORMAL, or empty. The part that is a tuple is left out where a row has no provenance.
    """
    flags = of["imported"], of["normal"], (PROVENANCE, of["provenance"])
    return (
        *(_POSITION, of["position"], _RECORDED_AT, of["recorded_at"], *flags),
        *(_COMMAND_ID, of["command_id"], _COMMAND, of["command"], _PREVIOUS),
    )


def forecast_parts(of: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the parts of forecasts and withdrawals, from the digest of the row before up to that of the row.

    of: as in `head_parts`; ids and the attestation as JSON, numbers as the JSON between their brackets, and their field
    as form. A part that is a tuple is left out where one of its own parts is missing.
    """
    return (
        *(f"{EVENT}{_TYPE}", of["type"], _AT, of["at"], _QUESTION, of["question"], _PARTICIPANT, of["participant"]),
        (',"', of["form"], '":['),
        (of["numbers"], "]"),
        (',"attestation":', of["attestation"]),
        (',"until":', of["until"]),
        "}",
    )


def event_parts(event: Any) -> tuple[Any, ...]:
    """Return the parts of rows from the digest of the row before up to that of the row. event: as JSON."""
    return EVENT, event


def quote_parts(question: Any, sides: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the parts of quotes. question: as JSON. sides: numbers by field, as the JSON between their brackets."""
    return ('{"question":', question, *((f',"{side}":[', numbers, "]") for side, numbers in sides.items()), "}")


def with_quotes(event: str, quotes: str) -> str:
    """Return the JSON of an event of quotes that has none with these, whose JSON is joined by commas."""
    return f"{event.removesuffix(_NO_QUOTES)}{quotes}{_NO_QUOTES}"


def canonical_end(recorded: Recorded) -> bytes:
    """Return the end of a row whose event has the canonical JSON: all that follows the digest of the row before."""
    return _BEFORE_EVENT + _encode(recorded.event) + _BEFORE_DIGEST + recorded.digest.encode() + _AFTER_DIGEST


def encode_row(recorded: Recorded) -> bytes:
    """Return the bytes of a row with the digest that it states; a rule set has the fields of `recorded_fields`."""
    if type(recorded.event) is not ContestOpened:
        return _encode(recorded)
    plain = msgspec.to_builtins(recorded)
    plain["event"]["rules"] = recorded_fields(recorded.event.rules)
    return _encode(plain)


def decode_rows(rows: Sequence[bytes]) -> list[Recorded]:
    """Return the events in rows without a check of their digests. Raises one of UNREADABLE."""
    return [*map(_row.decode, rows)]


def decode_row(row: bytes, position: int) -> Recorded:
    """Return the event in the row at a log position without a check of its digest. Raises NewerVersion, Corrupt."""
    try:
        return _row.decode(row)
    except UNREADABLE as error:
        if compute_digest(row) == stated_digest(row):
            raise unreadable(position, "row", error) from None
        raise Corrupt(position, f"this version cannot read the row: {error}", "schemas") from None


def unreadable(position: int, what: str, error: Exception) -> Corrupt:
    """Return the error about a part of the log that is as it was written, and that this version cannot read.

    error: one of UNREADABLE. It is NewerVersion if it names what this version does not know.

    >>> unreadable(7, "row", msgspec.ValidationError("Object contains unknown field `odds` - at `$.event`")).kind
    'newer_version'
    >>> unreadable(7, "row", msgspec.ValidationError("Expected `int`, got `str` - at `$.event.at`")).kind
    'corrupt'
    """
    if isinstance(error, msgspec.ValidationError) and str(error).startswith(_UNKNOWN):
        return NewerVersion(position, f"this version cannot read the {what}: {error}")
    return Corrupt(position, f"this version cannot read the {what}: {error}", "schemas")


def decode_envelope(row: bytes) -> Envelope | None:
    """Return the fields of a row apart from its event; None if these cannot be read either."""
    try:
        return _envelope.decode(row)
    except UNREADABLE:
        return None


def digested_bytes(row: bytes) -> bytes:
    """Return the bytes of a row from which its digest is computed."""
    return row[:-_SEAL]


def compute_digest(row: bytes) -> str:
    """Return the digest of a row's bytes, not the one that the row states."""
    return sha256(row[:-_SEAL]).hexdigest()


def compute_digests(rows: Iterable[bytes]) -> list[str]:
    """Return the digest of each row, as `compute_digest` does."""
    return [sha256(row[:-_SEAL]).hexdigest() for row in rows]


def stated_digest(row: bytes) -> str:
    """Return the digest that a row states; "none" if its last bytes are not those of a digest.

    >>> stated_digest(b'{"position":1,"digest":"' + b"f" * 64 + b'"}') == "f" * 64, stated_digest(b"{}")
    (True, 'none')
    """
    end = row[-_SEAL:]
    if not (end.startswith(_BEFORE_DIGEST) and end.endswith(_AFTER_DIGEST)):
        return "none"
    return end[len(_BEFORE_DIGEST) : -len(_AFTER_DIGEST)].decode("ascii", "replace")


def made_digests(rows: Sequence[str | bytes]) -> bytes:
    """Return the digests of rows that this program has made, one after the other."""
    return bytes.fromhex("".join([row[-_DIGITS:_LAST] if isinstance(row, str) else stated_digest(row) for row in rows]))


def digests_of(rows: Iterable[AnyStr]) -> list[AnyStr]:
    """Return the digests of rows that were checked."""
    return [row[-_DIGITS:_LAST] for row in rows]


def command_id_of(row: bytes) -> str:
    """Return the id of the command that a row belongs to. Raises one of UNREADABLE."""
    return _command.decode(row).command_id


def command_ids_at(rows: Sequence[AnyStr], begins: Iterable[int], ends: Iterable[int]) -> list[AnyStr]:
    """Return the ids of the commands of rows, which begin and end at these characters."""
    return [row[begin:end] for row, begin, end in zip(rows, begins, ends, strict=True)]


def event_texts_at(rows: Sequence[AnyStr], begins: Iterable[int]) -> list[AnyStr]:
    """Return the JSON of the events in rows, as `event_text` does, which begin at these characters."""
    return [row[begin:-_SEAL] for row, begin in zip(rows, begins, strict=True)]


def event_text(row: str) -> str:
    """Return the JSON of the event in a row."""
    # In the texts before the event, a quotation mark has a backslash before it.
    begin, end = EVENT, _DIGEST
    return row[row.index(begin) + len(begin) : row.rindex(end)]


def read_back(row: str | bytes, position: int) -> None:
    """Read a row that is to be recorded, as any reader will. Raises Unavailable: this version could not read it again.

    It is for each row that was encoded by itself, and for the first of those that are made of columns, which are
    checked as a whole.
    """
    try:
        _row.decode(row)
    except UNREADABLE as error:
        detail = f"the row of log position {position} could not be read again, and nothing was recorded"
        raise Unavailable(f"{detail}: {error}") from None


def unseal(rows: Sequence[bytes], before: Checkpoint) -> list[Recorded]:
    """Return the events in consecutive rows that follow a checkpoint.

    Raises Corrupt, with the position of the first faulty row: it is not of this schema, its bytes do not match its
    digest, or its position or the previous digest is not the next one. If nothing is wrong with it but that its event
    has a type or a field that this version does not know, raises NewerVersion.
    """
    try:
        records = decode_rows(rows)
    except UNREADABLE:
        for row in rows:  # raises for that row, or for one before it that has another fault
            before = _check([row], [_decode_next(row, before)], before)
        raise
    _check(rows, records, before)
    return records


def unseal_pages(pages: Iterator[Sequence[bytes]], before: Checkpoint = START) -> Iterator[list[Recorded]]:
    """Unseal page after page. Raises Corrupt at the first row that is damaged, after the events before it.

    So whoever stops at an earlier event reads nothing of the damage.
    """
    for rows in pages:
        try:
            events = unseal(rows, before)
        except Corrupt as damage:
            if sound := rows[: max(damage.position - before.position - 1, 0)]:
                yield unseal(sound, before)
            raise
        before = Checkpoint(events[-1].position, events[-1].digest)
        yield events


def pages_up_to(pages: Iterator[list[bytes]], position: int) -> Iterator[list[bytes]]:
    """Yield pages of rows from the first on, up to a log position; no page beyond it is requested."""
    while position > 0 and (rows := next(pages, [])):
        yield rows[:position]
        position -= len(rows)


def unseal_row(row: bytes, position: int) -> Recorded:
    """Return the event in one row after all checks except that of the row before. Raises Corrupt."""
    [recorded] = unseal([row], Checkpoint(position - 1, decode_row(row, position).previous))
    return recorded


def _decode_next(row: bytes, before: Checkpoint) -> Recorded:
    """Return the event in the row after a checkpoint. Raises NewerVersion (only if the row follows it), Corrupt."""
    try:
        return decode_row(row, before.position + 1)
    except NewerVersion as newer:
        envelope = decode_envelope(row)
        if envelope is None or (envelope.position, envelope.previous) != (newer.position, before.digest):
            raise Corrupt(newer.position, newer.args[1], newer.check) from None
        raise


def _check(rows: Sequence[bytes], records: Sequence[Recorded], before: Checkpoint) -> Checkpoint:
    """Return the checkpoint of the last row. Raises Corrupt at the first row that does not follow the one before."""
    digests = compute_digests(rows)
    if (
        digests == [recorded.digest for recorded in records]
        and [before.digest, *digests[:-1]] == [recorded.previous for recorded in records]
        and all(recorded.position == position for position, recorded in enumerate(records, before.position + 1))
    ):
        return Checkpoint(before.position + len(rows), digests[-1]) if digests else before
    return _check_each(rows, records, before)


def _check_each(rows: Sequence[bytes], records: Sequence[Recorded], before: Checkpoint) -> Checkpoint:
    """Do the same row by row, in the order of the faults."""
    position, previous = before
    for row, recorded in zip(rows, records, strict=True):
        position += 1
        digest = compute_digest(row)
        if digest != recorded.digest:
            detail = f"the row's bytes have digest {digest}, the row states {recorded.digest or 'none'}"
            raise Corrupt(position, detail, "digests")
        if recorded.position != position:
            raise Corrupt(position, f"the row states the log position {recorded.position}", "positions")
        if recorded.previous != previous:
            detail = f"the row before has digest {previous}, this row follows {recorded.previous}"
            raise Corrupt(position, detail, "digests")
        previous = digest
    return Checkpoint(position, previous)
