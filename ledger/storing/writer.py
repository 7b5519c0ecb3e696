"""The writer: decides commands against the log's newest state and appends what follows, once each."""

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

from forecast_ledger.ledger.core import gc_pause, values
from forecast_ledger.ledger.core.errors import Conflict, Refused, first_by_precedence
from forecast_ledger.ledger.deciding.decider import decide, evolve
from forecast_ledger.ledger.deciding.state import State, Write
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.canonical import canonical_content, with_decimals
from forecast_ledger.ledger.model.commands import AnyCommand, RecordDecision
from forecast_ledger.ledger.model.events import TAGS, AnyEvent, DecisionMalformed, DecisionRecorded
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.storing import instrumentation
from forecast_ledger.ledger.storing.receipt import Receipt

if TYPE_CHECKING:
    from forecast_ledger.ledger.storing.store import Store, Turn
    from forecast_ledger.ledger.storing.subscription import Subscription

# What a sealed board is worth: pages of a log from its first row on, and a contest -> participant -> amount in 1e-6.
Prizes = Callable[[Iterable[Sequence[Recorded]], str], Mapping[str, int]]
MAX_TRIES = 10  # how often a batch is decided again that somebody who takes no turns has overtaken
MAX_COMMAND_BYTES = 16 * 2**20  # bytes of what a command says: its rows are then shorter than `database.MAX_ROW_BYTES`
FAR_BEHIND = 500  # rows: so many that others have written are read before one's turn, not in it
_MISSING = object()
_ATTEMPT_EVENTS = (DecisionRecorded, DecisionMalformed)
_Attempt = tuple[str, str, int, int]  # contest, participant, period, attempt
_logger = logging.getLogger(__name__)


class Ledger:
    """One ledger in a store. Safe to share between threads; any number of processes may hold one on the same store.

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
        self._attempts: dict[_Attempt, str] = {}  # the id of the command that recorded an attempt at a decision
        self._head = log.START
        self._recorded_at = -(2**63)

    @classmethod
    def open(
        cls,
        path_or_url: str | PathLike[str],
        name: str = "main",
        *,
        clock: Callable[[], int] | None = None,
        prizes: Prizes | None = None,
    ) -> Self:
        """Open or start a ledger in an SQLite file, ":memory:", or at a postgresql:// URL.

        name: which of the store's ledgers. clock: µs since the epoch; the system's unless given.
        prizes: a pure function that says what a sealed board is worth, as `forecast_ledger.open` gives; without it,
        `pay_prizes` is refused.
        Raises Refused (the name is no id), Unavailable (the store does not open, or is an SQLite file of something
        else: it has tables, but not a ledger's).
        """
        from forecast_ledger.ledger.storing.store import Store  # noqa: PLC0415 - late: it imports eventsourcing

        return cls(Store.open(path_or_url, values.check_id(name, "name")), clock or system_clock, prizes)

    def handle(self, command: AnyCommand, command_id: str | None = None) -> Receipt:
        """Decide one command and record what follows, durable on return; a retry returns the first receipt.

        command_id: defaults to command.id.
        Raises, first that applies: Refused, Conflict, Unavailable, Corrupt, and then nothing was recorded; Uncertain,
        and then that is not known.
        """
        begun = instrumentation.now_ns()
        [outcome] = self._handle([(command.id if command_id is None else command_id, command)], atomic=False)
        said = partial(instrumentation.command_fields, self._store.name, self._head.position, command, outcome)
        instrumentation.log_event(_logger, logging.DEBUG, "command handled", said, begun)
        if isinstance(outcome, Refused):
            raise outcome
        return outcome

    def handle_many(self, commands: Iterable[AnyCommand], *, atomic: bool = False) -> list[Receipt | Refused]:
        """Decide commands in order, each against what the one before left, and record them in one transaction.

        Returns a receipt or a refusal for each; a refusal refuses that command alone, or, if atomic, all of them.
        Other writers wait until all are decided: many commands at once are better sent in several batches.
        Raises, first that applies: Conflict, Unavailable, Corrupt, and then nothing was recorded; Uncertain, and then
        that is not known.
        """
        begun = instrumentation.now_ns()
        with gc_pause.paused():
            outcomes = self._handle([(command.id, command) for command in commands], atomic=atomic)
        said = partial(instrumentation.batch_fields, self._store.name, self._head.position, outcomes)
        instrumentation.log_event(_logger, logging.INFO, "batch handled", said, begun)
        return outcomes

    def read(self, after: int = 0) -> Iterator[list[Recorded]]:
        """The recorded events after a log position, page by page, digests checked."""
        before = log.START
        for page in log.unseal_pages(self._store.pages(), before):
            if page[-1].position > after:
                yield [recorded for recorded in page if recorded.position > after]

    def subscribe(self, after: int | Checkpoint = 0) -> "Subscription":
        """The recorded events after a log position, digests checked, then those to come, for as long as one listens.

        after: a position, or a checkpoint, whose digest must then be the log's. What this ledger appends wakes it at
        once; what others append is found within a fifth of a second. Closing the ledger ends it.
        Raises, first that applies: Refused (the log does not reach so far), Unavailable, Corrupt.
        """
        from forecast_ledger.ledger.storing.subscription import Subscription  # noqa: PLC0415

        subscription = Subscription(self._store, after, ended=self._subscriptions.discard)
        self._subscriptions.add(subscription)
        return subscription

    @property
    def name(self) -> str:
        """Which of the store's ledgers."""
        return self._store.name

    def head(self) -> Checkpoint:
        """The newest log position and its digest."""
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

    def _handle(self, requests: Sequence[tuple[str, AnyCommand]], *, atomic: bool) -> list[Receipt | Refused]:
        from forecast_ledger.ledger.storing.store import TakenError  # noqa: PLC0415

        requests = [(command_id, with_decimals(command)) for command_id, command in requests]
        fingerprints = [_fingerprint(command_id, command) for command_id, command in requests]
        with self._lock:
            if all(map(self._is_recorded, requests, fingerprints)):  # then nobody has to be waited for
                return _Batch(self, self._recorded_at).decide_all(requests, fingerprints, atomic=atomic)
            for _ in range(MAX_TRIES):
                try:
                    batch, outcomes = self._in_turn(requests, fingerprints, atomic=atomic)
                except TakenError:
                    instrumentation.log_event(_logger, logging.DEBUG, "race lost", self._race_fields)
                    continue
                self._head = Checkpoint(batch.position, batch.digest)
                self._recorded_at = batch.recorded_at
                for subscription in tuple(self._subscriptions) if batch.rows else ():
                    subscription.wake()
                return outcomes
        raise Conflict(f"{MAX_TRIES} races lost for the next log position; nothing was recorded, try again")

    def _in_turn(
        self, requests: Sequence[tuple[str, AnyCommand]], fingerprints: Sequence[str | Refused], *, atomic: bool
    ) -> tuple["_Batch", list[Receipt | Refused]]:
        """Decide against the newest state and record, while no other writer does. Raises TakenError: one did.

        Whatever is raised, the state is as it was; if the rows are there all the same, they are read like others'.
        """
        batch = None
        try:
            with self._turn() as turn:
                batch = _Batch(self, max(self._clock(), self._recorded_at))
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
        """A turn to write, the state being the newest; where much is new, it is read while others may still write."""
        if not self._head.position:
            self._catch_up(self._store)
        with self._store.turn() as turn:
            newer = turn.read(self._head.position, FAR_BEHIND)
            near = len(newer) < FAR_BEHIND
            if near:
                if newer:
                    self._catch_up(turn)
                yield turn
        if not near:
            self._catch_up(self._store)
            with self._store.turn() as turn:
                self._catch_up(turn)
                yield turn

    def _is_recorded(self, requests: tuple[str, AnyCommand], said: str | Refused) -> bool:
        if isinstance(said, Refused):  # what is no id may not even be one that can be looked up
            return False
        known = self._commands.get(requests[0])
        return known is not None and known[0] == said

    def _race_fields(self) -> dict[str, Any]:
        return {"ledger": self._store.name, "position": self._head.position + 1}

    def _catch_up(self, source: "Store | Turn") -> None:
        """Fold in what has been appended since, by whomever."""
        state, commands = self._state, self._commands
        for page in log.unseal_pages(source.pages(self._head.position), self._head):
            last = None
            try:
                for recorded in page:
                    for table, key, value in evolve(recorded.event, state, recorded.position):
                        table[key] = value
                    if isinstance(recorded.event, _ATTEMPT_EVENTS):
                        self._attempts[_attempt_key(recorded.event)] = recorded.command_id
                    known = commands.get(recorded.command_id)
                    first = known[1] if known else recorded.position
                    commands[recorded.command_id] = recorded.command, first, recorded.position
                    last = recorded
            finally:  # at an event that does not fit, stay behind the last one that did
                if last is not None:
                    self._head, self._recorded_at = Checkpoint(last.position, last.digest), last.recorded_at


class _Batch:
    """Commands decided together: the rows to append, and how to undo what they changed in the state."""

    def __init__(self, ledger: Ledger, recorded_at: int) -> None:
        self.state, self.commands, self.attempts = ledger._state, ledger._commands, ledger._attempts
        self.recorded_at = recorded_at
        self.head = ledger._head
        self.position, self.digest = self.head
        self.rows: list[tuple[int, str, bytes]] = []
        self._undo: list[Write] = []

    def decide_all(
        self, requests: Sequence[tuple[str, AnyCommand]], fingerprints: Sequence[str | Refused], *, atomic: bool
    ) -> list[Receipt | Refused]:
        """The outcome of each command; all refused if atomic and one is."""
        outcomes = [
            said if isinstance(said, Refused) else self._outcome(command_id, command, said)
            for (command_id, command), said in zip(requests, fingerprints, strict=True)
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
        """Leave the state as the batch found it."""
        for table, key, value in reversed(self._undo):
            if value is _MISSING:
                del table[key]
            else:
                table[key] = value
        self._undo.clear()
        self.rows.clear()
        self.position, self.digest = self.head

    def pages(self) -> list[list[bytes]]:
        """The rows so far, as a page of the log; none if there are none."""
        return [[row for _, _, row in self.rows]] if self.rows else []

    def _outcome(self, command_id: str, command: AnyCommand, said: str) -> Receipt | Refused:
        known = self.commands.get(command_id)
        if known is not None:
            if known[0] != said:
                return Refused("command_id_reused", "id", command_id)
            return Receipt(command_id, known[1], known[2], duplicate=True)
        if type(command) is RecordDecision and (there := self.attempts.get(_attempt_key(command))) is not None:
            recorded, first, last = self.commands[there]
            if recorded != said:
                return Refused(
                    "decision_taken", "attempt", command.attempt, f"it is recorded, with other content, as {there!r}"
                )
            return Receipt(command_id, first, last, duplicate=True)
        try:
            events = decide(command, self.state)
        except Refused as refused:
            return refused
        first = self.position + 1
        for event in events:
            self._record(command_id, said, event)
        self._write(self.commands, command_id, (said, first, self.position))
        if type(command) is RecordDecision:
            self._write(self.attempts, _attempt_key(command), command_id)
        return Receipt(command_id, first, self.position)

    def _record(self, command_id: str, said: str, event: AnyEvent) -> None:
        self.position = position = self.position + 1
        recorded = Recorded(
            position=position,
            recorded_at=self.recorded_at,
            command_id=command_id,
            command=said,
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


def _attempt_key(of: RecordDecision | DecisionRecorded | DecisionMalformed) -> _Attempt:
    """What can be recorded once only, whatever the id of the command."""
    return of.contest, of.participant, of.period, of.attempt


def _fingerprint(command_id: str, command: AnyCommand) -> str | Refused:
    """The fingerprint of what the command says, or the foremost reason why it cannot be said at all."""
    try:
        values.check_id(command_id, "id")
        said = canonical_content(command)
        if len(said) <= MAX_COMMAND_BYTES:
            return log.fingerprint(said)
        too_long = f"it says more than {MAX_COMMAND_BYTES} bytes"
        return Refused("malformed", "command", None, too_long, remedy="say it in several commands")
    except Refused as refused:
        fault = refused
    try:
        canonical_content(command)
    except Refused as other:
        return first_by_precedence([other, fault])
    return fault


def _board_prizes(prizes: Prizes, turn: "Turn", batch: _Batch, contest: str) -> Mapping[str, int]:
    """What a finalized contest's board is worth, by the log with the batch's rows so far."""
    with gc_pause.paused():
        return prizes(
            log.unseal_pages(chain(log.pages_up_to(turn.pages(), batch.head.position), batch.pages())), contest
        )


def system_clock() -> int:
    """Now, µs since the epoch."""
    return time.time_ns() // 1_000
