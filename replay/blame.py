"""Which event last changed each column of a row: the row worked out again before and after each that can have.

Of a board, what the scores come to is kept from look to look: before an answer it is the same but for one question.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ledger import events, log
from ledger.errors import Refused
from ledger.log import Checkpoint, Recorded
from ledger.values import format_instant
from projections.catalogue import CATALOGUE
from projections.columns import Facts
from projections.projection import Projections
from projections.sums import Tally, tallies
from projections.tables import facts
from replay.causes import FORECASTS, OF_FORECASTS, OF_SCORES, OF_TALLIES, Scope, Settled, can_change
from replay.difference import key_of
from replay.explain import Source
from replay.replay import Cut, opened
from replay.wording import kind_of

Row = dict[str, Any] | None  # as printed; None where there is none


class Blame(NamedTuple):
    """The last change of one column: at which event, and from what to what; a row that comes changes every column."""

    column: str
    log_position: int
    recorded_at: str
    type: str
    old: Any
    new: Any


class Blamed(NamedTuple):
    """The last change of every column of a row, and how many events were looked at of those that can have made it."""

    columns: list[Blame]
    looked_at: int
    candidates: int
    checkpoint: Checkpoint


def blame(source: Source, table: str, key: Sequence[str], columns: Collection[str] = ()) -> Blamed:
    """The last change of each column of the row that has this key, as printed, in the order of the table's key.

    columns: which ones, all if none are named. Only events that can change the row are looked at, the newest first,
    until every column is accounted for; `source.watch` is told how many. Raises, first that applies: Refused
    (out_of_range: not as many parts as the key has, or no such column; as_of is no instant, or beyond the log),
    Unavailable, Corrupt; Refused (nothing_standing: there is no such row).
    """
    names, every = key_of(table), [column.name for column in CATALOGUE[table].columns]
    if len(names) != len(key):
        raise Refused("out_of_range", "key", " ".join(key), f"the key of {table} is {' '.join(names)}")
    left = [name for name in every if name not in names and (not columns or name in columns)]
    if unknown := [name for name in columns if name not in left]:
        raise Refused(
            "out_of_range", "column", unknown[0], f"{table} has {', '.join(every)}; {' '.join(names)} name a row"
        )
    history = _History(source, table, dict(zip(names, key, strict=True)))
    if history.row is None:
        raise Refused("nothing_standing", "key", " ".join(key), f"no such row in {table}")
    found: dict[str, Blame] = {}
    looked_at = 0
    for recorded, before, row in history.back():
        looked_at += 1
        source.watch(looked_at)
        for column in [*left]:
            old, new = _value(before, column), _value(row, column)
            if old != new or (before is None) != (row is None):
                found[column] = _blame(column, recorded, old, new)
                left.remove(column)
        if not left:
            break
    columns_found = [found[name] for name in every if name in found]
    return Blamed(columns_found, looked_at, len(history.candidates), history.checkpoint)


class _History:
    """A row of a table as of any log position, from one reading of the log."""

    def __init__(self, source: Source, table: str, key: dict[str, str]) -> None:
        self._table, self._key = table, key
        self._base: list[Recorded] = []  # all but forecasts, which are many and stay columns
        self._forecasts: list[Recorded] = []  # those that can change the row, or may
        cut = Cut(source.as_of)
        with opened(source.location, source.name) as store:
            self._facts = facts(self._kept(cut.pages(log.follow(store.pages()), source.watch)))
        self.checkpoint = cut.reached()
        found = self._facts
        labels = found.question_codes.labels
        questions = {name: {labels[code] for code in each.entries} for name, each in found.contests.items()}
        scope, settled = Scope(table, key, questions), Settled()
        self._base = [each for each in self._base if self._depends(scope, each.event)]
        every = sorted([*self._base, *self._forecasts], key=lambda recorded: recorded.position)
        self.candidates = [each for each in every if can_change(scope, each.event, settled=settled.before(each))]

        self._now = self._as_of(self.checkpoint.position)
        self.row = self._row(Projections(self._now))

    def back(self) -> Iterator[tuple[Recorded, Row, Row]]:
        """Each candidate, the newest first, with the row before it and after it."""
        after, rows = self.row, self._rows()
        for recorded in reversed(self.candidates):
            before = next(rows)
            yield recorded, before, after
            after = before

    def _rows(self) -> Iterator[Row]:
        """The row before each candidate, the newest first."""
        now, whole = self._now, None  # whole: the tally then
        name = self._key.get("contest", "")
        for stretch in self._stretches():
            then = self._as_of(stretch[-1].position - 1)
            codes = [self._facts.question_codes.codes.get(getattr(each.event, "question", ""), -1) for each in stretch]
            if self._table in OF_TALLIES and -1 not in codes and name in then.contests:
                whole = whole or Projections(now).tally(name)
                less, more = _apart(now, name, codes), _apart(then, name, codes)
                for code in codes:
                    whole = whole.plus(less[code], -1) if code in less else whole
                    whole = whole.plus(more[code]) if code in more else whole
                    yield self._row(Projections(now, tallies={name: whole}))
            else:
                whole = None
                yield self._row(Projections(then))
            now = then

    def _stretches(self) -> Iterator[list[Recorded]]:
        """The candidates, the newest first: as many at a time as are of a question each, ever more; else one."""
        left, most = [*self.candidates], 4 if self._table in OF_TALLIES else 1
        while left:
            stretch, seen = [left.pop()], set[str]()
            while len(stretch) < most and (question := getattr(stretch[-1].event, "question", "")) and left:
                seen.add(question)
                if getattr(left[-1].event, "question", question) in seen:
                    break
                stretch.append(left.pop())
            yield stretch
            most *= 4 if most > 1 else 1

    def _row(self, of: Projections) -> Row:
        rows = of.table(self._table).rows()
        return next((row for row in rows if all(str(row[name]) == part for name, part in self._key.items())), None)

    def _kept(self, pages: Iterator[Sequence[Recorded]]) -> Iterator[Sequence[Recorded]]:
        table, settled, question = self._table, Settled(), self._key.get("question")
        for page in pages:
            for recorded in page:
                answered = settled.before(recorded)
                if not isinstance(recorded.event, FORECASTS):
                    self._base.append(recorded)
                elif (table in OF_FORECASTS and recorded.event.question == question) or (
                    table in OF_SCORES and answered
                ):
                    self._forecasts.append(recorded)
            yield page

    def _as_of(self, position: int) -> Facts:
        """What the log says up to a position, as far as the row depends on it."""
        found, whole = facts([[each for each in self._base if each.position <= position]]), self._facts
        forecasts = whole.forecasts
        kept = forecasts.position <= position
        if (question := self._key.get("question")) is not None and self._table in OF_FORECASTS | OF_SCORES:
            kept &= forecasts.question == whole.question_codes.codes.get(question, -1)
        found.forecasts = forecasts.rows(np.flatnonzero(kept))
        found.participant_codes, found.attestations = whole.participant_codes, whole.attestations
        found.as_of = position
        if self._table in OF_FORECASTS | OF_SCORES:
            self._narrow(found)
        return found

    def _depends(self, scope: Scope, event: Any) -> bool:
        """Whether a row may depend on an event that is no forecast; questions are kept all, for they are numbered."""
        if self._table not in OF_FORECASTS | OF_SCORES or isinstance(event, events.QuestionOpened):
            return True
        contest = self._facts.contests.get(self._key.get("contest", ""))
        if contest is not None and contest.opened.rules.trading is None:
            of_question = not hasattr(event, "contest") and hasattr(event, "question")
            return scope.has(event.question) if of_question else getattr(event, "contest", None) == self._key["contest"]
        return True

    def _narrow(self, found: Facts) -> None:
        """Leave out the contests, and of scores the questions, that the row does not depend on."""
        contest, question = self._key.get("contest"), self._key.get("question")
        if contest is not None:
            found.contests = {name: each for name, each in found.contests.items() if name == contest}
        if question is not None:
            code = found.question_codes.codes.get(question, -1)
            found.contests = {
                name: replace(each, entries={code: each.entries[code]} if code in each.entries else {})
                for name, each in found.contests.items()
            }


def _apart(found: Facts, name: str, codes: Collection[int]) -> dict[int, Tally]:
    """What the scores on each of these questions of a contest come to, where it counts."""
    contest = found.contests[name]
    some = replace(contest, entries={code: contest.entries[code] for code in codes if code in contest.entries})
    scored = Projections(replace(found, contests={name: some})).scored(name)
    each = tallies(contest.opened.rules, *scored, apart=True)
    return dict(zip(scored.questions.code.tolist(), each, strict=True))


def _value(row: Row, column: str) -> Any:
    return None if row is None else row[column]


def _blame(column: str, recorded: Recorded, old: Any, new: Any) -> Blame:
    at = format_instant(recorded.recorded_at)
    return Blame(column, recorded.position, at, kind_of(recorded.event), old, new)
