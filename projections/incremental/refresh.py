"""Incremental refresh: the facts of a growing log, and the parts of tables that new events touch.

The catalogue tells how a table is divided. Each part follows from the facts about one question, contest or account: the
projection of the catalogue runs on those facts only, so that each table has one definition.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.projections.boards.totals import consensus_label
from forecast_ledger.projections.catalogue.catalogue import CATALOGUE
from forecast_ledger.projections.catalogue.inputs import kinds_of
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.core.sorting import stable_order
from forecast_ledger.projections.facts.accounts import Books
from forecast_ledger.projections.facts.columns import Contest, Facts, Forecasts, joined
from forecast_ledger.projections.facts.from_log import Columns, gathered, note, width
from forecast_ledger.projections.incremental.deltas import Parts, divided, parts
from forecast_ledger.projections.incremental.incremental_accounts import IncrementalAccounts, TouchedAccounts
from forecast_ledger.projections.incremental.incremental_scores import IncrementalScores, TouchedScores

_FORECASTS = (events.ForecastMade, events.ForecastWithdrawn)
_QUESTION = 3  # the index of the question column of forecasts
_SETTLE = (events.QuestionClosed, events.QuestionResolved, events.QuestionAnnulled, events.ResolutionRevoked)
_ARRANGE = (
    events.ContestOpened,
    events.QuestionAdded,
    events.ParticipantEnrolled,
    events.ParticipantExcluded,
    events.ContestFinalized,
    events.PrizePaid,
)
# The events whose changes are followed to parts of tables; any other event changes the clock only.
FOLLOWED = (*_FORECASTS, *_SETTLE, *_ARRANGE, events.QuestionOpened, events.PricesQuoted, events.AccountEvent)


@dataclass(slots=True)
class Touched:
    """The facts that new events can have changed.

    questions: codes of questions with new forecasts or another status. scoring, dealt: the scores and the trading
    accounts that can have changed. admissions: contest and question code of changed admissions. kinds: kinds of facts.
    """

    questions: set[int] = field(default_factory=set)
    scoring: TouchedScores = field(default_factory=TouchedScores)
    dealt: TouchedAccounts = field(default_factory=TouchedAccounts)
    admissions: set[tuple[str, int]] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)


class IncrementalTables:
    """The facts of a growing log, and the parts of tables that changed.

    Call `add` with each new page of the log, `parts` for the parts of tables that changed since the last `forget`, and
    `forget` once these are stored. No event is read twice.
    """

    def __init__(self) -> None:
        self.facts = Facts()
        self._new: list[Columns] = []
        self._runs: list[Forecasts] = []  # in log order, each at least four times as long as the next
        self._holding: dict[int, set[str]] = {}  # question -> contests that have it
        self._boards = IncrementalScores(self._only)
        self._right_at = 0  # the log position of the last `forget`
        self._traders = IncrementalAccounts(self.facts)
        self._clock = self.facts.books.clock  # the clock of the last `forget`
        self._keeps = False
        self._told = True  # whether `parts` was called since the last `add`
        self.touched = Touched()

    def add(self, page: Sequence[Recorded]) -> None:
        """Add the next page of the log. Raises Corrupt at an event that does not follow from those before it."""
        found, label = self.facts, consensus_label(self.facts)
        forecasts = note(found, page)
        self._told = False
        found.statuses.clear()
        self.touched.kinds |= kinds_of({type(recorded.event) for recorded in page})
        if forecasts is not None:
            self._new.append(forecasts)
            self._forecast(np.unique(forecasts[_QUESTION]).tolist())
        for recorded in page:
            if type(recorded.event) not in _FORECASTS:
                self._touch(recorded.event)
        if consensus_label(found) != label:
            self.touched.scoring.boards |= set(found.contests)
            self.touched.scoring.renamed = True

    def forget(self) -> None:
        """Note that the tables are current: later `parts` are those that change from here on."""
        self._boards.forget()
        if not self._told and self._keeps:  # the caches lack the changes
            self._boards, self._traders, self._keeps = (
                IncrementalScores(self._only),
                IncrementalAccounts(self.facts),
                False,
            )
        self._right_at, self._clock = self.facts.as_of, self.facts.books.clock
        self.touched = Touched()

    def whole(self, names: Sequence[str]) -> Iterator[Parts]:
        """Yield the whole tables of some projections."""
        self._gather()
        if names:
            every = Projections(replace(self.facts, forecasts=self._on(range(len(self.facts.questions)))))
            yield from (Parts(every.table(name), [()]) for name in names)

    def parts(self) -> Iterator[Parts]:
        """Yield the current rows of the parts of tables that can have changed."""
        self._gather()
        self._told = self._keeps = True
        yield from self._of_forecasts()
        yield from self._of_receipts()
        yield from self._boards.parts(self.facts, self.touched.scoring, self._right_at)
        yield from self._of_trading()
        yield from self._of_movements()
        yield from self._of_quotes()
        kinds = self.touched.kinds
        yield from self.whole([name for name in divided("log") if not kinds.isdisjoint(CATALOGUE[name].reads)])

    def _forecast(self, questions: list[int]) -> None:
        self.touched.questions.update(questions)
        self.touched.admissions |= {(contest, code) for code in questions for contest in self._holding.get(code, ())}
        for code in self.facts.settled.keys() & questions:
            self._score(code, self._holding.get(code, set()))

    def _touch(self, event: events.AnyEvent) -> None:
        """Add what an event can have changed. Raises TypeError: tables read the event, and FOLLOWED lacks it."""
        codes, touched = self.facts.question_codes.codes, self.touched
        match event:
            case events.PricesQuoted():
                touched.dealt.quoted.update(codes[quote.question] for quote in event.quotes)
            case _ if isinstance(event, _SETTLE):
                code = codes[event.question]
                touched.questions.add(code)
                self._score(code, self._holding.get(code, set()))
                touched.dealt.ruled.add(code)
            case _ if isinstance(event, _ARRANGE):
                if isinstance(event, events.QuestionAdded):
                    code = codes[event.question]
                    self._holding.setdefault(code, set()).add(event.contest)
                    self._score(code, {event.contest})
                    touched.admissions.add((event.contest, code))
                else:
                    touched.scoring.boards.add(event.contest)
                if isinstance(event, events.ParticipantEnrolled):
                    touched.dealt.accounts |= self.facts.books.accounts.keys() & {(event.contest, event.participant)}
                touched.dealt.contests.add(event.contest)
            case events.AccountEvent():
                touched.dealt.accounts.add((event.contest, event.participant))
            case _ if not isinstance(event, FOLLOWED) and (kinds := kinds_of([type(event)]) - {"clock"}):
                name = type(event).__name__
                raise TypeError(
                    f"{name} changes {', '.join(sorted(kinds))}: say in IncrementalTables which parts of tables follow"
                )

    def _score(self, question: int, contests: set[str]) -> None:
        for name in contests:
            self.touched.scoring.questions.setdefault(name, set()).add(question)

    # --- forecasts in a few sorted runs: a new one moves few others

    def _gather(self) -> None:
        """File the new forecasts. Raises Corrupt at an invalid one."""
        if self._new:
            self._runs.append(gathered(self.facts, self._new))
            self._new = []
            while len(self._runs) > 1 and 4 * len(self._runs[-1].at) > len(self._runs[-2].at):
                both = [self._taken(run, np.arange(len(run.at))) for run in self._runs[-2:]]
                self._runs[-2:] = [_sorted(both)]

    def _on(self, questions: Iterable[int]) -> Forecasts:
        """Return the forecasts on these questions, question after question."""
        if len(self._runs) == 1 and isinstance(questions, range):
            return self._runs[0]
        codes = int64_array(sorted(questions))
        return _sorted([self._taken(run, _rows_on(run, codes)) for run in self._runs])

    def _taken(self, run: Forecasts, index: Int64Array) -> Columns:
        rows = run.rows(index)
        widths = np.zeros(len(self.facts.questions), np.int64)
        for code in np.unique(rows.question).tolist():
            widths[code] = width(self.facts.questions[code])
        lengths = widths[rows.question] * rows.made
        numbers = np.arange(int(lengths.sum())) + np.repeat(rows.start - np.cumsum(lengths) + lengths, lengths)
        made = rows.made.astype(np.int64)
        return (*_rows_of(rows), made, lengths, run.chances[numbers])

    # --- parts

    def _ticked(self) -> bool:
        return self.facts.books.clock != self._clock

    def _only(self, contests: dict[str, Contest], questions: Iterable[int] = (), books: Books | None = None) -> Facts:
        """Return the facts about some contests, with the forecasts on some questions."""
        return replace(self.facts, contests=contests, forecasts=self._on(questions), books=books or self.facts.books)

    def _own(self, names: Iterable[str]) -> dict[str, Contest]:
        return {name: self.facts.contests[name] for name in names}

    def _of_forecasts(self) -> Iterator[Parts]:
        codes = self.touched.questions
        keys = [(self.facts.questions[code].question,) for code in codes]
        yield from parts(Projections(self._only({}, codes)), "forecasts", keys)

    def _of_receipts(self) -> Iterator[Parts]:
        for name, code in sorted(self.touched.admissions):
            contest = self.facts.contests[name]
            if contest.opened.rules.attested:
                own = replace(contest, entries={code: contest.entries[code]})
                key = name, self.facts.questions[code].question
                yield from parts(Projections(self._only({name: own}, [code])), "receipts", [key])

    def _of_trading(self) -> Iterator[Parts]:
        dealt = self.touched.dealt
        yield from self._traders.parts(dealt, ticked=self._ticked())
        if contests := dealt.contests:
            every = Projections(self._only(self._own(contests)))
            yield from parts(every, "contests", [(name,) for name in contests])
            yield from self._traders.overall()

    def _of_movements(self) -> Iterator[Parts]:
        """Yield the rows of movements recorded since the last `forget`."""
        books = self.facts.books
        since = bisect_right(books.movements, self._right_at, key=lambda movement: movement.position)
        new = replace(books, movements=books.movements[since:])
        every = Projections(self._only(self._own(self.touched.dealt.contests), books=new))
        for name in divided("movements"):
            table = every.table(name)
            table = table.rows_at(np.flatnonzero(int64_array(table.numbers("log_position")) > self._right_at))
            if len(table):
                yield Parts(table, [(position,) for position in sorted({*table.numbers("log_position")})])

    def _of_quotes(self) -> Iterator[Parts]:
        if self._ticked() or self.touched.dealt.quoted or self.touched.dealt.ruled:
            every = Projections(self._only({}))
            every.marks = self._traders.marks
            yield from parts(every, "quotes", [()])


def _rows_of(rows: Forecasts) -> Columns:
    """Return the columns of forecasts that are copied unchanged."""
    return rows.position, rows.at, rows.recorded_at, rows.question, rows.participant


def _rows_on(run: Forecasts, codes: Int64Array) -> Int64Array:
    begins, counts = np.searchsorted(run.question, codes), run.counts(codes)
    rows: Int64Array = np.arange(int(counts.sum())) + np.repeat(begins - np.cumsum(counts) + counts, counts)
    return rows


def _sorted(pages: list[Columns]) -> Forecasts:
    """Join pages into forecasts in log order within each question, question after question."""
    forecasts, _ = joined(pages)
    return forecasts.rows(stable_order(forecasts.question))
