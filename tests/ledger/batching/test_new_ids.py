"""Ids that cannot be seen are refused when they are new; a ledger that has one goes on with it."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger import ForecastColumns, Ledger, Refused, replay, seal, verify
from forecast_ledger.ledger.batching import batch, checks, forecasts
from tests.support.given import (
    addition,
    closing,
    contest,
    enrolment,
    entry,
    exclusion,
    forecast,
    opened,
    resolution,
    withdrawal,
)

UNSEEN = [
    "ada\ufe0f", "ada\u3164", "\u3164", "a\u115fda", "\u1160ada", "ada\u2800", "\u2800", "a\u034fda", "ada\u17b4",
    "ada\u17b5", "ada\u180b", "ada\uffa0", "ada\U000e0100", "ada\U0001d159", "❤\ufe0f",
]  # fmt: skip


def commands_with(text: str) -> dict[str, Any]:
    """A command for each field that can bring an id."""
    choice = opened("colour", kind="multiple_choice", outcomes=("red", "other"))
    return {
        "question": opened(text),
        "outcomes": structs.replace(choice, outcomes=("red", text, "other")),
        "add": addition(text),
        "contest": contest(text),
        "participant": forecast(participant=text),
        "participant (enrolled)": enrolment(participant=text),
        "participant (excluded)": exclusion(participant=text),
    }  # fmt: skip


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """A ledger with a question, a choice and a contest."""
    with Ledger.open(":memory:") as ledger:
        ledger.handle(opened(), "q")
        ledger.handle(opened("colour", kind="multiple_choice", outcomes=("red", "other")), "colour")
        ledger.handle(contest("cup"), "cup")
        yield ledger


@pytest.mark.parametrize("field", commands_with("x"))
@pytest.mark.parametrize("text", UNSEEN, ids=ascii)
def test_a_new_id_that_cannot_be_seen_is_refused(ledger: Ledger, text: str, field: str) -> None:
    """The message names the character by its code point; nothing is recorded."""
    before = ledger.head()
    with pytest.raises(Refused, match=r"U\+[0-9A-F]{4,5}.* cannot be seen") as refused:
        ledger.handle(commands_with(text)[field], "c")
    assert (refused.value.code, refused.value.field) == ("id_not_visible", field.partition(" ")[0])
    assert ledger.head() == before


@pytest.mark.parametrize("field", commands_with("x"))
def test_a_new_id_that_this_python_does_not_know_is_refused(ledger: Ledger, field: str) -> None:
    """A character that its Unicode has not assigned may turn out to be a mark, or one that cannot be seen."""
    before = ledger.head()
    for text in ("ada\u0378", "\u0378"):
        with pytest.raises(Refused) as refused:
            ledger.handle(commands_with(text)[field], "c")
        assert (refused.value.code, refused.value.field) == ("id_not_plain", field.partition(" ")[0])
    assert ledger.head() == before


@pytest.mark.parametrize(
    "text", ["a\u200dda", "a\u200cda", "\ufeffada", "\u3000ada", "ada\u00a0", "\x07ada", "\x9bada"]
)
def test_joiners_blanks_and_control_codes_were_always_refused(ledger: Ledger, text: str) -> None:
    """They are not printable, whether they are new or not."""
    with pytest.raises(Refused) as refused:
        ledger.handle(forecast(participant=text), "c")
    assert refused.value.code == "id_not_plain"


def test_batches_and_columns_are_checked_like_single_commands(ledger: Ledger) -> None:
    """The quick way of forecasts, in which most of them are recorded, lets none through."""
    people = ["bob", "ada\ufe0f", "cyd", "eve\u0378"]
    single = ledger.handle_many([structs.replace(forecast(participant=each), id=f"s {each[:3]}") for each in people])
    columns = ForecastColumns(
        id=["1", "2", "3", "4"], at=[forecast().at] * 4, question=["rain"] * 4, participant=people,
        probability=[Decimal("0.5")] * 4,
    )  # fmt: skip
    for outcomes in (single, ledger.handle_many(columns)):
        assert [getattr(outcome, "code", "recorded") for outcome in outcomes] == [
            "recorded",
            "id_not_visible",
            "recorded",
            "id_not_plain",
        ]


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log from before the rule, with a question, an outcome, a contest and participants whose ids cannot be seen."""
    path = tmp_path / "old.db"
    with monkeypatch.context() as before, Ledger.open(path) as ledger:
        before.setattr(batch, "check_new_ids", lambda *_: None)
        ledger.handle(opened("rain\ufe0f"), "q")
        ledger.handle(opened("snow"), "s")
        ledger.handle(contest("cup\u3164"), "cup")
        ledger.handle(entry("cup\u3164", "rain\ufe0f"), "a")
        ledger.handle(forecast("rain\ufe0f", participant="ada\ufe0f"), "f")
        ledger.handle(forecast("rain\ufe0f", participant="ada"), "g")
    return path


def test_an_old_log_verifies_and_reads(old: Path) -> None:
    """Each command is decided again as it was decided."""
    assert verify(old).position == 6
    board = replay(old).table("standing")
    assert {row["participant"] for row in board.rows()} == {"ada", "ada\ufe0f"}


@pytest.mark.parametrize("sealed", [False, True])
def test_an_old_ledger_goes_on_with_its_ids(old: Path, sealed: bool) -> None:
    """What it has can be forecast on, withdrawn, closed and resolved; a retry is a retry; only a new id is refused."""
    segments = None
    if sealed:
        segments = old.with_name("segments")
        seal(old, segments)
    with Ledger.open(old, segments=segments) as ledger:
        assert ledger.handle(opened("rain\ufe0f"), "q").duplicate
        assert ledger.handle(forecast("rain\ufe0f", participant="ada\ufe0f"), "f").duplicate
        ledger.handle(forecast("snow", participant="ada\ufe0f"), "f2")
        ledger.handle(withdrawal("rain\ufe0f", participant="ada\ufe0f"), "w")
        for question, who in (("snow", "bob\ufe0f"), ("rain\ufe0f", "ada\u3164")):
            with pytest.raises(Refused, match="id_not_visible"):
                ledger.handle(forecast(question, participant=who), "new")
        ledger.handle(closing("rain\ufe0f"), "close")
        ledger.handle(resolution("rain\ufe0f"), "r")
    assert verify(old).position == 10


NEWER = "ada\u0378\U0001fae8"  # as a later Unicode may assign them, of which this Python does not know all


def test_a_log_of_a_newer_python_verifies_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that is plain there is plain in an audit everywhere; only what is new is refused here."""
    path = tmp_path / "newer.db"
    with monkeypatch.context() as there, Ledger.open(path) as ledger:
        there.setattr(checks, "is_known_plain", lambda _: True)
        there.setattr(forecasts, "is_known_plain", lambda _: True)
        ledger.handle(opened(NEWER, category=NEWER), NEWER)
        ledger.handle_many([structs.replace(forecast(NEWER, participant=who), id=f"f {who}") for who in (NEWER, "bo")])
    forecasts._name_text.cache_clear()
    assert verify(path).position == 3
    assert {row["participant"] for row in replay(path).table("standing").rows()} == {"bo", NEWER}
    with Ledger.open(path) as ledger:
        assert ledger.handle(opened(NEWER, category=NEWER), NEWER).duplicate
        ledger.handle(forecast(NEWER, participant=NEWER), "f")
        ledger.handle(withdrawal(NEWER, participant=NEWER), "w")
        with pytest.raises(Refused, match="id_not_plain"):
            ledger.handle(forecast(NEWER, participant=f"{NEWER}2"), "g")
    assert verify(path).position == 5
