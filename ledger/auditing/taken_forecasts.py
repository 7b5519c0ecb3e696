"""Forecasts taken as columns, question after question; who has which forecast there is worked out when it is needed."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.deciding.questions import unsettled_question
from forecast_ledger.ledger.deciding.state import StandingOf, State

_FEW, _OF_EACH = 32, 4  # forecasts: fewer, or fewer on each question, are taken in less time row by row


class PlainForecasts(NamedTuple):
    """Forecasts alone in their commands, of which `ForecastForms.say` is true by a digest of the normal form.

    names, labels: of questions and participants, by code. question, participant: codes. at: when each is made, µs. ids:
    of the commands. position: in the log. Columns have the shape (n,).
    """

    names: Sequence[str]
    labels: Sequence[str]
    question: Any
    participant: Any
    at: Any
    ids: Sequence[str]
    position: Any

    def are_few(self) -> bool:
        """Return whether it takes less time to take them row by row: they are few, or few on each question."""
        return len(self.ids) < max(_FEW, _OF_EACH * int(np.count_nonzero(np.bincount(self.question))))

    def between(self, begin: int, end: int) -> "PlainForecasts":
        """Return the forecasts from one index up to another."""
        return PlainForecasts(self.names, self.labels, *(column[begin:end] for column in self[2:]))

    def rows(self) -> Iterable[tuple[str, str, int, str, int]]:
        """Yield the question, the participant, the instant, the id and the log position of each."""
        names, labels = (
            map(texts.__getitem__, codes.tolist())
            for texts, codes in ((self.names, self.question), (self.labels, self.participant))
        )
        return zip(names, labels, self.at.tolist(), self.ids, self.position.tolist(), strict=True)


class TakenForecasts:
    """The forecasts that stand on a question; the latest are columns, which may yet go back in time."""

    def __init__(self, standing: StandingOf) -> None:
        self._standing, self._taken = standing, list[tuple[Sequence[str], Any, Any, Any]]()
        self._latest, self._in_order = -(2**63), True  # the last instant, if each is after the one before or the same

    def take(self, labels: Sequence[str], columns: Sequence[Any], *, in_order: bool) -> None:
        """Add forecasts. columns: the code of each participant among the labels, the instant and the log position.

        in_order: whether no instant is before the one before it.
        """
        self._taken.append((labels, *columns))
        _, at, _ = columns
        self._in_order = self._in_order and in_order and bool(at[0] >= self._latest)
        self._latest = at[-1]

    def load(self) -> StandingOf:
        """Return the forecasts that stand. Raises Corrupt at a forecast that is before its participant's last one."""
        standing = self._standing
        for labels, *columns in self._taken:
            for code, at, position in zip(*(column.tolist() for column in columns), strict=True):
                last = standing.get(who := labels[code])
                if last is not None and at < (last if isinstance(last, int) else last[0]):
                    raise _goes_back(position)
                standing[who] = at
        self._taken.clear()
        return standing

    def unordered(self) -> list[Any]:
        """Return the columns of all forecasts, as they were taken; load them if there are others.

        Empty if they are in the order of their instants, whoever made them.
        """
        if self._standing:
            self.load()
        return [] if self._in_order else self._taken


def take_columns(forecasts: PlainForecasts, state: State) -> list[str] | None:
    """Apply forecasts but for their ids; return their questions, None if the decider might not record one of them.

    Whether they go back in time is found later: by `check_taken`, or when their question is loaded.
    """
    names, labels, question, participant, at, _, position = forecasts
    if (several := state.several_ids()) and several & {labels[code] for code in np.unique(participant).tolist()}:
        return None
    order = np.argsort(question, kind="stable")
    question, columns = question[order], [column[order] for column in (participant, at, position)]
    begins = np.flatnonzero(np.diff(question, prepend=-1))
    latest = np.maximum.reduceat(columns[1], begins).tolist()
    taken = [names[code] for code in question[begins].tolist()]
    _, at, _ = columns
    falls = {*question[1:][(at[1:] < at[:-1]) & (question[1:] == question[:-1])].tolist()}
    in_order = [code not in falls for code in question[begins].tolist()]
    ends = [*begins[1:].tolist(), len(order)]
    for name, last, rises, begin, end in zip(taken, latest, in_order, begins.tolist(), ends, strict=True):
        opened = unsettled_question(name, state)
        if opened is None or last >= opened.closed_at:
            return None
        standing = state.standing[name]
        if not isinstance(standing, TakenForecasts):
            standing = state.standing[name] = TakenForecasts(state.standing_on(name))
        standing.take(labels, [column[begin:end] for column in columns], in_order=rises)
    return taken


def check_taken(state: State) -> None:
    """Check that no participant's forecasts go back in time. Codes mean the same in all of them. Raises Corrupt."""
    standing = [each for each in state.standing.values() if isinstance(each, TakenForecasts)]
    chunks = [(number, columns) for number, each in enumerate(standing) for _, *columns in each.unordered()]
    if not chunks:
        return
    participant, at, position = (np.concatenate(column) for column in zip(*(each for _, each in chunks), strict=True))
    number = np.repeat([number for number, _ in chunks], [len(columns[0]) for _, columns in chunks])
    whose = number * (int(participant.max()) + 1) + participant
    order = np.argsort(whose, kind="stable")
    whose, at = whose[order], at[order]
    if (back := np.flatnonzero((whose[1:] == whose[:-1]) & (at[1:] < at[:-1]))).size:
        raise _goes_back(int(position[order[back[0] + 1]]))


def _goes_back(position: int) -> Corrupt:
    return Corrupt(position, "the forecast is before the participant's last one")
