"""Tests of JSON Pointers: each leads to a value in the JSON of the command, by the steps of RFC 6901."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.commands import Prices, Quote
from forecast_ledger.ledger.model.pointers import pointer_in
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import BEFORE, OPENS, choices, decision, forecast, opened, points, quote

ROW = {"question": "q", "prices": {"yes": 2}}
TWO = Prices(question="q", prices={"yes": 2})


def feed(**fields: Any) -> Quote:
    """One price of one question."""
    given = {"quotes": (TWO,)} | fields
    return Quote(source="s", quoted_at=BEFORE, **given)


def found(document: Any, pointer: str) -> Any:
    """Follow a pointer as RFC 6901, section 4, says: split at "/", then ~1 is "/" and ~0 is "~"."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        document = document[int(name) if isinstance(document, list) else name]
    return document


@pytest.mark.parametrize(
    ("command", "field", "pointer", "value"),
    [
        (forecast(), "probability", "/probability", "0.7"),
        (forecast(probabilities={"a/b": "0.7", "v1.~2": "0.3"}), "probabilities.a/b", "/probabilities/a~1b", "0.7"),
        (forecast(probabilities={"a/b": "0.7", "v1.~2": "0.3"}), "probabilities.v1.~2", "/probabilities/v1.~02", "0.3"),
        (feed(), "quotes[0].prices", "/quotes/0/prices", {"yes": 2}),
        (feed(), "prices.yes", "/quotes", [ROW]),
        (feed(quotes=None, question="q", prices={"yes": 2}), "prices.yes", "/prices/yes", 2),
        (opened(range=commands.Range(lower=0, upper=1, bins=2)), "range.bins", "/range/bins", 2),
    ],
)  # fmt: skip
def test_a_pointer_leads_to_the_field(command: Any, field: str, pointer: str, value: Any) -> None:
    """Names with a slash or a tilde are escaped, and a part of an item of a list leads to the list."""
    assert pointer_in(command, field) == pointer
    assert found(msgspec.json.decode(msgspec.json.encode(command)), pointer) == value


@pytest.mark.parametrize(
    ("command", "field", "wanted", "pointer"),
    [
        (choices(outcomes=("a", "b", "c"), tags=("x", " y")), "tags", " y", "/tags/1"),
        (choices(tags=("x", "x")), "tags", "x", "/tags"),
        (forecast(cdf=(0, "z", 1)), "cdf", "z", "/cdf/1"),
        (forecast(points=points("1", "2", "z")), "points.quantiles", "z", "/points/quantiles/2"),
        (feed(quotes=(Prices(question="q", prices={"yes": 1}), TWO)), "quotes.prices.yes", 2, "/quotes/1/prices/yes"),
        (feed(quotes=(TWO, TWO)), "quotes.prices.yes", 2, "/quotes"),
        (forecast(probabilities={"red": 0.5, "a/b.c": 7}), "probabilities.a/b.c", Decimal(7), "/probabilities/a~1b.c"),
    ],
)  # fmt: skip
def test_a_pointer_leads_to_the_one_item_that_is_refused(command: Any, field: str, wanted: Any, pointer: str) -> None:
    """Of a list, or of a list within an item; to the list if two items have the value."""
    assert pointer_in(command, field, wanted) == pointer
    value = found(msgspec.json.decode(msgspec.json.encode(command)), pointer)
    assert value == wanted or isinstance(value, list)


def test_a_ledger_names_the_item_of_a_list() -> None:
    """A text among tags, the second of two forecasts."""
    with Ledger.open(":memory:") as ledger:
        with pytest.raises(Refused) as refused:
            ledger.handle(opened(tags=("fine", " not")), "c1")
        assert refused.value.to_dict()["pointer"] == "/tags/1"
        ledger.handle(opened(), "c2")
        each = [commands.RestatedForecast(at=OPENS, probability=number) for number in (0.5, 1.5)]
        with pytest.raises(Refused) as refused:
            ledger.handle(
                commands.RestateForecasts(question="rain", participant="ada", reason="-", forecasts=tuple(each)), "c3"
            )
        assert refused.value.pointer == "/forecasts/1/probability"


def test_a_field_that_is_none_of_the_command_is_the_whole_command() -> None:
    """Such as a line of a file, or nothing."""
    assert [pointer_in(forecast(), field) for field in ("", "line", "no", "[0]")] == [""] * 4


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ('{"type": "submit_forecast", "question": "q", "participant": "p", "points": {"z": 1}}', "/points"),
        ('{"type": "quote", "quoted_at": "", "quotes": [{"question": "", "prices": 3}]}', "/quotes/0/prices"),
        ('{"type": "other"}', "/type"),
        ("[]", ""),
    ],
)  # fmt: skip
def test_a_command_that_cannot_be_read_says_where(body: str, pointer: str) -> None:
    """In the refusal and in its JSON, unless it is the whole command."""
    with pytest.raises(Refused) as refused:
        commands.read(body)
    assert refused.value.pointer == refused.value.to_dict().get("pointer", "") == pointer


@pytest.mark.parametrize(
    ("body", "pointer"),
    [('{"type": "pay_prizes"}', "/type"), ('{"type": "submit_forecast", "at": ""}', "/at"),
     ('{"type": "submit_forecast", "question": "q", "participant": "bo", "probability": 1}', "/participant")],
)  # fmt: skip
def test_what_a_participant_may_not_send_says_where(body: str, pointer: str) -> None:
    """The type, a field that the ledger stamps, another participant."""
    with pytest.raises(Refused) as refused:
        commands.read_from("ada", body)
    assert refused.value.pointer == pointer


def test_a_ledger_says_where() -> None:
    """Of a command alone and in a batch; another input than a command has no pointer."""
    with Ledger.open(":memory:") as ledger:
        ledger.handle(choices(at=BEFORE), "c1")
        wrong = forecast("colour", probabilities={"red": "x"})
        with pytest.raises(Refused) as refused:
            ledger.handle(wrong, "c2")
        first, second = ledger.handle_many([wrong, quote("no"), decision(bets=None)])[:2]
        assert isinstance(first, Refused)
        assert isinstance(second, Refused)
        assert [refused.value.pointer, first.pointer] == ["/probabilities/red", "/id"]
        with pytest.raises(Refused) as other:
            ledger.subscribe(7)
        assert other.value.pointer is None
