"""Calibration over the open time of questions: every forecast counts, by how long it stood.

Source: Metaculus's published code (github.com/Metaculus/metaculus), users/services/profile_stats.py: the bins and
weights of its calibration curve. The band is our own: there, updates of one forecast count as independent.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from msgspec import structs

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.core.arrays import Int64Array, int64_array, run_starts
from forecast_ledger.projections.core.columns import POINTS
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.score_terms import standing_in_chunks
from forecast_ledger.projections.scores.scored_questions import scored_questions
from forecast_ledger.projections.studies.consistency import redrawn
from forecast_ledger.projections.studies.resampling import ends

_THIRDS, _TWENTIETHS = [Fraction(index, 24) for index in range(3)], [Fraction(5 + 2 * index, 40) for index in range(16)]
EDGES = (*_THIRDS, *_TWENTIETHS, *(1 - each for each in reversed(_THIRDS)))  # of 21 bins, as Metaculus draws them
SHARE = 1 << 40  # parts of a bin's weight in the draws of its band


class Stood(NamedTuple):
    """One participant's n > 0 forecasts on a question in a bin.

    question: code. stood: how long they stood, µs. forecast: Σ time x probability, µs x 1e-9. happened: the answer was
    yes. length: open time of the question, µs.
    """

    question: int
    n: int
    stood: int
    forecast: int
    happened: bool
    length: int


class TimedBin(NamedTuple):
    """One participant's forecasts in a bin, its lower end included, its upper end excluded unless it is 1.

    contest: index. participant: code. bin: index. weight, forecast, happened: sums over the forecasts of the share of
    its question's open time that each stood, of this share x probability in 1e-9, and of the shares of those that came
    true; numerators of one denominator `over`. questions: at least one, by code.
    """

    contest: int
    participant: int
    bin: int
    weight: int
    forecast: int
    happened: int
    over: int
    questions: list[Stood]


def timed_bins(facts: Facts, contests: Sequence[Contest], chunk: int) -> Iterator[TimedBin]:
    """Yield the bins of each participant's forecasts on binary questions, for contests of one rule set.

    A forecast has the weight (end - start) / (close - open): it stood on [start, end) of the time from the opening to
    when scored time ends. A question whose open time is empty has no forecast.
    """
    binary = [_over_time(facts, contest) for contest in contests]
    questions = scored_questions(facts, *binary)
    codes, edges = max(len(facts.participant_codes.codes), 1), np.array(edges_in_nanos()[1:-1], np.int64)
    parts: list[tuple[Int64Array, ...]] = []
    for _, part, forecasts, standing in standing_in_chunks(facts, binary, questions, chunk):
        chance = forecasts.chances[forecasts.start[standing.row]]
        owner = part.contest[standing.question] * codes + standing.participant
        owner_bin = owner * (len(EDGES) - 1) + np.searchsorted(edges, chance, "right")
        length = (part.until - part.opens)[standing.question]
        happened = (part.outcome[standing.question] == 0).astype(np.int64)
        parts.append((owner_bin, part.code[standing.question], standing.end - standing.start, chance, happened, length))
    for key, every in groupby(_by_question(parts), itemgetter(0)):
        stood = [each for _, each in every]
        pair, number = divmod(key, len(EDGES) - 1)
        contest, participant = divmod(pair, codes)
        weight, forecast, came_true, over = _sums(stood)
        yield TimedBin(contest, participant, number, weight, forecast, came_true, over, stood)


def edges_in_nanos() -> list[int]:
    """Return the edges in 1e-9, rounded up: a probability is at or above an edge if it is at or above this.

    >>> edges_in_nanos()[:4], edges_in_nanos()[-4:]
    ([0, 41666667, 83333334, 125000000], [875000000, 916666667, 958333334, 1000000000])
    """
    return [-(-edge.numerator * PROBABILITY // edge.denominator) for edge in EDGES]


def timed_bands(
    bins: Sequence[TimedBin], cluster: Int64Array, seed: bytes, replicates: int, level_ppm: int
) -> list[tuple[int, int]]:
    """Return the band of the observed frequency in each of one participant's bins, 1e-9, if forecasts are calibrated.

    In each replicate, a question comes true with the mean probability that it was given in the bin, weighted by time
    and rounded to 1e-9, and all forecasts on it with it. Weights are shares of the bin's weight, rounded to 2^-40. The
    ends are order statistics of the replicates, as in `intervals`.

    cluster: of each question of the bins, from 0 on; the questions of one come true by one random number, in all bins.
    """
    every = [(each, timed_bin) for timed_bin in bins for each in timed_bin.questions]
    probability = int64_array([half_even(each.forecast, each.stood) for each, _ in every])
    shares = [half_even(each.stood * inside.over * SHARE, each.length * inside.weight) for each, inside in every]
    starts = np.cumsum([0, *(len(timed_bin.questions) for timed_bin in bins[:-1])])
    weight = int64_array(shares)
    drawn = [
        np.add.reduceat(came_true * weight, starts, axis=1)
        for came_true in redrawn(seed, replicates, probability, cluster)
    ]
    whole = np.add.reduceat(weight, starts).tolist()
    limits = zip(ends(np.concatenate(drawn).T, level_ppm), whole, strict=True)
    return [(half_even(low * POINTS, over), half_even(high * POINTS, over)) for (low, high), over in limits]


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


def _by_question(parts: list[tuple[Int64Array, ...]]) -> Iterator[tuple[int, Stood]]:
    """Yield participant and bin as one number, and the forecasts on each question there."""
    if not parts:
        return
    columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    owner_bin, question, stood, chance, happened, length = columns
    order = np.lexsort((question, owner_bin))
    owner_bin, question, happened, length = (column[order] for column in (owner_bin, question, happened, length))
    times, chances = stood[order].tolist(), chance[order].tolist()
    starts = np.union1d(run_starts(owner_bin), run_starts(question))
    rows = zip(*(column[starts].tolist() for column in (owner_bin, question, happened, length)), strict=True)
    for (begin, end), (key, code, yes, over) in zip(pairwise([*starts.tolist(), len(owner_bin)]), rows, strict=True):
        durations = times[begin:end]
        forecast = sum(micros * probability for micros, probability in zip(durations, chances[begin:end], strict=True))
        yield key, Stood(code, end - begin, sum(durations), forecast, bool(yes), over)


def _sums(every: Sequence[Stood]) -> tuple[int, int, int, int]:
    """Return the sums of weight, weight x probability and weight of what happened, and their divisor."""
    terms: dict[int, list[int]] = {}
    for each in sorted(every, key=lambda each: each.length):
        sums = terms.setdefault(each.length, [0, 0, 0])
        sums[0] += each.stood
        sums[1] += each.forecast
        sums[2] += each.stood * each.happened
    weight, forecast, happened, over = _added([(*sums, length) for length, sums in terms.items()])
    return weight, forecast, happened, over


def _added(terms: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the sum of terms, each with several numerators and their divisor last, over the product of divisors."""
    if len(terms) == 1:
        return terms[0]
    *first, over = _added(terms[: len(terms) // 2])
    *second, other = _added(terms[len(terms) // 2 :])
    return *(one * other + two * over for one, two in zip(first, second, strict=True)), over * other
