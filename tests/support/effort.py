"""The amount of random testing in a run. LONG in the environment multiplies it: with LONG=10, ten times as much."""

import os

LONG = int(os.environ.get("LONG", "1"))


def times(count: int) -> int:
    """The number of random examples or seeds, of which an ordinary run tries `count`.

    >>> times(5) == 5 * LONG
    True
    """
    return count * LONG
