"""What became other in a table between two cuts of one log, and the events between that can have caused it."""

from collections.abc import Sequence
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.projections.catalogue.inputs import FORECASTS, SETTLING
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.incremental.refresh import Growing
from forecast_ledger.replay.explain.dependencies import (
    Scope,
    Settled,
    alone,
    can_change,
    reads_forecasts,
    reads_scores,
    touches,
)
from forecast_ledger.replay.explain.explain_scores import Source
from forecast_ledger.replay.reading.event_text import kind_of
from forecast_ledger.replay.reading.replay import AsOf, Cut, opened
from forecast_ledger.replay.reading.table_difference import Difference, differences

SHOWN = 5  # events a row that are named


class Cause(NamedTuple):
    """An event that can have caused a change."""

    log_position: int
    type: str


class Change(NamedTuple):
    """A row that came, went or changed; the foremost of the events that can have caused it, and how many there are."""

    difference: Difference
    causes: list[Cause]
    events: int


class Diff(NamedTuple):
    """The rows that differ, how many do not, and the two cuts."""

    changes: list[Change]
    equal: int
    old: Checkpoint
    new: Checkpoint


def diff(source: Source, other: AsOf, table: str) -> Diff:
    """How a table changed from the source's cut to another, which is later.

    Raises, first that applies: Refused (a cut is no instant, beyond the log, or not the later one), Unavailable,
    Corrupt.
    """
    old, new, grows, between = Cut(source.as_of), Cut(other), Growing(), _Between(table)
    with opened(source.location, source.name) as store:
        for page in old.pages(log.unseal_pages(store.pages()), source.watch):
            grows.add(page)
            between.pass_by(page)
        first = new.last = old.reached()
        if old.recorded_at is not None and not new.includes(first.position, old.recorded_at):
            said = f"it is before the other cut, {first.position}"
            raise Refused("out_of_range", "to", other, said, remedy="give the earlier cut first")
        tables = [part.table for part in grows.whole([table])]
        for page in new.pages(log.unseal_pages(store.pages(first.position), first), source.watch):
            grows.add(page)
            between.take_in(page)
        last = new.reached()
        tables += [part.table for part in grows.whole([table])]
    questions = _questions(grows.facts)
    changes = []
    for each in differences(*tables):
        causes = between.causes(Scope(table, each.key, questions))
        changes.append(Change(each, [Cause(one.position, kind_of(one.event)) for one in causes[:SHOWN]], len(causes)))
    equal = len(tables[1]) - sum(each.difference.row != "gone" for each in changes)
    return Diff(changes, equal, first, last)


class _Between:
    """The events between the cuts that can have changed a table, each with whether its question had an answer.

    Of scores also the forecasts on what had none, by participant.
    """

    def __init__(self, table: str) -> None:
        self._table, self._of_scores = table, reads_scores(table)
        self._settled = Settled()
        self._every: list[tuple[Recorded, bool]] = []
        self._of: dict[str, list[tuple[Recorded, bool]]] = {}  # by the one question that they can touch
        self._early: dict[str, list[Recorded]] = {}

    def pass_by(self, page: Sequence[Recorded]) -> None:
        """A page before the first cut."""
        for recorded in page:
            self._settled.before(recorded)

    def take_in(self, page: Sequence[Recorded]) -> None:
        """A page after it."""
        for recorded in page:
            event, answered = recorded.event, self._settled.before(recorded)
            if touches(self._table, event, settled=answered):
                self._every.append((recorded, answered))
                self._of.setdefault(alone(event), []).append((recorded, answered))
            if self._of_scores and not answered and isinstance(event, FORECASTS):
                self._early.setdefault(event.participant, []).append(recorded)

    def causes(self, scope: Scope) -> list[Recorded]:
        """The events that can have changed a row, the foremost first.

        Of scores also one's own forecasts on what has since been answered.
        """
        near, question = self._every, scope.key.get("question")
        if question is not None and (self._of_scores or reads_forecasts(self._table)):
            near = [*self._of.get(question, ()), *self._of.get("", ())]
        causes = {each.position: each for each, answered in near if can_change(scope, each, settled=answered)}
        answered_now = {each.event.question for each in causes.values() if isinstance(each.event, SETTLING)}
        early = self._early.get(scope.key.get("participant", ""), ())
        causes |= {each.position: each for each in early if alone(each.event) in answered_now}
        return sorted(causes.values(), key=lambda each: (_order(scope, each), each.position))


def _questions(facts: Facts) -> dict[str, set[str]]:
    labels = facts.question_codes.labels
    return {name: {labels[code] for code in contest.entries} for name, contest in facts.contests.items()}


def _order(scope: Scope, recorded: Recorded) -> int:
    """First what the row tells of; then what settles its questions, or is said of its contest or account; the rest."""
    event, key = recorded.event, scope.key
    if recorded.position == key.get("log_position"):
        return 0
    if scope.key.keys() == {"contest"}:
        return 1 if isinstance(event, events.ContestOpened | events.ContestFinalized | events.PrizePaid) else 2
    if isinstance(event, SETTLING):
        return 1 if scope.has(event.question) else 4
    if isinstance(event, FORECASTS):
        return 2 if reads_forecasts(scope.table) else 3
    own = all(getattr(event, name, key[name]) == key[name] for name in ("contest", "participant") if name in key)
    return 2 if own and hasattr(event, "contest") else 4
