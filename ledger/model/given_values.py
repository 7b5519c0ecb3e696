"""Prices and points as a command gave them: in canonical form, and in a text that is read as the same again."""

from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any, get_args

from msgspec import json

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import half_even, shortest_text
from forecast_ledger.ledger.model.commands import Points
from forecast_ledger.ledger.model.forms import Method, Prices

_LARGEST_LEVEL = 10**21  # of points, 1e-9
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


def read_prices(rows: Any) -> list[int] | None:
    """Return the prices of questions, 1e-9; None if one has bids, asks, sizes or no prices, or a price is refused.

    >>> read_prices((Prices(question="q1", prices={"yes": "0.25"}), Prices(question="q2", prices={"x": 0, "y": 1})))
    [250000000, 0, 1000000000]
    """
    if type(rows) is not tuple or not rows or not all(map(_has_only_prices, rows)):
        return None
    try:
        numbers = [*chain.from_iterable(row.prices.values() for row in rows)]
        return values.read_measures(numbers, values.PROBABILITY, "prices")
    except Refused:
        return None


def _has_only_prices(row: Any) -> bool:
    if type(row) is not Prices or type(row.prices) is not dict or not row.prices:
        return False
    return row.bids is row.asks is row.bid_sizes is row.ask_sizes is None


def prices_together(
    convert: Callable[[Any, str], Any], id_of: Callable[[Any, str], str]
) -> Callable[[Any, str], list[Any]]:
    """Return the function for the canonical prices of questions that reads them together if there is nothing else."""

    def convert_rows(value: Any, name: str) -> Any:
        """Return each question, its prices by outcome, and no bids, asks or sizes; or else what `convert` returns."""
        if (read := read_prices(value)) is None:
            return convert(value, name)
        units = iter(read)
        return [
            [id_of(row.question, name), {id_of(outcome, name): next(units) for outcome in row.prices}, {}]
            for row in value
        ]

    return convert_rows


def mean_price(bid: Any, ask: Any) -> int | None:
    """Return the mean of a bid and an ask in units, rounded half-even; None if one of them is none.

    >>> mean_price(4, 7), mean_price(4, None)
    (6, None)
    """
    return half_even(bid + ask, 2) if type(bid) is int and type(ask) is int else None


def points_content(value: Any, name: str) -> list[Any]:
    """Return the canonical form of points: levels and quantiles in their shortest texts, and the method.

    Refuses, first that applies: malformed, bad_instant, naive_instant, bad_number, not_finite, out_of_range.

    >>> points_content(Points(levels=("0.50",), quantiles=(2.0,), method="linear"), "points")
    [['0.5'], ['2'], 'linear']
    """
    if type(value) is not Points:
        raise Refused("malformed", name, value, "not an object of levels, quantiles and a method")
    if type(value.method) is not str or value.method not in get_args(Method):
        raise Refused("malformed", f"{name}.method", value.method, f"choose from {', '.join(get_args(Method))}")
    for part in ("levels", "quantiles"):
        if type(getattr(value, part)) not in {tuple, list}:
            raise Refused("malformed", f"{name}.{part}", getattr(value, part), "not an array")
    levels = [shortest_text(values.read_decimal(level, f"{name}.levels")) for level in value.levels]
    return [levels, [shortest_text(_quantity(each, f"{name}.quantiles")) for each in value.quantiles], value.method]


def normal_points(value: Any, name: str) -> list[Any]:
    """Return points as they are recorded: levels in 1e-9, quantiles as exact texts. Refuses as `points_content`.

    >>> normal_points(Points(levels=("0.50",), quantiles=("1e-99",), method="linear"), "points")
    [[500000000], ['0'], 'linear']
    """
    levels, quantiles, method = points_content(value, name)
    return [[_units(level, name) for level in levels], [_measure(each, name) for each in quantiles], method]


def checks_of_points(value: Points) -> list[tuple[Callable[[Any, str], Any], Any]]:
    """Return the levels and quantiles, each with the function that checks it; several of them can be faulty."""
    checks = (("levels", values.read_decimal), ("quantiles", _quantity))
    given = [(part, check, getattr(value, part)) for part, check in checks]
    return [
        (partial(_check, check, part), item)
        for part, check, items in given
        if type(items) in {tuple, list}
        for item in items
    ]


def _check(check: Callable[[Any, str], Any], part: str, item: Any, name: str) -> None:
    check(item, f"{name}.{part}")


def _quantity(value: Any, name: str) -> Any:
    return values.read_seconds(value, name) if values.is_dated(value) else values.read_decimal(value, name)


def _units(text: str, name: str) -> int | str:
    """Return a level in 1e-9; one that is far out of range, which is refused later, is text."""
    try:
        return values.read_fixed(text, values.PROBABILITY, name, -_LARGEST_LEVEL, _LARGEST_LEVEL)
    except Refused:
        return text


def _measure(text: str, name: str) -> str:
    """Return a number as it is recorded: below 1e-60 it is 0; one that is out of range is refused later."""
    try:
        return shortest_text(values.read_measure(text, name))
    except Refused:
        return text
