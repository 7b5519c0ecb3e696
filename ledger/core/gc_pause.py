"""Pause the garbage collector while many small records are created; none of them is part of a reference cycle."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Disable the cycle collector: it would traverse a growing batch repeatedly, which takes as long as the batch."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
