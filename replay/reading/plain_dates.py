"""Plain dates where instants are asked for: a day in UTC, of which the beginning or the end is meant."""

from contextlib import suppress
from datetime import date

from forecast_ledger.ledger.core import values

_DATE_LENGTH, _START_OF_DAY, _END_OF_DAY = len("2026-03-01"), "T00:00:00Z", "T23:59:59.999999Z"


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
