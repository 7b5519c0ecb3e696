"""Text in colour, and when to use colour."""

import os
from typing import IO

BOLD, RED, GREEN, YELLOW = "1", "31", "32", "33"


def has_colour(stream: IO[str]) -> bool:
    """Report whether text for a stream may be in colour.

    If NO_COLOR is set, it may not; else, if FORCE_COLOR is set, it may. Without either, a terminal has colour unless
    TERM is "dumb" or not set. An empty variable counts as not set (no-color.org, force-color.org).
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") not in {None, "", "dumb"}


def colour_text(text: str, code: str) -> str:
    r"""Return a text in a colour, with the code that resets the colour after it.

    >>> colour_text("ok", GREEN)
    '\x1b[32mok\x1b[0m'
    """
    return f"\x1b[{code}m{text}\x1b[0m"
