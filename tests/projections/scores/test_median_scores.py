"""The median and the mean of the members' scores, compared with definitions in fractions and worked examples."""

from fractions import Fraction
from itertools import pairwise
from statistics import median

import numpy as np
from hypothesis import given, settings
from msgspec import structs

from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.facts.columns import Intervals
from forecast_ledger.projections.scores.reference_kinds import HALF_BITS, steps
from forecast_ledger.projections.scores.reference_terms import against_median, median_scores
from tests.projections.scores.test_reference_kinds import Stand, column, members, stands
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import contest, enrolment, entry, forecast, opened, resolution

ACCURACY = RuleSet(name="accuracy", kernel="brier_sum", reference="median_score", sampling="day", total="mean")


def earned(rows: list[Stand]) -> list[int]:
    """Return what each forecast earns, in halves."""
    start, end, own = (column([row[at] for row in rows]) for at in range(3))
    counts = np.flatnonzero(members(rows))
    nothing: Int64Array = np.zeros(len(counts), np.int64)
    timeline = steps(start, end, members(rows))
    middle = median_scores(Intervals(nothing, nothing, nothing, start[counts], end[counts]), own[counts])
    return against_median(timeline, middle).earned(own, timeline.begins, timeline.ends).integers()


@settings(max_examples=times(300), deadline=None)
@given(stands())
def test_a_forecast_earns_its_lead_over_the_median_of_the_members_that_stand(rows: list[Stand]) -> None:
    """Its own score is one of them if it is a member's; while no member stands, it earns nothing."""
    for row, fast in zip(rows, earned(rows), strict=True):
        total = Fraction(0)
        for start, end in pairwise(sorted({at for each in rows for at in each[:2]})):
            standing = [each.own for each in rows if each.member and each.start <= start < each.end]
            if standing and row.start <= start < row.end:
                total += (row.own - Fraction(median(map(Fraction, standing)))) * (end - start)
        assert Fraction(fast, 1 << HALF_BITS) == total


def test_two_forecasters_have_opposite_accuracy_scores() -> None:
    """A question of seven days: the medians of the days are .98, .65, .52, .52 and three times .45.

    One has (2 x .98 + 5 x .72 - 4.02) / 7 = 0.22, the other, from the second day on,
    (3 x .32 + 3 x .18 - 3.04) / 7 = -0.22. The other reading of "the average median", over all seven days, gives
    (0.25 - 4.02 / 7) x 6 / 7 = -0.278. Source: predictionscorer 0.3.0, README, "Comparing scores over time", for the
    forecasts; the arithmetic is by hand.
    """
    made = (
        ("george", "01T16:05", "0.3"),
        ("kramer", "02T11:37", "0.6"),
        ("george", "03T09:09", "0.5"),
        ("george", "03T21:42", "0.4"),
        ("kramer", "05T11:45", "0.7"),
    )
    asked = opened(at="2016-11-01T00:00:00Z", opens_at="2016-11-01T00:00:00Z", closes_at="2016-11-08T00:00:00Z")
    tables = oracle.projected(
        asked,
        contest(rules=ACCURACY, at="2016-11-01T00:00:00Z"),
        entry(at="2016-11-01T00:00:00Z"),
        *(forecast(participant=who, at=f"2016-11-{at}:00Z", probability=chance) for who, at, chance in made),
        resolution(known_at="2016-11-08T12:00:00Z", at="2016-11-08T12:00:00Z"),
    )
    rows = {row["participant"]: row for row in tables.table("scores").rows()}
    assert {who: row["score"] for who, row in rows.items()} == {"george": "0.220000000", "kramer": "-0.220000000"}
    assert rows["kramer"]["coverage"] == "0.857142857"


def test_who_is_not_a_member_is_compared_with_members_and_is_not_in_the_median() -> None:
    """Brier scores of .01 and .25 have the median .13; the bot's .81 is .68 above it."""
    rules = RuleSet(
        name="x", kernel="brier", reference="median_score", period="covered", total="mean", bots="scored_only"
    )

    tables = oracle.projected(
        opened(),
        contest(rules=rules),
        entry(),
        enrolment(participant="bot", bot=True, entrant="ada"),
        forecast(participant="ada", probability="0.9"),
        forecast(participant="bob", probability="0.5"),
        forecast(participant="bot", probability="0.1"),
        resolution(),
    )
    found = {row["participant"]: row["score"] for row in tables.table("scores").rows()}
    assert found == {"ada": "-0.120000000", "bob": "0.120000000", "bot": "0.680000000"}


def test_scores_against_the_mean_add_up_to_nothing_and_are_smaller_than_against_peers() -> None:
    """Brier scores of .01, .09 and .25 have the mean .35 / 3; against the others' means they are -.16, -.04 and .2.

    The bot's .81 is compared with the same mean. On the other question ada stands alone, and is her own mean.
    """
    rules = RuleSet(
        name="x", kernel="brier", reference="mean_score", period="covered", total="mean", bots="scored_only"
    )
    tables = oracle.projected(
        opened(),
        opened("alone"),
        contest(rules=rules),
        contest("peers", rules=structs.replace(rules, reference="peers")),
        *(entry(name, question=question) for name in ("cup", "peers") for question in ("rain", "alone")),
        *(enrolment(name, participant="bot", bot=True, entrant="ada") for name in ("cup", "peers")),
        *(forecast(participant=who, probability=at) for who, at in (("ada", "0.9"), ("cy", "0.7"), ("bob", "0.5"))),
        forecast(participant="bot", probability="0.1"),
        forecast("alone", participant="ada", probability="0.9"),
        resolution(),
        resolution("alone"),
    )
    found = {
        (row["contest"], row["question"], row["participant"]): row["score"] for row in tables.table("scores").rows()
    }
    assert found["cup", "alone", "ada"] == "0.000000000"
    against = {who: found["cup", "rain", who] for who in ("ada", "cy", "bob", "bot")}
    assert against == {"ada": "-0.106666667", "cy": "-0.026666667", "bob": "0.133333333", "bot": "0.693333333"}
    assert [found["peers", "rain", who] for who in ("ada", "cy", "bob")] == [
        "-0.160000000", "-0.040000000", "0.200000000"
    ]  # fmt: skip
