"""A PostgreSQL server of our own, on loopback, in a folder of its own."""

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

_PLACES = [shutil.which("pg_ctl"), *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")))]
PG_CTL = next((place for place in _PLACES if place), "")
BASE_BACKUP = shutil.which("pg_basebackup") or ""


_FOLDERS: dict[str, Path] = {}  # of the servers that run, by URL


def _as_server(*arguments: str) -> None:
    """Run one of the server's programs, which refuse to run as root, as the user that its package made."""
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    subprocess.run([*user, *arguments], check=True, stdout=subprocess.DEVNULL)


def _start(data: Path, port: str) -> None:
    """Start the server of a data folder; its socket and its messages are in the folder above."""
    options = f"-c listen_addresses=127.0.0.1 -p {port} -k {data.parent}"
    _as_server(PG_CTL, "start", "-w", "-D", str(data), "-o", options, "-l", str(data.parent / "server.log"))


def _free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def _new_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="ledger-postgres-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    return folder


@cache
def _empty() -> Path:
    """The data folder of a server that has not started yet, made once for all servers of this process."""
    folder = _new_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _as_server(PG_CTL, "init", "-D", str(folder / "data"), "-o", "--auth=trust --username=ledger --encoding=UTF8")
    return folder / "data"


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of its database; it is stopped in the end, and its folder removed."""
    port, folder = _free_port(), _new_folder()
    data = folder / "data"
    _as_server("cp", "-a", str(_empty()), str(data))
    _start(data, port)
    url = f"postgresql://ledger@127.0.0.1:{port}/postgres"
    _FOLDERS[url] = folder
    try:
        yield url
    finally:
        _as_server(PG_CTL, "stop", "-m", "immediate", "-D", str(data))
        shutil.rmtree(folder)


def folder_of(url: str) -> Path:
    """Return the folder of a server that `postgres` started, which has its socket."""
    return _FOLDERS[url]


@contextmanager
def stopped(url: str, mode: str = "fast") -> Iterator[None]:
    """Stop a server that `postgres` started, and start it again in the end; "immediate": as a crash does."""
    folder = _FOLDERS[url]
    _as_server(PG_CTL, "stop", "-m", mode, "-D", str(folder / "data"))
    yield
    _start(folder / "data", url.rpartition(":")[2].partition("/")[0])


@contextmanager
def standby(url: str) -> Iterator[str]:
    """The URL of a hot standby of a server that `postgres` started; it is stopped in the end."""
    data, port = _FOLDERS[url] / "standby", _free_port()
    _as_server(BASE_BACKUP, "--dbname", url, "-D", str(data), "--write-recovery-conf", "--checkpoint=fast")
    _start(data, port)
    try:
        yield url.rpartition(":")[0] + f":{port}/postgres"
    finally:
        _as_server(PG_CTL, "stop", "-m", "immediate", "-D", str(data))


@contextmanager
def frozen(url: str) -> Iterator[None]:
    """Stop every process of a server that `postgres` started, as a host that hangs does, and let them go on in the end.

    The system still accepts connections for it, and acknowledges what is sent.
    """
    [main, *_] = (_FOLDERS[url] / "data" / "postmaster.pid").read_text().splitlines()
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", main], check=True, capture_output=True, text=True).stdout
    processes = [int(process) for process in (main, *children.split())]
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)
