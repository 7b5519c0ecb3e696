"""Sums of scores over alike questions, from which tallies are made as from the scores themselves."""

import numpy as np
import pytest
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.projections.boards.score_sums import counted, summed
from forecast_ledger.projections.boards.totals import tallies_of_sums
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.scores.time_weighted import ContestScores
from tests.support import oracle
from tests.support.given import contest, entry, forecast, opened, resolution

RULES = PRESETS["baseline"]
NAMES = ("rain", "wind", "snow", "fog")


@pytest.fixture(scope="module")
def season() -> ContestScores:
    """Ada forecasts on four questions, bo on two: all are alike but snow, of twice the weight, and fog, of weight 0."""
    start: list[AnyCommand] = [opened(name) for name in NAMES]
    weights = {"snow": 2, "fog": 0}
    start += [contest(), *(entry(question=name, weight=weights.get(name, 1)) for name in NAMES)]
    start += [*map(forecast, NAMES), *(forecast(name, participant="bo") for name in NAMES[:2])]
    return oracle.projected(*start, *map(resolution, NAMES)).scored("cup")


def test_scores_on_alike_questions_are_one_sum(season: ContestScores) -> None:
    """Two of ada's and two of bo's are added; snow is apart; fog counts nowhere."""
    (questions, rows), one = season, season.rows.numerator.integers()
    sums = summed(RULES, questions, rows)
    assert len(rows.question) == 6
    assert sums.over.tolist() == [2, 2, 1]
    assert sums.rows.question.tolist() == [0, 0, 2]
    assert sums.rows.participant.tolist() == [0, 1, 0]
    assert sums.rows.numerator.integers() == [one[0] + one[2], one[1] + one[3], one[4]]
    assert sums.rows.covered.tolist() == [2 * int(rows.covered[0]), 2 * int(rows.covered[1]), int(rows.covered[4])]
    assert counted(questions, rows).over.tolist() == [1] * 5


def test_a_tally_of_sums_has_the_weight_and_number_of_all_questions(season: ContestScores) -> None:
    """Ada: 1 + 1 + 2 on three questions; bo: 1 + 1 on two."""
    sums = summed(RULES, *season)
    [tally] = tallies_of_sums(RULES, season.questions, sums, 2, season.questions.contest)
    assert [(own.weight, own.questions) for own in tally.by_code.values()] == [(4_000_000, 3), (2_000_000, 2)]


def test_scores_that_each_have_their_own_divisor_are_not_added(season: ContestScores) -> None:
    """A score over the time that its forecasts covered is divided before it is added."""
    sums = summed(structs.replace(RULES, period="covered"), *season)
    assert sums.over.tolist() == [1] * 5


def test_sums_that_might_not_fit_are_not_added(season: ContestScores) -> None:
    """A word has 64 bits: two numbers of 133 bits might need 134."""
    questions, rows = season
    large = rows._replace(numerator=WideInt.from_integers([1 << 132] * len(rows.question)))
    assert summed(RULES, questions, large).over.tolist() == [1] * 5
    long = rows._replace(covered=np.full_like(rows.covered, 1 << 59))
    assert summed(RULES, questions, long).over.tolist() == [1] * 5


def test_no_score_has_no_sum(season: ContestScores) -> None:
    """A part of the questions may have no forecast."""
    nothing = season.rows.rows(np.zeros(0, np.int64))
    assert len(summed(RULES, season.questions, nothing).over) == 0
