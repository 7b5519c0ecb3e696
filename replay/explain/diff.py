"""The differences of a table between two points of one log, and the events between them that can have caused each."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.model.rules import shown_references
from forecast_ledger.projections.boards.totals import may_take_reference_label
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.from_segments import segment_events
from forecast_ledger.projections.incremental.refresh import IncrementalTables
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.projections.tables.schemas import FORECASTS, SETTLING, Input, changing
from forecast_ledger.replay.reading.board_notes import unmoved
from forecast_ledger.replay.reading.event_text import event_type
from forecast_ledger.replay.reading.log import AsOf, Cut, Log

# --- The events that can change a row of a table: never too few, sometimes more than do change it.


class Scope(NamedTuple):
    """A row: its table, its key by column, and the questions of each contest.

    markets: the contests that show the market; None if they are not known.
    """

    table: str
    key: Mapping[str, Any]
    questions: Mapping[str, Collection[str]]
    markets: Collection[str] | None = None

    @property
    def limiting_key(self) -> Mapping[str, Any]:
        """The part of the key that limits what the row depends on."""
        return limiting_key(self.table, self.key)

    def depends_on(self, question: str) -> bool:
        """Return whether the row may depend on a question."""
        if self.limiting_key.get("question", question) != question:
            return False
        contest = self.limiting_key.get("contest")
        return contest is None or question in self.questions.get(contest, ())

    def agrees(self, event: events.Event, column: str) -> bool:
        """Return whether the row agrees with an event in a column, if both have it; a contest has its questions."""
        value = getattr(event, column, None)
        if value is None or isinstance(event, events.ParticipantRenamed):
            return True
        return self.depends_on(value) if column == "question" else bool(self.limiting_key.get(column, value) == value)

    def shows(self, event: events.PricesQuoted) -> bool:
        """Return whether the row may depend on a quote as a forecast of the market."""
        contest = self.limiting_key.get("contest")
        shown = self.markets is None or (bool(self.markets) if contest is None else contest in self.markets)
        return shown and any(self.depends_on(quote.question) for quote in event.quotes)


def limiting_key(table: str, key: Mapping[str, Any]) -> Mapping[str, Any]:
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


class Difference(NamedTuple):
    """A row that differs between two tables: column -> (old value, new value), as printed; None if the row is missing.

    row: "changed", "new" or "gone".
    """

    key: dict[str, Any]
    columns: dict[str, tuple[Any, Any]]
    row: str = "changed"


def differences(old: Table, new: Table) -> Iterator[Difference]:
    """Return the rows that differ: in the order of the new table, then the rows that only the old table has."""
    names = CATALOGUE[new.name].key
    before, after = _by_key(old, names), _by_key(new, names)
    for key in [*after, *(key for key in before if key not in after)]:
        old_row, new_row = before.get(key, {}), after.get(key, {})
        changed = {
            column.name: (old_row.get(column.name), new_row.get(column.name))
            for column in new.columns
            if column.name not in names and old_row.get(column.name) != new_row.get(column.name)
        }
        if changed or not old_row or not new_row:
            row = "changed" if old_row and new_row else "new" if new_row else "gone"
            yield Difference(dict(zip(names, key, strict=True)), changed, row)


def _by_key(table: Table, names: tuple[str, ...]) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[name] for name in names): row for row in table.rows()}


CAUSES_SHOWN = 5  # events that are listed for a row


class Cause(NamedTuple):
    """An event that can have caused a change."""

    log_position: int
    type: str


class RowChange(NamedTuple):
    """A row that differs, the most likely of the events that can have caused it, and the number of these events."""

    difference: Difference
    causes: list[Cause]
    events: int


class Diff(NamedTuple):
    """The rows that differ, the number of rows that do not, and the two checkpoints.

    unmoved: of a table by contest, the contests whose sealed boards do not count some event between the two.
    """

    changes: list[RowChange]
    equal: int
    old: Checkpoint
    new: Checkpoint
    unmoved: list[str]


def diff(source: Log, other: AsOf, table: str) -> Diff:
    """Return the changes of a table from the log as of `source.as_of` to the log as of `other`, which is later.

    Raises, first that applies: Refused (either is not an instant or beyond the log, or `other` is not later),
    Unavailable, Corrupt.
    """
    old, new, grows, between = source.cut(), Cut(other, source.on_progress), IncrementalTables(), _Between(table)
    with source.parts(old) as parts:
        for part in parts.segments:
            grows.add_segment(part.columns, part.end)
            between.pass_by(segment_events(part.columns))
        grows.forget()
        for page in parts.pages:
            grows.add(page)
            between.pass_by(page)
    with source.opened() as store:
        first = new.last = old.reached()
        if old.recorded_at is not None and not new.includes(first.position, old.recorded_at):
            wrong = f"it is before log position {first.position}, with which the table is compared"
            raise Refused("out_of_range", "to", other, wrong, remedy="give the earlier point of the log first")
        tables = [update.table for update in grows.whole_tables([table])]
        for page in new.read(store.pages(first.position), first):
            grows.add(page)
            between.take_in(page)
        last = new.reached()
        tables += [update.table for update in grows.whole_tables([table])]
    questions, markets = _questions(grows.facts), market_contests(grows.facts)
    changes = []
    for difference in differences(*tables):
        causes = between.causes(Scope(table, difference.key, questions, markets))
        first_causes = [Cause(recorded.position, event_type(recorded.event)) for recorded in causes[:CAUSES_SHOWN]]
        changes.append(RowChange(difference, first_causes, len(causes)))
    equal = len(tables[1]) - sum(change.difference.row != "gone" for change in changes)
    sealed = unmoved(grows.facts, first.position) if "contest" in CATALOGUE[table].key else []
    return Diff(changes, equal, first, last, sealed)


class _Between:
    """The events between two points of a log that can have changed a table.

    Each is stored with whether its question had an answer before. For scores, also the forecasts on questions without
    an answer, by participant.
    """

    def __init__(self, table: str) -> None:
        self._table, self._follows_scores = table, reads_scores(table)
        self._answers = AnsweredQuestions()
        self._every: list[tuple[Recorded, bool]] = []
        self._by_question: dict[str, list[tuple[Recorded, bool]]] = {}  # by the only question that they can change
        self._early: dict[str, list[Recorded]] = {}

    def pass_by(self, page: Sequence[Recorded]) -> None:
        """Read a page before the earlier point."""
        for recorded in page:
            self._answers.take_in(recorded)

    def take_in(self, page: Sequence[Recorded]) -> None:
        """Read a page between the two points."""
        for recorded in page:
            event, answered = recorded.event, self._answers.take_in(recorded)
            if touches(self._table, event, answered=answered):
                self._every.append((recorded, answered))
                self._by_question.setdefault(single_question(event), []).append((recorded, answered))
            if isinstance(event, events.ParticipantRenamed):
                self._early.setdefault(event.to, []).extend(self._early.get(event.participant, ()))
            if self._follows_scores and not answered and isinstance(event, FORECASTS):
                self._early.setdefault(event.participant, []).append(recorded)

    def causes(self, scope: Scope) -> list[Recorded]:
        """Return the events that can have changed a row, the most likely first.

        For scores, also the participant's forecasts on questions that were answered between the two points.
        """
        near, question = self._every, scope.key.get("question")
        if question is not None and (self._follows_scores or reads_forecasts(self._table)):
            near = [*self._by_question.get(question, ()), *self._by_question.get("", ())]
        causes = {event.position: event for event, answered in near if can_change(scope, event, answered=answered)}
        answered_now = {cause.event.question for cause in causes.values() if isinstance(cause.event, SETTLING)}
        early = self._early.get(scope.key.get("participant", ""), ())
        causes |= {event.position: event for event in early if single_question(event.event) in answered_now}
        return sorted(causes.values(), key=lambda cause: (_order(scope, cause), cause.position))


def _questions(facts: Facts) -> dict[str, set[str]]:
    labels = facts.question_codes.labels
    return {name: {labels[code] for code in contest.entries} for name, contest in facts.contests.items()}


def _order(scope: Scope, recorded: Recorded) -> int:
    """Return the rank of a cause: the event of the row; events that settle its questions or are about it; the rest."""
    event, key = recorded.event, scope.key
    if recorded.position == key.get("log_position"):
        return 0
    if scope.key.keys() == {"contest"}:
        return 1 if isinstance(event, events.ContestOpened | events.ContestFinalized | events.PrizePaid) else 2
    if isinstance(event, SETTLING):
        return 1 if scope.depends_on(event.question) else 4
    if isinstance(event, FORECASTS):
        return 2 if reads_forecasts(scope.table) else 3
    is_of_row = all(getattr(event, name, key[name]) == key[name] for name in ("contest", "participant") if name in key)
    return 2 if is_of_row and hasattr(event, "contest") else 4
