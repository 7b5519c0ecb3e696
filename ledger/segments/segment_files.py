"""The Parquet files of a segment: written for any reader of Parquet, read with a check of their columns."""

import os
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from msgspec import UNSET

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.parquet_files import ParquetSizes, TooLargeError, decoded_bytes
from forecast_ledger.ledger.core.redaction import redacted
from forecast_ledger.ledger.core.regular_files import open_regular
from forecast_ledger.ledger.segments.footer_check import check_footer
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns, labelled, pyarrow, schemas
from forecast_ledger.ledger.segments.segment_manifest import RESTORE, Segment, SegmentFile

_GROUP = 1 << 14  # rows of a row group, which is the least that is read for one question
_LEVEL = 3  # of zstd
_DELTA, _TEXTS = "DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY"
_ENCODINGS = {"position": _DELTA, "recorded_at": _DELTA, "claimed_at": _DELTA, "command_id": _TEXTS}
_NUMBERS = "numbers.list.element"
_LOOK_AT = 1 << 14  # numbers
_OF_IDS = frozenset({"question", "participant", "form", "type"})  # the columns of `_dictionaries`
_NEWER = "normal"  # a column that files without such rows do not have, as before there were any
_FOOTERS = 1 << 10  # files whose footers are kept
Ends = tuple[str, str] | None  # the least and the greatest id; None if there are none
_READ_ERRORS = (OSError, ValueError, TypeError, KeyError, NotImplementedError)  # pyarrow's are among them


def write_table(path: Path, table: Any) -> None:
    """Write a table to a new Parquet file, and synchronise it. Raises OSError.

    Readers refuse a file whose rows are far larger than it is, so that a table of such rows is not compressed.
    """
    if _NEWER in table.schema.names and not has_normal(table):
        table = table.drop_columns([_NEWER])
    names = _dictionaries(table.schema)
    encodings = _ENCODINGS | ({_NUMBERS: _DELTA} if "numbers" in table.schema.names and _differ(table) else {})
    options = {
        "compression": "zstd",
        "compression_level": _LEVEL,
        "use_dictionary": names,
        "column_encoding": encodings,
    }
    with path.open("xb+") as file:
        _write(file, table, names, options)
        try:
            ParquetSizes(file, _OF_IDS).rows_together(file)
        except TooLargeError:  # rows that are nearly all the same
            file.seek(0)
            file.truncate()
            _write(file, table, names, {"compression": "none", "use_dictionary": False})
        file.flush()
        os.fsync(file.fileno())


def _write(file: IO[bytes], table: Any, names: Sequence[str], options: dict[str, Any]) -> None:
    """Write a table. names: of its columns of ids; options: of pyarrow's ParquetWriter."""
    from pyarrow import parquet  # noqa: PLC0415 - late: optional

    with parquet.ParquetWriter(file, table.schema, **options) as writer:
        for begin in range(0, len(table), _GROUP) or [0]:
            writer.write_table(_with_own_labels(table.slice(begin, _GROUP), names))


def has_normal(table: Any) -> bool:
    """Return whether the command of a row of a table is known by the digest of its normal form."""
    return bool(pyarrow().compute.any(table[_NEWER]).as_py())


def _dictionaries(schema: Any) -> list[str]:
    """Return the names of the columns of ids, whose labels are in a dictionary."""
    return [field.name for field in schema if pyarrow().types.is_dictionary(field.type)]


def _with_own_labels(rows: Any, names: Sequence[str]) -> Any:
    """Return rows whose columns of ids have the labels of these rows alone: a row group has a copy of all labels."""
    for name in names:
        place, kind = rows.schema.get_field_index(name), rows.schema.field(name).type
        rows = rows.set_column(place, rows.schema.field(name), rows[name].cast(kind.value_type).dictionary_encode())
    return rows


def _differ(forecasts: Any) -> bool:
    """Return whether most of the numbers of forecasts differ; then differences are smaller, and read in half the time.

    Numbers that repeat, such as whole per cent, are about half as large when they are compressed as they are.
    """
    numbers = forecasts["numbers"].combine_chunks().flatten()[:_LOOK_AT].to_numpy()
    return len(np.unique(numbers)) > len(numbers) // 2


def read_columns(folder: Path, segment: Segment, *, without: Collection[str] = ()) -> SegmentColumns:
    """Return the columns of a segment, without those named.

    Raises Corrupt at its first log position: a file is missing, no Parquet, or has other columns or more or fewer rows
    than the manifest states.
    """
    tables = []
    for entry, schema in zip((segment.forecasts, segment.others, segment.quotes), schemas(), strict=True):
        if entry is UNSET:
            tables.append(schema.empty_table())
            continue
        with _opened(folder, entry, schema, segment.first) as file:
            tables.append(_read(file, schema, without, range(file.found.num_row_groups)))
    return SegmentColumns(*tables)


def check_statements(folder: Path, segment: Segment) -> None:
    """Check that what the files of a segment state about their rows, for readers of Parquet, is true.

    Memory holds a row group. Raises Corrupt at its first log position, also what `read_columns` raises.
    """
    for entry, schema in zip((segment.forecasts, segment.others, segment.quotes), schemas(), strict=True):
        if entry is not UNSET:
            with _opened(folder, entry, schema, segment.first) as file:
                own = pyarrow().schema([schema.field(name) for name in file.found.schema_arrow.names])
                check_footer(file.bytes, own, _row_groups(file, own))


def _row_groups(file: "_Opened", schema: Any) -> Iterator[Any]:
    """Return the rows of each row group. Raises ValueError: together they are too many for the file."""
    file.sizes.rows_together(file.bytes)
    total = 0
    for group in range(file.found.num_row_groups):
        table = _read(file, schema, (), [group])
        total += sum(decoded_bytes(chunk) for column in table.columns for chunk in column.chunks)
        file.sizes.check(total)
        yield table


def read_forecasts(folder: Path, segment: Segment, questions: Sequence[str], *, without: Collection[str] = ()) -> Any:
    """Return the forecasts of a segment on some questions, whose ids are in order, without the columns named.

    Only row groups that can have such forecasts are read. Raises Corrupt: see `read_columns`.
    """
    schema, *_ = schemas()
    with _opened(folder, segment.forecasts, schema, segment.first) as file:
        path = folder / segment.forecasts.name
        ranges = _questions(path, segment.forecasts.sha256, _status(path))
        groups = [number for number, ends in enumerate(ranges) if _may_have(ends, questions)]
        table = _read(file, schema, without, groups)
    if not groups:
        return table
    column = table["question"].combine_chunks()
    wanted = {*questions}
    asked = np.array([label in wanted for label in column.dictionary.to_pylist()], bool)
    return table.filter(pyarrow().array(asked[column.indices.to_numpy()]))


@contextmanager
def _opened(folder: Path, entry: SegmentFile, schema: Any, position: int) -> "Iterator[_Opened]":
    """Open a file of a segment as Parquet, and check that it has these columns and the rows that the manifest states.

    Raises Corrupt at a log position, also for what is wrong while it is open.
    """
    from pyarrow import parquet  # noqa: PLC0415 - late: optional

    path = folder / entry.name
    try:
        with open_regular(path) as opened:
            (metadata, sizes), names = _metadata(path, entry.sha256, _status(path)), _dictionaries(schema)
            with parquet.ParquetFile(opened, metadata=metadata, read_dictionary=names) as file:
                if file.metadata.num_rows != entry.rows:
                    raise ValueError(f"it has {file.metadata.num_rows:,} rows, not {entry.rows:,}")
                if file.schema_arrow.names not in (schema.names, [name for name in schema.names if name != _NEWER]):
                    raise ValueError(f"its columns are {', '.join(file.schema_arrow.names)}")
                yield _Opened(file, opened, sizes)
    except _READ_ERRORS as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise Corrupt(position, f"{redacted(path)}: {reason}; {RESTORE}", "store") from None


def _status(path: Path) -> tuple[int, ...]:
    """Return what tells a file from another one in its place; nothing for a remote file."""
    if not isinstance(path, Path):
        return ()
    status = path.lstat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class _Opened(NamedTuple):
    """A file of a segment: as pyarrow reads it, its bytes, and what decoding it gives."""

    found: Any
    bytes: IO[bytes]
    sizes: ParquetSizes


@lru_cache(_FOOTERS)
def _metadata(path: Path, digest: str, status: tuple[int, ...]) -> tuple[Any, ParquetSizes]:  # noqa: ARG001 - parts of the key
    """Return the metadata of a Parquet file, and its sizes; each of many tasks reads a few rows of the same files.

    digest, status: tell the file from another one in its place.
    """
    from pyarrow import parquet  # noqa: PLC0415 - late: optional

    with open_regular(path) as opened:
        return parquet.read_metadata(opened), ParquetSizes(opened, _OF_IDS)


@lru_cache(_FOOTERS)
def _questions(path: Path, digest: str, status: tuple[int, ...]) -> list[Ends]:
    """Return the ends of the ids of questions in each row group: of those that it has, not those that it states."""
    from pyarrow import parquet  # noqa: PLC0415 - late: optional

    (metadata, sizes), name = _metadata(path, digest, status), "question"
    with open_regular(path) as opened, parquet.ParquetFile(opened, metadata=metadata, read_dictionary=[name]) as file:
        found = _Opened(file, opened, sizes)
        groups = [_decoded(found, [name], [number])[name] for number in range(file.num_row_groups)]
        return [(min(ids), max(ids)) if (ids := labelled(column)[0]) else None for column in groups]


def _read(file: _Opened, schema: Any, without: Collection[str], groups: Sequence[int]) -> Any:
    """Return the columns of some row groups, but for those named. What a file states about its values is not used."""
    fields = [field for field in schema if field.name not in without]
    own = {*file.found.schema_arrow.names}
    found = _decoded(file, [field.name for field in fields if field.name in own], groups)
    if _NEWER not in own and any(field.name == _NEWER for field in fields):
        size = sum(file.found.metadata.row_group(group).num_rows for group in groups)
        found[_NEWER] = pyarrow().chunked_array([pyarrow().repeat(pyarrow().scalar(value=False), size)])
    columns = [found[field.name].cast(field.type) for field in fields]
    for field, column in zip(fields, columns, strict=True):
        if column.null_count and not field.nullable:
            raise ValueError(f"{field.name} is missing in {column.null_count:,} rows")
    return pyarrow().Table.from_arrays(columns, schema=pyarrow().schema(fields)).unify_dictionaries()


def _decoded(file: _Opened, names: Sequence[str], groups: Sequence[int]) -> dict[str, Any]:
    """Return columns of row groups, whose bytes are counted before they are decoded, or as they are.

    Raises ValueError: they are too many for the file.
    """
    sizes, total = file.sizes, 0
    few = sizes.rows_together(file.bytes, names, groups)
    table = file.found.read_row_groups(groups, [name for name in names if name not in few])
    columns = {name: table[name] for name in table.schema.names}
    for column in columns.values():
        sizes.check(total := total + sum(map(decoded_bytes, column.chunks)))
    for name, count in few.items():
        chunks = []
        for batch in file.found.iter_batches(count, row_groups=groups, columns=[name]):
            sizes.check(total := total + batch.nbytes)
            chunks.append(batch.column(0))
        columns[name] = pyarrow().chunked_array(chunks, file.found.schema_arrow.field(name).type)
    return columns


def _may_have(ends: Ends, questions: Sequence[str]) -> bool:
    """Return whether a row group can have forecasts on some questions, by the least and greatest id in it."""
    if ends is None:
        return False
    least, greatest = ends
    place = bisect_left(questions, least)
    return place < len(questions) and questions[place] <= greatest
