"""The runner: keeps a read model up to date with a log, each event's consequences exactly once."""

import time
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from types import TracebackType
from typing import NamedTuple, Self

from forecast_ledger.ledger.core import gc_pause, values
from forecast_ledger.ledger.core.errors import Corrupt, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import START, Checkpoint, Recorded
from forecast_ledger.ledger.storing.store import Store
from forecast_ledger.ledger.storing.subscription import Subscription
from forecast_ledger.projections.incremental.refresh import Growing
from forecast_ledger.replay.readmodel import log_index
from forecast_ledger.replay.readmodel.read_model import Change, Places, ReadModel, Tracking

Watch = Callable[[int], None]  # told how many events have been read


class Lag(NamedTuple):
    """How far a read model is behind its log: events, and seconds since the first of them was recorded."""

    positions: int
    seconds: float


class Refreshed(NamedTuple):
    """What a refresh did: how many events it took in, how many rows it changed, and where the read model now is."""

    events: int
    rows: int
    reached: Checkpoint


class Runner:
    """Keeps a read model up to date with a log, which it reads once and never writes.

    A read model that was followed before is gone on with, whatever had happened to the runner: rows and checkpoint
    change in one transaction. Tables whose projection has another version since are made again.

    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import Runner, commands, open
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with TemporaryDirectory() as folder, open(f"{folder}/log.db") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     with Runner(f"{folder}/log.db", f"{folder}/tables.db") as runner:
    ...         runner.lag().positions, runner.refresh().events, runner.lag().positions
    (1, 1, 0)
    """

    def __init__(
        self,
        location: str | PathLike[str],
        path: str | PathLike[str],
        name: str = "main",
        watch: Watch = lambda _: None,
    ) -> None:
        """location, name: of the log. path: of the read model, which is started if there is none. watch: of reading.

        Raises, first that applies: Refused (the name is no id), Unavailable (either cannot be opened; another runner
        keeps the read model; it is not what was written, or follows another ledger).
        """
        self._name, self._watch = values.check_id(name, "name"), watch
        self._store = Store.open(location, self._name, read_only=True)
        try:
            self._model = ReadModel(fspath(path))
        except BaseException:
            self._store.close()
            raise
        self._growing = Growing()
        self._places: Places = {}  # of what has been read since the last refresh
        self._first, self._recorded_at = "", 0
        self._subscription = Subscription(self._store)
        try:
            self._tracking = self._checked(self._model.tracking())
            self._placed = self._model.placed()
        except BaseException:
            self.close()
            raise

    def refresh(self) -> Refreshed:
        """Take in whatever has been recorded since, and write what follows.

        Raises, first that applies: Corrupt (the log is damaged, or not the one that the read model was made of),
        Unavailable (also where the read model is not what was written), Conflict (somebody else has changed what it
        speaks of). Then the read model is as it was.
        """
        before = self._tracking
        with gc_pause.paused():
            for page in self._subscription.available():
                self._add(page)
            reached = self._subscription.reached
            if before and reached.position < before.reached.position:
                raise Corrupt(reached.position + 1, f"the read model has seen the log up to {before.reached.position}")
            self._model.check()
            anew = self._model.outdated()
            if self._subscription.stopped or (before and before.reached == reached and not anew):
                return Refreshed(0, 0, before.reached if before else START)
            now = Tracking(self._name, self._first, reached, self._recorded_at)
            parts = [*self._growing.whole(anew)]
            if before:
                parts += [each for each in self._growing.parts() if each.table.name not in anew]
            rows = self._model.write(before, now, Change(parts, self._places, anew))
        self._growing.forget()
        self._places = {}
        self._tracking = now
        return Refreshed(reached.position - (before.reached.position if before else 0), rows, reached)

    def follow(self, told: Callable[[Refreshed], None]) -> None:
        """Refresh whenever something is recorded, until `stop`; `told` of each that had something to do.

        Raises what `refresh` raises.
        """
        while not self._subscription.stopped:
            done = self.refresh()
            if done.events or done.rows:
                told(done)
            self._subscription.wait()

    def stop(self) -> None:
        """End `follow` once what it is writing is written; for any thread, or a signal handler."""
        self._subscription.stop()

    def lag(self) -> Lag:
        """How far behind its log the read model is. Raises, first that applies: Unavailable, Corrupt."""
        here = self._tracking.reached.position if self._tracking else 0
        rows = self._store.read(here, limit=1)
        if not rows:
            return Lag(0, 0.0)
        waiting = time.time() - log.unseal_row(rows[0], here + 1).recorded_at / 10**6
        return Lag(self._store.newest() - here, max(waiting, 0.0))

    def close(self) -> None:
        """Close the log and the read model."""
        self._subscription.stop()
        self._store.close()
        self._model.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _checked(self, tracking: Tracking | None) -> Tracking | None:
        """Raises Unavailable if a read model is of another ledger."""
        rows = self._store.read(0, limit=1)
        self._first = log.unseal_row(rows[0], 1).digest if rows else log.GENESIS
        if tracking is None or (tracking.ledger == self._name and tracking.first in {self._first, log.GENESIS}):
            return tracking
        raise Unavailable(f"{self._model.path}: the read model of another ledger, {tracking.ledger!r}")

    def _add(self, page: Sequence[Recorded]) -> None:
        """Take in a page; up to the checkpoint of the read model nothing of it is new."""
        reached = self._tracking.reached if self._tracking else START
        if page[0].position == 1:
            self._first = page[0].digest
        old = max(reached.position - page[0].position + 1, 0)
        if 0 < old <= len(page) and page[old - 1].digest != reached.digest:
            raise Corrupt(reached.position, f"the read model has seen digest {reached.digest} here, not this row's")
        if page[:old]:
            self._growing.add(page[:old])
            self._growing.forget()
        if page[old:]:
            self._growing.add(page[old:])
        log_index.note(self._places, page[old:] if self._placed else page)
        self._recorded_at = page[-1].recorded_at
        self._watch(page[-1].position)
