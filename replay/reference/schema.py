"""JSON Schema (2020-12) and OpenAPI 3.1 components of commands, events, rule sets, errors and the rows of tables."""

from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from inspect import cleandoc
from typing import Any, get_args

import msgspec
from msgspec import Struct, inspect, structs

from forecast_ledger.ledger.core.errors import (
    KEYS,
    REFUSALS,
    Conflict,
    Corrupt,
    LedgerError,
    NewerVersion,
    Refused,
    Unavailable,
    Uncertain,
)
from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.forms import FORMS
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.provenance import Evidence, Provenance
from forecast_ledger.ledger.model.rules import RuleSet, WrittenRuleSet, WrittenTrading
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.reference.fields import meaning, name
from forecast_ledger.replay.reference.rule_fields import RULES

# What commands have within them, apart from attestations.
PARTS = (
    commands.Range,
    commands.Points,
    commands.Spot,
    commands.RestatedForecast,
    commands.Prices,
    commands.Bet,
    commands.Sale,
    commands.ModelCall,
    commands.Evidence,
)
# The numbers of maps and of the command line: where they are written, their name, their unit.
OTHERS: tuple[tuple[str, str, str], ...] = (
    ("maps", "a constant, or a cell", "that of the field of the command"),
    ("maps", "`above`", "that of its column"),
    ("maps", "`levels`", "that of the column `level`"),
    ("options", "`--limit`", "rows"),
    ("options", "`--rows`", "rows of the log"),
    ("options", "`--after`", "a log position"),
    ("options", "`--as-of`", "a log position, unless it is an instant"),
    ("options", "`--memory`", "bytes, in the unit written behind it: MB, GB, MiB or GiB"),
    ("options", "`--size`", "scores, or units of money"),
    ("options", "`--confidence`", "percent"),
    ("options", "`position`", "a log position"),
)


def written_numbers() -> Iterator[tuple[str, str, str]]:
    """Yield each number of commands and rule sets: where it is written, its field, its unit; empty if it has none.

    >>> [unit for where, field, unit in written_numbers() if field == "`pool`"]
    ["the contest's currency"]
    """
    for kind in (*get_args(commands.AnyCommand), *PARTS):
        yield from _numbers_of(kind, str(kind.__struct_config__.tag or name(kind)))
    yield from _numbers_of(WrittenRuleSet, "rules")
    yield from _numbers_of(WrittenTrading, "rules.trading")


def _numbers_of(kind: type[Struct], where: str) -> Iterator[tuple[str, str, str]]:
    for field in structs.fields(kind):
        units = list(dict.fromkeys(_units(inspect.type_info(field.type))))
        if units:
            yield f"`{where}`", f"`{field.encode_name}`", "; ".join(units)


def _units(kind: inspect.Type, *, numeric: bool = False) -> Iterator[str]:
    """Yield the unit of each number in a value of a type, also in a list or an object; "" if it says none."""
    match kind:
        case inspect.Metadata(extra={"unit": str(unit)}):
            yield unit
        case inspect.Metadata(type=inner, extra_json_schema=schema):
            yield from _units(inner, numeric="number" in _types(schema))
        case inspect.UnionType(types=types):
            for single in types:
                yield from _units(single)
        case inspect.VarTupleType(item_type=inner) | inspect.DictType(value_type=inner):
            yield from _units(inner)
        case inspect.IntType() | inspect.FloatType() | inspect.DecimalType():
            yield ""
        case inspect.AnyType() if numeric:
            yield ""


def _types(schema: dict[str, Any] | None) -> list[str]:
    types = (schema or {}).get("type", [])
    return [types] if isinstance(types, str) else types


Schema = dict[str, Any]
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_EVENT_PARTS = (
    events.NumericRange,
    events.StatedPoints,
    events.StatedShares,
    events.Attestation,
    events.Spot,
    events.Quote,
    events.RefusedQuote,
    events.Bet,
    events.Sale,
    events.ModelCall,
    Evidence,
    Provenance,
    Recorded,
)
_RULES = (RuleSet, Trading)
_WRITTEN_RULES = (WrittenRuleSet, WrittenTrading)
_TEXT: Schema = {"type": "string"}
_POSITION: Schema = {"type": "integer", "minimum": 1}
_encoder = msgspec.json.Encoder(order="sorted", decimal_format="number")


def _commands(where: str) -> tuple[Schema, dict[str, Schema]]:
    return _made(
        commands.AnyCommand, (*get_args(commands.AnyCommand), *PARTS, events.Attestation, *_WRITTEN_RULES), where
    )


def _events(where: str) -> tuple[Schema, dict[str, Schema]]:
    kinds = (*get_args(events.AnyEvent), *_EVENT_PARTS, *_RULES)
    _, rows = _made(Recorded, kinds, where)
    whole, parts = _made(events.AnyEvent, kinds, where)
    return whole, rows | parts


def _rules(where: str) -> tuple[Schema, dict[str, Schema]]:
    return _made(WrittenRuleSet, _WRITTEN_RULES, where)


def _errors(where: str) -> tuple[Schema, dict[str, Schema]]:
    """Return the schemas of errors, with the keys of each; a refused line of a file also has its place."""
    detail = {"detail": _TEXT}
    refusal_fields: dict[str, Schema] = {
        "line": _POSITION | {"description": "the line of the file; only on the command line"},
        "command": _TEXT | {"description": "the command's type; only for a CSV file"},
        "columns": {
            "type": "array",
            "items": _TEXT,
            "description": "the columns that the field is made from; only for a CSV file",
        },
        "code": {"enum": list(REFUSALS)},
        "field": _TEXT,
        "pointer": _TEXT,
        "value": _TEXT,
        "detail": _TEXT,
    }
    made = {
        "Refused": _error(Refused, refusal_fields, ["code"]),
        "Conflict": _error(Conflict, detail, ["detail"]),
        "Unavailable": _error(Unavailable, detail, ["detail"]),
        "Uncertain": _error(Uncertain, detail, ["detail"]),
        "Corrupt": _error(Corrupt, {"position": {"type": "integer"}} | detail, ["position", "detail"]),
        "NewerVersion": _error(NewerVersion, {"position": {"type": "integer"}} | detail, ["position", "detail"]),
    }
    refs = {schema["properties"]["error"]["enum"][0]: where.format(name=name) for name, schema in made.items()}
    whole = {
        "anyOf": [{"$ref": ref} for ref in refs.values()],
        "discriminator": {"propertyName": "error", "mapping": refs},
    }
    return whole, made


def _error(kind: type[LedgerError], fields: dict[str, Schema], required: list[str]) -> Schema:
    fields = {"error": {"enum": [kind.kind]}} | fields | {"meaning": _TEXT, "remedy": _TEXT}
    return {
        "title": kind.__name__,
        "description": prose(kind)[0],
        "type": "object",
        "properties": {name: {"description": KEYS.get(name, "")} | schema for name, schema in fields.items()},
        "required": ["error", *required, "meaning", "remedy"],
    }


def _tables(where: str) -> tuple[Schema, dict[str, Schema]]:
    """Return the schemas of the rows of all tables, as `Table.rows` and the formats json and jsonl have them."""
    rows = {name: _row(name) for name in CATALOGUE}
    lists = {name: {"type": "array", "items": {"$ref": where.format(name=name)}} for name in rows}
    return {"type": "object", "properties": lists, "additionalProperties": False}, rows


def _row(name: str) -> Schema:
    projection = CATALOGUE[name]
    columns = {
        column.name: {
            "type": ["integer" if column.kind == "count" else "string", "null"],
            "description": column.meaning,
        }
        for column in projection.columns
    }
    return {
        "title": name,
        "description": projection.meaning,
        "type": "object",
        "properties": columns,
        "required": [*columns],
        "additionalProperties": False,
    }


# topic -> the name of its schema, and the function that makes the schema and its components.
TOPICS: dict[str, tuple[str, Callable[[str], tuple[Schema, dict[str, Schema]]]]] = {
    "commands": ("Command", _commands),
    "events": ("Event", _events),
    "rules": ("RuleSet", _rules),
    "errors": ("Error", _errors),
    "tables": ("Tables", _tables),
}


def schema(topic: str) -> Schema:
    """Return the JSON Schema of a topic: one of TOPICS.

    >>> schema("commands")["$defs"]["SubmitForecast"]["properties"]["probability"]["anyOf"]
    [{'$ref': '#/$defs/Probability'}, {'type': 'null'}]
    """
    whole, parts = TOPICS[topic][1]("#/$defs/{name}")
    return {"$schema": _DIALECT, "title": f"Forecast Ledger: {topic}", **whole, "$defs": parts}


def openapi(topic: str) -> Schema:
    """Return the schema of a topic as components of an OpenAPI document without paths.

    >>> openapi("rules")["components"]["schemas"]["RuleSet"]["required"]
    ['name']
    """
    name, make = TOPICS[topic]
    whole, parts = make("#/components/schemas/{name}")
    schemas = parts if name in parts else parts | {name: whole}
    info = {"title": f"Forecast Ledger: {topic}", "version": _version()}
    return {"openapi": "3.1.0", "info": info, "paths": {}, "components": {"schemas": schemas}}


def _version() -> str:
    """Return the installed version, or "0" in a checkout that is not installed."""
    try:
        return version("forecast-ledger")
    except PackageNotFoundError:
        return "0"


def text(document: Schema) -> str:
    """Return a document as JSON, with sorted keys and exact numbers."""
    return msgspec.json.format(_encoder.encode(document), indent=2).decode()


def _made(kind: Any, kinds: tuple[type[Struct], ...], where: str) -> tuple[Schema, dict[str, Schema]]:
    """Return msgspec's schema of a type and its components, of these kinds, with forms and descriptions added."""
    by_name = {kind.__name__: kind for kind in kinds}
    [whole], parts = msgspec.json.schema_components([kind], ref_template=where)
    forms: dict[str, Schema] = {}
    described = {name: _described(_hoisted(part, where, forms), by_name[name]) for name, part in parts.items()}
    return whole, described | forms


def _hoisted(part: Any, where: str, forms: dict[str, Schema]) -> Any:
    """Return a schema with a reference in place of each form; the forms are added to `forms`."""
    if isinstance(part, list):
        return [_hoisted(item, where, forms) for item in part]
    if not isinstance(part, dict):
        return part
    title = part.get("title")
    if not isinstance(title, str) or title not in FORMS:
        return {name: _hoisted(value, where, forms) for name, value in part.items()}
    forms[title] = {name: value for name, value in part.items() if name != "default"} | FORMS[title]  # exact numbers
    default = {"default": part["default"]} if part.get("default") or part.get("default", "") != "" else {}
    return {"$ref": where.format(name=title)} | default


def _described(part: Schema, kind: type[Struct]) -> Schema:
    """Return a component with the descriptions of its type and its fields."""
    tag, paragraphs = kind.__struct_config__.tag_field, prose(kind)
    properties = {
        name: field if name == tag else field | {"description": _meaning(kind, name)}
        for name, field in part["properties"].items()
    }
    return part | {
        "description": paragraphs[0] if _is_rules(kind) else "\n\n".join(paragraphs),
        "properties": properties,
    }


def _meaning(kind: type[Struct], field: str) -> str:
    return RULES[field] if _is_rules(kind) else meaning(kind, field)


def _is_rules(kind: type[Struct]) -> bool:
    return kind in {*_RULES, *_WRITTEN_RULES}


def prose(kind: type) -> list[str]:
    """Return the paragraphs of a type's docstring, each on one line, without its examples."""
    paragraphs = cleandoc(kind.__doc__ or "").split("\n\n")
    return [" ".join(paragraph.split()) for paragraph in paragraphs if not paragraph.startswith(">>>")]
