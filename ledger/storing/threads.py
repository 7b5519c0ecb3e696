"""Threads that a generator works with, which may be ended anywhere."""

from concurrent.futures import ThreadPoolExecutor
from threading import Thread, get_ident


class Threads(ThreadPoolExecutor):
    """So many threads. Whoever shuts them down waits for them, unless it is one of them, which cannot.

    The garbage collector may end a generator, and with it a `with` block, in any thread: also in one of these.
    """

    def __init__(self, count: int) -> None:
        own = self._own = set[int]()
        super().__init__(count, initializer=lambda: own.add(get_ident()))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no task any more, and wait for those that have begun. cancel_futures: for the others, do not."""
        super().shutdown(wait and get_ident() not in self._own, cancel_futures=cancel_futures)


def can_start() -> bool:
    """Return whether the system lets this process start a thread: it may have a limit for all that a user runs."""
    try:
        Thread(target=bool).start()
    except RuntimeError:
        return False
    return True
