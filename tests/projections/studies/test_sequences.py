"""Bounds that hold at every moment, compared with their definitions; the tests of pairs compare the table."""

from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest

from forecast_ledger.projections.studies import sequences
from forecast_ledger.projections.studies.sequences import gamma_exponential, normal_mixture, on_grid
from tests.support import mixtures
from tests.support.effort import times


def test_bounds_that_always_hold_get_tighter_with_every_question() -> None:
    """After 400 questions on which one is better by ½, both exclude that nobody is better; after 16, neither does."""
    alpha = Fraction(1, 20)
    for bound in (
        lambda questions: normal_mixture(Fraction(questions), alpha),
        lambda _: gamma_exponential(on_grid(Fraction(0)), alpha),
    ):
        assert bound(400) / 400 < 0.5 < bound(16) / 16


def test_the_oracle_has_the_values_of_the_authors_code() -> None:
    """The tests of confseq (github.com/gostevehoward/confseq) say -0.2490165 and 33.02017: sum 10, time 100, c 2."""
    rho = mixtures.best_rho(100, Fraction(1, 10))
    assert f"{mixtures.log_mixture(Decimal(10), Decimal(100), rho, 2):.7f}" == "-0.2490165"
    assert f"{mixtures.bound(Fraction(100), Fraction(1, 10), 100):.5f}" == "33.02017"


@pytest.mark.parametrize("seed", range(times(12)))
def test_the_bound_is_that_of_the_mixture_rounded_up(seed: int) -> None:
    """Gamma functions, logarithms and bisection give the same 12 decimals, but for the last one of rho."""
    random = Random(seed)
    time = Fraction(random.choice((0, random.randrange(1, 50), random.randrange(1, 200_000))), 1024)
    alpha, optimal, span = Fraction(random.randrange(1, 300), 1000), random.choice((1, 10, 100)), random.choice((1, 2))
    found = gamma_exponential(on_grid(time), alpha, optimal, span)
    grid = Fraction(on_grid(time), 1024)
    assert time <= grid <= time * (1 + Fraction(1, 1024)) + Fraction(1, 1024)
    assert abs(Decimal(found.numerator) / found.denominator - mixtures.bound(grid, alpha, optimal, span)) < 3e-12
    assert (found * 10**12).denominator == 1


def test_a_bound_is_the_least_that_the_mixture_reaches() -> None:
    """One unit less is not enough; with few bits, series are summed again with more of them, and digits stay."""
    alpha = Fraction(1, 20)
    certain = [gamma_exponential(grid, alpha) for grid in range(0, 40_000, 4_000)]
    gamma_exponential.cache_clear()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sequences, "_BITS", 8)
        assert [gamma_exponential(grid, alpha) for grid in range(0, 40_000, 4_000)] == certain
    gamma_exponential.cache_clear()


@pytest.mark.parametrize("chance", [0.5, 0.02])
def test_sums_of_fair_games_leave_the_bounds_seldom(chance: float) -> None:
    """Of 400 games of 300 rounds, at most 5% leave the bounds at any round: at most 31, but for one case in 100."""
    random, alpha, left = Random(38), Fraction(1, 20), 0
    least = float(gamma_exponential(0, alpha))
    for _ in range(400):
        total = time = 0.0
        bound = least
        for played in range(300):
            gained = 2 * ((random.random() < chance) - chance)
            time += (gained - (total / played if played else 0.0)) ** 2
            total += gained
            if abs(total) > bound:  # which rises with time
                bound = float(gamma_exponential(on_grid(Fraction(time)), alpha))
            if abs(total) > bound:
                left += 1
                break
    assert left <= 31
