"""Seconds that a step takes, each measured several times, since machines are shared."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

RUNS = 3


@contextmanager
def timed(into: list[float]) -> Iterator[None]:
    """Append the seconds that the block takes; garbage is collected before it starts."""
    gc.collect()
    before = time.perf_counter()
    yield
    into.append(time.perf_counter() - before)


def cpu(step: Callable[[], Any]) -> float:
    """The least seconds of the processor of a few runs."""
    taken = []
    for _ in range(RUNS):
        begun = time.process_time()
        step()
        taken.append(time.process_time() - begun)
    return min(taken)


def fastest(step: Callable[[], Any]) -> float:
    """The seconds of the fastest of several runs."""
    seconds: list[float] = []
    for _ in range(2 * RUNS):
        with timed(seconds):
            step()
    return min(seconds)
