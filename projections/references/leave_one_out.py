"""The median of the other members: what a rule set compares each member with under consensus_of "others".

Of n members who stand, ascending v_0 … v_(n-1), let the pivot be v_((n - 1) // 2). The median of those beside one
depends only on which side of the pivot one is; so does what one is compared with in every step, and sums over steps
whose pivot lies below, at or above one's own value serve all forecasts at once.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import CHANCE
from forecast_ledger.projections.references.consensus import VALUE_BITS, Neighbours

_Range = tuple[Int64Array, Int64Array]


class Others(NamedTuple):
    """What a member is compared with in each of m steps, by its side: 0 below the pivot, 1 at it, 2 above.

    question, pivot, lasts: shape (m,); the question of each step, 1e-10, and units until the next; 0 while fewer than
    two members stand, and then nothing is earned. doubled, kernel: shape (3, m); twice the median of the others, 1e-10,
    -1 without any, and its kernel.
    """

    question: Int64Array
    pivot: Int64Array
    lasts: Int64Array
    doubled: Int64Array
    kernel: Int64Array

    def side(self, chance: Int64Array, step: Int64Array) -> Int64Array:
        """On which side of the pivots of these steps these chances are; shape (n,)."""
        pivot = self.pivot[step]
        side: Int64Array = (chance >= pivot).astype(np.int64) + (chance > pivot)
        return side

    def reference(self, chance: Int64Array, step: Int64Array) -> Int64Array:
        """Twice the median that a member of each chance is compared with in each step; shape (n,)."""
        return self.doubled[self.side(chance, step), step]

    def earned_in(self, own: Int64Array, chance: Int64Array, step: Int64Array) -> WideInt:
        """What kernels `own`, of members of these chances, earn in these single steps; shape (n,)."""
        return WideInt.product(own - self.kernel[self.side(chance, step), step], self.lasts[step])

    def earned(self, own: Int64Array, chance: Int64Array, begins: Int64Array, ends: Int64Array) -> WideInt:
        """What they earn from each begin to each end, all steps of one question; shape (n,)."""
        below, at, above = self.kernel
        weight = np.append(0, np.cumsum(self.lasts))
        imputed = WideInt.product(below, self.lasts).prefix_sums()
        earned = WideInt.product(own, weight[ends] - weight[begins]) - (imputed.take(ends) - imputed.take(begins))
        rank, k, there = self._ranks(chance, begins)
        passed, order, first, past = _descend(rank, WideInt.product(above - below, self.lasts), k, (begins, ends))
        same = WideInt.product(at - below, self.lasts).take(order).prefix_sums()
        equal = WideInt(*(np.where(there, limb, 0) for limb in same.take(past) - same.take(first)))
        return (earned - passed - equal).carried()

    def _ranks(self, chance: Int64Array, begins: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Each step's pivot's place among the distinct pivots of its question; how many of those lie below each chance;
        and whether one is equal to it.
        """
        levels, place = np.unique((self.question << VALUE_BITS) | self.pivot, return_inverse=True)
        first = np.searchsorted(levels, np.arange(int(self.question.max()) + 1) << VALUE_BITS)
        question = self.question[begins]
        key = (question << VALUE_BITS) | chance
        found = np.searchsorted(levels, key)
        there = levels[np.minimum(found, len(levels) - 1)] == key
        return place - first[self.question], found - first[question], there


def others(
    stand: Int64Array,
    lasts: Int64Array,
    question: Int64Array,
    near: Neighbours,
    kernel_of_chance: Callable[[Int64Array, int], Int64Array],
) -> Others:
    """What members are compared with where so many `stand`. near: the middle values in each of these steps."""
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
    return Others(question, np.where(alone, 0, near.middle), np.where(alone, 0, lasts), doubled, kernel)


def _descend(
    rank: Int64Array, weights: WideInt, k: Int64Array, steps: _Range
) -> tuple[WideInt, Int64Array, Int64Array, Int64Array]:
    """The sum of the weights of steps from each begin to each end whose rank is below k; then an order of the steps,
    and from where to where in it those of rank k are.

    rank, weights: shape (m,). k, steps: shape (n,). One bit of the rank a round, highest first: steps are parted by
    that bit, each half in order of time, and a query goes to the half that k is in.
    """
    first, past = steps
    order, total = np.arange(len(rank)), WideInt(*np.zeros((3, len(k)), np.int64))
    for bit in reversed(range(max(int(rank.max()), int(k.max(initial=0))).bit_length())):
        smaller = rank & (1 << bit) == 0
        before = np.append(0, np.cumsum(smaller))
        lower = before[first], before[past]
        up = np.flatnonzero(k & (1 << bit))
        parted = np.concatenate([np.flatnonzero(smaller), np.flatnonzero(~smaller)])
        rank, order, weights = rank[parted], order[parted], weights.take(parted)
        for sums, limb in zip(total, weights, strict=True):  # any 2^26 limbs can be added without a carry being lost
            passed = np.append(0, np.cumsum(limb[: int(before[-1])]))
            sums[up] += passed[lower[1][up]] - passed[lower[0][up]]
        shift = int(before[-1])
        first, lower_first = lower[0], first - lower[0] + shift
        past, lower_past = lower[1], past - lower[1] + shift
        first[up], past[up] = lower_first[up], lower_past[up]
    return total, order, first, past
