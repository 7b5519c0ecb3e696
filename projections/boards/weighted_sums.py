"""Sums of numbers times rates, by owner: exact, and computed late where an owner has many different rates."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.lazy_fractions import BITS, FEW, sum_of_terms, sum_within
from forecast_ledger.projections.core.quotient_sums import PLACES, bounded_quotient_sums
from forecast_ledger.projections.core.sorting import run_starts, stable_order
from forecast_ledger.projections.core.wide_int import WideInt

Rates = Sequence[tuple[int, int]]  # a numerator (>= 0) and a denominator (> 0) each


class Rated(NamedTuple):
    """Numbers, each of which counts at the rate of its place; numbers and place have shape (n,)."""

    numbers: WideInt
    rates: Rates

    def terms(self, place: Int64Array, rows: Int64Array) -> Iterator[tuple[int, int]]:
        """Yield the terms of some rows, as numerator and denominator."""
        for number, which in zip(self.numbers.take(rows).integers(), place[rows].tolist(), strict=True):
            numerator, denominator = self.rates[which]
            yield number * numerator, denominator


def sums_by_owner(owners: int, owner: Int64Array, place: Int64Array, columns: Sequence[Rated]) -> list[Fraction]:
    """Return, for each owner 0, 1 …, the sum of number x rate over its rows and all columns.

    owner, place: shape (n,). Numbers with the same rate are added as integers. If an owner has more than FEW rates, its
    sum has bounds, and its terms are computed only where these leave a doubt.
    """
    counted = np.zeros(len(owner), bool)
    for column in columns:
        counted |= (column.numbers.low | column.numbers.middle | column.numbers.high) != 0
    rows = np.flatnonzero(counted)
    places = int(place.max(initial=0)) + 1
    key = owner[rows] * places + place[rows]
    order = stable_order(key)
    rows, key = rows[order], key[order]
    few = np.bincount(key[run_starts(key)] // places, minlength=owners) <= FEW
    together = few[owner[rows]]
    sums = _few(key[together], rows[together], places, columns)
    sums |= _many(owner, place, rows[~together], columns)
    return [sums.get(number, _ZERO) for number in range(owners)]


_ZERO = Fraction(0)


def _few(key: Int64Array, rows: Int64Array, places: int, columns: Sequence[Rated]) -> dict[int, Fraction]:
    """Return the sums of owners with few rates, in full."""
    starts = run_starts(key)
    terms: dict[int, list[tuple[int, int]]] = {}
    keys = [column.tolist() for column in np.divmod(key[starts], places)]
    for column in columns:
        numbers = column.numbers.take(rows).unbounded_run_sums(starts)
        for number, own, which in zip(numbers, *keys, strict=True):
            numerator, denominator = column.rates[which]
            terms.setdefault(own, []).append((number * numerator, denominator))
    return {own: sum_of_terms(pairs) for own, pairs in terms.items()}


def _many(owner: Int64Array, place: Int64Array, rows: Int64Array, columns: Sequence[Rated]) -> dict[int, Fraction]:
    """Return the sums of owners with many rates, with bounds."""
    owners = owner[rows]
    starts = run_starts(owners)
    every = [bounded_quotient_sums(column.numbers, column.rates, place, rows, starts) for column in columns]
    parts = [rows[first:end] for first, end in pairwise([*starts.tolist(), len(rows)])]
    sums = {}
    for own, part, *bounds in zip(owners[starts].tolist(), parts, *every, strict=True):
        low, high = (sum(ends) << BITS - PLACES for ends in zip(*bounds, strict=True))
        sums[own] = sum_within((low, high), partial(_terms, place, part, columns))
    return sums


def _terms(place: Int64Array, rows: Int64Array, columns: Sequence[Rated]) -> Iterator[tuple[int, int]]:
    for column in columns:
        yield from column.terms(place, rows)
