"""Events as text: one line per event, as every report and every list of events prints it."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import structs

from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.events import TAGS, Event
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.mismatch import field_text, instant_text, money_text, probability_text, shorten

_LONGEST = 60  # characters of a text within a line
_LONGEST_LINE = 160


def event_summary(recorded: Recorded) -> dict[str, Any]:
    """Return an event as a row: its log position, both instants, its type and its sentence."""
    return {
        "log_position": recorded.position,
        "recorded_at": instant_text(recorded.recorded_at),
        "at": instant_text(recorded.event.at),
        "type": event_type(recorded.event),
        "says": sentence(recorded.event),
    }


def event_type(event: Event) -> str:
    """Return the name of an event's type, without its version.

    >>> event_type(events.QuestionClosed(at=0, question="rain"))
    'question_closed'
    """
    return TAGS[type(event)].partition(".")[0]


def sentence(event: Event) -> str:
    """Return an event as one line of text; for a type without its own sentence, the fields that differ from defaults.

    >>> sentence(events.CashGranted(at=0, contest="cup", participant="ada", amount=10_000_000_000))
    'ada in cup: 10000.00'
    """
    write = _SENTENCES.get(type(event))
    return _fields(event) if write is None else write(event)


def _fields(event: Event) -> str:
    """Return each field with its value in printed units."""
    fields = [
        f"{field.name}={field_text(field.name, value)}"
        for field in structs.fields(event)
        if field.name != "at" and (value := getattr(event, field.name)) != field.default
    ]
    return shorten(" ".join(fields), _LONGEST_LINE)


def _chances(numbers: Sequence[int | None]) -> str:
    return ", ".join(map(probability_text, numbers))


def _reason(reason: str) -> str:
    return f": {shorten(reason, _LONGEST)}" if reason else ""


def _participant(event: Any) -> str:
    return f"{event.participant} in {event.contest}"


def _position(event: Any) -> str:
    return f"{_participant(event)}, position {event.position} on {event.question}, outcome {event.outcome}"


def _holding(event: events.PositionSettled | events.PositionRefunded | events.TradesVoided) -> str:
    return f"{_position(event)}: {money_text(event.shares)} shares that cost {money_text(event.cost)}"


def _question_opened(event: events.QuestionOpened) -> str:
    return f"{event.question}, {event.kind}, until {instant_text(event.closes_at)}{_reason(event.title)}"


def _forecast(event: events.ForecastMade) -> str:
    if event.cdf:
        forecast = f"a cdf of {len(event.cdf)} values"
    elif event.quantiles:
        forecast = f"{len(event.quantiles)} quantiles"
    else:
        forecast = shorten(_chances(event.probabilities), _LONGEST)
    until = "" if event.until is None else f", until {instant_text(event.until)}"
    return f"{event.participant} on {event.question}: {forecast}{until}"


def _resolution(event: events.QuestionResolved) -> str:
    answer = event.value or (f"payouts {_chances(event.payouts)}" if event.payouts else f"outcome {event.outcome}")
    return f"{event.question}: {shorten(answer, _LONGEST)}, known at {instant_text(event.known_at)}"


def _contest(event: events.ContestOpened) -> str:
    pool = f", a pool of {money_text(event.pool)} {event.currency}".rstrip() if event.pool else ""
    return f"{event.contest}, rules {event.rules.name}{pool}{_reason(event.title)}"


def _enrolment(event: events.ParticipantEnrolled) -> str:
    also = [f"{name} {getattr(event, name)}" for name in ("entrant", "family", "release") if getattr(event, name)]
    return ", ".join([_participant(event), *also, *(["a bot"] if event.bot else [])])


def _prices(event: events.PricesQuoted) -> str:
    prices = "; ".join(f"{quote.question} {_chances(quote.prices)}" for quote in event.quotes[:5])
    return f"{event.source}: {shorten(prices, _LONGEST)}"


def _decision(event: events.DecisionRecorded) -> str:
    legs = len(event.bets) + len(event.sells)
    done = f", {event.executed} of {legs} legs" if legs else ""
    return f"{_participant(event)}, period {event.period}: {event.action}{done}{_reason(event.reasoning)}"


def _purchase(event: events.SharesBought) -> str:
    shares, price = money_text(event.shares), probability_text(event.price)
    return f"{_position(event)}: {shares} shares at {price} for {money_text(event.amount)}"


def _sale(event: events.SharesSold) -> str:
    shares, price = money_text(event.shares), probability_text(event.price)
    return f"{_position(event)}: {shares} shares at {price} for {money_text(event.proceeds)}"


# The types with their own sentence; a sentence depends on its event alone.
_SENTENCES: dict[type, Callable[[Any], str]] = {
    events.QuestionOpened: _question_opened,
    events.ForecastMade: _forecast,
    events.ForecastWithdrawn: lambda event: f"{event.participant} on {event.question}",
    events.QuestionClosed: lambda event: str(event.question),
    events.QuestionResolved: _resolution,
    events.QuestionAnnulled: lambda event: f"{event.question}, {event.policy}{_reason(event.reason)}",
    events.ResolutionRevoked: lambda event: f"{event.question}{_reason(event.reason)}",
    events.ContestOpened: _contest,
    events.QuestionAdded: lambda event: f"{event.question} to {event.contest}, weight {money_text(event.weight)}",
    events.ParticipantEnrolled: _enrolment,
    events.ParticipantExcluded: lambda event: f"{_participant(event)}, {event.level}{_reason(event.reason)}",
    events.ContestFinalized: lambda event: str(event.contest),
    events.PrizePaid: lambda event: f"{_participant(event)}: {money_text(event.amount)}",
    events.PricesQuoted: _prices,
    events.CashGranted: lambda event: f"{_participant(event)}: {money_text(event.amount)}",
    events.CashDeposited: lambda event: f"{_participant(event)}: {money_text(event.amount)}{_reason(event.reason)}",
    events.CashWithdrawn: lambda event: f"{_participant(event)}: {money_text(event.amount)}{_reason(event.reason)}",
    events.TextKept: lambda event: f"{event.digest[:16]}: {shorten(event.text, _LONGEST)}",
    events.DecisionRecorded: _decision,
    events.DecisionMalformed: lambda event: f"{_participant(event)}, period {event.period}: {event.fault}",
    events.DecisionDefaulted: lambda event: f"{_participant(event)}, period {event.period}: HOLD",
    events.CallFailed: lambda event: f"{_participant(event)}, period {event.period}{_reason(event.error)}",
    events.SharesBought: _purchase,
    events.SharesSold: _sale,
    events.LegRefused: lambda event: f"{_participant(event)}, period {event.period}, leg {event.leg}: {event.code}",
    events.PositionSettled: lambda event: (
        f"{_holding(event)}, at {probability_text(event.payout)} for {money_text(event.proceeds)}"
    ),
    events.PositionRefunded: _holding,
    events.TradesVoided: lambda event: f"{_holding(event)}, for {money_text(event.amount)}",
    events.SettlementReversed: lambda event: (
        f"{_position(event)}: {money_text(-event.amount)}, log position {event.reverses}"
    ),
}
