"""Decide change_outcomes: outcomes added to an open multiple-choice question, or removed from it.

Source: Metaculus's published code (github.com/Metaculus/metaculus), multiple_choice_handlers.
"""

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.deciding.state import Decide, Evolve, QuestionState, State, Write, instants, to_standing
from forecast_ledger.ledger.model import commands, events


def change_outcomes(command: commands.ChangeOutcomes, state: State) -> events.OutcomesChanged:
    """Refuses, first that applies: malformed (not one of add and remove, or grace_ends_at without add),
    unknown_question, duplicate_outcome, wrong_fields_for_kind (not multiple choice), unknown_outcome, outcomes_quoted,
    question_resolved, question_closed, before_opening, wrong_order_of_instants (the grace period does not end after
    at), out_of_order (before the last change, or before its grace period ends, or before a forecast or withdrawal).
    """
    added, removed = command.add or (), command.remove or ()
    if bool(added) == bool(removed) or bool(added) != (command.grace_ends_at is not None):
        raise Refused("malformed", "add", None, "give either add and grace_ends_at, or remove")
    at = values.read_instant(command.at)
    grace_ends_at = (
        None if command.grace_ends_at is None else values.read_instant(command.grace_ends_at, "grace_ends_at")
    )
    question = state.question(command.question)
    if question.kind != "multiple_choice":
        raise Refused("wrong_fields_for_kind", "question", command.question, "it is not a multiple_choice question")
    _check_names(added, removed, question)
    if command.question in state.quotes:
        raise Refused("outcomes_quoted", "question", command.question)
    if question.settled:
        raise Refused("question_resolved", "at", command.at)
    if at >= question.closed_at:
        raise Refused("question_closed", "at", command.at)
    if at < question.opens_at:
        raise Refused("before_opening", "at", command.at)
    if grace_ends_at is not None and grace_ends_at <= at:
        detail = "the grace period ends after at"
        raise Refused("wrong_order_of_instants", "grace_ends_at", command.grace_ends_at, detail)
    earliest = max(question.changed_at, question.grace_ends_at)
    if at < earliest:
        detail = f"the last change of the outcomes is complete at {values.format_instant(earliest)}"
        raise Refused("out_of_order", "at", command.at, detail, remedy="use that instant or a later one")
    latest = max([instants(last)[0] for last in state.standing_on(command.question).values()], default=at)
    if at < latest:
        detail = f"a forecast on it was made or withdrawn at {values.format_instant(latest)}"
        raise Refused("out_of_order", "at", command.at, detail, remedy="use that instant or a later one")
    return events.OutcomesChanged(
        at=at, question=command.question, added=added, removed=removed, grace_ends_at=grace_ends_at
    )


def _check_names(added: tuple[str, ...], removed: tuple[str, ...], question: QuestionState) -> None:
    """Refuse names that cannot be added or removed: duplicate_outcome, unknown_outcome (also if it is the last one)."""
    names, left = [*question.outcomes, *added], {*question.current} - {*removed}
    if len({*names}) < len(names):
        detail = "a name that the question has or had cannot be given to another outcome"
        raise Refused("duplicate_outcome", "add", list(added), detail)
    if len({*removed}) < len(removed) or len(left) < 2:
        raise Refused("duplicate_outcome", "remove", list(removed), "two or more outcomes must be left")
    for outcome in removed:
        if outcome not in question.current:
            raise Refused("unknown_outcome", "remove", outcome)
        if outcome == question.catch_all:
            detail = "it is the last outcome, which stands for all that are not named"
            raise Refused("unknown_outcome", "remove", outcome, detail, remedy="remove other outcomes")


def outcomes_changed(event: events.OutcomesChanged, state: State, _: int) -> tuple[Write, ...]:
    """Add or remove the outcomes; forecasts that do not have the added ones end with the grace period."""
    question = state.questions[event.question]
    changed = question._replace(
        outcomes=question.outcomes + event.added,
        removed=question.removed | {*event.removed},
        changed_at=event.at,
        grace_ends_at=question.grace_ends_at if event.grace_ends_at is None else event.grace_ends_at,
    )
    if event.grace_ends_at is None:
        return ((state.questions, event.question, changed),)
    ended = {
        participant: to_standing(made, min(ends, event.grace_ends_at))
        for participant, last in state.standing_on(event.question).items()
        for made, ends in [instants(last)]
    }
    return ((state.questions, event.question, changed), (state.standing, event.question, ended))


DECIDE: dict[type, Decide] = {
    commands.ChangeOutcomes: change_outcomes,
}
EVOLVE: dict[type, Evolve] = {
    events.OutcomesChanged: outcomes_changed,
}
