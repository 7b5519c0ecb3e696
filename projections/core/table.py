"""Tables as they are published: a schema, columns in one order of rows, and a digest that depends on nothing else."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
import numpy as np

from forecast_ledger.ledger.core.lazy_fractions import rounded
from forecast_ledger.ledger.core.values import MONEY, PROBABILITY, format_fixed, format_instant
from forecast_ledger.projections.core.wide_int import Int64Array, Limbs, column, ordered
from forecast_ledger.projections.facts.columns import Codes

POINTS = 10**9  # published units in 1
_AT_ONCE = 4_096  # rows that are printed
_INSTANTS = 1 << 16  # whose texts are kept: those of a question are printed again with each forecast on it
FINE = MONEY * PROBABILITY  # units in 1 of money, where a share's price is not rounded
_encode = msgspec.json.Encoder().encode


class Ids(NamedTuple):
    """A column of ids as codes, shape (n,), into labels, which are distinct."""

    codes: Int64Array
    labels: Sequence[str]

    def ranks(self) -> Int64Array:
        """Each row's place in the order of the ids' text, equal for equal ids."""
        ranks = np.empty(len(self.labels), np.int64)
        ranks[sorted(range(len(self.labels)), key=self.labels.__getitem__)] = np.arange(len(self.labels))
        in_order: Int64Array = ranks[self.codes]
        return in_order


Values = Ids | Int64Array | Limbs | list[Any]


def ids(texts: list[str]) -> Ids:
    """A column of ids from their texts.

    >>> ids(["bo", "ada", "bo"]).labels
    ['bo', 'ada']
    """
    codes = Codes()
    return Ids(column([codes.add(text) for text in texts]), codes.labels)


def transposed(rows: list[Any], width: int) -> list[list[Any]]:
    """The columns of rows of this width, which there may be none of.

    >>> transposed([(1, 2), (3, 4)], 2), transposed([], 2)
    ([[1, 3], [2, 4]], [[], []])
    """
    return [list(values) for values in zip(*rows, strict=True)] or [[] for _ in range(width)]


def from_rows(rows: list[Any], kinds: str) -> list[Values]:
    """The columns of rows, of these kinds, which there may be none of.

    >>> from_rows([("ada", 1), ("bo", None)], "id count")
    [Ids(codes=array([0, 1]), labels=['ada', 'bo']), [1, None]]
    """
    names = kinds.split()
    return [ids(c) if kind == "id" else c for kind, c in zip(names, transposed(rows, len(names)), strict=True)]


def concatenated(pages: Sequence[Int64Array | Limbs | list[int]]) -> Int64Array | Limbs | list[int]:
    """One page after another, as a list unless they are all of one sort.

    >>> concatenated([column([1]), [2]]), concatenated([column([1]), column([2])])
    ([1, 2], array([1, 2]))
    """
    pages = [page for page in pages if _length(page)] or pages[:1]
    if len(pages) == 1:
        return pages[0]
    if all(isinstance(page, Limbs) for page in pages):
        return Limbs(*(np.concatenate(limbs) for limbs in zip(*pages, strict=True)))
    if all(isinstance(page, np.ndarray) for page in pages):
        return np.concatenate(pages)
    return [number for page in pages for number in plain(page)]


def known(numbers: Int64Array) -> Values:
    """The numbers, none where negative."""
    if len(numbers) and int(numbers.min()) < 0:
        return [None if number < 0 else number for number in numbers.tolist()]
    return numbers


def published(number: Fraction) -> int:
    """Points or a share, exact, in 1e-9, rounded half-even once.

    >>> published(Fraction(2, 3))
    666666667
    """
    return rounded(number, POINTS)


class Kind(NamedTuple):
    """What a column's values are, their unit inside, and how they are printed."""

    unit: str
    printed: Callable[[Any], Any]


# Kinds "id", "instant", … of columns. Integers inside; a list where a value may be missing or wider than 64 bits, limbs
# where all may be wider and are many.
KINDS: dict[str, Kind] = {
    "id": Kind("text", str),
    "text": Kind("text", str),
    "instant": Kind("µs since the epoch, UTC", lru_cache(_INSTANTS)(format_instant)),
    "probability": Kind("1e-11", lambda value: format_fixed(value, 10**11)),
    "points": Kind("1e-9, rounded once", lambda value: format_fixed(value, POINTS, least=9)),
    "term": Kind("1e-12", lambda value: format_fixed(value, 10**12, least=12)),
    "take": Kind("decimal text, rounded once", str),
    "share": Kind("1e-9, rounded once", lambda value: format_fixed(value, POINTS, least=9)),
    "money": Kind("1e-6", lambda value: format_fixed(value, MONEY, least=2)),
    "fine_money": Kind("1e-15", lambda value: format_fixed(value, FINE, least=2)),
    "seconds": Kind("µs", lambda value: format_fixed(value, 10**6)),
    "count": Kind("", int),
    "integer": Kind("", str),
}


class Column(NamedTuple):
    """One column's schema."""

    name: str
    kind: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of one projection, column by column."""

    name: str
    version: int
    columns: tuple[Column, ...]
    values: tuple[Values, ...]

    def sorted_by(self, *names: str) -> "Table":
        """The same rows in order of these columns, none of them a list."""
        if not names:
            return self
        by_name = dict(zip((column.name for column in self.columns), self.values, strict=True))
        order = _order([by_name[name] for name in names])
        return self if (order[1:] > order[:-1]).all() else self.rows_at(order)

    def __len__(self) -> int:
        return _length(self.values[0])

    def digest(self) -> str:
        """SHA-256 over the schema and the values: the same for the same rows, however they came about."""
        schema = [self.name, self.version, [(column.name, column.kind) for column in self.columns], len(self)]
        digest = sha256(_encode(schema))
        for values in self.values:
            for said in _canonical(values):
                digest.update(said)
        return digest.hexdigest()

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each row as printed: decimals, instants and ids as text, counts as integers, None for what is missing."""
        names = [column.name for column in self.columns]
        for row in self.printed():
            yield dict(zip(names, row, strict=True))

    def printed(self) -> Iterator[tuple[Any, ...]]:
        """The same, without the columns' names."""
        for begin in range(0, len(self), _AT_ONCE):
            some = (_sliced(values, slice(begin, begin + _AT_ONCE)) for values in self.values)
            yield from zip(
                *(printed(plain(values), column.kind) for column, values in zip(self.columns, some, strict=True)),
                strict=True,
            )

    def to_arrow(self) -> Any:
        """A pyarrow.Table: decimals as decimal128, instants as timestamps in µs, UTC, counts as int64.

        Raises, first that applies: Unavailable (pyarrow is not installed), Refused (a value has more than 38 digits).
        """
        from forecast_ledger.projections.core.arrow import to_arrow  # noqa: PLC0415 - late: it needs an extra

        return to_arrow(self)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame backed by Arrow, so that decimals stay exact. Raises what `to_arrow` does, ImportError."""
        from pandas import ArrowDtype  # noqa: PLC0415 - late: whoever asks for it has it

        return self.to_arrow().to_pandas(types_mapper=ArrowDtype)

    def to_polars(self) -> Any:
        """A polars.DataFrame with exact decimals. Raises what `to_arrow` does, ImportError."""
        from polars import from_arrow  # noqa: PLC0415 - late: whoever asks for it has it

        return from_arrow(self.to_arrow())

    def only(self, column: str, label: str) -> "Table":
        """The rows that have this id in this column."""
        ids = self._ids(column)
        code = ids.labels.index(label) if label in ids.labels else -1
        return self.rows_at(np.flatnonzero(ids.codes == code))

    def by(self, column: str) -> dict[str, "Table"]:
        """The rows by the id they have in this column, each in the order they are in here."""
        ids = self._ids(column)
        order = ordered(ids.codes)
        codes, first = np.unique(ids.codes[order], return_index=True)
        parts = np.split(order, first[1:]) if len(codes) else []
        return {ids.labels[code]: self.rows_at(rows) for code, rows in zip(codes.tolist(), parts, strict=True)}

    def plain(self) -> Iterator[tuple[Any, ...]]:
        """Each row as it is inside: integers, ids as text, None for what is missing."""
        return zip(*map(plain, self.values), strict=True)

    def common(self, other: "Table", most: int, *, backwards: bool = False) -> int:
        """How many rows, of so many at the beginning or at the end, are the same in both tables before two differ.

        other: of the same projection.
        """
        same = np.ones(most, bool)
        for mine, theirs in zip(self.values, other.values, strict=True):
            same &= _cut(mine, most, backwards) == _cut(theirs, most, backwards)
        if backwards:
            same = same[::-1]
        return most if same.all() else int(np.argmin(same))

    def numbers(self, column: str) -> Any:
        """The values of a column that is none of ids."""
        return self.values[[each.name for each in self.columns].index(column)]

    def _ids(self, column: str) -> Ids:
        ids = self.values[[each.name for each in self.columns].index(column)]
        if not isinstance(ids, Ids):
            raise TypeError(f"{column} is not a column of ids")
        return ids

    def rows_at(self, index: Int64Array) -> "Table":
        """These rows."""
        return replace(self, values=tuple(_taken(values, index) for values in self.values))


def _order(keys: list[Values]) -> Int64Array:
    """The order of rows by the first key, then the next; equal rows stay in order.

    Ids before any number are sorted as one number; often rows that agree in them are in order of the rest already.
    """
    packed, size, rest = np.zeros(_length(keys[0]), np.int64), 1, list[Int64Array]()
    for key in keys:
        if isinstance(key, Ids) and not rest and size * len(key.labels) < 1 << 62:
            packed, size = packed * len(key.labels) + key.ranks(), size * len(key.labels)
        else:
            rest.append(key.ranks() if isinstance(key, Ids) else np.asarray(key))
    order = ordered(packed)
    if rest:
        found, last = packed[order], rest[0][order]
        if len(rest) > 1 or ((found[1:] == found[:-1]) & (last[1:] < last[:-1])).any():
            return np.lexsort([*reversed(rest), packed])
    return order


def _length(values: Values) -> int:
    return len(values[0]) if isinstance(values, Ids | Limbs) else len(values)


def _cut(values: Values, most: int, backwards: bool) -> "np.ndarray[Any, Any]":
    """So many values, to be compared with others."""
    some = _sliced(values, slice(_length(values) - most, None) if backwards else slice(most))
    return some if isinstance(some, np.ndarray) else np.array(plain(some), object)


def _sliced(values: Values, span: slice) -> Values:
    if isinstance(values, Ids):
        return Ids(values.codes[span], values.labels)
    return Limbs(*(limb[span] for limb in values)) if isinstance(values, Limbs) else values[span]


def plain(values: Values) -> list[Any]:
    """A column's values as they are inside: integers, ids as text, None for what is missing."""
    if isinstance(values, Ids):
        labels = values.labels
        return [labels[code] for code in values.codes.tolist()]
    if isinstance(values, Limbs):
        return values.integers()
    return values if isinstance(values, list) else values.tolist()


def _taken(values: Values, index: Int64Array) -> Values:
    if isinstance(values, Ids):
        return Ids(values.codes[index], values.labels)
    if isinstance(values, Limbs):
        return values.take(index)
    return [values[i] for i in index.tolist()] if isinstance(values, list) else values[index]


def printed(values: Sequence[Any], kind: str) -> Sequence[Any]:
    """The values of a column of this kind as printed, each different one worked out once.

    >>> printed([5 * 10**10, None, 5 * 10**10], "probability")
    ['0.5', None, '0.5']
    """
    if kind in {"id", "text"}:
        return values
    texts = {value: None if value is None else KINDS[kind].printed(value) for value in set(values)}
    return [texts[value] for value in values]


def _canonical(values: Values) -> Iterator[bytes | memoryview]:
    """Bytes that depend on the values alone: not on how ids happen to be numbered, nor on the machine's byte order."""
    if isinstance(values, list):
        yield _encode([None if value is None else str(value) for value in values])
    elif isinstance(values, Limbs):
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


def _little_endian(numbers: Int64Array) -> memoryview:
    return np.ascontiguousarray(numbers, "<i8").data
