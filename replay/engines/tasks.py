"""Tasks: questions whose forecasts are read and scored together, by any process that has the frame of the log."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from forecast_ledger.projections.catalogue.question_parts import QuestionPart, score
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.sorting import stable_order
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.from_log import ForecastColumns
from forecast_ledger.replay.engines.log_frame import LogFrame, SealedForecasts, read_forecasts_on

FORECASTS = 1 << 17  # of a task, about; any number gives the same results
_OF_EACH = 1 << 12  # forecasts of a task in each segment: fewer are a small part of what is read for them


class Task(NamedTuple):
    """Some questions, by code, and the forecasts on them that are not in segments."""

    questions: Int64Array
    rest: list[ForecastColumns]


class Shared(NamedTuple):
    """What all tasks need; it can be pickled.

    facts: without forecasts. sealed: where those in segments are. wanted: see `question_parts.needed`.
    """

    facts: Facts
    sealed: SealedForecasts
    wanted: frozenset[str]

    def score(self, task: Task) -> QuestionPart:
        """Return the part of a task's questions. Raises Corrupt, Unavailable."""
        forecasts = read_forecasts_on(self.facts, self.sealed, *task)
        return score(replace(self.facts, forecasts=forecasts), task.questions, self.wanted)


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


def tasks(frame: LogFrame, parts: list[Int64Array]) -> Iterator[Task]:
    """Yield a task for each part of questions of a log."""
    rest = frame.frame.rest
    if not rest:
        yield from (Task(part, []) for part in parts)
        return
    *columns, lengths, numbers = map(np.concatenate, zip(*rest, strict=True))
    task_of = np.full(len(frame.frame.counts), -1)  # a question of no part
    for number, part in enumerate(parts):
        task_of[part] = number
    own = task_of[columns[3]]
    order = stable_order(own)
    limits = np.searchsorted(own[order], np.arange(len(parts) + 1)).tolist()
    start = np.cumsum(lengths) - lengths
    for part, first, end in zip(parts, limits, limits[1:], strict=False):
        rows = order[first:end]
        size = lengths[rows]
        inside = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        forecasts = (*(column[rows] for column in columns), size, numbers[np.repeat(start[rows], size) + inside])
        yield Task(part, [forecasts] if len(rows) else [])
