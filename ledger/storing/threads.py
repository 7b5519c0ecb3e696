"""A pool of threads for generators, which may be closed in any thread."""

from concurrent.futures import ThreadPoolExecutor
from threading import Thread, get_ident


class Threads(ThreadPoolExecutor):
    """A pool of `count` threads, which `shutdown` waits for unless one of them calls it.

    The garbage collector may end a generator, and with it a `with` block, in any thread, also in one of the pool.
    """

    def __init__(self, count: int) -> None:
        own = self._own = set[int]()
        super().__init__(count, initializer=lambda: own.add(get_ident()))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks, and wait for those submitted. cancel_futures: drop those that have not begun."""
        super().shutdown(wait and get_ident() not in self._own, cancel_futures=cancel_futures)


def can_start() -> bool:
    """Return whether the system lets this process start a thread: it may have a limit for all that a user runs."""
    try:
        Thread(target=bool).start()
    except RuntimeError:
        return False
    return True
