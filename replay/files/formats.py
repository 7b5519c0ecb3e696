"""The file formats of an export: tables are written chunk by chunk, and the rows of the log are read back."""

import csv
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from forecast_ledger.ledger.core.parquet_files import read_batches
from forecast_ledger.ledger.storing.database import MAX_ROW_BYTES
from forecast_ledger.projections.core.arrow import pyarrow, type_of
from forecast_ledger.projections.core.table import Table
from forecast_ledger.replay.files.arrow_files import read_plain_batches
from forecast_ledger.replay.files.export_tables import EVENT_COLUMNS, ExportTable
from forecast_ledger.replay.mapping.csv_reader import BoundedLines
from forecast_ledger.replay.reading.text_tables import as_csv

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
