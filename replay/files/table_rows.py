"""The rows of a file that a map reads, whatever its form: CSV, Parquet, a workbook or JSON lines."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.files.sheet_cells import csv_line, is_workbook, read_parquet, read_sheet
from forecast_ledger.replay.mapping.csv_reader import SourceRecord, read_sources, with_line_feeds
from forecast_ledger.replay.mapping.csv_texts import read_json
from forecast_ledger.replay.writing.command_lines import LONGEST_LINE, UTF_8_MARK

PARQUET, WORKBOOK, JSON_LINES = "Parquet", "a workbook", "JSON lines"
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"
_OPEN_DOCUMENT = b"mimetypeapplication/vnd.oasis.opendocument"  # the first file in it, not compressed
_HEADER = 4_096  # bytes at the beginning of a file in which its header ends
_NAME = re.compile(rb"[^{}\[\]\x00-\x1f]+")  # of a column
_ARRAY = re.compile(rb"(\xef\xbb\xbf)?\s*\[\s*\{")
_SPREAD = re.compile(rb"(\xef\xbb\xbf)?\s*\{[ \t\r]*\n\s*[\"}]")
_LOOKED_AT = 100  # bytes at the beginning of a file
_REMEDY = "write one JSON object per line"


def form_of(file: IO[bytes], *, tables: bool) -> str:
    """Return what a file is, if it is a table of another form than CSV; "" if it cannot be looked into.

    tables: JSON lines are rows of a table, too, and not commands.
    Refuses: bad_csv (a spreadsheet of another kind, or JSON that is not in lines and should be a table).
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
    if tables and _SPREAD.match(first):
        remedy = "write each row on a line of its own, as jq -c . FILE does of objects that are rows, "
        remedy += "and jq -c '.forecasts[]' FILE of a list in one object"
        raise Refused("bad_csv", "", None, "FILE has a JSON object that takes several lines", remedy=remedy)
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


def has_json_lines(first: bytes) -> bool:
    r"""Return whether the beginning of a file is that of JSON lines: a brace, then a quote or another brace.

    >>> has_json_lines(b'\n{"question": 1}'), has_json_lines(b"question,p"), has_json_lines(b"{a},b")
    (True, False, False)
    """
    begun = first.removeprefix(UTF_8_MARK).lstrip()
    return begun[:1] == b"{" and begun[1:].lstrip()[:1] in {b'"', b"}"}


def read_json_rows(
    file: IO[bytes], reads: Callable[[str], bool], delimiter: str = ",", *, keep: bool = False
) -> Iterator[SourceRecord]:
    """Return the header, which has every key of every line, then each line's number, cells and, to keep, its bytes.

    The bytes are those of a row of a CSV. reads: whether a column is read; others are empty, and so are null and a key
    that a line lacks. Numbers are as they are written; a list or an object is its JSON. The whole file is read, and
    kept, before the first row is returned. A line that is no JSON object, or has a key twice, is refused: bad_csv.
    """
    rows, header = list[tuple[int, dict[str, str] | Refused]](), dict[str, None]()
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        text = line.removeprefix(UTF_8_MARK) if number == 1 else line
        if text.isspace():
            continue
        row = _row(text)
        if isinstance(row, dict):
            header |= dict.fromkeys(row)
        rows.append((number, row))
    names = [*header]
    yield 1, names, csv_line(names, delimiter if keep else "")
    for line_number, texts in rows:
        if isinstance(texts, Refused):
            yield line_number, texts, b""
        else:
            cells = [texts.get(name, "").strip() if reads(name) else "" for name in names]
            yield line_number, cells, csv_line(cells, delimiter if keep else "")


def _row(line: bytes) -> dict[str, str] | Refused:
    """Return the texts of a line by key, or the refusal: bad_csv."""
    if len(line) > LONGEST_LINE:
        return Refused("bad_csv", "", None, f"a line has more than {LONGEST_LINE} bytes", remedy=_REMEDY)
    try:
        record = read_json(line.decode(), "line")
    except UnicodeDecodeError:
        return Refused("bad_csv", "", None, "the line is not UTF-8", remedy="convert the file to UTF-8")
    except Refused as refused:
        return Refused("bad_csv", "", None, refused.detail, remedy=_REMEDY)
    if not isinstance(record, dict):
        return Refused("bad_csv", "", None, "the line is not a JSON object", remedy=_REMEDY)
    return texts_of(record)


def texts_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of a row of JSON as texts.

    >>> texts_of({"q": "rain", "yes": True, "p": "0.70", "note": None, "cdf": ["0", "1"]})
    {'q': 'rain', 'yes': 'true', 'p': '0.70', 'note': '', 'cdf': '["0", "1"]'}
    """
    return {name: _text(value) for name, value in row.items()}


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
