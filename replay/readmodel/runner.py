"""The runner: keeps a read model up to date with a log, and applies each event exactly once."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice
from os import PathLike, fspath
from threading import Lock
from typing import Any, NamedTuple, Self

from forecast_ledger.ledger.core import gc_pause, values
from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Corrupt, Unavailable
from forecast_ledger.ledger.core.files import folder_at
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import START, Checkpoint, Recorded
from forecast_ledger.ledger.segments.other_events import other_events
from forecast_ledger.ledger.storing.instrumentation import Metric, OnMetric
from forecast_ledger.ledger.storing.sealed_log import SealedLog
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.ledger.storing.subscription import Subscription
from forecast_ledger.projections.facts.from_log import facts as facts_of
from forecast_ledger.projections.incremental.refresh import IncrementalTables
from forecast_ledger.projections.tables.catalogue import BUILT, CATALOGUE, PartKey, Projections
from forecast_ledger.replay.reading.log import Cut, Log, OnProgress
from forecast_ledger.replay.readmodel.log_index import NewPositions, index_key, other_digest
from forecast_ledger.replay.readmodel.part_store import (
    LOG_INDEX,
    PARTS,
    SYSTEM,
    TRACKING,
    VERSIONS,
    Group,
    StoredRow,
    StoredTables,
    index_rows,
    layout,
    rows_digest,
    stored_rows,
    table_versions,
)
from forecast_ledger.replay.readmodel.stored_model import Positions, StoredModel, Tracking, Update


class Lag(NamedTuple):
    """How far a read model is behind its log: a number of events, and the seconds since the first of them was recorded.

    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import Lag, Runner, commands, open_ledger
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/season.db") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     with Runner(f"{folder}/season.db", f"{folder}/tables.db") as runner:
    ...         refreshed, lag = runner.refresh(), runner.lag()
    >>> lag == Lag(positions=0, seconds=0.0)
    True
    """

    positions: int
    seconds: float


class Refreshed(NamedTuple):
    """The result of a refresh: the numbers of events read and rows changed, the checkpoint reached, and what changed.

    tables: those with rows that changed, in the catalogue's order. contests: those that the changed rows name, sorted;
    a table without a column `contest`, such as that of questions, names none.

    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import Refreshed, Runner, commands, open_ledger
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/season.db") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     with Runner(f"{folder}/season.db", f"{folder}/tables.db") as runner:
    ...         first, second = runner.refresh(), runner.refresh()
    >>> first.events, second == Refreshed(events=0, rows=0, reached=first.reached)
    (1, True)
    >>> first.tables, first.contests
    (('contests',), ('spring',))
    """

    events: int
    rows: int
    reached: Checkpoint
    tables: tuple[str, ...] = ()
    contests: tuple[str, ...] = ()


@checked()
class Runner:
    """Keeps a read model up to date with a log, which is read once and never written.

    An existing read model is continued from its checkpoint, even if its runner was killed, because rows and checkpoint
    change in one transaction. If the version of a projection has changed since, its table is made again.

    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import Runner, commands, open_ledger
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/log.db") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     with Runner(f"{folder}/log.db", f"{folder}/tables.db") as runner:
    ...         runner.lag().positions, runner.refresh().events, runner.lag().positions
    (1, 1, 0)
    """

    @checked("name")
    def __init__(  # noqa: PLR0913 - a log, a read model, and choices that have defaults
        self,
        location: str | PathLike[str] | StoredLog,
        path: str | PathLike[str],
        name: str = "main",
        on_progress: OnProgress = lambda _: None,
        segments: str | PathLike[str] | None = None,
        *,
        optional: Sequence[str] = (),
        standby: bool = False,
        rebuild: bool = False,
        on_metric: OnMetric | None = None,
    ) -> None:
        """location, name: of the log; one that is open is closed with the runner. path: of the read model, which is
        created if need be: an SQLite file, or `postgresql://USER@HOST/DATABASE?schema=NAME`. on_progress: called with
        the number of events read so far.
        segments: a folder that has the beginning of the log; what the read model has already is read from there, after
        a check of the files, and the rest from the log; a new one reads all of it.
        optional: tables to keep too, of those that have a row for each forecast (`standing`, `consensus`, `scores`),
        quote (`quotes`) or tick (`portfolio_snapshots`); the read model keeps them from then on.
        standby: if another runner keeps the read model, wait in `follow` until it ends. rebuild: make all tables again,
        even if the read model is damaged; readers see the old ones until the first refresh has ended.
        on_metric: called with each `Metric` of a refresh.

        Raises, first that applies: Refused (the name is not an id), ValueError (no such optional table), Unavailable
        (either cannot be opened; without `standby`, another runner keeps the read model up to date; it was changed by
        another program, or follows another ledger).
        """
        self._name, self._on_progress = values.check_id(name, "name"), on_progress
        self._segments, self._rebuild = segments, rebuild
        if not isinstance(location, StoredLog):
            location = StoredLog.open(location, self._name, read_only=True)
        self._store = location
        self._store.on_metric = on_metric
        try:
            self._model = StoredModel(fspath(path), optional=optional)
        except BaseException:
            self._store.close()
            raise
        self._positions = NewPositions()  # of the rows read since the last refresh
        self._first, self._recorded_at = "", 0
        self._new_since: int | None = None  # when the first row read since the last refresh was recorded, µs
        self._subscription = Subscription(self._store)
        self._using = Lock()  # while it is refreshed
        self._tracking: Tracking | None = None
        self.is_active = False  # whether it holds the read model, and no other runner does
        try:
            if not self._activate() and not standby:
                raise self._held()
        except BaseException:
            self.close()
            raise

    def _activate(self) -> bool:
        """Begin to keep the read model, or return that another runner does. Raises what the constructor raises."""
        if not self._model.hold():
            return False
        if self._rebuild:
            known: Tracking | None = None
            with suppress(Unavailable):  # it is damaged
                known = self._model.tracking()
            self._checked(known)
            self._model.start_over()
        else:
            self._model.check()
        self._growing = IncrementalTables(self._model.names())
        self._tracking = self._checked(self._model.tracking())
        self._indexed = self._model.is_indexed()
        if self._segments is not None:
            self._read_segments(SealedLog(folder_at(self._segments), self._name))
        self.is_active = True
        return True

    def _held(self) -> Unavailable:
        wrong = "another runner keeps this read model up to date; end that runner, or follow into another one"
        return Unavailable(f"{self._model.location}: {wrong}")

    def refresh(self) -> Refreshed:
        """Read the events recorded since the last refresh, and update the tables.

        Raises, first that applies: Corrupt (the log is damaged, or not the one that the read model was made from),
        Unavailable (also if the read model was changed by another program), Conflict (another process has updated
        it). If it raises, the read model is unchanged.
        """
        with self._using:
            return self._refresh()

    def _refresh(self) -> Refreshed:
        if not self.is_active and not self._activate():
            raise self._held()
        before = self._tracking
        with gc_pause.paused():
            for page in self._subscription.available_pages():
                self._add(page)
            reached = self._subscription.reached
            if before and reached.position < before.reached.position:
                raise Corrupt(
                    reached.position + 1, f"the read model has followed the log up to {before.reached.position}"
                )
            self._model.check()
            rebuilt = self._model.outdated()
            if self._subscription.stopped or (before and before.reached == reached and not rebuilt):
                self._measure(0)
                return Refreshed(0, 0, before.reached if before else START)
            now = Tracking(self._name, self._first, reached, self._recorded_at)
            tables = [*self._growing.whole_tables(rebuilt)]
            if before:
                tables += [update for update in self._growing.updates() if update.table.name not in rebuilt]
                again = [name for name in self._model.names() if name not in (*BUILT, *rebuilt)]
                tables += self._growing.whole_tables(again)
            positions = self._positions.by_key(self._growing.facts.question_codes.labels)
            changes = self._model.write(before, now, Update(tables, positions, rebuilt))
        self._growing.forget()
        self._positions = NewPositions()
        self._tracking = now
        names = tuple(name for name in CATALOGUE if name in changes.tables)
        read = reached.position - (before.reached.position if before else 0)
        self._measure(read)
        return Refreshed(read, changes.rows, reached, names, tuple(sorted(changes.contests)))

    def _measure(self, positions: int) -> None:
        """Report the lag that a refresh has ended."""
        since, self._new_since = self._new_since, None
        if (on_metric := self._store.on_metric) is not None:
            seconds = 0.0 if since is None else max(time.time() - since / 10**6, 0.0)
            on_metric(Metric("lag_positions", positions, self._name))
            on_metric(Metric("lag_seconds", seconds, self._name))

    def follow(self, report: Callable[[Refreshed], None], on_message: Callable[[str], None] = lambda _: None) -> None:
        """Refresh whenever something is recorded, until `stop`.

        report: called with the result of each refresh that read events or changed rows. on_message: called with a
        sentence when a runner on standby begins to wait, and when it takes over. Raises what `refresh` raises.
        """
        if not self.is_active and not self._activate():
            on_message(f"{self._model.location}: another runner keeps this read model up to date; waiting to take over")
            while not self._subscription.stopped and not self._activate():
                self._subscription.wait()
            if self.is_active:
                on_message(f"{self._model.location}: the other runner has ended; taking over")
        while not self._subscription.stopped:
            done = self.refresh()
            if done.events or done.rows:
                report(done)
            self._subscription.wait()

    def stop(self) -> None:
        """End `follow` after the refresh that is running; may be called from any thread or a signal handler."""
        self._subscription.stop()

    def lag(self) -> Lag:
        """Return how far the read model is behind its log. Raises, first that applies: Unavailable, Corrupt."""
        reached = self._tracking.reached.position if self._tracking else 0
        rows = self._store.read(reached, limit=1)
        if not rows:
            return Lag(0, 0.0)
        waiting = time.time() - log.unseal_row(rows[0], reached + 1).recorded_at / 10**6
        return Lag(self._store.newest() - reached, max(waiting, 0.0))

    def close(self) -> None:
        """Close the log and the read model."""
        self._subscription.stop()
        self._store.close()
        self._model.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _checked(self, tracking: Tracking | None) -> Tracking | None:
        """Return the tracking. Raises Unavailable if the read model follows another ledger."""
        rows = self._store.read(0, limit=1)
        self._first = log.unseal_row(rows[0], 1).digest if rows else log.GENESIS
        if tracking is None or (tracking.ledger == self._name and tracking.first in {self._first, log.GENESIS}):
            return tracking
        same = " of the same name" * (tracking.ledger == self._name)
        raise Unavailable(f"{self._model.location}: the read model follows another ledger{same}, {tracking.ledger!r}")

    def _read_segments(self, sealed: SealedLog) -> None:
        """Read what the read model has already from segments, a new one all. Raises Unavailable, Corrupt."""
        sealed.check_same(self._store)
        old = self._tracking.reached if self._tracking and self._indexed else START
        end = START
        with gc_pause.paused():
            for part in sealed.segments(lambda position, _: self._tracking is None or position <= old.position):
                forecasts = self._growing.add_segment(part.columns, part.end)
                if self._tracking is None:
                    self._positions.add(other_events(part.columns), forecasts)
                end, self._recorded_at = part.end, part.recorded_at
                self._on_progress(end.position)
        self._growing.forget()
        if end.position == old.position and end != old:
            raise other_digest(old)
        stopped, self._subscription = self._subscription.stopped, Subscription(self._store, end)
        if stopped:
            self.stop()

    def _add(self, page: Sequence[Recorded]) -> None:
        """Read a page; its rows up to the checkpoint of the read model are not new."""
        reached = self._tracking.reached if self._tracking else START
        if page[0].position == 1:
            self._first = page[0].digest
        old = max(reached.position - page[0].position + 1, 0)
        if 0 < old <= len(page) and page[old - 1].digest != reached.digest:
            raise other_digest(reached)
        for rows, is_new in ((page[:old], False), (page[old:], True)):
            if rows:
                forecasts = self._growing.add(rows)
                if is_new and self._new_since is None:
                    self._new_since = rows[0].recorded_at
                if is_new or not self._indexed:
                    self._positions.add(rows, forecasts)
                if not is_new:
                    self._growing.forget()
        self._recorded_at = page[-1].recorded_at
        self._on_progress(page[-1].position)


# --- Compare a read model with its log: every row of every table, the tracking, the versions and the log index.


DRIFTS_SHOWN = 100  # differences that are reported, of all that are counted


class Drift(NamedTuple):
    """A difference between a read model and the tables made again from its log.

    column: the column whose value differs; empty if a row is missing or surplus, or a table does not exist. expected,
    found: as stored; None for a row that does not exist.
    """

    table: str
    key: PartKey
    column: str
    expected: Any
    found: Any


class ModelCheck(NamedTuple):
    """The checkpoint up to which the log was read, the first differences, and the number of all differences."""

    reached: Checkpoint
    drifts: list[Drift]
    total: int


class _Expected:
    """The first digest and the log index that a read model must have, collected while a log is read."""

    def __init__(self) -> None:
        self.first = log.GENESIS
        self.positions: Positions = {}

    def collect(self, pages: Iterator[Sequence[Recorded]]) -> Iterator[Sequence[Recorded]]:
        """Yield the pages, and note what each row adds to the log index."""
        for page in pages:
            if page[0].position == 1:
                self.first = page[0].digest
            for recorded in page:
                if (key := index_key(recorded.event)) is not None:
                    self.positions.setdefault(key, []).append(recorded.position)
            yield page

    def groups(self) -> Iterator[Group]:
        for key in sorted(self.positions):
            yield key, index_rows(key, self.positions[key])


def check_model(followed: Log, location: str) -> ModelCheck:
    """Compare a read model with the tables made again from the log, as of the checkpoint of the read model.

    location: of the read model, a path or URL. A runner may keep the read model up to date meanwhile.
    Raises, first that applies: Refused (the name is not an id),
    Unavailable (either cannot be read; the read model is damaged, of another ledger, or of none yet), Corrupt (the log
    is damaged, or not the one that was followed).
    """
    with (
        followed.opened() as store,
        closing(StoredModel(location, read_only=True)) as model,
        model.reading() as stored,
    ):
        model.check_file()
        tracking = model.tracking()
        if tracking is None:
            raise Unavailable(f"{model.location}: the read model follows no ledger yet")
        if tracking.ledger != followed.name:
            raise Unavailable(f"{model.location}: the read model follows another ledger, {tracking.ledger!r}")
        cut, past = Cut(tracking.reached.position, followed.on_progress), _Expected()
        facts = facts_of(past.collect(cut.read(store.pages())))
        if cut.last.position < tracking.reached.position:
            raise Corrupt(
                cut.last.position + 1, f"the read model has followed the log up to {tracking.reached.position}"
            )
        if cut.last != tracking.reached:
            raise other_digest(tracking.reached)
        expected = Tracking(followed.name, past.first, cut.last, cut.recorded_at or 0)
        drifts = _drifts(stored, model, Projections(facts), expected, past)
        first = [*islice(drifts, DRIFTS_SHOWN)]
        return ModelCheck(cut.last, first, len(first) + sum(1 for _ in drifts))


def _drifts(
    stored: StoredTables, model: StoredModel, projections: Projections, tracking: Tracking, past: _Expected
) -> Iterator[Drift]:
    names = model.names()
    missing = stored.missing((PARTS, *SYSTEM, *names))
    for name in missing:
        yield Drift(name, (), "", model.expected(name), "no such table, or without its indexes")
    system_groups = {
        TRACKING: iter([((), [tracking.row()])]),
        VERSIONS: iter([((), table_versions(names))]),
        LOG_INDEX: past.groups(),
    }
    if PARTS not in missing:
        for name in (*SYSTEM, *names):
            if name not in missing:
                yield from _table_drifts(stored, name, system_groups.get(name) or _groups(projections, name))


def _groups(projections: Projections, name: str) -> Iterator[Group]:
    for key, rows in layout(name).group_parts(stored_rows(projections.table(name))):
        yield key, sorted(rows)


def _table_drifts(stored: StoredTables, name: str, expected: Iterator[Group]) -> Iterator[Drift]:
    """Yield the differences in a table, part by part, and in the digests of its parts."""
    digests, surplus = stored.digests(name), stored.part_keys(name)
    for key, rows in expected:
        surplus.discard(key)
        yield from _row_drifts(stored, name, key, rows)
        if (digest := digests.pop(key, None)) != rows_digest(rows):
            yield Drift(PARTS, (name, *key), "digest", rows_digest(rows), digest)
    for key in surplus:
        yield from _row_drifts(stored, name, key, [])
    yield from (Drift(PARTS, (name, *key), "digest", None, digest) for key, digest in digests.items())


def _row_drifts(stored: StoredTables, name: str, part: PartKey, rows: list[StoredRow]) -> Iterator[Drift]:
    width = layout(name).key
    remaining = {row[:width]: row for row in stored.rows(name, part)}
    for row in rows:
        stored_row = remaining.pop(row[:width], None)
        if stored_row is None:
            yield Drift(name, row[:width], "", row, None)
        elif row != stored_row:
            values = zip(layout(name).columns, row, stored_row, strict=True)
            yield from (Drift(name, row[:width], column, *both) for (column, _), *both in values if both[0] != both[1])
    yield from (Drift(name, key, "", None, row) for key, row in remaining.items())
