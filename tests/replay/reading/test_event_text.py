"""Events in words: one sentence an event, the same in every report."""

from typing import Any

import pytest
from hypothesis import given

from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import GENESIS, Recorded
from forecast_ledger.replay.audit import browse
from forecast_ledger.replay.reading import event_text
from forecast_ledger.replay.reading.event_text import OutcomeNames
from tests.ledger.model.test_log import EVENTS
from tests.support import oracle
from tests.support.given import OPENS, addition, choices, day, forecast, removal, resolution

OF: dict[str, Any] = {"at": 0, "contest": "week", "participant": "ada"}
ENDED: dict[str, Any] = {**OF, "question": "rain", "position": 1, "outcome": 0}
WORDS: dict[str, tuple[events.AnyEvent, str]] = {
    "a forecast": (
        events.ForecastMade(at=0, question="rain", participant="ada", probabilities=(700_000_000, 300_000_000)),
        "ada on rain: 0.7, 0.3",
    ),
    "a cdf": (
        events.ForecastMade(at=0, question="mm", participant="ada", cdf=(0, 10**10)),
        "ada on mm: a cdf of 2 values",
    ),
    "a cdf that was made from points": (
        events.ForecastMade(
            at=0,
            question="mm",
            participant="ada",
            cdf=(0, 10**10),
            points=events.StatedPoints(levels=(10**8, 9 * 10**8), quantiles=("4", "12.5"), method="linear"),
        ),
        "ada on mm: a cdf of 2 values, linear from 4 at 0.1, 12.5 at 0.9",
    ),
    "probabilities that were made from shares": (
        events.ForecastMade(
            at=0,
            question="rain",
            participant="ada",
            probabilities=(6 * 10**8, 4 * 10**8),
            normalized=events.StatedShares(shares=(3 * 10**8, 2 * 10**8), rule="by_sum"),
        ),
        "ada on rain: 0.6, 0.4, by_sum from 0.3, 0.2",
    ),
    "a question without an order": (
        events.QuestionOpened(
            at=0, question="q", kind="multiple_choice", outcomes=("a", "b"), opens_at=0, closes_at=10**6, ordered=False
        ),
        "q, multiple_choice, without an order, until 1970-01-01T00:00:01Z",
    ),
    "a forecast with an end": (
        events.ForecastMade(at=0, question="mm", participant="ada", cdf=(0, 10**10), until=1_000_000),
        "ada on mm: a cdf of 2 values, until 1970-01-01T00:00:01Z",
    ),
    "one forecast in place of others": (
        events.ForecastsRetracted(at=0, question="rain", participant="ada", restated=1, reason="a typing error"),
        "ada on rain, 1 forecast instead: a typing error",
    ),
    "payouts": (
        events.QuestionResolved(at=0, question="rain", outcome=-1, payouts=(500_000_000, 500_000_000), known_at=0),
        "rain: payouts 0.5, 0.5, known at 1970-01-01T00:00:00Z",
    ),
    "payouts of a third": (
        events.QuestionResolved(at=0, question="q", outcome=-1, payout_unit=6, payouts=(2, 1, 3), known_at=0),
        "q: payouts 1/3, 1/6, 0.5, known at 1970-01-01T00:00:00Z",
    ),
    "a settlement at a third": (
        events.PositionSettled(**ENDED, shares=3_000_000, cost=0, payout=1, payout_unit=3, proceeds=1_000_000),
        "ada in week, position 1 on rain, outcome 0: 3.00 shares that cost 0.00, at 1/3 for 1.00",
    ),
    "a settlement": (
        events.PositionSettled(**ENDED, shares=1_250_000_000, cost=500_000_000, payout=10**9, proceeds=1_250_000_000),
        "ada in week, position 1 on rain, outcome 0: 1250.00 shares that cost 500.00, at 1 for 1250.00",
    ),
    "voided trades": (
        events.TradesVoided(**ENDED, shares=0, cost=0, amount=-2_500_001),
        "ada in week, position 1 on rain, outcome 0: 0.00 shares that cost 0.00, for -2.500001",
    ),
    "an amount with a reason": (events.CashWithdrawn(**OF, amount=5_000_000, reason="fee"), "ada in week: 5.00: fee"),
    "an instant of no calendar": (
        events.QuestionResolved(at=0, question="rain", outcome=0, known_at=2**62),
        "rain: outcome 0, known at 4611686018427387904 µs since 1970",
    ),
}


@pytest.mark.parametrize(("event", "words"), WORDS.values(), ids=WORDS.keys())
def test_an_event_is_one_sentence(event: events.AnyEvent, words: str) -> None:
    """Amounts with two decimals or more, probabilities and prices as they are, instants as RFC 3339."""
    assert event_text.sentence(event) == words


NAMES = {"rain": ("yes", "no"), "mayor": ("north", "south", "west")}
NAMED: dict[str, tuple[events.AnyEvent, str]] = {
    "a forecast": (
        events.ForecastMade(
            at=0, question="mayor", participant="ada", probabilities=(500_000_000, 300_000_000, 200_000_000)
        ),
        "ada on mayor: north 0.5, south 0.3, west 0.2",
    ),
    "an answer": (
        events.QuestionResolved(at=0, question="mayor", outcome=2, known_at=0),
        "mayor: west, known at 1970-01-01T00:00:00Z",
    ),
    "an answer on a range": (
        events.QuestionResolved(at=0, question="mm", outcome=2, value="4.5", known_at=0),
        "mm: 4.5, known at 1970-01-01T00:00:00Z",
    ),
    "payouts": (
        events.QuestionResolved(at=0, question="rain", outcome=-1, payouts=(500_000_000, 500_000_000), known_at=0),
        "rain: payouts yes 0.5, no 0.5, known at 1970-01-01T00:00:00Z",
    ),
    "payouts of a third": (
        events.QuestionResolved(at=0, question="rain", outcome=-1, payout_unit=3, payouts=(1, 2), known_at=0),
        "rain: payouts yes 1/3, no 2/3, known at 1970-01-01T00:00:00Z",
    ),
    "prices": (
        events.PricesQuoted(
            at=0,
            source="feed",
            quoted_at=0,
            quotes=(
                events.Quote(question="mayor", prices=(None, 240_000_000, None)),
                events.Quote(question="wind", prices=(1, 2)),
            ),
        ),
        "feed: mayor north none, south 0.24, west none; wind 0.000000001, 0.000000002",
    ),
    "many prices": (
        events.PricesQuoted(
            at=0,
            source="feed",
            quoted_at=0,
            quotes=tuple(events.Quote(question=f"q{n}", prices=(10**9, 0)) for n in range(1_007)),
        ),
        "feed: q0 1, 0; q1 1, 0; q2 1, 0; q3 1, 0; q4 1, 0; and 1,002 more questions",
    ),
    "bids and asks": (
        events.PricesQuoted(
            at=0,
            source="feed",
            quoted_at=0,
            quotes=(
                events.Quote(
                    question="rain",
                    prices=(390_000_000, 610_000_000),
                    bids=(380_000_000, 600_000_000),
                    asks=(400_000_000, 620_000_000),
                ),
                events.Quote(question="wind", prices=(None, None), asks=(None, 10**9)),
            ),
        ),
        "feed: rain yes 0.39, no 0.61, bids yes 0.38, no 0.6, asks yes 0.4, no 0.62; wind asks none, 1",
    ),
    "a settlement": (
        events.PositionSettled(**ENDED, shares=1_250_000_000, cost=500_000_000, payout=10**9, proceeds=1_250_000_000),
        "ada in week, position 1 on rain, yes: 1250.00 shares that cost 500.00, at 1 for 1250.00",
    ),
    "a trade of elsewhere": (
        events.TradeRecorded(
            at=0,
            contest="week",
            participant="ada",
            question="rain",
            outcome=1,
            position=2,
            shares=-12_500_000,
            amount=5_000_000,
            cost=-4_000_000,
            fee=20_000,
        ),
        "ada in week, position 2 on rain, no: 12.50 shares sold elsewhere for 5.00, fee 0.02",
    ),
    "a number that no outcome has": (
        events.QuestionResolved(at=0, question="rain", outcome=2, known_at=0),
        "rain: outcome 2, known at 1970-01-01T00:00:00Z",
    ),
    "too few probabilities": (
        events.ForecastMade(at=0, question="mayor", participant="ada", probabilities=(10**9,)),
        "ada on mayor: 1",
    ),
}


@pytest.mark.parametrize(("event", "words"), NAMED.values(), ids=NAMED.keys())
def test_outcomes_are_printed_by_name(event: events.AnyEvent, words: str) -> None:
    """Each probability, price, payout or holding follows the name of its outcome; what does not fit has none."""
    assert event_text.sentence(event, lambda question: NAMES.get(question, ())) == words


def test_an_event_is_about_one_contest_question_and_participant() -> None:
    """An event that can name several questions is about none of them."""
    settled = NAMED["a settlement"][0]
    assert event_text.event_ids(settled) == ("week", "rain", "ada")
    assert event_text.event_ids(NAMED["prices"][0]) == ("", "", "")


@given(EVENTS)
def test_lists_and_reports_have_the_same_words(event: events.AnyEvent) -> None:
    """Events of a forged log have them too; the sentence is one line that fits a screen."""
    recorded = Recorded(position=1, recorded_at=0, command_id="c", command="", previous=GENESIS, event=event)
    summary, listed = event_text.event_summary(recorded), browse.event_row(recorded)
    for column in ("says", "at", "recorded_at"):
        assert summary[column] == listed[column]
    assert summary["type"] == listed["type"].partition(".")[0]
    assert summary["says"] == event_text.sentence(event)


def test_an_event_without_a_sentence_of_its_own_is_described_by_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind of event that is new has words at once; fields that are their default are left out."""
    monkeypatch.setattr(event_text, "_SENTENCES", {})
    monkeypatch.setattr(event_text, "_NAMED", {})
    deposit = events.CashDeposited(**OF, amount=2_500_000, reason="fee")
    assert event_text.sentence(deposit) == "contest='week' participant='ada' amount=2.50 reason='fee'"
    added = events.QuestionAdded(at=0, contest="week", question="rain", weight=500_000, spot_at=0)
    expected = "contest='week' question='rain' weight=0.5 spot_at=1970-01-01T00:00:00Z"
    assert event_text.sentence(added) == expected


def test_outcomes_that_are_added_have_names_and_no_number_has_that_of_another() -> None:
    """A forecast without removed outcomes has fewer numbers than there are names, and is printed without names."""
    names, said = OutcomeNames(), list[str]()
    thirds = {"red": "0.5", "green": "0.25", "blue": "0.25"}
    log = oracle.history(
        choices(),
        forecast("colour", probabilities=thirds, at=OPENS),
        addition(at=day(11), grace_ends_at=day(12)),
        forecast("colour", probabilities=thirds | {"violet": 0}, at=day(12)),
        removal(at=day(13)),
        forecast("colour", probabilities={"green": "0.5", "blue": "0.5", "violet": 0}, at=day(14)),
        resolution("colour", outcome="violet"),
    )
    for recorded in log:
        names.learn(recorded.event)
        said.append(event_text.sentence(recorded.event, names.of))
    assert said[1:] == [
        "ada on colour: red 0.5, green 0.25, blue 0.25",
        "colour, added violet",
        "ada on colour: red 0.5, green 0.25, blue 0.25, violet 0",
        "colour, removed red",
        "ada on colour: 0.5, 0.5, 0",
        "colour: violet, known at 2026-03-20T00:00:00Z",
    ]
    late = OutcomeNames(recorded.event for recorded in log[:3])
    late.learn(log[4].event)
    assert late.of("colour") == ("red", "green", "blue", "violet")
