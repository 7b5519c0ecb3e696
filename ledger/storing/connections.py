"""Connections to a PostgreSQL server: the address that a URL says, and connections that threads share."""

import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.core.redaction import redacted

FORM = "postgresql://USER@HOST:PORT/DATABASE"
_SCHEMA = "schema="  # the one parameter of a URL that is not libpq's


class ServerAddress(NamedTuple):
    """The parameters of a connection, by libpq's names, with user and password; schema: "" if the URL names none."""

    parameters: dict[str, Any]
    schema: str

    @property
    def identity(self) -> str:
        """The server and the database, as the URL names them, without user and password."""
        given = [str(self.parameters.get(name, "")) for name in ("service", "host", "port", "dbname", "options")]
        return "\0".join((*given, self.schema))


def read_address(location: str) -> ServerAddress:
    """Read a URL of a PostgreSQL database. Raises Unavailable: it is no such URL, or names no database.

    >>> read_address("postgresql://ada@one.example,two.example:5433/spring?sslmode=require").parameters["host"]
    'one.example,two.example'
    >>> read_address("postgresql:///spring?host=/run/postgresql&schema=north").schema
    'north'
    """
    before, _, query = location.partition("?")
    given = [item for item in query.split("&") if item]
    schemas = [unquote(item.removeprefix(_SCHEMA)) for item in given if item.startswith(_SCHEMA)]
    others = "&".join(item for item in given if not item.startswith(_SCHEMA))
    server, _, path = before.partition("://")[2].partition("/")
    if server.count("@") > 1 or "/" in path or "@" in path or "#" in location or len(schemas) > 1:
        raise _malformed(location)
    try:
        parameters = conninfo_to_dict(f"{before}?{others}" if others else before)
    except psycopg.ProgrammingError as error:
        if str(error).startswith("invalid URI query parameter"):  # any other message may hold a part of the password
            raise Unavailable(f"{redacted(location)}: {str(error).strip()}; {_PARAMETERS}") from None
        raise _malformed(location) from None
    hosts = str(parameters.get("host") or "").split(",")
    if any("@" in host[1:] for host in hosts):  # a part of a password is before it
        raise _malformed(location)
    for host in hosts:
        if host.startswith("@"):  # libpq would find it, but psycopg asks for the address of a server of this name
            raise Unavailable(f"{redacted(location)}: the host {host} is a socket without a file; {_ABSTRACT}")
        if "/" in host and not (host.startswith("/") or host[1:2] == ":"):  # libpq would look for a server of this name
            raise Unavailable(f"{redacted(location)}: the host {host} is no server; {_SOCKET}")
    if not (parameters.get("dbname") or parameters.get("service")):
        raise Unavailable(f"{redacted(location)}: the URL names no database; write {FORM}")
    return ServerAddress(parameters, "".join(schemas))


_SOCKET = "for a socket, give the absolute path of its folder, such as host=/run/postgresql"
_ABSTRACT = "name it as the host of a service in libpq's pg_service.conf, and give service=NAME in place of it"
_PARAMETERS = "the parameters are libpq's, such as sslmode, host or options, and schema"


def _malformed(location: str) -> Unavailable:
    reason = "in a user, password or database, write %40 for @, %2F for /, %3A for :, %23 for #"
    return Unavailable(f"{redacted(location)}: the URL is malformed; write {FORM}; {reason}")


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
