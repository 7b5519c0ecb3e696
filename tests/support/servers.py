"""A PostgreSQL server of our own, on loopback, in a folder of its own."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PLACES = [shutil.which("pg_ctl"), *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")))]
PG_CTL = next((place for place in _PLACES if place), "")


_FOLDERS: dict[str, Path] = {}  # of the servers that run, by URL


def _as_server(*arguments: str) -> None:
    """Run one of the server's programs, which refuse to run as root, as the user that its package made."""
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    subprocess.run([*user, *arguments], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of its database; it is stopped in the end, and its folder removed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="ledger-postgres-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    data = folder / "data"
    _as_server(PG_CTL, "init", "-D", str(data), "-o", "--auth=trust --username=ledger --encoding=UTF8")
    options = f"-c listen_addresses=127.0.0.1 -p {port} -k {folder}"
    _as_server(PG_CTL, "start", "-w", "-D", str(data), "-o", options, "-l", str(folder / "server.log"))
    url = f"postgresql://ledger@127.0.0.1:{port}/postgres"
    _FOLDERS[url] = folder
    yield url
    _as_server(PG_CTL, "stop", "-m", "immediate", "-D", str(data))
    shutil.rmtree(folder)


@contextmanager
def stopped(url: str) -> Iterator[None]:
    """Stop a server that `postgres` started, and start it again in the end."""
    folder = _FOLDERS[url]
    port = url.rpartition(":")[2].partition("/")[0]
    options = f"-c listen_addresses=127.0.0.1 -p {port} -k {folder}"
    _as_server(PG_CTL, "stop", "-m", "fast", "-D", str(folder / "data"))
    yield
    _as_server(PG_CTL, "start", "-w", "-D", str(folder / "data"), "-o", options, "-l", str(folder / "server.log"))
