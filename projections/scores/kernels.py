"""Kernels: the scoring rules that score one forecast once the outcome is known.

To add a kernel, add its function and its row in KERNELS. Every kernel returns integers in its unit, rounded half-even
once. The row of a kernel names the source of its formula.
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate
from typing import Literal, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.projections.core.arrays import Int64Array, half_even_many
from forecast_ledger.projections.core.estimates import ln_many, log2_many, root_shares
from forecast_ledger.projections.core.powers import QUANTUM, ln_fixed, log2_fixed, root_half_even
from forecast_ledger.projections.scores.range_kernels import (
    Numbers,
    absolute,
    crps,
    fraction_of,
    pinball,
    quantum,
    squared,
    squares,
)

AUTOCAST = "Autocast competition of 2022 (github.com/andyzoujm/autocast)"
Form = Literal["chances", "cdf", "quantiles", "point", "samples", "sample"]  # of a forecast


class Unit(NamedTuple):
    """The unit in which a kernel counts. in_one: returns how many units make 1 on a question with this range."""

    words: str
    in_one: Callable[[NumericRange | None], int]


class Uniform(NamedTuple):
    """The uniform distribution of a question, and the answer by which it is scored.

    outcomes: the number of outcomes, or of bins for a numeric question. outcome: the index of the outcome that
    happened, -1 with payouts. chance: the probability of that outcome, as numerator and denominator. span, value: for a
    numeric question, its range and the exact text of its answer. payouts: what a share of each outcome is paid.
    """

    outcomes: int
    outcome: int
    chance: tuple[int, int]
    span: NumericRange | None = None
    value: str = ""
    payouts: tuple[Fraction, ...] = ()

    def paid(self) -> list[Fraction]:
        """Return what a share of each outcome is paid."""
        return [*self.payouts] or [Fraction(each == self.outcome) for each in range(self.outcomes)]


class Kernel(NamedTuple):
    """The definition of one kernel.

    words: the formula and the range of the score, as `explain` and the reference print them. takes: the forms of
    forecast that it scores. worst: the worst possible score, in 1; None if there is no bound. uniform: returns the
    score of the uniform distribution; None if the form of forecast has no uniform distribution. source: where the
    formula is published. of_chance, of_numbers: the scoring function, which reads either the probability of the
    outcome (k / unit) or the whole forecast; exactly one of the two is given.
    """

    words: str
    takes: tuple[Form, ...]
    lower_is_better: bool
    worst: int | None
    uniform: Callable[[Uniform], int] | None
    source: str
    of_chance: Callable[[Int64Array, int], Int64Array] | None = None
    of_numbers: Callable[[Numbers], Int64Array] | None = None
    unit: Unit = Unit("1e-12", lambda _: QUANTUM)


def brier(numbers: Numbers) -> Int64Array:
    """The halved Brier score ½ Σ (p_k - o_k)², from 0 to 1.

    For two outcomes it is (1 - p)², p the probability of the outcome.

    >>> two = Numbers(np.array([700_000_000, 300_000_000]), *(np.array([each]) for each in (0, 2, 0, 0)), [None], [""])
    >>> brier(two).tolist()
    [90000000000]
    """
    return _mean_squares(numbers, 2)


def brier_sum(numbers: Numbers) -> Int64Array:
    """The Brier score Σ (p_k - o_k)², from 0 to 2; o_k = 1 for the outcome that happened, else 0, or the payouts.

    >>> two = Numbers(np.array([700_000_000, 300_000_000]), *(np.array([each]) for each in (0, 2, 0, 0)), [None], [""])
    >>> brier_sum(two).tolist()
    [180000000000]
    """
    return _mean_squares(numbers, 1)


def brier_mean(numbers: Numbers) -> Int64Array:
    """The mean Brier score of the outcomes 1 / K x Σ (p_k - o_k)², from 0 to 1; for two outcomes it is that of `brier`.

    >>> three = np.array([500_000_000, 300_000_000, 200_000_000])
    >>> brier_mean(Numbers(three, *(np.array([each]) for each in (0, 3, 1, 0)), [None], [""])).tolist()
    [260000000000]
    """
    return _mean_squares(numbers, numbers.width)


def ordered_brier(numbers: Numbers) -> Int64Array:
    """The Brier score of K ordered outcomes, 2 RPS / (K - 1), from 0 to 2.

    It is the mean, over the K - 1 ways to split the outcomes into lower and higher ones, of the Brier score of that
    binary question. RPS = Σ (P_k - O_k)² over k = 1 … K - 1, where P_k and O_k add up the first k of p and o.

    >>> two = Numbers(np.array([700_000_000, 300_000_000]), *(np.array([each]) for each in (0, 2, 0, 0)), [None], [""])
    >>> ordered_brier(two).tolist()
    [180000000000]
    """
    blocks = []
    for block in numbers.blocks():
        chances, begins, index = block.columns()
        upto = np.cumsum(chances)
        upto -= np.repeat(upto[begins] - chances[begins], block.width)
        missed = upto - np.where(index >= np.repeat(block.outcome, block.width), PROBABILITY, 0)
        splits = block.width - 1
        whole, remainder = np.divmod(missed * missed, np.repeat(splits, block.width))
        carried, remainder = np.divmod(np.add.reduceat(remainder, begins), splits)
        # 2 (whole + remainder / splits) / (PROBABILITY² / QUANTUM), in two steps that fit in 64 bits, the first even
        quanta, left = np.divmod(np.add.reduceat(whole, begins) + carried, PROBABILITY**2 // QUANTUM)
        blocks.append(2 * quanta + half_even_many(2 * (left * splits + remainder), PROBABILITY**2 // QUANTUM * splits))
    scores = _joined(blocks)
    for rows, missed, unit in numbers.missed():
        squares = np.square(np.cumsum(missed, axis=1)[:, :-1])
        over = unit**2 * squares.shape[1]
        scores[rows] = [half_even(2 * QUANTUM * each, over) for each in squares.sum(axis=1).tolist()]
    return scores


def error(numbers: Numbers) -> Int64Array:
    """0 if the most probable outcome, the first of equals, happened, else 1: 1 - accuracy.

    >>> two = Numbers(np.array([500_000_000, 500_000_000]), *(np.array([each]) for each in (0, 2, 0, 0)), [None], [""])
    >>> error(two).tolist()
    [0]
    """
    blocks = []
    for block in numbers.blocks():
        chances, begins, index = block.columns()
        most = np.repeat(np.maximum.reduceat(chances, begins), block.width)
        first = np.minimum.reduceat(np.where(chances == most, index, len(chances)), begins)
        blocks.append((first != block.outcome) * QUANTUM)
    return _joined(blocks)


def spherical(numbers: Numbers) -> Int64Array:
    """The spherical score p / √(Σ p_k²), p the probability of the outcome that happened, from 0 to 1.

    >>> two = Numbers(np.array([700_000_000, 300_000_000]), *(np.array([each]) for each in (0, 2, 0, 0)), [None], [""])
    >>> spherical(two).tolist()
    [919145030018]
    """
    hits, squares = numbers.flat[numbers.start + numbers.outcome], _lengths(numbers)
    shares, doubtful = root_shares(hits, squares)
    for row in doubtful.tolist():
        shares[row] = _root_share(int(hits[row]), int(squares[row]))
    return shares


def _mean_squares(numbers: Numbers, parts: Int64Array | int) -> Int64Array:
    """Σ (p_k - o_k)² / parts in 1/QUANTUM, rounded half-even once. parts: shape (n,), or the same for all."""
    hits = numbers.flat[numbers.start + numbers.outcome]
    squares = _lengths(numbers) - 2 * PROBABILITY * hits + PROBABILITY**2
    scores = half_even_many(squares, PROBABILITY**2 // QUANTUM * parts)
    for rows, missed, unit in numbers.missed():
        over = unit**2 * int(np.broadcast_to(parts, scores.shape)[rows[0]])
        scores[rows] = [half_even(QUANTUM * each, over) for each in np.square(missed).sum(axis=1).tolist()]
    return scores


def _lengths(numbers: Numbers) -> Int64Array:
    """Σ p_k² of each forecast in PROBABILITY²."""
    lengths = np.zeros(len(numbers.width), np.int64)
    for rows, chances in numbers.tables(numbers.width):
        lengths[rows] = np.einsum("ij,ij->i", chances, chances)
    return lengths


def _root_share(part: int, squares: int) -> int:
    """Return part / √squares in 1/QUANTUM, rounded half-even once."""
    return root_half_even(Fraction((part * QUANTUM) ** 2, squares))


def _joined(blocks: list[Int64Array]) -> Int64Array:
    return np.concatenate([*blocks, np.zeros(0, np.int64)])


def _ln_uniform(uniform: Uniform) -> int:
    return ln_fixed(*uniform.chance)


def _log2_uniform(uniform: Uniform) -> int:
    return log2_fixed(*uniform.chance)


def _brier_uniform(uniform: Uniform) -> int:
    missed, over = _missed(uniform).as_integer_ratio()
    return half_even(missed * QUANTUM, 2 * over)


def _brier_sum_uniform(uniform: Uniform) -> int:
    missed, over = _missed(uniform).as_integer_ratio()
    return half_even(missed * QUANTUM, over)


def _brier_mean_uniform(uniform: Uniform) -> int:
    missed, over = _missed(uniform).as_integer_ratio()
    return half_even(missed * QUANTUM, over * uniform.outcomes)


def _missed(uniform: Uniform) -> Fraction:
    """Σ (1 / K - o_k)²."""
    share = Fraction(1, uniform.outcomes)
    return sum(((share - paid) ** 2 for paid in uniform.paid()), Fraction(0))


def _ordered_uniform(uniform: Uniform) -> int:
    outcomes, paid = uniform.outcomes, accumulate(uniform.paid()[:-1])
    missed = sum((Fraction(k, outcomes) - upto) ** 2 for k, upto in enumerate(paid, 1))
    twice, over = Fraction(2 * missed).as_integer_ratio()
    return half_even(twice * QUANTUM, over * (outcomes - 1))


def _error_uniform(uniform: Uniform) -> int:
    """All probabilities are equal, so the first outcome counts as the most probable."""
    return QUANTUM * (uniform.outcome != 0)


def _spherical_uniform(uniform: Uniform) -> int:
    return _root_share(1, uniform.outcomes)


def _crps_uniform(uniform: Uniform) -> int:
    """(y³ + (1 - y)³) / 3, y the position of the answer on the range, which runs from 0 to 1."""
    if uniform.span is None:
        raise ValueError("the kernel crps needs the range of the question")
    answer = fraction_of(uniform.value, uniform.span)
    thirds, over = (answer**3 + (1 - answer) ** 3).as_integer_ratio()
    return half_even(thirds * QUANTUM, 3 * over)


def _of_question(span: NumericRange | None) -> int:
    if span is None:
        raise ValueError("the unit of the kernel needs the range of the question")
    return quantum(span)


def _of_squares(span: NumericRange | None) -> int:
    if span is None:
        raise ValueError("the unit of the kernel needs the range of the question")
    return squares(span)


OF_SQUARES = Unit("the finest power of ten with which 64 bits hold every error, at least 1e-12", _of_squares)
OF_QUESTION = Unit("1e-4 of the question's unit, at least 1e-12", _of_question)
_ABSOLUTE = Kernel(
    words="the absolute error abs(x - y) on the range as 0 to 1 (x the point; y the answer; 0 to 1)",
    takes=("point",),
    lower_is_better=True,
    worst=1,
    uniform=None,
    source=f'{AUTOCAST}, "Evaluation": the L1 distance, bounded between 0% and 100%',
    of_numbers=absolute,
)
# Names and order are those of `KernelName`, `CdfKernelName` and `QuantileKernelName` in ledger/model/rules.py.
KERNELS: dict[str, Kernel] = {
    "ln": Kernel(
        words="the logarithmic score ln p (p the probability of the outcome; -∞ to 0)",
        takes=("chances", "cdf"),
        lower_is_better=False,
        worst=None,
        uniform=_ln_uniform,
        source='Metaculus, Scores FAQ, "What is the log score?"',
        of_chance=ln_many,
    ),
    "log2": Kernel(
        words="the logarithmic score log2 p (p the probability of the outcome; -∞ to 0)",
        takes=("chances", "cdf"),
        lower_is_better=False,
        worst=None,
        uniform=_log2_uniform,
        source='Metaculus, Scores FAQ, "What is the Relative score?"',
        of_chance=log2_many,
    ),
    "spherical": Kernel(
        words="the spherical score p / √(Σ p_k²) (p the probability of the outcome; Σ over all outcomes; 0 to 1)",
        takes=("chances",),
        lower_is_better=False,
        worst=0,
        uniform=_spherical_uniform,
        source="Gneiting and Raftery (2007), doi:10.1198/016214506000001437, example 2",
        of_numbers=spherical,
    ),
    "brier": Kernel(
        words="the halved Brier score ½ Σ (p_k - o_k)² (o_k 1 for the outcome and 0 for the others; 0 to 1)",
        takes=("chances",),
        lower_is_better=True,
        worst=1,
        uniform=_brier_uniform,
        source=f'{AUTOCAST}, "Evaluation"; half of the sum of Brier (1950)',
        of_numbers=brier,
    ),
    "brier_sum": Kernel(
        words="the Brier score Σ (p_k - o_k)² (o_k 1 for the outcome and 0 for the others; 0 to 2)",
        takes=("chances",),
        lower_is_better=True,
        worst=2,
        uniform=_brier_sum_uniform,
        source="Brier (1950), Monthly Weather Review 78(1):1-3, doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2",
        of_numbers=brier_sum,
    ),
    "brier_mean": Kernel(
        words="the mean Brier score of K outcomes 1 / K x Σ (p_k - o_k)² (o_k 1 for the outcome, else 0; 0 to 1)",
        takes=("chances",),
        lower_is_better=True,
        worst=1,
        uniform=_brier_mean_uniform,
        source='Prophet Arena, arena-evaluation, "Semantics": the mean squared error of an event',
        of_numbers=brier_mean,
    ),
    "ordered_brier": Kernel(
        words="the Brier score of ordered outcomes 2 / (K - 1) x Σ (P_k - O_k)² (P and O cumulative; k < K; 0 to 2)",
        takes=("chances",),
        lower_is_better=True,
        worst=2,
        uniform=_ordered_uniform,
        source="Jose, Nau and Winkler (2009), doi:10.1287/mnsc.1080.0955",
        of_numbers=ordered_brier,
    ),
    "error": Kernel(
        words="the error: 0 if the most probable outcome (of equals the first) happened and 1 if not",
        takes=("chances",),
        lower_is_better=True,
        worst=1,
        uniform=_error_uniform,
        source=f"{AUTOCAST}, its notebooks, which print accuracies beside Brier scores",
        of_numbers=error,
    ),
    "crps": Kernel(
        words="the CRPS ∫ (F(x) - 1{x >= y})² dx over the range as 0 to 1 (F the cdf; y the answer; 0 to 1)",
        takes=("cdf",),
        lower_is_better=True,
        worst=1,
        uniform=_crps_uniform,
        source="Gneiting and Raftery (2007), doi:10.1198/016214506000001437, section 4.2",
        of_numbers=crps,
    ),
    "pinball": Kernel(
        words="twice the mean over levels t of the quantile loss (1{y < q} - t) (q - y), which is the CRPS of samples "
        "(y the answer; 0 to ∞)",
        takes=("quantiles", "point", "samples"),
        lower_is_better=True,
        worst=None,
        uniform=None,
        source="Bracher, Ray, Gneiting and Reich (2021), doi:10.1371/journal.pcbi.1008618; of samples Jordan, Krüger "
        "and Lerch (2019), doi:10.18637/jss.v090.i12, section 2",
        of_numbers=pinball,
        unit=OF_QUESTION,
    ),
    "squared": Kernel(
        words="the squared error (x - y)² of a single sample, such as a mean (x the sample; y the answer; 0 to ∞)",
        takes=("sample",),
        lower_is_better=True,
        worst=None,
        uniform=None,
        source="Gneiting (2011), doi:10.1198/jasa.2011.r10138, section 1: squared error, for means",
        of_numbers=squared,
        unit=OF_SQUARES,
    ),
    "absolute": _ABSOLUTE,
    "absolute_clipped": _ABSOLUTE._replace(words=f"{_ABSOLUTE.words} with x and y clipped to the range"),
}
