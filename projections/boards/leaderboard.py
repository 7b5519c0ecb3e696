"""Leaderboards: totals, takes and ranks. To add a total or a take, add its row in TOTALS or TAKES."""

from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.core.values import format_fixed
from forecast_ledger.ledger.model.rules import KIND_TOTALS, LEVELS, REFERENCE_ROWS, RuleSet
from forecast_ledger.projections.boards.estimates import near_power, near_square
from forecast_ledger.projections.boards.totals import ParticipantSums, Tally, codes_of, participant_sums, score_labels
from forecast_ledger.projections.core.arrays import (
    BoolArray,
    Int64Array,
    distinct,
    int64_array,
    run_lengths,
    run_starts,
)
from forecast_ledger.projections.core.estimates import Estimated, Floats
from forecast_ledger.projections.core.late_fractions import quotient, round_to_units
from forecast_ledger.projections.core.number_texts import decimal_characters, lines
from forecast_ledger.projections.core.powers import ZERO, Magnitude, power, raised
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.kernels import AUTOCAST
from forecast_ledger.projections.scores.scored_questions import lower_is_better

_NANOS = 10**9  # units in 1 of the ninth decimal
_DIGITS = 30  # significant digits of a take
_LARGE = _DIGITS - 9  # power of ten from which the ninth decimal of a take is not significant
# Reasons why a row has no rank, besides the levels of exclusion.
CONSENSUS, REFERENCE, NOT_BEST, TOO_FEW = "consensus", "reference", "not_best", "too_few_questions"
EXCLUDED = ("", *LEVELS, CONSENSUS, REFERENCE, NOT_BEST, TOO_FEW)
_EXCLUDED = {reason: number for number, reason in enumerate(EXCLUDED)}
_UNRANKED = [_EXCLUDED[reason] for reason in ("no_rank", CONSENSUS, REFERENCE, TOO_FEW)]
_IS_RANKED = np.array([number not in (*_UNRANKED, _EXCLUDED[NOT_BEST]) for number in _EXCLUDED.values()])


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
    the coverage. near: returns estimates and their guards, as `Estimated` has them.
    """

    words: str
    worth: Callable[[Fraction, Fraction], Magnitude] | None
    source: str
    between: Callable[[Pair, Pair, int], Pair | tuple[Decimal, Decimal]] | None = None
    near: Callable[[Estimated, Estimated], tuple[Floats, Floats]] | None = None

    def of(self, total: Estimated, coverage: Estimated) -> Estimated | None:
        """Return the takes of a board; None without prizes."""
        worth = self.worth
        if worth is None or self.near is None:
            return None
        with np.errstate(all="ignore"):
            values, guards = self.near(total, coverage)

        def exact(rows: Int64Array) -> list[Magnitude]:
            return [worth(*pair) for pair in zip(total.exact(rows), coverage.exact(rows), strict=True)]

        return Estimated(values, guards, exact).remembered().certain()


_TOURNAMENTS = 'Metaculus, Tournament Scoring, April 6th, 2022, "Tournament Scoring"'
TAKES: dict[str, Take] = {
    "none": Take("no take and no prizes", None, "a contest without prizes"),
    "coverage_exp": Take(
        "coverage x e^total",
        coverage_exp,
        _TOURNAMENTS,
        partial(_power_between, "e"),
        partial(near_power, np.exp),
    ),
    "coverage_exp2": Take(
        "coverage x 2^total",
        coverage_exp2,
        f"{_TOURNAMENTS}, with the base-2 logarithm that was used before",
        partial(_power_between, "2"),
        partial(near_power, np.exp2),
    ),
    "positive_square": Take(
        "max(total, 0)²",
        positive_square,
        f'{_FAQ}, "How are my tournament Score, Take, Prize and Rank calculated?"',
        _square_between,
        near_square,
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


def _published_square(total: Fraction) -> str:
    """Return `published_take` of `positive_square`, in a quarter of its time.

    >>> _published_square(Fraction(-1)), _published_square(Fraction(10**11))
    ('0.000000000', '1E+22')
    """
    square = round_to_units(max(total, Fraction(0)) ** 2, _NANOS)
    if square < _NANOS * 10**_LARGE // 10:
        return format_fixed(square, _NANOS, least=9)
    return published_take(positive_square(total, Fraction(1)))


class Standings(NamedTuple):
    """The columns that boards of contests of one rule set are made of, in order of contest and code.

    names, contests: at least one. contest: index of each row's. person: code, as of `totals.score_labels`. total,
    coverage, forecast_on: of each row. questions, attainable: of each contest. See `BoardRow`.
    """

    names: Sequence[str]
    contests: Sequence[Contest]
    contest: Int64Array
    person: Int64Array
    total: Estimated
    coverage: Estimated
    forecast_on: Int64Array
    questions: Int64Array
    attainable: Estimated

    def of(self, names: Sequence[str]) -> "Standings":
        """Return the standings in some of the contests, in the same order."""
        if len(names) == len(self.names):
            return self
        chosen = int64_array([number for number, name in enumerate(self.names) if name in names])
        numbers = np.full(len(self.names), -1)
        numbers[chosen] = np.arange(len(chosen))
        rows = np.flatnonzero(numbers[self.contest] >= 0)
        return Standings(
            names,
            [self.contests[number] for number in chosen.tolist()],
            numbers[self.contest[rows]],
            self.person[rows],
            self.total.rows(rows),
            self.coverage.rows(rows),
            self.forecast_on[rows],
            self.questions[chosen],
            self.attainable.rows(chosen),
        )


def standings_of(
    facts: Facts, names: Sequence[str], contests: Sequence[Contest], tallies: Sequence[Tally]
) -> Standings:
    """Return the standings in contests of one rule set that follow from their tallies."""
    numbers, codes, every = list[int](), list[int](), list[ParticipantSums]()
    for number, (contest, tally) in enumerate(zip(contests, tallies, strict=True)):
        codes += codes_of(facts, tally)
        every += participant_sums(facts, contest, tally)
        numbers += [number] * len(tally.by_code)
    rules = contests[0].opened.rules
    return Standings(
        names,
        contests,
        int64_array(numbers),
        int64_array(codes),
        Estimated.of([total(rules, sums) for sums in every]),
        Estimated.of([sums.coverage for sums in every]),
        int64_array([sums.questions for sums in every]),
        int64_array([tally.every.questions for tally in tallies]),
        Estimated.of([tally.attainable for tally in tallies]),
    )


class Boards(NamedTuple):
    """The boards of contests of one rule set in columns, one contest after the other, best first.

    contest: index into `names`. person: index into `labels`. by_id: its place in the order of ids. rank: 0 without one.
    excluded: index into EXCLUDED. questions, attainable: of each contest. The others are as in `BoardRow`.
    """

    names: Sequence[str]
    contests: Sequence[Contest]
    labels: list[str]
    contest: Int64Array
    person: Int64Array
    by_id: Int64Array
    rank: Int64Array
    total: Estimated
    coverage: Estimated
    attainable: Estimated
    take: Estimated | None
    excluded: Int64Array
    forecast_on: Int64Array
    questions: Int64Array
    submissions: Int64Array

    def span(self, number: int) -> Int64Array:
        """Return the rows of a contest."""
        return np.arange(*np.searchsorted(self.contest, [number, number + 1]).tolist())

    def rows(self, index: Int64Array) -> "Boards":
        """Return the boards with these rows alone; nothing of a row changes."""
        columns = ("contest", "person", "by_id", "rank", "excluded", "forecast_on", "submissions")
        exact = {name: getattr(self, name).rows(index) for name in ("total", "coverage")}
        take = None if self.take is None else self.take.rows(index)
        return self._replace(take=take, **exact, **{name: getattr(self, name)[index] for name in columns})

    def published_takes(self) -> list[str] | list[None]:
        """Return `published_take` of each row's take; None without one."""
        if self.take is None:
            return [None] * len(self.person)
        near, uncertain = self.take.nearest(_NANOS)
        texts: list[str] = lines(decimal_characters(near, places=9, least=9))
        if self.contests[0].opened.rules.take == "positive_square":
            published = map(_published_square, self.total.exact(uncertain))
        else:
            published = map(published_take, self.take.exact(uncertain))
        for row, text in zip(uncertain.tolist(), published, strict=True):
            texts[row] = text
        return texts

    def rows_of(self, number: int) -> list[BoardRow]:
        """Return the rows of a contest, by its index."""
        span = self.span(number)
        columns = (self.rank, self.person, self.excluded, self.forecast_on, self.submissions)
        plain = zip(*(column[span].tolist() for column in columns), strict=True)
        takes = [None] * len(span) if self.take is None else self.take.exact(span)
        exact = zip(self.total.exact(span), self.coverage.exact(span), takes, strict=True)
        [most], questions = self.attainable.exact(int64_array([number])), int(self.questions[number])
        return [
            BoardRow(
                rank=rank or None,
                participant=self.labels[person],
                score=score,
                coverage=coverage,
                attainable=most,
                take=take,
                excluded=EXCLUDED[excluded],
                forecast_on=forecast_on,
                questions=questions,
                submissions=submissions,
            )
            for (rank, person, excluded, forecast_on, submissions), (score, coverage, take) in zip(
                plain, exact, strict=True
            )
        ]


def boards(facts: Facts, standings: Standings) -> Boards:
    """Return boards, best first: everyone in the standings, except participants who are excluded as hidden.

    Ranks are 1, 2, 2, 4 by take or total. Exact ties share a rank and are in order of id. Participants who are excluded
    as no_rank, those with fewer forecasts than the rule set asks for, reference forecasters, and all but an entrant's
    best submission are shown without a rank and use none up.
    """
    labels, rules = score_labels(facts), standings.contests[0].opened.rules
    excluded, (entrants, submissions) = _exclusions(facts, standings), _submissions(facts, standings, labels)
    shown = np.flatnonzero(excluded != _EXCLUDED["hidden"])
    contest, person, by_id = standings.contest[shown], standings.person[shown], _order_of_ids(labels, standings.person)
    total, coverage = standings.total.rows(shown), standings.coverage.rows(shown)
    take = TAKES[rules.take].of(total, coverage)
    if rules.rank_by == "take":
        order, first = (take or _no_takes(len(shown))).in_order(contest, by_id[shown], falling=True)
    else:
        order, first = total.in_order(contest, by_id[shown], falling=not lower_is_better(rules))
    rows = shown[order]
    excluded = excluded[rows]
    if rules.best_of_entrant:
        _mark_others(excluded, contest[order].tolist(), [labels[code] for code in person[order].tolist()], entrants)
    return Boards(
        standings.names,
        standings.contests,
        labels,
        contest[order],
        person[order],
        by_id[rows],
        _ranks(contest[order], first, excluded),
        total.rows(order),
        coverage.rows(order),
        standings.attainable,
        None if take is None else take.rows(order),
        excluded,
        standings.forecast_on[rows],
        standings.questions,
        submissions[rows],
    )


def _no_takes(count: int) -> Estimated:
    return Estimated(np.zeros(count), np.zeros(count), lambda rows: [ZERO] * len(rows))


def _order_of_ids(labels: Sequence[str], person: Int64Array) -> Int64Array:
    """Return the place of each row's id in the order of ids."""
    place = np.zeros(len(labels), np.int64)
    in_order = sorted(distinct(person)[0].tolist(), key=labels.__getitem__)
    place[in_order] = np.arange(len(in_order))
    by_id: Int64Array = place[person]
    return by_id


def _exclusions(facts: Facts, standings: Standings) -> Int64Array:
    """Return why each row has no rank or no prize, as an index into EXCLUDED.

    Source: ForecastBench's leaderboard, which leaves out a forecast set with more than 5% imputed forecasts.
    """
    codes, rules = facts.participant_codes.codes, standings.contests[0].opened.rules
    consensus, people = len(codes), len(codes) + len(REFERENCE_ROWS)
    keys, levels = list[int](), list[int]()
    for number, contest in enumerate(standings.contests):
        if not (contest.levels or contest.enrolments):
            continue
        bots = () if rules.bot_level == "none" else (who for who, each in contest.enrolments.items() if each.bot)
        for who in {**dict.fromkeys(contest.levels), **dict.fromkeys(bots)}:
            if who in codes and (level := contest.level_of(who)) is not None:
                keys.append(number * people + codes[who])
                levels.append(_EXCLUDED[level])
    excluded = np.zeros(len(standings.person), np.int64)
    if keys:
        key = standings.contest * people + standings.person  # rising
        at = np.searchsorted(key, keys)
        found = np.flatnonzero(np.append(key, -1)[at] == keys)
        excluded[at[found]] = int64_array(levels)[found]
    questions, forecast_on = standings.questions[standings.contest], standings.forecast_on
    few = (forecast_on < rules.least_questions) | (forecast_on * 10**6 < rules.least_share_ppm * questions)
    excluded[few & (excluded <= _EXCLUDED["no_prize"])] = _EXCLUDED[TOO_FEW]
    excluded[standings.person >= consensus] = _EXCLUDED[REFERENCE]
    excluded[standings.person == consensus] = _EXCLUDED[CONSENSUS]
    return excluded


def _submissions(
    facts: Facts, standings: Standings, labels: Sequence[str]
) -> tuple[dict[int, dict[str, str]], Int64Array]:
    """Return the entrants of the participants in each contest, and the number of submissions of each row's entrant.

    A participant who is not among them, or whose contest is not, is its own entrant.
    """
    submissions, consensus = np.ones(len(standings.person), np.int64), len(facts.participant_codes.codes)
    entrants = {
        number: {who: each.entrant for who, each in contest.enrolments.items() if each.entrant}
        for number, contest in enumerate(standings.contests)
        if contest.enrolments
    }
    for number, others in entrants.items():
        span = slice(*np.searchsorted(standings.contest, [number, number + 1]).tolist())
        people = [labels[code] for code in standings.person[span].tolist() if code < consensus]
        counts = Counter(others.get(who, who) for who in {*people, *standings.contests[number].enrolments})
        submissions[span][: len(people)] = [counts[others.get(who, who)] for who in people]
    return entrants, submissions


def _mark_others(
    excluded: Int64Array, contest: Sequence[int], participants: Sequence[str], entrants: dict[int, dict[str, str]]
) -> None:
    """Mark as NOT_BEST every submission but the best of each entrant, among those that can be ranked."""
    seen: set[tuple[int, str]] = set()
    for row, (number, who) in enumerate(zip(contest, participants, strict=True)):
        if excluded[row] not in _UNRANKED:
            entrant = (number, entrants.get(number, {}).get(who, who))
            if entrant in seen:
                excluded[row] = _EXCLUDED[NOT_BEST]
            seen.add(entrant)


def _ranks(contest: Int64Array, first: BoolArray, excluded: Int64Array) -> Int64Array:
    """Return the rank of each row, in order; 0 without one. first: whether it is the first of equal rows."""
    ranks, equal = np.zeros(len(contest), np.int64), np.cumsum(first, dtype=np.int64)
    ranked = np.flatnonzero(_IS_RANKED[excluded])
    starts = run_starts(contest[ranked])
    place = np.arange(len(ranked)) - np.repeat(starts, run_lengths(starts, len(ranked))) + 1
    runs = run_starts(equal[ranked])
    ranks[ranked] = np.repeat(place[runs], run_lengths(runs, len(ranked)))
    return ranks
