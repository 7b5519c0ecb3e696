"""An event as a row with its type and a sentence, in which outcomes have their names."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import zip_longest
from typing import Any, NamedTuple

from msgspec import UNSET, structs

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.answers import exact_share, exact_shares
from forecast_ledger.ledger.model.book import AGAINST
from forecast_ledger.ledger.model.events import TAGS, Event, OutcomesChanged, QuestionOpened
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.mismatch import (
    field_text,
    instant_text,
    money_text,
    probability_text,
    share_text,
    shorten,
)
from forecast_ledger.ledger.model.provenance import NOTHING, Evidence, Provenance
from forecast_ledger.ledger.storing.stored_log import StoredLog

Outcomes = Callable[[str], Sequence[str]]  # a question -> the names of its outcomes, in their order; () if not known
_NAMING = (b'"question_opened.', b'"outcomes_changed.')


def unnamed(_: str) -> Sequence[str]:
    """Return no names: outcomes are printed as their numbers.

    >>> unnamed("rain")
    ()
    """
    return ()


class OutcomeNames:
    """The names of outcomes, learned from the events as they are read.

    earlier: the events before the first that is learned from. They are read once, when an event is about a question
    that is not known.

    >>> names = OutcomeNames()
    >>> rain = QuestionOpened(at=0, question="rain", kind="binary", outcomes=("yes", "no"), opens_at=0, closes_at=1)
    >>> names.learn(rain)
    >>> names.of("rain"), names.of("wind")
    (('yes', 'no'), ())
    """

    def __init__(self, earlier: Iterable[Event] = ()) -> None:
        self._names: dict[str, tuple[str, ...]] = {}
        self._earlier: Iterable[Event] = earlier

    def learn(self, event: Event) -> None:
        """Keep the names of a question that an event opens, and those that are added.

        Removed outcomes keep their indices, so a forecast without them has fewer numbers than there are names.
        """
        if isinstance(event, QuestionOpened):
            self._names[event.question] = event.outcomes
        elif isinstance(event, OutcomesChanged):
            self._names[event.question] = (*self.of(event.question), *event.added)

    def of(self, question: str) -> Sequence[str]:
        """Return the names of a question's outcomes, in their order; () if it has a range, or is not known."""
        if question not in self._names:
            earlier, self._earlier = self._earlier, ()
            for event in earlier:
                self.learn(event)
        return self._names.get(question, ())


def openings(store: StoredLog, last: int) -> Iterator[Event]:
    """Yield the events that name outcomes in the rows up to a log position, without a check of their digests.

    A damaged row gives no names: it is `verify` that reports damage, and a row after it can be looked at all the same.
    """
    for rows in log.pages_up_to(store.pages(), last):
        for row in rows:
            if any(tag in row for tag in _NAMING):
                try:
                    yield log.decode_row(row, last).event
                except Corrupt:
                    continue


_LONGEST = 60  # characters of a text within a line
_LONGEST_CHANCES = 100  # of the probabilities or prices of outcomes
_LONGEST_LINE = 160


class EventIds(NamedTuple):
    """The contest, the question and the participant that an event is about; "" for what it is not about."""

    contest: str
    question: str
    participant: str


def event_ids(event: Event) -> EventIds:
    """Return the ids that an event is about. Quotes and decisions can name several questions, so they have none.

    >>> event_ids(events.ForecastWithdrawn(at=0, question="rain", participant="ada"))
    EventIds(contest='', question='rain', participant='ada')
    """
    return EventIds(*(getattr(event, name, "") for name in EventIds._fields))


def event_summary(recorded: Recorded, outcomes: Outcomes = unnamed) -> dict[str, Any]:
    """Return an event as a row: its log position, both instants, its type and its sentence."""
    return {
        "log_position": recorded.position,
        "recorded_at": instant_text(recorded.recorded_at),
        "at": instant_text(recorded.event.at),
        "type": event_type(recorded.event),
        "says": sentence(recorded.event, outcomes) + origin_text(recorded),
    }


def origin(recorded: Recorded) -> Provenance:
    """Return where a row comes from as far as it says so; the reason may be one of the event's own fields.

    >>> from forecast_ledger.ledger.model.log import GENESIS
    >>> event = events.QuestionAnnulled(at=0, question="rain", policy="refund_cost", reason="asked twice")
    >>> said = Provenance(by="ada")
    >>> row = Recorded(
    ...     position=1, recorded_at=0, provenance=said, command_id="c1", command="", previous=GENESIS, event=event
    ... )
    >>> origin(row).by, origin(row).reason, origin_text(row)
    ('ada', 'asked twice', '; by ada')
    """
    said = NOTHING if recorded.provenance is UNSET else recorded.provenance
    reason: str = getattr(recorded.event, "reason", said.reason)
    return said if reason == said.reason else structs.replace(said, reason=reason)


def origin_text(recorded: Recorded) -> str:
    """Return who asked for an event, why, and the first piece of its evidence, to follow its sentence.

    Empty if the row does not say so; a reason that is one of the event's own fields is in its sentence.
    """
    if recorded.provenance is UNSET:
        return ""
    said = recorded.provenance
    parts = [f"by {shorten(said.by, _LONGEST)}"] * bool(said.by)
    parts += [f"because {shorten(said.reason, _LONGEST)!r}"] * bool(said.reason)
    parts += [f"evidence {evidence_text(said.evidence)}"] * bool(said.evidence)
    return "".join(f"; {part}" for part in parts)


def evidence_text(pieces: Sequence[Evidence]) -> str:
    """Return the first piece of evidence, and how many more there are; empty if there is none.

    >>> evidence_text([Evidence(url="https://example.org/gauge"), Evidence(sha256="ab" * 32)])
    'https://example.org/gauge and 1 more'
    """
    if not pieces:
        return ""
    first, more = pieces[0], len(pieces) - 1
    shown = first.url or first.text or f"SHA-256 {first.sha256[:16]}"
    return shorten(shown, _LONGEST) + f" and {more:,} more" * bool(more)


def event_type(event: Event) -> str:
    """Return the name of an event's type, without its version.

    >>> event_type(events.QuestionClosed(at=0, question="rain"))
    'question_closed'
    """
    return TAGS[type(event)].partition(".")[0]


def sentence(event: Event, outcomes: Outcomes = unnamed) -> str:
    """Return an event as one line of text; for a type without its own sentence, the fields that differ from defaults.

    outcomes: the names of each question's outcomes; an outcome without a name is printed as its number.

    >>> sentence(events.CashGranted(at=0, contest="cup", participant="ada", amount=10_000_000_000))
    'ada in cup: 10000.00'
    >>> forecast = events.ForecastMade(at=0, question="q", participant="ada", probabilities=(700_000_000, 300_000_000))
    >>> sentence(forecast, lambda question: ("yes", "no"))
    'ada on q: yes 0.7, no 0.3'
    """
    if write := _SENTENCES.get(type(event)):
        return write(event)
    named = _NAMED.get(type(event))
    return _fields(event) if named is None else named(event, outcomes)


def _fields(event: Event) -> str:
    """Return each field with its value in printed units."""
    fields = [
        f"{field.name}={field_text(field.name, value)}"
        for field in structs.fields(event)
        if field.name != "at" and (value := getattr(event, field.name)) != field.default
    ]
    return shorten(" ".join(fields), _LONGEST_LINE)


def _chances(numbers: Sequence[int | None], names: Sequence[str]) -> str:
    """Return the probability or price of each outcome, after its name if it is known."""
    return _by_name([*map(probability_text, numbers)], names)


def _by_name(texts: Sequence[str], names: Sequence[str]) -> str:
    if len(names) != len(texts):
        return ", ".join(texts)
    return ", ".join(f"{name} {text}" for name, text in zip(names, texts, strict=True))


def _outcome(number: int, names: Sequence[str]) -> str:
    return names[number] if 0 <= number < len(names) else f"outcome {number}"


def _reason(reason: str) -> str:
    return f": {shorten(reason, _LONGEST)}" if reason else ""


def _participant(event: Any) -> str:
    return f"{event.participant} in {event.contest}"


def _position(event: Any, outcomes: Outcomes) -> str:
    outcome = AGAINST * event.against + shorten(_outcome(event.outcome, outcomes(event.question)), _LONGEST)
    return f"{_participant(event)}, position {event.position} on {event.question}, {outcome}"


def _holding(event: events.PositionSettled | events.PositionRefunded | events.TradesVoided, outcomes: Outcomes) -> str:
    return f"{_position(event, outcomes)}: {money_text(event.shares)} shares that cost {money_text(event.cost)}"


def _settlement(event: events.PositionSettled, outcomes: Outcomes) -> str:
    share = share_text(exact_share(event.payout, event.payout_unit))
    return f"{_holding(event, outcomes)}, at {share} for {money_text(event.proceeds)}"


def _question_opened(event: events.QuestionOpened) -> str:
    order = {None: "", True: ", ordered", False: ", without an order"}[event.ordered]
    return f"{event.question}, {event.kind}{order}, until {instant_text(event.closes_at)}{_reason(event.title)}"


def _forecast(event: events.ForecastMade, outcomes: Outcomes) -> str:
    if event.cdf:
        forecast = f"a cdf of {len(event.cdf)} values"
        if event.points is not None:
            forecast += f", {points_text(event.points)}"
    elif event.quantiles:
        forecast = f"{len(event.quantiles)} quantiles"
    elif event.samples:
        forecast = f"{len(event.samples)} sample{'s' * (len(event.samples) > 1)}"
    else:
        forecast = shorten(_chances(event.probabilities, outcomes(event.question)), _LONGEST_CHANCES)
        if event.normalized is not None:
            forecast += f", {shares_text(event.normalized, outcomes(event.question))}"
    until = "" if event.until is None else f", until {instant_text(event.until)}"
    return f"{event.participant} on {event.question}: {forecast}{until}"


def points_text(points: events.StatedPoints) -> str:
    """Return the points that a cdf was made from, and the method; one that a forged row lacks is "-".

    >>> points_text(events.StatedPoints(levels=(10**8, 5 * 10**8), quantiles=("14", "20.5"), method="linear"))
    'linear from 14 at 0.1, 20.5 at 0.5'
    """
    each = zip_longest(points.quantiles, map(probability_text, points.levels), fillvalue="-")
    said = ", ".join(f"{quantile} at {level}" for quantile, level in each)
    return f"{points.method} from {shorten(said, _LONGEST_CHANCES)}"


def shares_text(stated: events.StatedShares, names: Sequence[str] = ()) -> str:
    """Return the shares that probabilities were made from, and the rule. names: of the outcomes of the question.

    >>> shares_text(events.StatedShares(shares=(33 * 10**7, 66 * 10**7), rule="by_sum"), ("red", "blue"))
    'by_sum from red 0.33, blue 0.66'
    """
    return f"{stated.rule} from {shorten(_chances(stated.shares, names), _LONGEST_CHANCES)}"


def answer_text(outcome: int, value: str, payouts: Sequence[Fraction], names: Sequence[str]) -> str:
    """Return the answer of a resolution in words. names: of the outcomes of its question.

    >>> answer_text(1, "", (), ("yes", "no")), answer_text(2, "3.5", (), ())
    ('no', '3.5')
    """
    paid = f"payouts {_by_name([*map(share_text, payouts)], names)}" if payouts else ""
    return shorten(value or paid or _outcome(outcome, names), _LONGEST)


def _resolution(event: events.QuestionResolved, outcomes: Outcomes) -> str:
    paid = exact_shares(event.payouts, event.payout_unit)
    answer = answer_text(event.outcome, event.value, paid, outcomes(event.question))
    return f"{event.question}: {answer}, known at {instant_text(event.known_at)}"


def _contest(event: events.ContestOpened) -> str:
    pool = f", a pool of {money_text(event.pool)} {event.currency}".rstrip() if event.pool else ""
    return f"{event.contest}, rules {event.rules.name}{pool}{_reason(event.title)}"


def _enrolment(event: events.ParticipantEnrolled) -> str:
    also = [f"{name} {getattr(event, name)}" for name in ("entrant", "family", "release") if getattr(event, name)]
    return ", ".join([_participant(event), *also, *(["a bot"] if event.bot else [])])


def _rescheduling(event: events.QuestionRescheduled) -> str:
    instants = {"opens": event.opens_at, "closes": event.closes_at, "reveals": event.reveals_at}
    times = [f"{word} {instant_text(at)}" for word, at in instants.items() if at is not None]
    return f"{event.question} {', '.join(times)}{_reason(event.reason)}"


def _retraction(event: events.ForecastsRetracted) -> str:
    instead = f", {event.restated} forecast{'s' * (event.restated > 1)} instead" * bool(event.restated)
    return f"{event.participant} on {event.question}{instead}{_reason(event.reason)}"


def _amendment(event: events.QuestionAmended) -> str:
    texts = {"title": event.title, "url": event.url, "source": event.source}
    said = [f"{name} {shorten(text, _LONGEST)!r}" for name, text in texts.items() if text is not None]
    said += [] if event.tags is None else [f"tags {', '.join(event.tags) or 'none'}"]
    said += [] if event.weight is None else [f"weight {money_text(event.weight)} in {event.contest}"]
    return f"{event.question}, {', '.join(said)}{_reason(event.reason)}"


def _prices(event: events.PricesQuoted, outcomes: Outcomes) -> str:
    some = event.quotes[:5]
    prices = "; ".join(f"{quote.question} {_quoted(quote, outcomes(quote.question))}" for quote in some)
    more = f"; and {len(event.quotes) - 5:,} more questions" * (len(event.quotes) > 5)
    refused = ", ".join(f"{each.question} ({each.code})" for each in event.refused[:5])
    refused += f" and {len(event.refused) - 5:,} more" * (len(event.refused) > 5)
    return f"{event.source}: {shorten(prices, _LONGEST_CHANCES)}{more}" + f"; refused: {refused}" * bool(refused)


def _quoted(quote: events.Quote, names: Sequence[str]) -> str:
    """Return the prices of a quote, or of each outcome that has one its bid and ask."""
    sides = (("", quote.prices), ("bids ", quote.bids), ("asks ", quote.asks))
    texts = [word + _chances(prices, names) for word, prices in sides if any(p is not None for p in prices)]
    for word, sizes in (("to sell ", quote.bid_sizes), ("to buy ", quote.ask_sizes)):
        known = [f"{_outcome(n, names)} {money_text(size)}" for n, size in enumerate(sizes) if size is not None]
        texts += [f"{word}{', '.join(known)}"] if known else []
    return ", ".join(texts)


def _decision(event: events.DecisionRecorded) -> str:
    legs = len(event.bets) + len(event.sells)
    done = f", {event.executed} of {legs} legs" if legs else ""
    return f"{_participant(event)}, period {event.period}: {event.action}{done}{_reason(event.reasoning)}"


def _purchase(event: events.SharesBought, outcomes: Outcomes) -> str:
    shares, price = money_text(event.shares), probability_text(event.price)
    return f"{_position(event, outcomes)}: {shares} shares at {price} for {money_text(event.amount)}{_more(event)}"


def _sale(event: events.SharesSold, outcomes: Outcomes) -> str:
    shares, price = money_text(event.shares), probability_text(event.price)
    return f"{_position(event, outcomes)}: {shares} shares at {price} for {money_text(event.proceeds)}{_more(event)}"


def _recorded_trade(event: events.TradeRecorded, outcomes: Outcomes) -> str:
    shares, fee = money_text(abs(event.shares)), f", fee {money_text(event.fee)}" * bool(event.fee)
    action = "bought" if event.shares > 0 else "sold"
    return f"{_position(event, outcomes)}: {shares} shares {action} elsewhere for {money_text(event.amount)}{fee}"


def _voiding(event: events.TradesVoided, outcomes: Outcomes) -> str:
    returned = f", of which {money_text(event.fee)} are fees" if event.fee else ""
    return f"{_holding(event, outcomes)}, for {money_text(event.amount)}{returned}"


def _more(event: events.SharesBought | events.SharesSold) -> str:
    """Return the fee of a trade, and what was asked for if it was filled in part."""
    unit = "" if isinstance(event, events.SharesBought) else " shares"
    fee = f", fee {money_text(event.fee)}" if event.fee else ""
    return f"{fee}; of {money_text(event.requested)}{unit} asked for" if event.requested else fee


# The types whose sentence depends on the event alone.
_SENTENCES: dict[type, Callable[[Any], str]] = {
    events.QuestionOpened: _question_opened,
    events.ForecastWithdrawn: lambda event: f"{event.participant} on {event.question}",
    events.ForecastsRetracted: _retraction,
    events.VersionRequired: lambda event: f"writers are of version {event.version} or newer from here on",
    events.ParticipantRenamed: lambda event: f"{event.participant} is {event.to} from here on{_reason(event.reason)}",
    events.QuestionClosed: lambda event: str(event.question),
    events.QuestionRescheduled: _rescheduling,
    events.QuestionAmended: _amendment,
    events.OutcomesChanged: lambda event: (
        f"{event.question}, {'added' if event.added else 'removed'} {', '.join(event.added or event.removed)}"
    ),
    events.QuestionAnnulled: lambda event: f"{event.question}, {event.policy}{_reason(event.reason)}",
    events.ResolutionRevoked: lambda event: f"{event.question}{_reason(event.reason)}",
    events.ContestOpened: _contest,
    events.QuestionAdded: lambda event: f"{event.question} to {event.contest}, weight {money_text(event.weight)}",
    events.ParticipantEnrolled: _enrolment,
    events.ParticipantExcluded: lambda event: f"{_participant(event)}, {event.level}{_reason(event.reason)}",
    events.ContestFinalized: lambda event: str(event.contest),
    events.PrizePaid: lambda event: f"{_participant(event)}: {money_text(event.amount)}",
    events.CashGranted: lambda event: f"{_participant(event)}: {money_text(event.amount)}",
    events.CashDeposited: lambda event: f"{_participant(event)}: {money_text(event.amount)}{_reason(event.reason)}",
    events.CashWithdrawn: lambda event: f"{_participant(event)}: {money_text(event.amount)}{_reason(event.reason)}",
    events.TextKept: lambda event: f"{event.digest[:16]}: {shorten(event.text, _LONGEST)}",
    events.DecisionRecorded: _decision,
    events.DecisionMalformed: lambda event: f"{_participant(event)}, period {event.period}: {event.fault}",
    events.DecisionDefaulted: lambda event: f"{_participant(event)}, period {event.period}: HOLD",
    events.CallFailed: lambda event: f"{_participant(event)}, period {event.period}{_reason(event.error)}",
    events.LegRefused: lambda event: f"{_participant(event)}, period {event.period}, leg {event.leg}: {event.code}",
}
# The types whose sentence names outcomes.
_NAMED: dict[type, Callable[[Any, Outcomes], str]] = {
    events.ForecastMade: _forecast,
    events.QuestionResolved: _resolution,
    events.PricesQuoted: _prices,
    events.SharesBought: _purchase,
    events.SharesSold: _sale,
    events.TradeRecorded: _recorded_trade,
    events.PositionSettled: _settlement,
    events.PositionRefunded: _holding,
    events.TradesVoided: _voiding,
    events.SettlementReversed: lambda event, outcomes: (
        f"{_position(event, outcomes)}: {money_text(-event.amount)}, log position {event.reverses}"
    ),
}
