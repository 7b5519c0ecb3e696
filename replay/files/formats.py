"""The file formats of an export: tables are written chunk by chunk, and the rows of the log are read back."""

import csv
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from math import isinf
from pathlib import Path
from struct import unpack_from
from typing import IO, Any, NamedTuple, Protocol

import msgspec
import numpy as np

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.extras import pyarrow
from forecast_ledger.ledger.core.parquet_files import read_batches
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.rules import REFERENCE_ROWS, shown_references
from forecast_ledger.ledger.storing.database import MAX_ROW_BYTES
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.projections.boards.totals import reference_labels
from forecast_ledger.projections.core.columns import (
    DECIMALS,
    FLOATS,
    Column,
    Values,
    columns_of_rows,
    ids,
    type_of,
)
from forecast_ledger.projections.core.table import Table, TableParts
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from forecast_ledger.replay.files.event_table import EVENT_COLUMNS, EVENTS_VERSION, event_tables
from forecast_ledger.replay.files.text_rows import Cells, text_rows
from forecast_ledger.replay.mapping.csv_reader import BoundedLines
from forecast_ledger.replay.reading.blocks import csv_cell, csv_cells, csv_lines
from forecast_ledger.replay.reading.log import Cut
from forecast_ledger.replay.reading.replay import Replay, ReplayedPage, replay_of_rows

# --- The tables of an export: the events, contests, questions, participants, projections, and the data dictionary.


_LOG = ("events", "position")
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


class Events(Chunks, Protocol):
    """The events of a log. season: their replay, once all chunks were read."""

    season: Replay


class ExportTable(NamedTuple):
    """A table to be exported, in chunks. floats: whether decimals are written as the nearest floats."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    version: int
    chunks: Chunks
    floats: bool = False

    def without_rows(self) -> "ExportTable":
        """Return its description alone, which keeps no rows in memory."""
        return self._replace(chunks=TableParts(()))


def export_tables(events: Events, names: Sequence[str], *, floats: bool = False) -> Iterator[ExportTable]:
    """Return the events of a replay, and its contests, questions, participants, and these projections.

    Each table is computed when it is asked for, and the events are to be read before. floats: as of `ExportTable`.
    """
    meaning = "the log: one row per event; all other tables are computed from it"
    yield ExportTable("events", meaning, ("position",), EVENT_COLUMNS, EVENTS_VERSION, events)
    projections = events.season.projections
    yield _projection(projections, "contests", floats=floats)
    yield _projection(projections, "questions", floats=floats)
    yield _in_chunks(_participants(projections.facts), "every participant in the tables", ("participant",))
    for name in names:
        if name not in {"contests", "questions"}:
            yield _projection(projections, name, floats=floats)


def describe_columns(sheets: Iterable[ExportTable], twins: Iterable[tuple[str, Column]] = ()) -> ExportTable:
    """Return the data dictionary: the meaning of every column. twins: further columns, by table."""
    rows = [(sheet.name, *_described(column, sheet.floats)) for sheet in sheets for column in sheet.columns]
    rows += [(table, column.name, column.kind, "float, for plotting", column.meaning) for table, column in twins]
    return _in_chunks(dictionary_table(rows), "the meaning of every column", ("table", "column"))


def dictionary_table(rows: Sequence[tuple[str, ...]]) -> Table:
    """Return the data dictionary with these rows: table, column, kind, unit, meaning."""
    return Table("data_dictionary", 1, _DICTIONARY, tuple(columns_of_rows([*rows], _DICTIONARY)))


def _described(column: Column, floats: bool) -> tuple[str, str, str, str]:
    unit = UNITS[column.kind].partition(";")[0].partition(",")[0] if floats and column.kind in FLOATS else ""
    return column.name, column.kind, f"{unit}; the nearest float" if unit else UNITS[column.kind], column.meaning


def _projection(projections: Projections, name: str, *, floats: bool) -> ExportTable:
    row = CATALOGUE[name]
    return ExportTable(name, row.meaning, row.key, row.columns, row.version, projections.parts(name), floats)


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


class StoredEvents:
    """The events of a replay, which are read from a store, and checked, again.

    Raises Corrupt: the row at the end of the replay has changed.
    """

    def __init__(self, store: LogPages, season: Replay) -> None:
        self._store, self.season = store, season
        self.rows, self.digest = season.checkpoint

    def __iter__(self) -> Iterator[Table]:
        return event_tables(self._pages())

    def _pages(self) -> Iterator[ReplayedPage]:
        last, until = log.START, self.season.checkpoint
        for rows in log.pages_up_to(self._store.pages(), until.position):
            events = log.unseal(rows, last)
            last = log.Checkpoint(events[-1].position, events[-1].digest)
            yield ReplayedPage(rows, events, None, (), ())
        if last != until:
            change = f"its digest was {until.digest}, is {last.digest}"
            raise Corrupt(until.position, f"the row changed while it was exported: {change}")


class ReplayedEvents:
    """The events of a store up to a cut, which are replayed while they are read. Raises as `replay` does.

    encoded: whether texts are their bytes in UTF-8, as Arrow has them.
    """

    season: Replay

    def __init__(self, store: StoredLog, cut: Cut, *, encoded: bool = False) -> None:
        self._store, self._cut, self._encoded = store, cut, encoded
        self.rows, self.digest = log.START

    def __iter__(self) -> Iterator[Table]:
        yield from event_tables(self._pages(), encoded=self._encoded)
        self.rows, self.digest = self.season.checkpoint

    def _pages(self) -> Iterator[ReplayedPage]:
        self.season = yield from replay_of_rows(self._store, self._cut)


_EXACT = 2**53  # up to it, every integer is a float
_MAGIC = b"ARROW1\0\0"
# Numbers of fields in two tables of format/Message.fbs, Message and RecordBatch; https://github.com/apache/arrow
_HEADER, _COMPRESSION = 2, 3


def read_plain_batches(file: IO[bytes], types: Collection[Any]) -> Iterator[Any]:
    """Yield the batches of an Arrow file as pyarrow.RecordBatches, each checked in full.

    types: those that a column may have, none of which is nested or encoded.
    Raises what pyarrow raises, and ValueError (not an Arrow file; another type, a dictionary or compression in it).
    """
    arrow = pyarrow()
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("not an Arrow file")
    schema = arrow.ipc.read_schema(file)
    for field in schema:
        if field.type not in types:
            raise ValueError(f"the column {field.name!r} has the type {field.type}, which no export has")
    for message in arrow.MessageReader.open_stream(file):
        if message.metadata_version < arrow.MetadataVersion.V5 or _is_compressed(message.metadata.to_pybytes()):
            raise ValueError("its rows are compressed, or in a form of Arrow before version 5, which no export is")
        batch = arrow.ipc.read_record_batch(message, schema)
        batch.validate(full=True)
        yield batch


def _is_compressed(message: bytes) -> bool:
    """Return whether a batch is compressed. message: of Flatbuffers, whose offsets pyarrow has checked."""
    header = _field(message, unpack_from("<I", message)[0], _HEADER)
    return bool(_field(message, header + unpack_from("<I", message, header)[0], _COMPRESSION))


def _field(message: bytes, table: int, number: int) -> int:
    """Return where a field of a table is; 0 if the table lacks it."""
    offsets_at = table - unpack_from("<i", message, table)[0]
    size, entry = unpack_from("<H", message, offsets_at)[0], 4 + 2 * number
    offset = unpack_from("<H", message, offsets_at + entry)[0] if entry < size else 0
    return offset and table + offset


READ_ERRORS = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
    MemoryError,
    msgspec.DecodeError,
)


class _Line(msgspec.Struct):
    """The row of the log in a line; other fields are ignored."""

    row: str


_line = msgspec.json.Decoder(_Line)
_encode, _encode_lines = msgspec.json.Encoder().encode, msgspec.json.Encoder().encode_lines
_TEXTS = {"id", "text"}  # kinds of any text


class FileFormat(NamedTuple):
    """A file format: how to write a table to a file, and how to read the rows of the log from the file of the events.

    faults: the exceptions that a damaged file raises.
    """

    write: Callable[[Path, ExportTable], None]
    rows: Callable[[IO[bytes]], Generator[bytes, None, None]]
    faults: Callable[[], tuple[type[Exception], ...]] = lambda: READ_ERRORS


def _write_csv(path: Path, sheet: ExportTable) -> None:
    numbers = Cells(_csv_numbers, b"")
    cells = [Cells(csv_cells) if column.kind in _TEXTS else numbers for column in sheet.columns]
    if len(cells) == 1:  # no line is empty
        write = cells[0].write
        cells = [Cells(lambda values: [*csv_lines([write(values)])])]
    before = [b"", *[b","] * (len(cells) - 1)]
    with path.open("xb") as file:
        file.write((",".join(csv_cell(column.name) for column in sheet.columns) + "\n").encode())
        file.writelines(_text_rows(sheet, cells, before, b"\n"))


def _csv_numbers(values: list[Any]) -> list[str]:
    """Return numbers and instants as cells, which never need quotation marks."""
    return ["" if value is None else str(value) for value in values]


def _write_lines(path: Path, sheet: ExportTable) -> None:
    before = [(b"," if number else b"{") + _encode(column.name) + b":" for number, column in enumerate(sheet.columns)]
    cells = [Cells(_json_texts, b"" if column.kind == "count" else b'"', b"null") for column in sheet.columns]
    with path.open("xb") as file:
        file.writelines(_text_rows(sheet, cells, before, b"}\n"))


def _json_texts(values: list[Any]) -> list[str]:
    return _encode_lines(values).decode().split("\n")[:-1]


def _text_rows(sheet: ExportTable, cells: Sequence[Cells], before: Sequence[bytes], end: bytes) -> Iterator[bytes]:
    """Yield the rows of a table as text. cells: of each column, as exact numbers; it may have nearest floats."""
    each = [
        Cells(partial(_write_near, how.write)) if sheet.floats and column.kind in FLOATS else how
        for column, how in zip(sheet.columns, cells, strict=True)
    ]
    for chunk in sheet.chunks:
        yield from text_rows(chunk, each, before, end)
        del chunk  # before the next one is read


def _write_parquet(path: Path, sheet: ExportTable) -> None:
    schema, tables = _arrow(sheet)
    from pyarrow import parquet  # noqa: PLC0415 - late: an extra

    recurring = [column.name for column in sheet.columns if column.kind == "id"]
    with (
        parquet.ParquetWriter(path, schema, compression="zstd", use_dictionary=recurring) as writer,
        ThreadPoolExecutor(1) as aside,  # pyarrow needs no lock of the interpreter while it encodes and compresses
    ):
        written = aside.submit(writer.write_table, next(tables))
        for table in tables:
            written.result()
            written = aside.submit(writer.write_table, table)
            del table  # before the next one is made
        written.result()


def _write_arrow(path: Path, sheet: ExportTable) -> None:
    schema, tables = _arrow(sheet)
    with pyarrow().OSFile(str(path), "wb") as file, pyarrow().ipc.new_file(file, schema) as writer:
        for table in tables:
            writer.write_table(table)
            del table  # before the next one is made


def _csv_rows(file: IO[bytes]) -> Generator[bytes, None, None]:
    before = csv.field_size_limit(MAX_ROW_BYTES)
    try:
        lines = BoundedLines(file, MAX_ROW_BYTES, MAX_ROW_BYTES)
        for row in csv.DictReader(lines, strict=True):
            yield row["row"].encode()
            lines.begin()
    except csv.Error as error:
        raise ValueError(str(error)) from None
    finally:
        csv.field_size_limit(before)


def _line_rows(file: IO[bytes]) -> Generator[bytes, None, None]:
    while line := file.readline(MAX_ROW_BYTES + 1):
        if len(line) > MAX_ROW_BYTES:
            raise ValueError(f"a line has more than {MAX_ROW_BYTES} bytes")
        yield _line.decode(line).row.encode()


def _parquet_rows(file: IO[bytes]) -> Generator[bytes, None, None]:
    pyarrow()
    for batch in read_batches(file, ["row"]):
        yield from _encode_rows(batch)


def _arrow_rows(file: IO[bytes]) -> Generator[bytes, None, None]:
    for batch in read_plain_batches(file, {type_of(column.kind) for column in EVENT_COLUMNS}):
        yield from _encode_rows(batch)


def _encode_rows(batch: Any) -> Iterator[bytes]:
    for row in batch.column("row").to_pylist():
        yield row.encode()


def _pyarrow_errors() -> tuple[type[Exception], ...]:
    return (pyarrow().ArrowException, *READ_ERRORS)


ARROW = {"parquet", "arrow"}  # formats of Arrow's arrays
FILE_FORMATS: dict[str, FileFormat] = {
    "csv": FileFormat(_write_csv, _csv_rows),
    "jsonl": FileFormat(_write_lines, _line_rows),
    "parquet": FileFormat(_write_parquet, _parquet_rows, _pyarrow_errors),
    "arrow": FileFormat(_write_arrow, _arrow_rows, _pyarrow_errors),
}


def _write_near(write: Callable[[list[Any]], list[str]], decimals: list[Any]) -> list[str]:
    return write(floats_of(decimals))


def floats_of(decimals: Sequence[str | None]) -> list[float | None]:
    """Return the nearest float of each decimal text; None if it is missing, or its float would be infinite.

    >>> floats_of(["0.1", None, "4.2E+400"])
    [0.1, None, None]
    """
    finite = {text: None if text is None or isinf(float(text)) else float(text) for text in {*decimals}}
    return [*map(finite.__getitem__, decimals)]


def nearest_floats(values: Values, kind: str, printed: Sequence[str | None]) -> list[float | None]:
    """Return `floats_of` the printed values of a column of decimals, an array's as one quotient where that is the same.

    An integer of up to 53 bits and a power of ten up to 10^22 are floats themselves, so that their quotient is the
    float that is nearest.
    """
    if isinstance(values, np.ndarray) and -_EXACT <= values.min(initial=0) <= values.max(initial=0) <= _EXACT:
        return [*(values / 10 ** DECIMALS[kind]).tolist()]
    return floats_of(printed)


def _arrow(sheet: ExportTable) -> tuple[Any, Iterator[Any]]:
    """Return the schema of a table in Arrow, and its chunks."""
    tables = map(partial(Table.to_arrow, floats=sheet.floats), sheet.chunks)  # keeps none
    first = next(tables)
    return first.schema, chain([first], tables)
