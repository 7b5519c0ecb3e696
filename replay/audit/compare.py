"""Compare two logs: the first event that differs, and the projections that differ."""

import io
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from fractions import Fraction
from itertools import chain, islice, zip_longest
from pathlib import Path
from shlex import quote
from typing import IO, Any, NamedTuple

import msgspec

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Corrupt, Refused, Unavailable
from forecast_ledger.ledger.core.files import open_regular
from forecast_ledger.ledger.core.hints import in_list, nearest
from forecast_ledger.ledger.core.redaction import redacted
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.storing.database import MAX_ROW_BYTES
from forecast_ledger.ledger.storing.stored_log import PAGE
from forecast_ledger.projections.core.columns import DECIMALS, Column
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.facts import from_log
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.files.manifest import Manifest, is_segments, read_manifest
from forecast_ledger.replay.files.restore import exported_pages as exported
from forecast_ledger.replay.mapping.csv_reader import CsvRecord, read_records
from forecast_ledger.replay.reading.blocks import escape_formula
from forecast_ledger.replay.reading.event_text import OutcomeNames, Outcomes, unnamed
from forecast_ledger.replay.reading.log import AsOf, Cut, Log, OnProgress
from forecast_ledger.replay.reading.replay import TableSummary, summarize_tables

COMPARISON_COLUMNS = ["projection", "same", "rows", "digest", "other_rows", "other_digest"]


class ComparedLog(NamedTuple):
    """A log as of a cut: a ledger in a store, an export, or a file of rows as JSON lines."""

    location: str
    name: str = "main"
    as_of: AsOf = None

    def __str__(self) -> str:
        """Return the location and cut, without a password."""
        cut = "" if self.as_of is None else f"@{self.as_of}"
        return redacted(self.location) + cut


class FirstDifference(NamedTuple):
    """The first log position at which two logs differ, and the event of each there; None if the log ends before it.

    outcomes: the names of the outcomes of the questions opened before it.
    """

    position: int
    one: Recorded | None
    other: Recorded | None
    outcomes: Outcomes = unnamed

    def fields(self) -> list[str]:
        """Return the fields that differ, if both logs have a row at this position."""
        one, other = self.one, self.other
        if one is None or other is None:
            return []
        names = [
            name for name in ("recorded_at", "command_id", "command") if getattr(one, name) != getattr(other, name)
        ]
        if type(one.event) is not type(other.event):
            return [*names, "type"]
        inside = one.event.__struct_fields__
        return [*names, *(f"event.{name}" for name in inside if getattr(one.event, name) != getattr(other.event, name))]


class LogComparison(NamedTuple):
    """The first difference between two logs, the end of each, and the projections of each that are built by default."""

    first_difference: FirstDifference | None
    heads: tuple[Checkpoint, Checkpoint]
    built: tuple[dict[str, TableSummary], dict[str, TableSummary]]

    def apart(self) -> list[str]:
        """Return the projections that differ."""
        one, other = self.built
        return [name for name in one if one[name] != other[name]]


def parse_log(text: str, name: str = "main", as_of: AsOf = None) -> ComparedLog:
    """Return the log that LOG or LOG@POSITION names; as_of applies if there is no position.

    >>> parse_log("season.db@34", as_of=7), parse_log("ada@db.example/season")[::2]
    (ComparedLog(location='season.db', name='main', as_of=34), ('ada@db.example/season', None))
    """
    location, _, position = text.rpartition("@")
    if location and position.isdecimal() and position.isascii() and len(position) < 19 and not Path(text).exists():
        return ComparedLog(location, name, int(position))
    return ComparedLog(text, name, as_of)


def compare_logs(one: ComparedLog, other: ComparedLog, on_progress: OnProgress = lambda _: None) -> LogComparison:
    """Compare two logs event by event, and their projections.

    Raises, first that applies: Refused (a cut is not valid, or beyond its log), Unavailable, Corrupt.
    """
    cuts = Cut(one.as_of, on_progress), Cut(other.as_of)
    with _events(one, cuts[0]) as ours, _events(other, cuts[1]) as theirs:
        first_difference = _first_difference(ours, theirs)
    if first_difference is None:
        head, built = _summarize(one, on_progress)
        return LogComparison(None, (head, cuts[1].reached()), (built, built))
    (head, built), (other_head, other_built) = _summarize(one, on_progress), _summarize(other, on_progress)
    return LogComparison(first_difference, (head, other_head), (built, other_built))


def _first_difference(ours: Iterator[Recorded], theirs: Iterator[Recorded]) -> FirstDifference | None:
    """Return the first difference. A digest covers all rows before it: equal digests mean equal logs so far."""
    names = OutcomeNames()
    for position, (one, other) in enumerate(zip_longest(ours, theirs), 1):
        if one is None or other is None or one.digest != other.digest:
            return FirstDifference(position, one, other, names.of)
        names.learn(one.event)
    return None


def _summarize(compared: ComparedLog, on_progress: OnProgress) -> tuple[Checkpoint, dict[str, TableSummary]]:
    cut = Cut(compared.as_of, on_progress)
    with _rows(compared) as pages:
        facts = from_log.facts(_name_log(compared, cut.read(pages)))
    return cut.reached(), summarize_tables(facts)


@contextmanager
def _events(compared: ComparedLog, cut: Cut) -> Iterator[Iterator[Recorded]]:
    with _rows(compared) as pages:
        yield chain.from_iterable(_name_log(compared, cut.read(pages)))


def _name_log(compared: ComparedLog, pages: Iterator[Sequence[Recorded]]) -> Iterator[Sequence[Recorded]]:
    """Pass the pages on; name the log in the message of a Corrupt."""
    try:
        yield from pages
    except Corrupt as damage:
        raise Corrupt(damage.position, f"{compared}: {damage.args[1]}", damage.check) from None


@contextmanager
def _rows(compared: ComparedLog) -> Iterator[Iterator[Sequence[bytes]]]:
    """Return the rows of a log, page by page."""
    if not _is_text(compared.location):
        manifest = _manifest(Path(compared.location))
        if manifest is not None:
            with closing(_export_rows(compared.location, manifest)) as pages:
                yield pages
            return
        with Log(compared.location, compared.name).opened() as store:
            yield store.pages()
        return
    with open_regular(Path(compared.location).resolve()) as file:
        lines = (line.strip() for line in iter(lambda: file.readline(MAX_ROW_BYTES), b""))
        rows = (_row(line) for line in lines if line)
        yield iter(lambda: list(islice(rows, PAGE)), [])


def _manifest(path: Path) -> Manifest | None:
    """Return the manifest of an export, or None for a store. Raises Unavailable: another folder or a FIFO."""
    if path.is_dir():
        return None if is_segments(path) else read_manifest(path)
    if path.exists() and not path.is_file():
        raise Unavailable(f"{path}: not a regular file")
    try:
        return read_manifest(path) if path.is_file() else None
    except Unavailable:
        return None


def _export_rows(location: str, manifest: Manifest) -> Generator[list[bytes], None, None]:
    """Return the rows of the log in an export, page by page. Raises Unavailable: rows are missing."""
    count = 0
    with closing(exported(Path(location), manifest)) as pages:
        for rows in pages:
            count += len(rows)
            yield rows
    if count != manifest.log_position:
        raise Unavailable(f"{location}: not a complete export: it has {count} events of {manifest.log_position}")


def _is_text(location: str) -> bool:
    """Return whether it is a file that starts like JSON lines."""
    try:
        with open_regular(Path(location).resolve()) as file:
            return file.read(1) == b"{"
    except (OSError, ValueError):
        return False


class _Line(msgspec.Struct):
    """The row of the log in a line of an export; other fields are ignored."""

    row: str | None = None


_line = msgspec.json.Decoder(_Line)


def _row(line: bytes) -> bytes:
    """Return the row in a line: the line itself, or its field `row` if it is from an export."""
    try:
        row = _line.decode(line).row
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return line  # the check of the row reports what is wrong
    return line if row is None else row.encode("utf-8", "replace")


# --- Compare a table that somebody else published as a CSV with the same table of a log.


DIFFERENCE_COLUMNS = ("line", "row", "column", "claimed", "ours")  # after the columns of the key
LARGEST_CLAIM = 2**28  # bytes
MOST_STRANGE = 100_000  # rows of a file that our table does not have, or that are repeated
MOST_SUGGESTED = 5  # contests in a remedy
_DELIMITERS = ",;\t|"
_MISSING = {"", "-", "\N{EM DASH}", "na", "n/a", "nan", "nat", "none", "null"}  # no number or instant, in any case
_ROUNDED = {*DECIMALS, "take"}  # kinds of columns with decimals
_GROUPED = r"[1-9][0-9]{0,2}(?:,[0-9]{3})+"
_DASHES = {ord("\N{MINUS SIGN}"): "-", ord("\N{EN DASH}"): "-"}
_SWAPPED = {ord(","): ".", ord("."): ","}
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

    cell_of: column of ours -> the index of its cell. skipped: names of the file's columns that are not compared.
    decimal_comma: whether its numbers have a comma before the decimals.
    """

    cell_of: dict[str, int]
    width: int
    delimiter: str
    skipped: list[str]
    records: Iterator[CsvRecord]
    decimal_comma: bool = False


class ReadNumber(NamedTuple):
    """A number as it is printed; decimals: how many it has, below 0 if its exponent is greater."""

    value: Fraction
    decimals: int


def read_claim(
    file: IO[bytes],
    columns: Sequence[Column],
    renamed: Mapping[str, str] | None = None,
    ignored: Iterable[str] = (),
    *,
    others: bool = False,
) -> Claim:
    """Read the header of a published table.

    columns: of our table. renamed: column of the file -> column of ours. ignored: columns of the file to leave out;
    others: so are those that our table does not have. Names are matched without regard to case, and with spaces for
    underscores. The delimiter is that of `,`, `;`, tab and `|` with which the header names most columns.

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
        raise _bad(f"the file has no column {name!r}", f"it has: {in_list(filter(None, header))}")
    cell_of: dict[str, int] = {}
    skipped = []
    for index, name in enumerate(header):
        column = renamed.get(name, _plain(name))
        if not name or name in ignored or (others and column not in ours):
            skipped.append(name)
        elif column not in ours:
            near = nearest(column, ours)
            wrong = f"our table has no column {name!r}{f'; the nearest is {near}' * bool(near)}"
            raise _bad(wrong, f"use --rename '{name}={near or 'COLUMN'}' or --ignore '{name}'")
        elif column in cell_of:
            raise _bad(f"the file has the column {column!r} twice", "leave one of them out")
        else:
            cell_of[column] = index
    numbers = [cell_of[column.name] for column in columns if column.name in cell_of and column.kind not in _COMPARED_AS]
    return Claim(cell_of, len(header), delimiter, skipped, records, _has_decimal_comma(text, delimiter, numbers))


def _has_decimal_comma(text: bytes, delimiter: str, cells: Sequence[int]) -> bool:
    """Return whether the numbers of a file, in the cells with these indices, have a comma before the decimals.

    So it is if a number can only be read so, or has a comma in a file with semicolons, and no number can only be read
    with a decimal point: 1,5 and 0,125 can only be read so, 1,234 both ways, and 1,234.5 and 0.5 only the other way.
    """
    if b"," not in text or (delimiter == "," and b'"' not in text):
        return False
    has_comma = False
    for _, row in read_records(io.BytesIO(text), delimiter):
        for cell in [] if isinstance(row, Refused) else [row[index] for index in cells if index < len(row)]:
            if "," in cell or "." in cell:
                point, comma = read_number(cell), read_number(cell, decimal_comma=True)
                if point and not comma:
                    return False
                has_comma = has_comma or (comma is not None and ("," in cell and (not point or delimiter == ";")))
    return has_comma


def records_of(claim: Claim) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the cells of each row of a claim. Refuses: bad_csv."""
    return (_row_of(record, claim.width) for record in claim.records)


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
        self._key = [name for name in self._whole_key if name in claim.cell_of]
        absent = [name for name in self._whole_key if name not in claim.cell_of]
        if not self._key:
            wrong = f"the file has no column of the key of {table.name}: {', '.join(absent)}"
            raise _bad(wrong, "rename one with --rename 'THEIRS=COLUMN'")
        self._ours: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in table.rows():
            key = tuple(_key_value(row[name], self._kinds[name]) for name in self._key)
            if key in self._ours:
                wrong = f"rows of {table.name} cannot be told apart by {', '.join(self._key)} alone"
                raise _bad(wrong, _contests_first(table, absent))
            self._ours[key] = row

    def differences(self) -> Iterator[ClaimDifference]:
        """Yield the differences: those of each row of the file, then the rows that it lacks.

        Refuses: bad_csv (a row that cannot be read, or with more or fewer cells than the header; more than
        `MOST_STRANGE` rows that our table does not have once).
        """
        seen, strange = set[tuple[Any, ...]](), 0
        for line, cells in records_of(self._claim):
            self.rows += 1
            texts = {name: cells[index] for name, index in self._claim.cell_of.items()}
            self.contests |= {text for name, text in texts.items() if name == "contest" and text}
            comma = self._claim.decimal_comma
            key = tuple(_key_value(texts[name], self._kinds[name], decimal_comma=comma) for name in self._key)
            named = tuple(texts.get(name) for name in self._whole_key)
            strange += key in seen or key not in self._ours
            if strange > MOST_STRANGE:
                raise _bad(
                    f"more than {MOST_STRANGE:,} rows of the file are not in {self._table.name}, or repeated",
                    f"give --table the table that the file has, or leave out rows that are not of {self._table.name}",
                )
            if key in seen:
                yield ClaimDifference(named, line, "repeated")
            elif key not in self._ours:
                yield ClaimDifference(named, line, "extra")
            else:
                different = list(self._values(texts, self._ours[key]))
                self.agreeing += not different
                for column, claimed, ours in different:
                    yield ClaimDifference(self._named(self._ours[key]), line, "differs", column, claimed, ours)
            seen.add(key)
        if not self._partial:
            for key, row in self._ours.items():
                if key not in seen:
                    yield ClaimDifference(self._named(row), None, "missing")

    def _named(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self._whole_key)

    def _values(self, texts: Mapping[str, str], ours: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
        """Yield the values of a row that differ: column, claimed, ours."""
        comma = self._claim.decimal_comma
        for column, claimed in texts.items():
            if column in self._key:
                continue
            kind = self._kinds[column]
            if kind in _ROUNDED and (number := read_number(claimed, decimal_comma=comma)):
                decimals = max(0, number.decimals)
                least, most = self.decimals.get(column, (decimals, decimals))
                self.decimals[column] = min(least, decimals), max(most, decimals)
            if not agrees(claimed, ours[column], kind, decimal_comma=comma):
                yield column, claimed, ours[column]


def agrees(claimed: str, ours: Any, kind: str, *, decimal_comma: bool = False) -> bool:
    """Return whether a claimed text agrees with a value of ours, as printed, in a column of a kind.

    Numbers agree if they differ by at most half a unit in the claim's last place: so they do however a tie is rounded.
    Decimals beyond those that our column has are rounded alike. An instant may have any offset from UTC. Where ours is
    empty, so may the claim be, or have a dash or a word for it.

    >>> agrees("0.13", "0.125000000", "points"), agrees("0.12", "0.125000000", "points"), agrees("0.1", "0.2", "points")
    (True, True, False)
    """
    text = "" if ours is None else str(ours).strip()
    if claimed == text:
        return True
    if not text and kind not in {"id", "text"}:
        return claimed.lower().translate(_DASHES) in _MISSING
    if kind in _COMPARED_AS:
        return bool(_COMPARED_AS[kind](claimed) == _COMPARED_AS[kind](text))
    theirs, mine = read_number(claimed, decimal_comma=decimal_comma), read_number(text)
    if theirs is None or mine is None:
        return False
    ours_has = mine.decimals if kind == "take" else DECIMALS.get(kind, theirs.decimals)
    return abs(theirs.value - mine.value) * 2 <= Fraction(10) ** -min(theirs.decimals, ours_has)


def read_number(text: str, *, decimal_comma: bool = False) -> ReadNumber | None:
    """Read a number as people print it; None if it is none.

    It may have commas between thousands, a currency sign, an exponent, a percent sign, and a minus sign or an en dash
    in place of a hyphen. decimal_comma: a comma is before its decimals, and points are between thousands.

    >>> read_number("1,234.5"), read_number("12.5%").decimals, read_number("1,5")
    (ReadNumber(value=Fraction(2469, 2), decimals=1), 3, None)
    >>> read_number("1.234,5", decimal_comma=True)
    ReadNumber(value=Fraction(2469, 2), decimals=1)
    """
    matched = _NUMBER.fullmatch(text.translate(_DASHES | _SWAPPED if decimal_comma else _DASHES))
    if matched is None:
        return None
    fraction = matched["fraction"] or ""
    digits = int(matched["whole"].replace(",", "") + fraction or "0")
    exponent = int(matched["exponent"] or 0) - len(fraction) - 2 * bool(matched["percent"])
    value = Fraction((-digits if matched["sign"] == "-" else digits) * 10 ** max(exponent, 0), 10 ** max(-exponent, 0))
    return ReadNumber(value, -exponent if digits else max(-exponent, len(fraction)))  # 0e9 is not a rounded number


def _contests_first(table: Table, absent: Sequence[str]) -> str:
    """Return what to do about rows that columns of the key, absent from a file, would tell apart."""
    add = f"add {', '.join(absent)} to the file"
    if "contest" not in absent:
        return add
    names = [*table.by("contest")]
    told = " or ".join(f"--contest {quote(name)}" for name in names[:MOST_SUGGESTED])
    return f"use {told}{' …' * (len(names) > MOST_SUGGESTED)}, or {add}"


def _key_value(value: Any, kind: str, *, decimal_comma: bool = False) -> Any:
    """Return a value of a key in a form that is equal for equal values, however they are printed."""
    text = "" if value is None else str(value).strip()
    if kind in _COMPARED_AS:
        return _COMPARED_AS[kind](text)
    number = read_number(text, decimal_comma=decimal_comma)
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
