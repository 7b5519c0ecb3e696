"""Murphy curves, compared with the elementary score of each forecast, and with the Brier score."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards.brier import Sample
from forecast_ledger.projections.studies.calibration import murphy_curves
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import contest, entry, forecast, opened, resolution

ONE = 10**9
MEAN = RuleSet(name="mean", kernel="brier", period="covered", total="mean")


def elementary(threshold: Fraction, chance: Fraction, *, happened: bool) -> Fraction:
    """Return the elementary score of one forecast, as Ehm et al. define it for probabilities."""
    if happened:
        return 1 - threshold if chance <= threshold else Fraction(0)
    return threshold if chance > threshold else Fraction(0)


def drawn(seed: int) -> list[tuple[int, int, bool]]:
    """Return owner, probability in percent, and whether it happened, for some forecasts."""
    random = Random(seed)
    return [(random.randrange(3), random.randint(0, 100), random.random() < 0.5) for _ in range(random.randint(1, 40))]


def sampled(rows: list[tuple[int, int, bool]]) -> Sample:
    """Return a sample of these rows."""
    owner, percent, happened = zip(*rows, strict=True)
    return Sample(np.array(owner), np.array(percent) * (ONE // 100), np.full(len(rows), -1), np.array(happened, bool))


@pytest.mark.parametrize("seed", range(times(15)))
def test_false_alarms_and_misses_add_up_to_the_elementary_scores(seed: int) -> None:
    """At 99 thresholds, of every owner, forecasts at a threshold among them."""
    rows = drawn(seed)
    found = {own.owner: own for own in murphy_curves(sampled(rows))}
    assert [*found] == sorted({owner for owner, *_ in rows})
    for owner, own in found.items():
        mine = [(Fraction(percent, 100), yes) for each, percent, yes in rows if each == owner]
        assert own.n == len(mine)
        for percent, (alarms, misses) in enumerate(zip(own.false_alarms, own.misses, strict=True), 1):
            threshold = Fraction(percent, 100)
            expected = sum(elementary(threshold, chance, happened=yes) for chance, yes in mine)
            assert threshold * alarms + (1 - threshold) * misses == expected


@pytest.mark.parametrize("seed", range(times(15)))
def test_the_integral_is_half_the_brier_score(seed: int) -> None:
    """Forecasts are whole percents, so that the score is linear between thresholds; at 0 and 1 it is taken directly."""
    rows = drawn(seed)
    for own in murphy_curves(sampled(rows)):
        mine = [(percent, yes) for each, percent, yes in rows if each == own.owner]
        at_zero = (
            sum(percent == 0 and yes for percent, yes in mine),
            sum(percent > 0 and not yes for percent, yes in mine),
        )
        misses, alarms = [at_zero[0], *own.misses], [at_zero[1], *own.false_alarms]
        integral = sum(  # in [k, k + 1) percent, the numbers are those at k percent
            alarms[k] * Fraction(2 * k + 1, 20_000) + misses[k] * (Fraction(1, 100) - Fraction(2 * k + 1, 20_000))
            for k in range(100)
        )
        brier = sum((Fraction(percent, 100) - yes) ** 2 for percent, yes in mine)
        assert integral == brier / 2


def test_a_row_of_the_table_by_hand() -> None:
    """0.7 came true and 0.4 did not: below 0.4 a false alarm costs t, from 0.7 on a miss costs 1 - t; half of two."""
    commands: list[AnyCommand] = [opened("snow"), opened(), contest(rules=MEAN), entry(), entry(question="snow")]
    made = forecast(), forecast("snow", probability="0.4")
    projections = oracle.projected(*commands, *made, resolution(), resolution("snow", outcome="no"))
    rows = [row for row in projections.table("murphy_curve").rows() if row["participant"] == "ada"]
    scores = {row["threshold"]: (row["n"], row["false_alarms"], row["misses"], row["score"]) for row in rows}
    assert len(scores) == 99
    assert scores["0.390000000"] == (2, 1, 0, "0.195000000")
    assert scores["0.400000000"] == scores["0.690000000"] == (2, 0, 0, "0.000000000")
    assert scores["0.700000000"] == (2, 0, 1, "0.150000000")
