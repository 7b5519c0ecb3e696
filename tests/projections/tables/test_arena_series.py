"""Tests of the boards by series, and of the words for returns on every board."""

from fractions import Fraction

import pytest
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand, EnrolParticipant
from forecast_ledger.projections.trading.arena import return_words
from tests.support import oracle
from tests.support.given import (
    SUNDAY,
    bet,
    cohort,
    day,
    decision,
    enrolment,
    entry,
    exclusion,
    quote,
    resolution,
    trading_floor,
)

# Forecaster Arena, Scoring Methodology, "Appendix B: Reference Values". Its rows are "> +50%", "+20% to +50%",
# "+5% to +20%", "-5% to +5%", "-20% to -5%" and "< -20%"; where two of them hold a number, the worse one applies.
PUBLISHED = {
    "Exceptional": ["50.000001", "51", "1000000"],
    "Excellent": ["50", "20.000001", "35"],
    "Good": ["20", "5.000001", "7"],
    "Neutral": ["5", "0", "-4.999999"],
    "Poor": ["-5", "-20", "-12"],
    "Very Poor": ["-20.000001", "-100", "-250"],
}


@pytest.mark.parametrize(("words", "percents"), PUBLISHED.items())
def test_a_return_is_called_by_the_words_of_the_document(words: str, percents: list[str]) -> None:
    """Its example, a return of 7 percent, is Good."""
    assert {return_words(Fraction(percent)) for percent in percents} == {words}


def test_each_series_has_a_board_of_its_own() -> None:
    """Two cohorts of one series count together, a contest of another one apart, and hidden participants not at all.

    Ada buys 1,000 of yes at 0.40 in both cohorts of the series: 2,500 shares each, which pay 2,500. Her profit is 3,000
    of deposits of 20,000: 15 percent. Bob loses 2,500 of 20,000: -12.5 percent. Cid would be first.
    """
    other: list[AnyCommand] = [
        cohort("second", at=day(8), series="bench"),
        entry("second", at=day(8)),
        cohort("third", at=day(8), series="x"),
    ]
    story: list[AnyCommand] = [
        *trading_floor("ada", "bob", "cid", series="bench"),
        *other,
        *(enrolment("second", participant, at=day(8)) for participant in ("ada", "bob")),
        enrolment("third", "ada", at=day(8)),
        decision(bet(1_000)),
        decision(bet(2_500, "NO"), participant="bob"),
        decision(bet(2_500), participant="cid"),
        quote(at=day(8), quoted_at=day(8)),
        decision(bet(1_000), contest="second", at=day(8)),
        resolution(at=day(9)),
        exclusion("week", "cid", level="hidden", at=day(9)),
    ]
    table = oracle.projected(*story).table("arena_series")
    columns = ("series", "by", "name", "rank", "contests", "participants", "profit", "return_percent", "interpretation")
    assert [tuple(row[column] for column in columns) for row in table.rows()] == [
        ("bench", "participant", "ada", 1, 2, 2, "3000.00", "15.000000000", "Good"),
        ("bench", "participant", "bob", 2, 2, 2, "-2500.00", "-12.500000000", "Poor"),
        ("x", "participant", "ada", 1, 1, 1, "0.00", "0.000000000", "Neutral"),
    ]
    assert day(8) > SUNDAY


def test_every_board_has_the_word_for_a_return() -> None:
    """The board of a contest says the same of the return as that over all contests.

    Ada's 2,500 shares for 1,000 pay 2,500: 15 percent of 10,000. Bob loses 2,500: -25 percent.
    """
    story: list[AnyCommand] = [
        *trading_floor("ada", "bob"),
        decision(bet(1_000)),
        decision(bet(2_500, "NO"), participant="bob"),
        resolution(at=day(9)),
    ]
    story = [
        structs.replace(each, family=each.participant) if isinstance(each, EnrolParticipant) else each for each in story
    ]
    projections = oracle.projected(*story)
    words = [("ada", "Good"), ("bob", "Very Poor")]
    board = projections.table("arena_leaderboard").rows()
    assert [(row["participant"], row["interpretation"]) for row in board] == words
    families = projections.table("arena_overall").only("by", "family").rows()
    assert [(row["name"], row["interpretation"]) for row in families] == words
