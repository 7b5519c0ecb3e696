"""Score policies: limits of probabilities, the uniform distribution, and units per point."""

from fractions import Fraction
from typing import Any, get_args, get_type_hints

import pytest

from forecast_ledger.ledger.model.commands import OpenQuestion
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.projections.boards.leaderboard import TAKES, TOTALS
from forecast_ledger.projections.boards.prizes import PASSES
from forecast_ledger.projections.scores.community import AGGREGATIONS, AVERAGES
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.projections.scores.sampling import SAMPLINGS
from forecast_ledger.projections.scores.score_terms import REFERENCES
from forecast_ledger.projections.scores.scored_questions import (
    SCALES,
    Answer,
    added_chance,
    greatest_chance,
    kernel_of,
    kernel_unit,
    least_chance,
    lower_is_better,
    per_point,
    uniform_term,
)
from tests.support.given import choices, ensemble, numeric, opened, quartiles
from tests.support.oracle import history, picos

PICO = 10**12
LOSSES = (
    "squared",
    "brier",
    "brier_sum",
    "brier_mean",
    "ordered_brier",
    "error",
    "crps",
    "pinball",
    "absolute",
    "absolute_clipped",
)
FIELDS = {"crps": "cdf_kernel"} | dict.fromkeys(
    ["pinball", "squared", "absolute", "absolute_clipped"], "quantile_kernel"
)


def recorded(question: OpenQuestion) -> QuestionOpened:
    """Return the question as it is recorded."""
    [recorded] = history(question)
    assert isinstance(recorded.event, QuestionOpened)
    return recorded.event


def test_every_policy_a_rule_set_can_name_exists() -> None:
    """No rule set lacks a policy, and no policy is unused."""
    hints = get_type_hints(RuleSet)
    named = {field: set(get_args(hints[field])) for field in hints}
    assert set(REFERENCES) == named["reference"]
    assert set(AGGREGATIONS) == named["consensus"]
    assert set(TAKES) == named["take"]
    assert set(TOTALS) == named["total"]
    assert set(PASSES) == named["least_prize_passes"]
    assert set(SCALES) == named["scale"]
    assert set(SAMPLINGS) == named["sampling"]
    assert {weights for _, weights in AVERAGES} == named["consensus_weights"]


@pytest.mark.parametrize("table", [AGGREGATIONS, REFERENCES, SAMPLINGS, SCALES, TAKES, TOTALS])
def test_every_policy_has_words_and_a_source_that_can_be_looked_up(table: Any) -> None:
    """All words differ; only policies without effect have none. No source is the name of a file of this project."""
    words = [row.words for row in table.values()]
    assert len(set(words)) == len(words)
    assert {name for name, row in table.items() if not row.words} <= {"none", "plain"}
    assert [row.source for row in table.values() if not row.source or "seed" in row.source.lower()] == []


def test_only_kinds_with_outcomes_have_normalized_averages() -> None:
    """An aggregation uses averages that exist with all weights."""
    for row in AGGREGATIONS.values():
        assert {row.of_named, row.of_ranges} <= {average for average, _ in AVERAGES}
        assert set(row.normalized) <= {"binary", "multiple_choice"}
        assert row.normalized or not row.squeezed


def test_a_kernel_is_a_loss_or_a_gain() -> None:
    """The least loss is best; all kernels of a rule set agree on the direction."""
    assert {name for name, kernel in KERNELS.items() if kernel.lower_is_better} == set(LOSSES)
    for name in LOSSES:
        fields: dict[str, str] = dict.fromkeys(["kernel", "cdf_kernel", "quantile_kernel"], "none")
        field = FIELDS.get(name, "kernel")
        assert lower_is_better(RuleSet(name="own", **(fields | {field: name})))  # type: ignore[arg-type]
    losing = {name for name, rules in PRESETS.items() if lower_is_better(rules)}
    assert losing == {name for name, rules in PRESETS.items() if {rules.kernel, rules.quantile_kernel} & set(LOSSES)}


def test_a_question_is_scored_by_the_kernel_of_its_form() -> None:
    """Named outcomes and bins have a kernel each, and quantiles and samples one together."""
    rules = RuleSet(name="own", kernel="brier", cdf_kernel="crps", quantile_kernel="pinball")
    questions = opened(), choices(), numeric(), quartiles(), ensemble()
    kernels = [kernel_of(rules, recorded(question)) for question in questions]
    assert kernels == ["brier", "brier", "crps", "pinball", "pinball"]


@pytest.mark.parametrize(("kernel", "unordered"), [("ordered_brier", "brier_sum"), ("brier", "brier"), ("ln", "ln")])
def test_only_a_question_that_says_that_it_has_no_order_is_scored_without_one(kernel: Any, unordered: str) -> None:
    """One that does not say is scored as it was before questions could say; kernels that ignore order stay."""
    rules = RuleSet(name="x", kernel=kernel)
    chosen = [kernel_of(rules, recorded(choices(ordered=said))) for said in (None, True, False)]
    assert chosen == [kernel, kernel, unordered]


@pytest.mark.parametrize(
    "preset", [name for name, rules in PRESETS.items() if {rules.kernel, rules.cdf_kernel} <= {"ln", "log2"}]
)
@pytest.mark.parametrize(
    ("outcome", "bins", "least"),
    [(0, 0, 10**7), (4, 0, 10**7), (0, 200, 10**7), (1, 200, 500_000), (200, 200, 500_000), (201, 200, 10**7)],
)
def test_a_preset_floors_probabilities_and_densities(preset: str, outcome: int, bins: int, least: int) -> None:
    """Metaculus, Scores FAQ: between 0.1% and 99.9%, and a uniform 0.01, which is 0.01 / 200 in one of 200 bins."""
    assert least_chance(PRESETS[preset], outcome, bins) == least


@pytest.mark.parametrize(
    ("ppm", "bins", "least"), [(1, 32, 312), (3, 32, 938), (1, 10_000, 1), (1, 3, 3_333), (2, 3, 6_667), (0, 3, 0)]
)
def test_the_least_density_is_rounded_half_even(ppm: int, bins: int, least: int) -> None:
    """In 1e-10 it is ppm · 10^4 / bins: 312.5 and 937.5 go to the even neighbour; it is 0 only if ppm is 0."""
    rules = RuleSet(name="own", kernel="ln", least_density_ppm=ppm)
    assert least_chance(rules, 1, bins) == least


def test_the_least_probability_is_the_rule_sets_own() -> None:
    """It is in 1e-6 and independent of the least density."""
    rules = RuleSet(name="own", kernel="ln", least_probability_ppm=7, least_density_ppm=9)
    assert least_chance(rules, 1, 0) == least_chance(rules, 0, 3) == least_chance(rules, 4, 3) == 70_000
    assert least_chance(rules, 3, 3) == 30_000


@pytest.mark.parametrize(("outcome", "bins"), [(0, 0), (1, 0), (0, 200), (1, 200), (200, 200), (201, 200)])
def test_without_a_cap_and_an_added_density_a_probability_is_unchanged(outcome: int, bins: int) -> None:
    """A probability of 1, which is 10^10, is kept, and so is the most that 10,000 bins of half the density can add."""
    for rules in PRESETS.values():
        assert greatest_chance(rules, outcome, bins) >= 10**10
        assert added_chance(rules, outcome, bins) == 0


@pytest.mark.parametrize(
    ("ppm", "bins", "greatest"),
    [
        (35_000_000, 200, 1_750_000_000),
        (1_000_000, 3, 3_333_333_333),
        (1_000_001, 32, 312_500_312),
        (10**12, 1, 10**16),
    ],
)
def test_the_greatest_density_is_a_multiple_of_the_uniform_density(ppm: int, bins: int, greatest: int) -> None:
    """In 1e-10 it is ppm · 10^4 / bins, half-even: 312500312.5 goes down. Open ends have the limit of probabilities."""
    rules = RuleSet(name="own", kernel="ln", greatest_density_ppm=ppm, greatest_probability_ppm=999_000)
    assert [greatest_chance(rules, outcome, bins) for outcome in (1, bins)] == [greatest, greatest]
    assert [greatest_chance(rules, outcome, bins) for outcome in (0, bins + 1)] == [9_990_000_000] * 2
    assert greatest_chance(rules, 1, 0) == 9_990_000_000


def test_a_density_is_added_only_to_bins() -> None:
    """Metaculus, Scores FAQ: 0.01 of the uniform density, 0.01 / 200 of each of 200 bins; nothing else is added to."""
    rules = RuleSet(name="own", kernel="ln", cdf_kernel="ln", density_floor="added")
    assert [added_chance(rules, outcome, 200) for outcome in (0, 1, 200, 201)] == [0, 500_000, 500_000, 0]
    assert added_chance(rules, 1, 0) == 0


@pytest.mark.parametrize("name", ["ln", "log2"])
@pytest.mark.parametrize(
    ("question", "outcome", "chance"),
    [
        (opened(), 1, "1/2"),
        (choices(), 2, "1/3"),
        (numeric(), 1, "1/4"),
        (numeric(bins=1), 1, "1"),
        (numeric(open_upper=True), 4, "0.95/4"),
        (numeric(open_lower=True, open_upper=True), 2, "0.9/4"),
        (numeric(open_lower=True, open_upper=True), 0, "0.05"),
        (numeric(open_lower=True, open_upper=True), 5, "0.05"),
    ],
)
def test_the_uniform_distribution_gives_each_open_end_a_twentieth(
    name: Any, question: OpenQuestion, outcome: int, chance: str
) -> None:
    """Metaculus, its public code: (1 - 0.05 · B) / N in range with B open ends, 0.05 out of it."""
    rules = RuleSet(name="own", kernel=name, cdf_kernel=name, reference="uniform")
    share, _, bins = chance.partition("/")
    expected = picos(name, Fraction(share) / int(bins or 1))
    assert uniform_term(rules, Answer(recorded(question), outcome, "1")) == expected


def test_quantiles_have_no_uniform_reference() -> None:
    """No rule set asks for one; the function raises ValueError."""
    rules = RuleSet(name="own", quantile_kernel="pinball")
    with pytest.raises(ValueError, match="pinball cannot score a uniform"):
        uniform_term(rules, Answer(recorded(quartiles()), 1, "1"))


def test_units_per_point_follow_the_scale() -> None:
    """Metaculus, Scores FAQ: peer scores times 100, half for ranges; a certain forecast is 100 above the uniform."""
    ln = RuleSet(name="own", kernel="ln", cdf_kernel="ln", reference="uniform", scale="baseline")
    log2 = RuleSet(name="own", kernel="log2", cdf_kernel="log2", reference="uniform", scale="baseline")
    peer = RuleSet(name="own", kernel="ln", cdf_kernel="ln", reference="peers", scale="peer")
    plain = RuleSet(name="own", kernel="brier", cdf_kernel="crps")
    choice, ranged = recorded(choices()), recorded(numeric())
    assert [per_point(peer, question) for question in (choice, ranged)] == [Fraction(PICO, 100), Fraction(PICO, 50)]
    assert [per_point(plain, question) for question in (choice, ranged)] == [PICO, PICO]
    assert per_point(ln, choice) * 100 == picos("ln", Fraction(3))
    assert per_point(log2, choice) * 100 == picos("log2", Fraction(3))
    assert per_point(log2, recorded(opened())) == Fraction(PICO, 100)
    assert [per_point(rules, ranged) for rules in (ln, log2)] == [Fraction(PICO, 50)] * 2


@pytest.mark.parametrize(("decimals", "unit"), [(0, 10**4), (3, 10**7), (8, 10**12), (12, 10**12)])
def test_a_quantile_score_has_the_unit_of_its_question(decimals: int, unit: int) -> None:
    """A quantile score has four digits more than its values; other kernels have 12 digits."""
    question = recorded(quartiles(decimals=decimals))
    pinball = RuleSet(name="own", quantile_kernel="pinball")
    assert kernel_unit(pinball, question) == per_point(pinball, question) == unit
    assert kernel_unit(RuleSet(name="own", quantile_kernel="absolute"), question) == PICO
    assert kernel_unit(RuleSet(name="own", kernel="ln", quantile_kernel="pinball"), recorded(opened())) == PICO
