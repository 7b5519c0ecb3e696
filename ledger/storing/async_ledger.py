"""A ledger for programs on asyncio: the calls of `Ledger`, which wait in threads of the event loop's executor."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, Self, TypeVar, overload
from weakref import WeakSet

from forecast_ledger.ledger.batching.batch import Receipt, Requests
from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Conflict, LedgerError, Refused, Unavailable, Uncertain
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import AnyCommand, PayPrizes
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.storing import consumer, instrumentation
from forecast_ledger.ledger.storing.groups import MOST
from forecast_ledger.ledger.storing.subscription import POLL, checkpoint_at
from forecast_ledger.ledger.storing.writer import Ledger

Answer = TypeVar("Answer")


class _Sent(NamedTuple):
    """A command whose task waits for the outcome."""

    command: AnyCommand
    id: str
    outcome: asyncio.Future[Receipt | Refused]


@checked("command_id")
class AsyncLedger:
    """A ledger whose calls are awaited. The tasks of one event loop share it, and it starts no thread of its own.

    Commands of tasks that wait at the same time are decided and committed together, so that a thousand tasks need one
    thread. A task that is cancelled while it waits for `handle` leaves it open whether its command is recorded: send it
    again under the same id, which records nothing twice.

    >>> import asyncio
    >>> from forecast_ledger import AsyncLedger, commands, open_ledger
    >>> async def opened() -> tuple[list[int], list[str]]:
    ...     async with AsyncLedger(open_ledger(":memory:")) as ledger:
    ...         names = ("spring", "summer", "autumn")
    ...         contests = [commands.OpenContest(id=f"open-{name}", contest=name, rules="baseline") for name in names]
    ...         receipts = await asyncio.gather(*map(ledger.handle, contests))
    ...         seen: list[str] = []
    ...         async for recorded in ledger.subscribe(after=1):
    ...             seen.append(recorded.command_id)
    ...             if recorded.position == 3:
    ...                 break
    ...         return [receipt.last for receipt in receipts], seen
    >>> asyncio.run(opened())
    ([1, 2, 3], ['open-summer', 'open-autumn'])
    """

    def __init__(self, ledger: Ledger) -> None:
        """ledger: it is closed with this one. Opening may wait for a server: `asyncio.to_thread(open_ledger, URL)`."""
        self._ledger = ledger
        self._queue: list[_Sent] = []
        self._leader: asyncio.Task[None] | None = None  # decides what is in the queue
        self._news = _News(ledger)
        self._consumers: WeakSet[AsyncConsumer] = WeakSet()

    async def handle(self, command: AnyCommand, command_id: str | None = None) -> Receipt:
        """Decide one command and record its events; see `Ledger.handle`, also for its errors."""
        if isinstance(command, PayPrizes):  # nobody waits while prizes are computed
            return await asyncio.to_thread(self._ledger.handle, command, command_id)
        begun = instrumentation.now_ns()
        sent = _Sent(command, command.id if command_id is None else command_id, asyncio.Future())
        self._queue.append(sent)
        if self._leader is None:
            self._leader = asyncio.create_task(self._lead())
        return self._ledger._answer(command, await sent.outcome, begun)

    async def handle_many(
        self, commands: Iterable[AnyCommand], *, atomic: bool = False, recorded_at: Iterable[Any] | None = None
    ) -> list[Receipt | Refused]:
        """Decide commands in order, and record them in one transaction; see `Ledger.handle_many`."""
        if isinstance(commands, Iterator):  # its items are checked as those of a list
            return await self.handle_many([*commands], atomic=atomic, recorded_at=recorded_at)
        return await asyncio.to_thread(self._ledger.handle_many, commands, atomic=atomic, recorded_at=recorded_at)

    async def read(self, after: int = 0) -> AsyncIterator[list[Recorded]]:
        """Return the recorded events after a log position, page by page; see `Ledger.read`."""
        pages = self._ledger.read(after)
        while page := await asyncio.to_thread(next, pages, None):
            yield page

    @checked()  # unlike `handle`, it does not refuse an id itself
    async def events_of(self, command_id: str) -> list[Recorded]:
        """Return the recorded events of a command, in their order; see `Ledger.events_of`."""
        return await asyncio.to_thread(self._ledger.events_of, command_id)

    @overload
    def subscribe(self, after: int | Checkpoint = 0, *, name: None = None) -> "AsyncSubscription": ...

    @overload
    def subscribe(self, after: int | Checkpoint = 0, *, name: str) -> "AsyncConsumer": ...

    def subscribe(self, after: int | Checkpoint = 0, *, name: str | None = None) -> "AsyncSubscription | AsyncConsumer":
        """Return the recorded events after a log position, and then new ones as they are recorded.

        After: a position, or a checkpoint, whose digest must be the log's. One query looks for new events of other
        processes, a fifth of a second after the last, for all subscriptions of this ledger that wait.
        name: of a cursor in the store, which begins at `after` when the name is new, and moves behind an event when the
        next one is asked for; see `AsyncConsumer`. Raises Refused: the name is no id.
        """
        if name is None:
            return AsyncSubscription(self._ledger, self._news, after)
        consumer = AsyncConsumer(self._ledger, self._news, values.check_id(name, "name"), after)
        self._consumers.add(consumer)
        return consumer

    @property
    def name(self) -> str:
        """The name of the ledger in its store."""
        return self._ledger.name

    async def head(self) -> Checkpoint:
        """Return the last log position and its digest."""
        return await asyncio.to_thread(self._ledger.head)

    async def close(self) -> None:
        """Wait for the commands that have been sent, end the subscriptions, and close the ledger."""
        while self._leader is not None:
            await asyncio.wait([self._leader])
        self._news.stop()
        await asyncio.gather(*(consumer._let_go() for consumer in self._consumers))
        await asyncio.to_thread(self._ledger.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _lead(self) -> None:
        """Decide what is in the queue, and what comes meanwhile."""
        group: list[_Sent] = []
        try:
            while self._queue:
                group = [sent for sent in self._queue[:MOST] if not sent.outcome.cancelled()]
                del self._queue[:MOST]
                outcomes = await asyncio.to_thread(_decided, self._ledger, group)
                for sent, outcome in zip(group, outcomes, strict=True):
                    if sent.outcome.cancelled():
                        continue
                    if isinstance(outcome, Receipt | Refused):
                        sent.outcome.set_result(outcome)
                    else:
                        sent.outcome.set_exception(outcome)
        finally:
            self._leader = None
            for sent in (*group, *self._queue):  # the event loop ends
                sent.outcome.cancel()
            self._queue.clear()


def _decided(ledger: Ledger, group: Sequence[_Sent]) -> Sequence[Receipt | Refused | Exception]:
    """Decide commands together, as `Groups` does. An error of the store is that of each of them."""
    if not group:  # all are cancelled
        return []
    try:
        return ledger._handle_group(lambda: Requests([sent.command for sent in group], [sent.id for sent in group]))
    except (Conflict, Unavailable, Uncertain) as error:
        return [copy(error) for _ in group]
    except Exception as error:  # perhaps of one of them
        return [error] if len(group) == 1 else [outcome for sent in group for outcome in _decided(ledger, [sent])]


class AsyncSubscription:
    """The recorded events after a log position, in order, each once: first the existing ones, then new ones.

    `async for` waits when there are no more, until the ledger is closed. A loop may end at any event, and a task may be
    cancelled: another loop over the same subscription goes on behind the last event that was returned. reached: the
    checkpoint of that event, or None. Raises, first that applies: Refused (the log ends before `after`), Unavailable,
    Corrupt.

    >>> import asyncio
    >>> from forecast_ledger import AsyncLedger, AsyncSubscription, commands, open_ledger
    >>> async def first_position(subscription: AsyncSubscription) -> int:
    ...     return (await anext(subscription)).position
    >>> async def followed() -> int:
    ...     async with AsyncLedger(open_ledger(":memory:")) as ledger:
    ...         contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    ...         await ledger.handle(contest, command_id="open-spring")
    ...         return await first_position(ledger.subscribe())
    >>> asyncio.run(followed())
    1
    """

    def __init__(
        self, ledger: Ledger, news: "_News", after: int | Checkpoint, keep: Callable[[], object] | None = None
    ) -> None:
        """See `AsyncLedger.subscribe`. keep: called in a thread from time to time while this waits."""
        self._ledger, self._news, self._after, self._keep = ledger, news, after, keep
        self.reached: Checkpoint | None = None
        self._page: list[Recorded] = []  # the events that are read and not yet returned, the next one last

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Recorded:
        while not self._page:
            try:
                self.reached, self._page = reached, _ = await asyncio.to_thread(self._read)
                if not self._page:
                    await self._wait(reached.position)
            except Unavailable:
                if not self._news.is_ended:
                    raise
            if self._news.is_ended:
                raise StopAsyncIteration
        recorded = self._page.pop()
        self.reached = Checkpoint(recorded.position, recorded.digest)
        return recorded

    async def _wait(self, position: int) -> None:
        if self._keep is None:
            await self._news.after(position)
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.after(position), consumer.SIGN)
        await asyncio.to_thread(self._keep)

    def _read(self) -> tuple[Checkpoint, list[Recorded]]:
        store = self._ledger._store
        reached = checkpoint_at(store, self._after) if self.reached is None else self.reached
        return reached, log.unseal(store.read(reached.position), reached)[::-1]


class AsyncConsumer:
    """The recorded events after a cursor, which moves behind an event when the next one is asked for; see `Consumer`.

    If a loop ends in the middle of an event, its task is cancelled, or the process is killed there, the next loop
    begins with that event. While another loop under this name runs, in any process, `async for` waits as a standby.
    Closing the ledger ends the loop, and lets the standby go on at once. Raises what an `AsyncSubscription` does, and
    Unavailable: another loop has taken over.

    >>> import asyncio
    >>> from forecast_ledger import AsyncLedger, commands, open_ledger
    >>> async def mail(ledger: AsyncLedger, name: str) -> None:
    ...     async for recorded in ledger.subscribe(name="mailer"):
    ...         print("mail about", recorded.command_id)
    ...         if recorded.command_id == name:
    ...             break
    >>> async def mailed() -> None:
    ...     async with AsyncLedger(open_ledger(":memory:")) as ledger:
    ...         for name in ("spring", "summer"):
    ...             await ledger.handle(commands.OpenContest(id=name, contest=name, rules="baseline"))
    ...         await mail(ledger, "spring")
    ...         await mail(ledger, "summer")
    >>> asyncio.run(mailed())
    mail about spring
    mail about spring
    mail about summer
    """

    def __init__(self, ledger: Ledger, news: "_News", name: str, after: int | Checkpoint) -> None:
        """See `AsyncLedger.subscribe`."""
        self.name = name
        self._ledger, self._news, self._after = ledger, news, after
        self._consumer: consumer.Consumer | None = None
        self._using, self._loop = Lock(), 0  # the number of the loop that may use the cursor

    async def __aiter__(self) -> AsyncIterator[Recorded]:
        """Yield the events. Raises, first that applies: Refused (the log ends before `after`), Unavailable, Corrupt."""
        self._loop += 1
        loop = self._loop
        try:
            while not await asyncio.to_thread(self._call, loop, consumer.Consumer.take):
                await asyncio.sleep(consumer.TRY)
                if self._news.is_ended or loop != self._loop:
                    return
            keep = partial(self._call, loop, consumer.Consumer.keep)
            async for recorded in AsyncSubscription(self._ledger, self._news, self._reached(), keep):
                yield recorded
                await asyncio.to_thread(self._call, loop, lambda cursor, recorded=recorded: cursor.move(recorded))
        except Unavailable:
            if not self._news.is_ended:
                raise
        finally:
            with suppress(LedgerError):
                await asyncio.to_thread(self._end, loop)

    def _reached(self) -> Checkpoint:
        assert self._consumer is not None  # noqa: S101 - it is taken
        return self._consumer.reached

    def _call(self, loop: int, call: Callable[[consumer.Consumer], Answer]) -> Answer | None:
        """Use the cursor, unless the loop has ended: the thread of a task that was cancelled goes on."""
        with self._using:
            if loop != self._loop:
                return None
            if self._consumer is None:
                self._consumer = consumer.Consumer(self._ledger._store, self.name, self._after)
            return call(self._consumer)

    def _end(self, loop: int) -> None:
        with self._using:
            if loop == self._loop and self._consumer is not None:
                self._loop += 1
                self._consumer.end()

    async def _let_go(self) -> None:
        with suppress(LedgerError):
            await asyncio.to_thread(self._end, self._loop)


class _News:
    """Where subscriptions wait for new events: this ledger tells of its own, and one look finds those of others."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._newest = 0
        self._bell = asyncio.Event()
        self._look: asyncio.Task[LedgerError | None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.is_ended = False
        ledger._subscriptions.add(self)

    async def after(self, position: int) -> None:
        """Wait until the log is longer, or the ledger is closed. Raises Unavailable, Corrupt."""
        self._loop = asyncio.get_running_loop()
        while self._newest <= position and not self.is_ended:
            look = self._look = self._look or asyncio.create_task(self._look_later())
            await asyncio.wait([look])
            if not look.cancelled() and (error := look.result()) is not None:
                raise copy(error)

    async def _look_later(self) -> LedgerError | None:
        """Look at the log when this ledger has appended to it, at the latest after POLL; return what went wrong."""
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._bell.wait(), POLL)
            self._bell.clear()
            if not self.is_ended:
                self._newest = await asyncio.to_thread(self._ledger._store.newest)
        except LedgerError as error:
            return error
        finally:
            self._look = None
        return None

    def wake(self) -> None:
        """Look now; any thread may call this."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the event loop is closed
                self._loop.call_soon_threadsafe(self._bell.set)

    def stop(self) -> None:
        """End all subscriptions; any thread may call this."""
        self.is_ended = True
        self.wake()
