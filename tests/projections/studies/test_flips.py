"""Signs turned at random, compared with the definitions."""

from fractions import Fraction
from itertools import combinations, product
from random import Random

import numpy as np
import pytest

from forecast_ledger.projections.studies.flips import statistic, step_down


def test_a_statistic_grows_with_students_t() -> None:
    """Of 1, 2 and 6: the sum is 9, the squares are 41; t is 3 / √(7 / 3), and n t² / (n - 1 + t²) is 81 / 41."""
    assert statistic(9, 41) == statistic(-9, 41) == 1_405_564  # √(81 / 41) = 1.40556398…
    t_squared = Fraction(9) / (Fraction(7) / 3)
    assert 3 * t_squared / (2 + t_squared) == Fraction(81, 41)


def test_no_statistic_is_above_the_root_of_the_number_of_units() -> None:
    """It is that if all contributions are the same."""
    random = Random(1)
    for count in (1, 4, 9):
        assert statistic(7 * count, 49 * count) == 1_000_000 * round(count**0.5)
        own = [random.randrange(-99, 99) for _ in range(count)]
        assert statistic(sum(own), sum(each * each for each in own)) <= 1_000_000 * round(count**0.5)
    assert statistic(0, 0) == 0


@pytest.mark.parametrize("size", [1, 2, 100])
def test_steps_down_are_those_of_the_definition(size: int) -> None:
    """Each is compared with the largest of those that are not larger, ties included, however many there are at a time.

    Values are few, so that there are many ties.
    """
    random = Random(size)
    for _ in range(20):
        count, replicates = random.randrange(1, 7), 9
        observed = [random.randrange(4) for _ in range(count)]
        turns = [[random.randrange(4) for _ in range(replicates)] for _ in range(count)]
        alone, together = step_down(np.array(observed), np.array(turns).__getitem__, size)
        assert alone.tolist() == [
            1 + sum(each >= own for each in row) for own, row in zip(observed, turns, strict=True)
        ]
        beside = [
            1 + sum(any(turns[i][b] >= own for i in range(count) if observed[i] <= own) for b in range(replicates))
            for own in observed
        ]
        assert together.tolist() == [
            max(p for p, other in zip(beside, observed, strict=True) if other >= own) for own in observed
        ]


def test_of_equals_something_is_called_certain_as_seldom_as_said() -> None:
    """With each of the 2^6 signs of six units as what was observed, in turn, at most 5% have a p-value of 5%.

    Three pairs of three participants, whose contributions are fixed: the signs are all the chance there is.
    """
    random = Random(3)
    people = [[random.randrange(-9, 10) for _ in range(6)] for _ in range(3)]
    apart = [[one - other for one, other in zip(*pair, strict=True)] for pair in combinations(people, 2)]
    every = [*product((-1, 1), repeat=6)]
    turns = np.array(
        [
            [
                statistic(sum(sign * each for sign, each in zip(signs, own, strict=True)), sum(x * x for x in own))
                for signs in every
            ]
            for own in apart
        ]
    )
    certain = 0
    for place in range(len(every)):
        _, together = step_down(turns[:, place], turns.__getitem__, 9)
        certain += (together - 1).min() <= len(every) // 20  # all signs are tried, that as observed among them
    assert 0 < certain <= len(every) // 20
