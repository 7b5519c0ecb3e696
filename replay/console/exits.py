"""Exit codes, and the standard streams from the start of a command to its end."""

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import IO

FINE, FINDINGS, USAGE, UNREADABLE, DAMAGED, UNCERTAIN = range(6)
EXITS = {
    FINE: "fine",
    FINDINGS: "findings: a command was refused, or a figure, a prize, a checkpoint, a log or a read model differs",
    USAGE: "wrong usage, or a request that was refused",
    UNREADABLE: "the store cannot be opened, read, locked or written, or the input or output failed",
    DAMAGED: "the log is damaged, or a newer version wrote it; the message names the log position",
    UNCERTAIN: "the store failed while recording: perhaps the commands are recorded; it is safe to send them again",
}
SIGNALLED = 128  # plus the number of the signal, as in shells


def prepare_streams() -> None:
    """Replace closed standard streams by the null device, and let stdout accept every character.

    Unless stdout is a terminal, which has an encoding of its own, the encoding is UTF-8.
    """
    sys.stdin = sys.stdin or Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - stays open until the process ends
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        encoding = None if sys.stdout.isatty() else "utf-8"
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")


def write_last(stream: IO[str]) -> None:
    """Flush a stream for the last time.

    If that fails, the rest goes to the null device, because Python flushes again when it ends.
    """
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
