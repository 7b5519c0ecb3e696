"""Waiting for a condition, not for a time: a busy machine takes longer, and a quiet one waits for nothing."""

import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
PATIENCE = 300.0  # s, for what comes at once: a machine may stand still meanwhile, more than once


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds, which fails a test if it takes longer than PATIENCE."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.01)


def is_so_within(seconds: float, condition: Callable[[], object]) -> bool:
    """Whether a condition comes true in time, during which this process does not stand still: it looks a hundred times
    a second, and counts.
    """
    for _ in range(int(100 * seconds)):
        if condition():
            return True
        time.sleep(0.01)
    return bool(condition())


def quick(
    seconds: float, clock: Callable[[], float] = time.process_time
) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """A decorator: the function takes less than so many seconds, at one of three calls, or the test fails.

    clock: by default that of the processor, for which other programs do not count; but the machine may stand still.
    """

    def decorate(work: Callable[_P, _T]) -> Callable[_P, _T]:
        @wraps(work)
        def timed(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            for _ in range(3):
                begun = clock()
                done = work(*args, **kwargs)
                if clock() - begun < seconds:
                    return done
            raise AssertionError(f"it takes longer than {seconds} s")

        return timed

    return decorate


def wait_until_asleep(process: int) -> None:
    """Wait until the main thread of a process waits for something; 0.2 s on a system that does not say so."""
    status = Path(f"/proc/{process}/stat")
    if not status.exists():
        time.sleep(0.2)
        return
    wait_until(lambda: status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "S")


def wait_until_signalled(process: int) -> None:
    """Wait until no signal waits for a process: it has received all; 0.2 s on a system that does not say so."""
    status = Path(f"/proc/{process}/status")
    if not status.exists():
        time.sleep(0.2)
        return
    wait_until(lambda: "\nShdPnd:\t0000000000000000\n" in status.read_text(encoding="utf-8"))
