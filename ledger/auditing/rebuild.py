"""Rebuild commands from their events: one function for each type of event that is the first of a command.

Deciding the rebuilt command must give the same events. `LOST_DETAILS` lists the details of a command that its events do
not record; without such details, the digest of its content can be rebuilt too.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import combinations, product
from typing import Any

from msgspec import structs

from forecast_ledger.ledger.auditing import rebuild_trading
from forecast_ledger.ledger.auditing.command_readings import (
    CommandReading,
    Rebuilder,
    TextLookup,
    by_outcome,
    copied,
    copies,
    current_outcomes_of,
    decimal_or_text,
    in_units,
    instant_text,
    lossy_reading,
    optional_instant,
    outcomes_of,
)
from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.core.values import CUMULATIVE, LARGEST_MEASURE, MONEY, PROBABILITY, WEIGHT, read_fixed
from forecast_ledger.ledger.deciding.state import State
from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.answers import ABOVE, BELOW, exact_shares
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import AnyEvent
from forecast_ledger.ledger.model.mismatch import share_text
from forecast_ledger.ledger.model.rules import FORMER_PRESETS, RuleSet

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
    event, *rest = recorded
    if isinstance(event, events.ForecastsRetracted):
        return [_restate_forecasts(event, rest, state)]
    if isinstance(event, events.TradeRecorded):
        return list(rebuild_trading.record_trade(event, rest, state))
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


def _restate_forecasts(event: events.ForecastsRetracted, rest: Sequence[AnyEvent], state: State) -> CommandReading:
    made = [_forecast(each, state) for each in rest if isinstance(each, events.ForecastMade)]
    names = commands.RestatedForecast.__struct_fields__
    restated = [commands.RestatedForecast(**{name: getattr(each, name) for name in names}) for each in made]
    command = commands.RestateForecasts(**copied(event, commands.RestateForecasts), forecasts=tuple(restated))
    return CommandReading(command, (command,), lossy=False)


def _forecast(event: events.ForecastMade, state: State) -> commands.SubmitForecast:
    question = state.questions.get(event.question)
    binary = question is not None and question.kind == "binary"
    numbers = event.probabilities
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
    **rebuild_trading.TRADING_REBUILDERS,
}
