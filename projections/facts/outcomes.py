"""Forecasts on questions whose outcomes changed: how their numbers are laid out, and from when to when they count.

A forecast gives the outcomes that its question has when it is recorded. Here each forecast on such a question gets one
number for every outcome that the question ever had. Where it gives none, `missing` says in which other outcome the
probability is: in the catch-all, which stands for all outcomes that are not named.
Source: Metaculus's published code (github.com/Metaculus/metaculus), multiple_choice_handlers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import NEVER
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.projections.core.arrays import Int64Array, int64_array, stable_order
from forecast_ledger.projections.facts.columns import ChangedOutcomes, Facts, Forecasts, OutcomeChange, joined

# --- Forecasts that were retracted later: from which log position on each counts as never made.


def with_retractions(facts: Facts, forecasts: Forecasts) -> Forecasts:
    """Return forecasts, question after question, each with the log position of the first retraction after it."""
    if not facts.retractions:
        return forecasts
    retracted = forecasts.retracted.copy()
    for code, retractions in facts.retractions.items():
        rows = slice(*np.searchsorted(forecasts.question, [code, code + 1]))
        who, at = np.array(sorted((who, at) for at, who in retractions), np.int64).T
        width = max(int(forecasts.position[rows].max(initial=0)), int(at.max())) + 1
        after = np.searchsorted(who * width + at, forecasts.participant[rows] * width + forecasts.position[rows])
        index = np.minimum(after, len(at) - 1)
        is_next = (after < len(at)) & (who[index] == forecasts.participant[rows])
        retracted[rows] = np.where(is_next, at[index], NEVER)
    return replace(forecasts, retracted=retracted)


def missing(outcome: int) -> int:
    """Return the number of an outcome that a forecast does not give, and whose probability is in another outcome.

    >>> missing(0), missing(2)
    (-1, -3)
    """
    return ~outcome


def file_change(facts: Facts, recorded: Recorded, event: events.OutcomesChanged) -> None:
    """File a change of outcomes: the question gets the new ones after all that it ever had."""
    code = facts.question_codes.codes[event.question]
    question = facts.questions[code]
    before = facts.changed.get(code) or ChangedOutcomes(len(question.outcomes), 0, ())
    names = (*question.outcomes, *event.added)
    added = tuple(range(len(question.outcomes), len(names)))
    removed = tuple(names.index(name) for name in event.removed)
    ends_at = event.at if event.grace_ends_at is None else event.grace_ends_at
    change = OutcomeChange(recorded.position, event.at, recorded.recorded_at, added, removed, ends_at)
    facts.changed[code] = before._replace(width=len(names), changes=(*before.changes, change))
    facts.questions[code] = _renamed(question, names)


def _renamed(question: events.QuestionOpened, names: tuple[str, ...]) -> events.QuestionOpened:
    fields = {field: getattr(question, field) for field in question.__struct_fields__}
    return events.QuestionOpened(**(fields | {"outcomes": names}))


def changed_as_of(facts: Facts, questions: Iterable[int], as_of: Iterable[int]) -> dict[int, ChangedOutcomes]:
    """Return the changes of these questions up to a log position of each, by the number of the question among them."""
    if not facts.changed:
        return {}
    changed = {}
    for number, (code, last) in enumerate(zip(questions, as_of, strict=True)):
        if code in facts.changed:
            outcomes = facts.changed[code]
            changes = tuple(change for change in outcomes.changes if change.position <= last)
            if changes:
                changed[number] = outcomes._replace(changes=changes)
    return changed


def widths(facts: Facts, base: Int64Array, question: Int64Array, position: Int64Array) -> Int64Array:
    """Return how many numbers a forecast on each question gives at a log position; shape (n,).

    base: how many a forecast on each question of the log gives while its outcomes do not change.
    """
    counts = base.take(question)
    for code, outcomes in facts.changed.items():
        rows = np.flatnonzero(question == code)
        counts[rows] = outcomes.first
        for change in outcomes.changes:
            counts[rows] += (len(change.added) - len(change.removed)) * (position[rows] > change.position)
    return counts


def laid_out(facts: Facts, forecasts: Forecasts) -> Forecasts:
    """Return forecasts, question after question, with a number for every outcome that a changed question ever had, and
    with the log position at which they were retracted and the other ids of participants.
    """
    forecasts = replace(with_retractions(facts, forecasts), renames=facts.renames)
    if not facts.changed:
        return forecasts
    starts, numbers, size = forecasts.start.copy(), [forecasts.chances], len(forecasts.chances)
    for code, outcomes in facts.changed.items():
        first, end = np.searchsorted(forecasts.question, [code, code + 1])
        for since, upto, given in layouts_over_time(outcomes):
            position = forecasts.position[first:end]
            rows = first + np.flatnonzero((position > since) & (position <= upto) & forecasts.made[first:end])
            table = np.full((len(rows), outcomes.width), missing(outcomes.catch_all))
            table[:, given] = forecasts.chances[starts[rows][:, None] + np.arange(len(given))]
            starts[rows] = size + np.arange(len(rows)) * outcomes.width
            numbers.append(table.reshape(-1))
            size += table.size
    return replace(forecasts, start=starts, chances=np.concatenate(numbers))


def layouts_over_time(outcomes: ChangedOutcomes) -> Iterator[tuple[int, int, list[int]]]:
    """Yield the outcomes of a question, by index, after each change, and between which log positions they are given.

    >>> change = OutcomeChange(position=7, at=0, recorded_at=0, added=(), removed=(1,), ends_at=0)
    >>> [*layouts_over_time(ChangedOutcomes(3, 3, (change,)))] == [(0, 7, [0, 1, 2]), (7, 2**63 - 1, [0, 2])]
    True
    """
    edges = [0, *(change.position for change in outcomes.changes), 2**63 - 1]
    for number, (since, upto) in enumerate(pairwise(edges)):
        yield since, upto, outcomes._replace(changes=outcomes.changes[:number]).given()


def as_counted(
    forecasts: Forecasts, changed: Mapping[int, ChangedOutcomes], never: Int64Array | None = None
) -> Forecasts:
    """Return the forecasts as they count, with the rows that follow from changes of outcomes.

    When outcomes are removed, each forecast goes on with their probability in the catch-all. When some are added, each
    ends with the grace period; one that is made in that period counts in two rows: until its end with their probability
    in the catch-all, then as it was made. A row that follows from a change has the log position of the change.

    forecasts: laid out; of one participant on one question in log order, or in order of time, as `in_time_order`.
    changed: by question, as they number them.
    never: rows that never stand, so that nothing follows from them.
    """
    if not changed:
        return forecasts
    codes = int64_array([*changed])
    stays = forecasts.rows(np.flatnonzero(~np.isin(forecasts.question, codes)))
    unused = set() if never is None else {*never.tolist()}
    tables = [_counted(forecasts, code, outcomes, unused) for code, outcomes in changed.items()]
    starts, numbers, size = [stays.start], [forecasts.chances], len(forecasts.chances)
    for table in tables:
        new = table.start < 0  # counted from the end
        starts.append(np.where(new, size + ~table.start, table.start))
        numbers.append(table.chances)
        size += len(table.chances)
    every = stays
    for table in tables:
        every = joined(replace(every, chances=_NONE), replace(table, chances=_NONE))
    return replace(every, start=np.concatenate(starts), chances=np.concatenate(numbers))


_NONE = np.zeros(0, np.int64)


class _Row(NamedTuple):
    """A row of one question as it counts. source: its row among the forecasts. start: below 0: see `_Rows`."""

    source: int
    position: int
    at: int
    recorded_at: int
    made: bool
    start: int


class _Rows:
    """The rows of one question as they count, made in log order.

    A row with new numbers has the start ~n, where n is the index at which they begin in `numbers`.
    """

    def __init__(self, forecasts: Forecasts, outcomes: ChangedOutcomes) -> None:
        self.forecasts, self.catch_all, self.width = forecasts, outcomes.catch_all, outcomes.width
        self.rows: list[_Row] = []
        self.numbers: list[Int64Array] = []
        self.last: dict[int, _Row] = {}  # participant -> its last row

    def add(self, row: _Row) -> None:
        self.rows.append(row)
        self.last[int(self.forecasts.participant[row.source])] = row

    def folded(self, start: int, outcomes: Sequence[int]) -> int:
        """Add a distribution with the probability of some outcomes in the catch-all; return where it starts."""
        chances = self.forecasts.chances if start >= 0 else self.numbers[~start // self.width]
        begin = start if start >= 0 else 0
        numbers = chances[begin : begin + self.width].copy()
        for outcome in outcomes:
            numbers[self.catch_all] += max(int(numbers[outcome]), 0)
            numbers[outcome] = missing(self.catch_all)
        self.numbers.append(numbers)
        return ~((len(self.numbers) - 1) * self.width)

    def change(self, change: OutcomeChange, recorded: int) -> None:
        """Add what follows from a change for the last forecast of each participant.

        recorded: from when on it counts by the ledger's clock, µs.
        """
        for row in [*self.last.values()]:
            if not row.made:
                continue
            at, recorded_at = max(row.at, change.ends_at), max(row.recorded_at, recorded)
            after = row._replace(position=change.position, at=at, recorded_at=recorded_at)
            if change.added:
                self.add(after._replace(made=False))
            else:
                self.add(after._replace(start=self.folded(row.start, change.removed)))

    def forecast(self, row: _Row, grace: tuple[OutcomeChange, int] | None) -> None:
        """Add a forecast or withdrawal. grace: the last addition of outcomes before it, as for `change`."""
        if row.made and grace is not None:
            addition, recorded = grace
            if row.at < addition.ends_at or row.recorded_at < recorded:
                self.add(row._replace(start=self.folded(row.start, addition.added)))
                at, recorded_at = max(row.at, addition.ends_at), max(row.recorded_at, recorded)
                row = row._replace(at=at, recorded_at=recorded_at)
        self.add(row)


def _counted(forecasts: Forecasts, question: int, outcomes: ChangedOutcomes, unused: set[int]) -> Forecasts:
    """Return the rows of one question; see `_Rows` for those with new numbers, which are in `chances`."""
    source_rows = np.flatnonzero(forecasts.question == question)
    since = np.searchsorted([change.position for change in outcomes.changes], forecasts.position[source_rows])
    source_rows = source_rows[stable_order(since if forecasts.renames else forecasts.position[source_rows])]
    columns = (forecasts.position, forecasts.at, forecasts.recorded_at, forecasts.made, forecasts.start)
    rows, grace = _Rows(forecasts, outcomes), None
    waiting = [*zip(outcomes.changes, outcomes.counted_from(), strict=True)]
    for row in map(_Row, source_rows.tolist(), *(column[source_rows].tolist() for column in columns)):
        while waiting and waiting[0][0].position <= row.position:
            change = waiting.pop(0)
            rows.change(*change)
            grace = change if change[0].added else grace
        if row.source not in unused:
            rows.forecast(row, grace)
    for change in waiting:
        rows.change(*change)
    table = int64_array([number for row in rows.rows for number in row]).reshape(-1, len(_Row._fields))
    source, position, at, recorded_at, made, start = table.T
    return replace(
        forecasts.rows(source),
        position=position,
        at=at,
        recorded_at=recorded_at,
        made=made > 0,
        start=start,
        chances=np.concatenate([_NONE, *rows.numbers]),
    )
