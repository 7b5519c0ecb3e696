"""Kernels: what one forecast is worth once the outcome is known. To add one, add a row to a table.

Every kernel gives integers of 1/QUANTUM, rounded half-even once; those of quantiles 1/quantum of the question's unit.
"""

from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import QUANTUM, half_even, ln_fixed, log2_fixed
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.core.estimates import root_shares
from forecast_ledger.projections.core.wide_int import Int64Array, half_even_many, ln_many, log2_many
from forecast_ledger.projections.scores.forecast_numbers import Numbers
from forecast_ledger.projections.scores.range_kernels import absolute, crps, pinball


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
    hits, squares = numbers.flat[numbers.start + numbers.outcome], _lengths(numbers)
    found, doubtful = root_shares(hits, squares)
    for row in doubtful.tolist():
        found[row] = _root_share(int(hits[row]), int(squares[row]))
    return found


def _squares(numbers: Numbers) -> Int64Array:
    """Σ (p_k - o_k)² in PROBABILITY²."""
    hits = numbers.flat[numbers.start + numbers.outcome]
    total: Int64Array = _lengths(numbers) - 2 * PROBABILITY * hits + PROBABILITY**2
    return total


def _lengths(numbers: Numbers) -> Int64Array:
    """Σ p_k² of each forecast in PROBABILITY²."""
    found = []
    for block in numbers.blocks():
        chances, begins, _ = block.laid_out()
        found.append(np.add.reduceat(chances * chances, begins))
    return _joined(found)


def _root_share(part: int, squares: int) -> int:
    """Part / √squares in 1/QUANTUM, rounded half-even once."""
    doubled: int = isqrt(4 * (part * QUANTUM) ** 2 // squares)
    exact = doubled * doubled * squares == 4 * (part * QUANTUM) ** 2
    rounded: int = half_even(doubled, 2) if exact else (doubled + 1) // 2
    return rounded


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
