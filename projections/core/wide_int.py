"""Wide integers in NumPy: exact sums of products that do not fit in 64 bits.

Sums of term x µs need about 100 bits, and 64-bit sums wrap without an error. A `WideInt` is low + middle·2^36 +
high·2^72 with low and middle in [0, 2^36), so that 2^26 of them can be added word by word before a carry is lost.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from forecast_ledger.projections.core.arrays import Int64Array, Totals, largest, run_lengths

WORD_BITS = 36
_MASK = (1 << WORD_BITS) - 1
_HALF_BITS = 18
_HALF_MASK = (1 << _HALF_BITS) - 1
_MOST_SHIFT = 62 - WORD_BITS  # of a word
LARGEST_TERM = 3 * 10**13  # of one product; |ln 1e-10| is 2.4e13 of 1e-12, and that times 2^18 fits in 64 bits
LARGEST_COUNT = 1 << 26


class WideInt(NamedTuple):
    """Exact integers of up to 134 bits; three words of shape (n,) each."""

    low: Int64Array
    middle: Int64Array
    high: Int64Array

    @classmethod
    def product(cls, terms: Int64Array, weights: Int64Array) -> Self:
        """Return terms x weights, 0 <= weight < 2^54, which is 570 years in µs.

        >>> WideInt.product(np.array([-(10**13)]), np.array([10**16])).integers()
        [-100000000000000000000000000000]
        """
        most = largest(terms)
        if most * largest(weights) < 1 << 63:
            return cls.from_int64(terms * weights)
        if most > LARGEST_TERM:
            rest, above = cls.product(terms & _MASK, weights), cls.product(terms >> WORD_BITS, weights)
            middle, high = rest.middle + above.low, rest.high + above.middle + (above.high << WORD_BITS)
            return cls(rest.low, middle, high).carried()
        first = terms * (weights & _HALF_MASK)
        second = terms * ((weights >> _HALF_BITS) & _HALF_MASK)
        third = terms * (weights >> 2 * _HALF_BITS)
        low = (first & _MASK) + ((second & _HALF_MASK) << _HALF_BITS)
        middle = (first >> WORD_BITS) + (second >> _HALF_BITS) + (third & _MASK)
        return cls(low, middle, third >> WORD_BITS).carried()

    @classmethod
    def from_int64(cls, values: Int64Array) -> Self:
        """Return 64-bit numbers as wide ones."""
        above = values >> WORD_BITS
        return cls(values & _MASK, above & _MASK, above >> WORD_BITS)

    @classmethod
    def from_integers(cls, numbers: Sequence[int]) -> Self:
        """Return Python integers of at most 134 bits as wide numbers.

        >>> WideInt.from_integers([-1, 1 << 100]).integers() == [-1, 1 << 100]
        True
        """
        parts = [(number & _MASK, number >> WORD_BITS & _MASK, number >> 2 * WORD_BITS) for number in numbers]
        return cls(*np.array(parts, np.int64).reshape(-1, 3).T)

    def carried(self) -> Self:
        """Return the same numbers with carries propagated: low and middle in [0, 2^36)."""
        middle = self.middle + (self.low >> WORD_BITS)
        return type(self)(self.low & _MASK, middle & _MASK, self.high + (middle >> WORD_BITS))

    def times(self, terms: Int64Array) -> Self:
        """Multiply numbers, not negative and less than 2^76, by terms of less than 2^58.

        >>> WideInt.from_int64(np.array([3])).shifted(50).times(np.array([-5])).integers() == [-15 << 50]
        True
        """
        wide = self.carried()
        if not (wide.middle.any() or wide.high.any()):
            return type(self).product(terms, wide.low)
        rest, above = type(self).product(terms, wide.low), type(self).product(terms, wide.middle)
        high = rest.high + above.middle + (above.high << WORD_BITS) + terms * wide.high
        return type(self)(rest.low, rest.middle + above.low, high).carried()

    def scaled(self, factors: Int64Array) -> Self:
        """Multiply by factors > 0. Raises OverflowError if a product might not fit in 134 bits.

        >>> WideInt.from_integers([1 << 90]).scaled(np.array([3])).integers() == [3 << 90]
        True
        """
        wide, most = self.carried(), int(factors.max(initial=1))
        if most == 1:
            return wide
        highest = max(int(wide.high.max()), -int(wide.high.min()))
        if most >> 62 - WORD_BITS or highest * most >> 62:
            raise OverflowError("a product of more than 134 bits")
        return type(self)(*(word * factors for word in wide)).carried()

    def shifted(self, bits: int) -> Self:
        """Multiply by 2^bits."""
        wide = self.carried()
        for _ in range(bits // WORD_BITS):
            wide = type(self)(np.zeros_like(wide.low), wide.low, wide.middle + (wide.high << WORD_BITS))
        first = min(bits % WORD_BITS, _MOST_SHIFT)
        for step in (first, bits % WORD_BITS - first):
            if step:
                wide = type(self)(*(word << step for word in wide)).carried()
        return wide

    def __add__(self, other: "WideInt") -> Self:  # type: ignore[override]
        return type(self)(self.low + other.low, self.middle + other.middle, self.high + other.high)

    def __sub__(self, other: "WideInt") -> Self:
        return type(self)(self.low - other.low, self.middle - other.middle, self.high - other.high)

    def take(self, index: Int64Array) -> Self:
        """Return the numbers at these indices."""
        return type(self)(*(word[index] for word in self))

    def prefix_sums(self) -> Self:
        """Return the sums of the first 0, 1, … n numbers, shape (n + 1,)."""
        return type(self)(*(np.concatenate(([0], np.cumsum(word))) for word in self)).carried()

    def run_sums(self, starts: Int64Array) -> Self:
        """Return the sum of each run; starts, shape (m,), increasing: where each run of one or more numbers begins.

        Raises OverflowError if a sum might not fit in 134 bits.
        """
        return self.totals(Totals.of_runs(starts, len(self.low)))

    def totals(self, totals: Totals) -> Self:
        """Return the sum of each index. Raises OverflowError if one might not fit in 134 bits."""
        most = int(totals.counts.max(initial=0))
        if any(largest(word) * most >> 61 for word in self):
            sizes = (np.abs(self.high) >> WORD_BITS // 2) + 1  # in 2^18, rounded up
            if int(totals.of(sizes).max()) > 1 << 62 - WORD_BITS // 2:
                raise OverflowError("a sum of more than 134 bits")
            return type(self)(*map(totals.of, self.carried())).carried()
        return type(self)(*map(totals.of, self)).carried()

    def unbounded_run_sums(self, starts: Int64Array) -> list[int]:
        """Return what `run_sums` returns, as Python integers of any size.

        >>> WideInt.from_int64(np.array([1 << 62] * 4)).shifted(70).unbounded_run_sums(np.array([0])) == [1 << 134]
        True
        """
        wide = self.carried()
        lower = WideInt(wide.low, wide.middle, wide.high & _MASK).run_sums(starts).integers()
        above = WideInt.from_int64(wide.high >> WORD_BITS).run_sums(starts).integers()
        return [(high << 3 * WORD_BITS) + low for high, low in zip(above, lower, strict=True)]

    def int64(self) -> Int64Array | None:
        """Return the numbers in 64 bits; None if one does not fit.

        >>> [WideInt.from_integers([number]).int64() for number in (-7, 1 << 63)]
        [array([-7]), None]
        """
        wide = self.carried()
        above = (wide.high << WORD_BITS) + wide.middle
        if largest(wide.high) > 1 or largest(2 * above + 1) >> 64 - WORD_BITS:
            return None
        fits: Int64Array = (above << WORD_BITS) + wide.low
        return fits

    def integers(self) -> list[int]:
        """Return the numbers as Python integers."""
        if (numbers := self.int64()) is not None:
            fits: list[int] = numbers.tolist()
            return fits
        parts = zip(self.high.tolist(), self.middle.tolist(), self.low.tolist(), strict=True)
        return [(high << 2 * WORD_BITS) + (middle << WORD_BITS) + low for high, middle, low in parts]


# --- Sums of quotients with unlike divisors: not exact, but with bounds that say how far off they can be.
#
# Each divisor has a reciprocal, floored so finely that a quotient errs by less than 2^-QUOTIENT_BITS. The products of
# numbers and reciprocals are summed exactly, in limbs of 18 bits, so that only the flooring errs. These errors are
# counted.


QUOTIENT_BITS = 160  # binary places of a floored quotient
WORDS = 6  # of a sum
_LAST_BITS = 52  # of its last word
_LIMB_BITS = WORD_BITS // 2  # of a limb
_LIMB_MASK = (1 << _LIMB_BITS) - 1
_SIGNED_BITS = 26  # of the highest limb
_MOST_LIMBS = 8  # of a number of 134 bits
_AT_ONCE = 1 << 14  # rows multiplied together, few enough for a processor's cache and for sums in 64 bits


def bounded_quotient_sums(
    numbers: WideInt, rates: Sequence[tuple[int, int]], which: Int64Array, rows: Int64Array, starts: Int64Array
) -> list[tuple[int, int]]:
    """Return bounds of the sum of numbers x rates[which] of each run of rows, in 2^-QUOTIENT_BITS: it is between.

    numbers, which: shape (n,); the numbers carried. rates: numerators (>= 0) and denominators (> 0). rows: indices,
    shape (k,). starts, shape (m,), increasing from 0: where each run of one or more rows begins. The bounds of a run
    of r rows are 2 r + 1 apart.

    >>> one = WideInt.from_integers([1, 1, -1])
    >>> third_and_seventh, rows = [(1, 3), (1, 7)], np.array([0, 1, 2])
    >>> bounds = bounded_quotient_sums(one, third_and_seventh, np.array([0, 1, 0]), rows, np.array([0]))
    >>> [(high - low, 7 * low < 1 << QUOTIENT_BITS < 7 * high) for low, high in bounds]
    [(7, True)]
    """
    limbs, counts = _floored_sums(numbers, rates, which, rows, starts), run_lengths(starts, len(rows)).tolist()
    totals = [sum(limb << _LIMB_BITS * index for index, limb in enumerate(run)) for run in limbs.T.tolist()]
    return [(total - count, total + count + 1) for total, count in zip(totals, counts, strict=True)]


class BoundedSums(NamedTuple):
    """Sums in 2^-QUOTIENT_BITS, each of which is at least `low` and at most `low + width`.

    low: in words of 36 bits, the lowest first, of which the last one has the sign; shape (m, WORDS). width: shape (m,).
    """

    low: Int64Array
    width: Int64Array

    def bounds(self) -> list[tuple[int, int]]:
        """Return the bounds of each sum, in 2^-QUOTIENT_BITS."""
        lows = (sum(word << WORD_BITS * index for index, word in enumerate(words)) for words in self.low.tolist())
        return [(low, low + width) for low, width in zip(lows, self.width.tolist(), strict=True)]

    def plus(self, other: "BoundedSums") -> "BoundedSums":
        """Return the sums of these and others, one by one."""
        return BoundedSums(carried_words(self.low + other.low, WORD_BITS), self.width + other.width)

    def run_sums(self, order: Int64Array, starts: Int64Array) -> "BoundedSums":
        """Return the sums of runs of some of these sums; order: which, in which order. starts: see `WideInt.run_sums`.

        Raises OverflowError: one does not fit in its words.
        """
        if not len(starts):
            return BoundedSums(self.low[starts], starts)
        longest, last = int(run_lengths(starts, len(order)).max()), self.low[:, -1]
        if max(int(last.max()), ~int(last.min())) * longest >> _LAST_BITS + 9:
            raise OverflowError("a sum is too large for its words")
        low = np.add.reduceat(self.low[order], starts, axis=0)
        return BoundedSums(carried_words(low, WORD_BITS), np.add.reduceat(self.width[order], starts))

    def middle(self, index: int) -> tuple[int, int]:
        """Return the number in the middle of the bounds of one sum, as numerator and denominator."""
        [(low, high)] = BoundedSums(self.low[index : index + 1], self.width[index : index + 1]).bounds()
        return low + high, 2 << QUOTIENT_BITS


def wide_quotient_sums(
    numbers: WideInt, rates: Sequence[tuple[int, int]], which: Int64Array, rows: Int64Array, starts: Int64Array
) -> BoundedSums:
    """Return what `bounded_quotient_sums` returns as arrays, which can be sent and added up.

    Raises OverflowError: a sum does not fit in its words.

    >>> third, rows = WideInt.from_integers([1, 1]), np.array([0, 1])
    >>> [(low, high)] = wide_quotient_sums(third, [(1, 3)], np.array([0, 0]), rows, np.array([0])).bounds()
    >>> high - low, 3 * low < 2 << QUOTIENT_BITS < 3 * high
    (5, True)
    """
    kept, counts = _floored_sums(numbers, rates, which, rows, starts), run_lengths(starts, len(rows))
    last = kept[-1]
    for limb in kept[-2 : 2 * WORDS - 3 : -1]:
        if len(last) and max(int(last.max()), ~int(last.min())) >> _LAST_BITS - _LIMB_BITS:
            raise OverflowError("a sum is too large for its words")
        last = (last << _LIMB_BITS) + limb
    words = [kept[index] + (kept[index + 1] << _LIMB_BITS) for index in range(0, 2 * WORDS - 2, 2)]
    low = np.stack([words[0] - counts, *words[1:], last], axis=1)
    return BoundedSums(carried_words(low, WORD_BITS), 2 * counts + 1)


def _floored_sums(
    numbers: WideInt, rates: Sequence[tuple[int, int]], which: Int64Array, rows: Int64Array, starts: Int64Array
) -> Int64Array:
    """Return the sums of floored products in 2^-QUOTIENT_BITS, in limbs, the lowest first, shape (limbs, m).

    The last limb has the sign. A reciprocal is less than 1 too small, and a number at most 2^18 to the number of limbs
    that are dropped, so each row errs by less than 2^-QUOTIENT_BITS.
    """
    if not len(starts):
        return np.zeros((2 * WORDS, 0), np.int64)
    top = 2 * WORD_BITS + max(int(numbers.high.max()), ~int(numbers.high.min())).bit_length()
    dropped = -(-top // _LIMB_BITS)
    reciprocal_bits = QUOTIENT_BITS + _LIMB_BITS * dropped
    reciprocals = _digits([(numerator << reciprocal_bits) // denominator for numerator, denominator in rates])
    pieces = np.union1d(starts, np.arange(0, len(rows), _AT_ONCE))
    run = np.searchsorted(starts, pieces, "right") - 1
    totals = np.zeros((len(starts), max(len(reciprocals) + _MOST_LIMBS, dropped + 2 * WORDS)), np.int64)
    for begin in range(0, len(rows), _AT_ONCE):
        chunk = rows[begin : begin + _AT_ONCE]
        part = slice(*np.searchsorted(pieces, [begin, begin + _AT_ONCE]).tolist())
        sums = _sums_by_digit(_limbs(numbers.take(chunk)), reciprocals, which[chunk], pieces[part] - begin)
        wide = np.pad(sums, ((0, 0), (0, totals.shape[1] - sums.shape[1])))
        totals[run[part]] += carried_words(wide, _LIMB_BITS)  # less than 2^18 each, whatever the number of chunks
    return carried_words(totals, _LIMB_BITS).T[dropped:]


def carried_words(words: Int64Array, bits: int) -> Int64Array:
    """Return numbers with all words but the last in [0, 2^bits), shape (m, words)."""
    carried = words.copy()
    for index in range(words.shape[1] - 1):
        carried[:, index + 1] += carried[:, index] >> bits
        carried[:, index] &= (1 << bits) - 1
    return carried


def _limbs(numbers: WideInt) -> list[Int64Array]:
    """Return the limbs of carried numbers, the lowest first; the last one has the sign, and at most 27 bits."""
    limbs = [limb for word in numbers[:2] for limb in (word & _LIMB_MASK, word >> _LIMB_BITS)]
    rest = numbers.high
    while max(int(rest.max()), ~int(rest.min())) >> _SIGNED_BITS:
        limbs.append(rest & _LIMB_MASK)
        rest = rest >> _LIMB_BITS
    return [*limbs, rest]


def _digits(numbers: list[int]) -> Int64Array:
    """Return the limbs of numbers >= 0, the lowest first, shape (limbs, numbers)."""
    count = max(-(-max(number.bit_length() for number in numbers) // _LIMB_BITS), 1)
    size = 2 * (-(-count * _LIMB_BITS // 16) + 1)
    raw = b"".join(number.to_bytes(size, "little") for number in numbers)
    parts = np.frombuffer(raw, "<u2").reshape(len(numbers), -1).T.astype(np.int64)
    digits = np.empty((count, len(numbers)), np.int64)
    for index in range(count):
        part, shift = divmod(index * _LIMB_BITS, 16)
        digits[index] = (
            parts[part] | parts[part + 1] << 16
        ) >> shift & _LIMB_MASK  # shift is even, so two parts suffice
    return digits


def _sums_by_digit(
    limbs: list[Int64Array], reciprocals: Int64Array, which: Int64Array, starts: Int64Array
) -> Int64Array:
    """Return the sums of the products of all limbs, by run and digit, shape (runs, digits)."""
    count = len(limbs) + len(reciprocals) - 1
    lower = [(index, limb) for index, limb in enumerate(limbs) if limb.any()]
    products = np.zeros((count, len(which)), np.int64)
    for index, digits in enumerate(reciprocals):
        digit = digits[which]
        for more, limb in lower:
            products[index + more] += limb * digit
    return np.add.reduceat(products, starts, axis=1).T
