"""Where files are written before they are whole: a hidden folder beside their place, which goes with its process."""

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

_OLD = "old"  # within it, what had the name until the new one had it


@contextmanager
def scratch(out: Path) -> Iterator[Path]:
    """A folder beside a path, gone afterwards. It is locked, which tells it from one whose process was killed."""
    part, held = out.with_name(f".{out.name}.{uuid4().hex}.part"), -1
    try:
        held = _made(part)
        yield part
    finally:
        _discard(part, out)
        if held >= 0:
            os.close(held)


def put(new: Path, out: Path) -> None:
    """Give what is whole in a scratch folder its name; a file replaces a file at once, else the old one makes room.

    It is on the disk before it has its name, and has its name on the disk on return.
    """
    for path in (*new.rglob("*"), new):
        _sync(path)
    if os.path.lexists(out) and (_is_folder(out) or _is_folder(new)):
        out.replace(new.with_name(_OLD))
    new.replace(out)
    _sync(out.parent)


def clear(out: Path) -> None:
    """Remove the scratch folders beside a path whose processes are no more; a path that had made room is put back."""
    name = re.compile(rf"\.{re.escape(out.name)}\.[0-9a-f]{{32}}\.part")
    for part in [path for path in out.parent.glob(".*.part") if name.fullmatch(path.name)]:
        with suppress(OSError):  # it has just gone, or is no folder of ours
            held = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _leads_to(part, held):
                    _discard(part, out)
            finally:
                os.close(held)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems of networks do not synchronise folders
            raise
    finally:
        os.close(opened)


def _made(part: Path) -> int:
    """A new folder, opened and locked; again, if another process has cleared it away before it was locked."""
    while True:
        part.mkdir()
        with suppress(FileNotFoundError):
            held = os.open(part, os.O_RDONLY)
            with suppress(OSError):  # a file system without locks: then nobody clears anything away
                fcntl.flock(held, fcntl.LOCK_EX)
            if _leads_to(part, held):
                return held
            os.close(held)


def _discard(part: Path, out: Path) -> None:
    if os.path.lexists(part / _OLD) and not os.path.lexists(out):
        (part / _OLD).replace(out)
    shutil.rmtree(part, ignore_errors=True)


def _leads_to(path: Path, opened: int) -> bool:
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(opened))
    except OSError:
        return False


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
