"""The rows of a file that a map reads, whatever its form: CSV, Parquet, a workbook or JSON lines."""

import re
from collections.abc import Callable, Iterator
from typing import IO

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.files.json_rows import has_json_lines, read_json_rows
from forecast_ledger.replay.files.sheet_cells import is_workbook, read_parquet, read_sheet
from forecast_ledger.replay.mapping.csv_reader import SourceRecord, read_sources, with_line_feeds
from forecast_ledger.replay.writing.command_lines import UTF_8_MARK

PARQUET, WORKBOOK, JSON_LINES = "Parquet", "a workbook", "JSON lines"
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"
_OPEN_DOCUMENT = b"mimetypeapplication/vnd.oasis.opendocument"  # the first file in it, not compressed
_HEADER = 4_096  # bytes at the beginning of a file in which its header ends
_NAME = re.compile(rb"[^{}\[\]\x00-\x1f]+")  # of a column
_ARRAY = re.compile(rb"(\xef\xbb\xbf)?\s*\[\s*\{")
_LOOKED_AT = 100  # bytes at the beginning of a file


def form_of(file: IO[bytes], *, tables: bool) -> str:
    """Return what a file is, if it is a table of another form than CSV; "" if it cannot be looked into.

    tables: JSON lines are rows of a table, too, and not commands.
    Refuses: bad_csv (a spreadsheet of another kind, or a JSON array that should be a table).
    """
    look = getattr(file, "peek", None)
    first = b"" if look is None else look(_LOOKED_AT)
    if first[:4] == b"PAR1":
        return PARQUET
    if first[:4] == _OLD_WORKBOOK:
        fault, remedy = (
            "FILE is an .xls, or a workbook with a password",
            "save it as .xlsx without a password, or as a CSV",
        )
        raise Refused("bad_csv", "", None, fault, remedy=remedy)
    if first[:2] == b"PK":
        if is_workbook(file):
            return WORKBOOK
        if _OPEN_DOCUMENT in first[:_LOOKED_AT]:
            raise Refused("bad_csv", "", None, "FILE is an .ods", remedy="save it as .xlsx or as a CSV")
    if tables and _ARRAY.match(first):
        remedy = "write each object of it on a line of its own, as jq -c '.[]' FILE does"
        raise Refused("bad_csv", "", None, "FILE is one JSON array", remedy=remedy)
    return JSON_LINES if tables and has_json_lines(first) else ""


def looks_like_csv(file: IO[bytes]) -> bool:
    r"""Return whether a file begins with a line of names between commas, semicolons or tabs, and no JSON.

    >>> import io
    >>> [looks_like_csv(io.BufferedReader(io.BytesIO(text))) for text in (b"question,p\nrain,0.8", b'{"id": 1}', b"x")]
    [True, False, False]
    """
    look = getattr(file, "peek", None)
    line = b"" if look is None else look(_HEADER)[:_HEADER].removeprefix(UTF_8_MARK).lstrip().partition(b"\n")[0]
    cells = re.split(rb"[,;\t]", line)
    return len(cells) > 1 and all(_NAME.fullmatch(cell.strip()) for cell in cells)


def table_records(  # noqa: PLR0913 - a file, what it is, and what a map says of it
    file: IO[bytes],
    form: str,
    reads: Callable[[str], bool],
    *,
    delimiter: str = ",",
    encoding: str = "",
    sheet: str = "",
    keep: bool = False,
) -> Iterator[SourceRecord]:
    """Return the header of a file of a form, then its rows. The arguments are those of the readers of each form."""
    if form == WORKBOOK:
        return read_sheet(file, sheet, reads, delimiter, keep=keep)
    if form == PARQUET:
        return read_parquet(file, reads, delimiter, keep=keep)
    if form == JSON_LINES:
        return read_json_rows(file, reads, delimiter, keep=keep)
    return read_sources(with_line_feeds(file), delimiter, encoding)
