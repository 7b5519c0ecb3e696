"""Sums of scores, which the parts of all questions add to: exact, or with bounds where they would be too many.

Where questions are alike, a participant has few sums. Where lengths differ, a participant has one for each question;
these are then added up with bounds on the error. If the bounds leave a doubt about a participant's rank or digits, the
sums of this participant are computed again.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from forecast_ledger.projections.boards.contest_groups import (
    ContestSums,
    SummedGroup,
    contests_by_rules,
    numbers_of,
)
from forecast_ledger.projections.boards.owner_sums import count_people
from forecast_ledger.projections.boards.score_sums import (
    COVERAGE,
    NO_BOUNDS,
    NO_SUMS,
    SLOTS,
    BoundedScores,
    SummedScores,
    added,
    count_alike,
    coverage_terms,
    joined_bounds,
    joined_sums,
    kinds_of,
    owners_of,
    score_terms,
    with_bounds,
)
from forecast_ledger.projections.boards.totals import TermsOf
from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.scores.scored_questions import Questions, scored_questions

MOST_WAITING = 1 << 17  # sums that wait to be added up, of 64 bytes each
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


ScoredByRules = tuple[list[str], Questions]  # the ids of the contests of a rule set, and the questions that they score
Again = Callable[[], Iterable[SumRows]]  # computes all sums of all questions again, without bounds


def questions_by_rules(facts: Facts) -> list[ScoredByRules]:
    """Return the ids of the contests of each rule set, and the questions that they score."""
    groups = contests_by_rules(facts, sorted(facts.contests))
    return [(names, scored_questions(facts, *(facts.contests[name] for name in names)).compact()) for names in groups]


def has_many_sums(facts: Facts, groups: Iterable[ScoredByRules], counts: Int64Array) -> bool:
    """Return whether the sums of scores on all questions can be more than are kept without bounds.

    groups: what `questions_by_rules` returns. counts: how many forecasts each question has, by code.
    """
    people, most = count_people(facts), 0
    entered = sum(int(counts[[*contest.entries]].sum()) for contest in facts.contests.values() if contest.entries)
    if entered <= MOST_KEPT:
        return False
    for names, questions in groups:
        alike = count_alike(facts.contests[names[0]].opened.rules, questions)
        most += min(alike * people, int(counts[questions.code].sum()))
    return most > MOST_KEPT


def sums_of_group(facts: Facts, group: SummedGroup, *, bounded: bool) -> SumRows:
    """Return the sums of scores. bounded: a participant with many sums in a contest gets bounds, if they fit."""
    sums, bounds = group.sums, NO_BOUNDS
    if bounded:
        with suppress(OverflowError):
            sums, bounds = with_bounds(group.rules, group.questions, sums, count_people(facts))
    question = sums.rows.question
    return SumRows(group.names, group.questions.contest[question], group.questions.code[question], sums, bounds)


class AddedScores:
    """Sums of the scores in contests of one rule set, which parts add to."""

    def __init__(self, facts: Facts, names: list[str], questions: Questions, again: Again | None) -> None:
        """names: of the contests. again: used if bounds leave a doubt; None if no sum has bounds."""
        self._names, self._rules, self._again = names, facts.contests[names[0]].opened.rules, again
        self._facts, self._width, self._people = facts, len(facts.questions), count_people(facts)
        self._questions = questions
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
                number = numbers_of(self._names, part.names)
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
        rows, groups = sums.rows, self._questions.groups
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
