"""Read a CSV file that may be malformed: in bounded memory, and only up to the first record that cannot be read."""

import csv
from collections.abc import Iterator
from typing import IO

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.writing.append import LONGEST_LINE, UTF_8_MARK

LONGEST_RECORD = 4 * LONGEST_LINE  # bytes; the csv module limits a cell to 131,072 characters

CsvRecord = tuple[int, list[str] | Refused]
SourceRecord = tuple[int, list[str] | Refused, bytes]


def read_records(file: IO[bytes], delimiter: str = ",") -> Iterator[CsvRecord]:
    """Return each record's first line and its cells, as `read_sources` does, without its bytes."""
    return ((line, cells) for line, cells, _ in read_sources(file, delimiter))


def read_sources(file: IO[bytes], delimiter: str = ",") -> Iterator[SourceRecord]:
    """Return each record's first line, its cells without outer spaces, and its bytes; blank lines are skipped.

    A record that cannot be read is the last, since its end is not known; its bytes are those read so far.
    Refuses: bad_csv.
    """
    lines = BoundedLines(file, LONGEST_LINE, LONGEST_RECORD)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        first = lines.number + 1
        lines.begin()
        try:
            cells = next(reader, None)
        except (csv.Error, UnicodeDecodeError, UnreadableError) as error:
            reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error).partition(" - ")[0]
            refused = Refused("bad_csv", "", None, f"{reason}; the lines after {lines.number} are not read")
            yield first, refused, lines.source()
            return
        if cells is None:
            return
        if cells:
            yield first, [cell.strip() for cell in cells], lines.source()


class UnreadableError(ValueError):
    """A line that is not text, or is too long."""


class BoundedLines:
    """The lines of a file as text, up to a number of bytes each and in each record.

    A caller that reads records calls `begin` before each.
    """

    def __init__(self, file: IO[bytes], longest: int, longest_record: int) -> None:
        self._file, self._longest, self._longest_record = file, longest, longest_record
        self._lines: list[bytes] = []
        self.number = self._taken = 0

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
        if b"\0" in line:
            raise UnreadableError("a line has a NUL byte: is the file a CSV in UTF-8?")
        return (line.removeprefix(UTF_8_MARK) if self.number == 1 else line).decode()
