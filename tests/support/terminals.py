"""The command line on a terminal of its own."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from typing import NamedTuple

from tests.support.processes import started
from tests.support.waiting import PATIENCE

_PROGRESS = re.compile(r"\x1b\[\?25l.*?\x1b\[\?25h(\r?\x1b\[1A\x1b\[2K)?", re.DOTALL)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Seen(NamedTuple):
    """The output of a terminal on stdout, the output on stderr, and the exit code."""

    stdout: str
    stderr: str
    code: int

    def lines(self) -> list[str]:
        """The lines of stdout without their colours."""
        return _COLOUR.sub("", self.stdout).splitlines()


def seen(*arguments: str, columns: int, keep_progress: bool = False, **environment: str) -> Seen:
    """Run the command line with stdout on a terminal of so many columns, and stderr on another.

    keep_progress: keep what progress bars print.
    """
    streams = [pty.openpty() for _ in range(2)]
    for leader, _ in streams:
        fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    unset = dict.fromkeys(["NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"])
    child = started(
        arguments, [follower for _, follower in streams], {**unset, "TERM": "xterm-256color", **environment}
    )
    texts = _read([leader for leader, _ in streams])
    child.join()
    assert child.exitcode is not None
    stdout, stderr = (text.decode().replace("\r\n", "\n") for text in texts)
    return Seen(stdout, stderr if keep_progress else _PROGRESS.sub("", stderr), child.exitcode)


def _read(leaders: list[int]) -> list[bytes]:
    """All that is written until both ends are closed."""
    texts, until = dict.fromkeys(leaders, b""), time.monotonic() + PATIENCE
    left = set(leaders)
    while left and time.monotonic() < until:
        for leader in select.select([*left], [], [], 1)[0]:
            try:
                chunk = os.read(leader, 65_536)
            except OSError:  # Linux says so when the other end is closed
                chunk = b""
            texts[leader] += chunk
            if not chunk:
                left.remove(leader)
    for leader in leaders:
        os.close(leader)
    return [texts[leader] for leader in leaders]
