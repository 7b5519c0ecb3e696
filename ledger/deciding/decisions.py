"""Part of the decider: a participant's decision for a period, one attempt after another."""

from hashlib import sha256
from typing import Any

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.deciding.accounts import trader
from forecast_ledger.ledger.deciding.legs import legs
from forecast_ledger.ledger.deciding.state import Account, Attempts, Decide, Evolve, State, Write
from forecast_ledger.ledger.model import commands, events, replies
from forecast_ledger.ledger.model.trading_rules import Trading, period_number

_LAST_PERIOD = 10**9  # where periods are numbers


def record_decision(command: commands.RecordDecision, state: State) -> tuple[events.AnyEvent, ...]:
    """The texts it names, the decision, and one event for each of its legs; or why it is none, and HOLD after too many.

    Refuses, first that applies: malformed (neither an action nor a response), unknown_contest, contest_finalized,
    not_trading, not_enrolled, contest_complete, wrong_period, cohort_not_deciding, decision_taken, wrong_attempt,
    out_of_order.
    """
    at, of = values.read_instant(command.at), _whose(command)
    fields = any(part is not None for part in (command.action, command.bets, command.sells, command.reasoning))
    if not fields and command.response is None:
        raise Refused("malformed", "response", None, "give an action and what belongs to it, or the text of a response")
    contest, account = trader(command.contest, command.participant, state)
    trading = contest.rules.trading or Trading()
    attempts = state.attempts.get((command.contest, command.participant, command.period), Attempts())
    _refuse(command, account, attempts, state)
    response = command.response
    reply = replies.reply_from_fields(command) if fields else replies.read_reply(response or "")
    fault = replies.first_fault(reply, trading, account.cash)
    if fault and response is None:
        response = replies.reply_text(command)
    prompt, said = _digest(command.prompt), _digest(response)
    kept = [
        events.TextKept(at=at, digest=digest, text=text)
        for digest, text in {prompt: command.prompt, said: response}.items()
        if text is not None and digest not in state.texts
    ]
    tried = {"at": at, **of, "period": command.period, "attempt": command.attempt}
    if fault or reply is None:
        last = attempts.malformed + 1 >= trading.attempts
        none = events.DecisionMalformed(**tried, fault=fault, prompt=prompt, response=said)
        hold = events.DecisionDefaulted(at=at, **of, period=command.period)
        return (*kept, none, hold) if last else (*kept, none)
    done = legs(reply, command, at, contest, state)
    decision = events.DecisionRecorded(
        **tried,
        action=reply.action,  # type: ignore[arg-type]
        bets=reply.bets,
        sells=reply.sells,
        executed=sum(type(leg) is not events.LegRefused for leg in done),
        reasoning=reply.reasoning,
        prompt=prompt,
        response=said,
    )
    return (*kept, decision, *done)


def _refuse(command: commands.RecordDecision, account: Account, attempts: Attempts, state: State) -> None:
    at, contest = values.read_instant(command.at), state.contests[command.contest]
    trading = contest.rules.trading or Trading()
    if contest.complete():
        raise Refused("contest_complete", "contest", command.contest)
    right = (
        period_number(trading, contest.starts_at, at)
        if trading.period_days
        else min(max(command.period, 1), _LAST_PERIOD)
    )
    if command.period != right or at < contest.starts_at:
        started = values.format_instant(contest.starts_at)
        raise Refused("wrong_period", "period", command.period, f"at is in period {right} of what started {started}")
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
    """A text that need not be kept again."""
    return ((state.texts, event.digest, True),)


def leg_refused(event: events.LegRefused, state: State, _: int) -> tuple[Write, ...]:
    """Nothing that a decision depends on."""
    state.accounts[event.contest, event.participant]
    return ()


def _whose(command: commands.RecordDecision) -> dict[str, Any]:
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
