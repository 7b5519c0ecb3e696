"""What a log must satisfy beyond its digests before anything is computed from it: nothing read is trusted.

A log that this project wrote always passes; one whose digests are right may still have been written by anything.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

from ledger import events
from ledger.errors import Corrupt
from ledger.findings import chance, fixed, instant, money, named, several, unlike
from ledger.rules import RuleSet, inconsistency, unscorable
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
from projections.columns import Facts

_PLAIN = re.compile(rf"-?[0-9]{{1,31}}(\.[0-9]{{1,{PLACES}}})?", re.ASCII)
CALENDAR = "an instant of the years 1 to 9999"
_COMPLETING = (events.ContestFinalized, events.ParticipantEnrolled)


def check(found: Facts, position: int, event: Any) -> None:
    """Raise Corrupt unless an event, not of a forecast, fits what came before it. KeyError: it names what never was."""
    for name, wrong in (("boards", _board), ("contents", _content), ("rules", _ruled)):
        for what in wrong(found, event):
            raise Corrupt(position, f"{events.TAGS[type(event)]}: {what}", name)


def unanswered(found: Facts, question: int, before: int | None = None) -> str:
    """What is wrong where a question, by code, is settled; before: of a log position."""
    last = max(
        each.position
        for each in found.settlements
        if each.question == question and (before is None or each.position < before)
    )
    what = f"question {named(found.questions[question].question)} to be neither resolved nor annulled"
    return unlike(what, f"that it has been since log position {last}")


def _board(found: Facts, event: Any) -> Iterator[str]:
    """What is wrong about the time in its contest's life at which an event comes."""
    contest = found.contests.get(getattr(event, "contest", ""))
    if contest is None or type(event) is events.ContestOpened:
        return
    name = f"contest {named(event.contest)}"
    if type(event) is events.PrizePaid:
        if contest.sealed is None:
            yield unlike(f"{name} to be finalized", "that it is not")
    elif contest.sealed is not None:
        yield unlike(f"{name} not to be finalized", f"that it has been since log position {contest.sealed.position}")
    elif contest.opened.rules.trading is not None and type(event) in _COMPLETING:
        progress = found.books.progress(event.contest)
        if progress.complete() != (type(event) is events.ContestFinalized):
            wants = "complete" if type(event) is events.ContestFinalized else "incomplete"
            is_so = f"{progress.decided} of {progress.enrolled} who have decided, {progress.open} open positions"
            yield unlike(f"{name} to be {wants}", is_so)


def _content(found: Facts, event: Any) -> Iterable[str]:
    """What does not fit what came before."""
    if not FIRST_INSTANT <= event.at <= LAST_INSTANT:
        return (unlike(CALENDAR, instant(event.at)),)
    return _WRONG[type(event)](found, event) if type(event) in _WRONG else ()


def _ruled(found: Facts, event: Any) -> Iterable[str]:
    """What a contest's rule set does not allow."""
    return _RULED[type(event)](found, event) if type(event) in _RULED else ()


def _rules(found: Facts, event: events.ContestOpened) -> Iterator[str]:
    """A rule set that fits together, and a start that fits it."""
    rules, trading, starts_at = event.rules, event.rules.trading, event.starts_at
    if needs := inconsistency(rules):
        yield unlike(f"rules that fit together: {needs}", _spoken_of(rules, needs))
    if (trading is None) != (starts_at is None) or (trading is None and event.series):
        start = "no start" if starts_at is None else f"a start at {instant(starts_at)}"
        series = f"series {named(event.series)}" if event.series else "no series"
        both = f"{'no ' * (trading is None)}trading, {start}, {series}"
        yield unlike("a start with trading, and neither start nor series without", both)
    if trading is None or starts_at is None:
        return
    if not FIRST_INSTANT <= starts_at <= LAST_INSTANT:
        yield unlike(f"{CALENDAR} as the start", instant(starts_at))
    if trading.cohorts == "none":
        return
    if starts_at != sunday(starts_at):
        yield unlike(f"a weekly cohort to start as a Sunday does, at {instant(sunday(starts_at))}", instant(starts_at))
    starts = found.books.cohorts.get(event.series, [])
    if bisect_left(starts, starts_at) < bisect_right(starts, starts_at):
        yield unlike(f"one cohort of series {named(event.series)} from {instant(starts_at)} on", "a second")


def _spoken_of(rules: RuleSet, needs: str) -> str:
    """The kernels of a rule set, and what else is named in a text."""
    said = {name: getattr(rules, name) for name in rules.__struct_fields__ if name != "trading"}
    kernels = [name for name, value in said.items() if name.endswith("kernel") and value != "none"]
    spoken = [name for name in said if name in kernels or re.search(rf"\b{name}s?\b", needs)]
    return ", ".join(f"{name} {said[name]}" for name in spoken)


def _scorable(found: Facts, event: events.QuestionAdded) -> Iterator[str]:
    question = found.questions[found.question_codes.codes[event.question]]
    if why := unscorable(question.range, found.contests[event.contest].opened.rules, len(question.outcomes)):
        yield unlike("a question that its contest can score", f"{named(event.question)}: {why}")


def _deciding(found: Facts, event: events.DecisionRecorded | events.DecisionMalformed) -> Iterator[str]:
    trading, opened = found.trading(event.contest), found.contests[event.contest].opened
    if not trading.deciding_cohorts or trading.cohorts == "none":
        return
    starts = found.books.cohorts.get(opened.series, [])
    newer = len(starts) - bisect_right(starts, opened.starts_at or 0)
    if newer >= trading.deciding_cohorts:
        yield unlike(f"a contest among the newest {trading.deciding_cohorts} of its series", f"{newer} newer")


def _question(found: Facts, event: events.QuestionOpened) -> Iterator[str]:
    span, outcomes, opens_at, closes_at = event.range, event.outcomes, event.opens_at, event.closes_at
    if (code := found.question_codes.codes.get(event.question)) is not None:
        yield unlike(
            "a question id not used before", f"{named(event.question)}, opened at log position {found.opened[code]}"
        )
    if (event.kind == "numeric") != (span is not None) or (span is None) != bool(outcomes):
        takes = "a range and no outcomes" if event.kind == "numeric" else "outcomes and no range"
        yield unlike(
            f"{takes} of a {event.kind} question", f"{'no' if span is None else 'a'} range, {len(outcomes)} outcomes"
        )
    if len(set(outcomes)) != len(outcomes) or len(outcomes) == 1:
        yield unlike("two outcomes or more, each once", f"{len(outcomes)}, of which {len(set(outcomes))} differ")
    if span is not None:
        yield from _range(span)
    if not FIRST_INSTANT <= opens_at <= closes_at <= LAST_INSTANT:
        yield unlike(
            f"{CALENDAR} for the opening, and one after it for the close", f"{instant(opens_at)}, {instant(closes_at)}"
        )
    if not 0 < closes_at - opens_at <= LONGEST_PERIOD:
        latest = instant(opens_at + LONGEST_PERIOD)
        yield unlike(f"a close after {instant(opens_at)}, the opening, and at most at {latest}", instant(closes_at))
    if event.reveals_at is not None and not opens_at < event.reveals_at <= closes_at:
        yield unlike(f"a reveal after {instant(opens_at)} and until {instant(closes_at)}", instant(event.reveals_at))


def _range(span: events.NumericRange) -> Iterator[str]:
    """A range that asks for a cdf or for quantiles, and whose bounds are numbers in order."""
    lower, upper, bounds = _exact(span.lower), _exact(span.upper), several((span.lower, span.upper))
    if lower is None or upper is None or not lower < upper:
        yield unlike("bounds that are plain numbers, the lower first", bounds)
        return
    zero = lower - 1 if span.zero_point is None else _exact(span.zero_point)
    if zero is None or lower <= zero <= upper:
        yield unlike(f"a number outside the bounds {bounds} as zero point", named(span.zero_point))
    if bool(span.levels) == bool(span.bins) or not 0 <= span.bins <= MOST_BINS:
        yield unlike(f"1 to {MOST_BINS} bins, or levels instead", f"{named(span.bins)} bins, {len(span.levels)} levels")
    most = MOST_DECIMALS if span.levels else 0
    if not 0 <= span.decimals <= most:
        yield unlike(f"0 to {most} decimals" if most else "no decimals beside bins", named(span.decimals))
        return
    for before, after in pairwise((0, *span.levels, PROBABILITY)):
        if before >= after:
            yield unlike("levels above 0 that rise to below 1", f"{chance(before)} and then {chance(after)}")
    if span.levels and max(-lower, upper) * 10**span.decimals > LARGEST_MEASURE:
        yield unlike(f"bounds within {fixed(LARGEST_MEASURE, 10**span.decimals)} of 0", bounds)


def _resolution(found: Facts, event: events.QuestionResolved) -> Iterator[str]:
    code = found.question_codes.codes[event.question]
    question = found.questions[code]
    if code in found.settled:
        yield unanswered(found, code)
    span = question.range
    last = (len(question.outcomes) if span is None else max(span.bins, 1) + 2) - 1
    if not 0 <= event.outcome <= last and not event.payouts:
        yield unlike(f"an outcome from 0 to {last}", named(event.outcome))
    if span is not None and not _countable(event.value, span):
        most = f" within {fixed(LARGEST_MEASURE, 10**span.decimals)} of 0" if span.levels else ""
        yield unlike(f"a plain number{most} as the answer", named(event.value))
    if not question.opens_at <= event.known_at <= LAST_INSTANT:
        yield unlike(f"an answer known from {instant(question.opens_at)}, the opening, on", instant(event.known_at))
    if event.known_at > event.at:
        yield unlike(f"an answer known by {instant(event.at)}, when it was given", instant(event.known_at))


def _countable(value: str, span: events.NumericRange) -> bool:
    """Whether an answer can be counted in the unit of its question."""
    exact = _exact(value)
    return exact is not None and (not span.levels or abs(exact) * 10**span.decimals <= LARGEST_MEASURE)


def _exact(text: str) -> Fraction | None:
    """The number that plain decimal text stands for, as the decider writes it: no exponent, within 1e30."""
    return Fraction(text) if _PLAIN.fullmatch(text) else None


def _annulment(found: Facts, event: events.QuestionAnnulled) -> Iterator[str]:
    code = found.question_codes.codes[event.question]
    if found.settled.get(code) is events.QuestionAnnulled:
        last = max(each.position for each in found.settlements if each.question == code)
        yield unlike(
            f"question {named(event.question)} not to be annulled", f"that it has been since log position {last}"
        )


def _revocation(found: Facts, event: events.ResolutionRevoked) -> Iterator[str]:
    if found.question_codes.codes[event.question] not in found.settled:
        yield unlike(f"question {named(event.question)} to be resolved or annulled", "nothing to revoke")


def _closing(found: Facts, event: events.QuestionClosed) -> Iterator[str]:
    code = found.question_codes.codes[event.question]
    question = found.questions[code]
    if code in found.settled:
        yield unanswered(found, code)
    closes_at = found.books.closed.get(code, question.closes_at)
    if not question.opens_at < event.at < closes_at:
        yield unlike(
            f"an early close after {instant(question.opens_at)} and before {instant(closes_at)}", instant(event.at)
        )


def _payment(found: Facts, event: events.PrizePaid) -> Iterator[str]:
    contest = found.contests[event.contest]
    unit, left = contest.opened.payable_unit, contest.opened.pool - contest.paid_in_all
    if event.participant in contest.paid:
        paid = contest.paid[event.participant]
        yield unlike(f"one prize of {named(event.participant)}", f"one paid at log position {paid.position} already")
    if event.amount <= 0 or event.amount % unit:
        yield unlike(f"a prize above 0, in whole units of {money(unit)}", money(event.amount))
    if event.amount > left:
        yield unlike(f"a prize of at most {money(left)}, what is left of the pool", money(event.amount))


def _contest(found: Facts, event: events.ContestOpened) -> Iterator[str]:
    unit, pool = event.payable_unit, event.pool
    if (there := found.contests.get(event.contest)) is not None:
        yield unlike("a contest id not used before", f"{named(event.contest)}, opened at log position {there.position}")
    if unit <= 0:
        yield unlike("a payable unit above 0", money(unit))
    elif not 0 <= pool <= LARGEST_POOL or pool % unit:
        yield unlike(f"a pool of 0 to {money(LARGEST_POOL)}, in whole units of {money(unit)}", money(pool))


def _entry(found: Facts, event: events.QuestionAdded) -> Iterator[str]:
    code = found.question_codes.codes[event.question]
    question, contest = found.questions[code], found.contests[event.contest]
    spot_at, hidden, reveals_at = event.spot_at, event.hidden_coverage_weight, question.reveals_at
    if (there := contest.entries.get(code)) is not None:
        yield unlike(
            f"question {named(event.question)} not to be in the contest",
            f"that it has been since log position {there.position}",
        )
    if not 0 < event.weight <= LARGEST_WEIGHT:
        yield unlike(f"a weight above 0 and up to {fixed(LARGEST_WEIGHT, WEIGHT)}", fixed(event.weight, WEIGHT))
    if spot_at is not None and not question.opens_at <= spot_at <= question.closes_at:
        yield unlike(f"a spot from {instant(question.opens_at)} to {instant(question.closes_at)}", instant(spot_at))
    if hidden is not None and reveals_at is None:
        yield unlike("no hidden coverage weight, for there is no hidden period", fixed(hidden, WEIGHT))
    least = WEIGHT if reveals_at == question.closes_at else 0
    if hidden is not None and not least <= hidden <= WEIGHT:
        allowed = "0 to 1" if least == 0 else "1, for all of the period is hidden"
        yield unlike(f"a hidden coverage weight of {allowed}", fixed(hidden, WEIGHT))


_WRONG: dict[type, Callable[[Facts, Any], Iterable[str]]] = {
    events.QuestionOpened: _question,
    events.QuestionResolved: _resolution,
    events.QuestionAnnulled: _annulment,
    events.ResolutionRevoked: _revocation,
    events.QuestionClosed: _closing,
    events.ContestOpened: _contest,
    events.PrizePaid: _payment,
    events.QuestionAdded: _entry,
}
_RULED: dict[type, Callable[[Facts, Any], Iterable[str]]] = {
    events.ContestOpened: _rules,
    events.QuestionAdded: _scorable,
    events.DecisionRecorded: _deciding,
    events.DecisionMalformed: _deciding,
}
