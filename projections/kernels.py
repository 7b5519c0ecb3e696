"""Kernels: what one forecast is worth once the outcome is known. To add one, add a row to a table.

Every kernel gives integers of 1/QUANTUM, rounded half-even once; those of quantiles 1/quantum of the question's unit.
"""

from collections.abc import Callable, Iterator
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import NamedTuple

import numpy as np

from ledger.events import NumericRange
from ledger.exact import QUANTUM, half_even, ln_fixed, log2_fixed
from ledger.values import CUMULATIVE, PROBABILITY
from projections.limbs import Int64Array, Limbs, column, half_even_many, ln_many, log2_many

_BLOCK = 1 << 21  # numbers taken at a time
_FINE = Decimal("1e-30")  # to which a place on a logarithmic scale is rounded


class Numbers(NamedTuple):
    """n forecasts on questions of one form: `width` numbers each, from `start` in `flat`. Shape (n,) but flat.

    outcome: index. spans, values: of each question, by `question`: its range and its answer's exact text.
    """

    flat: Int64Array
    start: Int64Array
    width: Int64Array
    outcome: Int64Array
    question: Int64Array
    spans: list[NumericRange | None]
    values: list[str]

    def rows(self, part: slice) -> "Numbers":
        """Some of the forecasts."""
        return self._replace(
            start=self.start[part],
            width=self.width[part],
            outcome=self.outcome[part],
            question=self.question[part],
        )

    def asked(self) -> list[NumericRange]:
        """The range of each forecast's question; every one has one."""
        spans = [self.spans[question] for question in self.question.tolist()]
        return [span for span in spans if span is not None]

    def blocks(self) -> Iterator["Numbers"]:
        """The forecasts, some at a time."""
        upto = np.cumsum(self.width)
        begin = 0
        while begin < len(upto):
            before = int(upto[begin - 1]) if begin else 0
            end = max(int(np.searchsorted(upto, before + _BLOCK, "right")), begin + 1)
            yield self.rows(slice(begin, end))
            begin = end

    def laid_out(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """All numbers end to end, where each forecast begins among them, and each number's place in its forecast."""
        begins = np.cumsum(self.width) - self.width
        place = np.arange(int(self.width.sum())) - np.repeat(begins, self.width)
        return self.flat[np.repeat(self.start, self.width) + place], begins, place


class Kernel(NamedTuple):
    """A formula. It reads either the outcome's chance (k / unit) or the whole distribution.

    uniform: what the uniform distribution scores; given how many outcomes there are and the index of the one that
    happened, or, of a numeric question, how many bins and the answer's exact place in 1/QUANTUM.
    """

    of_chance: Callable[[Int64Array, int], Int64Array] | None
    of_numbers: Callable[[Numbers], Int64Array] | None
    uniform: Callable[[int, int | Fraction], int]
    lower_is_better: bool


def brier(numbers: Numbers) -> Int64Array:
    """Half of Σ (p_k - o_k)², 0..1; for two outcomes (1 - p)², p the probability of the one that happened.

    Source: seed 003_ec2881b80447d7f2, "Evaluation"; Brier (1950), whose sum is twice this.

    >>> two = Numbers(np.array([700_000_000, 300_000_000]), *(np.array([each]) for each in (0, 2, 0, 0)), [None], [""])
    >>> brier(two).tolist()
    [90000000000]
    """
    return half_even_many(_squares(numbers), 2 * PROBABILITY**2 // QUANTUM)


def brier_sum(numbers: Numbers) -> Int64Array:
    """Σ (p_k - o_k)², 0..2. Source: Brier (1950), Monthly Weather Review 78(1):1-3.

    >>> two = Numbers(np.array([700_000_000, 300_000_000]), *(np.array([each]) for each in (0, 2, 0, 0)), [None], [""])
    >>> brier_sum(two).tolist()
    [180000000000]
    """
    return half_even_many(_squares(numbers), PROBABILITY**2 // QUANTUM)


def ordered_brier(numbers: Numbers) -> Int64Array:
    """The mean over the K - 1 splits of ordered outcomes of the two-sided Brier score of each, 0..2: 2 RPS / (K - 1).

    Source: Jose, Nau and Winkler (2009), doi:10.1287/mnsc.1080.0955.

    >>> two = Numbers(np.array([700_000_000, 300_000_000]), *(np.array([each]) for each in (0, 2, 0, 0)), [None], [""])
    >>> ordered_brier(two).tolist()
    [180000000000]
    """
    found = []
    for block in numbers.blocks():
        chances, begins, place = block.laid_out()
        upto = np.cumsum(chances)
        upto -= np.repeat(upto[begins] - chances[begins], block.width)
        missed = upto - np.where(place >= np.repeat(block.outcome, block.width), PROBABILITY, 0)
        splits = block.width - 1
        whole, rest = np.divmod(missed * missed, np.repeat(splits, block.width))
        carried, rest = np.divmod(np.add.reduceat(rest, begins), splits)
        # 2 (whole + rest / splits) / (PROBABILITY² / QUANTUM), in two steps that fit in 64 bits, the first of them even
        quanta, left = np.divmod(np.add.reduceat(whole, begins) + carried, PROBABILITY**2 // QUANTUM)
        found.append(2 * quanta + half_even_many(2 * (left * splits + rest), PROBABILITY**2 // QUANTUM * splits))
    return _joined(found)


def error(numbers: Numbers) -> Int64Array:
    """0 if the most probable outcome, the first of equals, is what happened, else 1: one less the accuracy.

    Source: the notebooks of the Autocast competition of 2022, which print accuracies beside Brier scores.

    >>> two = Numbers(np.array([500_000_000, 500_000_000]), *(np.array([each]) for each in (0, 2, 0, 0)), [None], [""])
    >>> error(two).tolist()
    [0]
    """
    found = []
    for block in numbers.blocks():
        chances, begins, place = block.laid_out()
        most = np.repeat(np.maximum.reduceat(chances, begins), block.width)
        first = np.minimum.reduceat(np.where(chances == most, place, len(chances)), begins)
        found.append((first != block.outcome) * QUANTUM)
    return _joined(found)


def spherical(numbers: Numbers) -> Int64Array:
    """The share p / √(Σ p_k²), p the probability of what happened, 0..1.

    Source: Gneiting and Raftery (2007), doi:10.1198/016214506000001437, example 2.

    >>> two = Numbers(np.array([700_000_000, 300_000_000]), *(np.array([each]) for each in (0, 2, 0, 0)), [None], [""])
    >>> spherical(two).tolist()
    [919145030018]
    """
    return column([_root_share(hit, total) for hit, total in zip(_hits(numbers), _lengths(numbers), strict=True)])


def crps(numbers: Numbers) -> Int64Array:
    """∫ (F(x) - 1{x >= y})² dx over the range as 0..1, F linear in each bin; an answer beyond it counts as its end.

    On a logarithmic range x is the place on the logarithmic scale.
    Source: Gneiting and Raftery (2007), doi:10.1198/016214506000001437, section 4.2.

    >>> span, cdf = NumericRange(lower="0", upper="1", bins=1), np.array([0, 10**10])
    >>> crps(Numbers(cdf, *(np.array([each]) for each in (0, 2, 1, 0)), [span], ["0.5"])).tolist()
    [83333333333]
    """
    return _joined([_crps(block) for block in numbers.blocks()])


def pinball(numbers: Numbers) -> Int64Array:
    """Twice the mean over levels of (1{y < q} - level)(q - y): the weighted interval score where levels are symmetric
    about 0.5, which is one of them; the absolute error where it is the only one. In units of the question, lower is
    better.

    Source: Bracher, Ray, Gneiting and Reich (2021), doi:10.1371/journal.pcbi.1008618.

    >>> span = NumericRange(lower="0", upper="9", levels=(500_000_000,))
    >>> pinball(Numbers(np.array([3]), *(np.array([each]) for each in (0, 1, 1, 0)), [span], ["5"])).tolist()
    [20000]
    """
    found: list[int] = []
    for block in numbers.blocks():
        quantiles, begins, place = block.laid_out()
        asked = np.repeat(block.question, block.width)
        levels = [() if span is None else span.levels for span in block.spans]
        first = np.cumsum(list(map(len, levels))) - list(map(len, levels))
        level = column([level for each in levels for level in each])[first[asked] + place]
        answers = [_counted(*each) for each in zip(block.values, block.spans, strict=True)]
        whole = column([int(answer // 1) for answer in answers])[asked]
        slope = np.where(whole < quantiles, PROBABILITY - level, -level)
        sums = Limbs.product(np.abs(quantiles - whole), np.abs(slope)).summed(begins).integers()
        slopes = np.add.reduceat(slope, begins).tolist()  # times what the answer is above a whole number goes off
        for total, rise, question, span in zip(sums, slopes, block.question.tolist(), block.asked(), strict=True):
            gaps, unit = (total - rise * (answers[question] % 1)).as_integer_ratio()
            over = unit * len(span.levels) * PROBABILITY * 10**span.decimals
            found.append(half_even(2 * gaps * quantum(span), over))
    return column(found)


def absolute(numbers: Numbers) -> Int64Array:
    """|x - y| on the range as 0..1, along its logarithmic scale if it has one. The one level must be 0.5. What lies
    beyond an open end counts as that end.

    Source: seed 003_ec2881b80447d7f2, "Evaluation": L1 distance, bounded between 0% and 100%.

    >>> span = NumericRange(lower="0", upper="10", levels=(500_000_000,))
    >>> absolute(Numbers(np.array([3]), *(np.array([each]) for each in (0, 1, 1, 0)), [span], ["5"])).tolist()
    [200000000000]
    """
    columns = (numbers.flat[numbers.start].tolist(), numbers.asked(), numbers.question.tolist())
    return column([
        _quanta(abs(place_of(Fraction(point, 10**span.decimals), span) - place_of(numbers.values[question], span)))
        for point, span, question in zip(*columns, strict=True)
    ])  # fmt: skip


@lru_cache(maxsize=65_536)
def place_of(value: str | Fraction, span: NumericRange) -> Fraction:
    """The place of a value between the bounds of a range, 0..1; beyond them, the bound.

    Exact, but on a logarithmic scale rounded to thirty decimals.

    >>> place_of("2", NumericRange(lower="1", upper="4"))
    Fraction(1, 3)
    >>> place_of("10", NumericRange(lower="1", upper="100", zero_point="0"))
    Fraction(1, 2)
    """
    lower, upper = Fraction(span.lower), Fraction(span.upper)
    within = min(max(Fraction(value), lower), upper)
    if span.zero_point is None:
        return Fraction(within - lower, upper - lower)
    zero = Fraction(span.zero_point)
    ratios = Fraction(within - zero, lower - zero), Fraction(upper - zero, lower - zero)
    digits = 60 + len(str(ratios[1].denominator))  # enough where the bounds are very near each other
    precise = Context(digits, ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX)
    part, whole = (precise.ln(precise.divide(each.numerator, each.denominator)) for each in ratios)
    return Fraction(precise.quantize(precise.divide(part, whole), _FINE))


def quantum(span: NumericRange) -> int:
    """What a score by quantiles is counted in: four digits beyond the unit of its values, 10^12 at most.

    >>> quantum(NumericRange(lower="0", upper="1", levels=(500_000_000,), decimals=2))
    1000000
    """
    units: int = 10 ** min(12, span.decimals + 4)
    return units


def _counted(value: str, span: NumericRange | None) -> Fraction:
    """An answer in the unit of the quantiles, exact, if they are what the question asks for."""
    return Fraction(value) * 10**span.decimals if span is not None and span.levels else Fraction(0)


def _quanta(number: Fraction) -> int:
    return half_even(number.numerator * QUANTUM, number.denominator)


def _squares(numbers: Numbers) -> Int64Array:
    """Σ (p_k - o_k)² in PROBABILITY²."""
    found = []
    for block in numbers.blocks():
        chances, begins, _ = block.laid_out()
        total = np.add.reduceat(chances * chances, begins)
        found.append(total - 2 * PROBABILITY * chances[begins + block.outcome] + PROBABILITY**2)
    return _joined(found)


def _hits(numbers: Numbers) -> list[int]:
    hits: list[int] = numbers.flat[numbers.start + numbers.outcome].tolist()
    return hits


def _lengths(numbers: Numbers) -> Iterator[int]:
    """Σ p_k² of each forecast."""
    for block in numbers.blocks():
        chances, begins, _ = block.laid_out()
        yield from np.add.reduceat(chances * chances, begins).tolist()


def _root_share(part: int, squares: int) -> int:
    """Part / √squares in 1/QUANTUM, rounded half-even once."""
    doubled: int = isqrt(4 * (part * QUANTUM) ** 2 // squares)
    exact = doubled * doubled * squares == 4 * (part * QUANTUM) ** 2
    rounded: int = half_even(doubled, 2) if exact else (doubled + 1) // 2
    return rounded


def _crps(block: Numbers) -> Int64Array:
    """With a and b the distance from the step at both edges of a bin, its integral is (a² + ab + b²) / 3 of a bin; the
    bin with the answer has two such pieces.
    """
    heights, begins, edge = block.laid_out()
    bins = block.width - 1
    columns = (block.question.tolist(), block.asked(), bins.tolist())
    answers = [place_of(block.values[q], span) * width for q, span, width in zip(*columns, strict=True)]
    at = np.minimum(column([int(answer // 1) for answer in answers]), bins - 1)  # the bin with the answer, from 0
    after = edge > np.repeat(at, block.width)
    gaps = np.where(after, CUMULATIVE - heights, heights)
    pairs = (edge > 0) & (np.repeat(at, block.width) + 1 != edge)  # bins, by their upper edge, all on one side
    before = np.append(0, gaps[:-1])
    rows = np.repeat(np.arange(len(begins)), block.width)[pairs]
    starts = np.searchsorted(rows, np.arange(len(begins)))
    sums = [0] * len(begins)
    if len(rows):
        thirds = [
            Limbs.product(one[pairs], two[pairs]) for one, two in ((gaps, gaps), (before, before), (gaps, before))
        ]
        some = np.flatnonzero(bins > 1)
        totals = [each.summed(starts[some]).integers() for each in thirds]
        for row, *parts in zip(some.tolist(), *totals, strict=True):
            sums[row] = sum(parts)
    ends = zip(heights[begins + at].tolist(), heights[begins + at + 1].tolist(), strict=True)
    found = []
    for total, (low, high), width, index, answer in zip(
        sums, ends, bins.tolist(), at.tolist(), answers, strict=True
    ):  # of the bin with the answer, `inner` of `unit` lies below it
        inner, unit = (answer - index).as_integer_ratio()
        middle = low * unit + (high - low) * inner
        below = _pieces(low * unit, middle) * inner
        above = _pieces(CUMULATIVE * unit - middle, (CUMULATIVE - high) * unit) * (unit - inner)
        whole = total * unit**3 + below + above
        found.append(half_even(whole * QUANTUM, 3 * width * CUMULATIVE**2 * unit**3))
    return column(found)


def _pieces(a: int, b: int) -> int:
    return a * a + a * b + b * b


def _ln_uniform(outcomes: int, _: int | Fraction) -> int:
    return ln_fixed(1, outcomes)


def _log2_uniform(outcomes: int, _: int | Fraction) -> int:
    return log2_fixed(1, outcomes)


def _brier_uniform(outcomes: int, _: int | Fraction) -> int:
    return half_even((outcomes - 1) * QUANTUM, 2 * outcomes)


def _brier_sum_uniform(outcomes: int, _: int | Fraction) -> int:
    return half_even((outcomes - 1) * QUANTUM, outcomes)


def _ordered_uniform(outcomes: int, outcome: int | Fraction) -> int:
    missed = sum((k - outcomes * (k > outcome)) ** 2 for k in range(1, outcomes))
    return half_even(2 * missed * QUANTUM, outcomes**2 * (outcomes - 1))


def _error_uniform(_: int, outcome: int | Fraction) -> int:
    """All are equal, so the first is the most probable."""
    return QUANTUM * (outcome != 0)


def _spherical_uniform(outcomes: int, _: int | Fraction) -> int:
    return _root_share(1, outcomes)


def _crps_uniform(_: int, answer: int | Fraction) -> int:
    """Of an answer's place in 1/QUANTUM: (y³ + (1 - y)³) / 3."""
    thirds, over = (answer**3 + (QUANTUM - answer) ** 3).as_integer_ratio()
    return half_even(thirds, 3 * QUANTUM**2 * over)


def _no_uniform(_: int, __: int | Fraction) -> int:
    raise ValueError("quantiles have no uniform reference")


_ABSOLUTE = Kernel(None, absolute, _no_uniform, lower_is_better=True)
_LN = Kernel(ln_many, None, _ln_uniform, lower_is_better=False)
_LOG2 = Kernel(log2_many, None, _log2_uniform, lower_is_better=False)
KERNELS: dict[str, Kernel] = {
    "ln": _LN,
    "log2": _LOG2,
    "spherical": Kernel(None, spherical, _spherical_uniform, lower_is_better=False),
    "brier": Kernel(None, brier, _brier_uniform, lower_is_better=True),
    "brier_sum": Kernel(None, brier_sum, _brier_sum_uniform, lower_is_better=True),
    "ordered_brier": Kernel(None, ordered_brier, _ordered_uniform, lower_is_better=True),
    "error": Kernel(None, error, _error_uniform, lower_is_better=True),
    "crps": Kernel(None, crps, _crps_uniform, lower_is_better=True),
    "pinball": Kernel(None, pinball, _no_uniform, lower_is_better=True),
    "absolute": _ABSOLUTE,
    "absolute_clipped": _ABSOLUTE,  # of an open range too
}


def _joined(found: list[Int64Array]) -> Int64Array:
    return np.concatenate([*found, np.zeros(0, np.int64)])
