"""Cuts of a log by the clock that commands claim, and what a cut at an instant leaves."""

from contextlib import suppress
from os import PathLike
from typing import NamedTuple

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.replay.reading.replay import open_store


class ClaimedCut(NamedTuple):
    """The log position of a cut by the claimed clock; earlier: how many events after it claim no later instant."""

    position: int
    earlier: int


def cut_as_claimed(location: str | PathLike[str], name: str, instant: str) -> ClaimedCut:
    """Return the longest beginning of a log in which no event claims a later instant.

    The claimed instants of a log need not be in order, so that events that claim an earlier instant can come after the
    first that claims a later one. They are left out, because a replay is of a beginning of the log.

    Raises, first that applies: Refused (not an instant), Unavailable, Corrupt.
    """
    micros, position, earlier, later = values.read_instant(instant, "as_of_claimed"), 0, 0, False
    with open_store(location, name) as store:
        for page in log.unseal_pages(store.pages()):
            for recorded in page:
                later = later or recorded.event.at > micros
                if not later:
                    position = recorded.position
                elif recorded.event.at <= micros:
                    earlier += 1
    return ClaimedCut(position, earlier)


def first_event(location: str | PathLike[str], name: str) -> Recorded | None:
    """Return the first event of a log; None if there is none, or its row is damaged. Raises Unavailable."""
    with open_store(location, name) as store, suppress(Corrupt):  # who reads the log says where it is damaged
        for row in store.read(0, 1):
            return log.decode_row(row, 1)
    return None
