"""The one way to read an Arrow file from other people: its columns are used as they lie in the file.

A compressed batch, a dictionary or a run of a few bytes can stand for billions of values. `export` writes none of them,
so that they are refused before anything is decoded; memory is then that of the largest batch in the file.
"""

from collections.abc import Collection, Iterator
from struct import unpack_from
from typing import IO, Any

from forecast_ledger.projections.core.arrow import pyarrow

_MAGIC = b"ARROW1\0\0"
# Numbers of fields in two tables of format/Message.fbs, Message and RecordBatch; https://github.com/apache/arrow
_HEADER, _COMPRESSION = 2, 3


def read_plain_batches(file: IO[bytes], types: Collection[Any]) -> Iterator[Any]:
    """Yield the batches of an Arrow file as pyarrow.RecordBatches, each checked in full.

    types: those that a column may have, none of which is nested or encoded.
    Raises what pyarrow raises, and ValueError (not an Arrow file; another type, a dictionary or compression in it).
    """
    arrow = pyarrow()
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("not an Arrow file")
    schema = arrow.ipc.read_schema(file)
    for field in schema:
        if field.type not in types:
            raise ValueError(f"the column {field.name!r} has the type {field.type}, which no export has")
    for message in arrow.MessageReader.open_stream(file):
        if message.metadata_version < arrow.MetadataVersion.V5 or _is_compressed(message.metadata.to_pybytes()):
            raise ValueError("its rows are compressed, or in a form of Arrow before version 5, which no export is")
        batch = arrow.ipc.read_record_batch(message, schema)
        batch.validate(full=True)
        yield batch


def _is_compressed(message: bytes) -> bool:
    """Return whether a batch is compressed. message: of Flatbuffers, whose offsets pyarrow has checked."""
    header = _field(message, unpack_from("<I", message)[0], _HEADER)
    return bool(_field(message, header + unpack_from("<I", message, header)[0], _COMPRESSION))


def _field(message: bytes, table: int, number: int) -> int:
    """Return where a field of a table is; 0 if the table lacks it."""
    places = table - unpack_from("<i", message, table)[0]
    size, place = unpack_from("<H", message, places)[0], 4 + 2 * number
    offset = unpack_from("<H", message, places + place)[0] if place < size else 0
    return offset and table + offset
