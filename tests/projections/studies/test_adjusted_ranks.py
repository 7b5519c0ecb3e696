"""Sets of ranks of adjusted scores, compared with the definition in whole numbers."""

from collections.abc import Collection, Sequence
from fractions import Fraction
from itertools import combinations
from random import Random

import numpy as np
import pytest

from forecast_ledger.projections.studies import estimates
from forecast_ledger.projections.studies.adjusted_ranks import FINE, Refits, rank_sets_of_refits
from forecast_ledger.projections.studies.estimates import Near
from tests.projections.studies.test_rank_sets import nearest_root

LEVEL = Fraction(9, 10)
Numbers = Sequence[Sequence[int]]
Sets = list[tuple[int, int]]


def certain(
    rows: Sequence[Sequence[int]],
    clusters: Sequence[int],
    strata: int,
    level: Fraction,
    pairs: Collection[Sequence[int]],
) -> set[tuple[int, int]]:
    """Return which pairs are certain beside each other, the better first. rows: in 1e-24, first as they are."""
    left, b, found = [*pairs], len(rows[0]) - 1, set[tuple[int, int]]()
    own, drawn = {}, {}
    for i, j in left:
        apart = [one - other for one, other in zip(rows[i], rows[j], strict=True)]
        d, x = apart[0], [each - apart[0] for each in apart[1:]]
        mean = max(Fraction(sum(each**2 for each in x), b), Fraction(FINE) ** 2)
        n = min(clusters[i], clusters[j])
        v, t = max(n - strata, 1), d**2 / mean  # t: of the page, squared
        own[i, j] = nearest_root(1000**2 * (4 * v - 1) ** 2 * t / (8 * v * (2 * n + t)))
        drawn[i, j] = [nearest_root(1000**2 * each**2 / mean) for each in x]
    place = -(-level * (b + 1) // 1)
    while left and place <= b:
        largest = sorted(max(drawn[i, j][k] for i, j in left) for k in range(b))
        above = [(i, j) for i, j in left if own[i, j] > largest[int(place) - 1]]
        if not above:
            break
        found |= {(i, j) if rows[i][0] > rows[j][0] else (j, i) for i, j in above}
        left = [pair for pair in left if pair not in above]
    return found


def by_definition(
    rows: Numbers, clusters: Sequence[int], strata: int, level: Fraction, ranked: int
) -> tuple[Sets, Sets]:
    """Return the sets of ranks of all at once, and of each alone."""

    def ranks(own: int, pairs: set[tuple[int, int]]) -> tuple[int, int]:
        return 1 + sum(other == own for _, other in pairs), ranked - sum(one == own for one, _ in pairs)

    people = range(len(rows))
    together = certain(rows, clusters, strata, level, [*combinations(people, 2)])
    alone = [
        certain(rows, clusters, strata, level, [(own, other) for other in people if other != own]) for own in people
    ]
    return [ranks(own, together) for own in people], [ranks(own, alone[own]) for own in people]


def season(random: Random, people: int, replicates: int, scale: int) -> list[list[int]]:
    """Return adjusted scores in 1e-24, each a little apart, the last as the first; and their replicates."""
    shared = [random.gauss(0, 3) for _ in range(replicates)]
    rows = []
    for person in range(people):
        plain = random.randrange(-3, 3) * scale + person * scale
        rows.append([plain, *(plain + round(scale * (each + random.gauss(0, 1))) for each in shared)])
    return [*rows[:-1], [*rows[0]]]


def found(
    rows: Numbers, clusters: Sequence[int], strata: int, ranked: int, share: float = 2.0**-50
) -> tuple[Sets, Sets]:
    """Return what is computed. share: of each number, how far the number that is given first may be off."""
    exact = np.array(rows, object)
    value = exact.astype(np.float64) / FINE
    alike = np.array([rows.index(row) for row in rows])
    near = Near(value * (1 + share), np.abs(value) * (1.5 * share))
    refits = Refits(near, lambda at: exact[:, at], alike, np.array(clusters), strata)
    return rank_sets_of_refits(refits, int(LEVEL * 10**6), ranked)


@pytest.mark.parametrize("scale", [1, 10**9, 10**15, 10**24 + 7, 3**60])
def test_sets_of_ranks_are_those_of_the_definition(scale: int) -> None:
    """Small and large numbers, few and many clusters, and participants who are equal."""
    random = Random(scale)
    for people, replicates in ((2, 19), (3, 8), (6, 39), (9, 99)):
        rows = season(random, people, replicates, scale)
        clusters = [random.randrange(20, 60) for _ in rows]
        expected = by_definition(rows, clusters, people % 3 + 1, LEVEL, people + 2)
        assert found(rows, clusters, people % 3 + 1, people + 2) == expected
        nothing = [(1, people + 2)] * people
        assert (expected == (nothing, nothing)) == (scale < FINE or people < 6)


@pytest.mark.parametrize("share", [2.0**-8, 2.0**-30])
def test_what_bounds_leave_open_is_computed_exactly(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """With numbers that are off by a share of themselves, and floats that err by a thousandth, the same."""
    random = Random(5)
    for people in (3, 7, 7, 7):
        rows = season(random, people, 39, 10**24)
        clusters = [random.randrange(20, 40) for _ in rows]
        expected = by_definition(rows, clusters, 1, LEVEL, people)
        assert found(rows, clusters, 1, people, share) == expected
        with monkeypatch.context() as patch:
            for name in ("_ROUNDING", "_SLACK"):
                patch.setattr(estimates, name, 2.0**-10)
            assert found(rows, clusters, 1, people, share) == expected
