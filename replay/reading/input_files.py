"""Opening files that others made: only regular ones, none larger than it may be; a FIFO is not waited for."""

import os
import stat
from io import BufferedReader
from pathlib import Path

from forecast_ledger.ledger.storing.database import LONGEST

MANIFEST_BYTES = 2**20  # of a manifest
MAP_BYTES = 2**20  # of a map for CSV
ROW_BYTES = LONGEST  # of a row of a log or table, as it is written


def regular(path: Path, most: int | None = None) -> BufferedReader:
    """A file opened for reading; symbolic links are not followed. most: bytes.

    Raises OSError: there is none; it is a link, folder, FIFO, socket or device; it is larger. ValueError: no path.
    """
    _check_regular(path, path.lstat())
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(opened)
        _check_regular(path, found)
        if most is not None and found.st_size > most:
            raise OSError(f"{path}: has {found.st_size} bytes; at most {most} are read")
        return os.fdopen(opened, "rb")
    except BaseException:
        os.close(opened)
        raise


def _check_regular(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(f"{path}: not a regular file")
