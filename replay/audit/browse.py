"""List the events of a log with filters, and show one row in detail."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import is_instant
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.events import TAGS
from forecast_ledger.ledger.model.log import START, Checkpoint, Recorded, compute_digest, unseal_pages
from forecast_ledger.ledger.model.mismatch import instant_text
from forecast_ledger.ledger.model.plain_rows import ReadPage, is_id, unseal_columns
from forecast_ledger.ledger.model.provenance import NAMES
from forecast_ledger.ledger.storing.stored_log import StoredLog, is_folder
from forecast_ledger.projections.core.text_table import PrintedRow, escape
from forecast_ledger.replay.engines.row_pages import read_columns
from forecast_ledger.replay.reading.event_text import (
    EventIds,
    OutcomeNames,
    Outcomes,
    event_ids,
    evidence_text,
    origin,
    origin_text,
    sentence,
    unnamed,
)
from forecast_ledger.replay.reading.log import BEYOND_END

_ORIGIN = ("by", "reason", "evidence")
EVENT_LIST_COLUMNS = ["log_position", "recorded_at", "at", "type", *EventIds._fields, *_ORIGIN, "says"]
_PARTICIPANT = ("participant", "to")  # the fields of an event that have the id of a participant
# A sentence has the ids, and where its row comes from.
SENTENCE_COLUMNS = [name for name in EVENT_LIST_COLUMNS if name not in {*EventIds._fields, *_ORIGIN}]


class EventFilter(NamedTuple):
    """A filter of events: by type (all if empty), by question, participant or contest, by who asked, by instant.

    since, until: µs of the ledger's clock; an event is included if it was recorded on [since, until).
    """

    types: frozenset[type] = frozenset()
    question: str | None = None
    participant: str | None = None
    contest: str | None = None
    since: int | None = None
    until: int | None = None
    by: str | None = None

    @property
    def forecasts_on(self) -> str | None:
        """The only question whose forecasts of a probability can pass it; "" for none, None for any."""
        if self.contest is not None or self.by or (self.types and events.ForecastMade not in self.types):
            return ""
        return self.question

    def among(self, page: Sequence[Recorded]) -> Sequence[Recorded]:
        """Return the events of a page but for forecasts that do not pass the filter, or some of them."""
        if not isinstance(page, ReadPage):
            return page
        if self.forecasts_on is not None:
            return page.on(self.forecasts_on)
        return page if self.participant is None else page.where(None, is_id(self.participant))

    def includes(self, recorded: Recorded) -> bool:
        """Return whether an event passes the filter."""
        event: Any = recorded.event
        return (
            (not self.types or type(event) in self.types)
            and (self.since is None or recorded.recorded_at >= self.since)
            and (self.participant is None or self.participant in (getattr(event, name, None) for name in _PARTICIPANT))
            and (self.by is None or origin(recorded).by == self.by)
            and (self.contest is None or getattr(event, "contest", None) == self.contest)
            and (self.question is None or self.question in _questions(event))
        )


class EventList:
    """The rows of a list of events. last: the last event read; shown: the number of rows so far.

    names: what gives the names of outcomes; it learns those of the events that are read.
    """

    def __init__(self, selection: EventFilter, limit: int | None, after: Checkpoint, names: OutcomeNames) -> None:
        self.last = after
        self.shown = 0
        self._selection, self._limit, self._names = selection, limit, names

    def rows(self, pages: Iterator[Sequence[Recorded]]) -> Iterator[PrintedRow]:
        """Return the events that pass the filter as rows of a list."""
        return (event_row(recorded, self._names.of) for recorded in self.events(pages))

    def events(self, pages: Iterator[Sequence[Recorded]]) -> Iterator[Recorded]:
        """Yield the events that pass the filter, up to the limit; stop reading at `until`."""
        for page in pages:
            for recorded in self._selection.among(page):
                if self._selection.until is not None and recorded.recorded_at >= self._selection.until:
                    return
                self.last = Checkpoint(recorded.position, recorded.digest)
                self._names.learn(recorded.event)
                if self._selection.includes(recorded):
                    self.shown += 1
                    yield recorded
                    if self.shown == self._limit:
                        return
            self.last = Checkpoint(page[-1].position, page[-1].digest)


def read_pages(
    store: StoredLog, location: str, start: Checkpoint, selection: EventFilter, limit: int | None
) -> Iterator[Sequence[Recorded]]:
    """Unseal the pages of a store after a checkpoint for a list: as columns, if forecasts may be left out of it.

    location: of the store. Raises Unavailable, Corrupt.
    """
    on = selection.forecasts_on
    if selection.until is not None or (on is None and selection.participant is None):
        yield from unseal_pages(store.pages(start.position), start)
    elif on is None or start.position or limit is not None or is_folder(location):
        yield from unseal_columns(store.pages(start.position), start)
    else:
        with closing(read_columns(store, location, question=on)) as pages:
            yield from pages


def event_row(recorded: Recorded, outcomes: Outcomes = unnamed) -> PrintedRow:
    """Return an event as a row of a list."""
    event, said = recorded.event, origin(recorded)
    row = (
        recorded.position,
        instant_text(recorded.recorded_at),
        instant_text(event.at),
        TAGS[type(event)],
        *event_ids(event),
        said.by,
        said.reason,
        evidence_text(said.evidence),
        sentence(event, outcomes) + origin_text(recorded) + " (recorded_at is imported)" * (recorded.imported is True),
    )
    return dict(zip(EVENT_LIST_COLUMNS, row, strict=True))


def event_types(names: Sequence[str]) -> frozenset[type]:
    """Return the types of event with these names, with or without a version. Raises KeyError: no such type."""
    types: dict[str, set[type]] = {}
    for kind, tag in TAGS.items():
        types.setdefault(tag, set()).add(kind)
        types.setdefault(tag.partition(".")[0], set()).add(kind)
    return frozenset().union(*(types[name] for name in names))


def unchecked_checkpoint(store: StoredLog, position: int) -> Checkpoint:
    """Return a log position and the digest of its row's bytes; the row itself is not checked.

    Raises Refused (the log ends before it), Corrupt (the row is missing).
    """
    return START if position == 0 else Checkpoint(position, compute_digest(row_bytes(store, position)))


def row_bytes(store: StoredLog, position: int) -> bytes:
    """Return the bytes of a row. Raises Refused (the log ends before it), Corrupt (it is missing)."""
    rows = store.read(position - 1, 1)
    if not rows:
        wrong = f"the log ends at position {store.newest()}"
        raise Refused("out_of_range", "position", position, wrong, remedy=BEYOND_END)
    return rows[0]


def event_fields(recorded: Recorded, outcomes: Outcomes = unnamed) -> Iterator[PrintedRow]:
    """Return a row field by field: instants as RFC 3339, other numbers of the event in the unit of its type.

    An event with numbers of outcomes has their names too, as `outcome` or, in the order of its numbers, `outcomes`.
    `normal` and `imported` are there if the row has them.
    """
    row = event_row(recorded, outcomes)
    shown = {name: row[name] for name in SENTENCE_COLUMNS} | _outcome_fields(recorded.event, outcomes)
    shown |= {name: "true" for name in ("normal", "imported") if getattr(recorded, name) is True}
    shown |= {name: getattr(recorded, name) for name in ("command_id", "command", "previous")}
    shown["digest"] = recorded.digest
    if recorded.provenance is not UNSET:
        said = recorded.provenance
        shown |= {f"provenance.{name}": _plain(part) for name in NAMES if (part := getattr(said, name))}
    for name in recorded.event.__struct_fields__:
        value = getattr(recorded.event, name)
        shown[f"event.{name}"] = instant_text(value) if is_instant(name) and value is not None else _plain(value)
    del shown["at"]  # it is a field of the event
    for name, value in shown.items():
        yield {"field": name, "value": value}


def _outcome_fields(event: Any, outcomes: Outcomes) -> PrintedRow:
    """Return the names of the outcomes that an event has as numbers."""
    if getattr(event, "probabilities", ()) or getattr(event, "payouts", ()):
        names = outcomes(event.question)
        return {"outcomes": _plain(names)} if names else {}
    number = getattr(event, "outcome", None)
    names = () if number is None else outcomes(event.question)
    return {"outcome": names[number]} if number is not None and 0 <= number < len(names) else {}


def format_rows(rows: Iterator[PrintedRow]) -> Iterator[str]:
    """Return rows of a list as lines under their column names, each as soon as it is read; ids are in the sentence."""
    yield _LINE.format(*SENTENCE_COLUMNS)
    for row in rows:
        yield _LINE.format(*(escape(str(row[name])) for name in SENTENCE_COLUMNS))


_LINE = "{:>12}  {:<27}  {:<27}  {:<22}  {}"


def _questions(event: Any) -> set[str]:
    """Return the questions that an event names."""
    if isinstance(event, events.PricesQuoted):
        return {quote.question for quote in event.quotes}
    if isinstance(event, events.DecisionRecorded):
        return {bet.question for bet in event.bets}
    return {getattr(event, "question", "")}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int):
        return value
    return msgspec.json.encode(value).decode()
