"""The solver, compared with Gaussian elimination in fractions."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.projections.studies import two_way
from forecast_ledger.projections.studies.two_way import TwoSidedSystem, solve
from tests.support.effort import times

HUGE = 10**40


def connected(random: Random, rows: int, columns: int) -> list[list[int]]:
    """Return which rows and columns meet; a path through all of them connects them."""
    present = [[int(random.random() < 0.3) for _ in range(columns)] for _ in range(rows)]
    for place in range(rows + columns):
        present[place % rows][place % columns] = 1
        present[place % rows][(place + 1) % columns] = 1
    return present


def system(random: Random, rows: int, columns: int, size: int) -> tuple[TwoSidedSystem, list[int], list[int]]:
    """Return a system made from a solution, and that solution: x, whose first is 0, and y."""
    present = connected(random, rows, columns)
    row_weight, column_weight = ([random.randint(1, 9) for _ in range(count)] for count in (rows, columns))
    x = [0, *(random.randint(-size, size) for _ in range(rows - 1))]
    y = [random.randint(-size, size) for _ in range(columns)]
    row_total = [sum(column_weight[j] * (x[i] + y[j]) for j in range(columns) if present[i][j]) for i in range(rows)]
    column_total = [sum(row_weight[i] * (x[i] + y[j]) for i in range(rows) if present[i][j]) for j in range(columns)]
    arrays = [np.array(each, np.int64) for each in (present, row_weight, column_weight)]
    return TwoSidedSystem(arrays[0], arrays[1], arrays[2], row_total, column_total), x, y


@pytest.mark.parametrize("seed", range(times(20)))
def test_a_solution_that_is_known_is_found(seed: int) -> None:
    """Whatever the sizes, with numbers beyond 64 bits, and however many rows and columns there are."""
    random = Random(seed)
    given, x, y = system(random, random.randint(2, 9), random.randint(2, 9), random.choice((3, 10**9, HUGE)))
    found = solve(given)
    shift = Fraction(found.x[0], found.denominator)
    assert [Fraction(each, found.denominator) - shift for each in found.x] == x
    assert [Fraction(each, found.denominator) + shift for each in found.y] == y


@pytest.mark.parametrize("seed", range(times(8)))
def test_solutions_that_are_fractions_fulfil_the_equations(seed: int) -> None:
    """The right sides are moved so that their sums still agree; integers seldom solve them then."""
    random = Random(seed)
    given, _, _ = system(random, random.randint(2, 7), random.randint(2, 7), 10**6)
    present, row_weight, column_weight = (each.tolist() for each in given[:3])
    rows, columns = len(present), len(present[0])
    factor = random.randint(1, 10**6)
    given.row_total[0] += factor * row_weight[1]  # so that the weighted sums of both sides stay equal
    given.row_total[1] -= factor * row_weight[0]
    found = solve(given)
    x, y = ([Fraction(each, found.denominator) for each in side] for side in (found.x, found.y))
    for i in range(rows):
        own = sum(column_weight[j] * (x[i] + y[j]) for j in range(columns) if present[i][j])
        assert own == given.row_total[i]
    for j in range(columns):
        own = sum(row_weight[i] * (x[i] + y[j]) for i in range(rows) if present[i][j])
        assert own == given.column_total[j]


def test_a_system_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the work begins; the message says how large it is."""
    monkeypatch.setattr(two_way, "MOST_WORK", 1_000)
    given, _, _ = system(Random(1), 20, 30, 10**9)
    with pytest.raises(Refused, match="20 and 30") as refused:
        solve(given)
    assert refused.value.code == "out_of_range"
