"""Decide the commands of questions, forecasts and resolutions."""

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.core.hints import no_such_outcome
from forecast_ledger.ledger.deciding import distributions, payouts
from forecast_ledger.ledger.deciding.distributions import is_countable, is_possible, numeric_range
from forecast_ledger.ledger.deciding.stamps import after_forecasts
from forecast_ledger.ledger.deciding.state import (
    Decide,
    EntryState,
    Evolve,
    QuestionState,
    State,
    Write,
    instants,
    to_standing,
)
from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.answers import named_outcome

EDGE = Decimal("1e-10")  # of a bin's width: a value up to this far above an inner edge counts as on the edge


def open_question(command: commands.OpenQuestion, state: State) -> events.QuestionOpened:
    """Refuses, first that applies: out_of_range, duplicate_question, duplicate_outcome, wrong_fields_for_kind,
    wrong_order_of_instants.
    """
    opens_at, closes_at = values.read_instant(command.opens_at), values.read_instant(command.closes_at)
    reveals_at = None if command.reveals_at is None else values.read_instant(command.reveals_at)
    span = numeric_range(command.range, command.kind) if command.range else None
    if len(command.tags or ()) > values.MOST_TAGS:
        raise Refused("out_of_range", "tags", len(command.tags or ()), f"at most {values.MOST_TAGS} tags")
    if command.question in state.questions:
        raise Refused("duplicate_question", "question", command.question)
    outcomes = ("yes", "no") if command.kind == "binary" else command.outcomes or ()
    if command.kind not in events.RANGED and (len(set(outcomes)) != len(outcomes) or len(outcomes) < 2):
        raise Refused("duplicate_outcome", "outcomes", list(outcomes))
    if (command.outcomes is not None) != (command.kind == "multiple_choice"):
        raise Refused("wrong_fields_for_kind", "outcomes", None)
    if command.ordered is not None and command.kind != "multiple_choice":
        raise Refused(
            "wrong_fields_for_kind", "ordered", command.ordered, f"a {command.kind} question does not take it"
        )
    if (span is not None) != (command.kind in events.RANGED):
        raise Refused("wrong_fields_for_kind", "range", None)
    if span is not None and span.measures and command.kind != "numeric":
        field = "range.levels" if span.levels else "range.samples"
        raise Refused("wrong_fields_for_kind", field, None, f"a {command.kind} question takes a cdf over bins")
    if span is not None and span.zero_point is not None and command.kind == "discrete":
        raise Refused(
            "wrong_fields_for_kind", "range.zero_point", None, "the values of a discrete question are equally far"
        )
    if not opens_at < closes_at <= opens_at + values.LONGEST_PERIOD:
        raise Refused("wrong_order_of_instants", "closes_at", command.closes_at, _period_detail(opens_at, closes_at))
    if reveals_at is not None and not opens_at < reveals_at <= closes_at:
        raise Refused("wrong_order_of_instants", "reveals_at", command.reveals_at)
    return events.QuestionOpened(
        at=values.read_instant(command.at),
        question=command.question,
        kind=command.kind,
        title=command.title,
        outcomes=outcomes,
        range=span,
        opens_at=opens_at,
        closes_at=closes_at,
        reveals_at=reveals_at,
        group=command.group or "",
        category=command.category or "",
        tags=tuple(command.tags or ()),
        url=command.url or "",
        source=command.source or "",
        ordered=command.ordered,
    )


def submit_forecast(command: commands.SubmitForecast, state: State) -> events.ForecastMade:
    """Refuses, first that applies: out_of_range, unknown_question, wrong_distribution, unknown_outcome, wrong_length,
    not_summing_to_one, decreasing, open_end_needed, question_resolved, question_closed, wrong_order_of_instants,
    out_of_order.
    """
    return forecast_event(command, state, after_forecasts(command.question, command.participant, state))


def forecast_event(
    command: commands.SubmitForecast, state: State, earliest: int, *, restated: bool = False
) -> events.ForecastMade:
    """Return the event of a forecast, which is not before the instant `earliest`, µs. Refuses as `submit_forecast`.

    restated: whether its question may be resolved.
    """
    until = None if command.until is None else values.read_instant(command.until, "until")
    form, numbers = distributions.read_distribution(command, state.questions.get(command.question))
    question = state.question(command.question)
    if form not in distributions.distribution_forms(question):
        given = [each for each in distributions.FORMS if getattr(command, each) is not None]
        detail = "" if form else f"given are {', '.join(given)}; only one may be" if given else "no forecast was given"
        raise Refused("wrong_distribution", "question", command.question, detail)
    if command.normalized is not None and form != "probabilities":
        detail = "only `probabilities` are made of shares"
        raise Refused("wrong_distribution", "normalized", command.normalized, detail, remedy="leave `normalized` out")
    distribution = distributions.check_distribution(command, numbers, question)
    at = _open_at(command, question._replace(settled=False) if restated else question)
    if until is not None and until <= at:
        remedy = "give an instant after at, or leave it out"
        raise Refused(
            "wrong_order_of_instants", "until", command.until, "a forecast ends after it is made", remedy=remedy
        )
    if at < earliest:
        raise Refused("out_of_order", "at", command.at)
    return events.ForecastMade(
        at=at,
        question=command.question,
        participant=command.participant,
        attestation=command.attestation,
        until=until,
        **distribution,
    )


def unsettled_question(name: str, state: State) -> QuestionState | None:
    """Return a question that takes forecasts until it closes; None if there is none, or its outcomes have changed."""
    question = state.questions.get(name)
    return None if question is None or question.settled or question.has_changed else question


def withdraw_forecast(command: commands.WithdrawForecast, state: State) -> events.ForecastWithdrawn:
    """Refuses, first that applies: unknown_question, question_resolved, question_closed, out_of_order,
    nothing_standing (no forecast, or it was withdrawn, has ended by itself, or ended with a grace period).
    """
    question = state.question(command.question)
    at = _open_at(command, question)
    if at < after_forecasts(command.question, command.participant, state):
        raise Refused("out_of_order", "at", command.at)
    last = state.last_of(command.question, command.participant)
    if last is None or at >= instants(last)[1]:
        raise Refused("nothing_standing", "participant", command.participant)
    return events.ForecastWithdrawn(at=at, question=command.question, participant=command.participant)


def close_question(command: commands.CloseQuestion, state: State) -> events.QuestionClosed:
    """Refuses, first that applies: unknown_question, question_resolved, question_closed, before_opening, out_of_order
    (the question was traded at that instant or later).

    Forecasts of that instant or later do not prevent it: they end at the close, and have no weight.
    """
    question = state.question(command.question)
    at = _open_at(command, question)
    if at <= question.opens_at:
        raise Refused("before_opening", "at", command.at)
    if at <= question.traded_at:
        last = values.format_instant(question.traded_at)
        detail = f"{command.question!r} was traded at {last}, and a closed market cannot trade"
        raise Refused("out_of_order", "at", command.at, detail, remedy="close it after its last trade, or cancel it")
    return events.QuestionClosed(at=at, question=command.question)


def resolve_question(command: commands.ResolveQuestion, state: State) -> events.QuestionResolved:
    """Refuses, first that applies: out_of_range, unknown_question, wrong_resolution, unknown_outcome, wrong_length,
    not_summing_to_one, open_end_needed, question_resolved, before_opening, wrong_order_of_instants.
    """
    at = values.read_instant(command.at)
    known = state.questions.get(command.question)
    read = values.read_seconds if known is not None and known.kind == "date" else values.read_measure
    value = None if command.value is None else read(command.value, "value")
    shares = payouts.read_payouts(command.payouts or {})
    question = state.question(command.question)
    known_at = min(at, question.closes_at) if command.known_at is None else values.read_instant(command.known_at)
    answers = (command.outcome is not None) + (command.payouts is not None)
    beyond = None if question.range is None else named_outcome(command.outcome or "", question.range)
    takes_value = question.range is not None and beyond is None
    if (answers, value is not None) != (not takes_value, takes_value):
        raise Refused("wrong_resolution", "question", command.question)
    paid, unit = tuple[int, ...](), 0
    if question.range is not None and beyond is not None:
        outcome = _beyond(command.outcome or "", beyond, question)
    elif question.range is not None and value is not None:
        outcome = _outcome_on_range(value, question, question.range)
    elif command.payouts is not None:
        by_name = dict(zip(question.current, payouts.paid_outcomes(shares, question.current), strict=True))
        every = [by_name.get(name, Fraction(0)) for name in question.outcomes]
        outcome, paid, unit = payouts.recorded_payouts(every)
    elif command.outcome in question.current:
        outcome = question.outcomes.index(command.outcome)
    else:
        raise Refused("unknown_outcome", "outcome", command.outcome, no_such_outcome(question.current))
    if question.settled:
        raise Refused("question_resolved", "question", command.question)
    if min(at, known_at) < question.opens_at:
        raise Refused("before_opening", "known_at", values.format_instant(min(at, known_at)))
    if known_at > at:
        raise Refused("wrong_order_of_instants", "known_at", command.known_at)
    text = _answer_text(value, command, question)
    return events.QuestionResolved(
        at=at,
        question=command.question,
        outcome=outcome,
        value=text,
        known_at=known_at,
        payout_unit=unit,
        payouts=paid,
    )


def _beyond(name: str, outcome: int, question: QuestionState) -> int:
    """Return the outcome of an answer beyond an end. Refuses: wrong_resolution (no bins), open_end_needed."""
    span = question.range or events.NumericRange(lower="0", upper="1")
    if span.measures:
        scored = "quantiles" if span.levels else "samples"
        raise Refused("wrong_resolution", "outcome", name, f"{scored} are scored by the value of the answer")
    if not (span.open_upper if outcome else span.open_lower):
        raise Refused("open_end_needed", "outcome", name)
    return outcome


def _outcome_on_range(value: Decimal, question: QuestionState, span: events.NumericRange) -> int:
    """Return the outcome of a value. Refuses: unknown_outcome (not a value of the question), open_end_needed."""
    outcome = bin_of(value, span)
    if question.kind == "discrete" and 1 <= outcome <= span.bins and not is_possible(value, span):
        first, last, step = (values.exact_text(each) for each in distributions.possible_values(span))
        raise Refused(
            "unknown_outcome", "value", str(value), f"the possible values are {first} to {last} in steps of {step}"
        )
    if span.measures and not is_countable(value, span.decimals):
        raise distributions.not_countable("value", value)
    return outcome


def _answer_text(value: Decimal | None, command: commands.ResolveQuestion, question: QuestionState) -> str:
    """Return an answer on a range as the event records it: a number, of a date question an instant, or its name."""
    if value is None:
        return "" if question.range is None else command.outcome or ""
    if question.kind == "date":
        return values.format_instant(int(value.scaleb(6, WIDE)))
    return values.exact_text(value)


def annul_question(command: commands.AnnulQuestion | commands.CancelMarket, state: State) -> events.QuestionAnnulled:
    """Also annuls a resolved question. Refuses, first that applies: unknown_question, question_resolved (annulled)."""
    if state.question(command.question).annulled:
        raise Refused("question_resolved", "question", command.question)
    return events.QuestionAnnulled(
        at=values.read_instant(command.at),
        question=command.question,
        reason=command.reason,
        policy=command.policy if isinstance(command, commands.CancelMarket) else "refund_cost",
    )


def revoke_resolution(command: commands.RevokeResolution, state: State) -> events.ResolutionRevoked:
    """Refuses, first that applies: unknown_question, not_resolved, wrong_order_of_instants (the resolution that
    becomes current again was known only later).
    """
    question = state.question(command.question)
    if not question.settled:
        raise Refused("not_resolved", "question", command.question)
    at, earlier = values.read_instant(command.at), question.resolution
    if question.annulled and earlier is not None and at < earlier.known_at:
        known_at = values.format_instant(earlier.known_at)
        detail = f"the resolution before the annulment was known at {known_at}"
        raise Refused("wrong_order_of_instants", "at", command.at, detail, remedy="use that instant or a later one")
    return events.ResolutionRevoked(at=at, question=command.question, reason=command.reason)


def bin_of(value: Decimal, span: events.NumericRange) -> int:
    """Return the outcome of a numeric answer: 0 below the range, 1..bins inside it, bins + 1 above it.

    A range without bins has 1.

    A value on an inner edge, or up to 1e-10 of a bin above it, belongs to the bin below that edge; the lower bound
    belongs to bin 1, the upper to the last.
    Refuses: open_end_needed (value beyond a closed end).
    Source: Metaculus's published code (github.com/Metaculus/metaculus, commit 100c4088), numeric resolutions.

    >>> span = events.NumericRange(lower="0", upper="4", bins=4, open_upper=True)
    >>> [bin_of(Decimal(value), span) for value in ("0", "0.5", "1", "1.5", "4", "4.1")]
    [1, 1, 1, 2, 4, 5]
    """
    lower, upper, bins = Decimal(span.lower), Decimal(span.upper), max(span.bins, 1)
    if value < lower or value > upper:
        if not (span.open_lower if value < lower else span.open_upper):
            raise Refused("open_end_needed", "value", str(value))
        return 0 if value < lower else bins + 1
    bounds = [value, lower, upper, *([] if span.zero_point is None else [Decimal(span.zero_point)])]
    exact = _precise_for(bounds)
    along = exact.divide(exact.subtract(value, lower), exact.subtract(upper, lower))
    if span.zero_point is not None:
        zero = Decimal(span.zero_point)
        ratio = exact.divide(exact.subtract(upper, zero), exact.subtract(lower, zero))
        stretched = exact.add(exact.multiply(along, exact.subtract(ratio, Decimal(1))), Decimal(1))
        along = exact.divide(exact.ln(stretched), exact.ln(ratio))
    edges = exact.subtract(exact.multiply(along, Decimal(bins)), EDGE)
    return min(max(int(edges.to_integral_value(ROUND_CEILING)), 1), bins)


def _precise_for(numbers: list[Decimal]) -> Context:
    """Return a context so precise that logarithms of ratios of these numbers' differences have 50 correct digits."""
    largest = max(number.adjusted() for number in numbers)
    finest = min(int(number.as_tuple().exponent) for number in numbers)
    return Context(prec=60 + 2 * max(largest - finest, 0))


def question_opened(event: events.QuestionOpened, state: State, _: int) -> tuple[Write, ...]:
    """Add the question."""
    question = QuestionState(
        kind=event.kind,
        outcomes=event.outcomes,
        range=event.range,
        opens_at=event.opens_at,
        closes_at=event.closes_at,
        reveals_at=event.reveals_at,
        closed_at=event.closes_at,
        settled=False,
        annulled=False,
        catch_all=event.outcomes[-1] if event.outcomes else "",
    )
    return ((state.questions, event.question, question), (state.standing, event.question, {}))


def forecast_made(event: events.ForecastMade, state: State, _: int) -> tuple[Write, ...]:
    """Mark that a forecast stands."""
    ends = values.NEVER if event.until is None else event.until
    return ((state.standing_on(event.question), event.participant, to_standing(event.at, ends)),)


def forecast_withdrawn(event: events.ForecastWithdrawn, state: State, _: int) -> tuple[Write, ...]:
    """Mark that no forecast stands."""
    standing = state.standing_on(event.question)
    if state.last_of(event.question, event.participant) is None:
        raise KeyError(event.participant)
    return ((standing, event.participant, (event.at, event.at)),)


def question_closed(event: events.QuestionClosed, state: State, _: int) -> tuple[Write, ...]:
    """Set the instant of the early close."""
    return ((state.questions, event.question, state.questions[event.question]._replace(closed_at=event.at)),)


def question_settled(
    event: events.QuestionResolved | events.QuestionAnnulled, state: State, _: int
) -> tuple[Write, ...]:
    """Mark the question as resolved or annulled."""
    question = state.questions[event.question]
    if isinstance(event, events.QuestionResolved):
        question = question._replace(settled=True, annulled=False, resolution=event)
    else:
        question = question._replace(settled=True, annulled=True)
    standing = state.standing[event.question]
    kept = state.unload(standing) if isinstance(standing, dict) else standing
    return ((state.questions, event.question, question), (state.standing, event.question, kept))


def resolution_revoked(event: events.ResolutionRevoked, state: State, _: int) -> tuple[Write, ...]:
    """Mark the question as not resolved; a resolution before an annulment follows as an event of its own."""
    question = state.questions[event.question]._replace(settled=False, annulled=False, resolution=None)
    return ((state.questions, event.question, question),)


def _open_at(command: commands.Command, question: QuestionState) -> int:
    """Return the command's instant. Refuses: question_resolved, question_closed."""
    at = values.read_instant(command.at)
    if question.settled:
        raise Refused("question_resolved", "at", command.at)
    if at >= question.closed_at:
        raise Refused("question_closed", "at", command.at)
    return at


_DESCRIBING = ("title", "tags", "url", "source")


def amend_question(command: commands.AmendQuestion, state: State) -> events.QuestionAmended:
    """Refuses, first that applies: malformed (nothing is given, or only one of contest and weight), out_of_range,
    unknown_contest, unknown_question, contest_finalized, question_not_in_contest.
    """
    described = [name for name in _DESCRIBING if getattr(command, name) is not None]
    if (command.contest is None) != (command.weight is None) or not (described or command.contest):
        raise Refused("malformed", "weight", None, "give one of title, tags, url, source, or contest and weight")
    weight = None
    if command.weight is not None:
        weight = values.read_fixed(command.weight, values.WEIGHT, "weight", 0, values.LARGEST_WEIGHT)
    if len(command.tags or ()) > values.MOST_TAGS:
        raise Refused("out_of_range", "tags", len(command.tags or ()), f"at most {values.MOST_TAGS} tags")
    if command.contest is not None:
        state.contest(command.contest)
    state.question(command.question)
    if command.contest is not None:
        state.open_contest(command.contest)
        if (command.contest, command.question) not in state.entries:
            raise Refused("question_not_in_contest", "question", command.question)
    return events.QuestionAmended(
        at=values.read_instant(command.at),
        question=command.question,
        title=command.title,
        tags=None if command.tags is None else tuple(command.tags),
        url=command.url,
        source=command.source,
        contest=command.contest or "",
        weight=weight,
        reason=command.reason,
    )


def question_amended(_: events.QuestionAmended, __: State, ___: int) -> tuple[Write, ...]:
    """Change nothing: no decision depends on it."""
    return ()


def reschedule_question(command: commands.RescheduleQuestion, state: State) -> events.QuestionRescheduled:
    """Refuses, first that applies: malformed (no time is given), unknown_question, question_resolved,
    wrong_order_of_instants (also: an early close that stays, or a spot, would be before the opening), no_hidden_period
    (the hidden period would be the whole, but makes up a part of a coverage), out_of_order (the question was traded
    outside of the new times).

    Forecasts outside of the new times do not prevent it: they are kept, and have no weight.
    Source: Metaculus's published code (github.com/Metaculus/metaculus), questions/services/common.py, update_question:
    times can be edited at any time, a new scheduled close in the future ends an early close, and scores are computed
    with the times that are now in force.
    """
    given = command.opens_at, command.closes_at, command.reveals_at
    opens_at, closes_at, reveals_at = (None if each is None else values.read_instant(each) for each in given)
    if given == (None, None, None):
        raise Refused("malformed", "closes_at", None, "give one or more of opens_at, closes_at, reveals_at")
    event = events.QuestionRescheduled(
        at=values.read_instant(command.at),
        question=command.question,
        opens_at=opens_at,
        closes_at=closes_at,
        reveals_at=reveals_at,
        reason=command.reason,
    )
    question = state.question(command.question)
    if question.settled:
        raise Refused("question_resolved", "question", command.question)
    entries = [
        entry
        for contest in state.contests
        if not state.contests[contest].finalized and (entry := state.entries.get((contest, command.question)))
    ]
    new = _rescheduled(question, event)
    _check_order(new, entries, command)
    _check_trades(question, new, command)
    return event


def _period_detail(opens_at: int, closes_at: int) -> str:
    """Say what is wrong with the period of a question."""
    return (
        "closes_at is more than 100 years after opens_at" if opens_at < closes_at else "closes_at is not after opens_at"
    )


def _check_order(new: QuestionState, entries: list[EntryState], command: commands.RescheduleQuestion) -> None:
    """Refuses: wrong_order_of_instants, no_hidden_period. entries: in contests that are open."""
    if not new.opens_at < new.closes_at <= new.opens_at + values.LONGEST_PERIOD:
        name = "opens_at" if command.closes_at is None else "closes_at"
        detail = _period_detail(new.opens_at, new.closes_at)
        raise Refused("wrong_order_of_instants", name, getattr(command, name), detail)
    if new.closed_at <= new.opens_at:
        detail = f"the question was closed early, at {values.format_instant(new.closed_at)}"
        remedy = "give closes_at too, which ends the early close"
        raise Refused("wrong_order_of_instants", "opens_at", command.opens_at, detail, remedy=remedy)
    if new.reveals_at is not None and not new.opens_at < new.reveals_at <= new.closes_at:
        remedy = "give a reveals_at that is after the opening and up to the close"
        raise Refused("wrong_order_of_instants", "reveals_at", values.format_instant(new.reveals_at), remedy=remedy)
    first_spot = min([entry.first_spot for entry in entries], default=values.NEVER)
    if first_spot < new.opens_at:
        detail = f"a contest counts the instant {values.format_instant(first_spot)}"
        remedy = "open the question at that instant or before"
        raise Refused("wrong_order_of_instants", "opens_at", command.opens_at, detail, remedy=remedy)
    if new.reveals_at is not None and new.reveals_at == new.closes_at and any(entry.split for entry in entries):
        detail = "a contest counts the hidden period as a part of the coverage, and nothing would be left beside it"
        revealed = values.format_instant(new.reveals_at)
        raise Refused("no_hidden_period", "reveals_at", revealed, detail, remedy="give a reveals_at before the close")


def _check_trades(question: QuestionState, new: QuestionState, command: commands.RescheduleQuestion) -> None:
    """Refuses: out_of_order (the question was traded at the new close or later, or would open later than it did)."""
    if question.traded_at < values.FIRST_INSTANT:
        return
    last = values.format_instant(question.traded_at)
    if question.traded_at >= new.closed_at:
        detail = f"{command.question!r} was traded at {last}, and a closed market cannot trade"
        raise Refused(
            "out_of_order", "closes_at", command.closes_at, detail, remedy="close it after its last trade, or cancel it"
        )
    if new.opens_at > question.opens_at:
        detail = f"{command.question!r} was traded, last at {last}, so that it cannot open later than it did"
        raise Refused("out_of_order", "opens_at", command.opens_at, detail, remedy="leave opens_at out, or cancel it")


def question_rescheduled(event: events.QuestionRescheduled, state: State, _: int) -> tuple[Write, ...]:
    """Replace the times that the event gives; a new close ends an early one."""
    return ((state.questions, event.question, _rescheduled(state.questions[event.question], event)),)


def _rescheduled(question: QuestionState, event: events.QuestionRescheduled) -> QuestionState:
    return question._replace(
        opens_at=question.opens_at if event.opens_at is None else event.opens_at,
        closes_at=question.closes_at if event.closes_at is None else event.closes_at,
        closed_at=question.closed_at if event.closes_at is None else event.closes_at,
        reveals_at=question.reveals_at if event.reveals_at is None else event.reveals_at,
    )


NOTHING = (values.FIRST_INSTANT, values.FIRST_INSTANT)  # what stands after a retraction: any later forecast may follow


def restate_forecasts(command: commands.RestateForecasts, state: State) -> tuple[events.AnyEvent, ...]:
    """Refuses, first that applies: out_of_range, unknown_question, wrong_distribution, unknown_outcome, wrong_length,
    not_summing_to_one, decreasing, open_end_needed, question_closed, wrong_order_of_instants, out_of_order (not after
    the forecast before), nothing_standing (nothing was forecast before, and nothing is given). If several forecasts
    are refused, the first is reported.
    """
    opened, made = state.questions.get(command.question), list[events.ForecastMade]()
    earliest = values.FIRST_INSTANT if opened is None else opened.changed_at
    for number, forecast in enumerate(command.forecasts, 1):
        submitted = forecast.made(command.question, command.participant)
        try:
            made.append(forecast_event(submitted, state, earliest, restated=True))
        except Refused as refused:
            raise refused.about(f"forecast {number}") from None
        earliest = made[-1].at + 1
    state.question(command.question)
    if not made and state.last_of(command.question, command.participant) in {None, NOTHING}:
        raise Refused("nothing_standing", "participant", command.participant, "nothing was forecast there before")
    retracted = events.ForecastsRetracted(
        at=values.read_instant(command.at),
        question=command.question,
        participant=command.participant,
        restated=len(made),
        reason=command.reason,
    )
    return (retracted, *made)


def forecasts_retracted(event: events.ForecastsRetracted, state: State, _: int) -> tuple[Write, ...]:
    """Mark that nothing stands, and that forecasts of any instant may follow."""
    standing = state.standing_on(event.question)
    others = (name for name in state.former.get(event.participant, ()) if name in standing)
    return tuple((standing, name, NOTHING) for name in (event.participant, *others))


DECIDE: dict[type, Decide] = {
    commands.SubmitForecast: submit_forecast,
    commands.WithdrawForecast: withdraw_forecast,
    commands.OpenQuestion: open_question,
    commands.CloseQuestion: close_question,
    commands.ResolveQuestion: resolve_question,
    commands.AnnulQuestion: annul_question,
    commands.CancelMarket: annul_question,
    commands.RevokeResolution: revoke_resolution,
    commands.AmendQuestion: amend_question,
    commands.RescheduleQuestion: reschedule_question,
    commands.RestateForecasts: restate_forecasts,
}
EVOLVE: dict[type, Evolve] = {
    events.ForecastMade: forecast_made,
    events.ForecastWithdrawn: forecast_withdrawn,
    events.QuestionOpened: question_opened,
    events.QuestionClosed: question_closed,
    events.QuestionResolved: question_settled,
    events.QuestionAnnulled: question_settled,
    events.ResolutionRevoked: resolution_revoked,
    events.QuestionAmended: question_amended,
    events.QuestionRescheduled: question_rescheduled,
    events.ForecastsRetracted: forecasts_retracted,
}
