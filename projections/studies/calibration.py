"""Calibration: how often what was forecast happened, recalibrated without bins, by option, and at thresholds of action.

Forecasts are recalibrated by isotonic regression, which splits the Brier score exactly.

Source: Dimitriadis, Gneiting and Jordan (2021), doi:10.1073/pnas.2016191118: the CORP approach.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.boards import brier
from forecast_ledger.projections.boards.brier import Sample
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, distinct, run_lengths, run_starts
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.range_kernels import Numbers
from forecast_ledger.projections.scores.sampling import at_one_instant
from forecast_ledger.projections.scores.score_terms import standing_in_chunks
from forecast_ledger.projections.scores.scored_questions import scored_questions
from forecast_ledger.projections.scores.terms import numbers

_FEW_FALLS = 16  # falls among so many neighbours are joined one after the other


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
    >>> [result] = recalibrate(Sample(*columns))
    >>> [(each.lower, each.happened, each.n) for each in result.blocks]
    [(100000000, 0, 1), (300000000, 1, 2), (700000000, 1, 1)]
    >>> result.brier == result.miscalibration - result.discrimination + result.uncertainty == Fraction(21, 100)
    True
    """
    order = np.lexsort((sample.probability, sample.owner))
    owner, probability, happened = sample.owner[order], sample.probability[order], sample.happened[order]
    missed = np.where(happened, PROBABILITY - probability, probability)
    squares = WideInt.product(missed, missed).run_sums(run_starts(owner)).integers()
    pools = _joined_falls(_equal(owner, probability, happened))
    limits = [*run_starts(pools.owner).tolist(), len(pools.owner)]
    for (first, end), square in zip(pairwise(limits), squares, strict=True):
        blocks = _pooled(zip(*(column[first:end].tolist() for column in pools[1:]), strict=True))
        n, yes = sum(block.n for block in blocks), sum(block.happened for block in blocks)
        mixed = Counter[int]()
        for block in blocks:
            mixed[block.n] += block.happened * (block.n - block.happened)
        left = sum((Fraction(total, size * n) for size, total in mixed.items()), Fraction(0))
        brier, uncertainty = Fraction(square, n * PROBABILITY**2), Fraction(yes * (n - yes), n * n)
        yield Recalibrated(int(pools.owner[first]), n, brier, brier - left, uncertainty - left, uncertainty, blocks)


class _Pools(NamedTuple):
    """Forecasts of one owner with neighbouring probabilities, by owner and probability; the rest as in `Block`."""

    owner: Int64Array
    lower: Int64Array
    upper: Int64Array
    n: Int64Array
    happened: Int64Array

    def joined(self, starts: Int64Array) -> "_Pools":
        """Return runs of neighbours as one each. starts: where each run begins."""
        ends = np.append(starts[1:], len(self.owner)) - 1
        counts = (np.add.reduceat(column, starts) for column in (self.n, self.happened))
        return _Pools(self.owner[starts], self.lower[starts], self.upper[ends], *counts)


def _equal(owner: Int64Array, probability: Int64Array, happened: BoolArray) -> _Pools:
    """Return the forecasts of each owner and probability, which come in this order, as one."""
    if not len(owner):
        return _Pools(owner, probability, probability, owner, owner)
    single = _Pools(owner, probability, probability, np.ones_like(owner), happened.astype(np.int64))
    return single.joined(run_starts(owner, probability))


def _joined_falls(pools: _Pools) -> _Pools:
    """Join neighbours whose frequencies fall or are equal, all at once, as long as they are many."""
    while True:
        owner, happened, n = pools.owner, pools.happened, pools.n
        falls = (owner[1:] == owner[:-1]) & (happened[:-1] * n[1:] >= happened[1:] * n[:-1])
        if falls.sum() * _FEW_FALLS < len(falls) or not len(falls):
            return pools
        pools = pools.joined(np.flatnonzero(np.append(True, ~falls)))


def _pooled(rows: Iterable[tuple[int, ...]]) -> list[Block]:
    """Return the blocks of isotonic regression, by pooling adjacent violators; rows come in ascending order.

    Source: Ayer et al. (1955), doi:10.1214/aoms/1177728423.
    """
    blocks: list[Block] = []
    for new in map(Block._make, rows):
        while blocks and blocks[-1].happened * new.n >= new.happened * blocks[-1].n:
            before = blocks.pop()
            new = Block(before.lower, new.upper, before.n + new.n, before.happened + new.happened)  # noqa: PLW2901
        blocks.append(new)
    return blocks


def clustered_bins(sample: Sample, cluster: Int64Array) -> Iterator[tuple[brier.Bin, int]]:
    """Yield the calibration bins of each owner with the number of clusters in each; intervals allow for clusters.

    cluster: of each row, from 0 on, shape (n,).

    >>> columns = [np.zeros(4, int), np.full(4, 10**9 // 2), np.full(4, -1), np.array([True, False, True, True])]
    >>> [(one.n, one.wilson_low, clusters) for one, clusters in clustered_bins(Sample(*columns), np.arange(4) // 2)]
    [(4, 197867456, 2)]
    """
    last = len(brier.DECILES) - 1
    bin_of_row = sample.owner * last + np.searchsorted(np.array(brier.DECILES[1:-1]), sample.probability, "right")
    order = np.lexsort((cluster, bin_of_row))
    starts = np.union1d(run_starts(bin_of_row[order]), run_starts(cluster[order]))
    sizes = run_lengths(starts, len(order))
    rows = zip(bin_of_row[order][starts].tolist(), sizes.tolist(), strict=True)
    sizes_by_bin = {key: [size for _, size in group] for key, group in groupby(rows, itemgetter(0))}
    for each in brier.calibration_bins(brier.sums_of(sample)):
        cluster_sizes = sizes_by_bin[each.owner * last + brier.DECILES.index(each.lower)]
        low, high = brier.wilson(each.happened, each.n, sum(size * size for size in cluster_sizes))
        yield each._replace(wilson_low=low, wilson_high=high), len(cluster_sizes)


def option_bins(facts: Facts, contests: Sequence[Contest], chunk: int) -> Iterator[tuple[int, brier.Bin]]:
    """Yield the calibration bins of each participant's multiple-choice forecasts, for contests of one rule set.

    By index of the contest, participant code and bin. One forecast counts for a question, as in Brier aggregates: the
    one that stood at the spot or, if the rule set does not sample at a spot, when scored time ended. Each outcome that
    it gives a probability to is a row of the sample. If an outcome was added later and happened, what happened is the
    catch-all, in which its probability was.
    """
    codes = max(len(facts.participant_codes.codes), 1)
    parts = [
        _events(contest * codes + participant, made) for contest, participant, made in _sampled(facts, contests, chunk)
    ]
    nothing = np.zeros(0, np.int64)
    owner, probability, happened = map(np.concatenate, zip(*parts, (nothing, nothing, np.zeros(0, bool)), strict=True))
    keys, owner_index = distinct(owner)
    sample = brier.Sample(owner_index, probability, np.full(len(owner_index), -1), happened)
    for row in brier.calibration_bins(brier.sums_of(sample)):
        contest, participant = divmod(int(keys[row.owner]), codes)
        yield contest, row._replace(owner=participant)


def _sampled(facts: Facts, contests: Sequence[Contest], chunk: int) -> Iterator[tuple[Int64Array, Int64Array, Numbers]]:
    sampled = at_one_instant(
        facts,
        contests,
        lambda question: question.kind == "multiple_choice",
        kernel="brier",  # it only selects them
        cdf_kernel="none",
        quantile_kernel="none",
        score_consensus=False,
    )
    questions = scored_questions(facts, *sampled)
    for _, part, forecasts, standing in standing_in_chunks(facts, sampled, questions, chunk):
        made = numbers(part, forecasts.chances, forecasts.start[standing.row], standing.question)
        yield part.contest[standing.question], standing.participant, made


def _events(owner: Int64Array, made: Numbers) -> tuple[Int64Array, Int64Array, BoolArray]:
    """Return owner, probability, 1e-9, and whether it happened, for each outcome of each forecast."""
    probability, _, outcome = made.columns()
    return np.repeat(owner, made.width), probability, outcome == np.repeat(made.outcome, made.width)


PARTS = 100  # thresholds are 1 / PARTS, 2 / PARTS … below 1


class Thresholds(NamedTuple):
    """One owner's n forecasts. false_alarms, misses: at each threshold, the numbers that `murphy_curves` counts."""

    owner: int
    n: int
    false_alarms: list[int]
    misses: list[int]


def murphy_curves(sample: Sample) -> Iterator[Thresholds]:
    """Yield the false alarms and the misses of each owner at each threshold t, by owner.

    A decision maker acts if the forecast p is above t, and is right to act if the event happens. There is a false alarm
    if p > t and it does not happen, and a miss if p <= t and it happens. The elementary score is t for a false alarm,
    1 - t for a miss and 0 otherwise; its mean is (t x false alarms + (1 - t) x misses) / n. The integral of this mean
    over t from 0 to 1 is half the Brier score, and every proper score is such an integral with some weight of
    thresholds.

    Source: Ehm, Gneiting, Jordan and Krueger (2016), doi:10.1111/rssb.12154.

    >>> columns = [np.zeros(2, int), np.array([200_000_000, 900_000_000]), np.full(2, -1), np.array([True, False])]
    >>> [curves] = murphy_curves(Sample(*columns))
    >>> [(curves.false_alarms[percent - 1], curves.misses[percent - 1]) for percent in (19, 20, 89, 90)]
    [(1, 0), (1, 1), (1, 1), (0, 1)]
    """
    order = np.lexsort((sample.probability, sample.owner))
    owner, probability, happened = sample.owner[order], sample.probability[order], sample.happened[order]
    edges = np.arange(1, PARTS) * (PROBABILITY // PARTS)
    for first, end in pairwise([*run_starts(owner).tolist(), len(owner)]):
        mine, yes = probability[first:end], happened[first:end]
        misses = np.searchsorted(mine[yes], edges, "right")
        false_alarms = int((~yes).sum()) - np.searchsorted(mine[~yes], edges, "right")
        yield Thresholds(int(owner[first]), end - first, false_alarms.tolist(), misses.tolist())
