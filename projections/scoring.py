"""The policies of a score: kernels, references, and what a probability of nought counts as. To add one, add a row."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ledger.exact import half_even
from ledger.rules import RuleSet
from projections.columns import CHANCE
from projections.consensus import Consensus
from projections.limbs import Int64Array, ln_many, log2_many

_PPM = CHANCE // 10**6


class Kernel(NamedTuple):
    """A score's formula on many probabilities k / unit, in 1e-12, and the base of the take it leads to."""

    terms: Callable[[Int64Array, int], Int64Array]
    base: str


KERNELS: dict[str, Kernel] = {"ln": Kernel(ln_many, "e"), "log2": Kernel(log2_many, "2")}


def median_terms(kernel: Kernel, consensus: Consensus) -> Int64Array:
    """The kernel of the median of all standing forecasts, from each instant of change; 0 where none stands.

    The median of an even number is the mean of the two middle values, here as their sum over twice the unit.
    Source: seed 000_b8319c7b2812d652, "Question 1: a Binary Question", row "median (m)" (15% of 10% and 20%).
    """
    standing = consensus.stand > 0
    doubled = np.where(standing, consensus.low + consensus.high, 2 * CHANCE)
    return np.where(standing, kernel.terms(doubled, 2 * CHANCE), 0)


REFERENCES: dict[str, Callable[[Kernel, Consensus], Int64Array]] = {"median": median_terms}


def least_chance(rules: RuleSet, outcome: int, bins: int) -> int:
    """What a smaller probability of the outcome counts as under a rule set, 1e-10; never 0."""
    if bins and 1 <= outcome <= bins:
        return max(half_even(rules.least_density_ppm * _PPM, bins), 1)
    return rules.least_probability_ppm * _PPM
