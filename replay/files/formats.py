"""The file formats of an export: tables are written chunk by chunk, and the rows of the log are read back."""

import csv
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from itertools import chain
from pathlib import Path
from struct import unpack_from
from typing import IO, Any, NamedTuple

import msgspec

from forecast_ledger.ledger.core.parquet_files import read_batches
from forecast_ledger.ledger.storing.database import MAX_ROW_BYTES
from forecast_ledger.projections.core.columns import pyarrow, type_of
from forecast_ledger.projections.core.table import Table
from forecast_ledger.replay.files.export_tables import EVENT_COLUMNS, ExportTable
from forecast_ledger.replay.mapping.csv_reader import BoundedLines
from forecast_ledger.replay.reading.text_tables import as_csv

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
    places = table - unpack_from("<i", message, table)[0]
    size, place = unpack_from("<H", message, places)[0], 4 + 2 * number
    offset = unpack_from("<H", message, places + place)[0] if place < size else 0
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


class FileFormat(NamedTuple):
    """A file format: how to write a table to a file, and how to read the rows of the log from the file of the events.

    faults: the exceptions that a damaged file raises.
    """

    write: Callable[[Path, ExportTable], None]
    rows: Callable[[IO[bytes]], Generator[bytes, None, None]]
    faults: Callable[[], tuple[type[Exception], ...]] = lambda: READ_ERRORS


def _write_csv(path: Path, sheet: ExportTable) -> None:
    with path.open("x", encoding="utf-8", newline="\n") as file:
        names = [column.name for column in sheet.columns]
        file.writelines(f"{line}\n" for line in as_csv(names, _printed_rows(sheet.chunks)))


def _write_lines(path: Path, sheet: ExportTable) -> None:
    with path.open("xb") as file:
        file.writelines(msgspec.json.encode(row) + b"\n" for row in _printed_rows(sheet.chunks))


def _write_parquet(path: Path, sheet: ExportTable) -> None:
    first, tables = _arrow(sheet)
    from pyarrow import parquet  # noqa: PLC0415 - late: an extra

    with parquet.ParquetWriter(path, first.schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table)


def _write_arrow(path: Path, sheet: ExportTable) -> None:
    first, tables = _arrow(sheet)
    with pyarrow().OSFile(str(path), "wb") as file, pyarrow().ipc.new_file(file, first.schema) as writer:
        for table in tables:
            writer.write_table(table)


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


FILE_FORMATS: dict[str, FileFormat] = {
    "csv": FileFormat(_write_csv, _csv_rows),
    "jsonl": FileFormat(_write_lines, _line_rows),
    "parquet": FileFormat(_write_parquet, _parquet_rows, _pyarrow_errors),
    "arrow": FileFormat(_write_arrow, _arrow_rows, _pyarrow_errors),
}


def _printed_rows(chunks: Iterable[Table]) -> Iterator[dict[str, Any]]:
    return (row for chunk in chunks for row in chunk.rows())


def _arrow(sheet: ExportTable) -> tuple[Any, Iterator[Any]]:
    """Return the first chunk as Arrow, and all chunks; there is at least one."""
    tables = (chunk.to_arrow() for chunk in sheet.chunks)
    first = next(tables)
    return first, chain([first], tables)
