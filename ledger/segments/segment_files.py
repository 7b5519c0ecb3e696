"""The Parquet files of a segment: written for any reader of Parquet, read with a check of their columns."""

import os
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec import UNSET

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.redaction import redacted
from forecast_ledger.ledger.core.regular_files import check_packed, open_regular
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns, pyarrow, schemas
from forecast_ledger.ledger.segments.segment_manifest import RESTORE, Segment, SegmentFile

_GROUP = 1 << 14  # rows of a row group, which is the least that is read for one question
_LEVEL = 3  # of zstd
_DELTA, _TEXTS = "DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY"
_ENCODINGS = {"position": _DELTA, "recorded_at": _DELTA, "claimed_at": _DELTA, "command_id": _TEXTS}
_NUMBERS = "numbers.list.element"
_LOOK_AT = 1 << 14  # numbers
_OFTEN_ONE = frozenset({"imported", "made", "form", "until", "attestation", "digest"})  # see `_one_value`
_FOOTERS = 1 << 10  # files whose footers are kept
Ends = tuple[str, str] | None  # the least and the greatest id; None if a file does not say
_READ_ERRORS = (OSError, ValueError, TypeError, KeyError, NotImplementedError)  # pyarrow's are among them


def write_table(path: Path, table: Any) -> None:
    """Write a table to a new Parquet file, and synchronise it. Raises OSError."""
    from pyarrow import parquet  # noqa: PLC0415 - late: optional

    names = _dictionaries(table.schema)
    encodings = _ENCODINGS | ({_NUMBERS: _DELTA} if "numbers" in table.schema.names and _differ(table) else {})
    options = {
        "compression": "zstd",
        "compression_level": _LEVEL,
        "use_dictionary": names,
        "column_encoding": encodings,
    }
    with path.open("xb") as file:
        with parquet.ParquetWriter(file, table.schema, **options) as writer:
            for begin in range(0, len(table), _GROUP) or [0]:
                writer.write_table(_with_own_labels(table.slice(begin, _GROUP), names))
        file.flush()
        os.fsync(file.fileno())


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
        with _opened(folder, entry, schema, segment.first) as (file, _):
            tables.append(_read(file, schema, without, range(file.num_row_groups)))
    return SegmentColumns(*tables)


def read_forecasts(folder: Path, segment: Segment, questions: Sequence[str], *, without: Collection[str] = ()) -> Any:
    """Return the forecasts of a segment on some questions, whose ids are in order, without the columns named.

    Only row groups that can have such forecasts are read. Raises Corrupt: see `read_columns`.
    """
    schema, *_ = schemas()
    with _opened(folder, segment.forecasts, schema, segment.first) as (file, ranges):
        groups = [number for number, ends in enumerate(ranges) if _may_have(ends, questions)]
        table = _read(file, schema, without, groups)
    if not groups:
        return table
    column = table["question"].combine_chunks()
    wanted = {*questions}
    asked = np.array([label in wanted for label in column.dictionary.to_pylist()], bool)
    return table.filter(pyarrow().array(asked[column.indices.to_numpy()]))


@contextmanager
def _opened(folder: Path, entry: SegmentFile, schema: Any, position: int) -> Iterator[tuple[Any, list[Ends]]]:
    """Open a file of a segment as Parquet, and check that it has these columns and the rows that the manifest states.

    Return it with the ends of the ids of questions in each row group, if it has them. Raises Corrupt at a log position,
    also for what is wrong while it is open.
    """
    from pyarrow import parquet  # noqa: PLC0415 - late: optional

    path = folder / entry.name
    try:
        with open_regular(path) as opened:
            footer = _footer(path, entry.sha256, _status(path))
            names = _dictionaries(schema)
            with parquet.ParquetFile(opened, metadata=footer.metadata, read_dictionary=names) as file:
                if file.metadata.num_rows != entry.rows:
                    raise ValueError(f"it has {file.metadata.num_rows:,} rows, not {entry.rows:,}")
                if file.schema_arrow.names != schema.names:
                    raise ValueError(f"its columns are {', '.join(file.schema_arrow.names)}")
                yield file, footer.questions
    except _READ_ERRORS as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise Corrupt(position, f"{redacted(path)}: {reason}; {RESTORE}", "store") from None


def _status(path: Path) -> tuple[int, ...]:
    """Return what tells a file from another one in its place; nothing for a remote file."""
    if not isinstance(path, Path):
        return ()
    status = path.lstat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class _Footer(NamedTuple):
    """The metadata of a file, and the ends of the ids of questions in each row group; none if it has no questions."""

    metadata: Any
    questions: list[Ends]


@lru_cache(_FOOTERS)
def _footer(path: Path, digest: str, status: tuple[int, ...]) -> _Footer:  # noqa: ARG001 - parts of the key
    """Read the footer of a Parquet file, and check it; each of many tasks reads a few rows of the same files.

    digest, status: tell the file from another one in its place.
    """
    from pyarrow import parquet  # noqa: PLC0415 - late: optional

    with open_regular(path) as opened:
        metadata = parquet.read_metadata(opened)
        check_packed(metadata, opened)
    names = metadata.schema.names
    if "question" not in names:
        return _Footer(metadata, [])
    columns = [metadata.row_group(number).column(names.index("question")) for number in range(metadata.num_row_groups)]
    found = [column.statistics for column in columns]
    return _Footer(metadata, [(each.min, each.max) if each and each.has_min_max else None for each in found])


def _read(file: Any, schema: Any, without: Collection[str], groups: Sequence[int]) -> Any:
    """Return the columns of some row groups, but for those named."""
    fields = [field for field in schema if field.name not in without]
    size = sum(file.metadata.row_group(group).num_rows for group in groups)
    same = {field.name: value for field in fields if (value := _one_value(file, field, size, groups)) is not None}
    table = file.read_row_groups(groups, [field.name for field in fields if field.name not in same])
    columns = [same[field.name] if field.name in same else table[field.name].cast(field.type) for field in fields]
    for field, column in zip(fields, columns, strict=True):
        if column.null_count and not field.nullable:
            raise ValueError(f"{field.name} is missing in {column.null_count:,} rows")
    return pyarrow().Table.from_arrays(columns, schema=pyarrow().schema(fields)).unify_dictionaries()


def _one_value(file: Any, field: Any, size: int, groups: Sequence[int]) -> Any:
    """Return a column of row groups that has one value or none, by the file's statistics; None if it may have more.

    Most segments have forecasts of one form, without ends, attestations or withdrawals.
    """
    if field.name not in _OFTEN_ONE or not size:
        return None
    pa, place = pyarrow(), file.schema_arrow.names.index(field.name)
    found = [file.metadata.row_group(group).column(place).statistics for group in groups]
    if any(each is None or not each.has_null_count for each in found):
        return None
    nulls = sum(each.null_count for each in found)
    if nulls == size:
        return pa.chunked_array([pa.nulls(size, field.type)])
    if nulls or not all(each.has_min_max for each in found):
        return None
    values = {value for each in found for value in (each.min, each.max)}
    if len(values) > 1:
        return None
    if pa.types.is_dictionary(field.type):
        array = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), size), pa.array([*values]))
    else:
        array = pa.repeat(pa.scalar(*values, field.type), size)
    return pa.chunked_array([array])


def _may_have(ends: Ends, questions: Sequence[str]) -> bool:
    """Return whether a row group can have forecasts on some questions, by the least and greatest id in it."""
    if ends is None:
        return True
    least, greatest = ends
    place = bisect_left(questions, least)
    return place < len(questions) and questions[place] <= greatest
