"""Tables as text: aligned for eyes, JSON and CSV for programs."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec

Row = dict[str, Any]
_NUMBER = re.compile(r"-?\$?[0-9][0-9.,]*(/[0-9]+|%|E[+-][0-9]+)?")
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")  # control codes, directions
_OF_CELLS = re.compile(rf"(?!\n|\t|\r\n){_OBEYED.pattern}")  # a cell of CSV may hold lines and tabs
_BREAK = "\r\n"
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # noqa: RUF001 - a spreadsheet reads wide ones too


def as_table(names: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    r"""Aligned columns under their names, numbers to the right.

    >>> print("\n".join(as_table(["who", "score"], [{"who": "ada", "score": "1.5"}, {"who": "bo", "score": None}])))
    who  score
    ada    1.5
    bo
    """
    cells = [["" if row[name] is None else visible(str(row[name])) for name in names] for row in rows]
    columns = list(zip(*cells, strict=True)) or [()] * len(names)
    widths = [max(map(len, (name, *column))) for name, column in zip(names, columns, strict=True)]
    to_right = [all(not cell or _NUMBER.fullmatch(cell) for cell in column) for column in columns]
    for row in chain([names], cells):
        places = zip(row, widths, to_right, strict=True)
        yield "  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in places).rstrip()


def as_json(names: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    r"""One JSON array of objects, an object a line; what a terminal might obey is escaped as JSON does.

    >>> print("\n".join(as_json(["who"], [{"who": "ada"}, {"who": "bo"}])))
    [
    {"who":"ada"},
    {"who":"bo"}
    ]
    """
    del names  # each object has them
    yield "["
    waiting = ""
    for row in rows:
        if waiting:
            yield waiting + ","
        waiting = inert_json(msgspec.json.encode(row).decode())
    if waiting:
        yield waiting
    yield "]"


def as_csv(names: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    r"""A header and a line a row. A text that a spreadsheet would take for a formula gets an apostrophe before it.

    >>> print("\n".join(as_csv(["who", "score"], [{"who": "=1+1", "score": "-0.5"}])))
    who,score
    '=1+1,-0.5
    """
    line = io.StringIO()
    writer = csv.writer(line, lineterminator=_BREAK)  # either half of it, within a text, needs quotation marks
    for row in chain([names], ([row[name] for name in names] for row in rows)):
        line.seek(0)
        line.truncate()
        writer.writerow([_inert(cell) for cell in row])
        yield line.getvalue().removesuffix(_BREAK)


def as_csv_shown(names: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    r"""The same for eyes: what a terminal might obey, but for line breaks and tabs, is escaped as Python does.

    >>> print("\n".join(as_csv_shown(["who"], [{"who": "a\x1b[2J"}])))
    who
    a\x1b[2J
    """
    for line in as_csv(names, rows):
        yield _OF_CELLS.sub(lambda found: visible(found[0]), line)


def inert_json(text: str) -> str:
    r"""The same JSON, with everything escaped that a terminal might obey.

    >>> print(inert_json('["a\x9b2J"]'))
    ["a\u009b2J"]
    """
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


FORMATS: dict[str, Callable[[Sequence[str], Iterable[Row]], Iterator[str]]] = {
    "table": as_table,
    "json": as_json,
    "csv": as_csv_shown,
}


def visible(text: str) -> str:
    r"""The text with everything escaped that a terminal might obey.

    >>> visible("a\x1b[2J")
    'a\\x1b[2J'
    """
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def _inert(cell: Any) -> Any:
    risky = isinstance(cell, str) and cell.lstrip().startswith(_FORMULA) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if risky else cell
