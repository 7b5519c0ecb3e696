"""Sampling of every instant, the end of each day, or one instant; by hand, and against counting dates."""

from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forecast_ledger.ledger.model.commands import AnyCommand, Spot
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.scores.sampling import SAMPLINGS, Ruler, ruler
from tests.support import oracle
from tests.support.given import (
    CLOSES,
    DAY,
    HOUR,
    OPENS,
    closing,
    contest,
    day,
    entry,
    forecast,
    micros,
    opened,
    resolution,
    withdrawal,
)

MINUTE = HOUR // 60
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Row = dict[str, Any]


def column(*values: int) -> Int64Array:
    """Return values as a column."""
    return np.array(values, np.int64)


def day_of(opens: int, until: int, day_minutes: int = 0, edges: Any = "both") -> Ruler:
    """Return a ruler over one question that is divided into days."""
    rules = RuleSet(name="x", sampling="day", day_minutes=day_minutes, day_edges=edges)
    return ruler(column(opens), column(until), column(until), rules)


def units(name: str, ruler: Ruler, *at: int) -> list[int]:
    """Return the units of these instants on the question."""
    numbers: list[int] = SAMPLINGS[name].units(ruler, column(*at), np.zeros(len(at), np.int64)).tolist()
    return numbers


def instants(name: str, ruler: Ruler, *unit: int) -> list[int]:
    """Return the instants at which these units begin."""
    begins: list[int] = SAMPLINGS[name].instants(ruler, column(*unit), np.zeros(len(unit), np.int64)).tolist()
    return begins


def dates(minutes: int, first: int, end: int) -> list[date]:
    """Return the dates that [first, end) touches at this offset from UTC, looked up every quarter of an hour."""
    looks = [*range(first, end, 15 * MINUTE), end - 1]
    moments = [EPOCH + timedelta(microseconds=at) + timedelta(minutes=minutes) for at in looks]
    return sorted({moment.date() for moment in moments})


@pytest.mark.parametrize(("late", "days"), [(-1, 2), (0, 2), (1, 3)])
@pytest.mark.parametrize("east", [0, 1, -60, 1_440])
def test_a_day_is_touched_by_its_first_instant(late: int, days: int, east: int) -> None:
    """The period runs from a midnight to the second one after it, a µs shorter or longer, at any offset."""
    midnight = micros(10) - east * MINUTE
    assert units("day", day_of(midnight, midnight + 2 * DAY + late, east), midnight + 2 * DAY + late) == [days]


QUARTERS = st.integers(0, 5 * 96)  # quarters of an hour in five days


@given(
    QUARTERS, QUARTERS, st.sampled_from([0, 60, -60, 330, -570, 840, -720, 1_440, -1_440]) | st.integers(-1_440, 1_440)
)
@example(0, 96, 0)
@example(0, 97, 0)
@example(95, 96, 0)
@example(40, 41, 0)
@example(0, 284, 60)
def test_scored_time_has_as_many_days_as_it_touches_dates(start: int, stop: int, minutes: int) -> None:
    """It may open or end in the middle of a day or at midnight, and may lie within one day."""
    first, end = sorted((start, stop + (start == stop)))
    opens, until = micros(10) + first * 15 * MINUTE, micros(10) + end * 15 * MINUTE
    period = day_of(opens, until, minutes)
    assert units("day", period, opens, until) == [0, len(dates(minutes, opens, until))]


@given(QUARTERS, st.lists(QUARTERS, min_size=3, max_size=3, unique=True), st.integers(-1_440, 1_440))
def test_each_day_counts_the_forecast_that_stands_just_before_it_ends(offset: int, at: list[int], minutes: int) -> None:
    """A forecast on [start, end) has the dates whose last instant, or whose last scored instant, lies in it."""
    start, end, until = (micros(10) + (offset + quarter + 1) * 15 * MINUTE for quarter in sorted(at))
    opens = micros(10) + offset * 15 * MINUTE
    period = day_of(opens, until, minutes)
    touched = dates(minutes, opens, until)
    lasts = [*(last_of(day_touched, minutes) for day_touched in touched[:-1]), until - 1]
    for first, end_of in ((start, end), (opens, start), (end, until)):
        low, high = units("day", period, first, end_of)
        assert list(range(low, high)) == [unit for unit, last in enumerate(lasts) if first <= last < end_of]


def last_of(touched: date, minutes: int) -> int:
    """Return the last µs of a date at this offset from UTC."""
    midnight = datetime.combine(touched, time(), UTC) + timedelta(days=1, minutes=-minutes)
    return (midnight - EPOCH) // timedelta(microseconds=1) - 1


@pytest.mark.parametrize(
    ("start", "end", "days"),
    [
        (micros(10), micros(11), [0]),
        (micros(10), micros(11) - 1, []),
        (micros(11) - 1, micros(11), [0]),
        (micros(10, 12), micros(12, 12), [0, 1]),
        (micros(12, 12), micros(14, 6), [2, 3, 4]),
        (micros(14), micros(14, 6), [4]),
        (micros(14), micros(14, 6) - 1, []),
    ],
)
def test_a_day_counts_for_the_forecast_that_stands_as_it_ends(start: int, end: int, days: list[int]) -> None:
    """From the 10th until the 14th at six: the last day ends then, the others just before midnight."""
    low, high = units("day", day_of(micros(10), micros(14, 6)), start, end)
    assert list(range(low, high)) == days


@pytest.mark.parametrize(
    ("edges", "start", "end", "begins"),
    [
        ("both", 0, 5, [micros(10, 6), micros(11), micros(12), micros(13), micros(14), micros(14, 6)]),
        ("opening", 0, 4, [micros(10, 6), micros(11), micros(12), micros(13), micros(14)]),
        ("none", 0, 3, [micros(11), micros(12), micros(13), micros(14)]),
    ],
)
def test_days_cut_short_count_as_the_rules_say(edges: str, start: int, end: int, begins: list[int]) -> None:
    """From the 10th at six until the 14th at six: both edges count, the opening edge, or neither."""
    period = day_of(micros(10, 6), micros(14, 6), edges=edges)
    assert units("day", period, micros(10, 6), micros(14, 6)) == [start, end]
    assert instants("day", period, *range(end + 1)) == begins
    whole = day_of(micros(10), micros(14), edges=edges)
    assert units("day", whole, micros(10), micros(14)) == [0, 4]
    within = day_of(micros(10, 6), micros(10, 8), edges=edges)
    assert units("day", within, micros(10, 6), micros(10, 8)) == [0, edges == "both"]


def test_a_forecast_made_after_the_last_full_day_earns_nothing() -> None:
    """Open from the 10th at midnight, known on the 12th at six; the first forecast comes an hour before that.

    Source: Cultivate Labs, Forecasts, support article "Why didn't I receive a score in a question I forecasted?".
    """
    late = forecast(participant="late", at=day(12, 5))
    commands: list[AnyCommand] = [opened(), contest(rules="brier-daily"), entry(), forecast(at=day(11, 12)), late]
    rows = oracle.projected(*commands, resolution(known_at=day(12, 6))).table("scores").rows()
    assert [(row["participant"], row["coverage"], row["attainable"]) for row in rows] == [
        ("ada", "0.100000000", "0.200000000")
    ]


def test_a_question_without_a_full_day_is_not_scored() -> None:
    """Open for two hours of one day, under rules of full days only."""
    brief = opened(opens_at=day(10, 6), closes_at=day(10, 8))
    commands: list[AnyCommand] = [brief, contest(rules="brier-daily"), entry(), forecast(at=day(10, 6)), resolution()]
    projections = oracle.projected(*commands)
    assert (list(projections.table("scores").rows()), list(projections.table("leaderboard").rows())) == ([], [])


def test_days_may_end_at_another_hour_than_in_utc() -> None:
    """East of UTC a day ends earlier; there is no summer time: the same offset all year."""
    summer = 120 * DAY  # from March into July
    for shift in (0, summer):
        period = day_of(micros(10) + shift, micros(12) + shift, 60)
        assert units("day", period, *(at + shift for at in (micros(10), micros(10, 23) - 1, micros(10, 23)))) == [
            0,
            0,
            1,
        ]
        assert units("day", period, micros(12) + shift) == [3]  # 00:00 to 01:00 of the 12th, an hour east, is touched
        assert instants("day", period, 0, 1, 2, 3) == [
            at + shift for at in (micros(10), micros(10, 23), micros(11, 23), micros(12))
        ]


def test_the_instants_of_days_are_midnights_between_opening_and_end() -> None:
    """Clipped to scored time at both ends."""
    period = day_of(micros(10, 12), micros(12, 18))
    assert instants("day", period, 0, 1, 2, 3) == [micros(10, 12), micros(11), micros(12), micros(12, 18)]


@given(st.integers(-(10**16), 10**16), st.integers(1, 10**15), st.data())
def test_time_is_counted_in_microseconds_from_the_opening(opens: int, lasts: int, data: st.DataObject) -> None:
    """Units are turned back into the same instants."""
    period = day_of(opens, opens + lasts)
    at = data.draw(st.lists(st.integers(opens, opens + lasts), min_size=1))
    assert units("time", period, *at) == [instant - opens for instant in at]
    assert instants("time", period, *units("time", period, *at)) == at


def spot(opens: int, until: int, at: int) -> Ruler:
    """Return a ruler over one question on which one instant counts."""
    return ruler(column(opens), column(until), column(at), RuleSet(name="x", sampling="spot"))


@pytest.mark.parametrize(
    ("start", "end", "counts"),
    [(10, 50, True), (30, 50, True), (31, 50, False), (10, 30, False), (10, 31, True), (10, 20, False)],
)
def test_a_forecast_counts_that_was_made_by_the_spot_and_stands_beyond_it(start: int, end: int, counts: bool) -> None:
    """Made at that instant it counts; replaced or withdrawn then it does not. The spot is 30, the period 10 to 50."""
    low, high = units("spot", spot(10, 50, 30), start, end)
    assert high - low == counts
    assert instants("spot", spot(10, 50, 30), 0, 1) == [30, 31]


@pytest.mark.parametrize("at", [50, 51, 80])
@pytest.mark.parametrize(("start", "end", "counts"), [(10, 50, True), (49, 50, True), (10, 49, False), (10, 20, False)])
def test_if_scored_time_ends_before_the_spot_the_last_standing_forecast_counts(
    at: int, start: int, end: int, counts: bool
) -> None:
    """The period is 10 to 50, and the spot at its end or later."""
    low, high = units("spot", spot(10, 50, at), start, end)
    assert high - low == counts
    assert instants("spot", spot(10, 50, at), 0, 1) == [49, 50]


@given(st.integers(0, 20), st.integers(1, 20), st.integers(0, 60), st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_only_one_of_consecutive_forecasts_counts_at_the_spot(opens: int, lasts: int, at: int, cuts: list[int]) -> None:
    """It is the last one made at or before the spot, or before the end of scored time."""
    until = opens + lasts
    edges = sorted({opens, until, *(cut for cut in cuts if opens < cut < until)})
    period = spot(opens, until, max(at, opens))
    spans = [units("spot", period, start, end) for start, end in pairwise(edges)]
    last = max(edge for edge in edges[:-1] if edge <= max(at, opens))
    assert [high - low for low, high in spans] == [int(edge == last) for edge in edges[:-1]]


# --- whole logs


def scores(*commands: AnyCommand, rules: RuleSet, question: AnyCommand | None = None, **added: Any) -> list[Row]:
    """Return the scores in a contest over one question, from the 10th to the 20th unless another is given."""
    start: list[AnyCommand] = [question or opened(), contest(rules=rules), entry(**added)]
    return list(oracle.projected(*start, *commands).table("scores").rows())


def brier(**fields: Any) -> RuleSet:
    """Return rules with the halved Brier score, averaged over the covered time."""
    return RuleSet(name="brier", kernel="brier", **({"period": "covered", "total": "mean"} | fields))


def only(rows: list[Row]) -> tuple[str, str]:
    """Return score and coverage of the only row."""
    [row] = rows
    return row["score"], row["coverage"]


STAIRS = [
    forecast(probability="0.6", at=OPENS),
    forecast(probability="0.75", at=day(10, 18)),
    forecast(probability="0.9", at=day(13, 6)),
]


def test_seconds_and_days_are_two_readings_of_one_forecaster() -> None:
    """By hand, for .6 for 18 h, .75 for 60 h and .9 for 162 h: 8.25 / 240 = 0.034375 and 0.2575 / 10 = 0.02575."""
    assert only(scores(*STAIRS, resolution(), rules=brier())) == ("0.034375000", "1.000000000")
    assert only(scores(*STAIRS, resolution(), rules=brier(sampling="day"))) == ("0.025750000", "1.000000000")


@pytest.mark.parametrize(
    ("until", "score", "coverage"),
    [
        (day(12), "0.0625", "0.2"),
        (day(12, 12), "0.0625", "0.3"),
        (day(13, 7), "0.0494", "0.4"),
        (day(10, 12), "0.16", "0.1"),
        (day(10, 19), "0.0625", "0.1"),
    ],
)
def test_days_after_scored_time_do_not_count_and_its_last_counts_with_what_stood_then(
    until: str, score: str, coverage: str
) -> None:
    """At midnight of the 12th two days are over; at noon a third counts; by hand, e.g. (3 · 0.0625 + 0.01) / 4."""
    actual = only(scores(*STAIRS, closing(at=until), resolution(), rules=brier(sampling="day")))
    expected = {"0.0494": Fraction(3 * 625 + 100, 40_000)}.get(score, Fraction(score))
    assert (Fraction(actual[0]), Fraction(actual[1])) == (expected, Fraction(coverage))


def test_a_forecast_replaced_within_its_day_counts_nowhere() -> None:
    """It has no coverage either."""
    commands: list[AnyCommand] = [forecast(probability="0.1", at=day(12, 1)), withdrawal(at=day(12, 23)), resolution()]
    assert scores(*commands, rules=brier(sampling="day")) == []
    assert only(scores(*commands, rules=brier())) == ("0.810000000", str(oracle.nine(Fraction(22, 240))))


def test_a_day_may_be_any_zones() -> None:
    """A withdrawal at 23:30 UTC costs that day in UTC, but not an hour east, where the period touches eleven dates."""
    commands: list[AnyCommand] = [
        forecast(probability="0.5", at=OPENS),
        withdrawal(at="2026-03-12T23:30:00Z"),
        resolution(),
    ]
    actual = {east: only(scores(*commands, rules=brier(sampling="day", day_minutes=east))) for east in (0, 60, -60)}
    of_eleven = str(oracle.nine(Fraction(3, 11)))  # an hour west the 9th is touched, and covered
    assert {east: coverage for east, (_, coverage) in actual.items()} == {
        0: "0.200000000",
        60: of_eleven,
        -60: of_eleven,
    }


SPOT = RuleSet(name="spot", kernel="brier", sampling="spot", period="covered", total="mean")


@pytest.mark.parametrize(
    ("question", "added", "spot_at"),
    [
        (opened(), {}, CLOSES),
        (opened(reveals_at=day(14)), {}, day(14)),
        (opened(reveals_at=day(14)), {"spot_at": day(13)}, day(13)),
        (opened(), {"spot_at": OPENS}, OPENS),
    ],
    ids=["close", "reveal", "own", "opening"],
)
def test_the_spot_is_the_entrys_own_else_the_reveal_else_the_close(
    question: AnyCommand, added: dict[str, str], spot_at: str
) -> None:
    """There is one part of one unit: the instant of the spot, or the last instant before the close."""
    start: list[AnyCommand] = [question, contest(rules=SPOT), entry(**added)]
    projections = oracle.projected(*start, forecast(at=day(9)), resolution())
    [part] = projections.table("score_parts").rows()
    [row] = projections.table("scores").rows()
    first = f"{day(19)[:11]}23:59:59.999999Z" if spot_at == CLOSES else spot_at
    assert (part["from_at"], part["weight"], row["coverage"]) == (first, 1, "1.000000000")


@pytest.mark.parametrize(
    ("at", "score"),
    [(day(14), "0.010000000"), ("2026-03-14T00:00:00.000001Z", "0.250000000"), (day(13), "0.010000000")],
)
def test_a_forecast_at_the_spot_counts_and_a_later_one_does_not(at: str, score: str) -> None:
    """The spot is midnight of the 14th."""
    commands: list[AnyCommand] = [
        forecast(probability="0.5", at=OPENS),
        forecast(probability="0.9", at=at),
        resolution(),
    ]
    assert only(scores(*commands, rules=SPOT, spot_at=day(14)))[0] == score
    gone: list[AnyCommand] = [forecast(probability="0.5", at=OPENS), withdrawal(at=at), resolution()]
    assert len(scores(*gone, rules=SPOT, spot_at=day(14))) == (score == "0.250000000")


def test_an_early_end_moves_the_spot_to_what_stood_as_scored_time_ended() -> None:
    """The question is resolved on the 12th; the spot is the 14th."""
    commands: list[AnyCommand] = [
        forecast(probability="0.5", at=OPENS),
        forecast(probability="0.9", at=day(13)),
        resolution(known_at=day(12)),
    ]
    assert only(scores(*commands, rules=SPOT, spot_at=day(14))) == ("0.250000000", "1.000000000")


def spots(**weights: int) -> tuple[Spot, ...]:
    """Instants at the beginning of days of March, written d12, each with its weight."""
    return tuple(Spot(at=day(int(name[1:])), weight=weight) for name, weight in weights.items())


def test_the_score_at_several_instants_is_their_weighted_mean_and_a_missing_one_counts_0() -> None:
    """By hand: 100 (log2 p + 1) is 0 for 0.5 and 84.799690655 for 0.9; (1 · 0 + 3 · 84.8 + 4 · 0) / 8, and 4 / 8."""
    start: list[AnyCommand] = [opened(), contest(rules="spot-baseline"), entry(spots=spots(d12=1, d14=3, d17=4))]
    said: list[AnyCommand] = [
        forecast(probability="0.5", at=OPENS),
        forecast(probability="0.9", at=day(13)),
        withdrawal(at=day(16)),
    ]
    tables = oracle.projected(*start, *said, resolution())
    [row] = tables.table("scores").rows()
    assert (row["score"], row["coverage"], row["attainable"]) == ("31.799883996", "0.500000000", "1.000000000")
    parts = list(tables.table("score_parts").rows())
    assert [(part["from_at"], part["to_at"], part["weight"]) for part in parts] == [
        (day(12), f"{day(12)[:-1]}.000001Z", 1),
        (day(14), f"{day(14)[:-1]}.000001Z", 3),
    ]
    assert sum(int(part["contribution"]) for part in parts) == int(row["numerator"])


def test_an_unchanged_forecast_has_a_part_for_each_instant() -> None:
    """Two that are not changed, compared with each other: 100 ln(0.8 / 0.2) at each instant, +138.629436112."""
    start: list[AnyCommand] = [opened(), contest(rules="spot-peer"), entry(spots=spots(d12=1, d14=2))]
    said: list[AnyCommand] = [
        forecast(participant=who, probability=p, at=OPENS) for who, p in (("ada", "0.8"), ("bob", "0.2"))
    ]
    tables = oracle.projected(*start, *said, resolution())
    scored = [(row["participant"], row["score"]) for row in tables.table("scores").rows()]
    assert scored == [("ada", "138.629436112"), ("bob", "-138.629436112")]
    parts = list(tables.table("score_parts").rows())
    assert [(part["participant"], part["weight"]) for part in parts] == [("ada", 1), ("ada", 2), ("bob", 1), ("bob", 2)]


def test_instants_at_or_after_an_early_end_are_one_part_with_all_their_weight() -> None:
    """The answer is known on the 13th: the 14th and the 17th look at what stood then; the 12th at what stood before."""
    start: list[AnyCommand] = [opened(), contest(rules=SPOT), entry(spots=spots(d12=1, d14=2, d17=4))]
    said: list[AnyCommand] = [
        forecast(probability="0.5", at=OPENS),
        forecast(probability="0.9", at=f"{day(12)[:-1]}.5Z"),
    ]
    tables = oracle.projected(*start, *said, resolution(known_at=day(13)))
    [row] = tables.table("scores").rows()
    assert row["score"] == str(oracle.nine((Fraction("0.25") + 6 * Fraction("0.01")) / 7))
    assert [part["weight"] for part in tables.table("score_parts").rows()] == [1, 6]


def test_without_weights_several_instants_count_equally_and_one_alone_as_spot_at_does() -> None:
    """A question with one instant beside one with three is scored as it is alone."""
    said: list[AnyCommand] = [
        forecast(probability="0.5", at=OPENS),
        forecast(probability="0.9", at=day(13)),
        resolution(),
    ]
    one = list(scores(*said, rules=SPOT, spots=(Spot(at=day(14)),)))
    assert one == list(scores(*said, rules=SPOT, spot_at=day(14)))
    start: list[AnyCommand] = [opened(), opened("wind"), contest(rules=SPOT), entry(spot_at=day(14))]
    wind: list[AnyCommand] = [forecast("wind", probability="0.2", at=day(13)), resolution("wind")]
    three = tuple(Spot(at=day(number)) for number in (12, 14, 16))
    rows = oracle.projected(*start, entry(question="wind", spots=three), *said, *wind).table("scores").rows()
    found = {row["question"]: (row["score"], row["coverage"]) for row in rows}
    assert found == {"rain": only(one), "wind": ("0.640000000", str(oracle.nine(Fraction(2, 3))))}


def test_a_hidden_weight_divides_several_instants_into_those_before_the_reveal_and_the_rest() -> None:
    """One of two before the reveal and none of one after it, with the weight 1/4: 1/8."""
    start: list[AnyCommand] = [opened(reveals_at=day(14)), contest(rules="spot-baseline")]
    added = entry(spots=spots(d11=1, d13=1, d14=1), hidden_coverage_weight="0.25")
    said: list[AnyCommand] = [forecast(at=OPENS), withdrawal(at=day(12)), resolution()]
    assert only(list(oracle.projected(*start, added, *said).table("scores").rows()))[1] == "0.125000000"


def test_an_instant_at_a_close_that_is_the_reveal_is_hidden_as_the_forecast_is_that_it_looks_at() -> None:
    """It looks at what stands just before the close: all is hidden then, so the weight says nothing, and 1 of 3 is 1/3.

    With the reveal an instant earlier, the weight 1 counts the other instant alone: 0.
    """
    added = entry(spots=spots(d12=2, d20=1), hidden_coverage_weight=1)
    said: list[AnyCommand] = [forecast(at=day(13)), resolution()]
    found = {}
    for reveals_at in (CLOSES, "2026-03-19T23:59:59.999999Z"):
        start: list[AnyCommand] = [opened(reveals_at=reveals_at, closes_at=CLOSES), contest(rules="spot-baseline")]
        found[reveals_at] = only(list(oracle.projected(*start, added, *said).table("scores").rows()))[1]
    assert [*found.values()] == ["0.333333333", "0.000000000"]


def test_brier_aggregates_look_at_the_last_of_several_instants() -> None:
    """A question counts once: with 0.9 of the 14th, not with 0.5 of the 12th."""
    start: list[AnyCommand] = [opened(), contest(rules=SPOT), entry(spots=spots(d12=5, d14=1))]
    said: list[AnyCommand] = [
        forecast(probability="0.5", at=OPENS),
        forecast(probability="0.9", at=day(13)),
        resolution(),
    ]
    rows = oracle.projected(*start, *said).table("brier").only("participant", "ada").rows()
    assert [(row["n"], row["brier"]) for row in rows] == [(1, "0.010000000")]


@pytest.mark.parametrize("sampling", ["time", "day", "spot"])
def test_an_answer_known_at_the_opening_leaves_nothing_to_attain(sampling: str) -> None:
    """That question has no rows; the other one can be covered whole: half of the two questions."""
    rules = brier(sampling=sampling)
    start: list[AnyCommand] = [opened(), opened("wind", opens_at=day(10, 6)), contest(rules=rules)]
    commands: list[AnyCommand] = [entry(), entry(question="wind"), forecast(at=day(9)), forecast("wind", at=day(9))]
    projections = oracle.projected(*start, *commands, resolution(), resolution("wind", known_at=day(10, 6)))
    [row] = projections.table("leaderboard").rows()
    assert (row["coverage"], row["attainable"], row["completion"]) == ("0.500000000", "0.500000000", "1/2")
