"""Values from the cells of a CSV row: templates, value maps and numbers, instants, lists, and shares of about 1."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from itertools import islice
from operator import itemgetter
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import PROBABILITY, WRITTEN_NUMBER, is_instant
from forecast_ledger.replay.mapping.csv_texts import (
    InstantFormat,
    are_rfc_3339,
    instant_reader,
    read_json,
    read_pattern,
    split_list,
    whole_match,
    with_names,
)
from forecast_ledger.replay.mapping.map_parts import read_part

CsvRow = Mapping[str, str]
CsvTable = Mapping[str, Sequence[str]]  # the cells of several rows, by column
ROW_NUMBER = "#"  # stands for the number of the row, unless the file has a column of this name
MISSING = frozenset({"NA", "N/A", "NULL", "null"})  # what a cell for a number or an instant has if it has nothing
UNRESOLVED = MISSING | {"unresolved"}  # what a cell for an answer has if there is none
_NUMBERS = {
    *("probability", "probabilities", "cdf", "quantiles", "samples", "points", "value", "payouts", "weight", "range"),
    *("prices", "bids", "asks", "shares", "amount", "fee"),
}
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]+)\}|[{}]")
_MOST_NAMED = 20  # texts of a map that a message names
_RFC_3339 = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ]|\Z)")
_PLAIN = re.compile(WRITTEN_NUMBER, re.ASCII)
ODDS = "+150"  # the sample of American odds
_ODDS = re.compile(r"(?P<sign>[+-]?)(?P<odds>[1-9][0-9]{2,7})", re.ASCII)
_WIDE = Context(prec=900, Emax=MAX_EMAX, Emin=MIN_EMIN)  # written numbers have at most 800 digits
_NUMBER = re.compile(r"1(\D?)234(\D)5(%?)")


class CellFormat(Struct, frozen=True, forbid_unknown_fields=True, rename={"source": "from"}):
    """The description of a value in a map, where a template alone is not enough.

    source: a template. matches: a pattern of the whole text, whose group, if it has one, is read instead of the text.
    map: text -> the value it stands for; as it is written also the name of a CSV that has them. number: how the file
    writes 1234.5, such as "1.234,5" or "1234.5%". percent: numbers are in percent, with or without the sign. round: to
    so many decimals, half-even. instant: a format of strptime. offset: the UTC offset of instants without one; zone:
    the time zone of the clock that shows them. end_of_day: a date stands for the end of its day. split: the separator
    of the items of a list. json: the cell is JSON. names: the keys of the items, in their order, or the template of a
    cell with their list.
    """

    source: str
    matches: str = ""
    map: dict[str, Any] | None = None
    number: str = ""
    percent: bool = False
    round: Annotated[int, Meta(ge=0, le=30)] | None = None
    instant: str = ""
    offset: str = ""
    zone: str = ""
    end_of_day: bool = False
    split: str = ""
    json: bool = False
    names: list[str] | str | None = None


class FieldValue(NamedTuple):
    """A field's value: the columns that it uses, and a function that reads it from a row.

    The function returns None if these columns are empty. read_column: what it does for several rows, if it is a text or
    an instant of a template; None if one of them may have no value.
    """

    columns: tuple[str, ...]
    read: Callable[[CsvRow], Any]
    read_column: Callable[[CsvTable], Sequence[Any] | None] | None = None


def missing_texts(field: str) -> frozenset[str]:
    """Return the texts of a cell for a field, or a part of one, that count as an empty cell.

    >>> sorted(missing_texts("range.lower")), sorted(missing_texts("title"))
    (['N/A', 'NA', 'NULL', 'null'], [])
    """
    return MISSING if is_instant(field) or re.split(r"[.\[]", field)[0] in _NUMBERS else frozenset()


def field_value(
    description: Any,
    field: str,
    usual: CellFormat,
    needed: Collection[str] = frozenset(),
    missing: frozenset[str] = frozenset(),
) -> FieldValue:
    """Return how to compute a field from a row, by its description in a map. usual: the map's formats of instants.

    needed: the parts without which an object of this field is none; if all of them are empty, it is left out. Another
    part that is a list without items is left out. missing: texts that are an empty cell, beside those of the field.
    Refuses: bad_map.
    """
    if isinstance(description, dict) and "from" in description:
        return _cell_value(read_part(description, CellFormat, field), field, usual, missing)
    if isinstance(description, dict):
        parts = {key: field_value(part, f"{field}.{key}", usual) for key, part in description.items()}
        return _object_value(parts, needed)
    if isinstance(description, list):
        items = [field_value(part, f"{field}[{number}]", usual) for number, part in enumerate(description)]
        columns = tuple(column for item in items for column in item.columns)
        return FieldValue(
            columns, lambda row: _unless_empty(columns, row, lambda: [_or_empty(item.read(row)) for item in items])
        )
    if isinstance(description, str):
        return _cell_value(CellFormat(description), field, usual, missing)
    constant = description.isoformat() if hasattr(description, "isoformat") else description
    if constant is not description and is_instant(field):
        constant = instant_reader(_instants(CellFormat(""), usual, ""), field)(constant)
    return FieldValue((), lambda _: constant)


def or_left_out(value: FieldValue) -> FieldValue:
    """Return a field that may be left out, and is if it has no items: a cell such as `[]` is empty."""

    def read(row: CsvRow) -> Any:
        cell_value = value.read(row)
        return None if cell_value in ([], {}) else cell_value

    return value._replace(read=read)


def parse_template(text: str, field: str) -> FieldValue:
    """Return a text in which `{Column}` stands for a cell, `{{` and `}}` for braces. Refuses: bad_map.

    >>> parse_template("{User} on {Question ID}", "id").read({"User": "ada", "Question ID": "7"})
    'ada on 7'
    """
    pieces: list[tuple[str, str]] = []
    end = 0
    for piece in _PIECE.finditer(text):
        if piece[0] in {"{", "}"}:
            raise Refused("bad_map", field, text, f"{piece[0]} is alone; write {piece[0] * 2} for the character itself")
        pieces.append((text[end : piece.start()] + ("" if piece[1] else piece[0][0]), piece[1] or ""))
        end = piece.end()
    columns = tuple(column for _, column in pieces if column)
    shape = "".join(before.replace("%", "%%") + "%s" * bool(column) for before, column in [*pieces, (text[end:], "")])
    if not columns:
        return FieldValue((), lambda _: shape % ())
    if shape == "%s":
        return FieldValue(columns, itemgetter(*columns), itemgetter(*columns))
    return FieldValue(
        columns,
        lambda row: shape % tuple([row[column] for column in columns]),
        lambda table: [*map(shape.__mod__, zip(*(table[column] for column in columns), strict=True))],
    )


def _cell_value(cell: CellFormat, field: str, usual: CellFormat, others: frozenset[str] = frozenset()) -> FieldValue:
    text, missing = parse_template(cell.source, field), (missing_texts(field) | others) - {*(cell.map or ())}
    read_text = _matching(cell, field, _reader(cell, field, usual))
    columns = text.columns
    cell_columns = [column for column in columns if column != ROW_NUMBER] or columns

    def read(row: CsvRow) -> Any:
        for column in cell_columns:
            if row[column]:
                cell_text = text.read(row)
                return None if cell_text in missing else read_text(cell_text)
        return None

    def read_column(table: CsvTable) -> Sequence[Any] | None:
        """Return the values of a whole column; None if its cells must be read one by one."""
        if text.read_column is None or any("" in table[column] for column in cell_columns):
            return None
        texts = text.read_column(table) or ()
        if not missing.isdisjoint(texts):
            return None
        is_kept = cell == CellFormat(cell.source) and (not is_instant(field) or are_rfc_3339(texts, usual.instant))
        return texts if is_kept else [*map(read_text, texts)]

    if columns:
        return _named(FieldValue(columns, read, read_column), cell, field, usual)
    constant = text.read({})
    if is_instant(field) and not cell.instant and _RFC_3339.match(constant):  # whatever the cells' format is
        read_text = instant_reader(_instants(cell, usual, ""), field)
    return _named(FieldValue((), lambda _: read_text(constant) if constant else None), cell, field, usual)


def _unless_empty(columns: tuple[str, ...], row: CsvRow, make: Callable[[], Any]) -> Any:
    """Return the value made from a row, or None if it uses columns and all of them are empty."""
    return make() if not columns or any(row[column] for column in columns) else None


def _or_empty(value: Any) -> Any:
    """Return "" for None: a list keeps its empty items, so that the others keep their indices."""
    return "" if value is None else value


def _object_value(parts: dict[str, FieldValue], needed: Collection[str]) -> FieldValue:
    parts = {key: part if key in needed else or_left_out(part) for key, part in parts.items()}
    columns = tuple(column for part in parts.values() for column in part.columns)
    needed_parts = [parts[key] for key in needed if key in parts]

    def read(row: CsvRow) -> dict[str, Any]:
        values = {key: part.read(row) for key, part in parts.items()}
        return {key: value for key, value in values.items() if value is not None}

    def read_unless_empty(row: CsvRow) -> Any:
        if needed_parts and all(
            part.columns and not any(row[column] for column in part.columns) for part in needed_parts
        ):
            return None
        return _unless_empty(columns, row, lambda: read(row))

    return FieldValue(columns, read_unless_empty)


def _reader(cell: CellFormat, field: str, usual: CellFormat) -> Callable[[str], Any]:
    """Return the function that reads the text of a cell that is not empty."""
    _check_format(cell, field)
    if cell.map is not None:
        return lambda text: _translate(text, field, cell.map or {})
    if cell.json:
        return lambda text: read_json(text, field)
    number = _cell_number(cell, field)
    if cell.split:
        return lambda text: [number(item) for item in split_list(text, cell.split, field)]
    if cell.instant or cell.offset or cell.zone or cell.end_of_day or is_instant(field):
        return instant_reader(_instants(cell, usual, cell.instant or usual.instant), field)
    return number


def _matching(cell: CellFormat, field: str, read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return the function that reads what a pattern takes of a text. Refuses: bad_map; the function also bad_csv."""
    if not cell.matches:
        return read
    pattern = read_pattern(cell.matches, f"{field}.matches")
    if pattern.groups > 1:
        raise Refused("bad_map", f"{field}.matches", cell.matches, "it has several groups; write the others as (?:")

    def read_match(text: str) -> Any:
        """Return the value of the last group. Raises Refused(bad_csv): the text does not match."""
        match = whole_match(pattern, text, field)
        if match is None or not match[pattern.groups]:
            remedy = "correct the cell, or the field's `matches` in the map, or leave out such rows with `where`"
            raise Refused("bad_csv", field, text, "the text is not as the field's `matches` asks", remedy=remedy)
        return read(match[pattern.groups])

    return read_match


def _instants(cell: CellFormat, usual: CellFormat, form: str) -> InstantFormat:
    """Return how instants of a cell are written: the offset or zone of the cell, if it has one, not that of the map."""
    clock = cell if cell.offset or cell.zone else usual
    return InstantFormat(form, clock.offset, clock.zone, cell.end_of_day)


def _named(items: FieldValue, cell: CellFormat, field: str, usual: CellFormat) -> FieldValue:
    """Return the items of a list by the names that the map or another cell has."""
    if cell.names is None:
        return items
    if isinstance(cell.names, list):
        names = FieldValue((), lambda _: cell.names)
    else:
        names = _cell_value(CellFormat(cell.names, split=cell.split, json=cell.json), field, usual)

    def read(row: CsvRow) -> dict[str, Any] | None:
        values = items.read(row)
        if values is None or values == []:
            return None
        return with_names(values, names.read(row), field, " ".join(row[column] for column in items.columns))

    return FieldValue(items.columns + names.columns, read)


def _check_format(cell: CellFormat, field: str) -> None:
    is_instant_cell = bool(cell.instant or cell.offset or cell.zone or cell.end_of_day)
    is_number = bool(cell.number or cell.percent or cell.round is not None)
    ways = [cell.map is not None, is_number or bool(cell.split), is_instant_cell, cell.json]
    if sum(ways) > 1 or (cell.names is not None and not cell.split and not cell.json):
        fault = "map, json, instant, and number or split exclude each other; names needs split or json"
        raise Refused("bad_map", field, None, fault)
    if cell.percent and cell.number == ODDS:
        raise Refused("bad_map", field, ODDS, "odds are not in percent")


def number_of(text: str, field: str) -> Decimal:
    """Return the number that a cell has. Refuses: bad_number.

    >>> number_of("1e2", "score") == 100
    True
    """
    if not _PLAIN.fullmatch(text):
        raise Refused("bad_number", field, text, "not a number that can be compared")
    return Decimal(text)


def _translate(text: str, field: str, table: dict[str, Any]) -> Any:
    if text not in table:
        some = ", ".join(map(repr, islice(table, _MOST_NAMED)))
        more = f" and {len(table) - _MOST_NAMED:,} more" * (len(table) > _MOST_NAMED)
        raise Refused("unmapped_value", field, text, f"the field's `map` has only {some}{more}")
    return table[text]


def _cell_number(cell: CellFormat, field: str) -> Callable[[str], str]:
    """Return the function that rewrites the number of a cell as the map says. Refuses: bad_map."""
    sample = cell.number or "1234.5" * cell.percent
    read = _number_reader(sample, field, percent=cell.percent) if sample else str
    decimals = cell.round
    return read if decimals is None else lambda text: _rounded(read(text), field, decimals)


def _rounded(text: str, field: str, decimals: int) -> str:
    """Return a number rounded half-even to so many decimals, as text. Refuses: bad_number.

    >>> _rounded("62.5e-2", "p", 2), _rounded("0.635", "p", 2), _rounded("2e0", "p", 2)
    ('0.62', '0.64', '2e0')
    """
    number, unit = number_of(text, field), Decimal(1).scaleb(-decimals)
    if int(number.as_tuple().exponent) >= -decimals:
        return text
    return f"{number.quantize(unit, ROUND_HALF_EVEN, _WIDE):f}"


def _number_reader(sample: str, field: str, *, percent: bool = False) -> Callable[[str], str]:
    """Return the function that rewrites a number as a decimal. Refuses: bad_map.

    sample: 1234.5 as the file writes it, or +150 for American odds. percent: in percent, with or without the sign. The
    digits before or after the point may be left out.

    >>> _number_reader("1.234,5%", "p")("12,5%"), _number_reader("1234.5", "p")("-.8")
    ('12.5e-2', '-0.8')
    """
    if sample == ODDS:
        return lambda text: _implied_probability(text, field)
    parts = _NUMBER.fullmatch(sample)
    if parts is None or parts[1] == parts[2]:
        raise Refused(
            "bad_map", field, sample, "write 1234.5 as the file does, such as 1234,5 or 1.234,5 or 1234.5%, or +150"
        )
    thousands, point, sign = (re.escape(part) for part in parts.groups())
    sign = "%?" if percent else sign
    whole = r"[0-9]{1,3}(" + thousands + r"[0-9]{3})+|[0-9]+" if thousands else r"[0-9]+"
    shape = re.compile(rf"(?=.?.?[0-9])(?P<sign>[+-]?)(?P<whole>({whole})?)({point}(?P<part>[0-9]*))?\s*{sign}")

    def read(text: str) -> str:
        """Return the number as a plain decimal. Raises Refused(bad_number)."""
        match = shape.fullmatch(text)
        if match is None:
            detail = f"not a number in the map's format, which writes 1234.5 as {sample}"
            remedy = "correct the cell, or the field's `number` in the map"
            raise Refused("bad_number", field, text, detail, remedy=remedy)
        digits = (match["whole"].replace(parts[1], "") if parts[1] else match["whole"]) or "0"
        return match["sign"] + digits + (f".{match['part']}" if match["part"] else "") + ("e-2" if sign else "")

    return read


def _implied_probability(text: str, field: str) -> str:
    """Return the probability that American odds imply: +150 gains 150 on a stake of 100, -200 gains 100 on one of 200.

    It is the stake divided by the stake and the gain together, rounded half-even to nine decimals; the margin of the
    bookmaker stays in it. Refuses: bad_number.

    >>> _implied_probability("+150", "p"), _implied_probability("-200", "p"), _implied_probability("100", "p")
    ('0.400000000', '0.666666667', '0.500000000')
    """
    match = _ODDS.fullmatch(text)
    if match is None:
        detail = "not American odds, such as +150 or -200"
        raise Refused("bad_number", field, text, detail, remedy="correct the cell, or the field's `number` in the map")
    odds = int(match["odds"])
    stake, gain = (odds, 100) if match["sign"] == "-" else (100, odds)
    billionths = half_even(stake * PROBABILITY, stake + gain)
    return f"0.{billionths:09}"


AS_ONE = Decimal("1e-6")  # the ledger takes probabilities whose sum differs from 1 by at most this
LARGEST_SHARE = 1_000  # more than any share, also in percent


def divided_by_sum(shares: Sequence[Decimal], within: Decimal) -> Sequence[Decimal]:
    """Return shares divided by their sum, to 28 digits, or as they are if the ledger takes their sum for 1.

    If one is no share, or all are 0, also as they are: the ledger refuses them.
    Refuses: not_summing_to_one (the sum differs from 1 by more than `within`).

    >>> [*map(str, divided_by_sum([Decimal("0.36"), Decimal("0.54")], Decimal("0.1")))]
    ['0.4', '0.6']
    """
    if any(not 0 <= share <= LARGEST_SHARE for share in shares):
        return shares
    total = sum(shares, Decimal(0))
    if abs(total - 1) > within:
        detail = f"the sum differs from 1 by more than {within:f}"
        raise Refused("not_summing_to_one", "probabilities", str(total), detail)
    return shares if not total or abs(total - 1) <= AS_ONE else [share / total for share in shares]


class Normalize(Struct, frozen=True, forbid_unknown_fields=True):
    """Probabilities are divided by their sum, if it is within this of 1."""

    within: Decimal


def within_of(normalize: Normalize | None, fields: Collection[str], path: str) -> Decimal | None:
    """Return how far a sum may be from 1. Refuses: bad_map."""
    if normalize is None:
        return None
    if "probabilities" not in fields:
        raise Refused("bad_map", path, None, "the command has no field `probabilities`")
    within = normalize.within
    if not within.is_finite() or not 0 < within < (1 if "normalized" not in fields else LARGEST_SHARE):
        raise Refused("bad_map", f"{path}.within", str(within), "give a number between 0 and 1, such as 0.01")
    return within


def normalized(shares: dict[str, Any], within: Decimal) -> dict[str, Any]:
    """Return shares divided by their sum; as they are if one is no number, which is refused later.

    Refuses: not_summing_to_one.
    """
    try:
        numbers = [number_of(str(share), "") for share in shares.values()]
    except Refused:
        return shares
    return dict(zip(shares, divided_by_sum(numbers, within), strict=True))
