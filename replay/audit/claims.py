"""Compare a table that somebody else published as a CSV with the same table of a log."""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import IO, Any, NamedTuple

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import nearest
from forecast_ledger.projections.core.columns import DECIMALS, Column
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.mapping.csv_reader import CsvRecord, read_records
from forecast_ledger.replay.reading.text_tables import escape_formula

DIFFERENCE_COLUMNS = ("line", "row", "column", "claimed", "ours")  # after the columns of the key
LARGEST_CLAIM = 2**28  # bytes
_DELIMITERS = ",;\t|"
_MISSING = {"", "na", "n/a", "nan", "nat", "none", "null"}  # where there is no number or instant, in any case
_ROUNDED = {*DECIMALS, "take"}  # kinds of columns with decimals
_GROUPED = r"[0-9]{1,3}(?:,[0-9]{3})+"
_NUMBER = re.compile(
    rf"(?=[^0-9eE]*[0-9])(?P<sign>[+-]?)[$€£]?(?P<whole>{_GROUPED}|[0-9]{{0,400}})(?:\.(?P<fraction>[0-9]{{0,400}}))?"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,3}))?(?P<percent> ?%)?",
    re.ASCII,
)


class ClaimDifference(NamedTuple):
    """A difference: a value, or a row that is missing from the file, extra in it, or repeated.

    line: of the file; None for a missing row. column, claimed, ours: None unless a value differs.
    """

    key: tuple[Any, ...]
    line: int | None
    row: str
    column: str | None = None
    claimed: str | None = None
    ours: Any = None


class Claim(NamedTuple):
    """The header of a published table, and its rows, which are read once.

    places: column of ours -> the place of its cell. skipped: names of the file's columns that are not compared.
    """

    places: dict[str, int]
    width: int
    delimiter: str
    skipped: list[str]
    records: Iterator[CsvRecord]


class ReadNumber(NamedTuple):
    """A number as it is printed; decimals: how many it has, below 0 if its exponent is greater."""

    value: Fraction
    decimals: int


def read_claim(
    file: IO[bytes], columns: Sequence[Column], renamed: Mapping[str, str] | None = None, ignored: Iterable[str] = ()
) -> Claim:
    """Read the header of a published table.

    columns: of our table. renamed: column of the file -> column of ours. ignored: columns of the file to leave out.
    Names are matched without regard to case, and with spaces for underscores. The delimiter is that of `,`, `;`, tab
    and `|` with which the header names most columns.

    Refuses: bad_csv (too large, no header, not a CSV, a column that our table does not have, a column twice).
    """
    renamed, ignored, ours = dict(renamed or {}), {*ignored}, [column.name for column in columns]
    text = file.read(LARGEST_CLAIM + 1)
    if len(text) > LARGEST_CLAIM:
        raise _bad(f"the file has more than {LARGEST_CLAIM:,} bytes", "split it, and compare the parts with --partial")
    first = text[: text.find(b"\n") + 1] or text
    known = {*ours, *map(_plain, renamed), *map(_plain, ignored)}
    delimiter = max(_DELIMITERS, key=lambda each: len(known & {*map(_plain, _first_row(first, each))}))
    records = read_records(io.BytesIO(text), delimiter)
    header = _row_of(next(records, (1, [])))[1]
    if not any(header):
        raise _bad("the file has no header", f"name columns in its first line: {', '.join(ours)}")
    for name in sorted({*renamed, *ignored} - {*header}):
        raise _bad(f"the file has no column {name!r}", f"it has: {', '.join(filter(None, header))}")
    places: dict[str, int] = {}
    skipped = []
    for place, name in enumerate(header):
        column = renamed.get(name, _plain(name))
        if not name or name in ignored:
            skipped.append(name)
        elif column not in ours:
            near = nearest(column, ours)
            wrong = f"our table has no column {name!r}{f'; the nearest is {near}' * bool(near)}"
            raise _bad(wrong, f"use --rename '{name}={near or 'COLUMN'}' or --ignore '{name}'")
        elif column in places:
            raise _bad(f"the file has the column {column!r} twice", "leave one of them out")
        else:
            places[column] = place
    return Claim(places, len(header), delimiter, skipped, records)


class Comparison:
    """The comparison of a claim with a table.

    rows: of the file. agreeing: rows without a difference. decimals: column -> the least and most decimals claimed.
    contests: those that rows of the file name.

    Refuses: bad_csv (the file has no column of the key, or too few to tell rows apart).
    """

    def __init__(self, table: Table, claim: Claim, *, partial: bool = False) -> None:
        """partial: rows that the file lacks are no differences."""
        self.rows = self.agreeing = 0
        self.decimals: dict[str, tuple[int, int]] = {}
        self.contests: set[str] = set()
        self._table, self._claim, self._partial = table, claim, partial
        self._kinds = {column.name: column.kind for column in table.columns}
        self._whole_key = CATALOGUE[table.name].key
        self._key = [name for name in self._whole_key if name in claim.places]
        absent = [name for name in self._whole_key if name not in claim.places]
        if not self._key:
            wrong = f"the file has no column of the key of {table.name}: {', '.join(absent)}"
            raise _bad(wrong, "rename one with --rename 'THEIRS=COLUMN'")
        self._ours: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in table.rows():
            key = tuple(_key_value(row[name], self._kinds[name]) for name in self._key)
            if key in self._ours:
                wrong = f"rows of {table.name} cannot be told apart by {', '.join(self._key)} alone"
                raise _bad(wrong, f"add {', '.join(absent)} to the file" + ", or use --contest" * ("contest" in absent))
            self._ours[key] = row

    def differences(self) -> Iterator[ClaimDifference]:
        """Yield the differences: those of each row of the file, then the rows that it lacks.

        Refuses: bad_csv (a row that cannot be read, or with more or fewer cells than the header).
        """
        seen: dict[tuple[Any, ...], int] = {}
        for record in self._claim.records:
            line, cells = _row_of(record, self._claim.width)
            self.rows += 1
            texts = {name: cells[place] for name, place in self._claim.places.items()}
            self.contests |= {text for name, text in texts.items() if name == "contest" and text}
            key = tuple(_key_value(texts[name], self._kinds[name]) for name in self._key)
            named = tuple(texts.get(name) for name in self._whole_key)
            if key in seen:
                yield ClaimDifference(named, line, "repeated")
            elif key not in self._ours:
                yield ClaimDifference(named, line, "extra")
            else:
                different = list(self._values(texts, self._ours[key]))
                self.agreeing += not different
                for column, claimed, ours in different:
                    yield ClaimDifference(self._named(self._ours[key]), line, "differs", column, claimed, ours)
            seen.setdefault(key, line)
        if not self._partial:
            for key, row in self._ours.items():
                if key not in seen:
                    yield ClaimDifference(self._named(row), None, "missing")

    def _named(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self._whole_key)

    def _values(self, texts: Mapping[str, str], ours: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
        """Yield the values of a row that differ: column, claimed, ours."""
        grouped = self._claim.delimiter != ";"  # such a file may be of a country that writes 1,5
        for column, claimed in texts.items():
            if column in self._key:
                continue
            kind = self._kinds[column]
            if kind in _ROUNDED and (number := read_number(claimed, grouped=grouped)):
                decimals = max(0, number.decimals)
                least, most = self.decimals.get(column, (decimals, decimals))
                self.decimals[column] = min(least, decimals), max(most, decimals)
            if not agrees(claimed, ours[column], kind, grouped=grouped):
                yield column, claimed, ours[column]


def agrees(claimed: str, ours: Any, kind: str, *, grouped: bool = True) -> bool:
    """Return whether a claimed text agrees with a value of ours, as printed, in a column of a kind.

    Numbers agree if they differ by at most half a unit in the claim's last place: so they do however a tie is rounded.
    Decimals beyond those that our column has are rounded alike. An instant may have any offset from UTC.

    >>> agrees("0.13", "0.125000000", "points"), agrees("0.12", "0.125000000", "points"), agrees("0.1", "0.2", "points")
    (True, True, False)
    """
    text = "" if ours is None else str(ours).strip()
    if claimed == text:
        return True
    if not text and kind not in {"id", "text"}:
        return claimed.lower() in _MISSING
    if kind in _COMPARED_AS:
        return bool(_COMPARED_AS[kind](claimed) == _COMPARED_AS[kind](text))
    theirs, mine = read_number(claimed, grouped=grouped), read_number(text)
    if theirs is None or mine is None:
        return False
    ours_has = mine.decimals if kind == "take" else DECIMALS.get(kind, theirs.decimals)
    return abs(theirs.value - mine.value) * 2 <= Fraction(10) ** -min(theirs.decimals, ours_has)


def read_number(text: str, *, grouped: bool = True) -> ReadNumber | None:
    """Read a number as people print it; None if it is none.

    It may have commas between thousands (if grouped), a currency sign, an exponent, a percent sign, and a minus sign
    in place of a hyphen.

    >>> read_number("1,234.5"), read_number("12.5%").decimals, read_number("1,5")
    (ReadNumber(value=Fraction(2469, 2), decimals=1), 3, None)
    """
    matched = _NUMBER.fullmatch(text.replace("\N{MINUS SIGN}", "-"))
    if matched is None or (not grouped and "," in text):
        return None
    fraction = matched["fraction"] or ""
    digits = int(matched["whole"].replace(",", "") + fraction or "0")
    exponent = int(matched["exponent"] or 0) - len(fraction) - 2 * bool(matched["percent"])
    value = Fraction((-digits if matched["sign"] == "-" else digits) * 10 ** max(exponent, 0), 10 ** max(-exponent, 0))
    return ReadNumber(value, -exponent if digits else max(-exponent, len(fraction)))  # 0e9 is not a rounded number


def _key_value(value: Any, kind: str) -> Any:
    """Return a value of a key in a form that is equal for equal values, however they are printed."""
    text = "" if value is None else str(value).strip()
    if kind in _COMPARED_AS:
        return _COMPARED_AS[kind](text)
    number = read_number(text)
    return text if number is None else number.value


def _micros(text: str) -> Any:
    """Return an instant in µs, or a text that is none as it is."""
    try:
        return values.read_instant(text)
    except Refused:
        return text


# Kind of a column whose values are not numbers -> a function that gives equal texts for equal values.
_COMPARED_AS: dict[str, Callable[[str], Any]] = {"id": escape_formula, "text": escape_formula, "instant": _micros}


def _plain(name: str) -> str:
    return "_".join(name.strip().lower().split())


def _first_row(line: bytes, delimiter: str) -> list[str]:
    """Return the cells of a line, none if it cannot be read."""
    _, row = next(read_records(io.BytesIO(line), delimiter), (1, []))
    return [] if isinstance(row, Refused) else row


def _row_of(record: CsvRecord, width: int | None = None) -> tuple[int, list[str]]:
    """Return the line and the cells of a record. Refuses: bad_csv."""
    line, row = record
    if isinstance(row, Refused):
        raise _bad(f"line {line}: {row.detail}", "write a CSV in UTF-8, with every quote closed")
    if width is not None and len(row) != width:
        raise _bad(f"line {line} has {len(row)} cells, and the header has {width}", "write a cell for each column")
    return line, row


def _bad(detail: str, remedy: str) -> Refused:
    return Refused("bad_csv", "", None, detail, remedy=remedy)
