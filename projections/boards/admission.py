"""Admission: checks that a forecast was made without information from the future.

There are three separate verdicts: on late receipt, on possible information leaks and on restricted sources. The first
depends only on what the ledger recorded. The other two depend on what participants declared, and a ledger cannot prove
that declarations are complete.

Source: Autocast competition of 2022, "What does simulating forecasting faithfully mean?" and "What data sources are
considered to be restricted?".
"""

from collections.abc import Callable
from typing import Literal

from forecast_ledger.ledger.core.values import DAY, FIRST_INSTANT, LAST_INSTANT
from forecast_ledger.ledger.model.publication_stamps import StampSpan

InformationVerdict = Literal["certain", "undeclared", "possible", "clean"]
ReceiptVerdict = Literal["in_time", "late"]
SourceVerdict = Literal["restricted", "undeclared", "clean"]

UNDECLARED = StampSpan(FIRST_INSTANT, LAST_INSTANT)  # may be any instant, so it bounds nothing
_SECOND = 10**6  # µs

# verdict -> whether it applies to the span of the newest information and 00:00:00Z of the close date; the first wins
VERDICTS: dict[InformationVerdict, Callable[[StampSpan, int], bool]] = {
    "certain": lambda newest, midnight: newest.earliest >= midnight,
    "undeclared": lambda newest, _: newest.latest >= LAST_INSTANT,
    "possible": lambda newest, midnight: newest.latest >= midnight,
    "clean": lambda newest, midnight: newest.latest < midnight,
}


def cutoff(closes_at: int) -> int:
    """Return the last second of the UTC day before the close date, µs.

    The first instant of that second is published, and margins are counted from it, but the whole second up to midnight
    is in time. On the first day of the calendar the cut-off is the first instant of that day.
    Source: Autocast competition of 2022, "What does simulating forecasting faithfully mean?".

    >>> from forecast_ledger.ledger.core.values import format_instant, read_instant
    >>> format_instant(cutoff(read_instant("2022-03-23T10:19:00Z")))
    '2022-03-22T23:59:59Z'
    """
    return max(closes_at // DAY * DAY - _SECOND, FIRST_INSTANT)


def newest_information(
    source: StampSpan | None, training_cutoff: StampSpan | None, released: StampSpan | None
) -> StampSpan | None:
    """Return the span of the newest information of sources and model together: at either end, the later of the two.

    source: publication span of the newest source used; None if it is not declared: then it bounds nothing and no
    verdict is clean. Data that was made after the cut-off but curated against leakage does not count as a source.
    training_cutoff, released: of the model; both None if no model was used. For a model without dates, pass UNDECLARED
    as its training cut-off. The newest information of a model is as old as its training cut-off and not newer than its
    release. A release alone does not bound the earliest instant. A release before every reading of the training
    cut-off contradicts it and is ignored.
    Returns None if nothing is declared.

    >>> newest_information(StampSpan(5, 6), training_cutoff=None, released=StampSpan(8, 9))
    StampSpan(earliest=5, latest=9)
    """
    model = _model(training_cutoff, released)
    if source is None and model is None:
        return None
    source = source or UNDECLARED
    model = model or source
    return StampSpan(max(source.earliest, model.earliest), max(source.latest, model.latest))


def information_verdict(newest: StampSpan | None, cutoff: int) -> tuple[InformationVerdict, int | None]:
    """Return the verdict on a possible information leak, and the margin, µs: the cut-off minus the latest reading.

    certain: even the earliest reading is on the close date or later. possible: only the latest reading is. clean:
    neither is. undeclared: nothing bounds the latest reading; this includes stamps that run to the end of the calendar.
    The margin is greater than -1 s if the verdict is clean, and None if nothing bounds the latest reading.

    >>> midnight = 86_400_000_000
    >>> information_verdict(StampSpan(midnight - 2_000_000, midnight + 1), cutoff=midnight - 1_000_000)
    ('possible', -1000001)
    """
    if newest is None:
        return "undeclared", None
    verdict = next(name for name, applies in VERDICTS.items() if applies(newest, cutoff + _SECOND))
    return verdict, None if newest.latest >= LAST_INSTANT else cutoff - newest.latest


def receipt_verdict(recorded_at: int, cutoff: int) -> tuple[ReceiptVerdict, int]:
    """Return whether the ledger recorded a forecast by the cut-off, and the margin, µs; negative if it is later.

    recorded_at: by the ledger's own clock, never the instant that the command claims.

    >>> receipt_verdict(86_400_000_000, cutoff=86_399_000_000)
    ('late', -1000000)
    """
    return "late" if recorded_at >= cutoff + _SECOND else "in_time", cutoff - recorded_at


def source_verdict(declared: bool | None, list_version: str) -> SourceVerdict:
    """Return the verdict on restricted sources: forecasting sites, forecasters, insiders.

    declared: whether the participant declared that one was used; None if not declared. A declaration that none was used
    counts only if it names a version of the list.

    >>> source_verdict(False, "2022-09"), source_verdict(False, "")
    ('clean', 'undeclared')
    """
    if declared:
        return "restricted"
    return "clean" if declared is False and list_version else "undeclared"


def empty_window(opens_at: int, cutoff: int) -> bool:
    """Return whether the question opens, or was published, after its cut-off, so that nobody can forecast in time.

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
