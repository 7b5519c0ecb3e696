"""Read a CSV file that may be malformed: in bounded memory, and only up to the first record that cannot be read."""

import csv
import io
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

from forecast_ledger.ledger.core.errors import Refused
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
