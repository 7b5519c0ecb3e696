"""What became other in a table between two cuts of one log, and the events between that can have caused it."""

from collections.abc import Sequence
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.incremental.refresh import Growing
from forecast_ledger.replay.explain.dependencies import (
    FORECASTS,
    OF_FORECASTS,
    OF_SCORES,
    SETTLING,
    Scope,
    Settled,
    alone,
    can_change,
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
    old, new, grows, between = Cut(source.as_of), Cut(other), Growing(), _Between()
    with opened(source.location, source.name) as store:
        for page in old.pages(log.follow(store.pages()), source.watch):
            grows.add(page)
            between.pass_by(page)
        first = new.last = old.reached()
        if old.recorded_at is not None and not new.includes(first.position, old.recorded_at):
            said = f"it is before the other cut, {first.position}"
            raise Refused("out_of_range", "to", other, said, remedy="give the earlier cut first")
        tables = [part.table for part in grows.whole([table])]
        for page in new.pages(log.follow(store.pages(first.position), first), source.watch):
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
    """The events between the cuts, each with whether its question had an answer, by the one question they can touch."""

    def __init__(self) -> None:
        self._settled = Settled()
        self._every: list[tuple[Recorded, bool]] = []
        self._of: dict[str, list[tuple[Recorded, bool]]] = {}

    def pass_by(self, page: Sequence[Recorded]) -> None:
        """A page before the first cut."""
        for recorded in page:
            self._settled.before(recorded)

    def take_in(self, page: Sequence[Recorded]) -> None:
        """A page after it."""
        for recorded in page:
            each = recorded, self._settled.before(recorded)
            self._every.append(each)
            self._of.setdefault(alone(recorded.event), []).append(each)

    def causes(self, scope: Scope) -> list[Recorded]:
        """The events that can have changed a row, the foremost first.

        Of scores also one's own forecasts on what has since been answered.
        """
        near, question = self._every, scope.key.get("question")
        if question is not None and scope.table in OF_FORECASTS | OF_SCORES:
            near = [*self._of.get(question, ()), *self._of.get("", ())]
        causes = [each for each, answered in near if can_change(scope, each, settled=answered)]
        if scope.table in OF_SCORES and (participant := scope.key.get("participant")) is not None:
            answered_now = {each.event.question for each in causes if isinstance(each.event, SETTLING)}
            causes += [
                each
                for each, answered in near
                if not answered
                and isinstance(each.event, FORECASTS)
                and each.event.participant == participant
                and each.event.question in answered_now
            ]
        return sorted(causes, key=lambda each: (_order(scope, each), each.position))


def _questions(found: Facts) -> dict[str, set[str]]:
    labels = found.question_codes.labels
    return {name: {labels[code] for code in contest.entries} for name, contest in found.contests.items()}


def _order(scope: Scope, recorded: Recorded) -> int:
    """First what the row tells of; then what settles its questions, or is said of its contest or account; the rest."""
    event, key = recorded.event, scope.key
    if recorded.position == key.get("log_position"):
        return 0
    if scope.table == "contests":
        return 1 if isinstance(event, events.ContestOpened | events.ContestFinalized | events.PrizePaid) else 2
    if isinstance(event, SETTLING):
        return 1 if scope.has(event.question) else 4
    if isinstance(event, FORECASTS):
        return 2 if scope.table in OF_FORECASTS else 3
    own = all(getattr(event, name, key[name]) == key[name] for name in ("contest", "participant") if name in key)
    return 2 if own and hasattr(event, "contest") else 4
