"""Calibration over the open time of questions: every forecast counts, by how long it stood."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from msgspec import structs

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.sorting import run_starts
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.score_terms import standing_in_chunks
from forecast_ledger.projections.scores.scored_questions import scored_questions

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
