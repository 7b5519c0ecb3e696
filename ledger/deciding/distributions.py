"""Distributions: convert the numbers of a forecast to integers, and check them against the question."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeVar

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.deciding.numeric_ranges import is_countable
from forecast_ledger.ledger.deciding.state import QuestionState
from forecast_ledger.ledger.deciding.stated_points import cdf_of_points, read_points
from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.forms import StatedPoints

_Chance = TypeVar("_Chance")
_Numbers = int | dict[str, int] | list[int] | StatedPoints
TOLERANCE = values.PROBABILITY // 10**6  # the largest difference between a sum of probabilities and 1


def distribution_forms(question: QuestionState) -> tuple[str, ...]:
    """Return the forms of distribution that a question takes: names of the command's fields."""
    if question.range is None:
        return ("probability",) if question.kind == "binary" else ("probabilities",)
    if question.range.samples:
        return ("samples",)
    return ("quantiles",) if question.range.levels else ("cdf", "points")


def read_distribution(command: commands.SubmitForecast, question: QuestionState | None) -> tuple[str, _Numbers]:
    """Return the name of the field that has the distribution, and its numbers.

    The name is empty unless exactly one field is given. Units: 1e-9, a cdf 1e-10, quantiles and samples 10^-decimals
    of the question, or 1 if there is no such question; points are as the event records them.
    """
    probability, probabilities, cdf, quantiles, samples, points = (
        command.probability, command.probabilities, command.cdf, command.quantiles, command.samples, command.points
    )  # fmt: skip
    given = (probability is not None) + (probabilities is not None) + (cdf is not None)
    if given + (quantiles is not None) + (samples is not None) + (points is not None) != 1:
        return "", []
    if probability is not None:
        return "probability", values.read_probability(probability, "probability")
    if probabilities is not None:
        return "probabilities", outcome_probabilities(probabilities)
    if cdf is not None:
        return "cdf", values.read_each_fixed(cdf, values.CUMULATIVE, "cdf", 0, values.CUMULATIVE)
    if points is not None:
        return "points", read_points(points, question)
    decimals = 0 if question is None or question.range is None else question.range.decimals
    field, measures = ("quantiles", quantiles) if samples is None else ("samples", samples)
    return field, values.read_measures(measures or (), 10**decimals, field)


def outcome_probabilities(given: dict[str, Any]) -> dict[str, int]:
    """Return probabilities by outcome, 1e-9. Refuses: out_of_range."""
    unit = values.PROBABILITY
    try:
        return dict(zip(given, values.read_each_fixed(given.values(), unit, "probabilities", 0, unit), strict=True))
    except Refused:  # name the outcome
        return {name: values.read_probability(chance, f"probabilities.{name}") for name, chance in given.items()}


def check_outcomes(chances: Mapping[str, _Chance], outcomes: Sequence[str], field: str) -> list[_Chance]:
    """Return probabilities or payouts in the question's order of outcomes.

    Refuses, first that applies: unknown_outcome, wrong_length.
    """
    names = frozenset(outcomes)
    for outcome in chances:
        if outcome not in names:
            raise Refused("unknown_outcome", field, outcome)
    if len(chances) != len(outcomes):
        raise Refused("wrong_length", field, None, f"{field} must have every outcome")
    return [chances[outcome] for outcome in outcomes]


def normalized(chances: dict[str, int], outcomes: tuple[str, ...]) -> tuple[int, ...]:
    """Return probabilities, 1e-9, in the question's order of outcomes, so that they sum to exactly 1.

    The difference between their sum and 1, at most 1e-6, is added to the largest; to the first of several that are
    equal. Refuses, first that applies: unknown_outcome, wrong_length, not_summing_to_one.
    """
    row = check_outcomes(chances, outcomes, "probabilities")
    missing = values.PROBABILITY - sum(row)
    if abs(missing) > TOLERANCE:
        total = values.format_fixed(sum(row), values.PROBABILITY)
        raise Refused("not_summing_to_one", "probabilities", total)
    row[row.index(max(row))] += missing
    return tuple(row)


def check_distribution(command: commands.SubmitForecast, numbers: _Numbers, question: QuestionState) -> dict[str, Any]:
    """Return the fields of the event that record the distribution; samples in increasing order.

    numbers: the command's, from `read_distribution`.

    Refuses, first that applies: unknown_outcome, wrong_length, not_summing_to_one, decreasing, open_end_needed.
    """
    if isinstance(numbers, int):
        return {"probabilities": (numbers, values.PROBABILITY - numbers)}
    if isinstance(numbers, dict):
        return {"probabilities": normalized(numbers, question.current)}
    if isinstance(numbers, StatedPoints):
        return {"cdf": cdf_of_points(numbers, question), "points": numbers}
    if question.range is None or not question.range.measures:
        return {"cdf": _check_cdf(numbers, question.range)}
    if question.range.samples:
        return {"samples": _check_measures("samples", command.samples or (), numbers, question.range)}
    return {"quantiles": _check_measures("quantiles", command.quantiles or (), numbers, question.range)}


def _check_cdf(heights: list[int], span: events.NumericRange | None) -> tuple[int, ...]:
    if span is None or len(heights) != span.bins + 1:
        raise Refused("wrong_length", "cdf", len(heights))
    if heights != sorted(heights):
        raise Refused("decreasing", "cdf", None)
    if (heights[0] and not span.open_lower) or (heights[-1] != values.CUMULATIVE and not span.open_upper):
        raise Refused("open_end_needed", "cdf", None)
    return tuple(heights)


def _check_measures(field: str, given: Sequence[Any], units: list[int], span: events.NumericRange) -> tuple[int, ...]:
    """Return quantiles or samples in 10^-decimals. Beyond an open end, they may be as large as the unit can count."""
    if len(units) != span.measures:
        raise Refused("wrong_length", field, len(units))
    ordered = sorted(units)
    if span.levels and units != ordered:
        raise Refused("decreasing", field, None)
    furthest = values.LARGEST_MEASURE
    least, most = _bounds(span.lower, span.upper, span.decimals)
    least, most = -furthest if span.open_lower else least, furthest if span.open_upper else most
    if least < ordered[0] and ordered[-1] < most:  # by at least one unit; rounding moves a number by less
        return tuple(ordered)
    lower, upper = Decimal(span.lower), Decimal(span.upper)
    for number, rounded in zip(given, units, strict=True):
        if least < rounded < most:
            continue
        value = values.read_measure(number, field)
        if (value < lower and not span.open_lower) or (value > upper and not span.open_upper):
            raise Refused("open_end_needed", field, str(value))
        if not is_countable(value, span.decimals):
            raise not_countable(field, value)
    return tuple(ordered)


def not_countable(field: str, value: Decimal) -> Refused:
    """Return the refusal of a number that is too large for the decimals of a question.

    >>> not_countable("value", Decimal("1e14")).remedy
    'give a number nearer to 0, or open the question with fewer `decimals` in its range'
    """
    detail = f"it is more than {values.LARGEST_MEASURE:,} units of the question's last decimal"
    remedy = "give a number nearer to 0, or open the question with fewer `decimals` in its range"
    return Refused("open_end_needed", field, str(value), detail, remedy=remedy)


@lru_cache(maxsize=4_096)
def _bounds(lower: str, upper: str, decimals: int) -> tuple[int, int]:
    """Return the bounds of a range in 10^-decimals, rounded."""
    least, most = values.read_measures((Decimal(lower), Decimal(upper)), 10**decimals, "range")
    return least, most
