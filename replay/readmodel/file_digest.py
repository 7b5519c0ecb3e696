"""The digest of a read model's file when its runner ended, so that the next one need not compare every row.

It is in a file beside the read model, as `sha256sum` writes it. A file with another digest is not wrong: its rows are
then compared with the digests of their parts.
"""

import os
from contextlib import suppress
from hashlib import file_digest
from pathlib import Path

BESIDE = "-sha256"
_LARGEST = 4_096  # bytes that are read of the file beside


def is_unchanged(path: str) -> bool:
    """Return whether a file is as it was when its digest was written; call it while a transaction is open.

    Pages that are still in the write-ahead log count as a change.
    """
    try:
        if os.path.getsize(f"{path}-wal"):  # noqa: PTH202 - as SQLite names it
            return False
    except FileNotFoundError:
        pass
    except OSError:
        return False
    try:
        with Path(path + BESIDE).open("rb") as file:
            stated = file.read(_LARGEST)
        return stated == _line(path)
    except OSError:
        return False


def write(path: str) -> None:
    """Write the digest of a file that no connection is writing. A folder that is full, or read-only, gets none."""
    with suppress(OSError):
        Path(path + BESIDE).write_bytes(_line(path))


def _line(path: str) -> bytes:
    with Path(path).open("rb") as file:
        return f"{file_digest(file, 'sha256').hexdigest()}  {Path(path).name}\n".encode()
