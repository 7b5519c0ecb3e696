"""Tables of contests, Brier scores, calibration and admissions, built from whole logs."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import Attestation
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.boards.brier import Counts
from forecast_ledger.projections.boards.brier import aggregate as exact_aggregate
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from forecast_ledger.replay.cli.main import FINE, main
from tests.projections.boards.test_brier_sample import CONSENSUS, TIME, Row, seasons, slow_sample
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import (
    AFTER,
    COLOURS,
    annulment,
    asked,
    choices,
    closing,
    contest,
    day,
    entry,
    finalization,
    forecast,
    opened,
    payment,
    quartiles,
    resolution,
    withdrawal,
)
from tests.support.logs import written

Printed = dict[str, Any]
SECOND = 10**6  # µs
NANO = 10**9


def table(projections: Projections, name: str, **only: str) -> list[Printed]:
    """Return the printed rows with these ids."""
    rows = projections.table(name).rows()
    return [row for row in rows if all(row[column] == value for column, value in only.items())]


def contest_of(answers: str, name: str = "cup", prefix: str = "q", **percents: str) -> list[AnyCommand]:
    """Return a contest with a binary question for each answer, y or n, and the participants' forecasts in percent."""
    commands: list[AnyCommand] = [contest(name, rules=TIME)]
    for number, answer in enumerate(answers):
        said = {who: own.split()[number] for who, own in percents.items()}
        chances = {who: f"{percent}e-2" for who, percent in said.items() if percent != "-"}
        commands += asked(f"{prefix}{number}", chances, {"y": "yes", "n": "no"}[answer], under=name)
    return commands


def brier_row(answers: str, participant: str = "ada", **percents: str) -> Printed:
    """Return one participant's row in the table of Brier scores of one contest."""
    [row] = table(oracle.projected(*contest_of(answers, **percents)), "brier", participant=participant)
    return row


# --- contests


def test_a_contest_shows_its_rules_its_pool_and_the_amount_paid() -> None:
    """The checkpoint is the position and digest of the log row that sealed the contest."""
    cup = contest(title="Spring Cup", pool=10, currency="EUR")
    recorded = oracle.history(opened(), cup, entry(), forecast(), resolution(), finalization())
    [row] = table(Projections(oracle.facts_in(recorded)), "contests")
    assert row == {
        "contest": "cup",
        "title": "Spring Cup",
        "rules": "relative-2022-04",
        "pool": "10.00",
        "currency": "EUR",
        "sealed_at": 6,
        "sealed_digest": recorded[-1].digest,
        "paid": "0.00",
        "series": "",
        "starts_at": None,
        "state": "sealed",
    }
    shared: list[AnyCommand] = [forecast(), forecast(participant="bob"), resolution(), finalization(), payment()]
    [row] = table(oracle.projected(opened(), cup, entry(), *shared), "contests")
    assert (row["sealed_at"], row["paid"]) == (7, "10.00")


def test_a_contest_that_is_open_has_no_checkpoint() -> None:
    """Title, pool and currency are empty unless given; contests are in order of id."""
    rows = table(oracle.projected(contest("cup"), contest("cap", rules=TIME), contest("a cup")), "contests")
    assert [row["contest"] for row in rows] == ["a cup", "cap", "cup"]
    assert {(row["sealed_at"], row["sealed_digest"]) for row in rows} == {(None, None)}
    assert {(row["title"], row["pool"], row["currency"], row["paid"]) for row in rows} == {("", "0.00", "", "0.00")}
    assert [row["rules"] for row in rows] == ["relative-2022-04", "spot", "relative-2022-04"]


def test_a_contest_has_a_checkpoint_from_its_seal_on() -> None:
    """As of the position before, the contest is open; later events do not change the checkpoint."""
    recorded = oracle.history(contest(), contest("cap"), finalization(), finalization("cap"), contest("zip"))
    seals = [table(Projections(oracle.facts_in(recorded[:cut])), "contests", contest="cup") for cut in range(1, 6)]
    assert [row["sealed_at"] for [row] in seals] == [None, None, 3, 3, 3]
    assert [row["sealed_digest"] for [row] in seals[2:]] == [recorded[2].digest] * 3


# --- Brier aggregates


@pytest.mark.parametrize(("answer", "score"), [("y", "0.040000000"), ("n", "0.640000000")])
def test_80_percent_scores_4_hundredths_if_it_rains_and_64_if_not(answer: str, score: str) -> None:
    """Source: Forecaster Arena, Scoring Methodology, "1.1 Definition"."""
    assert brier_row(answer, ada="80")["brier"] == score


@pytest.mark.parametrize(
    ("percent", "answer", "score"), [("80", "y", "0.04"), ("80", "n", "0.64"), ("20", "y", "0.64"), ("20", "n", "0.04")]
)
def test_a_bet_on_no_is_a_forecast_of_one_less_its_confidence(percent: str, answer: str, score: str) -> None:
    """A confidence of 0.80 in NO is 0.20 for YES. Source: Forecaster Arena, Scoring Methodology, "1.3 Handling YES vs
    NO Bets".
    """
    assert Fraction(brier_row(answer, ada=percent)["brier"]) == Fraction(score)


def test_a_brier_score_of_15_hundredths_has_a_skill_of_4_tenths() -> None:
    """Ten forecasts, 0.003333 - 0.103333 + 0.25 = 0.15; 1 - 0.15 / 0.25 = 0.40, also against the base rate of a half.

    Source: Murphy (1973); Forecaster Arena, Scoring Methodology, "1.5 Brier Skill Score".
    """
    row = brier_row("nnnynyynyy", ada="10 10 40 40 40 80 80 80 80 80")
    assert row | {"contest": "cup", "participant": "ada"} == {
        "contest": "cup",
        "participant": "ada",
        "n": 10,
        "brier": "0.150000000",
        "base_rate": "0.500000000",
        "reliability": "0.003333333",
        "resolution_term": "0.103333333",
        "uncertainty": "0.250000000",
        "consensus_brier": "0.150000000",
        "skill_against_even_odds": "0.400000000",
        "skill_against_consensus": "0.000000000",
        "skill_against_base_rate": "0.400000000",
        "interpretation": "Good",
    }


def test_a_score_worse_than_the_reference_has_a_negative_skill() -> None:
    """Ada: ((0.2)² + (0.2)²) / 2 = 0.04; Bob: ((0.9)² + (0.3)²) / 2 = 0.45; the medians 45% and 25% score 0.1825.

    Against the consensus 1 - 0.45 / 0.1825 = -1.465753425; against even odds -0.8.
    """
    row = brier_row("yn", participant="bob", ada="80 20", bob="10 30")
    assert (row["brier"], row["consensus_brier"]) == ("0.450000000", "0.182500000")
    assert (row["skill_against_even_odds"], row["skill_against_consensus"]) == ("-0.800000000", "-1.465753425")
    assert row["skill_against_base_rate"] == "-0.800000000"


def test_a_skill_against_a_perfect_reference_is_empty() -> None:
    """If all questions resolve yes, the base rate is perfect; if the consensus was certain and right, it is perfect."""
    row = brier_row("yy", ada="80 60", bob="100 100", cyd="100 100")
    assert (row["uncertainty"], row["consensus_brier"]) == ("0.000000000", "0.000000000")
    assert (row["skill_against_base_rate"], row["skill_against_consensus"]) == (None, None)
    assert row["skill_against_even_odds"] == "0.600000000"  # 1 - 0.10 / 0.25


def test_the_consensus_is_scored_on_the_questions_that_the_participant_forecast() -> None:
    """Ada leaves out the second question, on which the consensus scores 0.25; on the others it scores 0.04 and 0.16."""
    percents = {"ada": "90 - 90", "bob": "70 50 30"}
    row = brier_row("yyy", **percents)
    assert (row["n"], row["brier"], row["consensus_brier"]) == (2, "0.010000000", "0.100000000")
    row = brier_row("yyy", participant="bob", **percents)
    assert (row["n"], row["consensus_brier"]) == (3, "0.150000000")
    row = brier_row("yyy", participant=CONSENSUS, **percents)
    assert (row["n"], row["brier"], row["consensus_brier"]) == (3, "0.150000000", "0.150000000")


@pytest.mark.parametrize(
    ("chances", "words"),
    [
        ("100", "Perfect"),
        ("99.9999999", "Excellent"),
        ("90", "Excellent"),
        ("60", "Good"),
        ("55", "Fair (at or near random)"),
        ("50", "Poor"),
        ("40", "Poor"),
        ("0", "Very Poor"),
    ],
)
def test_each_brier_score_has_an_interpretation(chances: str, words: str) -> None:
    """0, 1e-18, 0.01, 0.16, 0.2025, 0.25, 0.36, 1. Source: Forecaster Arena, Scoring Methodology, "Appendix B"."""
    assert brier_row("y", ada=chances)["interpretation"] == words


def test_the_interpretation_depends_on_the_exact_score() -> None:
    """(1 - 0.999999999)² = 1e-18 is printed as 0.000000000 but is not perfect."""
    row = brier_row("y", ada="99.9999999")
    assert (row["brier"], row["interpretation"]) == ("0.000000000", "Excellent")


def test_the_rows_come_in_order_of_contest_and_participant() -> None:
    """The order of the commands does not matter; a contest without a binary question that counts has no row."""
    commands = [
        *contest_of("y", "zip", "z", bob="10", ada="20"),
        contest("mid"),
        *contest_of("n", "a", "a", cyd="30", bob="40"),
    ]
    rows = [(row["contest"], row["participant"]) for row in table(oracle.projected(*commands), "brier")]
    assert rows == [
        *(("a", participant) for participant in (CONSENSUS, "bob", "cyd")),
        *(("zip", participant) for participant in (CONSENSUS, "ada", "bob")),
    ]


# --- over all contests


def test_over_all_contests_scores_are_pooled_and_contests_are_averaged() -> None:
    """0.01 on one question and 0.25, 0.25, 0.49 on three: 1.00 / 4, and (0.01 + 0.33) / 2.

    Source: Forecaster Arena, Scoring Methodology, "1.4 Aggregate Brier Score": the mean of all individual Brier scores.
    """
    projections = oracle.projected(*contest_of("y", ada="90"), *contest_of("yny", "cap", "c", ada="50 50 30"))
    [row] = table(projections, "brier_overall", participant="ada")
    assert row == {
        "participant": "ada",
        "contests": 2,
        "n": 4,
        "pooled_brier": "0.250000000",
        "mean_of_contest_means": "0.170000000",
    }


def test_a_question_in_two_contests_counts_in_each() -> None:
    """0.04 in both, and 0.36 in one: (0.04 + 0.04 + 0.36) / 3; (0.04 + 0.20) / 2."""
    shared = [*contest_of("yn", ada="80 60"), contest("cap", rules=TIME), entry("cap", "q0")]
    [row] = table(oracle.projected(*shared), "brier_overall", participant="ada")
    assert (row["contests"], row["n"]) == (2, 3)
    assert (row["pooled_brier"], row["mean_of_contest_means"]) == ("0.146666667", "0.120000000")


def test_a_contest_without_a_forecast_of_the_participant_counts_in_neither_mean() -> None:
    """Bob takes part in one of the two contests."""
    projections = oracle.projected(*contest_of("y", ada="90", bob="80"), *contest_of("y", "cap", "c", ada="70"))
    rows = {
        row["participant"]: (row["contests"], row["n"], row["pooled_brier"])
        for row in table(projections, "brier_overall")
    }
    assert rows["bob"] == (1, 1, "0.040000000")
    assert list(rows) == [CONSENSUS, "ada", "bob"]


# --- calibration


def test_a_bin_shows_its_forecasts_and_their_observed_frequency() -> None:
    """Forecasts of 80% and 85%, of which one came true, and of 90%, which came true, with Wilson intervals.

    For 1 of 2 the interval is 1/2 ± z / (2 √(2 + z²)), for 1 of 1 from 1 / (1 + z²) to 1; z = 1.959963984540054.
    """
    rows = table(oracle.projected(*contest_of("yny", ada="80 85 90")), "calibration", participant="ada")
    z = Decimal("1.959963984540054")
    wide, tiny = oracle.EXACT.divide(z, 2 * oracle.EXACT.sqrt(2 + z * z)), Decimal("1e-9")
    of_two = [str(limit.quantize(tiny)) for limit in (Decimal("0.5") - wide, Decimal("0.5") + wide)]
    of_one = str(oracle.EXACT.divide(Decimal(1), 1 + z * z).quantize(tiny))
    assert [list(row.values()) for row in rows] == [
        ["cup", "ada", "0.800000000", "0.900000000", 2, 1, "0.825000000", "0.500000000", *of_two],
        ["cup", "ada", "0.900000000", "1.000000000", 1, 1, "0.900000000", "1.000000000", of_one, "1.000000000"],
    ]


def test_a_bin_includes_its_lower_end_and_the_last_bin_both_ends() -> None:
    """10% is in the second bin, 10% - 1e-9 in the first, 100% in the last."""
    rows = table(oracle.projected(*contest_of("ynyny", ada="0 9.9999999 10 90 100")), "calibration", participant="ada")
    assert [(row["from_probability"], row["to_probability"], row["n"], row["happened"]) for row in rows] == [
        ("0.000000000", "0.100000000", 2, 1),
        ("0.100000000", "0.200000000", 1, 1),
        ("0.900000000", "1.000000000", 2, 1),
    ]


# --- against the slow definition


def mean(values: Sequence[Fraction]) -> Fraction:
    """The exact mean of a non-empty list."""
    return sum(values, Fraction(0)) / len(values)


def nine(number: Fraction | None) -> str | None:
    """A number as printed: nine decimals, rounded half-even once."""
    return None if number is None else f"{oracle.nine(number):f}"


def skill(score: Fraction, reference: Fraction | None) -> Fraction | None:
    """1 - score / reference; None without a reference or if it is 0."""
    return 1 - score / reference if reference else None


class Forecasts(NamedTuple):
    """One participant's scored forecasts in one contest."""

    contest: str
    participant: str
    rows: list[Row]

    @property
    def score(self) -> Fraction:
        """The mean of (p - o)²."""
        return mean([(Fraction(row.probability, NANO) - row.happened) ** 2 for row in self.rows])


def scored_forecasts(recorded: Sequence[Recorded]) -> Iterator[Forecasts]:
    """Yield the scored forecasts of each contest and participant."""
    for name in sorted(oracle.world(recorded).contests):
        rows = sorted(slow_sample(recorded, name).elements())
        for participant in sorted({row.participant for row in rows}):
            yield Forecasts(name, participant, [row for row in rows if row.participant == participant])


def aggregate(own: Forecasts) -> Printed:
    """A row of the table `brier` without its interpretation: Murphy's parts over groups of equal forecasts."""
    n, base_rate = len(own.rows), mean([Fraction(row.happened) for row in own.rows])
    reliability = resolved = Fraction(0)
    for value in {row.probability for row in own.rows}:
        happened = [Fraction(row.happened) for row in own.rows if row.probability == value]
        reliability += len(happened) * (Fraction(value, NANO) - mean(happened)) ** 2 / n
        resolved += len(happened) * (mean(happened) - base_rate) ** 2 / n
    uncertainty = base_rate * (1 - base_rate)
    assert own.score == reliability - resolved + uncertainty
    everywhere = all(row.consensus >= 0 for row in own.rows)
    of_consensus = [(Fraction(row.consensus, NANO) - row.happened) ** 2 for row in own.rows]
    consensus = mean(of_consensus) if everywhere else None
    numbers = {
        "brier": own.score,
        "base_rate": base_rate,
        "reliability": reliability,
        "resolution_term": resolved,
        "uncertainty": uncertainty,
        "consensus_brier": consensus,
        "skill_against_even_odds": skill(own.score, Fraction(1, 4)),
        "skill_against_consensus": skill(own.score, consensus),
        "skill_against_base_rate": skill(own.score, uncertainty),
    }
    printed = {name: nine(number) for name, number in numbers.items()}
    return {"contest": own.contest, "participant": own.participant, "n": n} | printed


@settings(max_examples=times(50), deadline=None)
@given(seasons())
def test_brier_aggregates_equal_the_slow_definition(recorded: list[Recorded]) -> None:
    """Contests share questions and some are sealed; the parts sum exactly."""
    projections = Projections(oracle.facts_in(recorded))
    rows = table(projections, "brier")
    words = [row.pop("interpretation") for row in rows]
    expected = list(scored_forecasts(recorded))
    assert rows == [aggregate(own) for own in expected]
    assert [word == "Perfect" for word in words] == [own.score == 0 for own in expected]
    for _, _, *columns in projections.brier_counts:
        for counts in zip(*columns, strict=True):
            row = exact_aggregate(Counts(*counts))
            assert row.brier == row.reliability - row.resolution_term + row.uncertainty


@settings(max_examples=times(30), deadline=None)
@given(seasons())
def test_means_over_contests_equal_the_slow_definition(recorded: list[Recorded]) -> None:
    """Both means are tested: over all scores, and over the contests' means."""
    everywhere = list(scored_forecasts(recorded))
    expected = []
    for participant in sorted({own.participant for own in everywhere}):
        mine = [own for own in everywhere if own.participant == participant]
        n = sum(len(own.rows) for own in mine)
        pooled = sum((len(own.rows) * own.score for own in mine), Fraction(0)) / n
        expected.append([participant, len(mine), n, nine(pooled), nine(mean([own.score for own in mine]))])
    rows = table(Projections(oracle.facts_in(recorded)), "brier_overall")
    assert [list(row.values()) for row in rows] == expected


@settings(max_examples=times(30), deadline=None)
@given(seasons())
def test_bins_equal_the_slow_definition(recorded: list[Recorded]) -> None:
    """Every forecast is in one bin, and the observed frequency lies in its interval."""
    projections = Projections(oracle.facts_in(recorded))
    expected = []
    edges = [NANO * tenth // 10 for tenth in range(10)] + [NANO + 1]
    for own in scored_forecasts(recorded):
        for lower, upper in pairwise(edges):
            inside = [row for row in own.rows if lower <= row.probability < upper]
            if inside:
                happened = sum(row.happened for row in inside)
                mean_forecast = mean([Fraction(row.probability, NANO) for row in inside])
                ends = [nine(Fraction(lower, NANO)), nine(Fraction(min(upper, NANO), NANO))]
                shares = [nine(mean_forecast), nine(Fraction(happened, len(inside)))]
                expected.append([own.contest, own.participant, *ends, len(inside), happened, *shares])
    rows = table(projections, "calibration")
    assert [list(row.values())[:-2] for row in rows] == expected
    for row in rows:
        low, observed, high = (Fraction(row[name]) for name in ("wilson_low", "observed_frequency", "wilson_high"))
        assert 0 <= low <= observed <= high <= 1
    counts = {(row["contest"], row["participant"]): row["n"] for row in table(projections, "brier")}
    assert counts == {
        key: sum(row["n"] for row in rows if key == (row["contest"], row["participant"])) for key in counts
    }


# --- admissions

RULES = structs.replace(PRESETS["autocast-2022"], name="attested")


def utc(text: str) -> int:
    """An instant in UTC, by Python's calendar, in µs since the epoch."""
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
        microseconds=1
    )


# A question that closes on Mar 23, 2022, 10:19 UTC, so that its cut-off is Mar 22, 2022, 23:59:59 UTC.
SEASON: dict[str, Any] = {
    "at": "2022-03-01T00:00:00Z",
    "opens_at": "2022-03-01T00:00:00Z",
    "closes_at": "2022-03-23T10:19:00Z",
}
START: list[AnyCommand] = [opened(**SEASON), contest(rules=RULES), entry()]


def attested(participant: str = "ada", question: str = "rain", **declared: Any) -> AnyCommand:
    """A forecast that claims the instant Mar 2, with an attestation."""
    attestation = Attestation(**declared) if declared else None
    return forecast(question, participant, at="2022-03-02T00:00:00Z", attestation=attestation)


def admissions(*commands: AnyCommand | tuple[AnyCommand, str], name: str = "cup") -> list[Printed]:
    """Return a contest's admissions; a command may have the instant at which the ledger's clock records it."""
    now = utc("2022-03-01T00:00:00")
    with Ledger.open(":memory:", clock=lambda: now) as ledger:
        for number, item in enumerate([*START, *commands]):
            command, when = item if isinstance(item, tuple) else (item, "")
            now = utc(when) if when else now
            ledger.handle(command, f"c{number}")
        recorded = [event for page in ledger.read() for event in page]
    return table(Projections(oracle.facts_in(recorded)), "admissions", contest=name)


def test_an_admission_shows_the_receipt_and_the_attestation() -> None:
    """The receipt is 12 d 11 h 59 min 59 s before the cut-off; the newest source is at least 11 h 59 min 59.000001 s
    before it.
    """
    declared = {"newest_source": "2022-03-21", "training_cutoff": "2021-03", "model_released": "2021-04-15"}
    clean = attested(**declared, restricted_sources=False, restricted_list="2022-09")
    assert admissions((clean, "2022-03-10T12:00:00")) == [
        {
            "contest": "cup",
            "question": "rain",
            "participant": "ada",
            "log_position": 4,
            "cutoff_at": "2022-03-22T23:59:59Z",
            "receipt": "in_time",
            "receipt_margin": "1079999",
            "earliest_at": "2022-03-20T10:00:00Z",
            "latest_at": "2022-03-22T11:59:59.999999Z",
            "information": "clean",
            "information_margin": "43199.000001",
            "restricted": "clean",
            "window": "open",
        }
    ]


@pytest.mark.parametrize(
    ("source", "ends", "verdict", "margin"),
    [
        ("2022-03-22T23:59:59Z", ("2022-03-22T23:59:59Z", "2022-03-22T23:59:59Z"), "clean", "0"),
        ("2022-03-23T01:59:59+02:00", ("2022-03-22T23:59:59Z", "2022-03-22T23:59:59Z"), "clean", "0"),
        (
            "2022-03-22T23:59:59.999999Z",
            ("2022-03-22T23:59:59.999999Z", "2022-03-22T23:59:59.999999Z"),
            "clean",
            "-0.999999",
        ),
        ("2022-03-23T00:00:00Z", ("2022-03-23T00:00:00Z", "2022-03-23T00:00:00Z"), "certain", "-1"),
        ("2022-03-22T11:59:59", ("2022-03-21T21:59:59Z", "2022-03-22T23:59:59Z"), "clean", "0"),
        ("2022-03-22 12:00:00", ("2022-03-21T22:00:00Z", "2022-03-23T00:00:00Z"), "possible", "-1"),
        ("2022-03-23T13:59:59", ("2022-03-22T23:59:59Z", "2022-03-24T01:59:59Z"), "possible", "-93600"),
        ("2022-03-23T14:00:00", ("2022-03-23T00:00:00Z", "2022-03-24T02:00:00Z"), "certain", "-93601"),
        ("2022-03-21", ("2022-03-20T10:00:00Z", "2022-03-22T11:59:59.999999Z"), "clean", "43199.000001"),
        ("2022-03-22", ("2022-03-21T10:00:00Z", "2022-03-23T11:59:59.999999Z"), "possible", "-43200.999999"),
        ("2022-03-22Z", ("2022-03-22T00:00:00Z", "2022-03-22T23:59:59.999999Z"), "clean", "-0.999999"),
        ("2022-03-23", ("2022-03-22T10:00:00Z", "2022-03-24T11:59:59.999999Z"), "possible", "-129600.999999"),
        ("2022-03-24", ("2022-03-23T10:00:00Z", "2022-03-25T11:59:59.999999Z"), "certain", "-216000.999999"),
        ("2021", ("2020-12-31T10:00:00Z", "2022-01-01T11:59:59.999999Z"), "clean", "6955199.000001"),
    ],
)
def test_the_newest_source_decides_on_a_leak(source: str, ends: tuple[str, str], verdict: str, margin: str) -> None:
    """11:59:59 is the last safe stamp without a time zone, and the day before is the last safe date;
    23:59:59Z is just in time. Source: Autocast competition of 2022.
    """
    [row] = admissions(attested(newest_source=source))
    assert (row["earliest_at"], row["latest_at"]) == ends
    assert (row["information"], row["information_margin"]) == (verdict, margin)


@pytest.mark.parametrize(
    ("declared", "ends", "verdict", "margin"),
    [
        ({}, (None, None), "undeclared", None),
        ({"note": "ask me"}, (None, None), "undeclared", None),
        ({"training_cutoff": "2021-09"}, ("2021-08-31T10:00:00Z", None), "undeclared", None),
        ({"training_cutoff": "2022-04"}, ("2022-03-31T10:00:00Z", None), "certain", None),
        ({"model_released": "2021-09"}, (None, None), "undeclared", None),
        ({"model_released": "2022-04"}, (None, None), "undeclared", None),
        (
            {"newest_source": "2022-03-01", "model_released": "2022-01"},
            ("2022-02-28T10:00:00Z", "2022-03-02T11:59:59.999999Z"),
            "clean",
            "1771199.000001",
        ),
        (
            {"newest_source": "2022-03-01", "model_released": "2022-03-25"},
            ("2022-02-28T10:00:00Z", "2022-03-26T11:59:59.999999Z"),
            "possible",
            "-302400.999999",
        ),
        (
            {"newest_source": "2022-03-01", "model_released": "2022-03-25", "training_cutoff": "2021"},
            ("2022-02-28T10:00:00Z", "2022-03-02T11:59:59.999999Z"),
            "clean",
            "1771199.000001",
        ),
        (
            {"newest_source": "2021-01-01", "training_cutoff": "2022-03-24Z"},
            ("2022-03-24T00:00:00Z", "2022-03-24T23:59:59.999999Z"),
            "certain",
            "-172800.999999",
        ),
    ],
)
def test_a_model_may_know_more_than_its_sources(
    declared: dict[str, str], ends: tuple[str | None, str | None], verdict: str, margin: str | None
) -> None:
    """Training data count, up to the model's release at the latest; without sources nothing is clean, and an end
    without a bound is empty.
    """
    [row] = admissions(attested(**declared))
    assert (row["earliest_at"], row["latest_at"]) == ends
    assert (row["information"], row["information_margin"]) == (verdict, margin)


@pytest.mark.parametrize(
    ("declared", "verdict"),
    [
        ({"restricted_sources": False, "restricted_list": "2022-09"}, "clean"),
        ({"restricted_sources": True, "restricted_list": "2022-09"}, "restricted"),
        ({"restricted_sources": True}, "restricted"),
        ({"restricted_sources": False}, "undeclared"),
        ({"restricted_list": "2022-09"}, "undeclared"),
        ({}, "undeclared"),
    ],
)
def test_a_declaration_of_no_restricted_sources_needs_a_list(declared: dict[str, Any], verdict: str) -> None:
    """A declaration that a restricted source was used counts with or without a list."""
    [row] = admissions(attested(**declared))
    assert row["restricted"] == verdict


@pytest.mark.parametrize(
    ("when", "receipt", "margin"),
    [
        ("2022-03-22T23:59:58.5", "in_time", "0.5"),
        ("2022-03-22T23:59:59", "in_time", "0"),
        ("2022-03-22T23:59:59.999999", "in_time", "-0.999999"),
        ("2022-03-23T00:00:00", "late", "-1"),
        ("2022-04-01T00:00:00", "late", "-777601"),
    ],
)
def test_a_receipt_is_late_by_the_ledgers_own_clock(when: str, receipt: str, margin: str) -> None:
    """The instant that the forecast claims does not matter: a receipt before 00:00:00Z of the close date is in time."""
    [row] = admissions((attested(), when))
    assert (row["receipt"], row["receipt_margin"]) == (receipt, margin)


@pytest.mark.parametrize(
    ("opens_at", "window"),
    [("2021-07-08T17:20:00Z", "empty"), ("2021-07-08T00:00:00Z", "empty"), ("2021-07-07T23:59:59.999999Z", "open")],
)
def test_a_question_that_opens_on_its_close_date_leaves_no_time_to_forecast(opens_at: str, window: str) -> None:
    """The question opens at 17:20Z and closes at 22:25Z on the same day, after its cut-off. Source: Autocast data."""
    flash = opened("flash", at="2021-07-01T00:00:00Z", opens_at=opens_at, closes_at="2021-07-08T22:25:00Z")
    late = forecast("flash", at="2021-07-08T18:00:00Z")
    [row] = admissions(flash, entry(question="flash"), late)
    assert (row["cutoff_at"], row["window"]) == ("2021-07-07T23:59:59Z", window)


def test_the_cutoff_depends_on_the_scheduled_close() -> None:
    """An early close or the instant at which the answer was known does not change it."""
    early: list[AnyCommand] = [
        closing(at="2022-03-16T00:00:00Z"),
        resolution(at=AFTER, known_at="2022-03-15T00:00:00Z"),
    ]
    [row] = admissions(attested(), *early)
    assert row["cutoff_at"] == "2022-03-22T23:59:59Z"


def test_each_forecast_of_a_participant_is_admitted_on_its_own() -> None:
    """Rows are in order of question, participant and log position; a withdrawal is not a forecast."""
    wind: list[AnyCommand] = [opened("wind", **SEASON), entry(question="wind")]
    late, gone = (attested(), "2022-03-24T00:00:00"), withdrawal(at="2022-03-02T00:00:00Z")
    commands = [attested("bob"), attested("bob", "wind"), attested(newest_source="2022-03-24"), gone, late]
    rows = admissions(*wind, *commands)
    assert [(row["question"], row["participant"], row["log_position"], row["receipt"]) for row in rows] == [
        ("rain", "ada", 8, "in_time"),
        ("rain", "ada", 10, "late"),
        ("rain", "bob", 6, "in_time"),
        ("wind", "bob", 7, "in_time"),
    ]
    assert [row["information"] for row in rows] == ["certain", "undeclared", "undeclared", "undeclared"]


def test_forecasts_on_questions_of_every_kind_and_status_are_examined() -> None:
    """The questions are open, resolved or annulled; forecasts made before the question joined the contest count too."""
    kinds = [
        (
            choices("colour", COLOURS, **SEASON),
            forecast("colour", at=SEASON["at"], probabilities={"red": 1, "green": 0, "blue": 0}),
        ),
        (quartiles("flow"), forecast("flow", at=day(11), quantiles=(1, 2, 3))),
    ]
    rules = structs.replace(RULES, quantile_kernel="pinball", total="mean", name="all kinds")
    rows = admissions(
        *[command for pair in kinds for command in pair],
        contest("league", rules=rules),
        *(entry("league", name) for name in ("colour", "flow", "rain")),
        attested(),
        annulment("colour"),
        resolution(at=AFTER),
        name="league",
    )
    assert [(row["question"], row["cutoff_at"]) for row in rows] == [
        ("colour", "2022-03-22T23:59:59Z"),
        ("flow", "2026-03-19T23:59:59Z"),
        ("rain", "2022-03-22T23:59:59Z"),
    ]


def test_only_attested_contests_are_examined() -> None:
    """One forecast has a row in each of two attested contests, and in no other."""
    others: list[AnyCommand] = [contest("cap", rules=RULES), entry("cap"), contest("plain", rules=TIME), entry("plain")]
    by_contest = [
        table(oracle.projected(*START, *others, attested()), "admissions", contest=name) for name in ("cap", "cup")
    ]
    assert [(row["contest"], row["log_position"]) for [row] in by_contest] == [("cap", 8), ("cup", 8)]
    assert table(oracle.projected(*START, *others, attested()), "admissions", contest="plain") == []


def test_a_finalized_contest_has_no_later_admissions() -> None:
    """Its leaderboard has no later forecasts either."""
    assert [row["participant"] for row in admissions(attested("ada"), finalization(), attested("bob"))] == ["ada"]


def test_admissions_as_of_a_position_have_the_forecasts_up_to_it() -> None:
    """The position moves forecast by forecast."""
    recorded = oracle.history(*START, attested("ada"), attested("bob"), attested("ada"))
    cuts = [table(Projections(oracle.facts_in(recorded[:cut])), "admissions") for cut in range(3, 7)]
    assert [[row["log_position"] for row in rows] for rows in cuts] == [[], [4], [4, 5], [4, 6, 5]]


# --- printed


def printed(path: str, projection: str, form: str, *more: str) -> str:
    """Return the output of the command `table`."""
    result = CliRunner().invoke(main, ["table", path, projection, "--format", form, *more])
    assert (result.exit_code, "as of log position " in result.stderr) == (FINE, True), result.stderr
    return result.stdout


def test_contests_are_printed_in_each_format(tmp_path: Path) -> None:
    """Control characters are escaped, and spreadsheet formulas are quoted in CSV."""
    odd = contest("odd", title='=1+1, "x"\x1b[2J', currency="EUR", pool="1.5")
    log = written(tmp_path / "log.db", [odd, contest("cup")])
    head = "contest  title             rules             pool  currency  sealed_at  sealed_digest  paid"
    far = " " * 21  # columns of trading contests
    assert printed(log, "contests", "table").splitlines() == [
        f"{head}  series  starts_at  state",
        f"cup                        relative-2022-04  0.00                                      0.00{far}open",
        f'odd      =1+1, "x"\\x1b[2J  relative-2022-04  1.50  EUR                                 0.00{far}open',
    ]
    assert printed(log, "contests", "csv").splitlines() == [
        "contest,title,rules,pool,currency,sealed_at,sealed_digest,paid,series,starts_at,state",
        "cup,,relative-2022-04,0.00,,,,0.00,,,open",
        'odd,"\'=1+1, ""x""\\x1b[2J",relative-2022-04,1.50,EUR,,,0.00,,,open',
    ]
    nothing = {
        "contest": "cup",
        "title": "",
        "rules": "relative-2022-04",
        "pool": "0.00",
        "currency": "",
        "paid": "0.00",
        "series": "",
        "starts_at": None,
        "state": "open",
    }
    first, second = json.loads(printed(log, "contests", "json"))
    assert first == nothing | {"sealed_at": None, "sealed_digest": None}
    assert second["title"] == '=1+1, "x"\x1b[2J'


def test_brier_scores_are_printed_in_each_format(tmp_path: Path) -> None:
    """80% on a question that resolves no scores 0.64: skills are negative in every format, and missing values are
    empty.
    """
    log = written(tmp_path / "log.db", [*contest_of("n", ada="80")])
    loss, skills = (
        "1,0.640000000,0.000000000,0.640000000,0.000000000,0.000000000,0.640000000",
        "-1.560000000,0.000000000",
    )
    header, *rows = printed(log, "brier", "csv").splitlines()
    assert rows == [f"cup,{participant},{loss},{skills},,Very Poor" for participant in (CONSENSUS, "ada")]
    parsed = json.loads(printed(log, "brier", "json"))
    assert list(parsed[0]) == header.split(",")
    assert (parsed[1]["skill_against_even_odds"], parsed[1]["skill_against_base_rate"]) == ("-1.560000000", None)
    names, _, ada = printed(log, "brier", "table").splitlines()
    assert names.split() == header.split(",")
    assert ada.split() == ["cup", "ada", *loss.split(","), *skills.split(","), "Very", "Poor"]


def test_a_calibration_is_printed_as_a_table(tmp_path: Path) -> None:
    """Numbers are right-aligned under their names; 0.793450686 is z² / (1 + z²), for 0 of 1 and 1 of 1."""
    ends = "contest  participant  from_probability  to_probability  n  happened"
    shares = "  mean_forecast  observed_frequency   wilson_low  wilson_high"
    none = "    0.250000000         0.000000000  0.000000000  0.793450686"
    all_of_it = "    0.800000000         1.000000000  0.206549314  1.000000000"
    assert printed(
        written(tmp_path / "log.db", [*contest_of("yn", ada="80 25")]), "calibration", "table"
    ).splitlines() == [
        f"{ends}{shares}",
        f"cup      [consensus]       0.200000000     0.300000000  1         0{none}",
        f"cup      [consensus]       0.800000000     0.900000000  1         1{all_of_it}",
        f"cup      ada               0.200000000     0.300000000  1         0{none}",
        f"cup      ada               0.800000000     0.900000000  1         1{all_of_it}",
    ]


def test_admissions_are_printed_in_each_format(tmp_path: Path) -> None:
    """The receipt is on Mar 31, 2026: 1,469 days and one second late."""
    log = written(tmp_path / "log.db", [*START, attested(newest_source="2022-03-23T00:00:00Z")])
    cells = ["cup", "rain", "ada", "4", "2022-03-22T23:59:59Z", "late", "-126921601"]
    cells += ["2022-03-23T00:00:00Z", "2022-03-23T00:00:00Z", "certain", "-1", "undeclared", "open"]
    header, row = printed(log, "admissions", "csv").splitlines()
    assert row.split(",") == cells
    [parsed] = json.loads(printed(log, "admissions", "json"))
    assert parsed == dict(zip(header.split(","), cells, strict=True)) | {"log_position": 4}
    assert [line.split() for line in printed(log, "admissions", "table").splitlines()] == [header.split(","), cells]


@pytest.mark.parametrize("projection", ["contests", "brier", "brier_overall", "calibration", "admissions"])
def test_an_empty_table_is_printed_as_the_names_of_its_columns(tmp_path: Path, projection: str) -> None:
    """JSON has an empty array."""
    log = written(tmp_path / "log.db", [opened()])
    names = [column.name for column in CATALOGUE[projection].columns]
    assert printed(log, projection, "csv") == ",".join(names) + "\n"
    assert printed(log, projection, "table") == "  ".join(names) + "\n"
    assert json.loads(printed(log, projection, "json")) == []


def test_a_table_can_be_printed_as_of_a_log_position(tmp_path: Path) -> None:
    """Before the second question resolves, only the first counts."""
    log = written(tmp_path / "log.db", [*contest_of("yn", ada="80 20")])
    assert [row["n"] for row in json.loads(printed(log, "brier", "json"))] == [2, 2]
    assert [row["n"] for row in json.loads(printed(log, "brier", "json", "--as-of", "8"))] == [1, 1]
