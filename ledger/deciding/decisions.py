"""Decide a participant's decision for a period, which may take several attempts, and failed calls of its model."""

from typing import Any

from msgspec import structs

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.deciding.accounts import trading_account
from forecast_ledger.ledger.deciding.state import AccountState, AttemptCounts, Decide, Evolve, State, Write
from forecast_ledger.ledger.deciding.trades import carry_out_legs, traded
from forecast_ledger.ledger.model import commands, events, replies
from forecast_ledger.ledger.model.replies import recorded_call, text_digest
from forecast_ledger.ledger.model.trading_rules import Trading, period_number

_LAST_PERIOD = 10**9  # where periods are numbers


def record_decision(command: commands.RecordDecision, state: State) -> tuple[events.AnyEvent, ...]:
    """Return the texts to keep, the decision, and one event for each of its legs.

    If the reply is not a valid decision, return its texts and DecisionMalformed; after the last attempt that the rules
    allow, also DecisionDefaulted, which counts as HOLD.

    Refuses, first that applies: malformed (neither an action nor a response; an empty call), out_of_range,
    unknown_contest, contest_finalized, not_trading, not_enrolled, contest_complete, wrong_period, cohort_not_deciding,
    decision_taken, wrong_attempt, out_of_order.
    """
    at, key = values.read_instant(command.at), _account_key(command)
    fields = any(part is not None for part in (command.action, command.bets, command.sells, command.reasoning))
    if not fields and command.response is None:
        raise Refused("malformed", "response", None, "give either an action with its fields, or the text of a response")
    call, shown = recorded_call(command.call)
    contest, account = trading_account(command.contest, command.participant, state)
    trading = contest.rules.trading or Trading()
    attempts = _check_due(command, state)
    _check_attempt(command, account, attempts)
    response = command.response
    reply = (
        replies.reply_from_fields(command)
        if fields
        else replies.read_reply(response or "", trading.replies, null_lists=state.null_lists)
    )
    fault = replies.first_fault(reply, trading, account.cash)
    if fault and response is None:
        response = replies.reply_text(command)
    texts, (prompt, reply_digest, _) = _kept_texts(at, (command.prompt, response, shown), state)
    attempt = {"at": at, **key, "period": command.period, "attempt": command.attempt, "call": call}
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


def record_failed_call(command: commands.RecordFailedCall, state: State) -> tuple[events.AnyEvent, ...]:
    """Return the texts to keep, and the failed call.

    Refuses, first that applies: malformed (an empty call), out_of_range, unknown_contest, contest_finalized,
    not_trading, not_enrolled, contest_complete, wrong_period, cohort_not_deciding, decision_taken.
    """
    at, (call, shown) = values.read_instant(command.at), recorded_call(command.call)
    trading_account(command.contest, command.participant, state)
    _check_due(command, state)
    texts, (prompt, _) = _kept_texts(at, (command.prompt, shown), state)
    key = _account_key(command)
    failed = events.CallFailed(at=at, **key, period=command.period, error=command.error, prompt=prompt, call=call)
    return (*texts, failed)


def _kept_texts(at: int, texts: tuple[str | None, ...], state: State) -> tuple[list[events.TextKept], tuple[str, ...]]:
    """Return an event for each text that the log does not have yet, and the digest of each text."""
    by_digest = {text_digest(text): text for text in texts}
    kept = [
        events.TextKept(at=at, digest=digest, text=text)
        for digest, text in by_digest.items()
        if text is not None and digest not in state.texts
    ]
    return kept, tuple(map(text_digest, texts))


def _check_due(command: commands.RecordDecision | commands.RecordFailedCall, state: State) -> AttemptCounts:
    """Return the attempts at a decision that is due.

    Refuses otherwise, first that applies: contest_complete, wrong_period, cohort_not_deciding, decision_taken.
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
    key = state.account_key(command.contest, command.participant)
    attempts = state.attempts.get((*key, command.period), AttemptCounts())
    if attempts.taken:
        raise Refused("decision_taken", "period", command.period)
    return attempts


def _check_attempt(command: commands.RecordDecision, account: AccountState, attempts: AttemptCounts) -> None:
    """Refuse an attempt that is not next: wrong_attempt, or out_of_order."""
    if command.attempt != attempts.made + 1:
        raise Refused("wrong_attempt", "attempt", command.attempt, f"the next attempt is {attempts.made + 1}")
    if values.read_instant(command.at) < account.decided_at:
        raise Refused("out_of_order", "at", command.at)


def text_kept(event: events.TextKept, state: State, position: int) -> tuple[Write, ...]:
    """Remember where the log has the text."""
    return ((state.texts, event.digest, position),)


def account_unchanged(event: events.LegRefused | events.CallFailed, state: State, _: int) -> tuple[Write, ...]:
    """Check that the account exists; a refused leg or a failed call does not change the state."""
    state.accounts[state.account_key(event.contest, event.participant)]
    return ()


def decision_recorded(event: events.DecisionRecorded, state: State, _: int) -> tuple[Write, ...]:
    """Count an attempt; the decision is taken if it is HOLD, or if one of its legs was carried out."""
    taken = event.action == "HOLD" or event.executed > 0
    key = state.account_key(event.contest, event.participant)
    attempts = state.attempts.get((*key, event.period), AttemptCounts())
    return _update_attempts(event, structs.replace(attempts, made=attempts.made + 1, taken=taken), state)


def decision_malformed(event: events.DecisionMalformed, state: State, _: int) -> tuple[Write, ...]:
    """Count a malformed attempt."""
    key = state.account_key(event.contest, event.participant)
    attempts = state.attempts.get((*key, event.period), AttemptCounts())
    after = structs.replace(attempts, made=attempts.made + 1, malformed=attempts.malformed + 1)
    return _update_attempts(event, after, state)


def decision_defaulted(event: events.DecisionDefaulted, state: State, _: int) -> tuple[Write, ...]:
    """Mark the decision as taken."""
    attempts = state.attempts[*state.account_key(event.contest, event.participant), event.period]
    return _update_attempts(event, structs.replace(attempts, taken=True), state)


def _update_attempts(
    event: events.DecisionRecorded | events.DecisionMalformed | events.DecisionDefaulted,
    after: AttemptCounts,
    state: State,
) -> tuple[Write, ...]:
    key, contest = state.account_key(event.contest, event.participant), state.contests[event.contest]
    account = state.accounts[key]
    first = after.taken and not account.taken and state.completes(event.contest, event.participant)
    return (
        (state.accounts, key, structs.replace(account, decided_at=event.at, taken=account.taken + after.taken)),
        (state.attempts, (*key, event.period), after),
        (state.contests, event.contest, structs.replace(contest, decided=contest.decided + first)),
    )


def _account_key(command: commands.RecordDecision | commands.RecordFailedCall) -> dict[str, Any]:
    return {"contest": command.contest, "participant": command.participant}


DECIDE: dict[type, Decide] = {
    commands.RecordDecision: record_decision,
    commands.RecordFailedCall: record_failed_call,
}
EVOLVE: dict[type, Evolve] = {
    events.DecisionRecorded: decision_recorded,
    events.DecisionMalformed: decision_malformed,
    events.DecisionDefaulted: decision_defaulted,
    events.TextKept: text_kept,
    events.SharesBought: traded,
    events.SharesSold: traded,
    events.LegRefused: account_unchanged,
    events.CallFailed: account_unchanged,
}
