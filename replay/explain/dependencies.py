"""Which events can change a row of a table: more than do, never fewer."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.projections.boards.totals import takes_its_name
from forecast_ledger.projections.catalogue.catalogue import CATALOGUE
from forecast_ledger.projections.catalogue.inputs import FORECASTS, Input, changing


class Scope(NamedTuple):
    """A row: its table, its key by column, and the questions of each contest."""

    table: str
    key: Mapping[str, Any]
    questions: Mapping[str, Collection[str]]

    def has(self, question: str) -> bool:
        """Whether a row may depend on a question."""
        if self.key.get("question", question) != question:
            return False
        contest = self.key.get("contest")
        return contest is None or question in self.questions.get(contest, ())

    def shares(self, event: events.Event, column: str) -> bool:
        """Whether a row agrees with an event in a column, as far as both have it; a contest has its questions."""
        there = getattr(event, column, None)
        if there is None:
            return True
        return self.has(there) if column == "question" else bool(self.key.get(column, there) == there)


def alone(event: Any) -> str:
    """The one question whose rows an event can touch, nobody's name considered; none if it is of more, or of none."""
    if isinstance(event, FORECASTS) and takes_its_name(event.participant):
        return ""
    return str(getattr(event, "question", ""))


def touches(table: str, event: events.Event, *, settled: bool) -> bool:
    """Whether an event can change any row of a table; settled: whether its question has an answer as it happens."""
    return any(changing(CATALOGUE[table].reads, event, answered=settled))


def can_change(scope: Scope, recorded: Recorded, *, settled: bool) -> bool:
    """Whether an event can change the row; settled: whether the event's question has an answer as it happens."""
    row = CATALOGUE[scope.table]
    if row.final:
        return str(recorded.position) == str(scope.key["log_position"])
    event = recorded.event
    return any(_concerns(scope, found, event) for found in changing(row.reads, event, answered=settled))


def _concerns(scope: Scope, found: Input, event: events.Event) -> bool:
    return all(scope.shares(event, column) for column in found.shared)


def reads_forecasts(table: str) -> bool:
    """Whether a table is made of forecasts as they came."""
    return not {"forecasts", "own_forecasts"}.isdisjoint(CATALOGUE[table].reads)


def reads_scores(table: str) -> bool:
    """Whether a table is made of forecasts as far as they are scored: on questions that have an answer."""
    return "scored_forecasts" in CATALOGUE[table].reads


class Settled:
    """Which questions have an answer, followed through a log in its order."""

    def __init__(self) -> None:
        self._now: set[str] = set()

    def before(self, recorded: Recorded) -> bool:
        """Whether the question that an event speaks of had an answer; then takes the event in."""
        event = recorded.event
        question = getattr(event, "question", "")
        there = question in self._now
        if isinstance(event, events.QuestionResolved | events.QuestionAnnulled):
            self._now.add(question)
        elif isinstance(event, events.ResolutionRevoked):
            self._now.discard(question)
        return there
