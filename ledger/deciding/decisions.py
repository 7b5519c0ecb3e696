"""Decide record_decision: a participant's decision for a period, which may take several attempts."""

from hashlib import sha256
from typing import Any

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.deciding.accounts import trading_account
from forecast_ledger.ledger.deciding.legs import carry_out_legs
from forecast_ledger.ledger.deciding.state import AccountState, AttemptCounts, Decide, Evolve, State, Write
from forecast_ledger.ledger.model import commands, events, replies
from forecast_ledger.ledger.model.trading_rules import Trading, period_number

_LAST_PERIOD = 10**9  # where periods are numbers


def record_decision(command: commands.RecordDecision, state: State) -> tuple[events.AnyEvent, ...]:
    """Return the texts to keep, the decision, and one event for each of its legs.

    If the reply is not a valid decision, return its texts and DecisionMalformed; after the last attempt that the rules
    allow, also DecisionDefaulted, which counts as HOLD.

    Refuses, first that applies: malformed (neither an action nor a response), unknown_contest, contest_finalized,
    not_trading, not_enrolled, contest_complete, wrong_period, cohort_not_deciding, decision_taken, wrong_attempt,
    out_of_order.
    """
    at, key = values.read_instant(command.at), _account_key(command)
    fields = any(part is not None for part in (command.action, command.bets, command.sells, command.reasoning))
    if not fields and command.response is None:
        raise Refused("malformed", "response", None, "give either an action with its fields, or the text of a response")
    contest, account = trading_account(command.contest, command.participant, state)
    trading = contest.rules.trading or Trading()
    attempts = state.attempts.get((command.contest, command.participant, command.period), AttemptCounts())
    _check_command(command, account, attempts, state)
    response = command.response
    reply = (
        replies.reply_from_fields(command)
        if fields
        else replies.read_reply(response or "", trading.replies, null_lists=state.null_lists)
    )
    fault = replies.first_fault(reply, trading, account.cash)
    if fault and response is None:
        response = replies.reply_text(command)
    prompt, reply_digest = _digest(command.prompt), _digest(response)
    texts = [
        events.TextKept(at=at, digest=digest, text=text)
        for digest, text in {prompt: command.prompt, reply_digest: response}.items()
        if text is not None and digest not in state.texts
    ]
    attempt = {"at": at, **key, "period": command.period, "attempt": command.attempt}
    if fault or reply is None:
        is_last = attempts.malformed + 1 >= trading.attempts
        malformed = events.DecisionMalformed(**attempt, fault=fault, prompt=prompt, response=reply_digest)
        hold = events.DecisionDefaulted(at=at, **key, period=command.period)
        return (*texts, malformed, hold) if is_last else (*texts, malformed)
    legs = carry_out_legs(reply, command, at, contest, state)
    decision = events.DecisionRecorded(
        **attempt,
        action=reply.action,  # type: ignore[arg-type]
        bets=reply.bets,
        sells=reply.sells,
        executed=sum(type(leg) is not events.LegRefused for leg in legs),
        reasoning=reply.reasoning,
        prompt=prompt,
        response=reply_digest,
    )
    return (*texts, decision, *legs)


def _check_command(
    command: commands.RecordDecision, account: AccountState, attempts: AttemptCounts, state: State
) -> None:
    """Refuse a decision that is not due: first that applies, contest_complete, wrong_period, cohort_not_deciding,
    decision_taken, wrong_attempt, out_of_order.
    """
    at, contest = values.read_instant(command.at), state.contests[command.contest]
    trading = contest.rules.trading or Trading()
    if contest.complete():
        raise Refused("contest_complete", "contest", command.contest)
    due = (
        period_number(trading, contest.starts_at, at)
        if trading.period_days
        else min(max(command.period, 1), _LAST_PERIOD)
    )
    if command.period != due or at < contest.starts_at:
        started = values.format_instant(contest.starts_at)
        raise Refused(
            "wrong_period", "period", command.period, f"at is in period {due} of the contest that started at {started}"
        )
    newer = sum(start > contest.starts_at for start in state.cohorts.get(contest.series, ()))
    if trading.deciding_cohorts and trading.cohorts == "weekly" and newer >= trading.deciding_cohorts:
        raise Refused("cohort_not_deciding", "contest", command.contest)
    if attempts.taken:
        raise Refused("decision_taken", "period", command.period)
    if command.attempt != attempts.made + 1:
        raise Refused("wrong_attempt", "attempt", command.attempt, f"the next attempt is {attempts.made + 1}")
    if at < account.decided_at:
        raise Refused("out_of_order", "at", command.at)


def text_kept(event: events.TextKept, state: State, _: int) -> tuple[Write, ...]:
    """Remember that the log has the text."""
    return ((state.texts, event.digest, True),)


def leg_refused(event: events.LegRefused, state: State, _: int) -> tuple[Write, ...]:
    """Check that the account exists; a refused leg does not change the state."""
    state.accounts[event.contest, event.participant]
    return ()


def _account_key(command: commands.RecordDecision) -> dict[str, Any]:
    return {"contest": command.contest, "participant": command.participant}


def _digest(text: str | None) -> str:
    return "" if text is None else sha256(text.encode()).hexdigest()


DECIDE: dict[type, Decide] = {
    commands.RecordDecision: record_decision,
}
EVOLVE: dict[type, Evolve] = {
    events.TextKept: text_kept,
    events.LegRefused: leg_refused,
}
