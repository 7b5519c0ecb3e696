"""Opening files from other people safely: only regular files, up to a size limit; a FIFO does not block."""

import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import Any

_UNPACKED, _PACKED = 2**28, 100  # bytes of a column of a row group; compression ratio allowed above that


def open_regular(path: Path, most: int | None = None) -> BufferedReader:
    """Open a regular file for reading; symbolic links are not followed. most: the largest size allowed, in bytes.

    Raises OSError: the file does not exist; it is a link, folder, FIFO, socket or device; it is too large.
    ValueError: the path contains a NUL byte.
    """
    _check_regular(path, path.lstat())
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        _check_regular(path, status)
        if most is not None and status.st_size > most:
            raise OSError(f"{path}: the file has {status.st_size} bytes; at most {most} are allowed")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _check_regular(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{path}: not a regular file")


def check_packed(metadata: Any) -> None:
    """Raise ValueError if a small file would expand to more than memory holds; text does not compress that well."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for column in map(group.column, range(group.num_columns)):
            if column.total_uncompressed_size > max(_UNPACKED, _PACKED * column.total_compressed_size):
                raise ValueError(f"{column.path_in_schema}: {column.total_uncompressed_size} bytes, uncompressed")
