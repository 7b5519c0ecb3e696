"""Part of the decider: the numbers of a forecast, brought to units and checked against the question's form."""

from decimal import Decimal
from operator import gt
from typing import Any

from ledger import commands, events, values
from ledger.errors import Refused
from ledger.ranges import countable
from ledger.state import Question

TOLERANCE = values.PROBABILITY // 10**6  # by how much a sum of probabilities may miss one
UNCOUNTABLE = f"it is more than {values.LARGEST_MEASURE:,} units of the question's last decimal"


def form(question: Question) -> str:
    """The form of distribution that a question takes: the name of the command's field."""
    if question.range is None:
        return "probability" if question.kind == "binary" else "probabilities"
    return "quantiles" if question.range.levels else "cdf"


def given(command: commands.SubmitForecast) -> tuple[str, int | dict[str, int] | tuple[Any, ...]]:
    """The form of the distribution, and its numbers; no form if there is not exactly one."""
    probability, probabilities, cdf, quantiles = (
        command.probability, command.probabilities, command.cdf, command.quantiles
    )  # fmt: skip
    if (probability is None) + (probabilities is None) + (cdf is None) + (quantiles is None) != 3:
        return "", ()
    if probability is not None:
        return "probability", values.probability(probability, "probability")
    if probabilities is not None:
        return "probabilities", chances(probabilities, "probabilities")
    if cdf is not None:
        return "cdf", tuple(values.each_fixed(cdf, values.CUMULATIVE, "cdf", 0, values.CUMULATIVE))
    return "quantiles", tuple(values.measures(quantiles or (), "quantiles"))


def chances(given: dict[str, Any], field: str) -> dict[str, int]:
    """Probabilities by outcome, in 1e-9."""
    one = values.PROBABILITY
    try:
        return dict(zip(given, values.each_fixed(given.values(), one, field, 0, one), strict=True))
    except Refused:  # name the outcome
        return {name: values.probability(chance, f"{field}.{name}") for name, chance in given.items()}


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
    numbers: int | dict[str, int] | tuple[Any, ...], question: Question
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Probabilities, cdf and quantiles as a forecast on the question records them: one of them, the others empty.

    Refuses, first that applies: unknown_outcome, wrong_length, not_summing_to_one, decreasing, open_end_needed.
    """
    if isinstance(numbers, int):
        return (numbers, values.PROBABILITY - numbers), (), ()
    if isinstance(numbers, dict):
        return brought_to_one(numbers, question.outcomes), (), ()
    if question.range is not None and question.range.levels:
        return (), (), _checked_quantiles(numbers, question.range)
    return (), _checked_cdf(numbers, question.range), ()


def _checked_cdf(heights: tuple[int, ...], span: events.NumericRange | None) -> tuple[int, ...]:
    if span is None or len(heights) != span.bins + 1:
        raise Refused("wrong_length", "cdf", len(heights))
    if any(map(gt, heights, heights[1:])):
        raise Refused("decreasing", "cdf", None)
    if (heights[0] and not span.open_lower) or (heights[-1] != values.CUMULATIVE and not span.open_upper):
        raise Refused("open_end_needed", "cdf", None)
    return heights


def _checked_quantiles(given: tuple[Decimal, ...], span: events.NumericRange) -> tuple[int, ...]:
    """Quantiles in 10^-decimals; ends that are open take what the unit can count."""
    if len(given) != len(span.levels):
        raise Refused("wrong_length", "quantiles", len(given))
    quantiles = tuple(values.counted(given, 10**span.decimals))
    if any(map(gt, quantiles, quantiles[1:])):
        raise Refused("decreasing", "quantiles", None)
    lower, upper = Decimal(span.lower), Decimal(span.upper)
    within = (span.open_lower or min(given) >= lower) and (span.open_upper or max(given) <= upper)
    if within and quantiles[0] > -values.LARGEST_MEASURE and quantiles[-1] < values.LARGEST_MEASURE:
        return quantiles
    for value in given:  # one of them may be at fault
        if (value < lower and not span.open_lower) or (value > upper and not span.open_upper):
            raise Refused("open_end_needed", "quantiles", str(value or 0))
        if not countable(value, span.decimals):
            raise Refused("open_end_needed", "quantiles", str(value), UNCOUNTABLE)
    return quantiles
