"""The one way to read a Parquet file from other people: what decoding gives is counted before it is decoded.

Dictionaries, runs and prefixes cost almost nothing, so that a page of a few bytes can stand for billions of values.
Sizes are taken from the pages that will be read, and texts are counted as they are decoded, a few at a time if one may
be long. Totals that the file states are not used. The footer and the page headers are read as they are written, before
anything is decoded; their formats are those of Apache Parquet, "File Format" and parquet.thrift, and of Apache Thrift,
"Thrift Compact Protocol".
"""

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from typing import IO, Any, NamedTuple

from forecast_ledger.ledger.core.extras import pyarrow

Struct = dict[int, tuple[int, Any]]  # the fields of a struct of Thrift by their ids: the kind and the value
Quick = Callable[[bytes, int, int], tuple[Struct, int] | None]
TRUE, FALSE, _BYTE, SHORT, INT, LONG, _DOUBLE, BYTES, LIST, _SET, _MAP, STRUCT = range(1, 13)  # kinds
_INTEGERS, _TRUTHS = frozenset({SHORT, INT, LONG}), frozenset({TRUE, FALSE})
_DEEPEST = 32  # structs and lists in each other; a footer has about eight
_MARK = b"PAR1"
_END = 8  # bytes at the end of a file: the size of the footer, and the mark
_LARGEST_FOOTER = 2**28  # bytes
_HEADER, _LARGEST_HEADER = 2**9, 2**20  # bytes of a page header: that are read first, and at most
_WIDTHS = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}  # bytes of a value of each physical type of one width
TEXT, _FIXED = 6, 7  # physical types: byte arrays of any length, and of one
_DATA, _DICTIONARY, _DATA_2 = 0, 2, 3  # types of pages
_REPEATED = 2
_CUT = "the metadata is cut or damaged"
_TWO_WAYS = "its metadata can be read in two ways"


class _CutError(ValueError):
    """The bytes end before a value does."""


class Chunk(NamedTuple):
    """A column of a row group. start: where its pages begin, of `size` bytes together; values: with nulls.

    name: of the column that it is in; is_nested: of a list or an object. width: bytes of a value; 0 for texts. codec:
    as parquet.thrift numbers it.
    """

    name: str
    is_nested: bool
    width: int
    codec: int
    start: int
    size: int
    values: int


class Page(NamedTuple):
    """A page of a chunk. size: bytes, not compressed; values: with nulls. encoding: as parquet.thrift numbers it.

    start, packed: where its bytes begin, and their number.
    """

    is_dictionary: bool
    start: int
    packed: int
    size: int
    values: int
    encoding: int


class Footer(NamedTuple):
    """What the footer of a file says. size: bytes of the file; groups: the chunks of each row group."""

    size: int
    groups: Sequence[Sequence[Chunk]]


class Way(NamedTuple):
    """How structs are read.

    quick: another way to read structs in lists; it returns None for those that it does not read. is_exact: only those
    bytes are read that `write_struct` writes, and no fields that are 16 or more apart.
    """

    quick: Quick = lambda _data, _at, _depth: None
    is_exact: bool = False


_ANY, EXACT = Way(), Way(is_exact=True)


def read_struct(data: bytes, at: int = 0, depth: int = 0, way: Way = _ANY) -> tuple[Struct, int]:
    r"""Return a struct in Thrift's compact protocol, and the offset of the first byte after it.

    Raises ValueError: the bytes end before it, a field is in it twice, a kind is not known, or it is too deep; if
    exact, other bytes say the same.

    >>> read_struct(b"\x15\x0e\x18\x02hi\x00")
    ({1: (5, 7), 2: (8, b'hi')}, 7)
    >>> read_struct(b"\x15\x8e\x00\x00", way=EXACT)
    Traceback (most recent call last):
    ValueError: its metadata can be read in two ways
    """
    fields: Struct = {}
    value: Any
    number = 0
    try:
        while head := data[at]:
            at += 1
            kind = head & 15
            if head >> 4:
                number += head >> 4
            elif way.is_exact:
                raise ValueError(_TWO_WAYS)
            else:
                number, at = _integer(data, at)
            if number in fields:
                raise ValueError(f"field {number} of the metadata is there twice")
            if kind in _INTEGERS and (value := data[at]) < 128:  # as most are
                value, at = (value >> 1) ^ -(value & 1), at + 1
            elif kind == STRUCT and depth < _DEEPEST:
                value, at = read_struct(data, at, depth + 1, way)
            else:
                value, at = (kind == TRUE, at) if kind in _TRUTHS else _read_value(data, at, kind, depth, way)
            fields[number] = kind, value
    except IndexError:
        raise _CutError(_CUT) from None
    return fields, at + 1


def _read_value(data: bytes, at: int, kind: int, depth: int, way: Way) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _integer(data, at, way)
    if kind == BYTES:
        size, at = _natural(data, at, way)
        if at + size > len(data):
            raise _CutError(_CUT)
        return data[at : at + size], at + size
    if depth == _DEEPEST:
        raise ValueError(f"the metadata has more than {_DEEPEST} levels")
    if kind == STRUCT:
        return read_struct(data, at, depth + 1, way)
    if way.is_exact and kind != LIST:
        raise ValueError(f"the metadata has a value of the kind {kind}")
    if kind in {LIST, _SET}:
        return _read_list(data, at, depth + 1, way)
    if kind in {_BYTE, _DOUBLE}:
        return None, at + (1 if kind == _BYTE else 8)
    raise ValueError(f"the metadata has a value of the unknown kind {kind}")


def _read_list(data: bytes, at: int, depth: int, way: Way) -> tuple[tuple[int, list[Any]], int]:
    """Return the kind of the items of a list, and the items."""
    head, at = data[at], at + 1
    count, kind = head >> 4, head & 15
    if count == 15:
        count, at = _natural(data, at, way)
        if way.is_exact and count < 15:
            raise ValueError(_TWO_WAYS)
    if way.is_exact and kind in _TRUTHS:
        raise ValueError(f"the metadata has a list of the kind {kind}")
    if count > len(data) - at:  # each takes a byte
        raise _CutError(_CUT)
    items: list[Any] = []
    item: Any
    for _ in range(count):
        if kind == STRUCT and depth < _DEEPEST:
            item, at = way.quick(data, at, depth + 1) or read_struct(data, at, depth + 1, way)
        else:
            item, at = (data[at] == TRUE, at + 1) if kind in _TRUTHS else _read_value(data, at, kind, depth, way)
        items.append(item)
    return (kind, items), at


def _natural(data: bytes, at: int, way: Way = _ANY) -> tuple[int, int]:
    if (value := data[at]) < 128:
        return value, at + 1
    value = shift = 0
    while (byte := data[at]) > 127:
        value |= (byte & 127) << shift
        shift, at = shift + 7, at + 1
        if shift > 63:
            raise ValueError(_CUT)
    value |= byte << shift
    if way.is_exact and (not byte or value >> 64):
        raise ValueError(_TWO_WAYS)
    return value, at + 1


def _integer(data: bytes, at: int, way: Way = _ANY) -> tuple[int, int]:
    value, at = _natural(data, at, way)
    return (value >> 1) ^ -(value & 1), at


def write_struct(fields: Struct) -> bytes:
    r"""Return the bytes of a struct that `read_struct` reads, the only ones that Thrift's own libraries write.

    Raises ValueError: a kind that no footer has.

    >>> write_struct({1: (5, 7), 2: (8, b"hi")})
    b'\x15\x0e\x18\x02hi\x00'
    """
    written, before = bytearray(), 0
    for number, (kind, value) in sorted(fields.items()):
        if 0 < number - before < 16:
            written.append((number - before) << 4 | kind)
        else:
            written += bytes([kind]) + _integer_bytes(number)
        before = number
        if kind in _INTEGERS and -64 <= value < 64:  # as most are
            written.append(value << 1 if value >= 0 else ~(value << 1))
        elif kind not in _TRUTHS:
            written += _value_bytes(kind, value)
    return bytes(written) + b"\0"


def _value_bytes(kind: int, value: Any) -> bytes:
    if kind in _INTEGERS:
        return _integer_bytes(value)
    if kind == BYTES:
        return _natural_bytes(len(value)) + bytes(value)
    if kind == STRUCT:
        return write_struct(value)
    if kind == LIST:
        of, items = value
        head = bytes([len(items) << 4 | of]) if len(items) < 15 else bytes([240 | of]) + _natural_bytes(len(items))
        return head + b"".join(_value_bytes(of, item) for item in items)
    raise ValueError(f"the metadata has a value of the kind {kind}")


def _integer_bytes(value: int) -> bytes:
    return _natural_bytes(value << 1 ^ value >> 63)


def _natural_bytes(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)


def _taken(struct: Struct, number: int, kind: int, default: Any = None) -> Any:
    """Return a field of a struct. Raises ValueError: it is missing without a default, of another kind, or too large."""
    stored, value = struct.get(number, (kind, default))
    if stored != kind or value is None:
        raise ValueError(_CUT)
    if kind in {INT, LONG} and not 0 <= value < (2**31 if kind == INT else 2**63):
        raise ValueError(f"the metadata has the number {value}")
    return value


def _structs(struct: Struct, number: int) -> list[Struct]:
    kind, items = _taken(struct, number, LIST)
    if items and kind != STRUCT:
        raise ValueError(_CUT)
    return list(items)


def footer_bytes(file: IO[bytes]) -> tuple[int, bytes]:
    """Return where the footer of a Parquet file begins, and its bytes. Raises ValueError: there is none."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _END, 0))
    end = file.read(_END)
    length = int.from_bytes(end[:4], "little")
    if size < _END or end[4:] != _MARK or not 0 < length <= min(size - _END, _LARGEST_FOOTER):
        raise ValueError("it has no footer of a Parquet file")
    file.seek(size - _END - length)
    return size - _END - length, file.read(length)


def read_footer(file: IO[bytes]) -> Footer:
    """Return what the footer of a Parquet file says. Raises ValueError: it is damaged, or columns are elsewhere."""
    start, data = footer_bytes(file)
    size = start + len(data) + _END
    footer, _ = read_struct(data, way=Way(_quick_chunk))
    leaves = _leaves(_structs(footer, 2))
    return Footer(size, [_chunks(group, leaves, size) for group in _structs(footer, 4)])


_CHUNK_DEPTH = 4  # of a chunk: in the list of a row group, which is in the list of the footer
_CHUNK_FIELDS = ((4, INT), (5, LONG), (7, LONG), (9, LONG), (11, LONG))  # of its metadata that `_chunks` takes


def _quick_chunk(data: bytes, at: int, depth: int) -> tuple[Struct, int] | None:
    """Return what `_chunks` takes of a chunk, if it is written as pyarrow does it: a footer has thousands of these."""
    found = _chunk_pattern().match(data, at) if depth == _CHUNK_DEPTH else None
    if found is None:
        return None
    metadata = {
        number: (kind, _integer(data, begin)[0])
        for (number, kind), begin in zip(_CHUNK_FIELDS, map(found.start, range(1, 6)), strict=True)
        if begin >= 0
    }
    return {3: (STRUCT, metadata)}, found.end()


@cache
def _chunk_pattern() -> "re.Pattern[bytes]":
    """Return the bytes of a ColumnChunk whose fields come in order, so that none is there twice, nor 1, 8 or 9.

    A field begins with a byte of its distance from the one before, which is not 0, and its kind.
    """

    def heads(*kinds: int) -> bytes:
        return b"[%b]" % b"".join(re.escape(bytes([step << 4 | kind])) for step in range(1, 16) for kind in kinds)

    def several(kind: int, item: bytes) -> bytes:
        return b"(?:%b)" % b"|".join(re.escape(bytes([n << 4 | kind])) + b"(?:%b){%d}" % (item, n) for n in range(5))

    number = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
    text = b"(?:%b)" % b"|".join(re.escape(bytes([size])) + b".{%d}" % size for size in range(64))
    numbers = heads(*_INTEGERS) + number
    lists = heads(LIST) + b"(?:%b|%b)" % (several(LONG, number), several(STRUCT, b"(?:%b)*+\0" % numbers))
    inner = b"(?:%b|%b|%b%b|%b)*+\0" % (numbers, heads(*_TRUTHS), heads(BYTES), text, lists)
    metadata = (
        rb"\x15%b\x19%b\x19%b" % (number, several(INT, number), several(BYTES, text))  # type, encodings, path
        + rb"\x15(%b)\x16(%b)\x16%b\x16(%b)" % ((number,) * 4)  # codec, values, bytes, packed bytes
        + rb"\x26(%b)(?:\x26(%b)|(?![\x10-\x2f]))" % (number, number)  # where pages begin, and the dictionary
        + b"(?:%b|%b|%b%b)*+\0" % (numbers, lists, heads(STRUCT), inner)
    )
    indexes = rb"(?:\x16%b\x15%b){0,2}" % (number, number)
    return re.compile(rb"\x26%b\x1c%b%b\0" % (number, metadata, indexes), re.DOTALL)


def _leaves(elements: Sequence[Struct]) -> list[tuple[str, bool, int]]:
    """Return name, `is_nested` and width of each column that has values."""
    leaves = []
    waiting = [_taken(elements[0], 5, INT, 0)] if elements else []  # children that are still to come, by depth
    name = ""
    for element in elements[1:]:
        while waiting and not waiting[-1]:
            waiting.pop()
        if not waiting:
            raise ValueError(_CUT)
        waiting[-1] -= 1
        if len(waiting) == 1:
            name = _taken(element, 4, BYTES).decode()
        if children := _taken(element, 5, INT, 0):
            waiting.append(children)
            continue
        kind = _taken(element, 1, INT)
        width = _taken(element, 2, INT) if kind == _FIXED else _WIDTHS.get(kind, 0)
        if not width and kind != TEXT:
            raise ValueError(f"a column has the unknown type {kind}")
        is_repeated = element.get(3) == (INT, _REPEATED)
        leaves.append((name, len(waiting) > 1 or is_repeated, width))
    return leaves


def _chunks(group: Struct, leaves: Sequence[tuple[str, bool, int]], end: int) -> list[Chunk]:
    """Return the chunks of a row group. end: of the file; each chunk is before it."""
    columns = _structs(group, 1)
    if len(columns) != len(leaves):
        raise ValueError(f"a row group has {len(columns)} columns, not {len(leaves)}")
    chunks = []
    for column, (name, is_nested, width) in zip(columns, leaves, strict=True):
        if 1 in column or 8 in column or 9 in column:
            raise ValueError(f"the column {name!r} is encrypted, or in another file")
        metadata = _taken(column, 3, STRUCT)
        start, dictionary = _taken(metadata, 9, LONG), _taken(metadata, 11, LONG, 0)
        if 0 < dictionary < start:
            start = dictionary
        codec, size, values = _taken(metadata, 4, INT), _taken(metadata, 7, LONG), _taken(metadata, 5, LONG)
        chunk = Chunk(name, is_nested, width, codec, start, size, values)
        if chunk.start + chunk.size > end:
            raise ValueError(f"the column {name!r} goes on after the end of the file")
        chunks.append(chunk)
    return chunks


def read_pages(file: IO[bytes], chunk: Chunk) -> Iterator[Page]:
    """Yield what the headers of the pages of a chunk say. Raises ValueError: they are damaged, or hold too few values.

    A reader of the file stops at the number of values of the chunk, and so reads no other page.
    """
    at, end, values = chunk.start, chunk.start + chunk.size, 0
    while values < chunk.values and at < end:
        header, length = _header(file, at)
        kind, size, packed = (_taken(header, number, INT) for number in (1, 2, 3))
        begin, at = at + length, at + length + packed
        if kind not in {_DATA, _DICTIONARY, _DATA_2}:
            continue
        page_header = _taken(header, {_DATA: 5, _DICTIONARY: 7, _DATA_2: 8}[kind], STRUCT)
        count, encoding = _taken(page_header, 1, INT), _taken(page_header, 4 if kind == _DATA_2 else 2, INT)
        values += 0 if kind == _DICTIONARY else count
        yield Page(kind == _DICTIONARY, begin, packed, size, count, encoding)
    if values < chunk.values:
        raise ValueError(f"the column {chunk.name!r} has {values:,} values, not {chunk.values:,} as its footer states")


def _header(file: IO[bytes], at: int) -> tuple[Struct, int]:
    """Return the header of a page, and the number of its bytes."""
    length = _HEADER
    while True:
        file.seek(at)
        data = file.read(length)
        try:
            return read_struct(data)
        except _CutError:
            if len(data) < length or length >= _LARGEST_HEADER:
                raise
        length *= 8


FREE_BYTES, MOST_RATIO = 2**28, 200  # bytes that any file may give; a larger one may give so many times its size
BATCH_ROWS = 4_096  # rows that are decoded together, at most
_BATCHES = 4  # their texts take a part in as many of all bytes that the file may give
_ROW = 16  # bytes of a row without columns, which takes time as well
_POSITION = 4  # bytes for each text or list: where it begins
_SHORT = 2**14  # bytes of a dictionary of which each text is short
_COPIES = 16  # dictionaries that are copied in the time in which as many bytes of rows are decoded once
_DICTIONARIES, _PREFIXES = {2, 8}, 7  # encodings, as parquet.thrift numbers them
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}  # those of pyarrow that give a page alone


REMEDY = "save it again without compression and without dictionaries"  # of a file that is TooLargeError


class TooLargeError(ValueError):
    """Decoding a file would give too many bytes for its size."""


class ParquetSizes:
    """What decoding a Parquet file gives. It may be kept for the same bytes.

    labelled: columns whose texts stay labels with a dictionary.
    Raises ValueError: the file is damaged.
    """

    def __init__(self, file: IO[bytes], labelled: Collection[str] = ()) -> None:
        self._footer, self._labelled = read_footer(file), labelled
        self._counted: dict[Chunk, tuple[int, int]] = {}

    def check(self, size: int) -> None:
        """Raise TooLargeError if the bytes that decoding gives are too many for the file."""
        if not self.allow(size):
            raise TooLargeError(f"its rows take more than {self._most:,} bytes, and the file has {self._footer.size:,}")

    def allow(self, size: int) -> bool:
        """Return whether decoding may give so many bytes."""
        return size <= self._most

    @property
    def _most(self) -> int:
        return max(FREE_BYTES, MOST_RATIO * self._footer.size)

    def rows_together(
        self,
        file: IO[bytes],
        columns: Collection[str] | None = None,
        groups: Sequence[int] | None = None,
        within: int | None = None,
    ) -> dict[str, int]:
        """Check columns of row groups; return those whose texts may be long, each with the rows to decode together.

        Their texts are to be counted as they are decoded. within: the bytes of those decoded together; by default, a
        part of what the file may give. Raises TooLargeError, for all others; ValueError (damaged).
        """
        within = self._most // _BATCHES if within is None else within
        total, most, rows = 0, self._most, dict[str, int]()
        for group in self._footer.groups if groups is None else map(self._footer.groups.__getitem__, groups):
            for chunk in group:
                if columns is not None and chunk.name not in columns:
                    continue
                if (counted := self._counted.get(chunk)) is None:
                    counted = self._counted[chunk] = self._count(file, chunk)
                size, longest = counted
                total += size
                if total > most:
                    self.check(total)
                if longest:
                    rows[chunk.name] = min(rows.get(chunk.name, BATCH_ROWS), max(within // longest, 1))
        return rows

    def _count(self, file: IO[bytes], chunk: Chunk) -> tuple[int, int]:
        """Return the bytes that decoding a chunk gives, and of the longest text that is not counted there."""
        each = (chunk.width or _POSITION) + _POSITION * chunk.is_nested
        total = entry = longest = 0
        for page in read_pages(file, chunk):
            self.check(total := total + max(page.size, page.values * each))
            if chunk.width or chunk.name in self._labelled:
                continue
            if page.is_dictionary:
                entry = page.size if page.size <= _SHORT else _longest_entry(file, chunk, page)
            elif page.encoding in _DICTIONARIES or page.encoding == _PREFIXES:
                text_size = page.size if page.encoding == _PREFIXES else entry
                longest = max(longest, 0 if chunk.is_nested else text_size)
                self.check(total := total + page.values * text_size * chunk.is_nested)
        return total, longest


def _longest_entry(file: IO[bytes], chunk: Chunk, page: Page) -> int:
    """Return the bytes of the longest text in a dictionary, or more if its codec is not known."""
    file.seek(page.start)
    data = file.read(page.packed)
    if chunk.codec in _CODECS:
        data = pyarrow().decompress(data, page.size, _CODECS[chunk.codec], asbytes=True)
    elif chunk.codec:
        return page.size
    at = longest = 0
    for _ in range(page.values):
        size = int.from_bytes(data[at : at + 4], "little")
        at += 4 + size
        longest = max(longest, size)
    if at > len(data):
        raise ValueError(f"the dictionary of the column {chunk.name!r} is damaged")
    return longest


def read_batches(file: IO[bytes], columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Yield the rows of a Parquet file as pyarrow.RecordBatches of these columns, or of all.

    However much the file may give, long texts are a few together, because whoever reads it may keep none of them.
    Raises what pyarrow raises, TooLargeError, and ValueError (the file is damaged).
    """
    from pyarrow import parquet  # noqa: PLC0415 - late: optional

    sizes = ParquetSizes(file)
    rows = min([BATCH_ROWS, *sizes.rows_together(file, columns, within=FREE_BYTES // _BATCHES).values()])
    opened = parquet.ParquetFile(file, pre_buffer=False)
    sizes.check(opened.metadata.num_rows * _ROW)
    total = 0
    for batch in opened.iter_batches(rows, columns=columns):
        sizes.check(total := total + sum(map(decoded_bytes, batch.columns)))
        yield batch


def decoded_bytes(array: Any) -> int:
    """Return the bytes of an array if each label in it were replaced by the text that it stands for."""
    from pyarrow import compute  # noqa: PLC0415 - late: optional

    if not _has_labels(array):
        return int(array.nbytes)
    size = compute.sum(compute.binary_length(array.dictionary).cast("int64").take(array.indices)).as_py() or 0
    return int(array.indices.nbytes) + int(array.dictionary.nbytes) // _COPIES + int(size)


def most_decoded_bytes(column: Any) -> int:
    """Return at least as many bytes as `decoded_bytes` of each chunk: as if each label were the longest one."""
    if not _has_labels(column):
        return int(column.nbytes)
    return sum(
        int(array.indices.nbytes)
        + int(array.dictionary.nbytes) // _COPIES
        + len(array) * _longest_text(array.dictionary)
        for array in column.chunks
    )


def _longest_text(texts: Any) -> int:
    """Return the bytes of the longest text, without pyarrow's functions of columns, which take long to import."""
    import numpy as np  # noqa: PLC0415 - late: optional
    from pyarrow import types  # noqa: PLC0415

    is_large = types.is_large_string(texts.type) or types.is_large_binary(texts.type)
    begin, count, ends = texts.offset, len(texts), texts.buffers()[1]
    if not count or ends is None:
        return 0
    at: Any = np.frombuffer(ends, np.int64 if is_large else np.int32)[begin : begin + count + 1]
    return int((at[1:] - at[:-1]).max())


def _has_labels(array: Any) -> bool:
    """Return whether texts are labels with a dictionary."""
    from pyarrow import types  # noqa: PLC0415 - late: optional

    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return types.is_dictionary(array.type) and any(is_text(array.type.value_type) for is_text in texts)
