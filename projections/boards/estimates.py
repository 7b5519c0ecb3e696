"""Estimates of the sums, takes and shares of boards: floats with guards. What these leave open is computed exactly.

`core.estimates` says what is assumed of floats. Guards are larger than the errors, by more than their own rounding.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from forecast_ledger.projections.boards.score_sums import Rated, sums_by_owner
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.core.estimates import (
    POWER,
    PRODUCT,
    Estimated,
    Floats,
    estimate_products,
    round_estimates,
)
from forecast_ledger.projections.core.wide_int import QUOTIENT_BITS, WORD_BITS, WORDS, BoundedSums, carried_words
from forecast_ledger.projections.facts.columns import Contest

SHARE_UNITS = 10**9  # units in 1


def estimated_sums(owners: int, owner: Int64Array, rate_of: Int64Array, columns: Sequence[Rated]) -> Estimated:
    """Return what `sums_by_owner` returns, computed where it is needed."""
    values, sizes = np.zeros((2, owners))
    for column in columns:
        products = estimate_products(column.numbers, column.rates, rate_of)
        values += np.bincount(owner, products, owners)
        sizes += np.bincount(owner, np.abs(products), owners)
    terms = np.bincount(owner, minlength=owners) * len(columns)

    def exact(chosen: Int64Array) -> list[Fraction]:
        index = np.full(owners, -1)
        index[chosen] = np.arange(len(chosen))
        rows = np.flatnonzero(index[owner] >= 0)
        some = [Rated(column.numbers.take(rows), column.rates) for column in columns]
        return sums_by_owner(len(chosen), index[owner[rows]], rate_of[rows], some)

    return Estimated(values, sizes * (terms + 16) * 2.0**-52, exact).certain()


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


def near_shares(
    takes: Estimated, starts: Int64Array, contests: list[Contest]
) -> tuple[list[int], list[int], BoolArray]:
    """Return the share and the prize of each take, and whether those of each contest are certain.

    takes: in order of contest and id. starts: where each contest begins.
    """
    sizes, rules = np.diff(starts, append=len(takes.values)), contests[0].opened.rules
    run, units = np.repeat(np.arange(len(starts)), sizes), [contest.opened.payable_unit for contest in contests]
    counts = [contest.opened.pool // unit for contest, unit in zip(contests, units, strict=True)]
    certain = np.array([not rules.least_prize_micros and count < 1 << 52 for count in counts])
    count = np.where(certain, np.array(counts, object), 0).astype(np.int64)
    positive = takes.values + takes.guards > 0  # or may be
    sharers = np.add.reduceat(positive, starts, dtype=np.int64)
    count[sharers == 0] = 0
    alone = sharers[run] <= 1
    unsure = alone & positive & (takes.values <= takes.guards)
    total, error = (np.add.reduceat(column, starts) for column in takes[:2])
    whole = Estimated(total[run], (error * 1.001 + total * sizes * 2.0**-52)[run], takes.exact)
    near, guards, _ = takes.divided_by(whole)
    near, guards = np.where(alone, positive, near), np.where(alone, 0.0, guards)  # if alone, it takes the whole pool
    share, doubtful = round_estimates(*_in_units(near, guards, SHARE_UNITS))
    unsure[doubtful] = True
    quota, slack = _in_units(near, guards, count[run])
    least = np.floor(quota)
    rest, left = quota - least, count - np.add.reduceat(least.astype(np.int64), starts)
    order = np.lexsort((-rest, run))  # stable: equal remainders by id
    amounts = least.astype(np.int64)
    amounts[order] += np.arange(len(run)) - starts[run] < left[run]
    cut = np.flatnonzero((left > 0) & (left < sizes))
    last = starts[cut] + left[cut] - 1
    certain[cut] &= rest[order[last]] - rest[order[last + 1]] > 2.001 * np.maximum.reduceat(slack, starts)[cut]
    # A quota that may be on either side of an integer gets the same amount from both: what it loses, it has left over.
    certain &= (np.add.reduceat(slack, starts) < 0.25) & ~np.logical_or.reduceat(unsure, starts)
    prize = [amount * units[number] for amount, number in zip(amounts.tolist(), run.tolist(), strict=True)]
    return share.tolist(), prize, certain


def _in_units(near: Floats, guards: Floats, units: Int64Array | int) -> tuple[Floats, Floats]:
    """Return shares of a number of units, and their guards; a guard of 0 means that the share is exact."""
    with np.errstate(invalid="ignore"):  # a guard may be infinite, and there may be no units
        return near * units, np.where(guards > 0, guards * units * 1.001 + near * units * PRODUCT, 0.0)
