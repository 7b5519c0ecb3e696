"""The Parquet files of a folder of segments, written for any reader, and read with a check."""

import os
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from itertools import islice
from operator import lt
from pathlib import Path
from threading import Lock
from typing import IO, Any, NamedTuple, Self

import numpy as np
from msgspec import UNSET, UnsetType

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.files import open_regular
from forecast_ledger.ledger.core.parquet_files import ParquetSizes, TooLargeError, decoded_bytes, most_decoded_bytes
from forecast_ledger.ledger.core.systems import sync_descriptor
from forecast_ledger.ledger.core.values import FIRST_INSTANT, LAST_INSTANT
from forecast_ledger.ledger.segments.arrow_arrays import (
    chosen,
    compute_functions,
    integers,
    is_valid,
    labelled,
    no_rows,
    numpy_array,
    pyarrow,
)
from forecast_ledger.ledger.segments.footer_check import check_footer
from forecast_ledger.ledger.segments.forecast_counts import count_forecasts, counts_schema
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns, schemas
from forecast_ledger.ledger.segments.segment_manifest import RESTORE, Segment, SegmentFile, unreadable

_GROUP = 1 << 14  # rows of a row group, which is the least that is read for one question
_LEVEL = 3  # of zstd
_DELTA, _TEXTS = "DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY"
_ENCODINGS = {"position": _DELTA, "recorded_at": _DELTA, "claimed_at": _DELTA, "command_id": _TEXTS}
_NUMBERS = "numbers.list.element"
_LOOK_AT = 1 << 14  # numbers
_OF_IDS = frozenset({"question", "participant", "form", "type"})  # the columns of `_dictionaries`
_NEWER = ("normal", "provenance")  # columns that files without such rows do not have, as before there were any
_UNCOUNTED = frozenset({"command_id", "command", "position", "made", "form", "numbers", "until", *_NEWER})
_FOOTERS = 1 << 10  # files whose footers are kept
_THREADS_FROM = 5_000  # rows that are read together: to read fewer in threads takes more processor time, and saves none
_OPEN_FILES = "/dev/fd"  # where the system names the files that are open, but for Windows
Ends = tuple[str, str] | None  # the least and the greatest id; None if there are none
_READ_ERRORS = (OSError, ValueError, TypeError, KeyError, NotImplementedError)  # pyarrow's are among them


def write_table(path: Path, table: Any) -> None:
    """Write a table to a new Parquet file, and synchronise it. Raises OSError.

    Readers refuse a file whose rows are far larger than it is, so that a table of such rows is not compressed.
    """
    table = table.drop_columns([name for name in _NEWER if name in table.schema.names and not says(table, name)])
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
        sync_descriptor(file.fileno())


def _write(file: IO[bytes], table: Any, names: Sequence[str], options: dict[str, Any]) -> None:
    """Write a table. names: of its columns of ids; options: of pyarrow's ParquetWriter."""
    from pyarrow import parquet  # noqa: PLC0415 - late: optional

    with parquet.ParquetWriter(file, table.schema, **options) as writer:
        for begin in range(0, len(table), _GROUP) or [0]:
            writer.write_table(_with_used_labels(table.slice(begin, _GROUP), names))


def says(table: Any, name: str) -> bool:
    """Return whether a row of a table has something in a column that older files do not have."""
    column = table[name]
    if pyarrow().types.is_boolean(column.type):
        return bool(compute_functions().any(column).as_py())
    return bool(column.null_count < len(column))


def _dictionaries(schema: Any) -> list[str]:
    """Return the names of the columns of ids, whose labels are in a dictionary."""
    return [field.name for field in schema if pyarrow().types.is_dictionary(field.type)]


def _with_used_labels(rows: Any, names: Sequence[str]) -> Any:
    """Return rows whose columns of ids have the labels of these rows alone: a row group has a copy of all labels."""
    for name in names:
        index, kind = rows.schema.get_field_index(name), rows.schema.field(name).type
        rows = rows.set_column(index, rows.schema.field(name), rows[name].cast(kind.value_type).dictionary_encode())
    return rows


def _differ(forecasts: Any) -> bool:
    """Return whether most of the numbers of forecasts differ; then differences are smaller, and read in half the time.

    Numbers that repeat, such as whole per cent, are about half as large when they are compressed as they are.
    """
    numbers = numpy_array(forecasts["numbers"].combine_chunks().flatten()[:_LOOK_AT])
    return len(np.unique(numbers)) > len(numbers) // 2


def read_columns(folder: Path, segment: Segment, *, without: Collection[str] = ()) -> SegmentColumns:
    """Return the columns of a segment, without those named.

    Raises Corrupt at its first log position: a file is missing, no Parquet, or has other columns or more or fewer rows
    than the manifest states.
    """
    return SegmentColumns(*(read_table(folder, segment, kind, without=without) for kind in SegmentColumns._fields))


def read_table(folder: Path, segment: Segment, kind: str, *, without: Collection[str] = ()) -> Any:
    """Return one of the tables that `read_columns` returns. Raises what that raises."""
    schema = schemas()[SegmentColumns._fields.index(kind)]
    return _read_file(folder, getattr(segment, kind), schema, segment.first, without)


def read_counted(folder: Path, segment: Segment, *, without: Collection[str] = ()) -> SegmentColumns:
    """Return the columns of a segment with the counts of its forecasts, which it keeps, instead of the forecasts.

    Raises Corrupt: see `read_columns`; the counts are not of so many forecasts.
    """
    _, *others = zip((segment.forecasts, segment.others, segment.quotes), schemas(), strict=True)
    counts = _read_file(folder, segment.counts, counts_schema(), segment.first)
    rows = integers(counts["rows"])
    on_question = is_valid(counts["question"].combine_chunks())
    of_participant = is_valid(counts["participant"].combine_chunks())
    if (on_question == of_participant).any() or rows[on_question].sum() != segment.forecasts.rows:
        raise _other_counts(segment)
    rest = (_read_file(folder, entry, schema, segment.first, without) for entry, schema in others)
    return SegmentColumns(counts, *rest)


def _other_counts(segment: Segment) -> Corrupt:
    return Corrupt(segment.first, f"the counts of the segment are not those of its forecasts; {RESTORE}", "store")


def _read_file(
    folder: Path, entry: SegmentFile | UnsetType, schema: Any, position: int, without: Collection[str] = ()
) -> Any:
    """Return the columns of a file of a segment; no rows if there is no such file."""
    if entry is UNSET:
        return no_rows(schema)
    with _opened(folder, entry, schema, position) as file:
        table = _read(file, schema, without, range(file.parquet.num_row_groups)).unify_dictionaries()
        if {"event", "position"} <= {*table.schema.names} and (np.diff(integers(table["position"])) < 0).any():
            raise ValueError("its rows are not in the order of the log, in which its events are filed")
        return table


def counted_ends(counts: Any) -> list[Ends] | None:
    """Return the least and the greatest question in each row group of forecasts, by the counts that a segment keeps.

    They are those in the file if the counts are true, and its rows in order of ids, in row groups as we write them.
    None if the counts are in another order, or if these are no counts.
    """
    if "rows" not in counts.schema.names:
        return None
    size = len(counts) - counts["question"].null_count
    ids, ends = counts["question"].slice(0, size), np.cumsum(integers(counts["rows"])[:size])
    if not size or ids.null_count or (np.diff(ends, prepend=0) <= 0).any():
        return None
    first = np.arange(0, ends[-1], _GROUP)
    index = np.searchsorted(ends, [first, np.minimum(first + _GROUP, ends[-1]) - 1], "right")
    return [(ids[least].as_py(), ids[greatest].as_py()) for least, greatest in index.T.tolist()]


def check_counts(folder: Path, segment: Segment) -> None:
    """Check that the counts of forecasts that a segment keeps, if it does, are true.

    Raises Corrupt at its first log position.
    """
    if segment.counts is not UNSET:
        counts = _read_file(folder, segment.counts, counts_schema(), segment.first)
        _check_counts(segment, counts, read_table(folder, segment, "forecasts", without=_UNCOUNTED))


def _check_counts(segment: Segment, counts: Any, forecasts: Any) -> None:
    expected = count_forecasts(forecasts)
    if expected is None or not expected.equals(counts):
        raise _other_counts(segment)


def check_statements(folder: Path, segment: Segment, columns: SegmentColumns) -> None:
    """Check that what the files of a segment state about their rows, for readers of Parquet, is true.

    columns: of the segment, as `read_columns` returns them. Raises Corrupt at its first log position.
    """
    files = segment.forecasts, segment.others, segment.quotes
    for entry, schema, table in zip(files, schemas(), columns, strict=True):
        _check_file(folder, entry, schema, segment.first, table)
    if segment.counts is not UNSET:
        counts = _read_file(folder, segment.counts, counts_schema(), segment.first)
        _check_file(folder, segment.counts, counts_schema(), segment.first, counts)
        _check_counts(segment, counts, columns.forecasts)


def read_checked(folder: Path, segment: Segment) -> SegmentColumns:
    """Return the columns of a segment, after the checks of `check_statements`. Raises what `read_columns` raises."""
    columns = read_columns(folder, segment)
    check_statements(folder, segment, columns)
    return columns


def _check_file(folder: Path, entry: SegmentFile | UnsetType, schema: Any, position: int, table: Any) -> None:
    """Check what a file of a segment, if there is one, states about its rows, which are in a table."""
    if entry is not UNSET:
        with _opened(folder, entry, schema, position) as file:
            columns = pyarrow().schema([schema.field(name) for name in file.parquet.schema_arrow.names])
            groups = _sliced(table.select(columns.names), file, range(file.parquet.num_row_groups))
            check_footer(file.bytes, columns, groups)


class KeptGroups:
    """The last row group of each segment that was read for some questions: those that follow may be in it as well.

    Threads can share it. It is of one folder and one choice of columns, and is pickled empty.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Lock, dict[int, RowGroup]]] = {}

    def __reduce__(self) -> tuple[type["KeptGroups"], tuple[()]]:
        return KeptGroups, ()

    def in_turn(self, segments: Iterable[Segment]) -> "Generator[tuple[Segment, dict[int, RowGroup]], None, None]":
        """Yield what is kept of each segment, for `read_forecasts`. No thread overtakes one that began before it."""
        with ExitStack() as turn:
            for segment in segments:
                lock, groups = self._kept.setdefault(segment.first, (Lock(), {}))
                lock.acquire()
                turn.close()  # leaves the segment before, now that this one is entered
                turn.callback(lock.release)
                yield segment, groups


class RowGroup(NamedTuple):
    """Forecasts of a row group. begins: the first row of each label and the end, if rows are in order of the labels."""

    table: Any
    labels: list[str]
    begins: Any

    @classmethod
    def of(cls, table: Any) -> Self:
        """Return a row group with what its forecasts are found by."""
        labels, index = labelled(table["question"])
        is_ordered = (index[1:] >= index[:-1]).all() and all(map(lt, labels, islice(labels, 1, None)))
        return cls(table, labels, np.searchsorted(index, np.arange(len(labels) + 1)) if is_ordered else None)

    def on(self, questions: Sequence[str], wanted: set[str]) -> Any:
        """Return the forecasts on some questions, whose ids are in order, and in a set."""
        if self.begins is not None:
            first, end = bisect_left(self.labels, questions[0]), bisect_right(self.labels, questions[-1])
            if wanted.issuperset(self.labels[first:end]):
                return self.table.slice(self.begins[first], self.begins[end] - self.begins[first])
        is_wanted = np.array([label in wanted for label in self.labels], bool)
        return self.table.filter(chosen(is_wanted[labelled(self.table["question"])[1]]))


def read_forecasts(  # noqa: PLR0913 - what has a default is named
    folder: Path,
    segment: Segment,
    questions: Sequence[str] | None,
    *,
    without: Collection[str] = (),
    kept: dict[int, RowGroup] | None = None,
    counted: list[Ends] | None = None,
) -> Any:
    """Return the forecasts of a segment on some questions, whose ids are in order, without the columns named.

    questions: None for all. Only row groups that can have such forecasts are read. kept: the last of them, for the next
    call for the same segment and columns. counted: see `counted_ends`; if they are wrong, forecasts can be missing, so
    that the caller counts those on all questions. Raises Corrupt: see `read_columns`.
    """
    schema, *_ = schemas()
    if questions is None:
        return _read_file(folder, segment.forecasts, schema, segment.first, without)
    with _reading(folder / segment.forecasts.name, segment.first):
        of_groups = enumerate(group_ends(folder, segment, counted))
        numbers = [number for number, ends in of_groups if _may_have(ends, questions)]
    groups = {} if kept is None else kept
    missing = [number for number in numbers if number not in groups]
    if missing or not numbers:  # a file that seems to have no such forecasts is checked as well
        with _opened(folder, segment.forecasts, schema, segment.first) as file:
            groups |= zip(missing, map(RowGroup.of, _in_groups(file, schema, without, missing)), strict=True)
    read = [groups[number] for number in numbers]
    for number in {*groups}.difference(numbers[-1:]):
        del groups[number]
    wanted = {*questions}
    tables = [group.on(questions, wanted) for group in read]
    tables[:-1] = map(_apart, tables[:-1], read)  # so that memory does not hold row groups that are not kept
    if not tables:
        tables = [no_rows(pyarrow().schema([field for field in schema if field.name not in without]))]
    return pyarrow().concat_tables(tables)


def _apart(table: Any, group: RowGroup) -> Any:
    """Return a copy of a part of a row group, or all of it."""
    if len(table) in {0, len(group.table)}:  # what has no rows may have no chunk
        return table
    columns = [pyarrow().concat_arrays(column.chunks) for column in table.columns]
    return pyarrow().Table.from_arrays(columns, schema=table.schema)


def _in_groups(file: "_Opened", schema: Any, without: Collection[str], groups: Sequence[int]) -> Iterator[Any]:
    """Return the columns of each of some row groups, but for those named, which are read together."""
    return _sliced(_read(file, schema, without, groups), file, groups)


def _sliced(table: Any, file: "_Opened", groups: Sequence[int]) -> Iterator[Any]:
    """Yield the rows of each row group of a table that has some of a file, one after the other."""
    end = 0
    for group in groups:
        begin, end = end, end + file.parquet.metadata.row_group(group).num_rows
        yield table.slice(begin, end - begin)


def group_ends(folder: Path, segment: Segment, counted: list[Ends] | None = None) -> list[Ends]:
    """Return the least and the greatest question in each row group of the forecasts of a segment; they are kept.

    counted: see `counted_ends`; they are not read from the file if it has so many row groups.
    """
    path = folder / segment.forecasts.name
    with _lock(path):
        key = path, segment.forecasts.sha256, _status(path)
        if counted is not None and _metadata(*key)[0].num_row_groups == len(counted):
            return counted
        return _questions(*key)


@contextmanager
def _opened(folder: Path, entry: SegmentFile, schema: Any, position: int) -> "Iterator[_Opened]":
    """Open a file of a segment as Parquet, and check that it has these columns and the rows that the manifest states.

    Raises Corrupt at a log position, also for what is wrong while it is open.
    """
    from pyarrow import parquet  # noqa: PLC0415 - late: optional

    path = folder / entry.name
    with _reading(path, position), open_regular(path) as opened:
        with _lock(path):
            metadata, sizes = _metadata(path, entry.sha256, _status(path))
        names = _dictionaries(schema)
        ahead = not isinstance(path, Path)  # a file on this machine would be copied once more, into memory of its size
        with (
            _for_threads(opened) as source,
            parquet.ParquetFile(source, metadata=metadata, read_dictionary=names, pre_buffer=ahead) as file,
        ):
            if file.metadata.num_rows != entry.rows:
                raise ValueError(f"it has {file.metadata.num_rows:,} rows, not {entry.rows:,}")
            column_names = file.schema_arrow.names
            if column_names != [name for name in schema.names if name in column_names or name not in _NEWER]:
                raise ValueError(f"its columns are {', '.join(column_names)}")
            yield _Opened(file, opened, sizes)


def _for_threads(file: IO[bytes]) -> Any:
    """Return an open file as pyarrow's own, which its threads read without Python's lock, if the system names it."""
    try:
        return pyarrow().OSFile(f"{_OPEN_FILES}/{file.fileno()}")
    except OSError:  # not on Windows, and no remote file
        return file


@contextmanager
def _reading(path: Path, position: int) -> Iterator[None]:
    """Raise Corrupt at a log position for what is wrong with a file, or Unavailable; see `unreadable`."""
    try:
        yield
    except _READ_ERRORS as error:
        raise unreadable(path, error, position) from None


def _status(path: Path) -> tuple[int, ...]:
    """Return what tells a file from another one of its name; nothing for a remote file."""
    if not isinstance(path, Path):
        return ()
    status = path.lstat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class _Opened(NamedTuple):
    """A file of a segment: as pyarrow reads it, its bytes, and what decoding it gives."""

    parquet: Any
    bytes: IO[bytes]
    sizes: ParquetSizes


@lru_cache(_FOOTERS)
def _lock(path: Path) -> Lock:  # noqa: ARG001 - the key
    """Return the lock of a file: of the threads that need it, one looks for what is kept of it, and the others wait."""
    return Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lock.cache_clear)  # one may be held by a thread that the child does not have


@lru_cache(_FOOTERS)
def _metadata(path: Path, digest: str, status: tuple[int, ...]) -> tuple[Any, ParquetSizes]:  # noqa: ARG001 - parts of the key
    """Return the metadata of a Parquet file, and its sizes; each of many tasks reads a few rows of the same files.

    digest, status: tell the file from another one of its name.
    """
    from pyarrow import parquet  # noqa: PLC0415 - late: optional

    with open_regular(path) as opened:
        return parquet.read_metadata(opened), ParquetSizes(opened, _OF_IDS)


@lru_cache(_FOOTERS)
def _questions(path: Path, digest: str, status: tuple[int, ...]) -> list[Ends]:
    """Return the ends of the ids of questions in each row group: of those that it has, not those that it states."""
    from pyarrow import parquet  # noqa: PLC0415 - late: optional

    (metadata, sizes), name = _metadata(path, digest, status), "question"
    with (
        open_regular(path) as opened,
        _for_threads(opened) as source,
        parquet.ParquetFile(source, metadata=metadata, read_dictionary=[name]) as file,
    ):
        groups = range(file.num_row_groups)
        column, ends, end = _decoded(_Opened(file, opened, sizes), [name], groups)[name], list[Ends](), 0
        for rows in (metadata.row_group(group).num_rows for group in groups):
            ids, _ = labelled(column.slice(end, rows))
            ends.append((min(ids), max(ids)) if ids else None)
            end += rows
        return ends


def _read(file: _Opened, schema: Any, without: Collection[str], groups: Sequence[int]) -> Any:
    """Return the columns of some row groups, but for those named; each row group has its own dictionaries.

    What a file states about its values is not used.
    """
    fields = [field for field in schema if field.name not in without]
    present = {*file.parquet.schema_arrow.names}
    decoded = _decoded(file, [field.name for field in fields if field.name in present], groups)
    size = sum(file.parquet.metadata.row_group(group).num_rows for group in groups)
    for field in fields:
        if field.name in _NEWER and field.name not in present:
            nothing = pyarrow().nulls(size, field.type) if field.nullable else chosen(np.zeros(size))
            decoded[field.name] = pyarrow().chunked_array([nothing])
    for field in fields:
        column = decoded[field.name]
        if column.null_count and not field.nullable:
            raise ValueError(f"{field.name} is missing in {column.null_count:,} rows")
        if not pyarrow().types.is_list(field.type) or field.type.value_field.nullable:
            continue
        if not pyarrow().types.is_list(column.type):
            raise ValueError(f"{field.name} has no lists")
        if lacking := sum(chunk.values.null_count for chunk in column.chunks):
            raise ValueError(f"{lacking:,} of {field.name} are missing")
    columns = [_typed(decoded[field.name], field.type) for field in fields]
    table = pyarrow().Table.from_arrays(columns, schema=pyarrow().schema(fields))
    if size and {"position", "recorded_at"} <= {*table.schema.names}:
        _check_instants(table)
    return table


def _check_instants(table: Any) -> None:
    """Raise Corrupt at a row that was recorded outside the calendar; the least and the greatest mostly show none."""
    instants = integers(table["recorded_at"])
    if instants.min() < FIRST_INSTANT or instants.max() > LAST_INSTANT:
        wrong = (instants < FIRST_INSTANT) | (instants > LAST_INSTANT)
        position = int(integers(table["position"])[wrong].min())
        raise Corrupt(position, "recorded_at is not within the years 1 to 9999", "schemas")


def _typed(column: Any, kind: Any) -> Any:
    """Return a column of this type. Lists differ in how a file names their items."""
    if column.type.equals(kind):
        return column
    if pyarrow().types.is_list(kind):
        return pyarrow().chunked_array([chunk.view(kind) for chunk in column.chunks], kind)
    return column.cast(kind)


def _decoded(file: _Opened, names: Sequence[str], groups: Sequence[int]) -> dict[str, Any]:
    """Return columns of row groups, whose bytes are counted before they are decoded, or as they are.

    Raises ValueError: they are too many for the file.
    """
    sizes, total = file.sizes, 0
    few = sizes.rows_together(file.bytes, names, groups)
    many = sum(file.parquet.metadata.row_group(group).num_rows for group in groups) >= _THREADS_FROM
    table = file.parquet.read_row_groups(groups, [name for name in names if name not in few], use_threads=many)
    columns = dict(zip(table.schema.names, table.columns, strict=True))
    if few or not sizes.allow(sum(map(most_decoded_bytes, table.columns))):
        for chunk in (chunk for column in table.columns for chunk in column.chunks):
            sizes.check(total := total + decoded_bytes(chunk))
    for name, count in few.items():
        chunks = []
        for batch in file.parquet.iter_batches(count, row_groups=groups, columns=[name]):
            sizes.check(total := total + batch.nbytes)
            chunks.append(batch.column(0))
        columns[name] = pyarrow().chunked_array(chunks, file.parquet.schema_arrow.field(name).type)
    return columns


def _may_have(ends: Ends, questions: Sequence[str]) -> bool:
    """Return whether a row group can have forecasts on some questions, by the least and greatest id in it."""
    if ends is None or not questions or ends[0] > questions[-1] or ends[1] < questions[0]:
        return False
    return questions[bisect_left(questions, ends[0])] <= ends[1]
