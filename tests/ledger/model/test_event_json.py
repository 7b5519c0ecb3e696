"""Tests of events as JSON: each number in its unit, as the command had it."""

import json
from fractions import Fraction
from typing import Any

import pytest

from forecast_ledger.ledger.model import events, forms
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import BEFORE, forecast, opened


def plain(event: Any) -> dict[str, Any]:
    """The JSON of an event as a dict, without its type and instant."""
    said = json.loads(event.to_json())
    return {name: value for name, value in said.items() if name not in {"type", "at"}}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            events.ForecastMade(at=0, question="q", participant="p", cdf=(0, 25 * 10**8, 10**10), until=86_400_000_000),
            {"question": "q", "participant": "p", "cdf": ["0", "0.25", "1"], "until": "1970-01-02T00:00:00Z"},
        ),
        (
            events.ForecastMade(
                at=0, question="q", participant="p", probabilities=(1, 999_999_999),
                normalized=forms.StatedShares(shares=(500_000_000, 0), rule="by_sum"),
            ),
            {
                "question": "q", "participant": "p", "probabilities": ["0.000000001", "0.999999999"],
                "normalized": {"shares": ["0.5", "0"], "rule": "by_sum"},
            },
        ),
        (
            events.QuestionAdded(
                contest="c", at=0, question="q", weight=1_500_000, spots=(events.Spot(at=1_000_000, weight=3),)
            ),
            {
                "contest": "c", "question": "q", "weight": "1.5",
                "spots": [{"at": "1970-01-01T00:00:01Z", "weight": 3}],
            },
        ),
        (
            events.QuestionResolved(at=0, question="q", outcome=0, known_at=2, payout_unit=3, payouts=(1, 2)),
            {"question": "q", "outcome": 0, "known_at": "1970-01-01T00:00:00.000002Z", "payouts": ["1/3", "2/3"]},
        ),
        (
            events.PricesQuoted(
                at=0, source="s", quoted_at=0,
                quotes=(events.Quote(question="q", prices=(10**9 // 4, None), ask_sizes=(2_500_000, None)),),
            ),
            {
                "source": "s", "quoted_at": "1970-01-01T00:00:00Z",
                "quotes": [{"question": "q", "prices": ["0.25", None], "ask_sizes": ["2.5", None]}],
            },
        ),
        (
            events.SharesSold(
                at=0, contest="c", participant="p", period=1, attempt=2, leg=3, question="q", outcome=1, position=7,
                price=10**9 // 2, quote=9, shares=2_000_000, cost=1_500_000, proceeds=1_000_000,
            ),
            {
                "contest": "c", "participant": "p", "period": 1, "attempt": 2, "leg": 3, "question": "q", "outcome": 1,
                "position": 7, "price": "0.5", "quote": 9, "shares": "2", "cost": "1.5", "proceeds": "1",
            },
        ),
    ],
)  # fmt: skip
def test_each_number_is_in_its_unit(event: Any, expected: dict[str, Any]) -> None:
    """Instants in RFC 3339, money and probabilities in decimals, counts and positions as integers."""
    assert plain(event) == expected


def test_a_rule_set_is_as_it_is_written() -> None:
    """Its amounts are texts in their unit, as `OpenContest` takes them."""
    rules = PRESETS["relative-2022-04"]
    event = events.ContestOpened(at=0, contest="c", rules=rules, pool=100_000_000, payable_unit=10_000)
    said = plain(event)
    assert (said["pool"], said["payable_unit"], said["rules"]["name"]) == ("100", "0.01", rules.name)


def test_a_row_has_its_event_and_where_it_is() -> None:
    """The event is as in the log, in the units of the command."""
    with Ledger.open(":memory:") as ledger:
        ledger.handle_many([opened(id="1", at=BEFORE), forecast(id="2")])
        rows = [json.loads(row.to_json()) for page in ledger.read() for row in page]
    assert [row["position"] for row in rows] == [*range(1, len(rows) + 1)]
    first = rows[0]
    assert (first["command_id"], first["event"]["at"], first["event"]["type"]) == ("1", BEFORE, "question_opened.v1")
    assert Fraction(rows[1]["event"]["probabilities"][0]) == Fraction(7, 10)
    assert first["recorded_at"].endswith("Z")
    assert len(first["digest"]) == 64
