"""Look up contests and questions by id; an unknown id is refused with the ids that exist."""

from collections.abc import Sequence

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.projections.facts.columns import Contest, Entry, Facts


def find_contest(facts: Facts, name: str) -> Contest:
    """Return the contest with this id.

    Raises Refused (unknown_contest); the message lists the contests of the log, the most similar first.
    """
    contest = facts.contests.get(name)
    if contest is None:
        detail = f"the log has no such contest; it has: {listed(name, facts.contests)}"
        raise Refused("unknown_contest", "contest", name, detail, remedy="use the id of a contest in the log")
    return contest


def find_entry(facts: Facts, contest: Contest, question: str) -> Entry:
    """Return the entry of a question in a contest. Raises Refused (unknown_question)."""
    code = facts.question_codes.codes.get(question, -1)
    if code not in contest.entries:
        detail = f"the question is not in the contest {contest.opened.contest!r}"
        remedy = "`table LOG scores` lists the questions that have a score"
        raise Refused("unknown_question", "question", question, detail, remedy=remedy)
    return contest.entries[code]


def outcome_names(facts: Facts, question: str) -> Sequence[str]:
    """Return the names of a question's outcomes, in their order; () if it has a range, or the facts do not have it."""
    code = facts.question_codes.codes.get(question)
    return () if code is None else facts.questions[code].outcomes
