"""Coverages of central intervals, compared with counts in fractions."""

from fractions import Fraction
from random import Random
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.catalogue.projection import Projections
from tests.projections.boards.test_brier_sample import instant, standing
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import contest, day, entry, forecast, quartiles, resolution, withdrawal
from tests.support.seasons import Season

WIS = RuleSet(name="wis", quantile_kernel="pinball", period="covered", total="mean")
SPOT = RuleSet(name="spot", quantile_kernel="pinball", period="covered", total="mean", sampling="spot")


def counted(projections: Projections, contest: str = "cup") -> list[tuple[str, str, int, int]]:
    """Return participant, probability, forecasts and intervals with the answer, row by row."""
    rows = projections.table("interval_coverage").rows()
    return [
        (row["participant"], row["probability"][:4], row["n"], row["covered"])
        for row in rows
        if row["contest"] == contest
    ]


@pytest.mark.parametrize(
    ("answer", "inner", "outer"),
    [
        (4, 1, 1),
        ("3.9999", 0, 1),
        (6, 1, 1),
        ("6.0001", 0, 1),
        (2, 0, 1),
        ("1.9999", 0, 0),
        (9, 0, 1),
        ("9.0001", 0, 0),
    ],
)
def test_both_ends_of_an_interval_belong_to_it(answer: Any, inner: int, outer: int) -> None:
    """Ada gives 2, 4, 5, 6 and 9 at 0.1, 0.25, 0.5, 0.75 and 0.9: half between 4 and 6, 80% between 2 and 9."""
    asked = quartiles(levels=("0.1", "0.25", "0.5", "0.75", "0.9"), decimals=0, upper=10)
    start = asked, contest(rules=WIS), entry(question="flow"), forecast("flow", quantiles=(2, 4, 5, 6, 9))
    found = counted(oracle.projected(*start, resolution("flow", value=answer)))
    assert found == [("ada", "0.50", 1, inner), ("ada", "0.80", 1, outer)]


def test_levels_without_a_counterpart_make_no_interval() -> None:
    """Of 0.1, 0.25, 0.5 and 0.75 only 0.25 and 0.75 go together; the median alone is no interval."""
    asked = quartiles(levels=("0.1", "0.25", "0.5", "0.75"), decimals=0)
    point = quartiles("tide", levels=("0.5",), decimals=0)
    commands: list[AnyCommand] = [asked, point, contest(rules=WIS), entry(question="flow"), entry(question="tide")]
    commands += [forecast("flow", quantiles=(0, 1, 2, 3)), forecast("tide", quantiles=(2,))]
    commands += [resolution("flow", value=2), resolution("tide", value=2)]
    assert counted(oracle.projected(*commands)) == [("ada", "0.50", 1, 1)]


def test_one_forecast_counts_for_a_question() -> None:
    """The one that stood last, or at the spot; one that was withdrawn before does not count."""
    asked, made = quartiles(), dict[str, Any](quantiles=(1, 2, 3))
    said = [forecast("flow", **made), forecast("flow", "bob", **made)]
    said.append(forecast("flow", quantiles=(0, 0, 1), at=day(14)))
    for under, covered in ((WIS, 0), (SPOT, 1)):
        start = asked, contest(rules=under), entry(question="flow", spot_at=day(12))
        end = withdrawal("flow", "bob"), resolution("flow", value=2)
        rows = counted(oracle.projected(*start, *said, *end))
        assert rows == [("ada", "0.50", 1, covered)] + [("bob", "0.50", 1, 1)] * (under is SPOT)


@pytest.mark.parametrize("seed", range(times(40)))
def test_coverages_are_counts_over_the_forecasts_that_stood_at_one_instant(seed: int) -> None:
    """On random seasons, by the slow definition of which forecasts stand, with levels and answers as fractions."""
    random = Random(seed)
    rules = structs.replace(random.choice([WIS, SPOT]), clock=random.choice(["claimed", "recorded"]))
    recorded = Season(random, rules, rules, uncounted=0.2).recorded()
    world = oracle.world(recorded)
    expected: dict[tuple[str, str, Fraction], list[bool]] = {}
    for name, state in world.contests.items():
        at_seal = oracle.world(recorded, state.finalized)
        for question, added in at_seal.contests[name].entries.items():
            asked = at_seal.questions[question]
            if asked.resolved is None or not added.weight or asked.opened.range is None:
                continue
            spot = structs.replace(added, spot_at=added.spots[-1].at) if added.spots else added  # the last of several
            span, answer = asked.opened.range, Fraction(asked.resolved.value)
            for who, said in standing(at_seal, asked, rules, instant(asked, spot, rules)).items():
                own = dict(
                    zip(span.levels, (Fraction(each, 10**span.decimals) for each in said.quantiles), strict=True)
                )
                for level, lower in own.items():
                    if 2 * level < 10**9 and 10**9 - level in own:
                        key = name, who, Fraction(10**9 - 2 * level, 10**9)
                        expected.setdefault(key, []).append(lower <= answer <= own[10**9 - level])
    found = {
        (row["contest"], row["participant"], Fraction(row["probability"])): (row["n"], row["covered"])
        for row in Projections(oracle.facts_in(recorded), random.choice([1, 1 << 20])).table("interval_coverage").rows()
    }
    assert found == {key: (len(held), sum(held)) for key, held in expected.items()}
