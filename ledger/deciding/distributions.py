"""Part of the decider: the numbers of a forecast, brought to units and checked against the question's form."""

from decimal import Decimal
from functools import lru_cache
from typing import Any

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.deciding.numeric_ranges import countable
from forecast_ledger.ledger.deciding.state import Question
from forecast_ledger.ledger.model import commands, events

TOLERANCE = values.PROBABILITY // 10**6  # by how much a sum of probabilities may miss one
UNCOUNTABLE = f"it is more than {values.LARGEST_MEASURE:,} units of the question's last decimal"


def form(question: Question) -> str:
    """The form of distribution that a question takes: the name of the command's field."""
    if question.range is None:
        return "probability" if question.kind == "binary" else "probabilities"
    return "quantiles" if question.range.levels else "cdf"


def given(command: commands.SubmitForecast, question: Question | None) -> tuple[str, int | dict[str, int] | list[int]]:
    """The form of the distribution, and its numbers; no form if there is not exactly one. Quantiles are in the
    question's unit, if it has one.
    """
    probability, probabilities, cdf, quantiles = (
        command.probability, command.probabilities, command.cdf, command.quantiles
    )  # fmt: skip
    if (probability is None) + (probabilities is None) + (cdf is None) + (quantiles is None) != 3:
        return "", []
    if probability is not None:
        return "probability", values.read_probability(probability, "probability")
    if probabilities is not None:
        return "probabilities", chances(probabilities, "probabilities")
    if cdf is not None:
        return "cdf", values.read_each_fixed(cdf, values.CUMULATIVE, "cdf", 0, values.CUMULATIVE)
    decimals = 0 if question is None or question.range is None else question.range.decimals
    return "quantiles", values.read_measures(quantiles or (), 10**decimals, "quantiles")


def chances(given: dict[str, Any], field: str) -> dict[str, int]:
    """Probabilities by outcome, in 1e-9."""
    one = values.PROBABILITY
    try:
        return dict(zip(given, values.read_each_fixed(given.values(), one, field, 0, one), strict=True))
    except Refused:  # name the outcome
        return {name: values.read_probability(chance, f"{field}.{name}") for name, chance in given.items()}


def brought_to_one(chances: dict[str, int], outcomes: tuple[str, ...], field: str = "probabilities") -> tuple[int, ...]:
    """Probabilities, or payouts, in the question's order, brought to exactly one.

    What they miss of one (at most 1e-6) goes to the largest, the first of equals.
    """
    there = frozenset(outcomes)
    for outcome in chances:
        if outcome not in there:
            raise Refused("unknown_outcome", field, outcome)
    if len(chances) != len(outcomes):
        raise Refused("wrong_length", field, None, f"an outcome is missing in {field}")
    row = [chances[outcome] for outcome in outcomes]
    missing = values.PROBABILITY - sum(row)
    if abs(missing) > TOLERANCE:
        total = values.format_fixed(sum(row), values.PROBABILITY)
        raise Refused("not_summing_to_one", field, total)
    row[row.index(max(row))] += missing
    return tuple(row)


def checked(
    command: commands.SubmitForecast, numbers: int | dict[str, int] | list[int], question: Question
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Probabilities, cdf and quantiles as a forecast on the question records them: one of them, the others empty.

    numbers: those of the command, as `given` says.

    Refuses, first that applies: unknown_outcome, wrong_length, not_summing_to_one, decreasing, open_end_needed.
    """
    if isinstance(numbers, int):
        return (numbers, values.PROBABILITY - numbers), (), ()
    if isinstance(numbers, dict):
        return brought_to_one(numbers, question.outcomes), (), ()
    if question.range is not None and question.range.levels:
        return (), (), _checked_quantiles(command, numbers, question.range)
    return (), _checked_cdf(numbers, question.range), ()


def _checked_cdf(heights: list[int], span: events.NumericRange | None) -> tuple[int, ...]:
    if span is None or len(heights) != span.bins + 1:
        raise Refused("wrong_length", "cdf", len(heights))
    if heights != sorted(heights):
        raise Refused("decreasing", "cdf", None)
    if (heights[0] and not span.open_lower) or (heights[-1] != values.CUMULATIVE and not span.open_upper):
        raise Refused("open_end_needed", "cdf", None)
    return tuple(heights)


def _checked_quantiles(
    command: commands.SubmitForecast, units: list[int], span: events.NumericRange
) -> tuple[int, ...]:
    """Quantiles in 10^-decimals; ends that are open take what the unit can count."""
    if len(units) != len(span.levels):
        raise Refused("wrong_length", "quantiles", len(units))
    if units != sorted(units):
        raise Refused("decreasing", "quantiles", None)
    furthest = values.LARGEST_MEASURE
    least, most = _bounds(span.lower, span.upper, span.decimals)
    least, most = -furthest if span.open_lower else least, furthest if span.open_upper else most
    if least < units[0] and units[-1] < most:  # by a unit at least, which is more than rounding moves
        return tuple(units)
    lower, upper = Decimal(span.lower), Decimal(span.upper)
    for number, counted in zip(command.quantiles or (), units, strict=True):
        if least < counted < most:
            continue
        value = values.read_measure(number, "quantiles")
        if (value < lower and not span.open_lower) or (value > upper and not span.open_upper):
            raise Refused("open_end_needed", "quantiles", str(value))
        if not countable(value, span.decimals):
            raise Refused("open_end_needed", "quantiles", str(value), UNCOUNTABLE)
    return tuple(units)


@lru_cache(maxsize=4_096)
def _bounds(lower: str, upper: str, decimals: int) -> tuple[int, int]:
    """The bounds of a range in 10^-decimals, rounded."""
    least, most = values.read_measures((Decimal(lower), Decimal(upper)), 10**decimals, "range")
    return least, most
