"""Results divided by question: what rests on the forecasts on some questions, and how such parts make the whole."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from forecast_ledger.projections.boards.brier import Sample
from forecast_ledger.projections.boards.contest_groups import SampledGroup, ScoredGroup, contests_by_rules
from forecast_ledger.projections.catalogue.catalogue import BUILT, CATALOGUE
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.core.column_values import Ids, Values, concatenate, join_ids, used_ids
from forecast_ledger.projections.core.sorting import stable_order
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.scored_questions import Questions, scored_questions
from forecast_ledger.projections.scores.time_weighted import Scores
from forecast_ledger.projections.tables.analysis import CachedResults

# The tables whose rows rest on the forecasts on one question each, and on nothing that is computed from others.
BY_QUESTION = tuple(name for name in BUILT if {"forecasts", "own_forecasts"}.intersection(CATALOGUE[name].reads))


class ScoreRows(NamedTuple):
    """Scores in contests of one rule set. names: of the contests. contest: index of each row's. question: its code."""

    names: list[str]
    contest: Int64Array
    question: Int64Array
    rows: Scores


class QuestionPart(NamedTuple):
    """What rests on the forecasts on some questions. tables: the columns of those of BY_QUESTION."""

    scores: list[ScoreRows]
    samples: list[SampledGroup]
    tables: dict[str, list[Values]]


def score(facts: Facts, questions: Int64Array) -> QuestionPart:
    """Return the part of some questions, by code, which can be pickled.

    facts: with the forecasts on these questions, and no others.
    """
    chosen = {*questions.tolist()}
    contests = {name: some for name, each in facts.contests.items() if (some := _on(each, chosen)).entries}
    projections = Projections(replace(facts, contests=contests))
    return QuestionPart(
        [_score_rows(group) for group in projections.scored_groups],
        [group for group in projections.sampled_groups if len(group.contest)],
        {name: [_sent(values) for values in CATALOGUE[name].build(projections)] for name in BY_QUESTION},
    )


def _on(contest: Contest, questions: set[int]) -> Contest:
    """Return a contest with only these of its questions."""
    return replace(contest, entries={code: contest.entries[code] for code in contest.entries.keys() & questions})


def _score_rows(group: ScoredGroup) -> ScoreRows:
    question = group.rows.question
    return ScoreRows(group.names, group.questions.contest[question], group.questions.code[question], group.rows)


def _sent(values: Values) -> Values:
    """Return values without labels of ids that no row has."""
    return used_ids(values) if isinstance(values, Ids) else values


def finish(facts: Facts, parts: Iterable[QuestionPart]) -> CachedResults:
    """Return the results that the parts of all questions make, in whatever order and division.

    facts: with or without forecasts.
    """
    every = [*parts]
    groups = contests_by_rules(facts, sorted(facts.contests))
    group_of = {name: number for number, names in enumerate(groups) for name in names}
    scores, samples = ([list[ScoreRows]() for _ in groups], [list[SampledGroup]() for _ in groups])
    for part in every:
        for rows in part.scores:
            scores[group_of[rows.names[0]]].append(rows)
        for sample in part.samples:
            samples[group_of[sample.names[0]]].append(sample)
    return CachedResults(
        scored=[_scored(facts, names, found) for names, found in zip(groups, scores, strict=True)],
        sampled=[_sampled(facts, names, found) for names, found in zip(groups, samples, strict=True)],
        columns={name: _joined([part.tables[name] for part in every]) for name in BY_QUESTION} if every else {},
    )


def _scored(facts: Facts, names: list[str], parts: Sequence[ScoreRows]) -> ScoredGroup:
    contests = [facts.contests[name] for name in names]
    questions = scored_questions(facts, *contests)
    places = [_places(facts, questions, _numbers(names, part.names)[part.contest], part.question) for part in parts]
    none = np.zeros(0, np.int64)
    place, participant, covered, hidden = (
        np.concatenate([none, *columns])
        for columns in (places, *([getattr(part.rows, name) for part in parts] for name in _COLUMNS))
    )
    words = zip(WideInt(none, none, none), *(part.rows.numerator for part in parts), strict=True)
    numerator = WideInt(*(np.concatenate(pages) for pages in words))
    rows = Scores(place, participant, numerator, covered, hidden)
    return ScoredGroup(names, contests, questions, rows.rows(stable_order(place)))


_COLUMNS = ("participant", "covered", "covered_hidden")


def _numbers(names: list[str], some: list[str]) -> Int64Array:
    """Return the index of each of some names."""
    index = {name: number for number, name in enumerate(names)}
    return int64_array([index[name] for name in some])


def _places(facts: Facts, questions: Questions, contest: Int64Array, question: Int64Array) -> Int64Array:
    """Return the index of rows' questions. contest: index. question: code."""
    width = len(facts.questions)
    places: Int64Array = np.searchsorted(questions.contest * width + questions.code, contest * width + question)
    return places


def _sampled(facts: Facts, names: list[str], parts: Sequence[SampledGroup]) -> SampledGroup:
    none = np.zeros(0, np.int64)
    contest = np.concatenate([none, *(_numbers(names, part.names)[part.contest] for part in parts)])
    empty = Sample(none, none, none, np.zeros(0, bool))
    columns = zip(empty, *(part.sample for part in parts), strict=True)
    sample = Sample(*(np.concatenate(pages) for pages in columns))
    return SampledGroup(names, contest, sample, len(facts.participant_codes.codes) + 1)


def _joined(parts: Sequence[list[Values]]) -> list[Values]:
    """Return the columns of parts of one table as those of the whole; its rows are not in order."""
    return [_column(pages) for pages in zip(*parts, strict=True)]


def _column(pages: Sequence[Values]) -> Values:
    found = [page for page in pages if isinstance(page, Ids)]
    if len(found) == len(pages):
        return join_ids(found)
    return concatenate([page for page in pages if not isinstance(page, Ids)])
