"""Whether a forecast was made without knowing the future: what follows from what was recorded and declared.

Late receipt, possible information leak and restricted source are three facts and stay three. Only the first is the
ledger's own; the others are arithmetic on declarations, which no ledger can prove complete.

Source: Autocast competition of 2022, "What does simulating forecasting faithfully mean?" and "What data sources are
considered to be restricted?".
"""

from collections.abc import Callable
from typing import Literal

from forecast_ledger.ledger.core.values import DAY, FIRST_INSTANT, LAST_INSTANT
from forecast_ledger.ledger.model.publication_stamps import StampSpan

Information = Literal["certain", "undeclared", "possible", "clean"]
Receipt = Literal["in_time", "late"]
Restricted = Literal["restricted", "undeclared", "clean"]

UNDECLARED = StampSpan(FIRST_INSTANT, LAST_INSTANT)  # may be of any instant, and so bounds nothing
_SECOND = 10**6  # µs

# verdict -> whether it applies to what the newest information can be, given 00:00:00Z of the close date; first wins
VERDICTS: dict[Information, Callable[[StampSpan, int], bool]] = {
    "certain": lambda newest, midnight: newest.earliest >= midnight,
    "undeclared": lambda newest, _: newest.latest >= LAST_INSTANT,
    "possible": lambda newest, midnight: newest.latest >= midnight,
    "clean": lambda newest, midnight: newest.latest < midnight,
}


def cutoff(closes_at: int) -> int:
    """The last second of the UTC day before the close date, µs.

    What lies before the next midnight is within it: the whole of that second, though its first instant is what is
    published and margins are counted from. On the calendar's first day it is that day's first instant.
    Source: Autocast competition of 2022, "What does simulating forecasting faithfully mean?".

    >>> from forecast_ledger.ledger.core.values import format_instant, read_instant
    >>> format_instant(cutoff(instant("2022-03-23T10:19:00Z")))
    '2022-03-22T23:59:59Z'
    """
    return max(closes_at // DAY * DAY - _SECOND, FIRST_INSTANT)


def newest(source: StampSpan | None, training_cutoff: StampSpan | None, released: StampSpan | None) -> StampSpan | None:
    """What the newest information of sources and model together can be: the later of both at either end.

    source: the newest one used; None: not declared, so it bounds nothing and no verdict is clean. Data made after the
    cut-off but curated against leakage is no source in this sense.
    The model's information lies in its training cut-off and is no later than its release; a release alone says nothing
    of the earliest, and one before any reading of the training cut-off contradicts it and does not count.
    Neither of both: no model was used; for one without dates, pass UNDECLARED as its training cut-off.
    Returns None if nothing is declared.

    >>> newest(StampSpan(5, 6), training_cutoff=None, released=StampSpan(8, 9))
    Span(earliest=5, latest=9)
    """
    model = _model(training_cutoff, released)
    if source is None and model is None:
        return None
    source = source or UNDECLARED
    model = model or source
    return StampSpan(max(source.earliest, model.earliest), max(source.latest, model.latest))


def information(newest: StampSpan | None, cutoff: int) -> tuple[Information, int | None]:
    """The verdict on what the newest information can be, and by how much its latest reading keeps to the cut-off, µs.

    certain: even the earliest reading is of the close date or later. possible: only the latest is. clean: neither.
    undeclared: nothing bounds the latest reading, which also a stamp that runs to the end of the calendar does not.
    The margin is negative if over, above -1 s if clean, and None where nothing bounds the latest reading.

    >>> midnight = 86_400_000_000
    >>> information(StampSpan(midnight - 2_000_000, midnight + 1), cutoff=midnight - 1_000_000)
    ('possible', -1000001)
    """
    if newest is None:
        return "undeclared", None
    verdict = next(name for name, applies in VERDICTS.items() if applies(newest, cutoff + _SECOND))
    return verdict, None if newest.latest >= LAST_INSTANT else cutoff - newest.latest


def receipt(recorded_at: int, cutoff: int) -> tuple[Receipt, int]:
    """Whether the ledger recorded a forecast within the cut-off, and by how much, µs; negative if after it.

    recorded_at: by the ledger's own clock, never the instant that the command claims.

    >>> receipt(86_400_000_000, cutoff=86_399_000_000)
    ('late', -1000000)
    """
    return "late" if recorded_at >= cutoff + _SECOND else "in_time", cutoff - recorded_at


def restricted(declared: bool | None, list_version: str) -> Restricted:
    """What the participant says of restricted sources: forecasting sites, forecasters, insiders.

    declared: whether one was used; None: nothing said. "None was used" counts only against a named version of the list.

    >>> restricted(False, "2022-09"), restricted(False, "")
    ('clean', 'undeclared')
    """
    if declared:
        return "restricted"
    return "clean" if declared is False and list_version else "undeclared"


def empty_window(opens_at: int, cutoff: int) -> bool:
    """Whether the question opens, or was published, after its cut-off, which leaves no time to forecast it.

    >>> empty_window(86_400_000_000, cutoff=86_399_000_000)
    True
    """
    return opens_at >= cutoff + _SECOND


def _model(training_cutoff: StampSpan | None, released: StampSpan | None) -> StampSpan | None:
    if training_cutoff is None and released is None:
        return None
    trained, released = training_cutoff or UNDECLARED, released or UNDECLARED
    if released.latest < trained.earliest:
        return trained
    return StampSpan(trained.earliest, min(trained.latest, released.latest))
