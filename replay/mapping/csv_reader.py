"""The rows of a CSV file: read up to the first malformed one, in order, counted where they give no command."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice, pairwise
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, NamedTuple

from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.files import open_regular
from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.ledger.model.commands import Quote, RecordDecision, SubmitForecast, WithdrawForecast
from forecast_ledger.ledger.model.input_locations import ReadCommand
from forecast_ledger.replay.writing.command_lines import LONGEST_LINE, MOST_BLANK, UTF_8_MARK

LONGEST_RECORD = 4 * LONGEST_LINE  # bytes; the csv module limits a cell to 131,072 characters

_PACKED = (b"PK\x03\x04", b"\x1f\x8b")  # how a zip and a gzip file begin
_IS_PACKED = "the file is packed"

CsvRecord = tuple[int, list[str] | Refused]
SourceRecord = tuple[int, list[str] | Refused, bytes]


class _LineFeeds(io.RawIOBase):
    """A file with a line feed for each carriage return."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._file.read(len(buffer)).replace(b"\r", b"\n")
        buffer[: len(part)] = part
        return len(part)

    def tell(self) -> int:
        return self._file.tell()

    def fileno(self) -> int:
        return self._file.fileno()


def with_line_feeds(file: IO[bytes]) -> IO[bytes]:
    r"""Return a file whose lines end in line feeds: the file, or one that reads it if its header ends in `\r` alone.

    Such files come from old spreadsheets on a Mac. A file that cannot be looked into is returned as it is.
    """
    head = b""
    with suppress(AttributeError):
        head = file.peek(1) if not file.seekable() or not file.tell() else b""  # type: ignore[attr-defined]
    first = head.partition(b"\n")[0].removesuffix(b"\r")
    return io.BufferedReader(_LineFeeds(file)) if b"\r" in first else file


def is_byte_encoding(name: str) -> bool:
    """Return whether Python knows an encoding by this name that writes ASCII as ASCII, so that lines can be found.

    >>> is_byte_encoding("cp1252"), is_byte_encoding("utf-16"), is_byte_encoding("rot13"), is_byte_encoding("klingon")
    (True, False, False, False)
    """
    escapes = b"\\u0041\\x41+AGE-~{"  # which some encodings take for other letters
    with suppress(LookupError, ValueError):
        return all(each.decode(name) == each.decode("ascii") for each in (escapes, bytes(range(128))))
    return False


def read_records(file: IO[bytes], delimiter: str = ",") -> Iterator[CsvRecord]:
    """Return each record's first line and its cells, as `read_sources` does, without its bytes."""
    return ((line, cells) for line, cells, _ in read_sources(file, delimiter))


def read_sources(file: IO[bytes], delimiter: str = ",", encoding: str = "") -> Iterator[SourceRecord]:
    """Return each record's first line, its cells without outer spaces, and its bytes; blank lines are skipped.

    encoding: "" for UTF-8.

    A record that cannot be read is the last, since its end is not known; its bytes are those read so far.
    Refuses: bad_csv.
    """
    lines = BoundedLines(file, LONGEST_LINE, LONGEST_RECORD, encoding or "utf-8")
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        first = lines.number + 1
        lines.begin()
        try:
            cells = next(reader, None)
        except (csv.Error, UnicodeDecodeError, UnreadableError) as error:
            yield first, _unreadable(error, lines.number, encoding), lines.source()
            return
        if cells is None:
            return
        if cells:
            yield first, [cell.strip() for cell in cells], lines.source()


def _unreadable(error: Exception, line: int, encoding: str) -> Refused:
    """Return the refusal of a record that cannot be read."""
    if not isinstance(error, UnicodeDecodeError):
        if str(error) == _IS_PACKED:
            return Refused("bad_csv", "", None, _IS_PACKED, remedy="unpack it, or pipe it: unzip -p FILE, or zcat FILE")
        reason = str(error).partition(" - ")[0]
        return Refused("bad_csv", "", None, f"{reason}; the lines after {line} are not read")
    detail = f"not {encoding or 'UTF-8'}; the lines after {line} are not read"
    remedy = 'convert the file to UTF-8, or name its encoding at the top of the map, such as encoding = "cp1252"'
    return Refused("bad_csv", "", None, detail, remedy=remedy)


class UnreadableError(ValueError):
    """A line that is not text, or is too long."""


class BoundedLines:
    """The lines of a file as text, up to a number of bytes each and in each record, and of blank lines together.

    A caller that reads records calls `begin` before each.
    """

    def __init__(self, file: IO[bytes], longest: int, longest_record: int, encoding: str = "utf-8") -> None:
        self._file, self._longest, self._longest_record, self._encoding = file, longest, longest_record, encoding
        self._lines: list[bytes] = []
        self.number = self._taken = self._blank = 0

    def begin(self) -> None:
        """Begin a record."""
        self._taken = 0
        self._lines.clear()

    def source(self) -> bytes:
        """Return the bytes read since the record began."""
        return b"".join(self._lines)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._file.readline(self._longest + 1)
        if not line:
            raise StopIteration
        self.number += 1
        self._taken += len(line)
        self._lines.append(line)
        if len(line) > self._longest:
            raise UnreadableError(f"a line has more than {self._longest} bytes")
        if self._taken > self._longest_record:
            raise UnreadableError(f"a row has more than {self._longest_record} bytes: is a quotation mark missing?")
        if self.number == 1 and line.startswith(_PACKED):
            raise UnreadableError(_IS_PACKED)
        self._blank = self._blank + 1 if line.isspace() else 0
        if self._blank > MOST_BLANK:
            raise UnreadableError(f"more than {MOST_BLANK:,} blank lines follow each other")
        if b"\0" in line:
            raise UnreadableError("a line has a NUL byte: is the file a CSV in UTF-8?")
        return (line.removeprefix(UTF_8_MARK) if self.number == 1 else line).decode(self._encoding)


_NAMED = 5  # rows, and cells, without a command whose lines are named


@dataclass(slots=True)
class LeftOut:
    """The rows of which a map makes no command: how many have been read so far, and the lines of the first.

    cells: those of other rows, in columns that give commands, that have a text and no command; with their lines.
    are_empty: whether a row is among them whose command would be a forecast, or an answer, and has nothing.

    >>> left_out = LeftOut()
    >>> for line in (3, 4):
    ...     left_out.add(line)
    >>> left_out.words("line")
    'the map makes no command of 2 rows, which fail `where`, `present` or `above` of every command: line 3, 4'
    >>> left_out.add_cell(7, "Q1")
    >>> left_out.words("line").partition("; ")[2]
    "the map makes no command of 1 cell, which fails `where`, `present` or `above` of every command: line 7 in 'Q1'"
    """

    rows: int = 0
    first: list[int] = field(default_factory=list)
    cells: int = 0
    first_cells: list[tuple[int, str]] = field(default_factory=list)
    are_empty: bool = False

    def add(self, line: int, *, is_empty: bool = False) -> None:
        """Count a row. is_empty: whether it has no forecast or answer."""
        self.are_empty |= is_empty
        self.rows += 1
        if len(self.first) < _NAMED:
            self.first.append(line)

    def add_cell(self, line: int, column: str) -> None:
        """Count a cell."""
        self.cells += 1
        if len(self.first_cells) < _NAMED:
            self.first_cells.append((line, column))

    def words(self, unit: str) -> str:
        """Say how many rows and cells there are, and where the first are; "" if none. unit: what a number counts."""
        rows = [f"{unit} {', '.join(map(str, self.first))}"] if self.first else []
        cells = [f"{unit} {line} in {column!r}" for line, column in self.first_cells]
        has = "has" if self.rows == 1 else "have"
        empty = f", or {has} no forecast or answer" * self.are_empty
        parts = [
            _without_commands("row", self.rows, self.rows - len(self.first), f"{empty}: {', '.join(rows)}"),
            _without_commands("cell", self.cells, self.cells - len(cells), f": {', '.join(cells)}"),
        ]
        return "; ".join(filter(None, parts))


def _without_commands(noun: str, count: int, more: int, lines: str) -> str:
    if not count:
        return ""
    fail = f"{noun}, which fails" if count == 1 else f"{noun}s, which fail"
    return (
        f"the map makes no command of {count:,} {fail} `where`, `present` or `above` of every command{lines}"
        + f" and {more:,} more" * bool(more)
    )


RECEIVED = "recorded_at"  # what `sort` calls the time of receipt, which is no field of a command
LOOKED_AT = 10_000  # commands at the beginning of a file, from which its order is judged
# command -> its instant, and the fields of what it may not go back on; `out_of_order` refuses the command if it does
_IN_ORDER: dict[type, tuple[str, tuple[str, ...]]] = {
    SubmitForecast: ("at", ("question", "participant")),
    WithdrawForecast: ("at", ("question", "participant")),
    Quote: ("quoted_at", ("question",)),
    RecordDecision: ("at", ("contest", "participant")),
}


class RowCommands(NamedTuple):
    """The commands of a row, or of a group of rows, and its first line."""

    line: int
    commands: Sequence[ReadCommand]


def sort_commands(rows: Iterable[RowCommands], field: str) -> list[ReadCommand]:
    """Return the commands of all rows in the order of an instant of each; those that have none come first.

    A command comes after those before it in its row. Commands of one instant keep the order of their rows; in a file
    that falls more often than it rises, the rows are turned round, because its newest row is its first. All commands
    are in memory: about 1,500 bytes each, and the bytes that are kept of their rows.
    """
    with gc_pause.paused():
        known = dict[int, int | None]()  # the instants of objects that many rows have, by their id
        keyed = [[(_instant(each, field, known), each) for each in row.commands] for row in rows]
        return _placed(keyed)


def _placed(keyed: list[list[tuple[int | None, ReadCommand]]]) -> list[ReadCommand]:
    """Return commands in the order of their instants, which are beside them, row by row."""
    first = [next((at for at, _ in row if at is not None), None) for row in keyed]
    steps = [after - before for before, after in pairwise(first) if before is not None and after is not None]
    if sum(step < 0 for step in steps) > sum(step > 0 for step in steps):
        keyed.reverse()
    placed = list[tuple[bool, int, ReadCommand]]()
    for row in keyed:
        latest = None
        for at, each in row:
            latest = at if latest is None else max(latest, at or latest)
            placed.append((latest is not None, latest or 0, each))
    placed.sort(key=itemgetter(0, 1))
    return [each for *_, each in placed]


def first_of_each(commands: Iterable[ReadCommand]) -> Iterator[ReadCommand]:
    """Return the commands without those that are one and the same object as one before; forecasts are none of these."""
    told = dict[int, Any]()  # objects by their id, which no other object has while they are here
    for location, command in commands:
        if id(command) not in told:
            if type(command) is not SubmitForecast:
                told[id(command)] = command
            yield location, command


def refuse_falling(commands: Iterator[ReadCommand]) -> Iterator[ReadCommand]:
    """Return the commands, of which the first `LOOKED_AT` are read at once.

    Refuses: out_of_order (more of their steps fall than rise: most commands would be refused, and the newest stand).
    """
    first = list(islice(commands, LOOKED_AT))
    times = [location.recorded_at for location, _ in first if location.recorded_at is not None]
    received = [after - before for before, after in pairwise(times)]
    for name, (falls, rises) in {
        RECEIVED: (sum(step < 0 for step in received), sum(step > 0 for step in received)),
        "at": _steps(first),
    }.items():
        if falls > rises:
            detail = (
                f"the file is mostly in falling order: {falls:,} of its first {falls + rises:,} commands that follow "
                "another one are earlier than that; nothing was recorded"
            )
            raise Refused("out_of_order", name, None, detail, remedy=f'write sort = "{name}" at the top of the map')
    return chain(first, commands)


def _steps(commands: Iterable[ReadCommand]) -> tuple[int, int]:
    """Return how many commands are earlier, and how many later, than the last of their type on the same subject."""
    last: dict[tuple[Any, ...], int] = {}
    falls = rises = 0
    for _, command in commands:
        if type(command) not in _IN_ORDER:
            continue
        field, subject = _IN_ORDER[type(command)]
        key = (type(command), *(getattr(command, name) for name in subject))
        with suppress(Refused, TypeError):  # the ledger refuses the command with its location
            at = read_instant(getattr(command, field))
            before = last.get(key, at)
            falls, rises = falls + (at < before), rises + (at > before)
            last[key] = at
    return falls, rises


def _instant(each: ReadCommand, field: str, known: dict[int, int | None]) -> int | None:
    location, command = each
    if field == RECEIVED:
        return location.recorded_at
    if isinstance(command, SubmitForecast | Refused):
        return _read_instant(command, field)
    if id(command) not in known:
        known[id(command)] = _read_instant(command, field)
    return known[id(command)]


def _read_instant(command: Any, field: str) -> int | None:
    with suppress(Refused, AttributeError):
        if not isinstance(command, Refused):
            return read_instant(getattr(command, field), field)
    return None


VALUE_MAP_HEADER = ["text", "value"]
LARGEST_VALUE_MAP = 2**24  # of such a file
_OUTSIDE = "/\\:\0"  # a name with one of these may lead to another folder


def with_value_maps(fields: Mapping[str, Any], path: str, folder: Path | None) -> dict[str, Any]:
    """Return fields of a map, with the table that is in a CSV instead of the name of the file.

    path: where the fields are in the map. folder: that of the map, in which such files are; None if it has none.
    Refuses: bad_map (no such file there, more than `LARGEST_VALUE_MAP`, another header, an empty cell, a text twice).
    """
    read = cache(lambda name: _read(name, folder))

    def replaced(part: Any, at: str) -> Any:
        """Return a part of the map with the contents of each value map instead of its file name."""
        if isinstance(part, list):
            return [replaced(item, f"{at}[{number}]") for number, item in enumerate(part)]
        if not isinstance(part, dict):
            return part
        if "from" in part:
            name = part.get("map")
            return {**part, "map": _at(f"{at}.map", name, read)} if isinstance(name, str) else part
        return {key: replaced(item, f"{at}.{key}") for key, item in part.items()}

    return {name: replaced(part, f"{path}.{name}") for name, part in fields.items()}


def _at(path: str, name: str, read: Callable[[str], dict[str, str]]) -> dict[str, str]:
    """Return the table of a file. Refuses: bad_map, with the path in the map."""
    try:
        return read(name)
    except OSError as error:
        fault = error.strerror or str(error)
    except ValueError as error:
        fault = str(error)
    remedy = "name a CSV with the columns text and value, in the folder of the map"
    raise Refused("bad_map", path, name, fault, remedy=remedy) from None


def _read(name: str, folder: Path | None) -> dict[str, str]:
    """Return the values by text. Raises OSError, ValueError."""
    if folder is None or name in {"", ".", ".."} or any(mark in name for mark in _OUTSIDE):
        raise ValueError("not the name of a file in the folder of the map")
    values, lines = dict[str, str](), dict[str, int]()
    with open_regular(folder / name, LARGEST_VALUE_MAP) as file:
        records = read_records(file)
        if next(records, (1, []))[1] != VALUE_MAP_HEADER:
            raise ValueError("its first line is not text,value")
        for line, cells in records:
            if isinstance(cells, Refused):
                raise ValueError(f"line {line}: {cells.detail or cells.meaning}")
            if len(cells) != len(VALUE_MAP_HEADER) or not all(cells):
                raise ValueError(f"line {line} does not have a text and a value")
            text, value = cells
            if text in lines:
                raise ValueError(f"lines {lines[text]} and {line} both have the text {text!r}")
            values[text], lines[text] = value, line
    if not values:
        raise ValueError("the file has no rows")
    return values
