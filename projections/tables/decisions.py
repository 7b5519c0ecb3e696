"""The tables of decisions: every attempt, every call of a model, and every leg that was refused."""

from typing import Any

from forecast_ledger.ledger.model import events
from forecast_ledger.projections.core.column_values import (
    Values,
    columns_of_rows,
)
from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.tables.schemas import Projection, schema

_DECISIONS = schema("""
    every attempt at a decision

    contest*
    participant*  id       the trader
    period*       count    number of the decision period
    attempt*      count    number of the attempt at the decision
    log_position  count    log position of the event
    at            instant  when the attempt was made
    outcome       text     BET, SELL, HOLD, malformed, or defaulted (malformed, and HOLD by default)
    fault         text     why the reply is malformed
    legs          count    number of legs requested
    executed      count    number of legs executed
    prompt        text     digest of the prompt
    response      text     digest of the response
    reasoning     text     the stated reasoning
""")


def decisions_values(analysis: Analysis) -> list[Values]:
    """One row for each attempt at a decision."""
    rows = []
    for position, event, defaulted in analysis.facts.books.attempts:
        row: list[Any] = [event.contest, event.participant, event.period, event.attempt, position, event.at]
        if isinstance(event, events.DecisionMalformed):
            row += ["defaulted" if defaulted else "malformed", event.fault, 0, 0, event.prompt, event.response, ""]
        else:
            legs = len(event.bets) + len(event.sells)
            row += [event.action, "", legs, event.executed, event.prompt, event.response, event.reasoning]
        rows.append(row)
    return columns_of_rows(rows, _DECISIONS.columns)


_MODEL_CALLS = schema("""
    every call of a model: each attempt at a decision, and each call that failed

    contest*
    participant*   id       the trader
    log_position*  count    log position of the event
    period         count    number of the decision period
    attempt        count    number of the attempt at the decision; empty if the call failed
    at             instant  when the attempt was made, or the call failed
    outcome        text     BET, SELL, HOLD, malformed, or failed
    error          text     why the call failed
    input_tokens   count    tokens of the input; like the columns after it, empty if not recorded
    output_tokens  count    tokens of the output
    cost           money    cost of the call
    latency        seconds  time that the call took
    settings       text     settings of the model
    shown          text     digest of the text that lists the ids of the markets shown
""")


def model_calls_values(analysis: Analysis) -> list[Values]:
    """One row for each attempt at a decision, and one for each call that failed."""
    books = analysis.facts.books
    rows = [_model_call(position, event, event.attempt) for position, event, _ in books.attempts]
    rows += [_model_call(position, event, None) for position, event in books.failures]
    return columns_of_rows(rows, _MODEL_CALLS.columns)


def _model_call(position: int, event: Any, attempt: int | None) -> list[Any]:
    call: events.ModelCall = event.call or events.ModelCall()
    return [
        event.contest,
        event.participant,
        position,
        event.period,
        attempt,
        event.at,
        getattr(event, "action", "failed" if attempt is None else "malformed"),
        getattr(event, "error", ""),
        call.input_tokens,
        call.output_tokens,
        call.cost,
        None if call.latency_ms is None else call.latency_ms * 1_000,
        ", ".join(f"{name}={value}" for name, value in call.settings.items()),
        call.shown,
    ]


_REFUSED_LEGS = schema("""
    every leg that was refused

    contest*
    participant*   id     the trader
    log_position*  count  log position of the event
    period         count  number of the decision period
    attempt        count  number of the attempt at the decision
    leg            count  number of the leg within the decision
    code           text   refusal code
""")


def refused_legs_values(analysis: Analysis) -> list[Values]:
    """One row for each refused leg."""
    rows = [
        [event.contest, event.participant, position, event.period, event.attempt, event.leg, event.code]
        for position, event in analysis.facts.books.refusals
    ]
    return columns_of_rows(rows, _REFUSED_LEGS.columns)


DECISIONS: dict[str, Projection] = {
    "decisions": Projection(1, _DECISIONS, decisions_values, reads=("own_account",), division="account_entries"),
    "model_calls": Projection(
        1, _MODEL_CALLS, model_calls_values, reads=("own_account",), division="account_entries", final=True
    ),
    "refused_legs": Projection(
        1, _REFUSED_LEGS, refused_legs_values, reads=("own_account",), division="account_entries", final=True
    ),
}
