"""Rows from JSON lines: each value as the text that a CSV file would have."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.files.sheet_cells import csv_line
from forecast_ledger.replay.mapping.csv_lists import read_json
from forecast_ledger.replay.mapping.csv_reader import SourceRecord
from forecast_ledger.replay.writing.command_lines import LONGEST_LINE, UTF_8_MARK

_REMEDY = "write one JSON object per line"


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
    for place, found in rows:
        if isinstance(found, Refused):
            yield place, found, b""
        else:
            cells = [found.get(name, "").strip() if reads(name) else "" for name in names]
            yield place, cells, csv_line(cells, delimiter if keep else "")


def _row(line: bytes) -> dict[str, str] | Refused:
    """Return the texts of a line by key, or the refusal: bad_csv."""
    if len(line) > LONGEST_LINE:
        return Refused("bad_csv", "", None, f"a line has more than {LONGEST_LINE} bytes", remedy=_REMEDY)
    try:
        found = read_json(line.decode(), "line")
    except UnicodeDecodeError:
        return Refused("bad_csv", "", None, "the line is not UTF-8", remedy="convert the file to UTF-8")
    except Refused as refused:
        return Refused("bad_csv", "", None, refused.detail, remedy=_REMEDY)
    if not isinstance(found, dict):
        return Refused("bad_csv", "", None, "the line is not a JSON object", remedy=_REMEDY)
    return texts_of(found)


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
