"""Long maps of values: in a CSV beside the map, in place of a table in it."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.files import open_regular
from forecast_ledger.replay.mapping.csv_reader import read_records

HEADER = ["text", "value"]
MOST_BYTES = 2**24  # of such a file
_OUTSIDE = "/\\:\0"  # a name with one of these may lead to another folder


def with_value_maps(fields: Mapping[str, Any], path: str, folder: Path | None) -> dict[str, Any]:
    """Return fields of a map, with the table that is in a CSV in place of the name of the file.

    path: the place of the fields in the map. folder: that of the map, in which such files are; None if it has none.
    Refuses: bad_map (no such file there, more than `MOST_BYTES`, another header, an empty cell, a text twice).
    """
    read = cache(lambda name: _read(name, folder))

    def replaced(part: Any, place: str) -> Any:
        """Return a part of the map with the contents of each value map in the place of its file name."""
        if isinstance(part, list):
            return [replaced(item, f"{place}[{number}]") for number, item in enumerate(part)]
        if not isinstance(part, dict):
            return part
        if "from" in part:
            name = part.get("map")
            return {**part, "map": _at(f"{place}.map", name, read)} if isinstance(name, str) else part
        return {key: replaced(item, f"{place}.{key}") for key, item in part.items()}

    return {name: replaced(part, f"{path}.{name}") for name, part in fields.items()}


def _at(place: str, name: str, read: Callable[[str], dict[str, str]]) -> dict[str, str]:
    """Return the table of a file. Refuses: bad_map, with the place in the map."""
    try:
        return read(name)
    except OSError as error:
        fault = error.strerror or str(error)
    except ValueError as error:
        fault = str(error)
    remedy = "name a CSV with the columns text and value, in the folder of the map"
    raise Refused("bad_map", place, name, fault, remedy=remedy) from None


def _read(name: str, folder: Path | None) -> dict[str, str]:
    """Return the values by text. Raises OSError, ValueError."""
    if folder is None or name in {"", ".", ".."} or any(mark in name for mark in _OUTSIDE):
        raise ValueError("not the name of a file in the folder of the map")
    found, lines = dict[str, str](), dict[str, int]()
    with open_regular(folder / name, MOST_BYTES) as file:
        records = read_records(file)
        if next(records, (1, []))[1] != HEADER:
            raise ValueError("its first line is not text,value")
        for line, cells in records:
            if isinstance(cells, Refused):
                raise ValueError(f"line {line}: {cells.detail or cells.meaning}")
            if len(cells) != len(HEADER) or not all(cells):
                raise ValueError(f"line {line} does not have a text and a value")
            text, value = cells
            if text in lines:
                raise ValueError(f"lines {lines[text]} and {line} both have the text {text!r}")
            found[text], lines[text] = value, line
    if not found:
        raise ValueError("the file has no rows")
    return found
