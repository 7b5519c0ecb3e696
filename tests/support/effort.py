"""The amount of random testing in a run. LONG in the environment multiplies it: with LONG=10, ten times as much."""

import os

LONG = int(os.environ.get("LONG", "1"))
ORDINARY = 3, 5  # of the numbers that tests name, an ordinary run tries three fifths


def times(count: int) -> int:
    """The number of random examples or seeds to try, 1 or more; LONG=2 tries more than `count` of them.

    >>> times(5) == 3 * LONG
    True
    """
    share, of = ORDINARY
    return max(count * LONG * share // of, 1)
