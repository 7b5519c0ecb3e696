"""What counts for a participant on a question without a forecast, worked out by hand."""

from fractions import Fraction
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from tests.support import oracle
from tests.support.given import OPENS, contest, entry, forecast, opened, quote, resolution

BRIER: dict[str, Any] = {"kernel": "brier", "period": "covered", "total": "mean", "least_probability_ppm": 0}


def board(rules: RuleSet, *more: Any) -> dict[str, tuple[str, str]]:
    """Return scores and completions of Ada, who forecasts on rain and snow, and of Bob, who forecasts on rain only.

    Weights are 1, 2 and 3; nobody forecasts on hail. Brier scores are 0.01 and 0.25 for Ada, 0.16 for Bob.
    """
    story: list[Any] = [contest(rules=rules)]
    for weight, name in enumerate(("rain", "snow", "hail"), 1):
        story += [opened(name), entry(question=name, weight=weight)]
    story += [forecast("rain", probability="0.9", at=OPENS), forecast("snow", probability="0.5", at=OPENS)]
    story += [forecast("rain", "bob", probability="0.6", at=OPENS), *more]
    story += [resolution(name) for name in ("rain", "snow", "hail")]
    rows = oracle.projected(*story).table("leaderboard").rows()
    return {row["participant"]: (row["score"], row["completion"]) for row in rows}


def nine(number: Fraction) -> str:
    """Return a number with nine decimals."""
    return str(oracle.nine(number))


def test_without_imputation_a_mean_is_of_the_questions_with_a_forecast() -> None:
    """(0.01 + 2 x 0.25) / 3 for Ada, 0.16 for Bob."""
    found = board(RuleSet(name="x", **BRIER))
    assert found == {"ada": (nine(Fraction(51, 300)), "2/3"), "bob": ("0.160000000", "1/3")}


def test_the_worst_score_counts_for_every_missing_forecast() -> None:
    """(0.01 + 2 x 0.25 + 3) / 6, and (0.16 + 2 + 3) / 6."""
    found = board(RuleSet(name="x", imputation="worst", **BRIER))
    assert found == {"ada": (nine(Fraction(351, 600)), "2/3"), "bob": (nine(Fraction(516, 600)), "1/3")}


def test_even_odds_count_for_every_missing_forecast() -> None:
    """A quarter: (0.01 + 2 x 0.25 + 3 x 0.25) / 6, and (0.16 + 5 x 0.25) / 6."""
    found = board(RuleSet(name="x", imputation="always_half", reference_rows=("always_half",), **BRIER))
    assert found["ada"][0] == nine(Fraction(126, 600))
    assert found["bob"][0] == nine(Fraction(141, 600))
    assert found["[always-half]"] == ("0.250000000", "3/3")


def test_the_consensus_counts_where_somebody_has_a_forecast() -> None:
    """On snow it is Ada's forecast: Bob has (0.16 + 2 x 0.25) / 3. Nothing counts on hail."""
    found = board(RuleSet(name="x", imputation="consensus", score_consensus=True, **BRIER))
    assert found["ada"][0] == nine(Fraction(51, 300))
    assert found["bob"][0] == nine(Fraction(66, 300))


def test_the_market_counts_where_it_has_a_price() -> None:
    """A price of 0.7 for snow: Bob has (0.16 + 2 x 0.09) / 3."""
    rules = RuleSet(name="x", imputation="market", reference_rows=("market",), **BRIER)
    found = board(rules, quote("snow", prices={"yes": "0.7"}, at=OPENS))
    assert found["ada"][0] == nine(Fraction(51, 300))
    assert found["bob"][0] == nine(Fraction(34, 300))


def test_a_sum_gets_the_imputed_scores() -> None:
    """Of the baseline score, the uniform distribution scores 0, so that nothing changes."""
    rules = structs.replace(PRESETS["baseline"], reference_rows=("uniform",))
    without = board(rules)
    assert board(structs.replace(rules, imputation="uniform")) == without
    assert Fraction(without["bob"][0]) > 0


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_who_has_a_forecast_everywhere_gets_nothing(name: Any) -> None:
    """The total is that without imputation."""
    rules = structs.replace(PRESETS["baseline"], total=name, reference_rows=("always_half",))
    more = [forecast(question, "cyd", probability="0.8", at=OPENS) for question in ("rain", "snow", "hail")]
    found = board(structs.replace(rules, imputation="always_half"), *more)
    assert found["cyd"] == board(rules, *more)["cyd"]
