"""The connections of a process to a server: its threads share them, and no thread looks after them."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.pq import TransactionStatus

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.storing import database


class Connections:
    """At most so many connections, each opened when it is needed, and used again by whoever comes next.

    After an outage of the server, the next use opens a new one at once. A process that was forked leaves the
    connections of its parent alone, and opens its own. is_closed: whether they are not to be used any more.
    """

    def __init__(self, connect: Callable[[], Connection[Any]], most: int) -> None:
        """connect: opens a connection in autocommit mode, or raises what psycopg does."""
        self._connect, self._most = connect, most
        self.is_closed = False
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock, self._room = Lock(), BoundedSemaphore(self._most)
        self._idle: list[Connection[Any]] = []  # the one that was used last is the last

    @contextmanager
    def one(self) -> Iterator[Connection[Any]]:
        """Use a connection; what is not committed at the end is rolled back. Raises Unavailable (all are in use)."""
        if self._process != os.getpid():
            self._begin()
        room = self._room
        if not room.acquire(timeout=database.LOCK_TIMEOUT):
            used = f"the {self._most} connections of this process have been in use for {database.LOCK_TIMEOUT} s"
            raise Unavailable(f"{used}; let fewer threads use them")
        try:
            connection = self._take()
            try:
                yield connection
            finally:
                self._put(connection)
        finally:
            room.release()

    def _take(self) -> Connection[Any]:
        while True:
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            if idle is None:
                return self._connect()
            try:
                idle.execute("SELECT 1")  # a restarted server has closed it
            except psycopg.Error:
                idle.close()
            else:
                return idle

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
        with self._lock:
            self.is_closed, idle = True, self._idle
            self._idle = []
        if self._process == os.getpid():
            for connection in idle:
                connection.close()
