"""The amount of random testing in a run. LONG in the environment multiplies it: with LONG=10, ten times as much."""

import os

LONG = int(os.environ.get("LONG", "1"))


def times(count: int) -> int:
    """The number of random examples or seeds to try: a quarter of what a test names, times LONG.

    >>> times(5) == (5 * LONG + 3) // 4
    True
    """
    return (count * LONG + 3) // 4
