"""A common timeline: questions are laid one after another, so that one pass computes them all."""

from collections.abc import Iterator

import numpy as np

from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.wide_int import LARGEST_COUNT

LONGEST_TIMELINE = 1 << 61  # µs


def shifts(opens: Int64Array, closes: Int64Array) -> Int64Array:
    """Return the shift that puts each question after the one before it, µs, shape (questions,).

    After the shift no two questions share an instant, closing instants included.

    >>> shifts(np.array([10, 10]), np.array([14, 12])).tolist()
    [-10, -5]
    """
    lengths = closes - opens + 1
    shift: Int64Array = np.cumsum(lengths) - lengths - opens
    return shift


def chunks(
    sizes: Int64Array, opens: Int64Array, closes: Int64Array, most: int, largest: int = LARGEST_COUNT - 1
) -> Iterator[slice]:
    """Yield slices of consecutive questions that fit on one timeline and have at most `most` forecasts in all.

    A single question may have more. sizes: how many forecasts each question has.

    Raises OverflowError if one question has more than `largest`.

    >>> list(chunks(np.array([3, 4, 9]), np.zeros(3, int), np.ones(3, int), most=7))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    begin, rows, length = 0, 0, 0
    for i, (size, lasts) in enumerate(zip(sizes.tolist(), (closes - opens + 1).tolist(), strict=True)):
        if size > largest:
            raise OverflowError(f"{size} forecasts on one question; {largest} can be scored at once")
        if i > begin and (rows + size > most or length + lasts > LONGEST_TIMELINE):
            yield slice(begin, i)
            begin, rows, length = i, 0, 0
        rows, length = rows + size, length + lasts
    if begin < len(sizes):
        yield slice(begin, len(sizes))
