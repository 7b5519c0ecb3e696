"""What differs between operating systems: opening files safely, locking folders, writing to disk for good.

Nothing else asks which system it is, but for signals and for the URL of a path.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

# --- Opening.


# How a file is opened to be read, as far as the system can: no link is followed, a FIFO does not block, bytes stay.
READ_SAFELY: int = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)


# --- Locking, and writing to disk for good.


LOCK_FILE = ".lock"  # in a folder that is open for writing, on a system that cannot lock the folder itself

if sys.platform == "win32":

    def _open(folder: Path) -> int:
        return os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_BINARY)

    def _opened(folder: Path) -> Path:
        return folder / LOCK_FILE

    def _take(descriptor: int, *, wait: bool) -> bool:
        from filelock import lock_descriptor  # noqa: PLC0415 - late: few commands lock a folder

        return bool(lock_descriptor(descriptor, blocking=wait))

    def sync_descriptor(descriptor: int) -> None:
        """Write what was written to an open file to disk for good. Raises OSError."""
        os.fsync(descriptor)

    def sync_path(path: Path) -> None:
        """Write a file to disk for good; the system does that with the names in a folder. Raises OSError."""
        if not path.is_dir():
            with path.open("rb+") as file:
                sync_descriptor(file.fileno())

else:
    import fcntl

    _FULL_SYNC: int | None = getattr(
        fcntl, "F_FULLFSYNC", None
    )  # on macOS, where fsync leaves bytes in the disk's memory

    def _open(folder: Path) -> int:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)

    def _opened(folder: Path) -> Path:
        return folder

    def _take(descriptor: int, *, wait: bool) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def sync_descriptor(descriptor: int) -> None:
        """Write what was written to an open file to disk for good. Raises OSError."""
        if _FULL_SYNC is not None:
            with suppress(OSError):  # the file system has only what follows
                fcntl.fcntl(descriptor, _FULL_SYNC)
                return
        os.fsync(descriptor)

    def sync_path(path: Path) -> None:
        """Write a file, or the names in a folder, to disk for good. Raises OSError."""
        opened = os.open(path, os.O_RDONLY)
        try:
            sync_descriptor(opened)
        finally:
            os.close(opened)


class FolderLock:
    """A folder, open so that it can be locked for one process. The system unlocks it when that process ends.

    Raises OSError: there is no such folder, or it is a link.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     first, second = FolderLock(Path(folder)), FolderLock(Path(folder))
    ...     taken = first.take(), second.take()
    ...     first.close()
    ...     print(taken, second.take())
    ...     second.close()
    (True, False) True
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._descriptor = folder, _open(folder)

    def take(self, *, wait: bool = False) -> bool:
        """Lock the folder; return whether it is locked now. wait: until nobody else has it locked.

        Raises OSError: the file system has no locks.
        """
        return _take(self._descriptor, wait=wait)

    def is_there(self) -> bool:
        """Return whether what is open is still at its path: nobody has removed or replaced it meanwhile."""
        try:
            return os.path.samestat(_opened(self._folder).lstat(), os.fstat(self._descriptor))
        except OSError:
            return False

    def close(self) -> None:
        """Unlock the folder, once or more often. No lock file is left, unless another process has it open."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            if (left := _opened(self._folder)) != self._folder:
                with suppress(OSError):  # where there are lock files, one that is open is not removed
                    left.unlink()
