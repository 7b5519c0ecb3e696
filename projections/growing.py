"""Facts that grow with their log, and of every table only what the new events touch, worked out again.

A table's rows are divided by question or by contest, and such a part follows from the facts about that question or
contest alone: the projection of the catalogue is run over those facts, so that there is one definition of each table.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ledger import events
from ledger.log import Recorded
from projections.arena import Record
from projections.bookkeeping import check_done
from projections.books import Books
from projections.brier import Aggregate
from projections.catalogue import CATALOGUE
from projections.columns import Facts, Forecasts, joined
from projections.limbs import Int64Array, column
from projections.marks import Marks
from projections.projection import Projections
from projections.sums import consensus_label
from projections.table import Table
from projections.tables import Columns, gathered, note, width

OF_QUESTIONS = ("standing", "consensus")
OF_SCORING = ("scores", "leaderboard", "kind_means", "prizes", "brier", "calibration", "admissions")
OF_TRADING = (
    "accounts",
    "positions",
    "cash",
    "trades",
    "bet_brier",
    "arena_leaderboard",
    "decisions",
    "refused_legs",
)
OF_CONTESTS = ("contests", "journal")  # of both
OF_ALL = ("brier_overall", "arena_overall", "marks")  # each a row over many contests, or with an age
_DIVIDED = {*OF_QUESTIONS, *OF_SCORING, *OF_TRADING, *OF_CONTESTS, *OF_ALL}
OTHERS = tuple(name for name, each in CATALOGUE.items() if name not in _DIVIDED and not each.asked_for)  # all anew
_SETTLE = (events.QuestionClosed, events.QuestionResolved, events.QuestionAnnulled, events.ResolutionRevoked)
_ARRANGE = (
    events.ContestOpened,
    events.QuestionAdded,
    events.ParticipantEnrolled,
    events.ParticipantExcluded,
    events.ContestFinalized,
    events.PrizePaid,
)


class Part(NamedTuple):
    """The rows of a projection's table that have these ids in these columns, or all of them."""

    table: Table
    ids: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Touched:
    """What tables can have changed: those of questions, by code; of contests, their scoring or their trading part; the
    admissions of a question in a contest.
    """

    questions: set[int] = field(default_factory=set)
    scoring: set[str] = field(default_factory=set)
    trading: set[str] = field(default_factory=set)
    admissions: set[tuple[str, int]] = field(default_factory=set)
    marks: bool = False


class Growing:
    """The facts of a log that is still being written.

    `add` pages of it, ask for the `parts` that have changed since the last `forget`. What has been read is never read
    again.
    """

    def __init__(self) -> None:
        self.facts = Facts()
        self._new: list[Columns] = []
        self._runs: list[Forecasts] = []  # in log order, each at least four times as long as the next
        self._holding: dict[int, set[str]] = {}  # question -> contests that have it
        self._aggregates: dict[str, tuple[int, list[Aggregate]]] = {}  # contest -> of how many owners
        self._records: dict[str, list[Record]] = {}
        self._marks = Marks(self.facts)
        self.touched = Touched()

    def add(self, page: Sequence[Recorded]) -> None:
        """The next page of the log. Raises Corrupt at an event that does not fit those before it."""
        found, clock, label = self.facts, self.facts.books.clock, consensus_label(self.facts)
        forecasts = note(found, page)
        found.statuses.clear()
        if forecasts is not None:
            self._new.append(forecasts)
        for recorded in page:
            self._touch(recorded.event)
        if found.books.clock != clock:  # what is held, marked or drawn as of the clock
            self.touched.marks = True
            self.touched.trading |= {name for name in self._traded() if found.books.progress(name).completed_at is None}
        if consensus_label(found) != label:
            self.touched.scoring |= set(found.contests)

    def forget(self) -> None:
        """Nothing has changed since."""
        self.touched = Touched()

    def whole(self, names: Sequence[str]) -> Iterator[Part]:
        """The whole tables of some projections."""
        self._gather()
        if names:
            every = Projections(replace(self.facts, forecasts=self._on(range(len(self.facts.questions)))))
            yield from (Part(every.table(name)) for name in names)

    def parts(self) -> Iterator[Part]:
        """The parts of tables that can have changed, as they now are."""
        self._gather()
        yield from self._of_questions()
        yield from self._of_admissions()
        yield from self._of_scoring()
        yield from self._of_trading()
        yield from self._of_all()
        yield from self.whole(OTHERS)

    def _touch(self, event: events.AnyEvent) -> None:
        codes, touched = self.facts.question_codes.codes, self.touched
        match event:
            case events.ForecastMade() | events.ForecastWithdrawn():
                code = codes[event.question]
                touched.questions.add(code)
                for contest in self._holding.get(code, ()):
                    if code in self.facts.settled:
                        touched.scoring.add(contest)
                    elif self.facts.contests[contest].opened.rules.attested:
                        touched.admissions.add((contest, code))
            case events.PricesQuoted():
                for quote in event.quotes:
                    self._marks.forget(codes[quote.question])
                    touched.trading |= self._holding.get(codes[quote.question], set())
                touched.marks = True
            case _ if isinstance(event, _SETTLE):
                code = codes[event.question]
                touched.questions.add(code)
                touched.scoring |= self._holding.get(code, set())
                touched.trading |= self._holding.get(code, set())
                touched.marks = True
                if isinstance(event, events.QuestionClosed):
                    self._marks = Marks(self.facts)
            case _ if isinstance(event, _ARRANGE):
                if isinstance(event, events.QuestionAdded):
                    self._holding.setdefault(codes[event.question], set()).add(event.contest)
                touched.scoring.add(event.contest)
                touched.trading.add(event.contest)
            case events.QuestionOpened() | events.TextKept():
                pass
            case _:
                touched.trading.add(event.contest)

    # --- forecasts, in a few runs, so that a new one moves few others

    def _gather(self) -> None:
        """File the new forecasts. Raises Corrupt at one that cannot be, or where something due is missing."""
        check_done(self.facts)
        if self._new:
            self._runs.append(gathered(self.facts, self._new))
            self._new = []
            while len(self._runs) > 1 and 4 * len(self._runs[-1].at) > len(self._runs[-2].at):
                both = [self._taken(run, np.arange(len(run.at))) for run in self._runs[-2:]]
                self._runs[-2:] = [_sorted(both)]

    def _on(self, questions: Iterable[int]) -> Forecasts:
        """The forecasts on these questions, question after question."""
        if len(self._runs) == 1 and isinstance(questions, range):
            return self._runs[0]
        codes = column(sorted(questions))
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

    def _only(self, contests: Iterable[str], questions: Iterable[int] = (), books: Books | None = None) -> Facts:
        """The facts about some contests, with the forecasts on some questions."""
        own = {name: self.facts.contests[name] for name in contests}
        forecasts = self._on(questions)
        return replace(self.facts, contests=own, forecasts=forecasts, books=books or self.facts.books)

    def _of_questions(self) -> Iterator[Part]:
        if codes := sorted(self.touched.questions):
            labels = [self.facts.questions[code].question for code in codes]
            yield from _divided(Projections(self._only((), codes)), OF_QUESTIONS, "question", labels)

    def _of_admissions(self) -> Iterator[Part]:
        for name, code in sorted(self.touched.admissions):
            if name not in self.touched.scoring:
                contest, question = self.facts.contests[name], self.facts.questions[code].question
                own = replace(contest, entries={code: contest.entries[code]})
                table = Projections(replace(self._only((), [code]), contests={name: own})).table("admissions")
                yield Part(table, (("contest", name), ("question", question)))

    def _of_scoring(self) -> Iterator[Part]:
        """Also remembers what the means over all contests are made of."""
        contests = sorted(self.touched.scoring)
        if contests:
            found = self._scored(contests)
            yield from _divided(found, OF_SCORING, "contest", contests)
            self._remember(found)

    def _scored(self, contests: list[str]) -> Projections:
        entries = {code for name in contests for code in self.facts.contests[name].entries}
        return Projections(self._only(contests, entries))

    def _remember(self, found: Projections) -> None:
        owners = len(self.facts.participant_codes.codes) + 1
        self._aggregates |= {name: (owners, found.aggregates(name)) for name in found.contests}

    def _of_trading(self) -> Iterator[Part]:
        both = sorted(self.touched.scoring | self.touched.trading)
        if both:
            found = self._traded_in(both)
            yield from _divided(found, OF_TRADING, "contest", found.traded)
            yield from _divided(found, OF_CONTESTS, "contest", both)
            self._records |= {name: found.records.get(name, []) for name in found.traded}

    def _traded(self) -> list[str]:
        return [name for name, contest in self.facts.contests.items() if contest.opened.rules.trading is not None]

    def _traded_in(self, contests: Iterable[str]) -> Projections:
        books, own = self.facts.books, set(contests)
        part = replace(
            books,
            accounts={key: account for key, account in books.accounts.items() if key[0] in own},
            movements=[movement for movement in books.movements if movement.key[0] in own],
            trades=[trade for trade in books.trades if trade.event.contest in own],
            attempts=[attempt for attempt in books.attempts if attempt.event.contest in own],
            refusals=[refusal for refusal in books.refusals if refusal[1].contest in own],
        )
        found = Projections(self._only(own, books=part))
        found.marks = self._marks
        return found

    def _of_all(self) -> Iterator[Part]:
        """The tables over all contests, from what is remembered of those that have not changed."""
        if self.touched.scoring:
            if unknown := sorted(self.facts.contests.keys() - self._aggregates.keys()):
                self._remember(self._scored(unknown))
            owners = len(self.facts.participant_codes.codes) + 1
            known = {name: _widened(found, of, owners) for name, (of, found) in self._aggregates.items()}
            yield Part(Projections(self._only(self.facts.contests), aggregates=known).table("brier_overall"))
        if self.touched.scoring or self.touched.trading:
            if unknown := sorted(set(self._traded()) - self._records.keys()):
                self._records |= {name: [] for name in unknown} | self._traded_in(unknown).records
            every = Projections(self._only(self.facts.contests))
            every.records = self._records
            yield Part(every.table("arena_overall"))
        if self.touched.marks:
            every = Projections(self._only(()))
            every.marks = self._marks
            yield Part(every.table("marks"))


def _rows_of(rows: Forecasts) -> Columns:
    """The columns of forecasts that are copied as they are."""
    return rows.position, rows.at, rows.recorded_at, rows.question, rows.participant


def _rows_on(run: Forecasts, codes: Int64Array) -> Int64Array:
    begins, counts = np.searchsorted(run.question, codes), run.counts(codes)
    rows: Int64Array = np.arange(int(counts.sum())) + np.repeat(begins - np.cumsum(counts) + counts, counts)
    return rows


def _sorted(pages: list[Columns]) -> Forecasts:
    """Forecasts in log order within each question, question after question."""
    forecasts, _ = joined(pages)
    return forecasts.rows(np.argsort(forecasts.question, kind="stable"))


def _divided(of: Projections, names: Iterable[str], by: str, ids: list[str]) -> Iterator[Part]:
    """A part of each table for each id, also where it has no rows."""
    for name in names:
        table = of.table(name)
        parts = table.by(by)
        for each in ids:
            yield Part(parts[each] if each in parts else table.only(by, each), ((by, each),))


def _widened(found: list[Aggregate], of: int, owners: int) -> list[Aggregate]:
    """The aggregates of so many owners, the consensus last, when there are new participants before it."""
    return [*found[: of - 1], *[Aggregate(0)] * (owners - of), *found[of - 1 :]]
