"""Every command: what may be asked for, at the edge, in decimals and RFC 3339 instants.

One command a line of JSON: `id`, `type`, `at`, then the fields of its type.
"""

from collections.abc import Callable, Iterator
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation
from typing import Any, get_args

import msgspec
from msgspec import Struct, json

from ledger import values
from ledger.errors import Refused, foremost
from ledger.events import Kind, Level
from ledger.rules import RuleSet
from ledger.values import Instant, Number

_EXACT = Context(prec=2_000, Emax=MAX_EMAX, Emin=MIN_EMIN)


class Command(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """`id` makes a retry harmless; `at` is the instant the command claims."""

    id: str = ""
    at: Instant


class Range(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A numeric question's range, cut into bins; logarithmic where zero_point is given."""

    lower: Number
    upper: Number
    bins: int = 200
    open_lower: bool = False
    open_upper: bool = False
    zero_point: Number | None = None


class OpenQuestion(Command, frozen=True, kw_only=True, tag="open_question"):
    """Opens a question."""

    question: str
    kind: Kind
    title: str = ""
    outcomes: tuple[str, ...] | None = None
    range: Range | None = None
    opens_at: Instant
    closes_at: Instant
    reveals_at: Instant | None = None


class SubmitForecast(Command, frozen=True, kw_only=True, tag="submit_forecast"):
    """Makes or replaces a participant's forecast: exactly one of probability, probabilities, cdf."""

    question: str
    participant: str
    probability: Number | None = None
    probabilities: dict[str, Number] | None = None
    cdf: tuple[Number, ...] | None = None


class WithdrawForecast(Command, frozen=True, kw_only=True, tag="withdraw_forecast"):
    """Withdraws a participant's standing forecast."""

    question: str
    participant: str


class CloseQuestion(Command, frozen=True, kw_only=True, tag="close_question"):
    """Closes a question early, at `at`."""

    question: str


class ResolveQuestion(Command, frozen=True, kw_only=True, tag="resolve_question"):
    """Records the answer; known_at defaults to the earlier of `at` and the scheduled close."""

    question: str
    outcome: str | None = None
    value: Number | None = None
    known_at: Instant | None = None


class AnnulQuestion(Command, frozen=True, kw_only=True, tag="annul_question"):
    """Makes a question count nowhere."""

    question: str
    reason: str


class RevokeResolution(Command, frozen=True, kw_only=True, tag="revoke_resolution"):
    """Undoes a resolution or an annulment."""

    question: str
    reason: str


class OpenContest(Command, frozen=True, kw_only=True, tag="open_contest"):
    """Opens a contest under a preset or a whole rule set."""

    contest: str
    rules: str | RuleSet
    pool: Number | None = None
    currency: str = ""
    payable_unit: Number = Decimal("0.01")
    title: str = ""


class AddQuestion(Command, frozen=True, kw_only=True, tag="add_question"):
    """Puts a question into a contest."""

    contest: str
    question: str
    weight: Number = Decimal(1)
    hidden_coverage_weight: Number | None = None


class ExcludeParticipant(Command, frozen=True, kw_only=True, tag="exclude_participant"):
    """Leaves a participant without prize, without rank, or off the contest's board."""

    contest: str
    participant: str
    level: Level
    reason: str


class FinalizeContest(Command, frozen=True, kw_only=True, tag="finalize_contest"):
    """Freezes the contest's board."""

    contest: str


AnyCommand = (
    OpenQuestion
    | SubmitForecast
    | WithdrawForecast
    | CloseQuestion
    | ResolveQuestion
    | AnnulQuestion
    | RevokeResolution
    | OpenContest
    | AddQuestion
    | ExcludeParticipant
    | FinalizeContest
)
_decoder = json.Decoder(AnyCommand, float_hook=Decimal)
_encoder = json.Encoder(order="deterministic")


def read(line: bytes | str) -> AnyCommand:
    """The command on one line of JSON.

    Refuses: malformed, with the path of the field.

    >>> read('{"id": "c1", "type": "close_question", "at": "2026-03-01T00:00:00Z", "question": "q1"}').question
    'q1'
    """
    try:
        command: AnyCommand = _decoder.decode(line)
    except (msgspec.DecodeError, InvalidOperation, RecursionError, UnicodeError) as error:
        raise _malformed(error, "") from None
    return command


def content(command: AnyCommand) -> bytes:
    """What a command says, without its id, in one spelling: equal for equal numbers and instants however written.

    Refuses, first that applies: id_empty, id_too_long, id_not_plain, text_too_long, bad_instant, naive_instant,
    bad_number, not_finite.

    >>> one = CloseQuestion(at="2026-03-01T01:00:00+01:00", question="q1")
    >>> content(one) == content(CloseQuestion(at="2026-03-01T00:00:00Z", question="q1", id="c1"))
    True
    """
    name, fields = _SPELLINGS[type(command)]
    try:
        said = [
            None if (value := getattr(command, field)) is None and optional else spell(value, field)
            for field, spell, optional in fields
        ]
    except Refused:
        raise foremost(_faults(command)) from None
    return _encoder.encode([name, *said])


def _faults(command: AnyCommand) -> Iterator[Refused]:
    """Everything wrong with how a command is written, field by field and item by item."""
    for field, spell, optional in _SPELLINGS[type(command)][1]:
        value = getattr(command, field)
        for part in [value] if value is not None or not optional else []:
            yield from _faults_of(part, field, spell)


def _faults_of(value: Any, field: str, spell: Callable[[Any, str], Any]) -> Iterator[Refused]:
    items: list[Any] = []
    if type(value) is dict:
        items = [{key: item} for key, item in value.items()]
    elif type(value) in {tuple, list}:
        items = [[item] for item in value]
    elif type(value) is Range:
        bounds = [value.lower, value.upper, value.zero_point]
        items = [Range(lower=bound, upper=bound) for bound in bounds if bound is not None]
    for item in [*items, value]:
        try:
            spell(item, field)
        except Refused as refused:
            yield refused


def _id(value: Any, name: str) -> str:
    return values.recurring(value, name) if type(value) is str else values.identifier(value, name)


def _number(value: Any, name: str) -> str:
    """The shortest decimal text."""
    if type(value) is not Decimal or not value.is_finite():
        value = values.decimal(value, name)
    return str(value.normalize(_EXACT)) if value else "0"


def _by_outcome(value: Any, name: str) -> dict[str, str]:
    if type(value) is not dict:
        raise Refused("malformed", name, value, "not an object of outcomes and probabilities")
    return {_id(outcome, name): _number(item, name) for outcome, item in value.items()}


def _each(spell: Callable[[Any, str], str]) -> Callable[[Any, str], list[str]]:
    def spelt(value: Any, name: str) -> list[str]:
        if type(value) is not tuple and type(value) is not list:
            raise Refused("malformed", name, value, "not an array")
        return [spell(item, name) for item in value]

    return spelt


def _range(value: Any, name: str) -> list[Any]:
    if type(value) is not Range:
        raise Refused("malformed", name, value, "not a range")
    bounds = [value.lower, value.upper, *([] if value.zero_point is None else [value.zero_point])]
    shape = [
        _checked(kind)(getattr(value, part), f"{name}.{part}")
        for part, kind in (("bins", int), ("open_lower", bool), ("open_upper", bool))
    ]
    return [*(_number(bound, name) for bound in bounds), shape]


def _checked(expected: Any) -> Callable[[Any, str], Any]:
    """For fields that a caller in Python may have filled with anything: what JSON could not hold is refused."""

    def spell(value: Any, name: str) -> Any:
        try:
            plain = json.decode(json.encode(value))
            msgspec.convert(plain, expected)
        except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise _malformed(error, name) from None
        if type(value) in {int, str, bool, tuple, RuleSet}:
            return plain
        raise Refused("malformed", name, str(value))

    return spell


def _malformed(error: Exception, name: str) -> Refused:
    """A refusal that names the field as a path from the command, or from the field `name` of it."""
    message, _, path = str(error).partition(" - at `$")
    return Refused("malformed", f"{name}{path.rstrip('`')}".lstrip(".") or "line", None, message)


# How each field is spelt, in the order in which their faults are reported.
_SPELLING: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(["contest", "question", "participant"], _id),
    "outcomes": _each(_id),
    **dict.fromkeys(["title", "reason", "currency"], values.prose),
    **dict.fromkeys(["at", "opens_at", "closes_at", "reveals_at", "known_at"], values.instant),
    **dict.fromkeys(["probability", "value", "pool", "payable_unit"], _number),
    **dict.fromkeys(["weight", "hidden_coverage_weight"], _number),
    "probabilities": _by_outcome,
    "cdf": _each(_number),
    "range": _range,
    "kind": _checked(Kind),
    "outcome": _checked(str | None),
    "rules": _checked(str | RuleSet),
    "level": _checked(Level),
}


def _spelling(kind: type[Command]) -> list[tuple[str, Callable[[Any, str], Any], bool]]:
    """Each field of a command, how it is spelt, and whether it may be left out."""
    fields = {field.name: field.default is None for field in msgspec.structs.fields(kind)}
    return [(name, spell, fields[name]) for name, spell in _SPELLING.items() if name in fields]


_SPELLINGS = {kind: (kind.__struct_config__.tag, _spelling(kind)) for kind in get_args(AnyCommand)}
