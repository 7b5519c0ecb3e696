"""A quick look at forecasts, of which logs are full: what is seen here need not be decided at length.

It may say yes only where the decider would record the same event; where it does not say so, the decider is asked.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache

from msgspec import json

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.core.values import (
    CUMULATIVE,
    FIRST_INSTANT,
    LARGEST_MEASURE,
    PROBABILITY,
    check_id,
    read_fixed,
)
from forecast_ledger.ledger.deciding.state import QuestionState, State
from forecast_ledger.ledger.model.canonical import shortest_text
from forecast_ledger.ledger.model.events import ForecastMade, NumericRange
from forecast_ledger.ledger.model.log import Recorded

_Form = Callable[[ForecastMade], bytes | None]  # how the numbers of a forecast are spelt; None if they may not be right
_encode = json.encode


class ForecastCheck:
    """Forecasts as a state stands. Questions keep their form for good, so that it is worked out once."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._forms: dict[str, tuple[bytes, _Form]] = {}  # by question, with the spelling of its id
        self._participants: dict[str, bytes] = {}  # how ids that ids may be are spelt

    def content(self, recorded: Recorded) -> bytes | None:
        """The content of the command that records this forecast, if the decider certainly allows it; else None."""
        event: ForecastMade = recorded.event  # type: ignore[assignment]
        state, at = self._state, event.at
        question = state.questions.get(event.question)
        if question is None or question.settled or not FIRST_INSTANT <= at < question.closed_at:
            return None
        last = state.standing.get((event.question, event.participant))
        if event.attestation is not None or (last is not None and at < last[0]):
            return None
        spelt, form = self._forms.get(event.question) or self._form(event.question, question)
        numbers = form(event)
        if numbers is None:
            return None
        try:
            check_id(recorded.command_id, "id")
            who = self._participants.get(event.participant) or self._participant(event.participant)
        except Refused:
            return None
        return b'["submit_forecast",%b,%b,%d,%b]' % (spelt, who, at, numbers)

    def _participant(self, participant: str) -> bytes:
        spelt = self._participants[participant] = _encode(check_id(participant, "participant"))
        return spelt

    def _form(self, name: str, question: QuestionState) -> tuple[bytes, _Form]:
        if question.range is None:
            form = _yes if question.kind == "binary" else _named(question.outcomes)
        else:
            form = _quantiles(question.range) if question.range.levels else _cdf(question.range)
        self._forms[name] = _encode(name), form
        return self._forms[name]


def _spelt(units: int, places: int) -> bytes:
    """A number of 10^-places as it is spelt; most lie between a millionth and 1."""
    if 10**places > units >= 10**places // 10**6 > 0:
        return b'"0.%b"' % (b"%0*d" % (places, units)).rstrip(b"0")
    return _shortest(units, places)


@lru_cache(maxsize=65_536)
def _shortest(units: int, places: int) -> bytes:
    return b'"%b"' % shortest_text(Decimal(units).scaleb(-places, WIDE)).encode()


def _yes(event: ForecastMade) -> bytes | None:
    chances = event.probabilities
    if event.cdf or event.quantiles or len(chances) != 2:
        return None
    yes, no = chances
    if not 0 <= yes <= PROBABILITY or yes + no != PROBABILITY:
        return None
    return b"%b,null,null" % _spelt(yes, 9)


def _named(outcomes: tuple[str, ...]) -> _Form:
    """Probabilities by outcome; names in the order in which they are encoded."""
    order = [*json.decode(json.encode({name: i for i, name in enumerate(outcomes)}, order="deterministic")).items()]
    names = [(_encode(name), place) for name, place in order]

    def spelt(event: ForecastMade) -> bytes | None:
        chances = event.probabilities
        if event.cdf or event.quantiles or len(chances) != len(names):
            return None
        if min(chances) < 0 or sum(chances) != PROBABILITY:
            return None
        return b"null,{%b},null" % b",".join([b"%b:%b" % (name, _spelt(chances[place], 9)) for name, place in names])

    return spelt


def _cdf(span: NumericRange) -> _Form:
    lowest = CUMULATIVE if span.open_lower else 0
    highest = 0 if span.open_upper else CUMULATIVE

    def spelt(event: ForecastMade) -> bytes | None:
        heights = event.cdf
        if event.probabilities or event.quantiles or len(heights) != span.bins + 1:
            return None
        if not 0 <= heights[0] <= lowest or not highest <= heights[-1] <= CUMULATIVE or sorted(heights) != [*heights]:
            return None
        return b"null,null,[%b]" % b",".join([_spelt(height, 10) for height in heights])

    return spelt


def _quantiles(span: NumericRange) -> _Form:
    unit, places = 10**span.decimals, span.decimals
    lower, upper = (
        read_fixed(Decimal(end), unit, "range", -LARGEST_MEASURE, LARGEST_MEASURE) for end in (span.lower, span.upper)
    )
    lowest = -LARGEST_MEASURE if span.open_lower else lower + (Decimal(lower).scaleb(-places) < Decimal(span.lower))
    highest = LARGEST_MEASURE if span.open_upper else upper - (Decimal(upper).scaleb(-places) > Decimal(span.upper))

    def spelt(event: ForecastMade) -> bytes | None:
        asked = event.quantiles
        if event.probabilities or event.cdf or len(asked) != len(span.levels):
            return None
        if not lowest <= asked[0] or not asked[-1] <= highest or sorted(asked) != [*asked]:
            return None
        return b"null,null,null,[%b]" % b",".join([_spelt(each, places) for each in asked])

    return spelt
