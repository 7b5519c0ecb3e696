"""The median of the other members, compared with its definition in fractions, and by hand."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from random import Random
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand, OpenQuestion
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.estimates import log2_many
from forecast_ledger.projections.scores.consensus import LeaveOneOut, changes, leave_one_out, neighbours
from forecast_ledger.projections.scores.reference_kinds import Steps, latest, steps
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import (
    OPENS,
    contest,
    day,
    enrolment,
    entry,
    exclusion,
    forecast,
    forecasts,
    numeric,
    opened,
    resolution,
    withdrawal,
)

CDF = 10**10
PICO = 10**12
APART = 10**14  # µs from one question to the next

Row = dict[str, Any]


class Stand(NamedTuple):
    """A member's probability that stands on [start, end) of a question."""

    start: int
    end: int
    chance: int
    question: int = 0


def column(values: Sequence[int]) -> Int64Array:
    """Return values as a column."""
    return np.array(values, np.int64)


def built(rows: Sequence[Stand]) -> tuple[Steps, LeaveOneOut]:
    """Return the steps of these members and their reference, with logarithms base 2."""
    start, end = (column([row[i] + row.question * APART for row in rows]) for i in range(2))
    group, chance = column([row.question for row in rows]), column([row.chance for row in rows])
    timeline = steps(start, end, np.ones(len(rows), bool), changes(start, end))
    near = neighbours(start, end, group, chance)
    owner = timeline.instant // APART
    return timeline, leave_one_out(
        timeline.stand, timeline.lasts, owner, near.at(latest(near.instant, timeline)), log2_many
    )


def slow_steps(rows: Sequence[Stand], row: Stand) -> Iterator[tuple[int, int, list[int]]]:
    """Yield begin, end and the standing probabilities of the others, for the steps in which a row stands."""
    on = [other for other in rows if other.question == row.question]
    for start, end in pairwise(sorted({at for other in on for at in other[:2]})):
        if row.start <= start < row.end:
            yield start, end, [other.chance for other in on if other is not row and other.start <= start < other.end]


def log2_score(chance: Fraction) -> int:
    """Return the logarithm base 2 of a probability, in 1e-12."""
    return oracle.picos("log2", chance / CDF)


CHANCES = st.sampled_from([1, 2, 5 * 10**9, CDF, 15 * 10**9]) | st.integers(1, CDF)


@st.composite
def stands(draw: st.DrawFn) -> list[Stand]:
    """Draw up to twelve intervals on few instants of two questions; probabilities often equal the pivot."""
    last = draw(st.sampled_from([3, 9, 10**13]))
    chances = st.sampled_from(draw(st.lists(CHANCES, min_size=1, max_size=4)))
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        start, end = sorted(draw(st.lists(st.integers(0, last), min_size=2, max_size=2, unique=True)))
        rows.append(Stand(start, end, draw(chances), draw(st.sampled_from([0, 0, 1]))))
    return rows


@settings(max_examples=times(150), deadline=None)
@given(stands())
def test_a_member_earns_its_lead_over_the_median_of_the_other_members(rows: list[Stand]) -> None:
    """It is exact, and nothing while there is no other member; every step alone agrees, too."""
    timeline, apart = built(rows)
    chance = column([row.chance for row in rows])
    own = column([log2_score(Fraction(row.chance)) for row in rows])
    fast = apart.earned(own, chance, timeline.begins, timeline.ends).integers()
    for i, row in enumerate(rows):
        earned = 0
        for start, end, beside in slow_steps(rows, row):
            step = column([int(np.searchsorted(timeline.instant, start + row.question * APART))])
            reference, in_step = apart.reference(chance[[i]], step), apart.earned_in(own[[i]], chance[[i]], step)
            against = median(map(Fraction, beside)) if beside else None
            assert reference.tolist() == [-1 if against is None else 2 * against]
            lead = 0 if against is None else (log2_score(Fraction(row.chance)) - log2_score(against)) * (end - start)
            assert in_step.integers() == [lead]
            earned += lead
        assert fast[i] == earned


@pytest.mark.parametrize("seed", range(3))
def test_a_thousand_members_are_each_compared_with_all_the_others(seed: int) -> None:
    """They have 300 probabilities on three questions, many near the middle."""
    random = Random(seed)
    rows = []
    for _ in range(1_000):
        start = random.randrange(400)
        chance = random.choice([random.randint(1, 300), random.randint(140, 160)]) * 33_333_333
        rows.append(Stand(start, start + random.randint(1, 60), chance, random.randrange(3)))
    timeline, apart = built(rows)
    own = column([log2_score(Fraction(row.chance)) for row in rows])
    fast = apart.earned(own, column([row.chance for row in rows]), timeline.begins, timeline.ends).integers()
    for i in random.sample(range(1_000), 60):
        steps_of_row = [(end - start, beside) for start, end, beside in slow_steps(rows, rows[i]) if beside]
        assert fast[i] == sum(
            (int(own[i]) - log2_score(median(map(Fraction, beside)))) * lasts for lasts, beside in steps_of_row
        )


# --- whole logs

RULES = RuleSet(name="own", kernel="log2", cdf_kernel="log2", reference="consensus", consensus_of="others")
OTHERS = structs.replace(PRESETS["relative-faq"], name="others", consensus_of="others")


def table(name: str, *commands: AnyCommand, rules: RuleSet = RULES, start: AnyCommand | None = None) -> list[Row]:
    """Return the rows of a contest over one question, binary unless another is given."""
    question = start or opened()
    assert isinstance(question, OpenQuestion)
    before: list[AnyCommand] = [question, contest(rules=rules), entry(question=question.question)]
    return list(oracle.projected(*before, *commands).table(name).rows())


def published(*commands: AnyCommand, rules: RuleSet = RULES, start: AnyCommand | None = None) -> dict[str, str]:
    """Return each participant's score."""
    return {row["participant"]: row["score"] for row in table("scores", *commands, rules=rules, start=start)}


def log2(chance: str) -> str:
    """Return the logarithm of a probability as published, with nine decimals."""
    return f"{oracle.nine(Fraction(oracle.picos('log2', Fraction(chance)), PICO)):.9f}"


def test_the_median_of_three_others_is_one_of_their_forecasts() -> None:
    """0.125 and 0.25 against 0.5 are -2 and -1; 0.5 and 1 against 0.25 are 1 and 2.

    Source: Metaculus, Scores FAQ, "What is the Relative score?": the median of all other predictions.
    """
    rows = published(*forecasts(ada="0.125", bob="0.25", cyd="0.5", dan="1"), resolution())
    assert rows == {"ada": "-2.000000000", "bob": "-1.000000000", "cyd": "1.000000000", "dan": "2.000000000"}


def test_the_median_of_two_others_is_their_mean() -> None:
    """0.125 is compared with (0.375 + 0.625) / 2, 0.375 with the same, 0.625 with 0.25."""
    rows = published(*forecasts(ada="0.125", bob="0.375", cyd="0.625"), resolution())
    assert rows == {"ada": "-2.000000000", "bob": "0.000000000", "cyd": log2("2.5")}


def test_two_members_are_compared_with_each_other_and_one_with_nobody() -> None:
    """0.5 for all ten days and 0.25 for five of them: 0.5 and -0.5; coverage accrues also without another member."""
    late = forecast(participant="bob", probability="0.25", at=day(15))
    actual = table("scores", *forecasts(ada="0.5"), late, resolution())
    rows = [(row["participant"], row["score"], row["coverage"]) for row in actual]
    assert rows == [("ada", "0.500000000", "1.000000000"), ("bob", "-0.500000000", "0.500000000")]
    assert published(*forecasts(ada="0.9"), resolution()) == {"ada": "0.000000000"}


def test_only_a_members_own_forecast_is_left_out_not_equal_ones() -> None:
    """The others of a member with 0.5 have 0.5 and 0.25, mean 0.375; the others of 0.25 have 0.5 twice."""
    rows = published(*forecasts(ada="0.5", bob="0.5", cyd="0.25"), resolution())
    assert rows == {"ada": log2("4/3"), "bob": log2("4/3"), "cyd": "-1.000000000"}


def test_participants_scored_only_and_the_consensus_are_compared_with_all_members() -> None:
    """The median of 0.75 and 0.25 is 0.5; a bot's 0.25 and an excluded participant's 1 score -1 and 1."""
    apart = structs.replace(RULES, bots="scored_only", scored_only_levels=("no_rank",), score_consensus=True)
    people = forecasts(ada="0.75", bob="0.25", bot="0.25", eve="1")
    who = enrolment(participant="bot", bot=True), exclusion(participant="eve", level="no_rank")
    rows = published(*who, *people, resolution(), rules=apart)
    expected = {"ada": log2("3"), "bob": log2("1/3"), "bot": "-1.000000000", "eve": "1.000000000"}
    assert rows == {**expected, "[consensus]": "0.000000000"}


def test_a_bot_is_compared_with_a_single_member_and_the_member_with_nobody() -> None:
    """0.5 against 0.25 is 1; there is no other member."""
    who = enrolment(participant="bot", bot=True)
    rows = published(
        who, *forecasts(ada="0.25", bot="0.5"), resolution(), rules=structs.replace(RULES, bots="scored_only")
    )
    assert rows == {"ada": "0.000000000", "bot": "1.000000000"}


def test_without_members_nothing_is_earned() -> None:
    """Bots alone have no median to be compared with."""
    bots = [enrolment(participant=who, bot=True) for who in ("ada", "bob")]
    rows = published(
        *bots, *forecasts(ada="0.25", bob="0.5"), resolution(), rules=structs.replace(RULES, bots="scored_only")
    )
    assert rows == {"ada": "0.000000000", "bob": "0.000000000"}


def test_the_median_of_bins_leaves_out_the_own_forecast() -> None:
    """0.8 and 0.4 on the bin with the answer: each is compared with the other, twice or half of it."""
    made: list[AnyCommand] = [
        forecast("depth", "ada", cdf=(0, "0.1", "0.9", "0.9", 1), at=OPENS),
        forecast("depth", "bob", cdf=(0, "0.1", "0.5", "0.9", 1), at=OPENS),
    ]
    rows = published(*made, resolution("depth", value="1.5"), start=numeric())
    assert rows == {"ada": "1.000000000", "bob": "-1.000000000"}


def test_parts_have_the_reference_and_add_up() -> None:
    """The reference is nobody until day 12; then the other; from day 16 to 18 the mean of two others."""
    made: list[AnyCommand] = [
        *forecasts(ada="0.5"),
        forecast(participant="bob", probability="0.25", at=day(12)),
        forecast(participant="cyd", probability="0.75", at=day(16)),
        withdrawal(participant="cyd", at=day(18)),
    ]
    parts = table("score_parts", *made, resolution())
    rows = [(row["participant"], row["from_at"], row["reference"], row["term"]) for row in parts]
    assert rows == [
        ("ada", OPENS, None, "0.000000000000"),
        ("ada", day(12), "0.25", "1.000000000000"),
        ("ada", day(16), "0.5", "0.000000000000"),
        ("ada", day(18), "0.25", "1.000000000000"),
        ("bob", day(12), "0.5", "-1.000000000000"),
        ("bob", day(16), "0.625", "-1.321928094887"),  # log2 0.4
        ("bob", day(18), "0.5", "-1.000000000000"),
        ("cyd", day(16), "0.375", "1.000000000000"),
    ]
    numerators = {row["participant"]: int(row["numerator"]) for row in table("scores", *made, resolution())}
    sums = {who: sum(int(row["contribution"]) for row in parts if row["participant"] == who) for who in numerators}
    assert numerators == sums


def test_the_take_comes_from_the_score_against_the_others() -> None:
    """A preset with this field changed: 0.5 and 0.25 score 1 and -1, so the takes are e and 1 / e."""
    board = table("leaderboard", *forecasts(ada="0.5", bob="0.25"), resolution(), rules=OTHERS)
    rows = [(row["participant"], row["score"], row["take"]) for row in board]
    assert rows == [("ada", "1.000000000", "2.718281828"), ("bob", "-1.000000000", "0.367879441")]
