"""Difficulty and adjusted scores of contests, compared with numbers that ForecastBench's method gives."""

from collections.abc import Mapping
from decimal import Context, Decimal
from fractions import Fraction
from itertools import chain
from typing import Any

import pytest

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.columns import POINTS
from forecast_ledger.projections.studies import difficulty, two_way
from forecast_ledger.projections.studies.difficulty import brier_index
from forecast_ledger.projections.tables.catalogue import Projections
from tests.projections.studies.test_intervals import WEIGHTS, exact_scores, season
from tests.support import oracle, rules_oracle
from tests.support.effort import times
from tests.support.given import asked, contest, exclusion
from tests.support.logs import printed

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
        own = {who: SAID[who][question] for who in people if question in SAID[who]}
        story += asked(f"{name} {question}", own, outcome, under=name, **fields)
    return story


def adjusted(*commands: AnyCommand) -> dict[str, tuple[Any, ...]]:
    """Return rank, mean, adjusted score and index of each participant, rounded to six decimals and to two."""
    return {
        row["participant"]: (
            row["rank"],
            round(Decimal(row["mean_score"]), 6),
            round(Decimal(row["adjusted_score"]), 6),
            None if row["brier_index"] is None else round(Decimal(row["brier_index"]), 2),
        )
        for row in printed("adjusted_scores", *commands)
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
    alone = asked("x", {"H": "0.1"})
    story = [*toy(), *alone, exclusion(participant="H", level="no_rank")]
    found = {row["participant"]: (row["questions"], row["mean_score"]) for row in printed("adjusted_scores", *story)}
    assert found["H"] == (4, "0.250000000")
    assert {row["question"] for row in printed("difficulty", *story)} == {f"cup {name}" for name in ANSWERS}


def test_effects_add_up_to_nothing_and_say_what_a_question_adds() -> None:
    """Without H, the equations by hand: q1 is met by A alone, q4 by B alone, q2 and q3 by both."""
    found = {row["question"]: row["effect"] for row in printed("difficulty", *toy(people="AB"))}
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
    found = printed("adjusted_scores", *story)
    assert {(row["by"], row["name"]) for row in found} == {
        ("contest", "autumn"),
        ("contest", "spring"),
        ("category", "weather"),
    }
    across = [row for row in found if row["by"] == "category"]
    assert {row["participant"]: row["questions"] for row in across} == {"A": 6, "B": 6, "H": 4}


def test_scores_that_nothing_connects_are_not_compared() -> None:
    """They are parts of their own, the one with most scores first; each has its own ranks."""
    alone = asked("x", {"Z": "0.7"})
    found = printed("adjusted_scores", *toy(), *alone)
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


def ties(chances: Mapping[str, Mapping[str, str]], monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Return ranks and names of participants with these forecasts on questions that happen, without an exact fit."""
    story: list[AnyCommand] = [contest(rules=RULES)]
    for question in sorted({*chain(*chances.values())}):
        story += asked(question, {who: own[question] for who, own in chances.items() if question in own})
    monkeypatch.setattr(two_way, "fit_exactly", None)
    return [(row["rank"], row["participant"]) for row in printed("adjusted_scores", *story)]


CORE = {
    "ann": {"q1": "0.9", "q2": "0.63", "q3": "0.2"},
    "ben": {"q1": "0.71", "q2": "0.55"},
    "cy": {"q2": "0.8", "q3": "0.37"},
}


def test_equal_scores_on_the_same_questions_tie_without_an_exact_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Z and Y have the same scores in another order; who ties is in order of name."""
    found = ties(CORE | {"z": {"q1": "0.6", "q3": "0.3"}, "y": {"q1": "0.3", "q3": "0.6"}}, monkeypatch)
    assert [(rank, who) for rank, who in found if who in "zy"] == [(4, "y"), (4, "z")]


def test_questions_that_tell_nothing_do_not_hide_a_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Z is alone on q8 with somebody who is on nothing else, so that only q1 tells of Z, and of Y as much."""
    own = {"z": {"q1": "0.6", "q8": "0.1"}, "x": {"q8": "0.1"}, "y": {"q1": "0.6"}, "w": {"q8": "0.2"}}
    ranks = {who: rank for rank, who in ties(CORE | own, monkeypatch)}
    assert ranks["x"] != ranks["w"]
    del own["w"]
    again = {who: rank for rank, who in ties(CORE | own, monkeypatch)}
    assert again["x"] == again["y"] == again["z"]


def test_numbers_that_too_few_digits_leave_open_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of A alone, whose rank is in no doubt: scores 0.01, 0.04 and 0.16, mean 0.07; an effect is a score less that."""
    monkeypatch.setattr(difficulty, "UNIT", 10)
    found = {row["question"]: row["effect"] for row in printed("difficulty", *toy(people="A"))}
    assert found == {"cup q1": "-0.060000000", "cup q2": "-0.030000000", "cup q3": "0.090000000"}
    [row] = printed("adjusted_scores", *toy(people="A"))
    assert (row["mean_score"], row["adjusted_score"]) == ("0.070000000", "0.070000000")


Scores = Mapping[tuple[str, str], Fraction]  # by participant and question


def parts(scores: Scores) -> list[dict[tuple[str, str], Fraction]]:
    """Return the scores of each part: those that a chain of common participants or questions connects."""
    found: list[dict[tuple[str, str], Fraction]] = []
    for key, score in scores.items():
        near = [own for own in found if any(set(key) & set(other) for other in own)]
        found = [own for own in found if own not in near] + [
            {k: s for own in near for k, s in own.items()} | {key: score}
        ]
    return sorted(found, key=lambda own: (-len(own), min(own)))


def effects_of(scores: Scores, weight: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Return the effects of questions by the equations of least squares, solved by Gauss's elimination."""
    people, questions = (sorted({key[place] for key in scores}) for place in (0, 1))
    names = [*people, *questions[1:]]  # the effect of the first question is 0
    lines = []
    for name in names:
        line = [Fraction(0)] * (len(names) + 1)
        for (who, question), score in scores.items():
            if name in (who, question):
                line[-1] += weight[question] * score
                for each in {who, question} & {*names}:
                    line[names.index(each)] += weight[question]
        lines.append(line)
    for place in range(len(names)):
        pivot = next(number for number in range(place, len(lines)) if lines[number][place])
        lines[place], lines[pivot] = lines[pivot], lines[place]
        lines[place] = [each / lines[place][place] for each in lines[place]]
        for number in {*range(len(lines))} - {place}:
            factor = lines[number][place]
            lines[number] = [own - factor * each for own, each in zip(lines[number], lines[place], strict=True)]
    solved = dict(zip(names, (line[-1] for line in lines), strict=True))
    effects = {question: solved.get(question, Fraction(0)) for question in questions}
    return {question: effect - mean_of(effects, weight) for question, effect in effects.items()}


def mean_of(numbers: Mapping[str, Fraction], weight: Mapping[str, Fraction]) -> Fraction:
    """Return the weighted mean of numbers by question."""
    total = sum((weight[each] * number for each, number in numbers.items()), Fraction(0))
    return total / sum((weight[each] for each in numbers), Fraction(0))


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("guarded", [True, False])
def test_every_number_is_that_of_exact_scores(weights: str, guarded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is rounded but what is printed, with guard digits or, without them, where doubt makes the fit exact."""
    if not guarded:
        monkeypatch.setattr(difficulty, "UNIT", 10)
    for seed in range(times(8)):
        recorded = oracle.history(*season(RULES, seed, weights))
        projections = Projections(oracle.facts_in(recorded))
        level = projections.facts.contests["cup"].level_of("eve")
        weight = {
            name: Fraction(case.entry.weight, 10**6) for name, case in rules_oracle.cases(recorded, "cup").items()
        }
        every = {(who, name): exact for (name, who), (exact, _) in exact_scores(projections).items() if weight[name]}
        fitted = {key: score for key, score in every.items() if level != "no_rank" or key[0] != "eve"}
        expected_effects, expected_scores = [], []
        for number, part in enumerate(parts(fitted), 1):
            effects = effects_of(part, weight)
            for name, effect in effects.items():
                scores = [score for (_, question), score in part.items() if question == name]
                mean = sum(scores, Fraction(0)) / len(scores)
                expected_effects.append((number, name, len(scores), oracle.nine(mean), oracle.nine(effect)))
            shown = part | {key: score for key, score in every.items() if key not in fitted and key[1] in effects}
            found = {}
            for who in {key[0] for key in shown}:
                own = {question: score for (whose, question), score in shown.items() if whose == who}
                less = {question: score - effects[question] for question, score in own.items()}
                found[who] = len(own), mean_of(own, weight), mean_of(less, weight)
            ranked = {who for who, _ in part}
            for who, (count, mean, adjusted) in found.items():
                rank = 1 + sum(found[other][2] < adjusted for other in ranked) if who in ranked else None
                index = None if adjusted < 0 else round(100 * (1 - root(adjusted)), 9)
                expected_scores.append((number, rank, who, count, oracle.nine(mean), oracle.nine(adjusted), index))
        rows = projections.table("difficulty").rows()
        columns = ["part", "question", "participants", "mean_score", "effect"]
        assert {tuple(decimals(row[name]) for name in columns) for row in rows} == {*expected_effects}
        columns = ["part", "rank", "participant", "questions", "mean_score", "adjusted_score", "brier_index"]
        assert {
            tuple(decimals(row[name]) for name in columns) for row in projections.table("adjusted_scores").rows()
        } == {*expected_scores}


def root(number: Fraction) -> Decimal:
    """Return a root to 60 digits."""
    return Context(prec=60).sqrt(oracle.quotient(number))


def decimals(value: Any) -> Any:
    """Return numbers as decimals."""
    return Decimal(value) if isinstance(value, str) and value.strip("-")[0].isdigit() else value
