"""Contests with the same rule set: scored together, and the sums of their scores, of which boards and tallies are made.

A pass over few questions costs about as much as one over many. Boards as the answers came follow from the scores: after
each answer, what the board would be without later ones.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import WEIGHT
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards import brier, totals
from forecast_ledger.projections.boards.brier import ContestSample, sample_contests
from forecast_ledger.projections.boards.estimates import bounded_estimates, estimated_sums
from forecast_ledger.projections.boards.leaderboard import Standings, standings_of
from forecast_ledger.projections.boards.owner_sums import (
    OwnerSums,
    added_by_owner,
    adds_in_floats,
    count_people,
    owners_over_time,
    standings_of_sums,
)
from forecast_ledger.projections.boards.score_sums import (
    COVERAGE,
    NO_BOUNDS,
    SLOTS,
    BoundedScores,
    Rated,
    SummedScores,
    count_alike,
    counted,
    coverage_terms,
    owners_of,
    score_terms,
    scored_sums,
    summed,
    weights_of,
)
from forecast_ledger.projections.boards.totals import (
    NO_SCORES,
    Tally,
    TermsOf,
    sums_within,
    tallies_of_bounds,
    tallies_of_sums,
)
from forecast_ledger.projections.core.arrays import Int64Array, distinct, int64_array, run_starts, stable_order
from forecast_ledger.projections.core.columns import Ids, Values, take_rows
from forecast_ledger.projections.core.estimates import Estimated
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.question_groups import QuestionGroups
from forecast_ledger.projections.scores.scored_questions import Questions, non_members, scored_questions
from forecast_ledger.projections.scores.time_weighted import ContestScores


class ScoredGroup(NamedTuple):
    """The scores of several contests with the same rule set, in the order of `names`, their ids."""

    names: list[str]
    contests: list[Contest]
    questions: Questions
    rows: time_weighted.Scores

    @property
    def rules(self) -> RuleSet:
        """The rule set of the contests."""
        return self.contests[0].opened.rules

    def of(self, number: int) -> ContestScores:
        """Return the scores of one contest, by its index."""
        part = slice(*np.searchsorted(self.questions.contest, [number, number + 1]).tolist())
        questions = self.questions.of(part)
        return ContestScores(replace(questions, contest=np.zeros_like(questions.contest)), self.rows.on(part))

    def contests_with_questions(self) -> list[str]:
        """Return the ids of the contests with a question that counts."""
        return [self.names[number] for number in np.unique(self.questions.contest).tolist()]

    def summed(self) -> "SummedGroup":
        """Return the sums of scores, as few as there can be."""
        return SummedGroup(self.names, self.rules, self.questions, summed(self.rules, self.questions, self.rows))

    def sums(self, facts: Facts) -> "ContestSums":
        """Return the sums of scores; those of questions that are alike are added up, unless few are alike."""
        few = 2 * count_alike(self.rules, self.questions) > len(self.questions.code)
        sums = counted(self.questions, self.rows) if few else self.summed().sums
        return ContestSums(facts, self.names, self.questions, sums, NO_BOUNDS, count_people(facts), no_terms)


class SummedGroup(NamedTuple):
    """The sums of the scores of several contests with the same rule set, in the order of `names`, their ids."""

    names: list[str]
    rules: RuleSet
    questions: Questions
    sums: SummedScores


def contests_by_rules(facts: Facts, names: Iterable[str]) -> list[list[str]]:
    """Group contest ids by rule set."""
    groups: dict[RuleSet, list[str]] = {}
    for name in names:
        groups.setdefault(facts.contests[name].opened.rules, []).append(name)
    return [*groups.values()]


def score_group(facts: Facts, names: list[str], chunk: int) -> ScoredGroup:
    """Score contests with the same rule set."""
    like = first_alike(facts, names)
    unlike, contests = [*dict.fromkeys(like)], [facts.contests[name] for name in names]
    scored = [facts.contests[name] for name in unlike]
    questions = scored_questions(facts, *scored)
    rows = time_weighted.scores(facts, scored, questions, chunk)
    if len(unlike) < len(names):
        questions, rows = _repeated(questions, rows, numbers_of(unlike, like))
    return ScoredGroup(names, contests, questions, rows)


def sum_group(facts: Facts, names: list[str], chunk: int, questions: Questions | None = None) -> SummedGroup:
    """Return the sums of the scores of contests with the same rule set. questions: theirs, if they are at hand."""
    if len({*first_alike(facts, names)}) < len(names):
        return score_group(facts, names, chunk).summed()
    contests = [facts.contests[name] for name in names]
    questions = scored_questions(facts, *contests) if questions is None else questions
    return SummedGroup(names, contests[0].opened.rules, questions, scored_sums(facts, contests, questions, chunk))


def first_alike(facts: Facts, names: Sequence[str]) -> list[str]:
    """Return, for each contest of one rule set, the first of them that has the same scores.

    These are contests that are computed as of one log position, score the same questions at the same instants and with
    the same weights, and have the same members.
    """
    first: dict[tuple[object, ...], str] = {}
    questions = [frozenset(facts.contests[name].entries) for name in names]
    counts, like = Counter(questions), []
    if len(counts) == len(names):
        return [*names]
    for name, codes in zip(names, questions, strict=True):
        contest, key = facts.contests[name], tuple[object, ...]([codes])
        if counts[codes] > 1:
            entries = frozenset(entry[1:] for entry in contest.entries.values())  # wherever they are in the log
            key = (contest.as_of(facts), entries, frozenset(non_members(contest)))
        like.append(first.setdefault(key, name))
    return like


def _repeated(
    questions: Questions, rows: time_weighted.Scores, which: Int64Array
) -> tuple[Questions, time_weighted.Scores]:
    """Return the questions and scores of all contests. which: the index of each among those that were scored."""
    index, contest = _rows_of_each(questions.contest, which)
    first = np.searchsorted(questions.contest, which)  # question of each contest, before and after
    new_first = np.searchsorted(contest, np.arange(len(which)))
    row_index, row_contest = _rows_of_each(questions.contest[rows.question], which)
    repeated = rows.rows(row_index)
    moved = repeated.question + (new_first - first)[row_contest]
    return replace(questions.take(index), contest=contest), repeated._replace(question=moved)


def _rows_of_each(contest: Int64Array, which: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the indices of the rows of each of some contests, and the index of the contest of each of these.

    contest: index of the contest of each row, rising. which: contests, by this index, in any order and repeated.
    """
    limits = np.searchsorted(contest, np.arange(int(which.max(initial=-1)) + 2))
    lengths = np.diff(limits)[which]
    begins = np.repeat(limits[which] - (np.cumsum(lengths) - lengths), lengths)
    return np.arange(len(begins)) + begins, np.repeat(np.arange(len(which)), lengths)


def numbers_of(names: list[str], some: list[str]) -> Int64Array:
    """Return the index of each of some names."""
    index = {name: number for number, name in enumerate(names)}
    return int64_array([index[name] for name in some])


# --- The sums of their scores. Boards are made of floats that estimate these; a sum is computed exactly only where the
# floats leave a doubt.


class ContestSums(NamedTuple):
    """The sums of all scores in contests of one rule set, of which no participant in a contest has both kinds.

    people: see `score_sums.owners_of`. terms: computes the terms of a sum with bounds if these leave a doubt.
    """

    facts: Facts
    names: Sequence[str]
    questions: Questions
    sums: SummedScores
    bounds: BoundedScores
    people: int
    terms: TermsOf

    @property
    def contests(self) -> list[Contest]:
        """The contests."""
        return [self.facts.contests[name] for name in self.names]

    def tallies(self) -> dict[str, Tally]:
        """Return the exact tally of each contest."""
        questions, consensus = self.questions, len(self.facts.participant_codes.codes)
        rules = self.contests[0].opened.rules
        exact = tallies_of_sums(rules, questions, self.sums, consensus, questions.contest)
        # The last contests may have no question, and then no tally yet.
        exact += [Tally({}, NO_SCORES, {})] * (len(self.names) - len(exact))
        tallies = dict(zip(self.names, exact, strict=True))
        for number, tally in tallies_of_bounds(self.bounds, consensus, self.people, self.terms).items():
            tallies[self.names[number]] = tallies[self.names[number]].plus(tally)
        return tallies

    def standings(self) -> Standings:
        """Return the standings in the contests."""
        if not adds_in_floats(self.contests[0].opened.rules):
            return standings_of(self.facts, self.names, self.contests, [*self.tallies().values()])
        counting, groups = np.flatnonzero(self.questions.weight > 0), self.questions.groups
        of_contests = (self.questions.contest[counting], counting)
        return _standings(self.facts, self.names, groups, of_contests, self._by_owner(groups))

    def _by_owner(self, groups: QuestionGroups) -> OwnerSums:
        rules, (rows, over) = self.contests[0].opened.rules, self.sums
        keys, owner = distinct(owners_of(self.questions, rows, self.people))
        score, covered = (
            estimated_sums(len(keys), owner, *terms)
            for terms in (score_terms(rules, groups, rows), coverage_terms(groups, rows))
        )
        weight = added_by_owner(owner, weights_of(groups)[rows.question] * over, len(keys))
        count = added_by_owner(owner, over, len(keys))
        if not len(self.bounds.key):
            return OwnerSums(keys, score, covered, weight, count)
        more, slot = np.divmod(self.bounds.key, SLOTS)
        owners, number = distinct(more)
        late = Estimated(*bounded_estimates(self.bounds.sums), partial(sums_within, self.bounds, self.terms))
        both = np.concatenate([keys, owners])
        order = np.argsort(both)
        weight = np.concatenate([weight, added_by_owner(number, self.bounds.weight, len(owners))])[order]
        count = np.concatenate([count, added_by_owner(number, self.bounds.over, len(owners))])[order]
        scores, coverages = np.flatnonzero(slot != COVERAGE), np.flatnonzero(slot == COVERAGE)
        score = score.followed_by(late.rows(scores).run_sums(run_starts(number[scores]))).rows(order)
        covered = covered.followed_by(late.rows(coverages)).rows(order)
        return OwnerSums(both[order], score, covered, weight, count)


def _standings(
    facts: Facts,
    names: Sequence[str],
    groups: QuestionGroups,
    counting: tuple[Int64Array, Int64Array],
    sums: OwnerSums,
) -> Standings:
    """Return the standings in contests of one rule set that follow from these sums.

    counting: the contest of each of its questions that count, and the index of the question.
    """
    contest_of, question = counting
    rates = [  # of the weight x coverage of a forecast that stands all the time that is scored
        (each.weight * each.coverage(each.reached, min(each.hidden, each.reached), common), common * WEIGHT * WEIGHT)
        for each in groups.groups
        for common in [each.common]
    ]
    ones = Rated(WideInt.from_int64(np.ones_like(question)), rates)
    attainable = estimated_sums(len(names), contest_of, groups.group_of[question], [ones])
    weight = added_by_owner(contest_of, weights_of(groups)[question], len(names))
    every = (attainable, weight, np.bincount(contest_of, minlength=len(names)))
    return standings_of_sums(facts, names, sums, every)


def no_terms(owner: int, slot: int) -> list[tuple[int, int]]:
    """Return the terms of a sum with bounds where none has them."""
    raise KeyError((owner, slot))


# --- Their Brier samples.


def sample_group(facts: Facts, names: list[str], chunk: int) -> "SampledGroup":
    """Return the Brier samples of contests with the same rule set."""
    like = first_alike(facts, names)
    unlike = [*dict.fromkeys(like)]
    contest, question, sample, owners = sample_contests(facts, [facts.contests[name] for name in unlike], chunk)
    if len(unlike) < len(names):
        order = stable_order(contest)
        index, contest = _rows_of_each(contest[order], numbers_of(unlike, like))
        question, sample = question[order[index]], sample.take(order[index])
    return SampledGroup(names, like, contest, question, sample, owners)


class SampledGroup(NamedTuple):
    """The Brier samples of several contests. names: their ids. contest: index of the contest of each row.

    like: for each contest, the first one with the same sample; see `first_alike`. question: code of each row.
    """

    names: list[str]
    like: list[str]
    contest: Int64Array
    question: Int64Array
    sample: brier.Sample
    owners: int

    def samples(self) -> dict[str, ContestSample]:
        """Return the sample of each contest."""
        order = stable_order(self.contest)
        limits = np.searchsorted(self.contest[order], np.arange(len(self.names) + 1)).tolist()
        return {
            name: ContestSample(self.sample.take(order[first:end]), self.owners, self.question[order[first:end]])
            for name, first, end in zip(self.names, limits, limits[1:], strict=False)
        }

    def summed(self) -> "SummedSamples":
        """Return the sums from which Brier aggregates and calibration are computed."""
        pairs, owner = distinct(self.contest * self.owners + self.sample.owner)
        return SummedSamples(self.names, self.owners, pairs, brier.sums_of(self.sample._replace(owner=owner)))

    def summed_once(self) -> "SummedSamples":
        """Return the same sums; contests that are alike have theirs together."""
        if len({*self.like}) == len(self.like):
            return self.summed()
        like = numbers_of(self.names, self.like)
        rows = np.flatnonzero((like == np.arange(len(like)))[self.contest])
        unlike = self._replace(contest=self.contest[rows], question=self.question[rows], sample=self.sample.take(rows))
        return unlike.summed()._replace(like=like)


class SummedSamples(NamedTuple):
    """The sums of the Brier samples of several contests. names: their ids. owners: how many owners there may be.

    pairs: pairs[i] is contest index * owners + owner, for owner i of the sums; distinct, and the contests rise.
    like: the index of the contest whose sums each contest has; None if each has its own.
    """

    names: list[str]
    owners: int
    pairs: Int64Array
    sums: brier.BrierSums
    like: Int64Array | None = None

    def counts(self) -> list[Values]:
        """Return columns: contests, owners with a row in them, and what their Brier aggregates are made of."""
        return self._of_contests(*brier.count_columns(self.sums))

    def bins(self) -> list[Values]:
        """Return columns: contests, owners, and their calibration bins."""
        return self._of_contests(*brier.bin_columns(self.sums))

    def _of_contests(self, number: Int64Array, *columns: Values) -> list[Values]:
        contest, owner = np.divmod(self.pairs[number], self.owners)
        rows: list[Values] = [owner, *columns]
        if self.like is not None:
            index, contest = _rows_of_each(contest, self.like)
            rows = [take_rows(column, index) for column in rows]
        return [Ids(contest, self.names), *rows]


def add_samples(names: list[str], parts: Sequence[SummedSamples]) -> SummedSamples:
    """Return the sums of samples of different questions together, of which there is at least one.

    names: the ids of contests that have all those of the parts.
    """
    index, owners = {name: number for number, name in enumerate(names)}, parts[0].owners
    pairs = [
        int64_array([index[name] for name in part.names])[part.pairs // owners] * owners + part.pairs % owners
        for part in parts
    ]
    every = np.unique(np.concatenate(pairs))
    sums = [part.sums.renumbered(np.searchsorted(every, pair)) for part, pair in zip(parts, pairs, strict=True)]
    return SummedSamples(names, owners, every, brier.added(sums))


def standings_over_time(facts: Facts, contest: Contest, scored: ContestScores, size: int) -> Standings:
    """Return the standings after each `size` questions that count and after the last, as if of as many contests.

    They are those of `tallies_over_time`. Only what is looked at, or left open by floats, is added up exactly.
    """
    name, questions = contest.opened.contest, scored.questions
    if not adds_in_floats(contest.opened.rules):
        tallies = [tally for _, tally in tallies_over_time(facts, contest, scored, size)]
        return standings_of(facts, [name] * len(tallies), [contest] * len(tallies), tallies)
    order, part = _in_parts(facts, contest, questions, size)
    parts, groups = -(-len(order) // size), questions.groups
    board = np.repeat(np.arange(parts), np.minimum(np.arange(parts) * size + size, len(order)))
    question = np.concatenate([order[: end + size] for end in range(0, len(order), size)])
    owners = owners_over_time(contest.opened.rules, groups, counted(questions, scored.rows).rows, (part, parts))
    keys = owners.key % parts * count_people(facts) + owners.key // parts
    kept = np.flatnonzero(owners.questions)
    kept = kept[np.argsort(keys[kept])]
    sums = OwnerSums(keys, *owners[1:]).rows(kept)
    return _standings(facts, [name] * parts, groups, (board, question), sums)


def _in_parts(facts: Facts, contest: Contest, questions: Questions, size: int) -> tuple[Int64Array, Int64Array]:
    """Return the questions that count in the order of the answers that count, and the part of each question.

    A part has `size` of them; the part of a question that does not count is 0.
    """
    order = np.argsort(answered_at(facts, contest, questions), kind="stable")
    order = order[questions.weight[order] > 0]
    part = np.zeros(len(questions.weight), np.int64)
    part[order] = np.arange(len(order)) // size
    return order, part


def tallies_over_time(
    facts: Facts, contest: Contest, scored: ContestScores, size: int = 1
) -> Iterator[tuple[int, Tally]]:
    """Yield, after each `size` questions that count, the index of the last and the tally of all up to it.

    Questions are added in the order of the answers that count. Their scores are as they are now; `leaderboard`
    makes boards of tallies, with `standings_of` and `boards`.
    """
    order, part = _in_parts(facts, contest, scored.questions, size)
    consensus = len(facts.participant_codes.labels)
    whole = Tally({}, NO_SCORES, {})
    lasts = order[np.minimum(np.arange(0, len(order), size) + size, len(order)) - 1]
    each = totals.tallies(contest.opened.rules, scored.questions, scored.rows, consensus, part) if len(order) else []
    for question, more in zip(lasts.tolist(), each, strict=True):
        whole = whole.plus(more)
        yield question, whole


def answered_at(facts: Facts, contest: Contest, questions: Questions) -> Int64Array:
    """Return the log position of the answer that counts for each scored question of a contest, shape (q,)."""
    last, settled = contest.as_of(facts), np.zeros(len(facts.questions), np.int64)
    for row in facts.settlements:
        if row.position <= last:
            settled[row.question] = row.position
    answered: Int64Array = settled[questions.code]
    return answered
