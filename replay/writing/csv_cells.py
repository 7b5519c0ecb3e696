"""Values from the cells of a CSV row: templates, value maps, numbers, instants, lists."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import is_instant

CsvRow = Mapping[str, str]
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]+)\}|[{}]")
_NUMBER = re.compile(r"1(\D?)234(\D)5(%?)")
_OFFSET = re.compile(r"Z|[+-][0-2][0-9]:[0-5][0-9]")
_HAS_OFFSET = re.compile(r"([Zz]|[+-][0-2][0-9]:[0-5][0-9])\Z")


class CellFormat(Struct, frozen=True, forbid_unknown_fields=True, rename={"source": "from"}):
    """The description of a value in a map, where a template alone is not enough.

    source: a template. map: text -> the value it stands for. number: how the file writes 1234.5, such as "1.234,5" or
    "1234.5%". instant: a format of strptime. offset: the UTC offset of instants without one. split: the separator of
    the items of a list. names: the keys of the items, in their order.
    """

    source: str
    map: dict[str, Any] | None = None
    number: str = ""
    instant: str = ""
    offset: str = ""
    split: str = ""
    names: list[str] | None = None


class FieldValue(NamedTuple):
    """A field's value: the columns that it uses, and a function that reads it from a row.

    The function returns None if these columns are empty.
    """

    columns: tuple[str, ...]
    read: Callable[[CsvRow], Any]


def field_value(description: Any, field: str, usual: CellFormat) -> FieldValue:
    """Return how to compute a field from a row, by its description in a map. usual: the map's formats of instants.

    Refuses: bad_map.
    """
    if isinstance(description, dict) and "from" in description:
        try:
            cell = msgspec.convert(description, CellFormat)
        except msgspec.ValidationError as error:
            raise Refused("bad_map", field, None, str(error)) from None
        return _cell_value(cell, field, usual)
    if isinstance(description, dict):
        return _object_value({key: field_value(part, f"{field}.{key}", usual) for key, part in description.items()})
    if isinstance(description, list):
        parts = [field_value(part, f"{field}[{number}]", usual) for number, part in enumerate(description)]
        columns = tuple(column for part in parts for column in part.columns)
        return FieldValue(
            columns, lambda row: _unless_empty(columns, row, lambda: [_or_empty(part.read(row)) for part in parts])
        )
    if isinstance(description, str):
        return _cell_value(CellFormat(description), field, usual)
    constant = description.isoformat() if hasattr(description, "isoformat") else description
    return FieldValue((), lambda _: constant)


def parse_template(text: str, field: str) -> FieldValue:
    """Return a text in which `{Column}` stands for a cell, `{{` and `}}` for braces. Refuses: bad_map.

    >>> parse_template("{User} on {Question ID}", "id").read({"User": "ada", "Question ID": "7"})
    'ada on 7'
    """
    pieces: list[tuple[str, str]] = []
    end = 0
    for piece in _PIECE.finditer(text):
        if piece[0] in {"{", "}"}:
            raise Refused("bad_map", field, text, f"{piece[0]} is alone; write {piece[0] * 2} for the character itself")
        pieces.append((text[end : piece.start()] + ("" if piece[1] else piece[0][0]), piece[1] or ""))
        end = piece.end()
    columns = tuple(column for _, column in pieces if column)
    shape = "".join(before.replace("%", "%%") + "%s" * bool(column) for before, column in [*pieces, (text[end:], "")])
    return FieldValue(columns, lambda row: shape % tuple([row[column] for column in columns]))


def _cell_value(cell: CellFormat, field: str, usual: CellFormat) -> FieldValue:
    text = parse_template(cell.source, field)
    read_text = _reader(cell, field, usual)
    columns = text.columns

    def read(row: CsvRow) -> Any:
        for column in columns:
            if row[column]:
                return read_text(text.read(row))
        return None

    if columns:
        return FieldValue(columns, read)
    constant = text.read({})
    return FieldValue((), lambda _: read_text(constant) if constant else None)


def _unless_empty(columns: tuple[str, ...], row: CsvRow, make: Callable[[], Any]) -> Any:
    """Return the value made from a row, or None if it uses columns and all of them are empty."""
    return make() if not columns or any(row[column] for column in columns) else None


def _or_empty(value: Any) -> Any:
    """Return "" for None: a list keeps its empty items, so that the others keep their places."""
    return "" if value is None else value


def _object_value(parts: dict[str, FieldValue]) -> FieldValue:
    columns = tuple(column for part in parts.values() for column in part.columns)

    def read(row: CsvRow) -> dict[str, Any]:
        values = {key: part.read(row) for key, part in parts.items()}
        return {key: value for key, value in values.items() if value is not None}

    return FieldValue(columns, lambda row: _unless_empty(columns, row, lambda: read(row)))


def _reader(cell: CellFormat, field: str, usual: CellFormat) -> Callable[[str], Any]:
    """Return the function that reads the text of a cell that is not empty."""
    _check_format(cell, field)
    if cell.map is not None:
        return lambda text: _translate(text, field, cell.map or {})
    number = _number_reader(cell.number, field) if cell.number else str
    if cell.split:
        return lambda text: _split(text, field, cell, number)
    if cell.instant or cell.offset or is_instant(field):
        offset = cell.offset or usual.offset
        if offset and not _OFFSET.fullmatch(offset):
            raise Refused("bad_map", "offset", offset, "write an offset as Z, +01:00 or -05:30")
        return lambda text: _instant_text(text, field, cell.instant or usual.instant, offset)
    return number


def _check_format(cell: CellFormat, field: str) -> None:
    ways = [bool(cell.map is not None), bool(cell.number or cell.split), bool(cell.instant or cell.offset)]
    if sum(ways) > 1 or (cell.names is not None and not cell.split):
        fault = "map, instant, and number or split exclude each other; names needs split"
        raise Refused("bad_map", field, None, fault)


def _translate(text: str, field: str, table: dict[str, Any]) -> Any:
    if text not in table:
        raise Refused("unmapped_value", field, text, f"the field's `map` has only {', '.join(map(repr, table))}")
    return table[text]


def _number_reader(sample: str, field: str) -> Callable[[str], str]:
    """Return the function that rewrites a number as a decimal; sample: 1234.5 as the file writes it. Refuses: bad_map.

    >>> _number_reader("1.234,5%", "p")("12,5%")
    '12.5e-2'
    """
    parts = _NUMBER.fullmatch(sample)
    if parts is None or parts[1] == parts[2]:
        raise Refused("bad_map", field, sample, "write 1234.5 as the file does, such as 1234,5 or 1.234,5 or 1234.5%")
    thousands, point, percent = (re.escape(part) for part in parts.groups())
    whole = r"[0-9]{1,3}(" + thousands + r"[0-9]{3})+|[0-9]+" if thousands else r"[0-9]+"
    shape = re.compile(rf"(?P<whole>[+-]?({whole}))({point}(?P<part>[0-9]+))?\s*{percent}")

    def read(text: str) -> str:
        match = shape.fullmatch(text)
        if match is None:
            detail = f"not a number in the map's format, which writes 1234.5 as {sample}"
            remedy = "correct the cell, or the field's `number` in the map"
            raise Refused("bad_number", field, text, detail, remedy=remedy)
        digits = match["whole"].replace(parts[1], "") if parts[1] else match["whole"]
        return digits + (f".{match['part']}" if match["part"] else "") + ("e-2" if percent else "")

    return read


def _split(text: str, field: str, cell: CellFormat, number: Callable[[str], str]) -> list[str] | dict[str, str]:
    """Return the items of a list in one cell, without brackets around the list and quotes around items."""
    inner = text.strip("[](){} ")
    items = [number(item.strip().strip("'\"")) for item in inner.split(cell.split)] if inner else []
    if cell.names is None:
        return items
    if len(items) != len(cell.names):
        detail = f"the cell has {len(items)} items, the map has {len(cell.names)} names"
        remedy = "correct the cell, or the field's `split` or `names` in the map"
        raise Refused("bad_csv", field, text, detail, remedy=remedy)
    return dict(zip(cell.names, items, strict=True))


def _instant_text(text: str, field: str, form: str, offset: str) -> str:
    """Return RFC 3339, with the map's offset if the text has none; a text without either is refused later."""
    if not form:
        return text if not offset or _HAS_OFFSET.search(text) else text + offset
    try:
        parsed = datetime.strptime(text, form)
    except ValueError:
        remedy = "correct the cell, or `instant` in the map"
        raise Refused("bad_instant", field, text, f"not in the format {form}", remedy=remedy) from None
    return parsed.isoformat() if parsed.tzinfo or not offset else parsed.isoformat() + offset
