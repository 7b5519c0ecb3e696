"""Time-weighted scores and coverage, by hand and against the slow definition."""

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given, settings

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.scores import time_weighted as module
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from forecast_ledger.replay.cli.main import main
from forecast_ledger.replay.reference.exit_codes import USAGE
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import (
    AFTER,
    BEFORE,
    CLOSES,
    DAY,
    OPENS,
    REVEALS,
    annulment,
    choices,
    closing,
    contest,
    day,
    entry,
    forecast,
    numeric,
    opened,
    quartiles,
    resolution,
    revocation,
    withdrawal,
)
from tests.support.logs import VARIED, written
from tests.system import test_stories as stories

PERIOD = 10 * DAY  # the scheduled period of the questions in tests/support/given.py, µs
HALF, EIGHTH_TENTHS, FIFTH = -693_147_180_560, -223_143_551_314, -1_609_437_912_434  # ln 0.5, ln 0.8, ln 0.2 in 1e-12
UP, DOWN = EIGHTH_TENTHS - HALF, FIFTH - HALF  # scores of 0.8 and 0.2 against a median of 0.5
ADA, BOB = forecast(probability="0.8", at=OPENS), forecast(participant="bob", probability="0.2", at=OPENS)
LONG_AGO = "1969-12-31T00:00:00Z"
NINE = Decimal("1e-9")

Row = dict[str, Any]
Scores = dict[tuple[str, str], Row]


def read(projections: Projections, contest: str = "cup") -> Scores:
    """Return the rows of a contest's scores, by question and participant."""
    rows = [row for row in projections.table("scores").rows() if row["contest"] == contest]
    return {(row["question"], row["participant"]): row for row in rows}


def scored(*commands: AnyCommand, rules: str | RuleSet = "relative-2022-04", **added: Any) -> Scores:
    """Return the scores after these commands in a contest over one binary question."""
    start = opened(reveals_at=REVEALS), contest(rules=rules), entry(**added)
    return read(oracle.projected(*start, *commands))


def numerators(scores: Scores) -> dict[str, int]:
    """Return each participant's numerator on the question."""
    return {participant: int(row["numerator"]) for (_, participant), row in scores.items()}


def coverages(scores: Scores) -> dict[str, str]:
    """Return each participant's printed coverage."""
    return {participant: row["coverage"] for (_, participant), row in scores.items()}


def test_a_score_is_the_mean_over_the_period_of_the_logarithm_of_forecast_over_median() -> None:
    """ln(0.8 / 0.5) = 0.470003629 and ln(0.2 / 0.5) = -0.916290732, for the whole period."""
    assert scored(ADA, BOB, resolution()) == {
        ("rain", who): {
            "contest": "cup",
            "question": "rain",
            "participant": who,
            "score": score,
            "coverage": "1.000000000",
            "attainable": "1.000000000",
            "numerator": str(term * PERIOD),
            "denominator": str(PERIOD * 10**12),
        }
        for who, term, score in [("ada", UP, "0.470003629"), ("bob", DOWN, "-0.916290732")]
    }


def test_under_base_2_the_logarithm_is_the_binary_one() -> None:
    """log2(0.8 / 0.5) = 0.678071905, log2(0.2 / 0.5) = -1.321928095."""
    scores = scored(ADA, BOB, resolution(), rules="relative-2021-11")
    assert [row["score"] for row in scores.values()] == ["0.678071905", "-1.321928095"]


def test_the_other_outcome_counts_the_other_probability() -> None:
    """If the answer is no, 0.8 for yes scores as 0.2."""
    assert numerators(scored(ADA, BOB, resolution(outcome="no"))) == {"ada": DOWN * PERIOD, "bob": UP * PERIOD}


def test_a_missing_forecast_scores_nothing_and_covers_nothing() -> None:
    """Bob forecasts after eight tenths of the time; until then the median is Ada's own forecast."""
    late = forecast(participant="bob", probability="0.2", at=day(18))
    scores = scored(ADA, late, resolution())
    assert numerators(scores) == {"ada": UP * 2 * DAY, "bob": DOWN * 2 * DAY}
    assert coverages(scores) == {"ada": "1.000000000", "bob": "0.200000000"}


def test_all_who_withdraw_at_one_instant_are_scored_until_then_and_no_longer() -> None:
    """After half the period: half the score and half the coverage, although no forecast is left."""
    scores = scored(ADA, BOB, withdrawal(at=day(15)), withdrawal(participant="bob", at=day(15)), resolution())
    assert numerators(scores) == {"ada": UP * PERIOD // 2, "bob": DOWN * PERIOD // 2}
    assert coverages(scores) == {"ada": "0.500000000", "bob": "0.500000000"}


def test_a_forecast_made_before_and_one_after_a_gap_both_count() -> None:
    """Ada's forecast stands on days 10 and 11, and again from day 18 on."""
    again = forecast(probability="0.8", at=day(18))
    scores = scored(ADA, BOB, withdrawal(at=day(12)), again, resolution())
    assert numerators(scores) == {"ada": UP * 4 * DAY, "bob": DOWN * 4 * DAY}
    assert coverages(scores) == {"ada": "0.400000000", "bob": "1.000000000"}


@pytest.mark.parametrize(
    "commands",
    [
        [closing(at=day(14)), resolution()],
        [resolution(known_at=day(14))],
        [resolution(at=day(14))],
        [closing(at=day(17)), resolution(known_at=day(14))],
        [closing(at=day(14)), resolution(known_at=day(17))],
    ],
    ids=["closed", "known", "resolved", "known before closed", "closed before known"],
)
def test_scored_time_ends_at_the_close_or_when_the_answer_is_known(commands: list[AnyCommand]) -> None:
    """The first of the two ends it; the rest of the scheduled period counts as 0, in score and in coverage."""
    scores = scored(ADA, BOB, *commands)
    assert numerators(scores) == {"ada": UP * 4 * DAY, "bob": DOWN * 4 * DAY}
    assert coverages(scores) == {"ada": "0.400000000", "bob": "0.400000000"}
    assert {row["denominator"] for row in scores.values()} == {str(PERIOD * 10**12)}


def test_an_answer_known_after_the_close_changes_nothing() -> None:
    """Scored time ends at the scheduled close at the latest."""
    assert scored(ADA, BOB, resolution(known_at=day(24))) == scored(ADA, BOB, resolution())


def test_an_answer_known_when_the_question_opens_leaves_no_time_to_score() -> None:
    """There are no rows."""
    assert scored(ADA, BOB, resolution(known_at=OPENS)) == {}


def test_a_forecast_made_when_the_answer_was_known_counts_nowhere() -> None:
    """It does not change the median and has no row."""
    late = forecast(participant="cyd", probability="0.99", at=day(16))
    assert scored(ADA, BOB, late, resolution(known_at=day(16))) == scored(ADA, BOB, resolution(known_at=day(16)))


def test_a_forecast_made_before_the_opening_counts_from_the_opening_where_the_rules_allow_it() -> None:
    """The presets count it; a rule set that does not ignores it."""
    early = forecast(probability="0.8", at=day(7))
    assert scored(early, BOB, resolution()) == scored(ADA, BOB, resolution())
    strict = RuleSet(name="strict", kernel="ln", reference="consensus", early_forecasts=False)
    assert numerators(scored(early, BOB, resolution(), rules=strict)) == {"bob": 0}


def test_a_probability_of_zero_counts_as_the_least() -> None:
    """Metaculus, Scores FAQ: 0.1%, applied before the median: (0.001 + 1) / 2 = 0.5005."""
    commands = [forecast(probability=0, at=OPENS), forecast(participant="bob", probability=1, at=OPENS)]
    median = oracle.picos("ln", Fraction(5005, 10_000))
    least = oracle.picos("ln", Fraction(1, 1000))
    assert numerators(scored(*commands, resolution())) == {"ada": (least - median) * PERIOD, "bob": -median * PERIOD}


@pytest.mark.parametrize(
    ("value", "ada", "bob"),
    [("-1", "0.001", "0.1"), ("3", "0.4", "0.01"), ("4", "0.0025", "0.8"), ("5", "0.2", "0.05")],
)
def test_a_numeric_forecast_is_scored_by_the_probability_of_the_bin(value: str, ada: str, bob: str) -> None:
    """The answer is below, in the third bin, in the fourth, or above; 0 counts as 0.01 / 4, outside as 0.001."""
    commands = [
        forecast("depth", cdf=(0, "0.2", "0.4", "0.8", "0.8"), at=OPENS),
        forecast("depth", "bob", cdf=("0.1", "0.14", "0.14", "0.15", "0.95"), at=OPENS),
    ]
    start = numeric(open_lower=True, open_upper=True), contest(), entry(question="depth")
    scores = read(oracle.projected(*start, *commands, resolution("depth", value=value)))
    median = oracle.picos("ln", (Fraction(ada) + Fraction(bob)) / 2)
    expected = {who: (oracle.picos("ln", Fraction(p)) - median) * PERIOD for who, p in (("ada", ada), ("bob", bob))}
    assert numerators(scores) == expected


def test_a_multiple_choice_forecast_is_scored_by_the_probability_of_the_outcome() -> None:
    """0.8 and 0.2 on green; the other probabilities do not matter."""
    commands = [
        forecast("colour", probabilities={"red": "0.1", "green": "0.8", "blue": "0.1"}, at=OPENS),
        forecast("colour", "bob", probabilities={"red": 0, "green": "0.2", "blue": "0.8"}, at=OPENS),
    ]
    start = choices(), contest(), entry(question="colour")
    scores = read(oracle.projected(*start, *commands, resolution("colour", outcome="green")))
    assert numerators(scores) == {"ada": UP * PERIOD, "bob": DOWN * PERIOD}


@pytest.mark.parametrize(
    "commands",
    [[], [annulment()], [resolution(), annulment()], [resolution(), revocation()]],
    ids=["open", "annulled", "annulled after all", "revoked"],
)
def test_a_question_without_an_answer_counts_nowhere(commands: list[AnyCommand]) -> None:
    """It is not resolved, annulled, annulled after a resolution, or revoked."""
    assert scored(ADA, BOB, *commands) == {}


def test_a_new_resolution_replaces_the_first() -> None:
    """Its outcome and known time count, also after an annulment is revoked."""
    first: list[AnyCommand] = [ADA, BOB, resolution(outcome="no", known_at=day(12)), revocation()]
    assert scored(*first, resolution()) == scored(ADA, BOB, resolution())
    assert scored(*first, annulment(), revocation(), resolution()) == scored(ADA, BOB, resolution())


def test_a_contest_scores_its_own_questions_only() -> None:
    """It does not matter when they were added."""
    commands: list[AnyCommand] = [
        opened(),
        opened("wind"),
        contest(),
        contest("league"),
        entry("league", "wind"),
        ADA,
        BOB,
        resolution(),
    ]
    projections = oracle.projected(*commands, entry())
    assert read(projections) == scored(ADA, BOB, resolution())
    assert read(projections, "league") == {}


@pytest.mark.parametrize(
    ("weight", "early", "late"),
    [
        (None, "0.5", "0.5"),
        (0, "0.375", "0.625"),
        (1, "1", "0"),
        ("0.5", "0.6875", "0.3125"),
        ("0.8", "0.875", "0.125"),
    ],
)
def test_the_hidden_weight_is_the_part_of_coverage_that_the_hidden_period_gives(
    weight: str | int | None, early: str, late: str
) -> None:
    """Ada covers both hidden days and three of the eight others, Bob the five after that; w · 1 + (1 - w) · 3/8."""
    commands: list[AnyCommand] = [ADA, withdrawal(at=day(15)), forecast(participant="bob", at=day(15)), resolution()]
    actual = coverages(scored(*commands, hidden_coverage_weight=weight))
    assert {who: Fraction(share) for who, share in actual.items()} == {"ada": Fraction(early), "bob": Fraction(late)}


def test_a_hidden_weight_counts_the_scheduled_hidden_period_and_rest() -> None:
    """The answer is known after one of two hidden days: half of w = 0.6, and none of the rest."""
    scores = scored(ADA, BOB, resolution(known_at=day(11)), hidden_coverage_weight="0.6")
    assert coverages(scores) == {"ada": "0.300000000", "bob": "0.300000000"}


def test_a_question_may_be_hidden_to_its_close() -> None:
    """All the weight is on the hidden period, and there is no rest to cover."""
    start = opened(reveals_at=CLOSES), contest(), entry(hidden_coverage_weight=1)
    scores = read(oracle.projected(*start, ADA, withdrawal(at=day(12)), resolution()))
    assert coverages(scores) == {"ada": "0.200000000"}


def test_more_centuries_than_fit_on_one_timeline_are_scored() -> None:
    """There are 800 questions of a century each, and two participants who forecast for the whole time."""
    names = [f"q{number:03}" for number in range(800)]
    span = {"opens_at": "1970-01-01T00:00:00Z", "closes_at": "2069-12-31T00:00:00Z"}
    late = "2100-01-01T00:00:00Z"
    commands: list[AnyCommand] = [contest()]
    for name in names:
        commands += [opened(name, **span), entry(question=name), resolution(name, at=late)]
        commands[-1:-1] = [msgspec.structs.replace(made, question=name, at=LONG_AGO) for made in (ADA, BOB)]
    scores = read(oracle.projected(*commands))
    assert list(scores) == [(name, who) for name in names for who in ("ada", "bob")]
    assert {row["score"] for row in scores.values()} == {"0.470003629", "-0.916290732"}
    assert {row["coverage"] for row in scores.values()} == {"1.000000000"}


def parts(*commands: AnyCommand) -> list[tuple[str, ...]]:
    """Return the table of parts: participant, from, to, probability, reference, term, weight, contribution."""
    table = oracle.projected(opened(), contest(), entry(), *commands).table("score_parts")
    names = ("participant", "from_at", "to_at", "probability", "reference", "term", "weight", "contribution")
    return [tuple(str(row[name]) for name in names) for row in table.rows()]


def test_score_parts_have_the_probability_the_reference_and_the_time() -> None:
    """Ada forecasts again on day 12, and Bob from day 12 on; a day is 86,400,000,000 µs."""
    late = forecast(participant="bob", probability="0.2", at=day(12))
    actual = parts(forecast(probability="0.6", at=day(9)), forecast(probability="0.8", at=day(12)), late, resolution())
    first, last, close = "2026-03-10T00:00:00Z", "2026-03-12T00:00:00Z", "2026-03-20T00:00:00Z"
    assert actual == [
        ("ada", first, last, "0.6", "0.6", "0.000000000000", str(2 * DAY), "0"),
        ("ada", last, close, "0.8", "0.5", "0.470003629246", str(8 * DAY), str(UP * 8 * DAY)),
        ("bob", last, close, "0.2", "0.5", "-0.916290731874", str(8 * DAY), str(DOWN * 8 * DAY)),
    ]


def test_a_part_lasts_while_the_median_stays_the_same() -> None:
    """0.4 and 0.6 stand, then 0.5 too, then 0.3 and 0.7 too: the median is always 0.5."""
    later = [("bob", "0.6", 10), ("cyd", "0.5", 12), ("dan", "0.3", 14), ("eve", "0.7", 14)]
    commands = [forecast(participant=who, probability=p, at=day(at)) for who, p, at in later]
    actual = parts(forecast(probability="0.4", at=OPENS), *commands, resolution())
    assert [row[:3] for row in actual if row[0] in {"ada", "cyd"}] == [
        ("ada", "2026-03-10T00:00:00Z", "2026-03-20T00:00:00Z"),
        ("cyd", "2026-03-12T00:00:00Z", "2026-03-20T00:00:00Z"),
    ]


def rules(**fields: Any) -> RuleSet:
    """Return rules with a logarithm and no reference, unless other fields are given."""
    given: dict[str, Any] = {"name": "own", "kernel": "ln", "cdf_kernel": "ln"}
    return RuleSet(**(given | fields))


@pytest.mark.parametrize(
    ("period", "ada", "bob"), [("scheduled", "0.4", "0.2"), ("actual", "1", "0.5"), ("covered", "1", "1")]
)
def test_a_score_is_a_mean_over_the_period_its_rules_name(period: str, ada: str, bob: str) -> None:
    """The period has ten days, the answer is known after four; Ada covers four, Bob two, each with 0.5."""
    commands = [forecast(probability="0.5", at=OPENS), forecast(participant="bob", probability="0.5", at=day(12))]
    actual = scored(
        *commands, resolution(known_at=day(14)), rules=rules(kernel="log2", cdf_kernel="log2", period=period)
    )
    assert {who: -Fraction(row["score"]) for (_, who), row in actual.items()} == {
        "ada": Fraction(ada),
        "bob": Fraction(bob),
    }
    assert coverages(actual) == {"ada": "0.400000000", "bob": "0.200000000"}


@pytest.mark.parametrize(("period", "ada", "bob"), [("scheduled", "0.4", "0.2"), ("actual", "1", "0.5")])
def test_a_coverage_is_a_share_of_the_period_its_rules_name(period: str, ada: str, bob: str) -> None:
    """The two forecasts of the test before; the divisor of scores does not change."""
    commands = [forecast(probability="0.5", at=OPENS), forecast(participant="bob", probability="0.5", at=day(12))]
    actual = scored(
        *commands, resolution(known_at=day(14)), rules=rules(kernel="log2", cdf_kernel="log2", coverage_period=period)
    )
    columns = {who: (row["coverage"], row["attainable"], row["score"]) for (_, who), row in actual.items()}
    numbers = {who: tuple(map(Fraction, column)) for who, column in columns.items()}
    most = Fraction(ada)
    assert numbers == {"ada": (Fraction(ada), most, Fraction("-0.4")), "bob": (Fraction(bob), most, Fraction("-0.2"))}


@pytest.mark.parametrize(
    ("known_day", "shares"),
    [
        (15, {"ada": "0.300000000", "bob": "0.700000000"}),
        (12, {"ada": "0.500000000", "bob": "0.500000000"}),
        (11, {"ada": "1.000000000"}),
    ],
)
def test_a_hidden_weight_divides_actual_time_only_where_the_answer_comes_after_the_reveal(
    known_day: int, shares: dict[str, str]
) -> None:
    """Ada withdraws after one of two hidden days, and Bob forecasts: 0.6 / 2 each, and 0.4 for the rest, or halves."""
    ada = forecast(participant="ada", at=OPENS), withdrawal(participant="ada", at=day(11))
    bob = forecast(participant="bob", at=day(11))
    own = rules(coverage_period="actual")
    actual = scored(*ada, bob, resolution(known_at=day(known_day)), hidden_coverage_weight="0.6", rules=own)
    assert coverages(actual) == shares


@pytest.mark.parametrize(
    ("chance", "yes", "no"),
    [("0.7", 49, -74), ("0.8", 68, -132), ("0.9", 85, -232), ("0.99", 99, -564), ("0.4", -32, 26)],
)
def test_the_published_baseline_scores(chance: str, yes: int, no: int) -> None:
    """Metaculus, Scores FAQ, "Can I get better scores by predicting extreme values?" (which cuts 48.54 off) and the
    days' table.
    """
    for outcome, score in (("yes", yes), ("no", no)):
        actual = scored(forecast(probability=chance, at=OPENS), resolution(outcome=outcome), rules="baseline")
        assert round(Fraction(actual["rain", "ada"]["score"])) == score


def test_a_published_baseline_score_is_an_average_over_days_of_which_one_had_no_prediction() -> None:
    """Metaculus, Scores FAQ, "Do all my predictions on a question count": 40%, 70%, 70%, 80% from the second of five
    days on.
    """
    start = opened(closes_at=day(15)), contest(rules="baseline"), entry()
    days = [forecast(probability=p, at=day(at)) for at, p in ((11, "0.4"), (12, "0.7"), (14, "0.8"))]
    [row] = read(oracle.projected(*start, *days, resolution())).values()
    assert (round(Fraction(row["score"])), row["coverage"]) == (27, "0.800000000")


@pytest.mark.parametrize(("outcome", "chance"), [("red", Fraction(1)), ("green", Fraction(1, 1_000))])
def test_certainty_is_worth_a_hundred_on_the_baseline_scale(outcome: str, chance: Fraction) -> None:
    """The score is 100 · (ln p - ln 1/3) / ln 3; a probability of 0 counts as 0.001."""
    start = choices(), contest(rules="baseline"), entry(question="colour")
    sure = forecast("colour", probabilities={"red": 1, "green": 0, "blue": 0}, at=OPENS)
    [row] = read(oracle.projected(*start, sure, resolution("colour", outcome=outcome))).values()
    lead = 1 + Fraction(oracle.picos("ln", chance), oracle.picos("ln", Fraction(3)))
    assert Decimal(row["score"]) == oracle.nine(100 * lead)


@pytest.mark.parametrize(
    ("value", "cdf", "score"),
    [
        ("2.5", (0, "0.25", "0.5", "0.75", 1), Fraction(0)),
        ("2.5", (0, 0, 0, 1, 1), 50 * Fraction(oracle.picos("ln", Fraction(4)), 10**12)),
        ("2.5", (0, 1, 1, 1, 1), 50 * Fraction(oracle.picos("ln", Fraction(1, 100)), 10**12)),
    ],
)
def test_a_baseline_score_of_a_range_is_fifty_times_the_lead_over_the_uniform_density(
    value: str, cdf: tuple[Any, ...], score: Fraction
) -> None:
    """There are four bins; 0 counts as a hundredth of the uniform density: -230, the worst score."""
    start = numeric(), contest(rules="baseline"), entry(question="depth")
    [row] = read(
        oracle.projected(*start, forecast("depth", cdf=cdf, at=OPENS), resolution("depth", value=value))
    ).values()
    assert abs(Fraction(row["score"]) - score) < Fraction(2, 10**9)


def test_scores_by_quantiles_keep_the_unit_of_their_question() -> None:
    """Twice the mean pinball loss: 2.6 for 4, 7, 8 at 0.1, 0.5, 0.9 and 10; 0.4 / 3 to four digits beyond the unit."""
    span = {"lower": 0, "upper": 20, "levels": ("0.1", "0.5", "0.9"), "decimals": 0}
    under = rules(kernel="none", cdf_kernel="none", quantile_kernel="pinball", period="covered", total="mean")
    start = quartiles("flow", **span), contest(rules=under), entry(question="flow")
    commands = [
        forecast("flow", quantiles=(4, 7, 8), at=day(15)),
        forecast("flow", "bob", quantiles=(9, 10, 11), at=OPENS),
    ]
    projections = oracle.projected(*start, *commands, resolution("flow", value=10))
    assert {who: row["score"] for (_, who), row in read(projections).items()} == {
        "ada": "2.600000000",
        "bob": "0.133300000",
    }
    part, _ = projections.table("score_parts").rows()
    assert (part["probability"], part["reference"], part["peers"], part["term"]) == (None, None, None, "2.600000000000")


def recorded_scores(*commands: tuple[str, AnyCommand], under: RuleSet) -> Scores:
    """Return the scores if each of these commands is recorded at its own instant."""
    start = [(BEFORE, each) for each in (opened(), contest(rules=under), entry())]
    instants, said = zip(*start, *commands, strict=True)
    return read(oracle.projected(*said, at=map(read_instant, instants)))


def test_under_the_recorded_clock_a_forecast_stands_from_its_recording() -> None:
    """The forecast claims the opening, recorded on the 12th; the withdrawal claims the 15th, recorded on the 18th."""
    commands = (day(12), forecast(at=OPENS)), (day(18), withdrawal(at=day(15))), (AFTER, resolution())
    for clock, coverage in (("claimed", "0.500000000"), ("recorded", "0.600000000")):
        assert coverages(recorded_scores(*commands, under=rules(clock=clock))) == {"ada": coverage}


def test_under_the_recorded_clock_a_late_forecast_does_not_count() -> None:
    """It claims a time before the answer, but is recorded when the answer is known; so it is not early either."""
    commands = (day(16), forecast(at=day(11))), (AFTER, resolution(known_at=day(16)))
    assert recorded_scores(*commands, under=rules(clock="recorded")) == {}
    early = (day(11), forecast(at=day(9))), (AFTER, resolution())
    strict = rules(clock="recorded", early_forecasts=False)
    assert coverages(recorded_scores(*early, under=strict)) == {"ada": "0.900000000"}
    assert recorded_scores(*early, under=rules(early_forecasts=False)) == {}


@settings(max_examples=times(50), deadline=None)
@given(oracle.logs())
def test_scores_agree_with_the_slow_definition(commands: list[AnyCommand]) -> None:
    """Numerators, denominators and coverages agree exactly, for logs of all kinds."""
    recorded, _ = oracle.attempted(commands)
    projections = Projections(oracle.facts_in(recorded))
    for name in projections.contests:
        fast, slow = read(projections, name), oracle.contest_scores(recorded, name)
        exact = {pair: (int(row["numerator"]), int(row["denominator"])) for pair, row in fast.items()}
        assert exact == {pair: (score.numerator, score.denominator) for pair, score in slow.items()}
        for pair, row in fast.items():
            assert Decimal(row["coverage"]) == oracle.nine(slow[pair].coverage)
            assert Decimal(row["score"]) == oracle.nine(Fraction(*exact[pair]))
            assert abs(Decimal(row["score"]) - slow[pair].unrounded) < NINE


Part = tuple[int, int, Fraction, Fraction]  # from, to, probability, reference


def by_score(table: list[Row]) -> dict[tuple[str, str, str], list[Part]]:
    """Return the parts by contest, question and participant, with instants and probabilities."""
    actual: dict[tuple[str, str, str], list[Part]] = {}
    for row in table:
        part = (
            read_instant(row["from_at"]),
            read_instant(row["to_at"]),
            Fraction(row["probability"]),
            Fraction(row["reference"]),
        )
        actual.setdefault((row["contest"], row["question"], row["participant"]), []).append(part)
    return actual


def slowly(recorded: list[Recorded], contest: str) -> dict[tuple[str, str, str], list[Part]]:
    """Return the parts by definition, divided at every forecast and withdrawal."""
    rules = oracle.world(recorded).contests[contest].opened.rules
    actual: dict[tuple[str, str, str], list[Part]] = {}
    for name, (question, _) in oracle.counting(recorded, contest).items():
        for piece in oracle.slices(question, rules):
            part = piece.start, piece.end, piece.chance, piece.median
            actual.setdefault((contest, name, piece.participant), []).append(part)
    return actual


@settings(max_examples=times(30), deadline=None)
@given(oracle.logs())
def test_parts_add_up_to_scores_exactly(commands: list[AnyCommand]) -> None:
    """Contributions add up to the numerator, for logs of all kinds."""
    projections = Projections(oracle.facts_in(oracle.attempted(commands)[0]))
    sums: dict[tuple[str, str, str], int] = {}
    for row in projections.table("score_parts").rows():
        assert int(row["contribution"]) == int(Decimal(row["term"]).scaleb(12)) * row["weight"]
        key = row["contest"], row["question"], row["participant"]
        sums[key] = sums.get(key, 0) + int(row["contribution"])
    scores = projections.table("scores").rows()
    assert sums == {(row["contest"], row["question"], row["participant"]): int(row["numerator"]) for row in scores}


@settings(max_examples=times(30), deadline=None)
@given(oracle.logs())
def test_parts_cover_the_covered_time_with_the_standing_probabilities(commands: list[AnyCommand]) -> None:
    """Every piece of the slow definition lies in one part with its probability and median, and fills it."""
    recorded, _ = oracle.attempted(commands)
    projections = Projections(oracle.facts_in(recorded))
    fast = by_score(list(projections.table("score_parts").rows()))
    slow = {key: actual for name in projections.contests for key, actual in slowly(recorded, name).items()}
    assert fast.keys() == slow.keys()
    for key, parts in fast.items():
        assert all(before[1] <= after[0] for before, after in pairwise(parts))
        assert sum(end - start for start, end, *_ in parts) == sum(end - start for start, end, *_ in slow[key])
        for start, end, *chances in slow[key]:
            assert [chances] == [rest for first, last, *rest in parts if first <= start and end <= last]


@settings(max_examples=times(12), deadline=None)
@given(oracle.logs())
def test_the_size_of_a_chunk_changes_nothing(commands: list[AnyCommand]) -> None:
    """Forecasts are scored one, two, seven or all at a time."""
    recorded, _ = oracle.attempted(commands)
    actual = oracle.facts_in(recorded)
    whole, *chunked = (Projections(actual, chunk) for chunk in (1 << 20, 1, 2, 7))
    expected = [whole.table(name).digest() for name in CATALOGUE]
    for projections in chunked:
        assert [projections.table(name).digest() for name in CATALOGUE] == expected


@pytest.mark.parametrize("rules", ["peer-2024-03", "relative-2022-04", "baseline"])
def test_too_many_parts_are_refused_before_they_are_computed(monkeypatch: pytest.MonkeyPatch, rules: str) -> None:
    """The limit is a number of rows: one more is refused with the count and the remedy."""
    who = [f"p{number}" for number in range(12)]
    commands = [forecast(participant=name, at=day(11, hour), probability="0.6") for hour, name in enumerate(who)]
    projections = oracle.projected(opened(), contest(rules=rules), entry(), *commands, resolution())
    count = len(projections.table("score_parts"))
    monkeypatch.setattr(module, "MOST_PARTS", count)
    assert len(projections.table("score_parts")) == count
    monkeypatch.setattr(module, "MOST_PARTS", count - 1)
    monkeypatch.setattr(module, "score_parts", None)
    with pytest.raises(
        Refused,
        match=rf"score_parts: the table would have {count:,} rows, .* MiB .*; the limit is {count - 1:,}; .*question=",
    ):
        projections.table("score_parts")


@pytest.mark.parametrize("story", VARIED)
def test_the_parts_of_one_question_are_those_of_the_whole_table(story: str) -> None:
    """And so are those of a contest, of a participant, and of all three; nobody else's forecasts are scored."""
    projections = oracle.projected(*stories.commands(story))
    whole = [*projections.table("score_parts").rows()]
    names = {column: {str(row[column]) for row in whole} for column in ("contest", "question", "participant")}
    asked = [{column: name} for column, each in names.items() for name in each]
    asked += [{column: row[column] for column in names} for row in whole[:: max(len(whole) // 5, 1)]]
    for key in asked:
        expected = [row for row in whole if key.items() <= row.items()]
        assert [*projections.score_parts(**key).rows()] == expected
    assert [*projections.score_parts().rows()] == whole


def test_parts_of_what_does_not_exist_are_refused() -> None:
    """The message lists what there is."""
    projections = oracle.projected(opened(), contest(rules="peer-2024-03"), entry(), forecast(), resolution())
    for column in ("contest", "question", "participant"):
        with pytest.raises(ValueError, match=f"no {column} named 'nobody'; there are"):
            projections.score_parts(**{column: "nobody"})


def test_a_question_has_parts_where_the_whole_log_has_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own parts are counted alone."""
    commands = [forecast(participant=f"p{number}", at=day(11, number), probability="0.6") for number in range(12)]
    story: list[AnyCommand] = [
        opened(),
        opened("snow"),
        contest(rules="peer-2024-03"),
        entry(),
        entry(question="snow"),
        *commands,
    ]
    projections = oracle.projected(*story, forecast("snow"), forecast("snow", "bob"), resolution(), resolution("snow"))
    monkeypatch.setattr(module, "MOST_PARTS", 5)
    assert len(projections.score_parts(question="snow")) == 2
    with pytest.raises(Refused, match="question="):
        projections.score_parts()


def test_the_parts_of_one_participant_are_counted_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a score can be explained in a contest that has too many parts."""
    commands = [forecast(participant=f"p{number}", at=day(11, number), probability="0.6") for number in range(12)]
    projections = oracle.projected(opened(), contest(rules="peer-2024-03"), entry(), *commands, resolution())
    monkeypatch.setattr(module, "MOST_PARTS", 12)
    assert [len(projections.score_parts(f"p{number}")) for number in (0, 11)] == [12, 1]


def test_parts_of_three_thousand_forecasts_are_refused_quickly(tmp_path: Path) -> None:
    """Four and a half million parts would take more than a gigabyte; every command exits with 2."""
    path = str(tmp_path / "log.db")
    commands = [
        forecast(
            participant=f"p{number}", at=f"2026-03-11T{number // 60 // 3:02}:{number // 3 % 60:02}:{number % 3:02}Z"
        )
        for number in range(3_000)
    ]
    written(path, [opened(), contest(rules="peer-2024-03"), entry(), *commands, resolution()])
    for arguments in (
        ["table", path, "score_parts"],
        ["export", path, str(tmp_path / "out"), "--format", "csv", "--tables", "score_parts"],
        ["diff", path, "@1", "@3004", "--table", "score_parts"],
    ):
        done = CliRunner().invoke(main, arguments)
        assert (done.exit_code, "4,501,500 rows" in done.stderr) == (USAGE, True), (arguments, done.stderr)
    assert not (tmp_path / "out").exists()
