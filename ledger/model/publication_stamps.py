"""Publication stamps: dates and times, each with the span of instants that it can mean."""

import re
from calendar import monthrange
from datetime import date
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import DAY, FIRST_INSTANT, LAST_INSTANT, read_instant

_HOUR = 3_600 * 10**6  # µs
_EPOCH = date(1970, 1, 1).toordinal()
_EASTERNMOST = 14 * _HOUR  # the Line Islands, where a date begins first
_WESTERNMOST = -12 * _HOUR  # Anywhere on Earth, where it ends last
_NAMED = (
    r"(?P<year>[0-9]{4})(-(?P<month>[0-9]{2})(-(?P<day>[0-9]{2}))?)?"
    r"(?P<time>[Tt ][0-9:.]+)?(?P<offset>[Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?"
)
_STAMP = re.compile(_NAMED)
WRITTEN_STAMP = f"^{re.sub(r'[?]P<[a-z]+>', '', _NAMED)}$"  # as JSON Schema has it


class StampSpan(NamedTuple):
    """The instants that a stamp can mean: µs since the epoch, both ends inclusive, within the calendar."""

    earliest: int
    latest: int


def stamp_span(text: str, field: str) -> StampSpan:
    """Return the span of an RFC 3339 instant, a date and time without offset, or a date, month or year.

    An instant with an offset is exact, to the µs. Without an offset, the zone is any from UTC+14 (the earliest instant)
    to UTC-12 (the latest). A date, month or year is all of its instants, in its zone if an offset follows. The span is
    cut to the calendar.
    Refuses: bad_instant.
    Source:  Autocast competition of 2022, "How can I demonstrate faithful simulation of forecasting?" (Anywhere on
    Earth).

    >>> from forecast_ledger.ledger.core.values import format_instant
    >>> [format_instant(end) for end in stamp_span("2022-03-22 12:00:00", "published")]
    ['2022-03-21T22:00:00Z', '2022-03-23T00:00:00Z']
    >>> [format_instant(end) for end in stamp_span("2022-03", "trained_until")]
    ['2022-02-28T10:00:00Z', '2022-04-01T11:59:59.999999Z']
    """
    stamp = _STAMP.fullmatch(text) if isinstance(text, str) else None
    try:
        if stamp is None:
            raise ValueError(text)
        return _days(stamp) if stamp["time"] is None else _moment(text, stamp)
    except (ValueError, Refused):
        raise Refused("bad_instant", field, text) from None


def _moment(text: str, stamp: re.Match[str]) -> StampSpan:
    if stamp["offset"] is not None:
        exact = read_instant(text)
        return StampSpan(exact, exact)
    local = read_instant(text + "Z")
    return _on_calendar(local - _EASTERNMOST, local - _WESTERNMOST)


def _days(stamp: re.Match[str]) -> StampSpan:
    year, month = int(stamp["year"]), int(stamp["month"] or 1)
    first = date(year, month, int(stamp["day"] or 1))
    last = first
    if stamp["day"] is None:
        month = int(stamp["month"] or 12)
        last = date(year, month, monthrange(year, month)[1])
    east, west = _offsets(stamp["offset"])
    begin, end = (first.toordinal() - _EPOCH) * DAY, (last.toordinal() + 1 - _EPOCH) * DAY - 1
    return _on_calendar(begin - east, end - west)


def _offsets(text: str | None) -> tuple[int, int]:
    """Return the easternmost and the westernmost offset that a stamp can have, µs ahead of UTC."""
    if text is None:
        return _EASTERNMOST, _WESTERNMOST
    if text in {"Z", "z"}:
        return 0, 0
    offset = int(text[1:3]) * _HOUR + int(text[4:6]) * 60 * 10**6
    return (offset, offset) if text[0] == "+" else (-offset, -offset)


def _on_calendar(earliest: int, latest: int) -> StampSpan:
    """Return the span cut to the calendar; no offset is as long as a day, so it is never empty."""
    return StampSpan(max(earliest, FIRST_INSTANT), min(latest, LAST_INSTANT))
