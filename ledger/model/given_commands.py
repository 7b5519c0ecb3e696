"""Commands as a caller in Python gives them: lists become tuples, and numbers that are read more than once decimals."""

from typing import Any

from msgspec import Struct, structs

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand, SubmitForecast

_ROWS = frozenset({tuple, list})
_READ_AS_DECIMALS = frozenset({float, str})


def with_tuples(part: Any) -> Any:
    """Return a command, or a field of one, with a tuple in place of each list that a caller gave for a tuple.

    >>> from forecast_ledger.ledger.model.commands import ChangeOutcomes
    >>> with_tuples(ChangeOutcomes(at="2026-03-01T00:00:00Z", question="q1", remove=["a"])).remove
    ('a',)
    """
    if type(part) is list:
        return tuple(part)
    if not isinstance(part, Struct):
        return part
    fields = [(name, getattr(part, name)) for name in part.__struct_fields__]
    deeper = [(name, value) for name, value in fields if type(value) is list or isinstance(value, Struct)]
    changed = {name: new for name, value in deeper if (new := with_tuples(value)) is not value}
    return structs.replace(part, **changed) if changed else part


def with_decimals(command: AnyCommand) -> AnyCommand:
    """Return the command with floats and texts of a cdf, quantiles or samples as decimals, so that each is read once.

    If one of them is not a number, return the command unchanged.
    """
    if type(command) is not SubmitForecast:
        return command
    forms = {"cdf": command.cdf, "quantiles": command.quantiles, "samples": command.samples}
    field, numbers = next(((name, given) for name, given in forms.items() if given is not None), ("", None))
    if type(numbers) not in _ROWS or not numbers or type(numbers[0]) not in _READ_AS_DECIMALS:
        return command
    try:
        return structs.replace(command, **{field: tuple(values.read_decimals(numbers, field))})
    except Refused:  # `canonical_content` raises the refusal that comes first
        return command
