"""Looking into a log: its events one a line, those that one asks for, and one row closely."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import MONEY, PROBABILITY, format_fixed, format_instant
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.events import TAGS
from forecast_ledger.ledger.model.log import START, Checkpoint, Recorded, digest_of
from forecast_ledger.ledger.storing.store import Store
from forecast_ledger.replay.reading.text_tables import Row, visible

COLUMNS = ["log_position", "recorded_at", "at", "type", "says"]
_INSTANTS = {"at", "opens_at", "closes_at", "reveals_at", "known_at", "quoted_at", "starts_at", "spot_at"}
_LONGEST = 60  # characters of a text within a line


class Wanted(NamedTuple):
    """Which events: of these types, all if none; that name a question, participant or contest; recorded on
    [since, until), µs by the ledger's own clock.
    """

    types: frozenset[type] = frozenset()
    question: str | None = None
    participant: str | None = None
    contest: str | None = None
    since: int | None = None
    until: int | None = None

    def includes(self, recorded: Recorded) -> bool:
        """Whether an event is one of them."""
        event: Any = recorded.event
        return (
            (not self.types or type(event) in self.types)
            and (self.since is None or recorded.recorded_at >= self.since)
            and (self.participant is None or getattr(event, "participant", None) == self.participant)
            and (self.contest is None or getattr(event, "contest", None) == self.contest)
            and (self.question is None or self.question in _questions(event))
        )


class Listing:
    """The rows of a list of events, as they are read; `last` is where the reading has come to."""

    def __init__(self, wanted: Wanted, limit: int | None = None, after: Checkpoint = START) -> None:
        self.last = after
        self.shown = 0
        self._wanted, self._limit = wanted, limit

    def rows(self, pages: Iterator[Sequence[Recorded]]) -> Iterator[Row]:
        """One event after another, until the limit or the end of the time asked for."""
        for page in pages:
            for recorded in page:
                if self._wanted.until is not None and recorded.recorded_at >= self._wanted.until:
                    return
                self.last = Checkpoint(recorded.position, recorded.digest)
                if self._wanted.includes(recorded):
                    self.shown += 1
                    yield line(recorded)
                    if self.shown == self._limit:
                        return


def line(recorded: Recorded) -> Row:
    """An event as a row of a list."""
    event = recorded.event
    says = _SAYS[type(event)](event)
    row = (recorded.position, _instant(recorded.recorded_at), _instant(event.at), TAGS[type(event)], says)
    return dict(zip(COLUMNS, row, strict=True))


def kinds(names: Sequence[str]) -> frozenset[type]:
    """The types of event of these names, with or without the version. Raises KeyError: no such type."""
    named: dict[str, set[type]] = {}
    for kind, tag in TAGS.items():
        named.setdefault(tag, set()).add(kind)
        named.setdefault(tag.partition(".")[0], set()).add(kind)
    return frozenset().union(*(named[name] for name in names))


def checkpoint(store: Store, position: int) -> Checkpoint:
    """A log position and the digest of its row's bytes, taken on trust.

    Raises Refused (the log ends before it), Corrupt (the row is missing).
    """
    return START if position == 0 else Checkpoint(position, digest_of(row(store, position)))


def row(store: Store, position: int) -> bytes:
    """The bytes of a row. Raises Refused (the log ends before it), Corrupt (it is missing)."""
    found = store.read(position - 1, 1)
    if not found:
        raise Refused("out_of_range", "position", position, f"the log ends at position {store.newest()}")
    return found[0]


def fields(recorded: Recorded) -> Iterator[Row]:
    """What a row says, field by field; instants as RFC 3339, other numbers of the event in the unit of its type."""
    shown = {**line(recorded), **{name: getattr(recorded, name) for name in ("command_id", "command", "previous")}}
    shown["digest"] = recorded.digest
    for name in recorded.event.__struct_fields__:
        value = getattr(recorded.event, name)
        shown[f"event.{name}"] = _instant(value) if name in _INSTANTS and value is not None else _plain(value)
    del shown["at"]  # the event has it
    for name, value in shown.items():
        yield {"field": name, "value": value}


def listed(rows: Iterator[Row]) -> Iterator[str]:
    """Rows of a list under their names, each as soon as it is there."""
    yield _LINE.format(*COLUMNS)
    for each in rows:
        yield _LINE.format(*(visible(str(each[name])) for name in COLUMNS))


_LINE = "{:>12}  {:<27}  {:<27}  {:<22}  {}"


def _questions(event: Any) -> set[str]:
    """The questions that an event names."""
    if isinstance(event, events.PricesQuoted):
        return {quote.question for quote in event.quotes}
    if isinstance(event, events.DecisionRecorded):
        return {bet.question for bet in event.bets}
    return {getattr(event, "question", "")}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int):
        return value
    return msgspec.json.encode(value).decode()


def _instant(micros: int) -> str:
    """RFC 3339; of a forged log, the number where no calendar has it."""
    try:
        return format_instant(micros)
    except (OverflowError, ValueError):
        return f"{micros} µs"


def _money(micros: int) -> str:
    return format_fixed(micros, MONEY, least=2)


def _chance(number: int | None) -> str:
    return "none" if number is None else format_fixed(number, PROBABILITY)


def _chances(numbers: Sequence[int | None]) -> str:
    return ", ".join(map(_chance, numbers))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _because(reason: str) -> str:
    return f": {_short(reason)}" if reason else ""


def _of(event: Any) -> str:
    return f"{event.participant} in {event.contest}"


def _share(event: Any) -> str:
    return f"{_of(event)}, position {event.position} on {event.question}, outcome {event.outcome}"


def _question_opened(event: events.QuestionOpened) -> str:
    return f"{event.question}, {event.kind}, until {_instant(event.closes_at)}{_because(event.title)}"


def _forecast(event: events.ForecastMade) -> str:
    if event.cdf:
        said = f"a cdf of {len(event.cdf)} values"
    elif event.quantiles:
        said = f"{len(event.quantiles)} quantiles"
    else:
        said = _short(_chances(event.probabilities))
    return f"{event.participant} on {event.question}: {said}"


def _resolved(event: events.QuestionResolved) -> str:
    answer = event.value or (f"payouts {_chances(event.payouts)}" if event.payouts else f"outcome {event.outcome}")
    return f"{event.question}: {_short(answer)}, known at {_instant(event.known_at)}"


def _contest(event: events.ContestOpened) -> str:
    pool = f", a pool of {_money(event.pool)} {event.currency}".rstrip() if event.pool else ""
    return f"{event.contest}, rules {event.rules.name}{pool}{_because(event.title)}"


def _enrolled(event: events.ParticipantEnrolled) -> str:
    also = [f"{name} {getattr(event, name)}" for name in ("entrant", "family", "release") if getattr(event, name)]
    return ", ".join([_of(event), *also, *(["a bot"] if event.bot else [])])


def _quoted(event: events.PricesQuoted) -> str:
    prices = "; ".join(f"{quote.question} {_chances(quote.prices)}" for quote in event.quotes[:5])
    return f"{event.source}: {_short(prices)}"


def _decided(event: events.DecisionRecorded) -> str:
    legs = len(event.bets) + len(event.sells)
    done = f", {event.executed} of {legs} legs" if legs else ""
    return f"{_of(event)}, period {event.period}: {event.action}{done}{_because(event.reasoning)}"


def _bought(event: events.SharesBought) -> str:
    shares, price = _money(event.shares), _chance(event.price)
    return f"{_share(event)}: {shares} shares at {price} for {_money(event.amount)}"


def _sold(event: events.SharesSold) -> str:
    shares, price = _money(event.shares), _chance(event.price)
    return f"{_share(event)}: {shares} shares at {price} for {_money(event.proceeds)}"


# What an event says, in a line that needs nothing of what came before.
_SAYS: dict[type, Callable[[Any], str]] = {
    events.QuestionOpened: _question_opened,
    events.ForecastMade: _forecast,
    events.ForecastWithdrawn: lambda event: f"{event.participant} on {event.question}",
    events.QuestionClosed: lambda event: str(event.question),
    events.QuestionResolved: _resolved,
    events.QuestionAnnulled: lambda event: f"{event.question}, {event.policy}{_because(event.reason)}",
    events.ResolutionRevoked: lambda event: f"{event.question}{_because(event.reason)}",
    events.ContestOpened: _contest,
    events.QuestionAdded: lambda event: f"{event.question} to {event.contest}, weight {_money(event.weight)}",
    events.ParticipantEnrolled: _enrolled,
    events.ParticipantExcluded: lambda event: f"{_of(event)}, {event.level}{_because(event.reason)}",
    events.ContestFinalized: lambda event: str(event.contest),
    events.PrizePaid: lambda event: f"{_of(event)}: {_money(event.amount)}",
    events.PricesQuoted: _quoted,
    events.CashGranted: lambda event: f"{_of(event)}: {_money(event.amount)}",
    events.CashDeposited: lambda event: f"{_of(event)}: {_money(event.amount)}{_because(event.reason)}",
    events.CashWithdrawn: lambda event: f"{_of(event)}: {_money(event.amount)}{_because(event.reason)}",
    events.TextKept: lambda event: f"{event.digest[:16]}: {_short(event.text)}",
    events.DecisionRecorded: _decided,
    events.DecisionMalformed: lambda event: f"{_of(event)}, period {event.period}: {event.fault}",
    events.DecisionDefaulted: lambda event: f"{_of(event)}, period {event.period}: HOLD",
    events.SharesBought: _bought,
    events.SharesSold: _sold,
    events.LegRefused: lambda event: f"{_of(event)}, period {event.period}, leg {event.leg}: {event.code}",
    events.PositionSettled: lambda event: f"{_share(event)}: {_money(event.proceeds)}",
    events.PositionRefunded: lambda event: f"{_share(event)}: {_money(event.cost)}",
    events.TradesVoided: lambda event: f"{_share(event)}: {_money(event.amount)}",
    events.SettlementReversed: lambda event: f"{_share(event)}: {_money(-event.amount)}, log position {event.reverses}",
}
