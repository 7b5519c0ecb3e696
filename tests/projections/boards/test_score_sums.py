"""Sums of scores over alike questions, from which tallies are made as from the scores themselves."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.projections.boards import score_sums
from forecast_ledger.projections.boards.contest_groups import contests_by_rules, score_group, sum_group
from forecast_ledger.projections.boards.score_sums import SummedScores, added, counted, summed
from forecast_ledger.projections.boards.totals import tallies_of_sums
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.scores.time_weighted import ContestScores
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import contest, day, entry, forecast, opened, resolution

RULES = PRESETS["baseline"]
NAMES = ("rain", "wind", "snow", "fog")


@pytest.fixture(scope="module")
def answered() -> Projections:
    """Ada forecasts on four questions, bo on two: all are alike but snow, of twice the weight, and fog, of weight 0.

    Bo changes a forecast.
    """
    start: list[AnyCommand] = [opened(name) for name in NAMES]
    weights = {"snow": 2, "fog": 0}
    start += [contest(), *(entry(question=name, weight=weights.get(name, 1)) for name in NAMES)]
    start += [*map(forecast, NAMES), *(forecast(name, participant="bo") for name in NAMES[:2])]
    start += [forecast(NAMES[0], participant="bo", at=day(12), probability="0.4")]
    return oracle.projected(*start, *map(resolution, NAMES))


@pytest.fixture(scope="module")
def season(answered: Projections) -> ContestScores:
    """The scores of the contest."""
    return answered.scored("cup")


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


def as_rows(sums: SummedScores) -> list[tuple[int, ...]]:
    """Their columns, row by row."""
    question, participant, numerator, *units = sums.rows
    plain = (column.tolist() for column in (question, participant, *units, sums.over))
    return [*zip(*plain, numerator.integers(), strict=True)]


@pytest.mark.parametrize("chunk", [1, 100])
def test_sums_without_scores_are_those_of_scores(answered: Projections, chunk: int) -> None:
    """A changed forecast is one score of one question, and a question of weight 0 is in no sum."""
    scored = score_group(answered.facts, ["cup"], chunk).summed()
    assert scored.sums.over.tolist() == [2, 2, 1]
    assert as_rows(sum_group(answered.facts, ["cup"], chunk).sums) == as_rows(scored.sums)


@given(oracle.logs(), st.integers(1, 4), st.sampled_from([0, 1 << 17]), st.sampled_from([0, 40, 60]))
@settings(max_examples=times(40), deadline=None)
def test_sums_of_any_log_are_those_of_its_scores(
    commands: list[AnyCommand], chunk: int, slice_size: int, bits: int
) -> None:
    """Whether they are added up as terms come, or scores first: one question is too large, or a sum is."""
    facts = oracle.facts_in(oracle.attempted(commands)[0])
    some = {name: each for name, each in facts.contests.items() if each.entries}
    for names in contests_by_rules(replace(facts, contests=some), some):
        scored = score_group(facts, names, chunk).summed()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(score_sums, "SLICE", slice_size)
            patch.setattr(score_sums, "_BITS", bits)
            sums = sum_group(facts, names, chunk).sums
        assert as_rows(added(scored.rules, scored.questions, sums)) == as_rows(scored.sums)
