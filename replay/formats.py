"""The files of an export: one a table, written chunk by chunk, and the log's rows read back from one of them."""

import csv
import json
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from projections.arrow import pyarrow
from projections.table import Table
from replay.render import as_csv
from replay.sheets import Sheet

_FIELD = 2**31 - 1  # characters of a field of CSV that are read
FAULTS = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)


class Format(NamedTuple):
    """How a table is written to a file, and how the log's rows are read from that of the events.

    faults: what reading raises at a file that is not as it was written.
    """

    write: Callable[[Path, Sheet], None]
    rows: Callable[[Path], Generator[bytes, None, None]]
    faults: Callable[[], tuple[type[Exception], ...]] = lambda: FAULTS


def _write_csv(path: Path, sheet: Sheet) -> None:
    with path.open("x", encoding="utf-8", newline="\n") as file:
        names = [column.name for column in sheet.columns]
        file.writelines(f"{line}\n" for line in as_csv(names, _printed(sheet.chunks)))


def _write_lines(path: Path, sheet: Sheet) -> None:
    with path.open("xb") as file:
        file.writelines(msgspec.json.encode(row) + b"\n" for row in _printed(sheet.chunks))


def _write_parquet(path: Path, sheet: Sheet) -> None:
    first, tables = _arrow(sheet)
    from pyarrow import parquet  # noqa: PLC0415 - late: an extra

    with parquet.ParquetWriter(path, first.schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table)


def _write_arrow(path: Path, sheet: Sheet) -> None:
    first, tables = _arrow(sheet)
    with pyarrow().OSFile(str(path), "wb") as file, pyarrow().ipc.new_file(file, first.schema) as writer:
        for table in tables:
            writer.write_table(table)


def _csv_rows(path: Path) -> Generator[bytes, None, None]:
    before = csv.field_size_limit(_FIELD)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, strict=True):
                yield row["row"].encode()
    except csv.Error as error:
        raise ValueError(str(error)) from None
    finally:
        csv.field_size_limit(before)


def _line_rows(path: Path) -> Generator[bytes, None, None]:
    with path.open("rb") as file:
        for line in file:
            row: str = json.loads(line)["row"]
            yield row.encode()


def _parquet_rows(path: Path) -> Generator[bytes, None, None]:
    pyarrow()
    from pyarrow import parquet  # noqa: PLC0415

    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(columns=["row"]):
            yield from _encoded(batch)


def _arrow_rows(path: Path) -> Generator[bytes, None, None]:
    with pyarrow().OSFile(str(path), "rb") as source, pyarrow().ipc.open_file(source) as file:
        for number in range(file.num_record_batches):
            yield from _encoded(file.get_batch(number))


def _encoded(batch: Any) -> Iterator[bytes]:
    for row in batch.column("row").to_pylist():
        yield row.encode()


def _of_pyarrow() -> tuple[type[Exception], ...]:
    return (pyarrow().ArrowException, *FAULTS)


FORMATS: dict[str, Format] = {
    "csv": Format(_write_csv, _csv_rows),
    "jsonl": Format(_write_lines, _line_rows),
    "parquet": Format(_write_parquet, _parquet_rows, _of_pyarrow),
    "arrow": Format(_write_arrow, _arrow_rows, _of_pyarrow),
}


def _printed(chunks: Iterable[Table]) -> Iterator[dict[str, Any]]:
    return (row for chunk in chunks for row in chunk.rows())


def _arrow(sheet: Sheet) -> tuple[Any, Iterator[Any]]:
    """The first chunk as Arrow, and all of them; there is one at least."""
    tables = (chunk.to_arrow() for chunk in sheet.chunks)
    first = next(tables)
    return first, chain([first], tables)
