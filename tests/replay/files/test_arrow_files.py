"""Arrow files from other people: what is not as it lies in the file is refused before it is decoded."""

import struct
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import ipc

from forecast_ledger.replay.files.formats import read_plain_batches

TYPES = {pa.string(), pa.int64()}
MANY = 5_000_000


def texts() -> Any:
    """A column of three texts."""
    return pa.array(["rain", "no rain", "rain again"])


def file_of(column: Any, **options: Any) -> BytesIO:
    """An Arrow file with one batch of one column."""
    batch = pa.record_batch({"row": column})
    sink = pa.BufferOutputStream()
    with ipc.new_file(sink, batch.schema, options=ipc.IpcWriteOptions(**options)) as writer:
        writer.write_batch(batch)
    return BytesIO(sink.getvalue().to_pybytes())


def with_other(old: bytes, new: bytes) -> BytesIO:
    """The file of three texts, with other bytes in one place."""
    whole = file_of(texts()).getvalue()
    assert whole.count(old) == 1
    return BytesIO(whole.replace(old, new))


def in_lists() -> Any:
    """A list in a list."""
    return pa.array([[["rain"]]])


REFUSED: dict[str, tuple[Callable[[], BytesIO], str]] = {
    "zstd": (lambda: file_of(pa.array(["x" * MANY]), compression="zstd"), "its rows are compressed"),
    "lz4": (lambda: file_of(pa.array(["x" * MANY]), compression="lz4"), "its rows are compressed"),
    "an old form": (lambda: file_of(texts(), metadata_version=pa.MetadataVersion.V4), "before version 5"),
    "a dictionary": (
        lambda: file_of(pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), MANY), texts())),
        "has the type dictionary",
    ),
    "runs": (lambda: file_of(pa.RunEndEncodedArray.from_arrays([MANY], pa.array(["x"]))), "has the type run_end_enc"),
    "nested": (lambda: file_of(in_lists()), "has the type list"),
    "nothing": (lambda: file_of(pa.nulls(10**9)), "has the type null"),
    "views": (lambda: file_of(texts().cast(pa.string_view())), "has the type string_view"),
    "offsets outside": (
        lambda: with_other(struct.pack("<4i", 0, 4, 11, 21), struct.pack("<4i", 0, 4, 11, 2**30)),
        "offset",
    ),
    "offsets that fall": (
        lambda: with_other(struct.pack("<4i", 0, 4, 11, 21), struct.pack("<4i", 0, 11, 4, 21)),
        "offset",
    ),
    "a text that is none": (lambda: with_other(b"no rain", b"no\xffrain"), "UTF8"),
    "another file": (lambda: BytesIO(b"PAR1" * 10), "not an Arrow file"),
    "cut": (lambda: BytesIO(file_of(texts()).getvalue()[:200]), "metadata"),
    "empty": (lambda: BytesIO(b"ARROW1\0\0"), "length 0"),
}


@pytest.mark.parametrize(("forged", "says"), REFUSED.values(), ids=REFUSED)
def test_what_could_stand_for_more_than_its_bytes_is_refused(forged: Callable[[], BytesIO], says: str) -> None:
    """Compression, dictionaries, runs, nested types; and what lies outside the file."""
    with pytest.raises((ValueError, OSError), match=says):
        [*read_plain_batches(forged(), TYPES)]


def test_a_dictionary_that_no_column_has_is_refused() -> None:
    """Its message may stand between batches of a file whose schema has only plain columns."""
    plain = file_of(texts()).getvalue()
    encoded = file_of(pa.DictionaryArray.from_arrays([0, 1, 2], texts())).getvalue()
    messages = {message.type: message.serialize() for message in pa.MessageReader.open_stream(BytesIO(encoded[8:]))}
    schema, batch = pa.MessageReader.open_stream(BytesIO(plain[8:]))
    parts = [schema.serialize(), messages["dictionary"], batch.serialize()]
    with pytest.raises(OSError, match="got dictionary"):
        [*read_plain_batches(BytesIO(b"ARROW1\0\0" + b"".join(map(bytes, parts))), TYPES)]


def test_plain_files_are_read_whole() -> None:
    """Every batch, in order, as pyarrow reads it; texts of any script, empty ones and missing ones too."""
    table = pa.table({"n": range(10), "row": ["", None, "雨", *"abcdefg"]})
    sink = pa.BufferOutputStream()
    with ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    read = [*read_plain_batches(BytesIO(sink.getvalue().to_pybytes()), TYPES)]
    assert [batch.num_rows for batch in read] == [3, 3, 3, 1]
    assert pa.Table.from_batches(read).equals(table)
