"""Bounds that hold at every moment; the tests of pairs compare them with their formulas."""

from fractions import Fraction

from forecast_ledger.projections.studies.sequences import empirical_bernstein, normal_mixture


def test_bounds_that_always_hold_get_tighter_with_every_question() -> None:
    """After 400 questions on which one is better by ½, both exclude that nobody is better; after 20, neither does."""
    alpha = Fraction(1, 20)
    for bound, varied in ((normal_mixture, 1), (empirical_bernstein, 0)):
        assert bound(Fraction(400 * varied), alpha) / 400 < 0.5 < bound(Fraction(20 * varied), alpha) / 20
