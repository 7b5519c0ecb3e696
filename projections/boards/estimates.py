"""Estimates of sums, takes and Brier scores: floats with guards. What these leave open is computed exactly.

`core.estimates` says what is assumed of floats. Guards are larger than the errors, by more than their own rounding.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.boards.score_sums import Rated, sums_by_owner
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, distinct
from forecast_ledger.projections.core.estimates import POWER, Estimated, Floats, estimate_products
from forecast_ledger.projections.core.wide_int import QUOTIENT_BITS, WORD_BITS, WORDS, BoundedSums, carried_words


def estimated_sums(owners: int, owner: Int64Array, rate_of: Int64Array, columns: Sequence[Rated]) -> Estimated:
    """Return what `sums_by_owner` returns, computed where it is needed."""
    values, sizes = np.zeros((2, owners))
    for column in columns:
        products = estimate_products(column.numbers, column.rates, rate_of)
        values += np.bincount(owner, products, owners)
        sizes += np.bincount(owner, np.abs(products), owners)
    terms = np.bincount(owner, minlength=owners) * len(columns)

    def exact(chosen: Int64Array) -> list[Fraction]:
        if not len(chosen):
            return []
        index = np.full(owners, -1)
        index[chosen] = np.arange(len(chosen))
        rows = np.flatnonzero(index[owner] >= 0)
        some = [Rated(column.numbers.take(rows), column.rates) for column in columns]
        return sums_by_owner(len(chosen), index[owner[rows]], rate_of[rows], some)

    return Estimated(values, sizes * (terms + 16) * 2.0**-52, exact).certain()


def running_sums(owner: Int64Array, count: int, rate_of: Int64Array, columns: Sequence[Rated]) -> Estimated:
    """Return the sum of `estimated_sums` of each owner, plus those of the owners before it in its group of `count`.

    owner: rising. The first group has the owners from 0, the next one those from `count`, and so on.
    """
    owners = (int(owner.max(initial=-1)) // count + 1) * count
    each = estimated_sums(owners, owner, rate_of, columns)
    values, sizes, guards = (
        numbers.reshape(-1, count).cumsum(axis=1).ravel() for numbers in (each.values, np.abs(each.values), each.guards)
    )

    def exact(chosen: Int64Array) -> list[Fraction]:
        group, index = distinct(chosen // count)
        begins, ends = group * count, np.zeros_like(group)
        np.maximum.at(ends, index, chosen + 1)
        needed, rows = _spans(begins, ends), _spans(*np.searchsorted(owner, [begins, ends]))
        some = [Rated(column.numbers.take(rows), column.rates) for column in columns]
        parts = sums_by_owner(len(needed), np.searchsorted(needed, owner[rows]), rate_of[rows], some)
        sums, total = dict[int, Fraction](), Fraction(0)
        for number, more in zip(needed.tolist(), parts, strict=True):
            total = total + more if number % count else more
            sums[number] = total
        return [sums[number] for number in chosen.tolist()]

    return Estimated(values, guards * 1.001 + sizes * count * 2.0**-52, exact)


def _spans(begins: Int64Array, ends: Int64Array) -> Int64Array:
    """Return the integers of spans, one span after the other."""
    lengths = ends - begins
    numbers: Int64Array = np.arange(lengths.sum()) + np.repeat(begins - (np.cumsum(lengths) - lengths), lengths)
    return numbers


def bounded_estimates(sums: BoundedSums) -> tuple[Floats, Floats]:
    """Return floats near sums with bounds, not in 2^-QUOTIENT_BITS, and by how much each may err."""
    below = sums.low[:, -1] < 0
    sizes = carried_words(np.where(below[:, None], -sums.low, sums.low), WORD_BITS)
    near = sizes @ 2.0 ** (WORD_BITS * np.arange(WORDS) - QUOTIENT_BITS)  # no term is below 0
    return np.where(below, -near, near), near * 2.0**-49 + sums.width * 2.0 ** (1 - QUOTIENT_BITS)


def near_power(base: Callable[[Floats], Floats], total: Estimated, coverage: Estimated) -> tuple[Floats, Floats]:
    """Return coverage x base^total and the guards; a guard may be infinite or not a number. base: its power."""
    grown = base(total.values)
    near = coverage.values * grown
    guards = near * (2 * total.guards + POWER) + 3 * grown * coverage.guards  # base^x is at most 1 + 2 x, x < 1/2
    least = np.where(coverage.values + coverage.guards > 0, 1e-290, 0.0)  # a power below 1e-300 may err by more
    return near, np.where(total.guards < 0.5, guards + least, np.inf)


def near_square(total: Estimated, _: Estimated) -> tuple[Floats, Floats]:
    """Return max(total, 0)² and the guards, which may be infinite; 0 if it is certain that a take is 0."""
    near = np.maximum(total.values, 0)
    furthest = np.where(total.values + total.guards > 0, total.guards, 0)
    return near * near, (2.001 * near + furthest) * furthest + near * near * POWER


def near_brier(counts: Sequence[Sequence[Any]]) -> tuple[Floats, Floats, BoolArray]:
    """Return the fields of Brier aggregates that follow n, their guards, and whether each is missing; shape (9, k).

    counts: the columns of `brier.Counts` of k owners who have a row. What is missing is 0.
    """
    n, happened, squares, consensus, lacking, mixed = np.array(counts, np.float64)
    with np.errstate(all="ignore"):
        score, other, within = squares / (n * PROBABILITY**2), consensus / (n * PROBABILITY**2), mixed / n
        uncertainty = happened * (n - happened) / (n * n)  # below 2^53
        parts = [score, happened / n, score - within, uncertainty - within, uncertainty, other]
        near = np.stack([*parts, 1 - 4 * score, 1 - score / other, 1 - score / uncertainty])
    missing = np.zeros(near.shape, bool)
    missing[5], missing[7], missing[8] = lacking > 0, (lacking > 0) | (consensus == 0), uncertainty == 0
    near[missing] = 0
    # The parts err by less than 2^-50, and the quotients by as much of themselves.
    return near, (1 + np.abs(near)) * 2.0**-48, missing
