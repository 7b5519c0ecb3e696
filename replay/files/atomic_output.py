"""Files that get their name only when they are complete, and the refused part of an input as such a file."""

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.writing.append import Outcome

_OLD = "old"  # the name, in this folder, of the file or folder that is being replaced
_SCRATCH: dict[Path, Path] = {}  # the scratch folders of this process, and the path that each is beside


@contextmanager
def scratch_folder(out: Path) -> Iterator[Path]:
    """Create a folder beside a path, and remove it at the end; its lock shows that its process is alive."""
    part, held = _new_name(out), -1
    _SCRATCH[part] = out
    try:
        held = _make_locked(part)
        yield part
    finally:
        _discard(part, out)
        del _SCRATCH[part]
        if held >= 0:
            os.close(held)


def discard_scratch_folders() -> None:
    """Remove the scratch folders of this process, which ends at once, while another thread still works in them.

    A folder gets another name first: then that thread can move nothing into it or out of it.
    """
    for part, out in list(_SCRATCH.items()):
        with suppress(OSError):  # it is not there yet, or no longer
            _discard(part.rename(_new_name(out)), out)


def _new_name(out: Path) -> Path:
    return out.with_name(f".{out.name}.{uuid4().hex}.part")


def move_into_place(new: Path, out: Path) -> None:
    """Move a complete file or folder from a scratch folder to its destination.

    A file replaces a file atomically; otherwise the old file or folder is moved away first. The contents are
    synchronised to disk before the move, and the new name before the return.
    """
    for path in (*new.rglob("*"), new):
        _sync(path)
    if os.path.lexists(out) and (_is_folder(out) or _is_folder(new)):
        out.replace(new.with_name(_OLD))
    new.replace(out)
    _sync(out.parent)


def clear_leftovers(out: Path) -> None:
    """Remove the scratch folders beside a path whose processes have ended; restore a path that one had moved away."""
    name = re.compile(rf"\.{re.escape(out.name)}\.[0-9a-f]{{32}}\.part")
    for part in [path for path in out.parent.glob(".*.part") if name.fullmatch(path.name)]:
        with suppress(OSError):  # it was removed meanwhile, or is not a scratch folder
            held = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_open_as(part, held):
                    _discard(part, out)
            finally:
                os.close(held)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems do not synchronise folders
            raise
    finally:
        os.close(opened)


def _make_locked(part: Path) -> int:
    """Create, open and lock a folder; retry if another process removes it before it is locked."""
    while True:
        part.mkdir()
        with suppress(FileNotFoundError):
            held = os.open(part, os.O_RDONLY)
            with suppress(OSError):  # the file system has no locks: then no process removes the folder
                fcntl.flock(held, fcntl.LOCK_EX)
            if _is_open_as(part, held):
                return held
            os.close(held)


def _discard(part: Path, out: Path) -> None:
    if os.path.lexists(part / _OLD) and not os.path.lexists(out):
        (part / _OLD).replace(out)
    shutil.rmtree(part, ignore_errors=True)


def _is_open_as(path: Path, opened: int) -> bool:
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(opened))
    except OSError:
        return False


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


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
