"""A quick check of forecasts, the most frequent events of a log.

It accepts only events that the decider would record; an event that it does not accept is decided in full.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache

from msgspec import json

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.core.values import (
    CUMULATIVE,
    LARGEST_MEASURE,
    PROBABILITY,
    check_id,
    read_fixed,
)
from forecast_ledger.ledger.deciding.questions import accepting_question
from forecast_ledger.ledger.deciding.state import QuestionState, State
from forecast_ledger.ledger.model.canonical import shortest_text
from forecast_ledger.ledger.model.events import ForecastMade, NumericRange
from forecast_ledger.ledger.model.log import Recorded

_Form = Callable[[ForecastMade], bytes | None]  # -> canonical bytes of a forecast's numbers; None if not accepted
_encode = json.encode


class ForecastCheck:
    """A quick check of forecasts against a state. The form of a question never changes, so it is cached."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._forms: dict[str, tuple[bytes, _Form]] = {}  # question -> its canonical id, its form
        self._participants: dict[str, bytes] = {}  # valid id -> its canonical bytes

    def content(self, recorded: Recorded) -> bytes | None:
        """Return the canonical content of the command of a forecast; None unless the decider certainly accepts it."""
        event: ForecastMade = recorded.event  # type: ignore[assignment]
        question = accepting_question(event.question, event.participant, event.at, self._state)
        if question is None or event.attestation is not None or event.until is not None:
            return None
        question_id, form = self._forms.get(event.question) or self._form(event.question, question)
        numbers = form(event)
        if numbers is None:
            return None
        try:
            check_id(recorded.command_id, "id")
            participant = self._participants.get(event.participant) or self._participant(event.participant)
        except Refused:
            return None
        return b'["submit_forecast",%b,%b,%d,%b]' % (question_id, participant, event.at, numbers)

    def _participant(self, participant: str) -> bytes:
        encoded = self._participants[participant] = _encode(check_id(participant, "participant"))
        return encoded

    def _form(self, name: str, question: QuestionState) -> tuple[bytes, _Form]:
        if question.range is None:
            form = _binary if question.kind == "binary" else _probabilities(question.outcomes)
        else:
            form = _quantiles(question.range) if question.range.levels else _cdf(question.range)
        self._forms[name] = _encode(name), form
        return self._forms[name]


def _number_bytes(units: int, places: int) -> bytes:
    """Return the canonical bytes of units * 10^-places; fast for numbers between a millionth and 1."""
    if 10**places > units >= 10**places // 10**6 > 0:
        return b'"0.%b"' % (b"%0*d" % (places, units)).rstrip(b"0")
    return _shortest_bytes(units, places)


@lru_cache(maxsize=65_536)
def _shortest_bytes(units: int, places: int) -> bytes:
    return b'"%b"' % shortest_text(Decimal(units).scaleb(-places, WIDE)).encode()


def _binary(event: ForecastMade) -> bytes | None:
    chances = event.probabilities
    if event.cdf or event.quantiles or len(chances) != 2:
        return None
    yes, no = chances
    if not 0 <= yes <= PROBABILITY or yes + no != PROBABILITY:
        return None
    return b"%b,null,null" % _number_bytes(yes, 9)


def _probabilities(outcomes: tuple[str, ...]) -> _Form:
    """Return the form of probabilities by outcome, in the canonical order of the names."""
    order = [*json.decode(json.encode({name: i for i, name in enumerate(outcomes)}, order="deterministic")).items()]
    names = [(_encode(name), index) for name, index in order]

    def canonical_numbers(event: ForecastMade) -> bytes | None:
        chances = event.probabilities
        if event.cdf or event.quantiles or len(chances) != len(names):
            return None
        if min(chances) < 0 or sum(chances) != PROBABILITY:
            return None
        return b"null,{%b},null" % b",".join(
            [b"%b:%b" % (name, _number_bytes(chances[index], 9)) for name, index in names]
        )

    return canonical_numbers


def _cdf(span: NumericRange) -> _Form:
    lowest = CUMULATIVE if span.open_lower else 0
    highest = 0 if span.open_upper else CUMULATIVE

    def canonical_numbers(event: ForecastMade) -> bytes | None:
        heights = event.cdf
        if event.probabilities or event.quantiles or len(heights) != span.bins + 1:
            return None
        if not 0 <= heights[0] <= lowest or not highest <= heights[-1] <= CUMULATIVE or sorted(heights) != [*heights]:
            return None
        return b"null,null,[%b]" % b",".join([_number_bytes(height, 10) for height in heights])

    return canonical_numbers


def _quantiles(span: NumericRange) -> _Form:
    unit, places = 10**span.decimals, span.decimals
    lower, upper = (
        read_fixed(Decimal(end), unit, "range", -LARGEST_MEASURE, LARGEST_MEASURE) for end in (span.lower, span.upper)
    )
    lowest = -LARGEST_MEASURE if span.open_lower else lower + (Decimal(lower).scaleb(-places) < Decimal(span.lower))
    highest = LARGEST_MEASURE if span.open_upper else upper - (Decimal(upper).scaleb(-places) > Decimal(span.upper))

    def canonical_numbers(event: ForecastMade) -> bytes | None:
        quantiles = event.quantiles
        if event.probabilities or event.cdf or len(quantiles) != len(span.levels):
            return None
        if not lowest <= quantiles[0] or not quantiles[-1] <= highest or sorted(quantiles) != [*quantiles]:
            return None
        return b"null,null,null,[%b]" % b",".join([_number_bytes(units, places) for units in quantiles])

    return canonical_numbers
