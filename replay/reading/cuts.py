"""Cuts of a log by the clock that commands claim, and what a cut at an instant leaves."""

from contextlib import suppress
from datetime import date
from os import PathLike
from typing import NamedTuple

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.replay.reading.replay import open_store

_DATE_LENGTH, _START_OF_DAY, _END_OF_DAY = len("2026-03-01"), "T00:00:00Z", "T23:59:59.999999Z"


class ClaimedCut(NamedTuple):
    """The log position of a cut by the claimed clock; earlier: how many events after it claim no later instant."""

    position: int
    earlier: int


def end_of_date(text: str) -> str:
    """Return a plain date as its last instant, UTC, and any other text as it is.

    >>> end_of_date("2026-03-01"), end_of_date("2026-03-01T00:00:00Z"), end_of_date("2026-13-01")
    ('2026-03-01T23:59:59.999999Z', '2026-03-01T00:00:00Z', '2026-13-01')
    """
    return text + _END_OF_DAY if _is_date(text) else text


def read_span(since: str | None, until: str | None) -> tuple[int | None, int | None]:
    """Return a span [since, until) in µs; of a plain date, the first counts from its beginning, the other to its end.

    Raises Refused: not an instant; the field is named as the option, `from` or `until`.

    >>> read_span("1970-01-01", "1970-01-01"), read_span(None, "1970-01-01T00:00:00Z")
    ((0, 86400000000), (None, 0))
    """
    begin = end = None
    if since is not None:
        begin = values.read_instant(since + _START_OF_DAY * _is_date(since), "from")
    if until is not None:
        end = values.read_instant(end_of_date(until), "until") + _is_date(until)
    return begin, end


def _is_date(text: str) -> bool:
    if len(text) == _DATE_LENGTH and text[4::3] == "--":
        with suppress(ValueError):  # no such day: whoever reads the instant refuses it as it is written
            return bool(date.fromisoformat(text))
    return False


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
