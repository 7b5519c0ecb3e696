"""Exact integers by way of floats: an estimate says which one it is where that is certain, and where it is not.

All that is assumed of a float is that sums, products, quotients and roots err by 2^-53 of themselves at most.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forecast_ledger.ledger.core.exact import QUANTUM
from forecast_ledger.projections.core.wide_int import Int64Array, nearest

Floats = NDArray[np.float64]


def floats(numbers: NDArray[Any]) -> Floats:
    """The floats nearest to these integers or fractions."""
    return numbers.astype(np.float64)


def divided(numerators: Int64Array, denominators: Int64Array | int, estimates: Floats) -> tuple[Int64Array, Int64Array]:
    """Divmod of wide integers of which the last 64 bits are given, as 64-bit sums wrap, shape (n,).

    estimates: of the same integers, less than 2^60 off. 0 < denominator < 2^60; quotients of at most 2^52.

    >>> wrapped = np.array([10**12]) * 10**12  # modulo 2^64
    >>> [each.tolist() for each in divided(wrapped + 5, 10**9, np.array([1.0e24]))]
    [[1000000000000000], [5]]
    """
    near = np.rint(estimates / denominators).astype(np.int64)
    carried, rests = np.divmod(numerators - near * denominators, denominators)
    return near + carried, rests


def lessened(
    quotients: Int64Array, rests: Int64Array, denominator: int, parts: Floats
) -> tuple[Int64Array, Int64Array]:
    """Of numbers, as divmod by a denominator, less some parts: the nearest quotients, shape (n,), and the rows where
    they are not certain.

    parts: not negative, up to three roundings off each; shape (n, k), k <= 3.

    >>> [each.tolist() for each in lessened(np.array([7]), np.array([3]), 5, np.array([[1.0, 2.0]]))]
    [[7], []]
    """
    taken = parts.sum(axis=1)
    beyond = (rests - taken) / denominator
    guard = (rests + taken) / denominator * 2.0**-49  # there are eight roundings, each of 2^-53 at most
    near, uncertain = nearest(beyond, guard)
    return quotients + near, uncertain


def root_shares(parts: Int64Array, squares: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Parts / √squares, at most 1, in 1/QUANTUM, shape (n,), and the rows where they are not certain.

    >>> [each.tolist() for each in root_shares(np.array([3]), np.array([25]))]
    [[600000000000], []]
    """
    value = parts / np.sqrt(squares) * QUANTUM
    return nearest(value, value * 2.0**-49)  # there are five roundings
