"""Which event last changed each column of a row: the row worked out again before and after each that can have.

From the newest back, ever more at a time. The facts grow from one of a stretch to the next; of boards, only questions
that were touched are scored again, and the others' tally is kept.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.projections.boards.totals import Tally, takes_its_name, tallies
from forecast_ledger.projections.catalogue.analysis import Known
from forecast_ledger.projections.catalogue.catalogue import CATALOGUE
from forecast_ledger.projections.catalogue.inputs import FORECASTS
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.core.codes import Codes
from forecast_ledger.projections.facts.columns import Contest, Facts, Forecasts
from forecast_ledger.projections.facts.from_log import facts, note
from forecast_ledger.replay.explain.dependencies import Scope, Settled, alone, can_change, reads_forecasts, reads_scores
from forecast_ledger.replay.explain.explain_scores import Source
from forecast_ledger.replay.reading.event_text import kind_of
from forecast_ledger.replay.reading.replay import Cut, opened

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
    names, every = CATALOGUE[table].key, [column.name for column in CATALOGUE[table].columns]
    if len(names) != len(key):
        said = f"the key of {table} is {' '.join(names)}"
        raise Refused("out_of_range", "key", " ".join(key), said, remedy="give each part of the key, in this order")
    left = [name for name in every if name not in names and (not columns or name in columns)]
    if unknown := [name for name in columns if name not in left]:
        said = f"{table} has {', '.join(every)}; {' '.join(names)} name a row"
        raise Refused("out_of_range", "column", unknown[0], said, remedy="name a column that is no part of the key")
    history = _History(source, table, dict(zip(names, key, strict=True)))
    if history.row is None:
        said = f"no such row in {table} as of log position {history.checkpoint.position}"
        raise Refused("nothing_standing", "key", " ".join(key), said, remedy=f"`table LOG {table}` lists the rows")
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
        self._table, self._key, self._name = table, key, key.get("contest", "")
        self._of_forecasts = reads_forecasts(table) or reads_scores(table)
        self._base: list[Recorded] = []  # all but forecasts, which are many and stay columns unless the clock counts
        self._forecasts: list[Recorded] = []  # those that can change the row, or may
        cut = Cut(source.as_of)
        with opened(source.location, source.name) as store:
            self._facts = facts(self._kept(cut.pages(log.unseal_pages(store.pages()), source.watch)))
        self.checkpoint = cut.reached()
        self._whole = self._of_question(self._facts.forecasts)
        labels, codes = self._facts.question_codes.labels, self._facts.contests
        questions = {name: {labels[code] for code in each.entries} for name, each in codes.items()}
        scope, settled = Scope(table, key, questions), Settled()
        self._base = [each for each in self._base if self._depends(scope, each.event)]
        every = sorted([*self._base, *self._forecasts], key=lambda recorded: recorded.position)
        self.candidates = [each for each in every if can_change(scope, each, settled=settled.before(each))]
        self.row = self._row(Projections(self._as_of(self.checkpoint.position)))

    def back(self) -> Iterator[tuple[Recorded, Row, Row]]:
        """Each candidate, the newest first, with the row before it and after it."""
        after, rows = self.row, self._rows()
        for recorded in reversed(self.candidates):
            before = next(rows)
            yield recorded, before, after
            after = before

    def _rows(self) -> Iterator[Row]:
        """The row before each candidate, the newest first."""
        now, whole = Facts(), None  # whole: the contest's tally now
        for stretch in self._stretches():
            if not self._is_tallied(stretch[0]):
                whole = None
                yield from reversed([*self._growing(stretch[::-1])])
                continue
            if whole is None:
                now = self._as_of(stretch[0].position)
                whole = Projections(now).tally(self._name)
            then, codes = self._as_of(stretch[-1].position - 1), self._facts.question_codes.codes
            touched = [codes[alone(each.event)] for each in stretch]
            less, more = self._tallies(now, touched), self._tallies(then, touched)
            for code in touched:
                whole = whole.plus(less[code], -1) if code in less else whole
                whole = whole.plus(more[code]) if code in more else whole
                yield self._row(Projections(now, known=Known({self._name: whole})))
            now = then

    def _stretches(self) -> Iterator[list[Recorded]]:
        """The candidates, the newest first, in ever longer stretches: if tallied, such as touch a question each."""
        left, longest = [*self.candidates], 1
        while left:
            stretch, seen = list[Recorded](), set[str]()
            tallied = self._is_tallied(left[-1])
            while left and len(stretch) < longest:
                question = alone(left[-1].event)
                if self._is_tallied(left[-1]) != tallied or (tallied and question in seen):
                    break
                seen.add(question)
                stretch.append(left.pop())
            yield stretch
            longest *= 2

    def _is_tallied(self, recorded: Recorded) -> bool:
        """Whether the row before an event follows from the one after it and one question scored again."""
        return CATALOGUE[self._table].divided == "boards" and bool(alone(recorded.event))

    def _growing(self, candidates: Sequence[Recorded]) -> Iterator[Row]:
        """The row before each of some candidates, the oldest first, from facts that grow from one to the next."""
        found, read = Facts(), 0
        for recorded in candidates:
            upto = bisect_left(self._base, recorded.position, key=lambda each: each.position)
            if read < upto:
                note(found, self._base[read:upto])
            yield self._row(Projections(self._seen(found, recorded.position - 1)))
            read = upto

    def _row(self, of: Projections) -> Row:
        rows = of.table(self._table).rows()
        return next((row for row in rows if all(str(row[name]) == part for name, part in self._key.items())), None)

    def _tallies(self, facts: Facts, codes: Sequence[int]) -> dict[int, Tally]:
        """What the scores on each of these questions of a contest come to, where it counts."""
        contest = facts.contests[self._name]
        some = replace(contest, entries={code: contest.entries[code] for code in codes if code in contest.entries})
        scored = Projections(replace(facts, contests={self._name: some})).scored(self._name)
        every = np.arange(len(scored.questions.code))
        each = tallies(contest.opened.rules, *scored, len(facts.participant_codes.codes), every)
        return dict(zip(scored.questions.code.tolist(), each, strict=True))

    def _kept(self, pages: Iterator[Sequence[Recorded]]) -> Iterator[Sequence[Recorded]]:
        settled, anywhere = Settled(), {column: part for column, part in self._key.items() if column != "contest"}
        scope, ticks = Scope(self._table, anywhere, {}), "clock" in CATALOGUE[self._table].reads
        for page in pages:
            for recorded in page:
                answered = settled.before(recorded)
                if ticks or not isinstance(recorded.event, FORECASTS):
                    self._base.append(recorded)
                elif self._of_forecasts and can_change(scope, recorded, settled=answered):
                    self._forecasts.append(recorded)
            yield page

    def _of_question(self, forecasts: Forecasts) -> Forecasts:
        """Those on the row's question; all, if it is of none."""
        if (question := self._key.get("question")) is None or not self._of_forecasts:
            return forecasts
        return forecasts.rows(np.flatnonzero(forecasts.question == self._facts.question_codes.codes.get(question, -1)))

    def _as_of(self, position: int) -> Facts:
        """What the log says up to a position, as far as the row depends on it."""
        upto = bisect_right(self._base, position, key=lambda each: each.position)
        return self._seen(facts([self._base[:upto]] if upto else []), position)

    def _seen(self, facts: Facts, position: int) -> Facts:
        """The same with forecasts, and without contests and questions of no concern."""
        forecasts = self._whole
        if reads_forecasts(self._table):  # scores pick those of their time themselves
            forecasts = forecasts.rows(np.flatnonzero(forecasts.position <= position))
        return replace(
            facts,
            as_of=position,
            forecasts=forecasts,
            participant_codes=self._codes(position),
            attestations=self._facts.attestations,
            statuses={},
            contests=self._narrowed(facts.contests) if self._of_forecasts else facts.contests,
        )

    def _depends(self, scope: Scope, event: Any) -> bool:
        """Whether a row may depend on an event that is no forecast; questions are kept all, for they are numbered."""
        if not self._of_forecasts or isinstance(event, events.QuestionOpened):
            return True
        contest = self._facts.contests.get(self._key.get("contest", ""))
        if contest is not None and contest.opened.rules.trading is None:
            of_question = not hasattr(event, "contest") and hasattr(event, "question")
            return scope.has(event.question) if of_question else getattr(event, "contest", None) == self._key["contest"]
        return True

    def _codes(self, position: int) -> Codes:
        """Everybody, numbered as at the end; nobody has the consensus's name before their first forecast."""
        whole, made = self._facts.participant_codes, self._facts.forecasts
        if not any(map(takes_its_name, whole.codes)):
            return whole
        there, codes = set(made.participant[made.position <= position].tolist()), Codes()
        for name, code in whole.codes.items():
            codes.add(name if code in there or not takes_its_name(name) else f"\0{name}")
        return codes

    def _narrowed(self, contests: dict[str, Contest]) -> dict[str, Contest]:
        """The contests, and of scores the questions, that the row depends on."""
        contest, question = self._key.get("contest"), self._key.get("question")
        if contest is not None:
            contests = {name: each for name, each in contests.items() if name == contest}
        if question is not None:
            code = self._facts.question_codes.codes.get(question, -1)
            contests = {
                name: replace(each, entries={code: each.entries[code]} if code in each.entries else {})
                for name, each in contests.items()
            }
        return contests


def _value(row: Row, column: str) -> Any:
    return None if row is None else row[column]


def _blame(column: str, recorded: Recorded, old: Any, new: Any) -> Blame:
    at = format_instant(recorded.recorded_at)
    return Blame(column, recorded.position, at, kind_of(recorded.event), old, new)
