"""Tables on a terminal: no wider than it is, in colour where it has colour."""

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from shutil import get_terminal_size
from typing import IO, Any, NamedTuple

from forecast_ledger.replay.console.colour import BOLD, GREEN, RED, YELLOW, coloured, has_colour
from forecast_ledger.replay.console.view import Look, Row, without_zeros
from forecast_ledger.replay.reading.text_tables import align, cell_texts, columns_of, escape, is_number, text_width

_TRIMMED = {"points", "share", "take", "term", "probability", "seconds"}  # kinds; money keeps its cents
_STATES = {"ok": GREEN, "accepted": GREEN, "refused": RED, "damaged": RED, "differs": RED, "not checked": YELLOW}
_OF_STATES = {"found", "outcome"}  # columns
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z")
_LEAST = 12  # cells that a text keeps
_LEAST_PROSE = 24  # cells that a text keeps which is broken into lines
_LONGEST = 40  # characters of a value in a note
_FIRST = 200  # rows of a long list
_ENDLESS = 2**31  # cells
_GAP = 2  # cells between columns
_ELLIPSIS = "…"


class Screen(NamedTuple):
    """What is written on. room: how many cells a line has; colour: whether there is colour."""

    room: int
    colour: bool = False


class Shown(NamedTuple):
    """A table as a terminal shows it, and what it does not show, in words; empty if it shows all."""

    lines: Iterator[str]
    note: str


class _Column(NamedTuple):
    name: str
    cells: tuple[str, ...]

    def width(self) -> int:
        return max(map(text_width, (self.name, *self.cells)))

    def is_text(self) -> bool:
        """Whether a part of a cell says something: neither of a number nor of an instant."""
        return not all(is_number(cell) or _INSTANT.fullmatch(cell) for cell in self.cells)

    def is_prose(self) -> bool:
        return any(cell.count(" ") > 1 for cell in self.cells)


def screen(stream: IO[str], *, wide: bool) -> Screen:
    """What a stream writes on; if it is no terminal, or everything is wanted, its lines have no end."""
    room = get_terminal_size().columns if stream.isatty() and not wide else _ENDLESS
    return Screen(room, has_colour(stream))


def dress(column: str, text: str) -> str:
    """A cell in its colour: names bold, numbers below zero and what is refused or wrong red, what is right green."""
    if not column:
        return coloured(text, BOLD)
    if column in _OF_STATES and text in _STATES:
        return coloured(text, _STATES[text])
    return coloured(text, RED) if text.startswith("-") and is_number(text.strip()) else text


def whole(names: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    """Every column, every value whole, in colour."""
    cells = cell_texts(names, rows)
    return align(names, cells, [all(map(is_number, column)) for column in columns_of(names, cells)], dress)


def record(pairs: Mapping[str, Any], screen: Screen) -> Iterator[str]:
    """A line for each name and value, the values broken between words."""
    put, longest = dress if screen.colour else _plain, max(map(text_width, pairs))
    for name, value in pairs.items():
        text = "" if value is None else escape(str(value))
        first, *more = _wrapped(text, max(screen.room - longest - _GAP, _LEAST_PROSE))
        line = f"{put('', name)}{' ' * (longest - text_width(name) + _GAP)}{put(name, first) if first else ''}"
        yield line.rstrip()
        yield from (" " * (longest + _GAP) + each for each in more)


def fitted(names: Sequence[str], rows: Sequence[Row], look: Look, screen: Screen) -> Shown:
    """A table no wider than the screen.

    The zeros at the end of decimals go first; then columns that are empty, or the same in all rows; then columns from
    the right for which there is no room; then the last text is broken into lines and others lose their middle or end.
    Numbers and instants are never cut. If one row does not fit, it is shown with a line for each value.
    """
    columns = [_trimmed(column, look.kinds.get(column.name, "")) for column in _columns(names, rows)]
    put, room = dress if screen.colour else _plain, screen.room
    if _total(columns) <= room:
        return Shown(_lines(columns, put), "")
    if not rows:
        return Shown(iter([]), "")
    if len(rows) == 1:
        return Shown(record({name: cell.strip() for name, (cell,) in columns}, screen), "")
    gone: list[str] = []
    if not look.chosen:
        columns, gone = _varied(columns, look)
        columns, more = _making_room(columns, look, room)
        gone += [f"{', '.join(more)} (no room)"] if more else []
    columns, cut = _cut(columns, room)
    return Shown(_lines(columns, put), _told(gone, cut))


def listed(names: Sequence[str], rows: Iterator[Row], look: Look, screen: Screen) -> Shown:
    """A long list: a line for each row as soon as it is there.

    The first rows say how wide the columns are. What is longer than its column is cut at its end.
    """
    first = list(islice(rows, _FIRST))
    columns, gone = _making_room(_columns(names, first), look, screen.room)
    widths, of_text = _widths(columns, screen.room), [column.is_text() for column in columns]

    def line(cells: Sequence[str], put: Callable[[str], str]) -> str:
        shown = []
        for cell, width, text in zip(cells, widths, of_text, strict=True):
            short = _short(cell, width, "end") if text else cell
            padding = " " * (width - text_width(short))
            shown.append(put(short) + padding if text else padding + put(short))
        return "  ".join(shown).rstrip()

    kept = [column.name for column in columns]
    named = line(kept, lambda name: coloured(name, BOLD) if screen.colour else name)
    lines = (line(cell_texts(kept, [row])[0], str) for row in chain(first, rows))
    return Shown(chain([named], lines), _told([f"{', '.join(gone)} (no room)"] if gone else []))


def _columns(names: Sequence[str], rows: Sequence[Row]) -> list[_Column]:
    return [_Column(*each) for each in zip(names, columns_of(names, cell_texts(names, rows)), strict=True)]


def _told(gone: Sequence[str], short: Sequence[str] = ()) -> str:
    """What is not shown, in words; empty if all is."""
    cut = f"shortened: {', '.join(short)}" if short else ""
    return "; ".join(filter(None, (f"left out: {'; '.join(gone)}" if gone else "", cut)))


def _plain(_: str, text: str) -> str:
    return text


def _total(columns: Sequence[_Column]) -> int:
    return sum(column.width() for column in columns) + _GAP * (len(columns) - 1)


def _lines(columns: Sequence[_Column], put: Callable[[str, str], str]) -> Iterator[str]:
    names, cells = [column.name for column in columns], list(zip(*(column.cells for column in columns), strict=True))
    return align(names, cells, [all(map(is_number, map(str.strip, column.cells))) for column in columns], put)


def _trimmed(column: _Column, kind: str) -> _Column:
    """Decimals without the zeros at their end, their points one below the other."""
    if kind not in _TRIMMED or not all(map(is_number, column.cells)):
        return column
    cells = [without_zeros(cell) for cell in column.cells]
    fractions = [len(cell) - cell.index(".") if "." in cell else 0 for cell in cells]
    most = max(fractions, default=0)
    return _Column(column.name, tuple(c + " " * (most - f) * bool(c) for c, f in zip(cells, fractions, strict=True)))


def _varied(columns: Sequence[_Column], look: Look) -> tuple[list[_Column], list[str]]:
    """The columns that tell rows apart, and what the others would have said."""
    alike = {column.name for column in columns if len({*column.cells}) <= 1 and column.name not in look.keep}
    if len(alike) == len(columns):
        return list(columns), []
    said = {column.name: column.cells[0].strip() if column.cells else "" for column in columns if column.name in alike}
    empty = [name for name, value in said.items() if not value]
    full = [f"{name} = {_short(value, _LONGEST, 'middle')}" for name, value in said.items() if value]
    gone = [f"{', '.join(full)} (the same in every row)"] if full else []
    gone += [f"{', '.join(empty)} (empty)"] if empty else []
    return [column for column in columns if column.name not in alike], gone


def _least(column: _Column, *, last: bool) -> int:
    """How many cells a column needs at least."""
    if not column.is_text():
        return column.width()
    least = _LEAST_PROSE if last and column.is_prose() else _LEAST
    numbers = [text_width(cell) for cell in column.cells if is_number(cell) or _INSTANT.fullmatch(cell)]
    return min(column.width(), max(least, text_width(column.name), *numbers))


def _making_room(columns: list[_Column], look: Look, room: int) -> tuple[list[_Column], list[str]]:
    """The columns that have room beside each other, and the names of those left out: spare ones, then from the right;
    the first stays, and those that are to be kept.
    """
    order = [*(name for name in look.spare), *(column.name for column in reversed(columns[1:]))]
    gone: list[str] = []
    for name in dict.fromkeys(order):
        left = [column for column in columns if column.name not in gone]
        need = sum(_least(column, last=column is left[-1]) for column in left) + _GAP * (len(left) - 1)
        if need <= room:
            break
        if name not in look.keep:
            gone.append(name)
    gone = [column.name for column in columns if column.name in gone]
    return [column for column in columns if column.name not in gone], gone


def _widths(columns: Sequence[_Column], room: int) -> list[int]:
    """The columns' widths, the widest texts made narrower until all have room, if they can give way."""
    widths = [column.width() for column in columns]
    least = [_least(column, last=column is columns[-1]) for column in columns]
    for _ in range(_total(columns) - room):
        if can := [at for at, width in enumerate(widths) if width > least[at]]:
            widths[max(can, key=lambda at: widths[at])] -= 1
    return widths


def _cut(columns: Sequence[_Column], room: int) -> tuple[list[_Column], list[str]]:
    """The columns no wider than the room, if texts can give way, and the names of those with values cut short."""
    widths = _widths(columns, room)
    is_broken = columns[-1].width() > widths[-1] and columns[-1].is_prose()
    narrow = [_shortened(column, width) for column, width in zip(columns, widths, strict=True)]
    if is_broken:
        narrow[-1] = columns[-1]
    cut = [column.name for column, other in zip(columns, narrow, strict=True) if column != other]
    return (_broken(narrow[:-1], narrow[-1], widths[-1]) if is_broken else narrow), cut


def _broken(columns: Sequence[_Column], last: _Column, width: int) -> list[_Column]:
    """The columns, the last one broken into lines; beside all but the first of them there is nothing."""
    lines = [_wrapped(cell, width) for cell in last.cells]
    padded = [
        _Column(
            name, tuple(each for cell, of in zip(cells, lines, strict=True) for each in (cell, *[""] * len(of[1:])))
        )
        for name, cells in columns
    ]
    return [*padded, _Column(last.name, tuple(line for of in lines for line in of))]


def _wrapped(text: str, width: int) -> list[str]:
    """A text in lines; a word that is longer than one stays whole."""
    if text_width(text) <= width:
        return [text]
    if text_width(text) > len(text):
        width = width * len(text) // text_width(text)
    return textwrap.wrap(text, max(width, 1), break_long_words=False, break_on_hyphens=False) or [""]


def _shortened(column: _Column, width: int) -> _Column:
    """The column no wider than that; what is left out of its values is what least makes them look alike."""
    if column.width() <= width or not column.is_text():
        return column
    ways = ("end", "middle") if column.is_prose() else ("middle", "end", "start")
    tried = [tuple(_short(cell, width, way) for cell in column.cells) for way in ways]
    return _Column(column.name, max(tried, key=lambda cells: len({*cells})))


def _short(text: str, width: int, way: str) -> str:
    """A text in so many cells, with an ellipsis in place of its start, middle or end."""
    if text_width(text) <= width:
        return text
    left = {"start": 0, "middle": width // 2, "end": width - 1}[way]
    return _head(text, left) + _ELLIPSIS + _head(text[::-1], width - 1 - left)[::-1]


def _head(text: str, width: int) -> str:
    """The longest beginning of a text that takes so many cells."""
    text = text[:width]
    while text_width(text) > width:
        text = text[:-1]
    return text
