"""JSON Pointers (RFC 6901): where in the JSON of a command the field is that a refusal names."""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

from msgspec import Struct

_SIMPLE = (str, int, float, Decimal)
_PART = re.compile(r"(?P<item>\[(?P<index>\d+)\])|\.?(?P<name>[^.\[]+)")


def pointer_in(command: Struct, field: str, wanted: Any = None) -> str:
    """Return the pointer to the field of a command; of a part of an item of a list, that of the list.

    wanted: the value that is refused. If the field has it at one place alone, that is where the pointer leads, such as
    to an item of a list. It never goes beyond what is certain: "" is the whole command.

    >>> from forecast_ledger.ledger.model.commands import Prices, Quote
    >>> prices = Prices(question="cup", prices={"a/b": 2})
    >>> feed = Quote(source="feed", quoted_at="2026-03-02T00:00:00Z", quotes=(prices,))
    >>> pointer_in(feed, "prices.a/b"), pointer_in(feed, "quotes[0].prices"), pointer_in(feed, "source")
    ('/quotes', '/quotes/0/prices', '/source')
    >>> pointer_in(feed, "prices.a/b", 2)
    '/quotes/0/prices/a~1b'
    """
    if wanted is not None and (pointers := _pointers_to(command, field, wanted)):
        return pointers[0]
    first = _PART.match(field)
    if first is None or not hasattr(command, first["name"] or ""):
        return ""
    if "." in field and getattr(command, first["name"]) is None:  # of an item, if it is a field of those
        lists = (name for name in command.__struct_fields__ if _has_items(getattr(command, name), first["name"]))
        return next((f"/{name}" for name in lists), f"/{first['name']}")
    value: Any = command
    pointer, at = "", 0
    while part := _PART.match(field, at):
        if isinstance(value, dict):  # the rest is its key, whatever it has
            return pointer + "/" + escaped(field[at:].removeprefix("."))
        if part["index"] is None and isinstance(value, list | tuple):
            break
        if part["index"] is None:
            value = getattr(value, part["name"], None)
        else:
            value = value[int(part["index"])] if isinstance(value, list | tuple) else None
        pointer, at = f"{pointer}/{escaped(part['index'] or part['name'])}", part.end()
    return pointer


def _pointers_to(command: Struct, field: str, wanted: Any) -> list[str]:
    """Return the one pointer to a value, in a field of the command, or of the items of its lists; else none."""
    names = field.split(".")
    pointers = [*islice(_pointers_in(command, names, wanted), 2)]
    if not pointers and getattr(command, names[0], None) is None:
        lists = [name for name in command.__struct_fields__ if _has_items(getattr(command, name), names[0])]
        inner = (
            f"/{name}{pointer}" for name in lists for pointer in _pointers_in(getattr(command, name), names, wanted)
        )
        pointers = [*islice(inner, 2)]
    return pointers if len(pointers) == 1 else []


def _pointers_in(part: Any, names: Sequence[str], wanted: Any) -> Iterator[str]:
    """Yield the pointers from a part of a command, along these names and any items, to a value.

    No field has lists of lists: one that a caller gives may have itself as an item.
    """
    if isinstance(part, list | tuple):
        for index, item in enumerate(part):
            if not isinstance(item, list | tuple):
                yield from (f"/{index}{more}" for more in _pointers_in(item, names, wanted))
    elif not names:
        if isinstance(part, _SIMPLE) and str(part) == str(wanted):  # of a float, the refusal may have the decimal
            yield ""
    else:
        name, inside = (".".join(names), ()) if isinstance(part, dict) else (names[0], names[1:])
        inner = part.get(name) if isinstance(part, dict) else getattr(part, name, None)
        yield from (f"/{escaped(name)}{more}" for more in _pointers_in(inner, inside, wanted))


def pointer_of(path: str) -> str:
    """Return the pointer for a path that a JSON decoder gives, in which each list has the number of its item.

    >>> pointer_of("quotes[0].prices")
    '/quotes/0/prices'
    """
    return "".join(f"/{escaped(part['index'] or part['name'])}" for part in _PART.finditer(path))


def escaped(name: str) -> str:
    """Return a name as a pointer has it."""
    return name.replace("~", "~0").replace("/", "~1")


def _has_items(value: Any, name: str) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(item, Struct) and hasattr(item, name) for item in value)
