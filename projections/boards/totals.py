"""Exact sums of scores and coverages over questions, from which the rows of a board are made.

A rule set can give a participant a score on questions without a forecast, as ForecastBench's leaderboard does.
"""

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import WEIGHT
from forecast_ledger.ledger.model.rules import KIND_TOTALS, REFERENCE_ROWS, RuleSet
from forecast_ledger.projections.boards.score_sums import (
    COVERAGE,
    SLOTS,
    BoundedScores,
    SummedScores,
    counted,
    coverage_terms,
    kinds_of,
    score_terms,
    sums_by_owner,
    weights_of,
)
from forecast_ledger.projections.core.arrays import Int64Array, distinct
from forecast_ledger.projections.core.late_fractions import BITS, quotient, sum_of_terms, sum_within
from forecast_ledger.projections.core.wide_int import QUOTIENT_BITS, BoundedSums
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.projections.scores.question_groups import QUESTION_KINDS, QuestionGroups
from forecast_ledger.projections.scores.scored_questions import Questions, kernel_of
from forecast_ledger.projections.scores.time_weighted import Scores


def worst_score(kernel: str) -> int:
    """Return the worst score of a kernel, which a missing forecast gets in a total of kind means, or by imputation.

    Raises ValueError if the kernel has no worst score.

    >>> worst_score("brier_sum")
    2
    """
    score = KERNELS[kernel].worst
    if score is None:
        raise ValueError(f"the kernel {kernel} has no worst score")
    return score


def kernel_of_kind(rules: RuleSet, kind: str) -> str:
    """Return the name of the kernel for questions of a kind, of QUESTION_KINDS.

    >>> kernel_of_kind(RuleSet(name="x", kernel="brier", cdf_kernel="crps"), "numeric")
    'crps'
    """
    if kind != "numeric":
        return rules.kernel
    return rules.quantile_kernel if rules.cdf_kernel == "none" else rules.cdf_kernel


def missing_scores(rules: RuleSet, questions: Questions, rows: Scores, consensus: int) -> dict[int, Fraction]:
    """Return what counts for a participant without a forecast, in points, by the index of the question.

    rows: all scores, those of reference forecasters included. consensus: the participant code of the consensus. A
    question is left out where the rules impute nothing, or the reference forecaster has no score.
    """
    if rules.total in KIND_TOTALS or rules.imputation == "worst":
        kernels = (kernel_of(rules, answer.question) for answer in questions.answers)
        return {number: Fraction(worst_score(kernel)) for number, kernel in enumerate(kernels)}
    if rules.imputation not in REFERENCE_ROWS:
        return {}
    reference = rows.of(consensus + REFERENCE_ROWS.index(rules.imputation))
    scores = time_weighted.points(rules, questions, reference).exact()
    return dict(zip(reference.question.tolist(), scores, strict=True))


def imputable_rows(rules: RuleSet, rows: Scores, consensus: int) -> tuple[Int64Array, Int64Array]:
    """Return the reference forecaster's row on the question of each participant's row that has one, and that row."""
    if rules.imputation not in REFERENCE_ROWS:
        return (np.zeros(0, np.int64),) * 2
    reference = np.flatnonzero(rows.participant == consensus + REFERENCE_ROWS.index(rules.imputation))
    at = np.full(int(rows.question.max(initial=-1)) + 1, -1)
    at[rows.question[reference]] = reference
    kept = np.flatnonzero((at[rows.question] >= 0) & (rows.participant < consensus))
    return at[rows.question[kept]], kept


CONSENSUS_CODE = -1  # of the consensus; -2, -3 and -4 of the others of REFERENCE_ROWS. Their codes in `Scores`
# change when participants join.
TermsOf = Callable[[int, int], Iterable[tuple[int, int]]]  # numerators and denominators, by owner and slot


class KindMean(NamedTuple):
    """The sums of a participant's scores on one kind of question.

    score: Σ weight x score over all questions that count, with the worst score if there is no forecast. weight: Σ
    weight of them. questions: how many they are; forecast_on: how many of them have a forecast.
    """

    kind: str
    score: Fraction
    weight: Fraction
    forecast_on: int
    questions: int

    @property
    def mean(self) -> Fraction:
        """The weighted mean score, in percent."""
        return quotient(100 * self.score, self.weight)


class ParticipantSums(NamedTuple):
    """The exact sums of one participant's scores on the questions of a contest.

    score: Σ weight x score, imputed scores included. weight: Σ weight of the questions with a score. covered:
    Σ weight x coverage. coverage: covered / Σ weight of all questions that count. reference: for a reference
    forecaster, its name in REFERENCE_ROWS; else empty. questions: how many have a forecast. kinds: a row for each kind
    that has a question that counts, if the total of the rule set is by kind; else empty.
    """

    participant: str
    reference: str
    score: Fraction
    weight: Fraction
    coverage: Fraction
    covered: Fraction
    questions: int
    kinds: tuple[KindMean, ...]


class KindSums(NamedTuple):
    """Sums of scores on questions of one kind: Σ weight x score, Σ weight in 1e-6, and the number of questions."""

    score: Fraction
    weight: int
    questions: int

    def plus(self, other: "KindSums", sign: int = 1) -> "KindSums":
        """Return the sums over these and other questions; with sign -1, over these without some of them."""
        if not other.questions:
            return self
        score = self.score + (other.score if sign > 0 else -other.score) if self.questions else sign * other.score
        return KindSums(score, self.weight + sign * other.weight, self.questions + sign * other.questions)


class ScoreSums(NamedTuple):
    """Sums of scores on questions. kinds: for each of QUESTION_KINDS. covered: Σ weight x coverage."""

    kinds: tuple[KindSums, ...]
    covered: Fraction

    @property
    def score(self) -> Fraction:
        """Σ weight x score."""
        first, *others = [kind.score for kind in self.kinds if kind.questions] or [Fraction(0)]
        return sum(others, first)

    @property
    def weight(self) -> int:
        """Σ weight, 1e-6."""
        return sum([kind.weight for kind in self.kinds])

    @property
    def questions(self) -> int:
        """The number of questions."""
        return sum([kind.questions for kind in self.kinds])

    def plus(self, other: "ScoreSums", sign: int = 1) -> "ScoreSums":
        """Return the sums over these and other questions; with sign -1, over these without some of them."""
        kinds = [mine.plus(more, sign) for mine, more in zip(self.kinds, other.kinds, strict=True)]
        return ScoreSums(tuple(kinds), self.covered + sign * other.covered)


NO_SCORES = ScoreSums((KindSums(Fraction(0), 0, 0),) * len(QUESTION_KINDS), Fraction(0))


class Tally(NamedTuple):
    """Exact sums of the scores on some questions of a contest; tallies of different questions can be added.

    by_code: the sums of each participant with a score; reference forecasters have CONSENSUS_CODE and less. every: the
    sums over all the questions, as if a forecast with score 0 stood on each from the opening until scored time
    ended. imputable: the sums of what would be imputed on the questions on which a participant has a score, by code, if
    the scores of a reference forecaster are imputed.
    """

    by_code: dict[int, ScoreSums]
    every: ScoreSums
    imputable: dict[int, ScoreSums]

    @property
    def attainable(self) -> Fraction:
        """The weighted mean coverage of a participant whose forecasts stand all the time that is scored."""
        return self.coverage(self.every)

    def coverage(self, sums: ScoreSums) -> Fraction:
        """Return the weighted mean coverage over all the questions."""
        return sums.covered * self.per_weight

    @property
    def per_weight(self) -> Fraction:
        """1 / the sum of the weights of all the questions."""
        return Fraction(WEIGHT, max(self.every.weight, 1))

    def plus(self, other: "Tally", sign: int = 1) -> "Tally":
        """Return the tally of these and other questions; with sign -1, of these without some of them."""
        return Tally(
            _added(self.by_code, other.by_code, sign),
            self.every.plus(other.every, sign),
            _added(self.imputable, other.imputable, sign),
        )


def _added(sums: dict[int, ScoreSums], other: dict[int, ScoreSums], sign: int) -> dict[int, ScoreSums]:
    result = sums | {code: sums.get(code, NO_SCORES).plus(more, sign) for code, more in other.items()}
    return {code: each for code, each in result.items() if each.questions}


def reference_labels(facts: Facts) -> tuple[str, ...]:
    """Return the names of the reference forecasters in tables; they differ from every participant's id.

    >>> reference_labels(Facts())
    ('[consensus]', '[always-half]', '[uniform]', '[market]')
    """
    return tuple(map(partial(_free_label, facts), REFERENCE_ROWS))


def _free_label(facts: Facts, name: str) -> str:
    label = f"[{name.replace('_', '-')}]"
    while label in facts.participant_codes.codes:
        label = f"[{label}]"
    return label


def consensus_label(facts: Facts) -> str:
    """Return the name of the consensus in tables.

    >>> consensus_label(Facts())
    '[consensus]'
    """
    return reference_labels(facts)[0]


def may_take_reference_label(participant: str) -> bool:
    """Return whether a reference forecaster has, or may get, another name because of this participant's id.

    >>> may_take_reference_label("[[consensus]]"), may_take_reference_label("consensus")
    (True, False)
    """
    return participant.startswith("[") and participant.strip("[]").replace("-", "_") in REFERENCE_ROWS


def score_labels(facts: Facts) -> list[str]:
    """Return the name of everyone who can have a score, by code: participants, the consensus, other references.

    >>> score_labels(Facts())
    ['[consensus]', '[always-half]', '[uniform]', '[market]']
    """
    return [*facts.participant_codes.labels, *reference_labels(facts)]


def codes_of(facts: Facts, whole: Tally) -> list[int]:
    """Return the codes of those in a tally, as of `score_labels`, in order."""
    consensus = len(facts.participant_codes.codes)
    return sorted(code if code >= 0 else consensus + CONSENSUS_CODE - code for code in whole.by_code)


def participant_sums(facts: Facts, contest: Contest, whole: Tally) -> Iterator[ParticipantSums]:
    """Yield the sums of each participant with a score, in order of code, then those of reference forecasters."""
    names, rules, every = facts.participant_codes.labels, contest.opened.rules, whole.every
    labels, per_weight, weights = reference_labels(facts), whole.per_weight, dict[int, Fraction]()
    for code, sums in sorted(whole.by_code.items(), key=lambda item: (item[0] < 0, abs(item[0]))):
        score, weight = sums.score, sums.weight
        if (imputed := imputed_sums(rules, whole, code)).questions:
            score, weight = score + imputed.score, weight + imputed.weight
        if weight not in weights:
            weights[weight] = Fraction(weight, WEIGHT)
        yield ParticipantSums(
            participant=labels[CONSENSUS_CODE - code] if code < 0 else names[code],
            reference=REFERENCE_ROWS[CONSENSUS_CODE - code] if code < 0 else "",
            score=score,
            weight=weights[weight],
            coverage=sums.covered * per_weight,
            covered=sums.covered,
            questions=sums.questions,
            kinds=tuple(_with_missing(rules, sums, every)),
        )


def tallies(rules: RuleSet, questions: Questions, rows: Scores, consensus: int, part: Int64Array) -> list[Tally]:
    """Add up scores in tallies 0, 1 … up to the last that has a question.

    Questions of weight 0 are left out: their scores are shown, and no sum, mean, coverage or count has them.

    part: the tally of each question, shape (q,). consensus: its participant code in the rows. See `sums_by_owner`.
    """
    return tallies_of_sums(rules, questions, counted(questions, rows), consensus, part)


def tallies_of_sums(
    rules: RuleSet, questions: Questions, sums: SummedScores, consensus: int, part: Int64Array
) -> list[Tally]:
    """Return the tallies of scores that are partly added up, as `tallies` does; each sum is of one part."""
    groups, parts = questions.groups, int(part.max(initial=-1)) + 1
    rows, count = sums
    people = int(rows.participant.max(initial=0)) + 1
    keys, owner = distinct(part[rows.question] * people + rows.participant)
    score_sums = _sums(rules, groups, sums, owner, len(keys))
    also, kept = imputable_rows(rules, rows, consensus)
    imputable = _sums(rules, groups, SummedScores(rows.rows(also), count[also]), owner[kept], len(keys))
    tallies = [Tally({}, every, {}) for every in _every(questions, groups, part, parts)]
    owners = zip(*(column.tolist() for column in np.divmod(keys, people)), score_sums, imputable, strict=True)
    for number, participant, mine, imputed in owners:
        code = participant if participant < consensus else CONSENSUS_CODE - (participant - consensus)
        tallies[number].by_code[code] = mine
        if imputed.questions:
            tallies[number].imputable[code] = imputed
    return tallies


def tallies_of_bounds(sums: BoundedScores, consensus: int, people: int, terms: TermsOf) -> dict[int, Tally]:
    """Return the tallies of sums with bounds, by the index of the contest; the sums over all questions are left out.

    consensus, people: as for the sums. terms: computes the terms of a sum if its bounds leave a doubt.
    """
    tallies: dict[int, Tally] = {}
    slots: dict[int, dict[int, KindSums]] = {}
    exact = sums_within(sums, terms, np.arange(len(sums.key)))
    for key, *kind in zip(sums.key.tolist(), exact, sums.weight.tolist(), sums.over.tolist(), strict=True):
        owner, slot = divmod(key, SLOTS)
        slots.setdefault(owner, {})[slot] = KindSums._make(kind)
    for owner, by_slot in slots.items():
        contest, participant = divmod(owner, people)
        code = participant if participant < consensus else CONSENSUS_CODE - (participant - consensus)
        kinds = tuple(by_slot.get(slot, NO_SCORES.kinds[0]) for slot in range(COVERAGE))
        tallies.setdefault(contest, Tally({}, NO_SCORES, {})).by_code[code] = ScoreSums(kinds, by_slot[COVERAGE].score)
    return tallies


def sums_within(sums: BoundedScores, terms: TermsOf, rows: Int64Array) -> list[Fraction]:
    """Return some of the sums with bounds; terms: see `tallies_of_bounds`."""
    bounds = BoundedSums(sums.sums.low[rows], sums.sums.width[rows]).bounds()
    shift = BITS - QUOTIENT_BITS
    return [
        sum_within((low << shift, high << shift), partial(terms, *divmod(key, SLOTS)))
        for key, (low, high) in zip(sums.key[rows].tolist(), bounds, strict=True)
    ]


def _sums(
    rules: RuleSet, groups: QuestionGroups, sums: SummedScores, owner: Int64Array, owners: int
) -> list[ScoreSums]:
    """Return the sums of each owner. owner: of each of the scores that are added up, shape (n,)."""
    rows, count = sums
    if not len(count):
        return [NO_SCORES] * owners
    slots, kind = len(QUESTION_KINDS), kinds_of(groups)[rows.question]
    scores = sums_by_owner(owners * slots, owner * slots + kind, *score_terms(rules, groups, rows))
    covered = sums_by_owner(owners, owner, *coverage_terms(groups, rows))
    weights, counts = _by_kind(kind, weights_of(groups)[rows.question], count, owner, owners)
    return [
        ScoreSums(tuple(map(KindSums, scores[number * slots : (number + 1) * slots], *each)), whole)
        for number, (*each, whole) in enumerate(zip(weights, counts, covered, strict=True))
    ]


def _by_kind(
    kind: Int64Array, weight: Int64Array, count: Int64Array, owner: Int64Array, owners: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Return, for each owner and kind, the sum of the weights of its questions, 1e-6, and their number.

    kind: index into QUESTION_KINDS. weight, count: of the questions that a row sums up: of each, and how many.
    """
    weights, counts = np.zeros((2, owners, len(QUESTION_KINDS)), np.int64)
    np.add.at(weights, (owner, kind), weight * count)
    np.add.at(counts, (owner, kind), count)
    return weights.tolist(), counts.tolist()


def _every(questions: Questions, groups: QuestionGroups, part: Int64Array, parts: int) -> Iterator[ScoreSums]:
    """Yield, for each part, the sums over all its questions that count, covered by a forecast over all scored time."""
    weighted = np.flatnonzero(questions.weight > 0)
    part = part[weighted]
    keys, count = np.unique(part * max(len(groups.groups), 1) + groups.group_of[weighted], return_counts=True)
    terms: list[list[tuple[int, int]]] = [[] for _ in range(parts)]
    for key, times in zip(keys.tolist(), count.tolist(), strict=True):
        index, number = divmod(key, len(groups.groups))
        group = groups.groups[number]
        share = group.attainable
        terms[index].append((times * group.weight * share.numerator, share.denominator * WEIGHT))
    weights, counts = _by_kind(
        kinds_of(groups)[weighted], questions.weight[weighted], np.ones_like(weighted), part, parts
    )
    for index in range(parts):
        kinds = zip(weights[index], counts[index], strict=True)
        yield ScoreSums(tuple(KindSums(Fraction(0), *kind) for kind in kinds), sum_of_terms(terms[index]))


def imputed_sums(rules: RuleSet, whole: Tally, code: int) -> ScoreSums:
    """Return the sums of the scores that are imputed where a participant has no forecast. code: of the participant.

    A reference forecaster gets none, and its score is imputed only where it has one. Coverages are not imputed.
    """
    if rules.imputation == "none" or code < 0:
        return NO_SCORES
    if rules.imputation == "worst":
        kinds = zip(QUESTION_KINDS, whole.by_code[code].kinds, whole.every.kinds, strict=True)
        return ScoreSums(tuple(_worst_of_missing(rules, *each) for each in kinds), Fraction(0))
    reference = whole.by_code.get(CONSENSUS_CODE - REFERENCE_ROWS.index(rules.imputation), NO_SCORES)
    return reference.plus(whole.imputable.get(code, NO_SCORES), -1)


def _worst_of_missing(rules: RuleSet, kind: str, sums: KindSums, every: KindSums) -> KindSums:
    """Return the sums of the worst score on each question of a kind without a forecast."""
    weight, questions = every.weight - sums.weight, every.questions - sums.questions
    score = worst_score(kernel_of_kind(rules, kind)) * weight if questions else 0
    return KindSums(Fraction(score, WEIGHT), weight, questions)


def _with_missing(rules: RuleSet, sums: ScoreSums, every: ScoreSums) -> Iterator[KindMean]:
    """Yield the sums of each kind, with the worst score for every question without a forecast."""
    if rules.total not in KIND_TOTALS:
        return
    for kind, mine, total in zip(QUESTION_KINDS, sums.kinds, every.kinds, strict=True):
        if total.questions:
            score = mine.score + _worst_of_missing(rules, kind, mine, total).score
            yield KindMean(kind, score, Fraction(total.weight, WEIGHT), mine.questions, total.questions)
