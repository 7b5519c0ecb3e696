"""Opening files from other people safely: only regular files, up to a size limit; a FIFO does not block."""

import os
import stat
from io import BufferedReader
from pathlib import Path

from forecast_ledger.ledger.core.remote_files import open_remote


def open_regular(path: Path, most: int | None = None) -> BufferedReader:
    """Open a regular file for reading; symbolic links are not followed. most: the largest size allowed, in bytes.

    path: also of a remote file, as `remote_files.folder_at` returns.

    Raises OSError: the file does not exist; it is a link, folder, FIFO, socket or device; it is too large.
    ValueError: the path contains a NUL byte.
    """
    if not isinstance(path, Path):
        return open_remote(path, most)
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
