"""Signals that end a command: what a command does when the user or the system stops it."""

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from threading import Event, Thread, current_thread, main_thread
from typing import IO, TYPE_CHECKING

from forecast_ledger.ledger.storing.forks import holds_nothing, send_soon

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

# --- The standard streams, from the start of a command to its end.


def prepare_streams() -> None:
    """Replace closed standard streams by the null device, and let stdout accept every character.

    Unless stdout is a terminal, which has an encoding of its own, the encoding is UTF-8, and lines end in LF.
    """
    sys.stdin = sys.stdin or Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - stays open until the process ends
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        encoding = None if sys.stdout.isatty() else "utf-8"
        newline = None if sys.stdout.isatty() else "\n"  # the bytes of a file are the same on every system
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace", newline=newline)


def write_last(stream: IO[str]) -> None:
    """Flush a stream for the last time.

    If that fails, the rest goes to the null device, because Python flushes again when it ends.
    """
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


_GRACE = 1.5  # seconds that a command has to end by itself after a signal
_ENDING = {signal.SIGINT, signal.SIGTERM}

reported = Event()  # the command itself has printed which signal ends it


def end_in_time() -> None:
    """From now on, end this process 1.5 s after SIGINT or SIGTERM, or at the next one, if it has not ended by itself.

    A command ends by itself as soon as Python calls the handler, which it does not do while the main thread is inside a
    library, or waits for a lock that nobody gives back. For a program of its own alone: of all clean-up, only scratch
    folders are removed.
    """
    told, telling = socket.socketpair()
    thread = Thread(target=_end_process, args=(told,), daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the system has no more threads: a command ends by itself alone
        return
    telling.setblocking(False)
    signal.set_wakeup_fd(telling.detach(), warn_on_full_buffer=False)
    holds_nothing(thread)


def _end_process(told: socket.socket) -> None:
    """Wait for a signal, then a while or for another one; then end the processes of this one, and this one."""
    number = _received(told, None)
    _received(told, _GRACE)
    try:
        if "multiprocessing" in sys.modules:
            from multiprocessing import active_children

            for child in active_children():
                child.kill()
        if "forecast_ledger.replay.files.manifest" in sys.modules:
            from forecast_ledger.replay.files.manifest import discard_scratch_folders

            discard_scratch_folders()
    finally:
        if not reported.is_set():
            os.write(2, f"forecast-ledger: stopped by {signal.Signals(number).name}\n".encode())
        os._exit(128 + number)


def _received(told: socket.socket, seconds: float | None) -> int:
    """Return the number of the next signal that ends a command; 0 if none comes within so many seconds."""
    told.settimeout(seconds)
    while True:
        try:
            number = told.recv(1)[0]
        except TimeoutError:
            return 0
        if number in _ENDING:
            return number


@contextmanager
def unwrapped_interrupts() -> Iterator[None]:
    """Raise an interrupt as itself: before 3.12, Python makes a RuntimeError of one that comes in `__set_name__`.

    Classes of enumerations, for one, are made there, while modules are imported.
    """
    try:
        yield
    except RuntimeError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end the work as SIGINT does, so that nothing half done is left, unless SIGTERM has a handler.

    Python drops a KeyboardInterrupt that a destructor raises. Such a signal is sent again.
    """
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        with unwrapped_interrupts():
            yield
        return

    def end(number: int, _: object) -> None:
        raise KeyboardInterrupt(number)

    before, sys.unraisablehook = sys.unraisablehook, _send_again
    signal.signal(signal.SIGTERM, end)
    try:
        with unwrapped_interrupts():
            yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.unraisablehook = before


def signal_of(stopped: KeyboardInterrupt) -> signal.Signals:
    """Return the signal that raised an interrupt; one without a number is SIGINT's."""
    return signal.Signals(*stopped.args or [signal.SIGINT])


def _send_again(unraisable: "UnraisableHookArgs") -> None:
    """Raise an interrupt again outside the destructor that it ended; report every other error as Python does."""
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    send_soon(signal_of(unraisable.exc_value))
