"""Sums of quotients with unlike divisors: not exact, but with bounds that say how far off they can be.

Each divisor has a reciprocal, floored so finely that a quotient errs by less than 2^-PLACES. The products of numbers
and reciprocals are summed exactly, in limbs of 18 bits, so that only the flooring errs. These errors are counted.
"""

from collections.abc import Sequence

import numpy as np

from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.wide_int import WORD_BITS, WideInt

PLACES = 160  # binary places of a floored quotient
_BITS = WORD_BITS // 2  # of a limb
_MASK = (1 << _BITS) - 1
_SIGNED_BITS = 26  # of the highest limb
_AT_ONCE = 1 << 14  # rows multiplied together, few enough for a processor's cache and for sums in 64 bits


def bounded_quotient_sums(
    numbers: WideInt, rates: Sequence[tuple[int, int]], which: Int64Array, rows: Int64Array, starts: Int64Array
) -> list[tuple[int, int]]:
    """Return bounds of the sum of numbers x rates[which] of each run of rows, in 2^-PLACES: it lies between them.

    numbers, which: shape (n,); the numbers carried. rates: numerators (>= 0) and denominators (> 0). rows: indices,
    shape (k,). starts, shape (m,), increasing from 0: where each run of one or more rows begins. The bounds of a run
    of r rows are 2 r + 1 apart.

    >>> one = WideInt.from_integers([1, 1, -1])
    >>> third_and_seventh, rows = [(1, 3), (1, 7)], np.array([0, 1, 2])
    >>> bounds = bounded_quotient_sums(one, third_and_seventh, np.array([0, 1, 0]), rows, np.array([0]))
    >>> [(high - low, 7 * low < 1 << PLACES < 7 * high) for low, high in bounds]
    [(7, True)]
    """
    if not len(starts):
        return []
    top = 2 * WORD_BITS + max(int(numbers.high.max()), ~int(numbers.high.min())).bit_length()
    places = PLACES + top
    reciprocals = _digits([(numerator << places) // denominator for numerator, denominator in rates])
    pieces = np.union1d(starts, np.arange(0, len(rows), _AT_ONCE))
    run, totals = np.searchsorted(starts, pieces, "right") - 1, [0] * len(starts)
    for begin in range(0, len(rows), _AT_ONCE):
        chunk = rows[begin : begin + _AT_ONCE]
        part = slice(*np.searchsorted(pieces, [begin, begin + _AT_ONCE]).tolist())
        sums = _sums_by_place(_limbs(numbers.take(chunk)), reciprocals, which[chunk], pieces[part] - begin)
        for number, row in zip(run[part].tolist(), sums.tolist(), strict=True):
            totals[number] += sum(value << _BITS * place for place, value in enumerate(row))
    counts = np.diff(starts, append=len(rows)).tolist()
    # A reciprocal is less than 1 too small, and a number at most 2^top, so each row errs by less than 2^top.
    return [((total >> top) - count, (total >> top) + count + 1) for total, count in zip(totals, counts, strict=True)]


def _limbs(numbers: WideInt) -> list[Int64Array]:
    """Return the limbs of carried numbers, the lowest first; the last one has the sign, and at most 27 bits."""
    limbs = [limb for word in numbers[:2] for limb in (word & _MASK, word >> _BITS)]
    rest = numbers.high
    while max(int(rest.max()), ~int(rest.min())) >> _SIGNED_BITS:
        limbs.append(rest & _MASK)
        rest = rest >> _BITS
    return [*limbs, rest]


def _digits(numbers: list[int]) -> Int64Array:
    """Return the limbs of numbers >= 0, the lowest first, shape (limbs, numbers)."""
    count = max(-(-max(number.bit_length() for number in numbers) // _BITS), 1)
    size = 2 * (-(-count * _BITS // 16) + 1)
    raw = b"".join(number.to_bytes(size, "little") for number in numbers)
    parts = np.frombuffer(raw, "<u2").reshape(len(numbers), -1).T.astype(np.int64)
    digits = np.empty((count, len(numbers)), np.int64)
    for place in range(count):
        part, shift = divmod(place * _BITS, 16)
        digits[place] = (parts[part] | parts[part + 1] << 16) >> shift & _MASK  # shift is even, so two parts suffice
    return digits


def _sums_by_place(
    limbs: list[Int64Array], reciprocals: Int64Array, which: Int64Array, starts: Int64Array
) -> Int64Array:
    """Return the sums of the products of all limbs, by run and place, shape (runs, places)."""
    count = len(limbs) + len(reciprocals) - 1
    lower = [(place, limb) for place, limb in enumerate(limbs) if limb.any()]
    products = np.zeros((count, len(which)), np.int64)
    for place, digits in enumerate(reciprocals):
        digit = digits[which]
        for more, limb in lower:
            products[place + more] += limb * digit
    return np.add.reduceat(products, starts, axis=1).T
