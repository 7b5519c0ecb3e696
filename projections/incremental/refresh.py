"""Incremental refresh: the facts of a growing log, and the parts of tables that new events touch.

The catalogue says how each table is divided into parts. A part depends on the facts about one question, contest or
account only: the projection of the catalogue runs on those facts, so that each table has one definition.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.model.rules import shown_references
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns
from forecast_ledger.projections.boards.totals import reference_labels
from forecast_ledger.projections.core.arrays import Int64Array, int64_array, stable_order
from forecast_ledger.projections.core.columns import plain_values
from forecast_ledger.projections.facts.accounts import Books
from forecast_ledger.projections.facts.columns import (
    Contest,
    Facts,
    ForecastPage,
    Forecasts,
    codes_of,
    join_pages,
    width,
)
from forecast_ledger.projections.facts.from_log import file_page, gather_forecasts
from forecast_ledger.projections.facts.from_segments import file_segment
from forecast_ledger.projections.facts.outcomes import laid_out, widths
from forecast_ledger.projections.incremental.incremental_parts import (
    IncrementalAccounts,
    IncrementalScores,
    TouchedAccounts,
    TouchedScores,
)
from forecast_ledger.projections.tables.catalogue import (
    BUILT,
    CATALOGUE,
    Projections,
    TableUpdate,
    table_updates,
    tables_with,
)
from forecast_ledger.projections.tables.schemas import ALWAYS, kinds_of

_FORECASTS = (events.ForecastMade, events.ForecastWithdrawn)
_SETTLE = (
    events.QuestionClosed,
    events.QuestionRescheduled,
    events.QuestionAmended,
    events.OutcomesChanged,
    events.QuestionResolved,
    events.QuestionAnnulled,
    events.ResolutionRevoked,
)
_ARRANGE = (
    events.ContestOpened,
    events.QuestionAdded,
    events.ParticipantEnrolled,
    events.ParticipantExcluded,
    events.ContestFinalized,
    events.PrizePaid,
)
# The events that change parts of tables; any other event changes the clock only.
FOLLOWED = (
    *_FORECASTS,
    events.ForecastsRetracted,
    events.ParticipantRenamed,
    *_SETTLE,
    *_ARRANGE,
    events.QuestionOpened,
    events.PricesQuoted,
    events.AccountEvent,
)


@dataclass(slots=True)
class Touched:
    """The facts that new events can have changed.

    questions: codes of questions with new forecasts or another status. described: those opened or of another status.
    scores, trading: the scores and the trading
    accounts that can have changed. admissions: contest and question code of the admissions that can have changed.
    kinds: the kinds of facts that can have changed.
    """

    questions: set[int] = field(default_factory=set)
    described: set[int] = field(default_factory=set)
    scores: TouchedScores = field(default_factory=TouchedScores)
    trading: TouchedAccounts = field(default_factory=TouchedAccounts)
    admissions: set[tuple[str, int]] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)


class IncrementalTables:
    """The facts of a growing log, and the parts of tables that changed.

    Call `add` with each new page of the log, `updates` for the parts of tables that changed since the last `forget`,
    and `forget` once these are stored. No event is read twice.
    """

    def __init__(self, tables: Collection[str] = BUILT) -> None:
        """tables: those that `updates` yields; the work for others is left out."""
        self.facts, self._tables = Facts(), tables
        self._new: list[ForecastPage] = []
        self._forecast_on: list[Int64Array] = []  # the questions of forecasts that are not in `touched` yet
        self._runs: list[Forecasts] = []  # in log order, each at least four times as long as the next
        self._holding: dict[int, set[str]] = {}  # question -> contests that have it
        self._scores = IncrementalScores(self._facts_about, tables)
        self._current_at = 0  # the log position of the last `forget`
        self._accounts = IncrementalAccounts(self.facts, tables)
        self._clock = self.facts.books.clock  # the clock of the last `forget`
        self._cached = False  # whether `updates` filled the caches
        self._reported = True  # whether `updates` was called since the last `add`
        self.touched = Touched()

    def add(self, page: Sequence[Recorded]) -> list[ForecastPage]:
        """Add the next page of the log; return the columns of the forecasts in it.

        Raises Corrupt at an event that does not follow from those before it.
        """
        facts, labels = self.facts, reference_labels(self.facts)
        forecasts = [columns for columns in (file_page(facts, page),) if columns is not None]
        self._reported = False
        facts.statuses.clear()
        self.touched.kinds |= kinds_of({type(recorded.event) for recorded in page})
        self._new += forecasts
        self._forecast_on += [columns.question for columns in forecasts]
        for event in (recorded.event for recorded in page):
            if isinstance(event, events.ForecastsRetracted):
                self._forecast_on.append(int64_array([facts.question_codes.codes[event.question]]))
            elif isinstance(event, events.ParticipantRenamed):
                self._touch_renamed(event)
            elif type(event) not in _FORECASTS:
                self._touch(event)
        if reference_labels(facts) != labels:
            self.touched.scores.boards |= set(facts.contests)
            self.touched.scores.renamed = True
        return forecasts

    def add_segment(self, columns: SegmentColumns, end: Checkpoint) -> list[ForecastPage]:
        """Add the next rows of the log, up to a checkpoint, as columns; call `forget` before anything else.

        Return the columns of the forecasts in it. Raises Corrupt at an event that does not follow from those before it.
        """
        forecasts = file_segment(self.facts, columns, end)
        self._new += forecasts
        self.facts.statuses.clear()
        for name, contest in self.facts.contests.items():
            for code in contest.entries:
                self._holding.setdefault(code, set()).add(name)
        return forecasts

    def forget(self) -> None:
        """Note that the tables are current; `updates` then yields the parts that change from here on."""
        self._scores.forget()
        if not self._reported and self._cached:  # the caches lack the changes
            self._scores, self._accounts, self._cached = (
                IncrementalScores(self._facts_about, self._tables),
                IncrementalAccounts(self.facts, self._tables),
                False,
            )
        self._current_at, self._clock = self.facts.as_of, self.facts.books.clock
        self.touched, self._forecast_on = Touched(), []

    def whole_tables(self, names: Sequence[str]) -> Iterator[TableUpdate]:
        """Yield the whole tables of some projections."""
        self._gather()
        if names:
            projections = Projections(replace(self.facts, held=self._forecasts_on(range(len(self.facts.questions)))))
            yield from (TableUpdate(projections.table(name), [()]) for name in names)

    def updates(self) -> Iterator[TableUpdate]:
        """Yield the current rows of the parts of tables that can have changed."""
        self._gather()
        self._touch_forecasts()
        self._reported = self._cached = True
        yield from self._question_updates()
        yield from self._forecast_updates()
        yield from self._admission_updates()
        yield from self._scores.updates(self.facts, self.touched.scores, self._current_at)
        yield from self._trading_updates()
        yield from self._movement_updates()
        yield from self._quote_updates()
        kinds = self.touched.kinds
        yield from self.whole_tables(
            [name for name in self._updated("log") if not kinds.isdisjoint(CATALOGUE[name].reads)]
        )

    def _touch_forecasts(self) -> None:
        """Add what the new forecasts can have changed."""
        questions = np.unique(np.concatenate([*self._forecast_on, np.zeros(0, np.int64)])).tolist()
        self.touched.questions.update(questions)
        self.touched.admissions |= {(contest, code) for code in questions for contest in self._holding.get(code, ())}
        for code in self.facts.settled.keys() & questions:
            self._touch_scores(code, self._holding.get(code, set()))

    def _touch(self, event: events.AnyEvent) -> None:
        """Add what an event can have changed. Raises TypeError: a table reads the event, and FOLLOWED lacks it."""
        codes, touched = self.facts.question_codes.codes, self.touched
        match event:
            case events.QuestionOpened():
                touched.described.add(codes[event.question])
            case events.PricesQuoted():
                quoted = {codes[quote.question] for quote in event.quotes}
                touched.trading.quoted |= quoted
                for code in quoted & self.facts.settled.keys():
                    self._touch_scores(code, set(filter(self._shows_market, self._holding.get(code, ()))))
            case _ if isinstance(event, _SETTLE):
                code = codes[event.question]
                touched.questions.add(code)
                touched.described.add(code)
                self._touch_scores(code, self._holding.get(code, set()))
                touched.trading.ruled.add(code)
                if isinstance(event, events.QuestionRescheduled):
                    touched.admissions |= {(contest, code) for contest in self._holding.get(code, ())}
            case _ if isinstance(event, _ARRANGE):
                if isinstance(event, events.QuestionAdded):
                    code = codes[event.question]
                    self._holding.setdefault(code, set()).add(event.contest)
                    self._touch_scores(code, {event.contest})
                    touched.admissions.add((event.contest, code))
                else:
                    touched.scores.boards.add(event.contest)
                if isinstance(event, events.ParticipantExcluded):
                    touched.trading.excluding.add(event.contest)
                if isinstance(event, events.ParticipantEnrolled):
                    touched.trading.accounts |= self.facts.books.accounts.keys() & {(event.contest, event.participant)}
                touched.trading.contests.add(event.contest)
            case events.AccountEvent():
                touched.trading.accounts.add((event.contest, event.participant))
            case _ if not isinstance(event, FOLLOWED) and (kinds := kinds_of([type(event)]) - ALWAYS):
                name = type(event).__name__
                raise TypeError(f"{name} changes {', '.join(sorted(kinds))}: add a case for it to IncrementalTables")

    def _touch_renamed(self, event: events.ParticipantRenamed) -> None:
        """Add what another id can have changed: all that the participant forecast, and boards that are not sealed."""
        facts = self.facts
        codes = codes_of(facts.renames, facts.participant_codes.codes[event.to])
        columns = [(columns.question, columns.participant) for columns in self._new]
        columns += [(run.question, run.participant) for run in self._runs]
        self._forecast_on += [questions[np.isin(participants, codes)] for questions, participants in columns]
        self.touched.scores.boards |= {name for name, contest in facts.contests.items() if contest.sealed is None}
        names, accounts = {facts.participant_codes.labels[code] for code in codes}, facts.books.accounts
        for contest in facts.contests:
            if keys := {(contest, name) for name in names if (contest, name) in accounts}:
                self.touched.trading.renamed |= keys
                self.touched.trading.accounts |= {(contest, name) for name in names}
                self.touched.trading.excluding.add(contest)
                self.touched.trading.contests.add(contest)

    def _shows_market(self, contest: str) -> bool:
        return "market" in shown_references(self.facts.contests[contest].opened.rules)

    def _touch_scores(self, question: int, contests: set[str]) -> None:
        for name in contests:
            self.touched.scores.questions.setdefault(name, set()).add(question)

    # --- forecasts in a few sorted runs, so that a new forecast moves few others

    def _gather(self) -> None:
        """File the new forecasts. Raises Corrupt at an invalid one."""
        if self._new:
            self._runs.append(gather_forecasts(self.facts, self._new))
            self._new = []
            while len(self._runs) > 1 and 4 * len(self._runs[-1].at) > len(self._runs[-2].at):
                last_two = [self._columns(run, np.arange(len(run.at))) for run in self._runs[-2:]]
                self._runs[-2:] = [_by_question(last_two)]

    def _forecasts_on(self, questions: Iterable[int]) -> Forecasts:
        """Return the forecasts on these questions, question after question."""
        if len(self._runs) == 1 and isinstance(questions, range):
            return laid_out(self.facts, self._runs[0])
        codes = int64_array(sorted(questions))
        rows = [self._columns(run, _rows_of_questions(run, codes)) for run in self._runs]
        return laid_out(self.facts, _by_question(rows))

    def _columns(self, run: Forecasts, index: Int64Array) -> ForecastPage:
        rows = run.rows(index)
        base = np.zeros(len(self.facts.questions), np.int64)
        for code in np.unique(rows.question).tolist():
            base[code] = width(self.facts.questions[code])
        lengths = widths(self.facts, base, rows.question, rows.position) * rows.made
        numbers = np.arange(int(lengths.sum())) + np.repeat(rows.start - np.cumsum(lengths) + lengths, lengths)
        made = rows.made.astype(np.int64)
        same = rows.position, rows.at, rows.recorded_at, rows.question, rows.participant
        return ForecastPage(*same, made, rows.until, lengths, run.chances[numbers])

    # --- updates

    def _updated(self, division: str) -> list[str]:
        return tables_with(division, self._tables)

    def _clock_moved(self) -> bool:
        return self.facts.books.clock != self._clock

    def _facts_about(
        self, contests: dict[str, Contest], questions: Iterable[int] = (), books: Books | None = None
    ) -> Facts:
        """Return the facts about some contests, with the forecasts on some questions."""
        return replace(
            self.facts, contests=contests, held=self._forecasts_on(questions), books=books or self.facts.books
        )

    def _contests(self, names: Iterable[str]) -> dict[str, Contest]:
        return {name: self.facts.contests[name] for name in names}

    def _question_updates(self) -> Iterator[TableUpdate]:
        names = {self.facts.questions[code].question for code in self.touched.described}
        keys = [(name,) for name in names]
        for update in table_updates(Projections(self._facts_about({})), "questions", keys, self._tables):
            rows = [row for row, name in enumerate(plain_values(update.table.values[0])) if name in names]
            yield update._replace(table=update.table.rows_at(int64_array(rows)))

    def _forecast_updates(self) -> Iterator[TableUpdate]:
        if self._updated("forecasts"):
            codes = self.touched.questions
            keys = [(self.facts.questions[code].question,) for code in codes]
            yield from table_updates(Projections(self._facts_about({}, codes)), "forecasts", keys, self._tables)

    def _admission_updates(self) -> Iterator[TableUpdate]:
        for name, code in sorted(self.touched.admissions):
            contest = self.facts.contests[name]
            if contest.opened.rules.attested:
                narrowed = replace(contest, entries={code: contest.entries[code]})
                key = name, self.facts.questions[code].question
                projections = Projections(self._facts_about({name: narrowed}, [code]))
                yield from table_updates(projections, "receipts", [key], self._tables)

    def _trading_updates(self) -> Iterator[TableUpdate]:
        trading = self.touched.trading
        yield from self._accounts.updates(trading, ticked=self._clock_moved())
        if contests := trading.contests:
            projections = Projections(self._facts_about(self._contests(contests)))
            yield from table_updates(projections, "contests", [(name,) for name in contests], self._tables)
            yield from self._accounts.overall()

    def _movement_updates(self) -> Iterator[TableUpdate]:
        """Yield the rows of movements recorded since the last `forget`, and of those whose account has another id."""
        books, renamed = self.facts.books, self.touched.trading.renamed
        since = bisect_right(books.movements, self._current_at, key=lambda movement: movement.position)
        former = [movement for movement in books.movements[:since] if movement.key in renamed] if renamed else []
        new = replace(books, movements=[*former, *books.movements[since:]])
        projections = Projections(self._facts_about(self._contests(self.touched.trading.contests), books=new))
        for name in self._updated("movements"):
            table = projections.table(name)
            positions = int64_array(table.numbers("log_position"))
            changed = np.isin(positions, [movement.position for movement in former])
            table = table.rows_at(np.flatnonzero((positions > self._current_at) | changed))
            if len(table):
                yield TableUpdate(table, [(position,) for position in sorted({*table.numbers("log_position")})])

    def _quote_updates(self) -> Iterator[TableUpdate]:
        if self._clock_moved() or self.touched.trading.quoted or self.touched.trading.ruled:
            projections = Projections(self._facts_about({}))
            projections.marks = self._accounts.marks
            yield from table_updates(projections, "quotes", [()], self._tables)


def _rows_of_questions(run: Forecasts, codes: Int64Array) -> Int64Array:
    begins, counts = np.searchsorted(run.question, codes), run.counts(codes)
    rows: Int64Array = np.arange(int(counts.sum())) + np.repeat(begins - np.cumsum(counts) + counts, counts)
    return rows


def _by_question(pages: list[ForecastPage]) -> Forecasts:
    """Join pages into forecasts in log order within each question, question after question."""
    forecasts, _ = join_pages(pages)
    return forecasts.rows(stable_order(forecasts.question))
