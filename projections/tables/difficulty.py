"""The tables of difficulty: effects of questions, adjusted scores, relative skill, and reviews."""

from collections.abc import Iterator
from itertools import product
from operator import attrgetter
from typing import Any

import numpy as np

from forecast_ledger.projections.boards import totals
from forecast_ledger.projections.boards.leaderboard import TOTALS
from forecast_ledger.projections.core.column_values import Values, columns_of_rows
from forecast_ledger.projections.scores.score_policies import lower_is_better
from forecast_ledger.projections.studies.difficulty import relative_skills, scaled, scored_cells
from forecast_ledger.projections.studies.reviews import reviews
from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.tables.inputs import SCORED
from forecast_ledger.projections.tables.schemas import Projection, schema

_DIFFICULTY = schema("""
    how much each question raises or lowers scores, whoever forecasts on it: its effect, fitted by least squares

    by*           id      contest or category: what the scores of one fit have in common
    name*         id      the contest; or the category, of which questions are in several contests with the same rules
    part*         count   1 for the part with most scores; only scores within a part can be compared
    contest*
    question*
    participants  count   number of participants whose scores are fitted
    mean_score    points  mean of their scores
    effect        points  what the question adds to a score; the weighted mean of a part's effects is 0
""")


def difficulty_values(analysis: Analysis) -> list[Values]:
    """One row for each question of each part of a design."""
    asked = analysis.facts.question_codes.labels
    rows = [
        (part.by, part.name, part.number, contest, asked[question], *numbers)
        for part in analysis.design_parts
        for contest, question, *numbers in part.questions
    ]
    return columns_of_rows(rows, _DIFFICULTY.columns)


_ADJUSTED_SCORES = schema("""
    mean scores adjusted for the difficulty of the questions that each participant forecast on, best first

    by*             id      contest or category: what the scores of one fit have in common
    name*           id      the contest; or the category, of which questions are in several contests with the same rules
    part*           count   1 for the part with most scores; only scores within a part can be compared
    rank            count   1, 2, 2, 4 by adjusted score; empty if the scores are not fitted
    participant*
    questions       count   number of questions of the part that the participant forecast on; a question without a
                            fitted score is in no part
    mean_score      points  weighted mean of the scores on these questions of the part
    adjusted_score  points  weighted mean of score - effect of the question, on the same questions
    brier_index     points  100 x (1 - √adjusted_score), if the scores are Brier scores; always ½ has 50; empty below 0
    excluded        text    why the scores are not fitted: no_rank, consensus or reference
""")


def adjusted_scores_values(analysis: Analysis) -> list[Values]:
    """One row for each participant of each part of a design, best first."""
    rows = [(part.by, part.name, part.number, *own) for part in analysis.design_parts for own in part.participants]
    return columns_of_rows(rows, _ADJUSTED_SCORES.columns)


_RELATIVE_SKILL = schema("""
    mean scores beside those of others on the same questions; only of rules by which 0 is the best score

    contest*
    baseline*              id      the participant whose relative skill is 1 in scaled_relative_skill
    participant*
    compared               count   number of participants in the geometric mean, themselves included
    relative_skill         points  geometric mean of the ratios of the own mean score to each other's, on common
                                   questions; lower is better; empty if a mean is 0
    scaled_relative_skill  points  relative_skill / that of the baseline
    excluded               text    why nobody else is compared with them: no_rank, consensus or reference
""")


def relative_skill_values(analysis: Analysis) -> list[Values]:
    """One row for each participant of each contest and each baseline, by baseline."""
    return columns_of_rows([*_relative_skills(analysis)], _RELATIVE_SKILL.columns)


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


_PARTICIPANT_REVIEW = schema("""
    the questions of each participant, the best first, beside the others, with what a missed question cost

    contest*
    participant*
    place*       count   1 for the question that gained most, times its weight
    question
    score        points  the score; empty without a forecast
    rank         count   rank of the score on this question; empty without a forecast
    forecasters  count   number of participants on the leaderboard with a forecast on it
    coverage     share   share of the period with a standing forecast
    attainable   share   coverage of a forecast that stood all the time that is scored
    median       points  median of the scores of these participants
    counted      points  the score or, without a forecast, what the rules count; empty if they count nothing
    gained       points  by how much counted is better than the median; below 0, what it cost
""")


def participant_review_values(analysis: Analysis) -> list[Values]:
    """One row for each participant on a board and each question of the contest that one of them forecast on."""
    analysis.tally_all()
    facts, names, asked = analysis.facts, totals.score_labels(analysis.facts), analysis.facts.question_codes.labels
    rows = []
    for contest in analysis.contests:
        scored, on_board = analysis.scored(contest), {row.participant for row in analysis.board(contest)}
        shown = [person for person, label in enumerate(facts.participant_codes.labels) if label in on_board]
        shown.sort(key=names.__getitem__)
        rules, floored = facts.contests[contest].opened.rules, _floored(analysis, contest)
        for row in reviews(rules, scored, shown, len(facts.participant_codes.labels), floored):
            question = asked[scored.questions.code[row.question]]
            rows.append((contest, names[row.participant], row.place, question, *row[3:]))
    return columns_of_rows(rows, _PARTICIPANT_REVIEW.columns)


def _floored(analysis: Analysis, contest: str) -> set[int]:
    """Return the codes of the participants whose total is divided by least_coverage: they have forecast on less."""
    opened, codes = analysis.facts.contests[contest], analysis.facts.participant_codes.codes
    rules = opened.opened.rules
    if not TOTALS[rules.total].floored:
        return set()
    own = attrgetter(str(TOTALS[rules.total].divisor))
    every = totals.participant_sums(analysis.facts, opened, analysis.tally(contest))
    return {codes[sums.participant] for sums in every if not sums.reference and own(sums) < rules.least_coverage}


DIFFICULTY: dict[str, Projection] = {
    "difficulty": Projection(
        2,
        _DIFFICULTY,
        difficulty_values,
        reads=("resolutions", "scored_forecasts", "scored_questions", "contests"),
        on_request=True,
        whole=True,
    ),
    "adjusted_scores": Projection(
        2, _ADJUSTED_SCORES, adjusted_scores_values, reads=SCORED, as_built=True, on_request=True, whole=True
    ),
    "relative_skill": Projection(2, _RELATIVE_SKILL, relative_skill_values, reads=SCORED, on_request=True),
    "participant_review": Projection(
        2,
        _PARTICIPANT_REVIEW,
        participant_review_values,
        reads=("resolutions", "scored_forecasts", "scored_questions", "contests"),
        on_request=True,
    ),
}
