"""Calibration: how often what was forecast happened, recalibrated without bins, by option, and at thresholds of action.

Forecasts are recalibrated by isotonic regression, which splits the Brier score exactly.

Source: Dimitriadis, Gneiting and Jordan (2021), doi:10.1073/pnas.2016191118: the CORP approach.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from msgspec import structs

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.boards import brier
from forecast_ledger.projections.boards.brier import Sample, at_one_instant
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, distinct, run_starts
from forecast_ledger.projections.core.columns import POINTS
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.range_kernels import Numbers
from forecast_ledger.projections.scores.score_terms import standing_in_chunks
from forecast_ledger.projections.scores.scored_questions import scored_questions
from forecast_ledger.projections.scores.terms import numbers
from forecast_ledger.projections.studies.resampling import chances, ends


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


MOST_DRAWS = (
    40_000_000  # forecasts x replicates of a contest with more replicates than the fewest: about twenty seconds
)
FEWEST_REPLICATES = 199  # ends at 95% are the 5th and the 195th of them
MOST_FORECASTS = 2_000_000  # of a contest in a table: some minutes, and as many rows
_AT_ONCE = 1 << 20  # draws held at once


class Place(NamedTuple):
    """n forecasts of one owner with the same probability, 1e-9.

    recalibrated: by isotonic regression, 1e-9. low, high: ends of the band, 1e-9.
    """

    probability: int
    n: int
    recalibrated: int
    low: int
    high: int


def affordable(forecasts: int, replicates: int) -> int:
    """Return the replicates for the bands of a contest: fewer than its rules say if there are very many forecasts.

    They are the most for which there are at most `MOST_DRAWS` draws, but at least `FEWEST_REPLICATES`; never more than
    the rules say. forecasts: of all participants together.

    >>> affordable(20_000, 1_999), affordable(50_000, 1_999), affordable(200_000, 1_999), affordable(200_000, 99)
    (1999, 800, 200, 99)
    """
    return min(replicates, max(MOST_DRAWS // max(forecasts, 1), FEWEST_REPLICATES))


def consistency_band(
    probability: Int64Array, happened: BoolArray, seed: bytes, replicates: int, level_ppm: int
) -> list[Place]:
    """Return the recalibrated probability at each forecast of one owner, and the band it would be in if calibrated.

    In each replicate, every forecast p comes true with probability p, independently, and the forecasts are recalibrated
    again. The ends are order statistics of the replicates, as in `intervals`. If forecasts are calibrated, a place is
    outside its band in a share of 1 - level of all cases.

    probability: 1e-9, ascending. Draws are given to forecasts in this order.

    Source: Dimitriadis, Gneiting and Jordan (2021), doi:10.1073/pnas.2016191118: consistency bands by resampling.

    >>> made, came_true = np.array([100_000_000, 900_000_000]), np.array([True, False])
    >>> [(each.recalibrated, each.low, each.high) for each in consistency_band(made, came_true, b"s", 1_999, 950_000)]
    [(500000000, 0, 1000000000), (500000000, 0, 1000000000)]
    """
    starts = run_starts(probability)
    counts = np.diff(starts, append=len(probability)).tolist()
    pages: list[list[int]] = []
    known: dict[tuple[int, ...], list[int]] = {}  # few forecasts often come true in the same way
    step = max(_AT_ONCE // max(len(probability), 1), 1)
    for first in range(0, replicates, step):
        drawn = chances(seed, range(first, min(first + step, replicates)), probability)
        came_true = np.add.reduceat(drawn.astype(np.int64), starts, axis=1)
        for row in map(tuple, came_true.tolist()):
            if row not in known:
                known[row] = _isotonic(counts, row)
            pages.append(known[row])
    values = np.array(pages, np.int64).T
    band = ends(values, level_ppm)
    found = _isotonic(counts, np.add.reduceat(happened.astype(np.int64), starts).tolist())
    rows = zip(probability[starts].tolist(), counts, found, band, strict=True)
    return [Place(place, n, share, *limits) for place, n, share, limits in rows]


def _isotonic(counts: Sequence[int], happened: Sequence[int]) -> list[int]:
    """Return the isotonic regression of happened / counts at each place, 1e-9, by pooling adjacent violators.

    >>> _isotonic([1, 1, 2], [1, 0, 2])
    [500000000, 500000000, 1000000000]
    """
    blocks: list[tuple[int, int, int]] = []  # forecasts, how many came true, places
    for count, yes in zip(counts, happened, strict=True):
        n, came_true, places = count, yes, 1
        while blocks and blocks[-1][1] * n >= came_true * blocks[-1][0]:
            before = blocks.pop()
            n, came_true, places = n + before[0], came_true + before[1], places + before[2]
        blocks.append((n, came_true, places))
    return [share for n, yes, places in blocks for share in [half_even(yes * POINTS, n)] * places]


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
    keys, place = distinct(owner)
    sample = brier.Sample(place, probability, np.full(len(place), -1), happened)
    for row in brier.calibration_bins(brier.bin_sums(brier.sums_of(sample))):
        contest, participant = divmod(int(keys[row.owner]), codes)
        yield contest, row._replace(owner=participant)


def _sampled(facts: Facts, contests: Sequence[Contest], chunk: int) -> Iterator[tuple[Int64Array, Int64Array, Numbers]]:
    sampled = [_multiple_choice(facts, contest) for contest in contests]
    questions = scored_questions(facts, *sampled)
    for _, own, forecasts, standing in standing_in_chunks(facts, sampled, questions, chunk):
        made = numbers(own, forecasts.chances, forecasts.start[standing.row], standing.question)
        yield own.contest[standing.question], standing.participant, made


def _multiple_choice(facts: Facts, contest: Contest) -> Contest:
    """Return the contest with its multiple-choice questions that count; the kernel only selects them."""
    sampled = at_one_instant(facts, contest, lambda question: question.kind == "multiple_choice")
    rules = structs.replace(
        sampled.opened.rules, kernel="brier", cdf_kernel="none", quantile_kernel="none", score_consensus=False
    )
    return replace(sampled, opened=structs.replace(sampled.opened, rules=rules))


def _events(owner: Int64Array, made: Numbers) -> tuple[Int64Array, Int64Array, BoolArray]:
    """Return owner, probability, 1e-9, and whether it happened, for each outcome of each forecast."""
    probability, _, place = made.columns()
    return np.repeat(owner, made.width), probability, place == np.repeat(made.outcome, made.width)


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
    >>> [own] = murphy_curves(Sample(*columns))
    >>> [(own.false_alarms[percent - 1], own.misses[percent - 1]) for percent in (19, 20, 89, 90)]
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


# --- Calibration over the open time of questions: every forecast counts, by how long it stood.


_THIRDS, _TWENTIETHS = [Fraction(place, 24) for place in range(3)], [Fraction(5 + 2 * place, 40) for place in range(16)]
EDGES = (*_THIRDS, *_TWENTIETHS, *(1 - each for each in reversed(_THIRDS)))  # of 21 bins, as Metaculus draws them
_TAIL = Fraction(1, 20)  # the share of the binomial distribution that is left out at each end


class TimedBin(NamedTuple):
    """One participant's n > 0 forecasts in a bin, its lower end included, its upper end excluded unless it is 1.

    contest: index. participant: code. bin: index. weight, forecast, happened: sums over the forecasts of the share of
    its question's open time that each stood, of this share x probability in 1e-9, and of the shares of those that came
    true; numerators of one denominator `over`.
    """

    contest: int
    participant: int
    bin: int
    n: int
    weight: int
    forecast: int
    happened: int
    over: int


def timed_bins(facts: Facts, contests: Sequence[Contest], chunk: int) -> Iterator[TimedBin]:
    """Yield the bins of each participant's forecasts on binary questions, for contests of one rule set.

    A forecast has the weight (end - start) / (close - open): it stood on [start, end) of the time from the opening to
    when scored time ends. A question whose open time is empty has no forecast.

    Source: Metaculus's published code (github.com/Metaculus/metaculus), users/services/profile_stats.py: the
    calibration curve.
    """
    binary = [_over_time(facts, contest) for contest in contests]
    questions = scored_questions(facts, *binary)
    codes, edges = max(len(facts.participant_codes.codes), 1), np.array(edges_in_nanos()[1:-1], np.int64)
    parts: list[tuple[Int64Array, ...]] = []
    for _, own, forecasts, standing in standing_in_chunks(facts, binary, questions, chunk):
        chance = forecasts.chances[forecasts.start[standing.row]]
        owner = own.contest[standing.question] * codes + standing.participant
        place = owner * (len(EDGES) - 1) + np.searchsorted(edges, chance, "right")
        length = (own.until - own.opens)[standing.question]
        stood = standing.end - standing.start
        parts.append((place, length, stood, chance, (own.outcome[standing.question] == 0).astype(np.int64)))
    for key, *sums in _sums(parts):
        pair, number = divmod(key, len(EDGES) - 1)
        yield TimedBin(*divmod(pair, codes), number, *sums)


def edges_in_nanos() -> list[int]:
    """Return the edges in 1e-9, rounded up: a probability is at or above an edge if it is at or above this.

    >>> edges_in_nanos()[:4], edges_in_nanos()[-4:]
    ([0, 41666667, 83333334, 125000000], [875000000, 916666667, 958333334, 1000000000])
    """
    return [-(-edge.numerator * PROBABILITY // edge.denominator) for edge in EDGES]


@lru_cache(maxsize=65_536)
def binomial_place(n: int, chance: Fraction, share: Fraction) -> int:
    """Return the least k for which k or fewer of n events happen with at least this probability; exact.

    chance: of each of the events, which are independent. Takes O(n) products of numbers of O(n) digits.

    >>> [binomial_place(10, Fraction(1, 2), share) for share in (Fraction(1, 20), Fraction(1, 2), Fraction(19, 20))]
    [2, 5, 8]
    """
    yes, whole = chance.as_integer_ratio()
    no = whole - yes
    if not no:
        return n
    term = upto = no**n  # of whole ** n
    least, k = whole**n * share.numerator, 0
    while upto * share.denominator < least:
        term = term * (n - k) * yes // ((k + 1) * no)
        k += 1
        upto += term
    return k


def agreeing_counts(number: int, n: int) -> tuple[int, int, int]:
    """Return the least, the middle and the greatest number of n events that agree with a bin's probabilities.

    They are places of the binomial distribution: 5% with the bin's lower end, 50% with its middle, 95% with its upper
    end.

    >>> agreeing_counts(10, 20)
    (6, 10, 14)
    """
    low, high = EDGES[number], EDGES[number + 1]
    places = (low, _TAIL), (Fraction(low + high, 2), Fraction(1, 2)), (high, 1 - _TAIL)
    least, middle, greatest = (binomial_place(n, *place) for place in places)
    return least, middle, greatest


def _over_time(facts: Facts, contest: Contest) -> Contest:
    """Return the contest with its binary questions that count, over their open time; the kernel only selects them."""
    rules = structs.replace(
        contest.opened.rules,
        kernel="brier",
        cdf_kernel="none",
        quantile_kernel="none",
        reference="none",
        sampling="time",
        scale="plain",
        reference_rows=(),
        payouts="unscored",
        score_consensus=False,
        least_probability_ppm=0,
    )
    entries = {
        code: entry
        for code, entry in contest.entries.items()
        if facts.questions[code].kind == "binary" and entry.weight
    }
    return replace(contest, opened=structs.replace(contest.opened, rules=rules), entries=entries)


def _sums(parts: list[tuple[Int64Array, ...]]) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Yield key, number of rows, the sums of weight, weight x probability and weight of what happened, and divisor."""
    if not parts:
        return
    key, length, stood, chance, happened = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((length, key))
    key, length = key[order], length[order]
    rows = [column[order].tolist() for column in (stood, chance, happened)]
    for begin, end in pairwise([*run_starts(key).tolist(), len(key)]):
        terms: dict[int, list[int]] = {}
        for over, micros, probability, yes in zip(
            length[begin:end].tolist(), *(column[begin:end] for column in rows), strict=True
        ):
            own = terms.setdefault(over, [0, 0, 0])
            own[0] += micros
            own[1] += micros * probability
            own[2] += micros * yes
        *sums, over = _added([(*own, over) for over, own in terms.items()])
        yield int(key[begin]), end - begin, sums[0], sums[1], sums[2], over


def _added(terms: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the sum of terms, each with several numerators and their divisor last, over the product of divisors."""
    if len(terms) == 1:
        return terms[0]
    *first, over = _added(terms[: len(terms) // 2])
    *second, other = _added(terms[len(terms) // 2 :])
    return *(one * other + two * over for one, two in zip(first, second, strict=True)), over * other
