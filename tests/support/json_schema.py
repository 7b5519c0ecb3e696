"""JSON values and JSON Schema: a small check of values, and values that a schema accepts.

As much of the 2020-12 vocabulary as our schemas use, and no more.
"""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

Schema = dict[str, Any]


def _number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _number(value) and value == int(value),
    "number": _number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
SILENT = {"$schema", "$defs", "title", "description", "default", "discriminator"}  # what refuses nothing


def faults(value: Any, schema: Schema, whole: Schema) -> Iterator[str]:
    """The faults of a value against a schema that is part of a whole one. Raises KeyError for an unknown word."""
    for word, said in schema.items():
        if word == "$ref":
            yield from faults(value, _looked_up(said, whole), whole)
        elif word == "anyOf":
            if all(any(True for _ in faults(value, each, whole)) for each in said):
                yield "none of several"
        elif word in {"properties", "additionalProperties", "propertyNames", "required"}:
            if isinstance(value, dict):
                yield from _of_object[word](value, said, schema, whole)
        elif word == "items":
            if isinstance(value, list):
                for each in value:
                    yield from faults(each, said, whole)
        elif word not in SILENT and not _plain[word](value, said):
            yield f"{word}: {str(value)[:80]!r}"


def _looked_up(where: str, whole: Schema) -> Schema:
    part: Any = whole
    for step in where.removeprefix("#/").split("/"):
        part = part[step]
    assert isinstance(part, dict)
    return part


def _properties(value: Schema, said: Schema, _: Schema, whole: Schema) -> Iterator[str]:
    for name in value.keys() & said.keys():
        yield from faults(value[name], said[name], whole)


def _others(value: Schema, said: Any, schema: Schema, whole: Schema) -> Iterator[str]:
    for name in value.keys() - schema.get("properties", {}).keys():
        if said is False:
            yield f"unknown field {name}"
        else:
            yield from faults(value[name], said, whole)


def _names(value: Schema, said: Schema, _: Schema, whole: Schema) -> Iterator[str]:
    for name in value:
        yield from faults(name, said, whole)


def _required(value: Schema, said: list[str], _: Schema, __: Schema) -> Iterator[str]:
    yield from (f"no {name}" for name in said if name not in value)


_of_object: dict[str, Callable[[Schema, Any, Schema, Schema], Iterator[str]]] = {
    "properties": _properties,
    "additionalProperties": _others,
    "propertyNames": _names,
    "required": _required,
}
_plain: dict[str, Callable[[Any, Any], bool]] = {
    "type": lambda value, said: any(TYPES[each](value) for each in ([said] if isinstance(said, str) else said)),
    "enum": lambda value, said: any(type(value) is type(each) and value == each for each in said),
    "pattern": lambda value, said: not isinstance(value, str) or re.search(said, value) is not None,
    "minLength": lambda value, said: not isinstance(value, str) or len(value) >= said,
    "maxLength": lambda value, said: not isinstance(value, str) or len(value) <= said,
    "maxItems": lambda value, said: not isinstance(value, list) or len(value) <= said,
    "minItems": lambda value, said: not isinstance(value, list) or len(value) >= said,
    "minimum": lambda value, said: not _number(value) or value >= said,
    "maximum": lambda value, said: not _number(value) or value <= said,
    "exclusiveMinimum": lambda value, said: not _number(value) or value > said,
    "exclusiveMaximum": lambda value, said: not _number(value) or value < said,
}


_referred: dict[tuple[int, str], st.SearchStrategy[Any]] = {}  # by whole schema, which each keeps, and reference


def values(schema: Schema, whole: Schema) -> st.SearchStrategy[Any]:
    """Values that a schema accepts; lists, objects and texts are short. Those of a reference are made once."""
    if "$ref" in schema:
        key = id(whole), schema["$ref"]
        return _referred.setdefault(key, st.deferred(lambda: values(_looked_up(schema["$ref"], whole), whole)))
    if "anyOf" in schema:
        return st.one_of(*(values(each, whole) for each in schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    return st.one_of(*(_makes[kind](schema, whole) for kind in kinds)).filter(
        lambda v: not any(faults(v, schema, whole))
    )


def _numbers(schema: Schema, _: Schema) -> st.SearchStrategy[Any]:
    bounds = {
        word[-7:].lower(): bound for word, bound in schema.items() if word.lower().endswith(("minimum", "maximum"))
    }
    low, high = bounds.get("minimum", -(10**32)), bounds.get("maximum", 10**32)
    return st.one_of(st.decimals(low, high, allow_nan=False), st.integers(int(low), int(high)))


def _strings(schema: Schema, _: Schema) -> st.SearchStrategy[Any]:
    if "pattern" in schema:
        return st.from_regex(schema["pattern"].replace("{1,400}", "{1,9}"), fullmatch=True)
    return st.text(st.characters(codec="utf-8"), min_size=schema.get("minLength", 0), max_size=20)


def _objects(schema: Schema, whole: Schema) -> st.SearchStrategy[Any]:
    fields = {name: values(each, whole) for name, each in schema.get("properties", {}).items()}
    if not fields:
        names = values(schema["propertyNames"], whole)
        return st.dictionaries(names, values(schema["additionalProperties"], whole), max_size=3)
    required = {name: fields.pop(name) for name in schema["required"]}
    return st.fixed_dictionaries(required, optional=fields)


_makes: dict[str, Callable[[Schema, Schema], st.SearchStrategy[Any]]] = {
    "null": lambda _, __: st.none(),
    "boolean": lambda _, __: st.booleans(),
    "integer": lambda schema, _: st.integers(schema.get("minimum"), schema.get("maximum")),
    "number": _numbers,
    "string": _strings,
    "array": lambda schema, whole: st.lists(values(schema["items"], whole), max_size=3),
    "object": _objects,
}
