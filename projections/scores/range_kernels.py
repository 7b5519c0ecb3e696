"""Kernels of numeric forecasts: the CRPS of a cdf, the quantile loss and the CRPS of samples, errors of a point.

The row of each kernel in `KERNELS` names the source of its formula.
"""

from collections.abc import Callable, Iterator, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import gcd, isqrt, lcm
from typing import Any, NamedTuple, Self

import numpy as np
from msgspec import structs
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import CUMULATIVE, LARGEST_MEASURE, PROBABILITY, format_fixed
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.projections.core.arrays import (
    BoolArray,
    Int64Array,
    int64_array,
    round_half_even,
    run_starts,
    stable_order,
)
from forecast_ledger.projections.core.estimates import (
    Floats,
    divide_wrapped,
    floats,
    ln_many,
    log2_many,
    log10_many,
    subtract_and_round,
)
from forecast_ledger.projections.core.powers import QUANTUM, ln_fixed, log2_fixed, log10_fixed, root_half_even

# --- The numbers of forecasts as kernels read them: one column, in blocks that fit in a processor's cache.
#
# A rule set can transform them: what quantiles or samples, and the answer, are turned into before a kernel scores them.
# To add a transform, add its row in TRANSFORMS. Every value is rounded half-even once, to 1e-12.
#
# Source: Bosse et al. (2023), doi:10.1371/journal.pcbi.1011393, which transforms forecasts and answers alike.


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
        """Return all numbers in one column, where each forecast begins, and each number's index in its forecast."""
        begins = np.cumsum(self.width) - self.width
        index = np.arange(int(self.width.sum())) - np.repeat(begins, self.width)
        return self.flat[np.repeat(self.start, self.width) + index], begins, index

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
                    continue
                index, offset = np.divmod(start, width)
                if (offset == offset[0]).all():  # rows of one table, which are copied in less time
                    flat = self.flat[offset[0] :]
                    yield rows, flat[: len(flat) // width * width].reshape(-1, width).take(index, axis=0)
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
    >>> result = transformed("log_shifted", Numbers(*map(np.array, ([0, 1], [1], [1], [1], [0])), [span], ["3"]))
    >>> result.flat.tolist(), result.start.tolist(), result.values
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


_FINE = Decimal("1e-30")  # unit to which a fraction of a logarithmic range is rounded
_MEDIAN = (500_000_000,)  # 1e-9: the level of the median alone
_POWERS = [10**power for power in range(12, -1, -1)]
_LARGEST_LOSS = 4 * 10**17  # of a kernel in its unit: twice 2 x LARGEST_MEASURE, in four digits more
_NARROW = 1 << 60  # numbers proven to stay below this are counted in 64 bits
_Integers = NDArray[Any]  # of 64 bits each, or Python's own


def crps(numbers: Numbers) -> Int64Array:
    """The continuous ranked probability score ∫ (F(x) - 1{x >= y})² dx over the range as 0 to 1, from 0 to 1.

    F is linear in each bin. An answer y beyond the range counts as the nearer end of the range. On a logarithmic range
    x is the position on the logarithmic scale.

    >>> span, cdf = NumericRange(lower="0", upper="1", bins=1), np.array([0, 10**10])
    >>> crps(Numbers(cdf, *(np.array([each]) for each in (0, 2, 1, 0)), [span], ["0.5"])).tolist()
    [83333333333]
    """
    at = np.zeros(len(numbers.spans), np.int64)  # the bin with the answer, from 0
    shares: list[tuple[Fraction, ...]] = [(Fraction(0),) * 3] * len(numbers.spans)
    for number, span in numbers.numeric_questions():
        position = fraction_of(numbers.values[number], span) * span.bins
        at[number] = min(int(position // 1), span.bins - 1)
        below = position - int(at[number])  # the part of the bin below the answer
        shares[number] = (1 - below) ** 2, 1 - below**2, below
    near, scores = floats(np.array(shares, object)).reshape(-1, 3), np.zeros(len(numbers.width), np.int64)
    for rows, heights in numbers.tables(numbers.width):
        question = numbers.question[rows]
        row_shares = [shares[number] for number in question.tolist()]
        scores[rows] = _crps(heights, at[question], near[question], row_shares)
    return scores


def pinball(numbers: Numbers) -> Int64Array:
    """Twice the mean over levels of the quantile loss (1{y < q} - level)(q - y), in the question's unit, 0 or more.

    It equals the weighted interval score if the levels are symmetric about 0.5 and include it, and the absolute error
    if 0.5 is the only level. The k-th of n samples has the level (k - 1/2) / n; then it equals their CRPS,
    1 / n x Σ |x_i - y| - 1 / (2 n²) x Σ Σ |x_i - x_j|.

    >>> span = NumericRange(lower="0", upper="9", levels=(500_000_000,))
    >>> pinball(Numbers(np.array([3]), *(np.array([each]) for each in (0, 1, 1, 0)), [span], ["5"])).tolist()
    [20000]
    >>> span = NumericRange(lower="0", upper="9", samples=2)
    >>> pinball(Numbers(np.array([3, 6]), *(np.array([each]) for each in (0, 2, 1, 0)), [span], ["5"])).tolist()
    [7500]
    """
    form, losses = _losses(numbers)
    answers, scores = _answers(numbers), np.zeros(len(numbers.width), np.int64)
    for rows, quantiles in numbers.tables(form[numbers.question]):
        question = numbers.question[rows]
        scores[rows] = losses[form[question[0]]].scores(quantiles, answers, question)
    return scores


def dispersion(numbers: Numbers) -> Int64Array:
    """The part of `pinball` that is due to the width of the forecast: what it would score for its own median.

    The levels are symmetric about 0.5. It is the sum over the central intervals of level / 2 x their width, divided by
    half the number of levels; what `pinball` adds to it is due to how far the answer lies above or below quantiles.

    Source: Bracher, Ray, Gneiting and Reich (2021), doi:10.1371/journal.pcbi.1008618.

    >>> span = NumericRange(lower="0", upper="9", levels=(250_000_000, 500_000_000, 750_000_000), decimals=0)
    >>> dispersion(Numbers(np.array([3, 4, 6]), *(np.array([each]) for each in (0, 3, 1, 0)), [span], ["5"])).tolist()
    [5000]
    """
    form, losses = _losses(numbers)
    scores = np.zeros(len(numbers.width), np.int64)
    for rows, quantiles in numbers.tables(form[numbers.question]):
        medians = _Answers.whole_units(quantiles[:, (quantiles.shape[1] - 1) // 2])
        scores[rows] = losses[form[numbers.question[rows[0]]]].scores(quantiles, medians, np.arange(len(rows)))
    return scores


def median_error(numbers: Numbers) -> Int64Array:
    """The absolute error |m - y| of the median m, in the unit of `pinball`. The levels are symmetric and include 0.5.

    >>> span = NumericRange(lower="0", upper="9", levels=(250_000_000, 500_000_000, 750_000_000), decimals=0)
    >>> median_error(Numbers(np.array([3, 4, 6]), *(np.array([each]) for each in (0, 3, 1, 0)), [span], ["5"])).tolist()
    [10000]
    """
    spans = [span and structs.replace(span, levels=_MEDIAN) for span in numbers.spans]
    middle = numbers.start + numbers.width // 2
    return pinball(numbers._replace(start=middle, width=np.ones_like(numbers.width), spans=spans))


def overpredicts(numbers: Numbers) -> BoolArray:
    """Return whether each answer is below the median, or below the greatest quantile under it if there is no median.

    >>> span = NumericRange(lower="0", upper="9", levels=(250_000_000, 500_000_000, 750_000_000), decimals=0)
    >>> overpredicts(Numbers(np.array([3, 4, 6]), *(np.array([each]) for each in (0, 3, 1, 0)), [span], ["3.9"]))
    array([ True])
    """
    middle = numbers.flat[numbers.start + (numbers.width - 1) // 2]
    below: BoolArray = _answers(numbers).whole[numbers.question] < middle
    return below


def _losses(numbers: Numbers) -> tuple[Int64Array, list["_Loss"]]:
    """Return the quantile losses that the questions need, and which of them each question has, by index."""
    forms: dict[tuple[tuple[int, ...], int, int], int] = {}
    form = np.zeros(len(numbers.spans), np.int64)
    for number, span in numbers.numeric_questions():
        form[number] = forms.setdefault((span.levels, span.samples, span.decimals), len(forms))
    return form, [_Loss.of(*each) for each in forms]


class _Answers(NamedTuple):
    """Answers in units of their questions: whole + part / over; shape (n,) each.

    fine: those of which 64 bits do not hold `over`, which is _NARROW in its column, exactly, by index.
    """

    whole: Int64Array
    part: Int64Array
    over: Int64Array
    fine: dict[int, tuple[int, int, int]]

    @classmethod
    def whole_units(cls, units: Int64Array) -> Self:
        """Return answers without a remainder."""
        return cls(units, np.zeros_like(units), np.ones_like(units), {})

    def exact(self, rows: Int64Array) -> tuple[_Integers, ...]:
        """Return some answers in Python integers."""
        columns = zip(rows.tolist(), *(column[rows].tolist() for column in self[:3]), strict=True)
        return tuple(np.array([self.fine.get(row, numbers) for row, *numbers in columns], object).T)


def _answers(numbers: Numbers) -> _Answers:
    """Return the answer of each question."""
    answers, fine = [(0, 0, 1)] * len(numbers.spans), dict[int, tuple[int, int, int]]()
    for number, span in numbers.numeric_questions():
        answers[number] = whole, _, over = _in_units(numbers.values[number], span.decimals)
        if over >= _NARROW:
            fine[number], answers[number] = answers[number], (whole, 0, _NARROW)
    columns = np.array(answers, np.int64).reshape(-1, 3).T.copy()
    return _Answers(columns[0], columns[1], columns[2], fine)


@lru_cache(maxsize=65_536)
def _in_units(value: str, decimals: int) -> tuple[int, int, int]:
    """Return a value in 10^-decimals, as whole units and the numerator and denominator of the rest in lowest terms."""
    numerator, denominator = Fraction(value).as_integer_ratio()
    whole, rest = divmod(numerator * 10**decimals, denominator)
    shared = gcd(rest, denominator)
    return whole, rest // shared, denominator // shared


def squared(numbers: Numbers) -> Int64Array:
    """The squared error (x - y)² of a point forecast by a single sample, such as a mean, in the unit of `squares`.

    >>> span = NumericRange(lower="0", upper="9", samples=1, decimals=1)
    >>> squared(Numbers(np.array([30]), *(np.array([each]) for each in (0, 1, 1, 0)), [span], ["3.5"])).tolist()
    [250000000000]
    """
    answers = {number: Fraction(numbers.values[number]) for number, _ in numbers.numeric_questions()}
    scores = np.zeros(len(numbers.width), np.int64)
    for row, (point, question) in enumerate(
        zip(numbers.flat[numbers.start].tolist(), numbers.question.tolist(), strict=True)
    ):
        span = numbers.spans[question]
        if span is not None:
            square = squares(span) * (Fraction(point, 10**span.decimals) - answers[question]) ** 2
            scores[row] = half_even(square.numerator, square.denominator)
    return scores


def absolute(numbers: Numbers) -> Int64Array:
    """The absolute error |x - y| on the range as 0 to 1, along the logarithmic scale if the range has one.

    The only level must be 0.5. A point or answer beyond an open end counts as that end.

    >>> span = NumericRange(lower="0", upper="10", levels=(500_000_000,))
    >>> absolute(Numbers(np.array([3]), *(np.array([each]) for each in (0, 1, 1, 0)), [span], ["5"])).tolist()
    [200000000000]
    """
    shape = np.zeros((len(numbers.spans), 4), np.int64)  # linear ranges: parts of a unit; ends, answer in parts
    shape[:, 2] = 1
    spans = dict(numbers.numeric_questions())
    for question, span in spans.items():
        measures = [Fraction(text) * 10**span.decimals for text in (span.lower, span.upper, numbers.values[question])]
        over = lcm(*(measure.denominator for measure in measures))
        lower, upper, answer = (int(measure * over) for measure in measures)
        most = max(over * LARGEST_MEASURE, abs(lower), abs(upper))
        if span.zero_point is None and most < _NARROW:
            shape[question] = over, lower, upper, min(max(answer, lower), upper)
    over, lower, upper, answer = shape[numbers.question].T
    points, length = numbers.flat[numbers.start], upper - lower
    gaps = np.abs(np.clip(points * over, lower, upper) - answer)
    quotients, rests = divide_wrapped(gaps * QUANTUM, length, floats(gaps) * QUANTUM)
    scores = round_half_even(quotients, rests, length)
    for row in np.flatnonzero(over == 0).tolist():
        question = int(numbers.question[row])
        scores[row] = _distance(int(points[row]), numbers.values[question], spans[question])
    return scores


@lru_cache(maxsize=65_536)
def fraction_of(value: str | Fraction, span: NumericRange) -> Fraction:
    """Return how far along a range a value is, from 0 (lower bound) to 1; a value beyond a bound counts as the bound.

    It is exact on a linear range, and rounded to thirty decimals on a logarithmic one.

    >>> fraction_of("2", NumericRange(lower="1", upper="4"))
    Fraction(1, 3)
    >>> fraction_of("10", NumericRange(lower="1", upper="100", zero_point="0"))
    Fraction(1, 2)
    """
    lower, upper = Fraction(span.lower), Fraction(span.upper)
    within = min(max(Fraction(value), lower), upper)
    if span.zero_point is None:
        return Fraction(within - lower, upper - lower)
    zero = Fraction(span.zero_point)
    ratios = Fraction(within - zero, lower - zero), Fraction(upper - zero, lower - zero)
    digits = 60 + len(str(ratios[1].denominator))  # enough even if the bounds are very close together
    precise = Context(digits, ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX)
    part, whole = (precise.ln(precise.divide(ratio.numerator, ratio.denominator)) for ratio in ratios)
    return Fraction(precise.quantize(precise.divide(part, whole), _FINE))


def value_at(fraction: Fraction, span: NumericRange) -> Fraction:
    """Return the value at a fraction of a range, from 0 (lower bound) to 1: the inverse of `fraction_of`.

    It is exact on a linear range, and rounded to at least sixty digits on a logarithmic one.

    >>> value_at(Fraction(1, 3), NumericRange(lower="1", upper="4"))
    Fraction(2, 1)
    >>> round(value_at(Fraction(1, 2), NumericRange(lower="1", upper="100", zero_point="0")), 50)
    Fraction(10, 1)
    """
    lower, upper = Fraction(span.lower), Fraction(span.upper)
    if span.zero_point is None or fraction in {0, 1}:
        return lower + fraction * (upper - lower)
    zero = Fraction(span.zero_point)
    ratio = Fraction(upper - zero, lower - zero)
    precise = Context(60 + len(str(ratio.denominator)), ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX)
    whole = precise.ln(precise.divide(ratio.numerator, ratio.denominator))
    power = precise.exp(precise.divide(precise.multiply(whole, fraction.numerator), fraction.denominator))
    return zero + (lower - zero) * Fraction(power)


def units_around(value: str, span: NumericRange) -> tuple[int, int]:
    """Return the units of a question's quantiles next to a value: the last not above it, and the first not below it.

    Both are cut off at 2^60 and its opposite, beyond which no quantile lies.

    >>> units_around("2.301", NumericRange(lower="0", upper="9", levels=(500_000_000,), decimals=2))
    (230, 231)
    """
    exact = Fraction(value) * 10**span.decimals
    below, above = (min(max(units, -_NARROW), _NARROW) for units in (exact // 1, -(-exact // 1)))
    return below, above


def quantum(span: NumericRange) -> int:
    """Return how many units of a quantile score make 1: four digits more than its values have, at most 10^12.

    >>> quantum(NumericRange(lower="0", upper="1", levels=(500_000_000,), decimals=2))
    1000000
    """
    units: int = 10 ** min(12, span.decimals + 4)
    return units


def squares(span: NumericRange) -> int:
    """Return how many units of a squared error make 1: a power of ten, at most 10^12; 64 bits hold every error in them.

    >>> squares(NumericRange(lower="0", upper="100", samples=1, decimals=4))
    1000000000000
    >>> squares(NumericRange(lower="0", upper="100", open_upper=True, samples=1, decimals=6))
    1000
    """
    most = span.furthest**2
    units: int = next(unit for unit in _POWERS if unit * most <= _LARGEST_LOSS)
    return units


class _Loss(NamedTuple):
    """The quantile loss at given levels. weights / unit: the levels in lowest terms, weights of shape (k,).

    numerator / denominator: turns a sum of losses into the kernel's unit. limit: 64 bits hold every product if no
    quantile, answer or denominator of an answer is larger.
    """

    weights: Int64Array
    unit: int
    numerator: int
    denominator: int
    limit: int

    @classmethod
    def of(cls, levels: tuple[int, ...], samples: int, decimals: int) -> Self:
        """Return the loss at these levels, 1e-9, or of so many samples, for values in 10^-decimals."""
        shared = gcd(PROBABILITY, *levels)
        unit = PROBABILITY // shared if levels else 2 * samples
        weights = np.array(levels, np.int64) // shared if levels else np.arange(1, 2 * samples, 2)
        per_loss = Fraction(2 * 10 ** min(12 - decimals, 4), len(weights) * unit)  # units of the kernel
        numerator, denominator = per_loss.as_integer_ratio()
        return cls(weights, unit, numerator, denominator, _NARROW // (4 * len(weights) * unit * numerator))

    def scores(self, quantiles: Int64Array, answers: _Answers, index: Int64Array) -> Int64Array:
        """Return `rounded`, by 64 bits where these hold every product. index: of the answer of each row."""
        whole, part, over = (column[index] for column in answers[:3])
        scores: Int64Array = self.rounded(quantiles, whole, part, over)
        wide = np.maximum(np.abs(whole), over) > self.limit
        if max(int(quantiles.max()), -int(quantiles.min())) > self.limit:
            wide |= np.abs(quantiles).max(axis=1) > self.limit
        rows = np.flatnonzero(wide)
        if len(rows):
            scores[rows] = self.rounded(quantiles[rows].astype(object), *answers.exact(index[rows]))
        return scores

    def rounded(self, quantiles: _Integers, whole: _Integers, part: _Integers, over: _Integers) -> _Integers:
        """Return twice the mean loss of each row of quantiles, shape (m, k), for its answer, shape (m,)."""
        count, total = len(self.weights), int(self.weights.sum())
        above = np.einsum("ij->i", np.maximum(quantiles, whole[:, None])) - count * whole
        losses = self.numerator * (self.unit * above - np.einsum("ij,j->i", quantiles, self.weights) + total * whole)
        if not part.any():
            return round_half_even(losses // self.denominator, losses % self.denominator, self.denominator)
        # Subtract the answer's fraction times the slope.
        slopes = self.unit * (quantiles > whole[:, None]).sum(axis=1) - total
        taken = -self.numerator * slopes * part
        losses = losses + taken // over
        quotients, left = losses // self.denominator, losses % self.denominator
        beyond = np.clip(2 * left - self.denominator, -2, 1) * over + 2 * (taken % over)  # compared with half of it
        quarters = np.sign(beyond) + 2  # 1, 2 or 3: below, at or above the half
        return round_half_even(quotients, quarters, 4)


def _crps(heights: Int64Array, at: Int64Array, near: Floats, shares: list[tuple[Fraction, ...]]) -> Int64Array:
    """Return the CRPS of each row of heights, shape (m, bins + 1): ∫ F² - 2 ∫ F above the answer + 1 - answer.

    at: the bin with the answer. shares: for each row, the factors of the heights of that bin's two edges and of 1 that
    are subtracted; near: the same as floats, (m, 3). With a and b the heights at the edges of a bin, its ∫ F² is
    (a² + ab + b²) / 3 and its ∫ F is (a + b) / 2. The terms that do not depend on where the answer lies within its
    bin are exact integers; the others are estimated, and computed exactly only where the estimate leaves a doubt.
    """
    bins, row = heights.shape[1] - 1, np.arange(len(heights))
    begins = row * (bins + 1)
    parts = np.stack([begins, begins + at + 1], axis=1).reshape(-1)
    above = np.add.reduceat(heights.reshape(-1), parts)[1::2]
    ends = np.stack([heights[row, at], heights[row, at + 1], np.full_like(at, CUMULATIVE)], axis=1)
    linear = 3 * (CUMULATIVE * (bins - at) - 2 * above + ends[:, 1] + heights[:, -1])
    over = 3 * bins * CUMULATIVE**2 // QUANTUM
    estimate = _thrice_squares(floats(heights)) + CUMULATIVE * floats(linear)
    quotients, rests = divide_wrapped(_thrice_squares(heights) + CUMULATIVE * linear, over, estimate)
    scores, uncertain = subtract_and_round(quotients, rests, over, near * floats(ends) * (3 * CUMULATIVE))
    for doubtful in uncertain.tolist():
        exact = sum(share * end for share, end in zip(shares[doubtful], ends[doubtful].tolist(), strict=True))
        number = int(quotients[doubtful]) * over + int(rests[doubtful]) - 3 * CUMULATIVE * Fraction(exact)
        scores[doubtful] = half_even(number.numerator, number.denominator * over)
    return scores


def _thrice_squares(heights: NDArray[Any]) -> NDArray[Any]:
    """Return Σ (a² + ab + b²) over the bins of each row; for integers, its last 64 bits."""
    squares = 2 * np.einsum("ij,ij->i", heights, heights) + np.einsum("ij,ij->i", heights[:, :-1], heights[:, 1:])
    total: NDArray[Any] = squares - heights[:, 0] ** 2 - heights[:, -1] ** 2
    return total


def _distance(point: int, value: str, span: NumericRange) -> int:
    gap = abs(fraction_of(Fraction(point, 10**span.decimals), span) - fraction_of(value, span))
    return half_even(gap.numerator * QUANTUM, gap.denominator)
