"""Results divided by question: what rests on the forecasts on some questions, and how such parts make the whole."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from forecast_ledger.projections.boards.brier_sums import BrierSums, GroupSums, OwnerSums
from forecast_ledger.projections.boards.contest_groups import (
    ScoredGroup,
    SummedSamples,
    add_samples,
    by_contest,
    contests_by_rules,
)
from forecast_ledger.projections.boards.score_sums import SummedScores, added, summed
from forecast_ledger.projections.boards.totals import Tally, tallies_of_sums
from forecast_ledger.projections.catalogue.catalogue import CATALOGUE
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.core.column_values import Ids, Values, join_values, used_ids
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.scores.scored_questions import scored_questions
from forecast_ledger.projections.scores.time_weighted import Scores
from forecast_ledger.projections.tables.analysis import CachedResults

SUMS, SAMPLES = "sums", "samples"  # of scores; of Brier scores
_BY_QUESTION = frozenset({"forecasts", "receipts", "scores"})  # divisions of tables whose rows are of one question each
MOST_SUMS = 1 << 20  # that wait to be added up
ACCOUNTS = "portfolios"  # the division of tables whose rows are of one account each
_MADE_OF = {"boards": SUMS, "brier_scores": SAMPLES, "brier_overall": SAMPLES}  # by the division of a table


def needed(tables: Iterable[str]) -> frozenset[str]:
    """Return what rests on forecasts in these tables of a replay: SUMS, SAMPLES, or a table whose rows do.

    >>> sorted(needed(["leaderboard", "prizes", "scores", "contests"]))
    ['scores', 'sums']
    """
    made = {name: _MADE_OF.get(CATALOGUE[name].division) for name in tables}
    by_question = (name for name in made if is_by_question(name) and not CATALOGUE[name].on_request)
    return frozenset([*filter(None, made.values()), *by_question])


def is_by_question(table: str) -> bool:
    """Return whether each row of a table rests on the forecasts on its own question alone.

    >>> is_by_question("standing"), is_by_question("leaderboard")
    (True, False)
    """
    return CATALOGUE[table].division in _BY_QUESTION and not CATALOGUE[table].whole


class SumRows(NamedTuple):
    """Sums of scores in contests of one rule set. names: of the contests. contest: index of each row's.

    question: code. sums: `question` in their rows has no meaning here.
    """

    names: list[str]
    contest: Int64Array
    question: Int64Array
    sums: SummedScores


class QuestionPart(NamedTuple):
    """What rests on the forecasts on some questions. tables: the columns of some tables."""

    sums: list[SumRows]
    samples: list[SummedSamples]
    tables: dict[str, list[Values]]

    def numbered(self, codes: Int64Array) -> "QuestionPart":
        """Return the part with the codes that its questions, numbered from 0, have in the whole log."""
        return self._replace(sums=[rows._replace(question=codes[rows.question]) for rows in self.sums])


def score(facts: Facts, wanted: AbstractSet[str]) -> QuestionPart:
    """Return the part of all questions of these facts, which can be pickled.

    facts: of some questions of a log, with all forecasts on these. wanted: see `needed`.
    """
    contests = {name: contest for name, contest in facts.contests.items() if contest.entries}
    projections = Projections(replace(facts, contests=contests))
    return QuestionPart(
        [_sums(group) for group in projections.scored_groups] if SUMS in wanted else [],
        [group.summed() for group in projections.sampled_groups if len(group.contest)] if SAMPLES in wanted else [],
        {name: [*map(_sent, CATALOGUE[name].build(projections))] for name in sorted(wanted - {SUMS, SAMPLES})},
    )


def _sums(group: ScoredGroup) -> SumRows:
    sums = summed(group.rules, group.questions, group.rows)
    question = sums.rows.question
    return SumRows(group.names, group.questions.contest[question], group.questions.code[question], sums)


def _sent(values: Values) -> Values:
    """Return values without labels of ids that no row has."""
    return used_ids(values) if isinstance(values, Ids) else values


def finish(facts: Facts, parts: Iterable[QuestionPart], wanted: AbstractSet[str]) -> CachedResults:
    """Return the results that the parts of all questions make, in whatever order and division.

    facts: with or without forecasts. wanted: as for the parts. Sums are added up while parts come, so that few of them
    are in memory where questions are alike.
    """
    groups = contests_by_rules(facts, sorted(facts.contests))
    sums = [_Sums(facts, names) for names in groups] if SUMS in wanted else []
    samples = [_Samples(names, len(facts.participant_codes.codes) + 1) for names in groups] if SAMPLES in wanted else []
    tables: dict[str, list[list[Values]]] = {}
    for part in parts:
        for group in sums:
            group.add(part.sums)
        for each in samples:
            each.add(part.samples)
        for name, columns in part.tables.items():
            tables.setdefault(name, []).append(columns)
    found = CachedResults()
    for group in sums:
        found.tallies |= group.tallies()
    for each in samples:
        total = each.total()
        found.aggregates |= total.aggregates()
        found.calibration |= total.calibration()
    found.columns = {name: _joined(pages) for name, pages in tables.items()}
    return found


class _Sums:
    """Sums of the scores in contests of one rule set, which parts add to."""

    def __init__(self, facts: Facts, names: list[str]) -> None:
        contests = [facts.contests[name] for name in names]
        self._names, self._rules = names, contests[0].opened.rules
        self._width, self._consensus = len(facts.questions), len(facts.participant_codes.codes)
        self._questions = scored_questions(facts, *contests)
        none = np.zeros(0, np.int64)
        self._sums = SummedScores(Scores(none, none, WideInt(none, none, none), none, none), none)
        self._waiting: list[SummedScores] = []
        self._rows = 0  # of those that wait

    def add(self, parts: Iterable[SumRows]) -> None:
        """Add those of a part that are of these contests."""
        for part in parts:
            if part.names[0] in self._names:
                place = self._places(_numbers(self._names, part.names)[part.contest], part.question)
                self._waiting.append(part.sums._replace(rows=part.sums.rows._replace(question=place)))
                self._rows += len(place)
        if self._rows > max(MOST_SUMS, len(self._sums.over)):
            self._add_up()

    def tallies(self) -> dict[str, Tally]:
        """Return the tally of each contest."""
        self._add_up()
        part = self._questions.contest
        return by_contest(self._names, tallies_of_sums(self._rules, self._questions, self._sums, self._consensus, part))

    def _add_up(self) -> None:
        every = [self._sums, *self._waiting]
        numerator = WideInt(*map(np.concatenate, zip(*(each.rows.numerator for each in every), strict=True)))
        names = ("question", "participant", "covered", "covered_hidden")
        columns = {name: np.concatenate([getattr(each.rows, name) for each in every]) for name in names}
        rows = Scores(numerator=numerator, **columns)
        over = np.concatenate([each.over for each in every])
        self._sums = added(self._rules, self._questions, SummedScores(rows, over))
        self._waiting, self._rows = [], 0

    def _places(self, contest: Int64Array, question: Int64Array) -> Int64Array:
        """Return the index of rows' questions. contest: index. question: code."""
        questions, width = self._questions, self._width
        places: Int64Array = np.searchsorted(questions.contest * width + questions.code, contest * width + question)
        return places


def _numbers(names: list[str], some: list[str]) -> Int64Array:
    """Return the index of each of some names."""
    index = {name: number for number, name in enumerate(names)}
    return int64_array([index[name] for name in some])


class _Samples:
    """Sums of the Brier samples in contests of one rule set, which parts add to."""

    def __init__(self, names: list[str], owners: int) -> None:
        none = np.zeros(0, np.int64)
        sums = BrierSums(GroupSums(none, none, none), OwnerSums(none, none, WideInt(none, none, none)))
        self._names, self._sums = names, SummedSamples(names, owners, none, sums)
        self._waiting: list[SummedSamples] = []

    def add(self, parts: Iterable[SummedSamples]) -> None:
        """Add those of a part that are of these contests."""
        self._waiting += [part for part in parts if part.names[0] in self._names]
        if sum(map(_size, self._waiting)) > max(MOST_SUMS, _size(self._sums)):
            self.total()

    def total(self) -> SummedSamples:
        """Return all sums together."""
        self._sums = add_samples(self._names, [self._sums, *self._waiting])
        self._waiting = []
        return self._sums


def _size(samples: SummedSamples) -> int:
    return len(samples.sums.groups.key)


def _joined(parts: Sequence[list[Values]]) -> list[Values]:
    """Return the columns of parts of one table as those of the whole; its rows are not in order."""
    return [*map(join_values, zip(*parts, strict=True))]
