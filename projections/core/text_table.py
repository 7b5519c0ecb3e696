"""Tables as text: aligned columns under their names, for a terminal and for `print`."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from textwrap import wrap
from typing import Any

from forecast_ledger.ledger.core.values import format_count

PrintedRow = dict[str, Any]
NUMBER = re.compile(r"-?\$?[0-9][0-9.,]*(/[0-9]+|%|E[+-][0-9]+)?")


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
    for number, row in enumerate(chain([names], cells)):
        line = []
        for name, text, width, right in zip(names, row, widths, to_right, strict=True):
            padding = " " * (width - text_width(text))
            shown = dress(name if number else "", text) if text else text
            line.append(padding + shown if right else shown + padding)
        yield "  ".join(line).rstrip()


def is_number(text: str) -> bool:
    """Return whether a text is a number or empty, and so is aligned to the right."""
    return not text or NUMBER.fullmatch(text) is not None


def text_width(text: str) -> int:
    """Return how many cells a text takes on a terminal: two per wide character, none for a combining one.

    >>> text_width("rain"), text_width("雨")
    (4, 2)
    """
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - late: few tables need it

    return cell_len(text)


def escape(text: str) -> str:
    r"""Return the text with its control characters escaped.

    >>> escape("a\x1b[2J")
    'a\\x1b[2J'
    """
    return text if text.isprintable() else text.encode("unicode_escape").decode()


SHOWN_ROWS = 20
SHOWN_WIDTH = 100
_CELL = 40  # characters of a cell


def preview(title: str, names: Sequence[str], rows: Iterable[Sequence[Any]], count: int) -> str:
    r"""Return the first rows of a table under its title, no wider than `SHOWN_WIDTH`; what is left out is counted.

    count: the number of rows of the whole table.

    >>> print(preview("scores", ["who", "score"], [("ada", "1.500000000"), ("bo", None)], 7))
    scores: 7 rows
    who        score
    ada  1.500000000
    bo
    5 more rows
    """
    cells = [[_shortened("" if value is None else escape(str(value))) for value in row] for row in rows]
    columns = columns_of(names, cells)
    widths = [max(map(text_width, (name, *column))) + 2 for name, column in zip(names, columns, strict=True)]
    fits = max(sum(total - 2 <= SHOWN_WIDTH for total in accumulate(widths)), 1)
    right = [all(map(is_number, column)) for column in columns[:fits]]
    lines = [f"{title}: {format_count(count, 'row')}", *align(names[:fits], [row[:fits] for row in cells], right)]
    more = [format_count(count - len(cells), "more row")] * (count > len(cells))
    if len(names) > fits:
        more.append(f"{format_count(len(names) - fits, 'more column')}: {', '.join(names[fits:])}")
    return "\n".join(lines + wrap("; ".join(more), SHOWN_WIDTH))


def _shortened(text: str) -> str:
    return text if len(text) <= _CELL else f"{text[: _CELL - 1]}…"
