"""Builders of the tables of questions."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from forecast_ledger.ledger.model import events
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.column_values import Ids, Values, ids, round_to_points, transpose
from forecast_ledger.projections.facts.columns import Contest, Entry, Facts
from forecast_ledger.projections.facts.from_log import status
from forecast_ledger.projections.tables.analysis import Analysis

_ORDERED = {None: "", True: "yes", False: "no"}
GROUPINGS = ("group", "category")  # the details of questions by which boards are made
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
        [_json(_outcomes(facts, code)) for code in codes],
        [_ORDERED[question.ordered] for question in questions],
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


def _outcomes(facts: Facts, code: int) -> Sequence[str]:
    """Return the outcomes that a question has, without those that were removed."""
    names, changed = facts.questions[code].outcomes, facts.changed.get(code)
    return names if changed is None else [names[outcome] for outcome in changed.given()]


def leaderboard_by_group_values(analysis: Analysis) -> list[Values]:
    """One row for each participant of each board: of a contest, for each value of each grouping, best first."""
    facts = analysis.facts
    boards = {key: narrowed for contest in analysis.contests for key, narrowed in _narrowed(facts, contest)}
    keys = {"\n".join(key): key for key in boards}  # an id has no control characters, so that the order is that of keys
    grouped = Analysis(replace(facts, contests={name: boards[key] for name, key in keys.items()}), analysis.chunk)
    grouped.tally_all()
    rows = [
        [
            *keys[name],
            place.rank,
            place.participant,
            round_to_points(place.score),
            round_to_points(place.coverage),
            round_to_points(place.attainable),
            f"{place.forecast_on}/{place.questions}",
            place.excluded,
        ]
        for name in grouped.contests
        for place in grouped.board(name)
    ]
    contests, by, names, rank, participants, *others = transpose(rows, 10)
    return [ids(contests), ids(by), ids(names), rank, ids(participants), *others]


def _narrowed(facts: Facts, name: str) -> Iterator[tuple[tuple[str, str, str], Contest]]:
    """Yield a contest with the questions of one value of a grouping only, under its id, the grouping and the value."""
    contest = facts.contests[name]
    for by in GROUPINGS:
        parts: dict[str, dict[int, Entry]] = {}
        for code, entry in contest.entries.items():
            if value := getattr(facts.questions[code], by):
                parts.setdefault(value, {})[code] = entry
        for value, entries in parts.items():
            yield (name, by, value), replace(contest, entries=entries)


def _json(texts: Sequence[str]) -> str:
    return json.dumps(texts, ensure_ascii=False)


def _outcome(question: events.QuestionOpened, outcome: int) -> str | None:
    if outcome < 0:
        return None
    return question.outcomes[outcome] if question.outcomes else str(outcome)
