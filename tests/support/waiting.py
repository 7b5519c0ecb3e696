"""Waiting for a condition, not for a time: a busy machine takes longer, and a quiet one waits for nothing."""

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 30.0  # s


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, which fails a test if it takes half a minute."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.01)


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
