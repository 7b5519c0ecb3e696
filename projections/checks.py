"""What a log must satisfy beyond its digests before anything is computed from it: nothing read is trusted.

A log that this project wrote always passes; one whose digests are right may still have been written by anything.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ledger import events
from ledger.errors import Corrupt
from ledger.values import CUMULATIVE, FIRST_INSTANT, LAST_INSTANT, LONGEST_PERIOD, MONEY, MOST_BINS, PROBABILITY, WEIGHT
from projections.columns import Facts, Forecasts
from projections.limbs import BoolArray, Int64Array

_LARGEST = 10**12  # of a pool in its currency, or of a weight


def check(found: Facts, position: int, event: Any) -> None:
    """Raise Corrupt unless an event, not of a forecast, fits what came before it. KeyError: it names what never was."""
    wrong = _WRONG[type(event)](found, event) if type(event) in _WRONG else ""
    if not FIRST_INSTANT <= event.at <= LAST_INSTANT:
        wrong = "an instant outside the calendar"
    if wrong:
        raise Corrupt(position, f"{events.TAGS[type(event)]}: {wrong}")


def check_forecasts(forecasts: Forecasts, lengths: Int64Array, widths: Int64Array, numeric: BoolArray) -> None:
    """Raise Corrupt at a forecast that is no distribution over its question's outcomes, or outside the calendar.

    forecasts: in log order. lengths, widths: how many numbers each row has and should have. numeric: whether they are
    cumulative. Shape (n,).
    """
    position, at, chances = forecasts.position, forecasts.at, forecasts.chances
    refute(position, (at < FIRST_INSTANT) | (at > LAST_INSTANT), "an instant outside the calendar")
    refute(position, lengths != widths, "not as many numbers as the question has outcomes or edges")
    some = lengths > 0
    position, starts, numeric = position[some], forecasts.start[some], numeric[some]
    if not len(starts):
        return
    lowest, highest = np.minimum.reduceat(chances, starts), np.maximum.reduceat(chances, starts)
    refute(
        position, (lowest < 0) | (highest > np.where(numeric, CUMULATIVE, PROBABILITY)), "a probability beyond 0 or 1"
    )
    refute(position, ~numeric & (np.add.reduceat(chances, starts) != PROBABILITY), "probabilities that miss one")
    steps = np.diff(chances, prepend=0)
    steps[starts] = 0
    refute(position, numeric & (np.minimum.reduceat(steps, starts) < 0), "a cdf that decreases")


def check_order(position: Int64Array, same: BoolArray, at: Int64Array) -> None:
    """Raise Corrupt where a participant's forecast or withdrawal is earlier than the one before on that question.

    same: whether each row but the first has question and participant of the row before; shape (n - 1,).
    """
    refute(position[1:], same & (at[1:] < at[:-1]), "earlier than the participant's last one on the question")


def refute(position: Int64Array, wrong: BoolArray, what: str) -> None:
    """Raise Corrupt at the first position where something is wrong."""
    if wrong.any():
        raise Corrupt(int(position[wrong].min()), what)


def _question(found: Facts, event: events.QuestionOpened) -> str:
    bins = 1 if event.range is None else event.range.bins
    reveals_at = event.closes_at if event.reveals_at is None else event.reveals_at
    wrong = {
        "the question is there already": event.question in found.question_codes.codes,
        "outcomes or a range that do not belong to its kind": (event.kind == "numeric") != (event.range is not None)
        or (event.range is None) != bool(event.outcomes),
        "an outcome twice, or alone": len(set(event.outcomes)) != len(event.outcomes) or len(event.outcomes) == 1,
        "too few or too many bins": not 1 <= bins <= MOST_BINS,
        "a period outside the calendar": not FIRST_INSTANT <= event.opens_at <= event.closes_at <= LAST_INSTANT,
        "no period, or one of more than a century": not 0 < event.closes_at - event.opens_at <= LONGEST_PERIOD,
        "a hidden period outside the period": not event.opens_at < reveals_at <= event.closes_at,
    }
    return next((what for what, is_wrong in wrong.items() if is_wrong), "")


def _resolution(found: Facts, event: events.QuestionResolved) -> str:
    code = found.question_codes.codes[event.question]
    question = found.questions[code]
    if code in found.settled:
        return "the question is resolved or annulled already"
    outcomes = len(question.outcomes) if question.range is None else question.range.bins + 2
    if not 0 <= event.outcome < outcomes:
        return "no such outcome"
    return "" if question.opens_at <= event.known_at <= LAST_INSTANT else "an answer known before the opening"


def _annulment(found: Facts, event: events.QuestionAnnulled) -> str:
    settled = found.settled.get(found.question_codes.codes[event.question])
    return "the question is annulled already" * (settled is events.QuestionAnnulled)


def _revocation(found: Facts, event: events.ResolutionRevoked) -> str:
    return "nothing to revoke" * (found.question_codes.codes[event.question] not in found.settled)


def _closing(found: Facts, event: events.QuestionClosed) -> str:
    question = found.questions[found.question_codes.codes[event.question]]
    return "" if question.opens_at < event.at < question.closes_at else "an early close outside the period"


def _unfrozen(found: Facts, event: events.ParticipantExcluded | events.ContestFinalized) -> str:
    return "" if found.contests[event.contest].finalized is None else "the contest is finalized"


def _contest(found: Facts, event: events.ContestOpened) -> str:
    if event.contest in found.contests:
        return "the contest is there already"
    payable = event.payable_unit > 0 and 0 <= event.pool <= _LARGEST * MONEY and event.pool % event.payable_unit == 0
    return "" if payable else "a pool that cannot be paid"


def _entry(found: Facts, event: events.QuestionAdded) -> str:
    code = found.question_codes.codes[event.question]
    hidden, reveals_at = event.hidden_coverage_weight, found.questions[code].reveals_at
    if found.contests[event.contest].finalized is not None:
        return "the contest is finalized"
    if code in found.contests[event.contest].entries:
        return "the question is in the contest already"
    if not 0 < event.weight <= _LARGEST * WEIGHT:
        return "a weight out of range"
    fits = hidden is None or (reveals_at is not None and 0 <= hidden <= WEIGHT)
    return "" if fits else "a hidden coverage weight out of range, or without a hidden period"


_WRONG: dict[type, Callable[[Facts, Any], str]] = {
    events.QuestionOpened: _question,
    events.QuestionResolved: _resolution,
    events.QuestionAnnulled: _annulment,
    events.ResolutionRevoked: _revocation,
    events.QuestionClosed: _closing,
    events.ContestOpened: _contest,
    events.ParticipantExcluded: _unfrozen,
    events.ContestFinalized: _unfrozen,
    events.QuestionAdded: _entry,
}
