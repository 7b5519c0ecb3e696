"""Read a CSV file that may be malformed: in bounded memory, and only up to the first record that cannot be read."""

import csv
from collections.abc import Iterator
from typing import IO

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.writing.append import LONGEST_LINE, UTF_8_MARK

LONGEST_RECORD = 4 * LONGEST_LINE  # bytes; the csv module limits a cell to 131,072 characters

CsvRecord = tuple[int, list[str] | Refused]


def read_records(file: IO[bytes], delimiter: str = ",") -> Iterator[CsvRecord]:
    """Return each record's first line and its cells, without outer spaces; blank lines are skipped.

    A record that cannot be read is the last, since its end is not known. Refuses: bad_csv.
    """
    lines = BoundedLines(file, LONGEST_LINE, LONGEST_RECORD)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        first = lines.number + 1
        lines.taken = 0
        try:
            cells = next(reader, None)
        except (csv.Error, UnicodeDecodeError, UnreadableError) as error:
            reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error).partition(" - ")[0]
            yield first, Refused("bad_csv", "", None, f"{reason}; the lines after {lines.number} are not read")
            return
        if cells is None:
            return
        if cells:
            yield first, [cell.strip() for cell in cells]


class UnreadableError(ValueError):
    """A line that is not text, or is too long."""


class BoundedLines:
    """The lines of a file as text, up to a number of bytes each. taken: the bytes read so far of the current record.

    A caller that reads records sets `taken` to 0 before each record.
    """

    def __init__(self, file: IO[bytes], longest: int, longest_record: int) -> None:
        self._file, self._longest, self._longest_record = file, longest, longest_record
        self.number = self.taken = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._file.readline(self._longest + 1)
        if not line:
            raise StopIteration
        self.number += 1
        self.taken += len(line)
        if len(line) > self._longest:
            raise UnreadableError(f"a line has more than {self._longest} bytes")
        if self.taken > self._longest_record:
            raise UnreadableError(f"a row has more than {self._longest_record} bytes: is a quotation mark missing?")
        if b"\0" in line:
            raise UnreadableError("a line has a NUL byte: is the file a CSV in UTF-8?")
        return (line.removeprefix(UTF_8_MARK) if self.number == 1 else line).decode()
