"""Check that a segment's Parquet file says nothing about its rows but what is true: no reader of it is misled.

Readers leave out row groups by the statistics in a footer, and trust its sizes, types and other fields. Everything that
a footer and the headers of pages say is therefore built again from the rows that the file has, and compared. A field
that pyarrow does not write, or that a reader could understand in another way, is refused.

Source: Apache Parquet, "File Format" and parquet.thrift, of which the names and numbers of fields are.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from io import BytesIO
from typing import IO, Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.parquet_files import (
    BYTES,
    EXACT,
    FALSE,
    INT,
    LIST,
    LONG,
    SHORT,
    STRUCT,
    TRUE,
    Struct,
    footer_bytes,
    read_struct,
    write_struct,
)
from forecast_ledger.ledger.segments.arrow_arrays import compute_functions, is_valid, no_rows, numpy_array, pyarrow

_MARK = b"PAR1"  # at the beginning of a file
_DATA, _DICTIONARY = 0, 2  # types of pages
_PLAIN, _RLE, _DELTA_TEXTS = 0, 3, 7  # encodings
_CHUNK = b"\x26"  # the first byte of what is said of a chunk, a long in field 2; a page or a footer begins with field 1
_CODECS = {0, 6}  # none, and zstd
_TEXT = 6  # a physical type
_NUMBERS = {0: "?", 1: "<i4", 2: "<i8"}  # the physical types of numbers: how statistics have them
_WRITER = re.compile(rb"parquet-cpp-arrow version [0-9A-Za-z.+-]{1,40}")


class _Maybe(NamedTuple):
    """A field that not every version of pyarrow writes, with its kind and value."""

    kind: int
    value: Any


class _Leaf(NamedTuple):
    """The values of a column in a row group, as Parquet has them.

    element: of the schema; path: of the names of the column. values: without nulls, a pyarrow.Array. levels, repeats:
    the definition and the repetition level of each value, null and empty list, shape (n,), of which the largest are
    `deepest` and `nested`.
    """

    element: Struct
    path: list[bytes]
    values: Any
    levels: Any
    deepest: int
    repeats: Any
    nested: int


class _Page(NamedTuple):
    """A page. at: where it begins; fields: its header; unpacked: its bytes before compression, with the header."""

    at: int
    fields: Struct
    kind: int
    encoding: int
    unpacked: int


class _Body:
    """The bytes of a file before its footer, read from first to last. at: where the next bytes begin."""

    def __init__(self, file: IO[bytes], end: int) -> None:
        self._file, self._end, self.at = file, end, 0

    def take(self, size: int) -> bytes:
        """Return the next bytes. Raises ValueError: they end before."""
        if size > self._end - self.at:
            raise ValueError("a column goes on after the end")
        taken = self.peek(size)
        self.at += size
        return taken

    def peek(self, size: int) -> bytes:
        """Return the next bytes, which are taken again."""
        self._file.seek(self.at)
        return self._file.read(size)


def check_footer(file: IO[bytes], schema: Any, tables: Iterator[Any]) -> None:
    """Check everything that a file says about its rows.

    schema: of its rows. tables: the rows of each row group. Raises ValueError: the file says something else; and what
    `tables` raises.
    """
    end, data = footer_bytes(file)
    footer, size = read_struct(data, way=EXACT)
    if size != len(data):
        raise ValueError("its footer can be read in two ways")
    model, body, rows = _model(schema), _Body(file, end), 0
    if body.take(len(_MARK)) != _MARK:
        raise ValueError("it does not begin as a Parquet file")
    for number, (group, table) in enumerate(zip(_structs(footer, 4), tables, strict=True)):
        _check_group(body, group, number, table, model)
        rows += len(table)
    if body.at != end:
        raise ValueError("there are bytes between its row groups and its footer")
    writer = footer.get(6, (0, b""))
    if writer[0] != BYTES or not _WRITER.fullmatch(writer[1]):
        raise ValueError("its footer names another writer than pyarrow")
    expected = {
        **{number: model[number] for number in (1, 2, 5, 7)},  # version, schema, key_value_metadata, column_orders
        3: (LONG, rows),
        4: footer.get(4),
        6: writer,
    }
    _compare(footer, expected, "FileMetaData")


@lru_cache
def _model(schema: Any) -> Struct:
    """Return the footer of a file with the same columns and no rows.

    The bytes of the Arrow schema in it are those of pyarrow 17 to 26. Another spelling is refused, even if pyarrow
    reads the same from it: other readers need not.
    """
    from pyarrow import parquet  # noqa: PLC0415 - late: optional

    file = BytesIO()
    parquet.write_table(no_rows(schema), file)
    return read_struct(footer_bytes(file)[1])[0]


def _check_group(body: _Body, group: Struct, number: int, table: Any, model: Struct) -> None:
    """Check the next row group, and what the footer says about it."""
    chunks, start, unpacked = _structs(group, 1), body.at, 0
    elements = [element for element in _structs(model, 2)[1:] if 5 not in element]
    if len(chunks) != len(elements):
        raise ValueError(f"a row group has {len(chunks)} columns")
    for chunk, element, field in zip(chunks, elements, table.schema, strict=True):
        unpacked += _check_chunk(body, chunk, _leaf(element, field, table[field.name].combine_chunks()))
    expected = {
        1: group[1],
        2: (LONG, unpacked),
        3: (LONG, len(table)),
        5: _Maybe(LONG, start if len(table) else 0),
        6: _Maybe(LONG, sum(_number(_struct(chunk, 3), 7) for chunk in chunks)),
        7: _Maybe(SHORT, number),
    }
    _compare(group, expected, "RowGroup")


def _check_chunk(body: _Body, chunk: Struct, leaf: _Leaf) -> int:
    """Check the next chunk, and what the footer says about it; return its bytes before compression."""
    start, column, what = body.at, _struct(chunk, 3), f"the column {leaf.path[0].decode()!r}"
    pages = [*_pages(body.take(_number(column, 7)), start)]
    statistics = _statistics(leaf.values, len(leaf.levels), leaf.element)
    _check_pages(pages, leaf, statistics)
    codec, (of_encodings, encodings) = _number(column, 4), column.get(2, (LIST, (INT, [])))[1]
    kinds = Counter((page.kind, page.encoding) for page in pages)
    if codec not in _CODECS or of_encodings != INT or sorted(encodings) != sorted({_RLE, *(each for _, each in kinds)}):
        raise ValueError(f"{what} has other encodings than its footer says")
    stated = [{number: value for number, (_, value) in each.items()} for each in _structs(column, 13)]
    if len(stated) != len(kinds) or Counter({(each.get(1), each.get(2)): each.get(3) for each in stated}) != kinds:
        raise ValueError(f"{what} has other pages than its footer says")
    if not codec and any(page.fields[2] != page.fields[3] for page in pages):
        raise ValueError(f"{what} is compressed, and its footer says that it is not")
    data, unpacked = [page.at for page in pages if page.kind == _DATA], sum(page.unpacked for page in pages)
    metadata = {
        1: leaf.element[1],
        2: (LIST, (INT, encodings)),
        3: (LIST, (BYTES, leaf.path)),
        4: (INT, codec),
        5: (LONG, len(leaf.levels)),
        6: (LONG, unpacked),
        7: (LONG, body.at - start),
        9: (LONG, data[0] if data else 0),
        12: _Maybe(STRUCT, statistics),
        13: _Maybe(LIST, (STRUCT, _structs(column, 13))),
        16: _Maybe(STRUCT, _sizes(leaf, _struct(column, 16) if _DELTA_TEXTS in encodings else {})),
    }
    if pages and pages[0].kind == _DICTIONARY:
        metadata[11] = (LONG, start)
    offset = LONG, 0
    if body.peek(1) == _CHUNK and body.peek(len(copy := write_struct(chunk))) == copy:
        # pyarrow before 18 has the metadata there too
        offset = chunk[2] if chunk.get(2) == (LONG, body.at) else offset
        body.take(len(copy))
    _compare(chunk, {2: offset, 3: (STRUCT, metadata)}, f"ColumnChunk of {what}")
    return unpacked


def _pages(data: bytes, start: int) -> Iterator[_Page]:
    """Yield the pages of a chunk, which are all of its bytes."""
    at = 0
    while at < len(data):
        fields, end = read_struct(data, at, way=EXACT)
        kind, size = _number(fields, 1), _number(fields, 3)
        page_header = _struct(fields, 7 if kind == _DICTIONARY else 5)
        yield _Page(start + at, fields, kind, _number(page_header, 2), _number(fields, 2) + end - at)
        at = end + size
    if at > len(data):
        raise ValueError("the last page of a column goes on after its end")


def _check_pages(pages: list[_Page], leaf: _Leaf, of_all: dict[int, Any]) -> None:
    """Compare the headers of pages with the values in them. of_all: the statistics of all values, mostly one page."""
    before = np.concatenate([[0], np.cumsum(leaf.levels == leaf.deepest)])  # values before each level
    begin = 0
    for number, page in enumerate(pages):
        expected: dict[int, Any] = {each: page.fields.get(each) for each in (1, 2, 3)}  # compared with the chunk
        if page.kind == _DICTIONARY and number == 0:
            entries = (INT, _number(_struct(page.fields, 7), 1))
            expected[7] = STRUCT, {1: entries, 2: (INT, _PLAIN), 3: _Maybe(FALSE, False)}
        else:
            end = min(begin + _number(_struct(page.fields, 5), 1), len(leaf.levels))
            statistics = of_all
            if end - begin < len(leaf.levels):
                statistics = _statistics(leaf.values[before[begin] : before[end]], end - begin, leaf.element)
            header = {1: (INT, end - begin), 2: (INT, page.encoding), 3: (INT, _RLE), 4: (INT, _RLE)}
            expected[5] = STRUCT, header | {5: _Maybe(STRUCT, statistics)}
            begin = end
        _compare(page.fields, expected, f"PageHeader of the column {leaf.path[0].decode()!r}")
    if begin != len(leaf.levels):
        raise ValueError(f"the pages of the column {leaf.path[0].decode()!r} lack values")


def _leaf(element: Struct, field: Any, column: Any) -> _Leaf:
    """Return the values of a column as Parquet has them.

    Source: Melnik and others (2010), "Dremel: Interactive Analysis of Web-Scale Datasets",
    doi:10.14778/1920841.1920886.
    """
    name, base = field.name.encode(), int(field.nullable)
    valid = is_valid(column)
    if not pyarrow().types.is_list(field.type):
        return _Leaf(element, [name], column.drop_null(), valid * base, base, np.zeros(len(column), np.int64), 0)
    item, items = int(field.type.value_field.nullable), column.flatten()
    lengths = np.zeros(len(column), np.int64)
    lengths[valid] = numpy_array(column.value_lengths().drop_null())
    slots = np.maximum(lengths, 1)  # of each list: one for each item, or one that says that it has none
    repeats = np.ones(int(slots.sum()), np.int64)
    repeats[np.cumsum(slots) - slots] = 0
    levels = np.repeat(valid * base, slots)
    levels[np.repeat(lengths > 0, slots)] = base + 1 + item * is_valid(items)
    return _Leaf(element, [name, b"list", b"element"], items.drop_null(), levels, base + 1 + item, repeats, 1)


def _statistics(values: Any, count: int, element: Struct) -> dict[int, Any]:
    """Return the statistics of values. count: of them, nulls and empty lists together."""
    pa, nulls = pyarrow(), count - len(values)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary.take(values.indices.unique())
    statistics: dict[int, Any] = {3: _Maybe(LONG, nulls)}
    if len(values):
        ends = compute_functions().min_max(values)
        least, greatest = (_Maybe(BYTES, _plain(ends[name], element)) for name in ("min", "max"))
        statistics |= {5: greatest, 6: least, 7: _Maybe(TRUE, True), 8: _Maybe(TRUE, True)}
        if element[1][1] in _NUMBERS:  # the fields that 5 and 6 replaced have the order of numbers
            statistics |= {1: greatest, 2: least}
    return statistics


def _plain(value: Any, element: Struct) -> bytes:
    """Return the bytes of a value in statistics."""
    if kind := _NUMBERS.get(element[1][1]):
        if pyarrow().types.is_timestamp(value.type):
            value = value.cast(pyarrow().int64())
        return np.array(value.as_py(), kind).tobytes()
    plain: str | bytes = value.as_py()
    return plain.encode() if isinstance(plain, str) else plain


def _sizes(leaf: _Leaf, stated: Struct) -> dict[int, Any]:
    """Return the size statistics of a chunk. stated: those of texts that are encoded as differences."""
    sizes = dict[int, Any]()
    if leaf.element[1][1] == _TEXT:
        size = _text_bytes(leaf.values)
        if stated:  # pyarrow counts a few bytes of these too little
            size = min(size, _number(stated, 1))
        sizes[1] = _Maybe(LONG, size)
    for number, levels, largest in ((2, leaf.repeats, leaf.nested), (3, leaf.levels, leaf.deepest)):
        histogram = np.bincount(levels, minlength=largest + 1).tolist() if largest else []
        sizes[number] = _Maybe(LIST, (LONG, histogram))
    return sizes


def _text_bytes(values: Any) -> int:
    """Return the bytes of all texts."""
    compute = compute_functions()
    if not pyarrow().types.is_dictionary(values.type):
        return int(compute.sum(compute.binary_length(values)).as_py() or 0)
    counts = np.bincount(numpy_array(values.indices), minlength=len(values.dictionary))
    return int(counts @ numpy_array(compute.binary_length(values.dictionary)).astype(np.int64))


def _structs(fields: Struct, number: int) -> list[Struct]:
    kind, value = fields.get(number, (LIST, (STRUCT, [])))
    if kind != LIST or (value[1] and value[0] != STRUCT):
        raise ValueError("a field of its footer has another type")
    return list(value[1])


def _struct(fields: Struct, number: int) -> Struct:
    kind, value = fields.get(number, (STRUCT, {}))
    if kind != STRUCT:
        raise ValueError("a field of its metadata has another type")
    return dict(value)


def _number(fields: Struct, number: int) -> int:
    """Return a size or a number of values."""
    kind, value = fields.get(number, (0, 0))
    if kind not in {INT, LONG} or value < 0:
        raise ValueError("its metadata lack a number")
    return int(value)


def _compare(actual: Struct, expected: dict[int, Any], what: str) -> None:
    """Raise ValueError if a struct has other fields than expected, or a field has another value."""
    if actual == expected:
        return
    for number in sorted(actual.keys() | expected.keys()):
        right = expected.get(number)
        if number in actual and actual[number] == right:
            continue
        where = f"{what}, field {number}"
        if number not in actual:
            if not isinstance(right, _Maybe):
                raise ValueError(f"it lacks what Parquet needs ({where})")
        elif right is None:
            raise ValueError(f"it says what this version does not know ({where})")
        else:
            _compare_values(actual[number], (right[0], right[1]), where)


def _compare_values(actual: tuple[int, Any], right: tuple[int, Any], where: str) -> None:
    kind, value = actual
    if kind == right[0] == STRUCT:
        _compare(value, right[1], where)
    elif kind == right[0] == LIST and value[0] == right[1][0] and len(value[1]) == len(right[1][1]):
        for each, other in zip(value[1], right[1][1], strict=True):
            _compare_values((value[0], each), (value[0], other), where)
    elif (kind, value) != right:
        raise ValueError(f"it says something that its rows do not have ({where})")
