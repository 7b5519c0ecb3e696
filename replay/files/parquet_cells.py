"""The rows of a Parquet file as the texts that a CSV would have, for maps."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.parquet_files import REMEDY, TooLargeError, read_batches
from forecast_ledger.projections.core.arrow import pyarrow
from forecast_ledger.replay.mapping.csv_reader import SourceRecord


def read_parquet(
    file: IO[bytes], reads: Callable[[str], bool], delimiter: str = ",", *, keep: bool = False
) -> Iterator[SourceRecord]:
    """Return the header, then each row's number from 1, its cells and, to keep, its bytes as a row of a CSV.

    reads: whether the cells of a column are read; others are empty, and so is null. delimiter: of the CSV.
    An instant with a time zone ends in Z, one without a time zone has no offset; a decimal has no exponent, a float is
    the shortest number that is read as the same float. All columns are read once before the first row is returned, so
    that nothing is taken from a damaged file. Memory holds a row group, and the texts of some rows.
    Raises, first that applies: Unavailable (no pyarrow), Refused (bad_csv: a pipe, damaged, a column of lists, objects
    or bytes).
    """
    arrow = pyarrow()
    from pyarrow import parquet  # noqa: PLC0415 - late: an extra

    if not file.seekable():
        raise Refused("bad_csv", "", None, "Parquet cannot be read from a pipe", remedy="save it, and name the file")
    try:
        schema = parquet.ParquetFile(file, pre_buffer=False).schema_arrow
        header = list(schema.names)
    except (arrow.ArrowException, ValueError, OSError) as error:
        raise _damaged(error) from None
    read = [name for name in header if reads(name)]
    if len({*read}) == len(read):  # the map refuses a column that appears twice
        for name in read:
            _check_type(name, schema.field(name).type)
        for _ in _batches(file, read):
            pass
    return _records(file, header, read, delimiter if keep else "")


def _records(file: IO[bytes], header: list[str], read: list[str], delimiter: str) -> Iterator[SourceRecord]:
    """Return the records; without a delimiter they have no bytes."""
    yield 1, header, csv_line(header, delimiter)
    number = 0
    for texts, count in _batches(file, read):
        empty = [""] * count
        for cells in zip(*(texts.get(name, empty) for name in header), strict=True):
            number += 1
            yield number, [cell.strip() for cell in cells], csv_line(cells, delimiter)


def _batches(file: IO[bytes], read: list[str]) -> Iterator[tuple[dict[str, list[str]], int]]:
    """Return the texts of each column, and their number, some rows at a time. Refuses: bad_csv."""
    try:
        for batch in read_batches(file, read):
            yield {name: _texts(batch.column(name)) for name in read}, batch.num_rows
    except (pyarrow().ArrowException, ValueError, OSError) as error:
        raise _damaged(error) from None


def _damaged(error: Exception) -> Refused:
    remedy = REMEDY if isinstance(error, TooLargeError) else ""
    return Refused("bad_csv", "", None, f"not a Parquet file that can be read: {error}", remedy=remedy)


def _check_type(name: str, kind: Any) -> None:
    """Refuse (bad_csv) a column whose values are not written in one way."""
    from pyarrow import types  # noqa: PLC0415 - late: an extra

    inner = kind.value_type if types.is_dictionary(kind) else kind
    texts = (types.is_string, types.is_large_string, types.is_boolean, types.is_null)
    known = (*texts, types.is_integer, types.is_floating, types.is_decimal, types.is_timestamp, types.is_date)
    if not any(is_known(inner) for is_known in known):
        remedy = "write it as text; JSON for a list or an object"
        raise Refused("bad_csv", "column", name, f"the column {name!r} has the type {kind}", remedy=remedy)


def _texts(column: Any) -> list[str]:
    """Return the values of a column as texts, "" for null."""
    arrow = pyarrow()
    from pyarrow import types  # noqa: PLC0415

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_decimal(column.type):
        return ["" if value is None else format(value, "f") for value in column.to_pylist()]
    zone = "Z" if types.is_timestamp(column.type) and column.type.tz else ""
    if zone:
        column = column.cast(arrow.timestamp(column.type.unit))  # the same instant in UTC
    return ["" if text is None else text + zone for text in column.cast(arrow.string()).to_pylist()]


def csv_line(cells: Sequence[str], delimiter: str) -> bytes:
    r"""Return cells as a line of a CSV; nothing without a delimiter.

    >>> csv_line(["a", "b, c"], ","), csv_line(["a"], "")
    (b'a,"b, c"\n', b'')
    """
    if not delimiter:
        return b""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()
