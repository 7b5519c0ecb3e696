"""JSON in files, as web services answer it: one value, a list of them, or one value on each line (.jsonl, .ndjson).

A list is read item by item, and a file of lines line by line, so that memory is that of the file or the line.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.integer_digits import read_integer
from forecast_ledger.ledger.core.values import Number, read_fixed, read_instant
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.replay.importing.source_files import SourceFiles, is_readme
from forecast_ledger.replay.importing.source_items import NotCarried, SourceItem, instant_of

FILE_BYTES = 2**28  # of a file that is one JSON text
LINE_BYTES = 2**26
MOST_NESTED = 8
ENDINGS = (".json", ".jsonl", ".ndjson")
Record = dict[str, Any]
_LINES = (".jsonl", ".ndjson")
_MARK = b"\xef\xbb\xbf"  # of UTF-8, at the beginning of a file
_SECONDS, _MILLISECONDS = 10**6, 10**3  # µs


def check_json_is_there(files: SourceFiles, service: str) -> None:
    """Refuse (bad_source) a source without a JSON file. service: whose answers it should have."""
    if not any(name.lower().endswith(ENDINGS) for name in files.names):
        remedy = f"give a file, a folder or a zip of saved answers of {service}'s API, as .json or .jsonl"
        raise Refused("bad_source", "path", str(files.path), "no JSON file is there", remedy=remedy)


def json_items(
    files: SourceFiles, read: Callable[[SourceFiles, str], Iterator[SourceItem]], other: str
) -> Iterator[SourceItem]:
    """Return what `read` returns of each JSON file, and the files that are none, and links.

    A file is partial if something of it is refused, or left out as `other` JSON.
    """
    yield from ((InputLocation(0, file=name), NotCarried("a link, which is not followed")) for name in files.links)
    for name in files.names:
        if name.lower().endswith(ENDINGS):
            for location, item in read(files, name):
                if isinstance(item, Refused) or item == NotCarried(other):
                    files.partial.add(name)
                yield location, item
        elif not is_readme(name):
            yield InputLocation(0, file=name), NotCarried("a file that is not JSON")


def json_values(files: SourceFiles, name: str) -> Iterator[tuple[InputLocation, Any]]:
    """Return each value of a file with its location: each item of a list, else the whole; or why it cannot be read."""
    if name.lower().endswith(_LINES):
        yield from _line_values(files, name)
        return
    whole = InputLocation(0, file=name)
    try:
        content = files.read(name, FILE_BYTES).removeprefix(_MARK)
        is_list = content.lstrip()[:1] == b"["
        items = msgspec.json.decode(content, type=list[msgspec.Raw]) if is_list else [content]
    except Refused as refused:
        yield whole, refused
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        yield whole, Refused("bad_source", name, None, f"not JSON: {error}")
    else:
        for number, item in enumerate(items, 1):
            yield InputLocation(number, file=name, unit="item") if is_list else whole, _value(bytes(item), name)


def records(files: SourceFiles, name: str, pages: Sequence[str]) -> Iterator[tuple[InputLocation, Any]]:
    """Return each value of a file that is no list; an object that has a list under one of `pages` is that list."""
    for location, value in json_values(files, name):
        yield from _unwrapped(location, value, pages)


def _unwrapped(location: InputLocation, value: Any, pages: Sequence[str]) -> Iterator[tuple[InputLocation, Any]]:
    noun, values = "item", value
    if isinstance(value, dict):
        noun = next((page for page in pages if isinstance(value.get(page), list)), "")
        values = value[noun] if noun else None
    if not isinstance(values, list) or is_nested_too_deep(location):
        yield location, value
        return
    for number, each in enumerate(values, 1):
        yield from _unwrapped(inside(location, noun)._replace(line=number), each, pages)


def is_nested_too_deep(location: InputLocation) -> bool:
    """Return whether a value is inside more lists and objects than any service puts around its records."""
    return location.unit.count(",") > MOST_NESTED


def inside(location: InputLocation, noun: str) -> InputLocation:
    """Return how a message names what is inside a value: `item 2, market`, and then its number."""
    return location._replace(unit=f"{location.unit} {location.line}, {noun}" if location.line else noun)


def _line_values(files: SourceFiles, name: str) -> Iterator[tuple[InputLocation, Any]]:
    number = 0
    try:
        with files.open(name) as file:
            while line := file.readline(LINE_BYTES + 1):
                number += 1
                location = InputLocation(number, file=name)
                if len(line) > LINE_BYTES:
                    yield location, Refused("bad_source", name, None, f"the line has more than {LINE_BYTES:,} bytes")
                    return
                if line.strip():
                    yield location, _value(line.removeprefix(_MARK) if number == 1 else line, name)
    except Refused as refused:
        yield InputLocation(number + 1, file=name), refused


def _value(content: bytes, name: str) -> Any:
    try:
        return read_json_text(content, name)
    except Refused as refused:
        return refused


def read_json_text(content: bytes | str, field: str) -> Any:
    """Return the value of a JSON text, with fractions as decimals, and None for NaN and infinities.

    Refuses: bad_source (not JSON, too deep, a name twice in one object, a number beyond all limits).

    >>> read_json_text('{"a": [1, 0.5, NaN]}', "a.json")
    {'a': [1, Decimal('0.5'), None]}
    """
    try:
        return json.loads(
            content,
            parse_float=Decimal,
            parse_int=read_integer,
            parse_constant=lambda _: None,
            object_pairs_hook=_object,
        )
    except ArithmeticError:
        raise Refused("bad_source", field, None, "not JSON that can be read: a number is too large") from None
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, or too deep
        raise Refused("bad_source", field, None, f"not JSON that can be read: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the name {twice!r} twice")
    return record


# --- fields of an object; a field that is missing, or null, is empty


def text_in(record: Record, field: str) -> str:
    """Return a text; a whole number counts as its digits. Refuses: bad_source (another value).

    >>> text_in({"id": 12}, "id"), text_in({}, "id")
    ('12', '')
    """
    value = record.get(field)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise Refused("bad_source", field, None, "not a text")
    return str(value)


def flag_in(record: Record, field: str) -> bool | None:
    """Return whether something holds; None if the field is empty. Refuses: bad_source (neither true nor false).

    >>> flag_in({"closed": "true"}, "closed"), flag_in({}, "closed")
    (True, None)
    """
    value = record.get(field)
    flag = (
        {True: True, False: False, "true": True, "false": False}.get(value) if isinstance(value, bool | str) else None
    )
    if value not in (None, "") and flag is None:
        raise Refused("bad_source", field, None, "neither true nor false")
    return flag


def list_in(record: Record, field: str) -> list[Any]:
    """Return a list, which may be a JSON text of one. Refuses: bad_source (neither).

    >>> list_in({"outcomes": '["Yes", "No"]'}, "outcomes"), list_in({}, "outcomes")
    (['Yes', 'No'], [])
    """
    value = record.get(field)
    if isinstance(value, str) and value:
        value = read_json_text(value, field)
    if value in (None, ""):
        return []
    if not isinstance(value, list):
        raise Refused("bad_source", field, None, "neither a list nor the JSON text of one")
    return value


def number_in(record: Record, field: str, unit: int, least: int, most: int) -> int | None:
    """Return a number, or the text of one, in units of 1 / `unit`; None if empty. Refuses: bad_number, out_of_range.

    >>> number_in({"p": "0.25"}, "p", 10**9, 0, 10**9)
    250000000
    """
    value = record.get(field)
    if value in (None, ""):
        return None
    return read_number(value, field, unit, least, most)


def read_number(value: Any, field: str, unit: int, least: int, most: int) -> int:
    """Return a number, or the text of one, in units of 1 / `unit`. Refuses: bad_number, out_of_range."""
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise Refused("bad_number", field, None, "not a number")
    number: Number = value
    return read_fixed(number, unit, field, least, most)


def instant_in(record: Record, field: str) -> int | None:
    """Return an instant, µs, of a text with a date, or a date and a time; without a zone it is in UTC. None if empty.

    Refuses: bad_source (not a text), bad_instant.

    >>> instant_in({"at": "1970-01-01 00:00:01+00"}, "at"), instant_in({"at": "1970-01-01T00:00:01"}, "at")
    (1000000, 1000000)
    """
    text = text_in(record, field)
    if not text:
        return None
    try:
        return read_instant(instant_of(text, field))
    except Refused as refused:
        if refused.code != "naive_instant":
            raise
    return read_instant(instant_of(f"{text}+00:00", field))


def epoch_in(record: Record, field: str, *, milliseconds: bool = False) -> int | None:
    """Return an instant, µs, of a number of seconds, or milliseconds, since 1970; None if empty.

    Refuses: bad_number, out_of_range (not from 1970 to 9999).

    >>> epoch_in({"t": 1}, "t"), epoch_in({"t": "1500"}, "t", milliseconds=True)
    (1000000, 1500000)
    """
    unit = _MILLISECONDS if milliseconds else _SECONDS
    return number_in(record, field, unit, 0, LAST_EPOCH)


LAST_EPOCH = 253_402_300_799 * 10**6  # the last second of the year 9999
