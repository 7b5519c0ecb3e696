"""Signals that end a command: what a command does when the user or the system stops it."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_SOON = 0.01  # seconds


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end the work as SIGINT does, so that nothing half done is left, unless SIGTERM has a handler.

    Python drops a KeyboardInterrupt that a destructor raises. Such a signal is sent again.
    """
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(number: int, _: object) -> None:
        raise KeyboardInterrupt(number)

    before, sys.unraisablehook = sys.unraisablehook, _send_again
    signal.signal(signal.SIGTERM, end)
    try:
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
    timer = Timer(_SOON, os.kill, [os.getpid(), signal_of(unraisable.exc_value)])
    timer.daemon = True
    timer.start()
