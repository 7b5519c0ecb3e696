"""Logarithms of many integers in fixed point, each rounded once."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.estimates import round_estimates
from forecast_ledger.projections.core.powers import QUANTUM, ln_fixed, log2_fixed, log10_fixed


def ln_many(k: Int64Array, unit: int) -> Int64Array:
    """Return `ln_fixed` of every k, 0 < k < 2^62, shape (n,), 1e-12 nat; 20 to 50 ns each.

    >>> ln_many(np.array([1, 2]), 2).tolist()
    [-693147180560, 0]
    """
    return _guarded(k, unit, np.log, ln_fixed)


def log2_many(k: Int64Array, unit: int) -> Int64Array:
    """Return `log2_fixed` of every k, 0 < k < 2^62, shape (n,), 1e-12 bit.

    >>> log2_many(np.array([1, 2]), 8).tolist()
    [-3000000000000, -2000000000000]
    """
    return _guarded(k, unit, np.log2, log2_fixed)


def log10_many(k: Int64Array, unit: int) -> Int64Array:
    """Return `log10_fixed` of every k, 0 < k < 2^62, shape (n,), 1e-12.

    >>> log10_many(np.array([1, 100]), 10).tolist()
    [-1000000000000, 1000000000000]
    """
    return _guarded(k, unit, np.log10, log10_fixed)


def _guarded(
    k: Int64Array, unit: int, estimate: Callable[..., NDArray[np.float64]], exact: Callable[[int, int], int]
) -> Int64Array:
    """Round a float estimate where it is certain; evaluate exactly where a rounding boundary is too near.

    One thing is assumed of the platform: its logarithm errs by less than 8 units in the last place (1 is the most
    ever measured, 4 the most that any vendor documents). k / unit errs by half a unit, which moves the logarithm by
    less than 2^-52, and k and unit each move it by as much if they have more than 53 bits; the product with QUANTUM
    errs by half a unit.
    """
    value = estimate(k / unit) * QUANTUM
    argument = 2.0**-52 if unit < 1 << 53 else 2.0**-50
    rounded, uncertain = round_estimates(value, QUANTUM * argument + np.abs(value) * 9 * 2.0**-52)
    for row in uncertain.tolist():
        rounded[row] = exact(int(k[row]), unit)
    return rounded
