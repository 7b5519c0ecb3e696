"""Resampling: random draws that anyone can repeat, and the order statistics of replicates."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, int64_array
from forecast_ledger.projections.core.estimates import Floats
from forecast_ledger.projections.studies.estimates import Near, order_bounds

_WORDS = 8  # 32-bit words in a SHA-256
_ROWS = 256  # whose order statistics are found at a time
_RANGE = 1 << 32  # values of a word
_KEPT = 1 << 14  # digests of one call that are kept for the next ones: 512 KiB


class Units(NamedTuple):
    """What is drawn: questions that are always drawn together, those of the same clusters by one field or by two.

    unit: of each question, shape (q,); -1 if it does not count. clusters: of each unit by each field, columns of what
    `multiplicities` and `signs` return, shape (fields, units); a question without a cluster is one of its own. strata:
    the number of clusters of each stratum, of the first field and then of the second; the clusters of a stratum are
    adjacent. counts: the number of clusters by each field.
    """

    unit: Int64Array
    clusters: Int64Array
    strata: list[int]
    counts: list[int]

    @property
    def size(self) -> int:
        """The number of units."""
        return int(self.clusters.shape[1])

    def times(self, seed: bytes, replicates: int) -> Int64Array:
        """Return how often each unit is drawn in each replicate, shape (replicates, units).

        By two fields, the clusters of each are drawn by themselves, and a question is there as often as its cluster by
        one field times that by the other. Such draws vary as much as the truth does where all questions of a cluster
        have something in common, and more than the truth where none have: there, intervals are up to √3 too wide.

        Source: Owen (2007), Annals of Applied Statistics 1(2):386-411, doi:10.1214/07-AOAS122.
        """
        times: Int64Array = multiplicities(seed, replicates, self.strata)[:, self.clusters].prod(axis=1)
        return times

    def turns(self, seed: bytes, replicates: int, *, every: bool = False) -> Int64Array:
        """Return what the difference of each unit is multiplied by in each permutation, shape (b, units).

        By one field -1 or 1, the sign of its cluster; by two fields the sum of the signs of its two clusters, -2, 0 or
        2: the sum over units then varies at least as much as that of two-way clustered errors. every: all other ways to
        set the signs, if there are no more than `replicates`, in place of as many that are drawn.

        Source: Cameron, Gelbach and Miller (2011), Journal of Business & Economic Statistics 29(2):238-249,
        doi:10.1198/jbes.2010.07136, section 2.2, without the term that is taken off.
        """
        count = sum(self.strata)
        way = other_signs(count) if every and 2**count <= replicates + 1 else signs(seed, replicates, count)
        turns: Int64Array = way[:, self.clusters].sum(axis=1)
        return turns


def multiplicities(seed: bytes, replicates: int, strata: Sequence[int]) -> Int64Array:
    """Return how often each unit is drawn in each replicate, shape (replicates, units): a bootstrap within strata.

    From a stratum of n units, n are drawn with replacement. strata: the number of units of each stratum; the units of
    a stratum are adjacent, in the order of the strata. The draws of stratum s in replicate b are the words of SHA-256
    of seed, s, b and c = 0, 1, 2 …, with four bytes, the highest first, for s, b, c and each of eight words. A word is
    taken modulo n, but skipped if it is at or above the largest multiple of n in 2^32.

    Source: Efron (1979), Annals of Statistics 7(1):1-26, doi:10.1214/aos/1176344552; the draws are our own.

    >>> multiplicities(b"seed", 2, [3, 1])[:, 3].tolist(), multiplicities(b"seed", 2, [3, 1]).sum(axis=1).tolist()
    ([1, 1], [4, 4])
    """
    parts = [_stratum(seed + stratum.to_bytes(4, "big"), replicates, units) for stratum, units in enumerate(strata)]
    return np.concatenate(parts, axis=1) if parts else np.zeros((replicates, 0), np.int64)


def first_draws(seed: bytes, strata: Sequence[int], most: int) -> list[list[int]]:
    """Return which units come first out of each stratum in the first replicate of `multiplicities`, at most so many.

    Units are numbered from 0 in their stratum.

    >>> [drawn] = first_draws(b"seed", [3], 8)
    >>> [drawn.count(unit) for unit in range(3)] == multiplicities(b"seed", 1, [3])[0].tolist()
    True
    """
    drawn = []
    for stratum, units in enumerate(strata):
        words = _accepted(seed + stratum.to_bytes(4, "big"), 0, min(units, most), _RANGE - _RANGE % units)
        drawn.append((words % units).tolist())
    return drawn


def signs(seed: bytes, replicates: int, units: int) -> Int64Array:
    """Return a sign, -1 or 1, for each unit in each replicate, shape (replicates, units), 1 for a bit that is set.

    The bits of replicate b, the highest of a byte first, are those of SHA-256 of seed, `sign`, b and c = 0, 1, 2 …,
    with four bytes, the highest first, for b and c.

    >>> signs(b"seed", 2, 3).shape, {*signs(b"seed", 2, 300).flat}
    ((2, 3), {np.int64(1), np.int64(-1)})
    """
    digests = _digests(seed + b"sign", range(replicates), -(-units // (32 * _WORDS)))
    bits = np.unpackbits(np.frombuffer(digests, np.uint8)).reshape(replicates, -1)[:, :units]
    return 2 * bits.astype(np.int64) - 1


def other_signs(units: int) -> Int64Array:
    """Return every way to set the signs of units, but for that in which all are 1, as they are observed.

    >>> other_signs(2).tolist()
    [[-1, -1], [1, -1], [-1, 1]]
    """
    return 2 * (np.arange(2**units - 1, dtype=np.int64)[:, None] >> np.arange(units) & 1) - 1


def chances(seed: bytes, replicates: range, probability: Int64Array, cluster: Int64Array) -> BoolArray:
    """Return whether each of n comes true in each replicate, with its own probability, shape (replicates, n).

    The words of replicate b, one for each cluster, are the 8-byte integers, the highest byte first, in SHA-256 of seed,
    `chance`, b and c = 0, 1, 2 …, with four bytes, the highest first, for b and c. Without its two lowest bits, a word
    is below 2^62. A forecast comes true if the word of its cluster is below its probability x 2^62, so that its chance
    is off by less than 2^-62.

    probability: 1e-9, shape (n,). cluster: of each, from 0 on, shape (n,).

    >>> chances(b"seed", range(2), np.array([0, 10**9]), np.array([0, 0])).tolist()
    [[False, True], [False, True]]
    """
    units = int(cluster.max(initial=-1)) + 1
    digests = _digests(seed + b"chance", replicates, -(-units // 4))
    words = (np.frombuffer(digests, ">u8").reshape(len(replicates), -1)[:, :units] >> 2).astype(np.int64)
    limits = int64_array([-(-(each << 62) // PROBABILITY) for each in probability.tolist()])
    below: BoolArray = words[:, cluster] < limits
    return below


def _stratum(prefix: bytes, replicates: int, units: int) -> Int64Array:
    if units == 1:
        return np.ones((replicates, 1), np.int64)
    limit = _RANGE - _RANGE % units
    digests = _digests(prefix, range(replicates), -(-units // _WORDS))
    words = np.frombuffer(digests, ">u4").reshape(replicates, -1)[:, :units].astype(np.int64)
    for replicate in np.flatnonzero((words >= limit).any(axis=1)).tolist():
        words[replicate] = _accepted(prefix, replicate, units, limit)
    flat = (np.arange(replicates)[:, None] * units + words % units).reshape(-1)
    return np.bincount(flat, minlength=replicates * units).reshape(replicates, units)


def _digests(prefix: bytes, replicates: range, counters: int) -> bytes:
    """Return the digests of each replicate, one after another: those of the first counters.

    Many calls have the same arguments: the participants of a contest have the same words, and so have some tables.
    """
    return (_kept_digests if len(replicates) * counters <= _KEPT else _new_digests)(prefix, replicates, counters)


def _new_digests(prefix: bytes, replicates: range, counters: int) -> bytes:
    ends = [counter.to_bytes(4, "big") for counter in range(counters)]
    stems = [prefix + replicate.to_bytes(4, "big") for replicate in replicates]
    return b"".join([sha256(stem + end).digest() for stem in stems for end in ends])


_kept_digests = lru_cache(maxsize=64)(_new_digests)


def _accepted(prefix: bytes, replicate: int, units: int, limit: int) -> Int64Array:
    """Return the first words below a limit."""
    accepted: list[int] = []
    stem = prefix + replicate.to_bytes(4, "big")
    for counter in count():
        digest = sha256(stem + counter.to_bytes(4, "big")).digest()
        accepted += [word for word in np.frombuffer(digest, ">u4").tolist() if word < limit]
        if len(accepted) >= units:
            break
    return int64_array(accepted[:units])


# --- Order statistics of replicates: the ends of intervals, from whole numbers or from numbers that are known nearly.


LEAST_CLUSTERS = 20  # units that are drawn: with fewer, what an interval or a set of ranks claims does not hold

LIMIT = 1 << 62  # of sums and published numbers

Ends = tuple[int, int] | None


class Limits(NamedTuple):
    """The limits of an interval. least, greatest: the values; low, high: replicates that have them, counted from 0."""

    least: int
    greatest: int
    low: int
    high: int


class Drawn(NamedTuple):
    """Numbers in replicates, shape (p, b). exact: returns those of a row in some replicates; they must be defined.

    Exact ones are fractions, or, of takes, magnitudes, to which estimates are in proportion. closer: returns closer
    estimates, shape (1, n), for less than exact ones cost; None if there are none.
    """

    near: Near
    defined: BoolArray
    exact: Callable[[int, Int64Array], Sequence[Any]]
    closer: Callable[[int, Int64Array], Near] | None = None

    def times(self, sign: int) -> "Drawn":
        """Return the numbers times 1 or -1."""
        return Drawn(self.near.times(sign), self.defined, lambda row, at: [sign * each for each in self.exact(row, at)])

    def take(self, rows: Int64Array) -> "Drawn":
        """Return some rows."""
        exact, closer = self.exact, self.closer
        return Drawn(
            self.near.take(rows),
            self.defined[rows],
            lambda row, at: exact(int(rows[row]), at),
            None if closer is None else lambda row, at: closer(int(rows[row]), at),
        )

    def at(self, which: Int64Array) -> "Drawn":
        """Return the numbers in these replicates."""
        exact, closer = self.exact, self.closer
        return Drawn(
            self.near.at(which),
            self.defined[:, which],
            lambda row, at: exact(row, which[at]),
            None if closer is None else lambda row, at: closer(row, which[at]),
        )

    def defined_of(self, row: int) -> tuple["Drawn", Int64Array]:
        """Return the row, with those of its numbers that are defined, and their replicates."""
        cells = np.flatnonzero(self.defined[row])
        return self.take(np.array([row])).at(cells), cells


def limits(values: Int64Array, level_ppm: int) -> Limits:
    """Return the order statistics between which the share `level` of the replicates lies.

    values: of each replicate, shape (b,), b > 0. If replicates have the same value, they keep their order.

    >>> limits(np.arange(1_999)[::-1], 950_000)
    Limits(least=49, greatest=1949, low=1949, high=49)
    """
    order = np.argsort(values, kind="stable")
    low, high = (int(order[index]) for index in _limit_indices(len(order), level_ppm))
    return Limits(int(values[low]), int(values[high]), low, high)


def drawn_limits(drawn: Drawn, row: int, level_ppm: int) -> Limits | None:
    """Return the limits of a row among its replicates that are defined, rounded half-even; None if none is."""
    defined, cells = drawn.defined_of(row)
    if not len(cells):
        return None
    indices = _limit_indices(len(cells), level_ppm)
    bounds = zip(indices, *(ends[0].tolist() for ends in order_bounds(defined.near, indices)), strict=True)
    (least, low), (greatest, high) = (_exactly(defined, 0, *each) for each in bounds)
    return Limits(_rounded(least), _rounded(greatest), int(cells[low]), int(cells[high]))


def ends(values: Int64Array, level_ppm: int) -> list[tuple[int, int]]:
    """Return the least and greatest values of `limits` for each row; shape (n, b).

    >>> ends(np.arange(3_998).reshape(2, -1), 950_000)
    [(49, 1949), (2048, 3948)]
    """
    indices = _limit_indices(values.shape[1], level_ppm)
    return [*map(tuple, np.partition(values, indices, axis=1)[:, indices].tolist())]


def drawn_ends(drawn: Drawn, levels: Int64Array) -> list[Ends]:
    """Return the limits of each row, as `drawn_limits` gives them at its own level, 1e-6, shape (p,)."""
    whole = np.asarray(drawn.defined.all(axis=1))
    result: list[Ends] = [None] * len(whole)
    for level in np.unique(levels[whole]).tolist():
        rows = np.flatnonzero(whole & (levels == level))
        for begin in range(0, len(rows), _ROWS):
            some = rows[begin : begin + _ROWS]
            for row, limits_of_row in zip(some.tolist(), _ends(drawn.take(some), level), strict=True):
                result[row] = limits_of_row
    for row in np.flatnonzero(~whole & drawn.defined.any(axis=1)).tolist():
        [result[row]] = _ends(drawn.defined_of(row)[0], int(levels[row]))
    return result


def _ends(drawn: Drawn, level_ppm: int) -> list[tuple[int, int]]:
    low, high = order_statistics(drawn, _limit_indices(drawn.defined.shape[1], level_ppm)).T.tolist()
    return [*zip(low, high, strict=True)]


def order_statistics(drawn: Drawn, indices: tuple[int, ...]) -> Int64Array:
    """Return the order statistics at indices from 0, rounded half-even once, shape (p, indices). All must be defined.

    Raises Refused(out_of_range).
    """
    low, high = order_bounds(drawn.near, indices)
    statistics, doubtful = np.rint(low).astype(object), np.rint(low) != np.rint(high)
    for row in np.flatnonzero(doubtful.any(axis=1)).tolist():
        columns = np.flatnonzero(doubtful[row]).tolist()
        places = [(indices[column], low[row, column], high[row, column]) for column in columns]
        for column, place, rounded in zip(columns, places, _closely(drawn, row, places), strict=True):
            statistics[row, column] = _rounded(_exactly(drawn, row, *place)[0]) if rounded is None else rounded
    check_range(int(abs(statistics).max(initial=0)))
    return statistics.astype(np.int64)


def _closely(drawn: Drawn, row: int, places: Sequence[tuple[int, Floats, Floats]]) -> list[int | None]:
    """Return order statistics of a row, rounded, from closer estimates; None where these leave a doubt.

    places: the index of each, from where and up to where it is.
    """
    if drawn.closer is None:
        return [None] * len(places)
    candidates = [_candidates(drawn, row, low, high) for _, low, high in places]
    closer = drawn.closer(row, np.concatenate([cells for cells, _ in candidates]))
    upto, statistics = np.cumsum([len(cells) for cells, _ in candidates]).tolist(), list[int | None]()
    for (index, *_), (cells, below), end in zip(places, candidates, upto, strict=True):
        bounds = order_bounds(closer.at(slice(end - len(cells), end)), (index - below,))
        [[least]], [[most]] = map(np.rint, bounds)
        statistics.append(int(least) if least == most else None)
    return statistics


def _exactly(drawn: Drawn, row: int, index: int, low: Floats, high: Floats) -> tuple[Fraction, int]:
    """Return the order statistic of a row, which is known to be from low to high, and the replicate that has it."""
    cells, below = _candidates(drawn, row, low, high)
    ordered = sorted(zip(drawn.exact(row, cells), cells.tolist(), strict=True))
    return ordered[index - below]


def _candidates(drawn: Drawn, row: int, low: Floats, high: Floats) -> tuple[Int64Array, int]:
    """Return the replicates of a row whose number may be from low to high, and how many numbers are below."""
    near = drawn.near.take(np.array([row]))
    [lows], [highs] = near.low, near.high
    return np.flatnonzero((highs >= low) & (lows <= high)), int((highs < low).sum())


def _rounded(number: Fraction) -> int:
    return half_even(number.numerator, number.denominator)


def _limit_indices(count: int, level_ppm: int) -> tuple[int, int]:
    """Return the indices of the lower and the upper limit among so many replicates, from 0."""
    outside = max((10**6 - level_ppm) * (count + 1) // (2 * 10**6), 1)
    return outside - 1, count - outside


def check_range(largest: int) -> None:
    """Raise Refused(out_of_range) if numbers may need more than 62 bits."""
    if largest >= LIMIT:
        raise Refused("out_of_range", "intervals", None, "the scores are too large for sums in 64 bits")
