"""Imported times of receipt: which of them a log takes."""

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import FIRST_INSTANT, format_instant, is_micros

_REMEDY = 'sort the input by this time; a map for CSV does so with sort = "recorded_at"'


def fault_of(time: int | None, newest: int, now: int, *, in_use: bool) -> Refused | None:
    """Return the refusal of a time of receipt, or None. newest: the time of the newest row; now: by the clock; all µs.

    It is malformed if it is no integer (a float, a Decimal and a bool are none); ledger_in_use if the ledger's own
    clock has stamped a row; else out_of_range if the time is of the future or before the year 1; else out_of_order if
    it is before the newest row.

    >>> fault_of(60_000_000, 120_000_000, 180_000_000, in_use=False).code
    'out_of_order'
    """
    if type(time) is not int:
        detail = f"a {type(time).__name__} is no count of µs since 1970"
        return Refused("malformed", "recorded_at", repr(time), detail, remedy="give an int for each command")
    if in_use:
        return Refused("ledger_in_use", "recorded_at")
    if not FIRST_INSTANT <= time <= now:
        detail = f"nothing is received before the year 1, or later than now, {format_instant(now)}"
        shown = format_instant(time) if is_micros(time) else time
        return Refused("out_of_range", "recorded_at", shown, detail)
    if time < newest:
        detail = f"the newest row was recorded at {format_instant(newest)}, which is later"
        return Refused("out_of_order", "recorded_at", format_instant(time), detail, remedy=_REMEDY)
    return None
