"""Scores added up exactly, so that the sums over many questions can be sent, and added to others.

A sum is of integers, or of numbers times rates; where an owner has many different rates, it is computed late.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import WEIGHT
from forecast_ledger.ledger.model.rules import REFERENCE_ROWS, RuleSet, shown_references
from forecast_ledger.projections.core.arrays import (
    BoolArray,
    Int64Array,
    Totals,
    distinct,
    index_where,
    int64_array,
    largest,
    run_lengths,
    run_starts,
    spread,
    stable_order,
)
from forecast_ledger.projections.core.late_fractions import BITS, FEW, sum_of_terms, sum_within
from forecast_ledger.projections.core.wide_int import (
    QUOTIENT_BITS,
    WORDS,
    BoundedSums,
    WideInt,
    bounded_quotient_sums,
    wide_quotient_sums,
)
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.question_groups import QUESTION_KINDS, QuestionGroups
from forecast_ledger.projections.scores.reference_kinds import fine_bits
from forecast_ledger.projections.scores.score_terms import CHUNK, REFERENCES, terms_in_chunks
from forecast_ledger.projections.scores.scored_questions import Questions
from forecast_ledger.projections.scores.terms import Terms
from forecast_ledger.projections.scores.time_weighted import SLICE, Scores, covered_units, divided_by, scores

Rates = Sequence[tuple[int, int]]  # a numerator (>= 0) and a denominator (> 0) each


class Rated(NamedTuple):
    """Numbers, each of which is multiplied by one of the rates; shape (n,). The index of its rate is given apart."""

    numbers: WideInt
    rates: Rates

    def terms(self, rate_of: Int64Array, rows: Int64Array) -> Iterator[tuple[int, int]]:
        """Yield the terms of some rows, as numerator and denominator."""
        for number, which in zip(self.numbers.take(rows).integers(), rate_of[rows].tolist(), strict=True):
            numerator, denominator = self.rates[which]
            yield number * numerator, denominator


def sums_by_owner(owners: int, owner: Int64Array, rate_of: Int64Array, columns: Sequence[Rated]) -> list[Fraction]:
    """Return, for each owner 0, 1 …, the sum of number x rate over its rows and all columns.

    owner, rate_of: of each row, its owner and the index of its rate, shape (n,). Numbers with the same rate are added
    as integers. If an owner has more than FEW rates, its sum has bounds, and its terms are computed only where these
    leave a doubt.
    """
    counted = np.zeros(len(owner), bool)
    for column in columns:
        counted |= (column.numbers.low | column.numbers.middle | column.numbers.high) != 0
    rows = np.flatnonzero(counted)
    rows = rows[stable_order(owner[rows])]
    rate_count = int(rate_of.max(initial=0)) + 1
    key = owner[rows] * rate_count + rate_of[rows]
    together = _have_few(key, rate_count)
    order = stable_order(key[together])
    sums = _few(key[together][order], rows[together][order], rate_count, columns)
    sums |= _many(owner, rate_of, rows[~together], columns)
    return [sums.get(number, _ZERO) for number in range(owners)]


def _have_few(key: Int64Array, rate_count: int) -> BoolArray:
    """Return whether each row is of an owner with at most FEW rates, shape (n,).

    key: owner x rate_count + rate; owners rise. An owner with many rates mostly has enough of them in its first rows.
    """
    owner = key // rate_count
    starts = run_starts(owner)
    counts = run_lengths(starts, len(key))
    some = np.arange(min(2 * FEW, int(counts.max(initial=0))))
    first = np.sort(key[np.minimum(starts[:, None] + some, (starts + counts - 1)[:, None])], axis=1)
    few = (first[:, 1:] != first[:, :-1]).sum(axis=1) < FEW
    rates = distinct(key[np.repeat(few & (counts > 2 * FEW), counts)])[0] // rate_count
    few &= np.bincount(rates, minlength=int(owner.max(initial=0)) + 1)[owner[starts]] <= FEW
    return np.repeat(few, counts)


_ZERO = Fraction(0)


def _few(key: Int64Array, rows: Int64Array, rate_count: int, columns: Sequence[Rated]) -> dict[int, Fraction]:
    """Return the sums of owners with few rates, in full."""
    starts = run_starts(key)
    terms: dict[int, list[tuple[int, int]]] = {}
    keys = [column.tolist() for column in np.divmod(key[starts], rate_count)]
    for column in columns:
        numbers = column.numbers.take(rows).unbounded_run_sums(starts)
        for number, owner, which in zip(numbers, *keys, strict=True):
            numerator, denominator = column.rates[which]
            terms.setdefault(owner, []).append((number * numerator, denominator))
    return {owner: Fraction(*pairs[0]) if len(pairs) == 1 else sum_of_terms(pairs) for owner, pairs in terms.items()}


def _many(owner: Int64Array, rate_of: Int64Array, rows: Int64Array, columns: Sequence[Rated]) -> dict[int, Fraction]:
    """Return the sums of owners with many rates, with bounds."""
    owners = owner[rows]
    starts = run_starts(owners)
    every = [bounded_quotient_sums(column.numbers, column.rates, rate_of, rows, starts) for column in columns]
    parts = [rows[first:end] for first, end in pairwise([*starts.tolist(), len(rows)])]
    sums = {}
    for owner_number, part, *bounds in zip(owners[starts].tolist(), parts, *every, strict=True):
        low, high = (sum(ends) << BITS - QUOTIENT_BITS for ends in zip(*bounds, strict=True))
        sums[owner_number] = sum_within((low, high), partial(_terms, rate_of, part, columns))
    return sums


def _terms(rate_of: Int64Array, rows: Int64Array, columns: Sequence[Rated]) -> Iterator[tuple[int, int]]:
    for column in columns:
        yield from column.terms(rate_of, rows)


_BITS = 60  # of a sum in one word
UNCOMPARED = 4  # times as many forecasts are added up at once where nothing is compared over time: each needs less
SLOTS = len(QUESTION_KINDS) + 1  # of the sums of one participant in one contest: scores by kind, then coverages
COVERAGE = SLOTS - 1


class SummedScores(NamedTuple):
    """Sums of scores of one participant on questions of one contest with the same divisors, weight and kind.

    rows: the sums; `question` is one of those questions. over: how many questions each sum is over, shape (n,).
    """

    rows: Scores
    over: Int64Array


class BoundedScores(NamedTuple):
    """Sums of scores and of coverages of participants in contests, with bounds.

    key: owner * SLOTS + slot, distinct and rising, shape (m,); owner: see `owners_of`; slot: an index into
    QUESTION_KINDS, or COVERAGE. sums: Σ weight x score, or weight x coverage. weight: Σ weight, 1e-6. over: how many
    questions. Those of coverages are 0.
    """

    key: Int64Array
    sums: BoundedSums
    weight: Int64Array
    over: Int64Array

    def where(self, chosen: BoolArray) -> "BoundedScores":
        """Return some of the sums."""
        sums = BoundedSums(self.sums.low[chosen], self.sums.width[chosen])
        return BoundedScores(self.key[chosen], sums, self.weight[chosen], self.over[chosen])


_NONE = np.zeros(0, np.int64)
_NO_NUMBERS = WideInt(_NONE, _NONE, _NONE)
NO_SUMS = SummedScores(Scores(_NONE, _NONE, _NO_NUMBERS, _NONE, _NONE), _NONE)
NO_BOUNDS = BoundedScores(_NONE, BoundedSums(np.zeros((0, WORDS), np.int64), _NONE), _NONE, _NONE)


def counted(questions: Questions, rows: Scores) -> SummedScores:
    """Return each score as a sum over one question, without questions of weight 0.

    Their scores are shown, and no sum, mean, coverage or count has them.
    """
    weighted = index_where(questions.weight[rows.question] > 0)
    rows = rows if isinstance(weighted, slice) else rows.rows(weighted)
    return SummedScores(rows, np.ones(len(rows.question), np.int64))


def joined_sums(parts: Sequence[SummedScores]) -> SummedScores:
    """Return the sums of at least one part, one after the other."""
    numerator = WideInt(*map(np.concatenate, zip(*(part.rows.numerator for part in parts), strict=True)))
    names = ("question", "participant", "covered", "covered_hidden")
    columns = {name: np.concatenate([getattr(part.rows, name) for part in parts]) for name in names}
    return SummedScores(Scores(numerator=numerator, **columns), np.concatenate([part.over for part in parts]))


def summed(rules: RuleSet, questions: Questions, rows: Scores) -> SummedScores:
    """Return the sums of scores, as few as there can be, without questions of weight 0; see `added`."""
    return added(rules, questions, counted(questions, rows))


def scored_sums(facts: Facts, contests: Sequence[Contest], questions: Questions, chunk: int = CHUNK) -> SummedScores:
    """Return what `summed` returns of the scores of contests of one rule set.

    Most are added up as their terms come, without a row for each question and participant.
    """
    rules = contests[0].opened.rules
    if _adds_alike(rules) and int(facts.forecasts.counts(questions.code).max(initial=0)) <= SLICE:  # none in slices
        counting = np.flatnonzero(questions.weight > 0)
        chosen = questions if len(counting) == len(questions.code) else questions.take(counting)
        every_alike = _first_alike(questions)
        alike = every_alike[counting]
        with suppress(OverflowError):  # a sum might not fit in its words
            is_compared = REFERENCES[rules.reference].compared is not None or shown_references(rules)
            terms = terms_in_chunks(facts, contests, chosen, chunk if is_compared else UNCOMPARED * chunk)
            parts = [_sums_of_terms(part, alike[first : first + len(part.questions.code)]) for first, part in terms]
            return _added_alike(every_alike, joined_sums([NO_SUMS, *parts]))
    return summed(rules, questions, scores(facts, contests, questions, chunk))


def _sums_of_terms(terms: Terms, alike: Int64Array) -> SummedScores:
    """Return the sums of scores. alike: of each question, the first that is alike. Raises OverflowError."""
    standing, question = terms.standing, terms.standing.question
    people = int(standing.participant.max(initial=0)) + 1
    keys, index = distinct(spread(alike, question) * people + standing.participant)
    totals, (covered, hidden) = Totals(index, np.bincount(index)), covered_units(terms)
    if largest(covered) * int(totals.counts.max(initial=0)) >> _BITS:
        raise OverflowError("a sum of more than 60 bits")
    over = np.bincount(index[run_starts(question, standing.participant)])
    whole = Scores(*np.divmod(keys, people), terms.sums(totals), totals.of(covered), totals.of(hidden))
    return SummedScores(whole, over)


def added(rules: RuleSet, questions: Questions, sums: SummedScores) -> SummedScores:
    """Return sums with those of one participant on questions of one contest that are alike added up.

    Nothing is added if each score is divided by the time that it covers, if one may be imputed for another, or if a
    sum might not fit in its words.
    """
    return _added_alike(_first_alike(questions), sums) if _adds_alike(rules) and len(sums.over) else sums


def _added_alike(alike: Int64Array, sums: SummedScores) -> SummedScores:
    """Return sums added up. alike: of each question, the first that is alike."""
    rows, over = sums
    if not len(over):
        return sums
    people = int(rows.participant.max()) + 1
    keys, index = distinct(alike[rows.question] * people + rows.participant)
    totals = Totals(index, np.bincount(index))
    if max(map(largest, (rows.numerator.high, rows.covered))) * int(totals.counts.max()) >> _BITS:
        return sums
    question, participant = np.divmod(keys, people)
    covered, hidden, count = map(totals.of, (rows.covered, rows.covered_hidden, over))
    return SummedScores(Scores(question, participant, rows.numerator.totals(totals), covered, hidden), count)


def count_alike(rules: RuleSet, questions: Questions) -> int:
    """Return the most sums that `added` can leave for one participant."""
    if not len(questions.code):
        return 0
    return len(questions.code) if not _adds_alike(rules) else int(_alike(questions).max()) + 1


def _adds_alike(rules: RuleSet) -> bool:
    return rules.period != "covered" and rules.imputation == "none"


def _alike(questions: Questions) -> Int64Array:
    """Return a number for each question, the same for those of one contest that are alike."""
    groups = questions.groups.group_of
    _, number = distinct(questions.contest * (int(groups.max(initial=0)) + 1) + groups)
    return number


def _first_alike(questions: Questions) -> Int64Array:
    """Return for each question the index of the first of the same contest that is alike."""
    group = _alike(questions)
    first: Int64Array = np.unique(group, return_index=True)[1][group]
    return first


def score_terms(rules: RuleSet, groups: QuestionGroups, rows: Scores) -> tuple[Int64Array, list[Rated]]:
    """Return weight x score of each row as a number at a rate: the index of its rate, shape (n,), and the numbers."""
    over = rows.covered if rules.period == "covered" else np.zeros_like(rows.covered)
    overs, over_index = distinct(over)
    pairs, pair = distinct(groups.group_of[rows.question] * len(overs) + over_index)
    fine, rates = fine_bits(rules), []
    for number, index in zip(*(column.tolist() for column in np.divmod(pairs, len(overs))), strict=True):
        shared = groups.groups[number]
        unit = groups.per_point[shared.per_point]
        units = max(divided_by(rules, shared, int(overs[index])), 1)  # in no time, every score is 0
        rates.append((shared.weight * unit.denominator, unit.numerator * (units << fine) * WEIGHT))
    return pair, [Rated(rows.numerator, rates)]


def coverage_terms(groups: QuestionGroups, rows: Scores) -> tuple[Int64Array, list[Rated]]:
    """Return weight x coverage of each row as one or two numbers at a rate, which are to be added."""
    group = groups.group_of[rows.question]
    split = int64_array([each.hidden_weight >= 0 for each in groups.groups])[group]
    hidden = rows.covered_hidden * split
    columns, sides = [], [(1, rows.covered - hidden)]
    for number, units in [(0, hidden), *sides] if split.any() else sides:
        rates = [(each.weight * each.rates[number], each.common * WEIGHT * WEIGHT) for each in groups.groups]
        columns.append(Rated(WideInt.from_int64(units), rates))
    return group, columns


def kinds_of(groups: QuestionGroups) -> Int64Array:
    """Return the kind of each question, as an index into QUESTION_KINDS."""
    return int64_array([group.kind for group in groups.groups])[groups.group_of]


def weights_of(groups: QuestionGroups) -> Int64Array:
    """Return the weight of each question, 1e-6."""
    return int64_array([group.weight for group in groups.groups])[groups.group_of]


def owners_of(questions: Questions, rows: Scores, people: int) -> Int64Array:
    """Return the index of the contest x people + the participant of each row. people: more than any participant."""
    return questions.contest[rows.question] * people + rows.participant


def with_bounds(
    rules: RuleSet, questions: Questions, sums: SummedScores, people: int, owners: Int64Array = _NONE
) -> tuple[SummedScores, BoundedScores]:
    """Return the sums of participants who have few in a contest, and the sums of the others with bounds.

    people: see `owners_of`. owners: they get bounds even if they have few sums. No sum gets bounds if the score of a
    reference forecaster may stand in for another. Raises OverflowError: a sum is too large for bounds.
    """
    rows, over = sums
    if rules.imputation in REFERENCE_ROWS or not len(over):
        return sums, NO_BOUNDS
    owner = owners_of(questions, rows, people)
    _, owner_index = distinct(owner)
    many = (np.bincount(owner_index)[owner_index] > FEW) | np.isin(owner, owners)
    if not many.any():
        return sums, NO_BOUNDS
    chosen, others = np.flatnonzero(many), np.flatnonzero(~many)
    bounded = _bounded(rules, questions.groups, SummedScores(rows.rows(chosen), over[chosen]), owner[chosen])
    return SummedScores(rows.rows(others), over[others]), bounded


def _bounded(rules: RuleSet, groups: QuestionGroups, sums: SummedScores, owner: Int64Array) -> BoundedScores:
    rows, over = sums
    kind, weight = kinds_of(groups)[rows.question], weights_of(groups)[rows.question] * over
    none = np.zeros_like(over)
    return joined_bounds(
        [
            _sums_by_key(owner * SLOTS + kind, score_terms(rules, groups, rows), weight, over),
            _sums_by_key(owner * SLOTS + COVERAGE, coverage_terms(groups, rows), none, none),
        ]
    )


def _sums_by_key(
    key: Int64Array, terms: tuple[Int64Array, list[Rated]], weight: Int64Array, over: Int64Array
) -> BoundedScores:
    order, (rate_of, columns) = stable_order(key), terms
    starts = run_starts(key[order])
    first, *others = (wide_quotient_sums(each.numbers, each.rates, rate_of, order, starts) for each in columns)
    for other in others:
        first = first.plus(other)
    return BoundedScores(key[order][starts], first, *(np.add.reduceat(each[order], starts) for each in (weight, over)))


def joined_bounds(parts: Sequence[BoundedScores]) -> BoundedScores:
    """Return the sums of different questions, of at least one part, together."""
    key, weight, over = (
        np.concatenate(column) for column in zip(*((*part[:1], *part[2:]) for part in parts), strict=True)
    )
    sums = BoundedSums(*map(np.concatenate, zip(*(part.sums for part in parts), strict=True)))
    order = stable_order(key)
    starts = run_starts(key[order])
    if not len(starts):
        return NO_BOUNDS
    added_up = (np.add.reduceat(each[order], starts) for each in (weight, over))
    return BoundedScores(key[order][starts], sums.run_sums(order, starts), *added_up)
