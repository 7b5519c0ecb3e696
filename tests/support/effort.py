"""The amount of random testing in a run. LONG in the environment multiplies it: with LONG=10, ten times as much."""

import os

LONG = int(os.environ.get("LONG", "1"))


def times(count: int) -> int:
    """The number of random examples or seeds to try: an eighth of what a test names, times LONG.

    >>> times(9) == (9 * LONG + 7) // 8
    True
    """
    return (count * LONG + 7) // 8
