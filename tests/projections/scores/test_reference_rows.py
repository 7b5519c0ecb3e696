"""Reference forecasters: what they forecast, and that their rows change nobody else's."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.ledger.model.rules import REFERENCE_ROWS, RuleSet
from forecast_ledger.projections.scores.range_kernels import fraction_of, value_at
from forecast_ledger.projections.scores.reference_terms import uniform_numbers
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.explain.explain_scores import score
from forecast_ledger.replay.explain.what_if import under_rules
from forecast_ledger.replay.reading.log import Log
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import (
    AFTER,
    BEFORE,
    OPENS,
    choices,
    contest,
    day,
    entry,
    exclusion,
    finalization,
    forecast,
    numeric,
    opened,
    quartiles,
    quote,
    resolution,
)
from tests.support.logs import written
from tests.support.seasons import Season, drawn_rules

Row = dict[str, Any]
BRIER = RuleSet(name="brier", kernel="brier", period="covered", total="mean", reference_rows=REFERENCE_ROWS)
PEERS = RuleSet(name="peers", kernel="ln", cdf_kernel="ln", reference="peers", reference_rows=REFERENCE_ROWS)


def scores(*commands: AnyCommand, column: str = "score") -> dict[str, str]:
    """One column of the scores, by participant."""
    return {row["participant"]: row[column] for row in oracle.projected(*commands).table("scores").rows()}


def asked(rules: RuleSet, *made: AnyCommand, **fields: Any) -> list[AnyCommand]:
    """A contest of one binary question, on which Ada forecasts 0.8 from the opening on, that came true."""
    return [opened(**fields), contest(rules=rules), entry(), forecast(probability="0.8", at=OPENS), *made, resolution()]


def test_each_reference_forecaster_is_scored_like_a_participant() -> None:
    """Brier scores on an outcome that happened, over the ten days of the question, of which the market has seven.

    Ada 0.2² = 0.04, and so the consensus; one half 0.25; the market 0.5 for two days, 0.9 for five:
    (2 · 0.25 + 5 · 0.01) / 7 = 0.55 / 7.
    """
    quotes = [quote(at=day(13), prices={"yes": "0.5"}), quote(at=day(15), prices={"yes": "0.9"})]
    expected = {"ada": "0.040000000", "[consensus]": "0.040000000", "[always-half]": "0.250000000"}
    expected |= {"[uniform]": "0.250000000", "[market]": "0.078571429"}
    assert scores(*asked(BRIER, *quotes)) == expected
    coverage = dict.fromkeys(expected, "1.000000000") | {"[market]": "0.700000000"}
    assert scores(*asked(BRIER, *quotes), column="coverage") == coverage


def test_reference_forecasters_have_no_rank_and_no_prize() -> None:
    """The board shows them in order of worth; they use up no rank, and are no submissions of anybody."""
    rules = structs.replace(PEERS, take="positive_square", kernel="ln")
    commands = asked(rules, forecast(participant="bob", probability="0.7", at=OPENS), quote(at=BEFORE))
    commands[1] = contest(rules=rules, pool=100)
    rows = list(oracle.projected(*commands).table("leaderboard").rows())
    ranks = {row["participant"]: (row["rank"], row["excluded"]) for row in rows}
    assert ranks == {
        "ada": (1, ""),
        "bob": (2, ""),
        "[consensus]": (None, "consensus"),
        "[always-half]": (None, "reference"),
        "[uniform]": (None, "reference"),
        "[market]": (None, "reference"),
    }
    assert {row["participant"]: row["prize"] for row in rows if row["prize"] != "0.00"} == {"ada": "100.00"}
    assert {row["submissions"] for row in rows} == {1}


@pytest.mark.parametrize("early", [True, False])
def test_the_quote_that_stands_at_the_opening_is_the_markets_forecast(early: bool) -> None:
    """Of two quotes before the opening the last one stands, even if early forecasts of participants do not."""
    quotes = [quote(at=BEFORE, prices={"yes": price}) for price in ("0.1", "0.6")]
    rules = structs.replace(BRIER, early_forecasts=early)
    assert scores(*asked(rules, *quotes))["[market]"] == "0.160000000"
    assert scores(*asked(rules, *quotes), column="coverage")["[market]"] == "1.000000000"


def test_quotes_after_scored_time_do_not_count() -> None:
    """A question without a quote in time has no score of the market."""
    assert "[market]" not in scores(*asked(BRIER, quote(at=day(25), prices={"yes": "0.9"})))
    assert "[market]" not in scores(*asked(BRIER))


def test_by_the_recorded_clock_a_quote_counts_from_when_it_was_recorded() -> None:
    """A quote of the first day that is recorded when the question is half over covers the other half."""
    rules = structs.replace(BRIER, clock="recorded", reference_rows=("market",))
    said = opened(), contest(rules=rules), entry(), quote(at=OPENS, prices={"yes": "0.9"}), resolution()
    instants = map(read_instant, (BEFORE, BEFORE, BEFORE, day(15), AFTER))
    [row] = oracle.projected(*said, at=instants).table("scores").rows()
    assert (row["participant"], row["score"], row["coverage"]) == ("[market]", "0.010000000", "0.500000000")


def test_prices_of_several_outcomes_are_divided_by_their_sum_once_all_are_known() -> None:
    """Prices 0.5, 0.4 and 0.3 are 5/12, 4/12 and 3/12: by largest remainder 0.416666667, 0.333333333 and 0.25.

    Before the third price, and while all are 0, nothing or the forecast before stands. ln 0.416666667 for all of the
    eight days from the third price on, of ten.
    """
    rules = RuleSet(name="ln", kernel="ln", reference_rows=("market", "always_half"))
    made = [
        quote("colour", at=day(10), prices={"red": "0.5", "green": "0.4"}),
        quote("colour", at=day(12), prices={"blue": "0.3"}),
        quote("colour", at=day(16), prices={"red": 0, "green": 0, "blue": 0}),
    ]
    start: list[AnyCommand] = [choices(), contest(rules=rules), entry(question="colour")]
    log = [*start, *made, resolution("colour", outcome="red")]
    rows = scores(*log)
    assert [*rows] == ["[market]"]  # one half is for binary questions
    exact = (oracle.logarithm("ln", Fraction(416_666_667, 10**9)) * 8 / 10).quantize(Decimal("1e-9"))
    assert rows["[market]"] == f"{exact}"


@pytest.mark.parametrize(
    ("question", "value"),
    [
        (choices(), {"outcome": "red"}),
        (opened("q"), {}),
        (numeric(), {"value": 1}),
        (numeric(open_lower=True, open_upper=True), {"value": 1}),
        (numeric(open_lower=True), {"value": -5}),
    ],
)
def test_the_uniform_forecaster_scores_nothing_against_the_uniform_distribution(question: Any, value: Any) -> None:
    """It is that distribution, to the last digit, though a third is not a whole number of 1e-9."""
    rules = structs.replace(PEERS, reference="uniform", reference_rows=("uniform",))
    log = [question, contest(rules=rules), entry(question=question.question), resolution(question.question, **value)]
    for column, nothing in (("score", "0.000000000"), ("numerator", "0")):
        assert scores(*log, column=column) == {"[uniform]": nothing}


def test_the_quantiles_of_the_uniform_forecaster_are_those_of_the_range() -> None:
    """The quartiles of 0 to 4 are 1, 2 and 3; of the answer 2.5, 2 (0.25 · 1.5 + 0.5 · 0.5 + 0.25 · 0.5) / 3 = 0.5."""
    rules = RuleSet(name="wis", quantile_kernel="pinball", period="covered", total="mean", reference_rows=("uniform",))
    log: list[AnyCommand] = [quartiles(), contest(rules=rules), entry(question="flow"), resolution("flow", value="2.5")]
    assert scores(*log) == {"[uniform]": "0.500000000"}


def test_the_quantiles_of_a_logarithmic_range_are_even_in_the_logarithm() -> None:
    """Of 1 to 100, the levels 0.25, 0.5 and 0.75 are at 10^0.5, 10 and 10^1.5."""
    levels = (250_000_000, 500_000_000, 750_000_000)
    span = NumericRange(lower="1", upper="100", zero_point="0", levels=levels, decimals=6)
    assert uniform_numbers(span, 0) == [3_162_278, 10_000_000, 31_622_777]


RANGES: list[tuple[str, str, str | None]] = [("0", "4", None), ("1", "100", "0"), ("1", "3", "9")]


@given(st.fractions(0, 1, max_denominator=10**6), st.sampled_from(RANGES))
def test_a_value_is_at_the_place_that_it_is_the_value_of(place: Fraction, bounds: tuple[str, str, str | None]) -> None:
    """fraction_of inverts value_at, to the thirty decimals of places."""
    lower, upper, zero = bounds
    span = NumericRange(lower=lower, upper=upper, zero_point=zero)
    assert abs(fraction_of(value_at(place, span), span) - place) <= Fraction(1, 10**29)


def test_a_reference_forecaster_never_has_the_name_of_a_participant() -> None:
    """It gets more brackets, in all tables, and the participant keeps its rows."""
    taken = [forecast(participant=who, probability="0.9", at=OPENS) for who in ("[market]", "[[uniform]]", "[uniform]")]
    rows = scores(*asked(BRIER, *taken, quote(at=BEFORE, prices={"yes": "0.5"})))
    assert {who: rows[who] for who in rows if who not in {"ada", "[consensus]"}} == {
        "[market]": "0.010000000",
        "[[uniform]]": "0.010000000",
        "[uniform]": "0.010000000",
        "[[market]]": "0.250000000",
        "[[[uniform]]]": "0.250000000",
        "[always-half]": "0.250000000",
    }


def test_excluding_an_id_in_brackets_does_not_touch_a_reference_forecaster() -> None:
    """The level is that of a participant of this id, who has no forecast."""
    log = asked(BRIER, exclusion(participant="[uniform]", level="hidden"))
    rows = {row["participant"]: row["excluded"] for row in oracle.projected(*log).table("leaderboard").rows()}
    assert rows["[uniform]"] == "reference"


def test_a_quote_that_is_recorded_after_the_answer_counts_until_the_board_is_sealed() -> None:
    """It claims an instant of scored time; the sealed board stays as it was."""
    late = quote(at=day(15), prices={"yes": "0.9"})
    assert scores(*asked(BRIER), late)["[market]"] == "0.010000000"
    sealed = [*asked(BRIER), finalization(), late]
    assert "[market]" not in scores(*sealed)


def told(random: Random, rules: RuleSet) -> tuple[Projections, Projections]:
    """A season without reference forecasters, and the same log with all of them."""
    season = Season(random, structs.replace(rules, reference_rows=(), score_consensus=False), quoted=0.7, uncounted=0.1)
    projections = Projections(oracle.facts_in(season.recorded()))
    rows = tuple(name for name in REFERENCE_ROWS if name != "consensus" or rules.quantile_kernel == "none")
    contest_rules = projections.facts.contests["cup0"].opened.rules
    return projections, under_rules(projections, "cup0", structs.replace(contest_rules, reference_rows=rows))


@settings(max_examples=times(25), deadline=None)
@given(st.integers(0, 2**64).map(Random))
def test_reference_forecasters_change_no_digit_of_anybodys_score(random: Random) -> None:
    """Scores, parts, totals, ranks and prizes of participants are the same with and without their rows."""
    without, with_rows = told(random, drawn_rules(random))
    for table in ("scores", "score_parts", "leaderboard", "kind_means", "prizes", "brier", "calibration"):
        expected = list(without.table(table).rows())
        others = [row for row in with_rows.table(table).rows() if not row["participant"].startswith("[")]
        assert others == [row for row in expected if not row["participant"].startswith("[")], table


@pytest.mark.parametrize("name", ["[always-half]", "[uniform]", "[market]"])
@pytest.mark.parametrize("rules", [BRIER, PEERS], ids=lambda rules: str(rules.name))
def test_the_score_of_a_reference_forecaster_is_explained_by_its_parts(
    name: str, rules: RuleSet, tmp_path: Path
) -> None:
    """The parts add up to the score, and each names the event that it follows from: the opening, or a quote."""
    quotes = [quote(at=day(13), prices={"yes": "0.5"}), quote(at=day(15), prices={"yes": "0.9"})]
    own = score(Log(written(tmp_path / "log.db", asked(rules, *quotes))), "cup", "rain", name)
    assert sum(Decimal(part["points"]) for part in own.parts) == Decimal(own.number["score"])
    tags = {row.position: type(row.event).__name__ for row in oracle.history(*asked(rules, *quotes))}
    expected = ["PricesQuoted", "PricesQuoted"] if name == "[market]" else ["QuestionOpened"]
    assert [tags[part["forecast"]] for part in own.parts] == expected
    assert sum(event["type"] == "prices_quoted" for event in own.events) == (2 if name == "[market]" else 0)
