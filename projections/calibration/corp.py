"""Calibration without bins: forecasts are recalibrated by isotonic regression, which splits the Brier score exactly.

Source: Dimitriadis, Gneiting and Jordan (2021), doi:10.1073/pnas.2016191118: the CORP approach.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.boards.brier_sums import Sample
from forecast_ledger.projections.core.sorting import run_starts


class Block(NamedTuple):
    """Forecasts whose recalibrated probability is the same, happened / n.

    lower, upper: the least and the greatest of them, 1e-9. n: their number. happened: how many came true.
    """

    lower: int
    upper: int
    n: int
    happened: int


class Recalibrated(NamedTuple):
    """One owner's forecasts. blocks: with ascending probabilities, recalibrated ones as well.

    The mean Brier score, from 0 to 1, is miscalibration - discrimination + uncertainty, exactly: what recalibration
    would take off it; by how much the recalibrated forecasts beat the base rate; and the score of the base rate.
    """

    owner: int
    n: int
    brier: Fraction
    miscalibration: Fraction
    discrimination: Fraction
    uncertainty: Fraction
    blocks: list[Block]


def recalibrate(sample: Sample) -> Iterator[Recalibrated]:
    """Yield the recalibration of each owner's forecasts, by owner.

    >>> columns = [np.zeros(4, int), np.array([1, 3, 5, 7]) * 10**8, np.zeros(4), np.array([False, True, False, True])]
    >>> [own] = recalibrate(Sample(*columns))
    >>> [(each.lower, each.happened, each.n) for each in own.blocks]
    [(100000000, 0, 1), (300000000, 1, 2), (700000000, 1, 1)]
    >>> own.brier == own.miscalibration - own.discrimination + own.uncertainty == Fraction(21, 100)
    True
    """
    order = np.lexsort((sample.probability, sample.owner))
    owner, probability, happened = sample.owner[order], sample.probability[order], sample.happened[order]
    squares = np.where(happened, PROBABILITY - probability, probability).tolist()
    for first, end in pairwise([*run_starts(owner).tolist(), len(owner)]):
        blocks = _pooled(probability[first:end].tolist(), happened[first:end].tolist())
        n, yes = end - first, sum(block.happened for block in blocks)
        brier = Fraction(sum(each * each for each in squares[first:end]), n * PROBABILITY**2)
        left = sum((Fraction(each.happened * (each.n - each.happened), each.n * n) for each in blocks), Fraction(0))
        uncertainty = Fraction(yes * (n - yes), n * n)
        yield Recalibrated(int(owner[first]), n, brier, brier - left, uncertainty - left, uncertainty, blocks)


def _pooled(probability: list[int], happened: list[bool]) -> list[Block]:
    """Return the blocks of isotonic regression, by pooling adjacent violators; forecasts come in ascending order.

    Source: Ayer et al. (1955), doi:10.1214/aoms/1177728423.
    """
    blocks: list[Block] = []
    for place, equal in groupby(zip(probability, happened, strict=True), itemgetter(0)):
        answers = [yes for _, yes in equal]
        new = Block(place, place, len(answers), sum(answers))
        while blocks and blocks[-1].happened * new.n >= new.happened * blocks[-1].n:
            before = blocks.pop()
            new = Block(before.lower, place, before.n + new.n, before.happened + new.happened)
        blocks.append(new)
    return blocks
