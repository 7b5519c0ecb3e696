"""Differences from a baseline, compared with pairs; and the test of Diebold and Mariano, with values by hand."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import atan, pi, sqrt
from random import Random

import pytest
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.studies.baselines import diebold_mariano
from forecast_ledger.projections.tables.catalogue import Projections
from tests.projections.studies.test_pairs import Common, adjusted, statistics
from tests.support import oracle
from tests.support.given import contest, day, entry, forecast, opened, resolution

RULES = RuleSet(name="own", kernel="brier", period="covered", total="mean", replicates=39)
COUNT = 24
HORIZON = "horizon={}&location=US&origin={}&output_type=pmf"


@cache
def compared(horizon: int, clusters: tuple[str, ...] = ("group",)) -> Projections:
    """Three participants on 24 questions of two weights, a day each; two of them are a group if there is no horizon."""
    random, rules = Random(7), structs.replace(RULES, clusters=clusters)
    said: list[AnyCommand] = [contest(rules=rules)]
    for number in range(COUNT):
        name = HORIZON.format(horizon, number) if horizon else f"q{number}"
        about = {"group": "g"} if number in {3, 4} and not horizon else {}
        closes = f"2026-04-{number + 1:02}T00:00:00Z"
        said += [opened(name, closes_at=closes, **about), entry(question=name, weight=("1", "2")[number % 2])]
        for place, who in enumerate(("ada", "bo", "cy")):
            said.append(forecast(name, who, at=day(11), probability=f"0.{random.randrange(100, 700) + 100 * place}"))
        answer = random.choice(("yes", "no"))
        said.append(resolution(name, at="2026-05-01T00:00:00Z", outcome=answer))
    return oracle.projected(*said)


def by_textbook(differences: Sequence[Fraction], horizon: int) -> float:
    """Return the statistic: the mean over the root of its variance, times the correction; in floats."""
    n, mean = len(differences), sum(differences, Fraction(0)) / len(differences)
    apart = [each - mean for each in differences]
    gamma = [sum((apart[t] * apart[t - lag] for t in range(lag, n)), Fraction(0)) / n for lag in range(horizon)]
    variance = (gamma[0] + 2 * sum(gamma[1:], Fraction(0))) / n
    correction = Fraction(n + 1 - 2 * horizon) + Fraction(horizon * (horizon - 1), n)
    return float(mean) / sqrt(variance) * sqrt(correction / n)


def test_four_differences_have_the_values_worked_by_hand() -> None:
    """1, 2, 3 and 6 deviate by -2, -1, 0 and 3 from 3: Σ e² = 14, and 2 one step apart.

    At one step, t² = 9 x 3 x 4 / 14; at two, 9 x 2 x 3 / (14 + 2 x 2) = 3, whose p by Student's t with three degrees of
    freedom is 1 - 2/π (atan 1 + 1/2).
    """
    found = diebold_mariano([1, 2, 3, 6], [1] * 4)
    assert found is not None
    assert found[0] == round(sqrt(108 / 14) * 1e9)
    x = sqrt(36 / 14)  # t / √3
    assert found[1] == pytest.approx(1e9 * (1 - 2 / pi * (atan(x) + x / (1 + x * x))), abs=1)
    found = diebold_mariano([1, 2, 3, 6], [1] * 4, 2)
    assert found is not None
    assert found[0] == round(sqrt(3) * 1e9)
    assert found[1] == pytest.approx(1e9 * (1 - 2 / pi * (atan(1) + 0.5)), abs=1)


@pytest.mark.parametrize("horizon", [1, 2, 4])
def test_the_statistic_is_that_of_the_textbook(horizon: int) -> None:
    """For differences of equal weights; turned, it has the other sign and the same p."""
    random = Random(horizon)
    sums = [random.randrange(-30, 40) for _ in range(30)]
    found, turned = (
        diebold_mariano(sums, [5] * 30, horizon),
        diebold_mariano([-each for each in sums], [1] * 30, horizon),
    )
    assert found is not None
    assert found[0] == pytest.approx(by_textbook([*map(Fraction, sums)], horizon) * 1e9, abs=2)
    assert turned == (-found[0], found[1])


def test_there_is_no_test_without_a_variance_or_with_a_horizon_of_all_periods() -> None:
    """Equal differences, differences that alternate, and as many steps as periods. A mean of 0 has a p-value of 1."""
    assert diebold_mariano([2, 4], [1, 2]) is None
    assert diebold_mariano([1, -1] * 6, [1] * 12, 2) is None
    assert diebold_mariano([1, 2, 4], [1] * 3, 3) is None
    assert diebold_mariano([1, -1], [1] * 2) == (0, 10**9)


def test_differences_are_those_of_pairs_seen_from_the_baseline() -> None:
    """The participant comes first: signs are turned where the baseline is better; p is the same."""
    projections = compared(0)
    rows = [*projections.table("baseline_differences").rows()]
    pairs = {(row["participant"], row["other"]): row for row in projections.table("pairwise").rows()}
    board = [row["participant"] for row in projections.table("leaderboard").rows()]
    assert [(row["baseline"], row["participant"]) for row in rows] == [(a, b) for a in board for b in board if a != b]
    for row in rows:
        names = (row["participant"], row["baseline"])
        sign = 1 if names in pairs else -1
        pair = pairs[names if names in pairs else names[::-1]]
        assert [row[name] for name in ("questions", "clusters", "withheld", "p", "seed")] == [
            pair[name] for name in ("questions", "clusters", "withheld", "p", "seed")
        ]
        ends = sorted(sign * Fraction(pair[f"difference_{end}"]) for end in ("low", "high"))
        assert [Fraction(row[f"difference_{end}"]) for end in ("low", "high")] == ends
        assert Fraction(row["difference"]) == sign * Fraction(pair["difference"])


def scores_of(projections: Projections) -> dict[tuple[str, str], Fraction]:
    """Return the score of each question and participant, the larger the better."""
    return {
        (row["question"], row["participant"]): -Fraction(int(row["numerator"]), int(row["denominator"]))
        for row in projections.table("scores").rows()
    }


def test_p_values_are_adjusted_for_those_who_are_compared_with_a_baseline() -> None:
    """Two pairs of each of three participants, by the definition that all pairs are adjusted by."""
    projections = compared(0)
    scores, rows = scores_of(projections), [*projections.table("baseline_differences").rows()]
    weight = {f"q{number}": Fraction((1, 2)[number % 2]) for number in range(COUNT)}
    units = [[name] for name in sorted(weight.keys() - {"q3", "q4"})] + [["q3", "q4"]]
    seed = projections.seed("cup", "pairwise")
    for baseline in ("ada", "bo", "cy"):
        own = [row for row in rows if row["baseline"] == baseline]
        tests = [
            statistics(
                [Common(q, scores[q, row["participant"]] - scores[q, baseline], weight[q]) for q in weight],
                [units],
                seed,
            )
            for row in own
        ]
        assert [Fraction(row["p_adjusted"]) for row in own] == adjusted(tests)
        assert [Fraction(row["p"]) for row in own] == [
            Fraction(1 + sum(each >= statistic for each in turns), 1000) for statistic, turns in tests
        ]


@pytest.mark.parametrize("horizon", [0, 1, 2])
def test_the_test_is_of_clusters_and_of_the_horizon_that_all_questions_share(horizon: int) -> None:
    """Of 24 questions with two in a group, 23 periods; the statistic is of what periods deviate by from the mean."""
    projections = compared(horizon)
    scores = scores_of(projections)
    names = [HORIZON.format(horizon, number) if horizon else f"q{number}" for number in range(COUNT)]
    periods = [[number] for number in range(COUNT)]
    if not horizon:
        periods[3:5] = [[3, 4]]
    for row in projections.table("baseline_differences").rows():
        apart = [scores[name, row["participant"]] - scores[name, row["baseline"]] for name in names]
        sums = [sum((apart[each] * (1 + each % 2) for each in own), Fraction(0)) for own in periods]
        weights = [sum(1 + each % 2 for each in own) for own in periods]
        mean, n = sum(sums, Fraction(0)) / sum(weights), len(periods)
        even = [
            mean + (own - mean * weight) * n / sum(weights) for own, weight in zip(sums, weights, strict=True)
        ]  # as far apart as if all weights were the same
        assert (row["horizon"], row["periods"]) == (max(horizon, 1), n)
        assert float(row["diebold_mariano"]) == pytest.approx(by_textbook(even, max(horizon, 1)), abs=2e-9)
        assert 0 <= float(row["diebold_mariano_p"]) <= 1


def test_two_fields_of_clusters_have_no_test() -> None:
    """Differences of a question then depend on those of two clusters."""
    for row in compared(2, ("tag:origin", "tag:location")).table("baseline_differences").rows():
        assert [row[name] for name in ("horizon", "periods", "diebold_mariano", "diebold_mariano_p")] == [None] * 4
