"""Results divided by question: what rests on the forecasts on some questions, and how such parts make the whole."""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.model.rules import NEVER_LATE
from forecast_ledger.projections.boards.added_scores import (
    MOST_WAITING,
    AddedScores,
    ScoredByRules,
    SumRows,
    questions_by_rules,
    sums_of_group,
)
from forecast_ledger.projections.boards.brier import BrierSums, GroupSums, OwnerSums
from forecast_ledger.projections.boards.contest_groups import ContestSums, SummedSamples, add_samples, contests_by_rules
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.columns import Ids, Values, join_values, used_ids
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.tables.analysis import CachedResults
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections

SUMS, SAMPLES = "sums", "samples"  # of scores; of Brier scores
BOUNDS = "bounds"  # with SUMS: bounds replace the sums of participants with many
_BY_QUESTION = frozenset({"forecasts", "receipts", "scores"})  # divisions of tables whose rows are of one question each
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
    """Return whether each row of a table depends only on the forecasts on its question.

    >>> is_by_question("standing"), is_by_question("leaderboard")
    (True, False)
    """
    return CATALOGUE[table].division in _BY_QUESTION and not CATALOGUE[table].whole


def needs_recorded_at(facts: Facts, wanted: AbstractSet[str]) -> bool:
    """Return whether parts depend on when forecasts were recorded: sums do only if a rule set or question says so."""
    rules = [contest.opened.rules for contest in facts.contests.values()]
    by_clock = any(each.clock == "recorded" or each.late_minutes != NEVER_LATE for each in rules)
    return not wanted <= {SUMS, BOUNDS} or by_clock or bool(facts.changed)


class QuestionPart(NamedTuple):
    """What rests on the forecasts on some questions. tables: the columns of some tables."""

    sums: list[SumRows]
    samples: list[SummedSamples]
    tables: dict[str, list[Values]]

    def numbered(self, codes: Int64Array) -> "QuestionPart":
        """Return the part with the codes that its questions, numbered from 0, have in the whole log."""
        return self._replace(sums=[rows._replace(question=codes[rows.question]) for rows in self.sums])


def score(facts: Facts, wanted: AbstractSet[str], scored: Sequence[ScoredByRules] = ()) -> QuestionPart:
    """Return the part of all questions of these facts, which can be pickled.

    facts: of some questions of a log, with all forecasts on these. wanted: see `needed`. scored: what
    `questions_by_rules` returns of these facts, if it is at hand.
    """
    contests = {name: contest for name, contest in facts.contests.items() if contest.entries}
    cached = CachedResults(questions={tuple(names): questions for names, questions in scored})
    projections = Projections(replace(facts, contests=contests), cached=cached)
    names = sorted(wanted - {SUMS, SAMPLES, BOUNDS})
    tables = {name: [*map(_sent, CATALOGUE[name].build(projections))] for name in names}
    return QuestionPart(
        [sums_of_group(facts, group, bounded=BOUNDS in wanted) for group in projections.summed_groups()]
        if SUMS in wanted
        else [],
        [group.summed() for group in projections.sampled_groups if len(group.contest)] if SAMPLES in wanted else [],
        tables,
    )


def _build_boards(facts: Facts, sums: ContestSums) -> None:
    """Build the tables that are computed from the sums of scores in some contests."""
    narrowed = replace(facts, contests={name: facts.contests[name] for name in sums.names})
    projections = Projections(narrowed, cached=CachedResults(sums=dict.fromkeys(sums.names, sums)))
    for name, projection in CATALOGUE.items():
        if projection.division == "boards" and not projection.on_request:
            projections.table(name)


def _sent(values: Values) -> Values:
    """Return values without labels of ids that no row has."""
    return used_ids(values) if isinstance(values, Ids) else values


def finish(
    facts: Facts,
    parts: Iterable[QuestionPart],
    wanted: AbstractSet[str],
    again: Callable[[], Iterable[QuestionPart]],
    scored: Sequence[ScoredByRules] = (),
) -> CachedResults:
    """Return the results that the parts of all questions make, in whatever order and division.

    facts: with or without forecasts. wanted: as for the parts. Sums are added up while parts come, so that few of them
    are in memory. again: computes the parts again, with SUMS alone. It is called if bounds leave a doubt about a row of
    the boards. scored: what `questions_by_rules` returns, if it is at hand and SUMS are wanted.
    """
    groups = contests_by_rules(facts, sorted(facts.contests))

    def sums_again() -> Iterable[SumRows]:
        return (sums for part in again() for sums in part.sums)

    repeated = sums_again if BOUNDS in wanted else None
    questions = (scored or questions_by_rules(facts)) if SUMS in wanted else []
    sums = [AddedScores(facts, *each, repeated) for each in questions]
    samples = [_Samples(names, len(facts.participant_codes.codes) + 1) for names in groups] if SAMPLES in wanted else []
    tables: dict[str, list[list[Values]]] = {}
    for part in parts:
        for group in sums:
            group.add(part.sums)
        for each in samples:
            each.add(part.samples)
        for name, columns in part.tables.items():
            tables.setdefault(name, []).append(columns)
    results = CachedResults()
    unsettled = sums if repeated else []
    while unsettled := [group for group in unsettled if group.has_doubts(partial(_build_boards, facts))]:
        for part in again():
            for group in unsettled:
                group.read_again(part.sums)
        for group in unsettled:
            group.settle()
    for group in sums:
        total_sums = group.total()
        results.sums |= dict.fromkeys(total_sums.names, total_sums)
    results.samples = [each.total() for each in samples]
    results.columns = {name: _joined(pages) for name, pages in tables.items()}
    return results


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
        if sum(map(_size, self._waiting)) > max(MOST_WAITING, _size(self._sums)):
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
