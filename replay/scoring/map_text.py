"""Maps as TOML: the text that `append --map` reads."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from forecast_ledger.ledger.core.errors import Refused

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def cell(column: str) -> str:
    """Return what stands for the cell of a column in a map. Refuses: bad_csv (its name has a brace).

    >>> cell("Question ID")
    '{Question ID}'
    """
    if not column or "{" in column or "}" in column:
        fault = "a column that is read has a brace in its name, or no name"
        raise Refused("bad_csv", "column", column, fault, remedy="give the column another name")
    return f"{{{column}}}"


def constant(text: str) -> str:
    """Return a text as a constant of a map, in which braces stand for themselves.

    >>> constant("a{b}")
    'a{{b}}'
    """
    return text.replace("{", "{{").replace("}", "}}")


def field_of(column: str, keys: Mapping[str, Any]) -> Any:
    """Return a field that is read from a column: a template, or a description with these keys.

    >>> field_of("p", {}), field_of("p", {"percent": True})
    ('{p}', {'from': '{p}', 'percent': True})
    """
    return {"from": cell(column), **keys} if keys else cell(column)


def template(columns: Iterable[str]) -> str:
    """Return the template of a name that columns say together.

    >>> template(["city", "day"])
    '{city} {day}'
    """
    return " ".join(map(cell, columns))


def map_text(title: str, keys: Mapping[str, Any], commands: Sequence[Mapping[str, Any]]) -> str:
    """Return a map as TOML: a comment, the keys at the top, and each command with its fields.

    >>> print(map_text("A map.", {"sort": "at"}, [{"type": "close_question", "fields": {"question": "{q}"}}]), end="")
    # A map.
    sort = "at"
    <BLANKLINE>
    [[command]]
    type = "close_question"
    [command.fields]
    question = "{q}"
    """
    return "\n".join(_lines(title, keys, commands)) + "\n"


def _lines(title: str, keys: Mapping[str, Any], commands: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from (f"# {line}" for line in title.splitlines())
    yield from (f"{_key(key)} = {_value(value)}" for key, value in keys.items())
    for command in commands:
        yield from ("", "[[command]]")
        yield from (f"{_key(key)} = {_value(value)}" for key, value in command.items() if key != "fields")
        yield "[command.fields]"
        yield from (f"{_key(key)} = {_value(value)}" for key, value in command["fields"].items())


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    """Return a value of TOML on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | Decimal):
        return f"{value:f}" if isinstance(value, Decimal) else str(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(part)}" for key, part in value.items()) + " }"
    return f"[{', '.join(map(_value, value))}]"
