"""Tasks: questions whose forecasts are read and scored together, by any process that has the frame of the log."""

import itertools
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from forecast_ledger.projections.core.arrays import Int64Array, stable_order
from forecast_ledger.projections.facts.columns import Facts, ForecastPage
from forecast_ledger.projections.facts.question_facts import (
    FactsByQuestion,
    QuestionFacts,
    with_questions,
    without_questions,
)
from forecast_ledger.projections.tables.question_parts import QuestionPart, score
from forecast_ledger.replay.engines.log_frame import LogFrame, SealedForecasts, read_forecasts_on

FORECASTS = 1 << 17  # of a task, about; any number gives the same results
_OF_EACH = 1 << 12  # forecasts of a task in each segment: fewer are a small part of what is read for them


class Task(NamedTuple):
    """Some questions, by code, the facts about them, and the forecasts on them that are not in segments.

    The questions of `own` and `rest` are numbered from 0.
    """

    questions: Int64Array
    own: QuestionFacts
    rest: list[ForecastPage]


class Shared(NamedTuple):
    """What all tasks need; it can be pickled.

    facts: without questions. sealed: where the forecasts in segments are. wanted: see `question_parts.needed`.
    """

    facts: Facts
    sealed: SealedForecasts
    wanted: frozenset[str]

    def score(self, task: Task) -> QuestionPart:
        """Return the part of a task's questions. Raises Corrupt, Unavailable."""
        facts = with_questions(self.facts, task.own)
        forecasts = read_forecasts_on(facts, self.sealed, np.arange(len(facts.questions)), task.rest)
        return score(replace(facts, forecasts=forecasts), self.wanted).numbered(task.questions)


def shared_by_tasks(frame: LogFrame, wanted: frozenset[str]) -> Shared:
    """Return what all tasks of a log need."""
    return Shared(without_questions(frame.frame.facts), frame.sealed, wanted)


def task_size(frame: LogFrame) -> int:
    """Return about how many forecasts are scored together: more if they are in many segments."""
    return min(max(FORECASTS, _OF_EACH * len(frame.sealed.segments)), 4 * FORECASTS)


def divide(
    frame: LogFrame, size: int = FORECASTS, of: Collection[int] | None = None, power: int = 1
) -> list[Int64Array]:
    """Return the questions of a log, by code, in parts of about one size, or of one question that is larger.

    The questions of a part are neighbours in the order of ids, as in segments. size: the sum over its questions of the
    number of their forecasts to this power. of: some questions, if not all.
    """
    labels = frame.frame.facts.question_codes.labels
    order = np.array(sorted(range(len(labels)) if of is None else of, key=labels.__getitem__), np.int64)
    sizes = frame.frame.counts[order] ** power
    before = np.cumsum(sizes) - sizes
    return np.split(order, np.flatnonzero(np.diff(before // size)) + 1) if len(order) else []


def tasks(
    frame: LogFrame, parts: list[Int64Array], contest: str | None = None, facts: FactsByQuestion | None = None
) -> Iterator[Task]:
    """Yield a task for each part of questions of a log.

    contest: the only one in which they are scored. facts: those of the log, if they are at hand.
    """
    facts = FactsByQuestion(frame.frame.facts) if facts is None else facts
    for part, rest in zip(parts, _rest_of(frame, parts), strict=True):
        yield Task(part, facts.on(part.tolist(), contest), rest)


def _rest_of(frame: LogFrame, parts: list[Int64Array]) -> Iterator[list[ForecastPage]]:
    """Yield the forecasts that are not in segments on the questions of each part, which are numbered from 0."""
    rest = frame.frame.rest
    if not rest:
        yield from ([] for _ in parts)
        return
    whole = ForecastPage(*map(np.concatenate, zip(*rest, strict=True)))
    task_of, place = np.full((2, len(frame.frame.counts)), -1)  # a question of no part
    for number, part in enumerate(parts):
        task_of[part], place[part] = number, np.arange(len(part))
    own, whole = task_of[whole.question], whole._replace(question=place[whole.question])
    order = stable_order(own)
    limits = np.searchsorted(own[order], np.arange(len(parts) + 1)).tolist()
    start = np.cumsum(whole.lengths) - whole.lengths
    for first, end in itertools.pairwise(limits):
        rows = order[first:end]
        size = whole.lengths[rows]
        inside = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        *each, numbers = whole
        own_numbers = numbers[np.repeat(start[rows], size) + inside]
        yield [ForecastPage._make([*(column[rows] for column in each), own_numbers])] if len(rows) else []
