"""Commands' rows from Parquet and .xlsx files: each cell as the text that a CSV file would have."""

import csv
import io
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import IO, Any, NamedTuple, TypeVar
from xml.parsers import expat

from forecast_ledger.ledger.core.errors import LedgerError, Refused, Unavailable, installing
from forecast_ledger.ledger.core.extras import pyarrow
from forecast_ledger.ledger.core.parquet_files import REMEDY, TooLargeError, read_batches
from forecast_ledger.replay.mapping.csv_reader import LONGEST_RECORD, SourceRecord

_Value = TypeVar("_Value")


def read_parquet(
    file: IO[bytes], reads: Callable[[str], bool], delimiter: str = ",", *, keep: bool = False
) -> Iterator[SourceRecord]:
    """Return the header, then each row's number from 1, its cells and, to keep, its bytes as a row of a CSV.

    reads: whether the cells of a column are read; others are empty, and so is null. delimiter: of the CSV.
    An instant with a time zone ends in Z, one without a time zone has no offset; a decimal has no exponent, a float is
    the shortest number that is read as the same float. All columns are read once before the first row is returned, so
    that nothing is taken from a damaged file. Memory holds a row group, and the texts of some rows.
    Raises, first that applies: Unavailable (no pyarrow), Refused (bad_csv: a pipe, damaged, a column of lists, objects
    or bytes).
    """
    arrow = pyarrow()
    from pyarrow import parquet  # noqa: PLC0415 - late: an extra

    if not file.seekable():
        raise Refused("bad_csv", "", None, "Parquet cannot be read from a pipe", remedy="save it, and name the file")
    try:
        schema = parquet.ParquetFile(file, pre_buffer=False).schema_arrow
        header = list(schema.names)
    except (arrow.ArrowException, ValueError, OSError) as error:
        raise _damaged(error) from None
    read = [name for name in header if reads(name)]
    if len({*read}) == len(read):  # the map refuses a column that appears twice
        for name in read:
            _check_type(name, schema.field(name).type)
        for _ in _batches(file, read):
            pass
    return _parquet_records(file, header, read, delimiter if keep else "")


def _parquet_records(file: IO[bytes], header: list[str], read: list[str], delimiter: str) -> Iterator[SourceRecord]:
    """Return the records; without a delimiter they have no bytes."""
    yield 1, header, csv_line(header, delimiter)
    number = 0
    for texts, count in _batches(file, read):
        empty = [""] * count
        for cells in zip(*(texts.get(name, empty) for name in header), strict=True):
            number += 1
            yield number, [cell.strip() for cell in cells], csv_line(cells, delimiter)


def arrow_records(frame: Any) -> Iterator[SourceRecord]:
    """Return the header of an Arrow table, then the number and the cells of each row, as `read_parquet` has them.

    Refuses: bad_csv (a column of lists, objects or bytes).
    """
    names = [str(name) for name in frame.schema.names]
    for field in frame.schema:
        _check_type(field.name, field.type)
    yield 1, names, b""
    number = 0
    for batch in frame.to_batches():
        for cells in zip(*map(_texts, batch.columns), strict=True):
            number += 1
            yield number, [cell.strip() for cell in cells], b""


def _batches(file: IO[bytes], read: list[str]) -> Iterator[tuple[dict[str, list[str]], int]]:
    """Return the texts of each column, and their number, some rows at a time. Refuses: bad_csv."""
    try:
        for batch in read_batches(file, read):
            yield {name: _texts(batch.column(name)) for name in read}, batch.num_rows
    except (pyarrow().ArrowException, ValueError, OSError) as error:
        raise _damaged(error) from None


def _damaged(error: Exception) -> Refused:
    remedy = REMEDY if isinstance(error, TooLargeError) else ""
    return Refused("bad_csv", "", None, f"not a Parquet file that can be read: {error}", remedy=remedy)


def _check_type(name: str, kind: Any) -> None:
    """Refuse (bad_csv) a column whose values are not written in one way."""
    from pyarrow import types  # noqa: PLC0415 - late: an extra

    inner = kind.value_type if types.is_dictionary(kind) else kind
    texts = (types.is_string, types.is_large_string, types.is_string_view, types.is_boolean, types.is_null)
    known = (*texts, types.is_integer, types.is_floating, types.is_decimal, types.is_timestamp, types.is_date)
    if not any(is_known(inner) for is_known in known):
        remedy = "write it as text; JSON for a list or an object"
        raise Refused("bad_csv", "column", name, f"the column {name!r} has the type {kind}", remedy=remedy)


def _texts(column: Any) -> list[str]:
    """Return the values of a column as texts, "" for null."""
    arrow = pyarrow()
    from pyarrow import types  # noqa: PLC0415

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_decimal(column.type):
        return ["" if value is None else format(value, "f") for value in column.to_pylist()]
    zone = "Z" if types.is_timestamp(column.type) and column.type.tz else ""
    if zone:
        column = column.cast(arrow.timestamp(column.type.unit))  # the same instant in UTC
    return ["" if text is None else text + zone for text in column.cast(arrow.string()).to_pylist()]


def csv_line(cells: Sequence[str], delimiter: str) -> bytes:
    r"""Return cells as a line of a CSV; nothing without a delimiter.

    >>> csv_line(["a", "b, c"], ","), csv_line(["a"], "")
    (b'a,"b, c"\n', b'')
    """
    if not delimiter:
        return b""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()


MOST_BYTES = 2**28  # of a workbook, unpacked
FREE_BYTES, MOST_RATIO = 2**26, 200  # it may unpack to this, or to this many times its size
MOST_FILES = 10_000  # in a workbook
MOST_CELLS = 2_000_000  # of a sheet, from A1 to the last row and column that have a value
MOST_ROWS = 2**20  # of a sheet, as spreadsheets have
MOST_ELEMENTS = 250_000  # of one name in a part of a workbook, other than those of cells
_OF_CELLS = {"row", "c", "v", "is", "f", "si", "t"}
DIGITS = 15  # of a number, as spreadsheets show it
MOST_MERGED = 100_000  # areas of merged cells
_XML = (".xml", ".rels")
_ENDINGS = (".xlsx", ".xlsm")


class Extent(NamedTuple):
    """How far the values of a sheet reach, and what the library that reads it does not say.

    rows: those that have a value. formulas: the cells that have one, but no stored text of it. merged: areas of cells,
    each as its first and last row and column.
    """

    rows: set[int]
    last_row: int
    last_column: int
    formulas: set[tuple[int, int]]
    merged: list[tuple[int, int, int, int]]


class SheetRow(NamedTuple):
    """A row of a sheet that has a value. faults: what is wrong with a cell, by its index."""

    number: int
    texts: list[str]
    faults: dict[int, str]


def read_sheet(
    file: IO[bytes], sheet: str, reads: Callable[[str], bool], delimiter: str = ",", *, keep: bool = False
) -> Iterator[SourceRecord]:
    """Return the header, then each row's number in the sheet, its cells and, to keep, its bytes as a row of a CSV.

    sheet: its name; "" for the only one that is not hidden. reads: whether the cells of a column are read. delimiter:
    of the CSV. A number has at most 15 digits, as spreadsheets show it, and a percentage its sign; a time has no
    offset; a formula is its stored value; each cell of a merged area has its value. Rows without a value are left out.
    A row is refused (bad_csv) if a cell that is read has an error, or a formula without a stored value. The whole sheet
    is read, and kept, before the first row is returned, so that nothing is taken from a damaged one.
    Raises, first that applies: Refused (bad_csv: a pipe, damaged, too large), Unavailable (no openpyxl), Refused
    (bad_map: no such sheet, or it is not named).
    """
    return _records(_read(file, lambda workbook: _rows(workbook, sheet)), reads, delimiter if keep else "")


def shown_sheets(file: IO[bytes]) -> list[str]:
    """Return the names of the sheets of a workbook that are not hidden.

    Raises, first that applies: Refused (bad_csv: a pipe, damaged, too large), Unavailable (no openpyxl).
    """
    return _read(file, _shown)


def _read(file: IO[bytes], what: Callable[[Any], _Value]) -> _Value:
    """Return what a function finds in a workbook that is neither too large nor damaged."""
    if not file.seekable():
        raise Refused("bad_csv", "", None, "a workbook cannot be read from a pipe", remedy="save it, and name the file")
    try:
        with zipfile.ZipFile(file) as packed:
            _check_size(packed, file)
            for name in packed.namelist():
                try:
                    _check_part(packed, name)
                except expat.ExpatError:
                    if name.endswith(_XML):
                        raise  # other parts are pictures
        try:
            import openpyxl  # noqa: PLC0415 - late: an extra
        except ImportError:
            raise Unavailable(f"workbooks (.xlsx) need openpyxl; {installing('sheets')}") from None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and parts that are not read
            file.seek(0)
            return what(openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False))
    except (LedgerError, MemoryError):
        raise
    except Exception as error:  # the library raises many kinds of errors at a file that is damaged
        detail = f"not a workbook that can be read: {error or type(error).__name__}"
        raise Refused("bad_csv", "", None, detail, remedy="save it again as .xlsx, or as a CSV") from None


def is_workbook(file: IO[bytes]) -> bool:
    """Return whether a file is a zip that has the list of contents of a workbook, or a damaged one with its ending.

    Its position is kept.
    """
    if not file.seekable():
        return False
    position = file.tell()
    try:
        with zipfile.ZipFile(file) as packed:
            return "[Content_Types].xml" in packed.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return str(getattr(file, "name", "")).lower().endswith(_ENDINGS)
    finally:
        file.seek(position)


def _check_size(packed: zipfile.ZipFile, file: IO[bytes]) -> None:
    """Refuse (bad_csv) a workbook that unpacks to more than is taken; no more than it says is unpacked later."""
    most = min(MOST_BYTES, max(FREE_BYTES, MOST_RATIO * file.seek(0, 2)))
    if len(packed.infolist()) > MOST_FILES or sum(entry.file_size for entry in packed.infolist()) > most:
        detail = f"the workbook has more than {most:,} bytes when unpacked, or more than {MOST_FILES:,} files"
        raise Refused("bad_csv", "", None, detail, remedy="save the sheet as a CSV, if you trust it")


def _check_part(packed: zipfile.ZipFile, name: str) -> None:
    """Raise ValueError if a part would become too many objects in memory, or has a document type."""
    counts = dict[str, int]()

    def count(tag: str, _: object) -> None:
        counts[tag] = counts.get(tag, 0) + 1

    parser = _without_doctype()
    parser.StartElementHandler = count
    _parse(packed, name, parser)
    for tag, number in counts.items():
        most = MOST_CELLS if tag.rpartition(":")[2] in _OF_CELLS else MOST_ELEMENTS
        if number > most:
            raise ValueError(f"{name} has more than {most:,} elements {tag}")
    if len(counts) > MOST_ELEMENTS:
        raise ValueError(f"{name} has more than {MOST_ELEMENTS:,} kinds of elements")


def _without_doctype() -> expat.XMLParserType:
    """Return a parser of XML that has no document type, and so no entities that grow."""

    def refuse(*_: object) -> None:
        raise ValueError("it has a document type, which no workbook has")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    return parser


def _parse(packed: zipfile.ZipFile, name: str, parser: expat.XMLParserType) -> None:
    with packed.open(name) as part:
        parser.ParseFile(part)


def _rows(workbook: Any, sheet: str) -> list[SheetRow]:
    """Return the rows of a sheet that have a value. Raises what `read_sheet` raises, and errors of the library."""
    worksheet = _chosen(workbook, sheet)
    extent = _extent(workbook, worksheet)
    worksheet.reset_dimensions()  # what the sheet says of itself
    rows = list[SheetRow]()
    if extent.rows:
        cells = worksheet.iter_rows(max_row=extent.last_row, max_col=extent.last_column)
        for number, row in enumerate(cells, 1):
            if number in extent.rows:
                rows.append(_row(number, row, extent.formulas))
    _fill(rows, extent)
    return rows


def _shown(workbook: Any) -> list[str]:
    return [each.title for each in workbook.worksheets if each.sheet_state == "visible"]


def _chosen(workbook: Any, sheet: str) -> Any:
    """Return the sheet of this name, or the only one that is not hidden. Refuses: bad_map."""
    sheets, shown = {each.title: each for each in workbook.worksheets}, _shown(workbook)
    if sheet in sheets or (not sheet and len(shown) == 1):
        return sheets[sheet or shown[0]]
    if not shown:
        raise ValueError("it has no sheet that is shown")
    names = ", ".join(map(repr, shown))
    remedy = f'name one at the top of the map, such as sheet = "{shown[0]}"'
    raise Refused("bad_map", "sheet", sheet, f"the sheets of the workbook are: {names}", remedy=remedy)


class _SheetParser:
    """Finds how far the values of a sheet reach, as its XML is parsed."""

    def __init__(self) -> None:
        self.extent = Extent(set(), 0, 0, set(), [])
        self._row = self._column = 0
        self._has_value = self._has_formula = self._is_text = False
        self._furthest = (0, 0)
        self.parser = _without_doctype()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end

    def result(self) -> Extent:
        row, column = self._furthest
        return self.extent._replace(last_row=row, last_column=column)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        if name == "row":
            row = int(attributes.get("r", self._row + 1))
            if row > MOST_ROWS:
                raise ValueError(f"it has a row {row}; sheets have {MOST_ROWS:,}")
            if row <= self._row:
                raise ValueError(f"row {row} comes after row {self._row}")
            self._row, self._column = row, 0
        elif name == "c":
            row, column = _row_and_column(attributes["r"]) if "r" in attributes else (self._row, self._column + 1)
            if row != self._row or column <= self._column:
                raise ValueError(f"cell {attributes.get('r')} is not in its place")
            self._column, self._has_value, self._has_formula = column, False, False
            self._is_text = attributes.get("t") == "str"
        elif name in {"v", "is"}:
            self._has_value = True
        elif name == "f":
            self._has_formula = True
        elif name == "mergeCell":
            first, _, last = attributes["ref"].partition(":")
            self.extent.merged.append((*_row_and_column(first), *_row_and_column(last or first)))
            if len(self.extent.merged) > MOST_MERGED:
                raise ValueError(f"it has more than {MOST_MERGED:,} areas of merged cells")

    def _end(self, tag: str) -> None:
        if tag.rpartition(":")[2] != "c" or not (self._has_value or self._has_formula):
            return
        self.extent.rows.add(self._row)
        if self._has_formula and not (self._is_text and self._has_value):
            self.extent.formulas.add((self._row, self._column))
        self._furthest = (max(self._furthest[0], self._row), max(self._furthest[1], self._column))
        if self._furthest[0] * self._furthest[1] > MOST_CELLS:
            detail = f"the sheet reaches to cell {_cell_name(*self._furthest)}, over more than {MOST_CELLS:,} cells"
            raise Refused("bad_csv", "", None, detail, remedy="remove what is not of the table, or save it as a CSV")


def _extent(workbook: Any, sheet: Any) -> Extent:
    """Return how far the values of a sheet reach. Raises ValueError, expat.ExpatError; Refused (bad_csv)."""
    reading = _SheetParser()
    _parse(workbook._archive, sheet._worksheet_path, reading.parser)  # which it does not offer by name
    return reading.result()


def _row(number: int, row: Sequence[Any], formulas: set[tuple[int, int]]) -> SheetRow:
    texts, faults = list[str](), dict[int, str]()
    for index, cell in enumerate(row):
        texts.append("" if cell.value is None else _text(cell))
        if cell.data_type == "e":
            faults[index] = "the cell has an error"
        elif cell.value is None and (number, index + 1) in formulas:
            faults[index] = "the cell has a formula whose value is not stored; open the workbook and save it again"
    if sum(map(len, texts)) > LONGEST_RECORD:
        raise ValueError(f"row {number} has more than {LONGEST_RECORD:,} characters")
    return SheetRow(number, texts, faults)


def _text(cell: Any) -> str:
    """Return the value of a cell as a person sees it."""
    value = cell.value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return number_text(value, percent="%" in _plain(cell.number_format))
    if isinstance(value, datetime):
        is_date = value.time() == time() and "h" not in _plain(cell.number_format).lower()
        return value.date().isoformat() if is_date else value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)


def number_text(value: float, *, percent: bool = False) -> str:
    """Return a number with at most 15 digits, and without an exponent; in percent with its sign.

    >>> number_text(0.35000000000000003), number_text(0.1 + 0.2, percent=True), number_text(12), number_text(1e-7)
    ('0.35', '30%', '12', '0.0000001')
    """
    number = Decimal(value) if isinstance(value, int) else Decimal(f"{value:.{DIGITS}g}")
    if percent:
        number = number.scaleb(2)
    text = f"{number:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "%" * percent


@lru_cache
def _plain(number_format: str) -> str:
    """Return a format without the texts in it.

    >>> _plain('0.0" % of all"'), _plain("0%")
    ('0.0', '0%')
    """
    kept = "".join(part for number, part in enumerate(number_format.split('"')) if number % 2 == 0)
    while "\\" in kept:
        before, _, after = kept.partition("\\")
        kept = before + after[1:]
    return kept


def _fill(rows: Sequence[SheetRow], extent: Extent) -> None:
    """Give each cell of a merged area the value of its first cell, in rows that have a value."""
    by_number = {row.number: row for row in rows}
    areas = [
        (top, left, min(bottom, extent.last_row), min(right, extent.last_column))
        for top, left, bottom, right in extent.merged
        if top in by_number and left <= extent.last_column
    ]
    if sum((bottom - top + 1) * (right - left + 1) for top, left, bottom, right in areas) > MOST_CELLS:
        raise ValueError(f"its areas of merged cells have more than {MOST_CELLS:,} cells")
    for top, left, bottom, right in areas:
        first = by_number[top]
        for row in filter(None, map(by_number.get, range(top, bottom + 1))):
            for index in range(left - 1, right):
                row.texts[index] = first.texts[left - 1]
                if left - 1 in first.faults:
                    row.faults[index] = first.faults[left - 1]


def _records(rows: Sequence[SheetRow], reads: Callable[[str], bool], delimiter: str) -> Iterator[SourceRecord]:
    """Return the records, the header first; without a delimiter they have no bytes."""
    header = list[str]()
    for number, texts, faults in rows:
        cells = [text.strip() for text in texts]
        if not any(cells) and not faults:
            continue
        while cells and not cells[-1] and len(cells) > len(header):
            cells.pop()
        source = csv_line(cells, delimiter)
        wrong = sorted(index for index in faults if not header or (index < len(header) and reads(header[index])))
        header = header or cells
        if wrong:
            name, text = _cell_name(number, wrong[0] + 1), texts[wrong[0]]
            remedy = "correct the cell in the workbook"
            yield number, Refused("bad_csv", name, text, faults[wrong[0]], remedy=remedy), source
        else:
            yield number, cells, source


def _row_and_column(reference: str) -> tuple[int, int]:
    """Return the row and the column of a cell. Raises ValueError.

    >>> _row_and_column("A1"), _row_and_column("AB12")
    ((1, 1), (12, 28))
    """
    letters = reference.rstrip("0123456789")
    if not 1 <= len(letters) <= 3 or not letters.isascii() or not letters.isupper() or len(reference) > 10:
        raise ValueError(f"{reference[:20]!r} is no cell")
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - ord("A") + 1
    return int(reference[len(letters) :]), column


def _cell_name(row: int, column: int) -> str:
    """Return the name of a cell.

    >>> _cell_name(7, 2), _cell_name(12, 28)
    ('B7', 'AB12')
    """
    letters = ""
    while column:
        column, remainder = divmod(column - 1, 26)
        letters = chr(ord("A") + remainder) + letters
    return f"{letters}{row}"
