"""The table of questions: what was asked, by which schedule, in which state."""

from typing import Any

from forecast_ledger.ledger.model.commands import AnyCommand
from tests.support import oracle
from tests.support.given import (
    AFTER,
    CLOSES,
    OPENS,
    annulment,
    choices,
    closing,
    day,
    numeric,
    opened,
    resolution,
    revocation,
)


def rows(*asked: AnyCommand) -> dict[str, dict[str, Any]]:
    """The rows of the table, by question."""
    return {row["question"]: row for row in oracle.projected(*asked).table("questions").rows()}


def test_a_question_has_a_row_with_all_that_it_was_opened_with() -> None:
    """Details that were not given are empty; lists are JSON, so that a comma in a tag stays one."""
    details: dict[str, Any] = {
        "group": "west",
        "category": "weather",
        "tags": ("wet", "a, b", 'c "d"'),
        "url": "https://e.org/1",
    }
    asked = opened(title="Will it rain?", reveals_at=day(12), source="gauge", **details)
    common = {"opens_at": OPENS, "closes_at": CLOSES, "closed_at": CLOSES, "state": "unresolved"}
    assert rows(asked, numeric()) == {
        "depth": {
            **common,
            **dict.fromkeys(["title", "group", "category", "url", "source"], ""),
            "question": "depth",
            "kind": "numeric",
            "outcomes": "[]",
            "reveals_at": None,
            "log_position": 2,
            "outcome": None,
            "value": None,
            "tags": "[]",
        },
        "rain": {
            **common,
            **details,
            "question": "rain",
            "kind": "binary",
            "title": "Will it rain?",
            "outcomes": '["yes", "no"]',
            "reveals_at": day(12),
            "log_position": 1,
            "outcome": None,
            "value": None,
            "tags": '["wet", "a, b", "c \\"d\\""]',
            "source": "gauge",
        },
    }


def test_a_question_shows_its_state_and_its_answer() -> None:
    """An early close, an answer, an annulment, and an answer that was revoked."""
    asked = [opened(), choices(), numeric(), opened("snow")]
    told = rows(
        *asked,
        closing(),
        resolution(),
        resolution("colour", outcome="blue"),
        resolution("depth", value="1.5"),
        annulment("snow"),
        revocation("colour", at=AFTER),
    )
    columns = ("closed_at", "state", "outcome", "value")
    assert {name: tuple(row[column] for column in columns) for name, row in told.items()} == {
        "rain": (day(15), "resolved", "yes", None),
        "colour": (CLOSES, "unresolved", None, None),
        "depth": (CLOSES, "resolved", "2", "1.5"),
        "snow": (CLOSES, "annulled", None, None),
    }
