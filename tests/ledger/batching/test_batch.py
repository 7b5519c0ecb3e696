"""The first fault in how a command and its id are written."""

from typing import Any

import pytest

from forecast_ledger.ledger.batching.batch import Requests
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand, CloseQuestion, Quote
from tests.support.given import day

CLOSING = CloseQuestion(at=day(1), question="rain")
QUOTE = Quote(at=day(1), question="rain", prices={"yes": "half"}, source="book", quoted_at=day(1))
NUMBER: Any = 7


@pytest.mark.parametrize(
    ("command", "command_id", "code", "field"),
    [
        (CloseQuestion(at=day(1), question=NUMBER), "", "malformed", "question"),
        (CloseQuestion(at="noon", question="rain"), "", "id_empty", "id"),
        (CLOSING, "", "id_empty", "id"),
        (CloseQuestion(at="noon", question="rain"), "c1", "bad_instant", "at"),
        (QUOTE, "c1", "bad_number", "prices.yes"),
    ],
)
def test_the_first_fault_is_that_of_the_id_or_of_a_field(
    command: AnyCommand, command_id: str, code: str, field: str
) -> None:
    """By precedence, and with the name that the field has in the command, not in what would be recorded."""
    refused = Requests([command], [command_id])[0].known_by
    assert isinstance(refused, Refused)
    assert (refused.code, refused.field) == (code, field)
