"""Rule sets as people write them: amounts are decimals in their unit, not the integers of the log.

Before, a rule set was written as it is recorded, with amounts as whole numbers in 1e-6 of their unit. A number could be
meant in either way, so it is refused: an amount is a text, such as "50", which was never accepted before.
"""

from decimal import Decimal
from typing import Annotated, Any, cast

from msgspec import Meta, Struct, defstruct, json, structs

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.trading_rules import MICROS, Trading, encoded_fields

_READABLE = 10**30  # the largest number that a message repeats


def _text(micros: Any) -> str:
    return values.format_fixed(micros, values.MONEY)


def limits(kind: type[Struct], field: str) -> Meta | None:
    """Return the bounds of a number of a rule set, in 1e-6 if it is an amount, and its unit; None for other fields.

    >>> found = limits(Trading, "least_bet_micros")
    >>> None if found is None else (found.ge, found.extra)
    (1, {'unit': "the contest's currency"})
    """
    [found] = [each for each in structs.fields(kind) if each.name == field]
    return next(iter(getattr(found.type, "__metadata__", ())), None)


def _written(kind: type[Struct], parts: dict[str, Any]) -> type[Struct]:
    """Return the type of a rule set as it is written, made from the one that is recorded."""
    fields: list[Any] = []
    for field in structs.fields(kind):
        default = [] if field.required else [field.default]
        if field.name.endswith(MICROS):
            fields.append((field.encode_name, _amount(limits(kind, field.name)), _text(field.default)))
        else:
            fields.append((field.encode_name, parts.get(field.name, field.type), *default))
    named = {"__doc__": kind.__doc__}
    return defstruct(kind.__name__, fields, frozen=True, kw_only=True, forbid_unknown_fields=True, namespace=named)


def _amount(meta: Meta | None) -> Any:
    """Return the type of a written amount."""
    schema = {"type": "string", "pattern": f"^{values.WRITTEN_NUMBER}$"}
    return Annotated[Any, Meta(extra_json_schema=schema, extra=meta and meta.extra)]


WrittenTrading = _written(Trading, {})
WrittenRuleSet = _written(RuleSet, {"trading": cast("Any", WrittenTrading) | None})
_decode = json.Decoder(WrittenRuleSet, float_hook=Decimal).decode


def read_json(text: bytes | str, field: str) -> RuleSet:
    """Return the rule set that a JSON object gives. Raises msgspec.DecodeError, and what `as_recorded` refuses."""
    return as_recorded(_decode(text), field)


def as_recorded(written: Struct, field: str) -> RuleSet:
    """Return a rule set with its amounts in 1e-6; field: its path in the command.

    Refuses, first that applies: bad_number, amount_not_text, not_finite, out_of_range.
    """
    return cast("RuleSet", _recorded(written, RuleSet, field))


def _recorded(written: Struct, kind: type[Struct], path: str) -> Struct:
    fields: dict[str, Any] = {}
    for field in structs.fields(kind):
        value, name = getattr(written, field.encode_name), f"{path}.{field.encode_name}".lstrip(".")
        if field.name.endswith(MICROS):
            value = _read_amount(value, name, limits(kind, field.name))
        elif type(value) is WrittenTrading:
            value = _recorded(value, Trading, name)
        fields[field.name] = value
    return kind(**fields)


def _read_amount(value: Any, field: str, meta: Meta | None) -> int:
    unit, low, high = ("", 0, 0) if meta is None else ((meta.extra or {})["unit"], int(meta.ge or 0), int(meta.le or 0))
    if isinstance(value, int | Decimal) and type(value) is not bool:
        detail = f"an amount is a text in {unit}, because earlier versions read a number as 1e-6 of it"
        remedy = ""
        if type(value) is int and abs(value) <= _READABLE:
            remedy = f'write "{value}" for {value}, or "{_text(value)}" for what {value} was before'
        raise Refused("amount_not_text", field, str(value), detail, remedy=remedy)
    return values.read_fixed(value, values.MONEY, field, low, high)


def written_fields(rules: Struct) -> dict[str, Any]:
    """Return the fields of a rule set, or of trading rules, as they are written.

    >>> written_fields(Trading(least_bet_micros=12_500_000))["least_bet"]
    '12.5'
    """
    amounts = {field.encode_name for field in structs.fields(type(rules)) if field.name.endswith(MICROS)}
    plain: dict[str, Any] = {}
    for name, value in encoded_fields(rules).items():
        plain[name] = written_fields(value) if isinstance(value, Struct) else value
        if name in amounts:
            plain[name] = _text(value)
    return plain


def own_fields(rules: RuleSet) -> dict[str, Any]:
    """Return the fields of a rule set, as they are written, that differ from their defaults, without its name.

    >>> own_fields(RuleSet(name="mine", kernel="ln", least_prize_micros=50_000_000))
    {'kernel': 'ln', 'least_prize': '50'}
    """
    own = _differing(rules, RuleSet(name=rules.name))
    return own | ({} if rules.trading is None else {"trading": _differing(rules.trading, Trading())})


def _differing(rules: Struct, default: Struct) -> dict[str, Any]:
    usual = written_fields(default)
    return {field: value for field, value in written_fields(rules).items() if value != usual[field]}
