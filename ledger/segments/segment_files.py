"""The Parquet files of a segment: written for any reader of Parquet, read with a check of their columns."""

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.regular_files import check_packed, open_regular
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns, pyarrow, schemas
from forecast_ledger.ledger.segments.segment_manifest import RESTORE, Segment, SegmentFile

_GROUP = 1 << 17  # rows of a row group
_LEVEL = 3  # of zstd
_DELTA, _TEXTS = "DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY"
_ENCODINGS = {"position": _DELTA, "recorded_at": _DELTA, "claimed_at": _DELTA, "command_id": _TEXTS}
_READ_ERRORS = (OSError, ValueError, TypeError, KeyError, NotImplementedError)  # pyarrow's are among them


def write_table(path: Path, table: Any) -> None:
    """Write a table to a new Parquet file, and synchronise it. Raises OSError."""
    from pyarrow import parquet  # noqa: PLC0415 - late: optional

    names = [field.name for field in table.schema if str(field.type).startswith("dictionary")]
    with path.open("xb") as file:
        parquet.write_table(
            table,
            file,
            compression="zstd",
            compression_level=_LEVEL,
            use_dictionary=names,
            column_encoding=_ENCODINGS,
            row_group_size=_GROUP,
        )
        file.flush()
        os.fsync(file.fileno())


def read_columns(folder: Path, segment: Segment, *, without: Collection[str] = ()) -> SegmentColumns:
    """Return the columns of a segment, without those named.

    Raises Corrupt at its first log position: a file is missing, no Parquet, or has other columns or more or fewer rows
    than the manifest states.
    """
    named = zip(segment.files, schemas(), strict=True)
    return SegmentColumns(*(_read(folder, file, schema, segment.first, without) for file, schema in named))


def _read(folder: Path, entry: SegmentFile, schema: Any, position: int, without: Collection[str]) -> Any:
    from pyarrow import parquet  # noqa: PLC0415 - late: optional

    path, names = folder / entry.name, [field.name for field in schema if pyarrow().types.is_dictionary(field.type)]
    try:
        with open_regular(path) as opened, parquet.ParquetFile(opened, read_dictionary=names) as file:
            if file.metadata.num_rows != entry.rows:
                raise ValueError(f"it has {file.metadata.num_rows:,} rows, not {entry.rows:,}")
            if file.schema_arrow.names != schema.names:
                raise ValueError(f"its columns are {', '.join(file.schema_arrow.names)}")
            check_packed(file.metadata)
            fields = [field for field in schema if field.name not in without]
            table = file.read([field.name for field in fields])
        columns = [table[field.name].cast(field.type) for field in fields]
        return pyarrow().Table.from_arrays(columns, schema=pyarrow().schema(fields)).unify_dictionaries()
    except _READ_ERRORS as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise Corrupt(position, f"{path}: {reason}; {RESTORE}", "store") from None
