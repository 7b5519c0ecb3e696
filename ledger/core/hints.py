"""Hints for a wrong word in a command: the words that are allowed there, and the most similar one."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple, get_args

from msgspec import inspect

_INDEX = re.compile(r"\[.*?\]")
_ONE_WORD = re.compile(r"[^\s,;'\"]+")


class Vocabulary(NamedTuple):
    """The words that commands may use, by the path of a field such as `rules.kernel`.

    values: the values of a field, if they can be listed; those of `type` are the types of command. fields: the fields
    of an object; the fields of a command are under its type, those of all commands under "".
    """

    values: dict[str, tuple[str, ...]]
    fields: dict[str, tuple[str, ...]]


def nearest(word: str, allowed: Iterable[str]) -> str:
    """Return the allowed word that is most similar to a word, ignoring case; empty if none is similar.

    The shortest that begins with it, if it has three characters or more, comes before any other.

    >>> nearest("LNN", ["none", "ln", "log2"]), nearest("kernl", ["name", "kernel"]), nearest("xyz", ["ln"])
    ('ln', 'kernel', '')
    >>> nearest("peer", ["spot-peer", "peer-2024-03", "peer-average-2023"])
    'peer-2024-03'
    """
    by_lower = {candidate.lower(): candidate for candidate in allowed}
    begun = [candidate for candidate in by_lower if candidate.startswith(word.lower()) and len(word) > 2]
    matches = sorted(begun, key=len) or get_close_matches(word.lower(), by_lower, 1)
    return by_lower[matches[0]] if matches else ""


def in_list(names: Iterable[str]) -> str:
    """Return names as a text, in which those are quoted that have a space, a comma or the like.

    >>> in_list(["ada", "Doe, Jane"])
    "ada, 'Doe, Jane'"
    """
    return ", ".join(name if _ONE_WORD.fullmatch(name) else repr(name) for name in names)


def listed(word: str, names: Iterable[str], most: int = 20) -> str:
    """Return the names as a text, the one most similar to a word first, and no more than so many.

    >>> listed("adda", ["b o", "ada"]), listed("x", ["a", "b", "c"], most=2), listed("x", [])
    ("ada, 'b o'", 'a, b and 1 more', 'none')
    """
    near, every = nearest(word, names := sorted(names)), len(names)
    ordered = [near, *(name for name in names if name != near)] if near else names
    more = f" and {every - most:,} more" * (every > most)
    return in_list(ordered[:most]) + more or "none"


def no_such_outcome(outcomes: Iterable[str]) -> str:
    """Say which outcomes a question has; a search for the nearest would take time in a writer's turn."""
    return f"the question has no such outcome; it has: {listed('', outcomes)}"


def hint(commands: Any, message: str, field: str, kind: str) -> str:
    """Return a hint to add to msgspec's message about a field of one of these commands; empty if there is none.

    field: its path, with an index for an item of an array. kind: the type of the command; "" if it is not known.
    """
    words, path = vocabulary(commands), _INDEX.sub("", field)
    if message.startswith("Object contains unknown field"):
        allowed = words.fields.get(path or kind, words.fields[""])
        return _hint_text(nearest(message.split("`")[1], allowed), allowed)
    if path not in words.values or not message.startswith(("Invalid", "Expected")):
        return ""
    allowed, quoted = words.values[path], message.split("'")
    return _hint_text(nearest(quoted[1], allowed) if len(quoted) > 1 else "", allowed)


def _hint_text(near: str, allowed: Iterable[str]) -> str:
    return f"; the nearest is {near}" * bool(near) + f"; choose from {', '.join(allowed)}"


@cache
def vocabulary(commands: Any) -> Vocabulary:
    """Return the vocabulary of a union of commands, or of another struct."""
    words, types = Vocabulary({}, {}), inspect.multi_type_info(get_args(commands) or (commands,))
    structs = [kind for kind in types if isinstance(kind, inspect.StructType)]
    for struct in structs:
        _add_words(words, "", struct)
        words.fields[str(struct.tag)] = words.fields[""]
    words.values["type"] = tuple(str(struct.tag) for struct in structs)
    words.fields[""] = tuple(dict.fromkeys(field.encode_name for struct in structs for field in struct.fields))
    return words


def _add_words(words: Vocabulary, path: str, kind: inspect.Type) -> None:
    """Add the words of the type of the field at a path, and of all types within it."""
    match kind:
        case inspect.LiteralType():
            words.values[path] = tuple(map(str, kind.values))
        case inspect.UnionType():
            for member in kind.types:
                _add_words(words, path, member)
        case inspect.VarTupleType() | inspect.ListType():
            _add_words(words, path, kind.item_type)
        case inspect.StructType():
            words.fields[path] = tuple(field.encode_name for field in kind.fields)
            for field in kind.fields:
                _add_words(words, f"{path}.{field.encode_name}".lstrip("."), field.type)
