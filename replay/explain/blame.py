"""Find the event that last changed each column of a row, by computing the row before and after each candidate.

Candidates are the events that can change the row. They are examined from the newest to the oldest, in stretches of
increasing length. Within a stretch, facts are extended from one candidate to the next. For boards, only the questions
that a candidate touches are scored again.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.model.plain_rows import ReadPage, is_id
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns
from forecast_ledger.ledger.storing.sealed_log import UNTOLD, SealedPart
from forecast_ledger.projections.boards.owner_sums import BoardSums, adds_in_floats
from forecast_ledger.projections.boards.totals import Tally, may_take_reference_label, tallies
from forecast_ledger.projections.core.arrays import Codes
from forecast_ledger.projections.facts.columns import Contest, Facts, Forecasts
from forecast_ledger.projections.facts.from_log import facts as facts_of
from forecast_ledger.projections.facts.from_log import file_page
from forecast_ledger.projections.facts.from_segments import facts_of_segments, segment_events
from forecast_ledger.projections.scores.time_weighted import ContestScores
from forecast_ledger.projections.tables.analysis import CachedResults
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from forecast_ledger.projections.tables.schemas import FORECASTS, SETTLING
from forecast_ledger.replay.explain.diff import (
    AnsweredQuestions,
    Scope,
    can_change,
    limiting_key,
    market_contests,
    reads_forecasts,
    reads_scores,
    single_question,
)
from forecast_ledger.replay.reading.event_text import event_type, origin
from forecast_ledger.replay.reading.log import Log

PrintedRow = dict[str, Any] | None  # None if there is no such row
_KEPT = 1 << 20  # sums of scores that are kept at once
_STRETCHES = 64  # of candidates, after which the sums of scores are made anew


class LastChange(NamedTuple):
    """The last change of one column: the event, who asked for it and why, and the old and the new value.

    A new row changes every column. by, reason: empty if the command did not say.
    """

    column: str
    log_position: int
    recorded_at: str
    type: str
    old: Any
    new: Any
    by: str = ""
    reason: str = ""


class BlameResult(NamedTuple):
    """The last change of each column of a row, and how many of the candidates were examined."""

    columns: list[LastChange]
    looked_at: int
    candidates: int
    checkpoint: Checkpoint


def blame(source: Log, table: str, key: Sequence[str], columns: Collection[str] = ()) -> BlameResult:
    """Return the last change of each column of the row with this key.

    key: as printed, in the order of the table's key. columns: the columns to examine; all if empty.
    `source.on_progress` is called with the number of candidates examined. Raises, first that applies: Refused
    (out_of_range: the key has another number of parts, or there is no such column; as_of is not an instant, or beyond
    the log), Unavailable, Corrupt; Refused (nothing_standing: there is no such row).
    """
    names, every = CATALOGUE[table].key, [column.name for column in CATALOGUE[table].columns]
    if len(names) != len(key):
        wrong = f"the key of {table} is {' '.join(names)}"
        raise Refused("out_of_range", "key", " ".join(key), wrong, remedy="give each part of the key, in this order")
    left = [name for name in every if name not in names and (not columns or name in columns)]
    if unknown := [name for name in columns if name not in left]:
        wrong = f"the columns of {table} are {', '.join(every)}; its key is {' '.join(names)}"
        raise Refused("out_of_range", "column", unknown[0], wrong, remedy="name a column that is not part of the key")
    history = _History(source, table, dict(zip(names, key, strict=True)))
    if history.row is None:
        wrong = f"no such row in {table} as of log position {history.checkpoint.position}"
        raise Refused("nothing_standing", "key", " ".join(key), wrong, remedy=f"`table LOG {table}` lists the rows")
    changes: dict[str, LastChange] = {}
    looked_at = 0
    for recorded, before, row in history.back():
        looked_at += 1
        source.on_progress(looked_at)
        for column in [*left]:
            old, new = _value(before, column), _value(row, column)
            if old != new or (before is None) != (row is None):
                changes[column] = _last_change(column, recorded, old, new)
                left.remove(column)
        if not left:
            break
    in_order = [changes[name] for name in every if name in changes]
    return BlameResult(in_order, looked_at, len(history.candidates), history.checkpoint)


class _History:
    """A row of a table as of any log position, after one pass through the log."""

    def __init__(self, source: Log, table: str, key: dict[str, str]) -> None:
        self._table, self._key, self._limiting_key = table, key, limiting_key(table, key)
        self._name = self._limiting_key.get("contest", "")
        self._depends_on_forecasts = reads_forecasts(table) or reads_scores(table)
        reads = CATALOGUE[table].reads
        self._ticks, self._quotes = "clock" in reads, "quotes" in reads
        self._base: list[Recorded] = []  # all but forecasts, which stay in columns, unless the clock counts
        self._forecasts: list[Recorded] = []  # the forecasts that may change the row
        self._answers, self._ever_answered = AnsweredQuestions(), set[bytes]()  # so far in the log; or at some time
        cut = source.cut()
        with source.parts(cut, UNTOLD) as parts:
            self._facts = parts.made(lambda pages: self._read(parts.segments, pages))
        self.checkpoint = cut.reached()
        self._whole = self._on_question(self._facts.forecasts)
        labels, contests = self._facts.question_codes.labels, self._facts.contests
        questions = {contest: {labels[code] for code in row.entries} for contest, row in contests.items()}
        self._markets = market_contests(self._facts)
        scope = Scope(table, self._limiting_key, questions, self._markets)
        self._base = [recorded for recorded in self._base if self._depends(scope, recorded.event)]
        every = sorted([*self._base, *self._forecasts], key=lambda recorded: recorded.position)
        self.candidates = [*_candidates(scope, every)]
        self.row = self._row(self._as_of(self.checkpoint.position))

    def back(self) -> Iterator[tuple[Recorded, PrintedRow, PrintedRow]]:
        """Yield each candidate, the newest first, with the row before it and after it."""
        after, rows = self.row, self._rows()
        for recorded in reversed(self.candidates):
            before = next(rows)
            yield recorded, before, after
            after = before

    def _rows(self) -> Iterator[PrintedRow]:
        """Yield the row before each candidate, the newest first."""
        now, whole, places = Facts(), None, self._facts.question_codes.codes  # whole: the sums of the contest as of now
        for number, stretch in enumerate(self._stretches()):
            if not self._is_tallied(stretch[0]):
                whole = None
                yield from reversed([*self._growing(stretch[::-1])])
                continue
            if whole is None or number % _STRETCHES == 0:
                now = self._as_of(stretch[0].position)
                whole = self._sums(now)
            then = self._as_of(stretch[-1].position - 1)
            touched = [places[single_question(recorded.event)] for recorded in stretch]
            for before in self._replaced(whole, touched, now, then):
                whole = before
                yield self._row(now, before)
            now = then

    def _stretches(self) -> Iterator[list[Recorded]]:
        """Yield the candidates, the newest first, in stretches of increasing length.

        In a stretch that is tallied, each candidate touches another question.
        """
        left, longest = [*self.candidates], 1
        most = max(_KEPT // max(len(self._facts.participant_codes.codes), 1), 1)
        while left:
            stretch, seen = list[Recorded](), set[str]()
            tallied = self._is_tallied(left[-1])
            while left and len(stretch) < longest:
                question = single_question(left[-1].event)
                if self._is_tallied(left[-1]) != tallied or (tallied and question in seen):
                    break
                seen.add(question)
                stretch.append(left.pop())
            yield stretch
            longest = min(2 * longest, most)

    def _is_tallied(self, recorded: Recorded) -> bool:
        """Return whether the row before an event follows from the row after it and one question scored again."""
        return CATALOGUE[self._table].division == "boards" and bool(single_question(recorded.event))

    def _growing(self, candidates: Sequence[Recorded]) -> Iterator[PrintedRow]:
        """Yield the row before each candidate, the oldest first, from facts that are extended from one to the next."""
        facts, read = Facts(), 0
        for recorded in candidates:
            upto = bisect_left(self._base, recorded.position, key=lambda recorded: recorded.position)
            if read < upto:
                file_page(facts, self._base[read:upto])
            yield self._row(self._seen(facts, recorded.position - 1))
            read = upto

    def _row(self, facts: Facts, sums: Tally | BoardSums | None = None) -> PrintedRow:
        """Return the row. sums: those of the scores in the contest, if they are at hand."""
        cached = CachedResults(participant=self._key.get("participant"))
        if isinstance(sums, BoardSums):
            cached.standings = {self._name: sums.standings(facts, self._name)}
        elif sums is not None:
            cached.tallies = {self._name: sums}
        table = Projections(facts, cached=cached).table(self._table)
        for column in table.columns:
            if column.kind == "id" and column.name in self._key:
                table = table.only(column.name, self._key[column.name])
        rows = table.rows()
        return next((row for row in rows if all(str(row[name]) == part for name, part in self._key.items())), None)

    def _sums(self, facts: Facts) -> Tally | BoardSums:
        """Return the sums of the scores in the contest."""
        projections, rules = Projections(facts), facts.contests[self._name].opened.rules
        if adds_in_floats(rules):
            return BoardSums.of(facts, rules, projections.scored(self._name))
        return projections.tally(self._name)

    def _replaced(
        self, whole: Tally | BoardSums, touched: Sequence[int], now: Facts, then: Facts
    ) -> Iterator[Tally | BoardSums]:
        """Yield the sums with the first of some questions, by code, as it was then, with the first two, and so on."""
        rules = now.contests[self._name].opened.rules
        former, instead = (self._scored(facts, touched) for facts in (now, then))
        if isinstance(whole, BoardSums):
            yield from whole.replaced(now, rules, touched, (former, instead))
            return
        less, more = (self._tallies(rules, scored) for scored in (former, instead))
        for code in touched:
            whole = whole.plus(less[code], -1) if code in less else whole
            whole = whole.plus(more[code]) if code in more else whole
            yield whole

    def _scored(self, facts: Facts, codes: Sequence[int]) -> ContestScores:
        """Return the scores on these questions in the contest."""
        contest = facts.contests[self._name]
        some = replace(contest, entries={code: contest.entries[code] for code in codes if code in contest.entries})
        return Projections(replace(facts, contests={self._name: some})).scored(self._name)

    def _tallies(self, rules: RuleSet, scored: ContestScores) -> dict[int, Tally]:
        """Return the tally of each question that counts in the contest, by its code."""
        every = np.arange(len(scored.questions.code))
        by_question = tallies(rules, *scored, len(self._facts.participant_codes.codes), every)
        return dict(zip(scored.questions.code.tolist(), by_question, strict=True))

    def _read(self, segments: Iterator[SealedPart], pages: Iterator[Sequence[Recorded]]) -> Facts:
        """Return the facts of the log, and keep the events that the row may depend on."""
        self._answers = AnsweredQuestions()
        for kept in (self._base, self._forecasts, self._ever_answered):  # perhaps of another attempt
            kept.clear()
        return facts_of_segments(self._passed(segments), self._collected(pages))

    def _passed(self, segments: Iterator[SealedPart]) -> Iterator[tuple[SegmentColumns, Checkpoint]]:
        """Collect the events of segments, and pass on their columns."""
        every = self._depends_on_forecasts or self._ticks
        for part in segments:
            self._collect(segment_events(part.columns, None if every else ""))
            yield part.columns, part.end

    def _collected(self, pages: Iterator[Sequence[Recorded]]) -> Iterator[Sequence[Recorded]]:
        for page in pages:
            self._collect(self._chosen(page) if isinstance(page, ReadPage) and not self._ticks else page)
            yield page

    def _chosen(self, page: ReadPage) -> Sequence[Recorded]:
        """Return the events of a page but for forecasts that cannot change the row."""
        if not self._depends_on_forecasts:
            return page.others
        settled = (recorded.event for recorded in page.others if isinstance(recorded.event, SETTLING))
        self._ever_answered.update(event.question.encode() for event in settled)
        if (question := self._limiting_key.get("question")) is not None:
            return page.where(is_id(question), _may_rename)
        return page if reads_forecasts(self._table) else page.where(self._ever_answered.__contains__, _may_rename)

    def _collect(self, page: Sequence[Recorded]) -> None:
        anywhere = {column: part for column, part in self._limiting_key.items() if column != "contest"}
        scope = Scope(self._table, anywhere, {})
        for recorded in page:
            answered = self._answers.take_in(recorded)
            if self._ticks or not isinstance(recorded.event, FORECASTS):
                self._base.append(recorded)
            elif self._depends_on_forecasts and can_change(scope, recorded, answered=answered):
                self._forecasts.append(recorded)

    def _on_question(self, forecasts: Forecasts) -> Forecasts:
        """Return the forecasts on the question of the row; all, if it has no question."""
        if (question := self._limiting_key.get("question")) is None or not self._depends_on_forecasts:
            return forecasts
        return forecasts.rows(np.flatnonzero(forecasts.question == self._facts.question_codes.codes.get(question, -1)))

    def _as_of(self, position: int) -> Facts:
        """Return the facts up to a position, as far as the row depends on them."""
        upto = bisect_right(self._base, position, key=lambda recorded: recorded.position)
        return self._seen(facts_of([self._base[:upto]] if upto else []), position)

    def _seen(self, facts: Facts, position: int) -> Facts:
        """Return the facts with forecasts, and without the contests and questions that the row does not depend on."""
        forecasts = self._whole
        if reads_forecasts(self._table):  # scores select the forecasts of their time themselves
            forecasts = forecasts.rows(np.flatnonzero(forecasts.position <= position))
        return replace(
            facts,
            as_of=position,
            held=forecasts,
            participant_codes=self._codes(position),
            attestations=self._facts.attestations,
            statuses={},
            contests=self._narrowed(facts.contests) if self._depends_on_forecasts else facts.contests,
        )

    def _depends(self, scope: Scope, event: Any) -> bool:
        """Return whether a row may depend on an event that is not a forecast.

        Every question counts, for its number and for the times that a later event fits; so does every other id.
        """
        always = isinstance(event, events.QuestionOpened | events.QuestionRescheduled | events.ParticipantRenamed)
        if always or not self._depends_on_forecasts:
            return True
        contest = self._facts.contests.get(self._limiting_key.get("contest", ""))
        if isinstance(event, events.PricesQuoted):
            trading = contest is None or contest.opened.rules.trading is not None
            return self._quotes or trading or scope.shows(event)
        if contest is not None and contest.opened.rules.trading is None:
            about_question = not hasattr(event, "contest") and hasattr(event, "question")
            return (
                scope.depends_on(event.question)
                if about_question
                else getattr(event, "contest", None) == self._limiting_key["contest"]
            )
        return True

    def _codes(self, position: int) -> Codes:
        """Return the participants, numbered as at the end.

        A participant with the name of a reference forecaster is renamed until their first forecast.
        """
        whole, made = self._facts.participant_codes, self._facts.forecasts
        if not any(map(may_take_reference_label, whole.codes)):
            return whole
        there, codes = set(made.named(position).participant[made.position <= position].tolist()), Codes()
        for name, code in whole.codes.items():
            codes.add(name if code in there or not may_take_reference_label(name) else f"\0{name}")
        return codes

    def _narrowed(self, contests: dict[str, Contest]) -> dict[str, Contest]:
        """Return the contests that the row depends on, with the questions that it depends on."""
        contest, question = self._limiting_key.get("contest"), self._limiting_key.get("question")
        if contest is not None:
            contests = {name: row for name, row in contests.items() if name == contest}
        if question is not None:
            code = self._facts.question_codes.codes.get(question, -1)
            contests = {
                name: replace(row, entries={code: row.entries[code]} if code in row.entries else {})
                for name, row in contests.items()
            }
        return contests


def _candidates(scope: Scope, every: Sequence[Recorded]) -> Iterator[Recorded]:
    """Yield the events that can change a row, the oldest first."""
    answers, clock = AnsweredQuestions(), -(2**63)
    for recorded in every:
        at = recorded.event.at
        if can_change(scope, recorded, answered=answers.take_in(recorded), advancing=at > clock):
            yield recorded
        clock = max(clock, at)


def _may_rename(participant: bytes) -> bool:
    return may_take_reference_label(participant.decode())


def _value(row: PrintedRow, column: str) -> Any:
    return None if row is None else row[column]


def _last_change(column: str, recorded: Recorded, old: Any, new: Any) -> LastChange:
    at = format_instant(recorded.recorded_at)
    said = origin(recorded)
    return LastChange(column, recorded.position, at, event_type(recorded.event), old, new, said.by, said.reason)
