"""The numbers of forecasts as kernels read them: one column, in blocks that fit in a processor's cache.

A rule set can transform them: what quantiles or samples, and the answer, are turned into before a kernel scores them.
To add a transform, add its row in TRANSFORMS. Every value is rounded half-even once, to 1e-12.

Source: Bosse et al. (2023), doi:10.1371/journal.pcbi.1011393, which transforms forecasts and answers alike.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import isqrt, lcm
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs
from numpy.lib.stride_tricks import sliding_window_view

from forecast_ledger.ledger.core.values import PROBABILITY, format_fixed
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.core.fixed_logs import ln_many, log2_many, log10_many
from forecast_ledger.projections.core.powers import QUANTUM, ln_fixed, log2_fixed, log10_fixed, root_half_even
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


class Transform(NamedTuple):
    """A transform. words: as `explain` prints them, after the kernel.

    many: f(k / unit) of many k, in 1e-12; one: of one k and any unit. Both are None if all stays as it is.
    """

    words: str
    many: Callable[[Int64Array, int], Int64Array] | None
    one: Callable[[int, int], int] | None
    source: str


def transformed(name: str, numbers: Numbers) -> Numbers:
    """Return forecasts by quantiles or samples with the transform of each value and answer, in 1e-12.

    >>> span = NumericRange(lower="0", upper="9", levels=(500_000_000,), decimals=0)
    >>> found = transformed("log_shifted", Numbers(*map(np.array, ([0, 1], [1], [1], [1], [0])), [span], ["3"]))
    >>> found.flat.tolist(), found.start.tolist(), found.values
    ([693147180560], [0], ['1.386294361120'])
    """
    row = TRANSFORMS[name]
    if row.many is None or row.one is None:
        return numbers
    spans, values = [*numbers.spans], [*numbers.values]
    units = np.ones(len(spans), np.int64)
    for question, span in numbers.numeric_questions():
        units[question] = 10**span.decimals
        spans[question] = _in_quanta(span)
        values[question] = _answer(row.one, values[question])
    flat, begins, _ = numbers.columns()
    unit = np.repeat(units[numbers.question], numbers.width)
    for each in np.unique(unit).tolist():
        rows = np.flatnonzero(unit == each)
        flat[rows] = row.many(flat[rows], each)
    return numbers._replace(flat=flat, start=begins, spans=spans, values=values)


@lru_cache(maxsize=65_536)
def _in_quanta(span: NumericRange) -> NumericRange:
    return structs.replace(span, decimals=12)


@lru_cache(maxsize=65_536)
def _answer(one: Callable[[int, int], int], value: str) -> str:
    return format_fixed(one(*Fraction(value).as_integer_ratio()), QUANTUM, least=12)


def _root(k: int, unit: int) -> int:
    return root_half_even(Fraction(k * QUANTUM**2, unit))


def _roots(k: Int64Array, unit: int) -> Int64Array:
    """Return the roots of k / unit, unit a divisor of 10^24: of an integer, no root is midway between two integers."""
    squares = [each * (QUANTUM**2 // unit) for each in k.tolist()]
    return int64_array([root + (square - root * root > root) for square in squares for root in (isqrt(square),)])


def _shifted_many(k: Int64Array, unit: int) -> Int64Array:
    return ln_many(k + unit, unit)


def _shifted(k: int, unit: int) -> int:
    return ln_fixed(k + unit, unit)


_BOSSE = "Bosse et al. (2023), doi:10.1371/journal.pcbi.1011393"
_EACH = "for each value and for the answer"
# Names and order are those of `TransformName` in ledger/model/rules.py; where each is defined, `scorability` says.
TRANSFORMS: dict[str, Transform] = {
    "none": Transform("", None, None, "the kernel itself"),
    "log_shifted": Transform(f"of ln(x + 1) {_EACH}", _shifted_many, _shifted, _BOSSE),
    "log": Transform(f"of ln x {_EACH}", ln_many, ln_fixed, _BOSSE),
    "log2": Transform(f"of log2 x {_EACH}", log2_many, log2_fixed, _BOSSE),
    "log10": Transform(f"of log10 x {_EACH}", log10_many, log10_fixed, _BOSSE),
    "sqrt": Transform(f"of √x {_EACH}", _roots, _root, _BOSSE),
}
