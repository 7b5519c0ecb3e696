"""Sets of ranks, compared with the definition in fractions."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import permutations
from math import isqrt
from random import Random

import numpy as np
import pytest

from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.studies import rank_sets as rank_sets_module
from forecast_ledger.projections.studies.rank_sets import RankSets, rank_sets
from forecast_ledger.projections.studies.replicates import PLACES, Fixed, Totals

Numbers = Sequence[Fraction]


def by_definition(worth: Numbers, replicates: Sequence[Numbers], place: int) -> RankSets:
    """Return the best and worst rank of each participant, and the least difference that each pair needs, in squares."""
    people, count = len(worth), len(replicates[0])
    pairs = [*permutations(range(people), 2)]
    variance = {}
    for i, j in pairs:
        own = [a - b for a, b in zip(replicates[i], replicates[j], strict=True)]
        mean = sum(own, Fraction(0)) / count
        variance[i, j] = max(sum(((each - mean) ** 2 for each in own), Fraction(0)) / (count - 1), Fraction(1))
    largest = [
        max((replicates[i][b] - replicates[j][b] - worth[i] + worth[j]) ** 2 / variance[i, j] for i, j in pairs)
        for b in range(count)
    ]
    critical = sorted(largest)[place - 1]
    above = {(i, j) for i, j in pairs if worth[i] > worth[j] and (worth[i] - worth[j]) ** 2 / variance[i, j] > critical}
    best = [1 + sum((j, i) in above for j in range(people)) for i in range(people)]
    worst = [people - sum((i, j) in above for j in range(people)) for i in range(people)]
    return RankSets(best, worst, sorted(nearest_root(critical * variance[i, j]) for i, j in pairs if i < j))


def nearest_root(square: Fraction) -> int:
    """Return the root, rounded half-even."""
    low = isqrt(square.numerator // square.denominator)
    half = Fraction(2 * low + 1, 2) ** 2
    return low + (square > half or (square == half and low % 2))


def fixed(rows: Sequence[Numbers], places: int) -> Fixed:
    """Return numbers to so many places, rounded down."""
    scaled = [[each * 2**places for each in own] for own in rows]
    low = np.array([[each.numerator // each.denominator for each in own] for own in scaled], object)
    return Fixed(low, np.array([[each.denominator > 1 for each in own] for own in scaled], np.int64), places)


def found(
    worth: Numbers,
    replicates: Sequence[Numbers],
    place: int,
    exact: Callable[[int, Int64Array], list[Fraction]] | None = None,
) -> RankSets:
    """Return the sets of numbers whose guard digits may be rounded; rows that are the same are alike.

    exact: gives the exact numbers of a row in place of the replicates.
    """
    totals = Totals(
        fixed(replicates, PLACES),
        np.ones((len(replicates), len(replicates[0])), bool),
        exact or (lambda row, at: [replicates[row][one] for one in at.tolist()]),
        lambda row, places: fixed([replicates[row]], places),
    )
    alike = [[*map(tuple, replicates)].index(tuple(own)) for own in replicates]
    return rank_sets(worth, totals, int64_array(alike), place)


@pytest.mark.parametrize("scale", [1, 10**6, 10**14, Fraction(1, 3), Fraction(10**9, 7), Fraction(2**40, 10**9 + 7)])
def test_rank_sets_are_those_of_the_definition(scale: Fraction) -> None:
    """Small and large numbers, with and without many digits; equal totals, and those who never differ or never move."""
    random = Random(int(scale))
    for people in (2, 3, 6):
        for count in (25, 5):
            worth = [random.randrange(-9, 9) * Fraction(scale) for _ in range(people)]
            replicates = [
                [each + random.randrange(-2, 3) * Fraction(scale) / 2 for _ in range(count)] for each in worth
            ]
            worth[1], replicates[1] = worth[0], list(replicates[0])
            replicates[-1] = [worth[-1]] * count
            assert found(worth, replicates, count - 2) == by_definition(worth, replicates, count - 2)


def test_certain_and_uncertain_ranks() -> None:
    """One who is always far ahead has the rank 1 alone; two who change places share the ranks 2 and 3."""
    moves = [1, -1] * 12 + [0]
    replicates = [[900] * 25, [10 + move for move in moves], [11 - move for move in moves]]
    best, worst, _ = found([*map(Fraction, (900, 10, 11))], [[*map(Fraction, own)] for own in replicates], 24)
    assert (best, worst) == ([1, 2, 2], [1, 3, 3])


def test_differences_that_no_replicate_moves_need_nothing_closer(monkeypatch: pytest.MonkeyPatch) -> None:
    """If all answered alike on every question, each replicate has the board's differences, up to guard digits.

    No difference is needed then, whatever the number of replicates: 0.
    """
    monkeypatch.setattr(rank_sets_module._Critical, "_largest", property(lambda _: pytest.fail("each is looked at")))
    worth = [Fraction(10**9 * number, 3) for number in range(12)]
    ranks = [*range(12, 0, -1)]
    assert found(worth, [[each] * 50 for each in worth], 48) == RankSets(ranks, ranks, [0] * 66)


def test_what_guard_digits_leave_in_doubt_needs_more_of_them_and_no_fractions() -> None:
    """Sums of a thousand scores have fractions of sixty thousand bits: 1,999 of them take minutes."""
    random = Random(1)

    def number() -> Fraction:
        return Fraction(random.randrange(10**25), random.randrange(10**9, 10**10))

    for _ in range(20):
        replicates = [[number() for _ in range(9)] for _ in range(4)]
        worth = [number() for _ in replicates]
        definition = by_definition(worth, replicates, 8)
        assert found(worth, replicates, 8, lambda *_: pytest.fail("fractions are compared")) == definition
