"""The leave-one-out reference: each member is compared with the median of the other members.

A rule set asks for it with consensus_of "others". Let v_0 <= … <= v_(n-1) be the probabilities of the n standing
members, and v_((n - 1) // 2) the pivot. The median of the others depends only on the side of the pivot on which a
member's own probability lies. So sums over the steps whose pivot lies below, at and above a probability serve all
forecasts at once.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import CHANCE
from forecast_ledger.projections.scores.consensus import VALUE_BITS, Neighbours

_Range = tuple[Int64Array, Int64Array]


class LeaveOneOut(NamedTuple):
    """The reference of members in each of m steps, by side: 0 below the pivot, 1 at it, 2 above it.

    question, pivot, lasts: shape (m,); the question of each step, the pivot, 1e-10, and the units until the next step.
    While fewer than two members stand, lasts is 0, so that nothing is earned. doubled, kernel: shape (3, m); twice the
    median of the other members, 1e-10, -1 if there are none, and its kernel score.
    """

    question: Int64Array
    pivot: Int64Array
    lasts: Int64Array
    doubled: Int64Array
    kernel: Int64Array

    def side(self, chance: Int64Array, step: Int64Array) -> Int64Array:
        """Return the side of each probability in each step; shape (n,)."""
        pivot = self.pivot[step]
        side: Int64Array = (chance >= pivot).astype(np.int64) + (chance > pivot)
        return side

    def reference(self, chance: Int64Array, step: Int64Array) -> Int64Array:
        """Return twice the median of the others, for members with these probabilities in these steps; shape (n,)."""
        return self.doubled[self.side(chance, step), step]

    def earned_in(self, own: Int64Array, chance: Int64Array, step: Int64Array) -> WideInt:
        """Return what kernel scores `own` of these probabilities earn, each in a single step; shape (n,)."""
        return WideInt.product(own - self.kernel[self.side(chance, step), step], self.lasts[step])

    def earned(self, own: Int64Array, chance: Int64Array, begins: Int64Array, ends: Int64Array) -> WideInt:
        """Return what they earn from each begin to each end, all steps of one question; shape (n,)."""
        below, at, above = self.kernel
        weight = np.append(0, np.cumsum(self.lasts))
        imputed = WideInt.product(below, self.lasts).prefix_sums()
        earned = WideInt.product(own, weight[ends] - weight[begins]) - (imputed.take(ends) - imputed.take(begins))
        rank, k, exists = self._ranks(chance, begins)
        passed, order, first, past = _descend(rank, WideInt.product(above - below, self.lasts), k, (begins, ends))
        same = WideInt.product(at - below, self.lasts).take(order).prefix_sums()
        equal = WideInt(*(np.where(exists, part, 0) for part in same.take(past) - same.take(first)))
        return (earned - passed - equal).carried()

    def _ranks(self, chance: Int64Array, begins: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Rank pivots and probabilities among the distinct pivots of their question.

        Returns the rank of each step's pivot, shape (m,); the number of pivots below each probability, and whether a
        pivot equals it, shape (n,).
        """
        levels, place = np.unique((self.question << VALUE_BITS) | self.pivot, return_inverse=True)
        first = np.searchsorted(levels, np.arange(int(self.question.max()) + 1) << VALUE_BITS)
        question = self.question[begins]
        key = (question << VALUE_BITS) | chance
        place_of_chance = np.searchsorted(levels, key)
        exists = levels[np.minimum(place_of_chance, len(levels) - 1)] == key
        return place - first[self.question], place_of_chance - first[question], exists


def leave_one_out(
    stand: Int64Array,
    lasts: Int64Array,
    question: Int64Array,
    near: Neighbours,
    kernel_of_chance: Callable[[Int64Array, int], Int64Array],
) -> LeaveOneOut:
    """Return the reference in steps in which `stand` members stand; near: the middle values in each of these steps."""
    odd, enough = stand % 2 == 1, np.flatnonzero(stand >= 2)
    doubled = np.stack(
        [
            np.where(odd, near.middle, near.after) + near.after,
            np.where(odd, near.before, near.after) + near.after,
            np.where(odd, near.before, near.middle) + near.middle,
        ]
    )
    doubled = np.where(stand >= 2, doubled, -1)
    kernel = np.zeros_like(doubled)
    for side in range(3):
        kernel[side, enough] = kernel_of_chance(doubled[side, enough], 2 * CHANCE)
    alone = stand < 2
    return LeaveOneOut(question, np.where(alone, 0, near.middle), np.where(alone, 0, lasts), doubled, kernel)


def _descend(
    rank: Int64Array, weights: WideInt, k: Int64Array, steps: _Range
) -> tuple[WideInt, Int64Array, Int64Array, Int64Array]:
    """Return the sums of the weights of steps whose rank is below k, and where the steps of rank k are.

    rank, weights: shape (m,). k: shape (n,). steps: the begin and end of each query, shape (n,) each. Also returns an
    order of the steps, and the begin and end, in that order, of the steps of each query that have rank k. Each round
    takes one bit of the rank, highest first: steps are partitioned by that bit, in order of time within each half, and
    a query goes to the half that k is in.
    """
    first, past = steps
    order, total = np.arange(len(rank)), WideInt(*np.zeros((3, len(k)), np.int64))
    for bit in reversed(range(max(int(rank.max()), int(k.max(initial=0))).bit_length())):
        smaller = rank & (1 << bit) == 0
        before = np.append(0, np.cumsum(smaller))
        lower = before[first], before[past]
        up = np.flatnonzero(k & (1 << bit))
        partition = np.concatenate([np.flatnonzero(smaller), np.flatnonzero(~smaller)])
        rank, order, weights = rank[partition], order[partition], weights.take(partition)
        for sums, part in zip(total, weights, strict=True):  # up to 2^26 of them can be added without losing a carry
            passed = np.append(0, np.cumsum(part[: int(before[-1])]))
            sums[up] += passed[lower[1][up]] - passed[lower[0][up]]
        shift = int(before[-1])
        first, lower_first = lower[0], first - lower[0] + shift
        past, lower_past = lower[1], past - lower[1] + shift
        first[up], past[up] = lower_first[up], lower_past[up]
    return total, order, first, past
