"""Files from other people, opened safely: only regular files, up to a size limit; a FIFO does not block.

A folder can be in an object store, such as s3://bucket/season-segments, which fsspec and its packages for stores know.
"""

import errno
import io
import os
import re
import stat
import sys
from collections.abc import Callable
from importlib import import_module
from io import BufferedReader
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeVar

from forecast_ledger.ledger.core.errors import Unavailable, installing
from forecast_ledger.ledger.core.redaction import redacted
from forecast_ledger.ledger.core.systems import READ_SAFELY


def open_regular(path: Path, most: int | None = None) -> BufferedReader:
    """Open a regular file for reading; symbolic links are not followed. most: the largest size allowed, in bytes.

    path: also of a remote file, as `remote_files.folder_at` returns.

    Raises OSError: the file does not exist; it is a link, folder, FIFO, socket or device; it is too large.
    ValueError: the path contains a NUL byte.
    """
    if not isinstance(path, Path):
        return open_remote(path, most)
    _check_regular(path, path.lstat())
    descriptor = os.open(path, READ_SAFELY)
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


_READ_AHEAD = 1 << 20  # bytes
_DATABASES = {"sqlite", "postgresql", "postgres"}  # URLs that do not name a folder
_LOCAL = {"file", "local"}  # URLs of paths on this machine, by the names that fsspec has for them
_DRIVE = re.compile("/[A-Za-z]:")  # how the URL of a path with a drive begins: file:///C:/seasons/spring.db
_NEEDED = f"for the URL of a folder in an object store, {installing('remote')}"
_Result = TypeVar("_Result")


def is_remote(location: str | PathLike[str]) -> bool:
    """Return whether a location is the URL of a folder.

    >>> [is_remote(each) for each in ("s3://bucket/season-segments", "postgresql://host/ledgers", "season-segments")]
    [True, False, False]
    """
    return _scheme(location) not in {"", *_DATABASES, *_LOCAL}


def _scheme(location: str | PathLike[str]) -> str:
    match = re.match(r"([a-z][a-z0-9+.-]*)://", fspath(location), re.ASCII)
    return match[1] if match else ""


def path_in(location: str | PathLike[str]) -> str:
    """Return the path that a file:// URL names; any other location is returned as it is.

    >>> path_in("file:///seasons/spring-segments"), path_in("spring.db")
    ('/seasons/spring-segments', 'spring.db')
    """
    if _scheme(location) not in _LOCAL:
        return fspath(location)
    path = fspath(location).partition("://")[2]
    return path.removeprefix("/") if sys.platform == "win32" and _DRIVE.match(path) else path


def folder_at(location: str | PathLike[str]) -> Path:
    """Return the folder at a path or a URL. A remote one can only be joined, opened and pickled.

    Raises Unavailable: it is a URL, and its kind of store is not known, needs a package, or cannot be used.
    """
    if not is_remote(location):
        return Path(path_in(location))
    scheme, shown = _scheme(location), redacted(location)
    if "::" in fspath(location) and not is_remote(fspath(location).rpartition("::")[2]):
        raise Unavailable(f"{shown}: an archive on this machine is not read; unpack it, and give the folder")
    unknown = f"{scheme}:// is not supported; give a file path or a postgresql:// URL"
    try:
        import_module("fsspec").get_filesystem_class(scheme)
        folder: Path = import_module("upath").UPath(fspath(location))
        _ = folder.fs, folder / "name"  # type: ignore[attr-defined]  # which makes what reads the store
    except ImportError as error:
        reason = f"{unknown}; {_NEEDED}" if error.name in {"upath", "fsspec"} else str(error)
        raise Unavailable(f"{shown}: {reason}") from None
    except Exception as error:  # each kind of store has errors of its own
        is_unknown = str(error).startswith("Protocol not known")
        reason = f"{unknown}, or that of a folder in an object store" if is_unknown else _told(error, location)
        raise Unavailable(f"{shown}: {reason}") from None  # the error may name the location with its password
    return folder


def _told(error: Exception, location: object) -> str:
    """Return an error of a library in words; it may repeat the location."""
    return f"{type(error).__name__}: {str(error).replace(str(location), redacted(location))}"


def open_remote(path: Any, most: int | None = None) -> io.BufferedReader:
    """Open a remote file for reading. most: the largest size allowed, in bytes.

    Raises FileNotFoundError, OSError (it is too large), Unavailable (it cannot be read now; later reading raises that
    too).
    """
    file = _Remote(path)
    if most is not None and (size := file.seek(0, io.SEEK_END)) > most:
        file.close()
        raise OSError(f"{redacted(path)}: the file has {size} bytes; at most {most} are allowed")
    file.seek(0)
    return io.BufferedReader(file, _READ_AHEAD)


class _Remote(io.RawIOBase):
    """A remote file. It raises FileNotFoundError, and Unavailable for any other fault of the store."""

    def __init__(self, path: Any) -> None:
        self._path = path
        self._file = self._tried(lambda: path.open("rb"))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._tried(lambda: int(self._file.seek(offset, whence)))

    def tell(self) -> int:
        return self._tried(lambda: int(self._file.tell()))

    def readinto(self, buffer: Any) -> int:
        read = self._tried(lambda: bytes(self._file.read(len(buffer))))
        buffer[: len(read)] = read
        return len(read)

    def close(self) -> None:
        if not self.closed and hasattr(self, "_file"):
            self._file.close()
        super().close()

    def _tried(self, step: Callable[[], _Result]) -> _Result:
        try:
            return step()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FileNotFoundError(errno.ENOENT, "No such file") from error
        except Exception as error:  # each kind of store has errors of its own
            raise Unavailable(f"{redacted(self._path)}: {_told(error, self._path)}; try again") from None
