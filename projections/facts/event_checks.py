"""Checks of events, so that no log, whatever program wrote it, causes a traceback or endless work.

They require only what the tables need: the ids in an event exist, it has the right number of numbers, these are within
bounds, and instants are on the calendar. `verify` checks that the decider would have recorded the event.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs

from forecast_ledger.ledger.core.errors import Corrupt, Refused
from forecast_ledger.ledger.core.values import (
    FIRST_INSTANT,
    LARGEST_HOLDING,
    LARGEST_MEASURE,
    LARGEST_POOL,
    LARGEST_SPOT_WEIGHT,
    LARGEST_WEIGHT,
    LAST_INSTANT,
    LONGEST_PERIOD,
    MOST_BINS,
    MOST_DECIMALS,
    MOST_PAYOUT_UNITS,
    MOST_SPOTS,
    MOST_WRITTEN_DECIMALS,
    NEVER,
    PROBABILITY,
    WEIGHT,
    read_instant,
)
from forecast_ledger.ledger.model import events, publication_stamps
from forecast_ledger.ledger.model.answers import named_outcome, why_unscorable
from forecast_ledger.ledger.model.mismatch import (
    decimal_text,
    instant_text,
    mismatch,
    money_text,
    probability_text,
    short_repr,
    short_reprs,
)
from forecast_ledger.ledger.model.rules import inconsistency
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, index_where, int64_array
from forecast_ledger.projections.facts.columns import ChangedOutcomes, Facts, Forecasts

# --- The times of questions, which an event can change.


def rescheduled(question: events.QuestionOpened, event: events.QuestionRescheduled) -> events.QuestionOpened:
    """Return a question with the times that an event gives in place of its own.

    >>> opened = events.QuestionOpened(at=0, question="q", kind="binary", opens_at=1, closes_at=5)
    >>> later = rescheduled(opened, events.QuestionRescheduled(at=4, question="q", closes_at=9))
    >>> later.opens_at, later.closes_at
    (1, 9)
    """
    times = {"opens_at": event.opens_at, "closes_at": event.closes_at, "reveals_at": event.reveals_at}
    return structs.replace(question, **{name: at for name, at in times.items() if at is not None})


def amended(question: events.QuestionOpened, event: events.QuestionAmended) -> events.QuestionOpened:
    """Return a question as an event changes it.

    >>> opened = events.QuestionOpened(at=0, question="q", kind="binary", title="Rian?", opens_at=1, closes_at=5)
    >>> amended(opened, events.QuestionAmended(at=4, question="q", title="Rain?")).title
    'Rain?'
    """
    said = {name: getattr(event, name) for name in ("title", "tags", "url", "source")}
    return structs.replace(question, **{name: text for name, text in said.items() if text is not None})


_PLAIN = re.compile(rf"-?[0-9]{{1,31}}(\.[0-9]{{1,{MOST_WRITTEN_DECIMALS}}})?", re.ASCII)
CALENDAR = "an instant of the years 1 to 9999"
_INSTANTS = {
    "at",
    "opens_at",
    "closes_at",
    "reveals_at",
    "known_at",
    "quoted_at",
    "starts_at",
    "spot_at",
    "grace_ends_at",
}
_CALENDAR, _SUMMABLE = (FIRST_INSTANT, LAST_INSTANT), (-4 * LARGEST_HOLDING, 4 * LARGEST_HOLDING)


def check_event(facts: Facts, position: int, event: Any) -> None:
    """Check that tables can be computed from an event other than a forecast.

    Raises Corrupt if they cannot, KeyError if the event names something that does not exist.
    """
    kind = type(event)
    for name, least, greatest in _BOUNDS.get(kind) or _bounds(kind):
        value = getattr(event, name)
        if value is not None and not least <= value <= greatest:
            raise Corrupt(position, f"{events.TAGS[kind]}: {_out_of_bounds(name, value)}")
    if kind in _FAULTS:
        for fault in _FAULTS[kind](facts, event):
            raise Corrupt(position, f"{events.TAGS[kind]}: {fault}")


def _bounds(kind: type[events.Event]) -> Iterator[tuple[str, int, int]]:
    """Yield the fields of a type of event that are instants or other numbers, with the least and the greatest value.

    Instants are on the calendar, and other numbers small enough for every sum of a table.
    """
    for field in structs.fields(kind):
        if field.type in (int, int | None):
            yield field.name, *(_CALENDAR if field.name in _INSTANTS else _SUMMABLE)


_BOUNDS: dict[type, list[tuple[str, int, int]]] = {kind: [*_bounds(kind)] for kind in events.TAGS}


def _out_of_bounds(name: str, value: int) -> str:
    if name in _INSTANTS:
        return mismatch(f"{CALENDAR} as {name}", instant_text(value))
    return mismatch(f"{name} within {4 * LARGEST_HOLDING}", short_repr(value))


def _question(facts: Facts, event: events.QuestionOpened) -> Iterator[str]:
    span, outcomes = event.range, event.outcomes
    if (code := facts.question_codes.codes.get(event.question)) is not None:
        yield mismatch(
            "a question id not used earlier",
            f"{short_repr(event.question)}, opened at log position {facts.opened[code]}",
        )
    if (event.kind in events.RANGED) != (span is not None) or (span is None) != bool(outcomes):
        takes = "a range and no outcomes" if event.kind in events.RANGED else "outcomes and no range"
        yield mismatch(
            f"{takes} of a {event.kind} question", f"{'no' if span is None else 'a'} range, {len(outcomes)} outcomes"
        )
    if len(set(outcomes)) != len(outcomes) or len(outcomes) == 1:
        yield mismatch("two or more different outcomes", f"{len(outcomes)}, {len(set(outcomes))} of them different")
    if span is not None:
        yield from _range_faults(span)
        if span.measures and event.kind != "numeric":
            required = f"{len(span.levels)} levels" if span.levels else f"{short_repr(span.samples)} samples"
            yield mismatch(f"bins of a {event.kind} question", required)
    yield from _schedule(event)


def _schedule(event: events.QuestionOpened) -> Iterator[str]:
    """Check the order of the times of a question."""
    opens_at, closes_at = event.opens_at, event.closes_at
    if not FIRST_INSTANT <= opens_at <= closes_at <= LAST_INSTANT:
        yield mismatch(
            f"{CALENDAR} for the opening, and a later one for the close",
            f"{instant_text(opens_at)}, {instant_text(closes_at)}",
        )
    if not 0 < closes_at - opens_at <= LONGEST_PERIOD:
        latest = instant_text(opens_at + LONGEST_PERIOD)
        yield mismatch(
            f"a close after the opening, {instant_text(opens_at)}, and no later than {latest}", instant_text(closes_at)
        )
    if event.reveals_at is not None and not opens_at < event.reveals_at <= closes_at:
        yield mismatch(
            f"a reveal after {instant_text(opens_at)} and no later than {instant_text(closes_at)}",
            instant_text(event.reveals_at),
        )


@lru_cache
def _range_faults(span: events.NumericRange) -> list[str]:
    """Return what is wrong with a range; questions of a contest often have the same."""
    return [*_range(span)]


def _range(span: events.NumericRange) -> Iterator[str]:
    """Check that a range has bins, levels or samples, and that its bounds are numbers in order."""
    lower, upper, bounds = _exact(span.lower), _exact(span.upper), (span.lower, span.upper)
    if lower is None or upper is None or not lower < upper:
        yield mismatch("bounds that are plain numbers, the lower first", short_reprs(bounds))
        return
    zero = lower - 1 if span.zero_point is None else _exact(span.zero_point)
    if zero is None or lower <= zero <= upper:
        outside = f"a number outside the bounds {short_reprs(bounds)} as zero point"
        yield mismatch(outside, short_repr(span.zero_point))
    bins, levels, samples = span.bins, len(span.levels), span.samples
    if [bins, levels, samples].count(0) != 2 or not 0 <= bins <= MOST_BINS or not 0 <= samples <= MOST_BINS:
        yield mismatch(
            f"1 to {MOST_BINS} bins, or levels instead, or 1 to {MOST_BINS} samples",
            f"{short_repr(bins)} bins, {levels} levels, {short_repr(samples)} samples",
        )
    most_decimals = MOST_DECIMALS if span.measures else 0
    if not 0 <= span.decimals <= most_decimals:
        yield mismatch(
            f"0 to {most_decimals} decimals" if most_decimals else "no decimals beside bins", short_repr(span.decimals)
        )
        return
    for before, after in pairwise((0, *span.levels, PROBABILITY)):
        if before >= after:
            yield mismatch(
                "increasing levels between 0 and 1", f"{probability_text(before)} and then {probability_text(after)}"
            )
    if span.measures and max(-lower, upper) * 10**span.decimals > LARGEST_MEASURE:
        yield mismatch(f"bounds within {decimal_text(LARGEST_MEASURE, 10**span.decimals)} of 0", short_reprs(bounds))


def _resolution(facts: Facts, event: events.QuestionResolved) -> Iterator[str]:
    question = facts.questions[facts.question_codes.codes[event.question]]
    span, outcomes = question.range, len(question.outcomes)
    last = (outcomes if span is None else max(span.bins, 1) + 2) - 1
    if not 0 <= event.outcome <= last and not (event.payouts and event.outcome == -1):
        yield mismatch(f"an outcome from 0 to {last}", short_repr(event.outcome))
    if span is not None and named_outcome(event.value, span) is not None and not span.measures:
        if event.outcome != named_outcome(event.value, span):
            yield mismatch(f"outcome {named_outcome(event.value, span)} of {event.value}", short_repr(event.outcome))
    elif span is not None and question.kind == "date":
        yield from _instant(event.value)
    elif span is not None and not _countable(event.value, span):
        bound = f" within {decimal_text(LARGEST_MEASURE, 10**span.decimals)} of 0" if span.measures else ""
        yield mismatch(f"a plain number{bound} as the answer", short_repr(event.value))
    if not 0 <= event.payout_unit <= MOST_PAYOUT_UNITS:
        yield mismatch(f"a unit of payouts from 0 to {MOST_PAYOUT_UNITS}", short_repr(event.payout_unit))
    most = event.payout_unit or PROBABILITY
    if event.payouts and (len(event.payouts) != outcomes or not all(0 <= each <= most for each in event.payouts)):
        yield mismatch(f"{outcomes} payouts from 0 to 1", short_reprs(event.payouts))
    if event.known_at < question.opens_at:
        yield mismatch(
            f"an answer known no earlier than the opening, {instant_text(question.opens_at)}",
            instant_text(event.known_at),
        )


def _instant(value: str) -> Iterator[str]:
    """Check that the answer to a date question is an instant."""
    try:
        read_instant(value)
    except Refused:
        yield mismatch("an instant as the answer", short_repr(value))


def _countable(value: str, span: events.NumericRange) -> bool:
    """Return True if an answer is a number that 64 bits can hold in the unit of its question."""
    if not span.measures:
        return _PLAIN.fullmatch(value) is not None
    exact = _exact(value)
    return exact is not None and abs(exact.numerator) * 10**span.decimals <= LARGEST_MEASURE * exact.denominator


def _exact(text: str) -> Fraction | None:
    """Return the number that a plain decimal text means; None if it has an exponent or too many digits."""
    return Fraction(text) if _PLAIN.fullmatch(text) else None


def _chances(numbers: Iterable[int | None]) -> bool:
    return all(number is None or 0 <= number <= PROBABILITY for number in numbers)


def _closing(facts: Facts, event: events.QuestionClosed) -> Iterator[str]:
    question = facts.questions[facts.question_codes.codes[event.question]]
    if not question.opens_at < event.at < question.closes_at:
        expected = (
            f"an early close after {instant_text(question.opens_at)} and before {instant_text(question.closes_at)}"
        )
        yield mismatch(expected, instant_text(event.at))


def _rescheduling(facts: Facts, event: events.QuestionRescheduled) -> Iterator[str]:
    code = facts.question_codes.codes[event.question]
    question = rescheduled(facts.questions[code], event)
    if code in facts.settled:
        yield mismatch("a question that is not resolved or annulled", short_repr(event.question))
    yield from _schedule(question)
    if event.closes_at is None and facts.books.closed.get(code, question.closes_at) <= question.opens_at:
        yield mismatch(
            f"an opening before the close, {instant_text(facts.books.closed[code])}", instant_text(question.opens_at)
        )
    contests = [each for each in facts.contests.values() if each.sealed is None]
    entries = [contest.entries[code] for contest in contests if code in contest.entries]
    for at in (at for entry in entries for at in (entry.spot_at, *(at for at, _ in entry.spots)) if at is not None):
        if at < question.opens_at:
            yield mismatch(f"an opening no later than the spot {instant_text(at)}", instant_text(question.opens_at))


def _amendment(facts: Facts, event: events.QuestionAmended) -> Iterator[str]:
    code, weight = facts.question_codes.codes[event.question], event.weight
    if (weight is None) != (not event.contest):
        yield mismatch("a weight and its contest, or neither", short_repr(event.contest))
    if weight is None:
        return
    contest = facts.contests[event.contest]
    if code not in contest.entries or contest.sealed is not None:
        yield mismatch("a question of a contest that is not sealed", short_repr(event.question))
    if not 0 <= weight <= LARGEST_WEIGHT:
        yield mismatch(f"a weight of 0 to {decimal_text(LARGEST_WEIGHT, WEIGHT)}", decimal_text(weight, WEIGHT))


def _outcomes(facts: Facts, event: events.OutcomesChanged) -> Iterator[str]:
    code = facts.question_codes.codes[event.question]
    question, changed = facts.questions[code], facts.changed.get(code)
    names, name = question.outcomes, short_repr(event.question)
    if question.kind != "multiple_choice":
        yield mismatch("a multiple_choice question", f"{name}, which is {question.kind}")
        return
    now = ChangedOutcomes(len(names), len(names), ()) if changed is None else changed
    given = {names[outcome] for outcome in now.given()}
    if len({*names, *event.added}) < len(names) + len(event.added):
        yield mismatch(f"new names of outcomes, which {name} never had", short_reprs(event.added))
    if not {*event.removed} <= given - {names[now.catch_all]} or len({*event.removed}) < len(event.removed):
        yield mismatch(
            f"outcomes that {name} has, but for {short_repr(names[now.catch_all])}", short_reprs(event.removed)
        )
    if bool(event.added) == bool(event.removed) or (event.grace_ends_at is None) != (not event.added):
        yield mismatch("outcomes that are added with an end of grace, or outcomes that are removed", name)
    if event.grace_ends_at is not None and not event.at < event.grace_ends_at <= LAST_INSTANT:
        yield mismatch(f"an end of grace after {instant_text(event.at)}", instant_text(event.grace_ends_at))
    if code in facts.books.quotes:
        yield mismatch("a question without quotes", f"{name}, which has some")


def _contest(facts: Facts, event: events.ContestOpened) -> Iterator[str]:
    unit, pool, rules = event.payable_unit, event.pool, event.rules
    if (contest := facts.contests.get(event.contest)) is not None:
        yield mismatch(
            "a contest id not used earlier", f"{short_repr(event.contest)}, opened at log position {contest.position}"
        )
    if unit <= 0:
        yield mismatch("a payable unit above 0", money_text(unit))
    elif not 0 <= pool <= LARGEST_POOL or pool % unit:
        yield mismatch(
            f"a pool of 0 to {money_text(LARGEST_POOL)}, in whole units of {money_text(unit)}", money_text(pool)
        )
    if needs := inconsistency(rules):
        yield mismatch(f"rules that fit together: {needs}", f"those of {short_repr(rules.name)}")


def _entry(facts: Facts, event: events.QuestionAdded) -> Iterator[str]:
    question, contest = facts.questions[facts.question_codes.codes[event.question]], facts.contests[event.contest]
    spot_at, hidden = event.spot_at, event.hidden_coverage_weight
    if reason := why_unscorable(question.range, contest.opened.rules, len(question.outcomes)):
        yield mismatch("a question that its contest can score", f"{short_repr(event.question)}: {reason}")
    if not 0 <= event.weight <= LARGEST_WEIGHT:
        yield mismatch(f"a weight of 0 to {decimal_text(LARGEST_WEIGHT, WEIGHT)}", decimal_text(event.weight, WEIGHT))
    if spot_at is not None and not question.opens_at <= spot_at <= question.closes_at:
        yield mismatch(
            f"a spot from {instant_text(question.opens_at)} to {instant_text(question.closes_at)}",
            instant_text(spot_at),
        )
    if event.spots:
        yield from _spots(question, event)
    if hidden is not None and not (0 <= hidden <= WEIGHT and question.reveals_at is not None):
        yield mismatch("a hidden coverage weight of 0 to 1, and a hidden period", decimal_text(hidden, WEIGHT))


def _spots(question: events.QuestionOpened, event: events.QuestionAdded) -> Iterator[str]:
    """Check several instants at which a question counts."""
    instants, weights = [spot.at for spot in event.spots], [spot.weight for spot in event.spots]
    if instants != sorted({*instants}) or len(instants) > MOST_SPOTS * (event.spot_at is None):
        yield mismatch(f"up to {MOST_SPOTS} spots in increasing order, or one in their place", f"{len(instants)}")
    elif not question.opens_at <= instants[0] <= instants[-1] <= question.closes_at:
        yield mismatch(
            f"spots from {instant_text(question.opens_at)} to {instant_text(question.closes_at)}",
            f"{instant_text(instants[0])} to {instant_text(instants[-1])}",
        )
    if not all(0 < weight <= LARGEST_SPOT_WEIGHT for weight in weights):
        yield mismatch(f"weights of spots from 1 to {LARGEST_SPOT_WEIGHT}", short_reprs(weights))


def _renaming(facts: Facts, event: events.ParticipantRenamed) -> Iterator[str]:
    accounts = facts.books.accounts
    for name, contest in facts.contests.items():
        if contest.sealed is None and {(name, event.participant), (name, event.to)} <= accounts.keys():
            both = f"{short_repr(event.participant)} and {short_repr(event.to)}"
            yield mismatch(f"one account of {both} in contest {short_repr(name)}", "two")


def _quotes(facts: Facts, event: events.PricesQuoted) -> Iterator[str]:
    for quote in event.quotes:
        outcomes = len(facts.questions[facts.question_codes.codes[quote.question]].outcomes)
        if len(quote.prices) != outcomes or not outcomes or not _chances(quote.prices):
            name = short_repr(quote.question)
            yield mismatch(f"{outcomes} prices of {name} from 0 to 1", short_reprs(quote.prices))
        if quote.bids or quote.asks or quote.bid_sizes or quote.ask_sizes:
            yield from _book(quote, outcomes)


def _book(quote: events.Quote, outcomes: int) -> Iterator[str]:
    """Check bids, asks and their sizes, which may be left out."""
    question = short_repr(quote.question)
    for name, prices in (("bids", quote.bids), ("asks", quote.asks)):
        if prices and (len(prices) != outcomes or not _chances(prices)):
            yield mismatch(f"{outcomes} {name} of {question} from 0 to 1", short_reprs(prices))
    for bid, ask in zip(quote.bids, quote.asks, strict=False):
        if bid is not None and ask is not None and bid > ask:
            yield mismatch(f"bids of {question} up to the asks", f"{bid} and {ask}")
    for name, sizes in (("bid_sizes", quote.bid_sizes), ("ask_sizes", quote.ask_sizes)):
        if sizes and (len(sizes) != outcomes or not all(0 <= (size or 0) <= LARGEST_HOLDING for size in sizes)):
            yield mismatch(f"{outcomes} {name} of {question}, at least 0", short_reprs(sizes))


def _trade(facts: Facts, event: events.SharesBought | events.SharesSold | events.TradeRecorded) -> Iterator[str]:
    code = facts.question_codes.codes[event.question]
    last = len(facts.questions[code].outcomes) - 1
    if not 0 <= event.outcome <= last:
        yield mismatch(f"an outcome from 0 to {last}", short_repr(event.outcome))
    if code not in facts.books.quotes and not isinstance(event, events.TradeRecorded):
        yield mismatch(f"a quote of question {short_repr(event.question)} before the trade", "none")
    if code not in facts.contests[event.contest].entries:
        yield mismatch("a question of the contest", short_repr(event.question))
    if isinstance(event, events.TradeRecorded):
        numbers = (event.shares, event.amount, event.cost, event.fee)
        if not event.shares or max(map(abs, numbers)) > LARGEST_HOLDING or min(event.amount, event.fee) < 0:
            yield mismatch(f"shares other than 0, and numbers within {LARGEST_HOLDING}", short_reprs(numbers))


def _call(_: Facts, event: events.DecisionRecorded | events.DecisionMalformed | events.CallFailed) -> Iterator[str]:
    call = event.call or events.ModelCall()
    for name in ("input_tokens", "output_tokens", "cost", "latency_ms"):
        if not 0 <= (getattr(call, name) or 0) <= LARGEST_POOL:
            yield mismatch(f"{name} from 0 to {LARGEST_POOL}", short_repr(getattr(call, name)))


def _decision(facts: Facts, event: events.DecisionRecorded) -> Iterator[str]:
    yield from _call(facts, event)
    numbers = [*(bet.amount for bet in event.bets), *(sale.percentage for sale in event.sells)]
    largest = max(map(abs, numbers), default=0)
    if largest > LARGEST_POOL:
        yield mismatch(f"amounts and percentages within {LARGEST_POOL}", short_repr(largest))


_FAULTS: dict[type, Callable[[Facts, Any], Iterable[str]]] = {
    events.QuestionOpened: _question,
    events.QuestionResolved: _resolution,
    events.QuestionClosed: _closing,
    events.QuestionRescheduled: _rescheduling,
    events.QuestionAmended: _amendment,
    events.OutcomesChanged: _outcomes,
    events.ContestOpened: _contest,
    events.QuestionAdded: _entry,
    events.ParticipantRenamed: _renaming,
    events.PricesQuoted: _quotes,
    events.DecisionRecorded: _decision,
    events.DecisionMalformed: _call,
    events.CallFailed: _call,
    events.SharesBought: _trade,
    events.SharesSold: _trade,
    events.TradeRecorded: _trade,
}


# --- Checks of forecasts and withdrawals, whole columns at a time because there are many.


class RequiredNumbers(NamedTuple):
    """The numbers that a question requires of a forecast.

    width: how many. unit: how many units make 1.
    greatest: PROBABILITY for named outcomes, CUMULATIVE for a cdf, LARGEST_MEASURE for quantiles and samples.
    """

    width: int
    greatest: int
    unit: int

    @property
    def least(self) -> int:
        """The least number: a quantile or sample may be negative."""
        return -self.greatest if self.greatest == LARGEST_MEASURE else 0


def check_attestation(position: int, attestation: events.Attestation) -> None:
    """Check that every stamp is a year, month, day or instant. Raises Corrupt if one is not."""
    for name in ("newest_source", "model_released", "training_cutoff"):
        if (text := getattr(attestation, name)) is not None:
            try:
                publication_stamps.stamp_span(text, name)
            except Refused:
                fault = mismatch(f"a year, month, day or instant as {name} of an attestation", short_repr(text))
                raise Corrupt(position, fault) from None


def check_forecasts(
    forecasts: Forecasts, lengths: Int64Array, questions: Mapping[int, RequiredNumbers], widths: Int64Array
) -> None:
    """Check that forecasts have the numbers that their questions require, and instants on the calendar.

    Raises Corrupt at the first that does not.
    lengths: how many numbers each row has, shape (n,). questions: what each question requires that has forecasts, by
    code. widths: how many numbers each row must have if it is a forecast, shape (n,). The least and the greatest of a
    column mostly show that no row is wrong.
    """
    if not len(lengths):
        return
    position, at, until = forecasts.position, forecasts.at, forecasts.until
    if at.min() < FIRST_INSTANT or at.max() > LAST_INSTANT:
        raise_at_first(
            position,
            (at < FIRST_INSTANT) | (at > LAST_INSTANT),
            lambda row: mismatch(CALENDAR, instant_text(int(at[row]))),
        )
    if until.min() != NEVER:
        raise_at_first(
            position,
            (until != NEVER) & ((until <= at) | (until > LAST_INSTANT)),
            lambda row: mismatch(
                f"an end after {instant_text(int(at[row]))}, within the years 1 to 9999", instant_text(int(until[row]))
            ),
        )
    widths = widths * forecasts.made
    raise_at_first(
        position,
        lengths != widths,
        lambda row: mismatch(f"{widths[row]} numbers, one for each outcome, edge, level or sample", str(lengths[row])),
    )
    _check_numbers(forecasts, lengths, questions)


def _check_numbers(forecasts: Forecasts, lengths: Int64Array, questions: Mapping[int, RequiredNumbers]) -> None:
    """Check that the numbers of each forecast are those that its question can have. Raises Corrupt."""
    chances, kinds = forecasts.chances, {*questions.values()}
    if not len(chances):
        return
    if max(kind.least for kind in kinds) <= chances.min() and chances.max() <= min(kind.greatest for kind in kinds):
        return
    made = index_where(lengths > 0)
    position, starts, codes = forecasts.position[made], forecasts.start[made], forecasts.question[made]
    index = np.searchsorted(int64_array([*questions]), codes)
    least = int64_array([question.least for question in questions.values()])[index]
    greatest = int64_array([question.greatest for question in questions.values()])[index]
    lowest, highest = np.minimum.reduceat(chances, starts), np.maximum.reduceat(chances, starts)

    def texts(row: int, *numbers: np.int64) -> list[str]:
        return [decimal_text(int(number), questions[int(codes[row])].unit) for number in numbers]

    def out_of_bounds(row: int) -> str:
        low, high, below, above = texts(row, least[row], greatest[row], lowest[row], highest[row])
        return mismatch(f"numbers from {low} to {high}", f"{below} to {above}")

    raise_at_first(position, (lowest < least) | (highest > greatest), out_of_bounds)


def raise_at_first(position: Int64Array, wrong: BoolArray, fault: Callable[[int], str]) -> None:
    """Raise Corrupt at the first position where `wrong` is true; fault: returns the message for a row."""
    if wrong.any():
        rows = np.flatnonzero(wrong)
        row = int(rows[position[rows].argmin()])
        raise Corrupt(int(position[row]), fault(row))
