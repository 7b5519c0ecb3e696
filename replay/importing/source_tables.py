"""The rows of a table in a source, CSV or Parquet, as texts by column."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.parquet_files import REMEDY, TooLargeError, read_batches
from forecast_ledger.projections.core.arrow import pyarrow
from forecast_ledger.replay.importing.hub_config import MISSING, text_of
from forecast_ledger.replay.importing.source_files import SourceFiles
from forecast_ledger.replay.mapping.csv_reader import read_records
from forecast_ledger.replay.writing.command_lines import InputPlace

TableRow = tuple[int, Sequence[str] | Refused]  # the line, and the cells
MEND = "get the file again, or mend this line; until then, nothing that the file lacks is taken back"
TABLE_ENDINGS = (".csv", ".parquet")


class SourceTable(NamedTuple):
    """A table: its columns, and its rows in the order of the file; an empty cell is "NA" if the table is a hub's."""

    columns: list[str]
    rows: Iterator[TableRow]


def read_table(files: SourceFiles, name: str, needed: Sequence[str]) -> SourceTable:
    """Read a table; columns of a folder such as `as_of=2026-03-01` in the path are added.

    Raises, first that applies: Refused (bad_source: no such column, empty, not readable), Unavailable (no pyarrow).
    """
    columns, rows = _parquet(files, name) if name.endswith(".parquet") else read_csv(files, name)
    parts = [part.partition("=") for part in name.split("/")[:-1] if "=" in part]
    added = [(column, value) for column, _, value in parts if column not in columns]
    columns = [*columns, *(column for column, _ in added)]
    check_columns(name, columns, needed)
    values = tuple(value for _, value in added)
    return SourceTable(
        columns, ((line, cells if isinstance(cells, Refused) else _filled(cells, values)) for line, cells in rows)
    )


def read_csv(files: SourceFiles, name: str, lacking: int = 0) -> tuple[list[str], Iterator[TableRow]]:
    """Return the columns and the rows of a CSV. Refuses: bad_source (no header that can be read).

    lacking: how many cells a row may lack at its end; they are empty.
    """
    rows = _csv_rows(files, name)
    _, header = next(rows, (1, Refused("bad_csv", "", None, "the file is empty")))
    if isinstance(header, Refused):
        raise Refused("bad_source", name, None, header.detail, remedy=MEND)
    return list(header), _even_rows(rows, len(header), lacking)


def check_columns(name: str, columns: Sequence[str], needed: Sequence[str]) -> None:
    """Refuse (bad_source) a table that lacks a column, or has it twice."""
    for column in needed:
        if columns.count(column) != 1:
            fault = "appears twice" if column in columns else "is missing"
            detail = f"the column {column!r} {fault}; the columns are: {', '.join(columns)}"
            raise Refused("bad_source", name, None, detail)


def place_in(name: str, line: int, command: str = "") -> InputPlace:
    """Return the place of a row."""
    return InputPlace(line, command, file=name)


def _filled(cells: Sequence[str], added: tuple[str, ...]) -> tuple[str, ...]:
    return tuple([cell or MISSING for cell in cells]) + added


def _csv_rows(files: SourceFiles, name: str) -> Iterator[TableRow]:
    with files.open(name) as file:
        for line, cells in read_records(file):
            if isinstance(cells, Refused):
                yield line, Refused("bad_source", "", None, cells.detail, remedy=MEND)
            else:
                yield line, cells


def _even_rows(rows: Iterator[TableRow], width: int, lacking: int) -> Iterator[TableRow]:
    """Refuse rows that have another number of cells than the header; fill up those that may lack some."""
    for line, cells in rows:
        if isinstance(cells, Refused) or len(cells) == width:
            yield line, cells
        elif width - lacking <= len(cells) < width:
            yield line, [*cells, *[""] * (width - len(cells))]
        else:
            detail = f"the row has {len(cells)} cells, the header has {width}"
            yield line, Refused("bad_source", "", None, detail, remedy=MEND)


def _parquet(files: SourceFiles, name: str) -> tuple[list[str], Iterator[TableRow]]:
    arrow = pyarrow()
    from pyarrow import parquet  # noqa: PLC0415 - late: an extra

    try:
        with files.open_whole(name) as file, parquet.ParquetFile(file) as found:
            columns = list(found.schema_arrow.names)
    except (arrow.ArrowException, ValueError, OSError) as error:
        raise Refused("bad_source", name, None, f"not a Parquet file that can be read: {error}") from None
    return columns, _parquet_rows(files, name)


def _parquet_rows(files: SourceFiles, name: str) -> Iterator[TableRow]:
    """Return the rows; the line is that of the row, counted from 1."""
    arrow = pyarrow()
    line = 0
    try:
        with files.open_whole(name) as file:
            for batch in read_batches(file):
                for cells in zip(*(map(text_of, column.to_pylist()) for column in batch.columns), strict=True):
                    line += 1
                    yield line, cells
    except (arrow.ArrowException, ValueError, OSError) as error:
        detail = f"not readable: {error}; the rows after {line:,} are not read"
        remedy = REMEDY if isinstance(error, TooLargeError) else ""
        yield line + 1, Refused("bad_source", name, None, detail, remedy=remedy)
