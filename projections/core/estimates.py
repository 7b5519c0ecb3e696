"""Exact integers by way of floats: a float estimate decides the integer where it is certain, and says where it is not.

One thing is assumed of floats: a sum, product, quotient or root errs by at most 2^-53 of itself. What is assumed of
logarithms and powers is said where they are used.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, Totals, largest, run_lengths
from forecast_ledger.projections.core.late_fractions import BITS, bounds_of, comparable, quotient, round_to_units
from forecast_ledger.projections.core.powers import QUANTUM, ln_fixed, log2_fixed, log10_fixed
from forecast_ledger.projections.core.wide_int import WORD_BITS, WideInt

Floats = NDArray[np.float64]
PRODUCT = 2.0**-50  # by how much of itself an estimated product may err
POWER = 2.0**-47  # by how much of itself a power of e or 2 may err: this is assumed of the platform, as of logarithms
_EXACT = 53  # bits of a float: sums of integers below 2^53 are exact, in any order


def floats(numbers: NDArray[Any]) -> Floats:
    """Return the floats nearest to integers or fractions."""
    return numbers.astype(np.float64)


def round_estimates(values: Floats, guards: Floats | float) -> tuple[Int64Array, Int64Array]:
    """Return the nearest integers, shape (n,), and the rows where a tie is too near to decide; those rows hold 0.

    values: estimates that err by less than their guards, shape (n,) each, or one for all.

    >>> [array.tolist() for array in round_estimates(np.array([1.25, 2.4999]), np.array([0.001, 0.001]))]
    [[1, 0], [1]]
    """
    near = np.rint(values)
    off = values - near
    uncertain = np.flatnonzero(np.abs(off, out=off) > 0.5 - guards)
    near[uncertain] = 0  # an uncertain estimate may be too large to cast
    return near.astype(np.int64), uncertain


def estimate_products(numbers: WideInt, factors: Sequence[tuple[int, int]], which: Int64Array) -> Floats:
    """Return numbers x factors[which] as floats, shape (n,), each of which errs by less than PRODUCT of itself.

    factors: numerators and denominators.

    >>> estimate_products(WideInt.from_integers([-3, 1 << 80]), [(1, 2), (1, 1 << 79)], np.array([0, 1]))
    array([-1.5,  2. ])
    """
    wide, scale = numbers.carried(), np.array([above / below for above, below in factors], np.float64)
    below = wide.high < 0
    signed = below.any()
    size = WideInt(*(np.where(below, -word, word) for word in wide)).carried() if signed else wide
    value = (size.high * 2.0 ** (2 * WORD_BITS) + (size.middle * 2.0**WORD_BITS + size.low)) * scale[which]
    return np.where(below, -value, value) if signed else value  # there are five roundings, each of 2^-53 at most


def multiply_and_round(numbers: WideInt, factors: Sequence[Fraction], which: Int64Array) -> Int64Array | list[int]:
    """Return numbers x factors[which], each rounded half-even once, shape (n,); a list if one needs more than 62 bits.

    A float estimate decides where it is certain; the other rows are evaluated exactly.

    >>> factors = [Fraction(5, 2), Fraction(10, 3)]
    >>> multiply_and_round(WideInt.from_integers([1, 3, -5]), factors, np.array([0, 0, 1])).tolist()
    [2, 8, -17]
    """
    ratios = [factor.as_integer_ratio() for factor in factors]
    wide, value = numbers.carried(), estimate_products(numbers, ratios, which)
    rounded, uncertain = round_estimates(value, np.abs(value) * PRODUCT)
    exact = [
        half_even(number * factors[index].numerator, factors[index].denominator)
        for number, index in zip(wide.take(uncertain).integers(), which[uncertain].tolist(), strict=True)
    ]
    if max(map(abs, exact), default=0) < 1 << 62:
        rounded[uncertain] = exact
        return rounded
    numbers_of_any_size: list[int] = rounded.tolist()
    for row, number in zip(uncertain.tolist(), exact, strict=True):
        numbers_of_any_size[row] = number
    return numbers_of_any_size


# --- Columns of exact numbers that floats estimate.


_LARGEST = 1e150  # of an estimate: what is computed from it stays finite


class Estimated(NamedTuple):
    """Exact numbers, of which floats are known, and which are computed only where these leave a doubt; shape (n,).

    values: err by at most their guards, which may be infinite. exact: returns the numbers of some rows.

    >>> thirds = Estimated.of([Fraction(1, 3), Fraction(2, 3)])
    >>> thirds.rounded(10), thirds.divided_by(Estimated.of_integers(np.array([2, 4]), 1)).rounded(100)
    ([3, 7], [17, 17])
    """

    values: Floats
    guards: Floats
    exact: Callable[[Int64Array], Sequence[Any]]

    @classmethod
    def of(cls, numbers: Sequence[Fraction]) -> "Estimated":
        """Return numbers that are known exactly."""
        pairs = [_estimate(number) for number in numbers]
        values, guards = np.array(pairs, np.float64).reshape(-1, 2).T
        return cls(values, guards, lambda rows: [numbers[row] for row in rows.tolist()])

    @classmethod
    def of_integers(cls, numbers: Int64Array, unit: int) -> "Estimated":
        """Return integers in 1/unit."""
        values = floats(numbers) / unit
        guards = np.abs(values) * PRODUCT
        return cls(values, guards, lambda rows: [Fraction(number, unit) for number in numbers[rows].tolist()])

    def certain(self) -> "Estimated":
        """Return the same numbers with an infinite guard where a value or a guard is very large or not a number."""
        known = (np.abs(self.values) < _LARGEST) & (self.guards < _LARGEST)
        return Estimated(np.where(known, self.values, 0.0), np.where(known, self.guards, np.inf), self.exact)

    def remembered(self) -> "Estimated":
        """Return the same numbers, each of which is computed once."""
        known: dict[int, Any] = {}

        def exact(rows: Int64Array) -> list[Any]:
            new = [row for row in rows.tolist() if row not in known]
            known.update(zip(new, self.exact(np.array(new, np.int64)), strict=True))
            return [known[row] for row in rows.tolist()]

        return Estimated(self.values, self.guards, exact)

    def negated(self) -> "Estimated":
        """Return these numbers with the other sign."""
        return Estimated(-self.values, self.guards, lambda rows: [-number for number in self.exact(rows)])

    def rows(self, index: Int64Array) -> "Estimated":
        """Return the numbers at these indices."""
        return Estimated(self.values[index], self.guards[index], lambda rows: self.exact(index[rows]))

    def followed_by(self, other: "Estimated") -> "Estimated":
        """Return these numbers and others."""

        def exact(rows: Int64Array) -> list[Any]:
            others = iter(other.exact(rows[rows >= len(self.values)] - len(self.values)))
            mine = iter(self.exact(rows[rows < len(self.values)]))
            return [next(mine if own else others) for own in (rows < len(self.values)).tolist()]

        values, guards = (np.concatenate(pair) for pair in zip(self[:2], other[:2], strict=True))
        return Estimated(values, guards, exact)

    def run_sums(self, starts: Int64Array) -> "Estimated":
        """Return the sum of each run; starts: see `WideInt.run_sums`."""
        ends = np.append(starts[1:], len(self.values))
        sizes = np.add.reduceat(np.abs(self.values), starts)
        guards = np.add.reduceat(self.guards, starts) * 1.001 + sizes * (ends - starts) * 2.0**-52

        def exact(rows: Int64Array) -> list[Fraction]:
            runs = zip(starts[rows].tolist(), ends[rows].tolist(), strict=True)
            parts = (self.exact(np.arange(*run)) for run in runs)
            return [sum(others, first) for first, *others in parts]

        return Estimated(np.add.reduceat(self.values, starts), guards, exact)

    def divided_by(self, other: "Estimated") -> "Estimated":
        """Return quotients by numbers that are not below 0."""
        with np.errstate(all="ignore"):
            values = self.values / other.values
            guards = (self.guards + np.abs(values) * other.guards) / (other.values - other.guards)
            guards = np.where(other.values > other.guards, guards * 1.001 + np.abs(values) * PRODUCT, np.inf)

        def exact(rows: Int64Array) -> list[Fraction]:
            return [quotient(*pair) for pair in zip(self.exact(rows), other.exact(rows), strict=True)]

        return Estimated(values, guards, exact).certain()

    def at_least(self, least: int) -> "Estimated":
        """Return the larger of a limit and each number."""
        floored = np.maximum(self.values, least)
        return Estimated(floored, self.guards, lambda rows: [max(Fraction(least), each) for each in self.exact(rows)])

    def shares(self, starts: Int64Array) -> "Estimated":
        """Return the share of each number, not below 0, in the sum of its run; starts: see `WideInt.run_sums`.

        >>> Estimated.of_integers(np.array([1, 3, 0, 5]), 1).shares(np.array([0, 2])).values
        array([0.25, 0.75, 0.  , 1.  ])
        """
        run = _runs(starts, len(self.values))
        positive = self.values + self.guards > 0  # or may be
        shares = self.divided_by(self.run_sums(starts).rows(run))
        alone = (np.add.reduceat(positive, starts, dtype=np.int64) <= 1)[run]  # it has all, if it is not 0
        guards = np.where(positive & (self.values <= self.guards), np.inf, 0.0)
        return Estimated(np.where(alone, positive, shares.values), np.where(alone, guards, shares.guards), shares.exact)

    def apportioned(self, starts: Int64Array, counts: Int64Array) -> tuple[Int64Array, BoolArray]:
        """Divide units by these shares, as `proportions.apportion` does; return the parts, and which runs are certain.

        counts: how many units each run divides, below 2^52; none if every share is 0.

        >>> shares = Estimated.of_integers(np.array([1, 1, 1, 0]), 3)
        >>> [column.tolist() for column in shares.apportioned(np.array([0, 3]), np.array([100, 7]))]
        [[34, 33, 33, 0], [False, True]]
        """
        run, sizes = _runs(starts, len(self.values)), run_lengths(starts, len(self.values))
        counts = np.where(np.maximum.reduceat(self.values + self.guards, starts) > 0, counts, 0)
        quota = self.values * counts[run]
        with np.errstate(invalid="ignore"):  # a guard may be infinite, and there may be no units
            slack = self.guards * counts[run] * 1.001 + quota * PRODUCT
        least = np.floor(quota)
        rest, parts = quota - least, least.astype(np.int64)
        left = counts - np.add.reduceat(parts, starts)
        order = np.lexsort((-rest, run))  # stable: equal remainders in order
        parts[order] += np.arange(len(run)) - starts[run] < left[run]
        # A quota that may be on either side of an integer gets the same part from both: what it loses, it has left.
        certain = np.add.reduceat(slack, starts) < 0.25
        cut = np.flatnonzero((left > 0) & (left < sizes))
        last = starts[cut] + left[cut] - 1
        certain[cut] &= rest[order[last]] - rest[order[last + 1]] > 2.001 * np.maximum.reduceat(slack, starts)[cut]
        return parts, certain

    def nearest(self, units: int) -> tuple[Int64Array, Int64Array]:
        """Return what `round_estimates` returns, in 1/units."""
        scaled = self.values * units
        return round_estimates(scaled, self.guards * units * 1.001 + np.abs(scaled) * PRODUCT)

    def rounded(self, units: int) -> list[int]:
        """Return the numbers in 1/units, each rounded half-even once."""
        near, uncertain = self.nearest(units)
        rounded: list[int] = near.tolist()
        for row, number in zip(uncertain.tolist(), self.exact(uncertain), strict=True):
            rounded[row] = round_to_units(number, units)
        return rounded

    def in_order(self, part: Int64Array, tie: Int64Array, *, falling: bool) -> tuple[Int64Array, BoolArray]:
        """Return the rows by part, number and tie, and whether each is the first of equal numbers of a part.

        falling: whether the largest number of each part comes first.
        """
        keys, wide = -self.values if falling else self.values, self.guards * 1.25  # for the rounding of the ends
        order = np.lexsort((tie, keys - wide, part))
        first = np.ones(len(order), bool)
        if len(order) < 2:
            return order, first
        limits = np.stack([keys - wide, keys + wide])[:, order]
        place = np.unique(limits, return_inverse=True)[1].reshape(limits.shape)
        low, high = part[order] * limits.size + place  # of a later part, both are larger
        first[1:] = low[1:] > np.maximum.accumulate(high)[:-1]
        begins = np.flatnonzero(first)
        sizes = run_lengths(begins, len(order))
        doubtful = (sizes > 1) & (np.maximum.reduceat(self.guards[order], begins) > 0)
        numbers = self.exact(order[np.repeat(doubtful, sizes)]) if doubtful.any() else []
        used = 0
        for begin, size in zip(begins[doubtful].tolist(), sizes[doubtful].tolist(), strict=True):
            rows, run = order[begin : begin + size], numbers[used : used + size]
            used += size
            worths = comparable(run) if isinstance(run[0], Fraction) else run
            places = sorted(range(size), key=tie[rows].tolist().__getitem__)
            places.sort(key=worths.__getitem__, reverse=falling)  # stable: equal numbers stay in order of tie
            order[begin : begin + size] = rows[places]
            first[begin + 1 : begin + size] = [worths[one] != worths[next_one] for one, next_one in pairwise(places)]
        return order, first


def _runs(starts: Int64Array, count: int) -> Int64Array:
    """Return the index of the run of each number."""
    return np.repeat(np.arange(len(starts)), run_lengths(starts, count))


def _estimate(number: Fraction) -> tuple[float, float]:
    """Return a float near a number, and by how much it may err."""
    low, high = bounds_of(number)
    try:
        value = (low + high) / (2 << BITS)
    except OverflowError:
        return 0.0, np.inf
    return value, abs(value) * PRODUCT + (high - low) / (1 << BITS)


def sum_products(terms: Int64Array, weights: Int64Array, totals: Totals) -> WideInt:
    """Return the sum of terms x weights of each index of totals, exact; weights as for `WideInt.product`.

    Products that wrap give the last 64 bits of a sum, and floats the bits above: they err by less than 2^62, as each
    product errs by three roundings and each addition by one, of 2^-53. Larger sums are those of wide products.

    >>> pair = Totals(np.array([0, 0]), np.array([2]))
    >>> sum_products(np.array([-(10**13), 1]), np.array([10**16, 7]), pair).integers() == [7 - 10**29]
    True
    """
    most, count = largest(terms) * largest(weights), int(totals.counts.max(initial=0))
    if most * count < 1 << 63:
        return WideInt.from_int64(totals.of(terms * weights))
    if most * (count + 3) ** 2 >> 114:
        return WideInt.product(terms, weights).totals(totals)
    low = totals.of(terms * weights)
    estimates = np.bincount(totals.which, floats(terms) * weights, len(totals.counts))
    above = np.rint((estimates - low) * 2.0**-64).astype(np.int64)
    mask, bits = (1 << WORD_BITS) - 1, 64 - WORD_BITS
    middle = (low >> WORD_BITS) + ((above & mask >> bits) << bits)
    return WideInt(low & mask, middle, above >> WORD_BITS - bits).carried()


def divide_wrapped(
    numerators: Int64Array, denominators: Int64Array | int, estimates: Floats
) -> tuple[Int64Array, Int64Array]:
    """Return divmod of wide integers, given their last 64 bits, shape (n,): 64-bit sums wrap.

    estimates: of the same integers, less than 2^60 off. 0 < denominator < 2^60; quotients of at most 2^52.

    >>> wrapped = np.array([10**12]) * 10**12  # modulo 2^64
    >>> [array.tolist() for array in divide_wrapped(wrapped + 5, 10**9, np.array([1.0e24]))]
    [[1000000000000000], [5]]
    """
    near = np.rint(estimates / denominators).astype(np.int64)
    carried, remainders = np.divmod(numerators - near * denominators, denominators)
    return near + carried, remainders


def subtract_and_round(
    quotients: Int64Array, remainders: Int64Array, denominator: int, parts: Floats
) -> tuple[Int64Array, Int64Array]:
    """Return (quotient x denominator + remainder - sum of parts) / denominator, rounded, and the uncertain rows.

    quotients, remainders: shape (n,), as divmod gives them. parts: shape (n, k), k <= 3, not negative, up to three
    roundings off each.

    >>> [array.tolist() for array in subtract_and_round(np.array([7]), np.array([3]), 5, np.array([[1.0, 2.0]]))]
    [[7], []]
    """
    subtracted = parts.sum(axis=1)
    beyond = (remainders - subtracted) / denominator
    guard = (remainders + subtracted) / denominator * 2.0**-49  # there are eight roundings, each of 2^-53 at most
    near, uncertain = round_estimates(beyond, guard)
    return quotients + near, uncertain


def root_shares(parts: Int64Array, squares: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return parts / √squares, at most 1, in 1/QUANTUM, rounded, shape (n,), and the uncertain rows.

    >>> [array.tolist() for array in root_shares(np.array([3]), np.array([25]))]
    [[600000000000], []]
    """
    value = parts / np.sqrt(squares) * QUANTUM
    return round_estimates(value, value * 2.0**-49)  # there are five roundings


def matrix_product(rows: Int64Array, times: Int64Array) -> Int64Array:
    """Return rows @ times, exact. rows: shape (p, u). times: shape (u, b). All sums must be below 2^62.

    The numbers of `rows` are cut into limbs, so small that no sum of products needs more than 53 bits.

    >>> matrix_product(np.array([[2**50 + 1, -3]]), np.array([[1, 5], [2, 4]])).tolist() == [[2**50 - 5, 5 * 2**50 - 7]]
    True
    """
    largest = int(np.abs(rows).max(initial=0))
    bits = _EXACT - int(np.abs(times).sum(axis=0).max(initial=0)).bit_length()
    right = floats(times)
    product = np.zeros((rows.shape[0], times.shape[1]), np.int64)
    for shift in range(0, max(largest.bit_length(), 1), bits):
        limb = rows >> shift
        if largest.bit_length() > shift + bits:
            limb &= (1 << bits) - 1
        product += (floats(limb) @ right).astype(np.int64) << shift
    return product


def wide_matrix_product(rows: NDArray[Any], times: Int64Array) -> NDArray[Any]:
    """Return rows @ times, exact. rows: Python integers, shape (p, u). times: shape (u, b).

    >>> wide_matrix_product(np.array([[1 << 90, -3]], object), np.array([[1, 5], [2, 4]])).tolist() == [
    ...     [2**90 - 6, 5 * 2**90 - 12]
    ... ]
    True
    """
    bits = 61 - int(np.abs(times).sum(axis=0).max(initial=0)).bit_length()
    product, shift, rest = np.zeros((rows.shape[0], times.shape[1]), object), 0, rows
    while int(abs(rest).max(initial=0)) >> bits:
        limb = (rest & ((1 << bits) - 1)).astype(np.int64)
        product += matrix_product(limb, times).astype(object) << shift
        rest, shift = rest >> bits, shift + bits
    product += matrix_product(rest.astype(np.int64), times).astype(object) << shift
    return product


# --- Logarithms of many integers in fixed point, each rounded once.


def ln_many(k: Int64Array, unit: int) -> Int64Array:
    """Return `ln_fixed` of every k, 0 < k < 2^62, shape (n,), 1e-12 nat; 20 to 50 ns each.

    >>> ln_many(np.array([1, 2]), 2).tolist()
    [-693147180560, 0]
    """
    return _guarded(k, unit, np.log, ln_fixed)


def log2_many(k: Int64Array, unit: int) -> Int64Array:
    """Return `log2_fixed` of every k, 0 < k < 2^62, shape (n,), 1e-12 bit.

    >>> log2_many(np.array([1, 2]), 8).tolist()
    [-3000000000000, -2000000000000]
    """
    return _guarded(k, unit, np.log2, log2_fixed)


def log10_many(k: Int64Array, unit: int) -> Int64Array:
    """Return `log10_fixed` of every k, 0 < k < 2^62, shape (n,), 1e-12.

    >>> log10_many(np.array([1, 100]), 10).tolist()
    [-1000000000000, 1000000000000]
    """
    return _guarded(k, unit, np.log10, log10_fixed)


def _guarded(
    k: Int64Array, unit: int, estimate: Callable[..., NDArray[np.float64]], exact: Callable[[int, int], int]
) -> Int64Array:
    """Round a float estimate where it is certain; evaluate exactly where a rounding boundary is too near.

    One thing is assumed of the platform: its logarithm errs by less than 8 units in the last place (1 is the most
    ever measured, 4 the most that any vendor documents). k / unit errs by half a unit, which moves the logarithm by
    less than 2^-52, and k and unit each move it by as much if they have more than 53 bits; the product with QUANTUM
    errs by half a unit.
    """
    value = estimate(k / unit)
    value *= QUANTUM
    argument = 2.0**-52 if unit < 1 << 53 else 2.0**-50
    most = max(value.max(initial=0), -value.min(initial=0))
    rounded, near = round_estimates(value, QUANTUM * argument + most * 9 * 2.0**-52)
    rounded[near], uncertain = round_estimates(value[near], QUANTUM * argument + np.abs(value[near]) * 9 * 2.0**-52)
    for row in near[uncertain].tolist():
        rounded[row] = exact(int(k[row]), unit)
    return rounded


_NEAR_ENOUGH = 2.0**-72  # of the squared size of the rest; a step of 36 bits
_MOST_STEPS = 5_000


def two_sided_estimate(
    row: Int64Array, column: Int64Array, weight: Int64Array, totals: NDArray[Any], bits: int
) -> tuple[Floats, int]:
    """Return x of rows, then y of columns, for which Σ weight (x + y) over the cells of each is near its total.

    row, column, weight: of each cell; all cells are connected. totals: of rows, then of columns; the two sums are
    equal. Also returns a power of 2 by which the numbers may be multiplied to stay below 2^bits. Nothing is promised of
    how near they are. By conjugate gradients, for x alone, each equation divided by its degree.

    Source: Hestenes and Stiefel (1952), doi:10.6028/jres.049.044.

    >>> cells = np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([1, 1, 1])
    >>> numbers, _ = two_sided_estimate(*cells, np.array([30, 40, 10, 60]), 50)
    >>> x, y = numbers[:2], numbers[2:]
    >>> np.rint(x[cells[0]] + y[cells[1]])  # of the cells
    array([10., 20., 40.])
    """
    size, heavy, right = int(row.max()) + 1, floats(weight), floats(totals)
    count = len(right) - size
    rows, columns = np.bincount(row, heavy), np.bincount(column, heavy)

    def across(x: Floats) -> Floats:
        return np.bincount(column, heavy * x[row], count) / columns

    best = x = np.zeros(size)
    rest = right[:size] - np.bincount(row, heavy * (right[size:] / columns)[column])
    way = scaled = rest / rows
    left = least = first = rest @ scaled
    for _ in range(_MOST_STEPS):
        if left <= first * _NEAR_ENOUGH:
            break
        moved = rows * way - np.bincount(row, heavy * across(way)[column])
        if (slope := way @ moved) <= 0:
            break
        x = x + left / slope * way
        rest -= left / slope * moved
        scaled = rest / rows
        before, left = left, rest @ scaled
        if left < least:
            best, least = x, left
        way = scaled + left / before * way
    numbers = np.concatenate([best, right[size:] / columns - across(best)])
    return numbers, bits - int(np.frexp(np.abs(numbers).max())[1])
