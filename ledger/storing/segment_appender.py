"""A ledger whose rows go straight into a folder of segments: for many commands at once, none of which waits."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import RLock
from typing import Any

from forecast_ledger.ledger.auditing.audit import Audit
from forecast_ledger.ledger.batching.writer_state import WriterState
from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import Checkpoint, NewRows, Recorded
from forecast_ledger.ledger.segments.sealing import SEGMENT_ROWS, Sealing, appending
from forecast_ledger.ledger.storing import kept_states
from forecast_ledger.ledger.storing.database import Fault, Rows, StoredRows
from forecast_ledger.ledger.storing.sealed_log import SealedLog
from forecast_ledger.ledger.storing.segment_rows import SegmentRows, checked_rows
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.ledger.storing.writer import Ledger, Prizes, known_at_end, system_clock


@contextmanager
def appended(
    folder: Path,
    name: str = "main",
    *,
    clock: Callable[[], int] = system_clock,
    prizes: Prizes | None = None,
    size: int = SEGMENT_ROWS,
) -> Iterator[Ledger]:
    """Open a ledger whose rows go into a folder of segments, or into an empty folder.

    Rows are listed in the folder, and so durable, when a segment is full and at the end of the block. If the block
    raises, the rows that are not listed are lost. Until the end of the block, no other process can write to the folder.
    name, clock, prizes: as in `Ledger.open`. size: rows of a segment.
    Raises, first that applies: Refused (the name is not an id), Unavailable (no pyarrow; the folder has other files, or
    those of another ledger or no manifest, or another process writes to it, or it ends in the middle of a command, or
    cannot be written), Corrupt, OSError.

    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import commands, replay
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with TemporaryDirectory() as folder:
    ...     with appended(Path(folder)) as ledger:
    ...         receipt = ledger.handle(contest, command_id="open-spring")
    ...     replay(folder).checkpoint.position
    1
    """
    values.check_id(name, "name")
    with appending(folder, name, size) as target:
        rows = _AppendedRows(folder, name, target)
        store, known, begun = StoredLog(rows, name), WriterState(), target.manifest
        is_news = False  # the rows of the last segment, which are in this state, were checked
        if (listed := rows.listed) is not None:
            kept = kept_states.load(store, SealedLog(folder, name))
            known = kept or _known_before_last(folder, name, StoredLog(listed, name))
            if target.end != begun.end:  # the last segment is not full
                _resume(target, listed, is_checked=kept is not None)
                is_news = kept is None
        with Ledger(store, clock, prizes, known) as ledger:
            yield ledger
            rows.finish()
            if is_news or target.manifest != begun:
                ledger._keep_sealed(target.manifest)


def _resume(target: Sealing, listed: SegmentRows, *, is_checked: bool) -> None:
    """Go on with the last segment, which is not full. Raises Corrupt: a file or a row of it was changed.

    is_checked: its rows were checked before a state of the same files was kept.
    """
    segment = target.manifest.segments[-1]
    columns = listed.columns(segment)
    if is_checked:
        listed.close()  # its rows are seldom read
    else:
        deque(checked_rows(columns, segment, segment.before, chain=log.chain_digests), 0)
    target.resume(columns)


def _known_before_last(folder: Path, name: str, store: StoredLog) -> WriterState:
    """Return what a writer holds before the last command, which it reads in its first turn.

    Raises Unavailable: the folder ends in the middle of a command.
    """
    sealed, last = SealedLog(folder, name), _last_command(store)
    known = known_at_end(sealed, store, last[0].position - 1)
    audit = Audit(lambda position: _event_at(position, store), known.state)
    if not audit.is_whole(last):
        remedy = "seal the log again, as of its end"
        raise Unavailable(f"{folder}: its segments end in the middle of a command; {remedy}")
    return known


def _last_command(store: StoredLog) -> list[Recorded]:
    """Return the rows of the last command of a log, which has one."""
    newest, count = store.newest(), 1
    while True:
        first = max(newest - count, 0)
        rows = [row for page in store.pages(first) for row in page]
        records = log.unseal(rows, Checkpoint(first, log.decode_row(rows[0], first + 1).previous))
        last = [recorded for recorded in records if recorded.command_id == records[-1].command_id]
        if len(last) < len(records) or not first:
            return last
        count *= 8


def _event_at(position: int, store: StoredLog) -> Any:
    [row] = store.read(position - 1, 1)
    return log.unseal_row(row, position).event


class _AppendedRows(Rows):
    """The rows of a folder of segments, and those that are not listed yet."""

    def __init__(self, folder: Path, name: str, target: Sealing) -> None:
        self.location, self._folder, self._name, self._target = str(folder), folder, name, target
        self.listed, self._manifest = self._open(), target.manifest
        self.identity = str(folder.resolve())
        self._using, self._has_failed = RLock(), False

    def _open(self) -> SegmentRows | None:
        return SegmentRows(self._folder, self._name) if self._target.manifest.segments else None

    def select(self, after: int, limit: int) -> StoredRows:
        """Return rows after a log position from the sealed segments; see `Rows`."""
        rows, first = list[bytes](), max(after, 0) + 1
        with self._in_use():
            while len(rows) < limit and (position := first + len(rows)) <= self._target.end.position:
                rows += self._rows_from(position, limit - len(rows))
        return [*enumerate(rows, first)]

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        """Keep other threads out. Raises Unavailable: a segment could not be written."""
        with self._using:
            if self._has_failed:
                what = "a segment could not be written, and the rows after the listed ones are lost"
                raise Unavailable(f"{self.location}: {what}; send them again")
            yield

    def _rows_from(self, position: int, limit: int) -> list[bytes]:
        if self._manifest is not self._target.manifest:
            self.listed, self._manifest = self._open(), self._target.manifest
        if self.listed is not None and position <= self._manifest.end.position:
            return [row for _, row in self.listed.select(position - 1, limit)]
        return self._target.rows_from(position)[:limit]

    def newest(self) -> int:
        with self._in_use():
            return self._target.end.position

    def faults(self) -> Iterator[Fault]:
        return iter(()) if self.listed is None else self.listed.faults()

    def turn(self) -> AbstractContextManager["_AppendedRows"]:
        """See `Rows`: nobody else has a turn while the folder is locked."""
        return nullcontext(self)

    def insert(self, rows: Sequence[NewRows]) -> None:
        """See `Transaction`. The rows are durable only once they are listed: always whole transactions."""
        # Made before anything is written.
        groups = [(group.first, [*group.rows], group.fields and group.fields()) for group in rows]
        with self._writing():
            if self._target.add_new(groups):
                self._target.finish(more=True)

    def finish(self) -> None:
        """List all rows."""
        with self._writing():
            self.close()  # memory is needed for other columns
            self._target.finish()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Let nothing be read or written after an error, which may leave a part of the rows out."""
        with self._in_use():
            try:
                yield
            except BaseException as error:
                self._has_failed = True
                if isinstance(error, OSError) and error.strerror:
                    what = "the rows after the listed ones are not recorded"
                    raise Unavailable(f"{self.location}: {error.strerror}; {what}; send them again") from None
                raise

    def close(self) -> None:
        if self.listed is not None:
            self.listed.close()
