"""Builders of the tables of questions."""

import json
from collections.abc import Sequence

from forecast_ledger.ledger.model import events
from forecast_ledger.projections.catalogue.analysis import Analysis
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.column_values import Ids, Values
from forecast_ledger.projections.facts.from_log import status

_STATES: dict[type | None, str] = {events.QuestionResolved: "resolved", events.QuestionAnnulled: "annulled"}


def questions_values(analysis: Analysis) -> list[Values]:
    """One row for each question."""
    facts = analysis.facts
    now, questions = status(facts), facts.questions
    codes = range(len(questions))
    return [
        Ids(int64_array(codes), facts.question_codes.labels),
        [question.kind for question in questions],
        [question.title for question in questions],
        [_json(question.outcomes) for question in questions],
        now.opens_at,
        now.closes_at,
        now.closed_at,
        [question.reveals_at for question in questions],
        int64_array(facts.opened),
        [_STATES.get(facts.settled.get(code), "unresolved") for code in codes],
        [_outcome(question, outcome) for question, outcome in zip(questions, now.outcome.tolist(), strict=True)],
        [value or None for value in now.values],
        [question.group for question in questions],
        [question.category for question in questions],
        [_json(question.tags) for question in questions],
        [question.url for question in questions],
        [question.source for question in questions],
    ]


def _json(texts: Sequence[str]) -> str:
    return json.dumps(texts, ensure_ascii=False)


def _outcome(question: events.QuestionOpened, outcome: int) -> str | None:
    if outcome < 0:
        return None
    return question.outcomes[outcome] if question.outcomes else str(outcome)
