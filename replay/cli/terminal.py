"""Tables on a terminal: no wider than the terminal, and in colour if it has colour."""

import os
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import chain, islice
from shutil import get_terminal_size
from typing import IO, Any, NamedTuple

import click

from forecast_ledger.projections.core.text_table import (
    PrintedRow,
    align,
    cell_texts,
    columns_of,
    escape,
    is_number,
    text_width,
)

# --- The view of a table that is printed: its format, columns, rows, and how many of them.


_Option = Callable[[Callable[..., None]], Callable[..., None]]


class Condition(NamedTuple):
    """A value that a row must have in a column or, if negated, must not have."""

    column: str
    value: str
    negated: bool = False

    def holds(self, row: "PrintedRow") -> bool:
        """Report whether a row meets it. Values are compared as printed, with or without trailing zeros."""
        value = row[self.column]
        text = "" if value is None else str(value)
        return (self.value in {text, without_zeros(text)}) != self.negated


class View(NamedTuple):
    """How a table is printed.

    form: table, json or csv. columns: the columns to print, in this order; all if empty. where: conditions that every
    printed row meets. limit: the greatest number of rows. wide: print every column and value in full on a terminal too.
    """

    form: str = "table"
    columns: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()
    limit: int | None = None
    wide: bool = False

    def named_columns(self) -> list[str]:
        """Return the columns that the view names, to print or in conditions."""
        return [*self.columns, *(condition.column for condition in self.where)]


class Look(NamedTuple):
    """How to fit the columns of a table into a terminal.

    kinds: column -> its kind in the projection's schema. keep: columns that are shown even if all rows have the same
    value. key: columns that are left out only if all rows have the same value. spare: columns to leave out first.
    chosen: the user chose the columns, so none is left out.
    """

    kinds: Mapping[str, str] = {}
    keep: Collection[str] = ()
    key: Collection[str] = ()
    spare: Collection[str] = ()
    chosen: bool = False


class Selected:
    """The rows of a view, as they are read.

    read, met, printed: counts of all rows, of the rows that meet every condition, and of the rows to print; complete
    after the last row was read.
    """

    def __init__(self, view: View, rows: Iterable["PrintedRow"]) -> None:
        self.read = self.met = self.printed = 0
        self._view, self._rows = view, rows

    def __iter__(self) -> Iterator["PrintedRow"]:
        """Yield the rows to print. Rows past the limit are read too, because reading them may do other work."""
        _, columns, where, limit, _ = self._view
        for row in self._rows:
            self.read += 1
            if not all(condition.holds(row) for condition in where):
                continue
            self.met += 1
            if limit is None or self.met <= limit:
                self.printed += 1
                yield {name: row[name] for name in columns} if columns else row

    def note(self) -> str | None:
        """Return a note on rows that are not printed, or on a table without rows; None if there is nothing to say."""
        if not self.read:
            return "no rows"
        if not self.met:
            return f"no rows meet --where; there are {self.read:,} in all"
        among = f", of {self.read:,} in all" if self.met < self.read else ""
        if self.printed < self.met:
            met = "that meet --where are" if among else "are"
            return f"{self.printed:,} of {self.met:,} rows {met} shown{among}"
        return f"{self.met:,} {'row meets' if self.met == 1 else 'rows meet'} --where{among}" if among else None


def table_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of commands that print a table; the command gets them as its argument `view`."""
    return _decorated(command, _OPTIONS)


def listing_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the same options without --limit, for a command that has its own."""
    return _decorated(command, [option for option in _OPTIONS if option is not _LIMIT])


def _decorated(command: Callable[..., None], options: Sequence[_Option]) -> Callable[..., None]:
    @wraps(command)
    def run(*args: Any, form: str, shown: tuple[str, ...], where: tuple[Condition, ...], **kwargs: Any) -> None:
        view = View(form, shown, where, kwargs.pop("most", None), kwargs.pop("wide"))
        command(*args, view=view, **kwargs)

    decorated: Callable[..., None] = run
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def without_zeros(text: str) -> str:
    """Remove trailing zeros from a decimal; any other text is returned as it is.

    >>> without_zeros("0.500"), without_zeros("-3.00"), without_zeros("100"), without_zeros("1.0.0")
    ('0.5', '-3', '100', '1.0.0')
    """
    whole, point, fraction = text.partition(".")
    is_decimal = point and fraction.isdigit() and whole.removeprefix("-").isdigit()
    return f"{whole}.{fraction.rstrip('0')}".rstrip(".") if is_decimal else text


def _names(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Split a list at its commas, and drop repeated names."""
    return () if text is None else tuple(dict.fromkeys(name.strip() for name in text.split(",")))


def _conditions(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> tuple[Condition, ...]:
    """Read conditions written as COLUMN=VALUE or COLUMN!=VALUE."""
    conditions = []
    for text in texts:
        column, sign, value = text.partition("=")
        if not sign:
            raise click.BadParameter(f"{text!r} has no '='; write COLUMN=VALUE or COLUMN!=VALUE")
        conditions.append(Condition(column.removesuffix("!").strip(), value, column.endswith("!")))
    return tuple(conditions)


_LIMIT = click.option("--limit", "most", type=click.IntRange(1), metavar="COUNT", help="Print at most this many rows.")
_OPTIONS: list[_Option] = [
    click.option(
        "--format",
        "form",
        type=click.Choice(["table", "json", "csv"]),
        default="table",
        show_default=True,
        help="Print an aligned table, a JSON array of objects, or CSV.",
    ),
    click.option(
        "--columns", "shown", metavar="A,B,C", callback=_names, help="Print only these columns, in this order."
    ),
    click.option(
        "--where",
        multiple=True,
        metavar="COLUMN=VALUE",
        callback=_conditions,
        help="Print only rows with this value in this column; COLUMN!=VALUE excludes them. Repeatable.",
    ),
    _LIMIT,
    click.option("--wide", is_flag=True, help="Print every column and value in full on a terminal too."),
]


BOLD, RED, GREEN, YELLOW = "1", "31", "32", "33"


def has_colour(stream: IO[str]) -> bool:
    """Report whether text for a stream may be in colour.

    If NO_COLOR is set, it may not; else, if FORCE_COLOR is set, it may. Without either, a terminal has colour unless
    TERM is "dumb" or not set. An empty variable counts as not set (no-color.org, force-color.org).
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") not in {None, "", "dumb"}


def colour_text(text: str, code: str) -> str:
    r"""Return a text in a colour, with the code that resets the colour after it.

    >>> colour_text("ok", GREEN)
    '\x1b[32mok\x1b[0m'
    """
    return f"\x1b[{code}m{text}\x1b[0m"


_TRIMMED = {"points", "share", "take", "term", "probability", "seconds"}  # kinds; money keeps its cents
_STATES = {"ok": GREEN, "accepted": GREEN, "refused": RED, "damaged": RED, "differs": RED, "not checked": YELLOW}
_STATE_COLUMNS = {"found", "outcome"}  # columns
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z")
_LEAST = 8  # cells to which a text may be shortened
_LEAST_PROSE = 24  # cells to which a text that is wrapped may be narrowed
_LONGEST = 40  # characters of a value in a note
_FIRST = 200  # rows of a long list that decide how wide its columns are
_ENDLESS = 2**31  # cells
_GAP = 2  # cells between columns
_ELLIPSIS = "…"


class Screen(NamedTuple):
    """The width of a line in cells, and whether there is colour."""

    room: int
    colour: bool = False


class Rendering(NamedTuple):
    """The lines of a table on a terminal, and a note on what they leave out; the note is empty if they show all."""

    lines: Iterator[str]
    note: str


class _Column(NamedTuple):
    name: str
    cells: tuple[str, ...]

    def width(self) -> int:
        return max(map(text_width, (self.name, *self.cells)))

    def is_text(self) -> bool:
        """Report whether cells may be shortened: not those of a column of numbers and instants."""
        return not all(is_number(cell) or _INSTANT.fullmatch(cell) for cell in self.cells)

    def is_prose(self) -> bool:
        return any(cell.count(" ") > 1 for cell in self.cells)


def screen_of(stream: IO[str], *, wide: bool) -> Screen:
    """Return the screen of a stream. If it is not a terminal, or if wide, lines have no end."""
    room = get_terminal_size().columns if stream.isatty() and not wide else _ENDLESS
    return Screen(room, has_colour(stream))


def colour_cell(column: str, text: str) -> str:
    """Colour a cell: column names bold; negative numbers and states of failure red; states of success green."""
    if not column:
        return colour_text(text, BOLD)
    if column in _STATE_COLUMNS and text in _STATES:
        return colour_text(text, _STATES[text])
    return colour_text(text, RED) if text.startswith("-") and is_number(text.strip()) else text


def full_table(names: Sequence[str], rows: Sequence[PrintedRow]) -> Iterator[str]:
    """Yield a table with every column and every value in full, in colour."""
    cells = cell_texts(names, rows)
    return align(names, cells, [all(map(is_number, column)) for column in columns_of(names, cells)], colour_cell)


def vertical_table(pairs: Mapping[str, Any], screen: Screen) -> Iterator[str]:
    """Yield a line for each name and value; long values are wrapped between words."""
    put, longest = colour_cell if screen.colour else _plain, max(map(text_width, pairs))
    for name, value in pairs.items():
        text = "" if value is None else escape(str(value))
        first, *more = _wrap(text, max(screen.room - longest - _GAP, _LEAST_PROSE))
        line = f"{put('', name)}{' ' * (longest - text_width(name) + _GAP)}{put(name, first) if first else ''}"
        yield line.rstrip()
        yield from (" " * (longest + _GAP) + line for line in more)


def fit_table(names: Sequence[str], rows: Sequence[PrintedRow], look: Look, screen: Screen) -> Rendering:
    """Return a table no wider than the screen.

    Trailing zeros of decimals are removed. If the table still does not fit, columns that are empty or have the same
    value in all rows are left out, then columns from the right; then the last text is wrapped, and others are shortened
    in the middle or at the end. Numbers and instants are never cut. A table of one row that does not fit has a line for
    each value.
    """
    columns = [_trim_zeros(column, look.kinds.get(column.name, "")) for column in _columns(names, rows)]
    put, room = colour_cell if screen.colour else _plain, screen.room
    if _total(columns) <= room:
        return Rendering(_lines(columns, put), "")
    if not rows:
        return Rendering(iter([]), "")
    if len(rows) == 1:
        return Rendering(vertical_table({name: cell.strip() for name, (cell,) in columns}, screen), "")
    gone: list[str] = []
    if not look.chosen:
        columns, gone = _drop_constant(columns, look)
        columns, more = _drop_columns(columns, look, room)
        gone += [f"{', '.join(more)} (no room)"] if more else []
    columns, cut = _shorten(columns, room)
    return Rendering(_lines(columns, put), _omission_note(gone, cut))


def stream_rows(names: Sequence[str], rows: Iterator[PrintedRow], look: Look, screen: Screen) -> Rendering:
    """Return a list that yields the line of each row as soon as the row is read.

    The first rows decide how wide the columns are. A longer text is cut at its end.
    """
    first = list(islice(rows, _FIRST))
    columns, gone = _drop_columns(_columns(names, first), look, screen.room)
    widths, of_text = _widths(columns, screen.room), [column.is_text() for column in columns]

    def line(cells: Sequence[str], put: Callable[[str], str]) -> str:
        """Return one line of cells; put: styles the text of a cell, without its padding."""
        shown = []
        for cell, width, text in zip(cells, widths, of_text, strict=True):
            short = _ellipsize(cell, width, "end") if text else cell
            padding = " " * (width - text_width(short))
            shown.append(put(short) + padding if text else padding + put(short))
        return "  ".join(shown).rstrip()

    shown_names = [column.name for column in columns]
    heading = line(shown_names, lambda name: colour_text(name, BOLD) if screen.colour else name)
    lines = (line(cell_texts(shown_names, [row])[0], str) for row in chain(first, rows))
    return Rendering(chain([heading], lines), _omission_note([f"{', '.join(gone)} (no room)"] if gone else []))


def _columns(names: Sequence[str], rows: Sequence[PrintedRow]) -> list[_Column]:
    return [_Column(*column) for column in zip(names, columns_of(names, cell_texts(names, rows)), strict=True)]


def _omission_note(gone: Sequence[str], short: Sequence[str] = ()) -> str:
    """Return a note on columns left out and values shortened; empty if there are none."""
    cut = f"shortened: {', '.join(short)}" if short else ""
    return "; ".join(filter(None, (f"left out: {'; '.join(gone)}" if gone else "", cut)))


def _plain(_: str, text: str) -> str:
    return text


def _total(columns: Sequence[_Column]) -> int:
    return sum(column.width() for column in columns) + _GAP * (len(columns) - 1)


def _lines(columns: Sequence[_Column], put: Callable[[str, str], str]) -> Iterator[str]:
    names, cells = [column.name for column in columns], list(zip(*(column.cells for column in columns), strict=True))
    return align(names, cells, [all(map(is_number, map(str.strip, column.cells))) for column in columns], put)


def _trim_zeros(column: _Column, kind: str) -> _Column:
    """Remove trailing zeros from a column of decimals, and align their points."""
    if kind not in _TRIMMED or not all(map(is_number, column.cells)):
        return column
    cells = [without_zeros(cell) for cell in column.cells]
    fractions = [len(cell) - cell.index(".") if "." in cell else 0 for cell in cells]
    most = max(fractions, default=0)
    return _Column(column.name, tuple(c + " " * (most - f) * bool(c) for c, f in zip(cells, fractions, strict=True)))


def _drop_constant(columns: Sequence[_Column], look: Look) -> tuple[list[_Column], list[str]]:
    """Return the columns whose values differ, and notes on the values of the others."""
    constant = {column.name for column in columns if len({*column.cells}) <= 1 and column.name not in look.keep}
    if len(constant) == len(columns):
        return list(columns), []
    values = {
        column.name: column.cells[0].strip() if column.cells else "" for column in columns if column.name in constant
    }
    empty = [name for name, value in values.items() if not value]
    full = [f"{name} = {_ellipsize(value, _LONGEST, 'middle')}" for name, value in values.items() if value]
    gone = [f"{', '.join(full)} (the same in every row)"] if full else []
    gone += [f"{', '.join(empty)} (empty)"] if empty else []
    return [column for column in columns if column.name not in constant], gone


def _least(column: _Column, *, last: bool) -> int:
    """Return the least width of a column in cells."""
    if not column.is_text():
        return column.width()
    least = _LEAST_PROSE if last and column.is_prose() else _LEAST
    numbers = [text_width(cell) for cell in column.cells if is_number(cell) or _INSTANT.fullmatch(cell)]
    return min(column.width(), max(least, text_width(column.name), *numbers))


def _drop_columns(columns: list[_Column], look: Look, room: int) -> tuple[list[_Column], list[str]]:
    """Return the columns that fit side by side, and the names of those left out.

    Spare columns are left out first, then columns from the right; never the first column, nor one that the look keeps
    or that is part of the key.
    """
    order = [*(name for name in look.spare), *(column.name for column in reversed(columns[1:]))]
    gone: list[str] = []
    for name in dict.fromkeys(order):
        left = [column for column in columns if column.name not in gone]
        need = sum(_least(column, last=column is left[-1]) for column in left) + _GAP * (len(left) - 1)
        if need <= room:
            break
        if name not in {*look.keep, *look.key}:
            gone.append(name)
    gone = [column.name for column in columns if column.name in gone]
    return [column for column in columns if column.name not in gone], gone


def _widths(columns: Sequence[_Column], room: int) -> list[int]:
    """Return the widths of columns after narrowing the widest texts until all columns fit, as far as possible."""
    widths = [column.width() for column in columns]
    least = [_least(column, last=column is columns[-1]) for column in columns]
    for _ in range(_total(columns) - room):
        if wider := [at for at, width in enumerate(widths) if width > least[at]]:
            widths[max(wider, key=lambda at: widths[at])] -= 1
    return widths


def _shorten(columns: Sequence[_Column], room: int) -> tuple[list[_Column], list[str]]:
    """Return the columns, narrowed to fit if possible, and the names of those with shortened values."""
    widths = _widths(columns, room)
    is_broken = columns[-1].width() > widths[-1] and columns[-1].is_prose()
    narrow = [_shorten_column(column, width) for column, width in zip(columns, widths, strict=True)]
    if is_broken:
        narrow[-1] = columns[-1]
    cut = [column.name for column, narrowed in zip(columns, narrow, strict=True) if column != narrowed]
    return (_wrap_last(narrow[:-1], narrow[-1], widths[-1]) if is_broken else narrow), cut


def _wrap_last(columns: Sequence[_Column], last: _Column, width: int) -> list[_Column]:
    """Wrap the last column; beside the second and later lines of a cell, the other columns are empty."""
    lines = [_wrap(cell, width) for cell in last.cells]
    padded = [
        _Column(
            name, tuple(part for cell, text in zip(cells, lines, strict=True) for part in (cell, *[""] * len(text[1:])))
        )
        for name, cells in columns
    ]
    return [*padded, _Column(last.name, tuple(line for text in lines for line in text))]


def _wrap(text: str, width: int) -> list[str]:
    """Wrap a text into lines; a word that is longer than a line stays whole."""
    if text_width(text) <= width:
        return [text]
    if text_width(text) > len(text):
        width = width * len(text) // text_width(text)
    return textwrap.wrap(text, max(width, 1), break_long_words=False, break_on_hyphens=False) or [""]


def _shorten_column(column: _Column, width: int) -> _Column:
    """Shorten the values of a column at the end, middle or start, whichever leaves most of them distinct."""
    if column.width() <= width or not column.is_text():
        return column
    ways = ("end", "middle") if column.is_prose() else ("middle", "end", "start")
    tried = [tuple(_ellipsize(cell, width, way) for cell in column.cells) for way in ways]
    return _Column(column.name, max(tried, key=lambda cells: len({*cells})))


def _ellipsize(text: str, width: int, way: str) -> str:
    """Shorten a text to a width, with an ellipsis in place of its start, middle or end."""
    if text_width(text) <= width:
        return text
    left = {"start": 0, "middle": width // 2, "end": width - 1}[way]
    return _beginning(text, left) + _ELLIPSIS + _beginning(text[::-1], width - 1 - left)[::-1]


def _beginning(text: str, width: int) -> str:
    """Return the longest beginning of a text that is no wider than that."""
    text = text[:width]
    while text_width(text) > width:
        text = text[:-1]
    return text
