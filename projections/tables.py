"""From events to columns: one table per kind of fact, ids as integer codes with a dictionary."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ledger import events
from ledger.errors import Corrupt
from ledger.log import Recorded
from ledger.values import CUMULATIVE, PROBABILITY
from projections.checks import check, check_forecasts, refute
from projections.limbs import BoolArray, Int64Array

CHANCE = CUMULATIVE  # units in 1: every probability that is scored


class Codes:
    """Ids numbered 0, 1, 2 … in order of first appearance."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}

    def add(self, text: str) -> int:
        """The code of an id, a new one if it is new."""
        return self.codes.setdefault(text, len(self.codes))

    @property
    def labels(self) -> list[str]:
        """The ids, by code."""
        return list(self.codes)


@dataclass(frozen=True, slots=True)
class Forecasts:
    """Forecasts and withdrawals, question after question, each in log order; columns of shape (n,).

    at: µs. question, participant: codes. made: False for a withdrawal. start: where the distribution begins in
    `chances`, which holds probabilities (1e-9) or cumulative probabilities (1e-10), forecast after forecast.
    """

    position: Int64Array
    at: Int64Array
    question: Int64Array
    participant: Int64Array
    made: BoolArray
    start: Int64Array
    chances: Int64Array

    def counts(self, questions: Int64Array) -> Int64Array:
        """How many rows each of these questions has."""
        counts: Int64Array = np.searchsorted(self.question, questions, "right") - np.searchsorted(
            self.question, questions
        )
        return counts

    def on(self, questions: Int64Array, as_of: int) -> "Forecasts":
        """What was recorded up to a log position on these questions, which are numbered anew in their order."""
        counts = self.counts(questions)
        number = np.repeat(np.arange(len(questions)), counts)
        begins = np.searchsorted(self.question, questions) - (np.cumsum(counts) - counts)
        index = np.arange(len(number)) + begins[number]
        recorded = self.position[index] <= as_of
        index, number = index[recorded], number[recorded]
        rows = self.rows(index)
        return Forecasts(rows.position, rows.at, number, rows.participant, rows.made, rows.start, rows.chances)

    def chance(self, made: Int64Array, outcome: Int64Array, bins: Int64Array) -> Int64Array:
        """The probability that forecasts put on an outcome, 1e-10.

        made: rows, none a withdrawal. outcome: index on each row's question. bins: of that question, 0 unless numeric.
        """
        start, numeric = self.start[made], bins > 0
        last = np.where(numeric, bins, outcome)
        upto = self.chances[start + np.minimum(outcome, last)]
        below = np.where(outcome > 0, self.chances[start + np.maximum(outcome - 1, 0)], 0)
        inside = np.where(outcome > last, CHANCE, upto) - below
        return np.where(numeric, inside, upto * (CHANCE // PROBABILITY))

    def rows(self, index: Int64Array | slice) -> "Forecasts":
        """These rows; they share the distributions."""
        return Forecasts(
            self.position[index],
            self.at[index],
            self.question[index],
            self.participant[index],
            self.made[index],
            self.start[index],
            self.chances,
        )


class Settlement(NamedTuple):
    """A resolution of a question, by code, or what undoes one: then the outcome is -1, the instant the close."""

    position: int
    question: int
    outcome: int
    known_at: int


class Entry(NamedTuple):
    """A question in a contest, by code; weights 1e-6."""

    position: int
    question: int
    weight: int
    hidden_coverage_weight: int | None


@dataclass(slots=True)
class Contest:
    """A contest and everything said about it; `finalized` is the log position that froze it."""

    opened: events.ContestOpened
    entries: dict[int, Entry] = field(default_factory=dict)  # by question
    exclusions: list[tuple[int, str, events.Level]] = field(default_factory=list)
    finalized: int | None = None


@dataclass(slots=True)
class Facts:
    """Everything the log says, as of its position `as_of`."""

    as_of: int = 0
    questions: list[events.QuestionOpened] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)  # log position of each question
    question_codes: Codes = field(default_factory=Codes)
    participant_codes: Codes = field(default_factory=Codes)
    closings: list[tuple[int, int, int]] = field(default_factory=list)  # log position, question code, at
    settlements: list[Settlement] = field(default_factory=list)
    contests: dict[str, Contest] = field(default_factory=dict)
    forecasts: Forecasts = field(default_factory=lambda: _joined([])[0])


class Status(NamedTuple):
    """How every question stands as of a log position; shape (questions,).

    opens_at, closes_at: scheduled, µs. bins: 0 unless numeric. closed_at: µs, the early close, else the scheduled one.
    outcome: index, -1 while there is none. known_at: µs, the scheduled close while there is no outcome.
    """

    opens_at: Int64Array
    closes_at: Int64Array
    bins: Int64Array
    closed_at: Int64Array
    outcome: Int64Array
    known_at: Int64Array


def facts(pages: Iterable[Sequence[Recorded]]) -> Facts:
    """Columns from recorded events in log order. Raises Corrupt at an event that does not fit those before it."""
    found = Facts()
    columns: list[tuple[Int64Array, ...]] = []
    for page in pages:
        forecasts = []
        for recorded in page:
            event = recorded.event
            if type(event) is events.ForecastMade or type(event) is events.ForecastWithdrawn:
                forecasts.append(recorded)
            else:
                _note(found, recorded.position, event)
        if forecasts:
            try:
                columns.append(_forecast_columns(found, forecasts))
            except OverflowError:
                raise Corrupt(forecasts[0].position, "here or soon after, a number of more than 64 bits") from None
        found.as_of = page[-1].position
    found.forecasts = _columns(found, columns)
    return found


def status(found: Facts, as_of: int | None = None) -> Status:
    """The questions' early closes and outcomes, leaving out what was recorded after a log position."""
    opens_at = np.array([question.opens_at for question in found.questions], np.int64)
    closes_at = np.array([question.closes_at for question in found.questions], np.int64)
    bins = np.array([question.range.bins if question.range else 0 for question in found.questions], np.int64)
    closed_at, known_at, outcome = closes_at.copy(), closes_at.copy(), np.full(len(bins), -1, np.int64)
    last = found.as_of if as_of is None else as_of
    for position, question, at in found.closings:
        if position <= last:
            closed_at[question] = at
    for settlement in found.settlements:
        if settlement.position <= last:
            outcome[settlement.question] = settlement.outcome
            known_at[settlement.question] = settlement.known_at
    return Status(opens_at, closes_at, bins, closed_at, outcome, known_at)


def _note(found: Facts, position: int, event: Any) -> None:
    """File an event that is neither a forecast nor a withdrawal."""
    try:
        check(found, position, event)
        _file(found, position, event)
    except KeyError as missing:
        raise Corrupt(position, f"the event speaks of {missing}, which was never opened") from None


def _file(found: Facts, position: int, event: Any) -> None:
    question = found.question_codes.codes
    match event:
        case events.QuestionOpened():
            found.question_codes.add(event.question)
            found.questions.append(event)
            found.opened.append(position)
        case events.QuestionClosed():
            found.closings.append((position, question[event.question], event.at))
        case events.QuestionResolved():
            found.settlements.append(Settlement(position, question[event.question], event.outcome, event.known_at))
        case events.QuestionAnnulled() | events.ResolutionRevoked():
            code = question[event.question]
            found.settlements.append(Settlement(position, code, -1, found.questions[code].closes_at))
        case events.ContestOpened():
            found.contests[event.contest] = Contest(event)
        case events.QuestionAdded():
            entry = Entry(position, question[event.question], event.weight, event.hidden_coverage_weight)
            found.contests[event.contest].entries[entry.question] = entry
        case events.ParticipantExcluded():
            found.contests[event.contest].exclusions.append((position, event.participant, event.level))
        case events.ContestFinalized():
            found.contests[event.contest].finalized = position


def _forecast_columns(found: Facts, forecasts: list[Recorded]) -> tuple[Int64Array, ...]:
    """position, at, question, participant, made, length of the distribution; and the distributions, end to end."""
    questions, participants = found.question_codes.codes, found.participant_codes.codes
    rows: list[Any] = [recorded.event for recorded in forecasts]
    question = [questions.get(event.question, -1) for event in rows]
    if -1 in question:
        lost = question.index(-1)
        raise Corrupt(forecasts[lost].position, f"the question {rows[lost].question!r} was never opened")
    made = [type(event) is events.ForecastMade for event in rows]
    numbers = [event.probabilities or event.cdf if stands else () for event, stands in zip(rows, made, strict=True)]
    return (
        np.array([recorded.position for recorded in forecasts], np.int64),
        np.array([event.at for event in rows], np.int64),
        np.array(question, np.int64),
        np.array([participants.setdefault(event.participant, len(participants)) for event in rows], np.int64),
        np.array(made, np.int64),
        np.array(list(map(len, numbers)), np.int64),
        np.fromiter(chain.from_iterable(numbers), np.int64),
    )


def _width(question: events.QuestionOpened) -> int:
    """How many numbers a forecast on the question has."""
    return len(question.outcomes) if question.range is None else question.range.bins + 1


def _columns(found: Facts, pages: list[tuple[Int64Array, ...]]) -> Forecasts:
    """The forecasts of all pages, checked, question after question."""
    forecasts, lengths = _joined(pages)
    opened = np.array(found.opened, np.int64)
    refute(forecasts.position, forecasts.position < opened[forecasts.question], "on a question not yet opened")
    widths = np.array([_width(each) for each in found.questions], np.int64)
    numeric = np.array([each.range is not None for each in found.questions], bool)
    check_forecasts(forecasts, lengths, widths[forecasts.question] * forecasts.made, numeric[forecasts.question])
    return forecasts.rows(np.argsort(forecasts.question, kind="stable"))


def _joined(pages: list[tuple[Int64Array, ...]]) -> tuple[Forecasts, Int64Array]:
    """In log order, and how many numbers each has."""
    columns = [np.concatenate(column) for column in zip(*pages, strict=True)] or [np.zeros(0, np.int64)] * 7
    position, at, question, participant, made, lengths, chances = columns
    return Forecasts(position, at, question, participant, made > 0, np.cumsum(lengths) - lengths, chances), lengths
