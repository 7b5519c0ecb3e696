"""The normal form of a command: what it says as its events record it, by which a retry is known and a log is audited.

It depends on facts of a question that never change: its kind, its decimals, and the order of its outcomes.
"""

from collections.abc import Callable
from decimal import Decimal
from itertools import repeat
from typing import Any

from msgspec import structs

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WIDE, WRITTEN
from forecast_ledger.ledger.deciding.contests import start_of
from forecast_ledger.ledger.deciding.distributions import TOLERANCE, outcome_probabilities
from forecast_ledger.ledger.deciding.payouts import normal_payouts
from forecast_ledger.ledger.deciding.state import QuestionState, State
from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.canonical import normal_content
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import fingerprint

_PRICES = ("prices", "bids", "asks", "bid_sizes", "ask_sizes")


def command_digest(command: AnyCommand, state: State) -> str:
    """Return the digest of a command's normal form. state: one in which the question that it names is opened, if any.

    Refuses what `canonical_content` refuses.

    >>> forecasts = [commands.SubmitForecast(question="q", participant="a", probability=p) for p in ("0.5", "0.50")]
    >>> len({command_digest(forecast, State()) for forecast in forecasts})
    1
    """
    return fingerprint(normal_content(as_recorded(command, state)))


def as_recorded(command: AnyCommand, state: State) -> AnyCommand:
    """Return a command with its values as they are recorded, where this takes more than one field or its question.

    A value that cannot be read, or will be refused, stays as it is.
    """
    change = _CHANGES.get(type(command))
    if change is None:
        return command
    name = getattr(command, "question", None)
    question = state.questions.get(name) if type(name) is str else None
    try:
        changes = change(command, question)
        return structs.replace(command, **changes) if changes else command
    except (Refused, TypeError, ValueError, AttributeError):
        return command


def needs_question(command: AnyCommand) -> bool:
    """Return whether the normal form of a command depends on its question."""
    if type(command) is commands.SubmitForecast:
        return (command.probabilities, command.quantiles, command.samples, command.points) != (None,) * 4
    return type(command) in {commands.ResolveQuestion, commands.RestateForecasts}


def without_fields(command: AnyCommand) -> AnyCommand:
    """Return a decision whose fields, beside the text of the reply, are not recorded, because they are not valid.

    Its action is empty, and no other field is left.
    """
    if type(command) is not commands.RecordDecision or command.response is None:
        return command
    if all(part is None for part in (command.action, command.bets, command.sells, command.reasoning)):
        return command
    return structs.replace(command, action="", bets=None, sells=None, reasoning=None)


def _forecast(command: commands.SubmitForecast, question: QuestionState | None) -> dict[str, Any]:
    if question is None:
        return {}
    if command.probabilities is not None:
        return _adding_up(command.probabilities, command.normalized, question)
    for name, given in (("quantiles", command.quantiles), ("samples", command.samples)):
        if given is not None and question.range is not None:
            decimals = question.range.decimals
            units = values.read_measures(given, 10**decimals, name)
            ordered = sorted(units) if name == "samples" else units
            decimal = values.read_decimals(given, name)
            if ordered == [*map(Decimal.scaleb, decimal, repeat(decimals), repeat(WRITTEN))]:
                return {}  # each has as many decimals as are recorded
            return {name: tuple(Decimal(each).scaleb(-decimals, WIDE) for each in ordered)}
    if command.points is not None and question.kind == "date":
        dates = tuple(values.read_seconds(each, "points.quantiles") for each in command.points.quantiles)
        return {"points": structs.replace(command.points, quantiles=dates)}
    return {}


def _restated(command: commands.RestateForecasts, question: QuestionState | None) -> dict[str, Any]:
    made = [(each, each.made(command.question, command.participant)) for each in command.forecasts]
    return {"forecasts": tuple(structs.replace(each, **_forecast(forecast, question)) for each, forecast in made)}


def _adding_up(given: dict[str, Any], rule: str | None, question: QuestionState) -> dict[str, Any]:
    """Return probabilities as they are recorded: the largest, the first of equals, takes what is missing.

    Shares that a rule makes probabilities of are recorded, unless their sum is 1, so that the rule changes nothing.
    """
    chances = outcome_probabilities(given)
    missing = values.PROBABILITY - sum(chances.values())
    names = [outcome for outcome in question.outcomes if outcome in chances]
    if rule is None and abs(missing) <= TOLERANCE and names:
        chances[max(names, key=chances.__getitem__)] += missing  # the first of equals
    if not missing and rule is None:
        return {}
    recorded = {name: Decimal(chance).scaleb(-9, WIDE) for name, chance in chances.items()}
    return {"probabilities": recorded, "normalized": rule if missing else None}


def _answer(command: commands.ResolveQuestion, question: QuestionState | None) -> dict[str, Any]:
    if question is None:
        return {}
    if command.payouts is not None:
        return {"payouts": normal_payouts(command.payouts)}
    if command.value is not None and question.kind == "date":
        return {"value": values.read_seconds(command.value, "value")}
    return {}


def _opening(command: commands.OpenQuestion, _: object) -> dict[str, Any]:
    span = command.range
    if command.kind != "date" or span is None:
        return {}
    ends = {"lower": span.lower, "upper": span.upper, "zero_point": span.zero_point}
    read = {name: None if end is None else values.read_seconds(end, name) for name, end in ends.items()}
    return {"range": structs.replace(span, **read)}


def _contest(command: commands.OpenContest, _: object) -> dict[str, Any]:
    return {} if command.starts_at is None else {"starts_at": values.format_instant(start_of(command))}


def _quote(command: commands.Quote, _: object) -> dict[str, Any]:
    if command.question is None or command.quotes is not None:
        return {}
    row = commands.Prices(question=command.question, **{side: getattr(command, side) for side in _PRICES})
    return {"question": None, "quotes": (row,), **dict.fromkeys(_PRICES)}


_CHANGES: dict[type, Callable[[Any, QuestionState | None], dict[str, Any]]] = {
    commands.SubmitForecast: _forecast,
    commands.RestateForecasts: _restated,
    commands.ResolveQuestion: _answer,
    commands.OpenQuestion: _opening,
    commands.OpenContest: _contest,
    commands.Quote: _quote,
}
