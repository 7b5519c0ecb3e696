"""From scores to takes to ranks."""

from collections.abc import Callable
from fractions import Fraction
from math import lcm
from typing import NamedTuple

import numpy as np

from ledger.events import Level
from ledger.exact import QUANTUM, ZERO, Magnitude, half_even, power
from ledger.values import WEIGHT, format_fixed
from projections.columns import Contest, Facts
from projections.limbs import Int64Array, Limbs
from projections.scores import Questions, Scores
from projections.scoring import KERNELS

_DIGITS = 30  # of a take that are significant
_LARGE = _DIGITS - 9  # power of ten from which a take's ninth decimal is no longer significant


class Place(NamedTuple):
    """One participant on a contest's board; exact.

    rank: None for who is left out of the ranking. forecast_on: how many of the `questions` that count.
    """

    rank: int | None
    participant: str
    score: Fraction
    coverage: Fraction
    take: Magnitude
    level: Level | None
    forecast_on: int
    questions: int


def coverage_power(score: Fraction, coverage: Fraction, base: str) -> Magnitude:
    """Take: coverage x base^score, the power rounded once to 30 significant digits.

    Source: seed 000_b8319c7b2812d652, "Tournament Scoring".

    >>> published(coverage_power(Fraction(3), Fraction(1, 2), "2"))
    '4.000000000'
    """
    return power(coverage, base, score)


TAKES: dict[str, Callable[[Fraction, Fraction, str], Magnitude]] = {"coverage_power": coverage_power}


def published(take: Magnitude) -> str:
    """A take to nine decimals, rounded half-even once; from 1e21 on to 30 significant digits and a power of ten.

    >>> published(Magnitude(True, -1, Fraction(6627256073055, 10**12))), published(Magnitude(True, 41, Fraction(21, 5)))
    ('0.662725607', '4.2E+41')
    """
    if take.exponent < -_DIGITS:
        return published(ZERO)
    if take.exponent < _LARGE:
        value = take.mantissa * Fraction(10) ** (take.exponent + 9)
        return format_fixed(half_even(value.numerator, value.denominator), 10**9, least=9)
    tens = 10 ** (_DIGITS - 1)
    digits = format_fixed(half_even(take.mantissa.numerator * tens, take.mantissa.denominator), tens)
    return f"{digits}E+{take.exponent}" if digits != "10" else f"1E+{take.exponent + 1}"


def coverages(questions: Questions, rows: Scores) -> list[Fraction]:
    """Each score's exact coverage: the covered share of the period, or, under a hidden weight w, w x the covered share
    of the hidden period + (1 - w) x that of the rest.

    Source: seed 001_b2c35092a74bcfce, "What are the Hidden Period and Hidden Coverage Weights?".
    """
    alike, which = _alike(questions)
    columns = (which[rows.question].tolist(), rows.covered.tolist(), rows.covered_hidden.tolist())
    return [
        Fraction(alike[i].coverage(covered, hidden, alike[i].common), alike[i].common * WEIGHT)
        for i, covered, hidden in zip(*columns, strict=True)
    ]


def board(found: Facts, contest: Contest, questions: Questions, rows: Scores) -> list[Place]:
    """A contest's board, best first: everyone who forecast on a question that counts, except who is hidden.

    score: Σ weight x score. coverage: Σ weight x coverage / Σ weight over all questions that count; under a
    hidden weight w, a question's coverage is w x the covered share of its hidden period + (1 - w) x that of the rest.
    rank: 1, 2, 2, 4 by take, exact ties together; who is excluded as no_rank is shown without one and uses none up.
    """
    levels = _levels(found, contest)
    labels = found.participant_codes.labels
    base = KERNELS[contest.opened.rules.kernel].base
    take = TAKES[contest.opened.rules.take]
    codes, score, coverage = _sums(questions, rows)
    count = np.bincount(rows.participant, minlength=1) if len(codes) else codes
    places = [
        Place(
            None, labels[code], score[i], coverage[i], take(score[i], coverage[i], base), levels.get(labels[code]),
            int(count[code]), len(questions.code),
        )
        for i, code in enumerate(codes.tolist())
        if levels.get(labels[code]) != "hidden"
    ]  # fmt: skip
    places.sort(key=lambda place: place.participant)
    places.sort(key=lambda place: place.take, reverse=True)  # stable: equal takes stay in order of id
    return _ranked(places)


def _ranked(places: list[Place]) -> list[Place]:
    ranked, rank, before = [], 0, None
    counted = 0
    for place in places:
        if place.level == "no_rank":
            ranked.append(place)
            continue
        counted += 1
        if place.take != before:
            rank, before = counted, place.take
        ranked.append(place._replace(rank=rank))
    return ranked


def _levels(found: Facts, contest: Contest) -> dict[str, Level]:
    as_of = found.as_of if contest.finalized is None else contest.finalized
    return {participant: level for position, participant, level in contest.exclusions if position <= as_of}


class _Alike(NamedTuple):
    """What questions of one kind have in common: µs of the period and of its hidden part; weights in 1e-6."""

    period: int
    hidden: int
    weight: int
    hidden_weight: int

    @property
    def rest(self) -> int:
        """µs of the period after its hidden part; 1 where there is nothing, which nobody covers."""
        return max(self.period - self.hidden, 1)

    @property
    def common(self) -> int:
        """A denominator that every coverage has."""
        return self.period if self.hidden_weight < 0 else lcm(self.hidden, self.rest)

    def coverage(self, covered: int, in_hidden: int, common: int) -> int:
        """Numerator over common x WEIGHT of the coverage, or of the sum of several questions' coverages."""
        if self.hidden_weight < 0:
            return covered * WEIGHT * (common // self.period)
        of_hidden = self.hidden_weight * in_hidden * (common // self.hidden)
        return of_hidden + (WEIGHT - self.hidden_weight) * (covered - in_hidden) * (common // self.rest)


def _alike(questions: Questions) -> tuple[list[_Alike], Int64Array]:
    """The kinds of questions, and which kind each is of; shape (q,)."""
    period, hidden = questions.closes - questions.opens, questions.reveals - questions.opens
    columns = np.stack([period, hidden, questions.weight, questions.hidden_weight], axis=1)
    kinds, which = np.unique(columns, axis=0, return_inverse=True)
    return [_Alike(*kind) for kind in kinds.tolist()], which.reshape(-1)


def _sums(questions: Questions, rows: Scores) -> tuple[Int64Array, list[Fraction], list[Fraction]]:
    """Participants (codes, ascending), their exact scores and coverages.

    Questions of one kind are summed together as integers, and a participant's kinds over a common denominator.
    """
    alike, which = _alike(questions)
    codes, participant = np.unique(rows.participant, return_inverse=True)
    key = which[rows.question] * len(codes) + participant
    order = np.argsort(key, kind="stable")
    key = key[order]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    numerators = rows.numerator.take(order).summed(starts).integers()
    covered = Limbs.of(rows.covered[order]).summed(starts).integers()
    in_hidden = Limbs.of(rows.covered_hidden[order]).summed(starts).integers()
    common, common_coverage = lcm(*(kind.period for kind in alike)), lcm(*(kind.common for kind in alike))
    score, coverage = [0] * len(codes), [0] * len(codes)
    for owner, numerator, all_of_it, hidden in zip(key[starts].tolist(), numerators, covered, in_hidden, strict=True):
        group, i = divmod(owner, len(codes))
        kind = alike[group]
        score[i] += numerator * kind.weight * (common // kind.period)
        coverage[i] += kind.weight * kind.coverage(all_of_it, hidden, common_coverage)
    scale = common * QUANTUM * WEIGHT
    coverage_scale = common_coverage * WEIGHT * max(int(questions.weight.sum()), 1)
    return codes, [Fraction(n, scale) for n in score], [Fraction(n, coverage_scale) for n in coverage]
