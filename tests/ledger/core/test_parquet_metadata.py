"""Footers and page headers: what they say is what pyarrow says of the same file, and damage is an error."""

from io import BytesIO

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from forecast_ledger.ledger.core.parquet_files import read_footer, read_pages, read_struct

TABLE = pa.table(
    {
        "flag": pa.array([True, None, False] * 5),
        "small": pa.array(range(15), pa.int32()),
        "name": pa.array(["ada", "bob", "ada"] * 5),
        "numbers": pa.array([[1, 2], [], None] * 5, pa.list_(pa.int64())),
        "digest": pa.array([b"0123456789abcdef"] * 15, pa.binary(16)),
        "pair": pa.array([{"x": 0.5, "y": "z"}] * 15),
    }
)
LEAVES = [  # by hand, from parquet.thrift
    ("flag", False, 1),
    ("small", False, 4),
    ("name", False, 0),
    ("numbers", True, 8),
    ("digest", False, 16),
    ("pair", True, 8),
    ("pair", True, 0),
]


def written(**options: object) -> BytesIO:
    """The table as a file."""
    file = BytesIO()
    parquet.write_table(TABLE, file, row_group_size=10, **options)
    return file


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_footer_says_what_pyarrow_reads_in_it(version: str, compression: str) -> None:
    """For each column of each row group: where its pages are, and how many values these have."""
    file = written(data_page_version=version, compression=compression)
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


def test_pages_with_too_few_values_are_damaged() -> None:
    """A reader would go on into the bytes of the next column."""
    file = written()
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
    content = bytearray(written(compression="none").getvalue())
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
