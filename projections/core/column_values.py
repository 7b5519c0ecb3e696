"""The columns of tables: their kinds, their internal values, and the printed form of these."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import (
    FIRST_INSTANT,
    LAST_INSTANT,
    MONEY,
    MOST_DECIMALS,
    PROBABILITY,
    format_fixed,
    format_instant,
)
from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.core.codes import Codes
from forecast_ledger.projections.core.lazy_fractions import round_to_units
from forecast_ledger.projections.core.wide_int import WideInt

POINTS = 10**9  # published units in 1
PROBABILITIES = 10**11  # published units in 1
MEASURE = 10**MOST_DECIMALS  # published units in 1 of the value of a numeric question
_MANY = 64  # instants that are printed faster together
_INSTANTS = 1 << 16  # size of the cache of printed instants; those of a question recur with each forecast on it
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
    codes = Codes()
    return Ids(int64_array([codes.add(text) for text in texts]), codes.labels)


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
    found = transpose(rows, len(columns))
    return [ids(values) if each.kind == "id" else values for each, values in zip(columns, found, strict=True)]


def concatenate(pages: Sequence[Int64Array | WideInt | list[int]]) -> Int64Array | WideInt | list[int]:
    """Return the pages of a column joined; a list unless all pages are of one type.

    >>> concatenate([int64_array([1]), [2]]), concatenate([int64_array([1]), int64_array([2])])
    ([1, 2], array([1, 2]))
    """
    pages = [page for page in pages if row_count(page)] or pages[:1]
    if len(pages) == 1:
        return pages[0]
    if all(isinstance(page, WideInt) for page in pages):
        return WideInt(*(np.concatenate(words) for words in zip(*pages, strict=True)))
    if all(isinstance(page, np.ndarray) for page in pages):
        return np.concatenate(pages)
    return [number for page in pages for number in plain_values(page)]


def used_ids(column: Ids) -> Ids:
    """Return a column of ids without the labels that no row has.

    >>> used_ids(Ids(int64_array([2, 0, 2]), ["ada", "bo", "cy"]))
    Ids(codes=array([1, 0, 1]), labels=['ada', 'cy'])
    """
    place = np.zeros(len(column.labels), np.int64)
    place[column.codes] = 1
    used = np.flatnonzero(place)
    place[used] = np.arange(len(used))
    return Ids(place[column.codes], [column.labels[code] for code in used.tolist()])


def join_ids(pages: Sequence[Ids]) -> Ids:
    """Return the pages of a column of ids joined.

    >>> join_ids([ids(["ada", "bo"]), ids(["bo", "cy"])])
    Ids(codes=array([0, 1, 1, 2]), labels=['ada', 'bo', 'cy'])
    """
    codes, joined = Codes(), [np.zeros(0, np.int64)]
    for page in pages:
        place = int64_array([codes.add(label) for label in page.labels])
        joined.append(place[page.codes])
    return Ids(np.concatenate(joined), codes.labels)


def join_values(pages: Sequence[Values]) -> Values:
    """Return the pages of a column joined, whether of ids or of others.

    >>> join_values([int64_array([1]), [None]])
    [1, None]
    """
    found = [page for page in pages if isinstance(page, Ids)]
    if len(found) == len(pages):
        return join_ids(found)
    return concatenate([page for page in pages if not isinstance(page, Ids)])


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
    """A kind of column: the unit of its internal values, and the function that prints one."""

    unit: str
    printed: Callable[[Any], Any]


# Kinds "id", "instant", … of columns. Values are integers internally: an array, a list where a value may be missing or
# wider than 64 bits, a WideInt where many values may be wider.
KINDS: dict[str, Kind] = {
    "id": Kind("text", str),
    "text": Kind("text", str),
    "instant": Kind("µs since the epoch, UTC", lru_cache(_INSTANTS)(format_instant)),
    "probability": Kind("1e-11", lambda value: format_fixed(value, PROBABILITIES)),
    "measure": Kind("1e-12", lambda value: format_fixed(value, MEASURE)),
    "points": Kind("1e-9, rounded once", lambda value: format_fixed(value, POINTS, least=9)),
    "term": Kind("1e-12", lambda value: format_fixed(value, 10**12, least=12)),
    "take": Kind("decimal text, rounded once", str),
    "share": Kind("1e-9, rounded once", lambda value: format_fixed(value, POINTS, least=9)),
    "money": Kind("1e-6", lambda value: format_fixed(value, MONEY, least=2)),
    "fine_money": Kind("1e-15", lambda value: format_fixed(value, FINE_MONEY, least=2)),
    "seconds": Kind("µs", lambda value: format_fixed(value, 10**6)),
    "count": Kind("", int),
    "integer": Kind("", str),
}


def row_count(values: Values) -> int:
    """Return the number of rows of a column."""
    return len(values[0]) if isinstance(values, Ids | WideInt) else len(values)


def slice_rows(values: Values, span: slice) -> Values:
    """Return the values of consecutive rows."""
    if isinstance(values, Ids):
        return Ids(values.codes[span], values.labels)
    return WideInt(*(word[span] for word in values)) if isinstance(values, WideInt) else values[span]


def plain_values(values: Values) -> list[Any]:
    """Return the internal values of a column: integers, ids as text, None for missing values."""
    if isinstance(values, Ids):
        labels = values.labels
        return [labels[code] for code in values.codes.tolist()]
    if isinstance(values, WideInt):
        return values.integers()
    return values if isinstance(values, list) else values.tolist()


def take_rows(values: Values, index: Int64Array) -> Values:
    """Return the values of the rows at these indices."""
    if isinstance(values, Ids):
        return Ids(values.codes[index], values.labels)
    if isinstance(values, WideInt):
        return values.take(index)
    return [values[i] for i in index.tolist()] if isinstance(values, list) else values[index]


def printed_values(values: Sequence[Any], kind: str) -> Sequence[Any]:
    """Return the printed values of a column of this kind; each distinct value is printed once.

    >>> printed_values([5 * 10**10, None, 5 * 10**10], "probability")
    ['0.5', None, '0.5']
    """
    if kind in {"id", "text"}:
        return values
    distinct = set(values)
    if kind == "instant" and len(distinct) > _MANY:
        texts = _printed_instants(distinct)
    else:
        texts = {value: None if value is None else KINDS[kind].printed(value) for value in distinct}
    return [texts[value] for value in values]


def _printed_instants(values: set[int | None]) -> dict[int | None, str | None]:
    """Return the text of each instant, as `format_instant` prints it, in half of its time.

    >>> len(_printed_instants({None, *range(100)})), _printed_instants({10**15, 1})
    (101, {1000000000000000: '2001-09-09T01:46:40Z', 1: '1970-01-01T00:00:00.000001Z'})
    """
    micros = [value for value in values if value is not None]
    if min(micros) < FIRST_INSTANT or max(micros) > LAST_INSTANT:
        raise OverflowError("an instant outside the years 1 to 9999")
    texts = np.datetime_as_string(int64_array(micros).astype("datetime64[us]")).tolist()
    found: dict[int | None, str | None] = {None: None} if len(micros) < len(values) else {}
    for value, text in zip(micros, texts, strict=True):
        found[value] = f"{text.removesuffix('.000000')}Z"
    return found
