"""Requests to record a command: its id and its content, and the fingerprint by which a retry is known."""

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from forecast_ledger.ledger.batching.quick_forecasts import QuickForecast, read_quick_forecasts
from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused, first_by_precedence
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.canonical import canonical_content, with_decimals
from forecast_ledger.ledger.model.commands import AnyCommand

MAX_COMMAND_BYTES = 16 * 2**20  # of a command's content, so that each of its rows has at most MAX_ROW_BYTES


class Request(NamedTuple):
    """A command to record, under an id. `known_by`: the fingerprint of its content, or the refusal of its fields.

    quick: what `read_quick_forecasts` returns for it.
    """

    id: str
    command: AnyCommand
    known_by: str | Refused
    quick: QuickForecast | None = None


_new_request: Callable[[tuple[Any, ...]], Request] = partial(tuple.__new__, Request)  # without a function of Python's
_fingerprint_of: Callable[[Any], str] = itemgetter(3)  # of a QuickForecast


def read_requests(commands: Sequence[AnyCommand], ids: Sequence[str] | None = None) -> list[Request]:
    """Return requests to record commands; ids: `command.id` of each by default."""
    ids = [command.id for command in commands] if ids is None else ids
    quick = read_quick_forecasts(ids, commands)
    if all(quick):
        return [*map(_new_request, zip(ids, commands, map(_fingerprint_of, quick), quick, strict=True))]
    return [
        _read_request(command_id, command) if forecast is None else Request(command_id, command, forecast[3], forecast)
        for command_id, command, forecast in zip(ids, commands, quick, strict=True)
    ]


def _read_request(command_id: str, command: AnyCommand) -> Request:
    command = with_decimals(command)
    return Request(command_id, command, _fingerprint(command_id, command))


def _fingerprint(command_id: str, command: AnyCommand) -> str | Refused:
    """Return the fingerprint of a command's content, or the first refusal of its id and fields by precedence."""
    try:
        values.check_id(command_id, "id")
        content = canonical_content(command)
        if len(content) <= MAX_COMMAND_BYTES:
            return log.fingerprint(content)
        too_long = f"its content has more than {MAX_COMMAND_BYTES} bytes"
        return Refused("malformed", "command", None, too_long, remedy="split it into several commands")
    except Refused as refused:
        fault = refused
    try:
        canonical_content(command)
    except Refused as content_fault:
        return first_by_precedence([content_fault, fault])
    return fault
