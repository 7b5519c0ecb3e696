"""Reading a CSV that may be anything: in bounded memory, and not a record further than it can be trusted."""

import csv
from collections.abc import Iterator
from typing import IO

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.writing.append import LONGEST, MARK

LONGEST_RECORD = 4 * LONGEST  # bytes; a cell holds as many characters as the csv module lets it, 131,072

Record = tuple[int, list[str] | Refused]


def records(file: IO[bytes], delimiter: str = ",") -> Iterator[Record]:
    """Each record's first line and its cells, without outer spaces; blank lines are passed over.

    A record that cannot be read is the last: where one ends that is quoted wrongly, nobody knows. Refuses: bad_csv.
    """
    lines = Lines(file, LONGEST, LONGEST_RECORD)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        first = lines.number + 1
        lines.taken = 0
        try:
            cells = next(reader, None)
        except (csv.Error, UnicodeDecodeError, UnreadableError) as error:
            reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error).partition(" - ")[0]
            yield first, Refused("bad_csv", "", None, f"{reason}; nothing after line {lines.number} is read")
            return
        if cells is None:
            return
        if cells:
            yield first, [cell.strip() for cell in cells]


class UnreadableError(ValueError):
    """A line that is no line of text, or too long."""


class Lines:
    """A file's lines as text, none longer than so many bytes. taken: how many bytes have been read of a record.

    Whoever reads records sets taken to 0 before each; else what `longest_record` bounds is a line.
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
            raise UnreadableError(f"a line of more than {self._longest} bytes")
        if self.taken > self._longest_record:
            raise UnreadableError(f"a row of more than {self._longest_record} bytes: is a quote not closed?")
        if b"\0" in line:
            raise UnreadableError("a NUL byte: is this a CSV in UTF-8?")
        return (line.removeprefix(MARK) if self.number == 1 else line).decode()
