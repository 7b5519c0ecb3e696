"""Tables to be scored: files or frames, read whole, whose rows a map then reads again."""

import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.extras import pyarrow
from forecast_ledger.replay.files.sheet_cells import arrow_records, number_text, shown_sheets
from forecast_ledger.replay.files.table_rows import JSON_LINES, WORKBOOK, form_of, table_records
from forecast_ledger.replay.mapping.csv_reader import SourceRecord, read_sources
from forecast_ledger.replay.scoring.options import Options

DELIMITERS = ",;\t|"
LARGEST, CELL = 2**28, 16  # bytes of a table in memory, about: those of its characters, and so many for each cell
_ANSWERS = {"answer", "answers", "outcome", "outcomes", "resolution", "resolutions", "result", "results"}
_SHEETS = "name the sheet with --sheet and, if the answers are on another, that with --answers-sheet"
_CELLS = "give each row one cell for each column"
_PARTS = "score a part of it, keep the map with --write-map, and append all of it by that map: append --map"
_ROWS = "give it a row for each forecast"
_TITLES = "delete what stands above the header, and give each column a name"


class Table(NamedTuple):
    """A table of texts. name: of its file. columns: their cells, by name. lines: the number of each row in the file.

    records: returns the header and all rows once more. unit: what `lines` counts. keys: how a map reads the file.
    """

    name: str
    columns: Mapping[str, Sequence[str]]
    lines: Sequence[int]
    records: Callable[[], Iterator[SourceRecord]]
    unit: str
    keys: Mapping[str, str]

    @property
    def title(self) -> str:
        """The name of the file, and the sheet if it is named."""
        return f"{self.name}, sheet {self.keys['sheet']!r}" if "sheet" in self.keys else self.name

    @property
    def stem(self) -> str:
        """The name of the file without its ending."""
        return Path(self.name).stem

    def rows(self, names: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the cells of each row in some columns.

        >>> table_of_rows([{"q": "rain", "p": 0.5}], "f").rows(["p", "q"])
        [('0.5', 'rain')]
        """
        return [*zip(*(self.columns[name] for name in names), strict=True)] if names else [()] * len(self.lines)

    def texts(self, names: Sequence[str]) -> Sequence[str]:
        """Return the cells of each row in some columns as one text, "" of no column.

        >>> table_of_rows([{"city": "Oslo", "day": 1}], "f").texts(["city", "day"])
        ['Oslo 1']
        """
        return self.columns[names[0]] if len(names) == 1 else [*map(" ".join, self.rows(names))]


def read_tables(paths: Sequence[Path], options: Options) -> list[Table]:
    """Read the table of forecasts and, in a second file or another sheet of a workbook, that of the answers.

    If a workbook of forecasts has two sheets, and one is named as answers are, that one has the answers.

    Raises what `read_table` raises.
    """
    first, told = options, options._replace(sheet=options.answers_sheet or options.sheet)
    if len(paths) == 1 and not (options.sheet or options.answers_sheet):
        names = _sheets(paths[0])
        said = [name for name in names if name.strip().casefold() in _ANSWERS]
        if len(names) == 2 and len(said) == 1:
            first, told = (options._replace(sheet=name) for name in sorted(names, key=said.__contains__))
    if len(paths) == 1 and told.sheet == first.sheet:
        return [read_table(paths[0], first)]
    return [read_table(paths[0], first), read_table(paths[-1], told)]


def _sheets(path: Path) -> list[str]:
    """Return the sheets of a file that are shown; none if it is no workbook."""
    with path.open("rb") as file:
        return shown_sheets(file) if form_of(file, tables=True) == WORKBOOK else []


def read_table(path: Path, options: Options) -> Table:
    """Read a CSV, Parquet, JSON lines or .xlsx file. A row that cannot be read is left to the map, which refuses it.

    Raises, first that applies: OSError, Unavailable (no library for it), Refused (bad_csv, bad_map: no such sheet,
    ambiguous: the delimiter).
    """
    with path.open("rb") as file:
        form = form_of(file, tables=True)
        delimiter = options.delimiter or ("," if form else _delimiter(file.readline()))

    def records() -> Iterator[SourceRecord]:
        with path.open("rb") as file:
            yield from table_records(
                file, form, lambda _: True, delimiter=delimiter, encoding=options.encoding, sheet=options.sheet
            )

    given = {"delimiter": "" if form or delimiter == "," else delimiter, "encoding": options.encoding}
    keys = given | {"sheet": options.sheet if form == WORKBOOK else ""}
    try:
        unit = f"{keys['sheet']} row".lstrip() if form and form != JSON_LINES else "line"
        return _table(path.name, records, unit, keys, is_cut=not form)
    except Refused as refused:
        remedy = {"bad_map": _SHEETS}.get(refused.code, refused.remedy)
        if "not UTF-8" in refused.detail:
            remedy = "convert the file to UTF-8, or name its encoding, such as --encoding cp1252"
        raise Refused(refused.code, refused.field, refused.value, refused.detail, remedy=remedy) from None


def _delimiter(line: bytes) -> str:
    """Return the character between the names of a header. Refuses: ambiguous (two of them give as many columns)."""
    counts = {mark: _width(line, mark) for mark in DELIMITERS}
    most = max(counts.values())
    marks = [mark for mark, count in counts.items() if count == most]
    if most > 1 and len(marks) > 1:
        detail = f"the header has as many columns by {' as by '.join(map(repr, marks))}"
        raise Refused("ambiguous", "delimiter", None, detail, remedy="give --delimiter")
    return marks[0]


def _width(line: bytes, mark: str) -> int:
    cells = next(read_sources(io.BytesIO(line), mark, "latin-1"), (1, [], b""))[1]
    return 0 if isinstance(cells, Refused) else len(cells)


def table_of(given: object, function: str, name: str) -> Table:
    """Return a table from a frame that exports an Arrow stream, such as of pandas, Polars or PyArrow, or from rows.

    function, name: whose argument it is, and its name.

    Raises, first that applies: TypeError (neither), Unavailable (no pyarrow), Refused (bad_csv).
    """
    if (
        isinstance(given, Sequence)
        and not isinstance(given, str | bytes)
        and all(isinstance(row, Mapping) for row in given)
    ):
        return table_of_rows(given, name)
    if not hasattr(given, "__arrow_c_stream__"):
        raise TypeError(f"{function}: {name} takes a data frame or a list of dicts, not {type(given).__name__}")
    frame = pyarrow("data frames").table(given)
    return _table(name, lambda: arrow_records(frame), "row", {})


def table_of_rows(rows: Sequence[Mapping[str, Any]], name: str) -> Table:
    """Return a table from rows as dicts, whose keys together are its columns. Refuses: bad_csv.

    >>> table_of_rows([{"q": "rain", "p": 0.5}, {"q": None}], "f").columns
    {'q': ['rain', ''], 'p': ['0.5', '']}
    """
    header = [*dict.fromkeys(str(key) for row in rows for key in row)]
    texts = [{str(key): _text(value, str(key)) for key, value in row.items()} for row in rows]

    def records() -> Iterator[SourceRecord]:
        yield 1, header, b""
        for number, row in enumerate(texts, 1):
            yield number, [row.get(key, "") for key in header], b""

    return _table(name, records, "row", {})


def _text(value: Any, column: str) -> str:
    """Return a value as the text that a CSV would have. Refuses: bad_csv (a list, an object or bytes)."""
    value = value.item() if hasattr(value, "item") and hasattr(value, "dtype") else value  # a scalar of NumPy
    if value is None or value != value:  # noqa: PLR0124 - NaN and the like are not equal to themselves
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_text(value) if abs(value) < 10**15 else repr(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return value.isoformat(" ") if value.tzinfo is None else value.isoformat()
    if isinstance(value, date | int | str):
        return str(value).strip()
    remedy = "give it as a text; JSON for a list or an object"
    raise Refused("bad_csv", column, None, f"a value of the type {type(value).__name__}", remedy=remedy)


def with_line(refused: Refused, tables: Collection[Table]) -> Refused:
    """Return the refusal of a cell with the row that has it first; any other refusal as it is.

    >>> table = table_of_rows([{"who": "ada", "p": 0.5}, {"who": "bo", "p": "half"}], "f")
    >>> with_line(Refused("bad_number", "p", "half"), [table]).detail
    'f, row 2: this is not a decimal number'
    """
    for table in tables:
        cells = table.columns.get(refused.field, ())
        if refused.value in cells and not refused.detail.startswith(table.name):
            return refused.about(f"{table.name}, {table.unit} {table.lines[cells.index(refused.value)]}")
    return refused


def _table(
    name: str,
    records: Callable[[], Iterator[SourceRecord]],
    unit: str,
    keys: Mapping[str, str],
    *,
    is_cut: bool = False,
) -> Table:
    """Read the rows of a table. Refuses: bad_csv (no header, no rows, a row without a certain end, or too large).

    is_cut: a row that cannot be read ends the reading.
    """
    with gc_pause.paused():
        return _whole_table(name, records, unit, keys, is_cut)


def _whole_table(
    name: str, records: Callable[[], Iterator[SourceRecord]], unit: str, keys: Mapping[str, str], is_cut: bool
) -> Table:
    reading = records()
    _, header, _ = next(reading, (1, Refused("bad_csv", "", None, "the table is empty", remedy=_ROWS), b""))
    if isinstance(header, Refused):
        raise header.about(name)
    twice = next((column for column in header if header.count(column) > 1), None)
    if twice == "":
        raise Refused("bad_csv", "", None, f"{name}: the first {unit} has columns without a name", remedy=_TITLES)
    if twice is not None:
        detail = f"{name}: two columns have the same name"
        raise Refused("bad_csv", "column", twice, detail, remedy="rename one of them")
    rows, lines, seen = list[list[str]](), list[int](), dict[str, str]()
    fault: Refused | None = None
    size = 0
    for line, cells, _ in reading:
        if isinstance(cells, Refused):
            if is_cut:
                raise cells.about(f"{name}, {unit} {line}")
            odd = cells
        elif len(cells) == len(header):
            size += CELL * len(cells) + sum(map(len, cells))
            if size > LARGEST:
                detail = f"{name}: up to {unit} {line} it takes {LARGEST >> 20} MiB, the most that one step scores"
                raise Refused("bad_csv", "", None, detail, remedy=_PARTS)
            rows.append([seen.setdefault(cell, cell) for cell in cells])  # one object for each text
            lines.append(line)
            continue
        else:
            odd = Refused("bad_csv", "", None, f"{len(cells)} cells, and the header has {len(header)}", remedy=_CELLS)
        fault = fault or odd.about(f"{unit} {line}")
    if not rows:
        fault = fault or Refused("bad_csv", "", None, "the table has no rows", remedy=_ROWS)
        raise fault.about(name)
    columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    return Table(name, columns, lines, records, unit, {key: text for key, text in keys.items() if text})
