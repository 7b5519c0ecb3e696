"""The columns of tables: their kinds, their values as they are inside, and how these are printed."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.lazy_fractions import round_to_units
from forecast_ledger.ledger.core.values import MONEY, PROBABILITY, format_fixed, format_instant
from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.core.codes import Codes
from forecast_ledger.projections.core.wide_int import WideInt

POINTS = 10**9  # published units in 1
_INSTANTS = 1 << 16  # whose texts are kept: those of a question are printed again with each forecast on it
FINE = MONEY * PROBABILITY  # units in 1 of money, where a share's price is not rounded


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


Values = Ids | Int64Array | WideInt | list[Any]


def ids(texts: list[str]) -> Ids:
    """A column of ids from their texts.

    >>> ids(["bo", "ada", "bo"]).labels
    ['bo', 'ada']
    """
    codes = Codes()
    return Ids(int64_array([codes.add(text) for text in texts]), codes.labels)


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


def concatenated(pages: Sequence[Int64Array | WideInt | list[int]]) -> Int64Array | WideInt | list[int]:
    """One page after another, as a list unless they are all of one sort.

    >>> concatenated([int64_array([1]), [2]]), concatenated([int64_array([1]), int64_array([2])])
    ([1, 2], array([1, 2]))
    """
    pages = [page for page in pages if length(page)] or pages[:1]
    if len(pages) == 1:
        return pages[0]
    if all(isinstance(page, WideInt) for page in pages):
        return WideInt(*(np.concatenate(limbs) for limbs in zip(*pages, strict=True)))
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
    return round_to_units(number, POINTS)


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


def length(values: Values) -> int:
    """How many rows a column has."""
    return len(values[0]) if isinstance(values, Ids | WideInt) else len(values)


def sliced(values: Values, span: slice) -> Values:
    """The values of consecutive rows."""
    if isinstance(values, Ids):
        return Ids(values.codes[span], values.labels)
    return WideInt(*(limb[span] for limb in values)) if isinstance(values, WideInt) else values[span]


def plain(values: Values) -> list[Any]:
    """A column's values as they are inside: integers, ids as text, None for what is missing."""
    if isinstance(values, Ids):
        labels = values.labels
        return [labels[code] for code in values.codes.tolist()]
    if isinstance(values, WideInt):
        return values.integers()
    return values if isinstance(values, list) else values.tolist()


def taken(values: Values, index: Int64Array) -> Values:
    """The values of these rows, in this order."""
    if isinstance(values, Ids):
        return Ids(values.codes[index], values.labels)
    if isinstance(values, WideInt):
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
