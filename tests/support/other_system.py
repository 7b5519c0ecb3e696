"""A system that is not POSIX, emulated on Linux: `python -m tests.support.other_system` runs commands as if on it.

It has the limits of Windows as far as Python shows them. Modules and names of POSIX do not exist. A folder cannot be
opened as a file. A file that is open can neither be removed, nor replaced, nor renamed; nor can a folder around it. A
file that is open only for reading cannot be synchronised. Some characters are in no file name. A process starts anew,
never as a copy. `sys.platform` is "win32" for the modules of this project alone, since libraries are built for Linux.

Each line of stdin is a JSON array, the arguments of one command; each line of stdout is its exit code and its output.
"""

import builtins
import errno
import fcntl
import io
import json
import multiprocessing.context
import os
import shutil
import signal
import sys
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module as import_library
from pathlib import Path
from types import ModuleType
from typing import Any

LIBRARIES = ("numpy", "pyarrow.parquet")  # built for this system, which they ask for as they are imported
MODULES = ("fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty")
NAMES: dict[ModuleType, tuple[str, ...]] = {
    os: (
        *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_SYNC", "chown", "chroot", "fchmod"),
        *("fchown", "fdatasync", "fork", "forkpty", "getegid", "geteuid", "getgid", "getgroups", "getpgid", "getpgrp"),
        *("getuid", "killpg", "lchown", "mkfifo", "mknod", "nice", "openpty", "posix_fadvise", "posix_fallocate"),
        *("pread", "preadv", "pwrite", "pwritev", "sched_getaffinity", "sched_setaffinity", "sendfile", "setpgid"),
        *("setsid", "setuid", "statvfs", "sync", "uname", "wait3", "wait4"),
    ),
    signal: (
        *("SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGPIPE", "SIGQUIT", "SIGSTOP", "SIGUSR1", "SIGUSR2"),
        *("SIG_BLOCK", "SIG_SETMASK", "SIG_UNBLOCK", "alarm", "pause", "pthread_kill", "pthread_sigmask", "setitimer"),
        *("siginterrupt", "sigpending", "sigtimedwait", "sigwait", "sigwaitinfo"),
    ),
}
_BINARY = 1 << 30  # a flag that Linux ignores
_FORBIDDEN = {*'<>:"|?*', *map(chr, range(32))}
_OURS = "forecast_ledger"
_RUN_BY_SYSTEM = (sys.prefix, sys.base_prefix, "/proc/", "/sys/", "/dev/", "/etc/", "/usr/", "/lib")

_lock, _flags = fcntl.flock, fcntl.fcntl
_EXCLUSIVE, _AT_ONCE, _GET_FLAGS = fcntl.LOCK_EX, fcntl.LOCK_NB, fcntl.F_GETFL


class _Sys:
    """The module `sys` as the modules of this project see it."""

    platform = "win32"

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(sys, name, value)


def lock_descriptor(descriptor: int, *, blocking: bool = True) -> bool:
    """What `filelock` has under this name on Windows: lock a file that is open."""
    try:
        _lock(descriptor, _EXCLUSIVE if blocking else _EXCLUSIVE | _AT_ONCE)
    except BlockingIOError:
        return False
    return True


def _is_open(path: str) -> bool:
    """Whether this process has a file open that is at a path, or in the folder there."""
    inside = os.path.join(os.path.realpath(path), "")  # noqa: PTH118 - a path that ends in a slash
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208
        try:
            opened = os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115
        except OSError:
            continue
        if f"{opened}/".startswith(inside) and not os.path.isdir(opened):  # noqa: PTH112
            return True
    return False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse what Windows refuses; Python calls this before it opens, renames or removes a file."""
    if event not in {"open", "os.mkdir", "os.remove", "os.rename", "os.rmdir"}:
        return
    path = arguments[0]
    if isinstance(path, int) or not path:
        return
    path = os.fsdecode(path)
    if path.startswith(_RUN_BY_SYSTEM):
        return
    if _FORBIDDEN & {*os.path.basename(path)}:  # noqa: PTH119
        raise OSError(errno.EINVAL, "not the name of a file on Windows", path)
    if event == "open" and os.path.isdir(path):  # noqa: PTH112
        raise PermissionError(errno.EACCES, "a folder is no file on Windows", path)
    if event == "open" and arguments[1] is None and not arguments[2] & _BINARY and _is_ours():
        raise OSError(errno.EINVAL, "opened for text, which changes bytes on Windows", path)
    if event == "os.rename" and _is_open(os.fsdecode(arguments[1])):
        raise PermissionError(errno.EACCES, "open, so not replaced on Windows", os.fsdecode(arguments[1]))
    if event in {"os.rename", "os.remove", "os.rmdir"} and _is_open(path):
        raise PermissionError(errno.EACCES, "open, so neither renamed nor removed on Windows", path)


def _is_ours() -> bool:
    """Whether a module of this project called for what is watched."""
    name = sys._getframe(2).f_globals.get("__name__", "")
    return str(name).startswith(_OURS)


def become_other() -> None:
    """Make this process one on the other system; call it before anything of this project is imported."""
    for library in LIBRARIES:
        import_library(library)
    for module in MODULES:
        sys.modules[module] = None  # type: ignore[assignment]  # which refuses to import it
    for owner, names in NAMES.items():
        for name in names:
            if hasattr(owner, name):
                delattr(owner, name)
    os.O_BINARY = _BINARY  # type: ignore[attr-defined]
    shutil._use_fd_functions = shutil._USE_CP_SENDFILE = False  # type: ignore[attr-defined]
    if hasattr(shutil, "_rmtree_unsafe"):
        shutil._rmtree_impl = shutil._rmtree_unsafe  # type: ignore[attr-defined]  # of Python 3.14
    standin: Any = ModuleType("filelock")
    standin.lock_descriptor = lock_descriptor
    sys.modules["filelock"] = standin
    contexts = multiprocessing.context._concrete_contexts  # type: ignore[attr-defined]
    for method in {*contexts} - {"spawn"}:
        del contexts[method]
    imported, synchronise, shown = builtins.__import__, os.fsync, _Sys()

    def import_module(name: str, globals: Any = None, *rest: Any, **named: Any) -> Any:  # noqa: A002 - as Python calls it
        is_ours = name == "sys" and str((globals or {}).get("__name__", "")).startswith(_OURS)
        return shown if is_ours else imported(name, globals, *rest, **named)

    def fsync(descriptor: int) -> None:
        if _flags(descriptor, _GET_FLAGS) & (os.O_WRONLY | os.O_RDWR) == 0:
            raise OSError(errno.EBADF, "open only for reading, so not synchronised on Windows")
        synchronise(descriptor)

    builtins.__import__ = import_module
    os.fsync = fsync  # type: ignore[assignment]
    sys.addaudithook(_watch)


def run(arguments: list[str]) -> tuple[int, str]:
    """The exit code of a command, and what it prints to stdout and stderr."""
    from forecast_ledger.replay.cli.main import main  # noqa: PLC0415 - on the other system

    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    code = 0
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            main.main(arguments, prog_name="forecast-ledger")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            traceback.print_exc()
            code = -1
    printed.flush()
    buffer: Any = printed.buffer
    return code, buffer.getvalue().decode()


def answer() -> None:
    """Run the commands that stdin gives."""
    become_other()
    warnings.filterwarnings("error", category=EncodingWarning, module=_OURS)
    for line in Path("commands.jsonl").read_text(encoding="utf-8").splitlines():
        print(json.dumps(run(json.loads(line))), flush=True)  # noqa: T201 - to the test


if __name__ == "__main__":
    answer()
