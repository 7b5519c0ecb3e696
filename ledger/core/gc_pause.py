"""Pausing the garbage collector while many small records are made; none of them is part of a cycle."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Keep the cycle collector from walking a growing batch again and again, which costs as much as the batch."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
