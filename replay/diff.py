"""What became other in a table between two cuts of one log, and the events between that can have caused it."""

from typing import NamedTuple

from ledger import log
from ledger.errors import Refused
from ledger.log import Checkpoint, Recorded
from projections.columns import Facts
from projections.growing import Growing
from replay.causes import FORECASTS, OF_FORECASTS, OF_SCORES, SETTLING, Scope, Settled, can_change
from replay.difference import Difference, differences, key_of
from replay.explain import Source
from replay.replay import AsOf, Cut, opened
from replay.wording import kind_of

SHOWN = 5  # events a row that are named


class Cause(NamedTuple):
    """An event that can have caused a change."""

    log_position: int
    type: str


class Change(NamedTuple):
    """A row that came, went or changed; the foremost of the events that can have caused it, and how many there are."""

    difference: Difference
    kind: str
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
    old, new, grows, settled = Cut(source.as_of), Cut(other), Growing(), Settled()
    between: list[tuple[Recorded, bool]] = []  # and whether each one's question had an answer
    with opened(source.location, source.name) as store:
        for page in old.pages(log.follow(store.pages()), source.watch):
            grows.add(page)
            for recorded in page:
                settled.before(recorded)
        first = new.last = old.reached()
        if old.recorded_at is not None and not new.includes(first.position, old.recorded_at):
            raise Refused(
                "wrong_order_of_instants", "to", other, f"the later cut is before the other, {first.position}"
            )
        tables = [part.table for part in grows.whole([table])]
        for page in new.pages(log.follow(store.pages(first.position), first), source.watch):
            grows.add(page)
            between += [(recorded, settled.before(recorded)) for recorded in page]
        last = new.reached()
        tables += [part.table for part in grows.whole([table])]
    questions, names = _questions(grows.facts), key_of(table)
    there = [{tuple(row[name] for name in names) for row in each.rows()} for each in tables]
    changes = []
    for each in differences(*tables):
        key = tuple(each.key.values())
        kind = "changed" if key in there[0] & there[1] else "new" if key in there[1] else "gone"
        causes = _causes(Scope(table, each.key, questions), between)
        changes.append(
            Change(each, kind, [Cause(one.position, kind_of(one.event)) for one in causes[:SHOWN]], len(causes))
        )
    equal = len(there[1]) - sum(each.kind != "gone" for each in changes)
    return Diff(changes, equal, first, last)


def _questions(found: Facts) -> dict[str, set[str]]:
    labels = found.question_codes.labels
    return {name: {labels[code] for code in contest.entries} for name, contest in found.contests.items()}


def _causes(scope: Scope, between: list[tuple[Recorded, bool]]) -> list[Recorded]:
    """The events that can have changed a row, the foremost first.

    Of scores also one's own forecasts on what has since been answered.
    """
    causes = [each for each, answered in between if can_change(scope, each.event, settled=answered)]
    if scope.table in OF_SCORES and (participant := scope.key.get("participant")) is not None:
        answered_now = {each.event.question for each in causes if isinstance(each.event, SETTLING)}
        forecasts = [each for each, answered in between if isinstance(each.event, FORECASTS) and not answered]
        causes += [
            each
            for each in forecasts
            if isinstance(each.event, FORECASTS)
            and each.event.participant == participant
            and each.event.question in answered_now
        ]
    return sorted(causes, key=lambda each: (_order(scope.table, each), each.position))


def _order(table: str, recorded: Recorded) -> int:
    """What settles a question comes first, then what is said of the contest, then forecasts and quotes."""
    if isinstance(recorded.event, SETTLING):
        return 0
    return 2 if isinstance(recorded.event, FORECASTS) and table not in OF_FORECASTS else 1
