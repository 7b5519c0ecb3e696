"""Retracted forecasts: they count in a replay as of an earlier log position, on sealed boards, and nowhere else."""

import numpy as np
import pytest

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.facts.retractions import with_retractions
from forecast_ledger.projections.tables.projection import Projections
from tests.support import oracle
from tests.support.given import contest, day, entry, finalization, forecast, opened, resolution, restatement, withdrawal

# A mean over the time from the opening on the 10th to the close on the 20th, as far as a forecast stands.
BRIER = RuleSet(name="mean", kernel="brier", period="covered", total="mean", least_probability_ppm=0)
START: list[AnyCommand] = [
    opened(),
    contest(rules=BRIER),
    contest("sealed", rules=BRIER),
    entry(),
    entry("sealed"),
]
ADA, BO = forecast(at=day(10)), forecast(participant="bo", at=day(10), probability="0.5")
# 0.2 for half of the time, then 0.8: ((1 - 0.2)² + (1 - 0.8)²) / 2 = 0.34
HALVES = restatement(forecast(at=day(10), probability="0.2"), forecast(at=day(15), probability="0.8"))


def scores(*said: AnyCommand, contest: str = "cup", as_of: int | None = None) -> dict[str, str]:
    """The Brier score of each participant on rain."""
    recorded = oracle.history(*START, *said)
    table = Projections(oracle.facts_in(recorded[:as_of])).table("scores")
    return {row["participant"]: row["score"].rstrip("0") for row in table.rows() if row["contest"] == contest}


@pytest.mark.parametrize("late", [False, True])
def test_what_is_restated_counts_and_nothing_else(late: bool) -> None:
    """Before the answer or after it; the score of another participant stays: (1 - 0.7)² = 0.09, (1 - 0.5)² = 0.25."""
    told: list[AnyCommand] = [resolution(), HALVES] if late else [HALVES, resolution()]
    assert scores(ADA, BO, resolution()) == {"ada": "0.09", "bo": "0.25"}
    assert scores(ADA, BO, *told) == {"ada": "0.34", "bo": "0.25"}


def test_who_forecast_nothing_has_no_score() -> None:
    """Neither a forecast nor a withdrawal is left; a later forecast counts alone."""
    assert scores(ADA, BO, resolution(), restatement()) == {"bo": "0.25"}
    assert scores(ADA, withdrawal(at=day(12)), restatement(), resolution()) == {}
    assert scores(ADA, restatement(), forecast(at=day(10), probability="0.5"), resolution()) == {"ada": "0.25"}


def test_a_replay_as_of_an_earlier_position_shows_what_counted_then() -> None:
    """The restatement is at log positions 9 to 11, after five commands, two forecasts and the answer."""
    told: list[AnyCommand] = [ADA, BO, resolution(), HALVES]
    assert scores(*told, as_of=8) == {"ada": "0.09", "bo": "0.25"}
    assert scores(*told, as_of=9) == {"bo": "0.25"}
    assert scores(*told, as_of=11) == {"ada": "0.34", "bo": "0.25"}


def test_a_sealed_board_keeps_what_counted_when_it_was_sealed() -> None:
    """Another contest on the same question counts what was restated."""
    told: list[AnyCommand] = [ADA, BO, resolution(), finalization("sealed"), HALVES, restatement(participant="bo")]
    assert scores(*told, contest="sealed") == {"ada": "0.09", "bo": "0.25"}
    assert scores(*told) == {"ada": "0.34"}


def test_a_row_has_the_first_retraction_after_it() -> None:
    """Of the same participant on the same question; rows of other participants and questions have none."""
    told: list[AnyCommand] = [
        opened(),
        opened("dry"),
        forecast(),  # 3
        forecast(participant="bo"),  # 4
        forecast("dry"),  # 5
        restatement(forecast()),  # 6 and 7
        restatement(forecast()),  # 8 and 9
        restatement(forecast(participant="bo"), participant="bo"),  # 10 and 11
    ]
    facts = oracle.facts_in(oracle.history(*told))
    found = with_retractions(facts, facts.forecasts)
    never = np.iinfo(np.int64).max
    retracted = dict(zip(found.position.tolist(), found.retracted.tolist(), strict=True))
    assert retracted == {3: 6, 4: 10, 5: never, 7: 8, 9: never, 11: never}
