"""The events that can change a row of a table: never too few, sometimes more than do change it."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import shown_references
from forecast_ledger.projections.boards.totals import may_take_reference_label
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.projections.tables.schemas import FORECASTS, Input, changing


class Scope(NamedTuple):
    """A row: its table, its key by column, and the questions of each contest.

    markets: the contests that show the market; None if they are not known.
    """

    table: str
    key: Mapping[str, Any]
    questions: Mapping[str, Collection[str]]
    markets: Collection[str] | None = None

    @property
    def own(self) -> Mapping[str, Any]:
        """The part of the key that limits what the row depends on."""
        return own_key(self.table, self.key)

    def depends_on(self, question: str) -> bool:
        """Return whether the row may depend on a question."""
        if self.own.get("question", question) != question:
            return False
        contest = self.own.get("contest")
        return contest is None or question in self.questions.get(contest, ())

    def agrees(self, event: events.Event, column: str) -> bool:
        """Return whether the row agrees with an event in a column, if both have it; a contest has its questions."""
        value = getattr(event, column, None)
        if value is None or isinstance(event, events.ParticipantRenamed):
            return True
        return self.depends_on(value) if column == "question" else bool(self.own.get(column, value) == value)

    def shows(self, event: events.PricesQuoted) -> bool:
        """Return whether the row may depend on a quote as a forecast of the market."""
        contest = self.own.get("contest")
        shown = self.markets is None or (bool(self.markets) if contest is None else contest in self.markets)
        return shown and any(self.depends_on(quote.question) for quote in event.quotes)


def own_key(table: str, key: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a row's key that limits what it depends on: none of it, if rows depend on one another."""
    return {} if CATALOGUE[table].whole else key


def single_question(event: Any) -> str:
    """Return the id of the only question whose rows an event can change; empty if it is not one question.

    A forecast whose participant takes the name of a reference forecaster changes a name in the rows of all questions.
    """
    if isinstance(event, FORECASTS) and may_take_reference_label(event.participant):
        return ""
    return str(getattr(event, "question", ""))


def market_contests(facts: Facts) -> set[str]:
    """Return the contests that show the market as a row."""
    return {name for name, row in facts.contests.items() if "market" in shown_references(row.opened.rules)}


def touches(table: str, event: events.Event, *, answered: bool) -> bool:
    """Return whether an event can change any row of a table; answered: whether its question had an answer before."""
    return any(changing(CATALOGUE[table].reads, event, answered=answered))


def can_change(scope: Scope, recorded: Recorded, *, answered: bool, advancing: bool = True) -> bool:
    """Return whether an event can change the row.

    answered: whether the event's question had an answer before. advancing: whether the event claims a later instant
    than every event before it; if not, it leaves the clock as it is.
    """
    row, event = CATALOGUE[scope.table], recorded.event
    if row.final and not isinstance(event, events.ParticipantRenamed):
        return str(recorded.position) == str(scope.key["log_position"])
    reads = row.reads if advancing else [kind for kind in row.reads if kind != "clock"]
    return any(_concerns(scope, kind, event) for kind in changing(reads, event, answered=answered))


def _concerns(scope: Scope, kind: Input, event: events.Event) -> bool:
    if kind.market and isinstance(event, events.PricesQuoted):
        return scope.shows(event)
    return all(scope.agrees(event, column) for column in kind.shared)


def reads_forecasts(table: str) -> bool:
    """Return whether a table is made from all forecasts, scored or not."""
    return not {"forecasts", "own_forecasts"}.isdisjoint(CATALOGUE[table].reads)


def reads_scores(table: str) -> bool:
    """Return whether a table is made from scored forecasts: those on questions that have an answer."""
    return "scored_forecasts" in CATALOGUE[table].reads


class AnsweredQuestions:
    """The questions that have an answer, at each event of a log in its order."""

    def __init__(self) -> None:
        self._now: set[str] = set()

    def take_in(self, recorded: Recorded) -> bool:
        """Take in an event, and return whether its question had an answer before."""
        event = recorded.event
        question = getattr(event, "question", "")
        answered = question in self._now
        if isinstance(event, events.QuestionResolved | events.QuestionAnnulled):
            self._now.add(question)
        elif isinstance(event, events.ResolutionRevoked):
            self._now.discard(question)
        return answered
