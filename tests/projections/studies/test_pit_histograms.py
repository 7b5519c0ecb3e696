"""Probability integral transforms of numeric forecasts, compared with coverages of quantiles, and by hand."""

from collections.abc import Sequence
from decimal import Decimal
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
from forecast_ledger.projections.studies.ranges import answer_spans, tenths
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import (
    OPENS,
    annulment,
    contest,
    day,
    ensemble,
    entry,
    forecast,
    numeric,
    quartiles,
    resolution,
    withdrawal,
)
from tests.support.seasons import Season, drawn_rules

DECILES = tuple(f"0.{place}" for place in range(1, 10))
TIME = RuleSet(name="time", cdf_kernel="crps", quantile_kernel="pinball", period="covered", total="mean")
SPOT = RuleSet(
    name="spot", cdf_kernel="crps", quantile_kernel="pinball", period="covered", total="mean", sampling="spot"
)
EVEN = ("0", "0.25", "0.5", "0.75", "1")


def columns(made: Sequence[int], span: NumericRange, answer: str) -> Numbers:
    """Return one forecast as columns."""
    start, width, outcome, question = (np.array([each]) for each in (0, len(made), 1, 0))
    return Numbers(np.array(made), start, width, outcome, question, [span], [answer])


def in_tenths(made: Sequence[int], span: NumericRange, answer: str) -> list[Fraction]:
    """Return the part of the answer of one forecast that fell in each tenth."""
    spans = answer_spans(columns(made, span, answer), np.array([False]))
    return [Fraction(part, int(spans.width[0])) for part in tenths(spans)[0].tolist()]


def counted(projections: Projections, participant: str = "ada", contest: str = "cup") -> list[Fraction]:
    """Return the counts of a participant, tenth by tenth; nothing if none of the forecasts counts."""
    rows = [
        row
        for row in projections.table("pit_counts").rows()
        if (row["contest"], row["participant"]) == (contest, participant)
    ]
    ends = [(row["from_probability"], row["to_probability"]) for row in rows]
    assert ends == [
        (f"0.{low}00000000", f"{'1.0' if low == 9 else f'0.{low + 1}'}00000000") for low in range(len(rows))
    ]
    return [Fraction(row["n"]) for row in rows]


def alone(tenth: int) -> list[Fraction]:
    """Return the counts of one forecast whose answer fell in one tenth."""
    return [Fraction(each == tenth) for each in range(10)]


def spread(*shares: str) -> list[Fraction]:
    """Return the counts of one forecast by tenth, from fractions, as they are printed."""
    return [Fraction(oracle.nine(Fraction(share))) for share in shares]


# --- quantiles


def deciles(*quantiles: int, answer: Any, **fields: Any) -> list[AnyCommand]:
    """Return a contest with one question at the nine levels between tenths, a forecast by Ada, and the answer."""
    asked = quartiles(levels=DECILES, decimals=0, upper=100, **fields)
    made = forecast("flow", quantiles=quantiles)
    return [asked, contest(rules=TIME), entry(question="flow"), made, resolution("flow", value=answer)]


@pytest.mark.parametrize(
    ("answer", "tenth"), [(0, 0), (10, 0), ("10.001", 1), (20, 1), (50, 4), (51, 5), (90, 8), ("90.5", 9), (100, 9)]
)
def test_an_answer_at_a_quantile_is_in_the_tenth_that_it_ends(answer: Any, tenth: int) -> None:
    """The quantiles are 10, 20 … 90; an answer just above one is in the next tenth."""
    assert counted(oracle.projected(*deciles(*range(10, 100, 10), answer=answer))) == alone(tenth)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (6, alone(0)),
        (7, spread("0", "1/3", "1/3", "1/3", *"000000")),  # from 0.1 to 0.4
        ("7.5", alone(4)),
        (8, alone(4)),
        (9, spread(*"000000", "1/3", "1/3", "1/3", "0")),  # from 0.6 to 0.9
        (20, alone(9)),
    ],
)
def test_an_answer_at_equal_quantiles_is_spread_between_their_levels(answer: Any, expected: list[Fraction]) -> None:
    """Four quantiles are 7, then come 8, 9, 9, 9 and 9: the forecast puts at least 30% on 7, and on 9."""
    assert counted(oracle.projected(*deciles(7, 7, 7, 7, 8, 9, 9, 9, 9, answer=answer))) == expected


def test_levels_between_the_tenths_make_no_difference() -> None:
    """A hub asks for 23 levels; the nine between tenths decide."""
    levels = ("0.01", "0.025", *(f"0.{place:02}" for place in range(5, 100, 5)), "0.975", "0.99")
    asked = quartiles(levels=levels, decimals=0, upper=100)
    made = forecast("flow", quantiles=(1, 2, *range(5, 100, 5), 98, 99))
    start = asked, contest(rules=TIME), entry(question="flow")
    assert counted(oracle.projected(*start, made, resolution("flow", value=33))) == alone(3)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (0, alone(0)),
        (1, spread("1/2", "1/2", *"00000000")),  # one of the two gaps beside it
        ("1.5", alone(1)),
        (4, spread(*"000", "1/5", "1/5", "1/5", "1/5", "1/5", *"00")),  # the gaps beside four equal samples
        (9, alone(9)),
    ],
)
def test_an_answer_among_samples_is_in_a_gap_between_them(answer: Any, expected: list[Fraction]) -> None:
    """Nine samples, 1, 2, 3, 4, 4, 4, 4, 5 and 6, leave ten gaps of the same probability: Hamill (2001)."""
    asked = ensemble("flow", samples=9, upper=100)
    made = forecast("flow", samples=(4, 1, 2, 3, 4, 5, 6, 4, 4))
    start = asked, contest(rules=TIME), entry(question="flow"), made
    assert counted(oracle.projected(*start, resolution("flow", value=answer))) == expected


def test_a_single_sample_says_nothing_of_a_distribution() -> None:
    """A mean has no rows."""
    start = ensemble("flow", samples=1), contest(rules=TIME), entry(question="flow"), forecast("flow", samples=(2,))
    assert not [*oracle.projected(*start, resolution("flow", value=1)).table("pit_counts").rows()]


@pytest.mark.parametrize("levels", [("0.25", "0.5", "0.75"), ("0.5",), DECILES[:-1]])
def test_a_forecast_without_a_level_between_tenths_does_not_count(levels: tuple[str, ...]) -> None:
    """Nothing says in which tenth the answer fell; the participant has no rows."""
    start = quartiles(levels=levels, decimals=0), contest(rules=TIME), entry(question="flow")
    made = forecast("flow", quantiles=tuple(range(len(levels))) if len(levels) < 5 else (1,) * len(levels))
    assert counted(oracle.projected(*start, made, resolution("flow", value=2))) == []


@settings(max_examples=times(50), deadline=None)
@given(
    drawn=st.lists(
        st.tuples(st.lists(st.integers(-9, 9), min_size=9, max_size=9), st.integers(-100, 100)), min_size=1, max_size=30
    )
)
def test_counts_are_differences_of_coverages_of_quantiles(drawn: list[tuple[list[int], int]]) -> None:
    """As in scoringutils: how often each quantile covers the answer, y <= q, less how often the one before does.

    Answers that two quantiles are equal to are left out: a quantile forecast puts probability on them.
    """
    levels = tuple(10**8 * place for place in range(1, 10))
    span = NumericRange(lower="-9", upper="9", levels=levels, decimals=0)
    kept = [(sorted(made), answer) for made, answer in drawn if sum(10 * each == answer for each in made) < 2]
    found = [in_tenths(made, span, str(Decimal(answer).scaleb(-1))) for made, answer in kept]
    covered = [sum(Fraction(answer, 10) <= made[place] for made, answer in kept) for place in range(9)]
    upto = [0, *covered, len(kept)]
    assert [sum(own[each] for own in found) for each in range(10)] == [high - low for low, high in pairwise(upto)]


# --- cdfs


@pytest.mark.parametrize(
    ("value", "cdf", "tenth"),
    [
        ("0", EVEN, 0),  # F = 0
        ("0.4", EVEN, 0),  # F = 0.1, the end of the first tenth
        ("0.4001", EVEN, 1),
        ("2", EVEN, 4),  # F = 0.5
        ("3.2", EVEN, 7),  # F = 0.8
        ("3.3", EVEN, 8),
        ("4", EVEN, 9),
        ("1.5", ("0", "0.5", "0.5", "0.5", "1"), 4),  # F is flat: 0.5 anywhere between 1 and 3
        ("0.5", ("0", "0.9", "1", "1", "1"), 4),  # F = 0.45
    ],
)
def test_a_cdf_says_the_probability_up_to_the_answer(value: str, cdf: tuple[str, ...], tenth: int) -> None:
    """Four bins from 0 to 4, in each of which the cdf is linear."""
    start = numeric(), contest(rules=TIME), entry(question="depth")
    projections = oracle.projected(*start, forecast("depth", cdf=cdf), resolution("depth", value=value))
    assert counted(projections) == alone(tenth)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("-0.5", spread("2/5", "2/5", "1/5", *"0000000")),
        ("-9", spread("2/5", "2/5", "1/5", *"0000000")),
        ("0", alone(2)),  # at the end itself
        ("4", alone(6)),
        ("5", spread(*"0000000", "1/3", "1/3", "1/3")),
        ("1000", spread(*"0000000", "1/3", "1/3", "1/3")),
    ],
)
def test_an_answer_beyond_an_open_end_is_spread_over_what_lies_there(value: str, expected: list[Fraction]) -> None:
    """The cdf is 0.25 at the lower end of the range, and 0.7 at the upper: 25% lie below, 30% above."""
    start = numeric(open_lower=True, open_upper=True), contest(rules=TIME), entry(question="depth")
    cdf = ("0.25", "0.3", "0.5", "0.6", "0.7")
    projections = oracle.projected(*start, forecast("depth", cdf=cdf), resolution("depth", value=value))
    assert counted(projections) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", spread("2/5", "2/5", "1/5", *"0000000")),  # 0 to 0.25
        ("1", spread("0", "0", "1/10", "1/5", "1/5", "1/5", "1/5", "1/10", "0", "0")),  # 0.25 to 0.75
        ("2", alone(7)),  # no probability: F is 0.75
        ("3", spread(*"0000000", "1/5", "2/5", "2/5")),
    ],
)
def test_a_discrete_value_is_spread_over_its_own_probability(value: str, expected: list[Fraction]) -> None:
    """Four values, of which the forecast says 25%, 50%, 0 and 25%."""
    asked = structs.replace(numeric(lower="-0.5", upper="3.5"), kind="discrete")
    start = asked, contest(rules=TIME), entry(question="depth")
    made = forecast("depth", cdf=("0", "0.25", "0.75", "0.75", "1"))
    assert counted(oracle.projected(*start, made, resolution("depth", value=value))) == expected


@settings(max_examples=times(100), deadline=None)
@given(heights=st.lists(st.integers(0, 100), min_size=2, max_size=6), place=st.integers(0, 1_000))
def test_the_tenth_of_a_cdf_is_that_of_an_interpolated_height(heights: list[int], place: int) -> None:
    """Worked out in fractions: the smallest k with F(y) <= (k + 1) / 10."""
    made, bins = sorted(heights), len(heights) - 1
    along = Fraction(place, 1_000) * bins
    low = min(int(along), bins - 1)
    height = made[low] + (made[low + 1] - made[low]) * (along - low)
    span = NumericRange(lower="0", upper="1000", bins=bins)
    found = in_tenths([each * 10**8 for each in made], span, str(place))
    assert found == alone(next(k for k in range(10) if height <= 10 * (k + 1)))


# --- which forecast counts


def test_the_forecast_that_stood_last_counts_or_the_one_at_the_spot() -> None:
    """Ada forecasts at the opening and again at the last hour; the spot is on the 12th."""
    asked = quartiles(levels=DECILES, decimals=0, upper=100)
    tables: dict[str, list[Fraction]] = {}
    for under in (TIME, SPOT):
        made = [
            forecast("flow", quantiles=tuple(range(10, 100, 10)), at=OPENS),
            forecast("flow", quantiles=tuple(range(1, 10)), at=day(19, 23)),
        ]
        start = asked, contest(rules=under), entry(question="flow", spot_at=day(12))
        tables[under.name] = counted(oracle.projected(*start, *made, resolution("flow", value=5)))
    assert tables == {"time": alone(4), "spot": alone(0)}


def test_withdrawn_annulled_and_uncounted_forecasts_are_left_out() -> None:
    """So are forecasts on named outcomes; a question of weight 0 is left out of every board."""
    commands: list[AnyCommand] = [contest(rules=TIME)]
    for name, weight in (("a", 1), ("b", 1), ("c", 0), ("d", 1)):
        commands += [
            quartiles(name, levels=DECILES, decimals=0, upper=100),
            entry(question=name, weight=weight),
            forecast(name, quantiles=tuple(range(10, 100, 10))),
        ]
    commands += [withdrawal("a"), annulment("b"), *(resolution(name, value=5) for name in "acd")]
    assert counted(oracle.projected(*commands)) == alone(0)


@pytest.mark.parametrize("seed", range(times(20)))
def test_counts_of_contests_of_one_rule_set_are_those_of_each_alone(seed: int) -> None:
    """In chunks of any size; each row of ten counts forecasts on numeric questions that are resolved."""
    random = Random(seed)
    rules = [drawn_rules(random), TIME, TIME, SPOT]
    season = Season(random, *rules, uncounted=0.2, ending=0.2)
    facts = oracle.facts_in(season.recorded())
    whole, pieces = (Projections(facts, chunk).table("pit_counts") for chunk in (1 << 20, 1))
    assert whole.digest() == pieces.digest()
    ranged = {each.question for each in facts.questions if each.range}
    forecasts: dict[tuple[str, str], set[str]] = {}
    for row in Projections(facts).table("scores").rows():
        if row["question"] in ranged:
            forecasts.setdefault((row["contest"], row["participant"]), set()).add(row["question"])
    totals: dict[tuple[str, str], Fraction] = {}
    for row in whole.rows():
        key = row["contest"], row["participant"]
        totals[key] = totals.get(key, Fraction(0)) + Fraction(row["n"])
    assert all(0 < round(total) <= len(forecasts[key]) for key, total in totals.items())
    assert all(abs(total - round(total)) < Fraction(1, 10**8) for total in totals.values())  # each row is rounded
