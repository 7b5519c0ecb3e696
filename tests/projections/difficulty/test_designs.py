"""Difficulty and adjusted scores of contests, compared with numbers that ForecastBench's method gives."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.column_values import POINTS
from forecast_ledger.projections.difficulty.designs import brier_index
from tests.support import oracle
from tests.support.given import contest, entry, exclusion, forecast, opened, resolution

RULES = RuleSet(name="plain-brier", kernel="brier", period="covered", total="mean")
ANSWERS = {"q1": "yes", "q2": "no", "q3": "yes", "q4": "no"}
SAID = {
    "A": {"q1": "0.9", "q2": "0.2", "q3": "0.6"},
    "B": {"q2": "0.3", "q3": "0.8", "q4": "0.45"},
    "H": dict.fromkeys(ANSWERS, "0.5"),
}


def toy(name: str = "cup", people: str = "ABH", **fields: Any) -> list[AnyCommand]:
    """Return a contest on four questions; A and B forecast on three each, H says ½ on all."""
    story: list[AnyCommand] = [contest(name, rules=RULES)]
    for question, outcome in ANSWERS.items():
        asked = f"{name} {question}"
        story += [opened(asked, **fields), entry(name, asked)]
        story += [forecast(asked, who, probability=SAID[who][question]) for who in people if question in SAID[who]]
        story.append(resolution(asked, outcome=outcome))
    return story


def rows(table: str, *commands: AnyCommand) -> list[dict[str, Any]]:
    """Return a table as rows."""
    return [*oracle.projected(*commands).table(table).rows()]


def adjusted(*commands: AnyCommand) -> dict[str, tuple[Any, ...]]:
    """Return rank, mean, adjusted score and index of each participant, rounded to six decimals and to two."""
    return {
        row["participant"]: (
            row["rank"],
            round(Decimal(row["mean_score"]), 6),
            round(Decimal(row["adjusted_score"]), 6),
            None if row["brier_index"] is None else round(Decimal(row["brier_index"]), 2),
        )
        for row in rows("adjusted_scores", *commands)
    }


def test_the_order_of_forecasters_depends_on_who_is_in_the_fit() -> None:
    """With H, A is ahead; without, B is. The numbers are those of ForecastBench's two-way fixed effects."""
    points = Decimal
    assert adjusted(*toy()) == {
        "A": (1, points("0.07"), points("0.087429"), points("70.43")),
        "B": (2, points("0.110833"), points("0.097929"), points("68.71")),
        "H": (3, points("0.25"), points("0.25"), points("50.00")),
    }
    assert adjusted(*toy(people="AB")) == {
        "B": (1, points("0.110833"), points("0.076875"), points("72.27")),
        "A": (2, points("0.07"), points("0.111875"), points("66.55")),
    }


def test_an_exclusion_takes_scores_out_of_the_fit() -> None:
    """Who may have no rank is shown with the effects that the others' scores give; who is hidden is not shown."""
    without = adjusted(*toy(people="AB"))
    shown = adjusted(*toy(), exclusion(participant="H", level="no_rank"))
    assert {who: shown[who] for who in "AB"} == without
    assert shown["H"] == (None, Decimal("0.25"), Decimal("0.25"), Decimal("50.00"))
    assert adjusted(*toy(), exclusion(participant="H", level="hidden")) == without


def test_a_question_without_a_fitted_score_is_in_no_part() -> None:
    """Mean and adjusted score of somebody who is not fitted are over the same questions: those with an effect."""
    alone: list[AnyCommand] = [opened("x"), entry(question="x"), forecast("x", "H", probability="0.1"), resolution("x")]
    story = [*toy(), *alone, exclusion(participant="H", level="no_rank")]
    found = {row["participant"]: (row["questions"], row["mean_score"]) for row in rows("adjusted_scores", *story)}
    assert found["H"] == (4, "0.250000000")
    assert {row["question"] for row in rows("difficulty", *story)} == {f"cup {name}" for name in ANSWERS}


def test_effects_add_up_to_nothing_and_say_what_a_question_adds() -> None:
    """Without H, the equations by hand: q1 is met by A alone, q4 by B alone, q2 and q3 by both."""
    found = {row["question"]: row["effect"] for row in rows("difficulty", *toy(people="AB"))}
    b = {"A": [Fraction(1, 100), Fraction(4, 100), Fraction(16, 100)]}
    b["B"] = [Fraction(9, 100), Fraction(4, 100), Fraction(2025, 10_000)]
    apart = (b["A"][1] + b["A"][2] - b["B"][0] - b["B"][1]) / 2  # A less B, on what both forecast
    raw = {"q1": b["A"][0] - apart, "q2": (b["A"][1] - apart + b["B"][0]) / 2}
    raw |= {"q3": (b["A"][2] - apart + b["B"][1]) / 2, "q4": b["B"][2]}
    mean = sum(raw.values()) / 4
    assert {name: Fraction(str(effect)) for name, effect in found.items()} == {
        f"cup {name}": Fraction(round((each - mean) * POINTS), POINTS) for name, each in raw.items()
    }


def test_a_category_across_contests_is_one_fit() -> None:
    """Questions of a category in two contests with the same rules are compared through who is in both."""
    story = [*toy("spring", category="weather"), *toy("autumn", people="AB", category="weather")]
    found = rows("adjusted_scores", *story)
    assert {(row["by"], row["name"]) for row in found} == {
        ("contest", "autumn"),
        ("contest", "spring"),
        ("category", "weather"),
    }
    across = [row for row in found if row["by"] == "category"]
    assert {row["participant"]: row["questions"] for row in across} == {"A": 6, "B": 6, "H": 4}


def test_scores_that_nothing_connects_are_not_compared() -> None:
    """They are parts of their own, the one with most scores first; each has its own ranks."""
    alone: list[AnyCommand] = [opened("x"), entry(question="x"), forecast("x", "Z"), resolution("x")]
    found = rows("adjusted_scores", *toy(), *alone)
    assert {row["participant"]: (row["part"], row["rank"]) for row in found} == {
        "A": (1, 1),
        "B": (1, 2),
        "H": (1, 3),
        "Z": (2, 1),
    }


def test_scores_of_another_kind_have_no_index() -> None:
    """The index is of Brier scores from 0 to 1; a logarithm has none, and a higher one is better."""
    story = toy()
    rules = RuleSet(name="plain-ln", kernel="ln", period="covered", total="mean")
    found = adjusted(contest(rules=rules), *story[1:])
    assert {who: row[3] for who, row in found.items()} == dict.fromkeys("ABH")
    assert found["A"][0] == 1


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (Fraction(0), 100 * POINTS),
        (Fraction(1), 0),
        (Fraction(1, 4), 50 * POINTS),
        (Fraction(-1, 10**30), None),
        (Fraction(2), -41_421_356_237),  # 1 - √2 = -0.41421356237309…
        (Fraction(1, (2 * 10**11) ** 2), 10**11),  # half a unit below 100: to the even one
        (Fraction(9, (2 * 10**11) ** 2), 10**11 - 2),  # one and a half below
    ],
)
def test_the_index_is_rounded_once(score: Fraction, expected: int | None) -> None:
    """Half-even, in billionths, from the exact root."""
    assert brier_index(score) == expected
