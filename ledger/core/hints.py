"""Hints for a wrong word in a command: the words that are allowed there, and the nearest one."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple, get_args

from msgspec import inspect

_INDEX = re.compile(r"\[.*?\]")


class Vocabulary(NamedTuple):
    """By the path of a field, `rules.kernel`: the values that it may have, where they can be listed, and the fields of
    what stands in it.

    A command's kinds are the values of `type`; its own fields are under its kind, those of all commands under "".
    """

    values: dict[str, tuple[str, ...]]
    fields: dict[str, tuple[str, ...]]


def nearest(said: str, there: Iterable[str]) -> str:
    """The one that is most like what was said, whatever the case of its letters; empty if none is.

    >>> nearest("LNN", ["none", "ln", "log2"]), nearest("kernl", ["name", "kernel"]), nearest("xyz", ["ln"])
    ('ln', 'kernel', '')
    """
    lower = {each.lower(): each for each in there}
    found = get_close_matches(said.lower(), lower, 1)
    return lower[found[0]] if found else ""


def hint(commands: Any, message: str, field: str, kind: str) -> str:
    """A hint to add to msgspec's message about a field of one of these commands; empty if there is none.

    field: its path, with an index where it stands in a row. kind: of the command, "" where that is not known.
    """
    known, path = vocabulary(commands), _INDEX.sub("", field)
    if message.startswith("Object contains unknown field"):
        there = known.fields.get(path or kind, known.fields[""])
        return _told(nearest(message.split("`")[1], there), there)
    if path not in known.values or not message.startswith(("Invalid", "Expected")):
        return ""
    there, quoted = known.values[path], message.split("'")
    return _told(nearest(quoted[1], there) if len(quoted) > 1 else "", there)


def _told(near: str, there: Iterable[str]) -> str:
    """The nearest, then all."""
    return f"; the nearest is {near}" * bool(near) + f"; there are {', '.join(there)}"


@cache
def vocabulary(commands: Any) -> Vocabulary:
    """That of a union of commands."""
    known, every = Vocabulary({}, {}), inspect.multi_type_info(get_args(commands))
    tops = [each for each in every if isinstance(each, inspect.StructType)]
    for each in tops:
        _learn(known, "", each)
        known.fields[str(each.tag)] = known.fields[""]
    known.values["type"] = tuple(str(each.tag) for each in tops)
    known.fields[""] = tuple(dict.fromkeys(field.name for each in tops for field in each.fields))
    return known


def _learn(known: Vocabulary, path: str, kind: inspect.Type) -> None:
    """The type of the field at a path, and of everything in it."""
    match kind:
        case inspect.LiteralType():
            known.values[path] = tuple(map(str, kind.values))
        case inspect.UnionType():
            for each in kind.types:
                _learn(known, path, each)
        case inspect.VarTupleType():
            _learn(known, path, kind.item_type)
        case inspect.StructType():
            known.fields[path] = tuple(field.name for field in kind.fields)
            for field in kind.fields:
                _learn(known, f"{path}.{field.name}".lstrip("."), field.type)
