"""Builders of the tables of difficulty: effects of questions, adjusted scores, relative skill, and reviews."""

from collections.abc import Iterator
from itertools import product
from operator import attrgetter
from typing import Any

import numpy as np

from forecast_ledger.projections.boards import totals
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.column_values import Ids, Values, ids, transpose
from forecast_ledger.projections.difficulty.designs import scored_cells
from forecast_ledger.projections.difficulty.relative_skill import relative_skills, scaled
from forecast_ledger.projections.difficulty.reviews import reviews
from forecast_ledger.projections.scores.score_policies import lower_is_better
from forecast_ledger.projections.tables.analysis import Analysis


def difficulty_values(analysis: Analysis) -> list[Values]:
    """One row for each question of each part of a design."""
    rows = [(part.by, part.name, part.number, *each) for part in analysis.design_parts for each in part.questions]
    by, names, parts, contests, questions, *numbers = transpose(rows, 8)
    asked = Ids(int64_array(questions), analysis.facts.question_codes.labels)
    return [ids(by), ids(names), parts, ids(contests), asked, *numbers]


def adjusted_scores_values(analysis: Analysis) -> list[Values]:
    """One row for each participant of each part of a design, best first."""
    rows = [(part.by, part.name, part.number, *own) for part in analysis.design_parts for own in part.participants]
    by, names, parts, rank, participants, *others = transpose(rows, 10)
    return [ids(by), ids(names), parts, rank, ids(participants), *others]


def relative_skill_values(analysis: Analysis) -> list[Values]:
    """One row for each participant of each contest and each baseline, by baseline."""
    contests, baselines, participants, *numbers = transpose([*_relative_skills(analysis)], 7)
    return [ids(contests), ids(baselines), ids(participants), *numbers]


def _relative_skills(analysis: Analysis) -> Iterator[tuple[Any, ...]]:
    for group in analysis.scored_groups:
        if not lower_is_better(group.rules) or group.rules.reference != "none":
            continue  # scores may be below 0
        scored = scored_cells(analysis.facts, group)
        contest = group.questions.contest[scored.cells.question]
        for number in np.unique(contest).tolist():
            rows = np.flatnonzero(contest == number)
            cells = scored.cells.take(rows)
            excluded = {int(cells.participant[place]): scored.excluded[row] for place, row in enumerate(rows.tolist())}
            skills = relative_skills(cells, {code for code, reason in excluded.items() if not reason})
            for baseline, own in product(skills, skills):
                names = (group.names[number], scored.names[baseline.participant], scored.names[own.participant])
                yield *names, own.compared, scaled(own), scaled(own, baseline), excluded[own.participant]


def _floored(analysis: Analysis, contest: str) -> set[int]:
    """Return the codes of the participants whose total is divided by least_coverage: they have forecast on less."""
    opened, codes = analysis.facts.contests[contest], analysis.facts.participant_codes.codes
    own = {"per_coverage": attrgetter("covered"), "per_question": attrgetter("questions")}.get(
        opened.opened.rules.total
    )
    if own is None:
        return set()
    every = totals.participant_sums(analysis.facts, opened, analysis.tally(contest))
    least = opened.opened.rules.least_coverage
    return {codes[sums.participant] for sums in every if not sums.reference and own(sums) < least}


def participant_review_values(analysis: Analysis) -> list[Values]:
    """One row for each participant on a board and each question of the contest that one of them forecast on."""
    analysis.tally_all()
    facts, names = analysis.facts, totals.score_labels(analysis.facts)
    codes, rows = [], []
    for code, contest in enumerate(analysis.contests):
        scored, on_board = analysis.scored(contest), {row.participant for row in analysis.board(contest)}
        shown = [person for person, label in enumerate(facts.participant_codes.labels) if label in on_board]
        shown.sort(key=names.__getitem__)
        rules, floored = facts.contests[contest].opened.rules, _floored(analysis, contest)
        for row in reviews(rules, scored, shown, len(facts.participant_codes.labels), floored):
            codes.append(code)
            rows.append((row.participant, row.place, int(scored.questions.code[row.question]), *row[3:]))
    participants, places, questions, *numbers = transpose(rows, 11)
    asked = Ids(int64_array(questions), facts.question_codes.labels)
    people = Ids(int64_array(participants), names)
    return [Ids(int64_array(codes), analysis.contests), people, places, asked, *numbers]
