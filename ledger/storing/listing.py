"""The ledgers of a store, with the size and the head of each."""

from collections.abc import Iterator
from contextlib import closing
from os import PathLike
from typing import NamedTuple

from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.storing.stored_log import any_ledger


class LedgerSize(NamedTuple):
    """A ledger of a store. recorded_at: of its last row, µs; None if that row cannot be read."""

    name: str
    events: int
    digest: str
    recorded_at: int | None


def ledger_sizes(location: str | PathLike[str]) -> Iterator[LedgerSize]:
    """Yield the ledgers of a store by name; digests are those that the last rows state. Raises Unavailable, Corrupt.

    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import commands, open_ledger
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("north", "south"):
    ...         with open_ledger(f"{folder}/regions.db", name) as ledger:
    ...             receipt = ledger.handle(contest, command_id="open-spring")
    ...     [(each.name, each.events) for each in ledger_sizes(f"{folder}/regions.db")]
    [('north', 1), ('south', 1)]
    """
    with closing(any_ledger(location)) as store:
        for name, events in store.heads():
            [row] = store.named(name).read(events - 1, 1)
            envelope = log.decode_envelope(row)
            recorded_at = None if envelope is None else envelope.recorded_at
            yield LedgerSize(name, events, log.stated_digest(row), recorded_at)
