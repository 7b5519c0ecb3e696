"""Calibration of the outcomes of multiple-choice questions, compared with counts by hand and in fractions."""

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import (
    addition,
    choices,
    contest,
    day,
    entry,
    forecast,
    opened,
    removal,
    resolution,
    withdrawal,
)
from tests.support.seasons import Season, drawn_rules

MEAN = RuleSet(name="mean", kernel="brier", period="covered", total="mean")
SPOT = RuleSet(name="spot", kernel="brier", period="covered", total="mean", sampling="spot")


def chosen(red: str, green: str, blue: str, **fields: str) -> AnyCommand:
    """Return a forecast on a question of three colours."""
    return forecast("colour", probabilities={"red": red, "green": green, "blue": blue}, **fields)


def bins(projections: Projections, participant: str = "ada") -> dict[str, tuple[int, int]]:
    """Return n and happened of each bin of a participant, by its lower end."""
    return {
        row["from_probability"][:3]: (row["n"], row["happened"])
        for row in projections.table("calibration_by_option").rows()
        if row["participant"] == participant
    }


def asked(rules: RuleSet = MEAN, **entered: str) -> list[AnyCommand]:
    """Return a contest with one question of three colours."""
    return [choices(), contest(rules=rules), entry(question="colour", **entered)]


def test_each_outcome_of_a_forecast_is_an_event() -> None:
    """Of 0.2, 0.5 and 0.3 the second happened; a bin has its lower end. Wilson's interval of 1 of 1 is 0.2065 to 1."""
    projections = oracle.projected(*asked(), chosen("0.2", "0.5", "0.3"), resolution("colour", outcome="green"))
    assert bins(projections) == {"0.2": (1, 0), "0.3": (1, 0), "0.5": (1, 1)}
    [row] = [row for row in projections.table("calibration_by_option").rows() if row["happened"]]
    assert (row["to_probability"], row["mean_forecast"], row["observed_frequency"]) == (
        "0.600000000",
        "0.500000000",
        "1.000000000",
    )
    low = 1 / (1 + Decimal("1.959963984540054") ** 2)  # what Wilson's formula is if all of one happened
    assert (Decimal(row["wilson_low"]), row["wilson_high"]) == (round(low, 9), "1.000000000")


def test_outcomes_with_like_probabilities_share_a_bin() -> None:
    """Two of three outcomes are in the lowest bin, the third one is certain: 1 is in the last bin."""
    projections = oracle.projected(*asked(), chosen("0", "1", "0"), resolution("colour", outcome="red"))
    assert bins(projections) == {"0.0": (2, 1), "0.9": (1, 0)}


@pytest.mark.parametrize(("rules", "expected"), [(MEAN, "0.6"), (SPOT, "0.8")])
def test_the_forecast_that_stood_last_counts_or_the_one_at_the_spot(rules: RuleSet, expected: str) -> None:
    """Ada gives green 0.8 on the 11th, and 0.6 on the 15th; the spot is on the 12th."""
    made = chosen("0.1", "0.8", "0.1"), chosen("0.2", "0.6", "0.2", at=day(15))
    projections = oracle.projected(*asked(rules, spot_at=day(12)), *made, resolution("colour", outcome="green"))
    assert [lower for lower, (_, happened) in bins(projections).items() if happened] == [expected]


def test_binary_questions_and_withdrawn_forecasts_do_not_count() -> None:
    """The table `calibration` has the former; a forecast that was taken back stands no more."""
    commands = [*asked(), opened(), entry(), forecast(), chosen("0.2", "0.5", "0.3"), withdrawal("colour")]
    projections = oracle.projected(*commands, resolution(), resolution("colour", outcome="green"))
    assert not len(projections.table("calibration_by_option"))
    assert len(projections.table("calibration"))


def test_an_outcome_that_was_removed_counts_in_the_catch_all() -> None:
    """Red is removed: its 0.2 go to blue, the catch-all, so that the forecast has two outcomes, 0.5 and 0.5."""
    made = chosen("0.2", "0.5", "0.3")
    projections = oracle.projected(*asked(), made, removal(), resolution("colour", outcome="green"))
    assert bins(projections) == {"0.5": (2, 1)}


def test_an_outcome_that_a_forecast_does_not_give_happened_in_the_catch_all() -> None:
    """Violet is added after Ada's forecast, which ends with the grace period; Bob's gives all four outcomes."""
    four = {"red": "0.1", "green": "0.2", "violet": "0.6", "blue": "0.1"}
    bob = forecast("colour", "bob", probabilities=four, at=day(16))
    projections = oracle.projected(
        *asked(), chosen("0.2", "0.5", "0.3"), addition(), bob, resolution("colour", outcome="violet")
    )
    assert bins(projections, "bob") == {"0.1": (2, 0), "0.2": (1, 0), "0.6": (1, 1)}
    assert bins(projections) == {}


@pytest.mark.parametrize("seed", range(times(10)))
def test_probabilities_of_a_participant_add_up_to_what_happened(seed: int) -> None:
    """Each forecast adds up to 1, and one of its outcomes happens. Chunks of any size give the same."""
    random = Random(seed)
    season = Season(random, MEAN, drawn_rules(random), MEAN, uncounted=0.2, ending=0.2)
    facts = oracle.facts_in(season.recorded())
    whole, pieces = (Projections(facts, chunk).table("calibration_by_option") for chunk in (1 << 20, 1))
    assert whole.digest() == pieces.digest()
    for row in whole.rows():
        assert 0 <= row["happened"] <= row["n"] > 0
        low, mean, high = (Fraction(row[name]) for name in ("from_probability", "mean_forecast", "to_probability"))
        assert low <= mean <= high
    sums: Counter[tuple[str, str]] = Counter()
    chances: Counter[tuple[str, str]] = Counter()
    for row in whole.rows():
        sums[row["contest"], row["participant"]] += row["happened"]
        chances[row["contest"], row["participant"]] += row["n"] * Fraction(row["mean_forecast"])
    assert all(abs(chances[key] - happened) < Fraction(1, 10**6) for key, happened in sums.items())
