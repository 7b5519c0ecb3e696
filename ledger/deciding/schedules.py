"""Decide the command that gives a question other times."""

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.deciding.state import Decide, EntryState, Evolve, QuestionState, State, Write
from forecast_ledger.ledger.model import commands, events


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


def _check_order(new: QuestionState, entries: list[EntryState], command: commands.RescheduleQuestion) -> None:
    """Refuses: wrong_order_of_instants, no_hidden_period. entries: in contests that are open."""
    if not new.opens_at < new.closes_at <= new.opens_at + values.LONGEST_PERIOD:
        name = "opens_at" if command.closes_at is None else "closes_at"
        raise Refused("wrong_order_of_instants", name, getattr(command, name))
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


DECIDE: dict[type, Decide] = {commands.RescheduleQuestion: reschedule_question}
EVOLVE: dict[type, Evolve] = {events.QuestionRescheduled: question_rescheduled}
