"""Sets of ranks, compared with the definition in whole numbers of any size."""

from itertools import permutations
from math import isqrt
from random import Random

import numpy as np
import pytest

from forecast_ledger.projections.uncertainty.rank_sets import rank_sets


def parts(difference: int, deviation: int) -> int:
    """Return |difference| / deviation in 1e-6, rounded down."""
    return abs(difference) * 10**6 // deviation


def by_definition(worth: list[int], replicates: list[list[int]], place: int) -> tuple[list[int], list[int], list[int]]:
    """Return the best and worst rank of each participant, and the least difference that each pair needs."""
    people, count = len(worth), len(replicates[0])
    pairs = [*permutations(range(people), 2)]
    deviation = {}
    for i, j in pairs:
        own = [a - b for a, b in zip(replicates[i], replicates[j], strict=True)]
        spread = count * sum(d * d for d in own) - sum(own) ** 2
        deviation[i, j] = max(isqrt(spread // (count * (count - 1))), 1)
    largest = [
        max(parts(replicates[i][b] - replicates[j][b] - worth[i] + worth[j], deviation[i, j]) for i, j in pairs)
        for b in range(count)
    ]
    critical = sorted(largest)[place - 1]
    above = {(i, j) for i, j in pairs if worth[i] > worth[j] and parts(worth[i] - worth[j], deviation[i, j]) > critical}
    best = [1 + sum((j, i) in above for j in range(people)) for i in range(people)]
    worst = [people - sum((i, j) in above for j in range(people)) for i in range(people)]
    needed = [least_above(critical, deviation[i, j]) for i, j in pairs if i < j]
    return best, worst, sorted(needed)


def least_above(critical: int, deviation: int) -> int:
    """Return the least difference whose studentised value is above another."""
    least, most = 0, (critical + 2) * deviation
    while least < most:
        middle = (least + most) // 2
        least, most = (least, middle) if parts(middle, deviation) > critical else (middle + 1, most)
    return least


@pytest.mark.parametrize("scale", [1, 10**6, 10**14])
def test_rank_sets_are_those_of_the_definition(scale: int) -> None:
    """Small and large numbers, equal totals, and participants who never differ or never move."""
    random = Random(scale)
    for people in (2, 3, 6):
        worth = [random.randrange(-9, 9) * scale for _ in range(people)]
        replicates = [[each + random.randrange(-2, 3) * scale // 2 for _ in range(25)] for each in worth]
        worth[1], replicates[1] = worth[0], list(replicates[0])
        replicates[-1] = [worth[-1]] * 25
        expected = by_definition(worth, replicates, 23)
        assert rank_sets(np.array(worth), np.array(replicates), 23) == expected


def test_certain_and_uncertain_ranks() -> None:
    """One who is always far ahead has the rank 1 alone; two who change places share the ranks 2 and 3."""
    moves = [1, -1] * 12 + [0]
    replicates = np.array([[900] * 25, [10 + move for move in moves], [11 - move for move in moves]])
    assert rank_sets(np.array([900, 10, 11]), replicates, 24)[:2] == ([1, 2, 2], [1, 3, 3])
