"""The parts of the weighted interval score, compared with the sum over central intervals in fractions."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.model.commands import AnyCommand, Range
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.scores import range_kernels
from forecast_ledger.projections.scores.range_kernels import Numbers, quantum
from forecast_ledger.projections.studies.ranges import is_symmetric
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.projections.tables.ranges import mean_wis_parts
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import contest, day, entry, forecast, opened, quartiles, resolution
from tests.support.seasons import Season

BILLION = 10**9
WIS = RuleSet(name="wis", quantile_kernel="pinball", period="covered", total="mean")
SPOT = RuleSet(name="spot", quantile_kernel="pinball", period="covered", total="mean", sampling="spot")
KEY = ("contest", "question", "participant")
PARTS = ("dispersion", "overprediction", "underprediction")


class Parts(NamedTuple):
    """The parts of one score, exactly."""

    dispersion: Fraction
    overprediction: Fraction
    underprediction: Fraction


def interval_parts(levels: Sequence[Fraction], quantiles: Sequence[Fraction], answer: Fraction) -> Parts:
    """Return the parts by their definition: a mean of interval scores x alpha / 2, and half the error of the median.

    An interval score is u - l + 2 / alpha (l - y) if y < l, + 2 / alpha (y - u) if y > u.
    """
    width = over = under = Fraction(0)
    half = len(levels) // 2
    for place in range(half):
        alpha, lower, upper = 2 * levels[place], quantiles[place], quantiles[-1 - place]
        weight = alpha / 2
        width += weight * (upper - lower)
        over += weight * 2 / alpha * max(lower - answer, Fraction(0))
        under += weight * 2 / alpha * max(answer - upper, Fraction(0))
    if len(levels) % 2:
        over += max(quantiles[half] - answer, Fraction(0)) / 2
        under += max(answer - quantiles[half], Fraction(0)) / 2
    counted = half + Fraction(len(levels) % 2, 2)
    return Parts(width / counted, over / counted, under / counted)


def column(*numbers: int) -> Any:
    """Return a column of whole numbers."""
    return np.array(numbers, np.int64)


@st.composite
def symmetric(draw: st.DrawFn) -> tuple[Numbers, list[Fraction], list[Fraction], Fraction]:
    """Draw one forecast at levels symmetric about 0.5: as columns, and in fractions its levels, quantiles, answer."""
    below = draw(st.sets(st.integers(1, BILLION // 2 - 1), max_size=6))
    middle = [BILLION // 2] if draw(st.booleans()) or not below else []
    levels = (*sorted(below), *middle, *sorted(BILLION - level for level in below))
    most, decimals = draw(st.sampled_from([10, 10**6, 10**13])), draw(st.integers(0, 12))
    amount = st.integers(-most, most)
    made = sorted(draw(st.lists(amount, min_size=len(levels), max_size=len(levels))))
    finer = draw(st.sampled_from([0, 1, 5]))
    units = draw(st.sampled_from(made) | amount) * 10**finer + draw(st.integers(0, 10**finer - 1))
    answer = Decimal(units).scaleb(-decimals - finer)
    span = NumericRange(lower="0", upper="1", open_lower=True, open_upper=True, levels=levels, decimals=decimals)
    numbers = Numbers(
        column(7, *made), column(1), column(len(made)), column(1), column(0), [span], [format(answer, "f")]
    )
    places = [Fraction(level, BILLION) for level in levels]
    return numbers, places, [Fraction(each, 10**decimals) for each in made], Fraction(answer)


@settings(max_examples=times(200), deadline=None)
@given(drawn=symmetric())
def test_dispersion_is_the_weighted_width_of_the_central_intervals(
    drawn: tuple[Numbers, list[Fraction], list[Fraction], Fraction],
) -> None:
    """It is rounded half-even once, as the score is; the penalty is the rest, and on the side of the answer."""
    numbers, levels, quantiles, answer = drawn
    [span] = numbers.spans
    assert span is not None
    unit, exact = quantum(span), interval_parts(levels, quantiles, answer)
    [score], [width] = range_kernels.pinball(numbers).tolist(), range_kernels.dispersion(numbers).tolist()
    assert (score, width) == (round(sum(exact, Fraction(0)) * unit), round(exact.dispersion * unit))
    assert abs(score - width - (exact.overprediction + exact.underprediction) * unit) <= 1
    [above] = range_kernels.overpredicts(numbers).tolist()
    assert not (exact.underprediction if above else exact.overprediction)
    if len(levels) % 2:
        assert range_kernels.median_error(numbers).tolist() == [round(abs(quantiles[len(levels) // 2] - answer) * unit)]


def fives(question: str, answer: int, *quantiles: int, under: str = "cup") -> list[AnyCommand]:
    """Return a question with levels 0.1, 0.25, 0.5, 0.75 and 0.9, a forecast by Ada, and its answer."""
    span = Range(lower=-20, upper=30, levels=("0.1", "0.25", "0.5", "0.75", "0.9"), decimals=0)
    asked = opened(question, kind="numeric", range=span)
    return [asked, entry(under, question), forecast(question, quantiles=quantiles), resolution(question, value=answer)]


def printed(projections: Projections, *columns: str) -> list[tuple[Any, ...]]:
    """Return some columns of the table."""
    return [tuple(row[name] for name in columns) for row in projections.table("wis_parts").rows()]


def test_the_parts_of_the_examples_of_scoringutils() -> None:
    """wis() of scoringutils has 1, -15 and 22 as answers; its tests add up intervals as here, the median half.

    15.34 = 2/5 (0.1 x 6 + 13 + 0.25 + 16 + 17 / 2), with 13, 16 and 17 how far -15 is below -2, 1 and 2.
    """
    questions = fives("a", 1, -1, 0, 1, 2, 3) + fives("b", -15, -2, 1, 2, 2, 4) + fives("c", 22, -2, 0, 3, 3, 4)
    rows = printed(oracle.projected(contest(rules=SPOT), *questions), "wis", *PARTS, "median_error")
    assert [tuple(map(Fraction, row)) for row in rows] == [
        tuple(map(Fraction, row))
        for row in (
            ("0.36", "0.36", "0", "0", "0"),
            ("15.34", "0.34", "15", "0", "17"),
            ("19.14", "0.54", "0", "18.6", "19"),
        )
    ]


def test_parts_are_means_over_the_time_that_forecasts_stand() -> None:
    """Ada's 1, 2, 3 at quartiles stand for two days, then 2, 2, 2 for six; the answer is 1, and 2 days are uncovered.

    Each score has 2/3 of 1/4 of the width, and of the distances to 1 below: 0 + 1/2, then 1 + 1/2.
    """
    start = quartiles(), contest(rules=WIS), entry(question="flow")
    made = forecast("flow", quantiles=(1, 2, 3), at=day(12)), forecast("flow", quantiles=(2, 2, 2), at=day(14))
    rows = printed(oracle.projected(*start, *made, resolution("flow", value=1)), "wis", *PARTS, "median_error")
    width, over = (
        Fraction(2, 3) * Fraction(2, 4) * 2 / 8,
        Fraction(2, 3) * (Fraction(1, 2) * 2 + Fraction(3, 2) * 6) / 8,
    )
    expected = (width + over, width, over, Fraction(0), Fraction(1))
    [row] = rows
    assert all(abs(Fraction(ours) - each) < Fraction(2, 10**7) for ours, each in zip(row, expected, strict=True))


def test_a_question_whose_levels_are_not_symmetric_has_no_parts() -> None:
    """Without central intervals there is no width; the score itself is that of the quantile losses."""
    start = quartiles(levels=("0.25", "0.5")), contest(rules=WIS), entry(question="flow")
    projections = oracle.projected(*start, forecast("flow", quantiles=(1, 2)), resolution("flow", value=1))
    assert len(projections.table("scores")) == 1
    assert not len(projections.table("wis_parts"))


def test_levels_without_the_median_have_no_error_of_it() -> None:
    """At 0.25 and 0.75 alone the score is a quarter of the width, and the distance beyond."""
    start = quartiles(levels=("0.25", "0.75")), contest(rules=WIS), entry(question="flow")
    rows = printed(
        oracle.projected(*start, forecast("flow", quantiles=(1, 2)), resolution("flow", value=4)),
        *PARTS, "median_error", "median_error_numerator",
    )  # fmt: skip
    assert rows == [("0.250000000", "0.000000000", "2.000000000", None, None)]


def test_with_peers_the_parts_are_those_of_the_score_itself() -> None:
    """A score against the peers is a difference of weighted interval scores; the table has the first of the two."""
    peers = RuleSet(name="peers", quantile_kernel="pinball", reference="peers")
    start = quartiles(), contest(rules=peers), entry(question="flow")
    made = forecast("flow", quantiles=(1, 2, 3)), forecast("flow", "bob", quantiles=(2, 2, 2))
    rows = printed(oracle.projected(*start, *made, resolution("flow", value=2)), "participant", "wis", *PARTS)
    third = "0.333333300"
    assert rows == [("ada", third, third, "0.000000000", "0.000000000"), ("bob", *["0.000000000"] * 4)]


def total(row: dict[str, Any]) -> int:
    """Return the sum of the numerators of the parts."""
    return sum(int(row[f"{part}_numerator"]) for part in PARTS)


@pytest.mark.parametrize("seed", range(times(40)))
def test_the_numerators_add_up_to_that_of_the_score(seed: int) -> None:
    """Under any sampling and clock, with a reference forecaster, scored in chunks of any size: for every such score."""
    random = Random(seed)
    rules = RuleSet(
        name="drawn",
        quantile_kernel="pinball",
        period="covered",
        total="mean",
        sampling=random.choice(["time", "day", "spot"]),
        clock=random.choice(["claimed", "recorded"]),
        day_edges="both",
        early_forecasts=random.random() < 0.7,
        reference_rows=random.choice([(), ("uniform",)]),
    )
    facts = oracle.facts_in(Season(random, rules, rules, uncounted=0.2, ending=0.2).recorded())
    whole, pieces = (Projections(facts, chunk).table("wis_parts") for chunk in (1 << 20, 1))
    assert whole.digest() == pieces.digest()
    added = {
        tuple(row[name] for name in KEY): (
            sum(int(row[f"{part}_numerator"]) for part in PARTS),
            int(row["denominator"]),
        )
        for row in whole.rows()
    }
    central = {each.question for each in facts.questions if each.range and is_symmetric(each.range.levels)}
    assert added == {
        tuple(row[name] for name in KEY): (int(row["numerator"]), int(row["denominator"]))
        for row in Projections(facts).table("scores").rows()
        if row["question"] in central
    }


@pytest.mark.parametrize("seed", [17, 21, 29])  # with three scores of some participants
def test_means_of_parts_are_those_of_the_rows(seed: int) -> None:
    """Weighted as on the board, of those who are asked for, in small chunks; they add up to the WIS."""
    rules = RuleSet(
        name="drawn", quantile_kernel="pinball", total="mean", period="covered", reference_rows=("uniform",)
    )
    projections = Projections(oracle.facts_in(Season(Random(seed), rules, rules, uncounted=0.2).recorded()), chunk=1)
    facts, numbers = projections.facts, dict[tuple[str, str], list[tuple[int, list[Fraction]]]]()
    for row in projections.table("wis_parts").rows():
        weight = facts.contests[row["contest"]].entries[facts.question_codes.codes[row["question"]]].weight
        parts = [Fraction(int(row[f"{part}_numerator"]), int(row["denominator"])) for part in PARTS]
        if weight:
            numbers.setdefault((row["contest"], row["participant"]), []).append(
                (weight, [*parts, sum(parts, Fraction(0))])
            )
    assert numbers
    for contest_id in facts.contests:
        asked = {who for each, who in numbers if each == contest_id}
        asked -= {max(asked, default="")}
        found = mean_wis_parts(projections, contest_id, asked)
        assert found.keys() == asked
        for who, mean in found.items():
            weights, rows = zip(*numbers[contest_id, who], strict=True)
            expected = [
                sum(weight * each for weight, each in zip(weights, column, strict=True)) / Fraction(sum(weights))
                for column in zip(*rows, strict=True)
            ]
            assert [mean.dispersion, mean.overprediction, mean.underprediction, mean.wis] == expected
            assert mean.questions == len(rows)
