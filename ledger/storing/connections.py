"""The connections of a process to a server: its threads share them, and no thread looks after them."""

import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock
from typing import Any, TypeVar

import psycopg
from psycopg import Connection
from psycopg.pq import TransactionStatus

from forecast_ledger.ledger.core.errors import Unavailable

Answer = TypeVar("Answer")


class SilentError(psycopg.OperationalError):
    """The server has given no sign for as long as a statement may wait. The connection is closed."""


class LimitedConnection(Connection[Any]):
    """A connection that is closed if the server is silent for `limit` s: it may be stopped, or cut off from this host.

    A limit in the server, such as PostgreSQL's statement_timeout, does not end this wait, nor does a keepalive of TCP,
    which a stopped server's system answers.
    """

    limit = 60.0

    def wait(self, gen: Generator[Any, Any, Answer], *args: Any, **named: Any) -> Answer:
        """Wait as psycopg does, which asks every tenth of a second whether to go on. Raises SilentError."""
        try:
            return super().wait(_within(self.limit, gen), *args, **named)
        except SilentError:
            self.close()
            raise


def _within(limit: float, waiting: Generator[Any, Any, Answer]) -> Generator[Any, Any, Answer]:
    """Yield what is waited for, and end the wait when the server has been silent for `limit` s."""
    deadline = time.monotonic() + limit
    try:
        wanted = next(waiting)
        while True:
            ready = yield wanted
            if ready:
                deadline = time.monotonic() + limit
            elif time.monotonic() >= deadline:
                raise SilentError(f"no answer from the server for {limit:g} s")
            wanted = waiting.send(ready)
    except StopIteration as end:
        answer: Answer = end.value
        return answer


class Connections:
    """At most so many connections, each opened when it is needed, and used again by whoever comes next.

    After an outage of the server, the next use opens a new one at once. A process that was forked leaves the
    connections of its parent alone, and opens its own. is_closed: whether they are not to be used any more.
    """

    def __init__(self, connect: Callable[[], Connection[Any]], most: int, wait: float) -> None:
        """connect: opens a connection in autocommit mode, or raises what psycopg does. wait: for one to be free, s."""
        self._connect, self._most, self._wait = connect, most, wait
        self.is_closed = False
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock, self._room = Lock(), BoundedSemaphore(self._most)
        self._idle: list[Connection[Any]] = []  # the one that was used last is the last

    @contextmanager
    def after(
        self, first: Callable[[Connection[Any]], Answer], wait: float | None = None
    ) -> Iterator[tuple[Connection[Any], Answer]]:
        """Use a connection, with the answer to a first statement; what is not committed at the end is rolled back.

        first: asks it, and records nothing: if a server that was restarted has closed the connection, it is asked again
        on a new one. wait: for one to be free, s, if not as usual.
        Raises Unavailable (all are in use), and what psycopg does.
        """
        if self._process != os.getpid():
            self._begin()
        room, wait = self._room, self._wait if wait is None else wait
        if not room.acquire(timeout=wait):
            used = f"the {self._most} connections of this process have been in use for {wait:g} s"
            raise Unavailable(f"{used}; let fewer threads use them, or open the store with more")
        try:
            connection, answer = self._take(first)
            try:
                yield connection, answer
            finally:
                self._put(connection)
        finally:
            room.release()

    def _take(self, first: Callable[[Connection[Any]], Answer]) -> tuple[Connection[Any], Answer]:
        while True:
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            connection = self._connect() if idle is None else idle
            try:
                return connection, first(connection)
            except psycopg.Error as error:
                self._put(connection)
                if isinstance(error, SilentError):
                    self._close_idle()  # they would be as silent, one after the other
                if idle is None or not connection.closed or isinstance(error, SilentError):
                    raise
            except BaseException:
                self._put(connection)
                raise

    def _put(self, connection: Connection[Any]) -> None:
        try:
            if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
                connection.rollback()
        except psycopg.Error:
            connection.close()
        with self._lock:
            if not self.is_closed and not connection.closed:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close them; those in use are closed by whoever uses them."""
        self.is_closed = True
        if self._process == os.getpid():
            self._close_idle()

    __del__ = close

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
