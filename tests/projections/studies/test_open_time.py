"""Calibration weighted by time, compared with fractions worked out forecast by forecast, and by hand."""

from decimal import Decimal
from fractions import Fraction
from math import comb
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.studies.calibration import EDGES, agreeing_counts, binomial_place
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import BEFORE, choices, closing, contest, day, entry, forecast, opened, resolution, withdrawal
from tests.support.seasons import Season, drawn_rules

MEAN = RuleSet(name="mean", kernel="brier", period="covered", total="mean")
NUMBERS = "weight", "mean_forecast", "observed_frequency"


def bins(projections: Projections, participant: str = "ada") -> dict[str, tuple[str, ...]]:
    """Return n, weight, mean and frequency of each bin of a participant, with two decimals, by its lower end."""
    return {
        row["from_probability"]: (str(row["n"]), *(f"{Decimal(row[name]):.2f}" for name in NUMBERS))
        for row in projections.table("calibration_time_weighted").rows()
        if row["participant"] == participant
    }


def asked(*commands: AnyCommand) -> list[AnyCommand]:
    """Return a contest with one question, which is open for ten days from the 10th."""
    return [opened(), contest(rules=MEAN), entry(), *commands]


def test_a_forecast_weighs_as_much_as_the_share_of_the_open_time_that_it_stood() -> None:
    """0.7 stands for five days of ten from the 11th, then 0.72 for four; their bin is [0.675, 0.725)."""
    made = forecast(), forecast(probability="0.72", at=day(16))
    projections = oracle.projected(*asked(*made), resolution())
    mean = (Decimal("0.7") * 5 + Decimal("0.72") * 4) / 9
    assert bins(projections) == {"0.675000000": ("2", "0.90", f"{mean:.2f}", "1.00")}
    [row] = projections.table("calibration_time_weighted").rows()
    assert (row["to_probability"], row["mean_forecast"]) == ("0.725000000", f"{mean:.9f}")


def test_time_before_the_opening_and_after_an_early_close_or_a_withdrawal_does_not_count() -> None:
    """The question closes on the 15th: of its five open days Ada's forecast stands for all, Bob's for one."""
    made = forecast(at=BEFORE), forecast(participant="bob", at=day(12)), withdrawal(participant="bob", at=day(13))
    projections = oracle.projected(*asked(*made), closing(), resolution(outcome="no"))
    assert bins(projections) == {"0.675000000": ("1", "1.00", "0.70", "0.00")}
    assert bins(projections, "bob") == {"0.675000000": ("1", "0.20", "0.70", "0.00")}


def test_questions_with_unlike_open_times_are_weighted_by_shares() -> None:
    """0.5 stands for 9 of 10 days on a question with the answer yes, and for 3 of 4 on one with the answer no."""
    short: list[AnyCommand] = [
        opened("snow", closes_at=day(14)),
        entry(question="snow"),
        forecast("snow", probability="0.5"),
    ]
    commands: list[AnyCommand] = [
        *asked(forecast(probability="0.5")),
        *short,
        resolution(),
        resolution("snow", outcome="no"),
    ]
    share = Fraction(9, 10) / (Fraction(9, 10) + Fraction(3, 4))
    assert bins(oracle.projected(*commands)) == {"0.475000000": ("2", "1.65", "0.50", f"{Decimal(float(share)):.2f}")}


@pytest.mark.parametrize(
    ("probability", "lower"),
    [
        ("0", "0.000000000"),
        ("0.041666666", "0.000000000"),
        ("0.041666667", "0.041666667"),
        ("0.083333334", "0.083333334"),
        ("0.124999999", "0.083333334"),
        ("0.125", "0.125000000"),
        ("0.5", "0.475000000"),
        ("0.874999999", "0.825000000"),
        ("0.875", "0.875000000"),
        ("0.958333334", "0.958333334"),
        ("1", "0.958333334"),
    ],
)
def test_a_bin_has_its_lower_end_and_the_last_one_has_both(probability: str, lower: str) -> None:
    """Three bins of a 24th at each end of the scale, and fifteen of a twentieth between them."""
    assert [*bins(oracle.projected(*asked(forecast(probability=probability)), resolution()))] == [lower]


def test_questions_of_other_kinds_do_not_count() -> None:
    """Forecasts on colours have a table of their own; nor does a question that nobody has forecast on."""
    assert bins(oracle.projected(*asked(), resolution())) == {}
    made = forecast("colour", probabilities={"red": "0.2", "green": "0.5", "blue": "0.3"})
    commands: list[AnyCommand] = [
        choices(),
        contest(rules=MEAN),
        entry(question="colour"),
        made,
        resolution("colour", outcome="red"),
    ]
    assert bins(oracle.projected(*commands)) == {}


@settings(max_examples=times(60), deadline=None)
@given(
    n=st.integers(1, 30),
    chance=st.fractions(0, 1, max_denominator=60),
    share=st.fractions(Fraction(1, 40), 1, max_denominator=40),
)
def test_places_of_the_binomial_distribution_are_those_of_its_definition(
    n: int, chance: Fraction, share: Fraction
) -> None:
    """The least k whose cumulative probability, a sum of C(n, k) p^k (1 - p)^(n - k), is at least the share."""
    found = binomial_place(n, chance, share)
    upto = [
        sum((comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(last + 1)), Fraction(0))
        for last in range(n + 1)
    ]
    expected = next(k for k in range(n + 1) if upto[k] >= share)
    assert found == expected


def test_the_band_widens_from_the_ends_of_the_bin() -> None:
    """Of 20 events at 0.475, 6 or fewer have 8.8% and 5 or fewer 3.2%; at 0.525 it is the mirror image."""
    assert (EDGES[10], EDGES[11]) == (Fraction(19, 40), Fraction(21, 40))
    assert agreeing_counts(10, 20) == (6, 10, 14)
    below = [sum(comb(20, k) * 19**k * 21 ** (20 - k) for k in range(last + 1)) for last in (5, 6)]
    assert below[0] * 20 < 40**20 <= below[1] * 20


@pytest.mark.parametrize("seed", range(times(10)))
def test_bins_of_random_seasons_are_the_same_in_chunks_of_any_size(seed: int) -> None:
    """A forecast weighs at most 1, and the weighted mean of a bin's forecasts is in the bin."""
    random = Random(seed)
    season = Season(random, drawn_rules(random), MEAN, MEAN, uncounted=0.2, ending=0.2)
    facts = oracle.facts_in(season.recorded())
    whole, pieces = (Projections(facts, chunk).table("calibration_time_weighted") for chunk in (1 << 20, 1))
    assert whole.digest() == pieces.digest()
    for row in whole.rows():
        numbers = [Fraction(row[name]) for name in ("from_probability", "mean_forecast", "to_probability")]
        assert numbers == sorted(numbers)
        assert 0 < Fraction(row["weight"]) <= row["n"]
        assert 0 <= Fraction(row["observed_frequency"]) <= 1
