"""Pause the garbage collector while many small records are created; none of them is part of a reference cycle."""

import gc


class _Pause:
    """A pause for a block. It is a class because that takes a third of the time of a generator."""

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_enabled:
            gc.enable()


def paused() -> _Pause:
    """Disable the cycle collector: it would traverse a growing batch repeatedly, which takes as long as the batch."""
    return _Pause()
