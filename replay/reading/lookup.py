"""Things that a caller names by their ids: found in a log, or refused with the ids that there are."""

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.projections.facts.columns import Contest, Entry, Facts


def contest(facts: Facts, name: str) -> Contest:
    """The contest of this id. Raises Refused (unknown_contest); the message lists those that there are."""
    found = facts.contests.get(name)
    if found is None:
        detail = f"no such contest here; there are: {', '.join(sorted(facts.contests)) or 'none'}"
        raise Refused("unknown_contest", "contest", name, detail, remedy="name one that is there")
    return found


def entry(facts: Facts, contest: Contest, question: str) -> Entry:
    """A question as a contest has it. Raises Refused (unknown_question): the contest has no such question."""
    code = facts.question_codes.codes.get(question, -1)
    if code not in contest.entries:
        detail = f"no such question in the contest {contest.opened.contest!r}"
        remedy = "`table LOG scores` lists those with a score"
        raise Refused("unknown_question", "question", question, detail, remedy=remedy)
    return contest.entries[code]
