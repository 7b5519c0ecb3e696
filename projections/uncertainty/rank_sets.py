"""Sets of ranks: which ranks the data allow each participant, all at once."""

from math import isqrt
from typing import NamedTuple

import numpy as np

from forecast_ledger.projections.core.arrays import Int64Array, int64_array, sums_of_squares

PARTS = 10**6  # units in 1 of a studentised difference
MOST_REPLICATES = 4_096
LARGEST = 1 << 48  # of totals, 1e-9
_MOST = 1 << 40


class RankSets(NamedTuple):
    """The best and the worst rank that each participant may have.

    needed: the least difference of totals, 1e-9, that would be significant for each pair, rising.
    """

    best: list[int]
    worst: list[int]
    needed: list[int]


def rank_sets(worth: Int64Array, replicates: Int64Array, place: int) -> RankSets:
    """Return the best and the worst rank that each participant may have, at the confidence of an order statistic.

    worth: totals on the board, 1e-9, the larger the better, shape (p,), below LARGEST. replicates: of them, shape
    (p, b), with 2 <= b <= MOST_REPLICATES. place: the
    order statistic, 1 … b, of the largest studentised difference |(d* - d) / s| of all pairs, d the difference of two
    participants on the board, d* in a replicate, and s the standard deviation of d* (at least 1e-9). Who has a larger
    d / s than that is significantly better. The best rank is 1 + the number who are significantly better, the worst is
    p - the number who are significantly worse. Studentised differences are in 1e-6, rounded down.

    Source: Mogstad et al. (2023), Review of Economic Studies 91(1):476-518,
    doi:10.1093/restud/rdad006, "Simultaneous confidence sets", with symmetric intervals and without steps.
    """
    people, count = replicates.shape
    moved = replicates - worth[:, None]
    deviations = [_deviations(moved[first], moved[first + 1 :]) for first in range(people)]
    largest = np.zeros(count, np.int64)
    for first, own in enumerate(deviations[:-1]):
        np.maximum(largest, _studentised(moved[first] - moved[first + 1 :], own[:, None]).max(axis=0), out=largest)
    critical = int(np.sort(largest)[place - 1])
    better, worse = np.zeros(people, np.int64), np.zeros(people, np.int64)
    for first, own in enumerate(deviations[:-1]):
        difference = worth[first] - worth[first + 1 :]
        certain = _studentised(difference, own) > critical
        up, down = certain & (difference > 0), certain & (difference < 0)
        worse[first] += up.sum()
        better[first] += down.sum()
        better[first + 1 :] += up
        worse[first + 1 :] += down
    needed = -(-(critical + 1) * np.concatenate(deviations).astype(object) // PARTS)
    return RankSets((1 + better).tolist(), (people - worse).tolist(), sorted(needed.tolist()))


def _studentised(difference: Int64Array, deviation: Int64Array) -> Int64Array:
    """Return |difference| / deviation in 1e-6, rounded down; its whole part is at most _MOST."""
    whole, rest = np.divmod(np.abs(difference), deviation)
    thousandths, rest = np.divmod(rest * 1_000, deviation)
    parts: Int64Array = np.minimum(whole, _MOST) * PARTS + thousandths * 1_000 + rest * 1_000 // deviation
    return parts


def _deviations(own: Int64Array, others: Int64Array) -> Int64Array:
    """Return the standard deviation of own - other for each other, in the same unit, rounded down, at least 1.

    own: shape (b,); others: shape (m, b).
    """
    difference, count = own - others, len(own)
    return int64_array([
        max(isqrt((count * squares - total**2) // (count * (count - 1))), 1)
        for squares, total in zip(sums_of_squares(difference), difference.sum(axis=1).tolist(), strict=True)
    ])  # fmt: skip
