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
    TOLD_WITH_OTHERS,
    describe_board,
    describe_rules,
    describe_score,
    further_rules,
)

# A rule set in which each field has an effect, so that another value of it says something else.
WHOLE = RuleSet(
    name="whole", kernel="ln", cdf_kernel="ln", quantile_kernel="pinball", reference="consensus", sampling="day",
    total="per_coverage", least_coverage=5, take="coverage_exp", least_prize_micros=50 * 10**6,
)  # fmt: skip
OTHERS: dict[str, Any] = {
    "name": "other", "scored_only_levels": ("hidden",), "reference_rows": ("uniform",), "trading": Trading(),
    "least_probability_ppm": 2_000, "least_density_ppm": 20_000, "open_end_ppm": 10_000, "replicates": 99,
    "greatest_probability_ppm": 990_000, "greatest_density_ppm": 10**9, "level_ppm": 900_000,
}  # fmt: skip


def told(rules: RuleSet) -> str:
    """Everything that is said of a rule set, without the list of its fields."""
    kernels = (rules.kernel, rules.cdf_kernel, rules.quantile_kernel)
    scores = [describe_score(rules, kernel) for kernel in kernels if kernel != "none"]
    trading = ["they trade"] * (rules.trading is not None)
    return "\n".join(
        [rules.name, *scores, describe_board(rules), TAKES[rules.take].words, *further_rules(rules), *trading]
    )


def other(field: str, value: Any) -> Any:
    """Return another value of a field."""
    if field in OTHERS:
        return OTHERS[field]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 7
    kind = {each.name: each.type for each in structs.fields(RuleSet)}[field]
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
