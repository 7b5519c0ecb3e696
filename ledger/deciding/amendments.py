"""Decide amend_question: what describes a question, and its weight in a contest that is not sealed."""

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.deciding.state import Decide, Evolve, State, Write
from forecast_ledger.ledger.model import commands, events

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


DECIDE: dict[type, Decide] = {
    commands.AmendQuestion: amend_question,
}
EVOLVE: dict[type, Evolve] = {
    events.QuestionAmended: question_amended,
}
