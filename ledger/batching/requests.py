"""Requests to record a command: its id and its content, and the fingerprint by which a retry is known."""

from collections.abc import Sequence
from typing import NamedTuple

from forecast_ledger.ledger.batching.forecast_columns import ForecastColumns, ids_of
from forecast_ledger.ledger.batching.quick_forecasts import read_quick_forecasts
from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused, first_by_precedence
from forecast_ledger.ledger.deciding.normal_forms import as_recorded
from forecast_ledger.ledger.deciding.state import State
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.canonical import normal_content
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.given_commands import with_decimals, with_tuples

_NOTHING = State()
MAX_COMMAND_BYTES = 16 * 2**20  # of a command's content, so that each of its rows has at most MAX_ROW_BYTES


class Request(NamedTuple):
    """A command to record, under an id. `known_by`: the digest of its normal form, or the refusal of its fields.

    If the normal form depends on its question, the batch computes the digest again, when the question is known.
    """

    id: str
    command: AnyCommand
    known_by: str | Refused


class Requests:
    """Commands to record, in order. quick: the forecasts that need no other way. slow: the requests of all others."""

    def __init__(self, commands: Sequence[AnyCommand], ids: Sequence[str] | None = None) -> None:
        """ids: `command.id` of each by default."""
        self.ids = ids if ids is not None else ids_of(commands)
        self.quick, self._commands = read_quick_forecasts(self.ids, commands), commands
        has_slow = (not isinstance(commands, ForecastColumns) or commands.quick is None) and None in self.quick.at
        is_slow = [place for place, at in enumerate(self.quick.at) if at is None] if has_slow else ()
        self.slow = {place: _read_request(self.ids[place], commands[place]) for place in is_slow}

    @property
    def skips(self) -> bool:
        """Whether the receipt of one says more than where it is in the log: which quotes it skipped."""
        return any(getattr(request.command, "skip_bad", False) for request in self.slow.values())

    def __len__(self) -> int:
        return len(self._commands)

    def __getitem__(self, place: int) -> Request:
        if place in self.slow:
            return self.slow[place]
        [fingerprint] = self.quick.fingerprints(place, place + 1)
        return Request(self.ids[place], self._commands[place], fingerprint)

    def known(self, most: int | None = None) -> list[tuple[str, str | Refused]]:
        """Return the id of each, or of so many of the first, and what it is known by."""
        known: list[tuple[str, str | Refused]] = [*zip(self.ids[:most], self.quick.fingerprints(0, most), strict=True)]
        for place, request in self.slow.items():
            if place < len(known):
                known[place] = request.id, request.known_by
        return known


def _read_request(command_id: str, command: AnyCommand) -> Request:
    command = with_decimals(with_tuples(command))
    return Request(command_id, command, _fingerprint(command_id, command))


def _fingerprint(command_id: str, command: AnyCommand) -> str | Refused:
    """Return the fingerprint of a command's content, or the first refusal of its id and fields by precedence."""
    try:
        values.check_id(command_id, "id")
        content = normal_content(as_recorded(command, _NOTHING))
        if len(content) <= MAX_COMMAND_BYTES:
            return log.fingerprint(content)
        too_long = f"its content has more than {MAX_COMMAND_BYTES} bytes"
        return Refused("malformed", "command", None, too_long, remedy="split it into several commands")
    except Refused as refused:
        fault = refused
    try:
        normal_content(command)
    except Refused as content_fault:
        return first_by_precedence([content_fault, fault])
    return fault
