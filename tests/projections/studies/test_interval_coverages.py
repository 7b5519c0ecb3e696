"""Coverages of central intervals, compared with counts in fractions."""

from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.scores.range_kernels import Numbers
from forecast_ledger.projections.studies.ranges import HALF_UNITS, answer_spans, tenths
from forecast_ledger.projections.tables.catalogue import Projections
from tests.projections.boards.test_brier_sample import instant, standing
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import contest, day, ensemble, entry, forecast, numeric, quartiles, resolution, withdrawal
from tests.support.seasons import Season

WIS = RuleSet(name="wis", quantile_kernel="pinball", period="covered", total="mean")
SPOT = RuleSet(name="spot", quantile_kernel="pinball", period="covered", total="mean", sampling="spot")
BOTH = RuleSet(name="both", cdf_kernel="crps", quantile_kernel="pinball", period="covered", total="mean")
CDF_INTERVALS = (Fraction(1, 2), Fraction(4, 5), Fraction(9, 10), Fraction(19, 20))


def counted(projections: Projections, contest: str = "cup") -> list[tuple[Any, ...]]:
    """Return participant, probability, forecasts and intervals with the answer, row by row."""
    rows = projections.table("interval_coverage").rows()
    return [
        (row["participant"], row["probability"][:4], row["n"], Fraction(row["covered"]))
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


def test_samples_have_the_intervals_of_a_cdf() -> None:
    """Three samples leave four gaps: 2 is in the third, from 0.5 to 0.75; above all, 3.5 is in 0.75 to 1."""
    start = ensemble(), contest(rules=WIS), entry(question="depths"), forecast("depths", samples=(3, 0, 1))
    found = counted(oracle.projected(*start, resolution("depths", value=2)))
    assert found == [("ada", shown, 1, 1) for shown in SHOWN]
    found = counted(oracle.projected(*start, resolution("depths", value="3.5")))
    parts = zip(SHOWN, ("0", "0.6", "0.8", "0.9"), strict=True)  # 0.6 = (0.9 - 0.75) / 0.25, and so on
    assert found == [("ada", shown, 1, Fraction(part)) for shown, part in parts]


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


UNIFORM = ("0", "0.25", "0.5", "0.75", "1")
SHOWN = ("0.50", "0.80", "0.90", "0.95")


@pytest.mark.parametrize(
    ("cdf", "answer", "covered"),
    [
        (UNIFORM, "2", (1, 1, 1, 1)),  # F = 0.5
        (UNIFORM, "1", (1, 1, 1, 1)),  # F = 0.25, an end of the interval of one half
        (UNIFORM, "0.9999", (0, 1, 1, 1)),
        (UNIFORM, "3.0001", (0, 1, 1, 1)),
        (UNIFORM, "0.4", (0, 1, 1, 1)),  # F = 0.1
        (UNIFORM, "0.3999", (0, 0, 1, 1)),
        (UNIFORM, "3.8", (0, 0, 1, 1)),  # F = 0.95
        (UNIFORM, "3.8001", (0, 0, 0, 1)),
        (UNIFORM, "3.9", (0, 0, 0, 1)),  # F = 0.975
        (UNIFORM, "3.9001", (0, 0, 0, 0)),
        (UNIFORM, "0.0999", (0, 0, 0, 0)),
        (("0", "0.5", "0.5", "0.5", "1"), "3", (1, 1, 1, 1)),
        (("0", "0", "0", "0.02", "1"), "2.5", (0, 0, 0, 0)),  # F = 0.01
        (("0", "0", "0", "0.02", "1"), "3.04", (0, 0, 1, 1)),  # F = 0.02 + 0.98 x 0.04 = 0.0592
    ],
)
def test_an_interval_of_a_cdf_holds_an_answer_of_middling_height(
    cdf: tuple[str, ...], answer: str, covered: tuple[int, ...]
) -> None:
    """That of probability 1 - a holds y if a/2 <= F(y) <= 1 - a/2; in each of the four bins, F is linear."""
    start = numeric(), contest(rules=BOTH), entry(question="depth")
    found = counted(oracle.projected(*start, forecast("depth", cdf=cdf), resolution("depth", value=answer)))
    assert found == [("ada", share, 1, held) for share, held in zip(SHOWN, covered, strict=True)]


@pytest.mark.parametrize(
    ("answer", "covered"),
    [
        ("-9", ("0", "0", "0", "1/2")),  # 0 to 0.05
        ("0", ("0", "0", "1", "1")),  # at the end itself: 0.05, an end of the interval of 0.9
        ("1000", ("1/6", "2/3", "5/6", "11/12")),  # 0.7 to 1
    ],
)
def test_beyond_an_open_end_an_interval_holds_its_share_of_what_lies_there(
    answer: str, covered: tuple[str, ...]
) -> None:
    """The cdf is 0.05 at the lower end of the range, and 0.7 at the upper."""
    start = numeric(open_lower=True, open_upper=True), contest(rules=BOTH), entry(question="depth")
    made = forecast("depth", cdf=("0.05", "0.3", "0.5", "0.6", "0.7"))
    found = counted(oracle.projected(*start, made, resolution("depth", value=answer)))
    expected = [Fraction(oracle.nine(Fraction(held))) for held in covered]
    assert found == [("ada", share, 1, held) for share, held in zip(SHOWN, expected, strict=True)]


@pytest.mark.parametrize(
    ("quantiles", "answer", "covered"),
    [
        ((2, 4, 4, 4, 9), 4, ("1", "1")),  # 0.25 to 0.75
        ((4, 4, 4, 6, 9), 4, ("5/8", "1")),  # 0.1 to 0.5
        ((4, 4, 4, 4, 4), 4, ("5/8", "1")),  # 0.1 to 0.9
        ((2, 4, 4, 6, 9), 5, ("1", "1")),
        ((2, 4, 4, 6, 9), 9, ("0", "1")),
    ],
)
def test_equal_quantiles_at_the_answer_hold_the_share_of_an_interval(
    quantiles: tuple[int, ...], answer: int, covered: tuple[str, ...]
) -> None:
    """Levels 0.1, 0.25, 0.5, 0.75 and 0.9: the forecast puts the probability between equal ones on their value."""
    asked = quartiles(levels=("0.1", "0.25", "0.5", "0.75", "0.9"), decimals=0, upper=10)
    start = asked, contest(rules=WIS), entry(question="flow"), forecast("flow", quantiles=quantiles)
    found = counted(oracle.projected(*start, resolution("flow", value=answer)))
    assert found == [("ada", share, 1, Fraction(held)) for share, held in zip(("0.50", "0.80"), covered, strict=True)]


PARTS = 40  # a calibrated forecaster's answers: one for each part of the probability


@settings(max_examples=times(100), deadline=None)
@given(
    cuts=st.lists(st.integers(0, PARTS), min_size=3, max_size=7),
    kind=st.sampled_from(["closed", "open", "open below", "discrete"]),
)
def test_of_a_calibrated_forecaster_each_interval_holds_its_share_and_each_tenth_a_tenth(
    cuts: list[int], kind: str
) -> None:
    """Every fortieth of the forecast's probability comes true once; a bin has its answers in the middle of its parts.

    The limits 0.025, 0.05 … 0.975 and the tenths are whole numbers of fortieths, so that no answer is at a limit.
    """
    low, high = kind.startswith("open"), kind == "open"
    heights = sorted(cuts)
    heights[0], heights[-1] = heights[0] if low else 0, heights[-1] if high else PARTS
    span = NumericRange(lower="0", upper=str(len(cuts) - 1), bins=len(cuts) - 1, open_lower=low, open_upper=high)
    edges, answers = [0, *heights, PARTS], list[tuple[int, Fraction]]()  # outcome and value
    for outcome, (before, upto) in enumerate(pairwise(edges)):
        within = (Fraction(2 * part + 1, 2 * (upto - before)) for part in range(upto - before))
        answers += [(outcome, outcome - 1 + (Fraction(1, 2) if kind == "discrete" else place)) for place in within]
    assert len(answers) == PARTS
    one = np.ones(PARTS, np.int64)
    made = Numbers(
        np.array([each * (10**10 // PARTS) for each in heights]),
        *(0 * one, len(heights) * one, np.array([outcome for outcome, _ in answers]), np.arange(PARTS)),
        [span] * PARTS,
        [f"{value.numerator}/{value.denominator}" for _, value in answers],
    )
    spans = answer_spans(made, np.array([kind == "discrete"] * PARTS))
    width = spans.width.tolist()
    for share in CDF_INTERVALS:
        ends = [int(end * HALF_UNITS) for end in ((1 - share) / 2, (1 + share) / 2)]
        held = (Fraction(*each) for each in zip(spans.within(*ends).tolist(), width, strict=True))
        assert sum(held) == share * PARTS
    for tenth in tenths(spans).T.tolist():
        assert sum(Fraction(*each) for each in zip(tenth, width, strict=True)) == Fraction(PARTS, 10)


def test_cdfs_and_quantiles_count_together_where_they_have_the_same_interval() -> None:
    """Quartiles make the interval of 0.5, which cdfs have too; only the cdf has the wider ones."""
    start = numeric(), quartiles(), contest(rules=BOTH), entry(question="depth"), entry(question="flow")
    made = forecast("depth", cdf=UNIFORM), forecast("flow", quantiles=(1, 2, 3))
    rows = counted(oracle.projected(*start, *made, resolution("depth", value="0.5"), resolution("flow", value=2)))
    assert rows == [("ada", "0.50", 2, 1), ("ada", "0.80", 1, 1), ("ada", "0.90", 1, 1), ("ada", "0.95", 1, 1)]


def height(cdf: tuple[int, ...], answer: Fraction) -> Fraction:
    """Return F at an answer, from the bin that holds it; the bins from 0 to 4 are equal."""
    steps = min(max(answer, Fraction(0)), Fraction(4)) * (len(cdf) - 1) / 4
    points = [(Fraction(place), Fraction(each, 10**10)) for place, each in enumerate(cdf)]
    for (left, low), (right, high) in pairwise(points):
        if left <= steps <= right:
            return low + (high - low) * (steps - left)
    raise AssertionError(steps)


@pytest.mark.parametrize("seed", range(times(40)))
def test_coverages_of_cdfs_are_counts_in_fractions(seed: int) -> None:
    """Of random forecasts on three questions, one with open ends, whose answers are often at an end of an interval."""
    random = Random(seed)
    commands: list[AnyCommand] = [contest(rules=BOTH)]
    expected: dict[tuple[str, str], list[Fraction]] = {}
    for question, beyond in (("a", 0), ("b", 0), ("c", 3)):
        bins = random.choice([2, 4, 5])
        opened = numeric(question, bins=bins, open_lower=beyond > 0, open_upper=beyond > 0)
        answer = Fraction(random.randrange(-beyond * 40, (4 + beyond) * 40 + 1), 40)
        commands += [opened, entry(question=question)]
        for who in ("ada", "bob"):
            inner = sorted(random.choice([50, 100, 250, 500, 750, 900, 975]) for _ in range(bins - 1))
            whole = [25, *inner, 975] if beyond else [0, *inner, 1000]
            cdf = tuple(each * 10**7 for each in sorted(whole))
            commands.append(forecast(question, who, cdf=tuple(f"{each / 10**10:.3f}" for each in cdf)))
            at = height(cdf, answer)
            for share, name in zip(CDF_INTERVALS, SHOWN, strict=True):
                low, high = (1 - share) / 2, (1 + share) / 2
                below, upto = (Fraction(0), Fraction(1, 40)) if answer < 0 else (Fraction(39, 40), Fraction(1))
                part = max(min(upto, high) - max(below, low), Fraction(0)) * 40  # 1/40 lies beyond either end
                expected.setdefault((who, name), []).append(Fraction(low <= at <= high) if 0 <= answer <= 4 else part)
        commands.append(resolution(question, value=f"{float(answer):.3f}"))
    assert counted(oracle.projected(*commands)) == [
        (*key, 3, Fraction(oracle.nine(sum(held, Fraction(0))))) for key, held in sorted(expected.items())
    ]


def share_of(own: dict[int, Fraction], answer: Fraction, level: int) -> Fraction:
    """Return the part of an answer within the interval from a level to its counterpart. own: quantiles by level."""
    equal = [each for each, quantile in own.items() if quantile == answer]
    if len(equal) < 2:
        return Fraction(own[level] <= answer <= own[10**9 - level])
    shared = min(10**9 - level, max(equal)) - max(level, min(equal))
    return Fraction(max(shared, 0), max(equal) - min(equal))


@pytest.mark.parametrize("seed", range(times(40)))
def test_coverages_are_counts_over_the_forecasts_that_stood_at_one_instant(seed: int) -> None:
    """On random seasons, by the slow definition of which forecasts stand, with levels and answers as fractions."""
    random = Random(seed)
    rules = structs.replace(random.choice([WIS, SPOT]), clock=random.choice(["claimed", "recorded"]))
    recorded = Season(random, rules, rules, uncounted=0.2).recorded()
    world = oracle.world(recorded)
    expected: dict[tuple[str, str, Fraction], list[Fraction]] = {}
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
                        held = share_of(own, answer, level)
                        assert held == (lower <= answer <= own[10**9 - level]) or [*own.values()].count(answer) > 1
                        expected.setdefault(key, []).append(held)
    found = {
        (row["contest"], row["participant"], Fraction(row["probability"])): (
            row["n"],
            Fraction(row["covered"]),
            Fraction(row["coverage"]),
        )
        for row in Projections(oracle.facts_in(recorded), random.choice([1, 1 << 20])).table("interval_coverage").rows()
    }
    assert found == {
        key: (len(held), *(Fraction(oracle.nine(sum(held, Fraction(0)) / over)) for over in (1, len(held))))
        for key, held in expected.items()
    }
