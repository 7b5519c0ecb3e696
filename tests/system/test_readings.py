"""The other readings of the documents, each by the name of its field and by hand."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand, OpenQuestion
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.given import OPENS, choices, contest, entry, forecast, numeric, opened, quartiles, resolution

PICO = 10**12


def told(rules: RuleSet, question: OpenQuestion, *said: AnyCommand) -> Projections:
    """A contest over one question."""
    return oracle.projected(question, contest(rules=rules), entry(question=question.question), *said)


def scores(rules: RuleSet, question: OpenQuestion, *said: AnyCommand) -> dict[str, str]:
    """Each participant's score, as published."""
    rows = told(rules, question, *said).table("scores").rows()
    return {row["participant"]: row["score"] for row in rows}


def nine(number: Fraction | Decimal) -> str:
    """As published."""
    return f"{oracle.nine(Fraction(number)):.9f}"


def ln(number: str | Fraction) -> Fraction:
    """A natural logarithm as it is counted: in 1e-12, rounded once."""
    return Fraction(oracle.picos("ln", Fraction(number)), PICO)


# --- the greatest probability and density

CAPPED = structs.replace(
    PRESETS["baseline"], name="capped", greatest_probability_ppm=999_000, greatest_density_ppm=35_000_000
)


@pytest.mark.parametrize(
    ("question", "sure", "answer", "printed", "most"),
    [
        (opened(), {"probability": 1}, {"outcome": "yes"}, "99.8", 100 * (ln("0.999") + ln("2")) / ln("2")),
        (
            choices(outcomes=tuple("abcdefgh")),
            {"probabilities": dict(zip("abcdefgh", (1, 0, 0, 0, 0, 0, 0, 0), strict=True))},
            {"outcome": "a"},
            "99.9",
            100 * (ln("0.999") + ln("8")) / ln("8"),
        ),
        (
            numeric(bins=200, open_lower=True, open_upper=True),
            {"cdf": (0,) * 100 + (1,) * 101},
            {"value": 2},
            "183.0",
            50 * (ln(Fraction(35, 200)) - ln(Fraction(9, 2_000))),
        ),
        (
            numeric(bins=200),
            {"cdf": (0,) * 100 + (1,) * 101},
            {"value": 2},
            "177.7",
            50 * (ln(Fraction(35, 200)) - ln(Fraction(1, 200))),
        ),
    ],
)
def test_the_best_baseline_scores_are_those_printed(
    question: OpenQuestion, sure: dict[str, Any], answer: dict[str, Any], printed: str, most: Fraction
) -> None:
    """Metaculus, Scores FAQ, "What is the Baseline score?": +99.9, +99.9 and +183, of predictions up to 99.9% and
    densities to ~35.

    100 (log2 0.999 + 1) is 99.856; with eight outcomes 99.95; 50 ln(35 / 0.9) is 183.04, 50 ln 35 is 177.77.
    """
    name = question.question
    made = forecast(name, at=OPENS, **sure)
    published = scores(CAPPED, question, made, resolution(name, **answer))
    assert published == {"ada": nine(most)}
    assert published["ada"].startswith(printed)


def test_a_cap_leaves_alone_what_is_below_it_and_the_floor() -> None:
    """0.999 and 0.5 count as they are, and 0 as 0.001."""
    made = [forecast(participant=who, probability=p, at=OPENS) for who, p in (("a", "0.999"), ("b", "0.5"), ("c", 0))]
    log = RuleSet(name="log", kernel="ln", greatest_probability_ppm=999_000)
    published = scores(log, opened(), *made, resolution())
    assert published == {"a": nine(ln("0.999")), "b": nine(ln("0.5")), "c": nine(ln("0.001"))}


def test_an_open_end_is_capped_as_an_outcome_is() -> None:
    """All beyond the upper end counts as 0.999, whatever a density may be."""
    log = RuleSet(name="log", cdf_kernel="ln", greatest_probability_ppm=999_000, greatest_density_ppm=1_000_000)
    made = forecast("depth", cdf=(0, 0, 0, 0, 0), at=OPENS)
    published = scores(log, numeric(open_upper=True), made, resolution("depth", value=5))
    assert published == {"ada": nine(ln("0.999"))}


def test_a_part_shows_the_probability_as_it_counted() -> None:
    """The consensus too is one of counted probabilities: the median of 0.9 and 0.5."""
    rules = RuleSet(name="log", kernel="ln", reference="consensus", greatest_probability_ppm=900_000)
    made = [forecast(participant=who, probability=p, at=OPENS) for who, p in (("ada", 1), ("bob", "0.5"))]
    parts = told(rules, opened(), *made, resolution()).table("score_parts").rows()
    assert [(row["probability"], row["reference"]) for row in parts] == [("0.9", "0.7"), ("0.5", "0.7")]


def test_the_community_forecast_is_of_capped_probabilities_of_every_outcome() -> None:
    """Of 0.7, 0.2, 0.1 and 0.7, 0.1, 0.2, capped at 0.5, the medians are 0.5, 0.15 and 0.15; the first is 0.5 / 0.8."""
    rules = RuleSet(
        name="log", kernel="ln", reference="consensus", consensus="community", greatest_probability_ppm=500_000
    )
    rows = {"ada": ("0.7", "0.2", "0.1"), "bob": ("0.7", "0.1", "0.2")}
    made = [
        forecast("colour", who, probabilities=dict(zip(("red", "green", "blue"), row, strict=True)), at=OPENS)
        for who, row in rows.items()
    ]
    parts = told(rules, choices(), *made, resolution("colour", outcome="red")).table("score_parts").rows()
    assert [(row["probability"], row["reference"]) for row in parts] == [("0.5", "0.625"), ("0.5", "0.625")]


# --- the least density, added

ADDED = RuleSet(name="added", cdf_kernel="ln", density_floor="added", least_density_ppm=100_000)


@pytest.mark.parametrize(
    ("cdf", "value", "counts"),
    [
        ((0, "0.2", "0.6", "0.9", 1), "1.5", "0.425"),
        ((0, "0.2", "0.2", "0.9", 1), "1.5", "0.025"),
        ((0, 0, 1, 1, 1), "1.5", "1.025"),
        ((0, "0.2", "0.6", "0.9", "0.9"), "5", "0.1"),
        ((0, "0.2", "0.6", "0.9", 1), "5", "0.001"),
    ],
)
def test_a_tenth_of_the_uniform_density_is_added_to_every_bin(cdf: tuple[Any, ...], value: str, counts: str) -> None:
    """0.1 / 4 more in each of four bins, taken from nowhere, and more than 1 in all; an open end has a least instead.

    Source: Metaculus, Scores FAQ, "What is the log score for continuous questions?": "a uniform distribution of height
    0.01 added".
    """
    question = numeric(open_upper=True)
    projections = told(ADDED, question, forecast("depth", cdf=cdf, at=OPENS), resolution("depth", value=value))
    [part] = projections.table("score_parts").rows()
    assert (part["probability"], part["term"]) == (
        counts,
        f"{Decimal(oracle.picos('ln', Fraction(counts))).scaleb(-12)}",
    )


def test_the_cap_applies_to_what_the_added_density_makes() -> None:
    """0.25 and 0.025 are 1.1 times the uniform density of a quarter, and count as once that."""
    rules = structs.replace(ADDED, greatest_density_ppm=1_000_000)
    made = forecast("depth", cdf=(0, "0.25", "0.5", "0.75", 1), at=OPENS)
    assert scores(rules, numeric(), made, resolution("depth", value="1.5")) == {"ada": nine(ln("0.25"))}


def test_the_consensus_is_of_added_densities() -> None:
    """0.4 and 0.2 count as 0.425 and 0.225; their median is 0.325, and a surer one is so much more than it."""
    rules = structs.replace(ADDED, reference="consensus")
    cdfs = {"ada": (0, "0.1", "0.5", "0.9", 1), "bob": (0, "0.1", "0.3", "0.9", 1)}
    made = [forecast("depth", who, cdf=cdf, at=OPENS) for who, cdf in cdfs.items()]
    published = scores(rules, numeric(), *made, resolution("depth", value="1.5"))
    assert published == {who: nine(ln(p) - ln("0.325")) for who, p in (("ada", "0.425"), ("bob", "0.225"))}


def test_the_worst_density_is_the_same_whether_it_is_added_or_the_least() -> None:
    """A hundredth of the uniform density, 50 ln 0.01 below it. Source: Metaculus, Scores FAQ, the worst baseline score
    of -230.
    """
    made = forecast("depth", cdf=(0, 1, 1, 1, 1), at=OPENS), resolution("depth", value="1.5")
    added = structs.replace(PRESETS["baseline"], density_floor="added")
    assert scores(added, numeric(), *made) == scores(PRESETS["baseline"], numeric(), *made)
    assert scores(added, numeric(), *made) == {"ada": nine(50 * (ln(Fraction(1, 400)) - ln(Fraction(1, 4))))}


# --- the combined metric of the Autocast competition

AUTOCAST = PRESETS["autocast-2022"]


def round_of(rules: RuleSet, *said: AnyCommand) -> Projections:
    """Two binary questions, one of three outcomes and a point between 0 and 1."""
    point = quartiles("size", lower=0, upper=1, levels=("0.5",), decimals=2)
    asked: list[AnyCommand] = [opened(), opened("wind"), choices(), point, contest(rules=rules)]
    asked += [entry(question=name) for name in ("rain", "wind", "colour", "size")]
    answers = [resolution(), resolution("wind"), resolution("colour", outcome="green"), resolution("size", value="0.7")]
    return oracle.projected(*asked, *said, *answers)


def totals(projections: Projections) -> dict[str, str]:
    """Each participant's total."""
    return {row["participant"]: row["score"] for row in projections.table("leaderboard").rows()}


COLOURS = {"red": "0.5", "green": "0.3", "blue": "0.2"}
MADE: list[AnyCommand] = [
    forecast(probability="0.8"),
    forecast("wind", probability="0.2"),
    forecast("colour", probabilities=COLOURS),
    forecast("size", quantiles=("0.55",)),
    forecast("colour", "bob", probabilities={**COLOURS, "red": "0.2", "blue": "0.5"}),
]


def test_the_combined_metric_is_printed_as_a_sum_and_as_a_third_of_it() -> None:
    """100 (0.34 + 0.39 + 0.15) = 88 and 29.333…; who left out two kinds has 100 (1 + 0.39 + 1) = 239, 79.666….

    Source: Autocast competition of 2022, "Evaluation", the sum; its evaluation notebook, the sum divided by 3.
    """
    assert totals(round_of(AUTOCAST, *MADE)) == {"ada": "88.000000000", "bob": "239.000000000"}
    third = structs.replace(AUTOCAST, total="kind_means_third")
    assert totals(round_of(third, *MADE)) == {"ada": "29.333333333", "bob": "79.666666667"}


def test_a_third_is_a_third_whatever_kinds_there_are() -> None:
    """0.04 of one binary question alone: 4 in all, and 1.333… of that."""
    third = structs.replace(AUTOCAST, total="kind_means_third")
    projections = told(third, opened(), forecast(probability="0.8"), resolution())
    assert totals(projections) == {"ada": "1.333333333"}


def test_both_totals_have_the_same_means_of_kinds() -> None:
    """The table shows them in percent; a kind without forecasts counts as the worst."""
    third = structs.replace(AUTOCAST, total="kind_means_third")
    tables = [round_of(rules, *MADE).table("kind_means") for rules in (AUTOCAST, third)]
    rows = [[(row["participant"], row["kind"], row["mean"]) for row in table.rows()] for table in tables]
    assert rows[0] == rows[1]
    assert rows[0][:3] == [
        ("ada", "binary", "34.000000000"),
        ("ada", "multiple_choice", "39.000000000"),
        ("ada", "numeric", "15.000000000"),
    ]


def test_accuracies_less_distance_are_the_total_of_errors_the_other_way_round() -> None:
    """One of two right, none of one, and 0.15 off: (0.5 + 0 - 0.15) · 50 = 17.5, and 200 - 2 · 17.5 = 165.

    Source: Autocast competition of 2022, its evaluation notebook: "(accuracy + accuracy - L1)*50".
    """
    accuracy = structs.replace(AUTOCAST, kernel="error")
    total = totals(round_of(accuracy, *MADE))["ada"]
    notebook = (Fraction(1, 2) + 0 - Fraction("0.15")) * 50
    assert total == nine(200 - 2 * notebook) == "165.000000000"


def test_the_uniform_distribution_errs_unless_the_first_outcome_happens() -> None:
    """All are equally probable, so the first is the most probable: who says blue, and is right, leads by 1."""
    rules = RuleSet(name="error", kernel="error", reference="uniform")
    made = forecast("colour", probabilities={"red": 0, "green": 0, "blue": 1}, at=OPENS)
    assert scores(rules, choices(), made, resolution("colour", outcome="blue")) == {"ada": "-1.000000000"}
    assert scores(rules, choices(), made, resolution("colour", outcome="red")) == {"ada": "1.000000000"}


# --- a point beyond an open end


@pytest.mark.parametrize(
    ("point", "value", "score"), [("1.3", "0.9", "0.1"), ("0.9", "1.3", "0.1"), ("-1", "1.3", "1")]
)
def test_a_point_and_an_answer_beyond_an_end_count_as_that_end(point: str, value: str, score: str) -> None:
    """1.3 against 0.9 is 0.1 of the range. Source: Autocast competition of 2022, "Evaluation": L1 distance, bounded
    between 0% and 100%.
    """
    rules = RuleSet(name="clipped", quantile_kernel="absolute_clipped", period="covered", total="mean")
    question = quartiles("size", lower=0, upper=1, levels=("0.5",), open_lower=True, open_upper=True)
    made = forecast("size", quantiles=(point,), at=OPENS)
    assert scores(rules, question, made, resolution("size", value=value)) == {"ada": nine(Fraction(score))}
