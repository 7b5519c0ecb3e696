"""Rule sets in words: no field is without a sentence, in explanations, reports and papers."""

from types import UnionType
from typing import Any, Literal, get_args, get_origin

import pytest
from msgspec import structs

from forecast_ledger.ledger.model.rules import LEVELS, RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.projections.boards.leaderboard import TAKES
from forecast_ledger.replay.reading.descriptions import (
    FURTHER,
    TRADING_FIELDS,
    describe_board,
    describe_rules,
    describe_score,
    further_rules,
    trading_words,
)

# Fields whose sentence is part of that of another field, or of `describe_score` and `describe_board`.
TOLD_WITH_OTHERS = {
    "density_floor": "least_density_ppm",
    "score_consensus": "reference_rows",
    "least_prize_passes": "least_prize_micros",
    "replicates": "level_ppm",
}
TOLD_WITH_FEE = ("fee_exponent", "fee_unit_micros", "fee_rounding")

# A rule set in which each field has an effect, so that another value of it says something else.
WHOLE = RuleSet(
    name="whole", kernel="ln", cdf_kernel="ln", quantile_kernel="pinball", reference="consensus", sampling="day",
    total="per_coverage", least_coverage=5, take="coverage_exp", least_prize_micros=50 * 10**6,
)  # fmt: skip
OTHERS: dict[str, Any] = {
    "name": "other", "scored_only_levels": ("hidden",), "reference_rows": ("uniform",), "trading": Trading(),
    "least_probability_ppm": 2_000, "least_density_ppm": 20_000, "open_end_ppm": 10_000, "replicates": 99,
    "greatest_probability_ppm": 990_000, "greatest_density_ppm": 10**9, "level_ppm": 900_000, "cohorts": "none",
    "clusters": ("question",),
}  # fmt: skip


def told(rules: RuleSet) -> str:
    """Everything that is said of a rule set, without the list of its fields."""
    kernels = (rules.kernel, rules.cdf_kernel, rules.quantile_kernel)
    scores = [describe_score(rules, kernel) for kernel in kernels if kernel != "none"]
    trading = ["they trade"] * (rules.trading is not None)
    return "\n".join(
        [rules.name, *scores, describe_board(rules), TAKES[rules.take].words, *further_rules(rules), *trading]
    )


def other(field: str, value: Any, of: type[RuleSet | Trading] = RuleSet) -> Any:
    """Return another value of a field."""
    if field in OTHERS:
        return OTHERS[field]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 7
    kind = {each.name: each.type for each in structs.fields(of)}[field]
    choices = [choice for choice in _choices(kind) if choice not in {value, "none"}]
    return choices[0]


def _choices(kind: Any) -> list[Any]:
    """Return the values of a literal type, which may be a union of literals."""
    if get_origin(kind) is Literal:
        return [choice for part in get_args(kind) for choice in (_choices(part) or [part])]
    parts = get_args(kind) if isinstance(kind, UnionType) else ()
    return [choice for part in parts for choice in _choices(part)]


@pytest.mark.parametrize("field", RuleSet.__struct_fields__)
def test_every_field_of_a_rule_set_is_in_a_sentence(field: str) -> None:
    """Another value of it says something else."""
    changed = structs.replace(WHOLE, **{field: other(field, getattr(WHOLE, field))})
    assert told(changed) != told(WHOLE)


@pytest.mark.parametrize("field", Trading.__struct_fields__)
def test_every_field_of_trading_rules_is_in_a_sentence(field: str) -> None:
    """Another value of it says something else; there is a fee, so that its fields have an effect."""
    whole = Trading(fee_rate_ppm=70_000)
    changed = structs.replace(whole, **{field: other(field, getattr(whole, field), Trading)})
    assert trading_words(changed) != trading_words(whole)
    assert {*TRADING_FIELDS, *TOLD_WITH_FEE} == {*Trading.__struct_fields__}


def test_trading_rules_are_in_words() -> None:
    """Amounts in the currency, percentages of positions, and the fee as a formula."""
    words = trading_words(
        Trading(fee_rate_ppm=70_000, fee_exponent=2, fee_unit_micros=10_000, least_percentage_micros=2_500_000)
    )
    assert words[:3] == ["an account starts with 10000.00", "the least bet is 50.00", "the largest bet is the cash / 4"]
    assert "a sale sells 2.5% of a position or more" in words
    fee = "7% x shares x (price x (1 - price)) to the power of 2, rounded up to a multiple of 0.01"
    assert f"the fee of a trade is {fee}" in words


def test_an_explanation_has_the_rules_of_trading_unless_it_is_of_a_score() -> None:
    """A score of forecasts does not depend on them."""
    rules = structs.replace(WHOLE, trading=Trading())
    assert describe_rules(rules, 1, "")["also"] == [*further_rules(WHOLE), *trading_words(Trading())]
    assert describe_rules(rules, 1, "", "ln")["also"] == further_rules(WHOLE)


def test_limits_exclusions_and_bots_are_named() -> None:
    """The least prize in the currency, the floor in percent, and what bots are to others."""
    words = further_rules(structs.replace(WHOLE, bots="scored_only", bot_level="no_rank"))
    assert "the least prize is 50.00, and takes below it are dropped from the bottom up, equal ones together" in words
    assert "a probability below 0.1% counts as this in a logarithm" in words
    assert "a density below 1% of the uniform density counts as this" in words
    assert "bots count neither among the peers nor in the consensus" in words
    assert "bots are excluded as no_rank" in words
    assert describe_rules(WHOLE, 1, "")["also"] == further_rules(WHOLE)


def test_the_table_names_fields_that_there_are() -> None:
    """A field that is told with another one names it, and the levels of exclusion are those of a rule set."""
    assert {*FURTHER, *TOLD_WITH_OTHERS} <= {*RuleSet.__struct_fields__}
    assert {*TOLD_WITH_OTHERS.values()} <= {*FURTHER}
    assert set(OTHERS["scored_only_levels"]) <= {*LEVELS}
