"""The rows of a long log in a database, read side by side: other processes read and check parts of it as columns.

A process checks a part against the digest that the row before it states; this one compares that with the digest that it
has reached. A part of which few rows are forecasts of a probability, or of which anything is wrong or in doubt, is read
here, page by page, which says where the damage is.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import closing, suppress
from itertools import chain, pairwise
from typing import Any, NamedTuple, overload

from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.errors import Corrupt, LedgerError
from forecast_ledger.ledger.model.log import START, Checkpoint, Recorded, decode_rows, stated_digest, unseal_pages
from forecast_ledger.ledger.model.plain_rows import (
    ForecastRows,
    ReadPage,
    joined_forecasts,
    no_forecasts,
    read_page,
    scan_rows,
    unseal_columns,
)
from forecast_ledger.ledger.storing.forks import can_fork
from forecast_ledger.ledger.storing.stored_log import LARGEST, PAGE, StoredLog
from forecast_ledger.replay.engines.pool import processors, start
from forecast_ledger.replay.engines.shared_tasks import SharedTasks

MANY = 1 << 15  # rows from which on it is worth forking processes
PART = 32 * PAGE  # rows that a process reads at once; pages end where they do if one reads alone
_GROUP = 1 << 12  # rows that are read as columns together: more leave the caches of a processor
_SOME = 16  # rows, here and there, that tell whether it is worth it
_BYTES = 1 << 20  # of a page of rows; more are no forecasts of a probability
# What a damaged log can lead to.
UNFIT = (LedgerError, ArithmeticError, LookupError, RecursionError, TypeError, ValueError)
_store: list[StoredLog] = []  # in a process of the pool


class _Part(NamedTuple):
    """Rows that are right if those up to `before` are.

    forecasts: as `joined_forecasts` gives them. others: the bytes of the other rows. last: those of the last row.
    """

    before: Checkpoint
    end: Checkpoint
    forecasts: ForecastRows
    others: list[bytes]
    last: bytes

    def page(self, store: StoredLog) -> ReadPage:
        """Return it as a page. store: has its rows, which are read again if any but the last is asked for."""
        rows = _StoredRows(store, self.before, self.end.position, self.last)
        return ReadPage(rows, self.forecasts, decode_rows(self.others))


def _read_part(store: StoredLog, after: int, end: int, question: str | None) -> _Part | None:
    """Read the rows after a log position up to another; None if they are not read as columns.

    question: the only one whose forecasts are wanted; they are among the others then.
    """
    before = Checkpoint(after, stated_digest(store.read(after - 1, 1)[0])) if after else START
    reached, others, made, group, last = before, list[bytes](), list[ForecastRows](), list[bytes](), b""
    for rows in _rows_between(store, after, end):
        group += rows
        if sum(map(len, rows)) > _BYTES:
            return None
        if len(group) < _GROUP and reached.position + len(group) < end:
            continue
        if (page := read_page(group, reached)) is None:
            return None
        kept = page.others if question is None else page.on(question)
        others += [group[row.position - reached.position - 1] for row in kept]
        made += [page.forecasts] if question is None else []
        reached, last, group = Checkpoint(page[-1].position, page[-1].digest), group[-1], []
    forecasts = joined_forecasts(made) if made else no_forecasts()
    return _Part(before, reached, forecasts, others, last) if last else None


def _rows_between(store: StoredLog, after: int, end: int) -> Iterator[list[bytes]]:
    """Yield the rows after a log position up to another, page by page. Raises Corrupt, Unavailable."""
    while after < end and (rows := store.read(after, min(PAGE, end - after))):
        yield rows
        after += len(rows)


class _StoredRows(Sequence[bytes]):
    """Rows of a store that were checked, of which the last is at hand; the others are read again, and checked again."""

    def __init__(self, store: StoredLog, before: Checkpoint, end: int, last: bytes) -> None:
        """before: what they come after. end: the log position of the last one."""
        self._store, self._before, self._end = store, before, end
        self._rows, self._last = list[bytes](), last

    def __len__(self) -> int:
        return self._end - self._before.position

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...

    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if index == -1:
            return self._last
        if not self._rows:
            rows = [*chain(*_rows_between(self._store, self._before.position, self._end))]
            deque(unseal_pages(iter([rows]), self._before), maxlen=0)
            if rows[-1:] != [self._last]:
                raise Corrupt(self._end, "the rows up to here were changed while the log was read", "digests")
            self._rows = rows
        return self._rows[index]


def read_columns(
    store: StoredLog, location: str, most: int | None = None, question: str | None = None
) -> Generator[Sequence[Recorded], None, None]:
    """Unseal the pages of a store, as `unseal_columns` does, by every processor if they are many.

    location: of the store. most: a log position; after it, they are read here. question: the only one whose forecasts
    are wanted; pages may be without the columns of others, and have those on it among `others`.
    Raises Corrupt, Unavailable.
    """
    reached = START
    with closing(_parts(store, location, most, question)) as parts:
        for end, part in parts:
            if part is not None and part.before == reached:
                yield part.page(store)
                reached = part.end
                continue
            for page in unseal_columns(_rows_between(store, reached.position, end), reached):
                yield page
                reached = Checkpoint(page[-1].position, page[-1].digest)
    yield from unseal_columns(store.pages(reached.position), reached)


def _parts(
    store: StoredLog, location: str, most: int | None, question: str | None
) -> Generator[tuple[int, _Part | None], None, None]:
    """Yield where each part of a log ends, and what was read of it; no part if it is read here alone."""
    others, ends = processors() - 1, list[int]()
    if others and can_fork():
        with suppress(*UNFIT):  # who reads the rows says what is wrong
            end = min(store.newest(), LARGEST if most is None else most)
            if end >= MANY and _has_columns(store, end):
                ends = [*range(PART, end, PART), end]
    if not ends:
        return
    try:
        pool = start(others, _begin, (location, store.name), may_fork=True)
    except OSError:  # the system has no more processes
        return
    with closing(SharedTasks(store, _with_store, pool)) as tasks, suppress(BrokenExecutor, MemoryError):
        parts = [tasks.submit(_found, *part, question) for part in pairwise([0, *ends])]
        yield from zip(ends, tasks.results(parts), strict=True)


def _has_columns(store: StoredLog, end: int) -> bool:
    """Return whether half of some rows up to a log position, here and there, are read as columns. Raises Corrupt."""
    some = sorted({1 + (end - 1) * number // _SOME for number in range(_SOME)} - {end})
    rows = dict(zip(every := sorted({at + step for at in some for step in (0, 1)}), store.at(every), strict=True))
    plain = (scan_rows([rows[at + 1]], Checkpoint(at, stated_digest(rows[at]))).is_plain[0] for at in some)
    return 2 * sum(map(bool, plain)) >= len(some)


def _begin(given: tuple[str, str]) -> None:
    """Prepare a process of the pool; it does no task if it cannot read the log."""
    with suppress(*UNFIT):
        _store[:] = [StoredLog.open(*given, read_only=True)]


def _with_store(task: Callable[..., Any], *given: Any) -> Any:
    """Do a task in a process of the pool."""
    return task(_store[0], *given) if _store else None


def _found(store: StoredLog, after: int, end: int, question: str | None) -> _Part | None:
    """Return what `_read_part` does; None also if anything is wrong with the rows."""
    try:
        with gc_pause.paused():
            return _read_part(store, after, end, question)
    except UNFIT:
        return None
