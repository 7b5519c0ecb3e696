"""Rebuild the commands of trading from their events."""

from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from itertools import product
from typing import Any

import msgspec
from msgspec import structs

from forecast_ledger.ledger.auditing.command_readings import (
    CommandReading,
    Rebuilder,
    TextLookup,
    by_outcome,
    copied,
    copies,
    current_outcomes_of,
    in_units,
    instant_text,
    lossy_reading,
    outcomes_of,
)
from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import MONEY, PROBABILITY
from forecast_ledger.ledger.deciding.normal_forms import without_fields
from forecast_ledger.ledger.deciding.state import State
from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.given_prices import read_given
from forecast_ledger.ledger.model.replies import fields_with_fault
from forecast_ledger.ledger.model.trading_rules import PERCENT


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
    own = {name: getattr(event, name) for name in ("contest", "participant", "period", "attempt")}
    return {"at": instant_text(event.at)} | own | _call_fields(event, texts)


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


def record_trade(
    event: events.TradeRecorded, rest: Sequence[events.AnyEvent], state: State
) -> Iterator[CommandReading]:
    """Yield the readings: shares of one outcome, of all but one, or of all.

    rest: the events after the first, of which those of the other outcomes come first.
    """
    parts = [event, *(each for each in rest[: event.parts - 1] if isinstance(each, events.TradeRecorded))]
    every, traded = outcomes_of(event.question, state), {part.outcome for part in parts}
    current = current_outcomes_of(event.question, state)
    names = [name for index, name in enumerate(every) if index in traded]
    others = [name for name in current if name not in names]
    which: list[dict[str, str]] = []
    if event.parts == len(current):
        which.append({})
    if event.parts == len(current) - 1:
        which += [{"all_but": name} for name in others[:1]]
    if event.parts == 1:
        which.append({"outcome": names[0] if names else str(event.outcome)})
    for fields in which:
        yield from lossy_reading(
            commands.RecordTrade(
                at=instant_text(event.at),
                contest=event.contest,
                participant=event.participant,
                question=event.question,
                **fields,
                action="buy" if event.shares > 0 else "sell",
                shares=in_units(abs(event.shares), MONEY),
                amount=in_units(sum(part.amount for part in parts), MONEY),
                fee=in_units(event.fee, MONEY),
            )
        )


TRADING_REBUILDERS: dict[type, Rebuilder] = {
    events.PricesQuoted: _quote_prices,
    events.CashDeposited: copies(commands.DepositCash, lossy=True, amount=MONEY),
    events.CashWithdrawn: copies(commands.WithdrawCash, lossy=True, amount=MONEY),
    events.DecisionRecorded: _record_decision,
    events.DecisionMalformed: _malformed_decision,
    events.CallFailed: _failed_call,
}
