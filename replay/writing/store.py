"""Ledgers as programs open them: one, or any number in a store over one pool of connections; payment of prizes."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from os import PathLike, fspath
from threading import Lock
from typing import TYPE_CHECKING, Self
from weakref import WeakValueDictionary

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.batching.checks import FREE, Claims
from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Refused, Unavailable
from forecast_ledger.ledger.core.values import Instant
from forecast_ledger.ledger.model.canonical import normal_content
from forecast_ledger.ledger.model.commands import PayPrizes
from forecast_ledger.ledger.model.log import Recorded, fingerprint
from forecast_ledger.ledger.storing import database, forks, writer
from forecast_ledger.ledger.storing.database import TimeLimits
from forecast_ledger.ledger.storing.instrumentation import OnMetric

if TYPE_CHECKING:
    from forecast_ledger.ledger.storing.stored_log import StoredLog


def prizes_from_log(pages: Iterable[Sequence[Recorded]], contest: str) -> dict[str, int]:
    """Return each winner's part of a contest's pool, 1e-6, from the pages of a log; for `Ledger.open`.

    Later events do not change the prizes of a sealed board. Raises Corrupt, KeyError (no such contest).
    """
    # Late: only a contest that is finalized needs tables, and a program that opens a ledger starts in half of the time.
    from forecast_ledger.projections.facts.from_log import facts  # noqa: PLC0415
    from forecast_ledger.projections.tables.catalogue import Projections  # noqa: PLC0415

    return {prize.participant: prize.prize for prize in Projections(facts(pages)).prizes(contest) if prize.prize}


class Ledger(writer.Ledger):
    """A ledger in a store, which can also pay prizes. Threads may share it; processes may open the same store.

    >>> from forecast_ledger import Ledger
    >>> with Ledger.open(":memory:") as ledger:
    ...     ledger.head().position
    0
    """

    @classmethod
    def open(  # noqa: PLR0913 - as in the ledger that it extends
        cls,
        location: str | PathLike[str],
        name: str = "main",
        *,
        clock: Callable[[], int] | None = None,
        prizes: writer.Prizes | None = prizes_from_log,
        segments: str | PathLike[str] | None = None,
        claims: str | None = None,
        connect: float = database.CONNECT_TIMEOUT,
        turn: float = database.LOCK_TIMEOUT,
        statement: float = database.STATEMENT_TIMEOUT,
    ) -> Self:
        """Open or create a ledger in an SQLite file, in memory (":memory:"), or at a postgresql:// URL.

        Its arguments and errors are those of the ledger that it extends; prizes are computed from the log.
        """
        waits = TimeLimits(connect, turn, statement)._asdict()
        return super().open(location, name, clock=clock, prizes=prizes, segments=segments, claims=claims, **waits)


def open_ledger(  # noqa: PLR0913 - what has a default is named
    location: str | PathLike[str],
    name: str = "main",
    *,
    clock: Callable[[], int] | None = None,
    segments: str | PathLike[str] | None = None,
    claims: str | None = None,
    connect: float = database.CONNECT_TIMEOUT,
    turn: float = database.LOCK_TIMEOUT,
    statement: float = database.STATEMENT_TIMEOUT,
) -> Ledger:
    """Open or create a ledger. `Ledger.open` is the same, and `forecast_ledger.open`, which hides Python's own `open`.

    connect, turn, statement: how long a call may wait, s, as in `Store.open`, which opens many ledgers at once.

    >>> from forecast_ledger import open_ledger
    >>> with open_ledger(":memory:") as ledger:
    ...     list(ledger.read())
    []
    """
    waits = TimeLimits(connect, turn, statement)._asdict()
    return Ledger.open(location, name, clock=clock, segments=segments, claims=claims, **waits)


def pay(ledger: writer.Ledger, contest: str, at: Instant | None = None) -> Receipt | None:
    """Record the prizes of a finalized contest that are not recorded yet; return None if all are.

    If a log ends between two prizes, the rest is recorded, although the log has the command's id already. The ledger
    must have been opened with `prizes`. at: by default, the instant at which it is recorded. Raises what
    `Ledger.handle` raises, except prizes_paid.
    """
    command = PayPrizes(at=at, contest=contest)
    name = first = f"pay {fingerprint(normal_content(command))}"
    try:
        while (receipt := ledger.handle(command, name)).duplicate:
            name = f"{first} {receipt.last}"  # the id of the command that pays the rest
    except Refused as refused:
        if refused.code != "prizes_paid":
            raise
        return None
    return receipt


MOST_HELD = 1_000  # ledgers whose state a store holds
PING_TIMEOUT = 2.0  # s


@checked("name")
class Store:
    """Any number of ledgers in one SQLite file, in memory, or in one PostgreSQL database. Threads may share it.

    All its ledgers share one pool of connections, and none has a thread. What a ledger knows of its log is forgotten
    when many others have been used since; its next command reads it again.

    >>> from forecast_ledger import Store, commands
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with Store.open(":memory:") as store:
    ...     for name in ("north", "south"):
    ...         receipt = store.ledger(name).handle(contest, command_id="open-spring")
    ...     store.names(), store.ledger("north") is store.ledger("north")
    (['north', 'south'], True)
    """

    def __init__(self, root: "StoredLog", make: Callable[["StoredLog"], Ledger], held: int) -> None:
        """root: any ledger of the store, to whose connections the others have access. See `open` for `held`."""
        self._root, self._make, self._most = root, make, held
        self._lock = Lock()
        self._ledgers: WeakValueDictionary[str, Ledger] = WeakValueDictionary()
        self._held: OrderedDict[str, writer.Ledger] = OrderedDict()  # the one that was used last is the last
        forks.renew(self)

    @classmethod
    def open(  # noqa: PLR0913 - what has a default is named
        cls,
        location: str | PathLike[str],
        *,
        connections: int = database.CONNECTIONS,
        held: int = MOST_HELD,
        connect: float = database.CONNECT_TIMEOUT,
        turn: float = database.LOCK_TIMEOUT,
        statement: float = database.STATEMENT_TIMEOUT,
        clock: Callable[[], int] | None = None,
        prizes: writer.Prizes | None = prizes_from_log,
        claims: str | None = None,
        on_metric: OnMetric | None = None,
    ) -> Self:
        """Open or create a store in an SQLite file, in memory (":memory:"), or at a postgresql:// URL.

        connections: to the file or the server, at most so many in this process; a thread that finds all in use waits.
        held: how many ledgers keep what they know of their logs. When more are used, the one that was not used for the
        longest time forgets it; that of a long log is kept beside the log first.
        connect, turn, statement: how long a call may wait, s. connect: until a server accepts a connection; libpq waits
        at least 2 s, for each of several hosts, and `connect_timeout` in the URL counts before this. turn: for other
        threads, for a connection, and then for other writers, each. statement: for a sign of a server, which may have
        recorded something.
        clock, prizes, claims: of each ledger; see `Ledger.open`.
        on_metric: called with each `Metric`, in the thread that was measured, so it must be quick and raise nothing.
        Raises ValueError (a number is out of range, or claims is no such text), Unavailable (the store cannot be
        opened, or its table is not that of ledgers), Corrupt.
        """
        from forecast_ledger.ledger.storing import stored_log  # noqa: PLC0415 - late: it imports NumPy

        waits = TimeLimits(connect, turn, statement)
        database.check_numbers({"connections": connections, "held": held, **waits._asdict()})
        limits = FREE if claims is None else Claims.read(claims)
        rows = stored_log.rows_at(fspath(location), "main", limits=waits, connections=connections)

        def make(stored: "StoredLog") -> Ledger:
            return Ledger._over(stored, clock, prizes, limits)

        return cls(stored_log.StoredLog(rows, "main", on_metric), make, held)

    def ledger(self, name: str = "main") -> Ledger:
        """Return a ledger of the store; its first command creates it. It is the same object until it is closed.

        Closing it ends its subscriptions, and leaves the connections to the others; the next call returns a new one.
        Raises, first that applies: Refused (the name is not an id), Unavailable (the store is closed).
        """
        values.check_id(name, "name")
        with self._lock:
            if self._root.is_closed:
                raise Unavailable("the store is closed")
            ledger = self._ledgers.get(name)
            if ledger is None or ledger._is_closed:
                self._ledgers[name] = ledger = self._make(self._root.named(name))
                ledger._on_use = self._use
        return ledger

    def names(self) -> list[str]:
        """Return the names of the ledgers that have events. Raises Unavailable, Corrupt."""
        return self._root.names()

    def ping(self, timeout: int | float = PING_TIMEOUT) -> None:
        """Return once the store has answered one short query, over a connection of its pool. Raises Unavailable.

        timeout: s to wait for a free connection, and then for the answer of a server. If a connection has to be opened
        first, this may take `connect` s besides.
        """
        self._root.ping(timeout)

    def close(self) -> None:
        """Close the ledgers and the connections, once no thread uses them."""
        with self._lock:
            ledgers = [*self._ledgers.values()]
            self._held.clear()
        for ledger in ledgers:
            ledger.close()
        self._root.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _use(self, ledger: writer.Ledger) -> None:
        """Hold a ledger that is about to be used, and let the one that was not used for the longest time forget."""
        unused = None
        with self._lock:
            self._held[ledger.name] = ledger
            self._held.move_to_end(ledger.name)
            if len(self._held) > self._most:
                _, unused = self._held.popitem(last=False)
        if unused is not None:
            unused._forget_unused()

    def _renew(self) -> None:
        """In a child, forget the threads of its parent."""
        self._lock = Lock()
