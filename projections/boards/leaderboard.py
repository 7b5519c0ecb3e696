"""From scores to totals to takes to ranks. Totals and takes are tables of functions; to add one, add a row."""

from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import NamedTuple

from forecast_ledger.ledger.core.exact import ZERO, Magnitude, power
from forecast_ledger.ledger.core.lazy_fractions import ratio, rounded
from forecast_ledger.ledger.core.values import format_fixed
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards.totals import Sums, Tally, sums
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.score_policies import lower_is_better

_DIGITS = 30  # of a take that are significant
_LARGE = _DIGITS - 9  # power of ten from which a take's ninth decimal is no longer significant
CONSENSUS, NOT_BEST = "consensus", "not_best"  # why a row has no rank, beside the levels of exclusion


class Place(NamedTuple):
    """One row of a contest's board; exact.

    rank: None for who is left out of the ranking. take: None where the contest has none. excluded: a level, "consensus"
    or "not_best"; empty for who takes part. forecast_on: how many of the `questions` that count. submissions: of whose
    submission it is.
    """

    rank: int | None
    participant: str
    score: Fraction
    coverage: Fraction
    attainable: Fraction
    take: Magnitude | None
    excluded: str
    forecast_on: int
    questions: int
    submissions: int


def _sum(_: RuleSet, own: Sums) -> Fraction:
    return own.score


def _mean(_: RuleSet, own: Sums) -> Fraction:
    return ratio(own.score, own.weight)


def _per_coverage(rules: RuleSet, own: Sums) -> Fraction:
    """Source: the average peer score by which forecasters are ranked across contests since January 2024."""
    return ratio(own.score, max(Fraction(rules.least_coverage), own.covered))


def _kind_means(_: RuleSet, own: Sums) -> Fraction:
    """Source: seed 003_ec2881b80447d7f2, "Evaluation": T/F + MCQ + Numerical, each a mean, in percent."""
    return sum((kind.mean for kind in own.kinds), Fraction(0))


def _kind_means_third(rules: RuleSet, own: Sums) -> Fraction:
    """Of three kinds, whatever kinds the contest has. Source: the evaluation notebook of that competition."""
    return ratio(_kind_means(rules, own), Fraction(3))


TOTALS: dict[str, Callable[[RuleSet, Sums], Fraction]] = {
    "sum": _sum,
    "mean": _mean,
    "per_coverage": _per_coverage,
    "kind_means": _kind_means,
    "kind_means_third": _kind_means_third,
}


def coverage_exp(score: Fraction, coverage: Fraction) -> Magnitude:
    """Coverage x e^score, the power rounded once to 30 significant digits.

    Source: seed 000_b8319c7b2812d652, "Tournament Scoring"; seed 001_b2c35092a74bcfce, "How are my (legacy) tournament
    Score, Coverage, Take, Prize and Rank calculated?".

    >>> published(coverage_exp(Fraction(0), Fraction(1, 2)))
    '0.500000000'
    """
    return power(coverage, "e", score)


def coverage_exp2(score: Fraction, coverage: Fraction) -> Magnitude:
    """Coverage x 2^score, likewise.

    >>> published(coverage_exp2(Fraction(3), Fraction(1, 2)))
    '4.000000000'
    """
    return power(coverage, "2", score)


def positive_square(score: Fraction, _: Fraction) -> Magnitude:
    """max(score, 0)², exact.

    Source: seed 001_b2c35092a74bcfce, "How are my tournament Score, Take, Prize and Rank calculated?".

    >>> published(positive_square(Fraction(-3), Fraction(1))), published(positive_square(Fraction(3, 2), Fraction(1)))
    ('0.000000000', '2.250000000')
    """
    return power(max(score, Fraction(0)) ** 2, "e", Fraction(0))


TAKES: dict[str, Callable[[Fraction, Fraction], Magnitude]] = {
    "coverage_exp": coverage_exp,
    "coverage_exp2": coverage_exp2,
    "positive_square": positive_square,
}


def published(take: Magnitude) -> str:
    """A take to nine decimals, rounded half-even once; from 1e21 on to 30 significant digits and a power of ten.

    >>> published(Magnitude(True, -1, Fraction(6627256073055, 10**12))), published(Magnitude(True, 41, Fraction(21, 5)))
    ('0.662725607', '4.2E+41')
    """
    if take.exponent < -_DIGITS:
        return published(ZERO)
    if take.exponent < _LARGE:
        value = take.mantissa * Fraction(10) ** (take.exponent + 9)
        return format_fixed(rounded(value, 1), 10**9, least=9)
    tens = 10 ** (_DIGITS - 1)
    digits = format_fixed(rounded(take.mantissa, tens), tens)
    return f"{digits}E+{take.exponent}" if digits != "10" else f"1E+{take.exponent + 1}"


def board(found: Facts, contest: Contest, whole: Tally) -> list[Place]:
    """A contest's board, best first, from the tally of its scores: everyone who has one, except who is hidden.

    rank: 1, 2, 2, 4 by take or total, exact ties together and in order of id; who is excluded as no_rank, the
    consensus, and an entrant's lesser submissions are shown without one and use none up.
    """
    rules = contest.opened.rules
    take = TAKES.get(rules.take)
    everyone, most = list(sums(found, contest, whole)), whole.attainable
    entrants = _entrants(contest, (own.participant for own in everyone if not own.is_consensus))
    counts = Counter(entrants.values())
    places = []
    for own in everyone:
        if contest.levels.get(own.participant) == "hidden" and not own.is_consensus:
            continue
        total = TOTALS[rules.total](rules, own)
        places.append(
            Place(
                rank=None,
                participant=own.participant,
                score=total,
                coverage=own.coverage,
                attainable=most,
                take=take(total, own.coverage) if take else None,
                excluded=CONSENSUS if own.is_consensus else contest.levels.get(own.participant, ""),
                forecast_on=own.questions,
                questions=whole.every.questions,
                submissions=1 if own.is_consensus else counts[entrants[own.participant]],
            )
        )
    places.sort(key=lambda place: place.participant)
    if rules.rank_by == "take":
        places.sort(key=lambda place: place.take or ZERO, reverse=True)  # stable: equal ones stay in order of id
    else:
        places.sort(key=lambda place: place.score, reverse=not lower_is_better(rules))
    return _ranked(_best_only(places, entrants) if rules.best_of_entrant else places, rules)


def _entrants(contest: Contest, scored: Iterable[str]) -> dict[str, str]:
    """Whose submission everyone is who was enrolled or has a score: its own, unless it was enrolled as another's."""
    enrolled = {who: each.entrant or who for who, each in contest.enrolments.items()}
    return {who: who for who in scored} | enrolled


def _best_only(places: list[Place], entrants: dict[str, str]) -> list[Place]:
    """All but an entrant's first submission on the board, of those that could be ranked, marked."""
    seen: set[str] = set()
    marked = []
    for place in places:
        entrant = entrants.get(place.participant, place.participant)
        if place.excluded in {"no_rank", CONSENSUS}:
            marked.append(place)
            continue
        marked.append(place._replace(excluded=NOT_BEST) if entrant in seen else place)
        seen.add(entrant)
    return marked


def _ranked(places: list[Place], rules: RuleSet) -> list[Place]:
    ranked, rank, counted = [], 0, 0
    before: Magnitude | Fraction | None = None
    for place in places:
        if place.excluded in {"no_rank", CONSENSUS, NOT_BEST}:
            ranked.append(place)
            continue
        counted += 1
        worth = place.take if rules.rank_by == "take" else place.score
        if worth != before:
            rank, before = counted, worth
        ranked.append(place._replace(rank=rank))
    return ranked
