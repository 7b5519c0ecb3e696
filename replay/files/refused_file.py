"""The refused part of an input as a file of the same form, to be mended and sent again."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.files.atomic_output import clear_leftovers, move_into_place, scratch_folder
from forecast_ledger.replay.writing.append import Outcome


class RefusedFile:
    """Writes each record of the input, of which a command was refused, once.

    records: how many were written. too_long: the lines of those that are too long to be kept.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._lines: set[int] = set()
        self._ended = True  # the last record that was read was not refused
        self.too_long: list[int] = []

    @property
    def records(self) -> int:
        """How many records were written."""
        return len(self._lines) - len(self.too_long)

    def keep_refused(self, header: bytes, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """Pass outcomes on; write the header, then the records of each that is refused, once."""
        self._file.write(header)
        for item in outcomes:
            place, _, outcome = item
            self._ended = not isinstance(outcome, Refused)
            for line, record in () if self._ended else place.records:
                if line not in self._lines:
                    self._lines.add(line)
                    self._write(line, record)
            yield item

    def keep_rest(self, file: IO[bytes]) -> None:
        """Write what was not read of the input, because its last record is refused and has no end."""
        if not self._ended:
            shutil.copyfileobj(file, self._file)

    def _write(self, line: int, record: bytes) -> None:
        if record:
            self._file.write(record if record.endswith(b"\n") else record + b"\n")
        else:
            self.too_long.append(line)


@contextmanager
def refused_file(path: Path) -> Iterator[RefusedFile]:
    """Yield a file to write to; it is at the path, in place of what was there, once all is written.

    So the path may be that of the input. Raises OSError: the path is a folder or a device, or cannot be written.
    """
    if path.exists() and not path.is_file():
        raise OSError(f"{path}: not a regular file")
    clear_leftovers(path)
    with scratch_folder(path) as part:
        with (part / path.name).open("wb") as file:
            yield RefusedFile(file)
        move_into_place(part / path.name, path)
