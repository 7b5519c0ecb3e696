"""The facts of a log as columns: one table for each kind of fact, ids as integer codes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from msgspec import structs

from forecast_ledger.ledger.core.values import CUMULATIVE, NEVER, PROBABILITY
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.events import ParticipantEnrolled
from forecast_ledger.ledger.model.log import Checkpoint
from forecast_ledger.ledger.model.rules import LEVELS, Level
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.projections.core.arrays import (
    BoolArray,
    Codes,
    Int64Array,
    index_where,
    join_parts,
    order_by_two,
    spread,
)
from forecast_ledger.projections.facts.accounts import Books
from forecast_ledger.projections.facts.settlements import Settlement

# --- Other ids of participants: as whose each forecast counts, as of a log position.


_Value = TypeVar("_Value")
_Row = TypeVar("_Row")


class Rename(NamedTuple):
    """From a log position on, all of participant `old` counts as of participant `new`; codes."""

    position: int
    old: int
    new: int


def present(renames: Sequence[Rename], participant: Int64Array, as_of: Int64Array | int) -> Int64Array:
    """Return as whose each row counts. participant: as recorded, shape (n,). as_of: one log position, or one a row.

    >>> renames = [Rename(5, old=0, new=1), Rename(9, old=1, new=2)]
    >>> [present(renames, np.array([0, 1, 2, 3]), as_of).tolist() for as_of in (4, 5, 9)]
    [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3]]
    """
    rows = np.flatnonzero(np.isin(participant, [rename.old for rename in renames]))
    current, last = participant[rows], np.broadcast_to(as_of, len(participant))[rows]
    for rename in renames:
        current[(current == rename.old) & (rename.position <= last)] = rename.new
    counting = participant.copy()
    counting[rows] = current
    return counting


def codes_of(renames: Sequence[Rename], participant: int) -> list[int]:
    """Return every code of a participant, that of the present id first.

    >>> codes_of([Rename(5, old=0, new=1), Rename(9, old=1, new=2)], 2)
    [2, 1, 0]
    >>> codes_of([Rename(5, old=0, new=1), Rename(9, old=1, new=0)], 0)
    [0, 1]
    """
    codes = [participant]
    for rename in reversed(renames):
        if rename.new in codes and rename.old not in codes:
            codes.append(rename.old)
    return codes


def moved(table: dict[str, _Value], old: str, new: str) -> dict[str, _Value]:
    """Return a table by participant, in the order of recording, with one id in place of another: the later row counts.

    >>> moved({"ada": 1, "bo": 2, "al": 3}, "al", "ada")
    {'bo': 2, 'ada': 3}
    >>> moved({"ada": 1, "bo": 2, "al": 3}, "ada", "al")
    {'bo': 2, 'al': 3}
    """
    renamed: dict[str, _Value] = {}
    for name, value in table.items():
        put_last(renamed, new if name == old else name, value)
    return renamed


def enrolled_as(enrolments: dict[str, ParticipantEnrolled], old: str, new: str) -> dict[str, ParticipantEnrolled]:
    """Return enrolments with one id in place of another, also where it is that of an entrant; see `moved`."""
    renamed = {
        who: structs.replace(enrolment, entrant=new) if enrolment.entrant == old else enrolment
        for who, enrolment in enrolments.items()
    }
    return moved(renamed, old, new)


def put_last(table: dict[str, _Value], name: str, value: _Value) -> None:
    """Give a participant another row, which is then the last."""
    table.pop(name, None)
    table[name] = value


def time_order(
    renames: Sequence[Rename], question: Int64Array, participant: Int64Array, at: Int64Array, position: Int64Array
) -> Int64Array:
    """Return the order of rows in which those of a participant with several ids are in order of time on each question.

    Of two rows at one instant, the one with the later log position comes later; all others stay. Shape (n,) each.

    >>> forecasts = [np.array(column) for column in ([0, 0, 0], [1, 2, 1], [7, 3, 5], [1, 2, 3])]
    >>> time_order([Rename(4, old=0, new=1)], *forecasts).tolist()
    [2, 1, 0]
    """
    order = np.arange(len(at))
    rows = np.flatnonzero(np.isin(participant, [rename.new for rename in renames]))
    in_time = np.lexsort((position[rows], at[rows], participant[rows], question[rows]))
    by_row = np.lexsort((rows, participant[rows], question[rows]))
    order[rows[by_row]] = rows[in_time]
    return order


CHANCE = CUMULATIVE  # units in 1: every probability that is scored
DOUBLED = 2 * CHANCE // PROBABILITY  # halves of 1e-10 in 1e-9


@dataclass(frozen=True, slots=True)
class Forecasts:
    """Forecasts and withdrawals, question after question, each in log order; columns of shape (n,).

    at, recorded_at: µs, as claimed and by the ledger's clock. question, participant: codes. made: False for a
    withdrawal. until: µs, when the forecast ends by itself; NEVER if it does not. retracted: the log position from
    which on the row counts as never made; NEVER if there is none. start: where the distribution begins in `chances`,
    which holds probabilities (1e-9), cumulative probabilities (1e-10), quantiles or samples (in the unit of the
    question), forecast after forecast. Where outcomes of a question changed, an outcome that a forecast does not give
    has the number ~k, below 0: its probability is in that of outcome k, the catch-all. renames: of participants, whose
    rows have the id under which they were recorded, until `named`.
    """

    position: Int64Array
    at: Int64Array
    recorded_at: Int64Array
    question: Int64Array
    participant: Int64Array
    made: BoolArray
    until: Int64Array
    retracted: Int64Array
    start: Int64Array
    chances: Int64Array
    renames: tuple[Rename, ...] = ()

    def counts(self, questions: Int64Array) -> Int64Array:
        """Return the number of rows of each of these questions."""
        counts: Int64Array = np.searchsorted(self.question, questions, "right") - np.searchsorted(
            self.question, questions
        )
        return counts

    def on(self, questions: Int64Array, as_of: Int64Array | int) -> "Forecasts":
        """Return the rows of these questions, renumbered in their order, that count as of a log position.

        as_of: one log position, or one for each question.
        """
        begins = self.question.searchsorted(questions)
        counts = self.question.searchsorted(questions, "right") - begins
        number = np.arange(len(questions)).repeat(counts)
        first = int(begins[0]) if len(begins) else 0
        index: Int64Array | slice = slice(first, first + len(number))
        if (begins[1:] != begins[:-1] + counts[:-1]).any():
            index = np.arange(len(number)) + (begins - (np.cumsum(counts) - counts))[number]
        rows = replace(self.rows(index), question=number)
        last = np.full(len(questions), as_of)
        if len(number) and not self.renames and rows.position.max() <= last.min() and last.max() < rows.retracted.min():
            return rows
        last = last[number]
        counting = (rows.position <= last) & (last < rows.retracted)
        return rows.rows(np.flatnonzero(counting)).named(last[counting])

    def counting(self, as_of: int) -> "Forecasts":
        """Return the rows that are not retracted as of a log position."""
        kept = np.flatnonzero(as_of < self.retracted)
        return (self if len(kept) == len(self.retracted) else self.rows(kept)).named(as_of)

    def named(self, as_of: Int64Array | int) -> "Forecasts":
        """Return the rows with the participants as whose they count as of a log position: one, or one for each row."""
        return replace(self, participant=present(self.renames, self.participant, as_of)) if self.renames else self

    def in_time_order(self) -> "Forecasts":
        """Return rows that are named, with those of each participant in the order of the instants that they claim.

        Without other ids, that is the order of the log. Retracted rows must not be among them.
        """
        if not self.renames:
            return self
        return self.rows(time_order(self.renames, self.question, self.participant, self.at, self.position))

    def chance(self, rows: Int64Array, outcome: Int64Array, bins: Int64Array) -> Int64Array:
        """Return the probability that forecasts give to an outcome, 1e-10; see `Forecasts.chances`.

        rows: of forecasts, none a withdrawal. outcome: index on each row's question. bins: of that question, 0
        unless numeric.
        """
        start, numeric = self.start[rows], bins > 0
        if not numeric.any():
            discrete = self.chances[start + outcome]
            if discrete.min(initial=0) < 0:
                discrete = np.where(discrete < 0, self.chances[start + np.maximum(~discrete, 0)], discrete)
            scaled: Int64Array = discrete * (CHANCE // PROBABILITY)
            return scaled
        last = np.where(numeric, bins, outcome)
        at_most = self.chances[start + np.minimum(outcome, last)]
        if at_most.min(initial=0) < 0:
            at_most = np.where(at_most < 0, self.chances[start + np.maximum(~at_most, 0)], at_most)
        below = np.where(outcome > 0, self.chances[start + np.maximum(outcome - 1, 0)], 0)
        inside = np.where(outcome > last, CHANCE, at_most) - below
        return np.where(numeric, inside, at_most * (CHANCE // PROBABILITY))

    def packed(self, width: Int64Array) -> "Forecasts":
        """Return the rows with no distributions but theirs. width: how many numbers each has, shape (n,)."""
        start = np.cumsum(width) - width
        index = np.repeat(self.start - start, width) + np.arange(int(width.sum()))
        return replace(self, start=start, chances=self.chances[index])

    def rows(self, index: Int64Array | slice) -> "Forecasts":
        """Return these rows; they share the distributions."""
        return Forecasts(
            _taken(self.position, index),
            _taken(self.at, index),
            _taken(self.recorded_at, index),
            _taken(self.question, index),
            _taken(self.participant, index),
            _taken(self.made, index),
            _taken(self.until, index),
            _taken(self.retracted, index),
            _taken(self.start, index),
            self.chances,
            self.renames,
        )


def _taken(column: Any, index: Int64Array | slice) -> Any:
    """Return these rows of a column, which may be one value that all rows share, as when none has an end."""
    if isinstance(index, slice) or column.strides != (0,) or not len(column):
        return column[index] if isinstance(index, slice) else column.take(index)  # which is quicker
    return np.broadcast_to(column[:1], index.shape)


class OutcomeChange(NamedTuple):
    """A change of the outcomes of a question, which are given by index; instants in µs.

    ends_at: the end of the grace period if outcomes are added, else at.
    """

    position: int
    at: int
    recorded_at: int
    added: tuple[int, ...]
    removed: tuple[int, ...]
    ends_at: int


class ChangedOutcomes(NamedTuple):
    """The changes of a question's outcomes in log order.

    first: how many outcomes it was opened with; the last of them is the catch-all. width: how many it ever had.
    """

    first: int
    width: int
    changes: tuple[OutcomeChange, ...]

    @property
    def catch_all(self) -> int:
        """The index of the outcome that stands for all that are not named."""
        return self.first - 1

    def counted_from(self) -> list[int]:
        """Return the instant from which each change counts, by the ledger's clock, µs.

        A removal counts when it is recorded. An addition counts at the end of its grace period, or when it is recorded
        if that is later; the next change, if recorded earlier, ends the period: a change is complete before the next.

        >>> first = OutcomeChange(1, 0, 3, added=(2,), removed=(), ends_at=9)
        >>> ChangedOutcomes(2, 3, (first,)).counted_from()
        [9]
        >>> ChangedOutcomes(2, 3, (first, OutcomeChange(2, 9, 5, added=(), removed=(0,), ends_at=9))).counted_from()
        [5, 5]
        """
        nexts = [*(change.recorded_at for change in self.changes[1:]), 2**63 - 1]
        return [
            max(change.recorded_at, min(change.ends_at, after)) if change.added else change.recorded_at
            for change, after in zip(self.changes, nexts, strict=True)
        ]

    def given(self) -> list[int]:
        """Return the outcomes that the question has after the changes.

        >>> ChangedOutcomes(2, 3, (OutcomeChange(1, 0, 0, added=(2,), removed=(), ends_at=9),)).given()
        [0, 1, 2]
        """
        given = [*range(self.first)]
        for change in self.changes:
            given = [outcome for outcome in given if outcome not in change.removed] + [*change.added]
        return given


class Entry(NamedTuple):
    """A question in a contest, by code; weights 1e-6; spot_at µs. spots: several instants, µs, each with its weight."""

    position: int
    question: int
    weight: int
    hidden_coverage_weight: int | None
    spot_at: int | None
    spots: tuple[tuple[int, int], ...] = ()


def named_tuples(kind: type[_Row], *columns: Iterable[Any]) -> Iterator[_Row]:
    """Yield the rows of columns, one for each field of a type, in half of the time that to call the type takes.

    >>> list(named_tuples(Rename, [5, 9], [0, 1], [1, 2]))
    [Rename(position=5, old=0, new=1), Rename(position=9, old=1, new=2)]
    """
    new: Callable[..., _Row] = tuple.__new__
    return map(partial(new, kind), zip(*columns, strict=True))


class Payment(NamedTuple):
    """A prize paid, 1e-6."""

    position: int
    amount: int


@dataclass(slots=True)
class Contest:
    """A contest and the facts about it; `sealed` is the checkpoint of the event that finalized it."""

    opened: events.ContestOpened
    entries: dict[int, Entry] = field(default_factory=dict)  # by question
    enrolments: dict[str, events.ParticipantEnrolled] = field(default_factory=dict)  # in the order of recording
    levels: dict[str, Level] = field(default_factory=dict)  # by excluded participant, in the order of recording
    sealed: Checkpoint | None = None
    paid: dict[str, Payment] = field(default_factory=dict)  # by winner
    paid_total: int = 0  # 1e-6
    position: int = 0  # of the log

    def as_of(self, facts: "Facts") -> int:
        """Return the log position as of which the contest's board is computed: its finalization, else the last one."""
        return facts.as_of if self.sealed is None else self.sealed.position

    def level_of(self, participant: str) -> Level | None:
        """Return a participant's level of exclusion: of its own and, for a bot, that of the rule set, the higher.

        Source: Metaculus's published code: the highest of the levels that apply, where a board has one for bots.
        """
        level, enrolment, bots = (
            self.levels.get(participant),
            self.enrolments.get(participant),
            self.opened.rules.bot_level,
        )
        if enrolment is None or not enrolment.bot or bots == "none":
            return level
        return bots if level is None else max(level, bots, key=LEVELS.index)


@dataclass(slots=True)
class Facts:
    """The facts of a log, as of its position `as_of`; a question has every outcome that it ever had."""

    as_of: int = 0
    questions: list[events.QuestionOpened] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)  # log position of each question
    # Question code -> log position of each rescheduling, and the question as it was before it; `questions` has it as it
    # is now.
    former: dict[int, list[tuple[int, events.QuestionOpened]]] = field(default_factory=dict)
    question_codes: Codes = field(default_factory=Codes)
    participant_codes: Codes = field(default_factory=Codes)
    closings: list[tuple[int, int, int]] = field(default_factory=list)  # log position, question code, new end
    settlements: list[Settlement] = field(default_factory=list)
    settled: dict[int, Settlement] = field(default_factory=dict)  # question code -> what settles it now
    contests: dict[str, Contest] = field(default_factory=dict)
    attestations: dict[int, events.Attestation] = field(default_factory=dict)  # log position of its forecast
    changed: dict[int, ChangedOutcomes] = field(default_factory=dict)  # question code -> changes of its outcomes
    # Question code -> log position of each retraction of forecasts, and participant code.
    retractions: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    renames: tuple[Rename, ...] = ()  # in log order
    statuses: dict[int, "Status"] = field(default_factory=dict)  # a cache, by log position
    # The forecasts, or a function that reads them when they are first asked for, and keeps them.
    held: Forecasts | Callable[[], Forecasts] = field(default_factory=lambda: join_pages([])[0])
    books: Books = field(default_factory=Books)

    @property
    def forecasts(self) -> Forecasts:
        """The forecasts; what `held` raises, if it has to read them."""
        return self.held() if callable(self.held) else self.held

    def trading(self, contest: str) -> Trading:
        """Return a contest's trading rules. Raises KeyError if it has none."""
        trading = self.contests[contest].opened.rules.trading
        if trading is None:
            raise KeyError(f"trading rules of {contest!r}")
        return trading

    def payouts_of(self, contest: str, question: int) -> tuple[Fraction, ...]:
        """Return the payout of a share of each outcome; () if the question is not resolved.

        The payouts of a finalized contest are those at its finalization.
        """
        if contest in self.books.sealed:
            return self.books.sealed[contest].get(question, ())
        return self.payouts(question)

    def payouts(self, question: int) -> tuple[Fraction, ...]:
        """Return the payout of a share of each outcome as the question is resolved now; () if it is not."""
        answer = self.settled.get(question)
        return () if answer is None else answer.paid(len(self.questions[question].outcomes))

    def question_as_of(self, code: int, as_of: int) -> events.QuestionOpened:
        """Return a question with its times as of a log position."""
        for position, before in self.former.get(code, ()):
            if as_of < position:
                return before
        return self.questions[code]

    def questions_as_of(self, codes: Sequence[int], as_of: Int64Array) -> list[events.QuestionOpened]:
        """Return questions, each with its times as of a log position. as_of: shape (n,)."""
        if not self.former:
            return [*map(self.questions.__getitem__, codes)]
        return [*map(self.question_as_of, codes, as_of.tolist())]


class Status(NamedTuple):
    """The state of every question as of a log position; shape (questions,).

    opens_at, closes_at: as last scheduled, µs. bins: 0 unless numeric. closed_at: µs, the early close, else the
    scheduled one. outcome: index, -1 if there is none. known_at: µs, the scheduled close if there is no outcome.
    values: exact decimal text of numeric answers. payouts: what a share of each outcome is paid, of questions that no
    single outcome settles; () for others.
    """

    opens_at: Int64Array
    closes_at: Int64Array
    bins: Int64Array
    closed_at: Int64Array
    outcome: Int64Array
    known_at: Int64Array
    values: list[str]
    payouts: list[tuple[Fraction, ...]]

    def of(self, rows: Int64Array) -> "Status":
        """Return the status of the questions at these indices."""
        values, payouts = ([column[row] for row in rows.tolist()] for column in (self.values, self.payouts))
        opens_at, closes_at, bins, closed_at, outcome, known_at = (column[rows] for column in self[:6])
        return Status(opens_at, closes_at, bins, closed_at, outcome, known_at, values, payouts)


def joined(first: Forecasts, second: Forecasts) -> Forecasts:
    """Return two tables of forecasts as one, the second after the first."""
    columns = {
        column.name: np.concatenate([getattr(first, column.name), getattr(second, column.name)])
        for column in fields(Forecasts)
        if column.name != "renames"
    }
    start = np.concatenate([first.start, second.start + len(first.chances)])
    return Forecasts(**(columns | {"start": start}), renames=first.renames)


class ForecastPage(NamedTuple):
    """The forecasts and withdrawals of a page, in log order; see `Forecasts`. made: 1, or 0 for a withdrawal.

    lengths: how many of `numbers` each has, one after another.
    """

    position: Int64Array
    at: Int64Array
    recorded_at: Int64Array
    question: Int64Array
    participant: Int64Array
    made: Int64Array
    until: Int64Array
    lengths: Int64Array
    numbers: Int64Array


def join_pages(pages: Sequence[ForecastPage]) -> tuple[Forecasts, Int64Array]:
    """Return pages joined as one table in log order, and how many numbers each row has."""
    if len(pages) == 1:  # nothing is copied
        page = pages[0]
    else:
        columns = [*map(join_parts, zip(*pages, strict=True))] or [np.zeros(0, np.int64)] * 9
        page = ForecastPage(*columns)
    position, at, recorded_at, question, participant, made, until, lengths, chances = page
    start = np.cumsum(lengths)
    start -= lengths
    kept = np.broadcast_to(np.int64(NEVER), len(position))
    return Forecasts(position, at, recorded_at, question, participant, made > 0, until, kept, start, chances), lengths


# --- The half-open intervals on which forecasts stand, and what ends them.


class Intervals(NamedTuple):
    """Intervals [start, end), µs, on which the forecast in row `row` stands, by question, participant, start.

    Shape (n,) each. No two intervals of one participant on one question overlap, and none is empty.
    """

    row: Int64Array
    question: Int64Array
    participant: Int64Array
    start: Int64Array
    end: Int64Array

    def of(self, index: Int64Array) -> "Intervals":
        """Return the intervals at these indices."""
        return Intervals(*(column[index] for column in self))


def intervals(forecasts: Forecasts, opens: Int64Array, ends: Int64Array, *, early: bool = True) -> Intervals:
    """Return when each forecast stands, until it is replaced or withdrawn, it ends by itself, or the question ends.

    A forecast stands from when it was made; one made before the opening stands from the opening if `early`, else never.

    opens, ends: µs, shape (questions,).
    """
    order, key = order_by_two(forecasts.question, forecasts.participant)
    question, at = forecasts.question[order], forecasts.at[order]
    end = np.minimum(spread(ends, question), _taken(forecasts.until, order))
    replaced = np.flatnonzero(key[1:] == key[:-1])
    later = _earliest_after(key, at) if (at[replaced + 1] < at[replaced]).any() else at
    end[replaced] = np.minimum(end[replaced], later[replaced + 1])
    opening = spread(opens, question)
    start = np.maximum(at, opening)
    kept = forecasts.made[order] & (start < end)
    if not early:
        kept &= at >= opening
    standing = Intervals(order, question, forecasts.participant[order], start, end)
    stands = index_where(kept)
    return standing if isinstance(stands, slice) else standing.of(stands)


# None: the close of the question. The last one is of rows that count as never made, which `spans` is not given.
ENDINGS = (None, "expired", "outcomes_added", "withdrawn", "replaced", "closed", "retracted")


class Spans(NamedTuple):
    """Whether and when each forecast stood, µs, and what ended it, as an index into ENDINGS; shape (n,) each."""

    stood: BoolArray
    start: Int64Array
    end: Int64Array
    ending: Int64Array


def spans(forecasts: Forecasts, grace: Int64Array, opens: Int64Array, ends: Int64Array) -> Spans:
    """Return, for each row, from when to when its forecast stood, also if a removal of outcomes changed it meanwhile.

    It is "closed" if its question had ended before it began. forecasts: as made; those of one participant on one
    question claim no instant before that of the one before. grace: the end of the grace period that ends each, µs,
    NEVER if none does, shape (n,). opens, ends: as for `intervals`.
    """
    order, key = order_by_two(forecasts.question, forecasts.participant)
    question, at, made = forecasts.question[order], forecasts.at[order], forecasts.made[order]
    following, replaces = np.full(len(order), NEVER), np.zeros(len(order), bool)
    following[:-1] = np.where(key[1:] == key[:-1], at[1:], NEVER)
    replaces[:-1] = made[1:]
    start = np.maximum(at, opens[question])
    others = (np.where(replaces, NEVER, following), np.where(replaces, following, NEVER))
    limits = np.stack((ends[question], forecasts.until[order], grace[order], *others))
    end, ending = limits.min(0), limits.argmin(0)  # the first of those that are equal
    ending[(ending == 0) & (start >= end)] = ENDINGS.index("closed")
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return Spans((made & (start < end))[back], start[back], end[back], ending[back])


def _earliest_after(key: Int64Array, at: Int64Array) -> Int64Array:
    """Return the least instant from each row on, within its key; rows follow from changes of outcomes out of order."""
    _, number = np.unique(key, return_inverse=True)
    order = np.lexsort((at, number))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))  # a lower key has lower ranks, so that none of the next key is the least
    earliest: Int64Array = at[order[np.minimum.accumulate(rank[::-1])[::-1]]]
    return earliest


def width(question: events.QuestionOpened) -> int:
    """Return how many numbers a forecast on a question has, once it is laid out.

    >>> span = events.NumericRange(lower="0", upper="1", bins=4)
    >>> width(events.QuestionOpened(at=0, question="q", kind="numeric", range=span, opens_at=0, closes_at=1))
    5
    """
    if question.range is None:
        return len(question.outcomes)
    return question.range.measures or question.range.bins + 1
