"""The numbers of forecasts as kernels read them: one column, in blocks that fit in a processor's cache."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.sorting import run_starts, stable_order

_BLOCK = 1 << 16  # numbers in a block


class Numbers(NamedTuple):
    """n forecasts on questions of one form. All columns but `flat` have shape (n,).

    The numbers of a forecast are the `width` numbers from `start` on in `flat`. outcome: index of the outcome that
    happened, -1 with payouts. question: index into spans, values and payouts: the range and the exact text of the
    answer of each question, and what a share of each outcome is paid, if no single outcome happened.
    """

    flat: Int64Array
    start: Int64Array
    width: Int64Array
    outcome: Int64Array
    question: Int64Array
    spans: list[NumericRange | None]
    values: list[str]
    payouts: Sequence[tuple[Fraction, ...]] = ()

    def rows(self, part: slice | Int64Array) -> "Numbers":
        """Return some of the forecasts."""
        return self._replace(
            start=self.start[part],
            width=self.width[part],
            outcome=self.outcome[part],
            question=self.question[part],
        )

    def missed(self) -> Iterator[tuple[Int64Array, Any, int]]:
        """Yield the forecasts on questions with payouts, question after question, in blocks.

        They are their indices, shape (m,); by how much each number differs from what a share of its outcome is paid,
        Python integers of shape (m, width), which do not wrap; and how many units of these make 1.

        >>> one, half = np.array([0]), Fraction(1, 2)
        >>> [(rows, missed, unit)] = Numbers(
        ...     np.array([300_000_000, 700_000_000]), one, one + 2, one - 1, one, [None], [""], [(half, half)]
        ... ).missed()
        >>> rows.tolist(), missed.tolist(), unit
        ([0], [[-200000000, 200000000]], 1000000000)
        """
        paid = np.flatnonzero(self.outcome < 0)
        part = self.rows(paid)
        for rows, table in part.tables(part.question):
            shares = self.payouts[int(part.question[rows[0]])]
            unit = lcm(PROBABILITY, *(share.denominator for share in shares))
            missed = table.astype(object) * (unit // PROBABILITY) - np.array(
                [int(each * unit) for each in shares], object
            )
            yield paid[rows], missed, unit

    def numeric_questions(self) -> Iterator[tuple[int, NumericRange]]:
        """Yield the numeric questions that have a forecast here, with their ranges."""
        present = np.zeros(len(self.spans), bool)
        present[self.question] = True
        for question in np.flatnonzero(present).tolist():
            if (span := self.spans[question]) is not None:
                yield question, span

    def blocks(self) -> Iterator["Numbers"]:
        """Yield the forecasts in blocks."""
        upto = np.cumsum(self.width)
        begin = 0
        while begin < len(upto):
            before = int(upto[begin - 1]) if begin else 0
            end = max(int(np.searchsorted(upto, before + _BLOCK, "right")), begin + 1)
            yield self.rows(slice(begin, end))
            begin = end

    def columns(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return all numbers in one column, where each forecast begins, and each number's place in its forecast."""
        begins = np.cumsum(self.width) - self.width
        place = np.arange(int(self.width.sum())) - np.repeat(begins, self.width)
        return self.flat[np.repeat(self.start, self.width) + place], begins, place

    def tables(self, key: Int64Array) -> Iterator[tuple[Int64Array, Int64Array]]:
        """Yield the forecasts of each key in blocks: their indices, shape (m,), and their numbers, shape (m, width).

        key: shape (n,); forecasts with the same key have the same width.

        >>> two = Numbers(np.arange(6), *(np.array(each) for each in ([3, 0], [3, 3], [0, 0], [0, 0])), [None], [""])
        >>> [(rows.tolist(), table.tolist()) for rows, table in two.tables(two.width)]
        [([0, 1], [[3, 4, 5], [0, 1, 2]])]
        """
        order = stable_order(key)
        edges = [*run_starts(key[order]).tolist(), len(order)]
        for begin, end in pairwise(edges):
            width = int(self.width[order[begin]])
            every, step = sliding_window_view(self.flat, width), max(_BLOCK // width, 1)
            for at in range(begin, end, step):
                rows = order[at : min(at + step, end)]
                start = self.start[rows]
                if (start[1:] - start[:-1] == width).all():  # contiguous: a view is enough
                    yield rows, self.flat[start[0] : start[-1] + width].reshape(-1, width)
                else:
                    yield rows, every[start]
