"""Arrays of pyarrow and of NumPy, one from the other. pyarrow is optional, and imported when the first is made.

pyarrow's own ways between them import pandas if it is installed, which takes a third of a second, and most need its
functions of columns, which take a tenth of a second to import: a board is read from segments without either.
"""

import sys
from collections.abc import Sequence
from functools import cache
from itertools import chain, repeat
from operator import is_not
from typing import Any

import numpy as np

from forecast_ledger.ledger.core import extras
from forecast_ledger.ledger.core.errors import Unavailable, installing

MOST_BYTES = 2**31 - 1  # of the texts of one array


def pyarrow() -> Any:
    """Return the pyarrow module. Raises Unavailable if it is not installed."""
    return extras.pyarrow("segments")


def compute_functions() -> Any:
    """Return pyarrow's functions of columns. Raises Unavailable (no pyarrow)."""
    try:
        from pyarrow import compute  # noqa: PLC0415 - late: see above
    except ImportError:
        raise Unavailable(f"segments need pyarrow; {installing('columnar')}") from None
    return compute


def give_back_memory() -> None:
    """Give the memory that pyarrow holds for later back to the system. Raises Unavailable (no pyarrow)."""
    pyarrow().default_memory_pool().release_unused()


def numpy_array(array: Any) -> Any:
    """Return the integers or truth values of an array, shape (n,); integers are not copied.

    Raises ValueError: a value is missing.
    """
    if array.null_count:
        raise ValueError(f"{array.null_count:,} values are missing")
    return _values(array)


def text_bytes(array: Any) -> tuple[Any, Any]:
    """Return the bytes of texts, one after the other, and how many each has, shape (n,)."""
    begin, (_, ends, data) = array.offset, array.buffers()
    ends = np.frombuffer(ends or bytes(4), np.int32)[begin : begin + len(array) + 1]
    return np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]], np.diff(ends)


def fixed_texts(array: Any, most: int) -> Any:
    """Return texts as an array of the bytes of UTF-8, shape (n,). Raises ValueError: one has more than `most` bytes."""
    data, sizes = text_bytes(array)
    width = int(sizes.max(initial=1))
    if width > most:
        raise ValueError(f"a text has {width:,} bytes")
    texts = np.zeros((len(sizes), width), np.uint8)
    texts[np.arange(width) < sizes[:, None]] = data
    return texts.view(f"S{width}").reshape(-1)


def _values(array: Any) -> Any:
    """Return the values of an array; where one is missing, any number."""
    width, begin, size = array.type.bit_width, array.offset, len(array)
    if width == 1:
        bits = np.frombuffer(array.buffers()[1] or b"", np.uint8)
        return np.unpackbits(bits, count=begin + size, bitorder="little")[begin:].view(bool)
    width //= 8
    return np.frombuffer(array.buffers()[1] or b"", f"i{width}", size if size else 0, begin * width if size else 0)


def is_valid(array: Any) -> Any:
    """Return which values of an array are not missing, truth values of shape (n,)."""
    begin, size, bits = array.offset, len(array), array.buffers()[0]
    if bits is None:
        return np.ones(size, bool)
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=begin + size, bitorder="little")[begin:].astype(bool)


def row_numbers(rows: Any) -> Any:
    """Return the numbers of rows, an array or a list of integers, for `take`."""
    return array_of_integers(rows, pyarrow().int64())


def array_of_integers(numbers: Any, kind: Any) -> Any:
    """Return integers, an array or a list in which None is null, as an array of this type of 64 bits.

    Raises OverflowError: one has more than 64 bits.
    """
    bits = None if isinstance(numbers, np.ndarray) else _valid_bits(numbers)
    if bits is not None:
        numbers = [number or 0 for number in numbers]
    return _from_buffers(kind, len(numbers), bits, np.ascontiguousarray(numbers, np.int64))


def array_of_decimals(numbers: Any, kind: Any) -> Any:
    """Return integers, an array or a list in which None is null, as an array of this type of 128 bits, not scaled.

    Raises OverflowError: one has more digits than the type.
    """
    bits = None if isinstance(numbers, np.ndarray) else _valid_bits(numbers)
    if bits is not None:
        numbers = [number or 0 for number in numbers]
    try:
        low = np.asarray(numbers, np.int64)
    except OverflowError:
        most = 10**kind.precision
        if any(not -most < number < most for number in numbers):
            raise
        words: Any = b"".join([number.to_bytes(16, sys.byteorder, signed=True) for number in numbers])
    else:
        words = np.stack((low, low >> 63) if sys.byteorder == "little" else (low >> 63, low), axis=1)
    return _from_buffers(kind, len(numbers), bits, words)


def array_of_texts(texts: Sequence[str | None] | Sequence[bytes]) -> Any:
    """Return texts, or their bytes in UTF-8, as an array of strings; None is null.

    >>> array_of_texts([b"ada", "é".encode()]).equals(array_of_texts(["ada", "é"]))
    True
    """
    pa, bits = pyarrow(), None
    present: Any = texts
    if texts and isinstance(texts[0], bytes):
        return text_array(np.fromiter(map(len, present), np.int64, len(texts)), b"".join(present))
    try:
        joined = "".join(present)
    except TypeError:  # one is None
        bits, present = _valid_bits(texts), [text or "" for text in texts]
        joined = "".join(present)
    data = joined.encode()
    if len(data) > MOST_BYTES:
        return pa.array(texts, pa.string())
    sizes = map(len, present if len(data) == len(joined) else map(str.encode, present))
    return text_array(np.fromiter(sizes, np.int32, len(texts)), data, bits)


def text_array(sizes: Any, data: bytes, bits: Any = None) -> Any:
    """Return an array of strings, whose bytes follow one another. sizes: integers. bits: see `_valid_bits`.

    Raises OverflowError: there are more bytes than one array can have.
    """
    return _from_buffers(pyarrow().string(), len(sizes), bits, _ends(sizes), data)


def only_labels(labels: Sequence[str]) -> Any:
    """Return an array of names that has no rows, and a dictionary with these labels."""
    pa = pyarrow()
    kind = pa.dictionary(pa.int32(), pa.string())
    return pa.DictionaryArray.from_buffers(kind, 0, [None, pa.py_buffer(b"")], array_of_texts(labels))


@cache
def text_scalar(value: str) -> Any:
    """Return a text as pyarrow's functions of columns take one beside columns."""
    return array_of_texts([value])[0]


def array_of_bytes(values: Sequence[bytes | None], size: int) -> Any:
    """Return values of so many bytes each as an array; None is null. Raises ValueError: one has more or fewer bytes."""
    bits = _valid_bits(values)
    present = [bytes(size) if value is None else value for value in values]
    if {*map(len, present)} - {size}:
        raise ValueError(f"a value has not {size} bytes")
    return _from_buffers(pyarrow().binary(size), len(values), bits, b"".join(present))


def array_of_lists(lists: Sequence[Sequence[int | None] | None], kind: Any) -> Any:
    """Return lists of integers as an array of this type, whose items have 64 bits; None is null.

    Raises OverflowError: an integer has more than 64 bits.
    """
    present = [each or () for each in lists]
    items = array_of_integers([*chain.from_iterable(present)], kind.value_type)
    sizes = np.fromiter(map(len, present), np.int32, len(lists))
    return _from_buffers(kind, len(lists), _valid_bits(lists), _ends(sizes), items=items)


def _ends(sizes: Any) -> Any:
    """Return where each of some values ends, after a zero. sizes: an array of integers. Raises OverflowError."""
    if (total := sizes.sum(dtype=np.int64)) > MOST_BYTES:
        raise OverflowError(f"{total:,} are more than the {MOST_BYTES:,} bytes or items of one array")
    ends = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=ends[1:])
    return ends


def _valid_bits(values: Sequence[Any]) -> Any:
    """Return the bits that say which values are not None; None if all are not."""
    if None not in values:
        return None
    is_valid = bytes(map(is_not, values, repeat(None)))
    return np.packbits(np.frombuffer(is_valid, np.uint8), bitorder="little")


def _from_buffers(kind: Any, size: int, *buffers: Any, items: Any = None) -> Any:
    """Return an array. items: of lists."""
    pa = pyarrow()
    made = [None if each is None else pa.py_buffer(each) for each in buffers]
    return pa.Array.from_buffers(kind, size, made, children=None if items is None else [items])


def chosen(rows: Any) -> Any:
    """Return which rows are chosen, an array or a list of truth values, for `filter`."""
    return _from_buffers(pyarrow().bool_(), len(rows), None, np.packbits(np.asarray(rows, bool), bitorder="little"))


def no_rows(schema: Any) -> Any:
    """Return a table without rows."""
    pa = pyarrow()
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def whole(column: Any) -> Any:
    """Return a column as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)  # which is not copied
    return column.combine_chunks() if column.num_chunks else pyarrow().nulls(0, column.type)  # the first imports pandas


def integers(column: Any, missing: int | None = None) -> Any:
    """Return a column as an array of int64; instants in µs. missing: in place of nulls, if it can have any."""
    array = whole(column)
    values = numpy_array(array) if missing is None else np.where(is_valid(array), _values(array), missing)
    return values.astype(np.int64, copy=False)


def taken(table: Any, rows: Any) -> Any:
    """Return some rows of a table, by their numbers, an array; if they follow one another, they are not copied."""
    if len(rows) and (rows == np.arange(rows[0], rows[0] + len(rows))).all():
        return table.slice(rows[0], len(rows))
    return table.take(row_numbers(rows))


def log_order(position: Any) -> Any:
    """Return the stable order of log positions, an array of int64: quickly if they are consecutive, as in a segment."""
    if len(position) and int(position.max()) - (first := int(position.min())) == len(position) - 1:
        order = np.full(len(position), -1)
        order[position - first] = np.arange(len(position))
        if order.min() >= 0:
            return order
    return np.argsort(position, kind="stable")


def labelled(column: Any) -> tuple[list[str], Any]:
    """Return the labels of a column of names, and the label of each row by number, an array of int32."""
    if not len(column):
        return [], np.zeros(0, np.int32)
    chunk = whole(column)
    return chunk.dictionary.to_pylist(), numpy_array(chunk.indices)
