"""Published tables: a schema, columns with their rows in a fixed order, and a digest that depends on nothing else."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import import_module
from itertools import chain
from types import NoneType
from typing import Any

import msgspec
import numpy as np

from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.projections.core import text_table
from forecast_ledger.projections.core.arrays import Int64Array, stable_order
from forecast_ledger.projections.core.columns import (
    MOST_CHARTED,
    SHOWN_ROWS,
    Chart,
    Column,
    Ids,
    Values,
    all_missing,
    chart,
    float_columns,
    html_table,
    join_values,
    plain_values,
    printed_values,
    row_count,
    slice_rows,
    take_rows,
    to_arrow,
)
from forecast_ledger.projections.core.number_texts import join_characters, wide_characters
from forecast_ledger.projections.core.wide_int import WideInt

PART_ROWS = 1 << 18  # of a part of a large table, which has a digest of its own
_AT_ONCE = 4_096  # rows printed together
_encode = msgspec.json.Encoder().encode


@checked()
@dataclass(frozen=True, slots=True)
class Table:
    """Rows of one projection, column by column.

    >>> from forecast_ledger import Table, commands, open_ledger, replay
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline", pool=100)
    >>> with open_ledger(":memory:") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     table: Table = replay(ledger).table("contests")
    >>> len(table), [column.name for column in table.columns][:2], next(table.rows())["pool"]
    (1, ['contest', 'title'], '100.00')

    Rows and columns are as printed: decimals, instants and ids are text, counts are integers, what is missing is None.

    >>> table["pool"], [row["contest"] for row in table]
    (['100.00'], ['spring'])
    """

    name: str
    version: int
    columns: tuple[Column, ...]
    values: tuple[Values, ...]

    def sorted_by(self, *names: str) -> "Table":
        """Return the same rows in the order of these columns, none of which is a list."""
        if not names:
            return self
        by_name = dict(zip((column.name for column in self.columns), self.values, strict=True))
        order = row_order([by_name[name] for name in names])
        return self if (order[1:] > order[:-1]).all() else self.rows_at(order)

    def __len__(self) -> int:
        return row_count(self.values[0])

    def digest(self) -> str:
        """Return the SHA-256 of the schema and the values; tables with the same rows have the same digest.

        That of a table with more than `PART_ROWS` rows is made of the digests of its parts; see `TableParts`.
        """
        if len(self) <= PART_ROWS:
            return self._digest(map(_canonical, self.values))
        parts = TableParts([self])
        for _ in parts:
            pass
        return parts.digest

    def _digest(self, columns: Iterable[Iterable[bytes | memoryview]]) -> str:
        digest = sha256(_encode([*self._schema(), len(self)]))
        for part in chain.from_iterable(columns):
            digest.update(part)
        return digest.hexdigest()

    def _part_digest(self) -> str:
        return self._digest(map(_canonical_in_one_form, self.values, [column.kind for column in self.columns]))

    def _schema(self) -> list[Any]:
        return [self.name, self.version, [(column.name, column.kind) for column in self.columns]]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row as printed: decimals, instants and ids are text, counts integers, missing values None."""
        names = [column.name for column in self.columns]
        for row in self.printed():
            yield dict(zip(names, row, strict=True))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield each row, as `rows` does."""
        return self.rows()

    def __getitem__(self, column: str) -> list[Any]:
        """Return the values of a column as printed. Raises KeyError: no such column; the message has the nearest."""
        values = self.values[self._index_of(column)]
        return [*printed_values(values, self.columns[self._index_of(column)].kind)]

    def __repr__(self) -> str:
        """Return the first rows as printed, no wider than a page."""
        rows = self.rows_at(np.arange(min(text_table.SHOWN_ROWS, len(self)))).printed()
        return text_table.preview(self.name, [column.name for column in self.columns], rows, len(self))

    def _ipython_key_completions_(self) -> list[str]:
        return [column.name for column in self.columns]

    def _index_of(self, column: str) -> int:
        """Return the index of a column. Raises KeyError: there is none with this name."""
        names = [each.name for each in self.columns]
        if column not in names:
            raise KeyError(f"{self.name} has no column {column!r}; it has {listed(str(column), names, len(names))}")
        return names.index(column)

    def printed(self) -> Iterator[tuple[Any, ...]]:
        """Yield each row as printed, without the names of the columns."""
        for page in self.pages():
            named = zip(page.values, page.columns, strict=True)
            yield from zip(*(printed_values(values, column.kind) for values, column in named), strict=True)

    def to_arrow(self, *, floats: bool = False) -> Any:
        """Return a pyarrow.Table: decimals as decimal128, instants as timestamps in µs, UTC, counts as int64.

        floats: if true, decimals are the nearest floats, double in Arrow.
        Raises, first that applies: Unavailable (pyarrow is not installed), Refused (a value has more than 38 digits).
        """
        exact = to_arrow(self.name, self.version, self.columns, self.values)
        return float_columns(exact, self.columns, self.values) if floats else exact

    def to_pandas(self, *, floats: bool = False) -> Any:
        """Return a pandas.DataFrame backed by Arrow, so that decimals stay exact.

        floats: if true, decimals are the nearest floats, and columns are those of NumPy, as plots and statistics want.
        Without it, the sum of two columns of decimals is refused by Arrow, which ends at 38 digits.
        Raises the errors of `to_arrow`, then ImportError (pandas is not installed).
        """
        arrow, pandas = self.to_arrow(floats=floats), _library("pandas")
        return arrow.to_pandas() if floats else arrow.to_pandas(types_mapper=pandas.ArrowDtype)

    def to_polars(self, *, floats: bool = False) -> Any:
        """Return a polars.DataFrame with exact decimals or, if `floats`, the nearest floats.

        Raises the errors of `to_arrow`, then ImportError (polars is not installed).
        """
        arrow = self.to_arrow(floats=floats)
        return _library("polars").from_arrow(arrow)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Hand the table over to a library that reads Arrow, as the Arrow PyCapsule interface has it.

        Raises the errors of `to_arrow`.
        """
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """Return the first rows as HTML, for a notebook."""
        return html_table(self.columns, self.rows_at(np.arange(min(SHOWN_ROWS, len(self)))).printed(), len(self))

    def chart(self, value: str = "", by: str = "") -> Chart:
        """Return a Vega-Lite specification with its data, which a notebook draws: bars, or lines over time.

        `altair.Chart.from_dict` reads it. value: the column with numbers; by default the first with points, else with
        money, and so on. by: the column that they are drawn by; by default the last with ids. If another column of ids
        has several values, each has bars or a line of its own. Numbers are decimal text.

        Raises, first that applies: KeyError (no such column), ValueError (no column with numbers, or more than 5,000
        rows).

        >>> from pathlib import Path
        >>> from forecast_ledger import append, open_ledger, replay
        >>> with open_ledger(":memory:") as ledger, Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
        ...     counts = append(ledger, file)
        ...     board = replay(ledger).table("leaderboard").only("contest", "plain")
        >>> board.chart()["data"]["values"][0]
        {'participant': 'B', 'score': '1.852570525'}
        """
        for name in filter(None, (value, by)):
            self._index_of(name)
        return chart(self.columns, [*self.rows_at(np.arange(min(MOST_CHARTED + 1, len(self)))).printed()], value, by)

    def only(self, column: str, label: str) -> "Table":
        """Return the rows that have this id in this column."""
        ids = self.ids(column)
        code = ids.labels.index(label) if label in ids.labels else -1
        return self.rows_at(np.flatnonzero(ids.codes == code))

    def between(self, column: str, since: int | None, until: int | None) -> "Table":
        """Return the rows with an instant in [since, until), µs, in this column; None is no limit."""
        at = plain_values(self.numbers(column))
        chosen = [
            row
            for row, instant in enumerate(at)
            if instant is not None and (since is None or since <= instant) and (until is None or instant < until)
        ]
        return self.rows_at(np.array(chosen, np.int64))

    def by(self, column: str) -> dict[str, "Table"]:
        """Return the rows grouped by their id in this column; each group keeps the order of this table."""
        ids = self.ids(column)
        order = stable_order(ids.codes)
        codes, first = np.unique(ids.codes[order], return_index=True)
        parts = np.split(order, first[1:]) if len(codes) else []
        return {ids.labels[code]: self.rows_at(rows) for code, rows in zip(codes.tolist(), parts, strict=True)}

    def plain(self) -> Iterator[tuple[Any, ...]]:
        """Yield each row with its internal values: integers, ids as text, None for missing values."""
        return zip(*map(plain_values, self.values), strict=True)

    def common(self, other: "Table", most: int, *, backwards: bool = False) -> int:
        """Return how many rows are equal in both tables before the first that differ, counted from one end.

        other: of the same projection. most: how many rows to compare. backwards: count from the last row.
        """
        same = np.ones(most, bool)
        for mine, theirs in zip(self.values, other.values, strict=True):
            same &= _cut(mine, most, backwards) == _cut(theirs, most, backwards)
        if backwards:
            same = same[::-1]
        return most if same.all() else int(np.argmin(same))

    def numbers(self, column: str) -> Any:
        """Return the values of a column that does not hold ids."""
        return self.values[self._index_of(column)]

    def ids(self, column: str) -> Ids:
        """Return the values of a column of ids. Raises, first that applies: KeyError (no such column), TypeError."""
        ids = self.values[self._index_of(column)]
        if not isinstance(ids, Ids):
            raise TypeError(f"{column} is not a column of ids")
        return ids

    @staticmethod
    def joined(tables: "Sequence[Table]") -> "Table":
        """Return the rows of one or more tables with the same columns, one table after the other."""
        if len(tables) == 1:
            return tables[0]
        return replace(tables[0], values=tuple(map(join_values, zip(*(each.values for each in tables), strict=True))))

    def slice(self, begin: int, end: int) -> "Table":
        """Return the rows from `begin` up to `end`; they are shared, not copied."""
        return replace(self, values=tuple(slice_rows(values, slice(begin, end)) for values in self.values))

    def pages(self) -> "Iterator[Table]":
        """Yield the rows, some at a time."""
        for begin in range(0, len(self), _AT_ONCE):
            yield self.slice(begin, begin + _AT_ONCE)

    def rows_at(self, index: Int64Array) -> "Table":
        """Return the rows at these indices."""
        return replace(self, values=tuple(take_rows(values, index) for values in self.values))


def _library(name: str) -> Any:
    """Return a library of data frames. Raises ImportError, which says how to install it."""
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f"a frame of {name} needs that library; run pip install {name}", name=name) from None


class TableParts:
    """A table, of which only a part has to be in memory at a time.

    Iterating over it yields tables of `PART_ROWS` rows, the last with fewer; there is at least one. Afterwards, `rows`
    and `digest` are those of the whole table, however it was divided. The digest of a table of several parts is the
    SHA-256 of its schema, its number of rows, and the digests of its parts. forms: of each column, that of `form_of`.

    >>> from forecast_ledger.projections.core.columns import Column
    >>> numbers = [Table("numbers", 1, (Column("n", "count", ""),), (np.arange(n, n + 3),)) for n in (0, 3)]
    >>> parts = TableParts(numbers)
    >>> [len(part) for part in parts], parts.rows, parts.digest == Table.joined(numbers).digest()
    ([6], 6, True)
    """

    def __init__(self, tables: Iterable[Table]) -> None:
        """tables: at least one, all with the same columns; their rows follow one another."""
        self._tables = tables
        self.rows = 0
        self.digest = ""
        self.forms: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Table]:
        digests: list[str] = []
        self.rows = 0
        for part in self._parts():
            self.rows += len(part)
            yield part
            whole = self.rows == len(part) < PART_ROWS  # else another part may follow, and this digest is of no use
            digests.append("" if whole else part._part_digest())
        self.forms = tuple(map(form_of, part.values))
        if len(digests) == 1:
            self.digest = part._digest(map(_canonical, part.values))
        else:
            self.digest = sha256(_encode([*part._schema(), self.rows, digests])).hexdigest()

    def _parts(self) -> Iterator[Table]:
        waiting: list[Table] = []
        for table in self._tables:
            waiting.append(table)
            if sum(map(len, waiting)) > PART_ROWS:  # more rows than one part has, so that the last part is not empty
                whole, begin = Table.joined(waiting), 0
                while len(whole) - begin > PART_ROWS:
                    yield whole.slice(begin, begin + PART_ROWS)
                    begin += PART_ROWS
                waiting = [whole.slice(begin, len(whole))]
        yield Table.joined(waiting)


def row_order(keys: list[Values]) -> Int64Array:
    """Return the order of rows by the first key, then the next, none of them a list; equal rows stay in order.

    Ids that precede any number are sorted as one number; rows with equal ids are often in order already.
    """
    packed, size, others = np.zeros(row_count(keys[0]), np.int64), 1, list[Int64Array]()
    for key in keys:
        if isinstance(key, Ids) and not others and size * len(key.labels) < 1 << 62:
            packed, size = packed * len(key.labels) + key.ranks(), size * len(key.labels)
        else:
            others.append(key.ranks() if isinstance(key, Ids) else np.asarray(key))
    if _are_in_order([packed, *others]):
        return np.arange(len(packed))
    order = stable_order(packed)
    if others:
        ranked, last = packed[order], others[0][order]
        if len(others) > 1 or ((ranked[1:] == ranked[:-1]) & (last[1:] < last[:-1])).any():
            return np.lexsort([*reversed(others), packed])
    return order


def _are_in_order(keys: Sequence[Int64Array]) -> bool:
    """Return whether rows are in the order of the first key, then the next."""
    is_equal = np.ones(max(len(keys[0]) - 1, 0), bool)
    for key in keys:
        if (is_equal & (key[1:] < key[:-1])).any():
            return False
        is_equal &= key[1:] == key[:-1]
    return True


def _cut(values: Values, most: int, backwards: bool) -> "np.ndarray[Any, Any]":
    """Return `most` values from one end, as an array that can be compared."""
    part = slice_rows(values, slice(row_count(values) - most, None) if backwards else slice(most))
    return part if isinstance(part, np.ndarray) else np.array(plain_values(part), object)


def _canonical(values: Values) -> Iterator[bytes | memoryview]:
    """Yield bytes that depend on the values alone, not on the codes of ids or the byte order of the machine."""
    if isinstance(values, list):
        yield _encode_texts(values)
    elif isinstance(values, WideInt):
        yield from map(_little_endian, values.carried())
    elif isinstance(values, Ids):
        ranks = np.zeros(len(values.labels), np.int64)
        ranks[values.codes] = 1
        used = sorted(np.flatnonzero(ranks).tolist(), key=values.labels.__getitem__)
        yield _encode([values.labels[code] for code in used])
        ranks[used] = np.arange(len(used))
        yield _little_endian(ranks[values.codes])
    else:
        yield _little_endian(values)


def form_of(values: Values) -> str:
    """Return the form in which the digest of a table has the values of a column.

    >>> form_of(["a", None])
    'texts'
    """
    if isinstance(values, list):
        return "texts"
    return "ids" if isinstance(values, Ids) else "wide" if isinstance(values, WideInt) else "int64"


def _canonical_in_one_form(values: Values, kind: str) -> Iterator[bytes | memoryview]:
    """Yield bytes that depend on the values alone, in whatever form: whole numbers are 64 bits each if all of them fit.

    If not, they are texts.
    """
    if isinstance(values, Ids | np.ndarray) or kind == "text":
        yield from _canonical(values)
    elif isinstance(values, WideInt):
        numbers = values.int64()
        yield _little_endian(numbers) if numbers is not None else _encode_wide(values)
    elif all(type(number) is int and -(1 << 63) <= number < 1 << 63 for number in values):
        yield _little_endian(np.array(values, np.int64))
    else:
        yield _encode_texts(values)


def _encode_texts(values: list[Any]) -> bytes:
    """Return the values as texts in a list of JSON; what is missing is null."""
    if all_missing(values):
        return b"[" + (b"null," * len(values))[:-1] + b"]"
    with suppress(TypeError):  # a type that JSON does not have
        numbers = _encode(values)
        if values and numbers.translate(None, b"0123456789,-nul") == b"[]":  # whole numbers and null
            return (b'["' + numbers[1:-1].replace(b",", b'","') + b'"]').replace(b'"null"', b"null")
        if {*map(type, values)} <= {str, NoneType}:
            return numbers
    return _encode([None if value is None else str(value) for value in values])


def _encode_wide(numbers: WideInt) -> bytes:
    """Return one or more whole numbers as `_encode_texts` does."""
    return b"[" + join_characters([b'"', wide_characters(numbers), b'",'], row_count(numbers))[:-1] + b"]"


def _little_endian(numbers: Int64Array) -> memoryview:
    return np.ascontiguousarray(numbers, "<i8").data
