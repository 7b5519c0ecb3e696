"""The one way to read a Parquet file from other people: what decoding gives is counted before it is decoded.

Dictionaries, runs and prefixes cost almost nothing, so that a page of a few bytes can stand for billions of values.
Sizes are taken from the pages that will be read, and texts are counted as they are decoded, a few at a time if one may
be long. Totals that the file states are not used.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import IO, Any

from forecast_ledger.ledger.core.parquet_metadata import Chunk, Page, read_footer, read_pages

FREE_BYTES, MOST_RATIO = 2**28, 200  # bytes that any file may give; a larger one may give so many times its size
BATCH_ROWS = 4_096  # rows that are decoded together
_BATCH_BYTES = 2**26  # of texts in them
_ROW = 16  # bytes of a row without columns, which takes time as well
_POSITION = 4  # bytes for each text or list: where it begins
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
        if size > (most := max(FREE_BYTES, MOST_RATIO * self._footer.size)):
            raise TooLargeError(f"its rows take more than {most:,} bytes, and the file has {self._footer.size:,}")

    def rows_together(
        self, file: IO[bytes], columns: Collection[str] | None = None, groups: Sequence[int] | None = None
    ) -> dict[str, int]:
        """Check columns of row groups; return those whose texts may be long, each with the rows to decode together.

        Their texts are to be counted as they are decoded. Raises TooLargeError, for all others; ValueError (damaged).
        """
        total, rows = 0, dict[str, int]()
        for group in self._footer.groups if groups is None else map(self._footer.groups.__getitem__, groups):
            for chunk in group:
                if columns is not None and chunk.name not in columns:
                    continue
                if chunk not in self._counted:
                    self._counted[chunk] = self._count(file, chunk)
                size, longest = self._counted[chunk]
                self.check(total := total + size)
                if longest:
                    rows[chunk.name] = min(rows.get(chunk.name, BATCH_ROWS), max(_BATCH_BYTES // longest, 1))
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
                is_short = page.size <= _BATCH_BYTES // BATCH_ROWS
                entry = page.size if is_short else _longest_entry(file, chunk, page)
            elif page.encoding in _DICTIONARIES or page.encoding == _PREFIXES:
                own = page.size if page.encoding == _PREFIXES else entry
                longest = max(longest, 0 if chunk.is_nested else own)
                self.check(total := total + page.values * own * chunk.is_nested)
        return total, longest


def _longest_entry(file: IO[bytes], chunk: Chunk, page: Page) -> int:
    """Return the bytes of the longest text in a dictionary, or more if its codec is not known."""
    import pyarrow  # noqa: PLC0415 - late: optional

    file.seek(page.start)
    data = file.read(page.packed)
    if chunk.codec in _CODECS:
        data = pyarrow.decompress(data, page.size, _CODECS[chunk.codec], asbytes=True)
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

    Raises what pyarrow raises, TooLargeError, and ValueError (the file is damaged).
    """
    from pyarrow import parquet  # noqa: PLC0415 - late: optional

    sizes = ParquetSizes(file)
    rows = min([BATCH_ROWS, *sizes.rows_together(file, columns).values()])
    found = parquet.ParquetFile(file, pre_buffer=False)
    sizes.check(found.metadata.num_rows * _ROW)
    total = 0
    for batch in found.iter_batches(rows, columns=columns):
        sizes.check(total := total + sum(map(decoded_bytes, batch.columns)))
        yield batch


def decoded_bytes(array: Any) -> int:
    """Return the bytes of an array if each label in it were replaced by the text that it stands for."""
    from pyarrow import compute, types  # noqa: PLC0415 - late: optional

    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    if not types.is_dictionary(array.type) or not any(is_text(array.type.value_type) for is_text in texts):
        return int(array.nbytes)
    size = compute.sum(compute.binary_length(array.dictionary).cast("int64").take(array.indices)).as_py() or 0
    return int(array.indices.nbytes) + int(array.dictionary.nbytes) // _COPIES + int(size)
