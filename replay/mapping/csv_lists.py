"""Lists in one cell: items between separators, with or without quotes and brackets, or JSON."""

import json
import re
from collections.abc import Iterator
from typing import Any

from forecast_ledger.ledger.core.errors import Refused

_CLOSING = {"[": "]", "(": ")", "{": "}"}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"} | {mark: mark for mark in "\"'\\/"}
_REMEDY = "correct the cell, or the field's `split`, `json` or `names` in the map"


def split_list(text: str, separator: str, field: str) -> list[str]:
    r"""Return the items of a list: without the brackets around it, the spaces around each, and its quotes.

    A separator between quotes is part of the item; so a list as Python or JSON writes it is read whole.
    Refuses: bad_csv (a bracket or a quote is not closed, a list is in the list, or something follows a quote).

    >>> split_list("['red, dark', \"Bo's\", blue]", ",", "outcomes")
    ['red, dark', "Bo's", 'blue']
    """
    try:
        return [*_items(_inner(text), separator)]
    except ValueError as error:
        raise Refused("bad_csv", field, text, str(error), remedy=_REMEDY) from None


def read_json(text: str, field: str) -> Any:
    """Return a JSON value, its numbers as text. Refuses: bad_csv (invalid, or a key that is there twice).

    >>> read_json('{"red": 0.10, "blue": 0.9}', "probabilities")
    {'red': '0.10', 'blue': '0.9'}
    """
    try:
        found = json.loads(
            text, parse_float=str, parse_int=str, parse_constant=_no_number, object_pairs_hook=_without_repeats
        )
        json.dumps(found, ensure_ascii=False).encode()  # raises for an escape that is half a character
        return found
    except (ValueError, RecursionError) as error:
        raise Refused("bad_csv", field, text, f"not JSON: {error}", remedy=_REMEDY) from None


def with_names(items: Any, names: Any, field: str, text: str) -> dict[str, Any]:
    """Return the items of a cell by name. Refuses: bad_csv (other numbers of them, or a name is there twice)."""
    fault = "a name is there twice"
    if not isinstance(items, list) or not isinstance(names, list):
        fault = "`names` needs a list of items, and one of names"
    elif len(items) != len(names):
        fault = f"the cell has {len(items)} items, and there are {len(names)} names"
    elif len({*map(str, names)}) == len(names):
        return dict(zip(map(str, names), items, strict=True))
    raise Refused("bad_csv", field, text, fault, remedy=_REMEDY)


def _items(inner: str, separator: str) -> Iterator[str]:
    start = 0
    while start <= len(inner) and inner:
        item, end = _next_item(inner, start, separator)
        yield item
        start = end + len(separator)


def _inner(text: str) -> str:
    """Return the text between the brackets around a list, if there are any. Raises ValueError."""
    if not text or text[0] not in _CLOSING:
        return text
    closes = text[-1] == _CLOSING[text[0]]
    if closes and _is_around(text):
        return text[1:-1].strip()
    if text[0] != "[":
        return text
    if not closes:
        raise ValueError("the list begins with [ and does not end with ]")
    if "'" not in text and '"' not in text:
        raise ValueError("the cell has several lists")
    return text[1:-1].strip()  # a quoted item has a bracket


def _is_around(text: str) -> bool:
    """Return whether the bracket that a text begins with is closed by its last character."""
    depth, opening, closing = 0, text[0], _CLOSING[text[0]]
    for place, mark in enumerate(text, 1):
        depth += (mark == opening) - (mark == closing)
        if not depth:
            return place == len(text)
    return False


def _next_item(inner: str, start: int, separator: str) -> tuple[str, int]:
    """Return the item that begins at an index, and the index of the separator after it. Raises ValueError."""
    while inner[start : start + 1].isspace() and not inner.startswith(separator, start):
        start += 1
    quote = inner[start : start + 1]
    if quote not in {"'", '"'}:
        end = inner.find(separator, start)
        end = len(inner) if end < 0 else end
        return inner[start:end].strip(), end
    close = _end_of_quote(inner, start)
    if close is None:
        raise ValueError("a quote in the list is not closed")
    end = close + 1
    while inner[end : end + 1].isspace() and not inner.startswith(separator, end):
        end += 1
    if end < len(inner) and not inner.startswith(separator, end):
        raise ValueError(f"after a quote in the list stands no {separator!r}")
    return _unescaped(inner[start + 1 : close]), end


def _end_of_quote(text: str, start: int) -> int | None:
    """Return the index of the quote that closes the one at `start`."""
    place = start + 1
    while place < len(text) and text[place] != text[start]:
        place += 2 if text[place] == "\\" else 1
    return place if place < len(text) else None


def _unescaped(text: str) -> str:
    """Return the text that Python or JSON writes with these backslashes. Raises ValueError."""

    def replaced(escape: re.Match[str]) -> str:
        """Return the character that an escape stands for. Raises ValueError: there is no such escape."""
        code = escape[1]
        if code in _ESCAPED:
            return _ESCAPED[code]
        if len(code) == 1 or int(code[1:], 16) > 0x10FFFF:
            raise ValueError(f"\\{code[:1]} is no escape in a quoted item")
        return chr(int(code[1:], 16))

    if "\\" not in text:
        return text
    try:  # JSON writes some characters as two escapes
        return _ESCAPE.sub(replaced, text).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("an escape in a quoted item is half a character") from None


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key is there twice")
    return made
