"""Imported times of receipt: which of them a log takes."""

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import FIRST_INSTANT, format_instant

_REMEDY = 'sort the input by this time; a map for CSV does so with sort = "recorded_at"'


def fault_of(time: int, newest: int, now: int, *, in_use: bool) -> Refused | None:
    """Return the refusal of a time of receipt, or None. newest: the time of the newest row; now: by the clock; all µs.

    It is ledger_in_use if the ledger's own clock has stamped a row; else out_of_range if the time is of the future or
    before the year 1; else out_of_order if it is before the newest row.

    >>> fault_of(60_000_000, 120_000_000, 180_000_000, in_use=False).code
    'out_of_order'
    """
    if in_use:
        return Refused("ledger_in_use", "recorded_at")
    if not FIRST_INSTANT <= time <= now:
        detail = f"nothing is received before the year 1, or later than now, {format_instant(now)}"
        return Refused("out_of_range", "recorded_at", time if time < FIRST_INSTANT else _shown(time), detail)
    if time < newest:
        detail = f"the newest row was recorded at {format_instant(newest)}, which is later"
        return Refused("out_of_order", "recorded_at", format_instant(time), detail, remedy=_REMEDY)
    return None


def _shown(time: int) -> str | int:
    try:
        return format_instant(time)
    except (ValueError, OverflowError):  # beyond the year 9999
        return time
