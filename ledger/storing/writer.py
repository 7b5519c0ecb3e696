"""The writer: decide commands against the newest state of the log, and append their events, once each."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from os import PathLike
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec import UNSET

from forecast_ledger.ledger.core import gc_pause, values
from forecast_ledger.ledger.core.errors import Conflict, Refused, first_by_precedence
from forecast_ledger.ledger.deciding.decider import decide, evolve
from forecast_ledger.ledger.deciding.state import State, Write
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.canonical import with_decimals
from forecast_ledger.ledger.model.commands import AnyCommand, RecordDecision
from forecast_ledger.ledger.model.events import TAGS, AnyEvent, DecisionMalformed, DecisionRecorded
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.storing import instrumentation
from forecast_ledger.ledger.storing.import_times import fault_of
from forecast_ledger.ledger.storing.receipt import Receipt
from forecast_ledger.ledger.storing.requests import request_fingerprint

if TYPE_CHECKING:
    from forecast_ledger.ledger.storing.store import Store, Turn
    from forecast_ledger.ledger.storing.subscription import Subscription

# Computes prizes: the pages of a log from its first row on, and a finalized contest -> participant -> amount in 1e-6.
Prizes = Callable[[Iterable[Sequence[Recorded]], str], Mapping[str, int]]
MAX_TRIES = 10  # how often a batch is decided before it loses to a writer that takes no turns
FAR_BEHIND = 500  # rows; a writer that is further behind reads them before its turn, not in it
_MISSING = object()
_ATTEMPT_EVENTS = (DecisionRecorded, DecisionMalformed)
_Attempt = tuple[str, str, int, int]  # contest, participant, period, attempt
_logger = logging.getLogger(__name__)


class Ledger:
    """A ledger in a store. Threads may share it; any number of processes may open the same store.

    >>> from forecast_ledger import Ledger, commands
    >>> with Ledger.open(":memory:") as ledger:
    ...     question = commands.OpenQuestion(
    ...         at="2026-03-01T00:00:00Z",
    ...         question="rain",
    ...         kind="binary",
    ...         opens_at="2026-03-01T00:00:00Z",
    ...         closes_at="2026-03-08T00:00:00Z",
    ...     )
    ...     ledger.handle(question, command_id="c1")
    ...     ledger.handle(question, command_id="c1")
    Receipt(command_id='c1', first=1, last=1, duplicate=False)
    Receipt(command_id='c1', first=1, last=1, duplicate=True)
    """

    def __init__(self, store: "Store", clock: Callable[[], int], prizes: Prizes | None = None) -> None:
        self._store = store
        self._clock = clock
        self._prizes = prizes
        self._lock = Lock()
        self._subscriptions: set[Subscription] = set()
        self._state = State()
        self._commands: dict[str, tuple[str, int, int]] = {}  # id -> fingerprint, first and last log position
        self._attempts: dict[_Attempt, str] = {}  # -> id of the command that recorded the attempt
        self._head = log.START
        self._recorded_at = -(2**63)
        self._is_imported = True  # all rows so far were imported with their times, if there are any

    @classmethod
    def open(
        cls,
        path_or_url: str | PathLike[str],
        name: str = "main",
        *,
        clock: Callable[[], int] | None = None,
        prizes: Prizes | None = None,
    ) -> Self:
        """Open or create a ledger in an SQLite file, in memory (":memory:"), or at a postgresql:// URL.

        name: one of the ledgers in the store. clock: returns µs since the epoch; the system clock by default.
        prizes: a pure function that computes the prizes of a finalized contest, as `forecast_ledger.open` passes it;
        without it, `pay_prizes` is refused.
        Raises Refused (the name is not an id), Unavailable (the store cannot be opened, or is an SQLite file that has
        tables, but not a ledger's).
        """
        from forecast_ledger.ledger.storing.store import Store  # noqa: PLC0415 - late: it imports eventsourcing

        return cls(Store.open(path_or_url, values.check_id(name, "name")), clock or system_clock, prizes)

    def handle(self, command: AnyCommand, command_id: str | None = None) -> Receipt:
        """Decide one command and record its events, durable on return; a retry returns the first receipt.

        command_id: defaults to command.id.
        Raises, first that applies: Refused, Conflict, Unavailable, Corrupt (nothing was recorded); Uncertain (the
        events may or may not be recorded).
        """
        begun = instrumentation.now_ns()
        [outcome] = self._handle([(command.id if command_id is None else command_id, command)], atomic=False)
        fields = partial(instrumentation.command_fields, self._store.name, self._head.position, command, outcome)
        instrumentation.log_event(_logger, logging.DEBUG, "command handled", fields, begun)
        if isinstance(outcome, Refused):
            raise outcome
        return outcome

    def handle_many(
        self, commands: Iterable[AnyCommand], *, atomic: bool = False, recorded_at: Sequence[int] | None = None
    ) -> list[Receipt | Refused]:
        """Decide commands in order, each against the state after the one before it; record them in one transaction.

        Returns a receipt or a refusal for each command. If atomic, one refusal refuses all of them.
        Other writers wait until all are decided, so send a large number of commands in several batches.
        recorded_at: for each command, the instant at which it was received, µs, in place of the ledger's clock; its
        rows say that they are imported. `fault_of` says which instants are refused.
        Raises, first that applies: Conflict, Unavailable, Corrupt (nothing was recorded); Uncertain (the events may or
        may not be recorded).
        """
        begun = instrumentation.now_ns()
        with gc_pause.paused():
            outcomes = self._handle([(command.id, command) for command in commands], atomic=atomic, times=recorded_at)
        fields = partial(instrumentation.batch_fields, self._store.name, self._head.position, outcomes)
        instrumentation.log_event(_logger, logging.INFO, "batch handled", fields, begun)
        return outcomes

    def read(self, after: int = 0) -> Iterator[list[Recorded]]:
        """Return the recorded events after a log position, page by page; check digests. Raises Unavailable, Corrupt."""
        before = log.START
        for page in log.unseal_pages(self._store.pages(), before):
            if page[-1].position > after:
                yield [recorded for recorded in page if recorded.position > after]

    def subscribe(self, after: int | Checkpoint = 0) -> "Subscription":
        """Return the recorded events after a log position, and then new ones as they are recorded; digests are checked.

        after: a position, or a checkpoint, whose digest must be the log's. Events that this ledger appends arrive at
        once, those of other processes within a fifth of a second. Closing the ledger ends the subscription.
        Raises, first that applies: Refused (the log ends before `after`), Unavailable, Corrupt.
        """
        from forecast_ledger.ledger.storing.subscription import Subscription  # noqa: PLC0415

        subscription = Subscription(self._store, after, ended=self._subscriptions.discard)
        self._subscriptions.add(subscription)
        return subscription

    @property
    def name(self) -> str:
        """The name of this ledger in its store."""
        return self._store.name

    def head(self) -> Checkpoint:
        """Return the last log position and its digest."""
        with self._lock:
            self._catch_up(self._store)
            return self._head

    def close(self) -> None:
        """End the subscriptions and close the store's connections."""
        for subscription in tuple(self._subscriptions):
            subscription.stop()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _handle(
        self, requests: Sequence[tuple[str, AnyCommand]], *, atomic: bool, times: Sequence[int] | None = None
    ) -> list[Receipt | Refused]:
        from forecast_ledger.ledger.storing.store import TakenError  # noqa: PLC0415

        requests = [(command_id, with_decimals(command)) for command_id, command in requests]
        fingerprints = [request_fingerprint(command_id, command) for command_id, command in requests]
        with self._lock:
            if all(map(self._is_recorded, requests, fingerprints)):  # then there is no need to wait for a turn
                return _Batch(self, self._recorded_at).decide_all(requests, fingerprints, atomic=atomic)
            for _ in range(MAX_TRIES):
                try:
                    batch, outcomes = self._in_turn(requests, fingerprints, atomic=atomic, times=times)
                except TakenError:
                    instrumentation.log_event(_logger, logging.DEBUG, "race lost", self._race_fields)
                    continue
                self._head = Checkpoint(batch.position, batch.digest)
                self._recorded_at = batch.recorded_at
                self._is_imported = times is not None if batch.rows else self._is_imported
                for subscription in tuple(self._subscriptions) if batch.rows else ():
                    subscription.wake()
                return outcomes
        raise Conflict(f"other writers took the next log position {MAX_TRIES} times; nothing was recorded, try again")

    def _in_turn(
        self,
        requests: Sequence[tuple[str, AnyCommand]],
        fingerprints: Sequence[str | Refused],
        *,
        atomic: bool,
        times: Sequence[int] | None,
    ) -> tuple["_Batch", list[Receipt | Refused]]:
        """Decide and record in a turn. Raises TakenError: another writer did not take a turn.

        After any error, the state is restored; if the rows were recorded all the same, they are read again later.
        """
        batch = None
        try:
            with self._turn() as turn:
                batch = _Batch(self, max(self._clock(), self._recorded_at), times)
                self._state.prizes = partial(_board_prizes, self._prizes, turn, batch) if self._prizes else None
                outcomes = batch.decide_all(requests, fingerprints, atomic=atomic)
                if batch.rows:
                    turn.append(batch.rows)
        except BaseException:
            if batch is not None:
                batch.undo()
            raise
        finally:
            self._state.prizes = None
        return batch, outcomes

    @contextmanager
    def _turn(self) -> Iterator["Turn"]:
        """Take a turn to write, with the newest state; if many rows are new, read them before the turn."""
        if not self._head.position:
            self._catch_up(self._store)
        with self._store.turn() as turn:
            newer = turn.read(self._head.position, FAR_BEHIND)
            is_near = len(newer) < FAR_BEHIND
            if is_near:
                if newer:
                    self._catch_up(turn)
                yield turn
        if not is_near:
            self._catch_up(self._store)
            with self._store.turn() as turn:
                self._catch_up(turn)
                yield turn

    def _is_recorded(self, request: tuple[str, AnyCommand], fingerprint: str | Refused) -> bool:
        if isinstance(fingerprint, Refused):  # its id may not even be hashable
            return False
        recorded = self._commands.get(request[0])
        return recorded is not None and recorded[0] == fingerprint

    def _race_fields(self) -> dict[str, Any]:
        return {"ledger": self._store.name, "position": self._head.position + 1}

    def _catch_up(self, source: "Store | Turn") -> None:
        """Apply the events that were appended since the last call, by any writer."""
        state, commands = self._state, self._commands
        for page in log.unseal_pages(source.pages(self._head.position), self._head):
            last = None
            try:
                for recorded in page:
                    for table, key, value in evolve(recorded.event, state, recorded.position):
                        table[key] = value
                    if isinstance(recorded.event, _ATTEMPT_EVENTS):
                        self._attempts[_attempt_key(recorded.event)] = recorded.command_id
                    entry = commands.get(recorded.command_id)
                    first = entry[1] if entry else recorded.position
                    commands[recorded.command_id] = recorded.command, first, recorded.position
                    last = recorded
            finally:  # if an event cannot be applied, stay at the one before it
                if last is not None:
                    self._head, self._recorded_at = Checkpoint(last.position, last.digest), last.recorded_at
                    self._is_imported = last.imported is True


class _Batch:
    """Commands decided together: the rows to append, and the changes of the state, to undo them.

    now: by the ledger's clock, µs; never before the newest row. times: of receipt of each command, if imported.
    """

    def __init__(self, ledger: Ledger, now: int, times: Sequence[int] | None = None) -> None:
        self.state, self.commands, self.attempts = ledger._state, ledger._commands, ledger._attempts
        self._now, self._times, self._in_use = now, times, not ledger._is_imported
        self._began_at = self.recorded_at = now if times is None else ledger._recorded_at
        self.head = ledger._head
        self.position, self.digest = self.head
        self.rows: list[tuple[int, str, bytes]] = []
        self._undo: list[Write] = []

    def decide_all(
        self, requests: Sequence[tuple[str, AnyCommand]], fingerprints: Sequence[str | Refused], *, atomic: bool
    ) -> list[Receipt | Refused]:
        """Return the outcome of each command; if atomic, one refusal refuses all."""
        times: Sequence[int | None] = self._times or [None] * len(requests)
        outcomes = [
            fingerprint if isinstance(fingerprint, Refused) else self._outcome(command_id, command, fingerprint, time)
            for (command_id, command), fingerprint, time in zip(requests, fingerprints, times, strict=True)
        ]
        if atomic and any(isinstance(outcome, Refused) for outcome in outcomes):
            self.undo()
            return [
                Refused("batch_refused", "id", outcome.command_id)
                if isinstance(outcome, Receipt) and outcome.last > self.position
                else outcome
                for outcome in outcomes
            ]
        return outcomes

    def undo(self) -> None:
        """Restore the state from before the batch."""
        for table, key, value in reversed(self._undo):
            if value is _MISSING:
                del table[key]
            else:
                table[key] = value
        self._undo.clear()
        self.rows.clear()
        self.position, self.digest = self.head
        self.recorded_at = self._began_at

    def pages(self) -> list[list[bytes]]:
        """Return the rows so far as a page of the log; no page if there are none."""
        return [[row for _, _, row in self.rows]] if self.rows else []

    def _outcome(self, command_id: str, command: AnyCommand, fingerprint: str, time: int | None) -> Receipt | Refused:
        if (entry := self.commands.get(command_id)) is not None:
            recorded, first, last = entry
            if recorded != fingerprint:
                return Refused("command_id_reused", "id", command_id)
            return Receipt(command_id, first, last, duplicate=True)
        if type(command) is RecordDecision and (earlier := self.attempts.get(_attempt_key(command))) is not None:
            recorded, first, last = self.commands[earlier]
            if recorded != fingerprint:
                detail = f"command {earlier!r} has recorded this attempt, with other content"
                return Refused("decision_taken", "attempt", command.attempt, detail)
            return Receipt(command_id, first, last, duplicate=True)
        try:
            events = self._decide(command, time)
        except Refused as refused:
            return refused
        first = self.position + 1
        for event in events:
            self._record(command_id, fingerprint, event)
        self._write(self.commands, command_id, (fingerprint, first, self.position))
        if type(command) is RecordDecision:
            self._write(self.attempts, _attempt_key(command), command_id)
        return Receipt(command_id, first, self.position)

    def _decide(self, command: AnyCommand, time: int | None) -> Sequence[AnyEvent]:
        """Decide a command; a time of receipt is then the time of its rows. Raises Refused."""
        fault = None if time is None else fault_of(time, self.recorded_at, self._now, in_use=self._in_use)
        try:
            events = decide(command, self.state)
        except Refused as refused:
            raise first_by_precedence([refused, fault] if fault else [refused]) from None
        if fault is not None:
            raise fault
        self.recorded_at = self.recorded_at if time is None else time
        return events

    def _record(self, command_id: str, fingerprint: str, event: AnyEvent) -> None:
        self.position = position = self.position + 1
        recorded = Recorded(
            position=position,
            recorded_at=self.recorded_at,
            imported=UNSET if self._times is None else True,
            command_id=command_id,
            command=fingerprint,
            previous=self.digest,
            event=event,
        )
        row, self.digest = log.seal(recorded)
        self.rows.append((position, TAGS[type(event)], row))
        for write in evolve(event, self.state, position):
            self._write(*write)

    def _write(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        self._undo.append((table, key, table.get(key, _MISSING)))
        table[key] = value


def _attempt_key(source: RecordDecision | DecisionRecorded | DecisionMalformed) -> _Attempt:
    """Return the key of an attempt, which is recorded once, under one command id."""
    return source.contest, source.participant, source.period, source.attempt


def _board_prizes(prizes: Prizes, turn: "Turn", batch: _Batch, contest: str) -> Mapping[str, int]:
    """Return the prizes of a finalized contest, from the log and the rows of the batch so far."""
    with gc_pause.paused():
        return prizes(
            log.unseal_pages(chain(log.pages_up_to(turn.pages(), batch.head.position), batch.pages())), contest
        )


def system_clock() -> int:
    """Return the time, µs since the epoch."""
    return time.time_ns() // 1_000
