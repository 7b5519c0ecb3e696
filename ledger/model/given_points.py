"""The canonical content of points, from which a cdf is made."""

from collections.abc import Callable
from functools import partial
from typing import Any, get_args

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import shortest_text
from forecast_ledger.ledger.model.commands import Points
from forecast_ledger.ledger.model.forms import Method

_LARGEST_LEVEL = 10**21  # 1e-9


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
