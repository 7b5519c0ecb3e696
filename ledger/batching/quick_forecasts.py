"""A quick way for forecasts of a probability, which are most commands: from the command to the bytes of its row.

It takes only commands that the decider accepts, and writes the bytes that `canonical_content` and the encoder write;
all others go the long way.
"""

from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from msgspec import json

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import AnyCommand, SubmitForecast

_PLACES = 9  # of a probability in the log
_LEAST = 1_000  # 1e-9; the text of a smaller number has an exponent
_encode = json.encode


class QuickForecast(NamedTuple):
    """A forecast of a probability.

    at: µs. fingerprint: of the command's content. command_bytes, event_bytes: their bytes in a row.
    """

    at: int
    question: str
    participant: str
    fingerprint: str
    command_bytes: bytes
    event_bytes: bytes


def read_quick_forecast(command_id: str, command: AnyCommand) -> QuickForecast | None:
    """Return the forecast that a command makes; None if it has a fault or another form, or may have one."""
    if type(command) is not SubmitForecast or type(command.at) is not str:
        return None
    has_other_form = command.cdf is not None or command.quantiles is not None or command.probabilities is not None
    if has_other_form or command.until is not None or command.attestation is not None:
        return None
    text, units = _probability(command.probability)
    if units < _LEAST:
        return None
    try:
        values.check_id(command_id, "id")
        question, participant = _id_bytes(command.question), _id_bytes(command.participant)
        at = values.read_instant(command.at)
    except (Refused, TypeError):  # an id that is no text may have no hash
        return None
    content = b'["submit_forecast",%b,%b,%d,"%b",null,null]' % (question, participant, at, text.rstrip("0").encode())
    event = b'{"type":"forecast_made.v1","at":%d,"question":%b,"participant":%b,"probabilities":[%d,%d]}' % (
        at, question, participant, units, values.PROBABILITY - units,
    )  # fmt: skip
    fingerprint = log.fingerprint(content)
    command_bytes = log.command_bytes(command_id, fingerprint)
    return QuickForecast(at, command.question, command.participant, fingerprint, command_bytes, event)


def _probability(given: object) -> tuple[str, int]:
    """Return the text of a probability, and the probability in 1e-9; 0 unless the text is 0. and 1 to 9 digits."""
    text = str(given) if type(given) is Decimal else given if type(given) is str else ""
    digits = text[2:]
    if not (text[:2] == "0." and len(digits) <= _PLACES and digits.isdigit() and text.isascii()):
        return text, 0
    return text, int(digits.ljust(_PLACES, "0"))


@lru_cache(maxsize=65_536)
def _id_bytes(text: str) -> bytes:
    """Return the bytes of an id. Raises Refused, TypeError (it has no hash)."""
    return _encode(values.check_id(text, "id"))
