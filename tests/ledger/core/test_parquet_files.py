"""Tests of reading Parquet files from other people."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from forecast_ledger.ledger.core import parquet_files
from forecast_ledger.ledger.core.parquet_files import (
    BATCH_ROWS,
    BYTES,
    EXACT,
    INT,
    LONG,
    MOST_RATIO,
    SHORT,
    STRUCT,
    ParquetSizes,
    TooLargeError,
    decoded_bytes,
    footer_bytes,
    most_decoded_bytes,
    read_batches,
    read_footer,
    read_pages,
    read_struct,
    write_struct,
)

LONG_TEXT = "x" * 2**20
FREE = 2**24  # bytes that any file may give in these tests


def written(table: pa.Table, **options: Any) -> BytesIO:
    """A table as a file, without pyarrow's own schema."""
    file = BytesIO()
    parquet.write_table(table, file, compression="zstd", store_schema=False, **options)
    return file


def repeated(value: Any, count: int) -> pa.Table:
    """A column in which one value is repeated: its dictionary has one entry."""
    return pa.table(
        {"c": pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count), pa.array([value]))}
    )


def in_one_list(count: int) -> pa.Table:
    """A list of one number, repeated."""
    numbers = pa.repeat(pa.scalar(1, pa.int64()), count)
    return pa.table({"c": pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), numbers)})


def with_prefixes(count: int) -> BytesIO:
    """Texts of which each is written as the length of its prefix in the text before."""
    table = pa.table({"c": pa.array([LONG_TEXT[: 2**16]] * count)})
    return written(table, use_dictionary=False, column_encoding={"c": "DELTA_BYTE_ARRAY"}, data_page_size=2**30)


POOL = pa.proxy_memory_pool(pa.default_memory_pool())  # it outlives all that is read with it


@contextmanager
def counted() -> Iterator[None]:
    """Let pyarrow take its memory from the pool that counts it."""
    before = pa.default_memory_pool()
    pa.set_memory_pool(POOL)
    try:
        yield
    finally:
        pa.set_memory_pool(before)


BOMBS: dict[str, Callable[[], BytesIO]] = {
    "a long text": lambda: written(repeated(LONG_TEXT, 2_000)),
    "texts in lists": lambda: written(pa.table({"c": pa.array([[LONG_TEXT] * 20])})),
    "prefixes": lambda: with_prefixes(300),
    "a number": lambda: written(repeated(1, 5_000_000)),
    "one list": lambda: written(in_one_list(2_000_000)),
    "a page of zeros": lambda: written(pa.table({"c": pa.array([bytes(2**20)] * 20)}), use_dictionary=False),
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_small_file_of_large_rows_is_refused(bomb: Callable[[], BytesIO], monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of them before anything is decoded, the others when a part is; memory stays below the limit."""
    monkeypatch.setattr(parquet_files, "FREE_BYTES", FREE)
    file = bomb()
    assert MOST_RATIO * len(file.getvalue()) < FREE
    with counted(), pytest.raises(TooLargeError, match=r"more than 16,777,216 bytes, and the file has [0-9,]+$"):
        for _ in read_batches(file):
            pass
    assert POOL.max_memory() < FREE


def test_rows_without_columns_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that needs no column still goes through the rows: 16 bytes each."""
    file = written(repeated(1, 1_001))
    monkeypatch.setattr(parquet_files, "FREE_BYTES", 16_016)
    monkeypatch.setattr(parquet_files, "MOST_RATIO", 0)
    assert sum(batch.num_rows for batch in read_batches(file, [])) == 1_001
    monkeypatch.setattr(parquet_files, "FREE_BYTES", 16_015)
    with pytest.raises(TooLargeError, match="more than 16,015 bytes"):
        [*read_batches(file, [])]


def test_a_larger_file_may_have_larger_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred times its size, however small it is."""
    monkeypatch.setattr(parquet_files, "FREE_BYTES", 0)
    few, many = written(repeated("x" * 100, 50)), written(repeated("x" * 100, 100_000))
    assert 200 * len(few.getvalue()) > 50 * 104
    assert sum(batch.num_rows for batch in read_batches(few)) == 50
    assert 200 * len(many.getvalue()) < 100_000 * 100
    with pytest.raises(TooLargeError):
        [*read_batches(many)]


def test_a_few_long_texts_are_decoded_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as fit into a quarter of the bytes that any file may give, also if a larger one may give more."""
    monkeypatch.setattr(parquet_files, "FREE_BYTES", 40 * 2**20)
    repeats, dice = repeated(LONG_TEXT, 35), Random(1)
    large = repeats.append_column("other", pa.array([dice.randbytes(2**15) for _ in range(35)]))
    for table in (repeats, pa.table({"c": pa.array([*"ab", LONG_TEXT] * 12)}), large):
        assert max(batch.num_rows for batch in read_batches(written(table), ["c"])) == 10
    file = written(large)
    assert ParquetSizes(file).rows_together(file, ["c"])["c"] > 35  # for who keeps all of them


ENCODINGS: dict[str, dict[str, Any]] = {
    "dictionaries": {},
    "plain": {"use_dictionary": False},
    "lengths": {"use_dictionary": False, "column_encoding": {"c": "DELTA_LENGTH_BYTE_ARRAY"}},
    "prefixes": {"use_dictionary": False, "column_encoding": {"c": "DELTA_BYTE_ARRAY"}},
    "dictionaries that are full": {"dictionary_pagesize_limit": 2**12},
    "small pages": {"data_page_size": 2**10, "data_page_version": "2.0"},
}
CODECS = ["none", "snappy", "gzip", "brotli", "lz4", "zstd"]


@pytest.mark.parametrize(
    ("options", "codec"),
    [(options, CODECS[at - shift]) for at, options in enumerate(ENCODINGS.values()) for shift in (0, 3)],
)
def test_an_honest_file_is_read_whole(options: dict[str, Any], codec: str) -> None:
    """In every encoding and with every codec that pyarrow writes, each with two of the others.

    Texts of some encodings have to be counted.
    """
    count = 2 * BATCH_ROWS + 1
    texts = [f"person {number % 3_000} of many" for number in range(count)]
    labels = pa.array(texts).dictionary_encode()
    table = pa.table({"c": texts, "labels": labels, "n": range(count), "lists": [[n, 1] for n in range(count)]})
    file = BytesIO()
    parquet.write_table(table, file, row_group_size=3_000, compression=codec, **options)
    plain = table.schema.set(1, pa.field("labels", pa.string()))
    assert pa.Table.from_batches(read_batches(file)).cast(plain).equals(table.cast(plain))


def test_a_damaged_dictionary_is_an_error() -> None:
    """Its texts go on after the end of the page."""
    plain = BytesIO()
    parquet.write_table(pa.table({"c": ["x" * 20_000, "ab"]}), plain, compression="none")
    content = plain.getvalue().replace((20_000).to_bytes(4, "little"), (30_000).to_bytes(4, "little"), 1)
    with pytest.raises(ValueError, match="the dictionary of the column 'c' is damaged"):
        [*read_batches(BytesIO(content))]


LEAVES = [  # by hand, from parquet.thrift
    ("flag", False, 1),
    ("small", False, 4),
    ("name", False, 0),
    ("numbers", True, 8),
    ("digest", False, 16),
    ("pair", True, 8),
    ("pair", True, 0),
]


def written_file(**options: object) -> BytesIO:
    """A table with a column of each type, as a file."""
    file, table = (
        BytesIO(),
        pa.table(
            {
                "flag": pa.array([True, None, False] * 5),
                "small": pa.array(range(15), pa.int32()),
                "name": pa.array(["ada", "bob", "ada"] * 5),
                "numbers": pa.array([[1, 2], [], None] * 5, pa.list_(pa.int64())),
                "digest": pa.array([b"0123456789abcdef"] * 15, pa.binary(16)),
                "pair": pa.array([{"x": 0.5, "y": "z"}] * 15),
            }
        ),
    )
    parquet.write_table(table, file, row_group_size=10, **options)
    return file


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_footer_says_what_pyarrow_reads_in_it(version: str, compression: str) -> None:
    """For each column of each row group: where its pages are, and how many values these have."""
    file = written_file(data_page_version=version, compression=compression)
    footer, metadata = read_footer(file), parquet.read_metadata(file)
    assert footer.size == len(file.getvalue())
    assert len(footer.groups) == metadata.num_row_groups == 2
    for number, group in enumerate(footer.groups):
        assert [(chunk.name, chunk.is_nested, chunk.width) for chunk in group] == LEAVES
        for place, chunk in enumerate(group):
            column = metadata.row_group(number).column(place)
            start = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
            expected = (start, column.total_compressed_size, column.num_values)
            assert (chunk.start, chunk.size, chunk.values) == expected
            pages = [*read_pages(file, chunk)]
            assert [page.is_dictionary for page in pages] == [True] * column.has_dictionary_page + [False]
            assert sum(page.values for page in pages if not page.is_dictionary) == column.num_values
            assert pages[-1].start + pages[-1].packed == chunk.start + chunk.size
            assert sum(page.size for page in pages) <= column.total_uncompressed_size  # which counts headers too


CHUNK = (4, 5, 7, 9, 11)  # codec, num_values, total_compressed_size, data_page_offset, dictionary_page_offset


def read_quickly(data: bytes, at: int) -> tuple[parquet_files.Struct, int] | None:
    """What the quick way reads of a chunk in a footer."""
    return parquet_files._quick_chunk(data, at, parquet_files._CHUNK_DEPTH)


@given(st.data())
def test_a_chunk_that_is_read_quickly_is_the_one_that_is_there(data: st.DataObject) -> None:
    """Wherever it begins, in a footer of which up to three bytes are changed: read field by field, it is the same.

    It has no other file, field 1, and is not encrypted, fields 8 and 9 of parquet.thrift.
    """
    _, footer = footer_bytes(written_file(compression="zstd"))
    changed = bytearray(footer)
    for _ in range(data.draw(st.integers(0, 3))):
        changed[data.draw(st.integers(0, len(footer) - 1))] = data.draw(st.integers(0, 255))
    content, found = bytes(changed), 0
    for at in (at for at, head in enumerate(content) if head == 0x26):  # of field 2, a long
        if (read := read_quickly(content, at)) is not None:
            chunk, end = read_struct(content, at)
            metadata = chunk[3][1]
            taken = {number: metadata[number] for number in CHUNK if number in metadata}
            assert read == ({3: (STRUCT, taken)}, end)
            assert not chunk.keys() & {1, 8, 9}
            found += 1
    assert found == 14 or content != footer  # seven columns in two row groups


ODD: dict[str, tuple[dict[int, Any], dict[int, Any]]] = {  # other fields of a chunk, and of its metadata
    "in another file": ({1: (BYTES, b"x")}, {}),
    "encrypted": ({8: (STRUCT, {})}, {}),
    "encrypted metadata": ({9: (BYTES, b"x")}, {}),
    "a number in place of encryption": ({8: (LONG, 1)}, {}),
    "a number of 16 bits as its size": ({}, {7: (SHORT, 1)}),
    "a dictionary at a place of 32 bits": ({}, {11: (INT, 4)}),
    "an index before the dictionary": ({}, {10: (LONG, 4), 11: (INT, 4)}),
    "a text of 64 bytes": ({}, {12: (STRUCT, {5: (BYTES, b"x" * 64)})}),
}


@pytest.mark.parametrize(("fields", "metadata"), ODD.values(), ids=ODD)
def test_an_odd_chunk_is_read_field_by_field(fields: dict[int, Any], metadata: dict[int, Any]) -> None:
    """Where it is refused, if it can be."""
    groups = read_struct(footer_bytes(written_file())[1])[0][4][1][1]
    chunk = groups[0][1][1][1][0]
    assert read_quickly(write_struct(chunk), 0) is not None
    chunk[3][1].update(metadata)
    assert read_quickly(write_struct(chunk | fields), 0) is None


def test_a_chunk_with_a_field_twice_is_read_field_by_field() -> None:
    """The second time has its number written out: field 7, a long, is 0 at the end of the metadata."""
    chunk = read_struct(footer_bytes(written_file())[1])[0][4][1][1][0][1][1][1][0]
    content = write_struct({2: chunk[2], 3: chunk[3]})
    assert read_quickly(content, 0) is not None
    twice = content[:-2] + b"\x06\x0e\x00" + content[-2:]
    with pytest.raises(ValueError, match="field 7 of the metadata is there twice"):
        read_struct(twice)
    assert read_quickly(twice, 0) is None


def test_pages_with_too_few_values_are_damaged() -> None:
    """A reader would go on into the bytes of the next column."""
    file = written_file()
    chunk = read_footer(file).groups[0][1]
    with pytest.raises(ValueError, match="has 10 values, not 11 as its footer states"):
        [*read_pages(file, chunk._replace(values=11))]


def test_a_column_ends_before_the_file_does() -> None:
    """Otherwise its size is no bound of what is read of it."""
    file = BytesIO()
    parquet.write_table(pa.table({"n": range(10_000)}), file)
    content = file.getvalue()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    cut = BytesIO(content[:4] + content[-footer:])
    with pytest.raises(ValueError, match="goes on after the end of the file"):
        read_footer(cut)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_struct_or_an_error(data: bytes) -> None:
    """Nothing else is raised, and nothing takes long."""
    try:
        _, end = read_struct(data)
    except ValueError:
        return
    assert end <= len(data)


@given(st.data())
def test_a_changed_file_is_read_or_an_error(data: st.DataObject) -> None:
    """For each byte of a file: nothing else is raised."""
    content = bytearray(written_file(compression="none").getvalue())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file = BytesIO(bytes(content))
    try:
        pages = [[*read_pages(file, chunk)] for group in read_footer(file).groups for chunk in group]
    except ValueError:
        return
    assert all(page.size >= 0 for chunk in pages for page in chunk)


STRUCTS = {
    "cut": (b"\x15", "cut or damaged"),
    "a field twice": (b"\x15\x02\x05\x02\x02\x00", "field 1 of the metadata is there twice"),
    "unknown kind": (b"\x1e\x00", "unknown kind 14"),
    "deep": (b"\x1c" * 40 + b"\x00" * 40, "more than 32 levels"),
    "a text longer than the bytes": (b"\x18\xff\xff\xff\xff\x0fx", "cut or damaged"),
    "a list longer than the bytes": (b"\x19\xf5\xff\xff\xff\xff\x0fx", "cut or damaged"),
    "an integer without end": (b"\x15" + b"\xff" * 30 + b"\x00", "cut or damaged"),
}


@pytest.mark.parametrize(("data", "told"), STRUCTS.values(), ids=STRUCTS)
def test_what_is_no_struct_is_an_error(data: bytes, told: str) -> None:
    """A field that is there twice could mean one thing here and another to pyarrow."""
    with pytest.raises(ValueError, match=told):
        read_struct(data)


INEXACT = {
    "a padded number": b"\x15\x8e\x00\x00",
    "a number beyond 64 bits": b"\x16" + b"\xff" * 9 + b"\x7f\x00",
    "a padded length": b"\x18\x81\x00h\x00",
    "a padded count": b"\x19\xf5\x8f\x00" + b"\x02" * 15 + b"\x00",
    "a short count in the long form": b"\x19\xf5\x01\x02\x00",
    "a field in the long form": b"\x05\x02\x0e\x00",
    "a list of truths": b"\x19\x11\x01\x00",
    "a set": b"\x1a\x15\x02\x00",
    "a byte": b"\x13\x02\x00",
}


@pytest.mark.parametrize("data", INEXACT.values(), ids=INEXACT)
def test_what_could_be_written_in_another_way_is_not_read_exactly(data: bytes) -> None:
    """No library of Thrift writes it, or `write_struct` does not."""
    assert read_struct(data)[1] == len(data)
    with pytest.raises(ValueError, match=r"read in two ways|of the kind"):
        read_struct(data, way=EXACT)


@given(st.lists(st.sampled_from(["", "a", "ab", "x" * 99]) | st.none(), max_size=20))
def test_labels_take_no_more_than_if_each_were_the_longest(texts: list[str | None]) -> None:
    """And as much if all are of one length, or no labels at all."""
    plain = pa.array(texts, pa.string())
    labels = plain.dictionary_encode()
    assert most_decoded_bytes(pa.chunked_array([plain])) == decoded_bytes(plain) == plain.nbytes
    exact, most = decoded_bytes(labels), most_decoded_bytes(pa.chunked_array([labels]))
    assert exact <= most
    used = [text or "" for text in texts]
    assert (exact == most) == (sum(map(len, used)) == len(used) * max(map(len, used), default=0))
