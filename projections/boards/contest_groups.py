"""Contests with the same rule set, scored together, and their sums, which the parts of all questions add to.

A pass over few questions costs about as much as one over many. Boards as the answers came follow from the scores: after
each answer, what the board would be without later ones.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, Self, TypeVar

import numpy as np

from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards import brier, totals
from forecast_ledger.projections.boards.brier import ContestSample, sample_contests
from forecast_ledger.projections.boards.contest_sums import ContestSums, count_people, no_terms
from forecast_ledger.projections.boards.score_sums import (
    COVERAGE,
    NO_BOUNDS,
    NO_SUMS,
    SLOTS,
    BoundedScores,
    SummedScores,
    added,
    count_alike,
    counted,
    coverage_terms,
    joined_bounds,
    joined_sums,
    kinds_of,
    owners_of,
    score_terms,
    summed,
    with_bounds,
)
from forecast_ledger.projections.boards.totals import NO_SCORES, Tally, TermsOf
from forecast_ledger.projections.core.arrays import Int64Array, distinct, int64_array, stable_order
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.scored_questions import Questions, non_members, scored_questions
from forecast_ledger.projections.scores.time_weighted import ContestScores, group_questions

# --- Contests with the same rule set, scored together: a pass over few questions costs about as much as one over many.
#
# Boards as the answers came follow from them: after each answer, what the board would be without later ones.

_Result = TypeVar("_Result")


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

    def sums(self, facts: Facts) -> ContestSums:
        """Return the sums of scores; each has one score."""
        sums = counted(self.questions, self.rows)
        return ContestSums(facts, self.names, self.questions, sums, NO_BOUNDS, count_people(facts), no_terms)


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
        questions, rows = _repeated(questions, rows, _numbers(unlike, like))
    return ScoredGroup(names, contests, questions, rows)


def first_alike(facts: Facts, names: Sequence[str]) -> list[str]:
    """Return, for each contest of one rule set, the first of them that has the same scores.

    These are contests that are computed as of one log position, score the same questions at the same instants and with
    the same weights, and have the same members.
    """
    first: dict[tuple[object, ...], str] = {}
    like = []
    for name in names:
        contest, key = facts.contests[name], tuple[object, ...]()
        if len(names) > 1:
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


def sample_group(facts: Facts, names: list[str], chunk: int) -> "SampledGroup":
    """Return the Brier samples of contests with the same rule set."""
    like = first_alike(facts, names)
    unlike = [*dict.fromkeys(like)]
    contest, question, sample, owners = sample_contests(facts, [facts.contests[name] for name in unlike], chunk)
    if len(unlike) < len(names):
        order = stable_order(contest)
        index, contest = _rows_of_each(contest[order], _numbers(unlike, like))
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

    def unlike(self) -> Self:
        """Return the samples of contests that are not like an earlier one; the others have none."""
        is_first = np.array([name == first for name, first in zip(self.names, self.like, strict=True)], bool)
        rows = np.flatnonzero(is_first[self.contest])
        return self._replace(contest=self.contest[rows], question=self.question[rows], sample=self.sample.take(rows))

    def for_each(self, of_first: dict[str, _Result]) -> dict[str, _Result]:
        """Return the result of each contest, given those of `unlike`."""
        return {name: of_first[first] for name, first in zip(self.names, self.like, strict=True)}

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


class SummedSamples(NamedTuple):
    """The sums of the Brier samples of several contests. names: their ids. owners: how many owners there may be.

    pairs: pairs[i] is contest index * owners + owner, for the i-th owner of the sums; distinct and rising.
    """

    names: list[str]
    owners: int
    pairs: Int64Array
    sums: brier.BrierSums

    def aggregates(self) -> dict[str, dict[int, brier.Aggregate]]:
        """Return the Brier aggregates of each contest, by owner, for owners who have a row."""
        by_contest: dict[str, dict[int, brier.Aggregate]] = {name: {} for name in self.names}
        for number, counts in brier.counts_by_owner(self.sums).items():
            contest, owner = divmod(int(self.pairs[number]), self.owners)
            by_contest[self.names[contest]][owner] = brier.aggregate(counts)
        return by_contest

    def calibration(self) -> dict[str, list[brier.Bin]]:
        """Return the calibration bins of each contest, by owner and bin."""
        by_contest: dict[str, list[brier.Bin]] = {name: [] for name in self.names}
        for row in brier.calibration_bins(brier.bin_sums(self.sums)):
            contest, owner = divmod(int(self.pairs[row.owner]), self.owners)
            by_contest[self.names[contest]].append(row._replace(owner=owner))
        return by_contest


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


def tallies_over_time(
    facts: Facts, contest: Contest, scored: ContestScores, size: int = 1
) -> Iterator[tuple[int, Tally]]:
    """Yield, after each `size` questions that count, the index of the last and the tally of all up to it.

    Questions are added in the order of the answers that count. Their scores are as they are now; `leaderboard.board`
    makes a board of a tally.
    """
    order = np.argsort(answered_at(facts, contest, scored.questions), kind="stable")
    order = order[scored.questions.weight[order] > 0]
    part = np.zeros(len(scored.questions.weight), np.int64)  # a question that does not count is in no tally
    part[order] = np.arange(len(order)) // size
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


# --- Sums of scores, which the parts of all questions add to: exact, or with bounds where they would be too many.
#
# Where questions are alike, a participant has few sums. Where lengths differ, a participant has one for each question;
# these are then added up with bounds on the error. If the bounds leave a doubt about a participant's
# rank or digits, the sums of this participant are computed again.


MOST_WAITING = 1 << 20  # sums that wait to be added up
MOST_KEPT = 1 << 21  # sums that are kept without bounds: 0.2 GB


class SumRows(NamedTuple):
    """Sums of scores in contests of one rule set. names: of the contests. contest: index of each row's.

    question: code. sums: `question` in their rows has no meaning here. bounds: of participants with many sums; their
    owners are numbered as by `score_sums.owners_of`, with as many people as `count_people` returns.
    """

    names: list[str]
    contest: Int64Array
    question: Int64Array
    sums: SummedScores
    bounds: BoundedScores


Again = Callable[[], Iterable[SumRows]]  # computes all sums of all questions again, without bounds


def has_many_sums(facts: Facts, counts: Int64Array) -> bool:
    """Return whether the sums of scores on all questions can be more than are kept without bounds.

    counts: how many forecasts each question has, by code.
    """
    people, most = count_people(facts), 0
    entered = sum(int(counts[[*contest.entries]].sum()) for contest in facts.contests.values() if contest.entries)
    if entered <= MOST_KEPT:
        return False
    for names in contests_by_rules(facts, sorted(facts.contests)):
        contests = [facts.contests[name] for name in names]
        questions = scored_questions(facts, *contests)
        most += min(count_alike(contests[0].opened.rules, questions) * people, int(counts[questions.code].sum()))
    return most > MOST_KEPT


def sums_of_group(facts: Facts, group: ScoredGroup, *, bounded: bool) -> SumRows:
    """Return the sums of scores. bounded: a participant with many sums in a contest gets bounds, if they fit."""
    sums, bounds = summed(group.rules, group.questions, group.rows), NO_BOUNDS
    if bounded:
        with suppress(OverflowError):
            sums, bounds = with_bounds(group.rules, group.questions, sums, count_people(facts))
    question = sums.rows.question
    return SumRows(group.names, group.questions.contest[question], group.questions.code[question], sums, bounds)


class AddedScores:
    """Sums of the scores in contests of one rule set, which parts add to."""

    def __init__(self, facts: Facts, names: list[str], again: Again | None) -> None:
        """names: of the contests. again: used if bounds leave a doubt; None if no sum has bounds."""
        contests = [facts.contests[name] for name in names]
        self._names, self._rules, self._again = names, contests[0].opened.rules, again
        self._facts, self._width, self._people = facts, len(facts.questions), count_people(facts)
        self._questions = scored_questions(facts, *contests)
        self._sums, self._bounds = NO_SUMS, NO_BOUNDS
        self._waiting: list[tuple[SummedScores, BoundedScores]] = []
        self._waits = 0  # how many sums wait
        self._are_too_large = False  # for bounds: all are computed again, and none is kept until then
        self._marked: set[int] = set()  # owners that are marked: their bounds leave a doubt
        self._exact: list[SummedScores] = []  # theirs, computed again

    def add(self, parts: Iterable[SumRows]) -> None:
        """Add those of a part that are of these contests."""
        for sums, bounds in self._renumbered(parts):
            self._waiting.append((sums, bounds))
            self._waits += len(sums.over) + len(bounds.over)
        if self._waits > max(MOST_WAITING, len(self._sums.over) + len(self._bounds.over)):
            self._add_up()

    def total(self) -> ContestSums:
        """Return all sums together, once there are no doubts."""
        self._add_up()
        return self._total(self._terms)

    def _total(self, terms: TermsOf) -> ContestSums:
        return ContestSums(self._facts, self._names, self._questions, self._sums, self._bounds, self._people, terms)

    def _renumbered(self, parts: Iterable[SumRows]) -> Iterator[tuple[SummedScores, BoundedScores]]:
        """Yield sums with the index that their questions and contests have here."""
        for part in parts:
            if part.names[0] in self._names:
                number = _numbers(self._names, part.names)
                question = self._question_indices(number[part.contest], part.question)
                contest, owner = np.divmod(part.bounds.key, self._people * SLOTS)
                bounds = part.bounds._replace(key=number[contest] * self._people * SLOTS + owner)
                yield part.sums._replace(rows=part.sums.rows._replace(question=question)), bounds

    def _add_up(self) -> None:
        """Add up what waits; of one owner, either all sums have bounds or none has."""
        if not self._waiting:
            return
        sums, several = zip((self._sums, self._bounds), *self._waiting, strict=True)
        self._waiting, self._waits = [], 0
        if self._are_too_large:
            return
        self._sums = added(self._rules, self._questions, joined_sums(sums))
        if self._again is not None:
            try:
                bounds = joined_bounds(several)
                owners = np.unique(bounds.key // SLOTS)
                self._sums, more = with_bounds(self._rules, self._questions, self._sums, self._people, owners)
                self._bounds = joined_bounds([bounds, more])
            except OverflowError:
                self._sums, self._bounds, self._are_too_large = NO_SUMS, NO_BOUNDS, True

    def _question_indices(self, contest: Int64Array, question: Int64Array) -> Int64Array:
        """Return the index of rows' questions. contest: index. question: code."""
        questions, width = self._questions, self._width
        indices: Int64Array = np.searchsorted(questions.contest * width + questions.code, contest * width + question)
        return indices

    # --- sums whose bounds leave a doubt

    def has_doubts(self, look: Callable[[ContestSums], object]) -> bool:
        """Return whether sums have to be computed again, which `read_again` and `settle` then take.

        look: a trial build of the boards. Where bounds do not decide a comparison, it sees their midpoint, and the
        participant is marked for exact computation.
        """
        self._add_up()
        self._marked = set()
        if not self._are_too_large and len(self._bounds.key):
            look(self._total(self._middle))
        return self._are_too_large or bool(self._marked)

    def read_again(self, parts: Iterable[SumRows]) -> None:
        """Take the sums of the participants in doubt from a part that was computed again, without bounds."""
        marked = int64_array(sorted(self._marked))
        for sums, _ in self._renumbered(parts):
            self._exact.append(sums if self._are_too_large else self._of(sums, marked))

    def settle(self) -> None:
        """Replace the sums with bounds of the marked participants by their exact sums."""
        self._sums = added(self._rules, self._questions, joined_sums([self._sums, *self._exact]))
        stays = np.isin(self._bounds.key // SLOTS, int64_array(sorted(self._marked)), invert=True)
        self._bounds = self._bounds.where(stays)
        self._exact, self._are_too_large = [], False

    def _middle(self, owner: int, slot: int) -> list[tuple[int, int]]:
        """Note that the bounds of a sum leave a doubt; return the number in the middle of them."""
        self._marked.add(owner)
        return [self._bounds.sums.middle(int(np.searchsorted(self._bounds.key, owner * SLOTS + slot)))]

    def _terms(self, owner: int, slot: int) -> Iterator[tuple[int, int]]:
        """Yield the terms of a sum, computed again for a table that `look` did not build."""
        sums = joined_sums([NO_SUMS, *(self._of(sums, int64_array([owner])) for sums, _ in self._renumbered_again())])
        rows, groups = sums.rows, group_questions(self._questions)
        if slot == COVERAGE:
            rate_of, columns = coverage_terms(groups, rows)
        else:
            rows = rows.rows(np.flatnonzero(kinds_of(groups)[rows.question] == slot))
            rate_of, columns = score_terms(self._rules, groups, rows)
        for column in columns:
            yield from column.terms(rate_of, np.arange(len(rate_of)))

    def _renumbered_again(self) -> Iterator[tuple[SummedScores, BoundedScores]]:
        return self._renumbered(self._again() if self._again is not None else ())

    def _of(self, sums: SummedScores, owners: Int64Array) -> SummedScores:
        """Return the sums of some owners."""
        chosen = np.flatnonzero(np.isin(owners_of(self._questions, sums.rows, self._people), owners))
        return SummedScores(sums.rows.rows(chosen), sums.over[chosen])


def _numbers(names: list[str], some: list[str]) -> Int64Array:
    """Return the index of each of some names."""
    index = {name: number for number, name in enumerate(names)}
    return int64_array([index[name] for name in some])
