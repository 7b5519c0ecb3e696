"""Processes that a test starts: forked from a server, which imports modules once for all of them."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import DupFd
from resource import RLIMIT_AS, setrlimit
from subprocess import CompletedProcess, TimeoutExpired
from threading import Thread
from typing import IO, Any

_COMMANDS = (  # what the commands import when they run
    "forecast_ledger.replay.cli.main",
    "forecast_ledger.replay.audit.verify",
    "forecast_ledger.replay.explain.explain_boards",
    "forecast_ledger.replay.explain.what_if",
    "forecast_ledger.replay.files.export",
    "forecast_ledger.replay.files.restore",
    "forecast_ledger.replay.files.sqlite_export",
    "forecast_ledger.replay.readmodel.runner",
)


def forking(*modules: str) -> ForkServerContext:
    """A way to start processes that run functions of a module; each has its own memory, and no thread or lock of ours.

    A server that runs already, for other modules, stays: then the processes import these themselves.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload([*modules, *_COMMANDS])
    return context


class _Passed:
    """A file that a new process has from its first moment on, so that nobody else keeps it open if that is killed."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _taken, (DupFd(self.number),)  # made while the process is started, it goes along with it


def _taken(passed: Any) -> int:
    number: int = passed.detach()
    return number


def started(
    arguments: Sequence[str],
    files: Sequence[int],
    environment: Mapping[str, str | None] | None = None,
    memory: int = 0,
    program: str = "",
) -> BaseProcess:
    """Start the command line in a process of its own, in a tenth of the time that a new interpreter takes.

    files: its stdout and stderr, which are closed here. environment: variables besides those of this process; without
    those that are None. memory: the most bytes of its address space; 0 for no limit. program: Python to run in place of
    the command line, with the same arguments.
    """
    given = (arguments, dict(environment or {}), memory, [*map(_Passed, files)], program)
    process = forking().Process(target=_run, args=given)
    process.start()
    for file in files:
        os.close(file)
    return process


class Command:
    """The command line, or a program, in a process of its own; see `started`.

    It is used like `subprocess.Popen`; stdout and stderr are pipes, read as UTF-8.
    """

    def __init__(
        self, *arguments: str, environment: Mapping[str, str] | None = None, memory: int = 0, program: str = ""
    ) -> None:
        pipes = [os.pipe() for _ in range(2)]
        self._process = started(arguments, [writing for _, writing in pipes], environment, memory, program)
        self.stdout, self.stderr = (os.fdopen(reading, encoding="utf-8") for reading, _ in pipes)
        self.args = arguments

    @property
    def pid(self) -> int:
        """The id of the process."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int:
        """The exit code of a process that has ended; the number of the signal that ended it is negative."""
        assert self._process.exitcode is not None
        return self._process.exitcode

    def poll(self) -> int | None:
        """The exit code; None as long as it runs."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; return its exit code. Raises TimeoutExpired."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait until it has ended; return what it wrote and was not read yet. Raises TimeoutExpired."""
        texts: dict[IO[str], str] = {}
        readers = [Thread(target=_read, args=(stream, texts), daemon=True) for stream in (self.stdout, self.stderr)]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader in readers:
            reader.join(timeout)
        return texts[self.stdout], texts[self.stderr]

    def ended(self, timeout: float) -> "CompletedProcess[str]":
        """Wait until it has ended; return its exit code and output. Raises TimeoutExpired."""
        stdout, stderr = self.communicate(timeout)
        return CompletedProcess(self.args, self.returncode, stdout, stderr)


def _read(stream: IO[str], texts: dict[IO[str], str]) -> None:
    with stream:
        texts[stream] = stream.read()


def _run(arguments: list[str], environment: dict[str, str | None], memory: int, files: list[int], program: str) -> None:
    """Run the command line, or a program, in this process as a new interpreter does."""
    for number, writing in enumerate(files, 1):
        os.dup2(writing, number)
        os.close(writing)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", closefd=False)  # line by line, as in a new interpreter
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # blocked if the server was started by a pool
    for name, value in environment.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    if memory:
        setrlimit(RLIMIT_AS, (memory, memory))
    sys.argv = ["forecast-ledger", *arguments]
    if program:
        exec(program, {"__name__": "__main__"})  # noqa: S102 - of a test
    else:
        import_module("forecast_ledger.__main__").run()
