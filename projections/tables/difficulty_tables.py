"""Builders of the tables of difficulty: the effects of questions, and scores adjusted for them."""

from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.column_values import Ids, Values, ids, round_to_points, transpose
from forecast_ledger.projections.tables.analysis import Analysis


def difficulty_values(analysis: Analysis) -> list[Values]:
    """One row for each question of each part of a design."""
    rows = [(part.by, part.name, part.number, *each) for part in analysis.design_parts for each in part.questions]
    by, names, parts, contests, questions, *numbers = transpose(rows, 8)
    asked = Ids(int64_array(questions), analysis.facts.question_codes.labels)
    return [ids(by), ids(names), parts, ids(contests), asked, *numbers]


def adjusted_scores_values(analysis: Analysis) -> list[Values]:
    """One row for each participant of each part of a design, best first."""
    rows = [
        (part.by, part.name, part.number, *own[:4], round_to_points(own.adjusted), *own[5:])
        for part in analysis.design_parts
        for own in part.participants
    ]
    by, names, parts, rank, participants, *others = transpose(rows, 10)
    return [ids(by), ids(names), parts, rank, ids(participants), *others]
