"""The columns of tables: their kinds and values, printed, as Arrow, and in a notebook.

pyarrow is an optional dependency; it is imported when a table is converted.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache, partial
from html import escape
from itertools import chain, count
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.extras import pyarrow
from forecast_ledger.ledger.core.values import (
    MONEY,
    MOST_DECIMALS,
    PROBABILITY,
    format_count,
    format_fixed,
    format_instant,
)
from forecast_ledger.ledger.segments.arrow_arrays import (
    MOST_BYTES,
    array_of_decimals,
    array_of_integers,
    array_of_texts,
    row_numbers,
    text_array,
)
from forecast_ledger.projections.core.arrays import BoolArray, Codes, Int64Array, int64_array
from forecast_ledger.projections.core.late_fractions import round_to_units
from forecast_ledger.projections.core.number_texts import (
    MOST_CHARACTERS,
    Characters,
    decimal_characters,
    instant_characters,
    integer_characters,
    join_characters,
    lines,
    text_characters,
    wide_characters,
)
from forecast_ledger.projections.core.wide_int import WideInt

POINTS = 10**9  # published units in 1
PROBABILITIES = 10**11  # published units in 1
MEASURE = 10**MOST_DECIMALS  # published units in 1 of the value of a numeric question
_MANY = 64  # values that are printed faster together
_instant = lru_cache(1 << 16)(format_instant)  # the instants of a question recur with each forecast on it
FINE_MONEY = MONEY * PROBABILITY  # units in 1 of money, where a share's price is not rounded


class Ids(NamedTuple):
    """A column of ids: codes, shape (n,), that index the distinct labels."""

    codes: Int64Array
    labels: Sequence[str]

    def ranks(self) -> Int64Array:
        """Return the rank of each row's id in the order of the labels' text, shape (n,)."""
        ranks = np.empty(len(self.labels), np.int64)
        ranks[sorted(range(len(self.labels)), key=self.labels.__getitem__)] = np.arange(len(self.labels))
        in_order: Int64Array = ranks[self.codes]
        return in_order


Values = Ids | Int64Array | WideInt | list[Any]


class Column(NamedTuple):
    """The schema of a column."""

    name: str
    kind: str
    meaning: str


def ids(texts: list[str]) -> Ids:
    """Return a column of ids with these texts.

    >>> ids(["bo", "ada", "bo"]).labels
    ['bo', 'ada']
    """
    codes = dict(zip(dict.fromkeys(texts), count(), strict=False))
    return Ids(int64_array([*map(codes.__getitem__, texts)]), [*codes])


def transpose(rows: list[Any], width: int) -> list[list[Any]]:
    """Return the columns of rows; `width` empty columns if there are no rows.

    >>> transpose([(1, 2), (3, 4)], 2), transpose([], 2)
    ([[1, 3], [2, 4]], [[], []])
    """
    return [list(values) for values in zip(*rows, strict=True)] or [[] for _ in range(width)]


def columns_of_rows(rows: list[Any], columns: Sequence[Column]) -> list[Values]:
    """Return the values of these columns of rows, which may be empty.

    >>> columns_of_rows([("ada", 1), ("bo", None)], [Column("who", "id", ""), Column("won", "count", "")])
    [Ids(codes=array([0, 1]), labels=['ada', 'bo']), [1, None]]
    """
    transposed = transpose(rows, len(columns))
    return [ids(values) if each.kind == "id" else values for each, values in zip(columns, transposed, strict=True)]


def join_numbers(pages: Sequence[Int64Array | WideInt | list[int]]) -> Int64Array | WideInt | list[int]:
    """Return the pages of a column joined; a list unless all pages are of one type.

    >>> join_numbers([int64_array([1]), [2]]), join_numbers([int64_array([1]), int64_array([2])])
    ([1, 2], array([1, 2]))
    """
    pages = [page for page in pages if row_count(page)] or pages[:1]
    if len(pages) == 1:
        return pages[0]
    if all(isinstance(page, WideInt) for page in pages):
        return WideInt(*(np.concatenate(words) for words in zip(*pages, strict=True)))
    if all(isinstance(page, np.ndarray) for page in pages):
        return np.concatenate(pages)
    return [*chain.from_iterable(map(plain_values, pages))]


def used_ids(column: Ids) -> Ids:
    """Return a column of ids without the labels that no row has.

    >>> used_ids(Ids(int64_array([2, 0, 2]), ["ada", "bo", "cy"]))
    Ids(codes=array([1, 0, 1]), labels=['ada', 'cy'])
    """
    index = np.zeros(len(column.labels), np.int64)
    index[column.codes] = 1
    used = np.flatnonzero(index)
    index[used] = np.arange(len(used))
    return Ids(index[column.codes], [column.labels[code] for code in used.tolist()])


def join_ids(pages: Sequence[Ids]) -> Ids:
    """Return the pages of a column of ids joined.

    >>> join_ids([ids(["ada", "bo"]), ids(["bo", "cy"])])
    Ids(codes=array([0, 1, 1, 2]), labels=['ada', 'bo', 'cy'])
    """
    if pages and all(page.labels is pages[0].labels for page in pages):
        return Ids(np.concatenate([page.codes for page in pages]), pages[0].labels)
    codes, joined = Codes(), [np.zeros(0, np.int64)]
    for page in pages:
        codes_of_page = int64_array([codes.add(label) for label in page.labels])
        joined.append(codes_of_page[page.codes])
    return Ids(np.concatenate(joined), codes.labels)


def join_values(pages: Sequence[Values]) -> Values:
    """Return the pages of a column joined, whether of ids or of others.

    >>> join_values([int64_array([1]), [None]])
    [1, None]
    """
    id_pages = [page for page in pages if isinstance(page, Ids)]
    if len(id_pages) == len(pages):
        return join_ids(id_pages)
    return join_numbers([page for page in pages if not isinstance(page, Ids)])


def none_where_negative(numbers: Int64Array) -> Values:
    """Return the numbers with None in place of negative ones."""
    if len(numbers) and int(numbers.min()) < 0:
        return [None if number < 0 else number for number in numbers.tolist()]
    return numbers


def round_to_points(number: Fraction) -> int:
    """Return exact points or an exact share in 1e-9, rounded half-even.

    >>> round_to_points(Fraction(2, 3))
    666666667
    """
    return round_to_units(number, POINTS)


class Kind(NamedTuple):
    """A kind of column: the unit of its internal values, and the function that prints one.

    characters: prints many values, each as a row of characters; None if that is no faster.
    """

    unit: str
    printed: Callable[[Any], Any]
    characters: Callable[[Int64Array], Characters] | None = None


def _fixed(words: str, unit: int, least: int = 0) -> Kind:
    """Return a kind of integers in 1/unit that are printed with at least so many decimals. words: the unit."""
    return Kind(
        words,
        partial(format_fixed, unit=unit, least=least),
        partial(decimal_characters, places=len(str(unit)) - 1, least=least),
    )


# Kinds "id", "instant", … of columns. Values are integers internally: an array, a list where a value may be missing or
# wider than 64 bits, a WideInt where many values may be wider.
KINDS: dict[str, Kind] = {
    "id": Kind("text", str),
    "text": Kind("text", str),
    "instant": Kind("µs since the epoch, UTC", _instant, instant_characters),
    "probability": _fixed("1e-11", PROBABILITIES),
    "measure": _fixed("1e-12", MEASURE),
    "points": _fixed("1e-9, rounded once", POINTS, least=9),
    "term": _fixed("1e-12", 10**12, least=12),
    "take": Kind("decimal text, rounded once", str),
    "share": _fixed("1e-9, rounded once", POINTS, least=9),
    "money": _fixed("1e-6", MONEY, least=2),
    "fine_money": _fixed("1e-15", FINE_MONEY, least=2),
    "seconds": _fixed("µs", 10**6),
    "count": Kind("", int, integer_characters),
    "integer": Kind("", str),
}


def row_count(values: Values) -> int:
    """Return the number of rows of a column."""
    return len(values[0]) if isinstance(values, Ids | WideInt) else len(values)


def all_missing(values: Values) -> bool:
    """Return whether a column has rows, and a value in none of them.

    >>> all_missing([None, None]), all_missing([None, 0]), all_missing([])
    (True, False, False)
    """
    return isinstance(values, list) and values[:1] == [None] and values.count(None) == len(values)


def slice_rows(values: Values, span: slice) -> Values:
    """Return the values of consecutive rows."""
    if isinstance(values, Ids):
        return Ids(values.codes[span], values.labels)
    return WideInt(*(word[span] for word in values)) if isinstance(values, WideInt) else values[span]


def plain_values(values: Values) -> list[Any]:
    """Return the internal values of a column: integers, ids as text, None for missing values."""
    if isinstance(values, Ids):
        return [*map(values.labels.__getitem__, values.codes.tolist())]
    if isinstance(values, WideInt):
        return values.integers()
    return values if isinstance(values, list) else values.tolist()


def take_rows(values: Values, index: Int64Array) -> Values:
    """Return the values of the rows at these indices."""
    if isinstance(values, Ids):
        return Ids(values.codes[index], values.labels)
    if isinstance(values, WideInt):
        return values.take(index)
    return [*map(values.__getitem__, index.tolist())] if isinstance(values, list) else values[index]


def printed_values(values: Values, kind: str) -> list[Any]:
    """Return the printed values of a column of this kind.

    >>> printed_values([5 * 10**10, None, 5 * 10**10], "probability")
    ['0.5', None, '0.5']
    """
    return plain_values(values) if kind in {"id", "text"} else written_values(values, kind, lambda printed: printed)


def written_values(values: Values, kind: str, write: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """Return what a function makes of the printed values of a column of this kind, most of which are distinct.

    >>> written_values(ids(["ada", "bo", "ada"]), "id", lambda printed: [f"<{text}>" for text in printed])
    ['<ada>', '<bo>', '<ada>']
    """
    if isinstance(values, np.ndarray):
        return write(_printed(values, kind))
    if isinstance(values, WideInt) and kind == "integer" and row_count(values) > _MANY:
        return write(lines(wide_characters(values)))
    plain = plain_values(values)
    distinct = [*{*plain}]
    written = dict(zip(distinct, write(_printed_list(distinct, kind)), strict=True))
    return [*map(written.__getitem__, plain)]


def printed_characters(values: Values, kind: str) -> tuple[Characters, BoolArray] | None:
    """Return the printed values of a column of numbers as rows of characters, and which of them are not missing.

    Of a missing value the characters are those of 0. None: they are printed one by one.

    >>> printed_characters([5 * 10**10, None], "probability")[1].tolist()
    [True, False]
    """
    if isinstance(values, WideInt) and kind == "integer":
        return wide_characters(values), np.ones(row_count(values), bool)
    characters = KINDS[kind].characters
    if characters is None or isinstance(values, Ids | WideInt):
        return None
    if isinstance(values, np.ndarray):
        return characters(values), np.ones(len(values), bool)
    try:
        numbers = int64_array([0 if value is None else value for value in values])
    except OverflowError:
        return None
    return characters(numbers), np.array([value is not None for value in values])


def _printed_list(values: list[Any], kind: str) -> list[Any]:
    present = [value for value in values if value is not None]
    if kind in {"id", "text"} or not present:
        return values
    texts = _printed(present, kind)
    if len(present) == len(values):
        return texts
    following = iter(texts)
    return [None if value is None else next(following) for value in values]


def _printed(values: Int64Array | list[Any], kind: str) -> list[Any]:
    """Return printed values, none of which is missing; many in a list are printed as an array if they have 64 bits."""
    _, printed, characters = KINDS[kind]
    if characters is not None and len(values) > _MANY:
        with suppress(OverflowError):
            numbers = np.asarray(values, np.int64)
            return numbers.tolist() if printed is int else lines(characters(numbers))
    return [*map(printed, values if isinstance(values, list) else values.tolist())]


# --- Tables as Arrow, exact: decimals in fixed point, instants in µs UTC, counts in 64 bits.
#
# pyarrow is an optional dependency; it is imported when a table is converted.


# How many decimals each kind has that becomes decimal128(38, decimals); internally its values are integers.
DECIMALS = {
    "probability": 11,
    "measure": 12,
    "points": 9,
    "term": 12,
    "share": 9,
    "money": 6,
    "fine_money": 15,
    "seconds": 6,
}
FLOATS = {*DECIMALS, "take"}  # kinds whose values a float can be near
_DIGITS = 38  # of a decimal128


def to_arrow(name: str, version: int, columns: Sequence[Column], values: Sequence[Values]) -> Any:
    """Return a pyarrow.Table of a table's columns; the metadata of each field has its kind and meaning.

    Values of the kinds "integer" and "take" have no bound and become text.

    Raises, first that applies: Unavailable (no pyarrow), Refused (a decimal of more than 38 digits, a count of more
    than 64 bits).
    """
    arrow = pyarrow()
    fields = [
        arrow.field(column.name, type_of(column.kind), metadata={"kind": column.kind, "meaning": column.meaning})
        for column in columns
    ]
    arrays = []
    for column, column_values in zip(columns, values, strict=True):
        try:
            arrays.append(_array(column_values, column.kind))
        except OverflowError as error:
            fault = f"does not fit {type_of(column.kind)}: {error}"
            remedy = "write the table as CSV, JSON or SQLite instead"
            raise Refused("out_of_range", f"{name}.{column.name}", None, fault, remedy=remedy) from None
    metadata = {"table": name, "version": str(version)}
    return arrow.Table.from_arrays(arrays, schema=arrow.schema(fields, metadata=metadata))


def float_columns(table: Any, columns: Sequence[Column], values: Sequence[Values]) -> Any:
    """Return a pyarrow.Table with the nearest float in place of each decimal; a missing one is null.

    columns, values: those that the table was made of.
    """
    for index, (column, numbers) in enumerate(zip(columns, values, strict=True)):
        if column.kind in FLOATS:
            texts = array_of_texts(printed_values(numbers, column.kind))
            table = table.set_column(index, column.name, texts.cast("double"))  # rounded once, as Python reads it
    return table


def type_of(kind: str) -> Any:
    """Return the Arrow type of a kind of column.

    >>> str(type_of("points")), str(type_of("instant"))
    ('decimal128(38, 9)', 'timestamp[us, tz=UTC]')
    """
    arrow = pyarrow()
    if kind in DECIMALS:
        return arrow.decimal128(_DIGITS, DECIMALS[kind])
    return {"instant": arrow.timestamp("us", tz="UTC"), "count": arrow.int64()}.get(kind, arrow.string())


def _array(values: Values, kind: str) -> Any:
    """Return the values of a column as an array, without rounding. Raises OverflowError: one does not fit its type."""
    if isinstance(values, Ids):
        return _id_array(values)
    if all_missing(values):
        return pyarrow().nulls(row_count(values), type_of(kind))
    if kind in DECIMALS or kind in {"instant", "count"}:
        numbers = values if isinstance(values, np.ndarray) else plain_values(values)
        return (array_of_decimals if kind in DECIMALS else array_of_integers)(numbers, type_of(kind))
    if isinstance(values, WideInt) and kind == "integer":
        characters = wide_characters(values)
        return text_array(np.count_nonzero(characters, axis=1), join_characters([characters], len(characters)))
    return array_of_texts(printed_values(values, kind))


def _id_array(values: Ids) -> Any:
    """Return a column of ids as an array, or as several if one might have too many bytes."""
    codes, labels = used_ids(values)
    longest = max((len(label.encode()) for label in labels), default=0)
    if len(codes) * longest > MOST_BYTES:
        at_once = MOST_BYTES // longest
        spans = [slice(begin, begin + at_once) for begin in range(0, len(codes), at_once)]
        return pyarrow().chunked_array([_id_array(Ids(codes[span], labels)) for span in spans])
    if len(codes) * longest > MOST_CHARACTERS:
        return array_of_texts(labels).take(row_numbers(codes))  # imports functions of columns
    characters = text_characters(labels) if len(codes) > _MANY else None
    if characters is None:
        return array_of_texts(plain_values(values))
    sizes = np.count_nonzero(characters, axis=1)
    return text_array(sizes[codes], join_characters([characters.take(codes, axis=0)], len(codes)))


# --- A table in a notebook: as HTML, and as a chart. Its texts come from a log: none is taken for HTML.


SHOWN_ROWS = 50
MOST_CHARTED = 5_000  # rows of a chart, as in Altair
VEGA_LITE = "https://vega.github.io/schema/vega-lite/v5.json"
_MEASURED = ("points", "take", "money", "fine_money", "share", "probability", "measure", "term", "seconds", "count")
_TEXTS = {"id", "text", "instant"}  # kinds of columns that are aligned to the left
_IGNORED = "tex2jax_ignore mathjax_ignore"  # a text with dollar signs is not typeset as mathematics


def html_table(columns: Sequence[Column], rows: Iterable[Sequence[Any]], count: int) -> str:
    """Return rows as printed, under the names of their columns; what a column means is the title of its name.

    count: the number of rows of the whole table, which the last line says.

    >>> html_table([Column("who", "id", "the forecaster")], [("<b>",)], 1).splitlines()[-3]
    '<tr><td style="text-align:left">&lt;b&gt;</td></tr>'
    """
    aligned = ["left" if column.kind in _TEXTS else "right" for column in columns]
    names = "".join(f'<th title="{_text(column.meaning)}">{_text(column.name)}</th>' for column in columns)
    lines = [f'<table class="{_IGNORED}">', f"<tr>{names}</tr>"]
    shown = 0
    for row in rows:
        shown += 1
        cells = zip(aligned, row, strict=True)
        row_cells = "".join(f'<td style="text-align:{side}">{_text(each)}</td>' for side, each in cells)
        lines.append(f"<tr>{row_cells}</tr>")
    told = f"{shown:,} of {count:,} rows" if shown < count else format_count(count, "row")
    return "\n".join([*lines, "</table>", f"<p>{told}</p>"])


class Chart(dict[str, Any]):
    """A Vega-Lite specification with its data, as `altair.Chart.from_dict` reads it; a notebook draws it."""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"application/vnd.vegalite.v5+json": dict(self), "text/plain": f"{self['mark']['type']} chart"}


def chart(columns: Sequence[Column], rows: Sequence[Sequence[Any]], value: str, by: str) -> Chart:
    """Return a chart of one column by another, empty texts for the default; see `Table.chart`."""
    kinds = {column.name: column.kind for column in columns}
    value, by = value or _first_number(kinds), by or _last_name(kinds)
    if len(rows) > MOST_CHARTED:
        raise ValueError(f"{len(rows):,} rows are too many for a chart, which has {MOST_CHARTED:,} at most: see `only`")
    names = [column.name for column in columns]
    ids = [name for name, kind in kinds.items() if kind == "id" and name != by]
    several = [name for name in ids if len({row[names.index(name)] for row in rows}) > 1][:1]
    shown = dict.fromkeys([by, value, *several])
    values = [{name: row[names.index(name)] for name in shown} for row in rows]
    is_time = kinds[by] == "instant"
    sides = {"x": _axis(by, kinds), "y": _axis(value, kinds)}
    if not is_time:  # bars, one below the other, in the order of the rows
        sides = {"y": _axis(by, kinds) | {"sort": None}, "x": sides["y"]}
    divided = {"color" if is_time else "row": {"field": name, "type": "nominal"} for name in several}
    return Chart(
        {
            "$schema": VEGA_LITE,
            "data": {"values": values, "format": {"parse": {value: "number"} | ({by: "date"} if is_time else {})}},
            "mark": {"type": "line", "point": True} if is_time else {"type": "bar"},
            "encoding": sides | divided,
        }
    )


def _axis(name: str, kinds: Mapping[str, str]) -> dict[str, Any]:
    kind = "temporal" if kinds[name] == "instant" else "quantitative" if kinds[name] in _MEASURED else "nominal"
    return {"field": name, "type": kind}


def _first_number(kinds: Mapping[str, str]) -> str:
    """Return the name of the first column with numbers, of a kind that comes first in _MEASURED."""
    for wanted in _MEASURED:
        for name, kind in kinds.items():
            if kind == wanted and name != "rank":
                return name
    raise ValueError("the table has no column with numbers")


def _last_name(kinds: Mapping[str, str]) -> str:
    """Return the name of the last column of ids; the first column, if there is none."""
    named = [name for name, kind in kinds.items() if kind == "id"]
    return named[-1] if named else next(iter(kinds))


def _text(value: Any) -> str:
    """Return a value as text in HTML, with control characters escaped as in Python."""
    text = "" if value is None else str(value)
    return escape(text if text.isprintable() else text.encode("unicode_escape").decode())
