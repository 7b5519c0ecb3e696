"""One spelling of what a command says, by which a retry is told from another command of the same id."""

from collections.abc import Callable, Iterator
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any, get_args

import msgspec
from msgspec import json

from ledger import values
from ledger.commands import AnyCommand, Command, Range, malformed
from ledger.errors import Refused, foremost
from ledger.events import Kind, Level
from ledger.rules import RuleSet

_EXACT = Context(prec=2_000, Emax=MAX_EMAX, Emin=MIN_EMIN)
_encoder = json.Encoder(order="deterministic")


def content(command: AnyCommand) -> bytes:
    """What a command says, without its id, in one spelling: equal for equal numbers and instants however written.

    Refuses, first that applies: malformed, id_empty, id_too_long, id_not_plain, text_too_long, bad_instant,
    naive_instant, bad_number, not_finite.

    >>> from ledger.commands import CloseQuestion
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
        if value is not None or not optional:
            yield from _faults_of(value, field, spell)


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
            raise malformed(error, name) from None
        if type(value) in {int, str, bool, tuple, RuleSet}:
            return plain
        raise Refused("malformed", name, str(value))

    return spell


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
