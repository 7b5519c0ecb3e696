"""Runners: the read models of many ledgers of one store, kept up to date by one thread."""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from os import PathLike
from queue import Empty, SimpleQueue
from threading import RLock
from typing import NamedTuple, Self
from urllib.parse import quote

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Absent, LedgerError, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.storing.instrumentation import OnMetric
from forecast_ledger.ledger.storing.stored_log import StoredLog, any_ledger, is_server
from forecast_ledger.ledger.storing.subscription import POLL
from forecast_ledger.replay.readmodel.runner import Refreshed, Runner
from forecast_ledger.replay.readmodel.stored_model import StoredModel
from forecast_ledger.replay.writing.store import Store

HELD = 20  # read models that are held at a time
_NAME = "{name}"
_FIRST_WAIT = 1.0  # s until a ledger is tried again, doubled each time
_LONGEST_WAIT = {True: 4.0, False: 60.0}  # s, by whether trying again may help
_KEPT_WAIT = 8.0  # s, if another runner keeps its read model
_SHARE = 10  # a query for new events, or a ledger that fails, gets at most one part in so many of the time


class Round(NamedTuple):
    """What one look at every ledger did: the results of refreshes that changed something, and errors, by ledger."""

    refreshed: dict[str, Refreshed]
    failed: dict[str, Exception]


@dataclass
class _Followed:
    """What is known of a ledger's read model. wait: s, until it is tried again at the instant `due`; 0 if all is well.

    said: the error that was last told.
    """

    reached: int = -1
    wait: float = 0.0
    due: float = 0.0
    said: str = ""

    def later(self, longest: float, least: float = 0.0) -> None:
        """Try again later, after twice the time if this has happened before."""
        self.wait = min(max(2 * self.wait, _FIRST_WAIT), longest)
        self.due = time.monotonic() + max(self.wait, least)


@checked()
class Runners:
    """Keeps a read model of each ledger of a store up to date. One thread does so, and one query finds what is new.

    An error of one ledger does not stop the others: it is reported, and the ledger is tried again, ever more rarely.
    Several processes may do this for one store: each read model is kept by one of them at a time, and another goes on
    with those of a process that ends.

    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import ReadModel, Runners, Store, commands
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with TemporaryDirectory() as folder, Store.open(f"{folder}/log.db") as store:
    ...     for name in ("north", "south"):
    ...         receipt = store.ledger(name).handle(contest, command_id="open-spring")
    ...     with Runners(f"{folder}/log.db", f"{folder}/{{name}}.tables.db") as runners:
    ...         done = runners.refresh()
    ...     with ReadModel.open(f"{folder}/south.tables.db") as tables:
    ...         [row] = tables.rows("contests")
    >>> [(name, each.events) for name, each in done.refreshed.items()], row["contest"]
    ([('north', 1), ('south', 1)], 'spring')
    """

    @checked()
    def __init__(  # noqa: PLR0913 - what has a default is named
        self,
        location: str | PathLike[str] | Store,
        models: str,
        names: Collection[str] | None = None,
        *,
        optional: Sequence[str] = (),
        held: int = HELD,
        on_metric: OnMetric | None = None,
    ) -> None:
        """location: of the store, or the store itself, whose connections are then used.

        models: where the read model of each ledger is, with `{name}` in the place of its
        name, in which characters other than letters, digits and `_.-~` are written as in a URL, such as %2F: a path, or
        `postgresql://USER@HOST/DATABASE?schema={name}`. names: of the ledgers; all by default, also those that come
        later. optional: see `Runner`. held: how many read models are held at a time, those with the newest events: each
        takes memory, as its log grows, and on PostgreSQL a connection. One that is not held reads its log again.
        on_metric: called with each `Metric` of a refresh.

        A database of a server that has no ledger yet is waited for: `follow` says so once, and `refresh` raises Absent.
        Raises, first that applies: ValueError (models is without {name}, names is one text, held is less than 1),
        Refused (a name is not an id), Unavailable, Corrupt.
        """
        if _NAME not in models:
            raise ValueError(f"models is {models!r}; write {_NAME} in the place of the name of a ledger")
        if isinstance(names, str):
            raise ValueError(f"names is {names!r}; write [{names!r}]")
        if held < 1:
            raise ValueError(f"held is {held}; it must be at least 1")
        self._names = None if names is None else {values.check_id(name, "names") for name in names}
        self._models, self._optional, self._most, self._on_metric = models, optional, held, on_metric
        self._location_of_store = location
        self._opened: StoredLog | None = None
        with suppress(Absent) if not isinstance(location, Store) and is_server(location) else nullcontext():
            self._open()
        self._followed: dict[str, _Followed] = {}
        self._held: OrderedDict[str, Runner] = OrderedDict()  # the one that was refreshed last is the last
        self._running: Runner | None = None
        self._said = ""  # the error of the store that was last told
        self._using = RLock()
        self.stopped = False
        self._woken: SimpleQueue[None] = SimpleQueue()  # its put is reentrant, so a signal handler may call it

    def refresh(self) -> Round:
        """Bring every read model up to date once, but those that another runner keeps.

        Raises, first that applies: Absent (the store has no ledger yet), Unavailable (it cannot be read), Corrupt.
        """
        done = Round({}, {})
        with self._using:
            for followed in self._followed.values():
                followed.due = 0.0
            for name, outcome in self._round():
                if isinstance(outcome, Exception):
                    done.failed[name] = outcome
                else:
                    done.refreshed[name] = outcome
        return done

    def follow(self, report: Callable[[str, Refreshed], None], on_error: Callable[[str, Exception], None]) -> None:
        """Refresh whenever something is recorded, until `stop`.

        report: called with the name of a ledger and the result of a refresh that read events or changed rows.
        on_error: called with the name of a ledger, and why its read model could not be refreshed, once until that
        changes; the name is empty if the store cannot be read.
        """
        while not self.stopped:
            try:
                with self._using:
                    for name, outcome in self._round():
                        if not isinstance(outcome, Exception):
                            report(name, outcome)
                        elif self._followed[name].said != str(outcome):
                            self._followed[name].said = str(outcome)
                            on_error(name, outcome)
            except LedgerError as error:
                if self._said != str(error):
                    self._said = str(error)
                    on_error("", error)
                self._wait(_FIRST_WAIT)
            else:
                self._wait(max(POLL, (_SHARE - 1) * self._round_seconds))

    def stop(self) -> None:
        """End `follow`, at the latest after the refresh that is running; for any thread or a signal handler."""
        self.stopped = True
        if (running := self._running) is not None:
            running.stop()
        self._woken.put(None)

    def close(self) -> None:
        """Close the read models and the store, once no thread refreshes them."""
        self.stop()
        with self._using:
            for name in [*self._held]:
                self._let_go(name)
            if self._opened is not None and not isinstance(self._location_of_store, Store):
                self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _store(self) -> StoredLog:
        """The store, which is opened again until it has a table. Raises Absent, Unavailable, Corrupt."""
        return self._opened or self._open()

    def _open(self) -> StoredLog:
        location = self._location_of_store
        self._opened = location._root if isinstance(location, Store) else any_ledger(location)
        return self._opened

    def _wait(self, seconds: float) -> None:
        with suppress(Empty):
            self._woken.get(timeout=seconds)

    def _round(self) -> Iterator[tuple[str, Refreshed | Exception]]:
        """Refresh what has new events and is due; yield what came of each. Raises Unavailable, Corrupt: the store."""
        begun = time.monotonic()
        heads = dict(self._store.heads())
        self._round_seconds = time.monotonic() - begun
        if self._said:  # the store is back, and with it perhaps the read models
            self._said = ""
            for followed in self._followed.values():
                followed.due = 0.0
        for name in [*heads, *(name for name in self._followed if name not in heads)]:
            if self.stopped:
                return
            if self._names is None or name in self._names:
                followed = self._followed.setdefault(name, _Followed())
                if followed.reached != heads.get(name, 0) and followed.due <= time.monotonic():
                    yield from self._refreshed(name, heads.get(name, 0), followed)

    def _refreshed(self, name: str, head: int, followed: _Followed) -> Iterator[tuple[str, Refreshed | Exception]]:
        """Refresh a read model; yield what came of it, unless there was nothing to do."""
        begun = time.monotonic()
        try:
            done = self._refresh(name, head, followed)
        except Exception as error:  # whatever is wrong with this ledger, the others go on
            self._let_go(name)
            longest = _LONGEST_WAIT[isinstance(error, LedgerError) and error.retryable]
            followed.later(longest, (_SHARE - 1) * (time.monotonic() - begun))
            yield name, error
        else:
            followed.said = ""
            if done is not None and (done.events or done.rows):
                yield name, done

    def _refresh(self, name: str, head: int, followed: _Followed) -> Refreshed | None:
        """Refresh a read model, or return None: it is up to date, or another runner keeps it."""
        if head < followed.reached:  # the log was cut: a runner that begins anew reports it
            self._let_go(name)
        if name not in self._held:
            if (reached := self._reached(name, head)) is not None:
                followed.reached = reached
                if followed.wait:  # another runner keeps it
                    followed.later(_KEPT_WAIT)
                return None
            if not self._hold(name):
                followed.later(_KEPT_WAIT)
                return None
        self._held.move_to_end(name)
        self._running = self._held[name]
        if self.stopped:
            return None
        done = self._running.refresh()
        self._running = None
        followed.reached, followed.wait, followed.due = done.reached.position, 0.0, 0.0
        return done

    def _reached(self, name: str, head: int) -> int | None:
        """Return how far a read model is that has all events up to the head; None if there is something to do."""
        try:
            with closing(StoredModel(self._location(name), read_only=True, optional=self._optional)) as model:
                tracking = model.tracking()
                if tracking is None or tracking.ledger != name or tracking.reached.position < head or model.outdated():
                    return None
        except Unavailable:  # it is not there yet, or its runner says what is wrong
            return None
        position, digest = tracking.reached
        rows = self._store.named(name).read(position - 1, 1) if position else []
        return position if rows and log.unseal_row(rows[0], position).digest == digest else None

    def _hold(self, name: str) -> bool:
        """Hold a read model, and let go of the one that was not refreshed for the longest time if they are too many.

        Return False if another runner has it.
        """
        while len(self._held) >= self._most:
            self._let_go(next(iter(self._held)))
        runner = Runner(
            self._store.named(name),
            self._location(name),
            name,
            optional=self._optional,
            standby=True,
            on_metric=self._on_metric,
        )
        if runner.is_active:
            self._held[name] = runner
        else:
            runner.close()
        return runner.is_active

    def _let_go(self, name: str) -> None:
        self._running = None
        if (runner := self._held.pop(name, None)) is not None:
            runner.close()

    def _location(self, name: str) -> str:
        return self._models.replace(_NAME, quote(name, safe=""))
