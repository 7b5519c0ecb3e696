"""Steps and the scores against the consensus and the peers, compared with fractions step by step."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand, OpenQuestion
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.scores.consensus import changes, medians
from forecast_ledger.projections.scores.reference_kinds import (
    Against,
    Steps,
    against_consensus,
    against_peers,
    fine_bits,
    refined,
    steps,
)
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

PICO = 10**12
CENTURY = 36_525 * 86_400 * 10**6  # µs
FINE = [20, 24, 56, 60]

Row = dict[str, Any]


class Stand(NamedTuple):
    """A forecast that stands on [start, end) and has the kernel score `own`."""

    start: int
    end: int
    own: int
    member: bool = True


def column(values: Sequence[int]) -> Int64Array:
    """Return values as a column."""
    return np.array(values, np.int64)


def members(rows: Sequence[Stand]) -> BoolArray:
    """Return whether a member made each forecast."""
    return np.array([row.member for row in rows], bool)


def steps_of(rows: Sequence[Stand]) -> Steps:
    """Return the steps of these intervals."""
    return steps(column([row.start for row in rows]), column([row.end for row in rows]), members(rows))


def earned(rows: Sequence[Stand], against: Against) -> list[int]:
    """Return what each forecast earns."""
    timeline = steps_of(rows)
    return against.earned(column([row.own for row in rows]), timeline.begins, timeline.ends).integers()


def peers(rows: Sequence[Stand], fine: int, *, leave_out_self: bool) -> list[int]:
    """Return what each forecast earns against the members, with or without its own among them."""
    own = column([row.own for row in rows])
    return earned(rows, against_peers(steps_of(rows), own, members(rows), fine, leave_out_self=leave_out_self))


def slow_steps(rows: Sequence[Stand]) -> Iterator[tuple[int, int, list[Stand]]]:
    """Yield the begin and end of each step, and the members that stand."""
    for start, end in pairwise(sorted({at for row in rows for at in row[:2]})):
        yield start, end, [row for row in rows if row.member and row.start <= start < row.end]


def slow_score(rows: Sequence[Stand], row: Stand, *, leave_out_self: bool) -> Fraction:
    """Return the lead over the mean of all n, times n / (n - 1) for a member, and nothing while n is 1."""
    total = Fraction(0)
    for start, end, stand in slow_steps(rows):
        n = len(stand)
        if n >= 1 + leave_out_self and row.start <= start < row.end:
            lead = row.own - Fraction(sum(member.own for member in stand), n)
            total += lead * (end - start) * (Fraction(n, n - 1) if leave_out_self else 1)
    return total


OWN = st.sampled_from([0, 1, -1, -PICO, -23 * PICO, 4 * 10**17]) | st.integers(-24 * PICO, 4 * 10**17)


@st.composite
def stands(draw: st.DrawFn) -> list[Stand]:
    """Draw up to nine intervals on few instants, so that many begin or end together, and gaps are common."""
    last = draw(st.sampled_from([3, 9, 10**13]))
    rows = []
    for _ in range(draw(st.integers(1, 9))):
        start, end = sorted(draw(st.lists(st.integers(0, last), min_size=2, max_size=2, unique=True)))
        rows.append(Stand(start, end, draw(OWN), draw(st.sampled_from([True, True, False]))))
    return rows


@pytest.mark.parametrize(("sampling", "bits"), [("time", 24), ("day", 60), ("spot", 60)])
def test_time_against_peers_is_finer_than_its_units(sampling: str, bits: int) -> None:
    """The fraction has as many bits as a century leaves room for, four less if quantiles are scored by pinball loss."""
    fields: dict[str, Any] = {"name": "own", "sampling": sampling}
    assert fine_bits(RuleSet(**fields, kernel="ln", reference="peers")) == bits
    assert fine_bits(RuleSet(**fields, quantile_kernel="pinball", reference="peers")) == bits - 4
    assert fine_bits(RuleSet(**fields, quantile_kernel="absolute", reference="peers")) == bits
    for reference in ("none", "uniform", "consensus"):
        assert fine_bits(RuleSet(**fields, kernel="ln", reference=reference)) == 0


@settings(max_examples=times(100), deadline=None)
@given(stands())
def test_steps_have_the_number_of_standing_members_and_their_length(rows: list[Stand]) -> None:
    """A step begins at every instant at which a forecast begins or ends; the last step has no length."""
    timeline = steps_of(rows)
    slow = [(start, len(stand), end - start) for start, end, stand in slow_steps(rows)]
    last = max(row.end for row in rows)
    columns = (timeline.instant.tolist(), timeline.stand.tolist(), timeline.lasts.tolist())
    assert list(zip(*columns, strict=True)) == [*slow, (last, 0, 0)]
    assert timeline.instant[timeline.begins].tolist() == [row.start for row in rows]
    assert timeline.instant[timeline.ends].tolist() == [row.end for row in rows]


@settings(max_examples=times(30), deadline=None)
@given(stands())
def test_steps_from_given_changes_are_the_same(rows: list[Stand]) -> None:
    """The changes are computed once and reused."""
    start, end = column([row.start for row in rows]), column([row.end for row in rows])
    reused = steps(start, end, members(rows), changes(start, end))
    assert all(np.array_equal(*columns) for columns in zip(reused, steps_of(rows), strict=True))


@settings(max_examples=times(75), deadline=None)
@given(stands(), st.sampled_from(FINE), st.booleans())
@example([Stand(0, CENTURY, 4 * 10**17), Stand(0, CENTURY, 0)], 24, True)
@example([Stand(0, 36_525, 4 * 10**17), Stand(0, 36_525, 0)], 60, True)
def test_against_peers_a_forecast_earns_its_lead_over_the_others(
    rows: list[Stand], fine: int, leave_out_self: bool
) -> None:
    """Each step rounds twice, to 2^-fine: the weight of the lead, and the fraction of the mean."""
    if fine > 24 and max(row.end for row in rows) > 36_525:
        fine = 24  # days of a century at most; only µs are more
    whole = list(slow_steps(rows))
    for row, fast in zip(rows, peers(rows, fine, leave_out_self=leave_out_self), strict=True):
        slack = Fraction(0)
        for start, end, stand in whole:
            if stand and row.start <= start < row.end and end > start:
                mean = Fraction(sum(member.own for member in stand), len(stand))
                slack += (abs(row.own - mean) + 2) / 2
        assert abs(fast - slow_score(rows, row, leave_out_self=leave_out_self) * 2**fine) <= slack


@settings(max_examples=times(100), deadline=None)
@given(stands(), st.sampled_from(FINE))
def test_the_scores_of_members_sum_to_zero(rows: list[Stand], fine: int) -> None:
    """They do at every instant, so also in all, to within a unit of 2^-fine for each member and step."""
    if fine > 24 and max(row.end for row in rows) > 36_525:
        fine = 24
    scored = zip(rows, peers(rows, fine, leave_out_self=True), strict=True)
    steps_of_all = sum(len(stand) for _, _, stand in slow_steps(rows))
    assert abs(sum(score for row, score in scored if row.member)) <= steps_of_all


@pytest.mark.parametrize("fine", FINE)
@given(own=OWN, n=st.integers(2, 9), lasts=st.integers(1, 10**4))
def test_members_with_equal_forecasts_earn_exactly_nothing(fine: int, own: int, n: int, lasts: int) -> None:
    """It holds for any number of members, and for an equal forecast of a participant who is not a member."""
    rows = [Stand(0, lasts, own)] * n + [Stand(0, lasts, own, member=False)]
    assert peers(rows, fine, leave_out_self=True) == [0] * (n + 1)
    assert peers(rows, fine, leave_out_self=False) == [0] * (n + 1)


@pytest.mark.parametrize("fine", FINE)
def test_the_published_example_of_peer_scores(fine: int) -> None:
    """Metaculus, Scores FAQ, "What is the Peer score?": logarithms of -1, 1 and 2 make -2.5, 0.5 and 2."""
    rows = [Stand(0, 10, score * PICO) for score in (-1, 1, 2)]
    assert peers(rows, fine, leave_out_self=True) == [score * PICO * 10 << fine - 1 for score in (-5, 1, 4)]


@pytest.mark.parametrize(("leave_out_self", "factor"), [(True, 2), (False, 1)])
def test_a_participant_who_is_not_a_member_is_compared_with_all_members(leave_out_self: bool, factor: int) -> None:
    """For four units it is compared with the mean of both members, 2; n / (n - 1) is 2 if it is treated as a member.

    For four more units it is compared with the one member who is left, 1; if it is treated as that member, with nobody.
    """
    rows = [Stand(0, 8, 1), Stand(0, 4, 3), Stand(0, 8, 7, member=False)]
    alone = 0 if leave_out_self else (7 - 1) * 4
    assert peers(rows, 24, leave_out_self=leave_out_self)[2] == (7 - 2) * 4 * factor + alone << 24


def test_without_members_there_are_no_peers() -> None:
    """Two participants who are not members are not compared with each other."""
    rows = [Stand(0, 8, 1, member=False), Stand(0, 8, 5, member=False)]
    assert peers(rows, 24, leave_out_self=True) == peers(rows, 24, leave_out_self=False) == [0, 0]


def test_peers_earn_nothing_during_a_gap() -> None:
    """Both withdraw at 2 and forecast again at 6: they earn 1 and -1 for four of the eight units."""
    rows = [Stand(0, 2, 3), Stand(0, 2, 1), Stand(6, 8, 3), Stand(6, 8, 1)]
    lead = (3 - 2) * 2 * 2 << 24
    assert peers(rows, 24, leave_out_self=True) == [lead, -lead, lead, -lead]


@settings(max_examples=times(100), deadline=None)
@given(stands(), st.data())
def test_against_a_consensus_a_forecast_earns_its_lead_while_a_member_stands(
    rows: list[Stand], data: st.DataObject
) -> None:
    """It is exact for any kernel scores of the consensus."""
    whole = list(slow_steps(rows))
    worth = data.draw(st.lists(OWN, min_size=len(whole) + 1, max_size=len(whole) + 1))
    fast = earned(rows, against_consensus(steps_of(rows), column(worth)))
    for row, score in zip(rows, fast, strict=True):
        assert score == sum(
            (row.own - consensus) * (end - start)
            for (start, end, stand), consensus in zip(whole, worth[:-1], strict=True)
            if stand and row.start <= start < row.end
        )


@settings(max_examples=times(100), deadline=None)
@given(stands())
def test_a_consensus_of_members_is_refined_to_the_steps_of_everybody(rows: list[Stand]) -> None:
    """The number of members and their two middle values are 0 where no member stands, also before the first."""
    rows = [row._replace(own=abs(row.own) % 10**10) for row in rows]
    standing = [row for row in rows if row.member]
    if not standing:
        return
    start, end, values = (column([row[i] for row in standing]) for i in range(3))
    fine = refined(medians(start, end, np.zeros_like(start), values), steps_of(rows))
    slow = []
    for since, _, stand in slow_steps(rows):
        ascending = sorted(row.own for row in stand)
        middle = (ascending[(len(ascending) - 1) // 2], ascending[len(ascending) // 2]) if ascending else (0, 0)
        slow.append((since, len(ascending), *middle))
    assert list(zip(*(part.tolist() for part in fine[:4]), strict=True))[:-1] == slow


# --- whole logs

LN_2 = Fraction(693_147_180_560, PICO)


def scores(
    *commands: AnyCommand, rules: str | RuleSet = "peer-2024-03", start: AnyCommand | None = None
) -> dict[str, Row]:
    """Return the rows of a contest over one question, binary unless another is given."""
    question = start or opened()
    assert isinstance(question, OpenQuestion)
    before: list[AnyCommand] = [question, contest(rules=rules), entry(question=question.question)]
    return {row["participant"]: row for row in oracle.projected(*before, *commands).table("scores").rows()}


def published(rows: dict[str, Row]) -> dict[str, str]:
    """Return each participant's score, with four decimals."""
    return {who: f"{oracle.nine(Fraction(row['score'])):.4f}" for who, row in rows.items()}


def test_a_peer_score_is_a_hundred_times_the_lead_over_the_others_and_sums_to_zero() -> None:
    """0.8 is twice and four times the others' 0.4 and 0.2: 100 · (ln 2 + ln 4) / 2."""
    rows = scores(*forecasts(ada="0.8", bob="0.4", cyd="0.2"), resolution())
    lead = 100 * LN_2 * Fraction(3, 2)
    expected = {"ada": oracle.nine(lead), "bob": 0, "cyd": oracle.nine(-lead)}
    assert {who: Decimal(row["score"]) for who, row in rows.items()} == expected
    exact = (Fraction(int(row["numerator"]), int(row["denominator"])) for row in rows.values())
    assert abs(sum(exact, Fraction(0))) < Fraction(1, 10**15)


def test_all_who_withdraw_together_are_scored_until_then() -> None:
    """0.8 and 0.4 until half time: ±50 ln 2 and half the coverage.

    Metaculus's published code (commit 100c4088) gives ±100 ln 2 and the whole coverage: if the last members withdraw at
    one instant, it skips the change to nobody.
    """
    gone = [withdrawal(participant=who, at=day(15)) for who in ("ada", "bob")]
    rows = scores(*forecasts(ada="0.8", bob="0.4"), *gone, resolution())
    assert published(rows) == {"ada": "34.6574", "bob": "-34.6574"}
    assert {row["coverage"] for row in rows.values()} == {"0.500000000"}


def test_a_single_member_scores_nothing_and_has_coverage() -> None:
    """The member is alone before the second member comes and after it withdraws."""
    late = forecast(participant="bob", probability="0.4", at=day(14)), withdrawal(participant="bob", at=day(16))
    rows = scores(*forecasts(ada="0.8"), *late, resolution())
    assert published(rows) == {"ada": "13.8629", "bob": "-13.8629"}  # 100 · ln 2 · 2 days of 10
    assert [row["coverage"] for row in rows.values()] == ["1.000000000", "0.200000000"]


@pytest.mark.parametrize(("factor", "score"), [("one", "34.6574"), ("members", "69.3147")])
def test_a_bot_is_compared_with_all_members_and_changes_none_of_their_scores(factor: str, score: str) -> None:
    """Members forecast 0.8 and 0.2, on average ln 0.4; the bot √2 · 0.4: 50 ln 2, or twice that as a member."""
    rules = structs.replace(PRESETS["peer-2024-03"], scored_only_factor=factor)
    both, bot = forecasts(ada="0.8", bob="0.2"), forecast(participant="bot", probability="0.565685425", at=OPENS)
    enrolled = enrolment(participant="bot", bot=True)
    alone, together = scores(*both, resolution()), scores(enrolled, *both, bot, resolution(), rules=rules)
    assert published(together) == {**published(alone), "bot": score}


def test_a_bot_is_scored_for_the_time_its_forecast_stands() -> None:
    """From day 13 to day 14 of ten, without changes of the members: a tenth of 100 · (ln 0.8 - ln 0.4)."""
    bot: list[AnyCommand] = [
        forecast(participant="bot", probability="0.8", at=day(13)),
        withdrawal(participant="bot", at=day(14)),
    ]
    rows = scores(enrolment(participant="bot", bot=True), *forecasts(ada="0.8", bob="0.2"), *bot, resolution())
    assert published(rows)["bot"] == "6.9315"
    assert rows["bot"]["coverage"] == "0.100000000"


def test_score_parts_against_peers_have_the_number_of_members() -> None:
    """There is one row while the same members stand, also for a bot; no row has a reference."""
    bot = enrolment(participant="bot", bot=True), forecast(participant="bot", probability="0.5", at=day(12))
    late = forecast(participant="cyd", probability="0.4", at=day(15))
    start: list[AnyCommand] = [opened(), contest(rules="peer-2024-03"), entry(), *forecasts(ada="0.8", bob="0.2")]
    parts = list(oracle.projected(*start, *bot, late, resolution()).table("score_parts").rows())
    peers_by_part = [(row["participant"], row["from_at"], row["peers"]) for row in parts]
    of_members = [(who, at, n) for who in ("ada", "bob") for at, n in ((OPENS, 2), (day(12), 2), (day(15), 3))]
    assert peers_by_part == [*of_members, ("bot", day(12), 2), ("bot", day(15), 3), ("cyd", day(15), 3)]
    assert {row["reference"] for row in parts} == {None}


def test_bots_alone_are_not_compared_with_each_other() -> None:
    """With one human, each bot is compared with the human."""
    bots = [enrolment(participant=who, bot=True) for who in ("ada", "bob")]
    assert published(scores(*bots, *forecasts(ada="0.8", bob="0.4"), resolution())) == {
        "ada": "0.0000",
        "bob": "0.0000",
    }
    with_human = published(scores(*bots, *forecasts(ada="0.8", bob="0.4", cyd="0.5"), resolution()))
    assert with_human == {
        "ada": "47.0004",
        "bob": "-22.3144",
        "cyd": "0.0000",
    }  # 100 ln(0.8 / 0.5) and 100 ln(0.4 / 0.5)


@pytest.mark.parametrize(
    ("fields", "bots"),
    [
        ({}, ["58.778666490", "-51.082562377"]),  # 100 ln(0.9 / 0.5) and 100 ln(0.3 / 0.5)
        ({"scored_only_factor": "members"}, ["0.000000000", "0.000000000"]),  # n / (n - 1) is nothing if n is 1
    ],
    ids=["one", "members"],
)
def test_a_bot_is_compared_with_a_single_member(fields: dict[str, Any], bots: list[str]) -> None:
    """The mean of all members is that member's own score; the member is compared with nobody."""
    rules = structs.replace(PRESETS["peer-2024-03"], name="own", **fields)
    enrolled = [enrolment(participant=who, bot=True) for who in ("bot", "rob")]
    rows = scores(*enrolled, *forecasts(ada="0.5", bot="0.9", rob="0.3"), resolution(), rules=rules)
    assert [rows[who]["score"] for who in ("ada", "bot", "rob")] == ["0.000000000", *bots]


def test_a_participant_excluded_at_a_scored_only_level_is_not_a_peer() -> None:
    """It is scored; at another level it stays a member."""
    fields = {"name": "own", "kernel": "ln", "reference": "peers", "scored_only_levels": ("no_rank",)}
    rules = RuleSet(**fields)  # type: ignore[arg-type]
    three = forecasts(ada="0.8", bob="0.4", cyd="0.1")
    outside = scores(exclusion(participant="cyd", level="no_rank"), *three, resolution(), rules=rules)
    inside = scores(exclusion(participant="cyd", level="no_prize"), *three, resolution(), rules=rules)
    assert published(outside) == {"ada": "0.6931", "bob": "-0.6931", "cyd": "-1.7329"}
    assert published(inside) == {"ada": "1.3863", "bob": "0.3466", "cyd": "-1.7329"}


def test_without_members_nothing_is_earned_against_the_consensus() -> None:
    """If all participants are scored only, there is no median; coverage accrues."""
    rules = RuleSet(name="own", kernel="ln", reference="consensus", bots="scored_only")
    rows = scores(enrolment(bot=True), *forecasts(ada="0.8"), resolution(), rules=rules)
    assert [(row["score"], row["coverage"]) for row in rows.values()] == [("0.000000000", "1.000000000")]


def test_a_peer_score_on_a_numeric_question_counts_half() -> None:
    """The factor is 50 instead of 100: 0.8 and 0.4 on the bin."""
    made: list[AnyCommand] = [
        forecast("depth", "ada", cdf=(0, "0.1", "0.9", "0.9", 1), at=OPENS),
        forecast("depth", "bob", cdf=(0, "0.1", "0.5", "0.9", 1), at=OPENS),
    ]
    rows = scores(*made, resolution("depth", value="1.5"), start=numeric())
    assert published(rows) == {"ada": "34.6574", "bob": "-34.6574"}


@pytest.mark.parametrize("preset", ["peer-2024-03", "spot-peer"])
@given(st.lists(st.integers(1, 999), min_size=2, max_size=9))
@settings(max_examples=times(25), deadline=None)
def test_a_peer_score_is_right_to_the_last_digit_published(preset: str, mills: list[int]) -> None:
    """Over time or at one instant; n / (n - 1) needs infinitely many bits for seven members."""
    people = {f"p{number}": Fraction(mill, 1_000) for number, mill in enumerate(mills)}
    made = [forecast(participant=who, probability=str(float(p)), at=OPENS) for who, p in people.items()]
    rows = scores(*made, resolution(), rules=preset)
    for who, p in people.items():
        others = [oracle.picos("ln", chance) for name, chance in people.items() if name != who]
        exact = 100 * (oracle.picos("ln", p) - Fraction(sum(others), len(others))) / PICO
        assert abs(Fraction(rows[who]["score"]) - exact) <= Fraction(1, 2 * 10**9) + Fraction(1, 10**12)
