"""A proxy on loopback before a server, which cuts connections: at any moment, or when a COMMIT is acknowledged."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from urllib.parse import urlsplit

COMMITTED = b"COMMIT\0"  # at the end of PostgreSQL's answer to a COMMIT


class Proxy:
    """The connections through a proxy. url: of the server through it. cut: how many acknowledgements it has cut off."""

    def __init__(self, url: str) -> None:
        """url: of a PostgreSQL server."""
        address = urlsplit(url)
        assert address.hostname is not None
        assert address.port is not None
        self._server = address.hostname, address.port
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = url.replace(f"{address.hostname}:{address.port}", f"127.0.0.1:{port}")
        self.cut = 0
        self._lock = Lock()
        self._to_cut = 0
        self._open: set[socket.socket] = set()
        Thread(target=self._accept, daemon=True).start()

    def cut_next_commit(self) -> None:
        """Close the connection in which the server next says that it has committed, before the client reads it."""
        self._to_cut = 1

    def cut_all(self) -> None:
        """Close every connection."""
        with self._lock:
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close every connection, and accept none any more."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut_all()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._server)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._open |= {client, server}
            for source, target in ((client, server), (server, client)):
                Thread(target=self._pass_on, args=(source, target, source is server), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if is_answer and COMMITTED in data and self._takes_cut():
                    break
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open.discard(source)
        source.close()

    def _takes_cut(self) -> bool:
        with self._lock:
            taken, self._to_cut = self._to_cut, 0
            self.cut += taken
        return bool(taken)


@contextmanager
def proxied(url: str) -> Iterator[Proxy]:
    """A proxy before a server, which is closed in the end."""
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
