"""All tables of a log whose questions are scored in parts, by one of the engines."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.projections.boards.added_scores import has_many_sums
from forecast_ledger.projections.core.table import Table, TableParts
from forecast_ledger.projections.facts.question_facts import FactsByQuestion
from forecast_ledger.projections.scores.time_weighted import MOST_PARTS
from forecast_ledger.projections.tables.catalogue import BUILT, CATALOGUE, Projections
from forecast_ledger.projections.tables.question_parts import (
    ACCOUNTS,
    BOUNDS,
    SUMS,
    QuestionPart,
    finish,
    is_by_question,
    needed,
    score,
)
from forecast_ledger.projections.trading.account_histories import Selection
from forecast_ledger.replay.engines.engines import ENGINES, Choice, Engine
from forecast_ledger.replay.engines.log_frame import LogFrame, UnreadForecasts
from forecast_ledger.replay.engines.pool import processors
from forecast_ledger.replay.engines.tasks import divide, shared_by_tasks, task_size, tasks

MANY = 1 << 22  # forecasts from which on it is worth starting processes


def engine_for(frame: LogFrame) -> Engine:
    """Return the engine for a log: processes, if there are many forecasts, and processors for more than one."""
    return "processes" if processors() > 1 and frame.frame.counts.sum() >= MANY else "local"


def scored(frame: LogFrame, engine: Choice, tables: Collection[str], memory: int | None = None) -> Projections:
    """Return the projections of a log, as `replay` describes it. Raises Refused, Corrupt, Unavailable."""
    chosen = engine_for(frame) if engine == "auto" else engine
    if memory is None:
        return divided(frame, chosen, tables)
    forecasts = forecasts_within(memory, chosen, len(frame.frame.facts.questions))
    return InParts(frame, chosen, tables, min(forecasts, task_size(frame)))


def divided(frame: LogFrame, engine: Engine, tables: Collection[str] = BUILT, forecasts: int = 0) -> Projections:
    """Return the projections of a log, with all that these tables need of the forecasts on each question.

    A table that needs more has all forecasts read when it is asked for. forecasts: of the questions that are scored
    together, about; 0 for as many as `task_size` says. Raises Corrupt, Unavailable.
    """
    wanted = needed(tables)
    every = np.arange(len(frame.frame.facts.questions))
    facts = replace(frame.frame.facts, forecasts=UnreadForecasts(partial(frame.forecasts_on, every)))
    if SUMS in wanted and has_many_sums(frame.frame.facts, frame.frame.counts):
        wanted |= {BOUNDS}
    division = divide(frame, forecasts or task_size(frame)) if wanted else []

    def parts_of(wanted: frozenset[str]) -> Iterable[QuestionPart]:
        return ENGINES[engine](shared_by_tasks(frame, wanted), tasks(frame, division)) if wanted else ()

    return Projections(facts, cached=finish(facts, parts_of(wanted), wanted, lambda: parts_of(frozenset({SUMS}))))


class InParts(Projections):
    """The projections of a log whose large tables are never whole in memory: each is computed again in parts.

    Tables with a row for a question or an account are large. The others rest on sums that an engine computes once.
    """

    def __init__(self, frame: LogFrame, engine: Engine, tables: Collection[str], forecasts: int) -> None:
        """forecasts: of the questions that are scored together, about. Raises Corrupt, Unavailable."""
        small = [name for name in tables if not is_by_question(name)]
        whole = divided(frame, engine, small, forecasts)
        super().__init__(whole.facts, cached=whole.cached)
        self._frame, self._engine, self._forecasts = frame, engine, forecasts

    def parts(self, name: str) -> TableParts:
        """Return the table of a projection in parts, which raise Corrupt, Unavailable, Refused."""
        if is_by_question(name):
            return TableParts(self._by_question(name))
        if CATALOGUE[name].division == ACCOUNTS:
            return TableParts(self._by_account())
        return super().parts(name)

    def _by_question(self, name: str) -> Iterator[Table]:
        """Yield a table some questions at a time; if its key begins with the contest, contest after contest."""
        facts, shared = self._frame.frame.facts, shared_by_tasks(self._frame, frozenset({name}))
        by_question = FactsByQuestion(facts)
        yield self.as_table(name, score(shared.facts, shared.wanted).tables[name])
        # The parts of a score on a question are fewer than its forecasts squared.
        size, power = self._forecasts, 1
        if name == "score_parts":
            size, power = min(size * _FORECAST // _SCORE_PART, MOST_PARTS), 2
        for contest in sorted(facts.contests) if CATALOGUE[name].key[0] == "contest" else [None]:
            own = None if contest is None else facts.contests[contest].entries
            parts = divide(self._frame, size, own, power)
            for part in ENGINES[self._engine](shared, tasks(self._frame, parts, contest, by_question)):
                yield self.as_table(name, part.tables[name])

    def _by_account(self) -> Iterator[Table]:
        yield self.selected_portfolios(Selection(""))
        for contest, participant in sorted(self.facts.books.accounts):
            yield self.selected_portfolios(Selection(contest, participant))


def forecasts_within(memory: int, engine: Engine, questions: int) -> int:
    """Return how many forecasts are scored together in about this much memory, in bytes, of all processes.

    questions: of the log; this process has what is known of them. Raises Refused(out_of_range): it is too little.
    """
    count = processors() + 1 if engine == "processes" else 1  # this process has the results
    base = _PROCESS * count + _QUESTION * questions
    own = (memory - base) // count
    if own < _LEAST * _FORECAST:
        least = -(-(base + _LEAST * _FORECAST * count) >> 20)
        detail = f"{memory >> 20} MiB is too little for the engine {engine} and {questions:,} questions"
        raise Refused("out_of_range", "memory", None, detail, remedy=f"give {least} MiB or more")
    return own // _FORECAST


_PROCESS = 150 << 20  # bytes that a process needs for itself, about
_QUESTION = 4_000  # bytes for each question
_FORECAST = 2_000  # bytes for each forecast that is scored
_SCORE_PART = 250  # bytes for each row of score_parts
_LEAST = 1 << 12  # forecasts
