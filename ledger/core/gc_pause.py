"""Pause the garbage collector while many small records are created; none of them is part of a reference cycle."""

import gc
import os


class _Pause:
    """A pause for a block. It is a class because that takes a third of the time of a generator."""

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        if self._was_enabled:
            _DISABLING.add(self)
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_enabled:
            gc.enable()
            _DISABLING.discard(self)


_DISABLING = set[_Pause]()  # the pauses that have found the collector enabled


def paused() -> _Pause:
    """Disable the cycle collector: it would traverse a growing batch repeatedly, which takes as long as the batch.

    A process that is forked meanwhile has it enabled, because no thread there may end the pause.
    """
    return _Pause()


def _end_in_child() -> None:
    if _DISABLING:
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_end_in_child)
