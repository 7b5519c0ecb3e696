"""Prices of a question as a command gave them, readable or not, in a text that says the same when it is read again."""

from collections.abc import Callable
from typing import Any

from msgspec import json

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import half_even, shortest_text
from forecast_ledger.ledger.model.forms import Prices

_encode = json.Encoder(order="deterministic").encode


def given_text(row: Prices, name: str = "quotes") -> str:
    """Return a question and its prices as JSON: each number as its shortest decimal, and what is no number as a text.

    Refuses, first that applies: malformed (no question and its prices), text_too_long.

    >>> given_text(Prices(question="rain", prices={"yes": 0.50, "no": None}))
    '{"prices":{"no":null,"yes":"0.5"},"question":"rain"}'
    """
    if type(row) is not Prices:
        raise Refused("malformed", name, row, "not a question and its prices")
    sides = {side: given for side in Prices.__struct_fields__[1:] if (given := getattr(row, side)) is not None}
    if any(type(given) is not dict for given in sides.values()):
        raise Refused("malformed", name, None, "not an object of ids and numbers")
    plain = {side: {str(outcome): _plain(each) for outcome, each in given.items()} for side, given in sides.items()}
    try:
        text = _encode({"question": row.question, **plain}).decode()
    except (TypeError, ValueError) as error:  # a question that is no text, or lone surrogates
        raise Refused("malformed", name, None, str(error)) from None
    return values.check_text(text, name, values.LONG_TEXT_LENGTH)


def read_given(text: str) -> Prices:
    """Return the question and its prices of a text. Raises msgspec.DecodeError: it is not one of them."""
    return json.decode(text, type=Prices)


def _plain(value: Any) -> Any:
    try:
        return shortest_text(values.read_decimal(value, ""))
    except Refused:
        return value if value is None or type(value) in {str, bool} else str(value)


def or_as_given(convert: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """Return the function for a question's canonical prices that keeps those that cannot be read as they were given."""

    def convert_row(value: Any, name: str) -> Any:
        """Return the row in canonical form; one whose prices are no decimals as its question and the text as given."""
        try:
            return convert(value, name)
        except Refused:
            given = given_text(value, name)
            return [values.check_id(value.question, f"{name}.question"), given]

    return convert_row


def mean_price(bid: Any, ask: Any) -> int | None:
    """Return the mean of a bid and an ask in units, rounded half-even; None if one of them is none.

    >>> mean_price(4, 7), mean_price(4, None)
    (6, None)
    """
    return half_even(bid + ask, 2) if type(bid) is int and type(ask) is int else None
