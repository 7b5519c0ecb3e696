"""The writer: decide commands against the newest state of the log, and append their events, once each."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import chain, islice
from os import PathLike
from threading import Lock
from typing import TYPE_CHECKING, Any, Self, TypeVar

from forecast_ledger.ledger.batching.batch import Batch, Receipt, Requests
from forecast_ledger.ledger.batching.checks import FREE, Claims, check_program
from forecast_ledger.ledger.batching.forecasts import ForecastColumns
from forecast_ledger.ledger.batching.writer_state import RecordedCommand, WriterState
from forecast_ledger.ledger.core import gc_pause, values
from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Conflict, LedgerError, Refused, Unavailable
from forecast_ledger.ledger.core.files import folder_at
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import AnyCommand, PayPrizes
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.model.pointers import pointer_in
from forecast_ledger.ledger.storing import database, forks, instrumentation
from forecast_ledger.ledger.storing.database import TimeLimits
from forecast_ledger.ledger.storing.groups import Groups

if TYPE_CHECKING:
    from forecast_ledger.ledger.batching.sent_forecasts import SentForecasts
    from forecast_ledger.ledger.segments.segment_manifest import SegmentManifest
    from forecast_ledger.ledger.storing.sealed_log import SealedLog
    from forecast_ledger.ledger.storing.stored_log import StoredLog, Turn
    from forecast_ledger.ledger.storing.subscription import Listener, Subscription

# Computes prizes: the pages of a log from its first row on, and a finalized contest -> participant -> amount in 1e-6.
Prizes = Callable[[Iterable[Sequence[Recorded]], str], Mapping[str, int]]
_T = TypeVar("_T")
MAX_TRIES = 10  # how often a batch is decided before it loses to a writer that takes no turns
NO_END = 2**63 - 1  # a log position that no log reaches
_FEW = 8  # pages; more are read as columns, which takes NumPy
FAR_BEHIND = 500  # rows; a writer that is further behind reads them before its turn, not in it
_logger = logging.getLogger(__name__)


@checked("name", "command_id")
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
    Receipt(command_id='c1', first=1, last=1, duplicate=False, refused=())
    Receipt(command_id='c1', first=1, last=1, duplicate=True, refused=())
    """

    def __init__(
        self,
        store: "StoredLog",
        clock: Callable[[], int],
        prizes: Prizes | None = None,
        known: WriterState | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._prizes = prizes
        self.claims = FREE  # the instants that commands may claim
        self._lock = Lock()
        self._groups = Groups(self._handle_group, store.limits.turn)
        self._subscriptions: set[Listener] = set()
        self._known = WriterState() if known is None else known
        self._kept: int | None = None  # up to which log position the state is kept; None if it is not to be
        self._is_open = True
        self._on_use: Callable[[Ledger], None] | None = None  # called before each use of what it knows
        forks.renew(self)

    @classmethod
    def open(  # noqa: PLR0913 - what has a default is named
        cls,
        location: str | PathLike[str],
        name: str = "main",
        *,
        clock: Callable[[], int] | None = None,
        prizes: Prizes | None = None,
        segments: str | PathLike[str] | None = None,
        claims: str | None = None,
        connect: float = database.CONNECT_TIMEOUT,
        turn: float = database.LOCK_TIMEOUT,
        statement: float = database.STATEMENT_TIMEOUT,
    ) -> Self:
        """Open or create a ledger in an SQLite file, in memory (":memory:"), or at a postgresql:// URL.

        name: one of the ledgers in the store. clock: returns µs since the epoch, an int; the system clock by default.
        prizes: a pure function that computes the prizes of a finalized contest, as `forecast_ledger.open` passes it;
        without it, `pay_prizes` is refused. segments: a folder that has the beginning of the log, which must exist. It
        is read from there now, after a check of the SHA-256 of the files, unless an earlier writer has kept a state
        that the log confirms; for a folder that you sealed yourself.
        claims: how far the instant that a command claims may lie before its recording, and after it, such as `5m` or
        `1h,0s`; any instant by default, as histories need it.
        connect, turn, statement: how long a call may wait, s; see `Store.open`.
        Raises ValueError (a time is out of range, or claims is no such text), Refused (the name is not an id),
        Unavailable (the store cannot be opened, or is an SQLite file that has tables, but not a ledger's; or the
        segments are not of the log), Corrupt (a segment is damaged).
        """
        from forecast_ledger.ledger.storing.stored_log import StoredLog  # noqa: PLC0415 - late: it imports NumPy

        waits = TimeLimits(connect, turn, statement)
        database.check_numbers(waits._asdict())
        limits = FREE if claims is None else Claims.read(claims)
        values.check_id(name, "name")
        known, kept = (None, 0) if segments is None else _known_from(segments, location, name, waits)
        ledger = cls._over(StoredLog.open(location, name, limits=waits), clock, prizes, limits, known)
        ledger._kept = kept
        return ledger

    @classmethod
    def _over(
        cls,
        stored: "StoredLog",
        clock: Callable[[], int] | None,
        prizes: Prizes | None,
        claims: Claims,
        known: WriterState | None = None,
    ) -> Self:
        """Return the ledger of a stored log, which keeps its state beside the log."""
        ledger = cls(stored, clock or system_clock, prizes, known)
        ledger.claims, ledger._kept = claims, 0
        return ledger

    def handle(self, command: AnyCommand, command_id: str | None = None) -> Receipt:
        """Decide one command and record its events, durable on return; a retry returns the first receipt.

        Commands of several threads are decided and committed together, each against the state after the one before it.
        command_id: defaults to command.id.
        Raises, first that applies: Refused, Conflict, Unavailable, Corrupt (nothing was recorded); Uncertain (the
        events may or may not be recorded).
        """
        begun = instrumentation.now_ns()
        command_id = command.id if command_id is None else command_id
        if isinstance(command, PayPrizes):  # nobody waits while prizes are computed
            [outcome] = self._handle(Requests([command], [command_id]), atomic=False)
        else:
            outcome = self._groups.outcome(command, command_id)
        return self._answer(command, outcome, begun)

    def _answer(self, command: AnyCommand, outcome: Receipt | Refused, begun: int) -> Receipt:
        """Write a log record of a command, and return its receipt, or raise its refusal."""
        fields = partial(instrumentation.command_fields, self._store.name, self._known.head.position, command, outcome)
        instrumentation.log_event(_logger, logging.DEBUG, "command handled", fields, begun)
        if (on_metric := self._store.on_metric) is not None:
            instrumentation.measure_command(on_metric, self._store.name, command, outcome, begun)
        if isinstance(outcome, Refused):
            raise outcome
        return outcome

    def handle_many(
        self, commands: Iterable[AnyCommand], *, atomic: bool = False, recorded_at: Iterable[Any] | None = None
    ) -> list[Receipt | Refused]:
        """Decide commands in order, each against the state after the one before it; record them in one transaction.

        Returns a receipt or a refusal for each command. If atomic, one refusal refuses all of them.
        Other writers wait until all are decided, so send a large number of commands in several batches.
        commands: `ForecastColumns` are recorded faster than as many commands.
        recorded_at: for each command, the instant at which it was received, µs, in place of the ledger's clock; its
        rows say that they are imported. `fault_of` says which instants are refused.
        Raises, first that applies: ValueError (recorded_at is shorter or longer than commands), Conflict, Unavailable,
        Corrupt (nothing was recorded); Uncertain (the events may or may not be recorded).
        """
        if isinstance(commands, Iterator):  # its items are checked as those of a list
            return self.handle_many([*commands], atomic=atomic, recorded_at=recorded_at)
        begun = instrumentation.now_ns()
        with gc_pause.paused():
            commands = commands if isinstance(commands, ForecastColumns) else [*commands]
            times = None if recorded_at is None else [*recorded_at]
            if times is not None and len(times) != len(commands):
                raise ValueError(f"recorded_at has {len(times):,} times, for {len(commands):,} commands")
            requests = Requests(commands)
        outcomes = self._handle(requests, atomic=atomic, times=times)
        self._report(outcomes, begun)
        return outcomes

    def _report(self, outcomes: Sequence[Receipt | Refused], begun: int) -> None:
        """Write a log record of a batch."""
        fields = partial(instrumentation.batch_fields, self._store.name, self._known.head.position, outcomes)
        instrumentation.log_event(_logger, logging.INFO, "batch handled", fields, begun)
        if (on_metric := self._store.on_metric) is not None:
            instrumentation.measure_batch(on_metric, self._store.name, outcomes, begun)

    def record_sent(self, sent: "SentForecasts") -> bool:
        """Record forecasts in one transaction, if it is certain that each is new and accepted; return whether it is.

        If not, `handle_many` decides them. Raises what that raises.
        """
        begun = instrumentation.now_ns()

        def record() -> bool:
            earlier = Batch(self._known, self._store.read, self._known.recorded_at).receipts([sent.first()])
            return not earlier and self._record(lambda batch: batch.record_sent(sent), {}, None)

        if not self._alone(record):
            return False
        self._report([Receipt("", 0, 0)] * sent.size, begun)
        return True

    def read(self, after: int = 0) -> Iterator[list[Recorded]]:
        """Return the recorded events after a log position, page by page. Raises Unavailable, Corrupt.

        Digests are checked from the row at that position on; what comes before it is not read.
        """
        before, after = log.START, max(after, 0)
        if after:
            if not (rows := self._store.read(after - 1, 1)):
                return
            before = Checkpoint(after, log.unseal_row(rows[0], after).digest)
        yield from log.unseal_pages(self._store.pages(after), before)

    @checked()  # unlike `handle`, it does not refuse an id itself
    def events_of(self, command_id: str) -> list[Recorded]:
        """Return the recorded events of a command, in their order; none if no command of this id is recorded.

        It reads no more of the log than these rows, and those that this ledger has not seen. Raises Unavailable,
        Corrupt.
        """

        def find() -> RecordedCommand | None:
            self._catch_up(self._store)
            commands = self._known.commands
            return commands.recent.get(command_id) or commands.older([command_id], self._store.read).get(command_id)

        command = self._alone(find)
        if command is None:
            return []
        rows = self._store.at(range(command.first, command.last + 1))
        return log.unseal(rows, Checkpoint(command.first - 1, log.decode_row(rows[0], command.first).previous))

    def subscribe(self, after: int | Checkpoint = 0, *, name: str | None = None) -> "Subscription":
        """Return the recorded events after a log position, and then new ones as they are recorded; digests are checked.

        after: a position, or a checkpoint, whose digest must be the log's. Events that this ledger appends arrive at
        once, those of other processes within a fifth of a second. Closing the ledger ends the subscription.
        name: of a cursor in the store, which begins at `after` when the name is new, and moves behind an event when the
        next one is asked for; see `Consumer`.
        Raises, first that applies: Refused (the name is no id, or the log ends before `after`), Unavailable, Corrupt.
        """
        from forecast_ledger.ledger.storing.consumer import Consumer  # noqa: PLC0415
        from forecast_ledger.ledger.storing.subscription import Subscription  # noqa: PLC0415

        subscription = (
            Subscription(self._store, after, ended=self._subscriptions.discard)
            if name is None
            else Consumer(self._store, values.check_id(name, "name"), after, ended=self._subscriptions.discard)
        )
        self._subscriptions.add(subscription)
        return subscription

    @property
    def name(self) -> str:
        """The name of this ledger in its store."""
        return self._store.name

    def head(self) -> Checkpoint:
        """Return the last log position and its digest."""

        def newest() -> Checkpoint:
            self._catch_up(self._store)
            return self._known.head

        return self._alone(newest)

    def close(self) -> None:
        """End the subscriptions, let other processes have their cursors, and close the store's connections.

        A thread that is in the middle of an event of a named subscription gets Unavailable when it asks for the next.
        """
        subscriptions = self._subscriptions.copy()
        for subscription in subscriptions:
            subscription.stop()
        if subscriptions:
            from forecast_ledger.ledger.storing.consumer import Consumer  # noqa: PLC0415 - as in `subscribe`

            for each in subscriptions:
                if isinstance(each, Consumer) and not self._is_closed:
                    with suppress(LedgerError):  # the store is away: the cursor is free again after its time
                        each.end()
        self._store.close()
        with self._lock:
            self._keep()
            self._is_open = False
            self._known.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _handle(
        self, requests: Requests, *, atomic: bool, times: Sequence[int] | None = None
    ) -> list[Receipt | Refused]:
        prizes = self._prizes_of(self._due(requests))
        return self._alone(lambda: self._handle_locked(requests, prizes, atomic=atomic, times=times))

    def _handle_group(self, requests: Callable[[], Requests]) -> list[Receipt | Refused]:
        return self._alone(lambda: self._handle_locked(requests(), {}, atomic=False))

    def _handle_locked(
        self,
        requests: Requests,
        prizes: Mapping[str, Mapping[str, int]],
        *,
        atomic: bool,
        times: Sequence[int] | None = None,
    ) -> list[Receipt | Refused]:
        earlier = Batch(self._known, self._store.read, self._known.recorded_at)
        recorded = None if requests.skips else earlier.receipts(requests.known(1))  # mostly, the first one is new
        if recorded:
            with gc_pause.paused():
                recorded = earlier.receipts(requests.known())
        if recorded is not None:  # then there is no need to wait for a turn
            self._store.check_there()
            return recorded
        outcomes = self._record(lambda batch: batch.decide_all(requests, atomic=atomic), prizes, times)
        has_refused = Refused in {*map(type, outcomes)}
        for index, outcome in enumerate(outcomes if has_refused else ()):
            if type(outcome) is Refused:
                outcome.pointer = pointer_in(requests[index].command, outcome.field, outcome.value)
        return outcomes

    def _record(
        self, decide: Callable[[Batch], _T], prizes: Mapping[str, Mapping[str, int]], times: Sequence[int] | None
    ) -> _T:
        """Decide and record a batch; return what `decide` returns, which adds rows to it. prizes: see `_in_turn`."""
        for _ in range(MAX_TRIES):
            try:
                batch, decided = self._in_turn(decide, prizes, times)
            except database.TakenError:
                instrumentation.log_event(_logger, logging.DEBUG, "race lost", self._race_fields)
                continue
            self._known.head = Checkpoint(batch.position, batch.digest)
            self._known.recorded_at = batch.recorded_at
            self._known.is_imported = times is not None if batch.rows else self._known.is_imported
            batch.settle()
            for subscription in self._subscriptions.copy() if batch.rows else ():  # as a tuple, it may change meanwhile
                subscription.wake()
            return decided
        raise Conflict(f"other writers took the next log position {MAX_TRIES} times; nothing was recorded, try again")

    def _due(self, requests: Requests) -> tuple[list[str], int]:
        """Return the finalized contests that new commands are to pay, and the log position as of which they are."""
        if self._prizes is None:
            return [], 0
        paying = [
            (command.contest, request)
            for request in requests.slow.values()
            if isinstance(command := request.command, PayPrizes) and not isinstance(request.known_by, Refused)
        ]
        if not paying:
            return [], 0

        def unpaid() -> tuple[list[str], int]:
            self._catch_up(self._store)
            contests, batch = self._known.state.contests, Batch(self._known, self._store.read, 0)
            new = {
                contest
                for contest, request in paying
                if contest in contests and not batch.receipts([(request.id, request.known_by)])
            }
            due = [name for name in sorted(new) if contests[name].finalized and not contests[name].is_paid]
            return due, self._known.head.position

        return self._alone(unpaid)

    def _prizes_of(self, due: tuple[list[str], int]) -> dict[str, Mapping[str, int]]:
        """Return the prizes of finalized contests; nobody waits, because later events do not change them."""
        contests, last = due
        if not contests or self._prizes is None:
            return {}
        with gc_pause.paused():
            return {
                contest: self._prizes(log.unseal_pages(log.pages_up_to(self._store.pages(), last)), contest)
                for contest in contests
            }

    def _in_turn(
        self, decide: Callable[[Batch], _T], prizes: Mapping[str, Mapping[str, int]], times: Sequence[int] | None
    ) -> tuple[Batch, _T]:
        """Decide and record in a turn. Raises TakenError (another writer did not take a turn), NewerVersion.

        prizes: of finalized contests, by contest. After any error, the state is restored;
        if the rows were recorded all the same, they are read again later.
        """
        batch = None
        try:
            with self._turn() as turn, gc_pause.paused():  # nothing is paused while it waits for the turn
                check_program(self._known.state)
                batch = Batch(self._known, turn.read, max(self._now(), self._known.recorded_at), times, self.claims)
                self._known.state.prizes = (
                    partial(_board_prizes, self._prizes, prizes, turn, batch) if self._prizes else None
                )
                decided = decide(batch)
                if batch.rows:
                    turn.append(batch.rows)
        except BaseException:
            if batch is not None:
                batch.undo()
            raise
        finally:
            self._known.state.prizes = None
        return batch, decided

    def _now(self) -> int:
        """Return the time by the clock. Raises Unavailable: the clock returned no count of µs, or one of no year."""
        now = self._clock()
        if not values.is_micros(now):
            detail = "a clock returns µs since 1970 as an int, within the years 1 to 9999; nothing was recorded"
            raise Unavailable(f"the ledger's clock returned {repr(now)[:40]}, a {type(now).__name__}: {detail}")
        return now

    @contextmanager
    def _turn(self) -> Iterator["Turn"]:
        """Take a turn to write, with the newest state; if many rows are new, read them before the turn."""
        if not self._known.head.position:
            self._catch_up(self._store)
        with self._store.turn() as turn:
            newer = turn.read(self._known.head.position, FAR_BEHIND)
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

    def _race_fields(self) -> dict[str, Any]:
        return {"ledger": self._store.name, "position": self._known.head.position + 1}

    def _catch_up(self, source: "StoredLog | Turn") -> None:
        """Apply the events that were appended since the last call, by any writer."""
        if source is self._store and self._kept == 0 and not self._known.head.position:
            self._begin()
        pages = source.pages(self._known.head.position)
        with gc_pause.paused():
            for page in log.unseal_pages(islice(pages, _FEW), self._known.head):
                self._known.apply(page)
            if rows := next(pages, None):
                from forecast_ledger.ledger.batching.read_pages import apply_pages  # noqa: PLC0415 - it imports NumPy

                apply_pages(self._known, chain([rows], pages))
        if source is self._store:
            self._keep()

    def _begin(self) -> None:
        """Begin with what an earlier writer has held, if that was kept and is the log's."""
        from forecast_ledger.ledger.storing import kept_states  # noqa: PLC0415 - late: it imports NumPy

        if (known := kept_states.load(self._store)) is not None:
            self._known.close()
            self._known, self._kept = known, known.head.position

    def _keep(self) -> None:
        """Keep the state if the log is much longer than when it was kept; nobody waits for it in a turn."""
        from forecast_ledger.ledger.storing import kept_states  # noqa: PLC0415 - late: it imports NumPy

        if self._kept is not None and kept_states.is_due(self._known.head.position, self._kept):
            self._kept = self._known.head.position
            kept_states.keep(self._known, self._store)

    def _keep_sealed(self, manifest: "SegmentManifest") -> None:
        """Keep the state of a long log beside a folder of segments that has all of it."""
        from forecast_ledger.ledger.storing import kept_states  # noqa: PLC0415 - late: it imports NumPy

        with self._lock:
            head = self._known.head
            if self._is_open and head == manifest.end and kept_states.is_due(head.position, 0):
                with suppress(Unavailable):  # its temporary file cannot be read
                    kept_states.keep(self._known, self._store, manifest)

    def _alone(self, act: Callable[[], _T]) -> _T:
        """Return what a function returns, while other threads are kept out.

        After an interrupt, the state may not be that of its position: it is forgotten, and the log is read again. This
        is no context manager, because an interrupt can come as `__exit__` is called, before it releases a lock.

        Raises Unavailable: another thread has used the ledger for longer than a turn may take.
        """
        if self._on_use is not None:
            self._on_use(self)
        lock, limit = self._lock, self._store.limits.turn  # the lock to release, also in a child
        [is_held] = map(lock.acquire, (True,), (limit,))  # no interrupt comes between this and `try`
        if not is_held:
            raise Unavailable(f"another thread has used the ledger for {limit:g} s; try again")
        try:
            return act()
        except LedgerError:
            raise
        except BaseException:
            self._forget()
            raise
        finally:
            lock.release()

    @property
    def _is_closed(self) -> bool:
        return self._store.is_closed

    def _sealed_with(self, *noted: Mapping[str, int]) -> list[str]:
        """See `State.sealed_with`."""

        def found() -> list[str]:
            self._catch_up(self._store)
            return self._known.state.sealed_with(*noted)

        return self._alone(found)

    def _forget_unused(self) -> None:
        """Forget what the log says, unless a thread uses it; it is kept beside a long log."""
        if self._lock.acquire(blocking=False):
            try:
                self._keep()
                self._forget()
            finally:
                self._lock.release()

    def _forget(self) -> None:
        """Forget what the log says; the next command reads it again."""
        known, self._known, self._kept = self._known, WriterState(), self._kept and 0
        known.close()

    def _renew(self) -> None:
        """In a child, forget the threads of its parent, and what one of them may have been changing."""
        self._lock, self._subscriptions = Lock(), set()
        self._groups = Groups(self._handle_group, self._store.limits.turn)
        self._forget()


def _known_from(
    segments: str | PathLike[str], location: str | PathLike[str], name: str, limits: TimeLimits
) -> tuple[WriterState, int]:
    """Return what a writer holds at the end of the segments of a log or later, and up to which position it is kept.

    Raises Unavailable, Corrupt.
    """
    from forecast_ledger.ledger.storing import kept_states  # noqa: PLC0415 - late: it imports NumPy
    from forecast_ledger.ledger.storing.sealed_log import SealedLog  # noqa: PLC0415 - late: it is rare
    from forecast_ledger.ledger.storing.stored_log import StoredLog  # noqa: PLC0415

    with closing(StoredLog.open(location, name, read_only=True, limits=limits)) as store:
        sealed = SealedLog(folder_at(segments), name)
        sealed.check_same(store)
        known = kept_states.load(store)
        if known is not None and known.head.position >= sealed.manifest.end.position:
            return known, known.head.position
        return known_at_end(sealed, store), 0


def known_at_end(sealed: "SealedLog", store: "StoredLog", last: int = NO_END) -> WriterState:
    """Return what a writer holds at the end of segments, or at a log position. Raises Corrupt.

    store: of the log that the segments are of.
    """
    from forecast_ledger.ledger.batching.sealed_state import UNREAD, apply_segment  # noqa: PLC0415 - late: it is rare
    from forecast_ledger.ledger.segments.row_ranges import between  # noqa: PLC0415 - late: it is rare

    known = WriterState()
    with gc_pause.paused():
        for segment, columns, *_ in sealed.segments(lambda *_: True, UNREAD):
            if segment.first > last:
                break
            end = min(segment.last, last)
            [row] = store.read(end - 1, 1)
            apply_segment(known, between(columns, None, None if end == segment.last else end), log.unseal_row(row, end))
    return known


def _board_prizes(
    prizes: Prizes, known: Mapping[str, Mapping[str, int]], turn: "Turn", batch: Batch, contest: str
) -> Mapping[str, int]:
    """Return the prizes of a finalized contest: the known ones, else from the log and the rows of the batch so far."""
    if contest in known:
        return known[contest]
    with gc_pause.paused():
        return prizes(
            log.unseal_pages(chain(log.pages_up_to(turn.pages(), batch.head.position), batch.pages())), contest
        )


def system_clock() -> int:
    """Return the time, µs since the epoch."""
    return time.time_ns() // 1_000
