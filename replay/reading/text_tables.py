"""Tables as text: aligned columns for people, JSON and CSV for programs."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec

PrintedRow = dict[str, Any]
_NUMBER = re.compile(r"-?\$?[0-9][0-9.,]*(/[0-9]+|%|E[+-][0-9]+)?")
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")  # control characters
_CONTROLS_IN_LINES = re.compile(rf"(?!\n|\t|\r\n){_CONTROLS.pattern}")  # a text may have lines and tabs
_BREAK = "\r\n"
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # noqa: RUF001 - a spreadsheet reads wide ones too


def as_table(names: Sequence[str], rows: Iterable[PrintedRow]) -> Iterator[str]:
    r"""Return aligned columns under their names; numbers are aligned to the right.

    >>> print("\n".join(as_table(["who", "score"], [{"who": "ada", "score": "1.5"}, {"who": "bo", "score": None}])))
    who  score
    ada    1.5
    bo
    """
    cells = cell_texts(names, rows)
    yield from align(names, cells, [all(map(is_number, column)) for column in columns_of(names, cells)])


def cell_texts(names: Sequence[str], rows: Iterable[PrintedRow]) -> list[list[str]]:
    """Return the cells of rows as text, empty for None, with control characters escaped."""
    return [["" if row[name] is None else escape(str(row[name])) for name in names] for row in rows]


def columns_of(names: Sequence[str], cells: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the cells column by column, also if there are no rows."""
    return list(zip(*cells, strict=True)) or [()] * len(names)


def align(
    names: Sequence[str],
    cells: Sequence[Sequence[str]],
    to_right: Sequence[bool],
    dress: Callable[[str, str], str] = lambda _, text: text,
) -> Iterator[str]:
    """Return a line for the names and one per row. dress: adds colour to a text, given its column ("" for a name)."""
    columns = columns_of(names, cells)
    widths = [max(map(text_width, (name, *column))) for name, column in zip(names, columns, strict=True)]
    for place, row in enumerate(chain([names], cells)):
        line = []
        for name, text, width, right in zip(names, row, widths, to_right, strict=True):
            padding = " " * (width - text_width(text))
            shown = dress(name if place else "", text) if text else text
            line.append(padding + shown if right else shown + padding)
        yield "  ".join(line).rstrip()


def is_number(text: str) -> bool:
    """Return whether a text is a number or empty, and so is aligned to the right."""
    return not text or _NUMBER.fullmatch(text) is not None


def text_width(text: str) -> int:
    """Return how many cells a text takes on a terminal: two per wide character, none for a combining one.

    >>> text_width("rain"), text_width("雨")
    (4, 2)
    """
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - late: few tables need it

    return cell_len(text)


def as_json(names: Sequence[str], rows: Iterable[PrintedRow]) -> Iterator[str]:
    r"""Return one JSON array, one object per line; control characters are escaped as in JSON.

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
        waiting = escape_json(msgspec.json.encode(row).decode())
    if waiting:
        yield waiting
    yield "]"


def as_csv(names: Sequence[str], rows: Iterable[PrintedRow]) -> Iterator[str]:
    r"""Return a header and one line per row; an apostrophe precedes a text that a spreadsheet would run as a formula.

    >>> print("\n".join(as_csv(["who", "score"], [{"who": "=1+1", "score": "-0.5"}])))
    who,score
    '=1+1,-0.5
    """
    line = io.StringIO()
    writer = csv.writer(line, lineterminator=_BREAK)  # so that a text with CR or LF is quoted
    for row in chain([names], ([row[name] for name in names] for row in rows)):
        line.seek(0)
        line.truncate()
        writer.writerow([escape_formula(cell) for cell in row])
        yield line.getvalue().removesuffix(_BREAK)


def as_terminal_csv(names: Sequence[str], rows: Iterable[PrintedRow]) -> Iterator[str]:
    r"""Return the same for a terminal: control characters except line breaks and tabs are escaped as in Python.

    >>> print("\n".join(as_terminal_csv(["who"], [{"who": "a\x1b[2J"}])))
    who
    a\x1b[2J
    """
    for line in as_csv(names, rows):
        yield escape_controls(line)


def escape_controls(text: str) -> str:
    r"""Return a text of one or more lines with its other control characters, and changes of direction, escaped.

    >>> escape_controls("a\n\x1b[2J\u202e")
    'a\n\\x1b[2J\\u202e'
    """
    return _CONTROLS_IN_LINES.sub(lambda match: escape(match[0]), text)


def escape_json(text: str) -> str:
    r"""Return the same JSON with its control characters escaped.

    >>> print(escape_json('["a\x9b2J"]'))
    ["a\u009b2J"]
    """
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


TEXT_FORMATS: dict[str, Callable[[Sequence[str], Iterable[PrintedRow]], Iterator[str]]] = {
    "table": as_table,
    "json": as_json,
    "csv": as_terminal_csv,
}


def escape(text: str) -> str:
    r"""Return the text with its control characters escaped.

    >>> escape("a\x1b[2J")
    'a\\x1b[2J'
    """
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def escape_formula(cell: Any) -> Any:
    """Return a cell of CSV; an apostrophe precedes a text that a spreadsheet would run as a formula.

    >>> escape_formula("=1+1"), escape_formula("-0.5"), escape_formula(3)
    ("'=1+1", '-0.5', 3)
    """
    risky = isinstance(cell, str) and cell.lstrip().startswith(_FORMULA) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if risky else cell
