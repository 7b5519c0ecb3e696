"""Rebuild commands from their events: one function for each type of event that is the first of a command.

Deciding the rebuilt command must give the same events. `LOST_DETAILS` lists the details of a command that its events do
not record; without such details, the digest of its content can be rebuilt too.
"""

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import combinations, product
from typing import Any, NamedTuple

import msgspec
from msgspec import UnsetType, structs

from forecast_ledger.ledger.core.exact import WIDE, half_even
from forecast_ledger.ledger.core.values import (
    CUMULATIVE,
    FIRST_INSTANT,
    LARGEST_MEASURE,
    LAST_INSTANT,
    MONEY,
    PROBABILITY,
    WEIGHT,
    format_instant,
    is_instant,
    read_fixed,
)
from forecast_ledger.ledger.deciding.normal_forms import without_fields
from forecast_ledger.ledger.deciding.state import State
from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.answers import ABOVE, BELOW, exact_shares
from forecast_ledger.ledger.model.commands import AnyCommand, Command
from forecast_ledger.ledger.model.events import AnyEvent, Event
from forecast_ledger.ledger.model.given_values import read_given
from forecast_ledger.ledger.model.mismatch import share_text
from forecast_ledger.ledger.model.provenance import Provenance, with_provenance
from forecast_ledger.ledger.model.replies import fields_with_fault
from forecast_ledger.ledger.model.rules import FORMER_PRESETS, RuleSet
from forecast_ledger.ledger.model.trading_rules import PERCENT

TextLookup = Callable[[str], str | None]  # digest -> text; None if the log does not have it


class CommandReading(NamedTuple):
    """One possible content of a command.

    command: the command to decide again. variants: commands that are equal to it, except for fields with defaults; the
    recorded digest is that of one of them, unless lossy. lossy: whether the events may not record the whole content.
    """

    command: AnyCommand
    variants: Sequence[AnyCommand]
    lossy: bool

    def said(self, provenance: Provenance | UnsetType) -> "CommandReading":
        """Return the reading with what the rows of the command say about where it came from."""
        command, *variants = (with_provenance(each, provenance) for each in (self.command, *self.variants))
        return self._replace(command=command, variants=variants)


Rebuilder = Callable[[Any, State, TextLookup], Iterator[CommandReading]]


def instant_text(micros: int) -> str:
    """Return an instant in RFC 3339; one outside the calendar stays a number, which the decider refuses."""
    return format_instant(micros) if FIRST_INSTANT <= micros <= LAST_INSTANT else str(micros)


def optional_instant(micros: int | None) -> str | None:
    """Return an instant in RFC 3339; None if there is none."""
    return None if micros is None else instant_text(micros)


def in_units(value: int, unit: int) -> Decimal:
    """Return value / unit as a decimal.

    >>> in_units(250_000, 10**6)
    Decimal('0.250000')
    """
    return Decimal(value).scaleb(1 - len(str(unit)), WIDE)


_fields_of = lru_cache(maxsize=None)(structs.fields)


def copied(event: Event, kind: type[Command], **units: int) -> dict[str, Any]:
    """Return the fields of a command that an event has too, without those that the event leaves out.

    Instants are in RFC 3339. units: those of the fields that are decimals in the command.

    >>> from forecast_ledger.ledger.model import commands, events
    >>> copied(events.ContestFinalized(at=0, contest="spring"), commands.FinalizeContest)
    {'at': '1970-01-01T00:00:00Z', 'contest': 'spring'}
    """
    fields: dict[str, Any] = {}
    for field in _fields_of(type(event)):
        name, value = field.name, getattr(event, field.name)
        if value != field.default and name in kind.__struct_fields__:
            given = in_units(value, units[name]) if name in units else value
            fields[name] = instant_text(value) if is_instant(name) else given
    return fields


def copies(kind: type[Command], *, lossy: bool = False, **units: int) -> "Rebuilder":
    """Return the rebuilder of a command of which every field is one of its event. lossy: as in `CommandReading`."""

    def rebuild(event: Event, _: State, __: TextLookup) -> Iterator[CommandReading]:
        command: Any = kind(**copied(event, kind, **units))
        yield CommandReading(command, (command,), lossy=lossy)

    return rebuild


def decimal_or_text(text: str) -> Decimal | str:
    """Return the number of a text; a text that is not a number stays one, which the decider refuses."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


def lossy_reading(command: AnyCommand) -> Iterator[CommandReading]:
    """Yield the only reading of a command whose numbers may have had more decimals than their units."""
    yield CommandReading(command, (command,), lossy=True)


def by_outcome(numbers: Sequence[int | None], outcomes: Sequence[str], unit: int = PROBABILITY) -> dict[str, Any]:
    """Return numbers by outcome, without missing ones; by index if there are not as many outcomes."""
    names = outcomes if len(outcomes) == len(numbers) else [*map(str, range(len(numbers)))]
    return {name: in_units(number, unit) for name, number in zip(names, numbers, strict=True) if number is not None}


def current_outcomes_of(question: str, state: State) -> tuple[str, ...]:
    """Return the outcomes that a question has now; none if it is numeric or unknown."""
    question_state = state.questions.get(question)
    return () if question_state is None else question_state.current


def outcomes_of(question: str, state: State) -> tuple[str, ...]:
    """Return the outcomes that a question has or had; none if it is numeric or unknown."""
    question_state = state.questions.get(question)
    return () if question_state is None else question_state.outcomes


class _Fields(msgspec.Struct):
    """The fields of a decision, as in the text that was made of them."""

    action: str | None = None
    bets: tuple[commands.Bet, ...] | None = None
    sells: tuple[commands.Sale, ...] | None = None
    reasoning: str | None = None


_decoder = msgspec.json.Decoder(_Fields, float_hook=Decimal)


def _quote_prices(event: events.PricesQuoted, state: State, _: TextLookup) -> Iterator[CommandReading]:
    fields: dict[str, Any] = {
        "at": instant_text(event.at),
        "source": event.source,
        "quoted_at": instant_text(event.quoted_at),
    }
    variants: list[AnyCommand] = []
    for given in dict.fromkeys((event.quotes, tuple(map(_without_means, event.quotes)))):
        quotes = [commands.Prices(question=quote.question, **_sides(quote, state)) for quote in given]
        for each in event.refused:
            try:
                quotes.insert(each.place, read_given(each.given))
            except (msgspec.DecodeError, RecursionError, UnicodeError):
                return
        skipping = [commands.Quote(**fields, quotes=tuple(quotes), skip_bad=True)]
        variants += skipping if event.refused else [structs.replace(skipping[0], skip_bad=False), *skipping]
        if len(quotes) == 1:
            variants.append(commands.Quote(**fields, **structs.asdict(quotes[0])))
    yield CommandReading(variants[0], variants, lossy=True)


def _without_means(quote: events.Quote) -> events.Quote:
    """Return a quote without the prices that are the means of bid and ask, which its command need not have had."""
    sides = zip(quote.prices, quote.bids, quote.asks, strict=False)  # bids and asks may be empty
    prices = [
        None if bid is not None and ask is not None and price == half_even(bid + ask, 2) else price
        for price, bid, ask in sides
    ]
    return structs.replace(quote, prices=tuple(prices)) if prices else quote


def _sides(quote: events.Quote, state: State) -> dict[str, dict[str, Any] | None]:
    """Return the prices, bids and asks of a quote by outcome; of a binary question, those of yes."""
    question, outcomes = state.questions.get(quote.question), outcomes_of(quote.question, state)
    sides: dict[str, dict[str, Any] | None] = {}
    for name in ("prices", "bids", "asks", "bid_sizes", "ask_sizes"):
        prices = by_outcome(getattr(quote, name), outcomes, MONEY if name.endswith("sizes") else PROBABILITY)
        if question is not None and question.kind == "binary":
            prices.pop("no", None)
        sides[name] = prices or None
    return sides


def _call(call: events.ModelCall | None, texts: TextLookup) -> commands.ModelCall | None:
    """Return the call in a command."""
    if call is None:
        return None
    return commands.ModelCall(
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        cost=None if call.cost is None else in_units(call.cost, MONEY),
        latency_ms=call.latency_ms,
        settings=call.settings or None,
        shown=tuple((texts(call.shown) or "").split("\n")) if call.shown else None,
    )


def _reading(command: commands.RecordDecision | commands.RecordFailedCall) -> Iterator[CommandReading]:
    """Yield the reading of a command, of which only the cost may have had more decimals."""
    yield CommandReading(command, (command,), lossy=command.call is not None and command.call.cost is not None)


def _failed_call(event: events.CallFailed, _: State, texts: TextLookup) -> Iterator[CommandReading]:
    yield from _reading(
        commands.RecordFailedCall(**copied(event, commands.RecordFailedCall) | _call_fields(event, texts))
    )


def _call_fields(
    event: events.DecisionRecorded | events.DecisionMalformed | events.CallFailed, texts: TextLookup
) -> dict[str, Any]:
    return {"call": _call(event.call, texts), "prompt": texts(event.prompt) if event.prompt else None}


def _attempt_fields(event: events.DecisionRecorded | events.DecisionMalformed, texts: TextLookup) -> dict[str, Any]:
    fields = {name: getattr(event, name) for name in ("contest", "participant", "period", "attempt")}
    return {"at": instant_text(event.at)} | fields | _call_fields(event, texts)


def _record_decision(event: events.DecisionRecorded, _: State, texts: TextLookup) -> Iterator[CommandReading]:
    """Yield two readings: the text of the response alone; or fields, with or without a response."""
    attempt, response = _attempt_fields(event, texts), texts(event.response) if event.response else None
    if response is not None:
        yield from _reading(commands.RecordDecision(**attempt, response=response))
    bets = tuple(
        commands.Bet(market_id=bet.question, side=bet.side, amount=in_units(bet.amount, MONEY)) for bet in event.bets
    )
    sells = tuple(
        commands.Sale(position_id=sale.position, percentage=in_units(sale.percentage, PERCENT)) for sale in event.sells
    )
    variants = [
        commands.RecordDecision(
            **attempt,
            action=event.action,
            bets=bet_list,
            sells=sell_list,
            reasoning=event.reasoning,
            response=response,
        )
        for bet_list, sell_list in product([bets] if bets else [(), None], [sells] if sells else [(), None])
    ]
    yield CommandReading(variants[0], variants, lossy=True)


def _malformed_decision(event: events.DecisionMalformed, state: State, texts: TextLookup) -> Iterator[CommandReading]:
    """Yield the readings: the response alone; the fields that it was made of; or other fields beside it, now lost."""
    attempt, response = _attempt_fields(event, texts), texts(event.response) or ""
    yield from _reading(commands.RecordDecision(**attempt, response=response))
    try:
        fields = _decoder.decode(response)
    except (msgspec.DecodeError, InvalidOperation, RecursionError, UnicodeError):
        pass
    else:
        yield from _reading(commands.RecordDecision(**attempt, **msgspec.structs.asdict(fields)))
    contest = state.contests.get(event.contest)
    account = state.accounts.get(state.account_key(event.contest, event.participant))
    if contest is not None and contest.rules.trading is not None and account is not None:
        faulty = fields_with_fault(event.fault, contest.rules.trading, account.cash)
        if faulty:
            command = commands.RecordDecision(**attempt, **faulty, response=response)
            yield CommandReading(command, (command, without_fields(command)), lossy=True)


def _record_trade(
    event: events.TradeRecorded, later: Sequence[events.AnyEvent], state: State
) -> Iterator[CommandReading]:
    """Yield the readings: shares of one outcome, of all but one or against it, or of all.

    later: the events after the first, of which those of the other outcomes come first.
    """
    parts = [event, *(each for each in later[: event.parts - 1] if isinstance(each, events.TradeRecorded))]
    every, traded = outcomes_of(event.question, state), {part.outcome for part in parts}
    current = current_outcomes_of(event.question, state)
    names = [name for index, name in enumerate(every) if index in traded]
    others = [name for name in current if name not in names]
    name, which = names[0] if names else str(event.outcome), list[dict[str, Any]]()
    if event.parts == len(current) and not event.against:
        which.append({})
    if event.parts == len(current) - 1 and not event.against:
        which += [{"all_but": other} for other in others[:1]]
    if event.parts == 1:
        which.append({"all_but" if event.against else "outcome": name})
    for chosen in which:
        yield from lossy_reading(
            commands.RecordTrade(
                at=instant_text(event.at),
                contest=event.contest,
                participant=event.participant,
                question=event.question,
                **chosen,
                action="buy" if event.shares > 0 else "sell",
                shares=in_units(abs(event.shares), MONEY),
                amount=in_units(sum(part.amount for part in parts), MONEY),
                fee=in_units(event.fee, MONEY),
            )
        )


# The details of a command that its events do not record, by command type; with them, its digest cannot be rebuilt.
LOST_DETAILS: dict[str, str] = {
    "open_question": "levels beyond nine decimals; bounds below 1e-60, which count as 0; "
    "instants of a date question beyond µs",
    "submit_forecast": "decimals beyond the unit of its numbers; the difference between the sum of probabilities and 1",
    "resolve_question": "decimals of payouts beyond nine, and their sum, even if one payout is 1; a value below 1e-60; "
    "an instant beyond µs",
    "open_contest": "decimals of pool and payable_unit beyond six; the day of the week on which a cohort starts",
    "add_question": "decimals of weights beyond six",
    "quote": "decimals of prices beyond nine",
    "record_decision": "decimals of amounts, percentages and costs beyond six; the case of an action; the fields "
    "beside the response, if the reply is not a valid decision",
    "record_failed_call": "decimals of the cost beyond six",
    "deposit_cash": "decimals of the amount beyond six",
    "withdraw_cash": "decimals of the amount beyond six",
    "record_trade": "decimals of shares, amount and fee beyond six",
}


def rebuilt_commands(recorded: Sequence[AnyEvent], state: State, texts: TextLookup) -> list[CommandReading]:
    """Return every reading of the command of these events; none if the first is not the first of a command.

    recorded: one or more events, without the texts that come before them. state: before the command. If there are
    several readings, the recorded digest decides; if it is the digest of none, the last reading counts, if it is lossy.
    """
    event, *later = recorded
    if isinstance(event, events.ForecastsRetracted):
        return [_restate_forecasts(event, later, state)]
    if isinstance(event, events.TradeRecorded):
        return list(_record_trade(event, later, state))
    rebuild = REBUILDERS.get(type(event))
    return [] if rebuild is None else list(rebuild(event, state, texts))


# --- questions


def _open_question(event: events.QuestionOpened, _: State, __: TextLookup) -> Iterator[CommandReading]:
    span, command_range = event.range, None
    if span is not None:
        bounds = [decimal_or_text(text) for text in (span.lower, span.upper, span.zero_point) if text is not None]
        command_range = commands.Range(
            lower=bounds[0],
            upper=bounds[1],
            bins=span.bins if span.bins or not span.measures else None,
            open_lower=span.open_lower,
            open_upper=span.open_upper,
            zero_point=bounds[2] if len(bounds) > 2 else None,
            levels=tuple(in_units(level, PROBABILITY) for level in span.levels) or None,
            decimals=span.decimals if span.decimals or span.measures else None,
            samples=span.samples or None,
        )
    shape = {"outcomes": None if event.kind == "binary" else event.outcomes or None, "range": command_range}
    command = commands.OpenQuestion(**copied(event, commands.OpenQuestion) | shape)
    empty = {"tags": (), "url": "", "source": ""}  # counts like a field that is left out
    unsaid = [name for name in empty if not getattr(event, name)]
    variants = [
        structs.replace(command, **{name: empty[name] for name in names})
        for size in range(len(unsaid) + 1)
        for names in combinations(unsaid, size)
    ]
    rounded = event.kind == "date"  # bounds, to µs
    yield CommandReading(command, variants, lossy=rounded or (span is not None and (span.measures > 0 or 0 in bounds)))


def _submit_forecast(event: events.ForecastMade, state: State, _: TextLookup) -> Iterator[CommandReading]:
    yield from lossy_reading(_forecast(event, state))


def _restate_forecasts(event: events.ForecastsRetracted, later: Sequence[AnyEvent], state: State) -> CommandReading:
    made = [_forecast(each, state) for each in later if isinstance(each, events.ForecastMade)]
    names = commands.RestatedForecast.__struct_fields__
    restated = [commands.RestatedForecast(**{name: getattr(each, name) for name in names}) for each in made]
    command = commands.RestateForecasts(**copied(event, commands.RestateForecasts), forecasts=tuple(restated))
    return CommandReading(command, (command,), lossy=False)


def _forecast(event: events.ForecastMade, state: State) -> commands.SubmitForecast:
    question = state.questions.get(event.question)
    binary = question is not None and question.kind == "binary"
    numbers = event.probabilities if event.normalized is None else event.normalized.shares
    return commands.SubmitForecast(
        at=instant_text(event.at),
        question=event.question,
        participant=event.participant,
        probability=in_units(numbers[0], PROBABILITY) if binary and numbers else None,
        probabilities=None if binary else by_outcome(numbers, current_outcomes_of(event.question, state)) or None,
        cdf=None if event.points else tuple(in_units(height, CUMULATIVE) for height in event.cdf) or None,
        quantiles=_measures(event.quantiles, question.range if question else None) or None,
        samples=_measures(event.samples, question.range if question else None) or None,
        attestation=event.attestation,
        until=optional_instant(event.until),
        points=None if event.points is None else _points(event.points),
        normalized=None if event.normalized is None else event.normalized.rule,
    )


def _points(stated: events.StatedPoints) -> commands.Points:
    return commands.Points(
        levels=tuple(in_units(level, PROBABILITY) for level in stated.levels),
        quantiles=tuple(decimal_or_text(text) for text in stated.quantiles),
        method=stated.method,
    )


def _measures(measures: tuple[int, ...], span: events.NumericRange | None) -> tuple[Decimal, ...]:
    """Return quantiles or samples as numbers; a rounded closed end is that end, which may have more decimals."""
    decimals = span.decimals if span is not None else 0
    exact = [Decimal(units).scaleb(-decimals, WIDE) for units in measures]
    if span is None:
        return tuple(exact)
    closed = [*([] if span.open_lower else [span.lower]), *([] if span.open_upper else [span.upper])]
    ends = {
        read_fixed(Decimal(end), 10**decimals, "range", -LARGEST_MEASURE, LARGEST_MEASURE): Decimal(end)
        for end in closed
    }
    return tuple(ends.get(units, number) for units, number in zip(measures, exact, strict=True))


def _change_outcomes(event: events.OutcomesChanged, _: State, __: TextLookup) -> Iterator[CommandReading]:
    lists: dict[str, Any] = {"add": event.added or None, "remove": event.removed or None}
    command = commands.ChangeOutcomes(**copied(event, commands.ChangeOutcomes), **lists)
    unsaid = "remove" if event.added else "add"  # empty, it counts like a field that is left out
    yield CommandReading(command, [command, structs.replace(command, **{unsaid: ()})], lossy=False)


def _resolve_question(event: events.QuestionResolved, state: State, _: TextLookup) -> Iterator[CommandReading]:
    question, outcomes = state.questions.get(event.question), outcomes_of(event.question, state)
    value = decimal_or_text(event.value) if event.value else None
    dated = isinstance(value, str)  # an answer to a date question, rounded to µs
    answers: list[dict[str, Any]] = [{}]
    if event.value in {BELOW, ABOVE}:
        value, dated, answers = None, False, [{"outcome": event.value}]
    elif event.payouts:
        answers = [{"payouts": _current_payouts(event.payouts, event.payout_unit, event.question, state)}]
    elif 0 <= event.outcome < len(outcomes):
        alone = tuple(PROBABILITY * (index == event.outcome) for index in range(len(outcomes)))
        whole = _current_payouts(alone, 0, event.question, state)
        answers = [{"outcome": outcomes[event.outcome]}, {"payouts": whole}]
    elif outcomes:
        answers = [{"outcome": str(event.outcome)}]
    known = [instant_text(event.known_at)]
    if question is not None and event.known_at == min(event.at, question.closes_at):
        known.append("")
    variants = [
        commands.ResolveQuestion(
            at=instant_text(event.at), question=event.question, value=value, known_at=known_at or None, **answer
        )
        for answer, known_at in product(answers, known)
    ]
    yield CommandReading(variants[0], variants, lossy=bool(outcomes) or dated or value == 0)


def _current_payouts(payouts: tuple[int, ...], unit: int, question: str, state: State) -> dict[str, Any]:
    """Return payouts by outcome, without those of 0 for outcomes that were removed."""
    names, current = by_outcome(payouts, outcomes_of(question, state)), current_outcomes_of(question, state)
    shares = zip(names, exact_shares(payouts, unit), strict=True)
    return {name: share_text(share) for name, share in shares if share or name in current}


def _annul_question(event: events.QuestionAnnulled, _: State, __: TextLookup) -> Iterator[CommandReading]:
    variants: list[AnyCommand] = [commands.CancelMarket(**copied(event, commands.CancelMarket))]
    if event.policy == "refund_cost":
        variants.append(commands.AnnulQuestion(**copied(event, commands.AnnulQuestion)))
    yield CommandReading(variants[0], variants, lossy=False)


# --- contests


def _open_contest(event: events.ContestOpened, _: State, __: TextLookup) -> Iterator[CommandReading]:
    """Yield two readings: the rule set by a preset's name, current or former, and the whole rule set."""
    pool, starts_at = in_units(event.pool, MONEY), optional_instant(event.starts_at)
    others = copied(event, commands.OpenContest, payable_unit=MONEY)

    def variants(rules: RuleSet | str) -> Iterator[AnyCommand]:
        for has_pool, has_start in product((True, False), (True, False)):
            given = {"pool": pool if has_pool or pool else None, "starts_at": starts_at if has_start else None}
            yield commands.OpenContest(**others | given | {"rules": rules})

    by_name, whole = [*variants(event.rules.name)], [*variants(event.rules)]
    is_former = event.rules in FORMER_PRESETS.get(event.rules.name, ())
    yield CommandReading((whole if is_former else by_name)[0], by_name, lossy=True)
    yield CommandReading(whole[0], whole, lossy=True)


def _add_question(event: events.QuestionAdded, _: State, __: TextLookup) -> Iterator[CommandReading]:
    spots = tuple(commands.Spot(at=instant_text(spot.at), weight=spot.weight) for spot in event.spots) or None
    fields = copied(event, commands.AddQuestion, weight=WEIGHT, hidden_coverage_weight=WEIGHT)
    yield from lossy_reading(commands.AddQuestion(**fields | {"spots": spots}))


REBUILDERS: dict[type, Rebuilder] = {
    events.QuestionOpened: _open_question,
    events.ForecastMade: _submit_forecast,
    events.ForecastWithdrawn: copies(commands.WithdrawForecast),
    events.QuestionClosed: copies(commands.CloseQuestion),
    events.ParticipantRenamed: copies(commands.RenameParticipant),
    events.QuestionAmended: copies(commands.AmendQuestion, weight=WEIGHT),
    events.QuestionRescheduled: copies(commands.RescheduleQuestion),
    events.OutcomesChanged: _change_outcomes,
    events.QuestionResolved: _resolve_question,
    events.QuestionAnnulled: _annul_question,
    events.ResolutionRevoked: copies(commands.RevokeResolution),
    events.ContestOpened: _open_contest,
    events.QuestionAdded: _add_question,
    events.ParticipantEnrolled: copies(commands.EnrolParticipant),
    events.ParticipantExcluded: copies(commands.ExcludeParticipant),
    events.ContestFinalized: copies(commands.FinalizeContest),
    events.PrizePaid: copies(commands.PayPrizes),
    events.PricesQuoted: _quote_prices,
    events.CashDeposited: copies(commands.DepositCash, lossy=True, amount=MONEY),
    events.CashWithdrawn: copies(commands.WithdrawCash, lossy=True, amount=MONEY),
    events.DecisionRecorded: _record_decision,
    events.DecisionMalformed: _malformed_decision,
    events.CallFailed: _failed_call,
    events.VersionRequired: copies(commands.RequireVersion),
}
