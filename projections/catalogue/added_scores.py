"""Sums of scores, which the parts of all questions add to: exact, or with bounds where they would be too many.

Where questions are alike, a participant has few sums. Where each has a length of its own, a participant has one for
each question; these are then added up with bounds on the error, and computed again where the bounds leave a doubt.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.model.rules import REFERENCE_ROWS
from forecast_ledger.projections.boards.contest_groups import ScoredGroup, by_contest, contests_by_rules
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
    summed,
    with_bounds,
)
from forecast_ledger.projections.boards.totals import Tally, tallies_of_bounds, tallies_of_sums
from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.core.quotient_sums import BoundedSums
from forecast_ledger.projections.core.sorting import stable_order
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.scores.coverage import QuestionGroups, group_questions
from forecast_ledger.projections.scores.scored_questions import scored_questions

MOST_WAITING = 1 << 20  # sums that wait to be added up
MOST_KEPT = 1 << 21  # sums that are kept without bounds: 0.2 GB


class SumRows(NamedTuple):
    """Sums of scores in contests of one rule set. names: of the contests. contest: index of each row's.

    question: code. sums: `question` in their rows has no meaning here. bounds: of those who have many sums; see
    `score_sums.owners_of`, with the index of the contest, and so many people as `count_people` returns.
    """

    names: list[str]
    contest: Int64Array
    question: Int64Array
    sums: SummedScores
    bounds: BoundedScores


Again = Callable[[], Iterable[SumRows]]  # computes all sums of all questions again, without bounds


def count_people(facts: Facts) -> int:
    """Return how many can have a score: participants and reference forecasters."""
    return len(facts.participant_codes.codes) + len(REFERENCE_ROWS)


def has_many_sums(facts: Facts, counts: Int64Array) -> bool:
    """Return whether the sums of scores on all questions can be more than are kept without bounds.

    counts: how many forecasts each question has, by code.
    """
    people, most = count_people(facts), 0
    for names in contests_by_rules(facts, sorted(facts.contests)):
        contests = [facts.contests[name] for name in names]
        questions = scored_questions(facts, *contests)
        most += min(count_alike(contests[0].opened.rules, questions) * people, int(counts[questions.code].sum()))
    return most > MOST_KEPT


def sums_of_group(facts: Facts, group: ScoredGroup, *, bounded: bool) -> SumRows:
    """Return the sums of scores; bounded: those of who has many in a contest with bounds, if they fit."""
    sums, bounds = summed(group.rules, group.questions, group.rows), NO_BOUNDS
    if bounded:
        with suppress(OverflowError):
            sums, bounds = with_bounds(group.rules, group.questions, sums, count_people(facts))
    question = sums.rows.question
    return SumRows(group.names, group.questions.contest[question], group.questions.code[question], sums, bounds)


class AddedScores:
    """Sums of the scores in contests of one rule set, which parts add to."""

    def __init__(self, facts: Facts, names: list[str], again: Again | None) -> None:
        """names: of the contests. again: for sums whose bounds leave a doubt; None if none may have bounds."""
        contests = [facts.contests[name] for name in names]
        self._names, self._rules, self._again = names, contests[0].opened.rules, again
        self._width, self._consensus = len(facts.questions), len(facts.participant_codes.codes)
        self._people = count_people(facts)
        self._questions = scored_questions(facts, *contests)
        self._sums, self._bounds = NO_SUMS, NO_BOUNDS
        self._waiting: list[tuple[SummedScores, BoundedScores]] = []
        self._waits = 0  # how many sums wait
        self._are_too_large = False  # for bounds: they are computed again
        self._reread: _Reread | None = None

    def add(self, parts: Iterable[SumRows]) -> None:
        """Add those of a part that are of these contests."""
        for sums, bounds in self._placed(parts):
            self._waiting.append((sums, bounds))
            self._waits += len(sums.over) + len(bounds.over)
        if self._waits > max(MOST_WAITING, len(self._sums.over)):
            self._add_up()

    def tallies(self) -> dict[str, Tally]:
        """Return the tally of each contest."""
        self._add_up()
        if self._are_too_large:
            everything = joined_sums([NO_SUMS, *(sums for sums, _ in self._placed_again())])
            self._sums, self._bounds = added(self._rules, self._questions, everything), NO_BOUNDS
        exact = tallies_of_sums(self._rules, self._questions, self._sums, self._consensus, self._questions.contest)
        found = by_contest(self._names, exact)
        for number, tally in tallies_of_bounds(self._bounds, self._consensus, self._people, self._terms).items():
            name = self._names[number]
            found[name] = found[name].plus(tally)
        return found

    def _placed(self, parts: Iterable[SumRows]) -> Iterator[tuple[SummedScores, BoundedScores]]:
        """Yield sums with the index that their questions and contests have here."""
        for part in parts:
            if part.names[0] in self._names:
                number = _numbers(self._names, part.names)
                question = self._places(number[part.contest], part.question)
                contest, owner = np.divmod(part.bounds.key, self._people * SLOTS)
                bounds = part.bounds._replace(key=number[contest] * self._people * SLOTS + owner)
                yield part.sums._replace(rows=part.sums.rows._replace(question=question)), bounds

    def _add_up(self) -> None:
        """Add up what waits; of one owner, either all sums have bounds or none has."""
        sums, several = zip((self._sums, self._bounds), *self._waiting, strict=True)
        self._waiting, self._waits = [], 0
        self._sums = added(self._rules, self._questions, joined_sums(sums))
        if self._again is not None:
            try:
                bounds = joined_bounds(several)
                owners = np.unique(bounds.key // SLOTS)
                self._sums, more = with_bounds(self._rules, self._questions, self._sums, self._people, owners)
                self._bounds = joined_bounds([bounds, more])
            except OverflowError:
                self._sums, self._bounds, self._are_too_large = NO_SUMS, NO_BOUNDS, True

    def _places(self, contest: Int64Array, question: Int64Array) -> Int64Array:
        """Return the index of rows' questions. contest: index. question: code."""
        questions, width = self._questions, self._width
        places: Int64Array = np.searchsorted(questions.contest * width + questions.code, contest * width + question)
        return places

    # --- sums whose bounds leave a doubt

    def _terms(self, owner: int, slot: int) -> Iterator[tuple[int, int]]:
        """Yield what a sum is made of."""
        rows = self._read_again(owner).rows
        if slot == COVERAGE:
            place, columns = coverage_terms(self._groups, rows)
        else:
            rows = rows.rows(np.flatnonzero(kinds_of(self._groups)[rows.question] == slot))
            place, columns = score_terms(self._rules, self._groups, rows)
        for column in columns:
            yield from column.terms(place, np.arange(len(place)))

    def _read_again(self, owner: int) -> SummedScores:
        """Return all sums of an owner, without bounds.

        All scores are computed again the first time, and the sums kept of owners whose bounds overlap. If another one's
        are asked for later, they are computed once more, and all are kept.
        """
        if self._reread is None:
            self._reread = self._kept_of(np.union1d(_overlapping(self._bounds, self._people), [owner]))
        if (found := self._reread.of(owner)) is None:
            self._reread = self._kept_of(np.unique(self._bounds.key // SLOTS))
            found = self._reread.of(owner)
        assert found is not None  # noqa: S101 - it has bounds, and all that have are kept now
        return found

    def _placed_again(self) -> Iterator[tuple[SummedScores, BoundedScores]]:
        return self._placed(self._again() if self._again is not None else ())

    def _kept_of(self, owners: Int64Array) -> "_Reread":
        """Compute all sums again, and keep those of some owners."""
        kept = [NO_SUMS]
        for sums, _ in self._placed_again():
            own = np.flatnonzero(np.isin(owners_of(self._questions, sums.rows, self._people), owners))
            kept.append(SummedScores(sums.rows.rows(own), sums.over[own]))
        sums = joined_sums(kept)
        owner = owners_of(self._questions, sums.rows, self._people)
        order = stable_order(owner)
        sums = SummedScores(sums.rows.rows(order), sums.over[order])
        return _Reread(owners, np.searchsorted(owner[order], owners), sums)

    @cached_property
    def _groups(self) -> QuestionGroups:
        return group_questions(self._questions)


class _Reread(NamedTuple):
    """Sums of some owners, owner after owner. begins: where those of each begin."""

    owners: Int64Array
    begins: Int64Array
    sums: SummedScores

    def of(self, owner: int) -> SummedScores | None:
        """Return the sums of an owner; None if it is not one of these."""
        place = int(np.searchsorted(self.owners, owner))
        if place == len(self.owners) or self.owners[place] != owner:
            return None
        begin, end = np.append(self.begins, len(self.sums.over))[place : place + 2]
        return SummedScores(self.sums.rows.rows(np.arange(begin, end)), self.sums.over[begin:end])


def _overlapping(bounds: BoundedScores, people: int) -> Int64Array:
    """Return the owners whose score on a kind of questions of a contest has bounds that overlap another's."""
    scores = np.flatnonzero(bounds.key % SLOTS != COVERAGE)
    owner, slot = np.divmod(bounds.key[scores], SLOTS)
    sums = BoundedSums(bounds.sums.low[scores], bounds.sums.width[scores])
    return np.unique(owner[sums.overlapping(owner // people * SLOTS + slot)])


def _numbers(names: list[str], some: list[str]) -> Int64Array:
    """Return the index of each of some names."""
    index = {name: number for number, name in enumerate(names)}
    return int64_array([index[name] for name in some])
