"""Relative skill, compared with hubEvals' published results, and with its definition in floats."""

from collections import defaultdict
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from math import exp, log
from random import Random
from typing import Any

import pytest

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.columns import POINTS
from forecast_ledger.projections.studies.difficulty import relative_skills, scaled
from forecast_ledger.projections.tables.catalogue import Projections
from tests.projections.studies.test_designs import RULES, SAID, toy
from tests.projections.studies.test_intervals import WEIGHTS, exact_scores, season
from tests.projections.studies.test_two_way import cells
from tests.support import oracle, rules_oracle
from tests.support.effort import times
from tests.support.given import contest, entry, exclusion, forecast, opened, resolution
from tests.support.logs import printed

# hubEvals, tests of relative metrics, by location: the mean weighted interval score of three models that have forecast
# on the same targets, their relative skill, and that scaled by Flusight-baseline, which is the first.
PUBLISHED = {
    "25": (
        ("179.944642857", "1.12612125846186", "1"),
        ("162.6875", "1.01812340354839", "0.904097490299596"),
        ("139.369642857", "0.872196666228429", "0.774513987436612"),
    ),
    "48": (
        ("478.964285714", "1.15711681669639", "1"),
        ("467.791071429", "1.13012375159286", "0.976672134814704"),
        ("316.535714286", "0.764710039995535", "0.660875400790396"),
    ),
}


@pytest.mark.parametrize("location", PUBLISHED)
def test_the_numbers_that_hub_evals_publishes_come_out(location: str) -> None:
    """To the nine decimals of a table, from mean scores of nine decimals."""
    published = PUBLISHED[location]
    scores = [int(Fraction(score) * POINTS) for score, *_ in published]
    skills = relative_skills(cells([(who, 0, score, 1) for who, score in enumerate(scores)]), {0, 1, 2})
    for own, (_, skill, beside_baseline) in zip(skills, published, strict=True):
        for found, expected in ((scaled(own), skill), (scaled(own, skills[0]), beside_baseline)):
            assert found is not None
            assert abs(Fraction(found, POINTS) - Fraction(expected)) < Fraction(3, 10**9)


def by_definition(rows: Sequence[tuple[int, int, int, int]], own: int, fitted: set[int]) -> float:
    """Return a participant's relative skill."""
    of = {who: {which: (score, weight) for w, which, score, weight in rows if w == who} for who in {r[0] for r in rows}}
    ratios = [0.0]
    for other in sorted(fitted - {own}):
        common = of[own].keys() & of[other].keys()
        if common:
            sums = [sum(of[who][which][0] * of[who][which][1] for which in common) for who in (own, other)]
            ratios.append(log(sums[0] / sums[1]))
    return exp(sum(ratios) / len(ratios))


@pytest.mark.parametrize("size", [10**3, 10**30])
@pytest.mark.parametrize("seed", range(times(6)))
def test_skills_are_those_of_the_definition(seed: int, size: int) -> None:
    """With weights, where some participants have nothing in common, and numbers beyond 64 bits."""
    random = Random(seed)
    weight = [random.randint(1, 4) for _ in range(8)]
    given = [
        (who, which, random.randint(1, size), weight[which])
        for who in range(6)
        for which in range(8)
        if random.random() < 0.35
    ]
    people = {row[0] for row in given}
    fitted = {who for who in people if random.random() < 0.8}
    for own in relative_skills(cells(given), fitted):
        found = scaled(own)
        assert found is not None
        assert abs(found / POINTS / by_definition(given, own.participant, fitted) - 1) < 1e-8
    assert {own.participant for own in relative_skills(cells(given), fitted)} == people


@pytest.mark.parametrize("weights", WEIGHTS)
def test_skills_are_those_of_exact_scores(weights: str) -> None:
    """To the nine decimals that are printed, by logarithms of 60 digits."""
    for seed in range(times(8)):
        recorded = oracle.history(*season(RULES, seed, weights))
        projections, context = Projections(oracle.facts_in(recorded)), Context(prec=60)
        weight = {name: case.entry.weight for name, case in rules_oracle.cases(recorded, "cup").items()}
        of: defaultdict[str, dict[str, Fraction]] = defaultdict(dict)
        for (name, who), (score, _) in exact_scores(projections).items():
            if weight[name]:
                of[who][name] = weight[name] * score
        fitted = of.keys() - ({"eve"} if projections.facts.contests["cup"].level_of("eve") == "no_rank" else set())
        skills = {}
        for who, own in of.items():
            ratios = [Decimal(0)]
            for other in fitted - {who}:
                sums = [sum(each[name] for name in own.keys() & of[other].keys()) for each in (own, of[other])]
                ratios += [oracle.quotient(Fraction(sums[0], sums[1])).ln(context)] if sums[1] else []
            skills[who] = context.exp(context.divide(sum(ratios), Decimal(len(ratios))))
        for row in projections.table("relative_skill").rows():
            skill, beside = skills[row["participant"]], skills[row["baseline"]]
            assert Decimal(row["relative_skill"]) == round(skill, 9)
            assert Decimal(row["scaled_relative_skill"]) == round(context.divide(skill, beside), 9)


def test_a_mean_of_zero_leaves_it_undefined() -> None:
    """Of who has it, and of who is compared with them; not of who shares no question with them."""
    given = [(0, 0, 0, 1), (1, 0, 5, 1), (1, 1, 5, 1), (2, 1, 10, 1)]
    skills = relative_skills(cells(given), {0, 1, 2})
    assert [scaled(own) for own in skills] == [None, None, 1_414_213_562]  # √2
    assert scaled(skills[2], skills[0]) is None


def test_the_table_has_a_row_for_each_baseline() -> None:
    """A, B and H on four questions: sums of Brier scores on common ones, 0.21 and 0.5, by hand."""
    story = toy(people="ABH")
    found = {(row["baseline"], row["participant"]): row for row in printed("relative_skill", *story)}
    assert len(found) == 9
    a_b, a_h, b_h = Fraction(20, 13), Fraction(21, 75), Fraction(3325, 7500)  # A and B share q2 and q3
    expected = {"A": (a_b * a_h), "B": (b_h / a_b), "H": 1 / (a_h * b_h)}
    for who, product in expected.items():
        row = found["H", who]
        assert abs(Decimal(row["relative_skill"]) ** 3 - Decimal(product.numerator) / product.denominator) < Decimal(
            "1e-7"
        )
        assert row["compared"] == 3
    assert {row["scaled_relative_skill"] for (baseline, who), row in found.items() if baseline == who} == {
        "1.000000000"
    }


def test_who_may_have_no_rank_changes_nobodys_number() -> None:
    """They are compared with the others all the same, and can be the baseline."""
    shown = printed("relative_skill", *toy(), exclusion(participant="H", level="no_rank"))
    without = printed("relative_skill", *toy(people="AB"))
    assert [row for row in shown if "H" not in {row["baseline"], row["participant"]}] == without
    of_h = [row for row in shown if row["participant"] == "H"]
    assert {row["excluded"] for row in of_h} == {"no_rank"}
    assert {row["compared"] for row in of_h} == {3}
    assert len(of_h) == len(SAID)


@pytest.mark.parametrize("rules", [{"kernel": "ln"}, {"kernel": "brier", "reference": "consensus"}])
def test_scores_that_may_be_below_zero_have_no_ratios(rules: dict[str, Any]) -> None:
    """Logarithms, and differences to the consensus."""
    own = RuleSet(**{"name": "mine", "period": "covered", "total": "mean"} | rules)
    story: list[AnyCommand] = [contest(rules=own), opened(), entry(), forecast(), forecast(participant="bob")]
    assert printed("relative_skill", *story, resolution()) == []
