"""Whether a stream has colour, and text in colour."""

import os
from typing import IO

BOLD, RED, GREEN, YELLOW = "1", "31", "32", "33"


def has_colour(stream: IO[str]) -> bool:
    """Whether a stream may be written to in colour.

    NO_COLOR forbids it, else FORCE_COLOR demands it; without either, a terminal has colour unless TERM is "dumb" or
    not set. A variable that is empty counts as not set (no-color.org, force-color.org).
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") not in {None, "", "dumb"}


def coloured(text: str, code: str) -> str:
    r"""A text in a colour, which ends with it.

    >>> coloured("ok", GREEN)
    '\x1b[32mok\x1b[0m'
    """
    return f"\x1b[{code}m{text}\x1b[0m"
