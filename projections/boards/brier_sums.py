"""Exact sums over the forecasts that Brier aggregates are computed from; sums over other questions can be added."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.core.sorting import run_starts, stable_order
from forecast_ledger.projections.core.wide_int import WideInt

DECILES = tuple(range(0, PROBABILITY + 1, PROBABILITY // 10))  # 1e-9
_VALUE_BITS = 30  # 1e9 < 2^30
_VALUE = (1 << _VALUE_BITS) - 1
_COUNT_BITS = 27  # of an owner's rows
_AT_ONCE = 1 << 20  # groups of equal forecasts


class Sample(NamedTuple):
    """One row for each owner and question, in any order; shape (n,). An owner has at most 2^26 rows.

    owner: codes, below 2^33. probability: of yes, 1e-9. consensus: probability that the consensus gives to yes, 1e-9;
    -1 if there is none. happened: whether the answer was yes.
    """

    owner: Int64Array
    probability: Int64Array
    consensus: Int64Array
    happened: BoolArray

    def take(self, index: Int64Array) -> "Sample":
        """Return the rows at these indices."""
        return Sample(self.owner[index], self.probability[index], self.consensus[index], self.happened[index])


class GroupSums(NamedTuple):
    """The equal forecasts of each owner: how many, and how many came true.

    key: as of `owner_probability_keys`, distinct and rising. All of shape (n,).
    """

    key: Int64Array
    n: Int64Array
    happened: Int64Array


class OwnerSums(NamedTuple):
    """How many rows of each owner lack a consensus, and Σ (p - o)² of the consensus, 1e-18, a missing one being 0.

    owner: distinct and rising. All of shape (n,).
    """

    owner: Int64Array
    lacking: Int64Array
    consensus: WideInt


class BrierSums(NamedTuple):
    """The sums of a sample, from which Brier aggregates and calibration are computed."""

    groups: GroupSums
    owners: OwnerSums

    def renumbered(self, numbers: Int64Array) -> "BrierSums":
        """Return the sums with other numbers of the owners. numbers: of each, by its number so far."""
        key = numbers[owners_of_keys(self.groups.key)] << _VALUE_BITS | self.groups.key & _VALUE
        return BrierSums(self.groups._replace(key=key), self.owners._replace(owner=numbers[self.owners.owner]))


class Counts(NamedTuple):
    """Exact sums over an owner's n rows. All but `mixed` can be added to, or subtracted from, sums over other rows.

    happened: how many came true. squares, consensus: Σ (p - o)² of the owner and of the consensus, 1e-18; a missing
    consensus counts as probability 0. lacking: how many rows lack a consensus. mixed: Σ k (m - k) / m over groups of m
    equal forecasts of which k came true: the variance within the groups. Subtracting it from `squares` leaves n times
    the reliability, and from n times the uncertainty, n times the resolution.
    """

    n: int = 0
    happened: int = 0
    squares: int = 0
    consensus: int = 0
    lacking: int = 0
    mixed: Fraction = Fraction(0)


def sums_of(sample: Sample) -> BrierSums:
    """Return the sums of a sample.

    >>> columns = [np.array(column) for column in ([0, 0], [800_000_000, 800_000_000], [-1, -1], [True, False])]
    >>> groups, owners = sums_of(Sample(*columns))
    >>> groups.n.tolist(), groups.happened.tolist(), owners.lacking.tolist()
    ([2], [1], [2])
    """
    happened, consensus = sample.happened.astype(np.int64), np.maximum(sample.consensus, 0)
    distance = np.where(sample.happened, PROBABILITY - consensus, consensus)
    groups = GroupSums(owner_probability_keys(sample), np.ones_like(happened), happened)
    owners = OwnerSums(sample.owner, (sample.consensus < 0).astype(np.int64), WideInt.product(distance, distance))
    return added([BrierSums(groups, owners)])


def added(parts: Sequence[BrierSums]) -> BrierSums:
    """Return the sums of samples of different questions together; there is at least one, and keys may be unsorted."""
    key, n, happened = map(np.concatenate, zip(*(part.groups for part in parts), strict=True))
    order = stable_order(key)
    key = key[order]
    starts = run_starts(key)
    groups = GroupSums(key[starts], _totals(n[order], starts), _totals(happened[order], starts))
    owner, lacking = (np.concatenate(column) for column in zip(*(part.owners[:2] for part in parts), strict=True))
    consensus = WideInt(*map(np.concatenate, zip(*(part.owners.consensus for part in parts), strict=True)))
    order = stable_order(owner)
    owner = owner[order]
    starts = run_starts(owner)
    owners = OwnerSums(owner[starts], _totals(lacking[order], starts), consensus.take(order).run_sums(starts))
    return BrierSums(groups, owners)


def counts_by_owner(sums: BrierSums) -> dict[int, Counts]:
    """Return the counts of each owner who has a row."""
    own = zip(sums.owners.consensus.integers(), sums.owners.lacking.tolist(), strict=True)
    found: dict[int, Counts] = {}
    for groups in _some_owners(sums.groups):
        key, n, happened = groups
        probability, owner = key & _VALUE, owners_of_keys(key)
        missed = PROBABILITY - probability
        squares = WideInt.product(missed * missed, happened) + WideInt.product(probability * probability, n - happened)
        starts, within = run_starts(owner), _mixed(owner, n, happened)
        rows = zip(
            owner[starts].tolist(),
            _totals(n, starts).tolist(),
            _totals(happened, starts).tolist(),
            squares.carried().run_sums(starts).integers(),
            strict=True,
        )
        for (number, *counts), others in zip(rows, own, strict=False):  # `own` goes on with the next owners
            found[number] = Counts._make([*counts, *others, within[number]])
    return found


def bin_sums(sums: BrierSums, bins: Sequence[int] = DECILES) -> dict[tuple[int, int], tuple[int, ...]]:
    """Return, by owner and bin, the number of forecasts, how many came true, and their sum, 1e-9."""
    last, edges, found = len(bins) - 1, np.array(bins[1:-1], np.int64), dict[tuple[int, int], tuple[int, ...]]()
    for key, n, happened in _some_owners(sums.groups):
        probability = key & _VALUE
        place = owners_of_keys(key) * last + np.searchsorted(edges, probability, "right")  # rising, as key
        starts = run_starts(place)
        rows = zip(*(_totals(column, starts).tolist() for column in (n, happened, n * probability)), strict=True)
        found |= {divmod(number, last): row for number, row in zip(place[starts].tolist(), rows, strict=True)}
    return found


def _some_owners(groups: GroupSums) -> Iterator[GroupSums]:
    """Yield the groups of some owners at a time, all of each owner together."""
    starts, size = run_starts(owners_of_keys(groups.key)), len(groups.key)
    begins = starts[np.searchsorted(starts, np.arange(0, size, _AT_ONCE), "right") - 1] if size else starts
    for begin, end in pairwise([*dict.fromkeys(begins.tolist()), size]):
        yield GroupSums(*(column[begin:end] for column in groups))


def owner_probability_keys(sample: Sample) -> Int64Array:
    """Return one number for each pair of owner and probability, which sorts by owner, then probability."""
    key: Int64Array = (sample.owner << _VALUE_BITS) | sample.probability
    return key


def owners_of_keys(groups: Int64Array) -> Int64Array:
    """Return the owners in the numbers of `owner_probability_keys`."""
    return groups >> _VALUE_BITS


def mixed_term(m: int, k: int) -> Fraction:
    """Return what m equal forecasts, of which k came true, add to an owner's `mixed`."""
    return Fraction(k * (m - k), m) if m else Fraction(0)


def _mixed(owner: Int64Array, m: Int64Array, k: Int64Array) -> defaultdict[int, Fraction]:
    """Return, by owner, Σ k (m - k) / m over groups of m equal forecasts of which k came true; 0 if absent.

    Groups of the same size are summed as integers. Groups in which all or none came true add nothing.
    """
    products = k * (m - k)
    mixed = np.flatnonzero(products)
    key, products = (owner[mixed] << _COUNT_BITS) | m[mixed], products[mixed]
    order = stable_order(key)
    key, products = key[order], products[order]
    starts = run_starts(key)
    by_owner: defaultdict[int, Fraction] = defaultdict(Fraction)
    for place, total in zip(key[starts].tolist(), _totals(products, starts).tolist(), strict=True):
        number, size = divmod(place, 1 << _COUNT_BITS)
        by_owner[number] += Fraction(total, size)
    return by_owner


def _totals(values: Int64Array, starts: Int64Array) -> Int64Array:
    """Return sums over runs of numbers; each fits in 64 bits."""
    sums: Int64Array = np.add.reduceat(values, starts) if len(starts) else values
    return sums
