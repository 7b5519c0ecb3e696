"""Tasks of other processes, and of this one: while it waits for a result, it does what no other has begun."""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from forecast_ledger.replay.engines.pool import Pool

_SOON = 0.0005  # seconds after which this thread lets the one run that sends a waiting process its next task


class Task:
    """A task and its result, which another process may find."""

    def __init__(self, done: Future[Any], task: Callable[..., Any], given: tuple[Any, ...]) -> None:
        self.done, self._task, self._given = done, task, given

    def do(self, own: Any) -> None:
        """Do it here, unless it is begun. own: what each process gives its tasks."""
        if self.done.cancel():
            self.done = Future()
            self.done.set_result(self._task(own, *self._given))


class SharedTasks:
    """Tasks that this process and those of a pool share; each gives them first what it has opened for them."""

    def __init__(self, own: Any, with_own: Callable[..., Any], pool: Pool | None) -> None:
        """own: what this process gives. with_own: in a process of the pool, calls a task with what that one gives."""
        self._own, self._with_own, self._pool, self._interval = own, with_own, pool, sys.getswitchinterval()
        if pool:
            sys.setswitchinterval(_SOON)

    def submit(self, task: Callable[..., Any], /, *given: Any) -> Task:
        """Let another process do a task, if there is one."""
        done = self._pool.submit(self._with_own, task, *given) if self._pool else Future[Any]()
        return Task(done, task, given)

    def results(self, tasks: Iterable[Task]) -> Iterator[Any]:
        """Yield the results of tasks in their order; those that were taken are not kept."""
        waiting = deque(tasks)
        unseen = deque(waiting)
        while waiting:
            task = waiting.popleft()
            while unseen and not task.done.done():
                unseen.popleft().do(self._own)
            if unseen and unseen[0] is task:
                unseen.popleft()
            yield task.done.result()

    def close(self) -> None:
        """End the other processes."""
        sys.setswitchinterval(self._interval)
        if self._pool:
            self._pool.close()
