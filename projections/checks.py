"""What a log must satisfy beyond its digests before anything is computed from it: nothing read is trusted.

A log that this project wrote always passes; one whose digests are right may still have been written by anything.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from ledger import events, spans
from ledger.errors import Corrupt, Refused
from ledger.rules import inconsistency, unscorable
from ledger.trading import sunday
from ledger.values import (
    FIRST_INSTANT,
    LARGEST_MEASURE,
    LARGEST_POOL,
    LARGEST_WEIGHT,
    LAST_INSTANT,
    LONGEST_PERIOD,
    MOST_BINS,
    MOST_DECIMALS,
    PLACES,
    PROBABILITY,
    WEIGHT,
)
from projections.columns import Facts, Forecasts
from projections.limbs import BoolArray, Int64Array, column

_PLAIN = re.compile(rf"-?[0-9]{{1,31}}(\.[0-9]{{1,{PLACES}}})?", re.ASCII)


def check(found: Facts, position: int, event: Any) -> None:
    """Raise Corrupt unless an event, not of a forecast, fits what came before it. KeyError: it names what never was."""
    for name, wrong in (("boards", _board), ("contents", _content), ("rules", _ruled)):
        if what := wrong(found, event):
            raise Corrupt(position, f"{events.TAGS[type(event)]}: {what}", name)


def check_attestation(position: int, attestation: events.Attestation) -> None:
    """Raise Corrupt unless every stamp says when."""
    for name in ("newest_source", "model_released", "training_cutoff"):
        if (text := getattr(attestation, name)) is not None:
            try:
                spans.span(text, name)
            except Refused as refused:
                raise Corrupt(position, f"an attestation's {refused.field} is no stamp") from None


def check_forecasts(forecasts: Forecasts, lengths: Int64Array, widths: Int64Array, greatest: Int64Array) -> None:
    """Raise Corrupt at a forecast that is no distribution over its question's outcomes, or outside the calendar.

    forecasts: in log order. lengths, widths: how many numbers each row has and should have. greatest: PROBABILITY for
    named outcomes, CUMULATIVE for a cdf, LARGEST_MEASURE for quantiles. Shape (n,).
    """
    position, at, chances = forecasts.position, forecasts.at, forecasts.chances
    refute(position, (at < FIRST_INSTANT) | (at > LAST_INSTANT), "an instant outside the calendar")
    refute(position, lengths != widths, "not as many numbers as the question has outcomes or edges")
    some = lengths > 0
    position, starts, greatest = position[some], forecasts.start[some], greatest[some]
    if not len(starts):
        return
    lowest, highest = np.minimum.reduceat(chances, starts), np.maximum.reduceat(chances, starts)
    least = np.where(greatest == LARGEST_MEASURE, -greatest, 0)
    refute(position, (lowest < least) | (highest > greatest), "a probability beyond 0 or 1, or a quantile too large")
    named = greatest == PROBABILITY
    refute(position, named & (np.add.reduceat(chances, starts) != PROBABILITY), "probabilities that miss one")
    steps = np.diff(chances, prepend=0)
    steps[starts] = 0
    refute(position, ~named & (np.minimum.reduceat(steps, starts) < 0), "a cdf, or quantiles, that decrease")


def check_open(found: Facts, forecasts: Forecasts) -> None:
    """Raise Corrupt where a forecast or withdrawal comes to a question that is settled by then, or closed at its at."""
    if not len(forecasts.position):
        return
    ends = [(question, 0, each.closes_at) for question, each in enumerate(found.questions)]
    ends += [(question, position, at) for position, question, at in found.closings]
    closed_at = _latest(ends, forecasts)
    refute(forecasts.position, forecasts.at >= closed_at, "a forecast or withdrawal after the close")
    settled = [(question, 0, 0) for question in range(len(found.questions))]
    settled += [(each.question, each.position, int(each.settles)) for each in found.settlements]
    is_settled = _latest(settled, forecasts) > 0
    refute(forecasts.position, is_settled, "a forecast or withdrawal on a question that is resolved or annulled")


def _latest(said: list[tuple[int, int, int]], forecasts: Forecasts) -> Int64Array:
    """Of (question code, log position, number), each forecast's question's last number before it; each has one at 0."""
    question, position, number = (column(list(values)) for values in zip(*sorted(said), strict=True))
    wide = max(int(forecasts.position.max(initial=0)), int(position.max(initial=0))) + 1
    place = np.searchsorted(question * wide + position, forecasts.question * wide + forecasts.position, "right") - 1
    before: Int64Array = number[place]
    return before


def check_order(position: Int64Array, same: BoolArray, at: Int64Array, made: BoolArray) -> None:
    """Raise Corrupt where a participant's forecast or withdrawal is earlier than the one before on that question, or
    where there is nothing to withdraw.

    made: whether each row is a forecast; shape (n,). same: whether each but the first has question and participant of
    the row before; shape (n - 1,).
    """
    refute(position[1:], same & (at[1:] < at[:-1]), "earlier than the participant's last one on the question")
    stood = np.append(False, same & made[:-1])[: len(made)]
    refute(position, ~made & ~stood, "a withdrawal where none of the participant's forecasts stands")


def refute(position: Int64Array, wrong: BoolArray, what: str) -> None:
    """Raise Corrupt at the first position where something is wrong."""
    if wrong.any():
        raise Corrupt(int(position[wrong].min()), what)


def _board(found: Facts, event: Any) -> str:
    """What is wrong about the time in its contest's life at which an event comes."""
    contest = found.contests.get(getattr(event, "contest", ""))
    if contest is None or type(event) is events.ContestOpened:
        return ""
    if type(event) is events.PrizePaid:
        return "the contest is not finalized" * (contest.sealed is None)
    if contest.sealed is not None:
        return "the contest is finalized"
    if contest.opened.rules.trading is None:
        return ""
    complete = found.books.progress(event.contest).complete()
    if type(event) is events.ContestFinalized:
        return "the contest is not complete" * (not complete)
    return "the contest is complete" * (complete and type(event) is events.ParticipantEnrolled)


def _content(found: Facts, event: Any) -> str:
    """What does not fit what came before."""
    if not FIRST_INSTANT <= event.at <= LAST_INSTANT:
        return "an instant outside the calendar"
    return _WRONG[type(event)](found, event) if type(event) in _WRONG else ""


def _ruled(found: Facts, event: Any) -> str:
    """What a contest's rule set does not allow."""
    return _RULED[type(event)](found, event) if type(event) in _RULED else ""


def _rules(found: Facts, event: events.ContestOpened) -> str:
    """A rule set that fits together, and a start that fits it."""
    trading, starts_at = event.rules.trading, event.starts_at
    if inconsistency(event.rules):
        return "rules that contradict one another"
    if trading is None or starts_at is None:
        apart = (trading is None) != (starts_at is None) or (trading is None and event.series)
        return "a start or a series without trading, or trading without a start" * bool(apart)
    if not FIRST_INSTANT <= starts_at <= LAST_INSTANT:
        return "a start outside the calendar"
    if trading.cohorts == "none":
        return ""
    if starts_at != sunday(starts_at):
        return "a weekly cohort that does not start as a Sunday does"
    starts = found.books.cohorts.get(event.series, [])
    return "a second cohort of its week" * (bisect_left(starts, starts_at) < bisect_right(starts, starts_at))


def _scorable(found: Facts, event: events.QuestionAdded) -> str:
    question = found.questions[found.question_codes.codes[event.question]]
    wrong = unscorable(question.range, found.contests[event.contest].opened.rules)
    return "a question that its rules cannot score" * bool(wrong)


def _deciding(found: Facts, event: events.DecisionRecorded | events.DecisionMalformed) -> str:
    trading, opened = found.trading(event.contest), found.contests[event.contest].opened
    if not trading.deciding_cohorts or trading.cohorts == "none":
        return ""
    starts = found.books.cohorts.get(opened.series, [])
    newer = len(starts) - bisect_right(starts, opened.starts_at or 0)
    return "newer cohorts of the series decide instead" * (newer >= trading.deciding_cohorts)


def _question(found: Facts, event: events.QuestionOpened) -> str:
    span = event.range
    reveals_at = event.closes_at if event.reveals_at is None else event.reveals_at
    wrong = {
        "the question is there already": event.question in found.question_codes.codes,
        "outcomes or a range that do not belong to its kind": (event.kind == "numeric") != (event.range is not None)
        or (event.range is None) != bool(event.outcomes),
        "an outcome twice, or alone": len(set(event.outcomes)) != len(event.outcomes) or len(event.outcomes) == 1,
        "too few or too many bins, or levels out of order": span is not None and not _asked(span),
        "a period outside the calendar": not FIRST_INSTANT <= event.opens_at <= event.closes_at <= LAST_INSTANT,
        "no period, or one of more than a century": not 0 < event.closes_at - event.opens_at <= LONGEST_PERIOD,
        "a hidden period outside the period": not event.opens_at < reveals_at <= event.closes_at,
    }
    return next((what for what, is_wrong in wrong.items() if is_wrong), "")


def _asked(span: events.NumericRange) -> bool:
    """Whether a range asks for a cdf or for quantiles, and its bounds are numbers in order."""
    lower, upper = _exact(span.lower), _exact(span.upper)
    if lower is None or upper is None or not lower < upper:
        return False
    zero = lower - 1 if span.zero_point is None else _exact(span.zero_point)
    if zero is None or lower <= zero <= upper:
        return False
    if not span.levels:
        return 1 <= span.bins <= MOST_BINS and span.decimals == 0
    counted = max(-lower, upper) * 10 ** min(max(span.decimals, 0), MOST_DECIMALS) <= LARGEST_MEASURE
    rising = all(before < after for before, after in pairwise((0, *span.levels, PROBABILITY)))
    return counted and rising and span.bins == 0 and 0 <= span.decimals <= MOST_DECIMALS


def _resolution(found: Facts, event: events.QuestionResolved) -> str:
    code = found.question_codes.codes[event.question]
    question = found.questions[code]
    if code in found.settled:
        return "the question is resolved or annulled already"
    span = question.range
    outcomes = len(question.outcomes) if span is None else max(span.bins, 1) + 2
    if not 0 <= event.outcome < outcomes and not event.payouts:
        return "no such outcome"
    if span is not None and not _countable(event.value, span):
        return "an answer that is no number, or too large"
    if not question.opens_at <= event.known_at <= LAST_INSTANT:
        return "an answer known before the opening"
    return "an answer that was known only after it was given" * (event.known_at > event.at)


def _countable(value: str, span: events.NumericRange) -> bool:
    """Whether an answer can be counted in the unit of its question."""
    exact = _exact(value)
    return exact is not None and (not span.levels or abs(exact) * 10**span.decimals <= LARGEST_MEASURE)


def _exact(text: str) -> Fraction | None:
    """The number that plain decimal text stands for, as the decider writes it: no exponent, within 1e30."""
    return Fraction(text) if _PLAIN.fullmatch(text) else None


def _annulment(found: Facts, event: events.QuestionAnnulled) -> str:
    settled = found.settled.get(found.question_codes.codes[event.question])
    return "the question is annulled already" * (settled is events.QuestionAnnulled)


def _revocation(found: Facts, event: events.ResolutionRevoked) -> str:
    return "nothing to revoke" * (found.question_codes.codes[event.question] not in found.settled)


def _closing(found: Facts, event: events.QuestionClosed) -> str:
    code = found.question_codes.codes[event.question]
    question = found.questions[code]
    if code in found.settled:
        return "the question is resolved or annulled"
    closes_at = found.books.closed.get(code, question.closes_at)
    return "" if question.opens_at < event.at < closes_at else "an early close outside the period"


def _payment(found: Facts, event: events.PrizePaid) -> str:
    contest = found.contests[event.contest]
    if event.participant in contest.paid:
        return "the prize is paid already"
    payable = event.amount > 0 and event.amount % contest.opened.payable_unit == 0
    within = contest.paid_in_all + event.amount <= contest.opened.pool
    return "" if payable and within else "a prize that the pool cannot pay"


def _contest(found: Facts, event: events.ContestOpened) -> str:
    if event.contest in found.contests:
        return "the contest is there already"
    payable = event.payable_unit > 0 and 0 <= event.pool <= LARGEST_POOL and event.pool % event.payable_unit == 0
    return "" if payable else "a pool that cannot be paid"


def _entry(found: Facts, event: events.QuestionAdded) -> str:
    code = found.question_codes.codes[event.question]
    question, contest = found.questions[code], found.contests[event.contest]
    spot_at, hidden, reveals_at = event.spot_at, event.hidden_coverage_weight, question.reveals_at
    if code in contest.entries:
        return "the question is in the contest already"
    if not 0 < event.weight <= LARGEST_WEIGHT:
        return "a weight out of range"
    if spot_at is not None and not question.opens_at <= spot_at <= question.closes_at:
        return "a spot outside the period"
    least = WEIGHT if reveals_at == question.closes_at else 0
    fits = hidden is None or (reveals_at is not None and least <= hidden <= WEIGHT)
    return "" if fits else "a hidden coverage weight out of range, or without a hidden period"


_WRONG: dict[type, Callable[[Facts, Any], str]] = {
    events.QuestionOpened: _question,
    events.QuestionResolved: _resolution,
    events.QuestionAnnulled: _annulment,
    events.ResolutionRevoked: _revocation,
    events.QuestionClosed: _closing,
    events.ContestOpened: _contest,
    events.PrizePaid: _payment,
    events.QuestionAdded: _entry,
}
_RULED: dict[type, Callable[[Facts, Any], str]] = {
    events.ContestOpened: _rules,
    events.QuestionAdded: _scorable,
    events.DecisionRecorded: _deciding,
    events.DecisionMalformed: _deciding,
}
