"""Transforms of a rule set: what quantiles or samples, and the answer, are turned into before a kernel scores them.

To add one, add its row in TRANSFORMS. Every value is rounded half-even once, to 1e-12.

Source: Bosse et al. (2023), doi:10.1371/journal.pcbi.1011393, which transforms forecasts and answers alike.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import NamedTuple

import numpy as np
from msgspec import structs

from forecast_ledger.ledger.core.values import format_fixed
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.core.fixed_logs import ln_many, log2_many, log10_many
from forecast_ledger.projections.core.powers import QUANTUM, ln_fixed, log2_fixed, log10_fixed, root_half_even
from forecast_ledger.projections.scores.forecast_numbers import Numbers


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
