"""Tests of rule sets, as they are recorded and as people write them."""

import ast
import inspect
import json
from decimal import Decimal
from functools import partial
from io import BytesIO
from itertools import count
from random import Random
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model import rules as rules_module
from forecast_ledger.ledger.model.answers import why_unscorable
from forecast_ledger.ledger.model.canonical import canonical_content
from forecast_ledger.ledger.model.commands import OpenQuestion, ResolveQuestion
from forecast_ledger.ledger.model.events import Attestation, NumericRange
from forecast_ledger.ledger.model.rules import (
    LATER_FIELDS,
    PRESETS,
    RuleSet,
    inconsistency,
    recorded_fields,
    written_fields,
)
from forecast_ledger.ledger.model.trading_rules import (
    LATER_TRADING_FIELDS,
    Trading,
    broken_trading_rules,
    encoded_fields,
    encoded_name,
    recorded_trading,
)
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from forecast_ledger.replay.explain.what_if import parse_rule_set
from forecast_ledger.replay.mapping.csv_mapping import parse_map
from forecast_ledger.replay.reference.rule_fields import RULES
from tests.support.effort import times
from tests.support.given import (
    BEFORE,
    COLOURS,
    HOUR,
    bet,
    choices,
    contest,
    day,
    decision,
    enrolment,
    entry,
    exclusion,
    finalization,
    forecast,
    micros,
    numeric,
    opened,
    quartiles,
    quote,
    resolution,
    withdrawal,
)
from tests.support.maps import read_rows

# The rules of each preset in its documents: Metaculus, Tournament Scoring and Scores FAQ, for the first eight, and its
# published code for peer-average and peer-average-2023; Autocast competition of 2022, "Evaluation" and "Warm-up Round",
# for autocast-2022; Brier (1950) for brier-daily; Forecaster Arena, Methodology v1 and Scoring Methodology, for the
# presets of the arena; ForecastBench's published code, (forecast - resolved_to)², for forecastbench.
PUBLISHED: dict[str, dict[str, Any]] = {
    "relative-2021-11": {"kernel": "log2", "reference": "consensus", "take": "coverage_exp2", "rank_by": "take"},
    "relative-2022-04": {"kernel": "ln", "reference": "consensus", "take": "coverage_exp", "rank_by": "take"},
    "relative-faq": {"kernel": "log2", "reference": "consensus", "take": "coverage_exp", "rank_by": "take"},
    "baseline": {"kernel": "ln", "reference": "uniform", "scale": "baseline", "take": "none"},
    "peer-2024-03": {"kernel": "ln", "reference": "peers", "scale": "peer", "take": "positive_square"},
    "peer-2025-06": {"reference": "peers", "take": "positive_square", "least_prize_micros": 50_000_000},
    "spot-peer": {"reference": "peers", "scale": "peer", "sampling": "spot", "take": "positive_square"},
    "spot-baseline": {"reference": "uniform", "scale": "baseline", "sampling": "spot", "take": "positive_square"},
    "peer-average": {"reference": "peers", "total": "per_coverage", "least_coverage": 30, "take": "none"},
    "peer-average-2023": {"reference": "peers", "total": "per_question", "least_coverage": 40, "take": "none"},
    "autocast-2022": {
        "kernel": "brier",
        "quantile_kernel": "absolute",
        "sampling": "spot",
        "total": "kind_means",
        "best_of_entrant": True,
        "attested": True,
        "take": "none",
    },
    "brier-daily": {
        "kernel": "brier_sum",
        "sampling": "day",
        "day_edges": "none",
        "period": "covered",
        "total": "mean",
    },
    "arena-v1": {"kernel": "brier", "period": "covered", "total": "mean", "take": "none", "trading": Trading()},
    "arena-v2": {
        "kernel": "brier",
        "period": "covered",
        "total": "mean",
        "trading": Trading(legs="all_or_nothing", sum_capped=True, deciding_cohorts=5),
    },
    "arena-v1-kalshi": {
        "kernel": "brier",
        "trading": Trading(fee_rate_ppm=70_000, fee_exponent=1, fee_unit_micros=10_000, fee_rounding="cash"),
    },
    "arena-v1-polymarket": {
        "kernel": "brier",
        "trading": Trading(fee_rate_ppm=50_000, fee_exponent=1, fee_unit_micros=10, fee_rounding="down"),
    },
    "forecastbench": {
        "kernel": "brier",
        "sampling": "time",
        "period": "covered",
        "total": "mean",
        "take": "none",
        "payouts": "scored",
    },
    "market-trades": {
        "kernel": "brier",
        "sampling": "time",
        "period": "covered",
        "total": "mean",
        "take": "none",
        "payouts": "scored",
        "trading": Trading(
            starting_cash_micros=0,
            cohorts="none",
            period_days=0,
            snapshot_seconds=86_400,
            closed_marks="last",
            recorded_trades=True,
            overdrafts=True,
        ),
    },
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_preset_has_the_values_of_its_document(name: str) -> None:
    """A preset has the values of its document and its own name."""
    preset = PRESETS[name]
    assert {field: getattr(preset, field) for field in PUBLISHED[name]} == PUBLISHED[name]
    assert preset.name == name


def test_those_are_all_the_presets() -> None:
    """Every preset has a document."""
    assert set(PRESETS) == set(PUBLISHED)


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_every_preset_is_consistent(preset: RuleSet) -> None:
    """Every preset is consistent, and is read back from its recorded fields."""
    assert inconsistency(preset) == ""
    assert msgspec.json.decode(msgspec.json.encode(preset), type=RuleSet) == preset


def test_the_presets_floor_probabilities_at_what_the_platform_allows() -> None:
    """The limits are 0.1% for an outcome, 0.01 of the uniform density, and 5% for an open end.

    Scores without a logarithm count a probability of 0 as 0.
    Source: Metaculus, Scores FAQ, "What is the Baseline score?".
    """
    for preset in PRESETS.values():
        logarithmic = preset.kernel in {"ln", "log2"}
        assert preset.least_probability_ppm == (1_000 if logarithmic else 0)
        assert (preset.least_density_ppm, preset.open_end_ppm) == (10_000, 50_000)


def test_the_relative_scores_see_every_forecast_and_the_peer_scores_no_bot() -> None:
    """The bot's copy counts in the median; means exclude bots (Metaculus, Tournament Scoring; since August 2024)."""
    for name, preset in PRESETS.items():
        assert preset.bots == ("scored_only" if "peer" in name else "members")
        assert (preset.consensus, preset.consensus_weights, preset.period in {"scheduled", "covered"}) == (
            "median",
            "equal",
            True,
        )


def test_a_rule_set_is_described_field_by_field() -> None:
    """The table of fields has a meaning for exactly these fields."""
    assert RULES.keys() >= {*RuleSet.__struct_encode_fields__}


LOSS: dict[str, Any] = {"kernel": "brier", "period": "covered", "total": "mean"}  # consistent
POINTS = {"quantile_kernel": "absolute", "period": "covered", "total": "mean"}
SPHERICAL = {"kernel": "spherical"}
OTHERS = {"kernel": "ln", "reference": "consensus", "consensus_of": "others"}
# The message, the fields that contradict each other, and the field whose change corrects it.
FEES: list[dict[str, Any]] = [{"fee_exponent": 2}, {"fee_unit_micros": 100}, {"fee_rounding": "down"}]
CONTRADICTIONS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("the rule set has no kernel", {}, {"kernel": "ln"}),
    *[
        ("two clusters must be", {"kernel": "ln", "clusters": fields}, {"clusters": ("group", "category")})
        for fields in (("group", "group"), ("tag:a", "tag:a"), ("question", "group"), ("group", "question"))
    ],
    *[
        ("the totals of kind means need", LOSS | {"total": total, "clusters": ("group", "tag:a")}, {"total": "mean"})
        for total in ("kind_means", "kind_means_third")
    ],
    ("the rule set has no kernel", {"reference": "peers"}, {"quantile_kernel": "pinball"}),
    ("the rule set has no kernel", {"total": "mean"}, {"trading": Trading()}),
    *[
        ("a logarithm needs", {kernel: base, floor: 0}, {floor: 1})
        for kernel in ("kernel", "cdf_kernel")
        for base in ("ln", "log2")
        for floor in ("least_probability_ppm", "least_density_ppm", "open_end_ppm")
    ],
    *[
        ("fee_exponent, fee_unit and", LOSS | {"trading": Trading(**fee)}, {"trading": Trading(fee_rate_ppm=1, **fee)})
        for fee in FEES
    ],
    *[
        (
            "short_sales and overdrafts need",
            {"trading": trading},
            {"trading": msgspec.structs.replace(trading, recorded_trades=True)},
        )
        for trading in (Trading(short_sales=True), Trading(overdrafts=True))
    ],
    ("kernels must agree", LOSS | {"cdf_kernel": "ln"}, {"cdf_kernel": "crps"}),
    ("kernels must agree", LOSS | {"kernel": "spherical", "cdf_kernel": "crps"}, {"kernel": "brier"}),
    ("kernels must agree", POINTS | {"kernel": "ln", "reference": "peers"}, {"quantile_kernel": "none"}),
    ("logarithms of two bases", {"kernel": "ln", "cdf_kernel": "log2"}, {"cdf_kernel": "ln"}),
    ("logarithms of two bases", {"kernel": "log2", "cdf_kernel": "ln"}, {"cdf_kernel": "none"}),
    (
        "the scales peer, peer_whole and baseline",
        SPHERICAL | {"reference": "uniform", "scale": "baseline"},
        {"kernel": "ln"},
    ),
    (
        "the scales peer, peer_whole and baseline",
        SPHERICAL | {"reference": "uniform", "scale": "baseline"},
        {"scale": "plain"},
    ),
    (
        "the scales peer, peer_whole and baseline",
        SPHERICAL | {"reference": "peers", "scale": "peer"},
        {"kernel": "log2"},
    ),
    ("the scales peer, peer_whole and baseline", LOSS | {"reference": "peers", "scale": "peer"}, {"scale": "plain"}),
    ("the scales peer, peer_whole and baseline", POINTS | {"reference": "peers", "scale": "peer"}, {"scale": "plain"}),
    ("the scales peer, peer_whole and baseline", SPHERICAL | {"cdf_kernel": "ln", "scale": "peer"}, {"kernel": "ln"}),
    *[
        ("the scale baseline", {"kernel": "ln", "scale": "baseline", "reference": reference}, {"reference": "uniform"})
        for reference in ("none", "peers", "consensus")
    ],
    *[
        ("a take needs", LOSS | {"take": take}, {"take": "none"})
        for take in ("coverage_exp", "coverage_exp2", "positive_square")
    ],
    ("a take needs", LOSS | {"reference": "peers", "take": "positive_square"}, {"take": "none"}),
    *[
        ("quantile_kernel needs reference", POINTS | {"reference": reference}, {"reference": "peers"})
        for reference in ("uniform", "consensus")
    ],
    (
        "quantile_kernel needs reference",
        POINTS | {"reference": "peers", "score_consensus": True},
        {"score_consensus": False},
    ),
    (
        "quantile_kernel needs reference",
        POINTS | {"reference": "peers", "reference_rows": ("uniform", "consensus")},
        {"reference_rows": ("uniform", "market")},
    ),
    ("a transform needs", LOSS | {"transform": "log_shifted"}, {"quantile_kernel": "pinball"}),
    ("a transform needs", LOSS | {"transform": "sqrt"}, {"quantile_kernel": "pinball"}),
    ("a transform needs", POINTS | {"transform": "log_shifted"}, {"quantile_kernel": "pinball"}),
    (
        "a transform needs",
        POINTS | {"quantile_kernel": "pinball", "cdf_kernel": "crps", "transform": "log_shifted"},
        {"cdf_kernel": "none"},
    ),
    ("payouts scored needs", {"kernel": "ln", "payouts": "scored"}, {"payouts": "unscored"}),
    ("payouts scored needs", LOSS | {"kernel": "error", "payouts": "scored"}, {"kernel": "ordered_brier"}),
    ("reference_rows need", {"trading": Trading(), "reference_rows": ("market",)}, {"kernel": "ln"}),
    ("per_coverage needs", {"kernel": "ln", "total": "per_coverage"}, {"least_coverage": 1}),
    ("per_question needs", {"kernel": "ln", "total": "per_question"}, {"least_coverage": 40}),
    *[
        ("least_questions and least_share_ppm need", {"trading": Trading(), field: 1}, {"kernel": "ln"})
        for field in ("least_questions", "least_share_ppm")
    ],
    ("replicates and level_ppm must fit", {"kernel": "ln", "replicates": 1_998}, {"replicates": 999}),
    (
        "replicates and level_ppm must fit",
        {"kernel": "ln", "level_ppm": 998_000, "replicates": 99},
        {"replicates": 999},
    ),
    ("least_prize needs", {"kernel": "ln", "least_prize_micros": 1}, {"take": "positive_square"}),
    ("least_prize needs", LOSS | {"least_prize_micros": 50_000_000}, {"least_prize_micros": 0}),
    ("rank_by take needs", {"kernel": "ln", "rank_by": "take"}, {"take": "coverage_exp"}),
    ("rank_by take needs", LOSS | {"rank_by": "take"}, {"rank_by": "total"}),
    ("the totals of kind means, and imputation worst", {"kernel": "ln", "imputation": "worst"}, {"imputation": "none"}),
    (
        "the totals of kind means, and imputation worst",
        LOSS | {"kernel": "brier_mean", "imputation": "worst"},
        {"kernel": "brier"},
    ),
    (
        "the totals of kind means, and imputation worst",
        LOSS | {"reference": "peers", "imputation": "worst"},
        {"reference": "none"},
    ),
    (
        "imputation needs total sum or mean",
        {"kernel": "ln", "total": "per_coverage", "least_coverage": 1, "imputation": "uniform"}
        | {"reference_rows": ("uniform",)},
        {"total": "sum"},
    ),
    ("imputation needs total sum or mean", LOSS | {"total": "kind_means", "imputation": "worst"}, {"total": "mean"}),
    (
        "late_minutes needs clock claimed",
        {"kernel": "ln", "clock": "recorded", "late_minutes": 60},
        {"clock": "claimed"},
    ),
    (
        "imputation by a reference forecaster",
        LOSS | {"imputation": "market", "reference_rows": ("uniform",)},
        {"reference_rows": ("market",)},
    ),
    ("imputation by a reference forecaster", LOSS | {"imputation": "consensus"}, {"score_consensus": True}),
    *[
        contradiction
        for total in ("kind_means", "kind_means_third")
        for contradiction in (
            ("the totals of kind means", {"kernel": "ln", "total": total}, {"total": "mean"}),
            ("the totals of kind means", LOSS | {"total": total, "reference": "peers"}, {"reference": "none"}),
            (
                "the totals of kind means",
                LOSS | {"total": total, "quantile_kernel": "pinball"},
                {"quantile_kernel": "absolute"},
            ),
            ("the totals of kind means", LOSS | {"total": total, "kernel": "brier_mean"}, {"kernel": "brier_sum"}),
        )
    ],
    *[
        ("consensus_of others needs", OTHERS | wrong, {field: mended})
        for wrong, field, mended in (
            ({"reference": "none"}, "reference", "consensus"),
            ({"reference": "peers"}, "consensus_of", "all"),
            ({"consensus": "mean"}, "consensus", "median"),
            ({"consensus": "community"}, "consensus", "median"),
            ({"consensus_weights": "recency"}, "consensus_weights", "equal"),
        )
    ],
    ("consensus_of others needs kernels", OTHERS | {"kernel": "spherical"}, {"kernel": "ln"}),
    ("consensus_of others needs kernels", OTHERS | LOSS, {"consensus_of": "all"}),
    (
        "greatest_probability_ppm must be above",
        {"kernel": "ln", "least_probability_ppm": 500_000, "greatest_probability_ppm": 500_000},
        {"greatest_probability_ppm": 500_001},
    ),
    ("greatest_probability_ppm and", SPHERICAL | {"greatest_probability_ppm": 999_000}, {"kernel": "ln"}),
    ("greatest_probability_ppm and", LOSS | {"greatest_density_ppm": 10**9}, {"greatest_density_ppm": 10**12}),
    ("density_floor added needs", {"kernel": "ln", "density_floor": "added"}, {"cdf_kernel": "ln"}),
    ("density_floor added needs", LOSS | {"density_floor": "added"}, {"density_floor": "least"}),
    *[
        ("day_edges opening and none", LOSS | {"day_edges": edges, "sampling": other}, {"sampling": "day"})
        for edges in ("opening", "none")
        for other in ("time", "spot")
    ],
    *[
        (
            "least_prize_passes one and",
            {"kernel": "ln", "take": "positive_square", "least_prize_passes": passes},
            {"least_prize_micros": 1},
        )
        for passes in ("one", "one_by_one")
    ],
    ("a loss without a reference", LOSS | {"period": "scheduled"}, {"period": "covered"}),
    ("a loss without a reference", LOSS | {"period": "actual"}, {"reference": "peers"}),
    ("a loss without a reference", LOSS | {"total": "sum"}, {"total": "mean"}),
    ("a loss without a reference", LOSS | {"total": "per_coverage", "least_coverage": 1}, {"reference": "uniform"}),
    ("a loss without a reference", LOSS | {"total": "per_question", "least_coverage": 1}, {"total": "mean"}),
    ("a loss without a reference", POINTS | {"period": "scheduled"}, {"period": "covered"}),
]


@pytest.mark.parametrize(("what", "fields", "cure"), CONTRADICTIONS)
def test_a_rule_set_that_contradicts_itself_in_one_thing_is_found(
    what: str, fields: dict[str, Any], cure: dict[str, Any]
) -> None:
    """The message names the rule; with that field changed, the rule set is consistent, so nothing else was wrong."""
    assert len(cure) == 1
    assert inconsistency(RuleSet(name="x", **fields)).startswith(what)
    assert inconsistency(RuleSet(name="x", **(fields | cure))) == ""


def test_every_contradiction_is_tested_above() -> None:
    """The tables in the code have the same rows as the table here."""
    sources = inspect.getsource(rules_module) + inspect.getsource(broken_trading_rules)
    tables = [node for node in ast.walk(ast.parse(sources)) if isinstance(node, ast.Return)]
    keys = [key for statement in tables if isinstance(statement.value, ast.Dict) for key in statement.value.keys if key]
    rows = [eval(ast.unparse(key), vars(rules_module)) for key in keys]  # noqa: S307 - some name kernels of the module
    messages = {inconsistency(RuleSet(name="x", **fields)) for _, fields, _ in CONTRADICTIONS}
    assert set(rows) == messages


@pytest.mark.parametrize(
    "fields",
    [
        {"kernel": "spherical", "reference": "consensus", "take": "positive_square"},
        {"kernel": "spherical", "cdf_kernel": "ln"},
        {"kernel": "spherical", "least_probability_ppm": 0, "least_density_ppm": 0, "open_end_ppm": 0},
        {"kernel": "log2", "reference": "uniform", "scale": "baseline", "rank_by": "take", "take": "coverage_exp2"},
        {"cdf_kernel": "log2", "reference": "consensus", "consensus": "mean", "consensus_weights": "recency"},
        LOSS | {"cdf_kernel": "crps", "quantile_kernel": "pinball"},
        LOSS | {"cdf_kernel": "crps", "total": "kind_means", "least_probability_ppm": 0},
        {"kernel": "ordered_brier", "reference": "peers", "sampling": "day", "day_minutes": -1_440},
        {"quantile_kernel": "pinball", "reference": "peers", "scored_only_levels": ("no_prize", "no_rank", "hidden")},
        {"kernel": "ln", "score_consensus": True, "best_of_entrant": True, "clock": "recorded"},
        OTHERS | {"cdf_kernel": "ln", "bots": "scored_only", "score_consensus": True, "sampling": "day"},
        {
            "cdf_kernel": "log2",
            "density_floor": "added",
            "greatest_density_ppm": 1_000_000,
            "least_density_ppm": 500_000,
        },
        {"quantile_kernel": "pinball", "kernel": "none", "reference": "peers", "least_density_ppm": 0},
        LOSS | {"kernel": "error", "quantile_kernel": "absolute_clipped", "total": "kind_means_third"},
    ],
    ids=str,
)
def test_consistent_rules_are_accepted(fields: dict[str, Any]) -> None:
    """Fields may be combined freely, except where a score cannot be computed or the worst would rank first."""
    assert inconsistency(RuleSet(name="x", **fields)) == ""


LIMITS: dict[str, tuple[int, int]] = {
    "day_minutes": (-1_440, 1_440),
    "late_minutes": (0, 10**10),
    "least_coverage": (0, 10**6),
    "least_prize_micros": (0, 10**18),
    "least_questions": (0, 10**9),
    "least_share_ppm": (0, 10**6),
    "replicates": (19, 3_999),
    "level_ppm": (500_000, 999_000),
    "least_probability_ppm": (0, 500_000),
    "least_density_ppm": (0, 500_000),
    "open_end_ppm": (0, 499_999),  # two open ends leave probability for the bins inside
    "greatest_probability_ppm": (500_000, 10**6),
    "greatest_density_ppm": (10**6, 10**12),
}


def read(**fields: Any) -> RuleSet:
    """Return a rule set as read from an event."""
    return msgspec.json.decode(msgspec.json.encode({"name": "x"} | fields), type=RuleSet)


@pytest.mark.parametrize(("field", "limits"), LIMITS.items())
def test_a_number_of_a_rule_set_keeps_within_its_limits(field: str, limits: tuple[int, int]) -> None:
    """Both limits are allowed, and values beyond them are not."""
    least, most = limits
    name = encoded_name(field)
    assert [getattr(read(**{name: number}), field) for number in limits] == [least, most]
    wrong: list[Any] = [least - 1, most + 1, 10**18 + 1, -(10**18), 0.5, "1", None, True, []]
    for number in wrong:
        with pytest.raises(msgspec.ValidationError, match=name):
            read(**{name: number})


FLAGS = [field for field, hint in get_type_hints(RuleSet).items() if hint is bool]
CHOSEN = {field: get_args(hint) for field, hint in get_type_hints(RuleSet).items() if get_origin(hint) is Literal}


@pytest.mark.parametrize("field", CHOSEN)
def test_a_choice_of_a_rule_set_is_one_of_its_names(field: str) -> None:
    """A choice must be spelt exactly like one of its names."""
    assert {getattr(read(**{field: name}), field) for name in CHOSEN[field]} == set(CHOSEN[field])
    for name in ("", CHOSEN[field][0].upper(), CHOSEN[field][0] + " ", "any", None, 1, [CHOSEN[field][0]]):
        with pytest.raises(msgspec.ValidationError, match=field):
            read(**{field: name})


def test_those_are_all_the_fields() -> None:
    """Every field is a number with limits, a choice of names, a truth value, or one of these five."""
    assert {"name", "scored_only_levels", "reference_rows", "clusters", "trading", *LIMITS, *CHOSEN, *FLAGS} == set(
        RuleSet.__struct_fields__
    )


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("name", ["", "x" * 201, None, 1]),
        ("scored_only_levels", ["hidden", ["x"], [None], [["hidden"]], None, {"hidden": 1}]),
        ("reference_rows", ["market", ["x"], [None], [["market"]], None, {"market": 1}]),
        (
            "clusters",
            [
                "group",
                [],
                ["groups"],
                ["tag:"],
                ["tag"],
                ["tag:a=b"],
                ["tag:a", "tag:b", "tag:c"],
                [None],
                None,
                {"group": 1},
            ],
        ),
        *[(field, [0, 1, "true", None]) for field in FLAGS],
        ("trading", [True, "arena-v1", [], {"fee": 1}, {"legs": "any"}, {"cap_divisor": 0}, {"attempts": "2"}]),
        ("fee", [1]),
        ("Kernel", ["ln"]),
    ],
)
def test_a_value_of_another_type_in_a_rule_set_is_refused(field: str, wrong: list[Any]) -> None:
    """Unknown fields are refused too: a misspelt rule is never ignored."""
    for value in wrong:
        with pytest.raises(msgspec.ValidationError):
            read(**{field: value})


def test_a_rule_set_with_only_a_name_scores_nothing() -> None:
    """A rule set has no kernel unless it names one."""
    assert (read().kernel, read().cdf_kernel, read().quantile_kernel) == ("none", "none", "none")
    assert inconsistency(read()) == "the rule set has no kernel and no trading, so nothing can be scored"


def test_a_rule_set_recorded_before_a_field_was_added_is_spelt_as_it_was() -> None:
    """A field added later is written only if it differs from its default; the first fields are always written."""
    plain = read(kernel="ln")
    assert (
        set(RuleSet.__struct_encode_fields__) - set(LATER_FIELDS)
        == set(recorded_fields(plain))
        == set(recorded_fields(PRESETS["peer-2025-06"]))
    )
    later = {"consensus_of": "others", "least_prize_passes": "one", "density_floor": "added"}
    limits = {"greatest_probability_ppm": 999_000, "greatest_density_ppm": 35_000_000}
    limits |= {"least_questions": 3, "least_share_ppm": 950_000}
    later |= {"coverage_period": "actual", "day_edges": "opening"}
    later |= {"bot_level": "no_rank", "payouts": "scored", "transform": "log_shifted", "imputation": "worst"}
    limits |= {"replicates": 999, "level_ppm": 900_000, "late_minutes": 60}
    rows = {"reference_rows": ("market",), "clusters": ("tag:place",)}
    assert set(LATER_FIELDS) == {*later, *limits, *rows, "trading"}
    given = read(**later, **limits, **rows)
    assert recorded_fields(given) | later | limits | rows == recorded_fields(given)
    first = {*Trading.__struct_encode_fields__} - {*LATER_TRADING_FIELDS}
    trading = recorded_fields(PRESETS["arena-v1"])["trading"]
    assert trading == {field: value for field, value in encoded_fields(Trading()).items() if field in first}
    assert recorded_trading(Trading(replies="lenient")) == trading | {"replies": "lenient"}
    assert read(**recorded_fields(plain)) == plain


BINS = NumericRange(lower="0", upper="4", bins=4)
POINT = NumericRange(lower="0", upper="4", levels=(500_000_000,))
TAILED = NumericRange(lower="0", upper="4", levels=(500_000_000,), open_upper=True)
LEFT = NumericRange(lower="0", upper="4", levels=(500_000_000,), open_lower=True)
QUARTILES = NumericRange(lower="0", upper="4", levels=(250_000_000, 500_000_000, 750_000_000))
OTHER_LEVEL = NumericRange(lower="0", upper="4", levels=(500_000_001,))
NAMED_ONLY = RuleSet(name="x", kernel="brier")
CURVES_ONLY = RuleSet(name="x", cdf_kernel="crps")
STAKES_ONLY = RuleSet(name="x", trading=Trading())
QUANTILES_ONLY = RuleSet(name="x", quantile_kernel="pinball")
SHIFTED_ONLY = RuleSet(name="x", quantile_kernel="pinball", transform="log_shifted")
POINTS_ONLY = RuleSet(name="x", quantile_kernel="absolute")
CLIPPED_ONLY = RuleSet(name="x", quantile_kernel="absolute_clipped")
LOGARITHMIC = [msgspec.structs.replace(SHIFTED_ONLY, transform=name) for name in ("log", "log2", "log10")]
ROOTS = msgspec.structs.replace(SHIFTED_ONLY, transform="sqrt")
POSITIVE = msgspec.structs.replace(QUARTILES, lower="1", open_upper=True)
CENTS = msgspec.structs.replace(QUARTILES, lower="0.01", decimals=2)
SCORABLE: list[tuple[RuleSet, NumericRange | None, str]] = [
    (NAMED_ONLY, None, ""),
    (NAMED_ONLY, BINS, "its rule set has no cdf_kernel"),
    (NAMED_ONLY, POINT, "its rule set has no quantile_kernel"),
    (NAMED_ONLY, QUARTILES, "its rule set has no quantile_kernel"),
    (CURVES_ONLY, None, "its rule set has no kernel for named outcomes"),
    (CURVES_ONLY, BINS, ""),
    (STAKES_ONLY, None, ""),  # they can be traded
    (STAKES_ONLY, BINS, "its rule set has no cdf_kernel"),
    (STAKES_ONLY, POINT, "its rule set has no quantile_kernel"),
    (CURVES_ONLY, POINT, "its rule set has no quantile_kernel"),
    (QUANTILES_ONLY, None, "its rule set has no kernel for named outcomes"),
    (QUANTILES_ONLY, BINS, "its rule set has no cdf_kernel"),
    *[(QUANTILES_ONLY, span, "") for span in (POINT, TAILED, LEFT, QUARTILES, OTHER_LEVEL)],
    *[(SHIFTED_ONLY, span, "") for span in (POINT, TAILED, QUARTILES)],
    *[
        (
            msgspec.structs.replace(SHIFTED_ONLY, transform=name),
            span,
            f"the transform {name} needs a range that is closed below, at 0 or above",
        )
        for span in (LEFT, msgspec.structs.replace(QUARTILES, lower="-0.000000000001"))
        for name in ("log_shifted", "sqrt")
    ],
    *[(transformed, span, "") for transformed in LOGARITHMIC for span in (POSITIVE, CENTS)],
    *[
        (rules, span, f"the transform {rules.transform} needs a range that is closed below, at {least} or above")
        for rules in LOGARITHMIC
        for span, least in (
            (QUARTILES, "1"),
            (msgspec.structs.replace(POSITIVE, open_lower=True), "1"),
            (msgspec.structs.replace(CENTS, lower="0.0099"), "0.01"),
        )
    ],
    *[(ROOTS, span, "") for span in (POINT, QUARTILES, msgspec.structs.replace(TAILED, decimals=3))],
    (ROOTS, msgspec.structs.replace(QUARTILES, upper="40000000000"), ""),
    *[
        (
            ROOTS,
            span,
            "the transform sqrt needs values at most 40,000,000,000 apart: close the range, or give more decimals",
        )
        for span in (
            msgspec.structs.replace(TAILED, decimals=2),
            msgspec.structs.replace(QUARTILES, upper="40000000001"),
        )
    ],
    (SHIFTED_ONLY, BINS, "its rule set has no cdf_kernel"),
    (POINTS_ONLY, POINT, ""),
    *[
        (POINTS_ONLY, span, "the absolute error needs a range closed at both ends; absolute_clipped does not")
        for span in (TAILED, LEFT)
    ],
    *[(CLIPPED_ONLY, span, "") for span in (POINT, TAILED, LEFT)],
    *[
        (rules, span, "the absolute error needs 0.5 as the only level")
        for rules in (POINTS_ONLY, CLIPPED_ONLY)
        for span in (QUARTILES, OTHER_LEVEL)
    ],
]


@pytest.mark.parametrize(("rules", "span", "reason"), SCORABLE)
def test_a_rule_set_says_which_questions_it_cannot_score(
    rules: RuleSet, span: NumericRange | None, reason: str
) -> None:
    """Each form of distribution needs a kernel; a bounded distance also needs a bounded range and a point."""
    assert why_unscorable(span, rules) == reason


OPTIONS: dict[str, list[Any]] = {
    **{field: list(names) for field, names in CHOSEN.items()},
    **{field: sorted({*limits, max(limits[0], min(1, limits[1]))}) for field, limits in LIMITS.items()},
    **{field: [False, True] for field in FLAGS},
    "replicates": [19, 39],  # of 3,999, one table of intervals takes as long as all others
    "scored_only_levels": [(), ("hidden",), ("no_prize", "no_rank", "hidden")],
    "reference_rows": [(), ("market",), ("uniform", "always_half", "consensus", "market")],
    "trading": [None, None, Trading(period_days=0), Trading(period_days=0, cohorts="none", legs="all_or_nothing")],
}
EVERY_FORM: list[tuple[OpenQuestion, list[dict[str, Any]], dict[str, Any]]] = [
    (opened(reveals_at=day(12)), [{"probability": chance} for chance in (0, 1, "0.5")], {"outcome": "yes"}),
    (
        choices(),
        [{"probabilities": dict(zip(COLOURS, row, strict=True))} for row in [(1, 0, 0), (0, 0, 1), (0.2, 0.3, 0.5)]],
        {"outcome": "red"},
    ),
    (
        msgspec.structs.replace(numeric(), reveals_at=day(20)),
        [{"cdf": row} for row in [(0, 0, 0, 0, 1), (0, 1, 1, 1, 1), (0, "0.2", "0.4", "0.7", 1)]],
        {"value": 1},
    ),
    (
        numeric("height", open_lower=True, open_upper=True, zero_point=-1),
        [{"cdf": row} for row in [(0,) * 5, (1,) * 5, ("0.1", "0.2", "0.4", "0.7", 1)]],
        {"value": -3},
    ),
    (quartiles("point", levels=("0.5",)), [{"quantiles": [point]} for point in (0, 4, "1.5")], {"value": 4}),
    (
        quartiles(open_lower=True, open_upper=True),
        [{"quantiles": row} for row in [(-100, 2, 10**10), (1, 1, 1), (0, "0.0001", 4)]],
        {"value": "12345.6789"},
    ),
]


def every_form(rules: RuleSet) -> list[Any]:
    """Return commands: questions of every form, certain and wrong forecasts, gaps, a bot, a hidden participant."""
    pool = 100 if rules.least_prize_micros <= 100 * 10**6 else None  # one below the least prize is refused
    commands: list[Any] = [contest(rules=rules, pool=pool), enrolment(participant="bot", bot=True, entrant="ada")]
    commands.append(exclusion(participant="eve", level="hidden", at=BEFORE))
    for question, distributions, answer in EVERY_FORM:
        name = question.question
        hidden: dict[str, Any] = {} if question.reveals_at is None else {"hidden_coverage_weight": 1}
        commands += [question, entry(question=name, spot_at=day(14) if name == "colour" else None, **hidden)]
        for number, (who, at) in enumerate([("ada", 6), ("bob", 13), ("bot", 11), ("eve", 12), ("ada", 15)]):
            declared = Attestation(newest_source=f"2026-03-{9 + number:02}") if number else None
            commands.append(forecast(name, who, at=day(at, number), attestation=declared, **distributions[number % 3]))
        commands += [withdrawal(name, "bob", at=day(16)), resolution(name, known_at=day(18), **answer)]
    if rules.trading:  # the bot bets before the questions resolve
        stakes: list[Any] = [
            quote(at=day(11)),
            decision(bet(), bet(100, "no"), contest="cup", participant="bot", at=day(11)),
        ]
        first = next(number for number, command in enumerate(commands) if isinstance(command, ResolveQuestion))
        commands[first:first] = stakes
    return [*commands, finalization()]


def worked_out(commands: list[Any]) -> Projections:
    """Return the tables of these commands, four hours apart; some questions may be refused as not scorable."""
    hours = count(micros(5), 4 * HOUR)
    with Ledger.open(":memory:", clock=lambda: next(hours)) as ledger:
        for number, command in enumerate(commands):
            [outcome] = ledger.handle_many([msgspec.structs.replace(command, id=f"c{number}")])
            assert not isinstance(outcome, Refused) or outcome.code == "unscorable_question"
        return Projections(facts(ledger.read()))


RESAMPLED = {"intervals", "pairwise", "resolution"}  # one forecast is 10,000,000,000 away from the answer


def _refused(tables: Projections, name: str) -> str:
    """Return why a table cannot be computed, or an empty text."""
    try:
        for _ in tables.table(name).rows():
            pass
    except Refused as refused:
        return f"{refused.code}: {refused.detail}"
    return ""


def drawn(chance: Random) -> RuleSet:
    """Return a consistent rule set, each about equally likely; of all rule sets, one in ten thousand is consistent."""
    rules = RuleSet(name="drawn", kernel="brier")
    for _ in range(300):
        some = chance.sample(sorted(OPTIONS), chance.randint(1, 4))
        changed = msgspec.structs.replace(rules, **{field: chance.choice(OPTIONS[field]) for field in some})
        if not inconsistency(changed):
            rules = changed
    return rules


@pytest.mark.parametrize("seed", range(times(8)))
def test_every_table_can_be_computed_for_every_consistent_rule_set(seed: int) -> None:
    """No contest that was accepted can stop a reader of the log.

    Questions that its rules cannot score are refused, and the prizes of a board sum to the pool, or nobody wins one.
    """
    chance = Random(seed)
    for _ in range(times(48)):
        tables = worked_out(every_form(drawn(chance)))
        refused = {name: why for name in CATALOGUE if (why := _refused(tables, name))}
        assert refused.keys() <= RESAMPLED, refused
        assert {*refused.values()} <= {"out_of_range: the scores are too large for sums in 64 bits"}
        assert sum(prize.prize for prize in tables.prizes("cup")) in {0, 100 * 10**6}


AMOUNTS = {
    "rules.least_prize": 10**18,
    "rules.trading.starting_cash": 10**15,
    "rules.trading.least_bet": 10**15,
    "rules.trading.least_percentage": 10**8,
    "rules.trading.fee_unit": 10**9,
}  # each with its upper bound, 1e-6
PRIZED = {"name": "cup", "kernel": "ln", "reference": "peers", "take": "positive_square"}


def with_amount(path: str, amount: Any) -> dict[str, Any]:
    """A rule set with one amount, as JSON gives it."""
    name = path.rpartition(".")[2]
    if "trading" in path:
        return PRIZED | {"trading": {name: amount, "fee_rate_ppm": 1}}
    return PRIZED | {name: amount}


def written_contest(rules: Any) -> str:
    """A line that opens a contest."""
    return json.dumps({"type": "open_contest", "at": day(1), "contest": "cup", "pool": 2000, "rules": rules})


def recorded(path: str, rules: RuleSet) -> int:
    """The amount as the log holds it."""
    held: Any = recorded_fields(rules)
    for name in path.split(".")[1:]:
        held = held.get(name, 1)  # a unit of a fee of 1 is its default, which is left out
    return int(held)


def written(rules: RuleSet) -> str:
    """A whole rule set in JSON, as it is printed."""
    fields = written_fields(rules)
    return json.dumps({name: value for name, value in fields.items() if value is not None})


@pytest.mark.parametrize("path", AMOUNTS)
@given(micros=st.integers(1, 10**8))
@settings(max_examples=times(20))
def test_an_amount_is_a_text_in_its_unit(path: str, micros: int) -> None:
    """The log holds an amount in 1e-6, however the rule set was given: as a line, a dict, or a text for what-if."""
    text = str(Decimal(micros) / 10**6)
    rules = with_amount(path, text)
    command = commands.read(written_contest(rules))
    assert isinstance(command, commands.OpenContest)
    assert isinstance(command.rules, RuleSet)
    assert recorded(path, command.rules) == micros
    assert commands.read_rule_set(rules, "rules") == command.rules == parse_rule_set(json.dumps(rules))


@pytest.mark.parametrize("path", AMOUNTS)
@pytest.mark.parametrize("number", [50, 50_000_000, 0, -1, 12.5, 50.0, 10**30])
def test_a_number_is_refused_in_place_of_an_amount(path: str, number: float) -> None:
    """A number was 1e-6 of the unit before: it is refused, and the message gives both readings as texts."""
    rules = with_amount(path, number)
    for read in (
        lambda: commands.read(written_contest(rules)),
        lambda: commands.read_rule_set(rules, "rules"),
        lambda: parse_rule_set(json.dumps(rules)),
    ):
        with pytest.raises(Refused) as refused:
            read()
        assert (refused.value.code, refused.value.field) == ("amount_not_text", path)
        if number == 50_000_000:
            assert 'write "50000000" for 50000000, or "50" for what 50000000 was before' in str(refused.value)


@pytest.mark.parametrize(("path", "most"), AMOUNTS.items())
def test_an_amount_keeps_within_its_limits(path: str, most: int) -> None:
    """The upper bound is that of the recorded number, and a text that is no number has its own code."""
    text = f"{Decimal(most).scaleb(-6):f}"
    assert recorded(path, commands.read_rule_set(with_amount(path, text), "rules")) == most
    wrong = {f"{Decimal(most + 1).scaleb(-6):f}": "out_of_range", "-1": "out_of_range", "nan": "not_finite"}
    for amount, code in {**wrong, "fifty": "bad_number", "": "bad_number"}.items():
        with pytest.raises(Refused) as refused:
            commands.read_rule_set(with_amount(path, amount), "rules")
        assert (refused.value.code, refused.value.field) == (code, path)


@pytest.mark.parametrize("wrong", [None, True, [], {}])
def test_a_value_of_another_type_is_no_amount(wrong: Any) -> None:
    """A value that is neither a text nor a number is refused."""
    with pytest.raises(Refused, match="bad_number"):
        commands.read(written_contest(with_amount("rules.least_prize", wrong)))


@pytest.mark.parametrize("rules", PRESETS.values(), ids=PRESETS)
def test_a_rule_set_as_it_is_printed_is_read_as_the_same(rules: RuleSet) -> None:
    """What `rules` prints can be given back, and opens the same contest."""
    assert parse_rule_set(written(rules)) == rules


def test_a_rule_set_as_an_event_holds_it_is_refused() -> None:
    """The fields of `contest_opened` hold 1e-6: copied into a command, they are refused and not read as a fortune."""
    held = json.dumps(recorded_fields(PRESETS["peer-2025-06"]))
    assert '"least_prize": 50000000' in held
    with pytest.raises(Refused, match="amount_not_text"):
        parse_rule_set(held)


def test_the_content_of_a_command_has_amounts_as_before() -> None:
    """A command that gives an amount as text has the content, and so the digest, that the number in 1e-6 had."""
    line = commands.read(written_contest(with_amount("rules.least_prize", "50")))
    assert b'"least_prize":50000000' in canonical_content(line)
    same = commands.OpenContest(
        at=day(1),
        contest="cup",
        pool=2000,
        rules=RuleSet(**PRIZED, least_prize_micros=50_000_000),  # type: ignore[arg-type]
    )
    assert canonical_content(line) == canonical_content(same)


def test_python_says_the_unit_in_the_name() -> None:
    """A field of `RuleSet` or `Trading` that holds an amount cannot be given without its unit."""
    for kind, field in ((partial(RuleSet, name="x"), "least_prize"), (Trading, "least_bet")):
        build: Any = kind
        with pytest.raises(TypeError, match=field):
            build(**{field: 50})


@pytest.mark.parametrize(("amount", "code"), [('"50"', ""), ("50", "amount_not_text"), ("50.0", "amount_not_text")])
def test_a_map_writes_amounts_in_the_same_way(amount: str, code: str) -> None:
    """A constant of a map is checked like a line: a text is an amount, and a number is refused."""
    rules = f'{{ name = "cup", kernel = "ln", reference = "peers", take = "positive_square", least_prize = {amount} }}'
    fields = f'at = "{day(1)}"\ncontest = "{{contest}}"\nrules = {rules}'
    mapping = f'[[command]]\ntype = "open_contest"\nid = "{{contest}}"\n[command.fields]\n{fields}\n'
    [(_, made)] = read_rows(parse_map(mapping.encode()), BytesIO(b"contest\ncup\n")).commands
    if code:
        assert isinstance(made, Refused)
        assert (made.code, made.field) == (code, "rules.least_prize")
    else:
        assert isinstance(made, commands.OpenContest)
        assert isinstance(made.rules, RuleSet)
        assert made.rules.least_prize_micros == 50_000_000
