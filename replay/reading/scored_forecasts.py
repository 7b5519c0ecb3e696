"""Scored forecasts as one frame: each score with its question, the forecast that counted last, and the answer."""

from typing import Any

import numpy as np

from forecast_ledger.ledger.core.values import Instant, read_instant
from forecast_ledger.projections.boards.contest_groups import ScoredGroup
from forecast_ledger.projections.core.arrays import Int64Array, run_starts
from forecast_ledger.projections.core.columns import Ids, Values, ids, join_values, none_where_negative, plain_values
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.facts.columns import CHANCE
from forecast_ledger.projections.facts.from_log import status_of
from forecast_ledger.projections.facts.task_ids import HORIZON, LOCATION, task_values
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.score_terms import standing_in_chunks
from forecast_ledger.projections.scores.scored_questions import QUANTILES, Answer
from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.projections.tables.schemas import schema
from forecast_ledger.projections.tables.scores import names_in_parts
from forecast_ledger.replay.reading.log import end_of_date

_SCORED_FORECASTS = schema("""
    each score, with its question, the forecast that counted last, and the answer

    contest*
    question*
    participant*
    probability   probability  what the forecast gave to the answer; empty for quantiles, payouts and the consensus
    outcome       text         the answer that counts on the board; on a range, the index of its bin; empty for payouts
    value         text         the answer on a range
    score         points       as in the table `scores`
    coverage      share        as in the table `scores`
    made_at       instant      when the forecast was made that stood last in scored time, by the clock of the rules;
                               empty for the consensus, which nobody made
    log_position  count        its log position, as in the table `forecasts`; empty for reference forecasters
    weight        points       the weight of the question in the contest
    kind          id           the kind of the question
    group         id           its group
    category      id           its category
    tags          text         further words about it, with a comma and a space between them
    location      id           the task id `location` of a hub's question; empty for other questions
    horizon       id           its task id `horizon`
""")
_UNIT = 10**11 // CHANCE  # of published probabilities in one of the facts
_WEIGHT = 10**3  # points in 1e-9 of a weight of 1e-6


def scored_forecasts(projections: Projections) -> Table:
    """Return a row for each row of the table `scores`, in its order."""
    pages = [_group(projections, group) for group in projections.scored_groups]
    columns = _SCORED_FORECASTS.columns
    empty: list[Values] = [ids([]) if column.kind == "id" else [] for column in columns]
    values = tuple(join_values(column) for column in zip(empty, *pages, strict=True))
    return Table("scored_forecasts", 1, columns, values).sorted_by(*_SCORED_FORECASTS.key)


def _group(analysis: Analysis, group: ScoredGroup) -> list[Values]:
    """Return the columns of some contests."""
    questions, rows = group.questions, group.rows
    asked = [answer.question for answer in questions.answers]
    tasks = [task_values(question.question) or {} for question in asked]
    settled = status_of(analysis.facts, questions.code, questions.as_of)
    names, on = names_in_parts(analysis.facts), rows.question
    at, position, probability = map(none_where_negative, _last(analysis, group))
    return [
        _named([group.names[contest] for contest in questions.contest.tolist()], on),
        Ids(questions.code[on], names["question"]),
        Ids(rows.participant, names["participant"]),
        probability,
        _taken([*map(_outcome, questions.answers)], on),
        _taken(settled.values, on),
        time_weighted.points(group.rules, questions, rows).published(),
        time_weighted.coverages(questions, rows).published(),
        at,
        position,
        questions.weight[on] * _WEIGHT,
        *(_named([getattr(question, name) for question in asked], on) for name in ("kind", "group", "category")),
        _taken([", ".join(question.tags) for question in asked], on),
        *(_named([task.get(name, "") for task in tasks], on) for name in (LOCATION, HORIZON)),
    ]


def _outcome(answer: Answer) -> str:
    """Return the outcome of an answer as the table `questions` has it."""
    names = answer.question.outcomes
    return "" if answer.outcome < 0 else names[answer.outcome] if names else str(answer.outcome)


def _last(analysis: Analysis, group: ScoredGroup) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return made_at, log_position and probability of the forecast that stood last in scored time; -1 for none."""
    questions, rows = group.questions, group.rows
    at, position, probability = np.full((3, len(rows.question)), -1)
    people = len(names_in_parts(analysis.facts)["participant"])
    known = rows.question * people + rows.participant
    every = standing_in_chunks(analysis.facts, group.contests, questions, analysis.chunk)
    for first, own, forecasts, standing in every:
        if not len(standing.row):
            continue
        starts = run_starts(standing.question, standing.participant)
        last = standing.of(np.append(starts[1:], len(standing.row)) - 1)
        place = np.searchsorted(known, (first + last.question) * people + last.participant)
        at[place], position[place] = forecasts.at[last.row], forecasts.position[last.row]
        named = np.flatnonzero((own.form != QUANTILES)[last.question] & (own.outcome[last.question] >= 0))
        outcome, bins = (column[last.question[named]] for column in (own.outcome, own.bins))
        probability[place[named]] = forecasts.chance(last.row[named], outcome, bins) * _UNIT
    position[rows.participant >= len(analysis.facts.participant_codes.codes)] = -1
    return at, position, probability


def _named(texts: list[str], index: Int64Array) -> Ids:
    """Return a column of ids: the text at each index."""
    column = ids(texts)
    return Ids(column.codes[index], column.labels)


def _taken(texts: list[str], index: Int64Array) -> list[Any]:
    return [texts[place] for place in index.tolist()]


CLOSE = "close"


def standing_at(projections: Projections, at: Instant) -> Table:
    """Return the rows of the table `forecasts` of what stands at an instant, or when each question closes.

    at: a plain date is the last instant of that day, UTC. Raises Refused: not an instant.
    """
    table = projections.table("forecasts")
    begin, end = (plain_values(table.numbers(column)) for column in ("from_at", "to_at"))
    if at == CLOSE:
        ended = plain_values(table.numbers("ended_by"))
        chosen = [start is not None and why is None for start, why in zip(begin, ended, strict=True)]
    else:
        instant = read_instant(end_of_date(at) if isinstance(at, str) else at, "at")
        spans = zip(begin, end, strict=True)
        chosen = [start is not None and start <= instant < stop for start, stop in spans]
    return table.rows_at(np.flatnonzero(chosen))
