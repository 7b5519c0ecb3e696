"""Instants in cells: RFC 3339, dates, offsets as databases write them, Unix time, or a format of strptime."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import UTC_INSTANT, read_instant

_OFFSET = re.compile(r"Z|[+-][0-2][0-9]:[0-5][0-9]")
_ENDING = re.compile(r"(?P<clock>:[0-9]{2}(?:\.[0-9]+)?)\s?(?P<zone>Z|z|UTC|[+-][0-2][0-9](?::?[0-5][0-9])?)\Z")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANTS = re.compile(f"(?:{UTC_INSTANT},)*", re.ASCII)
_UNIX = {"unix": 10**6, "unix ms": 10**3}  # format -> how many microseconds a unit of it has
_EPOCH, _COUNT = datetime(1970, 1, 1, tzinfo=UTC), re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,30})?", re.ASCII)
_remembered = lru_cache(maxsize=4_096)  # many rows of a table have the same day
_HOURS = re.compile(r"%-?[HIcXsT]")  # directives of strptime that give a time of day


class InstantFormat(NamedTuple):
    """How a file writes instants.

    form: of strptime; `unix` for seconds since 1970, `unix ms` for milliseconds. offset: of instants without one; or
    zone: the time zone of their clock, by its IANA name. end_of_day: of dates.
    """

    form: str
    offset: str
    zone: str = ""
    end_of_day: bool = False


def instant_reader(written: InstantFormat, field: str) -> Callable[[str], str]:
    """Return the function that rewrites an instant as RFC 3339; one without an offset is refused later.

    A date is the beginning of its day or, with `end_of_day`, the beginning of the next. Refuses: bad_map.

    >>> instant_reader(InstantFormat("", "+01:00", end_of_day=True), "closes_at")("2026-02-28")
    '2026-03-01T00:00:00+01:00'
    """
    form, offset, zone, end_of_day = written
    placed = _placing(offset, zone, field)
    if not form:
        return _remembered(lambda text: _rewritten(text, field, placed, end_of_day))
    if end_of_day and (form in _UNIX or _HOURS.search(form)):
        raise Refused("bad_map", field, form, "end_of_day is of dates; this format has a time of day")
    if form in _UNIX:
        return lambda text: _since_epoch(text, field, form)
    _check_format(form, field)
    return _remembered(lambda text: _parsed(text, field, form, placed, end_of_day))


def are_rfc_3339(texts: Sequence[str], form: str) -> bool:
    """Return whether instants in this form, of several cells, are all RFC 3339 in UTC, and so need no rewriting.

    >>> are_rfc_3339(["2026-02-28T00:00:00Z"], ""), are_rfc_3339(["2026-02-28T00:00:00Z", "2026-02-28"], "")
    (True, False)
    """
    joined = ",".join([*texts, ""])
    return not form and joined.count(",") == len(texts) and _INSTANTS.fullmatch(joined) is not None


def _placing(offset: str, zone: str, field: str) -> Callable[[str], str]:
    """Return the function that makes an instant of a local time. Refuses: bad_map."""
    if offset and zone:
        raise Refused("bad_map", f"{field}.zone".lstrip("."), zone, "give offset or zone, not both")
    if offset and not _OFFSET.fullmatch(offset):
        raise Refused("bad_map", f"{field}.offset".lstrip("."), offset, "write an offset as Z, +01:00 or -05:30")
    if not zone:
        return lambda text: text + offset
    try:
        clock = ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        detail = "the database of time zones on this machine has no zone of this name"
        remedy = "write a name such as Europe/Berlin; if there is no database, run pip install tzdata"
        raise Refused("bad_map", f"{field}.zone".lstrip("."), zone, detail, remedy=remedy) from None
    return lambda text: _by_clock(text, field, clock)


def _by_clock(text: str, field: str, clock: ZoneInfo) -> str:
    """Return the instant, in UTC, at which the clocks of a zone show a time.

    Refuses: bad_instant (not a time; they show it twice, or never, because they are set back or forward).
    """
    local = _EPOCH + timedelta(microseconds=read_instant(f"{text}Z", field))
    try:
        first, second = (local.replace(tzinfo=clock, fold=fold).astimezone(UTC) for fold in (0, 1))
    except OverflowError:
        raise Refused("bad_instant", field, text) from None
    if first != second:
        detail = f"clocks in {clock.key} show this time {'twice' if first < second else 'never'}, as they change"
        remedy = "write the offset behind the time, such as +01:00; a format of strptime reads it by %z"
        raise Refused("bad_instant", field, text, detail, remedy=remedy)
    return first.isoformat().replace("+00:00", "Z")


def _since_epoch(text: str, field: str, form: str) -> str:
    """Return a count of seconds or milliseconds since 1970 as RFC 3339, rounded half-even to a microsecond."""
    try:
        if not _COUNT.fullmatch(text):
            raise ValueError
        micros = int((Decimal(text) * _UNIX[form]).to_integral_value())
        return (_EPOCH + timedelta(microseconds=micros)).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
        raise _not_written(text, field, form) from None


def _not_written(text: str, field: str, form: str) -> Refused:
    remedy = "correct the cell, or `instant` in the map"
    return Refused("bad_instant", field, text, f"not in the format {form}", remedy=remedy)


def _check_format(form: str, field: str) -> None:
    """Refuses: bad_map (strptime knows no such directive, or takes it only once)."""
    try:
        datetime.strptime("", form)
    except (re.error, ValueError) as error:
        if not str(error).startswith("time data"):  # which says that the empty text is not in the format
            detail = f"not a format of strptime: {error}"
            raise Refused(
                "bad_map",
                f"{field}.instant".lstrip("."),
                form,
                detail,
                remedy="write each directive once, as in %d/%m/%Y",
            ) from None


def _rewritten(text: str, field: str, placed: Callable[[str], str], end_of_day: bool) -> str:
    if _DATE.fullmatch(text):
        return placed(_day(text, field, end_of_day))
    ending = _ENDING.search(text)
    if ending is None:
        return placed(text)
    zone = ending["zone"].upper()
    return text[: ending.end("clock")] + ("Z" if zone in {"Z", "UTC"} else f"{zone[:3]}:{zone[3:].lstrip(':') or '00'}")


def _day(text: str, field: str, end_of_day: bool) -> str:
    """Return the beginning of a day or of the next, without an offset."""
    try:
        return f"{date.fromisoformat(text) + timedelta(days=end_of_day)}T00:00:00"
    except (ValueError, OverflowError):
        raise Refused("bad_instant", field, text, "there is no such day") from None


def _parsed(text: str, field: str, form: str, placed: Callable[[str], str], end_of_day: bool) -> str:
    try:
        parsed = datetime.strptime(text, form) + timedelta(days=end_of_day)
    except (ValueError, OverflowError):
        raise _not_written(text, field, form) from None
    return parsed.isoformat() if parsed.tzinfo else placed(parsed.isoformat())
