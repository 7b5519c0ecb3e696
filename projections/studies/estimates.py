"""Numbers that floats say nearly, with bounds on the error: what bounds leave open is computed exactly elsewhere.

What is assumed of floats is in `core.estimates`. A sum of n products of floats, in any order, then errs by less than
n x 2^-53 x (1 + 2^-20) of the sum of their sizes, n < 2^30. Guards are made larger than that by far, so that their own
rounding and that of value -+ guard are within them.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, run_lengths, run_starts
from forecast_ledger.projections.core.estimates import PRODUCT, Floats, floats

_ROUNDING = 2.0**-51  # of a number: more than what a rounding errs by
_WIDER = 1 + 2.0**-40  # of a guard: more than what its own roundings err by
_INPUT = PRODUCT + _ROUNDING  # of a weighted number; see `weighted_estimates`
_TINY = 2.0**-900  # a norm below this is taken for 0
_NUMBERS = 1 << 20  # in an array: replicates at a time x participants x participants
_NARROW = 2.0**-24  # of the largest number: a bound that is not wide
_BITS = 64  # of scores in sums, below one unit
_NEAR = 0.75  # the sum of a row of a matrix without its diagonal, beside this, below which it needs no inverse
_FLOOR = 2.0**-10  # added to a size: times the share that a sum may be off, more than what rounding to 2^-_BITS errs by
QUANTILES = np.array([0, 0.002, 0.01, 0.05, 0.2, 0.5])  # shares of the pairs of a row that may be looked at everywhere
_SLACK = 2.0**-48  # of a quotient: more than what a few roundings err by


class Near(NamedTuple):
    """Numbers, each within `guard` of `value`, shape (p, b); a guard may be that of a row, shape (p, 1)."""

    value: Floats
    guard: Floats

    @property
    def low(self) -> Floats:
        """What no number is below."""
        return self.value - self.guard

    @property
    def high(self) -> Floats:
        """What no number is above."""
        return self.value + self.guard

    def less(self, other: "Near") -> "Near":
        """Return the differences."""
        value, guard = self.value - other.value, self.guard + other.guard
        guard *= _WIDER
        size = np.abs(value)
        size *= 2 * _ROUNDING
        size += guard
        return Near(value, size)

    def over(self, divisor: Int64Array) -> "Near":
        """Return the quotients by integers that are not negative; where one is 0, the numbers themselves."""
        over = floats(np.maximum(divisor, 1))
        value = self.value / over
        return Near(value, self.guard / over * _WIDER + np.abs(value) * (2 * _ROUNDING))

    def cross(self, rows: Int64Array, columns: Int64Array) -> "Near":
        """Return some columns of some rows; the guard is that of a row."""
        return Near(self.value[np.ix_(rows, columns)], self.guard[rows])

    def beside(self, size: Floats) -> Floats:
        """Return about how large the numbers are beside the sizes of their rows, shape (p, 1)."""
        beside: Floats = self.value / size
        return beside

    def scaled(self, square: Fraction) -> "Near":
        """Return the numbers times the root of a fraction."""
        factor = np.sqrt(square.numerator / square.denominator)
        return Near(self.value * factor, self.guard * (factor * _WIDER) + np.abs(self.value) * (factor * 8 * _ROUNDING))

    def times(self, sign: int) -> "Near":
        """Return the numbers times 1 or -1."""
        return self._replace(value=self.value * sign)

    def take(self, rows: Int64Array | slice) -> "Near":
        """Return some rows."""
        return Near(self.value[rows], self.guard[rows])

    def at(self, columns: Int64Array | slice) -> "Near":
        """Return some columns."""
        return Near(self.value[:, columns], self.guard if self.guard.shape[1] == 1 else self.guard[:, columns])


def drawn_estimates(owner: Int64Array, unit: Int64Array, value: Floats, people: int, times: Int64Array) -> Near:
    """Return the sums of the values of each owner, each as often as its unit is drawn, shape (p, b).

    owner, unit, value: of weighted numbers, shape (n,). times: integers from 0 on, shape (u, b).
    """
    sums, sizes = np.zeros((2, people, len(times)))
    np.add.at(sums, (owner, unit), value)
    np.add.at(sizes, (owner, unit), np.abs(value))
    share = _INPUT + (np.bincount(owner).max(initial=0) + len(times) + 8) * _ROUNDING
    often = floats(times)
    return Near(sums @ often, (sizes @ often) * (share * _WIDER))


def turned_sums(difference: Floats, size: Floats, begins: Int64Array, times: Int64Array) -> Near:
    """Return the sums of differences, each times what its unit has in `times`, shape (m, b).

    difference: of two weighted numbers each, in the order of their units, shape (m, n). size: what none of the sums of
    the sizes of two such numbers is above, shape (m, 1). begins: of each unit, shape (u,). times: integers, shape
    (u, b).
    """
    count = difference.shape[1]
    most = run_lengths(begins, count) @ np.abs(times)
    share = _INPUT + (count + len(times) + 8) * _ROUNDING
    return Near(np.add.reduceat(difference, begins, axis=1) @ floats(times), size * (most.max(initial=0) * share))


def norms(difference: Floats, size: Floats, begins: Int64Array) -> Near:
    """Return the roots of the sums of the squares of the sums by unit, shape (m, 1); see `turned_sums`."""
    sums = np.add.reduceat(difference, begins, axis=1)
    value = np.sqrt((sums * sums).sum(axis=1, keepdims=True))
    count = difference.shape[1]
    off = size * (count * (_INPUT + (count + 8) * _ROUNDING))  # the norm of the errors of the sums is below their sum
    return Near(value, off * _WIDER + value * ((len(begins) + 8) * _ROUNDING))


def ratios(sums: Near, norm: Near, unit: int) -> tuple[Floats, Floats]:
    """Return bounds of |sum| / norm in 1 / unit, shape (m, b); there is none above where the norm may be 0."""
    size, least = np.abs(sums.value), norm.low * (1 - _SLACK)
    low = size - sums.guard
    np.maximum(low, 0, out=low)
    low *= unit * (1 - _SLACK) / np.maximum(norm.high, _TINY)
    size += sums.guard
    size *= unit * (1 + _SLACK) / np.maximum(least, _TINY)
    np.copyto(size, np.inf, where=least <= _TINY)
    return low, size


class Rough(NamedTuple):
    """Numbers to seven digits, for a quick look: value x 2^exponent, each off by less than `off` x 2^exponent.

    value: shape (b, p), from -1 to 1.
    """

    value: NDArray[np.float32]
    exponent: int
    off: np.float64

    def may_reach(self, first: int, later: Int64Array, columns: Int64Array, limits: Floats) -> BoolArray:
        """Return where the numbers of a row and of later ones may differ by as much as a limit, shape (m, columns).

        limits: of the later rows, shape (m,).
        """
        apart = np.abs(self.value[np.ix_(columns, later)] - self.value[columns, first][:, None])
        lower = np.ldexp(limits, -self.exponent) * (1 - _SLACK) - 2 * self.off
        reached: BoolArray = apart >= np.nextafter(lower.astype(np.float32), np.float32(-np.inf))
        return reached.T


def rough(near: Near) -> Rough:
    """Return numbers to seven digits."""
    exponent = int(np.frexp(np.abs(near.value).max(initial=0))[1])
    off = np.ldexp(near.guard.max(initial=0), -exponent) * _WIDER + 2.0**-22
    return Rough(np.ldexp(near.value, -exponent).astype(np.float32).T.copy(), exponent, off)


def squares_beside(sums: Near, size: Floats) -> Floats:
    """Return what the squares of sums, each over the size of its row, are not above; shape (p, b)."""
    beside: Floats = (np.abs(sums.value) + sums.guard) / size
    return beside * beside * (1 + 2.0**-30)


def squares_apart(norm: Near, ones: Floats, others: Floats) -> Floats:
    """Return what the squares of distances, each over the sum of the squares of two sizes, are not below."""
    least = np.maximum(norm.low, 0)
    apart: Floats = least * least / (ones * ones + others * others) * (1 - 2.0**-30)
    return apart


def square_of(ratio: float, unit: int) -> float:
    """Return the square of a ratio, 1 / unit."""
    return (ratio / unit) ** 2


def least_sums(norm: Near, unit: int, ratio: float) -> Floats:
    """Return how large a sum must be at least if its ratio to a norm, 1 / unit, as of `ratios`, is this; shape (m,)."""
    least = norm.low[:, 0] * (1 - _SLACK)
    return np.where(least > _TINY, least * (ratio / unit) * (1 - 4 * _SLACK), 0)


def finely(near: Near, exact: Callable[[Int64Array], NDArray[np.object_]], fine: int) -> Near:
    """Return bounds of numbers that are rounded to 1 / fine, shape (p, b).

    exact: returns some columns in 1 / fine; they replace those whose bounds are wide.
    """
    value, guard = near.value.copy(), near.guard + np.full_like(near.value, 1 / fine)
    largest = np.abs(value[np.isfinite(guard)]).max(initial=0)
    wide = np.flatnonzero(~(guard.max(axis=0, initial=0) <= largest * _NARROW))
    if len(wide):
        value[:, wide] = floats(exact(wide)) / fine
        guard[:, wide] = np.abs(value[:, wide]) * (2 * _ROUNDING)
    return Near(value, guard * _WIDER)


def root_mean_squares(apart: Near, least: int) -> Near:
    """Return the roots of the means of the squares of each row, at least `least`, shape (p, 1)."""
    count = apart.value.shape[1]
    value = np.sqrt(np.einsum("pb,pb->p", apart.value, apart.value) / count)[:, None]
    guard = apart.guard.max(axis=1, keepdims=True, initial=0) + value * ((count + 8) * _ROUNDING)
    return Near(np.maximum(value, least), guard * _WIDER)


def normal_bounds(ratio: Near, norm: Near, clusters: Int64Array, strata: int, unit: int) -> tuple[Floats, Floats]:
    """Return bounds of what `rank_sets_of_refits` makes of |ratio| / norm, T there, in 1 / unit, shape (p, 1)."""
    degrees = floats(np.maximum(clusters - strata, 1))[:, None]
    low, high = (np.clip(edge, 2.0**-400, 2.0**400) for edge in ratios(ratio, norm, 1))
    small, large = (
        (4 * degrees - 1) / np.sqrt(8 * degrees * (1 + 2 * floats(clusters)[:, None] / (edge * edge)))
        for edge in (low, high)
    )
    return small * (unit * (1 - 4 * _SLACK)), large * (unit * (1 + 4 * _SLACK))


class Rows(NamedTuple):
    """The floats nearest to numbers, shape (p, u), and the roots of the sums of their squares, shape (p, 1)."""

    value: Floats
    size: Floats

    def turned(self, times: Int64Array) -> Near:
        """Return rows @ times, shape (p, b)."""
        most = np.abs(times).max(initial=1) * ((self.value.shape[1] + 8) * _ROUNDING)
        guard = np.abs(self.value).sum(axis=1, keepdims=True) * most
        return Near(self.value @ floats(times), guard * _WIDER)

    def distances_of(self, ones: Int64Array, others: Int64Array, least: int) -> Near:
        """Return the distances of pairs of rows, roots of sums of squares, at least `least`; shape (k, 1)."""
        value, size = np.empty((len(ones), 1)), max(_NUMBERS // max(self.value.shape[1], 1), 1)
        for begin in range(0, len(ones), size):
            at = slice(begin, begin + size)
            apart = self.value[ones[at]] - self.value[others[at]]
            value[at] = np.sqrt(np.einsum("pu,pu->p", apart, apart))[:, None]
        guard = (self.size[ones] + self.size[others]) * ((self.value.shape[1] + 8) * _ROUNDING)
        return Near(np.maximum(value, least), guard * _WIDER + value * (8 * _ROUNDING))

    def distances_from(self, some: slice, least: int) -> Near:
        """Return what `distances_of` returns, from some rows to all rows, shape (m, p).

        The square of a distance is a sum of two squares less twice a product of rows, which errs by little of the sizes
        of the rows: the distances of rows that are near each other are computed again from their differences.
        """
        squares = (self.value * self.value).sum(axis=1)
        sizes = self.size[some] + self.size.T
        share = (self.value.shape[1] + 8) * _ROUNDING
        value = squares[some, None] + squares - 2 * (self.value[some] @ self.value.T)
        value = np.sqrt(np.maximum(value, 0))
        guard = sizes * (sizes * share / np.maximum(value, np.maximum(sizes * 2.0**-20, _TINY)) + share)
        near = np.argwhere(guard > value * 2.0**-20)
        value, guard = np.maximum(value, least), guard * _WIDER + value * (8 * _ROUNDING)
        if len(near):
            ones, others = near.T
            again = self.distances_of(ones + some.start, others, least)
            value[ones, others], guard[ones, others] = again.value[:, 0], again.guard[:, 0]
        return Near(value, guard)

    def centred(self) -> "Rows":
        """Return the rows less their means; sizes are as before, so that guards are those of `distances_of`."""
        return self._replace(value=self.value - self.value.mean(axis=1, keepdims=True))


def rows_of_floats(numbers: NDArray[Any]) -> Rows:
    """Return the floats nearest to integers, shape (p, u)."""
    value = floats(numbers)
    return Rows(value, np.sqrt((value * value).sum(axis=1, keepdims=True)))


def signs_of(difference: Floats, size: Floats) -> tuple[Int64Array, BoolArray]:
    """Return the signs of differences of two weighted numbers each, and where a sign is in doubt.

    size: the sums of the sizes of the two numbers; where it is 0, both are 0.
    """
    return np.sign(difference).astype(np.int64), np.abs(difference) <= size * (_INPUT + _ROUNDING)


def surprises(difference: Floats, size: Floats, known: BoolArray) -> Near:
    """Return Σ (difference - mean of those before it)² over the known differences of each row, 0 before the first.

    difference: 0 where it is not known; see `turned_sums`; shape (m, n). Returns shape (m,).
    """
    count: Int64Array = np.cumsum(known, axis=1) - known
    before = np.cumsum(difference, axis=1) - difference
    apart = np.where(known, difference - before / np.maximum(count, 1), 0)
    norm = np.sqrt((apart * apart).sum(axis=1))
    terms = difference.shape[1]
    # The norm of the errors of the terms, and what its own roundings add.
    off = size[:, 0] * np.sqrt(floats(known.sum(axis=1))) * (2 * _INPUT + (terms + 8) * 2 * _ROUNDING)
    off = off + norm * ((terms + 8) * _ROUNDING)
    return Near(norm * norm, (2 * norm + off) * off * _WIDER + norm * norm * _ROUNDING)


def above_root(near: Near, square: Fraction) -> tuple[BoolArray, BoolArray]:
    """Return which numbers seem to be greater than the root of a fraction, and for which that is in doubt."""
    root = np.sqrt(square.numerator / square.denominator)
    return near.value > root, np.abs(near.value - root) <= (near.guard + root * (4 * _ROUNDING)) * _WIDER


def order_bounds(near: Near, indices: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return bounds of the order statistics at these indices, from 0, of each row; shape (p, indices) each."""
    low, high = (np.partition(ends, indices, axis=1)[:, indices] for ends in (near.low, near.high))
    return low, high


def near_fixed(low: NDArray[np.object_], width: Int64Array, bits: int) -> Near:
    """Return numbers that are from low to low + width in 2^-bits; shape (p, b)."""
    value = scaled(low, bits)
    return Near(value, scaled(width, bits) * _WIDER + np.abs(value) * _ROUNDING)


def near_numbers(near: Near, unit: int, less: Floats) -> tuple[Floats, Floats]:
    """Return numbers in 1/unit, less one of each column, and their guards, shape (p, b)."""
    value = (near.value - less) / unit
    guard = np.broadcast_to(near.guard, near.value.shape) / unit * 1.001
    return value, guard + (np.abs(near.value) + np.abs(less)) / unit * PRODUCT


def scaled(numbers: NDArray[Any], bits: int) -> Floats:
    """Return the floats nearest to integers in 2^-bits."""
    return np.ldexp(floats(numbers), -bits)


def divided(near: Near, units: int) -> tuple[Int64Array, BoolArray]:
    """Divide units in proportion to numbers that are not below 0, by largest remainder, in each row, shape (b, p).

    Returns the parts, and in which rows they are certain, shape (b,).

    >>> near = Near(np.array([[1.0, 4.0, 0.0], [1.0, 1.0, 0.0]]), np.full((2, 1), 2.0**-40))
    >>> [array.tolist() for array in divided(near, 11)]  # half of 11 has a tie
    [[[2, 9, 0], [6, 6, 0]], [True, False]]
    """
    (value, guard), size = near, near.value.shape[1]
    if not size or units >> 52:
        return np.zeros(value.shape, np.int64), np.full(len(value), not size)
    guard = np.broadcast_to(guard, value.shape)
    with np.errstate(all="ignore"):  # a guard may be infinite, and a sum 0
        total = value.sum(axis=1, keepdims=True)
        off = guard.sum(axis=1, keepdims=True) * _WIDER + total * ((size + 8) * _ROUNDING)
        quota = value / total * units
        slack = (guard * units + quota * off) / (total - off) * _WIDER + quota * (8 * _ROUNDING)
        known = (total > off)[:, 0]
        quota[~known] = 0
        whole = np.floor(quota)
        rest, left = quota - whole, (units - whole.sum(axis=1)).astype(np.int64)[:, None]
        ordered = np.sort(rest, axis=1)
        last, following = (
            np.take_along_axis(ordered, np.clip(size - left - after, 0, size - 1), axis=1) for after in (0, 1)
        )
        # A quota that may be on either side of an integer gets the same part from both: what it loses, it has left.
        apart = (left == 0) | (left == size) | (last - following > 2.001 * slack.max(axis=1, keepdims=True))
        certain = known & (slack.sum(axis=1) < 0.25) & (apart & (left >= 0) & (left <= size))[:, 0]
    nothing = (value + guard == 0).all(axis=1)
    parts = (whole + ((rest >= last) & (left > 0))).astype(np.int64)
    parts[nothing] = 0
    return parts, certain | nothing


def above_least(near: Near, pool: int, least: int, *, at_once: bool) -> tuple[BoolArray, BoolArray]:
    """Return which numbers are worth a least prize, as the functions of `prizes.PASSES` find them, shape (b, p).

    near: of each row, not below 0. at_once: by shares among all; else the smallest are left out first. Also returns in
    which rows this is certain, shape (b,); it is not where equal numbers are at the edge.

    >>> near = Near(np.array([[3.0, 2.0, 6.0], [3.0, 3.0, 6.0]]), np.full((2, 1), 2.0**-40))
    >>> [array.tolist() for array in above_least(near, 100, 28, at_once=False)]
    [[[True, False, True], [True, True, True]], [True, False]]
    >>> [array.tolist() for array in above_least(near, 100, 28, at_once=True)]
    [[[False, False, True], [False, False, True]], [True, True]]
    """
    value, guard = near.value, np.broadcast_to(near.guard, near.value.shape)
    with np.errstate(all="ignore"):  # a guard may be infinite
        widest, total = guard.max(axis=1), value.sum(axis=1)
        slack = pool * widest + least * (guard.sum(axis=1) + total * (value.shape[1] * _ROUNDING))
        slack = 4 * (slack + (pool + least) * total * (8 * _ROUNDING))  # 4: equal ones may come in another order
        nothing = (total == 0) & (widest == 0)
        if at_once:
            margin = pool * value - least * total[:, None]
            return margin >= 0, (np.abs(margin) > slack[:, None]).all(axis=1) | nothing
        ordered = np.sort(value, axis=1)
        rests = np.cumsum(ordered[:, ::-1], axis=1)[:, ::-1]
        margin = pool * ordered - least * rests
        margin[:, -1] = np.inf  # the largest is never left out
        first = np.argmax(margin >= 0, axis=1)[:, None]
        before = np.arange(value.shape[1]) < first
        edge = np.take_along_axis(ordered, first, axis=1)
        below = np.where(before, ordered, -np.inf).max(axis=1)
        certain = np.where(before, margin, -np.inf).max(axis=1) < -slack
        certain &= np.take_along_axis(margin, first, axis=1)[:, 0] > slack
        certain &= (edge[:, 0] - below > 4 * widest) & (pool >= least)
    return value >= edge, certain | nothing


# --- Least squares in replicates: participants and questions have effects on scores, and questions are drawn again.


Quotient = tuple[int, int]  # a numerator, and a denominator above 0


class Design(NamedTuple):
    """Scores, shape (n,). owner: from 0 to people - 1. question: from 0 on. unit, weight: of each question, (q,)."""

    owner: Int64Array
    question: Int64Array
    unit: Int64Array
    weight: Int64Array
    people: int


class _Sums(NamedTuple):
    """Sums over the questions of units, or of replicates, first axis; see `_sums_by_unit`."""

    matrix: Floats
    right: Floats
    size: Floats
    shares: Floats
    drawn: Floats
    means: Floats
    sizes: Floats
    weights: Floats


def refitted(design: Design, scores: list[Quotient], times: Int64Array) -> tuple[Near, BoolArray]:
    """Return the adjusted scores of each replicate, shape (p, b), and whether they are defined.

    They are if whoever has a score on what is drawn is connected by common questions. times: how often each unit is
    drawn, shape (b, u).

    Effects x of participants have as many equations, A x = b, after those of questions are solved. To the number of A
    for each two participants is added what both would share of the weight of questions by chance, so that a weighted
    sum of the effects is 0. An approximate inverse M says how far a solution may be off: |x - x'| is at most
    |M| |b - A x'| / (1 - |1 - M A|), by the largest row. That of the diagonal of A will do, if the rest is small.
    Source: Rump (2010), Acta Numerica 19:287-449, doi:10.1017/S096249291000005X.
    """
    by_unit, added = _sums_by_unit(design, scores, times.shape[1])
    few = (added + times.shape[1] + 2 * design.people + 16) * _ROUNDING  # of a sum of its terms' sizes
    size = max(_NUMBERS // design.people**2, 1)
    fits = [
        _fitted(_Sums(*(_weighted(floats(times[begin : begin + size]), sums) for sums in by_unit)), few)
        for begin in range(0, len(times), size)
    ]
    value, guard, defined = (np.concatenate(each).T for each in zip(*fits, strict=True))
    return Near(value, guard), defined


def _weighted(times: Floats, sums: Floats) -> Floats:
    weighted: Floats = (times @ sums.reshape(len(sums), -1)).reshape(len(times), *sums.shape[1:])
    return weighted


def _sums_by_unit(design: Design, scores: list[Quotient], units: int) -> tuple[_Sums, int]:
    """Return the sums of each unit, and of how many floats a sum is made at most, so that few roundings add up.

    The matrix is A without signs out of its diagonal. Scores are integers in 2^-_BITS, which add up exactly.
    """
    owner, question, unit, weight, people = design
    score = np.array([(number << _BITS) // divisor for number, divisor in scores], object)
    count, row_unit, heavy = np.bincount(question), unit[question], floats(weight)
    total, size = np.zeros(len(count), object), np.bincount(question, np.abs(scaled(score, _BITS))) / count
    np.add.at(total, question, score)
    right, means = np.zeros((units, people), object), np.zeros(units, object)
    np.add.at(right, (row_unit, owner), weight[question] * (score - total[question] // count[question]))
    np.add.at(means, unit, weight * total // count)
    sums = _Sums(*(np.zeros((units, *(people,) * each)) for each in (2, 1, 1, 1, 1, 0, 0, 0)))
    added = _add_shares(sums.matrix, design, heavy / count)
    np.add.at(sums.size, (row_unit, owner), heavy[question] * (np.abs(scaled(score, _BITS)) + size[question] + _FLOOR))
    np.add.at(sums.drawn, (row_unit, owner), heavy[question])
    np.add.at(sums.sizes, unit, heavy * (size + _FLOOR))
    np.add.at(sums.weights, unit, heavy)
    shares = np.einsum("uii->ui", sums.matrix)  # a participant's own are in the diagonal
    return sums._replace(right=scaled(right, _BITS), shares=shares, means=scaled(means, _BITS)), added


def _add_shares(matrix: Floats, design: Design, share: Floats) -> int:
    """Add the share of each question, for each two participants who have a score on it, to the matrix of its unit.

    Equal shares in a unit are counted first. Returns how many different ones a unit has at most.
    """
    _, kind = np.unique(share, return_inverse=True)
    order = np.lexsort((kind, design.unit))
    members = np.split(
        design.owner[np.argsort(design.question, kind="stable")], np.cumsum(np.bincount(design.question))
    )
    starts = run_starts(design.unit[order], kind[order])
    for run in np.split(order, starts[1:]):
        counts = np.zeros_like(matrix[0])
        for number in run.tolist():
            counts[np.ix_(members[number], members[number])] += 1
        matrix[design.unit[run[0]]] += share[run[0]] * counts
    return int(np.bincount(design.unit[order][starts]).max(initial=0))


def _fitted(sums: _Sums, few: float) -> tuple[Floats, Floats, BoolArray]:
    """Return adjusted scores, how far they may be off, and whether they are defined, shape (b, p) each.

    few: by what share of the sizes of its terms a sum may be off. The sums of the sizes of the terms of A times numbers
    are those of its parts.
    """
    present = sums.drawn > 0
    beside = sums.drawn / np.sqrt(np.maximum(sums.drawn.sum(axis=1, keepdims=True), 1))
    matrix = beside[:, :, None] * beside[:, None, :]
    matrix -= sums.matrix
    own = np.einsum("bii->bi", matrix)
    own += sums.drawn + ~present
    wrong = _sizes(sums, beside, np.ones_like(own)) * (2 * few)
    apart = (((np.abs(matrix).sum(axis=2) - own) + wrong) / own).max(axis=1)
    connected = apart < _NEAR
    rest = np.flatnonzero(~connected)
    connected[rest] = _connected(sums.matrix[rest], present[rest])
    matrix[~connected] = np.eye(matrix.shape[1])
    solution = np.linalg.solve(matrix, sums.right[:, :, None])[..., 0]
    left, size = np.abs(sums.right - _times(matrix, solution)), np.abs(solution)
    left += (sums.size + _sizes(sums, beside, size)) * (2 * few)
    furthest = (left / own).max(axis=1)
    apart[rest], furthest[rest] = _by_inverse(matrix[rest], wrong[rest], left[rest])
    short = 1 - apart * (1 + 2 * few)
    off = np.where(short > 0, furthest * (1 + 2 * few) / np.where(short > 0, short, 1), np.inf)
    weights = np.where(sums.weights > 0, sums.weights, 1)
    common = (sums.means - (sums.shares * solution).sum(axis=1)) / weights
    sizes = (sums.sizes + (sums.shares * size).sum(axis=1)) / weights + size.max(axis=1)
    guard = (2 * off + sizes * (4 * few)) * _WIDER
    value = solution + common[:, None]
    return value, np.broadcast_to(guard[:, None], value.shape), present & connected[:, None]


def _by_inverse(matrix: Floats, wrong: Floats, left: Floats) -> tuple[Floats, Floats]:
    """Return |1 - M A| and |M| times what is left, the largest row of each, shape (b,). M: the inverse of A in floats.

    wrong: by how much the numbers in a row of A may be off together, shape (b, p).
    """
    inverse = np.asarray(np.linalg.inv(matrix), np.float64)
    product = inverse @ matrix
    np.einsum("bii->bi", product)[:] -= 1
    np.abs(inverse, out=inverse)
    apart = np.abs(product, out=product).sum(axis=2) + _times(inverse, wrong)
    return apart.max(axis=1), _times(inverse, left).max(axis=1)


def _times(matrix: Floats, numbers: Floats) -> Floats:
    """Return the product of each matrix and numbers, shape (b, p)."""
    product: Floats = (matrix @ numbers[:, :, None])[..., 0]
    return product


def _sizes(sums: _Sums, beside: Floats, numbers: Floats) -> Floats:
    """Return the sums of the sizes of the terms of A times numbers that are not negative, shape (b, p)."""
    together = (beside * numbers).sum(axis=1, keepdims=True)
    product: Floats = _times(sums.matrix, numbers) + sums.drawn * numbers + beside * together
    return product


def _connected(common: Floats, present: BoolArray) -> BoolArray:
    """Return in which replicates whoever is present is connected with all others, shape (b,).

    common: above 0 where two participants have a common question, shape (b, p, p). They are if one of them has one with
    each of the others, as is seen first.
    """
    met = np.count_nonzero(common, axis=2)
    connected: BoolArray = met.max(axis=1) >= np.count_nonzero(present, axis=1)
    left = np.flatnonzero(~connected)
    reached, steps = common[left] > 0, 1
    while len(left) and steps < reached.shape[1]:
        near = reached.astype(np.float32)
        reached, steps = near @ near > 0, 2 * steps
    both = present[left, :, None] & present[left, None, :]
    connected[left] = (reached | ~both).all(axis=(1, 2))
    return connected
