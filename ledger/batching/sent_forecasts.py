"""Forecasts of a probability that another process has read, as columns, for the process that records them."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np

from forecast_ledger.ledger.batching.forecasts import (
    LEAST,
    UNSTAMPED,
    ForecastColumns,
    QuickForecasts,
    name_text,
    read_columns,
    written_ids,
)
from forecast_ledger.ledger.batching.plain_lines import PlainLines
from forecast_ledger.ledger.batching.writer_state import codes
from forecast_ledger.ledger.core.values import FIRST_INSTANT
from forecast_ledger.ledger.deciding.questions import unsettled_question
from forecast_ledger.ledger.deciding.state import StandingOf, State, Unloaded, instants
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.canonical import forecast_contents
from forecast_ledger.ledger.model.log import ForecastFields

_T = TypeVar("_T")

_MOST_PENDING = 2**22  # forecasts that are kept as columns, 16 bytes each
_AT_ONCE = 128  # rows whose texts are sent as one, and taken apart while they are recorded


class SentForecasts(NamedTuple):
    """Forecasts of a probability without a fault, with the texts of their rows.

    questions, participants: ids by code. question, participant: codes. at: µs; UNSTAMPED of all if they have none.
    units: the probability of yes, 1e-9. ids: the characters of the ids of commands, shape (n, characters). spans: the
    first and the last instant on each question, by code; none if one is before the one before it. lines: of each
    _AT_ONCE rows, two lines a row, the text of its command and that of its event.
    """

    questions: Sequence[str]
    participants: Sequence[str]
    question: Any
    participant: Any
    at: Any
    units: Any
    ids: Any
    spans: Sequence[tuple[int, int]]
    lines: Sequence[str]

    @property
    def size(self) -> int:
        """The number of forecasts."""
        return len(self.at)

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield the texts of each row, as `log.seal_texts` takes them."""
        for each in self.lines:
            texts = iter(each.split("\n"))
            yield from zip(texts, texts, strict=True)

    def first(self) -> tuple[str, str]:
        """Return the id and the fingerprint of the first command."""
        return ids_of_codes(self.ids[:1])[0], log.id_and_fingerprint(next(self.texts())[0])[1]

    def fields(self, recorded_at: int) -> ForecastFields:
        """Return the fields of their rows. recorded_at: µs."""
        quick = self._quick()
        of = quick.fingerprint, self.at.tolist(), quick.question, quick.participant, self.units.tolist()
        return ForecastFields(recorded_at, ids_of_codes(self.ids), *of, {})

    def forecasts(self, read: Callable[[], ForecastColumns]) -> ForecastColumns:
        """Return them as any other forecasts. read: reads them again."""
        return ForecastColumns.of_quick(ids_of_codes(self.ids), self._quick(), read)

    def _quick(self) -> QuickForecasts:
        commands, events = zip(*self.texts(), strict=True)
        ids, fingerprints = zip(*map(log.id_and_fingerprint, commands), strict=True)
        questions, participants = (
            [*map(names.__getitem__, codes.tolist())]
            for names, codes in ((self.questions, self.question), (self.participants, self.participant))
        )
        texts, none = (ids, fingerprints, events), [None] * self.size
        return QuickForecasts(self.at.tolist(), questions, participants, *texts, self.units.tolist(), none)

    def are_accepted(self, state: State) -> bool:
        """Return whether it is certain that none is refused, if all are new."""
        if not self.spans or not state.several_ids().isdisjoint(self.participants):
            return False
        for name, (_, last) in zip(self.questions, self.spans, strict=True):
            question = unsettled_question(name, state)
            if question is None or question.kind != "binary" or last >= question.closed_at:
                return False
        pending = pending_forecasts(state)  # after the rest: it may look at all that stands on the questions
        return all(
            first >= pending.last(name)  # so that it is not UNSTAMPED
            for name, (first, _) in zip(self.questions, self.spans, strict=True)
        )


class _Read(NamedTuple):
    """Forecasts without a fault, whose questions and participants may have one. written: their ids as JSON."""

    written: Sequence[str]
    ids: Any
    at: Any
    questions: Sequence[str]
    question: Any
    participants: Sequence[str]
    participant: Any
    units: Any


def pack(forecasts: ForecastColumns | PlainLines) -> SentForecasts | None:
    r"""Return forecasts with the texts of their rows; None if one of them may have a fault, or there are none.

    >>> columns = {"id": ["f1"], "at": ["2026-03-02T00:00:00Z"], "question": ["rain"], "participant": ["ada"]}
    >>> pack(ForecastColumns(**columns, probability=["0.70"])).lines
    ['f1","command":"...\n{"type":"forecast_made.v1",...}']
    """
    read = _of_lines(forecasts) if isinstance(forecasts, PlainLines) else _of_columns(forecasts)
    if read is None or not read.written:
        return None
    names = [*map(name_text, read.questions)], [*map(name_text, read.participants)]
    if not all(names[0]) or not all(names[1]):
        return None
    ids = read.ids if read.ids.dtype == np.uint8 or int(read.ids.max()) >= 2**8 else read.ids.astype(np.uint8)
    return SentForecasts(
        *(read.questions, read.participants, read.question, read.participant, read.at, read.units, ids),
        spans=_spans(read.question, read.at),
        lines=[_lines(read, names, slice(begin, begin + _AT_ONCE)) for begin in range(0, len(read.written), _AT_ONCE)],
    )


def _lines(read: _Read, names: tuple[Sequence[str], Sequence[str]], part: slice) -> str:
    """Return the texts of some rows. names: the names of questions, and those of participants, as JSON."""
    questions, participants = (
        [*map(each.__getitem__, codes[part].tolist())]
        for each, codes in zip(names, (read.question, read.participant), strict=True)
    )
    at, units = read.at[part].tolist(), read.units[part].tolist()
    instants = at if at[0] != UNSTAMPED else ["null"] * len(at)
    fingerprints = log.fingerprints(forecast_contents(questions, participants, instants, units))
    commands = log.command_texts(read.written[part], fingerprints)
    events = log.forecast_texts(instants, questions, participants, units)
    return "\n".join(chain.from_iterable(zip(commands, events, strict=True)))


def _of_lines(lines: PlainLines) -> _Read | None:
    faults = set[int]()
    written = written_ids(ids_of_codes(lines.ids), faults)
    questions, participants = (
        _coded(names.view(f"S{names.shape[1]}")[:, 0].tolist()) for names in (lines.questions, lines.participants)
    )
    names = [[*map(bytes.decode, different)] for different, _ in (questions, participants)]
    if faults or int(lines.units.min()) < LEAST:
        return None
    return _Read(written, lines.ids, lines.at, names[0], questions[1], names[1], participants[1], lines.units)


def _of_columns(columns: ForecastColumns) -> _Read | None:
    if (read := read_columns(columns)) is None or {*map(type, chain(*columns.columns[2:4]))} - {str}:
        return None
    (written, at, units), (ids, _, questions, participants, _) = read, columns.columns
    named = *_coded(questions), *_coded(participants)
    return _Read(written, codes(ids), np.array(at, np.int64), *named, np.array(units, np.int64))


def ids_of_codes(ids: Any) -> list[str]:
    """Return ids from what `codes` returns of them, as integers of any type."""
    return np.ascontiguousarray(ids, np.uint32).view(f"U{ids.shape[1]}")[:, 0].tolist()  # type: ignore[no-any-return]


def _coded(names: Sequence[_T]) -> tuple[list[_T], Any]:
    """Return the different names, and the code of each name."""
    code_of = dict(zip(different := [*dict.fromkeys(names)], range(len(different)), strict=True))
    return different, np.fromiter(map(code_of.__getitem__, names), _least_type(len(different)), len(names))


def _least_type(count: int) -> Any:
    """Return a type of so many codes; those of 16 bits are sorted much faster."""
    return np.uint16 if count <= 2**16 else np.uint32


def _spans(question: Any, at: Any) -> list[tuple[int, int]]:
    order = np.argsort(question, kind="stable")
    question, at = question[order], at[order]
    is_next = question[1:] == question[:-1]
    if (is_next & (at[1:] < at[:-1])).any():
        return []
    ends = np.flatnonzero(~is_next)
    return [*zip(at[[0, *(ends + 1)]].tolist(), at[[*ends, -1]].tolist(), strict=True)]


def _last_of(standing: StandingOf) -> int:
    """Return the last instant at which one of some forecasts was made, µs."""
    try:
        return instants(max(standing.values(), default=FIRST_INSTANT))[0]
    except TypeError:  # only some end by themselves
        return max(each if isinstance(each, int) else each[0] for each in standing.values())


class PendingColumns:
    """Pending forecasts as columns: to add each to those that stand would take as long as to record it."""

    def __init__(self, standing: dict[str, StandingOf | Unloaded]) -> None:
        """standing: what stood before, which is not changed until `stand` is called."""
        self._before, self._lasts = standing, dict[str, int]()
        self._questions, self._participants = dict[str, int](), dict[str, int]()
        self._columns, self.size = list[tuple[Any, Any, Any]](), 0

    def last(self, question: str) -> int:
        """Return the last instant at which a forecast that stands on a question was made, µs."""
        if (last := self._lasts.get(question)) is None:
            before = self._before[question]
            standing = before if isinstance(before, dict) else before.load()
            last = self._lasts[question] = _last_of(standing)
        return last

    def add(self, sent: SentForecasts) -> None:
        """Add forecasts that follow."""
        self._lasts.update(zip(sent.questions, (last for _, last in sent.spans), strict=True))
        question, participant = (
            np.array([code_of.setdefault(name, len(code_of)) for name in names], np.uint32)[of]
            for code_of, names, of in (
                (self._questions, sent.questions, sent.question),
                (self._participants, sent.participants, sent.participant),
            )
        )
        self._columns.append((question, participant, sent.at))
        self.size += sent.size

    def stand(self, standing: dict[str, StandingOf | Unloaded]) -> None:
        """See `PendingForecasts`."""
        if not self._columns:
            return
        question, participant, at = (np.concatenate(column) for column in zip(*self._columns, strict=True))
        order = np.argsort(question.astype(_least_type(len(self._questions))), kind="stable")
        participant, at, names = participant[order], at[order], [*self._participants]
        ends = np.cumsum(np.bincount(question)).tolist()
        for name, begin, end in zip(self._questions, [0, *ends], ends, strict=False):
            before = standing[name]
            on = standing[name] = before if isinstance(before, dict) else before.load()
            on.update(zip(map(names.__getitem__, participant[begin:end].tolist()), at[begin:end].tolist(), strict=True))


def pending_forecasts(state: State) -> PendingColumns:
    """Return the pending forecasts of a state."""
    pending = state.pending
    if not isinstance(pending, PendingColumns) or pending.size > _MOST_PENDING:
        state.pending = pending = PendingColumns(state.standing)
    return pending
