"""Forecasts taken as columns, question after question; who has which forecast there is worked out when it is needed."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.deciding.questions import unsettled_question
from forecast_ledger.ledger.deciding.state import StandingOf, State

_MIX, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)  # an odd number that spreads bits, and half of them
_WIDE = 64  # bytes of an id: longer ones are kept as objects, among which short ones take less memory
_FEW, _OF_EACH = 32, 4  # forecasts: fewer, or fewer on each question, are taken in less time row by row


class PlainForecasts(NamedTuple):
    """Forecasts alone in their commands, of which `ForecastForms.say` is true by a digest of the normal form.

    names, labels: of questions and participants, by code. question, participant: codes. at: when each is made, µs. ids:
    of the commands, as `bytes_of` gives them. position: in the log. Columns have the shape (n,).
    """

    names: Sequence[str]
    labels: Sequence[str]
    question: Any
    participant: Any
    at: Any
    ids: Any
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
        ids = map(bytes.decode, self.ids.tolist())
        return zip(names, labels, self.at.tolist(), ids, self.position.tolist(), strict=True)


def bytes_of(ids: Iterable[str]) -> Any:
    """Return ids as an array of the bytes of UTF-8, shape (n,).

    >>> bytes_of(["f1", "f10"]).tolist()
    [b'f1', b'f10']
    """
    return np.array([*map(str.encode, ids)], "S")


class TakenIds:
    """The ids of forecasts that were taken as columns. Until they are checked, they seem to be none."""

    def __init__(self) -> None:
        self._taken, self._runs = list[tuple[Any, Any, Any]](), list[Any]()  # of each, its hashes in order
        self._hashes = np.zeros(0, np.uint64)  # all in order

    def take(self, ids: Any, position: Any) -> None:
        """Add ids, as `bytes_of` gives them, and the log position of each."""
        self._taken.append((ids if ids.itemsize <= _WIDE else ids.astype(object), position, hashes := _hashes(ids)))
        self._runs.append(np.sort(hashes))

    def check(self) -> int | None:
        """Return a log position whose id may be at another one too; None if every id is there once."""
        if self._taken:
            _, position, hashes = zip(*self._taken, strict=True)
            self._hashes = np.sort(np.concatenate(self._runs), kind="stable")  # which merges runs
            self._runs = [self._hashes]
            if (again := self._hashes[1:][self._hashes[1:] == self._hashes[:-1]]).size:
                return int(np.concatenate(position)[np.concatenate(hashes) == again[0]].max())
        return None

    def among(self, ids: Sequence[str]) -> Iterator[int]:
        """Yield which of some ids, by index, are among those taken and checked; to find each takes a look at all."""
        if not len(self._hashes) or not ids:
            return
        hashes = _hashes(bytes_of(ids))
        near = np.searchsorted(self._hashes, hashes).clip(max=len(self._hashes) - 1)
        possible = np.flatnonzero(self._hashes[near] == hashes).tolist()
        yield from (index for index in possible if self.position(ids[index]) is not None)

    def position(self, command_id: str) -> int | None:
        """Return the log position of the forecast with an id; None if none was taken."""
        found = (position[ids == command_id.encode()] for ids, position, _ in self._taken)
        return next((int(each[0]) for each in found if len(each)), None)


def _hashes(ids: Any) -> Any:
    """Return a number of 64 bits for each id, shape (n,): if it differs, so do the ids."""
    words = -(-ids.itemsize // 8)
    hashes = np.zeros(len(ids), np.uint64)
    for word in ids.astype(f"S{8 * words}").view(np.uint64).reshape(len(ids), words).T:
        mixed = (hashes ^ word) * _MIX
        hashes = np.where(word > 0, mixed ^ (mixed >> _HALF), hashes)  # an id has no byte of 0 but after its end
    return hashes


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
