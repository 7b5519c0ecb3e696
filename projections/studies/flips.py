"""Signs turned at random: how far a sum of contributions is from 0, for itself and beside all others at once.

If two participants are equally good, what they differ by in one unit, a question or a group of questions, is as likely
to have the other sign. The statistic of a sum of contributions is |sum| / the root of the sum of their squares, without
signs: Student's t grows with it, and for each number of units it is at most the root of that.
Statistics are rounded half-even to six decimals, so that sums are as far from 0 if they are so by definition, whatever
the last bit of a float is.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np

from forecast_ledger.projections.core.arrays import Int64Array, stable_order
from forecast_ledger.projections.core.powers import root_half_even
from forecast_ledger.projections.studies.estimates import Near, ratios

FLIPS = 999
UNIT = 10**6  # of a statistic


def statistic(total: int, squares: int) -> int:
    """Return |total| / the root of `squares`, 1e-6, rounded half-even once; 0 if all contributions are 0.

    total: the sum of contributions that are integers. squares: the sum of their squares.

    >>> statistic(-3 + 1 + 2, 9 + 1 + 4), statistic(3 + 1 + 2, 9 + 1 + 4)
    (0, 1603567)
    """
    return root_half_even(Fraction((total * UNIT) ** 2, squares)) if squares else 0


def statistics(sums: Near, norm: Near, exact: Callable[[int, Int64Array], Iterable[int]]) -> Int64Array:
    """Return the statistics of sums, shape (m, b).

    norm: the root of the squares of the contributions, shape (m, 1). exact: returns `statistic` of a row in some
    columns, for where bounds leave a doubt.
    """
    low, high = (np.rint(ends) for ends in ratios(sums, norm, UNIT))
    rounded, doubtful = low.astype(np.int64), low != high
    for row in np.flatnonzero(doubtful.any(axis=1)).tolist():
        columns = np.flatnonzero(doubtful[row])
        rounded[row, columns] = [*exact(row, columns)]
    return rounded


def step_down(
    observed: Int64Array, turned: Callable[[Int64Array], Int64Array], size: int
) -> tuple[Int64Array, Int64Array]:
    """Return the p-values of statistics, alone and adjusted for all of them, in 1 / (1 + b), shape (m,) each.

    observed: shape (m,). turned: returns those of some with the signs of each replicate, shape (k, b). size: how many
    at a time. The p-value alone is 1 + the number of replicates in which the statistic is as large. Adjusted, what is
    compared is the largest statistic of those that are not larger as observed, and nothing has a p-value below that of
    one with a larger statistic.

    Source: Westfall and Young (1993), Resampling-Based Multiple Testing, ISBN 0-471-55761-7, algorithm 2.8; Romano and
    Wolf (2005), Journal of the American Statistical Association 100(469):94-108, doi:10.1198/016214504000000539.

    >>> turns = np.array([[900, 100, 200], [300, 800, 100]])
    >>> [each.tolist() for each in step_down(np.array([700, 750]), turns.__getitem__, 1)]
    [[2, 2], [3, 3]]
    """
    order, largest = stable_order(observed), np.zeros(1, np.int64)
    alone, together = np.ones((2, len(observed)), np.int64)
    for begin in range(0, len(order), size):
        at = order[begin : begin + size]
        values, original = turned(at), observed[at, None]
        alone[at] += (values >= original).sum(axis=1)
        values[0] = np.maximum(values[0], largest)
        values = np.maximum.accumulate(values, axis=0)
        together[at] += (values >= original).sum(axis=1)
        largest = values[-1]
    together[order] = np.maximum.accumulate(together[order][::-1])[::-1]
    return alone, together
