"""Tests of changes of outcomes: the recorded events, the refusals, and what they mean for later commands."""

from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand, ChangeOutcomes
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import (
    AFTER,
    BEFORE,
    CLOSES,
    OPENS,
    addition,
    annulment,
    choices,
    closing,
    day,
    forecast,
    given,
    micros,
    numeric,
    opened,
    quote,
    removal,
    resolution,
    revocation,
    withdrawal,
)

COLOUR = choices()
BILLION = 10**9
NEITHER = ChangeOutcomes(question="colour", at=day(13))
Promise = tuple[str, str, list[AnyCommand], AnyCommand]
FUNCTIONS = ["change_outcomes"]
REFUSED: list[Promise] = [
    ("malformed", "add", [COLOUR], NEITHER),
    ("malformed", "add", [COLOUR], ChangeOutcomes(question="colour", at=day(13), add=("x",), remove=("red",))),
    ("malformed", "add", [COLOUR], addition(grace_ends_at=None)),
    (
        "malformed",
        "add",
        [COLOUR],
        ChangeOutcomes(question="colour", at=day(13), remove=("red",), grace_ends_at=day(14)),
    ),
    ("unknown_question", "question", [], removal()),
    ("duplicate_outcome", "add", [COLOUR], addition("red")),
    ("duplicate_outcome", "add", [COLOUR], addition("violet", "violet")),
    ("duplicate_outcome", "add", [COLOUR, removal()], addition("red", at=day(14))),
    ("duplicate_outcome", "remove", [COLOUR], removal("red", "green")),
    ("duplicate_outcome", "remove", [choices(outcomes=("a", "b", "c", "d"))], removal("a", "a")),
    ("wrong_fields_for_kind", "question", [opened()], removal("yes", question="rain")),
    ("wrong_fields_for_kind", "question", [numeric()], addition(question="depth")),
    ("unknown_outcome", "remove", [COLOUR], removal("violet")),
    ("unknown_outcome", "remove", [COLOUR], removal("blue")),
    ("unknown_outcome", "remove", [choices(outcomes=("a", "b", "c", "d")), removal("a")], removal("a", at=day(14))),
    ("outcomes_quoted", "question", [COLOUR, quote("colour", prices={"red": "0.5"})], removal()),
    ("question_resolved", "at", [COLOUR, resolution("colour", outcome="red")], removal("green")),
    ("question_resolved", "at", [COLOUR, annulment("colour")], removal()),
    ("question_closed", "at", [COLOUR], removal(at=CLOSES)),
    ("question_closed", "at", [COLOUR, closing("colour", at=day(12))], removal(at=day(12))),
    ("before_opening", "at", [COLOUR], removal(at=BEFORE)),
    ("wrong_order_of_instants", "grace_ends_at", [COLOUR], addition(grace_ends_at=day(13))),
    ("out_of_order", "at", [COLOUR, addition()], removal(at="2026-03-14T23:59:59.999999Z")),
    ("out_of_order", "at", [choices(outcomes=("a", "b", "c", "d")), removal("a")], removal("b", at=day(12))),
    (
        "out_of_order",
        "at",
        [COLOUR, forecast("colour", probabilities={"red": 1, "green": 0, "blue": 0}, at=day(14))],
        removal(),
    ),
]


@pytest.mark.parametrize(
    ("code", "history", "command"),
    [
        ("malformed", [], NEITHER),
        ("unknown_outcome", [COLOUR, annulment("colour")], removal("violet")),
        ("question_resolved", [COLOUR, annulment("colour")], removal(at=CLOSES)),
        ("before_opening", [COLOUR], addition(at=BEFORE, grace_ends_at=BEFORE)),
        ("wrong_order_of_instants", [COLOUR, addition()], addition("grey", grace_ends_at=day(13))),
        ("out_of_order", [COLOUR, addition()], removal()),
    ],
)
def test_the_earlier_of_two_broken_rules_is_reported(code: str, history: list[AnyCommand], command: AnyCommand) -> None:
    """The order is that of the docstring."""
    then = given(*history).when(command)
    assert getattr(then.outcome, "code", None) == code


def test_an_addition_and_a_removal_record_the_names() -> None:
    """An instant at the opening, and one at the end of the last grace period, are in time."""
    given(COLOUR).when(addition(at=OPENS)).records(
        events.OutcomesChanged(at=micros(10), question="colour", added=("violet",), grace_ends_at=micros(15))
    )
    given(COLOUR, addition()).when(removal("red", "green", at=day(15))).records(
        events.OutcomesChanged(at=micros(15), question="colour", removed=("red", "green"))
    )


def chances(**each: Any) -> dict[str, Any]:
    """Probabilities by name, given on the 14th."""
    return {"at": day(14), "probabilities": each}


@pytest.mark.parametrize(
    ("change", "said", "recorded"),
    [
        (addition(), {"red": "0.1", "green": "0.2", "blue": "0.3", "violet": "0.4"}, (1, 2, 3, 4)),
        (removal(), {"green": "0.2", "blue": "0.8"}, (2, 8)),
    ],
)
def test_a_later_forecast_gives_each_outcome_that_there_is_then(
    change: AnyCommand, said: dict[str, Any], recorded: tuple[int, ...]
) -> None:
    """New outcomes come after those that were there before, and at once, during the grace period."""
    tenths = tuple(BILLION // 10 * each for each in recorded)
    given(COLOUR, change).when(forecast("colour", at=day(14), probabilities=said)).records(
        events.ForecastMade(at=micros(14), question="colour", participant="ada", probabilities=tenths)
    )


@pytest.mark.parametrize(
    ("code", "command"),
    [
        ("wrong_length", forecast("colour", **chances(red=0, green=0, blue=1))),
        ("out_of_order", forecast("colour", **(chances(red=0, green=0, blue=1, violet=0) | {"at": day(12)}))),
        ("out_of_order", withdrawal("colour", at=day(12))),
    ],
)
def test_a_forecast_or_withdrawal_before_a_recorded_change_is_refused(code: str, command: AnyCommand) -> None:
    """So is a forecast without the outcomes that there are."""
    made = forecast("colour", at=OPENS, probabilities={"red": 0, "green": 0, "blue": 1})
    then = given(COLOUR, made, addition()).when(command)
    assert getattr(then.outcome, "code", None) == code


def test_a_forecast_that_ended_with_the_grace_period_cannot_be_withdrawn() -> None:
    """Before its end it can be, and so can one of the grace period, which goes on."""
    made = forecast("colour", at=OPENS, probabilities={"red": 0, "green": 0, "blue": 1})
    start = [COLOUR, made, addition()]
    given(*start).when(withdrawal("colour", at=day(15))).refuses("nothing_standing", "participant")
    again = forecast("colour", **chances(red=0, green=0, blue=1, violet=0))
    for at, history in (("2026-03-14T23:59:59.999999Z", start), (day(15), [*start, again])):
        given(*history).when(withdrawal("colour", at=at)).records(
            events.ForecastWithdrawn(at=read_instant(at), question="colour", participant="ada")
        )


def test_an_answer_is_one_of_the_outcomes_that_there_are_and_keeps_its_number() -> None:
    """Removed outcomes keep their places; their payouts are 0."""
    start = [COLOUR, addition(), removal(at=day(16))]
    given(*start).when(resolution("colour", outcome="red")).refuses("unknown_outcome", "outcome")
    answer: dict[str, Any] = {"at": micros(25), "question": "colour", "known_at": micros(20)}
    given(*start).when(resolution("colour", outcome="violet")).records(events.QuestionResolved(**answer, outcome=3))
    half = resolution("colour", payouts={"green": "0.5", "blue": 0, "violet": "0.5"})
    given(*start).when(half).records(
        events.QuestionResolved(**answer, outcome=-1, payouts=(0, BILLION // 2, 0, BILLION // 2))
    )
    again = [*start, resolution("colour", outcome="violet"), revocation("colour")]
    given(*again).when(removal("green", at=day(17))).records(
        events.OutcomesChanged(at=micros(17), question="colour", removed=("green",))
    )


def test_prices_are_of_outcomes_that_there_are() -> None:
    """A removed outcome has no price and keeps its place; no price is from before the change."""
    start = [COLOUR, removal()]
    early = quote("colour", at=day(12), quoted_at=day(12), prices={"green": "0.5"})
    given(*start).when(early).refuses("out_of_order", "at")
    given(*start).when(quote("colour", at=AFTER, prices={"red": "0.5"})).refuses("unknown_outcome", "prices")
    quoted = events.Quote(question="colour", prices=(None, BILLION // 2, None))
    given(*start).when(quote("colour", at=AFTER, prices={"green": "0.5"})).records(
        events.PricesQuoted(at=micros(25), source="feed", quoted_at=micros(25), quotes=(quoted,))
    )


@pytest.mark.parametrize("kind", [list, tuple])
def test_names_may_be_a_list_or_a_tuple(kind: Any) -> None:
    """Both are the same command, and what is recorded is the same; a command that was read from JSON has tuples."""
    with Ledger.open(":memory:") as ledger:
        ledger.handle(choices(), "open")
        first = ledger.handle(structs.replace(removal("green"), remove=kind(["green"])), "c")
        again = ledger.handle(removal("green"), "c")
    assert (again.first, again.duplicate) == (first.first, True)
