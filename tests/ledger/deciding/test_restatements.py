"""Tests of restated forecasts: the recorded events, what may follow, and the refusals."""

from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support import oracle
from tests.support.given import (
    CLOSES,
    annulment,
    choices,
    day,
    forecast,
    given,
    micros,
    numeric,
    opened,
    quartiles,
    resolution,
    restatement,
    withdrawal,
)

RAIN = opened()
MADE: list[AnyCommand] = [RAIN, forecast(at=day(12)), resolution()]
REFUSED: list[tuple[str, str, list[AnyCommand], AnyCommand]] = [
    ("unknown_question", "question", [], restatement(forecast())),
    ("nothing_standing", "participant", [RAIN], restatement()),
    ("nothing_standing", "participant", [RAIN, forecast(), restatement()], restatement()),
    ("nothing_standing", "participant", [RAIN, forecast(participant="bo")], restatement()),
    ("out_of_range", "probability", [RAIN], restatement(forecast(probability="1.1"))),
    ("wrong_distribution", "question", [RAIN], restatement(forecast(cdf=("0", "1")))),
    (
        "unknown_outcome",
        "probabilities",
        [choices()],
        restatement(forecast(probabilities={"pink": 1}), question="colour"),
    ),
    ("wrong_length", "quantiles", [quartiles()], restatement(forecast(quantiles=("1",)), question="flow")),
    (
        "not_summing_to_one",
        "probabilities",
        [choices()],
        restatement(forecast(probabilities={"red": "0.5", "green": "0.2", "blue": "0.2"}), question="colour"),
    ),
    ("decreasing", "quantiles", [quartiles()], restatement(forecast(quantiles=("2", "1", "3")), question="flow")),
    ("open_end_needed", "cdf", [numeric()], restatement(forecast(cdf=("0.1", 1, 1, 1, 1)), question="depth")),
    ("question_closed", "at", [RAIN], restatement(forecast(at=CLOSES))),
    ("wrong_order_of_instants", "until", [RAIN], restatement(forecast(until=day(11)))),
    ("out_of_order", "at", [RAIN], restatement(forecast(at=day(12)), forecast(at=day(12)))),
    ("out_of_order", "at", [RAIN], restatement(forecast(at=day(12)), forecast(at=day(11)))),
]


FUNCTIONS = ["restate_forecasts"]


def test_a_refusal_says_which_forecast_it_is_about() -> None:
    """The message counts the forecasts from 1."""
    outcome = given(RAIN).when(restatement(forecast(), forecast(at=CLOSES))).outcome
    assert isinstance(outcome, Refused)
    assert outcome.detail.startswith("forecast 2: ")


def test_the_events_retract_all_and_make_the_others() -> None:
    """The retraction says how many forecasts follow, which are as those of submit_forecast."""
    later = forecast(at=day(14), probability="0.25", until=day(16))
    made: dict[str, Any] = {"question": "rain", "participant": "ada"}
    given(*MADE).when(restatement(forecast(at=day(11), probability="0.6"), later)).records(
        events.ForecastsRetracted(at=micros(23), restated=2, reason="the source was corrected", **made),
        events.ForecastMade(at=micros(11), probabilities=(600_000_000, 400_000_000), **made),
        events.ForecastMade(at=micros(14), probabilities=(250_000_000, 750_000_000), until=micros(16), **made),
    )
    given(*MADE).when(restatement()).records(
        events.ForecastsRetracted(at=micros(23), reason="the source was corrected", **made)
    )


ACCEPTED: dict[str, list[AnyCommand]] = {
    "an earlier forecast after a retraction": [forecast(at=day(14)), restatement(), forecast(at=day(11))],
    "a later one after a restatement": [restatement(forecast(at=day(12))), forecast(at=day(12))],
    "a withdrawal of what was restated": [restatement(forecast(at=day(12))), withdrawal(at=day(13))],
    "nothing after a withdrawal": [forecast(), withdrawal(), restatement()],
    "twice": [forecast(), restatement(forecast(at=day(12))), restatement(forecast(at=day(11)))],
    "on a question that is annulled": [annulment(), restatement(forecast())],
    "on one that is answered": [resolution(), restatement(forecast()), restatement()],
}


@pytest.mark.parametrize("said", ACCEPTED.values(), ids=ACCEPTED)
def test_what_may_follow(said: list[AnyCommand]) -> None:
    """A restatement leaves the participant where the last of its forecasts would."""
    assert oracle.history(RAIN, *said)


REFUSED_AFTER: dict[str, tuple[str, list[AnyCommand]]] = {
    "a withdrawal of nothing": ("nothing_standing", [forecast(), restatement(), withdrawal()]),
    "a forecast before the restated one": ("out_of_order", [restatement(forecast(at=day(14))), forecast(at=day(13))]),
    "a forecast of another person before theirs": (
        "out_of_order",
        [forecast(participant="bo", at=day(14)), restatement(forecast()), forecast(participant="bo", at=day(13))],
    ),
}


@pytest.mark.parametrize(("code", "said"), REFUSED_AFTER.values(), ids=REFUSED_AFTER)
def test_what_may_not_follow(code: str, said: list[AnyCommand]) -> None:
    """A restatement is about one participant alone, and what it restates is in order with what follows."""
    outcome = given(RAIN, *said[:-1]).when(said[-1]).outcome
    assert isinstance(outcome, Refused)
    assert outcome.code == code


def test_a_retry_in_other_digits_is_the_same_command() -> None:
    """0.5 and 0.50, an instant with another offset, and probabilities whose sum is off by a millionth."""
    first = structs.replace(restatement(forecast(probability="0.5")), id="r")
    [part] = first.forecasts
    again = structs.replace(part, probability=Decimal("0.50"), at="2026-03-11T01:00:00+01:00")
    off = [{"red": red, "green": "0.3", "blue": "0.2"} for red in ("0.5", "0.4999999")]
    sums = [structs.replace(restatement(forecast(probabilities=each), question="colour"), id="s") for each in off]
    with Ledger.open(":memory:") as ledger:
        outcomes = ledger.handle_many(
            [
                structs.replace(RAIN, id="1"),
                structs.replace(choices(), id="2"),
                first,
                structs.replace(first, forecasts=(again,)),
                *sums,
                structs.replace(first, forecasts=(structs.replace(part, probability="0.51"),)),
            ]
        )
    told = [each.duplicate if isinstance(each, Receipt) else each.code for each in outcomes]
    assert told == [False, False, False, True, False, True, "command_id_reused"]
