"""Leaderboards: totals, takes and ranks. To add a total or a take, add its row in TOTALS or TAKES."""

from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.core.values import format_fixed
from forecast_ledger.ledger.model.rules import KIND_TOTALS, RuleSet
from forecast_ledger.projections.boards.totals import ParticipantSums, Tally, participant_sums
from forecast_ledger.projections.core.late_fractions import comparable, quotient, round_to_units
from forecast_ledger.projections.core.powers import ZERO, Magnitude, power, raised
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.kernels import AUTOCAST
from forecast_ledger.projections.scores.scored_questions import lower_is_better

_DIGITS = 30  # significant digits of a take
_LARGE = _DIGITS - 9  # power of ten from which the ninth decimal of a take is not significant
# Reasons why a row has no rank, besides the levels of exclusion.
CONSENSUS, REFERENCE, NOT_BEST, TOO_FEW = "consensus", "reference", "not_best", "too_few_questions"
_UNRANKED = {"no_rank", CONSENSUS, REFERENCE, TOO_FEW}


class BoardRow(NamedTuple):
    """One row of a contest's board; exact.

    rank: None if the participant is not ranked. take: None if the contest has no take. attainable: the coverage of
    forecasts that stand all the time that is scored. excluded: a level of exclusion, or one of CONSENSUS, REFERENCE,
    NOT_BEST and TOO_FEW; empty if the participant is not excluded. questions: how many questions count; forecast_on:
    how many of them the participant forecast. submissions: how many submissions the entrant has.
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


class Total(NamedTuple):
    """A rule by which the scores of a contest make a total. words: as `explain` prints them.

    What is divided is the sum of weight x score or, for the names in KIND_TOTALS, the sum of the means of each kind of
    question, in percent. divisor: a number, or a sum: "weight", "covered" or "questions" of `ParticipantSums`. floored:
    whether it is at least least_coverage.
    """

    words: str
    source: str
    divisor: int | str = 1
    floored: bool = False


_FAQ = "Metaculus, Scores FAQ"
_METACULUS = "Metaculus's published code"
TOTALS: dict[str, Total] = {
    "sum": Total(
        "the sum of weight x score",
        f'{_FAQ}, "How are my tournament Score, Take, Prize and Rank calculated?"',
    ),
    "mean": Total(
        "the sum of weight x score divided by the sum of the weights of the questions with a forecast",
        "Brier (1950), doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2: the mean over occasions",
        "weight",
    ),
    "per_coverage": Total(
        "the sum of weight x score divided by the larger of least_coverage and the sum of weight x coverage",
        f'{_METACULUS}, the leaderboard "peer_global", since January 2024',
        "covered",
        floored=True,
    ),
    "per_question": Total(
        "the sum of weight x score divided by the larger of least_coverage and the number of questions with a forecast",
        f'{_METACULUS}, the leaderboard "peer_global_legacy", before 2024',
        "questions",
        floored=True,
    ),
    "kind_means": Total(
        "100 x the sum of the weighted mean scores of each kind of question (without a forecast, the worst score)",
        f'{AUTOCAST}, "Evaluation": T/F + MCQ + Numerical, each a mean, in percent',
    ),
    "kind_means_third": Total(
        "100 / 3 x the sum of the weighted mean scores of each kind of question (without a forecast, the worst score)",
        f"{AUTOCAST}, its evaluation notebook",
        3,  # even if the contest lacks a kind
    ),
}


def total(rules: RuleSet, sums: ParticipantSums) -> Fraction:
    """Return the total of a participant's scores in a contest."""
    means = (kind.mean for kind in sums.kinds)
    worth = sum(means, Fraction(0)) if rules.total in KIND_TOTALS else sums.score
    return worth if TOTALS[rules.total].divisor == 1 else quotient(worth, total_divisor(rules, sums))


def total_divisor(rules: RuleSet, sums: ParticipantSums) -> Fraction:
    """Return the divisor of a total; see `Total`."""
    _, _, divisor, floored = TOTALS[rules.total]
    number: Fraction = Fraction(divisor) if isinstance(divisor, int) else getattr(sums, divisor)
    return max(Fraction(rules.least_coverage), number) if floored else number


def coverage_exp(score: Fraction, coverage: Fraction) -> Magnitude:
    """Return coverage x e^score, with the power rounded once to 30 significant digits.

    >>> published_take(coverage_exp(Fraction(0), Fraction(1, 2)))
    '0.500000000'
    """
    return power(coverage, "e", score)


def coverage_exp2(score: Fraction, coverage: Fraction) -> Magnitude:
    """Return coverage x 2^score, with the power rounded once to 30 significant digits.

    >>> published_take(coverage_exp2(Fraction(3), Fraction(1, 2)))
    '4.000000000'
    """
    return power(coverage, "2", score)


def positive_square(score: Fraction, _: Fraction) -> Magnitude:
    """Return max(score, 0)², exact.

    >>> [published_take(positive_square(Fraction(total, 2), Fraction(1))) for total in (-6, 3)]
    ['0.000000000', '2.250000000']
    """
    return power(max(score, Fraction(0)) ** 2, "e", Fraction(0))


Pair = tuple[int, int]  # what a number is not below, and not above


def _power_between(base: str, total: Pair, coverage: Pair, unit: int) -> tuple[Decimal, Decimal]:
    low, wide = raised(base, WIDE.divide(total[0], unit)), WIDE.divide(total[1] - total[0], unit)
    # From 0 to 1, the power of x is at most 1 + 2 x.
    high = WIDE.multiply(low, WIDE.add(1, 2 * wide)) if wide < 1 else raised(base, WIDE.divide(total[1], unit))
    return WIDE.multiply(coverage[0], low), WIDE.multiply(coverage[1], high)


def _square_between(total: Pair, _: Pair, __: int) -> Pair:
    return max(total[0], 0) ** 2, max(total[1], 0) ** 2


class Take(NamedTuple):
    """The number that prizes are proportional to.

    worth: computes it from total and coverage; None without prizes. between: for many boards, computes what a number in
    proportion to it is not below, and not above, within 2^-90 of itself; from bounds of the total, in 1 / unit, and of
    the coverage.
    """

    words: str
    worth: Callable[[Fraction, Fraction], Magnitude] | None
    source: str
    between: Callable[[Pair, Pair, int], Pair | tuple[Decimal, Decimal]] | None = None


_TOURNAMENTS = 'Metaculus, Tournament Scoring, April 6th, 2022, "Tournament Scoring"'
TAKES: dict[str, Take] = {
    "none": Take("no take and no prizes", None, "a contest without prizes"),
    "coverage_exp": Take("coverage x e^total", coverage_exp, _TOURNAMENTS, partial(_power_between, "e")),
    "coverage_exp2": Take(
        "coverage x 2^total",
        coverage_exp2,
        f"{_TOURNAMENTS}, with the base-2 logarithm that was used before",
        partial(_power_between, "2"),
    ),
    "positive_square": Take(
        "max(total, 0)²",
        positive_square,
        f'{_FAQ}, "How are my tournament Score, Take, Prize and Rank calculated?"',
        _square_between,
    ),
}


def published_take(take: Magnitude) -> str:
    """Return a take with nine decimals; from 1e21 on, 30 significant digits and a power of ten. Rounded half-even once.

    >>> published_take(Magnitude(True, -1, Fraction(6627256073055, 10**12)))
    '0.662725607'
    >>> published_take(Magnitude(True, 41, Fraction(21, 5)))
    '4.2E+41'
    """
    if take.exponent < -_DIGITS:
        return published_take(ZERO)
    if take.exponent < _LARGE:
        value = take.mantissa * Fraction(10) ** (take.exponent + 9)
        return format_fixed(round_to_units(value, 1), 10**9, least=9)
    tens = 10 ** (_DIGITS - 1)
    digits = format_fixed(round_to_units(take.mantissa, tens), tens)
    return f"{digits}E+{take.exponent}" if digits != "10" else f"1E+{take.exponent + 1}"


def board(facts: Facts, contest: Contest, whole: Tally) -> list[BoardRow]:
    """Return a contest's board, best first: everyone in the tally, except participants who are excluded as hidden.

    Ranks are 1, 2, 2, 4 by take or total. Exact ties share a rank and are in order of id. Participants who are excluded
    as no_rank, those with fewer forecasts than the rule set asks for, reference forecasters, and all but an entrant's
    best submission are shown without a rank and use none up.
    """
    rules = contest.opened.rules
    take = TAKES[rules.take].worth
    everyone = list(participant_sums(facts, contest, whole))
    most, questions = whole.attainable, whole.every.questions
    entrants = _entrants(contest, (sums.participant for sums in everyone if not sums.reference))
    counts = Counter(entrants.values())
    rows = []
    for sums in everyone:
        excluded = _exclusion(contest, sums, questions)
        if excluded == "hidden":
            continue
        score = total(rules, sums)
        rows.append(
            BoardRow(
                rank=None,
                participant=sums.participant,
                score=score,
                coverage=sums.coverage,
                attainable=most,
                take=take(score, sums.coverage) if take else None,
                excluded=excluded,
                forecast_on=sums.questions,
                questions=questions,
                submissions=1 if sums.reference else counts[entrants[sums.participant]],
            )
        )
    rows.sort(key=lambda row: row.participant)
    by_take, worths = rules.rank_by == "take", list[Any]()
    worths += [row.take or ZERO for row in rows] if by_take else comparable([row.score for row in rows])
    order = sorted(range(len(rows)), key=worths.__getitem__, reverse=by_take or not lower_is_better(rules))
    rows = [rows[number] for number in order]  # stable: ties stay in order of id
    return _ranked(_best_only(rows, entrants) if rules.best_of_entrant else rows, [worths[each] for each in order])


def _exclusion(contest: Contest, sums: ParticipantSums, questions: int) -> str:
    """Return why a participant has no rank or no prize; empty if there is no reason.

    Source: ForecastBench's leaderboard, which leaves out a forecast set with more than 5% imputed forecasts.
    """
    rules, level = contest.opened.rules, contest.level_of(sums.participant)
    if sums.reference:
        return CONSENSUS if sums.reference == "consensus" else REFERENCE
    few = sums.questions < rules.least_questions or sums.questions * 10**6 < rules.least_share_ppm * questions
    return TOO_FEW if few and level in {None, "no_prize"} else level or ""


def _entrants(contest: Contest, scored: Iterable[str]) -> dict[str, str]:
    """Return the entrant of every participant who is enrolled or has a score; by default, the participant itself."""
    enrolled = {who: enrolment.entrant or who for who, enrolment in contest.enrolments.items()}
    return {who: who for who in scored} | enrolled


def _best_only(rows: list[BoardRow], entrants: dict[str, str]) -> list[BoardRow]:
    """Mark as NOT_BEST every submission but the best of each entrant, among those that can be ranked."""
    seen: set[str] = set()
    marked = []
    for row in rows:
        entrant = entrants.get(row.participant, row.participant)
        if row.excluded in _UNRANKED:
            marked.append(row)
            continue
        marked.append(row._replace(excluded=NOT_BEST) if entrant in seen else row)
        seen.add(entrant)
    return marked


def _ranked(rows: list[BoardRow], worths: list[Any]) -> list[BoardRow]:
    """Return rows with their ranks. worths: what they are ranked by, in order."""
    ranked, rank, number, before = [], 0, 0, None
    for row, worth in zip(rows, worths, strict=True):
        if row.excluded in {*_UNRANKED, NOT_BEST}:
            ranked.append(row)
            continue
        number += 1
        if worth != before:
            rank, before = number, worth
        ranked.append(row._replace(rank=rank))
    return ranked
