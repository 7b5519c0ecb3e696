"""The tables of an export: the events, contests, questions, participants, projections, and the data dictionary."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.events import TAGS
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import REFERENCE_ROWS, shown_references
from forecast_ledger.projections.boards.totals import reference_labels
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.columns import Column, columns_of_rows, ids
from forecast_ledger.projections.core.table import Table, TableParts
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from forecast_ledger.replay.reading.event_text import event_ids

CHUNK_ROWS, CHUNK_BYTES = 20_000, 2**26  # of the log, at most, in memory at once
_LOG = ("events", "position")
_EVENTS = 2  # version of the table of events
FOREIGN_KEYS = {  # column -> the table and column that it refers to
    "contest": ("contests", "contest"),
    "question": ("questions", "question"),
    "participant": ("participants", "participant"),
    "log_position": _LOG,
    "quote": _LOG,
    "sealed_at": _LOG,
}
# Kind of column -> unit of its exported values.
UNITS = {
    "id": "text",
    "text": "text",
    "instant": "UTC",
    "probability": "0 to 1, exact",
    "measure": "the unit of the question, exact",
    "points": "9 decimals, rounded once",
    "term": "12 decimals, rounded once",
    "take": "9 decimals, or 30 digits and a power of ten from 1e21 on",
    "share": "0 to 1, 9 decimals, rounded once",
    "money": "the contest's currency, or shares; 6 decimals, exact",
    "fine_money": "the contest's currency, 15 decimals, exact",
    "seconds": "s, 6 decimals, exact",
    "count": "whole number",
    "integer": "whole number of any size, exact",
}
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
_PARTICIPANTS = (
    Column("participant", "id", "the participant"),
    Column("kind", "text", "participant, consensus (the community forecast, if it is scored) or reference"),
)
_DICTIONARY = (
    Column("table", "id", "the table"),
    Column("column", "id", "the column"),
    Column("kind", "text", "the kind of its values"),
    Column("unit", "text", "the unit and precision of its values"),
    Column("meaning", "text", "the meaning of its values"),
)


class LogPages(Protocol):
    """An object that returns the rows of a log page by page: a store or an export."""

    def pages(self) -> Iterator[list[bytes]]:
        """Return all rows in log order."""


class Chunks(Protocol):
    """The rows of a table in chunks with the same columns, at least one.

    rows, digest: of the whole table, once all chunks were read.
    """

    rows: int
    digest: str

    def __iter__(self) -> Iterator[Table]:
        """Return the chunks."""


class ExportTable(NamedTuple):
    """A table to be exported, in chunks."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    version: int
    chunks: Chunks


def export_tables(
    projections: Projections, names: Sequence[str], store: LogPages, until: log.Checkpoint
) -> Iterator[ExportTable]:
    """Return the events up to a checkpoint, the contests, questions and participants, and these projections.

    The log is read and checked again while it is exported. Raises Corrupt: the row at the checkpoint has changed.
    """
    meaning = "the log: one row per event; all other tables are computed from it"
    yield ExportTable("events", meaning, ("position",), EVENT_COLUMNS, _EVENTS, _Events(store, until))
    yield _projection(projections, "contests")
    yield _projection(projections, "questions")
    yield _in_chunks(_participants(projections.facts), "every participant in the tables", ("participant",))
    for name in names:
        if name not in {"contests", "questions"}:
            yield _projection(projections, name)


def describe_columns(sheets: Iterable[ExportTable], twins: Iterable[tuple[str, Column]] = ()) -> ExportTable:
    """Return the data dictionary: the meaning of every column. twins: further columns, by table."""
    rows = [(sheet.name, *_described(column)) for sheet in sheets for column in sheet.columns]
    rows += [(table, column.name, column.kind, "float, for plotting", column.meaning) for table, column in twins]
    return _in_chunks(dictionary_table(rows), "the meaning of every column", ("table", "column"))


def dictionary_table(rows: Sequence[tuple[str, ...]]) -> Table:
    """Return the data dictionary with these rows: table, column, kind, unit, meaning."""
    return Table("data_dictionary", 1, _DICTIONARY, tuple(columns_of_rows([*rows], _DICTIONARY)))


def _described(column: Column) -> tuple[str, str, str, str]:
    return column.name, column.kind, UNITS[column.kind], column.meaning


def _projection(projections: Projections, name: str) -> ExportTable:
    row = CATALOGUE[name]
    return ExportTable(name, row.meaning, row.key, row.columns, row.version, projections.parts(name))


def _in_chunks(table: Table, meaning: str, key: tuple[str, ...]) -> ExportTable:
    return ExportTable(table.name, meaning, key, table.columns, table.version, TableParts([table]))


def _participants(facts: Facts) -> Table:
    participants = {who for contest in facts.contests.values() for who in (*contest.enrolments, *contest.levels)}
    participants |= {*facts.participant_codes.labels, *(who for _, who in facts.books.accounts)}
    shown = {name for row in facts.contests.values() for name in shown_references(row.opened.rules)} | {"consensus"}
    references = {
        label: "consensus" if name == "consensus" else "reference"
        for name, label in zip(REFERENCE_ROWS, reference_labels(facts), strict=True)
        if name in shown
    }
    labels = sorted(participants | references.keys())
    kinds = [references.get(who, "participant") for who in labels]
    return Table("participants", 1, _PARTICIPANTS, (ids(labels), kinds))


class _Events:
    """The events up to a checkpoint."""

    def __init__(self, store: LogPages, until: log.Checkpoint) -> None:
        self._store, self._until = store, until
        self.rows, self.digest = until

    def __iter__(self) -> Iterator[Table]:
        return _events(self._store, self._until)


def _events(store: LogPages, until: log.Checkpoint) -> Iterator[Table]:
    """Return the events in chunks, at least one, of a bounded number of rows and (except their last page) of bytes."""
    waiting: list[tuple[bytes, Recorded]] = []
    size, last = 0, log.START
    for rows in log.pages_up_to(store.pages(), until.position):
        page = log.unseal(rows, last)
        last = log.Checkpoint(page[-1].position, page[-1].digest)
        waiting += zip(rows, page, strict=True)
        size += sum(map(len, rows))
        if len(waiting) >= CHUNK_ROWS or size >= CHUNK_BYTES:
            yield _chunk(waiting)
            waiting, size = [], 0
    if last != until:
        raise Corrupt(
            until.position, f"the row changed while it was exported: its digest was {until.digest}, is {last.digest}"
        )
    if waiting or last == log.START:
        yield _chunk(waiting)


def _chunk(rows: list[tuple[bytes, Recorded]]) -> Table:
    texts = [row.decode() for row, _ in rows]
    about = [event_ids(recorded.event) for _, recorded in rows]
    values = (
        int64_array([recorded.position for _, recorded in rows]),
        int64_array([recorded.recorded_at for _, recorded in rows]),
        int64_array([recorded.event.at for _, recorded in rows]),
        ids([recorded.command_id for _, recorded in rows]),
        ids([TAGS[type(recorded.event)] for _, recorded in rows]),
        ids([each.contest for each in about]),
        ids([each.question for each in about]),
        ids([each.participant for each in about]),
        [log.event_text(text) for text in texts],
        texts,
        [recorded.digest for _, recorded in rows],
    )
    return Table("events", _EVENTS, EVENT_COLUMNS, values)
