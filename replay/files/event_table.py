"""The table of events of an export: one row per event of a log, made page by page."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.events import TAGS, ForecastMade, ForecastWithdrawn
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.plain_rows import ReadPage
from forecast_ledger.projections.core.arrays import Int64Array, int64_array, join_columns
from forecast_ledger.projections.core.columns import Column, Ids, Values
from forecast_ledger.projections.core.table import Table
from forecast_ledger.replay.reading.event_text import EventIds
from forecast_ledger.replay.reading.replay import ReplayedPage

CHUNK_ROWS, CHUNK_BYTES = 20_000, 2**26  # of the log, at most, in memory at once
EVENTS_VERSION = 2
EVENT_COLUMNS = (
    Column("position", "count", "log position: 1, 2, 3 …"),
    Column("recorded_at", "instant", "when it was recorded, by the ledger's clock"),
    Column("at", "instant", "when it happened, by the command's account"),
    Column("command_id", "id", "the id of the command that led to it"),
    Column("type", "id", "the event's type and version"),
    Column("contest", "id", "the contest that it is about; empty if none"),
    Column("question", "id", "the question that it is about; empty if none, or if it can be about several"),
    Column("participant", "id", "the participant that it is about; empty if none"),
    Column("event", "text", "its fields: JSON, with integers as in the log"),
    Column("row", "text", "the row of the log, byte for byte"),
    Column("digest", "text", "the row's digest, which covers all rows before it"),
)
_KINDS = ForecastWithdrawn, ForecastMade  # by `made` of a page of forecasts


def event_tables(pages: Iterable[ReplayedPage], *, encoded: bool = False) -> Iterator[Table]:
    """Return the events of a log in chunks, at least one, of a bounded number of rows and, but for a page, of bytes.

    pages: of the whole log. encoded: whether texts are their bytes in UTF-8.
    """
    made, waiting, count, size = _EventTables(encoded=encoded), list[Table](), 0, 0
    empty = True
    for page in pages:
        waiting.append(made.table(page))  # while its events are in the processor's cache
        count += len(page.rows)
        size += sum(map(len, page.rows))
        if count >= CHUNK_ROWS or size >= CHUNK_BYTES:
            yield _joined(waiting)
            count, size, empty = 0, 0, False
    if waiting or empty:
        yield _joined(waiting or [made.table(ReplayedPage((), (), None, (), ()))])


def _joined(tables: list[Table]) -> Table:
    """Return tables joined; the list is emptied, so that their rows are in memory once."""
    table = Table.joined(tables)
    tables.clear()
    return table


class _Names:
    """The ids in a column of all pages, by code; all pages share the list of labels, so that joining compares none."""

    def __init__(self, *labels: str) -> None:
        self.labels, self._codes = [*labels], {label: code for code, label in enumerate(labels)}
        self._numbered = int64_array([])  # the code of each id that the log has numbered

    def code(self, label: str) -> int:
        """Return the code of an id."""
        code = self._codes.setdefault(label, len(self.labels))
        if code == len(self.labels):
            self.labels.append(label)
        return code

    def codes(self, numbers: Int64Array, known: Sequence[str]) -> Int64Array:
        """Return the codes of ids, shape (n,), by their numbers in the log. known: the ids that it has numbered."""
        new = known[len(self._numbered) :]
        if new:
            self._numbered = np.append(self._numbered, int64_array([*map(self.code, new)]))
        codes: Int64Array = self._numbered[numbers]
        return codes


class _EventTables:
    """Pages of a log as tables of events: forecasts from their columns, other events one by one."""

    def __init__(self, *, encoded: bool) -> None:
        self._encoded, self._types = encoded, _Names(*[TAGS[kind] for kind in _KINDS])
        self._about = [_Names("") for _ in EventIds._fields]

    def table(self, page: ReplayedPage) -> Table:
        """Return the next page as a table."""
        others: Sequence[Recorded] = page.events.others if isinstance(page.events, ReadPage) else page.events
        filed = page.forecasts
        left = others if filed is None else [recorded for recorded in others if type(recorded.event) not in _KINDS]
        parts = [self._columns(left)]
        if filed is not None:
            numbers = [filed.position, filed.recorded_at, filed.at, filed.made, np.zeros_like(filed.at)]
            _, questions, participants = self._about
            ids = (
                questions.codes(filed.question, page.questions),
                participants.codes(filed.participant, page.participants),
            )
            parts.append([*numbers, *ids])
        columns = join_columns(parts, len(parts[0]))
        order = np.argsort(columns[0], kind="stable")
        position, recorded_at, at, types, *about = (column[order] for column in columns)
        texts: list[Any] = [*page.rows] if self._encoded else [row.decode() for row in page.rows]
        command_ids, described = self._texts(page, texts, others)
        values: tuple[Values, ...] = (
            *(position, recorded_at, at),
            command_ids,  # few recur
            Ids(types, self._types.labels),
            *(Ids(codes, names.labels) for codes, names in zip(about, self._about, strict=True)),
            described,
            texts,
            log.digests_of(texts),
        )
        return Table("events", EVENTS_VERSION, EVENT_COLUMNS, values)

    def _columns(self, rows: Sequence[Recorded]) -> list[Int64Array]:
        """Return log position, recorded_at, at, and the codes of type, contest, question and participant, of events."""
        events = [recorded.event for recorded in rows]
        columns: list[list[int]] = [
            [recorded.position for recorded in rows],
            [recorded.recorded_at for recorded in rows],
            [event.at for event in events],
            [self._types.code(TAGS[type(event)]) for event in events],
        ]
        for field, names in zip(EventIds._fields, self._about, strict=True):
            columns.append([names.code(getattr(event, field, "")) for event in events])
        return [*map(int64_array, columns)]

    def _texts(self, page: ReplayedPage, texts: list[Any], others: Sequence[Recorded]) -> tuple[list[Any], list[Any]]:
        """Return the ids of the commands of rows, and the JSON of their events. texts: the rows."""
        if isinstance(page.events, ReadPage):
            plain = page.events.forecasts
            first = min([*plain.position[:1].tolist(), *(recorded.position for recorded in others[:1])])
            places = [recorded.position - first for recorded in others]
            read = [texts[place] for place in (plain.position - first).tolist()] if others else texts
            command_ids = log.command_ids_at(read, plain.command_at.tolist(), plain.command_end.tolist())
            described = log.event_texts_at(read, plain.event_at.tolist())
        else:
            places, command_ids, described = [*range(len(texts))], [], []
        for place, recorded in zip(places, others, strict=True):
            described_as = log.event_text(page.rows[place].decode())
            command_ids.insert(place, recorded.command_id.encode() if self._encoded else recorded.command_id)
            described.insert(place, described_as.encode() if self._encoded else described_as)
        return command_ids, described
